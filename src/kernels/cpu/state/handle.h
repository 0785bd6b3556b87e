// Kernels that create a resource and return a handle to it: queues, accumulators, readers.
//
// V1 ops return Ref(string): a reference to a string vector [container, name]. V2 ops return a
// resource handle. Both are created here, once, with the kernel.
#ifndef RUNNEL_KERNELS_CPU_STATE_HANDLE_H_
#define RUNNEL_KERNELS_CPU_STATE_HANDLE_H_

#include "framework/kernel.h"

// The state of such a kernel, or its first member.
typedef struct rn_handle_state_t {
  rn_resource_t* resource;  // Retained
  rn_tensor_t handle;       // for V2; otherwise unset
  rn_variable_t* ref;       // for V1; Retained; otherwise NULL
} rn_handle_state_t;

// Finds or creates the resource of kind |type| by the node's container and shared_name. A node
// without a shared_name gets its own, called "_<number>_<node>". |create| gets that name. An
// anonymous resource (framework/anonymous.h) can be reached only through handles.
typedef rn_status_t (*rn_handle_create_fn_t)(void* arg, rn_str_t name, rn_resource_t** out);
RN_MUST_USE rn_status_t rn_handle_state_init(rn_handle_state_t* state, const rn_kernel_init_t* init,
                                             const char* type, rn_handle_create_fn_t create,
                                             void* arg);
void rn_handle_state_destroy(void* state);  // |state| is an rn_handle_state_t
rn_status_t rn_handle_state_compute(rn_kernel_ctx_t* ctx);

// Creates only the Ref(string), for a resource created elsewhere; the caller owns |*out_ref|.
RN_MUST_USE rn_status_t rn_handle_ref_create(rn_allocator_t allocator, rn_str_t container,
                                             rn_str_t name, rn_resource_t* resource,
                                             rn_variable_t** out_ref);

// Makes |*out| a scalar that holds |handle|, whose reference it takes, also on failure.
RN_MUST_USE rn_status_t rn_handle_tensor(rn_allocator_t memory, rn_handle_t* handle,
                                         rn_tensor_t* out);

// The resource of kind |type| in input |i|, in either form. The caller gets a reference.
RN_MUST_USE rn_status_t rn_handle_input(const rn_kernel_ctx_t* ctx, int i, const char* type,
                                        rn_resource_t** out);

// INVALID_ARGUMENT, in stock's words, if the handle in input |i| says that its resource is in the
// memory of another device.
RN_MUST_USE rn_status_t rn_handle_check_device(const rn_kernel_ctx_t* ctx, int i);

#endif  // RUNNEL_KERNELS_CPU_STATE_HANDLE_H_
