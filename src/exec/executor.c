// Steps: lends feeds, runs the parts, collects fetches and returns the states. schedule.c divides
// the work between threads, run_task.c runs it; see execution.h.
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
  if (rn_ok(status) && !plan->device->is_host && rn_run_is_late(run))
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
    status = rn_execution_run_task(&execution, state, &plan->tasks[t]);
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
    rn_execution_run_together(execution);
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
    rn_execution_make_helpers(&execution);
    status = execute_together(&execution);
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
  int32_t helpers = rn_execution_most_helpers(run);
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
  rn_execution_make_helpers(&started->execution);
  return RN_OK;
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

void rn_execution_end(rn_execution_t* execution) { sync_next(execution, execution->status); }

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
  rn_execution_start(execution);
}
