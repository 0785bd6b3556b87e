// Modified Bessel functions, and integrals without a closed form, in double: see special.h.
#ifndef RUNNEL_KERNELS_SPECIAL_BESSEL_H_
#define RUNNEL_KERNELS_SPECIAL_BESSEL_H_

#include "kernels/special.h"

// exp(-x) I_n(x) for n = 0, 1 and x >= 0: the power series while it is short, beyond that the
// asymptotic series, whose smallest term is below exp(-2 x).
RN_SPECIAL double rn_scaled_i(int n, double x) {
  if (rn_is_infinite(x)) return 0;
  if (x <= 25) {
    double quarter = x * x / 4, term = n ? x / 2 : 1, sum = term;
    for (int k = 1; k < RN_ROUNDS && term > sum * 1e-17; ++k) {
      term *= quarter / ((double)k * (k + n));
      sum += term;
    }
    return exp(-x) * sum;
  }
  double term = 1, sum = 1;
  for (int k = 1; k < RN_ROUNDS; ++k) {
    double odd = 2 * k - 1, next = -term * (4 * n * n - odd * odd) / (8 * k * x);
    if (fabs(next) >= fabs(term) || fabs(next) < 1e-17) break;
    sum += term = next;
  }
  return sum / (sqrt(2 * RN_PI) * sqrt(x));  // 2 pi x may overflow
}

// From here on both functions overflow.
#define RN_I_OVERFLOWS 714.0

// |scaled| times exp(|x|), in two steps, because exp overflows before the product does.
RN_SPECIAL double rn_unscaled_i(double scaled, double x) {
  double half = exp(fabs(x) / 2);
  return fabs(x) < 700 ? exp(fabs(x)) * scaled : half * scaled * half;
}
RN_SPECIAL double rn_i0e(double x) { return x != x ? x : rn_scaled_i(0, fabs(x)); }
RN_SPECIAL double rn_i1e(double x) { return x != x ? x : copysign(rn_scaled_i(1, fabs(x)), x); }
RN_SPECIAL double rn_i0(double x) {
  return fabs(x) > RN_I_OVERFLOWS ? RN_INFINITY : rn_unscaled_i(rn_i0e(x), x);
}
RN_SPECIAL double rn_i1(double x) {
  return fabs(x) > RN_I_OVERFLOWS ? copysign(RN_INFINITY, x) : rn_unscaled_i(rn_i1e(x), x);
}

// exp(x) K_0(x) and exp(x) K_1(x) for x > 0. Small x: the series with the logarithm. Large x, where
// the terms of the continued fraction exceed the exponent range: the first two terms of the
// asymptotic series. Otherwise the continued fraction for K_1 / K_0 by Steed's method, with the sum
// that gives K_0 itself.
RN_SPECIAL void rn_scaled_k(double x, double* out_k0, double* out_k1) {
  const double front = sqrt(RN_PI / 2) / sqrt(x);
  if (x > 1e9) {
    *out_k0 = front * (1 - 0.125 / x);
    *out_k1 = front * (1 + 0.375 / x);
    return;
  }
  if (x <= 2) {
    double quarter = x * x / 4, log_half = log(x) - RN_LN2, term = 1, harmonic = 0;
    double sum0 = -(log_half + RN_EULER), sum1 = log_half + RN_EULER - 0.5, power = 1;
    for (int k = 1; k < RN_ROUNDS; ++k) {
      harmonic += 1.0 / k;
      term *= quarter / ((double)k * k);
      power *= quarter / ((double)k * (k + 1));
      sum0 += term * (harmonic - log_half - RN_EULER);
      double more = power * (log_half + RN_EULER - 0.5 * (harmonic + harmonic + 1.0 / (k + 1)));
      sum1 += more;
      if (term < 1e-18 && fabs(more) < 1e-18) break;
    }
    *out_k0 = exp(x) * sum0;
    *out_k1 = exp(x) * (1 / x + x / 2 * sum1);
    return;
  }
  double b = 2 * (1 + x), d = 1 / b, h = d, delta = d, q1 = 0, q2 = 1, a1 = 0.25, c = a1, q = c;
  double a = -a1, s = 1 + q * delta;
  for (int i = 2; i < 10000; ++i) {
    a -= 2 * (i - 1);
    c = -a * c / i;
    double next = (q1 - b * q2) / a;
    q1 = q2;
    q2 = next;
    q += c * next;
    b += 2;
    d = 1 / (b + a * d);
    delta *= b * d - 1;
    h += delta;
    double more = q * delta;
    s += more;
    if (fabs(more) < fabs(s) * 1e-17) break;
  }
  *out_k0 = front / s;
  *out_k1 = *out_k0 * (x + 0.5 - a1 * h) / x;
}

