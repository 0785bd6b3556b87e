// Connections: see http2.h.
//
// Going out: nghttp2 makes frames; small ones are copied into |small|, the payload of DATA frames
// is pointed to where it lies. Both wait in |queue| until the socket takes them.
#include "dist/rpc/http2.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>

#include "dist/rpc/grpc.h"

// What TensorFlow's own peers ask for: frames and windows of a size that suits tensors.
#define MAX_FRAME (4 << 20)
#define STREAM_WINDOW (64 << 20)
#define CONNECTION_WINDOW (1 << 30)
#define MAX_STREAMS 65536
#define MAX_HEADERS 16384
#define MAX_MESSAGE ((size_t)INT32_MAX)
// Bytes of a frame from which on they are read into their message at once.
#define LANDING_SIZE (32u << 10)
// Bytes read at a time, and bytes that may wait to be written before frames are held back.
#define READ_SIZE (256 << 10)
#define QUEUE_SIZE (16u << 20)
// Pieces written by one call.
#define MAX_PIECES 64

typedef struct segment_t {
  rn_str_t bytes;       // of |buffer|; if that is NULL, |size| bytes of |small|
  rn_buffer_t* buffer;  // Retained
} segment_t;

struct rn_http2_t {
  _Atomic int refs;
  rn_http2_options_t options;
  rn_watch_t watch;
  rn_timer_t timer, stall;
  rn_loop_job_t job;    // tells the loop's thread that there is something to say
  rn_socket_t* socket;  // Owned
  char* input;          // Owned; READ_SIZE bytes
  char peer[256];
  rn_caller_t* caller;  // of a server's
  _Atomic int tally;
  _Atomic size_t held;  // bytes of messages that came
  rn_mutex_t mutex;     // guards all that follows
  nghttp2_session* session;
  rn_stream_t* streams;  // those that are open
  size_t stream_count;
  rn_stream_t* events;  // streams that somebody has to be told about
  rn_status_t failure;  // Owned: why the connection is over
  bool is_over, is_lost, is_posted, is_drained;
  bool is_reading;       // the loop's thread takes in what came, and flushes afterwards
  rn_stream_t* landing;  // whose DATA frame has begun and not ended
  size_t landing_left;   // bytes of it that have not come
  int64_t heard_ns;      // when something came last
  int64_t moved_ns;      // when the peer took something last, of use where |has_stall|
  bool has_stall;        // the timer for that is set
  size_t answered;       // streams with a response that has not gone out whole
  uint64_t bytes_in, bytes_out;
  bool is_asked;  // a ping is under way
  RN_VEC(segment_t) queue;
  size_t queue_first, queue_bytes;
  rn_strbuf_t small;
  size_t small_first;  // of |small|, what is written already
};

void rn_http2_retain(rn_http2_t* http2) { http2->refs++; }

void rn_http2_release(rn_http2_t* http2) {
  if (!http2 || --http2->refs) return;
  rn_allocator_t allocator = http2->options.allocator;
  nghttp2_session_del(http2->session);
  for (size_t i = http2->queue_first; i < http2->queue.count; ++i)
    rn_buffer_release(http2->queue.items[i].buffer);
  rn_vec_free(&http2->queue, allocator);
  rn_strbuf_clear(&http2->small);
  if (http2->socket) http2->socket->vtable->close(http2->socket);
  rn_free(allocator, http2->input, READ_SIZE);
  rn_status_free(http2->failure);
  rn_caller_release(http2->caller);
  rn_mutex_destroy(&http2->mutex);
  RN_FREE(allocator, http2);
}

rn_http2_stats_t rn_http2_stats(rn_http2_t* http2) {
  rn_mutex_lock(&http2->mutex);
  rn_http2_stats_t stats = {.streams = http2->stream_count,
                            .queued = http2->queue_bytes,
                            .held = http2->held,
                            .bytes_in = http2->bytes_in,
                            .bytes_out = http2->bytes_out,
                            .heard_ns = http2->heard_ns};
  rn_mutex_unlock(&http2->mutex);
  return stats;
}

rn_str_t rn_http2_peer(const rn_http2_t* http2) { return rn_str(http2->peer); }
_Atomic int* rn_http2_tally(rn_http2_t* http2) { return &http2->tally; }

rn_caller_t* rn_http2_caller(const rn_http2_t* http2) { return http2->caller; }

static int64_t now_of(const rn_http2_t* http2) { return rn_loop_now(http2->options.loop); }

static void add_event(rn_http2_t* http2, rn_stream_t* stream) {
  if (stream->has_event) return;
  stream->has_event = true;
  stream->next_event = http2->events;
  http2->events = stream;
}

// The connection cannot go on. Takes |status|.
static void fail(rn_http2_t* http2, rn_status_t status) {
  http2->failure = rn_status_join(http2->failure, status);
  http2->is_over = true;
}

static void open_stream(rn_http2_t* http2, rn_stream_t* stream) {
  stream->http2 = http2;
  stream->grpc_status = -1;
  stream->is_listed = true;
  stream->next = http2->streams;
  if (stream->next) stream->next->previous = stream;
  http2->streams = stream;
  http2->stream_count++;
}

