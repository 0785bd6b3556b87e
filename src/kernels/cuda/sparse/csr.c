// CSR matrices on a GPU: csr.cu has the device code. Matrices are made in the card's memory; where
// their entries begin in a batch is also known to the host, so making one waits for the card.
#include "kernels/cpu/array.h"
#include "kernels/cpu/sparse/csr_checks.h"
#include "kernels/cpu/sparse/sparse.h"
#include "kernels/cpu/sparse/tensor.h"
#include "kernels/cuda/array/scan.h"
#include "kernels/cuda/libs/cusparse.h"
#include "kernels/cuda/sparse/csr_card.h"
#include "kernels/cuda/state/rows.h"

// A new matrix, and what the card says about it: whether an index is bad, then the entries of each
// matrix.
typedef struct new_csr_t {
  rn_csr_parts_t parts;
  rn_tensor_t starts, info;
  int64_t count, height, entries;
} new_csr_t;

static rn_status_t vector(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t count, rn_tensor_t* out) {
  rn_allocator_t memory = ctx->kernel->device->allocator;
  return rn_tensor_create(memory, dtype, (rn_shape_t){1, &count}, out);
}

static void clear_new(new_csr_t* made) {
  rn_csr_parts_clear(&made->parts);
  rn_tensor_clear(&made->starts);
  rn_tensor_clear(&made->info);
}

static rn_status_t allocate_rows(rn_kernel_ctx_t* ctx, new_csr_t* out) {
  rn_tensor_t* rows = &out->parts.part[RN_CSR_ROWS];
  rn_tensor_clear(rows);
  RN_RETURN_IF_ERROR(vector(ctx, RN_INT32, out->count * (out->height + 1), rows));
  return rn_cuda_zero(ctx, rows);
}

static rn_status_t allocate_entries(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t entries,
                                    new_csr_t* out) {
  if (entries > INT32_MAX)
    return rn_invalid_argument("CSR matrices of %lld entries", (long long)entries);
  out->entries = entries;
  RN_RETURN_IF_ERROR(vector(ctx, RN_INT32, out->count + 1, &out->starts));
  RN_RETURN_IF_ERROR(vector(ctx, RN_INT32, entries, &out->parts.part[RN_CSR_COLUMNS]));
  return vector(ctx, dtype, entries, &out->parts.part[RN_CSR_VALUES]);
}

// Begins a matrix of |shape|; row pointers are zeros. The caller clears it.
static rn_status_t begin_rows(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int rank,
                              const int64_t* shape, new_csr_t* out) {
  *out = (new_csr_t){.entries = 0};
  RN_RETURN_IF_ERROR(rn_csr_parts_init(ctx, dtype, rank, shape, -1, &out->parts));
  out->count = rank == 3 ? shape[0] : 1;
  out->height = shape[rank - 2];
  return allocate_rows(ctx, out);
}

static rn_status_t make_report(rn_kernel_ctx_t* ctx, new_csr_t* out) {
  const int64_t reports = out->count + 1;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &reports}, &out->info));
  return rn_cuda_zero(ctx, &out->info);
}

// The same with |entries|, and room for a report.
static rn_status_t begin(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int rank, const int64_t* shape,
                         int64_t entries, new_csr_t* out) {
  RN_RETURN_IF_ERROR(begin_rows(ctx, dtype, rank, shape, out));
  RN_RETURN_IF_ERROR(allocate_entries(ctx, dtype, entries, out));
  return make_report(ctx, out);
}

// Turns the counts of rows into pointers.
static rn_status_t sum_rows(rn_kernel_ctx_t* ctx, new_csr_t* made) {
  if (made->count == 0) return RN_OK;
  rn_cuda_csr_sum_args args = {.rows = made->parts.part[RN_CSR_ROWS].data,
                               .totals = RN_DATA(&made->info, i32) + 1,
                               .count = made->count,
                               .height = made->height};
  const int64_t most = (int64_t)rn_cuda_card(ctx)->multiprocessors * 8;
  rn_cuda_grid_t grid = {.x = (unsigned)(made->count < most ? made->count : most),
                         .block_x = RN_CSR_THREADS};
  return rn_cuda_launch(ctx, "sparse/csr/sum", grid, &args, sizeof args);
}

