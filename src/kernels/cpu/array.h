// Helpers for kernels that work on shapes and indices: reading small integer tensors of any type,
// normalizing axes, printing shapes in messages.
#ifndef RUNNEL_KERNELS_CPU_ARRAY_H_
#define RUNNEL_KERNELS_CPU_ARRAY_H_

#include "framework/kernel.h"

// Element |i| of an integer tensor of any type.
static inline int64_t rn_int_at(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_INT32:
      return RN_DATA(tensor, const int32_t)[i];
    case RN_INT64:
      return RN_DATA(tensor, const int64_t)[i];
    case RN_INT16:
      return RN_DATA(tensor, const int16_t)[i];
    case RN_INT8:
      return RN_DATA(tensor, const int8_t)[i];
    case RN_UINT8:
      return RN_DATA(tensor, const uint8_t)[i];
    case RN_UINT16:
      return RN_DATA(tensor, const uint16_t)[i];
    case RN_UINT32:
      return RN_DATA(tensor, const uint32_t)[i];
    case RN_UINT64:
      return (int64_t)RN_DATA(tensor, const uint64_t)[i];
    default:
      return 0;
  }
}

// Element |i| of a tensor of floats or integers of any type.
double rn_number_at(const rn_tensor_t* tensor, int64_t i);

// Writes element |i| of an int32 or int64 tensor.
static inline void rn_int_set(rn_tensor_t* tensor, int64_t i, int64_t value) {
  if (tensor->dtype == RN_INT32)
    RN_DATA(tensor, int32_t)[i] = (int32_t)value;
  else
    RN_DATA(tensor, int64_t)[i] = value;
}

// Product of dims [begin, end). Cannot overflow for the dims of a non-empty tensor.
static inline int64_t rn_dims_product(const int64_t* dims, int begin, int end) {
  int64_t product = 1;
  for (int d = begin; d < end; ++d) product *= dims[d];
  return product;
}

// A tensor as [outer, size of |axis|, inner].
typedef struct rn_axis_view_t {
  int64_t outer, size, inner;
} rn_axis_view_t;

static inline rn_axis_view_t rn_axis_view(const rn_tensor_t* tensor, int axis) {
  const int64_t* dims = rn_tensor_dims(tensor);
  if (tensor->count == 0) {
    // The products of an empty tensor's dims may overflow. Zeros tell the caller that there is
    // nothing to do.
    return (rn_axis_view_t){0, dims[axis], 0};
  }
  return (rn_axis_view_t){rn_dims_product(dims, 0, axis), dims[axis],
                          rn_dims_product(dims, axis + 1, tensor->rank)};
}

// A shape as "[2,3]", truncated if very long. Use in messages: rn_shape_text(shape).text.
typedef struct rn_shape_text_t {
  char text[256];
} rn_shape_text_t;
rn_shape_text_t rn_shape_text(rn_shape_t shape);
static inline rn_shape_text_t rn_text_of(const rn_tensor_t* tensor) {
  return rn_shape_text(rn_tensor_shape(tensor));
}

// Reads a vector of sizes into |dims| (RN_MAX_RANK entries). INVALID_ARGUMENT, with stock's
// message, if a size is negative, there are too many, or their product overflows.
RN_MUST_USE rn_status_t rn_read_dims(const rn_tensor_t* sizes, int64_t* dims, rn_shape_t* out);
// The same for an input named shape; fails also, with stock's message, if it is not a vector.
RN_MUST_USE rn_status_t rn_read_shape(const rn_tensor_t* sizes, int64_t* dims, rn_shape_t* out);

// Appends the names of |types|, for messages: "int32, float".
void rn_print_types(rn_strbuf_t* buf, const rn_dtype_t* types, int32_t count);

// The coordinates of element |i| of |tensor| as "[1,2]", for messages about bad indices.
rn_shape_text_t rn_place_text(const rn_tensor_t* tensor, int64_t i);

#endif  // RUNNEL_KERNELS_CPU_ARRAY_H_
