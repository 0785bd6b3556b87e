// Decompositions of one matrix in double precision. A template: decompose.c includes it for real
// and for complex numbers, with T the type and N(name) its names. Matrices are row-major.

static void N(swap)(T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T old = x[i];
    x[i] = y[i];
    y[i] = old;
  }
}

// C := (I - tau v v*) C for C of m rows. The first element of v is 1; the others are a column with
// stride n.
static void N(reflect)(const T* v, int64_t n, int64_t m, T tau, T* c, int64_t width,
                       int64_t columns, T* work) {
  if (tau == 0 || columns <= 0) return;
  memcpy(work, c, (size_t)columns * sizeof *work);
  for (int64_t i = 1; i < m; ++i)
    for (int64_t j = 0; j < columns; ++j) work[j] += CONJ(v[i * n]) * c[i * width + j];
  for (int64_t i = 0; i < m; ++i) {
    T scale = tau * (i ? v[i * n] : 1);
    for (int64_t j = 0; j < columns; ++j) c[i * width + j] -= scale * work[j];
  }
}

// A = Q R: R goes above the diagonal, the reflectors I - tau v v* below it; the first element of v,
// a 1, is not stored. The sign of each diagonal element of R is opposite to that of the original,
// as in stock.
static void N(qr)(T* a, int64_t m, int64_t n, T* tau, T* work) {
  for (int64_t k = 0; k < n && k < m; ++k) {
    T first = a[k * n + k];
    double tail = 0;
    for (int64_t i = k + 1; i < m; ++i) tail += SQUARE(a[i * n + k]);
    double beta = RE(first);
    tau[k] = 0;
    if (tail > DBL_MIN || SQUARE(first) - beta * beta > DBL_MIN) {
      beta = sqrt(SQUARE(first) + tail);
      if (RE(first) >= 0) beta = -beta;
      tau[k] = CONJ((beta - first) / beta);
    }
    for (int64_t i = k + 1; i < m; ++i)
      a[i * n + k] = tau[k] != 0 ? a[i * n + k] / (first - beta) : 0;
    a[k * n + k] = beta;
    N(reflect)(a + k * n + k, n, m - k, tau[k], a + k * n + k + 1, n, n - k - 1, work);
  }
}

// The first |width| columns of Q, as m x width, from the first |count| reflectors.
static void N(form_q)(const T* a, int64_t m, int64_t n, int64_t count, const T* tau, T* q,
                      int64_t width, T* work) {
  memset(q, 0, (size_t)(m * width) * sizeof *q);
  for (int64_t i = 0; i < m && i < width; ++i) q[i * width + i] = 1;
  for (int64_t k = count - 1; k >= 0; --k)
    N(reflect)(a + k * n + k, n, m - k, CONJ(tau[k]), q + k * width, width, width, work);
}

// x -= scale y, for rows.
static void N(subtract)(T* x, const T* y, T scale, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] -= scale * y[i];
}

