// See batcher.h.
#include "kernels/cpu/function/batcher.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/state/shared.h"

// A call that waits, with one task or the tasks of its parts.
typedef struct rn_batched_call_t {
  rn_kernel_ctx_t* ctx;
  rn_call_batcher_t* batcher;
  rn_allocator_t allocator;
  rn_cancel_entry_t cancel;
  struct rn_batched_call_t* next;  // in a list of calls that end
  // Guarded by the batcher's mutex.
  rn_status_t status;     // Owned; the first error of a part
  int64_t waiting, left;  // tasks whose batches do not run yet, have not ended
  int64_t count;
  rn_call_batch_task_t tasks[];
} rn_batched_call_t;

struct rn_call_batcher_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_arena_t arena;  // holds the sizes
  rn_call_batch_options_t options;
  rn_call_batch_run_fn_t run;
  rn_mutex_t mutex;
  rn_cond_t changed;
  pthread_t thread;
  bool has_thread, is_ending;
  rn_call_batch_t* first;  // batches that wait, oldest first; only the last may be open
  int64_t waiting;         // number of those
  int64_t running;
};

static void batcher_destroy(rn_object_t* object) {
  rn_call_batcher_t* batcher = (rn_call_batcher_t*)object;
  rn_mutex_lock(&batcher->mutex);
  batcher->is_ending = true;
  rn_cond_broadcast(&batcher->changed);
  rn_mutex_unlock(&batcher->mutex);
  if (batcher->has_thread) pthread_join(batcher->thread, NULL);
  rn_cond_destroy(&batcher->changed);
  rn_mutex_destroy(&batcher->mutex);
  rn_arena_clear(&batcher->arena);
  RN_FREE(batcher->allocator, batcher);
}

rn_status_t rn_call_batcher_create(rn_allocator_t allocator, const rn_env_t* env,
                                   const rn_call_batch_options_t* options,
                                   rn_call_batch_run_fn_t run, rn_resource_t** out) {
  rn_call_batcher_t* batcher = NULL;
  int64_t* sizes = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &batcher));
  batcher->resource = (rn_resource_t){.object = {.refs = 1, .destroy = batcher_destroy},
                                      .type = RN_CALL_BATCHER_TYPE};
  batcher->allocator = allocator;
  batcher->env = env;
  batcher->options = *options;
  batcher->run = run;
  rn_mutex_init(&batcher->mutex);
  rn_cond_init(&batcher->changed);
  rn_arena_init(&batcher->arena, allocator);
  rn_status_t status = RN_ARENA_ARRAY(&batcher->arena, (size_t)options->size_count, &sizes);
  if (!rn_ok(status)) {
    rn_object_release(&batcher->resource.object);
    return status;
  }
  if (options->size_count)
    memcpy(sizes, options->sizes, (size_t)options->size_count * sizeof *sizes);
  batcher->options.sizes = sizes;
  *out = &batcher->resource;
  return RN_OK;
}

// Sizes ascend, and the last one is the most that a batch has. A batcher that splits may have calls
// that are longer.
static rn_status_t read_sizes(const rn_kernel_init_t* init, rn_arena_t* arena, bool is_function,
                              rn_call_batch_options_t* out) {
  const rn_attr_value_t* sizes = rn_init_attr(init, "allowed_batch_sizes");
  int64_t* copy = NULL;
  out->size_count = sizes->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)sizes->count, &copy));
  for (int32_t i = 0; i < sizes->count; ++i) {
    copy[i] = sizes->list_i[i];
    if (i > 0 && copy[i] <= copy[i - 1])
      return rn_invalid_argument("allowed_batch_sizes entries must be monotonically increasing");
  }
  out->sizes = copy;
  if (!sizes->count) return RN_OK;
  int64_t last = copy[sizes->count - 1];
  if (!out->splits && last != out->most_rows)
    return rn_invalid_argument("final entry in allowed_batch_sizes must equal max_batch_size%s",
                               is_function ? " when enable_large_batch_splitting is False" : "");
  if (last < 1)
    return rn_invalid_argument("allowed_batch_sizes must be positive; the last is %" PRId64, last);
  if (last < out->most_rows) out->most_rows = last;
  return RN_OK;
}

