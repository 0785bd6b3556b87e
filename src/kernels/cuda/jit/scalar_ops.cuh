// The scalar operations of scalar_ops.def on the device, for real numbers: rn_op_<function><T>.
//
// T is the element type. Values are passed as rn_of<T>: 16-bit floats travel as float. Results are
// those of the CPU kernels to a few units in the last place, and equal where the operation is
// exactly rounded. What differs from the CPU, where those are errors of the step: an integer divided
// by zero gives 0 with remainder 0, and an integer to a negative power gives 0.
#ifndef RUNNEL_KERNELS_CUDA_JIT_SCALAR_OPS_CUH_
#define RUNNEL_KERNELS_CUDA_JIT_SCALAR_OPS_CUH_

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

RN_DEVICE double rn_double_from_bits(u64 bits) { return __longlong_as_double((i64)bits); }
template <typename T> RN_DEVICE T rn_infinity();
template <> RN_DEVICE float rn_infinity<float>() { return rn_float_from_bits(0x7f800000u); }
template <> RN_DEVICE double rn_infinity<double>() {
  return rn_double_from_bits(0x7ff0000000000000ull);
}
template <typename T> RN_DEVICE T rn_nan();
template <> RN_DEVICE float rn_nan<float>() { return rn_float_from_bits(0x7fc00000u); }
template <> RN_DEVICE double rn_nan<double>() { return rn_double_from_bits(0x7ff8000000000000ull); }

// What extremes of nothing are, and where searches for them start.
template <typename T>
struct rn_finite {
  static RN_DEVICE rn_of<T> most() { return T(3.402823466e+38f); }
};
template <>
struct rn_finite<double> {
  static RN_DEVICE double most() { return 1.7976931348623157e+308; }
};
template <>
struct rn_finite<rn_half> {
  static RN_DEVICE float most() { return 65504.0f; }
};
template <>
struct rn_finite<rn_bfloat16> {
  static RN_DEVICE float most() { return rn_float_from_bits(0x7f7f0000u); }
};
template <typename T, typename K = rn_kind_of<T>>
struct rn_limits {
  static RN_DEVICE rn_of<T> least_finite() { return -rn_finite<T>::most(); }
  static RN_DEVICE rn_of<T> most_finite() { return rn_finite<T>::most(); }
  static RN_DEVICE rn_of<T> least() { return -rn_infinity<rn_of<T>>(); }
  static RN_DEVICE rn_of<T> most() { return rn_infinity<rn_of<T>>(); }
};
template <typename T>
struct rn_limits<T, rn_is_signed> {
  static RN_DEVICE T least() { return T(u64(1) << (8 * sizeof(T) - 1)); }
  static RN_DEVICE T most() { return T(~least()); }
  static RN_DEVICE T least_finite() { return least(); }
  static RN_DEVICE T most_finite() { return most(); }
};
template <typename T>
struct rn_limits<T, rn_is_unsigned> {
  static RN_DEVICE T least() { return 0; }
  static RN_DEVICE T most() { return T(~u64(0)); }
  static RN_DEVICE T least_finite() { return least(); }
  static RN_DEVICE T most_finite() { return most(); }
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

// Numbers as a compiler's constants, of the computed type.
template <typename V>
RN_DEVICE V rn_number(double x) {
  return V(rn_real_of<V>(x));
}

RN_OP2(add, rn_wrap<T>(x) + rn_wrap<T>(y))
RN_OP2(sub, rn_wrap<T>(x) - rn_wrap<T>(y))
RN_OP2(mul, rn_wrap<T>(x) * rn_wrap<T>(y))
RN_OP3(multiply_add, rn_wrap<T>(x) * rn_wrap<T>(y) + rn_wrap<T>(z))
RN_OP1(neg, -rn_wrap<T>(x))
RN_OP1(square, rn_wrap<T>(x) * rn_wrap<T>(x))
// NaN wins.
RN_OP2(maximum, x > y || x != x ? x : y)
RN_OP2(minimum, x < y || x != x ? x : y)

// Functions with a form per kind of type: rn_<name>_of<T>(operands, kind). Those of complex numbers
// are found in complex_ops.cuh.
#define RN_OP1_BY_KIND(name) RN_OP1(name, rn_##name##_of<T>(x, rn_kind_of<T>()))
#define RN_OP2_BY_KIND(name) RN_OP2(name, rn_##name##_of<T>(x, y, rn_kind_of<T>()))
#define RN_OF1(name, kind, expression)                   \
  template <typename T>                                  \
  RN_DEVICE rn_of<T> rn_##name##_of(rn_of<T> x, kind) {  \
    typedef rn_of<T> V;                                  \
    return V(expression);                                \
  }
