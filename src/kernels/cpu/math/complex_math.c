// Complex numbers: elementwise ops, and conversion from and to real numbers.
#include <complex.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/math/operands.h"
#include "kernels/cpu/spans.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

#define ARGS void *arg, const void *const *in, const int *steps, void *out, int64_t n
#define UNARY(name, T, R, EXPRESSION)  \
  static void name(ARGS) {             \
    (void)arg;                         \
    const T* a = in[0];                \
    R* to = out;                       \
    for (int64_t i = 0; i < n; ++i) {  \
      const T x = a[steps[0] ? i : 0]; \
      to[i] = EXPRESSION;              \
    }                                  \
  }
#define BINARY(name, T, R, EXPRESSION)                          \
  static void name(ARGS) {                                      \
    (void)arg;                                                  \
    const T *a = in[0], *b = in[1];                             \
    R* to = out;                                                \
    for (int64_t i = 0; i < n; ++i) {                           \
      const T x = a[steps[0] ? i : 0], y = b[steps[1] ? i : 0]; \
      to[i] = EXPRESSION;                                       \
    }                                                           \
  }

static inline float _Complex make_c64(float re, float im) {
  return (union {
           float parts[2];
           float _Complex number;
         }){{re, im}}
      .number;
}
static inline double _Complex make_c128(double re, double im) {
  return (union {
           double parts[2];
           double _Complex number;
         }){{re, im}}
      .number;
}

