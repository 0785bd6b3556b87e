// Numbers to text: see decimal.h.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/front/decimal.h"
#include "serve/front/powers.h"

static const char pairs[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546"
    "4"
    "7484950515253545556575859606162636465666768697071727374757677787980818283848586878889909192939"
    "4"
    "9596979899";

// Writes |count| digits of |value|, with leading zeros.
static inline void put_digits(char* out, uint64_t value, int count) {
  while (count >= 4) {  // by four, so that fewer divisions wait for each other
    uint32_t four = (uint32_t)(value % 10000);
    value /= 10000;
    count -= 4;
    memcpy(out + count, &pairs[four / 100 * 2], 2);
    memcpy(out + count + 2, &pairs[four % 100 * 2], 2);
  }
  if (count >= 2) {
    count -= 2;
    memcpy(out + count, &pairs[value % 100 * 2], 2);
    value /= 100;
  }
  if (count) *out = (char)('0' + value);
}

static inline int digit_count(uint64_t value) {
  int count = 1;
  for (uint64_t limit = 10; count < 20 && value >= limit; limit *= 10) ++count;
  return count;
}

char* rn_decimal_put_uint(char* out, uint64_t value) {
  int count = digit_count(value);
  put_digits(out, value, count);
  return out + count;
}

char* rn_decimal_put_int(char* out, int64_t value) {
  if (value < 0) *out++ = '-';
  return rn_decimal_put_uint(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

static const uint64_t powers[] = {1,
                                  10,
                                  100,
                                  1000,
                                  10000,
                                  100000,
                                  1000000,
                                  10000000,
                                  100000000,
                                  1000000000,
                                  10000000000,
                                  100000000000,
                                  1000000000000,
                                  10000000000000,
                                  100000000000000,
                                  1000000000000000,
                                  10000000000000000,
                                  100000000000000000};

// The |count| leading digits of a number, and what follows them.
typedef struct leading_t {
  uint64_t digits;  // 10^(count-1) <= digits < 10^count
  int exponent;     // of the first digit
  int rest;  // what is cut off of the last digit: 0: nothing, 1: below a half, 2: a half, 3: more
} leading_t;

// Takes the leading digits of mantissa * 2^exponent. False if 128 bits do not tell.
static inline bool lead(uint64_t mantissa, int exponent, int count, leading_t* out) {
  int zeros = __builtin_clzll(mantissa);
  mantissa <<= zeros;
  exponent -= zeros;
  // floor((exponent + 63) * log10(2)): the exponent of the first digit, or one less.
  int first = (int)((int64_t)(exponent + 63) * 1292913986 >> 32);
  int q = count - 1 - first;
  if (q > RN_POWER_MAX || q < RN_POWER_MIN) return false;
  rn_power_t power = rn_power_of_ten(q);
  rn_u128_t low = (rn_u128_t)mantissa * (uint64_t)power.bits;
  rn_u128_t bits = (rn_u128_t)mantissa * (uint64_t)(power.bits >> 64) + (uint64_t)(low >> 64);
  unsigned error = power.error + ((uint64_t)low || power.error ? 1 : 0);
  int shift = -(exponent + power.exponent + 64);  // bits behind the point; 0 < shift < 128
  uint64_t digits = (uint64_t)(bits >> shift);
  rn_u128_t half = (rn_u128_t)1 << (shift - 1), mask = half | (half - 1), rest = bits & mask;
  // The true value is up to |error| more: it must lie on the same side of a half and of a whole.
  if (error && (mask - rest < error || (rest <= half && half - rest <= error))) return false;
  // Sums instead of branches here and below: half of them would be predicted wrong.
  unsigned cut = (unsigned)((rest || error) + (rest >= half) + (rest > half));
  uint64_t tenth = digits / 10;
  unsigned last = (unsigned)(digits - tenth * 10), last_cut = 4 * last + cut;
  unsigned cut_more = (unsigned)((last_cut > 0) + (last_cut >= 20) + (last_cut > 20));
  bool is_longer = digits >= powers[count];  // one digit too many
  out->digits = is_longer ? tenth : digits;
  out->exponent = first + is_longer;
  out->rest = (int)(is_longer ? cut_more : cut);
  return true;
}

// Rounds to |fewer| digits, ties to even.
static inline leading_t round_digits(leading_t number, int count, int fewer) {
  uint64_t unit = powers[count - fewer], rest = number.digits % unit;
  uint64_t digits = number.digits / unit;
  // In quarters of the last digit, as which |number.rest| counts.
  uint64_t quarters = 4 * rest + (uint64_t)number.rest, half = 2 * unit;
  digits += (quarters > half) | ((quarters == half) & (digits & 1));
  if (digits == powers[fewer]) {
    digits /= 10;
    ++number.exponent;
  }
  return (leading_t){digits, number.exponent, 0};
}

// Lays |count| digits out as printf's %g does, with ".0" behind whole numbers. Digits are written
// where most of them stay: reading back what was just written costs more than the division.
static inline char* put_number(char* out, leading_t number, int count) {
  int exponent = number.exponent, used = count;
  bool is_long = exponent < -4 || exponent >= count;
  char* digits = exponent < 0 && !is_long ? out + 1 - exponent : out + 1;
  if (digits != out + 1) memcpy(out, "0.000", 5);
  put_digits(digits, number.digits, count);
  while (used > 1 && digits[used - 1] == '0') --used;
  if (digits != out + 1) return digits + used;
  int whole = is_long ? 1 : exponent + 1;  // digits before the point
  for (int i = 0; i < whole; ++i) out[i] = out[i + 1];
  out[whole] = '.';
  if (!is_long) {
    if (used > whole) return digits + used;
    out[whole + 1] = '0';
    return out + whole + 2;
  }
  out = used > 1 ? digits + used : out + 1;
  *out++ = 'e';
  *out++ = exponent < 0 ? '-' : '+';
  uint64_t size = (uint64_t)(exponent < 0 ? -exponent : exponent);
  if (size < 10) *out++ = '0';
  return rn_decimal_put_uint(out, size);
}

static char* put_text(char* out, const char* text) {
  size_t size = strlen(text);
  memcpy(out, text, size);
  return out + size;
}

// Infinity, NaN and zero; NULL for other numbers.
static inline char* put_special(char* out, double value) {
  if (isnan(value)) return put_text(out, "NaN");
  if (isinf(value)) return put_text(out, value < 0 ? "-Infinity" : "Infinity");
  return value == 0 ? put_text(out, signbit(value) ? "-0.0" : "0.0") : NULL;
}

// By the C library: 6 digits if they read back as the same, else |count|.
static char* put_slowly(char* out, double value, int count, bool is_float) {
  char text[40];
  snprintf(text, sizeof text, "%g", value);
  double back = is_float ? (double)strtof(text, NULL) : strtod(text, NULL);
  if (back != value) snprintf(text, sizeof text, "%.*g", count, value);
  out = put_text(out, text);
  return strpbrk(text, ".e") ? out : put_text(out, ".0");
}

// Whether |six| can be within half a unit of the last place of |number|: a quick test that spares
// most numbers the exact one. |slack| is that half unit in the last of |count| digits.
static inline bool is_near(leading_t number, leading_t six, int count, uint64_t slack) {
  uint64_t six_digits = six.digits * powers[count - 6 + (six.exponent - number.exponent)];
  uint64_t difference =
      six_digits > number.digits ? six_digits - number.digits : number.digits - six_digits;
  return difference <= slack;
}

char* rn_decimal_put_float(char* out, float value) {
  char* end = put_special(out, (double)value);
  if (end) return end;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t biased = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  leading_t number;
  if (!lead(biased ? mantissa | 0x800000 : mantissa, biased ? (int)biased - 150 : -149, 9, &number))
    return put_slowly(out, (double)value, 9, true);
  if (value < 0) *out++ = '-';
  leading_t six = round_digits(number, 9, 6);
  // Half a unit in the last place is at most 2^-24 of a normal number: 59.6 of the 9th digit.
  if (!biased || is_near(number, six, 9, 61)) {
    rn_decimal_t decimal = {.digits = six.digits, .exponent = six.exponent - 5};
    if (rn_decimal_to_float(&decimal) == fabsf(value)) return put_number(out, six, 6);
  }
  return put_number(out, round_digits(number, 9, 9), 9);
}

char* rn_decimal_put_double(char* out, double value) {
  char* end = put_special(out, value);
  if (end) return end;
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint64_t biased = bits >> 52 & 0x7ff, mantissa = bits & ((UINT64_C(1) << 52) - 1);
  if (biased) mantissa |= UINT64_C(1) << 52;
  leading_t number;
  if (!lead(mantissa, biased ? (int)biased - 1075 : -1074, 17, &number))
    return put_slowly(out, value, 17, false);
  if (value < 0) *out++ = '-';
  leading_t six = round_digits(number, 17, 6);
  // 2^-53 is 11.1 of the 17th digit.
  if (!biased || is_near(number, six, 17, 13)) {
    rn_decimal_t decimal = {.digits = six.digits, .exponent = six.exponent - 5};
    if (rn_decimal_to_double(&decimal) == fabs(value)) return put_number(out, six, 6);
  }
  return put_number(out, round_digits(number, 17, 17), 17);
}
