// Shape functions of CSR matrices: a scalar variant that holds one matrix, or a batch of them. The
// handle data has the dense shape and the type. Stock refuses a variant of which it knows neither;
// here such a matrix has an unknown shape, so that values of functions and of eager calls are fine.
#include "ops/shapes.h"

// The dense shape of the matrices in input |i|: two dims, or three with the batch.
static rn_status_t matrix_in(rn_shape_ctx_t* ctx, int i, rn_shape_t* out) {
  const rn_handle_data_t* data = rn_shape_in_handle(ctx, i);
  RN_TRY(rn_ops_check_scalars(ctx, i, i));
  *out = data->is_set ? data->shape : RN_SHAPE_UNKNOWN;
  RN_TRY(rn_shape_with_rank_at_least(ctx, *out, 2, out));
  return rn_shape_with_rank_at_most(ctx, *out, 3, out);
}

// Output 0 is a variant with this dense shape.
static rn_status_t matrix_out(rn_shape_ctx_t* ctx, rn_dtype_t dtype, rn_shape_t shape) {
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  *rn_shape_out_handle(ctx, 0) = (rn_handle_data_t){.is_set = true, .dtype = dtype, .shape = shape};
  return RN_OK;
}

static rn_dtype_t type_attr(rn_shape_ctx_t* ctx, const char* name) {
  return rn_shape_attr(ctx, name)->type;
}

static rn_status_t check_rank(rn_shape_t shape, const char* of) {
  if (!rn_shape_has_rank(shape) || shape.rank == 2 || shape.rank == 3) return RN_OK;
  return rn_invalid_argument("Invalid rank%s: %d.  Expected a known rank of either 2 or 3.", of,
                             shape.rank);
}

rn_status_t rn_shape_fn_sparse_tensor_to_csr(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, values, sizes, shape;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &indices));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &values));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &sizes));
  int64_t places = indices.dims[0], rank = indices.dims[1];
  if (places != RN_UNKNOWN && values.dims[0] != RN_UNKNOWN && places != values.dims[0])
    return rn_invalid_argument("Number of elements in index (%" PRId64 ") and values (%" PRId64
                               ") do not match.",
                               places, values.dims[0]);
  if (rank != RN_UNKNOWN && sizes.dims[0] != RN_UNKNOWN && rank != sizes.dims[0])
    return rn_invalid_argument(
        "Index rank (%" PRId64 ") and shape rank (%" PRId64 ") do not match.", rank, sizes.dims[0]);
  RN_TRY(rn_shape_from_input(ctx, 2, &shape));
  RN_TRY(check_rank(shape, ""));
  return matrix_out(ctx, type_attr(ctx, "T"), shape);
}

rn_status_t rn_shape_fn_dense_to_csr(rn_shape_ctx_t* ctx) {
  rn_shape_t dense = rn_shape_in(ctx, 0), indices = rn_shape_in(ctx, 1);
  RN_TRY(check_rank(dense, " of dense"));
  if (rn_shape_has_rank(indices) && indices.rank != 2)
    return rn_invalid_argument("indices must be a matrix; but its rank is not 2: %d", indices.rank);
  int64_t columns = rn_shape_dim(indices, 1);
  if (rn_shape_has_rank(dense) && columns != RN_UNKNOWN && columns != dense.rank)
    return rn_invalid_argument("indices.shape[1] must match rank of dense; saw: %" PRId64 " vs. %d",
                               columns, dense.rank);
  return matrix_out(ctx, type_attr(ctx, "T"), dense);
}