static void close_stream(rn_http2_t* http2, rn_stream_t* stream) {
  if (!stream->is_listed) return;
  stream->is_listed = false;
  stream->is_closed = true;
  if (stream->previous)
    stream->previous->next = stream->next;
  else
    http2->streams = stream->next;
  if (stream->next) stream->next->previous = stream->previous;
  http2->stream_count--;
  if (stream->is_answered) http2->answered--;
  if (http2->landing == stream) http2->landing = NULL;
  rn_message_clear(&stream->out);
  add_event(http2, stream);
}

// Messages of a stream that nobody will have.
static void clear_box(rn_stream_t* stream) {
  for (size_t i = 0; i < stream->inbox.count; ++i) rn_message_clear(&stream->inbox.items[i]);
  for (size_t i = stream->out_first; i < stream->outbox.count; ++i)
    rn_message_clear(&stream->outbox.items[i]);
  if (stream->inbox.items) rn_vec_free(&stream->inbox, stream->message.allocator);
  if (stream->outbox.items) rn_vec_free(&stream->outbox, stream->message.allocator);
  stream->out_first = 0;
}

void rn_stream_clear(rn_stream_t* stream) {
  if (stream->held) stream->http2->held -= stream->held;
  stream->held = 0;
  rn_strbuf_clear(&stream->path);
  rn_strbuf_clear(&stream->details);
  rn_strbuf_clear(&stream->out_details);
  rn_message_clear(&stream->message);
  rn_message_clear(&stream->out);
  clear_box(stream);
  rn_status_free(stream->failure);
  stream->failure = RN_OK;
}

static void stream_init(rn_http2_t* http2, rn_stream_t* stream) {
  rn_allocator_t allocator = http2->options.allocator;
  rn_strbuf_init(&stream->path, allocator);
  rn_strbuf_init(&stream->details, allocator);
  rn_strbuf_init(&stream->out_details, allocator);
  rn_message_init(&stream->message, allocator);
  rn_message_init(&stream->out, allocator);
  stream->deadline_ns = INT64_MAX;
}

// Incoming frames.

static rn_stream_t* stream_of(rn_http2_t* http2, int32_t id) {
  return nghttp2_session_get_stream_user_data(http2->session, id);
}

static int on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  rn_http2_t* http2 = arg;
  if (!http2->options.is_server || frame->hd.type != NGHTTP2_HEADERS ||
      frame->headers.cat != NGHTTP2_HCAT_REQUEST)
    return 0;
  rn_stream_t* stream = http2->options.events->open(http2->options.owner);
  if (!stream) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  stream_init(http2, stream);
  stream->align = http2->options.align;
  stream->id = frame->hd.stream_id;
  open_stream(http2, stream);
  nghttp2_session_set_stream_user_data(session, stream->id, stream);
  return 0;
}

static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name_data,
                     size_t name_size, const uint8_t* value_data, size_t value_size, uint8_t flags,
                     void* arg) {
  (void)session, (void)flags;
  rn_http2_t* http2 = arg;
  rn_stream_t* stream = stream_of(http2, frame->hd.stream_id);
  if (!stream) return 0;
  rn_str_t name = rn_str_n((const char*)name_data, name_size);
  rn_str_t value = rn_str_n((const char*)value_data, value_size);
  int64_t number;
  if (rn_str_is(name, ":path")) {
    rn_strbuf_append(&stream->path, value);
  } else if (rn_str_is(name, "grpc-timeout")) {
    int64_t ns;
    if (rn_grpc_timeout_parse(value, &ns) && ns < INT64_MAX - now_of(http2))
      stream->deadline_ns = now_of(http2) + ns;
  } else if (rn_str_is(name, ":status")) {
    if (rn_str_to_i64(value, &number)) stream->http_status = (int)number;
  } else if (rn_str_is(name, "grpc-status")) {
    stream->grpc_status = rn_str_to_i64(value, &number) && number >= 0 && number <= 16
                              ? (int)number
                              : RN_CODE_UNKNOWN;
  } else if (rn_str_is(name, "grpc-message")) {
    rn_strbuf_append(&stream->details, value);
  }
  return 0;
}

