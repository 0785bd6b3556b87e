// Kernels that make a resource and give a handle to it: queues, accumulators, readers.
//
// Ops of the first generation give Ref(string): a reference to a string vector [container, name].
// Those of the second give a resource handle. Both are made here, once, when the kernel is.
#ifndef RUNNEL_KERNELS_CPU_STATE_HANDLE_H_
#define RUNNEL_KERNELS_CPU_STATE_HANDLE_H_

#include "framework/kernel.h"

// The state of such a kernel, or its first member.
typedef struct rn_handle_state_t {
  rn_resource_t* resource;  // Retained
  rn_tensor_t handle;       // the resource form; unset in the other
  rn_variable_t* ref;       // the Ref(string) form; Retained, NULL in the other
} rn_handle_state_t;

// Finds or makes the resource of kind |type| by the node's container and shared_name. A node
// without a shared_name has one of its own, called "_<number>_<node>". |create| gets that name. An
// anonymous one (framework/anonymous.h) can be reached by handles only.
typedef rn_status_t (*rn_handle_create_fn_t)(void* arg, rn_str_t name, rn_resource_t** out);
RN_MUST_USE rn_status_t rn_handle_state_init(rn_handle_state_t* state, const rn_kernel_init_t* init,
                                             const char* type, rn_handle_create_fn_t create,
                                             void* arg);
void rn_handle_state_destroy(void* state);  // of a rn_handle_state_t
rn_status_t rn_handle_state_compute(rn_kernel_ctx_t* ctx);

// The Ref(string) form alone, for a resource made elsewhere; the caller owns |*out_ref|.
RN_MUST_USE rn_status_t rn_handle_ref_create(rn_allocator_t allocator, rn_str_t container,
                                             rn_str_t name, rn_resource_t* resource,
                                             rn_variable_t** out_ref);

// The resource of kind |type| behind input |i|, in either form. The caller gets a reference.
RN_MUST_USE rn_status_t rn_handle_input(const rn_kernel_ctx_t* ctx, int i, const char* type,
                                        rn_resource_t** out);

#endif  // RUNNEL_KERNELS_CPU_STATE_HANDLE_H_
