// Streams: their beginning and end, and the calls to and from their owners. See http2_internal.h.
#include "net/grpc.h"
#include "net/http2_internal.h"

void rn_http2_add_event(rn_http2_t* http2, rn_http2_stream_t* stream) {
  if (stream->has_event) return;
  stream->has_event = true;
  stream->next_event = http2->events;
  http2->events = stream;
}

void rn_http2_open_stream(rn_http2_t* http2, rn_http2_stream_t* stream) {
  stream->http2 = http2;
  stream->grpc_status = -1;
  stream->is_listed = true;
  stream->next = http2->streams;
  if (stream->next) stream->next->previous = stream;
  http2->streams = stream;
  http2->stream_count++;
  http2->used_ns = rn_http2_now(http2);
}

void rn_http2_close_stream(rn_http2_t* http2, rn_http2_stream_t* stream) {
  if (!stream->is_listed) return;
  stream->is_listed = false;
  stream->is_closed = true;
  if (stream->previous)
    stream->previous->next = stream->next;
  else
    http2->streams = stream->next;
  if (stream->next) stream->next->previous = stream->previous;
  http2->stream_count--;
  http2->used_ns = rn_http2_now(http2);
  if (stream->is_answered) http2->answered--;
  if (http2->landing == stream) http2->landing = NULL;
  rn_message_clear(&stream->out);
  rn_http2_add_event(http2, stream);
}

// Drops the undelivered messages of a stream.
static void clear_box(rn_http2_stream_t* stream) {
  for (size_t i = 0; i < stream->inbox.count; ++i) rn_message_clear(&stream->inbox.items[i]);
  for (size_t i = stream->out_first; i < stream->outbox.count; ++i)
    rn_message_clear(&stream->outbox.items[i]);
  if (stream->inbox.items) rn_vec_free(&stream->inbox, stream->message.allocator);
  if (stream->outbox.items) rn_vec_free(&stream->outbox, stream->message.allocator);
  stream->out_first = 0;
}

void rn_http2_hold(rn_http2_stream_t* stream, int64_t by) {
  rn_http2_t* http2 = stream->http2;
  stream->held += (size_t)by;
  http2->held += (size_t)by;
  if (http2->options.all_held) *http2->options.all_held += (size_t)by;
}

void rn_http2_stream_clear(rn_http2_stream_t* stream) {
  if (stream->held) rn_http2_hold(stream, -(int64_t)stream->held);
  rn_strbuf_clear(&stream->path);
  rn_strbuf_clear(&stream->headers);
  rn_strbuf_clear(&stream->details);
  rn_strbuf_clear(&stream->out_trailers);
  rn_message_clear(&stream->message);
  rn_message_clear(&stream->out);
  clear_box(stream);
  rn_status_free(stream->failure);
  stream->failure = RN_OK;
}

void rn_http2_init_stream(rn_http2_t* http2, rn_http2_stream_t* stream) {
  rn_allocator_t allocator = http2->options.allocator;
  rn_strbuf_init(&stream->path, allocator);
  rn_strbuf_init(&stream->headers, allocator);
  rn_strbuf_init(&stream->details, allocator);
  rn_strbuf_init(&stream->out_trailers, allocator);
  rn_message_init(&stream->message, allocator);
  rn_message_init(&stream->out, allocator);
  stream->deadline_ns = INT64_MAX;
}

static void set_result(rn_http2_stream_t* stream, rn_status_t status) {
  stream->out_status = (int)rn_status_code(status);
  rn_str_t message = rn_str(rn_status_message(status));
  rn_strbuf_t* trailers = &stream->out_trailers;
  if (message.size) {
    rn_strbuf_append_n(trailers, "grpc-message", sizeof "grpc-message");
    rn_grpc_escape(message, trailers);
    rn_strbuf_append_n(trailers, "", 1);
  }
  if (trailers->failed) trailers->size = 0;
}

