// Gradient rules of CSR matrices. The gradient of a matrix is a matrix with the same entries.
#include "ops/rules.h"

static int type_of(rn_grad_t* g) { return rn_grad_attr(g, "type")->type; }

// Entries with the places of |like| and the given values.
static rn_edge_t with_places(rn_grad_t* g, rn_CSRSparseMatrixToSparseTensor_out_t like,
                             rn_edge_t values) {
  return rn_SparseTensorToCSRSparseMatrix(g->scope, like.indices, values, like.dense_shape);
}

RN_RULE(csr_to_dense) {
  rn_CSRSparseMatrixToSparseTensor_out_t in =
      rn_CSRSparseMatrixToSparseTensor(g->scope, rn_grad_in(g, 0), type_of(g));
  rn_grad_to(g, 0, with_places(g, in, rn_GatherNd(g->scope, rn_grad_dy(g, 0), in.indices)));
  return RN_OK;
}

RN_RULE(dense_to_csr) {
  rn_grad_to(
      g, 0, rn_CSRSparseMatrixToDense(g->scope, rn_grad_dy(g, 0), rn_edge_dtype(rn_grad_in(g, 0))));
  return RN_OK;
}

RN_RULE(sparse_tensor_to_csr) {
  int dtype = rn_edge_dtype(rn_grad_in(g, 1));
  rn_grad_to(g, 1, rn_CSRSparseMatrixToSparseTensor(g->scope, rn_grad_dy(g, 0), dtype).values);
  return RN_OK;
}

RN_RULE(csr_to_sparse_tensor) {
  if (!rn_grad_has_dy(g, 1)) return RN_OK;
  rn_grad_to(g, 0,
             rn_SparseTensorToCSRSparseMatrix(g->scope, rn_grad_out(g, 0), rn_grad_dy(g, 1),
                                              rn_grad_out(g, 2)));
  return RN_OK;
}

RN_RULE(csr_transpose) {
  rn_grad_to(g, 0,
             rn_SparseMatrixTranspose(g->scope, rn_grad_dy(g, 0), type_of(g),
                                      .conjugate = rn_grad_attr_bool(g, "conjugate")));
  return RN_OK;
}

RN_RULE(csr_softmax) {
  rn_grad_to(g, 0,
             rn_SparseMatrixSoftmaxGrad(g->scope, rn_grad_out(g, 0), rn_grad_dy(g, 0), type_of(g)));
  return RN_OK;
}

// The places as numbers of a flat tensor.
static rn_edge_t flat_places(rn_grad_t* g, rn_CSRSparseMatrixToSparseTensor_out_t in) {
  int64_t all = RN_UNKNOWN;
  rn_edge_t line = rn_rule_ints(g, RN_INT64, &all, 1);
  rn_edge_t places = rn_SparseReshape(g->scope, in.indices, in.dense_shape, line).output_indices;
  return rn_Reshape(g->scope, places, line);
}

// The values of |whole| at the places of |like|, 0 where |whole| has none.
static rn_edge_t pruned(rn_grad_t* g, rn_edge_t whole, rn_edge_t like, int dtype) {
  rn_scope_t* s = g->scope;
  rn_CSRSparseMatrixToSparseTensor_out_t from = rn_CSRSparseMatrixToSparseTensor(s, whole, dtype);
  rn_CSRSparseMatrixToSparseTensor_out_t to = rn_CSRSparseMatrixToSparseTensor(s, like, dtype);
  int64_t none = -1, one = 1;
  rn_edge_t wanted = flat_places(g, to), places = flat_places(g, from);
  rn_edge_t row = rn_const_int32(s, 0);
  rn_edge_t found =
      rn_Reshape(s, rn_LowerBound(s, rn_ExpandDims(s, places, row), rn_ExpandDims(s, wanted, row)),
                 rn_rule_ints(g, RN_INT32, &none, 1));
  // A place and a value behind the last, for what is not found.
  rn_edge_t more_places[] = {places, rn_rule_ints(g, RN_INT64, &none, 1)};
  rn_edge_t more_values[] = {
      from.values, rn_Reshape(s, rn_rule_zero(g, from.values), rn_rule_ints(g, RN_INT32, &one, 1))};
  rn_edge_t values = rn_Gather(s, rn_ConcatV2(s, more_values, 2, row), found);
  rn_edge_t is_there =
      rn_Equal(s, rn_Gather(s, rn_ConcatV2(s, more_places, 2, row), found), wanted);
  return with_places(g, to, rn_SelectV2(s, is_there, values, rn_rule_zero(g, values)));
}

RN_RULE(csr_add) {
  for (int i = 0; i < 2; ++i) {
    if (!rn_grad_wants(g, i)) continue;
    rn_edge_t factor = rn_grad_in(g, 2 + i);
    rn_edge_t own = pruned(g, rn_grad_dy(g, 0), rn_grad_in(g, i), rn_edge_dtype(factor));
    rn_grad_to(g, i, rn_SparseMatrixMul(g->scope, own, factor));
  }
  return RN_OK;
}

// How a product reads an operand: as it is, transposed, or as the adjoint.
typedef struct csr_view_t {
  bool is_turned, is_conjugated;
} csr_view_t;

static csr_view_t view_of(rn_grad_t* g, const char* transpose, const char* adjoint) {
  bool is_adjoint = rn_grad_attr_bool(g, adjoint);
  return (csr_view_t){is_adjoint || rn_grad_attr_bool(g, transpose), is_adjoint};
}

