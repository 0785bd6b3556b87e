// What a plug-in's kernel may query while it runs.
#include "capi/plugin/kernel.h"
#include "capi/plugin/platform.h"
#include "device/device.h"
#include "graph/graph.h"
#include "proto/resource_handle.pb.h"
#include "tensor/tensor_proto.h"

void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status) {
  if (!ctx) return;
  // A NULL status means that the plug-in could not allocate one.
  rn_status_t failure = status ? rn_capi_status_of(status) : rn_out_of_memory();
  if (rn_ok(failure)) failure = rn_internal("A kernel failed and gave no reason");
  rn_mutex_lock(&ctx->mutex);
  ctx->failure = rn_status_join(ctx->failure, failure);
  rn_mutex_unlock(&ctx->mutex);
}

int TF_NumInputs(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx->kernel->input_count : 0; }

int TF_NumOutputs(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx->kernel->output_count : 0; }

static rn_status_t check_input(const TF_OpKernelContext* ctx, int i) {
  if (!ctx) return rn_invalid_argument("The context of a kernel is NULL");
  if (i < 0 || i >= ctx->ctx->kernel->input_count) {
    return rn_out_of_range("input index out of range");
  }
  return RN_OK;
}

static rn_status_t check_output(const TF_OpKernelContext* ctx, int i) {
  if (!ctx) return rn_invalid_argument("The context of a kernel is NULL");
  if (i < 0 || i >= ctx->ctx->kernel->output_count) {
    return rn_out_of_range("output index out of range");
  }
  return RN_OK;
}

// The input's value; for a reference, the variable's value.
static rn_status_t get_input(const rn_kernel_ctx_t* ctx, int i, TF_Tensor** out) {
  rn_variable_t* variable = rn_in_variable(ctx, i);
  if (!variable) return rn_capi_tensor_keep(rn_in(ctx, i), out);
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = rn_tensor_is_set(&variable->value)
                           ? rn_capi_tensor_keep(&variable->value, out)
                           : rn_failed_precondition("Attempting to use uninitialized value %.*s",
                                                    RN_STR_ARGS(variable->name));
  rn_mutex_unlock(&variable->mutex);
  return status;
}

void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor, TF_Status* status) {
  if (tensor) *tensor = NULL;
  rn_status_t outcome = tensor ? check_input(ctx, i) : RN_CAPI_NULL("tensor");
  if (rn_ok(outcome)) outcome = get_input(ctx->ctx, i, tensor);
  rn_capi_set(status, outcome);
}

void TF_InputRange(TF_OpKernelContext* ctx, const char* name, TF_InputRange_Args* args) {
  if (!args) return;
  args->start = args->stop = -1;
  if (!ctx || !name) {
    rn_capi_set(args->status, RN_CAPI_NULL(ctx ? "name" : "ctx"));
    return;
  }
  const rn_plugin_state_t* state = ctx->ctx->state;
  const rn_op_def_t* op = ctx->ctx->kernel->op;
  for (int i = 0; i < op->input_count; ++i) {
    if (strcmp(op->inputs[i].name, name) != 0) continue;
    args->start = state->arg_starts[i];
    args->stop = state->arg_starts[i + 1];
    rn_capi_set(args->status, RN_OK);
    return;
  }
  rn_capi_set(args->status, rn_invalid_argument("Unknown input name: %s", name));
}

TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index) {
  rn_status_t status = check_input(ctx, index);
  if (rn_ok(status)) return (TF_DataType)ctx->ctx->kernel->input_types[index];
  rn_status_free(status);
  return (TF_DataType)RN_INVALID;
}

TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i) {
  rn_status_t status = check_output(ctx, i);
  if (rn_ok(status)) return (TF_DataType)ctx->ctx->kernel->output_types[i];
  rn_status_free(status);
  return (TF_DataType)RN_INVALID;
}

static rn_status_t check_type(const TF_OpKernelContext* ctx, int i, rn_dtype_t dtype) {
  rn_dtype_t expected = rn_dtype_base(ctx->ctx->kernel->output_types[i]);
  if (dtype == expected) return RN_OK;
  return rn_invalid_argument("Output %d of node '%.*s' (%s) must be of type %s, not %s", i,
                             RN_STR_ARGS(ctx->ctx->kernel->node), ctx->ctx->kernel->op->name,
                             rn_dtype_name(expected), rn_dtype_name(dtype));
}

