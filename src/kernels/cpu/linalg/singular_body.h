// Singular values. A template, see householder_body.h.
//
// A = U B V* with B bidiagonal and real (Golub and Kahan, 1965), then QR steps with shifts on B
// that rotate the columns of U and V (Golub and Reinsch, 1970).

// Reduces A, m x n with m >= n, to its diagonal and superdiagonal; the reflectors of U are left
// below the diagonal, those of V right of the superdiagonal. |work| has 2 m + n numbers.
static void N(bidiagonal)(const rn_linalg_fns_t* fns, T* a, int64_t m, int64_t n, T* left, T* right,
                          T* work) {
  T *u = work, *y = u + n;
  for (int64_t k = 0; k < n; ++k) {
    T* x = a + k * n + k;
    const int64_t below = m - k - 1, rest = n - k - 1;
    left[k] = N(reflector)(x, n, m - k);
    N(reflect)(fns, x, n, m - k, left[k], x + 1, n, rest, work);
    right[k] = 0;
    if (rest == 0) continue;
    for (int64_t j = 1; j <= rest; ++j) x[j] = CONJ(x[j]);
    right[k] = N(reflector)(x + 1, 1, rest);
    if (right[k] == 0) continue;
    // C := C (I - conj(tau) u u*) below the row.
    T* c = a + (k + 1) * n + k + 1;
    for (int64_t j = 0; j < rest; ++j) u[j] = j ? x[j + 1] : 1;
    fns->dots(c, n, u, below, rest, y);
    for (int64_t i = 0; i < below; ++i) y[i] *= CONJ(right[k]);
    for (int64_t j = 0; j < rest; ++j) u[j] = CONJ(u[j]);
    N(minus)(fns, &(rn_subtract_t){c, y, u, n, 1, 1, 0, below, rest, 1, false});
  }
}

// What the QR steps change: the bidiagonal matrix, and vectors as rows, NULL if not wanted.
#define TURN(rows, length, i, j, c, s) \
  if (rows) N(rotate)(fns, (rows) + (i) * (length), (rows) + (j) * (length), c, -(s), length)

// Chases the entry right of a zero d[end - 1] up to row |from|.
static void N(clear_column)(const rn_linalg_fns_t* fns, double* d, double* e, int64_t from,
                            int64_t end, T* vt, int64_t n) {
  double f = e[end - 2];
  e[end - 2] = 0;
  for (int64_t j = end - 2; j >= from; --j) {
    double r = hypot(d[j], f), c = d[j] / r, s = f / r;
    d[j] = r;
    if (j > from) {
      f = -s * e[j - 1];
      e[j - 1] *= c;
    }
    TURN(vt, n, j, end - 1, c, s);
  }
}

// Chases the entry right of a zero d[at] out of the matrix that ends at |end|.
static void N(clear_row)(const rn_linalg_fns_t* fns, double* d, double* e, int64_t at, int64_t end,
                         T* ut, int64_t m) {
  double f = e[at];
  e[at] = 0;
  for (int64_t j = at + 1; j < end; ++j) {
    double r = hypot(d[j], f), c = d[j] / r, s = f / r;
    d[j] = r;
    if (j + 1 < end) {
      f = -s * e[j];
      e[j] *= c;
    }
    TURN(ut, m, j, at, c, s);
  }
}

// The shift of a QR step: the eigenvalue of the last 2 x 2 matrix of B* B that is nearer to its
// end.
static double N(shift_of)(const double* d, const double* e, int64_t from, int64_t end) {
  double scale = fmax(fmax(fabs(d[end - 1]), fabs(d[end - 2])),
                      fmax(fabs(e[end - 2]), fmax(fabs(d[from]), fabs(e[from]))));
  double last = d[end - 1] / scale, before = d[end - 2] / scale, side = e[end - 2] / scale;
  double b = ((before + last) * (before - last) + side * side) / 2, c = last * side * (last * side);
  double shift = 0;
  if (b != 0 || c != 0) shift = c / (b + copysign(sqrt(b * b + c), b));
  double first = d[from] / scale;
  return (first + last) * (first - last) + shift;
}