#define RN_OF2(name, kind, expression)                              \
  template <typename T>                                             \
  RN_DEVICE rn_of<T> rn_##name##_of(rn_of<T> x, rn_of<T> y, kind) { \
    typedef rn_of<T> V;                                             \
    return V(expression);                                           \
  }

// Complex numbers; what needs functions is in complex_ops.cuh.
template <typename R>
RN_DEVICE rn_complex<R> operator-(rn_complex<R> x) {
  return {-x.re, -x.im};
}
template <typename R>
RN_DEVICE bool operator==(rn_complex<R> x, rn_complex<R> y) {
  return x.re == y.re && x.im == y.im;
}
template <typename R>
RN_DEVICE bool operator!=(rn_complex<R> x, rn_complex<R> y) {
  return x.re != y.re || x.im != y.im;
}
// Scaled, so that squares neither overflow nor vanish.
template <typename R>
RN_DEVICE rn_complex<R> operator/(rn_complex<R> x, rn_complex<R> y) {
  R scale = 1 / (fabs(y.re) + fabs(y.im));
  R a = x.re * scale, b = x.im * scale, c = y.re * scale, d = y.im * scale;
  R size = 1 / (c * c + d * d);
  return {(a * c + b * d) * size, (b * c - a * d) * size};
}
template <typename R>
RN_DEVICE rn_complex<R> rn_conj(rn_complex<R> x) {
  return {x.re, -x.im};
}
#define RN_PART(name, expression)                         \
  template <typename T>                                   \
  RN_DEVICE rn_real_of<T> rn_op_##name(T x) {             \
    return expression;                                    \
  }
RN_PART(real, x.re)
RN_PART(imag, x.im)
RN_PART(angle, atan2(x.im, x.re))
RN_PART(complex_abs, hypot(x.re, x.im))
RN_OP1(conj, rn_conj(x))
template <typename T>
RN_DEVICE rn_complex<T> rn_op_complex(T re, T im) {
  return {re, im};
}

// Division. The least integer divided by -1 is itself, as with wrap-around.
RN_OF2(div, rn_is_float, x / y)
RN_OF2(div, rn_is_complex, x / y)
RN_OF2(div, rn_is_signed,
       y == 0 ? V(0) : y == V(-1) ? V(-rn_wrap<T>(x)) : V(x / y))
RN_OF2(div, rn_is_unsigned, y == 0 ? V(0) : V(x / y))
RN_OP2_BY_KIND(div)

RN_OF2(truncate_div, rn_is_float, trunc(rn_round_to<T>(x / y)))
RN_OF2(truncate_div, rn_is_signed, rn_op_div<T>(x, y))
RN_OF2(truncate_div, rn_is_unsigned, rn_op_div<T>(x, y))
RN_OP2_BY_KIND(truncate_div)

RN_OF2(mod, rn_is_float, fmod(x, y))
RN_OF2(mod, rn_is_signed, y == 0 || y == V(-1) ? V(0) : V(x % y))
RN_OF2(mod, rn_is_unsigned, y == 0 ? V(0) : V(x % y))
RN_OP2_BY_KIND(mod)

// 16-bit quotients are rounded before the floor: 2.1 / 0.35 is 6 in bfloat16.
RN_OF2(floor_div, rn_is_float, floor(rn_round_to<T>(x / y)))
RN_OF2(floor_div, rn_is_signed,
       rn_op_div<T>(x, y) - (rn_op_mod<T>(x, y) != 0 && (x < 0) != (y < 0)))
RN_OF2(floor_div, rn_is_unsigned, rn_op_div<T>(x, y))
RN_OP2_BY_KIND(floor_div)

// The remainder has the divisor's sign.
template <typename T>
RN_DEVICE rn_of<T> rn_op_floor_mod(rn_of<T> x, rn_of<T> y) {
  rn_of<T> r = rn_op_mod<T>(x, y);
  return r != 0 && (r < 0) != (y < 0) ? rn_of<T>(r + y) : r;
}

template <typename T>
RN_DEVICE T rn_power(T x, T y) {
  u64 result = 1, base = (u64)x;
  for (u64 e = (u64)y; e; e >>= 1, base *= base)
    if (e & 1) result *= base;
  return T(result);
}
RN_OF2(pow, rn_is_float, pow(x, y))
RN_OF2(pow, rn_is_complex, pow(x, y))
RN_OF2(pow, rn_is_signed, y < 0 ? V(0) : rn_power(x, y))
RN_OF2(pow, rn_is_unsigned, rn_power(x, y))
RN_OP2_BY_KIND(pow)