static rn_status_t read_options(const rn_kernel_init_t* init, rn_arena_t* arena,
                                rn_call_batch_options_t* out) {
  bool is_function = strcmp(init->op->name, "BatchFunction") == 0;
  *out = (rn_call_batch_options_t){
      .threads = rn_init_int(init, "num_batch_threads"),
      .most_rows = rn_init_int(init, "max_batch_size"),
      .splits = is_function && rn_init_bool(init, "enable_large_batch_splitting"),
      .most_batches = rn_init_int(init, "max_enqueued_batches")};
  int64_t micros = rn_init_int(init, "batch_timeout_micros");
  if (out->threads < 1)
    return rn_invalid_argument("num_batch_threads must be positive; was %" PRId64, out->threads);
  if (out->most_rows < 1)
    return rn_invalid_argument("max_batch_size must be positive; was %" PRId64, out->most_rows);
  if (micros < 0)
    return rn_invalid_argument("batch_timeout_micros must be non-negative; was %" PRId64, micros);
  if (out->most_batches < 1)
    return rn_invalid_argument("max_enqueued_batches must be non-negative; was %" PRId64,
                               out->most_batches);
  out->timeout_ns = micros > INT64_MAX / 4000 ? INT64_MAX / 4 : micros * 1000;
  out->most_call_rows = out->most_rows;
  return read_sizes(init, arena, is_function, out);
}

// For rn_resources_get.
typedef struct batcher_make_t {
  const rn_kernel_init_t* init;
  rn_call_batch_options_t options;
  rn_call_batch_run_fn_t run;
} batcher_make_t;

static rn_status_t make_batcher(void* arg, rn_resource_t** out) {
  const batcher_make_t* make = arg;
  return rn_call_batcher_create(make->init->allocator, make->init->env, &make->options, make->run,
                                out);
}

rn_status_t rn_call_batcher_find(const rn_kernel_init_t* init, rn_arena_t* arena,
                                 rn_call_batch_run_fn_t run, rn_call_batcher_t** out) {
  batcher_make_t make = {.init = init, .run = run};
  rn_str_t container = rn_init_string(init, "container");
  rn_str_t queue = rn_init_string(init, "batching_queue");
  rn_str_t name;
  rn_resource_t* found = NULL;
  RN_RETURN_IF_ERROR(read_options(init, arena, &make.options));
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &name, "%.*s/%.*s", RN_STR_ARGS(rn_shared_name(init)),
                                     RN_STR_ARGS(queue)));
  RN_RETURN_IF_ERROR(rn_resources_get(init->resources, container, name, RN_CALL_BATCHER_TYPE,
                                      make_batcher, &make, &found));
  *out = (rn_call_batcher_t*)found;
  return RN_OK;
}

// Takes the oldest batch if it may run now; otherwise |*out_wake_ns| is when to look again.
static rn_call_batch_t* take_locked(rn_call_batcher_t* batcher, int64_t now, int64_t* out_wake_ns) {
  rn_call_batch_t* batch = batcher->first;
  *out_wake_ns = INT64_MAX;
  if (!batch || batcher->running >= batcher->options.threads) return NULL;
  if (!batch->is_closed && batch->deadline_ns > now && !batcher->is_ending) {
    *out_wake_ns = batch->deadline_ns;
    return NULL;
  }
  batcher->first = batch->next;
  --batcher->waiting;
  ++batcher->running;
  for (rn_call_batch_task_t* task = batch->tasks; task; task = task->next) {
    task->is_taken = true;
    task->is_last = --task->call->waiting == 0;
  }
  return batch;
}