// Reduces the lower triangle of Hermitian A to tridiagonal form: diagonal d, off-diagonal e, both
// real; row j of |qt| is column j of Q, A = Q T Q*.
static void N(tridiagonal)(T* a, int64_t n, double* d, double* e, T* qt, T* v, T* w) {
  memset(qt, 0, (size_t)(n * n) * sizeof *qt);
  for (int64_t i = 0; i < n; ++i) {
    qt[i * n + i] = 1;
    a[i * n + i] = RE(a[i * n + i]);
    for (int64_t j = 0; j < i; ++j) a[j * n + i] = CONJ(a[i * n + j]);
  }
  for (int64_t k = 0; k + 2 < n; ++k) {
    double tail = 0, whole;
    for (int64_t i = k + 2; i < n; ++i) tail += SQUARE(a[i * n + k]);
    if (tail == 0) continue;
    T first = a[(k + 1) * n + k];
    whole = sqrt(SQUARE(first) + tail);
    double size = sqrt(SQUARE(first));
    T phase = size > 0 ? first / size : 1;
    for (int64_t i = k + 1; i < n; ++i) v[i] = a[i * n + k];
    v[k + 1] += phase * whole;
    double beta = 1 / (whole * (whole + size));
    a[(k + 1) * n + k] = -phase * whole;
    T along = 0;
    for (int64_t i = k + 1; i < n; ++i) {
      T sum = 0;
      for (int64_t j = k + 1; j < n; ++j) sum += a[i * n + j] * v[j];
      w[i] = beta * sum;
      along += CONJ(v[i]) * w[i];
    }
    N(subtract)(w + k + 1, v + k + 1, beta / 2 * RE(along), n - k - 1);
    for (int64_t i = k + 1; i < n; ++i)
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= v[i] * CONJ(w[j]) + w[i] * CONJ(v[j]);
    memset(w, 0, (size_t)n * sizeof *w);
    for (int64_t j = k + 1; j < n; ++j) N(subtract)(w, qt + j * n, -beta * v[j], n);
    for (int64_t j = k + 1; j < n; ++j) N(subtract)(qt + j * n, w, CONJ(v[j]), n);
  }
  T phase = 1;
  for (int64_t i = 0; i < n; ++i) {
    d[i] = RE(a[i * n + i]);
    for (int64_t r = 0; r < n; ++r) qt[i * n + r] *= phase;
    T next = i + 1 < n ? a[(i + 1) * n + i] : 0;
    e[i] = sqrt(SQUARE(next));
    if (e[i] > 0) phase *= next / e[i];
  }
}

static void N(rotate)(T* x, T* y, double c, double s, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T old = y[i];
    y[i] = s * x[i] + c * old;
    x[i] = c * x[i] - s * old;
  }
}

// The eigenvalues of a tridiagonal matrix by implicit QL steps, applied to the rows of |qt| as
// well. False if it does not converge, as with numbers that are not finite.
static bool N(diagonalise)(int64_t n, double* d, double* e, T* qt) {
  for (int64_t low = 0; low < n; ++low) {
    for (int steps = 0;; ++steps) {
      int64_t high = low;
      while (high + 1 < n && !(fabs(e[high]) <= DBL_EPSILON * (fabs(d[high]) + fabs(d[high + 1]))))
        ++high;
      if (high == low) break;
      if (steps == 60) return false;
      double g = (d[low + 1] - d[low]) / (2 * e[low]);
      g = d[high] - d[low] + e[low] / (g + copysign(hypot(g, 1), g));
      double s = 1, c = 1, shift = 0;
      int64_t i = high - 1;
      for (; i >= low; --i) {
        double f = s * e[i], b = c * e[i], r = hypot(f, g);
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
        N(rotate)(qt + i * n, qt + (i + 1) * n, c, s, n);
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

// Sorts the values, together with the rows; |sign| 1 for ascending, -1 for descending.
static void N(sort)(int64_t n, double* d, T* rows, int64_t width, T* more, int64_t more_width,
                    double sign) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (sign * d[j] < sign * d[best]) best = j;
    if (best == i) continue;
    double value = d[i];
    d[i] = d[best], d[best] = value;
    N(swap)(rows + i * width, rows + best * width, width);
    if (more) N(swap)(more + i * more_width, more + best * more_width, more_width);
  }
}

static bool N(eigen)(T* a, int64_t n, double* d, double* e, T* qt, T* work) {
  N(tridiagonal)(a, n, d, e, qt, work, work + n);
  if (!N(diagonalise)(n, d, e, qt)) return false;
  N(sort)(n, d, qt, n, NULL, 0, 1);
  return true;
}

// Rotates rows p and q of |b| until they are orthogonal, and those of |v| likewise. False if they
// already were.
static bool N(separate)(T* p, T* q, int64_t m, T* vp, T* vq, int64_t n, double tolerance) {
  double alpha = 0, beta = 0;
  T gamma = 0;
  for (int64_t i = 0; i < m; ++i) {
    alpha += SQUARE(p[i]);
    beta += SQUARE(q[i]);
    gamma += CONJ(p[i]) * q[i];
  }
  double size = sqrt(SQUARE(gamma));
  if (!(size > tolerance * sqrt(alpha) * sqrt(beta)) || size < DBL_MIN) return false;
  T phase = gamma / size;
  double zeta = (beta - alpha) / (2 * size);
  double t = copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
  double c = 1 / sqrt(1 + t * t), s = c * t;
  for (int pass = 0; pass < 2; ++pass) {
    T *x = pass ? vp : p, *y = pass ? vq : q;
    for (int64_t i = 0; i < (pass ? n : m); ++i) {
      T old = x[i];
      x[i] = c * old - s * CONJ(phase) * y[i];
      y[i] = s * phase * old + c * y[i];
    }
  }
  return true;
}

// Singular values of a tall matrix, descending. On input row j of |bt| is its column j, on output
// the left singular vector; row j of |vt| is the right one. The eigenvectors of A* A are a good
// start; rotating pairs of columns of A V until all are orthogonal gives full precision.
static bool N(singular)(T* bt, T* vt, T* gram, T* copy, int64_t m, int64_t n, double* s, double* e,
                        T* work, double tolerance) {
  memcpy(copy, bt, (size_t)(m * n) * sizeof *copy);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t k = 0; k <= j; ++k) {
      T sum = 0;
      for (int64_t i = 0; i < m; ++i) sum += CONJ(copy[j * m + i]) * copy[k * m + i];
      gram[j * n + k] = sum;
    }
  if (!N(eigen)(gram, n, s, e, vt, work)) return false;
  for (int64_t k = 0; k < n; ++k) {
    memset(bt + k * m, 0, (size_t)m * sizeof *bt);
    for (int64_t j = 0; j < n; ++j) N(subtract)(bt + k * m, copy + j * m, -vt[k * n + j], m);
  }
  bool is_moving = true;
  for (int sweep = 0; is_moving && sweep < 30; ++sweep) {
    is_moving = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q)
        is_moving |= N(separate)(bt + p * m, bt + q * m, m, vt + p * n, vt + q * n, n, tolerance);
  }
  for (int64_t k = 0; k < n; ++k) {
    double sum = 0;
    for (int64_t i = 0; i < m; ++i) sum += SQUARE(bt[k * m + i]);
    s[k] = sqrt(sum);
  }
  N(sort)(n, s, bt, m, vt, n, -1);
  return true;
}