RN_OF2(squared_difference, rn_is_complex, rn_conj(x - y) * (x - y))
RN_OF2(squared_difference, rn_is_float, (x - y) * (x - y))
RN_OF2(squared_difference, rn_is_signed, rn_op_square<T>(rn_op_sub<T>(x, y)))
RN_OF2(squared_difference, rn_is_unsigned, rn_op_square<T>(rn_op_sub<T>(x, y)))
RN_OP2_BY_KIND(squared_difference)

RN_OP2(div_no_nan, y == V(0) ? V(0) : x / y)
RN_OP2(mul_no_nan, y == V(0) ? V(0) : x * y)
RN_OP2(xdivy, x == V(0) ? V(0) : x / y)
// 16-bit logarithms are rounded before the multiplication, as two ops would.
RN_OP2(xlogy, x == V(0) ? V(0) : x * rn_round_to<T>(log(y)))
RN_OP2(xlog1py, x == V(0) ? V(0) : x * rn_round_to<T>(log1p(y)))
RN_OP2(atan2, atan2(x, y))
RN_OP2(next_after, nextafter(x, y))

RN_OF1(abs, rn_is_float, fabs(x))
RN_OF1(abs, rn_is_signed, x < 0 ? V(-rn_wrap<T>(x)) : x)
RN_OF1(abs, rn_is_unsigned, x)
RN_OP1_BY_KIND(abs)
RN_OF1(sign, rn_is_float, x != x ? x : V((x > 0) - (x < 0)))
RN_OF1(sign, rn_is_signed, (x > 0) - (x < 0))
RN_OF1(sign, rn_is_unsigned, x != 0)
template <typename T>
RN_DEVICE T rn_sign_of(T x, rn_is_complex) {
  rn_real_of<T> size = hypot(x.re, x.im);
  return size == 0 ? T(0) : T(x.re / size, x.im / size);
}
RN_OP1_BY_KIND(sign)
RN_OP1(reciprocal, V(1) / x)
RN_OP1(sqrt, sqrt(x))
RN_OP1(rsqrt, V(1) / sqrt(x))

// The lower bound wins if they cross; NaN stays NaN. Complex numbers compare by their real parts.
template <typename T>
RN_DEVICE T rn_clip_of(T x, T low, T high, rn_is_complex) {
  if (high.re < x.re) x = high;
  return x.re < low.re ? low : x;
}
template <typename V, typename K>
RN_DEVICE V rn_clip_of(V x, V low, V high, K) {
  x = x > high ? high : x;
  return x < low ? low : x;
}
RN_OP3(clip, rn_clip_of(x, y, z, rn_kind_of<V>()))

// Rounding: to the nearest, halves to even.
RN_OF1(round, rn_is_float, rint(x))
RN_OF1(round, rn_is_signed, x)
RN_OF1(round, rn_is_unsigned, x)
RN_OP1_BY_KIND(round)
RN_OP1(rint, rint(x))
RN_OP1(floor, floor(x))
RN_OP1(ceil, ceil(x))

RN_OP1(exp, exp(x))
RN_OP1(expm1, expm1(x))
RN_OP1(log, log(x))
RN_OP1(log1p, log1p(x))
RN_OP1(sin, sin(x))
RN_OP1(cos, cos(x))
RN_OP1(tan, tan(x))
RN_OP1(asin, asin(x))
RN_OP1(acos, acos(x))
RN_OP1(atan, atan(x))
RN_OP1(sinh, sinh(x))
RN_OP1(cosh, cosh(x))
RN_OP1(tanh, tanh(x))
RN_OP1(asinh, asinh(x))
RN_OP1(acosh, acosh(x))
RN_OP1(atanh, atanh(x))
RN_OP1(erf, erf(x))
RN_OP1(erfc, erfc(x))

// Activations. The sigmoid is made of e^-|x|, which cannot overflow. Softplus is x where e^x swamps
// the 1: from -log(eps) - 2 on.
template <typename T>
RN_DEVICE rn_of<T> rn_sigmoid_of(rn_of<T> x, rn_is_float) {
  rn_of<T> e = exp(-fabs(x));
  return (x < 0 ? e : rn_of<T>(1)) / (1 + e);
}
RN_OF1(sigmoid, rn_is_complex, V(1) / (V(1) + exp(-x)))
RN_OP1_BY_KIND(sigmoid)
RN_OP1(relu, x < V(0) ? V(0) : x)
RN_OP1(relu6, x < V(0) ? V(0) : x > V(6) ? V(6) : x)
RN_OP2(leaky_relu, x > V(0) ? x : y * x)
RN_OP1(elu, x < V(0) ? expm1(x) : x)
RN_OP1(selu, x < V(0) ? rn_number<V>(1.7580993408473768599402175208123) * expm1(x)
                      : rn_number<V>(1.0507009873554804934193349852946) * x)
