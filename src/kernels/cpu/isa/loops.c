// The loops of kernels/cpu/loops.h for one ISA level.
#include "kernels/cpu/loops.h"

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/types.h"

#define ARGS void *arg, const void *const *in, const int *steps, void *out, int64_t n

// |EXPRESSION| uses x (and y) in the computed type; R is the stored result type.
#define UNARY(name, T, C, LOAD, R, EXPRESSION)     \
  static void name(ARGS) {                         \
    (void)arg;                                     \
    const T* a = in[0];                            \
    R* to = out;                                   \
    if (steps[0]) {                                \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {   \
        const C x = LOAD(a[i]);                    \
        to[i] = (R)(EXPRESSION);                   \
      }                                            \
      return;                                      \
    }                                              \
    const C x = LOAD(a[0]);                        \
    const R value = (R)(EXPRESSION);               \
    for (int64_t i = 0; i < n; ++i) to[i] = value; \
  }

#define BINARY(name, T, C, LOAD, R, SETUP, EXPRESSION) \
  static void name(ARGS) {                             \
    (void)arg;                                         \
    SETUP;                                             \
    const T* a = in[0];                                \
    const T* b = in[1];                                \
    R* to = out;                                       \
    if (steps[0] && steps[1]) {                        \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {       \
        const C x = LOAD(a[i]), y = LOAD(b[i]);        \
        to[i] = (R)(EXPRESSION);                       \
      }                                                \
    } else if (steps[0]) {                             \
      const C y = LOAD(b[0]);                          \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {       \
        const C x = LOAD(a[i]);                        \
        to[i] = (R)(EXPRESSION);                       \
      }                                                \
    } else if (steps[1]) {                             \
      const C x = LOAD(a[0]);                          \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {       \
        const C y = LOAD(b[i]);                        \
        to[i] = (R)(EXPRESSION);                       \
      }                                                \
    } else {                                           \
      const C x = LOAD(a[0]), y = LOAD(b[0]);          \
      const R value = (R)(EXPRESSION);                 \
      for (int64_t i = 0; i < n; ++i) to[i] = value;   \
    }                                                  \
  }