// U, m x width, from the rows of |bt|; directions without a singular value are chosen freely.
static void N(form_u)(const T* bt, int64_t m, int64_t n, const double* s, T* u, int64_t width,
                      T* reflectors, T* tau, T* work) {
  int64_t rank = 0;
  while (rank < n && s[rank] > DBL_EPSILON * (double)m * s[0]) ++rank;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t k = 0; k < rank; ++k) reflectors[i * rank + k] = bt[k * m + i] / s[k];
  if (rank < width) {
    N(qr)(reflectors, m, rank, tau, work);
    N(form_q)(reflectors, m, rank, rank, tau, u, width, work);
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t k = 0; k < rank; ++k) u[i * width + k] = bt[k * m + i] / s[k];
}

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
      N(swap)(a + k * n, a + best * n, n);
      sign = -sign;
    }
    if (a[k * n + k] == 0) {
      *out_sign = 0;
      return -(double)INFINITY;
    }
    sum += N(log_pivot)(a[k * n + k], &sign);
    for (int64_t i = k + 1; i < n; ++i)
      N(subtract)(a + i * n + k + 1, a + k * n + k + 1, a[i * n + k] / a[k * n + k], n - k - 1);
  }
  *out_sign = sign;
  return sum;
}

static void N(load)(const decompose_job_t* job, int64_t index, T* x) {
  int64_t count = job->m * job->n;
  for (int64_t i = 0; i < count; ++i) x[i] = LOAD(job, index * count + i);
}

static void N(store)(const decompose_job_t* job, int output, int64_t at, T value) {
  STORE(job, output, at, value);
}

static void N(store_all)(const decompose_job_t* job, int output, int64_t index, const T* x,
                         int64_t count) {
  for (int64_t i = 0; i < count; ++i) N(store)(job, output, index * count + i, x[i]);
}

