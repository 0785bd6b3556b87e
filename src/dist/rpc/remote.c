// Makes calls to other processes: see remote.h.
#include "dist/rpc/remote.h"

#include "base/container.h"
#include "dist/rpc/codec.h"
#include "dist/rpc/dial.h"
#include "dist/rpc/line.h"
#include "dist/rpc/remote_messages.h"
#include "proto/worker.pb.h"
#include "wire/writer.h"

// After this many lines to a peer have failed, we ask it for no more loans.
#define MAX_LINES 100

struct rn_remote_peer_t {
  rn_worker_t worker;
  rn_master_t master;
  rn_channel_t* channel;  // Borrowed
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_loans_t* loans;       // Borrowed: shows values to the peer; NULL: none
  uint64_t task, to_task;  // this one and the peer's, as numbers (rn_reach_task)
  rn_dial_t dial;          // the peer's wire
  rn_mutex_t mutex;        // guards what follows
  rn_cond_t idle;
  rn_line_t* line;     // Owned: to a lender of this machine; NULL: none
  bool may_have_line;  // a line may be opened, or is open
  char machine[40];    // this one
  int lines_left;      // how many more may be opened after failures
  int borrowing;       // tensors that are being read, until their MarkRecvFinished is made, and
                       // values that the peer has put on its wire and that have not come yet
  bool is_stopped;
};

typedef rn_status_t (*decode_fn_t)(const rn_in_t* in, rn_call_t* call);

// A running call.
typedef struct sent_t {
  rn_rpc_out_t out;  // first
  rn_remote_peer_t* peer;
  rn_call_t* call;
  decode_fn_t decode;
  rn_encoder_t encoder;  // until the request is written
  rn_cancel_entry_t entry;
  bool is_linked;
  bool asks_for_lender;  // a RecvTensor to which a lender on this machine responds with its name
  rn_wire_ask_t wire;    // of a RecvTensor
  rn_wire_take_t take;   // expected on the wire, if |takes|
  bool takes;
  rn_job_t job;  // after the response, when the value has come
} sent_t;

static rn_remote_peer_t* of_worker(rn_worker_t* worker) {
  return RN_CONTAINER_OF(worker, rn_remote_peer_t, worker);
}
static rn_remote_peer_t* of_master(rn_master_t* master) {
  return RN_CONTAINER_OF(master, rn_remote_peer_t, master);
}

static void on_cancel(rn_cancel_entry_t* entry) {
  sent_t* sent = RN_CONTAINER_OF(entry, sent_t, entry);
  rn_rpc_cancel(sent->peer->channel, &sent->out);
}

// A loan of the peer: read on the pool, then returned with MarkRecvFinished; valid if the loan
// lasted until then.
typedef struct borrowed_t {
  rn_job_t job;  // first
  rn_remote_peer_t* peer;
  rn_recv_tensor_t* call;
  rn_line_t* line;  // Retained
  rn_loan_t loan;
  rn_tensor_t value;
  rn_call_t mark;  // MarkRecvFinished
  bool is_marked;
} borrowed_t;

static void mark_finished(borrowed_t* borrowed);

// Under the lock. The next response has the address of the peer's lender, which may be a new
// process.
static void drop_line(rn_remote_peer_t* peer) {
  rn_line_release(peer->line);
  peer->line = NULL;
  peer->may_have_line = peer->lines_left > 0;
}

static void borrowed_end(borrowed_t* borrowed, rn_status_t status) {
  rn_remote_peer_t* peer = borrowed->peer;
  rn_recv_tensor_t* call = borrowed->call;
  if (rn_ok(status))
    call->value = borrowed->value;
  else
    rn_tensor_clear(&borrowed->value);
  rn_mutex_lock(&peer->mutex);
  if (!rn_ok(status) && peer->line == borrowed->line) drop_line(peer);
  rn_mutex_unlock(&peer->mutex);
  rn_line_release(borrowed->line);
  RN_FREE(peer->allocator, borrowed);
  rn_call_done(&call->call, status);
}

