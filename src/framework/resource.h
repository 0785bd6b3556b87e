// Resources: state that outlives a step, found by container and name on its device.
#ifndef RUNNEL_FRAMEWORK_RESOURCE_H_
#define RUNNEL_FRAMEWORK_RESOURCE_H_

#include "base/map.h"
#include "base/sync.h"
#include "tensor/handle.h"
#include "tensor/object.h"
#include "tensor/tensor.h"

// What every resource starts with. |type| names its kind ("Var", "Queue"): a lookup under another
// kind is an error, not a cast.
typedef struct rn_resource_t {
  rn_object_t object;
  const char* type;  // static storage
} rn_resource_t;

typedef struct rn_resources_t rn_resources_t;

RN_MUST_USE rn_status_t rn_resources_create(rn_allocator_t allocator, rn_resources_t** out);
void rn_resources_destroy(rn_resources_t* resources);

// The resource |name| of |container| ("" is "localhost", the default), made with |create| if it is
// not there yet (NULL: NOT_FOUND). The caller gets a reference of its own. |create| is called under
// the table's lock and must not look things up.
RN_MUST_USE rn_status_t rn_resources_get(rn_resources_t* resources, rn_str_t container,
                                         rn_str_t name, const char* type,
                                         rn_status_t (*create)(void* arg, rn_resource_t** out),
                                         void* arg, rn_resource_t** out);
// Takes it out of the table. NOT_FOUND if it is not there.
RN_MUST_USE rn_status_t rn_resources_remove(rn_resources_t* resources, rn_str_t container,
                                            rn_str_t name, const char* type);
// A number that no other call for this table gives: for the names of resources of which a kernel
// makes a new one each time.
int64_t rn_resources_new_number(rn_resources_t* resources);
// Empties one container, or all of them if |container| is empty.
void rn_resources_clear(rn_resources_t* resources, rn_str_t container);

// A handle to |resource|, of which it keeps a reference.
RN_MUST_USE rn_status_t rn_handle_create(rn_allocator_t allocator, rn_str_t device,
                                         rn_str_t container, rn_str_t name, rn_dtype_t dtype,
                                         rn_shape_t shape, rn_resource_t* resource,
                                         rn_handle_t** out);
// The resource of kind |type| behind a scalar handle tensor; borrowed from it. A handle that came
// in a message finds it in |resources| (NULL: it finds nothing) and keeps it. INVALID_ARGUMENT for
// anything else.
RN_MUST_USE rn_status_t rn_handle_resource(const rn_tensor_t* handle, rn_resources_t* resources,
                                           const char* type, rn_resource_t** out);

// A variable's cell, for reference edges and for resource variables alike. |mutex| guards |value|
// (the tensor, not the bytes: an update in place holds the lock, a reader that shares the buffer
// does not, which is TensorFlow's contract for references without use_locking).
typedef struct rn_variable_t {
  rn_resource_t resource;  // type "Var"
  rn_mutex_t mutex;
  rn_tensor_t value;  // not set: uninitialised
  rn_dtype_t dtype;
  rn_allocator_t allocator;
  rn_str_t name;  // Owned copy
} rn_variable_t;
#define RN_VARIABLE_TYPE "Var"
RN_MUST_USE rn_status_t rn_variable_create(rn_allocator_t allocator, rn_dtype_t dtype,
                                           rn_str_t name, rn_variable_t** out);

// Shares the value of the variable that |reference| (a tensor with is_ref) stands for.
// FAILED_PRECONDITION, with stock's words, if it has none and that is not allowed.
RN_MUST_USE rn_status_t rn_variable_read(const rn_tensor_t* reference, bool allows_uninitialized,
                                         rn_tensor_t* out);

#endif  // RUNNEL_FRAMEWORK_RESOURCE_H_
