// Streams of Enqueue: one thread takes the messages of each in turn. The first that fails ends it.
#include "base/container.h"
#include "dist/eager/service_internal.h"

#define MAX_WAITING 1000000  // messages per stream
#define MAX_WAITING_BYTES ((size_t)4 << 30)

typedef struct eager_stream_t {
  rn_job_t job;
  rn_eager_service_t* service;
  rn_rpc_in_t* call;
  _Atomic int refs;  // of the thread and the connection
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t came;
  RN_VEC(rn_message_t) queue;
  size_t first, bytes;       // next index in the queue; bytes of all waiting messages
  bool is_ended, is_gone;    // the client has sent all; the connection broke
  bool is_over, is_flooded;  // no more messages are accepted; too many wait
} eager_stream_t;

static void stream_release(eager_stream_t* stream) {
  if (--stream->refs > 0) return;
  rn_eager_service_t* service = stream->service;
  for (size_t i = stream->first; i < stream->queue.count; ++i)
    rn_message_clear(&stream->queue.items[i]);
  rn_vec_free(&stream->queue, service->options.allocator);
  rn_cond_destroy(&stream->came);
  rn_mutex_destroy(&stream->mutex);
  RN_FREE(service->options.allocator, stream);
}

static void on_message(rn_rpc_in_t* call, rn_message_t* message) {
  eager_stream_t* stream = call->owner;
  rn_mutex_lock(&stream->mutex);
  if (!message) {
    stream->is_ended = true;
  } else if (!stream->is_over && !stream->is_flooded) {
    size_t size = message->size;
    rn_status_t status =
        stream->queue.count - stream->first < MAX_WAITING && stream->bytes < MAX_WAITING_BYTES
            ? rn_vec_push(&stream->queue, stream->service->options.allocator, *message)
            : rn_resource_exhausted("Too many messages are waiting");
    if (rn_ok(status)) {
      rn_message_init(message, message->allocator);
      stream->bytes += size;
    }
    stream->is_flooded = !rn_ok(status);
    rn_status_free(status);
  }
  rn_cond_signal(&stream->came);
  rn_mutex_unlock(&stream->mutex);
  if (message) rn_message_clear(message);
}

static void on_gone(rn_rpc_in_t* call) {
  eager_stream_t* stream = call->owner;
  rn_mutex_lock(&stream->mutex);
  stream->is_gone = true;
  rn_cond_signal(&stream->came);
  rn_mutex_unlock(&stream->mutex);
  stream_release(stream);
}

// The next message; false if none will come.
static bool next_message(eager_stream_t* stream, rn_message_t* out) {
  rn_mutex_lock(&stream->mutex);
  while (stream->first == stream->queue.count && !stream->is_ended && !stream->is_gone &&
         !stream->is_flooded)
    rn_cond_wait(&stream->came, &stream->mutex);
  bool has = stream->first < stream->queue.count && !stream->is_gone;
  if (has) {
    *out = stream->queue.items[stream->first++];
    stream->bytes -= out->size;
    if (stream->first == stream->queue.count) stream->first = stream->queue.count = 0;
  }
  rn_mutex_unlock(&stream->mutex);
  return has;
}

static rn_status_t answer(eager_stream_t* stream, const rn_message_t* message) {
  rn_message_t response;
  rn_encoder_t encoder;
  rn_message_init(&response, stream->service->options.allocator);
  rn_encoder_open(&encoder, &response);
  rn_status_t status = rn_eager_service_enqueue(stream->service, message, &encoder);
  rn_status_t encoded = rn_encoder_close(&encoder);
  if (rn_ok(status))
    status = encoded;
  else
    rn_status_free(encoded);
  if (rn_ok(status)) rn_rpc_send(stream->call, &response);
  rn_message_clear(&response);
  return status;
}

static void run_stream(rn_job_t* job) {
  eager_stream_t* stream = RN_CONTAINER_OF(job, eager_stream_t, job);
  rn_eager_service_t* service = stream->service;
  rn_rpc_in_t* call = stream->call;
  rn_message_t message;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && next_message(stream, &message)) {
    status = answer(stream, &message);
    rn_message_clear(&message);
  }
  rn_mutex_lock(&stream->mutex);
  stream->is_over = true;
  if (rn_ok(status) && stream->is_flooded)
    status = rn_resource_exhausted("More than %zu bytes or %d messages are waiting",
                                   MAX_WAITING_BYTES, MAX_WAITING);
  rn_mutex_unlock(&stream->mutex);
  stream_release(stream);
  rn_eager_service_reply(call, status, RN_STR(""));
  rn_eager_service_end_call(service);
}

rn_status_t rn_eager_service_start_stream(rn_eager_service_t* service, rn_rpc_in_t* call) {
  eager_stream_t* stream = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(service->options.allocator, &stream));
  stream->service = service;
  stream->call = call;
  stream->refs = 2;
  stream->job.run = run_stream;
  rn_mutex_init(&stream->mutex);
  rn_cond_init(&stream->came);
  call->owner = stream;
  call->message = on_message;
  call->gone = on_gone;
  if (rn_threads_run(service->threads, &stream->job)) return RN_OK;
  call->message = NULL;
  call->gone = NULL;
  stream->refs = 1;
  stream_release(stream);
  return rn_eager_service_no_thread();
}
