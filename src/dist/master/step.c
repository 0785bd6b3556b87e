// A step is one call to every task that takes part: see step.h.
#include "dist/master/step.h"

#include "base/container.h"
#include "dist/collective/cluster.h"
#include "dist/master/mend.h"
#include "dist/master/program.h"
#include "framework/rendezvous.h"
#include "proto/config.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

// RunOptions.TraceLevel: the lowest one that collects anything.
#define FULL_TRACE 3
// The most bytes of a value, and of all values, that are sent along with a call.
#define MAX_ALONG 8192
#define MAX_ALL_ALONG 32768

// A call of one part.
typedef struct step_part_t {
  rn_run_graph_t call;  // first
  struct rn_master_step_t* step;
  int task;
  RN_VEC(rn_named_tensor_t) along;  // values that the master's own part has sent to it
  size_t along_bytes;
} step_part_t;

// The end of a step.

static void step_release(rn_master_step_t* step) {
  if (--step->refs) return;
  rn_master_session_t* session = step->session;
  for (size_t p = 0; step->parts && p < step->program->plan.parts.count; ++p) {
    step_part_t* part = &step->parts[p];
    for (size_t i = 0; i < part->along.count; ++i) rn_tensor_clear(&part->along.items[i].value);
    rn_vec_free(&part->along, rn_master_session_allocator(session));
  }
  rn_cancel_destroy(&step->cancel);
  rn_arena_clear(&step->arena);
  RN_FREE(rn_master_session_allocator(session), step);
  rn_master_session_release(session);
}

void rn_master_step_end(rn_master_step_t* step, rn_status_t status) {
  rn_master_session_t* session = step->session;
  rn_run_step_t* call = step->call;
  if (!rn_ok(status))
    for (size_t i = 0; i < call->fetch_count; ++i) rn_tensor_clear(&call->fetches[i]);
  if (step->caller_linked) rn_cancel_remove(call->call.cancel, &step->caller);
  if (step->closing_linked) rn_cancel_remove(&session->closing, &step->closing);
  rn_master_session_end_step(session);
  step_release(step);
  rn_call_done(&call->call, status);
}

// Tells a task to forget the step, without waiting.
typedef struct cleanup_t {
  rn_cleanup_graph_t call;  // first
  rn_allocator_t allocator;
} cleanup_t;

static void on_clean(rn_call_t* call, rn_status_t status) {
  cleanup_t* cleanup = (cleanup_t*)call;
  rn_status_free(status);
  RN_FREE(cleanup->allocator, cleanup);
}

// Whether part |p| of a successful step is forgotten without a CleanupGraph.
static bool cleans_up(const rn_master_step_t* step, size_t p) {
  const rn_master_plan_t* plan = &step->program->plan;
  return plan->is_straight && step->session->tasks[plan->parts.items[p].task].status.is_ours;
}

static void clean_up(rn_master_step_t* step, bool is_ok) {
  rn_master_session_t* session = step->session;
  for (size_t p = 0; p < step->program->plan.parts.count; ++p) {
    rn_worker_t* worker = session->tasks[step->program->plan.parts.items[p].task].worker;
    cleanup_t* cleanup = NULL;
    if (is_ok && cleans_up(step, p)) continue;
    rn_status_t status = RN_NEW(rn_master_session_allocator(session), &cleanup);
    rn_status_free(status);
    if (!cleanup) continue;
    cleanup->allocator = rn_master_session_allocator(session);
    cleanup->call.step = step->id;
    cleanup->call.call = (rn_call_t){.done = on_clean, .deadline_ns = INT64_MAX};
    worker->vtable->cleanup_graph(worker, &cleanup->call);
  }
}

