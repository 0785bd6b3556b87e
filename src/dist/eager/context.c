// Contexts of eager clients: see context.h.
#include "dist/eager/internal.h"

#include "base/container.h"
#include "base/machine.h"
#include "dist/eager/span.h"
#include "wire/decode.h"
#include "wire/writer.h"

static rn_str_t key_of(const int64_t* key) { return rn_str_n((const char*)key, 2 * sizeof *key); }

static void free_text(rn_allocator_t allocator, char* text) {
  if (text) rn_free(allocator, text, strlen(text) + 1);
}

static void free_ready(rn_eager_context_t* context, rn_eager_ready_t* ready) {
  rn_functions_t* functions = rn_session_functions(rn_eager_session(context->eager));
  rn_function_forget(functions, ready->instance);
  free_text(context->allocator, (char*)ready->key.data);
  RN_FREE(context->allocator, ready);
}

static void free_value(rn_eager_context_t* context, rn_eager_value_t* value) {
  if (!value) return;
  rn_eager_handle_release(value->handle);
  rn_eager_packed_release(value->packed);
  RN_FREE(context->allocator, value);
}

static void free_values(rn_eager_context_t* context) {
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&context->values, &position))) free_value(context, entry->value);
  rn_map_clear(&context->values);
  position = 0;
  while ((entry = rn_map_next(&context->ready, &position))) free_ready(context, entry->value);
  rn_map_clear(&context->ready);
}

// --- Devices of other tasks

static void stand_in_destroy(rn_device_t* device) { (void)device; }
static const rn_device_vtable_t stand_in = {.destroy = stand_in_destroy};

static rn_status_t add_other_locked(rn_eager_context_t* context, const rn_device_info_t* info) {
  rn_str_t name, type;
  rn_device_t* device = NULL;
  if (rn_str_is(rn_eager_task_of(info->name), context->task)) return RN_OK;
  for (size_t i = 0; i < context->others.count && !device; ++i)
    if (rn_str_eq(context->others.items[i]->name, info->name)) device = context->others.items[i];
  if (device) {
    device->incarnation = info->incarnation;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_arena_str(&context->arena, info->name, &name));
  RN_RETURN_IF_ERROR(rn_arena_str(&context->arena, info->type, &type));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&context->arena, &device));
  *device = (rn_device_t){.vtable = &stand_in,
                          .name = name,
                          .type = type.data,
                          .is_host = rn_str_is(type, "CPU"),
                          .memory_limit = info->memory_limit,
                          .incarnation = info->incarnation};
  return rn_vec_push(&context->others, context->allocator, device);
}

static rn_status_t add_others(rn_eager_context_t* context, const rn_device_info_t* infos,
                              size_t count) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&context->mutex);
  for (size_t i = 0; i < count && rn_ok(status); ++i) status = add_other_locked(context, &infos[i]);
  rn_mutex_unlock(&context->mutex);
  rn_spans_drop(context, RN_STR(""), false);
  return status;
}

static void destroy(rn_eager_context_t* context) {
  void (*freed)(void* self) = context->freed;
  void* self = context->freed_self;
  rn_spans_drop(context, RN_STR(""), false);
  rn_map_clear(&context->spans);
  free_values(context);
  if (context->eager && !context->is_home) {
    rn_eager_close(context->eager);
    rn_eager_release(context->eager);
  }
  if (context->rendezvous) {
    rn_steps_drop_owned(context->steps, context, rn_aborted("The context was closed"));
    rn_rendezvous_release(context->rendezvous);
  }
  rn_eager_peers_destroy(context->peers);
  rn_vec_free(&context->others, context->allocator);
  rn_arena_clear(&context->arena);
  free_text(context->allocator, context->task);
  rn_cancel_destroy(&context->stop.cancel);
  rn_mutex_destroy(&context->mutex);
  RN_FREE(context->allocator, context);
  rn_machine_trim();
  if (freed) freed(self);
}

static void on_destroy(rn_job_t* job) { destroy(RN_CONTAINER_OF(job, rn_eager_context_t, job)); }

void rn_eager_context_retain(rn_eager_context_t* context) { context->refs++; }

// A thread of the context's own session must not wait for itself.
void rn_eager_context_release(rn_eager_context_t* context) {
  if (!context || --context->refs > 0) return;
  context->job.run = on_destroy;
  if (!context->threads || !rn_threads_run(context->threads, &context->job))
    on_destroy(&context->job);
}

void rn_eager_context_close(rn_eager_context_t* context) {
  rn_mutex_lock(&context->mutex);
  context->is_closed = true;
  rn_mutex_unlock(&context->mutex);
  rn_cancel(&context->stop.cancel);
  rn_steps_drop_owned(context->steps, context, rn_aborted("The context was closed"));
}

bool rn_eager_context_is_alone(rn_eager_context_t* context) {
  rn_mutex_lock(&context->mutex);
  bool is_alone = context->others.count == 0;
  rn_mutex_unlock(&context->mutex);
  return is_alone;
}

bool rn_eager_context_is_idle(const rn_eager_context_t* context) { return context->refs == 1; }
uint64_t rn_eager_context_id(const rn_eager_context_t* context) { return context->id; }