// What is wrong with |indices|, some of which are: the host looks at them. |dense| is what they
// index, or NULL.
static rn_status_t explain(rn_kernel_ctx_t* ctx, const rn_tensor_t* dense,
                           const rn_tensor_t* indices) {
  rn_tensor_t here = {0};
  rn_sparse_t sparse;
  int64_t last = 0, place = 0;
  const int rank = (int)rn_tensor_dim(indices, 1);
  RN_RETURN_IF_ERROR(
      rn_tensor_create(ctx->kernel->host_memory, RN_INT64, rn_tensor_shape(indices), &here));
  rn_status_t status = rn_cuda_read(ctx, indices->data, rn_tensor_bytes(&here), here.data);
  if (rn_ok(status) && !dense) status = rn_sparse_read_parts(ctx, 0, &sparse);
  if (rn_ok(status) && !dense) {
    sparse.indices = here.data;
    status = rn_sparse_check_bounds(&sparse);
  }
  for (int64_t i = 0; rn_ok(status) && i < rn_tensor_dim(indices, 0); ++i) {
    const int64_t* at = RN_DATA(&here, const int64_t) + i * rank;
    if (dense) status = rn_csr_find_element(ctx, dense, i, at, &place);
    if (rn_ok(status)) status = rn_csr_check_entry(i, at, rank, last);
    last = rank == 3 ? at[0] : 0;
  }
  rn_tensor_clear(&here);
  return rn_ok(status) ? rn_internal("The GPU found an index that is out of bounds") : status;
}

// Makes the matrix, whose host part says where the entries of a batch begin.
static rn_status_t finish_batch(rn_kernel_ctx_t* ctx, new_csr_t* made, rn_csr_t** out) {
  RN_RETURN_IF_ERROR(rn_cuda_write(ctx, made->parts.part[RN_CSR_BATCH].data,
                                   rn_tensor_bytes(&made->starts), made->starts.data));
  return rn_csr_create_on(ctx->kernel->allocator, ctx->kernel->device, made->parts.part,
                          &made->starts, out);
}

// Reads the report, after |sum_rows|. |dense| and |indices| are as for |explain|, or NULL.
static rn_status_t read_report(rn_kernel_ctx_t* ctx, const rn_tensor_t* dense,
                               const rn_tensor_t* indices, new_csr_t* made) {
  int32_t* batch = made->parts.part[RN_CSR_BATCH].data;
  rn_tensor_t report = {0};
  int64_t total = 0;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(ctx->kernel->host_memory, RN_INT32, rn_tensor_shape(&made->info), &report));
  rn_status_t status = rn_cuda_read(ctx, made->info.data, rn_tensor_bytes(&report), report.data);
  const int32_t* read = report.data;
  if (rn_ok(status) && read[0]) status = explain(ctx, dense, indices);
  for (int64_t b = 0; rn_ok(status) && b < made->count; ++b) {
    total += read[b + 1];
    if (total > INT32_MAX)
      status = rn_invalid_argument("CSR matrices of more than %d entries", INT32_MAX);
    batch[b + 1] = (int32_t)total;
  }
  rn_tensor_clear(&report);
  return status;
}

static rn_status_t finish_matrix(rn_kernel_ctx_t* ctx, const rn_tensor_t* dense,
                                 const rn_tensor_t* indices, new_csr_t* made, rn_csr_t** out) {
  RN_RETURN_IF_ERROR(sum_rows(ctx, made));
  RN_RETURN_IF_ERROR(read_report(ctx, dense, indices, made));
  return finish_batch(ctx, made, out);
}

