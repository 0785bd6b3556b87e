// The axes that a reduction goes over, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_MATH_AXES_H_
#define RUNNEL_KERNELS_CPU_MATH_AXES_H_

#include "kernels/cpu/array.h"

// Marks the reduced axes in |goes| (RN_MAX_RANK entries). INVALID_ARGUMENT for an axis that is out
// of range or repeated.
static inline rn_status_t rn_read_axes(const rn_tensor_t* input, const rn_tensor_t* axes,
                                       bool* goes) {
  const int rank = input->rank;
  for (int d = 0; d < rank; ++d) goes[d] = false;
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t given = rn_int_at(axes, i), axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank)
      return rn_invalid_argument("Invalid reduction dimension (%lld for input with %d dimension(s)",
                                 (long long)given, rank);
    if (goes[axis])
      return rn_invalid_argument(
          "Invalid reduction arguments: Axes contains duplicate dimension: %lld", (long long)axis);
    goes[axis] = true;
  }
  return RN_OK;
}

// The shape of |input| after a reduction over the axes that |goes| marks; |dims| has RN_MAX_RANK
// entries.
static inline rn_shape_t rn_reduced_shape(const rn_tensor_t* input, const bool* goes,
                                          bool keep_dims, int64_t* dims) {
  int32_t rank = 0;
  for (int d = 0; d < input->rank; ++d) {
    if (!goes[d])
      dims[rank++] = rn_tensor_dim(input, d);
    else if (keep_dims)
      dims[rank++] = 1;
  }
  return (rn_shape_t){rank, dims};
}

// The axis of ArgMax and ArgMin. INVALID_ARGUMENT unless |dimension| is a scalar in range and the
// axis has elements.
static inline rn_status_t rn_read_arg_axis(const rn_tensor_t* input, const rn_tensor_t* dimension,
                                           int* out) {
  if (dimension->rank != 0)
    return rn_invalid_argument("dim must be a scalar, but received tensor of shape: %s",
                               rn_text_of(dimension).text);
  const int rank = input->rank;
  int64_t axis = rn_int_at(dimension, 0);
  if (axis < -rank || axis >= rank)
    return rn_invalid_argument("Expected dimension in the range [%d, %d), but got %lld", -rank,
                               rank, (long long)axis);
  *out = (int)(axis < 0 ? axis + rank : axis);
  if (rn_tensor_dim(input, *out) == 0)
    return rn_invalid_argument("Reduction axis %d is empty in shape %s", *out,
                               rn_text_of(input).text);
  return RN_OK;
}

// The axis of Cumsum and its relatives.
static inline rn_status_t rn_read_scan_axis(const rn_tensor_t* input, const rn_tensor_t* axis,
                                            int* out) {
  if (axis->rank != 0)
    return rn_invalid_argument("ScanOp: axis must be a scalar, not %s", rn_text_of(axis).text);
  const int rank = input->rank;
  int64_t given = rn_int_at(axis, 0);
  if (given < -rank || given >= rank)
    return rn_invalid_argument("ScanOp: Expected scan axis in the range [%d, %d), but got %lld",
                               -rank, rank, (long long)given);
  *out = (int)(given < 0 ? given + rank : given);
  return RN_OK;
}

#endif  // RUNNEL_KERNELS_CPU_MATH_AXES_H_
