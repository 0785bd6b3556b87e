// Matrix products on a GPU: see matmul.h.
#include "kernels/cuda/math/matmul.h"

#include "kernels/cuda/libs/cublaslt.h"
#include "kernels/cuda/loops.h"

#define MAX_GRID_Y 65535
#define MAX_TILES INT32_MAX

// By our own kernels.

static struct matmul_args args_of(const rn_cuda_matmul_t* p) {
  return (struct matmul_args){.a = p->a,
                              .b = p->b,
                              .c = p->c,
                              .d = p->addend ? p->addend : p->c,
                              .bias = p->bias,
                              .m = p->m,
                              .n = p->n,
                              .k = p->k,
                              .batch = p->batch,
                              .a_row = p->transpose_a ? 1 : p->a_row,
                              .a_column = p->transpose_a ? p->a_row : 1,
                              .b_row = p->transpose_b ? 1 : p->b_row,
                              .b_column = p->transpose_b ? p->b_row : 1,
                              .c_row = p->c_row,
                              .a_stride = p->a_stride,
                              .b_stride = p->b_stride,
                              .c_stride = p->c_stride,
                              .alpha = p->alpha,
                              .beta = p->addend ? 1 : p->beta,
                              .conjugate_a = p->conjugate_a,
                              .conjugate_b = p->conjugate_b,
                              .activation = p->activation};
}

static rn_status_t by_tiles(const rn_kernel_ctx_t* ctx, const rn_cuda_matmul_t* p) {
  const int64_t rows = (p->m + RN_MATMUL_TILE - 1) / RN_MATMUL_TILE;
  const int64_t columns = (p->n + RN_MATMUL_TILE - 1) / RN_MATMUL_TILE;
  if (rows > MAX_TILES / columns)
    return rn_unimplemented("A product of more than 2^31 tiles on a GPU");
  struct matmul_args args = args_of(p);
  args.tiles = (i32)columns;
  const size_t sum =
      p->dtype == RN_INT8 || rn_dtype_size(p->dtype) == 2 ? sizeof(float) : rn_dtype_size(p->dtype);
  rn_cuda_grid_t grid = {.x = (unsigned)(rows * columns),
                         .y = (unsigned)(p->batch < MAX_GRID_Y ? p->batch : MAX_GRID_Y),
                         .block_x = RN_MATMUL_THREADS,
                         .shared = (unsigned)(sum * RN_MATMUL_SHARED)};
  return rn_cuda_launch(ctx, rn_cuda_name("math/matmul/multiply", p->dtype).text, grid, &args,
                        sizeof args);
}

