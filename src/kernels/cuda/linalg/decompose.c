// QR, SVD and eigenvalues of self-adjoint matrices on a GPU.
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cuda/linalg/large.h"
#include "kernels/cuda/linalg/linalg.h"

// After launch.h, which has its types.
#include "kernels/cuda/linalg/decompose_args.h"

// Blocks per multiprocessor: more would only take more scratch.
#define BLOCKS 4
// A few matrices with sides above this take launches per round; otherwise a block does all rounds.
#define LARGE 128
#define FEW 4

typedef struct cuda_decompose_t {
  bool wants_vectors, is_full;
} cuda_decompose_t;

// Makes output |i| with the outer dims of the input, then |count| dims.
static rn_status_t make_output(rn_kernel_ctx_t* ctx, int i, int count, int64_t rows,
                               int64_t columns, struct decompose_args* args) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t dims[RN_MAX_RANK + 2];
  const int rank = in->rank - 2;
  memcpy(dims, rn_tensor_dims(in), (size_t)rank * sizeof *dims);
  dims[rank] = rows;
  dims[rank + 1] = columns;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){rank + count, dims}, &out));
  args->outs[i] = out->data;
  return RN_OK;
}

// Vectors that were not requested are a scalar, as in stock, whatever the static shape says.
static rn_status_t no_vectors(rn_kernel_ctx_t* ctx, int i) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){0, NULL}, &out));
  return rn_cuda_zero(ctx, out);
}

static struct decompose_args args_of(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  return (struct decompose_args){.a = a->data,
                                 .m = rn_tensor_dim(a, a->rank - 2),
                                 .n = rn_tensor_dim(a, a->rank - 1),
                                 .stack = rn_linalg_stack(a),
                                 .is_full = ((const cuda_decompose_t*)ctx->state)->is_full};
}

// A decomposition: names of kernels, and scratch per matrix in numbers of the computing type.
typedef struct cuda_decomposition_t {
  const char* all;  // does everything with one block per matrix
  const char *begin, *end;
  const char* rounds[3];  // kernels of one round, in order
  int64_t size;
} cuda_decomposition_t;

static rn_status_t issue_ends(rn_kernel_ctx_t* ctx, const char* kernel,
                              const struct decompose_args* args, int64_t blocks) {
  const int64_t side = args->m > args->n ? args->m : args->n;
  return rn_cuda_launch(ctx, rn_cuda_name(kernel, rn_in(ctx, 0)->dtype).text,
                        rn_cuda_linalg_grid(blocks, side), args, sizeof *args);
}

// One round of rotations of all matrices.
static rn_status_t issue_round(rn_kernel_ctx_t* ctx, const cuda_decomposition_t* work,
                               const struct round_args* args) {
  const bool is_complex = rn_dtype_is_complex(rn_in(ctx, 0)->dtype);
  const int64_t pairs = (args->n + 1) / 2;
  rn_cuda_grid_t grid = {.y = (unsigned)args->stack,
                         .block_x = args->m <= 256    ? 32
                                    : args->m <= 1024 ? 128
                                                      : 256};
  for (int i = 0; i < 3 && work->rounds[i]; ++i) {
    // Angles take a thread per pair, rotations a block.
    const bool are_angles = i == 0 && work->rounds[1];
    grid.x = (unsigned)(are_angles ? (pairs + grid.block_x - 1) / grid.block_x : pairs);
    RN_RETURN_IF_ERROR(rn_cuda_launch(
        ctx, rn_cuda_name(work->rounds[i], is_complex ? RN_COMPLEX128 : RN_DOUBLE).text, grid, args,
        sizeof *args));
  }
  return RN_OK;
}

// Sweeps until nothing moves. The host looks at |moves| after each.
static rn_status_t sweep(rn_kernel_ctx_t* ctx, const cuda_decomposition_t* work,
                         struct round_args* args, rn_tensor_t* moves) {
  const int64_t rounds = (args->n + 1) / 2 * 2 - 1;
  bool goes_on = true;
  args->moves = moves->data;
  for (int i = 0; goes_on && i < RN_DECOMPOSE_SWEEPS; ++i) {
    RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, moves));
    for (args->round = 0; args->round < rounds; ++args->round)
      RN_RETURN_IF_ERROR(issue_round(ctx, work, args));
    RN_RETURN_IF_ERROR(rn_cuda_read_flag(ctx, moves, &goes_on));
  }
  return RN_OK;
}

