// Received frames: delivers headers and messages to their streams. See http2_internal.h.
//
// A message gets memory once its size and first bytes are known, and more as it arrives, so that an
// announced size costs nothing. The rest of a long message is read from the socket straight into
// that memory.
#include "net/grpc.h"
#include "net/http2_internal.h"
#include "net/http_body.h"
#include "net/token.h"

// Frames of at least this many bytes are read straight into their message.
#define LANDING_SIZE (32u << 10)
// A message of up to this size is allocated at once. A longer one grows eightfold at a time: so a
// seventh of the bytes is copied once more, and the memory is never more than eight times what was
// received.
#define FIRST_ROOM (256u << 10)
// The most bytes of a message without the token, which is then refused.
#define MAX_UNTRUSTED (64u << 10)
#define GROWTH 8
// A compressed message may become this long: about a quarter of a second.
#define MAX_UNPACKED ((size_t)256 << 20)
// The most bytes of headers that are kept for a handler.
#define MAX_KEPT 16384
// Most requests have fewer bytes of them.
#define USUAL_KEPT 448
// Approximate memory of a call besides its message.
#define CALL_SIZE 2048

// Whether the peer may use |size| more bytes, for a message of |announced| bytes.
static rn_status_t check_room(const rn_http2_t* http2, size_t size, size_t announced) {
  const rn_http2_options_t* options = &http2->options;
  if (options->max_held && announced > options->max_held - http2->held)
    return rn_resource_exhausted(
        "The messages of this client would take more than %zu bytes at a time", options->max_held);
  size_t all = options->all_held ? *options->all_held : 0;
  if (options->all_held && (all > options->max_all_held || size > options->max_all_held - all))
    return rn_resource_exhausted(
        "The messages of all clients would take more than %zu bytes at a time",
        options->max_all_held);
  return RN_OK;
}

static int on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  rn_http2_t* http2 = arg;
  if (!http2->options.is_server || frame->hd.type != NGHTTP2_HEADERS ||
      frame->headers.cat != NGHTTP2_HCAT_REQUEST)
    return 0;
  rn_status_t status = check_room(http2, CALL_SIZE, CALL_SIZE);
  bool has_room = rn_ok(status);
  rn_status_free(status);
  rn_http2_stream_t* stream = has_room ? http2->options.events->open(http2->options.owner) : NULL;
  if (!stream) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  rn_http2_init_stream(http2, stream);
  stream->align = http2->options.align;
  stream->id = frame->hd.stream_id;
  stream->heard_ns = http2->heard_ns;
  stream->roles = http2->options.tokens ? 0 : UINT32_MAX;
  rn_http2_open_stream(http2, stream);
  rn_http2_hold(stream, CALL_SIZE);
  nghttp2_session_set_stream_user_data(session, stream->id, stream);
  return 0;
}

// Keeps a header of a request for its handler, except those that only concern the transport.
static void keep_header(rn_http2_stream_t* stream, rn_str_t name, rn_str_t value) {
  if (name.data[0] == ':' || rn_str_is(name, "te") || rn_str_is(name, "content-type") ||
      stream->failure)
    return;
  if (stream->headers.size + name.size + value.size > MAX_KEPT) {
    rn_http2_refuse(stream, rn_resource_exhausted("The headers have more than %d bytes", MAX_KEPT));
    return;
  }
  if (!stream->headers.capacity) rn_strbuf_reserve(&stream->headers, USUAL_KEPT);
  rn_strbuf_append(&stream->headers, name);
  rn_strbuf_append_n(&stream->headers, "", 1);
  rn_strbuf_append(&stream->headers, value);
  rn_strbuf_append_n(&stream->headers, "", 1);
}

