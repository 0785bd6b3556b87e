// The worker: its tasks, its heartbeat, and the calls that it answers. See worker.h.
#include "data_service/worker.h"

#include "base/container.h"
#include "base/fs.h"
#include "base/sync.h"
#include "data_service/ask.h"
#include "data_service/element.h"
#include "data_service/runner.h"
#include "io/record.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define SERVICE "/tensorflow.data.WorkerService/"
#define DISPATCHER "/tensorflow.data.DispatcherService/"
#define CALL_NS (60 * (int64_t)1000000000)
#define RETRY_NS 200000000  // between attempts to reach the dispatcher at the start
#define MAX_TASKS 10000
#define CACHE_BYTES ((size_t)10 << 30)  // stock's default
#define THREADS 3                       // heartbeats, ends of tasks

typedef struct ds_task_t {
  int64_t id, iteration_id;
  rn_str_t def;            // a TaskDef; owned
  rn_ds_runner_t* runner;  // NULL until a client asks
  bool is_ended;           // a client was told; the dispatcher may not know yet
} ds_task_t;

struct rn_ds_worker_server_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_arena_t arena;
  rn_pb_data_experimental_WorkerConfig_t config;  // in |arena|
  rn_str_t address;                               // this worker's
  int64_t uid;
  rn_channel_t* dispatcher;
  rn_pool_t* pool;
  rn_timer_t timer;
  rn_job_t beat;
  rn_cancel_t stop;  // of calls to the dispatcher
  _Atomic bool is_closing;
  rn_mutex_t mutex;  // guards what follows
  bool is_registered, beats_again, is_beating;
  RN_VEC(ds_task_t) tasks;
  RN_VEC(int64_t) finished, deleted, completed;  // |completed|: to be told to the dispatcher
};

static void reply(rn_ds_worker_server_t* self, rn_rpc_in_t* call, rn_status_t status,
                  const rn_strbuf_t* body) {
  rn_message_t message;
  rn_message_init(&message, self->allocator);
  if (rn_ok(status) && body) status = rn_message_add(&message, rn_strbuf_view(body));
  rn_rpc_reply(call, status, &message);
}

static ds_task_t* find_task(rn_ds_worker_server_t* self, int64_t id) {
  for (size_t i = 0; i < self->tasks.count; ++i)
    if (self->tasks.items[i].id == id) return &self->tasks.items[i];
  return NULL;
}

static bool has_id(const int64_t* ids, size_t count, int64_t id) {
  for (size_t i = 0; i < count; ++i)
    if (ids[i] == id) return true;
  return false;
}

// Under the lock.
static rn_status_t add_task(rn_ds_worker_server_t* self, rn_str_t def) {
  ds_task_t task = {
      .id = (int64_t)rn_field_value(def, rn_pb_data_TaskDef_task_id_field),
      .iteration_id = (int64_t)rn_field_value(def, rn_pb_data_TaskDef_iteration_id_field)};
  if (self->is_closing) return rn_cancelled("Worker is shutting down");
  if (find_task(self, task.id)) return RN_OK;
  if (self->tasks.count >= MAX_TASKS)
    return rn_resource_exhausted("The worker has %d tasks, which is its limit", MAX_TASKS);
  char* copy = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(self->allocator, def, &copy));
  task.def = rn_str_n(copy, def.size);
  rn_status_t status = rn_vec_push(&self->tasks, self->allocator, task);
  if (!rn_ok(status)) rn_free(self->allocator, copy, def.size + 1);
  return status;
}

static void free_task(rn_ds_worker_server_t* self, ds_task_t* task) {
  rn_ds_runner_stop(task->runner);
  rn_free(self->allocator, (char*)task->def.data, task->def.size + 1);
}

