// Helpers of the builders: see words.h.
#include "train/words.h"

#include <stdio.h>

rn_shape_t rn_shape_of_edge(rn_edge_t edge) {
  if (!edge.node || edge.index < 0 || edge.index >= edge.node->output_count)
    return RN_SHAPE_UNKNOWN;
  return edge.node->outputs[edge.index].shape;
}

int64_t rn_dim_of_edge(rn_edge_t edge, int axis) {
  rn_shape_t shape = rn_shape_of_edge(edge);
  if (axis < 0) axis += shape.rank;
  return axis >= 0 && axis < shape.rank ? shape.dims[axis] : RN_UNKNOWN;
}

rn_edge_t rn_as(rn_scope_t* scope, rn_edge_t edge, int dtype) {
  if (!rn_scope_ok(scope) || !edge.node || rn_edge_dtype(edge) == dtype) return edge;
  return rn_Cast(scope, edge, dtype);
}

rn_edge_t rn_like(rn_scope_t* scope, rn_edge_t like, double value) {
  if (!rn_scope_ok(scope) || !like.node) return RN_NO_EDGE;
  return rn_const_scalar(scope, rn_edge_dtype(like), value);
}

rn_edge_t rn_axes(rn_scope_t* scope, const int32_t* axes, int count) {
  return rn_const_int32_list(scope, axes, count);
}

rn_edge_t rn_axis(rn_scope_t* scope, int32_t axis) { return rn_axes(scope, &axis, 1); }

rn_edge_t rn_all_axes(rn_scope_t* scope, rn_edge_t edge) {
  if (!rn_scope_ok(scope)) return RN_NO_EDGE;
  rn_shape_t shape = rn_shape_of_edge(edge);
  int32_t axes[RN_MAX_RANK];
  for (int i = 0; i < shape.rank; ++i) axes[i] = i;
  if (rn_shape_has_rank(shape)) return rn_axes(scope, axes, shape.rank);
  return rn_Range(scope, rn_const_int32(scope, 0), rn_Rank(scope, edge), rn_const_int32(scope, 1));
}

rn_edge_t rn_sum_all(rn_scope_t* scope, rn_edge_t edge) {
  return rn_Sum(scope, edge, rn_all_axes(scope, edge));
}

rn_edge_t rn_mean_all(rn_scope_t* scope, rn_edge_t edge) {
  return rn_Mean(scope, edge, rn_all_axes(scope, edge));
}

rn_edge_t rn_safe_div(rn_scope_t* scope, rn_edge_t x, rn_edge_t y) {
  return rn_DivNoNan(scope, x, y);
}

rn_edge_t rn_shape_const(rn_scope_t* scope, const int64_t* dims, int rank) {
  int32_t narrow[RN_MAX_RANK];
  int64_t count = rank;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] > INT32_MAX) return rn_const(scope, RN_INT64, &count, 1, dims);
    narrow[i] = (int32_t)dims[i];
  }
  return rn_const_int32_list(scope, narrow, rank);
}

rn_edge_t rn_element(rn_scope_t* scope, rn_edge_t vector, int i) {
  return rn_StridedSlice(scope, vector, rn_axis(scope, i), rn_axis(scope, i + 1), rn_axis(scope, 1),
                         .shrink_axis_mask = 1, .end_mask = i == -1);
}

rn_edge_t rn_rows(rn_scope_t* scope, rn_edge_t edge, int first, int limit) {
  return rn_StridedSlice(scope, edge, rn_axis(scope, first), rn_axis(scope, limit),
                         rn_axis(scope, 1), .end_mask = limit == 0);
}

rn_edge_t rn_run_shape(rn_scope_t* scope, rn_edge_t edge) {
  rn_shape_t shape = rn_shape_of_edge(edge);
  if (rn_shape_is_full(shape)) return rn_shape_const(scope, shape.dims, shape.rank);
  return rn_Shape(scope, edge);
}

rn_edge_t rn_reshape(rn_scope_t* scope, rn_edge_t edge, const int64_t* dims, int rank) {
  return rn_Reshape(scope, edge, rn_shape_const(scope, dims, rank));
}

rn_edge_t rn_after(rn_scope_t* scope, rn_edge_t edge, rn_node_t* node) {
  rn_op_begin(scope, "Identity");
  rn_op_input(scope, edge);
  if (node) rn_op_control(scope, node);
  return (rn_edge_t){rn_op_finish(scope), 0};
}

void rn_refuse(rn_scope_t* scope, const char* format, ...) {
  if (!rn_scope_ok(scope)) return;
  va_list args;
  va_start(args, format);
  rn_scope_fail(scope, rn_status_make_v(RN_CODE_INVALID_ARGUMENT, format, args));
  va_end(args);
}

bool rn_is_edge(rn_scope_t* scope, rn_edge_t edge, const char* who, const char* what) {
  if (!rn_scope_ok(scope)) return false;
  if (!edge.node)
    rn_refuse(scope, "%s: %s is missing", who, what);
  else if (edge.node->graph != rn_scope_graph(scope))
    rn_refuse(scope, "%s: %s '%s' belongs to another graph", who, what, edge.node->name.data);
  else if (edge.index < 0 || edge.index >= edge.node->output_count)
    rn_refuse(scope, "%s: '%s' has no output %d", who, edge.node->name.data, edge.index);
  return rn_scope_ok(scope);
}

rn_scope_t* rn_part(rn_scope_t* scope, const char* name, const char* fallback) {
  if (!rn_scope_ok(scope)) return NULL;
  return rn_scope_child(scope, name ? name : fallback);
}
