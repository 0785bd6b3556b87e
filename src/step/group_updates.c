// Groups the updates of an optimizer: many nodes that each change one variable become one node.
//
// Updates are alike if they have the same op, attributes, type and device, and read the same
// learning rate and other numbers. Alike updates with no path between them may become one node; it
// runs when all of their gradients are there, and what waits for one of them waits for all. So that
// the gradients do not all live until the end of the step, a group ends when they have MOST_BYTES.
//
// A gradient that is cast from 16 bits is read as it is: the Cast is left out.
//
// An update's depth is the largest number of alike updates on a path to it. Two of the same depth
// have no path between them, and paths between groups lead from smaller depths to larger ones.
#include <stdlib.h>

#include "device/device.h"
#include "framework/internal_ops.h"
#include "step/make.h"

#define MOST_UPDATES 128
#define MOST_BYTES ((int64_t)64 << 20)

// Ops with "Apply" or "ResourceApply" before the name.
static const char* const rules[] = {"AdaMax",
                                    "Adadelta",
                                    "Adagrad",
                                    "AdagradDA",
                                    "AdagradV2",
                                    "Adam",
                                    "AdamWithAmsgrad",
                                    "AddSign",
                                    "CenteredRMSProp",
                                    "Ftrl",
                                    "FtrlV2",
                                    "GradientDescent",
                                    "KerasMomentum",
                                    "Momentum",
                                    "PowerSign",
                                    "ProximalAdagrad",
                                    "ProximalGradientDescent",
                                    "RMSProp"};
static const char* const flags[] = {"use_nesterov", "multiply_linear_by_lr", "update_slots"};

typedef struct updates_member_t {
  int32_t node, depth;
  int32_t position;  // of the gradient in the topological order
} updates_member_t;

typedef struct group_updates_t {
  rn_ir_t* ir;
  int32_t *order, order_count;
  int32_t* kind;         // by node: the first update that it is like; -1 if it is no update
  bool* is_left;         // by node: a Cast that a group reads around
  int32_t *depth, *at;   // by node
  rn_ir_edge_t* became;  // by node: the output that replaces its output, or node -1
  updates_member_t* members;
} group_updates_t;

static bool is_update_op(const rn_op_def_t* op) {
  const char* name = op->name;
  if (strncmp(name, "Resource", 8) == 0) name += 8;
  if (strncmp(name, "Apply", 5) != 0) return false;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i)
    if (strcmp(name + 5, rules[i]) == 0) return true;
  return false;
}

static bool is_variable(const rn_op_def_t* op, int32_t i) {
  return op->inputs[i].is_ref || op->inputs[i].type == RN_RESOURCE;
}

static int32_t variable_count(const rn_op_def_t* op) {
  int32_t count = 0;
  while (count < op->input_count && is_variable(op, count)) ++count;
  return count;
}

static bool is_gradient(const rn_op_def_t* op, int32_t i) {
  return strcmp(op->inputs[i].name, "grad") == 0 || strcmp(op->inputs[i].name, "delta") == 0;
}

static int32_t gradient_of(const rn_op_def_t* op) {
  for (int32_t i = variable_count(op); i < op->input_count; ++i)
    if (is_gradient(op, i)) return i;
  return -1;
}

static rn_dtype_t type_of(const rn_ir_t* ir, rn_ir_edge_t edge) {
  return rn_ir_node(ir, edge.node)->types[edge.output];
}

// The gradient of an update, before a Cast from 16 bits to float.
static rn_ir_edge_t gradient_before(const rn_ir_t* ir, const rn_ir_node_t* node) {
  rn_ir_edge_t edge = node->inputs[gradient_of(node->op)];
  const rn_ir_node_t* cast = rn_ir_node(ir, edge.node);
  if (!rn_ir_is_op(cast, "Cast") || cast->control_count || cast->device != node->device ||
      cast->types[0] != RN_FLOAT)
    return edge;
  rn_dtype_t from = type_of(ir, cast->inputs[0]);
  return from == RN_HALF || from == RN_BFLOAT16 ? cast->inputs[0] : edge;
}

static bool is_cast(const rn_ir_t* ir, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(ir, index);
  return gradient_before(ir, node).node != node->inputs[gradient_of(node->op)].node;
}

