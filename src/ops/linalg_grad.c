// Gradient rules of linear algebra on batches of matrices.
#include "ops/rules.h"

static rn_edge_t product(rn_grad_t* g, rn_edge_t a, bool adj_a, rn_edge_t b, bool adj_b) {
  return rn_BatchMatMulV2(g->scope, a, b, .adj_x = adj_a, .adj_y = adj_b);
}

// A = L L*: L^-* (M + M*) L^-1 / 2, where M is the lower triangle of L* dL with its diagonal
// halved.
RN_RULE(cholesky) {
  rn_edge_t l = rn_grad_out(g, 0), zero = rn_const_scalar(g->scope, RN_INT64, 0);
  rn_edge_t all = rn_const_scalar(g->scope, RN_INT64, -1);
  rn_edge_t eye = rn_MatrixDiag(g->scope, rn_OnesLike(g->scope, rn_MatrixDiagPart(g->scope, l)));
  rn_edge_t inverse = rn_MatrixTriangularSolve(g->scope, l, eye);
  rn_edge_t m =
      rn_MatrixBandPart(g->scope, product(g, l, true, rn_grad_dy(g, 0), false), all, zero);
  rn_edge_t half = rn_rule_scale(g, 0.5, rn_MatrixDiagPart(g->scope, m));
  m = rn_MatrixSetDiag(g->scope, m, half);
  rn_edge_t both = rn_AddV2(g->scope, m, product(g, m, true, eye, false));
  rn_edge_t dx = product(g, product(g, inverse, true, both, false), false, inverse, false);
  rn_grad_to(g, 0, rn_rule_scale(g, 0.5, dx));
  return RN_OK;
}

// dy det(A) A^-*.
RN_RULE(matrix_determinant) {
  rn_edge_t inverse = rn_MatrixInverse(g->scope, rn_grad_in(g, 0), .adjoint = true);
  rn_edge_t factor = rn_Mul(g->scope, rn_grad_dy(g, 0), rn_rule_conj(g, rn_grad_out(g, 0)));
  factor = rn_rule_expand(g, rn_rule_expand(g, factor, -1), -1);
  rn_grad_to(g, 0, rn_Mul(g->scope, factor, inverse));
  return RN_OK;
}

// B = A^-1: -B* dB B*; of the adjoint: -B dB* B.
RN_RULE(matrix_inverse) {
  rn_edge_t b = rn_grad_out(g, 0), db = rn_grad_dy(g, 0);
  bool is_adjoint = rn_grad_attr_bool(g, "adjoint");
  rn_edge_t dx = product(g, product(g, b, !is_adjoint, db, is_adjoint), false, b, !is_adjoint);
  rn_grad_to(g, 0, rn_Neg(g->scope, dx));
  return RN_OK;
}

// A X = B: dB = A^-* dX, dA = -dB X*; with the adjoint of A, dA = -X dB*.
static rn_edge_t to_matrix(rn_grad_t* g, rn_edge_t db) {
  rn_edge_t x = rn_grad_out(g, 0);
  bool is_adjoint = rn_grad_attr_bool(g, "adjoint");
  return rn_Neg(g->scope,
                is_adjoint ? product(g, x, false, db, true) : product(g, db, false, x, true));
}

RN_RULE(matrix_solve) {
  bool is_adjoint = rn_grad_attr_bool(g, "adjoint");
  rn_edge_t db =
      rn_MatrixSolve(g->scope, rn_grad_in(g, 0), rn_grad_dy(g, 0), .adjoint = !is_adjoint);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, to_matrix(g, db));
  rn_grad_to(g, 1, db);
  return RN_OK;
}

// Batch dims broadcast; the op does not read the other triangle, so it gets zeros.
RN_RULE(matrix_triangular_solve) {
  rn_edge_t a = rn_grad_in(g, 0), b = rn_grad_in(g, 1);
  bool is_adjoint = rn_grad_attr_bool(g, "adjoint"), is_lower = rn_grad_attr_bool(g, "lower");
  rn_edge_t db = rn_MatrixTriangularSolve(g->scope, a, rn_grad_dy(g, 0), .adjoint = !is_adjoint,
                                          .lower = RN_SET(is_lower));
  if (rn_grad_wants(g, 0)) {
    rn_edge_t zero = rn_const_scalar(g->scope, RN_INT64, 0);
    rn_edge_t all = rn_const_scalar(g->scope, RN_INT64, -1);
    rn_edge_t da = to_matrix(g, db);
    da = is_lower ? rn_MatrixBandPart(g->scope, da, all, zero)
                  : rn_MatrixBandPart(g->scope, da, zero, all);
    rn_grad_to(g, 0, rn_rule_unbroadcast(g, da, a, b, 2));
  }
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_rule_unbroadcast(g, db, b, a, 2));
  return RN_OK;
}
