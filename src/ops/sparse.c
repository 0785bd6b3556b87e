// Shape functions of sparse tensors.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_sparse_to_dense(rn_shape_ctx_t* ctx) {
  return rn_shape_from_input(ctx, 1, rn_shape_out(ctx, 0));
}

// A sparse tensor is three tensors: indices [values, dims], values [values] and sizes [dims].

// Checks the ranks of the inputs |i|, |v| (-1 for none) and |s| that make up a sparse tensor.
static rn_status_t check_parts(rn_shape_ctx_t* ctx, int i, int v, int s, rn_shape_t* out_indices,
                               rn_shape_t* out_values, rn_shape_t* out_sizes) {
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 2, out_indices));
  if (v >= 0) RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, v), 1, out_values));
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, s), 1, out_sizes);
}

rn_status_t rn_shape_fn_sparse_reorder(rn_shape_ctx_t* ctx) {
  rn_shape_t sizes;
  return check_parts(ctx, 0, 1, 2, rn_shape_out(ctx, 0), rn_shape_out(ctx, 1), &sizes);
}

rn_status_t rn_shape_fn_sparse_reshape(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, sizes, target;
  RN_TRY(check_parts(ctx, 0, -1, 1, &indices, NULL, &sizes));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &target));
  RN_TRY(rn_shape_matrix(ctx, indices.dims[0], target.dims[0], rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = target;
  return RN_OK;
}

// The rank of a sparse tensor with |sizes|; the kernel rejects sizes that are not a vector.
static int64_t size_count(rn_shape_t sizes) {
  int64_t count;
  return rn_shape_is_full(sizes) && rn_shape_count(sizes, &count) ? count : RN_UNKNOWN;
}

rn_status_t rn_shape_fn_sparse_slice(rn_shape_ctx_t* ctx) {
  rn_shape_t sizes = rn_shape_in(ctx, 2);
  RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, size_count(sizes), rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  *rn_shape_out(ctx, 2) = sizes;
  return RN_OK;
}

// One value per row of the indices in input |i|.
static rn_status_t value_per_index(rn_shape_ctx_t* ctx, int i) {
  rn_shape_t indices;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 2, &indices));
  return rn_shape_vector(ctx, indices.dims[0], rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_sparse_slice_grad(rn_shape_ctx_t* ctx) { return value_per_index(ctx, 1); }

rn_status_t rn_shape_fn_sparse_concat(rn_shape_ctx_t* ctx) {
  int n = (int)rn_ops_int(ctx, "N");
  int64_t total = 0, rank = RN_UNKNOWN;
  rn_shape_t all = RN_SHAPE_UNKNOWN;
  for (int k = 0; k < n; k++) {
    rn_shape_t indices, values, sizes;
    int64_t count;
    RN_TRY(check_parts(ctx, k, n + k, 2 * n + k, &indices, &values, &sizes));
    RN_TRY(rn_dim_merge(indices.dims[0], values.dims[0], &count));
    RN_TRY(rn_dim_merge(rank, indices.dims[1], &rank));
    RN_TRY(rn_shape_merge(ctx, all, sizes, &all));
    RN_TRY(rn_ops_add(total, count, &total));
  }
  if (rn_shape_has_rank(all)) RN_TRY(rn_dim_merge(rank, all.dims[0], &rank));
  RN_TRY(rn_shape_matrix(ctx, total, rank, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, total, rn_shape_out(ctx, 1)));
  return rn_shape_vector(ctx, rank, rn_shape_out(ctx, 2));
}

rn_status_t rn_shape_fn_sparse_split(rn_shape_ctx_t* ctx) {
  int n = (int)rn_ops_int(ctx, "num_split");
  rn_shape_t sizes = rn_shape_in(ctx, 3);
  for (int k = 0; k < n; k++) {
    RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, size_count(sizes), rn_shape_out(ctx, k)));
    RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, n + k)));
    *rn_shape_out(ctx, 2 * n + k) = sizes;
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_sparse_fill_empty_rows(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, values, sizes, known;
  int64_t count, rank;
  RN_TRY(check_parts(ctx, 0, 1, 2, &indices, &values, &sizes));
  RN_TRY(rn_ops_check_rank(ctx, 3, 0));
  RN_TRY(rn_dim_merge(indices.dims[0], values.dims[0], &count));
  RN_TRY(rn_dim_merge(indices.dims[1], sizes.dims[0], &rank));
  RN_TRY(rn_shape_from_input(ctx, 2, &known));
  RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, rank, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  RN_TRY(rn_shape_vector(ctx, known.rank > 0 ? known.dims[0] : RN_UNKNOWN, rn_shape_out(ctx, 2)));
  return rn_shape_vector(ctx, count, rn_shape_out(ctx, 3));
}

