// The first half of resizing kernels, shared with other devices: checks shapes and host arguments,
// makes the output and works out sizes. None of it touches pixels.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_RESIZE_H_
#define RUNNEL_KERNELS_CPU_IMAGE_RESIZE_H_

#include "framework/kernel.h"
#include "kernels/cpu/isa/resize.h"

// The state of all resizing kernels.
typedef struct rn_resize_attrs_t {
  bool align_corners, half_pixel_centers;
} rn_resize_attrs_t;
RN_MUST_USE rn_status_t rn_resize_init(const rn_kernel_init_t* init, void* state);

// |in| and |out| are rows and columns of the original and of the resized images.
typedef struct rn_resize_t {
  rn_tensor_t* result;  // the resized images, or the gradient of the original ones
  int64_t batch, depth, in[2], out[2];
} rn_resize_t;
RN_MUST_USE rn_status_t rn_resize_begin(rn_kernel_ctx_t* ctx, rn_resize_t* out);
// Gradients, from the resized image's at input 0: of bilinear and bicubic kernels, and of nearest
// neighbours.
RN_MUST_USE rn_status_t rn_resize_gradient_begin(rn_kernel_ctx_t* ctx, rn_resize_t* out);
RN_MUST_USE rn_status_t rn_resize_nearest_gradient_begin(rn_kernel_ctx_t* ctx, rn_resize_t* out);

// Pixels of the original per pixel of the resized image, along one axis.
float rn_resize_scale(const rn_resize_attrs_t* attrs, int64_t in, int64_t out);

// The scale of an area: a single pixel has no two corners to align, so each output covers part of
// it.
float rn_resize_area_scale(const rn_resize_attrs_t* attrs, int64_t in, int64_t out);

typedef enum rn_resize_method_t {
  RN_RESIZE_BILINEAR,
  RN_RESIZE_NEAREST,
  RN_RESIZE_AREA,
  RN_RESIZE_BICUBIC,
} rn_resize_method_t;

// The input pixels of each of |out| output pixels. For an area: the first, and the one after the
// last; only the ends have their own weights.
void rn_resize_find_taps(rn_resize_method_t method, const rn_resize_attrs_t* attrs, int64_t in,
                         int64_t out, rn_image_taps_t* taps);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_RESIZE_H_
