// Eigenvalues of self-adjoint matrices. A template, see householder_body.h.

static void N(rotate)(const rn_linalg_fns_t* fns, T* x, T* y, double c, double s, int64_t n) {
  if (n > FEW) {
    fns->rotate(x, y, c, s, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    T old = y[i];
    y[i] = (R)s * x[i] + (R)c * old;
    x[i] = (R)c * x[i] - (R)s * old;
  }
}

static void N(swap)(T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T old = x[i];
    x[i] = y[i];
    y[i] = old;
  }
}

// Reduces the lower triangle of A to tridiagonal form in place: reflectors below the subdiagonal,
// which they leave real. |work| has 4 n numbers.
static void N(tridiagonal)(const rn_linalg_fns_t* fns, T* a, int64_t n, T* tau, T* work) {
  T *v = work, *w = v + n, *pair = w + n;
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] = RE(a[i * n + i]);
    for (int64_t j = 0; j < i; ++j) a[j * n + i] = CONJ(a[i * n + j]);
  }
  for (int64_t k = 0; k + 1 < n; ++k) {
    const int64_t first = k + 1, rest = n - first;
    T* corner = a + first * n + first;
    tau[k] = N(reflector)(a + first * n + k, n, rest);
    if (tau[k] == 0) continue;
    // A := (I - tau v v*) A (I - tau v v*)* = A - v w* - w v*.
    for (int64_t i = 0; i < rest; ++i) v[i] = i ? a[(first + i) * n + k] : 1;
    memset(w, 0, (size_t)rest * sizeof *w);
    N(minus)(fns, &(rn_subtract_t){w, v, corner, 0, 0, 1, n, 1, rest, rest, true});
    T along = 0;
    for (int64_t i = 0; i < rest; ++i) {
      w[i] = -CONJ(tau[k]) * CONJ(w[i]);
      along += CONJ(v[i]) * w[i];
    }
    along *= tau[k] / 2;
    for (int64_t i = 0; i < rest; ++i) {
      w[i] -= along * v[i];
      pair[i] = CONJ(w[i]);
      pair[n + i] = CONJ(v[i]);
    }
    N(minus)(fns, &(rn_subtract_t){corner, v, pair, n, 1, n, n, rest, rest, 2, false});
  }
}

// The eigenvalues of a tridiagonal matrix by implicit QL steps, applied to the rows of |qt| as well
// if that is not NULL. False if it does not converge, as with numbers that are not finite.
static bool N(diagonalise)(const rn_linalg_fns_t* fns, int64_t n, double* d, double* e, T* qt,
                           double epsilon) {
  double norm = 0;
  for (int64_t i = 0; i < n; ++i) norm = fmax(norm, fabs(d[i]) + fabs(e[i]));
  const double least = epsilon * norm * 1e-3;
  int64_t steps = 30 * n;
  for (int64_t low = 0; low < n; ++low) {
    for (;; --steps) {
      int64_t high = low;
      while (high + 1 < n && !(fabs(e[high]) <= least) &&
             !(fabs(e[high]) <= epsilon * (fabs(d[high]) + fabs(d[high + 1]))))
        ++high;
      if (high == low) break;
      if (steps == 0) return false;
      double g = (d[low + 1] - d[low]) / (2 * e[low]);
      g = d[high] - d[low] + e[low] / (g + copysign(hypot(g, 1), g));
      double s = 1, c = 1, shift = 0;
      int64_t i = high - 1;
      for (; i >= low; --i) {
        double f = s * e[i], b = c * e[i], r = sqrt(f * f + g * g);
        e[i + 1] = r;
        if (r == 0) {
          d[i + 1] -= shift;
          break;
        }
        s = f / r, c = g / r;
        g = d[i + 1] - shift;
        r = (d[i] - g) * s + 2 * c * b;
        shift = s * r;
        d[i + 1] = g + shift;
        g = c * r - b;
        if (qt) N(rotate)(fns, qt + i * n, qt + (i + 1) * n, c, s, n);
      }
      if (i < low) {
        d[low] -= shift;
        e[low] = g;
      }
      e[high] = 0;
    }
  }
  return true;
}

// Sorts the values, together with the rows of |rows| and |more| unless they are NULL; |sign| 1 for
// ascending, -1 for descending.
static void N(sort)(int64_t n, double* d, T* rows, int64_t width, T* more, int64_t more_width,
                    double sign) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (sign * d[j] < sign * d[best]) best = j;
    if (best == i) continue;
    double value = d[i];
    d[i] = d[best], d[best] = value;
    if (rows) N(swap)(rows + i * width, rows + best * width, width);
    if (more) N(swap)(more + i * more_width, more + best * more_width, more_width);
  }
}

// The eigenvalues |d| of |a|, ascending, and, if |wants_vectors|, the vectors as the rows of |a|.
// |d| has 2 n numbers, |q| n n, |tau| n, |block| BLOCK_SIZE.
static bool N(eigen)(const rn_linalg_fns_t* fns, T* a, int64_t n, double* d, T* q, T* tau, T* block,
                     bool wants_vectors, double epsilon) {
  double* e = d + n;
  N(tridiagonal)(fns, a, n, tau, block);
  for (int64_t i = 0; i < n; ++i) {
    d[i] = (double)RE(a[i * n + i]);
    e[i] = i + 1 < n ? (double)RE(a[(i + 1) * n + i]) : 0;
  }
  if (wants_vectors && n > 0) {
    // Q is 1 and, below it, the product of the reflectors.
    const int64_t rest = n - 1;
    N(form_q)(fns, a + n, rest, n, rest, tau, q, rest, block);
    memset(a, 0, (size_t)(n * n) * sizeof *a);
    a[0] = 1;
    for (int64_t i = 0; i < rest; ++i)
      for (int64_t j = 0; j < rest; ++j) a[(j + 1) * n + i + 1] = q[i * rest + j];
  }
  T* vectors = wants_vectors ? a : NULL;
  if (!N(diagonalise)(fns, n, d, e, vectors, epsilon)) return false;
  N(sort)(n, d, vectors, n, NULL, 0, 1);
  return true;
}
