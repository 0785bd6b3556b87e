// Handles: the objects that elements of resource tensors point to. A handle holds the resource's
// address (device, container, name) and, once known, the resource itself.
#ifndef RUNNEL_TENSOR_HANDLE_H_
#define RUNNEL_TENSOR_HANDLE_H_

#include "tensor/object.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

struct rn_resource_t;  // framework/resource.h; begins with an rn_object_t

typedef struct rn_handle_t {
  rn_object_t object;
  // Allocated in one block with the handle, like type_name and the dims.
  rn_str_t device, container, name;
  rn_str_t type_name;  // kind of the resource
  rn_dtype_t dtype;    // of a variable's value; RN_INVALID for other resources
  rn_shape_t shape;
  // Retained. NULL in a handle that came in a message, until its first use sets it once, by an
  // atomic compare-and-exchange.
  struct rn_resource_t* resource;
} rn_handle_t;

// Makes a copy of |from|, whose |object| is ignored, with its own reference to the resource.
RN_MUST_USE rn_status_t rn_handle_make(rn_allocator_t allocator, const rn_handle_t* from,
                                       rn_handle_t** out);

#endif  // RUNNEL_TENSOR_HANDLE_H_
