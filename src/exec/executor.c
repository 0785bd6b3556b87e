// The executor: runs straight-line tasks. See execution.h; frames.c runs plans with loops.
//
// doc/invariants.md: invariant 26.
#include "exec/executor.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/denormals.h"
#include "exec/execution.h"
#include "exec/record.h"
#include "exec/trace_device.h"
#include "framework/internal_ops.h"

void rn_execution_fail(rn_execution_t* execution, rn_status_t status) {
  if (rn_ok(status)) return;
  rn_mutex_lock(&execution->mutex);
  bool is_first = rn_ok(execution->status);
  if (is_first) execution->status = status;
  execution->is_failed = true;
  rn_mutex_unlock(&execution->mutex);
  if (!is_first) {
    rn_status_free(status);
    return;
  }
  rn_step_t* step = execution->run->step;
  if (execution->is_plain) return;
  if (step->rendezvous) rn_rendezvous_fail(step->rendezvous, rn_status_copy(status));
  rn_cancel(step->cancel);
}

static bool is_late(const rn_run_t* run) {
  const rn_env_t* env = run->step->env;
  return run->deadline_ns && env->now_ns(env->self) > run->deadline_ns;
}

bool rn_execution_should_stop(rn_execution_t* execution) {
  if (execution->is_failed) return true;
  const rn_run_t* run = execution->run;
  if (rn_is_cancelled(run->step->cancel)) {
    rn_execution_fail(execution, rn_cancelled("Step was cancelled"));
    return true;
  }
  if (is_late(run)) {
    rn_execution_fail(execution, rn_deadline_exceeded("Timed out waiting for notification"));
    return true;
  }
  return false;
}

rn_status_t rn_execution_node_error(const rn_plan_t* plan, int32_t instr, rn_status_t status) {
  if (rn_status_is_derived(status)) return status;  // it already names the node that failed
  status = rn_device_explain(plan->device, status);
  return rn_status_annotate(status, "\n\t [[{{node %.*s}}]]", RN_STR_ARGS(plan->names[instr]));
}

// Names the nodes whose work may have failed on the device, after they were run.
static rn_status_t device_error(const rn_plan_t* plan, rn_status_t status) {
  if (rn_ok(status)) return status;
  int32_t first = -1, last = -1, count = 0;
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    if (!(rn_instr_flags(&plan->instrs[n]) & RN_KERNEL_ISSUES)) continue;
    if (first < 0) first = n;
    last = n;
    ++count;
  }
  if (count == 0) return status;
  if (count == 1)
    return rn_status_annotate(status, "\n\t [[{{node %.*s}}]]", RN_STR_ARGS(plan->names[first]));
  return rn_status_annotate(status, "\n\t [[one of %d nodes, {{node %.*s}} to {{node %.*s}}]]",
                            count, RN_STR_ARGS(plan->names[first]), RN_STR_ARGS(plan->names[last]));
}

rn_status_t rn_state_deref(rn_state_t* state, const rn_instr_t* instr) {
  const rn_plan_t* plan = state->plan;
  for (int32_t d = instr->first_deref; d < instr->first_deref + instr->deref_count; ++d) {
    const rn_tensor_t* reference = &state->slots[plan->inputs[plan->derefs[d].input]];
    RN_RETURN_IF_ERROR(
        rn_variable_read(reference, plan->derefs[d].allows_uninitialized, &state->dereffed[d]));
  }
  return RN_OK;
}

void rn_state_undo_deref(rn_state_t* state, const rn_instr_t* instr) {
  for (int32_t d = instr->first_deref; d < instr->first_deref + instr->deref_count; ++d)
    rn_tensor_clear(&state->dereffed[d]);
}

