// The service for eager clients: see service.h.
#include "dist/eager/service.h"

#include "base/container.h"
#include "base/map.h"
#include "dist/eager/context.h"
#include "dist/rpc/codec.h"
#include "proto/eager_service.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define PREFIX "/tensorflow.eager.EagerService/"
#define MAX_CONTEXTS 1000
#define MAX_CALLS 1000       // with a thread
#define MAX_WAITING 1000000  // messages per stream
#define MAX_WAITING_BYTES ((size_t)4 << 30)
#define KEEP_ALIVE_NS INT64_C(600000000000)
#define MAX_KEEP_ALIVE_S (INT64_C(365) * 86400)
#define RETRY_NS INT64_C(1000000000)

struct rn_eager_service_t {
  rn_eager_service_options_t options;
  rn_threads_t* threads;
  rn_timer_t timer;
  rn_job_t collection;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  rn_map_t contexts;   // by id; each retains its context
  size_t alive;        // contexts that are not freed yet
  int calls;           // under way
  bool is_collecting;  // the job is running
  bool is_stopped;
};

typedef struct service_entry_t {
  uint64_t id;
  rn_eager_context_t* context;
} service_entry_t;

static rn_str_t key_of(const uint64_t* id) { return rn_str_n((const char*)id, sizeof *id); }

// --- Contexts

// The context that field |number| of |message| names, retained.
static rn_status_t find(rn_eager_service_t* service, const rn_message_t* message, uint32_t number,
                        rn_eager_context_t** out) {
  uint64_t id = rn_field_value(rn_message_view(message), number);
  rn_mutex_lock(&service->mutex);
  const service_entry_t* entry = rn_map_get(&service->contexts, key_of(&id));
  *out = entry ? entry->context : NULL;
  if (*out) rn_eager_context_retain(*out);
  rn_mutex_unlock(&service->mutex);
  if (*out) return RN_OK;
  return rn_aborted(
      "Unable to find a context_id matching the specified one (%llu). Perhaps the worker was "
      "restarted, or the context was GC'd?",
      (unsigned long long)id);
}

static rn_eager_context_t* take_locked(rn_eager_service_t* service, uint64_t id) {
  service_entry_t* entry = rn_map_remove(&service->contexts, key_of(&id));
  rn_eager_context_t* context = entry ? entry->context : NULL;
  if (entry) RN_FREE(service->options.allocator, entry);
  return context;
}

static void end_context(rn_eager_context_t* context) {
  if (!context) return;
  rn_eager_context_close(context);
  rn_eager_context_release(context);
}

// Removes and returns the first context that has expired by |now|, or any if that is INT64_MAX;
// else |*out_next| is when to check again.
static rn_eager_context_t* take_expired(rn_eager_service_t* service, int64_t now,
                                        int64_t* out_next) {
  rn_eager_context_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* item;
  *out_next = INT64_MAX;
  rn_mutex_lock(&service->mutex);
  while (!found && (item = rn_map_next(&service->contexts, &position))) {
    const service_entry_t* entry = item->value;
    if (!rn_eager_context_is_idle(entry->context) && now != INT64_MAX)
      rn_eager_context_touch(entry->context);
    int64_t at = rn_eager_context_expires_ns(entry->context);
    if (at <= now) found = entry->context;
    if (at < *out_next) *out_next = at;
  }
  if (found) take_locked(service, rn_eager_context_id(found));
  rn_mutex_unlock(&service->mutex);
  return found;
}

static int64_t now_of(const rn_eager_service_t* service) {
  return rn_loop_now(service->options.loop);
}

static void collect(rn_job_t* job) {
  rn_eager_service_t* service = RN_CONTAINER_OF(job, rn_eager_service_t, collection);
  rn_eager_context_t* context;
  int64_t next;
  while ((context = take_expired(service, now_of(service), &next))) {
    rn_log(service->options.env, RN_LOG_INFO, "closed unused context %llu of an eager client",
           (unsigned long long)rn_eager_context_id(context));
    end_context(context);
  }
  rn_mutex_lock(&service->mutex);
  service->is_collecting = false;
  if (next != INT64_MAX && !service->is_stopped)
    rn_status_free(rn_loop_set_timer(service->options.loop, &service->timer, next));
  rn_cond_broadcast(&service->changed);
  rn_mutex_unlock(&service->mutex);
}