// The same as output 0.
static rn_status_t finish(rn_kernel_ctx_t* ctx, const rn_tensor_t* dense,
                          const rn_tensor_t* indices, new_csr_t* made) {
  rn_csr_t* csr = NULL;
  RN_RETURN_IF_ERROR(finish_matrix(ctx, dense, indices, made, &csr));
  return rn_csr_output(ctx, 0, csr);
}

static rn_status_t count_entries(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices, int rank,
                                 const int64_t* shape, new_csr_t* made) {
  rn_cuda_csr_count_args args = {.indices = indices->data,
                                 .entries = made->entries,
                                 .count = made->count,
                                 .height = made->height,
                                 .width = shape[rank - 1],
                                 .rank = rank,
                                 .rows = made->parts.part[RN_CSR_ROWS].data,
                                 .columns = made->parts.part[RN_CSR_COLUMNS].data,
                                 .is_bad = made->info.data};
  return rn_cuda_each(ctx, "sparse/csr/count", made->entries, &args, sizeof args);
}

static rn_status_t sparse_tensor_to_csr(rn_kernel_ctx_t* ctx) {
  rn_sparse_t in;
  new_csr_t made;
  RN_RETURN_IF_ERROR(rn_sparse_read_parts(ctx, 0, &in));
  if (in.rank != 2 && in.rank != 3)
    return rn_invalid_argument("SparseTensor must have rank 2 or 3; but indices has rank: %d",
                               in.rank);
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(rn_in(ctx, 2)));
  rn_status_t status = begin(ctx, in.values->dtype, in.rank, in.shape, in.count, &made);
  if (rn_ok(status)) status = count_entries(ctx, rn_in(ctx, 0), in.rank, in.shape, &made);
  if (rn_ok(status) && in.count)
    status = rn_device_copy(ctx->kernel->device, in.values, &made.parts.part[RN_CSR_VALUES]);
  if (rn_ok(status)) status = finish(ctx, NULL, rn_in(ctx, 0), &made);
  clear_new(&made);
  return status;
}

static rn_status_t dense_to_csr(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dense = rn_in(ctx, 0), *indices = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_csr_check_dense(dense, indices));
  const int64_t* dims = rn_tensor_dims(dense);
  new_csr_t made;
  rn_status_t status =
      begin(ctx, dense->dtype, dense->rank, dims, rn_tensor_dim(indices, 0), &made);
  rn_cuda_csr_take_args args = {.dense = dense->data,
                                .indices = indices->data,
                                .values = made.parts.part[RN_CSR_VALUES].data,
                                .entries = made.entries,
                                .rank = dense->rank};
  for (int d = 0; d < dense->rank; ++d) args.sizes[d] = dims[d];
  if (rn_ok(status)) status = count_entries(ctx, indices, dense->rank, dims, &made);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_size_name("sparse/csr/take", dense->dtype).text,
                          made.entries, &args, sizeof args);
  if (rn_ok(status)) status = finish(ctx, dense, indices, &made);
  clear_new(&made);
  return status;
}

static rn_status_t to_dense(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &csr));
  RN_RETURN_IF_ERROR(rn_csr_dense_output(ctx, csr, &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, out));
  rn_cuda_csr_dense_args args = {.in = rn_cuda_csr_matrices_of(csr), .out = out->data};
  return rn_cuda_each(ctx, rn_cuda_size_name("sparse/csr/to_dense", csr->dtype).text,
                      csr->count * csr->height, &args, sizeof args);
}

