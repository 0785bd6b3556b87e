// Sums of CSR matrices, and matrices without entries, for gradients.
#include "kernels/cpu/array.h"
#include "kernels/cpu/sparse/csr_fns.h"

// Adds the entries of row |i| of |m| to the sums by column.
static void add_row(const rn_csr_fns_t* fns, const rn_csr_matrix_t* m, int64_t i, size_t item,
                    void* sums) {
  const int64_t first = m->rows[i];
  fns->add_entries(sums, m->columns + first, m->rows[i + 1] - first,
                   (const char*)m->values + (size_t)first * item);
}

// Fills |parts|, which has room for the entries of both; returns how many there are.
static int64_t add_all(const rn_csr_t* a, const rn_csr_t* b, rn_csr_row_t* row,
                       rn_csr_parts_t* parts) {
  const rn_csr_fns_t* fns = rn_csr_fns(a->dtype);
  const size_t item = rn_dtype_size(a->dtype);
  int32_t *batch = parts->part[RN_CSR_BATCH].data, *rows = parts->part[RN_CSR_ROWS].data,
          *columns = parts->part[RN_CSR_COLUMNS].data;
  char* values = parts->part[RN_CSR_VALUES].data;
  int64_t total = 0;
  for (int64_t k = 0; k < a->count; ++k, rows += a->height + 1) {
    rn_csr_matrix_t x = rn_csr_matrix(a, k), y = rn_csr_matrix(b, k);
    for (int64_t i = 0; i < a->height; ++i) {
      rn_csr_row_begin(row);
      rn_csr_row_add(row, x.columns + x.rows[i], x.rows[i + 1] - x.rows[i]);
      rn_csr_row_add(row, y.columns + y.rows[i], y.rows[i + 1] - y.rows[i]);
      rn_csr_sort_columns(row->columns, row->count);
      if (row->count) memcpy(columns + total, row->columns, (size_t)row->count * sizeof *columns);
      add_row(fns, &x, i, item, row->sums);
      add_row(fns, &y, i, item, row->sums);
      fns->take_sums(row->sums, columns + total, row->count, values + (size_t)total * item);
      total += row->count;
      rows[i + 1] = (int32_t)(total - batch[k]);
    }
    batch[k + 1] = (int32_t)total;
  }
  return total;
}

rn_status_t rn_csr_check_same(const rn_csr_t* a, const rn_csr_t* b) {
  const rn_tensor_t *left = &a->part[RN_CSR_SHAPE], *right = &b->part[RN_CSR_SHAPE];
  if (a->dtype == b->dtype && a->rank == b->rank &&
      memcmp(left->data, right->data, rn_tensor_bytes(left)) == 0)
    return RN_OK;
  return rn_invalid_argument("Trying to add CSR matrices of different types or shapes");
}

rn_status_t rn_csr_add(rn_kernel_ctx_t* ctx, rn_csr_t* a, rn_csr_t* b, rn_csr_t** out) {
  rn_csr_parts_t parts;
  rn_csr_row_t row;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_csr_on(a, NULL, &a));
  RN_RETURN_IF_ERROR(rn_csr_on(b, NULL, &b));
  RN_RETURN_IF_ERROR(rn_csr_check_same(a, b));
  RN_RETURN_IF_ERROR(rn_csr_parts_init(ctx, a->dtype, a->rank, a->part[RN_CSR_SHAPE].data,
                                       rn_csr_entries(a) + rn_csr_entries(b), &parts));
  rn_status_t status = rn_csr_row_init(ctx, a->dtype, a->width, &row);
  if (!rn_ok(status)) {
    rn_csr_parts_clear(&parts);
    return status;
  }
  const int64_t total = add_all(a, b, &row, &parts);
  rn_csr_row_clear(&row);
  for (int p = RN_CSR_COLUMNS; p <= RN_CSR_VALUES; ++p)
    parts.part[p].count = parts.part[p].inline_dims[0] = total;
  return rn_csr_create(ctx->kernel->allocator, parts.part, out);
}

rn_status_t rn_csr_zeros(rn_kernel_ctx_t* ctx, const rn_csr_t* like, rn_csr_t** out) {
  rn_csr_parts_t parts;
  *out = NULL;
  RN_RETURN_IF_ERROR(
      rn_csr_parts_init(ctx, like->dtype, like->rank, like->part[RN_CSR_SHAPE].data, 0, &parts));
  return rn_csr_create(ctx->kernel->allocator, parts.part, out);
}
