// Variables and references for kernels of plug-ins.
//
// Values of CPU kernels are copied here; the copy functions of plug-ins, which are for device
// memory, are not called. The tensor of a variable that a plug-in gets shares its bytes: writing to
// it changes the variable, as these functions intend.
#include "capi/plugin/kernel.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/variable.h"
#include "tensorflow/c/kernels_experimental.h"

typedef void (*variables_copy_t)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*);

static rn_status_t check_input(const TF_OpKernelContext* ctx, int i) {
  if (!ctx) return rn_invalid_argument("The context of a kernel is NULL");
  if (i >= 0 && i < ctx->ctx->kernel->input_count) return RN_OK;
  return rn_out_of_range("input index out of range");
}

static bool is_ref(const TF_OpKernelContext* ctx, int i) {
  return rn_dtype_is_ref(ctx->ctx->kernel->input_types[i]);
}

// The variable behind input |i|, borrowed.
static rn_status_t variable_at(const TF_OpKernelContext* ctx, int i, rn_variable_t** out) {
  *out = NULL;
  RN_RETURN_IF_ERROR(check_input(ctx, i));
  if (!is_ref(ctx, i) && ctx->ctx->kernel->input_types[i] != RN_RESOURCE)
    return rn_invalid_argument("Input %d of node '%.*s' (%s) is neither a resource nor a reference",
                               i, RN_STR_ARGS(ctx->ctx->kernel->node), ctx->ctx->kernel->op->name);
  return rn_variable_of(ctx->ctx, i, out);
}

static rn_status_t value_at(const TF_OpKernelContext* ctx, int i, const rn_variable_t* variable,
                            const rn_tensor_t** out) {
  RN_RETURN_IF_ERROR(check_input(ctx, i));
  *out = rn_in(ctx->ctx, i);
  if ((*out)->dtype == variable->dtype) return RN_OK;
  return rn_invalid_argument("Variable '%.*s' has type %s, its new value type %s",
                             RN_STR_ARGS(variable->name), rn_dtype_name(variable->dtype),
                             rn_dtype_name((*out)->dtype));
}

static bool same_shape(const rn_tensor_t* a, const rn_tensor_t* b) {
  return rn_shape_eq(rn_tensor_shape(a), rn_tensor_shape(b));
}

// Sets |variable| to |value|. |what| is the message for shapes that do not match, if they are to be
// checked.
static rn_status_t assign(rn_variable_t* variable, const rn_tensor_t* value, const char* what) {
  rn_tensor_t kept = {0};
  RN_RETURN_IF_ERROR(rn_tensor_keep(value, rn_capi_allocator(), &kept));
  rn_mutex_lock(&variable->mutex);
  rn_tensor_t old = variable->value;
  bool fits = !what || !rn_tensor_is_set(&old) || same_shape(&old, value);
  rn_status_t status = RN_OK;
  if (fits)
    variable->value = kept;
  else
    status = rn_invalid_argument(what, rn_shape_text(rn_tensor_shape(&old)).text,
                                 rn_shape_text(rn_tensor_shape(value)).text);
  rn_mutex_unlock(&variable->mutex);
  rn_tensor_clear(fits ? &old : &kept);
  return status;
}

void TF_AssignVariable(TF_OpKernelContext* ctx, int input_index, int value_index,
                       bool validate_shape, variables_copy_t copyFunc, TF_Status* status) {
  (void)copyFunc;
  rn_variable_t* variable = NULL;
  const rn_tensor_t* value = NULL;
  rn_status_t outcome = variable_at(ctx, input_index, &variable);
  if (rn_ok(outcome)) outcome = value_at(ctx, value_index, variable, &value);
  const char* what =
      "Trying to assign to variable with tensor with wrong shape. Expected %s got %s";
  if (rn_ok(outcome)) outcome = assign(variable, value, validate_shape ? what : NULL);
  rn_capi_set(status, outcome);
}

static rn_status_t forward_ref(TF_OpKernelContext* ctx, int input, int output) {
  RN_RETURN_IF_ERROR(check_input(ctx, input));
  if (output < 0 || output >= ctx->ctx->kernel->output_count)
    return rn_out_of_range("output index out of range");
  rn_variable_t* variable = is_ref(ctx, input) ? rn_in_variable(ctx->ctx, input) : NULL;
  if (!variable || !rn_dtype_is_ref(ctx->ctx->kernel->output_types[output]))
    return rn_invalid_argument("Input %d and output %d of node '%.*s' (%s) must be references",
                               input, output, RN_STR_ARGS(ctx->ctx->kernel->node),
                               ctx->ctx->kernel->op->name);
  rn_set_output_ref(ctx->ctx, output, variable);
  return RN_OK;
}

void TF_OpKernelContext_ForwardRefInputToRefOutput(TF_OpKernelContext* ctx, int32_t input_index,
                                                   int32_t output_index) {
  if (!ctx) return;
  rn_status_t outcome = forward_ref(ctx, input_index, output_index);
  if (rn_ok(outcome)) return;
  rn_mutex_lock(&ctx->mutex);
  ctx->failure = rn_status_join(ctx->failure, outcome);
  rn_mutex_unlock(&ctx->mutex);
}

