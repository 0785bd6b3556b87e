// Repeats calls after a broken connection: see repeat.h.
//
// doc/invariants.md: invariant 47.
#include "dist/repeat.h"

// The most attempts per call. A long call is repeated with each connection that breaks meanwhile;
// but it may also be the one that breaks them.
#define REPEATS 64
// A new connection can break before the GetStatus was sent on it; then it is retried so often, and
// for so long.
#define ASKS 16
#define ASK_NS INT64_C(1000000000)

struct rn_repeat_t {
  rn_worker_t face;  // first
  rn_worker_t* peer;
  const rn_env_t* env;
  rn_allocator_t allocator;
};

// A running call.
typedef struct repeated_t {
  rn_repeat_t* repeat;
  rn_call_t* call;
  void (*make)(rn_worker_t* peer, rn_call_t* call);
  void (*done)(rn_call_t* call, rn_status_t status);  // the caller's, like |owner|
  void* owner;
  int repeats, asks;
  int64_t ask_until_ns;
  rn_status_t broken;  // Owned: how the last attempt ended
  rn_get_status_t question;
} repeated_t;

rn_worker_t* rn_repeat_worker(rn_repeat_t* repeat) { return &repeat->face; }

static void finish(repeated_t* repeated, rn_status_t status) {
  rn_call_t* call = repeated->call;
  call->done = repeated->done;
  call->owner = repeated->owner;
  rn_status_free(repeated->broken);
  RN_FREE(repeated->repeat->allocator, repeated);
  rn_call_done(call, status);
}

static void ask(repeated_t* repeated);

static bool is_given_up(const repeated_t* repeated, int64_t deadline_ns) {
  const rn_env_t* env = repeated->repeat->env;
  const rn_call_t* call = repeated->call;
  return (call->cancel && rn_is_cancelled(call->cancel)) || env->now_ns(env->self) >= deadline_ns;
}

// The probe has ended: whether the task is alive, and one of ours.
static void on_asked(rn_call_t* call, rn_status_t status) {
  repeated_t* repeated = call->owner;
  rn_worker_t* peer = repeated->repeat->peer;
  bool again = rn_ok(status) && repeated->question.is_ours;
  bool is_lost = rn_status_code(status) == RN_CODE_UNAVAILABLE && repeated->asks++ < ASKS &&
                 !is_given_up(repeated, repeated->ask_until_ns);
  rn_arena_clear(&repeated->question.arena);
  rn_status_free(status);
  if (is_lost) {
    ask(repeated);
    return;
  }
  status = repeated->broken;
  repeated->broken = RN_OK;
  if (!again) {
    finish(repeated, status);
    return;
  }
  rn_status_free(status);
  repeated->repeats++;
  repeated->call->is_broken = false;
  repeated->make(peer, repeated->call);
}

static void ask(repeated_t* repeated) {
  rn_worker_t* peer = repeated->repeat->peer;
  repeated->question = (rn_get_status_t){.call = {.done = on_asked,
                                                  .owner = repeated,
                                                  .deadline_ns = repeated->call->deadline_ns,
                                                  .cancel = repeated->call->cancel}};
  rn_arena_init(&repeated->question.arena, repeated->repeat->allocator);
  peer->vtable->get_status(peer, &repeated->question);
}

static void on_answer(rn_call_t* call, rn_status_t status) {
  repeated_t* repeated = call->owner;
  if (rn_ok(status) || !call->is_broken || repeated->repeats >= REPEATS ||
      is_given_up(repeated, call->deadline_ns)) {
    finish(repeated, status);
    return;
  }
  const rn_env_t* env = repeated->repeat->env;
  repeated->broken = status;
  repeated->asks = 0;
  repeated->ask_until_ns = env->now_ns(env->self) + ASK_NS;
  ask(repeated);
}

// Makes |call|, which has a number if it may be repeated.
static void begin(rn_worker_t* face, rn_call_t* call, int64_t number,
                  void (*make)(rn_worker_t* peer, rn_call_t* call)) {
  rn_repeat_t* repeat = (rn_repeat_t*)face;
  repeated_t* repeated = NULL;
  rn_status_t status = number ? RN_NEW(repeat->allocator, &repeated) : RN_OK;
  rn_status_free(status);  // without memory it is not repeated
  if (repeated) {
    *repeated = (repeated_t){
        .repeat = repeat, .call = call, .make = make, .done = call->done, .owner = call->owner};
    call->done = on_answer;
    call->owner = repeated;
  }
  make(repeat->peer, call);
}

#define NUMBER_ONCE(name, call) 0
#define NUMBER_IDEMPOTENT(name, call) 1
#define NUMBER_NUMBERED(name, call) rn_##name##_number(call)
#define REPEATED(side, name, Method, speed, answer, again)             \
  static void make_##name(rn_worker_t* peer, rn_call_t* call) {        \
    peer->vtable->name(peer, (rn_##name##_t*)call);                    \
  }                                                                    \
  static void name(rn_worker_t* face, rn_##name##_t* call) {           \
    begin(face, &call->call, NUMBER_##again(name, call), make_##name); \
  }
RN_WORKER_CALLS(REPEATED)

// What is shown needs no repetition.

static rn_worker_t* peer_of(rn_worker_t* face) { return ((rn_repeat_t*)face)->peer; }
static const rn_showing_t* showing_of(rn_worker_t* face) { return peer_of(face)->vtable->showing; }

static bool is_near(rn_worker_t* face) {
  return showing_of(face) && showing_of(face)->is_near(peer_of(face));
}
static uint64_t show(rn_worker_t* face, rn_shown_key_t key, const void* data, size_t size) {
  return showing_of(face) ? showing_of(face)->show(peer_of(face), key, data, size) : 0;
}
static void hide(rn_worker_t* face, uint64_t number) {
  if (showing_of(face)) showing_of(face)->hide(peer_of(face), number);
}
static bool is_taken(rn_worker_t* face, uint64_t number) {
  return !showing_of(face) || showing_of(face)->is_taken(peer_of(face), number);
}
static bool take(rn_worker_t* face, rn_shown_key_t key, void* to, size_t size) {
  return showing_of(face) && showing_of(face)->take(peer_of(face), key, to, size);
}
static const rn_showing_t showing = {is_near, show, hide, is_taken, take};

static const rn_worker_vtable_t vtable = {RN_WORKER_CALLS(RN_CALL_ENTRY).showing = &showing};

rn_status_t rn_repeat_create(rn_worker_t* peer, const rn_env_t* env, rn_allocator_t allocator,
                             rn_repeat_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  **out = (rn_repeat_t){.face.vtable = &vtable, .peer = peer, .env = env, .allocator = allocator};
  return RN_OK;
}

void rn_repeat_destroy(rn_repeat_t* repeat) {
  if (repeat) RN_FREE(repeat->allocator, repeat);
}
