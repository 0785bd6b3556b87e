// Contexts: devices, the library, and per-thread settings.
#include "eager/internal.h"
#include "framework/resource.h"

uint64_t rn_eager_thread_id(void) {
  static _Atomic uint64_t count;
  static _Thread_local uint64_t id;
  if (id == 0) id = atomic_fetch_add(&count, 1) + 1;
  return id;
}

static uint64_t next_context_id(void) {
  static _Atomic uint64_t count;
  return atomic_fetch_add(&count, 1) + 1;
}

// Notes the devices that calls go to without naming one.
static void find_devices(rn_eager_t* eager) {
  eager->cpu = (rn_device_t*)(uintptr_t)rn_session_device(eager->session, 0);
  eager->preferred = NULL;
  eager->has_far = false;
  for (int i = rn_session_device_count(eager->session) - 1; i >= 0; --i) {
    rn_device_t* device = (rn_device_t*)(uintptr_t)rn_session_device(eager->session, i);
    if (device->is_preferred) eager->preferred = device;
    eager->has_far |= !device->is_host;
  }
}

static rn_status_t set_up(rn_eager_t* eager, const rn_eager_options_t* options,
                          const rn_env_t* env) {
  eager->options = options->session;
  rn_strbuf_append(&eager->config, options->session.config);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&eager->config));
  eager->options.config = rn_strbuf_view(&eager->config);
  RN_RETURN_IF_ERROR(rn_graph_create(eager->allocator, &eager->library));
  RN_RETURN_IF_ERROR(
      rn_session_create(eager->library, &eager->options, env, eager->allocator, &eager->session));
  eager->options.task = RN_STR("");  // the caller's
  rn_session_step_init(eager->session, &eager->step);
  find_devices(eager);
  RN_RETURN_IF_ERROR(rn_resources_create(eager->allocator, &eager->step.step_resources));
  rn_step_stats_init(&eager->stats, eager->allocator, eager->step.env);
  return rn_eager_executor_create(eager->allocator, options->is_async, &eager->executor);
}

rn_status_t rn_eager_create(const rn_eager_options_t* options, const rn_env_t* env,
                            rn_allocator_t allocator, rn_eager_t** out) {
  *out = NULL;
  rn_eager_t* eager = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &eager));
  eager->refs = 1;
  eager->allocator = allocator;
  eager->id = next_context_id();
  eager->policy = options->policy;
  eager->is_soft = options->session.allow_soft_placement;
  rn_mutex_init(&eager->mutex);
  rn_cond_init(&eager->pair_added);
  rn_strbuf_init(&eager->executed, allocator);
  rn_strbuf_init(&eager->config, allocator);
  rn_status_t status = set_up(eager, options, env);
  if (!rn_ok(status)) {
    rn_eager_release(eager);
    return status;
  }
  *out = eager;
  return RN_OK;
}

void rn_eager_retain(rn_eager_t* eager) {
  atomic_fetch_add_explicit(&eager->refs, 1, memory_order_relaxed);
}

static void close_cluster(rn_eager_t* eager) {
  if (!eager->has_cluster || eager->is_closed) return;
  eager->is_closed = true;
  eager->cluster.close(eager->cluster.self);
}

static void destroy(rn_eager_t* eager) {
  close_cluster(eager);
  for (size_t i = 0; i < eager->executors.count; ++i)
    rn_eager_executor_release(eager->executors.items[i]);
  rn_vec_free(&eager->executors, eager->allocator);
  for (size_t i = 0; i < eager->threads.count; ++i)
    rn_eager_executor_release(eager->threads.items[i].executor);
  rn_vec_free(&eager->threads, eager->allocator);
  rn_eager_executor_release(eager->executor);
  for (size_t i = 0; i < eager->functions.count; ++i)
    rn_function_release(eager->functions.items[i].function);
  rn_vec_free(&eager->functions, eager->allocator);
  rn_eager_tape_cache_destroy(eager->tape_cache);
  rn_eager_clear_caches(eager);
  if (eager->step.step_resources) rn_resources_destroy(eager->step.step_resources);
  if (eager->stats.allocator.fn) rn_step_stats_clear(&eager->stats);
  rn_session_destroy(eager->session);
  for (size_t i = 0; i < eager->old_names.count; ++i)
    rn_free(eager->allocator, (char*)(uintptr_t)eager->old_names.items[i].data,
            eager->old_names.items[i].size + 1);
  rn_vec_free(&eager->old_names, eager->allocator);
  rn_graph_release(eager->library);
  if (eager->has_cluster) eager->cluster.destroy(eager->cluster.self);
  rn_eager_custom_devices_clear(eager);
  rn_eager_store_clear(eager);
  rn_strbuf_clear(&eager->config);
  rn_mutex_destroy(&eager->mutex);
  RN_FREE(eager->allocator, eager);
}