static void read_borrowed(rn_job_t* job) {
  borrowed_t* borrowed = (borrowed_t*)job;
  rn_remote_peer_t* peer = borrowed->peer;
  rn_tensor_t* value = &borrowed->value;
  rn_status_t status = rn_buffer_create(rn_channel_landing(peer->channel), value->dtype,
                                        rn_tensor_bytes(value), &value->buffer);
  if (rn_ok(status)) {
    value->data = value->buffer->data;
    status = rn_line_read(borrowed->line, &borrowed->loan, value->data, rn_tensor_bytes(value),
                          peer->env->pool);
  }
  if (rn_ok(status))
    mark_finished(borrowed);
  else
    borrowed_end(borrowed, status);
  rn_mutex_lock(&peer->mutex);
  if (--peer->borrowing == 0) rn_cond_broadcast(&peer->idle);
  rn_mutex_unlock(&peer->mutex);
}

// Learns from the response to RecvTensor whether the peer has a lender on this machine, and whether
// the line to it works.
static void learn(rn_remote_peer_t* peer, rn_str_t response, bool asked) {
  rn_reach_t reach;
  rn_mutex_lock(&peer->mutex);
  if (asked && peer->may_have_line && !peer->line) {
    rn_status_t status =
        rn_decode_reach(response, &reach)
            ? rn_line_open(&reach, peer->task, peer->env, peer->allocator, &peer->line)
            : rn_unavailable("The peer lends nothing");
    peer->may_have_line = rn_ok(status);
    peer->lines_left--;
    rn_status_free(status);
  } else if (peer->line && (rn_line_state(peer->line) == RN_LINE_WAITS ||
                            rn_line_has_board(peer->line) || response.size >= RN_LOAN_MIN)) {
    // The response has a value that could have been lent or shown: the lender may be gone.
    if (rn_line_hear(peer->line) == RN_LINE_FAILS) drop_line(peer);
  }
  rn_mutex_unlock(&peer->mutex);
}

// The loan in the response to RecvTensor, in |*out|; NULL if the response has the value itself.
static rn_status_t borrow(const sent_t* sent, borrowed_t** out) {
  rn_remote_peer_t* peer = sent->peer;
  rn_str_t response = rn_message_view(&sent->out.stream.message);
  *out = NULL;
  uint64_t id = 0;
  rn_tensor_t value = {0};
  bool is_there;
  RN_RETURN_IF_ERROR(rn_decode_loan(response, &id, &value, &is_there));
  if (!is_there) {
    learn(peer, response, sent->asks_for_lender);
    return RN_OK;
  }
  borrowed_t* borrowed = NULL;
  rn_status_t status = RN_NEW(peer->allocator, &borrowed);
  if (!rn_ok(status)) {
    rn_tensor_clear(&value);
    return status;
  }
  *borrowed = (borrowed_t){.job.run = read_borrowed,
                           .peer = peer,
                           .call = (rn_recv_tensor_t*)sent->call,
                           .value = value};
  rn_mutex_lock(&peer->mutex);
  if (peer->is_stopped || !peer->line || !rn_line_take(peer->line, id, &borrowed->loan))
    status = rn_unavailable("The peer lent a tensor that was not requested");
  if (rn_ok(status)) {
    borrowed->line = peer->line;
    rn_line_retain(borrowed->line);
    peer->borrowing++;
  }
  rn_mutex_unlock(&peer->mutex);
  if (rn_ok(status)) {
    *out = borrowed;
  } else {
    rn_tensor_clear(&borrowed->value);
    RN_FREE(peer->allocator, borrowed);
  }
  return status;
}

static void sent_end(sent_t* sent, rn_status_t status) {
  rn_remote_peer_t* peer = sent->peer;
  rn_call_t* call = sent->call;
  rn_rpc_out_clear(&sent->out);
  RN_FREE(peer->allocator, sent);
  rn_call_done(call, status);
}

