// The contexts of eager clients on this task: by id, until they are closed or expire; and the
// methods that concern one of them.
#include "base/container.h"
#include "dist/eager/service_internal.h"
#include "proto/eager_service.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define MAX_CONTEXTS 1000
#define KEEP_ALIVE_NS INT64_C(600000000000)
#define MAX_KEEP_ALIVE_S (INT64_C(365) * 86400)
#define RETRY_NS INT64_C(1000000000)
#define IDLE_NS INT64_C(10000000)  // between looks whether a context is still in use

typedef struct service_entry_t {
  uint64_t id;
  rn_eager_context_t* context;
  bool is_home;  // a client in this process has it, and ends it
} service_entry_t;

static rn_str_t key_of(const uint64_t* id) { return rn_str_n((const char*)id, sizeof *id); }

rn_status_t rn_eager_service_find(rn_eager_service_t* service, const rn_message_t* message,
                                  uint32_t number, rn_eager_context_t** out) {
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

void rn_eager_service_end_context(rn_eager_context_t* context) {
  if (!context) return;
  rn_eager_context_close(context);
  rn_eager_context_release(context);
}

rn_eager_context_t* rn_eager_service_take_expired(rn_eager_service_t* service, int64_t now,
                                                  int64_t* out_next) {
  rn_eager_context_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* item;
  *out_next = INT64_MAX;
  rn_mutex_lock(&service->mutex);
  while (!found && (item = rn_map_next(&service->contexts, &position))) {
    const service_entry_t* entry = item->value;
    if (entry->is_home) continue;
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

void rn_eager_service_collect(rn_job_t* job) {
  rn_eager_service_t* service = RN_CONTAINER_OF(job, rn_eager_service_t, collection);
  rn_eager_context_t* context;
  int64_t next;
  while ((context = rn_eager_service_take_expired(service, now_of(service), &next))) {
    rn_log(service->options.env, RN_LOG_INFO, "closed unused context %llu of an eager client",
           (unsigned long long)rn_eager_context_id(context));
    rn_eager_service_end_context(context);
  }
  rn_mutex_lock(&service->mutex);
  service->is_collecting = false;
  if (next != INT64_MAX && !service->is_stopped)
    rn_status_free(rn_loop_set_timer(service->options.loop, &service->timer, next));
  rn_cond_broadcast(&service->changed);
  rn_mutex_unlock(&service->mutex);
}

void rn_eager_service_on_timer(rn_timer_t* timer) {
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
  *entry = (service_entry_t){.id = rn_eager_context_id(context), .context = context};
  rn_mutex_lock(&service->mutex);
  rn_status_t status = service->is_stopped ? rn_unavailable("The server is closing") : RN_OK;
  if (rn_ok(status)) {
    *out_old = take_locked(service, entry->id);
    status = rn_map_put(&service->contexts, key_of(&entry->id), entry);
  }
  if (!rn_ok(status)) RN_FREE(service->options.allocator, entry);
  int64_t at = rn_eager_context_expires_ns(context);
  if (rn_ok(status) && !service->is_collecting &&
      (!rn_loop_has_timer(service->options.loop, &service->timer) || at < service->timer.at_ns))
    status = rn_loop_set_timer(service->options.loop, &service->timer, at);
  if (!rn_ok(status)) take_locked(service, rn_eager_context_id(context));
  rn_mutex_unlock(&service->mutex);
  return status;
}

rn_status_t rn_eager_service_adopt(rn_eager_service_t* service, rn_eager_context_t* context) {
  service_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(service->options.allocator, &entry));
  *entry =
      (service_entry_t){.id = rn_eager_context_id(context), .context = context, .is_home = true};
  rn_mutex_lock(&service->mutex);
  rn_status_t status = rn_map_get(&service->contexts, key_of(&entry->id))
                           ? rn_already_exists("The context exists already")
                           : rn_map_put(&service->contexts, key_of(&entry->id), entry);
  rn_mutex_unlock(&service->mutex);
  if (rn_ok(status))
    rn_eager_context_retain(context);
  else
    RN_FREE(service->options.allocator, entry);
  return status;
}

void rn_eager_service_dismiss(rn_eager_service_t* service, rn_eager_context_t* context) {
  rn_mutex_lock(&service->mutex);
  const uint64_t id = rn_eager_context_id(context);
  rn_eager_context_t* found = take_locked(service, id);
  rn_mutex_unlock(&service->mutex);
  rn_eager_context_close(context);
  rn_eager_context_release(found);
  rn_mutex_lock(&service->mutex);
  // Calls of this process hold it, too, and send no notice when they release it.
  while (!rn_eager_context_is_idle(context))
    rn_cond_wait_until(&service->changed, &service->mutex, now_of(service) + IDLE_NS);
  rn_mutex_unlock(&service->mutex);
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
    while ((old = rn_eager_service_take_expired(service, INT64_MAX, &next)))
      rn_eager_service_end_context(old);
  rn_eager_context_options_t options = {
      .env = own->env,
      .allocator = own->allocator,
      .peers = {.env = rn_loop_env(own->loop),
                .allocator = own->allocator,
                .loop = own->loop,
                .tls = own->tls,
                .lease_ns = own->lease_ns,
                .borrows = own->borrows,
                .wire = own->wire,
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
  const service_entry_t* known = rn_map_get(&service->contexts, key_of(&options.id));
  bool is_taken = known && known->is_home;
  old = is_taken ? NULL : take_locked(service, options.id);
  rn_mutex_unlock(&service->mutex);
  rn_eager_service_end_context(old);
  rn_status_t status = is_taken ? rn_invalid_argument("This task has context %llu of its own",
                                                      (unsigned long long)options.id)
                                : rn_eager_context_create(&options, &context);
  if (!rn_ok(status)) {
    on_freed(service);
    return status;
  }
  status = enter(service, context, &old);
  rn_eager_service_end_context(old);
  if (!rn_ok(status)) rn_eager_service_end_context(context);
  if (rn_ok(status))
    put_devices(service, rn_pb_eager_CreateContextResponse_device_attributes_field, out);
  return status;
}

rn_status_t rn_eager_service_create_context(rn_eager_service_t* service,
                                            const rn_message_t* message, rn_encoder_t* out) {
  rn_arena_t arena;
  rn_arena_init(&arena, service->options.allocator);
  rn_status_t status = create(service, rn_message_view(message), &arena, out);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_eager_service_update_context(rn_eager_service_t* service,
                                            const rn_message_t* message, rn_encoder_t* out) {
  rn_str_t request = rn_message_view(message);
  rn_eager_context_t* context = NULL;
  (void)out;
  RN_RETURN_IF_ERROR(rn_eager_service_find(
      service, message, rn_pb_eager_UpdateContextRequest_context_id_field, &context));
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
rn_status_t rn_eager_service_close_context(rn_eager_service_t* service, const rn_message_t* message,
                                           rn_encoder_t* out) {
  rn_str_t request = rn_message_view(message);
  uint64_t id = rn_field_value(request, rn_pb_eager_CloseContextRequest_context_id_field);
  uint64_t view = rn_field_value(request, rn_pb_eager_CloseContextRequest_context_view_id_field);
  (void)out;
  rn_mutex_lock(&service->mutex);
  const service_entry_t* entry = rn_map_get(&service->contexts, key_of(&id));
  bool may = entry && !entry->is_home && view >= rn_eager_context_view(entry->context);
  rn_eager_context_t* context = may ? take_locked(service, id) : NULL;
  rn_mutex_unlock(&service->mutex);
  rn_eager_service_end_context(context);
  return RN_OK;
}

rn_status_t rn_eager_service_keep_alive(rn_eager_service_t* service, const rn_message_t* message,
                                        rn_encoder_t* out) {
  rn_eager_context_t* context = NULL;
  RN_RETURN_IF_ERROR(rn_eager_service_find(
      service, message, rn_pb_eager_KeepAliveRequest_context_id_field, &context));
  rn_eager_context_touch(context);
  uint64_t view = rn_eager_context_view(context);
  if (view)
    rn_pb_put_fixed64(&out->head, rn_pb_eager_KeepAliveResponse_context_view_id_field, view);
  rn_eager_context_release(context);
  return RN_OK;
}

// Ops have run when their response is sent, so there is nothing to wait for.
rn_status_t rn_eager_service_wait_queue(rn_eager_service_t* service, const rn_message_t* message,
                                        rn_encoder_t* out) {
  rn_eager_context_t* context = NULL;
  (void)out;
  RN_RETURN_IF_ERROR(rn_eager_service_find(
      service, message, rn_pb_eager_WaitQueueDoneRequest_context_id_field, &context));
  rn_eager_context_touch(context);
  rn_eager_context_release(context);
  return RN_OK;
}

rn_status_t rn_eager_service_enqueue(rn_eager_service_t* service, const rn_message_t* message,
                                     rn_encoder_t* out) {
  rn_eager_context_t* context = NULL;
  RN_RETURN_IF_ERROR(rn_eager_service_find(service, message,
                                           rn_pb_eager_EnqueueRequest_context_id_field, &context));
  rn_status_t status = rn_eager_context_enqueue(context, message, &out->head);
  rn_eager_context_release(context);
  rn_mutex_lock(&service->mutex);
  rn_cond_broadcast(&service->changed);  // see rn_eager_service_dismiss
  rn_mutex_unlock(&service->mutex);
  return status;
}