static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name_data,
                     size_t name_size, const uint8_t* value_data, size_t value_size, uint8_t flags,
                     void* arg) {
  (void)session, (void)flags;
  rn_http2_t* http2 = arg;
  rn_http2_stream_t* stream = rn_http2_stream_of(http2, frame->hd.stream_id);
  if (!stream) return 0;
  rn_str_t name = rn_str_n((const char*)name_data, name_size);
  rn_str_t value = rn_str_n((const char*)value_data, value_size);
  int64_t number;
  if (rn_str_is(name, ":path")) {
    rn_strbuf_append(&stream->path, value);
  } else if (rn_str_is(name, "grpc-timeout")) {
    int64_t ns;
    if (rn_grpc_timeout_parse(value, &ns) && ns < INT64_MAX - rn_http2_now(http2))
      stream->deadline_ns = rn_http2_now(http2) + ns;
  } else if (rn_str_is(name, "authorization") && http2->options.tokens) {
    stream->roles = rn_tokens_grant(http2->options.tokens, value);
  } else if (rn_str_is(name, "grpc-encoding")) {
    stream->may_pack = rn_str_is(value, "gzip") || rn_str_is(value, "deflate");
  } else if (rn_str_is(name, ":status")) {
    if (rn_str_to_i64(value, &number)) stream->http_status = (int)number;
  } else if (rn_str_is(name, "grpc-status")) {
    stream->grpc_status = rn_str_to_i64(value, &number) && number >= 0 && number <= 16
                              ? (int)number
                              : RN_CODE_UNKNOWN;
  } else if (rn_str_is(name, "grpc-message")) {
    rn_strbuf_append(&stream->details, value);
  }
  if (http2->options.keeps_headers && frame->headers.cat == NGHTTP2_HCAT_REQUEST && name.size)
    keep_header(stream, name, value);
  return 0;
}

static size_t room_of(const rn_http2_stream_t* stream) {
  return rn_message_view(&stream->message).size;
}

static size_t next_room(const rn_http2_stream_t* stream) {
  size_t room = stream->expected;
  while (room > FIRST_ROOM && room / GROWTH > stream->received) room /= GROWTH;
  return room;
}

// Makes room for the message, once its size and first bytes are known.
static rn_status_t make_room(rn_http2_stream_t* stream) {
  size_t pad = 0, size = next_room(stream), old = room_of(stream);
  if (stream->align && !stream->is_packed) {
    size_t at = stream->align(rn_str_n(stream->head, stream->head_size), stream->expected);
    pad = (RN_ALIGN - at % RN_ALIGN) % RN_ALIGN;
  }
  rn_http2_t* http2 = stream->http2;
  RN_RETURN_IF_ERROR(check_room(http2, size - old, stream->expected - old));
  if (http2->options.is_server)  // which outlives the call
    rn_http2_hold(stream, (int64_t)(size - old));
  rn_buffer_t* buffer = NULL;
  RN_RETURN_IF_ERROR(
      rn_buffer_create(rn_loop_landing(http2->options.loop), RN_UINT8, size + pad, &buffer));
  char* to = (char*)buffer->data + pad;
  const char* from = old ? rn_message_view(&stream->message).data : stream->head;
  size_t have = old ? stream->received : stream->head_size;
  memcpy(to, from, have);
  rn_message_clear(&stream->message);
  rn_status_t status = rn_message_lend(&stream->message, buffer, rn_str_n(to, size));
  rn_buffer_release(buffer);
  if (rn_ok(status)) stream->received = have;
  return status;
}

// The most bytes of a message.
static size_t limit_of(const rn_http2_stream_t* stream) {
  size_t most = stream->http2->options.max_message;
  if (!most) most = RN_HTTP2_MAX_MESSAGE;
  bool is_trusted = !stream->http2->options.is_server || stream->roles;
  return is_trusted || most < MAX_UNTRUSTED ? most : MAX_UNTRUSTED;
}

