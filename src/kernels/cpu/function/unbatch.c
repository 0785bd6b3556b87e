// Unbatch: the step that has a batch brings the rows of all others; each takes its own by its id,
// or waits for them until its time is over.
#include <inttypes.h>
#include <pthread.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/parking.h"
#include "kernels/cpu/function/pieces.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/state/shared.h"
#include "kernels/kernel_rows.h"

#define UNBATCH_TYPE "UnbatchResource"

// A call that has not ended.
typedef struct unbatch_wait_t {
  const rn_kernel_ctx_t* ctx;
  int64_t key, deadline_ns;
} unbatch_wait_t;

typedef struct unbatch_resource_t {
  rn_resource_t resource;
  rn_parking_t parking;  // its mutex guards the rest
  const rn_env_t* env;
  int64_t timeout_ns;
  rn_batch_pieces_t pieces;
  RN_VEC(unbatch_wait_t) waits;
  // The first call starts a thread, which ends calls whose time is over.
  rn_cond_t changed;
  pthread_t thread;
  bool has_thread, is_ending;
} unbatch_resource_t;

static void resource_destroy(rn_object_t* object) {
  unbatch_resource_t* unbatch = (unbatch_resource_t*)object;
  rn_allocator_t allocator = unbatch->parking.allocator;
  rn_mutex_lock(&unbatch->parking.mutex);
  unbatch->is_ending = true;
  rn_cond_broadcast(&unbatch->changed);
  rn_mutex_unlock(&unbatch->parking.mutex);
  if (unbatch->has_thread) pthread_join(unbatch->thread, NULL);
  rn_batch_pieces_clear(&unbatch->pieces, allocator);
  rn_vec_free(&unbatch->waits, allocator);
  rn_cond_destroy(&unbatch->changed);
  rn_parking_destroy(&unbatch->parking);
  RN_FREE(allocator, unbatch);
}

static rn_status_t resource_create(void* arg, rn_resource_t** out) {
  const rn_kernel_init_t* init = arg;
  unbatch_resource_t* unbatch = NULL;
  int64_t micros = rn_init_int(init, "timeout_micros");
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &unbatch));
  unbatch->resource = (rn_resource_t){{.refs = 1, .destroy = resource_destroy}, UNBATCH_TYPE};
  unbatch->env = init->env;
  unbatch->timeout_ns = micros > INT64_MAX / 4000 ? INT64_MAX / 4 : micros < 0 ? 0 : micros * 1000;
  rn_parking_init(&unbatch->parking, init->allocator);
  rn_cond_init(&unbatch->changed);
  *out = &unbatch->resource;
  return RN_OK;
}

// Drops tensors that were never fetched, and finds the next deadline of a call or tensor.
static int64_t next_deadline_locked(unbatch_resource_t* unbatch, int64_t now) {
  int64_t next = INT64_MAX;
  for (size_t i = unbatch->pieces.list.count; i-- > 0;) {
    rn_batch_piece_t* piece = &unbatch->pieces.list.items[i];
    if (piece->deadline_ns > now) {
      if (piece->deadline_ns < next) next = piece->deadline_ns;
      continue;
    }
    rn_tensor_clear(&piece->tensor);
    rn_batch_pieces_remove(&unbatch->pieces, (int64_t)i);
  }
  for (size_t i = 0; i < unbatch->waits.count; ++i)
    if (unbatch->waits.items[i].deadline_ns < next) next = unbatch->waits.items[i].deadline_ns;
  return next;
}

// Forgets calls that a cancellation ended: their time is over and nothing has ended them.
static void drop_late_locked(unbatch_resource_t* unbatch, int64_t now) {
  for (size_t i = unbatch->waits.count; i-- > 0;)
    if (unbatch->waits.items[i].deadline_ns <= now)
      unbatch->waits.items[i] = unbatch->waits.items[--unbatch->waits.count];
}

