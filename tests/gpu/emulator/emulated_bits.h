// Integer intrinsics, reinterpreted bits, and 16-bit floats. Part of emulated.h.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_EMULATED_BITS_H_
#define RUNNEL_TESTS_GPU_EMULATOR_EMULATED_BITS_H_

template <typename To, typename From>
inline To rn_emulated_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline unsigned __float_as_uint(float value) { return rn_emulated_bits<unsigned>(value); }
inline int __float_as_int(float value) { return rn_emulated_bits<int>(value); }
inline float __uint_as_float(unsigned bits) { return rn_emulated_bits<float>(bits); }
inline float __int_as_float(int bits) { return rn_emulated_bits<float>(bits); }
inline i64 __double_as_longlong(double value) { return rn_emulated_bits<i64>(value); }
inline double __longlong_as_double(i64 bits) { return rn_emulated_bits<double>(bits); }
inline int __double2hiint(double value) { return (int)(__double_as_longlong(value) >> 32); }
inline int __double2loint(double value) { return (int)__double_as_longlong(value); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((i64)((u64)(unsigned)high << 32 | (unsigned)low));
}

inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(u64 value) { return __builtin_popcountll(value); }
inline int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
inline int __clzll(i64 value) { return value ? __builtin_clzll((u64)value) : 64; }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __ffsll(i64 value) { return __builtin_ffsll(value); }
inline unsigned __brev(unsigned value) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (value >> i & 1) << (31 - i);
  return reversed;
}
inline u64 __brevll(u64 value) {
  return (u64)__brev((unsigned)value) << 32 | __brev((unsigned)(value >> 32));
}
inline int __mulhi(int a, int b) { return (int)((i64)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((u64)a * b >> 32); }
inline i64 __mul64hi(i64 a, i64 b) { return (i64)((__int128)a * b >> 64); }
inline u64 __umul64hi(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  u64 bytes = (u64)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned which = selector >> 4 * i & 0xf;
    unsigned byte = (unsigned)(bytes >> 8 * (which & 7)) & 0xff;
    if (which & 8) byte = byte & 0x80 ? 0xff : 0;  // the sign alone
    result |= byte << 8 * i;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((u64)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((u64)high << 32 | low) >> (shift & 31));
}

inline u32 rn_float_bits(float value) { return __float_as_uint(value); }
inline float rn_float_from_bits(u32 bits) { return __uint_as_float(bits); }

inline float rn_half_to_float(u16 half) {
  u32 sign = (u32)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0x1f) return __uint_as_float(sign | 0x7f800000 | fraction << 13);
  if (exponent) return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
  float tiny = (float)fraction * 0x1p-24f;  // exact
  return sign ? -tiny : tiny;
}

// Drops the lowest |bits| (1 to 31) of |value|, to nearest, ties to even.
inline u32 rn_emulated_round(u32 value, u32 bits) {
  u32 kept = value >> bits, rest = value & ((1u << bits) - 1), half = 1u << (bits - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

inline u16 rn_half_from_float(float value) {
  u32 bits = __float_as_uint(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;                 // the GPU's NaN
  if (magnitude >= 0x47800000) return (u16)(sign | 0x7c00);  // 2^16 and above
  if (magnitude >= 0x38800000)  // normal: 2^-14 and above; rounding may carry up to infinity
    return (u16)(sign | (rn_emulated_round(magnitude, 13) - (112u << 10)));
  u32 exponent = magnitude >> 23;
  if (exponent < 102) return (u16)sign;  // below half of the smallest, 2^-24
  return (u16)(sign | rn_emulated_round((magnitude & 0x7fffff) | 0x800000, 126 - exponent));
}

inline u16 rn_bfloat16_from_float(float value) {
  u32 bits = __float_as_uint(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (u16)rn_emulated_round(bits, 16);
}

#endif  // RUNNEL_TESTS_GPU_EMULATOR_EMULATED_BITS_H_