rn_status_t rn_shape_fn_csr_to_dense(rn_shape_ctx_t* ctx) {
  return matrix_in(ctx, 0, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_csr_to_sparse_tensor(rn_shape_ctx_t* ctx) {
  rn_shape_t shape;
  RN_TRY(matrix_in(ctx, 0, &shape));
  int64_t rank = rn_shape_has_rank(shape) ? shape.rank : RN_UNKNOWN;
  RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, rank, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  return rn_shape_vector(ctx, rank, rn_shape_out(ctx, 2));
}

rn_status_t rn_shape_fn_csr_components(rn_shape_ctx_t* ctx) {
  rn_shape_t shape, index = rn_shape_in(ctx, 1);
  int64_t pointers;
  RN_TRY(matrix_in(ctx, 0, &shape));
  if (rn_shape_has_rank(index) && index.rank != 0)
    return rn_invalid_argument("index must be a scalar.");
  RN_TRY(rn_ops_add(rn_shape_dim(shape, -2), 1, &pointers));
  RN_TRY(rn_shape_vector(ctx, pointers, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 2));
}

rn_status_t rn_shape_fn_csr_nnz(rn_shape_ctx_t* ctx) {
  rn_shape_t shape;
  RN_TRY(matrix_in(ctx, 0, &shape));
  return rn_shape_slice(ctx, shape, 0, -2, rn_shape_out(ctx, 0));
}

// How a product of matrices reads its operands.
typedef struct csr_product_t {
  bool transpose_a, transpose_b;
} csr_product_t;

static rn_status_t read_product(rn_shape_ctx_t* ctx, csr_product_t* out) {
  bool adjoint_a = rn_ops_bool(ctx, "adjoint_a"), adjoint_b = rn_ops_bool(ctx, "adjoint_b");
  *out = (csr_product_t){rn_ops_bool(ctx, "transpose_a"), rn_ops_bool(ctx, "transpose_b")};
  if (adjoint_a && out->transpose_a)
    return rn_invalid_argument("Only one of adjoint_a and transpose_a may be true.");
  if (adjoint_b && out->transpose_b)
    return rn_invalid_argument("Only one of adjoint_b and transpose_b may be true.");
  out->transpose_a = out->transpose_a || adjoint_a;
  out->transpose_b = out->transpose_b || adjoint_b;
  return RN_OK;
}

// The shape of the product of |a| and |b|, whose batches are merged, or broadcast.
static rn_status_t product_of(rn_shape_ctx_t* ctx, rn_shape_t a, rn_shape_t b, bool broadcasts,
                              bool is_transposed, rn_shape_t* out) {
  csr_product_t p;
  rn_shape_t batch, other, matrix;
  int64_t inner;
  RN_TRY(read_product(ctx, &p));
  int64_t rows = rn_shape_dim(a, p.transpose_a ? -1 : -2);
  int64_t columns = rn_shape_dim(b, p.transpose_b ? -2 : -1);
  RN_TRY(rn_shape_slice(ctx, a, 0, -2, &batch));
  RN_TRY(rn_shape_slice(ctx, b, 0, -2, &other));
  RN_TRY(broadcasts ? rn_shape_broadcast(ctx, batch, other, true, &batch)
                    : rn_shape_merge(ctx, batch, other, &batch));
  RN_TRY(rn_dim_merge(rn_shape_dim(a, p.transpose_a ? -2 : -1),
                      rn_shape_dim(b, p.transpose_b ? -1 : -2), &inner));
  RN_TRY(is_transposed ? rn_shape_matrix(ctx, columns, rows, &matrix)
                       : rn_shape_matrix(ctx, rows, columns, &matrix));
  return rn_shape_concat(ctx, batch, matrix, out);
}

rn_status_t rn_shape_fn_csr_mat_mul(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b;
  RN_TRY(matrix_in(ctx, 0, &a));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 2, &b));
  RN_TRY(rn_shape_with_rank_at_most(ctx, b, 3, &b));
  return product_of(ctx, a, b, false, rn_ops_bool(ctx, "transpose_output"), rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_csr_sparse_mat_mul(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b, out;
  RN_TRY(matrix_in(ctx, 0, &a));
  RN_TRY(matrix_in(ctx, 1, &b));
  RN_TRY(product_of(ctx, a, b, true, false, &out));
  return matrix_out(ctx, type_attr(ctx, "type"), out);
}

rn_status_t rn_shape_fn_csr_transpose(rn_shape_ctx_t* ctx) {
  rn_shape_t in, batch, matrix;
  RN_TRY(matrix_in(ctx, 0, &in));
  RN_TRY(rn_shape_slice(ctx, in, 0, -2, &batch));
  RN_TRY(rn_shape_matrix(ctx, rn_shape_dim(in, -1), rn_shape_dim(in, -2), &matrix));
  RN_TRY(rn_shape_concat(ctx, batch, matrix, &in));
  return matrix_out(ctx, type_attr(ctx, "type"), in);
}

rn_status_t rn_shape_fn_csr_add(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b;
  RN_TRY(rn_ops_check_scalars(ctx, 2, 3));
  RN_TRY(matrix_in(ctx, 0, &a));
  RN_TRY(matrix_in(ctx, 1, &b));
  RN_TRY(rn_shape_merge(ctx, a, b, &a));
  return matrix_out(ctx, type_attr(ctx, "T"), a);
}

rn_status_t rn_shape_fn_csr_mul(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b;
  RN_TRY(matrix_in(ctx, 0, &a));
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 1), 3, &b));
  if (!rn_shape_has_rank(b) || b.rank == 0) return matrix_out(ctx, type_attr(ctx, "T"), a);
  if (b.rank == 3 && rn_shape_has_rank(a) && a.rank != 3)
    return rn_unimplemented("rank of b is 3 but rank of a is not.");
  if (b.rank != 3 || b.dims[1] != 1 || b.dims[2] != 1)
    return rn_unimplemented("b must be a scalar or shaped [batch_size, 1, 1]");
  int64_t batch = b.dims[0];
  if (rn_shape_has_rank(a)) {
    RN_TRY(rn_dim_merge(a.dims[0], batch, &batch));
    RN_TRY(rn_shape_replace_dim(ctx, a, 0, batch, &a));
  }
  return matrix_out(ctx, type_attr(ctx, "T"), a);
}

