// Queues: the lines of waiters and how they are served. See queue.h.
#include "kernels/cpu/data_flow/queue.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/queue_store.h"
#include "kernels/cpu/device_moves.h"

typedef enum queue_verb_t { ENQUEUE, ENQUEUE_MANY, CLOSE, DEQUEUE, DEQUEUE_MANY } queue_verb_t;

// A call that could not end at once. The context's inputs live until it is done, so elements to
// enqueue are read from there when there is space.
typedef struct queue_waiter_t {
  rn_wait_call_t call;  // first
  rn_queue_t* queue;    // Retained
  queue_verb_t verb;
  int first;           // input index of the first component
  bool allows_fewer;   // DEQUEUE_MANY
  int64_t wanted;      // elements still to enqueue or dequeue
  int64_t moved;       // elements enqueued or dequeued so far
  rn_tensor_t* taken;  // Owned; |moved| tuples of DEQUEUE(_MANY)
  int64_t taken_capacity;
  rn_status_t status;
} queue_waiter_t;

static inline bool is_in_verb(queue_verb_t verb) { return verb <= CLOSE; }

static rn_status_t closed_for_enqueue(const rn_queue_t* queue) {
  return rn_cancelled("%s '%.*s' is closed.", queue->spec.op, RN_STR_ARGS(queue->name));
}

static rn_status_t closed_for_dequeue(const rn_queue_t* queue, int64_t wanted, int64_t size) {
  return rn_out_of_range(
      "%s '%.*s' is closed and has insufficient elements (requested %lld, current size %lld)",
      queue->spec.op, RN_STR_ARGS(queue->name), (long long)wanted, (long long)size);
}

static void clear_tuple(const rn_queue_t* queue, rn_tensor_t* element) {
  for (int32_t c = 0; c < queue->spec.component_count; ++c) rn_tensor_clear(&element[c]);
}

#define SMALL_TUPLE 8

// Enqueues the inputs of |ctx|: whole, or slice |index| of each.
static rn_status_t put_inputs_locked(rn_queue_t* queue, rn_kernel_ctx_t* ctx, int first,
                                     bool slices, int64_t index) {
  rn_tensor_t small[SMALL_TUPLE];
  rn_tensor_t* element = small;
  int32_t components = queue->spec.component_count;
  if (components > SMALL_TUPLE)
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(queue->allocator, (size_t)components, &element));
  rn_status_t status = RN_OK;
  int32_t made = 0;
  for (; made < components; ++made) {
    const rn_tensor_t* input = rn_in(ctx, first + made);
    status = slices ? rn_queue_slice(queue, ctx, input, index, &element[made])
                    : rn_ctx_keep(ctx, input, &element[made]);
    if (!rn_ok(status)) break;
  }
  if (rn_ok(status)) status = rn_queue_put(queue, element);
  if (!rn_ok(status))
    while (made > 0) rn_tensor_clear(&element[--made]);
  if (element != small) RN_FREE_ARRAY(queue->allocator, element, components);
  return status;
}

typedef enum outcome_t { STUCK, MOVED, ENDED } outcome_t;

static inline bool has_room(const rn_queue_t* queue) {
  return queue->spec.capacity < 0 || queue->count < queue->spec.capacity;
}

static outcome_t serve_in_locked(rn_queue_t* queue, queue_waiter_t* waiter) {
  if (waiter->verb == CLOSE) {
    if (queue->is_closed)
      waiter->status = rn_cancelled("Queue '%.*s' is already closed.", RN_STR_ARGS(queue->name));
    queue->is_closed = true;
    return ENDED;
  }
  if (queue->is_closed) {
    waiter->status = closed_for_enqueue(queue);
    return ENDED;
  }
  int64_t before = waiter->moved;
  while (waiter->wanted > 0 && has_room(queue)) {
    waiter->status = put_inputs_locked(queue, waiter->call.ctx, waiter->first,
                                       waiter->verb == ENQUEUE_MANY, waiter->moved);
    if (!rn_ok(waiter->status)) return ENDED;
    waiter->moved++;
    waiter->wanted--;
  }
  if (waiter->wanted == 0) return ENDED;
  return waiter->moved > before ? MOVED : STUCK;
}