// Gives the stream up, for a reason of ours. Takes |status|.
static void refuse(rn_stream_t* stream, rn_status_t status) {
  stream->failure = rn_status_join(stream->failure, status);
  nghttp2_submit_rst_stream(stream->http2->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
}

// Room for the message, once its size and its first bytes are known.
static rn_status_t make_room(rn_stream_t* stream) {
  size_t pad = 0, size = stream->expected;
  if (stream->align) {
    size_t at = stream->align(rn_str_n(stream->head, stream->head_size), size);
    pad = (RN_ALIGN - at % RN_ALIGN) % RN_ALIGN;
  }
  rn_http2_t* http2 = stream->http2;
  if (http2->options.max_held && size > http2->options.max_held - http2->held)
    return rn_resource_exhausted(
        "The messages of this client would take more than %zu bytes at a time",
        http2->options.max_held);
  if (http2->options.is_server) {  // which outlives the call
    stream->held += size;
    http2->held += size;
  }
  rn_buffer_t* buffer = NULL;
  RN_RETURN_IF_ERROR(
      rn_buffer_create(rn_loop_landing(http2->options.loop), RN_UINT8, size + pad, &buffer));
  rn_status_t status =
      rn_message_lend(&stream->message, buffer, rn_str_n((char*)buffer->data + pad, size));
  rn_buffer_release(buffer);
  if (rn_ok(status)) {
    memcpy((char*)rn_message_view(&stream->message).data, stream->head, stream->head_size);
    stream->received = stream->head_size;
  }
  return status;
}

static rn_status_t take_prefix(rn_stream_t* stream) {
  const uint8_t* p = stream->prefix;
  stream->expected = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
  if (p[0]) return rn_unimplemented("The message is compressed, which nobody asked for");
  size_t most = stream->http2->options.max_message;
  if (stream->expected > (most ? most : MAX_MESSAGE))
    return rn_resource_exhausted("Received message larger than max (%zu vs. %zu)", stream->expected,
                                 most ? most : MAX_MESSAGE);
  return RN_OK;
}

// Moves what fits from |data| to |to|, which has |*have| of |want| bytes, unless it is there.
static size_t fill(void* to, size_t* have, size_t want, const uint8_t** data, size_t* size) {
  size_t n = want - *have < *size ? want - *have : *size;
  char* place = (char*)to + *have;
  if (place != (const char*)*data) memmove(place, *data, n);
  *have += n, *data += n, *size -= n;
  return n;
}

static bool is_whole(const rn_stream_t* stream) {
  return stream->prefix_size == 0 ||
         (stream->prefix_size == sizeof stream->prefix && stream->received == stream->expected);
}

// A message of a stream has come: somebody hears of it, and the next begins.
static rn_status_t put_aside(rn_stream_t* stream) {
  RN_RETURN_IF_ERROR(rn_vec_push(&stream->inbox, stream->message.allocator, stream->message));
  rn_message_init(&stream->message, stream->message.allocator);
  stream->prefix_size = stream->head_size = stream->received = stream->expected = 0;
  add_event(stream->http2, stream);
  return RN_OK;
}

static rn_status_t take_data(rn_stream_t* stream, const uint8_t* data, size_t size) {
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
      return rn_internal("More than one message in a call that has one");
    } else {
      fill((char*)rn_message_view(&stream->message).data, &stream->received, stream->expected,
           &data, &size);
    }
    if (stream->is_streaming && is_whole(stream)) RN_RETURN_IF_ERROR(put_aside(stream));
  }
  return RN_OK;
}

static int on_data(nghttp2_session* session, uint8_t flags, int32_t id, const uint8_t* data,
                   size_t size, void* arg) {
  (void)session, (void)flags;
  rn_http2_t* http2 = arg;
  rn_stream_t* stream = stream_of(http2, id);
  if (http2->landing && http2->landing == stream) http2->landing_left -= size;
  if (!stream || stream->failure) return 0;
  rn_status_t status = take_data(stream, data, size);
  if (!rn_ok(status)) refuse(stream, status);
  return 0;
}

static int on_begin_frame(nghttp2_session* session, const nghttp2_frame_hd* head, void* arg) {
  (void)session;
  rn_http2_t* http2 = arg;
  bool lands = head->type == NGHTTP2_DATA && !(head->flags & NGHTTP2_FLAG_PADDED);
  http2->landing = lands ? stream_of(http2, head->stream_id) : NULL;
  http2->landing_left = head->length;
  return 0;
}

// Where the next bytes of the socket belong, if that is known: |*out_size| of them at most. The
// stream stays while this is the loop's thread, which alone ends streams.
static char* landing_place(const rn_http2_t* http2, size_t* out_size) {
  const rn_stream_t* stream = http2->landing;
  if (!stream || stream->failure || !stream->received) return NULL;
  size_t left = stream->expected - stream->received;
  *out_size = left < http2->landing_left ? left : http2->landing_left;
  if (*out_size < LANDING_SIZE) return NULL;
  return (char*)rn_message_view(&stream->message).data + stream->received;
}

// The headers of a request have come: if it streams, it begins now.
static void begin_stream(rn_http2_t* http2, rn_stream_t* stream) {
  const rn_http2_events_t* events = http2->options.events;
  rn_str_t path = rn_strbuf_view(&stream->path);
  if (!events->streams || !events->streams(http2->options.owner, path)) return;
  stream->is_streaming = true;
  add_event(http2, stream);
}

static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  (void)session;
  rn_http2_t* http2 = arg;
  if (frame->hd.type == NGHTTP2_PING) http2->is_asked = false;
  if (frame->hd.type == NGHTTP2_GOAWAY) http2->is_drained = true;
  bool is_head = frame->hd.type == NGHTTP2_HEADERS;
  bool is_end =
      (frame->hd.type == NGHTTP2_DATA || is_head) && frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
  rn_stream_t* stream = is_end || is_head ? stream_of(http2, frame->hd.stream_id) : NULL;
  if (!stream || !http2->options.is_server || stream->failure) return 0;
  if (is_head && frame->headers.cat == NGHTTP2_HCAT_REQUEST) begin_stream(http2, stream);
  if (!is_end) return 0;
  if (!is_whole(stream)) {
    refuse(stream, rn_internal("The request ends within its message"));
    return 0;
  }
  stream->is_complete = true;
  add_event(http2, stream);
  return 0;
}

static int on_close(nghttp2_session* session, int32_t id, uint32_t code, void* arg) {
  (void)session;
  rn_stream_t* stream = stream_of(arg, id);
  if (!stream) return 0;
  stream->reset_code = code;
  close_stream(arg, stream);
  return 0;
}

// Outgoing frames.

