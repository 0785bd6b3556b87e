// Gradients that are rows of a tensor (slices): conversion to dense, sums, scaling, merging of
// repeated indices.
#include "graph/build.h"
#include "ops/rules.h"
#include "runnel/gradients.h"

// The first element of a shape vector.
static rn_edge_t row_count(rn_scope_t* scope, rn_edge_t dense_shape) {
  if (!dense_shape.node) return RN_NO_EDGE;
  const rn_partial_t* known = &dense_shape.node->partial;
  bool is_known = dense_shape.index == 0 && known->is_known && known->count > 0 &&
                  known->values[0] >= 0 && known->values[0] <= INT32_MAX;
  if (is_known) return rn_const_int32(scope, (int32_t)known->values[0]);
  rn_edge_t zero = rn_const_int32_list(scope, (const int32_t[]){0}, 1);
  rn_edge_t one = rn_const_int32_list(scope, (const int32_t[]){1}, 1);
  rn_edge_t first = rn_StridedSlice(scope, dense_shape, zero, one, one, .shrink_axis_mask = 1);
  return rn_edge_dtype(dense_shape) == RN_INT32 ? first : rn_Cast(scope, first, RN_INT32);
}

RN_API rn_edge_t rn_gradient_to_dense(rn_scope_t* scope, rn_gradient_t gradient) {
  if (!rn_gradient_is_slices(gradient)) return gradient.dense;
  return rn_UnsortedSegmentSum(scope, gradient.values, gradient.indices,
                               row_count(scope, gradient.dense_shape));
}

RN_API rn_gradient_t rn_gradient_scale(rn_scope_t* scope, rn_gradient_t gradient,
                                       rn_edge_t factor) {
  rn_edge_t* part = rn_gradient_is_slices(gradient) ? &gradient.values : &gradient.dense;
  if (part->node) *part = rn_Mul(scope, *part, factor);
  return gradient;
}

RN_API rn_gradient_t rn_gradient_unique(rn_scope_t* scope, rn_gradient_t gradient) {
  if (!rn_gradient_is_slices(gradient)) return gradient;
  rn_Unique_out_t unique = rn_Unique(scope, gradient.indices);
  gradient.values =
      rn_UnsortedSegmentSum(scope, gradient.values, unique.idx, rn_Size(scope, unique.y));
  gradient.indices = unique.y;
  return gradient;
}

// Concatenates slices; indices of different types become int64.
static rn_gradient_t join_slices(rn_scope_t* scope, const rn_gradient_t* gradients, int count,
                                 rn_edge_t* parts) {
  rn_gradient_t sum = gradients[0];
  rn_edge_t zero = rn_const_int32(scope, 0);
  for (int i = 0; i < count; ++i) parts[i] = gradients[i].values;
  sum.values = rn_ConcatV2(scope, parts, count, zero);
  int dtype = rn_edge_dtype(gradients[0].indices);
  for (int i = 1; i < count; ++i)
    if (rn_edge_dtype(gradients[i].indices) != dtype) dtype = RN_INT64;
  for (int i = 0; i < count; ++i) {
    parts[i] = gradients[i].indices;
    if (rn_edge_dtype(parts[i]) != dtype) parts[i] = rn_Cast(scope, parts[i], dtype);
  }
  sum.indices = rn_ConcatV2(scope, parts, count, zero);
  return sum;
}

static rn_gradient_t add_all(rn_scope_t* scope, rn_gradient_t* all, int count, rn_edge_t* parts) {
  bool is_sparse = true;
  for (int i = 0; i < count; ++i) is_sparse &= rn_gradient_is_slices(all[i]);
  if (is_sparse) return join_slices(scope, all, count, parts);
  for (int i = 0; i < count; ++i) parts[i] = rn_gradient_to_dense(scope, all[i]);
  return (rn_gradient_t){.dense = rn_AddN(scope, parts, count)};
}

RN_API rn_gradient_t rn_gradient_sum(rn_scope_t* scope, const rn_gradient_t* gradients, int count) {
  rn_gradient_t none = {0}, few[8], *all = few;
  rn_edge_t few_parts[8], *parts = few_parts;
  rn_graph_t* graph = rn_scope_graph(scope);
  if (!graph || count <= 0) return none;
  size_t room = 8;
  rn_status_t status = RN_OK;
  if (count > 8) {
    room = (size_t)count;
    all = NULL, parts = NULL;
    status = RN_NEW_ARRAY(graph->allocator, room, &all);
    if (rn_ok(status)) status = RN_NEW_ARRAY(graph->allocator, room, &parts);
  }
  rn_gradient_t sum = none;
  if (rn_ok(status)) {
    int present = 0;
    for (int i = 0; i < count; ++i)
      if (!rn_gradient_is_none(gradients[i])) all[present++] = gradients[i];
    if (present > 1) sum = add_all(scope, all, present, parts);
    if (present == 1) sum = all[0];
  } else {
    rn_scope_fail(scope, status);
  }
  if (all != few) RN_FREE_ARRAY(graph->allocator, all, room);
  if (parts != few_parts) RN_FREE_ARRAY(graph->allocator, parts, room);
  return sum;
}
