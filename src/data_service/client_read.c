// How a client of the tf.data service reads from workers: element by element, or in rounds.
#include "data_service/client_internal.h"
#include "proto/data_service.pb.h"
#include "wire/encode.h"
#include "wire/scan.h"

#define ELEMENT_NS (24 * 60 * RN_DC_CALL_NS)  // an element may take long

// Asks the worker of |task| for one element. False if there is none: the task has ended, is to be
// asked again later, or the client is closed. Without the lock.
static bool get_element(rn_dc_task_t* task, int64_t round, rn_dc_result_t* out, bool* out_is_lost) {
  rn_data_client_t* self = task->client;
  rn_pb_data_GetElementRequest_t message = {.task_id = task->id,
                                            .trainer_id = self->options.trainer_id};
  if (rn_dc_is_coordinated(self)) {
    message.optional_consumer_index_case = rn_pb_data_GetElementRequest_consumer_index_field;
    message.consumer_index = self->options.consumer_index;
    message.optional_round_index_case = rn_pb_data_GetElementRequest_round_index_field;
    message.round_index = round;
  }
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, self->options.allocator);
  rn_strbuf_init(&response, self->options.allocator);
  *out = (rn_dc_result_t){0};
  *out_is_lost = false;
  out->status = RN_PB_ENCODE(data_GetElementRequest, &message, NULL, &request);
  if (rn_ok(out->status))
    out->status = rn_ds_ask(task->channel, self->loop, self->options.allocator,
                            "/tensorflow.data.WorkerService/GetElement", rn_strbuf_view(&request),
                            ELEMENT_NS, &self->stop, &response);
  bool is_there = true;
  rn_str_t view = rn_strbuf_view(&response);
  if (rn_ds_is_preempted(out->status)) {
    rn_status_free(out->status);
    out->status = RN_OK;
    *out_is_lost = true;
    is_there = false;
  } else if (rn_ok(out->status) && rn_field_value(view, RN_DS_ELEMENT_END)) {
    is_there = false;
    rn_mutex_lock(&self->mutex);
    task->is_ended = true;
    rn_cond_broadcast(&self->changed);
    rn_mutex_unlock(&self->mutex);
  } else if (rn_ok(out->status) && rn_field_value(view, RN_DS_ELEMENT_SKIP)) {
    is_there = false;
  } else if (rn_ok(out->status)) {
    out->status = rn_buffer_create(self->options.allocator, RN_UINT8, view.size, &out->bytes);
    if (rn_ok(out->status) && view.size) memcpy(out->bytes->data, view.data, view.size);
  }
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  return is_there;
}

static bool has_room(const rn_data_client_t* self) {
  int64_t most = self->options.max_outstanding;
  if (most < 1) most = 2 * (int64_t)self->tasks.count;
  return self->in_flight + (int64_t)self->results.count < most;
}

// A thread per task, first come, first served.
void* rn_dc_read_task(void* arg) {
  rn_dc_task_t* task = arg;
  rn_data_client_t* self = task->client;
  int64_t wait_ns = RN_DC_FIRST_RETRY_NS;
  rn_mutex_lock(&self->mutex);
  while (!self->is_closed && !task->is_ended && task->is_listed) {
    if (!has_room(self)) {
      rn_cond_wait(&self->changed, &self->mutex);
      continue;
    }
    self->in_flight++;
    rn_mutex_unlock(&self->mutex);
    rn_dc_result_t result;
    bool is_lost = false, is_there = get_element(task, 0, &result, &is_lost);
    rn_mutex_lock(&self->mutex);
    self->in_flight--;
    if (is_there) {
      wait_ns = RN_DC_FIRST_RETRY_NS;
      rn_dc_add_result(self, result);
    } else if (is_lost) {
      rn_dc_pause_locked(self, wait_ns);
      wait_ns = wait_ns * 2 < RN_DC_LAST_RETRY_NS ? wait_ns * 2 : RN_DC_LAST_RETRY_NS;
    }
    rn_cond_broadcast(&self->changed);
  }
  task->is_running = false;
  rn_cond_broadcast(&self->changed);
  rn_mutex_unlock(&self->mutex);
  rn_dc_release(self);
  return NULL;
}

// Coordinated: a round asks each task once, in their order.
static bool remove_lost(rn_dc_task_t* task, int64_t round) {
  rn_data_client_t* self = task->client;
  rn_pb_data_MaybeRemoveTaskRequest_t message = {
      .task_id = task->id, .consumer_index = self->options.consumer_index, .round = round};
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, self->options.allocator);
  rn_strbuf_init(&response, self->options.allocator);
  rn_status_t status = RN_PB_ENCODE(data_MaybeRemoveTaskRequest, &message, NULL, &request);
  if (rn_ok(status))
    status = rn_dc_ask_dispatcher(self, RN_DC_DISPATCHER "MaybeRemoveTask",
                                  rn_strbuf_view(&request), &response);
  bool is_removed =
      rn_ok(status) &&
      rn_field_value(rn_strbuf_view(&response), rn_pb_data_MaybeRemoveTaskResponse_removed_field);
  rn_status_free(status);
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  return is_removed;
}

// One task's turn in the round. With the lock, which it releases meanwhile.
static void take_turn(rn_data_client_t* self, rn_dc_task_t* task) {
  bool is_over = false;
  while (!is_over && !self->is_closed && !task->is_ended && task->is_listed) {
    if (self->results.count >= 1) {
      rn_cond_wait(&self->changed, &self->mutex);
      continue;
    }
    int64_t round = self->round;
    rn_mutex_unlock(&self->mutex);
    rn_dc_result_t result;
    bool is_lost = false, is_there = get_element(task, round, &result, &is_lost);
    bool is_removed = is_lost && remove_lost(task, round);
    rn_mutex_lock(&self->mutex);
    if (is_there) rn_dc_add_result(self, result);
    if (is_removed) task->is_ended = true;
    if (is_lost && !is_removed) rn_dc_pause_locked(self, RN_DC_FIRST_RETRY_NS);
    is_over = is_there || !is_lost;
  }
}

void* rn_dc_read_rounds(void* arg) {
  rn_data_client_t* self = arg;
  rn_mutex_lock(&self->mutex);
  while (!self->is_closed) {
    // All consumers wait before the round in which a new task joins.
    self->is_blocked = self->block_round >= 0 && self->round >= self->block_round;
    bool has_turn = false;
    for (size_t i = 0; !self->is_blocked && i < self->tasks.count && !self->is_closed; ++i) {
      rn_dc_task_t* task = self->tasks.items[i];
      if (task->is_ended || !task->is_listed || task->starting_round > self->round) continue;
      has_turn = true;
      take_turn(self, task);
    }
    if (has_turn)
      self->round++;
    else
      rn_cond_wait(&self->changed, &self->mutex);
  }
  rn_mutex_unlock(&self->mutex);
  rn_dc_release(self);
  return NULL;
}
