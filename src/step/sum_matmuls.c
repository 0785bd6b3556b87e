// Computes sums of matmuls, and gradient descent by them, without materialising each matmul.
//
// A weight that every time step of an unrolled RNN uses has one gradient per time step, and they
// are added: AddN(MatMul, MatMul, …), or, in a loop, AddV2(sum so far, MatMul). Often such a sum,
// or a single matmul, is only used to update the weight. The pass turns all of this into one node
// and keeps every bit: the node sums each matmul by itself and adds the results in AddN's order. If
// a left operand concatenates two matrices, such as input and state, the node reads those two
// instead.
#include "framework/internal_ops.h"
#include "step/make.h"

// Only matmuls up to this depth are fused. Deeper ones cost little more when materialised, and a
// separate matmul has faster code.
#define MAX_DEPTH 128
// The limit for descent by a single matmul, which also saves reading the result back.
#define MAX_DESCENT_DEPTH 1024
// A sum absorbs the sum before it up to this many terms, which bounds the copying.
#define MAX_TERMS 1024

typedef struct sum_matmuls_products_t {
  rn_ir_t* ir;
  const rn_op_def_t *product, *sum_of_products, *concat;
  rn_ir_uses_t* uses;  // by node
} sum_matmuls_products_t;

static bool is_matrix(const sum_matmuls_products_t* p, rn_ir_edge_t edge) {
  if (edge.node < 0) return false;
  rn_shape_t shape = rn_ir_node(p->ir, edge.node)->shapes[edge.output];
  return shape.rank == 2 && rn_shape_is_full(shape);
}

// Whether |edge| is a matmul that only |reader| reads and that the fused kernel handles: shallow, B
// not transposed, C not a vector.
static bool is_shallow_product(const sum_matmuls_products_t* p, rn_ir_edge_t edge,
                               const rn_ir_node_t* reader, int64_t max_depth) {
  if (edge.node < 0) return false;
  const rn_ir_node_t* node = rn_ir_node(p->ir, edge.node);
  // A fed node is not a matmul, whatever its op: it has no inputs.
  if (node->op != p->product || node->feed >= 0 || node->control_count > 0 ||
      rn_ir_use_count(&p->uses[edge.node]) != 1 || node->device != reader->device ||
      rn_ir_flag(node, "transpose_b"))
    return false;
  if (node->types[0] != RN_FLOAT && node->types[0] != RN_DOUBLE) return false;
  if (!is_matrix(p, node->inputs[0]) || !is_matrix(p, node->inputs[1]) || !is_matrix(p, edge))
    return false;
  const rn_ir_edge_t b = node->inputs[1];
  int64_t depth = rn_ir_node(p->ir, b.node)->shapes[b.output].dims[0];
  return depth > 0 && depth <= max_depth && node->shapes[0].dims[0] > 1 &&
         node->shapes[0].dims[1] > 1;
}

// The attributes of |op| for |count| matmuls like |like|, a matmul or a sum of them.
static rn_status_t count_products(const sum_matmuls_products_t* p, const rn_op_def_t* op,
                                  const rn_ir_node_t* like, int32_t count,
                                  const rn_attr_value_t** out) {
  const rn_attr_t given[] = {
      {RN_STR("M"), {.i = count}}, {RN_STR("N"), {.i = count}}, RN_ATTRS_END};
  return rn_ir_make_attrs(p->ir, op, like, given, out);
}

// Turns the node into |op|, whose inputs are the first |kept| of its own and then the operands of
// |count| matmuls, which |terms| name. Removes the matmuls.
static rn_status_t take_over(sum_matmuls_products_t* p, int32_t index, const rn_op_def_t* op,
                             int32_t kept, const rn_ir_edge_t* terms, int32_t count) {
  rn_ir_node_t made = *rn_ir_node(p->ir, index);
  const rn_ir_node_t* first = rn_ir_node(p->ir, terms[0].node);
  made.op = op;
  made.extra_count = 0;
  made.input_count = kept + 2 * count;
  RN_RETURN_IF_ERROR(count_products(p, op, first, count, &made.attrs));
  made.kernel = rn_kernel_find(op, made.attrs, NULL, first->kernel->device);
  if (!made.kernel) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)made.input_count, &made.inputs));
  memcpy(made.inputs, rn_ir_node(p->ir, index)->inputs, (size_t)kept * sizeof *made.inputs);
  for (int32_t t = 0; t < count; ++t) {
    rn_ir_node_t* product = rn_ir_node(p->ir, terms[t].node);
    made.inputs[kept + t] = product->inputs[0];
    made.inputs[kept + count + t] = product->inputs[1];
    product->is_removed = true;
  }
  *rn_ir_node(p->ir, index) = made;
  return RN_OK;
}

