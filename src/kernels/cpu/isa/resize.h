// Loops that make pixels of several others, for one ISA level; kernels/cpu/image/loops.h selects
// them.
#ifndef RUNNEL_KERNELS_CPU_ISA_RESIZE_H_
#define RUNNEL_KERNELS_CPU_ISA_RESIZE_H_

#include <stdint.h>

#include "kernels/cpu/isa.h"

// The input pixels of one output pixel along an axis: positions, ascending, and weights.
enum { RN_IMAGE_TAPS = 4 };
typedef struct rn_image_taps_t {
  int64_t at[RN_IMAGE_TAPS];
  float weights[RN_IMAGE_TAPS];
} rn_image_taps_t;

typedef struct rn_resize_loops_t {
  // out = top + (bottom - top) * down.
  void (*blend)(const float* top, const float* bottom, float down, float* out, int64_t n);
  // out = in * weight; out += in * weight.
  void (*weigh)(const float* in, float weight, float* out, int64_t n);
  void (*add_weighed)(const float* in, float weight, float* out, int64_t n);
  // |count| pixels of |depth| floats, from the pixels of |line|, which has positions [first, end):
  // between two taps, what an area covers, or the sum of four. After |out| of a blend and after the
  // |line| of an area there is place for one more float.
  void (*blend_columns)(const float* line, int64_t first, int64_t end, const rn_image_taps_t* taps,
                        int64_t count, int64_t depth, float* out);
  void (*area_columns)(const float* line, int64_t first, int64_t end, const rn_image_taps_t* taps,
                       int64_t count, int64_t depth, float scale, float* out);
  void (*cubic_columns)(const float* line, int64_t first, const rn_image_taps_t* taps,
                        int64_t count, int64_t depth, float* out);
  // Adds a row of |count| pixels to the pixels of |image|, |width| wide, that they were blended
  // from.
  void (*spread_columns)(const float* in, const rn_image_taps_t* row,
                         const rn_image_taps_t* columns, int64_t count, int64_t width,
                         int64_t depth, float* image);
  // Between four pixels of |depth| floats: top left, top right, bottom left, bottom right.
  void (*blend_corners)(const float* const corners[4], float across, float down, int64_t depth,
                        float* out);
} rn_resize_loops_t;
RN_ISA_DECLARE(rn_resize_loops_t, rn_resize_loops_);

#endif  // RUNNEL_KERNELS_CPU_ISA_RESIZE_H_
