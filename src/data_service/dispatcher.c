// The dispatcher: its datasets, workers and tasks, and how calls reach its methods.
#include "data_service/ask.h"
#include "data_service/dispatcher_internal.h"
#include "io/record.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define SERVICE "/tensorflow.data.DispatcherService/"
#define THREADS 4           // calls, and graphs, that run at a time
#define TICK_NS 1000000000  // between looks at what has waited too long
#define MAX_DATASET (1u << 31)

static const rn_pb_data_experimental_DispatcherConfig_t defaults = {
    .job_gc_check_interval_ms = 600000,
    .job_gc_timeout_ms = 300000,
    .client_timeout_ms = 300000,
    .worker_timeout_ms = 600000};

rn_status_t rn_ds_change(rn_ds_dispatcher_t* self, const rn_pb_data_Update_t* update) {
  if (self->journal) RN_RETURN_IF_ERROR(rn_ds_journal_write(self->journal, update));
  return rn_ds_apply(&self->state, update);
}

// Datasets: in memory, or in files of the work directory.
static rn_status_t dataset_path(const rn_ds_dispatcher_t* self, rn_str_t id, rn_strbuf_t* out) {
  bool is_bad = !id.size || rn_str_is(id, ".") || rn_str_is(id, "..") ||
                memchr(id.data, '/', id.size) || memchr(id.data, 0, id.size);
  if (is_bad)
    return rn_invalid_argument("'%.*s' cannot be the id of a dataset that is kept in a file",
                               RN_STR_ARGS(id));
  rn_strbuf_append(out, self->config.work_dir);
  rn_strbuf_append(out, RN_STR("/datasets/"));
  rn_strbuf_append(out, id);
  return rn_strbuf_status(out);
}

static rn_status_t write_file(const rn_ds_dispatcher_t* self, rn_str_t id, rn_str_t def) {
  rn_strbuf_t path;
  rn_record_writer_t* writer = NULL;
  rn_strbuf_init(&path, self->allocator);
  rn_status_t status = dataset_path(self, id, &path);
  if (rn_ok(status)) status = rn_record_writer_open(self->env, path.data, NULL, &writer);
  if (rn_ok(status)) status = rn_record_writer_write(writer, def);
  rn_status_t closed = rn_record_writer_close(writer);
  if (rn_ok(status))
    status = closed;
  else
    rn_status_free(closed);
  rn_strbuf_clear(&path);
  return status;
}

static rn_status_t read_file(const rn_ds_dispatcher_t* self, rn_str_t id, rn_strbuf_t* out) {
  rn_strbuf_t path;
  rn_record_reader_t* reader = NULL;
  rn_str_t record;
  bool is_end = false;
  rn_strbuf_init(&path, self->allocator);
  rn_status_t status = dataset_path(self, id, &path);
  if (rn_ok(status))
    status = rn_record_reader_open(self->env, path.data, RN_COMPRESSION_NONE, 0, &reader);
  if (rn_ok(status)) status = rn_record_reader_next(reader, &record, &is_end);
  if (rn_ok(status) && is_end) status = rn_data_loss("%s is empty", path.data);
  if (rn_ok(status)) rn_strbuf_append(out, record);
  rn_record_reader_close(reader);
  rn_strbuf_clear(&path);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

rn_status_t rn_ds_put_dataset(rn_ds_dispatcher_t* self, rn_str_t id, rn_str_t def) {
  if (self->config.work_dir.size) return write_file(self, id, def);
  rn_ds_stored_t stored = {.size = def.size};
  RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, id, &stored.id));
  RN_RETURN_IF_ERROR(rn_str_dup(self->allocator, def, &stored.bytes));
  rn_status_t status = rn_vec_push(&self->stored, self->allocator, stored);
  if (!rn_ok(status)) rn_free(self->allocator, stored.bytes, stored.size + 1);
  return status;
}