void rn_eager_release(rn_eager_t* eager) {
  if (!eager || atomic_fetch_sub_explicit(&eager->refs, 1, memory_order_acq_rel) != 1) return;
  destroy(eager);
}

void rn_eager_close(rn_eager_t* eager) {
  rn_status_free(rn_eager_wait(eager));
  close_cluster(eager);
}

// Whether no kernel, handle or tape refers to a device of the session yet.
static bool is_fresh(const rn_eager_t* eager) {
  for (size_t i = 0; i < RN_EAGER_BUCKETS; ++i)
    if (eager->buckets[i]) return false;
  return atomic_load(&eager->refs) == 1 && !eager->retired && !eager->tape_cache;
}

rn_status_t rn_eager_set_task(rn_eager_t* eager, rn_str_t task) {
  for (int i = 0; i < rn_session_device_count(eager->session); ++i) {
    rn_device_t* device = (rn_device_t*)(uintptr_t)rn_session_device(eager->session, i);
    rn_str_t name;
    if (rn_str_starts_with(device->name, task) &&
        rn_str_starts_with(rn_str(device->name.data + task.size), RN_STR("/device:")))
      continue;
    RN_RETURN_IF_ERROR(rn_device_name(eager->allocator, task, device->type, device->index, &name));
    rn_status_t status = rn_vec_push(&eager->old_names, eager->allocator, device->name);
    if (!rn_ok(status)) {
      rn_free(eager->allocator, (char*)(uintptr_t)name.data, name.size + 1);
      return status;
    }
    device->name = name;
  }
  return RN_OK;
}

static rn_status_t set_cpus_locked(rn_eager_t* eager, int count) {
  if (!is_fresh(eager))
    return rn_failed_precondition("The devices of a context are chosen before it runs anything");
  rn_session_options_t options = eager->options;
  rn_session_t* session = NULL;
  options.cpu_devices = count;
  RN_RETURN_IF_ERROR(
      rn_session_create(eager->library, &options, eager->step.env, eager->allocator, &session));
  rn_resources_t* resources = eager->step.step_resources;
  rn_session_destroy(eager->session);
  eager->session = session;
  eager->options = options;
  rn_session_step_init(session, &eager->step);
  eager->step.step_resources = resources;
  find_devices(eager);
  return RN_OK;
}

rn_status_t rn_eager_set_cpus(rn_eager_t* eager, int count) {
  if (count < 1 || count > 1024) return rn_invalid_argument("%d is no number of CPUs", count);
  rn_mutex_lock(&eager->mutex);
  rn_status_t status = set_cpus_locked(eager, count);
  rn_mutex_unlock(&eager->mutex);
  return status;
}

rn_status_t rn_eager_set_cluster(rn_eager_t* eager, const rn_eager_cluster_t* cluster) {
  rn_mutex_lock(&eager->mutex);
  bool is_first = !eager->has_cluster;
  if (is_first) eager->cluster = *cluster;
  eager->has_cluster = true;
  rn_mutex_unlock(&eager->mutex);
  return is_first ? RN_OK : rn_failed_precondition("The context has a cluster already");
}

void* rn_eager_cluster(rn_eager_t* eager) {
  return eager->has_cluster ? eager->cluster.self : NULL;
}
rn_session_t* rn_eager_session(rn_eager_t* eager) { return eager->session; }
rn_graph_t* rn_eager_library(rn_eager_t* eager) { return eager->library; }
uint64_t rn_eager_id(const rn_eager_t* eager) { return eager->id; }
void rn_eager_set_soft_placement(rn_eager_t* eager, bool enable) { eager->is_soft = enable; }

static rn_eager_function_t* find_function_locked(rn_eager_t* eager, rn_str_t name) {
  for (size_t i = 0; i < eager->functions.count; ++i)
    if (rn_str_eq(eager->functions.items[i].function->name, name))
      return &eager->functions.items[i];
  return NULL;
}

static rn_status_t add_function_locked(rn_eager_t* eager, rn_function_t* function) {
  RN_RETURN_IF_ERROR(
      rn_vec_reserve(&eager->functions, eager->allocator, eager->functions.count + 1));
  RN_RETURN_IF_ERROR(rn_graph_add_function(eager->library, function, NULL));
  rn_eager_function_t* entry = find_function_locked(eager, function->name);
  if (entry) {
    entry->count++;
    return RN_OK;
  }
  rn_function_retain(function);
  eager->functions.items[eager->functions.count++] = (rn_eager_function_t){function, 1};
  return RN_OK;
}