// Number of elements that may be dequeued now.
static inline int64_t available(const rn_queue_t* queue) {
  return queue->is_closed ? queue->count : queue->count - queue->spec.min_after_dequeue;
}

// Whether |waiter| may dequeue now. A waiter on a priority queue takes all its elements at once;
// filling a batch as elements arrive would break the order of priorities.
static inline bool may_take(const rn_queue_t* queue, const queue_waiter_t* waiter) {
  bool takes_all_at_once = queue->spec.kind == RN_QUEUE_PRIORITY && waiter->moved == 0;
  return available(queue) >= (takes_all_at_once ? waiter->wanted : 1);
}

static rn_status_t take_into_waiter_locked(rn_queue_t* queue, queue_waiter_t* waiter) {
  int32_t components = queue->spec.component_count;
  if (waiter->moved == waiter->taken_capacity) {
    // Grow with the elements that arrive, since the requested number may be arbitrarily large.
    int64_t larger = waiter->taken_capacity * 2 + waiter->wanted;
    int64_t total = waiter->moved + waiter->wanted;
    if (larger > total) larger = total;
    if (larger > waiter->moved + queue->count) larger = waiter->moved + queue->count;
    rn_tensor_t* taken = NULL;
    size_t tuple = (size_t)components * sizeof *taken, bytes;
    if (!rn_mul_ok((size_t)larger, tuple, &bytes)) return rn_out_of_memory();
    RN_RETURN_IF_ERROR(rn_alloc(queue->allocator, bytes, (void**)&taken));
    if (waiter->moved) memcpy(taken, waiter->taken, (size_t)waiter->moved * tuple);
    rn_free(queue->allocator, waiter->taken, (size_t)waiter->taken_capacity * tuple);
    waiter->taken = taken;
    waiter->taken_capacity = larger;
  }
  rn_queue_take(queue, waiter->taken + waiter->moved * components);
  waiter->moved++;
  waiter->wanted--;
  return RN_OK;
}

static void put_back_locked(rn_queue_t* queue, queue_waiter_t* waiter) {
  waiter->wanted += waiter->moved;
  while (waiter->moved > 0)
    rn_queue_put_back(queue, waiter->taken + --waiter->moved * queue->spec.component_count);
}

static outcome_t serve_out_locked(rn_queue_t* queue, queue_waiter_t* waiter) {
  if (queue->is_closed && queue->count < waiter->wanted) {
    int64_t wanted = waiter->wanted, size = queue->count;
    put_back_locked(queue, waiter);
    if (waiter->allows_fewer && queue->count > 0) {
      waiter->wanted = queue->count;
    } else {
      // First tell the enqueues still waiting that the queue is closed.
      if (waiter->allows_fewer && queue->in.first) return MOVED;
      waiter->status = closed_for_dequeue(queue, wanted, size);
      return ENDED;
    }
  }
  int64_t before = waiter->moved;
  while (waiter->wanted > 0 && may_take(queue, waiter)) {
    waiter->status = take_into_waiter_locked(queue, waiter);
    if (!rn_ok(waiter->status)) {
      put_back_locked(queue, waiter);
      return ENDED;
    }
  }
  if (waiter->wanted == 0) return ENDED;
  return waiter->moved > before ? MOVED : STUCK;
}

// Serves the front of |line|; waiters that ended go to |*ended|. True if anything changed.
static bool serve_line_locked(rn_queue_t* queue, rn_wait_line_t* line,
                              rn_wait_call_t*** inout_ended) {
  bool changed = false;
  while (line->first) {
    queue_waiter_t* waiter = (queue_waiter_t*)line->first;
    outcome_t outcome =
        is_in_verb(waiter->verb) ? serve_in_locked(queue, waiter) : serve_out_locked(queue, waiter);
    changed = changed || outcome != STUCK;
    if (outcome != ENDED) break;
    **inout_ended = rn_wait_pop_locked(line);
    *inout_ended = &waiter->call.next;
  }
  return changed;
}

