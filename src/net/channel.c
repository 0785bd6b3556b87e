// The client's end: see channel.h.
#include "net/channel.h"

#include "base/container.h"

#define CONNECT_NS INT64_C(20000000000)
#define FALSE_STARTS 8  // consecutive connections that break at once
// The pause after a failed attempt: doubles with each, up to a maximum.
#define FIRST_RETRY_NS INT64_C(50000000)
#define MAX_RETRY_NS INT64_C(500000000)

// An attempt to connect, on its own thread, which may block in name lookup and connect. Freed by
// its thread or the channel, whichever is last.
typedef struct attempt_t {
  rn_loop_job_t job;
  rn_mutex_t mutex;
  rn_channel_t* channel;  // NULL: the attempt was abandoned; guarded by the mutex
  rn_allocator_t allocator;
  rn_env_t env;  // a copy: the loop's may be gone before the attempt ends
  int64_t deadline_ns;
  rn_tls_t* tls;     // Retained
  const char* peer;  // behind |address|, in the same block; NULL: any peer
  rn_socket_t* socket;
  rn_status_t status;
  size_t size;
  char address[];
} attempt_t;

struct rn_channel_t {
  rn_channel_options_t options;
  char *address, *peer, *token;  // Owned; all but |address| may be NULL
  rn_timer_t retry;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  rn_http2_t* http2;    // Retained; NULL: not connected
  attempt_t* attempt;   // under way; NULL: none
  rn_rpc_out_t* calls;  // all running calls
  rn_status_t failure;  // Owned: of the last attempt
  bool is_closing;
  int connections;   // that are open
  int64_t retry_ns;  // pause if this attempt fails; 0: that after the first
  int false_starts;  // consecutive connections that broke at once
  int64_t connects;
  uint64_t old_in, old_out;  // bytes of closed connections
};

static rn_rpc_out_t* call_of(rn_http2_stream_t* stream) {
  return RN_CONTAINER_OF(stream, rn_rpc_out_t, stream);
}

static void link_call(rn_channel_t* channel, rn_rpc_out_t* call) {
  call->previous = NULL;
  call->next = channel->calls;
  if (call->next) call->next->previous = call;
  channel->calls = call;
}

static void unlink_call(rn_channel_t* channel, rn_rpc_out_t* call) {
  if (call->previous)
    call->previous->next = call->next;
  else
    channel->calls = call->next;
  if (call->next) call->next->previous = call->previous;
}

rn_allocator_t rn_channel_landing(const rn_channel_t* channel) {
  return rn_loop_landing(channel->options.loop);
}

void rn_rpc_out_clear(rn_rpc_out_t* call) {
  rn_message_clear(&call->request);
  rn_http2_stream_clear(&call->stream);
}

// Ends a call. Takes |status|. The timer is cleared last: rn_rpc_cancel sets it while the call is
// active.
static void finish(rn_rpc_out_t* call, rn_status_t status) {
  rn_channel_t* channel = call->channel;
  rn_loop_t* loop = channel->options.loop;
  rn_mutex_lock(&channel->mutex);
  unlink_call(channel, call);
  if (call->is_sent) rn_loop_expect(channel->options.loop, -1);
  call->is_active = false;
  if (!rn_ok(status) && call->is_late) {
    rn_status_free(status);
    status = rn_deadline_exceeded("Deadline Exceeded");
  } else if (!rn_ok(status) && call->is_cancelled) {
    rn_status_free(status);
    status = rn_cancelled("CANCELLED");
  }
  rn_cond_broadcast(&channel->changed);
  rn_mutex_unlock(&channel->mutex);
  rn_loop_clear_timer(loop, &call->timer);
  call->done(call, status);
}

static void connect_now(rn_channel_t* channel);