#define COMPARISONS(S, T, D, C, LOAD, SAVE)          \
  BINARY(equal_##S, T, C, LOAD, bool, , x == y)      \
  BINARY(not_equal_##S, T, C, LOAD, bool, , x != y)  \
  BINARY(less_##S, T, C, LOAD, bool, , x < y)        \
  BINARY(less_equal_##S, T, C, LOAD, bool, , x <= y) \
  BINARY(greater_##S, T, C, LOAD, bool, , x > y)     \
  BINARY(greater_equal_##S, T, C, LOAD, bool, , x >= y)
REAL_TYPES(COMPARISONS)

BINARY(approximate_equal_f32, float, float, SAME, bool, const float tolerance = *(const float*)arg,
       __builtin_fabsf(x - y) <= tolerance)
BINARY(approximate_equal_f64, double, double, SAME, bool,
       const double tolerance = *(const float*)arg, __builtin_fabs(x - y) <= tolerance)

#define COMPLEX_COMPARISONS(S, T)                                                \
  typedef struct S##_t {                                                         \
    T re, im;                                                                    \
  } S##_t;                                                                       \
  BINARY(equal_##S, S##_t, S##_t, SAME, bool, , (x.re == y.re) & (x.im == y.im)) \
  BINARY(not_equal_##S, S##_t, S##_t, SAME, bool, , (x.re != y.re) | (x.im != y.im))
COMPLEX_COMPARISONS(c64, float)
COMPLEX_COMPARISONS(c128, double)

#define CLASSES(S, T, D, C, LOAD, SAVE)                            \
  UNARY(is_nan_##S, T, C, LOAD, bool, x != x)                      \
  UNARY(is_inf_##S, T, C, LOAD, bool, (x == x) & (x - x != x - x)) \
  UNARY(is_finite_##S, T, C, LOAD, bool, (x - x) == 0)
FLOAT_TYPES(CLASSES)

BINARY(logical_and, uint8_t, uint8_t, SAME, uint8_t, , (x != 0) & (y != 0))
BINARY(logical_or, uint8_t, uint8_t, SAME, uint8_t, , (x | y) != 0)
UNARY(logical_not, uint8_t, uint8_t, SAME, uint8_t, x == 0)

// The number of bits that are set, by sums of neighbours in lanes of the type's own width, which
// compilers vectorize for every processor.
#define BITS_IN(S, T, D, C, LOAD, SAVE)                                                \
  static inline uint8_t bits_in_##S(T x) {                                             \
    x = (T)(x - (x >> 1 & (T)0x5555555555555555));                                     \
    x = (T)((x & (T)0x3333333333333333) + (x >> 2 & (T)0x3333333333333333));           \
    x = (T)((x + (x >> 4)) & (T)0x0f0f0f0f0f0f0f0f);                                   \
    for (unsigned bits = 8; bits < 8 * sizeof(T); bits *= 2) x = (T)(x + (x >> bits)); \
    return (uint8_t)(x & 0x7f);                                                        \
  }
UNSIGNED_TYPES(BITS_IN)

#define BITS(S, T, D, C, LOAD, SAVE)              \
  BINARY(bitwise_and_##S, T, C, LOAD, T, , x& y)  \
  BINARY(bitwise_or_##S, T, C, LOAD, T, , x | y)  \
  BINARY(bitwise_xor_##S, T, C, LOAD, T, , x ^ y) \
  UNARY(invert_##S, T, C, LOAD, T, ~x)            \
  UNARY(population_count_##S, T, C, LOAD, uint8_t, bits_in_##S(x))
UNSIGNED_TYPES(BITS)

// Left shifts are computed unsigned, in 32 bits where they suffice.
#define SHIFTED_LEFT(T, x, count) \
  (sizeof(T) <= 4 ? (uint32_t)(x) << (count) : (uint64_t)(x) << ((count)&63))
#define SHIFTS(S, T, D, C, LOAD, SAVE)                                           \
  BINARY(left_shift_##S, T, C, LOAD, T, const int top = 8 * (int)sizeof(T) - 1,  \
         SHIFTED_LEFT(T, x,                                                      \
                      (y < 0                         ? 0                         \
                       : (uint64_t)y > (uint64_t)top ? top                       \
                                                     : (int)y)))                 \
  BINARY(right_shift_##S, T, C, LOAD, T, const int top = 8 * (int)sizeof(T) - 1, \
         x >> (y < 0                         ? 0                                 \
               : (uint64_t)y > (uint64_t)top ? top                               \
                                             : (int)y))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
INTEGER_TYPES(SHIFTS)
#pragma GCC diagnostic pop

#define floor_of(x) _Generic((x), float : __builtin_floorf, double : __builtin_floor)(x)
#define trunc_of(x) _Generic((x), float : __builtin_truncf, double : __builtin_trunc)(x)
#define QUOTIENTS(S, T)                                   \
  BINARY(floor_div_##S, T, T, SAME, T, , floor_of(x / y)) \
  BINARY(truncate_div_##S, T, T, SAME, T, , trunc_of(x / y))
QUOTIENTS(f32, float)
QUOTIENTS(f64, double)

// Quotients of 32-bit integers are exact in double: the distance of x / y to the next integer is at
// least 1 / y. By 0: 0. The least number divided by -1 is itself, as with wrap-around.
static inline int32_t wrapped(double quotient) {
  return (int32_t)(quotient < 0x1p31 ? quotient : -0x1p31);
}
static inline int32_t less_product(int32_t x, int32_t q, int32_t y) {
  return (int32_t)((uint32_t)x - (uint32_t)q * (uint32_t)y);
}
#define QUOTIENT(x, y) ((double)(x) / (double)((y) == 0 ? 1 : (y)))
BINARY(floor_div_i32, int32_t, int32_t, SAME, int32_t, ,
       y == 0 ? 0 : wrapped(__builtin_floor(QUOTIENT(x, y))))
BINARY(truncate_div_i32, int32_t, int32_t, SAME, int32_t, , y == 0 ? 0 : wrapped(QUOTIENT(x, y)))
BINARY(floor_mod_i32, int32_t, int32_t, SAME, int32_t, ,
       y == 0 ? 0 : less_product(x, wrapped(__builtin_floor(QUOTIENT(x, y))), y))
BINARY(truncate_mod_i32, int32_t, int32_t, SAME, int32_t, ,
       y == 0 ? 0 : less_product(x, wrapped(QUOTIENT(x, y)), y))

#define FLOATS(S, T, D, C, LOAD, SAVE)                                                \
  static void leaky_relu_##S(ARGS) {                                                  \
    const C alpha = (C) * (const float*)arg;                                          \
    const T* a = in[0];                                                               \
    T* to = out;                                                                      \
    (void)steps;                                                                      \
    RN_IVDEP for (int64_t i = 0; i < n; ++i) {                                        \
      const C x = LOAD(a[i]);                                                         \
      to[i] = SAVE(x > 0 ? x : alpha * x);                                            \
    }                                                                                 \
  }                                                                                   \
  BINARY(leaky_relu_grad_##S, T, C, LOAD, T, const C alpha = (C) * (const float*)arg, \
         SAVE(y > 0 ? x : x * alpha))
FLOAT_TYPES(FLOATS)

// NaN stays NaN. Bounds are usually scalars.
#define CLIP(S, T, D, C, LOAD, SAVE)                                            \
  static void clip_##S(ARGS) {                                                  \
    (void)arg;                                                                  \
    const T *value = in[0], *least = in[1], *most = in[2];                      \
    T* to = out;                                                                \
    if (steps[0] && !steps[1] && !steps[2]) {                                   \
      const C low = LOAD(least[0]), high = LOAD(most[0]);                       \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {                                \
        C x = LOAD(value[i]);                                                   \
        x = x > high ? high : x;                                                \
        to[i] = SAVE(x < low ? low : x);                                        \
      }                                                                         \
      return;                                                                   \
    }                                                                           \
    for (int64_t i = 0; i < n; ++i) {                                           \
      const C low = LOAD(least[steps[1] * i]), high = LOAD(most[steps[2] * i]); \
      C x = LOAD(value[steps[0] * i]);                                          \
      x = x > high ? high : x;                                                  \
      to[i] = SAVE(x < low ? low : x);                                          \
    }                                                                           \
  }
REAL_TYPES(CLIP)

typedef struct loops_wide_t {
  uint64_t half[2];
} loops_wide_t;

#define SELECT(S, T)                                                      \
  static void select_##S(ARGS) {                                          \
    (void)arg;                                                            \
    const uint8_t* condition = in[0];                                     \
    const T *yes = in[1], *no = in[2];                                    \
    T* to = out;                                                          \
    if (steps[0] && steps[1] && steps[2]) {                               \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {                          \
        const T t = yes[i], e = no[i];                                    \
        to[i] = condition[i] ? t : e;                                     \
      }                                                                   \
    } else if (steps[0] && steps[1]) {                                    \
      const T e = no[0];                                                  \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {                          \
        const T t = yes[i];                                               \
        to[i] = condition[i] ? t : e;                                     \
      }                                                                   \
    } else if (steps[0] && steps[2]) {                                    \
      const T t = yes[0];                                                 \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {                          \
        const T e = no[i];                                                \
        to[i] = condition[i] ? t : e;                                     \
      }                                                                   \
    } else {                                                              \
      const uint8_t condition0 = condition[0];                            \
      const T yes0 = yes[0], no0 = no[0];                                 \
      for (int64_t i = 0; i < n; ++i) {                                   \
        const T t = steps[1] ? yes[i] : yes0, e = steps[2] ? no[i] : no0; \
        to[i] = (steps[0] ? condition[i] : condition0) ? t : e;           \
      }                                                                   \
    }                                                                     \
  }
SELECT(1, uint8_t)
SELECT(2, uint16_t)
SELECT(4, uint32_t)
SELECT(8, uint64_t)
SELECT(16, loops_wide_t)

#define ROWS(code, name, TYPES) [RN_LOOP_##code] = {TYPES(ROW_##name)}
#define ROW_equal(S, T, D, C, LOAD, SAVE) [RN_##D] = equal_##S,
#define ROW_not_equal(S, T, D, C, LOAD, SAVE) [RN_##D] = not_equal_##S,
#define ROW_less(S, T, D, C, LOAD, SAVE) [RN_##D] = less_##S,
#define ROW_less_equal(S, T, D, C, LOAD, SAVE) [RN_##D] = less_equal_##S,
#define ROW_greater(S, T, D, C, LOAD, SAVE) [RN_##D] = greater_##S,
#define ROW_greater_equal(S, T, D, C, LOAD, SAVE) [RN_##D] = greater_equal_##S,
#define ROW_is_nan(S, T, D, C, LOAD, SAVE) [RN_##D] = is_nan_##S,
#define ROW_is_inf(S, T, D, C, LOAD, SAVE) [RN_##D] = is_inf_##S,
#define ROW_is_finite(S, T, D, C, LOAD, SAVE) [RN_##D] = is_finite_##S,
#define ROW_left_shift(S, T, D, C, LOAD, SAVE) [RN_##D] = left_shift_##S,
#define ROW_right_shift(S, T, D, C, LOAD, SAVE) [RN_##D] = right_shift_##S,
#define ROW_leaky_relu(S, T, D, C, LOAD, SAVE) [RN_##D] = leaky_relu_##S,
#define ROW_leaky_relu_grad(S, T, D, C, LOAD, SAVE) [RN_##D] = leaky_relu_grad_##S,
#define ROW_clip(S, T, D, C, LOAD, SAVE) [RN_##D] = clip_##S,

#define UNSIGNED_ROWS(name)                                                  \
  [RN_INT8] = name##_u8, [RN_INT16] = name##_u16, [RN_INT32] = name##_u32,   \
  [RN_INT64] = name##_u64, [RN_UINT8] = name##_u8, [RN_UINT16] = name##_u16, \
  [RN_UINT32] = name##_u32, [RN_UINT64] = name##_u64

// Quantized numbers and bools are equal if their bytes are.
#define EQUALITIES(name)                                                         \
  REAL_TYPES(ROW_##name)                                                         \
  [RN_BOOL] = name##_u8, [RN_QINT8] = name##_u8, [RN_QUINT8] = name##_u8,        \
  [RN_QINT16] = name##_u16, [RN_QUINT16] = name##_u16, [RN_QINT32] = name##_u32, \
  [RN_COMPLEX64] = name##_c64, [RN_COMPLEX128] = name##_c128

extern const rn_loops_t RN_ISA_NAME(rn_loops_);
const rn_loops_t RN_ISA_NAME(rn_loops_) = {
    .fn =
        {
            [RN_LOOP_EQUAL] = {EQUALITIES(equal)},
            [RN_LOOP_NOT_EQUAL] = {EQUALITIES(not_equal)},
            ROWS(LESS, less, REAL_TYPES),
            ROWS(LESS_EQUAL, less_equal, REAL_TYPES),
            ROWS(GREATER, greater, REAL_TYPES),
            ROWS(GREATER_EQUAL, greater_equal, REAL_TYPES),
            [RN_LOOP_APPROXIMATE_EQUAL] =
                {[RN_FLOAT] = approximate_equal_f32, [RN_DOUBLE] = approximate_equal_f64},
            ROWS(IS_NAN, is_nan, FLOAT_TYPES),
            ROWS(IS_INF, is_inf, FLOAT_TYPES),
            ROWS(IS_FINITE, is_finite, FLOAT_TYPES),
            [RN_LOOP_LOGICAL_AND] = {[RN_BOOL] = logical_and},
            [RN_LOOP_LOGICAL_OR] = {[RN_BOOL] = logical_or},
            [RN_LOOP_LOGICAL_NOT] = {[RN_BOOL] = logical_not},
            [RN_LOOP_BITWISE_AND] = {UNSIGNED_ROWS(bitwise_and)},
            [RN_LOOP_BITWISE_OR] = {UNSIGNED_ROWS(bitwise_or)},
            [RN_LOOP_BITWISE_XOR] = {UNSIGNED_ROWS(bitwise_xor)},
            [RN_LOOP_INVERT] = {UNSIGNED_ROWS(invert)},
            ROWS(LEFT_SHIFT, left_shift, INTEGER_TYPES),
            ROWS(RIGHT_SHIFT, right_shift, INTEGER_TYPES),
            [RN_LOOP_POPULATION_COUNT] = {UNSIGNED_ROWS(population_count)},
            [RN_LOOP_FLOOR_DIV] = {[RN_FLOAT] = floor_div_f32,
                                   [RN_DOUBLE] = floor_div_f64,
                                   [RN_INT32] = floor_div_i32},
            [RN_LOOP_TRUNCATE_DIV] = {[RN_FLOAT] = truncate_div_f32,
                                      [RN_DOUBLE] = truncate_div_f64,
                                      [RN_INT32] = truncate_div_i32},
            [RN_LOOP_FLOOR_MOD] = {[RN_INT32] = floor_mod_i32},
            [RN_LOOP_TRUNCATE_MOD] = {[RN_INT32] = truncate_mod_i32},
            ROWS(LEAKY_RELU, leaky_relu, FLOAT_TYPES),
            ROWS(LEAKY_RELU_GRAD, leaky_relu_grad, FLOAT_TYPES),
            ROWS(CLIP, clip, REAL_TYPES),
        },
    .select = {select_1, select_2, select_4, select_8, select_16},
};