static void on_timer(rn_timer_t* timer) {
  rn_eager_service_t* service = RN_CONTAINER_OF(timer, rn_eager_service_t, timer);
  rn_mutex_lock(&service->mutex);
  bool starts = !service->is_collecting && !service->is_stopped;
  if (starts) service->is_collecting = true;
  rn_mutex_unlock(&service->mutex);
  if (!starts || rn_threads_run(service->threads, &service->collection)) return;
  rn_mutex_lock(&service->mutex);
  service->is_collecting = false;
  // Cannot fail: it was set before.
  rn_status_free(rn_loop_set_timer(service->options.loop, timer, now_of(service) + RETRY_NS));
  rn_mutex_unlock(&service->mutex);
}

static void on_freed(void* self) {
  rn_eager_service_t* service = self;
  rn_mutex_lock(&service->mutex);
  service->alive--;
  rn_cond_broadcast(&service->changed);
  rn_mutex_unlock(&service->mutex);
}

static int64_t keep_alive_of(rn_str_t request) {
  int64_t seconds =
      (int64_t)rn_field_value(request, rn_pb_eager_CreateContextRequest_keep_alive_secs_field);
  if (seconds <= 0) return KEEP_ALIVE_NS;
  return (seconds < MAX_KEEP_ALIVE_S ? seconds : MAX_KEEP_ALIVE_S) * 1000000000;
}

// Stores |context| under its id; an earlier one is returned.
static rn_status_t enter(rn_eager_service_t* service, rn_eager_context_t* context,
                         rn_eager_context_t** out_old) {
  service_entry_t* entry = NULL;
  *out_old = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(service->options.allocator, &entry));
  *entry = (service_entry_t){rn_eager_context_id(context), context};
  rn_mutex_lock(&service->mutex);
  rn_status_t status = service->is_stopped ? rn_unavailable("The server is closing") : RN_OK;
  if (rn_ok(status)) {
    *out_old = take_locked(service, entry->id);
    status = rn_map_put(&service->contexts, key_of(&entry->id), entry);
  }
  int64_t at = rn_eager_context_expires_ns(context);
  if (rn_ok(status) && !service->is_collecting &&
      (!rn_loop_has_timer(service->options.loop, &service->timer) || at < service->timer.at_ns))
    status = rn_loop_set_timer(service->options.loop, &service->timer, at);
  rn_mutex_unlock(&service->mutex);
  if (!rn_ok(status)) RN_FREE(service->options.allocator, entry);
  return status;
}

static rn_status_t admit(rn_eager_service_t* service) {
  rn_mutex_lock(&service->mutex);
  bool is_room = service->alive < (size_t)MAX_CONTEXTS;
  if (is_room) service->alive++;
  rn_mutex_unlock(&service->mutex);
  if (is_room) return RN_OK;
  return rn_resource_exhausted("%.*s has %d eager contexts, the maximum",
                               RN_STR_ARGS(service->options.task), MAX_CONTEXTS);
}

static void put_devices(rn_eager_service_t* service, uint32_t number, rn_encoder_t* out) {
  rn_local_worker_t* worker = service->options.worker;
  for (int i = 0; i < rn_local_worker_device_count(worker); ++i) {
    const rn_device_t* device = rn_local_worker_device(worker, i);
    rn_device_info_t info = rn_device_info(device);
    bool is_listed = device->is_host || device->is_preferred;  // contexts have no others
    if (is_listed) rn_encode_devices(out, number, &info, 1);
  }
}

// The devices of the cluster as a request lists them, in |arena|.
static rn_status_t read_devices(rn_str_t request, uint32_t number, rn_arena_t* arena,
                                rn_device_info_t** out, size_t* out_count) {
  rn_in_t in = {.bytes = request, .arena = arena};
  *out = NULL;
  *out_count = 0;
  return rn_decode_devices(&in, number, out, out_count);
}

