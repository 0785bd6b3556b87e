// Reduction loops. Narrow rows are combined several at a time, side by side in up to LANES lanes,
// which are folded in halves at the end. Wide rows are combined one after the other, in parts that
// fit the L1 cache.
#include "kernels/cpu/isa/reduce.h"

#include <complex.h>
#include <stddef.h>

#include "kernels/cpu/isa/isa.h"
#include "tensor/float16.h"

#define LANES(A) ((int64_t)(512 / sizeof(A)))
// Rows of up to SHORT elements are summed one by one, GROUP rows at a time.
#define SHORT 32
#define GROUP 16
#define PART(A) ((int64_t)(8192 / sizeof(A)))

// Rows of more than SHORT elements, in four registers' lanes. VLOAD converts a register, VOP
// combines registers x and y.
#define ROW_BYTES 32
// The upper half of the lanes is combined with the lower one until one is left.
#define FOLD(VOP, ...)                                                      \
  {                                                                         \
    const v_t x = lanes[0], y = __builtin_shufflevector(x, x, __VA_ARGS__); \
    lanes[0] = VOP;                                                         \
  }
#define FOLD_float(VOP)             \
  FOLD(VOP, 4, 5, 6, 7, 0, 1, 2, 3) \
  FOLD(VOP, 2, 3, 0, 1, 6, 7, 4, 5) \
  FOLD(VOP, 1, 0, 3, 2, 5, 4, 7, 6)
#define FOLD_uint32_t FOLD_float
#define FOUR_FROM(s) (s) & 31, ((s) + 1) & 31, ((s) + 2) & 31, ((s) + 3) & 31
#define ALL_FROM(s)                                                                               \
  FOUR_FROM(s), FOUR_FROM((s) + 4), FOUR_FROM((s) + 8), FOUR_FROM((s) + 12), FOUR_FROM((s) + 16), \
      FOUR_FROM((s) + 20), FOUR_FROM((s) + 24), FOUR_FROM((s) + 28)
#define FOLD_uint8_t(VOP) \
  FOLD(VOP, ALL_FROM(16)) \
  FOLD(VOP, ALL_FROM(8))  \
  FOLD(VOP, ALL_FROM(4))  \
  FOLD(VOP, ALL_FROM(2))  \
  FOLD(VOP, ALL_FROM(1))
#define FOLD_double(VOP) FOLD(VOP, 2, 3, 0, 1) FOLD(VOP, 1, 0, 3, 2)
#define LONG(name, T, VLOAD, VOP, OP)                                                     \
  static T long_##name(const T* in, int64_t n) {                                          \
    typedef T v_t __attribute__((vector_size(ROW_BYTES), aligned(sizeof(T)), may_alias)); \
    enum { WIDTH = ROW_BYTES / sizeof(T), STEP = 4 * WIDTH };                             \
    const v_t* from = (const v_t*)in;                                                     \
    v_t lanes[4] = {VLOAD(from[0]), VLOAD(from[1]), VLOAD(from[2]), VLOAD(from[3])};      \
    int64_t i = STEP;                                                                     \
    for (; i + STEP <= n; i += STEP) {                                                    \
      from += 4;                                                                          \
      RN_UNROLL for (int j = 0; j < 4; ++j) {                                             \
        const v_t x = lanes[j], y = VLOAD(from[j]);                                       \
        lanes[j] = VOP;                                                                   \
      }                                                                                   \
    }                                                                                     \
    for (int j = 0; i + WIDTH <= n; i += WIDTH, ++j) {                                    \
      const v_t x = lanes[j], y = VLOAD(*(const v_t*)(in + i));                           \
      lanes[j] = VOP;                                                                     \
    }                                                                                     \
    RN_UNROLL for (int half = 2; half > 0; half /= 2) {                                   \
      RN_UNROLL for (int j = 0; j < half; ++j) {                                          \
        const v_t x = lanes[j], y = lanes[j + half];                                      \
        lanes[j] = VOP;                                                                   \
      }                                                                                   \
    }                                                                                     \
    if (i < n) {                                                                          \
      T last[WIDTH], rest[WIDTH];                                                         \
      for (int j = 0; j < WIDTH; ++j) rest[j] = in[i + j < n ? i + j : i];                \
      *(v_t*)rest = VLOAD(*(const v_t*)rest);                                             \
      *(v_t*)last = lanes[0];                                                             \
      for (int j = 0; i + j < n; ++j) {                                                   \
        const T x = last[j], y = rest[j];                                                 \
        last[j] = OP;                                                                     \
      }                                                                                   \
      lanes[0] = *(const v_t*)last;                                                       \
    }                                                                                     \
    FOLD_##T(VOP) return lanes[0][0];                                                     \
  }