// From here on calls that are in running batches only cannot be cancelled one by one. |waiting| of
// such a call does not change any more.
static void start(rn_call_batch_t* batch) {
  for (rn_call_batch_task_t* task = batch->tasks; task; task = task->next)
    if (task->is_last) rn_cancel_remove(task->ctx->step->cancel, &task->call->cancel);
  if (batch->count == 0)
    rn_call_batch_end(batch, RN_OK);
  else
    batch->batcher->run(batch);
}

static void* batcher_main(void* arg) {
  rn_call_batcher_t* batcher = arg;
  rn_mutex_lock(&batcher->mutex);
  while (!batcher->is_ending || batcher->first) {
    int64_t wake;
    rn_call_batch_t* batch = take_locked(batcher, batcher->env->now_ns(batcher->env->self), &wake);
    if (batch) {
      rn_mutex_unlock(&batcher->mutex);
      start(batch);
      rn_mutex_lock(&batcher->mutex);
    } else if (wake == INT64_MAX) {
      rn_cond_wait(&batcher->changed, &batcher->mutex);
    } else {
      rn_cond_wait_until(&batcher->changed, &batcher->mutex, wake);
    }
  }
  rn_mutex_unlock(&batcher->mutex);
  return NULL;
}

static void free_call(rn_batched_call_t* call) {
  for (int64_t t = 0; t < call->count; ++t) {
    rn_call_batch_task_t* task = &call->tasks[t];
    int32_t results = call->ctx->kernel->output_count;
    for (int32_t i = 0; task->results && i < results; ++i) rn_tensor_clear(&task->results[i]);
    RN_FREE_ARRAY(call->allocator, task->results, results);
  }
  rn_free(call->allocator, call, sizeof *call + (size_t)call->count * sizeof *call->tasks);
}

// Result |i| of a call, of the results of its parts.
static rn_status_t join_parts(const rn_batched_call_t* call, int32_t i) {
  const rn_tensor_t* first = &call->tasks[0].results[i];
  int64_t dims[RN_MAX_RANK];
  rn_tensor_t joined = {0};
  memcpy(dims, rn_tensor_dims(first), first->rank * sizeof *dims);
  for (int64_t t = 1; t < call->count; ++t) {
    const rn_tensor_t* part = &call->tasks[t].results[i];
    if (!rn_rows_fit(first, part))
      return rn_invalid_argument("Batching results of different shapes: %s and %s",
                                 rn_text_of(first).text, rn_text_of(part).text);
    dims[0] += rn_tensor_dim(part, 0);
  }
  RN_RETURN_IF_ERROR(rn_tensor_create(call->ctx->kernel->host_memory, first->dtype,
                                      (rn_shape_t){first->rank, dims}, &joined));
  char* to = joined.data;
  rn_status_t status = RN_OK;
  for (int64_t t = 0; rn_ok(status) && t < call->count; ++t) {
    const rn_tensor_t* part = &call->tasks[t].results[i];
    status = rn_move_row(part->dtype, part->data, to, part->count);
    to += rn_tensor_bytes(part);
  }
  if (rn_ok(status))
    rn_set_output(call->ctx, i, &joined);
  else
    rn_tensor_clear(&joined);
  return status;
}

static void end_call(rn_batched_call_t* call) {
  rn_kernel_ctx_t* ctx = call->ctx;
  rn_status_t status = call->status;
  for (int32_t i = 0; rn_ok(status) && call->count > 1 && i < ctx->kernel->output_count; ++i)
    status = join_parts(call, i);
  free_call(call);
  rn_done(ctx, status);
}

// Counts one task of |call| as ended, with a copy of |status|; true if it was the last.
static bool end_task_locked(rn_batched_call_t* call, rn_status_t status) {
  if (rn_ok(call->status) && !rn_ok(status)) call->status = rn_status_copy(status);
  return --call->left == 0;
}

void rn_call_batch_set_result(rn_call_batch_task_t* task, int i, rn_tensor_t* result) {
  if (task->results)
    task->results[i] = *result;
  else
    rn_set_output(task->ctx, i, result);
}

