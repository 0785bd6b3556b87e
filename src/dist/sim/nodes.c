// Tasks of a simulated cluster, and their failures: see sim.h.
#include "dist/sim/world.h"

static int64_t node_now_ns(void* self) { return ((rn_sim_node_t*)self)->sim->now_ns; }
static int64_t node_wall_us(void* self) { return ((rn_sim_node_t*)self)->sim->now_ns / 1000; }
static uint64_t node_random(void* self) { return rn_sim_random(((rn_sim_node_t*)self)->sim); }

const rn_env_t* rn_sim_node_env(rn_sim_t* sim, int node) { return &sim->nodes[node].env; }
bool rn_sim_is_up(const rn_sim_t* sim, int node) { return sim->nodes[node].is_up; }
rn_local_worker_t* rn_sim_local_worker(rn_sim_t* sim, int node) { return sim->nodes[node].worker; }

static rn_sim_link_t* reach(rn_sim_t* sim, int from, int to) {
  rn_sim_link_t* link = rn_sim_link(sim, from, to);
  rn_sim_node_t* node = &sim->nodes[from];
  if (!link->is_leased && node->leases) {
    const char* task = sim->nodes[to].task;
    rn_status_t status =
        rn_leases_add(node->leases, rn_str(task ? task : "client"), rn_sim_link_lease(link));
    link->is_leased = rn_ok(status);
    rn_status_free(status);
  }
  return link;
}

rn_worker_t* rn_sim_worker(rn_sim_t* sim, int from, int to) {
  return &reach(sim, from, to)->worker;
}
rn_master_t* rn_sim_master(rn_sim_t* sim, int from, int to) {
  return &reach(sim, from, to)->master;
}

static rn_worker_t* find_peer(void* self, rn_str_t task) {
  rn_sim_node_t* node = self;
  const rn_sim_node_t* peer = rn_map_get(&node->sim->tasks, task);
  if (!peer || peer == node) return NULL;
  rn_sim_link_t* link = reach(node->sim, node->index, peer->index);
  if (!link->repeat)
    rn_status_free(
        rn_repeat_create(&link->worker, &node->env, node->sim->allocator, &link->repeat));
  return link->repeat ? rn_repeat_worker(link->repeat) : NULL;
}

static rn_status_t start_server(rn_sim_node_t* node) {
  rn_sim_t* sim = node->sim;
  rn_peers_t peers = {.self = node, .find = find_peer};
  rn_local_worker_options_t worker = {
      .env = &node->env, .allocator = sim->allocator, .task = node->task, .peers = peers};
  RN_RETURN_IF_ERROR(rn_local_worker_create(&worker, &node->worker));
  int count = sim->options.task_count;
  int64_t lease = sim->options.lease_ns ? sim->options.lease_ns : RN_LEASE_NS;
  rn_worker_fence_options_t fence = {.allocator = sim->allocator,
                                     .env = &node->env,
                                     .worker = rn_local_worker_face(node->worker),
                                     .timers = rn_sim_node_timers(sim, node->index),
                                     .lease_ns = lease};
  RN_RETURN_IF_ERROR(rn_worker_fence_create(&fence, &node->fence));
  rn_local_master_options_t master = {.env = &node->env,
                                      .allocator = sim->allocator,
                                      .worker = node->worker,
                                      .tasks = sim->task_names + node->index * count,
                                      .task_count = count,
                                      .peers = peers,
                                      .timers = rn_sim_node_timers(sim, node->index),
                                      .grace_ns = lease,
                                      .session_gc_ns = 2 * lease};
  RN_RETURN_IF_ERROR(rn_local_master_create(&master, &node->master));
  rn_worker_gc_options_t gc = {.env = &node->env,
                               .allocator = sim->allocator,
                               .worker = node->worker,
                               .peers = peers,
                               .timers = rn_sim_node_timers(sim, node->index),
                               .patience_ns = 2 * lease};
  return rn_worker_gc_create(&gc, &node->gc);
}

static void stop_process(rn_sim_node_t* node) {
  rn_sim_t* sim = node->sim;
  rn_leases_stop(node->leases);
  rn_worker_gc_stop(node->gc);
  // The end of a process: its own calls get no response, and it responds to none.
  rn_sim_orphan_calls_to(sim, node->index);
  rn_worker_fence_stop(node->fence);
  rn_sim_end_calls_from(sim, node->index);
  rn_worker_gc_destroy(node->gc);
  rn_local_master_destroy(node->master);
  rn_local_worker_destroy(node->worker);
  rn_worker_fence_destroy(node->fence);
  rn_leases_destroy(node->leases);
  node->master = NULL;
  node->fence = NULL;
  node->worker = NULL;
  node->leases = NULL;
  node->gc = NULL;
  for (int i = 0; i < sim->node_count; ++i) {
    rn_sim_link_t* link = rn_sim_link(sim, node->index, i);
    link->is_leased = false;
    rn_repeat_destroy(link->repeat);
    link->repeat = NULL;
    rn_sim_disconnect(link);
    rn_sim_disconnect(rn_sim_link(sim, i, node->index));
  }
}

