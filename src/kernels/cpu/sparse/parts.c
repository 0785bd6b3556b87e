// Splits sparse tensors into rows and joins them.
#include "kernels/cpu/sparse/parts.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"

void rn_sparse_parts_clear(rn_sparse_parts_t* parts) {
  for (int p = 0; p < RN_SPARSE_PARTS; ++p) rn_tensor_clear(&parts->part[p]);
}

static rn_status_t check_ranks(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"indices", "values", "shape"};
  for (int p = 0; p < RN_SPARSE_PARTS; ++p)
    if (rn_in(ctx, p)->rank != (p == RN_SPARSE_INDICES ? 2 : 1))
      return rn_invalid_argument("Input %s should be a %s but received shape %s", names[p],
                                 p == RN_SPARSE_INDICES ? "matrix" : "vector",
                                 rn_text_of(rn_in(ctx, p)).text);
  return RN_OK;
}

rn_status_t rn_sparse_parts_whole(rn_kernel_ctx_t* ctx, rn_sparse_parts_t* out) {
  *out = (rn_sparse_parts_t){0};
  RN_RETURN_IF_ERROR(check_ranks(ctx));
  for (int p = 0; p < RN_SPARSE_PARTS; ++p) {
    rn_status_t status = rn_tensor_keep(rn_in(ctx, p), ctx->kernel->host_memory, &out->part[p]);
    if (!rn_ok(status)) {
      rn_sparse_parts_clear(out);
      return status;
    }
  }
  return RN_OK;
}

// Entries [begin, end) without their first coordinate.
static rn_status_t cut_row(rn_kernel_ctx_t* ctx, const rn_sparse_t* in, int64_t begin, int64_t end,
                           rn_sparse_parts_t* out) {
  rn_allocator_t memory = ctx->kernel->host_memory;
  int64_t count = end - begin, rank = in->rank - 1, dims[2] = {count, rank};
  rn_tensor_t* part = out->part;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(memory, RN_INT64, (rn_shape_t){2, dims}, &part[RN_SPARSE_INDICES]));
  RN_RETURN_IF_ERROR(
      rn_tensor_create(memory, in->values->dtype, (rn_shape_t){1, dims}, &part[RN_SPARSE_VALUES]));
  RN_RETURN_IF_ERROR(
      rn_tensor_create(memory, RN_INT64, (rn_shape_t){1, &rank}, &part[RN_SPARSE_SHAPE]));
  for (int64_t i = 0; i < count; ++i)
    memcpy(RN_DATA(&part[RN_SPARSE_INDICES], int64_t) + i * rank,
           rn_sparse_index(in, begin + i) + 1, (size_t)rank * sizeof(int64_t));
  memcpy(part[RN_SPARSE_SHAPE].data, in->shape + 1, (size_t)rank * sizeof(int64_t));
  if (!count) return RN_OK;
  return rn_move_row(in->values->dtype, rn_element(in->values, begin), part[RN_SPARSE_VALUES].data,
                     count);
}