// Datasets in files, which the dispatcher has on request as well.
static rn_status_t read_file(rn_ds_worker_server_t* self, rn_str_t path, rn_strbuf_t* out) {
  rn_record_reader_t* reader = NULL;
  rn_str_t record;
  bool is_end = false;
  rn_strbuf_t name;
  rn_strbuf_init(&name, self->allocator);
  rn_strbuf_append(&name, path);
  rn_status_t status = rn_fs_check_name(path);
  if (rn_ok(status)) status = rn_strbuf_status(&name);
  if (rn_ok(status))
    status = rn_record_reader_open(self->env, name.data, RN_COMPRESSION_NONE, 0, &reader);
  if (rn_ok(status)) status = rn_record_reader_next(reader, &record, &is_end);
  if (rn_ok(status) && is_end) status = rn_data_loss("%s is empty", name.data);
  if (rn_ok(status)) rn_strbuf_append(out, record);
  rn_record_reader_close(reader);
  rn_strbuf_clear(&name);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

static rn_status_t read_dataset(void* arg, const rn_pb_data_TaskDef_t* task, rn_strbuf_t* out) {
  rn_ds_worker_server_t* self = arg;
  rn_status_t status = read_file(self, task->path, out);
  if (rn_ok(status)) return status;
  rn_status_free(status);
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, self->allocator);
  rn_strbuf_init(&response, self->allocator);
  rn_pb_put_str(&request, rn_pb_data_GetDatasetDefRequest_dataset_id_field, task->dataset_id);
  out->size = 0;
  status = rn_ds_ask(self->dispatcher, self->loop, self->allocator, DISPATCHER "GetDatasetDef",
                     rn_strbuf_view(&request), CALL_NS, &self->stop, &response);
  if (rn_ok(status))
    rn_strbuf_append(out, rn_field_bytes(rn_strbuf_view(&response),
                                         rn_pb_data_GetDatasetDefResponse_dataset_def_field));
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

// The heartbeat, which also brings new tasks and tells of ended ones.
static void beat_soon(rn_ds_worker_server_t* self) {
  if (self->is_closing) return;
  if (self->is_beating) {
    self->beats_again = true;
    return;
  }
  self->is_beating = true;
  rn_pool_submit(self->pool, &self->beat);
}

static void on_timer(rn_timer_t* timer) {
  rn_ds_worker_server_t* self = RN_CONTAINER_OF(timer, rn_ds_worker_server_t, timer);
  rn_mutex_lock(&self->mutex);
  beat_soon(self);
  rn_mutex_unlock(&self->mutex);
}

// The runner's lock is held, so the task is looked up later.
static void task_ended(void* arg, int64_t task_id) {
  rn_ds_worker_server_t* self = arg;
  rn_mutex_lock(&self->mutex);
  rn_status_t status = rn_vec_push(&self->completed, self->allocator, task_id);
  beat_soon(self);
  rn_mutex_unlock(&self->mutex);
  rn_status_free(status);
}

static rn_status_t tell_one(rn_ds_worker_server_t* self, int64_t id) {
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, self->allocator);
  rn_strbuf_init(&response, self->allocator);
  rn_pb_put_str(&request, rn_pb_data_WorkerUpdateRequest_worker_address_field, self->address);
  size_t mark = rn_pb_begin(&request, rn_pb_data_WorkerUpdateRequest_updates_field);
  rn_pb_put_uint(&request, rn_pb_data_TaskProgress_task_id_field, (uint64_t)id);
  rn_pb_put_uint(&request, rn_pb_data_TaskProgress_completed_field, 1);
  rn_pb_end(&request, mark);
  rn_status_t status =
      rn_ds_ask(self->dispatcher, self->loop, self->allocator, DISPATCHER "WorkerUpdate",
                rn_strbuf_view(&request), CALL_NS, &self->stop, &response);
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  return status;
}