static ssize_t on_send(nghttp2_session* session, const uint8_t* data, size_t size, int flags,
                       void* arg) {
  (void)session, (void)flags;
  rn_http2_t* http2 = arg;
  if (http2->queue_bytes > QUEUE_SIZE) return NGHTTP2_ERR_WOULDBLOCK;
  size_t count = http2->queue.count;
  bool joins = count > http2->queue_first && !http2->queue.items[count - 1].buffer;
  rn_strbuf_append_n(&http2->small, data, size);
  if (http2->small.failed) return NGHTTP2_ERR_NOMEM;
  if (joins) {
    http2->queue.items[count - 1].bytes.size += size;
  } else {
    rn_status_t status = rn_vec_push(&http2->queue, http2->options.allocator,
                                     (segment_t){.bytes = rn_str_n(NULL, size)});
    if (!rn_ok(status)) {
      rn_status_free(status);
      return NGHTTP2_ERR_NOMEM;
    }
  }
  http2->queue_bytes += size;
  return (ssize_t)size;
}

// What is left of the message to send.
static size_t left_of(const rn_stream_t* stream) {
  size_t left = stream->out_prefix_left;
  for (size_t i = stream->out_piece; i < stream->out.pieces.count; ++i)
    left += stream->out.pieces.items[i].bytes.size;
  return left - stream->out_offset;
}

static ssize_t on_read_length(nghttp2_session* session, uint8_t type, int32_t id,
                              int32_t session_window, int32_t stream_window, uint32_t max_frame,
                              void* arg) {
  (void)session, (void)type, (void)id, (void)session_window, (void)stream_window, (void)arg;
  return max_frame < MAX_FRAME ? (ssize_t)max_frame : MAX_FRAME;
}

#define NAME_VALUE(n, v, size) \
  { (uint8_t*)(n), (uint8_t*)(v), sizeof(n) - 1, (size), NGHTTP2_NV_FLAG_NONE }
#define NAME_LITERAL(n, v) NAME_VALUE(n, v, sizeof(v) - 1)

static size_t put_trailers(const rn_stream_t* stream, char* number, size_t room, nghttp2_nv* out) {
  int size = snprintf(number, room, "%d", stream->out_status);
  out[0] = (nghttp2_nv)NAME_VALUE("grpc-status", number, (size_t)size);
  if (!stream->out_details.size) return 1;
  out[1] =
      (nghttp2_nv)NAME_VALUE("grpc-message", stream->out_details.data, stream->out_details.size);
  return 2;
}

static void take_out_message(rn_stream_t* stream, rn_message_t* message) {
  rn_message_clear(&stream->out);
  stream->out = *message;
  *message = (rn_message_t){.allocator = message->allocator};
  size_t size = stream->out.size;
  const uint8_t prefix[5] = {0, (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                             (uint8_t)size};
  memcpy(stream->out_prefix, prefix, sizeof prefix);
  stream->out_prefix_left = sizeof prefix;
  stream->out_piece = stream->out_offset = 0;
}

// The next message of a stream becomes what is sent; false if none waits.
static bool next_message(rn_stream_t* stream) {
  if (stream->out_first == stream->outbox.count) return false;
  take_out_message(stream, &stream->outbox.items[stream->out_first++]);
  if (stream->out_first == stream->outbox.count) stream->out_first = stream->outbox.count = 0;
  return true;
}

static ssize_t on_read(nghttp2_session* session, int32_t id, uint8_t* buffer, size_t size,
                       uint32_t* flags, nghttp2_data_source* source, void* arg) {
  (void)buffer, (void)arg;
  rn_stream_t* stream = source->ptr;
  if (stream->is_streaming && left_of(stream) == 0 && !next_message(stream) && !stream->is_finished)
    return NGHTTP2_ERR_DEFERRED;
  size_t left = left_of(stream), n = left < size ? left : size;
  *flags = NGHTTP2_DATA_FLAG_NO_COPY;
  if (n < left || (n && stream->is_streaming)) return (ssize_t)n;
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (stream->out_status < 0) return (ssize_t)n;
  *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  nghttp2_nv trailers[2];
  char number[16];
  size_t count = put_trailers(stream, number, sizeof number, trailers);
  if (nghttp2_submit_trailer(session, id, trailers, count)) return NGHTTP2_ERR_CALLBACK_FAILURE;
  return (ssize_t)n;
}

// A stream that is over for us is over, whatever the client still has to say.
static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || frame->hd.type != NGHTTP2_HEADERS) return 0;
  const rn_stream_t* stream = stream_of(arg, frame->hd.stream_id);
  if (stream && stream->is_streaming &&
      !nghttp2_session_get_stream_remote_close(session, stream->id))
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
  return 0;
}

static rn_status_t enqueue(rn_http2_t* http2, rn_buffer_t* buffer, const char* data, size_t size) {
  RN_RETURN_IF_ERROR(rn_vec_push(&http2->queue, http2->options.allocator,
                                 (segment_t){.bytes = rn_str_n(data, size), .buffer = buffer}));
  rn_buffer_retain(buffer);
  http2->queue_bytes += size;
  return RN_OK;
}

