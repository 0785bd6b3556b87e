// Gradient rules of banded and least-squares solvers, and of functions of general matrices.
#include "ops/rules.h"

static rn_edge_t product(rn_grad_t* g, rn_edge_t a, bool adj_a, rn_edge_t b, bool adj_b) {
  return rn_BatchMatMulV2(g->scope, a, b, .adj_x = adj_a, .adj_y = adj_b);
}

static rn_edge_t identity(rn_grad_t* g, rn_edge_t vector) {
  return rn_MatrixDiag(g->scope, rn_OnesLike(g->scope, vector));
}

static rn_edge_t sum_last(rn_grad_t* g, rn_edge_t x) {
  return rn_Sum(g->scope, x, rn_const_int32(g->scope, -1));
}

// P A = L U: dA = P* L^-* (lower(L* dL) + upper(dU U*)) U^-*, L's diagonal being constant.
RN_RULE(lu) {
  rn_edge_t lu = rn_grad_out(g, 0), d = rn_grad_dy(g, 0);
  rn_edge_t zero = rn_const_scalar(g->scope, RN_INT64, 0);
  rn_edge_t all = rn_const_scalar(g->scope, RN_INT64, -1);
  rn_edge_t diagonal = rn_MatrixDiagPart(g->scope, lu), ones = rn_OnesLike(g->scope, diagonal);
  rn_edge_t l = rn_MatrixSetDiag(g->scope, rn_MatrixBandPart(g->scope, lu, all, zero), ones);
  rn_edge_t u = rn_MatrixBandPart(g->scope, lu, zero, all);
  rn_edge_t below = rn_Sub(g->scope, d, rn_MatrixBandPart(g->scope, d, zero, all));
  rn_edge_t left = rn_MatrixBandPart(g->scope, product(g, l, true, below, false), all, zero);
  left = rn_MatrixSetDiag(g->scope, left, rn_ZerosLike(g->scope, diagonal));
  rn_edge_t right = rn_MatrixBandPart(g->scope, d, zero, all);
  right = rn_MatrixBandPart(g->scope, product(g, right, false, u, true), zero, all);
  rn_edge_t inner = rn_AddV2(g->scope, left, right);
  inner = rn_MatrixTriangularSolve(g->scope, l, inner, .adjoint = true);
  rn_edge_t inverse =
      rn_MatrixTriangularSolve(g->scope, u, identity(g, diagonal), .lower = RN_SET(false));
  rn_edge_t pa = product(g, inner, false, inverse, true);
  rn_edge_t size = rn_StridedSlice(g->scope, rn_rule_shape(g, lu, RN_INT32),
                                   rn_rule_ints(g, RN_INT32, (int64_t[]){-1}, 1),
                                   rn_rule_ints(g, RN_INT32, (int64_t[]){0}, 1),
                                   rn_rule_ints(g, RN_INT32, (int64_t[]){1}, 1), .end_mask = 1);
  size = rn_Prod(g->scope, size, rn_const_int32(g->scope, 0));
  rn_edge_t p = rn_OneHot(g->scope, rn_grad_out(g, 1), size, rn_rule_scalar(g, lu, 1),
                          rn_rule_scalar(g, lu, 0));
  rn_grad_to(g, 0, product(g, p, true, pa, false));
  return RN_OK;
}

