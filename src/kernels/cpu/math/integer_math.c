// Integer division, remainders and powers, and float remainders. But for int32, there are no vector
// instructions for them.
#include <math.h>
#include <stdatomic.h>

#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/isa/types.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// A loop sets |arg| if it meets an invalid operand.
#define LOOP(name, T, C, LOAD, IS_BAD, EXPRESSION)                                             \
  static void name(void* arg, const void* const* in, const int* steps, void* out, int64_t n) { \
    (void)arg;                                                                                 \
    const T *a = in[0], *b = in[1];                                                            \
    T* to = out;                                                                               \
    for (int64_t i = 0; i < n; ++i) {                                                          \
      const C x = LOAD(a[steps[0] ? i : 0]), y = LOAD(b[steps[1] ? i : 0]);                    \
      if (IS_BAD) {                                                                            \
        atomic_store_explicit((atomic_bool*)arg, true, memory_order_relaxed);                  \
        to[i] = 0;                                                                             \
        continue;                                                                              \
      }                                                                                        \
      to[i] = EXPRESSION;                                                                      \
    }                                                                                          \
  }

// The least number divided by -1 is itself, as with wrap-around.
#define SIGNED_DIVISION(S, T)                                                                    \
  static inline T quotient_##S(T x, T y) { return y == -1 ? (T)(0 - (uint64_t)x) : (T)(x / y); } \
  static inline T remainder_##S(T x, T y) { return y == -1 ? 0 : (T)(x % y); }                   \
  static inline T floor_quotient_##S(T x, T y) {                                                 \
    T q = quotient_##S(x, y);                                                                    \
    return remainder_##S(x, y) != 0 && (x < 0) != (y < 0) ? (T)(q - 1) : q;                      \
  }                                                                                              \
  static inline T floor_remainder_##S(T x, T y) {                                                \
    T r = remainder_##S(x, y);                                                                   \
    return r != 0 && (r < 0) != (y < 0) ? (T)(r + y) : r;                                        \
  }                                                                                              \
  LOOP(div_##S, T, T, SAME, y == 0, quotient_##S(x, y))                                          \
  LOOP(floor_div_##S, T, T, SAME, y == 0, floor_quotient_##S(x, y))                              \
  LOOP(mod_##S, T, T, SAME, y == 0, remainder_##S(x, y))                                         \
  LOOP(floor_mod_##S, T, T, SAME, y == 0, floor_remainder_##S(x, y))
SIGNED_DIVISION(i8, int8_t)
SIGNED_DIVISION(i16, int16_t)
SIGNED_DIVISION(i64, int64_t)

#define POWER(S, T, D, C, LOAD, SAVE)                        \
  static inline T power_##S(T x, T y) {                      \
    uint64_t result = 1, base = (uint64_t)x;                 \
    for (uint64_t e = (uint64_t)y; e; e >>= 1, base *= base) \
      if (e & 1) result *= base;                             \
    return (T)result;                                        \
  }                                                          \
  LOOP(pow_##S, T, T, SAME, y < 0, power_##S(x, y))
SIGNED_TYPES(POWER)

#define UNSIGNED(S, T, D, C, LOAD, SAVE)        \
  LOOP(div_##S, T, T, SAME, y == 0, (T)(x / y)) \
  LOOP(mod_##S, T, T, SAME, y == 0, (T)(x % y))
UNSIGNED_TYPES(UNSIGNED)

static inline double floor_remainder(double x, double y) {
  double r = fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static inline float floor_remainder_f(float x, float y) {
  float r = fmodf(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
LOOP(floor_mod_f16, uint16_t, float, rn_half_to_float, false,
     rn_float_to_half(floor_remainder_f(x, y)))
LOOP(floor_mod_bf16, uint16_t, float, rn_bfloat16_to_float, false,
     rn_float_to_bfloat16(floor_remainder_f(x, y)))
LOOP(floor_mod_f32, float, float, SAME, false, floor_remainder_f(x, y))
LOOP(floor_mod_f64, double, double, SAME, false, floor_remainder(x, y))
LOOP(mod_f32, float, float, SAME, false, fmodf(x, y))
LOOP(mod_f64, double, double, SAME, false, fmod(x, y))
typedef enum { DIV, FLOOR_DIV, MOD, FLOOR_MOD, POW, OP_COUNT } integer_math_op_t;

#define SIGNED_ROW(S, T, D, C, LOAD, SAVE) \
  [RN_##D] = {div_##S, floor_div_##S, mod_##S, floor_mod_##S, pow_##S},
#define UNSIGNED_ROW(S, T, D, C, LOAD, SAVE) [RN_##D] = {div_##S, div_##S, mod_##S, mod_##S, NULL},

// Runs a loop of vectors over int32 numbers; sets |arg| if a divisor is 0.
static void run_int32(rn_loop_code_t code, void* arg, const void* const* in, const int* steps,
                      void* out, int64_t n) {
  const int32_t* divisors = in[1];
  bool is_bad = false;
  for (int64_t i = 0; i < (steps[1] ? n : n > 0); ++i) is_bad |= divisors[i] == 0;
  if (is_bad) atomic_store_explicit((atomic_bool*)arg, true, memory_order_relaxed);
  rn_loops()->fn[code][RN_INT32](NULL, in, steps, out, n);
}
#define INT32_LOOP(name, code)                                                                 \
  static void name(void* arg, const void* const* in, const int* steps, void* out, int64_t n) { \
    run_int32(code, arg, in, steps, out, n);                                                   \
  }
INT32_LOOP(div_i32, RN_LOOP_TRUNCATE_DIV)
INT32_LOOP(floor_div_i32, RN_LOOP_FLOOR_DIV)
INT32_LOOP(mod_i32, RN_LOOP_TRUNCATE_MOD)
INT32_LOOP(floor_mod_i32, RN_LOOP_FLOOR_MOD)

static const rn_run_fn_t loops[RN_DTYPE_COUNT][OP_COUNT] = {
    SIGNED_TYPES(SIGNED_ROW) UNSIGNED_TYPES(UNSIGNED_ROW)[RN_HALF] = {[FLOOR_MOD] = floor_mod_f16},
    [RN_BFLOAT16] = {[FLOOR_MOD] = floor_mod_bf16},
    [RN_FLOAT] = {[FLOOR_MOD] = floor_mod_f32, [MOD] = mod_f32},
    [RN_DOUBLE] = {[FLOOR_MOD] = floor_mod_f64, [MOD] = mod_f64},
};

static rn_status_t compute(rn_kernel_ctx_t* ctx, integer_math_op_t op, bool* out_is_bad) {
  atomic_bool is_bad = false;
  rn_run_fn_t fn = loops[rn_in(ctx, 0)->dtype][op];
  RN_RETURN_IF_ERROR(rn_broadcast_compute(ctx, 2, 3, RN_GRAIN_COSTLY, fn, &is_bad));
  *out_is_bad = is_bad;
  return RN_OK;
}

static rn_status_t divide(rn_kernel_ctx_t* ctx, integer_math_op_t op) {
  bool is_bad = false;
  RN_RETURN_IF_ERROR(compute(ctx, op, &is_bad));
  return is_bad ? rn_invalid_argument("Integer division by zero") : RN_OK;
}

// Stock gives the reason only for the other ops.
static rn_status_t truncate(rn_kernel_ctx_t* ctx, integer_math_op_t op) {
  bool is_bad = false;
  RN_RETURN_IF_ERROR(compute(ctx, op, &is_bad));
  return is_bad ? rn_internal(
                      "Unexpected error in binary operator (only integer div and mod "
                      "should have errors)")
                : RN_OK;
}

static rn_status_t div_compute(rn_kernel_ctx_t* ctx) { return divide(ctx, DIV); }
static rn_status_t floor_div_compute(rn_kernel_ctx_t* ctx) { return divide(ctx, FLOOR_DIV); }
static rn_status_t mod_compute(rn_kernel_ctx_t* ctx) { return divide(ctx, MOD); }
static rn_status_t floor_mod_compute(rn_kernel_ctx_t* ctx) { return divide(ctx, FLOOR_MOD); }
static rn_status_t truncate_div_compute(rn_kernel_ctx_t* ctx) { return truncate(ctx, DIV); }
static rn_status_t truncate_mod_compute(rn_kernel_ctx_t* ctx) { return truncate(ctx, MOD); }

static rn_status_t pow_compute(rn_kernel_ctx_t* ctx) {
  bool is_bad = false;
  RN_RETURN_IF_ERROR(compute(ctx, POW, &is_bad));
  return is_bad ? rn_invalid_argument("Integers to negative integer powers are not allowed")
                : RN_OK;
}

#define WHOLE (RN_TYPES_INTS | RN_TYPES_UINTS)
#define MODS (RN_TYPES_INDEX | RN_T(FLOAT) | RN_T(DOUBLE))
#define ROW(name, function, set)                                                     \
  {                                                                                  \
    .op = name, .device = "CPU", .types = {{"T", set}}, .flags = RN_KERNEL_IN_PLACE, \
    .compute = function                                                              \
  }

static const rn_kernel_def_t rows[] = {
    ROW("Div", div_compute, WHOLE),
    ROW("FloorDiv", floor_div_compute, WHOLE),
    ROW("TruncateDiv", truncate_div_compute, WHOLE),
    ROW("Mod", mod_compute, MODS),
    ROW("TruncateMod", truncate_mod_compute, MODS),
    ROW("FloorMod", floor_mod_compute, RN_TYPES_REAL),
    ROW("Pow", pow_compute, RN_TYPES_INTS),
};
RN_KERNEL_FAMILY(cpu_integer_math, rows);
