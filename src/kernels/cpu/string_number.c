// Numbers out of strings.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // strtod_l
#endif
#include <locale.h>

#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// What one call works with. The C library wants a NUL behind a number, and would take the point
// from the host program's locale.
typedef struct reader_t {
  rn_strbuf_t text;
  locale_t locale;
} reader_t;

static rn_status_t to_f64(reader_t* reader, rn_str_t text, bool is_narrow, double* out, bool* ok) {
  *ok = false;
  if (text.size == 0) return RN_OK;
  reader->text.size = 0;
  rn_strbuf_append(&reader->text, text);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&reader->text));
  const char* copy = reader->text.data;
  char* end = NULL;
  *out = is_narrow ? (double)strtof_l(copy, &end, reader->locale)
                   : strtod_l(copy, &end, reader->locale);
  *ok = end == copy + text.size;
  return RN_OK;
}

static bool to_integer(rn_str_t text, rn_dtype_t dtype, int64_t* out) {
  if (!rn_str_to_i64(text, out)) return false;
  return dtype == RN_INT64 || (*out >= INT32_MIN && *out <= INT32_MAX);
}

static rn_status_t convert(reader_t* reader, rn_str_t text, rn_tensor_t* out, int64_t i, bool* ok) {
  double number = 0;
  int64_t integer = 0;
  switch (out->dtype) {
    case RN_FLOAT:
      RN_RETURN_IF_ERROR(to_f64(reader, text, true, &number, ok));
      RN_DATA(out, float)[i] = (float)number;
      return RN_OK;
    case RN_DOUBLE:
      return to_f64(reader, text, false, &RN_DATA(out, double)[i], ok);
    case RN_INT32:
      *ok = to_integer(text, RN_INT32, &integer);
      RN_DATA(out, int32_t)[i] = (int32_t)integer;
      return RN_OK;
    default:
      *ok = to_integer(text, RN_INT64, &RN_DATA(out, int64_t)[i]);
      return RN_OK;
  }
}

static rn_status_t convert_all(reader_t* reader, const rn_tensor_t* in, rn_tensor_t* out) {
  for (int64_t i = 0; i < in->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(in, const rn_tstring_t)[i]);
    bool ok = false;
    RN_RETURN_IF_ERROR(convert(reader, rn_str_trim(text), out, i, &ok));
    if (!ok)
      return rn_invalid_argument("StringToNumberOp could not correctly convert string: %.*s",
                                 RN_STR_ARGS(text));
  }
  return RN_OK;
}

static rn_status_t string_to_number(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  reader_t reader = {.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
  if (!reader.locale) return rn_out_of_memory();
  rn_strbuf_init(&reader.text, ctx->kernel->allocator);
  rn_status_t status = convert_all(&reader, in, out);
  rn_strbuf_clear(&reader.text);
  freelocale(reader.locale);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "StringToNumber",
     .device = "CPU",
     .types = {{"out_type", RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_INDEX}},
     .compute = string_to_number},
};
RN_KERNEL_FAMILY(cpu_string_number, rows);
