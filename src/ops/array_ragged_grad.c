// Gradient rules of ops on ragged tensors.
#include "ops/rules.h"

// The index of the value at each position of the output, -1 for padding; |rows| rows.
static rn_edge_t places_of(rn_grad_t* g, rn_edge_t dy, rn_edge_t rows) {
  const rn_attr_value_t* types = rn_grad_attr(g, "row_partition_types");
  rn_scope_t* s = g->scope;
  const char** names = NULL;
  rn_edge_t* parts = NULL;
  int count = g->input_count - 3;
  rn_status_t status = RN_ARENA_ARRAY(g->arena, (size_t)types->count, &names);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(g->arena, (size_t)count, &parts);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return RN_NO_EDGE;
  }
  for (int i = 0; i < types->count; ++i) names[i] = types->list_s[i].data;
  for (int i = 0; i < count; ++i) parts[i] = rn_grad_in(g, 3 + i);
  bool has_size = types->count > 0 && rn_str_is(types->list_s[0], "FIRST_DIM_SIZE");
  int64_t zero = 0, outer = types->count + (has_size ? 0 : 1);
  rn_edge_t shape = rn_Slice(s, rn_rule_shape(g, dy, RN_INT64), rn_rule_ints(g, RN_INT32, &zero, 1),
                             rn_rule_ints(g, RN_INT32, &outer, 1));
  rn_edge_t numbers = rn_Range(s, rn_rule_scalar(g, rows, 0), rows, rn_rule_scalar(g, rows, 1));
  return rn_RaggedTensorToTensor(s, shape, numbers, rn_rule_scalar(g, rows, -1), parts, count,
                                 names, types->count);
}

// Values get the gradients at their positions; the default value gets the sum over all others.
RN_RULE(ragged_to_tensor) {
  rn_scope_t* s = g->scope;
  rn_edge_t values = rn_grad_in(g, 1), fallback = rn_grad_in(g, 2), dy = rn_grad_dy(g, 0);
  int64_t zero = 0, one = 1, all = -1;
  rn_edge_t sizes = rn_rule_shape(g, values, RN_INT64), open = rn_rule_ints(g, RN_INT64, &all, 1);
  rn_edge_t rows = rn_GatherV2(s, sizes, rn_const_int32(s, 0), rn_const_int32(s, 0));
  rn_edge_t places = rn_Reshape(s, places_of(g, dy, rows), open);
  rn_edge_t inner =
      rn_Slice(s, sizes, rn_rule_ints(g, RN_INT32, &one, 1), rn_rule_ints(g, RN_INT32, &all, 1));
  rn_edge_t shape[] = {open, inner};
  dy = rn_Reshape(s, dy, rn_ConcatV2(s, shape, 2, rn_const_int32(s, 0)));
  // Negative ids belong to no segment.
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_UnsortedSegmentSum(s, dy, places, rows));
  if (rn_grad_wants(g, 2)) {
    rn_edge_t padding = rn_Less(s, places, rn_rule_scalar(g, places, 0));
    rn_edge_t sum = rn_Sum(s, rn_Select(s, padding, dy, rn_ZerosLike(s, dy)),
                           rn_rule_ints(g, RN_INT32, &zero, 1));
    rn_grad_to(g, 2, rn_rule_unbroadcast(g, sum, fallback, sum, 0));
  }
  return RN_OK;
}

RN_RULE(ragged_to_sparse) {
  int values = g->input_count - 1;
  rn_grad_to(g, values, rn_rule_reshape_like(g, rn_grad_dy(g, 1), rn_grad_in(g, values)));
  return RN_OK;
}

// Row i of the params has the values from split i to split i + 1 of all partitions together.
RN_RULE(ragged_gather) {
  rn_scope_t* s = g->scope;
  int values = g->input_count - 2;
  int64_t one = 1, all = -1;
  rn_edge_t splits = rn_grad_in(g, 0), params = rn_grad_in(g, values);
  for (int i = 1; i < values; ++i) splits = rn_Gather(s, rn_grad_in(g, i), splits);
  rn_edge_t ends =
      rn_Slice(s, splits, rn_rule_ints(g, RN_INT32, &one, 1), rn_rule_ints(g, RN_INT32, &all, 1));
  rn_edge_t rows = rn_Reshape(s, rn_grad_in(g, values + 1), rn_rule_ints(g, RN_INT32, &all, 1));
  rn_edge_t begin = rn_Gather(s, splits, rows), end = rn_Gather(s, ends, rows);
  rn_RaggedRange_out_t places = rn_RaggedRange(s, begin, end, rn_rule_scalar(g, splits, 1));
  rn_grad_slices_to(g, values,
                    rn_rule_rows(g, rn_grad_dy(g, g->output_count - 1), places.rt_dense_values,
                                 rn_rule_shape(g, params, RN_INT32), rn_grad_shape(g, params)));
  return RN_OK;
}

RN_RULE(ragged_to_variant) {
  int values = g->input_count - 1;
  rn_edge_t like = rn_grad_in(g, values);
  rn_edge_t splits = values ? rn_grad_in(g, 0) : rn_const_scalar(g->scope, RN_INT64, 0);
  rn_grad_to(
      g, values,
      rn_RaggedTensorToVariantGradient(g->scope, rn_grad_dy(g, 0), splits,
                                       rn_rule_shape(g, like, RN_INT32), rn_edge_dtype(like)));
  return RN_OK;
}

RN_RULE(ragged_from_variant) {
  int splits = g->output_count - 1, rank = rn_rule_rank(g, rn_grad_in(g, 0));
  rn_edge_t* parts = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)splits, &parts));
  for (int i = 0; i < splits; ++i) parts[i] = rn_grad_out(g, i);
  if (rank > 1)
    return rn_invalid_argument(
        "Unable to compute gradient: RaggedTensorToVariant can currently only generate 0D or 1D "
        "output.");
  bool batched = rank < 0 ? splits > 0 : rank == 1;
  rn_grad_to(g, 0,
             rn_RaggedTensorToVariant(g->scope, parts, splits, rn_grad_dy(g, splits), batched));
  return RN_OK;
}
