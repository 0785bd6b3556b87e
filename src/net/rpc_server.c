// The gRPC server: see server.h.
#include "net/rpc_server.h"

#include <stdlib.h>

#define PULSES 8
#define REST_NS INT64_C(100000000)  // after a connection could not be accepted

struct rn_rpc_server_t {
  rn_rpc_server_options_t options;
  rn_watch_t watch;
  rn_loop_job_t job;      // starts and ends watching
  rn_socket_t* listener;  // Owned
  int port;
  rn_doors_t doors;          // of the loop's thread
  uint64_t old_in, old_out;  // likewise: bytes of closed connections
  rn_timer_t pulse;          // shows that this process is not stopped
  rn_timer_t rest;           // ends a pause in which no connections are accepted
  rn_socket_t*
      reserve[2];  // Owned, of the loop's thread: spare descriptors for when there are no others
  rn_log_limit_t log;       // of connections that could not be accepted
  _Atomic size_t all_held;  // bytes of messages, of all connections
  rn_mutex_t mutex;         // guards what follows
  rn_cond_t changed;
  RN_VEC(rn_http2_t*) connections;  // Retained
  size_t call_count;
  bool is_closing, is_posted;
  rn_status_t failure;  // of the job
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
  if (call->stream.deadline_ns != INT64_MAX)
    rn_loop_clear_timer(server->options.loop, &call->deadline);
  rn_cancel_destroy(&call->cancel);
  rn_http2_stream_clear(&call->stream);
  rn_http2_release(call->http2);
  RN_FREE(server->options.allocator, call);
  count_call(server, -1);
}

static rn_http2_stream_t* on_open(void* owner) {
  rn_rpc_server_t* server = owner;
  rn_rpc_in_t* call = NULL;
  rn_status_t status = RN_NEW(server->options.allocator, &call);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  call->server = server;
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
    rn_status_free(
        rn_loop_set_timer(call->server->options.loop, &call->deadline, stream->deadline_ns));
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
  rn_strbuf_append_n(trailers, name, strlen(name) + 1);
  rn_strbuf_append(trailers, value);
  rn_strbuf_append_n(trailers, "", 1);
  if (trailers->failed) trailers->size = 0;
}

void rn_rpc_send(rn_rpc_in_t* call, rn_message_t* message) {
  rn_http2_send(&call->stream, message);
}

static bool does_stream(void* owner, rn_str_t path) {
  const rn_rpc_server_t* server = owner;
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
  rn_rpc_server_t* server = owner;
  if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED)
    rn_log(rn_loop_env(server->options.loop), RN_LOG_WARNING, "a connection was closed: %s",
           rn_status_message(status));
  rn_status_free(status);
  rn_http2_stats_t stats = rn_http2_stats(http2);
  server->old_in += stats.bytes_in;
  server->old_out += stats.bytes_out;
  rn_mutex_lock(&server->mutex);
  for (size_t i = 0; i < server->connections.count; ++i)
    if (server->connections.items[i] == http2)
      server->connections.items[i] = server->connections.items[--server->connections.count];
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

static rn_status_t take_in(rn_rpc_server_t* server, rn_socket_t* socket, rn_str_t first,
                           rn_str_t peer) {
  rn_http2_options_t options = {.loop = server->options.loop,
                                .allocator = server->options.allocator,
                                .events = &events,
                                .owner = server,
                                .is_server = true,
                                .align = server->options.align,
                                .keepalive_ns = server->options.keepalive_ns,
                                .max_message = server->options.max_message,
                                .max_streams = server->options.max_streams,
                                .max_held = server->options.max_held,
                                .stall_ns = server->options.stall_ns,
                                .half_ns = server->options.half_ns,
                                .idle_ns = server->options.idle_ns,
                                .token = server->options.token,
                                .keeps_headers = server->options.keeps_headers,
                                .first = first,
                                .peer = peer};
  if (server->options.max_all_held) {
    options.all_held = &server->all_held;
    options.max_all_held = server->options.max_all_held;
  }
  rn_mutex_lock(&server->mutex);
  rn_status_t status = rn_vec_reserve(&server->connections, server->options.allocator,
                                      server->connections.count + 1);
  rn_mutex_unlock(&server->mutex);
  if (!rn_ok(status)) {
    socket->vtable->close(socket);
    return status;
  }
  rn_http2_t* http2 = NULL;
  RN_RETURN_IF_ERROR(rn_http2_create(&options, socket, &http2));
  rn_mutex_lock(&server->mutex);
  server->connections.items[server->connections.count++] = http2;
  rn_mutex_unlock(&server->mutex);
  return RN_OK;
}

