// SparseMatMul: a matmul of matrices with many zeros. Computed as a dense one: the attributes are
// hints, and dense GEMM is faster except at extreme sparsity.
#include "kernels/cpu/array.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

typedef struct sparse_matmul_state_t {
  bool transpose_a, transpose_b;
} sparse_matmul_state_t;

static rn_status_t product_init(const rn_kernel_init_t* init, void* state_) {
  sparse_matmul_state_t* state = state_;
  state->transpose_a = rn_init_bool(init, "transpose_a");
  state->transpose_b = rn_init_bool(init, "transpose_b");
  return RN_OK;
}

static rn_status_t as_floats(rn_kernel_ctx_t* ctx, const rn_tensor_t* in, rn_tensor_t* temp,
                             const void** out) {
  *out = in->data;
  if (in->dtype == RN_FLOAT) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(in), temp));
  rn_vector_table()->widen_bfloat16(in->data, temp->data, in->count);
  *out = temp->data;
  return RN_OK;
}

static rn_status_t product_compute(rn_kernel_ctx_t* ctx) {
  const sparse_matmul_state_t* state = ctx->state;
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  if (a->rank != 2) return rn_invalid_argument("a is not a matrix");
  if (b->rank != 2) return rn_invalid_argument("b is not a matrix");
  rn_gemm_t gemm = {.dtype = RN_FLOAT,
                    .transpose_a = state->transpose_a,
                    .transpose_b = state->transpose_b,
                    .m = rn_tensor_dim(a, state->transpose_a ? 1 : 0),
                    .k = rn_tensor_dim(a, state->transpose_a ? 0 : 1),
                    .n = rn_tensor_dim(b, state->transpose_b ? 0 : 1)};
  if (gemm.k != rn_tensor_dim(b, state->transpose_b ? 1 : 0))
    return rn_invalid_argument("Matrix size incompatible: a: %s, b: %s", rn_text_of(a).text,
                               rn_text_of(b).text);
  int64_t dims[2] = {gemm.m, gemm.n};
  rn_tensor_t *out = NULL, temps[2] = {{0}};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  if (out->count == 0) return RN_OK;
  gemm.c = out->data;
  rn_status_t status = as_floats(ctx, a, &temps[0], &gemm.a);
  if (rn_ok(status)) status = as_floats(ctx, b, &temps[1], &gemm.b);
  if (rn_ok(status)) status = rn_gemm(rn_ctx_pool(ctx), &gemm);
  rn_tensor_clear(&temps[0]);
  rn_tensor_clear(&temps[1]);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SparseMatMul",
     .device = "CPU",
     .types = {{"Ta", RN_T(FLOAT) | RN_T(BFLOAT16)}, {"Tb", RN_T(FLOAT) | RN_T(BFLOAT16)}},
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(sparse_matmul_state_t),
     .init = product_init,
     .compute = product_compute},
};
RN_KERNEL_FAMILY(cpu_sparse_matmul, rows);