rn_status_t rn_ds_get_dataset(rn_ds_dispatcher_t* self, rn_str_t id, rn_strbuf_t* out) {
  if (self->config.work_dir.size) return read_file(self, id, out);
  for (size_t i = 0; i < self->stored.count; ++i) {
    const rn_ds_stored_t* stored = &self->stored.items[i];
    if (!rn_str_eq(stored->id, id)) continue;
    rn_strbuf_append_n(out, stored->bytes, stored->size);
    return rn_strbuf_status(out);
  }
  return rn_not_found("Dataset id %.*s not found", RN_STR_ARGS(id));
}

// Workers that the config lists: "host:port", or "host" or "host:%port%" for any port of it.
static bool is_any_port(rn_str_t configured, rn_str_t address) {
  rn_str_t host = configured, its_host = address;
  for (size_t i = configured.size; i-- > 0;)
    if (configured.data[i] == ':') {
      rn_str_t port = rn_str_n(configured.data + i + 1, configured.size - i - 1);
      if (!rn_str_starts_with(port, RN_STR("%port")) || port.data[port.size - 1] != '%')
        return false;
      host = rn_str_n(configured.data, i);
      break;
    }
  for (size_t i = address.size; i-- > 0;)
    if (address.data[i] == ':') {
      its_host = rn_str_n(address.data, i);
      return rn_str_eq(host, its_host);
    }
  return false;
}

static void list_addresses(const rn_ds_dispatcher_t* self, const char* between, rn_strbuf_t* out) {
  for (size_t i = 0; i < self->addresses.count; ++i) {
    if (i) rn_strbuf_append(out, rn_str(between));
    rn_strbuf_append(out, self->addresses.items[i]);
  }
}

rn_status_t rn_ds_admit_worker(rn_ds_dispatcher_t* self, rn_str_t address) {
  if (!self->addresses.count) return RN_OK;
  for (size_t i = 0; i < self->addresses.count; ++i) {
    rn_str_t* configured = &self->addresses.items[i];
    if (rn_str_eq(*configured, address)) return RN_OK;
    if (is_any_port(*configured, address)) return rn_arena_str(&self->arena, address, configured);
  }
  rn_strbuf_t list;
  rn_strbuf_init(&list, self->allocator);
  list_addresses(self, ", ", &list);
  rn_status_t status = rn_failed_precondition(
      "Failed to assign an index for worker %.*s. Configured workers list: [%.*s]. The worker's "
      "address is not configured, or other workers are already running at the configured host. If "
      "your worker has restarted, make sure it runs at the same address and port.",
      RN_STR_ARGS(address), RN_STR_ARGS(rn_strbuf_view(&list)));
  rn_strbuf_clear(&list);
  return status;
}

rn_status_t rn_ds_worker_index(const rn_ds_dispatcher_t* self, rn_str_t address, int64_t* out) {
  for (size_t i = 0; i < self->addresses.count; ++i) {
    *out = (int64_t)i;
    if (rn_str_eq(self->addresses.items[i], address)) return RN_OK;
  }
  rn_strbuf_t list;
  rn_strbuf_init(&list, self->allocator);
  list_addresses(self, ",", &list);
  rn_status_t status = rn_not_found(
      "Failed to shard dataset in tf.data service: Worker %.*s is not in the workers list. Got "
      "workers list %.*s.",
      RN_STR_ARGS(address), RN_STR_ARGS(rn_strbuf_view(&list)));
  rn_strbuf_clear(&list);
  return status;
}

// Tasks.
static rn_status_t write_dataset(rn_ds_dispatcher_t* self, rn_str_t id, rn_strbuf_t* out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, self->allocator);
  bool is_file = self->config.work_dir.size > 0;
  rn_status_t status = is_file ? dataset_path(self, id, &text) : rn_ds_get_dataset(self, id, &text);
  if (rn_ok(status))
    rn_pb_put_str(out,
                  is_file ? rn_pb_data_TaskDef_path_field : rn_pb_data_TaskDef_dataset_def_field,
                  rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  return status;
}