rn_status_t rn_sim_start(rn_sim_t* sim, int index) {
  rn_sim_node_t* node = &sim->nodes[index];
  if (node->is_up) return RN_OK;
  node->is_up = true;
  node->epoch++;
  rn_sim_tell_callers_of(sim, index);  // callers that waited for a silent node
  node->frozen_until_ns = 0;
  rn_sim_note(sim, 1000 + (uint64_t)index);
  rn_leases_options_t leases = {.env = &node->env,
                                .allocator = sim->allocator,
                                .timers = rn_sim_node_timers(sim, index),
                                .lease_ns = sim->options.lease_ns};
  rn_status_t status = rn_leases_create(&leases, &node->leases);
  if (rn_ok(status) && node->task) status = start_server(node);
  if (!rn_ok(status)) {
    node->is_up = false;
    stop_process(node);
  }
  return status;
}

void rn_sim_crash(rn_sim_t* sim, int index, bool is_silent) {
  rn_sim_node_t* node = &sim->nodes[index];
  if (!node->is_up) return;
  rn_sim_note(sim, 2000 + (uint64_t)index);
  node->is_up = false;
  node->is_silent = is_silent;
  node->frozen_until_ns = 0;
  stop_process(node);
  if (!is_silent) rn_sim_tell_callers_of(sim, index);
}

void rn_sim_freeze(rn_sim_t* sim, int index, int64_t until_ns) {
  rn_sim_note(sim, 3000 + (uint64_t)index);
  sim->nodes[index].frozen_until_ns = until_ns;
}

void rn_sim_slow(rn_sim_t* sim, int index, double factor) { sim->nodes[index].slowness = factor; }

void rn_sim_cut(rn_sim_t* sim, int from, int to, bool is_cut) {
  rn_sim_note(sim, 4000 + (uint64_t)(from * sim->node_count + to));
  rn_sim_link(sim, from, to)->is_cut = is_cut;
}

// Each master's own task is the first in its list.
static rn_status_t make_names(rn_sim_t* sim) {
  int count = sim->options.task_count;
  RN_RETURN_IF_ERROR(rn_alloc_array(sim->allocator, (size_t)count * (size_t)count,
                                    sizeof *sim->task_names, (void**)&sim->task_names));
  for (int n = 0; n < count; ++n) {
    rn_str_t* names = sim->task_names + n * count;
    int at = 0;
    names[at++] = rn_str(sim->options.tasks[n]);
    for (int i = 0; i < count; ++i)
      if (i != n) names[at++] = rn_str(sim->options.tasks[i]);
  }
  return RN_OK;
}

static rn_status_t set_up(rn_sim_t* sim) {
  size_t count = (size_t)sim->node_count;
  RN_RETURN_IF_ERROR(make_names(sim));
  RN_RETURN_IF_ERROR(
      rn_alloc_array(sim->allocator, count, sizeof *sim->nodes, (void**)&sim->nodes));
  RN_RETURN_IF_ERROR(
      rn_alloc_array(sim->allocator, count * count, sizeof *sim->links, (void**)&sim->links));
  for (int n = 0; n < sim->node_count; ++n) {
    rn_sim_node_t* node = &sim->nodes[n];
    *node = (rn_sim_node_t){.sim = sim,
                            .index = n,
                            .task = n < sim->options.task_count ? sim->options.tasks[n] : NULL,
                            .slowness = 1,
                            .env = *rn_env_system()};
    node->env.self = node;
    node->env.allocator = sim->allocator;
    node->env.pool = NULL;
    node->env.now_ns = node_now_ns;
    node->env.wall_us = node_wall_us;
    node->env.random = node_random;
    if (node->task) RN_RETURN_IF_ERROR(rn_map_put(&sim->tasks, rn_str(node->task), node));
    for (int to = 0; to < sim->node_count; ++to)
      rn_sim_link_init(rn_sim_link(sim, n, to), sim, n, to);
  }
  for (int n = 0; n < sim->node_count; ++n) RN_RETURN_IF_ERROR(rn_sim_start(sim, n));
  return RN_OK;
}

rn_status_t rn_sim_create(const rn_sim_options_t* options, rn_sim_t** out) {
  *out = NULL;
  rn_sim_t* sim = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &sim));
  sim->options = *options;
  sim->allocator = options->allocator;
  sim->node_count = options->task_count + options->client_count;
  rn_map_init(&sim->tasks, sim->allocator);
  sim->now_ns = 1000000000;  // 0 is never
  sim->random[0] = options->seed * 0x9e3779b97f4a7c15u + 1;
  sim->random[1] = options->seed ^ 0xd1b54a32d192ed03u;
  for (int i = 0; i < 16; ++i) rn_sim_random(sim);
  rn_status_t status = set_up(sim);
  if (!rn_ok(status)) {
    rn_sim_destroy(sim);
    return status;
  }
  *out = sim;
  return RN_OK;
}

void rn_sim_destroy(rn_sim_t* sim) {
  if (!sim) return;
  for (int n = 0; sim->links && n < sim->node_count; ++n) rn_sim_crash(sim, n, true);
  // The remaining flights have neither caller nor running callee: their last event frees them.
  rn_sim_run(sim, INT64_MAX - 1);
  size_t count = (size_t)sim->node_count;
  RN_FREE_ARRAY(sim->allocator, sim->links, count * count);
  RN_FREE_ARRAY(sim->allocator, sim->nodes, count);
  RN_FREE_ARRAY(sim->allocator, sim->task_names,
                (size_t)sim->options.task_count * (size_t)sim->options.task_count);
  rn_vec_free(&sim->events, sim->allocator);
  rn_map_clear(&sim->tasks);
  RN_FREE(sim->allocator, sim);
}