uint64_t rn_eager_context_view(const rn_eager_context_t* context) {
  rn_mutex_t* mutex = (rn_mutex_t*)&context->mutex;
  rn_mutex_lock(mutex);
  uint64_t view = context->view;
  rn_mutex_unlock(mutex);
  return view;
}

void rn_eager_context_touch(rn_eager_context_t* context) {
  context->used_ns = context->env->now_ns(context->env->self);
}

int64_t rn_eager_context_expires_ns(const rn_eager_context_t* context) {
  return context->used_ns + context->keep_alive_ns;
}

// --- Making one

// The client's name for this task, if given, must be right.
static rn_status_t check_def(const rn_eager_context_t* context, const rn_pb_ServerDef_t* def) {
  rn_device_spec_t own;
  bool is_own = rn_device_spec_parse(rn_str(context->task), &own) &&
                rn_str_eq(own.job, def->job_name) && own.task == def->task_index;
  if (is_own || def->job_name.size == 0) return RN_OK;
  return rn_invalid_argument(
      "The client expects /job:%.*s/replica:0/task:%d here, but this is %s: their clusters "
      "differ",
      RN_STR_ARGS(def->job_name), def->task_index, context->task);
}

static rn_status_t read_def(rn_eager_context_t* context, rn_str_t bytes, rn_arena_t* arena,
                            rn_pb_ServerDef_t** out) {
  RN_RETURN_IF_ERROR(RN_PB_DECODE(ServerDef, bytes, NULL, arena, out));
  RN_RETURN_IF_ERROR(check_def(context, *out));
  return rn_eager_peers_add(context->peers, (*out)->cluster);
}

static rn_status_t make_eager(rn_eager_context_t* context,
                              const rn_eager_context_options_t* options) {
  rn_eager_options_t eager = {.policy = 2};  // inputs are copied to the op's device
  rn_session_options_init(&eager.session);
  rn_session_options_t* session = &eager.session;
  session->allow_soft_placement = true;
  session->task = options->task;
  session->cpu_devices = options->cpu_devices;
  session->gpu = *options->gpu;
  session->collectives = rn_local_worker_collectives(options->worker);
  RN_RETURN_IF_ERROR(rn_eager_create(&eager, options->env, options->allocator, &context->eager));
  rn_local_worker_identify(options->worker, rn_eager_session(context->eager));
  return RN_OK;
}

static rn_status_t set_up(rn_eager_context_t* context, const rn_eager_context_options_t* options) {
  rn_arena_t arena;
  rn_pb_ServerDef_t* def = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(context->allocator, options->task, &context->task));
  RN_RETURN_IF_ERROR(rn_eager_peers_create(&options->peers, &context->peers));
  rn_arena_init(&arena, context->allocator);
  rn_status_t status = read_def(context, options->server_def, &arena, &def);
  rn_arena_clear(&arena);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(add_others(context, options->devices, options->device_count));
  if (options->eager) {
    context->is_home = true;
    context->eager = options->eager;
    rn_local_worker_identify(options->worker, rn_eager_session(context->eager));
  } else {
    RN_RETURN_IF_ERROR(make_eager(context, options));
  }
  return rn_steps_adopt(context->steps, (int64_t)context->id, context,
                        rn_eager_peers_table(context->peers), &context->rendezvous);
}

rn_status_t rn_eager_context_create(const rn_eager_context_options_t* options,
                                    rn_eager_context_t** out) {
  *out = NULL;
  rn_eager_context_t* context = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &context));
  context->refs = 1;
  context->allocator = options->allocator;
  context->env = options->env;
  context->threads = options->threads;
  context->id = options->id;
  context->view = options->view;
  context->keep_alive_ns = options->keep_alive_ns;
  context->steps = rn_local_worker_steps(options->worker);
  rn_cancel_init(&context->stop.cancel);
  rn_mutex_init(&context->mutex);
  rn_map_init(&context->values, context->allocator);
  rn_map_init(&context->ready, context->allocator);
  rn_map_init(&context->spans, context->allocator);
  rn_arena_init(&context->arena, context->allocator);
  rn_eager_context_touch(context);
  rn_status_t status = set_up(context, options);
  if (!rn_ok(status)) {
    destroy(context);
    return status;
  }
  context->freed = options->freed;
  context->freed_self = options->freed_self;
  *out = context;
  return RN_OK;
}

rn_status_t rn_eager_context_update(rn_eager_context_t* context, uint64_t view, rn_str_t server_def,
                                    const rn_device_info_t* devices, size_t device_count) {
  rn_arena_t arena;
  rn_pb_ServerDef_t* def = NULL;
  rn_mutex_lock(&context->mutex);
  uint64_t own = context->view;
  if (view == own + 1) context->view = view;
  rn_mutex_unlock(&context->mutex);
  if (view != own + 1)
    return rn_invalid_argument(
        "EagerService:UpdateContext failed. Context id: <%llu> currently at view #%llu but "
        "received update request at view #%llu. View id should only be continuously incremented.",
        (unsigned long long)context->id, (unsigned long long)own, (unsigned long long)view);
  rn_arena_init(&arena, context->allocator);
  rn_status_t status = read_def(context, server_def, &arena, &def);
  rn_arena_clear(&arena);
  return rn_ok(status) ? add_others(context, devices, device_count) : status;
}

