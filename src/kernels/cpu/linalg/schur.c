// The complex Schur form: see schur.h.
#include "kernels/cpu/linalg/schur.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef double _Complex number_t;

// |re| + |im|, which is cheaper than the absolute value and as good where only the size matters.
static double size(number_t x) { return fabs(creal(x)) + fabs(cimag(x)); }
static double square(number_t x) { return creal(x) * creal(x) + cimag(x) * cimag(x); }

static void set_identity(number_t* q, int64_t n) {
  memset(q, 0, (size_t)(n * n) * sizeof *q);
  for (int64_t i = 0; i < n; ++i) q[i * n + i] = 1;
}

// A = Q H Q* by reflections I - tau v v*, with zeros below the first subdiagonal of H.
static void to_hessenberg(number_t* a, int64_t n, number_t* q, number_t* v, number_t* w) {
  set_identity(q, n);
  for (int64_t k = 0; k + 2 < n; ++k) {
    double tail = 0;
    for (int64_t i = k + 2; i < n; ++i) tail += square(a[i * n + k]);
    if (tail == 0) continue;
    number_t first = a[(k + 1) * n + k];
    double whole = sqrt(square(first) + tail), lead = cabs(first);
    number_t phase = lead > 0 ? first / lead : 1;
    for (int64_t i = k + 1; i < n; ++i) v[i] = a[i * n + k];
    v[k + 1] += phase * whole;
    double tau = 1 / (whole * (whole + lead));
    // From the left, row by row.
    memset(w, 0, (size_t)n * sizeof *w);
    for (int64_t i = k + 1; i < n; ++i)
      for (int64_t j = k; j < n; ++j) w[j] += conj(v[i]) * a[i * n + j];
    for (int64_t i = k + 1; i < n; ++i)
      for (int64_t j = k; j < n; ++j) a[i * n + j] -= tau * v[i] * w[j];
    for (int64_t i = k + 2; i < n; ++i) a[i * n + k] = 0;
    // From the right, of H and of Q.
    for (int m = 0; m < 2; ++m) {
      number_t* x = m ? q : a;
      for (int64_t i = 0; i < n; ++i) {
        number_t sum = 0;
        for (int64_t j = k + 1; j < n; ++j) sum += x[i * n + j] * v[j];
        for (int64_t j = k + 1; j < n; ++j) x[i * n + j] -= tau * sum * conj(v[j]);
      }
    }
  }
}

// The eigenvalue of the last 2 x 2 block that is nearer to its last element.
static number_t shift_of(const number_t* a, int64_t n, int64_t high, int steps) {
  number_t d = a[high * n + high], c = a[high * n + high - 1];
  // A shift of another kind breaks cycles.
  if (steps == 10 || steps == 20) return d + size(c);
  number_t b = a[(high - 1) * n + high], e = a[(high - 1) * n + high - 1];
  number_t half = (e - d) / 2, root = csqrt(half * half + b * c);
  number_t sum = half + root, difference = half - root;
  number_t larger = size(sum) > size(difference) ? sum : difference;
  return larger == 0 ? d : d - b * c / larger;
}

// One QR step on rows low to high: rotations that chase the bulge, applied to all of T and Q.
static void step(number_t* a, int64_t n, int64_t low, int64_t high, number_t shift, number_t* q) {
  number_t x = a[low * n + low] - shift, y = a[(low + 1) * n + low];
  for (int64_t k = low; k < high; ++k) {
    if (k > low) x = a[k * n + k - 1], y = a[(k + 1) * n + k - 1];
    double length = sqrt(square(x) + square(y));
    if (length == 0) continue;
    number_t c = x / length, s = y / length;
    number_t *upper = a + k * n, *lower = upper + n;
    for (int64_t j = k > low ? k - 1 : low; j < n; ++j) {
      number_t p = upper[j], r = lower[j];
      upper[j] = conj(c) * p + conj(s) * r;
      lower[j] = c * r - s * p;
    }
    if (k > low) lower[k - 1] = 0;
    int64_t last = k + 2 < high ? k + 2 : high;
    for (int m = 0; m < 2; ++m) {
      number_t* rows = m ? q : a;
      int64_t limit = m ? n : last + 1;
      for (int64_t i = 0; i < limit; ++i) {
        number_t p = rows[i * n + k], r = rows[i * n + k + 1];
        rows[i * n + k] = c * p + s * r;
        rows[i * n + k + 1] = conj(c) * r - conj(s) * p;
      }
    }
  }
}

bool rn_schur(double _Complex* a, int64_t n, double _Complex* q, double _Complex* work) {
  for (int64_t i = 0; i < n * n; ++i)
    if (!isfinite(creal(a[i])) || !isfinite(cimag(a[i]))) return false;
  to_hessenberg(a, n, q, work, work + n);
  int64_t high = n - 1;
  for (int steps = 0; high > 0;) {
    int64_t low = high;
    for (; low > 0; --low) {
      double near = size(a[(low - 1) * n + low - 1]) + size(a[low * n + low]);
      if (size(a[low * n + low - 1]) <= DBL_EPSILON * (near > 0 ? near : DBL_MIN)) {
        a[low * n + low - 1] = 0;
        break;
      }
    }
    if (low == high) {
      --high;
      steps = 0;
      continue;
    }
    if (++steps > 60) return false;
    step(a, n, low, high, shift_of(a, n, high, steps), q);
  }
  for (int64_t i = 1; i < n; ++i) memset(a + i * n, 0, (size_t)i * sizeof *a);
  return true;
}