// A V = V diag(e), the columns of V of length 1: V^-* (diag(de) + F o (V* dV - V* V re(diag(V*
// dV)))) V*, where F holds the conjugates of the inverse differences of e.
RN_RULE(eig) {
  rn_edge_t in = rn_grad_in(g, 0), e = rn_grad_out(g, 0), v = rn_grad_out(g, 1);
  int dtype = rn_edge_dtype(e);
  bool has_vectors = rn_grad_attr_bool(g, "compute_v");
  if (!has_vectors) v = rn_Eig(g->scope, in, dtype).v;
  rn_edge_t inner = rn_MatrixDiag(g->scope, rn_grad_dy(g, 0));
  if (has_vectors && rn_grad_has_dy(g, 1)) {
    rn_edge_t across = rn_Sub(g->scope, rn_rule_expand(g, e, -2), rn_rule_expand(g, e, -1));
    rn_edge_t f = rn_Conj(g->scope, rn_DivNoNan(g->scope, rn_OnesLike(g->scope, across), across));
    rn_edge_t along = product(g, v, true, rn_grad_dy(g, 1), false);
    rn_edge_t real = rn_Real(g->scope, rn_MatrixDiagPart(g->scope, along),
                             .Tout = dtype == RN_COMPLEX128 ? RN_DOUBLE : RN_FLOAT);
    rn_edge_t kept = product(g, product(g, v, true, v, false), false,
                             rn_MatrixDiag(g->scope, rn_rule_cast(g, real, dtype)), false);
    inner = rn_AddV2(g->scope, inner, rn_Mul(g->scope, f, rn_Sub(g->scope, along, kept)));
  }
  rn_edge_t adjoint = product(g, v, true, identity(g, e), false);
  rn_edge_t da = rn_MatrixSolve(g->scope, adjoint, product(g, inner, false, v, true));
  rn_grad_to(g, 0, rn_rule_cast(g, da, rn_edge_dtype(in)));
  return RN_OK;
}

// R R = A: dA solves R* dA + dA R* = dR, a system of n^2 equations.
RN_RULE(matrix_square_root) {
  rn_edge_t r = rn_grad_out(g, 0), dr = rn_grad_dy(g, 0);
  rn_edge_t eye = identity(g, rn_MatrixDiagPart(g->scope, r));
  rn_edge_t left[] = {product(g, r, true, eye, false), eye}, right[] = {eye, rn_rule_conj(g, r)};
  const char* kronecker = "...ij,...kl->...ikjl";
  rn_edge_t sum = rn_AddV2(g->scope, rn_Einsum(g->scope, left, 2, kronecker),
                           rn_Einsum(g->scope, right, 2, kronecker));
  // [..., n, n, n, n] to [..., n^2, n^2]; dR to a column.
  rn_edge_t shape = rn_rule_shape(g, r, RN_INT32), axis = rn_const_int32(g->scope, 0);
  rn_edge_t one = rn_rule_ints(g, RN_INT32, (int64_t[]){1}, 1);
  rn_edge_t batch = rn_StridedSlice(
      g->scope, shape, one, rn_rule_ints(g, RN_INT32, (int64_t[]){-2}, 1), one, .begin_mask = 1);
  rn_edge_t size = rn_StridedSlice(g->scope, shape, rn_rule_ints(g, RN_INT32, (int64_t[]){-1}, 1),
                                   one, one, .end_mask = 1);
  size = rn_Mul(g->scope, size, size);
  rn_edge_t wide[] = {batch, size, size}, tall[] = {batch, size, one};
  sum = rn_Reshape(g->scope, sum, rn_ConcatV2(g->scope, wide, 3, axis));
  dr = rn_Reshape(g->scope, dr, rn_ConcatV2(g->scope, tall, 3, axis));
  rn_grad_to(g, 0, rn_Reshape(g->scope, rn_MatrixSolve(g->scope, sum, dr), shape));
  return RN_OK;
}

// (G + lambda I)^-1 X for a positive definite G.
static rn_edge_t solve_positive(rn_grad_t* g, rn_edge_t chol, rn_edge_t x) {
  rn_edge_t y = rn_MatrixTriangularSolve(g->scope, chol, x);
  return rn_MatrixTriangularSolve(g->scope, chol, y, .adjoint = true);
}

