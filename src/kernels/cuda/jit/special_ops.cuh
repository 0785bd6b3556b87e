// The scalar operations of scalar_ops.def that have no closed form: gamma and related functions,
// inverse error functions, Bessel functions, integrals. Computed in double, as on the CPU, by the
// same formulas (src/kernels/cpu/math/special_math.c, bessel.c explain them), and rounded to the
// type at the end. Included after scalar_ops.cuh.
#ifndef RUNNEL_KERNELS_CUDA_JIT_SPECIAL_OPS_CUH_
#define RUNNEL_KERNELS_CUDA_JIT_SPECIAL_OPS_CUH_

#define RN_PI 3.14159265358979323846
#define RN_EULER 0.57721566490153286061
#define RN_LN2 0.69314718055994530942
#define RN_ROUNDS 4000  // a series that has not converged by then never will

RN_DEVICE bool rn_is_infinite(double x) { return x == x && x - x != 0; }

RN_DEVICE double rn_lgamma(double x) { return rn_is_infinite(x) ? rn_infinity<double>() : lgamma(x); }
RN_DEVICE float rn_lgamma(float x) {
  return rn_is_infinite(x) ? rn_infinity<float>() : lgammaf(x);
}


RN_DEVICE double rn_digamma(double x) {
  if (x <= 0 && x == floor(x)) return rn_nan<double>();
  double result = 0;
  if (x < 0) {
    // The distances from the nearest pole and from the midpoint of two poles are exact.
    double part = x - rint(x), rest = copysign(0.5, part) - part;
    result = fabs(part) < 0.25 ? -RN_PI / tan(RN_PI * part) : -RN_PI * tan(RN_PI * rest);
    x = 1 - x;
  }
  for (; x < 12; ++x) result -= 1 / x;
  double z = 1 / (x * x);
  // Bernoulli numbers over their index: B2k / 2k.
  // clang-format off
  double series = z * (1.0 / 12  - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240
                - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  // clang-format on
  return result + log(x) - 0.5 / x - series;
}

RN_DEVICE double rn_erfc_inverse(double q) {
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

RN_DEVICE double rn_erf_inverse(double x) {
  double size = fabs(x);
  if (!(size <= 1)) return rn_nan<double>();
  if (size == 1) return copysign(rn_infinity<double>(), x);
  if (size > 0.5) return copysign(rn_erfc_inverse(1 - size), x);
  // Near zero erfc has lost digits: Newton's method on erf itself, starting from the series.
  double y = size * (0.88622692545275801 + 0.23201366653465450 * size * size);
  for (int i = 0; i < 4; ++i) {
    double u = (erf(y) - size) / (1.1283791670955125739 * exp(-y * y));
    y -= u / (1 + y * u);
  }
  return copysign(y, x);
}

RN_DEVICE double rn_normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return rn_nan<double>();
  if (p == 0 || p == 1) return p == 0 ? -rn_infinity<double>() : rn_infinity<double>();
  if (fabs(p - 0.5) < 0.25) return 1.41421356237309504880 * rn_erf_inverse(2 * p - 1);
  return p < 0.5 ? -1.41421356237309504880 * rn_erfc_inverse(2 * p)
                 : 1.41421356237309504880 * rn_erfc_inverse(2 * (1 - p));
}

RN_DEVICE double rn_zeta(double x, double q) {
  if (x == 1) return rn_infinity<double>();
  if (!(x > 1)) return rn_nan<double>();
  if (q <= 0) {
    // At a pole, both sides have the same infinity only for even powers.
    if (q == floor(q)) return fmod(x, 2) == 0 ? rn_infinity<double>() : rn_nan<double>();
    if (x != floor(x)) return rn_nan<double>();
  }
  if (rn_is_infinite(q) || (rn_is_infinite(x) && q > 1)) return 0;
  double sum = 0;
  for (int k = 0; k < 12 || q < 12; ++k, ++q) {
    double term = pow(q, -x);
    sum += term;
    if (q > 0 && fabs(term) < 1e-17 * fabs(sum)) return sum;
  }
  // B2k / (2k)!
  const double factors[] = {1.0 / 12,           -1.0 / 720,
                                   1.0 / 30240,        -1.0 / 1209600,
                                   1.0 / 47900160,     -691.0 / 1307674368000,
                                   1.0 / 74724249600., -3617.0 / 10670622842880000.};
  double power = pow(q, -x);
  sum += q * power / (x - 1) + power / 2;
  double rising = x * power / q;
  for (int k = 0; k < 8; ++k) {
    double term = factors[k] * rising;
    sum += term;
    if (fabs(term) < 1e-17 * fabs(sum)) break;
    rising *= (x + 2 * k + 1) * (x + 2 * k + 2) / (q * q);
  }
  return sum;
}

RN_DEVICE double rn_polygamma(double order, double x) {
  if (!(order >= 0) || order != floor(order)) return rn_nan<double>();
  if (order == 0) return rn_digamma(x);
  double value = exp(rn_lgamma(order + 1)) * rn_zeta(order + 1, x);
  return fmod(order, 2) == 0 ? -value : value;
}

// As on the CPU.
RN_DEVICE double rn_gamma_factor(double a, double x) {
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

RN_DEVICE double rn_lower_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < RN_ROUNDS && fabs(term) > 1e-17 * fabs(sum); ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * rn_gamma_factor(a, x);
}

// A continued fraction by the recurrence of its numerators and denominators, of the last two steps.
// They are kept in range together.
struct rn_fraction_t {
  double top[2], bottom[2];
};

// top = b * top + a * the one before, and so for the bottom.
RN_DEVICE void rn_fraction_step(rn_fraction_t& f, double a, double b) {
  double top = b * f.top[1] + a * f.top[0], bottom = b * f.bottom[1] + a * f.bottom[0];
  double scale = fabs(bottom) > 1e150 || fabs(top) > 1e150 ? 1e-150 : 1;
  f.top[0] = f.top[1] * scale, f.top[1] = top * scale;
  f.bottom[0] = f.bottom[1] * scale, f.bottom[1] = bottom * scale;
}

// Whether the last step changed the value by next to nothing.
RN_DEVICE bool rn_fraction_has_settled(const rn_fraction_t& f) {
  double now = f.top[1] * f.bottom[0], before = f.top[0] * f.bottom[1];
  return fabs(now - before) < 1e-16 * fabs(now);
}

RN_DEVICE double rn_upper_fraction(double a, double x) {
  double b = x + 1 - a;
  rn_fraction_t f = {{0, 1}, {1, b}};
  for (int k = 1; k < RN_ROUNDS; ++k) {
    b += 2;
    rn_fraction_step(f, -k * (k - a), b);
    if (rn_fraction_has_settled(f)) break;
  }
  return f.top[1] / f.bottom[1] * rn_gamma_factor(a, x);
}

RN_DEVICE double rn_igamma(double a, double x) {
  if (a != a || x != x || x < 0 || a < 0) return rn_nan<double>();
  if (x == 0) return 0;
  if (a == 0) return rn_nan<double>();
  if (rn_is_infinite(a)) return rn_is_infinite(x) ? rn_nan<double>() : 0;
  if (rn_is_infinite(x)) return 1;
  return x < a + 1 ? rn_lower_series(a, x) : 1 - rn_upper_fraction(a, x);
}

RN_DEVICE double rn_igammac(double a, double x) {
  if (a != a || x != x || x < 0 || a <= 0) return rn_nan<double>();
  if (x == 0) return 1;
  if (rn_is_infinite(a)) return rn_is_infinite(x) ? rn_nan<double>() : 1;
  if (rn_is_infinite(x)) return 0;
  return x < a + 1 ? 1 - rn_lower_series(a, x) : rn_upper_fraction(a, x);
}

RN_DEVICE double rn_lower_slope(double a, double x) {
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

RN_DEVICE double rn_upper_slope(double a, double x) {
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

RN_DEVICE double rn_gamma_slope(double a, double x) {
  return x < a + 1 ? rn_lower_slope(a, x) : rn_upper_slope(a, x);
}

RN_DEVICE double rn_igamma_grad_a(double a, double x) {
  if (a != a || x != x || x < 0 || a < 0) return rn_nan<double>();
  if (x == 0) return 0;
  if (a == 0 || rn_is_infinite(x) || rn_is_infinite(a)) return a == 0 ? rn_nan<double>() : 0;
  double factor = rn_gamma_factor(a, x);
  return factor == 0 ? 0 : -factor * rn_gamma_slope(a, x);
}

RN_DEVICE double rn_gamma_sample_grad(double a, double x) {
  if (a != a || x != x || x < 0 || a <= 0) return rn_nan<double>();
  return x == 0 || rn_is_infinite(a) ? 0 : x * rn_gamma_slope(a, x);
}

RN_DEVICE double rn_beta_fraction(double a, double b, double x) {
  rn_fraction_t f = {{1, 1}, {1, 1 - (a + b) * x / (a + 1)}};
  for (int m = 1; m < RN_ROUNDS; ++m) {
    rn_fraction_step(f, m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1);
    bool is_even = rn_fraction_has_settled(f);
    rn_fraction_step(f, -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1);
    if (is_even && rn_fraction_has_settled(f)) break;
  }
  return f.top[1] / f.bottom[1];
}

RN_DEVICE double rn_betainc(double a, double b, double x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return rn_nan<double>();
  if (x == 0 || x == 1) return x;
  double front = exp(rn_lgamma(a + b) - rn_lgamma(a) - rn_lgamma(b) + a * log(x) + b * log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * rn_beta_fraction(a, b, x) / a
                                   : 1 - front * rn_beta_fraction(b, a, 1 - x) / b;
}

RN_DEVICE double rn_scaled_i(int n, double x) {
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

RN_DEVICE double rn_unscaled_i(double scaled, double x) {
  double half = exp(fabs(x) / 2);
  return fabs(x) < 700 ? exp(fabs(x)) * scaled : half * scaled * half;
}
RN_DEVICE double rn_i0e(double x) { return x != x ? x : rn_scaled_i(0, fabs(x)); }
RN_DEVICE double rn_i1e(double x) { return x != x ? x : copysign(rn_scaled_i(1, fabs(x)), x); }
RN_DEVICE double rn_i0(double x) { return fabs(x) > 714.0 ? rn_infinity<double>() : rn_unscaled_i(rn_i0e(x), x); }
RN_DEVICE double rn_i1(double x) {
  return fabs(x) > 714.0 ? copysign(rn_infinity<double>(), x) : rn_unscaled_i(rn_i1e(x), x);
}

RN_DEVICE void rn_scaled_k(double x, double* out_k0, double* out_k1) {
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

RN_DEVICE double rn_k_of(double x, int n, bool is_scaled) {
  if (x != x) return x;
  if (x <= 0) return rn_infinity<double>();
  if (rn_is_infinite(x)) return 0;
  double k[2];
  rn_scaled_k(x, &k[0], &k[1]);
  return is_scaled ? k[n] : k[n] * exp(-x);
}
RN_DEVICE double rn_k0(double x) { return rn_k_of(x, 0, false); }
RN_DEVICE double rn_k0e(double x) { return rn_k_of(x, 0, true); }
RN_DEVICE double rn_k1(double x) { return rn_k_of(x, 1, false); }
RN_DEVICE double rn_k1e(double x) { return rn_k_of(x, 1, true); }

// J and Y of order 0 and 1 from 8 on, where CUDA's have errors of up to 5e-12: Hankel's expansion
// sqrt(2 / (pi x)) (P cos(x') - Q sin(x')) with x' = x - (2 order + 1) pi / 4. P and x Q are
// polynomials in (8 / x)^2, interpolated at Chebyshev's points, with errors below 1e-17.
#define RN_HANKEL_TERMS 14
RN_DEVICE double rn_hankel(const double (&terms)[RN_HANKEL_TERMS], double z) {
  double sum = terms[RN_HANKEL_TERMS - 1];
  for (int k = RN_HANKEL_TERMS - 2; k >= 0; --k) sum = sum * z + terms[k];
  return sum;
}

RN_DEVICE double rn_wide_bessel(int order, bool is_y, double x) {
  const double p0[] = {1.0,
                       -0.0010986328124996737,
                       2.7380883672109251e-5,
                       -2.1839190342283642e-6,
                       3.6203309521173532e-7,
                       -1.0239239991285942e-7,
                       4.3812698516604046e-8,
                       -2.5395434404600185e-8,
                       1.7236203631456422e-8,
                       -1.1558696461579816e-8,
                       6.5674275837449665e-9,
                       -2.7665349658558267e-9,
                       7.4078635587849977e-10,
                       -9.2954024470869306e-11};
  const double q0[] = {-0.12499999999999999,   0.0011444091796844858,  -5.5446289280090356e-5,
                       6.5907520873836661e-6,  -1.4531181940492295e-6, 5.1282574319655735e-7,
                       -2.6193898018443783e-7, 1.7385986393738692e-7,  -1.294758179775837e-7,
                       9.1965255514559196e-8,  -5.4079887962397398e-8, 2.3263295615353139e-8,
                       -6.3127578423287726e-9, 7.9922081850396114e-10};
  const double p1[] = {1.0,
                       0.0018310546874996559,
                       -3.5203993297701903e-5,
                       2.5809952950013142e-6,
                       -4.1030480891404308e-7,
                       1.1317408863913823e-7,
                       -4.7635762377210324e-8,
                       2.7310862271339777e-8,
                       -1.8410150403133397e-8,
                       1.2297197167024731e-8,
                       -6.9713340484150565e-9,
                       2.932813230777702e-9,
                       -7.8467070610025255e-10,
                       9.840821678448612e-11};
  const double q1[] = {0.37499999999999999,    -0.0016021728515593267, 6.7767686931732655e-5,
                       -7.6047144829333513e-6, 1.6240781447013697e-6,  -5.6169413683681107e-7,
                       2.8300006796479156e-7,  -1.8612719875479016e-7, 1.3782740725415922e-7,
                       -9.7575926766384658e-8, 5.7271028826226885e-8,  -2.4608376619829313e-8,
                       6.67306043217023e-9,    -8.4444272000720991e-10};
  if (rn_is_infinite(x)) return 0;
  double z = 64 / (x * x), p = order ? rn_hankel(p1, z) : rn_hankel(p0, z);
  double q = (order ? rn_hankel(q1, z) : rn_hankel(q0, z)) / x;
  // Where the sum or the difference cancels, it is -cos(2 x) over the other.
  double s = sin(x), c = cos(x), sum = s + c, difference = s - c, product = -cos(2 * x);
  if (s * c < 0)
    sum = product / difference;
  else
    difference = product / sum;
  double cosine = order ? difference : sum, sine = order ? -sum : difference;
  double value = is_y ? p * sine + q * cosine : p * cosine - q * sine;
  return value * 0.56418958354775628695 / sqrt(x);  // 1 / sqrt(pi)
}
RN_DEVICE double rn_j0(double x) {
  return fabs(x) < 8 || x != x ? j0(x) : rn_wide_bessel(0, false, fabs(x));
}
RN_DEVICE double rn_j1(double x) {
  return fabs(x) < 8 || x != x ? j1(x) : copysign(1.0, x) * rn_wide_bessel(1, false, fabs(x));
}
RN_DEVICE double rn_y0(double x) {
  if (x <= 0) return -rn_infinity<double>();
  return x < 8 || x != x ? y0(x) : rn_wide_bessel(0, true, x);
}
RN_DEVICE double rn_y1(double x) {
  if (x <= 0) return -rn_infinity<double>();
  return x < 8 || x != x ? y1(x) : rn_wide_bessel(1, true, x);
}

RN_DEVICE double rn_dawson(double x) {
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

RN_DEVICE double rn_exponential_integral(double x) {
  if (x != x || x < 0) return rn_nan<double>();
  if (x == 0) return -rn_infinity<double>();
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

RN_DEVICE double rn_dilogarithm_series(double z) {
  double power = 1, sum = 0;
  for (int k = 1; k < 80; ++k) {
    power *= z;
    sum += power / ((double)k * k);
  }
  return sum;
}

// Without recursion: the last case ends in one of the two before it.
RN_DEVICE double rn_spence(double x) {
  const double sixth = RN_PI * RN_PI / 6;
  if (x != x || x < 0) return rn_nan<double>();
  if (rn_is_infinite(x)) return -rn_infinity<double>();
  if (x == 0) return sixth;
  double front = 0, sign = 1;
  if (x > 1.5) {
    front = -0.5 * log(x) * log(x);
    sign = -1;
    x = 1 / x;
  }
  double rest = x < 0.5 ? sixth - log(x) * log1p(-x) - rn_dilogarithm_series(x)
                        : rn_dilogarithm_series(1 - x);
  return front + sign * rest;
}

// Both Fresnel integrals as C + iS.
RN_DEVICE rn_complex128 rn_fresnel(double size) {
  const rn_complex128 half(0.5, 0.5), one(1);
  double square = size * size;
  if (size < 1.5) {
    rn_complex128 term(size), sum(size);
    for (int k = 1; k < 60; ++k) {
      term = term * rn_complex128(0, RN_PI / 2 * square / k);
      sum = sum + rn_complex128(term.re / (2 * k + 1), term.im / (2 * k + 1));
    }
    return sum;
  }
  if (size > 1e8) return half;
  rn_complex128 b(1, -RN_PI * square), c(1e300), d = one / b, h = d;
  for (int k = 2, n = -1; k < 500; ++k) {
    n += 2;
    rn_complex128 a(-(double)n * (n + 1));
    b.re += 4;
    d = one / (a * d + b);
    c = b + a / c;
    rn_complex128 factor = c * d;
    h = h * factor;
    if (fabs(factor.re - 1) + fabs(factor.im) < 1e-16) break;
  }
  h = h * rn_complex128(size, -size);
  double angle = fmod(square, 4.0) * (RN_PI / 2);
  return half * (one - rn_complex128(cos(angle), sin(angle)) * h);
}
RN_DEVICE double rn_fresnel_cos(double x) {
  return x != x ? x : copysign(rn_fresnel(fabs(x)).re, x);
}
RN_DEVICE double rn_fresnel_sin(double x) {
  return x != x ? x : copysign(rn_fresnel(fabs(x)).im, x);
}

#define RN_SPECIAL1(name, function) RN_OP1(name, function(double(x)))
#define RN_SPECIAL2(name, function) RN_OP2(name, function(double(x), double(y)))
RN_OP1(lgamma, rn_lgamma(x))  // of floats in float, as stock's
RN_SPECIAL1(digamma, rn_digamma)
RN_SPECIAL1(erfinv, rn_erf_inverse)
RN_SPECIAL1(ndtri, rn_normal_quantile)
RN_SPECIAL2(zeta, rn_zeta)
RN_SPECIAL2(polygamma, rn_polygamma)
RN_SPECIAL2(igamma, rn_igamma)
RN_SPECIAL2(igammac, rn_igammac)
RN_SPECIAL2(igamma_grad_a, rn_igamma_grad_a)
RN_SPECIAL2(random_gamma_grad, rn_gamma_sample_grad)
RN_OP3(betainc, rn_betainc(double(x), double(y), double(z)))
RN_SPECIAL1(bessel_i0, rn_i0)
RN_SPECIAL1(bessel_i0e, rn_i0e)
RN_SPECIAL1(bessel_i1, rn_i1)
RN_SPECIAL1(bessel_i1e, rn_i1e)
RN_SPECIAL1(bessel_j0, rn_j0)
RN_SPECIAL1(bessel_j1, rn_j1)
RN_SPECIAL1(bessel_k0, rn_k0)
RN_SPECIAL1(bessel_k0e, rn_k0e)
RN_SPECIAL1(bessel_k1, rn_k1)
RN_SPECIAL1(bessel_k1e, rn_k1e)
RN_SPECIAL1(bessel_y0, rn_y0)
RN_SPECIAL1(bessel_y1, rn_y1)
RN_SPECIAL1(dawsn, rn_dawson)
RN_SPECIAL1(expint, rn_exponential_integral)
RN_SPECIAL1(fresnel_cos, rn_fresnel_cos)
RN_SPECIAL1(fresnel_sin, rn_fresnel_sin)
RN_SPECIAL1(spence, rn_spence)

#endif  // RUNNEL_KERNELS_CUDA_JIT_SPECIAL_OPS_CUH_
