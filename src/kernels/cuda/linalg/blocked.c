// Factors and triangular solutions: see blocked.h.
#include "kernels/cuda/linalg/blocked.h"

#include "kernels/cuda/linalg/large.h"
#include "kernels/cuda/linalg/linalg.h"
#include "kernels/cuda/math/matmul.h"

// After launch.h, which has its types.
#include "kernels/cuda/linalg/einsum_args.h"
#include "kernels/cuda/linalg/solve_args.h"

#define PANEL RN_CUDA_PANEL
// Up to this size a single block is faster than panels and products.
#define SMALL 128
#define MAX_GRID_Y 65535

static unsigned grid_y(int64_t count) {
  return (unsigned)(count < MAX_GRID_Y ? count : MAX_GRID_Y);
}

// The part of |a| that begins at (row, column).
static rn_cuda_matrices_t part_of(const rn_cuda_matrices_t* a, int64_t row, int64_t column) {
  rn_cuda_matrices_t part = *a;
  part.data += (size_t)(row * a->row + column) * rn_dtype_size(a->dtype);
  return part;
}

static rn_cuda_matrices_t dense(rn_dtype_t dtype, void* data, int64_t rows, int64_t columns,
                                int64_t stack) {
  return (rn_cuda_matrices_t){dtype, data, columns, rows * columns, stack};
}

// Scratch for |stack| dense matrices.
static rn_status_t make_scratch(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t rows,
                                int64_t columns, int64_t stack, rn_tensor_t* tensor,
                                rn_cuda_matrices_t* out) {
  const int64_t dims[3] = {stack, rows, columns};
  RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, (rn_shape_t){3, dims}, tensor));
  *out = dense(dtype, tensor->data, rows, columns, stack);
  return RN_OK;
}

// An operand of a product, perhaps as its adjoint.
typedef struct operand_t {
  const rn_cuda_matrices_t* matrices;
  bool is_adjoint;
} operand_t;

// C := alpha A B + beta C, with C of m x n and A of m x k.
static rn_status_t multiply(rn_kernel_ctx_t* ctx, int64_t m, int64_t n, int64_t k, operand_t a,
                            operand_t b, double alpha, double beta, const rn_cuda_matrices_t* c) {
  const bool is_complex = rn_dtype_is_complex(c->dtype);
  rn_cuda_matmul_t matmul = {.dtype = c->dtype,
                             .transpose_a = a.is_adjoint,
                             .transpose_b = b.is_adjoint,
                             .conjugate_a = a.is_adjoint && is_complex,
                             .conjugate_b = b.is_adjoint && is_complex,
                             .m = m,
                             .n = n,
                             .k = k,
                             .batch = c->stack,
                             .a = a.matrices->data,
                             .b = b.matrices->data,
                             .c = c->data,
                             .a_row = a.matrices->row,
                             .b_row = b.matrices->row,
                             .c_row = c->row,
                             .a_stride = a.matrices->stride,
                             .b_stride = b.matrices->stride,
                             .c_stride = c->stride,
                             .is_exact = true,
                             .alpha = alpha,
                             .beta = beta};
  return rn_cuda_matmul(ctx, &matmul);
}

rn_status_t rn_cuda_copy_matrices(rn_kernel_ctx_t* ctx, int64_t rows, int64_t columns,
                                  const rn_cuda_matrices_t* from, const rn_cuda_matrices_t* to) {
  struct einsum_copy_args args = {.from = from->data,
                                  .to = to->data,
                                  .count = to->stack * rows * columns,
                                  .rank = 3,
                                  .sizes = {to->stack, rows, columns},
                                  .from_strides = {from->stride, from->row, 1},
                                  .to_strides = {to->stride, to->row, 1}};
  args.is_wide = args.count > INT32_MAX;
  for (int d = 0; !args.is_wide && args.count && d < 3; ++d)
    args.by[d] = rn_divisor((u32)args.sizes[d]);
  return rn_cuda_each(ctx, rn_cuda_size_name("linalg/einsum/copy", to->dtype).text, args.count,
                      &args, sizeof args);
}

