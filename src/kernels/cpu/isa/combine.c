// The combine loops for one ISA level. See kernels/cpu/combine.h.
#include "kernels/cpu/combine.h"

#include <complex.h>
#include <stdbool.h>

#include "kernels/cpu/isa/isa.h"
#include "tensor/float16.h"

// T: the stored type. U: the computed type. LOAD and STORE convert between them.
#define LOOP(name, T, U, LOAD, STORE, EXPRESSION)                                    \
  static void name(const void* a, const void* b, int b_step, void* out, int64_t n) { \
    const T *pa = a, *pb = b;                                                        \
    T* po = out;                                                                     \
    if (b_step) {                                                                    \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {                                     \
        const U x = LOAD(pa[i]), y = LOAD(pb[i]);                                    \
        (void)x;                                                                     \
        po[i] = STORE(EXPRESSION);                                                   \
      }                                                                              \
    } else {                                                                         \
      const U y = LOAD(pb[0]);                                                       \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {                                     \
        const U x = LOAD(pa[i]);                                                     \
        (void)x;                                                                     \
        po[i] = STORE(EXPRESSION);                                                   \
      }                                                                              \
    }                                                                                \
  }

#define SAME(x) (x)
#define AS_HALF(x) rn_half_to_float(x)
#define TO_HALF(x) rn_float_to_half(x)
#define AS_BF16(x) rn_bfloat16_to_float(x)
#define TO_BF16(x) rn_float_to_bfloat16(x)

#define FLOATS(S, T, U, LOAD, STORE)              \
  LOOP(assign_##S, T, T, SAME, SAME, y)           \
  LOOP(add_##S, T, U, LOAD, STORE, x + y)         \
  LOOP(sub_##S, T, U, LOAD, STORE, x - y)         \
  LOOP(mul_##S, T, U, LOAD, STORE, x* y)          \
  LOOP(div_##S, T, U, LOAD, STORE, x / y)         \
  LOOP(min_##S, T, U, LOAD, STORE, y < x ? y : x) \
  LOOP(max_##S, T, U, LOAD, STORE, x < y ? y : x)
FLOATS(half, uint16_t, float, AS_HALF, TO_HALF)
FLOATS(bf16, uint16_t, float, AS_BF16, TO_BF16)
FLOATS(f32, float, float, SAME, SAME)
FLOATS(f64, double, double, SAME, SAME)

// Computed unsigned in at least 32 bits and truncated. The one quotient that overflows wraps
// around.
#define SIGNED_RATIO(T, U) (y == 0 ? 0 : y == (T)-1 ? (T)((U)0 - (U)x) : x / y)
#define UNSIGNED_RATIO(T, U) (y == 0 ? 0 : x / y)
#define INTS(S, T, U, RATIO)                     \
  LOOP(assign_##S, T, T, SAME, SAME, y)          \
  LOOP(add_##S, T, U, (U), (T), (x + y))         \
  LOOP(sub_##S, T, U, (U), (T), (x - y))         \
  LOOP(mul_##S, T, U, (U), (T), (x * y))         \
  LOOP(div_##S, T, T, SAME, (T), RATIO(T, U))    \
  LOOP(min_##S, T, T, SAME, SAME, y < x ? y : x) \
  LOOP(max_##S, T, T, SAME, SAME, x < y ? y : x)
INTS(i8, int8_t, uint32_t, SIGNED_RATIO)
INTS(i16, int16_t, uint32_t, SIGNED_RATIO)
INTS(i32, int32_t, uint32_t, SIGNED_RATIO)
INTS(i64, int64_t, uint64_t, SIGNED_RATIO)
INTS(u8, uint8_t, uint32_t, UNSIGNED_RATIO)
INTS(u16, uint16_t, uint32_t, UNSIGNED_RATIO)
INTS(u32, uint32_t, uint32_t, UNSIGNED_RATIO)
INTS(u64, uint64_t, uint64_t, UNSIGNED_RATIO)

#define COMPLEX(S, T)                    \
  LOOP(assign_##S, T, T, SAME, SAME, y)  \
  LOOP(add_##S, T, T, SAME, SAME, x + y) \
  LOOP(sub_##S, T, T, SAME, SAME, x - y) \
  LOOP(mul_##S, T, T, SAME, SAME, x* y)  \
  LOOP(div_##S, T, T, SAME, SAME, x / y)
COMPLEX(c64, float complex)
COMPLEX(c128, double complex)

LOOP(assign_bool, uint8_t, uint8_t, SAME, SAME, y)
LOOP(or_bool, uint8_t, uint8_t, SAME, SAME, x | y)
LOOP(and_bool, uint8_t, uint8_t, SAME, SAME, x& y)
LOOP(xor_bool, uint8_t, uint8_t, SAME, SAME, x ^ y)

#define REAL_ROW(name)                                                           \
  [RN_HALF] = name##_half, [RN_BFLOAT16] = name##_bf16, [RN_FLOAT] = name##_f32, \
  [RN_DOUBLE] = name##_f64, [RN_INT8] = name##_i8, [RN_INT16] = name##_i16,      \
  [RN_INT32] = name##_i32, [RN_INT64] = name##_i64, [RN_UINT8] = name##_u8,      \
  [RN_UINT16] = name##_u16, [RN_UINT32] = name##_u32, [RN_UINT64] = name##_u64
#define NUMBER_ROW(name) REAL_ROW(name), [RN_COMPLEX64] = name##_c64, [RN_COMPLEX128] = name##_c128

const rn_combine_table_t RN_ISA_NAME(rn_combine_table_) = {{
    [RN_COMBINE_ASSIGN] = {NUMBER_ROW(assign), [RN_BOOL] = assign_bool},
    [RN_COMBINE_ADD] = {NUMBER_ROW(add), [RN_BOOL] = or_bool},
    [RN_COMBINE_SUB] = {NUMBER_ROW(sub), [RN_BOOL] = xor_bool},
    [RN_COMBINE_MUL] = {NUMBER_ROW(mul), [RN_BOOL] = and_bool},
    [RN_COMBINE_DIV] = {NUMBER_ROW(div)},
    [RN_COMBINE_MIN] = {REAL_ROW(min), [RN_BOOL] = and_bool},
    [RN_COMBINE_MAX] = {REAL_ROW(max), [RN_BOOL] = or_bool},
}};
