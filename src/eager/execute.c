// Runs an op: looks up its kernel, calls it on values, and wraps the results in handles.
#include "base/denormals.h"
#include "base/log.h"
#include "base/outcome.h"
#include "eager/internal.h"

// A call of a kernel that may end on another thread.
typedef struct execute_waiting_t {
  rn_kernel_ctx_t ctx;  // first
  rn_outcome_t outcome;
} execute_waiting_t;

static void on_done(rn_kernel_ctx_t* ctx, rn_status_t status) {
  rn_outcome_set(&((execute_waiting_t*)ctx)->outcome, status);
}

static rn_status_t run_async(const rn_kernel_ctx_t* ctx) {
  execute_waiting_t waiting = {.ctx = *ctx};
  waiting.ctx.done = on_done;
  rn_outcome_init(&waiting.outcome);
  ctx->kernel->def->compute_async(&waiting.ctx);
  return rn_outcome_wait(&waiting.outcome);
}

static rn_status_t run_kernel(rn_eager_t* eager, const rn_kernel_t* kernel, rn_cancel_t* cancel,
                              rn_tensor_t* const* inputs, rn_tensor_t* outputs) {
  rn_step_t step = eager->step;
  if (cancel) step.cancel = cancel;
  if (rn_is_cancelled(step.cancel)) return rn_cancelled("Operation was cancelled");
  rn_kernel_ctx_t ctx = {
      .kernel = kernel, .state = kernel->state, .in = inputs, .out = outputs, .step = &step};
  uint64_t before = rn_denormals_flush();
  rn_status_t status = kernel->def->compute ? kernel->def->compute(&ctx) : run_async(&ctx);
  rn_denormals_restore(before);
  return status;
}

static rn_status_t copy_variable(rn_variable_t* variable, rn_device_t* device, rn_tensor_t* out) {
  rn_mutex_lock(&variable->mutex);
  rn_status_t status =
      rn_tensor_is_set(&variable->value)
          ? rn_device_duplicate(device, &variable->value, out)
          : rn_failed_precondition("attempt to use a tensor with an uninitialized value");
  rn_mutex_unlock(&variable->mutex);
  return status;
}

// Copies results that a kernel only borrowed, and replaces a reference by its value.
static rn_status_t keep_outputs(const rn_eager_kernel_t* kernel, rn_tensor_t* outputs) {
  for (int32_t i = 0; i < kernel->output_count; ++i) {
    if (outputs[i].buffer && !outputs[i].is_ref) continue;
    if (!outputs[i].is_ref && !rn_tensor_is_set(&outputs[i]))
      return rn_internal("Missing %d-th output from {{node %s}}", i, kernel->def->name);
    rn_tensor_t kept = {0};
    rn_device_t* memory = kernel->constant ? NULL : rn_eager_output_memory(kernel, i);
    if (outputs[i].is_ref) {
      RN_RETURN_IF_ERROR(copy_variable(outputs[i].data, kernel->device, &kept));
    } else {
      RN_RETURN_IF_ERROR(memory ? rn_device_duplicate(memory, &outputs[i], &kept)
                                : rn_tensor_keep(&outputs[i], rn_allocator_default(), &kept));
      rn_tensor_clear(&outputs[i]);
    }
    outputs[i] = kept;
  }
  return RN_OK;
}

// Only ops that talk to other tasks may return the code that means a lost task, because clients
// repair their cluster when they see it.
static rn_status_t not_unavailable(const rn_op_def_t* def, rn_status_t status) {
  if (rn_status_code(status) != RN_CODE_UNAVAILABLE || (def->flags & RN_OP_DISTRIBUTED))
    return status;
  rn_status_t replaced = rn_internal(
      "%s\nExecuting non-communication op <%s> originally returned UnavailableError, and was "
      "replaced by InternalError to avoid invoking TF network error handling logic.",
      rn_status_message(status), def->name);
  rn_status_free(status);
  return replaced;
}

static rn_status_t run(rn_eager_t* eager, const rn_eager_kernel_t* kernel, rn_cancel_t* cancel,
                       rn_tensor_t* const* inputs, rn_tensor_t* outputs) {
  if (kernel->kernel)
    return not_unavailable(kernel->def, run_kernel(eager, kernel->kernel, cancel, inputs, outputs));
  if (kernel->instance) {
    rn_step_t step = eager->step;
    if (cancel) step.cancel = cancel;
    // The function has its own container for per-step resources.
    rn_function_call_t call = {
        .cancel = step.cancel, .args = (const rn_tensor_t* const*)inputs, .results = outputs};
    return rn_function_run_and_wait(kernel->functions, kernel->instance, &call);
  }
  return kernel->constant ? rn_tensor_share(kernel->constant, outputs) : RN_OK;
}