// --- Values

rn_status_t rn_eager_value_get(rn_eager_context_t* context, int64_t op, int64_t output,
                               rn_eager_handle_t** out, rn_eager_packed_t** out_packed) {
  const int64_t key[2] = {op, output};
  rn_mutex_lock(&context->mutex);
  const rn_eager_value_t* value = rn_map_get(&context->values, key_of(key));
  *out = value ? value->handle : NULL;
  if (*out) rn_eager_handle_retain(*out);
  bool is_packed = out_packed && value && value->packed;
  if (is_packed) *out_packed = value->packed;
  if (is_packed) value->packed->refs++;
  rn_mutex_unlock(&context->mutex);
  if (*out || is_packed) return RN_OK;
  return rn_invalid_argument(
      "Unable to find the relevant tensor remote_handle: Op ID: %lld, Output num: %lld. One "
      "possible cause is that the tensor was accessed after deallocation in a distributed worker "
      "setup.",
      (long long)op, (long long)output);
}

static rn_status_t put_value(rn_eager_context_t* context, int64_t op, int64_t output,
                             rn_eager_handle_t* handle, rn_eager_packed_t* packed) {
  rn_eager_value_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(context->allocator, &value));
  *value = (rn_eager_value_t){.key = {op, output}, .handle = handle, .packed = packed};
  rn_mutex_lock(&context->mutex);
  rn_eager_value_t* old = rn_map_remove(&context->values, key_of(value->key));
  rn_status_t status = rn_map_put(&context->values, key_of(value->key), value);
  if (rn_ok(status) && handle) rn_eager_handle_retain(handle);
  if (rn_ok(status) && packed) packed->refs++;
  rn_mutex_unlock(&context->mutex);
  if (!rn_ok(status)) RN_FREE(context->allocator, value);
  free_value(context, old);
  return status;
}

rn_status_t rn_eager_value_put(rn_eager_context_t* context, int64_t op, int64_t output,
                               rn_eager_handle_t* handle) {
  return put_value(context, op, output, handle, NULL);
}

rn_status_t rn_eager_value_put_packed(rn_eager_context_t* context, int64_t op,
                                      rn_eager_packed_t* packed) {
  return put_value(context, op, 0, NULL, packed);
}

rn_status_t rn_eager_value_drop(rn_eager_context_t* context, int64_t op, int64_t output) {
  const int64_t key[2] = {op, output};
  rn_mutex_lock(&context->mutex);
  rn_eager_value_t* value = rn_map_remove(&context->values, key_of(key));
  rn_mutex_unlock(&context->mutex);
  if (!value)
    return rn_invalid_argument(
        "Unable to find the relevant tensor remote_handle: Op ID: %lld, Output num: %lld",
        (long long)op, (long long)output);
  free_value(context, value);
  return RN_OK;
}

rn_status_t rn_eager_put_shape(rn_strbuf_t* out, uint32_t number, rn_eager_handle_t* handle) {
  const rn_tensor_t* value = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_tensor(handle, &value));
  size_t shape = rn_pb_begin(out, number);
  for (int i = 0; i < value->rank; ++i) {
    size_t dim = rn_pb_begin(out, rn_pb_TensorShapeProto_dim_field);
    if (rn_tensor_dim(value, i))
      rn_pb_put_uint(out, rn_pb_TensorShapeProto_Dim_size_field, (uint64_t)rn_tensor_dim(value, i));
    rn_pb_end(out, dim);
  }
  rn_pb_end(out, shape);
  return RN_OK;
}

rn_status_t rn_eager_own_device(rn_eager_context_t* context, rn_str_t name, rn_device_t** out) {
  rn_device_spec_t spec, own;
  rn_session_t* session = rn_eager_session(context->eager);
  bool is_name = name.size == 0 || rn_device_spec_parse(name, &spec);
  for (int i = 0; is_name && i < rn_session_device_count(session); ++i) {
    const rn_device_t* device = rn_session_device(session, i);
    if (name.size &&
        !(rn_device_spec_parse(device->name, &own) && rn_device_spec_matches(&spec, &own)))
      continue;
    *out = (rn_device_t*)(uintptr_t)device;
    return RN_OK;
  }
  return rn_invalid_argument("%.*s unknown device.", RN_STR_ARGS(name));
}

static rn_eager_ready_t* take_ready(rn_eager_context_t* context, rn_str_t name) {
  rn_eager_ready_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&context->mutex);
  while (!found && (entry = rn_map_next(&context->ready, &position)))
    if (rn_str_eq(((rn_eager_ready_t*)entry->value)->name, name)) found = entry->value;
  if (found) rn_map_remove(&context->ready, found->key);
  rn_mutex_unlock(&context->mutex);
  return found;
}

void rn_eager_ready_drop(rn_eager_context_t* context, rn_str_t name) {
  rn_eager_ready_t* ready;
  while ((ready = take_ready(context, name))) free_ready(context, ready);
}