static void N(qr_step)(const rn_linalg_fns_t* fns, double* d, double* e, int64_t from, int64_t end,
                       T* ut, int64_t m, T* vt, int64_t n) {
  double scale = fmax(fmax(fabs(d[end - 1]), fabs(d[end - 2])),
                      fmax(fabs(e[end - 2]), fmax(fabs(d[from]), fabs(e[from]))));
  double f = N(shift_of)(d, e, from, end), g = d[from] / scale * (e[from] / scale);
  for (int64_t j = from; j + 1 < end; ++j) {
    double r = hypot(f, g), c = r > 0 ? f / r : 1, s = r > 0 ? g / r : 0;
    if (j > from) e[j - 1] = r;
    f = c * d[j] + s * e[j];
    e[j] = c * e[j] - s * d[j];
    g = s * d[j + 1];
    d[j + 1] *= c;
    TURN(vt, n, j, j + 1, c, s);
    r = hypot(f, g), c = r > 0 ? f / r : 1, s = r > 0 ? g / r : 0;
    d[j] = r;
    f = c * e[j] + s * d[j + 1];
    d[j + 1] = c * d[j + 1] - s * e[j];
    if (j + 2 < end) {
      g = s * e[j + 1];
      e[j + 1] *= c;
    }
    TURN(ut, m, j, j + 1, c, s);
  }
  e[end - 2] = f;
}

// Makes the superdiagonal of B zero. False if it does not converge.
static bool N(diagonalise_pair)(const rn_linalg_fns_t* fns, int64_t n, double* d, double* e, T* ut,
                                int64_t m, T* vt, double epsilon) {
  double norm = 0;
  for (int64_t i = 0; i < n; ++i) norm = fmax(norm, fabs(d[i]) + (i + 1 < n ? fabs(e[i]) : 0));
  const double least = epsilon * norm * 1e-3;
  int steps = 0;
  for (int64_t end = n; end > 1;) {
    int64_t from = end - 1;
    while (from > 0 && fabs(e[from - 1]) > epsilon * (fabs(d[from - 1]) + fabs(d[from])) &&
           fabs(e[from - 1]) > least)
      --from;
    if (from > 0) e[from - 1] = 0;
    if (from == end - 1) {
      --end;
      steps = 0;
      continue;
    }
    if (++steps > 60) return false;
    int64_t zero = end - 1;
    while (zero >= from && fabs(d[zero]) > least) --zero;
    if (zero == end - 1) {
      d[zero] = 0;
      N(clear_column)(fns, d, e, from, end, vt, n);
    } else if (zero >= from) {
      d[zero] = 0;
      N(clear_row)(fns, d, e, zero, end, ut, m);
    } else {
      N(qr_step)(fns, d, e, from, end, ut, m, vt, n);
    }
  }
  return true;
}
#undef TURN

// xt = x transposed, for x of m rows and n columns.
static void N(transpose)(const T* x, int64_t m, int64_t n, T* xt) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) xt[j * m + i] = x[i * n + j];
}

// The singular values |d| of A, m x n with m >= n, descending. If |width| is not 0, row i of |ut|,
// of |width|, is a left singular vector, and row i of |vt| a right one. |d| has 2 n numbers,
// |q| m max(width, n), |left| and |right| n, |block| BLOCK_SIZE.
static bool N(singular)(const rn_linalg_fns_t* fns, T* a, int64_t m, int64_t n, int64_t width,
                        double* d, T* ut, T* vt, T* q, T* left, T* right, T* block,
                        double epsilon) {
  double* e = d + n;
  N(bidiagonal)(fns, a, m, n, left, right, block);
  for (int64_t i = 0; i < n; ++i) {
    d[i] = (double)RE(a[i * n + i]);
    e[i] = i + 1 < n ? (double)RE(a[i * n + i + 1]) : 0;
  }
  if (width > 0) {
    N(form_q)(fns, a, m, n, n, left, q, width, block);
    N(transpose)(q, m, width, ut);
  }
  if (width > 0 && n > 0) {
    // The reflectors of V as columns, and V as 1 and, below it, their product.
    const int64_t rest = n - 1;
    N(transpose)(a, n, n, vt);
    N(form_q)(fns, vt + n, rest, n, rest, right, q, rest, block);
    memset(vt, 0, (size_t)(n * n) * sizeof *vt);
    vt[0] = 1;
    for (int64_t i = 0; i < rest; ++i)
      for (int64_t j = 0; j < rest; ++j) vt[(j + 1) * n + i + 1] = q[i * rest + j];
  }
  ut = width > 0 ? ut : NULL, vt = width > 0 ? vt : NULL;
  if (!N(diagonalise_pair)(fns, n, d, e, ut, m, vt, epsilon)) return false;
  for (int64_t i = 0; i < n; ++i) {
    if (d[i] >= 0) continue;
    d[i] = -d[i];
    for (int64_t j = 0; vt && j < n; ++j) vt[i * n + j] = -vt[i * n + j];
  }
  N(sort)(n, d, ut, m, vt, n, -1);
  return true;
}