// Statistics and costs of all parts are one list each.
static void write_metadata(rn_master_step_t* step) {
  const rn_run_step_t* call = step->call;
  const rn_master_plan_t* plan = &step->program->plan;
  rn_strbuf_t* out = &step->call->metadata;
  if (call->trace_level == FULL_TRACE) {
    size_t stats = rn_pb_begin(out, rn_pb_RunMetadata_step_stats_field);
    if (step->trace) rn_master_trace_write(step->trace, out);
    for (size_t p = 0; p < plan->parts.count; ++p)
      rn_strbuf_append(out, rn_strbuf_view(&step->parts[p].call.stats));
    rn_pb_end(out, stats);
  }
  if (step->is_measured) {
    size_t costs = rn_pb_begin(out, rn_pb_RunMetadata_cost_graph_field);
    for (size_t p = 0; p < plan->parts.count; ++p)
      rn_strbuf_append(out, rn_strbuf_view(&step->parts[p].call.costs));
    rn_pb_end(out, costs);
  }
  for (size_t p = 0; call->wants_graphs && p < plan->parts.count; ++p) {
    rn_pb_scan_t scan = rn_pb_scan(rn_strbuf_view(&step->parts[p].call.graphs));
    for (rn_pb_field_t field; rn_pb_scan_next(&scan, &field);)
      rn_pb_put_str(out, rn_pb_RunMetadata_partition_graphs_field, field.bytes);
  }
}

static void clear_notes(rn_master_step_t* step) {
  for (size_t p = 0; p < step->program->plan.parts.count; ++p) {
    rn_run_graph_t* call = &step->parts[p].call;
    rn_strbuf_clear(&call->stats);
    rn_strbuf_clear(&call->graphs);
    rn_strbuf_clear(&call->costs);
  }
}

// The parts have ended and their logs have arrived. Missing logs do not fail the step.
static void on_noted(void* owner, rn_status_t status) {
  rn_master_step_t* step = owner;
  rn_status_free(status);
  write_metadata(step);
  clear_notes(step);
  rn_master_trace_drop(step->trace);
  rn_master_step_end(step, RN_OK);
}

// The collectives of this task, which number steps that have some.
static rn_cluster_collectives_t* collectives_of(const rn_master_step_t* step) {
  return rn_local_worker_cluster(rn_local_master_options(step->session->master)->worker);
}

static void retire_number(rn_master_step_t* step) {
  int64_t graph = step->program->plan.collective_key;
  if (graph) rn_cluster_collectives_end_step(collectives_of(step), graph, step->id);
}

static void on_all_run(rn_master_fan_t* fan, rn_status_t status) {
  rn_master_step_t* step = (rn_master_step_t*)fan;
  retire_number(step);
  clean_up(step, rn_ok(status));
  if (rn_ok(status) && step->trace) {
    rn_master_trace_end(step->trace, step->id, on_noted);
    return;
  }
  rn_master_trace_drop(step->trace);
  if (rn_ok(status)) write_metadata(step);
  clear_notes(step);
  rn_master_step_end(step, status);
}

// Running.

static void on_part(rn_call_t* call, rn_status_t status) {
  step_part_t* part = (step_part_t*)call;
  rn_master_step_t* step = part->step;
  // The first error cancels all parts. A derived error does not: the part that caused it is about
  // to report it and must not be cancelled first.
  if (!rn_ok(status)) {
    rn_master_suspect(step->session, &step->program->plan, part->task, status);
    if (!rn_status_is_derived(status)) rn_cancel(&step->cancel);
  }
  rn_master_fan_end(&step->fan, status, step->session->tasks[part->task].name);
}

static int64_t random_number(const rn_master_step_t* step) {
  const rn_env_t* env = rn_local_master_options(step->session->master)->env;
  return (int64_t)(env->random(env->self) & ((UINT64_C(1) << 56) - 1));
}

