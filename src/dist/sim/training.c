// Training on a simulated cluster: see training.h.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/container.h"
#include "dist/sim/training_client.h"
#include "dist/sim/training_graph.h"
#include "proto/config.pb.h"
#include "wire/writer.h"

#define SECOND INT64_C(1000000000)

rn_sim_t* rn_training_sim(rn_training_t* training) { return training->sim; }
const char* rn_training_fault(const rn_training_t* training) { return training->fault; }
int64_t rn_training_update_ns(const rn_training_t* training, int64_t i) {
  return training->updates.items[i];
}

rn_training_stats_t rn_training_stats(const rn_training_t* training) {
  rn_training_stats_t stats = training->stats;
  stats.least = INT64_MAX;
  if (training->updates.count)
    stats.last_update_ns = training->updates.items[training->updates.count - 1];
  for (int c = 0; c < training->client_count - 1; ++c) {
    const rn_sim_client_t* client = &training->clients[c];
    if (!training->options.is_sync) stats.updates += client->rounds;
    if (client->rounds < stats.least) stats.least = client->rounds;
  }
  return stats;
}

void rn_training_blame(rn_training_t* training, const char* format, ...) {
  if (training->fault[0]) return;
  int size = snprintf(training->fault, sizeof training->fault,
                      "%.3f s: ", (double)rn_sim_now(training->sim) * 1e-9);
  va_list args;
  va_start(args, format);
  vsnprintf(training->fault + size, sizeof training->fault - (size_t)size, format, args);
  va_end(args);
}

// The mean of k gradients has 1/k in k places, so a gradient that was added twice is visible.
static void check_sum(rn_training_t* training, int server, const float* taken, int64_t step) {
  int places = training->options.workers * RN_TRAINING_SLOTS, count = 0;
  float least = INFINITY, most = 0;
  for (int i = 0; i < places; ++i) {
    if (taken[i] == 0) continue;
    count++;
    least = fminf(least, taken[i]);
    most = fmaxf(most, taken[i]);
  }
  if (count < training->options.needed)
    rn_training_blame(training, "step %lld took %d gradients of %d from server %d", (long long)step,
                      count, training->options.needed, server);
  else if (fabsf(least * (float)count - 1) > 1e-5f || fabsf(most * (float)count - 1) > 1e-5f)
    rn_training_blame(training, "step %lld took a gradient twice from server %d", (long long)step,
                      server);
  if (fabsf(taken[places] - (float)step) > 1e-6f * (float)step)
    rn_training_blame(training, "step %lld took gradients of step %g from server %d",
                      (long long)step, (double)taken[places], server);
}

void rn_training_check_taken(rn_training_t* training, const rn_tensor_t* values, int64_t step) {
  for (int s = 0; s < training->options.servers; ++s) {
    if (values[s].count != training->length)
      rn_training_blame(training, "server %d gave a sum of %lld numbers", s,
                        (long long)values[s].count);
    else
      check_sum(training, s, RN_DATA(&values[s], float), step);
  }
}

// A step may continue for a while after its client has given up.
static int64_t unknown_since(const rn_training_t* training, const rn_sim_client_t* client,
                             int64_t since_ns) {
  int64_t lease = training->options.lease_ns ? training->options.lease_ns : RN_LEASE_NS;
  int64_t count = 0;
  for (size_t i = 0; i < client->unknown.count; ++i)
    count += client->unknown.items[i] + 3 * lease >= since_ns;
  return count;
}

void rn_training_check_sums(rn_training_t* training, const rn_tensor_t* values) {
  int workers = training->options.workers;
  for (int s = 0; s < training->options.servers; ++s) {
    const float* sums = RN_DATA(&values[s], float);
    for (int w = 0; w < workers; ++w) {
      int64_t confirmed = training->confirmed[s * workers + w];
      int64_t unknown = unknown_since(training, &training->clients[w], training->started_ns[s]);
      double got = 0;
      for (int i = 0; i < RN_TRAINING_SLOTS; ++i) got += sums[w * RN_TRAINING_SLOTS + i];
      if (got < (double)confirmed || got > (double)(confirmed + unknown))
        rn_training_blame(training,
                          "worker %d added %lld times to server %d, and perhaps %lld times more; "
                          "it has %g",
                          w, (long long)confirmed, s, (long long)unknown, got);
    }
  }
}

void rn_training_check_left(rn_training_t* training) {
  int tasks = training->options.servers + training->options.workers;
  for (int n = 0; n < tasks; ++n) {
    rn_local_worker_t* worker = rn_sim_local_worker(training->sim, n);
    if (!worker) {
      rn_training_blame(training, "node %d is down", n);
      continue;
    }
    rn_worker_stats_t stats = rn_local_worker_stats(worker);
    if (stats.sessions != 1 || stats.graphs || stats.steps)
      rn_training_blame(training, "node %d has kept %zu sessions, %zu graphs, %zu steps", n,
                        stats.sessions - 1, stats.graphs, stats.steps);
  }
}