rn_status_t rn_sparse_parts_each(rn_kernel_ctx_t* ctx, const rn_sparse_visitor_t* visitor) {
  rn_sparse_t in;
  RN_RETURN_IF_ERROR(check_ranks(ctx));
  if (rn_in(ctx, 2)->count < 2)
    return rn_invalid_argument("Rank of input SparseTensor should be > 1, but saw rank: %lld",
                               (long long)rn_in(ctx, 2)->count);
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(rn_in(ctx, 2)));
  RN_RETURN_IF_ERROR(rn_sparse_read(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_sparse_check(&in));
  RN_RETURN_IF_ERROR(visitor->begin(visitor->arg, in.shape[0]));
  int64_t at = 0;
  for (int64_t row = 0; row < in.shape[0]; ++row) {
    int64_t begin = at;
    while (at < in.count && rn_sparse_index(&in, at)[0] == row) ++at;
    rn_sparse_parts_t parts = {0};
    rn_status_t status = cut_row(ctx, &in, begin, at, &parts);
    if (rn_ok(status)) status = visitor->visit(visitor->arg, row, &parts);
    rn_sparse_parts_clear(&parts);
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

// Ranks in a map's messages include the dimension in front.
static rn_status_t check_parts(const rn_sparse_parts_t* parts, int64_t n, rn_dtype_t dtype,
                               int64_t rank, bool is_map) {
  const rn_tensor_t* indices = &parts->part[RN_SPARSE_INDICES];
  const rn_tensor_t* values = &parts->part[RN_SPARSE_VALUES];
  const rn_tensor_t* shape = &parts->part[RN_SPARSE_SHAPE];
  if (indices->dtype != RN_INT64 || indices->rank != 2)
    return rn_invalid_argument(
        "Expected serialized_sparse[%lld, 0] to represent an index matrix but received shape %s",
        (long long)n, rn_text_of(indices).text);
  if (values->rank != 1)
    return rn_invalid_argument(
        "Expected serialized_sparse[%lld, 1] to represent a values vector but received shape %s",
        (long long)n, rn_text_of(values).text);
  if (shape->dtype != RN_INT64 || shape->rank != 1)
    return rn_invalid_argument(
        "Expected serialized_sparse[%lld, 2] to represent a shape vector but received shape %s",
        (long long)n, rn_text_of(shape).text);
  if (values->dtype != dtype)
    return rn_invalid_argument(
        "Requested SparseTensor of type %s but SparseTensor[%lld].values.dtype() == %s",
        rn_dtype_name(dtype), (long long)n, rn_dtype_name(values->dtype));
  if (rank >= 0 && shape->count != rank)
    return rn_invalid_argument(
        "Inconsistent %s across SparseTensors: rank prior to SparseTensor[%lld] was: %lld but "
        "rank of SparseTensor[%lld] is: %lld",
        is_map ? "rank" : "shape", (long long)n, (long long)(rank + is_map), (long long)n,
        (long long)(shape->count + is_map));
  if (values->count != rn_tensor_dim(indices, 0))
    return rn_invalid_argument(
        "Expected row counts of indices and values to match but they do not: %lld vs. %lld",
        (long long)rn_tensor_dim(indices, 0), (long long)values->count);
  if (shape->count != rn_tensor_dim(indices, 1))
    return rn_invalid_argument(
        "Expected column counts of indices to match size of shape but they do not: %lld vs. %lld",
        (long long)rn_tensor_dim(indices, 1), (long long)shape->count);
  return RN_OK;
}

// The coordinates of tensor |n| in |dims|.
static void place_in(int64_t n, int32_t rank, const int64_t* dims, int64_t* out) {
  for (int32_t d = rank - 1; d >= 0; --d) {
    out[d] = n % dims[d];
    n /= dims[d];
  }
}

rn_status_t rn_sparse_parts_join(rn_kernel_ctx_t* ctx, const rn_sparse_parts_t* all, int64_t count,
                                 int32_t rank, const int64_t* dims) {
  rn_dtype_t dtype = rn_dtype_base(ctx->kernel->output_types[1]);
  int64_t own = -1, total = 0, shape[RN_MAX_RANK], *indices = NULL, at = 0;
  rn_tensor_t* values = NULL;
  for (int64_t n = 0; n < count; ++n) {
    const rn_tensor_t* sizes = &all[n].part[RN_SPARSE_SHAPE];
    RN_RETURN_IF_ERROR(
        check_parts(&all[n], n, dtype, own, ctx->kernel->input_types[0] == RN_INT64));
    own = sizes->count;
    if (own + rank > RN_MAX_RANK)
      return rn_invalid_argument("A sparse tensor of rank %lld is too large",
                                 (long long)(own + rank));
    for (int64_t d = 0; d < own; ++d) {
      int64_t size = rn_int_at(sizes, d);
      if (!n || size > shape[rank + d]) shape[rank + d] = size;
    }
    total += all[n].part[RN_SPARSE_VALUES].count;
  }
  if (rank) memcpy(shape, dims, (size_t)rank * sizeof *shape);
  int32_t all_rank = rank + (int32_t)own;
  RN_RETURN_IF_ERROR(rn_sparse_output(ctx, 0, total, all_rank, shape, &indices, &values));
  for (int64_t n = 0; n < count; ++n) {
    const rn_tensor_t* from = &all[n].part[RN_SPARSE_VALUES];
    const int64_t* own_indices = RN_DATA(&all[n].part[RN_SPARSE_INDICES], const int64_t);
    for (int64_t i = 0; i < from->count; ++i) {
      int64_t* index = indices + (at + i) * all_rank;
      place_in(n, rank, dims, index);
      if (own) memcpy(index + rank, own_indices + i * own, (size_t)own * sizeof *index);
    }
    if (from->count)
      RN_RETURN_IF_ERROR(rn_move_row(dtype, from->data, rn_element(values, at), from->count));
    at += from->count;
  }
  return RN_OK;
}
