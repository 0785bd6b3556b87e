// Handles: what the elements of resource tensors point to. An address, and where it is known
// already, the resource itself.
#ifndef RUNNEL_TENSOR_HANDLE_H_
#define RUNNEL_TENSOR_HANDLE_H_

#include "tensor/object.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

struct rn_resource_t;  // framework/resource.h; begins with an rn_object_t

typedef struct rn_handle_t {
  rn_object_t object;
  rn_str_t device, container, name;  // in one block with the handle, as are type_name and the dims
  rn_str_t type_name;                // kind of the resource
  rn_dtype_t dtype;                  // of a variable; else RN_INVALID
  rn_shape_t shape;
  // Retained. A handle that came in a message has none until it is first used, and then keeps it:
  // set once, by an atomic exchange with NULL.
  struct rn_resource_t* resource;
} rn_handle_t;

// A handle like |from|, of which all but |object| counts, with a reference to the resource.
RN_MUST_USE rn_status_t rn_handle_make(rn_allocator_t allocator, const rn_handle_t* from,
                                       rn_handle_t** out);

#endif  // RUNNEL_TENSOR_HANDLE_H_