void rn_training_crash(rn_training_t* training, int node, bool is_silent) {
  int client = node - training->options.servers - training->options.workers;
  if (client >= 0) rn_sim_client_forget(&training->clients[client]);
  rn_sim_crash(training->sim, node, is_silent);
}

void rn_training_restarted(rn_training_t* training, int node) {
  int workers = training->options.workers;
  if (node >= training->options.servers) return;
  training->started_ns[node] = rn_sim_now(training->sim);
  for (int w = 0; w < workers; ++w) training->confirmed[node * workers + w] = 0;
}

// Every step ends: waiting ones by their timeouts, all by leases.
static void on_watch(rn_timer_t* timer) {
  rn_training_t* training = RN_CONTAINER_OF(timer, rn_training_t, watch);
  int64_t now = rn_sim_now(training->sim);
  int64_t lease = training->options.lease_ns ? training->options.lease_ns : RN_LEASE_NS;
  for (int c = 0; c < training->client_count; ++c) {
    const rn_sim_client_t* client = &training->clients[c];
    bool waits =
        client->act == RN_ACT_GET || client->act == RN_ACT_TAKE || client->act == RN_ACT_DRAIN;
    int64_t most = 3 * lease + SECOND + (waits ? training->options.wait_ns : 0);
    if (client->act == RN_ACT_OPEN) most += 20 * SECOND;
    if (client->is_busy && now - client->started_ns > most)
      rn_training_blame(training, "action %d of client %d has not ended in %.1f s",
                        (int)client->act, c, (double)(now - client->started_ns) * 1e-9);
  }
  rn_timers_t timers = rn_sim_timers(training->sim);
  rn_status_free(timers.set(timers.self, timer, now + SECOND / 2));
}

static bool all_gone(const rn_training_t* training) {
  for (int c = 0; c < training->client_count; ++c)
    if (training->clients[c].act != RN_ACT_GONE) return false;
  return true;
}

static void run_until_gone(rn_training_t* training, const char* what) {
  int64_t lease = training->options.lease_ns ? training->options.lease_ns : RN_LEASE_NS;
  int64_t until = rn_sim_now(training->sim) + 4 * lease + 40 * SECOND;
  while (!all_gone(training) && rn_sim_now(training->sim) < until)
    rn_sim_run(training->sim, rn_sim_now(training->sim) + SECOND / 10);
  if (!all_gone(training)) rn_training_blame(training, "%s", what);
}

// Ends the clients' processes, and with them their connections.
static void disconnect(rn_training_t* training) {
  for (int c = 0; c < training->client_count; ++c) {
    int node = training->clients[c].node;
    rn_sim_crash(training->sim, node, false);
    rn_status_t status = rn_sim_start(training->sim, node);
    if (!rn_ok(status)) rn_training_blame(training, "%s", rn_status_message(status));
    rn_status_free(status);
  }
}

void rn_training_end(rn_training_t* training) {
  for (int c = 0; c < training->client_count; ++c) rn_sim_client_end(&training->clients[c]);
  run_until_gone(training, "clients have not ended");
  disconnect(training);
  rn_sim_client_t* auditor = &training->clients[training->client_count - 1];
  auditor->is_auditor = true;
  auditor->session[0] = '\0';
  rn_sim_client_start(auditor);
  run_until_gone(training, "the last look at the variables has not ended");
  disconnect(training);
  int64_t lease = training->options.lease_ns ? training->options.lease_ns : RN_LEASE_NS;
  rn_sim_run(training->sim, rn_sim_now(training->sim) + 3 * lease + 3 * SECOND);
  rn_training_check_left(training);
}

static rn_status_t make_config(rn_training_t* training, rn_sim_client_t* client) {
  char worker[64];
  rn_strbuf_t config;
  rn_strbuf_init(&config, training->allocator);
  snprintf(worker, sizeof worker, "/job:worker/task:%d",
           client->master - training->options.servers);
  rn_pb_put_str(&config, rn_pb_ConfigProto_device_filters_field, RN_STR("/job:ps"));
  rn_pb_put_str(&config, rn_pb_ConfigProto_device_filters_field, rn_str(worker));
  rn_status_t status = rn_strbuf_status(&config);
  if (rn_ok(status))
    status = rn_arena_str(&training->arena, rn_strbuf_view(&config), &client->config);
  rn_strbuf_clear(&config);
  return status;
}

static rn_status_t make_client(rn_training_t* training, int index) {
  const rn_training_options_t* options = &training->options;
  rn_sim_client_t* client = &training->clients[index];
  int tasks = options->servers + options->workers;
  size_t servers = (size_t)options->servers;
  client->training = training;
  client->index = index;
  client->is_chief = index == options->workers;
  client->node = tasks + index;
  client->master = options->servers + (client->is_chief ? 0 : index);
  client->step = client->is_chief ? 1 : 0;
  rn_cancel_init(&client->cancel);
  RN_RETURN_IF_ERROR(make_config(training, client));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&training->arena, servers, &client->fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&training->arena, servers, &client->targets));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&training->arena, servers, &client->missing));
  return RN_ARENA_ARRAY(&training->arena, servers, &client->values);
}

