// Reflectors I - tau v v*, alone and in blocks, and QR. A template: decompose.c includes it per
// type, with T the type and N(name) its names. Matrices are row-major.
//
// The first element of v, a 1, is not stored. A block of reflectors is I - V S V*, with S upper
// triangular (Schreiber and Van Loan, 1989): products of matrices instead of one row at a time.

// C -= A B. Small products are not worth a call.
static void N(minus)(const rn_linalg_fns_t* fns, const rn_subtract_t* p) {
  if (p->m <= 0 || p->n <= 0 || p->k <= 0) return;
  if (p->m * p->n * p->k > SMALL_PRODUCT) {
    fns->subtract(p);
    return;
  }
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t k = 0; k < p->k; ++k) {
      T a = ((const T*)p->a)[i * p->a_row + k * p->a_column];
      if (p->conjugate_a) a = CONJ(a);
      for (int64_t j = 0; j < p->n; ++j)
        ((T*)p->c)[i * p->c_row + j] -= a * ((const T*)p->b)[k * p->b_row + j];
    }
}

// C := (I - tau v v*) C for C of m rows; the elements of v after the first are |stride| apart.
static void N(reflect)(const rn_linalg_fns_t* fns, const T* v, int64_t stride, int64_t m, T tau,
                       T* c, int64_t width, int64_t columns, T* work) {
  if (tau == 0 || columns <= 0) return;
  const T* tail = v + stride;
  for (int64_t j = 0; j < columns; ++j) work[j] = -c[j];
  N(minus)
  (fns, &(rn_subtract_t){work, tail, c + width, 0, 0, stride, width, 1, columns, m - 1, true});
  for (int64_t j = 0; j < columns; ++j) {
    work[j] *= -tau;
    c[j] -= work[j];
  }
  N(minus)
  (fns, &(rn_subtract_t){c + width, tail, work, width, stride, 1, 0, m - 1, columns, 1, false});
}

// The reflector that turns a column of m elements, |stride| apart, into beta and zeros: beta, which
// is real, replaces the first element, the rest of v the others. The sign of beta is opposite to
// that of the first element, as in stock.
static T N(reflector)(T* x, int64_t stride, int64_t m) {
  T first = x[0], tau = 0;
  double tail = 0, beta = (double)RE(first);
  for (int64_t i = 1; i < m; ++i) tail += (double)SQUARE(x[i * stride]);
  double size = (double)SQUARE(first);
  if (tail > DBL_MIN || size - beta * beta > DBL_MIN) {
    beta = sqrt(size + tail);
    if (RE(first) >= 0) beta = -beta;
    tau = CONJ(((T)beta - first) / (T)beta);
  }
  T scale = tau != 0 ? 1 / (first - (T)beta) : 0;
  for (int64_t i = 1; i < m; ++i) x[i * stride] *= scale;
  x[0] = (T)beta;
  return tau;
}

// Reflectors [from, from + count) of |a|, which has rows of n numbers and m rows: V, and S behind
// it. They are those of Q, the adjoints of what was applied to the matrix.
static void N(make_block)(const T* a, int64_t m, int64_t n, int64_t from, int64_t count,
                          const T* tau, T* v) {
  const int64_t height = m - from;
  T *s = v + height * count, z[PANEL];
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < count; ++j)
      v[i * count + j] = i < j ? 0 : i == j ? 1 : a[(from + i) * n + from + j];
  for (int64_t j = 0; j < count; ++j) {
    const T factor = CONJ(tau[from + j]);
    for (int64_t p = 0; p < j; ++p) z[p] = 0;
    for (int64_t i = j; i < height; ++i)
      for (int64_t p = 0; p < j; ++p) z[p] += CONJ(v[i * count + p]) * v[i * count + j];
    for (int64_t p = 0; p < count; ++p) {
      T sum = 0;
      for (int64_t q = p; q < j; ++q) sum += s[p * count + q] * z[q];
      s[p * count + j] = p < j ? -factor * sum : p == j ? factor : 0;
    }
  }
}

// C := (I - V S V*) C, or with the adjoint of S. |block| is V and S, with room for two more
// matrices of |count| x |columns|.
static void N(apply_block)(const rn_linalg_fns_t* fns, T* block, int64_t height, int64_t count,
                           bool is_adjoint, T* c, int64_t width, int64_t columns) {
  T *v = block, *s = v + height * count, *x = s + count * count, *y = x + count * columns;
  memset(x, 0, (size_t)(2 * count * columns) * sizeof *x);
  N(minus)(fns, &(rn_subtract_t){x, v, c, columns, 1, count, width, count, columns, height, true});
  N(minus)
  (fns, &(rn_subtract_t){y, s, x, columns, is_adjoint ? 1 : count, is_adjoint ? count : 1, columns,
                         count, columns, count, is_adjoint});
  N(minus)(fns, &(rn_subtract_t){c, v, y, width, count, 1, columns, height, columns, count, false});
}

// A = Q R: R goes above the diagonal, the reflectors below it. |block| has BLOCK_SIZE numbers.
static void N(qr)(const rn_linalg_fns_t* fns, T* a, int64_t m, int64_t n, T* tau, T* block) {
  const int64_t least = m < n ? m : n;
  for (int64_t from = 0; from < least; from += PANEL) {
    const int64_t to = from + PANEL < least ? from + PANEL : least;
    const int64_t end = n - to < FEW ? n : to;  // a few columns are not worth a block
    for (int64_t k = from; k < to; ++k) {
      T* x = a + k * n + k;
      tau[k] = N(reflector)(x, n, m - k);
      N(reflect)(fns, x, n, m - k, tau[k], x + 1, n, end - k - 1, block);
    }
    if (end == n) continue;
    N(make_block)(a, m, n, from, to - from, tau, block);
    N(apply_block)(fns, block, m - from, to - from, true, a + from * n + to, n, n - to);
  }
}

// The first |width| columns of Q, as m x width, from the first |count| reflectors of |a|, which has
// rows of n numbers.
static void N(form_q)(const rn_linalg_fns_t* fns, const T* a, int64_t m, int64_t n, int64_t count,
                      const T* tau, T* q, int64_t width, T* block) {
  memset(q, 0, (size_t)(m * width) * sizeof *q);
  for (int64_t i = 0; i < m && i < width; ++i) q[i * width + i] = 1;
  for (int64_t from = (count - 1) / PANEL * PANEL; count > 0 && from >= 0; from -= PANEL) {
    const int64_t some = count - from < PANEL ? count - from : PANEL;
    T* corner = q + from * width + from;
    if (some > FEW) {
      N(make_block)(a, m, n, from, some, tau, block);
      N(apply_block)(fns, block, m - from, some, false, corner, width, width - from);
      continue;
    }
    for (int64_t k = from + some - 1; k >= from; --k) N(reflect)
    (fns, a + k * n + k, n, m - k, CONJ(tau[k]), q + k * width + k, width, width - k, block);
  }
}
