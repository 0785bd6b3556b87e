// The thread of a wire: everything that calls UCX.
//
// Callbacks of UCX run inside ucp_worker_progress and the functions that post requests, so on this
// thread and without the mutex. doc/invariants.md: invariant 52a.
#include <errno.h>
#include <poll.h>
#include <sched.h>

#include "base/crc32c.h"
#include "base/vec.h"
#include "dist/rpc/wire_internal.h"

#define PROGRESS_TURNS 64  // between looks at what is new
#define SPIN_NS 50000      // how long it polls for what may come before it sleeps
#define KEEP_NS 5000       // and how long of that without yielding the core
#define SWEEP_NS INT64_C(500000000)
#define CLOSING_NS INT64_C(2000000000)
#define FLUSHING_NS INT64_C(200000000)
enum { GREETING = 1, VALUE };  // kinds of messages

static int64_t now(const rn_wire_t* wire) {
  return wire->options.env->now_ns(wire->options.env->self);
}

// Ends.

static void end_release(wire_end_t* end) {
  if (--end->holds == 0) RN_FREE(end->wire->options.allocator, end);
}

static void on_failed(void* arg, void* ep, rn_ucx_status_t status) {
  wire_end_t* end = arg;
  (void)ep, (void)status;
  rn_mutex_lock(&end->wire->mutex);
  end->is_over = end->wire->has_news = true;
  rn_mutex_unlock(&end->wire->mutex);
}

static void on_greeted(void* request, rn_ucx_status_t status, void* user_data) {
  wire_end_t* end = user_data;
  rn_wire_t* wire = end->wire;
  if (status != RN_UCX_OK) on_failed(end, NULL, status);
  wire->ucx.ucp_request_free(request);
  end_release(end);
}

// Says the line's name and our address.
static void greet(wire_end_t* end) {
  rn_wire_t* wire = end->wire;
  const rn_ucx_request_params_t params = {
      .fields = RN_UCX_HAS_DONE | RN_UCX_HAS_USER_DATA, .done.sent = on_greeted, .user_data = end};
  end->holds++;
  rn_ucx_request_t request =
      wire->ucx.ucp_am_send_nbx(end->ep, GREETING, &end->name, sizeof end->name,
                                wire->address.items, wire->address.count, &params);
  if (request && !rn_ucx_is_error(request)) return;
  if (request) on_failed(end, NULL, rn_ucx_error(request));
  end_release(end);
}

// Not all transports notice that a peer has died (shared memory does not, before UCX 1.14): they
// are used if there is no other.
static void open_end(wire_end_t* end) {
  rn_wire_t* wire = end->wire;
  rn_ucx_ep_params_t params = {.fields = RN_UCX_PEER_FIELDS,
                               .address = end->address,
                               .error_mode = RN_UCX_ENDS_REQUESTS,
                               .failed = {on_failed, end}};
  end->was_opened = true;
  rn_ucx_status_t status = wire->ucx.ucp_ep_create(wire->worker, &params, &end->ep);
  end->can_fail = status == RN_UCX_OK;
  params.error_mode = 0;
  if (!end->can_fail) status = wire->ucx.ucp_ep_create(wire->worker, &params, &end->ep);
  if (status != RN_UCX_OK) {
    end->ep = NULL;
    on_failed(end, NULL, status);
  } else if (end->is_ours) {
    greet(end);
  }
}

static void on_closed(void* request, rn_ucx_status_t status, void* user_data) {
  wire_end_t* end = user_data;
  (void)status;
  end->wire->ucx.ucp_request_free(request);
  end_release(end);
}

// Ends what is under way there: its requests fail. UCX keeps an end that cannot fail, and its
// requests, until the wire ends.
static void close_end(wire_end_t* end) {
  rn_wire_t* wire = end->wire;
  const rn_ucx_request_params_t params = {
      .fields = RN_UCX_HAS_FLAGS | RN_UCX_HAS_DONE | RN_UCX_HAS_USER_DATA,
      .flags = RN_UCX_FORCE,
      .done.sent = on_closed,
      .user_data = end};
  if (!end->ep || !end->can_fail) return;
  end->holds++;
  rn_ucx_request_t request = wire->ucx.ucp_ep_close_nbx(end->ep, &params);
  end->ep = NULL;
  if (!request || rn_ucx_is_error(request)) end_release(end);
}

