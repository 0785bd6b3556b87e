// Graphs that masters register in their sessions, and the steps that run them.
#include <stdio.h>

#include "base/container.h"
#include "dist/worker/worker_internal.h"

static rn_status_t keep_graph_locked(rn_local_worker_t* worker, rn_register_graph_t* call,
                                     rn_worker_graph_t* graph) {
  rn_worker_session_t* session = NULL;
  rn_registered_graph_t* registered = NULL;
  RN_RETURN_IF_ERROR(rn_worker_find_session_locked(worker, call->session, &session));
  RN_RETURN_IF_ERROR(RN_NEW(worker->allocator, &registered));
  snprintf(registered->handle, sizeof registered->handle, "%016llx",
           (unsigned long long)++session->next_handle);
  memcpy(call->handle, registered->handle, sizeof call->handle);
  registered->graph = graph;
  registered->next = session->graphs;
  session->graphs = registered;
  return RN_OK;
}

void rn_local_register_graph(rn_worker_t* face, rn_register_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_worker_graph_t* graph = NULL;
  rn_worker_session_t* session = NULL;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = rn_worker_find_session_locked(worker, call->session, &session);
  if (rn_ok(status)) session->refs++, worker->running++;
  rn_mutex_unlock(&worker->mutex);
  if (rn_ok(status)) {
    rn_worker_graph_options_t options = {
        .env = worker->options.env,
        .allocator = worker->allocator,
        .devices = session->devices,
        .device_count = session->device_count,
        .kernels = &session->kernels,
        .kept = session->owns_devices ? &session->kept : &worker->kept,
        .config = call->config,
        .collectives = rn_cluster_collectives_face(worker->collectives)};
    status = rn_worker_graph_create(&options, call->graph_def, &graph);
    rn_mutex_lock(&worker->mutex);
    if (rn_ok(status)) status = keep_graph_locked(worker, call, graph);
    rn_mutex_unlock(&worker->mutex);
    if (!rn_ok(status)) rn_worker_graph_release(graph);
    rn_worker_session_release(worker, session, true);
  }
  rn_call_done(&call->call, status);
}

static rn_registered_graph_t** find_graph(rn_worker_session_t* session, rn_str_t handle) {
  rn_registered_graph_t** at = &session->graphs;
  while (*at && !rn_str_is(handle, (*at)->handle)) at = &(*at)->next;
  return at;
}

void rn_local_deregister_graph(rn_worker_t* face, rn_deregister_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_worker_session_t* session = NULL;
  rn_registered_graph_t* registered = NULL;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = rn_worker_find_session_locked(worker, call->session, &session);
  if (rn_ok(status)) {
    rn_registered_graph_t** at = find_graph(session, call->handle);
    registered = *at;
    if (registered)
      *at = registered->next;
    else
      status = rn_aborted("Graph handle is not found: %.*s. Possibly, this worker just restarted.",
                          RN_STR_ARGS(call->handle));
  }
  rn_mutex_unlock(&worker->mutex);
  if (registered) {
    rn_worker_graph_release(registered->graph);
    RN_FREE(worker->allocator, registered);
  }
  rn_call_done(&call->call, status);
}

// A running step: our call in place of the caller's.
typedef struct worker_run_t {
  rn_run_graph_t call;  // first
  rn_run_graph_t* outer;
  rn_local_worker_t* worker;
  rn_worker_session_t* session;  // Retained
  rn_job_t job;                  // starts it
  rn_worker_graph_t* graph;      // Retained until then
  rn_rendezvous_t* rendezvous;   // likewise
} worker_run_t;

static void on_run(rn_call_t* call, rn_status_t status) {
  worker_run_t* run = (worker_run_t*)call;
  rn_local_worker_t* worker = run->worker;
  rn_run_graph_t* outer = run->outer;
  rn_worker_session_t* session = run->session;
  if (rn_ok(status) && outer->cleans_up) rn_steps_end(worker->steps, outer->step);
  outer->stats = run->call.stats;
  outer->graphs = run->call.graphs;
  outer->costs = run->call.costs;
  RN_FREE(worker->allocator, run);
  rn_call_done(&outer->call, status);
  rn_worker_session_release(worker, session, true);
}

// Makes |session| the owner of |step|, so that a thread that removes the session finds it.
static rn_status_t own_step(rn_local_worker_t* worker, rn_worker_session_t* session, int64_t step) {
  rn_rendezvous_t* rendezvous = NULL;
  if (!session->given) {
    rn_steps_own(worker->steps, step, session);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_steps_adopt(worker->steps, step, session,
                                    rn_given_cluster_peers(session->given), &rendezvous));
  rn_rendezvous_release(rendezvous);
  return RN_OK;
}

