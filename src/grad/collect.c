// Computes gradients of invariants without accumulating a sum in the loop.
//
// The gradient of a matmul's weight is a' b in each iteration, and its sum over all iterations is
// one matmul A' B of all a and all b stacked vertically. So the backward loop stores a and b in
// TensorArrays, and one matmul after the loop computes the sum. That avoids reading and writing a
// sum as large as the weight in every iteration. Row sums for a bias work the same way.
#include "grad/backward.h"
#include "runnel/ops.h"

static bool attr_is(const rn_node_t* node, const char* name, bool value) {
  const rn_attr_value_t* attr = rn_node_attr(node, rn_str(name));
  return attr && attr->kind == RN_ATTR_BOOL && attr->b == value;
}

static bool is_product(const rn_node_t* node) {
  return strcmp(node->op->name, "MatMul") == 0 && attr_is(node, "transpose_a", true) &&
         attr_is(node, "transpose_b", false);
}

static bool is_sum_of_rows(const rn_node_t* node) {
  const rn_attr_value_t* format = rn_node_attr(node, RN_STR("data_format"));
  return strcmp(node->op->name, "BiasAddGrad") == 0 && format && rn_str_is(format->s, "NHWC");
}

// Whether |value| is a matrix that every iteration of the body computes.
static bool can_be_kept(rn_level_t* level, rn_edge_t value) {
  int rank = value.node->outputs[value.index].shape.rank;
  return (size_t)value.node->id >= level->walk->node_count && (rank == 2 || rank == RN_UNKNOWN) &&
         value.node->op->role != RN_ROLE_ENTER && rn_guard_of(level, value) == NULL;
}

// The number of rows may be unknown. The number of columns must be known, because there may be no
// iteration to tell it.
static rn_status_t keep(rn_level_t* outer, rn_backward_t* b, rn_collect_t* collect, rn_edge_t value,
                        int64_t columns) {
  for (size_t i = 0; i < collect->values.count; ++i) {
    rn_edge_t known = collect->values.items[i].value;
    if (known.node == value.node && known.index == value.index) return RN_OK;
  }
  int64_t shape[2] = {RN_UNKNOWN, columns};
  rn_TensorArrayV3_out_t array = rn_TensorArrayV3(
      outer->scope, b->forward.exit, rn_edge_dtype(value), .element_shape = RN_SET_SHAPE(shape, 2));
  rn_collected_sum_t one = {value, array.handle, columns};
  return rn_vec_push(&collect->values, outer->walk->graph->allocator, one);
}

rn_status_t rn_collect_try(rn_level_t* outer, rn_backward_t* b, rn_collect_t* collect,
                           rn_edge_t term, rn_shape_t shape, rn_gradient_t* out, bool* out_taken) {
  rn_allocator_t allocator = outer->walk->graph->allocator;
  rn_node_t* node = term.node;
  *out_taken = false;
  if (!rn_shape_is_full(shape) || shape.rank != node->input_count) return RN_OK;
  if (!is_product(node) && !is_sum_of_rows(node)) return RN_OK;
  for (int32_t i = 0; i < node->input_count; ++i)
    if (!can_be_kept(&b->level, node->inputs[i])) return RN_OK;
  for (int32_t i = 0; i < node->input_count; ++i)
    RN_RETURN_IF_ERROR(keep(outer, b, collect, node->inputs[i], shape.dims[i]));
  RN_RETURN_IF_ERROR(rn_vec_push(&collect->terms, allocator, term));
  RN_RETURN_IF_ERROR(rn_vec_push(&collect->sums, allocator, out));
  *out_taken = true;
  return rn_walk_status(outer);
}

// All iterations of |value|, stacked vertically.
static rn_edge_t all_of(rn_level_t* outer, const rn_collect_t* collect, rn_edge_t value,
                        rn_edge_t flow, rn_edge_t* joined) {
  size_t i = 0;
  while (collect->values.items[i].value.node != value.node ||
         collect->values.items[i].value.index != value.index)
    ++i;
  if (joined[i].node) return joined[i];
  int64_t columns = collect->values.items[i].columns;
  joined[i] = rn_TensorArrayConcatV3(outer->scope, collect->values.items[i].handle, flow,
                                     rn_edge_dtype(value),
                                     .element_shape_except0 = RN_SET_SHAPE(&columns, 1))
                  .value;
  return joined[i];
}

rn_status_t rn_collect_finish(rn_level_t* outer, rn_backward_t* b, rn_collect_t* collect,
                              rn_edge_t index) {
  rn_level_t* level = &b->level;
  if (collect->terms.count == 0) return RN_OK;
  rn_edge_t start = {collect->values.items[0].handle.node, 1};  // the flow of the first array
  rn_carried_t flow = rn_backward_carry(outer, b, start);
  rn_edge_t after = flow.in;
  for (size_t i = 0; i < collect->values.count; ++i) {
    const rn_collected_sum_t* one = &collect->values.items[i];
    rn_edge_t handle = rn_backward_hold(outer, b, one->handle);
    after = rn_TensorArrayWriteV3(b->here, handle, index, one->value, after);
  }
  RN_RETURN_IF_ERROR(rn_backward_close(level, b->here, flow.merge, after));
  rn_edge_t* joined = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&outer->walk->arena, collect->values.count, &joined));
  for (size_t i = 0; i < collect->terms.count; ++i) {
    const rn_node_t* term = collect->terms.items[i].node;
    rn_edge_t a = all_of(outer, collect, term->inputs[0], flow.out, joined);
    if (is_product(term)) {
      rn_edge_t all = all_of(outer, collect, term->inputs[1], flow.out, joined);
      collect->sums.items[i]->dense = rn_MatMul(outer->scope, a, all, .transpose_a = true);
    } else {
      collect->sums.items[i]->dense = rn_BiasAddGrad(outer->scope, a);
    }
  }
  return rn_walk_status(outer);
}

void rn_collect_clear(rn_collect_t* collect, rn_allocator_t allocator) {
  rn_vec_free(&collect->values, allocator);
  rn_vec_free(&collect->terms, allocator);
  rn_vec_free(&collect->sums, allocator);
}