void rn_call_batch_end(rn_call_batch_t* batch, rn_status_t status) {
  rn_call_batcher_t* batcher = batch->batcher;
  rn_batched_call_t *ended = NULL, **last = &ended;
  rn_mutex_lock(&batcher->mutex);
  --batcher->running;
  for (rn_call_batch_task_t *task = batch->tasks, *next; task; task = next) {
    next = task->next;
    if (!end_task_locked(task->call, status)) continue;
    *last = task->call;
    last = &task->call->next;
  }
  RN_FREE(batcher->allocator, batch);
  rn_cond_broadcast(&batcher->changed);
  rn_mutex_unlock(&batcher->mutex);
  rn_status_free(status);
  // A call that ends may end its session, and that the batcher: nothing here is touched afterwards.
  while (ended) {
    rn_batched_call_t* call = ended;
    ended = call->next;
    end_call(call);
  }
}

// Removes a task that waits from its batch.
static void remove_locked(rn_call_batcher_t* batcher, const rn_call_batch_task_t* task) {
  for (rn_call_batch_t* batch = batcher->first; batch; batch = batch->next)
    for (rn_call_batch_task_t** at = &batch->tasks; *at; at = &(*at)->next) {
      if (*at != task) continue;
      *at = task->next;
      --batch->count;
      batch->rows -= task->rows;
      return;
    }
}

// Takes the waiting tasks of |call| out of their batches; true if no others are left.
static bool withdraw_locked(rn_batched_call_t* call, rn_status_t status) {
  bool is_over = false;
  for (int64_t t = 0; t < call->count && call->waiting; ++t) {
    if (call->tasks[t].is_taken) continue;
    remove_locked(call->batcher, &call->tasks[t]);
    call->tasks[t].is_taken = true;
    --call->waiting;
    is_over = end_task_locked(call, status);
  }
  return is_over;
}

static void on_cancelled(rn_cancel_entry_t* entry) {
  rn_batched_call_t* call =
      (rn_batched_call_t*)((char*)entry - offsetof(rn_batched_call_t, cancel));
  rn_call_batcher_t* batcher = call->batcher;
  rn_status_t status = rn_cancelled("Batching was cancelled");
  rn_mutex_lock(&batcher->mutex);
  bool is_over = withdraw_locked(call, status);
  rn_mutex_unlock(&batcher->mutex);
  rn_status_free(status);
  if (is_over) end_call(call);
}

// The batch that takes |rows| more: the last one, or a new one.
static rn_status_t open_locked(rn_call_batcher_t* batcher, int64_t rows, rn_call_batch_t** out) {
  rn_call_batch_t **at = &batcher->first, *last = NULL;
  for (; *at; at = &(*at)->next) last = *at;
  if (last && !last->is_closed && last->rows + rows <= batcher->options.most_rows) {
    *out = last;
    return RN_OK;
  }
  if (last) last->is_closed = true;
  if (batcher->waiting >= batcher->options.most_batches)
    return rn_unavailable(
        "The batch scheduling queue to which this task was submitted is full; task size is %" PRId64
        ", %" PRId64 " batches are enqueued",
        rows, batcher->waiting);
  RN_RETURN_IF_ERROR(RN_NEW(batcher->allocator, out));
  (*out)->batcher = batcher;
  (*out)->deadline_ns = batcher->env->now_ns(batcher->env->self) + batcher->options.timeout_ns;
  *at = *out;
  ++batcher->waiting;
  return RN_OK;
}

// The rows that the last batch can still take, if it is open.
static int64_t room_locked(const rn_call_batcher_t* batcher) {
  const rn_call_batch_t* last = batcher->first;
  while (last && last->next) last = last->next;
  return last && !last->is_closed ? batcher->options.most_rows - last->rows : 0;
}

static rn_status_t add_task_locked(rn_call_batcher_t* batcher, rn_call_batch_task_t* task) {
  rn_call_batch_t* batch = NULL;
  RN_RETURN_IF_ERROR(open_locked(batcher, task->rows, &batch));
  rn_call_batch_task_t** at = &batch->tasks;
  while (*at) at = &(*at)->next;
  *at = task;
  batch->rows += task->rows;
  ++batch->count;
  batch->is_closed = batch->rows >= batcher->options.most_rows;
  return RN_OK;
}