// F maps a function name to the type: F(cexp) is cexp or cexpf. As in stock, gradients of roots and
// reciprocals conjugate and the others do not.
#define FUNCTIONS(S, T, R, F)                                                              \
  static inline T expm1_of_##S(T x) {                                                      \
    R re = F(creal)(x), im = F(cimag)(x), half = F(sin)(im / 2);                           \
    return make_##S(F(expm1)(re) * F(cos)(im) - 2 * half * half, F(exp)(re) * F(sin)(im)); \
  }                                                                                        \
  static inline T log1p_of_##S(T x) {                                                      \
    R re = F(creal)(x), im = F(cimag)(x);                                                  \
    R size = re > -(R)0.5 && re < (R)0.5 && im > -(R)0.5 && im < (R)0.5                    \
                 ? F(log1p)(re * (2 + re) + im * im) / 2                                   \
                 : F(log)(F(hypot)(1 + re, im));                                           \
    return make_##S(size, F(atan2)(im, 1 + re));                                           \
  }                                                                                        \
  static inline bool is_zero_##S(T x) { return F(creal)(x) == 0 && F(cimag)(x) == 0; }     \
  static inline T sign_of_##S(T x) {                                                       \
    R size = F(hypot)(F(creal)(x), F(cimag)(x));                                           \
    return size == 0 ? 0 : make_##S(F(creal)(x) / size, F(cimag)(x) / size);               \
  }                                                                                        \
  UNARY(neg_##S, T, T, -x)                                                                 \
  UNARY(square_##S, T, T, x* x)                                                            \
  UNARY(sqrt_##S, T, T, F(csqrt)(x))                                                       \
  UNARY(rsqrt_##S, T, T, 1 / F(csqrt)(x))                                                  \
  UNARY(expm1_##S, T, T, expm1_of_##S(x))                                                  \
  UNARY(log_##S, T, T, F(clog)(x))                                                         \
  UNARY(log1p_##S, T, T, log1p_of_##S(x))                                                  \
  UNARY(reciprocal_##S, T, T, 1 / x)                                                       \
  UNARY(tanh_##S, T, T, F(ctanh)(x))                                                       \
  UNARY(sigmoid_##S, T, T, 1 / (1 + F(cexp)(-x)))                                          \
  UNARY(sin_##S, T, T, F(csin)(x))                                                         \
  UNARY(cos_##S, T, T, F(ccos)(x))                                                         \
  UNARY(tan_##S, T, T, F(ctan)(x))                                                         \
  UNARY(asin_##S, T, T, F(casin)(x))                                                       \
  UNARY(acos_##S, T, T, F(cacos)(x))                                                       \
  UNARY(atan_##S, T, T, F(catan)(x))                                                       \
  UNARY(sinh_##S, T, T, F(csinh)(x))                                                       \
  UNARY(cosh_##S, T, T, F(ccosh)(x))                                                       \
  UNARY(asinh_##S, T, T, F(casinh)(x))                                                     \
  UNARY(acosh_##S, T, T, F(cacosh)(x))                                                     \
  UNARY(atanh_##S, T, T, F(catanh)(x))                                                     \
  UNARY(sign_##S, T, T, sign_of_##S(x))                                                    \
  UNARY(angle_##S, T, R, F(carg)(x))                                                       \
  UNARY(abs_##S, T, R, F(cabs)(x))                                                         \
  BINARY(div_##S, T, T, x / y)                                                             \
  BINARY(pow_##S, T, T, F(cpow)(x, y))                                                     \
  BINARY(div_no_nan_##S, T, T, is_zero_##S(y) ? 0 : x / y)                                 \
  BINARY(mul_no_nan_##S, T, T, is_zero_##S(y) ? 0 : x* y)                                  \
  BINARY(xdivy_##S, T, T, is_zero_##S(x) ? 0 : x / y)                                      \
  BINARY(xlogy_##S, T, T, is_zero_##S(x) ? 0 : x* F(clog)(y))                              \
  BINARY(xlog1py_##S, T, T, is_zero_##S(x) ? 0 : x* log1p_of_##S(y))                       \
  BINARY(squared_difference_##S, T, T, F(conj)(x - y) * (x - y))                           \
  BINARY(sigmoid_grad_##S, T, T, y* x*(1 - x))                                             \
  BINARY(tanh_grad_##S, T, T, y*(1 - x * x))                                               \
  BINARY(sqrt_grad_##S, T, T, y*(R)0.5 / F(conj)(x))                                       \
  BINARY(rsqrt_grad_##S, T, T, F(conj)(x) * F(conj)(x) * F(conj)(x) * (y * (R)-0.5))       \
  BINARY(reciprocal_grad_##S, T, T, -y* F(conj)(x) * F(conj)(x))                           \
  static void clip_##S(ARGS) {                                                             \
    (void)arg;                                                                             \
    const T *value = in[0], *least = in[1], *most = in[2];                                 \
    for (int64_t i = 0; i < n; ++i) {                                                      \
      T x = value[steps[0] * i], low = least[steps[1] * i], high = most[steps[2] * i];     \
      if (F(creal)(high) < F(creal)(x)) x = high;                                          \
      ((T*)out)[i] = F(creal)(x) < F(creal)(low) ? low : x;                                \
    }                                                                                      \
  }

// Those that have vector loops for float; |P| begins their names.
#define PLAIN_FUNCTIONS(P, S, T, R, F)  \
  UNARY(P##exp_##S, T, T, F(cexp)(x))   \
  UNARY(P##conj_##S, T, T, F(conj)(x))  \
  UNARY(P##real_##S, T, R, F(creal)(x)) \
  UNARY(P##imag_##S, T, R, F(cimag)(x)) \
  BINARY(P##add_##S, T, T, x + y)       \
  BINARY(P##sub_##S, T, T, x - y)       \
  BINARY(P##mul_##S, T, T, x* y)        \
  BINARY(P##complex_##S, R, T, make_##S(x, y))

#define FLOAT_NAME(name) name##f
#define DOUBLE_NAME(name) name
FUNCTIONS(c64, float _Complex, float, FLOAT_NAME)
FUNCTIONS(c128, double _Complex, double, DOUBLE_NAME)
PLAIN_FUNCTIONS(plain_, c64, float _Complex, float, FLOAT_NAME)
PLAIN_FUNCTIONS(, c128, double _Complex, double, DOUBLE_NAME)

#define FAST1(name, CALL)                   \
  static void name(ARGS) {                  \
    if (steps[0])                           \
      CALL;                                 \
    else                                    \
      plain_##name(arg, in, steps, out, n); \
  }
#define FAST2(name, CALL)                   \
  static void name(ARGS) {                  \
    if (steps[0] && steps[1])               \
      CALL;                                 \
    else                                    \
      plain_##name(arg, in, steps, out, n); \
  }
#define PARTWISE(code) rn_vector_run(RN_VECTOR_##code, RN_FLOAT, in[0], 1, in[1], 1, out, 2 * n)
FAST1(conj_c64, rn_spans()->complex_conj(in[0], out, n))
FAST1(real_c64, rn_spans()->complex_split(in[0], out, NULL, n))
FAST1(imag_c64, rn_spans()->complex_split(in[0], NULL, out, n))
FAST2(add_c64, PARTWISE(ADD))
FAST2(sub_c64, PARTWISE(SUB))
FAST2(mul_c64, rn_spans()->complex_mul(in[0], in[1], out, n))
FAST2(complex_c64, rn_spans()->complex_join(in[0], in[1], out, n))

// e^re (cos im, sin im), one block at a time; a block with large or odd numbers is left to the C
// library.
static void exp_c64(ARGS) {
  enum { BLOCK = 256 };
  float re[BLOCK], im[BLOCK], sines[BLOCK];
  for (int64_t begin = 0; steps[0] && begin < n; begin += BLOCK) {
    const int64_t count = n - begin < BLOCK ? n - begin : BLOCK;
    const float* from = (const float*)in[0] + 2 * begin;
    float* to = (float*)out + 2 * begin;
    rn_spans()->complex_split(from, re, im, count);
    bool is_plain = true;
    for (int64_t i = 0; i < count; ++i) is_plain &= fabsf(re[i]) < 80 && fabsf(im[i]) < 1e4f;
    if (!is_plain) {
      plain_exp_c64(arg, (const void*[]){from}, steps, to, count);
      continue;
    }
    rn_vector_run(RN_VECTOR_EXP, RN_FLOAT, re, 1, NULL, 0, re, count);
    rn_vector_run(RN_VECTOR_SIN, RN_FLOAT, im, 1, NULL, 0, sines, count);
    rn_vector_run(RN_VECTOR_COS, RN_FLOAT, im, 1, NULL, 0, im, count);
    rn_vector_run(RN_VECTOR_MUL, RN_FLOAT, re, 1, im, 1, im, count);
    rn_vector_run(RN_VECTOR_MUL, RN_FLOAT, re, 1, sines, 1, sines, count);
    rn_spans()->complex_join(im, sines, to, count);
  }
  if (!steps[0]) plain_exp_c64(arg, in, steps, out, n);
}

// X(function, op, operands)
#define KERNELS(X)               \
  X(neg, "Neg", 1)               \
  X(square, "Square", 1)         \
  X(sqrt, "Sqrt", 1)             \
  X(rsqrt, "Rsqrt", 1)           \
  X(exp, "Exp", 1)               \
  X(expm1, "Expm1", 1)           \
  X(log, "Log", 1)               \
  X(log1p, "Log1p", 1)           \
  X(reciprocal, "Reciprocal", 1) \
  X(reciprocal, "Inv", 1)        \
  X(tanh, "Tanh", 1)             \
  X(sigmoid, "Sigmoid", 1)       \
  X(sin, "Sin", 1)               \
  X(cos, "Cos", 1)               \
  X(tan, "Tan", 1)               \
  X(asin, "Asin", 1)             \
  X(acos, "Acos", 1)             \
  X(atan, "Atan", 1)             \
  X(sinh, "Sinh", 1)             \
  X(cosh, "Cosh", 1)             \
  X(asinh, "Asinh", 1)           \
  X(acosh, "Acosh", 1)           \
  X(atanh, "Atanh", 1)           \
  X(sign, "Sign", 1)             \
  X(conj, "Conj", 1)             \
  X(real, "Real", 1)             \
  X(imag, "Imag", 1)             \
  X(angle, "Angle", 1)           \
  X(abs, "ComplexAbs", 1)        \
  X(add, "Add", 2)               \
  X(add, "AddV2", 2)             \
  X(sub, "Sub", 2)               \
  X(mul, "Mul", 2)               \
  X(div, "Div", 2)               \
  X(div, "RealDiv", 2)           \
  X(pow, "Pow", 2)               \
  X(div_no_nan, "DivNoNan", 2)   \
  X(mul_no_nan, "MulNoNan", 2)   \
  X(xdivy, "Xdivy", 2)           \
  X(xlogy, "Xlogy", 2)           \
  X(xlog1py, "Xlog1py", 2)       \
  X(squared_difference, "SquaredDifference", 2)

// Gradients; the inputs must have equally many elements.
#define GRAD_KERNELS(X)                   \
  X(sigmoid_grad, "SigmoidGrad", 2)       \
  X(tanh_grad, "TanhGrad", 2)             \
  X(sqrt_grad, "SqrtGrad", 2)             \
  X(rsqrt_grad, "RsqrtGrad", 2)           \
  X(reciprocal_grad, "ReciprocalGrad", 2) \
  X(reciprocal_grad, "InvGrad", 2)

static rn_status_t compute(rn_kernel_ctx_t* ctx, int operands, rn_run_fn_t fn) {
  return rn_broadcast_compute(ctx, operands, 3, RN_GRAIN_COSTLY, fn, NULL);
}

static rn_status_t compute_grad(rn_kernel_ctx_t* ctx, rn_run_fn_t fn) {
  RN_RETURN_IF_ERROR(rn_check_one_count(ctx));
  return rn_elementwise_compute(ctx, 2, 3, RN_GRAIN_COSTLY, fn, NULL);
}

// Selects the loop by the complex type among input and output.
#define PICK(ctx, function) \
  (rn_in(ctx, 0)->dtype == RN_COMPLEX64 ? function##_c64 : function##_c128)

// One compute function per loop; ops with the same loop share it.
#define COMPUTE1(function)                                      \
  static rn_status_t compute_##function(rn_kernel_ctx_t* ctx) { \
    return compute(ctx, 1, PICK(ctx, function));                \
  }
#define COMPUTE2(function)                                      \
  static rn_status_t compute_##function(rn_kernel_ctx_t* ctx) { \
    return compute(ctx, 2, PICK(ctx, function));                \
  }
#define COMPUTE_GRAD(function)                                  \
  static rn_status_t compute_##function(rn_kernel_ctx_t* ctx) { \
    return compute_grad(ctx, PICK(ctx, function));              \
  }
#define UNARY_FUNCTIONS(X) \
  X(neg)                   \
  X(square)                \
  X(sqrt)                  \
  X(rsqrt)                 \
  X(exp)                   \
  X(expm1)                 \
  X(log)                   \
  X(log1p)                 \
  X(reciprocal)            \
  X(tanh)                  \
  X(sigmoid)               \
  X(sin)                   \
  X(cos)                   \
  X(tan)                   \
  X(asin)                  \
  X(acos)                  \
  X(atan) X(sinh) X(cosh) X(asinh) X(acosh) X(atanh) X(sign) X(conj) X(real) X(imag) X(angle) X(abs)
#define BINARY_FUNCTIONS(X) \
  X(add)                    \
  X(sub)                    \
  X(mul)                    \
  X(div) X(pow) X(div_no_nan) X(mul_no_nan) X(xdivy) X(xlogy) X(xlog1py) X(squared_difference)
#define GRAD_FUNCTIONS(X) X(sigmoid_grad) X(tanh_grad) X(sqrt_grad) X(rsqrt_grad) X(reciprocal_grad)
UNARY_FUNCTIONS(COMPUTE1)
BINARY_FUNCTIONS(COMPUTE2)
GRAD_FUNCTIONS(COMPUTE_GRAD)

static rn_status_t compute_complex(rn_kernel_ctx_t* ctx) {
  return compute(ctx, 2, rn_in(ctx, 0)->dtype == RN_FLOAT ? complex_c64 : complex_c128);
}

static rn_status_t compute_clip(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_clip(ctx));
  return rn_broadcast_compute(ctx, 3, 7, RN_GRAIN_CHEAP, PICK(ctx, clip), NULL);
}

static rn_status_t check_pair(const rn_kernel_init_t* init, void* state) {
  (void)state;
  return rn_check_complex_pair(init);
}

#define ROW(function, name, operands)  \
  {.op = name,                         \
   .device = "CPU",                    \
   .types = {{"T", RN_TYPES_COMPLEX}}, \
   .flags = RN_KERNEL_IN_PLACE,        \
   .init = check_pair,                 \
   .compute = compute_##function},

static const rn_kernel_def_t rows[] = {
    KERNELS(ROW) GRAD_KERNELS(ROW){.op = "Complex",
                                   .device = "CPU",
                                   .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},
                                   .flags = RN_KERNEL_IN_PLACE,
                                   .init = check_pair,
                                   .compute = compute_complex},
    {.op = "ClipByValue",
     .device = "CPU",
     .types = {{"T", RN_TYPES_COMPLEX}},
     .flags = RN_KERNEL_IN_PLACE,
     .compute = compute_clip},
};
RN_KERNEL_FAMILY(cpu_complex_math, rows);