static rn_ucx_status_t on_greeting(void* arg, const void* head, size_t head_size, void* data,
                                   size_t size, const rn_ucx_message_t* message) {
  rn_wire_t* wire = arg;
  rn_loan_name_t name;
  if (head_size != sizeof name || message->attributes & RN_UCX_IS_RENDEZVOUS) return RN_UCX_OK;
  memcpy(&name, head, sizeof name);
  rn_mutex_lock(&wire->mutex);
  if (!rn_wire_find_locked(wire, name))
    rn_status_free(rn_wire_add_end_locked(wire, name, rn_str_n(data, size), false));
  rn_mutex_unlock(&wire->mutex);
  return RN_UCX_OK;
}

// Puts.

static void end_put(wire_sending_t* sending, bool is_sent) {
  rn_wire_put_t* put = sending->put;
  sending->put = NULL;
  if (put) put->done(put, is_sent);
}

static void sending_ended(wire_sending_t* sending, bool is_sent) {
  wire_sending_t** at = &sending->wire->started;
  while (*at != sending) at = &(*at)->next;
  *at = sending->next;
  rn_mutex_lock(&sending->wire->mutex);
  sending->wire->bytes -= sending->size;
  rn_mutex_unlock(&sending->wire->mutex);
  end_put(sending, is_sent);
  rn_wire_free_sending(sending);
}

static void on_sent(void* request, rn_ucx_status_t status, void* user_data) {
  wire_sending_t* sending = user_data;
  sending->wire->ucx.ucp_request_free(request);
  sending_ended(sending, status == RN_UCX_OK);
}

// The receiver fetches large values, so that they need no memory there before they are wanted.
static void start_sending(wire_sending_t* sending) {
  rn_wire_t* wire = sending->wire;
  rn_mutex_lock(&wire->mutex);
  const wire_end_t* end = rn_wire_find_locked(wire, sending->line);
  void* ep = end && !end->is_over ? end->ep : NULL;
  rn_mutex_unlock(&wire->mutex);
  const rn_ucx_request_params_t params = {
      .fields = RN_UCX_HAS_DONE | RN_UCX_HAS_USER_DATA | RN_UCX_HAS_FLAGS,
      .flags = sending->size >= RN_WIRE_MIN ? RN_UCX_RENDEZVOUS : 0,
      .done.sent = on_sent,
      .user_data = sending};
  sending->next = wire->started;
  wire->started = sending;
  rn_ucx_request_t request = NULL;
  if (ep)
    request = wire->ucx.ucp_am_send_nbx(ep, VALUE, sending->head, sending->head_size, sending->data,
                                        sending->size, &params);
  if (!ep || !request || rn_ucx_is_error(request)) sending_ended(sending, ep && !request);
}

// The puts of a line that is over end now, whenever UCX ends its requests.
static void fail_puts(rn_wire_t* wire, rn_loan_name_t line) {
  for (wire_sending_t* at = wire->started; at;) {
    bool is_of_line = at->put && rn_loan_name_eq(at->line, line);
    if (is_of_line) end_put(at, false);
    at = is_of_line ? wire->started : at->next;  // |done| may have changed the list
  }
}

// Handles what is new: ends to open or close, values to put.
static void catch_up(rn_wire_t* wire) {
  for (;;) {
    wire_end_t *fresh = NULL, **over = NULL, *gone = NULL;
    wire_sending_t* puts = NULL;
    rn_mutex_lock(&wire->mutex);
    if (!wire->has_news) {
      rn_mutex_unlock(&wire->mutex);
      return;
    }
    for (wire_end_t** at = &wire->ends; *at; at = &(*at)->next) {
      if ((*at)->is_over && !over) over = at;
      if (!(*at)->is_over && !(*at)->was_opened && !fresh) fresh = *at;
    }
    if (over) {
      gone = *over;
      *over = gone->next;
      wire->end_count--;
    } else if (!fresh) {
      puts = wire->puts;
      wire->puts = NULL;
      wire->put_end = &wire->puts;
      wire->has_news = false;
    }
    rn_mutex_unlock(&wire->mutex);
    if (gone) {
      close_end(gone);
      fail_puts(wire, gone->name);
      rn_wire_fail_takes(wire, &gone->name, 0, "The connection by UCX has ended");
      end_release(gone);
    } else if (fresh) {
      open_end(fresh);
    }
    while (puts) {
      wire_sending_t* next = puts->next;
      start_sending(puts);
      puts = next;
    }
  }
}