// The Cholesky factor of A* A + lambda I, or of A A* + lambda I.
static rn_edge_t gram_factor(rn_grad_t* g, bool is_first) {
  rn_edge_t a = rn_grad_in(g, 0);
  rn_edge_t gram = product(g, a, is_first, a, !is_first);
  rn_edge_t more = rn_rule_cast(g, rn_grad_in(g, 2), rn_edge_dtype(a));
  rn_edge_t diagonal = rn_AddV2(g->scope, rn_MatrixDiagPart(g->scope, gram), more);
  return rn_Cholesky(g->scope, rn_MatrixSetDiag(g->scope, gram, diagonal));
}

RN_RULE(matrix_solve_ls) {
  rn_edge_t a = rn_grad_in(g, 0), b = rn_grad_in(g, 1), x = rn_grad_out(g, 0);
  rn_edge_t dx = rn_grad_dy(g, 0);
  rn_shape_t shape = rn_grad_shape(g, a);
  if (!rn_grad_attr_bool(g, "fast")) return rn_unimplemented("Gradient not defined for fast=False");
  if (shape.rank < 2 || shape.dims[shape.rank - 1] < 0 || shape.dims[shape.rank - 2] < 0)
    return rn_unimplemented("MatrixSolveLs: the gradient needs the static shape of the matrix");
  if (shape.dims[shape.rank - 2] >= shape.dims[shape.rank - 1]) {
    rn_edge_t z = solve_positive(g, gram_factor(g, true), dx);
    rn_edge_t both =
        rn_AddV2(g->scope, product(g, x, false, z, true), product(g, z, false, x, true));
    rn_grad_to(g, 0,
               rn_Sub(g->scope, product(g, b, false, z, true), product(g, a, false, both, false)));
    rn_grad_to(g, 1, product(g, a, false, z, false));
    return RN_OK;
  }
  rn_edge_t chol = gram_factor(g, false);
  rn_edge_t db = solve_positive(g, chol, product(g, a, false, dx, false));
  rn_edge_t y = solve_positive(g, chol, b);
  rn_edge_t first = product(g, db, false, product(g, y, true, a, false), false);
  rn_edge_t rest = rn_Sub(g->scope, dx, product(g, a, true, db, false));
  rn_grad_to(g, 0, rn_Sub(g->scope, product(g, y, false, rest, true), first));
  rn_grad_to(g, 1, db);
  return RN_OK;
}

// Rows moved up or down by one, a row of zeros coming in. |like| is a diagonal, [..., 1, n].
static rn_edge_t move_rows(rn_grad_t* g, rn_edge_t like, rn_edge_t x, bool is_up) {
  rn_edge_t one = rn_OnesLike(g->scope, like), none = rn_ZerosLike(g->scope, like);
  return rn_TridiagonalMatMul(g->scope, is_up ? one : none, none, is_up ? none : one, x);
}

// A diagonal as a column, conjugated, and back as a row.
static rn_edge_t column(rn_grad_t* g, rn_edge_t diagonal) {
  int64_t axis = -2;
  rn_edge_t flat = rn_Squeeze(g->scope, diagonal, .squeeze_dims = RN_LIST(&axis, 1));
  return rn_rule_expand(g, rn_rule_conj(g, flat), -1);
}

static rn_edge_t row(rn_grad_t* g, rn_edge_t column) {
  int64_t axis = -1;
  rn_edge_t flat = rn_Squeeze(g->scope, column, .squeeze_dims = RN_LIST(&axis, 1));
  return rn_rule_expand(g, flat, -2);
}

// The diagonal of X Y* that |step| says: 1 above the main one, 0 or -1.
static rn_edge_t diagonal_of(rn_grad_t* g, rn_edge_t like, rn_edge_t x, rn_edge_t y, int step) {
  if (step) y = move_rows(g, like, y, step > 0);
  return rn_rule_expand(g, sum_last(g, rn_Mul(g->scope, x, rn_rule_conj(g, y))), -2);
}

