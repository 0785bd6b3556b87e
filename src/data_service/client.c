// The client's end of the tf.data service: see framework/data_service.h.
//
// One thread talks to the dispatcher. One thread per task asks its worker for elements, one at a
// time; in a coordinated job a single thread asks all workers in turn. Threads and the owner hold
// references: the last one frees the client, so that any of them may drop it.
#include "data_service/client_internal.h"

#include <pthread.h>

#include "net/tensor_codec.h"
#include "proto/data_service.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define LEAVE_NS (2 * (int64_t)1000000000)
#define END_NS 20000000  // between questions whether the iteration has ended
#define MAX_TASKS 100000

void rn_dc_release(rn_data_client_t* self) {
  if (--self->refs > 0) return;
  for (size_t i = 0; i < self->tasks.count; ++i) {
    rn_channel_destroy(self->tasks.items[i]->channel);
    RN_FREE(self->options.allocator, self->tasks.items[i]);
  }
  rn_channel_destroy(self->dispatcher);
  rn_loop_destroy(self->loop);
  for (size_t i = 0; i < self->results.count; ++i) {
    rn_buffer_release(self->results.items[i].bytes);
    rn_status_free(self->results.items[i].status);
  }
  rn_vec_free(&self->results, self->options.allocator);
  rn_vec_free(&self->tasks, self->options.allocator);
  rn_cancel_destroy(&self->stop);
  rn_cond_destroy(&self->changed);
  rn_mutex_destroy(&self->mutex);
  rn_arena_clear(&self->arena);
  void (*closed)(void*) = self->options.closed;
  void* owner = self->options.self;
  RN_FREE(self->options.allocator, self);
  if (closed) closed(owner);
}

rn_status_t rn_dc_start_thread(rn_data_client_t* self, void* (*run)(void*), void* arg) {
  pthread_t thread;
  self->refs++;
  if (pthread_create(&thread, NULL, run, arg) != 0) {
    self->refs--;
    return rn_resource_exhausted("A thread of the tf.data service's client cannot be started");
  }
  pthread_detach(thread);
  return RN_OK;
}

// Results.
void rn_data_fetch_clear(rn_data_fetch_t* fetch) {
  for (int32_t i = 0; i < fetch->count; ++i) rn_tensor_clear(&fetch->tensors[i]);
  RN_FREE_ARRAY(fetch->allocator, fetch->tensors, fetch->count);
  rn_buffer_release(fetch->bytes);
  fetch->bytes = NULL;
  fetch->tensors = NULL;
  fetch->count = 0;
  fetch->compressed = RN_STR("");
}

static rn_status_t take_tensors(rn_data_client_t* self, rn_str_t element, rn_buffer_t* buffer,
                                rn_data_fetch_t* fetch) {
  rn_pb_field_t field;
  int32_t count = 0;
  for (rn_pb_scan_t scan = rn_pb_scan(element); rn_pb_scan_next(&scan, &field);)
    count += field.number == rn_pb_data_UncompressedElement_components_field;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(self->options.allocator, (size_t)count, &fetch->tensors));
  fetch->count = count;
  int32_t i = 0;
  rn_pb_scan_t scan = rn_pb_scan(element);
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_data_UncompressedElement_components_field) continue;
    if (field.wire != RN_PB_WIRE_LENGTH) return rn_internal("A worker's element is damaged");
    RN_RETURN_IF_ERROR(rn_decode_tensor(field.bytes, buffer, RN_TENSOR_ANY_SIZE,
                                        self->options.allocator, &fetch->tensors[i++]));
  }
  return scan.is_bad ? rn_internal("A worker's element is damaged") : RN_OK;
}

// Fills |fetch| from the first result, if there is one, or at the end. Under the lock.
static bool take_result(rn_data_client_t* self, rn_data_fetch_t* fetch) {
  fetch->status = RN_OK;
  fetch->is_end = false;
  fetch->allocator = self->options.allocator;
  fetch->bytes = NULL;
  fetch->tensors = NULL;
  fetch->count = 0;
  fetch->compressed = RN_STR("");
  if (!self->results.count) {
    if (self->is_closed) fetch->status = rn_cancelled("The iterator was closed");
    fetch->is_end = self->is_at_end;
    return self->is_at_end || self->is_closed;
  }
  rn_dc_result_t result = self->results.items[0];
  memmove(self->results.items, self->results.items + 1,
          --self->results.count * sizeof *self->results.items);
  rn_cond_broadcast(&self->changed);
  fetch->status = result.status;
  if (!rn_ok(result.status)) return true;
  rn_str_t message = rn_str_n(result.bytes->data, result.bytes->size);
  fetch->bytes = result.bytes;
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  bool is_compressed = false;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == RN_DS_ELEMENT_COMPRESSED && field.wire == RN_PB_WIRE_LENGTH) {
      is_compressed = true;
      fetch->compressed = field.bytes;
    }
  if (!is_compressed)
    fetch->status = take_tensors(self, rn_field_bytes(message, RN_DS_ELEMENT_UNCOMPRESSED),
                                 result.bytes, fetch);
  if (!rn_ok(fetch->status)) rn_data_fetch_clear(fetch);
  return true;
}

