// SparseToDense: values scattered into a tensor of one default value.
#include <inttypes.h>
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/sparse/dense.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

rn_status_t rn_to_dense_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_bool(init, "validate_indices");
  return RN_OK;
}

rn_status_t rn_to_dense_read(rn_kernel_ctx_t* ctx, rn_to_dense_t* sparse) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *shape = rn_in(ctx, 1), *values = rn_in(ctx, 2);
  if (indices->rank > 2)
    return rn_invalid_argument("sparse_indices should be a scalar, vector, or matrix, got shape %s",
                               rn_text_of(indices).text);
  sparse->indices = indices;
  sparse->values = values;
  sparse->count = indices->rank > 0 ? rn_tensor_dim(indices, 0) : 1;
  sparse->rank = indices->rank > 1 ? rn_tensor_dim(indices, 1) : 1;
  if (shape->rank != 1)
    return rn_invalid_argument("output_shape must be rank 1, got shape %s", rn_text_of(shape).text);
  if (shape->count != sparse->rank)
    return rn_invalid_argument("output_shape has incorrect number of elements: %" PRId64
                               " should be: %" PRId64,
                               shape->count, sparse->rank);
  if (values->rank != 0 && (values->rank != 1 || values->count != sparse->count))
    return rn_invalid_argument("sparse_values has incorrect shape %s, should be [] or [%" PRId64
                               "]",
                               rn_text_of(values).text, sparse->count);
  if (rn_in(ctx, 3)->rank != 0) return rn_invalid_argument("default_value should be a scalar.");
  return RN_OK;
}

// The sparse values with the sizes of the output.
typedef struct to_dense_sparse_t {
  rn_to_dense_t in;
  const int64_t* dims;
} to_dense_sparse_t;

static rn_shape_text_t index_text(const to_dense_sparse_t* sparse, int64_t i) {
  rn_shape_text_t text = {.text = "["};
  size_t used = 1;
  for (int64_t d = 0; d < sparse->in.rank; ++d) {
    int n = snprintf(text.text + used, sizeof text.text - used, "%s%" PRId64, d ? "," : "",
                     rn_int_at(sparse->in.indices, i * sparse->in.rank + d));
    if (n < 0 || used + (size_t)n >= sizeof text.text - 1) break;
    used += (size_t)n;
  }
  memcpy(text.text + used, "]", 2);
  return text;
}

// Checks that element |i| is within the shape and, if they must be ordered, after element i - 1.
static rn_status_t check_index(const to_dense_sparse_t* sparse, int64_t i, bool is_ordered) {
  int order = i == 0 || !is_ordered ? 1 : 0;
  for (int64_t d = 0; d < sparse->in.rank; ++d) {
    int64_t at = rn_int_at(sparse->in.indices, i * sparse->in.rank + d);
    if (at < 0 || at >= sparse->dims[d]) {
      rn_shape_t shape = {(int32_t)sparse->in.rank, sparse->dims};
      if (!is_ordered)
        return rn_invalid_argument("Indices are not valid (out of bounds).  Shape: %s",
                                   rn_shape_text(shape).text);
      return rn_invalid_argument("indices[%" PRId64 "] = %s is out of bounds: need 0 <= index < %s",
                                 i, index_text(sparse, i).text, rn_shape_text(shape).text);
    }
    if (order == 0) {
      int64_t before = rn_int_at(sparse->in.indices, (i - 1) * sparse->in.rank + d);
      order = (at > before) - (at < before);
    }
  }
  if (order > 0) return RN_OK;
  if (order == 0)
    return rn_invalid_argument("indices[%" PRId64 "] = %s is repeated", i,
                               index_text(sparse, i).text);
  return rn_invalid_argument(
      "indices[%" PRId64
      "] = %s is out of order. Many sparse ops require sorted indices.\n    Use "
      "`tf.sparse.reorder` to create a correctly ordered copy.\n\n",
      i, index_text(sparse, i).text);
}

static rn_status_t copy_element(rn_tensor_t* to, int64_t at, const rn_tensor_t* from, int64_t i) {
  if (to->dtype == RN_STRING) {
    rn_str_t text = rn_tstring_view(&RN_DATA(from, const rn_tstring_t)[i]);
    return rn_tstring_assign(&RN_DATA(to, rn_tstring_t)[at], text.data, text.size)
               ? RN_OK
               : rn_out_of_memory();
  }
  size_t item = rn_dtype_size(to->dtype);
  memcpy((char*)to->data + (size_t)at * item, (const char*)from->data + (size_t)i * item, item);
  return RN_OK;
}

// Writes the places of all elements in the output, if they are inside it and, if they must be,
// ordered. False if something is wrong, which check_index then finds.
#define PLACES(T)                                                                       \
  static bool places_##T(const to_dense_sparse_t* sparse, const T* at, bool is_ordered, \
                         int64_t* out) {                                                \
    int64_t last = -1;                                                                  \
    bool is_ok = true;                                                                  \
    for (int64_t i = 0; sparse->in.rank == 1 && i < sparse->in.count; ++i) {            \
      const int64_t place = at[i];                                                      \
      is_ok &= (uint64_t)place < (uint64_t)sparse->dims[0];                             \
      is_ok &= !is_ordered || place > last;                                             \
      out[i] = last = place;                                                            \
    }                                                                                   \
    if (sparse->in.rank == 1) return is_ok;                                             \
    for (int64_t i = 0; i < sparse->in.count; ++i) {                                    \
      int64_t place = 0;                                                                \
      for (int64_t d = 0; d < sparse->in.rank; ++d, ++at) {                             \
        is_ok &= (uint64_t)*at < (uint64_t)sparse->dims[d];                             \
        place = (int64_t)((uint64_t)place * (uint64_t)sparse->dims[d] + (uint64_t)*at); \
      }                                                                                 \
      is_ok &= !is_ordered || place > last;                                             \
      out[i] = last = place;                                                            \
    }                                                                                   \
    return is_ok;                                                                       \
  }
