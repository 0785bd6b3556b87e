// What the kernels of _ConvThen share on all devices: the attributes, and the sizes of a call.
#ifndef RUNNEL_KERNELS_CPU_PLANNER_CONV_THEN_H_
#define RUNNEL_KERNELS_CPU_PLANNER_CONV_THEN_H_

#include "kernels/cpu/nn/conv.h"

typedef struct rn_conv_then_t {
  rn_window_attrs_t attrs;
  bool keeps_filter, is_depthwise;
  int32_t step_count;
  struct {
    rn_conv_code_t code;
    int32_t operand;  // index among the inputs after x and w; -1 if none
  } steps[RN_CONV_MOST_STEPS];
} rn_conv_then_t;

// Reads the attributes.
RN_MUST_USE rn_status_t rn_conv_then_init(const rn_kernel_init_t* init, rn_conv_then_t* out);
// Finds the sizes, makes the output |*out_y| and checks the operands. If it is empty, there is
// nothing to compute.
RN_MUST_USE rn_status_t rn_conv_then_begin(rn_kernel_ctx_t* ctx, const rn_conv_then_t* then,
                                           rn_conv_t* conv, rn_tensor_t** out_y);

#endif  // RUNNEL_KERNELS_CPU_PLANNER_CONV_THEN_H_
