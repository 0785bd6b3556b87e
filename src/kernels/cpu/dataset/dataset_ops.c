// Ops that take a dataset and return tensors: cardinality, the single element, reductions.
#include "base/container.h"
#include "kernels/cpu/dataset/drive.h"
#include "kernels/cpu/dataset/expected.h"
#include "kernels/cpu/dataset/rewrite.h"
#include "tensor/tstring.h"

static rn_status_t cardinality_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int64_t) = rn_dataset_cardinality(dataset);
  return RN_OK;
}

static rn_status_t options_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_status_t status = rn_data_options_of(dataset, &text);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t wrap_compute(rn_kernel_ctx_t* ctx) { return rn_forward(ctx, 0, 0); }

// DatasetToSingleElement.
static bool single_step(rn_data_drive_t* drive) {
  rn_kernel_ctx_t* ctx = drive->ctx;
  if (!rn_data_drive_ask(drive)) return false;
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
  rn_data_drive_end(drive, status);
  return false;
}

static void single_compute(rn_kernel_ctx_t* ctx) {
  rn_data_drive_t* drive = rn_data_drive_begin(ctx, 0, 0, single_step);
  if (drive) rn_data_drive_go(drive);
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

static bool saver_step(rn_data_drive_t* drive) {
  if (!rn_data_drive_ask(drive)) return false;
  if (rn_ok(drive->request.status) && !drive->request.is_end) {
    rn_data_row_clear(drive->row, drive->row_count);
    drive->phase = 0;
    return true;
  }
  rn_data_drive_end(drive, drive->request.status);
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
  rn_data_drive_t* drive = rn_data_drive_over(ctx, dataset, 0, saver_step);
  rn_dataset_release(dataset);
  if (drive) rn_data_drive_go(drive);
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

static void reduce_called(rn_data_call_t* call) {
  rn_data_drive_go(RN_CONTAINER_OF(call, rn_data_drive_t, call));
}

static rn_status_t check_reduction(const rn_data_drive_t* drive) {
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

static rn_status_t reduce_begin(rn_data_drive_t* drive) {
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

static bool reduce_step(rn_data_drive_t* drive) {
  rn_kernel_ctx_t* ctx = drive->ctx;
  rn_status_t status = RN_OK;
  if (!rn_data_drive_ask(drive)) return false;
  if (drive->phase == ANSWERED) {
    status = drive->request.status;
    if (rn_ok(status) && drive->request.is_end) {
      const dataset_ops_reduce_t* reduce = ctx->state;
      status = rn_data_expected_check(&reduce->expected, drive->row, drive->state_count);
      for (int32_t i = 0; rn_ok(status) && i < drive->state_count; ++i)
        rn_set_output(ctx, i, &drive->row[i]);
      rn_data_drive_end(drive, status);
      return false;
    }
    drive->phase = CALLED;
    if (rn_ok(status) &&
        !rn_data_call(&drive->call, &drive->func, drive->row, drive->row_count, ctx->step))
      return false;
  }
  if (rn_ok(status)) status = drive->call.status;
  if (!rn_ok(status)) {
    rn_data_drive_end(drive, status);
    return false;
  }
  rn_data_row_clear(drive->row, drive->row_count);
  rn_data_row_move(drive->call.results, drive->row, drive->state_count);
  drive->phase = ASK;
  return true;
}

static void reduce_compute(rn_kernel_ctx_t* ctx) {
  rn_data_drive_t* drive = rn_data_drive_begin(
      ctx, 0, ((const dataset_ops_reduce_t*)ctx->state)->state_count, reduce_step);
  if (!drive) return;
  rn_status_t status = reduce_begin(drive);
  if (rn_ok(status))
    rn_data_drive_go(drive);
  else
    rn_data_drive_end(drive, status);
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
};
RN_KERNEL_FAMILY(cpu_data_ops, rows);