// Closes the connection that has been idle for the longest; false if none is idle. It is freed
// shortly afterwards.
static bool evict_idle(rn_rpc_server_t* server) {
  rn_http2_t* oldest = NULL;
  int64_t since = INT64_MAX;
  // Only this thread adds and removes connections.
  for (size_t i = 0; i < server->connections.count; ++i) {
    rn_http2_t* http2 = server->connections.items[i];
    rn_http2_stats_t stats = rn_http2_stats(http2);
    if (stats.streams || *rn_http2_tally(http2) > 0 || stats.used_ns >= since) continue;
    oldest = http2;
    since = stats.used_ns;
  }
  if (oldest)
    rn_http2_close(oldest, rn_unavailable("The connection was idle, and was closed for another"));
  return oldest != NULL;
}

static void on_http2(void* self, rn_socket_t* socket, rn_str_t first, rn_str_t peer) {
  rn_rpc_server_t* server = self;
  size_t most = server->options.max_connections;
  if (most && server->connections.count >= most && !evict_idle(server)) {
    socket->vtable->close(socket);
    rn_doors_refused(&server->doors, "the limit on connections is reached, and all are in use");
    return;
  }
  rn_status_t status = take_in(server, socket, first, peer);
  if (!rn_ok(status)) rn_doors_refused(&server->doors, rn_status_message(status));
  rn_status_free(status);
}

// Accepts no connections for a while.
static void rest(rn_rpc_server_t* server) {
  rn_loop_t* loop = server->options.loop;
  rn_status_t status = rn_loop_set_timer(loop, &server->rest, rn_loop_now(loop) + REST_NS);
  if (rn_ok(status)) rn_loop_unwatch(loop, &server->watch);
  rn_status_free(status);
}

static void fill_reserve(rn_rpc_server_t* server) {
  const rn_env_t* env = rn_loop_env(server->options.loop);
  if (server->reserve[0]) return;
  rn_status_free(env->net->pair(env->net_self, server->options.allocator, &server->reserve[0],
                                &server->reserve[1]));
}

static void empty_reserve(rn_rpc_server_t* server) {
  for (int i = 0; i < 2; ++i) {
    if (server->reserve[i]) server->reserve[i]->vtable->close(server->reserve[i]);
    server->reserve[i] = NULL;
  }
}

static void on_rest(rn_timer_t* timer) {
  rn_rpc_server_t* server =
      (rn_rpc_server_t*)((char*)timer - __builtin_offsetof(rn_rpc_server_t, rest));
  fill_reserve(server);
  rn_status_t status = rn_loop_watch(server->options.loop, &server->watch);
  if (!rn_ok(status)) rest(server);
  rn_status_free(status);
}

// There is no descriptor for a new connection. Closes one that has sent nothing; else uses the
// reserve, for status pages only, so that health checks still work.
static void make_way(rn_rpc_server_t* server, const char* why) {
  const rn_env_t* env = rn_loop_env(server->options.loop);
  int64_t left_out;
  if (rn_log_limit_says(&server->log, env, &left_out))
    rn_log(env, RN_LOG_WARNING, "cannot accept connections: %s (%lld times before)", why,
           (long long)left_out);
  if (rn_doors_evict(&server->doors)) return;
  rn_socket_t* socket = NULL;
  if (!evict_idle(server) && server->reserve[0]) {
    empty_reserve(server);
    rn_status_free(server->listener->vtable->accept(server->listener, RN_AT_ONCE, &socket));
    if (socket) rn_doors_open(&server->doors, socket, true);
  }
  rest(server);
}

static void on_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  (void)can_read, (void)can_write;
  rn_rpc_server_t* server =
      (rn_rpc_server_t*)((char*)watch - __builtin_offsetof(rn_rpc_server_t, watch));
  rn_socket_t* socket = NULL;
  rn_status_t status = server->listener->vtable->accept(server->listener, RN_AT_ONCE, &socket);
  if (rn_ok(status))
    rn_doors_open(&server->doors, socket, false);
  else if (rn_status_code(status) != RN_CODE_DEADLINE_EXCEEDED)
    make_way(server, rn_status_message(status));
  rn_status_free(status);
}

rn_rpc_server_stats_t rn_rpc_server_stats(rn_rpc_server_t* server) {
  rn_rpc_server_stats_t stats = {.doors = server->doors.count,
                                 .refused = server->doors.refused,
                                 .bytes_in = server->old_in,
                                 .bytes_out = server->old_out};
  // Only this thread removes connections, and their locks come before the server's.
  rn_mutex_lock(&server->mutex);
  stats.connections = server->connections.count;
  stats.calls = server->call_count;
  rn_mutex_unlock(&server->mutex);
  for (size_t i = 0; i < stats.connections; ++i) {
    rn_http2_stats_t one = rn_http2_stats(server->connections.items[i]);
    stats.queued += one.queued;
    stats.held += one.held;
    stats.bytes_in += one.bytes_in;
    stats.bytes_out += one.bytes_out;
  }
  return stats;
}