static void* thread_main(void* arg) {
  unbatch_resource_t* unbatch = arg;
  rn_mutex_lock(&unbatch->parking.mutex);
  while (!unbatch->is_ending) {
    int64_t now = unbatch->env->now_ns(unbatch->env->self);
    int64_t next = next_deadline_locked(unbatch, now);
    if (next == INT64_MAX) {
      rn_cond_wait(&unbatch->changed, &unbatch->parking.mutex);
    } else if (next > now) {
      rn_cond_wait_until(&unbatch->changed, &unbatch->parking.mutex, next);
    } else {
      rn_mutex_unlock(&unbatch->parking.mutex);
      rn_parking_retry(&unbatch->parking);
      rn_mutex_lock(&unbatch->parking.mutex);
      drop_late_locked(unbatch, now);
    }
  }
  rn_mutex_unlock(&unbatch->parking.mutex);
  return NULL;
}

static unbatch_wait_t* find_wait_locked(unbatch_resource_t* unbatch, const rn_kernel_ctx_t* ctx) {
  for (size_t i = 0; i < unbatch->waits.count; ++i)
    if (unbatch->waits.items[i].ctx == ctx) return &unbatch->waits.items[i];
  return NULL;
}

// Ends the call if its tensor is there or its time is over.
static bool attempt(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  unbatch_resource_t* unbatch = (unbatch_resource_t*)owner;
  unbatch_wait_t* wait = find_wait_locked(unbatch, ctx);
  int64_t i = rn_batch_pieces_find(&unbatch->pieces, *RN_DATA(rn_in(ctx, 2), int64_t));
  if (i < 0 && wait && wait->deadline_ns > unbatch->env->now_ns(unbatch->env->self)) return false;
  if (i >= 0) {
    rn_set_output(ctx, 0, &unbatch->pieces.list.items[i].tensor);
    rn_batch_pieces_remove(&unbatch->pieces, i);
  } else {
    *out_status = rn_deadline_exceeded("Batched data did not arrive within timeout window.");
  }
  if (wait) *wait = unbatch->waits.items[--unbatch->waits.count];
  return true;
}

static rn_status_t check(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *data = rn_in(ctx, 0), *table = rn_in(ctx, 1), *id = rn_in(ctx, 2);
  if (data->rank < 1 || table->rank != 2)
    return rn_invalid_argument(
        "Expected a tensor of at least 1 dimension and an index tensor of 2 dimensions; Got: %s "
        "and %s.",
        rn_text_of(data).text, rn_text_of(table).text);
  if (rn_tensor_dim(table, 0) > rn_tensor_dim(data, 0))
    return rn_invalid_argument(
        "Wrong shape for index tensor. Expected 0th dimension size to be no greater than %" PRId64
        "; Got: %" PRId64 ".",
        rn_tensor_dim(data, 0), rn_tensor_dim(table, 0));
  if (rn_tensor_dim(table, 1) != 3)
    return rn_invalid_argument(
        "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: %" PRId64 ".",
        rn_tensor_dim(table, 1));
  if (id->rank != 0)
    return rn_invalid_argument("Input id should be scalar; Got: %s.", rn_text_of(id).text);
  return RN_OK;
}

// Adds the rows of line |line| of the table, which begin at |at|.
static rn_status_t add_piece_locked(unbatch_resource_t* unbatch, rn_kernel_ctx_t* ctx,
                                    const int64_t* line, int64_t deadline, int64_t* at) {
  const rn_tensor_t* data = rn_in(ctx, 0);
  int64_t rows, end;
  rn_batch_piece_t piece = {.key = line[0], .deadline_ns = deadline};
  if (__builtin_sub_overflow(line[2], line[1], &rows) || rows < 0 ||
      __builtin_add_overflow(*at, rows, &end) || end > rn_tensor_dim(data, 0))
    return rn_invalid_argument("Rows %" PRId64 " to %" PRId64
                               " of the index tensor are not in a batch of %" PRId64 " rows",
                               line[1], line[2], rn_tensor_dim(data, 0));
  if (rn_batch_pieces_find(&unbatch->pieces, piece.key) >= 0)
    return rn_already_exists("Multiple tensors returned for same batch key.");
  RN_RETURN_IF_ERROR(rn_ctx_rows(ctx, data, *at, rows, false, &piece.tensor));
  rn_status_t status = rn_vec_push(&unbatch->pieces.list, unbatch->parking.allocator, piece);
  if (!rn_ok(status)) rn_tensor_clear(&piece.tensor);
  *at = end;
  return status;
}

