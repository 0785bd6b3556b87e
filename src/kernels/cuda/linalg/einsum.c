// Einsum on a GPU: copies, sums and products of kernels/cpu/linalg/einsum.c.
#include "kernels/cpu/linalg/einsum.h"

#include "kernels/cuda/loops.h"
#include "kernels/cuda/math/matmul.h"

// After launch.h, which has its types.
#include "kernels/cuda/linalg/einsum_args.h"

static rn_status_t copy_elements(rn_kernel_ctx_t* ctx, const rn_einsum_copy_t* copy) {
  if (copy->rank > RN_EINSUM_RANK)
    return rn_unimplemented("Einsum over %d dimensions on a GPU", copy->rank);
  struct einsum_copy_args args = {
      .from = copy->from, .to = copy->to, .count = 1, .rank = copy->rank};
  for (int d = 0; d < copy->rank; ++d) args.count *= copy->sizes[d];
  args.is_wide = args.count > INT32_MAX;
  for (int d = 0; d < copy->rank; ++d) {
    args.sizes[d] = copy->sizes[d];
    if (!args.is_wide) args.by[d] = rn_divisor((u32)copy->sizes[d]);
    args.from_strides[d] = copy->from_strides[d];
    args.to_strides[d] = copy->to_strides[d];
  }
  return rn_cuda_each(ctx, rn_cuda_size_name("linalg/einsum/copy", copy->dtype).text, args.count,
                      &args, sizeof args);
}

static rn_status_t add_up(rn_kernel_ctx_t* ctx, rn_tensor_t* temp, int64_t parts, int64_t size) {
  rn_tensor_t sums;
  RN_RETURN_IF_ERROR(rn_temp(ctx, temp->dtype, (rn_shape_t){1, &size}, &sums));
  rn_jit_program_t program;
  rn_jit_begin(&program, 1, 0);
  int x = rn_jit_input(&program, temp->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  rn_jit_output(&program, rn_jit_reduce(&program, RN_JIT_SUM, x), temp->dtype);
  rn_jit_sizes_t sizes = {.count = parts * size, .outer = 1, .reduced = parts, .inner = size};
  rn_jit_operand_t operand = {.address = (uintptr_t)temp->data, .period = 1};
  rn_tensor_t* out = &sums;
  rn_status_t status = rn_cuda_run(ctx, &program, &sizes, &operand, &out);
  rn_tensor_clear(temp);
  *temp = sums;
  return status;
}

static rn_status_t multiply(rn_kernel_ctx_t* ctx, const rn_gemm_t* gemm, int64_t batch) {
  rn_cuda_matmul_t matmul = rn_cuda_matmul_of(gemm);
  matmul.batch = batch;
  matmul.a_stride = gemm->m * gemm->k;
  matmul.b_stride = gemm->k * gemm->n;
  matmul.c_stride = gemm->m * gemm->n;
  return rn_cuda_matmul(ctx, &matmul);
}

static rn_status_t zero(rn_kernel_ctx_t* ctx, rn_tensor_t* out) { return rn_cuda_zero(ctx, out); }

static rn_status_t einsum_compute(rn_kernel_ctx_t* ctx) {
  static const rn_einsum_device_t gpu = {zero, copy_elements, add_up, multiply};
  return rn_einsum_run(ctx, &gpu);
}

static const rn_kernel_def_t rows[] = {
    {.op = "Einsum",
     .device = "GPU",
     .types = {{"T", RN_TYPES_FLOATS | RN_TYPES_COMPLEX}},
     .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(rn_einsum_t),
     .init = rn_einsum_init,
     .compute = einsum_compute},
};
RN_KERNEL_FAMILY(cuda_einsum, rows);
