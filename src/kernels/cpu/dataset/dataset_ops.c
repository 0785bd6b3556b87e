// Ops that take a dataset and return tensors: cardinality, the single element, reductions. Also
// OneShotIterator, which makes its dataset itself.
#include "base/container.h"
#include "kernels/cpu/dataset/expected.h"
#include "kernels/cpu/dataset/map.h"
#include "kernels/cpu/state/handle.h"
#include "tensor/tstring.h"

static rn_status_t cardinality_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int64_t) = rn_dataset_cardinality(dataset);
  return RN_OK;
}

// Stores the options unchanged.
static rn_status_t options_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_str_t text = RN_STR("");
  for (;;) {
    const rn_attr_value_t* options = rn_data_attr(dataset, "serialized_options");
    if (options) {
      text = options->s;
      break;
    }
    const rn_tensor_t* input = rn_data_input(dataset, "input_dataset", NULL);
    rn_status_t status = input ? rn_dataset_of(input, &dataset) : rn_not_found("none");
    bool goes_on = rn_ok(status);
    rn_status_free(status);
    if (!goes_on) break;
  }
  return rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size) ? RN_OK
                                                                             : rn_out_of_memory();
}

static rn_status_t wrap_compute(rn_kernel_ctx_t* ctx) { return rn_forward(ctx, 0, 0); }

// A complete walk over a dataset on behalf of a kernel.
typedef struct drive_t {
  rn_data_request_t request;  // first
  rn_kernel_ctx_t* ctx;
  rn_dataset_t* dataset;         // Retained
  rn_data_run_t* run;            // Retained
  rn_data_iterator_t* iterator;  // Owned
  rn_tensor_t* row;              // Owned; a reduction's state precedes it
  int32_t row_count;
  bool (*step)(struct drive_t* drive);  // handles a reply; false if it completes later
  int phase;
  // For a reduction.
  rn_data_func_t func;
  rn_data_call_t call;
  int32_t state_count;
  bool has_element;
} drive_t;

// Ends the kernel's call.
static void drive_end(drive_t* drive, rn_status_t status) {
  rn_kernel_ctx_t* ctx = drive->ctx;
  rn_allocator_t allocator = ctx->kernel->allocator;
  rn_data_host_t* host = drive->dataset->host;
  rn_object_retain(&host->object);
  if (drive->run) rn_cancel(&drive->run->cancel);
  if (drive->iterator) rn_data_call_clear(&drive->call, &drive->func);
  rn_data_func_close(&drive->func);
  rn_data_iterator_drop(drive->iterator);
  if (drive->run) rn_object_release(&drive->run->object);
  rn_data_row_clear(drive->row, drive->row_count);
  RN_FREE_ARRAY(allocator, drive->row, drive->row_count);
  rn_dataset_release(drive->dataset);
  RN_FREE(allocator, drive);
  rn_done(ctx, status);
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

static void drive_go(drive_t* drive) {
  while (drive->step(drive)) {
  }
}

static void drive_answered(rn_data_request_t* request) { drive_go((drive_t*)request); }

// Starts a walk over |dataset|, with |state_count| tensors in front of the element. On failure ends
// the call and returns NULL.
static drive_t* drive_over(rn_kernel_ctx_t* ctx, rn_dataset_t* dataset, int32_t state_count,
                           bool (*step)(drive_t* drive)) {
  drive_t* drive = NULL;
  rn_allocator_t allocator = ctx->kernel->allocator;
  rn_status_t status = RN_OK;
  if (!rn_data_host_enter(dataset->host))
    status = rn_cancelled("The session is closed");
  else {
    status = RN_NEW(allocator, &drive);
    if (!rn_ok(status)) rn_data_host_leave(dataset->host);
  }
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return NULL;
  }
  drive->ctx = ctx;
  drive->dataset = dataset;
  rn_object_retain(&dataset->object);
  drive->state_count = state_count;
  drive->step = step;
  drive->request = (rn_data_request_t){.step = ctx->step, .done = drive_answered};
  drive->row_count = state_count + dataset->component_count;
  status = rn_data_run_create(dataset->host, NULL, ctx->step->call_depth, &drive->run);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)drive->row_count, &drive->row);
  if (rn_ok(status)) status = rn_data_iterator_create(dataset, drive->run, &drive->iterator);
  if (rn_ok(status)) return drive;
  if (!drive->row) drive->row_count = 0;
  drive_end(drive, status);
  return NULL;
}