void rn_http2_refuse(rn_http2_stream_t* stream, rn_status_t status) {
  rn_http2_t* http2 = stream->http2;
  bool may_answer =
      http2->options.is_server && !stream->failure && !stream->is_answered && !stream->has_response;
  stream->failure = rn_status_join(stream->failure, status);
  if (may_answer) {  // the stream is reset once that has gone out
    set_result(stream, stream->failure);
    rn_http2_submit_response(http2, stream, false);
  } else {
    nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
  }
}

// A streaming call may be silent between messages.
void rn_http2_end_half_sent(rn_http2_t* http2) {
  int64_t since = rn_http2_now(http2) - http2->options.half_ns;
  for (rn_http2_stream_t* stream = http2->streams; stream; stream = stream->next) {
    bool waits = !stream->is_whole && !stream->failure &&
                 (!stream->is_streaming || !rn_http2_is_whole(stream));
    if (waits && stream->heard_ns < since)
      rn_http2_refuse(stream, rn_deadline_exceeded("The request has begun but makes no progress"));
  }
}

bool rn_http2_is_whole(const rn_http2_stream_t* stream) {
  return stream->prefix_size == 0 ||
         (stream->prefix_size == sizeof stream->prefix && stream->received == stream->expected);
}

// Calls to the owners, on the loop's thread.

static rn_status_t result_of(rn_http2_stream_t* stream, rn_status_t failure) {
  rn_status_t own = stream->failure;
  stream->failure = RN_OK;
  if (own) return own;
  if (stream->grpc_status > 0) return rn_grpc_status(stream->grpc_status, &stream->details);
  if (stream->grpc_status == 0)
    return rn_http2_is_whole(stream) ? RN_OK : rn_internal("The response ends within its message");
  if (failure) return rn_status_copy(failure);
  if (stream->reset_code == NGHTTP2_REFUSED_STREAM)
    return rn_unavailable("Stream refused by server");
  if (stream->reset_code == NGHTTP2_CANCEL) return rn_cancelled("RPC cancelled");
  if (stream->http_status && stream->http_status != 200)
    return rn_unavailable("Received http2 header with status: %d", stream->http_status);
  return rn_unavailable("The peer ended the call without a status (HTTP/2 error %u)",
                        (unsigned)stream->reset_code);
}

static rn_http2_stream_t* next_event(rn_http2_t* http2, bool* out_is_closed, bool* out_is_request) {
  rn_http2_stream_t* stream = http2->events;
  if (!stream) return NULL;
  http2->events = stream->next_event;
  stream->has_event = false;
  *out_is_closed = stream->is_closed;
  *out_is_request = stream->is_complete && http2->options.is_server;
  stream->is_complete = false;
  return stream;
}

// Delivers the received messages of a stream, and its end if |is_end|.
static void tell_messages(rn_http2_t* http2, rn_http2_stream_t* stream, bool is_end) {
  const rn_http2_events_t* events = http2->options.events;
  if (!stream->is_told) {
    stream->is_told = true;
    events->request(stream);
  }
  for (size_t i = 0;; ++i) {  // only this thread adds to |inbox|
    if (i == stream->inbox.count) break;
    size_t size = stream->inbox.items[i].size;
    events->message(stream, &stream->inbox.items[i]);
    rn_http2_hold(stream, -(int64_t)size);
  }
  stream->inbox.count = 0;
  if (is_end) events->message(stream, NULL);
}

void rn_http2_tell(rn_http2_t* http2) {
  const rn_http2_events_t* events = http2->options.events;
  for (;;) {
    bool is_closed = false, is_request = false;
    rn_mutex_lock(&http2->mutex);
    rn_http2_stream_t* stream = next_event(http2, &is_closed, &is_request);
    rn_status_t status = stream && is_closed ? result_of(stream, http2->failure) : RN_OK;
    rn_mutex_unlock(&http2->mutex);
    if (!stream) return;
    if (stream->is_streaming)
      tell_messages(http2, stream, is_request);
    else if (is_request)
      events->request(stream);
    if (is_closed) events->closed(stream, status);
  }
}

