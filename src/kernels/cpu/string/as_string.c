// AsString: numbers, texts and variants as strings.
#include <math.h>
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/list/variant_text.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"
#include "tensor/tstring.h"

// |format| formats one number of the widest kind; a complex one uses it twice. With a
// width, strings are truncated and padded with blanks.
typedef struct as_string_t {
  char format[80];
  int64_t width, precision;
  bool is_left;
  bool is_plain;  // digits and a point, nothing else
} as_string_t;

static rn_status_t as_string_init(const rn_kernel_init_t* init, void* state) {
  as_string_t* as = state;
  rn_dtype_t dtype = rn_init_type(init, "T");
  bool is_scientific = rn_init_bool(init, "scientific"),
       is_shortest = rn_init_bool(init, "shortest");
  int64_t precision = rn_init_int(init, "precision"), width = rn_init_int(init, "width");
  rn_str_t fill = rn_init_string(init, "fill");
  bool is_fraction = rn_dtype_is_floating(dtype) || rn_dtype_is_complex(dtype);
  if (is_scientific && is_shortest)
    return rn_invalid_argument("Cannot select both scientific and shortest notation");
  if (fill.size > 1) return rn_invalid_argument("Fill string must be one or fewer characters");
  if (fill.size && !strchr(" +-0#", fill.data[0]))
    return rn_invalid_argument("Fill argument not supported: \"%.*s\"", RN_STR_ARGS(fill));
  if (width > 65536 || precision > 65536)
    return rn_invalid_argument("width and precision must be at most 65536");
  *as = (as_string_t){.width = width, .precision = precision};
  as->is_left = fill.size && fill.data[0] == '-';
  if (dtype == RN_STRING) return RN_OK;
  if (!is_fraction && (is_scientific || is_shortest))
    return rn_invalid_argument("scientific and shortest format not supported for datatype %s",
                               rn_dtype_name(dtype));
  if (!is_fraction && precision >= 0)
    return rn_invalid_argument("precision not supported for datatype %s", rn_dtype_name(dtype));
  char number[32] = "%";
  size_t at = 1;
  if (fill.size) number[at++] = fill.data[0];
  if (width >= 0) at += (size_t)snprintf(number + at, sizeof number - at, "%d", (int)width);
  if (precision >= 0)
    at += (size_t)snprintf(number + at, sizeof number - at, ".%d", (int)precision);
  const char* conversion =
      is_fraction ? (is_scientific ? "e"
                     : is_shortest ? "g"
                                   : "f")
      : dtype == RN_UINT8 || dtype == RN_UINT16 || dtype == RN_UINT32 || dtype == RN_UINT64 ? "llu"
                                                                                            : "lld";
  as->is_plain = !is_scientific && !is_shortest && !fill.size && width < 0;
  snprintf(number + at, sizeof number - at, "%s", conversion);
  snprintf(as->format, sizeof as->format, rn_dtype_is_complex(dtype) ? "(%s,%s)" : "%s", number,
           number);
  return RN_OK;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void print_number(rn_strbuf_t* buf, const char* format, const rn_tensor_t* input,
                         int64_t i) {
  switch (input->dtype) {
    case RN_FLOAT:
      rn_strbuf_printf(buf, format, (double)RN_DATA(input, const float)[i]);
      break;
    case RN_DOUBLE:
      rn_strbuf_printf(buf, format, RN_DATA(input, const double)[i]);
      break;
    case RN_HALF:
      rn_strbuf_printf(buf, format, (double)rn_half_to_float(RN_DATA(input, const uint16_t)[i]));
      break;
    case RN_BFLOAT16:
      rn_strbuf_printf(buf, format,
                       (double)rn_bfloat16_to_float(RN_DATA(input, const uint16_t)[i]));
      break;
    case RN_COMPLEX64:
      rn_strbuf_printf(buf, format, (double)RN_DATA(input, const float)[2 * i],
                       (double)RN_DATA(input, const float)[2 * i + 1]);
      break;
    case RN_COMPLEX128:
      rn_strbuf_printf(buf, format, RN_DATA(input, const double)[2 * i],
                       RN_DATA(input, const double)[2 * i + 1]);
      break;
    case RN_BOOL:
      rn_strbuf_append(buf, RN_DATA(input, const bool)[i] ? RN_STR("true") : RN_STR("false"));
      break;
    default:
      rn_strbuf_printf(buf, format, (long long)rn_int_at(input, i));
  }
}
#pragma GCC diagnostic pop

// The digits of |value|, before |end|; at least |least| of them.
static char* digits_before(char* end, uint64_t value, int least) {
  for (; value > 0 || least > 0; value /= 10, --least) *--end = (char)('0' + value % 10);
  return end;
}

// A decimal number of |places| digits after the point, as printf writes it. False if it is not that
// easy: x 10^places must be exact in double, so x has the 24 bits of a float.
static bool print_fixed(rn_strbuf_t* buf, float x, int places) {
  enum { MOST_PLACES = 12 };
  static const double powers[MOST_PLACES + 1] = {1e0, 1e1, 1e2, 1e3,  1e4,  1e5, 1e6,
                                                 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};
  if (places > MOST_PLACES) return false;
  const double scaled = fabs((double)x) * powers[places];
  if (!(scaled < 0x1p62)) return false;
  const uint64_t whole = (uint64_t)rint(scaled), power = (uint64_t)powers[places];
  char text[40], *end = text + sizeof text, *at = end;
  if (places > 0) {
    at = digits_before(at, whole % power, places);
    *--at = '.';
  }
  at = digits_before(at, whole / power, 1);
  if (signbit(x)) *--at = '-';
  rn_strbuf_append_n(buf, at, (size_t)(end - at));
  return true;
}

static void print_integer(rn_strbuf_t* buf, int64_t x) {
  char text[24], *end = text + sizeof text;
  char* at = digits_before(end, x < 0 ? 0 - (uint64_t)x : (uint64_t)x, 1);
  if (x < 0) *--at = '-';
  rn_strbuf_append_n(buf, at, (size_t)(end - at));
}

// The usual numbers, without printf.
static bool print_plain(rn_strbuf_t* buf, const as_string_t* as, const rn_tensor_t* input,
                        int64_t i) {
  if (!as->is_plain) return false;
  switch (input->dtype) {
    case RN_FLOAT:
      return print_fixed(buf, RN_DATA(input, const float)[i],
                         as->precision < 0 ? 6 : (int)as->precision);
    case RN_INT32:
    case RN_INT64:
      print_integer(buf, rn_int_at(input, i));
      return true;
    default:
      return false;
  }
}

static void print_text(rn_strbuf_t* buf, const as_string_t* as, rn_str_t text) {
  if (as->precision >= 0 && text.size > (size_t)as->precision) text.size = (size_t)as->precision;
  int blanks = text.size < (size_t)as->width ? (int)((size_t)as->width - text.size) : 0;
  rn_strbuf_printf(buf, "%*s%.*s%*s", as->is_left ? 0 : blanks, "", RN_STR_ARGS(text),
                   as->is_left ? blanks : 0, "");
}

static rn_status_t as_string(rn_kernel_ctx_t* ctx) {
  const as_string_t* as = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (input->dtype == RN_STRING && as->width < 0) return rn_forward(ctx, 0, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < input->count; ++i) {
    buf.size = 0;
    if (input->dtype == RN_STRING)
      print_text(&buf, as, rn_text_at(input, i));
    else if (input->dtype == RN_VARIANT)
      rn_variant_print(&buf, RN_DATA(input, rn_object_t*)[i]);
    else if (!print_plain(&buf, as, input, i))
      print_number(&buf, as->format, input, i);
    status = rn_strbuf_status(&buf);
    if (rn_ok(status)) status = rn_text_set(out, i, rn_strbuf_view(&buf));
  }
  rn_strbuf_clear(&buf);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "AsString",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING) | RN_T(VARIANT)}},
     .state_size = sizeof(as_string_t),
     .init = as_string_init,
     .compute = as_string},
};
RN_KERNEL_FAMILY(cpu_as_string, rows);