static rn_status_t issue_large(rn_kernel_ctx_t* ctx, const cuda_decomposition_t* work,
                               const struct decompose_args* args) {
  const bool is_tall = args->m >= args->n;
  const int64_t one = 1;
  struct round_args round = {.scratch = args->scratch,
                             .scratch_size = args->scratch_size,
                             .m = is_tall ? args->m : args->n,
                             .n = is_tall ? args->n : args->m,
                             .stack = args->stack,
                             .wants_vectors = args->outs[1] != NULL};
  rn_tensor_t moves;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &one}, &moves));
  rn_status_t status = issue_ends(ctx, work->begin, args, args->stack);
  if (rn_ok(status)) status = sweep(ctx, work, &round, &moves);
  if (rn_ok(status)) status = issue_ends(ctx, work->end, args, args->stack);
  rn_tensor_clear(&moves);
  return status;
}

static rn_status_t issue(rn_kernel_ctx_t* ctx, const cuda_decomposition_t* work,
                         struct decompose_args* args) {
  const bool is_complex = rn_dtype_is_complex(rn_in(ctx, 0)->dtype);
  const bool is_large = work->begin && args->stack <= FEW && args->m > LARGE && args->n > LARGE;
  const int64_t most = (int64_t)rn_cuda_card(ctx)->multiprocessors * BLOCKS;
  const int64_t blocks = args->stack < most ? args->stack : most;
  const int64_t dims[2] = {blocks, work->size};
  rn_tensor_t scratch;
  RN_RETURN_IF_ERROR(
      rn_temp(ctx, is_complex ? RN_COMPLEX128 : RN_DOUBLE, (rn_shape_t){2, dims}, &scratch));
  args->scratch = scratch.data;
  args->scratch_size = work->size;
  rn_status_t status =
      is_large ? issue_large(ctx, work, args) : issue_ends(ctx, work->all, args, blocks);
  rn_tensor_clear(&scratch);
  return status;
}

// By cuSOLVER, if it takes such matrices and |decompose|, which may fail, does not.
static rn_status_t issue_by_library(rn_kernel_ctx_t* ctx, const struct decompose_args* args,
                                    rn_status_t (*decompose)(rn_kernel_ctx_t* ctx,
                                                             rn_cusolver_t* solver,
                                                             const rn_cuda_large_t* work,
                                                             bool* out_done),
                                    bool* out_done) {
  const rn_dtype_t dtype = rn_in(ctx, 0)->dtype;
  rn_cusolver_t* solver = NULL;
  *out_done = false;
  RN_RETURN_IF_ERROR(rn_cuda_large_solver(ctx, dtype, args->stack, args->m, args->n, &solver));
  if (!solver) return RN_OK;
  const rn_cuda_large_t work = {.dtype = dtype,
                                .m = args->m,
                                .n = args->n,
                                .stack = args->stack,
                                .a = args->a,
                                .outs = {args->outs[0], args->outs[1], args->outs[2]},
                                .is_full = args->is_full};
  return decompose(ctx, solver, &work, out_done);
}

static rn_status_t qr_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(rn_in(ctx, 0)));
  struct decompose_args args = args_of(ctx);
  const int64_t m = args.m, n = args.n, least = m < n ? m : n, width = args.is_full ? m : least;
  RN_RETURN_IF_ERROR(make_output(ctx, 0, 2, m, width, &args));
  RN_RETURN_IF_ERROR(make_output(ctx, 1, 2, width, n, &args));
  if (args.stack == 0 || m * width + width * n == 0) return RN_OK;
  bool done = false;
  RN_RETURN_IF_ERROR(issue_by_library(ctx, &args, rn_cuda_large_qr, &done));
  if (done) return RN_OK;
  const cuda_decomposition_t work = {.all = "linalg/decompose/qr",
                                     .size = m * n + m * width + least + 1};
  return issue(ctx, &work, &args);
}

