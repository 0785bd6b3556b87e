// Measurements of `runnel place`: see place.h.
#include <stdlib.h>

#include "cli/place.h"
#include "proto/config.pb.h"
#include "session/step_stats_proto.h"
#include "wire/writer.h"

// Steps before any that count: the first plans, the next fill caches.
enum { WARM_UP = 3 };

void rn_cli_place_session(const cli_place_job_t* job, rn_session_options_t* out) {
  const rn_cli_t* cli = job->run.cli;
  rn_session_options_init(out);
  int threads = (int)rn_cli_number(cli, "--threads", 1);
  if (rn_cli_has(cli, "--apart")) threads *= job->device_count;
  out->intra_threads = 1;
  out->inter_threads = threads;
  out->allow_soft_placement = true;
  if (job->cpus > 1) out->cpu_devices = job->cpus;
}

static rn_status_t step(cli_place_job_t* job, rn_session_t* session,
                        const rn_signature_t* signature, const rn_step_options_t* options,
                        int64_t* out_ns) {
  rn_cli_run_t* run = &job->run;
  const rn_env_t* env = run->cli->env;
  const rn_tensor_t** values = NULL;
  rn_tensor_t* results = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&run->arena, run->values.count + 1, &values));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&run->arena, run->fetches.count + 1, &results));
  for (size_t i = 0; i < run->values.count; ++i) values[i] = &run->values.items[i];
  int64_t begin = env->now_ns(env->self);
  rn_status_t status = rn_session_run(session, signature, values, results, options);
  *out_ns = env->now_ns(env->self) - begin;
  for (size_t i = 0; i < run->fetches.count; ++i) rn_tensor_clear(&results[i]);
  return rn_cli_at(status, run->path);
}

static rn_status_t trace(cli_place_job_t* job, int64_t* out_ns) {
  rn_allocator_t allocator = job->run.cli->allocator;
  rn_step_stats_t stats;
  rn_strbuf_t bytes;
  rn_step_stats_init(&stats, allocator, job->run.cli->env);
  rn_strbuf_init(&bytes, allocator);
  rn_step_options_t options = {.stats = &stats};
  rn_status_t status = step(job, job->run.session, &job->signature, &options, out_ns);
  if (rn_ok(status)) {
    size_t mark = rn_pb_begin(&bytes, rn_pb_RunMetadata_step_stats_field);
    rn_step_stats_write(&stats, &bytes);
    rn_pb_end(&bytes, mark);
    status = rn_strbuf_status(&bytes);
  }
  if (rn_ok(status)) status = rn_placement_add_trace(job->automatic, rn_strbuf_view(&bytes));
  rn_step_stats_clear(&stats);
  rn_strbuf_clear(&bytes);
  return status;
}

static int compare_times(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

static int64_t median(int64_t* times, int64_t count) {
  qsort(times, (size_t)count, sizeof *times, compare_times);
  return times[count / 2];
}

static rn_status_t initialize(const cli_place_job_t* job, rn_session_t* session,
                              rn_graph_t* graph) {
  for (size_t i = 0; i < job->run.inits.count; ++i) {
    rn_str_t name = job->run.inits.items[i]->name;
    rn_node_t* node = rn_graph_find(graph, name);
    rn_signature_t signature = {.targets = &node, .target_count = 1};
    if (!node) return rn_not_found("--init %.*s: no such node", RN_STR_ARGS(name));
    RN_RETURN_IF_ERROR(rn_cli_prefix(rn_session_run(session, &signature, NULL, NULL, NULL),
                                     "'%s': --init %.*s: ", job->run.path, RN_STR_ARGS(name)));
  }
  return RN_OK;
}

// Tracing makes steps slower; the times of the nodes are scaled to what steps take without it.
static void scale(cli_place_job_t* job, size_t first, int64_t plain_ns, int64_t traced_ns) {
  double factor = traced_ns > plain_ns ? (double)plain_ns / (double)traced_ns : 1;
  for (size_t i = first; i < job->automatic->traces.count; ++i) {
    rn_trace_entry_t* entry = &job->automatic->traces.items[i];
    entry->ns = (int64_t)((double)entry->ns * factor);
  }
}

rn_status_t rn_cli_place_measure(cli_place_job_t* job) {
  int64_t count = rn_cli_number(job->run.cli, "--measure", 0), *plain = NULL, *traced = NULL, ns;
  if (!count) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)count, &plain));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)count, &traced));
  RN_RETURN_IF_ERROR(initialize(job, job->run.session, job->run.graph));
  for (int i = 0; i < WARM_UP; ++i)
    RN_RETURN_IF_ERROR(step(job, job->run.session, &job->signature, NULL, &ns));
  size_t first = job->automatic->traces.count;
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(step(job, job->run.session, &job->signature, NULL, &plain[i]));
    RN_RETURN_IF_ERROR(trace(job, &traced[i]));
  }
  job->measured_ns = median(plain, count);
  scale(job, first, job->measured_ns, median(traced, count));
  return RN_OK;
}

// The signature of the same step in another graph with the same names.
static rn_status_t translate(cli_place_job_t* job, rn_graph_t* graph, rn_signature_t* out) {
  const rn_signature_t* from = &job->signature;
  rn_edge_t *feeds = NULL, *fetches = NULL;
  rn_node_t** targets = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)from->feed_count + 1, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)from->fetch_count + 1, &fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)from->target_count + 1, &targets));
  for (int32_t i = 0; i < from->feed_count; ++i)
    feeds[i] = (rn_edge_t){rn_graph_find(graph, from->feeds[i].node->name), from->feeds[i].index};
  for (int32_t i = 0; i < from->fetch_count; ++i)
    fetches[i] =
        (rn_edge_t){rn_graph_find(graph, from->fetches[i].node->name), from->fetches[i].index};
  for (int32_t i = 0; i < from->target_count; ++i)
    targets[i] = rn_graph_find(graph, from->targets[i]->name);
  *out = (rn_signature_t){.feeds = feeds,
                          .feed_count = from->feed_count,
                          .fetches = fetches,
                          .fetch_count = from->fetch_count,
                          .targets = targets,
                          .target_count = from->target_count};
  return RN_OK;
}

static rn_status_t compare(cli_place_job_t* job, rn_graph_t* graph, rn_session_t* session) {
  int64_t count = rn_cli_number(job->run.cli, "--measure", 0), *times[2] = {NULL}, ns;
  rn_signature_t signature;
  RN_RETURN_IF_ERROR(translate(job, graph, &signature));
  RN_RETURN_IF_ERROR(initialize(job, session, graph));
  for (int k = 0; k < 2; ++k)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)count, &times[k]));
  for (int i = 0; i < WARM_UP; ++i) RN_RETURN_IF_ERROR(step(job, session, &signature, NULL, &ns));
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(step(job, job->run.session, &job->signature, NULL, &times[0][i]));
    RN_RETURN_IF_ERROR(step(job, session, &signature, NULL, &times[1][i]));
  }
  job->measured_ns = median(times[0], count);
  job->placed_ns = median(times[1], count);
  return RN_OK;
}

rn_status_t rn_cli_place_compare(cli_place_job_t* job, rn_graph_t* graph) {
  rn_session_options_t options;
  rn_session_t* session = NULL;
  rn_cli_place_session(job, &options);
  RN_RETURN_IF_ERROR(
      rn_session_create(graph, &options, job->run.cli->env, job->run.cli->allocator, &session));
  rn_status_t status = compare(job, graph, session);
  rn_session_destroy(session);
  return status;
}