// Sends the call if there is a connection, else lets it wait. Under the lock.
static void send_or_wait(rn_channel_t* channel, rn_rpc_out_t* call) {
  if (channel->http2) {
    call->stream = (rn_http2_stream_t){.align = call->align};
    call->is_sent = true;
    rn_status_t status = rn_http2_request(channel->http2, &call->stream, call->path,
                                          channel->address, call->deadline_ns, &call->request);
    if (rn_ok(status)) {
      rn_loop_expect(channel->options.loop, 1);
      return;
    }
    rn_status_free(status);  // it broke, or accepts no more calls: another will be made
    call->is_sent = false;
    channel->http2 = NULL;  // its |lost| releases it
  }
  call->is_waiting = true;
  call->has_waited = false;
  // The next attempt may be due later; a call that does not wait gets one now.
  bool is_due =
      !call->waits_for_ready || !rn_loop_has_timer(channel->options.loop, &channel->retry);
  if (!channel->http2 && !channel->attempt && is_due) connect_now(channel);
}

// Under the lock: the calls that wait now have waited for what has ended.
static void note_waiting(rn_channel_t* channel) {
  for (rn_rpc_out_t* call = channel->calls; call; call = call->next) call->has_waited = true;
}

// Sends the waiting calls if there is a connection; else fails those that have waited for the
// attempt and do not wait for ready. Those that begin meanwhile, as when a failed one is repeated,
// wait for the next attempt.
static void attend(rn_channel_t* channel) {
  for (;;) {
    rn_mutex_lock(&channel->mutex);
    rn_rpc_out_t* ended = NULL;
    for (rn_rpc_out_t* call = channel->calls; call && !ended; call = call->next) {
      if (!call->is_waiting) continue;
      call->is_waiting = false;
      if (channel->http2)
        send_or_wait(channel, call);
      else if ((call->has_waited && !call->waits_for_ready) || channel->is_closing)
        ended = call;
      else
        call->is_waiting = true;
    }
    rn_status_t status =
        !ended ? RN_OK
        : channel->is_closing
            ? rn_cancelled("The channel was closed")
            : rn_unavailable("failed to connect to all addresses; last error: UNKNOWN: %s",
                             rn_status_message(channel->failure));
    rn_mutex_unlock(&channel->mutex);
    if (!ended) return;
    finish(ended, status);
  }
}

static void on_closed(rn_http2_stream_t* stream, rn_status_t status) {
  finish(call_of(stream), status);
}

static bool has_waiting(const rn_channel_t* channel) {
  for (const rn_rpc_out_t* call = channel->calls; call; call = call->next)
    if (call->is_waiting) return true;
  return false;
}

// Under the lock. After a connection that broke at once, starts another attempt at once; true if
// so.
static bool starts_again(rn_channel_t* channel) {
  if (++channel->false_starts >= FALSE_STARTS || channel->is_closing || !has_waiting(channel))
    return false;
  connect_now(channel);
  return channel->attempt != NULL;
}

static void on_lost(void* owner, rn_http2_t* http2, rn_status_t status) {
  rn_channel_t* channel = owner;
  rn_status_free(status);
  rn_http2_stats_t stats = rn_http2_stats(http2);
  rn_mutex_lock(&channel->mutex);
  channel->old_in += stats.bytes_in;
  channel->old_out += stats.bytes_out;
  bool was_current = channel->http2 == http2;
  if (was_current) channel->http2 = NULL;
  if (was_current && has_waiting(channel) && !channel->is_closing && !channel->attempt)
    connect_now(channel);
  channel->connections--;
  rn_cond_broadcast(&channel->changed);
  rn_mutex_unlock(&channel->mutex);
  rn_http2_release(http2);
}

static const rn_http2_events_t events = {.closed = on_closed, .lost = on_lost};

static void attempt_free(attempt_t* attempt) {
  if (attempt->socket) attempt->socket->vtable->close(attempt->socket);
  rn_status_free(attempt->status);
  rn_tls_release(attempt->tls);
  rn_mutex_destroy(&attempt->mutex);
  rn_free(attempt->allocator, attempt, attempt->size);
}

