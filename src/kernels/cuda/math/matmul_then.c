// Matmuls with the bias, the shortcut and the ReLU that follow them (step/fuse_matmul.c).
#include "kernels/cpu/array.h"
#include "kernels/cpu/matmul_shapes.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/libs/cublaslt.h"
#include "kernels/cuda/math/matmul.h"

typedef struct matmul_then_t {
  rn_matmul_attrs_t attrs;
  bool has_bias, has_addend, has_relu;
  int rank;  // of the result; 0: that of A
  int64_t dims[RN_MAX_RANK];
} matmul_then_t;

static rn_status_t then_init(const rn_kernel_init_t* init, void* state) {
  matmul_then_t* then = state;
  rn_cuda_open_ahead(init, rn_cublaslt_open);
  RN_RETURN_IF_ERROR(rn_matmul_init(init, &then->attrs));
  then->has_bias = rn_init_int(init, "N") != 0;
  then->has_addend = rn_init_int(init, "M") != 0;
  then->has_relu = rn_init_bool(init, "has_relu");
  const rn_attr_value_t* dims = rn_init_attr(init, "dims");
  if (dims->count > RN_MAX_RANK) return rn_internal("The shape of a fused matmul is too long");
  then->rank = dims->count;
  for (int d = 0; d < then->rank; ++d) then->dims[d] = dims->list_i[d];
  return RN_OK;
}

// The sizes, with all rows of A as one matrix, and the shape of the result.
static rn_status_t sizes_of(const matmul_then_t* then, const rn_tensor_t* a, const rn_tensor_t* b,
                            rn_gemm_t* gemm, int64_t dims[RN_MAX_RANK], int* out_rank) {
  if (a->rank < 2 || b->rank != 2 || (a->rank > 2 && then->attrs.transpose_a))
    return rn_internal("A fused matmul multiplies by one matrix");
  RN_RETURN_IF_ERROR(rn_matmul_sizes(&then->attrs, a, b, gemm));
  const int last = a->rank - 1;
  memcpy(dims, rn_tensor_dims(a), (size_t)a->rank * sizeof *dims);
  dims[last - 1] = gemm->m, dims[last] = gemm->n;
  if (a->rank > 2) gemm->m = rn_dims_product(dims, 0, last);
  *out_rank = then->rank ? then->rank : a->rank;
  if (then->rank) memcpy(dims, then->dims, (size_t)then->rank * sizeof *dims);
  return RN_OK;
}

static rn_status_t then_compute(rn_kernel_ctx_t* ctx) {
  const matmul_then_t* then = ctx->state;
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const rn_tensor_t* bias = then->has_bias ? rn_in(ctx, 2) : NULL;
  const rn_tensor_t* addend = then->has_addend ? rn_in(ctx, 2 + then->has_bias) : NULL;
  rn_gemm_t gemm = {0};
  int64_t dims[RN_MAX_RANK];
  int rank;
  RN_RETURN_IF_ERROR(sizes_of(then, a, b, &gemm, dims, &rank));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, dims}, &y));
  if (y->count != gemm.m * gemm.n || (bias && bias->count != gemm.n) ||
      (addend && addend->count != y->count))
    return rn_internal("Operands of a fused matmul do not fit");
  gemm.a = a->data;
  gemm.b = b->data;
  gemm.c = y->data;
  rn_cuda_matmul_t matmul = rn_cuda_matmul_of(&gemm);
  if (bias) matmul.bias = bias->data;
  if (addend) matmul.addend = addend->data;
  if (then->has_relu) matmul.activation = RN_MATMUL_RELU;
  return rn_cuda_matmul(ctx, &matmul);
}

static const rn_kernel_def_t rows[] = {
    {.op = "_MatMulThen",
     .device = "GPU",
     .types = {{"T", RN_T(HALF) | RN_T(BFLOAT16) | RN_T(FLOAT)}},
     .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(matmul_then_t),
     .init = then_init,
     .compute = then_compute},
};
RN_KERNEL_FAMILY(cuda_matmul_then, rows);
