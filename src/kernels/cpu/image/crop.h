// The first half of CropAndResize and its gradients, shared with other devices: checks shapes and
// what is in host memory, makes the output and works out sizes.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_CROP_H_
#define RUNNEL_KERNELS_CPU_IMAGE_CROP_H_

#include "framework/kernel.h"

// The state of all three kernels.
typedef struct rn_crop_attrs_t {
  bool is_nearest;
  float outside;  // value of pixels outside the image
} rn_crop_attrs_t;
RN_MUST_USE rn_status_t rn_crop_init(const rn_kernel_init_t* init, void* state);

typedef struct rn_crop_t {
  rn_tensor_t* out;
  int64_t batch, height, width, depth;  // of the images
  int64_t boxes, crop_height, crop_width;
} rn_crop_t;
RN_MUST_USE rn_status_t rn_crop_begin(rn_kernel_ctx_t* ctx, rn_crop_t* out);
RN_MUST_USE rn_status_t rn_crop_image_gradient_begin(rn_kernel_ctx_t* ctx, rn_crop_t* out);
RN_MUST_USE rn_status_t rn_crop_box_gradient_begin(rn_kernel_ctx_t* ctx, rn_crop_t* out);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_CROP_H_
