// Reduction loops. Narrow rows are combined several at a time, side by side in up to LANES lanes,
// which are folded in halves at the end. Wide rows are combined one after the other, in parts that
// fit the L1 cache.
#include "kernels/cpu/isa/reduce.h"

#include <complex.h>

#include "kernels/cpu/isa/isa.h"
#include "tensor/float16.h"

#define LANES(A) ((int64_t)(512 / sizeof(A)))
// Rows of up to SHORT elements are summed one by one, GROUP rows at a time.
#define SHORT 32
#define GROUP 16
#define PART(A) ((int64_t)(8192 / sizeof(A)))

// T: the input type. A: the result type. LOAD converts T to A; OP combines x and y.
#define REDUCE(name, T, A, LOAD, OP)                                                          \
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

#define FLOATS(S, T, A, LOAD, LOAD_SQUARE)        \
  REDUCE(sum_##S, T, A, LOAD, (x + y))            \
  REDUCE(squares_##S, T, A, LOAD_SQUARE, (x + y)) \
  REDUCE(prod_##S, T, A, LOAD, (x * y))           \
  REDUCE(max_##S, T, A, LOAD, LARGER)             \
  REDUCE(min_##S, T, A, LOAD, SMALLER)
FLOATS(half, uint16_t, float, HALF, HALF_SQUARE)
FLOATS(bf16, uint16_t, float, BF16, BF16_SQUARE)
FLOATS(f32, float, float, SAME, SQUARE)
FLOATS(f64, double, double, SAME, SQUARE)

// Integers wrap around: sums and products use the unsigned type for both.
#define INTS(S, T, U, SQUARE_)                         \
  REDUCE(sum_##S, T, T, SAME, (T)((U)x + (U)y))        \
  REDUCE(squares_##S, T, T, SQUARE_, (T)((U)x + (U)y)) \
  REDUCE(prod_##S, T, T, SAME, (T)((U)x * (U)y))
#define SQUARE8(v) (uint8_t)((v) * (v))
#define SQUARE16(v) (uint16_t)((uint32_t)(v) * (v))
INTS(u8, uint8_t, uint32_t, SQUARE8)
INTS(u16, uint16_t, uint32_t, SQUARE16)
INTS(u32, uint32_t, uint32_t, SQUARE)
INTS(u64, uint64_t, uint64_t, SQUARE)

#define ORDERED_INTS(S, T, W, WIDER)                                \
  REDUCE(wide_sum_##S, T, W, WIDER, (W)((uint64_t)x + (uint64_t)y)) \
  REDUCE(max_##S, T, T, SAME, (x > y ? x : y))                      \
  REDUCE(min_##S, T, T, SAME, (x < y ? x : y))
ORDERED_INTS(i8, int8_t, int64_t, WIDER_SIGNED)
ORDERED_INTS(i16, int16_t, int64_t, WIDER_SIGNED)
ORDERED_INTS(i32, int32_t, int64_t, WIDER_SIGNED)
ORDERED_INTS(i64, int64_t, int64_t, WIDER_SIGNED)
ORDERED_INTS(u8, uint8_t, uint64_t, WIDER_UNSIGNED)
ORDERED_INTS(u16, uint16_t, uint64_t, WIDER_UNSIGNED)
ORDERED_INTS(u32, uint32_t, uint64_t, WIDER_UNSIGNED)
ORDERED_INTS(u64, uint64_t, uint64_t, WIDER_UNSIGNED)

#define COMPLEX(S, T, NORM)                \
  REDUCE(sum_##S, T, T, SAME, (x + y))     \
  REDUCE(squares_##S, T, T, NORM, (x + y)) \
  REDUCE(prod_##S, T, T, SAME, (x * y))
COMPLEX(c64, float complex, NORM32)
COMPLEX(c128, double complex, NORM64)

#define TRUTH(v) ((uint8_t)((v) != 0))
REDUCE(and_bool, uint8_t, uint8_t, TRUTH, (x & y))
REDUCE(or_bool, uint8_t, uint8_t, TRUTH, (x | y))

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
