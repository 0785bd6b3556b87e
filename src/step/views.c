// Strided views: see views.h.
#include "step/views.h"

#define MOST_FIXED 4

// A value by the dimensions of the tensor that it is part of.
typedef struct view_path_t {
  rn_ir_edge_t tensor;
  int rank;
  int dims[RN_VIEW_RANK];  // of the tensor, by dimension of the value
  int fixed[MOST_FIXED];   // dimensions of the tensor that the value lacks,
  int64_t at[MOST_FIXED];  // and its place along each
  int fixed_count;
} view_path_t;

static rn_shape_t shape_of(const rn_ir_t* ir, rn_ir_edge_t edge) {
  return rn_ir_node(ir, edge.node)->shapes[edge.output];
}

static bool is_known(const rn_ir_t* ir, rn_ir_edge_t edge) {
  if (edge.node < 0) return false;
  rn_shape_t shape = shape_of(ir, edge);
  return rn_shape_is_full(shape) && shape.rank >= 0 && shape.rank <= RN_VIEW_RANK &&
         !rn_dtype_is_ref(rn_ir_node(ir, edge.node)->types[edge.output]);
}

static bool begin(const rn_ir_t* ir, rn_ir_edge_t edge, view_path_t* path) {
  if (!is_known(ir, edge)) return false;
  *path = (view_path_t){.tensor = edge, .rank = shape_of(ir, edge).rank};
  for (int d = 0; d < path->rank; ++d) path->dims[d] = d;
  return true;
}

static bool end(const rn_ir_t* ir, const view_path_t* path, rn_ir_view_t* out) {
  rn_shape_t shape = shape_of(ir, path->tensor);
  int64_t steps[RN_VIEW_RANK], step = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    steps[d] = step;
    step *= shape.dims[d];
  }
  *out = (rn_ir_view_t){.tensor = path->tensor, .rank = path->rank};
  for (int d = 0; d < path->rank; ++d) out->steps[d] = steps[path->dims[d]];
  for (int i = 0; i < path->fixed_count; ++i) out->offset += path->at[i] * steps[path->fixed[i]];
  return true;
}

// The permutation of a Transpose; false if it is not known.
static bool permutation(const rn_ir_t* ir, const rn_ir_node_t* node, int* out) {
  if (!rn_ir_is_op(node, "Transpose") || node->control_count) return false;
  const rn_tensor_t* perm = rn_ir_node(ir, node->inputs[1].node)->constant;
  if (!perm || node->inputs[1].output || perm->count > RN_VIEW_RANK ||
      perm->count != shape_of(ir, node->inputs[0]).rank)
    return false;
  bool is_used[RN_VIEW_RANK] = {false};
  for (int64_t d = 0; d < perm->count; ++d) {
    int64_t to =
        perm->dtype == RN_INT32 ? RN_DATA(perm, const int32_t)[d] : RN_DATA(perm, const int64_t)[d];
    if (to < 0) to += perm->count;
    if (to < 0 || to >= perm->count || is_used[to]) return false;
    is_used[to] = true;
    out[d] = (int)to;
  }
  return true;
}

static void permute(view_path_t* path, const int* to) {
  for (int d = 0; d < path->rank; ++d) path->dims[d] = to[path->dims[d]];
  for (int i = 0; i < path->fixed_count; ++i) path->fixed[i] = to[path->fixed[i]];
}

// The tensor has one more dimension, |axis|, along which the value is at |at|.
static bool insert(view_path_t* path, int64_t axis, int rank, int64_t at) {
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || rank > RN_VIEW_RANK || path->fixed_count == MOST_FIXED)
    return false;
  for (int d = 0; d < path->rank; ++d) path->dims[d] += path->dims[d] >= axis;
  for (int i = 0; i < path->fixed_count; ++i) path->fixed[i] += path->fixed[i] >= axis;
  path->fixed[path->fixed_count] = (int)axis;
  path->at[path->fixed_count++] = at;
  return true;
}

static bool go_back(const rn_ir_t* ir, view_path_t* path) {
  const rn_ir_node_t* node = rn_ir_node(ir, path->tensor.node);
  int to[RN_VIEW_RANK];
  if (node->feed >= 0 || node->control_count || node->input_count < 1 ||
      !is_known(ir, node->inputs[0]))
    return false;
  if (permutation(ir, node, to)) {
    permute(path, to);
  } else {
    const rn_attr_value_t* axis = rn_ir_attr(node, RN_STR("axis"));
    if (!rn_ir_is_op(node, "Unpack") ||
        !insert(path, axis->i, shape_of(ir, node->inputs[0]).rank, path->tensor.output))
      return false;
  }
  path->tensor = node->inputs[0];
  return true;
}

bool rn_ir_view_of(const rn_ir_t* ir, rn_ir_edge_t edge, rn_ir_view_t* out) {
  view_path_t path;
  if (!begin(ir, edge, &path)) return false;
  while (go_back(ir, &path)) continue;
  return end(ir, &path, out);
}

static int32_t place_in(const rn_ir_node_t* node, int32_t source) {
  int32_t i = 0;
  while (i < node->input_count && node->inputs[i].node != source) ++i;
  return i;
}

static bool go_on(const rn_ir_t* ir, const rn_ir_uses_t* uses, bool packs, view_path_t* path) {
  const int32_t next = rn_ir_only_reader(&uses[path->tensor.node]);
  if (next < 0) return false;
  const rn_ir_node_t* node = rn_ir_node(ir, next);
  int to[RN_VIEW_RANK], from[RN_VIEW_RANK];
  if (node->is_removed || node->feed >= 0 || node->control_count || uses[next].waits > 0 ||
      node->device != rn_ir_node(ir, path->tensor.node)->device ||
      !is_known(ir, (rn_ir_edge_t){next, 0}))
    return false;
  if (permutation(ir, node, to) && node->inputs[0].node == path->tensor.node) {
    for (int d = 0; d < node->shapes[0].rank; ++d) from[to[d]] = d;
    permute(path, from);
  } else {
    const rn_attr_value_t* axis = rn_ir_attr(node, RN_STR("axis"));
    if (!packs || !rn_ir_is_op(node, "Pack") ||
        !insert(path, axis->i, node->shapes[0].rank, place_in(node, path->tensor.node)))
      return false;
  }
  path->tensor = (rn_ir_edge_t){next, 0};
  return true;
}

bool rn_ir_view_into(const rn_ir_t* ir, const rn_ir_uses_t* uses, int32_t node, bool packs,
                     rn_ir_view_t* out) {
  view_path_t path;
  if (!begin(ir, (rn_ir_edge_t){node, 0}, &path)) return false;
  while (go_on(ir, uses, packs, &path)) continue;
  return end(ir, &path, out);
}