static rn_status_t create(rn_eager_service_t* service, rn_str_t request, rn_arena_t* arena,
                          rn_encoder_t* out) {
  const rn_eager_service_options_t* own = &service->options;
  rn_eager_context_t *context = NULL, *old = NULL;
  rn_device_info_t* devices = NULL;
  size_t device_count = 0;
  int64_t next;
  RN_RETURN_IF_ERROR(read_devices(request,
                                  rn_pb_eager_CreateContextRequest_cluster_device_attributes_field,
                                  arena, &devices, &device_count));
  if (rn_field_value(request, rn_pb_eager_CreateContextRequest_clear_existing_contexts_field))
    while ((old = take_expired(service, INT64_MAX, &next))) end_context(old);
  rn_eager_context_options_t options = {
      .env = own->env,
      .allocator = own->allocator,
      .peers = {.env = rn_loop_env(own->loop),
                .allocator = own->allocator,
                .loop = own->loop,
                .tls = own->tls,
                .lease_ns = own->lease_ns,
                .borrows = own->borrows,
                .may_reach = own->may_reach,
                .knows = own->knows,
                .tokens = own->tokens,
                .may_self = own->may_self},
      .worker = own->worker,
      .threads = service->threads,
      .task = own->task,
      .cpu_devices = own->cpu_devices,
      .gpu = &own->gpu,
      .id = rn_field_value(request, rn_pb_eager_CreateContextRequest_context_id_field),
      .view = rn_field_value(request, rn_pb_eager_CreateContextRequest_context_view_id_field),
      .server_def = rn_field_bytes(request, rn_pb_eager_CreateContextRequest_server_def_field),
      .devices = devices,
      .device_count = device_count,
      .keep_alive_ns = keep_alive_of(request),
      .freed = on_freed,
      .freed_self = service};
  RN_RETURN_IF_ERROR(admit(service));
  // A repeated request, by a client that lost the response, makes a new context.
  rn_mutex_lock(&service->mutex);
  old = take_locked(service, options.id);
  rn_mutex_unlock(&service->mutex);
  end_context(old);
  rn_status_t status = rn_eager_context_create(&options, &context);
  if (!rn_ok(status)) {
    on_freed(service);
    return status;
  }
  status = enter(service, context, &old);
  end_context(old);
  if (!rn_ok(status)) end_context(context);
  if (rn_ok(status))
    put_devices(service, rn_pb_eager_CreateContextResponse_device_attributes_field, out);
  return status;
}

