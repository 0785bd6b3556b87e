// Large matrices by cuSOLVER: see large.h. What is A by rows is A transposed by columns.
#include "kernels/cuda/linalg/large.h"

#include "kernels/cuda/linalg/linalg.h"

// After launch.h, which has its types.
#include "kernels/cuda/linalg/large_args.h"

// Our kernels take one block per matrix, or are faster up to here.
#define LARGE 128
#define NARROW 32
#define FEW 4

rn_status_t rn_cuda_large_solver(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t stack,
                                 int64_t m, int64_t n, rn_cusolver_t** out) {
  const bool has_type =
      dtype == RN_FLOAT || dtype == RN_DOUBLE || dtype == RN_COMPLEX64 || dtype == RN_COMPLEX128;
  *out = NULL;
  if (!has_type || stack > FEW || m < NARROW || n < NARROW) return RN_OK;
  if (m > INT32_MAX || n > INT32_MAX || m * n <= LARGE * LARGE) return RN_OK;
  return rn_cusolver_get(ctx, out);
}

static rn_status_t turn(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, struct turn_args args) {
  return rn_cuda_each(ctx, rn_cuda_name("linalg/large/turn", dtype).text, args.rows * args.columns,
                      &args, sizeof args);
}

// Scratch of |count| numbers.
static rn_status_t make(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t count, rn_tensor_t* out) {
  return rn_temp(ctx, dtype, (rn_shape_t){1, &count}, out);
}

static void clear(rn_tensor_t* tensors, int count) {
  for (int i = 0; i < count; ++i) rn_tensor_clear(&tensors[i]);
}

// Matrix |z| of a stack of matrices of |size| elements.
static void* matrix_at(rn_dtype_t dtype, const void* data, int64_t size, int64_t z) {
  return data ? (char*)data + (size_t)(z * size) * rn_dtype_size(dtype) : NULL;
}

static rn_dtype_t real_of(rn_dtype_t dtype) {
  return dtype == RN_COMPLEX64 ? RN_FLOAT : dtype == RN_COMPLEX128 ? RN_DOUBLE : dtype;
}

rn_status_t rn_cuda_large_factor_positive(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                                          rn_dtype_t dtype, int64_t n, int64_t stack, void* a,
                                          rn_tensor_t* has_failed) {
  // U* U of A's conjugate: the upper triangle by columns is the lower one by rows.
  for (int64_t z = 0; z < stack; ++z) {
    const rn_cusolver_call_t call = {ctx, solver, dtype, RN_DATA(has_failed, int32_t) + z};
    RN_RETURN_IF_ERROR(rn_cusolver_factor_positive(&call, n, matrix_at(dtype, a, n * n, z)));
  }
  return RN_OK;
}

rn_status_t rn_cuda_large_factor(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver, rn_dtype_t dtype,
                                 int64_t n, int64_t stack, void* lu, int32_t* pivots,
                                 int32_t* is_singular) {
  rn_tensor_t temps[3] = {{0}};  // a matrix by columns, its pivots, and cuSOLVER's result
  rn_status_t status = make(ctx, dtype, n * n, &temps[0]);
  if (rn_ok(status)) status = make(ctx, RN_INT64, n, &temps[1]);
  if (rn_ok(status)) status = make(ctx, RN_INT32, 1, &temps[2]);
  const rn_cusolver_call_t call = {ctx, solver, dtype, temps[2].data};
  for (int64_t z = 0; rn_ok(status) && z < stack; ++z) {
    void* a = matrix_at(dtype, lu, n * n, z);
    struct turn_args to = {
        .from = a, .to = temps[0].data, .rows = n, .columns = n, .from_row = n, .to_row = n};
    struct turn_args back = to;
    back.from = to.to, back.to = a;
    struct pivots_args args = {.from = temps[1].data,
                               .to = pivots + z * n,
                               .info = temps[2].data,
                               .is_singular = is_singular,
                               .n = n};
    status = turn(ctx, dtype, to);
    if (rn_ok(status)) status = rn_cusolver_factor(&call, n, temps[0].data, temps[1].data);
    if (rn_ok(status)) status = turn(ctx, dtype, back);
    if (rn_ok(status)) status = rn_cuda_each(ctx, "linalg/large/pivots", n, &args, sizeof args);
  }
  clear(temps, 3);
  return status;
}

