// QR, SVD and eigenvalues of self-adjoint matrices on a GPU.
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cuda/linalg/linalg.h"

// After launch.h, which has its types.
#include "kernels/cuda/linalg/decompose_args.h"

// Blocks per multiprocessor: more would only take more scratch.
#define BLOCKS 4

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

// Issues |kernel| with |size| numbers of scratch per block.
static rn_status_t issue(rn_kernel_ctx_t* ctx, const char* kernel, struct decompose_args* args,
                         int64_t size) {
  const rn_dtype_t dtype = rn_in(ctx, 0)->dtype;
  const int64_t most = (int64_t)rn_cuda_card(ctx)->multiprocessors * BLOCKS;
  const int64_t blocks = args->stack < most ? args->stack : most;
  const int64_t dims[2] = {blocks, size};
  rn_tensor_t scratch;
  RN_RETURN_IF_ERROR(rn_temp(ctx, rn_dtype_is_complex(dtype) ? RN_COMPLEX128 : RN_DOUBLE,
                             (rn_shape_t){2, dims}, &scratch));
  args->scratch = scratch.data;
  args->scratch_size = size;
  rn_status_t status = rn_cuda_launch(
      ctx, rn_cuda_name(kernel, dtype).text,
      rn_cuda_linalg_grid(blocks, args->m > args->n ? args->m : args->n), args, sizeof *args);
  rn_tensor_clear(&scratch);
  return status;
}

static rn_status_t qr_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(rn_in(ctx, 0)));
  struct decompose_args args = args_of(ctx);
  const int64_t m = args.m, n = args.n, least = m < n ? m : n, width = args.is_full ? m : least;
  RN_RETURN_IF_ERROR(make_output(ctx, 0, 2, m, width, &args));
  RN_RETURN_IF_ERROR(make_output(ctx, 1, 2, width, n, &args));
  if (args.stack == 0 || m * width + width * n == 0) return RN_OK;
  return issue(ctx, "linalg/decompose/qr", &args, m * n + m * width + least + 1);
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
  const int64_t u = wants_vectors ? most * (args.is_full ? most : least) : 0;
  return issue(ctx, "linalg/decompose/singular", &args,
               2 * m * n + least * least + 3 * least + u + 1);
}

static rn_status_t eigen(rn_kernel_ctx_t* ctx, struct decompose_args* args) {
  const int64_t n = args->n, one = 1;
  rn_tensor_t flag;
  bool has_failed = false;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &one}, &flag));
  args->has_failed = flag.data;
  rn_status_t status = rn_cuda_zero(ctx, &flag);
  if (rn_ok(status))
    status = issue(ctx, "linalg/decompose/eigen", args, 2 * n * n + (n + 1) + n + 1);
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
  return args.stack && args.n ? eigen(ctx, &args) : RN_OK;
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

// The types are those of stock's GPU kernels.
#define ROW(op_, flags_, types_, init_, compute_)                                    \
  {                                                                                  \
    .op = op_, .device = "GPU", .flags = (flags_) | RN_KERNEL_EXPENSIVE,             \
    .state_size = sizeof(cuda_decompose_t), .types = {{"T", types_}}, .init = init_, \
    .compute = compute_                                                              \
  }
#define REAL (RN_T(FLOAT) | RN_T(DOUBLE))

static const rn_kernel_def_t rows[] = {
    ROW("Qr", RN_KERNEL_REPLAYS, REAL | RN_T(HALF) | RN_T(COMPLEX128), qr_init, qr_compute),
    ROW("Svd", RN_KERNEL_REPLAYS, REAL, singular_init, singular_compute),
    ROW("SelfAdjointEigV2", RN_KERNEL_ISSUES, REAL | RN_TYPES_COMPLEX, eigen_init, eigen_compute),
};
RN_KERNEL_FAMILY(cuda_decompose, rows);