static rn_wait_call_t* serve_locked(rn_queue_t* queue) {
  rn_wait_call_t* ended = NULL;
  rn_wait_call_t** tail = &ended;
  bool changed = true;
  while (changed) {
    changed = serve_line_locked(queue, &queue->in, &tail);
    changed = serve_line_locked(queue, &queue->out, &tail) || changed;
  }
  return ended;
}

static void waiter_free(queue_waiter_t* waiter) {
  rn_queue_t* queue = waiter->queue;
  int32_t components = queue->spec.component_count;
  for (int64_t i = 0; i < waiter->moved && waiter->taken; ++i)
    clear_tuple(queue, waiter->taken + i * components);
  rn_free(queue->allocator, waiter->taken,
          (size_t)waiter->taken_capacity * (size_t)components * sizeof *waiter->taken);
  RN_FREE(queue->allocator, waiter);
  rn_object_release(&queue->resource.object);
}

// Sets the outputs of |waiter| and ends its call. Called with no locks held, when no cancellation
// can come any more.
static void end(rn_wait_call_t* call) {
  queue_waiter_t* waiter = (queue_waiter_t*)call;
  rn_queue_t* queue = waiter->queue;
  rn_kernel_ctx_t* ctx = call->ctx;
  rn_status_t status = waiter->status;
  if (rn_ok(status) && waiter->verb == DEQUEUE) {
    for (int32_t c = 0; c < queue->spec.component_count; ++c)
      rn_set_output(ctx, c, &waiter->taken[c]);
  } else if (rn_ok(status) && waiter->verb == DEQUEUE_MANY) {
    status = rn_queue_batch(queue, ctx, waiter->taken, waiter->moved);
  }
  waiter_free(waiter);
  rn_done(ctx, status);
}

static rn_status_t cancelled_status(const queue_waiter_t* waiter) {
  return is_in_verb(waiter->verb) ? rn_cancelled("Enqueue operation was cancelled")
                                  : rn_cancelled("Dequeue operation was cancelled");
}

static void on_cancel(rn_wait_call_t* call) {
  queue_waiter_t* waiter = (queue_waiter_t*)call;
  rn_queue_t* queue = waiter->queue;
  if (!is_in_verb(waiter->verb)) put_back_locked(queue, waiter);
  waiter->status = cancelled_status(waiter);
  rn_wait_call_t* ended = serve_locked(queue);
  rn_mutex_unlock(&queue->mutex);
  rn_wait_end_all(ended, end);
  end(call);
}

// Puts a waiter for |ctx| into its line and serves the queue.
static void wait_for(rn_queue_t* queue, rn_kernel_ctx_t* ctx, const queue_waiter_t* what) {
  queue_waiter_t* waiter = NULL;
  rn_status_t status = RN_NEW(queue->allocator, &waiter);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  *waiter = *what;
  waiter->call = (rn_wait_call_t){.on_cancel = on_cancel,
                                  .ctx = ctx,
                                  .mutex = &queue->mutex,
                                  .line = is_in_verb(what->verb) ? &queue->in : &queue->out};
  waiter->queue = queue;
  rn_object_retain(&queue->resource.object);
  if (!rn_wait_join(&waiter->call)) {
    waiter->status = cancelled_status(waiter);
    end(&waiter->call);
    return;
  }
  rn_wait_call_t* ended = serve_locked(queue);
  rn_mutex_unlock(&queue->mutex);
  rn_wait_end_all(ended, end);
}

static rn_status_t check_shape(const rn_queue_t* queue, int32_t c, rn_shape_t expected,
                               const rn_tensor_t* tensor) {
  (void)queue;
  if (rn_shape_compatible(expected, rn_tensor_shape(tensor))) return RN_OK;
  return rn_invalid_argument("Shape mismatch in tuple component %d. Expected %s, got %s", c,
                             rn_shape_text(expected).text, rn_text_of(tensor).text);
}

