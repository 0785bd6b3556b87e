// Attributes and checks of BatchNormWithGlobalNormalization and its gradient, for kernels of any
// device.
#ifndef RUNNEL_KERNELS_CPU_NN_GLOBAL_NORM_H_
#define RUNNEL_KERNELS_CPU_NN_GLOBAL_NORM_H_

#include "kernels/cpu/array.h"

typedef struct rn_global_norm_t {
  float epsilon;
  bool scales;
} rn_global_norm_t;

static inline rn_status_t rn_global_norm_init(const rn_kernel_init_t* init, void* state) {
  *(rn_global_norm_t*)state = (rn_global_norm_t){rn_init_float(init, "variance_epsilon"),
                                                 rn_init_bool(init, "scale_after_normalization")};
  return RN_OK;
}

// Checks the inputs: an image, then |count| vectors of its depth.
static inline rn_status_t rn_global_norm_vectors(const rn_kernel_ctx_t* ctx,
                                                 const char* const* names, int count) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->rank != 4) return rn_invalid_argument("input must be 4-dimensional%s", rn_text_of(x).text);
  for (int i = 1; i <= count; ++i) {
    const rn_tensor_t* vector = rn_in(ctx, i);
    if (vector->rank != 1)
      return rn_invalid_argument("%s must be 1-dimensional%s", names[i - 1],
                                 rn_text_of(vector).text);
    if (vector->count != rn_tensor_dim(x, 3))
      return rn_invalid_argument("%s must have one value for each channel of the input: %s vs. %s",
                                 names[i - 1], rn_text_of(vector).text, rn_text_of(x).text);
  }
  return RN_OK;
}

static inline rn_status_t rn_global_norm_check(const rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"mean", "var", "beta", "gamma"};
  return rn_global_norm_vectors(ctx, names, 4);
}

static inline rn_status_t rn_global_norm_grad_check(const rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"mean", "var", "gamma"};
  RN_RETURN_IF_ERROR(rn_global_norm_vectors(ctx, names, 3));
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 4);
  if (rn_tensor_same_shape(x, dy)) return RN_OK;
  return rn_invalid_argument("input and backprop must have the same shape: %s vs. %s",
                             rn_text_of(x).text, rn_text_of(dy).text);
}

#endif  // RUNNEL_KERNELS_CPU_NN_GLOBAL_NORM_H_
