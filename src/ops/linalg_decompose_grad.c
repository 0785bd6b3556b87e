// Gradient rules of decompositions: QR, singular values, eigenvalues, logarithms of determinants.
#include "ops/rules.h"

static rn_edge_t product(rn_grad_t* g, rn_edge_t a, bool adj_a, rn_edge_t b, bool adj_b) {
  return rn_BatchMatMulV2(g->scope, a, b, .adj_x = adj_a, .adj_y = adj_b);
}

static bool is_complex(rn_edge_t edge) {
  int dtype = rn_edge_dtype(edge);
  return dtype == RN_COMPLEX64 || dtype == RN_COMPLEX128;
}

// Ones on a diagonal of the length of |vector|'s last axis.
static rn_edge_t identity(rn_grad_t* g, rn_edge_t vector) {
  return rn_MatrixDiag(g->scope, rn_OnesLike(g->scope, vector));
}

static rn_edge_t adjoint(rn_grad_t* g, rn_edge_t a, rn_edge_t eye) {
  return product(g, a, true, eye, false);
}

static rn_edge_t lower(rn_grad_t* g, rn_edge_t a) {
  return rn_MatrixBandPart(g->scope, a, rn_const_scalar(g->scope, RN_INT64, -1),
                           rn_const_scalar(g->scope, RN_INT64, 0));
}

// dlog A^-*.
RN_RULE(log_matrix_determinant) {
  rn_edge_t inverse = rn_MatrixInverse(g->scope, rn_grad_in(g, 0), .adjoint = true);
  rn_edge_t dy = rn_rule_expand(g, rn_rule_expand(g, rn_grad_dy(g, 1), -1), -1);
  rn_grad_to(g, 0, rn_Mul(g->scope, dy, inverse));
  return RN_OK;
}

// 1 / (x_j - x_i) in row i, column j; 0 where x_i = x_j.
static rn_edge_t inverse_differences(rn_grad_t* g, rn_edge_t x) {
  rn_edge_t across = rn_Sub(g->scope, rn_rule_expand(g, x, -2), rn_rule_expand(g, x, -1));
  return rn_DivNoNan(g->scope, rn_OnesLike(g->scope, across), across);
}

// A = V diag(e) V*: V (diag(de) + F o (V* dV)) V*, where F holds the inverse differences of
// e. The op reads only the lower triangle of A, so the gradient of the upper one is added to it.
RN_RULE(self_adjoint_eig) {
  rn_edge_t e = rn_grad_out(g, 0), v = rn_grad_out(g, 1);
  bool has_vectors = rn_grad_attr_bool(g, "compute_v");
  if (!has_vectors) {
    rn_SelfAdjointEigV2_out_t again = rn_SelfAdjointEigV2(g->scope, rn_grad_in(g, 0));
    v = again.v;
  }
  rn_edge_t inner = rn_MatrixDiag(g->scope, rn_grad_dy(g, 0));
  if (has_vectors && rn_grad_has_dy(g, 1)) {
    rn_edge_t f = inverse_differences(g, e);
    inner = rn_AddV2(g->scope, inner,
                     rn_Mul(g->scope, f, product(g, v, true, rn_grad_dy(g, 1), false)));
  }
  rn_edge_t da = product(g, product(g, v, false, inner, false), false, v, true);
  rn_edge_t both = lower(g, rn_AddV2(g->scope, da, adjoint(g, da, identity(g, e))));
  rn_edge_t half = rn_rule_scale(g, 0.5, rn_MatrixDiagPart(g->scope, both));
  rn_grad_to(g, 0, rn_MatrixSetDiag(g->scope, both, half));
  return RN_OK;
}

