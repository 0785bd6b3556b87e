// From tensor shapes to iteration spaces: which access reads a broadcast operand, and which
// [outer, reduced, inner] a reduction over some axes is.
#ifndef RUNNEL_KERNELS_CUDA_JIT_SHAPES_H_
#define RUNNEL_KERNELS_CUDA_JIT_SHAPES_H_

#include "kernels/cuda/jit/schedule.h"
#include "tensor/shape.h"

typedef struct rn_jit_view_t {
  int rank;              // for rn_jit_begin
  rn_jit_sizes_t sizes;  // for the launch
  uint8_t access[RN_JIT_MAX_INPUTS];
} rn_jit_view_t;

// Views |count| operands of |shapes| over a space of shape |space|, to which they broadcast by
// NumPy's rules. Sets the access of each in |out|, and period and strides in |inputs|. Dimensions
// that all operands treat alike are merged, so most broadcasts are LINEAR, SCALAR, ROW or COLUMN.
// INVALID_ARGUMENT if a shape does not broadcast to the space; UNIMPLEMENTED if more than
// RN_JIT_MAX_RANK dimensions are left.
RN_MUST_USE rn_status_t rn_jit_broadcast(rn_shape_t space, const rn_shape_t* shapes, int count,
                                         rn_jit_view_t* out, rn_jit_operand_t* inputs);

// Views an operand of |shape| for a reduction over the axes that |goes| marks. It is LINEAR if
// those are neighbours, otherwise STRIDED, with the last kept axes innermost. Outputs of the
// reduced space have the kept axes in order; those of the full space make sense for LINEAR only.
// UNIMPLEMENTED as above.
RN_MUST_USE rn_status_t rn_jit_reduction(rn_shape_t shape, const bool* goes, rn_jit_view_t* out,
                                         rn_jit_operand_t* input);

#endif  // RUNNEL_KERNELS_CUDA_JIT_SHAPES_H_
