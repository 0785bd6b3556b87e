// A connection of an HTTP server: reads requests, one at a time, and ends. See http_internal.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memmem
#endif
#include <stdatomic.h>
#include <stdio.h>

#include "base/container.h"
#include "net/http_internal.h"

// What a client may send ahead while its request is being handled.
#define MAX_AHEAD ((size_t)64 << 10)
// Memory for input that an idle connection keeps.
#define MAX_KEPT ((size_t)4 << 10)
// Bytes of a body that count as progress, so that a byte now and then does not.
#define PROGRESS ((size_t)4 << 10)
// Decompressed at a time, before other connections have their turn.
#define UNPACKED_PER_TURN ((size_t)1 << 20)
// How long input is discarded after the last response: closing at once would reset the connection
// before the client has read it.
#define LINGER_NS INT64_C(200000000)

static int64_t now_of(const rn_http_connection_t* connection) {
  return rn_loop_now(connection->lane->base.loop);
}

void rn_http_connection_retain(rn_http_connection_t* connection) { connection->refs++; }

void rn_http_connection_release(rn_http_connection_t* connection) {
  if (--connection->refs) return;
  rn_http_server_t* server = connection->lane->server;
  rn_strbuf_clear(&connection->input);
  rn_strbuf_clear(&connection->text);
  rn_message_clear(&connection->body);
  rn_mutex_destroy(&connection->mutex);
  RN_FREE(server->options.allocator, connection);
  rn_mutex_lock(&server->mutex);
  if (--server->connections == 0) rn_cond_broadcast(&server->changed);
  rn_mutex_unlock(&server->mutex);
}

// The lane's list: the connection that was used last is the first.

static void unlist(rn_http_connection_t* connection) {
  rn_http_lane_t* lane = connection->lane;
  if (connection->previous)
    connection->previous->next = connection->next;
  else
    lane->first = connection->next;
  if (connection->next)
    connection->next->previous = connection->previous;
  else
    lane->last = connection->previous;
  connection->previous = connection->next = NULL;
}

static void list_first(rn_http_connection_t* connection) {
  rn_http_lane_t* lane = connection->lane;
  connection->next = lane->first;
  if (lane->first)
    lane->first->previous = connection;
  else
    lane->last = connection;
  lane->first = connection;
}

static void note_use(rn_http_connection_t* connection) {
  if (connection->lane->first == connection) return;
  unlist(connection);
  list_first(connection);
}

void rn_http_connection_close(rn_http_connection_t* connection) {
  rn_http_lane_t* lane = connection->lane;
  if (!connection->is_listed) return;
  connection->is_listed = false;
  unlist(connection);
  lane->count--;
  rn_mutex_lock(&connection->mutex);
  rn_socket_t* socket = connection->socket;
  rn_http_request_t* request = connection->request;
  connection->socket = NULL;
  connection->request = NULL;
  if (connection->is_blocked) lane->server->requests--;
  rn_mutex_unlock(&connection->mutex);
  rn_loop_unwatch(lane->base.loop, &connection->watch);
  socket->vtable->close(socket);
  if (connection->incoming) rn_http_request_release(connection->incoming);
  connection->incoming = NULL;
  if (request) {
    rn_cancel(&request->in.cancel);
    rn_http_request_release(request);
  }
  rn_http_connection_release(connection);
}

static void refuse(rn_http_connection_t* connection, int code, const char* why) {
  rn_mutex_lock(&connection->mutex);
  rn_http_refuse(connection, code, why);
  rn_mutex_unlock(&connection->mutex);
  if (connection->incoming) rn_http_request_release(connection->incoming);
  connection->incoming = NULL;
  connection->state = RN_HTTP_ENDS;
  connection->lingers = true;
  connection->since_ns = now_of(connection);
}

// Requests.

static void deliver(rn_http_connection_t* connection) {
  rn_http_server_t* server = connection->lane->server;
  rn_http_request_t* request = connection->incoming;
  rn_http_in_t* in = &request->in;
  connection->incoming = NULL;
  connection->state = RN_HTTP_WAITS;
  in->begun_ns = now_of(connection);
  in->body_buffer = request->body.buffer;
  const rn_http_body_t* body = &request->body;
  in->body = body->buffer ? rn_str_n((char*)body->buffer->data + body->pad, body->size - body->pad)
                          : RN_STR("");
  note_use(connection);
  atomic_fetch_add_explicit(&server->requests, 1, memory_order_relaxed);
  request->holds = 2;
  rn_mutex_lock(&connection->mutex);
  connection->request = request;
  rn_mutex_unlock(&connection->mutex);
  server->options.handle(server->options.self, in);
}