// The same over the dataset in input 0.
static drive_t* drive_begin(rn_kernel_ctx_t* ctx, int32_t state_count,
                            bool (*step)(drive_t* drive)) {
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_of(rn_in(ctx, 0), &dataset);
  if (rn_ok(status)) return drive_over(ctx, dataset, state_count, step);
  rn_done(ctx, status);
  return NULL;
}

// DatasetToSingleElement.
static bool single_step(drive_t* drive) {
  rn_kernel_ctx_t* ctx = drive->ctx;
  if (drive->phase == 0) {
    drive->phase = 1;
    drive->request.out = drive->row;
    if (!rn_data_next(drive->iterator, &drive->request)) return false;
  }
  rn_status_t status = drive->request.status;
  if (rn_ok(status) && drive->request.is_end && !drive->has_element)
    status = rn_invalid_argument("Dataset was empty.");
  if (rn_ok(status) && !drive->request.is_end && drive->has_element)
    status = rn_invalid_argument("Dataset had more than one element.");
  if (rn_ok(status) && !drive->request.is_end) {
    status = rn_data_expected_check(ctx->state, drive->row, drive->row_count);
    if (rn_ok(status)) {
      for (int32_t i = 0; i < ctx->kernel->output_count; ++i) rn_set_output(ctx, i, &drive->row[i]);
      drive->has_element = true;
      drive->phase = 0;
      return true;
    }
  }
  drive_end(drive, status);
  return false;
}

static void single_compute(rn_kernel_ctx_t* ctx) {
  drive_t* drive = drive_begin(ctx, 0, single_step);
  if (drive) drive_go(drive);
}

// Walks over a dataset that writes its elements to files: see snapshot.c.
typedef struct saver_t {
  rn_data_node_t* node;
  rn_data_host_t* host;
} saver_t;

static rn_status_t saver_init(const rn_kernel_init_t* init, void* state) {
  saver_t* saver = state;
  if (!init->env) return rn_failed_precondition("Datasets need an environment");
  RN_RETURN_IF_ERROR(rn_data_node_create(init, &rn_data_kind_save, &saver->node));
  return rn_data_host_get(init->resources, init, &saver->host);
}

static void saver_destroy(void* state) {
  saver_t* saver = state;
  if (saver->node) rn_object_release(&saver->node->object);
  if (saver->host) rn_object_release(&saver->host->object);
}

static bool saver_step(drive_t* drive) {
  if (drive->phase == 0) {
    drive->phase = 1;
    drive->request.out = drive->row;
    if (!rn_data_next(drive->iterator, &drive->request)) return false;
  }
  if (rn_ok(drive->request.status) && !drive->request.is_end) {
    rn_data_row_clear(drive->row, drive->row_count);
    drive->phase = 0;
    return true;
  }
  drive_end(drive, drive->request.status);
  return false;
}

static void saver_compute(rn_kernel_ctx_t* ctx) {
  const saver_t* saver = ctx->state;
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_create(saver->node, saver->node->kind, saver->host,
                                         (const rn_tensor_t* const*)ctx->in, &dataset);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  drive_t* drive = drive_over(ctx, dataset, 0, saver_step);
  rn_dataset_release(dataset);
  if (drive) drive_go(drive);
}

// Reductions: (state, element) to state.
typedef struct dataset_ops_reduce_t {
  rn_data_expected_t expected;  // of the last state
  rn_functions_t* functions;
  rn_arena_t arena;
  rn_attr_value_t function;
  int32_t state_count;
} dataset_ops_reduce_t;

