// Linear systems, inverses, determinants and Cholesky factors on a GPU.
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cuda/batches.h"
#include "kernels/cuda/linalg/blocked.h"
#include "kernels/cuda/linalg/linalg.h"

// After launch.h, which has its types.
#include "kernels/cuda/linalg/solve_args.h"

typedef struct solve_state_t {
  bool is_adjoint, is_lower;
} solve_state_t;

rn_cuda_grid_t rn_cuda_linalg_grid(int64_t stack, int64_t n) {
  return (rn_cuda_grid_t){.x = (unsigned)stack, .block_x = n <= 16 ? 64 : n <= 128 ? 256 : 512};
}

rn_status_t rn_cuda_linalg_check_stack(int64_t stack, int64_t n) {
  if (stack > INT32_MAX || n > INT32_MAX)
    return rn_unimplemented("More than 2^31 matrices, or a side of more, on a GPU");
  return RN_OK;
}

rn_status_t rn_cuda_read_flag(rn_kernel_ctx_t* ctx, const rn_tensor_t* flag, bool* out) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  int32_t value = 0;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  RN_RETURN_IF_ERROR(RN_CARD(card, cuMemcpyDtoHAsync_v2, &value, (uintptr_t)flag->data,
                             sizeof value, rn_cuda_stream(card)));
  RN_RETURN_IF_ERROR(RN_CARD(card, cuStreamSynchronize, rn_cuda_stream(card)));
  *out = value != 0;
  return RN_OK;
}

// A factored stack of matrices.
typedef struct factors_t {
  rn_tensor_t lu, pivots, flag;
} factors_t;

static void clear_factors(factors_t* factors) {
  rn_tensor_clear(&factors->lu);
  rn_tensor_clear(&factors->pivots);
  rn_tensor_clear(&factors->flag);
}

// Copies matrices, or their adjoints; |from| is NULL for identities.
static rn_status_t copy_squares(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t n, int64_t stack,
                                const void* from, bool is_adjoint, void* to) {
  struct copy_args args = {
      .from = from, .to = to, .n = n, .stack = stack, .is_adjoint = is_adjoint};
  return rn_cuda_each(ctx, rn_cuda_name("linalg/solve/copy", dtype).text, stack * n * n, &args,
                      sizeof args);
}

static rn_status_t make_factors(rn_kernel_ctx_t* ctx, const rn_tensor_t* a, bool is_adjoint,
                                factors_t* out) {
  const int64_t stack = rn_linalg_stack(a), n = rn_tensor_dim(a, a->rank - 1), one = 1;
  const int64_t dims[2] = {stack, n};
  RN_RETURN_IF_ERROR(rn_cuda_linalg_check_stack(stack, n));
  RN_RETURN_IF_ERROR(rn_temp(ctx, a->dtype, rn_tensor_shape(a), &out->lu));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){2, dims}, &out->pivots));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &one}, &out->flag));
  RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, &out->flag));
  if (a->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(copy_squares(ctx, a->dtype, n, stack, a->data, is_adjoint, out->lu.data));
  return rn_cuda_factor(ctx, a->dtype, n, stack, out->lu.data, out->pivots.data, out->flag.data);
}

// X := A^-1 X for factored matrices.
static rn_status_t solve_factored(rn_kernel_ctx_t* ctx, const factors_t* factors, int64_t n,
                                  int64_t stack, rn_tensor_t* x) {
  const rn_dtype_t dtype = x->dtype;
  const int64_t columns = rn_tensor_dim(x, x->rank - 1);
  const rn_cuda_matrices_t a = {dtype, factors->lu.data, n, n * n, stack};
  const rn_cuda_matrices_t to = {dtype, x->data, columns, n * columns, stack};
  const rn_cuda_triangle_t lower = {.is_lower = true, .has_unit_diagonal = true}, upper = {0};
  RN_RETURN_IF_ERROR(
      rn_cuda_exchange(ctx, dtype, n, stack, x->data, columns, factors->pivots.data));
  RN_RETURN_IF_ERROR(rn_cuda_solve_triangle(ctx, lower, n, &a, columns, &to));
  return rn_cuda_solve_triangle(ctx, upper, n, &a, columns, &to);
}