// T: the input type. A: the result type. LOAD converts T to A; OP combines x and y. ROW reduces a
// row of more than SHORT elements, or is NULL.
#define REDUCE(name, T, A, LOAD, OP, ROW)                                                     \
  static void wide_##name(const T* in, int64_t rows, int64_t stride, int64_t width, A* out) { \
    for (int64_t begin = 0; begin < width; begin += PART(A)) {                                \
      const int64_t n = width - begin < PART(A) ? width - begin : PART(A);                    \
      const T* row = in + begin;                                                              \
      A* restrict to = out + begin;                                                           \
      for (int64_t j = 0; j < n; ++j) to[j] = LOAD(row[j]);                                   \
      for (int64_t r = 1; r < rows; ++r) {                                                    \
        row += stride;                                                                        \
        RN_IVDEP for (int64_t j = 0; j < n; ++j) {                                            \
          const A x = to[j], y = LOAD(row[j]);                                                \
          to[j] = OP;                                                                         \
        }                                                                                     \
      }                                                                                       \
    }                                                                                         \
  }                                                                                           \
  static void narrow_##name(const T* in, int64_t rows, int64_t width, A* out) {               \
    A lanes[LANES(A)];                                                                        \
    int64_t fold = 1;                                                                         \
    while (2 * fold * width <= LANES(A) && 2 * fold <= rows) fold *= 2;                       \
    int64_t n = fold * width, left = rows * width;                                            \
    if (n == LANES(A)) {                                                                      \
      for (int64_t j = 0; j < LANES(A); ++j) lanes[j] = LOAD(in[j]);                          \
      for (in += n, left -= n; left >= n; in += n, left -= n)                                 \
        RN_IVDEP for (int64_t j = 0; j < LANES(A); ++j) {                                     \
          const A x = lanes[j], y = LOAD(in[j]);                                              \
          lanes[j] = OP;                                                                      \
        }                                                                                     \
    } else {                                                                                  \
      for (int64_t j = 0; j < n; ++j) lanes[j] = LOAD(in[j]);                                 \
      for (in += n, left -= n; left >= n; in += n, left -= n)                                 \
        RN_IVDEP for (int64_t j = 0; j < n; ++j) {                                            \
          const A x = lanes[j], y = LOAD(in[j]);                                              \
          lanes[j] = OP;                                                                      \
        }                                                                                     \
    }                                                                                         \
    for (int64_t j = 0; j < left; ++j) {                                                      \
      const A x = lanes[j], y = LOAD(in[j]);                                                  \
      lanes[j] = OP;                                                                          \
    }                                                                                         \
    while (fold > 1) {                                                                        \
      fold /= 2;                                                                              \
      n /= 2;                                                                                 \
      RN_IVDEP for (int64_t j = 0; j < n; ++j) {                                              \
        const A x = lanes[j], y = lanes[j + n];                                               \
        lanes[j] = OP;                                                                        \
      }                                                                                       \
    }                                                                                         \
    for (int64_t j = 0; j < width; ++j) out[j] = lanes[j];                                    \
  }                                                                                           \
  static void short_##name(const T* in, int64_t items, int64_t rows, A* out) {                \
    int64_t i = 0;                                                                            \
    for (; i + GROUP <= items; i += GROUP, in += GROUP * rows) {                              \
      A group[GROUP];                                                                         \
      for (int64_t k = 0; k < GROUP; ++k) group[k] = LOAD(in[k * rows]);                      \
      for (int64_t r = 1; r < rows; ++r)                                                      \
        for (int64_t k = 0; k < GROUP; ++k) {                                                 \
          const A x = group[k], y = LOAD(in[k * rows + r]);                                   \
          group[k] = OP;                                                                      \
        }                                                                                     \
      for (int64_t k = 0; k < GROUP; ++k) out[i + k] = group[k];                              \
    }                                                                                         \
    for (; i < items; ++i, in += rows) {                                                      \
      A x = LOAD(in[0]);                                                                      \
      for (int64_t r = 1; r < rows; ++r) {                                                    \
        const A y = LOAD(in[r]);                                                              \
        x = OP;                                                                               \
      }                                                                                       \
      out[i] = x;                                                                             \
    }                                                                                         \
  }                                                                                           \
  static void reduce_##name(const void* in_, int64_t items, int64_t rows, int64_t stride,     \
                            int64_t width, void* out_) {                                      \
    const T* in = in_;                                                                        \
    A* out = out_;                                                                            \
    if (width == 1 && stride == 1 && rows <= SHORT) {                                         \
      short_##name(in, items, rows, out);                                                     \
      return;                                                                                 \
    }                                                                                         \
    A (*const row)(const T*, int64_t) = ROW;                                                  \
    if (row && width == 1 && stride == 1) {                                                   \
      for (int64_t i = 0; i < items; ++i) out[i] = row(in + i * rows, rows);                  \
      return;                                                                                 \
    }                                                                                         \
    for (int64_t i = 0; i < items; ++i, in += rows * width, out += width) {                   \
      if (stride != width || 2 * width > LANES(A))                                            \
        wide_##name(in, rows, stride, width, out);                                            \
      else                                                                                    \
        narrow_##name(in, rows, width, out);                                                  \
    }                                                                                         \
  }

