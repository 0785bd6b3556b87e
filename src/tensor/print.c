// Prints values. See print.h.
#include "tensor/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tensor/tstring.h"

// printf uses the decimal point of the host program's locale; replaces it by ".".
static void append_number(rn_strbuf_t* buf, const char* digits) {
  bool in_point = false;  // the locale's decimal point may have several bytes
  for (; *digits; digits++) {
    bool plain = (*digits >= '0' && *digits <= '9') || (*digits >= 'a' && *digits <= 'z') ||
                 *digits == '-' || *digits == '+';
    if (plain || !in_point) rn_strbuf_append_n(buf, plain ? digits : ".", 1);
    in_point = !plain;
  }
}

void rn_print_float(rn_strbuf_t* buf, float value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%.6g", (double)value);
  if (strtof(digits, NULL) != value) snprintf(digits, sizeof digits, "%.9g", (double)value);
  append_number(buf, digits);
}

void rn_print_double(rn_strbuf_t* buf, double value) {
  char digits[40];
  snprintf(digits, sizeof digits, "%.15g", value);
  if (strtod(digits, NULL) != value) snprintf(digits, sizeof digits, "%.17g", value);
  append_number(buf, digits);
}

void rn_print_escaped(rn_strbuf_t* buf, rn_str_t text, bool keep_utf8) {
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    switch (c) {
      case '\n':
        rn_strbuf_append(buf, RN_STR("\\n"));
        break;
      case '\r':
        rn_strbuf_append(buf, RN_STR("\\r"));
        break;
      case '\t':
        rn_strbuf_append(buf, RN_STR("\\t"));
        break;
      case '"':
      case '\'':
      case '\\':
        rn_strbuf_printf(buf, "\\%c", c);
        break;
      default:
        if ((c >= 0x20 && c < 0x7f) || (keep_utf8 && c >= 0x80)) {
          rn_strbuf_append_n(buf, &c, 1);
        } else {
          rn_strbuf_printf(buf, "\\%03o", c);
        }
    }
  }
}

// How a small float type uses its special codes.
typedef enum special_t {
  IEEE,         // the largest exponent means infinity and NaN
  ONE_NAN,      // only the code of all ones is NaN
  MINUS_ZERO,   // the code of -0 is NaN
  ALL_NUMBERS,  // every code is a number
} special_t;

// A binary float of 1 + |exponent_bits| + |fraction_bits| bits.
static float decode(uint32_t bits, int exponent_bits, int fraction_bits, int bias,
                    special_t special) {
  uint32_t sign = bits >> (exponent_bits + fraction_bits) & 1;
  uint32_t exponent_mask = (1u << exponent_bits) - 1, fraction_mask = (1u << fraction_bits) - 1;
  uint32_t exponent = bits >> fraction_bits & exponent_mask, fraction = bits & fraction_mask;
  if (special == MINUS_ZERO && sign && !exponent && !fraction) return -NAN;
  float value;
  if (special == IEEE && exponent == exponent_mask) {
    value = fraction ? NAN : INFINITY;
  } else if (special == ONE_NAN && exponent == exponent_mask && fraction == fraction_mask) {
    value = NAN;
  } else if (exponent == 0) {
    value = ldexpf((float)fraction, 1 - bias - fraction_bits);
  } else {
    value = ldexpf((float)(fraction | 1u << fraction_bits), (int)exponent - bias - fraction_bits);
  }
  return sign ? -value : value;
}

// The low |width| bits, as a signed number.
static int64_t low_signed(uint8_t byte, int width) {
  int64_t value = byte & ((1 << width) - 1);
  return value >> (width - 1) ? value - (1 << width) : value;
}

static void print_i64(rn_strbuf_t* buf, int64_t value) { rn_strbuf_printf(buf, "%" PRId64, value); }
static void print_u64(rn_strbuf_t* buf, uint64_t value) {
  rn_strbuf_printf(buf, "%" PRIu64, value);
}

