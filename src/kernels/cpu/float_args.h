// Arguments as floats: a kernel that computes in float and takes half, too, sees neither.
#ifndef RUNNEL_KERNELS_CPU_FLOAT_ARGS_H_
#define RUNNEL_KERNELS_CPU_FLOAT_ARGS_H_

#include "framework/kernel.h"

#define RN_FLOAT_ARGS_MAX 32

// Zero it, ask for arguments, and end it in any case.
typedef struct rn_float_args_t {
  rn_kernel_ctx_t* ctx;
  int count;
  rn_tensor_t temps[RN_FLOAT_ARGS_MAX];
  rn_tensor_t* outs[RN_FLOAT_ARGS_MAX];  // where a temporary goes; NULL: nowhere
} rn_float_args_t;

// The values of input |i|.
RN_MUST_USE rn_status_t rn_float_args_in(rn_float_args_t* args, int i, const float** out);
// Room for output |o|, unset.
RN_MUST_USE rn_status_t rn_float_args_out(rn_float_args_t* args, int o, rn_shape_t shape,
                                          float** out);
// |count| floats of scratch.
RN_MUST_USE rn_status_t rn_float_args_temp(rn_float_args_t* args, int64_t count, float** out);
// Stores the outputs if |status| is good and frees the rest. Returns |status|.
RN_MUST_USE rn_status_t rn_float_args_end(rn_float_args_t* args, rn_status_t status);

#endif  // RUNNEL_KERNELS_CPU_FLOAT_ARGS_H_
