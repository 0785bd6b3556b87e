// Loops over the colours of images, for one ISA level; kernels/cpu/image/loops.h selects them.
// Colours are three floats per pixel.
#ifndef RUNNEL_KERNELS_CPU_ISA_IMAGE_H_
#define RUNNEL_KERNELS_CPU_ISA_IMAGE_H_

#include <stdint.h>

#include "kernels/cpu/isa.h"

typedef struct rn_image_loops_t {
  // Colours of n pixels. |by| is added to the hue, in circles, or multiplies the saturation.
  void (*to_hsv)(const float* in, float* out, int64_t n);
  void (*to_rgb)(const float* in, float* out, int64_t n);
  void (*turn_hue)(const float* in, float by, float* out, int64_t n);
  void (*scale_saturation)(const float* in, float by, float* out, int64_t n);
  // The sums of |channels| channels over n pixels, which are |stride| floats apart.
  void (*channel_sums)(const float* in, int64_t stride, int64_t channels, int64_t n, double* sums);
  // out = (in - mean) * by + mean, with a mean per channel; n pixels, |stride| floats apart.
  void (*contrast)(const float* in, const float* means, int64_t stride, int64_t channels, float by,
                   float* out, int64_t n);
} rn_image_loops_t;
RN_ISA_DECLARE(rn_image_loops_t, rn_image_loops_);

#endif  // RUNNEL_KERNELS_CPU_ISA_IMAGE_H_