static int on_send_data(nghttp2_session* session, nghttp2_frame* frame, const uint8_t* header,
                        size_t length, nghttp2_data_source* source, void* arg) {
  (void)frame;
  rn_http2_t* http2 = arg;
  rn_stream_t* stream = source->ptr;
  if (http2->queue_bytes > QUEUE_SIZE) return NGHTTP2_ERR_WOULDBLOCK;
  if (on_send(session, header, 9, 0, http2) < 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
  if (stream->out_prefix_left) {  // 5 bytes at most: they go at once
    size_t n = stream->out_prefix_left < length ? stream->out_prefix_left : length;
    const uint8_t* from = stream->out_prefix + sizeof stream->out_prefix - stream->out_prefix_left;
    if (on_send(session, from, n, 0, http2) < 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
    stream->out_prefix_left -= n;
    length -= n;
  }
  while (length) {
    const rn_piece_t* piece = &stream->out.pieces.items[stream->out_piece];
    size_t left = piece->bytes.size - stream->out_offset, n = left < length ? left : length;
    rn_status_t status = enqueue(http2, piece->buffer, piece->bytes.data + stream->out_offset, n);
    if (!rn_ok(status)) {
      rn_status_free(status);
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    length -= n;
    stream->out_offset += n;
    if (n == left) stream->out_piece++, stream->out_offset = 0;
  }
  return 0;
}

// Takes |size| written bytes off the queue.
static void dequeue(rn_http2_t* http2, size_t size) {
  http2->queue_bytes -= size;
  while (size) {
    segment_t* segment = &http2->queue.items[http2->queue_first];
    size_t n = segment->bytes.size < size ? segment->bytes.size : size;
    if (!segment->buffer) http2->small_first += n;
    segment->bytes.size -= n;
    if (segment->buffer) segment->bytes.data += n;
    size -= n;
    if (segment->bytes.size) continue;
    rn_buffer_release(segment->buffer);
    http2->queue_first++;
  }
  if (http2->queue_first < http2->queue.count) return;
  http2->queue.count = http2->queue_first = 0;
  http2->small.size = http2->small_first = 0;
}

// Writes what the socket takes; true if it would take more.
static bool write_some(rn_http2_t* http2) {
  rn_str_t pieces[MAX_PIECES];
  size_t count = 0, small = http2->small_first, written = 0;
  for (size_t i = http2->queue_first; i < http2->queue.count && count < MAX_PIECES; ++i) {
    const segment_t* segment = &http2->queue.items[i];
    pieces[count] = segment->bytes;
    if (!segment->buffer) {
      pieces[count].data = http2->small.data + small;
      small += segment->bytes.size;
    }
    count++;
  }
  rn_status_t status =
      http2->socket->vtable->write_pieces(http2->socket, pieces, count, RN_AT_ONCE, &written);
  dequeue(http2, written);
  http2->bytes_out += written;
  if (written && http2->has_stall) http2->moved_ns = now_of(http2);
  if (rn_ok(status)) return true;
  if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED)
    rn_status_free(status);
  else
    fail(http2, status);
  return false;
}

// Whether something was said that the peer has not made room for.
static bool waits_for_peer(const rn_http2_t* http2) {
  return (http2->watch.wants_write || http2->answered) && !http2->is_over;
}

// Makes frames and writes them, as far as the socket goes. Under the lock.
static void flush(rn_http2_t* http2) {
  bool is_blocked = false;
  while (!http2->is_over && !is_blocked) {
    int error = nghttp2_session_send(http2->session);
    if (error) fail(http2, rn_internal("HTTP/2: %s", nghttp2_strerror(error)));
    if (!http2->queue_bytes) break;
    while (http2->queue_bytes && !http2->is_over && !is_blocked) is_blocked = !write_some(http2);
  }
  if (!nghttp2_session_want_read(http2->session) && !nghttp2_session_want_write(http2->session) &&
      !http2->queue_bytes && !http2->is_over)
    fail(http2, rn_unavailable("Socket closed"));
  bool was_waiting = http2->watch.wants_write;
  http2->watch.wants_write = is_blocked && !http2->is_over;
  if (http2->watch.wants_write && !was_waiting) rn_loop_wake(http2->options.loop);
  if (http2->options.stall_ns && !http2->has_stall && waits_for_peer(http2)) {
    // Without room for a timer the peer has all the time there is.
    http2->moved_ns = now_of(http2);
    rn_status_t status = rn_loop_set_timer(http2->options.loop, &http2->stall,
                                           http2->moved_ns + http2->options.stall_ns);
    http2->has_stall = rn_ok(status);
    rn_status_free(status);
  }
}

// What everybody is told, on the loop's thread.

static rn_status_t result_of(rn_stream_t* stream, rn_status_t failure) {
  rn_status_t own = stream->failure;
  stream->failure = RN_OK;
  if (own) return own;
  if (stream->grpc_status > 0) return rn_grpc_status(stream->grpc_status, &stream->details);
  if (stream->grpc_status == 0)
    return is_whole(stream) ? RN_OK : rn_internal("The response ends within its message");
  if (failure) return rn_status_copy(failure);
  if (stream->reset_code == NGHTTP2_REFUSED_STREAM)
    return rn_unavailable("Stream refused by server");
  if (stream->reset_code == NGHTTP2_CANCEL) return rn_cancelled("RPC cancelled");
  if (stream->http_status && stream->http_status != 200)
    return rn_unavailable("Received http2 header with status: %d", stream->http_status);
  return rn_unavailable("The peer ended the call without a status (HTTP/2 error %u)",
                        (unsigned)stream->reset_code);
}

static rn_stream_t* next_event(rn_http2_t* http2, bool* out_is_closed, bool* out_is_request) {
  rn_stream_t* stream = http2->events;
  if (!stream) return NULL;
  http2->events = stream->next_event;
  stream->has_event = false;
  *out_is_closed = stream->is_closed;
  *out_is_request = stream->is_complete && http2->options.is_server;
  stream->is_complete = false;
  return stream;
}

// Tells of the messages that a stream has brought, and of its end if |is_end|.
static void tell_messages(rn_http2_t* http2, rn_stream_t* stream, bool is_end) {
  const rn_http2_events_t* events = http2->options.events;
  if (!stream->is_told) {
    stream->is_told = true;
    events->request(stream);
  }
  for (size_t i = 0;; ++i) {  // only this thread adds to the box
    if (i == stream->inbox.count) break;
    size_t size = stream->inbox.items[i].size;
    events->message(stream, &stream->inbox.items[i]);
    stream->held -= size;
    http2->held -= size;
  }
  stream->inbox.count = 0;
  if (is_end) events->message(stream, NULL);
}

static void tell(rn_http2_t* http2) {
  const rn_http2_events_t* events = http2->options.events;
  for (;;) {
    bool is_closed = false, is_request = false;
    rn_mutex_lock(&http2->mutex);
    rn_stream_t* stream = next_event(http2, &is_closed, &is_request);
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

// The end of the connection: every stream is closed, then the owner is told.
static void lose(rn_http2_t* http2) {
  rn_mutex_lock(&http2->mutex);
  bool is_first = http2->is_over && !http2->is_lost;
  if (is_first) {
    http2->is_lost = true;
    if (http2->caller) http2->caller->lost_ns = now_of(http2);
    while (http2->streams) close_stream(http2, http2->streams);
  }
  rn_mutex_unlock(&http2->mutex);
  if (!is_first) return;
  rn_loop_unwatch(http2->options.loop, &http2->watch);
  rn_loop_clear_timer(http2->options.loop, &http2->timer);
  rn_loop_clear_timer(http2->options.loop, &http2->stall);
  http2->socket->vtable->shutdown(http2->socket);
  tell(http2);
  http2->options.events->lost(http2->options.owner, http2, rn_status_copy(http2->failure));
}

static void take_bytes(rn_http2_t* http2, rn_str_t bytes) {
  http2->heard_ns = now_of(http2);
  http2->bytes_in += bytes.size;
  ssize_t used = nghttp2_session_mem_recv(http2->session, (const uint8_t*)bytes.data, bytes.size);
  if (used < 0) fail(http2, rn_unavailable("HTTP/2: %s", nghttp2_strerror((int)used)));
}

static void receive(rn_http2_t* http2) {
  size_t size = 0, room = 0;
  rn_mutex_lock(&http2->mutex);
  http2->is_reading = true;
  char* place = landing_place(http2, &room);
  rn_mutex_unlock(&http2->mutex);
  if (!place) place = http2->input, room = READ_SIZE;
  rn_status_t status = http2->socket->vtable->read(http2->socket, place, room, RN_AT_ONCE, &size);
  rn_mutex_lock(&http2->mutex);
  if (!rn_ok(status) && rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED) {
    rn_status_free(status);
  } else if (!rn_ok(status)) {
    fail(http2, status);
  } else if (size == 0) {
    fail(http2, rn_unavailable("Socket closed"));
  } else if (!http2->is_over) {
    take_bytes(http2, rn_str_n(place, size));
  }
  rn_mutex_unlock(&http2->mutex);
}

static void on_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  rn_http2_t* http2 = (rn_http2_t*)((char*)watch - __builtin_offsetof(rn_http2_t, watch));
  rn_http2_retain(http2);
  (void)can_write;
  if (can_read) {
    receive(http2);
    tell(http2);
  }
  // All that was said meanwhile goes out together.
  rn_mutex_lock(&http2->mutex);
  http2->is_reading = false;
  flush(http2);
  rn_mutex_unlock(&http2->mutex);
  tell(http2);
  lose(http2);
  rn_http2_release(http2);
}

// Asks a silent peer whether it lives, and gives up one that does not answer.
static void on_timer(rn_timer_t* timer) {
  rn_http2_t* http2 = (rn_http2_t*)((char*)timer - __builtin_offsetof(rn_http2_t, timer));
  int64_t keepalive = http2->options.keepalive_ns, next = now_of(http2) + keepalive;
  rn_http2_retain(http2);
  rn_mutex_lock(&http2->mutex);
  int64_t silence = now_of(http2) - http2->heard_ns;
  if (http2->stream_count == 0) {
    http2->heard_ns = now_of(http2);
  } else if (silence < keepalive) {
    next = http2->heard_ns + keepalive;
  } else if (http2->is_asked) {
    fail(http2, rn_unavailable("The peer has been silent for %.1f s", (double)silence * 1e-9));
  } else {
    http2->is_asked = true;
    nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, NULL);
    flush(http2);
  }
  rn_mutex_unlock(&http2->mutex);
  if (!http2->is_over) {
    rn_status_t status = rn_loop_set_timer(http2->options.loop, timer, next);
    rn_status_free(status);  // its room in the heap is still there
  }
  lose(http2);
  rn_http2_release(http2);
}

// Gives up a peer that has stopped reading, and what waits for it.
static void on_stall(rn_timer_t* timer) {
  rn_http2_t* http2 = (rn_http2_t*)((char*)timer - __builtin_offsetof(rn_http2_t, stall));
  rn_http2_retain(http2);
  rn_mutex_lock(&http2->mutex);
  int64_t at = http2->moved_ns + http2->options.stall_ns;
  http2->has_stall = false;
  if (waits_for_peer(http2) && now_of(http2) >= at) {
    fail(http2, rn_deadline_exceeded("The peer has stopped reading; %zu answers wait for it",
                                     http2->answered));
    http2->watch.wants_write = false;
  } else if (waits_for_peer(http2)) {
    rn_status_t status = rn_loop_set_timer(http2->options.loop, timer, at);
    http2->has_stall = rn_ok(status);
    rn_status_free(status);
  }
  rn_mutex_unlock(&http2->mutex);
  lose(http2);
  rn_http2_release(http2);
}

static void on_job(rn_loop_job_t* job) {
  rn_http2_t* http2 = (rn_http2_t*)((char*)job - __builtin_offsetof(rn_http2_t, job));
  rn_mutex_lock(&http2->mutex);
  http2->is_posted = false;
  flush(http2);
  rn_mutex_unlock(&http2->mutex);
  tell(http2);
  lose(http2);
  rn_http2_release(http2);
}

// Flushes, and lets the loop's thread hear of what came of it. Under the lock. The loop's thread
// itself flushes when it has nothing else to do: what it says in one go is written in one go.
static void push(rn_http2_t* http2) {
  bool is_here = rn_loop_is_here(http2->options.loop);
  if (is_here && http2->is_reading) return;
  if (!is_here) flush(http2);
  if (http2->is_posted || http2->is_lost) return;
  if (!is_here && !http2->events && !http2->is_over) return;
  http2->is_posted = true;
  rn_http2_retain(http2);
  rn_loop_post(http2->options.loop, &http2->job);
}

void rn_http2_close(rn_http2_t* http2, rn_status_t status) {
  rn_mutex_lock(&http2->mutex);
  http2->failure = rn_status_join(http2->failure, status);  // before what comes of closing
  if (!http2->is_over) {
    nghttp2_session_terminate_session(http2->session, NGHTTP2_NO_ERROR);
    flush(http2);
  }
  http2->is_over = true;
  push(http2);
  rn_mutex_unlock(&http2->mutex);
}

// Calls.

rn_status_t rn_http2_request(rn_http2_t* http2, rn_stream_t* stream, const char* path,
                             const char* authority, int64_t deadline_ns, rn_message_t* message) {
  if (message->size > MAX_MESSAGE)
    return rn_resource_exhausted("A message of %zu bytes is more than a call can carry",
                                 message->size);
  stream_init(http2, stream);
  char timeout[32];
  nghttp2_nv headers[] = {
      NAME_LITERAL(":method", "POST"),
      NAME_LITERAL(":scheme", "http"),
      NAME_VALUE(":path", path, strlen(path)),
      NAME_VALUE(":authority", authority, strlen(authority)),
      NAME_LITERAL("content-type", "application/grpc"),
      NAME_LITERAL("te", "trailers"),
      NAME_LITERAL("grpc-accept-encoding", "identity"),
      NAME_LITERAL("user-agent", "runnel"),
      NAME_VALUE("grpc-timeout", timeout, 0),
  };
  size_t count = sizeof headers / sizeof *headers - 1;
  if (deadline_ns != INT64_MAX)
    headers[count++].valuelen =
        rn_grpc_timeout_print(deadline_ns - now_of(http2), timeout, sizeof timeout);
  rn_mutex_lock(&http2->mutex);
  rn_status_t status = RN_OK;
  if (http2->is_over || http2->is_drained) {
    status = http2->failure ? rn_status_copy(http2->failure) : rn_unavailable("Socket closed");
  } else {
    open_stream(http2, stream);
    stream->out_status = -1;
    take_out_message(stream, message);
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = on_read};
    stream->id = nghttp2_submit_request(http2->session, NULL, headers, count, &provider, stream);
    if (stream->id < 0) {
      status = rn_unavailable("HTTP/2: %s", nghttp2_strerror(stream->id));
      *message = stream->out;
      stream->out = (rn_message_t){.allocator = message->allocator};
      close_stream(http2, stream);
      http2->events = stream->next_event;  // nobody hears of it
      stream->has_event = false;
    } else {
      push(http2);
    }
  }
  rn_mutex_unlock(&http2->mutex);
  if (!rn_ok(status)) rn_stream_clear(stream);
  return status;
}

// Under the lock, with the stream open.
static void submit_response(rn_http2_t* http2, rn_stream_t* stream, bool has_message) {
  nghttp2_nv headers[4] = {
      NAME_LITERAL(":status", "200"),
      NAME_LITERAL("content-type", "application/grpc"),
  };
  char number[16];
  if (has_message) {
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = on_read};
    nghttp2_submit_response(http2->session, stream->id, headers, 2, &provider);
  } else {
    size_t count = put_trailers(stream, number, sizeof number, headers + 2);
    nghttp2_submit_response(http2->session, stream->id, headers, 2 + count, NULL);
  }
}