// Values of the peer's wire.

static void end_taken(rn_job_t* job) {
  sent_t* sent = RN_CONTAINER_OF(job, sent_t, job);
  rn_remote_peer_t* peer = sent->peer;
  rn_status_t status = sent->take.status;
  if (rn_ok(status)) ((rn_recv_tensor_t*)sent->call)->value = sent->take.value;
  sent_end(sent, status);
  rn_mutex_lock(&peer->mutex);
  if (--peer->borrowing == 0) rn_cond_broadcast(&peer->idle);
  rn_mutex_unlock(&peer->mutex);
}

// On the wire's thread.
static void on_taken(rn_wire_take_t* take, rn_status_t status) {
  sent_t* sent = RN_CONTAINER_OF(take, sent_t, take);
  take->status = status;
  sent->job.run = end_taken;
  rn_pool_submit(sent->peer->env->pool, &sent->job);
}

// Ends what the request said of the wire. True if the call is over, or goes on with the value;
// false if the response has the value.
static bool settle(sent_t* sent, rn_status_t status) {
  rn_remote_peer_t* peer = sent->peer;
  rn_wire_answer_t answer = {.is_sent = false};
  if (rn_ok(status)) rn_decode_wire_answer(rn_message_view(&sent->out.stream.message), &answer);
  rn_dial_learn(&peer->dial, &sent->wire, status, &answer);
  if (!sent->takes) return false;
  rn_mutex_lock(&peer->mutex);
  peer->borrowing += answer.is_sent;
  rn_mutex_unlock(&peer->mutex);
  rn_status_t outcome = RN_OK;
  if (!rn_wire_settle(peer->dial.wire, &sent->take, answer.is_sent, &outcome)) return true;
  if (!answer.is_sent) return false;
  sent->take.status = outcome;
  end_taken(&sent->job);
  return true;
}

static void on_done(rn_rpc_out_t* out, rn_status_t status) {
  sent_t* sent = (sent_t*)out;
  rn_remote_peer_t* peer = sent->peer;
  rn_call_t* call = sent->call;
  borrowed_t* borrowed = NULL;
  if (sent->is_linked) rn_cancel_remove(call->cancel, &sent->entry);
  call->is_broken = rn_status_code(status) == RN_CODE_UNAVAILABLE && out->is_sent &&
                    out->stream.grpc_status < 0 && !rn_lease_is_over(status);
  if (sent->decode == rn_take_recv_tensor && settle(sent, status)) return;
  if (rn_ok(status) && sent->decode == rn_take_recv_tensor) status = borrow(sent, &borrowed);
  if (rn_ok(status) && sent->decode && !borrowed) {
    const rn_message_t* message = &out->stream.message;
    rn_arena_t arena;
    rn_arena_init(&arena, peer->allocator);
    rn_in_t in = {.bytes = rn_message_view(message),
                  .buffer = message->pieces.count ? message->pieces.items[0].buffer : NULL,
                  .arena = &arena,
                  .allocator = peer->allocator};
    status = sent->decode(&in, call);
    rn_arena_clear(&arena);
  }
  if (!borrowed) {
    sent_end(sent, status);
    return;
  }
  rn_rpc_out_clear(out);
  RN_FREE(peer->allocator, sent);
  rn_pool_submit(peer->env->pool, &borrowed->job);
}

// Prepares a call to |path|; the caller writes the request into |encoder|, then calls send_off.
// NULL without memory; then |call| has ended.
static sent_t* prepare(rn_remote_peer_t* peer, const char* path, rn_call_t* call,
                       decode_fn_t decode) {
  sent_t* sent = NULL;
  rn_status_t status = RN_NEW(peer->allocator, &sent);
  if (!rn_ok(status)) {
    rn_call_done(call, status);
    return NULL;
  }
  sent->peer = peer;
  sent->call = call;
  sent->decode = decode;
  sent->entry.fn = on_cancel;
  sent->out.path = path;
  sent->out.align = rn_align_content;
  sent->out.deadline_ns = call->deadline_ns;
  sent->out.waits_for_ready = call->waits_for_ready;
  sent->out.done = on_done;
  rn_message_init(&sent->out.request, peer->allocator);
  rn_encoder_open(&sent->encoder, &sent->out.request);
  return sent;
}