static rn_status_t to_sparse_tensor(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  rn_tensor_t *indices = NULL, *values = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &csr));
  RN_RETURN_IF_ERROR(rn_csr_check_sparse_type(ctx, csr));
  RN_RETURN_IF_ERROR(
      rn_sparse_outputs(ctx, 0, 1, rn_csr_entries(csr), csr->rank, &indices, &values));
  RN_RETURN_IF_ERROR(rn_sparse_output_shape(ctx, 2, csr->part[RN_CSR_SHAPE].data, csr->rank));
  if (values->count == 0) return RN_OK;
  rn_cuda_csr_indices_args args = {
      .in = rn_cuda_csr_matrices_of(csr), .out = RN_DATA(indices, i64), .rank = csr->rank};
  RN_RETURN_IF_ERROR(rn_device_copy(ctx->kernel->device, &csr->part[RN_CSR_VALUES], values));
  return rn_cuda_each(ctx, "sparse/csr/to_indices", csr->count * csr->height, &args, sizeof args);
}

static rn_status_t components(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &csr));
  return rn_csr_output_components(ctx, csr);
}

static rn_status_t nnz(rn_kernel_ctx_t* ctx) {
  rn_csr_t* csr = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &csr));
  return rn_csr_output_counts(ctx, csr);
}

// Transposes: entries are sorted by their column, which becomes their row.

typedef struct turned_t {
  rn_tensor_t rows, keys;
  rn_cuda_rows_t sorted;
} turned_t;

static void clear_turned(turned_t* turned) {
  rn_tensor_clear(&turned->rows);
  rn_tensor_clear(&turned->keys);
  rn_tensor_clear(&turned->sorted.keys);
}

static rn_status_t sort_by_column(rn_kernel_ctx_t* ctx, const rn_csr_t* in, turned_t* out) {
  const int64_t entries = rn_csr_entries(in), places = in->count * in->width;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &entries}, &out->rows));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &entries}, &out->keys));
  rn_cuda_csr_turn_args args = {
      .in = rn_cuda_csr_matrices_of(in), .rows = out->rows.data, .keys = RN_DATA(&out->keys, i64)};
  RN_RETURN_IF_ERROR(
      rn_cuda_each(ctx, "sparse/csr/turn", in->count * in->height, &args, sizeof args));
  return rn_cuda_rows(ctx, &out->keys, 1, (rn_shape_t){1, &places}, &out->sorted);
}

static rn_status_t place(rn_kernel_ctx_t* ctx, const rn_csr_t* in, bool conjugates,
                         new_csr_t* made) {
  turned_t turned = {.rows = {0}};
  rn_status_t status = sort_by_column(ctx, in, &turned);
  rn_cuda_csr_place_args args = {.sorted = turned.sorted.args,
                                 .from_rows = turned.rows.data,
                                 .from_values = in->part[RN_CSR_VALUES].data,
                                 .rows = made->parts.part[RN_CSR_ROWS].data,
                                 .columns = made->parts.part[RN_CSR_COLUMNS].data,
                                 .values = made->parts.part[RN_CSR_VALUES].data,
                                 .height = in->width,
                                 .conjugates = conjugates};
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_name("sparse/csr/place", in->dtype).text, made->entries,
                          &args, sizeof args);
  clear_turned(&turned);
  return status;
}

// The transposes of |in|; the caller clears |out|.
static rn_status_t transpose(rn_kernel_ctx_t* ctx, const rn_csr_t* in, bool conjugates,
                             new_csr_t* out) {
  const int64_t shape[3] = {in->count, in->width, in->height};
  RN_RETURN_IF_ERROR(
      begin(ctx, in->dtype, in->rank, shape + (3 - in->rank), rn_csr_entries(in), out));
  return out->entries ? place(ctx, in, conjugates, out) : RN_OK;
}

static rn_status_t transpose_compute(rn_kernel_ctx_t* ctx) {
  rn_csr_t* in = NULL;
  new_csr_t made = {.count = 0};
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_csr_check_transpose(ctx, in));
  rn_status_t status =
      transpose(ctx, in, ((const rn_csr_transpose_t*)ctx->state)->conjugates, &made);
  if (rn_ok(status)) status = finish(ctx, NULL, NULL, &made);
  clear_new(&made);
  return status;
}

// Products with dense matrices.

