// The first half of kernels that change colours, shared with other devices: each checks shapes and
// makes the output.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_COLOUR_H_
#define RUNNEL_KERNELS_CPU_IMAGE_COLOUR_H_

#include "framework/kernel.h"

// AdjustContrastv2, AdjustHue and AdjustSaturation; |factor| is the name of input 1.
RN_MUST_USE rn_status_t rn_adjust_begin(rn_kernel_ctx_t* ctx, const char* factor, bool is_rgb,
                                        rn_tensor_t** out);
// RGBToHSV and HSVToRGB.
RN_MUST_USE rn_status_t rn_colour_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out);

#endif  // RUNNEL_KERNELS_CPU_IMAGE_COLOUR_H_
