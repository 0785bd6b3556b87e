// MapDefun: calls a function for each row of its arguments, several rows at a time, and stacks the
// results.
//
// A job has as many lanes as rows that run at once. Each lane takes the next row, calls the
// function, and continues when the call is done, on whatever thread that is.
#include <stdatomic.h>

#include "framework/function.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/first_error.h"
#include "kernels/cpu/move.h"
#include "kernels/kernel_rows.h"

#define MAX_LANES 16

typedef struct map_defun_t {
  rn_functions_t* functions;
  rn_arena_t arena;
  rn_str_t device;
  rn_attr_value_t function;
  rn_instance_t* _Atomic instance;  // NULL until first needed
  int32_t arg_count;                // arguments with rows
  const rn_shape_t* shapes;         // of the results
} map_defun_t;

typedef struct map_defun_job_t map_defun_job_t;

typedef struct map_defun_lane_t {
  rn_function_call_t call;  // first
  map_defun_job_t* job;
  int64_t row;
  _Atomic bool is_met;  // completion or return has happened; the second of them continues
  rn_status_t status;
  const rn_tensor_t** args;
  rn_tensor_t* rows;  // the arguments' rows
  rn_tensor_t* results;
} map_defun_lane_t;

struct map_defun_job_t {
  rn_kernel_ctx_t* ctx;
  rn_instance_t* instance;
  rn_arena_t arena;  // holds the lanes
  int64_t count;     // rows
  _Atomic int64_t next;
  _Atomic int32_t running;  // lanes
  _Atomic bool has_failed;
  rn_mutex_t mutex;  // guards what follows
  rn_status_t status;
  bool has_outputs;
  rn_tensor_t** outputs;  // from the arena
  int32_t lane_count;
  map_defun_lane_t* lanes;
};

static rn_status_t map_init(const rn_kernel_init_t* init, void* state) {
  map_defun_t* own = state;
  const rn_attr_value_t* function = rn_init_attr(init, "f");
  const rn_attr_value_t* shapes = rn_init_attr(init, "output_shapes");
  if (!init->functions || function->kind != RN_ATTR_FUNC || !function->func)
    return rn_failed_precondition("The runtime has no function library: node '%.*s' (%s)",
                                  RN_STR_ARGS(init->node), init->op->name);
  own->functions = init->functions;
  rn_arena_init(&own->arena, init->allocator);
  own->arg_count = rn_init_attr(init, "Targuments")->count;
  if (shapes->count != init->output_count)
    return rn_invalid_argument(
        "`output_shapes` must be the same length as `output_types` (%d vs. %d)", shapes->count,
        init->output_count);
  rn_shape_t* copies = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&own->arena, (size_t)shapes->count, &copies));
  for (int32_t i = 0; i < shapes->count; ++i)
    RN_RETURN_IF_ERROR(rn_shape_copy(&own->arena, shapes->list_shape[i], &copies[i]));
  own->shapes = copies;
  RN_RETURN_IF_ERROR(rn_arena_str(&own->arena, init->device_name, &own->device));
  return rn_attr_value_copy(&own->arena, function, &own->function);
}

static void map_destroy(void* state) {
  map_defun_t* own = state;
  if (!own->functions) return;
  rn_function_forget(own->functions, own->instance);
  rn_attr_value_clear(&own->function);
  rn_arena_clear(&own->arena);
}

// The function, instantiated on first use, since it may call itself.
static rn_status_t get_instance(map_defun_t* own, rn_instance_t** out) {
  *out = atomic_load(&own->instance);
  if (*out) return RN_OK;
  rn_instance_t* made = NULL;
  RN_RETURN_IF_ERROR(rn_function_prepare(own->functions, own->function.func, own->device, &made));
  rn_instance_t* other = NULL;
  if (atomic_compare_exchange_strong(&own->instance, &other, made)) {
    *out = made;
  } else {
    rn_function_forget(own->functions, made);
    *out = other;
  }
  return RN_OK;
}

static rn_status_t check_args(const map_defun_t* own, const rn_kernel_ctx_t* ctx, int64_t* out) {
  for (int32_t i = 0; i < own->arg_count; ++i) {
    const rn_tensor_t* arg = rn_in(ctx, i);
    if (arg->rank == 0)
      return rn_invalid_argument("All inputs must have rank at least 1. Input %d has a rank of 0.",
                                 i);
    if (i && rn_tensor_dim(arg, 0) != *out)
      return rn_invalid_argument(
          "All inputs must have the same dimension 0. Input %d has leading dimension %lld, while "
          "all previous inputs have leading dimension %lld",
          i, (long long)rn_tensor_dim(arg, 0), (long long)*out);
    *out = rn_tensor_dim(arg, 0);
  }
  return RN_OK;
}