// Whether inputs of |node| from |first| on are matmuls that can be summed: all with the same
// transpose_a, all of |shape|.
static bool are_alike(const sum_matmuls_products_t* p, const rn_ir_node_t* node, int32_t first,
                      bool transposes, rn_shape_t shape) {
  for (int32_t i = first; i < node->input_count; ++i) {
    if (!is_shallow_product(p, node->inputs[i], node, MAX_DEPTH)) return false;
    const rn_ir_node_t* product = rn_ir_node(p->ir, node->inputs[i].node);
    if (rn_ir_flag(product, "transpose_a") != transposes || !rn_shape_eq(product->shapes[0], shape))
      return false;
  }
  return true;
}

// Clients add many gradients a few at a time: AddN(AddN(a, b, c), d, e). Terms are added in order,
// so the terms of a sum in the first place can replace it.
static rn_status_t extend_sum(sum_matmuls_products_t* p, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  rn_ir_node_t* before = rn_ir_node(p->ir, node->inputs[0].node);
  int32_t added = node->input_count - 1, had = before->input_count / 2, all = had + added;
  if (before->control_count > 0 || rn_ir_use_count(&p->uses[node->inputs[0].node]) != 1 ||
      before->device != node->device || all > MAX_TERMS ||
      !are_alike(p, node, 1, rn_ir_flag(before, "transpose_a"), before->shapes[0]))
    return RN_OK;
  rn_ir_node_t made = *node;
  made.op = before->op;
  made.kernel = before->kernel;
  made.extra_count = 0;
  made.input_count = 2 * all;
  RN_RETURN_IF_ERROR(count_products(p, made.op, before, all, &made.attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)made.input_count, &made.inputs));
  memcpy(made.inputs, before->inputs, (size_t)had * sizeof *made.inputs);
  memcpy(made.inputs + all, before->inputs + had, (size_t)had * sizeof *made.inputs);
  for (int32_t t = 0; t < added; ++t) {
    rn_ir_node_t* product = rn_ir_node(p->ir, node->inputs[1 + t].node);
    made.inputs[had + t] = product->inputs[0];
    made.inputs[all + had + t] = product->inputs[1];
    product->is_removed = true;
  }
  before->is_removed = true;
  *rn_ir_node(p->ir, index) = made;
  return RN_OK;
}

// If |edge| concatenates two matrices horizontally, the columns of the first; -1 otherwise.
static int64_t first_side(const sum_matmuls_products_t* p, const rn_ir_node_t* reader,
                          rn_ir_edge_t edge) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, edge.node);
  if (node->op != p->concat || node->feed >= 0 || node->input_count != 3 ||
      node->control_count > 0 || node->device != reader->device || !is_matrix(p, node->inputs[0]) ||
      !is_matrix(p, node->inputs[1]))
    return -1;
  rn_shape_t shape = rn_ir_node(p->ir, node->inputs[0].node)->shapes[node->inputs[0].output];
  return rn_ir_matrix_axis(p->ir, node->inputs[2]) == 1 ? shape.dims[1] : -1;
}

// Replaces left operands that concatenate two matrices by those matrices, if all do so alike. The
// operands come after |kept| other inputs.
static rn_status_t take_sides(sum_matmuls_products_t* p, int32_t index, int32_t kept) {
  rn_ir_node_t* node = rn_ir_node(p->ir, index);
  const int32_t count = (node->input_count - kept) / 2;
  const rn_ir_edge_t* lefts = node->inputs + kept;
  if (!p->concat || !rn_ir_flag(node, "transpose_a")) return RN_OK;
  int64_t columns = lefts[0].node < 0 ? -1 : first_side(p, node, lefts[0]);
  for (int32_t t = 0; t < count; ++t)
    if (columns < 0 || lefts[t].node < 0 || first_side(p, node, lefts[t]) != columns) return RN_OK;
  rn_ir_edge_t* inputs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)(kept + 3 * count), &inputs));
  memcpy(inputs, node->inputs, (size_t)kept * sizeof *inputs);
  for (int32_t t = 0; t < count; ++t) {
    memcpy(inputs + kept + 2 * t, rn_ir_node(p->ir, lefts[t].node)->inputs, 2 * sizeof *inputs);
    inputs[kept + 2 * count + t] = lefts[count + t];
  }
  node->inputs = inputs;
  node->input_count = kept + 3 * count;
  const rn_attr_t given[] = {{RN_STR("M"), {.i = 2 * count}}, RN_ATTRS_END};
  return rn_ir_make_attrs(p->ir, node->op, node, given, &node->attrs);
}

