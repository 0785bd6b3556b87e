// Runs shape inference again: with the actual feed shapes and the constants that folding found,
// more is known than when the graph was built.
#include "step/ir.h"

typedef struct shapes_t {
  rn_ir_t* ir;
  rn_partial_t* partials;      // by node: of output 0
  rn_handle_data_t** handles;  // by node: of its outputs
  // For graphs with loops, NULL otherwise. |known|, by node: the shapes to start each round from.
  // |assumed|, by Merge node: the shape assumed for the value of later iterations; |is_assumed|:
  // whether it is set.
  rn_shape_t** known;
  rn_shape_t* assumed;
  bool* is_assumed;
} shapes_t;

// The more specific of two shapes that both hold.
static rn_shape_t better(rn_shape_t known, rn_shape_t found) {
  if (!rn_shape_has_rank(found) || rn_shape_is_full(known)) return known;
  if (!rn_shape_has_rank(known) || rn_shape_is_full(found)) return found;
  int known_count = 0, found_count = 0;
  for (int d = 0; d < known.rank; ++d) known_count += known.dims[d] >= 0;
  for (int d = 0; d < found.rank; ++d) found_count += found.dims[d] >= 0;
  return found_count >= known_count ? found : known;
}

rn_status_t rn_ir_common_shape(rn_arena_t* arena, rn_shape_t a, rn_shape_t b, rn_shape_t* out) {
  *out = RN_SHAPE_UNKNOWN;
  if (!rn_shape_has_rank(a) || a.rank != b.rank) return RN_OK;
  int64_t* dims = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)a.rank, &dims));
  for (int d = 0; d < a.rank; ++d) dims[d] = a.dims[d] == b.dims[d] ? a.dims[d] : RN_UNKNOWN;
  *out = (rn_shape_t){a.rank, dims};
  return RN_OK;
}

// The shape assumed for a loop variable; at first, the shape that it enters with.
static rn_shape_t what_comes_round(const shapes_t* s, const rn_ir_node_t* merge) {
  size_t index = (size_t)(merge - s->ir->nodes.items);
  if (s->is_assumed[index]) return s->assumed[index];
  for (int32_t i = 0; i < merge->input_count; ++i) {
    rn_ir_edge_t edge = merge->inputs[i];
    if (!rn_ir_is_back_edge(s->ir, merge, i))
      return s->ir->nodes.items[edge.node].shapes[edge.output];
  }
  return RN_SHAPE_UNKNOWN;
}

rn_status_t rn_ir_shape_ctx(const rn_ir_t* ir, const rn_ir_node_t* node, rn_arena_t* arena,
                            rn_shape_arrays_t* arrays, rn_shape_ctx_t* out) {
  RN_RETURN_IF_ERROR(rn_shape_arrays_init(arena, node->input_count, node->output_count, arrays));
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_ir_edge_t edge = node->inputs[i];
    const rn_ir_node_t* source = rn_ir_node(ir, edge.node);
    arrays->inputs[i] = source->shapes[edge.output];
    arrays->types[i] = source->types[edge.output];
    if (edge.output == 0) arrays->values[i] = source->constant;
  }
  *out = (rn_shape_ctx_t){.op = node->op,
                          .attrs = node->attrs,
                          .arena = arena,
                          .graph_version = ir->producer,
                          .input_count = node->input_count,
                          .output_count = node->output_count};
  rn_shape_set_arrays(out, arrays);
  return RN_OK;
}

// Adds what this pass knows of the inputs besides their nodes.
static void gather(const shapes_t* s, const rn_ir_node_t* node, rn_shape_arrays_t* arrays) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_ir_edge_t edge = node->inputs[i];
    if (s->known && rn_ir_is_back_edge(s->ir, node, i))
      arrays->inputs[i] = what_comes_round(s, node);
    if (edge.output == 0) arrays->partials[i] = s->partials[edge.node];
    if (s->handles[edge.node]) arrays->handles[i] = s->handles[edge.node][edge.output];
  }
}

// Shapes that ops leave open for other devices' kernels: no kernel of ours has anything to keep in
// the third reserve space of a batch normalization.
static void know_reserves(const rn_ir_node_t* node, rn_shape_t* outputs) {
  static const int64_t none = 0;
  if (rn_ir_is_op(node, "FusedBatchNormV3") && !rn_shape_has_rank(outputs[5]))
    outputs[5] = (rn_shape_t){1, &none};
}