RN_SPECIAL double rn_k_of(double x, int n, bool is_scaled) {
  if (x != x) return x;
  if (x <= 0) return RN_INFINITY;
  if (rn_is_infinite(x)) return 0;
  double k[2];
  rn_scaled_k(x, &k[0], &k[1]);
  return is_scaled ? k[n] : k[n] * exp(-x);
}
RN_SPECIAL double rn_k0(double x) { return rn_k_of(x, 0, false); }
RN_SPECIAL double rn_k0e(double x) { return rn_k_of(x, 0, true); }
RN_SPECIAL double rn_k1(double x) { return rn_k_of(x, 1, false); }
RN_SPECIAL double rn_k1e(double x) { return rn_k_of(x, 1, true); }

// Dawson's integral by sampling a Gaussian: with steps of 0.2 the error is exp(-(pi / 0.4)^2).
RN_SPECIAL double rn_dawson(double x) {
  if (x != x) return x;
  double size = fabs(x), square = x * x;
  if (size < 0.2) {  // the series, where the samples would cancel
    double term = x, sum = x;
    for (int k = 1; k < 30; ++k) sum += term *= -2 * square / (2 * k + 1);
    return sum;
  }
  if (size > 1e4) return rn_is_infinite(x) ? copysign(0.0, x) : (0.5 + 0.25 / square) / x;
  const double step = 0.2;
  int middle = 2 * (int)(0.5 * size / step + 0.5);
  double rest = size - middle * step, sum = 0;
  for (int i = -45; i <= 45; i += 2) {
    double away = rest - i * step;
    sum += exp(-away * away) / (middle + i);
  }
  return copysign(sum / sqrt(RN_PI), x);
}

RN_SPECIAL double rn_exponential_integral(double x) {
  if (x != x || x < 0) return RN_NOT_A_NUMBER;
  if (x == 0) return -RN_INFINITY;
  if (rn_is_infinite(x)) return x;
  double term = 1, sum = 0;
  if (x < 40) {
    for (int k = 1; k < RN_ROUNDS; ++k) {
      term *= x / k;
      sum += term / k;
      if (term / k < sum * 1e-17) break;
    }
    return RN_EULER + log(x) + sum;
  }
  sum = 1;
  for (int k = 1; k < RN_ROUNDS; ++k) {
    double next = term * k / x;
    if (next >= term || next < 1e-17) break;
    sum += term = next;
  }
  return exp(x) / x * sum;
}

// The sum of z^k / k^2 for |z| <= 1/2.
RN_SPECIAL double rn_dilogarithm_series(double z) {
  double power = 1, sum = 0;
  for (int k = 1; k < 80; ++k) {
    power *= z;
    sum += power / ((double)k * k);
  }
  return sum;
}

// Spence's function, the dilogarithm of 1 - x, transformed to where the series is short.
RN_SPECIAL double rn_spence(double x) {
  const double sixth = RN_PI * RN_PI / 6;
  if (x != x || x < 0) return RN_NOT_A_NUMBER;
  if (rn_is_infinite(x)) return -RN_INFINITY;
  if (x == 0) return sixth;
  if (x < 0.5) return sixth - log(x) * log1p(-x) - rn_dilogarithm_series(x);
  if (x <= 1.5) return rn_dilogarithm_series(1 - x);
  return -0.5 * log(x) * log(x) - rn_spence(1 / x);
}

#endif  // RUNNEL_KERNELS_SPECIAL_BESSEL_H_