// Steps between matrices, rows and columns of dense matrices that are stored as |turned| or not.
static void set_steps(int64_t rows, int64_t columns, bool turned, i64 steps[3]) {
  steps[0] = rows * columns;
  steps[1] = turned ? 1 : columns;
  steps[2] = turned ? rows : 1;
}

// Matrix |b| of |all|, which |batch| cuts.
static rn_cusparse_matrix_t matrix_at(rn_dtype_t dtype, const rn_cuda_csr_matrices* all,
                                      const int32_t* batch, int64_t b) {
  return (rn_cusparse_matrix_t){
      .dtype = dtype,
      .height = all->height,
      .width = all->width,
      .entries = batch[b + 1] - batch[b],
      .rows = all->rows + b * (all->height + 1),
      .columns = all->columns + batch[b],
      .values = (const char*)all->values + (size_t)batch[b] * rn_dtype_size(dtype)};
}

// Of plain matrices by rows.
static rn_status_t multiply_by_library(rn_kernel_ctx_t* ctx, rn_cusparse_t* sparse,
                                       const rn_cuda_csr_matrices* a, const int32_t* batch,
                                       int64_t n, rn_tensor_t* out) {
  const rn_tensor_t* b = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, out));
  for (int64_t i = 0; i < a->count; ++i) {
    const rn_cusparse_matrix_t left = matrix_at(b->dtype, a, batch, i);
    if (left.entries)
      RN_RETURN_IF_ERROR(rn_cusparse_multiply(ctx, sparse, &left, rn_element(b, i * a->width * n),
                                              n, rn_element(out, i * a->height * n)));
  }
  return RN_OK;
}

static rn_status_t find_library(rn_kernel_ctx_t* ctx, rn_cusparse_t** out) {
  *out = NULL;
  return rn_cuda_is_on("TF_DETERMINISTIC_OPS") ? RN_OK : rn_cusparse_get(ctx, out);
}

static rn_status_t multiply(rn_kernel_ctx_t* ctx, const rn_cuda_csr_matrices* a,
                            const int32_t* batch) {
  const rn_csr_product_t* s = ctx->state;
  const rn_tensor_t* b = rn_in(ctx, 1);
  rn_tensor_t* out = NULL;
  int64_t n = 0;
  RN_RETURN_IF_ERROR(rn_csr_matmul_output(ctx, a->height, b, &n, &out));
  if (out->count == 0) return RN_OK;
  rn_cusparse_t* sparse = NULL;
  if (!s->transpose_b && !s->transpose_output && !s->conjugate_output)
    RN_RETURN_IF_ERROR(find_library(ctx, &sparse));
  if (sparse) return multiply_by_library(ctx, sparse, a, batch, n, out);
  rn_cuda_csr_matmul_args args = {.a = *a,
                                  .b = b->data,
                                  .out = out->data,
                                  .n = n,
                                  .conjugates_b = s->conjugate_b,
                                  .conjugates_out = s->conjugate_output};
  set_steps(a->width, n, s->transpose_b, args.b_steps);
  set_steps(a->height, n, s->transpose_output, args.out_steps);
  return rn_cuda_each(ctx, rn_cuda_name("sparse/csr/matmul", out->dtype).text,
                      a->count * a->height * n, &args, sizeof args);
}

static rn_status_t multiply_transposed(rn_kernel_ctx_t* ctx, const rn_csr_t* in) {
  const rn_csr_product_t* s = ctx->state;
  new_csr_t made = {.count = 0};
  rn_status_t status = transpose(ctx, in, s->conjugate_a, &made);
  if (rn_ok(status)) status = sum_rows(ctx, &made);
  const rn_tensor_t* part = made.parts.part;
  // Each matrix has as many entries as before.
  const rn_cuda_csr_matrices turned = {.starts = in->starts.data,
                                       .rows = part[RN_CSR_ROWS].data,
                                       .columns = part[RN_CSR_COLUMNS].data,
                                       .values = part[RN_CSR_VALUES].data,
                                       .count = in->count,
                                       .height = in->width,
                                       .width = in->height};
  if (rn_ok(status)) status = multiply(ctx, &turned, in->part[RN_CSR_BATCH].data);
  clear_new(&made);
  return status;
}