// Ends lines that take too long, and takes that are awaited for too long.
static void sweep(rn_wire_t* wire) {
  int64_t at = now(wire);
  rn_mutex_lock(&wire->mutex);
  for (const wire_sending_t* one = wire->started; one; one = one->next) {
    bool is_late = one->put && one->deadline_ns < at;
    wire_end_t* end = is_late ? rn_wire_find_locked(wire, one->line) : NULL;
    if (end) end->is_over = wire->has_news = true;
  }
  rn_mutex_unlock(&wire->mutex);
  rn_wire_fail_takes(wire, NULL, at, "A tensor that was announced did not come");
}

// Sleeps until something happens, for ever if nothing is due. |idle_ns|: since it last had
// something to do.
static void rest(rn_wire_t* wire, int64_t idle_ns) {
  rn_mutex_lock(&wire->mutex);
  bool may_come = wire->started || wire->takes.count, is_due = wire->started || wire->awaited;
  bool has_news = wire->has_news || wire->is_stopped;
  rn_mutex_unlock(&wire->mutex);
  if (has_news) return;
  if (may_come && idle_ns < SPIN_NS) {
    if (idle_ns > KEEP_NS) sched_yield();
    return;
  }
  if (wire->ucx.ucp_worker_arm(wire->worker) != RN_UCX_OK) return;
  struct pollfd wait = {.fd = wire->event_fd, .events = POLLIN};
  (void)poll(&wait, 1, is_due ? (int)(SWEEP_NS / 1000000) : -1);
}

// The start and the end.

static rn_status_t configure(const rn_wire_t* wire, void** out) {
  const rn_ucx_t* ucx = &wire->ucx;
  RN_RETURN_IF_ERROR(
      rn_wire_check(wire, "reading the configuration", ucx->ucp_config_read(NULL, NULL, out)));
  if (!wire->options.is_local || getenv("UCX_NET_DEVICES")) return RN_OK;
  return rn_wire_check(wire, "choosing the loopback interface",
                       ucx->ucp_config_modify(*out, "NET_DEVICES", "lo"));
}

// Asks for the address and puts its seal before it.
static rn_status_t seal_address(rn_wire_t* wire) {
  const rn_ucx_t* ucx = &wire->ucx;
  void* address = NULL;
  size_t size = 0;
  RN_RETURN_IF_ERROR(rn_wire_check(wire, "asking for the address",
                                   ucx->ucp_worker_get_address(wire->worker, &address, &size)));
  unsigned version[3];
  ucx->ucp_get_version(&version[0], &version[1], &version[2]);
  wire->seal = (wire_seal_t){.magic = {'R', 'N', 'U', 'X'},
                             .major = (uint16_t)version[0],
                             .minor = (uint16_t)version[1],
                             .crc = rn_crc32c(0, address, size)};
  size_t whole = sizeof wire->seal + size;
  rn_status_t status = size > RN_WIRE_MAX_ADDRESS
                           ? rn_unavailable("UCX: the address has %zu bytes", size)
                           : rn_vec_reserve(&wire->address, wire->options.allocator, whole);
  if (rn_ok(status)) {
    memcpy(wire->address.items, &wire->seal, sizeof wire->seal);
    memcpy(wire->address.items + sizeof wire->seal, address, size);
    wire->address.count = whole;
  }
  ucx->ucp_worker_release_address(wire->worker, address);
  return status;
}

static rn_status_t begin(rn_wire_t* wire) {
  rn_ucx_t* ucx = &wire->ucx;
  RN_RETURN_IF_ERROR(rn_ucx_open(ucx));
  void* config = NULL;
  const rn_ucx_params_t params = {.fields = RN_UCX_HAS_FEATURES,
                                  .features = RN_UCX_MESSAGES | RN_UCX_WAKEUP};
  // For one thread; it does not complain of requests that an end still has that cannot fail.
  const rn_ucx_worker_params_t worker = {.fields = RN_UCX_HAS_WORKER_FLAGS,
                                         .flags = RN_UCX_IGNORES_LEAKS};
  rn_status_t status = configure(wire, &config);
  if (rn_ok(status))
    status = rn_wire_check(wire, "the start",
                           ucx->ucp_init_version(1, 10, &params, config, &wire->context));
  if (config) ucx->ucp_config_release(config);
  RN_RETURN_IF_ERROR(status);
  void* made = NULL;
  RN_RETURN_IF_ERROR(rn_wire_check(wire, "creating a worker",
                                   ucx->ucp_worker_create(wire->context, &worker, &made)));
  rn_mutex_lock(&wire->mutex);
  wire->worker = made;
  rn_mutex_unlock(&wire->mutex);
  const rn_ucx_handler_t handlers[] = {{0xf, GREETING, 1, on_greeting, wire},
                                       {0xf, VALUE, 1, rn_wire_on_value, wire}};
  for (size_t i = 0; i < sizeof handlers / sizeof *handlers; ++i)
    RN_RETURN_IF_ERROR(
        rn_wire_check(wire, "setting a handler",
                      ucx->ucp_worker_set_am_recv_handler(wire->worker, &handlers[i])));
  RN_RETURN_IF_ERROR(rn_wire_check(wire, "asking for events",
                                   ucx->ucp_worker_get_efd(wire->worker, &wire->event_fd)));
  return seal_address(wire);
}

