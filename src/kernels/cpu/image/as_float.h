// Images of any type of real numbers, read as floats.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_AS_FLOAT_H_
#define RUNNEL_KERNELS_CPU_IMAGE_AS_FLOAT_H_

#include "framework/kernel.h"

// |*out| are the elements of |tensor|: its own, or |temp|'s, which the caller clears in any case
// and zeroes before.
RN_MUST_USE rn_status_t rn_image_floats(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor,
                                        rn_tensor_t* temp, const float** out);
// Stores |values| in |out|, a tensor of floats of any width.
void rn_image_store(const float* values, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_AS_FLOAT_H_