static rn_status_t qr_one(const rn_cusolver_call_t* call, const rn_cuda_large_t* work, int64_t z,
                          void* by_columns, void* tau) {
  const int64_t m = work->m, n = work->n, least = m < n ? m : n, width = work->is_full ? m : least;
  const rn_dtype_t dtype = work->dtype;
  RN_RETURN_IF_ERROR(turn(call->ctx, dtype,
                          (struct turn_args){.from = matrix_at(dtype, work->a, m * n, z),
                                             .to = by_columns,
                                             .rows = n,
                                             .columns = m,
                                             .from_row = n,
                                             .to_row = m}));
  RN_RETURN_IF_ERROR(rn_cusolver_reflect(call, m, n, by_columns, tau));
  RN_RETURN_IF_ERROR(turn(call->ctx, dtype,
                          (struct turn_args){.from = by_columns,
                                             .to = matrix_at(dtype, work->outs[1], width * n, z),
                                             .rows = width,
                                             .columns = n,
                                             .from_row = m,
                                             .to_row = n,
                                             .upper_only = true}));
  RN_RETURN_IF_ERROR(rn_cusolver_form_q(call, m, width, least, by_columns, tau));
  return turn(call->ctx, dtype,
              (struct turn_args){.from = by_columns,
                                 .to = matrix_at(dtype, work->outs[0], m * width, z),
                                 .rows = m,
                                 .columns = width,
                                 .from_row = m,
                                 .to_row = width});
}

rn_status_t rn_cuda_large_qr(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                             const rn_cuda_large_t* work, bool* out_done) {
  const int64_t m = work->m, n = work->n, least = m < n ? m : n;
  rn_tensor_t temps[3] = {{0}};  // a matrix by columns, factors of reflectors, cuSOLVER's result
  rn_status_t status = make(ctx, work->dtype, m * (m > n && work->is_full ? m : n), &temps[0]);
  if (rn_ok(status)) status = make(ctx, work->dtype, least, &temps[1]);
  if (rn_ok(status)) status = make(ctx, RN_INT32, 1, &temps[2]);
  const rn_cusolver_call_t call = {ctx, solver, work->dtype, temps[2].data};
  for (int64_t z = 0; rn_ok(status) && z < work->stack; ++z)
    status = qr_one(&call, work, z, temps[0].data, temps[1].data);
  *out_done = rn_ok(status);
  clear(temps, 3);
  return status;
}

// Copies |n| values to the output of matrix |z|, and notes failures.
static rn_status_t give_values(const rn_cusolver_call_t* call, rn_dtype_t dtype, int64_t n,
                               int64_t z, const void* values, void* out, int32_t* has_failed) {
  struct values_args args = {.from = values,
                             .to = matrix_at(dtype, out, n, z),
                             .info = call->info,
                             .has_failed = has_failed,
                             .n = n};
  return rn_cuda_each(call->ctx, rn_cuda_name("linalg/large/values", dtype).text, n, &args,
                      sizeof args);
}

// What decompositions that may fail work in.
typedef struct large_scratch_t {
  rn_tensor_t a, values, u, v, info, has_failed;
} large_scratch_t;

static rn_status_t make_scratch(rn_kernel_ctx_t* ctx, const rn_cuda_large_t* work, int64_t u,
                                int64_t v, large_scratch_t* out) {
  const int64_t least = work->m < work->n ? work->m : work->n;
  *out = (large_scratch_t){.a = {0}};
  rn_status_t status = make(ctx, work->dtype, work->m * work->n, &out->a);
  if (rn_ok(status)) status = make(ctx, real_of(work->dtype), least, &out->values);
  if (rn_ok(status) && u) status = make(ctx, work->dtype, u, &out->u);
  if (rn_ok(status) && v) status = make(ctx, work->dtype, v, &out->v);
  if (rn_ok(status)) status = make(ctx, RN_INT32, 1, &out->info);
  if (rn_ok(status)) status = make(ctx, RN_INT32, 1, &out->has_failed);
  return rn_ok(status) ? rn_cuda_zero(ctx, &out->has_failed) : status;
}

static rn_status_t clear_scratch(rn_kernel_ctx_t* ctx, rn_status_t status, large_scratch_t* scratch,
                                 bool* out_done) {
  bool has_failed = false;
  if (rn_ok(status)) status = rn_cuda_read_flag(ctx, &scratch->has_failed, &has_failed);
  *out_done = rn_ok(status) && !has_failed;
  rn_tensor_t* const all[] = {&scratch->a, &scratch->values, &scratch->u,
                              &scratch->v, &scratch->info,   &scratch->has_failed};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) rn_tensor_clear(all[i]);
  return status;
}

