// Decides which types become 16-bit floats: see precision.h. step/precision_casts.c then changes
// them.
//
// The rules, in order:
// 1. Types of ops on the deny list are painted deny, and so is what follows them over clear and
//    infer ops up to the last infer or deny op.
// 2. Types of ops on the allow list are painted allow, and so are clear and infer ops that lie
//    between two such ops, and infer ops that read an allowed value and no denied one.
// 3. Allow spreads over clear ops in both directions.
// 4. What a loop carries has one type, and so has what a tensor list holds.
// Only nodes on the chosen device are painted, and only types for which the device has a kernel.
#include "device/device.h"
#include "step/paint.h"

static bool is_open_node(const rn_painter_t* p, const rn_ir_node_t* node) {
  return !node->is_removed && node->feed < 0 && node->device &&
         strcmp(node->device->type, p->device) == 0 && !rn_ir_attr(node, RN_STR("_kernel"));
}

static rn_paint_t cached_paint(rn_painter_t* p, const rn_op_def_t* op) {
  for (int i = 0; i < p->known_count; ++i)
    if (p->known_ops[i] == op) return p->known_paints[i];
  rn_paint_t paint = rn_paint_of(&p->lists, op->name);
  if (p->known_count < RN_MOST_KNOWN_OPS) {
    p->known_ops[p->known_count] = op;
    p->known_paints[p->known_count++] = paint;
  }
  return paint;
}

static void read_nodes(rn_painter_t* p) {
  for (size_t n = 0; n < p->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &p->ir->nodes.items[n];
    p->is_open[n] = is_open_node(p, node);
    if (!node->is_removed && node->feed < 0) p->paint[n] = cached_paint(p, node->op);
  }
  for (int32_t i = 0; i < p->ir->fetch_count; ++i)
    if (p->ir->fetches[i].node >= 0) p->is_open[p->ir->fetches[i].node] = false;
  for (int32_t i = 0; i < p->ir->target_count; ++i) p->is_open[p->ir->targets[i]] = false;
}

// A batch normalisation of floats only becomes one that takes 16-bit images.
static rn_status_t modernize(rn_painter_t* p) {
  static const char* const names[][2] = {{"FusedBatchNorm", "FusedBatchNormV2"},
                                         {"FusedBatchNormGrad", "FusedBatchNormGradV2"}};
  for (size_t n = 0; n < p->ir->nodes.count; ++n) {
    rn_ir_node_t* node = &p->ir->nodes.items[n];
    for (int k = 0; p->is_open[n] && k < 2; ++k) {
      if (!rn_ir_is_op(node, names[k][0])) continue;
      const rn_op_def_t* op = rn_op_find(rn_str(names[k][1]));
      const rn_attr_value_t* attrs = NULL;
      const rn_attr_t given[] = {{RN_STR("U"), {.type = RN_FLOAT}}, RN_ATTRS_END};
      if (!op) continue;
      RN_RETURN_IF_ERROR(rn_ir_make_attrs(p->ir, op, node, given, &attrs));
      const rn_kernel_def_t* kernel = rn_kernel_find(op, attrs, NULL, p->device);
      if (!kernel) continue;
      node->op = op;
      node->attrs = attrs;
      node->kernel = kernel;
      p->paint[n] = cached_paint(p, op);
    }
  }
  return RN_OK;
}

// Whether vertex |v| is a float that the device can also compute in 16 bits. Without memory: no.
bool rn_paint_can_convert(rn_painter_t* p, int32_t v) {
  const rn_type_vertex_t* vertex = &p->graph.vertices[v];
  if (p->support[v]) return p->support[v] == 1;
  p->support[v] = 2;
  if (vertex->type != RN_FLOAT || vertex->attr < 0 || !p->is_open[vertex->node]) return false;
  const rn_ir_node_t* node = rn_ir_node(p->ir, vertex->node);
  const rn_attr_def_t* def = &node->op->attrs[vertex->attr];
  if (def->allowed_count && !rn_dtypes_has(def->allowed_set, p->type)) return false;
  p->chosen[v] = true;
  const rn_attr_value_t* attrs = NULL;
  rn_status_t status = rn_paint_attrs(p, vertex->node, p->chosen, &attrs);
  p->chosen[v] = false;
  bool can = rn_ok(status) && (rn_ir_is_control_flow(node->op->role) ||
                               rn_kernel_find(node->op, attrs, NULL, p->device));
  rn_status_free(status);
  if (can) p->support[v] = 1;
  return can;
}

static rn_paint_t paint_at(const rn_painter_t* p, int32_t v) {
  return p->paint[p->graph.vertices[v].node];
}

static bool is_clear(void* self, int32_t v) { return paint_at(self, v) == RN_PAINT_CLEAR; }

// Leads on to an op on the infer or deny list, and is not denied yet.
static bool may_deny(void* self, int32_t v) {
  const rn_painter_t* p = self;
  return p->marks[v] && !p->deny[v];
}

