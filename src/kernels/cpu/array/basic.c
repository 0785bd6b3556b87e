// Kernels that pass values through: identities, constants, placeholders, and ops that only order
// others.
#include "framework/kernel.h"
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"

static rn_status_t forward_all(rn_kernel_ctx_t* ctx) {
  for (int i = 0; i < ctx->kernel->output_count; ++i) RN_RETURN_IF_ERROR(rn_forward(ctx, i, i));
  return RN_OK;
}

static rn_status_t no_op(rn_kernel_ctx_t* ctx) {
  (void)ctx;
  return RN_OK;
}

typedef struct basic_constant_t {
  rn_tensor_t value;
} basic_constant_t;

static rn_status_t constant_init(const rn_kernel_init_t* init, void* state) {
  const rn_attr_value_t* value = rn_init_attr(init, "value");
  if (!value->tensor) return rn_invalid_argument("Const has no value");
  rn_dtype_t dtype = rn_init_type(init, "dtype");
  if (value->tensor->dtype != dtype)
    return rn_invalid_argument("Type mismatch between value (%s) and dtype (%s)",
                               rn_dtype_name(value->tensor->dtype), rn_dtype_name(dtype));
  return rn_tensor_keep(value->tensor, init->host_memory, &((basic_constant_t*)state)->value);
}

static void constant_destroy(void* state) { rn_tensor_clear(&((basic_constant_t*)state)->value); }

static rn_status_t constant_compute(rn_kernel_ctx_t* ctx) {
  rn_tensor_t copy = {0};
  RN_RETURN_IF_ERROR(rn_tensor_share(&((basic_constant_t*)ctx->state)->value, &copy));
  rn_set_output(ctx, 0, &copy);
  return RN_OK;
}

typedef struct placeholder_t {
  rn_dtype_t dtype;
  int32_t rank;
  int64_t dims[RN_MAX_RANK];
} placeholder_t;

static rn_status_t placeholder_init(const rn_kernel_init_t* init, void* state) {
  placeholder_t* placeholder = state;
  rn_shape_t shape = rn_init_attr(init, "shape")->shape;
  placeholder->dtype = rn_init_type(init, "dtype");
  placeholder->rank = shape.rank;
  if (shape.rank > 0)
    memcpy(placeholder->dims, shape.dims, (size_t)shape.rank * sizeof *placeholder->dims);
  return RN_OK;
}

// Runs only if the placeholder was not fed.
static rn_status_t placeholder_compute(rn_kernel_ctx_t* ctx) {
  const placeholder_t* placeholder = ctx->state;
  rn_shape_t shape = {placeholder->rank, placeholder->dims};
  if (placeholder->rank <= 0)
    return rn_invalid_argument("You must feed a value for placeholder tensor '%.*s' with dtype %s",
                               RN_STR_ARGS(ctx->kernel->node), rn_dtype_name(placeholder->dtype));
  return rn_invalid_argument(
      "You must feed a value for placeholder tensor '%.*s' with dtype %s and shape %s",
      RN_STR_ARGS(ctx->kernel->node), rn_dtype_name(placeholder->dtype), rn_shape_text(shape).text);
}

static rn_status_t prevent_gradient(rn_kernel_ctx_t* ctx) { return rn_forward(ctx, 0, 0); }

#define FORWARDING(name) \
  { .op = name, .device = "CPU", .flags = RN_KERNEL_FORWARDS, .compute = forward_all }

static const rn_kernel_def_t rows[] = {
    FORWARDING("Identity"),
    FORWARDING("IdentityN"),
    FORWARDING("StopGradient"),
    FORWARDING("_EagerConst"),
    FORWARDING("DebugGradientIdentity"),
    FORWARDING("PlaceholderWithDefault"),
    FORWARDING("LoopCond"),
    {.op = "PreventGradient",
     .device = "CPU",
     .flags = RN_KERNEL_FORWARDS,
     .compute = prevent_gradient},
    {.op = "NoOp", .device = "CPU", .compute = no_op},
    {.op = "ControlTrigger", .device = "CPU", .compute = no_op},
    {.op = "SyncDevice", .device = "CPU", .compute = no_op},
    // The executor handles these itself; the rows declare that the device supports them.
    {.op = "Switch", .device = "CPU", .compute = no_op},
    {.op = "Merge", .device = "CPU", .compute = no_op},
    {.op = "Enter", .device = "CPU", .compute = no_op},
    {.op = "Exit", .device = "CPU", .compute = no_op},
    {.op = "NextIteration", .device = "CPU", .compute = no_op},
    {.op = "RefSwitch", .device = "CPU", .compute = no_op},
    {.op = "RefMerge", .device = "CPU", .compute = no_op},
    {.op = "RefEnter", .device = "CPU", .compute = no_op},
    {.op = "RefExit", .device = "CPU", .compute = no_op},
    {.op = "RefNextIteration", .device = "CPU", .compute = no_op},
    {.op = "Const",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(basic_constant_t),
     .init = constant_init,
     .destroy = constant_destroy,
     .compute = constant_compute},
    {.op = "Placeholder",
     .device = "CPU",
     .state_size = sizeof(placeholder_t),
     .init = placeholder_init,
     .compute = placeholder_compute},
    {.op = "PlaceholderV2",
     .device = "CPU",
     .state_size = sizeof(placeholder_t),
     .init = placeholder_init,
     .compute = placeholder_compute},
};
RN_KERNEL_FAMILY(cpu_basic, rows);
