// Connections: see http2.h. This file creates, watches and closes them; http2_in receives frames,
// http2_out sends them, http2_streams has the calls.
#include "net/http2.h"

#include <stdio.h>

#include "net/http2_internal.h"
#include "net/tls.h"

// The window sizes of TensorFlow's own peers, which suit tensors.
#define STREAM_WINDOW (64 << 20)
#define CONNECTION_WINDOW (1 << 30)
#define MAX_STREAMS 65536
#define MAX_HEADERS 16384
// How long a peer may take to learn that its connection is closing: calls that it makes until then
// are served.
#define LEAVE_NS INT64_C(2000000000)

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
  rn_status_free(http2->failure);
  rn_caller_release(http2->caller);
  rn_mutex_destroy(&http2->mutex);
  RN_FREE(allocator, http2);
}

rn_http2_stats_t rn_http2_stats(rn_http2_t* http2) {
  rn_mutex_lock(&http2->mutex);
  rn_http2_stats_t stats = {.is_over = http2->is_over,
                            .streams = http2->stream_count,
                            .queued = http2->queue_bytes,
                            .held = http2->held,
                            .bytes_in = http2->bytes_in,
                            .bytes_out = http2->bytes_out,
                            .heard_ns = http2->heard_ns,
                            .used_ns = http2->used_ns};
  rn_mutex_unlock(&http2->mutex);
  return stats;
}

rn_str_t rn_http2_peer(const rn_http2_t* http2) { return rn_str(http2->peer); }
rn_str_t rn_http2_peer_address(const rn_http2_t* http2) { return rn_str(http2->peer_address); }
bool rn_http2_is_local(const rn_http2_t* http2) { return http2->is_local; }
_Atomic int* rn_http2_tally(rn_http2_t* http2) { return &http2->tally; }

rn_caller_t* rn_http2_caller(const rn_http2_t* http2) { return http2->caller; }

void rn_http2_fail(rn_http2_t* http2, rn_status_t status) {
  http2->failure = rn_status_join(http2->failure, status);
  http2->is_over = true;
}

// The end of the connection: every stream is closed, then the owner is told.
static void lose(rn_http2_t* http2) {
  rn_mutex_lock(&http2->mutex);
  bool is_first = http2->is_over && !http2->is_lost;
  if (is_first) {
    http2->is_lost = true;
    if (http2->caller) http2->caller->lost_ns = rn_http2_now(http2);
    while (http2->streams) rn_http2_close_stream(http2, http2->streams);
  }
  rn_mutex_unlock(&http2->mutex);
  if (!is_first) return;
  rn_loop_unwatch(http2->options.loop, &http2->watch);
  rn_loop_clear_timer(http2->options.loop, &http2->timer);
  rn_loop_clear_timer(http2->options.loop, &http2->stall);
  rn_loop_clear_timer(http2->options.loop, &http2->sweep);
  http2->socket->vtable->shutdown(http2->socket);
  rn_http2_tell(http2);
  http2->options.events->lost(http2->options.owner, http2, rn_status_copy(http2->failure));
}

static void take_bytes(rn_http2_t* http2, rn_str_t bytes) {
  http2->heard_ns = rn_http2_now(http2);
  http2->bytes_in += bytes.size;
  ssize_t used = nghttp2_session_mem_recv(http2->session, (const uint8_t*)bytes.data, bytes.size);
  if (used < 0) rn_http2_fail(http2, rn_unavailable("HTTP/2: %s", nghttp2_strerror((int)used)));
}

// A server with TLS closes a plain connection without an error. Takes |status|.
static rn_status_t hint_at_tls(const rn_http2_t* http2, rn_status_t status) {
  if (http2->options.is_server || http2->bytes_in || rn_tls_peer(http2->socket).size) return status;
  return rn_status_annotate(status,
                            " (before it sent anything: if it speaks TLS, the target is "
                            "grpcs://HOST:PORT, with certificates)");
}

static void receive(rn_http2_t* http2) {
  size_t size = 0, room = 0;
  rn_mutex_lock(&http2->mutex);
  http2->is_reading = true;
  char* place = rn_http2_landing_place(http2, &room);
  rn_mutex_unlock(&http2->mutex);
  if (!place) place = rn_loop_scratch(http2->options.loop), room = RN_LOOP_SCRATCH;
  rn_status_t status = http2->socket->vtable->read(http2->socket, place, room, RN_AT_ONCE, &size);
  rn_mutex_lock(&http2->mutex);
  if (!rn_ok(status) && rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED) {
    rn_status_free(status);
  } else if (!rn_ok(status)) {
    rn_http2_fail(http2, hint_at_tls(http2, status));
  } else if (size == 0) {
    rn_http2_fail(http2, hint_at_tls(http2, rn_unavailable("Socket closed")));
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
    rn_http2_tell(http2);
  }
  // Everything that was submitted meanwhile goes out together.
  rn_mutex_lock(&http2->mutex);
  http2->is_reading = false;
  rn_http2_flush(http2);
  rn_mutex_unlock(&http2->mutex);
  rn_http2_tell(http2);
  lose(http2);
  rn_http2_release(http2);
}