static rn_status_t infer_node(shapes_t* s, int32_t index) {
  rn_ir_t* ir = s->ir;
  rn_ir_node_t* node = &ir->nodes.items[index];
  if (node->constant) return rn_partial_of_tensor(&ir->arena, node->constant, &s->partials[index]);
  if (node->feed >= 0 || node->is_reshaped || node->output_count == 0) return RN_OK;
  rn_shape_arrays_t arrays;
  rn_shape_ctx_t ctx;
  RN_RETURN_IF_ERROR(rn_ir_shape_ctx(ir, node, &ir->arena, &arrays, &ctx));
  s->handles[index] = arrays.output_handles;
  gather(s, node, &arrays);
  rn_status_t status = rn_shape_infer(&ctx);
  // An Enter's shape function cannot know later iterations; here the Merge accounts for them.
  if (s->known && node->op->role == RN_ROLE_ENTER) arrays.outputs[0] = arrays.inputs[0];
  if (!rn_ok(status)) {  // the kernel reports impossible shapes when it runs
    rn_status_free(status);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_ir_infer_call(ir, node, arrays.inputs, arrays.outputs));
  know_reserves(node, arrays.outputs);
  for (int32_t i = 0; i < node->output_count; ++i)
    node->shapes[i] = better(node->shapes[i], arrays.outputs[i]);
  s->partials[index] = ctx.output_partial;
  if (!ctx.output_partial.is_known && node->op->role == RN_ROLE_IDENTITY)
    s->partials[index] = arrays.partials[0];
  return RN_OK;
}

// Whether the next iteration's value of Merge |index| has the assumed shape. If not, weakens the
// assumption.
static rn_status_t check_merge(shapes_t* s, int32_t index, bool* inout_holds) {
  const rn_ir_node_t* node = &s->ir->nodes.items[index];
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (!rn_ir_is_back_edge(s->ir, node, i)) continue;
    rn_shape_t round = s->ir->nodes.items[node->inputs[i].node].shapes[node->inputs[i].output];
    rn_shape_t common;
    RN_RETURN_IF_ERROR(rn_ir_common_shape(&s->ir->arena, node->shapes[0], round, &common));
    if (rn_shape_eq(common, node->shapes[0])) continue;
    *inout_holds = false;
    s->assumed[index] = common;
    s->is_assumed[index] = true;
  }
  return RN_OK;
}

// The stack whose handle |edge| carries; -1 if it is not a handle or the stack cannot be told.
static int32_t stack_of(const shapes_t* s, rn_ir_edge_t edge) {
  for (;;) {
    const rn_ir_node_t* node = &s->ir->nodes.items[edge.node];
    if (node->feed >= 0) return -1;
    if (strcmp(node->op->name, "StackV2") == 0) return edge.node;
    if (node->op->role != RN_ROLE_ENTER && node->op->role != RN_ROLE_IDENTITY) return -1;
    edge = node->inputs[0];
  }
}

typedef enum infer_shapes_stack_t { STACK_EMPTY = 0, STACK_KNOWN, STACK_OPEN } infer_shapes_stack_t;

// Records in |shapes|, by stack, the shape that |node| pushes.
static rn_status_t note_stacks(const shapes_t* s, const rn_ir_node_t* node,
                               infer_shapes_stack_t* stacks, rn_shape_t* shapes) {
  bool passes_on = node->op->role == RN_ROLE_ENTER || node->op->role == RN_ROLE_IDENTITY ||
                   strcmp(node->op->name, "StackPopV2") == 0 ||
                   strcmp(node->op->name, "StackCloseV2") == 0;
  for (int32_t i = 0; i < node->input_count && !passes_on; ++i) {
    const rn_ir_node_t* source = &s->ir->nodes.items[node->inputs[i].node];
    if (source->types[node->inputs[i].output] != RN_RESOURCE) continue;
    int32_t stack = stack_of(s, node->inputs[i]);
    if (stack < 0) continue;
    if (strcmp(node->op->name, "StackPushV2") != 0) {
      stacks[stack] = STACK_OPEN;
      continue;
    }
    rn_ir_edge_t value = node->inputs[1];
    rn_shape_t shape = s->ir->nodes.items[value.node].shapes[value.output];
    if (stacks[stack] == STACK_EMPTY)
      shapes[stack] = shape;
    else
      RN_RETURN_IF_ERROR(rn_ir_common_shape(&s->ir->arena, shapes[stack], shape, &shapes[stack]));
    if (stacks[stack] == STACK_EMPTY) stacks[stack] = STACK_KNOWN;
  }
  return RN_OK;
}

// Gives values popped from a stack the shape of the values pushed there. Sets |*out_is_new| if a
// shape became more specific.
static rn_status_t know_stacks(shapes_t* s, const int32_t* order, int32_t count, bool* out_is_new) {
  rn_ir_t* ir = s->ir;
  infer_shapes_stack_t* stacks = NULL;
  rn_shape_t* shapes = NULL;
  *out_is_new = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &stacks));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &shapes));
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = &ir->nodes.items[order[i]];
    // A push to an unknown stack could be to any of them.
    if (strcmp(node->op->name, "StackPushV2") == 0 &&
        (node->feed >= 0 || stack_of(s, node->inputs[0]) < 0))
      return RN_OK;
    RN_RETURN_IF_ERROR(note_stacks(s, node, stacks, shapes));
  }
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = &ir->nodes.items[order[i]];
    if (node->feed >= 0 || strcmp(node->op->name, "StackPopV2") != 0) continue;
    int32_t stack = stack_of(s, node->inputs[0]);
    if (stack < 0 || stacks[stack] != STACK_KNOWN) continue;
    rn_shape_t* known = &s->known[order[i]][0];
    rn_shape_t found = better(*known, shapes[stack]);
    *out_is_new |= !rn_shape_eq(found, *known);
    *known = found;
  }
  return RN_OK;
}