// Tells the waiting requester, if there is something for it. Called with the lock, which it
// releases and takes again around the requester's function.
static void wake(rn_data_client_t* self) {
  rn_data_fetch_t* fetch = self->waiting;
  if (!fetch || !take_result(self, fetch)) return;
  self->waiting = NULL;
  rn_mutex_unlock(&self->mutex);
  fetch->done(fetch);
  rn_mutex_lock(&self->mutex);
}

void rn_dc_add_result(rn_data_client_t* self, rn_dc_result_t result) {
  rn_status_t status = rn_vec_push(&self->results, self->options.allocator, result);
  if (!rn_ok(status)) {  // there is no memory to say so either: the element is lost
    rn_buffer_release(result.bytes);
    rn_status_free(result.status);
    rn_status_free(status);
  }
  wake(self);
}

bool rn_data_client_next(rn_data_client_t* self, rn_data_fetch_t* fetch) {
  rn_mutex_lock(&self->mutex);
  bool is_done = take_result(self, fetch);
  if (!is_done) self->waiting = fetch;
  rn_mutex_unlock(&self->mutex);
  return is_done;
}

// Calls.
void rn_dc_pause_locked(rn_data_client_t* self, int64_t ns) {
  int64_t until_ns = rn_loop_now(self->loop) + ns;
  while (!self->is_closed && rn_cond_wait_until(&self->changed, &self->mutex, until_ns)) {
  }
}

rn_status_t rn_dc_ask_dispatcher(rn_data_client_t* self, const char* path, rn_str_t request,
                                 rn_strbuf_t* out) {
  int64_t wait_ns = RN_DC_FIRST_RETRY_NS;
  for (;;) {
    out->size = 0;
    rn_status_t status = rn_ds_ask(self->dispatcher, self->loop, self->options.allocator, path,
                                   request, RN_DC_CALL_NS, &self->stop, out);
    rn_mutex_lock(&self->mutex);
    bool ends = self->is_closed || !rn_ds_is_preempted(status);
    if (!ends) rn_dc_pause_locked(self, wait_ns);
    rn_mutex_unlock(&self->mutex);
    if (ends) return status;
    rn_status_free(status);
    wait_ns = wait_ns * 2 < RN_DC_LAST_RETRY_NS ? wait_ns * 2 : RN_DC_LAST_RETRY_NS;
  }
}

// The thread that talks to the dispatcher.
static rn_status_t add_task(rn_data_client_t* self, const rn_pb_data_TaskInfo_t* info) {
  rn_dc_task_t* task = NULL;
  if (self->tasks.count >= MAX_TASKS) return rn_resource_exhausted("There are too many tasks");
  rn_str_t address;
  RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, info->worker_address, &address));
  RN_RETURN_IF_ERROR(RN_NEW(self->options.allocator, &task));
  *task = (rn_dc_task_t){.client = self,
                         .id = info->task_id,
                         .starting_round = info->starting_round,
                         .is_listed = true,
                         .is_running = true};
  rn_channel_options_t options = {
      .loop = self->loop, .allocator = self->options.allocator, .address = address.data};
  rn_status_t status = rn_channel_create(&options, &task->channel);
  if (rn_ok(status)) status = rn_vec_push(&self->tasks, self->options.allocator, task);
  if (!rn_ok(status)) {
    rn_channel_destroy(task->channel);
    RN_FREE(self->options.allocator, task);
    return status;
  }
  if (rn_dc_is_coordinated(self)) return RN_OK;
  status = rn_dc_start_thread(self, rn_dc_read_task, task);
  if (!rn_ok(status)) task->is_running = false;
  return status;
}

// Under the lock.
static rn_status_t take_tasks(rn_data_client_t* self,
                              const rn_pb_data_ClientHeartbeatResponse_t* response) {
  for (size_t i = 0; i < self->tasks.count; ++i) self->tasks.items[i]->is_listed = false;
  for (size_t k = 0; k < response->task_info.count; ++k) {
    const rn_pb_data_TaskInfo_t* info = &response->task_info.items[k];
    bool is_known = false;
    for (size_t i = 0; i < self->tasks.count && !is_known; ++i)
      if (self->tasks.items[i]->id == info->task_id)
        is_known = self->tasks.items[i]->is_listed = true;
    if (!is_known) RN_RETURN_IF_ERROR(add_task(self, info));
  }
  self->is_finished = response->iteration_finished;
  self->block_round = response->optional_block_round_case ? response->block_round : -1;
  rn_cond_broadcast(&self->changed);
  return RN_OK;
}