static rn_status_t check_function(const rn_kernel_ctx_t* ctx, const rn_instance_t* instance) {
  const rn_kernel_t* kernel = ctx->kernel;
  if (instance->arg_count != kernel->input_count)
    return rn_invalid_argument("Function '%.*s' takes %d arguments, but got %d",
                               RN_STR_ARGS(instance->name), instance->arg_count,
                               kernel->input_count);
  for (int32_t i = 0; i < instance->arg_count; ++i)
    if (instance->arg_types[i] != kernel->input_types[i])
      return rn_invalid_argument("Mismatch in function argument type for argument: %d", i);
  if (instance->result_count != kernel->output_count)
    return rn_invalid_argument("Function '%.*s' returns %d results, but %d are expected",
                               RN_STR_ARGS(instance->name), instance->result_count,
                               kernel->output_count);
  for (int32_t i = 0; i < instance->result_count; ++i)
    if (instance->result_types[i] != kernel->output_types[i])
      return rn_invalid_argument(
          "Mismatch in function return type and expected output type for output: %d", i);
  return RN_OK;
}

// Allocates the outputs for results of the shapes of |results|.
static rn_status_t make_outputs(map_defun_job_t* job, const rn_tensor_t* results) {
  for (int32_t i = 0; i < job->instance->result_count; ++i) {
    int64_t dims[RN_MAX_RANK];
    if (results[i].rank >= RN_MAX_RANK)
      return rn_invalid_argument("Results of rank %d cannot be stacked", results[i].rank);
    dims[0] = job->count;
    for (int d = 0; d < results[i].rank; ++d) dims[d + 1] = rn_tensor_dim(&results[i], d);
    RN_RETURN_IF_ERROR(
        rn_output(job->ctx, i, (rn_shape_t){results[i].rank + 1, dims}, &job->outputs[i]));
  }
  job->has_outputs = true;
  return RN_OK;
}

static rn_status_t wrong_shape(rn_shape_t found, rn_shape_t expected) {
  return rn_invalid_argument(
      "Mismatch in function retval shape, %s, and expected output shape, %s.",
      rn_shape_text(found).text, rn_shape_text(expected).text);
}

static rn_status_t put_results(map_defun_job_t* job, int64_t row, const rn_tensor_t* results) {
  const map_defun_t* own = job->ctx->state;
  for (int32_t i = 0; i < job->instance->result_count; ++i)
    if (!rn_shape_compatible(own->shapes[i], rn_tensor_shape(&results[i])))
      return wrong_shape(rn_tensor_shape(&results[i]), own->shapes[i]);
  rn_mutex_lock(&job->mutex);
  rn_status_t status = job->has_outputs ? RN_OK : make_outputs(job, results);
  rn_mutex_unlock(&job->mutex);
  for (int32_t i = 0; rn_ok(status) && i < job->instance->result_count; ++i) {
    rn_tensor_t* out = job->outputs[i];
    rn_shape_t shape = {out->rank - 1, rn_tensor_dims(out) + 1};
    if (!rn_shape_eq(shape, rn_tensor_shape(&results[i])))
      return wrong_shape(rn_tensor_shape(&results[i]), shape);
    size_t size = rn_dtype_size(out->dtype) * (size_t)results[i].count;
    status = rn_move_row(out->dtype, results[i].data, (char*)out->data + (size_t)row * size,
                         results[i].count);
  }
  return status;
}

static void lane_clear(map_defun_lane_t* lane) {
  const map_defun_t* own = lane->job->ctx->state;
  for (int32_t i = 0; i < own->arg_count; ++i) rn_tensor_clear(&lane->rows[i]);
  for (int32_t i = 0; i < lane->job->instance->result_count; ++i)
    rn_tensor_clear(&lane->results[i]);
}

static void job_end(map_defun_job_t* job) {
  rn_kernel_ctx_t* ctx = job->ctx;
  rn_status_t status = job->status;
  rn_mutex_destroy(&job->mutex);
  rn_arena_clear(&job->arena);
  RN_FREE(ctx->kernel->allocator, job);
  rn_done(ctx, status);
}

static void job_fail(map_defun_job_t* job, rn_status_t status) {
  rn_mutex_lock(&job->mutex);
  job->status = rn_status_join(job->status, status);
  rn_mutex_unlock(&job->mutex);
  atomic_store(&job->has_failed, true);
}

static rn_status_t take_rows(map_defun_lane_t* lane) {
  const map_defun_t* own = lane->job->ctx->state;
  for (int32_t i = 0; i < own->arg_count; ++i) {
    const rn_tensor_t* arg = rn_in(lane->job->ctx, i);
    rn_shape_t shape = {arg->rank - 1, rn_tensor_dims(arg) + 1};
    rn_tensor_t* row = &lane->rows[i];
    RN_RETURN_IF_ERROR(
        rn_tensor_create(lane->job->ctx->kernel->host_memory, arg->dtype, shape, row));
    size_t size = rn_dtype_size(arg->dtype) * (size_t)row->count;
    RN_RETURN_IF_ERROR(rn_move_row(arg->dtype, (const char*)arg->data + (size_t)lane->row * size,
                                   row->data, row->count));
  }
  return RN_OK;
}