// A gradient or a number that is the memory of a variable which the group may change does not go.
static bool is_update(const rn_ir_t* ir, const rn_ir_node_t* node) {
  if (node->is_removed || node->feed >= 0 || !node->kernel || !node->device ||
      node->device->is_host || !is_update_op(node->op) ||
      node->input_count != node->op->input_count || gradient_of(node->op) < 0)
    return false;
  for (int32_t i = variable_count(node->op); i < node->input_count; ++i) {
    if (!rn_dtype_is_ref(type_of(ir, node->inputs[i]))) continue;
    if (is_gradient(node->op, i)) return false;
    for (int32_t k = 0; is_variable(node->op, k); ++k)
      if (node->inputs[k].node == node->inputs[i].node) return false;
  }
  return true;
}

static bool are_alike(const rn_ir_node_t* a, const rn_ir_node_t* b) {
  if (a->op != b->op || a->device != b->device) return false;
  const rn_attr_value_t *x = rn_ir_attr(a, RN_STR("T")), *y = rn_ir_attr(b, RN_STR("T"));
  if (!x || !y || x->type != y->type) return false;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i)
    if (rn_ir_flag(a, flags[i]) != rn_ir_flag(b, flags[i])) return false;
  for (int32_t i = variable_count(a->op); i < a->input_count; ++i)
    if (!is_gradient(a->op, i) &&
        (a->inputs[i].node != b->inputs[i].node || a->inputs[i].output != b->inputs[i].output))
      return false;
  return true;
}

// Sets |kind| of all updates; |firsts| receives the first one of each kind.
static int32_t sort_by_kind(group_updates_t* g, int32_t* firsts) {
  int32_t count = 0;
  for (size_t n = 0; n < g->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &g->ir->nodes.items[n];
    if (!is_update(g->ir, node)) continue;
    int32_t k = 0;
    while (k < count && !are_alike(rn_ir_node(g->ir, firsts[k]), node)) ++k;
    if (k == count) firsts[count++] = (int32_t)n;
    g->kind[n] = firsts[k];
  }
  return count;
}

static int compare_members(const void* a, const void* b) {
  const updates_member_t *x = a, *y = b;
  if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
  return (x->position > y->position) - (x->position < y->position);
}

// Lists the updates of |kind| by depth, then in the order in which their gradients are computed.
static int32_t list_members(group_updates_t* g, int32_t kind) {
  int32_t count = 0;
  for (int32_t i = 0; i < g->order_count; ++i) g->at[g->order[i]] = i;
  for (int32_t i = 0; i < g->order_count; ++i) {
    int32_t index = g->order[i], depth = 0;
    const rn_ir_node_t* node = rn_ir_node(g->ir, index);
    for (int32_t e = 0; e < rn_ir_edge_count(node); ++e) {
      int32_t source = rn_ir_source(node, e);
      int32_t with = source < 0 ? 0 : g->depth[source] + (g->kind[source] == kind);
      if (with > depth) depth = with;
    }
    g->depth[index] = depth;
    if (g->kind[index] != kind) continue;
    int32_t gradient = node->inputs[gradient_of(node->op)].node;
    g->members[count++] = (updates_member_t){index, depth, g->at[gradient]};
  }
  qsort(g->members, (size_t)count, sizeof *g->members, compare_members);
  return count;
}

// The bytes of an update's gradient; 0 if its shape is not known.
static int64_t gradient_bytes(const rn_ir_t* ir, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(ir, index);
  rn_ir_edge_t edge = gradient_before(ir, node);
  rn_shape_t shape = rn_ir_node(ir, edge.node)->shapes[edge.output];
  int64_t count;
  size_t bytes;
  if (!rn_shape_is_full(shape) || !rn_shape_count(shape, &count)) return 0;
  return rn_mul_ok((size_t)count, rn_dtype_size(type_of(ir, edge)), &bytes) &&
                 bytes <= (size_t)MOST_BYTES
             ? (int64_t)bytes
             : MOST_BYTES + 1;
}

// The length of the group that starts with |members|.
static int32_t group_length(const rn_ir_t* ir, const updates_member_t* members, int32_t count) {
  int32_t length = 0;
  int64_t left = MOST_BYTES;
  while (length < count && length < MOST_UPDATES && members[length].depth == members[0].depth) {
    left -= gradient_bytes(ir, members[length].node);
    if (left < 0) break;
    ++length;
  }
  return length;
}