// The last two axes exchanged.
static rn_edge_t turned(rn_grad_t* g, rn_edge_t dense, int rank) {
  const int64_t order[3] = {0, rank - 1, rank - 2};
  return rn_Transpose(g->scope, dense,
                      rn_rule_ints(g, RN_INT32, rank == 2 ? (int64_t[]){1, 0} : order, rank));
}

// One row of |dense| per entry: that of the entry's row or column, in its matrix.
static rn_edge_t rows_at(rn_grad_t* g, rn_edge_t dense, rn_edge_t indices, int rank, bool by_row) {
  rn_scope_t* s = g->scope;
  const int64_t row[2] = {0, 1}, column[2] = {0, 2}, in_row = 0, in_column = 1;
  rn_edge_t axis = rn_const_int32(s, 1);
  rn_edge_t places = rank == 2 ? rn_rule_ints(g, RN_INT32, by_row ? &in_row : &in_column, 1)
                               : rn_rule_ints(g, RN_INT32, by_row ? row : column, 2);
  return rn_GatherNd(s, dense, rn_GatherV2(s, indices, places, axis));
}

// d op(A) = G op(B)*, at the entries of A only.
static rn_edge_t matrix_gradient(rn_grad_t* g, rn_edge_t dy, int rank, csr_view_t a, csr_view_t b) {
  rn_scope_t* s = g->scope;
  rn_edge_t right = rn_grad_in(g, 1);
  rn_CSRSparseMatrixToSparseTensor_out_t in =
      rn_CSRSparseMatrixToSparseTensor(s, rn_grad_in(g, 0), rn_edge_dtype(right));
  if (b.is_turned) right = turned(g, right, rank);
  if (!b.is_conjugated) right = rn_rule_conj(g, right);
  rn_edge_t products = rn_Mul(s, rows_at(g, dy, in.indices, rank, !a.is_turned),
                              rows_at(g, right, in.indices, rank, a.is_turned));
  rn_edge_t values = rn_Sum(s, products, rn_const_int32(s, 1));
  return with_places(g, in, a.is_conjugated ? rn_rule_conj(g, values) : values);
}

// d op(B) = op(A)* G.
static rn_edge_t dense_gradient(rn_grad_t* g, rn_edge_t dy, csr_view_t a, csr_view_t b) {
  rn_edge_t left = rn_grad_in(g, 0);
  bool conjugates =
      a.is_turned && !a.is_conjugated && rn_dtype_is_complex((rn_dtype_t)rn_edge_dtype(dy));
  if (conjugates) left = rn_Conj(g->scope, left);
  return rn_SparseMatrixMatMul(g->scope, left, dy, .adjoint_a = !a.is_turned,
                               .transpose_output = b.is_turned,
                               .conjugate_output = b.is_conjugated);
}

RN_RULE(csr_mat_mul) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  int rank = rn_rule_rank(g, rn_grad_in(g, 1));
  if (rank == RN_UNKNOWN) rank = rn_rule_rank(g, dy);
  if (rank != 2 && rank != 3)
    return rn_unimplemented("The gradient of SparseMatrixMatMul needs to know the rank of b");
  csr_view_t a = view_of(g, "transpose_a", "adjoint_a"), b = view_of(g, "transpose_b", "adjoint_b");
  if (rn_grad_attr_bool(g, "conjugate_output")) dy = rn_rule_conj(g, dy);
  if (rn_grad_attr_bool(g, "transpose_output")) dy = turned(g, dy, rank);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, matrix_gradient(g, dy, rank, a, b));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, dense_gradient(g, dy, a, b));
  return RN_OK;
}

// |matrix| such that its adjoint, if |*out_adjoint|, is the adjoint of what |view| shows.
static rn_edge_t adjoint_of(rn_grad_t* g, rn_edge_t matrix, csr_view_t view, bool* out_adjoint) {
  *out_adjoint = !view.is_turned;
  bool conjugates =
      view.is_turned && !view.is_conjugated && rn_dtype_is_complex((rn_dtype_t)type_of(g));
  return conjugates ? rn_Conj(g->scope, matrix) : matrix;
}

RN_RULE(csr_sparse_mat_mul) {
  const int dtype = type_of(g);
  csr_view_t a = view_of(g, "transpose_a", "adjoint_a"), b = view_of(g, "transpose_b", "adjoint_b");
  rn_edge_t dy = rn_grad_dy(g, 0);
  for (int i = 0; i < 2; ++i) {
    if (!rn_grad_wants(g, i)) continue;
    bool is_adjoint;
    rn_edge_t other = adjoint_of(g, rn_grad_in(g, 1 - i), i == 0 ? b : a, &is_adjoint);
    rn_edge_t d =
        i == 0 ? rn_SparseMatrixSparseMatMul(g->scope, dy, other, dtype, .adjoint_b = is_adjoint)
               : rn_SparseMatrixSparseMatMul(g->scope, other, dy, dtype, .adjoint_a = is_adjoint);
    csr_view_t own = i == 0 ? a : b;
    if (own.is_turned)
      d = rn_SparseMatrixTranspose(g->scope, d, dtype, .conjugate = own.is_conjugated);
    rn_grad_to(g, i, pruned(g, d, rn_grad_in(g, i), dtype));
  }
  return RN_OK;
}
