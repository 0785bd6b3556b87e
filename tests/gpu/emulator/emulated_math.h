// The mathematical functions that CUDA has without headers, from the host's C library. They agree
// with the GPU's up to the last bits. Part of emulated.h.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_EMULATED_MATH_H_
#define RUNNEL_TESTS_GPU_EMULATOR_EMULATED_MATH_H_

// X(name) for functions of one argument; the same name serves float and double, namef is float's.
// clang-format off
#define RN_EMULATED_UNARY(X)                                                                   \
  X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(cbrt) X(ceil) X(cos) X(cosh) X(erf)     \
  X(erfc) X(exp) X(exp2) X(expm1) X(fabs) X(floor) X(lgamma) X(log) X(log10) X(log1p) X(log2)  \
  X(logb) X(nearbyint) X(rint) X(round) X(sin) X(sinh) X(sqrt) X(tan) X(tanh) X(tgamma) X(trunc)
#define RN_EMULATED_BINARY(X) \
  X(atan2) X(copysign) X(fdim) X(fmax) X(fmin) X(fmod) X(hypot) X(nextafter) X(pow) X(remainder)
// clang-format on

#define RN_EMULATED_DEFINE(name)                                   \
  RN_EMULATED_LIBC double name(double) noexcept;                   \
  inline float name##f(float x) { return __builtin_##name##f(x); } \
  inline float name(float x) { return __builtin_##name##f(x); }
RN_EMULATED_UNARY(RN_EMULATED_DEFINE)
#undef RN_EMULATED_DEFINE
#define RN_EMULATED_DEFINE(name)                                               \
  RN_EMULATED_LIBC double name(double, double) noexcept;                       \
  inline float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  inline float name(float x, float y) { return __builtin_##name##f(x, y); }
RN_EMULATED_BINARY(RN_EMULATED_DEFINE)
#undef RN_EMULATED_DEFINE
#undef RN_EMULATED_UNARY
#undef RN_EMULATED_BINARY
// The compilers do not all know Bessel's functions.
#define RN_EMULATED_DEFINE(name)                  \
  RN_EMULATED_LIBC double name(double) noexcept;  \
  RN_EMULATED_LIBC float name##f(float) noexcept; \
  inline float name(float x) { return name##f(x); }
RN_EMULATED_DEFINE(j0)
RN_EMULATED_DEFINE(j1)
RN_EMULATED_DEFINE(y0)
RN_EMULATED_DEFINE(y1)
#undef RN_EMULATED_DEFINE

// The rest, each for float (with and without f) and double: T is the type, B(name) the builtin.
#define RN_EMULATED_REST(T, f, B)                                                                  \
  inline T fma##f(T x, T y, T z) { return B(fma)(x, y, z); }                                       \
  inline T ldexp##f(T x, int n) { return B(ldexp)(x, n); }                                         \
  inline T scalbn##f(T x, int n) { return B(scalbn)(x, n); }                                       \
  inline T frexp##f(T x, int* n) { return B(frexp)(x, n); }                                        \
  inline T modf##f(T x, T* whole) { return B(modf)(x, whole); }                                    \
  inline int ilogb##f(T x) { return B(ilogb)(x); }                                                 \
  inline long lrint##f(T x) { return B(lrint)(x); }                                                \
  inline long lround##f(T x) { return B(lround)(x); }                                              \
  inline i64 llrint##f(T x) { return B(llrint)(x); }                                               \
  inline i64 llround##f(T x) { return B(llround)(x); }                                             \
  inline void sincos##f(T x, T* s, T* c) { *s = B(sin)(x), *c = B(cos)(x); }                       \
  inline T rsqrt##f(T x) { return 1 / B(sqrt)(x); }                                                \
  inline T rcbrt##f(T x) { return 1 / B(cbrt)(x); }                                                \
  inline T exp10##f(T x) { return B(pow)(10, x); }                                                 \
  inline T sinpi##f(T x) { return (T)__builtin_sin(3.14159265358979323846 * B(remainder)(x, 2)); } \
  inline T cospi##f(T x) { return (T)__builtin_cos(3.14159265358979323846 * B(remainder)(x, 2)); } \
  inline T normcdf##f(T x) { return (T)(0.5 * __builtin_erfc(x * -0.70710678118654752440)); }      \
  inline T erfcinv##f(T x) { return (T)rn_emulated_erfcinv(x); }                                   \
  inline T erfinv##f(T x) { return (T)rn_emulated_erfinv(x); }                                     \
  inline T normcdfinv##f(T x) {                                                                    \
    return (T)(-1.41421356237309504880 * rn_emulated_erfcinv(2 * (double)x));                      \
  }
#define RN_EMULATED_FLOAT(name) __builtin_##name##f
#define RN_EMULATED_DOUBLE(name) __builtin_##name

// The x for which erfc(x) is |tail|, by Newton's steps from a guess.
inline double rn_emulated_erfcinv(double tail) {
  if (!(tail > 0 && tail < 2)) {
    if (tail == 0) return __builtin_inf();
    return tail == 2 ? -__builtin_inf() : __builtin_nan("");
  }
  if (tail > 1) return -rn_emulated_erfcinv(2 - tail);
  double l = __builtin_log(tail * (2 - tail)), a = 4.3307467508 + l / 2;  // 2 / (0.147 pi)
  double x = __builtin_sqrt(__builtin_sqrt(a * a - l / 0.147) - a);
  for (int i = 0; i < 5; ++i)
    x += (__builtin_erfc(x) - tail) * 0.88622692545275801365 * __builtin_exp(x * x);
  return x;
}
inline double rn_emulated_erfinv(double y) {
  if (!(y > -0.5 && y < 0.5))
    return y < 0 ? -rn_emulated_erfcinv(1 + y) : rn_emulated_erfcinv(1 - y);
  double x = y * 0.88622692545275801365;
  for (int i = 0; i < 5; ++i)
    x -= (__builtin_erf(x) - y) * 0.88622692545275801365 * __builtin_exp(x * x);
  return x;
}

RN_EMULATED_REST(float, f, RN_EMULATED_FLOAT)
RN_EMULATED_REST(float, , RN_EMULATED_FLOAT)
RN_EMULATED_REST(double, , RN_EMULATED_DOUBLE)
#undef RN_EMULATED_REST
#undef RN_EMULATED_FLOAT
#undef RN_EMULATED_DOUBLE

inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }

// As on the GPU, min and max of floats pass over a NaN.
#define RN_EMULATED_MINMAX(A, B, C)                            \
  inline C min(A a, B b) { return (C)a < (C)b ? (C)a : (C)b; } \
  inline C max(A a, B b) { return (C)a > (C)b ? (C)a : (C)b; }
RN_EMULATED_MINMAX(int, int, int)
RN_EMULATED_MINMAX(unsigned, unsigned, unsigned)
RN_EMULATED_MINMAX(int, unsigned, unsigned)
RN_EMULATED_MINMAX(unsigned, int, unsigned)
RN_EMULATED_MINMAX(long, long, long)
RN_EMULATED_MINMAX(unsigned long, unsigned long, unsigned long)
RN_EMULATED_MINMAX(long long, long long, long long)
RN_EMULATED_MINMAX(unsigned long long, unsigned long long, unsigned long long)
RN_EMULATED_MINMAX(long long, unsigned long long, unsigned long long)
RN_EMULATED_MINMAX(unsigned long long, long long, unsigned long long)
#undef RN_EMULATED_MINMAX
inline float min(float a, float b) { return __builtin_fminf(a, b); }
inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
inline double min(double a, double b) { return __builtin_fmin(a, b); }
inline double max(double a, double b) { return __builtin_fmax(a, b); }
inline double min(float a, double b) { return __builtin_fmin(a, b); }
inline double max(float a, double b) { return __builtin_fmax(a, b); }
inline double min(double a, float b) { return __builtin_fmin(a, b); }
inline double max(double a, float b) { return __builtin_fmax(a, b); }
inline int abs(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }
inline long abs(long x) { return x < 0 ? (long)(0ul - (unsigned long)x) : x; }
inline long labs(long x) { return abs(x); }
inline i64 abs(i64 x) { return x < 0 ? (i64)(0ull - (u64)x) : x; }
inline i64 llabs(i64 x) { return abs(x); }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }

