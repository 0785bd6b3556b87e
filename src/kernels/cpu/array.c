// See array.h.
#include "kernels/cpu/array.h"

#include <stdio.h>

#include "tensor/float16.h"

rn_shape_text_t rn_shape_text(rn_shape_t shape) {
  rn_shape_text_t out;
  size_t at = 0;
  out.text[at++] = '[';
  for (int32_t d = 0; d < shape.rank; ++d) {
    // A number takes up to 20 characters; the closing takes some more.
    if (at + 28 > sizeof out.text) {
      at += (size_t)snprintf(out.text + at, sizeof out.text - at, ",...");
      break;
    }
    at += shape.dims[d] == RN_UNKNOWN
              ? (size_t)snprintf(out.text + at, sizeof out.text - at, d ? ",?" : "?")
              : (size_t)snprintf(out.text + at, sizeof out.text - at, d ? ",%lld" : "%lld",
                                 (long long)shape.dims[d]);
  }
  out.text[at++] = ']';
  out.text[at] = 0;
  return out;
}

rn_shape_text_t rn_place_text(const rn_tensor_t* tensor, int64_t i) {
  int64_t place[RN_MAX_RANK];
  const int64_t* dims = rn_tensor_dims(tensor);
  for (int d = tensor->rank - 1; d >= 0; --d) {
    place[d] = i % dims[d];
    i /= dims[d];
  }
  return rn_shape_text((rn_shape_t){tensor->rank, place});
}

double rn_number_at(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      return RN_DATA(tensor, const float)[i];
    case RN_DOUBLE:
      return RN_DATA(tensor, const double)[i];
    case RN_HALF:
      return rn_half_to_float(RN_DATA(tensor, const uint16_t)[i]);
    case RN_BFLOAT16:
      return rn_bfloat16_to_float(RN_DATA(tensor, const uint16_t)[i]);
    default:
      return (double)rn_int_at(tensor, i);
  }
}

rn_status_t rn_read_dims(const rn_tensor_t* sizes, int64_t* dims, rn_shape_t* out) {
  if (sizes->count > RN_MAX_RANK) return rn_invalid_argument("Too many dimensions");
  for (int64_t i = 0; i < sizes->count; ++i) {
    dims[i] = rn_int_at(sizes, i);
    if (dims[i] < 0) return rn_invalid_argument("Dimension %lld must be >= 0", (long long)dims[i]);
  }
  *out = (rn_shape_t){(int32_t)sizes->count, dims};
  int64_t count;
  if (!rn_shape_count(*out, &count))
    return rn_invalid_argument("Shape %s would have more than 2**63 - 1 elements",
                               rn_shape_text(*out).text);
  return RN_OK;
}

rn_status_t rn_read_shape(const rn_tensor_t* sizes, int64_t* dims, rn_shape_t* out) {
  if (sizes->rank != 1 || (sizes->dtype != RN_INT32 && sizes->dtype != RN_INT64))
    return rn_invalid_argument("shape must be a vector of {int32,int64}, got shape %s",
                               rn_text_of(sizes).text);
  return rn_read_dims(sizes, dims, out);
}

void rn_print_types(rn_strbuf_t* buf, const rn_dtype_t* types, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    rn_strbuf_printf(buf, "%s%s", i ? ", " : "", rn_dtype_name(types[i]));
}
