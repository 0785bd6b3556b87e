// Calling functions: what kernels, datasets and eager execution run functions of a library through.
//
// Whoever owns a library and devices implements the table (session/functions.c); a kernel finds it
// in its init. A function with its attributes is instantiated once, which costs little: it is
// planned when it first runs, since a function may call itself. Then it is run any number of times,
// from any thread, also outside of a step.
//
// The table is counted. Its owner holds one reference; whoever may outlive the owner and still
// calls functions (a dataset, the kernels that a worker's session keeps) holds one of its own. A
// kernel that only lives as long as the plan it was made for must not: the table owns such plans.
#ifndef RUNNEL_FRAMEWORK_FUNCTION_H_
#define RUNNEL_FRAMEWORK_FUNCTION_H_

#include "framework/kernel.h"

// A function ready to be called; counted. What is seen of it is read-only.
typedef struct rn_instance_t {
  rn_str_t name;
  int32_t arg_count;
  const rn_dtype_t* arg_types;
  int32_t result_count;
  const rn_dtype_t* result_types;
  rn_str_t def;  // the FunctionDef that it was made of
} rn_instance_t;

// One call, embedded in the caller's own struct and left alone until |done|.
typedef struct rn_function_call_t {
  rn_step_t* step;      // the step that calls: its cancellation, deadline and threads. NULL: none
  rn_cancel_t* cancel;  // instead of a step's; NULL: nobody stops it
  // Borrowed: where values from and to parts of the call elsewhere meet; fails with the call. NULL:
  // there are none.
  rn_rendezvous_t* rendezvous;
  const rn_tensor_t* const* args;  // lent; as many as the function takes
  rn_tensor_t* results;            // unset; the caller's on success, unset on failure
  // Called once, on any thread, without locks held, perhaps before rn_function_run returns. Owns
  // |status|; the call may be used again from here on.
  void (*done)(struct rn_function_call_t* call, rn_status_t status);
} rn_function_call_t;

typedef struct rn_functions_vtable_t {
  rn_status_t (*instantiate)(rn_functions_t* functions, const rn_func_attr_t* function,
                             rn_str_t device, rn_instance_t** out);
  void (*release)(rn_functions_t* functions, rn_instance_t* instance);
  void (*run)(rn_functions_t* functions, rn_instance_t* instance, rn_function_call_t* call);
  void (*retain_table)(rn_functions_t* functions);
  void (*release_table)(rn_functions_t* functions);
} rn_functions_vtable_t;

struct rn_functions_t {
  const rn_functions_vtable_t* vtable;
};

// Whether nodes of |op| call functions, and so need a table.
static inline bool rn_op_names_function(const rn_op_def_t* op) {
  for (int a = 0; a < op->attr_count; ++a)
    if (op->attrs[a].kind == RN_ATTR_FUNC) return true;
  return op->role == RN_ROLE_FUNCTION;
}

// NULL is fine.
static inline void rn_functions_retain(rn_functions_t* functions) {
  if (functions) functions->vtable->retain_table(functions);
}
static inline void rn_functions_release(rn_functions_t* functions) {
  if (functions) functions->vtable->release_table(functions);
}

// The function with these attributes, for a caller on |device| ("": any), which is where its nodes
// run unless they say otherwise. The caller owns a reference. NOT_FOUND, INVALID_ARGUMENT naming
// the function.
RN_MUST_USE static inline rn_status_t rn_function_prepare(rn_functions_t* functions,
                                                          const rn_func_attr_t* function,
                                                          rn_str_t device, rn_instance_t** out) {
  return functions->vtable->instantiate(functions, function, device, out);
}
static inline void rn_function_forget(rn_functions_t* functions, rn_instance_t* instance) {
  if (instance) functions->vtable->release(functions, instance);
}
// Runs it; never blocks. RESOURCE_EXHAUSTED, naming the function, if calls nest too deeply.
static inline void rn_function_run(rn_functions_t* functions, rn_instance_t* instance,
                                   rn_function_call_t* call) {
  functions->vtable->run(functions, instance, call);
}
// Runs it and waits, for threads that may. |call->done| is overwritten.
RN_MUST_USE rn_status_t rn_function_run_and_wait(rn_functions_t* functions, rn_instance_t* instance,
                                                 rn_function_call_t* call);

// A number that values have in common if they are equal, with functions by what they do and not by
// their names; others nearly never have it. Tensors by their bytes. |functions| may be NULL: names
// count.
RN_MUST_USE rn_status_t rn_attr_digest(rn_functions_t* functions, const rn_attr_value_t* value,
                                       rn_allocator_t allocator, uint64_t* out);

#endif  // RUNNEL_FRAMEWORK_FUNCTION_H_