template <typename V>
RN_DEVICE V rn_softplus_bound() {
  return sizeof(V) == 4 ? V(13.942385f) : V(34.04365338911715);
}
RN_OP1(softplus, x > rn_softplus_bound<V>() ? x : log1p(exp(x)))
RN_OP1(softsign, x / (1 + fabs(x)))

// Gradients. Those of roots and reciprocals are 0 where the incoming one is, whatever the value;
// those of Relu and Relu6 are products: a NaN gradient stays NaN.
RN_OP2(sigmoid_grad, y * x * (V(1) - x))
RN_OP2(tanh_grad, y * (V(1) - x * x))
RN_OF2(sqrt_grad, rn_is_float, y == 0 ? V(0) : y * V(0.5) / x)
RN_OF2(sqrt_grad, rn_is_complex, y * rn_number<V>(0.5) / rn_conj(x))
RN_OP2_BY_KIND(sqrt_grad)
RN_OF2(rsqrt_grad, rn_is_float, y == 0 ? V(0) : x * x * (y * V(-0.5)) * x)
RN_OF2(rsqrt_grad, rn_is_complex,
       rn_conj(x) * rn_conj(x) * rn_conj(x) * (y * rn_number<V>(-0.5)))
RN_OP2_BY_KIND(rsqrt_grad)
RN_OF2(reciprocal_grad, rn_is_float, y == 0 ? V(0) : -y * x * x)
RN_OF2(reciprocal_grad, rn_is_complex, -y * rn_conj(x) * rn_conj(x))
RN_OP2_BY_KIND(reciprocal_grad)
RN_OF2(relu_grad, rn_is_float, x * (y > 0 ? V(1) : V(0)))
RN_OF2(relu_grad, rn_is_signed, y > 0 ? x : V(0))
RN_OF2(relu_grad, rn_is_unsigned, y > 0 ? x : V(0))
RN_OP2_BY_KIND(relu_grad)
RN_OF2(relu6_grad, rn_is_float, x * (y > 0 && y < 6 ? V(1) : V(0)))
RN_OF2(relu6_grad, rn_is_signed, y > 0 && y < 6 ? x : V(0))
RN_OF2(relu6_grad, rn_is_unsigned, y > 0 && y < 6 ? x : V(0))
RN_OP2_BY_KIND(relu6_grad)
RN_OP3(leaky_relu_grad, y > V(0) ? x : x * z)
RN_OP2(elu_grad, y < V(0) ? (y + V(1)) * x : x)
RN_OP2(selu_grad, y < V(0) ? x * (y + rn_number<V>(1.7580993408473768599402175208123))
                           : x * rn_number<V>(1.0507009873554804934193349852946))
RN_OP2(softplus_grad, x / (exp(-y) + V(1)))
RN_OP2(softsign_grad, x / ((V(1) + fabs(y)) * (V(1) + fabs(y))))

#define RN_TEST1(name, expression)          \
  template <typename T>                     \
  RN_DEVICE bool rn_op_##name(rn_of<T> x) { \
    return expression;                      \
  }
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
RN_TEST1(is_nan, x != x)
RN_TEST1(is_inf, x == x && x - x != 0)
RN_TEST1(is_finite, x - x == 0)
template <typename T>
RN_DEVICE bool rn_op_approximate_equal(rn_of<T> x, rn_of<T> y, rn_of<T> tolerance) {
  return fabs(x - y) <= tolerance;
}
template <typename T>
RN_DEVICE rn_of<T> rn_op_select(bool condition, rn_of<T> yes, rn_of<T> no) {
  return condition ? yes : no;
}

RN_TEST2(logical_and, x && y)
RN_TEST2(logical_or, x || y)
RN_TEST1(logical_not, !x)
RN_OP2(bitwise_and, x & y)
RN_OP2(bitwise_or, x | y)
RN_OP2(bitwise_xor, x ^ y)
RN_OP1(invert, ~x)
template <typename T>
RN_DEVICE int rn_shift_count(T y) {
  const int top = 8 * (int)sizeof(T) - 1;
  return y <= T(0) ? 0 : u64(y) > u64(top) ? top : int(y);
}
RN_OP2(left_shift, u64(x) << rn_shift_count<T>(y))
RN_OP2(right_shift, x >> rn_shift_count<T>(y))
template <typename T>
RN_DEVICE u8 rn_op_population_count(T x) {
  u64 bits = u64(x) & (~u64(0) >> (64 - 8 * sizeof(T)));
  return u8(__popcll(bits));
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