// Triangles of up to SMALL rows. |b| is NULL for the identity, or X itself.
static rn_status_t solve_small(rn_kernel_ctx_t* ctx, rn_cuda_triangle_t triangle, int64_t n,
                               const rn_cuda_matrices_t* a, int64_t columns, const void* b,
                               const rn_cuda_matrices_t* x) {
  struct solve_args args = {.a = a->data,
                            .b = b,
                            .x = x->data,
                            .n = n,
                            .columns = columns,
                            .pieces = (columns + RN_SOLVE_COLUMNS - 1) / RN_SOLVE_COLUMNS,
                            .a_row = a->row,
                            .a_stride = a->stride,
                            .b_stride = x->stride,
                            .x_stride = x->stride,
                            .is_lower = triangle.is_lower,
                            .is_adjoint = triangle.is_adjoint,
                            .has_unit_diagonal = triangle.has_unit_diagonal};
  rn_cuda_grid_t grid = rn_cuda_linalg_grid(x->stack, n);
  grid.y = grid_y(args.pieces);
  return rn_cuda_launch(ctx, rn_cuda_name("linalg/solve/solve", x->dtype).text, grid, &args,
                        sizeof args);
}

// Solves the |rows| of X from |at| on, whose other terms are subtracted already.
static rn_status_t solve_block(rn_kernel_ctx_t* ctx, rn_cuda_triangle_t triangle, int64_t at,
                               int64_t rows, const rn_cuda_matrices_t* a, int64_t columns,
                               const rn_cuda_matrices_t* x, const rn_cuda_matrices_t* inverse,
                               const rn_cuda_matrices_t* temp) {
  const rn_cuda_matrices_t block = part_of(a, at, at), mine = part_of(x, at, 0);
  const rn_cuda_matrices_t tight = dense(x->dtype, inverse->data, rows, rows, x->stack);
  RN_RETURN_IF_ERROR(solve_small(ctx, triangle, rows, &block, rows, NULL, &tight));
  RN_RETURN_IF_ERROR(multiply(ctx, rows, columns, rows, (operand_t){&tight, false},
                              (operand_t){&mine, false}, 1, 0, temp));
  return rn_cuda_copy_matrices(ctx, rows, columns, temp, &mine);
}

static rn_status_t solve_blocks(rn_kernel_ctx_t* ctx, rn_cuda_triangle_t triangle, int64_t n,
                                const rn_cuda_matrices_t* a, int64_t columns,
                                const rn_cuda_matrices_t* x, const rn_cuda_matrices_t* inverse,
                                const rn_cuda_matrices_t* temp) {
  const bool goes_down = triangle.is_lower != triangle.is_adjoint;
  const int64_t blocks = (n + PANEL - 1) / PANEL;
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t at = (goes_down ? step : blocks - 1 - step) * PANEL;
    const int64_t rows = at + PANEL < n ? PANEL : n - at;
    RN_RETURN_IF_ERROR(solve_block(ctx, triangle, at, rows, a, columns, x, inverse, temp));
    const int64_t rest = goes_down ? at + rows : 0, count = goes_down ? n - rest : at;
    if (count == 0) continue;
    const rn_cuda_matrices_t factor =
        triangle.is_adjoint ? part_of(a, at, rest) : part_of(a, rest, at);
    const rn_cuda_matrices_t solved = part_of(x, at, 0), others = part_of(x, rest, 0);
    RN_RETURN_IF_ERROR(multiply(ctx, count, columns, rows,
                                (operand_t){&factor, triangle.is_adjoint},
                                (operand_t){&solved, false}, -1, 1, &others));
  }
  return RN_OK;
}

rn_status_t rn_cuda_solve_triangle(rn_kernel_ctx_t* ctx, rn_cuda_triangle_t triangle, int64_t n,
                                   const rn_cuda_matrices_t* a, int64_t columns,
                                   const rn_cuda_matrices_t* x) {
  if (n <= SMALL) return solve_small(ctx, triangle, n, a, columns, x->data, x);
  rn_tensor_t tensors[2] = {{0}};
  rn_cuda_matrices_t inverse, temp;
  rn_status_t status = make_scratch(ctx, x->dtype, PANEL, PANEL, x->stack, &tensors[0], &inverse);
  if (rn_ok(status))
    status = make_scratch(ctx, x->dtype, PANEL, columns, x->stack, &tensors[1], &temp);
  if (rn_ok(status)) status = solve_blocks(ctx, triangle, n, a, columns, x, &inverse, &temp);
  rn_tensor_clear(&tensors[0]);
  rn_tensor_clear(&tensors[1]);
  return status;
}

