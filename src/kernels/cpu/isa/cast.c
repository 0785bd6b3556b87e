// Conversions between all pairs of types, for one ISA level.
//
// A float that does not fit an integer gives what x86 gives: the least int32 or int64, of which
// narrower types take the low bits. Complex numbers give their real part.
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/types.h"
#include "kernels/cpu/loops.h"

#define ARGS void *arg, const void *const *in, const int *steps, void *out, int64_t n

typedef struct complex_t {
  float re, im;
} complex_t;
typedef struct double_complex_t {
  double re, im;
} double_complex_t;

static inline complex_t make_c64(float re, float im) { return (complex_t){re, im}; }
static inline double_complex_t make_c128(double re, double im) {
  return (double_complex_t){re, im};
}

static inline int32_t to_i32(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
static inline int32_t to_i32_f(float x) {
  return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN;
}
static inline int64_t to_i64(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
static inline int64_t to_i64_f(float x) {
  return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN;
}
static inline uint64_t to_u64(double x) {
  int64_t low = to_i64(x), high = to_i64(x - 0x1p63);
  return (uint64_t)(low | (high & (low < 0 ? -1 : 0)));
}

// Per family of sources: conversion to float, double, int32, int64, uint64, bool. The source type
// selects X(family, ...).
#define FLOAT_SRC_F32(x) (x)
#define FLOAT_SRC_F64(x) ((double)(x))
#define FLOAT_SRC_I32(x) to_i32_f(x)
#define FLOAT_SRC_I64(x) to_i64_f(x)
#define FLOAT_SRC_U64(x) to_u64(x)
#define FLOAT_SRC_BOOL(x) ((x) != 0)
#define SINGLE_SRC_F32(x) FLOAT_SRC_F32(x)
#define SINGLE_SRC_F64(x) FLOAT_SRC_F64(x)
#define SINGLE_SRC_I32(x) FLOAT_SRC_I32(x)
#define SINGLE_SRC_I64(x) FLOAT_SRC_I64(x)
#define SINGLE_SRC_U64(x) FLOAT_SRC_U64(x)
#define SINGLE_SRC_BOOL(x) FLOAT_SRC_BOOL(x)
#define DOUBLE_SRC_F32(x) ((float)(x))
#define DOUBLE_SRC_F64(x) (x)
#define DOUBLE_SRC_I32(x) to_i32(x)
#define DOUBLE_SRC_I64(x) to_i64(x)
#define DOUBLE_SRC_U64(x) to_u64(x)
#define DOUBLE_SRC_BOOL(x) ((x) != 0)
#define INT_SRC_F32(x) ((float)(x))
#define INT_SRC_F64(x) ((double)(x))
#define INT_SRC_I32(x) ((int32_t)(x))
#define INT_SRC_I64(x) ((int64_t)(x))
#define INT_SRC_U64(x) ((uint64_t)(x))
#define INT_SRC_BOOL(x) ((x) != 0)

#define RE(x) ((x).re)
#define IS_TRUE(x) ((x) != 0)

// X(suffix, stored type, RN_ name, load, family)
#define REAL_SOURCES(X)                                    \
  X(f16, uint16_t, HALF, rn_half_to_float, FLOAT)          \
  X(bf16, uint16_t, BFLOAT16, rn_bfloat16_to_float, FLOAT) \
  X(f32, float, FLOAT, SAME, SINGLE)                       \
  X(f64, double, DOUBLE, SAME, DOUBLE)                     \
  X(i8, int8_t, INT8, SAME, INT)                           \
  X(i16, int16_t, INT16, SAME, INT)                        \
  X(i32, int32_t, INT32, SAME, INT)                        \
  X(i64, int64_t, INT64, SAME, INT)                        \
  X(u8, uint8_t, UINT8, SAME, INT)                         \
  X(u16, uint16_t, UINT16, SAME, INT)                      \
  X(u32, uint32_t, UINT32, SAME, INT)                      \
  X(u64, uint64_t, UINT64, SAME, INT)                      \
  X(b, uint8_t, BOOL, IS_TRUE, INT)
#define SOURCES(X)                        \
  REAL_SOURCES(X)                         \
  X(c64, complex_t, COMPLEX64, RE, FLOAT) \
  X(c128, double_complex_t, COMPLEX128, RE, DOUBLE)

// The loop for one pair of source and destination.
#define CAST(S, T, LOAD, DS, DT, EXPRESSION)       \
  static void S##_to_##DS(ARGS) {                  \
    (void)arg;                                     \
    (void)steps;                                   \
    const T* a = in[0];                            \
    DT* to = out;                                  \
    RN_IVDEP for (int64_t i = 0; i < n; ++i) {     \
      const __typeof__(LOAD(a[0])) x = LOAD(a[i]); \
      to[i] = EXPRESSION;                          \
    }                                              \
  }

#define TO_I32_FLOAT(S, T, LOAD, DS, DT, FAMILY) CAST(S, T, LOAD, DS, DT, (DT)FAMILY##_SRC_I32(x))
#define TO_I32_DOUBLE TO_I32_FLOAT
#define TO_I32_INT TO_I32_FLOAT
// The instruction gives the least int32 by itself where a float does not fit.
#if defined(RN_ISA_avx2) || defined(RN_ISA_avx512)
static inline int64_t f32_to_whole(const float* in, int64_t n, int32_t* out) {
  enum { WIDTH = 8 };
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH)
    _mm256_storeu_si256((__m256i*)(out + i), _mm256_cvttps_epi32(_mm256_loadu_ps(in + i)));
  for (; i < n; ++i) out[i] = to_i32_f(in[i]);
  return n;
}
#define TO_I32_SINGLE(S, T, LOAD, DS, DT, FAMILY)                       \
  static void S##_to_##DS(ARGS) {                                       \
    (void)arg;                                                          \
    (void)steps;                                                        \
    enum { BLOCK = 512 };                                               \
    int32_t whole[BLOCK];                                               \
    const float* from = in[0];                                          \
    DT* to = out;                                                       \
    if (sizeof *to == sizeof *whole) {                                  \
      f32_to_whole(from, n, out);                                       \
      return;                                                           \
    }                                                                   \
    for (int64_t i = 0, count; i < n; i += count, from += count) {      \
      count = f32_to_whole(from, n - i < BLOCK ? n - i : BLOCK, whole); \
      for (int64_t j = 0; j < count; ++j) to[i + j] = (DT)whole[j];     \
    }                                                                   \
  }
