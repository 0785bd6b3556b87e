// Resources: state that outlives a step, found by container and name on its device.
#ifndef RUNNEL_FRAMEWORK_RESOURCE_H_
#define RUNNEL_FRAMEWORK_RESOURCE_H_

#include "base/map.h"
#include "base/sync.h"
#include "tensor/handle.h"
#include "tensor/object.h"
#include "tensor/tensor.h"

// The first member of every resource. |type| names its kind ("Var", "Queue"); a lookup as another
// kind is an error.
typedef struct rn_resource_t {
  rn_object_t object;
  const char* type;  // static storage
} rn_resource_t;

typedef struct rn_resources_t rn_resources_t;

RN_MUST_USE rn_status_t rn_resources_create(rn_allocator_t allocator, rn_resources_t** out);
void rn_resources_destroy(rn_resources_t* resources);

// Finds resource |name| of |container| ("" means "localhost", the default). If it does not exist,
// makes it with |create|, or fails with NOT_FOUND if |create| is NULL. The caller owns a reference.
// |create| is called under the table's lock and must not use the table.
RN_MUST_USE rn_status_t rn_resources_get(rn_resources_t* resources, rn_str_t container,
                                         rn_str_t name, const char* type,
                                         rn_status_t (*create)(void* arg, rn_resource_t** out),
                                         void* arg, rn_resource_t** out);
// Removes a resource from the table. NOT_FOUND if it does not exist.
RN_MUST_USE rn_status_t rn_resources_remove(rn_resources_t* resources, rn_str_t container,
                                            rn_str_t name, const char* type);
// Returns a number that is unique in this table, for naming resources that a kernel makes anew each
// time.
int64_t rn_resources_new_number(rn_resources_t* resources);
// Clears one container, or all of them if |container| is "".
void rn_resources_clear(rn_resources_t* resources, rn_str_t container);

// Makes a handle that holds a reference to |resource|.
RN_MUST_USE rn_status_t rn_handle_create(rn_allocator_t allocator, rn_str_t device,
                                         rn_str_t container, rn_str_t name, rn_dtype_t dtype,
                                         rn_shape_t shape, rn_resource_t* resource,
                                         rn_handle_t** out);
// The resource of kind |type| behind a scalar handle tensor; borrowed from it. A handle that came
// in a message is looked up in |resources| (may be NULL) once and then keeps the resource.
// INVALID_ARGUMENT for anything else.
RN_MUST_USE rn_status_t rn_handle_resource(const rn_tensor_t* handle, rn_resources_t* resources,
                                           const char* type, rn_resource_t** out);

// A variable, for both reference edges and resource variables. |mutex| guards |value| (the tensor,
// not the bytes: an update in place holds the lock, a reader that shares the buffer does not, which
// is TensorFlow's contract for references without use_locking).
typedef struct rn_variable_t {
  rn_resource_t resource;  // type "Var"
  rn_mutex_t mutex;
  rn_tensor_t value;  // unset while uninitialised
  rn_dtype_t dtype;
  rn_allocator_t allocator;
  rn_str_t name;  // Owned copy
} rn_variable_t;
#define RN_VARIABLE_TYPE "Var"
RN_MUST_USE rn_status_t rn_variable_create(rn_allocator_t allocator, rn_dtype_t dtype,
                                           rn_str_t name, rn_variable_t** out);

// Shares the value of the variable that |reference| (a tensor with is_ref) refers to.
// FAILED_PRECONDITION, with TensorFlow's message, if it is uninitialised and that is not allowed.
RN_MUST_USE rn_status_t rn_variable_read(const rn_tensor_t* reference, bool allows_uninitialized,
                                         rn_tensor_t* out);

#endif  // RUNNEL_FRAMEWORK_RESOURCE_H_
