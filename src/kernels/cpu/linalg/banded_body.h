// Solvers and products of banded matrices of one type. A template: banded.c includes it with T the
// type, N(name) its names, SIZE(x) the absolute value and CONJ(x) the conjugate. Right-hand sides
// are rows of |columns| numbers.

static void N(add_row)(T* restrict x, const T* restrict y, T factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] -= factor * y[i];
}

static void N(divide_row)(T* x, T by, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] /= by;
}

// Raises a pivot by multiples of |by| until no quotient overflows.
static void N(perturb)(T* pivot, const T* row, int64_t columns, double by, double least) {
  double most = 0;
  for (int64_t i = 0; i < columns; ++i) most = fmax(most, SIZE(row[i]));
  by = fmax(fabs(by), least);
  if (signbit(REAL(*pivot))) by = -by;
  while (SIZE(*pivot) < 1 && (SIZE(*pivot) == 0 || most * least > SIZE(*pivot))) {
    *pivot += (T)by;
    by *= 2;
  }
}

// Rows of U have up to three numbers, since a row exchange moves one more column in.
static bool N(eliminate)(const T* d, int64_t n, T* u, T* x, int64_t columns, bool perturbs) {
  const T *upper = d, *diagonal = d + n, *lower = d + 2 * n;
  u[0] = diagonal[0], u[1] = n > 1 ? upper[0] : 0, u[2] = 0;
  double scale = SIZE(u[0]) + SIZE(u[1]);
  for (int64_t i = 0; i + 1 < n; ++i) {
    T *a = u + 3 * i, *b = a + 3, *row = x + i * columns, *next = row + columns;
    T right = i + 2 < n ? upper[i + 1] : 0;
    double below = SIZE(lower[i + 1]);
    double next_scale = below + SIZE(diagonal[i + 1]) + SIZE(right);
    // Relative to the size of its row, as LAPACK compares where singular matrices are allowed.
    bool stays = perturbs ? below == 0 || (a[0] != 0 && below / next_scale <= SIZE(a[0]) / scale)
                          : SIZE(a[0]) >= below;
    if (stays) {
      if (a[0] == 0 && !perturbs) return false;
      T factor = below == 0 ? 0 : lower[i + 1] / a[0];
      b[0] = diagonal[i + 1] - factor * a[1];
      b[1] = right, b[2] = 0;
      N(add_row)(next, row, factor, columns);
      scale = next_scale;
    } else {
      T factor = a[0] / lower[i + 1];
      T first = a[1];
      a[0] = lower[i + 1], a[1] = diagonal[i + 1], a[2] = right;
      b[0] = first - factor * diagonal[i + 1];
      b[1] = -factor * right, b[2] = 0;
      for (int64_t j = 0; j < columns; ++j) {
        T old = row[j];
        row[j] = next[j];
        next[j] = old - factor * row[j];
      }
    }
  }
  return perturbs || u[3 * (n - 1)] != 0;
}

static bool N(solve_pivoting)(const T* d, int64_t n, T* u, T* x, int64_t columns, bool perturbs) {
  if (!N(eliminate)(d, n, u, x, columns, perturbs)) return false;
  double most = 0;
  for (int64_t i = 0; i < 3 * n; ++i) most = fmax(most, SIZE(u[i]));
  for (int64_t i = n - 1; i >= 0; --i) {
    T *row = x + i * columns, pivot = u[3 * i];
    if (i + 1 < n) N(add_row)(row, row + columns, u[3 * i + 1], columns);
    if (i + 2 < n) N(add_row)(row, row + 2 * columns, u[3 * i + 2], columns);
    if (perturbs) N(perturb)(&pivot, row, columns, EPSILON * most, LEAST);
    N(divide_row)(row, pivot, columns);
  }
  return true;
}