// The number of parts of a call of |rows| rows if the open batch has |room| for some of them.
static int64_t count_parts(const rn_call_batcher_t* batcher, int64_t rows, int64_t room) {
  int64_t most = batcher->options.most_rows;
  if (!batcher->options.splits || rows <= room) return 1;
  return (room > 0) + (rows - room + most - 1) / most;
}

static rn_status_t make_call_locked(rn_call_batcher_t* batcher, rn_kernel_ctx_t* ctx, int64_t rows,
                                    rn_batched_call_t** out) {
  int64_t room = batcher->options.splits ? room_locked(batcher) : 0,
          most = batcher->options.most_rows;
  int64_t count = count_parts(batcher, rows, room), first = 0;
  int64_t added = count - (room > 0);
  size_t bytes;
  rn_batched_call_t* call = NULL;
  if (batcher->waiting + added > batcher->options.most_batches && count > 1)
    return rn_unavailable(
        "The batch scheduling queue to which this task was submitted is full; task size is %" PRId64
        " but scheduling capacity is only %" PRId64,
        rows, room + (batcher->options.most_batches - batcher->waiting) * most);
  if (!rn_mul_ok((size_t)count, sizeof *call->tasks, &bytes) ||
      !rn_add_ok(bytes, sizeof *call, &bytes))
    return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(batcher->allocator, bytes, (void**)&call));
  *call = (rn_batched_call_t){.ctx = ctx,
                              .batcher = batcher,
                              .allocator = batcher->allocator,
                              .cancel = {.fn = on_cancelled},
                              .waiting = count,
                              .left = count,
                              .count = count};
  rn_status_t status = RN_OK;
  for (int64_t t = 0; t < count; ++t) {
    int64_t part = t == 0 && room > 0 ? room : most;
    if (count == 1 || part > rows - first) part = rows - first;
    call->tasks[t] = (rn_call_batch_task_t){.ctx = ctx, .first = first, .rows = part, .call = call};
    first += part;
    if (rn_ok(status) && count > 1)
      status = RN_NEW_ARRAY(batcher->allocator, (size_t)ctx->kernel->output_count,
                            &call->tasks[t].results);
  }
  if (!rn_ok(status)) free_call(call);
  *out = rn_ok(status) ? call : NULL;
  return status;
}

static rn_status_t add_locked(rn_call_batcher_t* batcher, rn_kernel_ctx_t* ctx, int64_t rows) {
  rn_batched_call_t* call = NULL;
  if (!batcher->has_thread) {
    if (pthread_create(&batcher->thread, NULL, batcher_main, batcher) != 0)
      return rn_resource_exhausted("Could not start a thread for batches");
    batcher->has_thread = true;
  }
  RN_RETURN_IF_ERROR(make_call_locked(batcher, ctx, rows, &call));
  // Under the lock, so that no batch begins before the entry is there.
  if (!rn_cancel_add(ctx->step->cancel, &call->cancel)) {
    free_call(call);
    return rn_cancelled("Batching was cancelled");
  }
  rn_status_t status = RN_OK;
  for (int64_t t = 0; rn_ok(status) && t < call->count; ++t)
    status = add_task_locked(batcher, &call->tasks[t]);
  rn_cond_broadcast(&batcher->changed);
  if (rn_ok(status)) return RN_OK;
  // The tasks that found a batch leave it; none has begun.
  for (int64_t t = 0; t < call->count; ++t) remove_locked(batcher, &call->tasks[t]);
  call->waiting = 0;
  rn_mutex_unlock(&batcher->mutex);
  rn_cancel_remove(ctx->step->cancel, &call->cancel);
  rn_mutex_lock(&batcher->mutex);
  free_call(call);
  return status;
}