static rn_status_t sum_products(sum_matmuls_products_t* p, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  if (node->inputs[0].node < 0) return RN_OK;
  const rn_ir_node_t* first = rn_ir_node(p->ir, node->inputs[0].node);
  if (first->op == p->sum_of_products) return extend_sum(p, index);
  if (!are_alike(p, node, 0, rn_ir_flag(first, "transpose_a"), first->shapes[0])) return RN_OK;
  return take_over(p, index, p->sum_of_products, 0, node->inputs, node->input_count);
}

// The inputs of ResourceApplyGradientDescent: variable, learning rate, gradient.
static rn_status_t descend_by_products(sum_matmuls_products_t* p, int32_t index,
                                       const rn_op_def_t* op) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  const rn_ir_edge_t gradient = node->inputs[2];
  if (gradient.node < 0) return RN_OK;
  if (is_shallow_product(p, gradient, node, MAX_DESCENT_DEPTH))
    return take_over(p, index, op, 2, &gradient, 1);
  rn_ir_node_t* sum = rn_ir_node(p->ir, gradient.node);
  if (sum->op != p->sum_of_products || rn_ir_use_count(&p->uses[gradient.node]) != 1 ||
      sum->control_count > 0 || sum->device != node->device)
    return RN_OK;
  rn_ir_node_t made = *node;
  made.op = op;
  made.attrs = sum->attrs;  // both ops have the same
  made.extra_count = 0;
  made.kernel = rn_kernel_find(op, made.attrs, NULL, node->kernel->device);
  if (!made.kernel) return RN_OK;
  made.input_count = 2 + sum->input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)made.input_count, &made.inputs));
  memcpy(made.inputs, node->inputs, 2 * sizeof *made.inputs);
  memcpy(made.inputs + 2, sum->inputs, (size_t)sum->input_count * sizeof *made.inputs);
  sum->is_removed = true;
  *rn_ir_node(p->ir, index) = made;
  return RN_OK;
}

// Turns c + a b, the form in which loops accumulate gradients, into one node that may overwrite c.
static rn_status_t add_product(sum_matmuls_products_t* p, int32_t index, const rn_op_def_t* op) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  for (int32_t i = 1; i >= 0; --i) {
    const rn_ir_edge_t product = node->inputs[i], other = node->inputs[1 - i];
    if (!is_shallow_product(p, product, node, MAX_DEPTH) || !is_matrix(p, other) ||
        !rn_shape_eq(rn_ir_node(p->ir, other.node)->shapes[other.output],
                     rn_ir_node(p->ir, product.node)->shapes[0]))
      continue;
    rn_ir_node(p->ir, index)->inputs[0] = other;  // a + b is b + a, bit by bit
    rn_ir_node(p->ir, index)->inputs[1] = product;
    return take_over(p, index, op, 1, &product, 1);
  }
  return RN_OK;
}

rn_status_t rn_pass_sum_matmuls(rn_ir_t* ir) {
  sum_matmuls_products_t p = {.ir = ir,
                              .product = rn_op_find(RN_STR("MatMul")),
                              .sum_of_products = rn_op_sum_of_products(),
                              .concat = rn_op_find(RN_STR("ConcatV2"))};
  const rn_op_def_t *sum = rn_op_find(RN_STR("AddN")), *by_products = rn_op_descent_by_products();
  const rn_op_def_t* descent = rn_op_find(RN_STR("ResourceApplyGradientDescent"));
  if (!p.product || !p.sum_of_products || !by_products) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &p.uses));
  int32_t *order = NULL, count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));  // inner sums before outer ones
  for (int32_t i = 0; i < count; ++i)
    if (ir->nodes.items[order[i]].op == sum && ir->nodes.items[order[i]].feed < 0)
      RN_RETURN_IF_ERROR(sum_products(&p, order[i]));
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (!ir->nodes.items[n].is_removed && ir->nodes.items[n].op == descent)
      RN_RETURN_IF_ERROR(descend_by_products(&p, (int32_t)n, by_products));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (!node->is_removed && (node->op == p.sum_of_products || node->op == by_products))
      RN_RETURN_IF_ERROR(take_sides(&p, (int32_t)n, node->op == by_products ? 2 : 0));
  }
  const rn_op_def_t *add = rn_op_find(RN_STR("AddV2")), *with_product = rn_op_add_product();
  for (size_t n = 0; with_product && n < ir->nodes.count; ++n)
    if (!ir->nodes.items[n].is_removed && ir->nodes.items[n].op == add &&
        ir->nodes.items[n].feed < 0)
      RN_RETURN_IF_ERROR(add_product(&p, (int32_t)n, with_product));
  return RN_OK;
}
