// The gRPC server: see rpc_server.h.
#include "net/rpc_server.h"

#include "base/container.h"
#include "net/lanes.h"

#define PULSES 8

// Calls come from glibc's caches per thread, which have no larger blocks.
_Static_assert(sizeof(rn_rpc_in_t) <= 1032, "too large to allocate one per call");

// The connections of one loop.
typedef struct rpc_lane_t {
  rn_lane_t base;
  rn_rpc_server_t* server;
  rn_doors_t doors;                  // of the loop's thread, but for its counts
  RN_VEC(rn_http2_t*) connections;   // Retained. Changed by the loop's thread, under the lock
  _Atomic uint64_t old_in, old_out;  // bytes of closed connections
} rpc_lane_t;

struct rn_rpc_server_t {
  rn_rpc_server_options_t options;
  rn_lanes_t group;
  rpc_lane_t* lanes;
  size_t lane_count;
  rn_timer_t pulse;         // shows that this process is not stopped
  _Atomic size_t all_held;  // bytes of messages, of all connections
  rn_mutex_t mutex;         // guards what follows
  rn_cond_t changed;
  size_t call_count;
};

static rn_rpc_in_t* call_of(rn_http2_stream_t* stream) {
  return (rn_rpc_in_t*)((char*)stream - __builtin_offsetof(rn_rpc_in_t, stream));
}

static void count_call(rn_rpc_server_t* server, int by) {
  rn_mutex_lock(&server->mutex);
  server->call_count += (size_t)by;
  if (!server->call_count) rn_cond_broadcast(&server->changed);
  rn_mutex_unlock(&server->mutex);
}

static void let_go(rn_rpc_in_t* call) {
  if (--call->holds) return;
  rn_rpc_server_t* server = call->server;
  if (call->stream.deadline_ns != INT64_MAX) rn_loop_clear_timer(call->loop, &call->deadline);
  rn_cancel_destroy(&call->cancel);
  rn_http2_stream_clear(&call->stream);
  rn_http2_release(call->http2);
  RN_FREE(server->options.allocator, call);
  count_call(server, -1);
}

static rn_http2_stream_t* on_open(void* owner) {
  const rpc_lane_t* lane = owner;
  rn_rpc_server_t* server = lane->server;
  rn_rpc_in_t* call = NULL;
  rn_status_t status = RN_NEW(server->options.allocator, &call);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  call->server = server;
  call->loop = lane->base.loop;
  call->holds = 1;
  rn_cancel_init(&call->cancel);
  count_call(server, 1);
  return &call->stream;
}

static void on_deadline(rn_timer_t* timer) {
  rn_cancel(&((rn_rpc_in_t*)((char*)timer - __builtin_offsetof(rn_rpc_in_t, deadline)))->cancel);
}

static int64_t pulse_ns(const rn_rpc_server_t* server) {
  return 2 * server->options.keepalive_ns / PULSES;
}

// The pulse, eight per lease, is late by five or more: this process was stopped. Callers have given
// up on calls made meanwhile, or are about to (leases of a cluster: after thirteen sixteenths), so
// these must not run. The pulse resumes before the sockets are next polled.
static bool has_been_stopped(const rn_rpc_server_t* server) {
  int64_t lease = 2 * server->options.keepalive_ns;
  return lease && rn_loop_now(server->options.loop) - server->pulse.at_ns > lease / PULSES * 5;
}

static void on_pulse(rn_timer_t* timer) {
  rn_rpc_server_t* server =
      (rn_rpc_server_t*)((char*)timer - __builtin_offsetof(rn_rpc_server_t, pulse));
  rn_loop_t* loop = server->options.loop;
  int64_t next = rn_loop_now(loop) + pulse_ns(server);
  rn_status_free(rn_loop_set_timer(loop, timer, next));  // cannot fail: it was set before
}

static void on_request(rn_http2_stream_t* stream) {
  rn_rpc_in_t* call = call_of(stream);
  call->http2 = stream->http2;
  rn_http2_retain(call->http2);
  call->is_local = rn_http2_is_local(call->http2);
  call->holds++;
  call->deadline.fn = on_deadline;
  if (stream->deadline_ns != INT64_MAX) {
    // Without memory for a timer, the client's own deadline must do.
    rn_status_free(rn_loop_set_timer(call->loop, &call->deadline, stream->deadline_ns));
  }
  if (has_been_stopped(call->server)) {
    rn_message_t none;
    rn_message_init(&none, call->server->options.allocator);
    rn_rpc_reply(call, rn_unavailable("The task was stopped before the call arrived"), &none);
    return;
  }
  call->server->options.handle(call->server->options.self, call);
}

