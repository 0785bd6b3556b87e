// Attributes, checks and views of BiasAdd and its gradient, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_NN_BIAS_H_
#define RUNNEL_KERNELS_CPU_NN_BIAS_H_

#include "kernels/cpu/array.h"

typedef struct rn_bias_state_t {
  bool is_nchw;
} rn_bias_state_t;

static inline rn_status_t rn_bias_init(const rn_kernel_init_t* init, void* state) {
  rn_str_t format = rn_init_string(init, "data_format");
  ((rn_bias_state_t*)state)->is_nchw = format.size > 1 && format.data[1] == 'C';
  return RN_OK;
}

// A tensor as [outer, channels, inner].
typedef struct rn_bias_view_t {
  int64_t outer, channels, inner;
} rn_bias_view_t;

static inline rn_bias_view_t rn_bias_view(const rn_tensor_t* x, bool is_nchw) {
  const int64_t* dims = rn_tensor_dims(x);
  int axis = is_nchw ? 1 : x->rank - 1;
  rn_bias_view_t view = {1, dims[axis], 1};
  for (int d = 0; d < axis; ++d) view.outer *= dims[d];
  for (int d = axis + 1; d < x->rank; ++d) view.inner *= dims[d];
  return view;
}

static inline rn_status_t rn_bias_grad_check(const rn_tensor_t* x) {
  if (x->rank >= 2) return RN_OK;
  return rn_invalid_argument("Input tensor must be at least 2D: %s", rn_text_of(x).text);
}

static inline rn_status_t rn_bias_check(const rn_tensor_t* x, const rn_tensor_t* bias,
                                        bool is_nchw) {
  RN_RETURN_IF_ERROR(rn_bias_grad_check(x));
  if (bias->rank != 1) return rn_invalid_argument("Biases must be 1D: %s", rn_text_of(bias).text);
  if (bias->count != rn_tensor_dim(x, is_nchw ? 1 : x->rank - 1))
    return rn_invalid_argument(
        "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
        rn_text_of(bias).text, rn_text_of(x).text);
  return RN_OK;
}

#endif  // RUNNEL_KERNELS_CPU_NN_BIAS_H_
