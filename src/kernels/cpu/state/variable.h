// Shared by kernels that change variables: finding the variable behind a reference or a handle, and
// making its value writable.
#ifndef RUNNEL_KERNELS_CPU_STATE_VARIABLE_H_
#define RUNNEL_KERNELS_CPU_STATE_VARIABLE_H_

#include "framework/kernel.h"

// The variable in input |i|, a reference or a handle. Borrowed. Empty handles give stock's error.
RN_MUST_USE rn_status_t rn_variable_of(const rn_kernel_ctx_t* ctx, int i, rn_variable_t** out);

// With the variable's lock held: makes |variable->value| writable in place. A reference variable
// always is. The value of a resource variable is copied first if a reader still holds it, so that
// the reader's snapshot does not change. FAILED_PRECONDITION if it has no value.
RN_MUST_USE rn_status_t rn_variable_make_writable_locked(rn_kernel_ctx_t* ctx, int i,
                                                         rn_variable_t* variable);

// For ops that take and return a reference: output 0 is input 0. Does nothing for handles.
void rn_variable_pass_on(rn_kernel_ctx_t* ctx);
// Runs |update| on the variable in input 0 with its lock held, and passes a reference on.
RN_MUST_USE rn_status_t rn_variable_update(rn_kernel_ctx_t* ctx,
                                           rn_status_t (*update)(rn_kernel_ctx_t* ctx,
                                                                 rn_variable_t* variable));

// For AssignAdd and AssignSub, with the lock held: checks that input 1 can be added to the variable
// in input 0, and makes its value writable.
RN_MUST_USE rn_status_t rn_variable_check_update_locked(rn_kernel_ctx_t* ctx,
                                                        rn_variable_t* variable);

// Variables that live within a step. Makes output 0 a reference to a new one called |name|, with
// zeros. ALREADY_EXISTS if the step, or this iteration, has one of that name.
RN_MUST_USE rn_status_t rn_temporary_make(rn_kernel_ctx_t* ctx, rn_str_t name, rn_dtype_t dtype,
                                          rn_shape_t shape);
// Ends the one called |name|, which input |i| must refer to; its value becomes output 0.
RN_MUST_USE rn_status_t rn_temporary_take(rn_kernel_ctx_t* ctx, int i, rn_str_t name);

// Stock's error for a variable without a value, by the kind of input |i|.
RN_MUST_USE rn_status_t rn_variable_uninitialized(const rn_kernel_ctx_t* ctx, int i,
                                                  const rn_variable_t* variable);

#endif  // RUNNEL_KERNELS_CPU_STATE_VARIABLE_H_
