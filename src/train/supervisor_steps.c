// The steps of a supervisor: retries after a failure that a new session may fix, counts by the
// graph's global step, calls hooks, and writes the log. See supervisor.h.
#include "io/summary_writer.h"
#include "train/supervisor.h"

enum { FEW_FETCHES = 16 };

rn_status_t rn_supervisor_ready(rn_supervisor_t* v) {
  RN_RETURN_IF_ERROR(rn_supervisor_prepare(v));
  if (v->told == v->handle) return RN_OK;
  v->told = v->handle;
  for (int i = 0; i < v->options.hook_count; ++i)
    if (v->options.hooks[i].session)
      v->options.hooks[i].session(v->options.hooks[i].arg, v, v->handle);
  return RN_OK;
}

static void write_log(rn_supervisor_t* v) {
  int64_t every = v->options.log_steps > 0 ? v->options.log_steps : 100;
  int64_t now = v->env->now_ns(v->env->self);
  bool is_first = !v->logged_ns || v->step < v->logged_step;
  if (!v->options.log || !rn_supervisor_is_chief(v)) return;
  if (!is_first && v->step < v->logged_step + every) return;
  if (!is_first) {
    double rate = (double)(v->step - v->logged_step) * 1e9 / (double)(now - v->logged_ns + 1);
    rn_status_free(rn_summary_write_scalar((rn_event_writer_t*)v->options.log, "global_step/sec",
                                           v->step, (float)rate));
  }
  v->logged_step = v->step;
  v->logged_ns = now;
}

static void tell_step(rn_supervisor_t* v, int64_t step) {
  rn_supervisor_done(v, step);
  write_log(v);
  for (int i = 0; i < v->options.hook_count; ++i)
    if (v->options.hooks[i].step) v->options.hooks[i].step(v->options.hooks[i].arg, v, v->step);
}

// The edge with the number of the step. A read of the global step beside an update may still see
// the previous value; the token is written after the update. A replica that goes by the token takes
// none that others wait for at the end.
static rn_edge_t step_edge(const rn_supervisor_t* v, const rn_signature_t* signature) {
  bool trains = false;
  for (int i = 0; i < signature->target_count; ++i)
    trains |= signature->targets[i] == v->sync.train;
  return trains && v->sync.step == v->global_step ? v->sync.token : v->step_now;
}

// The client's fetches, followed by the global step.
typedef struct fetches_t {
  rn_edge_t few_edges[FEW_FETCHES];
  rn_tensor_t few_tensors[FEW_FETCHES];
  rn_edge_t* edges;
  rn_tensor_t* tensors;
  int count;
} fetches_t;

static rn_status_t fetches_init(fetches_t* fetches, const rn_supervisor_t* v,
                                const rn_signature_t* signature) {
  int count = signature->fetch_count;
  fetches->count = count + (v->step_now.node ? 1 : 0);
  fetches->edges = fetches->few_edges;
  fetches->tensors = fetches->few_tensors;
  if (fetches->count > FEW_FETCHES) {
    fetches->edges = NULL;
    fetches->tensors = NULL;
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(v->allocator, (size_t)fetches->count, &fetches->edges));
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(v->allocator, (size_t)fetches->count, &fetches->tensors));
  }
  if (count) memcpy(fetches->edges, signature->fetches, (size_t)count * sizeof(rn_edge_t));
  if (v->step_now.node) fetches->edges[count] = step_edge(v, signature);
  return RN_OK;
}

static void fetches_clear(fetches_t* fetches, rn_allocator_t allocator) {
  if (fetches->count <= FEW_FETCHES) return;
  RN_FREE_ARRAY(allocator, fetches->edges, (size_t)fetches->count);
  RN_FREE_ARRAY(allocator, fetches->tensors, (size_t)fetches->count);
}

static rn_status_t run_until_good(rn_supervisor_t* v, const rn_signature_t* signature,
                                  const rn_tensor_t* const* feeds, rn_tensor_t* fetches) {
  for (bool again = true; again;) {
    RN_RETURN_IF_ERROR(rn_supervisor_ready(v));
    rn_status_t status =
        signature->fetch_count + signature->target_count
            ? rn_session_run(v->session, signature, feeds, fetches, NULL)
            : rn_invalid_argument("Must specify at least one target to fetch or execute.");
    again = !rn_ok(status);
    if (again) RN_RETURN_IF_ERROR(rn_supervisor_judge(v, status));
  }
  return RN_OK;
}

rn_status_t rn_supervisor_step_run(rn_supervisor_t* v, const rn_signature_t* signature,
                                   const rn_tensor_t* const* feeds, rn_tensor_t* fetches) {
  fetches_t all;
  rn_status_t status = fetches_init(&all, v, signature);
  rn_signature_t with_step = *signature;
  with_step.fetches = all.edges;
  with_step.fetch_count = all.count;
  if (rn_ok(status)) status = run_until_good(v, &with_step, feeds, all.tensors);
  if (rn_ok(status)) {
    int64_t global_step = 0;
    size_t count = (size_t)signature->fetch_count;
    if (count) memcpy(fetches, all.tensors, count * sizeof *fetches);
    if (v->step_now.node) {
      rn_tensor_t* last = &all.tensors[count];
      global_step = last->dtype == RN_INT32 ? *RN_DATA(last, int32_t) : *RN_DATA(last, int64_t);
      rn_tensor_clear(last);
    }
    tell_step(v, global_step);
  }
  fetches_clear(&all, v->allocator);
  return status;
}