static rn_status_t spread_deny(rn_painter_t* p) {
  if (p->lists.forces_all) return RN_OK;
  bool* denied = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)p->graph.count + 1, &denied));
  for (int32_t v = 0; v < p->graph.count; ++v) {
    p->marks[v] = paint_at(p, v) == RN_PAINT_DENY || paint_at(p, v) == RN_PAINT_INFER;
    denied[v] = paint_at(p, v) == RN_PAINT_DENY && !p->deny[v];
  }
  RN_RETURN_IF_ERROR(rn_type_spread(&p->graph, RN_TYPE_SOURCES, is_clear, p, p->marks));
  RN_RETURN_IF_ERROR(rn_type_spread(&p->graph, RN_TYPE_READERS, may_deny, p, denied));
  for (int32_t v = 0; v < p->graph.count; ++v) p->deny[v] |= denied[v];
  return RN_OK;
}

static bool may_follow_allow(void* self, int32_t v) {
  rn_painter_t* p = self;
  rn_paint_t paint = paint_at(p, v);
  return (paint == RN_PAINT_CLEAR || paint == RN_PAINT_INFER) && !p->deny[v] &&
         rn_paint_can_convert(p, v);
}

static bool is_marked(void* self, int32_t v) { return ((const rn_painter_t*)self)->marks[v]; }

static bool may_force(const rn_ir_node_t* node) {
  return rn_ir_is_pure(node) && !rn_ir_is_op(node, "SoftmaxCrossEntropyWithLogits");
}

// Ops on the allow list, and what lies between them.
static rn_status_t allow_between(rn_painter_t* p) {
  for (int32_t v = 0; v < p->graph.count; ++v) {
    const rn_ir_node_t* node = rn_ir_node(p->ir, p->graph.vertices[v].node);
    bool is_asked = paint_at(p, v) == RN_PAINT_ALLOW || (p->lists.forces_all && may_force(node));
    p->marks[v] = p->allow[v] = is_asked && rn_paint_can_convert(p, v);
  }
  RN_RETURN_IF_ERROR(rn_type_spread(&p->graph, RN_TYPE_READERS, may_follow_allow, p, p->marks));
  return rn_type_spread(&p->graph, RN_TYPE_SOURCES, is_marked, p, p->allow);
}

// Whether |v| reads an allowed value and no denied one.
static bool follows_allow(const rn_painter_t* p, int32_t v) {
  bool follows = false;
  for (int32_t e = p->graph.from.starts[v]; e < p->graph.from.starts[v + 1]; ++e) {
    int32_t source = p->graph.from.items[e];
    if (p->deny[source]) return false;
    follows |= p->allow[source];
  }
  return follows;
}

static rn_status_t allow_after(rn_painter_t* p) {
  int32_t *order = NULL, count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(p->ir, &order, &count));
  for (int32_t i = 0; i < count; ++i)
    for (int32_t v = p->graph.first[order[i]]; v < p->graph.first[order[i] + 1]; ++v)
      if (paint_at(p, v) == RN_PAINT_INFER && !p->deny[v] && follows_allow(p, v) &&
          rn_paint_can_convert(p, v))
        p->allow[v] = true;
  return RN_OK;
}

// Whether the node's value is a reference variable's, read by an Identity and maybe carried into
// loops.
static bool reads_reference(const rn_ir_t* ir, const rn_ir_node_t* node) {
  while (rn_ir_is_role(node, RN_ROLE_ENTER)) node = rn_ir_node(ir, node->inputs[0].node);
  if (!rn_ir_is_role(node, RN_ROLE_IDENTITY)) return false;
  const rn_ir_node_t* source = rn_ir_node(ir, node->inputs[0].node);
  return rn_dtype_is_ref(source->types[node->inputs[0].output]);
}

static bool may_spread_allow(void* self, int32_t v) {
  rn_painter_t* p = self;
  return paint_at(p, v) == RN_PAINT_CLEAR && !p->deny[v] && rn_paint_can_convert(p, v) &&
         !reads_reference(p->ir, rn_ir_node(p->ir, p->graph.vertices[v].node));
}

// Types that could be converted one by one, but not together, stay as they are.
static rn_status_t check_kernels(rn_painter_t* p) {
  for (size_t n = 0; n < p->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &p->ir->nodes.items[n];
    int32_t begin = p->graph.first[n], end = p->graph.first[n + 1], count = 0;
    for (int32_t v = begin; v < end; ++v) count += p->allow[v];
    if (count < 2 || rn_ir_is_control_flow(node->op->role)) continue;
    const rn_attr_value_t* attrs = NULL;
    RN_RETURN_IF_ERROR(rn_paint_attrs(p, (int32_t)n, p->allow, &attrs));
    if (rn_kernel_find(node->op, attrs, NULL, p->device)) continue;
    for (int32_t v = begin; v < end; ++v) p->allow[v] = false;
  }
  return RN_OK;
}