static rn_status_t make_parts(rn_master_step_t* step) {
  rn_master_program_t* program = step->program;
  rn_run_step_t* call = step->call;
  // Masters of other clients may number their steps alike.
  int64_t request = program->plan.collective_key ? random_number(step) : step->id;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, program->plan.parts.count, &step->parts));
  for (size_t p = 0; p < program->plan.parts.count; ++p) {
    step_part_t* part = &step->parts[p];
    part->step = step;
    part->task = program->plan.parts.items[p].task;
    part->call = (rn_run_graph_t){
        .call = {.done = on_part, .deadline_ns = call->call.deadline_ns, .cancel = &step->cancel},
        .session = rn_str(step->session->handle),
        .handle = rn_str(program->calls[p].handle),
        .step = step->id,
        .cleans_up = cleans_up(step, p),
        .wants_stats = call->trace_level == FULL_TRACE,
        .wants_graphs = call->wants_graphs,
        .wants_costs = step->is_measured};
    rn_strbuf_init(&part->call.stats, rn_master_session_allocator(step->session));
    rn_strbuf_init(&part->call.graphs, rn_master_session_allocator(step->session));
    rn_strbuf_init(&part->call.costs, rn_master_session_allocator(step->session));
    // A stock task would run a repeated part again.
    if (step->session->tasks[part->task].status.is_ours) part->call.request = request;
    if (part->task != 0) continue;  // feeds and fetches are on the master's own device
    part->call.feeds = call->feeds;
    part->call.feed_count = call->feed_count;
    part->call.fetch_names = call->fetch_names;
    part->call.fetch_count = call->fetch_count;
    part->call.fetches = call->fetches;
  }
  return RN_OK;
}

// The part that receives the value of |key|; NULL if it is on a stock task.
static step_part_t* part_of_key(rn_master_step_t* step, rn_str_t key) {
  rn_str_split(&key, ';');
  rn_str_split(&key, ';');
  rn_str_t device = rn_str_split(&key, ';');
  for (size_t p = 0; p < step->program->plan.parts.count; ++p) {
    const rn_master_task_t* task = &step->session->tasks[step->parts[p].task];
    if (step->parts[p].task != 0 && task->status.is_ours &&
        rn_str_starts_with(device, task->name) && device.data[task->name.size] == '/')
      return &step->parts[p];
  }
  return NULL;
}

static bool takes_along(rn_outbox_t* outbox, rn_str_t key, rn_tensor_t* value) {
  rn_master_step_t* step = RN_CONTAINER_OF(outbox, rn_master_step_t, outbox);
  step_part_t* part = part_of_key(step, key);
  if (!part || !rn_dtype_is_plain(value->dtype)) return false;
  size_t bytes = rn_tensor_bytes(value);
  if (bytes > MAX_ALONG || part->along_bytes + bytes > MAX_ALL_ALONG) return false;
  rn_named_tensor_t along = {.value = *value};
  rn_status_t status = rn_arena_str(&step->arena, key, &along.name);
  if (rn_ok(status))
    status = rn_vec_push(&part->along, rn_master_session_allocator(step->session), along);
  bool is_taken = rn_ok(status);
  rn_status_free(status);  // without memory, the receiver fetches it
  if (is_taken) *value = (rn_tensor_t){0};
  if (is_taken) part->along_bytes += bytes;
  return is_taken;
}

// The other parts are started before the master's own, which may run in this thread. If its own
// part sends to them, it starts first, and the values that it has sent by then go along with the
// calls.
static void launch_parts(rn_master_step_t* step) {
  if (step->session->options.cost_every > 0)
    step->is_measured = rn_session_measures(&step->session->options, step->program->steps++);
  rn_status_t status = make_parts(step);
  size_t count = step->program->plan.parts.count;
  if (!rn_ok(status) || !count) {
    retire_number(step);
    rn_master_trace_drop(step->trace);
    rn_master_step_end(step, status);
    return;
  }
  rn_master_fan_open(&step->fan, (int)count, on_all_run);
  step_part_t *parts = step->parts, *own = NULL;
  rn_master_task_t* tasks = step->session->tasks;
  for (size_t p = 0; p < count; ++p)
    if (parts[p].task == 0) own = &parts[p];
  bool is_first = own && step->program->plan.sends && step->program->plan.is_straight;
  step->refs++;  // the last of the calls may free it
  if (is_first) {
    step->outbox.takes = takes_along;
    own->call.outbox = &step->outbox;
    tasks[0].worker->vtable->run_graph(tasks[0].worker, &own->call);
  }
  for (size_t p = 0; p < count; ++p) {
    rn_worker_t* worker = tasks[parts[p].task].worker;
    if (&parts[p] == own) continue;
    parts[p].call.sent = parts[p].along.items;
    parts[p].call.sent_count = parts[p].along.count;
    worker->vtable->run_graph(worker, &parts[p].call);
  }
  if (own && !is_first) tasks[0].worker->vtable->run_graph(tasks[0].worker, &own->call);
  step_release(step);
}

