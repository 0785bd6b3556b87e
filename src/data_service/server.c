// Servers of the tf.data service: see server.h.
#include "data_service/server.h"

#include <stdio.h>

#include "base/sync.h"
#include "data_service/dispatcher.h"
#include "data_service/worker.h"
#include "net/tensor_codec.h"
#include "wire/decode.h"

#define MAX_MESSAGE ((size_t)2 << 30)

struct rn_ds_server_t {
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_rpc_server_t* rpc;
  rn_ds_dispatcher_t* dispatcher;  // one of the two
  rn_ds_worker_server_t* worker;
  int port;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t cond;
  bool is_stopping, is_stopped;
};

static rn_status_t open_port(rn_ds_server_t* self, const char* host, int64_t port) {
  char address[300];
  if (port < 0 || port > 65535) return rn_invalid_argument("%lld is no port", (long long)port);
  int size = snprintf(address, sizeof address, "%s:%d", host, (int)port);
  if (size >= (int)sizeof address) return rn_invalid_argument("The host's name is too long");
  rn_rpc_server_options_t options = {
      .loop = self->loop,
      .allocator = self->allocator,
      .address = address,
      .handle = self->dispatcher ? rn_ds_dispatcher_handle : rn_ds_worker_handle,
      .self = self->dispatcher ? (void*)self->dispatcher : (void*)self->worker,
      .max_message = MAX_MESSAGE,
      .starts_later = true};
  RN_RETURN_IF_ERROR(rn_rpc_server_create(&options, &self->rpc));
  self->port = rn_rpc_server_port(self->rpc);
  return self->worker ? rn_ds_worker_set_port(self->worker, self->port) : RN_OK;
}

static rn_status_t make(rn_ds_server_t* self, bool is_dispatcher, rn_str_t config, const char* host,
                        const rn_env_t* env, rn_arena_t* arena) {
  RN_RETURN_IF_ERROR(rn_loop_create(env, self->allocator, &self->loop));
  if (is_dispatcher) {
    rn_pb_data_experimental_DispatcherConfig_t* message = NULL;
    RN_RETURN_IF_ERROR(
        RN_PB_DECODE(data_experimental_DispatcherConfig, config, NULL, arena, &message));
    RN_RETURN_IF_ERROR(
        rn_ds_dispatcher_create(env, self->allocator, self->loop, message, &self->dispatcher));
    return open_port(self, host, message->port);
  }
  rn_pb_data_experimental_WorkerConfig_t* message = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(data_experimental_WorkerConfig, config, NULL, arena, &message));
  RN_RETURN_IF_ERROR(rn_ds_worker_create(env, self->allocator, self->loop, message, &self->worker));
  return open_port(self, host, message->port);
}

rn_status_t rn_ds_server_create(bool is_dispatcher, rn_str_t config, const char* host,
                                const rn_env_t* env, rn_allocator_t allocator,
                                rn_ds_server_t** out) {
  *out = NULL;
  rn_ds_server_t* self = NULL;
  rn_arena_t arena;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &self));
  self->allocator = allocator;
  rn_mutex_init(&self->mutex);
  rn_cond_init(&self->cond);
  rn_arena_init(&arena, allocator);
  rn_status_t status = make(self, is_dispatcher, config, host, env, &arena);
  rn_arena_clear(&arena);
  if (!rn_ok(status)) {
    rn_ds_server_destroy(self);
    return status;
  }
  *out = self;
  return RN_OK;
}

rn_status_t rn_ds_server_start(rn_ds_server_t* self) {
  RN_RETURN_IF_ERROR(rn_rpc_server_start(self->rpc));
  return self->worker ? rn_ds_worker_start(self->worker) : RN_OK;
}

void rn_ds_server_stop(rn_ds_server_t* self) {
  rn_mutex_lock(&self->mutex);
  bool is_first = !self->is_stopping;
  self->is_stopping = true;
  rn_mutex_unlock(&self->mutex);
  if (!is_first) {
    rn_ds_server_join(self);
    return;
  }
  rn_ds_dispatcher_close(self->dispatcher);
  rn_ds_worker_close(self->worker);
  rn_rpc_server_destroy(self->rpc);
  self->rpc = NULL;
  rn_mutex_lock(&self->mutex);
  self->is_stopped = true;
  rn_cond_broadcast(&self->cond);
  rn_mutex_unlock(&self->mutex);
}

void rn_ds_server_join(rn_ds_server_t* self) {
  rn_mutex_lock(&self->mutex);
  while (!self->is_stopped) rn_cond_wait(&self->cond, &self->mutex);
  rn_mutex_unlock(&self->mutex);
}

int rn_ds_server_port(const rn_ds_server_t* self) { return self->port; }

int64_t rn_ds_server_active(rn_ds_server_t* self) {
  return self->dispatcher ? rn_ds_dispatcher_workers(self->dispatcher)
                          : rn_ds_worker_tasks(self->worker);
}

void rn_ds_server_destroy(rn_ds_server_t* self) {
  if (!self) return;
  rn_ds_server_stop(self);
  rn_ds_dispatcher_destroy(self->dispatcher);
  rn_ds_worker_destroy(self->worker);
  rn_loop_destroy(self->loop);
  rn_cond_destroy(&self->cond);
  rn_mutex_destroy(&self->mutex);
  RN_FREE(self->allocator, self);
}
