// The scalar operations of scalar_ops.def on the device, for real numbers: rn_op_<function><T>.
//
// T is the element type. Values are passed as rn_of<T>: 16-bit floats travel as float. Results are
// those of the CPU kernels to a few units in the last place, and equal where the operation is
// exactly rounded. What differs from the CPU, where those are errors of the step: an integer divided
// by zero gives 0 with remainder 0, and an integer to a negative power gives 0.
#ifndef RUNNEL_KERNELS_CUDA_JIT_SCALAR_OPS_CUH_
#define RUNNEL_KERNELS_CUDA_JIT_SCALAR_OPS_CUH_

#ifdef RN_EMULATED
#include <math.h>
#include <string.h>
#endif

// What a type's values are computed in.
template <typename T>
struct rn_value_of {
  typedef T type;
};
template <>
struct rn_value_of<rn_half> {
  typedef float type;
};
template <>
struct rn_value_of<rn_bfloat16> {
  typedef float type;
};
template <typename T>
using rn_of = typename rn_value_of<T>::type;

// What sums, differences and products are computed in: integers wrap around.
template <typename T>
struct rn_wrapping {
  typedef T type;
};
template <> struct rn_wrapping<rn_half> { typedef float type; };
template <> struct rn_wrapping<rn_bfloat16> { typedef float type; };
template <> struct rn_wrapping<i8> { typedef u32 type; };
template <> struct rn_wrapping<i16> { typedef u32 type; };
template <> struct rn_wrapping<i32> { typedef u32 type; };
template <> struct rn_wrapping<i64> { typedef u64 type; };
template <> struct rn_wrapping<u8> { typedef u32 type; };
template <> struct rn_wrapping<u16> { typedef u32 type; };
template <typename T>
using rn_wrap = typename rn_wrapping<T>::type;

// What means are summed in.
template <typename T> struct rn_mean_of { typedef rn_of<T> type; };
template <> struct rn_mean_of<i8> { typedef i64 type; };
template <> struct rn_mean_of<i16> { typedef i64 type; };
template <> struct rn_mean_of<i32> { typedef i64 type; };
template <> struct rn_mean_of<u8> { typedef u64 type; };
template <> struct rn_mean_of<u16> { typedef u64 type; };
template <> struct rn_mean_of<u32> { typedef u64 type; };
// The parts of a complex type; other types themselves.
template <typename T> struct rn_part_of { typedef T type; };
template <typename R> struct rn_part_of<rn_complex<R>> { typedef R type; };
template <typename T>
using rn_real_of = typename rn_part_of<T>::type;

// Kinds of types, to choose between overloads by: rn_kind_of<T>().
struct rn_is_float {};
struct rn_is_signed {};
struct rn_is_unsigned {};
struct rn_is_bool {};
struct rn_is_complex {};
template <typename T> struct rn_kind { typedef rn_is_float type; };
template <> struct rn_kind<i8> { typedef rn_is_signed type; };
template <> struct rn_kind<i16> { typedef rn_is_signed type; };
template <> struct rn_kind<i32> { typedef rn_is_signed type; };
template <> struct rn_kind<i64> { typedef rn_is_signed type; };
template <> struct rn_kind<u8> { typedef rn_is_unsigned type; };
template <> struct rn_kind<u16> { typedef rn_is_unsigned type; };
template <> struct rn_kind<u32> { typedef rn_is_unsigned type; };
template <> struct rn_kind<u64> { typedef rn_is_unsigned type; };
template <> struct rn_kind<bool> { typedef rn_is_bool type; };
template <typename R> struct rn_kind<rn_complex<R>> { typedef rn_is_complex type; };
template <typename T>
using rn_kind_of = typename rn_kind<T>::type;