// Pings a silent peer, and closes the connection if it does not answer.
static void on_timer(rn_timer_t* timer) {
  rn_http2_t* http2 = (rn_http2_t*)((char*)timer - __builtin_offsetof(rn_http2_t, timer));
  int64_t keepalive = http2->options.keepalive_ns, next = rn_http2_now(http2) + keepalive;
  rn_http2_retain(http2);
  rn_mutex_lock(&http2->mutex);
  int64_t silence = rn_http2_now(http2) - http2->heard_ns;
  if (http2->stream_count == 0) {
    http2->heard_ns = rn_http2_now(http2);
  } else if (silence < keepalive) {
    next = http2->heard_ns + keepalive;
  } else if (http2->is_asked) {
    rn_http2_fail(http2,
                  rn_unavailable("The peer has been silent for %.1f s", (double)silence * 1e-9));
  } else {
    http2->is_asked = true;
    nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, NULL);
    rn_http2_flush(http2);
  }
  rn_mutex_unlock(&http2->mutex);
  if (!http2->is_over) {
    rn_status_t status = rn_loop_set_timer(http2->options.loop, timer, next);
    rn_status_free(status);  // cannot fail: it was set before
  }
  lose(http2);
  rn_http2_release(http2);
}

// Closes a connection whose peer has stopped reading.
static void on_stall(rn_timer_t* timer) {
  rn_http2_t* http2 = (rn_http2_t*)((char*)timer - __builtin_offsetof(rn_http2_t, stall));
  rn_http2_retain(http2);
  rn_mutex_lock(&http2->mutex);
  int64_t at = http2->moved_ns + http2->options.stall_ns;
  http2->has_stall = false;
  if (rn_http2_waits_for_peer(http2) && rn_http2_now(http2) >= at) {
    rn_http2_fail(http2,
                  rn_deadline_exceeded("The peer has stopped reading; %zu responses wait for it",
                                       http2->answered));
  } else if (rn_http2_waits_for_peer(http2)) {
    rn_status_t status = rn_loop_set_timer(http2->options.loop, timer, at);
    http2->has_stall = rn_ok(status);
    rn_status_free(status);
  }
  rn_mutex_unlock(&http2->mutex);
  lose(http2);
  rn_http2_release(http2);
}

// The interval of checks for stalled requests and idle connections; 0: never.
static int64_t sweep_ns(const rn_http2_t* http2) {
  int64_t half = http2->options.half_ns, idle = http2->options.idle_ns;
  return (!half || (idle && idle < half) ? idle : half) / 4;
}

// An idle connection: the peer is told that it closes, and shortly afterwards it does. True: close
// it now.
static bool is_idle_for_good(rn_http2_t* http2) {
  int64_t now = rn_http2_now(http2), idle = http2->options.idle_ns;
  if (!idle || http2->stream_count || now - http2->used_ns < (http2->left_ns ? LEAVE_NS : idle))
    return false;
  if (http2->tally > 0) {
    bool is_dead = http2->is_asked;
    http2->is_asked = true;
    http2->used_ns = now;
    nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, NULL);
    return is_dead;
  }
  if (http2->left_ns) return now - http2->left_ns >= LEAVE_NS;
  nghttp2_submit_shutdown_notice(http2->session);
  http2->left_ns = now;
  return false;
}

static void on_sweep(rn_timer_t* timer) {
  rn_http2_t* http2 = (rn_http2_t*)((char*)timer - __builtin_offsetof(rn_http2_t, sweep));
  rn_http2_retain(http2);
  rn_mutex_lock(&http2->mutex);
  if (http2->options.half_ns) rn_http2_end_half_sent(http2);
  bool ends = is_idle_for_good(http2);
  int64_t pause = sweep_ns(http2);
  if (http2->left_ns && pause > LEAVE_NS) pause = LEAVE_NS;
  rn_http2_flush(http2);
  rn_mutex_unlock(&http2->mutex);
  rn_http2_tell(http2);
  if (ends) rn_http2_close(http2, rn_unavailable("The connection had no calls for too long"));
  if (!http2->is_over)  // cannot fail: it was set before
    rn_status_free(rn_loop_set_timer(http2->options.loop, timer, rn_http2_now(http2) + pause));
  lose(http2);
  rn_http2_release(http2);
}