static void on_numbered(rn_sequence_wait_t* wait, int64_t number, rn_status_t status) {
  rn_master_step_t* step = RN_CONTAINER_OF(wait, rn_master_step_t, numbering);
  step->id = number;
  if (rn_ok(status)) {
    launch_parts(step);
    return;
  }
  rn_master_trace_drop(step->trace);
  rn_master_step_end(step, status);
}

static void start_parts(rn_master_step_t* step) {
  int64_t graph = step->program->plan.collective_key;
  if (graph) {
    step->numbering.fn = on_numbered;
    rn_cluster_collectives_next_step(collectives_of(step), graph, &step->cancel, &step->numbering);
    return;
  }
  step->id = random_number(step);
  launch_parts(step);
}

static void on_tracing(void* owner, rn_status_t status) {
  rn_master_step_t* step = owner;
  if (rn_ok(status)) {
    start_parts(step);
    return;
  }
  rn_master_trace_drop(step->trace);
  rn_master_step_end(step, status);
}

void rn_master_step_run(rn_master_step_t* step) {
  const rn_run_step_t* call = step->call;
  if (call->trace_level != FULL_TRACE) {
    start_parts(step);
    return;
  }
  rn_status_t status =
      rn_master_trace_begin(step->session, &step->program->plan, call->call.deadline_ns,
                            &step->cancel, on_tracing, step, &step->trace);
  if (!rn_ok(status)) rn_master_step_end(step, status);
}

static void cancel_step(rn_master_step_t* step) {
  step->refs++;
  rn_cancel(&step->cancel);
  step_release(step);
}
static void on_caller(rn_cancel_entry_t* entry) {
  cancel_step(RN_CONTAINER_OF(entry, rn_master_step_t, caller));
}
static void on_closing(rn_cancel_entry_t* entry) {
  cancel_step(RN_CONTAINER_OF(entry, rn_master_step_t, closing));
}

static rn_status_t begin(rn_master_session_t* session, rn_run_step_t* call,
                         rn_master_step_t** out) {
  rn_master_step_t* step = NULL;
  rn_mutex_lock(&session->mutex);
  rn_status_t status = session->is_closed ? rn_cancelled("Session has been closed.") : RN_OK;
  if (rn_ok(status)) status = RN_NEW(rn_master_session_allocator(session), &step);
  if (rn_ok(status)) session->running++;
  rn_mutex_unlock(&session->mutex);
  if (!rn_ok(status)) return status;
  session->refs++;
  step->refs = 1;
  step->session = session;
  step->call = call;
  rn_arena_init(&step->arena, rn_master_session_allocator(session));
  rn_cancel_init(&step->cancel);
  step->caller.fn = on_caller;
  step->closing.fn = on_closing;
  step->closing_linked = rn_cancel_add(&session->closing, &step->closing);
  step->caller_linked = call->call.cancel && rn_cancel_add(call->call.cancel, &step->caller);
  if (!step->closing_linked || (call->call.cancel && !step->caller_linked))
    rn_cancel(&step->cancel);
  *out = step;
  return RN_OK;
}

void rn_master_session_run(rn_master_session_t* session, rn_run_step_t* call) {
  for (size_t i = 0; i < call->fetch_count; ++i) call->fetches[i] = (rn_tensor_t){0};
  rn_master_step_t* step = NULL;
  rn_status_t status = begin(session, call, &step);
  if (!rn_ok(status)) {
    rn_call_done(&call->call, status);
    return;
  }
  status = rn_master_program_dispatch(step);
  if (!rn_ok(status)) rn_master_step_end(step, status);
}
