// Non-maximum suppression: of boxes that overlap, the one with the highest score.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_NMS_H_
#define RUNNEL_KERNELS_CPU_IMAGE_NMS_H_

#include "framework/kernel.h"

typedef struct rn_nms_t {
  const float* boxes;     // y0, x0, y1, x1 each; NULL: |overlaps| is given instead
  const float* overlaps;  // count x count
  const float* scores;
  int64_t stride;        // from a box to the next, in floats
  int64_t score_stride;  // from a score to the next
  int64_t count;
  int64_t most;          // that are selected
  float threshold;       // of the overlap, where there is no sigma
  float least;           // scores above it count
  float sigma;           // above 0: scores of what overlaps fall with it, instead of being left out
  bool keeps_unordered;  // overlaps that are NaN do not lower a score
  bool is_half;          // scores and overlaps are rounded to halves
} rn_nms_t;

// The selected ones by falling score: |*out_count| numbers in |out|, their scores in |out_scores|,
// both with room for |most| or |count|, whichever is less.
RN_MUST_USE rn_status_t rn_nms_select(const rn_nms_t* nms, rn_allocator_t allocator, int32_t* out,
                                      float* out_scores, int64_t* out_count);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_NMS_H_
