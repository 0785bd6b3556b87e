// Arithmetic on one CSR matrix for one type. A template: csr_fns.c includes it with T the type, R
// its real type, N(name) its names, CONJ and RE.

// Rows [begin, end) of A B, for dense B with rows of |n| numbers.
static void N(multiply_dense)(const rn_csr_matrix_t* a, const void* b_data, int64_t n,
                              int64_t begin, int64_t end, void* out_data) {
  const T *values = a->values, *b = b_data;
  for (int64_t i = begin; i < end; ++i) {
    T* out = (T*)out_data + i * n;
    memset(out, 0, (size_t)n * sizeof *out);
    for (int64_t k = a->rows[i]; k < a->rows[i + 1]; ++k) {
      const T factor = values[k], *row = b + a->columns[k] * n;
      for (int64_t j = 0; j < n; ++j) out[j] += factor * row[j];
    }
  }
}

// Adds row |i| of A B to |sums|, one number per column.
static void N(multiply_row)(const rn_csr_matrix_t* a, const rn_csr_matrix_t* b, int64_t i,
                            void* sums_data) {
  const T *x = a->values, *y = b->values;
  T* sums = sums_data;
  for (int64_t k = a->rows[i]; k < a->rows[i + 1]; ++k)
    for (int64_t p = b->rows[a->columns[k]]; p < b->rows[a->columns[k] + 1]; ++p)
      sums[b->columns[p]] += x[k] * y[p];
}

static void N(add_entries)(void* sums_data, const int32_t* columns, int64_t count,
                           const void* values_data) {
  T* sums = sums_data;
  const T* values = values_data;
  for (int64_t k = 0; k < count; ++k) sums[columns[k]] += values[k];
}

// Moves |count| sums at |columns| to |out| and zeroes them.
static void N(take_sums)(void* sums_data, const int32_t* columns, int64_t count, void* out_data) {
  T *sums = sums_data, *out = out_data;
  for (int64_t k = 0; k < count; ++k) {
    out[k] = sums[columns[k]];
    sums[columns[k]] = 0;
  }
}

static void N(conjugate)(void* data, int64_t count) {
  T* values = data;
  for (int64_t i = 0; i < count; ++i) values[i] = CONJ(values[i]);
}

// Row |i| of the Cholesky factor of A, whose lower triangle in row |i| is in |sums| by column. The
// |count| columns of the row, ascending without the diagonal, are |columns|; |rows| and |factor|
// hold the rows before it, each with its diagonal last. False if the matrix is not positive.
static bool N(cholesky_row)(void* sums_data, const int32_t* columns, int64_t count, int64_t i,
                            const int32_t* rows, const int32_t* factor_columns, void* factor_data) {
  T *sums = sums_data, *factor = factor_data, *out = factor + rows[i];
  R whole = RE(sums[i]);
  for (int64_t k = 0; k < count; ++k) {
    int64_t j = columns[k], last = rows[j + 1] - 1;
    T value = sums[j];
    for (int64_t p = rows[j]; p < last; ++p) value -= sums[factor_columns[p]] * CONJ(factor[p]);
    value /= factor[last];
    sums[j] = out[k] = value;
    whole -= RE(value * CONJ(value));
  }
  for (int64_t k = 0; k < count; ++k) sums[columns[k]] = 0;
  sums[i] = 0;
  if (whole <= 0) return false;
  out[count] = (R)sqrt((double)whole);
  return true;
}