// A dispatcher that does not know a task, after a restart for one, is not told of it again.
static rn_status_t tell_completed(rn_ds_worker_server_t* self) {
  for (;;) {
    rn_mutex_lock(&self->mutex);
    bool is_any = self->completed.count > 0;
    int64_t id = is_any ? self->completed.items[0] : 0;
    ds_task_t* task = is_any ? find_task(self, id) : NULL;
    if (task) task->is_ended = true;
    rn_mutex_unlock(&self->mutex);
    if (!is_any) return RN_OK;
    rn_status_t status = tell_one(self, id);
    if (!rn_ok(status) && rn_status_code(status) != RN_CODE_NOT_FOUND) return status;
    rn_status_free(status);
    rn_mutex_lock(&self->mutex);
    memmove(self->completed.items, self->completed.items + 1,
            --self->completed.count * sizeof *self->completed.items);
    rn_mutex_unlock(&self->mutex);
  }
}

// Takes task |id| out of the list and ends it, without the lock.
static void delete_task(rn_ds_worker_server_t* self, int64_t id) {
  rn_mutex_lock(&self->mutex);
  ds_task_t* found = find_task(self, id);
  ds_task_t task = {0};
  rn_status_t status = RN_OK;
  if (found) {
    task = *found;
    *found = self->tasks.items[--self->tasks.count];
    bool is_finished = task.is_ended;
    status = is_finished ? rn_vec_push(&self->finished, self->allocator, id)
                         : rn_vec_push(&self->deleted, self->allocator, id);
  }
  rn_mutex_unlock(&self->mutex);
  rn_status_free(status);
  if (found) free_task(self, &task);
}

static rn_status_t take_response(rn_ds_worker_server_t* self, rn_str_t response) {
  rn_pb_scan_t scan = rn_pb_scan(response);
  rn_pb_field_t field;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && rn_pb_scan_next(&scan, &field)) {
    if (field.number == rn_pb_data_WorkerHeartbeatResponse_new_tasks_field &&
        field.wire == RN_PB_WIRE_LENGTH) {
      rn_mutex_lock(&self->mutex);
      status = add_task(self, field.bytes);
      rn_mutex_unlock(&self->mutex);
    } else if (field.number == rn_pb_data_WorkerHeartbeatResponse_tasks_to_delete_field) {
      rn_pb_scan_t ids = rn_pb_scan(field.bytes);
      uint64_t id = field.value;
      if (field.wire == RN_PB_WIRE_VARINT) delete_task(self, (int64_t)id);
      while (field.wire == RN_PB_WIRE_LENGTH && ids.next != ids.end && rn_pb_scan_varint(&ids, &id))
        delete_task(self, (int64_t)id);
    }
  }
  return rn_ok(status) && scan.is_bad ? rn_internal("The dispatcher's answer is damaged") : status;
}

static rn_status_t heartbeat(rn_ds_worker_server_t* self) {
  rn_pb_data_DataTransferServerInfo_t transfer = {.protocol = RN_STR("grpc"),
                                                  .address = self->address};
  rn_pb_data_WorkerHeartbeatRequest_t message = {.worker_address = self->address,
                                                 .worker_uid = self->uid};
  message.worker_tags.items = self->config.worker_tags.items;
  message.worker_tags.count = self->config.worker_tags.count;
  message.transfer_servers.items = &transfer;
  message.transfer_servers.count = 1;
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, self->allocator);
  rn_strbuf_init(&response, self->allocator);
  rn_status_t status = RN_PB_ENCODE(data_WorkerHeartbeatRequest, &message, NULL, &request);
  rn_mutex_lock(&self->mutex);
  size_t mark = rn_pb_begin(&request, rn_pb_data_WorkerHeartbeatRequest_current_tasks_field);
  for (size_t i = 0; i < self->tasks.count; ++i)
    rn_pb_put_varint(&request, (uint64_t)self->tasks.items[i].id);
  rn_pb_end(&request, mark);
  rn_mutex_unlock(&self->mutex);
  if (rn_ok(status)) status = rn_strbuf_status(&request);
  if (rn_ok(status))
    status = rn_ds_ask(self->dispatcher, self->loop, self->allocator, DISPATCHER "WorkerHeartbeat",
                       rn_strbuf_view(&request), CALL_NS, &self->stop, &response);
  if (rn_ok(status)) status = take_response(self, rn_strbuf_view(&response));
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  return status;
}