static rn_status_t add_pieces_locked(unbatch_resource_t* unbatch, rn_kernel_ctx_t* ctx,
                                     int64_t deadline) {
  const rn_tensor_t* table = rn_in(ctx, 1);
  size_t before = unbatch->pieces.list.count;
  int64_t at = 0;
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < rn_tensor_dim(table, 0); ++i)
    status = add_piece_locked(unbatch, ctx, RN_DATA(table, int64_t) + 3 * i, deadline, &at);
  if (!rn_ok(status))
    while (unbatch->pieces.list.count > before)
      rn_tensor_clear(&unbatch->pieces.list.items[--unbatch->pieces.list.count].tensor);
  return status;
}

// Brings the rows of the call, if it has a batch, and notes that it waits.
static rn_status_t begin(rn_resource_t* owner, rn_kernel_ctx_t* ctx) {
  unbatch_resource_t* unbatch = (unbatch_resource_t*)owner;
  int64_t key = *RN_DATA(rn_in(ctx, 2), int64_t);
  int64_t deadline = unbatch->env->now_ns(unbatch->env->self) + unbatch->timeout_ns;
  unbatch_wait_t* old = find_wait_locked(unbatch, ctx);
  if (old) *old = unbatch->waits.items[--unbatch->waits.count];  // of a call that was cancelled
  for (size_t i = 0; i < unbatch->waits.count; ++i)
    if (unbatch->waits.items[i].key == key)
      return rn_already_exists("Multiple session runs with the same batch key.");
  if (!unbatch->has_thread) {
    if (pthread_create(&unbatch->thread, NULL, thread_main, unbatch) != 0)
      return rn_resource_exhausted("Could not start a thread for unbatching");
    unbatch->has_thread = true;
  }
  RN_RETURN_IF_ERROR(
      rn_vec_reserve(&unbatch->waits, unbatch->parking.allocator, unbatch->waits.count + 1));
  RN_RETURN_IF_ERROR(add_pieces_locked(unbatch, ctx, deadline));
  unbatch->waits.items[unbatch->waits.count++] =
      (unbatch_wait_t){.ctx = ctx, .key = key, .deadline_ns = deadline};
  rn_cond_broadcast(&unbatch->changed);
  return RN_OK;
}

typedef struct unbatch_t {
  unbatch_resource_t* resource;  // Retained
} unbatch_t;

static void unbatch_compute(rn_kernel_ctx_t* ctx) {
  unbatch_resource_t* unbatch = ((unbatch_t*)ctx->state)->resource;
  rn_status_t status = check(ctx);
  if (rn_ok(status))
    rn_parking_call_begin(&unbatch->parking, &unbatch->resource, ctx, begin, attempt,
                          "Unbatching was cancelled");
  else
    rn_done(ctx, status);
}

static rn_status_t unbatch_init(const rn_kernel_init_t* init, void* state_) {
  unbatch_t* state = state_;
  rn_resource_t* found = NULL;
  RN_RETURN_IF_ERROR(rn_shared_get(init, UNBATCH_TYPE, resource_create, &found));
  state->resource = (unbatch_resource_t*)found;
  return RN_OK;
}

static void unbatch_destroy(void* state_) {
  unbatch_t* state = state_;
  if (state->resource) rn_object_release(&state->resource->resource.object);
}

static const rn_kernel_def_t rows[] = {
    {.op = "Unbatch",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_KEEPS_INPUTS,
     .state_size = sizeof(unbatch_t),
     .init = unbatch_init,
     .destroy = unbatch_destroy,
     .compute_async = unbatch_compute},
};
RN_KERNEL_FAMILY(cpu_unbatch, rows);
