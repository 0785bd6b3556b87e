// Checks and helpers for sparse tensors: see sparse.h.
#include "kernels/cpu/sparse/sparse.h"

#include <stdio.h>

#include "kernels/cpu/array.h"

int rn_sparse_compare(const int64_t* a, const int64_t* b, int32_t rank) {
  for (int32_t d = 0; d < rank; ++d)
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  return 0;
}

rn_status_t rn_sparse_take(const rn_tensor_t* indices, const rn_tensor_t* values,
                           const rn_tensor_t* shape, rn_sparse_t* out) {
  if (shape->count > RN_MAX_RANK)
    return rn_invalid_argument("Too many dimensions in tensor: %lld", (long long)shape->count);
  *out = (rn_sparse_t){RN_DATA(indices, const int64_t), values, RN_DATA(shape, const int64_t),
                       rn_tensor_dim(indices, 0), (int32_t)shape->count};
  return RN_OK;
}

rn_status_t rn_sparse_check_ranks(const rn_tensor_t* indices, const rn_tensor_t* values,
                                  const rn_tensor_t* shape) {
  if (indices->rank != 2)
    return rn_invalid_argument("Input indices should be a matrix but received shape %s",
                               rn_text_of(indices).text);
  if (values->rank != 1)
    return rn_invalid_argument("Input values should be a vector but received shape %s",
                               rn_text_of(values).text);
  if (shape->rank != 1)
    return rn_invalid_argument("Input shape should be a vector but received shape %s",
                               rn_text_of(shape).text);
  return RN_OK;
}

rn_status_t rn_sparse_check_named(rn_kernel_ctx_t* ctx, int first, const char* name) {
  const rn_tensor_t *indices = rn_in(ctx, first), *values = rn_in(ctx, first + 1);
  const rn_tensor_t* shape = rn_in(ctx, first + 2);
  if (indices->rank != 2)
    return rn_invalid_argument("Input %s_indices should be a matrix but received shape: %s", name,
                               rn_text_of(indices).text);
  if (values->rank == 1 && shape->rank == 1) return RN_OK;
  return rn_invalid_argument(
      "Inputs %s_values and %s_shape should be vectors but received shapes: %s and %s", name, name,
      rn_text_of(values).text, rn_text_of(shape).text);
}

rn_status_t rn_sparse_check_sizes(const rn_tensor_t* shape) {
  int64_t product = 1;
  for (int64_t d = 0; d < shape->count; ++d) {
    int64_t size = rn_int_at(shape, d), before = product;
    if (size < 0)
      return rn_invalid_argument("Expected shape dimensions to be non-negative, got %lld",
                                 (long long)size);
    if (!rn_mul_i64_ok(before, size, &product))
      return rn_invalid_argument("Encountered overflow when multiplying %lld with %lld, result: -1",
                                 (long long)before, (long long)size);
  }
  return RN_OK;
}

rn_status_t rn_sparse_check_reduced(const rn_tensor_t* shape, const rn_tensor_t* axes) {
  if (shape->rank != 1)
    return rn_invalid_argument("Expected input_shape to be a vector; got shape: %s",
                               rn_text_of(shape).text);
  if (axes->rank > 1)
    return rn_invalid_argument("Expected reduction_axes to be a scalar or a vector; got shape: %s",
                               rn_text_of(axes).text);
  if (shape->count > RN_MAX_RANK)
    return rn_invalid_argument("Too many dimensions in tensor: %lld", (long long)shape->count);
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(shape));
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t axis = rn_int_at(axes, i);
    if (axis < -shape->count || axis >= shape->count)
      return rn_invalid_argument(
          "Invalid reduction dimension %lld, for input with %lld dimensions.", (long long)axis,
          (long long)shape->count);
  }
  return RN_OK;
}

rn_status_t rn_sparse_read(rn_kernel_ctx_t* ctx, int first, rn_sparse_t* out) {
  const rn_tensor_t *indices = rn_in(ctx, first), *values = rn_in(ctx, first + 1);
  const rn_tensor_t* shape = rn_in(ctx, first + 2);
  if (indices->rank != 2)
    return rn_invalid_argument("indices must be a matrix, but got: %s", rn_text_of(indices).text);
  if (values->rank != 1)
    return rn_invalid_argument("vals must be a vec, but got: %s", rn_text_of(values).text);
  if (shape->rank != 1) return rn_invalid_argument("Shape must be a 1D tensor.");
  if (rn_tensor_dim(indices, 0) != values->count)
    return rn_invalid_argument(
        "indices and values rows (indexing dimension) must match. (indices = %lld, values = %lld)",
        (long long)rn_tensor_dim(indices, 0), (long long)values->count);
  if (rn_tensor_dim(indices, 1) != shape->count)
    return rn_invalid_argument("Order length must be SparseTensor rank.");
  return rn_sparse_take(indices, values, shape, out);
}