#define SAME(v) (v)
#define SQUARE(v) ((v) * (v))
#define WIDER_SIGNED(v) ((int64_t)(v))
#define WIDER_UNSIGNED(v) ((uint64_t)(v))
#define HALF(v) rn_half_to_float(v)
#define HALF_SQUARE(v) (rn_half_to_float(v) * rn_half_to_float(v))
#define BF16(v) rn_bfloat16_to_float(v)
#define BF16_SQUARE(v) (rn_bfloat16_to_float(v) * rn_bfloat16_to_float(v))
#define NORM32(v) (crealf(v) * crealf(v) + cimagf(v) * cimagf(v))
#define NORM64(v) (creal(v) * creal(v) + cimag(v) * cimag(v))
#define LARGER (x > y || x != x ? x : y)
#define SMALLER (x < y || x != x ? x : y)

#define VSAME(v) (v)
#define VSQUARE(v) ((v) * (v))
#define VMASK(v) ((__typeof__(x > y))(v))
#define VCHOICE(is_x) ((v_t)(((is_x)&VMASK(x)) | (~(is_x)&VMASK(y))))
#define VLARGER VCHOICE((x > y) | (x != x))
#define VSMALLER VCHOICE((x < y) | (x != x))
// The instructions give y where a number is NaN.
#ifdef RN_ISA_avx2
#define LARGER_f32 \
  ((v_t)_mm256_blendv_ps(_mm256_max_ps(x, y), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)))
#define SMALLER_f32 \
  ((v_t)_mm256_blendv_ps(_mm256_min_ps(x, y), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)))
#define LARGER_f64 \
  ((v_t)_mm256_blendv_pd(_mm256_max_pd(x, y), x, _mm256_cmp_pd(x, x, _CMP_UNORD_Q)))
#define SMALLER_f64 \
  ((v_t)_mm256_blendv_pd(_mm256_min_pd(x, y), x, _mm256_cmp_pd(x, x, _CMP_UNORD_Q)))
#else
#define LARGER_f32 VLARGER
#define SMALLER_f32 VSMALLER
#define LARGER_f64 VLARGER
#define SMALLER_f64 VSMALLER
#endif

