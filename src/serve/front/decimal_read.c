// Text to numbers: see decimal.h.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/front/decimal.h"
#include "serve/front/powers.h"

static inline bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

// Whether the eight bytes of |word| are digits.
static inline bool are_digits(uint64_t word) {
  return ((word & 0xf0f0f0f0f0f0f0f0) | ((word + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4) ==
         0x3333333333333333;
}

// The value of eight digits, the first one in the lowest byte: pairs, then fours, then all.
static inline uint32_t eight_digits(uint64_t word) {
  word -= 0x3030303030303030;
  word = word * 10 + (word >> 8);
  const uint64_t mask = 0x000000ff000000ff;
  return (
      uint32_t)(((word & mask) * 0x000f424000000064 + (word >> 16 & mask) * 0x0000271000000001) >>
                32);
}

// Appends the digits at |p| to |*inout|, modulo 2^64; returns the end of the digits.
static inline const char* digits_at(const char* p, const char* end, uint64_t* inout) {
  uint64_t value = *inout;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  for (uint64_t word; end - p >= 8; p += 8) {
    memcpy(&word, p, sizeof word);
    if (!are_digits(word)) break;
    value = value * 100000000 + eight_digits(word);
  }
#endif
  while (p != end && is_digit(*p)) value = value * 10 + (uint64_t)(*p++ - '0');
  *inout = value;
  return p;
}

// Beyond this an exponent changes nothing: the value is zero or infinite, however many digits a
// text in memory may have.
#define EXPONENT_MAX INT64_C(1000000000000)

static const char* exponent_at(const char* p, const char* end, int64_t* inout) {
  bool is_negative = p != end && *p == '-';
  if (p != end && (*p == '-' || *p == '+')) ++p;
  int64_t value = 0;
  for (; p != end && is_digit(*p); ++p)
    if (value < EXPONENT_MAX) value = value * 10 + (*p - '0');
  *inout += is_negative ? -value : value;
  return p;
}

// Keeps the first 19 significant digits of a number with more; returns how many it dropped.
static int64_t cut(rn_decimal_t* out, const char* digits_end) {
  const char* p = out->begin + out->is_negative;
  while (p != digits_end && (*p == '0' || *p == '.')) ++p;
  int64_t kept = 0, dropped = 0;
  out->digits = 0;
  for (; p != digits_end; ++p) {
    if (*p == '.') continue;
    if (++kept <= 19)
      out->digits = out->digits * 10 + (uint64_t)(*p - '0');
    else
      ++dropped;
  }
  out->is_cut = dropped > 0;
  return dropped;
}

rn_decimal_error_t rn_decimal_scan(const char* text, const char* end, rn_decimal_t* out) {
  const char* p = text;
  *out = (rn_decimal_t){.begin = text, .end = text, .is_integer = true};
  out->is_negative = p != end && *p == '-';
  p += out->is_negative;
  if (p == end || !is_digit(*p)) return RN_DECIMAL_BAD;
  // Behind a leading zero there are no digits.
  const char* first = p;
  p = *p == '0' ? p + 1 : digits_at(p, end, &out->digits);
  ptrdiff_t count = p - first;
  int64_t exponent = 0;
  if (p != end && *p == '.') {
    out->is_integer = false;
    first = ++p;
    p = digits_at(p, end, &out->digits);
    out->end = p;
    if (p == first) return RN_DECIMAL_NO_FRACTION;
    count += p - first;
    exponent = -(p - first);
  }
  if (count > 19) exponent += cut(out, p);
  if (p != end && (*p | 0x20) == 'e') {
    out->is_integer = false;
    p = exponent_at(p + 1, end, &exponent);
    out->end = p;
    if (!is_digit(p[-1])) return RN_DECIMAL_NO_EXPONENT;
  }
  out->end = p;
  out->exponent = (int32_t)(exponent < INT32_MIN   ? INT32_MIN
                            : exponent > INT32_MAX ? INT32_MAX
                                                   : exponent);
  return RN_DECIMAL_OK;
}

bool rn_decimal_to_uint(const rn_decimal_t* decimal, uint64_t* out) {
  if (!decimal->is_integer || (decimal->is_negative && decimal->digits)) return false;
  *out = decimal->digits;
  if (!decimal->is_cut) return true;
  // The largest value has 20 digits, one more than |digits| holds.
  if (decimal->exponent != 1) return false;
  uint64_t last = (uint64_t)(decimal->end[-1] - '0');
  return !__builtin_mul_overflow(decimal->digits, 10, out) &&
         !__builtin_add_overflow(*out, last, out);
}

bool rn_decimal_to_int(const rn_decimal_t* decimal, int64_t* out) {
  uint64_t limit = (uint64_t)INT64_MAX + decimal->is_negative;
  if (!decimal->is_integer || decimal->is_cut || decimal->digits > limit) return false;
  *out = (int64_t)(decimal->is_negative ? -decimal->digits : decimal->digits);
  return true;
}

// A binary format: precision with the hidden bit, and the exponent of the lowest bit of a
// subnormal number and of the highest number.
typedef struct format_t {
  int bits, exponent_min, exponent_max;
} format_t;
static const format_t float_format = {24, -149, 104}, double_format = {53, -1074, 971};

// Rounds digits * 10^exponent to |format|: mantissa * 2^exponent. False if the powers' 128 bits
// cannot tell which of two neighbours is nearest. Overflow gives |exponent| > exponent_max.
static bool round_to(format_t format, uint64_t digits, int q, uint64_t* out_mantissa,
                     int* out_exponent) {
  rn_power_t power = rn_power_of_ten(q);
  int zeros = __builtin_clzll(digits);
  digits <<= zeros;
  // The leading 128 of 192 bits; the true value is less than |error| more.
  rn_u128_t low = (rn_u128_t)digits * (uint64_t)power.bits;
  rn_u128_t bits = (rn_u128_t)digits * (uint64_t)(power.bits >> 64) + (uint64_t)(low >> 64);
  unsigned error = power.error + ((uint64_t)low || power.error ? 1 : 0);
  int exponent = power.exponent + 64 - zeros;
  int shift = 128 - !(bits >> 127) - format.bits;  // bits to drop
  if (exponent + shift < format.exponent_min) shift = format.exponent_min - exponent;
  *out_exponent = exponent + shift;
  *out_mantissa = 0;
  if (shift > 128) return true;  // below half of the smallest number
  rn_u128_t half = (rn_u128_t)1 << (shift - 1);
  rn_u128_t rest = bits & (half | (half - 1));
  if (error && rest <= half && half - rest <= error) return false;
  uint64_t mantissa = shift == 128 ? 0 : (uint64_t)(bits >> shift);
  if (rest > half || (rest == half && mantissa & 1)) ++mantissa;
  *out_mantissa = mantissa;
  if (mantissa >> format.bits) {
    *out_mantissa >>= 1;
    ++*out_exponent;
  }
  return true;
}

// The bits of mantissa * 2^exponent in |format|, without the sign.
static inline uint64_t pack(format_t format, uint64_t mantissa, int exponent) {
  uint64_t hidden = UINT64_C(1) << (format.bits - 1);
  if (exponent > format.exponent_max)  // infinity
    return (uint64_t)(format.exponent_max - format.exponent_min + 2) << (format.bits - 1);
  if (mantissa < hidden) return mantissa;
  return (uint64_t)(exponent - format.exponent_min + 1) << (format.bits - 1) | (mantissa ^ hidden);
}

// What 128 bits do not decide. More digits than MAX_DIGITS matter only in that some are not zero:
// no two neighbouring doubles have a middle with more than 768.
#define MAX_DIGITS 800
static double slow_double(const rn_decimal_t* decimal, bool is_float) {
  char text[MAX_DIGITS + 32];
  size_t size = 0;
  bool is_sticky = false;
  int64_t exponent = decimal->is_cut ? 0 : decimal->exponent;
  if (!decimal->is_cut) {
    size = (size_t)snprintf(text, 24, "%llu", (unsigned long long)decimal->digits);
  } else {
    const char* p = decimal->begin + decimal->is_negative;
    while (*p == '0' || *p == '.') ++p;
    int64_t kept = 19;  // |exponent| counts from the 19th significant digit
    for (; p != decimal->end && (is_digit(*p) || *p == '.'); ++p) {
      if (*p == '.') continue;
      if (size < MAX_DIGITS)
        text[size++] = *p;
      else
        is_sticky |= *p != '0';
    }
    if (is_sticky) text[size++] = '1';
    exponent = decimal->exponent + kept - (int64_t)size;
  }
  snprintf(text + size, 24, "e%lld", (long long)exponent);
  return is_float ? (double)strtof(text, NULL) : strtod(text, NULL);
}

// Rounds with 64 bits of the power: the product's leading word is short by less than 2. False if
// that matters, or if the number is not a normal one.
static inline bool round_quickly(format_t format, uint64_t digits, int q, uint64_t* out) {
  if (q < -RN_POWER_NEAR || q > RN_POWER_NEAR || !digits) return false;
  int zeros = __builtin_clzll(digits);
  uint64_t word = (uint64_t)((rn_u128_t)(digits << zeros) * rn_power_near(q) >> 64);
  int shift = 63 + (int)(word >> 63) - format.bits;  // bits to drop
  uint64_t half = UINT64_C(1) << (shift - 1), rest = word & (2 * half - 1);
  int exponent = rn_power_log2(q) + 1 - zeros + shift;
  if (half - rest <= 1 || exponent >= format.exponent_max) return false;
  // A carry out of the mantissa goes where it belongs, into the exponent.
  *out = ((uint64_t)(exponent - format.exponent_min) << (format.bits - 1)) + (word >> shift) +
         (rest > half);
  return true;
}

// Rounds to |format|; the magnitude's bits.
static inline bool to_bits(format_t format, const rn_decimal_t* decimal, uint64_t* out) {
  if (!decimal->is_cut && round_quickly(format, decimal->digits, decimal->exponent, out))
    return true;
  *out = 0;
  if (!decimal->digits || decimal->exponent < -342) return true;
  *out = pack(format, 0, format.exponent_max + 1);
  if (decimal->exponent > 308) return true;
  uint64_t mantissa, mantissa_up;
  int exponent, exponent_up;
  if (!round_to(format, decimal->digits, decimal->exponent, &mantissa, &exponent)) return false;
  *out = pack(format, mantissa, exponent);
  if (!decimal->is_cut) return true;
  // The digits that were cut off lie between these two.
  return decimal->digits != UINT64_MAX &&
         round_to(format, decimal->digits + 1, decimal->exponent, &mantissa_up, &exponent_up) &&
         mantissa == mantissa_up && exponent == exponent_up;
}

double rn_decimal_to_double(const rn_decimal_t* decimal) {
  double value = 0;
  uint64_t bits = 0;
  if (to_bits(double_format, decimal, &bits))
    memcpy(&value, &bits, sizeof value);
  else
    value = slow_double(decimal, false);
  return decimal->is_negative ? -value : value;
}

float rn_decimal_to_float(const rn_decimal_t* decimal) {
  float value = 0;
  uint64_t bits = 0;
  if (to_bits(float_format, decimal, &bits)) {
    uint32_t low = (uint32_t)bits;
    memcpy(&value, &low, sizeof value);
  } else {
    value = (float)slow_double(decimal, true);
  }
  return decimal->is_negative ? -value : value;
}
