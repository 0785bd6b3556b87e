// The gamma function's relatives, inverse error functions and the zeta function, in double: see
// special.h.
#ifndef RUNNEL_KERNELS_SPECIAL_GAMMA_H_
#define RUNNEL_KERNELS_SPECIAL_GAMMA_H_

#include "kernels/special.h"

// What sums and fractions may leave out, of their value: for doubles and for floats.
#define RN_WIDE 1e-17
#define RN_NARROW 1e-9

// Psi: reflection for x < 0, then recurrence up to |start|, from where the asymptotic series
// converges.
RN_SPECIAL double rn_digamma_from(double x, double start) {
  if (x <= 0 && x == floor(x)) return RN_NOT_A_NUMBER;
  double result = 0;
  if (x < 0) {
    // The distances from the nearest pole and from the midpoint of two poles are exact.
    double part = x - rint(x), rest = copysign(0.5, part) - part;
    result = fabs(part) < 0.25 ? -RN_PI / tan(RN_PI * part) : -RN_PI * tan(RN_PI * rest);
    x = 1 - x;
  }
  for (; x < start; ++x) result -= 1 / x;
  double z = 1 / (x * x);
  // Bernoulli numbers over their index: B2k / 2k.
  // clang-format off
  double series = z * (1.0 / 12  - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240
                - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  // clang-format on
  return result + log(x) - 0.5 / x - series;
}
RN_SPECIAL double rn_digamma(double x) { return rn_digamma_from(x, 12); }

// Solves erfc(y) = q for 0 < q <= 1 by Halley's method, which triples the digits per step.
RN_SPECIAL double rn_erfc_inverse(double q) {
  double t = sqrt(-2 * log(q / 2));
  double y =
      0.70710678118654752 * (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)));
  for (int i = 0; i < 4; ++i) {
    double slope = 1.1283791670955125739 * exp(-y * y);
    if (slope == 0) break;
    double u = (erfc(y) - q) / slope;
    y += u / (1 - y * u);
  }
  return y;
}

RN_SPECIAL double rn_erf_inverse(double x) {
  double size = fabs(x);
  if (!(size <= 1)) return RN_NOT_A_NUMBER;
  if (size == 1) return copysign(RN_INFINITY, x);
  if (size > 0.5) return copysign(rn_erfc_inverse(1 - size), x);
  // Near zero erfc has lost digits: Newton's method on erf itself, starting from the series.
  double y = size * (0.88622692545275801 + 0.23201366653465450 * size * size);
  for (int i = 0; i < 4; ++i) {
    double u = (erf(y) - size) / (1.1283791670955125739 * exp(-y * y));
    y -= u / (1 + y * u);
  }
  return copysign(y, x);
}

RN_SPECIAL double rn_normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return RN_NOT_A_NUMBER;
  if (p == 0 || p == 1) return p == 0 ? -RN_INFINITY : RN_INFINITY;
  if (fabs(p - 0.5) < 0.25) return 1.41421356237309504880 * rn_erf_inverse(2 * p - 1);
  return p < 0.5 ? -1.41421356237309504880 * rn_erfc_inverse(2 * p)
                 : 1.41421356237309504880 * rn_erfc_inverse(2 * (1 - p));
}

// The terms of zeta from q on, by the Euler-Maclaurin formula; |power| is q^-x, |sum| what is there
// already.
RN_SPECIAL double rn_zeta_rest(double x, double q, double power, double sum, double least) {
  // B2k / (2k)!
  const double factors[] = {1.0 / 12,           -1.0 / 720,
                            1.0 / 30240,        -1.0 / 1209600,
                            1.0 / 47900160,     -691.0 / 1307674368000,
                            1.0 / 74724249600., -3617.0 / 10670622842880000.};
  const double inverse = 1 / q, square = inverse * inverse;
  double rest = q * power / (x - 1) + power / 2, rising = x * power * inverse;
  for (int k = 0; k < 8; ++k) {
    double term = factors[k] * rising;
    rest += term;
    if (fabs(term) < least * fabs(sum + rest)) break;
    rising *= (x + 2 * k + 1) * (x + 2 * k + 2) * square;
  }
  return rest;
}

// The Hurwitz zeta function, the sum of (q + k)^-x: the first terms, then the Euler-Maclaurin
// formula.
RN_SPECIAL double rn_zeta(double x, double q) {
  if (x == 1) return RN_INFINITY;
  if (!(x > 1)) return RN_NOT_A_NUMBER;
  if (q <= 0) {
    // At a pole, both sides have the same infinity only for even powers.
    if (q == floor(q)) return fmod(x, 2) == 0 ? RN_INFINITY : RN_NOT_A_NUMBER;
    if (x != floor(x)) return RN_NOT_A_NUMBER;
  }
  if (rn_is_infinite(q) || (rn_is_infinite(x) && q > 1)) return 0;
  double sum = 0;
  for (int k = 0; k < 12 || q < 12; ++k, ++q) {
    double term = pow(q, -x);
    sum += term;
    if (q > 0 && fabs(term) < 1e-17 * fabs(sum)) return sum;
  }
  return sum + rn_zeta_rest(x, q, pow(q, -x), sum, RN_WIDE);
}

