// A strided slice resolved for one input: the elements it takes from each axis, and the shape of
// the result.
#ifndef RUNNEL_KERNELS_CPU_ARRAY_SLICE_SPEC_H_
#define RUNNEL_KERNELS_CPU_ARRAY_SLICE_SPEC_H_

#include "framework/kernel.h"
#include "kernels/cpu/move.h"

// The masks: one bit per entry of begin, end and strides.
typedef struct rn_slice_masks_t {
  uint64_t begin, end, ellipsis, new_axis, shrink_axis;
} rn_slice_masks_t;

void rn_slice_masks_init(const rn_kernel_init_t* init, rn_slice_masks_t* out);

typedef struct rn_slice_spec_t {
  int32_t rank;  // of the input
  int64_t begin[RN_MAX_RANK], stride[RN_MAX_RANK], size[RN_MAX_RANK];
  int32_t out_rank;
  int64_t out_dims[RN_MAX_RANK];
  int16_t out_axis[RN_MAX_RANK];  // the input axis of each; negative for a new axis
} rn_slice_spec_t;

// Resolves the slice for an input of |shape|. INVALID_ARGUMENT with stock's messages.
RN_MUST_USE rn_status_t rn_slice_spec_make(rn_shape_t shape, const rn_tensor_t* begin,
                                           const rn_tensor_t* end, const rn_tensor_t* strides,
                                           const rn_slice_masks_t* masks, rn_slice_spec_t* out);

// The move from the whole input, of |shape|, to the dense slice; it starts at |*out_offset|.
void rn_slice_spec_read(const rn_slice_spec_t* spec, rn_shape_t shape, rn_move_t* out_move,
                        int64_t* out_offset);

// The move from a value, broadcast to the slice, into the input. INVALID_ARGUMENT if it does not
// fit.
RN_MUST_USE rn_status_t rn_slice_spec_write(const rn_slice_spec_t* spec, rn_shape_t shape,
                                            const rn_tensor_t* value, rn_move_t* out_move,
                                            int64_t* out_offset);

#endif  // RUNNEL_KERNELS_CPU_ARRAY_SLICE_SPEC_H_