static rn_status_t reduce_init(const rn_kernel_init_t* init, void* state) {
  dataset_ops_reduce_t* reduce = state;
  const rn_attr_value_t* function = rn_init_attr(init, "f");
  if (!init->functions || function->kind != RN_ATTR_FUNC || !function->func)
    return rn_failed_precondition("The runtime has no function library: node '%.*s' (%s)",
                                  RN_STR_ARGS(init->node), init->op->name);
  reduce->functions = init->functions;
  rn_arena_init(&reduce->arena, init->allocator);
  reduce->state_count = init->output_count;
  RN_RETURN_IF_ERROR(rn_data_expected_init(init, &reduce->expected));
  return rn_attr_value_copy(&reduce->arena, function, &reduce->function);
}

static void reduce_destroy(void* state) {
  dataset_ops_reduce_t* reduce = state;
  if (!reduce->functions) return;
  rn_data_expected_destroy(&reduce->expected);
  rn_attr_value_clear(&reduce->function);
  rn_arena_clear(&reduce->arena);
}

static void reduce_called(rn_data_call_t* call) { drive_go(RN_CONTAINER_OF(call, drive_t, call)); }

static rn_status_t check_reduction(const drive_t* drive) {
  const rn_instance_t* instance = drive->func.instance;
  const rn_kernel_t* kernel = drive->ctx->kernel;
  bool fits = instance->result_count == drive->state_count &&
              instance->arg_count == drive->row_count + drive->func.captured_count;
  for (int32_t i = 0; fits && i < drive->state_count; ++i)
    fits = instance->result_types[i] == kernel->output_types[i] &&
           rn_in(drive->ctx, 1 + i)->dtype == kernel->output_types[i];
  if (fits) return RN_OK;
  return rn_invalid_argument(
      "The number of components of the initial state and the reduce function output does not "
      "match. "
      "(initial_state=%d, output=%d).",
      drive->state_count, instance->result_count);
}

static rn_status_t reduce_begin(drive_t* drive) {
  rn_kernel_ctx_t* ctx = drive->ctx;
  const dataset_ops_reduce_t* reduce = ctx->state;
  drive->func.functions = reduce->functions;
  drive->func.captured_count = ctx->kernel->input_count - 1 - drive->state_count;
  RN_RETURN_IF_ERROR(rn_function_prepare(reduce->functions, reduce->function.func, RN_STR(""),
                                         &drive->func.instance));
  RN_RETURN_IF_ERROR(check_reduction(drive));
  // The captured arguments are inputs of the kernel, which live for the whole call.
  int32_t captured = drive->func.captured_count;
  drive->func.captured_count = 0;
  RN_RETURN_IF_ERROR(rn_data_call_init(&drive->call, drive->iterator, &drive->func));
  for (int32_t i = 0; i < captured; ++i)
    drive->call.args[drive->row_count + i] = rn_in(ctx, 1 + drive->state_count + i);
  drive->call.resume = reduce_called;
  for (int32_t i = 0; i < drive->state_count; ++i)
    RN_RETURN_IF_ERROR(rn_tensor_keep(rn_in(ctx, 1 + i), ctx->kernel->host_memory, &drive->row[i]));
  return RN_OK;
}

enum { ASK = 0, ANSWERED, CALLED };

static bool reduce_step(drive_t* drive) {
  rn_kernel_ctx_t* ctx = drive->ctx;
  rn_tensor_t* element = drive->row + drive->state_count;
  rn_status_t status = RN_OK;
  if (drive->phase == ASK) {
    drive->phase = ANSWERED;
    drive->request.out = element;
    if (!rn_data_next(drive->iterator, &drive->request)) return false;
  }
  if (drive->phase == ANSWERED) {
    status = drive->request.status;
    if (rn_ok(status) && drive->request.is_end) {
      const dataset_ops_reduce_t* reduce = ctx->state;
      status = rn_data_expected_check(&reduce->expected, drive->row, drive->state_count);
      for (int32_t i = 0; rn_ok(status) && i < drive->state_count; ++i)
        rn_set_output(ctx, i, &drive->row[i]);
      drive_end(drive, status);
      return false;
    }
    drive->phase = CALLED;
    if (rn_ok(status) &&
        !rn_data_call(&drive->call, &drive->func, drive->row, drive->row_count, ctx->step))
      return false;
  }
  if (rn_ok(status)) status = drive->call.status;
  if (!rn_ok(status)) {
    drive_end(drive, status);
    return false;
  }
  rn_data_row_clear(drive->row, drive->row_count);
  rn_data_row_move(drive->call.results, drive->row, drive->state_count);
  drive->phase = ASK;
  return true;
}

