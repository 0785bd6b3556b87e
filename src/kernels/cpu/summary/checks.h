// Checks shared by the summary ops and the summary writer ops.
#ifndef RUNNEL_KERNELS_CPU_SUMMARY_CHECKS_H_
#define RUNNEL_KERNELS_CPU_SUMMARY_CHECKS_H_

#include <inttypes.h>

#include "kernels/cpu/array.h"

static inline rn_status_t rn_summary_check_sounds(const rn_tensor_t* sounds) {
  if (sounds->rank == 2 || sounds->rank == 3) return RN_OK;
  return rn_invalid_argument("Tensor must be 3-D or 2-D, got: %s", rn_text_of(sounds).text);
}

static inline rn_status_t rn_summary_rate(const rn_tensor_t* rate, float* out) {
  if (rate->count != 1)
    return rn_invalid_argument("sample_rate must be rank-0 or contain a single value");
  *out = *RN_DATA(rate, const float);
  return RN_OK;
}

// Checks images [batch, height, width, 1, 3 or 4], and |bad|, the colour for NaN pixels.
static inline rn_status_t rn_summary_check_images(const rn_tensor_t* images,
                                                  const rn_tensor_t* bad) {
  int64_t channels = images->rank == 4 ? rn_tensor_dim(images, 3) : 0;
  if (channels != 1 && channels != 3 && channels != 4)
    return rn_invalid_argument("Tensor must be 4-D with last dim 1, 3, or 4, not %s",
                               rn_text_of(images).text);
  int64_t limit = INT64_C(1) << 31, height = rn_tensor_dim(images, 1);
  if (height == 0 || rn_tensor_dim(images, 2) == 0)
    return rn_invalid_argument("input tensor must have non-zero dims. Found: [%" PRId64 ", %" PRId64
                               ", %" PRId64 ", %" PRId64 "].",
                               rn_tensor_dim(images, 0), height, rn_tensor_dim(images, 2),
                               channels);
  if (rn_tensor_dim(images, 0) >= limit || height >= limit || rn_tensor_dim(images, 2) >= limit)
    return rn_invalid_argument("Tensor too large for summary %s", rn_text_of(images).text);
  if (bad->count < channels)
    return rn_invalid_argument("expected depth <= bad_color.size, got depth = %" PRId64
                               ", bad_color.size = %" PRId64,
                               channels, bad->count);
  return RN_OK;
}

#endif  // RUNNEL_KERNELS_CPU_SUMMARY_CHECKS_H_
