// Gradient rules of dynamic partition, dynamic stitch and tensor arrays.
#include <stdio.h>

#include "ops/rules.h"

// Gradients of parts that are slices: renumbers their rows for the whole.
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

// Partitions the row numbers like the rows, to find where each gradient belongs.
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

// Gradients of the whole that are slices: stitches the part number and row number of each row like
// the rows themselves, then distributes the slices to the parts. If several parts set the same row,
// the last one gets its gradient.
static rn_status_t stitch_slices(rn_grad_t* g, rn_gradient_t rows) {
  int count = g->input_count / 2;
  rn_edge_t *parts = NULL, *places = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)count, &parts));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)count, &places));
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  for (int i = 0; i < count; ++i) {
    rn_edge_t size = rn_Size(g->scope, rn_grad_in(g, i));
    places[i] = rn_Range(g->scope, zero, size, one);
    parts[i] = rn_Fill(g->scope, rn_Reshape(g->scope, size, rn_rule_range(g, 1, 2, 1)),
                       rn_const_int32(g->scope, i));
  }
  rn_edge_t part = rn_DynamicStitch(g->scope, g->inputs, count, parts, count);
  rn_edge_t place = rn_DynamicStitch(g->scope, g->inputs, count, places, count);
  part = rn_GatherV2(g->scope, part, rows.indices, zero);
  place = rn_GatherV2(g->scope, place, rows.indices, zero);
  rn_edges_t values = rn_DynamicPartition(g->scope, rows.values, part, count);
  rn_edges_t indices = rn_DynamicPartition(g->scope, place, part, count);
  for (int i = 0; values.node && indices.node && i < count; ++i) {
    rn_gradient_t d = {.values = rn_edge_at(values, i),
                       .indices = rn_edge_at(indices, i),
                       .dense_shape = rn_rule_shape(g, rn_grad_in(g, count + i), RN_INT32)};
    if (rn_grad_wants(g, count + i)) rn_grad_slices_to(g, count + i, d);
  }
  return RN_OK;
}

RN_RULE(dynamic_stitch) {
  rn_gradient_t rows;
  bool is_flat = true;
  for (int i = 0; i < g->input_count / 2; ++i) is_flat &= rn_rule_rank(g, rn_grad_in(g, i)) == 1;
  if (rn_grad_slices(g, 0, &rows) && is_flat) return stitch_slices(g, rows);
  int count = g->input_count / 2;
  rn_edge_t dy = rn_grad_dy(g, 0), zero = rn_const_int32(g->scope, 0);
  for (int i = 0; i < count; ++i) {
    if (!rn_grad_wants(g, count + i)) continue;
    rn_grad_to(g, count + i, rn_GatherV2(g->scope, dy, rn_grad_in(g, i), zero));
  }
  return RN_OK;
}

// Tensor arrays. A second array collects the gradients of an array's elements; the name of the
// gradient request identifies it. Flow values order reads after writes.

typedef struct array_t {
  rn_edge_t handle, flow;
  const char* version;
} array_t;

static array_t array_of_gradients(rn_grad_t* g, rn_edge_t flow) {
  rn_str_t op = rn_str(rn_grad_op(g));
  bool is_third = rn_str_ends_with(op, RN_STR("V3"));
  array_t array = {.version = is_third ? "V3" : rn_str_ends_with(op, RN_STR("V2")) ? "V2" : ""};
  if (is_third) {
    rn_TensorArrayGradV3_out_t out =
        rn_TensorArrayGradV3(g->scope, rn_grad_in(g, 0), flow, g->source);
    array.handle = out.grad_handle;
    array.flow = out.flow_out;
    return array;
  }
  // The older versions have no flow output, so readers of the array need a control edge.
  rn_op_begin(g->scope, *array.version ? "TensorArrayGradV2" : "TensorArrayGrad");
  rn_op_input(g->scope, rn_grad_in(g, 0));
  rn_op_input(g->scope, flow);
  rn_op_attr_string(g->scope, "source", g->source);
  array.handle = (rn_edge_t){rn_op_finish(g->scope), 0};
  rn_op_begin(g->scope, "Identity");
  rn_op_input(g->scope, flow);
  if (array.handle.node) rn_op_control(g->scope, array.handle.node);
  array.flow = (rn_edge_t){rn_op_finish(g->scope), 0};
  return array;
}

// Starts a TensorArray|verb| node with |first| and |second| (RN_NO_EDGE for none) between handle
// and flow.
static void begin_on(rn_grad_t* g, const array_t* array, const char* verb, rn_edge_t first,
                     rn_edge_t second) {
  char op[32];
  snprintf(op, sizeof op, "TensorArray%s%s", verb, array->version);
  rn_op_begin(g->scope, op);
  rn_op_input(g->scope, array->handle);
  if (first.node) rn_op_input(g->scope, first);
  if (second.node) rn_op_input(g->scope, second);
  rn_op_input(g->scope, array->flow);
}

static rn_edge_t write_to(rn_grad_t* g, const array_t* array, const char* verb, rn_edge_t first,
                          rn_edge_t second) {
  begin_on(g, array, verb, first, second);
  return (rn_edge_t){rn_op_finish(g->scope), 0};
}

// The gradient of |input|, which was written: rows of its type and, but for their number, shape.
static rn_status_t read_back(rn_grad_t* g, int input, const char* verb, rn_edge_t at,
                             const char* shape_attr) {
  rn_edge_t dflow = rn_grad_dy(g, 0), like = rn_grad_in(g, input);
  array_t array = array_of_gradients(g, dflow);
  if (rn_grad_wants(g, input)) {
    rn_shape_t shape = rn_grad_shape(g, like);
    begin_on(g, &array, verb, at, RN_NO_EDGE);
    rn_op_attr_type(g->scope, "dtype", rn_edge_dtype(like));
    if (shape_attr && shape.rank > 0)  // there may be no element to tell
      rn_op_attr_shape(g->scope, shape_attr, shape.dims + 1, shape.rank - 1);
    rn_grad_to(g, input, (rn_edge_t){rn_op_finish(g->scope), 0});
  }
  rn_grad_to(g, 3, dflow);
  return RN_OK;
}

RN_RULE(tensor_array_read) {
  array_t array = array_of_gradients(g, rn_grad_in(g, 2));
  rn_grad_to(g, 2, write_to(g, &array, "Write", rn_grad_in(g, 1), rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(tensor_array_write) { return read_back(g, 2, "Read", rn_grad_in(g, 1), NULL); }

RN_RULE(tensor_array_gather) {
  array_t array = array_of_gradients(g, rn_grad_in(g, 2));
  rn_grad_to(g, 2, write_to(g, &array, "Scatter", rn_grad_in(g, 1), rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(tensor_array_scatter) {
  return read_back(g, 2, "Gather", rn_grad_in(g, 1), "element_shape");
}

RN_RULE(tensor_array_concat) {
  array_t array = array_of_gradients(g, rn_grad_in(g, 1));
  rn_grad_to(g, 1, write_to(g, &array, "Split", rn_grad_dy(g, 0), rn_grad_out(g, 1)));
  return RN_OK;
}

RN_RULE(tensor_array_split) {
  return read_back(g, 1, "Concat", RN_NO_EDGE, "element_shape_except0");
}

// The op returns another handle, but the same flow.
RN_RULE(tensor_array_gradient) {
  rn_grad_to(g, 1, rn_grad_dy(g, 1));
  return RN_OK;
}