static void on_flushed(void* request, rn_ucx_status_t status, void* user_data) {
  rn_wire_t* wire = user_data;
  (void)status;
  wire->flushing--;
  wire->ucx.ucp_request_free(request);
}

// Waits until the lines that this side opens are open. While the peer's UCX still answers, it would
// find our port closed, and UCX 1.13 ends its process over that. No end is added any more.
static void flush_ends(rn_wire_t* wire) {
  const rn_ucx_request_params_t params = {
      .fields = RN_UCX_HAS_DONE | RN_UCX_HAS_USER_DATA, .done.sent = on_flushed, .user_data = wire};
  for (const wire_end_t* end = wire->ends; end; end = end->next) {
    if (!end->ep || !end->can_fail || !end->is_ours) continue;
    rn_ucx_request_t request = wire->ucx.ucp_ep_flush_nbx(end->ep, &params);
    if (request && !rn_ucx_is_error(request)) wire->flushing++;
  }
  int64_t until = now(wire) + FLUSHING_NS;
  while (wire->flushing && now(wire) < until)
    if (!wire->ucx.ucp_worker_progress(wire->worker)) sched_yield();
}

// Closes all lines, and gives UCX a moment to end what it has.
static void end_all(rn_wire_t* wire) {
  rn_wire_fail_takes(wire, NULL, INT64_MAX, "The wire is closing");
  rn_mutex_lock(&wire->mutex);
  for (wire_end_t* end = wire->ends; end; end = end->next) end->is_over = true;
  wire->has_news = true;
  rn_mutex_unlock(&wire->mutex);
  catch_up(wire);
  int64_t until = now(wire) + CLOSING_NS;
  while ((wire->started || wire->landings) && now(wire) < until)
    if (!wire->ucx.ucp_worker_progress(wire->worker)) sched_yield();
}

static void finish(rn_wire_t* wire) {
  void* worker = wire->worker;
  if (worker) {
    flush_ends(wire);
    end_all(wire);
  }
  rn_mutex_lock(&wire->mutex);
  wire->worker = NULL;
  rn_mutex_unlock(&wire->mutex);
  if (worker) wire->ucx.ucp_worker_destroy(worker);
  if (wire->context) wire->ucx.ucp_cleanup(wire->context);
  while (wire->started) sending_ended(wire->started, false);
  rn_wire_fail_takes(wire, NULL, INT64_MAX, "The wire is closing");
  while (wire->landings) rn_wire_landed(wire->landings, -16, 0);
}

void* rn_wire_serve(void* arg) {
  rn_wire_t* wire = arg;
  rn_status_t status = begin(wire);
  rn_mutex_lock(&wire->mutex);
  bool is_over = !rn_ok(status);
  wire->status = status;
  wire->is_ready = true;
  rn_cond_broadcast(&wire->changed);
  rn_mutex_unlock(&wire->mutex);
  int64_t busy_ns = 0, swept_ns = 0;
  while (!is_over) {
    catch_up(wire);
    int turns = 0;
    while (turns < PROGRESS_TURNS && wire->ucx.ucp_worker_progress(wire->worker)) turns++;
    int64_t at = now(wire);
    if (turns) busy_ns = at;
    if (at - swept_ns > SWEEP_NS) {
      sweep(wire);
      swept_ns = at;
    }
    if (!turns) rest(wire, at - busy_ns);
    rn_mutex_lock(&wire->mutex);
    is_over = wire->is_stopped;
    rn_mutex_unlock(&wire->mutex);
  }
  finish(wire);
  return NULL;
}