static const char* reason_of(int code) {
  switch (code) {
    case 413:
      return "The request is too large";
    case 415:
      return "The content encoding is not supported: gzip and deflate are";
    case 431:
      return "The trailers are too large";
    case 503:
      return "There is no memory for the request";
    default:
      return "The body is malformed";
  }
}

// The body is complete. A compressed one is decompressed, in several turns if it is long.
static void end_body(rn_http_connection_t* connection) {
  rn_http_body_t* body = &connection->incoming->body;
  int code = body->is_packed ? rn_http_body_unpack(body, UNPACKED_PER_TURN) : 0;
  if (code) {
    refuse(connection, code, reason_of(code));
  } else if (!body->is_packed) {
    deliver(connection);
  } else {
    connection->state = RN_HTTP_UNPACKS;
    rn_mutex_lock(&connection->mutex);
    if (!connection->is_posted) {
      connection->is_posted = true;
      rn_http_connection_retain(connection);
      rn_loop_post(connection->lane->base.loop, &connection->job);
    }
    rn_mutex_unlock(&connection->mutex);
  }
}

static void note_progress(rn_http_connection_t* connection, size_t size) {
  connection->progress += size;
  if (connection->progress < PROGRESS) return;
  connection->progress = 0;
  connection->since_ns = now_of(connection);
}

static void take_body(rn_http_connection_t* connection, rn_str_t* bytes) {
  rn_http_body_t* body = &connection->incoming->body;
  size_t before = bytes->size;
  int code = rn_http_body_take(body, bytes);
  note_progress(connection, before - bytes->size);
  if (code)
    refuse(connection, code, reason_of(code));
  else if (body->is_whole)
    end_body(connection);
}

static const char* objection_to(const rn_http1_request_t* head, int* out_code) {
  *out_code = 400;
  if (head->minor == 1 && head->host_count != 1) return "The request must have one header Host";
  if (head->is_demanding) {
    *out_code = 417;
    return "The expectation is not supported";
  }
  return NULL;
}

static void begin_request(rn_http_connection_t* connection, const rn_http1_request_t* head,
                          rn_str_t* bytes) {
  int code = 0;
  const char* objection = objection_to(head, &code);
  if (objection) {
    refuse(connection, code, objection);
    return;
  }
  rn_status_t status = rn_http_request_create(connection, head, bytes->data, &connection->incoming);
  *bytes = rn_str_n(bytes->data + head->size, bytes->size - head->size);
  const rn_http_server_options_t* options = &connection->lane->server->options;
  size_t aligned = options->align ? options->align(head) : 0;
  code = rn_ok(status) ? rn_http_body_begin(&connection->incoming->body, head, aligned) : 503;
  rn_status_free(status);
  if (code) {
    refuse(connection, code, reason_of(code));
    return;
  }
  connection->state = RN_HTTP_BODY;
  connection->since_ns = now_of(connection);
  connection->progress = 0;
  if (connection->incoming->body.is_whole) {
    end_body(connection);
  } else if (head->is_waiting && head->minor == 1 && !bytes->size) {
    rn_mutex_lock(&connection->mutex);
    rn_strbuf_append(&connection->text, RN_STR("HTTP/1.1 100 Continue\r\n\r\n"));
    rn_mutex_unlock(&connection->mutex);
  }
}

static void refuse_head(rn_http_connection_t* connection, rn_http1_state_t state) {
  if (state == RN_HTTP1_TOO_LARGE)
    refuse(connection, 431, "The head of the request is too large");
  else if (state == RN_HTTP1_UNKNOWN)
    refuse(connection, 501, "The transfer coding is not supported: only chunked is");
  else
    refuse(connection, 400, "The request is malformed");
}

// Whether the head in |bytes| may be complete, or should be parsed to refuse garbage early: each
// time it has doubled, so that all in all this takes linear time.
static bool is_worth_parsing(rn_http_connection_t* connection, rn_str_t bytes, size_t max) {
  size_t from = connection->searched > 3 ? connection->searched - 3 : 0;
  connection->searched = bytes.size;
  if (memmem(bytes.data + from, bytes.size - from, "\r\n\r\n", 4) || bytes.size > max) return true;
  if (bytes.size < 2 * connection->considered) return false;
  connection->considered = bytes.size;
  return true;
}