static inline void release_slots(rn_state_t* state, const rn_instr_t* instr) {
  const rn_plan_t* plan = state->plan;
  for (int32_t r = instr->first_release; r < instr->first_release + instr->release_count; ++r) {
    int32_t slot = plan->releases[r];
    int32_t counter = plan->slots[slot].counter;
    RN_ASSERT(counter < 0 || state->counters[counter] > 0);
    if (counter < 0 || --state->counters[counter] == 0) rn_tensor_clear(&state->slots[slot]);
  }
}

static inline void set_context(rn_kernel_ctx_t* ctx, rn_state_t* state, const rn_instr_t* instr) {
  ctx->kernel = instr->kernel;
  ctx->state = instr->kernel ? instr->kernel->state : NULL;
  ctx->in = state->inputs + instr->first_input;
  ctx->out = state->slots + instr->first_output;
  ctx->dying = instr->dying;
  ctx->planned = instr->planned;
}

int64_t rn_execution_start_ns(const rn_execution_t* execution) {
  const rn_env_t* env = execution->run->step->env;
  return execution->run->stats ? env->now_ns(env->self) : 0;
}

void rn_execution_record(rn_execution_t* execution, const rn_plan_t* plan, int32_t n,
                         const rn_tensor_t* outputs, int64_t start_ns) {
  if (!execution->run->stats) return;
  const rn_instr_t* instr = &plan->instrs[n];
  if (instr->role == RN_ROLE_SEND || instr->role == RN_ROLE_RECV) return;
  const rn_env_t* env = execution->run->step->env;
  rn_node_stats_t stats = {.node = plan->names[n],
                           .op = instr->kernel ? instr->kernel->op->name : "",
                           .label = plan->labels[n],
                           .device = plan->device->name,
                           .start_ns = start_ns,
                           .end_ns = env->now_ns(env->self),
                           .thread = (int32_t)syscall(SYS_gettid)};
  rn_step_stats_add(execution->run->stats, stats, outputs, instr->output_count);
}

// Runs any instruction, with all options; the lean loop below runs the ordinary ones itself.
static rn_status_t run_carefully(rn_execution_t* execution, rn_state_t* state, rn_kernel_ctx_t* ctx,
                                 int32_t n) {
  const rn_instr_t* instr = &state->plan->instrs[n];
  int64_t start = rn_execution_start_ns(execution);
  rn_status_t status = rn_state_deref(state, instr);
  rn_state_trace_instr(state, n);
  if (rn_ok(status)) status = instr->compute(ctx);
  rn_state_trace_done(state, n);
  // For a device that cannot be traced, the step waits, so that the time is the device's.
  if (rn_ok(status) && execution->run->stats && !state->trace && !state->plan->device->is_host)
    status = rn_device_wait(state->plan->device);
  rn_state_undo_deref(state, instr);
  rn_execution_record(execution, state->plan, n, ctx->out, start);
  return status;
}

// Runs |count| instructions in order. This loop is the cost of a step.
static rn_status_t run_range(rn_execution_t* execution, rn_state_t* state, int32_t first,
                             int32_t count) {
  const rn_plan_t* plan = state->plan;
  const rn_run_t* run = execution->run;
  const rn_cancel_t* cancel = run->step->cancel;
  bool is_watched = run->deadline_ns != 0 || run->stats;
  rn_kernel_ctx_t ctx = {.step = run->step};
  int32_t end = first + count;
  for (int32_t n = first; n < end; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    if (!instr->compute) continue;
    if (__builtin_expect(
            rn_is_cancelled(cancel) || (is_watched && rn_execution_should_stop(execution)), 0)) {
      rn_execution_should_stop(execution);
      return RN_OK;
    }
    set_context(&ctx, state, instr);
    rn_status_t status = __builtin_expect(instr->deref_count > 0 || is_watched, 0)
                             ? run_carefully(execution, state, &ctx, n)
                             : instr->compute(&ctx);
    if (!rn_ok(status)) return rn_execution_node_error(plan, n, status);
    if (instr->release_count) release_slots(state, instr);
  }
  return RN_OK;
}

