// TridiagonalSolve and TridiagonalMatMul on a GPU.
#include <float.h>

#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cuda/linalg/linalg.h"

// After launch.h, which has its types.
#include "kernels/cuda/linalg/tridiagonal_args.h"

typedef struct cuda_tridiagonal_t {
  bool pivots, perturbs;
} cuda_tridiagonal_t;

static rn_status_t solve_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const cuda_tridiagonal_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_linalg_check_tridiagonal(a, b));
  rn_tensor_t *out = NULL, u = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(b), &out));
  if (out->count == 0) return RN_OK;
  const bool is_wide = a->dtype == RN_DOUBLE || a->dtype == RN_COMPLEX128;
  const int64_t columns = rn_tensor_dim(b, b->rank - 1), stack = rn_linalg_stack(a);
  RN_RETURN_IF_ERROR(rn_cuda_linalg_check_stack(stack, columns));
  RN_RETURN_IF_ERROR(rn_temp(ctx, a->dtype, rn_tensor_shape(a), &u));
  struct tridiagonal_solve_args args = {.a = a->data,
                                        .b = b->data,
                                        .x = out->data,
                                        .u = u.data,
                                        .n = rn_tensor_dim(a, a->rank - 1),
                                        .columns = columns,
                                        .stack = stack,
                                        .pivots = state->pivots,
                                        .perturbs = state->perturbs,
                                        .epsilon = is_wide ? DBL_EPSILON : (double)FLT_EPSILON,
                                        .least = is_wide ? DBL_MIN : (double)FLT_MIN};
  const rn_cuda_grid_t grid = {.x = (unsigned)stack, .block_x = columns <= 32 ? 32 : 256};
  rn_status_t status = rn_cuda_launch(ctx, rn_cuda_name("linalg/tridiagonal/solve", a->dtype).text,
                                      grid, &args, sizeof args);
  rn_tensor_clear(&u);
  return status;
}

static rn_status_t multiply_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a[3] = {rn_in(ctx, 0), rn_in(ctx, 1), rn_in(ctx, 2)}, *b = rn_in(ctx, 3);
  RN_RETURN_IF_ERROR(rn_linalg_check_tridiagonal_product(a, b));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(b), &out));
  struct tridiagonal_multiply_args args = {.a = {a[0]->data, a[1]->data, a[2]->data},
                                           .x = b->data,
                                           .y = out->data,
                                           .n = rn_tensor_dim(b, b->rank - 2),
                                           .columns = rn_tensor_dim(b, b->rank - 1),
                                           .stack = rn_linalg_stack(b)};
  return rn_cuda_each(ctx, rn_cuda_name("linalg/tridiagonal/multiply", b->dtype).text, out->count,
                      &args, sizeof args);
}

static rn_status_t solve_init(const rn_kernel_init_t* init, void* memory) {
  cuda_tridiagonal_t* state = memory;
  state->pivots = rn_init_bool(init, "partial_pivoting");
  state->perturbs = rn_init_bool(init, "perturb_singular");
  if (state->pivots || !state->perturbs) return RN_OK;
  return rn_invalid_argument("Setting perturb_singular requires also setting partial_pivoting.");
}

#define ROW(op_, init_, compute_)                                                   \
  {                                                                                 \
    .op = op_, .device = "GPU", .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE,   \
    .state_size = sizeof(cuda_tridiagonal_t),                                       \
    .types = {{"T", RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE)}}, .init = init_, \
    .compute = compute_                                                             \
  }
static const rn_kernel_def_t rows[] = {
    ROW("TridiagonalSolve", solve_init, solve_compute),
    ROW("TridiagonalMatMul", NULL, multiply_compute),
};
RN_KERNEL_FAMILY(cuda_tridiagonal, rows);
