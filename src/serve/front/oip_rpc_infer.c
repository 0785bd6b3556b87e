// ModelInfer and ModelStreamInfer. See oip_rpc.h.
#include "base/container.h"
#include "proto/oip.pb.h"
#include "serve/front/oip_rpc.h"
#include "serve/front/rpc.h"
#include "wire/writer.h"

// Inferences of one stream that may wait for their answers.
#define MAX_WAITING 8192

typedef struct oip_stream_t oip_stream_t;

typedef struct oip_rpc_infer_t {
  rn_oip_infer_t infer;
  rn_rpc_in_t* call;
  // Of a stream; NULL: the inference is a call of its own.
  oip_stream_t* stream;
  rn_message_t request;          // Owned, of a stream
  rn_message_t response;         // when |is_done|
  struct oip_rpc_infer_t* next;  // in the order of arrival
  bool is_done;
} oip_rpc_infer_t;

static void destroy(oip_rpc_infer_t* rpc) {
  rn_allocator_t allocator = rpc->infer.front->allocator;
  rn_oip_infer_clear(&rpc->infer);
  rn_message_clear(&rpc->request);
  rn_message_clear(&rpc->response);
  RN_FREE(allocator, rpc);
}

static rn_status_t create(rn_front_t* front, rn_rpc_in_t* call,
                          void (*done)(rn_oip_infer_t* infer, rn_status_t status),
                          oip_rpc_infer_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(front->allocator, out));
  oip_rpc_infer_t* rpc = *out;
  rpc->call = call;
  rn_message_init(&rpc->request, front->allocator);
  rn_message_init(&rpc->response, front->allocator);
  rn_oip_infer_t* infer = &rpc->infer;
  rn_oip_infer_init(infer, front);
  infer->entry = "GRPC";
  infer->is_local = call->is_local;
  infer->done = done;
  rn_rpc_begin_predict(front, call, &infer->predict);
  return RN_OK;
}

// ModelInfer.

static void on_inferred(rn_oip_infer_t* infer, rn_status_t status) {
  oip_rpc_infer_t* rpc = RN_CONTAINER_OF(infer, oip_rpc_infer_t, infer);
  rn_rpc_in_t* call = rpc->call;
  rn_message_t response = rpc->response;
  rn_message_init(&rpc->response, response.allocator);
  if (rn_ok(status)) status = rn_oip_rpc_write(infer, false, &response);
  status = rn_rpc_end_predict(infer->front, call, &infer->predict, status);
  rn_oip_infer_count(infer, rn_status_code(status));
  destroy(rpc);
  rn_rpc_reply(call, status, &response);
}

void rn_oip_rpc_infer(rn_front_t* front, rn_rpc_in_t* call) {
  oip_rpc_infer_t* rpc = NULL;
  rn_status_t status = create(front, call, on_inferred, &rpc);
  if (!rn_ok(status)) {
    rn_rpc_fail(front, call, status);
    return;
  }
  status = rn_oip_rpc_read(&rpc->infer, &call->stream.message);
  if (rn_ok(status))
    rn_oip_infer_run(&rpc->infer);
  else
    on_inferred(&rpc->infer, status);
}

// ModelStreamInfer.

struct oip_stream_t {
  rn_front_t* front;
  rn_rpc_in_t* call;
  _Atomic int refs;               // of the connection, of the reply, and one per inference
  rn_mutex_t mutex;               // guards what follows
  oip_rpc_infer_t *first, *last;  // that have not been answered
  size_t waiting;
  bool is_ended;  // no more requests will come
  bool is_replied;
  rn_status_t failure;  // Owned: why the stream ends early
};

static void stream_release(oip_stream_t* stream) {
  if (--stream->refs) return;
  rn_status_free(stream->failure);
  rn_mutex_destroy(&stream->mutex);
  RN_FREE(stream->front->allocator, stream);
}

// Sends the answers whose turn has come; after the last one, ends the stream. Takes the lock.
static void stream_send(oip_stream_t* stream) {
  oip_rpc_infer_t* sent = NULL;
  rn_mutex_lock(&stream->mutex);
  while (stream->first && stream->first->is_done) {
    oip_rpc_infer_t* rpc = stream->first;
    stream->first = rpc->next;
    stream->waiting--;
    if (!stream->failure) rn_rpc_send(stream->call, &rpc->response);
    rpc->next = sent;
    sent = rpc;
  }
  bool is_over = stream->is_ended && !stream->first && !stream->is_replied;
  rn_status_t status = RN_OK;
  if (is_over) {
    stream->is_replied = true;
    status = stream->failure;
    stream->failure = RN_OK;
  }
  rn_mutex_unlock(&stream->mutex);
  while (sent) {
    oip_rpc_infer_t* rpc = sent;
    sent = rpc->next;
    destroy(rpc);
  }
  if (!is_over) return;
  rn_rpc_fail(stream->front, stream->call, status);
  stream_release(stream);
}