#define FLOATS(S, T, A, LOAD, LOAD_SQUARE, ROW)                     \
  REDUCE(sum_##S, T, A, LOAD, (x + y), ROW(sum_##S))                \
  REDUCE(squares_##S, T, A, LOAD_SQUARE, (x + y), ROW(squares_##S)) \
  REDUCE(prod_##S, T, A, LOAD, (x * y), ROW(prod_##S))              \
  REDUCE(max_##S, T, A, LOAD, LARGER, ROW(max_##S))                 \
  REDUCE(min_##S, T, A, LOAD, SMALLER, ROW(min_##S))
#define LONG_FLOATS(S, T)                       \
  LONG(sum_##S, T, VSAME, x + y, (x + y))       \
  LONG(squares_##S, T, VSQUARE, x + y, (x + y)) \
  LONG(prod_##S, T, VSAME, x* y, (x * y))       \
  LONG(max_##S, T, VSAME, LARGER_##S, LARGER)   \
  LONG(min_##S, T, VSAME, SMALLER_##S, SMALLER)
#define LONG_ROW(name) long_##name
#define NO_ROW(name) NULL
LONG_FLOATS(f32, float)
LONG_FLOATS(f64, double)

// 16-bit floats: widened in parts.
#ifdef F32_LOAD_HALF
#define LONG_HALVES(name, OP)                                           \
  static float long_##name##_half(const uint16_t* in, int64_t n) {      \
    enum { PART = 512 };                                                \
    float wide[PART], x = 0;                                            \
    for (int64_t begin = 0; begin < n; begin += PART) {                 \
      const int64_t count = n - begin < PART ? n - begin : PART;        \
      int64_t i = 0;                                                    \
      for (; i + F32_WIDTH <= count; i += F32_WIDTH)                    \
        F32_STORE(wide + i, F32_LOAD_HALF(in + begin + i));             \
      for (; i < count; ++i) wide[i] = rn_half_to_float(in[begin + i]); \
      float y = wide[0];                                                \
      if (count > SHORT)                                                \
        y = long_##name##_f32(wide, count);                             \
      else                                                              \
        reduce_##name##_f32(wide, 1, count, 1, 1, &y);                  \
      x = begin ? (OP) : y;                                             \
    }                                                                   \
    return x;                                                           \
  }
#define HALF_ROW(name) long_##name
#else
#define LONG_HALVES(name, OP)
#define HALF_ROW(name) NULL
#endif
FLOATS(f32, float, float, SAME, SQUARE, LONG_ROW)
FLOATS(f64, double, double, SAME, SQUARE, LONG_ROW)
LONG_HALVES(sum, x + y)
LONG_HALVES(squares, x + y)
LONG_HALVES(prod, x* y)
LONG_HALVES(max, LARGER)
LONG_HALVES(min, SMALLER)
FLOATS(half, uint16_t, float, HALF, HALF_SQUARE, HALF_ROW)
FLOATS(bf16, uint16_t, float, BF16, BF16_SQUARE, NO_ROW)

// Integers wrap around: sums and products use the unsigned type for both.
#define INTS(S, T, U, SQUARE_, ROW)                          \
  REDUCE(sum_##S, T, T, SAME, (T)((U)x + (U)y), ROW)         \
  REDUCE(squares_##S, T, T, SQUARE_, (T)((U)x + (U)y), NULL) \
  REDUCE(prod_##S, T, T, SAME, (T)((U)x * (U)y), NULL)
#define SQUARE8(v) (uint8_t)((v) * (v))
#define SQUARE16(v) (uint16_t)((uint32_t)(v) * (v))
LONG(sum_u32, uint32_t, VSAME, x + y, (x + y))
INTS(u8, uint8_t, uint32_t, SQUARE8, NULL)
INTS(u16, uint16_t, uint32_t, SQUARE16, NULL)
INTS(u32, uint32_t, uint32_t, SQUARE, long_sum_u32)
INTS(u64, uint64_t, uint64_t, SQUARE, NULL)

#define ORDERED_INTS(S, T, W, WIDER)                                      \
  REDUCE(wide_sum_##S, T, W, WIDER, (W)((uint64_t)x + (uint64_t)y), NULL) \
  REDUCE(max_##S, T, T, SAME, (x > y ? x : y), NULL)                      \
  REDUCE(min_##S, T, T, SAME, (x < y ? x : y), NULL)
ORDERED_INTS(i8, int8_t, int64_t, WIDER_SIGNED)
ORDERED_INTS(i16, int16_t, int64_t, WIDER_SIGNED)
ORDERED_INTS(i32, int32_t, int64_t, WIDER_SIGNED)
ORDERED_INTS(i64, int64_t, int64_t, WIDER_SIGNED)
ORDERED_INTS(u8, uint8_t, uint64_t, WIDER_UNSIGNED)
ORDERED_INTS(u16, uint16_t, uint64_t, WIDER_UNSIGNED)
ORDERED_INTS(u32, uint32_t, uint64_t, WIDER_UNSIGNED)
ORDERED_INTS(u64, uint64_t, uint64_t, WIDER_UNSIGNED)

#define COMPLEX(S, T, NORM)                      \
  REDUCE(sum_##S, T, T, SAME, (x + y), NULL)     \
  REDUCE(squares_##S, T, T, NORM, (x + y), NULL) \
  REDUCE(prod_##S, T, T, SAME, (x * y), NULL)
COMPLEX(c64, float complex, NORM32)
COMPLEX(c128, double complex, NORM64)

#define TRUTH(v) ((uint8_t)((v) != 0))
#define VTRUTH(v) ((v_t)((v) != 0) & 1)
LONG(and_bool, uint8_t, VTRUTH, x& y, (x & y))
LONG(or_bool, uint8_t, VTRUTH, x | y, (x | y))
#define LONG_BOOLS(name, OP)                                \
  static uint8_t row_##name(const uint8_t* in, int64_t n) { \
    if (n >= 4 * ROW_BYTES) return long_##name(in, n);      \
    uint8_t x = TRUTH(in[0]);                               \
    for (int64_t i = 1; i < n; ++i) {                       \
      const uint8_t y = TRUTH(in[i]);                       \
      x = OP;                                               \
    }                                                       \
    return x;                                               \
  }
LONG_BOOLS(and_bool, x& y)
LONG_BOOLS(or_bool, x | y)
REDUCE(and_bool, uint8_t, uint8_t, TRUTH, (x & y), row_and_bool)
REDUCE(or_bool, uint8_t, uint8_t, TRUTH, (x | y), row_or_bool)

#define INT_ROW(name, sign)                                                         \
  [RN_INT8] = reduce_##name##_##sign##8, [RN_INT16] = reduce_##name##_##sign##16,   \
  [RN_INT32] = reduce_##name##_##sign##32, [RN_INT64] = reduce_##name##_##sign##64, \
  [RN_UINT8] = reduce_##name##_u8, [RN_UINT16] = reduce_##name##_u16,               \
  [RN_UINT32] = reduce_##name##_u32, [RN_UINT64] = reduce_##name##_u64
#define REAL_ROW(name, sign)                                                                   \
  INT_ROW(name, sign), [RN_HALF] = reduce_##name##_half, [RN_BFLOAT16] = reduce_##name##_bf16, \
                       [RN_FLOAT] = reduce_##name##_f32, [RN_DOUBLE] = reduce_##name##_f64
#define NUMBER_ROW(name) \
  REAL_ROW(name, u), [RN_COMPLEX64] = reduce_##name##_c64, [RN_COMPLEX128] = reduce_##name##_c128

const rn_reduce_table_t RN_ISA_NAME(rn_reduce_table_) = {{
    [RN_REDUCE_SUM] = {NUMBER_ROW(sum)},
    [RN_REDUCE_SUM_WIDE] = {INT_ROW(wide_sum, i)},
    [RN_REDUCE_SUM_SQUARES] = {NUMBER_ROW(squares)},
    [RN_REDUCE_PROD] = {NUMBER_ROW(prod)},
    [RN_REDUCE_MAX] = {REAL_ROW(max, i)},
    [RN_REDUCE_MIN] = {REAL_ROW(min, i)},
    [RN_REDUCE_AND] = {[RN_BOOL] = reduce_and_bool},
    [RN_REDUCE_OR] = {[RN_BOOL] = reduce_or_bool},
}};
