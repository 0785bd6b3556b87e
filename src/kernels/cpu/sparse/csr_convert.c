// CSR matrices from dense and sparse tensors, and back.
#include <inttypes.h>

#include "device/device.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/sparse/csr_checks.h"
#include "kernels/cpu/sparse/sparse.h"
#include "kernels/kernel_rows.h"

rn_status_t rn_csr_check_entry(int64_t i, const int64_t* at, int rank, int64_t last) {
  if (rank == 3 && at[0] < last)
    return rn_invalid_argument("indices[%" PRId64 "] is of batch %" PRId64
                               ", after those of batch %" PRId64,
                               i, at[0], last);
  if (at[rank - 1] > INT32_MAX)
    return rn_invalid_argument("Column index %" PRId64 " is outside of valid range [0, %d)",
                               at[rank - 1], INT32_MAX);
  return RN_OK;
}

// Sets the pointers and columns of |parts| from |indices|, which are within the shape. Rows of one
// matrix may come in any order, as in stock: then the values belong to the rows by their number.
static rn_status_t set_pointers(const int64_t* indices, int64_t entries, int rank,
                                rn_csr_parts_t* parts) {
  const int64_t* shape = RN_DATA(&parts->part[RN_CSR_SHAPE], const int64_t);
  const int64_t count = parts->part[RN_CSR_BATCH].count - 1, height = shape[rank - 2];
  int32_t *batch = parts->part[RN_CSR_BATCH].data, *rows = parts->part[RN_CSR_ROWS].data,
          *columns = parts->part[RN_CSR_COLUMNS].data;
  int64_t last = 0;
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t *at = indices + i * rank, b = rank == 3 ? at[0] : 0;
    RN_RETURN_IF_ERROR(rn_csr_check_entry(i, at, rank, last));
    last = b;
    ++batch[b + 1];
    ++rows[b * (height + 1) + at[rank - 2] + 1];
    columns[i] = (int32_t)at[rank - 1];
  }
  for (int64_t b = 0; b < count; ++b) {
    batch[b + 1] += batch[b];
    for (int64_t r = 0; r < height; ++r)
      rows[b * (height + 1) + r + 1] += rows[b * (height + 1) + r];
  }
  return RN_OK;
}

static rn_status_t sparse_tensor_to_csr(rn_kernel_ctx_t* ctx) {
  rn_sparse_t in;
  rn_csr_parts_t parts;
  RN_RETURN_IF_ERROR(rn_sparse_read_parts(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_sparse_check_bounds(&in));
  if (in.rank != 2 && in.rank != 3)
    return rn_invalid_argument("SparseTensor must have rank 2 or 3; but indices has rank: %d",
                               in.rank);
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(rn_in(ctx, 2)));
  RN_RETURN_IF_ERROR(rn_csr_parts_init(ctx, in.values->dtype, in.rank, in.shape, in.count, &parts));
  rn_status_t status = set_pointers(in.indices, in.count, in.rank, &parts);
  if (rn_ok(status) && in.count)
    memcpy(parts.part[RN_CSR_VALUES].data, in.values->data, rn_tensor_bytes(in.values));
  return rn_csr_finish(ctx, &parts, status);
}

rn_status_t rn_csr_find_element(const rn_kernel_ctx_t* ctx, const rn_tensor_t* dense, int64_t i,
                                const int64_t* at, int64_t* out) {
  const int64_t* dims = rn_tensor_dims(dense);
  int64_t place = 0;
  for (int d = 0; d < dense->rank; ++d) {
    if (at[d] < 0 || at[d] >= dims[d])
      return rn_invalid_argument("indices[%" PRId64
                                 "] = [%s] does not index into param shape %s, node name: %.*s",
                                 i, rn_numbers_text(at, dense->rank, ", ").text,
                                 rn_text_of(dense).text, RN_STR_ARGS(ctx->kernel->node));
    place = place * dims[d] + at[d];
  }
  *out = place;
  return RN_OK;
}

// Copies the elements of |dense| at |indices| to |values|.
static rn_status_t gather(rn_kernel_ctx_t* ctx, const rn_tensor_t* dense, const int64_t* indices,
                          int64_t entries, rn_tensor_t* values) {
  for (int64_t i = 0; i < entries; ++i) {
    int64_t place = 0;
    RN_RETURN_IF_ERROR(rn_csr_find_element(ctx, dense, i, indices + i * dense->rank, &place));
    memcpy(rn_element(values, i), rn_element(dense, place), rn_dtype_size(dense->dtype));
  }
  return RN_OK;
}

