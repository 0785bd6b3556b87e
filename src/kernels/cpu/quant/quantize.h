// QuantizeAndDequantize in its versions, as far as all devices share them.
#ifndef RUNNEL_KERNELS_CPU_QUANT_QUANTIZE_H_
#define RUNNEL_KERNELS_CPU_QUANT_QUANTIZE_H_

#include "framework/kernel.h"

// The state of the kernels.
typedef struct rn_quantize_t {
  bool is_signed, is_narrow, has_range, rounds_up, has_bits_input;
  bool is_first;  // V1: the limits are attributes
  float min, max;
  int64_t bits, axis;
} rn_quantize_t;
RN_MUST_USE rn_status_t rn_quantize_init(const rn_kernel_init_t* init, void* state);

// The input as |count| slices with a range each: [outer][inner] elements, runs of |inner| that are
// |step| apart. Slice i begins at element i * inner.
typedef struct rn_quantize_slices_t {
  int64_t count, outer, inner, step;
} rn_quantize_slices_t;

// Checks the inputs, with limits in host memory, and makes the output.
RN_MUST_USE rn_status_t rn_quantize_begin(rn_kernel_ctx_t* ctx, int64_t* out_bits,
                                          rn_quantize_slices_t* out_slices, rn_tensor_t** out);
// The same for the gradient: makes the outputs and sets those of the limits to zero.
RN_MUST_USE rn_status_t rn_quantize_grad_begin(rn_kernel_ctx_t* ctx,
                                               rn_quantize_slices_t* out_slices, rn_tensor_t** out);
// The limit of slice |i| in input |at|, if there are limits; the first is the lower one.
double rn_quantize_limit(const rn_kernel_ctx_t* ctx, int at, int64_t i);

#endif  // RUNNEL_KERNELS_CPU_QUANT_QUANTIZE_H_
