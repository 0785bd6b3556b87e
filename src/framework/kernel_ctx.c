// The functions of a kernel's context: outputs, forwarding, scratch memory.
#include "framework/kernel.h"

static rn_allocator_t output_memory(const rn_kernel_ctx_t* ctx, int i) {
  const rn_kernel_t* kernel = ctx->kernel;
  return kernel->output_is_host[i] ? kernel->host_memory : kernel->device_memory;
}

static inline bool is_planned(const rn_kernel_ctx_t* ctx, int i) {
  return i < 64 && (ctx->planned >> i & 1);
}

static inline bool has_shape(const rn_tensor_t* tensor, rn_shape_t shape) {
  if (tensor->rank != shape.rank) return false;
  const int64_t* dims = rn_tensor_dims(tensor);
  for (int d = 0; d < shape.rank; ++d)
    if (dims[d] != shape.dims[d]) return false;
  return true;
}

static rn_status_t new_output(rn_kernel_ctx_t* ctx, int i, rn_shape_t shape, rn_tensor_t** out) {
  rn_tensor_t* tensor = &ctx->out[i];
  rn_tensor_clear(tensor);
  rn_dtype_t dtype = rn_dtype_base(ctx->kernel->output_types[i]);
  RN_RETURN_IF_ERROR(rn_tensor_create(output_memory(ctx, i), dtype, shape, tensor));
  *out = tensor;
  return RN_OK;
}

rn_status_t rn_output(rn_kernel_ctx_t* ctx, int i, rn_shape_t shape, rn_tensor_t** out) {
  if (is_planned(ctx, i)) {
    if (has_shape(&ctx->out[i], shape)) {
      *out = &ctx->out[i];
      return RN_OK;
    }
    return rn_internal("Output %d of node '%.*s' (%s) has another shape than was inferred for it",
                       i, RN_STR_ARGS(ctx->kernel->node), ctx->kernel->op->name);
  }
  return new_output(ctx, i, shape, out);
}

rn_status_t rn_output_in_place(rn_kernel_ctx_t* ctx, int i, uint64_t candidates, rn_shape_t shape,
                               rn_tensor_t** out) {
  if (is_planned(ctx, i)) return rn_output(ctx, i, shape, out);
  rn_dtype_t dtype = rn_dtype_base(ctx->kernel->output_types[i]);
  uint64_t dying = ctx->dying & candidates;
  while (dying) {
    int j = __builtin_ctzll(dying);
    dying &= dying - 1;
    rn_tensor_t* input = ctx->in[j];
    if (input->is_ref || !rn_tensor_is_exclusive(input) || input->data != input->buffer->data ||
        input->dtype != dtype || !has_shape(input, shape) ||
        ctx->kernel->input_is_host[j] != ctx->kernel->output_is_host[i])
      continue;
    // The input still points to the bytes, so the kernel can read them; the output owns the buffer.
    rn_tensor_clear(&ctx->out[i]);
    RN_RETURN_IF_ERROR(rn_tensor_share(input, &ctx->out[i]));
    *out = &ctx->out[i];
    return RN_OK;
  }
  return new_output(ctx, i, shape, out);
}

rn_status_t rn_output_like(rn_kernel_ctx_t* ctx, int i, int j, rn_tensor_t** out) {
  uint64_t candidate = j < 64 ? UINT64_C(1) << j : 0;
  return rn_output_in_place(ctx, i, candidate, rn_tensor_shape(ctx->in[j]), out);
}

// The output must be in planned memory, so a tensor that the kernel would share is copied there.
static rn_status_t copy_to_planned(rn_kernel_ctx_t* ctx, int i, const rn_tensor_t* from,
                                   rn_shape_t shape) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, shape, &out));
  if (out->dtype != from->dtype || out->count != from->count)
    return rn_internal("Output %d of node '%.*s' (%s) has another type or size than was inferred",
                       i, RN_STR_ARGS(ctx->kernel->node), ctx->kernel->op->name);
  if (out->data != from->data) memcpy(out->data, from->data, rn_tensor_bytes(from));
  return RN_OK;
}

rn_status_t rn_forward(rn_kernel_ctx_t* ctx, int i, int j) {
  if (is_planned(ctx, i)) return copy_to_planned(ctx, i, ctx->in[j], rn_tensor_shape(ctx->in[j]));
  rn_tensor_clear(&ctx->out[i]);
  return rn_tensor_share(ctx->in[j], &ctx->out[i]);
}

rn_status_t rn_forward_reshaped(rn_kernel_ctx_t* ctx, int i, int j, rn_shape_t shape) {
  if (is_planned(ctx, i)) return copy_to_planned(ctx, i, ctx->in[j], shape);
  rn_tensor_clear(&ctx->out[i]);
  return rn_tensor_reshape(ctx->in[j], ctx->in[j]->dtype, shape, &ctx->out[i]);
}

void rn_set_output(rn_kernel_ctx_t* ctx, int i, rn_tensor_t* tensor) {
  rn_tensor_t* out = &ctx->out[i];
  if (is_planned(ctx, i) && out->dtype == tensor->dtype && rn_tensor_same_shape(out, tensor)) {
    memcpy(out->data, tensor->data, rn_tensor_bytes(tensor));
    rn_tensor_clear(tensor);
    return;
  }
  rn_tensor_clear(&ctx->out[i]);
  ctx->out[i] = *tensor;
  *tensor = (rn_tensor_t){0};
}

rn_status_t rn_temp(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, rn_shape_t shape, rn_tensor_t* out) {
  return rn_tensor_create(ctx->kernel->device_memory, dtype, shape, out);
}

// A reference is a tensor whose data points to the variable. It holds no reference count: the
// kernel that made it keeps the variable alive, and the plan keeps the kernel alive.
rn_variable_t* rn_in_variable(const rn_kernel_ctx_t* ctx, int i) {
  return ctx->in[i]->is_ref ? (rn_variable_t*)ctx->in[i]->data : NULL;
}

void rn_set_output_ref(rn_kernel_ctx_t* ctx, int i, rn_variable_t* variable) {
  rn_tensor_clear(&ctx->out[i]);
  ctx->out[i] = (rn_tensor_t){.data = variable, .dtype = (uint8_t)variable->dtype, .is_ref = 1};
}

const rn_attr_value_t* rn_init_attr(const rn_kernel_init_t* init, const char* name) {
  static const rn_attr_value_t none = {0};
  int index = rn_op_attr_index(init->op, rn_str(name));
  return index < 0 ? &none : &init->attrs[index];
}

rn_status_t rn_step_stopped(const rn_step_t* step) {
  if (rn_is_cancelled(step->cancel)) return rn_cancelled("Operation was cancelled");
  bool is_late = step->deadline_ns && step->env->now_ns(step->env->self) > step->deadline_ns;
  return is_late ? rn_deadline_exceeded("Timed out waiting for notification") : RN_OK;
}

rn_status_t rn_step_get_resources(rn_step_t* step, rn_resources_t** out) {
  *out = step->step_resources;
  if (*out) return RN_OK;
  rn_resources_t* made = NULL;
  RN_RETURN_IF_ERROR(rn_resources_create(step->env->allocator, &made));
  rn_resources_t* seen = NULL;
  if (__atomic_compare_exchange_n((rn_resources_t**)&step->step_resources, &seen, made, false,
                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    *out = made;
  } else {
    rn_resources_destroy(made);
    *out = seen;
  }
  return RN_OK;
}