// What enters a loop, is merged and goes into the next iteration has one type.
static void match_loops(rn_painter_t* p) {
  for (size_t n = 0; n < p->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &p->ir->nodes.items[n];
    if (node->is_removed || !rn_ir_is_role(node, RN_ROLE_MERGE)) continue;
    bool is_loop = false, is_allowed = p->allow[rn_type_of_output(&p->graph, (int32_t)n, 0)];
    for (int32_t i = 0; i < node->input_count; ++i) {
      rn_ir_edge_t from = node->inputs[i];
      is_loop |= rn_ir_is_back_edge(p->ir, node, i);
      is_allowed &= p->allow[rn_type_of_output(&p->graph, from.node, from.output)];
    }
    if (!is_loop || is_allowed) continue;
    p->allow[rn_type_of_output(&p->graph, (int32_t)n, 0)] = false;
    for (int32_t i = 0; i < node->input_count; ++i)
      p->allow[rn_type_of_output(&p->graph, node->inputs[i].node, node->inputs[i].output)] = false;
  }
}

// A Cast to float whose readers all want 16 bits makes 16 bits at once.
static void allow_casts(rn_painter_t* p) {
  for (size_t n = 0; n < p->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &p->ir->nodes.items[n];
    if (node->is_removed || !rn_ir_is_op(node, "Cast")) continue;
    int32_t v = rn_type_of_output(&p->graph, (int32_t)n, 0);
    bool is_allowed = p->graph.to.starts[v] < p->graph.to.starts[v + 1];
    for (int32_t e = p->graph.to.starts[v]; e < p->graph.to.starts[v + 1]; ++e)
      is_allowed &= p->allow[p->graph.to.items[e]];
    if (is_allowed && rn_paint_can_convert(p, v)) p->allow[v] = true;
  }
}

static rn_status_t paint(rn_painter_t* p) {
  RN_RETURN_IF_ERROR(rn_paint_find_lists(p));
  RN_RETURN_IF_ERROR(spread_deny(p));
  RN_RETURN_IF_ERROR(allow_between(p));
  rn_paint_match_lists(p);
  RN_RETURN_IF_ERROR(allow_after(p));
  RN_RETURN_IF_ERROR(rn_type_spread(&p->graph, RN_TYPE_BOTH, may_spread_allow, p, p->allow));
  RN_RETURN_IF_ERROR(check_kernels(p));
  rn_paint_match_lists(p);
  match_loops(p);
  allow_casts(p);
  return RN_OK;
}

static rn_status_t make_arrays(rn_painter_t* p) {
  rn_arena_t* arena = &p->ir->arena;
  size_t vertices = (size_t)p->graph.count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, vertices, &p->support));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, vertices, &p->allow));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, vertices, &p->deny));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, vertices, &p->marks));
  return RN_ARENA_ARRAY(arena, vertices, &p->chosen);
}

static bool has_allowed_op(const rn_painter_t* p) {
  for (size_t n = 0; n < p->ir->nodes.count; ++n)
    if (p->is_open[n] && (p->paint[n] == RN_PAINT_ALLOW || p->lists.forces_all)) return true;
  return false;
}

// Converts the nodes on devices of one type.
static rn_status_t convert(rn_painter_t* p) {
  size_t nodes = p->ir->nodes.count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, nodes, &p->paint));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, nodes, &p->is_open));
  read_nodes(p);
  if (!has_allowed_op(p)) return RN_OK;
  RN_RETURN_IF_ERROR(modernize(p));
  RN_RETURN_IF_ERROR(rn_type_graph_create(p->ir, &p->graph));
  RN_RETURN_IF_ERROR(make_arrays(p));
  RN_RETURN_IF_ERROR(paint(p));
  return rn_paint_rewrite(p);
}

rn_status_t rn_pass_mixed_precision(rn_ir_t* ir, const rn_precision_t* precision,
                                    const rn_env_t* env) {
  rn_painter_t ways[] = {
      {.ir = ir, .device = "GPU", .type = precision->gpu},
      {.ir = ir, .device = "CPU", .type = precision->cpu, .emulates = precision->emulates_cpu},
  };
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    if (!ways[i].type) continue;
    bool is_cpu = strcmp(ways[i].device, "CPU") == 0;
    rn_status_t status = rn_paint_lists_init(is_cpu && ways[i].type == RN_BFLOAT16, &ways[i].lists);
    if (rn_ok(status)) {
      RN_RETURN_IF_ERROR(convert(&ways[i]));
      continue;
    }
    rn_log(env, RN_LOG_WARNING, "auto_mixed_precision graph optimizer FAILED: %s",
           rn_status_message(status));
    rn_status_free(status);
  }
  return RN_OK;
}