static rn_status_t create_context(rn_eager_service_t* service, const rn_message_t* message,
                                  rn_encoder_t* out) {
  rn_arena_t arena;
  rn_arena_init(&arena, service->options.allocator);
  rn_status_t status = create(service, rn_message_view(message), &arena, out);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t update_context(rn_eager_service_t* service, const rn_message_t* message,
                                  rn_encoder_t* out) {
  rn_str_t request = rn_message_view(message);
  rn_eager_context_t* context = NULL;
  (void)out;
  RN_RETURN_IF_ERROR(
      find(service, message, rn_pb_eager_UpdateContextRequest_context_id_field, &context));
  rn_arena_t arena;
  rn_device_info_t* devices = NULL;
  size_t device_count = 0;
  rn_arena_init(&arena, service->options.allocator);
  rn_eager_context_touch(context);
  rn_status_t status =
      read_devices(request, rn_pb_eager_UpdateContextRequest_cluster_device_attributes_field,
                   &arena, &devices, &device_count);
  if (rn_ok(status))
    status = rn_eager_context_update(
        context, rn_field_value(request, rn_pb_eager_UpdateContextRequest_context_view_id_field),
        rn_field_bytes(request, rn_pb_eager_UpdateContextRequest_server_def_field), devices,
        device_count);
  rn_arena_clear(&arena);
  rn_eager_context_release(context);
  return status;
}

// A client with an older view of the cluster than the context's cannot close it.
static rn_status_t close_context(rn_eager_service_t* service, const rn_message_t* message,
                                 rn_encoder_t* out) {
  rn_str_t request = rn_message_view(message);
  uint64_t id = rn_field_value(request, rn_pb_eager_CloseContextRequest_context_id_field);
  uint64_t view = rn_field_value(request, rn_pb_eager_CloseContextRequest_context_view_id_field);
  (void)out;
  rn_mutex_lock(&service->mutex);
  const service_entry_t* entry = rn_map_get(&service->contexts, key_of(&id));
  bool may = entry && view >= rn_eager_context_view(entry->context);
  rn_eager_context_t* context = may ? take_locked(service, id) : NULL;
  rn_mutex_unlock(&service->mutex);
  end_context(context);
  return RN_OK;
}

static rn_status_t keep_alive(rn_eager_service_t* service, const rn_message_t* message,
                              rn_encoder_t* out) {
  rn_eager_context_t* context = NULL;
  RN_RETURN_IF_ERROR(
      find(service, message, rn_pb_eager_KeepAliveRequest_context_id_field, &context));
  rn_eager_context_touch(context);
  uint64_t view = rn_eager_context_view(context);
  if (view)
    rn_pb_put_fixed64(&out->head, rn_pb_eager_KeepAliveResponse_context_view_id_field, view);
  rn_eager_context_release(context);
  return RN_OK;
}

// Ops have run when their response is sent, so there is nothing to wait for.
static rn_status_t wait_queue(rn_eager_service_t* service, const rn_message_t* message,
                              rn_encoder_t* out) {
  rn_eager_context_t* context = NULL;
  (void)out;
  RN_RETURN_IF_ERROR(
      find(service, message, rn_pb_eager_WaitQueueDoneRequest_context_id_field, &context));
  rn_eager_context_touch(context);
  rn_eager_context_release(context);
  return RN_OK;
}

static rn_status_t enqueue(rn_eager_service_t* service, const rn_message_t* message,
                           rn_encoder_t* out) {
  rn_eager_context_t* context = NULL;
  RN_RETURN_IF_ERROR(find(service, message, rn_pb_eager_EnqueueRequest_context_id_field, &context));
  rn_status_t status = rn_eager_context_enqueue(context, message, &out->head);
  rn_eager_context_release(context);
  return status;
}

// --- Calls with one question and one answer

typedef rn_status_t eager_service_method_t(rn_eager_service_t* service, const rn_message_t* message,
                                           rn_encoder_t* out);

typedef struct eager_service_handling_t {
  rn_job_t job;
  rn_eager_service_t* service;
  rn_rpc_in_t* call;
  eager_service_method_t* method;  // NULL: a part of a function
  rn_eager_part_t part;
  rn_eager_context_t* context;  // Retained, of a part
} eager_service_handling_t;

// Counts a call in; false if there are too many.
static bool begin_call(rn_eager_service_t* service) {
  rn_mutex_lock(&service->mutex);
  bool may = service->calls < MAX_CALLS && !service->is_stopped;
  if (may) service->calls++;
  rn_mutex_unlock(&service->mutex);
  return may;
}

static void end_call(rn_eager_service_t* service) {
  rn_mutex_lock(&service->mutex);
  service->calls--;
  rn_cond_broadcast(&service->changed);
  rn_mutex_unlock(&service->mutex);
}

static void reply(rn_rpc_in_t* call, rn_status_t status, rn_str_t response) {
  rn_message_t message;
  rn_message_init(&message, call->stream.message.allocator);
  if (rn_ok(status) && response.size) status = rn_message_add(&message, response);
  rn_rpc_reply(call, status, &message);
}

static rn_status_t no_thread(void) {
  return rn_resource_exhausted("Cannot start a thread for the call");
}

static void run_unary(rn_job_t* job) {
  eager_service_handling_t* h = RN_CONTAINER_OF(job, eager_service_handling_t, job);
  rn_eager_service_t* service = h->service;
  rn_rpc_in_t* call = h->call;
  rn_message_t response;
  rn_encoder_t encoder;
  rn_message_init(&response, service->options.allocator);
  rn_encoder_open(&encoder, &response);
  rn_status_t status = h->method(service, &call->stream.message, &encoder);
  rn_status_t encoded = rn_encoder_close(&encoder);
  if (rn_ok(status))
    status = encoded;
  else
    rn_status_free(encoded);
  RN_FREE(service->options.allocator, h);
  rn_rpc_reply(call, status, &response);
  end_call(service);
}

static void on_part(rn_eager_part_t* part, rn_status_t status, rn_str_t response) {
  eager_service_handling_t* h = RN_CONTAINER_OF(part, eager_service_handling_t, part);
  rn_eager_service_t* service = h->service;
  rn_eager_context_t* context = h->context;
  rn_rpc_in_t* call = h->call;
  RN_FREE(service->options.allocator, h);
  reply(call, status, response);
  rn_eager_context_release(context);
  end_call(service);
}

static void run_part(rn_job_t* job) {
  eager_service_handling_t* h = RN_CONTAINER_OF(job, eager_service_handling_t, job);
  h->part = (rn_eager_part_t){.message = &h->call->stream.message, .done = on_part};
  rn_status_t status = find(h->service, &h->call->stream.message,
                            rn_pb_eager_RunComponentFunctionRequest_context_id_field, &h->context);
  if (rn_ok(status))
    rn_eager_context_run_part(h->context, &h->part);
  else
    on_part(&h->part, status, RN_STR(""));
}

// --- Streams: one thread takes the messages of each in turn. The first that fails ends it.

typedef struct eager_stream_t {
  rn_job_t job;
  rn_eager_service_t* service;
  rn_rpc_in_t* call;
  _Atomic int refs;  // of the thread and the connection
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t came;
  RN_VEC(rn_message_t) queue;
  size_t first, bytes;       // next index in the queue; bytes of all waiting messages
  bool is_ended, is_gone;    // the client has sent all; the connection broke
  bool is_over, is_flooded;  // no more messages are accepted; too many wait
} eager_stream_t;

static void stream_release(eager_stream_t* stream) {
  if (--stream->refs > 0) return;
  rn_eager_service_t* service = stream->service;
  for (size_t i = stream->first; i < stream->queue.count; ++i)
    rn_message_clear(&stream->queue.items[i]);
  rn_vec_free(&stream->queue, service->options.allocator);
  rn_cond_destroy(&stream->came);
  rn_mutex_destroy(&stream->mutex);
  RN_FREE(service->options.allocator, stream);
}

static void on_message(rn_rpc_in_t* call, rn_message_t* message) {
  eager_stream_t* stream = call->owner;
  rn_mutex_lock(&stream->mutex);
  if (!message) {
    stream->is_ended = true;
  } else if (!stream->is_over && !stream->is_flooded) {
    size_t size = message->size;
    rn_status_t status =
        stream->queue.count - stream->first < MAX_WAITING && stream->bytes < MAX_WAITING_BYTES
            ? rn_vec_push(&stream->queue, stream->service->options.allocator, *message)
            : rn_resource_exhausted("Too many messages are waiting");
    if (rn_ok(status)) {
      rn_message_init(message, message->allocator);
      stream->bytes += size;
    }
    stream->is_flooded = !rn_ok(status);
    rn_status_free(status);
  }
  rn_cond_signal(&stream->came);
  rn_mutex_unlock(&stream->mutex);
  if (message) rn_message_clear(message);
}

static void on_gone(rn_rpc_in_t* call) {
  eager_stream_t* stream = call->owner;
  rn_mutex_lock(&stream->mutex);
  stream->is_gone = true;
  rn_cond_signal(&stream->came);
  rn_mutex_unlock(&stream->mutex);
  stream_release(stream);
}

// The next message; false if none will come.
static bool next_message(eager_stream_t* stream, rn_message_t* out) {
  rn_mutex_lock(&stream->mutex);
  while (stream->first == stream->queue.count && !stream->is_ended && !stream->is_gone &&
         !stream->is_flooded)
    rn_cond_wait(&stream->came, &stream->mutex);
  bool has = stream->first < stream->queue.count && !stream->is_gone;
  if (has) {
    *out = stream->queue.items[stream->first++];
    stream->bytes -= out->size;
    if (stream->first == stream->queue.count) stream->first = stream->queue.count = 0;
  }
  rn_mutex_unlock(&stream->mutex);
  return has;
}

static rn_status_t answer(eager_stream_t* stream, const rn_message_t* message) {
  rn_message_t response;
  rn_encoder_t encoder;
  rn_message_init(&response, stream->service->options.allocator);
  rn_encoder_open(&encoder, &response);
  rn_status_t status = enqueue(stream->service, message, &encoder);
  rn_status_t encoded = rn_encoder_close(&encoder);
  if (rn_ok(status))
    status = encoded;
  else
    rn_status_free(encoded);
  if (rn_ok(status)) rn_rpc_send(stream->call, &response);
  rn_message_clear(&response);
  return status;
}

static void run_stream(rn_job_t* job) {
  eager_stream_t* stream = RN_CONTAINER_OF(job, eager_stream_t, job);
  rn_eager_service_t* service = stream->service;
  rn_rpc_in_t* call = stream->call;
  rn_message_t message;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && next_message(stream, &message)) {
    status = answer(stream, &message);
    rn_message_clear(&message);
  }
  rn_mutex_lock(&stream->mutex);
  stream->is_over = true;
  if (rn_ok(status) && stream->is_flooded)
    status = rn_resource_exhausted("More than %zu bytes or %d messages are waiting",
                                   MAX_WAITING_BYTES, MAX_WAITING);
  rn_mutex_unlock(&stream->mutex);
  stream_release(stream);
  reply(call, status, RN_STR(""));
  end_call(service);
}

