// Products of CSR matrices with dense ones and with each other.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/sparse/csr_checks.h"
#include "kernels/cpu/sparse/csr_fns.h"
#include "kernels/kernel_rows.h"

// Multiplications per piece of work.
#define PIECE_PRODUCTS 100000

static rn_status_t product_init(const rn_kernel_init_t* init, void* state) {
  rn_csr_product_t* s = state;
  *s = (rn_csr_product_t){.transpose_a = rn_init_bool(init, "transpose_a"),
                          .transpose_b = rn_init_bool(init, "transpose_b"),
                          .conjugate_a = rn_init_bool(init, "adjoint_a"),
                          .conjugate_b = rn_init_bool(init, "adjoint_b")};
  if (s->transpose_a && s->conjugate_a)
    return rn_invalid_argument("Only one of adjoint_a and transpose_a may be true.");
  if (s->transpose_b && s->conjugate_b)
    return rn_invalid_argument("Only one of adjoint_b and transpose_b may be true.");
  s->transpose_a |= s->conjugate_a;
  s->transpose_b |= s->conjugate_b;
  return RN_OK;
}

rn_status_t rn_csr_matmul_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(product_init(init, state));
  rn_csr_product_t* s = state;
  s->transpose_output = rn_init_bool(init, "transpose_output");
  s->conjugate_output = rn_init_bool(init, "conjugate_output");
  return RN_OK;
}

rn_status_t rn_csr_check_matmul(const rn_csr_product_t* s, const rn_csr_t* a,
                                const rn_tensor_t* b) {
  if (a->dtype != b->dtype)
    return rn_invalid_argument("Input types don't match.  a.dtype == %s vs. b.dtype == %s",
                               rn_dtype_name(a->dtype), rn_dtype_name(b->dtype));
  if (a->rank != b->rank)
    return rn_invalid_argument("Ranks of a and b must match, saw: %d vs. %d.", a->rank, b->rank);
  int64_t count = b->rank == 3 ? rn_tensor_dim(b, 0) : 1;
  if (a->count != count)
    return rn_invalid_argument(
        "Batch sizes of a and b must match, saw: %" PRId64 " vs. %" PRId64 ".", a->count, count);
  if ((s->transpose_a ? a->height : a->width) !=
      rn_tensor_dim(b, s->transpose_b ? b->rank - 1 : b->rank - 2))
    return rn_invalid_argument(
        "Inner product dimensions of A and B do not agree. Shapes are: %s vs. %s",
        rn_shape_text((rn_shape_t){a->rank, RN_DATA(&a->part[RN_CSR_SHAPE], const int64_t)}).text,
        rn_text_of(b).text);
  return RN_OK;
}

// out[c][r] = in[r][c], for |count| matrices.
static void transpose_dense(const char* in, int64_t count, int64_t height, int64_t width,
                            size_t item, char* out) {
  for (int64_t b = 0; b < count; ++b, in += (size_t)(height * width) * item)
    for (int64_t c = 0; c < width; ++c)
      for (int64_t r = 0; r < height; ++r, out += item)
        memcpy(out, in + (size_t)(r * width + c) * item, item);
}

typedef struct dense_job_t {
  const rn_csr_fns_t* fns;
  const rn_csr_t* a;
  const char* b;
  char* out;
  int64_t n;  // columns of B
  size_t item;
} dense_job_t;

static void multiply_rows(void* arg, int64_t begin, int64_t end) {
  const dense_job_t* job = arg;
  const int64_t height = job->a->height;
  while (begin < end) {
    int64_t matrix = begin / height, first = begin % height;
    int64_t last = end - matrix * height < height ? end - matrix * height : height;
    rn_csr_matrix_t m = rn_csr_matrix(job->a, matrix);
    job->fns->multiply_dense(&m, job->b + (size_t)(matrix * m.width * job->n) * job->item, job->n,
                             first, last,
                             job->out + (size_t)(matrix * height * job->n) * job->item);
    begin = matrix * height + last;
  }
}

static void multiply_all(rn_kernel_ctx_t* ctx, const dense_job_t* job) {
  int64_t rows = job->a->count * job->a->height;
  double each = (double)rn_csr_entries(job->a) / (double)rows * (double)job->n + 1;
  rn_pool_for(rn_ctx_pool(ctx), rows, each > PIECE_PRODUCTS ? 1 : (int64_t)(PIECE_PRODUCTS / each),
              multiply_rows, (void*)job);
}