static void print_element(rn_strbuf_t* buf, const rn_tensor_t* tensor, int64_t i) {
#define AT(type) (RN_DATA(tensor, type)[i])
  switch (tensor->dtype) {
    case RN_FLOAT:
      return rn_print_float(buf, AT(float));
    case RN_DOUBLE:
      return rn_print_double(buf, AT(double));
    case RN_HALF:
      return rn_print_float(buf, decode(AT(uint16_t), 5, 10, 15, IEEE));
    case RN_BFLOAT16:
      return rn_print_float(buf, decode(AT(uint16_t), 8, 7, 127, IEEE));
    case RN_FLOAT8_E5M2:
      return rn_print_float(buf, decode(AT(uint8_t), 5, 2, 15, IEEE));
    case RN_FLOAT8_E4M3FN:
      return rn_print_float(buf, decode(AT(uint8_t), 4, 3, 7, ONE_NAN));
    case RN_FLOAT8_E4M3B11FNUZ:
      return rn_print_float(buf, decode(AT(uint8_t), 4, 3, 11, MINUS_ZERO));
    case RN_FLOAT4_E2M1FN:
      return rn_print_float(buf, decode(AT(uint8_t) & 15, 2, 1, 1, ALL_NUMBERS));
    case RN_INT8:
    case RN_QINT8:
      return print_i64(buf, AT(int8_t));
    case RN_INT16:
    case RN_QINT16:
      return print_i64(buf, AT(int16_t));
    case RN_INT32:
      return print_i64(buf, AT(int32_t));
    case RN_INT64:
      return print_i64(buf, AT(int64_t));
    case RN_UINT8:
    case RN_QUINT8:
      return print_u64(buf, AT(uint8_t));
    case RN_BOOL:
      return print_u64(buf, AT(uint8_t) != 0);
    case RN_UINT16:
    case RN_QUINT16:
      return print_u64(buf, AT(uint16_t));
    case RN_UINT32:
      return print_u64(buf, AT(uint32_t));
    case RN_UINT64:
      return print_u64(buf, AT(uint64_t));
    case RN_INT4:
      return print_i64(buf, low_signed(AT(uint8_t), 4));
    case RN_UINT4:
      return print_u64(buf, AT(uint8_t) & 15);
    case RN_INT2:
      return print_i64(buf, low_signed(AT(uint8_t), 2));
    case RN_UINT2:
      return print_u64(buf, AT(uint8_t) & 3);
    case RN_STRING:
      return rn_print_escaped(buf, rn_tstring_view(&AT(rn_tstring_t)), true);
    default:
      rn_strbuf_append(buf, RN_STR("?"));
  }
#undef AT
}

// Number of innermost dimensions that begin or end at element |i|: the number of brackets there.
static int brackets_at(const rn_tensor_t* tensor, int64_t i) {
  int brackets = 0;
  int64_t period = 1;
  for (int axis = tensor->rank - 1; axis > 0; axis--) {
    period *= rn_tensor_dim(tensor, axis);
    if (i % period) break;
    brackets++;
  }
  return brackets;
}

static void append_times(rn_strbuf_t* buf, const char* text, int times) {
  for (int i = 0; i < times; i++) rn_strbuf_append(buf, rn_str(text));
}

void rn_print_values(rn_strbuf_t* buf, const rn_tensor_t* tensor, int64_t limit) {
  if (!tensor->data || tensor->is_ref) return;
  int64_t shown = tensor->count < limit ? tensor->count : limit;
  int depth = tensor->rank > 1 ? tensor->rank - 1 : 0;
  for (int64_t i = 0; i < shown; i++) {
    int opened = depth ? brackets_at(tensor, i) : 0;
    if (i && depth) append_times(buf, "]", opened);
    append_times(buf, "[", opened);
    if (i && !opened) rn_strbuf_append(buf, RN_STR(" "));
    print_element(buf, tensor, i);
  }
  if (shown && depth) {
    // Mark a row that is cut off.
    if (brackets_at(tensor, shown) == 0) rn_strbuf_append(buf, RN_STR("..."));
    append_times(buf, "]", depth);
  }
  if (shown < tensor->count) rn_strbuf_append(buf, RN_STR("..."));
}
