// Resources of plug-in kernels: objects that outlive a step, such as a table or a cache.
//
// Kernels find a resource by container and name in the table of their device, or reach it by a
// handle. The elements of a tensor of type TF_RESOURCE are pointers to handles (rn_handle_t*) or
// NULL; the tensor owns a reference to each. All functions may be called from any thread.
#ifndef RUNNEL_RESOURCES_H_
#define RUNNEL_RESOURCES_H_

#include <stdbool.h>
#include <stdint.h>

#include "runnel/api.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_resources_t rn_resources_t;  // the table of a device
typedef struct rn_handle_t rn_handle_t;

// What an object is. Objects of another |type| are never given to a kernel that asks for this one.
typedef struct rn_resource_kind_t {
  const char* type;               // a name of the plug-in's own, such as that of its C++ class
  void (*destroy)(void* object);  // called once, when the last handle and the table let go of it
} rn_resource_kind_t;

// The table of the kernel's device, which outlives the kernel.
RN_API rn_resources_t* rn_kernel_resources(TF_OpKernelContext* ctx);
RN_API rn_resources_t* rn_construction_resources(TF_OpKernelConstruction* ctx);

// A number that the table has not given before, for names of a kernel's own.
RN_API int64_t rn_resource_new_number(rn_resources_t* resources);

// Finds resource |name| of |container| ("" is the default container). If there is none, |create|
// makes the object, or sets the status and returns NULL; without |create| the status is NOT_FOUND.
// |create| is called under the lock of the table and must not use it. Returns a new handle.
RN_API rn_handle_t* rn_resource_find(rn_resources_t* resources, const char* container,
                                     const char* name, const rn_resource_kind_t* kind,
                                     void* (*create)(void* arg, TF_Status* status), void* arg,
                                     TF_Status* status);

// Takes a resource out of the table. It lives on as long as there are handles to it. NOT_FOUND if
// it is not there.
RN_API void rn_resource_remove(rn_resources_t* resources, const char* container, const char* name,
                               const char* type, TF_Status* status);
// Takes out all resources of a container.
RN_API void rn_resources_remove_all(rn_resources_t* resources, const char* container);

// A handle to |object|, which is in no table. Takes |object| over, also on failure.
RN_API rn_handle_t* rn_handle_to_object(const char* device, void* object,
                                        const rn_resource_kind_t* kind, TF_Status* status);
// A handle by name, to a resource that may not exist yet.
RN_API rn_handle_t* rn_handle_to_name(const char* device, const char* container, const char* name,
                                      const char* type, TF_Status* status);

// The object of a handle, borrowed from it. A handle by name is looked up in |resources| (NULL: it
// is not) and then keeps the resource. NOT_FOUND if there is none, INVALID_ARGUMENT if it is of
// another type or not one of a plug-in.
RN_API void* rn_handle_object(rn_handle_t* handle, rn_resources_t* resources, const char* type,
                              TF_Status* status);

// Adds a reference and returns |handle|; NULL is fine.
RN_API rn_handle_t* rn_handle_retain(rn_handle_t* handle);
RN_API void rn_handle_release(rn_handle_t* handle);

// The texts of a handle, borrowed from it.
typedef struct rn_handle_texts_t {
  TF_StringView device, container, name, type;
} rn_handle_texts_t;
RN_API rn_handle_texts_t rn_handle_texts(const rn_handle_t* handle);

// A tensor of handles, all NULL, in host memory.
RN_API TF_Tensor* rn_resource_tensor(const int64_t* dims, int num_dims, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_RESOURCES_H_