RN_DEVICE double rn_double_from_bits(u64 bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <typename T> RN_DEVICE T rn_infinity();
template <> RN_DEVICE float rn_infinity<float>() { return rn_float_from_bits(0x7f800000u); }
template <> RN_DEVICE double rn_infinity<double>() {
  return rn_double_from_bits(0x7ff0000000000000ull);
}
template <typename T> RN_DEVICE T rn_nan();
template <> RN_DEVICE float rn_nan<float>() { return rn_float_from_bits(0x7fc00000u); }
template <> RN_DEVICE double rn_nan<double>() { return rn_double_from_bits(0x7ff8000000000000ull); }

// What extremes of nothing are.
template <typename T, typename K = rn_kind_of<T>>
struct rn_limits {
  static RN_DEVICE rn_of<T> least() { return -rn_infinity<rn_of<T>>(); }
  static RN_DEVICE rn_of<T> most() { return rn_infinity<rn_of<T>>(); }
};
template <typename T>
struct rn_limits<T, rn_is_signed> {
  static RN_DEVICE T least() { return T(u64(1) << (8 * sizeof(T) - 1)); }
  static RN_DEVICE T most() { return T(~least()); }
};
template <typename T>
struct rn_limits<T, rn_is_unsigned> {
  static RN_DEVICE T least() { return 0; }
  static RN_DEVICE T most() { return T(~u64(0)); }
};

// Rounds a value to its type, as if it were stored and loaded.
template <typename T>
RN_DEVICE rn_of<T> rn_round_to(rn_of<T> x) {
  return rn_of<T>(T(x));
}

#define RN_OP1(name, expression)               \
  template <typename T>                        \
  RN_DEVICE rn_of<T> rn_op_##name(rn_of<T> x) { \
    typedef rn_of<T> V;                        \
    return V(expression);                      \
  }
#define RN_OP2(name, expression)                            \
  template <typename T>                                     \
  RN_DEVICE rn_of<T> rn_op_##name(rn_of<T> x, rn_of<T> y) { \
    typedef rn_of<T> V;                                     \
    return V(expression);                                   \
  }
#define RN_OP3(name, expression)                                        \
  template <typename T>                                                 \
  RN_DEVICE rn_of<T> rn_op_##name(rn_of<T> x, rn_of<T> y, rn_of<T> z) { \
    typedef rn_of<T> V;                                                 \
    return V(expression);                                               \
  }

RN_OP2(add, rn_wrap<T>(x) + rn_wrap<T>(y))
RN_OP2(sub, rn_wrap<T>(x) - rn_wrap<T>(y))
RN_OP2(mul, rn_wrap<T>(x) * rn_wrap<T>(y))
RN_OP3(multiply_add, rn_wrap<T>(x) * rn_wrap<T>(y) + rn_wrap<T>(z))
RN_OP2(maximum, x > y || x != x ? x : y)
RN_OP2(minimum, x < y || x != x ? x : y)

template <typename T>
RN_DEVICE T rn_divide(T x, T y, rn_is_float) {
  return x / y;
}
template <typename T>
RN_DEVICE T rn_divide(T x, T y, rn_is_complex) {
  return x / y;
}
// The least number divided by -1 is itself, as with wrap-around.
template <typename T>
RN_DEVICE T rn_divide(T x, T y, rn_is_signed) {
  return y == 0 ? T(0) : y == -1 ? T(rn_wrap<T>(0) - rn_wrap<T>(x)) : T(x / y);
}
template <typename T>
RN_DEVICE T rn_divide(T x, T y, rn_is_unsigned) {
  return y == 0 ? T(0) : T(x / y);
}
RN_OP2(div, rn_divide(x, y, rn_kind_of<V>()))

RN_OP1(neg, rn_wrap<T>(0) - rn_wrap<T>(x))
RN_OP1(square, rn_wrap<T>(x) * rn_wrap<T>(x))
RN_OP1(sqrt, sqrt(x))
RN_OP1(exp, exp(x))
RN_OP1(log, log(x))
RN_OP1(tanh, tanh(x))
RN_OP1(relu, x < V(0) ? V(0) : x)

#define RN_TEST2(name, expression)                      \
  template <typename T>                                 \
  RN_DEVICE bool rn_op_##name(rn_of<T> x, rn_of<T> y) { \
    return expression;                                  \
  }
RN_TEST2(equal, x == y)
RN_TEST2(not_equal, x != y)
RN_TEST2(less, x < y)
RN_TEST2(less_equal, x <= y)
RN_TEST2(greater, x > y)
RN_TEST2(greater_equal, x >= y)

template <typename T>
RN_DEVICE rn_of<T> rn_op_select(bool condition, rn_of<T> yes, rn_of<T> no) {
  return condition ? yes : no;
}