static rn_status_t singular_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(rn_in(ctx, 0)));
  struct decompose_args args = args_of(ctx);
  const int64_t m = args.m, n = args.n, least = m < n ? m : n, most = m < n ? n : m;
  const bool wants_vectors = ((const cuda_decompose_t*)ctx->state)->wants_vectors;
  RN_RETURN_IF_ERROR(make_output(ctx, 0, 1, least, 0, &args));
  if (wants_vectors) {
    RN_RETURN_IF_ERROR(make_output(ctx, 1, 2, m, args.is_full ? m : least, &args));
    RN_RETURN_IF_ERROR(make_output(ctx, 2, 2, n, args.is_full ? n : least, &args));
  } else {
    RN_RETURN_IF_ERROR(no_vectors(ctx, 1));
    RN_RETURN_IF_ERROR(no_vectors(ctx, 2));
  }
  if (args.stack == 0 || most == 0) return RN_OK;
  bool done = false;
  RN_RETURN_IF_ERROR(issue_by_library(ctx, &args, rn_cuda_large_singular, &done));
  if (done) return RN_OK;
  const int64_t u = wants_vectors ? most * (args.is_full ? most : least) : 0;
  const cuda_decomposition_t work = {.all = "linalg/decompose/singular",
                                     .begin = "linalg/decompose/singular_begin",
                                     .end = "linalg/decompose/singular_end",
                                     .rounds = {"linalg/decompose/singular_round"},
                                     .size = 2 * m * n + least * least + 3 * least + u + 2};
  return issue(ctx, &work, &args);
}

static rn_status_t eigen(rn_kernel_ctx_t* ctx, struct decompose_args* args) {
  const int64_t n = args->n, one = 1;
  rn_tensor_t flag;
  bool has_failed = false;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &one}, &flag));
  args->has_failed = flag.data;
  rn_status_t status = rn_cuda_zero(ctx, &flag);
  const cuda_decomposition_t work = {
      .all = "linalg/decompose/eigen",
      .begin = "linalg/decompose/eigen_begin",
      .end = "linalg/decompose/eigen_end",
      .rounds = {"linalg/decompose/eigen_angles", "linalg/decompose/eigen_rows",
                 "linalg/decompose/eigen_columns"},
      .size = 2 * n * n + (n + 1) + 2 * n + 2};
  if (rn_ok(status)) status = issue(ctx, &work, args);
  if (rn_ok(status)) status = rn_cuda_read_flag(ctx, &flag, &has_failed);
  rn_tensor_clear(&flag);
  if (rn_ok(status) && has_failed)
    status = rn_invalid_argument(
        "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
  return status;
}

static rn_status_t eigen_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_linalg_check_square(rn_in(ctx, 0)));
  struct decompose_args args = args_of(ctx);
  RN_RETURN_IF_ERROR(make_output(ctx, 0, 1, args.n, 0, &args));
  if (((const cuda_decompose_t*)ctx->state)->wants_vectors)
    RN_RETURN_IF_ERROR(make_output(ctx, 1, 2, args.n, args.n, &args));
  else
    RN_RETURN_IF_ERROR(no_vectors(ctx, 1));
  if (args.stack == 0 || args.n == 0) return RN_OK;
  bool done = false;
  RN_RETURN_IF_ERROR(issue_by_library(ctx, &args, rn_cuda_large_eigen, &done));
  return done ? RN_OK : eigen(ctx, &args);
}

static rn_status_t qr_init(const rn_kernel_init_t* init, void* state) {
  ((cuda_decompose_t*)state)->is_full = rn_init_bool(init, "full_matrices");
  return RN_OK;
}

static rn_status_t singular_init(const rn_kernel_init_t* init, void* state) {
  ((cuda_decompose_t*)state)->wants_vectors = rn_init_bool(init, "compute_uv");
  return qr_init(init, state);
}

static rn_status_t eigen_init(const rn_kernel_init_t* init, void* state) {
  ((cuda_decompose_t*)state)->wants_vectors = rn_init_bool(init, "compute_v");
  return RN_OK;
}

// The types are those of stock's GPU kernels. Svd and SelfAdjointEigV2 wait for the card, and
// cuSOLVER forms Q with factors that it copies from the host, so none of them can be replayed.
#define ROW(op_, flags_, types_, init_, compute_)                                    \
  {                                                                                  \
    .op = op_, .device = "GPU", .flags = (flags_) | RN_KERNEL_EXPENSIVE,             \
    .state_size = sizeof(cuda_decompose_t), .types = {{"T", types_}}, .init = init_, \
    .compute = compute_                                                              \
  }
#define REAL (RN_T(FLOAT) | RN_T(DOUBLE))

static const rn_kernel_def_t rows[] = {
    ROW("Qr", RN_KERNEL_ISSUES, REAL | RN_T(HALF) | RN_T(COMPLEX128), qr_init, qr_compute),
    ROW("Svd", RN_KERNEL_ISSUES, REAL, singular_init, singular_compute),
    ROW("SelfAdjointEigV2", RN_KERNEL_ISSUES, REAL | RN_TYPES_COMPLEX, eigen_init, eigen_compute),
};
RN_KERNEL_FAMILY(cuda_decompose, rows);