static rn_status_t check_element(const rn_queue_t* queue, const rn_kernel_ctx_t* ctx, int first) {
  for (int32_t c = 0; queue->spec.shapes && c < queue->spec.component_count; ++c)
    RN_RETURN_IF_ERROR(check_shape(queue, c, queue->spec.shapes[c], rn_in(ctx, first + c)));
  if (queue->spec.kind == RN_QUEUE_PRIORITY && rn_in(ctx, first)->rank != 0)
    return rn_invalid_argument(
        "Expected the priority element to be a scalar, but received shape: %s",
        rn_text_of(rn_in(ctx, first)).text);
  return RN_OK;
}

void rn_queue_enqueue(rn_queue_t* queue, rn_kernel_ctx_t* ctx, int first) {
  rn_status_t status = check_element(queue, ctx, first);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  rn_mutex_lock(&queue->mutex);
  if (!queue->is_closed && (queue->in.first || !has_room(queue))) {
    rn_mutex_unlock(&queue->mutex);
    queue_waiter_t what = {.verb = ENQUEUE, .first = first, .wanted = 1};
    wait_for(queue, ctx, &what);
    return;
  }
  rn_wait_call_t* ended = NULL;
  if (queue->is_closed) {
    status = closed_for_enqueue(queue);
  } else {
    status = put_inputs_locked(queue, ctx, first, false, 0);
    if (queue->out.first) ended = serve_locked(queue);
  }
  rn_mutex_unlock(&queue->mutex);
  rn_wait_end_all(ended, end);
  rn_done(ctx, status);
}

static rn_status_t check_batch(const rn_queue_t* queue, const rn_kernel_ctx_t* ctx, int first,
                               int64_t* out_count) {
  for (int32_t c = 0; c < queue->spec.component_count; ++c) {
    const rn_tensor_t* input = rn_in(ctx, first + c);
    if (input->rank == 0)
      return rn_invalid_argument("Component %d of a batch to be enqueued must not be a scalar", c);
    int64_t size = rn_tensor_dim(input, 0);
    if (c == 0) *out_count = size;
    if (size != *out_count)
      return rn_invalid_argument(
          "All input tensors must have the same size in the 0th dimension. Component %d has %lld, "
          "and should have %lld",
          c, (long long)size, (long long)*out_count);
    if (queue->spec.kind == RN_QUEUE_PRIORITY && !queue->spec.shapes && c == 0 && input->rank != 1)
      return rn_invalid_argument(
          "Expected the priority element to be a vector, but received shape: %s",
          rn_text_of(input).text);
    if (!queue->spec.shapes) continue;
    int64_t dims[RN_MAX_RANK + 1] = {size};
    rn_shape_t shape = queue->spec.shapes[c];
    if (shape.rank < 0) continue;
    for (int32_t d = 0; d < shape.rank; ++d) dims[d + 1] = shape.dims[d];
    RN_RETURN_IF_ERROR(check_shape(queue, c, (rn_shape_t){shape.rank + 1, dims}, input));
  }
  return RN_OK;
}

void rn_queue_enqueue_many(rn_queue_t* queue, rn_kernel_ctx_t* ctx, int first) {
  queue_waiter_t what = {.verb = ENQUEUE_MANY, .first = first};
  rn_status_t status = check_batch(queue, ctx, first, &what.wanted);
  if (!rn_ok(status) || what.wanted == 0) {
    rn_done(ctx, status);
    return;
  }
  wait_for(queue, ctx, &what);
}

void rn_queue_dequeue(rn_queue_t* queue, rn_kernel_ctx_t* ctx) {
  rn_tensor_t small[SMALL_TUPLE];
  int32_t components = queue->spec.component_count;
  rn_mutex_lock(&queue->mutex);
  if (components > SMALL_TUPLE || queue->out.first || available(queue) <= 0) {
    rn_mutex_unlock(&queue->mutex);
    queue_waiter_t what = {.verb = DEQUEUE, .wanted = 1};
    wait_for(queue, ctx, &what);
    return;
  }
  rn_queue_take(queue, small);
  rn_wait_call_t* ended = queue->in.first ? serve_locked(queue) : NULL;
  rn_mutex_unlock(&queue->mutex);
  for (int32_t c = 0; c < components; ++c) rn_set_output(ctx, c, &small[c]);
  rn_wait_end_all(ended, end);
  rn_done(ctx, RN_OK);
}