PLACES(int32_t)
PLACES(int64_t)

static rn_status_t find_places(const to_dense_sparse_t* sparse, bool is_ordered, int64_t* places) {
  const rn_tensor_t* indices = sparse->in.indices;
  if (indices->dtype == RN_INT32 ? places_int32_t(sparse, indices->data, is_ordered, places)
                                 : places_int64_t(sparse, indices->data, is_ordered, places))
    return RN_OK;
  for (int64_t i = 0; i < sparse->in.count; ++i)
    RN_RETURN_IF_ERROR(check_index(sparse, i, is_ordered));
  return RN_OK;
}

static rn_status_t scatter(const to_dense_sparse_t* sparse, const int64_t* places,
                           rn_tensor_t* out) {
  const rn_tensor_t* values = sparse->in.values;
  const int64_t step = values->rank ? 1 : 0;
  if (rn_dtype_is_plain(out->dtype) && rn_dtype_size(out->dtype) == 4) {
    for (int64_t i = 0; i < sparse->in.count; ++i)
      RN_DATA(out, uint32_t)[places[i]] = RN_DATA(values, const uint32_t)[i * step];
    return RN_OK;
  }
  for (int64_t i = 0; i < sparse->in.count; ++i)
    RN_RETURN_IF_ERROR(copy_element(out, places[i], values, i * step));
  return RN_OK;
}

// Values of |item| bytes at the places |at| of a vector; false if an index is wrong.
#define SCATTER_VECTOR(T)                                                                       \
  static inline bool scatter_##T(const to_dense_sparse_t* sparse, const T* at, bool is_ordered, \
                                 size_t item, char* out) {                                      \
    const char* from = sparse->in.values->data;                                                 \
    const size_t step = sparse->in.values->rank ? item : 0;                                     \
    int64_t last = -1;                                                                          \
    bool is_ok = true;                                                                          \
    for (int64_t i = 0; i < sparse->in.count; ++i, from += step) {                              \
      const int64_t place = at[i];                                                              \
      if ((uint64_t)place >= (uint64_t)sparse->dims[0]) return false;                           \
      is_ok &= place > last;                                                                    \
      last = place;                                                                             \
      memcpy(out + (size_t)place * item, from, item);                                           \
    }                                                                                           \
    return is_ok || !is_ordered;                                                                \
  }
SCATTER_VECTOR(int32_t)
SCATTER_VECTOR(int64_t)

// Whether the values are done: those of a vector need no places of their own.
static bool scatter_vector(const to_dense_sparse_t* sparse, bool is_ordered, rn_tensor_t* out) {
  const rn_tensor_t* indices = sparse->in.indices;
  const bool is_narrow = indices->dtype == RN_INT32;
  const size_t item = rn_dtype_size(out->dtype);
  if (sparse->in.rank != 1 || !rn_dtype_is_plain(out->dtype)) return false;
  switch (item) {  // sizes that are constants make a store of each copy
    case 4:
      return is_narrow ? scatter_int32_t(sparse, indices->data, is_ordered, 4, out->data)
                       : scatter_int64_t(sparse, indices->data, is_ordered, 4, out->data);
    case 8:
      return is_narrow ? scatter_int32_t(sparse, indices->data, is_ordered, 8, out->data)
                       : scatter_int64_t(sparse, indices->data, is_ordered, 8, out->data);
    default:
      return is_narrow ? scatter_int32_t(sparse, indices->data, is_ordered, item, out->data)
                       : scatter_int64_t(sparse, indices->data, is_ordered, item, out->data);
  }
}

static rn_status_t fill(rn_kernel_ctx_t* ctx, rn_shape_t shape, rn_tensor_t** out) {
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, out));
  return rn_move_fill(rn_ctx_pool(ctx), (*out)->dtype, rn_in(ctx, 3)->data, (*out)->data,
                      (*out)->count);
}

static rn_status_t scatter_compute(rn_kernel_ctx_t* ctx) {
  to_dense_sparse_t sparse = {0};
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_to_dense_read(ctx, &sparse.in));
  RN_RETURN_IF_ERROR(rn_read_dims(rn_in(ctx, 1), dims, &shape));
  sparse.dims = dims;
  const bool is_ordered = *(const bool*)ctx->state;
  rn_tensor_t places = {0}, *out = NULL;
  if (sparse.in.rank == 1) {
    RN_RETURN_IF_ERROR(fill(ctx, shape, &out));
    if (scatter_vector(&sparse, is_ordered, out)) return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &sparse.in.count}, &places));
  rn_status_t status = find_places(&sparse, is_ordered, places.data);
  if (rn_ok(status) && !out) status = fill(ctx, shape, &out);
  if (rn_ok(status)) status = scatter(&sparse, places.data, out);
  rn_tensor_clear(&places);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SparseToDense",
     .device = "CPU",
     .types = {{"T", RN_TYPES_PLAIN | RN_T(STRING)}, {"Tindices", RN_TYPES_INDEX}},
     .host_args = RN_HOST_ARGS("output_shape"),
     .state_size = sizeof(bool),
     .init = rn_to_dense_init,
     .compute = scatter_compute},
};
RN_KERNEL_FAMILY(cpu_sparse_to_dense, rows);