// Runs a task. A device replays the segments that it has recorded, unless the step is traced or may
// have to stop on the way.
static rn_status_t run_instrs(rn_execution_t* execution, rn_state_t* state, const rn_task_t* task) {
  const rn_plan_t* plan = state->plan;
  int32_t n = task->first_instr, end = n + task->instr_count;
  bool replays = plan->segment_count && !execution->run->deadline_ns && !execution->run->stats;
  if (execution->is_plain) state->has_loose_work = true;
  for (int32_t s = 0; replays && s < plan->segment_count; ++s) {
    const rn_segment_t* segment = &plan->segments[s];
    if (segment->first_instr < n || segment->first_instr >= end) continue;
    RN_RETURN_IF_ERROR(run_range(execution, state, n, segment->first_instr - n));
    if (execution->is_failed) return RN_OK;
    RN_RETURN_IF_ERROR(rn_segment_run(execution, state, s, run_range));
    n = segment->first_instr + segment->instr_count;
    if (execution->is_plain) state->has_loose_work = n < end || !state->recorded[s].is_awaited;
  }
  return run_range(execution, state, n, end - n);
}

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
    release_slots(state, instr);
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
  set_context(&async->ctx, state, instr);
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
  if (!is_stopped) rn_execution_fail(execution, run_instrs(execution, state, task));
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

static void end_started(rn_execution_t* execution);

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
  if (is_over) end_started(execution);
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