#else
#define TO_I32_SINGLE TO_I32_FLOAT
#endif

#define CASTS_FROM(S, T, D, LOAD, FAMILY)                                                \
  CAST(S, T, LOAD, f16, uint16_t, rn_float_to_half(FAMILY##_SRC_F32(x)))                 \
  CAST(S, T, LOAD, bf16, uint16_t, rn_float_to_bfloat16(FAMILY##_SRC_F32(x)))            \
  CAST(S, T, LOAD, f32, float, FAMILY##_SRC_F32(x))                                      \
  CAST(S, T, LOAD, f64, double, FAMILY##_SRC_F64(x))                                     \
  TO_I32_##FAMILY(S, T, LOAD, i8, int8_t, FAMILY)                                        \
      TO_I32_##FAMILY(S, T, LOAD, i16, int16_t, FAMILY)                                  \
          TO_I32_##FAMILY(S, T, LOAD, i32, int32_t, FAMILY)                              \
              CAST(S, T, LOAD, i64, int64_t, FAMILY##_SRC_I64(x))                        \
                  TO_I32_##FAMILY(S, T, LOAD, u8, uint8_t, FAMILY)                       \
                      TO_I32_##FAMILY(S, T, LOAD, u16, uint16_t, FAMILY)                 \
                          CAST(S, T, LOAD, u32, uint32_t, (uint32_t)FAMILY##_SRC_I64(x)) \
                              CAST(S, T, LOAD, u64, uint64_t, FAMILY##_SRC_U64(x))       \
                                  CAST(S, T, LOAD, b, uint8_t, FAMILY##_SRC_BOOL(x))
SOURCES(CASTS_FROM)

// To complex numbers: the imaginary part is 0, or the source's.
#define TO_COMPLEX(S, T, D, LOAD, FAMILY)                            \
  CAST(S, T, LOAD, c64, complex_t, make_c64(FAMILY##_SRC_F32(x), 0)) \
  CAST(S, T, LOAD, c128, double_complex_t, make_c128(FAMILY##_SRC_F64(x), 0))
REAL_SOURCES(TO_COMPLEX)
CAST(c64, complex_t, SAME, c64, complex_t, x)
CAST(c64, complex_t, SAME, c128, double_complex_t, make_c128(x.re, x.im))
CAST(c128, double_complex_t, SAME, c64, complex_t, make_c64((float)x.re, (float)x.im))
CAST(c128, double_complex_t, SAME, c128, double_complex_t, x)

#define ROW(S, T, D, LOAD, FAMILY)                                                           \
  [RN_##                                                                                     \
      D] = {[RN_HALF] = S##_to_f16,   [RN_BFLOAT16] = S##_to_bf16, [RN_FLOAT] = S##_to_f32,  \
            [RN_DOUBLE] = S##_to_f64, [RN_INT8] = S##_to_i8,       [RN_INT16] = S##_to_i16,  \
            [RN_INT32] = S##_to_i32,  [RN_INT64] = S##_to_i64,     [RN_UINT8] = S##_to_u8,   \
            [RN_UINT16] = S##_to_u16, [RN_UINT32] = S##_to_u32,    [RN_UINT64] = S##_to_u64, \
            [RN_BOOL] = S##_to_b,     [RN_COMPLEX64] = S##_to_c64, [RN_COMPLEX128] = S##_to_c128},

extern const rn_casts_t RN_ISA_NAME(rn_casts_);
const rn_casts_t RN_ISA_NAME(rn_casts_) = {.fn = {SOURCES(ROW)}};
