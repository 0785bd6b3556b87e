// The functions that a kernel calls: copied from its attributes, and instantiated on first use,
// since a function may call itself.
#ifndef RUNNEL_KERNELS_CPU_FUNCTION_KERNEL_CALLS_H_
#define RUNNEL_KERNELS_CPU_FUNCTION_KERNEL_CALLS_H_

#include "base/vec.h"
#include "framework/function.h"

// A function that a kernel calls.
typedef struct rn_kernel_calls_target_t {
  const rn_func_attr_t* function;   // in the state's arena
  rn_instance_t* _Atomic instance;  // NULL until first needed
} rn_kernel_calls_target_t;

typedef struct rn_kernel_calls_t {
  rn_functions_t* functions;
  rn_arena_t arena;
  rn_str_t device;  // of the call; default for nodes of the body
  int32_t target_count;
  rn_kernel_calls_target_t* targets;
  RN_VEC(rn_attr_value_t) values;  // copies that hold buffers
} rn_kernel_calls_t;

// Begins with room for |count| functions. FAILED_PRECONDITION if the runtime has no functions.
RN_MUST_USE rn_status_t rn_kernel_calls_begin(const rn_kernel_init_t* init,
                                              rn_kernel_calls_t* calls, int32_t count);
RN_MUST_USE rn_status_t rn_kernel_calls_add(rn_kernel_calls_t* calls,
                                            const rn_func_attr_t* function);
// Adds the function in attribute |attr|.
RN_MUST_USE rn_status_t rn_kernel_calls_add_named(rn_kernel_calls_t* calls,
                                                  const rn_kernel_init_t* init, const char* attr);
void rn_kernel_calls_destroy(
    void* state);  // |state| is an rn_kernel_calls_t; half-begun ones are fine

// How a function is called; stock's messages for wrong numbers depend on it.
typedef enum rn_called_as_t {
  RN_AS_CALL,
  RN_AS_BATCH,
  RN_AS_COND,
  RN_AS_WHILE_BODY,
  RN_AS_FOR_BODY
} rn_called_as_t;

// Checks the numbers of arguments and results.
RN_MUST_USE rn_status_t rn_kernel_calls_check(const rn_instance_t* instance, rn_called_as_t as,
                                              int32_t args, int32_t results);
// The instance of target |i|, which must have these numbers of arguments and results. If several
// threads race, one instance is kept.
RN_MUST_USE rn_status_t rn_kernel_calls_instance(rn_kernel_calls_t* calls, int32_t i,
                                                 rn_called_as_t as, int32_t args, int32_t results,
                                                 rn_instance_t** out);

#endif  // RUNNEL_KERNELS_CPU_FUNCTION_KERNEL_CALLS_H_