// A = Q R, A tall: Q (dR + L R^-*) + (dQ - Q Q* dQ) R^-*, where L is the lower triangle of M - M*
// and M = Q* dQ + R dR*. For complex types, the imaginary part of the diagonal counts once.
RN_RULE(qr) {
  rn_edge_t q = rn_grad_out(g, 0), r = rn_grad_out(g, 1);
  rn_edge_t dq = rn_grad_dy(g, 0), dr = rn_grad_dy(g, 1);
  rn_shape_t shape = rn_grad_shape(g, rn_grad_in(g, 0));
  if (shape.rank < 2 || shape.dims[shape.rank - 1] < 0 || shape.dims[shape.rank - 2] < 0)
    return rn_unimplemented("QrGrad not implemented with dynamic shapes.");
  int64_t m = shape.dims[shape.rank - 2], n = shape.dims[shape.rank - 1];
  if (m < n || (m > n && rn_grad_attr_bool(g, "full_matrices")))
    return rn_unimplemented(
        "QrGrad not implemented when nrows > ncols and full_matrices is true or ncols > nrows.");
  rn_edge_t eye = identity(g, rn_MatrixDiagPart(g->scope, r));
  rn_edge_t inverse = rn_MatrixTriangularSolve(g->scope, r, eye, .lower = RN_SET(false));
  rn_edge_t inner = product(g, q, true, dq, false), outer = product(g, r, false, dr, true);
  rn_edge_t both = rn_AddV2(g->scope, rn_Sub(g->scope, inner, adjoint(g, inner, eye)),
                            rn_Sub(g->scope, outer, adjoint(g, outer, eye)));
  rn_edge_t triangle = lower(g, both);
  if (is_complex(q)) {
    // The diagonal of M - M* is twice the imaginary part of M's.
    rn_edge_t diagonal = rn_rule_scale(g, 0.5, rn_MatrixDiagPart(g->scope, both));
    triangle = rn_MatrixSetDiag(g->scope, triangle, diagonal);
  }
  rn_edge_t rest = rn_Sub(g->scope, dq, product(g, q, false, inner, false));
  rn_edge_t over = rn_AddV2(g->scope, product(g, q, false, triangle, false), rest);
  rn_edge_t da =
      rn_AddV2(g->scope, product(g, q, false, dr, false), product(g, over, false, inverse, true));
  rn_grad_to(g, 0, da);
  return RN_OK;
}

// The contribution of the left or right singular vectors: F o (X* dX - dX* X), where F holds the
// inverse differences of the squared singular values.
static rn_edge_t turned(rn_grad_t* g, rn_edge_t f, rn_edge_t x, rn_edge_t dx) {
  return rn_Mul(g->scope, f,
                rn_Sub(g->scope, product(g, x, true, dx, false), product(g, dx, true, x, false)));
}

// The part of dX outside the column space of X, each column divided by its singular value.
static rn_edge_t outside(rn_grad_t* g, rn_edge_t x, rn_edge_t dx, rn_edge_t s) {
  rn_edge_t rest =
      rn_Sub(g->scope, dx, product(g, x, false, product(g, x, true, dx, false), false));
  return rn_DivNoNan(g->scope, rest, rn_rule_expand(g, s, -2));
}

// A = U S V*: U (dS + FU S + S FV) V* + outside(U) V* + U outside(V)*.
RN_RULE(svd) {
  rn_edge_t s = rn_grad_out(g, 0), u = rn_grad_out(g, 1), v = rn_grad_out(g, 2);
  bool has_vectors = rn_grad_attr_bool(g, "compute_uv");
  if (!has_vectors) {
    rn_Svd_out_t again = rn_Svd(g->scope, rn_grad_in(g, 0));
    u = again.u, v = again.v;
  }
  rn_edge_t inner = rn_MatrixDiag(g->scope, rn_grad_dy(g, 0));
  bool to_vectors = has_vectors && (rn_grad_has_dy(g, 1) || rn_grad_has_dy(g, 2));
  if (has_vectors && rn_grad_attr_bool(g, "full_matrices"))
    return rn_unimplemented("SVD gradient is not implemented for full_matrices.");
  if (!to_vectors) {
    rn_grad_to(g, 0, product(g, product(g, u, false, inner, false), false, v, true));
    return RN_OK;
  }
  if (is_complex(s))
    return rn_unimplemented(
        "SVD gradient is not implemented for complex types when compute_uv is True.");
  rn_edge_t du = rn_grad_dy(g, 1), dv = rn_grad_dy(g, 2);
  rn_edge_t f = inverse_differences(g, rn_Square(g->scope, s));
  rn_edge_t from_u = rn_Mul(g->scope, turned(g, f, u, du), rn_rule_expand(g, s, -2));
  rn_edge_t from_v = rn_Mul(g->scope, rn_rule_expand(g, s, -1), turned(g, f, v, dv));
  inner = rn_AddV2(g->scope, inner, rn_AddV2(g->scope, from_u, from_v));
  rn_edge_t left = rn_AddV2(g->scope, product(g, u, false, inner, false), outside(g, u, du, s));
  rn_edge_t da = rn_AddV2(g->scope, product(g, left, false, v, true),
                          product(g, u, false, outside(g, v, dv, s), true));
  rn_grad_to(g, 0, da);
  return RN_OK;
}