rn_status_t rn_eager_add_function(rn_eager_t* eager, rn_function_t* function) {
  rn_mutex_lock(&eager->mutex);
  rn_status_t status = add_function_locked(eager, function);
  rn_mutex_unlock(&eager->mutex);
  return status;
}

rn_status_t rn_eager_remove_function(rn_eager_t* eager, rn_str_t name) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&eager->mutex);
  rn_eager_function_t* entry = find_function_locked(eager, name);
  bool is_last = !entry || --entry->count == 0;
  if (entry && is_last) {
    rn_function_release(entry->function);
    *entry = eager->functions.items[--eager->functions.count];
  }
  if (is_last) status = rn_graph_remove_function(eager->library, name);
  rn_mutex_unlock(&eager->mutex);
  if (is_last && rn_ok(status)) rn_eager_clear_caches(eager);
  if (is_last && eager->has_cluster) eager->cluster.forget(eager->cluster.self, name);
  return status;
}

// --- Per-thread settings

static rn_eager_thread_t* find_thread_locked(rn_eager_t* eager) {
  uint64_t id = rn_eager_thread_id();
  for (size_t i = 0; i < eager->threads.count; ++i)
    if (eager->threads.items[i].id == id) return &eager->threads.items[i];
  return NULL;
}

static rn_status_t make_thread_locked(rn_eager_t* eager, rn_eager_thread_t** out) {
  *out = find_thread_locked(eager);
  if (*out) return RN_OK;
  rn_eager_thread_t thread = {.id = rn_eager_thread_id(), .policy = -1};
  RN_RETURN_IF_ERROR(rn_vec_push(&eager->threads, eager->allocator, thread));
  *out = &eager->threads.items[eager->threads.count - 1];
  eager->has_threads = true;
  return RN_OK;
}

void rn_eager_set_policy(rn_eager_t* eager, int policy) {
  rn_eager_thread_t* thread = NULL;
  rn_mutex_lock(&eager->mutex);
  rn_status_t status = make_thread_locked(eager, &thread);
  if (rn_ok(status)) thread->policy = policy;
  rn_mutex_unlock(&eager->mutex);
  rn_status_free(status);
}

int rn_eager_policy(rn_eager_t* eager) {
  rn_mutex_lock(&eager->mutex);
  const rn_eager_thread_t* thread = find_thread_locked(eager);
  int policy = thread && thread->policy >= 0 ? thread->policy : eager->policy;
  rn_mutex_unlock(&eager->mutex);
  return policy;
}

// Keeps |executor| until the context is freed, so that none of its calls outlives the context.
static rn_status_t keep_executor_locked(rn_eager_t* eager, rn_eager_executor_t* executor) {
  for (size_t i = 0; i < eager->executors.count; ++i)
    if (eager->executors.items[i] == executor) return RN_OK;
  RN_RETURN_IF_ERROR(rn_vec_push(&eager->executors, eager->allocator, executor));
  rn_eager_executor_retain(executor);
  return RN_OK;
}

rn_status_t rn_eager_set_executor(rn_eager_t* eager, rn_eager_executor_t* executor) {
  rn_eager_thread_t* thread = NULL;
  rn_eager_executor_t* old = NULL;
  rn_mutex_lock(&eager->mutex);
  rn_status_t status = make_thread_locked(eager, &thread);
  if (rn_ok(status) && executor) status = keep_executor_locked(eager, executor);
  if (rn_ok(status)) {
    old = thread->executor;
    thread->executor = executor;
    if (executor) rn_eager_executor_retain(executor);
  }
  rn_mutex_unlock(&eager->mutex);
  rn_eager_executor_release(old);
  return status;
}

rn_eager_executor_t* rn_eager_get_executor(rn_eager_t* eager) {
  rn_mutex_lock(&eager->mutex);
  const rn_eager_thread_t* thread = find_thread_locked(eager);
  rn_eager_executor_t* executor = thread && thread->executor ? thread->executor : eager->executor;
  rn_eager_executor_retain(executor);
  rn_mutex_unlock(&eager->mutex);
  return executor;
}

rn_eager_executor_t* rn_eager_async_executor(rn_eager_t* eager) {
  rn_eager_executor_t* executor = eager->executor;
  if (atomic_load_explicit(&eager->has_threads, memory_order_relaxed)) {
    rn_mutex_lock(&eager->mutex);
    const rn_eager_thread_t* thread = find_thread_locked(eager);
    if (thread && thread->executor) executor = thread->executor;
    rn_mutex_unlock(&eager->mutex);
  }
  return rn_eager_executor_is_async(executor) ? executor : NULL;
}

