// Closes the sessions of dead masters: see gc.h.
#include "dist/worker/gc.h"

#include "base/container.h"

#define LOOKS 4  // per |patience_ns|

// A master that has, or had, sessions here.
typedef struct known_t {
  struct known_t* next;
  rn_worker_gc_t* gc;
  char* task;  // Owned
  uint64_t incarnation;
  int64_t heard_ns;
  rn_worker_t* worker;  // NULL: a peer
  rn_get_status_t question;
  bool is_asked, is_needed;
} known_t;

struct rn_worker_gc_t {
  rn_worker_gc_options_t options;
  rn_timer_t timer;
  rn_mutex_t mutex;  // guards what follows
  known_t* first;
  bool is_stopped;
};

static int64_t now_of(const rn_worker_gc_t* gc) {
  return gc->options.env->now_ns(gc->options.env->self);
}

static void known_free(rn_worker_gc_t* gc, known_t* known) {
  if (known->task) rn_free(gc->options.allocator, known->task, strlen(known->task) + 1);
  RN_FREE(gc->options.allocator, known);
}

static void on_answer(rn_call_t* call, rn_status_t status) {
  known_t* known = call->owner;
  rn_worker_gc_t* gc = known->gc;
  bool is_another = rn_ok(status) && known->question.device_count &&
                    known->question.devices[0].incarnation != known->incarnation;
  rn_arena_clear(&known->question.arena);
  rn_mutex_lock(&gc->mutex);
  if (rn_ok(status) && !is_another) known->heard_ns = now_of(gc);
  bool is_dead = is_another || now_of(gc) - known->heard_ns >= gc->options.patience_ns;
  if (gc->is_stopped) is_dead = false;
  rn_mutex_unlock(&gc->mutex);
  rn_status_free(status);
  if (is_dead)
    rn_local_worker_forget_master(gc->options.worker, rn_str(known->task), known->incarnation);
  rn_mutex_lock(&gc->mutex);
  known->is_asked = false;  // from now on it may be freed
  rn_mutex_unlock(&gc->mutex);
}

static rn_status_t know_locked(rn_worker_gc_t* gc, const rn_worker_master_t* master) {
  for (known_t* known = gc->first; known; known = known->next)
    if (known->incarnation == master->incarnation && rn_str_is(master->task, known->task)) {
      known->is_needed = true;
      if (master->used_ns > known->heard_ns) known->heard_ns = master->used_ns;
      return RN_OK;
    }
  known_t* known = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(gc->options.allocator, &known));
  rn_status_t status = rn_str_dup(gc->options.allocator, master->task, &known->task);
  if (!rn_ok(status)) {
    known_free(gc, known);
    return status;
  }
  known->gc = gc;
  known->incarnation = master->incarnation;
  known->worker = master->worker;
  known->heard_ns = now_of(gc);
  known->is_needed = true;
  known->next = gc->first;
  gc->first = known;
  return RN_OK;
}

// Updates the list from the worker's sessions.
static void look(rn_worker_gc_t* gc) {
  rn_arena_t arena;
  rn_worker_master_t* masters = NULL;
  size_t count = 0;
  rn_arena_init(&arena, gc->options.allocator);
  rn_status_t status = rn_local_worker_masters(gc->options.worker, &arena, &masters, &count);
  rn_mutex_lock(&gc->mutex);
  for (known_t* known = gc->first; known; known = known->next) known->is_needed = false;
  for (size_t i = 0; rn_ok(status) && i < count; ++i) status = know_locked(gc, &masters[i]);
  for (known_t** at = &gc->first; *at;) {
    known_t* known = *at;
    bool is_old = rn_ok(status) && !known->is_needed && !known->is_asked;
    if (is_old) *at = known->next;
    if (is_old)
      known_free(gc, known);
    else
      at = &known->next;
  }
  rn_mutex_unlock(&gc->mutex);
  rn_status_free(status);  // the next check tries again
  rn_arena_clear(&arena);
}

static void ask(known_t* known) {
  rn_worker_gc_t* gc = known->gc;
  rn_worker_t* master = known->worker
                            ? known->worker
                            : gc->options.peers.find(gc->options.peers.self, rn_str(known->task));
  known->question =
      (rn_get_status_t){.call = {.done = on_answer,
                                 .owner = known,
                                 .deadline_ns = now_of(gc) + gc->options.patience_ns / LOOKS}};
  rn_arena_init(&known->question.arena, gc->options.allocator);
  if (master)
    master->vtable->get_status(master, &known->question);
  else
    on_answer(&known->question.call, rn_unavailable("No connection to %s", known->task));
}

static void on_look(rn_timer_t* timer) {
  rn_worker_gc_t* gc = RN_CONTAINER_OF(timer, rn_worker_gc_t, timer);
  look(gc);
  rn_mutex_lock(&gc->mutex);
  known_t* known = gc->is_stopped ? NULL : gc->first;
  while (known) {
    bool asks = !known->is_asked && known->is_needed;
    if (asks) known->is_asked = true;
    rn_mutex_unlock(&gc->mutex);
    if (asks) ask(known);
    rn_mutex_lock(&gc->mutex);
    known = known->next;  // only checks free them
  }
  if (!gc->is_stopped)
    rn_status_free(gc->options.timers.set(gc->options.timers.self, timer,
                                          now_of(gc) + gc->options.patience_ns / LOOKS));
  rn_mutex_unlock(&gc->mutex);
}

rn_status_t rn_worker_gc_create(const rn_worker_gc_options_t* options, rn_worker_gc_t** out) {
  *out = NULL;
  rn_worker_gc_t* gc = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &gc));
  gc->options = *options;
  if (gc->options.patience_ns <= 0) gc->options.patience_ns = RN_WORKER_GC_NS;
  gc->timer.fn = on_look;
  rn_mutex_init(&gc->mutex);
  rn_status_t status = options->timers.set(options->timers.self, &gc->timer,
                                           now_of(gc) + gc->options.patience_ns / LOOKS);
  if (!rn_ok(status)) {
    rn_worker_gc_destroy(gc);
    return status;
  }
  *out = gc;
  return RN_OK;
}

void rn_worker_gc_stop(rn_worker_gc_t* gc) {
  if (!gc) return;
  rn_mutex_lock(&gc->mutex);
  gc->is_stopped = true;
  rn_mutex_unlock(&gc->mutex);
  gc->options.timers.clear(gc->options.timers.self, &gc->timer);
}

void rn_worker_gc_destroy(rn_worker_gc_t* gc) {
  if (!gc) return;
  rn_worker_gc_stop(gc);
  while (gc->first) {
    known_t* known = gc->first;
    gc->first = known->next;
    known_free(gc, known);
  }
  rn_mutex_destroy(&gc->mutex);
  RN_FREE(gc->options.allocator, gc);
}