static rn_status_t eigen_one(const rn_cusolver_call_t* call, const rn_cuda_large_t* work, int64_t z,
                             large_scratch_t* scratch) {
  const int64_t n = work->n;
  const rn_dtype_t dtype = work->dtype;
  const bool wants_vectors = work->outs[1] != NULL;
  // The conjugate of the matrix: so its vectors are conjugated, too.
  rn_tensor_t from = scratch->a;
  from.data = matrix_at(dtype, work->a, n * n, z);
  RN_RETURN_IF_ERROR(rn_device_copy(call->ctx->kernel->device, &from, &scratch->a));
  RN_RETURN_IF_ERROR(
      rn_cusolver_eigen(call, wants_vectors, n, scratch->a.data, scratch->values.data));
  RN_RETURN_IF_ERROR(give_values(call, dtype, n, z, scratch->values.data, work->outs[0],
                                 scratch->has_failed.data));
  if (!wants_vectors) return RN_OK;
  return turn(call->ctx, dtype,
              (struct turn_args){.from = scratch->a.data,
                                 .to = matrix_at(dtype, work->outs[1], n * n, z),
                                 .rows = n,
                                 .columns = n,
                                 .from_row = n,
                                 .to_row = n,
                                 .conjugates = rn_dtype_is_complex(dtype)});
}

rn_status_t rn_cuda_large_eigen(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                                const rn_cuda_large_t* work, bool* out_done) {
  large_scratch_t scratch;
  rn_status_t status = make_scratch(ctx, work, 0, 0, &scratch);
  const rn_cusolver_call_t call = {ctx, solver, work->dtype, scratch.info.data};
  for (int64_t z = 0; rn_ok(status) && z < work->stack; ++z)
    status = eigen_one(&call, work, z, &scratch);
  return clear_scratch(ctx, status, &scratch, out_done);
}

// Of the taller of A and its transpose, whose vectors change places.
static rn_status_t singular_one(const rn_cusolver_call_t* call, const rn_cuda_large_t* work,
                                int64_t z, large_scratch_t* scratch) {
  const bool is_tall = work->m >= work->n, wants_vectors = work->outs[1] != NULL;
  const int64_t rows = is_tall ? work->m : work->n, columns = is_tall ? work->n : work->m;
  const int64_t width = work->is_full ? rows : columns;
  const rn_dtype_t dtype = work->dtype;
  rn_tensor_t from = scratch->a;
  from.data = matrix_at(dtype, work->a, rows * columns, z);
  if (is_tall)
    RN_RETURN_IF_ERROR(turn(call->ctx, dtype,
                            (struct turn_args){.from = from.data,
                                               .to = scratch->a.data,
                                               .rows = columns,
                                               .columns = rows,
                                               .from_row = columns,
                                               .to_row = rows}));
  else
    RN_RETURN_IF_ERROR(rn_device_copy(call->ctx->kernel->device, &from, &scratch->a));
  RN_RETURN_IF_ERROR(rn_cusolver_singular(call, work->is_full, rows, columns, scratch->a.data,
                                          scratch->values.data, scratch->u.data, scratch->v.data));
  RN_RETURN_IF_ERROR(give_values(call, dtype, columns, z, scratch->values.data, work->outs[0],
                                 scratch->has_failed.data));
  if (!wants_vectors) return RN_OK;
  RN_RETURN_IF_ERROR(turn(
      call->ctx, dtype,
      (struct turn_args){.from = scratch->v.data,
                         .to = matrix_at(dtype, work->outs[is_tall ? 2 : 1], columns * columns, z),
                         .rows = columns,
                         .columns = columns,
                         .from_row = columns,
                         .to_row = columns}));
  return turn(
      call->ctx, dtype,
      (struct turn_args){.from = scratch->u.data,
                         .to = matrix_at(dtype, work->outs[is_tall ? 1 : 2], rows * width, z),
                         .rows = rows,
                         .columns = width,
                         .from_row = rows,
                         .to_row = width});
}

rn_status_t rn_cuda_large_singular(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                                   const rn_cuda_large_t* work, bool* out_done) {
  const int64_t most = work->m > work->n ? work->m : work->n, least = work->m + work->n - most;
  const bool wants_vectors = work->outs[1] != NULL;
  large_scratch_t scratch;
  rn_status_t status =
      make_scratch(ctx, work, wants_vectors ? most * (work->is_full ? most : least) : 0,
                   wants_vectors ? least * least : 0, &scratch);
  const rn_cusolver_call_t call = {ctx, solver, work->dtype, scratch.info.data};
  for (int64_t z = 0; rn_ok(status) && z < work->stack; ++z)
    status = singular_one(&call, work, z, &scratch);
  return clear_scratch(ctx, status, &scratch, out_done);
}
