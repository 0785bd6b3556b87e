// Gradient rules of matmuls and segment reductions.
#include "ops/rules.h"

// Matmuls. With A and B as they are multiplied: dA = dC B', dB = A' dC. An input that the op
// transposes gets the transpose of that.

static rn_edge_t product(rn_grad_t* g, rn_edge_t a, bool transpose_a, rn_edge_t b,
                         bool transpose_b) {
  return rn_MatMul(g->scope, a, b, .transpose_a = transpose_a, .transpose_b = transpose_b);
}

RN_RULE(matmul) {
  bool ta = rn_grad_attr_bool(g, "transpose_a"), tb = rn_grad_attr_bool(g, "transpose_b");
  rn_edge_t dc = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t b = rn_rule_conj(g, rn_grad_in(g, 1));
    rn_grad_to(g, 0, ta ? product(g, b, tb, dc, true) : product(g, dc, false, b, !tb));
  }
  if (rn_grad_wants(g, 1)) {
    rn_edge_t a = rn_rule_conj(g, rn_grad_in(g, 0));
    rn_grad_to(g, 1, tb ? product(g, dc, true, a, ta) : product(g, a, !ta, dc, false));
  }
  return RN_OK;
}

// An operand of SparseMatMul, with its sparsity hint.
typedef struct factor_t {
  rn_edge_t edge;
  bool is_transposed, is_sparse;
} factor_t;

static rn_edge_t sparse_product(rn_grad_t* g, factor_t a, factor_t b, int dtype) {
  rn_edge_t product = rn_SparseMatMul(g->scope, a.edge, b.edge, .transpose_a = a.is_transposed,
                                      .transpose_b = b.is_transposed, .a_is_sparse = a.is_sparse,
                                      .b_is_sparse = b.is_sparse);
  return rn_rule_cast(g, product, dtype);
}

RN_RULE(sparse_matmul) {
  bool ta = rn_grad_attr_bool(g, "transpose_a"), tb = rn_grad_attr_bool(g, "transpose_b");
  factor_t a = {rn_grad_in(g, 0), ta, rn_grad_attr_bool(g, "a_is_sparse")};
  factor_t b = {rn_grad_in(g, 1), tb, rn_grad_attr_bool(g, "b_is_sparse")};
  factor_t dc = {rn_grad_dy(g, 0), false, false};
  if (rn_grad_wants(g, 0)) {
    int dtype = rn_edge_dtype(a.edge);
    factor_t other = b;
    dc.is_transposed = ta;
    other.is_transposed = ta ? tb : !tb;
    rn_grad_to(g, 0,
               ta ? sparse_product(g, other, dc, dtype) : sparse_product(g, dc, other, dtype));
  }
  if (rn_grad_wants(g, 1)) {
    int dtype = rn_edge_dtype(b.edge);
    factor_t other = a;
    dc.is_transposed = tb;
    other.is_transposed = tb ? ta : !ta;
    rn_grad_to(g, 1,
               tb ? sparse_product(g, dc, other, dtype) : sparse_product(g, other, dc, dtype));
  }
  return RN_OK;
}

// The product of two batches of matrices, each adjoint if requested, as |dtype|, by the node's op.
static rn_edge_t stacks(rn_grad_t* g, rn_edge_t x, bool adj_x, rn_edge_t y, bool adj_y, int dtype) {
  if (!strcmp(rn_grad_op(g), "BatchMatMulV3"))
    return rn_BatchMatMulV3(g->scope, x, y, dtype, .adj_x = adj_x, .adj_y = adj_y);
  if (!strcmp(rn_grad_op(g), "BatchMatMulV2"))
    return rn_BatchMatMulV2(g->scope, x, y, .adj_x = adj_x, .adj_y = adj_y);
  return rn_BatchMatMul(g->scope, x, y, .adj_x = adj_x, .adj_y = adj_y);
}

static void batch_products(rn_grad_t* g) {
  bool ax = rn_grad_attr_bool(g, "adj_x"), ay = rn_grad_attr_bool(g, "adj_y");
  rn_edge_t x = rn_grad_in(g, 0), y = rn_grad_in(g, 1), dz = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0)) {
    int dtype = rn_edge_dtype(x);
    rn_grad_to(g, 0, ax ? stacks(g, y, ay, dz, true, dtype) : stacks(g, dz, false, y, !ay, dtype));
  }
  if (rn_grad_wants(g, 1)) {
    int dtype = rn_edge_dtype(y);
    rn_grad_to(g, 1, ay ? stacks(g, dz, true, x, ax, dtype) : stacks(g, x, !ax, dz, false, dtype));
  }
}

RN_RULE(batch_matmul) {
  batch_products(g);
  return RN_OK;
}