static rn_status_t heartbeat(rn_data_client_t* self, int64_t client_id) {
  rn_pb_data_ClientHeartbeatRequest_t message = {.iteration_client_id = client_id};
  rn_strbuf_t request, response;
  rn_arena_t arena;
  rn_strbuf_init(&request, self->options.allocator);
  rn_strbuf_init(&response, self->options.allocator);
  rn_arena_init(&arena, self->options.allocator);
  rn_mutex_lock(&self->mutex);
  if (rn_dc_is_coordinated(self)) {
    message.optional_current_round_case = rn_pb_data_ClientHeartbeatRequest_current_round_field;
    message.current_round = self->is_blocked ? self->round - 1 : self->round;
    if (self->is_blocked) {
      message.optional_blocked_round_case = rn_pb_data_ClientHeartbeatRequest_blocked_round_field;
      message.blocked_round = self->round;
    }
  }
  rn_mutex_unlock(&self->mutex);
  rn_pb_data_ClientHeartbeatResponse_t* answer = NULL;
  rn_status_t status = RN_PB_ENCODE(data_ClientHeartbeatRequest, &message, NULL, &request);
  if (rn_ok(status))
    status = rn_dc_ask_dispatcher(self, RN_DC_DISPATCHER "ClientHeartbeat",
                                  rn_strbuf_view(&request), &response);
  if (rn_ok(status))
    status = RN_PB_DECODE(data_ClientHeartbeatResponse, rn_strbuf_view(&response), NULL, &arena,
                          &answer);
  if (rn_ok(status)) {
    rn_mutex_lock(&self->mutex);
    status = take_tasks(self, answer);
    rn_mutex_unlock(&self->mutex);
  }
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  rn_arena_clear(&arena);
  return status;
}

static bool all_ended(const rn_data_client_t* self) {
  for (size_t i = 0; i < self->tasks.count; ++i)
    if (self->tasks.items[i]->is_listed && !self->tasks.items[i]->is_ended) return false;
  return true;
}

static rn_status_t join_job(rn_data_client_t* self, int64_t* out_client_id) {
  rn_arena_t arena;
  rn_strbuf_t request, response;
  rn_arena_init(&arena, self->options.allocator);
  rn_strbuf_init(&request, self->options.allocator);
  rn_strbuf_init(&response, self->options.allocator);
  rn_pb_data_ProcessingModeDef_t* mode = NULL;
  rn_pb_data_GetOrCreateJobRequest_t job = {
      .dataset_id = self->options.dataset_id,
      .use_cross_trainer_cache = self->options.trainer_id.size > 0,
      .target_workers = (rn_pb_data_TargetWorkers_t)self->options.target_workers};
  if (self->options.job_name.size) {
    job.optional_job_name_case = rn_pb_data_GetOrCreateJobRequest_job_name_field;
    job.job_name = self->options.job_name;
  }
  if (rn_dc_is_coordinated(self)) {
    job.optional_num_consumers_case = rn_pb_data_GetOrCreateJobRequest_num_consumers_field;
    job.num_consumers = self->options.num_consumers;
  }
  rn_status_t status =
      RN_PB_DECODE(data_ProcessingModeDef, self->options.processing_mode, NULL, &arena, &mode);
  job.processing_mode_def = mode;
  if (rn_ok(status)) status = RN_PB_ENCODE(data_GetOrCreateJobRequest, &job, NULL, &request);
  if (rn_ok(status))
    status = rn_dc_ask_dispatcher(self, RN_DC_DISPATCHER "GetOrCreateJob", rn_strbuf_view(&request),
                                  &response);
  if (rn_ok(status)) {
    rn_pb_data_GetOrCreateIterationRequest_t iteration = {
        .job_id = (int64_t)rn_field_value(rn_strbuf_view(&response),
                                          rn_pb_data_GetOrCreateJobResponse_job_id_field),
        .repetition = self->options.repetition};
    request.size = 0;
    status = RN_PB_ENCODE(data_GetOrCreateIterationRequest, &iteration, NULL, &request);
  }
  if (rn_ok(status))
    status = rn_dc_ask_dispatcher(self, RN_DC_DISPATCHER "GetOrCreateIteration",
                                  rn_strbuf_view(&request), &response);
  if (rn_ok(status))
    *out_client_id =
        (int64_t)rn_field_value(rn_strbuf_view(&response),
                                rn_pb_data_GetOrCreateIterationResponse_iteration_client_id_field);
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  rn_arena_clear(&arena);
  return status;
}