rn_status_t rn_eager_wait(rn_eager_t* eager) {
  rn_status_t status = rn_eager_executor_wait(eager->executor);
  rn_eager_executor_t* executor = eager->executor;
  for (size_t i = 0; executor; ++i) {
    rn_mutex_lock(&eager->mutex);
    executor = i < eager->executors.count ? eager->executors.items[i] : NULL;
    rn_mutex_unlock(&eager->mutex);
    if (executor) status = rn_status_join(status, rn_eager_executor_wait(executor));
  }
  return status;
}

// --- Steps and statistics

void rn_eager_start_step(rn_eager_t* eager) {
  rn_mutex_lock(&eager->mutex);
  eager->steps++;
  rn_mutex_unlock(&eager->mutex);
}

void rn_eager_end_step(rn_eager_t* eager) {
  rn_mutex_lock(&eager->mutex);
  bool is_last = eager->steps > 0 && --eager->steps == 0;
  rn_mutex_unlock(&eager->mutex);
  if (is_last) rn_resources_clear(eager->step.step_resources, RN_STR(""));
}

void rn_eager_enable_stats(rn_eager_t* eager, bool enable) { eager->has_stats = enable; }

void rn_eager_take_stats(rn_eager_t* eager, void (*use)(void* arg, const rn_step_stats_t* stats),
                         void* arg) {
  rn_mutex_lock(&eager->stats.mutex);
  use(arg, &eager->stats);
  eager->stats.nodes.count = eager->stats.outputs.count = 0;
  rn_arena_clear(&eager->stats.arena);
  rn_mutex_unlock(&eager->stats.mutex);
}

// --- Devices

bool rn_eager_device_canonical(rn_str_t name, rn_strbuf_t* out) {
  rn_device_spec_t spec;
  bool has_parts =
      name.size && (memchr(name.data, '/', name.size) || memchr(name.data, ':', name.size));
  if (!has_parts || !rn_device_spec_parse(name, &spec)) return false;
  if (spec.job.size) rn_strbuf_printf(out, "/job:%.*s", RN_STR_ARGS(spec.job));
  if (spec.replica >= 0) rn_strbuf_printf(out, "/replica:%d", spec.replica);
  if (spec.task >= 0) rn_strbuf_printf(out, "/task:%d", spec.task);
  if (spec.type.size) {
    rn_strbuf_append(out, RN_STR("/device:"));
    for (size_t i = 0; i < spec.type.size; ++i) {
      char c = spec.type.data[i];
      c = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
      rn_strbuf_append_n(out, &c, 1);
    }
    if (spec.index >= 0)
      rn_strbuf_printf(out, ":%d", spec.index);
    else
      rn_strbuf_append(out, RN_STR(":*"));
  }
  return true;
}

rn_status_t rn_eager_no_device(rn_eager_t* eager, rn_str_t name, bool only_cpu) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, eager->allocator);
  rn_strbuf_printf(&text, "Could not satisfy device specification '%.*s'. enable_soft_placement=%d",
                   RN_STR_ARGS(name), eager->is_soft ? 1 : 0);
  rn_strbuf_append(&text, RN_STR(". Supported device types ["));
  int count = rn_session_device_count(eager->session);
  const char* last = "";
  for (int i = 0; i < count; ++i) {
    const char* type = rn_session_device(eager->session, i)->type;
    if (only_cpu && i) break;
    if (strcmp(type, last) != 0) rn_strbuf_printf(&text, "%s%s", i ? ", " : "", type);
    last = type;
  }
  rn_strbuf_append(&text, RN_STR("]. All available devices ["));
  for (int i = 0; i < count; ++i)
    rn_strbuf_printf(&text, "%s%s", i ? ", " : "", rn_session_device(eager->session, i)->name.data);
  rn_strbuf_append(&text, RN_STR("]."));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

rn_status_t rn_eager_device(rn_eager_t* eager, rn_str_t name, rn_device_t** out) {
  *out = eager->cpu;
  if (name.size == 0) return RN_OK;
  rn_device_spec_t spec, own;
  if (!rn_device_spec_parse(name, &spec))
    return rn_invalid_argument("Failed to parse device name: '%.*s'", RN_STR_ARGS(name));
  for (int i = 0; i < rn_session_device_count(eager->session); ++i) {
    const rn_device_t* device = rn_session_device(eager->session, i);
    if (!rn_device_spec_parse(device->name, &own) || !rn_device_spec_matches(&spec, &own)) continue;
    *out = (rn_device_t*)(uintptr_t)device;
    return RN_OK;
  }
  // Instead of a device that this task lacks, another one of this task.
  spec.type = RN_STR("");
  spec.index = -1;
  bool is_own = rn_device_spec_parse(eager->cpu->name, &own) && rn_device_spec_matches(&spec, &own);
  return eager->is_soft && is_own ? RN_OK : rn_eager_no_device(eager, name, false);
}