rn_status_t rn_csr_check_dense(const rn_tensor_t* dense, const rn_tensor_t* indices) {
  if (dense->rank != 2 && dense->rank != 3)
    return rn_invalid_argument("params must have rank == 2 or 3; but saw shape: %s",
                               rn_text_of(dense).text);
  if (indices->rank != 2)
    return rn_invalid_argument("indices must be a matrix, but saw shape: %s",
                               rn_text_of(indices).text);
  if (rn_tensor_dim(indices, 1) != dense->rank)
    return rn_invalid_argument(
        "indices.shape[1] must be equal to the rank of params, but saw: %" PRId64 " vs. %d",
        rn_tensor_dim(indices, 1), dense->rank);
  return RN_OK;
}

static rn_status_t dense_to_csr(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dense = rn_in(ctx, 0), *indices = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_csr_check_dense(dense, indices));
  const int64_t entries = rn_tensor_dim(indices, 0);
  rn_csr_parts_t parts;
  RN_RETURN_IF_ERROR(
      rn_csr_parts_init(ctx, dense->dtype, dense->rank, rn_tensor_dims(dense), entries, &parts));
  rn_status_t status = gather(ctx, dense, indices->data, entries, &parts.part[RN_CSR_VALUES]);
  if (rn_ok(status)) status = set_pointers(indices->data, entries, dense->rank, &parts);
  return rn_csr_finish(ctx, &parts, status);
}

rn_status_t rn_csr_dense_output(rn_kernel_ctx_t* ctx, const rn_csr_t* csr, rn_tensor_t** out) {
  rn_dtype_t dtype = ctx->kernel->output_types[0];
  if (csr->dtype != dtype)
    return rn_invalid_argument("Asked for a CSRSparseMatrix of type %s but saw dtype: %s",
                               rn_dtype_name(dtype), rn_dtype_name(csr->dtype));
  const rn_shape_t shape = {csr->rank, RN_DATA(&csr->part[RN_CSR_SHAPE], const int64_t)};
  return rn_output(ctx, 0, shape, out);
}

static rn_status_t to_dense(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_csr_in(ctx, 0, &csr));
  RN_RETURN_IF_ERROR(rn_csr_dense_output(ctx, csr, &out));
  if (out->count == 0) return RN_OK;
  const size_t item = rn_dtype_size(csr->dtype);
  memset(out->data, 0, rn_tensor_bytes(out));
  for (int64_t b = 0; b < csr->count; ++b) {
    rn_csr_matrix_t m = rn_csr_matrix(csr, b);
    for (int64_t r = 0; r < m.height; ++r)
      for (int64_t k = m.rows[r]; k < m.rows[r + 1]; ++k)
        memcpy(rn_element(out, (b * m.height + r) * m.width + m.columns[k]),
               (const char*)m.values + (size_t)k * item, item);
  }
  return RN_OK;
}

rn_status_t rn_csr_check_sparse_type(const rn_kernel_ctx_t* ctx, const rn_csr_t* csr) {
  rn_dtype_t dtype = ctx->kernel->output_types[1];
  if (csr->dtype == dtype) return RN_OK;
  return rn_invalid_argument("Expected a CSRSparseMatrix of type %s but saw type: %s",
                             rn_dtype_name(dtype), rn_dtype_name(csr->dtype));
}

static rn_status_t to_sparse_tensor(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  rn_tensor_t* values = NULL;
  int64_t* indices = NULL;
  RN_RETURN_IF_ERROR(rn_csr_in(ctx, 0, &csr));
  RN_RETURN_IF_ERROR(rn_csr_check_sparse_type(ctx, csr));
  RN_RETURN_IF_ERROR(rn_sparse_output(ctx, 0, rn_csr_entries(csr), csr->rank,
                                      csr->part[RN_CSR_SHAPE].data, &indices, &values));
  if (values->count) memcpy(values->data, csr->part[RN_CSR_VALUES].data, rn_tensor_bytes(values));
  for (int64_t b = 0; b < csr->count; ++b) {
    rn_csr_matrix_t m = rn_csr_matrix(csr, b);
    for (int64_t r = 0; r < m.height; ++r)
      for (int64_t k = m.rows[r]; k < m.rows[r + 1]; ++k) {
        if (csr->rank == 3) *indices++ = b;
        *indices++ = r;
        *indices++ = m.columns[k];
      }
  }
  return RN_OK;
}