static void note(rn_eager_t* eager, const rn_eager_kernel_t* kernel, const rn_tensor_t* outputs,
                 int64_t start_ns) {
  rn_node_stats_t stats = {.node = rn_str(kernel->def->name),
                           .op = kernel->def->name,
                           .device = kernel->device->name,
                           .start_ns = start_ns,
                           .end_ns = eager->step.env->now_ns(eager->step.env->self)};
  rn_step_stats_add(&eager->stats, stats, outputs, kernel->output_count);
}

rn_status_t rn_eager_run(rn_eager_t* eager, const rn_eager_kernel_t* kernel,
                         rn_eager_cancel_t* cancel, rn_tensor_t* const* inputs,
                         rn_tensor_t* outputs) {
  bool has_stats = atomic_load_explicit(&eager->has_stats, memory_order_relaxed);
  int64_t start_ns = has_stats ? eager->step.env->now_ns(eager->step.env->self) : 0;
  rn_status_t status = run(eager, kernel, cancel ? &cancel->cancel : NULL, inputs, outputs);
  if (rn_ok(status)) status = keep_outputs(kernel, outputs);
  if (rn_ok(status) && kernel->output_places && kernel->constant)
    status = rn_eager_move_outputs(kernel, outputs);
  if (has_stats && rn_ok(status)) note(eager, kernel, outputs, start_ns);
  if (!rn_ok(status))
    for (int32_t i = 0; i < kernel->output_count; ++i) {
      if (outputs[i].is_ref) outputs[i] = (rn_tensor_t){0};
      rn_tensor_clear(&outputs[i]);
    }
  return status;
}

static void release_handles(rn_eager_handle_t** handles, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    rn_eager_handle_release(handles[i]);
    handles[i] = NULL;
  }
}

static rn_status_t make_handles(rn_eager_t* eager, const rn_eager_kernel_t* kernel,
                                rn_eager_sync_t* sync, rn_eager_handle_t** out) {
  for (int32_t i = 0; i < kernel->output_count; ++i) {
    const rn_result_place_t* place = kernel->output_places ? &kernel->output_places[i] : NULL;
    rn_device_t* device = place ? place->device : kernel->device;
    rn_status_t status = rn_eager_handle_new(eager, device, kernel->output_types[i], sync, &out[i]);
    if (!rn_ok(status)) {
      release_handles(out, i);
      return status;
    }
    if (place) out[i]->memory = place->memory;
  }
  return RN_OK;
}

// Arrays of a call; small ones are on the stack.
typedef struct scratch_t {
  rn_allocator_t allocator;
  size_t input_count, output_count;
  rn_tensor_t** inputs;
  rn_tensor_t* outputs;
  rn_tensor_t* few_inputs[RN_EAGER_FEW];
  rn_tensor_t few_outputs[RN_EAGER_FEW];
} scratch_t;

static void scratch_clear(scratch_t* scratch) {
  if (scratch->inputs != scratch->few_inputs)
    RN_FREE_ARRAY(scratch->allocator, scratch->inputs, scratch->input_count);
  if (scratch->outputs != scratch->few_outputs)
    RN_FREE_ARRAY(scratch->allocator, scratch->outputs, scratch->output_count);
}

static rn_status_t scratch_init(scratch_t* scratch, rn_allocator_t allocator, int32_t inputs,
                                int32_t outputs) {
  scratch->allocator = allocator;
  scratch->input_count = (size_t)inputs;
  scratch->output_count = (size_t)outputs;
  scratch->inputs = scratch->few_inputs;
  scratch->outputs = scratch->few_outputs;
  rn_status_t status = RN_OK;
  if (inputs > RN_EAGER_FEW) {
    scratch->inputs = NULL;
    status = RN_NEW_ARRAY(allocator, (size_t)inputs, &scratch->inputs);
  }
  if (outputs > RN_EAGER_FEW) {
    scratch->outputs = NULL;
    if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)outputs, &scratch->outputs);
  } else {
    for (int32_t i = 0; i < outputs; ++i) scratch->outputs[i] = (rn_tensor_t){0};
  }
  if (!rn_ok(status)) scratch_clear(scratch);
  return status;
}

