// One running step: its parts, ready work and waiters. For the files of exec/ only.
//
// The calling thread runs ready work until all parts have ended; the pool's threads help if there
// is more than it can run. Everything that can become ready later (an asynchronous instruction, a
// helper) is counted in |active|: when nothing is ready and nothing is active, the step is over.
#ifndef RUNNEL_EXEC_EXECUTION_H_
#define RUNNEL_EXEC_EXECUTION_H_

#include "base/assert.h"
#include "exec/executor.h"
#include "exec/frames.h"
#include "exec/state.h"

#define RN_MAX_HELPERS 64

typedef struct rn_helper_t {
  rn_job_t job;  // first
  rn_execution_t* execution;
  bool is_busy;
} rn_helper_t;

struct rn_execution_t {
  const rn_run_t* run;
  rn_mutex_t mutex;  // guards everything below and the states' ready lists
  rn_cond_t changed;
  rn_state_t** states;
  int32_t active;   // instructions or tasks under way, and helpers
  int32_t ready;    // over all states
  bool is_plain;    // one thread, no other part to cancel
  bool is_waiting;  // the calling thread sleeps
  _Atomic bool is_failed;
  rn_status_t status;  // the first error
  int32_t helper_count;
  rn_helper_t* helpers;
  // For an asynchronous step: the callback, and how many threads run its work now. The last one to
  // leave, with nothing ready and nothing active, ends the step.
  rn_done_fn_t done;
  void* done_arg;
  int32_t drivers;
};

// run_task.c: instructions in order.

// Runs the instructions of |task|; a device replays the segments that it has recorded. OK if the
// step was stopped meanwhile.
RN_MUST_USE rn_status_t rn_execution_run_task(rn_execution_t* execution, rn_state_t* state,
                                              const rn_task_t* task);
// Records an error (takes it), cancels the step. OK does nothing.
void rn_execution_fail(rn_execution_t* execution, rn_status_t status);
// Whether the step should stop: cancelled, failed or past its deadline (which it then records).
bool rn_execution_should_stop(rn_execution_t* execution);
// Whether the deadline of |run| has passed.
bool rn_run_is_late(const rn_run_t* run);
// Records statistics of instruction |n| in a traced step. Transfers between devices are left out,
// as in TensorFlow.
void rn_execution_record(rn_execution_t* execution, const rn_plan_t* plan, int32_t n,
                         const rn_tensor_t* outputs, int64_t start_ns);
// The start time of an instruction in a traced step; 0 otherwise.
int64_t rn_execution_start_ns(const rn_execution_t* execution);
// Appends the node to a kernel's error, as stock does.
rn_status_t rn_execution_node_error(const rn_plan_t* plan, int32_t instr, rn_status_t status);
// Shares the value of each variable that the instruction reads; FAILED_PRECONDITION if one has
// none.
RN_MUST_USE rn_status_t rn_state_deref(rn_state_t* state, const rn_instr_t* instr);
void rn_state_undo_deref(rn_state_t* state, const rn_instr_t* instr);

// Points |ctx| to what |instr| reads and writes.
static inline void rn_state_set_context(rn_kernel_ctx_t* ctx, rn_state_t* state,
                                        const rn_instr_t* instr) {
  ctx->kernel = instr->kernel;
  ctx->state = instr->kernel ? instr->kernel->state : NULL;
  ctx->in = state->inputs + instr->first_input;
  ctx->out = state->slots + instr->first_output;
  ctx->dying = instr->dying;
  ctx->planned = instr->planned;
}

// Clears the values that |instr| was the last to read.
static inline void rn_state_release_slots(rn_state_t* state, const rn_instr_t* instr) {
  const rn_plan_t* plan = state->plan;
  for (int32_t r = instr->first_release; r < instr->first_release + instr->release_count; ++r) {
    int32_t slot = plan->releases[r];
    int32_t counter = plan->slots[slot].counter;
    RN_ASSERT(counter < 0 || state->counters[counter] > 0);
    if (counter < 0 || --state->counters[counter] == 0) rn_tensor_clear(&state->slots[slot]);
  }
}

// schedule.c: tasks on threads.

// How many threads of the pool may help: the room that |execution->helpers| needs.
static inline int32_t rn_execution_most_helpers(const rn_run_t* run) {
  int32_t count = rn_pool_threads(run->pool) - 1;
  return count < RN_MAX_HELPERS ? count : RN_MAX_HELPERS;
}
// Lets that many help.
void rn_execution_make_helpers(rn_execution_t* execution);
// Runs all parts, in the calling thread first; returns when everything has ended.
void rn_execution_run_together(rn_execution_t* execution);
// Starts all parts of an asynchronous step, and runs them in the calling thread until they wait.
void rn_execution_start(rn_execution_t* execution);
// Counts off something that was active. Called with the lock held; releases it.
void rn_execution_leave_locked(rn_execution_t* execution);

// executor.c: takes the results of an asynchronous step; no other thread uses it any more.
void rn_execution_end(rn_execution_t* execution);

#endif  // RUNNEL_EXEC_EXECUTION_H_
