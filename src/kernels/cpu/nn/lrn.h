// Attributes and checks of LRN and its gradient, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_NN_LRN_H_
#define RUNNEL_KERNELS_CPU_NN_LRN_H_

#include <inttypes.h>

#include "framework/kernel.h"

typedef struct rn_lrn_t {
  int64_t radius;
  float bias, alpha, beta;
} rn_lrn_t;

static inline rn_status_t rn_lrn_init(const rn_kernel_init_t* init, void* state) {
  rn_lrn_t* lrn = state;
  lrn->radius = rn_init_int(init, "depth_radius");
  if (lrn->radius < 0 || lrn->radius > INT32_MAX)
    return rn_invalid_argument("depth_radius = %" PRId64 " larger than int max", lrn->radius);
  lrn->bias = rn_init_float(init, "bias");
  lrn->alpha = rn_init_float(init, "alpha");
  lrn->beta = rn_init_float(init, "beta");
  return RN_OK;
}

static inline rn_status_t rn_lrn_check(const rn_kernel_ctx_t* ctx) {
  return rn_in(ctx, 0)->rank == 4 ? RN_OK : rn_invalid_argument("in must be 4-dimensional");
}

static inline rn_status_t rn_lrn_grad_check(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1), *y = rn_in(ctx, 2);
  if (dy->rank != 4 || x->rank != 4) return rn_invalid_argument("inputs must be 4-dimensional");
  if (!rn_tensor_same_shape(dy, x) || !rn_tensor_same_shape(dy, y))
    return rn_invalid_argument(
        "input_grads, input_image, and out_image should have the same shape");
  return RN_OK;
}

#endif  // RUNNEL_KERNELS_CPU_NN_LRN_H_
