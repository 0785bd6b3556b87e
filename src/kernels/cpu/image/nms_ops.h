// The first half of non-maximum suppression ops, shared with other devices: checks of shapes and
// host arguments.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_NMS_OPS_H_
#define RUNNEL_KERNELS_CPU_IMAGE_NMS_OPS_H_

#include "kernels/cpu/image/nms.h"

// The state.
typedef struct rn_nms_op_t {
  int version;
  float threshold;  // of V1, where it is an attribute
  bool is_padded;
  bool is_padded_by_class, is_clipped;  // of CombinedNonMaxSuppression
} rn_nms_op_t;
RN_MUST_USE rn_status_t rn_nms_init(const rn_kernel_init_t* init, void* state);

// Sets everything but the boxes and the scores, which are not read.
RN_MUST_USE rn_status_t rn_nms_read(rn_kernel_ctx_t* ctx, rn_nms_t* out);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_NMS_OPS_H_
