// _ToDevice and _ToHost move a value between host and device memory of one device. The kernels are
// the same on every device; only the copies differ.
#include "device/device.h"
#include "kernels/kernel_rows.h"

typedef struct move_t {
  // A value of a kernel of this step moves, or a kernel of this step reads it; else it is a feed,
  // or only the client reads it, after the step.
  bool waits;
} move_t;

static rn_status_t move_init(const rn_kernel_init_t* init, void* state) {
  ((move_t*)state)->waits = rn_init_bool(init, "waits");
  return RN_OK;
}

static rn_status_t to_device(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* from = rn_in(ctx, 0);
  rn_device_t* device = ctx->kernel->device;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(from), &out));
  if (device->vtable->feed && !((move_t*)ctx->state)->waits)
    device->vtable->feed(device, from, out);
  else
    device->vtable->copy_from_host(device, from, out, NULL, NULL);
  return RN_OK;
}

static rn_status_t to_host(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* from = rn_in(ctx, 0);
  rn_device_t* device = ctx->kernel->device;
  bool waits = ((move_t*)ctx->state)->waits;
  rn_tensor_t made;
  RN_RETURN_IF_ERROR(rn_device_host_tensor(device, ctx->kernel->host_memory, from->dtype,
                                           rn_tensor_shape(from), &made));
  rn_set_output(ctx, 0, &made);
  if (device->vtable->fetch && !waits)
    device->vtable->fetch(device, from, &ctx->out[0]);
  else
    device->vtable->copy_to_host(device, from, &ctx->out[0], NULL, NULL);
  return waits ? rn_device_wait(device) : RN_OK;
}

// A constant is copied to the device once, when the kernel is made.
static rn_status_t constant_init(const rn_kernel_init_t* init, void* state) {
  rn_tensor_t* constant = state;
  const rn_tensor_t* value = rn_init_attr(init, "value")->tensor;
  if (!value || !rn_dtype_is_plain(value->dtype))
    return rn_unimplemented("The device %.*s has no constants of this type",
                            RN_STR_ARGS(init->device_name));
  RN_RETURN_IF_ERROR(
      rn_tensor_create(init->device_memory, value->dtype, rn_tensor_shape(value), constant));
  init->device->vtable->copy_from_host(init->device, value, constant, NULL, NULL);
  return rn_device_wait(init->device);
}

static void constant_destroy(void* state) { rn_tensor_clear(state); }

static rn_status_t constant(rn_kernel_ctx_t* ctx) {
  rn_tensor_t copy = {0};
  RN_RETURN_IF_ERROR(rn_tensor_share(ctx->state, &copy));
  rn_set_output(ctx, 0, &copy);
  return RN_OK;
}

// The null device continues steps on its own thread, which must not wait for itself.
static void on_host(void* arg, rn_status_t status) { rn_done(arg, status); }

static void to_host_later(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* from = rn_in(ctx, 0);
  rn_device_t* device = ctx->kernel->device;
  rn_tensor_t* out = NULL;
  rn_status_t status = rn_output(ctx, 0, rn_tensor_shape(from), &out);
  if (rn_ok(status))
    device->vtable->copy_to_host(device, from, out, on_host, ctx);
  else
    rn_done(ctx, status);
}

static const rn_kernel_def_t rows[] = {
    {.op = "_ToDevice",
     .device = "DEFAULT",
     .types = {{"T", RN_TYPES_PLAIN}},
     .host_args = RN_HOST_ARGS("input"),
     .flags = RN_KERNEL_ISSUES,
     .state_size = sizeof(move_t),
     .init = move_init,
     .compute = to_device},
    {.op = "_ToHost",
     .device = "DEFAULT",
     .types = {{"T", RN_TYPES_PLAIN}},
     .host_args = RN_HOST_ARGS("output"),
     .flags = RN_KERNEL_ISSUES,
     .state_size = sizeof(move_t),
     .init = move_init,
     .compute = to_host},
    {.op = "Const",
     .device = "DEFAULT",
     .types = {{"dtype", RN_TYPES_PLAIN}},
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_REPLAYS,
     .state_size = sizeof(rn_tensor_t),
     .init = constant_init,
     .destroy = constant_destroy,
     .compute = constant},
    {.op = "_ToHost",
     .device = "NULL",
     .host_args = RN_HOST_ARGS("output"),
     .compute_async = to_host_later},
};
RN_KERNEL_FAMILY(move, rows);