static rn_status_t start_stream(rn_eager_service_t* service, rn_rpc_in_t* call) {
  eager_stream_t* stream = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(service->options.allocator, &stream));
  stream->service = service;
  stream->call = call;
  stream->refs = 2;
  stream->job.run = run_stream;
  rn_mutex_init(&stream->mutex);
  rn_cond_init(&stream->came);
  call->owner = stream;
  call->message = on_message;
  call->gone = on_gone;
  if (rn_threads_run(service->threads, &stream->job)) return RN_OK;
  call->message = NULL;
  call->gone = NULL;
  stream->refs = 1;
  stream_release(stream);
  return no_thread();
}

// --- The door

static const struct {
  const char* name;
  eager_service_method_t* method;
} methods[] = {{"Enqueue", enqueue},
               {"CreateContext", create_context},
               {"UpdateContext", update_context},
               {"CloseContext", close_context},
               {"KeepAlive", keep_alive},
               {"WaitQueueDone", wait_queue},
               {"RunComponentFunction", NULL}};

static rn_str_t method_of(rn_str_t path) {
  const size_t skip = sizeof PREFIX - 1;
  return rn_eager_service_has(path) ? rn_str_n(path.data + skip, path.size - skip) : RN_STR("");
}

bool rn_eager_service_has(rn_str_t path) { return rn_str_starts_with(path, RN_STR(PREFIX)); }

