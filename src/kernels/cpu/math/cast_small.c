// Casts of float8 and int4: see cast_small.h. They go through a type that other casts support.
#include "kernels/cpu/math/cast_small.h"

#include <math.h>

#include "kernels/cpu/loops.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

#define FLOAT8 (RN_T(FLOAT8_E5M2) | RN_T(FLOAT8_E4M3FN))
#define INT4 (RN_T(INT4) | RN_T(UINT4))
#define INTEGERS (RN_TYPES_INTS | RN_TYPES_UINTS)

bool rn_cast_small_has(rn_dtype_t source, rn_dtype_t target) {
  rn_dtype_t from = rn_dtype_stored(source), to = rn_dtype_stored(target);
  if (rn_dtypes_has(INT4, from)) return rn_dtypes_has(INT4 | INTEGERS, to);
  if (rn_dtypes_has(INT4, to)) return rn_dtypes_has(INTEGERS, from);
  if (rn_dtypes_has(FLOAT8, to)) return rn_dtypes_has(FLOAT8 | RN_TYPES_FLOATS, from);
  return rn_dtypes_has(FLOAT8, from) && rn_casts()->fn[RN_FLOAT][to];
}

// A float8 type: |bits| of fraction, and the codes of the largest number and of overflow.
typedef struct float8_t {
  int bits, bias;
  uint8_t largest, beyond, nan;
} float8_t;

static float8_t float8_of(rn_dtype_t dtype) {
  return dtype == RN_FLOAT8_E5M2 ? (float8_t){2, 15, 0x7B, 0x7C, 0x7E}
                                 : (float8_t){3, 7, 0x7E, 0x7F, 0x7F};
}

static float float8_value(const float8_t* type, uint8_t code) {
  int low = code & 0x7F, fraction = low & ((1 << type->bits) - 1), exponent = low >> type->bits;
  float value =
      low > type->largest ? (low == type->beyond && type->beyond != type->nan ? INFINITY : NAN)
      : exponent ? ldexpf((float)(fraction + (1 << type->bits)), exponent - type->bias - type->bits)
                 : ldexpf((float)fraction, 1 - type->bias - type->bits);
  return code & 0x80 ? -value : value;
}

// Rounds to nearest, ties to even.
static uint8_t float8_code(const float8_t* type, double value) {
  uint8_t sign = signbit(value) ? 0x80 : 0;
  double size = fabs(value);
  if (isnan(value)) return sign | type->nan;
  if (isinf(value)) return sign | type->beyond;
  if (size == 0) return sign;
  int exponent = ilogb(size) < 1 - type->bias ? 1 - type->bias : ilogb(size);
  if (exponent > type->bias + 1) return sign | type->beyond;
  // Codes of one sign are ordered like their numbers, so rounding up a fraction carries correctly.
  int code =
      ((exponent + type->bias - 1) << type->bits) + (int)rint(ldexp(size, type->bits - exponent));
  return sign | (uint8_t)(code > type->largest ? type->beyond : code);
}

// The type through which casts of |dtype| go.
static rn_dtype_t between(rn_dtype_t dtype, bool is_precise) {
  return dtype == RN_INT4               ? RN_INT8
         : dtype == RN_UINT4            ? RN_UINT8
         : rn_dtypes_has(FLOAT8, dtype) ? (is_precise ? RN_DOUBLE : RN_FLOAT)
                                        : dtype;
}

static void widen(rn_dtype_t dtype, const uint8_t* in, float* out, int64_t n) {
  float8_t type = float8_of(dtype);
  for (int64_t i = 0; i < n; ++i) out[i] = float8_value(&type, in[i]);
}

static void narrow(rn_dtype_t dtype, rn_dtype_t from, const void* in, uint8_t* out, int64_t n) {
  float8_t type = float8_of(dtype);
  for (int64_t i = 0; i < n; ++i) switch (dtype) {
      case RN_INT4:
        out[i] = (uint8_t)((((const uint8_t*)in)[i] & 0xF) ^ 8) - 8;  // sign extension
        break;
      case RN_UINT4:
        out[i] = ((const uint8_t*)in)[i] & 0xF;
        break;
      default:
        out[i] = float8_code(
            &type, from == RN_DOUBLE ? ((const double*)in)[i] : (double)((const float*)in)[i]);
    }
}

void rn_cast_small(rn_dtype_t source, rn_dtype_t target, const void* in, void* out, int64_t n) {
  source = rn_dtype_stored(source);
  target = rn_dtype_stored(target);
  rn_dtype_t from = between(source, false), to = between(target, source == RN_DOUBLE);
  const bool widens = rn_dtypes_has(FLOAT8, source), narrows = to != target;
  const bool has_spare_bits = rn_dtypes_has(INT4, source);  // only the low four are defined
  double first[RN_VECTOR_BLOCK], second[RN_VECTOR_BLOCK];
  for (int64_t start = 0; start < n; start += RN_VECTOR_BLOCK) {
    int64_t count = n - start < RN_VECTOR_BLOCK ? n - start : RN_VECTOR_BLOCK;
    const void* values = (const char*)in + (size_t)start * rn_dtype_size(source);
    char* result = (char*)out + (size_t)start * rn_dtype_size(target);
    if (widens) {
      widen(source, values, (float*)first, count);
      values = first;
    } else if (has_spare_bits) {
      narrow(source, from, values, (uint8_t*)first, count);
      values = first;
    }
    if (from != to) {
      void* converted = narrows ? (void*)second : (void*)result;
      rn_casts()->fn[from][to](NULL, &values, (int[]){1}, converted, count);
      values = converted;
    }
    if (narrows)
      narrow(target, to, values, (uint8_t*)result, count);
    else if (from == to && values != result)
      memcpy(result, values, (size_t)count * rn_dtype_size(to));
  }
}
