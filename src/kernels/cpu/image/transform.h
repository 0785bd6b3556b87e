// The first half of ImageProjectiveTransform, shared with other devices.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_TRANSFORM_H_
#define RUNNEL_KERNELS_CPU_IMAGE_TRANSFORM_H_

#include "framework/kernel.h"
#include "kernels/image_geometry.h"

// The state of the kernels.
typedef struct rn_image_transform_t {
  bool is_bilinear;
  rn_border_t border;
} rn_image_transform_t;
RN_MUST_USE rn_status_t rn_image_transform_init(const rn_kernel_init_t* init, void* state);

// Checks shapes and host arguments and makes the output.
RN_MUST_USE rn_status_t rn_image_transform_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_TRANSFORM_H_
