// Batch: the step that came last to a batch gets the concatenated inputs of all, and a table of
// whose rows they are; the others get tensors without rows.
#include "kernels/cpu/array.h"
#include "kernels/cpu/function/batcher.h"
#include "kernels/kernel_rows.h"

typedef struct batch_t {
  rn_call_batcher_t* batcher;  // Retained
} batch_t;

// An output of |rows| rows, otherwise like |like|.
static rn_status_t set_rows(rn_kernel_ctx_t* ctx, int i, const rn_tensor_t* like, int64_t rows) {
  int64_t dims[RN_MAX_RANK];
  rn_tensor_t* out = NULL;
  memcpy(dims, rn_tensor_dims(like), like->rank * sizeof *dims);
  dims[0] = rows;
  return rn_output(ctx, i, (rn_shape_t){like->rank, dims}, &out);
}

// What a task gets that is not the last: no rows, and no lines of the table.
static rn_status_t set_none(rn_kernel_ctx_t* ctx) {
  const int64_t dims[] = {0, 3};
  rn_tensor_t* table = NULL;
  int inputs = ctx->kernel->input_count;
  for (int i = 0; i < inputs; ++i) RN_RETURN_IF_ERROR(set_rows(ctx, i, rn_in(ctx, i), 0));
  return rn_output(ctx, inputs, (rn_shape_t){2, dims}, &table);
}

// The concatenated inputs, and lines of (id, first row, end) for the tasks.
static rn_status_t set_all(rn_call_batch_t* batch, rn_kernel_ctx_t* ctx, const int64_t* ids) {
  int inputs = ctx->kernel->input_count;
  const int64_t dims[] = {batch->count, 3};
  rn_tensor_t* table = NULL;
  for (int i = 0; i < inputs; ++i) {
    rn_tensor_t joined = {0};
    RN_RETURN_IF_ERROR(rn_call_batch_concat(batch, i, &joined));
    rn_set_output(ctx, i, &joined);
  }
  RN_RETURN_IF_ERROR(rn_output(ctx, inputs, (rn_shape_t){2, dims}, &table));
  int64_t *line = RN_DATA(table, int64_t), at = 0;
  for (rn_call_batch_task_t* task = batch->tasks; task; task = task->next, line += 3) {
    line[0] = *ids++;
    line[1] = at;
    line[2] = at += task->rows;
  }
  return RN_OK;
}

static rn_status_t set_outputs(rn_call_batch_t* batch, int64_t* ids) {
  const rn_env_t* env = batch->tasks->ctx->step->env;
  int64_t t = 0;
  for (rn_call_batch_task_t* task = batch->tasks; task; task = task->next, ++t) {
    rn_tensor_t* id = NULL;
    ids[t] = (int64_t)env->random(env->self);
    RN_RETURN_IF_ERROR(
        rn_output(task->ctx, task->ctx->kernel->input_count + 1, (rn_shape_t){0, NULL}, &id));
    *RN_DATA(id, int64_t) = ids[t];
    if (task->next)
      RN_RETURN_IF_ERROR(set_none(task->ctx));
    else
      RN_RETURN_IF_ERROR(set_all(batch, task->ctx, ids));
  }
  return RN_OK;
}

static void run_batch(rn_call_batch_t* batch) {
  rn_allocator_t allocator = batch->tasks->ctx->kernel->allocator;
  int32_t count = batch->count;
  int64_t* ids = NULL;
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)count, &ids);
  if (rn_ok(status)) status = set_outputs(batch, ids);
  RN_FREE_ARRAY(allocator, ids, count);
  rn_call_batch_end(batch, status);
}

static rn_status_t batch_init(const rn_kernel_init_t* init, void* state_) {
  batch_t* state = state_;
  rn_arena_t arena;
  rn_arena_init(&arena, init->allocator);
  rn_status_t status = rn_call_batcher_find(init, &arena, run_batch, &state->batcher);
  rn_arena_clear(&arena);
  return status;
}

static void batch_destroy(void* state_) {
  batch_t* state = state_;
  if (state->batcher) rn_object_release((rn_object_t*)state->batcher);
}

static void batch(rn_kernel_ctx_t* ctx) {
  batch_t* state = ctx->state;
  int64_t rows = 0;
  rn_status_t status = rn_call_batch_count_rows(ctx, ctx->kernel->input_count, &rows);
  if (rn_ok(status))
    rn_call_batcher_add(state->batcher, ctx, rows);
  else
    rn_done(ctx, status);
}

static const rn_kernel_def_t rows[] = {
    {.op = "Batch",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_KEEPS_INPUTS,
     .state_size = sizeof(batch_t),
     .init = batch_init,
     .destroy = batch_destroy,
     .compute_async = batch},
};
RN_KERNEL_FAMILY(cpu_batch, rows);