static void reduce_compute(rn_kernel_ctx_t* ctx) {
  drive_t* drive =
      drive_begin(ctx, ((const dataset_ops_reduce_t*)ctx->state)->state_count, reduce_step);
  if (!drive) return;
  rn_status_t status = reduce_begin(drive);
  if (rn_ok(status))
    drive_go(drive);
  else
    drive_end(drive, status);
}

// Iterators that make their dataset themselves on first use.
typedef struct dataset_ops_waiting_t {
  rn_kernel_ctx_t* ctx;
  struct dataset_ops_waiting_t* next;
} dataset_ops_waiting_t;

typedef struct one_shot_t {
  rn_handle_state_t handle;  // first
  rn_functions_t* functions;
  rn_arena_t arena;
  rn_allocator_t allocator;
  rn_attr_value_t factory;
  rn_mutex_t mutex;  // guards what follows
  enum { NOT_BEGUN, UNDER_WAY, MADE } progress;
  dataset_ops_waiting_t* waiting;
} one_shot_t;

static rn_status_t make_root(void* arg, rn_str_t name, rn_resource_t** out) {
  const rn_kernel_init_t* init = arg;
  (void)name;
  const rn_attr_value_t* types = rn_init_attr(init, "output_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "output_shapes");
  return rn_data_root_create(init->allocator, types->count, types->list_type,
                             shapes->count == types->count ? shapes->list_shape : NULL,
                             (rn_data_root_t**)out);
}

static rn_status_t one_shot_init(const rn_kernel_init_t* init, void* state) {
  one_shot_t* own = state;
  const rn_attr_value_t* factory = rn_init_attr(init, "dataset_factory");
  if (!init->functions || factory->kind != RN_ATTR_FUNC || !factory->func)
    return rn_failed_precondition("The runtime has no function library: node '%.*s' (%s)",
                                  RN_STR_ARGS(init->node), init->op->name);
  own->functions = init->functions;
  own->allocator = init->allocator;
  rn_arena_init(&own->arena, init->allocator);
  rn_mutex_init(&own->mutex);
  RN_RETURN_IF_ERROR(rn_attr_value_copy(&own->arena, factory, &own->factory));
  return rn_handle_state_init(&own->handle, init, RN_DATA_ITERATOR_TYPE, make_root,
                              (void*)(uintptr_t)init);
}

static void one_shot_destroy(void* state) {
  one_shot_t* own = state;
  if (!own->functions) return;
  rn_handle_state_destroy(&own->handle);
  rn_attr_value_clear(&own->factory);
  rn_arena_clear(&own->arena);
  rn_mutex_destroy(&own->mutex);
}

// The call of the factory function.
typedef struct making_t {
  rn_function_call_t call;  // first
  one_shot_t* own;
  rn_kernel_ctx_t* ctx;
  rn_instance_t* instance;
  rn_tensor_t result;
} making_t;

static void give_handle(rn_kernel_ctx_t* ctx, rn_status_t status) {
  if (rn_ok(status)) status = rn_handle_state_compute(ctx);
  rn_done(ctx, status);
}

static rn_status_t use_dataset(making_t* making) {
  rn_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(&making->result, &dataset));
  return rn_data_root_make((rn_data_root_t*)making->own->handle.resource, dataset,
                           making->ctx->step->call_depth);
}

