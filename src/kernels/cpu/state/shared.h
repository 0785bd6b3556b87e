// Kernels that share a resource: it is found by the node's container and shared_name, or by the
// node's own name.
#ifndef RUNNEL_KERNELS_CPU_STATE_SHARED_H_
#define RUNNEL_KERNELS_CPU_STATE_SHARED_H_

#include "framework/kernel.h"

// The node's shared_name, or its name if that is empty.
static inline rn_str_t rn_shared_name(const rn_kernel_init_t* init) {
  rn_str_t name = rn_init_string(init, "shared_name");
  return name.size ? name : init->node;
}

// Makes a resource. |arg| is the const rn_kernel_init_t of the first kernel that asks for it.
typedef rn_status_t (*rn_shared_create_fn_t)(void* arg, rn_resource_t** out);

// Finds the resource of kind |type|, or makes it. The caller owns a reference to |*out|.
RN_MUST_USE static inline rn_status_t rn_shared_get(const rn_kernel_init_t* init, const char* type,
                                                    rn_shared_create_fn_t create,
                                                    rn_resource_t** out) {
  return rn_resources_get(init->resources, rn_init_string(init, "container"), rn_shared_name(init),
                          type, create, (void*)(uintptr_t)init, out);
}

#endif  // RUNNEL_KERNELS_CPU_STATE_SHARED_H_
