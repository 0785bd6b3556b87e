// Where (coordinates of nonzero elements) and UnravelIndex.
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"

// Whether element |i| is nonzero; decided by element size where possible.
static inline bool is_set(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      return RN_DATA(tensor, const float)[i] != 0;
    case RN_DOUBLE:
      return RN_DATA(tensor, const double)[i] != 0;
    case RN_BFLOAT16:
      return RN_DATA(tensor, const uint16_t)[i] & 0x7fff;
    case RN_COMPLEX64:
      return RN_DATA(tensor, const float)[2 * i] != 0 ||
             RN_DATA(tensor, const float)[2 * i + 1] != 0;
    case RN_COMPLEX128:
      return RN_DATA(tensor, const double)[2 * i] != 0 ||
             RN_DATA(tensor, const double)[2 * i + 1] != 0;
    default:
      break;
  }
  switch (rn_dtype_size(tensor->dtype)) {
    case 1:
      return RN_DATA(tensor, const uint8_t)[i];
    case 2:
      return RN_DATA(tensor, const uint16_t)[i];
    case 4:
      return RN_DATA(tensor, const uint32_t)[i];
    default:
      return RN_DATA(tensor, const uint64_t)[i];
  }
}

static rn_status_t where(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const int rank = input->rank;
  if (rank == 0) return rn_invalid_argument("WhereOp : Unhandled input dimensions: 0");
  if (input->dtype == RN_HALF)
    return rn_unimplemented(
        "No WhereOp available for float16/half type on CPU; dying in CPU WhereOp to avoid silently "
        "creating costly copies from device.");
  int64_t count = 0;
  for (int64_t i = 0; i < input->count; ++i) count += is_set(input, i);
  const int64_t dims[2] = {count, rank};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  int64_t* to = RN_DATA(out, int64_t);
  for (int64_t i = 0; i < input->count; ++i) {
    if (!is_set(input, i)) continue;
    int64_t left = i;
    for (int d = rank - 1; d >= 0; --d) {
      to[d] = left % rn_tensor_dim(input, d);
      left /= rn_tensor_dim(input, d);
    }
    to += rank;
  }
  return RN_OK;
}

static rn_status_t check_unravel(const rn_tensor_t* indices, const rn_tensor_t* dims) {
  if (indices->count == 0)
    return rn_invalid_argument("received empty tensor indices: Tensor<type: %s shape: %s values: >",
                               rn_dtype_name(indices->dtype), rn_text_of(indices).text);
  if (indices->rank > 1)
    return rn_invalid_argument("The indices can only be scalar or vector, got \"%s\"",
                               rn_text_of(indices).text);
  if (dims->rank != 1)
    return rn_invalid_argument("The indices can only be 1-D, got \"%s\"", rn_text_of(dims).text);
  int64_t product = 1;
  bool overflows = false;
  for (int64_t d = 0; d < dims->count; ++d) {
    int64_t size = rn_int_at(dims, d);
    if (size == 0)
      return rn_invalid_argument(
          "Input dims cannot contain a dim of zero, but dims contains zero at index %lld",
          (long long)d);
    if (size < 0)
      return rn_invalid_argument("Input dims cannot be negative. Got dim = %lld at index %lld",
                                 (long long)size, (long long)d);
    overflows = overflows || !rn_mul_i64_ok(product, size, &product) ||
                (dims->dtype == RN_INT32 && product > INT32_MAX);
  }
  if (overflows) return rn_invalid_argument("Input dims product is causing integer overflow");
  for (int64_t i = 0; i < indices->count; ++i)
    if (rn_int_at(indices, i) >= product)
      return rn_invalid_argument("index is out of bound as with dims");
  return RN_OK;
}

static rn_status_t unravel_index(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *dims = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(check_unravel(indices, dims));
  const int64_t shape[2] = {dims->count, indices->count};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){indices->rank + 1, shape}, &out));
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t left = rn_int_at(indices, i);
    for (int64_t d = dims->count - 1; d >= 0; --d) {
      int64_t size = rn_int_at(dims, d);
      rn_int_set(out, d * indices->count + i, left % size);
      left /= size;
    }
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Where",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}},
     .compute = where},
    {.op = "UnravelIndex", .device = "CPU", .compute = unravel_index},
};
RN_KERNEL_FAMILY(cpu_where, rows);
