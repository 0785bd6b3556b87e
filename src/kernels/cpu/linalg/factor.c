// See factor.h.
//
// Decompositions work on panels of rows or columns: a panel is factored, then one GEMM, which takes
// most of the time, updates the rest of the matrix. A large matrix is updated by several threads,
// split by rows.
#include "kernels/cpu/linalg/factor.h"

#include <string.h>

#define PANEL 32
// Rows of a panel that are solved together.
#define GROUP 4
// A GEMM split by rows of C.
typedef struct rows_job_t {
  const rn_linalg_matrix_t* matrix;
  const rn_subtract_t* product;
} rows_job_t;

static void subtract_rows(void* arg, int64_t begin, int64_t end) {
  const rows_job_t* job = arg;
  rn_subtract_t part = *job->product;
  size_t item = job->matrix->item;
  part.c = (char*)part.c + (size_t)(begin * part.c_row) * item;
  part.a = (const char*)part.a + (size_t)(begin * part.a_row) * item;
  part.m = end - begin;
  job->matrix->fns->subtract(&part);
}

static void subtract(const rn_linalg_matrix_t* m, const rn_subtract_t* product) {
  if (product->m <= 0 || product->n <= 0 || product->k <= 0) return;
  rows_job_t job = {m, product};
  rn_pool_for(m->pool, product->m, rn_linalg_grain((double)product->n * (double)product->k),
              subtract_rows, &job);
}

static void swap_rows(char* a, char* b, size_t bytes) {
  char temp[256];
  for (size_t i = 0; i < bytes; i += sizeof temp) {
    size_t n = bytes - i < sizeof temp ? bytes - i : sizeof temp;
    memcpy(temp, a + i, n);
    memcpy(a + i, b + i, n);
    memcpy(b + i, temp, n);
  }
}

bool rn_linalg_factor(const rn_linalg_matrix_t* m, char* a, int64_t* pivots) {
  int64_t n = m->n;
  bool is_regular = true;
  for (int64_t from = 0; from < n; from += PANEL) {
    int64_t to = from + PANEL < n ? from + PANEL : n;
    for (int64_t k = from; k < to; ++k) {
      pivots[k] = k + m->fns->largest(rn_linalg_at(m, a, n, k, k), n, n - k);
      if (pivots[k] != k)
        swap_rows(rn_linalg_at(m, a, n, k, 0), rn_linalg_at(m, a, n, pivots[k], 0),
                  (size_t)n * m->item);
      if (m->fns->is_zero(rn_linalg_at(m, a, n, k, k))) {
        is_regular = false;
        continue;
      }
      if (k + 1 == n) break;
      m->fns->divide(rn_linalg_at(m, a, n, k + 1, k), n, n - k - 1, rn_linalg_at(m, a, n, k, k),
                     false);
      subtract(m, &(rn_subtract_t){rn_linalg_at(m, a, n, k + 1, k + 1),
                                   rn_linalg_at(m, a, n, k + 1, k), rn_linalg_at(m, a, n, k, k + 1),
                                   n, n, 1, n, n - k - 1, to - k - 1, 1, false});
    }
    if (to == n) break;
    for (int64_t i = from + 1; i < to; ++i)
      m->fns->subtract(&(rn_subtract_t){
          rn_linalg_at(m, a, n, i, to), rn_linalg_at(m, a, n, i, from),
          rn_linalg_at(m, a, n, from, to), n, n, 1, n, 1, n - to, i - from, false});
    subtract(m, &(rn_subtract_t){rn_linalg_at(m, a, n, to, to), rn_linalg_at(m, a, n, to, from),
                                 rn_linalg_at(m, a, n, from, to), n, n, 1, n, n - to, n - to,
                                 to - from, false});
  }
  return is_regular && !m->fns->is_nan(a);
}

// The rows [from, from + size) of a panel of X, after |done| others of it. |p| has all but what
// depends on the row.
static void solve_group(const rn_linalg_matrix_t* m, const rn_linalg_triangle_t* t,
                        rn_subtract_t* p, char* x, int64_t first, int64_t from, int64_t size,
                        int64_t done) {
  for (int64_t s = -1; s < size; ++s) {  // all rows less those that are done, then row by row
    const int64_t i = s < 0 ? from : t->is_lower ? from + s : from + size - 1 - s;
    const int64_t known =
        s < 0 ? (t->is_lower ? from - done : from + size) : (t->is_lower ? from : i + 1);
    p->c = rn_linalg_at(m, x, p->c_row, i, first);
    p->a = t->a + (size_t)(i * p->a_row + known * p->a_column) * m->item;
    p->b = rn_linalg_at(m, x, p->c_row, known, first);
    p->m = s < 0 ? size : 1, p->k = s < 0 ? done : s;
    if (p->k) m->fns->subtract(p);
    if (s >= 0 && !t->has_unit_diagonal)
      m->fns->divide(p->c, 1, p->n, t->a + (size_t)(i * m->n + i) * m->item, t->is_adjoint);
  }
}