// False if more bytes are needed.
static bool take_head(rn_http_connection_t* connection, rn_str_t* bytes) {
  const size_t max = connection->lane->server->options.max_head;
  while (bytes->size > 1 && bytes->data[0] == '\r' && bytes->data[1] == '\n')
    *bytes = rn_str_n(bytes->data + 2, bytes->size - 2);  // of clients that end bodies with it
  if (!bytes->size || (bytes->size == 1 && bytes->data[0] == '\r')) return false;
  if (!is_worth_parsing(connection, *bytes, max)) return false;
  rn_http1_request_t head;
  rn_http1_state_t state = rn_http1_parse(*bytes, max, &head);
  if (state == RN_HTTP1_MORE) return false;
  connection->searched = connection->considered = 0;
  connection->is_half = false;
  if (state == RN_HTTP1_WHOLE || state == RN_HTTP1_HAS_BODY)
    begin_request(connection, &head, bytes);
  else
    refuse_head(connection, state);
  return true;
}

// Whether the connection has replied, and may take the next request.
static bool has_replied(rn_http_connection_t* connection) {
  rn_mutex_lock(&connection->mutex);
  bool is_free = rn_http_is_free(connection), closes = connection->closes;
  rn_mutex_unlock(&connection->mutex);
  if (is_free) connection->state = closes ? RN_HTTP_ENDS : RN_HTTP_HEAD;
  return is_free;
}

// Uses as much of |*bytes| as it can.
static void use(rn_http_connection_t* connection, rn_str_t* bytes) {
  while (bytes->size) {
    switch (connection->state) {
      case RN_HTTP_HEAD:
        if (!take_head(connection, bytes)) return;
        break;
      case RN_HTTP_BODY:
        take_body(connection, bytes);
        break;
      case RN_HTTP_UNPACKS:
        return;
      case RN_HTTP_WAITS:
        if (!has_replied(connection)) return;
        break;
      case RN_HTTP_ENDS:
        if (!connection->lingers) connection->since_ns = now_of(connection);
        connection->lingers = true;
        bytes->size = 0;
        return;
    }
  }
}

// Keeps what was not used. Under the lock.
static void keep(rn_http_connection_t* connection, rn_str_t bytes) {
  rn_strbuf_t* input = &connection->input;
  if (input->size) {  // then |bytes| are its end
    memmove(input->data, bytes.data, bytes.size);
    input->size = bytes.size;
  } else {
    rn_strbuf_append(input, bytes);
  }
  if (input->failed) connection->has_failed = true;
  if (!input->size && input->capacity > MAX_KEPT) rn_strbuf_clear(input);
  connection->has_input = input->size > 0;
  if (connection->state == RN_HTTP_HEAD && input->size && !connection->is_half) {
    connection->is_half = true;
    connection->since_ns = now_of(connection);
  }
}

// After something has happened: closes the connection if it is over, and watches what it waits for.
static void settle(rn_http_connection_t* connection) {
  if (!connection->is_listed) return;
  rn_mutex_lock(&connection->mutex);
  bool is_idle = !connection->request && !rn_http_has_output(connection);
  bool is_partial = connection->incoming != NULL;
  if (is_idle && connection->closes && connection->lingers && !connection->is_finished) {
    connection->is_finished = true;
    connection->socket->vtable->finish(connection->socket);
  }
  bool is_over = connection->has_failed || (is_idle && connection->is_ended && !is_partial) ||
                 (is_idle && connection->closes && !connection->lingers);
  if (connection->is_ended && is_partial && connection->state != RN_HTTP_UNPACKS) is_over = true;
  bool is_full = connection->state >= RN_HTTP_UNPACKS && connection->state != RN_HTTP_ENDS &&
                 connection->input.size >= MAX_AHEAD;
  bool reads = !connection->is_ended && !is_full;
  if (!is_over)
    rn_loop_want(connection->lane->base.loop, &connection->watch, reads,
                 connection->watch.wants_write);
  rn_mutex_unlock(&connection->mutex);
  if (is_over) rn_http_connection_close(connection);
}