// All results of a call without rows have none either.
static rn_status_t set_empty(rn_kernel_ctx_t* ctx) {
  const int64_t none = 0;
  for (int32_t i = 0; i < ctx->kernel->output_count; ++i) {
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &none}, &out));
  }
  return RN_OK;
}

void rn_call_batcher_add(rn_call_batcher_t* batcher, rn_kernel_ctx_t* ctx, int64_t rows) {
  rn_status_t status = RN_OK;
  if (rows > batcher->options.most_call_rows)
    status = rn_invalid_argument("Task size %" PRId64
                                 " is larger than maximum input batch size %" PRId64,
                                 rows, batcher->options.most_call_rows);
  if (rn_ok(status) && rows == 0) {
    rn_done(ctx, set_empty(ctx));
    return;
  }
  if (rn_ok(status)) {
    rn_mutex_lock(&batcher->mutex);
    status = add_locked(batcher, ctx, rows);
    rn_mutex_unlock(&batcher->mutex);
  }
  if (!rn_ok(status)) rn_done(ctx, status);
}

int64_t rn_call_batch_padded_rows(const rn_call_batch_t* batch) {
  const rn_call_batch_options_t* options = &batch->batcher->options;
  for (int32_t i = 0; i < options->size_count; ++i)
    if (options->sizes[i] >= batch->rows) return options->sizes[i];
  return batch->rows;
}

rn_status_t rn_call_batch_count_rows(const rn_kernel_ctx_t* ctx, int count, int64_t* out) {
  for (int i = 0; i < count; ++i) {
    const rn_tensor_t* in = rn_in(ctx, i);
    if (in->rank == 0)
      return rn_invalid_argument("Batching input tensors must have at least one dimension");
    if (i && rn_tensor_dim(in, 0) != *out)
      return rn_invalid_argument(
          "Batching input tensors supplied in a given op invocation must have equal 0th-dimension "
          "size");
    *out = rn_tensor_dim(in, 0);
  }
  return RN_OK;
}

static rn_status_t fill(const rn_call_batch_t* batch, int i, rn_tensor_t* out) {
  char *to = out->data, *end = to + rn_tensor_bytes(out);
  for (const rn_call_batch_task_t* task = batch->tasks; task; task = task->next) {
    const rn_tensor_t* in = rn_in(task->ctx, i);
    int64_t width = in->count / rn_tensor_dim(in, 0);  // no call has 0 rows
    size_t bytes = (size_t)width * rn_dtype_size(in->dtype);
    const char* from = (const char*)in->data + (size_t)task->first * bytes;
    RN_RETURN_IF_ERROR(rn_move_row(in->dtype, from, to, task->rows * width));
    to += (size_t)task->rows * bytes;
  }
  int64_t rows = rn_tensor_dim(out, 0), width = rows ? out->count / rows : 0;
  size_t bytes = (size_t)width * rn_dtype_size(out->dtype);
  for (; to < end; to += bytes) RN_RETURN_IF_ERROR(rn_move_row(out->dtype, out->data, to, width));
  return RN_OK;
}

rn_status_t rn_call_batch_concat(const rn_call_batch_t* batch, int i, rn_tensor_t* out) {
  const rn_kernel_ctx_t* ctx = batch->tasks->ctx;
  const rn_tensor_t* first = rn_in(ctx, i);
  int64_t dims[RN_MAX_RANK];
  for (const rn_call_batch_task_t* task = batch->tasks; task; task = task->next)
    if (!rn_rows_fit(first, rn_in(task->ctx, i)))
      return rn_invalid_argument("Batching inputs of different shapes: %s and %s",
                                 rn_text_of(first).text, rn_text_of(rn_in(task->ctx, i)).text);
  memcpy(dims, rn_tensor_dims(first), first->rank * sizeof *dims);
  dims[0] = rn_call_batch_padded_rows(batch);
  RN_RETURN_IF_ERROR(rn_tensor_create(ctx->kernel->host_memory, first->dtype,
                                      (rn_shape_t){first->rank, dims}, out));
  rn_status_t status = fill(batch, i, out);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}
