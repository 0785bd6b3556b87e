// Arrays of tensors that live as long as a step: each element is written once and read, and the
// gradients of an array gather in arrays of their own, where writes add up.
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_TENSOR_ARRAY_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_TENSOR_ARRAY_H_

#include "base/arena.h"
#include "framework/kernel.h"

#define RN_TENSOR_ARRAY_TYPE "TensorArray"

typedef struct rn_tensor_array_spec_t {
  rn_dtype_t dtype;
  rn_shape_t element_shape;
  bool is_dynamic;  // grows with writes beyond its end
  bool clears;      // an element can be read once
  bool is_uniform;  // all elements are shaped like the first
  bool adds;        // a second write is added: gradients
} rn_tensor_array_spec_t;

typedef struct rn_tensor_array_t rn_tensor_array_t;

// An array of |size| unwritten elements. |spec| and |name| are copied.
RN_MUST_USE rn_status_t rn_tensor_array_create(rn_allocator_t allocator, rn_str_t name,
                                               const rn_tensor_array_spec_t* spec, int64_t size,
                                               rn_tensor_array_t** out);
rn_resource_t* rn_tensor_array_resource(rn_tensor_array_t* array);
rn_str_t rn_tensor_array_name(const rn_tensor_array_t* array);
const rn_tensor_array_spec_t* rn_tensor_array_spec(const rn_tensor_array_t* array);
// The array that collects gradients for |source|, made like |array| the first time it is asked
// for. The caller gets a reference.
RN_MUST_USE rn_status_t rn_tensor_array_gradient(rn_tensor_array_t* array, rn_str_t source,
                                                 rn_tensor_array_t** out);

// Any thread may call these. Failures are INVALID_ARGUMENT with stock's words.
//
// Writes |value|, which is moved on success and has a buffer. |memory| is for a sum.
RN_MUST_USE rn_status_t rn_tensor_array_write(rn_tensor_array_t* array, int64_t index,
                                              rn_tensor_t* value, rn_allocator_t memory);
// |*out| becomes element |index|, or zeros from |memory| where none was written and the shape is
// known.
RN_MUST_USE rn_status_t rn_tensor_array_read(rn_tensor_array_t* array, int64_t index,
                                             rn_allocator_t memory, rn_tensor_t* out);
RN_MUST_USE rn_status_t rn_tensor_array_size(rn_tensor_array_t* array, int64_t* out);
// Notes that a value was split into the elements that there are now.
void rn_tensor_array_was_split(rn_tensor_array_t* array);
// How many elements a concatenation takes: all of them; of a gradient, those that the array had
// when it was split, so that the gradient of a split has the shape of what was split, whatever the
// array grew to later.
RN_MUST_USE rn_status_t rn_tensor_array_concat_size(rn_tensor_array_t* array, int64_t* out);
// The element shape as known now; its dims live as long as the array.
rn_shape_t rn_tensor_array_element_shape(rn_tensor_array_t* array);
void rn_tensor_array_close(rn_tensor_array_t* array);

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_TENSOR_ARRAY_H_
