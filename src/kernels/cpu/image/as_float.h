// Reads images of any real type as float.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_AS_FLOAT_H_
#define RUNNEL_KERNELS_CPU_IMAGE_AS_FLOAT_H_

#include "framework/kernel.h"

// |*out| points to the elements of |tensor| as floats: its own, or those of |temp|, which the
// caller zeroes before and clears afterwards in any case.
RN_MUST_USE rn_status_t rn_image_floats(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor,
                                        rn_tensor_t* temp, const float** out);
// n elements of any real type as floats.
void rn_image_widen(rn_dtype_t dtype, const void* in, float* out, int64_t n);
// Stores |values| in |out|, a tensor of any float type.
void rn_image_store(const float* values, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_AS_FLOAT_H_