// The attempt has ended, on the loop's thread.
static void on_attempt(rn_loop_job_t* job) {
  attempt_t* attempt = (attempt_t*)job;
  rn_mutex_lock(&attempt->mutex);
  rn_channel_t* channel = attempt->channel;
  rn_mutex_unlock(&attempt->mutex);
  if (!channel) {  // abandoned since it was posted
    attempt_free(attempt);
    return;
  }
  rn_http2_options_t options = {.loop = channel->options.loop,
                                .allocator = channel->options.allocator,
                                .events = &events,
                                .owner = channel,
                                .tokens = channel->options.tokens,
                                .keepalive_ns = channel->options.keepalive_ns};
  rn_http2_t* http2 = NULL;
  rn_status_t status = attempt->status;
  attempt->status = RN_OK;
  bool had_socket = rn_ok(status);
  if (had_socket) {
    rn_mutex_lock(&channel->mutex);
    channel->connections++;
    channel->connects++;
    rn_mutex_unlock(&channel->mutex);
    status = rn_http2_create(&options, attempt->socket, &http2);
    attempt->socket = NULL;
  }
  rn_mutex_lock(&channel->mutex);
  if (!http2 && had_socket) channel->connections--;
  channel->attempt = NULL;
  channel->http2 = http2;
  if (http2 || !had_socket) channel->false_starts = 0;
  if (http2) channel->retry_ns = 0;
  if (!http2 && had_socket && starts_again(channel)) {
    rn_mutex_unlock(&channel->mutex);
    rn_status_free(status);
    attempt_free(attempt);
    return;
  }
  // An unreachable peer is tried again and again, but logged once.
  bool is_news = !rn_ok(status) && !channel->is_closing &&
                 strcmp(rn_status_message(status), rn_status_message(channel->failure)) != 0;
  if (is_news)
    rn_log(&attempt->env, RN_LOG_WARNING, "%s%s%s cannot be reached: %s", channel->address,
           channel->peer ? ", " : "", channel->peer ? channel->peer : "",
           rn_status_message(status));
  rn_status_free(channel->failure);
  channel->failure = status;
  if (!http2 && !channel->is_closing && has_waiting(channel)) {
    int64_t delay = channel->retry_ns ? channel->retry_ns : FIRST_RETRY_NS;
    channel->retry_ns = delay * 2 < MAX_RETRY_NS ? delay * 2 : MAX_RETRY_NS;
    delay +=
        (int64_t)(attempt->env.random(attempt->env.self) % (uint64_t)(delay * 2 / 5)) - delay / 5;
    rn_status_free(rn_loop_set_timer(channel->options.loop, &channel->retry,
                                     rn_loop_now(channel->options.loop) + delay));
  }
  note_waiting(channel);
  rn_mutex_unlock(&channel->mutex);
  attempt_free(attempt);
  attend(channel);
}

static rn_status_t secure(attempt_t* attempt) {
  rn_socket_t* plain = attempt->socket;
  bool wants_write;
  attempt->socket = NULL;
  rn_status_t status =
      rn_tls_connect(attempt->tls, plain, attempt->address, attempt->peer, &attempt->socket);
  if (rn_ok(status)) status = rn_tls_handshake(attempt->socket, attempt->deadline_ns, &wants_write);
  if (!rn_ok(status) && attempt->socket) {
    attempt->socket->vtable->close(attempt->socket);
    attempt->socket = NULL;
  }
  return status;
}

static void* attempt_main(void* arg) {
  attempt_t* attempt = arg;
  attempt->status =
      attempt->env.net->connect(attempt->env.net_self, attempt->address, attempt->deadline_ns,
                                attempt->allocator, &attempt->socket);
  if (attempt->tls && rn_ok(attempt->status)) attempt->status = secure(attempt);
  rn_mutex_lock(&attempt->mutex);
  bool is_wanted = attempt->channel != NULL;
  if (is_wanted) rn_loop_post(attempt->channel->options.loop, &attempt->job);
  rn_mutex_unlock(&attempt->mutex);
  if (!is_wanted) attempt_free(attempt);
  return NULL;
}

static rn_status_t start_attempt(rn_channel_t* channel) {
  const char* peer = channel->peer ? channel->peer : "";
  size_t length = strlen(channel->address) + 1;
  size_t size = sizeof(attempt_t) + length + strlen(peer) + 1;
  attempt_t* attempt = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(channel->options.allocator, size, (void**)&attempt));
  int64_t connect = channel->options.connect_ns ? channel->options.connect_ns : CONNECT_NS;
  *attempt = (attempt_t){.job.run = on_attempt,
                         .channel = channel,
                         .allocator = channel->options.allocator,
                         .env = *rn_loop_env(channel->options.loop),
                         .deadline_ns = rn_loop_now(channel->options.loop) + connect,
                         .size = size};
  strcpy(attempt->address, channel->address);
  strcpy(attempt->address + length, peer);
  if (*peer) attempt->peer = attempt->address + length;
  attempt->tls = channel->options.tls;
  rn_tls_retain(attempt->tls);
  rn_mutex_init(&attempt->mutex);
  pthread_t thread;
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  channel->attempt = attempt;
  int error = pthread_create(&thread, &detached, attempt_main, attempt);
  pthread_attr_destroy(&detached);
  if (!error) return RN_OK;
  channel->attempt = NULL;
  attempt_free(attempt);
  return rn_resource_exhausted("Cannot start a thread to connect");
}