static rn_status_t factor_panel(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t stack,
                                struct factor_args args) {
  return rn_cuda_launch(ctx, rn_cuda_name("linalg/solve/factor", dtype).text,
                        rn_cuda_linalg_grid(stack, args.n), &args, sizeof args);
}

static rn_status_t exchange(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, struct exchange_args args) {
  const int64_t blocks = (args.columns + RN_CUDA_BLOCK - 1) / RN_CUDA_BLOCK;
  rn_cuda_grid_t grid = {.x = (unsigned)blocks, .y = grid_y(args.stack), .block_x = RN_CUDA_BLOCK};
  return rn_cuda_launch(ctx, rn_cuda_name("linalg/solve/exchange", dtype).text, grid, &args,
                        sizeof args);
}

rn_status_t rn_cuda_exchange(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t n, int64_t stack,
                             void* x, int64_t columns, const void* pivots) {
  return exchange(
      ctx, dtype,
      (struct exchange_args){
          .x = x, .pivots = pivots, .n = n, .stack = stack, .columns = columns, .last = n});
}

// After the panel of columns [at, to): exchanges rows in the other columns, solves for the panel's
// rows of U, and subtracts their products from the rest.
static rn_status_t finish_panel(rn_kernel_ctx_t* ctx, const struct exchange_args* exchanges,
                                const rn_cuda_matrices_t* lu, int64_t at, int64_t to) {
  const int64_t n = exchanges->n, rows = to - at, rest = n - to;
  const rn_cuda_triangle_t unit_lower = {.is_lower = true, .has_unit_diagonal = true};
  RN_RETURN_IF_ERROR(exchange(ctx, lu->dtype, *exchanges));
  if (rest == 0) return RN_OK;
  rn_tensor_t tensors[2] = {{0}};
  rn_cuda_matrices_t inverse, temp;
  const rn_cuda_matrices_t block = part_of(lu, at, at), right = part_of(lu, at, to);
  const rn_cuda_matrices_t below = part_of(lu, to, at), others = part_of(lu, to, to);
  rn_status_t status = make_scratch(ctx, lu->dtype, rows, rows, lu->stack, &tensors[0], &inverse);
  if (rn_ok(status))
    status = make_scratch(ctx, lu->dtype, rows, rest, lu->stack, &tensors[1], &temp);
  if (rn_ok(status)) status = solve_small(ctx, unit_lower, rows, &block, rows, NULL, &inverse);
  if (rn_ok(status))
    status = multiply(ctx, rows, rest, rows, (operand_t){&inverse, false},
                      (operand_t){&right, false}, 1, 0, &temp);
  if (rn_ok(status)) status = rn_cuda_copy_matrices(ctx, rows, rest, &temp, &right);
  if (rn_ok(status))
    status = multiply(ctx, rest, rest, rows, (operand_t){&below, false}, (operand_t){&temp, false},
                      -1, 1, &others);
  rn_tensor_clear(&tensors[0]);
  rn_tensor_clear(&tensors[1]);
  return status;
}

rn_status_t rn_cuda_factor(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t n, int64_t stack,
                           void* lu, void* pivots, void* is_singular) {
  const rn_cuda_matrices_t all = dense(dtype, lu, n, n, stack);
  const int64_t width = n <= SMALL ? n : PANEL;
  rn_cusolver_t* solver = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_large_solver(ctx, dtype, stack, n, n, &solver));
  if (solver) return rn_cuda_large_factor(ctx, solver, dtype, n, stack, lu, pivots, is_singular);
  for (int64_t at = 0; at < n; at += width) {
    const int64_t to = at + width < n ? at + width : n;
    RN_RETURN_IF_ERROR(factor_panel(ctx, dtype, stack,
                                    (struct factor_args){.lu = lu,
                                                         .pivots = pivots,
                                                         .is_singular = is_singular,
                                                         .n = n,
                                                         .first = at,
                                                         .columns = to - at}));
    if (width == n) return RN_OK;
    const struct exchange_args exchanges = {.x = lu,
                                            .pivots = pivots,
                                            .n = n,
                                            .stack = stack,
                                            .columns = n,
                                            .first = at,
                                            .last = to,
                                            .skip = at,
                                            .skip_end = to};
    RN_RETURN_IF_ERROR(finish_panel(ctx, &exchanges, &all, at, to));
  }
  return RN_OK;
}

