// The 16-bit floats: IEEE half and bfloat16, to and from float, rounding to nearest even.
#ifndef RUNNEL_TENSOR_FLOAT16_H_
#define RUNNEL_TENSOR_FLOAT16_H_

#include <stdint.h>
#include <string.h>

#ifdef __F16C__
#include <immintrin.h>
#endif

static inline uint32_t rn_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float rn_bits_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float rn_bfloat16_to_float(uint16_t value) {
  return rn_bits_float((uint32_t)value << 16);
}

static inline uint16_t rn_float_to_bfloat16(float value) {
  uint32_t bits = rn_float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 & 0x8000) | 0x7fc0;  // NaN
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float rn_half_to_float(uint16_t value) {
#ifdef __F16C__
  return _cvtsh_ss(value);
#else
  uint32_t sign = (uint32_t)(value & 0x8000) << 16;
  uint32_t rest = (uint32_t)(value & 0x7fff) << 13;
  if (rest >= 0x0f800000) return rn_bits_float(sign | rest | 0x7f800000);  // infinity, NaN
  // A subnormal half is an integer multiple of 2^-24. The multiplication involves no subnormal
  // float, because kernels run with those flushed to zero.
  if (rest < 0x00800000)
    return rn_bits_float(sign | rn_float_bits((float)(value & 0x3ff) * 0x1p-24f));
  return rn_bits_float(sign | (rest + (112u << 23)));
#endif
}

static inline uint16_t rn_float_to_half(float value) {
#ifdef __F16C__
  return (uint16_t)_cvtss_sh(value, 0);
#else
  uint32_t bits = rn_float_bits(value);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;   // NaN
  if (bits >= 0x477ff000) return sign | 0x7c00;  // rounds to infinity
  if (bits <
      0x38800000) {  // below the smallest normal half: the float addition rounds at the right place
    float shifted = rn_bits_float(bits) + 0.5f;
    return sign | (uint16_t)(rn_float_bits(shifted) - rn_float_bits(0.5f));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return sign | (uint16_t)((bits - 0x38000000) >> 13);
#endif
}

#endif  // RUNNEL_TENSOR_FLOAT16_H_