void TF_AssignRefVariable(TF_OpKernelContext* ctx, int input_ref_index, int output_ref_index,
                          int value_index, bool use_locking, bool validate_shape,
                          variables_copy_t copyFunc, TF_Status* status) {
  (void)use_locking, (void)copyFunc;  // the variable is always locked
  rn_variable_t* variable = NULL;
  const rn_tensor_t* value = NULL;
  rn_status_t outcome = forward_ref(ctx, input_ref_index, output_ref_index);
  if (rn_ok(outcome)) outcome = variable_at(ctx, input_ref_index, &variable);
  if (rn_ok(outcome)) outcome = value_at(ctx, value_index, variable, &value);
  const char* what = "Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s";
  if (rn_ok(outcome)) outcome = assign(variable, value, validate_shape ? what : NULL);
  rn_capi_set(status, outcome);
}

// Makes the variable's buffer unshared, for writing in place. The caller holds its lock.
static rn_status_t writable_locked(TF_OpKernelContext* ctx, int i, rn_variable_t* variable,
                                   TF_Tensor** out) {
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx->ctx, i, variable));
  return rn_capi_tensor_keep(&variable->value, out);
}

void TF_AssignUpdateVariable(TF_OpKernelContext* ctx, int input_index, int value_index, int Op,
                             int isVariantType, variables_copy_t copyFunc,
                             void (*updateFunc)(TF_OpKernelContext* ctx, TF_Tensor* tensor,
                                                TF_Tensor* value, int Op),
                             TF_Status* status) {
  (void)isVariantType, (void)copyFunc;
  rn_variable_t* variable = NULL;
  const rn_tensor_t* value = NULL;
  TF_Tensor *target = NULL, *source = NULL;
  rn_status_t outcome = updateFunc ? RN_OK : RN_CAPI_NULL("updateFunc");
  if (rn_ok(outcome)) outcome = variable_at(ctx, input_index, &variable);
  if (rn_ok(outcome)) outcome = value_at(ctx, value_index, variable, &value);
  if (rn_ok(outcome)) outcome = rn_capi_tensor_keep(value, &source);
  if (rn_ok(outcome)) {
    rn_mutex_lock(&variable->mutex);
    if (rn_tensor_is_set(&variable->value) && !same_shape(&variable->value, value))
      outcome = rn_invalid_argument(
          "Cannot update variable with shape %s using a Tensor with shape %s, shapes must be "
          "equal.",
          rn_shape_text(rn_tensor_shape(&variable->value)).text,
          rn_shape_text(rn_tensor_shape(value)).text);
    if (rn_ok(outcome)) outcome = writable_locked(ctx, input_index, variable, &target);
    if (rn_ok(outcome)) updateFunc(ctx, target, source, Op);
    rn_mutex_unlock(&variable->mutex);
  }
  TF_DeleteTensor(target);
  TF_DeleteTensor(source);
  rn_capi_set(status, outcome);
}

// Variables whose locks are held, without duplicates, in the order of their addresses.
struct TF_VariableInputLockHolder {
  size_t count, capacity;
  rn_variable_t* variables[];  // Retained
};

static void insert(TF_VariableInputLockHolder* holder, rn_variable_t* variable) {
  size_t at = 0;
  while (at < holder->count && (uintptr_t)holder->variables[at] < (uintptr_t)variable) ++at;
  if (at < holder->count && holder->variables[at] == variable) return;
  memmove(&holder->variables[at + 1], &holder->variables[at],
          (holder->count - at) * sizeof *holder->variables);
  holder->variables[at] = variable;
  holder->count++;
}

static size_t holder_bytes(size_t capacity) {
  return sizeof(TF_VariableInputLockHolder) + capacity * sizeof(rn_variable_t*);
}

static rn_status_t lock_all(TF_OpKernelContext* ctx, const int* inputs, size_t len,
                            TF_VariableInputLockHolder** out) {
  TF_VariableInputLockHolder* holder = NULL;
  if (len > (size_t)ctx->ctx->kernel->input_count)
    return rn_invalid_argument("The node has %d inputs, not %zu", ctx->ctx->kernel->input_count,
                               len);
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(rn_capi_allocator(), holder_bytes(len), (void**)&holder));
  holder->capacity = len;
  rn_status_t status = RN_OK;
  for (size_t i = 0; i < len && rn_ok(status); ++i) {
    rn_variable_t* variable = NULL;
    status = variable_at(ctx, inputs[i], &variable);
    if (rn_ok(status)) insert(holder, variable);
  }
  if (!rn_ok(status)) {
    rn_free(rn_capi_allocator(), holder, holder_bytes(len));
    return status;
  }
  for (size_t i = 0; i < holder->count; ++i) {
    rn_object_retain(&holder->variables[i]->resource.object);
    rn_mutex_lock(&holder->variables[i]->mutex);
  }
  *out = holder;
  return RN_OK;
}