rn_status_t rn_shape_fn_csr_softmax(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(matrix_in(ctx, 0, &in));
  return matrix_out(ctx, type_attr(ctx, "type"), in);
}

rn_status_t rn_shape_fn_csr_softmax_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t softmax, grad;
  RN_TRY(matrix_in(ctx, 0, &softmax));
  RN_TRY(matrix_in(ctx, 1, &grad));
  RN_TRY(rn_shape_merge(ctx, softmax, grad, &softmax));
  return matrix_out(ctx, type_attr(ctx, "type"), softmax);
}

rn_status_t rn_shape_fn_csr_zeros(rn_shape_ctx_t* ctx) {
  rn_shape_t shape;
  RN_TRY(rn_shape_from_input(ctx, 0, &shape));
  RN_TRY(check_rank(shape, ""));
  return matrix_out(ctx, type_attr(ctx, "type"), shape);
}

// Square matrices, with the batch dims in front.
static rn_status_t square_in(rn_shape_ctx_t* ctx, rn_shape_t* out, int64_t* out_size) {
  RN_TRY(matrix_in(ctx, 0, out));
  return rn_dim_merge(rn_shape_dim(*out, -2), rn_shape_dim(*out, -1), out_size);
}

rn_status_t rn_shape_fn_csr_ordering(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  int64_t n;
  RN_TRY(square_in(ctx, &in, &n));
  return rn_shape_slice(ctx, in, 0, -1, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_csr_cholesky(rn_shape_ctx_t* ctx) {
  rn_shape_t in, order;
  int64_t n;
  RN_TRY(square_in(ctx, &in, &n));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 1, &order));
  RN_TRY(rn_shape_with_rank_at_most(ctx, order, 2, &order));
  RN_TRY(rn_dim_merge(n, rn_shape_dim(order, -1), &n));
  return matrix_out(ctx, type_attr(ctx, "type"), in);
}