static void on_closed(rn_http2_stream_t* stream, rn_status_t status) {
  rn_rpc_in_t* call = call_of(stream);
  rn_status_free(status);
  rn_cancel(&call->cancel);
  if (call->gone) call->gone(call);
  let_go(call);
}

void rn_rpc_reply(rn_rpc_in_t* call, rn_status_t status, rn_message_t* message) {
  const rn_rpc_server_options_t* options = &call->server->options;
  if (options->replied) options->replied(options->self, call, rn_status_code(status));
  rn_http2_respond(&call->stream, status, message);
  let_go(call);
}

rn_str_t rn_rpc_header(const rn_rpc_in_t* call, const char* name) {
  rn_str_t rest = rn_strbuf_view(&call->stream.headers);
  while (rest.size) {
    rn_str_t found = rn_str_split(&rest, '\0'), value = rn_str_split(&rest, '\0');
    if (rn_str_is(found, name)) return value;
  }
  return RN_STR("");
}

void rn_rpc_add_trailer(rn_rpc_in_t* call, const char* name, rn_str_t value) {
  rn_strbuf_t* trailers = &call->stream.out_trailers;
  int count = 0;
  for (size_t i = 0; i < trailers->size; ++i) count += !trailers->data[i];
  if (count == 2 * RN_HTTP2_MAX_TRAILERS) return;
  rn_strbuf_append_n(trailers, name, strlen(name) + 1);
  rn_strbuf_append(trailers, value);
  rn_strbuf_append_n(trailers, "", 1);
  if (trailers->failed) trailers->size = 0;
}

void rn_rpc_send(rn_rpc_in_t* call, rn_message_t* message) {
  rn_http2_send(&call->stream, message);
}

static bool does_stream(void* owner, rn_str_t path) {
  const rn_rpc_server_t* server = ((const rpc_lane_t*)owner)->server;
  return server->options.streams && server->options.streams(path);
}

// A handler that refused the call at once gets no callbacks.
static void on_message(rn_http2_stream_t* stream, rn_message_t* message) {
  rn_rpc_in_t* call = call_of(stream);
  if (call->message)
    call->message(call, message);
  else if (message)
    rn_message_clear(message);
}

static void on_lost(void* owner, rn_http2_t* http2, rn_status_t status) {
  rpc_lane_t* lane = owner;
  rn_rpc_server_t* server = lane->server;
  if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED)
    rn_log(rn_loop_env(lane->base.loop), RN_LOG_WARNING, "a connection was closed: %s",
           rn_status_message(status));
  rn_status_free(status);
  rn_http2_stats_t stats = rn_http2_stats(http2);
  lane->old_in += stats.bytes_in;
  lane->old_out += stats.bytes_out;
  rn_mutex_lock(&server->mutex);
  for (size_t i = 0; i < lane->connections.count; ++i)
    if (lane->connections.items[i] == http2)
      lane->connections.items[i] = lane->connections.items[--lane->connections.count];
  rn_cond_broadcast(&server->changed);
  rn_mutex_unlock(&server->mutex);
  rn_http2_release(http2);
}

static const rn_http2_events_t events = {.open = on_open,
                                         .request = on_request,
                                         .streams = does_stream,
                                         .message = on_message,
                                         .closed = on_closed,
                                         .lost = on_lost};

static rn_status_t take_in(rpc_lane_t* lane, rn_socket_t* socket, rn_str_t first, rn_str_t peer) {
  rn_rpc_server_t* server = lane->server;
  rn_http2_options_t options = {.loop = lane->base.loop,
                                .allocator = server->options.allocator,
                                .events = &events,
                                .owner = lane,
                                .is_server = true,
                                .align = server->options.align,
                                .keepalive_ns = server->options.keepalive_ns,
                                .max_message = server->options.max_message,
                                .max_streams = server->options.max_streams,
                                .max_held = server->options.max_held,
                                .stall_ns = server->options.stall_ns,
                                .half_ns = server->options.half_ns,
                                .idle_ns = server->options.idle_ns,
                                .tokens = server->options.tokens,
                                .keeps_headers = server->options.keeps_headers,
                                .first = first,
                                .peer = peer};
  if (server->options.max_all_held) {
    options.all_held = &server->all_held;
    options.max_all_held = server->options.max_all_held;
  }
  rn_mutex_lock(&server->mutex);
  rn_status_t status =
      rn_vec_reserve(&lane->connections, server->options.allocator, lane->connections.count + 1);
  rn_mutex_unlock(&server->mutex);
  if (!rn_ok(status)) {
    socket->vtable->close(socket);
    return status;
  }
  rn_http2_t* http2 = NULL;
  RN_RETURN_IF_ERROR(rn_http2_create(&options, socket, &http2));
  rn_mutex_lock(&server->mutex);
  lane->connections.items[lane->connections.count++] = http2;
  rn_mutex_unlock(&server->mutex);
  return RN_OK;
}