// Batch dims broadcast, those of the matrices do not.
RN_RULE(batch_matmul_v2) {
  batch_products(g);
  for (int i = 0; i < 2; ++i) {
    if (!g->dx[i].dense.node) continue;
    rn_edge_t own = rn_grad_in(g, i), other = rn_grad_in(g, 1 - i);
    rn_grad_to(g, i, rn_rule_unbroadcast(g, g->dx[i].dense, own, other, 2));
  }
  return RN_OK;
}

// Segments. Each row of the data gets the gradient of its segment.

static rn_edge_t rows(rn_grad_t* g, rn_edge_t table, rn_edge_t ids) {
  return rn_GatherV2(g->scope, table, ids, rn_const_int32(g->scope, 0));
}

static rn_edge_t quotient(rn_grad_t* g, rn_edge_t a, rn_edge_t b) {
  bool is_integer = rn_dtype_is_integer(rn_edge_dtype(a));
  return is_integer ? rn_Div(g->scope, a, b) : rn_RealDiv(g->scope, a, b);
}

// The gradient of each row's segment, divided by the segment's count. Divides after the gather, so
// that empty segments do not produce NaN in higher-order gradients.
static rn_edge_t share(rn_grad_t* g, rn_edge_t dy, rn_edge_t count, rn_edge_t ids) {
  return quotient(g, rows(g, dy, ids), rows(g, count, ids));
}

RN_RULE(segment_sum) {
  rn_grad_to(g, 0, rows(g, rn_grad_dy(g, 0), rn_grad_in(g, 1)));
  return RN_OK;
}

RN_RULE(segment_mean) {
  rn_edge_t dy = rn_grad_dy(g, 0), ids = rn_grad_in(g, 1);
  rn_edge_t ones = rn_OnesLike(g->scope, rn_grad_in(g, 0));
  rn_grad_to(g, 0, share(g, dy, rn_SegmentSum(g->scope, ones, ids), ids));
  return RN_OK;
}

// Rows equal to the maximum or minimum of their segment share the gradient.
RN_RULE(segment_min_or_max) {
  rn_edge_t x = rn_grad_in(g, 0), ids = rn_grad_in(g, 1), dy = rn_grad_dy(g, 0);
  rn_edge_t is_extreme = rn_Equal(g->scope, x, rows(g, rn_grad_out(g, 0), ids));
  rn_edge_t count = rn_SegmentSum(g->scope, rn_Cast(g->scope, is_extreme, rn_edge_dtype(x)), ids);
  rn_edge_t each = share(g, dy, count, ids);
  rn_grad_to(g, 0, rn_SelectV2(g->scope, is_extreme, each, rn_rule_zero(g, each)));
  return RN_OK;
}

// Sparse segments have gradient ops.
static rn_edge_t first_size(rn_grad_t* g) {
  rn_shape_t shape = rn_grad_shape(g, rn_grad_in(g, 0));
  if (shape.rank > 0 && shape.dims[0] >= 0) return rn_const_int32(g->scope, (int32_t)shape.dims[0]);
  rn_edge_t zero = rn_const_int32(g->scope, 0);
  return rn_GatherV2(g->scope, rn_Shape(g->scope, rn_grad_in(g, 0)), zero, zero);
}

RN_RULE(sparse_segment_sum) {
  rn_grad_to(g, 0,
             rn_SparseSegmentSumGrad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1), rn_grad_in(g, 2),
                                     first_size(g)));
  return RN_OK;
}

RN_RULE(sparse_segment_mean) {
  rn_grad_to(g, 0,
             rn_SparseSegmentMeanGrad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1),
                                      rn_grad_in(g, 2), first_size(g)));
  return RN_OK;
}

RN_RULE(sparse_segment_sqrt_n) {
  rn_grad_to(g, 0,
             rn_SparseSegmentSqrtNGrad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1),
                                       rn_grad_in(g, 2), first_size(g)));
  return RN_OK;
}

// Unsorted segments: rows with a negative id are dropped.
typedef struct unsorted_t {
  rn_edge_t ids;      // negative ones replaced by 0
  rn_edge_t is_used;  // whether the id is not negative; broadcasts against the data
} unsorted_t;

// A vector with a 1 per axis that the data has and the ids do not.
static rn_edge_t inner_ones(rn_grad_t* g, rn_edge_t data, rn_edge_t ids) {
  int rank = rn_rule_rank(g, data), prefix = rn_rule_rank(g, ids);
  if (rank >= 0 && prefix >= 0 && rank >= prefix) {
    int64_t ones[RN_MAX_RANK];
    for (int i = 0; i < rank - prefix; ++i) ones[i] = 1;
    return rn_rule_ints(g, RN_INT32, ones, rank - prefix);
  }
  rn_edge_t inner = rn_Sub(g->scope, rn_Rank(g->scope, data), rn_Rank(g->scope, ids));
  return rn_Fill(g->scope, rn_rule_expand(g, inner, 0), rn_const_int32(g->scope, 1));
}

