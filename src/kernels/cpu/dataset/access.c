// Random access to datasets: see data.h. The op GetElementAtIndex.
#include "base/pool_wait.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/expected.h"

rn_status_t rn_dataset_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                           rn_tensor_t* out) {
  const char* name = dataset->node->op->name;
  if (rn_is_cancelled(step->cancel)) return rn_cancelled("Operation was cancelled");
  if (!dataset->kind->get)
    return rn_unimplemented("Random access is not implemented for dataset %sOp::Dataset", name);
  int64_t count = rn_dataset_cardinality(dataset);
  if (count < 0)
    return rn_failed_precondition(
        "Dataset of type %sOp::Dataset has %s cardinality, which does not support random access.",
        name, count == RN_DATA_INFINITE ? "infinite" : "unknown");
  if (index < 0 || index >= count)
    return rn_out_of_range("Index out of range [0, %lld):%lld", (long long)count, (long long)index);
  return dataset->kind->get(dataset, index, step, out);
}

// A call that a thread waits for.
typedef struct access_call_t {
  rn_function_call_t call;  // first
  rn_mutex_t mutex;         // guards what follows
  rn_cond_t done;
  bool is_done;
  rn_status_t status;
} access_call_t;

static void on_done(rn_function_call_t* call, rn_status_t status) {
  access_call_t* own = (access_call_t*)call;
  rn_mutex_lock(&own->mutex);
  own->status = status;
  own->is_done = true;
  rn_cond_broadcast(&own->done);
  rn_mutex_unlock(&own->mutex);
}

// Waits, and meanwhile runs what others have queued: the call may need this thread.
static rn_status_t run_call(const rn_data_func_t* func, access_call_t* own, rn_pool_t* pool) {
  rn_mutex_init(&own->mutex);
  rn_cond_init(&own->done);
  rn_function_run(func->functions, func->instance, &own->call);
  rn_mutex_lock(&own->mutex);
  while (!own->is_done)
    if (!rn_pool_help_unlocked(pool, &own->mutex) && !own->is_done)
      rn_cond_wait_a_while(&own->done, &own->mutex);
  rn_mutex_unlock(&own->mutex);
  rn_cond_destroy(&own->done);
  rn_mutex_destroy(&own->mutex);
  return own->status;
}

rn_status_t rn_data_func_call(const rn_data_func_t* func, const rn_tensor_t* args, int32_t count,
                              rn_step_t* step, rn_tensor_t* results) {
  rn_allocator_t allocator = rn_allocator_default();
  int32_t total = func->instance->arg_count;
  const rn_tensor_t** all = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)total, &all));
  for (int32_t i = 0; i < total; ++i) all[i] = i < count ? &args[i] : &func->captured[i - count];
  access_call_t own = {.call = {.step = step, .args = all, .results = results, .done = on_done}};
  rn_status_t status = run_call(func, &own, step->pool);
  RN_FREE_ARRAY(allocator, all, total);
  return status;
}

static rn_status_t get_row(rn_kernel_ctx_t* ctx, rn_dataset_t* dataset, int64_t index,
                           rn_tensor_t* row) {
  RN_RETURN_IF_ERROR(rn_dataset_get(dataset, index, ctx->step, row));
  RN_RETURN_IF_ERROR(rn_data_expected_check(ctx->state, row, dataset->component_count));
  for (int32_t i = 0; i < ctx->kernel->output_count; ++i) rn_set_output(ctx, i, &row[i]);
  return RN_OK;
}

static rn_status_t at_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  const rn_tensor_t* index = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  if (index->rank != 0) return rn_invalid_argument("index must be a scalar");
  if (!rn_data_host_enter(dataset->host)) return rn_cancelled("The session is closed");
  int32_t count = dataset->component_count;
  rn_tensor_t* row = NULL;
  rn_status_t status = RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)count, &row);
  if (rn_ok(status)) status = get_row(ctx, dataset, rn_int_at(index, 0), row);
  if (row) rn_data_row_clear(row, count);
  RN_FREE_ARRAY(ctx->kernel->allocator, row, count);
  rn_data_host_leave(dataset->host);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "GetElementAtIndex",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_EXPENSIVE | RN_KERNEL_KEEPS_INPUTS,
     .state_size = sizeof(rn_data_expected_t),
     .init = rn_data_expected_init,
     .destroy = rn_data_expected_destroy,
     .compute = at_compute},
};
RN_KERNEL_FAMILY(cpu_data_access, rows);
