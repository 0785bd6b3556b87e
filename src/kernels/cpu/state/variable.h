// What kernels that change variables share: finding the variable behind a reference or a handle,
// and getting at bytes that may be written.
#ifndef RUNNEL_KERNELS_CPU_STATE_VARIABLE_H_
#define RUNNEL_KERNELS_CPU_STATE_VARIABLE_H_

#include "framework/kernel.h"

// The variable behind input |i|, be it a reference or a handle. Borrowed. Handles to nothing get
// stock's words.
RN_MUST_USE rn_status_t rn_variable_of(const rn_kernel_ctx_t* ctx, int i, rn_variable_t** out);

// With the variable's lock held: makes |variable->value| writable in place. A reference variable
// always is; a resource variable whose bytes a reader still holds is copied first, so that the
// reader keeps what it read. FAILED_PRECONDITION if it has no value.
RN_MUST_USE rn_status_t rn_variable_make_writable_locked(rn_kernel_ctx_t* ctx, int i,
                                                         rn_variable_t* variable);

// For ops that take and return a reference: output 0 is input 0. Nothing to do for handles.
void rn_variable_pass_on(rn_kernel_ctx_t* ctx);

// The message that stock gives for a variable without a value, by the kind of input |i|.
RN_MUST_USE rn_status_t rn_variable_uninitialized(const rn_kernel_ctx_t* ctx, int i,
                                                  const rn_variable_t* variable);

#endif  // RUNNEL_KERNELS_CPU_STATE_VARIABLE_H_
