// Loops over the pixels of images, for one ISA level; kernels/cpu/image/loops.h selects them.
// Colours are three floats per pixel.
#ifndef RUNNEL_KERNELS_CPU_ISA_IMAGE_H_
#define RUNNEL_KERNELS_CPU_ISA_IMAGE_H_

#include <stdint.h>

// The input pixels of one output pixel along an axis: positions, ascending, and weights.
enum { RN_IMAGE_TAPS = 4 };
typedef struct rn_image_taps_t {
  int64_t at[RN_IMAGE_TAPS];
  float weights[RN_IMAGE_TAPS];
} rn_image_taps_t;

typedef struct rn_image_loops_t {
  // out = top + (bottom - top) * down.
  void (*blend)(const float* top, const float* bottom, float down, float* out, int64_t n);
  // out = in * weight; out += in * weight.
  void (*weigh)(const float* in, float weight, float* out, int64_t n);
  void (*add_weighed)(const float* in, float weight, float* out, int64_t n);
  // |count| pixels of |depth| floats, from the pixels of |line|, which begins at position |first|:
  // between two taps, or the sum of four.
  void (*blend_columns)(const float* line, int64_t first, const rn_image_taps_t* taps,
                        int64_t count, int64_t depth, float* out);
  void (*cubic_columns)(const float* line, int64_t first, const rn_image_taps_t* taps,
                        int64_t count, int64_t depth, float* out);
  // Colours of n pixels. |by| is added to the hue, in circles, or multiplies the saturation.
  void (*to_hsv)(const float* in, float* out, int64_t n);
  void (*to_rgb)(const float* in, float* out, int64_t n);
  void (*turn_hue)(const float* in, float by, float* out, int64_t n);
  void (*scale_saturation)(const float* in, float by, float* out, int64_t n);
  // The sums of |channels| channels over n pixels.
  void (*channel_sums)(const float* in, int64_t channels, int64_t n, double* sums);
  // Between four pixels of |depth| floats: top left, top right, bottom left, bottom right.
  void (*blend_corners)(const float* const corners[4], float across, float down, int64_t depth,
                        float* out);
  // out = (in - mean) * by + mean, with a mean per channel; n pixels.
  void (*contrast)(const float* in, const float* means, int64_t channels, float by, float* out,
                   int64_t n);
} rn_image_loops_t;
extern const rn_image_loops_t rn_image_loops_base;
#ifdef __x86_64__
extern const rn_image_loops_t rn_image_loops_avx2;
extern const rn_image_loops_t rn_image_loops_avx512;
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_IMAGE_H_