static rn_status_t take_prefix(rn_http2_stream_t* stream) {
  const uint8_t* p = stream->prefix;
  stream->expected = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
  stream->is_packed = p[0] && stream->may_pack && stream->http2->options.is_server;
  if (p[0] && !stream->is_packed)
    return rn_unimplemented("The message is compressed, though no compression was negotiated");
  size_t most = limit_of(stream);
  if (stream->expected > most)
    return rn_resource_exhausted("Received message larger than max (%zu vs. %zu)", stream->expected,
                                 most);
  return RN_OK;
}

// Decompresses a message that is complete.
static rn_status_t unpack(rn_http2_stream_t* stream) {
  rn_http2_t* http2 = stream->http2;
  size_t most = limit_of(stream), packed = stream->message.size;
  if (!stream->is_packed || !packed) return RN_OK;
  rn_http_budget_t budget = {0};
  rn_http_body_t body = {.allocator = http2->options.allocator,
                         .landing = rn_loop_landing(http2->options.loop),
                         .budget = &budget,
                         .max = most < MAX_UNPACKED ? most : MAX_UNPACKED,
                         .is_whole = true,
                         .is_packed = true,
                         .buffer = stream->message.pieces.items[0].buffer,
                         .size = packed};
  rn_buffer_retain(body.buffer);
  int refusal = rn_http_body_unpack(&body, SIZE_MAX);
  rn_status_t status = RN_OK;
  if (refusal == 413)
    status = rn_resource_exhausted("Received message larger than max (%zu)", body.max);
  else if (refusal)
    status = rn_internal("The compressed message is damaged");
  size_t more = body.size > packed ? body.size - packed : 0;
  if (rn_ok(status)) status = check_room(http2, more, more);
  if (rn_ok(status)) {
    rn_message_clear(&stream->message);
    rn_http2_hold(stream, (int64_t)body.size - (int64_t)packed);
    if (body.size)
      status =
          rn_message_lend(&stream->message, body.buffer, rn_str_n(body.buffer->data, body.size));
  }
  rn_http_body_clear(&body);
  stream->is_packed = false;
  return status;
}

// Moves what fits from |data| to |to|, which has |*have| of |want| bytes; no copy if it is already
// there.
static size_t fill(void* to, size_t* have, size_t want, const uint8_t** data, size_t* size) {
  size_t n = want - *have < *size ? want - *have : *size;
  char* place = (char*)to + *have;
  if (place != (const char*)*data) memmove(place, *data, n);
  *have += n, *data += n, *size -= n;
  return n;
}

// A message of a stream is complete: queues its delivery, and begins the next.
static rn_status_t put_aside(rn_http2_stream_t* stream) {
  RN_RETURN_IF_ERROR(unpack(stream));
  RN_RETURN_IF_ERROR(rn_vec_push(&stream->inbox, stream->message.allocator, stream->message));
  rn_message_init(&stream->message, stream->message.allocator);
  stream->prefix_size = stream->head_size = stream->received = stream->expected = 0;
  rn_http2_add_event(stream->http2, stream);
  return RN_OK;
}

static rn_status_t take_data(rn_http2_stream_t* stream, const uint8_t* data, size_t size) {
  while (size) {
    if (stream->prefix_size < sizeof stream->prefix) {
      fill(stream->prefix, &stream->prefix_size, sizeof stream->prefix, &data, &size);
      if (stream->prefix_size < sizeof stream->prefix) continue;
      RN_RETURN_IF_ERROR(take_prefix(stream));
      if (stream->is_streaming && !stream->expected) RN_RETURN_IF_ERROR(put_aside(stream));
      continue;
    }
    size_t head = stream->expected < RN_HTTP2_HEAD ? stream->expected : RN_HTTP2_HEAD;
    if (stream->head_size < head) {
      fill(stream->head, &stream->head_size, head, &data, &size);
      if (stream->head_size == head) RN_RETURN_IF_ERROR(make_room(stream));
    } else if (stream->received >= stream->expected) {
      return rn_internal("More than one message in a unary call");
    } else {
      fill((char*)rn_message_view(&stream->message).data, &stream->received, room_of(stream), &data,
           &size);
      if (stream->received == room_of(stream) && stream->received < stream->expected)
        RN_RETURN_IF_ERROR(make_room(stream));
    }
    if (stream->is_streaming && rn_http2_is_whole(stream)) RN_RETURN_IF_ERROR(put_aside(stream));
  }
  return RN_OK;
}