rn_status_t rn_shape_fn_sparse_tensor_dense_add(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 3);
  return RN_OK;
}

rn_status_t rn_shape_fn_sparse_dense_cwise(rn_shape_ctx_t* ctx) { return value_per_index(ctx, 0); }

rn_status_t rn_shape_fn_sparse_tensor_dense_mat_mul(rn_shape_ctx_t* ctx) {
  bool adjoint_a = rn_ops_bool(ctx, "adjoint_a"), adjoint_b = rn_ops_bool(ctx, "adjoint_b");
  rn_shape_t unused, a, b;
  int64_t inner;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &unused));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &unused));
  RN_TRY(rn_shape_from_input(ctx, 2, &a));
  RN_TRY(rn_shape_with_rank(ctx, a, 2, &a));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 3), 2, &b));
  RN_TRY(rn_dim_merge(a.dims[adjoint_a ? 0 : 1], b.dims[adjoint_b ? 1 : 0], &inner));
  return rn_shape_matrix(ctx, a.dims[adjoint_a ? 1 : 0], b.dims[adjoint_b ? 0 : 1],
                         rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_sparse_reduce(rn_shape_ctx_t* ctx) {
  const rn_tensor_t *sizes = rn_shape_input_value(ctx, 2), *axes = rn_shape_input_value(ctx, 3);
  bool keeps = rn_ops_bool(ctx, "keep_dims"), is_reduced[RN_MAX_RANK] = {false};
  int64_t dims[RN_MAX_RANK];
  int rank = 0;
  if (!sizes || !axes || sizes->count > RN_MAX_RANK) return rn_shape_fn_unknown(ctx);
  for (int64_t i = 0; i < axes->count; i++) {
    int64_t axis = RN_DATA(axes, const int32_t)[i];
    // The kernel rejects axes out of range; here they wrap around, as in TensorFlow.
    axis = sizes->count ? (axis + sizes->count) % sizes->count : -1;
    if (axis >= 0) is_reduced[axis] = true;
  }
  for (int64_t d = 0; d < sizes->count; d++)
    if (keeps || !is_reduced[d])
      dims[rank++] = is_reduced[d] ? 1 : RN_DATA(sizes, const int64_t)[d];
  return rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_sparse_add(rn_shape_ctx_t* ctx) {
  rn_shape_t sizes;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &sizes));
  RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, sizes.dims[0], rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  *rn_shape_out(ctx, 2) = sizes;
  return RN_OK;
}

rn_status_t rn_shape_fn_sparse_add_grad(rn_shape_ctx_t* ctx) {
  for (int i = 0; i < 2; i++) {
    rn_shape_t indices;
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1 + i), 2, &indices));
    RN_TRY(rn_shape_vector(ctx, indices.dims[0], rn_shape_out(ctx, i)));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_sparse_sparse(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, values, sizes;
  RN_TRY(check_parts(ctx, 0, 1, 2, &indices, &values, &sizes));
  RN_TRY(check_parts(ctx, 3, 4, 5, &indices, &values, &sizes));
  RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, RN_UNKNOWN, rn_shape_out(ctx, 0)));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1));
}

rn_status_t rn_shape_fn_sparse_fill_empty_rows_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &unused));
  *rn_shape_out(ctx, 1) = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_sparse_softmax(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, sizes;
  return check_parts(ctx, 0, 1, 2, &indices, rn_shape_out(ctx, 0), &sizes);
}

// Sets the outputs to indices [?, rank], values [?] and sizes [rank].
static rn_status_t sparse_of_rank(rn_shape_ctx_t* ctx, int64_t rank) {
  RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, rank, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  return rn_shape_vector(ctx, rank, rn_shape_out(ctx, 2));
}

rn_status_t rn_shape_fn_sparse_cross(rn_shape_ctx_t* ctx) { return sparse_of_rank(ctx, 2); }

rn_status_t rn_shape_fn_dense_to_dense_set(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b = rn_shape_in(ctx, 1), groups_a, groups_b, merged;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &a));
  if (!rn_shape_has_rank(a)) {
    RN_TRY(rn_shape_with_rank_at_least(ctx, b, 2, &b));
    return sparse_of_rank(ctx, rn_shape_has_rank(b) ? b.rank : RN_UNKNOWN);
  }
  RN_TRY(rn_shape_with_rank(ctx, b, a.rank, &b));
  RN_TRY(rn_shape_slice(ctx, a, 0, a.rank - 1, &groups_a));
  RN_TRY(rn_shape_slice(ctx, b, 0, b.rank - 1, &groups_b));
  RN_TRY(rn_shape_merge(ctx, groups_a, groups_b, &merged));
  return sparse_of_rank(ctx, a.rank);
}

