// What is carried of each kind of call: see records.h.
#include "dist/sim/records.h"

static rn_status_t copy_strs(rn_arena_t* arena, const rn_str_t* from, size_t count,
                             const rn_str_t** out) {
  rn_str_t* copies = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &copies));
  for (size_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(rn_arena_str(arena, from[i], &copies[i]));
  *out = copies;
  return RN_OK;
}

// Tensors are copied: the memory of a process dies with it.
static rn_status_t copy_feeds(rn_arena_t* arena, const rn_named_tensor_t* from, size_t count,
                              const rn_named_tensor_t** out) {
  rn_named_tensor_t* copies = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &copies));
  *out = copies;
  for (size_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(rn_arena_str(arena, from[i].name, &copies[i].name));
    RN_RETURN_IF_ERROR(rn_tensor_copy(&from[i].value, arena->allocator, &copies[i].value));
  }
  return RN_OK;
}

// Puts copies in the place of |values|.
static rn_status_t settle_values(rn_tensor_t* values, size_t count, rn_arena_t* arena) {
  for (size_t i = 0; i < count; ++i) {
    rn_tensor_t copy = {0};
    if (!rn_tensor_is_set(&values[i])) continue;
    RN_RETURN_IF_ERROR(rn_tensor_copy(&values[i], arena->allocator, &copy));
    rn_tensor_clear(&values[i]);
    values[i] = copy;
  }
  return RN_OK;
}

static void move_values(rn_tensor_t* from, size_t count, rn_tensor_t* to) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = from[i];
    from[i] = (rn_tensor_t){0};
  }
}

static void clear_feeds(const rn_named_tensor_t* feeds, size_t count) {
  for (size_t i = 0; feeds && i < count; ++i) rn_tensor_clear((rn_tensor_t*)&feeds[i].value);
}
static void clear_values(rn_tensor_t* values, size_t count) {
  for (size_t i = 0; values && i < count; ++i) rn_tensor_clear(&values[i]);
}

static rn_status_t no_answer(rn_record_t* from, rn_call_t* to) {
  (void)from, (void)to;
  return RN_OK;
}
static void nothing_to_clear(rn_record_t* record) { (void)record; }

#define CALLS_WORKER(name, function)                                  \
  static void call_##name(rn_worker_t* worker, rn_record_t* record) { \
    worker->vtable->function(worker, &record->name);                  \
  }
#define CALLS_MASTER(name, function)                                  \
  static void call_##name(rn_master_t* master, rn_record_t* record) { \
    master->vtable->function(master, &record->name);                  \
  }
#define KIND(NAME, side, settles, answers, clears)              \
  const rn_record_kind_t rn_record_##NAME = {.name = #NAME,     \
                                             .ask = ask_##NAME, \
                                             .settle = settles, \
                                             .answer = answers, \
                                             .clear = clears,   \
                                             .call_##side = call_##NAME};

// The worker.

CALLS_WORKER(get_status, get_status)
static rn_status_t ask_get_status(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  (void)from;
  rn_arena_init(&to->get_status.arena, arena->allocator);
  return RN_OK;
}
static rn_status_t answer_get_status(rn_record_t* from, rn_call_t* to) {
  rn_get_status_t* out = (rn_get_status_t*)to;
  const rn_get_status_t* in = &from->get_status;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, in->device_count, &out->devices));
  for (size_t i = 0; i < in->device_count; ++i) {
    out->devices[i] = in->devices[i];
    RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, in->devices[i].name, &out->devices[i].name));
    RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, in->devices[i].type, &out->devices[i].type));
  }
  out->device_count = in->device_count;
  out->is_ours = in->is_ours;
  return RN_OK;
}
static rn_status_t settle_get_status(rn_record_t* record, rn_arena_t* arena) {
  for (size_t i = 0; i < record->get_status.device_count; ++i) {
    rn_device_info_t* device = &record->get_status.devices[i];
    RN_RETURN_IF_ERROR(rn_arena_str(arena, device->name, &device->name));
    RN_RETURN_IF_ERROR(rn_arena_str(arena, device->type, &device->type));
  }
  return RN_OK;
}
static void clear_get_status(rn_record_t* record) { rn_arena_clear(&record->get_status.arena); }
KIND(get_status, worker, settle_get_status, answer_get_status, clear_get_status)

CALLS_WORKER(create_worker_session, create_session)
static rn_status_t ask_create_worker_session(const rn_call_t* from, rn_record_t* to,
                                             rn_arena_t* arena) {
  rn_create_worker_session_t* record = &to->create_worker_session;
  *record = *(const rn_create_worker_session_t*)from;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, record->session, &record->session));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, record->job, &record->job));
  return rn_arena_str(arena, record->master, &record->master);
}
KIND(create_worker_session, worker, NULL, no_answer, nothing_to_clear)