static rn_status_t matmul(rn_kernel_ctx_t* ctx) {
  const rn_csr_product_t* s = ctx->state;
  rn_csr_t* in = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_csr_check_matmul(s, in, rn_in(ctx, 1)));
  if (s->transpose_a) return multiply_transposed(ctx, in);
  const rn_cuda_csr_matrices a = rn_cuda_csr_matrices_of(in);
  return multiply(ctx, &a, in->part[RN_CSR_BATCH].data);
}

// Products of two CSR matrices.

// |in|, or its transposes; the caller releases them.
static rn_status_t orient(rn_kernel_ctx_t* ctx, rn_csr_t* in, bool transposes, bool conjugates,
                          rn_csr_t** out) {
  if (!transposes) {
    rn_object_retain(&in->object);
    *out = in;
    return RN_OK;
  }
  new_csr_t made = {.count = 0};
  rn_status_t status = transpose(ctx, in, conjugates, &made);
  if (rn_ok(status)) status = finish_matrix(ctx, NULL, NULL, &made, out);
  clear_new(&made);
  return status;
}

// Computes the products of all matrices, then copies their entries to one place.
static rn_status_t multiply_matrices(rn_kernel_ctx_t* ctx, rn_cusparse_t* sparse, const rn_csr_t* a,
                                     const rn_csr_t* b, rn_cusparse_product_t* products,
                                     new_csr_t* made) {
  const rn_cuda_csr_matrices left = rn_cuda_csr_matrices_of(a), right = rn_cuda_csr_matrices_of(b);
  const int32_t *a_batch = a->part[RN_CSR_BATCH].data, *b_batch = b->part[RN_CSR_BATCH].data;
  rn_tensor_t* part = made->parts.part;
  int32_t *batch = part[RN_CSR_BATCH].data, *rows = part[RN_CSR_ROWS].data;
  int64_t total = 0;
  for (int64_t i = 0; i < a->count; ++i) {
    const rn_cusparse_matrix_t x = matrix_at(a->dtype, &left, a_batch, i);
    const rn_cusparse_matrix_t y = matrix_at(a->dtype, &right, b_batch, i);
    if (x.entries && y.entries)
      RN_RETURN_IF_ERROR(rn_cusparse_product_begin(ctx, sparse, &x, &y,
                                                   rows + i * (made->height + 1), &products[i]));
    total += products[i].entries;
  }
  RN_RETURN_IF_ERROR(allocate_entries(ctx, a->dtype, total, made));
  for (int64_t i = 0; i < a->count; ++i) {
    if (products[i].product)
      RN_RETURN_IF_ERROR(
          rn_cusparse_product_finish(sparse, &products[i], rows + i * (made->height + 1),
                                     RN_DATA(&part[RN_CSR_COLUMNS], int32_t) + batch[i],
                                     rn_element(&part[RN_CSR_VALUES], batch[i])));
    batch[i + 1] = batch[i] + (int32_t)products[i].entries;
  }
  return RN_OK;
}

static rn_status_t multiply_two(rn_kernel_ctx_t* ctx, rn_cusparse_t* sparse, const rn_csr_t* a,
                                const rn_csr_t* b) {
  const int64_t shape[3] = {a->count, a->height, b->width};
  rn_allocator_t memory = ctx->kernel->allocator;
  rn_cusparse_product_t* products = NULL;
  rn_csr_t* csr = NULL;
  new_csr_t made;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(memory, (size_t)a->count, &products));
  rn_status_t status = begin_rows(ctx, a->dtype, a->rank, shape + (3 - a->rank), &made);
  if (rn_ok(status)) status = multiply_matrices(ctx, sparse, a, b, products, &made);
  if (rn_ok(status)) status = finish_batch(ctx, &made, &csr);
  for (int64_t i = 0; i < a->count; ++i) rn_cusparse_product_clear(sparse, &products[i]);
  RN_FREE_ARRAY(memory, products, a->count);
  clear_new(&made);
  return rn_ok(status) ? rn_csr_output(ctx, 0, csr) : status;
}

