// Groups of matmuls by a common matrix: see matmul_groups.h.
#include "step/matmul_groups.h"

#include "framework/internal_ops.h"

static int compare_parts(const void* a, const void* b) {
  const rn_matmul_part_t *x = a, *y = b;
#define BY(field) \
  if (x->field != y->field) return x->field < y->field ? -1 : 1
  BY(matrix.node);
  BY(matrix.output);
  BY(range[0]);
  BY(range[1]);
  BY(node);
#undef BY
  return 0;
}

static bool are_alike(const rn_ir_t* ir, const rn_matmul_part_t* a, const rn_matmul_part_t* b) {
  return a->matrix.node == b->matrix.node && a->matrix.output == b->matrix.output &&
         a->range[0] == b->range[0] && a->range[1] == b->range[1] &&
         rn_ir_node(ir, a->node)->device == rn_ir_node(ir, b->node)->device;
}

rn_status_t rn_matmul_each_group(const rn_ir_t* ir, rn_matmul_parts_t* parts,
                                 rn_status_t (*visit)(void* pass, const rn_matmul_part_t* parts,
                                                      size_t count),
                                 void* pass) {
  const rn_matmul_part_t* items = parts->items;
  if (parts->count) qsort(parts->items, parts->count, sizeof *items, compare_parts);
  for (size_t i = 0, end; i < parts->count; i = end) {
    for (end = i + 1; end < parts->count && are_alike(ir, &items[i], &items[end]);) ++end;
    RN_RETURN_IF_ERROR(visit(pass, items + i, end - i));
  }
  return RN_OK;
}

rn_status_t rn_matmul_group_is_chain(rn_ir_t* ir, const rn_matmul_part_t* parts, size_t count,
                                     bool* out) {
  rn_arena_mark_t mark = rn_arena_mark(&ir->arena);
  bool* is_after = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &is_after));
  for (size_t i = 0; i < count; ++i) is_after[parts[i].node] = true;
  RN_RETURN_IF_ERROR(rn_ir_spread(ir, is_after));
  *out = false;
  for (size_t i = 0; i < count; ++i) *out |= is_after[parts[i].source];
  rn_arena_rewind(&ir->arena, mark);
  return RN_OK;
}

rn_status_t rn_matmul_make_rows(rn_ir_t* ir, const rn_ir_node_t* like, int64_t first, int64_t count,
                                int64_t columns, rn_ir_node_t* out) {
  const rn_attr_t given[] = {
      {RN_STR("first"), {.i = first}}, {RN_STR("count"), {.i = count}}, RN_ATTRS_END};
  const int64_t dims[] = {count, columns};
  return rn_ir_make_node(ir, rn_op_rows_of(), like, given, 1, (rn_shape_t){2, dims}, out);
}

rn_status_t rn_matmul_add_common(rn_ir_t* ir, const rn_ir_node_t* like, const rn_ir_edge_t* lefts,
                                 int32_t count, int64_t rows, int64_t depth, int32_t right,
                                 int64_t columns, int32_t* out) {
  const rn_attr_t given[] = {{RN_STR("N"), {.i = count}}, RN_ATTRS_END};
  const int64_t left_dims[] = {rows, depth}, dims[] = {rows, columns};
  rn_ir_node_t stack, product;
  int32_t stacked;
  *out = -1;
  RN_RETURN_IF_ERROR(rn_ir_make_node(ir, rn_op_stack_rows(), like, given, count,
                                     (rn_shape_t){2, left_dims}, &stack));
  if (!stack.kernel) return RN_OK;
  memcpy(stack.inputs, lefts, (size_t)count * sizeof *lefts);
  RN_RETURN_IF_ERROR(rn_ir_add(ir, &stack, &stacked));
  RN_RETURN_IF_ERROR(rn_ir_make_node(ir, like->op, like, NULL, 2, (rn_shape_t){2, dims}, &product));
  product.inputs[0] = (rn_ir_edge_t){stacked, 0};
  product.inputs[1] = (rn_ir_edge_t){right, 0};
  return rn_ir_add(ir, &product, out);
}

int32_t rn_matmul_bias_add(const rn_ir_t* ir, const rn_ir_uses_t* uses, int32_t product) {
  const rn_ir_node_t* like = rn_ir_node(ir, product);
  int32_t reader = rn_ir_only_reader(&uses[product]);
  if (reader < 0) return -1;
  const rn_ir_node_t* node = rn_ir_node(ir, reader);
  if (!rn_ir_is_op(node, "BiasAdd") || node->control_count > 0 || node->device != like->device ||
      node->inputs[0].node != product || node->inputs[1].node < 0)
    return -1;
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  const rn_ir_node_t* bias = rn_ir_node(ir, node->inputs[1].node);
  rn_shape_t shape = bias->shapes[node->inputs[1].output];
  bool fits = format && rn_str_is(format->s, "NHWC") && shape.rank == 1 &&
              shape.dims[0] == like->shapes[0].dims[1] &&
              bias->types[node->inputs[1].output] == like->types[0];
  return fits ? reader : -1;
}