CALLS_WORKER(delete_worker_session, delete_session)
static rn_status_t ask_delete_worker_session(const rn_call_t* from, rn_record_t* to,
                                             rn_arena_t* arena) {
  return rn_arena_str(arena, ((const rn_delete_worker_session_t*)from)->session,
                      &to->delete_worker_session.session);
}
KIND(delete_worker_session, worker, NULL, no_answer, nothing_to_clear)

CALLS_WORKER(register_graph, register_graph)
static rn_status_t ask_register_graph(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  const rn_register_graph_t* in = (const rn_register_graph_t*)from;
  rn_register_graph_t* record = &to->register_graph;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in->session, &record->session));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in->graph_def, &record->graph_def));
  return rn_arena_str(arena, in->config, &record->config);
}
static rn_status_t answer_register_graph(rn_record_t* from, rn_call_t* to) {
  memcpy(((rn_register_graph_t*)to)->handle, from->register_graph.handle,
         sizeof from->register_graph.handle);
  return RN_OK;
}
KIND(register_graph, worker, NULL, answer_register_graph, nothing_to_clear)

CALLS_WORKER(deregister_graph, deregister_graph)
static rn_status_t ask_deregister_graph(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  const rn_deregister_graph_t* in = (const rn_deregister_graph_t*)from;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in->session, &to->deregister_graph.session));
  return rn_arena_str(arena, in->handle, &to->deregister_graph.handle);
}
KIND(deregister_graph, worker, NULL, no_answer, nothing_to_clear)

CALLS_WORKER(run_graph, run_graph)
static rn_status_t ask_run_graph(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  rn_run_graph_t* record = &to->run_graph;
  *record = *(const rn_run_graph_t*)from;
  const rn_run_graph_t in = *record;
  record->feeds = NULL;
  record->sent = NULL;
  record->outbox = NULL;
  record->fetches = NULL;
  rn_strbuf_init(&record->stats, arena->allocator);
  rn_strbuf_init(&record->graph, arena->allocator);
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in.session, &record->session));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in.handle, &record->handle));
  RN_RETURN_IF_ERROR(copy_strs(arena, in.fetch_names, in.fetch_count, &record->fetch_names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, in.fetch_count, &record->fetches));
  RN_RETURN_IF_ERROR(copy_feeds(arena, in.sent, in.sent_count, &record->sent));
  return copy_feeds(arena, in.feeds, in.feed_count, &record->feeds);
}
static rn_status_t settle_run_graph(rn_record_t* record, rn_arena_t* arena) {
  return settle_values(record->run_graph.fetches, record->run_graph.fetch_count, arena);
}
static rn_status_t answer_run_graph(rn_record_t* from, rn_call_t* to) {
  const rn_run_graph_t* in = &from->run_graph;
  rn_run_graph_t* out = (rn_run_graph_t*)to;
  if (in->stats.size) rn_strbuf_append(&out->stats, rn_strbuf_view(&in->stats));
  if (in->graph.size) rn_strbuf_append(&out->graph, rn_strbuf_view(&in->graph));
  move_values(in->fetches, in->fetch_count, out->fetches);
  return RN_OK;
}
static void clear_run_graph(rn_record_t* record) {
  clear_feeds(record->run_graph.feeds, record->run_graph.feed_count);
  clear_feeds(record->run_graph.sent, record->run_graph.sent_count);
  clear_values(record->run_graph.fetches, record->run_graph.fetch_count);
  rn_strbuf_clear(&record->run_graph.stats);
  rn_strbuf_clear(&record->run_graph.graph);
}
KIND(run_graph, worker, settle_run_graph, answer_run_graph, clear_run_graph)

CALLS_WORKER(cleanup_graph, cleanup_graph)
static rn_status_t ask_cleanup_graph(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  (void)arena;
  to->cleanup_graph = *(const rn_cleanup_graph_t*)from;
  return RN_OK;
}
KIND(cleanup_graph, worker, NULL, no_answer, nothing_to_clear)

CALLS_WORKER(recv_tensor, recv_tensor)
static rn_status_t ask_recv_tensor(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  to->recv_tensor = *(const rn_recv_tensor_t*)from;
  to->recv_tensor.value = (rn_tensor_t){0};
  return rn_arena_str(arena, to->recv_tensor.key, &to->recv_tensor.key);
}
static rn_status_t settle_recv_tensor(rn_record_t* record, rn_arena_t* arena) {
  return settle_values(&record->recv_tensor.value, 1, arena);
}
static rn_status_t answer_recv_tensor(rn_record_t* from, rn_call_t* to) {
  rn_recv_tensor_t* out = (rn_recv_tensor_t*)to;
  out->is_dead = from->recv_tensor.is_dead;
  move_values(&from->recv_tensor.value, 1, &out->value);
  return RN_OK;
}
static void clear_recv_tensor(rn_record_t* record) { rn_tensor_clear(&record->recv_tensor.value); }
KIND(recv_tensor, worker, settle_recv_tensor, answer_recv_tensor, clear_recv_tensor)