RN_RULE(tridiagonal_mat_mul) {
  rn_edge_t x = rn_grad_in(g, 3), dy = rn_grad_dy(g, 0), like = rn_grad_in(g, 1);
  for (int i = 0; i < 3; ++i) rn_grad_to(g, i, diagonal_of(g, like, dy, x, 1 - i));
  rn_edge_t parts[3];
  for (int i = 0; i < 3; ++i) {
    parts[i] = rn_Mul(g->scope, column(g, rn_grad_in(g, i)), dy);
    if (i != 1) parts[i] = move_rows(g, like, parts[i], i == 2);
  }
  rn_grad_to(g, 3, rn_AddN(g->scope, parts, 3));
  return RN_OK;
}

RN_RULE(tridiagonal_solve) {
  rn_edge_t x = rn_grad_out(g, 0), axis = rn_const_int32(g->scope, -2);
  rn_edges_t d = rn_Split(g->scope, axis, rn_grad_in(g, 0), 3);
  rn_edge_t like = rn_edge_at(d, 1);
  rn_edge_t parts[] = {row(g, move_rows(g, like, column(g, rn_edge_at(d, 2)), true)),
                       rn_rule_conj(g, like),
                       row(g, move_rows(g, like, column(g, rn_edge_at(d, 0)), false))};
  rn_edge_t adjoint = rn_ConcatV2(g->scope, parts, 3, axis);
  rn_edge_t db =
      rn_TridiagonalSolve(g->scope, adjoint, rn_grad_dy(g, 0),
                          .partial_pivoting = RN_SET(rn_grad_attr_bool(g, "partial_pivoting")),
                          .perturb_singular = rn_grad_attr_bool(g, "perturb_singular"));
  for (int i = 0; i < 3; ++i) parts[i] = rn_Neg(g->scope, diagonal_of(g, like, db, x, 1 - i));
  rn_grad_to(g, 0, rn_ConcatV2(g->scope, parts, 3, axis));
  rn_grad_to(g, 1, db);
  return RN_OK;
}

// As MatrixTriangularSolve's; of dA, only the bands count. Batch dims broadcast.
RN_RULE(banded_triangular_solve) {
  rn_edge_t a = rn_grad_in(g, 0), b = rn_grad_in(g, 1), x = rn_grad_out(g, 0);
  bool is_adjoint = rn_grad_attr_bool(g, "adjoint"), is_lower = rn_grad_attr_bool(g, "lower");
  rn_edge_t db = rn_BandedTriangularSolve(g->scope, a, rn_grad_dy(g, 0), .adjoint = !is_adjoint,
                                          .lower = RN_SET(is_lower));
  if (rn_grad_wants(g, 0)) {
    rn_edge_t da = is_adjoint ? product(g, x, false, db, true) : product(g, db, false, x, true);
    rn_edge_t one = rn_rule_ints(g, RN_INT32, (int64_t[]){1}, 1);
    rn_edge_t bands = rn_StridedSlice(g->scope, rn_rule_shape(g, a, RN_INT32),
                                      rn_rule_ints(g, RN_INT32, (int64_t[]){-2}, 1),
                                      rn_rule_ints(g, RN_INT32, (int64_t[]){-1}, 1), one);
    rn_edge_t last = rn_Sub(g->scope, bands, one), none = rn_ZerosLike(g->scope, last);
    rn_edge_t ends[] = {is_lower ? rn_Neg(g->scope, last) : none, is_lower ? none : last};
    rn_edge_t k = rn_ConcatV2(g->scope, ends, 2, rn_const_int32(g->scope, 0));
    da = rn_MatrixDiagPartV3(g->scope, rn_Neg(g->scope, da), k, rn_rule_scalar(g, a, 0),
                             .align = "LEFT_RIGHT");
    rn_grad_to(g, 0, rn_rule_unbroadcast(g, da, a, b, 2));
  }
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_rule_unbroadcast(g, db, b, a, 2));
  return RN_OK;
}