rn_status_t rn_sparse_read_parts(rn_kernel_ctx_t* ctx, int first, rn_sparse_t* out) {
  static const char* const names[] = {"indices", "values", "shape"};
  const rn_tensor_t *indices = rn_in(ctx, first), *values = rn_in(ctx, first + 1);
  const rn_tensor_t* shape = rn_in(ctx, first + 2);
  for (int i = 0; i < 3; ++i) {
    int rank = rn_in(ctx, first + i)->rank;
    if (rank != (i ? 1 : 2))
      return rn_invalid_argument("Sparse %s must be rank %d but is rank %d", names[i], i ? 1 : 2,
                                 rank);
  }
  if (values->count != rn_tensor_dim(indices, 0))
    return rn_invalid_argument(
        "Number of elements in indices (%lld) and values (%lld) do not match",
        (long long)rn_tensor_dim(indices, 0), (long long)values->count);
  if (shape->count != rn_tensor_dim(indices, 1))
    return rn_invalid_argument("Index rank (%lld) and shape rank (%lld) do not match",
                               (long long)rn_tensor_dim(indices, 1), (long long)shape->count);
  return rn_sparse_take(indices, values, shape, out);
}

rn_numbers_text_t rn_numbers_text(const int64_t* numbers, int32_t count, const char* between) {
  rn_numbers_text_t out = {""};
  size_t used = 0;
  for (int32_t i = 0; i < count && used + 32 < sizeof out.text; ++i)
    used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%lld", i ? between : "",
                             (long long)numbers[i]);
  return out;
}

// Whether index |i| lies within the sizes.
static bool is_within(const rn_sparse_t* sparse, int64_t i) {
  const int64_t* index = rn_sparse_index(sparse, i);
  for (int32_t d = 0; d < sparse->rank; ++d)
    if (index[d] < 0 || index[d] >= sparse->shape[d]) return false;
  return true;
}

rn_status_t rn_sparse_check_bounds(const rn_sparse_t* sparse) {
  for (int64_t i = 0; i < sparse->count; ++i)
    if (!is_within(sparse, i))
      return rn_invalid_argument(
          "Sparse index tuple indices[%lld, :] = [%s] is out of bounds", (long long)i,
          rn_numbers_text(rn_sparse_index(sparse, i), sparse->rank, ", ").text);
  return RN_OK;
}

rn_status_t rn_sparse_check(const rn_sparse_t* sparse) {
  for (int64_t i = 0; i < sparse->count; ++i) {
    const int64_t* index = rn_sparse_index(sparse, i);
    if (!is_within(sparse, i))
      return rn_invalid_argument("indices[%lld] = [%s] is out of bounds: need 0 <= index < [%s]",
                                 (long long)i, rn_numbers_text(index, sparse->rank, ",").text,
                                 rn_numbers_text(sparse->shape, sparse->rank, ",").text);
    int order = i ? rn_sparse_compare(index - sparse->rank, index, sparse->rank) : -1;
    if (order > 0)
      return rn_invalid_argument(
          "indices[%lld] = [%s] is out of order. Many sparse ops require sorted indices.\n"
          "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n",
          (long long)i, rn_numbers_text(index, sparse->rank, ",").text);
    if (order == 0)
      return rn_invalid_argument("indices[%lld] = [%s] is repeated", (long long)i,
                                 rn_numbers_text(index, sparse->rank, ",").text);
  }
  return RN_OK;
}

rn_status_t rn_sparse_output(rn_kernel_ctx_t* ctx, int first, int64_t count, int32_t rank,
                             const int64_t* shape, int64_t** out_indices,
                             rn_tensor_t** out_values) {
  const int64_t dims[2] = {count, rank}, size = rank;
  rn_tensor_t *indices = NULL, *sizes = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, first, (rn_shape_t){2, dims}, &indices));
  RN_RETURN_IF_ERROR(rn_output(ctx, first + 1, (rn_shape_t){1, dims}, out_values));
  RN_RETURN_IF_ERROR(rn_output(ctx, first + 2, (rn_shape_t){1, &size}, &sizes));
  if (rank) memcpy(sizes->data, shape, (size_t)rank * sizeof *shape);
  *out_indices = RN_DATA(indices, int64_t);
  return RN_OK;
}
