// Non-maximum suppression: keeps the box with the highest score among overlapping ones.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_NMS_H_
#define RUNNEL_KERNELS_CPU_IMAGE_NMS_H_

#include "framework/kernel.h"

typedef struct rn_nms_t {
  const float* boxes;     // y0, x0, y1, x1 each; NULL if |overlaps| is given
  const float* overlaps;  // count x count
  const float* scores;
  int64_t stride;        // floats from one box to the next
  int64_t score_stride;  // floats from one score to the next
  int64_t count;
  int64_t most;          // maximum number to select
  float threshold;       // overlap threshold, if there is no sigma
  float least;           // minimum score, exclusive
  float sigma;           // if > 0, overlap lowers a score instead of dropping the box
  bool keeps_unordered;  // overlaps that are NaN do not lower a score
  bool is_half;          // round scores and overlaps to half
} rn_nms_t;

// Selects boxes in order of falling score: writes |*out_count| indices to |out| and their scores to
// |out_scores|. Both have space for min(|most|, |count|).
RN_MUST_USE rn_status_t rn_nms_select(const rn_nms_t* nms, rn_allocator_t allocator, int32_t* out,
                                      float* out_scores, int64_t* out_count);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_NMS_H_
