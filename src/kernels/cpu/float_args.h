// Presents 16-bit inputs and outputs as float, so that the kernel needs one code path.
#ifndef RUNNEL_KERNELS_CPU_FLOAT_ARGS_H_
#define RUNNEL_KERNELS_CPU_FLOAT_ARGS_H_

#include "framework/kernel.h"

#define RN_FLOAT_ARGS_MAX 32

// Zero-initialize it, request arguments, and always call rn_float_args_end.
typedef struct rn_float_args_t {
  rn_kernel_ctx_t* ctx;
  int count;
  rn_tensor_t temps[RN_FLOAT_ARGS_MAX];
  rn_tensor_t*
      outs[RN_FLOAT_ARGS_MAX];  // the output that a temporary is stored to; NULL for scratch
} rn_float_args_t;

// The values of input |i| as floats.
RN_MUST_USE rn_status_t rn_float_args_in(rn_float_args_t* args, int i, const float** out);
// Memory for output |o|, uninitialized.
RN_MUST_USE rn_status_t rn_float_args_out(rn_float_args_t* args, int o, rn_shape_t shape,
                                          float** out);
// |count| floats of scratch memory.
RN_MUST_USE rn_status_t rn_float_args_temp(rn_float_args_t* args, int64_t count, float** out);
// Stores the outputs if |status| is OK and frees the temporaries. Returns |status|.
RN_MUST_USE rn_status_t rn_float_args_end(rn_float_args_t* args, rn_status_t status);

#endif  // RUNNEL_KERNELS_CPU_FLOAT_ARGS_H_
