// MatMul and BatchMatMul on a GPU.
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/batches.h"
#include "kernels/cuda/libs/cublaslt.h"
#include "kernels/cuda/math/matmul.h"

static rn_status_t matmul_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  rn_gemm_t gemm = {0};
  RN_RETURN_IF_ERROR(rn_matmul_check(ctx->state, a, b, &gemm));
  int64_t dims[2] = {gemm.m, gemm.n};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  gemm.a = a->data;
  gemm.b = b->data;
  gemm.c = out->data;
  rn_cuda_matmul_t matmul = rn_cuda_matmul_of(&gemm);
  return rn_cuda_matmul(ctx, &matmul);
}

static rn_status_t multiply_batch(rn_kernel_ctx_t* ctx, const rn_cuda_batch_t* batch, void* arg) {
  rn_cuda_matmul_t matmul = *(const rn_cuda_matmul_t*)arg;
  const int64_t a = matmul.m * matmul.k, b = matmul.k * matmul.n, c = matmul.m * matmul.n;
  const size_t item = rn_dtype_size(matmul.dtype);
  matmul.a = (const char*)matmul.a + (size_t)(batch->a_at * a) * item;
  matmul.b = (const char*)matmul.b + (size_t)(batch->b_at * b) * item;
  matmul.c = (char*)matmul.c + (size_t)(batch->c_at * c) * item;
  // Many matrices times the same one are a single product with more rows.
  if (batch->a_step == 1 && batch->b_step == 0 && batch->c_step == 1 && !matmul.transpose_a) {
    matmul.m *= batch->size;
    return rn_cuda_matmul(ctx, &matmul);
  }
  matmul.batch = batch->size;
  matmul.a_stride = batch->a_step * a;
  matmul.b_stride = batch->b_step * b;
  matmul.c_stride = batch->c_step * c;
  return rn_cuda_matmul(ctx, &matmul);
}

static rn_status_t compute_scaled(rn_kernel_ctx_t* ctx, double scale) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  rn_gemm_t gemm = {0};
  rn_matmul_batch_t batch;
  RN_RETURN_IF_ERROR(rn_batch_matmul_check(ctx->state, a, b, &gemm, &batch));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){batch.rank + 2, batch.dims}, &out));
  if (out->count == 0) return RN_OK;
  gemm.a = a->data;
  gemm.b = b->data;
  gemm.c = out->data;
  rn_cuda_matmul_t matmul = rn_cuda_matmul_of(&gemm);
  matmul.alpha = scale;
  return rn_cuda_batches(ctx, &batch, multiply_batch, &matmul);
}

static rn_status_t batch_compute(rn_kernel_ctx_t* ctx) { return compute_scaled(ctx, 1); }

// See step/scale_matmuls.c.
typedef struct scaled_t {
  rn_matmul_attrs_t attrs;  // first
  float scale;
} scaled_t;

static rn_status_t scaled_compute(rn_kernel_ctx_t* ctx) {
  return compute_scaled(ctx, (double)((const scaled_t*)ctx->state)->scale);
}

static rn_status_t matmul_init(const rn_kernel_init_t* init, void* state) {
  rn_cuda_open_ahead(init, rn_cublaslt_open);
  return rn_matmul_init(init, state);
}

static rn_status_t batch_init(const rn_kernel_init_t* init, void* state) {
  rn_cuda_open_ahead(init, rn_cublaslt_open);
  return rn_batch_matmul_init(init, state);
}

static rn_status_t scaled_init(const rn_kernel_init_t* init, void* state) {
  ((scaled_t*)state)->scale = rn_init_float(init, "scale");
  return batch_init(init, &((scaled_t*)state)->attrs);
}

#define ROW(name, init_, compute_)                                                             \
  {                                                                                            \
    .op = name, .device = "GPU", .types = {{"T", RN_TYPES_FLOATS | RN_TYPES_COMPLEX}},         \
    .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_matmul_attrs_t), \
    .init = init_, .compute = compute_                                                         \
  }
#define SAME(type)                                                                             \
  {                                                                                            \
    .op = "BatchMatMulV3", .device = "GPU",                                                    \
    .types = {{"Ta", RN_T(type)}, {"Tb", RN_T(type)}, {"Tout", RN_T(type)}},                   \
    .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_matmul_attrs_t), \
    .init = batch_init, .compute = batch_compute                                               \
  }

static const rn_kernel_def_t rows[] = {
    ROW("MatMul", matmul_init, matmul_compute),
    ROW("BatchMatMul", rn_batch_matmul_v1_init, batch_compute),
    ROW("BatchMatMulV2", batch_init, batch_compute),
    {.op = "_ScaledBatchMatMul",
     .device = "GPU",
     .types = {{"T", RN_T(HALF) | RN_T(BFLOAT16) | RN_T(FLOAT)}},
     .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(scaled_t),
     .init = scaled_init,
     .compute = scaled_compute},
    SAME(HALF),
    SAME(BFLOAT16),
    SAME(FLOAT),
    SAME(DOUBLE),
    SAME(COMPLEX64),
    SAME(COMPLEX128),
};
RN_KERNEL_FAMILY(cuda_matmul, rows);
