// Draws from logits and gamma numbers: see random.h.
#include "kernels/cpu/array.h"
#include "kernels/cuda/random/random.h"

rn_status_t rn_cuda_random_multinomial(rn_kernel_ctx_t* ctx, struct rn_random_at at,
                                       rn_tensor_t* out) {
  const rn_tensor_t* logits = rn_in(ctx, 0);
  if (out->count == 0) return RN_OK;
  rn_tensor_t sums = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_DOUBLE, rn_tensor_shape(logits), &sums));
  struct rn_multinomial_args args = {.at = at,
                                     .logits = logits->data,
                                     .sums = RN_DATA(&sums, double),
                                     .out = out->data,
                                     .rows = rn_tensor_dim(logits, 0),
                                     .classes = rn_tensor_dim(logits, 1),
                                     .draws = rn_tensor_dim(out, 1),
                                     .is_wide = out->dtype == RN_INT64};
  rn_cuda_grid_t grid = {.x = args.rows < 65536 ? (unsigned)args.rows : 65536,
                         .block_x = RN_CUDA_BLOCK};
  rn_status_t status = rn_cuda_launch(ctx, rn_cuda_name("random/draw/sums", logits->dtype).text,
                                      grid, &args, sizeof args);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, "random/draw/multinomial", out->count, &args, sizeof args);
  rn_tensor_clear(&sums);
  return status;
}

rn_status_t rn_cuda_random_gamma(rn_kernel_ctx_t* ctx, struct rn_random_at at, int alpha,
                                 rn_tensor_t* out) {
  const rn_tensor_t* parameters = rn_in(ctx, alpha);
  if (out->count == 0) return RN_OK;
  struct rn_gamma_args args = {.at = at,
                               .alpha = parameters->data,
                               .out = out->data,
                               .samples = out->count / parameters->count,
                               .sets = parameters->count};
  return rn_cuda_each(ctx, rn_cuda_name("random/draw/gamma", out->dtype).text, out->count, &args,
                      sizeof args);
}