void TF_MaybeLockVariableInputMutexesInOrder(TF_OpKernelContext* ctx, bool do_lock, bool sparse,
                                             const int* inputs, size_t len,
                                             variables_copy_t copyFunc,
                                             TF_VariableInputLockHolder** lockHolder,
                                             TF_Status* status) {
  (void)sparse, (void)copyFunc;
  if (lockHolder) *lockHolder = NULL;
  rn_status_t outcome = !lockHolder          ? RN_CAPI_NULL("lockHolder")
                        : !ctx               ? RN_CAPI_NULL("ctx")
                        : len > 0 && !inputs ? RN_CAPI_NULL("inputs")
                                             : RN_OK;
  if (rn_ok(outcome) && do_lock) outcome = lock_all(ctx, inputs, len, lockHolder);
  rn_capi_set(status, outcome);
}

void TF_ReleaseVariableInputLockHolder(TF_VariableInputLockHolder* lockHolder) {
  if (!lockHolder) return;
  for (size_t i = lockHolder->count; i-- > 0;) {
    rn_mutex_unlock(&lockHolder->variables[i]->mutex);
    rn_object_release(&lockHolder->variables[i]->resource.object);
  }
  rn_free(rn_capi_allocator(), lockHolder, holder_bytes(lockHolder->capacity));
}

void TF_GetInputTensorFromVariable(TF_OpKernelContext* ctx, int input, bool lock_held,
                                   bool isVariantType, bool sparse, variables_copy_t copyFunc,
                                   TF_Tensor** out, TF_Status* status) {
  (void)isVariantType, (void)sparse, (void)copyFunc;
  if (out) *out = NULL;
  rn_variable_t* variable = NULL;
  rn_status_t outcome = out ? variable_at(ctx, input, &variable) : RN_CAPI_NULL("out");
  if (rn_ok(outcome)) {
    if (!lock_held) rn_mutex_lock(&variable->mutex);
    outcome = writable_locked(ctx, input, variable, out);
    if (!lock_held) rn_mutex_unlock(&variable->mutex);
  }
  rn_capi_set(status, outcome);
}

void TF_GetInputByName(TF_OpKernelContext* ctx, const char* inputName, TF_Tensor** tensor,
                       TF_Status* status) {
  if (tensor) *tensor = NULL;
  TF_InputRange_Args range = {.status = status};
  TF_InputRange(ctx, inputName, &range);
  if (range.start < 0) return;
  if (range.stop != range.start + 1) {
    rn_capi_set(status, rn_invalid_argument("OpKernel used list-valued input name '%s' when "
                                            "single-valued input was expected",
                                            inputName));
    return;
  }
  TF_GetInput(ctx, range.start, tensor, status);
}

bool TF_IsRefInput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return rn_capi_ok(status, check_input(ctx, i)) && is_ref(ctx, i);
}

// As with copies, the plug-in's allocator is not needed: the device's memory is known.
void TF_TemporaryVariable(TF_OpKernelContext* ctx, TF_DataType dtype, const int64_t* dims,
                          int num_dims, TF_StringView* var_name,
                          void (*plugin_allocator)(TF_OpKernelContext*, TF_Tensor*, TF_DataType,
                                                   const int64_t*, int, TF_Status*),
                          TF_Status* tf_status) {
  (void)plugin_allocator;
  rn_shape_t shape;
  rn_status_t outcome = !ctx        ? RN_CAPI_NULL("ctx")
                        : !var_name ? RN_CAPI_NULL("var_name")
                                    : rn_capi_shape(dims, num_dims, &shape);
  bool has_output = rn_ok(outcome) && ctx->ctx->kernel->output_count > 0 &&
                    rn_dtype_is_ref(ctx->ctx->kernel->output_types[0]) &&
                    rn_dtype_base(ctx->ctx->kernel->output_types[0]) == (rn_dtype_t)dtype;
  if (rn_ok(outcome) && !has_output)
    outcome = rn_invalid_argument("Output 0 of node '%.*s' is no reference of this type",
                                  RN_STR_ARGS(ctx->ctx->kernel->node));
  if (rn_ok(outcome))
    outcome = rn_temporary_make(ctx->ctx, rn_str_n(var_name->data, var_name->len),
                                (rn_dtype_t)dtype, shape);
  rn_capi_set(tf_status, outcome);
}

void TF_DestroyTemporaryVariable(TF_OpKernelContext* ctx, int index, TF_StringView* var_name,
                                 TF_Status* tf_status) {
  rn_status_t outcome = check_input(ctx, index);
  if (rn_ok(outcome) && !var_name) outcome = RN_CAPI_NULL("var_name");
  if (rn_ok(outcome) && (!is_ref(ctx, index) || ctx->ctx->kernel->output_count < 1))
    outcome = rn_invalid_argument("Input %d of node '%.*s' is no reference", index,
                                  RN_STR_ARGS(ctx->ctx->kernel->node));
  if (rn_ok(outcome))
    outcome = rn_temporary_take(ctx->ctx, index, rn_str_n(var_name->data, var_name->len));
  rn_capi_set(tf_status, outcome);
}