static void run_beat(rn_job_t* job) {
  rn_ds_worker_server_t* self = RN_CONTAINER_OF(job, rn_ds_worker_server_t, beat);
  rn_status_t status = tell_completed(self);
  if (rn_ok(status)) status = heartbeat(self);
  if (!rn_ok(status) && !self->is_closing)
    rn_log(self->env, RN_LOG_WARNING, "The dispatcher did not take a heartbeat: %s",
           rn_status_message(status));
  rn_status_free(status);
  int64_t interval_ns = rn_ds_from_ms(self->config.heartbeat_interval_ms);
  rn_mutex_lock(&self->mutex);
  self->is_beating = false;
  if (self->beats_again) {
    self->beats_again = false;
    beat_soon(self);
  } else if (!self->is_closing) {
    rn_status_free(
        rn_loop_set_timer(self->loop, &self->timer, rn_loop_now(self->loop) + interval_ns));
  }
  rn_mutex_unlock(&self->mutex);
}

// Calls.
static rn_status_t start_runner(rn_ds_worker_server_t* self, ds_task_t* task) {
  rn_str_t address = rn_field_bytes(task->def, rn_pb_data_TaskDef_worker_address_field);
  if (!rn_str_eq(address, self->address))
    return rn_internal("Dispatcher's worker address %.*s does not match worker's address %.*s.",
                       RN_STR_ARGS(address), RN_STR_ARGS(self->address));
  rn_ds_runner_options_t options = {
      .env = self->env,
      .allocator = self->allocator,
      .loop = self->loop,
      .task = task->def,
      .dispatcher = self->config.dispatcher_address,
      .cache_bytes = self->config.cross_trainer_cache_size_bytes > 0
                         ? (size_t)self->config.cross_trainer_cache_size_bytes
                         : CACHE_BYTES,
      .read = read_dataset,
      .ended = task_ended,
      .self = self};
  return rn_ds_runner_create(&options, &task->runner);
}

// The runner of a task, retained; NULL with |*out_is_end| if the task has ended. Under the lock.
static rn_status_t find_runner(rn_ds_worker_server_t* self, int64_t id, rn_ds_runner_t** out,
                               bool* out_is_end) {
  *out = NULL;
  *out_is_end = false;
  if (self->is_closing) return rn_cancelled("Worker is shutting down");
  if (!self->is_registered) return rn_unavailable("Worker has not yet registered with dispatcher.");
  ds_task_t* task = find_task(self, id);
  if (!task) {
    if (has_id(self->deleted.items, self->deleted.count, id))
      return rn_failed_precondition(
          "Got request for local task %lld of worker %.*s, which has been deleted. You may be "
          "creating a duplicate iteration which has already finished. To fix this, make sure to "
          "create your dataset only once, as opposed to re-creating it repeatedly inside a loop.",
          (long long)id, RN_STR_ARGS(self->address));
    *out_is_end = has_id(self->finished.items, self->finished.count, id);
    return *out_is_end ? RN_OK : rn_unavailable("Task %lld not found", (long long)id);
  }
  if (!task->runner) RN_RETURN_IF_ERROR(start_runner(self, task));
  *out = task->runner;
  rn_ds_runner_retain(*out);
  return RN_OK;
}

static void get_element(rn_ds_worker_server_t* self, rn_rpc_in_t* call) {
  rn_arena_t arena;
  rn_arena_init(&arena, self->allocator);
  rn_pb_data_GetElementRequest_t* request = NULL;
  rn_ds_runner_t* runner = NULL;
  bool is_end = false;
  rn_status_t status =
      RN_PB_DECODE(data_GetElementRequest, rn_rpc_request(call), NULL, &arena, &request);
  if (rn_ok(status)) {
    rn_mutex_lock(&self->mutex);
    status = find_runner(self, request->task_id, &runner, &is_end);
    rn_mutex_unlock(&self->mutex);
  }
  if (rn_ok(status) && runner) {
    rn_ds_runner_get(runner, call, request);
    rn_ds_runner_release(runner);
  } else {
    rn_strbuf_t body;
    rn_strbuf_init(&body, self->allocator);
    if (is_end) rn_pb_put_uint(&body, RN_DS_ELEMENT_END, 1);
    reply(self, call, status, &body);
    rn_strbuf_clear(&body);
  }
  rn_arena_clear(&arena);
}