// Intrinsics. The fast ones are exact here.
inline float __expf(float x) { return __builtin_expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return __builtin_logf(x); }
inline float __log2f(float x) { return __builtin_log2f(x); }
inline float __log10f(float x) { return __builtin_log10f(x); }
inline float __powf(float x, float y) { return __builtin_powf(x, y); }
inline float __sinf(float x) { return __builtin_sinf(x); }
inline float __cosf(float x) { return __builtin_cosf(x); }
inline float __tanf(float x) { return __builtin_tanf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __frsqrt_rn(float x) { return (float)(1 / __builtin_sqrt(x)); }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1 / x; }
inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

// Conversions to integers saturate, and NaN becomes 0, as on the GPU.
template <typename I>
inline I rn_emulated_integer(double x, I least, I most) {
  if (x != x) return 0;
  if (x <= (double)least) return least;
  return x >= (double)most ? most : (I)x;
}
#define RN_EMULATED_CONVERSIONS(mode, rounded)                                                  \
  inline int __float2int_##mode(float x) {                                                      \
    return rn_emulated_integer<int>(rounded(x), -2147483647 - 1, 2147483647);                   \
  }                                                                                             \
  inline unsigned __float2uint_##mode(float x) {                                                \
    return rn_emulated_integer<unsigned>(rounded(x), 0, 4294967295u);                           \
  }                                                                                             \
  inline i64 __float2ll_##mode(float x) {                                                       \
    return rn_emulated_integer<i64>(rounded(x), -9223372036854775807 - 1, 9223372036854775807); \
  }                                                                                             \
  inline u64 __float2ull_##mode(float x) {                                                      \
    return rn_emulated_integer<u64>(rounded(x), 0, 18446744073709551615ull);                    \
  }                                                                                             \
  inline int __double2int_##mode(double x) {                                                    \
    return rn_emulated_integer<int>(rounded(x), -2147483647 - 1, 2147483647);                   \
  }                                                                                             \
  inline unsigned __double2uint_##mode(double x) {                                              \
    return rn_emulated_integer<unsigned>(rounded(x), 0, 4294967295u);                           \
  }                                                                                             \
  inline i64 __double2ll_##mode(double x) {                                                     \
    return rn_emulated_integer<i64>(rounded(x), -9223372036854775807 - 1, 9223372036854775807); \
  }                                                                                             \
  inline u64 __double2ull_##mode(double x) {                                                    \
    return rn_emulated_integer<u64>(rounded(x), 0, 18446744073709551615ull);                    \
  }
RN_EMULATED_CONVERSIONS(rn, __builtin_nearbyint)
RN_EMULATED_CONVERSIONS(rz, __builtin_trunc)
RN_EMULATED_CONVERSIONS(rd, __builtin_floor)
RN_EMULATED_CONVERSIONS(ru, __builtin_ceil)
#undef RN_EMULATED_CONVERSIONS
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(i64 x) { return (float)x; }
inline float __ull2float_rn(u64 x) { return (float)x; }
inline float __double2float_rn(double x) { return (float)x; }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(i64 x) { return (double)x; }
inline double __ull2double_rn(u64 x) { return (double)x; }

#endif  // RUNNEL_TESTS_GPU_EMULATOR_EMULATED_MATH_H_