static rn_status_t make_attrs(rn_ir_t* ir, const rn_op_def_t* op, const updates_member_t* members,
                              int32_t count, const rn_attr_value_t** out) {
  const rn_ir_node_t* like = rn_ir_node(ir, members[0].node);
  const int32_t variables = variable_count(like->op), arguments = like->op->input_count;
  rn_str_t *names = NULL, *inputs = NULL;
  rn_dtype_t *types = NULL, *gradients = NULL;
  int32_t numbers = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count, &names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)arguments, &inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)arguments, &types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count, &gradients));
  for (int32_t m = 0; m < count; ++m) {
    names[m] = rn_ir_node(ir, members[m].node)->name;
    gradients[m] = type_of(ir, gradient_before(ir, rn_ir_node(ir, members[m].node)));
  }
  for (int32_t i = 0; i < arguments; ++i) {
    inputs[i] = rn_str(like->op->inputs[i].name);
    if (i >= variables && !is_gradient(like->op, i))
      types[numbers++] = rn_dtype_base(type_of(ir, like->inputs[i]));
  }
  const rn_attr_t given[] = {
      {RN_STR("V"), {.i = (int64_t)count * variables}},
      {RN_STR("N"), {.i = count}},
      {RN_STR("Tgradients"), {.count = count, .list_type = gradients}},
      {RN_STR("Tnumbers"), {.count = numbers, .list_type = types}},
      {RN_STR("update"), {.s = rn_str(like->op->name)}},
      {RN_STR("arguments"), {.count = arguments, .list_s = inputs}},
      {RN_STR("names"), {.count = count, .list_s = names}},
      RN_ATTRS_END,
  };
  return rn_ir_make_attrs(ir, op, like, given, out);
}

// Variables of all updates, gradients of all, then the numbers.
static void set_inputs(const rn_ir_t* ir, const updates_member_t* members, int32_t count,
                       rn_ir_edge_t* inputs) {
  const rn_ir_node_t* first = rn_ir_node(ir, members[0].node);
  const int32_t variables = variable_count(first->op), gradient = gradient_of(first->op);
  for (int32_t m = 0; m < count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(ir, members[m].node);
    memcpy(inputs + m * variables, node->inputs, (size_t)variables * sizeof *inputs);
    inputs[count * variables + m] = gradient_before(ir, node);
  }
  inputs += count * (variables + 1);
  for (int32_t i = variables; i < first->input_count; ++i)
    if (i != gradient) *inputs++ = first->inputs[i];
}

static rn_status_t make_node(rn_ir_t* ir, const rn_op_def_t* op, const updates_member_t* members,
                             int32_t count, rn_ir_node_t* out) {
  const rn_ir_node_t* like = rn_ir_node(ir, members[0].node);
  const int32_t variables = variable_count(like->op);
  const int32_t inputs = count * (variables + 1) + like->input_count - variables - 1;
  const bool has_outputs = like->output_count > 0;
  *out = (rn_ir_node_t){
      .op = op, .requested_device = like->requested_device, .device = like->device, .feed = -1};
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&ir->arena, &out->name, "%.*s/%s", RN_STR_ARGS(like->name), op->name));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(ir, inputs, has_outputs ? count : 0,
                                      has_outputs ? like->types[0] : RN_FLOAT, RN_SHAPE_SCALAR,
                                      out));
  for (int32_t m = 0; has_outputs && m < count; ++m)
    out->shapes[m] = rn_ir_node(ir, members[m].node)->shapes[0];
  set_inputs(ir, members, count, out->inputs);
  RN_RETURN_IF_ERROR(make_attrs(ir, op, members, count, &out->attrs));
  out->kernel = rn_kernel_find(op, out->attrs, NULL, out->device->type);
  return RN_OK;
}