static void leave_job(rn_data_client_t* self, int64_t client_id) {
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, self->options.allocator);
  rn_strbuf_init(&response, self->options.allocator);
  rn_pb_put_uint(&request, rn_pb_data_ReleaseIterationClientRequest_iteration_client_id_field,
                 (uint64_t)client_id);
  rn_status_free(rn_ds_ask(self->dispatcher, self->loop, self->options.allocator,
                           RN_DC_DISPATCHER "ReleaseIterationClient", rn_strbuf_view(&request),
                           LEAVE_NS, NULL, &response));
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
}

static rn_status_t manage(rn_data_client_t* self, int64_t client_id) {
  int64_t refresh_ns =
      rn_ds_from_ms(self->options.refresh_ms > 0 ? self->options.refresh_ms : 1000);
  for (;;) {
    RN_RETURN_IF_ERROR(heartbeat(self, client_id));
    rn_mutex_lock(&self->mutex);
    bool ends = self->is_closed || (self->is_finished && all_ended(self));
    int64_t until_ns = rn_loop_now(self->loop) + refresh_ns;
    bool may_wait = !ends;
    while (may_wait && !self->is_closed && !self->is_blocked &&
           !(self->tasks.count && all_ended(self)))
      may_wait = rn_cond_wait_until(&self->changed, &self->mutex, until_ns);
    // The iteration may be about to end, or consumers to agree: ask soon.
    if (may_wait) rn_dc_pause_locked(self, END_NS);
    rn_mutex_unlock(&self->mutex);
    if (ends) return RN_OK;
  }
}

static void* run(void* arg) {
  rn_data_client_t* self = arg;
  int64_t client_id = -1;
  rn_status_t status = join_job(self, &client_id);
  if (rn_ok(status) && rn_dc_is_coordinated(self))
    status = rn_dc_start_thread(self, rn_dc_read_rounds, self);
  if (rn_ok(status)) status = manage(self, client_id);
  rn_mutex_lock(&self->mutex);
  if (!rn_ok(status)) {
    rn_dc_add_result(self, (rn_dc_result_t){.status = status});
  } else {
    self->is_at_end = true;
    wake(self);
  }
  // The job is left when the owner closes, as in stock: an iterator at its end is still a client.
  while (!self->is_closed) rn_cond_wait(&self->changed, &self->mutex);
  rn_mutex_unlock(&self->mutex);
  if (client_id >= 0) leave_job(self, client_id);
  rn_dc_release(self);
  return NULL;
}

static rn_status_t copy_options(rn_data_client_t* self, const rn_data_client_options_t* from) {
  self->options = *from;
  rn_data_client_options_t* own = &self->options;
  RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, from->address, &own->address));
  RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, from->dataset_id, &own->dataset_id));
  RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, from->processing_mode, &own->processing_mode));
  RN_RETURN_IF_ERROR(rn_arena_str(&self->arena, from->job_name, &own->job_name));
  return rn_arena_str(&self->arena, from->trainer_id, &own->trainer_id);
}

rn_status_t rn_data_client_create(const rn_data_client_options_t* options, rn_data_client_t** out) {
  *out = NULL;
  rn_data_client_t* self = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &self));
  self->refs = 1;
  self->block_round = -1;
  rn_arena_init(&self->arena, options->allocator);
  rn_cancel_init(&self->stop);
  rn_mutex_init(&self->mutex);
  rn_cond_init(&self->changed);
  rn_status_t status = copy_options(self, options);
  if (rn_ok(status)) status = rn_loop_create(options->env, options->allocator, &self->loop);
  rn_channel_options_t channel = {
      .loop = self->loop, .allocator = options->allocator, .address = self->options.address.data};
  if (rn_ok(status)) status = rn_channel_create(&channel, &self->dispatcher);
  if (rn_ok(status)) status = rn_dc_start_thread(self, run, self);
  if (!rn_ok(status)) {
    self->options.closed = NULL;
    rn_dc_release(self);
    return status;
  }
  *out = self;
  return RN_OK;
}

void rn_data_client_close(rn_data_client_t* self) {
  if (!self) return;
  rn_mutex_lock(&self->mutex);
  self->is_closed = true;
  rn_cond_broadcast(&self->changed);
  wake(self);
  rn_mutex_unlock(&self->mutex);
  rn_cancel(&self->stop);
  rn_dc_release(self);
}