// Uses |bytes|, writes the replies, and goes on as long as there are both.
static void go_on(rn_http_connection_t* connection, rn_str_t bytes) {
  for (bool again = true; again;) {
    use(connection, &bytes);
    rn_mutex_lock(&connection->mutex);
    rn_http_flush(connection);
    again = bytes.size && connection->state == RN_HTTP_WAITS && rn_http_is_free(connection);
    if (!again) {
      keep(connection, bytes);
      connection->is_reading = false;
    }
    rn_mutex_unlock(&connection->mutex);
  }
  settle(connection);
}

static void set_reading(rn_http_connection_t* connection) {
  rn_mutex_lock(&connection->mutex);
  connection->is_reading = true;
  rn_mutex_unlock(&connection->mutex);
}

static void on_job(rn_loop_job_t* job) {
  rn_http_connection_t* connection = RN_CONTAINER_OF(job, rn_http_connection_t, job);
  rn_mutex_lock(&connection->mutex);
  connection->is_posted = false;
  connection->is_reading = true;
  rn_mutex_unlock(&connection->mutex);
  if (connection->is_listed) {
    if (connection->state == RN_HTTP_UNPACKS) end_body(connection);
    go_on(connection, rn_strbuf_view(&connection->input));
  }
  rn_http_connection_release(connection);
}

// Reading.

// The client sends no more. It may still read the response, but most clients do not.
static void end_input(rn_http_connection_t* connection) {
  connection->is_ended = true;
  connection->considered = 0;  // what there is of a head is parsed once more
  rn_mutex_lock(&connection->mutex);
  rn_http_request_t* request = connection->request;
  if (request) request->holds++;
  rn_mutex_unlock(&connection->mutex);
  if (request) {
    rn_cancel(&request->in.cancel);
    rn_http_request_release(request);
  }
  go_on(connection, rn_strbuf_view(&connection->input));
}

static void take_input(rn_http_connection_t* connection, rn_str_t bytes) {
  rn_strbuf_t* input = &connection->input;
  if (input->size) {
    rn_strbuf_append(input, bytes);
    bytes = rn_strbuf_view(input);
    if (input->failed) connection->state = RN_HTTP_ENDS;  // keep fails the connection
  }
  go_on(connection, bytes);
}

static void take_landed(rn_http_connection_t* connection, size_t size) {
  rn_http_body_t* body = &connection->incoming->body;
  int code = rn_http_body_landed(body, size);
  note_progress(connection, size);
  if (code)
    refuse(connection, code, reason_of(code));
  else if (body->is_whole)
    end_body(connection);
  go_on(connection, rn_strbuf_view(&connection->input));
}

static void receive(rn_http_connection_t* connection) {
  rn_http_lane_t* lane = connection->lane;
  size_t room = 0, size = 0;
  set_reading(connection);
  char* place = connection->state == RN_HTTP_BODY && !connection->input.size
                    ? rn_http_body_place(&connection->incoming->body, &room)
                    : NULL;
  bool lands = place != NULL;
  if (!lands) place = rn_loop_scratch(lane->base.loop), room = RN_LOOP_SCRATCH;
  rn_socket_t* socket = connection->socket;  // which only this thread closes
  rn_status_t status = socket->vtable->read(socket, place, room, RN_AT_ONCE, &size);
  bool has_none = rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED;
  bool has_failed = !rn_ok(status) && !has_none;
  rn_status_free(status);
  atomic_fetch_add_explicit(&lane->server->bytes_in, size, memory_order_relaxed);
  if (has_failed)
    rn_http_connection_close(connection);
  else if (has_none)
    go_on(connection, rn_strbuf_view(&connection->input));
  else if (!size)
    end_input(connection);
  else if (lands)
    take_landed(connection, size);
  else
    take_input(connection, rn_str_n(place, size));
}

static void on_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  rn_http_connection_t* connection = RN_CONTAINER_OF(watch, rn_http_connection_t, watch);
  rn_http_connection_retain(connection);
  if (can_read && watch->is_deaf) {  // it is only told of failures
    rn_http_connection_close(connection);
  } else if (can_read) {
    receive(connection);
  } else if (can_write) {
    set_reading(connection);
    go_on(connection, rn_strbuf_view(&connection->input));
  }
  rn_http_connection_release(connection);
}