// Under the lock. The next timer retries what fails here.
static void connect_now(rn_channel_t* channel) {
  rn_status_t status = start_attempt(channel);
  if (rn_ok(status)) return;
  rn_status_free(channel->failure);
  channel->failure = status;
  rn_status_free(rn_loop_set_timer(channel->options.loop, &channel->retry,
                                   rn_loop_now(channel->options.loop) + MAX_RETRY_NS));
}

static void on_retry(rn_timer_t* timer) {
  rn_channel_t* channel = RN_CONTAINER_OF(timer, rn_channel_t, retry);
  rn_mutex_lock(&channel->mutex);
  if (!channel->is_closing && !channel->http2 && !channel->attempt) connect_now(channel);
  rn_mutex_unlock(&channel->mutex);
}

// The deadline has passed, or the call was cancelled while it waited.
static void on_call_timer(rn_timer_t* timer) {
  rn_rpc_out_t* call = RN_CONTAINER_OF(timer, rn_rpc_out_t, timer);
  rn_channel_t* channel = call->channel;
  rn_mutex_lock(&channel->mutex);
  if (!call->is_cancelled) call->is_late = true;
  bool was_waiting = call->is_waiting;
  call->is_waiting = false;
  if (call->is_sent) rn_http2_reset(&call->stream);
  rn_mutex_unlock(&channel->mutex);
  if (was_waiting) finish(call, rn_cancelled("The call has not been sent"));
}

// Under the lock.
static void end_soon(rn_channel_t* channel, rn_rpc_out_t* call) {
  rn_status_free(rn_loop_set_timer(channel->options.loop, &call->timer, INT64_MIN));
}

void rn_rpc_start(rn_channel_t* channel, rn_rpc_out_t* call) {
  call->channel = channel;
  call->timer = (rn_timer_t){.fn = on_call_timer};
  rn_mutex_lock(&channel->mutex);
  call->is_active = true;
  link_call(channel, call);
  if (call->is_cancelled || channel->is_closing) {
    call->is_waiting = true;
    end_soon(channel, call);
  } else {
    // Without memory for a timer, the peer's timer must do: it has the deadline too.
    if (call->deadline_ns != INT64_MAX)
      rn_status_free(rn_loop_set_timer(channel->options.loop, &call->timer, call->deadline_ns));
    send_or_wait(channel, call);
  }
  rn_mutex_unlock(&channel->mutex);
}

void rn_rpc_cancel(rn_channel_t* channel, rn_rpc_out_t* call) {
  rn_mutex_lock(&channel->mutex);
  bool was_cancelled = call->is_cancelled;
  call->is_cancelled = true;
  if (call->is_active && !was_cancelled) {
    if (call->is_sent)
      rn_http2_reset(&call->stream);
    else
      end_soon(channel, call);
  }
  rn_mutex_unlock(&channel->mutex);
}

bool rn_channel_is_busy(rn_channel_t* channel) {
  bool is_busy = false;
  rn_mutex_lock(&channel->mutex);
  for (const rn_rpc_out_t* call = channel->calls; call && !is_busy; call = call->next)
    is_busy = call->is_sent || !call->waits_for_ready;
  rn_mutex_unlock(&channel->mutex);
  return is_busy;
}

int64_t rn_channel_heard_ns(rn_channel_t* channel) {
  rn_mutex_lock(&channel->mutex);
  // A connection alone proves nothing: a stopped process has connections too.
  rn_http2_stats_t stats = {0};
  if (channel->http2) stats = rn_http2_stats(channel->http2);
  int64_t heard = stats.bytes_in ? stats.heard_ns : 0;
  rn_mutex_unlock(&channel->mutex);
  return heard;
}