static rn_status_t begin_run(rn_local_worker_t* worker, rn_run_graph_t* call,
                             rn_worker_session_t** out_session, rn_worker_graph_t** out) {
  rn_worker_session_t* session = NULL;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = worker->is_closing ? rn_unavailable("The worker is closing") : RN_OK;
  if (rn_ok(status)) status = rn_worker_find_session_locked(worker, call->session, &session);
  rn_registered_graph_t* registered = rn_ok(status) ? *find_graph(session, call->handle) : NULL;
  if (rn_ok(status) && !registered)
    status = rn_aborted("Graph handle is not found: %.*s", RN_STR_ARGS(call->handle));
  if (rn_ok(status)) status = own_step(worker, session, call->step);
  if (rn_ok(status)) {
    *out = registered->graph;
    *out_session = session;
    rn_worker_graph_retain(*out);
    session->used_ns = worker->options.env->now_ns(worker->options.env->self);
    session->refs +=
        2;  // one for the thread that starts it, one for the end of the step; either may be last
    worker->running += 2;
    worker->steps_run++;
  }
  rn_mutex_unlock(&worker->mutex);
  return status;
}

static void start_run(rn_job_t* job) {
  worker_run_t* run = RN_CONTAINER_OF(job, worker_run_t, job);
  rn_local_worker_t* worker = run->worker;
  rn_worker_session_t* session = run->session;
  rn_worker_graph_t* graph = run->graph;
  rn_rendezvous_t* rendezvous = run->rendezvous;
  rn_worker_graph_run(graph, &run->call, rendezvous);
  rn_worker_graph_release(graph);
  rn_rendezvous_release(rendezvous);
  rn_worker_session_release(worker, session, true);
}

// Puts the values that came with the call into the rendezvous.
static rn_status_t put_sent(const rn_local_worker_t* worker, rn_rendezvous_t* rendezvous,
                            const rn_run_graph_t* call) {
  const rn_env_t* env = worker->options.env;
  rn_recv_log_t* log = rn_steps_log(worker->steps);
  int64_t now_us = rn_recv_log_is_on(log) ? env->wall_us(env->self) : 0;
  for (size_t i = 0; i < call->sent_count; ++i) {
    rn_tensor_t value;
    if (now_us)
      rn_recv_log_add(log, call->step, call->sent[i].name,
                      (int64_t)rn_tensor_bytes(&call->sent[i].value), now_us, now_us);
    RN_RETURN_IF_ERROR(rn_tensor_share(&call->sent[i].value, &value));
    RN_RETURN_IF_ERROR(rn_rendezvous_send(rendezvous, call->sent[i].name, &value, false, NULL));
  }
  return RN_OK;
}

static bool takes(void* self, rn_str_t key, rn_tensor_t* value) {
  rn_outbox_t* outbox = self;
  return outbox->takes(outbox, key, value);
}

// Starts a quick step, and hands what it has sent to other tasks by then to the outbox.
static void start_here(worker_run_t* run) {
  rn_steps_t* steps = run->worker->steps;
  rn_outbox_t* outbox = run->outer->outbox;
  rn_rendezvous_t* rendezvous = run->rendezvous;
  int64_t step = run->outer->step;
  if (outbox) rn_rendezvous_retain(rendezvous);
  start_run(&run->job);
  if (!outbox) return;
  rn_rendezvous_sweep(rendezvous, takes, outbox);
  rn_rendezvous_release(rendezvous);
  rn_steps_taken(steps, step);
}

// A quick step runs here, on the network's thread; others run on the pool.
void rn_local_run_graph(rn_worker_t* face, rn_run_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_worker_graph_t* graph = NULL;
  rn_rendezvous_t* rendezvous = NULL;
  worker_run_t* run = NULL;
  rn_worker_session_t* session = NULL;
  if (call->is_partial) {
    rn_worker_partials_run(worker->partials, call);
    return;
  }
  rn_status_t status = rn_steps_get(worker->steps, call->step, &rendezvous);
  if (rn_ok(status)) status = put_sent(worker, rendezvous, call);
  if (rn_ok(status)) status = RN_NEW(worker->allocator, &run);
  if (rn_ok(status)) status = begin_run(worker, call, &session, &graph);
  if (!rn_ok(status)) {
    if (run) RN_FREE(worker->allocator, run);
    rn_rendezvous_release(rendezvous);
    rn_steps_drop_unowned(worker->steps, call->step, rn_status_copy(status));
    rn_call_done(&call->call, status);
    return;
  }
  *run = (worker_run_t){.call = *call,
                        .outer = call,
                        .worker = worker,
                        .session = session,
                        .job.run = start_run,
                        .graph = graph,
                        .rendezvous = rendezvous};
  run->call.call.done = on_run;
  if (rn_worker_graph_is_quick(graph))
    start_here(run);
  else
    rn_pool_submit(worker->options.env->pool, &run->job);
}
