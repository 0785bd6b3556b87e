// Gradient rules of dealing rows out and putting them together again.
#include "ops/rules.h"

// The numbers of the rows are dealt out like the rows; they say where the gradients belong.
RN_RULE(dynamic_partition) {
  rn_edge_t data = rn_grad_in(g, 0), partitions = rn_grad_in(g, 1);
  rn_edge_t *dys = NULL, *at = NULL;
  RN_RETURN_IF_ERROR(rn_rule_all_dy(g, &dys));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)g->output_count, &at));
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  rn_edge_t numbers = rn_Range(g->scope, zero, rn_Size(g->scope, partitions), one);
  if (rn_rule_rank(g, partitions) != 1)
    numbers = rn_Reshape(g->scope, numbers, rn_rule_shape(g, partitions, RN_INT32));
  rn_edges_t parts = rn_DynamicPartition(g->scope, numbers, partitions, g->output_count);
  for (int i = 0; i < g->output_count; ++i) at[i] = rn_edge_at(parts, i);
  rn_edge_t rows = rn_DynamicStitch(g->scope, at, g->output_count, dys, g->output_count);
  rn_grad_to(g, 0, rn_Reshape(g->scope, rows, rn_rule_shape(g, data, RN_INT32)));
  return RN_OK;
}

RN_RULE(dynamic_stitch) {
  int count = g->input_count / 2;
  rn_edge_t dy = rn_grad_dy(g, 0), zero = rn_const_int32(g->scope, 0);
  for (int i = 0; i < count; ++i) {
    if (!rn_grad_wants(g, count + i)) continue;
    rn_grad_to(g, count + i, rn_GatherV2(g->scope, dy, rn_grad_in(g, i), zero));
  }
  return RN_OK;
}