static rn_status_t make_sim(rn_training_t* training) {
  const rn_training_options_t* options = &training->options;
  int tasks = options->servers + options->workers;
  const char** names = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&training->arena, (size_t)tasks, &names));
  for (int t = 0; t < tasks; ++t) {
    rn_str_t name;
    bool is_server = t < options->servers;
    RN_RETURN_IF_ERROR(rn_arena_printf(&training->arena, &name, "/job:%s/replica:0/task:%d",
                                       is_server ? "ps" : "worker",
                                       is_server ? t : t - options->servers));
    names[t] = name.data;
  }
  rn_sim_options_t sim = {.allocator = training->allocator,
                          .seed = options->seed,
                          .tasks = names,
                          .task_count = tasks,
                          .client_count = options->workers + 1,
                          .lease_ns = options->lease_ns,
                          .net = options->net};
  return rn_sim_create(&sim, &training->sim);
}

static rn_status_t make_names(rn_training_t* training) {
  static const char* const texts[RN_NAME_COUNT][2] = {
#define ROW(name, text, suffix) {text, suffix},
      RN_TRAINING_NAMES(ROW)
#undef ROW
  };
  int servers = training->options.servers;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&training->arena, RN_NAME_COUNT * (size_t)servers, &training->names));
  for (int n = 0; n < RN_NAME_COUNT; ++n)
    for (int s = 0; s < servers; ++s)
      RN_RETURN_IF_ERROR(rn_arena_printf(&training->arena, &training->names[n * servers + s],
                                         "%s_%d%s", texts[n][0], s, texts[n][1]));
  return RN_OK;
}

int64_t rn_training_length(const rn_training_options_t* options) {
  int64_t checked = options->trusts ? 0 : (int64_t)options->workers * RN_TRAINING_SLOTS;
  return checked + 1 + options->extra;
}

static rn_status_t set_up(rn_training_t* training) {
  const rn_training_options_t* options = &training->options;
  if (options->servers < 1 || options->workers < 1)
    return rn_invalid_argument("bad numbers of parameter servers (%d) and workers (%d)",
                               options->servers, options->workers);
  size_t counts = (size_t)options->servers * (size_t)options->workers;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&training->arena, counts, &training->confirmed));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&training->arena, (size_t)options->servers, &training->started_ns));
  training->client_count = options->workers + 1;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&training->arena, (size_t)training->client_count, &training->clients));
  training->length = rn_training_length(options);
  RN_RETURN_IF_ERROR(
      rn_training_graph(options->servers, training->length, options->needed, &training->graph));
  RN_RETURN_IF_ERROR(make_names(training));
  RN_RETURN_IF_ERROR(make_sim(training));
  for (int c = 0; c < training->client_count; ++c) RN_RETURN_IF_ERROR(make_client(training, c));
  training->watch.fn = on_watch;
  rn_timers_t timers = rn_sim_timers(training->sim);
  RN_RETURN_IF_ERROR(
      timers.set(timers.self, &training->watch, rn_sim_now(training->sim) + SECOND / 2));
  for (int c = 0; c < training->client_count; ++c) rn_sim_client_start(&training->clients[c]);
  return RN_OK;
}

rn_status_t rn_training_create(const rn_training_options_t* options, rn_training_t** out) {
  *out = NULL;
  rn_training_t* training = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &training));
  training->options = *options;
  if (!training->options.wait_ns) training->options.wait_ns = 5 * SECOND;
  training->allocator = options->allocator;
  rn_arena_init(&training->arena, options->allocator);
  rn_strbuf_init(&training->graph, options->allocator);
  rn_status_t status = set_up(training);
  if (!rn_ok(status)) {
    rn_training_destroy(training);
    return status;
  }
  *out = training;
  return RN_OK;
}

void rn_training_destroy(rn_training_t* training) {
  if (!training) return;
  training->is_over = true;
  if (training->sim) {
    rn_timers_t timers = rn_sim_timers(training->sim);
    timers.clear(timers.self, &training->watch);
    rn_sim_destroy(training->sim);
  }
  for (int c = 0; training->clients && c < training->client_count; ++c) {
    if (!training->clients[c].training) continue;
    rn_cancel_destroy(&training->clients[c].cancel);
    rn_vec_free(&training->clients[c].unknown, training->allocator);
  }
  rn_vec_free(&training->updates, training->allocator);
  rn_strbuf_clear(&training->graph);
  rn_arena_clear(&training->arena);
  RN_FREE(training->allocator, training);
}