rn_status_t rn_eager_values(const rn_eager_kernel_t* kernel, rn_eager_handle_t* const* handles,
                            rn_tensor_t** out, rn_tensor_t** out_copies) {
  bool is_elsewhere = false;
  *out_copies = NULL;
  for (int32_t i = 0; i < kernel->input_count; ++i) {
    const rn_tensor_t* value = NULL;
    RN_RETURN_IF_ERROR(rn_eager_handle_tensor(handles[i], &value));
    out[i] = (rn_tensor_t*)(uintptr_t)value;  // kernels only read it
    is_elsewhere |= handles[i]->memory != NULL;
  }
  is_elsewhere |= kernel->inputs_far != NULL;
  return is_elsewhere ? rn_eager_move_inputs(kernel, handles, out, out_copies) : RN_OK;
}

static rn_status_t execute_now(rn_eager_op_t* op, const rn_eager_kernel_t* kernel,
                               rn_eager_handle_t** outputs) {
  rn_eager_t* eager = op->eager;
  scratch_t scratch;
  rn_tensor_t* copies;
  RN_RETURN_IF_ERROR(
      scratch_init(&scratch, eager->allocator, op->input_count, kernel->output_count));
  rn_status_t status = rn_eager_values(kernel, op->inputs, scratch.inputs, &copies);
  if (rn_ok(status)) status = make_handles(eager, kernel, NULL, outputs);
  if (rn_ok(status)) {
    status = rn_eager_run(eager, kernel, op->cancel, scratch.inputs, scratch.outputs);
    if (rn_ok(status))
      for (int32_t i = 0; i < kernel->output_count; ++i) outputs[i]->tensor = scratch.outputs[i];
    else
      release_handles(outputs, kernel->output_count);
  }
  rn_eager_copies_free(kernel, copies);
  scratch_clear(&scratch);
  return status;
}

static rn_status_t execute_later(rn_eager_op_t* op, rn_eager_kernel_t* kernel,
                                 rn_eager_executor_t* executor, rn_eager_handle_t** outputs) {
  RN_RETURN_IF_ERROR(make_handles(op->eager, kernel, rn_eager_executor_sync(executor), outputs));
  rn_status_t status =
      rn_eager_executor_add(executor, op->eager, kernel, op->cancel, op->inputs, outputs);
  if (!rn_ok(status)) release_handles(outputs, kernel->output_count);
  return status;
}

// The device of the first resource that |op| uses; NULL if it uses none.
static rn_device_t* device_of_resources(const rn_eager_op_t* op) {
  rn_device_t* device = NULL;
  for (int32_t i = 0; i < op->input_count && !device; ++i) device = rn_eager_resource_device(op, i);
  return device;
}

// Among several devices, an op with a kernel runs where its resource is, whatever device it names.
// Without a device, it goes to the preferred one.
static rn_status_t find_device(rn_eager_op_t* op) {
  rn_eager_t* eager = op->eager;
  if (__builtin_expect(eager->has_far, 0) &&
      (op->def->role == RN_ROLE_CONSTANT || rn_eager_has_kernel(op->def))) {
    op->device = device_of_resources(op);
    if (!op->device && op->device_name.size == 0) op->device = eager->preferred;
  }
  if (op->device) return RN_OK;
  if (op->device_name.size == 0) {
    op->device = eager->cpu;
    return RN_OK;
  }
  return rn_eager_device(eager, rn_strbuf_view(&op->device_name), &op->device);
}

// TFE_ContextDevicePlacementPolicy.
enum { EXPLICIT = 0, WARN = 1, SILENT = 2, SILENT_FOR_INT32 = 3 };

// Input |i| is on |found|, and |kernel| reads it on |wanted|: may it be copied?
static rn_status_t check_copy(const rn_eager_op_t* op, const rn_eager_kernel_t* kernel, int32_t i,
                              const rn_device_t* found, const rn_device_t* wanted) {
  int policy = rn_eager_policy(op->eager);
  if (policy == SILENT_FOR_INT32 && op->inputs[i]->dtype == RN_INT32) return RN_OK;
  if (policy == WARN) {
    rn_log(op->eager->step.env, RN_LOG_WARNING,
           "before computing %s input #%d was expected to be on %.*s but is actually on %.*s "
           "(operation running on %.*s). This triggers a copy which can be a performance "
           "bottleneck.",
           kernel->def->name, i, RN_STR_ARGS(wanted->name), RN_STR_ARGS(found->name),
           RN_STR_ARGS(kernel->device->name));
    return RN_OK;
  }
  return rn_invalid_argument(
      "Tensors on conflicting devices: cannot compute %s as input #%d was expected to be on %.*s "
      "but is actually on %.*s (operation running on %.*s) Tensors can be copied explicitly "
      "using: `with tf.device(device_name): x = tf.identity(x)` or transparently copied by using "
      "tf.config.experimental.set_device_policy('silent'). Copying tensors between devices may "
      "slow down your model",
      kernel->def->name, i, RN_STR_ARGS(wanted->name), RN_STR_ARGS(found->name),
      RN_STR_ARGS(kernel->device->name));
}