// Makes output |i| the |count| elements of |part| from |first| on, in the memory of the kernel's
// device.
static rn_status_t part_output(rn_kernel_ctx_t* ctx, int i, const rn_tensor_t* part, int64_t first,
                               int64_t count) {
  rn_tensor_t *out = NULL, from = *part;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &count}, &out));
  if (count == 0) return RN_OK;
  from.data = rn_element(part, first);
  from.count = from.inline_dims[0] = count;
  return rn_device_copy(ctx->kernel->device, &from, out);
}

// Which matrix is wanted.
static rn_status_t read_index(rn_kernel_ctx_t* ctx, const rn_csr_t* csr, int32_t* out) {
  const rn_tensor_t* index = rn_in(ctx, 1);
  rn_dtype_t dtype = ctx->kernel->output_types[2];
  if (csr->dtype != dtype)
    return rn_invalid_argument("dtype of input is not equal to 'type': %s vs. %s",
                               rn_dtype_name(csr->dtype), rn_dtype_name(dtype));
  if (index->rank != 0)
    return rn_invalid_argument("index should be a scalar, but saw: Tensor<type: int32 shape: %s>",
                               rn_text_of(index).text);
  int32_t b = *out = RN_DATA(index, const int32_t)[0];
  if (b < 0 || b >= csr->count)
    return rn_invalid_argument("index (%d) not in [0, %" PRId64 ")", b, csr->count);
  return RN_OK;
}

rn_status_t rn_csr_output_components(rn_kernel_ctx_t* ctx, const rn_csr_t* csr) {
  int32_t b = 0;
  RN_RETURN_IF_ERROR(read_index(ctx, csr, &b));
  const int32_t* batch = csr->part[RN_CSR_BATCH].data;
  const int64_t pointers = csr->height + 1, entries = batch[b + 1] - batch[b];
  RN_RETURN_IF_ERROR(part_output(ctx, 0, &csr->part[RN_CSR_ROWS], b * pointers, pointers));
  RN_RETURN_IF_ERROR(part_output(ctx, 1, &csr->part[RN_CSR_COLUMNS], batch[b], entries));
  return part_output(ctx, 2, &csr->part[RN_CSR_VALUES], batch[b], entries);
}

static rn_status_t components(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  RN_RETURN_IF_ERROR(rn_csr_in(ctx, 0, &csr));
  return rn_csr_output_components(ctx, csr);
}

rn_status_t rn_csr_output_counts(rn_kernel_ctx_t* ctx, const rn_csr_t* csr) {
  const int32_t* batch = csr->part[RN_CSR_BATCH].data;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){csr->rank - 2, &csr->count}, &out));
  for (int64_t b = 0; b < csr->count; ++b) RN_DATA(out, int32_t)[b] = batch[b + 1] - batch[b];
  return RN_OK;
}

static rn_status_t nnz(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  RN_RETURN_IF_ERROR(rn_csr_in(ctx, 0, &csr));
  return rn_csr_output_counts(ctx, csr);
}

#define TYPES (RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_COMPLEX)
#define ROW(op_, attr, compute_) \
  { .op = op_, .device = "CPU", .types = {{attr, TYPES}}, .compute = compute_ }

static const rn_kernel_def_t rows[] = {
    ROW("SparseTensorToCSRSparseMatrix", "T", sparse_tensor_to_csr),
    ROW("DenseToCSRSparseMatrix", "T", dense_to_csr),
    ROW("CSRSparseMatrixToDense", "type", to_dense),
    ROW("CSRSparseMatrixToSparseTensor", "type", to_sparse_tensor),
    {.op = "CSRSparseMatrixComponents",
     .device = "CPU",
     .types = {{"type", TYPES}},
     .host_args = RN_HOST_ARGS("index"),
     .compute = components},
    {.op = "SparseMatrixNNZ", .device = "CPU", .host_args = RN_HOST_ARGS("nnz"), .compute = nnz},
};
RN_KERNEL_FAMILY(cpu_csr_convert, rows);