rn_status_t rn_ds_write_task(rn_ds_dispatcher_t* self, const rn_ds_task_t* task, uint32_t number,
                             rn_strbuf_t* out) {
  const rn_ds_job_t* job = task->iteration->job;
  rn_pb_data_ProcessingModeDef_t mode = {.sharding_policy = job->policy};
  rn_pb_data_TaskDef_t def = {.dataset_id = job->dataset_id,
                              .task_id = task->id,
                              .iteration_id = task->iteration->id,
                              .worker_address = task->worker->address,
                              .num_split_providers = task->iteration->split_count,
                              .processing_mode_def = &mode,
                              .use_cross_trainer_cache = job->has_cache};
  if (job->num_consumers) {
    def.optional_num_consumers_case = rn_pb_data_TaskDef_num_consumers_field;
    def.num_consumers = job->num_consumers;
  }
  if (job->policy > rn_pb_data_ProcessingModeDef_DYNAMIC) {
    def.num_workers = (int64_t)self->addresses.count;
    RN_RETURN_IF_ERROR(rn_ds_worker_index(self, task->worker->address, &def.worker_index));
  }
  size_t mark = rn_pb_begin(out, number);
  RN_RETURN_IF_ERROR(RN_DS_ENCODE(TaskDef, &def, out));
  RN_RETURN_IF_ERROR(write_dataset(self, job->dataset_id, out));
  rn_pb_end(out, mark);
  return rn_strbuf_status(out);
}

typedef struct ds_send_t {
  rn_rpc_out_t out;  // first
  rn_ds_dispatcher_t* self;
} ds_send_t;

static void task_sent(rn_rpc_out_t* out, rn_status_t status) {
  ds_send_t* send = (ds_send_t*)out;
  if (!rn_ok(status))
    rn_log(send->self->env, RN_LOG_WARNING, "A worker did not take a task: %s",
           rn_status_message(status));
  rn_status_free(status);
  rn_rpc_out_clear(out);
  RN_FREE(send->self->allocator, send);
}

static rn_status_t link_to(rn_ds_dispatcher_t* self, rn_str_t address, rn_channel_t** out) {
  for (size_t i = 0; i < self->links.count; ++i) {
    *out = self->links.items[i].channel;
    if (rn_str_is(address, self->links.items[i].address)) return RN_OK;
  }
  rn_ds_link_t link = {0};
  rn_str_t copy;
  RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, address, &copy));
  link.address = (char*)copy.data;
  rn_channel_options_t options = {
      .loop = self->loop, .allocator = self->allocator, .address = link.address};
  RN_RETURN_IF_ERROR(rn_channel_create(&options, &link.channel));
  rn_status_t status = rn_vec_push(&self->links, self->allocator, link);
  if (!rn_ok(status)) rn_channel_destroy(link.channel);
  *out = link.channel;
  return status;
}

void rn_ds_send_task(rn_ds_dispatcher_t* self, const rn_ds_task_t* task) {
  rn_strbuf_t body;
  rn_channel_t* channel = NULL;
  ds_send_t* send = NULL;
  rn_strbuf_init(&body, self->allocator);
  rn_status_t status =
      rn_ds_write_task(self, task, rn_pb_data_ProcessTaskRequest_task_field, &body);
  if (rn_ok(status)) status = link_to(self, task->worker->address, &channel);
  if (rn_ok(status)) status = RN_NEW(self->allocator, &send);
  if (rn_ok(status)) {
    send->self = self;
    send->out.path = "/tensorflow.data.WorkerService/ProcessTask";
    send->out.deadline_ns = rn_loop_now(self->loop) + 60 * (int64_t)TICK_NS;
    send->out.done = task_sent;
    rn_message_init(&send->out.request, self->allocator);
    status = rn_message_add(&send->out.request, rn_strbuf_view(&body));
    if (rn_ok(status))
      rn_rpc_start(channel, &send->out);
    else
      RN_FREE(self->allocator, send);
  }
  rn_strbuf_clear(&body);
  if (!rn_ok(status))
    rn_log(self->env, RN_LOG_WARNING, "A task was not sent: %s", rn_status_message(status));
  rn_status_free(status);
}