static unsorted_t unsorted(rn_grad_t* g) {
  rn_edge_t data = rn_grad_in(g, 0), ids = rn_grad_in(g, 1), zero = rn_rule_zero(g, ids);
  unsorted_t out = {.ids = rn_Maximum(g->scope, ids, zero),
                    .is_used = rn_GreaterEqual(g->scope, ids, zero)};
  int rank = rn_rule_rank(g, data);
  if (rank >= 0 && rank == rn_rule_rank(g, ids)) return out;
  rn_edge_t shape[2] = {rn_rule_shape(g, ids, RN_INT32), inner_ones(g, data, ids)};
  rn_edge_t full = rn_ConcatV2(g->scope, shape, 2, rn_const_int32(g->scope, 0));
  out.is_used = rn_Reshape(g->scope, out.is_used, full);
  return out;
}

static rn_edge_t rows_used(rn_grad_t* g, const unsorted_t* u, rn_edge_t table) {
  return rn_SelectV2(g->scope, u->is_used, rows(g, table, u->ids), rn_rule_zero(g, table));
}

RN_RULE(unsorted_segment_sum) {
  unsorted_t u = unsorted(g);
  rn_grad_to(g, 0, rows_used(g, &u, rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(unsorted_segment_min_or_max) {
  rn_edge_t x = rn_grad_in(g, 0), ids = rn_grad_in(g, 1), dy = rn_grad_dy(g, 0);
  unsorted_t u = unsorted(g);
  rn_edge_t equal = rn_Equal(g->scope, x, rows(g, rn_grad_out(g, 0), u.ids));
  rn_edge_t is_extreme = rn_LogicalAnd(g->scope, equal, u.is_used);
  rn_edge_t mark = rn_Cast(g->scope, is_extreme, rn_edge_dtype(x));
  rn_edge_t count = rn_UnsortedSegmentSum(g->scope, mark, ids, rn_grad_in(g, 2));
  // Dropped rows read segment 0, which may be empty.
  count = rn_Maximum(g->scope, count, rn_const_scalar(g->scope, rn_edge_dtype(x), 1));
  rn_edge_t each = share(g, dy, count, u.ids);
  rn_grad_to(g, 0, rn_SelectV2(g->scope, is_extreme, each, rn_rule_zero(g, each)));
  return RN_OK;
}

// Products: the gradient of an element is the product of the others. For the only zero of a
// segment, that is the product of the nonzero elements; with two zeros it is 0.
typedef struct segment_products_t {
  rn_edge_t zeros;    // number of zeros per segment
  rn_edge_t nonzero;  // product of the nonzero elements per segment
} segment_products_t;

static void segment_product(rn_grad_t* g, rn_edge_t ids, rn_edge_t is_zero,
                            segment_products_t parts) {
  rn_edge_t x = rn_grad_in(g, 0), dy = rn_grad_dy(g, 0);
  rn_edge_t many = rn_Greater(g->scope, parts.zeros, rn_const_int32(g->scope, 1));
  dy = rn_SelectV2(g->scope, many, rn_rule_zero(g, dy), dy);
  rn_edge_t all = quotient(g, rows(g, rn_grad_out(g, 0), ids), x);
  rn_edge_t others = rn_SelectV2(g->scope, is_zero, rows(g, parts.nonzero, ids), all);
  rn_grad_to(g, 0, rn_Mul(g->scope, rows(g, dy, ids), others));
}

RN_RULE(segment_prod) {
  rn_edge_t x = rn_grad_in(g, 0), ids = rn_grad_in(g, 1);
  rn_edge_t is_zero = rn_Equal(g->scope, x, rn_rule_zero(g, x));
  rn_edge_t rest = rn_SelectV2(g->scope, is_zero, rn_rule_scalar(g, x, 1), x);
  segment_products_t parts = {
      .zeros = rn_SegmentSum(g->scope, rn_Cast(g->scope, is_zero, RN_INT32), ids),
      .nonzero = rn_SegmentProd(g->scope, rest, ids)};
  segment_product(g, ids, is_zero, parts);
  return RN_OK;
}

RN_RULE(unsorted_segment_prod) {
  rn_edge_t x = rn_grad_in(g, 0), ids = rn_grad_in(g, 1), count = rn_grad_in(g, 2);
  unsorted_t u = unsorted(g);
  rn_edge_t is_zero = rn_Equal(g->scope, x, rn_rule_zero(g, x));
  rn_edge_t rest = rn_SelectV2(g->scope, is_zero, rn_rule_scalar(g, x, 1), x);
  rn_edge_t mark = rn_Cast(g->scope, is_zero, RN_INT32);
  segment_products_t parts = {.zeros = rn_UnsortedSegmentSum(g->scope, mark, ids, count),
                              .nonzero = rn_UnsortedSegmentProd(g->scope, rest, ids, count)};
  segment_product(g, u.ids, is_zero, parts);
  rn_edge_t dx = g->dx[0].dense;
  rn_grad_to(g, 0, rn_SelectV2(g->scope, u.is_used, dx, rn_rule_zero(g, dx)));
  return RN_OK;
}
