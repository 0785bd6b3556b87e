// Numbers out of strings.
#include <errno.h>

#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

#define MAX_TEXT \
  64  // no number that fits a 64-bit type is longer, but floats may have any number of digits

static bool to_f64(rn_str_t text, double* out, bool narrow) {
  char small[MAX_TEXT], *copy = small;
  if (text.size >= MAX_TEXT && !(copy = malloc(text.size + 1))) return false;
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  char* end = copy;
  errno = 0;
  *out = narrow ? (double)strtof(copy, &end) : strtod(copy, &end);
  bool ok = text.size > 0 && end == copy + text.size && memchr(text.data, '\0', text.size) == NULL;
  if (copy != small) free(copy);
  return ok;
}

static bool to_integer(rn_str_t text, rn_dtype_t dtype, int64_t* out) {
  if (!rn_str_to_i64(text, out)) return false;
  return dtype == RN_INT64 || (*out >= INT32_MIN && *out <= INT32_MAX);
}

static bool convert(rn_str_t text, rn_tensor_t* out, int64_t i) {
  double number;
  int64_t integer;
  switch (out->dtype) {
    case RN_FLOAT:
      if (!to_f64(text, &number, true)) return false;
      RN_DATA(out, float)[i] = (float)number;
      return true;
    case RN_DOUBLE:
      return to_f64(text, &RN_DATA(out, double)[i], false);
    case RN_INT32:
      if (!to_integer(text, RN_INT32, &integer)) return false;
      RN_DATA(out, int32_t)[i] = (int32_t)integer;
      return true;
    default:
      return to_integer(text, RN_INT64, &RN_DATA(out, int64_t)[i]);
  }
}

static rn_status_t string_to_number(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  for (int64_t i = 0; i < in->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(in, const rn_tstring_t)[i]);
    if (!convert(rn_str_trim(text), out, i))
      return rn_invalid_argument("StringToNumberOp could not correctly convert string: %.*s",
                                 RN_STR_ARGS(text));
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "StringToNumber",
     .device = "CPU",
     .types = {{"out_type", RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_INDEX}},
     .compute = string_to_number},
};
RN_KERNEL_FAMILY(cpu_string_number, rows);