static int on_data(nghttp2_session* session, uint8_t flags, int32_t id, const uint8_t* data,
                   size_t size, void* arg) {
  (void)session, (void)flags;
  rn_http2_t* http2 = arg;
  rn_http2_stream_t* stream = rn_http2_stream_of(http2, id);
  if (http2->landing && http2->landing == stream) http2->landing_left -= size;
  if (!stream || stream->failure) return 0;
  stream->heard_ns = http2->heard_ns;
  rn_status_t status = take_data(stream, data, size);
  if (!rn_ok(status)) rn_http2_refuse(stream, status);
  return 0;
}

static int on_begin_frame(nghttp2_session* session, const nghttp2_frame_hd* head, void* arg) {
  (void)session;
  rn_http2_t* http2 = arg;
  bool lands = head->type == NGHTTP2_DATA && !(head->flags & NGHTTP2_FLAG_PADDED);
  http2->landing = lands ? rn_http2_stream_of(http2, head->stream_id) : NULL;
  http2->landing_left = head->length;
  return 0;
}

char* rn_http2_landing_place(const rn_http2_t* http2, size_t* out_size) {
  const rn_http2_stream_t* stream = http2->landing;
  if (!stream || stream->failure || !stream->received) return NULL;
  size_t left = room_of(stream) - stream->received;
  *out_size = left < http2->landing_left ? left : http2->landing_left;
  if (*out_size < LANDING_SIZE) return NULL;
  return (char*)rn_message_view(&stream->message).data + stream->received;
}

// The headers of a request were received: a streaming call begins now.
static void begin_stream(rn_http2_t* http2, rn_http2_stream_t* stream) {
  const rn_http2_events_t* events = http2->options.events;
  rn_str_t path = rn_strbuf_view(&stream->path);
  if (!events->streams || !events->streams(http2->options.owner, path)) return;
  stream->is_streaming = true;
  rn_http2_add_event(http2, stream);
}

static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  (void)session;
  rn_http2_t* http2 = arg;
  if (frame->hd.type == NGHTTP2_PING) http2->is_asked = false;
  if (frame->hd.type == NGHTTP2_GOAWAY) http2->is_drained = true;
  bool is_head = frame->hd.type == NGHTTP2_HEADERS;
  bool is_end =
      (frame->hd.type == NGHTTP2_DATA || is_head) && frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
  rn_http2_stream_t* stream =
      is_end || is_head ? rn_http2_stream_of(http2, frame->hd.stream_id) : NULL;
  if (!stream || !http2->options.is_server || stream->failure) return 0;
  if (is_head && frame->headers.cat == NGHTTP2_HCAT_REQUEST) begin_stream(http2, stream);
  if (!is_end) return 0;
  if (!rn_http2_is_whole(stream)) {
    rn_http2_refuse(stream, rn_internal("The request ends within its message"));
    return 0;
  }
  rn_status_t status = stream->is_streaming ? RN_OK : unpack(stream);
  if (!rn_ok(status)) {
    rn_http2_refuse(stream, status);
    return 0;
  }
  stream->is_complete = stream->is_whole = true;
  rn_http2_add_event(http2, stream);
  return 0;
}

static int on_close(nghttp2_session* session, int32_t id, uint32_t code, void* arg) {
  (void)session;
  rn_http2_stream_t* stream = rn_http2_stream_of(arg, id);
  if (!stream) return 0;
  stream->reset_code = code;
  rn_http2_close_stream(arg, stream);
  return 0;
}

void rn_http2_hear(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
}
