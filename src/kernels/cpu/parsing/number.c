// See number.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // for strtod_l
#endif
#include "kernels/cpu/parsing/number.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

rn_status_t rn_number_reader_init(rn_number_reader_t* reader, rn_allocator_t allocator) {
  rn_strbuf_init(&reader->text, allocator);
  reader->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return reader->locale ? RN_OK : rn_out_of_memory();
}

void rn_number_reader_clear(rn_number_reader_t* reader) {
  rn_strbuf_clear(&reader->text);
  if (reader->locale) freelocale(reader->locale);
  reader->locale = NULL;
}

// The usual numbers: at most 15 digits with a point among them. Their digits and the power of ten
// are exact in double, so the quotient is rounded once. False if the text is not such a number, or
// if rounding it again, to float, could go the wrong way.
static bool to_plain(rn_str_t text, bool is_narrow, double* out) {
  enum { MOST_DIGITS = 15 };
  static const double powers[MOST_DIGITS + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool is_negative = text.size > 0 && text.data[0] == '-';
  int64_t digits = 0;
  int count = 0, places = -1;
  for (size_t i = is_negative; i < text.size; ++i) {
    const char c = text.data[i];
    if (c == '.' && places < 0) {
      places = 0;
      continue;
    }
    if (c < '0' || c > '9' || ++count > MOST_DIGITS) return false;
    digits = digits * 10 + (c - '0');
    places += places >= 0;
  }
  if (count == 0) return false;
  const double value = (double)digits / powers[places > 0 ? places : 0];
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint64_t below = bits & 0x1fffffff, tie = 0x10000000;  // what a float has no room for
  if (is_narrow && (below >= tie - 1 && below <= tie + 1)) return false;
  if (is_narrow && value != 0 && (value < 1e-30 || value > 1e30)) return false;
  *out = is_negative ? -value : value;
  return true;
}

static rn_status_t to_f64(rn_number_reader_t* reader, rn_str_t text, bool is_narrow, double* out,
                          bool* ok) {
  *ok = to_plain(text, is_narrow, out);
  if (*ok || text.size == 0) return RN_OK;
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

// Digits only.
static bool to_u64(rn_str_t text, uint64_t* out) {
  *out = 0;
  for (size_t i = 0; i < text.size; ++i) {
    uint64_t digit = (uint64_t)(text.data[i] - '0');
    if (text.data[i] < '0' || digit > 9) return false;
    if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, digit, out))
      return false;
  }
  return text.size > 0;
}

rn_status_t rn_number_read(rn_number_reader_t* reader, rn_str_t text, rn_tensor_t* out, int64_t i,
                           bool* out_ok) {
  double number = 0;
  int64_t integer = 0;
  text = rn_str_trim(text);
  switch (out->dtype) {
    case RN_FLOAT:
      RN_RETURN_IF_ERROR(to_f64(reader, text, true, &number, out_ok));
      RN_DATA(out, float)[i] = (float)number;
      return RN_OK;
    case RN_DOUBLE:
      return to_f64(reader, text, false, &RN_DATA(out, double)[i], out_ok);
    case RN_INT32:
      *out_ok = rn_str_to_i64(text, &integer) && integer >= INT32_MIN && integer <= INT32_MAX;
      RN_DATA(out, int32_t)[i] = (int32_t)integer;
      return RN_OK;
    case RN_UINT32:
      *out_ok = rn_str_to_i64(text, &integer) && integer >= 0 && integer <= UINT32_MAX;
      RN_DATA(out, uint32_t)[i] = (uint32_t)integer;
      return RN_OK;
    case RN_UINT64:
      *out_ok = to_u64(text, &RN_DATA(out, uint64_t)[i]);
      return RN_OK;
    default:
      *out_ok = rn_str_to_i64(text, &RN_DATA(out, int64_t)[i]);
      return RN_OK;
  }
}