// Makes |out| a ModelStreamInferResponse of |inner|, a ModelInferResponse, and of an error.
static rn_status_t wrap(rn_str_t error, const rn_message_t* inner, rn_message_t* out) {
  rn_strbuf_t head;
  rn_strbuf_init(&head, out->allocator);
  if (error.size)
    rn_pb_put_str(&head, rn_pb_inference_ModelStreamInferResponse_error_message_field, error);
  char* p = rn_pb_room(&head, 2 * RN_PB_MAX_VARINT);
  if (p) {
    p = rn_pb_tag_to(p, rn_pb_inference_ModelStreamInferResponse_infer_response_field,
                     RN_PB_WIRE_LENGTH);
    rn_pb_written(&head, rn_pb_varint_to(p, inner->size));
  }
  rn_status_t status = rn_strbuf_status(&head);
  if (rn_ok(status)) status = rn_message_add(out, rn_strbuf_view(&head));
  rn_strbuf_clear(&head);
  for (size_t i = 0; rn_ok(status) && i < inner->pieces.count; ++i)
    status = rn_message_lend(out, inner->pieces.items[i].buffer, inner->pieces.items[i].bytes);
  return status;
}

// An error of the inference is part of the answer; without memory for that, the stream fails.
static rn_status_t write_answer(oip_rpc_infer_t* rpc, rn_status_t status) {
  rn_message_t inner;
  rn_message_init(&inner, rpc->response.allocator);
  if (rn_ok(status)) status = rn_oip_rpc_write(&rpc->infer, true, &inner);
  rn_oip_infer_count(&rpc->infer, rn_status_code(status));
  if (rn_ok(status)) {
    status = wrap(RN_STR(""), &inner, &rpc->response);
  } else {
    rn_message_clear(&inner);
    rn_strbuf_t id;
    rn_strbuf_init(&id, inner.allocator);
    if (rpc->infer.id.size)
      rn_pb_put_str(&id, rn_pb_inference_ModelInferResponse_id_field, rpc->infer.id);
    rn_status_t failed = rn_strbuf_status(&id);
    if (rn_ok(failed)) failed = rn_message_add(&inner, rn_strbuf_view(&id));
    const char* text = rn_status_message(status);
    if (rn_ok(failed)) failed = wrap(rn_str(*text ? text : "failed"), &inner, &rpc->response);
    rn_strbuf_clear(&id);
    rn_status_free(status);
    status = failed;
  }
  rn_message_clear(&inner);
  return status;
}

static void on_streamed(rn_oip_infer_t* infer, rn_status_t status) {
  oip_rpc_infer_t* rpc = RN_CONTAINER_OF(infer, oip_rpc_infer_t, infer);
  oip_stream_t* stream = rpc->stream;
  rn_status_t failure = write_answer(rpc, status);
  rn_mutex_lock(&stream->mutex);
  rpc->is_done = true;
  stream->failure = rn_status_join(stream->failure, failure);
  if (stream->failure) stream->is_ended = true;
  rn_mutex_unlock(&stream->mutex);
  stream_send(stream);
  stream_release(stream);
}

// Adds an inference at the end of the line; the stream ends if there is no room.
static oip_rpc_infer_t* stream_add(oip_stream_t* stream, rn_message_t* message) {
  oip_rpc_infer_t* rpc = NULL;
  rn_mutex_lock(&stream->mutex);
  rn_status_t status =
      stream->waiting < MAX_WAITING
          ? create(stream->front, stream->call, on_streamed, &rpc)
          : rn_resource_exhausted("More than %d inferences of the stream wait", MAX_WAITING);
  if (rn_ok(status) && !stream->is_ended) {
    rpc->stream = stream;
    stream->refs++;
    rpc->request = *message;
    rn_message_init(message, message->allocator);
    if (stream->first)
      stream->last->next = rpc;
    else
      stream->first = rpc;
    stream->last = rpc;
    stream->waiting++;
  } else if (rpc) {
    destroy(rpc);
    rpc = NULL;
  }
  if (!rn_ok(status)) stream->is_ended = true;
  stream->failure = rn_status_join(stream->failure, status);
  rn_mutex_unlock(&stream->mutex);
  return rpc;
}

static void stream_end(oip_stream_t* stream) {
  rn_mutex_lock(&stream->mutex);
  stream->is_ended = true;
  rn_mutex_unlock(&stream->mutex);
  stream_send(stream);
}

static void on_message(rn_rpc_in_t* call, rn_message_t* message) {
  oip_stream_t* stream = call->owner;
  if (!message) {
    stream_end(stream);
    return;
  }
  oip_rpc_infer_t* rpc = stream_add(stream, message);
  rn_message_clear(message);
  if (!rpc) {
    stream_send(stream);
    return;
  }
  rn_status_t status = rn_oip_rpc_read(&rpc->infer, &rpc->request);
  if (rn_ok(status))
    rn_oip_infer_run(&rpc->infer);
  else
    on_streamed(&rpc->infer, status);
}

static void on_gone(rn_rpc_in_t* call) {
  oip_stream_t* stream = call->owner;
  stream_end(stream);
  stream_release(stream);
}

void rn_oip_rpc_stream(rn_front_t* front, rn_rpc_in_t* call) {
  oip_stream_t* stream = NULL;
  rn_status_t status = RN_NEW(front->allocator, &stream);
  if (!rn_ok(status)) {
    rn_rpc_fail(front, call, status);
    return;
  }
  stream->front = front;
  stream->call = call;
  stream->refs = 2;
  rn_mutex_init(&stream->mutex);
  call->owner = stream;
  call->message = on_message;
  call->gone = on_gone;
}
