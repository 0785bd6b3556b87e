// The state of one step of a plan: slots, counters and memory. For the files of exec/ only.
//
// States are kept by their plan and used again, so that a repeated step allocates nothing:
// constants, planned tensors and the pointers from instructions to their inputs stay as they are.
#ifndef RUNNEL_EXEC_STATE_H_
#define RUNNEL_EXEC_STATE_H_

#include "exec/plan.h"

typedef struct rn_execution_t rn_execution_t;
typedef struct rn_state_t rn_state_t;

// The context of a running asynchronous instruction.
typedef struct rn_async_t {
  rn_kernel_ctx_t ctx;  // first: rn_done gives it back
  rn_state_t* state;
  int32_t instr;
  int64_t start_ns;  // 0: the step is not traced
} rn_async_t;

struct rn_state_t {
  rn_plan_t* plan;
  rn_state_t* next;  // in the plan's free list
  rn_execution_t* execution;
  rn_tensor_t* slots;
  rn_tensor_t** inputs;   // where each input of each instruction is: &slots[plan->inputs[i]], or a
                          // dereferenced copy
  rn_tensor_t* dereffed;  // one per plan->derefs
  _Atomic int32_t* pending;   // by task
  _Atomic int32_t* counters;  // by slot counter
  rn_async_t* asyncs;
  int32_t* ready;  // tasks that may run; guarded by the execution's mutex
  int32_t ready_count;
  struct rn_frames_t* frames;       // Owned; NULL in a plan without loops and conditionals
  char* block;                      // planned memory
  struct rn_recorded_t* recorded;   // by segment
  struct rn_device_trace_t* trace;  // of the step, if that is traced; see trace_device.h
  bool has_loose_work;              // something was issued after the last replay; of a plain step
  size_t size;                      // of the whole state, in one piece with its arrays
};

// A state to run |plan| with, from its free list or new.
RN_MUST_USE rn_status_t rn_state_acquire(rn_plan_t* plan, rn_state_t** out);
// Clears what the step left behind and keeps the state for the next.
void rn_state_release(rn_state_t* state);
void rn_state_destroy(rn_state_t* state);
// Frees the states of |plan| that no step uses.
void rn_states_drop(rn_plan_t* plan);
// Gives back their memory on the device if the plan has run once only: it may not run again.
void rn_states_shrink(rn_plan_t* plan);

// Whether output |o| of |instr|, of |dtype|, is in the memory of a device that is not the host.
// NULL stands for a constant or a feed. Control flow has no kernels; its values are where
// place/partition.c puts them.
bool rn_plan_is_far(const rn_plan_t* plan, const rn_instr_t* instr, int32_t o, rn_dtype_t dtype);
// Makes |*out| a value that may outlive its owner: output |o| of |instr|, or a constant or a feed
// if |instr| is NULL. Borrowed bytes are copied by the side that may touch them: host or device.
RN_MUST_USE rn_status_t rn_plan_keep(const rn_plan_t* plan, const rn_instr_t* instr, int32_t o,
                                     const rn_tensor_t* value, rn_tensor_t* out);

#endif  // RUNNEL_EXEC_STATE_H_
