// See batch_join.h.
#include "serve/model/batch_join.h"

#include "tensor/tstring.h"

bool rn_batch_joinable(const rn_tensor_t* a, const rn_tensor_t* b, bool pads) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  if (pads || a->rank < 2) return true;
  return memcmp(rn_tensor_dims(a) + 1, rn_tensor_dims(b) + 1,
                (size_t)(a->rank - 1) * sizeof(int64_t)) == 0;
}

// Copies |count| elements to |at| of |to|.
static rn_status_t copy_elements(rn_tensor_t* to, int64_t at, const rn_tensor_t* from,
                                 int64_t begin, int64_t count) {
  size_t size = rn_dtype_size(to->dtype);
  if (to->dtype != RN_STRING) {
    if (count)
      memcpy((char*)to->data + (size_t)at * size, (const char*)from->data + (size_t)begin * size,
             (size_t)count * size);
    return RN_OK;
  }
  for (int64_t i = 0; i < count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(from, rn_tstring_t)[begin + i]);
    if (!rn_tstring_assign(&RN_DATA(to, rn_tstring_t)[at + i], text.data, text.size))
      return rn_out_of_memory();
  }
  return RN_OK;
}

// Fills [at, at + count) with the first element of |from|.
static rn_status_t fill(rn_tensor_t* to, int64_t at, int64_t count, const rn_tensor_t* from) {
  for (int64_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(copy_elements(to, at + i, from, 0, 1));
  return RN_OK;
}

// The elements of |tensor| below dimension |axis|.
static int64_t stride(const rn_tensor_t* tensor, int axis) {
  int64_t count = 1;
  for (int i = axis + 1; i < tensor->rank; ++i) count *= rn_tensor_dim(tensor, i);
  return count;
}

// Copies |rows| parts of dimension |axis|, each filled up to the size that |to| has there.
static rn_status_t copy_padded(rn_tensor_t* to, int64_t at, const rn_tensor_t* from, int64_t begin,
                               int axis, int64_t rows) {
  int64_t to_stride = stride(to, axis), from_stride = stride(from, axis);
  if (to_stride == from_stride && axis + 1 >= from->rank)
    return copy_elements(to, at, from, begin, rows);
  int64_t have = rn_tensor_dim(from, axis + 1), want = rn_tensor_dim(to, axis + 1);
  int64_t part = stride(to, axis + 1);
  for (int64_t i = 0; i < rows; ++i) {
    int64_t start = at + i * to_stride;
    RN_RETURN_IF_ERROR(copy_padded(to, start, from, begin + i * from_stride, axis + 1, have));
    RN_RETURN_IF_ERROR(fill(to, start + have * part, (want - have) * part, from));
  }
  return RN_OK;
}

static rn_status_t copy_all(rn_tensor_t* to, const rn_tensor_t* const* tensors, int count,
                            bool pads) {
  int64_t row = stride(to, 0), at = 0;
  for (int i = 0; i < count; ++i) {
    const rn_tensor_t* from = tensors[i];
    int64_t rows = rn_tensor_dim(from, 0);
    bool is_same = !pads || rn_batch_joinable(to, from, false);
    if (!is_same && !from->count && rows)
      return rn_invalid_argument("Got empty tensor in batch of non-empty tensors.");
    RN_RETURN_IF_ERROR(is_same ? copy_elements(to, at * row, from, 0, from->count)
                               : copy_padded(to, at * row, from, 0, 0, rows));
    at += rows;
  }
  for (; at < rn_tensor_dim(to, 0); ++at)
    RN_RETURN_IF_ERROR(copy_elements(to, at * row, to, 0, row));
  return RN_OK;
}

rn_status_t rn_batch_join(const rn_tensor_t* const* tensors, int count, int64_t rows, bool pads,
                          const rn_device_t* device, rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  int64_t dims[RN_MAX_RANK + 1];
  int rank = tensors[0]->rank;
  for (int axis = 0; axis < rank; ++axis) {
    dims[axis] = rn_tensor_dim(tensors[0], axis);
    for (int i = 1; pads && i < count; ++i)
      if (rn_tensor_dim(tensors[i], axis) > dims[axis])
        dims[axis] = rn_tensor_dim(tensors[i], axis);
  }
  dims[0] = rows;
  rn_dtype_t dtype = tensors[0]->dtype;
  rn_shape_t shape = {rank, dims};
  RN_RETURN_IF_ERROR(device ? rn_device_host_tensor(device, allocator, dtype, shape, out)
                            : rn_tensor_create(allocator, dtype, shape, out));
  rn_status_t status = copy_all(out, tensors, count, pads);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

rn_status_t rn_batch_rows(const rn_tensor_t* tensor, int64_t begin, int64_t rows,
                          rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK + 1];
  memcpy(dims, rn_tensor_dims(tensor), tensor->rank * sizeof *dims);
  dims[0] = rows;
  RN_RETURN_IF_ERROR(rn_tensor_init(out, tensor->dtype, (rn_shape_t){tensor->rank, dims}));
  out->buffer = tensor->buffer;
  out->data = (char*)tensor->data +
              (size_t)begin * (size_t)stride(tensor, 0) * rn_dtype_size(tensor->dtype);
  rn_buffer_retain(out->buffer);
  return RN_OK;
}
