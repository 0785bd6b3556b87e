// Linear systems, inverses, determinants and Cholesky factors on a GPU.
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cuda/batches.h"
#include "kernels/cuda/linalg/linalg.h"

// After launch.h, which has its types.
#include "kernels/cuda/linalg/solve_args.h"

#define MAX_GRID_Y 65535

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
  struct factor_args args = {.a = a->data,
                             .lu = out->lu.data,
                             .pivots = out->pivots.data,
                             .is_singular = out->flag.data,
                             .n = n,
                             .is_adjoint = is_adjoint};
  return rn_cuda_launch(ctx, rn_cuda_name("linalg/solve/factor", a->dtype).text,
                        rn_cuda_linalg_grid(stack, n), &args, sizeof args);
}

static rn_status_t issue_solve(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, struct solve_args* args,
                               int64_t stack) {
  args->pieces = (args->columns + RN_SOLVE_COLUMNS - 1) / RN_SOLVE_COLUMNS;
  rn_cuda_grid_t grid = rn_cuda_linalg_grid(stack, args->n);
  grid.y = (unsigned)(args->pieces < MAX_GRID_Y ? args->pieces : MAX_GRID_Y);
  return rn_cuda_launch(ctx, rn_cuda_name("linalg/solve/solve", dtype).text, grid, args,
                        sizeof *args);
}

// X := A^-1 B, or the inverse if |b| is NULL.
static rn_status_t solve(rn_kernel_ctx_t* ctx, const rn_tensor_t* a, const rn_tensor_t* b,
                         rn_tensor_t* out, const char* complaint) {
  const bool is_adjoint = ((const solve_state_t*)ctx->state)->is_adjoint;
  const int64_t n = rn_tensor_dim(a, a->rank - 1), columns = rn_tensor_dim(out, out->rank - 1);
  factors_t factors = {.lu = {0}};
  rn_status_t status = make_factors(ctx, a, is_adjoint, &factors);
  struct solve_args args = {.a = factors.lu.data,
                            .pivots = factors.pivots.data,
                            .b = b ? b->data : NULL,
                            .x = out->data,
                            .n = n,
                            .columns = columns,
                            .a_stride = n * n,
                            .b_stride = n * columns,
                            .x_stride = n * columns};
  if (rn_ok(status)) status = issue_solve(ctx, a->dtype, &args, rn_linalg_stack(a));
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
  struct cholesky_args args = {.a = a->data, .out = out->data, .n = n};
  return rn_cuda_launch(ctx, rn_cuda_name("linalg/solve/cholesky", a->dtype).text,
                        rn_cuda_linalg_grid(stack, n), &args, sizeof args);
}

typedef struct triangles_t {
  rn_dtype_t dtype;
  struct solve_args args;
} triangles_t;

static rn_status_t solve_triangles(rn_kernel_ctx_t* ctx, const rn_cuda_batch_t* batch, void* arg) {
  const triangles_t* all = arg;
  struct solve_args args = all->args;
  const int64_t square = args.n * args.n, side = args.n * args.columns;
  const size_t item = rn_dtype_size(all->dtype);
  args.a = (const char*)args.a + (size_t)(batch->a_at * square) * item;
  args.b = (const char*)args.b + (size_t)(batch->b_at * side) * item;
  args.x = (char*)args.x + (size_t)(batch->c_at * side) * item;
  args.a_stride = batch->a_step * square;
  args.b_stride = batch->b_step * side;
  args.x_stride = batch->c_step * side;
  RN_RETURN_IF_ERROR(rn_cuda_linalg_check_stack(batch->size, args.n));
  return issue_solve(ctx, all->dtype, &args, batch->size);
}

static rn_status_t triangular_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const solve_state_t* state = ctx->state;
  rn_matmul_batch_t outer;
  RN_RETURN_IF_ERROR(rn_linalg_check_triangular(a, b, state->is_lower, state->is_adjoint, &outer));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){outer.rank + 2, outer.dims}, &out));
  if (out->count == 0) return RN_OK;
  triangles_t all = {.dtype = a->dtype,
                     .args = {.a = a->data,
                              .b = b->data,
                              .x = out->data,
                              .n = outer.dims[outer.rank],
                              .columns = outer.dims[outer.rank + 1],
                              .is_lower = state->is_lower,
                              .is_adjoint = state->is_adjoint}};
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
    ROW("MatrixDeterminant", RN_KERNEL_REPLAYS, NULL, determinant_compute),
    ROW("LogMatrixDeterminant", RN_KERNEL_REPLAYS, NULL, determinant_compute),
    ROW("Cholesky", RN_KERNEL_REPLAYS, NULL, cholesky_compute),
    ROW("MatrixTriangularSolve", RN_KERNEL_REPLAYS, triangular_init, triangular_compute),
};
RN_KERNEL_FAMILY(cuda_solve, rows);