// Whether inputs on other devices may be copied, as the thread's policy says. A function takes its
// arguments where they are, and an identity is how a program asks for a copy.
static rn_status_t check_placement(const rn_eager_op_t* op, const rn_eager_kernel_t* kernel) {
  if (rn_eager_policy(op->eager) == SILENT || kernel->input_devices) return RN_OK;
  if (op->def->role == RN_ROLE_IDENTITY) return RN_OK;
  const bool* is_host = kernel->kernel ? kernel->kernel->input_is_host : NULL;
  for (int32_t i = 0; i < op->input_count; ++i) {
    const rn_eager_handle_t* input = op->inputs[i];
    const rn_device_t *wanted = kernel->device, *found = input->device;
    if (!found || (!found->is_host && !input->memory)) found = op->eager->cpu;
    if (!wanted->is_host && (!is_host || is_host[i])) wanted = op->eager->cpu;
    if (found == wanted || input->dtype == RN_RESOURCE) continue;
    RN_RETURN_IF_ERROR(check_copy(op, kernel, i, found, wanted));
  }
  return RN_OK;
}

static rn_status_t execute_with(rn_eager_op_t* op, rn_eager_kernel_t* kernel,
                                rn_eager_handle_t** outputs, int32_t* inout_count) {
  rn_eager_t* eager = op->eager;
  bool has_policy =
      atomic_load_explicit(&eager->has_threads, memory_order_relaxed) || eager->policy != SILENT;
  if (has_policy) RN_RETURN_IF_ERROR(check_placement(op, kernel));
  if (*inout_count < kernel->output_count)
    return rn_invalid_argument("Expecting %d outputs, but *num_retvals is %d", kernel->output_count,
                               *inout_count);
  if (atomic_load_explicit(&eager->is_logging, memory_order_relaxed))
    rn_eager_log(eager, op->def->name, kernel->device);
  rn_eager_executor_t* executor = rn_eager_async_executor(eager);
  RN_RETURN_IF_ERROR(executor ? execute_later(op, kernel, executor, outputs)
                              : execute_now(op, kernel, outputs));
  *inout_count = kernel->output_count;
  if (atomic_load_explicit(&eager->tape_count, memory_order_relaxed) == 0) return RN_OK;
  rn_status_t status = rn_eager_record(eager, kernel, op->inputs, outputs);
  if (!rn_ok(status)) release_handles(outputs, kernel->output_count);
  return status;
}

// The device has no kernel for the op: only an op that insists on its device fails.
static rn_status_t check_fallback(const rn_eager_op_t* op) {
  bool insists = op->device_name.size > 0 && !op->eager->is_soft;
  return insists ? rn_eager_no_device(op->eager, rn_strbuf_view(&op->device_name), true) : RN_OK;
}

static rn_status_t execute(rn_eager_op_t* op, rn_eager_handle_t** outputs, int32_t* inout_count) {
  rn_eager_kernel_t* kernel = NULL;
  if (op->has_special || atomic_load_explicit(&op->eager->has_custom, memory_order_relaxed)) {
    bool is_done = false;
    RN_RETURN_IF_ERROR(rn_eager_execute_special(op, outputs, inout_count, &is_done));
    if (is_done) return RN_OK;
  }
  RN_RETURN_IF_ERROR(find_device(op));
  RN_RETURN_IF_ERROR(rn_eager_kernel_get(op, op->device, &kernel));
  rn_status_t status = RN_OK;
  if (__builtin_expect(kernel->device != kernel->asked, 0)) status = check_fallback(op);
  if (rn_ok(status)) status = execute_with(op, kernel, outputs, inout_count);
  if (op->is_anonymous) rn_eager_kernel_release(kernel);
  return status;
}

rn_status_t rn_eager_execute(rn_eager_op_t* op, rn_eager_handle_t** outputs, int32_t* inout_count) {
  if (!rn_ok(op->status)) return rn_status_copy(op->status);
  if (!op->def) return rn_failed_precondition("The op has no name: it could not be reset");
  atomic_fetch_add(&op->eager->running, 1);
  rn_status_t status = execute(op, outputs, inout_count);
  atomic_fetch_sub(&op->eager->running, 1);
  return status;
}