// Lets what waits in a stream go out, after the headers. Under the lock.
static void go_on(rn_http2_t* http2, rn_stream_t* stream) {
  if (stream->has_response)
    nghttp2_session_resume_data(http2->session, stream->id);
  else
    submit_response(http2, stream, true);
  stream->has_response = true;
  push(http2);
}

void rn_http2_send(rn_stream_t* stream, rn_message_t* message) {
  rn_http2_t* http2 = stream->http2;
  rn_mutex_lock(&http2->mutex);
  if (!stream->is_closed && !http2->is_over && !stream->is_finished) {
    rn_status_t status = rn_vec_push(&stream->outbox, http2->options.allocator, *message);
    if (rn_ok(status)) *message = (rn_message_t){.allocator = message->allocator};
    if (rn_ok(status)) go_on(http2, stream);
    if (!rn_ok(status)) refuse(stream, status);
  }
  rn_mutex_unlock(&http2->mutex);
  rn_message_clear(message);
}

void rn_http2_respond(rn_stream_t* stream, rn_status_t status, rn_message_t* message) {
  rn_http2_t* http2 = stream->http2;
  if (rn_ok(status) && message->size > MAX_MESSAGE)
    status = rn_internal("Protobuf is too large to be serialized");
  rn_mutex_lock(&http2->mutex);
  if (!stream->is_closed && !http2->is_over) {
    stream->out_status = (int)rn_status_code(status);
    rn_grpc_escape(rn_str(rn_status_message(status)), &stream->out_details);
    if (stream->out_details.failed) stream->out_details.size = 0;
    if (rn_ok(status) && !stream->is_streaming) take_out_message(stream, message);
    stream->is_answered = stream->is_finished = true;
    http2->answered++;
    if (stream->is_streaming && (rn_ok(status) || stream->has_response)) {
      go_on(http2, stream);
    } else {
      submit_response(http2, stream, rn_ok(status));
      push(http2);
    }
  }
  rn_mutex_unlock(&http2->mutex);
  rn_status_free(status);
  rn_message_clear(message);
}