void rn_http_connection_open(rn_http_lane_t* lane, rn_socket_t* socket, rn_str_t first,
                             rn_str_t peer) {
  rn_http_server_t* server = lane->server;
  size_t most = server->options.max_connections / server->lane_count;
  bool has_room =
      !server->options.max_connections || lane->count < (most ? most : 1) || rn_http_evict(lane);
  rn_http_connection_t* connection = NULL;
  rn_status_t status = has_room ? RN_NEW(server->options.allocator, &connection) : RN_OK;
  if (!connection) {
    rn_status_free(status);
    server->refused++;
    socket->vtable->close(socket);
    return;
  }
  connection->refs = 1;
  connection->lane = lane;
  connection->socket = socket;
  connection->is_local = socket->vtable->is_local(socket);
  connection->job.run = on_job;
  connection->watch = (rn_watch_t){.socket = socket, .ready = on_ready};
  connection->since_ns = connection->moved_ns = rn_loop_now(lane->base.loop);
  snprintf(connection->peer, sizeof connection->peer, "%.*s", RN_STR_ARGS(peer));
  rn_mutex_init(&connection->mutex);
  rn_strbuf_init(&connection->input, server->options.allocator);
  rn_strbuf_init(&connection->text, server->options.allocator);
  rn_message_init(&connection->body, server->options.allocator);
  rn_mutex_lock(&server->mutex);
  server->connections++;
  rn_mutex_unlock(&server->mutex);
  list_first(connection);
  connection->is_listed = true;
  if (lane->count++ == 0)
    status = rn_loop_set_timer(lane->base.loop, &lane->sweep, rn_loop_now(lane->base.loop));
  if (rn_ok(status)) status = rn_loop_watch(lane->base.loop, &connection->watch);
  if (!rn_ok(status)) {
    rn_http_connection_close(connection);
  } else if (first.size) {
    set_reading(connection);
    go_on(connection, first);
  }
  rn_status_free(status);
}

// Time limits.

bool rn_http_evict(rn_http_lane_t* lane) {
  for (rn_http_connection_t* at = lane->last; at; at = at->previous) {
    rn_mutex_lock(&at->mutex);
    bool is_busy = at->request || rn_http_has_output(at);
    rn_mutex_unlock(&at->mutex);
    if (is_busy || at->state == RN_HTTP_UNPACKS) continue;
    lane->server->refused++;
    rn_http_connection_close(at);
    return true;
  }
  return false;
}

static void check_time(rn_http_connection_t* connection, int64_t now) {
  const rn_http_server_options_t* options = &connection->lane->server->options;
  rn_mutex_lock(&connection->mutex);
  bool is_busy = connection->request, has_output = rn_http_has_output(connection);
  int64_t moved_ns = connection->moved_ns, since_ns = connection->since_ns;
  rn_mutex_unlock(&connection->mutex);
  bool is_partial = connection->state == RN_HTTP_BODY || connection->is_half;
  if (has_output) {
    if (now - moved_ns > options->half_ns) rn_http_connection_close(connection);
  } else if (is_busy || connection->state == RN_HTTP_UNPACKS) {
    return;
  } else if (connection->state == RN_HTTP_ENDS) {
    if (now - since_ns > LINGER_NS) rn_http_connection_close(connection);
  } else if (is_partial && now - since_ns > options->half_ns) {
    refuse(connection, 408, "The request makes no progress");
    set_reading(connection);
    go_on(connection, RN_STR(""));
  } else if (!is_partial && now - (moved_ns > since_ns ? moved_ns : since_ns) > options->idle_ns) {
    rn_http_connection_close(connection);
  }
}

void rn_http_sweep(rn_http_lane_t* lane) {
  int64_t now = rn_loop_now(lane->base.loop);
  for (rn_http_connection_t *at = lane->first, *next; at; at = next) {
    next = at->next;
    check_time(at, now);
  }
}

void rn_http_drain_lane(rn_http_lane_t* lane) {
  for (rn_http_connection_t *at = lane->first, *next; at; at = next) {
    next = at->next;
    rn_mutex_lock(&at->mutex);
    bool is_busy = at->request || rn_http_has_output(at);
    at->closes |= is_busy;
    rn_mutex_unlock(&at->mutex);
    if (!is_busy && !at->incoming && !at->is_half) rn_http_connection_close(at);
  }
}
