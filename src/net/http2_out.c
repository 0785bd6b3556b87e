// Sends frames. See http2_internal.h.
//
// nghttp2 makes them. Small ones are copied into |small|; the payload of DATA frames is referenced
// in place. Both wait in |queue| until the socket takes them.
#include <stdio.h>

#include "net/grpc.h"
#include "net/http2_internal.h"
#include "net/token.h"

// The most bytes waiting to be written before no more frames are made.
#define QUEUE_SIZE (16u << 20)
// Pieces per write.
#define MAX_PIECES 64

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
                                     (rn_http2_segment_t){.bytes = rn_str_n(NULL, size)});
    if (!rn_ok(status)) {
      rn_status_free(status);
      return NGHTTP2_ERR_NOMEM;
    }
  }
  http2->queue_bytes += size;
  return (ssize_t)size;
}

// The rest of the message to send.
static size_t left_of(const rn_http2_stream_t* stream) {
  size_t left = stream->out_prefix_left;
  for (size_t i = stream->out_piece; i < stream->out.pieces.count; ++i)
    left += stream->out.pieces.items[i].bytes.size;
  return left - stream->out_offset;
}

static ssize_t on_read_length(nghttp2_session* session, uint8_t type, int32_t id,
                              int32_t session_window, int32_t stream_window, uint32_t max_frame,
                              void* arg) {
  (void)session, (void)type, (void)id, (void)session_window, (void)stream_window, (void)arg;
  return max_frame < RN_HTTP2_MAX_FRAME ? (ssize_t)max_frame : RN_HTTP2_MAX_FRAME;
}

#define NAME_VALUE(n, v, size) \
  { (uint8_t*)(n), (uint8_t*)(v), sizeof(n) - 1, (size), NGHTTP2_NV_FLAG_NONE }
#define NAME_LITERAL(n, v) NAME_VALUE(n, v, sizeof(v) - 1)

// The status, its message, and what the owner has added.
#define MAX_TRAILERS (2 + RN_HTTP2_MAX_TRAILERS)

static size_t put_trailers(const rn_http2_stream_t* stream, char* number, size_t room,
                           nghttp2_nv* out) {
  int size = snprintf(number, room, "%d", stream->out_status);
  size_t count = 0;
  out[count++] = (nghttp2_nv)NAME_VALUE("grpc-status", number, (size_t)size);
  rn_str_t rest = rn_strbuf_view(&stream->out_trailers);
  while (rest.size && count < MAX_TRAILERS) {
    rn_str_t name = rn_str_split(&rest, '\0'), value = rn_str_split(&rest, '\0');
    out[count++] =
        (nghttp2_nv){(uint8_t*)name.data, (uint8_t*)value.data, name.size, value.size, 0};
  }
  return count;
}

void rn_http2_set_message(rn_http2_stream_t* stream, rn_message_t* message) {
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

// Starts sending the next message of a stream; false if none waits.
static bool next_message(rn_http2_stream_t* stream) {
  if (stream->out_first == stream->outbox.count) return false;
  rn_http2_set_message(stream, &stream->outbox.items[stream->out_first++]);
  if (stream->out_first == stream->outbox.count) stream->out_first = stream->outbox.count = 0;
  return true;
}

static ssize_t on_read(nghttp2_session* session, int32_t id, uint8_t* buffer, size_t size,
                       uint32_t* flags, nghttp2_data_source* source, void* arg) {
  (void)buffer, (void)arg;
  rn_http2_stream_t* stream = source->ptr;
  if (stream->is_streaming && left_of(stream) == 0 && !next_message(stream) && !stream->is_finished)
    return NGHTTP2_ERR_DEFERRED;
  size_t left = left_of(stream), n = left < size ? left : size;
  *flags = NGHTTP2_DATA_FLAG_NO_COPY;
  if (n < left || (n && stream->is_streaming)) return (ssize_t)n;
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (stream->out_status < 0) return (ssize_t)n;
  *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  nghttp2_nv trailers[MAX_TRAILERS];
  char number[16];
  size_t count = put_trailers(stream, number, sizeof number, trailers);
  if (nghttp2_submit_trailer(session, id, trailers, count)) return NGHTTP2_ERR_CALLBACK_FAILURE;
  return (ssize_t)n;
}

// A stream that we have ended is over, even if the client would send more.
static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* arg) {
  if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || frame->hd.type != NGHTTP2_HEADERS) return 0;
  const rn_http2_stream_t* stream = rn_http2_stream_of(arg, frame->hd.stream_id);
  if (stream && (stream->is_streaming || stream->failure) &&
      !nghttp2_session_get_stream_remote_close(session, stream->id))
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
  return 0;
}

