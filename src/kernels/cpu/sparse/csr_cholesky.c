// SparseMatrixOrderingAMD and SparseMatrixSparseCholesky: A' = L L*, where A' is A with its rows
// and columns in another order. Row by row: the columns of a row of L are those of A' and their
// ancestors in the elimination tree (Liu, 1990).
#include <inttypes.h>

#include "kernels/cpu/sparse/csr_fns.h"
#include "kernels/cpu/sparse/csr_ordering.h"
#include "kernels/kernel_rows.h"

static rn_status_t check_square(const rn_csr_t* csr) {
  if (csr->height == csr->width) return RN_OK;
  return rn_invalid_argument("sparse matrix must be square; got: %" PRId64 " != %" PRId64,
                             csr->height, csr->width);
}

static rn_status_t ordering_compute(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_csr_in(ctx, 0, &csr));
  RN_RETURN_IF_ERROR(check_square(csr));
  const int64_t n = csr->height, dims[2] = {csr->count, n};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){csr->rank - 1, dims + (3 - csr->rank)}, &out));
  rn_status_t status = RN_OK;
  for (int64_t b = 0; rn_ok(status) && b < csr->count; ++b) {
    rn_csr_matrix_t m = rn_csr_matrix(csr, b);
    rn_arena_t arena;
    rn_arena_init(&arena, ctx->kernel->allocator);
    status = rn_csr_order(&m, &arena, RN_DATA(out, int32_t) + b * n);
    rn_arena_clear(&arena);
  }
  return status;
}

// The factorization of one matrix.
typedef struct csr_factor_t {
  const rn_csr_fns_t* fns;
  size_t item;
  int64_t n;
  // The lower triangle of A', as a CSR matrix.
  int32_t *rows, *columns;
  char* values;
  int32_t* inverse;  // of the order
  int32_t* parents;  // in the elimination tree; -1 for none
  int32_t* marks;    // by column: the last row, from 1, that has it
  int32_t* found;    // the columns of a row
  char* sums;        // one number per column, zero between rows
} csr_factor_t;

static rn_status_t factor_init(csr_factor_t* f, const rn_csr_t* csr, int64_t most_entries,
                               rn_arena_t* arena) {
  const size_t n = (size_t)csr->height;
  *f = (csr_factor_t){
      .fns = rn_csr_fns(csr->dtype), .item = rn_dtype_size(csr->dtype), .n = csr->height};
  int32_t** arrays[] = {&f->inverse, &f->parents, &f->marks, &f->found};
  for (size_t k = 0; k < sizeof arrays / sizeof *arrays; ++k)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, arrays[k]));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n + 1, &f->rows));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)most_entries, &f->columns));
  RN_RETURN_IF_ERROR(
      rn_arena_alloc_array(arena, (size_t)most_entries, f->item, (void**)&f->values));
  return rn_arena_alloc_array(arena, n, f->item, (void**)&f->sums);
}

// False if |order| is not a permutation.
static bool invert(csr_factor_t* f, const int32_t* order) {
  for (int64_t i = 0; i < f->n; ++i) f->inverse[i] = -1;
  for (int64_t i = 0; i < f->n; ++i) {
    if (order[i] < 0 || order[i] >= f->n || f->inverse[order[i]] >= 0) return false;
    f->inverse[order[i]] = (int32_t)i;
  }
  return true;
}

// Sets the lower triangle of A' from that of A.
static void permute(csr_factor_t* f, const rn_csr_matrix_t* a) {
  memset(f->rows, 0, (size_t)(f->n + 1) * sizeof *f->rows);
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t i = 0; i < f->n; ++i)
      for (int64_t k = a->rows[i]; k < a->rows[i + 1]; ++k) {
        if (a->columns[k] > i) continue;
        int32_t row = f->inverse[i], column = f->inverse[a->columns[k]];
        int32_t low = row > column ? row : column;
        if (pass == 0) {
          ++f->rows[low + 1];
          continue;
        }
        int64_t to = f->rows[low]++;
        f->columns[to] = row > column ? column : row;
        memcpy(f->values + (size_t)to * f->item, (const char*)a->values + (size_t)k * f->item,
               f->item);
        if (row < column) f->fns->conjugate(f->values + (size_t)to * f->item, 1);
      }
    // Filling the rows moves each pointer to the place of the next.
    for (int64_t i = 0; pass == 0 && i < f->n; ++i) f->rows[i + 1] += f->rows[i];
    for (int64_t i = f->n; pass == 1 && i > 0; --i) f->rows[i] = f->rows[i - 1];
  }
  f->rows[0] = 0;
}

static void begin_rows(csr_factor_t* f) {
  for (int64_t i = 0; i < f->n; ++i) f->parents[i] = -1, f->marks[i] = 0;
}

// Lists the columns of row |i| of L before the diagonal, in no order. Rows must come in order.
static int64_t find_columns(csr_factor_t* f, int32_t i) {
  int64_t count = 0;
  f->marks[i] = i + 1;
  for (int32_t k = f->rows[i]; k < f->rows[i + 1]; ++k)
    for (int32_t j = f->columns[k]; f->marks[j] != i + 1; j = f->parents[j]) {
      f->marks[j] = i + 1;
      f->found[count++] = j;
      if (f->parents[j] < 0) f->parents[j] = i;
    }
  return count;
}