static void process_task(rn_ds_worker_server_t* self, rn_rpc_in_t* call) {
  rn_mutex_lock(&self->mutex);
  rn_status_t status = add_task(
      self, rn_field_bytes(rn_rpc_request(call), rn_pb_data_ProcessTaskRequest_task_field));
  rn_mutex_unlock(&self->mutex);
  reply(self, call, status, NULL);
}

static void get_worker_tasks(rn_ds_worker_server_t* self, rn_rpc_in_t* call) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, self->allocator);
  rn_mutex_lock(&self->mutex);
  for (size_t i = 0; i < self->tasks.count; ++i) {
    size_t mark = rn_pb_begin(&body, rn_pb_data_GetWorkerTasksResponse_tasks_field);
    rn_pb_put_str(&body, rn_pb_data_TaskInfo_worker_address_field, self->address);
    rn_pb_put_uint(&body, rn_pb_data_TaskInfo_task_id_field, (uint64_t)self->tasks.items[i].id);
    rn_pb_put_uint(&body, rn_pb_data_TaskInfo_iteration_id_field,
                   (uint64_t)self->tasks.items[i].iteration_id);
    rn_pb_end(&body, mark);
  }
  rn_mutex_unlock(&self->mutex);
  reply(self, call, rn_strbuf_status(&body), &body);
  rn_strbuf_clear(&body);
}

void rn_ds_worker_handle(void* arg, rn_rpc_in_t* call) {
  rn_str_t path = rn_rpc_path(call);
  if (rn_str_is(path, SERVICE "GetElement"))
    get_element(arg, call);
  else if (rn_str_is(path, SERVICE "ProcessTask"))
    process_task(arg, call);
  else if (rn_str_is(path, SERVICE "GetWorkerTasks"))
    get_worker_tasks(arg, call);
  else
    reply(arg, call,
          rn_unimplemented("Runnel's worker does not have the method %.*s", RN_STR_ARGS(path)),
          NULL);
}

// Life.
static rn_status_t take_config(rn_ds_worker_server_t* self,
                               const rn_pb_data_experimental_WorkerConfig_t* config) {
  self->config = *config;
  rn_arena_t* arena = &self->arena;
  RN_RETURN_IF_ERROR(
      rn_arena_str(arena, config->dispatcher_address, &self->config.dispatcher_address));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, config->worker_address, &self->config.worker_address));
  rn_str_t* tags = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, config->worker_tags.count, &tags));
  for (size_t i = 0; i < config->worker_tags.count; ++i) {
    if (!config->worker_tags.items[i].size)
      return rn_failed_precondition("Worker tags cannot be empty.");
    RN_RETURN_IF_ERROR(rn_arena_str(arena, config->worker_tags.items[i], &tags[i]));
  }
  self->config.worker_tags.items = tags;
  if (!self->config.heartbeat_interval_ms) self->config.heartbeat_interval_ms = 30000;
  if (!self->config.dispatcher_timeout_ms) self->config.dispatcher_timeout_ms = 3600000;
  if (!self->config.dispatcher_address.size)
    return rn_invalid_argument("A worker needs the address of its dispatcher");
  return RN_OK;
}

