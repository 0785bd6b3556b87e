// Splits from the dispatcher, for a worker's datasets: see framework/data_service.h. One thread
// asks, one question at a time.
#include <pthread.h>

#include "base/sync.h"
#include "data_service/ask.h"
#include "framework/data_service.h"
#include "proto/data_service.pb.h"
#include "proto/tensor.pb.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"

#define CALL_NS (60 * (int64_t)1000000000)
#define RETRY_NS 100000000

struct rn_data_splits_t {
  _Atomic int refs;
  rn_allocator_t allocator;
  char* address;  // Owned
  size_t address_size;
  int64_t iteration_id, source;
  void (*closed)(void* self);
  void* self;
  rn_loop_t* loop;
  rn_channel_t* channel;
  rn_cancel_t stop;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  bool is_closed;
  rn_data_split_t* asked;
};

static void release(rn_data_splits_t* self) {
  if (--self->refs > 0) return;
  rn_channel_destroy(self->channel);
  rn_loop_destroy(self->loop);
  rn_cancel_destroy(&self->stop);
  rn_cond_destroy(&self->changed);
  rn_mutex_destroy(&self->mutex);
  if (self->address) rn_free(self->allocator, self->address, self->address_size + 1);
  void (*closed)(void*) = self->closed;
  void* owner = self->self;
  RN_FREE(self->allocator, self);
  if (closed) closed(owner);
}

static rn_status_t read_split(rn_data_splits_t* self, rn_str_t response, rn_data_split_t* split) {
  rn_arena_t arena;
  rn_arena_init(&arena, self->allocator);
  rn_pb_data_GetSplitResponse_t* message = NULL;
  rn_tensor_t value = {0};
  rn_status_t status = RN_PB_DECODE(data_GetSplitResponse, response, NULL, &arena, &message);
  if (rn_ok(status)) split->is_end = message->end_of_splits;
  if (rn_ok(status) && !split->is_end) {
    status = message->split ? rn_tensor_from_proto(message->split, 1 << 10, self->allocator, &value)
                            : rn_internal("The dispatcher gave no split");
    if (rn_ok(status) && (value.dtype != RN_INT64 || value.count != 1))
      status = rn_unimplemented("Runnel's workers know splits that are one integer only");
    if (rn_ok(status)) split->value = *RN_DATA(&value, const int64_t);
    rn_tensor_clear(&value);
  }
  rn_arena_clear(&arena);
  return status;
}

// Asks until the dispatcher answers, or the owner closes.
static rn_status_t get_split(rn_data_splits_t* self, rn_data_split_t* split) {
  rn_pb_data_GetSplitRequest_t message = {.iteration_id = self->iteration_id,
                                          .repetition = split->repetition,
                                          .split_provider_index = self->source};
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, self->allocator);
  rn_strbuf_init(&response, self->allocator);
  rn_status_t status = RN_PB_ENCODE(data_GetSplitRequest, &message, NULL, &request);
  bool asks = rn_ok(status);
  while (asks) {
    response.size = 0;
    status = rn_ds_ask(self->channel, self->loop, self->allocator,
                       "/tensorflow.data.DispatcherService/GetSplit", rn_strbuf_view(&request),
                       CALL_NS, &self->stop, &response);
    rn_mutex_lock(&self->mutex);
    asks = rn_ds_is_preempted(status) && !self->is_closed;
    int64_t until_ns = rn_loop_now(self->loop) + RETRY_NS;
    while (asks && !self->is_closed && rn_cond_wait_until(&self->changed, &self->mutex, until_ns)) {
    }
    rn_mutex_unlock(&self->mutex);
    if (asks) rn_status_free(status);
  }
  if (rn_ok(status)) status = read_split(self, rn_strbuf_view(&response), split);
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  return status;
}

static void* run(void* arg) {
  rn_data_splits_t* self = arg;
  rn_mutex_lock(&self->mutex);
  for (;;) {
    while (!self->asked && !self->is_closed) rn_cond_wait(&self->changed, &self->mutex);
    rn_data_split_t* split = self->asked;
    if (!split) break;
    rn_mutex_unlock(&self->mutex);
    split->status = get_split(self, split);
    rn_mutex_lock(&self->mutex);
    self->asked = NULL;
    rn_mutex_unlock(&self->mutex);
    split->done(split);
    rn_mutex_lock(&self->mutex);
  }
  rn_mutex_unlock(&self->mutex);
  release(self);
  return NULL;
}

static rn_status_t connect(rn_data_splits_t* self, const rn_env_t* env, rn_str_t address) {
  RN_RETURN_IF_ERROR(rn_str_dup(self->allocator, address, &self->address));
  self->address_size = address.size;
  RN_RETURN_IF_ERROR(rn_loop_create(env, self->allocator, &self->loop));
  rn_channel_options_t options = {
      .loop = self->loop, .allocator = self->allocator, .address = self->address};
  RN_RETURN_IF_ERROR(rn_channel_create(&options, &self->channel));
  pthread_t thread;
  self->refs++;
  if (pthread_create(&thread, NULL, run, self) != 0) {
    self->refs--;
    return rn_resource_exhausted("The thread that asks for splits cannot be started");
  }
  pthread_detach(thread);
  return RN_OK;
}

rn_status_t rn_data_splits_open(const rn_env_t* env, rn_allocator_t allocator, rn_str_t address,
                                int64_t iteration_id, int64_t source, void (*closed)(void* self),
                                void* owner, rn_data_splits_t** out) {
  *out = NULL;
  rn_data_splits_t* self = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &self));
  self->refs = 1;
  self->allocator = allocator;
  self->iteration_id = iteration_id;
  self->source = source;
  rn_cancel_init(&self->stop);
  rn_mutex_init(&self->mutex);
  rn_cond_init(&self->changed);
  rn_status_t status = connect(self, env, address);
  if (!rn_ok(status)) {
    release(self);
    return status;
  }
  self->closed = closed;
  self->self = owner;
  *out = self;
  return RN_OK;
}

void rn_data_splits_next(rn_data_splits_t* self, rn_data_split_t* split) {
  split->is_end = false;
  rn_mutex_lock(&self->mutex);
  bool is_closed = self->is_closed;
  if (!is_closed) self->asked = split;
  rn_cond_broadcast(&self->changed);
  rn_mutex_unlock(&self->mutex);
  if (!is_closed) return;
  split->status = rn_cancelled("The iterator was closed");
  split->done(split);
}

void rn_data_splits_close(rn_data_splits_t* self) {
  if (!self) return;
  rn_mutex_lock(&self->mutex);
  self->is_closed = true;
  rn_cond_broadcast(&self->changed);
  rn_mutex_unlock(&self->mutex);
  rn_cancel(&self->stop);
  release(self);
}