// Columns [first, first + width) of X := A^-1 X, with rows of |columns| elements.
static void solve_columns(const rn_linalg_matrix_t* m, const rn_linalg_triangle_t* t, char* x,
                          int64_t columns, int64_t first, int64_t width) {
  int64_t n = m->n, row = t->is_adjoint ? 1 : n, column = t->is_adjoint ? n : 1;
  rn_subtract_t p = {.c_row = columns,
                     .b_row = columns,
                     .a_row = row,
                     .a_column = column,
                     .n = width,
                     .conjugate_a = t->is_adjoint};
  int64_t panels = (n + PANEL - 1) / PANEL;
  for (int64_t q = 0; q < panels; ++q) {
    int64_t from = (t->is_lower ? q : panels - 1 - q) * PANEL;
    int64_t to = from + PANEL < n ? from + PANEL : n;
    for (int64_t s = 0; s < to - from; s += GROUP) {
      const int64_t size = to - from - s < GROUP ? to - from - s : GROUP;
      solve_group(m, t, &p, x, first, t->is_lower ? from + s : to - s - size, size, s);
    }
    int64_t rest = t->is_lower ? to : 0, count = t->is_lower ? n - to : from;
    if (count <= 0) continue;
    p.c = rn_linalg_at(m, x, columns, rest, first);
    p.a = t->a + (size_t)(rest * row + from * column) * m->item;
    p.b = rn_linalg_at(m, x, columns, from, first);
    p.m = count, p.k = to - from;
    m->fns->subtract(&p);
  }
}

typedef struct columns_job_t {
  const rn_linalg_matrix_t* matrix;
  const rn_linalg_triangle_t* triangle;
  char* x;
  int64_t columns;
} columns_job_t;

static void solve_piece(void* arg, int64_t begin, int64_t end) {
  const columns_job_t* job = arg;
  solve_columns(job->matrix, job->triangle, job->x, job->columns, begin, end - begin);
}

void rn_linalg_solve_triangle(const rn_linalg_matrix_t* m, const rn_linalg_triangle_t* triangle,
                              char* x, int64_t columns) {
  columns_job_t job = {m, triangle, x, columns};
  int64_t grain = rn_linalg_grain((double)m->n * (double)m->n);
  rn_pool_for(m->pool, columns, grain < 16 ? 16 : grain, solve_piece, &job);
}

void rn_linalg_solve_factored(const rn_linalg_matrix_t* m, const char* a, const int64_t* pivots,
                              char* x, int64_t columns) {
  for (int64_t k = 0; k < m->n; ++k)
    if (pivots[k] != k)
      swap_rows(rn_linalg_at(m, x, columns, k, 0), rn_linalg_at(m, x, columns, pivots[k], 0),
                (size_t)columns * m->item);
  rn_linalg_solve_triangle(m, &(rn_linalg_triangle_t){a, true, false, true}, x, columns);
  rn_linalg_solve_triangle(m, &(rn_linalg_triangle_t){a, false, false, false}, x, columns);
}

bool rn_linalg_factor_positive(const rn_linalg_matrix_t* m, char* a) {
  int64_t n = m->n;
  for (int64_t from = 0; from < n; from += PANEL) {
    int64_t to = from + PANEL < n ? from + PANEL : n;
    for (int64_t k = from; k < to; ++k) {
      if (!m->fns->root(rn_linalg_at(m, a, n, k, k))) return false;
      if (k + 1 < n)
        m->fns->divide(rn_linalg_at(m, a, n, k, k + 1), 1, n - k - 1, rn_linalg_at(m, a, n, k, k),
                       false);
      for (int64_t i = k + 1; i < to; ++i)
        m->fns->subtract(&(rn_subtract_t){rn_linalg_at(m, a, n, i, i), rn_linalg_at(m, a, n, k, i),
                                          rn_linalg_at(m, a, n, k, i), n, n, n, n, 1, n - i, 1,
                                          true});
    }
    // Strips of rows from their first diagonal element on; nothing below it is read.
    for (int64_t i = to; i < n; i += PANEL) {
      int64_t rows = i + PANEL < n ? PANEL : n - i;
      subtract(m, &(rn_subtract_t){rn_linalg_at(m, a, n, i, i), rn_linalg_at(m, a, n, from, i),
                                   rn_linalg_at(m, a, n, from, i), n, 1, n, n, rows, n - i,
                                   to - from, true});
    }
  }
  return true;
}
