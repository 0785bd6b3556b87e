// Runs the instructions of one task in order, and says what went wrong.
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/execution.h"
#include "exec/record.h"
#include "exec/trace_device.h"

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

bool rn_run_is_late(const rn_run_t* run) {
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
  if (rn_run_is_late(run)) {
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
    rn_state_set_context(&ctx, state, instr);
    rn_status_t status = __builtin_expect(instr->deref_count > 0 || is_watched, 0)
                             ? run_carefully(execution, state, &ctx, n)
                             : instr->compute(&ctx);
    if (!rn_ok(status)) return rn_execution_node_error(plan, n, status);
    if (instr->release_count) rn_state_release_slots(state, instr);
  }
  return RN_OK;
}

// Runs a task. A device replays the segments that it has recorded, unless the step is traced or may
// have to stop on the way.
rn_status_t rn_execution_run_task(rn_execution_t* execution, rn_state_t* state,
                                  const rn_task_t* task) {
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
