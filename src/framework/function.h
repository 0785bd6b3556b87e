// Calling functions: the interface through which kernels, datasets and eager execution run
// functions of a library.
//
// The owner of a library and devices implements the vtable (session/functions.c); a kernel gets it
// in its init. A caller instantiates a function with its attributes once, which costs little: it is
// planned when it first runs, because a function may call itself. It can then run any number of
// times, from any thread, also outside of a step.
//
// An rn_functions_t is reference-counted. Its owner holds one reference; an object that may outlive
// the owner and still call functions (a dataset, a kernel that a worker's session keeps) holds its
// own. A kernel that lives only as long as its plan must not hold one, because the rn_functions_t
// owns such plans.
#ifndef RUNNEL_FRAMEWORK_FUNCTION_H_
#define RUNNEL_FRAMEWORK_FUNCTION_H_

#include "framework/kernel.h"

struct rn_pb_FunctionDefLibrary_t;

// A function ready to be called; reference-counted. These fields are read-only.
typedef struct rn_instance_t {
  rn_str_t name;
  int32_t arg_count;
  const rn_dtype_t* arg_types;
  int32_t result_count;
  const rn_dtype_t* result_types;
  rn_str_t def;  // the FunctionDef that it was made from
} rn_instance_t;

// One call, embedded in the caller's own struct; must not change until |done|.
typedef struct rn_function_call_t {
  rn_step_t* step;  // the calling step, for its cancellation, deadline and threads; NULL if none
  rn_cancel_t* cancel;  // used if there is no step; NULL if the call cannot be cancelled
  // Borrowed. Exchanges values with parts of the call that run elsewhere; fails with the call. NULL
  // if there are none.
  rn_rendezvous_t* rendezvous;
  const rn_tensor_t* const* args;  // borrowed; as many as the function takes
  rn_tensor_t* results;            // unset; the caller's on success, unset on failure
  // Called once, on any thread, without locks held, perhaps before rn_function_run returns. Takes
  // ownership of |status| and may reuse the call.
  void (*done)(struct rn_function_call_t* call, rn_status_t status);
} rn_function_call_t;

typedef struct rn_functions_vtable_t {
  rn_status_t (*instantiate)(rn_functions_t* functions, const rn_func_attr_t* function,
                             rn_str_t device, const void* owner, rn_instance_t** out);
  void (*release)(rn_functions_t* functions, rn_instance_t* instance);
  void (*run)(rn_functions_t* functions, rn_instance_t* instance, rn_function_call_t* call);
  rn_status_t (*find)(rn_functions_t* functions, rn_str_t name, rn_str_t* out_def);
  rn_status_t (*derive)(rn_functions_t* functions, bool with_own,
                        const struct rn_pb_FunctionDefLibrary_t* library, rn_functions_t** out);
  void (*retain_table)(rn_functions_t* functions);
  void (*release_table)(rn_functions_t* functions);
} rn_functions_vtable_t;

struct rn_functions_t {
  const rn_functions_vtable_t* vtable;
};

// Whether nodes of |op| call functions and so need an rn_functions_t.
static inline bool rn_op_names_function(const rn_op_def_t* op) {
  if (op->flags & RN_OP_CALLS_FUNCTIONS) return true;
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

// The FunctionDef of the function |name|; empty if there is none. It lives as long as the table.
RN_MUST_USE static inline rn_status_t rn_functions_find(rn_functions_t* functions, rn_str_t name,
                                                        rn_str_t* out_def) {
  return functions->vtable->find(functions, name, out_def);
}
// Makes a table of the functions of |library|, and those of |functions| if |with_own|, that calls
// them as |functions| does, with the same devices and threads. It is closed when |functions| is.
// The caller owns a reference.
RN_MUST_USE static inline rn_status_t rn_functions_derive(
    rn_functions_t* functions, bool with_own, const struct rn_pb_FunctionDefLibrary_t* library,
    rn_functions_t** out) {
  return functions->vtable->derive(functions, with_own, library, out);
}

// Instantiates a function with these attributes for a caller on |device| ("" for any). Its nodes
// run there unless they request another device. The caller owns a reference. Fails with NOT_FOUND
// or INVALID_ARGUMENT, naming the function.
RN_MUST_USE static inline rn_status_t rn_function_prepare(rn_functions_t* functions,
                                                          const rn_func_attr_t* function,
                                                          rn_str_t device, rn_instance_t** out) {
  return functions->vtable->instantiate(functions, function, device, NULL, out);
}
// The same with kernels of its own, which |owner| alone uses: their state, such as that of random
// generators, starts anew. Calls with the same |owner| return the same instance while it exists.
RN_MUST_USE static inline rn_status_t rn_function_prepare_apart(rn_functions_t* functions,
                                                                const rn_func_attr_t* function,
                                                                rn_str_t device, const void* owner,
                                                                rn_instance_t** out) {
  return functions->vtable->instantiate(functions, function, device, owner, out);
}
static inline void rn_function_forget(rn_functions_t* functions, rn_instance_t* instance) {
  if (instance) functions->vtable->release(functions, instance);
}
// Starts the call; never blocks. It fails with RESOURCE_EXHAUSTED, naming the function, if calls
// nest too deeply.
static inline void rn_function_run(rn_functions_t* functions, rn_instance_t* instance,
                                   rn_function_call_t* call) {
  functions->vtable->run(functions, instance, call);
}
// Runs the call and waits, for threads that may block. |call->done| is overwritten.
RN_MUST_USE rn_status_t rn_function_run_and_wait(rn_functions_t* functions, rn_instance_t* instance,
                                                 rn_function_call_t* call);

// A hash of an attribute value. Functions are hashed by their bodies instead of their names (by
// their names if |functions| is NULL), tensors by their bytes.
RN_MUST_USE rn_status_t rn_attr_digest(rn_functions_t* functions, const rn_attr_value_t* value,
                                       rn_allocator_t allocator, uint64_t* out);

#endif  // RUNNEL_FRAMEWORK_FUNCTION_H_
