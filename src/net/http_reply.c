// Responses of an HTTP server, from any thread: see http_server.h.
//
// A reply is written at once, under the connection's lock, so that no other thread is woken. Heads
// and short bodies are gathered; long bodies are written from their own buffers.
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/container.h"
#include "net/http_internal.h"

// Bodies of up to this size are copied, which is cheaper than another piece to write.
#define SMALL_BODY ((size_t)4 << 10)
// Responses that may wait while further requests of the same client are handled.
#define MAX_TEXT ((size_t)64 << 10)
#define MAX_PIECES 64

bool rn_http_has_output(const rn_http_connection_t* connection) {
  return connection->text_first < connection->text.size || connection->body.pieces.count;
}

bool rn_http_is_free(const rn_http_connection_t* connection) {
  return !connection->request && !connection->body.pieces.count &&
         connection->text.size - connection->text_first < MAX_TEXT;
}

static size_t gather(const rn_http_connection_t* connection, rn_str_t* pieces) {
  size_t count = 0, offset = connection->offset;
  const rn_strbuf_t* text = &connection->text;
  if (connection->text_first < text->size)
    pieces[count++] =
        rn_str_n(text->data + connection->text_first, text->size - connection->text_first);
  for (size_t i = connection->piece; i < connection->body.pieces.count && count < MAX_PIECES; ++i) {
    rn_str_t bytes = connection->body.pieces.items[i].bytes;
    pieces[count++] = rn_str_n(bytes.data + offset, bytes.size - offset);
    offset = 0;
  }
  return count;
}

// Removes |size| written bytes.
static void advance(rn_http_connection_t* connection, size_t size) {
  rn_strbuf_t* text = &connection->text;
  size_t n =
      text->size - connection->text_first < size ? text->size - connection->text_first : size;
  connection->text_first += n;
  for (size -= n; size; size -= n) {
    size_t left = connection->body.pieces.items[connection->piece].bytes.size - connection->offset;
    n = left < size ? left : size;
    connection->offset += n;
    if (n == left) connection->piece++, connection->offset = 0;
  }
  if (connection->text_first == text->size) {
    connection->text_first = text->size = 0;
    if (text->capacity > MAX_TEXT) rn_strbuf_clear(text);
  }
  if (connection->body.pieces.count && connection->piece == connection->body.pieces.count) {
    rn_message_clear(&connection->body);
    connection->piece = connection->offset = 0;
  }
}

void rn_http_flush(rn_http_connection_t* connection) {
  rn_http_lane_t* lane = connection->lane;
  rn_socket_t* socket = connection->socket;
  rn_status_t status = RN_OK;
  if (!socket || connection->has_failed) return;
  while (rn_ok(status) && rn_http_has_output(connection)) {
    rn_str_t pieces[MAX_PIECES];
    size_t count = gather(connection, pieces), written = 0;
    status = socket->vtable->write_pieces(socket, pieces, count, RN_AT_ONCE, &written);
    advance(connection, written);
    atomic_fetch_add_explicit(&lane->server->bytes_out, written, memory_order_relaxed);
    if (written) connection->moved_ns = rn_loop_now(lane->base.loop);
  }
  bool is_blocked = rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED;
  connection->has_failed = !rn_ok(status) && !is_blocked;
  rn_status_free(status);
  if (is_blocked != connection->is_blocked) lane->server->requests += is_blocked ? 1 : (size_t)-1;
  connection->is_blocked = is_blocked;
  rn_loop_want(lane->base.loop, &connection->watch, !connection->watch.is_deaf, is_blocked);
}

// "Tue, 17 Nov 2026 11:02:02 GMT", made once per second.
static rn_str_t date_of(rn_http_connection_t* connection) {
  static const char days[] = "SunMonTueWedThuFriSat",
                    months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const rn_env_t* env = rn_loop_env(connection->lane->base.loop);
  int64_t now_s = env->wall_us(env->self) / 1000000;
  time_t time = (time_t)now_s;
  struct tm at;
  if (connection->date_s != now_s && gmtime_r(&time, &at)) {
    snprintf(connection->date, sizeof connection->date, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
             days + 3 * at.tm_wday, at.tm_mday, months + 3 * at.tm_mon, at.tm_year + 1900,
             at.tm_hour, at.tm_min, at.tm_sec);
    connection->date_s = now_s;
  }
  return rn_str(connection->date);
}

static void print_head(rn_http_connection_t* connection, const rn_http_out_t* out, bool is_old) {
  rn_http1_response_t response = {
      .code = out->code,
      .type = out->type || !out->body.size ? out->type : "application/json",
      .size = out->body.size,
      .headers = out->headers,
      .header_count = out->header_count,
      .date = date_of(connection),
      .connection = connection->closes ? "close"
                    : is_old           ? "keep-alive"
                                       : NULL};
  rn_http1_print_head(&response, &connection->text);
}

static void add_body(rn_http_connection_t* connection, rn_message_t* body) {
  if (body->size > SMALL_BODY) {
    connection->body = *body;
    *body = (rn_message_t){.allocator = body->allocator};
    return;
  }
  for (size_t i = 0; i < body->pieces.count; ++i)
    rn_strbuf_append(&connection->text, body->pieces.items[i].bytes);
}

void rn_http_refuse(rn_http_connection_t* connection, int code, const char* why) {
  rn_http_out_t out = {.code = code};
  char text[256];
  snprintf(text, sizeof text, "{\"error\": \"%s\"}\n", why);
  out.body.size = strlen(text);
  connection->lane->server->refused++;
  connection->closes = true;
  print_head(connection, &out, false);
  rn_strbuf_append(&connection->text, rn_str(text));
}

// Lets the loop's thread continue, if it has something to do. Under the lock.
static void push(rn_http_connection_t* connection) {
  bool is_due = connection->has_failed || (connection->closes && !rn_http_has_output(connection)) ||
                (connection->has_input && rn_http_is_free(connection));
  if (!is_due || connection->is_reading || connection->is_posted || !connection->socket) return;
  connection->is_posted = true;
  rn_http_connection_retain(connection);
  rn_loop_post(connection->lane->base.loop, &connection->job);
}

void rn_http_reply(rn_http_in_t* in, rn_http_out_t* out) {
  rn_http_request_t* request = RN_CONTAINER_OF(in, rn_http_request_t, in);
  rn_http_connection_t* connection = request->connection;
  rn_http_server_t* server = connection->lane->server;
  rn_mutex_lock(&connection->mutex);
  bool is_open = connection->request == request;  // else the client is gone
  if (is_open) {
    connection->request = NULL;
    if (out->closes || !request->keeps_open || server->group.is_draining) connection->closes = true;
    print_head(connection, out, request->is_old);
    bool has_body = !request->is_head && out->code != 204 && out->code != 304;
    if (has_body) add_body(connection, &out->body);
    if (connection->text.failed) connection->has_failed = true;
    connection->moved_ns = rn_loop_now(connection->lane->base.loop);
    // The loop's thread writes the responses to all requests of one read together.
    if (!connection->is_reading || !rn_loop_is_here(connection->lane->base.loop))
      rn_http_flush(connection);
    push(connection);
  }
  rn_mutex_unlock(&connection->mutex);
  rn_message_clear(&out->body);
  atomic_fetch_sub_explicit(&server->requests, 1, memory_order_relaxed);
  if (is_open) request->holds--;  // the connection's, which is not the last
  rn_http_request_release(request);
}