// On the host without the library.
static rn_status_t multiply_oriented(rn_kernel_ctx_t* ctx, rn_csr_t* a, rn_csr_t* b) {
  rn_cusparse_t* sparse = NULL;
  RN_RETURN_IF_ERROR(find_library(ctx, &sparse));
  if (sparse) return multiply_two(ctx, sparse, a, b);
  RN_RETURN_IF_ERROR(rn_csr_on(a, NULL, &a));
  RN_RETURN_IF_ERROR(rn_csr_on(b, NULL, &b));
  return rn_csr_multiply_sparse(ctx, a, b);
}

static rn_status_t sparse_matmul(rn_kernel_ctx_t* ctx) {
  const rn_csr_product_t* s = ctx->state;
  rn_csr_t *in[2] = {0}, *a = NULL, *b = NULL;
  for (int i = 0; i < 2; ++i) RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, i, &in[i]));
  RN_RETURN_IF_ERROR(rn_csr_check_sparse(s, in[0], in[1]));
  RN_RETURN_IF_ERROR(orient(ctx, in[0], s->transpose_a, s->conjugate_a, &a));
  rn_status_t status = orient(ctx, in[1], s->transpose_b, s->conjugate_b, &b);
  if (rn_ok(status)) {
    status = multiply_oriented(ctx, a, b);
    rn_object_release(&b->object);
  }
  rn_object_release(&a->object);
  return status;
}

// Sums.

static rn_status_t add_matrices(rn_kernel_ctx_t* ctx, const rn_csr_t* a, const rn_csr_t* b,
                                new_csr_t* made) {
  rn_cuda_csr_add_args args = {.a = rn_cuda_csr_matrices_of(a),
                               .b = rn_cuda_csr_matrices_of(b),
                               .alpha = rn_in(ctx, 2)->data,
                               .beta = rn_in(ctx, 3)->data,
                               .rows = made->parts.part[RN_CSR_ROWS].data};
  const int64_t rows = a->count * a->height;
  RN_RETURN_IF_ERROR(rn_cuda_each(ctx, "sparse/csr/add_count", rows, &args, sizeof args));
  RN_RETURN_IF_ERROR(sum_rows(ctx, made));
  RN_RETURN_IF_ERROR(read_report(ctx, NULL, NULL, made));
  const int32_t* batch = made->parts.part[RN_CSR_BATCH].data;
  RN_RETURN_IF_ERROR(allocate_entries(ctx, a->dtype, batch[made->count], made));
  RN_RETURN_IF_ERROR(rn_cuda_write(ctx, batch, rn_tensor_bytes(&made->starts), made->starts.data));
  args.starts = made->starts.data;
  args.columns = made->parts.part[RN_CSR_COLUMNS].data;
  args.values = made->parts.part[RN_CSR_VALUES].data;
  return rn_cuda_each(ctx, rn_cuda_name("sparse/csr/add", a->dtype).text, rows, &args, sizeof args);
}

