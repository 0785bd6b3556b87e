// The service for eager clients: see service.h. This file has the calls with one answer, and the
// service's life.
#include "dist/eager/service.h"

#include "base/container.h"
#include "dist/eager/service_internal.h"
#include "proto/eager_service.pb.h"

#define PREFIX "/tensorflow.eager.EagerService/"
#define MAX_CALLS 1000  // with a thread

typedef struct eager_service_handling_t {
  rn_job_t job;
  rn_eager_service_t* service;
  rn_rpc_in_t* call;
  rn_eager_method_t* method;  // NULL: a part of a function
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

void rn_eager_service_end_call(rn_eager_service_t* service) {
  rn_mutex_lock(&service->mutex);
  service->calls--;
  rn_cond_broadcast(&service->changed);
  rn_mutex_unlock(&service->mutex);
}

void rn_eager_service_reply(rn_rpc_in_t* call, rn_status_t status, rn_str_t response) {
  rn_message_t message;
  rn_message_init(&message, call->stream.message.allocator);
  if (rn_ok(status) && response.size) status = rn_message_add(&message, response);
  rn_rpc_reply(call, status, &message);
}

rn_status_t rn_eager_service_no_thread(void) {
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
  rn_eager_service_end_call(service);
}

static void on_part(rn_eager_part_t* part, rn_status_t status, rn_str_t response) {
  eager_service_handling_t* h = RN_CONTAINER_OF(part, eager_service_handling_t, part);
  rn_eager_service_t* service = h->service;
  rn_eager_context_t* context = h->context;
  rn_rpc_in_t* call = h->call;
  RN_FREE(service->options.allocator, h);
  rn_eager_service_reply(call, status, response);
  rn_eager_context_release(context);
  rn_eager_service_end_call(service);
}

static void run_part(rn_job_t* job) {
  eager_service_handling_t* h = RN_CONTAINER_OF(job, eager_service_handling_t, job);
  h->part = (rn_eager_part_t){.message = &h->call->stream.message, .done = on_part};
  rn_status_t status =
      rn_eager_service_find(h->service, &h->call->stream.message,
                            rn_pb_eager_RunComponentFunctionRequest_context_id_field, &h->context);
  if (rn_ok(status))
    rn_eager_context_run_part(h->context, &h->part);
  else
    on_part(&h->part, status, RN_STR(""));
}

// --- The door

static const struct {
  const char* name;
  rn_eager_method_t* method;
} methods[] = {{"Enqueue", rn_eager_service_enqueue},
               {"CreateContext", rn_eager_service_create_context},
               {"UpdateContext", rn_eager_service_update_context},
               {"CloseContext", rn_eager_service_close_context},
               {"KeepAlive", rn_eager_service_keep_alive},
               {"WaitQueueDone", rn_eager_service_wait_queue},
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
  return rn_eager_service_no_thread();
}

void rn_eager_service_handle(rn_eager_service_t* service, rn_rpc_in_t* call) {
  if (!begin_call(service)) {
    rn_eager_service_reply(
        call, rn_unavailable("Too many eager calls are running, or the task is shutting down"),
        RN_STR(""));
    return;
  }
  rn_status_t status = rn_eager_service_streams(rn_rpc_path(call))
                           ? rn_eager_service_start_stream(service, call)
                           : start_unary(service, call);
  if (rn_ok(status)) return;
  rn_eager_service_reply(call, status, RN_STR(""));
  rn_eager_service_end_call(service);
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
  service->timer.fn = rn_eager_service_on_timer;
  service->collection.run = rn_eager_service_collect;
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
  while ((context = rn_eager_service_take_expired(service, INT64_MAX, &next)))
    rn_eager_service_end_context(context);
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