// Casts. A float that does not fit an integer gives what x86 gives: the least int32 or int64, of
// which narrower types take the low bits. Complex numbers give their real part.
template <typename W, typename F>
RN_DEVICE W rn_whole_of(F x, F bound) {
  return x >= -bound && x < bound ? W(x) : W(u64(1) << (8 * sizeof(W) - 1));
}
RN_DEVICE i32 rn_to_i32(float x) { return rn_whole_of<i32, float>(x, 2147483648.0f); }
RN_DEVICE i32 rn_to_i32(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? i32(x) : i32(0x80000000u);
}
RN_DEVICE i64 rn_to_i64(float x) { return rn_whole_of<i64, float>(x, 9223372036854775808.0f); }
RN_DEVICE i64 rn_to_i64(double x) { return rn_whole_of<i64, double>(x, 9223372036854775808.0); }
RN_DEVICE u64 rn_to_u64(double x) {
  i64 low = rn_to_i64(x), high = rn_to_i64(x - 9223372036854775808.0);
  return u64(low | (high & (low < 0 ? -1ll : 0ll)));
}
// From a float or double to To.
template <typename To> struct rn_from_float {
  template <typename F> static RN_DEVICE To of(F x) { return To(rn_to_i32(x)); }
};
template <> struct rn_from_float<u32> {
  template <typename F> static RN_DEVICE u32 of(F x) { return u32(rn_to_i64(x)); }
};
template <> struct rn_from_float<i64> {
  template <typename F> static RN_DEVICE i64 of(F x) { return rn_to_i64(x); }
};
template <> struct rn_from_float<u64> {
  template <typename F> static RN_DEVICE u64 of(F x) { return rn_to_u64(double(x)); }
};
template <> struct rn_from_float<bool> {
  template <typename F> static RN_DEVICE bool of(F x) { return x != 0; }
};

template <typename To, typename V>
RN_DEVICE To rn_convert(V x, rn_is_signed, rn_is_float) { return rn_from_float<To>::of(x); }
template <typename To, typename V>
RN_DEVICE To rn_convert(V x, rn_is_unsigned, rn_is_float) { return rn_from_float<To>::of(x); }
template <typename To, typename V>
RN_DEVICE To rn_convert(V x, rn_is_bool, rn_is_float) { return x != 0; }
template <typename To, typename V, typename K>
RN_DEVICE To rn_convert(V x, rn_is_bool, K) { return x != 0; }
template <typename To, typename V, typename K>
RN_DEVICE To rn_convert(V x, rn_is_signed, K) { return To(x); }
template <typename To, typename V, typename K>
RN_DEVICE To rn_convert(V x, rn_is_unsigned, K) { return To(x); }
// To a 16-bit float by way of float, as stock does it: a double rounds twice.
template <typename To, typename V, typename K>
RN_DEVICE rn_of<To> rn_convert(V x, rn_is_float, K) { return rn_round_to<To>(rn_of<To>(x)); }
template <typename To, typename V, typename K>
RN_DEVICE To rn_convert(V x, rn_is_complex, K) { return To(rn_real_of<To>(x)); }
template <typename To, typename R>
RN_DEVICE To rn_convert(rn_complex<R> x, rn_is_complex, rn_is_complex) {
  return To(rn_real_of<To>(x.re), rn_real_of<To>(x.im));
}

// |x| of element type From as To.
template <typename To, typename From, typename V>
RN_DEVICE rn_of<To> rn_cast_of(V x, rn_is_complex, rn_is_complex) {
  return rn_convert<To>(x, rn_is_complex(), rn_is_complex());
}
template <typename To, typename From, typename V, typename K>
RN_DEVICE rn_of<To> rn_cast_of(V x, K to, rn_is_complex) {
  return rn_convert<To>(x.re, to, rn_is_float());
}
template <typename To, typename From, typename V, typename K, typename L>
RN_DEVICE rn_of<To> rn_cast_of(V x, K to, L from) {
  return rn_convert<To>(x, to, from);
}
template <typename To, typename From>
RN_DEVICE rn_of<To> rn_cast(rn_of<From> x) {
  return rn_cast_of<To, From>(x, rn_kind_of<To>(), rn_kind_of<From>());
}

#endif  // RUNNEL_KERNELS_CUDA_JIT_SCALAR_OPS_CUH_