// Checks that the parts of a sparse operand match; returns its rank, or RN_UNKNOWN.
static rn_status_t check_whole(rn_shape_ctx_t* ctx, int first, int64_t* out_rank) {
  rn_shape_t indices, values, sizes;
  RN_TRY(check_parts(ctx, first, first + 1, first + 2, &indices, &values, &sizes));
  int64_t rows = indices.dims[0], count = values.dims[0];
  int64_t columns = indices.dims[1], rank = sizes.dims[0];
  if (rows != RN_UNKNOWN && count != RN_UNKNOWN && rows != count)
    return rn_invalid_argument("Number of elements in index (%" PRId64 ") and values (%" PRId64
                               ") do not match.",
                               rows, count);
  if (columns != RN_UNKNOWN && rank != RN_UNKNOWN && columns != rank)
    return rn_invalid_argument(
        "Index rank (%" PRId64 ") and shape rank (%" PRId64 ") do not match.", columns, rank);
  *out_rank = rank;
  return RN_OK;
}

static rn_status_t check_set_rank(int64_t rank, int i) {
  if (rank == RN_UNKNOWN || rank >= 2) return RN_OK;
  return rn_invalid_argument("Input %d, expected rank >= 2, got %" PRId64 ".", i, rank);
}

rn_status_t rn_shape_fn_dense_to_sparse_set(rn_shape_ctx_t* ctx) {
  rn_shape_t a;
  int64_t rank;
  RN_TRY(check_whole(ctx, 1, &rank));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &a));
  RN_TRY(check_set_rank(rank, 1));
  return sparse_of_rank(ctx, rn_shape_has_rank(a) ? a.rank : rank);
}

rn_status_t rn_shape_fn_sparse_to_sparse_set(rn_shape_ctx_t* ctx) {
  int64_t rank, other;
  RN_TRY(check_whole(ctx, 0, &rank));
  RN_TRY(check_whole(ctx, 3, &other));
  RN_TRY(check_set_rank(rank, 0));
  RN_TRY(check_set_rank(other, 1));
  return sparse_of_rank(ctx, rank == RN_UNKNOWN ? other : rank);
}

// Serialized sparse tensors: [3] vectors of strings or variants.

rn_status_t rn_shape_fn_serialize_sparse(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, values, sizes;
  RN_TRY(check_parts(ctx, 0, 1, 2, &indices, &values, &sizes));
  return rn_shape_vector(ctx, 3, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_serialize_many_sparse(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, values, sizes;
  RN_TRY(check_parts(ctx, 0, 1, 2, &indices, &values, &sizes));
  return rn_shape_matrix(ctx, RN_UNKNOWN, 3, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_deserialize_sparse(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  int64_t three;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  RN_TRY(rn_dim_with_value(rn_shape_dim(in, -1), 3, &three));
  return sparse_of_rank(ctx, RN_UNKNOWN);
}

rn_status_t rn_shape_fn_deserialize_many_sparse(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  int64_t three;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &in));
  RN_TRY(rn_dim_with_value(in.dims[1], 3, &three));
  return sparse_of_rank(ctx, RN_UNKNOWN);
}

rn_status_t rn_shape_fn_add_sparse_to_tensors_map(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, values, sizes;
  RN_TRY(check_parts(ctx, 0, 1, 2, &indices, &values, &sizes));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_add_many_sparse_to_tensors_map(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, values, sizes;
  RN_TRY(check_parts(ctx, 0, 1, 2, &indices, &values, &sizes));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_take_many_sparse(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 1));
  return sparse_of_rank(ctx, RN_UNKNOWN);
}

rn_status_t rn_shape_fn_dense_count_sparse(rn_shape_ctx_t* ctx) {
  rn_shape_t values = rn_shape_in(ctx, 0), weights = rn_shape_in(ctx, 1);
  bool has_none = false;
  for (int d = 0; d < weights.rank; d++) has_none |= weights.dims[d] == 0;
  if (!has_none) RN_TRY(rn_shape_merge(ctx, weights, values, &values));
  return sparse_of_rank(ctx, rn_shape_has_rank(values) ? values.rank : RN_UNKNOWN);
}

rn_status_t rn_shape_fn_sparse_count_sparse(rn_shape_ctx_t* ctx) {
  rn_shape_t indices;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &indices));
  return sparse_of_rank(ctx, indices.dims[1]);
}

rn_status_t rn_shape_fn_ragged_count_sparse(rn_shape_ctx_t* ctx) { return sparse_of_rank(ctx, 2); }