// Calls the function on the lane's next row. False if the call completes later, or the lane ends.
static bool lane_next(map_defun_lane_t* lane) {
  map_defun_job_t* job = lane->job;
  const map_defun_t* own = job->ctx->state;
  lane->row = atomic_load(&job->has_failed) ? job->count : atomic_fetch_add(&job->next, 1);
  if (lane->row >= job->count) {
    if (atomic_fetch_sub(&job->running, 1) == 1) job_end(job);
    return false;
  }
  lane->status = take_rows(lane);
  if (!rn_ok(lane->status)) return true;
  atomic_store(&lane->is_met, false);
  rn_function_run(own->functions, job->instance, &lane->call);
  return atomic_exchange(&lane->is_met, true);
}

static void lane_finish(map_defun_lane_t* lane) {
  rn_status_t status = lane->status;
  if (rn_ok(status)) status = put_results(lane->job, lane->row, lane->results);
  lane_clear(lane);
  if (!rn_ok(status)) job_fail(lane->job, status);
}

static void lane_go(map_defun_lane_t* lane) {
  while (lane_next(lane)) lane_finish(lane);
}

static void lane_called(rn_function_call_t* call, rn_status_t status) {
  map_defun_lane_t* lane = (map_defun_lane_t*)call;
  lane->status = status;
  if (!atomic_exchange(&lane->is_met, true)) return;  // the caller continues
  lane_finish(lane);
  lane_go(lane);
}

static rn_status_t lane_init(map_defun_job_t* job, map_defun_lane_t* lane) {
  const map_defun_t* own = job->ctx->state;
  size_t args = (size_t)job->instance->arg_count;
  lane->job = job;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, args, &lane->args));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)own->arg_count, &lane->rows));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&job->arena, (size_t)job->instance->result_count, &lane->results));
  for (size_t i = 0; i < args; ++i)
    lane->args[i] = (int32_t)i < own->arg_count ? &lane->rows[i] : rn_in(job->ctx, (int)i);
  lane->call = (rn_function_call_t){
      .step = job->ctx->step, .args = lane->args, .results = lane->results, .done = lane_called};
  return RN_OK;
}

static rn_status_t job_create(rn_kernel_ctx_t* ctx, rn_instance_t* instance, int64_t count,
                              map_defun_job_t** out) {
  map_defun_job_t* job = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(ctx->kernel->allocator, &job));
  job->ctx = ctx;
  job->instance = instance;
  job->count = count;
  rn_arena_init(&job->arena, ctx->kernel->allocator);
  rn_mutex_init(&job->mutex);
  job->lane_count = count < MAX_LANES ? (int32_t)count : MAX_LANES;
  rn_status_t status = RN_ARENA_ARRAY(&job->arena, (size_t)job->lane_count, &job->lanes);
  if (rn_ok(status))
    status = RN_ARENA_ARRAY(&job->arena, (size_t)instance->result_count, &job->outputs);
  for (int32_t i = 0; rn_ok(status) && i < job->lane_count; ++i)
    status = lane_init(job, &job->lanes[i]);
  if (!rn_ok(status)) {
    rn_mutex_destroy(&job->mutex);
    rn_arena_clear(&job->arena);
    RN_FREE(ctx->kernel->allocator, job);
    return status;
  }
  *out = job;
  return RN_OK;
}

// Without rows there are no results to tell the shapes; unknown dimensions become 0.
static rn_status_t give_nothing(rn_kernel_ctx_t* ctx) {
  const map_defun_t* own = ctx->state;
  for (int32_t i = 0; i < ctx->kernel->output_count; ++i) {
    int64_t dims[RN_MAX_RANK] = {0};
    int32_t rank = own->shapes[i].rank < 0 ? 0 : own->shapes[i].rank;
    if (rank >= RN_MAX_RANK) return rn_invalid_argument("Too many dimensions: %d", rank);
    for (int32_t d = 0; d < rank; ++d)
      dims[d + 1] = own->shapes[i].dims[d] < 0 ? 0 : own->shapes[i].dims[d];
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){rank + 1, dims}, &out));
  }
  return RN_OK;
}

static void map_compute(rn_kernel_ctx_t* ctx) {
  map_defun_t* own = ctx->state;
  map_defun_job_t* job = NULL;
  rn_instance_t* instance = NULL;
  int64_t count = 0;
  rn_status_t status = check_args(own, ctx, &count);
  if (rn_ok(status)) status = get_instance(own, &instance);
  if (rn_ok(status)) status = check_function(ctx, instance);
  if (rn_ok(status) && count > 0) status = job_create(ctx, instance, count, &job);
  if (rn_ok(status) && count == 0) status = give_nothing(ctx);
  if (!job) {
    rn_done(ctx, status);
    return;
  }
  // The last lane to end frees the job: afterwards only the local copies may be used.
  int32_t lanes = job->lane_count;
  map_defun_lane_t* first = job->lanes;
  atomic_store(&job->running, lanes);
  for (int32_t i = 0; i < lanes; ++i) lane_go(&first[i]);
}

static const rn_kernel_def_t rows[] = {
    {.op = "MapDefun",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(map_defun_t),
     .init = map_init,
     .destroy = map_destroy,
     .compute_async = map_compute},
};
RN_KERNEL_FAMILY(cpu_map_defun, rows);