rn_status_t rn_ds_create_task(rn_ds_dispatcher_t* self, rn_ds_iteration_t* iteration,
                              rn_ds_worker_t* worker, bool is_pending, rn_ds_task_t** out) {
  rn_pb_data_CreateTaskUpdate_t create = {.task_id = self->state.next_task,
                                          .iteration_id = iteration->id,
                                          .worker_address = worker->address,
                                          .worker_uid = worker->info->worker_uid};
  rn_pb_data_CreatePendingTaskUpdate_t later = {.task_id = self->state.next_task,
                                                .iteration_id = iteration->id,
                                                .worker_address = worker->address,
                                                .worker_uid = worker->info->worker_uid,
                                                .starting_round = iteration->round + 1};
  rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_create_task_field,
                                .create_task = &create};
  if (is_pending) {
    update.update_type_case = rn_pb_data_Update_create_pending_task_field;
    update.create_pending_task = &later;
  }
  RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  *out = self->state.tasks.items[self->state.tasks.count - 1];
  return RN_OK;
}

// Calls.
void rn_ds_reply(rn_allocator_t allocator, rn_rpc_in_t* call, rn_status_t status,
                 const rn_strbuf_t* body) {
  rn_message_t message;
  rn_message_init(&message, allocator);
  if (rn_ok(status) && body) status = rn_message_add(&message, rn_strbuf_view(body));
  rn_rpc_reply(call, status, &message);
}

typedef struct ds_call_t {
  rn_job_t job;  // first
  rn_ds_dispatcher_t* self;
  rn_rpc_in_t* call;
  rn_ds_method_fn_t run;
} ds_call_t;

static void run_call(rn_job_t* job) {
  ds_call_t own = *(ds_call_t*)job;
  rn_ds_dispatcher_t* self = own.self;
  RN_FREE(self->allocator, (ds_call_t*)job);
  rn_arena_t arena;
  rn_strbuf_t body;
  bool is_deferred = false;
  rn_arena_init(&arena, self->allocator);
  rn_strbuf_init(&body, self->allocator);
  rn_mutex_lock(&self->mutex);
  rn_status_t status = own.run(self, own.call, &arena, &body, &is_deferred);
  rn_mutex_unlock(&self->mutex);
  if (!is_deferred) rn_ds_reply(self->allocator, own.call, status, &body);
  rn_strbuf_clear(&body);
  rn_arena_clear(&arena);
}

void rn_ds_dispatcher_handle(void* arg, rn_rpc_in_t* call) {
  rn_ds_dispatcher_t* self = arg;
  rn_str_t path = rn_rpc_path(call), service = RN_STR(SERVICE);
  rn_status_t status =
      rn_unimplemented("Runnel's dispatcher does not have the method %.*s", RN_STR_ARGS(path));
  for (const rn_ds_method_t* method = rn_ds_methods; method->name; ++method) {
    if (!rn_str_starts_with(path, service)) break;
    if (!rn_str_is(rn_str_n(path.data + service.size, path.size - service.size), method->name))
      continue;
    rn_status_free(status);
    ds_call_t* job = NULL;
    status = RN_NEW(self->allocator, &job);
    if (!rn_ok(status)) break;
    *job = (ds_call_t){.job.run = run_call, .self = self, .call = call, .run = method->run};
    rn_pool_submit(self->pool, &job->job);
    return;
  }
  rn_ds_reply(self->allocator, call, status, NULL);
}

// Once per second: releases clients that are silent, and old iterations.
static rn_status_t release_silent(rn_ds_dispatcher_t* self, int64_t now_ns) {
  for (size_t i = 0; i < self->state.clients.count; ++i) {
    rn_ds_client_t* client = self->state.clients.items[i];
    if (client->is_released || client->heard_ns == INT64_MAX ||
        now_ns - client->heard_ns < rn_ds_from_ms(self->config.client_timeout_ms))
      continue;
    rn_pb_data_ReleaseIterationClientUpdate_t release = {
        .iteration_client_id = client->id, .time_micros = self->env->wall_us(self->env->self)};
    rn_pb_data_Update_t update = {
        .update_type_case = rn_pb_data_Update_release_iteration_client_field,
        .release_iteration_client = &release};
    RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  }
  return RN_OK;
}

