// See batcher.h.
#include "kernels/cpu/function/batcher.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"

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

rn_status_t rn_call_batch_options_read(const rn_kernel_init_t* init, rn_arena_t* arena,
                                       rn_call_batch_options_t* out) {
  const rn_attr_value_t* sizes = rn_init_attr(init, "allowed_batch_sizes");
  int64_t* copy = NULL;
  *out = (rn_call_batch_options_t){.threads = rn_init_int(init, "num_batch_threads"),
                                   .most_rows = rn_init_int(init, "max_batch_size"),
                                   .most_batches = rn_init_int(init, "max_enqueued_batches"),
                                   .size_count = sizes->count};
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
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)sizes->count, &copy));
  for (int32_t i = 0; i < sizes->count; ++i) {
    copy[i] = sizes->list_i[i];
    if (i > 0 && copy[i] <= copy[i - 1])
      return rn_invalid_argument("allowed_batch_sizes entries must be monotonically increasing");
  }
  if (sizes->count && copy[sizes->count - 1] != out->most_rows)
    return rn_invalid_argument("final entry in allowed_batch_sizes must equal max_batch_size");
  out->sizes = copy;
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
  for (rn_call_batch_task_t* task = batch->tasks; task; task = task->next) task->is_taken = true;
  return batch;
}

// From here on the tasks cannot be cancelled one by one.
static void start(rn_call_batch_t* batch) {
  for (rn_call_batch_task_t* task = batch->tasks; task; task = task->next)
    rn_cancel_remove(task->ctx->step->cancel, &task->cancel);
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

static void end_task(rn_call_batch_task_t* task, rn_status_t status) {
  rn_kernel_ctx_t* ctx = task->ctx;
  RN_FREE(task->batcher->allocator, task);
  rn_done(ctx, status);
}

void rn_call_batch_end(rn_call_batch_t* batch, rn_status_t status) {
  rn_call_batcher_t* batcher = batch->batcher;
  rn_call_batch_task_t* task = batch->tasks;
  RN_FREE(batcher->allocator, batch);
  rn_mutex_lock(&batcher->mutex);
  --batcher->running;
  rn_cond_broadcast(&batcher->changed);
  rn_mutex_unlock(&batcher->mutex);
  // A call that ends may end its session, and that the batcher: nothing here is touched afterwards.
  while (task) {
    rn_call_batch_task_t* next = task->next;
    end_task(task, next ? rn_status_copy(status) : status);
    if (!next) return;
    task = next;
  }
  rn_status_free(status);
}

// Removes a task that waits; true if it did.
static bool remove_locked(rn_call_batcher_t* batcher, rn_call_batch_task_t* task) {
  if (task->is_taken) return false;
  for (rn_call_batch_t* batch = batcher->first; batch; batch = batch->next)
    for (rn_call_batch_task_t** at = &batch->tasks; *at; at = &(*at)->next) {
      if (*at != task) continue;
      *at = task->next;
      --batch->count;
      batch->rows -= task->rows;
      return true;
    }
  return false;
}

static void on_cancelled(rn_cancel_entry_t* entry) {
  rn_call_batch_task_t* task =
      (rn_call_batch_task_t*)((char*)entry - offsetof(rn_call_batch_task_t, cancel));
  rn_call_batcher_t* batcher = task->batcher;
  rn_mutex_lock(&batcher->mutex);
  bool was_waiting = remove_locked(batcher, task);
  rn_mutex_unlock(&batcher->mutex);
  if (was_waiting) end_task(task, rn_cancelled("Batching was cancelled"));
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

static rn_status_t add_locked(rn_call_batcher_t* batcher, rn_call_batch_task_t* task) {
  rn_call_batch_t* batch = NULL;
  if (!batcher->has_thread) {
    if (pthread_create(&batcher->thread, NULL, batcher_main, batcher) != 0)
      return rn_resource_exhausted("Could not start a thread for batches");
    batcher->has_thread = true;
  }
  RN_RETURN_IF_ERROR(open_locked(batcher, task->rows, &batch));
  rn_call_batch_task_t** at = &batch->tasks;
  while (*at) at = &(*at)->next;
  *at = task;
  batch->rows += task->rows;
  ++batch->count;
  batch->is_closed = batch->rows >= batcher->options.most_rows;
  rn_cond_broadcast(&batcher->changed);
  return RN_OK;
}

void rn_call_batcher_add(rn_call_batcher_t* batcher, rn_kernel_ctx_t* ctx, int64_t rows) {
  rn_call_batch_task_t* task = NULL;
  rn_status_t status = RN_OK;
  if (rows > batcher->options.most_rows)
    status = rn_invalid_argument("Task size %" PRId64
                                 " is larger than maximum input batch size %" PRId64,
                                 rows, batcher->options.most_rows);
  if (rn_ok(status)) status = RN_NEW(batcher->allocator, &task);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  *task = (rn_call_batch_task_t){.ctx = ctx, .rows = rows, .batcher = batcher};
  task->cancel.fn = on_cancelled;
  // Under the lock, so that the batch cannot begin before the entry is there.
  rn_mutex_lock(&batcher->mutex);
  bool is_cancelled = !rn_cancel_add(ctx->step->cancel, &task->cancel);
  status = is_cancelled ? rn_cancelled("Batching was cancelled") : add_locked(batcher, task);
  rn_mutex_unlock(&batcher->mutex);
  if (rn_ok(status)) return;
  if (!is_cancelled) rn_cancel_remove(ctx->step->cancel, &task->cancel);
  end_task(task, status);
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

static bool same_rows(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->rank != b->rank || a->dtype != b->dtype) return false;
  for (int d = 1; d < a->rank; ++d)
    if (rn_tensor_dim(a, d) != rn_tensor_dim(b, d)) return false;
  return true;
}

static rn_status_t fill(const rn_call_batch_t* batch, int i, rn_tensor_t* out) {
  char *to = out->data, *end = to + rn_tensor_bytes(out);
  for (const rn_call_batch_task_t* task = batch->tasks; task; task = task->next) {
    const rn_tensor_t* in = rn_in(task->ctx, i);
    RN_RETURN_IF_ERROR(rn_move_row(in->dtype, in->data, to, in->count));
    to += rn_tensor_bytes(in);
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
    if (!same_rows(first, rn_in(task->ctx, i)))
      return rn_invalid_argument("Batching inputs of different shapes: %s and %s",
                                 rn_text_of(first).text, rn_text_of(rn_in(task->ctx, i)).text);
  memcpy(dims, rn_tensor_dims(first), first->rank * sizeof *dims);
  dims[0] = batch->rows ? rn_call_batch_padded_rows(batch) : 0;
  RN_RETURN_IF_ERROR(rn_tensor_create(ctx->kernel->host_memory, first->dtype,
                                      (rn_shape_t){first->rank, dims}, out));
  rn_status_t status = fill(batch, i, out);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}