RN_SPECIAL double rn_polygamma(double order, double x) {
  if (!(order >= 0) || order != floor(order)) return RN_NOT_A_NUMBER;
  if (order == 0) return rn_digamma(x);
  double value = exp(rn_lgamma(order + 1)) * rn_zeta(order + 1, x);
  return fmod(order, 2) == 0 ? -value : value;
}

// x^a e^-x / gamma(a): the common factor of both incomplete gamma functions. From a = 8 on by
// Stirling's series: sqrt(a / 2 pi) (x / a)^a e^(a - x - series), with what rounding took from x /
// a and a - x. Where a power leaves the exponent range, by logarithms, which lose digits.
RN_SPECIAL double rn_gamma_factor(double a, double x) {
  if (a < 8)
    return x < 700 ? pow(x, a) * exp(-x) * (a < 1 ? a / tgamma(a + 1) : 1 / tgamma(a))
                   : exp(a * log(x) - x - rn_lgamma(a));
  double z = 1 / (a * a), rest = a - x, ratio = x / a, power = pow(ratio, a);
  // clang-format off
  double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680
                  - z * (1.0 / 1188 - z * (691.0 / 360360 - z * (1.0 / 156 - z * (3617.0 / 122400)))))))) / a;
  // clang-format on
  double front = sqrt(a / (2 * RN_PI)) * exp(-stirling);
  if (fabs(rest) < 300 && power > 1e-280) {
    double part = rest - a, lost = (a - (rest - part)) - (x + part);
    return front * power * exp(rest) * (1 + a * (fma(-ratio, a, x) / x) + lost);
  }
  double d = -rest / a;
  return front * exp(a * (fabs(d) < 0.5 ? log1p(d) - d : log(ratio) - d));
}

RN_SPECIAL double rn_lower_series(double a, double x, double rest) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < RN_ROUNDS && fabs(term) > rest * fabs(sum); ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum;
}

// A continued fraction by the recurrence of its numerators and denominators, of the last two steps.
// They are kept in range together.
typedef struct rn_fraction_t {
  double top[2], bottom[2];
} rn_fraction_t;

// top = b * top + a * the one before, and so for the bottom.
RN_SPECIAL void rn_fraction_step(rn_fraction_t* f, double a, double b) {
  const double top = b * f->top[1] + a * f->top[0], bottom = b * f->bottom[1] + a * f->bottom[0];
  f->top[0] = f->top[1], f->top[1] = top;
  f->bottom[0] = f->bottom[1], f->bottom[1] = bottom;
  if (__builtin_expect(fabs(bottom) > 1e150 || fabs(top) > 1e150, 0))
    for (int i = 0; i < 2; ++i) f->top[i] *= 1e-150, f->bottom[i] *= 1e-150;
}

// Whether the last step changed the value by less than |rest| of it.
RN_SPECIAL bool rn_fraction_has_settled(const rn_fraction_t* f, double rest) {
  const double now = f->top[1] * f->bottom[0], before = f->top[0] * f->bottom[1];
  return fabs(now - before) < rest * fabs(now);
}

// The continued fraction of the upper incomplete gamma function.
RN_SPECIAL double rn_upper_fraction(double a, double x, double rest) {
  rn_fraction_t f = {{0, 1}, {1, x + 1 - a}};
  double b = x + 1 - a;
  for (int k = 1; k < RN_ROUNDS; ++k) {
    b += 2;
    rn_fraction_step(&f, -k * (k - a), b);
    if (rn_fraction_has_settled(&f, 10 * rest)) break;
  }
  return f.top[1] / f.bottom[1];
}

// The sums are at most of the size of a number: times less than this they are 0 as floats. |factor|
// is rn_gamma_factor(a, x).
#define RN_NOTHING 1e-60

RN_SPECIAL double rn_igamma_with(double a, double x, double rest, double factor) {
  if (a != a || x != x || x < 0 || a < 0) return RN_NOT_A_NUMBER;
  if (x == 0) return 0;
  if (a == 0) return RN_NOT_A_NUMBER;
  if (rn_is_infinite(a)) return rn_is_infinite(x) ? RN_NOT_A_NUMBER : 0;
  if (rn_is_infinite(x)) return 1;
  if (factor == 0 || (rest > RN_WIDE && a > 1 && factor < RN_NOTHING)) return x < a + 1 ? 0 : 1;
  return x < a + 1 ? rn_lower_series(a, x, rest) * factor
                   : 1 - rn_upper_fraction(a, x, rest) * factor;
}

// The upper function for x >= a, x >= 1 by its recurrence from the part of a after the comma: the
// fraction and the difference from 1 lose digits, a sum of positive terms does not. |factor| is
// rn_gamma_factor(a, x).
#define RN_MOST_TERMS 16
RN_SPECIAL double rn_upper_sum(double a, double x, double rest, double factor) {
  double sum = 0, term = factor / x;
  for (; a > 1; term *= a / x) {
    sum += term;
    a -= 1;
  }
  return sum + term * x * rn_upper_fraction(a, x, rest);
}