bool rn_eager_service_streams(rn_str_t path) { return rn_str_is(path, PREFIX "StreamingEnqueue"); }

static rn_status_t start_unary(rn_eager_service_t* service, rn_rpc_in_t* call) {
  rn_str_t name = method_of(rn_rpc_path(call));
  size_t i = 0, count = sizeof methods / sizeof *methods;
  while (i < count && !rn_str_is(name, methods[i].name)) ++i;
  if (i == count) return rn_status_make(RN_CODE_UNIMPLEMENTED, "%s", "");
  eager_service_handling_t* h = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(service->options.allocator, &h));
  h->service = service;
  h->call = call;
  h->method = methods[i].method;
  h->job.run = h->method ? run_unary : run_part;
  if (rn_threads_run(service->threads, &h->job)) return RN_OK;
  RN_FREE(service->options.allocator, h);
  return no_thread();
}

void rn_eager_service_handle(rn_eager_service_t* service, rn_rpc_in_t* call) {
  if (!begin_call(service)) {
    reply(call, rn_unavailable("Too many eager calls are running, or the task is shutting down"),
          RN_STR(""));
    return;
  }
  rn_status_t status = rn_eager_service_streams(rn_rpc_path(call)) ? start_stream(service, call)
                                                                   : start_unary(service, call);
  if (rn_ok(status)) return;
  reply(call, status, RN_STR(""));
  end_call(service);
}

size_t rn_eager_service_contexts(rn_eager_service_t* service) {
  rn_mutex_lock(&service->mutex);
  size_t count = service->contexts.count;
  rn_mutex_unlock(&service->mutex);
  return count;
}

rn_status_t rn_eager_service_create(const rn_eager_service_options_t* options,
                                    rn_eager_service_t** out) {
  *out = NULL;
  rn_eager_service_t* service = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &service));
  service->options = *options;
  service->timer.fn = on_timer;
  service->collection.run = collect;
  rn_mutex_init(&service->mutex);
  rn_cond_init(&service->changed);
  rn_map_init(&service->contexts, options->allocator);
  rn_status_t status =
      rn_threads_create(rn_loop_env(options->loop), options->allocator, &service->threads);
  if (!rn_ok(status)) {
    rn_eager_service_destroy(service);
    return status;
  }
  *out = service;
  return RN_OK;
}

void rn_eager_service_stop(rn_eager_service_t* service) {
  rn_eager_context_t* context;
  int64_t next;
  if (!service) return;
  rn_mutex_lock(&service->mutex);
  service->is_stopped = true;
  rn_mutex_unlock(&service->mutex);
  rn_loop_clear_timer(service->options.loop, &service->timer);
  while ((context = take_expired(service, INT64_MAX, &next))) end_context(context);
}

void rn_eager_service_destroy(rn_eager_service_t* service) {
  if (!service) return;
  rn_eager_service_stop(service);
  rn_mutex_lock(&service->mutex);
  while (service->calls || service->alive || service->is_collecting)
    rn_cond_wait(&service->changed, &service->mutex);
  rn_mutex_unlock(&service->mutex);
  rn_threads_destroy(service->threads);
  rn_map_clear(&service->contexts);
  rn_cond_destroy(&service->changed);
  rn_mutex_destroy(&service->mutex);
  RN_FREE(service->options.allocator, service);
}
