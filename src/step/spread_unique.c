// Lets a device update rows of variables without counting them. Gradients of rows (IndexedSlices)
// are summed up by row before they update a variable:
//
//   y, idx = Unique(indices)
//   rows   = UnsortedSegmentSum(gradients, idx, Size(y))
//   SparseApply*(var, …, rows, y) or ScatterAdd(var, y, f(rows)) …
//
// How many distinct indices there are only the device knows, and the host would wait for it. So y
// gets one element per element of |indices|: a distinct index stays at its first place, and the
// others are -1. The rows in their places are sums of nothing, which no update on a device reads.
// All shapes are then known when the plan is made.
#include "device/device.h"
#include "step/make.h"

#define MOST_NODES 64  // of a group; larger ones are left alone

typedef struct spread_t {
  rn_ir_t* ir;
  const rn_op_def_t* spread;
  const rn_ir_uses_t* uses;
  // The group at hand: what is computed from the sums, and from rows that are gathered at y.
  int32_t unique, size;
  int32_t members[MOST_NODES];
  int32_t count;
} spread_t;

static bool starts_with(const rn_ir_node_t* node, const char* prefix) {
  return rn_str_starts_with(rn_str(node->op->name), rn_str(prefix));
}

// Whether the node updates the rows that its argument "indices" names.
static bool updates_rows(const rn_ir_node_t* node) {
  if (node->feed >= 0 || !node->kernel) return false;
  return starts_with(node, "ResourceSparseApply") || starts_with(node, "SparseApply") ||
         (starts_with(node, "ResourceScatter") && !starts_with(node, "ResourceScatterNd"));
}

// The number of the argument |name|; -1 if there is none. These ops have no lists of inputs.
static int32_t argument(const rn_ir_node_t* node, const char* name) {
  for (int32_t i = 0; i < node->input_count; ++i)
    if (strcmp(node->op->inputs[i].name, name) == 0) return i;
  return -1;
}

static bool is_edge(rn_ir_edge_t edge, int32_t node, int32_t output) {
  return edge.node == node && edge.output == output;
}

static bool is_member(const spread_t* s, int32_t node) {
  for (int32_t i = 0; i < s->count; ++i)
    if (s->members[i] == node) return true;
  return false;
}

static bool add_member(spread_t* s, int32_t node) {
  if (is_member(s, node)) return true;
  if (s->count == MOST_NODES || s->uses[node].fetches) return false;
  s->members[s->count++] = node;
  return true;
}

// Whether the node computes each element of its result from the same elements of two operands, or
// of one.
static bool is_elementwise(const rn_ir_node_t* node) {
  return rn_ir_takes_numbers(node) && rn_ir_is_pure(node);
}

static bool is_unary(const rn_ir_node_t* node) {
  return rn_ir_is_op(node, "Square") || rn_ir_is_op(node, "Sqrt") || rn_ir_is_op(node, "Neg") ||
         rn_ir_is_op(node, "Cast") || rn_ir_is_op(node, "Rsqrt");
}

// Whether |reader| may read rows in input |i|.
static bool may_read_rows(spread_t* s, int32_t reader, int32_t i) {
  const rn_ir_node_t* node = rn_ir_node(s->ir, reader);
  if (updates_rows(node)) {
    int32_t indices = argument(node, "indices");
    return indices >= 0 && indices != i && is_edge(node->inputs[indices], s->unique, 0);
  }
  return (is_elementwise(node) || is_unary(node)) && add_member(s, reader);
}

// Whether |reader| may read y in input |i|.
static bool may_read_indices(spread_t* s, int32_t reader, int32_t i) {
  const rn_ir_node_t* node = rn_ir_node(s->ir, reader);
  if (updates_rows(node)) return argument(node, "indices") == i;
  if (rn_ir_is_op(node, "ResourceGather")) return i == 1 && add_member(s, reader);
  if (!rn_ir_is_op(node, "Size") || s->size >= 0 || s->uses[reader].fetches) return false;
  s->size = reader;
  return true;
}

// Whether |reader| may read idx, or the number of distinct indices, in input |i|.
static bool may_sum(spread_t* s, int32_t reader, int32_t i) {
  const rn_ir_node_t* node = rn_ir_node(s->ir, reader);
  return rn_ir_is_op(node, "UnsortedSegmentSum") && i > 0 && s->size >= 0 &&
         is_edge(node->inputs[1], s->unique, 1) && is_edge(node->inputs[2], s->size, 0) &&
         add_member(s, reader);
}

typedef bool (*may_read_t)(spread_t* s, int32_t reader, int32_t i);

