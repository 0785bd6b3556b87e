// Ops on CSR matrices that keep their entries and change the values.
#include "kernels/cuda/sparse/csr_card.h"

rn_status_t rn_cuda_csr_output_like(rn_kernel_ctx_t* ctx, rn_csr_t* in, void** out_values) {
  rn_csr_parts_t parts = {0};
  rn_tensor_t starts = {0};
  rn_csr_t* csr = NULL;
  rn_status_t status = rn_tensor_share(&in->starts, &starts);
  for (int p = 0; rn_ok(status) && p < RN_CSR_VALUES; ++p)
    status = rn_tensor_share(&in->part[p], &parts.part[p]);
  const rn_tensor_t* values = &in->part[RN_CSR_VALUES];
  if (rn_ok(status))
    status = rn_tensor_create(ctx->kernel->device->allocator, values->dtype,
                              rn_tensor_shape(values), &parts.part[RN_CSR_VALUES]);
  if (!rn_ok(status)) {
    rn_csr_parts_clear(&parts);
    rn_tensor_clear(&starts);
    return status;
  }
  *out_values = parts.part[RN_CSR_VALUES].data;
  RN_RETURN_IF_ERROR(
      rn_csr_create_on(ctx->kernel->allocator, ctx->kernel->device, parts.part, &starts, &csr));
  return rn_csr_output(ctx, 0, csr);
}

static rn_status_t multiply(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* b = rn_in(ctx, 1);
  rn_csr_t* in = NULL;
  rn_cuda_csr_scale_args args = {.factors = b->data, .step = b->rank == 3};
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &in));
  if (b->rank != 0 && b->rank != 3)
    return rn_unimplemented("b must be a scalar or shaped [batch_size, 1, 1]");
  if (in->dtype != b->dtype)
    return rn_invalid_argument("Input types don't match.  a.dtype == %s vs. b.dtype == %s",
                               rn_dtype_name(in->dtype), rn_dtype_name(b->dtype));
  if (b->rank == 3 && (in->rank != 3 || b->count != in->count || rn_tensor_dim(b, 0) != in->count))
    return rn_invalid_argument("b must have a number for each of %lld matrices, but has %lld",
                               (long long)in->count, (long long)b->count);
  args.in = rn_cuda_csr_matrices_of(in);
  RN_RETURN_IF_ERROR(rn_cuda_csr_output_like(ctx, in, &args.values));
  return rn_cuda_each(ctx, rn_cuda_name("sparse/csr/scale", in->dtype).text, in->count * in->height,
                      &args, sizeof args);
}

static rn_status_t softmax(rn_kernel_ctx_t* ctx) {
  rn_csr_t* in = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &in));
  const rn_dtype_t wanted = *(const rn_dtype_t*)ctx->state;
  if (in->dtype != wanted)
    return rn_invalid_argument("dtype of logits is not equal to 'type': %s vs. %s",
                               rn_dtype_name(in->dtype), rn_dtype_name(wanted));
  rn_cuda_csr_softmax_args args = {.in = rn_cuda_csr_matrices_of(in)};
  RN_RETURN_IF_ERROR(rn_cuda_csr_output_like(ctx, in, &args.values));
  return rn_cuda_each(ctx, rn_cuda_name("sparse/csr/softmax", in->dtype).text,
                      in->count * in->height, &args, sizeof args);
}

static rn_status_t softmax_grad(rn_kernel_ctx_t* ctx) {
  rn_csr_t *in = NULL, *grad = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_cuda_csr_in(ctx, 1, &grad));
  const rn_dtype_t wanted = *(const rn_dtype_t*)ctx->state;
  if (in->dtype != wanted || grad->dtype != wanted)
    return rn_invalid_argument("dtypes of softmax and grad_softmax must be %s, but are %s and %s",
                               rn_dtype_name(wanted), rn_dtype_name(in->dtype),
                               rn_dtype_name(grad->dtype));
  RN_RETURN_IF_ERROR(rn_csr_check_same(in, grad));
  rn_cuda_csr_softmax_args args = {.in = rn_cuda_csr_matrices_of(in),
                                   .grad = rn_cuda_csr_matrices_of(grad)};
  RN_RETURN_IF_ERROR(rn_cuda_csr_output_like(ctx, in, &args.values));
  return rn_cuda_each(ctx, rn_cuda_name("sparse/csr/softmax_grad", in->dtype).text,
                      in->count * in->height, &args, sizeof args);
}

static rn_status_t type_init(const rn_kernel_init_t* init, void* state) {
  *(rn_dtype_t*)state = rn_init_type(init, "type");
  return RN_OK;
}

#define REAL (RN_T(FLOAT) | RN_T(DOUBLE))
#define SOFTMAX(op_, compute_)                                                               \
  {                                                                                          \
    .op = op_, .device = "GPU", .types = {{"type", REAL}}, .state_size = sizeof(rn_dtype_t), \
    .init = type_init, .compute = compute_                                                   \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "SparseMatrixMul",
     .device = "GPU",
     .types = {{"T", REAL | RN_TYPES_COMPLEX}},
     .compute = multiply},
    SOFTMAX("SparseMatrixSoftmax", softmax),
    SOFTMAX("SparseMatrixSoftmaxGrad", softmax_grad),
};
RN_KERNEL_FAMILY(cuda_csr_values, rows);