rn_status_t rn_csr_matmul_output(rn_kernel_ctx_t* ctx, int64_t height, const rn_tensor_t* b,
                                 int64_t* out_n, rn_tensor_t** out) {
  const rn_csr_product_t* s = ctx->state;
  const int rank = b->rank;
  const int64_t n = rn_tensor_dim(b, s->transpose_b ? rank - 2 : rank - 1);
  const bool turns = s->transpose_output;
  const int64_t dims[3] = {rank == 3 ? rn_tensor_dim(b, 0) : 1, turns ? n : height,
                           turns ? height : n};
  *out_n = n;
  return rn_output(ctx, 0, (rn_shape_t){rank, dims + (3 - rank)}, out);
}

// The product of |a| as it is and |b|, transposed first if asked for.
static rn_status_t multiply(rn_kernel_ctx_t* ctx, const rn_csr_t* a, const rn_tensor_t* b) {
  const rn_csr_product_t* s = ctx->state;
  const bool turns = s->transpose_output;
  int64_t n = 0;
  rn_tensor_t *out = NULL, right = {0}, result = {0};
  RN_RETURN_IF_ERROR(rn_csr_matmul_output(ctx, a->height, b, &n, &out));
  if (out->count == 0) return RN_OK;
  dense_job_t job = {rn_csr_fns(a->dtype), a, b->data, out->data, n, rn_dtype_size(a->dtype)};
  rn_status_t status = RN_OK;
  if (s->transpose_b) status = rn_temp(ctx, b->dtype, (rn_shape_t){1, &b->count}, &right);
  if (rn_ok(status) && s->transpose_b) {
    transpose_dense(b->data, a->count, n, a->width, job.item, right.data);
    if (s->conjugate_b) job.fns->conjugate(right.data, right.count);
    job.b = right.data;
  }
  if (rn_ok(status) && turns)
    status = rn_temp(ctx, b->dtype, (rn_shape_t){1, &out->count}, &result);
  if (rn_ok(status)) {
    if (turns) job.out = result.data;
    multiply_all(ctx, &job);
    if (turns) transpose_dense(job.out, a->count, a->height, n, job.item, out->data);
    if (s->conjugate_output) job.fns->conjugate(out->data, out->count);
  }
  rn_tensor_clear(&right);
  rn_tensor_clear(&result);
  return status;
}