static rn_status_t factor_positive_block(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t stack,
                                         struct cholesky_args args) {
  return rn_cuda_launch(ctx, rn_cuda_name("linalg/solve/cholesky", dtype).text,
                        rn_cuda_linalg_grid(stack, args.n), &args, sizeof args);
}

// After the block of the diagonal at |at|: the panel below it, and what is right of that.
static rn_status_t finish_positive_panel(rn_kernel_ctx_t* ctx, const rn_cuda_matrices_t* l,
                                         int64_t n, int64_t at, int64_t to) {
  const int64_t rows = to - at, rest = n - to;
  const rn_cuda_triangle_t lower = {.is_lower = true};
  rn_tensor_t tensors[2] = {{0}};
  rn_cuda_matrices_t inverse, temp;
  const rn_cuda_matrices_t block = part_of(l, at, at), below = part_of(l, to, at);
  const rn_cuda_matrices_t others = part_of(l, to, to);
  rn_status_t status = make_scratch(ctx, l->dtype, rows, rows, l->stack, &tensors[0], &inverse);
  if (rn_ok(status)) status = make_scratch(ctx, l->dtype, rest, rows, l->stack, &tensors[1], &temp);
  if (rn_ok(status)) status = solve_small(ctx, lower, rows, &block, rows, NULL, &inverse);
  if (rn_ok(status))
    status = multiply(ctx, rest, rows, rows, (operand_t){&below, false},
                      (operand_t){&inverse, true}, 1, 0, &temp);
  if (rn_ok(status)) status = rn_cuda_copy_matrices(ctx, rest, rows, &temp, &below);
  if (rn_ok(status))
    status = multiply(ctx, rest, rest, rows, (operand_t){&temp, false}, (operand_t){&temp, true},
                      -1, 1, &others);
  rn_tensor_clear(&tensors[0]);
  rn_tensor_clear(&tensors[1]);
  return status;
}

static rn_status_t factor_positive_blocks(rn_kernel_ctx_t* ctx, const rn_cuda_matrices_t* l,
                                          int64_t n, rn_tensor_t* has_failed) {
  RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, has_failed));
  for (int64_t at = 0; at < n; at += PANEL) {
    const int64_t to = at + PANEL < n ? at + PANEL : n;
    RN_RETURN_IF_ERROR(factor_positive_block(ctx, l->dtype, l->stack,
                                             (struct cholesky_args){.l = part_of(l, at, at).data,
                                                                    .has_failed = has_failed->data,
                                                                    .n = to - at,
                                                                    .row = l->row,
                                                                    .stride = l->stride}));
    if (to < n) RN_RETURN_IF_ERROR(finish_positive_panel(ctx, l, n, at, to));
  }
  return RN_OK;
}

static rn_status_t factor_large_positive(rn_kernel_ctx_t* ctx, const rn_cuda_matrices_t* l,
                                         int64_t n, rn_tensor_t* has_failed) {
  rn_cusolver_t* solver = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_large_solver(ctx, l->dtype, l->stack, n, n, &solver));
  RN_RETURN_IF_ERROR(solver ? rn_cuda_large_factor_positive(ctx, solver, l->dtype, n, l->stack,
                                                            l->data, has_failed)
                            : factor_positive_blocks(ctx, l, n, has_failed));
  struct finish_cholesky_args args = {
      .l = l->data, .has_failed = has_failed->data, .n = n, .stack = l->stack};
  return rn_cuda_each(ctx, rn_cuda_name("linalg/solve/finish_cholesky", l->dtype).text,
                      l->stack * n * n, &args, sizeof args);
}

rn_status_t rn_cuda_factor_positive(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t n,
                                    int64_t stack, const void* a, void* l) {
  if (n <= SMALL)
    return factor_positive_block(
        ctx, dtype, stack,
        (struct cholesky_args){.a = a, .l = l, .n = n, .row = n, .stride = n * n});
  const rn_cuda_matrices_t to = dense(dtype, l, n, n, stack);
  const rn_cuda_matrices_t from = dense(dtype, (void*)a, n, n, stack);
  rn_tensor_t has_failed;
  if (a != l) RN_RETURN_IF_ERROR(rn_cuda_copy_matrices(ctx, n, n, &from, &to));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &stack}, &has_failed));
  rn_status_t status = factor_large_positive(ctx, &to, n, &has_failed);
  rn_tensor_clear(&has_failed);
  return status;
}
