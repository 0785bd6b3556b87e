// The server's end: see server.h.
#include "dist/rpc/server.h"

#include <stdlib.h>

struct rn_rpc_server_t {
  rn_rpc_server_options_t options;
  rn_watch_t watch;
  rn_loop_job_t job;      // starts and ends watching
  rn_socket_t* listener;  // Owned
  int port;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  RN_VEC(rn_http2_t*) connections;  // Retained
  size_t call_count;
  bool is_closing, is_posted;
  rn_status_t failure;  // of the job
};

static rn_rpc_in_t* call_of(rn_stream_t* stream) {
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
  rn_stream_clear(&call->stream);
  rn_http2_release(call->http2);
  RN_FREE(server->options.allocator, call);
  count_call(server, -1);
}

static rn_stream_t* on_open(void* owner) {
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

static void on_request(rn_stream_t* stream) {
  rn_rpc_in_t* call = call_of(stream);
  call->http2 = stream->http2;
  rn_http2_retain(call->http2);
  call->holds++;
  call->deadline.fn = on_deadline;
  if (stream->deadline_ns != INT64_MAX) {
    // Without room for a timer the client's own clock has to do.
    rn_status_free(
        rn_loop_set_timer(call->server->options.loop, &call->deadline, stream->deadline_ns));
  }
  call->server->options.handle(call->server->options.self, call);
}

static void on_closed(rn_stream_t* stream, rn_status_t status) {
  rn_status_free(status);
  rn_cancel(&call_of(stream)->cancel);
  let_go(call_of(stream));
}

void rn_rpc_reply(rn_rpc_in_t* call, rn_status_t status, rn_message_t* message) {
  rn_http2_respond(&call->stream, status, message);
  let_go(call);
}

static void on_lost(void* owner, rn_http2_t* http2, rn_status_t status) {
  rn_rpc_server_t* server = owner;
  rn_status_free(status);
  rn_mutex_lock(&server->mutex);
  for (size_t i = 0; i < server->connections.count; ++i)
    if (server->connections.items[i] == http2)
      server->connections.items[i] = server->connections.items[--server->connections.count];
  rn_cond_broadcast(&server->changed);
  rn_mutex_unlock(&server->mutex);
  rn_http2_release(http2);
}

static const rn_http2_events_t events = {
    .open = on_open, .request = on_request, .closed = on_closed, .lost = on_lost};

static rn_status_t take_in(rn_rpc_server_t* server, rn_socket_t* socket) {
  rn_http2_options_t options = {.loop = server->options.loop,
                                .allocator = server->options.allocator,
                                .events = &events,
                                .owner = server,
                                .is_server = true,
                                .max_message = server->options.max_message};
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

static void on_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  (void)can_read, (void)can_write;
  rn_rpc_server_t* server =
      (rn_rpc_server_t*)((char*)watch - __builtin_offsetof(rn_rpc_server_t, watch));
  rn_socket_t* socket = NULL;
  rn_status_t status = server->listener->vtable->accept(server->listener, RN_AT_ONCE, &socket);
  if (rn_ok(status)) status = take_in(server, socket);
  if (!rn_ok(status) && rn_status_code(status) != RN_CODE_DEADLINE_EXCEEDED)
    rn_log(rn_loop_env(server->options.loop), RN_LOG_WARNING, "A connection was not taken: %s",
           rn_status_message(status));
  rn_status_free(status);
}

static void on_job(rn_loop_job_t* job) {
  rn_rpc_server_t* server =
      (rn_rpc_server_t*)((char*)job - __builtin_offsetof(rn_rpc_server_t, job));
  rn_status_t status = RN_OK;
  if (server->is_closing)
    rn_loop_unwatch(server->options.loop, &server->watch);
  else
    status = rn_loop_watch(server->options.loop, &server->watch);
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
  rn_mutex_init(&server->mutex);
  rn_cond_init(&server->changed);
  rn_status_t status = set_up(server);
  if (!rn_ok(status)) {
    rn_rpc_server_destroy(server);
    return status;
  }
  *out = server;
  return RN_OK;
}

int rn_rpc_server_port(const rn_rpc_server_t* server) { return server->port; }

// The last of the connections, until there is none: each takes itself off when it is lost. The
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
  if (server->watch.socket) rn_status_free(on_loop(server));
  close_connections(server);
  rn_mutex_lock(&server->mutex);
  while (server->connections.count || server->call_count)
    rn_cond_wait(&server->changed, &server->mutex);
  rn_mutex_unlock(&server->mutex);
  if (server->listener) server->listener->vtable->close(server->listener);
  rn_vec_free(&server->connections, server->options.allocator);
  rn_cond_destroy(&server->changed);
  rn_mutex_destroy(&server->mutex);
  RN_FREE(server->options.allocator, server);
}
