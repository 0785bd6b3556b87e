// Gradient rules of dealing rows out and putting them together again.
#include "ops/rules.h"

// Slices of some of the parts: their rows are counted in the whole.
static rn_status_t partition_slices(rn_grad_t* g) {
  rn_edge_t data = rn_grad_in(g, 0), partitions = rn_grad_in(g, 1);
  rn_gradient_t* rows = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)g->output_count, &rows));
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  rn_edge_t numbers = rn_Range(g->scope, zero, rn_Size(g->scope, partitions), one);
  rn_edges_t parts = rn_DynamicPartition(g->scope, numbers, partitions, g->output_count);
  rn_edge_t shape = rn_rule_shape(g, data, RN_INT32);
  for (int i = 0; parts.node && i < g->output_count; ++i) {
    rn_edge_t at = rn_edge_at(parts, i);
    if (rn_grad_slices(g, i, &rows[i]))
      rows[i].indices = rn_GatherV2(g->scope, at, rows[i].indices, zero);
    else if (rn_grad_has_dy(g, i))
      rows[i] = (rn_gradient_t){.values = rn_grad_dy(g, i), .indices = at};
    rows[i].dense_shape = shape;
  }
  rn_grad_slices_to(g, 0, rn_gradient_sum(g->scope, rows, g->output_count));
  return RN_OK;
}

// The numbers of the rows are dealt out like the rows; they say where the gradients belong.
RN_RULE(dynamic_partition) {
  bool has_slices = false;
  for (int i = 0; i < g->output_count; ++i) has_slices |= rn_gradient_is_slices(g->dy[i]);
  if (has_slices && rn_rule_rank(g, rn_grad_in(g, 1)) == 1) return partition_slices(g);
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

// Tensor arrays. The gradients of an array's elements are collected in an array of their own; which
// one is found by the name of the question. Flows tell what has been written when.

static rn_TensorArrayGradV3_out_t array_of_gradients(rn_grad_t* g, rn_edge_t flow) {
  return rn_TensorArrayGradV3(g->scope, rn_grad_in(g, 0), flow, g->source);
}

RN_RULE(tensor_array_read) {
  rn_edge_t dy = rn_grad_dy(g, 0), index = rn_grad_in(g, 1);
  rn_TensorArrayGradV3_out_t array = array_of_gradients(g, rn_grad_in(g, 2));
  rn_grad_to(g, 2, rn_TensorArrayWriteV3(g->scope, array.grad_handle, index, dy, array.flow_out));
  return RN_OK;
}

RN_RULE(tensor_array_write) {
  rn_edge_t dflow = rn_grad_dy(g, 0), index = rn_grad_in(g, 1);
  rn_TensorArrayGradV3_out_t array = array_of_gradients(g, dflow);
  if (rn_grad_wants(g, 2))
    rn_grad_to(g, 2,
               rn_TensorArrayReadV3(g->scope, array.grad_handle, index, array.flow_out,
                                    rn_edge_dtype(rn_grad_in(g, 2))));
  rn_grad_to(g, 3, dflow);
  return RN_OK;
}

RN_RULE(tensor_array_gather) {
  rn_edge_t dy = rn_grad_dy(g, 0), indices = rn_grad_in(g, 1);
  rn_TensorArrayGradV3_out_t array = array_of_gradients(g, rn_grad_in(g, 2));
  rn_grad_to(g, 2,
             rn_TensorArrayScatterV3(g->scope, array.grad_handle, indices, dy, array.flow_out));
  return RN_OK;
}

RN_RULE(tensor_array_scatter) {
  rn_edge_t dflow = rn_grad_dy(g, 0), indices = rn_grad_in(g, 1), value = rn_grad_in(g, 2);
  rn_TensorArrayGradV3_out_t array = array_of_gradients(g, dflow);
  rn_shape_t shape = rn_grad_shape(g, value);
  rn_edge_t rows = RN_NO_EDGE;
  int dtype = rn_edge_dtype(value);
  if (rn_grad_wants(g, 2))
    rows =
        shape.rank > 0
            ? rn_TensorArrayGatherV3(g->scope, array.grad_handle, indices, array.flow_out, dtype,
                                     .element_shape = RN_SET_SHAPE(shape.dims + 1, shape.rank - 1))
            : rn_TensorArrayGatherV3(g->scope, array.grad_handle, indices, array.flow_out, dtype);
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, rows);
  rn_grad_to(g, 3, dflow);
  return RN_OK;
}

RN_RULE(tensor_array_concat) {
  rn_edge_t dy = rn_grad_dy(g, 0), lengths = rn_grad_out(g, 1);
  rn_TensorArrayGradV3_out_t array = array_of_gradients(g, rn_grad_in(g, 1));
  rn_grad_to(g, 1, rn_TensorArraySplitV3(g->scope, array.grad_handle, dy, lengths, array.flow_out));
  return RN_OK;
}

RN_RULE(tensor_array_split) {
  rn_edge_t dflow = rn_grad_dy(g, 0);
  rn_TensorArrayGradV3_out_t array = array_of_gradients(g, dflow);
  if (rn_grad_wants(g, 1))
    rn_grad_to(g, 1,
               rn_TensorArrayConcatV3(g->scope, array.grad_handle, array.flow_out,
                                      rn_edge_dtype(rn_grad_in(g, 1)))
                   .value);
  rn_grad_to(g, 3, dflow);
  return RN_OK;
}