// Closes the connection of |lane| that has been idle for the longest, if |lane| has |most|
// connections or more: those that are closing do not count. False if all of them are in use. A
// closed connection is freed shortly afterwards.
static bool evict_idle(const rpc_lane_t* lane, size_t most) {
  rn_http2_t* oldest = NULL;
  int64_t since = INT64_MAX;
  size_t open = 0;
  // Only this thread adds and removes connections.
  for (size_t i = 0; i < lane->connections.count; ++i) {
    rn_http2_t* http2 = lane->connections.items[i];
    rn_http2_stats_t stats = rn_http2_stats(http2);
    if (stats.is_over) continue;
    ++open;
    if (stats.streams || *rn_http2_tally(http2) > 0 || stats.used_ns >= since) continue;
    oldest = http2;
    since = stats.used_ns;
  }
  if (open < most) return true;
  if (oldest)
    rn_http2_close(oldest, rn_unavailable("The connection was idle, and was closed for another"));
  return oldest != NULL;
}

static void on_http2(void* self, rn_socket_t* socket, rn_str_t first, rn_str_t peer) {
  rpc_lane_t* lane = self;
  rn_rpc_server_t* server = lane->server;
  size_t most = server->options.max_connections / server->lane_count;
  if (!most) most = 1;
  if (server->options.max_connections && lane->connections.count >= most &&
      !evict_idle(lane, most)) {
    socket->vtable->close(socket);
    rn_doors_refused(&lane->doors, "the limit on connections is reached, and all are in use");
    return;
  }
  rn_status_t status = take_in(lane, socket, first, peer);
  if (!rn_ok(status)) rn_doors_refused(&lane->doors, rn_status_message(status));
  rn_status_free(status);
}

static void on_http1(void* self, rn_socket_t* socket, rn_str_t first, rn_str_t peer) {
  const rpc_lane_t* lane = self;
  rn_http_server_adopt(lane->server->options.http, socket, first, peer);
}

static void on_accepted(void* self, size_t i, rn_socket_t* socket, bool is_last) {
  rn_rpc_server_t* server = self;
  if (server->group.is_closing)
    socket->vtable->close(socket);
  else
    rn_doors_open(&server->lanes[i].doors, socket, is_last);
}

static rn_listener_room_t on_no_room(void* self) {
  rn_rpc_server_t* server = self;
  if (rn_doors_evict(&server->lanes->doors)) return RN_LISTENER_ROOM_NOW;
  if (server->options.http && rn_http_server_evict(server->options.http))
    return RN_LISTENER_ROOM_NOW;
  return evict_idle(server->lanes, 0) ? RN_LISTENER_ROOM_SOON : RN_LISTENER_ROOM_NONE;
}

// The |i|-th connection of |lane|, retained; NULL if there are fewer. Connections' locks come
// before the server's.
static rn_http2_t* connection_at(rn_rpc_server_t* server, const rpc_lane_t* lane, size_t i) {
  rn_mutex_lock(&server->mutex);
  rn_http2_t* http2 = i < lane->connections.count ? lane->connections.items[i] : NULL;
  if (http2) rn_http2_retain(http2);
  rn_mutex_unlock(&server->mutex);
  return http2;
}

rn_rpc_server_stats_t rn_rpc_server_stats(rn_rpc_server_t* server) {
  rn_rpc_server_stats_t stats = {0};
  rn_mutex_lock(&server->mutex);
  stats.calls = server->call_count;
  rn_mutex_unlock(&server->mutex);
  for (size_t l = 0; l < server->lane_count; ++l) {
    rpc_lane_t* lane = &server->lanes[l];
    stats.doors += lane->doors.count;
    stats.refused += lane->doors.refused;
    stats.bytes_in += lane->old_in;
    stats.bytes_out += lane->old_out;
    rn_http2_t* http2;
    for (size_t i = 0; (http2 = connection_at(server, lane, i)); ++i) {
      rn_http2_stats_t one = rn_http2_stats(http2);
      stats.connections++;
      stats.queued += one.queued;
      stats.held += one.held;
      stats.bytes_in += one.bytes_in;
      stats.bytes_out += one.bytes_out;
      rn_http2_release(http2);
    }
  }
  return stats;
}

// The work of a lane.

static rpc_lane_t* lane_of(rn_lane_t* base) { return RN_CONTAINER_OF(base, rpc_lane_t, base); }

static void drain_lane(rn_lane_t* base) {
  rpc_lane_t* lane = lane_of(base);
  rn_http2_t* http2;
  for (size_t i = 0; (http2 = connection_at(lane->server, lane, i)); ++i) {
    rn_http2_drain(http2);
    rn_http2_release(http2);
  }
}