void rn_http2_reset(rn_stream_t* stream) {
  rn_http2_t* http2 = stream->http2;
  rn_mutex_lock(&http2->mutex);
  if (!stream->is_closed && !http2->is_over) {
    nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    push(http2);
  }
  rn_mutex_unlock(&http2->mutex);
}

// Making a connection.

static rn_status_t make_session(rn_http2_t* http2) {
  nghttp2_session_callbacks* callbacks = NULL;
  if (nghttp2_session_callbacks_new(&callbacks)) return rn_out_of_memory();
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  if (http2->options.is_server)
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
  nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
  nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, on_read_length);
  int error = http2->options.is_server
                  ? nghttp2_session_server_new(&http2->session, callbacks, http2)
                  : nghttp2_session_client_new(&http2->session, callbacks, http2);
  nghttp2_session_callbacks_del(callbacks);
  return error ? rn_out_of_memory() : RN_OK;
}

static rn_status_t greet(rn_http2_t* http2) {
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, MAX_FRAME},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MAX_HEADERS},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
       http2->options.max_streams ? http2->options.max_streams : MAX_STREAMS},
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
  };
  size_t count = sizeof settings / sizeof *settings - (http2->options.is_server ? 1 : 0);
  int error = nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, settings, count);
  if (!error)
    error = nghttp2_session_set_local_window_size(http2->session, NGHTTP2_FLAG_NONE, 0,
                                                  CONNECTION_WINDOW);
  return error ? rn_internal("HTTP/2: %s", nghttp2_strerror(error)) : RN_OK;
}