void rn_schur_vectors(const double _Complex* t, const double _Complex* q, int64_t n,
                      double _Complex* v, double _Complex* work) {
  double norm = 0;
  for (int64_t i = 0; i < n * n; ++i) norm = fmax(norm, size(t[i]));
  double least = fmax(DBL_EPSILON * norm, DBL_MIN);
  for (int64_t k = 0; k < n; ++k) {
    // The vector of T, by back substitution.
    work[k] = 1;
    for (int64_t i = k - 1; i >= 0; --i) {
      number_t sum = t[i * n + k], gap = t[k * n + k] - t[i * n + i];
      for (int64_t j = i + 1; j < k; ++j) sum += t[i * n + j] * work[j];
      if (size(gap) < least) gap = least;  // equal eigenvalues
      work[i] = sum / gap;
    }
    double length = 0;
    for (int64_t i = 0; i < n; ++i) {
      number_t sum = 0;
      for (int64_t j = 0; j <= k; ++j) sum += q[i * n + j] * work[j];
      v[i * n + k] = sum;
      length += square(sum);
    }
    length = sqrt(length);
    for (int64_t i = 0; length > 0 && i < n; ++i) v[i * n + k] /= length;
  }
}

void rn_triangular_root(const double _Complex* t, int64_t n, double _Complex* root) {
  memset(root, 0, (size_t)(n * n) * sizeof *root);
  for (int64_t j = 0; j < n; ++j) {
    root[j * n + j] = csqrt(t[j * n + j]);
    for (int64_t i = j - 1; i >= 0; --i) {
      number_t sum = t[i * n + j];
      for (int64_t k = i + 1; k < j; ++k) sum -= root[i * n + k] * root[k * n + j];
      root[i * n + j] = sum / (root[i * n + i] + root[j * n + j]);
    }
  }
}

// The largest column sum of |X - I|.
static double distance(const number_t* x, int64_t n) {
  double most = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i <= j; ++i) sum += cabs(x[i * n + j] - (i == j));
    most = fmax(most, sum);
  }
  return most;
}

// Nodes and weights of the Gauss-Legendre formula with seven points on [0, 1].
static const double nodes[7][2] = {
    {0.025446043828620757, 0.06474248308443485}, {0.12923440720030278, 0.13985269574463833},
    {0.29707742431130142, 0.19091502525255947},  {0.5, 0.20897959183673469},
    {0.70292257568869858, 0.19091502525255947},  {0.87076559279969722, 0.13985269574463833},
    {0.97455395617137924, 0.06474248308443485},
};
// To this distance from I, seven points are exact to double precision (Higham, Functions of
// Matrices, table 11.1).
#define NEAR_IDENTITY 0.264

// out += weight X (I + node X)^-1 for a triangular X, column by column of the transposed system.
static void add_term(const number_t* x, int64_t n, const double* term, number_t* y, number_t* out) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i; j < n; ++j) {
      number_t sum = x[i * n + j];
      for (int64_t k = i; k < j; ++k) sum -= y[i * n + k] * term[0] * x[k * n + j];
      y[i * n + j] = sum / (1 + term[0] * x[j * n + j]);
      out[i * n + j] += term[1] * y[i * n + j];
    }
}

// The logarithm jumps at the negative real axis, so eigenvalues that rounding moved a little below
// it are put on it.
static void put_on_axis(number_t* t, int64_t n) {
  double norm = 0;
  for (int64_t i = 0; i < n; ++i) norm = fmax(norm, cabs(t[i * n + i]));
  for (int64_t i = 0; i < n; ++i) {
    number_t* x = &t[i * n + i];
    if (creal(*x) < 0 && fabs(cimag(*x)) <= 64 * DBL_EPSILON * norm) *x = creal(*x);
  }
}

// log T = 2^s log T^(1 / 2^s): the roots approach I, where the logarithm is the integral of
// X (I + u X)^-1 over u from 0 to 1.
void rn_triangular_logarithm(const double _Complex* t, int64_t n, double _Complex* out,
                             double _Complex* work) {
  size_t bytes = (size_t)(n * n) * sizeof *t;
  number_t *x = work, *root = x + n * n, *y = root + n * n;
  memcpy(x, t, bytes);
  put_on_axis(x, n);
  double factor = 1;
  for (int s = 0; s < 100 && distance(x, n) > NEAR_IDENTITY; ++s, factor *= 2) {
    rn_triangular_root(x, n, root);
    memcpy(x, root, bytes);
  }
  for (int64_t i = 0; i < n; ++i) x[i * n + i] -= 1;
  memset(out, 0, bytes);
  for (int i = 0; i < 7; ++i) add_term(x, n, nodes[i], y, out);
  for (int64_t i = 0; i < n * n; ++i) out[i] *= factor;
  memcpy(x, t, bytes);
  put_on_axis(x, n);
  for (int64_t i = 0; i < n; ++i) out[i * n + i] = clog(x[i * n + i]);
}

void rn_schur_back(const double _Complex* x, const double _Complex* q, int64_t n,
                   double _Complex* out, double _Complex* work) {
  memset(work, 0, (size_t)(n * n) * sizeof *work);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = k; j < n; ++j) work[i * n + j] += q[i * n + k] * x[k * n + j];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      number_t sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += work[i * n + k] * conj(q[j * n + k]);
      out[i * n + j] = sum;
    }
}