static void making_end(making_t* making, rn_status_t status) {
  one_shot_t* own = making->own;
  rn_kernel_ctx_t* ctx = making->ctx;
  rn_tensor_clear(&making->result);
  rn_function_forget(own->functions, making->instance);
  rn_allocator_t allocator = own->allocator;
  RN_FREE(allocator, making);
  rn_mutex_lock(&own->mutex);
  own->progress = rn_ok(status) ? MADE : NOT_BEGUN;  // after a failure the next call retries
  dataset_ops_waiting_t* waiting = own->waiting;
  own->waiting = NULL;
  rn_mutex_unlock(&own->mutex);
  while (waiting) {
    dataset_ops_waiting_t* next = waiting->next;
    rn_kernel_ctx_t* other = waiting->ctx;
    RN_FREE(allocator, waiting);
    give_handle(other, rn_status_copy(status));
    waiting = next;
  }
  give_handle(ctx, status);
}

static void making_done(rn_function_call_t* call, rn_status_t status) {
  making_t* making = (making_t*)call;
  if (rn_ok(status)) status = use_dataset(making);
  making_end(making, status);
}

static void begin_making(one_shot_t* own, rn_kernel_ctx_t* ctx) {
  making_t* making = NULL;
  rn_status_t status = RN_NEW(own->allocator, &making);
  if (!rn_ok(status)) {
    rn_mutex_lock(&own->mutex);
    own->progress = NOT_BEGUN;
    rn_mutex_unlock(&own->mutex);
    rn_done(ctx, status);
    return;
  }
  making->own = own;
  making->ctx = ctx;
  status = rn_function_prepare(own->functions, own->factory.func, RN_STR(""), &making->instance);
  if (rn_ok(status) && (making->instance->arg_count != 0 || making->instance->result_count != 1))
    status = rn_invalid_argument(
        "`dataset_factory` must be a function of no arguments that returns one dataset.");
  if (!rn_ok(status)) {
    making_end(making, status);
    return;
  }
  making->call =
      (rn_function_call_t){.step = ctx->step, .results = &making->result, .done = making_done};
  rn_function_run(own->functions, making->instance, &making->call);
}

static void one_shot_compute(rn_kernel_ctx_t* ctx) {
  one_shot_t* own = ctx->state;
  dataset_ops_waiting_t* waiting = NULL;
  rn_status_t status = RN_OK;
  rn_mutex_lock(&own->mutex);
  int progress = own->progress;
  if (progress == NOT_BEGUN) own->progress = UNDER_WAY;
  if (progress == UNDER_WAY) {
    status = RN_NEW(own->allocator, &waiting);
    if (rn_ok(status)) {
      *waiting = (dataset_ops_waiting_t){ctx, own->waiting};
      own->waiting = waiting;
    }
  }
  rn_mutex_unlock(&own->mutex);
  if (progress == NOT_BEGUN)
    begin_making(own, ctx);
  else if (progress == MADE || !rn_ok(status))
    give_handle(ctx, status);
}

static const rn_kernel_def_t rows[] = {
    {.op = "DatasetCardinality", .device = "CPU", .compute = cardinality_compute},
    {.op = "GetOptions", .device = "CPU", .compute = options_compute},
    {.op = "WrapDatasetVariant",
     .device = "CPU",
     .flags = RN_KERNEL_FORWARDS,
     .compute = wrap_compute},
    {.op = "UnwrapDatasetVariant",
     .device = "CPU",
     .flags = RN_KERNEL_FORWARDS,
     .compute = wrap_compute},
    {.op = "DatasetToSingleElement",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(rn_data_expected_t),
     .init = rn_data_expected_init,
     .destroy = rn_data_expected_destroy,
     .compute_async = single_compute},
    {.op = "SaveDataset",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(saver_t),
     .init = saver_init,
     .destroy = saver_destroy,
     .compute_async = saver_compute},
    {.op = "ReduceDataset",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(dataset_ops_reduce_t),
     .init = reduce_init,
     .destroy = reduce_destroy,
     .compute_async = reduce_compute},
    {.op = "OneShotIterator",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(one_shot_t),
     .init = one_shot_init,
     .destroy = one_shot_destroy,
     .compute_async = one_shot_compute},
};
RN_KERNEL_FAMILY(cpu_data_ops, rows);