// X := A^-1 B, or the inverse if |b| is NULL.
static rn_status_t solve(rn_kernel_ctx_t* ctx, const rn_tensor_t* a, const rn_tensor_t* b,
                         rn_tensor_t* out, const char* complaint) {
  const bool is_adjoint = ((const solve_state_t*)ctx->state)->is_adjoint;
  const int64_t n = rn_tensor_dim(a, a->rank - 1), stack = rn_linalg_stack(a);
  factors_t factors = {.lu = {0}};
  rn_status_t status = make_factors(ctx, a, is_adjoint, &factors);
  if (rn_ok(status))
    status = b ? rn_device_copy(ctx->kernel->device, b, out)
               : copy_squares(ctx, a->dtype, n, stack, NULL, false, out->data);
  if (rn_ok(status)) status = solve_factored(ctx, &factors, n, stack, out);
  bool is_singular = false;
  if (rn_ok(status)) status = rn_cuda_read_flag(ctx, &factors.flag, &is_singular);
  clear_factors(&factors);
  if (rn_ok(status) && is_singular) status = rn_invalid_argument("%s", complaint);
  return status;
}

static rn_status_t solve_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_linalg_check_solve(a, b));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(b), &out));
  return out->count ? solve(ctx, a, b, out, "Input matrix is not invertible.") : RN_OK;
}

static rn_status_t invert_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(a), &out));
  return out->count ? solve(ctx, a, NULL, out, "Input is not invertible.") : RN_OK;
}

static rn_status_t permute(rn_kernel_ctx_t* ctx, const factors_t* factors, int64_t n,
                           rn_tensor_t* rows) {
  struct permutation_args args = {
      .pivots = factors->pivots.data, .out = rows->data, .n = n, .stack = n ? rows->count / n : 0};
  bool is_singular = false;
  RN_RETURN_IF_ERROR(rn_cuda_read_flag(ctx, &factors->flag, &is_singular));
  if (is_singular) return rn_invalid_argument("Input is not invertible.");
  return rn_cuda_each(ctx, rn_cuda_name("linalg/solve/permutation", rows->dtype).text, args.stack,
                      &args, sizeof args);
}

static rn_status_t lu_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  if (a->rank < 2) return rn_invalid_argument("Input tensor must have rank >= 2, got %d", a->rank);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  rn_tensor_t *lu = NULL, *rows = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(a), &lu));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){a->rank - 1, rn_tensor_dims(a)}, &rows));
  if (lu->count == 0) return RN_OK;
  factors_t factors = {.lu = {0}};
  rn_status_t status = make_factors(ctx, a, false, &factors);
  if (rn_ok(status)) status = rn_device_copy(ctx->kernel->device, &factors.lu, lu);
  if (rn_ok(status)) status = permute(ctx, &factors, rn_tensor_dim(a, a->rank - 1), rows);
  clear_factors(&factors);
  return status;
}

// |logs| is NULL for a plain determinant.
static rn_status_t determinants(rn_kernel_ctx_t* ctx, const rn_tensor_t* a, rn_tensor_t* out,
                                rn_tensor_t* logs) {
  factors_t factors = {.lu = {0}};
  rn_status_t status = make_factors(ctx, a, false, &factors);
  struct determinant_args args = {.lu = factors.lu.data,
                                  .pivots = factors.pivots.data,
                                  .out = out->data,
                                  .logs = logs ? logs->data : NULL,
                                  .n = rn_tensor_dim(a, a->rank - 1),
                                  .stack = out->count};
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_name("linalg/solve/determinant", a->dtype).text, out->count,
                          &args, sizeof args);
  clear_factors(&factors);
  return status;
}

static rn_status_t determinant_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  const bool wants_logs = ctx->kernel->output_count > 1;
  rn_shape_t shape = {a->rank - 2, rn_tensor_dims(a)};
  rn_tensor_t *out = NULL, *logs = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (wants_logs) RN_RETURN_IF_ERROR(rn_output(ctx, 1, shape, &logs));
  return out->count ? determinants(ctx, a, out, logs) : RN_OK;
}

static rn_status_t cholesky_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  const int64_t stack = rn_linalg_stack(a), n = rn_tensor_dim(a, a->rank - 1);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(a), &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_linalg_check_stack(stack, n));
  return rn_cuda_factor_positive(ctx, a->dtype, n, stack, a->data, out->data);
}