static rn_status_t matmul_compute(rn_kernel_ctx_t* ctx) {
  const rn_csr_product_t* s = ctx->state;
  rn_csr_t *in = NULL, *a = NULL;
  RN_RETURN_IF_ERROR(rn_csr_in(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_csr_check_matmul(s, in, rn_in(ctx, 1)));
  RN_RETURN_IF_ERROR(rn_csr_oriented(ctx, in, s->transpose_a, s->conjugate_a, &a));
  rn_status_t status = multiply(ctx, a, rn_in(ctx, 1));
  rn_object_release(&a->object);
  return status;
}

// Products of two sparse matrices.

typedef struct sparse_job_t {
  const rn_csr_fns_t* fns;
  const rn_csr_t *a, *b;
  rn_csr_parts_t parts;
  rn_csr_row_t row;
} sparse_job_t;

// Lists the columns of row |i| of A B.
static void list_columns(rn_csr_row_t* row, const rn_csr_matrix_t* a, const rn_csr_matrix_t* b,
                         int64_t i) {
  rn_csr_row_begin(row);
  for (int64_t k = a->rows[i]; k < a->rows[i + 1]; ++k) {
    const int32_t* rows = b->rows + a->columns[k];
    rn_csr_row_add(row, b->columns + rows[0], rows[1] - rows[0]);
  }
}

// Counts the entries of all rows, then allocates them.
static rn_status_t count_entries(rn_kernel_ctx_t* ctx, sparse_job_t* job) {
  int32_t *batch = job->parts.part[RN_CSR_BATCH].data, *rows = job->parts.part[RN_CSR_ROWS].data;
  int64_t height = job->a->height, total = 0;
  for (int64_t m = 0; m < job->a->count; ++m, rows += height + 1) {
    rn_csr_matrix_t a = rn_csr_matrix(job->a, m), b = rn_csr_matrix(job->b, m);
    int64_t entries = 0;
    for (int64_t i = 0; i < height; ++i) {
      list_columns(&job->row, &a, &b, i);
      entries += job->row.count;
      if (total + entries > INT32_MAX)
        return rn_invalid_argument("The product of CSR matrices has more than %d entries",
                                   INT32_MAX);
      rows[i + 1] = (int32_t)entries;
    }
    total += entries;
    batch[m + 1] = (int32_t)total;
  }
  return rn_csr_parts_set_entries(ctx, job->a->dtype, total, &job->parts);
}

static void fill_entries(sparse_job_t* job) {
  const size_t item = rn_dtype_size(job->a->dtype);
  int32_t* columns = job->parts.part[RN_CSR_COLUMNS].data;
  char* values = job->parts.part[RN_CSR_VALUES].data;
  for (int64_t m = 0; m < job->a->count; ++m) {
    rn_csr_matrix_t a = rn_csr_matrix(job->a, m), b = rn_csr_matrix(job->b, m);
    for (int64_t i = 0; i < job->a->height; ++i) {
      list_columns(&job->row, &a, &b, i);
      const int64_t count = job->row.count;
      if (count == 0) continue;
      memcpy(columns, job->row.columns, (size_t)count * sizeof *columns);
      rn_csr_sort_columns(columns, count);
      job->fns->multiply_row(&a, &b, i, job->row.sums);
      job->fns->take_sums(job->row.sums, columns, count, values);
      columns += count;
      values += (size_t)count * item;
    }
  }
}

rn_status_t rn_csr_multiply_sparse(rn_kernel_ctx_t* ctx, const rn_csr_t* a, const rn_csr_t* b) {
  sparse_job_t job = {.fns = rn_csr_fns(a->dtype), .a = a, .b = b};
  const int64_t shape[3] = {a->count, a->height, b->width};
  RN_RETURN_IF_ERROR(
      rn_csr_parts_init(ctx, a->dtype, a->rank, shape + (3 - a->rank), -1, &job.parts));
  rn_status_t status = rn_csr_row_init(ctx, a->dtype, b->width, &job.row);
  if (rn_ok(status)) {
    status = count_entries(ctx, &job);
    if (rn_ok(status)) fill_entries(&job);
    rn_csr_row_clear(&job.row);
  }
  return rn_csr_finish(ctx, &job.parts, status);
}

rn_status_t rn_csr_check_sparse(const rn_csr_product_t* s, const rn_csr_t* a, const rn_csr_t* b) {
  const rn_csr_t* both[] = {a, b};
  for (int i = 0; i < 2; ++i)
    if (both[i]->dtype != s->dtype)
      return rn_invalid_argument("dtype of %c is not equal to 'type': %s vs. %s", "ab"[i],
                                 rn_dtype_name(both[i]->dtype), rn_dtype_name(s->dtype));
  if (a->count != b->count)
    return rn_invalid_argument("Batch sizes of A and B do not agree.  Batch sizes are: %" PRId64
                               " vs. %" PRId64,
                               a->count, b->count);
  int64_t left[3] = {a->count, s->transpose_a ? a->width : a->height,
                     s->transpose_a ? a->height : a->width};
  int64_t right[3] = {b->count, s->transpose_b ? b->width : b->height,
                      s->transpose_b ? b->height : b->width};
  if (a->rank != b->rank || left[2] != right[1])
    return rn_invalid_argument(
        "Inner product dimensions of A and B do not agree.  Shapes are: %s vs. %s",
        rn_shape_text((rn_shape_t){a->rank, left + (3 - a->rank)}).text,
        rn_shape_text((rn_shape_t){b->rank, right + (3 - b->rank)}).text);
  return RN_OK;
}

static rn_status_t sparse_compute(rn_kernel_ctx_t* ctx) {
  const rn_csr_product_t* s = ctx->state;
  rn_csr_t *in[2] = {0}, *a = NULL, *b = NULL;
  for (int i = 0; i < 2; ++i) RN_RETURN_IF_ERROR(rn_csr_in(ctx, i, &in[i]));
  RN_RETURN_IF_ERROR(rn_csr_check_sparse(s, in[0], in[1]));
  RN_RETURN_IF_ERROR(rn_csr_oriented(ctx, in[0], s->transpose_a, s->conjugate_a, &a));
  rn_status_t status = rn_csr_oriented(ctx, in[1], s->transpose_b, s->conjugate_b, &b);
  if (rn_ok(status)) {
    status = rn_csr_multiply_sparse(ctx, a, b);
    rn_object_release(&b->object);
  }
  rn_object_release(&a->object);
  return status;
}

rn_status_t rn_csr_sparse_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(product_init(init, state));
  ((rn_csr_product_t*)state)->dtype = rn_init_type(init, "type");
  return RN_OK;
}

#define ROW(op_, attr, init_, compute_)                                        \
  {                                                                            \
    .op = op_, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,                  \
    .types = {{attr, RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_COMPLEX}},          \
    .state_size = sizeof(rn_csr_product_t), .init = init_, .compute = compute_ \
  }

static const rn_kernel_def_t rows[] = {
    ROW("SparseMatrixMatMul", "T", rn_csr_matmul_init, matmul_compute),
    ROW("SparseMatrixSparseMatMul", "type", rn_csr_sparse_init, sparse_compute),
};
RN_KERNEL_FAMILY(cpu_csr_matmul, rows);
