// Log determinants of one matrix in double precision. A template: log_determinant.c includes it for
// real and for complex numbers, with T the type and N(name) its names.

// Multiplies the sign of a nonzero pivot into |*sign| and returns the logarithm of its magnitude.
// Avoids squares, because those of large and small numbers exceed the exponent range.
static double N(log_pivot)(T x, T* sign) {
  const bool is_large = LARGEST(x) > 0x1p1000;
  if (is_large) x *= 0x1p-100;
  *sign *= DIRECTION(x);
  return log(SIZE(x)) + (is_large ? 100 * 0.69314718055994530942 : 0);
}

// The sign of the determinant and the logarithm of its magnitude, by elimination in place.
static double N(log_determinant)(T* a, int64_t n, T* out_sign) {
  double sum = 0;
  T sign = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (LARGEST(a[i * n + k]) > LARGEST(a[best * n + k])) best = i;
    if (best != k) {
      for (int64_t j = 0; j < n; ++j) {
        T old = a[k * n + j];
        a[k * n + j] = a[best * n + j], a[best * n + j] = old;
      }
      sign = -sign;
    }
    if (a[k * n + k] == 0) {
      *out_sign = 0;
      return -(double)INFINITY;
    }
    sum += N(log_pivot)(a[k * n + k], &sign);
    for (int64_t i = k + 1; i < n; ++i) {
      const T factor = a[i * n + k] / a[k * n + k];
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  *out_sign = sign;
  return sum;
}