// Stores the rows of |xt| as columns, from element |first| on.
static void N(store_columns)(const decompose_job_t* job, int output, int64_t first, const T* xt,
                             int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k) N(store)(job, output, first + i * n + k, xt[k * n + i]);
}

static bool N(run_qr)(const decompose_job_t* job, int64_t index, T* a) {
  int64_t m = job->m, n = job->n, least = m < n ? m : n, width = job->is_full ? m : least;
  T *q = a + m * n, *tau = q + m * width, *work = tau + least;
  N(qr)(a, m, n, tau, work);
  N(form_q)(a, m, n, least, tau, q, width, work);
  N(store_all)(job, 0, index, q, m * width);
  for (int64_t i = 0; i < width; ++i)
    for (int64_t j = 0; j < n; ++j)
      N(store)(job, 1, (index * width + i) * n + j, j < i ? 0 : a[i * n + j]);
  return true;
}

static bool N(run_eigen)(const decompose_job_t* job, int64_t index, T* a) {
  int64_t n = job->n;
  T *qt = a + n * n, *work = qt + n * n;
  double *d = (double*)(work + 2 * n), *e = d + n;
  if (!N(eigen)(a, n, d, e, qt, work)) return false;
  const bool is_stacked = job->work == STACKED;
  const int64_t values = index * (is_stacked ? (n + 1) * n : n);
  for (int64_t i = 0; i < n; ++i) N(store)(job, 0, values + i, d[i]);
  if (is_stacked) N(store_columns)(job, 0, values + n, qt, n);
  if (job->wants_vectors) N(store_columns)(job, 1, index * n * n, qt, n);
  return true;
}

static bool N(run_singular)(const decompose_job_t* job, int64_t index, T* a) {
  bool is_tall = job->m >= job->n;
  int64_t m = is_tall ? job->m : job->n, n = is_tall ? job->n : job->m;
  int64_t width = job->is_full ? m : n, long_side = is_tall ? 1 : 2;
  T *bt = a + m * n, *vt = bt + m * n, *gram = vt + n * n, *u = gram + n * n;
  T *work = u + (job->wants_vectors ? m * width : 0), *tau = work + m + n;
  double *s = (double*)(tau + n), *e = s + n, scale = 0;
  bool is_finite = true;
  for (int64_t i = 0; i < m * n; ++i) {
    double size = SIZE(a[i]);
    is_finite = is_finite && isfinite(size);
    if (size > scale) scale = size;
  }
  if (scale == 0) scale = 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      bt[j * m + i] = (is_tall ? a[i * n + j] : CONJ(a[j * m + i])) / scale;
  is_finite = is_finite && N(singular)(bt, vt, gram, a, m, n, s, e, work, job->tolerance);
  for (int64_t i = 0; i < n; ++i)
    N(store)(job, 0, index * n + i, is_finite ? s[i] * scale : (double)NAN);
  if (!job->wants_vectors) return true;
  if (is_finite) {
    N(form_u)(bt, m, n, s, u, width, a, tau, work);
  } else {
    for (int64_t i = 0; i < m * width; ++i) u[i] = (double)NAN;
    for (int64_t i = 0; i < n * n; ++i) vt[i] = (double)NAN;
  }
  N(store_all)(job, (int)long_side, index, u, m * width);
  N(store_columns)(job, 3 - (int)long_side, index * n * n, vt, n);
  return true;
}

static bool N(run_determinant)(const decompose_job_t* job, int64_t index, T* a) {
  T sign;
  double log_size = N(log_determinant)(a, job->n, &sign);
  N(store)(job, 0, index, sign);
  N(store)(job, 1, index, log_size);
  return true;
}

static bool N(run)(const decompose_job_t* job, int64_t index) {
  T* a = job->scratch;
  N(load)(job, index, a);
  switch (job->work) {
    case QR:
      return N(run_qr)(job, index, a);
    case EIGEN:
    case STACKED:
      return N(run_eigen)(job, index, a);
    case SINGULAR:
      return N(run_singular)(job, index, a);
    case DETERMINANT:
      return N(run_determinant)(job, index, a);
  }
  return false;
}