static void send_off(sent_t* sent) {
  rn_remote_peer_t* peer = sent->peer;
  rn_call_t* call = sent->call;
  rn_status_t status = rn_encoder_close(&sent->encoder);
  if (rn_ok(status) && call->cancel) {
    sent->is_linked = rn_cancel_add(call->cancel, &sent->entry);
    if (!sent->is_linked) status = rn_cancelled("The call was cancelled before it was made");
  }
  if (rn_ok(status)) {
    rn_rpc_start(peer->channel, &sent->out);
    return;
  }
  if (sent->takes) rn_wire_settle(peer->dial.wire, &sent->take, false, &(rn_status_t){0});
  sent_end(sent, status);
}

static borrowed_t* of_mark(rn_call_t* call) { return RN_CONTAINER_OF(call, borrowed_t, mark); }

static rn_status_t take_mark(const rn_in_t* in, rn_call_t* call) {
  of_mark(call)->is_marked = rn_field_value(in->bytes, RN_MARKED_FIELD);
  return RN_OK;
}

static void on_marked(rn_call_t* call, rn_status_t status) {
  borrowed_t* borrowed = of_mark(call);
  if (rn_ok(status) && !borrowed->is_marked)
    status = rn_unavailable("A borrowed tensor was revoked while it was read");
  borrowed_end(borrowed, status);
}

static void mark_finished(borrowed_t* borrowed) {
  borrowed->mark = (rn_call_t){.done = on_marked, .deadline_ns = INT64_MAX};
  sent_t* sent =
      prepare(borrowed->peer, RN_PATH_worker "MarkRecvFinished", &borrowed->mark, take_mark);
  if (!sent) return;
  rn_pb_put_uint(&sent->encoder.head, rn_pb_MarkRecvFinishedRequest_request_id_field,
                 borrowed->loan.id);
  send_off(sent);
}

void rn_put_recv_tensor(rn_encoder_t* to, rn_recv_tensor_t* call) {
  sent_t* sent = RN_CONTAINER_OF(to, sent_t, encoder);
  rn_remote_peer_t* peer = sent->peer;
  rn_loan_ask_t ask = {.has_line = false};
  call->value = (rn_tensor_t){0};
  rn_mutex_lock(&peer->mutex);
  if (peer->may_have_line) memcpy(ask.machine, peer->machine, sizeof ask.machine);
  if (peer->line) {
    ask.line = rn_line_name(peer->line);
    ask.has_line = true;
    ask.wants_loan = rn_line_state(peer->line) == RN_LINE_WORKS;
  }
  rn_mutex_unlock(&peer->mutex);
  sent->asks_for_lender = ask.machine[0] && !ask.has_line;
  sent->take.done = on_taken;
  sent->takes = rn_dial_ask(&peer->dial, &sent->take, &sent->wire);
  rn_encode_recv_tensor(to, call, &ask, &sent->wire);
}

// The two vtables.