rn_status_t rn_ds_worker_create(const rn_env_t* env, rn_allocator_t allocator, rn_loop_t* loop,
                                const rn_pb_data_experimental_WorkerConfig_t* config,
                                rn_ds_worker_server_t** out) {
  *out = NULL;
  rn_ds_worker_server_t* self = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &self));
  self->env = env;
  self->allocator = allocator;
  self->loop = loop;
  self->timer.fn = on_timer;
  self->beat.run = run_beat;
  self->uid = (int64_t)(env->random(env->self) >> 1);
  rn_arena_init(&self->arena, allocator);
  rn_cancel_init(&self->stop);
  rn_mutex_init(&self->mutex);
  rn_status_t status = take_config(self, config);
  if (rn_ok(status)) status = rn_pool_create(allocator, THREADS, &self->pool);
  rn_channel_options_t options = {
      .loop = loop, .allocator = allocator, .address = self->config.dispatcher_address.data};
  if (rn_ok(status)) status = rn_channel_create(&options, &self->dispatcher);
  if (!rn_ok(status)) {
    rn_ds_worker_destroy(self);
    return status;
  }
  *out = self;
  return RN_OK;
}

// "localhost:%port%", with the port's number in place of the last part.
rn_status_t rn_ds_worker_set_port(rn_ds_worker_server_t* self, int port) {
  rn_str_t given =
      self->config.worker_address.size ? self->config.worker_address : RN_STR("localhost:%port%");
  for (size_t i = given.size; i-- > 0;)
    if (given.data[i] == ':' && i + 1 < given.size && given.data[i + 1] == '%')
      return rn_arena_printf(&self->arena, &self->address, "%.*s:%d", (int)i, given.data, port);
  self->address = given;
  return RN_OK;
}

rn_status_t rn_ds_worker_start(rn_ds_worker_server_t* self) {
  int64_t until_ns = rn_loop_now(self->loop) + rn_ds_from_ms(self->config.dispatcher_timeout_ms);
  rn_status_t status = heartbeat(self);
  while (rn_ds_is_preempted(status) && !self->is_closing && rn_loop_now(self->loop) < until_ns) {
    rn_status_free(status);
    rn_ds_pause(rn_loop_now(self->loop) + RETRY_NS);
    status = heartbeat(self);
  }
  if (!rn_ok(status)) return status;
  rn_mutex_lock(&self->mutex);
  self->is_registered = true;
  status = rn_loop_set_timer(
      self->loop, &self->timer,
      rn_loop_now(self->loop) + rn_ds_from_ms(self->config.heartbeat_interval_ms));
  rn_mutex_unlock(&self->mutex);
  return status;
}

void rn_ds_worker_close(rn_ds_worker_server_t* self) {
  if (!self) return;
  rn_mutex_lock(&self->mutex);
  self->is_closing = true;
  rn_mutex_unlock(&self->mutex);
  rn_loop_clear_timer(self->loop, &self->timer);
  rn_cancel(&self->stop);
  rn_pool_destroy(self->pool);
  self->pool = NULL;
  rn_loop_clear_timer(self->loop, &self->timer);
  // A worker that is closing takes no tasks, and the pool alone deletes them: the list is at rest.
  for (size_t i = 0; i < self->tasks.count; ++i) {
    rn_ds_runner_stop(self->tasks.items[i].runner);
    self->tasks.items[i].runner = NULL;
  }
}

void rn_ds_worker_destroy(rn_ds_worker_server_t* self) {
  if (!self) return;
  rn_ds_worker_close(self);
  for (size_t i = 0; i < self->tasks.count; ++i) free_task(self, &self->tasks.items[i]);
  rn_channel_destroy(self->dispatcher);
  rn_vec_free(&self->tasks, self->allocator);
  rn_vec_free(&self->finished, self->allocator);
  rn_vec_free(&self->deleted, self->allocator);
  rn_vec_free(&self->completed, self->allocator);
  rn_cancel_destroy(&self->stop);
  rn_mutex_destroy(&self->mutex);
  rn_arena_clear(&self->arena);
  RN_FREE(self->allocator, self);
}

int64_t rn_ds_worker_tasks(rn_ds_worker_server_t* self) {
  rn_mutex_lock(&self->mutex);
  int64_t count = (int64_t)self->tasks.count;
  rn_mutex_unlock(&self->mutex);
  return count;
}
