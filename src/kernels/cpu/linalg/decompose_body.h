// Decompositions of one matrix of a batch. A template: decompose.c includes it per type, after the
// algorithms.

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

// Stores the |count| rows of |xt|, of n elements, as columns, from element |first| on.
static void N(store_columns)(const decompose_job_t* job, int output, int64_t first, const T* xt,
                             int64_t count, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < count; ++k) N(store)(job, output, first + i * count + k, xt[k * n + i]);
}

static bool N(run_qr)(const decompose_job_t* job, int64_t index, T* a) {
  int64_t m = job->m, n = job->n, least = m < n ? m : n, width = job->is_full ? m : least;
  T *q = a + m * n, *tau = q + m * width, *block = tau + least;
  N(qr)(job->fns, a, m, n, tau, block);
  N(form_q)(job->fns, a, m, n, least, tau, q, width, block);
  N(store_all)(job, 0, index, q, m * width);
  for (int64_t i = 0; i < width; ++i)
    for (int64_t j = 0; j < n; ++j)
      N(store)(job, 1, (index * width + i) * n + j, j < i ? 0 : a[i * n + j]);
  return true;
}

static bool N(run_eigen)(const decompose_job_t* job, int64_t index, T* a) {
  const bool is_stacked = job->work == STACKED, wants_vectors = job->wants_vectors || is_stacked;
  int64_t n = job->n;
  T *q = a + n * n, *tau = q + n * n, *block = tau + n;
  double* d = job->reals;
  if (!N(eigen)(job->fns, a, n, d, q, tau, block, wants_vectors, job->epsilon)) return false;
  const int64_t values = index * (is_stacked ? (n + 1) * n : n);
  for (int64_t i = 0; i < n; ++i) N(store)(job, 0, values + i, (T)d[i]);
  if (is_stacked) N(store_columns)(job, 0, values + n, a, n, n);
  if (job->wants_vectors) N(store_columns)(job, 1, index * n * n, a, n, n);
  return true;
}

// Divides a tall matrix by its largest element, which it returns; takes the adjoint of a wide one.
// NaN if an element is not finite.
static double N(normalise)(const T* a, int64_t m, int64_t n, bool is_tall, T* out) {
  double scale = 0;
  for (int64_t i = 0; i < m * n; ++i) {
    double size = (double)SIZE(a[i]);
    if (!isfinite(size)) return (double)NAN;
    if (size > scale) scale = size;
  }
  if (scale == 0) scale = 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      out[i * n + j] = (is_tall ? a[i * n + j] : CONJ(a[j * m + i])) / (R)scale;
  return scale;
}

static bool N(run_singular)(const decompose_job_t* job, int64_t index, T* in) {
  bool is_tall = job->m >= job->n;
  int64_t m = is_tall ? job->m : job->n, n = is_tall ? job->n : job->m;
  int64_t width = !job->wants_vectors ? 0 : job->is_full ? m : n;
  T *a = in + m * n, *ut = a + m * n, *vt = ut + m * width, *q = vt + (width ? n * n : 0);
  T *left = q + m * (width > n ? width : n), *right = left + n, *block = right + n;
  double *s = job->reals, scale = N(normalise)(in, m, n, is_tall, a);
  bool is_good = scale == scale && N(singular)(job->fns, a, m, n, width, s, ut, vt, q, left, right,
                                               block, job->epsilon);
  for (int64_t i = 0; i < n; ++i)
    N(store)(job, 0, index * n + i, (T)(is_good ? s[i] * scale : (double)NAN));
  if (!job->wants_vectors) return true;
  for (int64_t i = 0; !is_good && i < m * width; ++i) ut[i] = (T)NAN;
  for (int64_t i = 0; !is_good && i < n * n; ++i) vt[i] = (T)NAN;
  N(store_columns)(job, is_tall ? 1 : 2, index * m * width, ut, width, m);
  N(store_columns)(job, is_tall ? 2 : 1, index * n * n, vt, n, n);
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
  }
  return false;
}