#define TAKES_ANSWERS(name) rn_take_##name
#define TAKES_ACKS(name) NULL
#define SENDS(side, name, Method, speed, answer, ...)                                        \
  static void name(rn_##side##_t* side, rn_##name##_t* call) {                               \
    sent_t* sent =                                                                           \
        prepare(of_##side(side), RN_PATH_##side #Method, &call->call, TAKES_##answer(name)); \
    if (!sent) return;                                                                       \
    rn_put_##name(&sent->encoder, call);                                                     \
    send_off(sent);                                                                          \
  }
RN_WORKER_CALLS(SENDS)
RN_MASTER_CALLS(SENDS)

// Values that are shown.

static bool is_near(rn_worker_t* worker) {
  rn_remote_peer_t* peer = of_worker(worker);
  rn_mutex_lock(&peer->mutex);
  bool is_near = !peer->is_stopped && peer->line && rn_line_has_board(peer->line);
  rn_mutex_unlock(&peer->mutex);
  return is_near;
}

static uint64_t show(rn_worker_t* worker, rn_shown_key_t key, const void* data, size_t size) {
  const rn_remote_peer_t* peer = of_worker(worker);
  return peer->loans ? rn_loans_show(peer->loans, peer->to_task, key, data, size) : 0;
}

static void hide(rn_worker_t* worker, uint64_t number) {
  rn_loans_hide(of_worker(worker)->loans, number);
}

static bool is_taken(rn_worker_t* worker, uint64_t number) {
  return rn_loans_is_taken(of_worker(worker)->loans, number);
}

static bool take(rn_worker_t* worker, rn_shown_key_t key, void* to, size_t size) {
  rn_remote_peer_t* peer = of_worker(worker);
  rn_mutex_lock(&peer->mutex);
  bool is_there = !peer->is_stopped && peer->line && rn_line_look(peer->line, key, to, size);
  rn_mutex_unlock(&peer->mutex);
  return is_there;
}

static const rn_showing_t showing = {is_near, show, hide, is_taken, take};

static const rn_worker_vtable_t worker_table = {RN_WORKER_CALLS(RN_CALL_ENTRY).showing = &showing};
static const rn_master_vtable_t master_table = {RN_MASTER_CALLS(RN_CALL_ENTRY)};

rn_status_t rn_remote_peer_create(rn_channel_t* channel, const rn_env_t* env,
                                  const rn_remote_near_t* near, rn_allocator_t allocator,
                                  rn_remote_peer_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  **out = (rn_remote_peer_t){.worker.vtable = &worker_table,
                             .master.vtable = &master_table,
                             .channel = channel,
                             .env = env,
                             .allocator = allocator,
                             .loans = near->to_task.size ? near->loans : NULL,
                             .task = rn_reach_task(near->task),
                             .to_task = rn_reach_task(near->to_task),
                             .may_have_line = near->borrows,
                             .lines_left = MAX_LINES};
  if (near->borrows) rn_reach_machine((*out)->machine, sizeof(*out)->machine);
  rn_mutex_init(&(*out)->mutex);
  rn_cond_init(&(*out)->idle);
  rn_dial_init(&(*out)->dial, near->wire, env, near->to_task);
  return RN_OK;
}

void rn_remote_peer_stop(rn_remote_peer_t* peer) {
  if (!peer) return;
  rn_dial_stop(&peer->dial);
  rn_mutex_lock(&peer->mutex);
  peer->is_stopped = true;
  while (peer->borrowing) rn_cond_wait(&peer->idle, &peer->mutex);
  rn_mutex_unlock(&peer->mutex);
}

void rn_remote_peer_destroy(rn_remote_peer_t* peer) {
  if (!peer) return;
  rn_line_release(peer->line);
  rn_dial_clear(&peer->dial);
  rn_cond_destroy(&peer->idle);
  rn_mutex_destroy(&peer->mutex);
  RN_FREE(peer->allocator, peer);
}

rn_worker_t* rn_remote_worker(rn_remote_peer_t* peer) { return &peer->worker; }
rn_master_t* rn_remote_master(rn_remote_peer_t* peer) { return &peer->master; }

static bool link_is_busy(void* self) { return rn_channel_is_busy(self); }
static int64_t link_heard_ns(void* self) { return rn_channel_heard_ns(self); }
static void link_drop(void* self, rn_status_t status) { rn_channel_drop(self, status); }

rn_link_t rn_remote_link(rn_remote_peer_t* peer) {
  return (rn_link_t){.self = peer->channel,
                     .worker = &peer->worker,
                     .is_busy = link_is_busy,
                     .heard_ns = link_heard_ns,
                     .drop = link_drop};
}