static void on_job(rn_loop_job_t* job) {
  rn_rpc_server_t* server =
      (rn_rpc_server_t*)((char*)job - __builtin_offsetof(rn_rpc_server_t, job));
  rn_status_t status = RN_OK;
  if (server->is_closing) {
    rn_loop_clear_timer(server->options.loop, &server->rest);
    rn_loop_unwatch(server->options.loop, &server->watch);
    rn_doors_close(&server->doors);
  } else {
    fill_reserve(server);
    status = rn_loop_watch(server->options.loop, &server->watch);
  }
  rn_mutex_lock(&server->mutex);
  server->failure = status;
  server->is_posted = false;
  rn_cond_broadcast(&server->changed);
  rn_mutex_unlock(&server->mutex);
}

static rn_status_t on_loop(rn_rpc_server_t* server) {
  server->is_posted = true;
  server->job.run = on_job;
  rn_loop_post(server->options.loop, &server->job);
  rn_mutex_lock(&server->mutex);
  while (server->is_posted) rn_cond_wait(&server->changed, &server->mutex);
  rn_mutex_unlock(&server->mutex);
  return server->failure;
}

static rn_status_t find_port(rn_rpc_server_t* server) {
  rn_strbuf_t address;
  rn_strbuf_init(&address, server->options.allocator);
  rn_status_t status = server->listener->vtable->address(server->listener, &address);
  const char* colon = rn_ok(status) ? strrchr(address.data, ':') : NULL;
  server->port = colon ? atoi(colon + 1) : 0;
  rn_strbuf_clear(&address);
  return status;
}

static rn_status_t set_up(rn_rpc_server_t* server) {
  const rn_env_t* env = rn_loop_env(server->options.loop);
  RN_RETURN_IF_ERROR(env->net->listen(env->net_self, server->options.address,
                                      server->options.allocator, &server->listener));
  RN_RETURN_IF_ERROR(find_port(server));
  server->watch = (rn_watch_t){.socket = server->listener, .ready = on_ready};
  return on_loop(server);
}

rn_status_t rn_rpc_server_create(const rn_rpc_server_options_t* options, rn_rpc_server_t** out) {
  *out = NULL;
  rn_rpc_server_t* server = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &server));
  server->options = *options;
  server->doors = (rn_doors_t){.loop = options->loop,
                               .allocator = options->allocator,
                               .tls = options->tls,
                               .max = options->max_doors,
                               .http2 = on_http2,
                               .page = options->page,
                               .self = server,
                               .page_self = options->self};
  rn_mutex_init(&server->mutex);
  rn_cond_init(&server->changed);
  server->pulse.fn = on_pulse;
  server->rest.fn = on_rest;
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

int rn_rpc_server_port(const rn_rpc_server_t* server) { return server->port; }

// Closes the last connection until there is none: each removes itself when it is lost. The
// connections' locks come before the server's.
static void close_connections(rn_rpc_server_t* server) {
  rn_mutex_lock(&server->mutex);
  while (server->connections.count) {
    rn_http2_t* http2 = server->connections.items[server->connections.count - 1];
    size_t count = server->connections.count;
    rn_http2_retain(http2);
    rn_mutex_unlock(&server->mutex);
    rn_http2_close(http2, rn_unavailable("The server is closing"));
    rn_http2_release(http2);
    rn_mutex_lock(&server->mutex);
    while (server->connections.count >= count) rn_cond_wait(&server->changed, &server->mutex);
  }
  rn_mutex_unlock(&server->mutex);
}

void rn_rpc_server_destroy(rn_rpc_server_t* server) {
  if (!server) return;
  server->is_closing = true;
  rn_loop_clear_timer(server->options.loop, &server->pulse);
  if (server->watch.socket) rn_status_free(on_loop(server));
  close_connections(server);
  rn_mutex_lock(&server->mutex);
  while (server->connections.count || server->call_count)
    rn_cond_wait(&server->changed, &server->mutex);
  rn_mutex_unlock(&server->mutex);
  if (server->listener) server->listener->vtable->close(server->listener);
  empty_reserve(server);
  rn_vec_free(&server->connections, server->options.allocator);
  rn_cond_destroy(&server->changed);
  rn_mutex_destroy(&server->mutex);
  RN_FREE(server->options.allocator, server);
}
