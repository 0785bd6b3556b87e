// Divides the ready tasks of a step between threads: the calling thread first, the pool where that
// helps, and the threads that complete asynchronous kernels. See execution.h; frames.c runs plans
// with loops.
//
// doc/invariants.md: invariant 26.
#include "base/assert.h"
#include "base/denormals.h"
#include "exec/execution.h"

// Tasks that wait for |task| are ready when it was the last they waited for.
static void finish_task_locked(rn_execution_t* execution, rn_state_t* state,
                               const rn_task_t* task) {
  for (int32_t s = 0; s < task->successor_count; ++s) {
    int32_t next = state->plan->successors[task->first_successor + s];
    RN_ASSERT(state->pending[next] > 0);
    if (--state->pending[next] == 0 && !execution->is_failed) {
      state->ready[state->ready_count++] = next;
      execution->ready++;
    }
  }
}

static void helper_run(rn_job_t* job);

// Gets help if more is ready than the task that was just taken: from the calling thread if it
// sleeps, then from the pool.
static void call_helpers_locked(rn_execution_t* execution, rn_job_t** out_job) {
  *out_job = NULL;
  if (execution->ready == 0) return;
  if (execution->is_waiting) {
    rn_cond_signal(&execution->changed);
    if (execution->ready < 2) return;
  }
  for (int32_t h = 0; h < execution->helper_count; ++h) {
    rn_helper_t* helper = &execution->helpers[h];
    if (helper->is_busy) continue;
    helper->is_busy = true;
    execution->active++;
    *out_job = &helper->job;
    return;
  }
}

static void async_done(rn_kernel_ctx_t* ctx, rn_status_t status) {
  rn_async_t* async = (rn_async_t*)ctx;
  rn_state_t* state = async->state;
  rn_execution_t* execution = state->execution;
  const rn_plan_t* plan = state->plan;
  const rn_instr_t* instr = &plan->instrs[async->instr];
  rn_state_undo_deref(state, instr);
  rn_execution_record(execution, plan, async->instr, ctx->out, async->start_ns);
  if (rn_ok(status))
    rn_state_release_slots(state, instr);
  else
    rn_execution_fail(execution, rn_execution_node_error(plan, async->instr, status));
  rn_mutex_lock(&execution->mutex);
  // An asynchronous instruction is a task of its own, found by the instruction's number.
  finish_task_locked(execution, state, &plan->tasks[plan->async_tasks[instr->async]]);
  rn_execution_leave_locked(execution);
}

static void start_async(rn_execution_t* execution, rn_state_t* state, int32_t n) {
  const rn_instr_t* instr = &state->plan->instrs[n];
  rn_async_t* async = &state->asyncs[instr->async];
  *async = (rn_async_t){.ctx = {.step = execution->run->step, .done = async_done},
                        .state = state,
                        .instr = n,
                        .start_ns = rn_execution_start_ns(execution)};
  rn_state_set_context(&async->ctx, state, instr);
  rn_status_t status = rn_state_deref(state, instr);
  if (rn_ok(status))
    instr->kernel->def->compute_async(&async->ctx);
  else
    async_done(&async->ctx, status);
}

// Takes a ready task of any state. The caller counts as active until it comes back.
static bool take_task_locked(rn_execution_t* execution, rn_state_t** out_state, int32_t* out_task) {
  for (int32_t p = 0; execution->ready > 0 && p < execution->run->plan_count; ++p) {
    rn_state_t* state = execution->states[p];
    if (state->ready_count == 0) continue;
    *out_state = state;
    *out_task = state->ready[--state->ready_count];
    execution->ready--;
    return true;
  }
  return false;
}

// Runs one task with the lock released. An asynchronous one stays active until its callback.
static void run_task(rn_execution_t* execution, rn_state_t* state, int32_t number) {
  const rn_plan_t* plan = state->plan;
  const rn_task_t* task = &plan->tasks[number];
  execution->active++;
  rn_job_t* helper;
  call_helpers_locked(execution, &helper);
  rn_mutex_unlock(&execution->mutex);
  if (helper) rn_pool_submit(execution->run->pool, helper);
  const rn_instr_t* first = &plan->instrs[task->first_instr];
  if (task->instr_count == 1 && first->async >= 0 && !rn_execution_should_stop(execution)) {
    start_async(execution, state, task->first_instr);
    rn_mutex_lock(&execution->mutex);
    return;
  }
  bool is_stopped = rn_execution_should_stop(execution);
  if (!is_stopped) rn_execution_fail(execution, rn_execution_run_task(execution, state, task));
  rn_mutex_lock(&execution->mutex);
  finish_task_locked(execution, state, task);
  RN_ASSERT(execution->active > 0);
  execution->active--;
}

static void drop_ready_locked(rn_execution_t* execution) {
  for (int32_t p = 0; p < execution->run->plan_count; ++p) execution->states[p]->ready_count = 0;
  execution->ready = 0;
}

static bool run_frames_locked(rn_execution_t* execution) {
  for (int32_t p = 0; p < execution->run->plan_count; ++p)
    if (execution->states[p]->frames && rn_frames_drain_locked(execution->states[p])) return true;
  return false;
}

// Runs whatever is ready until nothing is.
static void drain_locked(rn_execution_t* execution) {
  for (;;) {
    if (execution->is_failed) drop_ready_locked(execution);
    rn_state_t* state;
    int32_t task;
    if (take_task_locked(execution, &state, &task))
      run_task(execution, state, task);
    else if (!run_frames_locked(execution))
      return;
  }
}