void rn_queue_dequeue_many(rn_queue_t* queue, rn_kernel_ctx_t* ctx, int64_t count,
                           bool allows_fewer) {
  if (!queue->spec.shapes) {
    rn_done(ctx, rn_invalid_argument("%s's DequeueMany and DequeueUpTo require the components to "
                                     "have specified shapes.",
                                     queue->spec.op));
    return;
  }
  if (count == 0) {
    rn_done(ctx, rn_queue_batch(queue, ctx, NULL, 0));
    return;
  }
  queue_waiter_t what = {.verb = DEQUEUE_MANY, .wanted = count, .allows_fewer = allows_fewer};
  wait_for(queue, ctx, &what);
}

void rn_queue_close(rn_queue_t* queue, rn_kernel_ctx_t* ctx, bool cancels_enqueues) {
  if (!cancels_enqueues) {
    queue_waiter_t what = {.verb = CLOSE};
    wait_for(queue, ctx, &what);
    return;
  }
  rn_mutex_lock(&queue->mutex);
  queue->is_closed = true;
  rn_wait_call_t *cancelled = NULL, **tail = &cancelled;
  while (queue->in.first) {
    queue_waiter_t* waiter = (queue_waiter_t*)queue->in.first;
    waiter->status = cancelled_status(waiter);
    *tail = rn_wait_pop_locked(&queue->in);
    tail = &waiter->call.next;
  }
  rn_wait_call_t* ended = serve_locked(queue);
  rn_mutex_unlock(&queue->mutex);
  rn_wait_end_all(cancelled, end);
  rn_wait_end_all(ended, end);
  rn_done(ctx, RN_OK);
}

int64_t rn_queue_size(rn_queue_t* queue) {
  rn_mutex_lock(&queue->mutex);
  int64_t size = queue->count;
  rn_mutex_unlock(&queue->mutex);
  return size;
}

bool rn_queue_is_closed(rn_queue_t* queue) {
  rn_mutex_lock(&queue->mutex);
  bool is_closed = queue->is_closed;
  rn_mutex_unlock(&queue->mutex);
  return is_closed;
}

static void queue_destroy(rn_object_t* object) {
  rn_queue_t* queue = (rn_queue_t*)object;
  rn_queue_store_clear(queue);
  rn_mutex_destroy(&queue->mutex);
  rn_arena_clear(&queue->arena);
  RN_FREE(queue->allocator, queue);
}

static rn_status_t copy_spec(rn_queue_t* queue, const rn_queue_spec_t* spec, rn_str_t name) {
  rn_arena_t* arena = &queue->arena;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &queue->name));
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)spec->component_count, &types));
  memcpy(types, spec->types, (size_t)spec->component_count * sizeof *types);
  rn_shape_t* shapes = NULL;
  if (spec->shapes) {
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)spec->component_count, &shapes));
    for (int32_t c = 0; c < spec->component_count; ++c)
      RN_RETURN_IF_ERROR(rn_shape_copy(arena, spec->shapes[c], &shapes[c]));
  }
  queue->spec = *spec;
  queue->spec.types = types;
  queue->spec.shapes = shapes;
  return RN_OK;
}

rn_status_t rn_queue_create(rn_allocator_t allocator, const rn_env_t* env,
                            const rn_queue_spec_t* spec, rn_str_t name, rn_queue_t** out) {
  *out = NULL;
  rn_queue_t* queue = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &queue));
  queue->resource = (rn_resource_t){{.refs = 1, .destroy = queue_destroy}, RN_QUEUE_TYPE};
  queue->allocator = allocator;
  queue->mask = -1;
  rn_mutex_init(&queue->mutex);
  rn_arena_init(&queue->arena, allocator);
  rn_status_t status = copy_spec(queue, spec, name);
  if (!rn_ok(status)) {
    rn_object_release(&queue->resource.object);
    return status;
  }
  if (spec->kind == RN_QUEUE_SHUFFLE)
    queue->random = rn_philox_single(rn_philox_seeded(env, spec->seed, spec->seed2));
  *out = queue;
  return RN_OK;
}