// For loops, starts from the assumption that variables keep the shapes they enter with. While a
// later iteration contradicts that, weakens the assumption and infers everything again. This ends
// because a shape can only lose each dimension once, then its rank.
static rn_status_t infer_round(shapes_t* s, const int32_t* order, int32_t count) {
  rn_ir_t* ir = s->ir;
  for (bool holds = false; !holds;) {
    holds = true;
    memset(s->partials, 0, ir->nodes.count * sizeof *s->partials);
    for (int32_t i = 0; i < count; ++i) {
      rn_ir_node_t* node = &ir->nodes.items[order[i]];
      if (node->output_count)
        memcpy(node->shapes, s->known[order[i]], (size_t)node->output_count * sizeof *node->shapes);
    }
    for (int32_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(infer_node(s, order[i]));
    for (int32_t i = 0; i < count; ++i)
      if (ir->nodes.items[order[i]].op->role == RN_ROLE_MERGE)
        RN_RETURN_IF_ERROR(check_merge(s, order[i], &holds));
  }
  return RN_OK;
}

// Higher-order gradients pop values that were computed from values popped from other stacks.
#define STACK_ROUNDS 4

static rn_status_t infer_loops(shapes_t* s, const int32_t* order, int32_t count) {
  rn_ir_t* ir = s->ir;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &s->known));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &s->assumed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &s->is_assumed));
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* node = &ir->nodes.items[order[i]];
    s->known[order[i]] = node->shapes;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)node->output_count, &node->shapes));
  }
  bool is_new = true;
  for (int round = 0; is_new && round < STACK_ROUNDS; ++round) {
    // Start the assumptions about loop variables afresh, because more is known now.
    memset(s->is_assumed, 0, ir->nodes.count * sizeof *s->is_assumed);
    RN_RETURN_IF_ERROR(infer_round(s, order, count));
    RN_RETURN_IF_ERROR(know_stacks(s, order, count, &is_new));
  }
  return RN_OK;
}

rn_status_t rn_pass_infer_shapes(rn_ir_t* ir) {
  shapes_t s = {.ir = ir};
  int32_t* order = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &s.partials));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &s.handles));
  bool has_loops = false;
  for (int32_t i = 0; i < count; ++i)
    has_loops |= ir->nodes.items[order[i]].op->role == RN_ROLE_NEXT_ITERATION;
  if (has_loops) return infer_loops(&s, order, count);
  for (int32_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(infer_node(&s, order[i]));
  return RN_OK;
}

bool rn_ir_shape_implies(rn_shape_t shape, rn_shape_t other) {
  if (!rn_shape_has_rank(other)) return true;
  if (shape.rank != other.rank) return false;
  for (int d = 0; d < other.rank; ++d)
    if (other.dims[d] >= 0 && shape.dims[d] != other.dims[d]) return false;
  return true;
}

rn_status_t rn_ir_forget_shapes(rn_ir_t* ir, bool* inout_is_open) {
  int32_t* order = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  for (bool is_new = true; is_new;) {  // repeats only for loop back edges
    is_new = false;
    for (int32_t i = 0; i < count; ++i) {
      rn_ir_node_t* node = &ir->nodes.items[order[i]];
      bool reads_open = false;
      for (int32_t k = 0; k < node->input_count; ++k)
        reads_open |= inout_is_open[node->inputs[k].node];
      if (!reads_open || inout_is_open[order[i]]) continue;
      is_new = inout_is_open[order[i]] = true;
      for (int32_t o = 0; o < node->output_count; ++o) node->shapes[o] = RN_SHAPE_UNKNOWN;
    }
  }
  return rn_pass_infer_shapes(ir);
}

rn_status_t rn_ir_set_feed_shapes(rn_ir_t* ir, const rn_shape_t* shapes) {
  bool* is_stale = NULL;
  bool is_new = false, is_any_stale = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &is_stale));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->feed < 0) continue;
    rn_shape_t shape = shapes ? shapes[node->feed] : RN_SHAPE_UNKNOWN;
    is_new |= !rn_shape_eq(shape, node->shapes[0]);
    is_any_stale |= is_stale[n] = !rn_ir_shape_implies(shape, node->shapes[0]);
    RN_RETURN_IF_ERROR(rn_shape_copy(&ir->arena, shape, &node->shapes[0]));
  }
  if (is_any_stale) return rn_ir_forget_shapes(ir, is_stale);
  return is_new ? rn_pass_infer_shapes(ir) : RN_OK;
}
