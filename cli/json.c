// JSON: see json.h.
#include "cli/json.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "tensor/float16.h"
#include "tensor/tstring.h"

static rn_status_t print(json_t* root, size_t flags) {
  if (!root) return rn_out_of_memory();
  int failed = json_dumpf(root, stdout, flags);
  json_decref(root);
  putchar('\n');
  return failed ? rn_internal("the JSON cannot be written") : RN_OK;
}

rn_status_t rn_cli_json_print(json_t* root) { return print(root, JSON_INDENT(2)); }
rn_status_t rn_cli_json_print_line(json_t* root) { return print(root, JSON_COMPACT); }

json_t* rn_cli_json_str(rn_str_t text) {
  rn_strbuf_t clean;
  rn_strbuf_init(&clean, rn_allocator_default());
  for (size_t i = 0; i < text.size;) {
    rn_str_t rest = rn_str_n(text.data + i, text.size - i);
    uint32_t code;
    size_t size = rn_utf8_decode(rest, &code);
    rn_strbuf_append(&clean,
                     code == RN_UTF8_BAD ? RN_STR("\xef\xbf\xbd") : rn_str_n(rest.data, size));
    i += size;
  }
  rn_str_t view = rn_strbuf_view(&clean);
  json_t* string = json_stringn(view.data, view.size);
  rn_strbuf_clear(&clean);
  return string;
}

json_t* rn_cli_json_shape(rn_shape_t shape) {
  if (shape.rank < 0) return json_null();
  json_t* dims = json_array();
  for (int i = 0; i < shape.rank; ++i)
    json_array_append_new(dims, shape.dims[i] < 0 ? json_null() : json_integer(shape.dims[i]));
  return dims;
}

static json_t* real(double value) {
  if (isnan(value)) return json_string("nan");
  return isinf(value) ? json_string(value < 0 ? "-inf" : "inf") : json_real(value);
}

// The shortest number that reads back as the same float.
static json_t* real_of_float(float value) {
  char text[32];
  for (int digits = 1; isfinite(value) && digits <= 9; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, (double)value);
    if (strtof(text, NULL) == value) return real(strtod(text, NULL));
  }
  return real((double)value);
}

static json_t* pair(json_t* re, json_t* im) { return json_pack("[o,o]", re, im); }

static json_t* element(const rn_tensor_t* t, int64_t i) {
  switch (t->dtype) {
    case RN_FLOAT:
      return real_of_float(RN_DATA(t, float)[i]);
    case RN_DOUBLE:
      return real(RN_DATA(t, double)[i]);
    case RN_HALF:
      return real_of_float(rn_half_to_float(RN_DATA(t, uint16_t)[i]));
    case RN_BFLOAT16:
      return real_of_float(rn_bfloat16_to_float(RN_DATA(t, uint16_t)[i]));
    case RN_COMPLEX64:
      return pair(real_of_float(RN_DATA(t, float)[2 * i]),
                  real_of_float(RN_DATA(t, float)[2 * i + 1]));
    case RN_COMPLEX128:
      return pair(real(RN_DATA(t, double)[2 * i]), real(RN_DATA(t, double)[2 * i + 1]));
    case RN_BOOL:
      return json_boolean(RN_DATA(t, uint8_t)[i]);
    case RN_STRING:
      return rn_cli_json_str(rn_tstring_view(&RN_DATA(t, rn_tstring_t)[i]));
    case RN_INT8:
    case RN_QINT8:
      return json_integer(RN_DATA(t, int8_t)[i]);
    case RN_INT16:
    case RN_QINT16:
      return json_integer(RN_DATA(t, int16_t)[i]);
    case RN_INT32:
    case RN_QINT32:
      return json_integer(RN_DATA(t, int32_t)[i]);
    case RN_INT64:
      return json_integer(RN_DATA(t, int64_t)[i]);
    case RN_UINT8:
    case RN_QUINT8:
      return json_integer(RN_DATA(t, uint8_t)[i]);
    case RN_UINT16:
    case RN_QUINT16:
      return json_integer(RN_DATA(t, uint16_t)[i]);
    case RN_UINT32:
      return json_integer(RN_DATA(t, uint32_t)[i]);
    case RN_UINT64:
      return RN_DATA(t, uint64_t)[i] > INT64_MAX ? real((double)RN_DATA(t, uint64_t)[i])
                                                 : json_integer((int64_t)RN_DATA(t, uint64_t)[i]);
    default:
      return json_null();  // has no values that can be shown
  }
}

static json_t* nest(const rn_tensor_t* t, int axis, int64_t offset) {
  if (axis == t->rank) return element(t, offset);
  int64_t step = 1;
  for (int a = axis + 1; a < t->rank; ++a) step *= rn_tensor_dim(t, a);
  json_t* list = json_array();
  for (int64_t i = 0; i < rn_tensor_dim(t, axis); ++i)
    json_array_append_new(list, nest(t, axis + 1, offset + i * step));
  return list;
}

json_t* rn_cli_json_tensor(const rn_tensor_t* tensor) {
  return json_pack("{s:s, s:o, s:o}", "dtype", rn_dtype_name(tensor->dtype), "shape",
                   rn_cli_json_shape(rn_tensor_shape(tensor)), "values", nest(tensor, 0, 0));
}