RN_SPECIAL double rn_igammac_with(double a, double x, double rest, double factor) {
  if (a != a || x != x || x < 0 || a <= 0) return RN_NOT_A_NUMBER;
  if (x == 0) return 1;
  if (rn_is_infinite(a)) return rn_is_infinite(x) ? RN_NOT_A_NUMBER : 1;
  if (rn_is_infinite(x)) return 0;
  if (factor == 0 || (rest > RN_WIDE && a > 1 && factor < RN_NOTHING)) return x < a + 1 ? 1 : 0;
  if (rest <= RN_WIDE && x >= 1 && x >= a && a < RN_MOST_TERMS)
    return rn_upper_sum(a, x, rest, factor);
  return x < a + 1 ? 1 - rn_lower_series(a, x, rest) * factor
                   : rn_upper_fraction(a, x, rest) * factor;
}

RN_SPECIAL double rn_igamma(double a, double x) {
  return rn_igamma_with(a, x, RN_WIDE, rn_gamma_factor(a, x));
}
RN_SPECIAL double rn_igammac(double a, double x) {
  return rn_igammac_with(a, x, RN_WIDE, rn_gamma_factor(a, x));
}

// The derivative with respect to a of the lower function, divided by minus the factor: of the
// series, term by term. For x < a + 1 all terms have the same sign.
RN_SPECIAL double rn_lower_slope(double a, double x) {
  double term = 1 / a, slope = rn_digamma(a + 1) - log(x), sum = 0;
  for (int k = 1; k < RN_ROUNDS; ++k) {
    double part = term * slope;
    sum += part;
    if (a + k > x && fabs(part) < 1e-17 * fabs(sum)) break;
    slope += 1 / (a + k);
    term *= x / (a + k);
  }
  return sum;
}

// The derivative with respect to a of the upper function, divided by the factor: the continued
// fraction and its derivative in parallel. Where it is used, all terms are positive, so the far
// tail loses no digits.
RN_SPECIAL double rn_upper_slope(double a, double x) {
  const double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
  double c_slope = 0, d_slope = d * d, h_slope = d_slope;  // b's derivative is always -1
  for (int k = 1; k < RN_ROUNDS; ++k) {
    double step = -k * (k - a);
    b += 2;
    double next = step * d + b, next_slope = k * d + step * d_slope - 1;
    double inverse = 1 / c;
    c_slope = (k - step * c_slope * inverse) * inverse - 1;
    c = b + step * inverse;
    if (fabs(next) < tiny) next = tiny;
    if (fabs(c) < tiny) c = tiny;
    d = 1 / next;
    d_slope = -next_slope * d * d;
    double change = d * c, change_slope = d_slope * c + d * c_slope;
    h_slope = h_slope * change + h * change_slope;
    h *= change;
    if (fabs(change - 1) < 1e-16 && fabs(h * change_slope) <= 1e-16 * fabs(h_slope)) break;
  }
  return h * (log(x) - rn_digamma(a)) + h_slope;
}

RN_SPECIAL double rn_gamma_slope(double a, double x) {
  return x < a + 1 ? rn_lower_slope(a, x) : rn_upper_slope(a, x);
}

RN_SPECIAL double rn_igamma_grad_a(double a, double x) {
  if (a != a || x != x || x < 0 || a < 0) return RN_NOT_A_NUMBER;
  if (x == 0) return 0;
  if (a == 0 || rn_is_infinite(x) || rn_is_infinite(a)) return a == 0 ? RN_NOT_A_NUMBER : 0;
  double factor = rn_gamma_factor(a, x);
  return factor == 0 ? 0 : -factor * rn_gamma_slope(a, x);
}

// How a sample x of the gamma distribution changes with a at a fixed quantile: the density, which
// is the factor over x, times dx must cancel the change of the distribution function.
RN_SPECIAL double rn_gamma_sample_grad(double a, double x) {
  if (a != a || x != x || x < 0 || a <= 0) return RN_NOT_A_NUMBER;
  return x == 0 || rn_is_infinite(a) ? 0 : x * rn_gamma_slope(a, x);
}

RN_SPECIAL double rn_beta_fraction(double a, double b, double x, double rest) {
  rn_fraction_t f = {{1, 1}, {1, 1 - (a + b) * x / (a + 1)}};
  for (int m = 1; m < RN_ROUNDS; ++m) {
    rn_fraction_step(&f, m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1);
    const bool is_even = rn_fraction_has_settled(&f, 10 * rest);
    rn_fraction_step(&f, -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1);
    if (is_even && rn_fraction_has_settled(&f, 10 * rest)) break;
  }
  return f.top[1] / f.bottom[1];
}

RN_SPECIAL double rn_betainc(double a, double b, double x, double rest) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return RN_NOT_A_NUMBER;
  if (x == 0 || x == 1) return x;
  double front = exp(rn_lgamma(a + b) - rn_lgamma(a) - rn_lgamma(b) + a * log(x) + b * log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * rn_beta_fraction(a, b, x, rest) / a
                                   : 1 - front * rn_beta_fraction(b, a, 1 - x, rest) / b;
}

#endif  // RUNNEL_KERNELS_SPECIAL_GAMMA_H_