int32_t rn_http2_submit_request(rn_http2_t* http2, rn_http2_stream_t* stream, const char* path,
                                const char* authority, int64_t deadline_ns) {
  enum { kScheme = sizeof "Bearer " - 1 };
  char timeout[32], token[kScheme + RN_TOKEN_MAX + 1] = "Bearer ";
  nghttp2_nv headers[] = {
      NAME_LITERAL(":method", "POST"),
      NAME_LITERAL(":scheme", "http"),
      NAME_VALUE(":path", path, strlen(path)),
      NAME_VALUE(":authority", authority, strlen(authority)),
      NAME_LITERAL("content-type", "application/grpc"),
      NAME_LITERAL("te", "trailers"),
      NAME_LITERAL("grpc-accept-encoding", "identity"),
      NAME_LITERAL("user-agent", "runnel"),
      NAME_VALUE("", "", 0),
      NAME_VALUE("", "", 0),
  };
  size_t count = sizeof headers / sizeof *headers - 2;
  if (http2->options.tokens) {
    rn_tokens_own(http2->options.tokens, token + kScheme);
    headers[count] = (nghttp2_nv)NAME_VALUE("authorization", token, strlen(token));
    headers[count++].flags = NGHTTP2_NV_FLAG_NO_INDEX;
  }
  if (deadline_ns != INT64_MAX)
    headers[count++] = (nghttp2_nv)NAME_VALUE(
        "grpc-timeout", timeout,
        rn_grpc_timeout_print(deadline_ns - rn_http2_now(http2), timeout, sizeof timeout));
  nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = on_read};
  return nghttp2_submit_request(http2->session, NULL, headers, count, &provider, stream);
}

void rn_http2_submit_response(rn_http2_t* http2, rn_http2_stream_t* stream, bool has_message) {
  nghttp2_nv headers[2 + MAX_TRAILERS] = {
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

static rn_status_t enqueue(rn_http2_t* http2, rn_buffer_t* buffer, const char* data, size_t size) {
  RN_RETURN_IF_ERROR(
      rn_vec_push(&http2->queue, http2->options.allocator,
                  (rn_http2_segment_t){.bytes = rn_str_n(data, size), .buffer = buffer}));
  rn_buffer_retain(buffer);
  http2->queue_bytes += size;
  return RN_OK;
}

static int on_send_data(nghttp2_session* session, nghttp2_frame* frame, const uint8_t* header,
                        size_t length, nghttp2_data_source* source, void* arg) {
  (void)frame;
  rn_http2_t* http2 = arg;
  rn_http2_stream_t* stream = source->ptr;
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

// Removes |size| written bytes from the queue.
static void dequeue(rn_http2_t* http2, size_t size) {
  http2->queue_bytes -= size;
  while (size) {
    rn_http2_segment_t* segment = &http2->queue.items[http2->queue_first];
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

// Writes as much as the socket takes; true if it would take more.
static bool write_some(rn_http2_t* http2) {
  rn_str_t pieces[MAX_PIECES];
  size_t count = 0, small = http2->small_first, written = 0;
  for (size_t i = http2->queue_first; i < http2->queue.count && count < MAX_PIECES; ++i) {
    const rn_http2_segment_t* segment = &http2->queue.items[i];
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
  if (written && http2->has_stall) http2->moved_ns = rn_http2_now(http2);
  if (rn_ok(status)) return true;
  if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED)
    rn_status_free(status);
  else
    rn_http2_fail(http2, status);
  return false;
}

bool rn_http2_waits_for_peer(const rn_http2_t* http2) {
  return (http2->watch.wants_write || http2->answered) && !http2->is_over;
}

void rn_http2_flush(rn_http2_t* http2) {
  bool is_blocked = false;
  while (!http2->is_over && !is_blocked) {
    int error = nghttp2_session_send(http2->session);
    if (error) rn_http2_fail(http2, rn_internal("HTTP/2: %s", nghttp2_strerror(error)));
    if (!http2->queue_bytes) break;
    while (http2->queue_bytes && !http2->is_over && !is_blocked) is_blocked = !write_some(http2);
  }
  if (!nghttp2_session_want_read(http2->session) && !nghttp2_session_want_write(http2->session) &&
      !http2->queue_bytes && !http2->is_over)
    rn_http2_fail(http2, rn_unavailable("Socket closed"));
  if (!http2->is_over) rn_loop_want(http2->options.loop, &http2->watch, true, is_blocked);
  if (http2->options.stall_ns && !http2->has_stall && rn_http2_waits_for_peer(http2)) {
    // Without memory for a timer, the peer has no time limit.
    http2->moved_ns = rn_http2_now(http2);
    rn_status_t status = rn_loop_set_timer(http2->options.loop, &http2->stall,
                                           http2->moved_ns + http2->options.stall_ns);
    http2->has_stall = rn_ok(status);
    rn_status_free(status);
  }
}

void rn_http2_speak(nghttp2_session_callbacks* callbacks, bool is_server) {
  if (is_server) nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
  nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
  nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, on_read_length);
}