static rn_status_t set_up(rn_http2_t* http2) {
  RN_RETURN_IF_ERROR(rn_alloc(http2->options.allocator, READ_SIZE, (void**)&http2->input));
  RN_RETURN_IF_ERROR(make_session(http2));
  RN_RETURN_IF_ERROR(greet(http2));
  RN_RETURN_IF_ERROR(rn_loop_watch(http2->options.loop, &http2->watch));
  if (http2->options.keepalive_ns > 0)
    RN_RETURN_IF_ERROR(rn_loop_set_timer(http2->options.loop, &http2->timer,
                                         now_of(http2) + http2->options.keepalive_ns));
  return RN_OK;
}

rn_status_t rn_http2_create(const rn_http2_options_t* options, rn_socket_t* socket,
                            rn_http2_t** out) {
  *out = NULL;
  rn_http2_t* http2 = NULL;
  rn_status_t status = RN_NEW(options->allocator, &http2);
  if (!rn_ok(status)) {
    socket->vtable->close(socket);
    return status;
  }
  http2->refs = 1;
  http2->options = *options;
  http2->socket = socket;
  http2->watch.socket = socket;
  http2->watch.ready = on_ready;
  http2->timer.fn = on_timer;
  http2->stall.fn = on_stall;
  http2->job.run = on_job;
  http2->heard_ns = now_of(http2);
  snprintf(http2->peer, sizeof http2->peer, "%.*s", RN_STR_ARGS(options->peer));
  rn_mutex_init(&http2->mutex);
  rn_strbuf_init(&http2->small, options->allocator);
  if (options->is_server) status = rn_caller_create(options->allocator, &http2->caller);
  if (rn_ok(status)) status = set_up(http2);
  if (!rn_ok(status)) {
    rn_loop_unwatch(options->loop, &http2->watch);
    rn_loop_clear_timer(options->loop, &http2->timer);
    rn_loop_clear_timer(options->loop, &http2->stall);
    rn_http2_release(http2);
    return status;
  }
  rn_mutex_lock(&http2->mutex);
  if (options->first.size) take_bytes(http2, options->first);
  push(http2);
  rn_mutex_unlock(&http2->mutex);
  *out = http2;
  return RN_OK;
}