static rn_status_t collect_old(rn_ds_dispatcher_t* self) {
  int64_t now_us = self->env->wall_us(self->env->self);
  for (size_t i = 0; i < self->state.iterations.count; ++i) {
    rn_ds_iteration_t* each = self->state.iterations.items[i];
    // A client that reads a collected dynamic iteration again would see elements twice.
    if (each->job->policy == rn_pb_data_ProcessingModeDef_DYNAMIC &&
        !self->config.gc_dynamic_sharding_jobs)
      continue;
    if (each->is_finished || each->num_clients > 0 || each->released_us < 0 ||
        now_us - each->released_us < rn_ds_from_ms(self->config.job_gc_timeout_ms) / 1000)
      continue;
    rn_pb_data_GarbageCollectIterationUpdate_t collect = {.iteration_id = each->id};
    rn_pb_data_Update_t update = {
        .update_type_case = rn_pb_data_Update_garbage_collect_iteration_field,
        .garbage_collect_iteration = &collect};
    RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
    rn_ds_drop_splits(self, each);
  }
  return RN_OK;
}

static void on_tick(rn_timer_t* timer);

static void run_tick(rn_job_t* job) {
  rn_ds_dispatcher_t* self = RN_CONTAINER_OF(job, rn_ds_dispatcher_t, tick_job);
  int64_t now_ns = rn_loop_now(self->loop);
  int64_t interval_ns = rn_ds_from_ms(self->config.job_gc_check_interval_ms);
  rn_status_t status = RN_OK;
  rn_mutex_lock(&self->mutex);
  rn_ds_end_removals(self, now_ns);
  rn_ds_stop_splits(self, false);
  if (self->config.job_gc_timeout_ms >= 0 && now_ns - self->checked_ns >= interval_ns) {
    self->checked_ns = now_ns;
    status = release_silent(self, now_ns);
    if (rn_ok(status)) status = collect_old(self);
  }
  if (interval_ns > TICK_NS) interval_ns = TICK_NS;
  // Also after a failure: those who wait for a removal are told by the next tick at the latest.
  rn_status_t timer = RN_OK;
  if (!self->is_closing) timer = rn_loop_set_timer(self->loop, &self->tick, now_ns + interval_ns);
  if (rn_ok(status))
    status = timer;
  else
    rn_status_free(timer);
  rn_mutex_unlock(&self->mutex);
  if (!rn_ok(status))
    rn_log(self->env, RN_LOG_WARNING, "The dispatcher's maintenance: %s",
           rn_status_message(status));
  rn_status_free(status);
}

static void on_tick(rn_timer_t* timer) {
  rn_ds_dispatcher_t* self = RN_CONTAINER_OF(timer, rn_ds_dispatcher_t, tick);
  rn_pool_submit(self->pool, &self->tick_job);
}

static rn_status_t take_config(rn_ds_dispatcher_t* self,
                               const rn_pb_data_experimental_DispatcherConfig_t* config) {
  rn_pb_data_experimental_DispatcherConfig_t* own = &self->config;
  *own = *config;
  RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, config->work_dir, &own->work_dir));
  for (size_t i = 0; i < config->worker_addresses.count; ++i) {
    rn_str_t address;
    RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, config->worker_addresses.items[i], &address));
    RN_RETURN_IF_ERROR(rn_vec_push(&self->addresses, self->allocator, address));
  }
  if (!own->job_gc_check_interval_ms)
    own->job_gc_check_interval_ms = defaults.job_gc_check_interval_ms;
  if (!own->job_gc_timeout_ms) own->job_gc_timeout_ms = defaults.job_gc_timeout_ms;
  if (!own->client_timeout_ms) own->client_timeout_ms = defaults.client_timeout_ms;
  if (!own->worker_timeout_ms) own->worker_timeout_ms = defaults.worker_timeout_ms;
  if (own->fault_tolerant_mode && !own->work_dir.size)
    return rn_invalid_argument("fault_tolerant_mode is True, but no work_dir is configured.");
  return RN_OK;
}