CALLS_WORKER(cleanup_all, cleanup_all)
static rn_status_t ask_cleanup_all(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  to->cleanup_all = *(const rn_cleanup_all_t*)from;
  return copy_strs(arena, to->cleanup_all.containers, to->cleanup_all.container_count,
                   &to->cleanup_all.containers);
}
KIND(cleanup_all, worker, NULL, no_answer, nothing_to_clear)

// The master.

CALLS_MASTER(create_session, create_session)
static rn_status_t ask_create_session(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  const rn_create_session_t* in = (const rn_create_session_t*)from;
  rn_create_session_t* record = &to->create_session;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in->graph_def, &record->graph_def));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in->config, &record->config));
  return rn_arena_str(arena, in->target, &record->target);
}
static rn_status_t answer_create_session(rn_record_t* from, rn_call_t* to) {
  rn_create_session_t* out = (rn_create_session_t*)to;
  memcpy(out->session, from->create_session.session, sizeof out->session);
  out->version = from->create_session.version;
  return RN_OK;
}
KIND(create_session, master, NULL, answer_create_session, nothing_to_clear)

CALLS_MASTER(extend_session, extend_session)
static rn_status_t ask_extend_session(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  to->extend_session = *(const rn_extend_session_t*)from;
  rn_extend_session_t* record = &to->extend_session;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, record->session, &record->session));
  return rn_arena_str(arena, record->graph_def, &record->graph_def);
}
static rn_status_t answer_extend_session(rn_record_t* from, rn_call_t* to) {
  ((rn_extend_session_t*)to)->version = from->extend_session.version;
  return RN_OK;
}
KIND(extend_session, master, NULL, answer_extend_session, nothing_to_clear)

CALLS_MASTER(run_step, run_step)
static rn_status_t ask_run_step(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  rn_run_step_t* record = &to->run_step;
  *record = *(const rn_run_step_t*)from;
  const rn_run_step_t in = *record;
  record->feeds = NULL;
  record->fetches = NULL;
  rn_strbuf_init(&record->metadata, arena->allocator);
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in.session, &record->session));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, in.partial_run, &record->partial_run));
  RN_RETURN_IF_ERROR(copy_strs(arena, in.fetch_names, in.fetch_count, &record->fetch_names));
  RN_RETURN_IF_ERROR(copy_strs(arena, in.targets, in.target_count, &record->targets));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, in.fetch_count, &record->fetches));
  return copy_feeds(arena, in.feeds, in.feed_count, &record->feeds);
}
static rn_status_t settle_run_step(rn_record_t* record, rn_arena_t* arena) {
  return settle_values(record->run_step.fetches, record->run_step.fetch_count, arena);
}
static rn_status_t answer_run_step(rn_record_t* from, rn_call_t* to) {
  const rn_run_step_t* in = &from->run_step;
  rn_run_step_t* out = (rn_run_step_t*)to;
  if (in->metadata.size) rn_strbuf_append(&out->metadata, rn_strbuf_view(&in->metadata));
  move_values(in->fetches, in->fetch_count, out->fetches);
  return RN_OK;
}
static void clear_run_step(rn_record_t* record) {
  clear_feeds(record->run_step.feeds, record->run_step.feed_count);
  clear_values(record->run_step.fetches, record->run_step.fetch_count);
  rn_strbuf_clear(&record->run_step.metadata);
}
KIND(run_step, master, settle_run_step, answer_run_step, clear_run_step)

CALLS_MASTER(close_session, close_session)
static rn_status_t ask_close_session(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena) {
  return rn_arena_str(arena, ((const rn_close_session_t*)from)->session,
                      &to->close_session.session);
}
KIND(close_session, master, NULL, no_answer, nothing_to_clear)

static size_t bytes_of(const rn_tensor_t* values, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i)
    if (rn_tensor_is_set(&values[i])) bytes += rn_tensor_bytes(&values[i]);
  return bytes;
}

static size_t bytes_of_feeds(const rn_named_tensor_t* feeds, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += bytes_of(&feeds[i].value, 1);
  return bytes;
}

size_t rn_record_bytes(const rn_record_kind_t* kind, const rn_record_t* record, bool is_answer) {
  if (kind == &rn_record_run_graph)
    return is_answer ? bytes_of(record->run_graph.fetches, record->run_graph.fetch_count)
                     : bytes_of_feeds(record->run_graph.feeds, record->run_graph.feed_count) +
                           bytes_of_feeds(record->run_graph.sent, record->run_graph.sent_count);
  if (kind == &rn_record_run_step)
    return is_answer ? bytes_of(record->run_step.fetches, record->run_step.fetch_count)
                     : bytes_of_feeds(record->run_step.feeds, record->run_step.feed_count);
  if (kind == &rn_record_recv_tensor && is_answer) return bytes_of(&record->recv_tensor.value, 1);
  return 0;
}