static void run_together(rn_execution_t* execution) {
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

// Names fetch |i| as stock does: by its _Retval node.
static rn_status_t fetch_error(const rn_plan_t* plan, int32_t slot, int32_t i, rn_status_t status) {
  int32_t producer = plan->slots[slot].producer;
  if (rn_ok(status) || producer < 0) return status;
  return rn_status_annotate(status, "\n\t [[{{node _retval_%.*s_%d_%d}}]]",
                            RN_STR_ARGS(plan->names[producer]),
                            slot - plan->instrs[producer].first_output, i);
}

static rn_status_t fetch_value(const rn_plan_t* plan, int32_t slot, const rn_tensor_t* value,
                               rn_tensor_t* out) {
  if (value->is_ref) {
    rn_variable_t* variable = value->data;
    rn_mutex_lock(&variable->mutex);
    rn_status_t status = rn_tensor_is_set(&variable->value)
                             ? rn_tensor_copy(&variable->value, plan->host->allocator, out)
                             : rn_failed_precondition("Attempting to use uninitialized value %.*s",
                                                      RN_STR_ARGS(variable->name));
    rn_mutex_unlock(&variable->mutex);
    return status;
  }
  int32_t producer = plan->slots[slot].producer;
  const rn_instr_t* instr = producer < 0 ? NULL : &plan->instrs[producer];
  return rn_plan_keep(plan, instr, instr ? slot - instr->first_output : 0, value, out);
}

static rn_status_t collect(const rn_execution_t* execution) {
  const rn_run_t* run = execution->run;
  for (int32_t i = 0; i < run->fetch_count; ++i) {
    for (int32_t p = 0; p < run->plan_count; ++p) {
      rn_state_t* state = execution->states[p];
      int32_t slot = state->plan->fetch_slots[i];
      if (slot == RN_NO_SLOT) continue;
      rn_tensor_t* value = state->frames ? rn_frames_value(state, slot) : &state->slots[slot];
      if (!rn_tensor_is_set(value)) return rn_invalid_argument("Retval[%d] does not have value", i);
      rn_status_t status = fetch_value(state->plan, slot, value, &run->fetches[i]);
      if (!rn_ok(status)) return fetch_error(state->plan, slot, i, status);
    }
  }
  return RN_OK;
}

static void lend_feeds(rn_state_t* state, const rn_run_t* run) {
  const rn_plan_t* plan = state->plan;
  for (int32_t i = 0; i < run->feed_count; ++i)
    if (plan->feed_slots[i] != RN_NO_SLOT) state->slots[plan->feed_slots[i]] = *run->feeds[i];
}

// Resets a state: returns borrowed values, clears what a fetch or a failure left, and restores the
// counters.
static void reset_state(rn_state_t* state, bool is_failed) {
  const rn_plan_t* plan = state->plan;
  for (int32_t i = 0; i < plan->feed_count; ++i)
    if (plan->feed_slots[i] != RN_NO_SLOT) state->slots[plan->feed_slots[i]] = (rn_tensor_t){0};
  if (is_failed) {
    for (int32_t s = 0; s < plan->slot_count; ++s)
      if (plan->slots[s].kind == RN_SLOT_DYNAMIC) rn_tensor_clear(&state->slots[s]);
    for (int32_t d = 0; d < plan->deref_total; ++d) rn_tensor_clear(&state->dereffed[d]);
  } else {
    for (int32_t i = 0; i < plan->fetch_count; ++i) {
      int32_t slot = plan->fetch_slots[i];
      if (slot != RN_NO_SLOT && plan->slots[slot].kind == RN_SLOT_DYNAMIC)
        rn_tensor_clear(&state->slots[slot]);
    }
  }
  if (plan->task_count > 1) {
    for (int32_t t = 0; t < plan->task_count; ++t) state->pending[t] = plan->tasks[t].pending;
    for (int32_t s = 0; plan->counter_count && s < plan->slot_count; ++s)
      if (plan->slots[s].counter >= 0)
        state->counters[plan->slots[s].counter] = plan->slots[s].readers;
  }
  state->ready_count = 0;
}

// The error of a device's work, which is |status| or that the work ended too late: it may end long
// after it was issued.
static rn_status_t work_error(const rn_run_t* run, const rn_plan_t* plan, rn_status_t status) {
  if (rn_ok(status) && !plan->device->is_host && is_late(run))
    return rn_deadline_exceeded("Timed out waiting for notification");
  return device_error(plan, status);
}

// Waits for the work of a step that one thread issued. Work before a replay has ended with it, but
// large copies to the host are not part of that order.
static rn_status_t await_alone(rn_state_t* state) {
  rn_status_t status = rn_segments_await(state);
  return rn_ok(status) && !state->has_loose_work && !state->plan->has_loose_fetches
             ? status
             : rn_status_join(status, rn_device_wait(state->plan->device));
}

// A step of one straight-line task: no locks, no other thread.
static rn_status_t execute_alone(rn_plan_t* plan, const rn_run_t* run) {
  rn_state_t* state = NULL;
  RN_RETURN_IF_ERROR(rn_state_acquire(plan, &state));
  rn_execution_t execution = {.run = run, .states = &state, .is_plain = true};
  rn_mutex_init(&execution.mutex);
  lend_feeds(state, run);
  rn_state_trace_begin(state, run);
  rn_status_t status = RN_OK;
  for (int32_t t = 0; rn_ok(status) && t < plan->task_count; ++t)
    status = run_instrs(&execution, state, &plan->tasks[t]);
  status = rn_status_join(execution.status, status);
  if (!plan->device->is_host)
    status = rn_status_join(status, work_error(run, plan, await_alone(state)));
  rn_state_trace_end(state, run);
  if (rn_ok(status)) status = collect(&execution);
  reset_state(state, !rn_ok(status));
  rn_state_release(state);
  rn_mutex_destroy(&execution.mutex);
  return status;
}

static rn_status_t make_helpers(rn_execution_t* execution) {
  int count = rn_pool_threads(execution->run->pool) - 1;
  if (count > RN_MAX_HELPERS) count = RN_MAX_HELPERS;
  for (int h = 0; h < count; ++h)
    execution->helpers[h] = (rn_helper_t){.job = {.run = helper_run}, .execution = execution};
  execution->helper_count = count;
  return RN_OK;
}

// Waits for work that the step issued to asynchronous devices, and takes their errors.
static rn_status_t sync_devices(const rn_run_t* run) {
  rn_status_t status = RN_OK;
  for (int32_t p = 0; p < run->plan_count; ++p)
    status = rn_status_join(status,
                            work_error(run, run->plans[p], rn_device_wait(run->plans[p]->device)));
  return status;
}

static rn_status_t acquire_states(rn_execution_t* execution) {
  const rn_run_t* run = execution->run;
  rn_status_t status = RN_OK;
  for (int32_t p = 0; rn_ok(status) && p < run->plan_count; ++p) {
    status = rn_state_acquire(run->plans[p], &execution->states[p]);
    if (!rn_ok(status)) break;
    rn_state_t* state = execution->states[p];
    state->execution = execution;
    lend_feeds(state, run);
    rn_state_trace_begin(state, run);
    if (run->plans[p]->has_frames) status = rn_frames_start(state);
  }
  return status;
}

// Takes the results and returns the states. The devices have finished the issued work.
static rn_status_t end_states(rn_execution_t* execution, rn_status_t status) {
  const rn_run_t* run = execution->run;
  for (int32_t p = 0; p < run->plan_count; ++p)
    if (execution->states[p]) {
      status = rn_status_join(status, rn_segments_await(execution->states[p]));
      rn_state_trace_end(execution->states[p], run);
    }
  if (rn_ok(status)) status = collect(execution);
  for (int32_t p = 0; p < run->plan_count; ++p) {
    if (!execution->states[p]) continue;
    rn_frames_stop(execution->states[p]);
    reset_state(execution->states[p], !rn_ok(status));
    rn_state_release(execution->states[p]);
  }
  return status;
}

static rn_status_t execute_together(rn_execution_t* execution) {
  rn_status_t status = acquire_states(execution);
  if (rn_ok(status)) {
    run_together(execution);
    status = rn_status_join(execution->status, sync_devices(execution->run));
  }
  return end_states(execution, status);
}

bool rn_execute_is_plain(rn_plan_t* const* plans, int32_t plan_count) {
  return plan_count == 1 && plans[0]->task_count <= 1 && plans[0]->async_count == 0 &&
         !plans[0]->has_frames;
}

static void drop_fetches(const rn_run_t* run) {
  for (int32_t i = 0; i < run->fetch_count; ++i) rn_tensor_clear(&run->fetches[i]);
}

// A traced step names each device it has a plan for, even if the plan runs nothing: by _SOURCE, the
// first node of every graph in stock.
static void record_source(const rn_run_t* run) {
  if (!run->stats || run->step->call_depth > 0) return;
  const rn_env_t* env = run->step->env;
  int64_t now = env->now_ns(env->self);
  for (int32_t p = 0; p < run->plan_count; ++p) {
    rn_node_stats_t source = {.node = RN_STR("_SOURCE"),
                              .op = rn_op_no_op()->name,
                              .device = run->plans[p]->device->name,
                              .start_ns = now,
                              .end_ns = now,
                              .thread = (int32_t)syscall(SYS_gettid)};
    rn_step_stats_add(run->stats, source, NULL, 0);
  }
}

static rn_status_t execute(const rn_run_t* run) {
  rn_status_t status;
  record_source(run);
  if (rn_execute_is_plain(run->plans, run->plan_count)) {
    status = execute_alone(run->plans[0], run);
  } else {
    rn_state_t* states[16] = {0};
    rn_helper_t helpers[RN_MAX_HELPERS];
    rn_execution_t execution = {.run = run, .states = states, .helpers = helpers};
    rn_allocator_t allocator = rn_allocator_default();
    if (run->plan_count > 16)
      RN_RETURN_IF_ERROR(rn_alloc_array(allocator, (size_t)run->plan_count, sizeof *states,
                                        (void**)&execution.states));
    rn_mutex_init(&execution.mutex);
    rn_cond_init(&execution.changed);
    status = make_helpers(&execution);
    if (rn_ok(status)) status = execute_together(&execution);
    rn_cond_destroy(&execution.changed);
    rn_mutex_destroy(&execution.mutex);
    if (run->plan_count > 16) RN_FREE_ARRAY(allocator, execution.states, run->plan_count);
  }
  if (!rn_ok(status)) drop_fetches(run);
  return status;
}

rn_status_t rn_execute(const rn_run_t* run) {
  uint64_t before = rn_denormals_flush();
  rn_status_t status = execute(run);
  rn_denormals_restore(before);
  return status;
}

// An asynchronous step, in one block with its states and helpers.
typedef struct started_t {
  rn_execution_t execution;  // first
  rn_run_t run;
  size_t size;
  int32_t synced;       // plans whose devices have finished
  rn_status_t outcome;  // so far
} started_t;

static rn_status_t new_started(const rn_run_t* run, started_t** out) {
  int helpers = rn_pool_threads(run->pool) - 1;
  if (helpers > RN_MAX_HELPERS) helpers = RN_MAX_HELPERS;
  size_t size = sizeof **out + (size_t)run->plan_count * sizeof(rn_state_t*) +
                (size_t)helpers * sizeof(rn_helper_t);
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(rn_allocator_default(), size, (void**)out));
  started_t* started = *out;
  started->size = size;
  started->run = *run;
  started->execution.run = &started->run;
  started->execution.helpers = (rn_helper_t*)(started + 1);
  started->execution.states = (rn_state_t**)(started->execution.helpers + helpers);
  rn_mutex_init(&started->execution.mutex);
  rn_cond_init(&started->execution.changed);
  return make_helpers(&started->execution);
}