static rn_status_t restore(rn_ds_dispatcher_t* self) {
  if (!self->config.work_dir.size) return RN_OK;
  rn_str_t folder;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&self->arena, &folder, "%.*s/datasets", RN_STR_ARGS(self->config.work_dir)));
  RN_RETURN_IF_ERROR(rn_fs_make_directories(self->env, folder.data));
  if (!self->config.fault_tolerant_mode) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ds_journal_open(self->env, self->allocator, self->config.work_dir,
                                        &self->state, &self->journal));
  // As if all clients had just been heard of, so that none is released too early.
  for (size_t i = 0; i < self->state.clients.count; ++i)
    self->state.clients.items[i]->heard_ns = rn_loop_now(self->loop);
  for (size_t i = 0; i < self->state.workers.count; ++i) {
    rn_status_t status = rn_ds_admit_worker(self, self->state.workers.items[i]->address);
    rn_status_free(status);  // it is refused when a task needs its place
  }
  return RN_OK;
}

rn_status_t rn_ds_dispatcher_create(const rn_env_t* env, rn_allocator_t allocator, rn_loop_t* loop,
                                    const rn_pb_data_experimental_DispatcherConfig_t* config,
                                    rn_ds_dispatcher_t** out) {
  *out = NULL;
  rn_ds_dispatcher_t* self = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &self));
  self->env = env;
  self->allocator = allocator;
  self->loop = loop;
  self->tick.fn = on_tick;
  self->tick_job.run = run_tick;
  rn_arena_init(&self->arena, allocator);
  rn_mutex_init(&self->mutex);
  rn_ds_state_init(&self->state, allocator);
  rn_status_t status = rn_pool_create(allocator, THREADS + 1, &self->pool);
  if (rn_ok(status)) status = rn_pool_create(allocator, THREADS + 1, &self->graphs);
  if (rn_ok(status)) status = take_config(self, config);
  if (rn_ok(status)) status = restore(self);
  if (rn_ok(status)) status = rn_loop_set_timer(loop, &self->tick, rn_loop_now(loop) + TICK_NS);
  if (!rn_ok(status)) {
    rn_ds_dispatcher_destroy(self);
    return status;
  }
  *out = self;
  return RN_OK;
}

void rn_ds_dispatcher_close(rn_ds_dispatcher_t* self) {
  if (!self) return;
  rn_mutex_lock(&self->mutex);
  self->is_closing = true;  // from now on, no call waits for a removal or for splits
  rn_ds_end_removals(self, INT64_MAX);
  rn_ds_stop_splits(self, true);
  rn_mutex_unlock(&self->mutex);
}

void rn_ds_dispatcher_destroy(rn_ds_dispatcher_t* self) {
  if (!self) return;
  rn_ds_dispatcher_close(self);
  rn_loop_clear_timer(self->loop, &self->tick);
  rn_pool_destroy(self->graphs);  // runs what was submitted, which submits to the other
  rn_pool_destroy(self->pool);
  rn_loop_clear_timer(self->loop, &self->tick);
  for (size_t i = 0; i < self->links.count; ++i) rn_channel_destroy(self->links.items[i].channel);
  rn_ds_free_splits(self);
  for (size_t i = 0; i < self->stored.count; ++i)
    rn_free(self->allocator, self->stored.items[i].bytes, self->stored.items[i].size + 1);
  rn_vec_free(&self->links, self->allocator);
  rn_vec_free(&self->stored, self->allocator);
  rn_vec_free(&self->addresses, self->allocator);
  rn_vec_free(&self->removals, self->allocator);
  rn_ds_journal_close(self->journal);
  rn_ds_state_clear(&self->state);
  rn_mutex_destroy(&self->mutex);
  rn_arena_clear(&self->arena);
  RN_FREE(self->allocator, self);
}

int64_t rn_ds_dispatcher_workers(rn_ds_dispatcher_t* self) {
  rn_mutex_lock(&self->mutex);
  int64_t count = (int64_t)self->state.workers.count;
  rn_mutex_unlock(&self->mutex);
  return count;
}