static void close_lane(rn_lane_t* base) { rn_doors_close(&lane_of(base)->doors); }

void rn_rpc_server_drain(rn_rpc_server_t* server) { rn_lanes_drain(&server->group); }

// Creation and destruction.

static void set_up_lane(rn_rpc_server_t* server, rpc_lane_t* lane, rn_loop_t* loop) {
  const rn_rpc_server_options_t* options = &server->options;
  rn_lanes_add(&server->group, &lane->base, loop);
  lane->server = server;
  lane->doors = (rn_doors_t){.loop = loop,
                             .allocator = options->allocator,
                             .tls = options->tls,
                             .max = options->max_doors,
                             .http2 = on_http2,
                             .http1 = options->http ? on_http1 : NULL,
                             .page = options->page,
                             .self = lane,
                             .http1_self = lane,
                             .page_self = options->self};
}

static rn_status_t set_up(rn_rpc_server_t* server) {
  const rn_rpc_server_options_t* options = &server->options;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(options->allocator, server->lane_count * sizeof *server->lanes,
                                     (void**)&server->lanes));
  rn_loop_t* const* loops = options->loop_count ? options->loops : &options->loop;
  for (size_t i = 0; i < server->lane_count; ++i) set_up_lane(server, &server->lanes[i], loops[i]);
  rn_listener_options_t listener = {.loops = loops,
                                    .loop_count = server->lane_count,
                                    .allocator = options->allocator,
                                    .address = options->address,
                                    .accepted = on_accepted,
                                    .make_room = on_no_room,
                                    .self = server};
  RN_RETURN_IF_ERROR(rn_listener_create(&listener, &server->group.listener));
  return options->starts_later ? RN_OK : rn_lanes_start(&server->group);
}

rn_status_t rn_rpc_server_create(const rn_rpc_server_options_t* options, rn_rpc_server_t** out) {
  *out = NULL;
  rn_rpc_server_t* server = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &server));
  server->options = *options;
  server->lane_count = options->loop_count ? options->loop_count : 1;
  server->group.drain = drain_lane;
  server->group.close = close_lane;
  rn_lanes_init(&server->group);
  rn_mutex_init(&server->mutex);
  rn_cond_init(&server->changed);
  // A call may come before the first pulse is set.
  server->pulse = (rn_timer_t){.fn = on_pulse, .at_ns = rn_loop_now(options->loop)};
  rn_status_t status = set_up(server);
  if (rn_ok(status) && options->keepalive_ns)
    status = rn_loop_set_timer(options->loop, &server->pulse,
                               rn_loop_now(options->loop) + pulse_ns(server));
  if (!rn_ok(status)) {
    rn_rpc_server_destroy(server);
    return status;
  }
  *out = server;
  return RN_OK;
}

rn_status_t rn_rpc_server_start(rn_rpc_server_t* server) { return rn_lanes_start(&server->group); }

int rn_rpc_server_port(const rn_rpc_server_t* server) {
  return rn_listener_port(server->group.listener);
}

// Closes connections, the last one first, until the list is empty: each removes itself when it is
// lost.
static void close_connections(rn_rpc_server_t* server, const rpc_lane_t* lane) {
  rn_mutex_lock(&server->mutex);
  while (lane->connections.count) {
    rn_http2_t* http2 = lane->connections.items[lane->connections.count - 1];
    size_t count = lane->connections.count;
    rn_http2_retain(http2);
    rn_mutex_unlock(&server->mutex);
    rn_http2_close(http2, rn_unavailable("The server is closing"));
    rn_http2_release(http2);
    rn_mutex_lock(&server->mutex);
    while (lane->connections.count >= count) rn_cond_wait(&server->changed, &server->mutex);
  }
  rn_mutex_unlock(&server->mutex);
}

void rn_rpc_server_destroy(rn_rpc_server_t* server) {
  if (!server) return;
  rn_allocator_t allocator = server->options.allocator;
  server->group.is_closing = true;
  rn_loop_clear_timer(server->options.loop, &server->pulse);
  if (server->group.listener) rn_lanes_close(&server->group);  // else no lane was opened
  for (size_t i = 0; server->lanes && i < server->lane_count; ++i) {
    close_connections(server, &server->lanes[i]);
    rn_vec_free(&server->lanes[i].connections, allocator);
  }
  rn_mutex_lock(&server->mutex);
  while (server->call_count) rn_cond_wait(&server->changed, &server->mutex);
  rn_mutex_unlock(&server->mutex);
  if (server->lanes) rn_free(allocator, server->lanes, server->lane_count * sizeof *server->lanes);
  rn_lanes_deinit(&server->group);
  rn_cond_destroy(&server->changed);
  rn_mutex_destroy(&server->mutex);
  RN_FREE(allocator, server);
}