void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor, TF_Status* status) {
  rn_tensor_t kept = {0};
  rn_status_t outcome = tensor ? check_output(ctx, i) : RN_CAPI_NULL("tensor");
  if (rn_ok(outcome)) outcome = check_type(ctx, i, tensor->tensor.dtype);
  if (rn_ok(outcome)) outcome = rn_tensor_keep(&tensor->tensor, rn_capi_allocator(), &kept);
  if (rn_ok(outcome)) rn_set_output(ctx->ctx, i, &kept);
  rn_capi_set(status, outcome);
}

TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  TF_Tensor* tensor = NULL;
  rn_status_t outcome = check_output(ctx, i);
  if (rn_ok(outcome) && rn_tensor_is_set(&ctx->ctx->out[i])) {
    outcome = rn_capi_tensor_keep(&ctx->ctx->out[i], &tensor);
  }
  rn_capi_set(status, outcome);
  return tensor;
}

TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index, TF_DataType dtype,
                             const int64_t* dims, int num_dims, size_t len, TF_Status* status) {
  (void)len;  // follows from type and shape
  TF_Tensor* handle = NULL;
  rn_tensor_t* output = NULL;
  rn_shape_t shape;
  rn_status_t outcome = check_output(context, index);
  if (rn_ok(outcome)) outcome = check_type(context, index, (rn_dtype_t)dtype);
  if (rn_ok(outcome)) outcome = rn_capi_shape(dims, num_dims, &shape);
  if (rn_ok(outcome)) outcome = rn_output(context->ctx, index, shape, &output);
  if (rn_ok(outcome)) outcome = rn_capi_tensor_keep(output, &handle);
  rn_capi_set(status, outcome);
  return handle;
}

TF_Tensor* TF_ForwardInputOrAllocateOutput(TF_OpKernelContext* context,
                                           const int* candidate_input_indices,
                                           int num_candidate_input_indices, int output_index,
                                           const int64_t* output_dims, int output_num_dims,
                                           int* forwarded_input, TF_Status* status) {
  TF_Tensor* handle = NULL;
  rn_tensor_t* output = NULL;
  rn_shape_t shape;
  uint64_t candidates = 0;
  if (forwarded_input) *forwarded_input = -1;
  rn_status_t outcome = check_output(context, output_index);
  if (rn_ok(outcome)) outcome = rn_capi_shape(output_dims, output_num_dims, &shape);
  if (rn_ok(outcome) && num_candidate_input_indices > 0 && !candidate_input_indices) {
    outcome = RN_CAPI_NULL("candidate_input_indices");
  }
  for (int i = 0; rn_ok(outcome) && i < num_candidate_input_indices; ++i) {
    outcome = check_input(context, candidate_input_indices[i]);
    if (rn_ok(outcome) && candidate_input_indices[i] < 64) {
      candidates |= UINT64_C(1) << candidate_input_indices[i];
    }
  }
  if (rn_ok(outcome)) {
    outcome = rn_output_in_place(context->ctx, output_index, candidates, shape, &output);
  }
  for (int i = 0; rn_ok(outcome) && forwarded_input && i < num_candidate_input_indices; ++i) {
    const rn_tensor_t* input = rn_in(context->ctx, candidate_input_indices[i]);
    if (output->buffer && input->buffer == output->buffer) {
      *forwarded_input = candidate_input_indices[i];
    }
  }
  if (rn_ok(outcome)) outcome = rn_capi_tensor_keep(output, &handle);
  rn_capi_set(status, outcome);
  return handle;
}

TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype, const int64_t* dims,
                           int num_dims, TF_AllocatorAttributes* alloc_attrs, TF_Status* status) {
  TF_Tensor* handle = NULL;
  rn_tensor_t tensor = {0};
  rn_shape_t shape;
  rn_status_t outcome = context ? rn_capi_shape(dims, num_dims, &shape) : RN_CAPI_NULL("context");
  if (rn_ok(outcome)) {
    const rn_kernel_t* kernel = context->ctx->kernel;
    bool on_host = alloc_attrs && alloc_attrs->on_host;
    outcome = rn_tensor_create(on_host ? kernel->host_memory : kernel->device_memory,
                               (rn_dtype_t)dtype, shape, &tensor);
  }
  if (rn_ok(outcome)) outcome = rn_capi_tensor_wrap(&tensor, &handle);
  rn_capi_set(status, outcome);
  return handle;
}

bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return rn_capi_ok(status, check_input(ctx, i)) && ctx->ctx->kernel->input_is_host[i];
}

bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return rn_capi_ok(status, check_output(ctx, i)) && ctx->ctx->kernel->output_is_host[i];
}

SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status) {
  const rn_device_t* device = ctx ? ctx->ctx->kernel->device : NULL;
  const rn_plugin_card_t* card = device ? rn_plugin_card_of(device) : NULL;
  rn_capi_set(status, !ctx   ? RN_CAPI_NULL("ctx")
                      : card ? RN_OK
                             : rn_failed_precondition("Accessing device stream is not supported "
                                                      "for a CPU device."));
  return card ? card->stream : NULL;
}

int64_t TF_StepId(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx->step->id : -1; }
int64_t TF_GetStepId(TF_OpKernelContext* ctx) { return TF_StepId(ctx); }
uint64_t TF_GetFrameId(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx->frame : 0; }
int64_t TF_GetIterId(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx->iteration : -1; }

int TF_GetDeviceId(TF_OpKernelContext* ctx) {
  return ctx && ctx->ctx->kernel->device ? ctx->ctx->kernel->device->index : -1;
}

TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx) {
  if (!ctx || !ctx->ctx->kernel->device) return (TF_StringView){0};
  rn_str_t name = ctx->ctx->kernel->device->name;
  return (TF_StringView){name.data, name.size};
}

int TF_GetGraphDefVersion(TF_OpKernelContext* ctx) {
  return ctx ? ((const rn_plugin_state_t*)ctx->ctx->state)->producer : 0;
}

TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx) {
  if (!ctx) return (TF_StringView){0};
  return (TF_StringView){ctx->ctx->kernel->node.data, ctx->ctx->kernel->node.size};
}

TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx) {
  static const rn_str_t name = {"localhost", 9};
  return ctx ? (TF_StringView){name.data, name.size} : (TF_StringView){0};
}

TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* ctx, size_t index) {
  if (!ctx || index >= (size_t)ctx->ctx->kernel->input_count) return (TF_StringView){0};
  rn_str_t name = ((const rn_plugin_state_t*)ctx->ctx->state)->input_names[index];
  return (TF_StringView){name.data, name.size};
}

void TF_GetSerializedFunctionDefLibrary(TF_OpKernelContext* ctx,
                                        TF_Buffer* serialized_function_def_library,
                                        TF_Status* status) {
  rn_status_t outcome =
      ctx ? rn_capi_buffer_check(serialized_function_def_library) : RN_CAPI_NULL("ctx");
  if (rn_ok(outcome)) outcome = rn_unimplemented("%s is not implemented yet", __func__);
  rn_capi_set(status, outcome);
}

void TF_GetSerializedConfigProto(TF_OpKernelContext* ctx, TF_Buffer* serialized_config_proto,
                                 TF_Status* status) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = ctx ? rn_capi_buffer_check(serialized_config_proto) : RN_CAPI_NULL("ctx");
  if (rn_ok(outcome)) {
    rn_strbuf_append(&buf, ctx->ctx->step->config);
    outcome = rn_strbuf_status(&buf);
  }
  if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&buf, serialized_config_proto);
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}

static rn_status_t write_handle(const rn_tensor_t* tensor, rn_arena_t* arena, rn_strbuf_t* buf) {
  if (tensor->dtype != RN_RESOURCE || tensor->count != 1 || !*RN_DATA(tensor, rn_object_t*)) {
    return rn_invalid_argument("The input is no resource handle");
  }
  const rn_handle_t* handle = *RN_DATA(tensor, const rn_handle_t*);
  rn_pb_ResourceHandleProto_t proto;
  RN_RETURN_IF_ERROR(rn_handle_to_proto(handle, arena, &proto));
  return rn_capi_encode(&rn_pb_ResourceHandleProto_desc, &proto, buf);
}

void TF_GetSerializedResourceHandleProto(TF_OpKernelContext* ctx, int i,
                                         TF_Buffer* serialized_resource_handle_proto,
                                         TF_Status* status) {
  rn_strbuf_t buf;
  rn_arena_t arena;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = check_input(ctx, i);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_check(serialized_resource_handle_proto);
  if (rn_ok(outcome)) outcome = write_handle(rn_in(ctx->ctx, i), &arena, &buf);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&buf, serialized_resource_handle_proto);
  rn_strbuf_clear(&buf);
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
}
