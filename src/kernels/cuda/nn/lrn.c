// LRN, local response normalization across channels, and its gradient.
#include "kernels/cpu/nn/lrn.h"

#include "kernels/cuda/nn/lrn_args.h"

static struct rn_lrn_args args_of(rn_kernel_ctx_t* ctx, const rn_tensor_t* x, rn_tensor_t* out) {
  const rn_lrn_t* lrn = ctx->state;
  const int64_t depth = rn_tensor_dim(x, 3);
  return (struct rn_lrn_args){.x = x->data,
                              .out = out->data,
                              .count = out->count,
                              .depth = depth,
                              .radius = lrn->radius < depth ? lrn->radius : depth,
                              .bias = lrn->bias,
                              .alpha = lrn->alpha,
                              .beta = lrn->beta};
}

static rn_status_t forward(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_lrn_check(ctx));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &out));
  if (out->count == 0) return RN_OK;
  struct rn_lrn_args args = args_of(ctx, x, out);
  return rn_cuda_each(ctx, rn_cuda_name("nn/lrn/forward", x->dtype).text, out->count, &args,
                      sizeof args);
}

static rn_status_t gradient(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1), *y = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(rn_lrn_grad_check(ctx));
  rn_tensor_t *out = NULL, scratch = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(dy), &out));
  if (out->count == 0) return RN_OK;
  const int64_t dims[2] = {2, out->count};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){2, dims}, &scratch));
  struct rn_lrn_args args = args_of(ctx, x, out);
  args.dy = dy->data;
  args.y = y->data;
  args.norms = scratch.data;
  args.ratios = args.norms + out->count;
  rn_status_t status = rn_cuda_each(ctx, rn_cuda_name("nn/lrn/ratios", x->dtype).text, out->count,
                                    &args, sizeof args);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_name("nn/lrn/gradient", x->dtype).text, out->count, &args,
                          sizeof args);
  rn_tensor_clear(&scratch);
  return status;
}

#define ROW(name, function)                                                          \
  {                                                                                  \
    .op = name, .device = "GPU", .types = {{"T", RN_T(HALF) | RN_T(FLOAT)}},         \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(rn_lrn_t), .init = rn_lrn_init, \
    .compute = function                                                              \
  }

static const rn_kernel_def_t rows[] = {ROW("LRN", forward), ROW("LRNGrad", gradient)};
RN_KERNEL_FAMILY(cuda_lrn, rows);