void rn_channel_drop(rn_channel_t* channel, rn_status_t status) {
  rn_mutex_lock(&channel->mutex);
  rn_status_free(channel->failure);
  channel->failure = rn_status_copy(status);
  if (channel->http2)
    rn_http2_close(channel->http2, status);
  else
    rn_status_free(status);
  channel->http2 = NULL;  // its |lost| releases it
  note_waiting(channel);
  rn_mutex_unlock(&channel->mutex);
  attend(channel);
}

rn_channel_stats_t rn_channel_stats(rn_channel_t* channel) {
  rn_mutex_lock(&channel->mutex);
  rn_channel_stats_t stats = {.is_connected = channel->http2 != NULL,
                              .connects = channel->connects,
                              .bytes_in = channel->old_in,
                              .bytes_out = channel->old_out};
  for (const rn_rpc_out_t* call = channel->calls; call; call = call->next) stats.calls++;
  if (channel->http2) {
    rn_http2_stats_t one = rn_http2_stats(channel->http2);
    stats.silent_ns = rn_loop_now(channel->options.loop) - one.heard_ns;
    stats.queued = one.queued;
    stats.bytes_in += one.bytes_in;
    stats.bytes_out += one.bytes_out;
  }
  rn_mutex_unlock(&channel->mutex);
  return stats;
}

rn_status_t rn_channel_create(const rn_channel_options_t* options, rn_channel_t** out) {
  *out = NULL;
  rn_channel_t* channel = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &channel));
  channel->options = *options;
  channel->retry.fn = on_retry;
  rn_mutex_init(&channel->mutex);
  rn_cond_init(&channel->changed);
  rn_tls_retain(options->tls);
  rn_tokens_retain(options->tokens);
  rn_status_t status = rn_str_dup(options->allocator, rn_str(options->address), &channel->address);
  if (rn_ok(status) && options->peer)
    status = rn_str_dup(options->allocator, rn_str(options->peer), &channel->peer);
  if (!rn_ok(status)) {
    rn_channel_destroy(channel);
    return status;
  }
  *out = channel;
  return RN_OK;
}

typedef struct closing_t {
  rn_loop_job_t job;
  rn_channel_t* channel;
  bool is_done;
} closing_t;

static void on_closing(rn_loop_job_t* job) {
  closing_t* closing = (closing_t*)job;
  rn_channel_t* channel = closing->channel;
  rn_loop_clear_timer(channel->options.loop, &channel->retry);
  attend(channel);
  rn_mutex_lock(&channel->mutex);
  if (channel->http2) rn_http2_close(channel->http2, rn_cancelled("The channel was closed"));
  closing->is_done = true;
  rn_cond_broadcast(&channel->changed);
  rn_mutex_unlock(&channel->mutex);
}

void rn_channel_destroy(rn_channel_t* channel) {
  if (!channel) return;
  closing_t closing = {.job.run = on_closing, .channel = channel};
  rn_mutex_lock(&channel->mutex);
  channel->is_closing = true;
  attempt_t* attempt = channel->attempt;
  if (attempt) {
    rn_mutex_lock(&attempt->mutex);
    attempt->channel = NULL;
    rn_mutex_unlock(&attempt->mutex);
    channel->attempt = NULL;
  }
  rn_mutex_unlock(&channel->mutex);
  rn_loop_post(channel->options.loop, &closing.job);
  rn_mutex_lock(&channel->mutex);
  while (!closing.is_done || channel->calls || channel->connections)
    rn_cond_wait(&channel->changed, &channel->mutex);
  rn_mutex_unlock(&channel->mutex);
  rn_status_free(channel->failure);
  if (channel->address)
    rn_free(channel->options.allocator, channel->address, strlen(channel->address) + 1);
  if (channel->peer) rn_free(channel->options.allocator, channel->peer, strlen(channel->peer) + 1);
  rn_tokens_release(channel->options.tokens);
  rn_tls_release(channel->options.tls);
  rn_cond_destroy(&channel->changed);
  rn_mutex_destroy(&channel->mutex);
  RN_FREE(channel->options.allocator, channel);
}