static rn_status_t sum_b(const rn_kernel_ctx_t* ctx, const rn_cuda_matmul_t* p) {
  rn_jit_program_t program;
  rn_jit_begin(&program, 1, 0);
  int b = rn_jit_input(&program, p->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  rn_jit_output(&program, rn_jit_reduce(&program, RN_JIT_SUM, b), p->dtype);
  rn_jit_sizes_t sizes = {.count = p->n * p->k,
                          .outer = p->transpose_b ? p->n : 1,
                          .reduced = p->k,
                          .inner = p->transpose_b ? 1 : p->n};
  rn_jit_operand_t operand = {.address = (uintptr_t)p->b, .period = 1};
  rn_tensor_t sums = {.dtype = p->dtype, .count = p->n, .data = p->b_sums};
  rn_tensor_t* out = &sums;
  return rn_cuda_run(ctx, &program, &sizes, &operand, &out);
}

// By cuBLASLt.

typedef union matmul_number_t {
  int32_t i;
  float f[2];
  double d[2];
} matmul_number_t;

typedef struct matmul_types_t {
  int32_t in, out, compute, scale;
} matmul_types_t;

static bool types_of(const rn_kernel_ctx_t* ctx, const rn_cuda_matmul_t* p, matmul_types_t* out) {
  const int32_t single =
      !p->is_exact && rn_cuda_allows_tf32(ctx) ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  switch (p->dtype) {
    case RN_HALF:
      *out = (matmul_types_t){CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
      return true;
    case RN_BFLOAT16:
      *out = (matmul_types_t){CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
      return true;
    case RN_FLOAT:
      *out = (matmul_types_t){CUDA_R_32F, CUDA_R_32F, single, CUDA_R_32F};
      return true;
    case RN_DOUBLE:
      *out = (matmul_types_t){CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
      return true;
    case RN_COMPLEX64:
      *out = (matmul_types_t){CUDA_C_32F, CUDA_C_32F, single, CUDA_C_32F};
      return true;
    case RN_COMPLEX128:
      *out = (matmul_types_t){CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F};
      return true;
    case RN_INT8:
      *out = (matmul_types_t){CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I};
      return true;
    default:
      return false;
  }
}

static void set_number(matmul_number_t* out, int32_t type, double value) {
  *out = (matmul_number_t){.d = {0, 0}};
  if (type == CUDA_R_32I)
    out->i = (int32_t)value;
  else if (type == CUDA_R_32F || type == CUDA_C_32F)
    out->f[0] = (float)value;
  else
    out->d[0] = value;
}

static int32_t alignment_of(const void* address) {
  uintptr_t bits = (uintptr_t)address | 256;
  return (int32_t)(bits & (~bits + 1));
}

static int32_t epilogue_of(const rn_cuda_matmul_t* p) {
  static const int32_t plain[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU,
                                  CUBLASLT_EPILOGUE_GELU};
  static const int32_t biased[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
                                   CUBLASLT_EPILOGUE_GELU_BIAS};
  if (p->b_sums) return CUBLASLT_EPILOGUE_BGRADA;
  return p->bias ? biased[p->activation] : plain[p->activation];
}

// Row-major C = A B is column-major C^T = B^T A^T over the same bytes: the operands change places,
// and a row-major matrix that is to be transposed is a column-major one that is to be, too.
static bool product_of(const rn_kernel_ctx_t* ctx, const rn_cuda_matmul_t* p,
                       rn_cublaslt_product_t* out) {
  matmul_types_t types;
  if (!types_of(ctx, p, &types) || p->batch > INT32_MAX) return false;
  if ((p->conjugate_a && !p->transpose_a) || (p->conjugate_b && !p->transpose_b)) return false;
  memset(out, 0, sizeof *out);
  out->m = p->n, out->n = p->m, out->k = p->k, out->batch = p->batch;
  out->ld[0] = p->b_row, out->ld[1] = p->a_row, out->ld[2] = p->c_row;
  if (p->batch > 1)
    out->stride[0] = p->b_stride, out->stride[1] = p->a_stride, out->stride[2] = p->c_stride;
  out->type[0] = out->type[1] = types.in, out->type[2] = types.out;
  out->compute_type = types.compute, out->scale_type = types.scale;
  out->transpose[0] = p->conjugate_b ? CUBLAS_OP_C : p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  out->transpose[1] = p->conjugate_a ? CUBLAS_OP_C : p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  out->epilogue = epilogue_of(p);
  out->alignment[0] = alignment_of(p->b), out->alignment[1] = alignment_of(p->a);
  out->alignment[2] = alignment_of((void*)((uintptr_t)p->c | (uintptr_t)p->addend));
  out->has_beta = p->beta != 0 || p->addend;
  return true;
}

// The epilogue apart from the product.
static rn_status_t finish(const rn_kernel_ctx_t* ctx, const rn_cuda_matmul_t* p) {
  if (p->b_sums) return sum_b(ctx, p);
  struct matmul_args args = args_of(p);
  return rn_cuda_each(ctx, rn_cuda_name("math/matmul/finish", p->dtype).text,
                      p->m * p->n * p->batch, &args, sizeof args);
}

static rn_status_t by_library(const rn_kernel_ctx_t* ctx, rn_cublaslt_t* lt,
                              const rn_cuda_matmul_t* p, bool* out_done) {
  rn_cublaslt_product_t product;
  if (!product_of(ctx, p, &product)) return RN_OK;
  matmul_number_t alpha, beta;
  set_number(&alpha, product.scale_type, p->alpha);
  set_number(&beta, product.scale_type, p->addend ? 1 : p->beta);
  rn_cublaslt_operands_t operands = {.a = p->b,
                                     .b = p->a,
                                     .c = p->addend ? p->addend : p->c,
                                     .d = p->c,
                                     .bias = p->b_sums ? p->b_sums : (void*)p->bias,
                                     .alpha = &alpha,
                                     .beta = &beta};
  RN_RETURN_IF_ERROR(rn_cublaslt_multiply(lt, ctx->step->env, &product, &operands, out_done));
  if (*out_done || product.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return RN_OK;
  product.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  operands.bias = NULL;
  RN_RETURN_IF_ERROR(rn_cublaslt_multiply(lt, ctx->step->env, &product, &operands, out_done));
  return *out_done ? finish(ctx, p) : RN_OK;
}

static rn_status_t check(const rn_cuda_matmul_t* p) {
  if (p->b_sums && (p->batch > 1 || p->bias || p->activation))
    return rn_internal("A product with sums of B has one matrix and no other epilogue");
  if (p->addend && p->beta != 0) return rn_internal("A product has a beta or an addend, not both");
  if (p->b_sums && p->b_row != (p->transpose_b ? p->k : p->n))
    return rn_internal("A product with sums of B needs adjacent rows");
  if ((p->b_sums || p->bias || p->activation) && !rn_dtype_is_floating(p->dtype))
    return rn_internal("Products of integers and complex numbers have no epilogue");
  return RN_OK;
}

rn_cuda_matmul_t rn_cuda_matmul_of(const rn_gemm_t* gemm) {
  return (rn_cuda_matmul_t){.dtype = gemm->dtype,
                            .transpose_a = gemm->transpose_a,
                            .transpose_b = gemm->transpose_b,
                            .conjugate_a = gemm->conjugate_a,
                            .conjugate_b = gemm->conjugate_b,
                            .m = gemm->m,
                            .n = gemm->n,
                            .k = gemm->k,
                            .a = gemm->a,
                            .b = gemm->b,
                            .c = gemm->c};
}

rn_status_t rn_cuda_matmul(const rn_kernel_ctx_t* ctx, const rn_cuda_matmul_t* matmul) {
  rn_cuda_matmul_t p = *matmul;
  if (!p.batch) p.batch = 1;
  if (p.m == 0 || p.n == 0) return RN_OK;
  if (!p.a_row) p.a_row = p.transpose_a ? p.m : p.k;
  if (!p.b_row) p.b_row = p.transpose_b ? p.k : p.n;
  if (!p.c_row) p.c_row = p.n;
  if (p.alpha == 0) p.alpha = 1;
  RN_RETURN_IF_ERROR(check(&p));
  rn_cublaslt_t* lt = NULL;
  bool is_done = false;
  if (p.k > 0) RN_RETURN_IF_ERROR(rn_cublaslt_get(rn_cuda_card(ctx), ctx->step->env, &lt));
  if (lt) RN_RETURN_IF_ERROR(by_library(ctx, lt, &p, &is_done));
  if (is_done) return RN_OK;
  RN_RETURN_IF_ERROR(by_tiles(ctx, &p));
  return p.b_sums ? sum_b(ctx, &p) : RN_OK;
}