// Thomas: elimination without row exchanges.
static bool N(solve_plain)(const T* d, int64_t n, T* u, T* x, int64_t columns) {
  const T *upper = d, *diagonal = d + n, *lower = d + 2 * n;
  T pivot = diagonal[0];
  for (int64_t i = 0; i < n; ++i) {
    T* row = x + i * columns;
    if (i) {
      pivot = diagonal[i] - lower[i] * u[i - 1];
      N(add_row)(row, row - columns, lower[i], columns);
    }
    if (pivot == 0) return false;
    u[i] = upper[i] / pivot;
    N(divide_row)(row, pivot, columns);
  }
  for (int64_t i = n - 2; i >= 0; --i)
    N(add_row)(x + i * columns, x + (i + 1) * columns, u[i], columns);
  return true;
}

static void N(tridiagonal_solve)(const banded_job_t* job, int64_t i) {
  int64_t n = job->n, columns = job->columns;
  const T* d = (const T*)job->a[0] + i * 3 * n;
  T *x = (T*)job->out + i * n * columns, *u = (T*)job->temp + i * 3 * n;
  memcpy(x, (const T*)job->b + i * n * columns, (size_t)(n * columns) * sizeof *x);
  bool is_regular = job->pivots ? N(solve_pivoting)(d, n, u, x, columns, job->perturbs)
                                : N(solve_plain)(d, n, u, x, columns);
  for (int64_t k = 0; !is_regular && k < n * columns; ++k) x[k] = (T)NAN;
}

static void N(tridiagonal_multiply)(const banded_job_t* job, int64_t i) {
  int64_t n = job->n, columns = job->columns;
  const T *upper = (const T*)job->a[0] + i * n, *diagonal = (const T*)job->a[1] + i * n;
  const T *lower = (const T*)job->a[2] + i * n, *x = (const T*)job->b + i * n * columns;
  T* y = (T*)job->out + i * n * columns;
  for (int64_t r = 0; r < n; ++r, x += columns, y += columns) {
    for (int64_t j = 0; j < columns; ++j) y[j] = diagonal[r] * x[j];
    if (r + 1 < n) N(add_row)(y, x + columns, -upper[r], columns);
    if (r) N(add_row)(y, x - columns, -lower[r], columns);
  }
}

// Row b of the bands holds the elements b below the diagonal of a lower matrix; of an upper one,
// bands - 1 - b above it. Element (r, c) is in column r.
static void N(banded_solve)(const banded_job_t* job, int64_t i) {
  int64_t n = job->n, columns = job->columns, bands = job->bands;
  const T* a = (const T*)job->a[0] + (job->a_index ? job->a_index[i] : i) * bands * n;
  T* x = (T*)job->out + i * n * columns;
  int64_t from = job->b_index ? job->b_index[i] : i;
  memcpy(x, (const T*)job->b + from * n * columns, (size_t)(n * columns) * sizeof *x);
  bool is_adjoint = job->is_adjoint, goes_down = job->is_lower != is_adjoint;
  for (int64_t s = 0; s < n; ++s) {
    int64_t r = goes_down ? s : n - 1 - s;
    T* row = x + r * columns;
    for (int64_t b = 1; b < bands; ++b) {
      int64_t c = goes_down ? r - b : r + b;
      if (c < 0 || c >= n) break;
      int64_t band = job->is_lower ? b : bands - 1 - b;
      T factor = is_adjoint ? CONJ(a[band * n + c]) : a[band * n + r];
      N(add_row)(row, x + c * columns, factor, columns);
    }
    T pivot = a[(job->is_lower ? 0 : bands - 1) * n + r];
    N(divide_row)(row, is_adjoint ? CONJ(pivot) : pivot, columns);
  }
}

// As stock finds the least pivot: a NaN hides those behind it only if it comes first.
static bool N(has_no_pivot)(const void* pivots, int64_t count) {
  const T* a = pivots;
  for (int64_t i = 0; i < count; ++i)
    if (a[i] == 0) return true;
  return a[0] != a[0];
}