static rn_status_t build(group_updates_t* g, const updates_member_t* members, int32_t count) {
  rn_ir_t* ir = g->ir;
  const rn_ir_node_t* first = rn_ir_node(ir, members[0].node);
  const rn_op_def_t* op = rn_op_apply_many(first->op->inputs[0].is_ref);
  rn_ir_node_t made;
  int32_t index = -1;
  if (!op) return RN_OK;
  RN_RETURN_IF_ERROR(make_node(ir, op, members, count, &made));
  if (!made.kernel) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_add(ir, &made, &index));
  for (int32_t m = 0; m < count; ++m) {
    rn_ir_node_t* node = rn_ir_node(ir, members[m].node);
    if (is_cast(ir, members[m].node)) g->is_left[node->inputs[gradient_of(node->op)].node] = true;
    node->is_removed = true;
    g->became[members[m].node] = (rn_ir_edge_t){index, m};
    for (int32_t i = 0; i < node->control_count; ++i)
      RN_RETURN_IF_ERROR(rn_ir_add_control(ir, index, node->controls[i]));
  }
  return RN_OK;
}

// The node that runs instead of |index|; nodes that were added since are their own.
static int32_t now(const group_updates_t* g, int32_t index, int32_t before) {
  return index < 0 || index >= before || g->became[index].node < 0 ? index : g->became[index].node;
}

// Leads all edges from members to their groups. Control edges are not repeated.
static void redirect(group_updates_t* g, int32_t before) {
  rn_ir_t* ir = g->ir;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    for (int32_t i = 0; i < node->input_count; ++i)
      if (now(g, node->inputs[i].node, before) != node->inputs[i].node)
        node->inputs[i] = g->became[node->inputs[i].node];
    int32_t kept = 0;
    for (int32_t i = 0; i < node->control_count; ++i) {
      int32_t control = now(g, node->controls[i], before), k = 0;
      while (control != node->controls[i] && k < kept && node->controls[k] != control) ++k;
      if (control == node->controls[i] || k == kept) node->controls[kept++] = control;
    }
    node->control_count = kept;
  }
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (now(g, ir->fetches[i].node, before) != ir->fetches[i].node)
      ir->fetches[i] = g->became[ir->fetches[i].node];
  for (int32_t i = 0; i < ir->target_count; ++i) ir->targets[i] = now(g, ir->targets[i], before);
}

static rn_status_t group_kind(group_updates_t* g, int32_t kind) {
  const int32_t before = (int32_t)g->ir->nodes.count;
  RN_RETURN_IF_ERROR(rn_ir_order(g->ir, &g->order, &g->order_count));
  size_t size = (size_t)before;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&g->ir->arena, size, &g->depth));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&g->ir->arena, size, &g->at));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&g->ir->arena, size, &g->became));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&g->ir->arena, size, &g->members));
  for (size_t n = 0; n < size; ++n) g->became[n].node = -1;
  int32_t count = list_members(g, kind);
  for (int32_t first = 0; first < count;) {
    int32_t length = group_length(g->ir, g->members + first, count - first);
    if (length == 0) length = 1;
    if (length > 1 || is_cast(g->ir, g->members[first].node))
      RN_RETURN_IF_ERROR(build(g, g->members + first, length));
    first += length;
  }
  redirect(g, before);
  return RN_OK;
}

// Removes the Casts that nothing reads any more.
static rn_status_t remove_casts(group_updates_t* g) {
  rn_ir_uses_t* uses = NULL;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(g->ir, &uses));
  for (size_t n = 0; n < g->ir->nodes.count; ++n) {
    rn_ir_node_t* node = &g->ir->nodes.items[n];
    if (!node->is_removed && g->is_left[n] && rn_ir_use_count(&uses[n]) == 0)
      node->is_removed = true;
  }
  return RN_OK;
}

rn_status_t rn_pass_group_updates(rn_ir_t* ir) {
  // Of updates in branches and loops, some may run without the others.
  if (!rn_ir_uses_accelerator(ir) || !rn_ir_may_merge(ir)) return RN_OK;
  group_updates_t g = {.ir = ir};
  int32_t* firsts = NULL;
  size_t nodes = ir->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, 2 * nodes, &g.kind));  // room for what is added
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, 2 * nodes, &g.is_left));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, nodes, &firsts));
  for (size_t n = 0; n < 2 * nodes; ++n) g.kind[n] = -1;
  int32_t kinds = sort_by_kind(&g, firsts);
  for (int32_t k = 0; k < kinds; ++k) RN_RETURN_IF_ERROR(group_kind(&g, firsts[k]));
  return remove_casts(&g);
}