// Calls.

rn_status_t rn_http2_request(rn_http2_t* http2, rn_http2_stream_t* stream, const char* path,
                             const char* authority, int64_t deadline_ns, rn_message_t* message) {
  if (message->size > RN_HTTP2_MAX_MESSAGE)
    return rn_resource_exhausted("A message of %zu bytes is too large for a call", message->size);
  rn_http2_init_stream(http2, stream);
  rn_mutex_lock(&http2->mutex);
  rn_status_t status = RN_OK;
  if (http2->is_over || http2->is_drained) {
    status = http2->failure ? rn_status_copy(http2->failure) : rn_unavailable("Socket closed");
  } else {
    rn_http2_open_stream(http2, stream);
    stream->out_status = -1;
    rn_http2_set_message(stream, message);
    stream->id = rn_http2_submit_request(http2, stream, path, authority, deadline_ns);
    if (stream->id < 0) {
      status = rn_unavailable("HTTP/2: %s", nghttp2_strerror(stream->id));
      *message = stream->out;
      stream->out = (rn_message_t){.allocator = message->allocator};
      rn_http2_close_stream(http2, stream);
      http2->events = stream->next_event;  // its owner is not called
      stream->has_event = false;
    } else {
      rn_http2_push(http2);
    }
  }
  rn_mutex_unlock(&http2->mutex);
  if (!rn_ok(status)) rn_http2_stream_clear(stream);
  return status;
}

// Sends the waiting messages of a stream, after the headers. Under the lock.
static void go_on(rn_http2_t* http2, rn_http2_stream_t* stream) {
  if (stream->has_response)
    nghttp2_session_resume_data(http2->session, stream->id);
  else
    rn_http2_submit_response(http2, stream, true);
  stream->has_response = true;
  rn_http2_push(http2);
}

void rn_http2_send(rn_http2_stream_t* stream, rn_message_t* message) {
  rn_http2_t* http2 = stream->http2;
  rn_mutex_lock(&http2->mutex);
  if (!stream->is_closed && !http2->is_over && !stream->is_finished && !stream->failure) {
    rn_status_t status = rn_vec_push(&stream->outbox, http2->options.allocator, *message);
    if (rn_ok(status)) *message = (rn_message_t){.allocator = message->allocator};
    if (rn_ok(status)) go_on(http2, stream);
    if (!rn_ok(status)) rn_http2_refuse(stream, status);
  }
  rn_mutex_unlock(&http2->mutex);
  rn_message_clear(message);
}

void rn_http2_respond(rn_http2_stream_t* stream, rn_status_t status, rn_message_t* message) {
  rn_http2_t* http2 = stream->http2;
  if (rn_ok(status) && message->size > RN_HTTP2_MAX_MESSAGE)
    status = rn_internal("Protobuf is too large to be serialized");
  rn_mutex_lock(&http2->mutex);
  if (!stream->is_closed && !http2->is_over && !stream->failure) {
    set_result(stream, status);
    if (rn_ok(status) && !stream->is_streaming) rn_http2_set_message(stream, message);
    stream->is_answered = stream->is_finished = true;
    http2->answered++;
    if (stream->is_streaming && (rn_ok(status) || stream->has_response)) {
      go_on(http2, stream);
    } else {
      rn_http2_submit_response(http2, stream, rn_ok(status));
      rn_http2_push(http2);
    }
  }
  rn_mutex_unlock(&http2->mutex);
  rn_status_free(status);
  rn_message_clear(message);
}

void rn_http2_reset(rn_http2_stream_t* stream) {
  rn_http2_t* http2 = stream->http2;
  rn_mutex_lock(&http2->mutex);
  if (!stream->is_closed && !http2->is_over) {
    nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    rn_http2_push(http2);
  }
  rn_mutex_unlock(&http2->mutex);
}