typedef struct triangles_t {
  rn_cuda_triangle_t triangle;
  int64_t n, columns;
  rn_cuda_matrices_t a, b, x;  // strides and stacks are per batch
} triangles_t;

static rn_cuda_matrices_t batch_of(const rn_cuda_matrices_t* all, int64_t rows, int64_t at,
                                   int64_t step, int64_t stack) {
  rn_cuda_matrices_t part = *all;
  part.data += (size_t)(at * rows * all->row) * rn_dtype_size(all->dtype);
  part.stride = step * rows * all->row;
  part.stack = stack;
  return part;
}

static rn_status_t solve_triangles(rn_kernel_ctx_t* ctx, const rn_cuda_batch_t* batch, void* arg) {
  const triangles_t* all = arg;
  const int64_t n = all->n, size = batch->size;
  const rn_cuda_matrices_t a = batch_of(&all->a, n, batch->a_at, batch->a_step, size);
  const rn_cuda_matrices_t b = batch_of(&all->b, n, batch->b_at, batch->b_step, size);
  const rn_cuda_matrices_t x = batch_of(&all->x, n, batch->c_at, batch->c_step, size);
  RN_RETURN_IF_ERROR(rn_cuda_linalg_check_stack(size, n));
  RN_RETURN_IF_ERROR(rn_cuda_copy_matrices(ctx, n, all->columns, &b, &x));
  return rn_cuda_solve_triangle(ctx, all->triangle, n, &a, all->columns, &x);
}

static rn_status_t triangular_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const solve_state_t* state = ctx->state;
  rn_matmul_batch_t outer;
  RN_RETURN_IF_ERROR(rn_linalg_check_triangular(a, b, state->is_lower, state->is_adjoint, &outer));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){outer.rank + 2, outer.dims}, &out));
  if (out->count == 0) return RN_OK;
  const int64_t n = outer.dims[outer.rank], columns = outer.dims[outer.rank + 1];
  triangles_t all = {
      .triangle = {.is_lower = state->is_lower, .is_adjoint = state->is_adjoint},
      .n = n,
      .columns = columns,
      .a = {.dtype = a->dtype, .data = a->data, .row = n},
      .b = {.dtype = a->dtype, .data = b->data, .row = columns},
      .x = {.dtype = a->dtype, .data = out->data, .row = columns},
  };
  return rn_cuda_batches(ctx, &outer, solve_triangles, &all);
}

static rn_status_t adjoint_init(const rn_kernel_init_t* init, void* state) {
  ((solve_state_t*)state)->is_adjoint = rn_init_bool(init, "adjoint");
  return RN_OK;
}

static rn_status_t triangular_init(const rn_kernel_init_t* init, void* state) {
  ((solve_state_t*)state)->is_lower = rn_init_bool(init, "lower");
  return adjoint_init(init, state);
}

// Those that report a singular matrix wait for the card, so they cannot be replayed.
#define ROW(op_, flags_, init_, compute_)                                           \
  {                                                                                 \
    .op = op_, .device = "GPU", .flags = (flags_) | RN_KERNEL_EXPENSIVE,            \
    .state_size = sizeof(solve_state_t),                                            \
    .types = {{"T", RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE)}}, .init = init_, \
    .compute = compute_                                                             \
  }

static const rn_kernel_def_t rows[] = {
    ROW("MatrixSolve", RN_KERNEL_ISSUES, adjoint_init, solve_compute),
    ROW("MatrixInverse", RN_KERNEL_ISSUES, adjoint_init, invert_compute),
    ROW("Lu", RN_KERNEL_ISSUES, NULL, lu_compute),
    ROW("MatrixDeterminant", RN_KERNEL_REPLAYS, NULL, determinant_compute),
    ROW("LogMatrixDeterminant", RN_KERNEL_REPLAYS, NULL, determinant_compute),
    ROW("Cholesky", RN_KERNEL_REPLAYS, NULL, cholesky_compute),
    ROW("MatrixTriangularSolve", RN_KERNEL_REPLAYS, triangular_init, triangular_compute),
};
RN_KERNEL_FAMILY(cuda_solve, rows);