// Runs the ready work of an asynchronous step; the last thread to leave ends the step. Called with
// the lock held; releases it.
static void drive_locked(rn_execution_t* execution) {
  execution->drivers++;
  uint64_t before = rn_denormals_flush();
  drain_locked(execution);
  rn_denormals_restore(before);
  execution->drivers--;
  bool is_over = execution->active == 0 && execution->ready == 0 && execution->drivers == 0;
  rn_mutex_unlock(&execution->mutex);
  if (is_over) rn_execution_end(execution);
}

static void helper_run(rn_job_t* job) {
  rn_helper_t* helper = (rn_helper_t*)job;
  rn_execution_t* execution = helper->execution;
  rn_mutex_lock(&execution->mutex);
  if (execution->done) {
    helper->is_busy = false;
    RN_ASSERT(execution->active > 0);
    execution->active--;
    drive_locked(execution);
    return;
  }
  drain_locked(execution);
  helper->is_busy = false;
  RN_ASSERT(execution->active > 0);
  execution->active--;
  rn_cond_signal(&execution->changed);
  rn_mutex_unlock(&execution->mutex);
}

void rn_execution_make_helpers(rn_execution_t* execution) {
  int32_t count = rn_execution_most_helpers(execution->run);
  for (int32_t h = 0; h < count; ++h)
    execution->helpers[h] = (rn_helper_t){.job = {.run = helper_run}, .execution = execution};
  execution->helper_count = count;
}

static bool has_work_locked(const rn_execution_t* execution) {
  if (execution->ready > 0) return true;
  for (int32_t p = 0; p < execution->run->plan_count; ++p)
    if (execution->states[p]->frames && rn_frames_has_work_locked(execution->states[p]))
      return true;
  return false;
}

// The thread that completes an asynchronous kernel has its own work, so what became ready goes to
// the pool, if there is one.
void rn_execution_leave_locked(rn_execution_t* execution) {
  RN_ASSERT(execution->active > 0);
  execution->active--;
  if (!execution->done) {
    // If the calling thread is busy, as with a task that sent what was just received, others begin.
    rn_job_t* job = NULL;
    rn_cond_signal(&execution->changed);
    if (!execution->is_waiting && !execution->is_failed) call_helpers_locked(execution, &job);
    rn_pool_t* to = execution->run->pool;
    rn_mutex_unlock(&execution->mutex);
    if (job) rn_pool_submit(to, job);
    return;
  }
  if (execution->drivers > 0) {  // they look again before they leave
    rn_mutex_unlock(&execution->mutex);
    return;
  }
  rn_job_t* helper = NULL;
  if (has_work_locked(execution) && !execution->is_failed) {
    for (int32_t h = 0; !helper && h < execution->helper_count; ++h) {
      if (execution->helpers[h].is_busy) continue;
      execution->helpers[h].is_busy = true;
      execution->active++;
      helper = &execution->helpers[h].job;
    }
  }
  if (!helper) {
    drive_locked(execution);
    return;
  }
  rn_pool_t* pool = execution->run->pool;
  rn_mutex_unlock(&execution->mutex);
  rn_pool_submit(pool, helper);
}

static void wait_locked(rn_execution_t* execution) {
  const rn_run_t* run = execution->run;
  execution->is_waiting = true;
  if (!run->deadline_ns || execution->is_failed) {
    rn_cond_wait(&execution->changed, &execution->mutex);
  } else if (!rn_cond_wait_until(&execution->changed, &execution->mutex, run->deadline_ns)) {
    rn_mutex_unlock(&execution->mutex);
    rn_execution_fail(execution, rn_deadline_exceeded("Timed out waiting for notification"));
    rn_mutex_lock(&execution->mutex);
  }
  execution->is_waiting = false;
}

// Cancelling from outside must wake a step that is waiting.
typedef struct stop_watch_t {
  rn_cancel_entry_t entry;  // first
  rn_execution_t* execution;
} stop_watch_t;

static void on_cancel(rn_cancel_entry_t* entry) {
  rn_execution_t* execution = ((stop_watch_t*)entry)->execution;
  rn_rendezvous_t* rendezvous = execution->run->step->rendezvous;
  if (rendezvous) rn_rendezvous_fail(rendezvous, rn_cancelled("Step was cancelled"));
  rn_mutex_lock(&execution->mutex);
  if (rn_ok(execution->status)) execution->status = rn_cancelled("Step was cancelled");
  execution->is_failed = true;
  rn_cond_signal(&execution->changed);
  rn_mutex_unlock(&execution->mutex);
}

static void start_states_locked(rn_execution_t* execution) {
  for (int32_t p = 0; p < execution->run->plan_count; ++p) {
    rn_state_t* state = execution->states[p];
    if (state->frames) continue;
    for (int32_t t = 0; t < state->plan->task_count; ++t) {
      if (state->plan->tasks[t].pending > 0) continue;
      state->ready[state->ready_count++] = t;
      execution->ready++;
    }
  }
}

void rn_execution_run_together(rn_execution_t* execution) {
  stop_watch_t watch = {{.fn = on_cancel}, execution};
  if (!rn_cancel_add(execution->run->step->cancel, &watch.entry)) {
    execution->status = rn_cancelled("Step was cancelled");
    return;
  }
  rn_mutex_lock(&execution->mutex);
  start_states_locked(execution);
  for (;;) {
    drain_locked(execution);
    if (execution->active == 0 && execution->ready == 0) break;
    wait_locked(execution);
  }
  RN_ASSERT(!has_work_locked(execution));  // invariant 26
  rn_mutex_unlock(&execution->mutex);
  rn_cancel_remove(execution->run->step->cancel, &watch.entry);
}

void rn_execution_start(rn_execution_t* execution) {
  rn_mutex_lock(&execution->mutex);
  start_states_locked(execution);
  drive_locked(execution);
}