// Whether all inputs that read output |output| of |source| may.
static bool all_may(spread_t* s, int32_t source, int32_t output, may_read_t may) {
  for (int32_t n = 0; n < (int32_t)s->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(s->ir, n);
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i)
      if (is_edge(node->inputs[i], source, output) && !may(s, n, i)) return false;
  }
  return true;
}

// Whether other operands of the members are numbers: rows must meet rows.
static bool meets_numbers(const spread_t* s, int32_t member) {
  const rn_ir_node_t* node = rn_ir_node(s->ir, member);
  if (!is_elementwise(node)) return true;
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_shape_t shape = rn_ir_node(s->ir, node->inputs[i].node)->shapes[node->inputs[i].output];
    if (!is_member(s, node->inputs[i].node) && shape.rank != 0) return false;
  }
  return true;
}

static bool may_spread(spread_t* s, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(s->ir, index);
  if (node->is_removed || !rn_ir_is_op(node, "Unique") || !node->device || node->device->is_host ||
      node->control_count || s->uses[index].fetches || s->uses[index].waits)
    return false;
  rn_shape_t shape = rn_ir_node(s->ir, node->inputs[0].node)->shapes[node->inputs[0].output];
  if (!rn_shape_is_full(shape) || shape.rank != 1 || shape.dims[0] > INT32_MAX) return false;
  s->unique = index;
  s->size = -1;
  s->count = 0;
  if (!all_may(s, index, 0, may_read_indices) || s->size < 0) return false;
  if (!all_may(s, index, 1, may_sum) || !all_may(s, s->size, 0, may_sum)) return false;
  for (int32_t i = 0; i < s->count; ++i)
    if (!all_may(s, s->members[i], 0, may_read_rows)) return false;
  for (int32_t i = 0; i < s->count; ++i)
    if (!meets_numbers(s, s->members[i])) return false;
  return true;
}

// Forgets the shapes that follow from the number of distinct indices.
static void forget_shapes(spread_t* s) {
  for (int32_t i = 0; i < s->count; ++i) {
    rn_ir_node_t* node = rn_ir_node(s->ir, s->members[i]);
    for (int32_t o = 0; o < node->output_count; ++o) node->shapes[o] = RN_SHAPE_UNKNOWN;
  }
}

// Turns the node that counts the distinct indices into the constant |count|.
static rn_status_t fix_size(spread_t* s, int64_t count, bool* out_done) {
  rn_ir_node_t* size = rn_ir_node(s->ir, s->size);
  rn_ir_node_t constant = *size;
  rn_tensor_t value;
  *out_done = false;
  RN_RETURN_IF_ERROR(rn_tensor_create(s->ir->allocator, size->types[0], RN_SHAPE_SCALAR, &value));
  if (value.dtype == RN_INT32)
    *RN_DATA(&value, int32_t) = (int32_t)count;
  else
    *RN_DATA(&value, int64_t) = count;
  RN_RETURN_IF_ERROR(rn_ir_own_constant(s->ir, &value, &constant));
  constant.kernel = rn_kernel_find(constant.op, constant.attrs, NULL, constant.device->type);
  if (!constant.kernel) return RN_OK;
  *size = constant;
  *out_done = true;
  return RN_OK;
}

static rn_status_t spread(spread_t* s) {
  rn_ir_node_t* node = rn_ir_node(s->ir, s->unique);
  rn_shape_t shape = rn_ir_node(s->ir, node->inputs[0].node)->shapes[node->inputs[0].output];
  const rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(s->ir, s->spread, node, NULL, &attrs));
  const rn_kernel_def_t* kernel = rn_kernel_find(s->spread, attrs, NULL, node->device->type);
  bool is_fixed = false;
  if (!kernel) return RN_OK;
  RN_RETURN_IF_ERROR(fix_size(s, shape.dims[0], &is_fixed));
  if (!is_fixed) return RN_OK;
  node->op = s->spread;
  node->attrs = attrs;
  node->kernel = kernel;
  for (int32_t o = 0; o < 2; ++o)
    RN_RETURN_IF_ERROR(rn_shape_copy(&s->ir->arena, shape, &node->shapes[o]));
  forget_shapes(s);
  return RN_OK;
}

rn_status_t rn_pass_spread_unique(rn_ir_t* ir) {
  spread_t s = {.ir = ir, .spread = rn_op_find(RN_STR("_SpreadUnique"))};
  if (!s.spread || !rn_ir_uses_accelerator(ir)) return RN_OK;
  rn_ir_uses_t* uses = NULL;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &uses));
  s.uses = uses;
  bool spreads = false;
  for (int32_t n = 0, count = (int32_t)ir->nodes.count; n < count; ++n) {
    if (!may_spread(&s, n)) continue;
    RN_RETURN_IF_ERROR(spread(&s));
    spreads = true;
  }
  return spreads ? rn_pass_infer_shapes(ir) : RN_OK;
}
