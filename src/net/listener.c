// Listeners: see listener.h.
#include "net/listener.h"

#include "base/container.h"
#include "base/log.h"

#define REST_NS INT64_C(100000000)  // after a connection could not be accepted
#define MAX_ACCEPTED 64             // per turn, so that other sockets have theirs

struct rn_listener_t {
  rn_listener_options_t options;
  rn_socket_t* socket;  // Owned
  int port;
  rn_watch_t watch;
  rn_timer_t rest;          // ends a pause in which no connections are accepted
  rn_socket_t* reserve[2];  // Owned: spare descriptors for when there are no others
  rn_log_limit_t log;       // of connections that could not be accepted
  size_t next;              // the loop of the next connection
  rn_mutex_t mutex;         // guards what follows
  rn_cond_t changed;
  size_t on_their_way;  // connections
};

// A connection on its way to another loop.
typedef struct listener_handover_t {
  rn_loop_job_t job;
  rn_listener_t* listener;
  rn_socket_t* socket;
  size_t loop;
} listener_handover_t;

static void on_handover(rn_loop_job_t* job) {
  listener_handover_t* handover = RN_CONTAINER_OF(job, listener_handover_t, job);
  rn_listener_t* listener = handover->listener;
  listener->options.accepted(listener->options.self, handover->loop, handover->socket, false);
  RN_FREE(listener->options.allocator, handover);
  rn_mutex_lock(&listener->mutex);
  if (--listener->on_their_way == 0) rn_cond_broadcast(&listener->changed);
  rn_mutex_unlock(&listener->mutex);
}

// Gives a connection to the next loop; without memory for that, to this one.
static void spread(rn_listener_t* listener, rn_socket_t* socket) {
  const rn_listener_options_t* options = &listener->options;
  size_t i = listener->next++ % options->loop_count;
  listener_handover_t* handover = NULL;
  if (i) rn_status_free(RN_NEW(options->allocator, &handover));
  if (!handover) {
    options->accepted(options->self, 0, socket, false);
    return;
  }
  *handover = (listener_handover_t){
      .job.run = on_handover, .listener = listener, .socket = socket, .loop = i};
  rn_mutex_lock(&listener->mutex);
  listener->on_their_way++;
  rn_mutex_unlock(&listener->mutex);
  rn_loop_post(options->loops[i], &handover->job);
}

// Accepts no connections for a while.
static void rest(rn_listener_t* listener) {
  rn_loop_t* loop = listener->options.loops[0];
  rn_status_t status = rn_loop_set_timer(loop, &listener->rest, rn_loop_now(loop) + REST_NS);
  if (rn_ok(status)) rn_loop_unwatch(loop, &listener->watch);
  rn_status_free(status);
}

static void fill_reserve(rn_listener_t* listener) {
  const rn_env_t* env = rn_loop_env(listener->options.loops[0]);
  if (listener->reserve[0]) return;
  rn_status_free(env->net->pair(env->net_self, listener->options.allocator, &listener->reserve[0],
                                &listener->reserve[1]));
}

static void empty_reserve(rn_listener_t* listener) {
  for (int i = 0; i < 2; ++i) {
    if (listener->reserve[i]) listener->reserve[i]->vtable->close(listener->reserve[i]);
    listener->reserve[i] = NULL;
  }
}

static void on_rest(rn_timer_t* timer) {
  rn_listener_t* listener = RN_CONTAINER_OF(timer, rn_listener_t, rest);
  fill_reserve(listener);
  rn_status_t status = rn_loop_watch(listener->options.loops[0], &listener->watch);
  if (!rn_ok(status)) rest(listener);
  rn_status_free(status);
}

