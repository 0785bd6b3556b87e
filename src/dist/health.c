// The health of a task: see health.h.
#include "dist/health.h"

#include "base/container.h"
#include "dist/calls.h"
#include "dist/worker/graph.h"

#define FRESH_NS INT64_C(1000000000)
#define STUCK_NS INT64_C(2000000000)

struct rn_health_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_local_worker_t* worker;  // Borrowed
  rn_job_t job;
  rn_kernel_cache_t kernels;
  rn_kept_functions_t kept;
  rn_worker_graph_t* graph;  // used by the job only, and made by the first one
  rn_mutex_t mutex;          // guards what follows
  rn_cond_t ended;
  int64_t asked_ns;           // when the job was submitted; valid if |is_asked|
  int64_t told_ns;            // when the last job ended; 0: none has
  bool is_asked, is_running;  // a job was submitted; it is running
  bool has_failed, is_stopped;
};

// One node, "healthz", a NoOp.
static const char graph_def[] = "\x0a\x0f\x0a\x07healthz\x12\x04NoOp";

static rn_status_t make_graph(rn_health_t* health) {
  rn_device_t* device = rn_local_worker_device(health->worker, 0);
  rn_worker_graph_options_t options = {.env = health->env,
                                       .allocator = health->allocator,
                                       .devices = &device,
                                       .device_count = 1,
                                       .kernels = &health->kernels,
                                       .kept = &health->kept};
  return rn_worker_graph_create(&options, RN_STR(graph_def), &health->graph);
}

static rn_status_t run_step(rn_health_t* health) {
  rn_rendezvous_t* rendezvous = NULL;
  if (!health->graph) RN_RETURN_IF_ERROR(make_graph(health));
  RN_RETURN_IF_ERROR(rn_rendezvous_create(health->allocator, &rendezvous));
  rn_waiter_t waiter;
  rn_run_graph_t call = {.call = rn_waiter_call(&waiter, INT64_MAX, NULL), .step = 1};
  rn_strbuf_init(&call.stats, health->allocator);
  rn_strbuf_init(&call.graphs, health->allocator);
  rn_strbuf_init(&call.costs, health->allocator);
  rn_worker_graph_run(health->graph, &call, rendezvous);
  rn_status_t status = rn_waiter_wait(&waiter);
  rn_rendezvous_release(rendezvous);
  return status;
}

static void on_job(rn_job_t* job) {
  rn_health_t* health = RN_CONTAINER_OF(job, rn_health_t, job);
  rn_mutex_lock(&health->mutex);
  bool runs = health->is_running = !health->is_stopped;
  rn_mutex_unlock(&health->mutex);
  if (!runs) return;
  rn_status_t status = run_step(health);
  if (!rn_ok(status))
    rn_log(health->env, RN_LOG_ERROR, "the step of a health check failed: %s",
           rn_status_message(status));
  rn_mutex_lock(&health->mutex);
  health->is_asked = health->is_running = false;
  health->has_failed = !rn_ok(status);
  health->told_ns = health->env->now_ns(health->env->self);
  rn_cond_broadcast(&health->ended);
  rn_mutex_unlock(&health->mutex);
  rn_status_free(status);
}

rn_health_state_t rn_health_ask(rn_health_t* health) {
  int64_t now = health->env->now_ns(health->env->self);
  rn_mutex_lock(&health->mutex);
  bool is_fresh = health->told_ns && now - health->told_ns < FRESH_NS;
  bool starts = !health->is_asked && !is_fresh && !health->is_stopped;
  if (starts) {
    health->is_asked = true;
    health->asked_ns = now;
  }
  rn_health_state_t state =
      health->is_asked     ? (now - health->asked_ns < STUCK_NS ? RN_HEALTH_WAITS : RN_HEALTH_STUCK)
      : health->has_failed ? RN_HEALTH_STUCK
                           : RN_HEALTH_GOOD;
  rn_mutex_unlock(&health->mutex);
  if (starts) rn_pool_submit(health->env->pool, &health->job);
  return state;
}

rn_status_t rn_health_create(const rn_env_t* env, rn_local_worker_t* worker,
                             rn_allocator_t allocator, rn_health_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  **out = (rn_health_t){.env = env, .allocator = allocator, .worker = worker, .job.run = on_job};
  rn_kernel_cache_init(&(*out)->kernels, allocator);
  rn_kept_functions_init(&(*out)->kept, allocator);
  rn_mutex_init(&(*out)->mutex);
  rn_cond_init(&(*out)->ended);
  return RN_OK;
}

void rn_health_stop(rn_health_t* health) {
  if (!health) return;
  rn_mutex_lock(&health->mutex);
  health->is_stopped = true;
  while (health->is_running) rn_cond_wait(&health->ended, &health->mutex);
  rn_mutex_unlock(&health->mutex);
  rn_worker_graph_release(health->graph);
  health->graph = NULL;
  rn_kernel_cache_clear(&health->kernels);
}

void rn_health_destroy(rn_health_t* health) {
  if (!health) return;
  rn_kept_functions_clear(&health->kept);
  rn_cond_destroy(&health->ended);
  rn_mutex_destroy(&health->mutex);
  RN_FREE(health->allocator, health);
}
