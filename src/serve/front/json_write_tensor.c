// Tensors to JSON text: see json.h.
#include "serve/front/json_internal.h"
#include "tensor/float16.h"
#include "tensor/tstring.h"

void rn_json_put_float(rn_strbuf_t* out, float value) {
  if (!rn_strbuf_reserve(out, RN_DECIMAL_ROOM)) return;
  char* end = rn_decimal_put_float(out->data + out->size, value);
  *end = '\0';
  out->size = (size_t)(end - out->data);
}

void rn_json_put_double(rn_strbuf_t* out, double value) {
  if (!rn_strbuf_reserve(out, RN_DECIMAL_ROOM)) return;
  char* end = rn_decimal_put_double(out->data + out->size, value);
  *end = '\0';
  out->size = (size_t)(end - out->data);
}

void rn_json_put_int(rn_strbuf_t* out, int64_t value) {
  if (!rn_strbuf_reserve(out, RN_DECIMAL_ROOM)) return;
  char* end = rn_decimal_put_int(out->data + out->size, value);
  *end = '\0';
  out->size = (size_t)(end - out->data);
}

// Writes element |i| of a number tensor to |to|, which has room for RN_DECIMAL_ROOM bytes. Inlined
// with a constant type.
__attribute__((always_inline)) static inline char* put_number(char* to, const void* data,
                                                              rn_dtype_t dtype, int64_t i) {
  switch (dtype) {
    case RN_FLOAT:
      return rn_decimal_put_float(to, ((const float*)data)[i]);
    case RN_DOUBLE:
      return rn_decimal_put_double(to, ((const double*)data)[i]);
    case RN_HALF:
      return rn_decimal_put_float(to, rn_half_to_float(((const uint16_t*)data)[i]));
    case RN_BFLOAT16:
      return rn_decimal_put_float(to, rn_bfloat16_to_float(((const uint16_t*)data)[i]));
    case RN_INT8:
      return rn_decimal_put_int(to, ((const int8_t*)data)[i]);
    case RN_INT16:
      return rn_decimal_put_int(to, ((const int16_t*)data)[i]);
    case RN_INT32:
      return rn_decimal_put_int(to, ((const int32_t*)data)[i]);
    case RN_INT64:
      return rn_decimal_put_int(to, ((const int64_t*)data)[i]);
    case RN_UINT8:
      return rn_decimal_put_uint(to, ((const uint8_t*)data)[i]);
    case RN_UINT16:
      return rn_decimal_put_uint(to, ((const uint16_t*)data)[i]);
    case RN_UINT32:
      return rn_decimal_put_uint(to, ((const uint32_t*)data)[i]);
    case RN_UINT64:
      return rn_decimal_put_uint(to, ((const uint64_t*)data)[i]);
    default: {
      bool value = ((const uint8_t*)data)[i];
      memcpy(to, value ? "true" : "false", value ? 4 : 5);
      return to + (value ? 4 : 5);
    }
  }
}

// Appends |count| numbers from element |first| on, with ", " between them. Makes room for a block
// at a time, so that the loop checks nothing.
__attribute__((always_inline)) static inline void put_numbers_of(rn_strbuf_t* out, const void* data,
                                                                 rn_dtype_t dtype, int64_t first,
                                                                 int64_t count) {
  const int64_t block = 256;
  for (int64_t begin = 0; begin < count; begin += block) {
    int64_t end = begin + block < count ? begin + block : count;
    if (!rn_strbuf_reserve(out, (size_t)(end - begin) * (RN_DECIMAL_ROOM + 2))) return;
    char* to = out->data + out->size;
    for (int64_t i = begin; i < end; ++i) {
      if (i) {
        *to++ = ',';
        *to++ = ' ';
      }
      to = put_number(to, data, dtype, first + i);
    }
    *to = '\0';
    out->size = (size_t)(to - out->data);
  }
}

static void put_numbers(rn_strbuf_t* out, const rn_tensor_t* tensor, int64_t first, int64_t count) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      put_numbers_of(out, tensor->data, RN_FLOAT, first, count);
      break;
    case RN_DOUBLE:
      put_numbers_of(out, tensor->data, RN_DOUBLE, first, count);
      break;
    case RN_INT64:
      put_numbers_of(out, tensor->data, RN_INT64, first, count);
      break;
    default:
      put_numbers_of(out, tensor->data, tensor->dtype, first, count);
  }
}

static void put_strings(rn_strbuf_t* out, const rn_tensor_t* tensor, int64_t first, int64_t count,
                        bool as_b64) {
  for (int64_t i = 0; i < count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[first + i]);
    if (i) rn_strbuf_append(out, RN_STR(", "));
    if (as_b64)
      rn_json_put_b64(out, text);
    else
      rn_json_put_string(out, text);
  }
}

static void put_values(rn_strbuf_t* out, const rn_tensor_t* tensor, int64_t first, int64_t count,
                       bool as_b64) {
  if (tensor->dtype == RN_STRING)
    put_strings(out, tensor, first, count, as_b64);
  else
    put_numbers(out, tensor, first, count);
}

// Appends the part of |tensor| from dimension |axis| on that begins with element |*inout|, and
// moves that behind it. Recurses by rank, which is at most RN_MAX_RANK.
static void put_nested(rn_strbuf_t* out, const rn_tensor_t* tensor, int axis, int64_t* inout,
                       bool as_b64) {
  if (axis == tensor->rank) {
    put_values(out, tensor, *inout, 1, as_b64);
    ++*inout;
    return;
  }
  int64_t size = rn_tensor_dim(tensor, axis);
  rn_strbuf_append(out, RN_STR("["));
  if (axis == tensor->rank - 1) {
    put_values(out, tensor, *inout, size, as_b64);
    *inout += size;
  } else {
    for (int64_t i = 0; i < size; ++i) {
      if (i) rn_strbuf_append(out, RN_STR(", "));
      put_nested(out, tensor, axis + 1, inout, as_b64);
    }
  }
  rn_strbuf_append(out, RN_STR("]"));
}

static rn_status_t check_dtype(const rn_tensor_t* tensor) {
  return rn_json_has_dtype(tensor->dtype)
             ? RN_OK
             : rn_invalid_argument("Failed to write JSON value for tensor type: %s",
                                   rn_dtype_name(tensor->dtype));
}

rn_status_t rn_json_put_tensor(rn_strbuf_t* out, const rn_tensor_t* tensor, bool as_b64) {
  RN_RETURN_IF_ERROR(check_dtype(tensor));
  int64_t next = 0;
  put_nested(out, tensor, 0, &next, as_b64);
  return rn_strbuf_status(out);
}

rn_status_t rn_json_put_row(rn_strbuf_t* out, const rn_tensor_t* tensor, int64_t row, bool as_b64) {
  RN_RETURN_IF_ERROR(check_dtype(tensor));
  int64_t next = tensor->count / rn_tensor_dim(tensor, 0) * row;
  put_nested(out, tensor, 1, &next, as_b64);
  return rn_strbuf_status(out);
}

rn_status_t rn_json_put_flat(rn_strbuf_t* out, const rn_tensor_t* tensor, bool as_b64) {
  RN_RETURN_IF_ERROR(check_dtype(tensor));
  rn_strbuf_append(out, RN_STR("["));
  put_values(out, tensor, 0, tensor->count, as_b64);
  rn_strbuf_append(out, RN_STR("]"));
  return rn_strbuf_status(out);
}