// Ends an asynchronous step; no other thread uses it any more.
static void end_with(rn_execution_t* execution, rn_status_t status) {
  started_t* started = (started_t*)execution;
  RN_ASSERT(execution->active == 0 && execution->ready == 0);  // invariant 26
  rn_done_fn_t done = execution->done;
  void* arg = execution->done_arg;
  status = end_states(execution, status);
  if (!rn_ok(status)) drop_fetches(&started->run);
  rn_cond_destroy(&execution->changed);
  rn_mutex_destroy(&execution->mutex);
  rn_free(rn_allocator_default(), started, started->size);
  done(arg, status);
}

// Syncs one device after the other, without waiting: this may be the device's own thread.
static void sync_next(void* arg, rn_status_t status) {
  started_t* started = arg;
  if (started->synced > 0) status = device_error(started->run.plans[started->synced - 1], status);
  started->outcome = rn_status_join(started->outcome, status);
  while (started->synced < started->run.plan_count) {
    rn_device_t* device = started->run.plans[started->synced++]->device;
    if (device->is_host) continue;
    device->vtable->sync(device, sync_next, started);
    return;
  }
  end_with(&started->execution, started->outcome);
}

static void end_started(rn_execution_t* execution) { sync_next(execution, execution->status); }

void rn_execute_start(const rn_run_t* run, rn_done_fn_t done, void* arg) {
  // A device's own thread may call this, and must not wait for the device.
  if (rn_execute_is_plain(run->plans, run->plan_count) && run->plans[0]->device->is_host) {
    done(arg, rn_execute(run));
    return;
  }
  started_t* started = NULL;
  rn_status_t status = new_started(run, &started);
  if (!rn_ok(status)) {
    done(arg, status);
    return;
  }
  rn_execution_t* execution = &started->execution;
  execution->done = done;
  execution->done_arg = arg;
  record_source(run);
  status = acquire_states(execution);
  if (!rn_ok(status)) {
    end_with(execution, status);
    return;
  }
  rn_mutex_lock(&execution->mutex);
  start_states_locked(execution);
  drive_locked(execution);
}
