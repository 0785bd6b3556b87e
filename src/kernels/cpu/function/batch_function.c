// BatchFunction: calls of several steps become one call of a function, on the concatenated inputs;
// each gets its rows of the results.
#include "kernels/cpu/array.h"
#include "kernels/cpu/function/batcher.h"
#include "kernels/cpu/function/kernel_calls.h"
#include "kernels/cpu/rows.h"
#include "kernels/kernel_rows.h"

typedef struct batch_function_t {
  rn_kernel_calls_t calls;     // first
  int32_t args;                // inputs that are batched; the others are captured
  rn_call_batcher_t* batcher;  // Retained
} batch_function_t;

static void run_batch(rn_call_batch_t* batch);

static rn_status_t batch_function_init(const rn_kernel_init_t* init, void* state_) {
  batch_function_t* state = state_;
  RN_RETURN_IF_ERROR(rn_kernel_calls_begin(init, &state->calls, 1));
  RN_RETURN_IF_ERROR(rn_kernel_calls_add_named(&state->calls, init, "f"));
  state->args = rn_init_attr(init, "Tin")->count;
  return rn_call_batcher_find(init, &state->calls.arena, run_batch, &state->batcher);
}

static void batch_function_destroy(void* state_) {
  batch_function_t* state = state_;
  if (state->batcher) rn_object_release((rn_object_t*)state->batcher);
  rn_kernel_calls_destroy(&state->calls);
}

// One call of the function, for a batch.
typedef struct batch_call_t {
  rn_function_call_t call;  // first
  rn_allocator_t allocator;
  rn_call_batch_t* batch;
  int64_t rows;  // of the inputs, with padding
  int32_t arg_count, result_count;
  rn_tensor_t* joined;  // Owned; the batched arguments
  const rn_tensor_t** args;
  rn_tensor_t* results;  // Owned
} batch_call_t;

static void call_free(batch_call_t* call, int32_t joined) {
  for (int32_t i = 0; call->joined && i < joined; ++i) rn_tensor_clear(&call->joined[i]);
  for (int32_t i = 0; call->results && i < call->result_count; ++i)
    rn_tensor_clear(&call->results[i]);
  RN_FREE_ARRAY(call->allocator, call->joined, call->arg_count);
  RN_FREE_ARRAY(call->allocator, call->args, call->arg_count);
  RN_FREE_ARRAY(call->allocator, call->results, call->result_count);
  RN_FREE(call->allocator, call);
}

// Gives every task its rows of result |i|.
static rn_status_t split_result(const batch_call_t* call, int32_t i) {
  const rn_tensor_t* result = &call->results[i];
  int64_t at = 0;
  if (result->rank == 0) return rn_failed_precondition("Batched output tensor has 0 dimensions");
  if (rn_tensor_dim(result, 0) != call->rows)
    return rn_failed_precondition(
        "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes "
        "of the input tensors");
  for (rn_call_batch_task_t* task = call->batch->tasks; task; task = task->next) {
    rn_tensor_t rows = {0};
    RN_RETURN_IF_ERROR(
        rn_rows_slice(result, at, task->rows, false, true, task->ctx->kernel->host_memory, &rows));
    rn_call_batch_set_result(task, i, &rows);
    at += task->rows;
  }
  return RN_OK;
}

static void call_done(rn_function_call_t* function_call, rn_status_t status) {
  batch_call_t* call = (batch_call_t*)function_call;
  rn_call_batch_t* batch = call->batch;
  const batch_function_t* state = batch->tasks->ctx->state;
  for (int32_t i = 0; rn_ok(status) && i < call->result_count; ++i) status = split_result(call, i);
  call_free(call, state->args);
  rn_call_batch_end(batch, status);
}

// The batched arguments joined, and the captured ones of the first task.
static rn_status_t join_args(batch_call_t* call, int32_t batched) {
  const rn_kernel_ctx_t* ctx = call->batch->tasks->ctx;
  for (int32_t i = 0; i < call->arg_count; ++i) {
    call->args[i] = i < batched ? &call->joined[i] : rn_in(ctx, i);
    if (i < batched) RN_RETURN_IF_ERROR(rn_call_batch_concat(call->batch, i, &call->joined[i]));
  }
  call->rows = rn_tensor_dim(&call->joined[0], 0);
  return RN_OK;
}

static rn_status_t make_call(rn_call_batch_t* batch, batch_call_t** out) {
  const rn_kernel_t* kernel = batch->tasks->ctx->kernel;
  RN_RETURN_IF_ERROR(RN_NEW(kernel->allocator, out));
  batch_call_t* call = *out;
  call->allocator = kernel->allocator;
  call->batch = batch;
  call->arg_count = kernel->input_count;
  call->result_count = kernel->output_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(kernel->allocator, (size_t)call->arg_count, &call->joined));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(kernel->allocator, (size_t)call->arg_count, &call->args));
  return RN_NEW_ARRAY(kernel->allocator, (size_t)call->result_count, &call->results);
}

// The call belongs to no step, so that the end of one does not end the others'.
static void run_batch(rn_call_batch_t* batch) {
  rn_kernel_ctx_t* ctx = batch->tasks->ctx;
  batch_function_t* state = ctx->state;
  rn_instance_t* instance = NULL;
  batch_call_t* call = NULL;
  rn_status_t status =
      rn_kernel_calls_instance(&state->calls, 0, RN_AS_BATCH, ctx->kernel->input_count,
                               ctx->kernel->output_count, &instance);
  if (rn_ok(status)) status = make_call(batch, &call);
  if (rn_ok(status)) status = join_args(call, state->args);
  if (!rn_ok(status)) {
    if (call) call_free(call, state->args);
    rn_call_batch_end(batch, status);
    return;
  }
  call->call =
      (rn_function_call_t){.args = call->args, .results = call->results, .done = call_done};
  rn_function_run(state->calls.functions, instance, &call->call);
}

static void batch_function(rn_kernel_ctx_t* ctx) {
  batch_function_t* state = ctx->state;
  int64_t rows = 0;
  rn_status_t status = rn_call_batch_count_rows(ctx, state->args, &rows);
  if (rn_ok(status))
    rn_call_batcher_add(state->batcher, ctx, rows);
  else
    rn_done(ctx, status);
}

static const rn_kernel_def_t rows[] = {
    {.op = "BatchFunction",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_KEEPS_INPUTS,
     .state_size = sizeof(batch_function_t),
     .init = batch_function_init,
     .destroy = batch_function_destroy,
     .compute_async = batch_function},
};
RN_KERNEL_FAMILY(cpu_batch_function, rows);