static rn_status_t add(rn_kernel_ctx_t* ctx) {
  rn_csr_t *a = NULL, *b = NULL, *csr = NULL;
  new_csr_t made = {.count = 0};
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &a));
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 1, &b));
  for (int i = 2; i < 4; ++i)
    if (rn_in(ctx, i)->rank != 0 || rn_in(ctx, i)->dtype != a->dtype)
      return rn_invalid_argument("alpha and beta must be scalars of the type of the matrices");
  RN_RETURN_IF_ERROR(rn_csr_check_same(a, b));
  rn_status_t status = begin_rows(ctx, a->dtype, a->rank, a->part[RN_CSR_SHAPE].data, &made);
  if (rn_ok(status)) status = make_report(ctx, &made);
  if (rn_ok(status)) status = add_matrices(ctx, a, b, &made);
  if (rn_ok(status)) status = finish_batch(ctx, &made, &csr);
  clear_new(&made);
  return rn_ok(status) ? rn_csr_output(ctx, 0, csr) : status;
}

static rn_status_t zeros(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* shape = rn_in(ctx, 0);
  new_csr_t made = {.count = 0};
  rn_csr_t* csr = NULL;
  if (shape->rank != 1 || shape->count < 2 || shape->count > 3)
    return rn_invalid_argument("dense_shape must have 2 or 3 sizes, but has the shape %s",
                               rn_text_of(shape).text);
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(shape));
  rn_status_t status =
      begin_rows(ctx, *(const rn_dtype_t*)ctx->state, (int)shape->count, shape->data, &made);
  if (rn_ok(status)) status = allocate_entries(ctx, *(const rn_dtype_t*)ctx->state, 0, &made);
  if (rn_ok(status)) status = finish_batch(ctx, &made, &csr);
  clear_new(&made);
  return rn_ok(status) ? rn_csr_output(ctx, 0, csr) : status;
}

static rn_status_t zeros_init(const rn_kernel_init_t* init, void* state) {
  *(rn_dtype_t*)state = rn_init_type(init, "type");
  return RN_OK;
}

// What a matrix holds is not known when a plan is made, and may be in another place in every step,
// so that nothing here can be replayed.
#define TYPES (RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_COMPLEX)
#define ROW(op_, attr, ...) \
  { .op = op_, .device = "GPU", .types = {{attr, TYPES}}, __VA_ARGS__ }

static const rn_kernel_def_t rows[] = {
    ROW("SparseTensorToCSRSparseMatrix", "T", .host_args = RN_HOST_ARGS("dense_shape"),
        .compute = sparse_tensor_to_csr),
    ROW("DenseToCSRSparseMatrix", "T", .compute = dense_to_csr),
    ROW("CSRSparseMatrixToDense", "type", .flags = RN_KERNEL_ISSUES, .compute = to_dense),
    ROW("CSRSparseMatrixToSparseTensor", "type", .flags = RN_KERNEL_ISSUES,
        .host_args = RN_HOST_ARGS("dense_shape"), .compute = to_sparse_tensor),
    ROW("CSRSparseMatrixComponents", "type", .flags = RN_KERNEL_ISSUES,
        .host_args = RN_HOST_ARGS("index"), .compute = components),
    {.op = "SparseMatrixNNZ", .device = "GPU", .host_args = RN_HOST_ARGS("nnz"), .compute = nnz},
    ROW("SparseMatrixTranspose", "type", .state_size = sizeof(rn_csr_transpose_t),
        .init = rn_csr_transpose_init, .compute = transpose_compute),
    ROW("SparseMatrixMatMul", "T", .flags = RN_KERNEL_ISSUES | RN_KERNEL_EXPENSIVE,
        .state_size = sizeof(rn_csr_product_t), .init = rn_csr_matmul_init, .compute = matmul),
    ROW("SparseMatrixSparseMatMul", "type", .flags = RN_KERNEL_EXPENSIVE,
        .state_size = sizeof(rn_csr_product_t), .init = rn_csr_sparse_init,
        .compute = sparse_matmul),
    ROW("SparseMatrixAdd", "T", .compute = add),
    ROW("SparseMatrixZeros", "type", .host_args = RN_HOST_ARGS("dense_shape"),
        .state_size = sizeof(rn_dtype_t), .init = zeros_init, .compute = zeros),
};
RN_KERNEL_FAMILY(cuda_csr, rows);
