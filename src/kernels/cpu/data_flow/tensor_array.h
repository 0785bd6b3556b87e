// Tensor arrays, which live as long as a step. Each element is written once and then read. The
// gradients of an array are collected in arrays of their own, where writes add up.
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_TENSOR_ARRAY_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_TENSOR_ARRAY_H_

#include "base/arena.h"
#include "framework/kernel.h"

#define RN_TENSOR_ARRAY_TYPE "TensorArray"

typedef struct rn_tensor_array_spec_t {
  rn_dtype_t dtype;
  rn_shape_t element_shape;
  bool is_dynamic;  // grows when written beyond its end
  bool clears;      // reading an element clears it
  bool is_uniform;  // all elements have the shape of the first
  bool adds;        // a second write adds to the first: for gradients
} rn_tensor_array_spec_t;

typedef struct rn_tensor_array_t rn_tensor_array_t;

// Creates an array of |size| unwritten elements. Copies |spec| and |name|.
RN_MUST_USE rn_status_t rn_tensor_array_create(rn_allocator_t allocator, rn_str_t name,
                                               const rn_tensor_array_spec_t* spec, int64_t size,
                                               rn_tensor_array_t** out);
rn_resource_t* rn_tensor_array_resource(rn_tensor_array_t* array);
rn_str_t rn_tensor_array_name(const rn_tensor_array_t* array);
const rn_tensor_array_spec_t* rn_tensor_array_spec(const rn_tensor_array_t* array);
// The array that collects gradients for |source|, created to match |array| on first use; its
// elements have |prefix| before their shape. The caller gets a reference.
RN_MUST_USE rn_status_t rn_tensor_array_gradient(rn_tensor_array_t* array, rn_str_t source,
                                                 rn_shape_t prefix, rn_tensor_array_t** out);

// These may be called from any thread. Failures are INVALID_ARGUMENT with stock's messages.
//
// Writes |value|, which has a buffer and is moved on success. The elements are in the memory of the
// kernel's device.
RN_MUST_USE rn_status_t rn_tensor_array_write(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array,
                                              int64_t index, rn_tensor_t* value);
// |*out| becomes element |index|, or zeros if it was not written and its shape is known.
RN_MUST_USE rn_status_t rn_tensor_array_read(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array,
                                             int64_t index, rn_tensor_t* out);
RN_MUST_USE rn_status_t rn_tensor_array_size(rn_tensor_array_t* array, int64_t* out);
// Records that a value was split into the current elements.
void rn_tensor_array_was_split(rn_tensor_array_t* array);
// The number of elements to concatenate: all of them, but for a gradient array those that the array
// had when it was split, so that the gradient of a split has the shape of its input even if the
// array grew later.
RN_MUST_USE rn_status_t rn_tensor_array_concat_size(rn_tensor_array_t* array, int64_t* out);
// The element shape known so far; its dims live as long as the array.
rn_shape_t rn_tensor_array_element_shape(rn_tensor_array_t* array);
void rn_tensor_array_close(rn_tensor_array_t* array);

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_TENSOR_ARRAY_H_