// Counts the entries of the rows of L.
static rn_status_t count_rows(csr_factor_t* f, int32_t* rows) {
  int64_t total = 0;
  begin_rows(f);
  for (int32_t i = 0; i < f->n; ++i) {
    total += find_columns(f, i) + 1;
    if (total > INT32_MAX)
      return rn_invalid_argument("A Cholesky factor has more than %d entries", INT32_MAX);
    rows[i + 1] = (int32_t)total;
  }
  return RN_OK;
}

// Fills in columns and values of L. False if A is not positive definite.
static bool fill_rows(csr_factor_t* f, const int32_t* rows, int32_t* columns, char* values) {
  begin_rows(f);
  for (int32_t i = 0; i < f->n; ++i) {
    int64_t count = find_columns(f, i);
    int32_t* own = columns + rows[i];
    memcpy(own, f->found, (size_t)count * sizeof *own);
    rn_csr_sort_columns(own, count);
    own[count] = i;
    f->fns->add_entries(f->sums, f->columns + f->rows[i], f->rows[i + 1] - f->rows[i],
                        f->values + (size_t)f->rows[i] * f->item);
    if (!f->fns->cholesky_row(f->sums, own, count, i, rows, columns, values)) return false;
  }
  return true;
}

static rn_status_t check_cholesky(rn_kernel_ctx_t* ctx, const rn_csr_t* csr) {
  const rn_tensor_t* order = rn_in(ctx, 1);
  rn_dtype_t dtype = *(const rn_dtype_t*)ctx->state;
  if (csr->dtype != dtype)
    return rn_invalid_argument("Asked for a CSRSparseMatrix of type %s but saw dtype: %s",
                               rn_dtype_name(dtype), rn_dtype_name(csr->dtype));
  RN_RETURN_IF_ERROR(check_square(csr));
  if (order->rank + 1 != csr->rank)
    return rn_invalid_argument(
        "sparse matrix must have the same rank as permutation; got: %d != %d + 1.", csr->rank,
        order->rank);
  if (rn_tensor_dim(order, order->rank - 1) != csr->height)
    return rn_invalid_argument(
        "permutation must have the same number of elements in each batch as the number of rows in "
        "sparse matrix; got: %" PRId64 " != %" PRId64,
        rn_tensor_dim(order, order->rank - 1), csr->height);
  if (csr->rank == 3 && rn_tensor_dim(order, 0) != csr->count)
    return rn_invalid_argument(
        "permutation must have the same batch size as sparse matrix; got: %" PRId64 " != %" PRId64,
        rn_tensor_dim(order, 0), csr->count);
  return RN_OK;
}

static rn_status_t failed(int64_t b) {
  return rn_invalid_argument("Sparse Cholesky factorization failed for batch index %" PRId64
                             ". The input might not be valid.",
                             b);
}

// Factors all matrices: once for the numbers of entries, once for the entries.
static rn_status_t factor_all(rn_kernel_ctx_t* ctx, const rn_csr_t* csr, csr_factor_t* f,
                              rn_csr_parts_t* parts) {
  const int32_t* order = rn_in(ctx, 1)->data;
  int32_t *batch = parts->part[RN_CSR_BATCH].data, *rows = parts->part[RN_CSR_ROWS].data;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t b = 0; b < csr->count; ++b) {
      rn_csr_matrix_t m = rn_csr_matrix(csr, b);
      int32_t* own = rows + b * (f->n + 1);
      if (!invert(f, order + b * f->n)) return failed(b);
      permute(f, &m);
      if (pass == 0) {
        RN_RETURN_IF_ERROR(count_rows(f, own));
        if ((int64_t)batch[b] + own[f->n] > INT32_MAX)
          return rn_invalid_argument("Cholesky factors have more than %d entries", INT32_MAX);
        batch[b + 1] = batch[b] + own[f->n];
      } else if (!fill_rows(
                     f, own, RN_DATA(&parts->part[RN_CSR_COLUMNS], int32_t) + batch[b],
                     RN_DATA(&parts->part[RN_CSR_VALUES], char) + (size_t)batch[b] * f->item)) {
        return failed(b);
      }
    }
    if (pass == 0)
      RN_RETURN_IF_ERROR(rn_csr_parts_set_entries(ctx, csr->dtype, batch[csr->count], parts));
  }
  return RN_OK;
}

static rn_status_t cholesky_compute(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  rn_csr_parts_t parts;
  rn_arena_t arena;
  csr_factor_t f;
  RN_RETURN_IF_ERROR(rn_csr_in(ctx, 0, &csr));
  RN_RETURN_IF_ERROR(check_cholesky(ctx, csr));
  RN_RETURN_IF_ERROR(
      rn_csr_parts_init(ctx, csr->dtype, csr->rank, csr->part[RN_CSR_SHAPE].data, -1, &parts));
  int64_t most = 0;
  for (int64_t b = 0; b < csr->count; ++b) {
    int64_t entries = rn_csr_matrix(csr, b).entries;
    if (entries > most) most = entries;
  }
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = factor_init(&f, csr, most, &arena);
  if (rn_ok(status)) status = factor_all(ctx, csr, &f, &parts);
  rn_arena_clear(&arena);
  return rn_csr_finish(ctx, &parts, status);
}

static rn_status_t cholesky_init(const rn_kernel_init_t* init, void* state) {
  *(rn_dtype_t*)state = rn_init_type(init, "type");
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SparseMatrixOrderingAMD",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .compute = ordering_compute},
    {.op = "SparseMatrixSparseCholesky",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .types = {{"type", RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_COMPLEX}},
     .state_size = sizeof(rn_dtype_t),
     .init = cholesky_init,
     .compute = cholesky_compute},
};
RN_KERNEL_FAMILY(cpu_csr_cholesky, rows);