static void on_job(rn_loop_job_t* job) {
  rn_http2_t* http2 = (rn_http2_t*)((char*)job - __builtin_offsetof(rn_http2_t, job));
  rn_mutex_lock(&http2->mutex);
  http2->is_posted = false;
  rn_http2_flush(http2);
  rn_mutex_unlock(&http2->mutex);
  rn_http2_tell(http2);
  lose(http2);
  rn_http2_release(http2);
}

void rn_http2_push(rn_http2_t* http2) {
  bool is_here = rn_loop_is_here(http2->options.loop);
  if (is_here && http2->is_reading) return;
  if (!is_here) rn_http2_flush(http2);
  if (http2->is_posted || http2->is_lost) return;
  if (!is_here && !http2->events && !http2->is_over) return;
  http2->is_posted = true;
  rn_http2_retain(http2);
  rn_loop_post(http2->options.loop, &http2->job);
}

void rn_http2_close(rn_http2_t* http2, rn_status_t status) {
  rn_mutex_lock(&http2->mutex);
  http2->failure = rn_status_join(http2->failure, status);  // before errors caused by closing
  if (!http2->is_over) {
    nghttp2_session_terminate_session(http2->session, NGHTTP2_NO_ERROR);
    rn_http2_flush(http2);
  }
  http2->is_over = true;
  rn_http2_push(http2);
  rn_mutex_unlock(&http2->mutex);
}

void rn_http2_drain(rn_http2_t* http2) {
  rn_mutex_lock(&http2->mutex);
  if (!http2->is_over && !http2->left_ns) {
    nghttp2_submit_shutdown_notice(http2->session);
    http2->left_ns = rn_http2_now(http2);
    rn_http2_push(http2);
  }
  rn_mutex_unlock(&http2->mutex);
}

// Creating a connection.

static rn_status_t make_session(rn_http2_t* http2) {
  nghttp2_session_callbacks* callbacks = NULL;
  if (nghttp2_session_callbacks_new(&callbacks)) return rn_out_of_memory();
  rn_http2_hear(callbacks);
  rn_http2_speak(callbacks, http2->options.is_server);
  int error = http2->options.is_server
                  ? nghttp2_session_server_new(&http2->session, callbacks, http2)
                  : nghttp2_session_client_new(&http2->session, callbacks, http2);
  nghttp2_session_callbacks_del(callbacks);
  return error ? rn_out_of_memory() : RN_OK;
}

static rn_status_t greet(rn_http2_t* http2) {
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, RN_HTTP2_MAX_FRAME},
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
  RN_RETURN_IF_ERROR(make_session(http2));
  RN_RETURN_IF_ERROR(greet(http2));
  RN_RETURN_IF_ERROR(rn_loop_watch(http2->options.loop, &http2->watch));
  if (http2->options.keepalive_ns > 0)
    RN_RETURN_IF_ERROR(rn_loop_set_timer(http2->options.loop, &http2->timer,
                                         rn_http2_now(http2) + http2->options.keepalive_ns));
  if (sweep_ns(http2))
    RN_RETURN_IF_ERROR(rn_loop_set_timer(http2->options.loop, &http2->sweep,
                                         rn_http2_now(http2) + sweep_ns(http2)));
  return RN_OK;
}

static void take_address(rn_http2_t* http2) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, http2->options.allocator);
  rn_status_t status = http2->socket->vtable->peer_address(http2->socket, &text);
  if (rn_ok(status))
    snprintf(http2->peer_address, sizeof http2->peer_address, "%.*s",
             RN_STR_ARGS(rn_strbuf_view(&text)));
  rn_status_free(status);
  rn_strbuf_clear(&text);
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
  http2->sweep.fn = on_sweep;
  http2->job.run = on_job;
  http2->heard_ns = http2->used_ns = rn_http2_now(http2);
  snprintf(http2->peer, sizeof http2->peer, "%.*s", RN_STR_ARGS(options->peer));
  rn_mutex_init(&http2->mutex);
  rn_strbuf_init(&http2->small, options->allocator);
  http2->is_local = options->is_server && socket->vtable->is_local(socket);
  if (options->is_server) take_address(http2);
  if (options->is_server) status = rn_caller_create(options->allocator, &http2->caller);
  if (rn_ok(status)) status = set_up(http2);
  if (!rn_ok(status)) {
    rn_loop_unwatch(options->loop, &http2->watch);
    rn_loop_clear_timer(options->loop, &http2->timer);
    rn_loop_clear_timer(options->loop, &http2->stall);
    rn_loop_clear_timer(options->loop, &http2->sweep);
    rn_http2_release(http2);
    return status;
  }
  rn_mutex_lock(&http2->mutex);
  if (options->first.size) take_bytes(http2, options->first);
  rn_http2_push(http2);
  rn_mutex_unlock(&http2->mutex);
  *out = http2;
  return RN_OK;
}