// There is no descriptor for a new connection. The owner closes another; else the reserve is used,
// so that health checks still work.
static void make_way(rn_listener_t* listener, const char* why) {
  const rn_listener_options_t* options = &listener->options;
  const rn_env_t* env = rn_loop_env(options->loops[0]);
  int64_t left_out;
  if (rn_log_limit_says(&listener->log, env, &left_out))
    rn_log(env, RN_LOG_WARNING, "cannot accept connections: %s (%lld times before)", why,
           (long long)left_out);
  rn_listener_room_t room = options->make_room(options->self);
  if (room == RN_LISTENER_ROOM_NOW) return;
  if (room == RN_LISTENER_ROOM_NONE && listener->reserve[0]) {
    rn_socket_t* accepted = NULL;
    empty_reserve(listener);
    rn_status_free(listener->socket->vtable->accept(listener->socket, RN_AT_ONCE, &accepted));
    if (accepted) options->accepted(options->self, 0, accepted, true);
  }
  rest(listener);
}

static void on_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  (void)can_read, (void)can_write;
  rn_listener_t* listener = RN_CONTAINER_OF(watch, rn_listener_t, watch);
  for (int i = 0; i < MAX_ACCEPTED && listener->watch.is_watched; ++i) {
    rn_socket_t* accepted = NULL;
    // A connection must not take the descriptors of the reserve, which are those of health checks.
    fill_reserve(listener);
    rn_status_t status = listener->socket->vtable->accept(listener->socket, RN_AT_ONCE, &accepted);
    bool is_accepted = rn_ok(status);
    if (is_accepted && !listener->reserve[0])
      listener->options.accepted(listener->options.self, 0, accepted, true);
    else if (is_accepted)
      spread(listener, accepted);
    // Without a descriptor, accept fails even if no connection waits; if one does, the next turn
    // comes at once.
    else if (i == 0 && rn_status_code(status) != RN_CODE_DEADLINE_EXCEEDED)
      make_way(listener, rn_status_message(status));
    rn_status_free(status);
    if (!is_accepted) return;
  }
}

static rn_status_t find_port(rn_listener_t* listener) {
  rn_strbuf_t address;
  rn_strbuf_init(&address, listener->options.allocator);
  rn_status_t status = listener->socket->vtable->address(listener->socket, &address);
  const char* colon = rn_ok(status) ? strrchr(address.data, ':') : NULL;
  listener->port = colon ? atoi(colon + 1) : 0;
  rn_strbuf_clear(&address);
  return status;
}

static rn_status_t set_up(rn_listener_t* listener) {
  const rn_env_t* env = rn_loop_env(listener->options.loops[0]);
  RN_RETURN_IF_ERROR(env->net->listen(env->net_self, listener->options.address,
                                      listener->options.allocator, &listener->socket));
  listener->watch = (rn_watch_t){.socket = listener->socket, .ready = on_ready};
  listener->rest.fn = on_rest;
  return find_port(listener);
}

rn_status_t rn_listener_create(const rn_listener_options_t* options, rn_listener_t** out) {
  *out = NULL;
  rn_listener_t* listener = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &listener));
  listener->options = *options;
  rn_mutex_init(&listener->mutex);
  rn_cond_init(&listener->changed);
  rn_status_t status = set_up(listener);
  if (!rn_ok(status)) {
    rn_listener_destroy(listener);
    return status;
  }
  *out = listener;
  return RN_OK;
}

rn_status_t rn_listener_start(rn_listener_t* listener) {
  fill_reserve(listener);
  return rn_loop_watch(listener->options.loops[0], &listener->watch);
}

void rn_listener_stop(rn_listener_t* listener) {
  rn_loop_clear_timer(listener->options.loops[0], &listener->rest);
  rn_loop_unwatch(listener->options.loops[0], &listener->watch);
  if (listener->socket) listener->socket->vtable->close(listener->socket);
  listener->socket = NULL;
}

void rn_listener_destroy(rn_listener_t* listener) {
  if (!listener) return;
  rn_mutex_lock(&listener->mutex);
  while (listener->on_their_way) rn_cond_wait(&listener->changed, &listener->mutex);
  rn_mutex_unlock(&listener->mutex);
  if (listener->socket) listener->socket->vtable->close(listener->socket);
  empty_reserve(listener);
  rn_cond_destroy(&listener->changed);
  rn_mutex_destroy(&listener->mutex);
  RN_FREE(listener->options.allocator, listener);
}

int rn_listener_port(const rn_listener_t* listener) { return listener->port; }
