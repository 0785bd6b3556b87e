// Variables, as references (TensorFlow 1.x) and as resources: creating, reading, assigning.
#include "kernels/cpu/state/variable.h"

#include "device/device.h"
#include "framework/anonymous.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/cpu/state/shared.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

rn_status_t rn_variable_of(const rn_kernel_ctx_t* ctx, int i, rn_variable_t** out) {
  *out = rn_in_variable(ctx, i);
  if (*out) return RN_OK;
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(
      rn_handle_resource(rn_in(ctx, i), ctx->kernel->resources, RN_VARIABLE_TYPE, &resource));
  RN_RETURN_IF_ERROR(rn_handle_check_device(ctx, i));
  *out = (rn_variable_t*)resource;
  return RN_OK;
}

rn_status_t rn_variable_uninitialized(const rn_kernel_ctx_t* ctx, int i,
                                      const rn_variable_t* variable) {
  if (rn_in(ctx, i)->is_ref)
    return rn_failed_precondition("Attempting to use uninitialized value %.*s",
                                  RN_STR_ARGS(variable->name));
  return rn_failed_precondition(
      "Could not find variable %.*s. This could mean that the variable has been deleted. In TF1, "
      "it can also mean the "
      "variable is uninitialized. Debug info: container=localhost, status error message=Resource "
      "localhost/%.*s/"
      "N10tensorflow3VarE does not exist.",
      RN_STR_ARGS(variable->name), RN_STR_ARGS(variable->name));
}

rn_status_t rn_variable_make_writable_locked(rn_kernel_ctx_t* ctx, int i, rn_variable_t* variable) {
  if (!rn_tensor_is_set(&variable->value)) return rn_variable_uninitialized(ctx, i, variable);
  if (rn_in(ctx, i)->is_ref || rn_tensor_is_exclusive(&variable->value)) return RN_OK;
  rn_tensor_t copy = {0};
  RN_RETURN_IF_ERROR(rn_device_duplicate(ctx->kernel->device, &variable->value, &copy));
  rn_tensor_clear(&variable->value);
  variable->value = copy;
  return RN_OK;
}

void rn_variable_pass_on(rn_kernel_ctx_t* ctx) {
  if (ctx->kernel->output_count > 0 && rn_in(ctx, 0)->is_ref)
    rn_set_output_ref(ctx, 0, rn_in_variable(ctx, 0));
}

rn_status_t rn_variable_update(rn_kernel_ctx_t* ctx,
                               rn_status_t (*update)(rn_kernel_ctx_t* ctx,
                                                     rn_variable_t* variable)) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = update(ctx, variable);
  rn_mutex_unlock(&variable->mutex);
  RN_RETURN_IF_ERROR(status);
  rn_variable_pass_on(ctx);
  return RN_OK;
}

// Creation.
typedef struct holder_t {
  rn_variable_t* variable;  // Retained
  rn_tensor_t handle;       // for a resource variable
} holder_t;

static void holder_destroy(void* state) {
  holder_t* holder = state;
  rn_tensor_clear(&holder->handle);
  if (holder->variable) rn_object_release(&holder->variable->resource.object);
}

typedef struct variable_make_t {
  rn_allocator_t allocator;
  rn_dtype_t dtype;
  rn_str_t name;
} variable_make_t;

static rn_status_t make_variable(void* arg, rn_resource_t** out) {
  variable_make_t* make = arg;
  return rn_variable_create(make->allocator, make->dtype, make->name, (rn_variable_t**)out);
}

// Finds the variable by container and shared_name, or by the node's name. Messages call it
// |called|, or by its key if that is "".
static rn_status_t find_variable(const rn_kernel_init_t* init, rn_str_t called, holder_t* holder) {
  rn_str_t name = rn_shared_name(init);
  variable_make_t make = {init->allocator, rn_init_type(init, "dtype"),
                          called.size ? called : name};
  if (rn_str_is(name, RN_ANONYMOUS_NAME))
    return make_variable(&make, (rn_resource_t**)&holder->variable);
  RN_RETURN_IF_ERROR(rn_resources_get(init->resources, rn_init_string(init, "container"), name,
                                      RN_VARIABLE_TYPE, make_variable, &make,
                                      (rn_resource_t**)&holder->variable));
  if (holder->variable->dtype != make.dtype)
    return rn_invalid_argument(
        "Trying to access variable %.*s with wrong dtype. Expected %s got %s", RN_STR_ARGS(name),
        rn_dtype_name(holder->variable->dtype), rn_dtype_name(make.dtype));
  return RN_OK;
}

// Until it is initialized, a reference variable has its declared shape, which the first Assign must
// match; an unknown one counts as a scalar's, as in stock.
static rn_status_t declare_shape_locked(rn_variable_t* variable, rn_shape_t shape) {
  if (rn_tensor_is_set(&variable->value) || variable->value.rank > 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_tensor_init(&variable->value, variable->dtype, shape));
  variable->value.dtype = RN_INVALID;  // a shape without a value
  return RN_OK;
}

static rn_status_t ref_variable_init(const rn_kernel_init_t* init, void* state) {
  rn_shape_t shape = rn_init_attr(init, "shape")->shape;
  if (rn_shape_has_rank(shape) && !rn_shape_is_full(shape))
    return rn_invalid_argument("Shape %s is not fully defined", rn_shape_text(shape).text);
  RN_RETURN_IF_ERROR(find_variable(init, init->node, state));
  if (!rn_shape_has_rank(shape)) return RN_OK;
  rn_variable_t* variable = ((holder_t*)state)->variable;
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = declare_shape_locked(variable, shape);
  rn_mutex_unlock(&variable->mutex);
  return status;
}

static rn_status_t ref_variable_compute(rn_kernel_ctx_t* ctx) {
  rn_set_output_ref(ctx, 0, ((holder_t*)ctx->state)->variable);
  return RN_OK;
}

static rn_status_t handle_init(const rn_kernel_init_t* init, void* state) {
  holder_t* holder = state;
  RN_RETURN_IF_ERROR(find_variable(init, RN_STR(""), holder));
  rn_str_t container = rn_init_string(init, "container");
  rn_handle_t* handle = NULL;
  RN_RETURN_IF_ERROR(rn_handle_create(
      init->allocator, init->device_name, container.size ? container : RN_STR("localhost"),
      holder->variable->name, rn_init_type(init, "dtype"), rn_init_attr(init, "shape")->shape,
      &holder->variable->resource, &handle));
  return rn_handle_tensor(init->host_memory, handle, &holder->handle);
}

static rn_status_t handle_compute(rn_kernel_ctx_t* ctx) {
  rn_tensor_t copy = {0};
  RN_RETURN_IF_ERROR(rn_tensor_share(&((holder_t*)ctx->state)->handle, &copy));
  rn_set_output(ctx, 0, &copy);
  return RN_OK;
}

// Reading.
static rn_status_t read_variable(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  rn_tensor_t value = {0};
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = rn_tensor_is_set(&variable->value)
                           ? rn_tensor_share(&variable->value, &value)
                           : rn_variable_uninitialized(ctx, 0, variable);
  rn_mutex_unlock(&variable->mutex);
  RN_RETURN_IF_ERROR(status);
  rn_dtype_t wanted = rn_dtype_base(ctx->kernel->output_types[0]);
  if (value.dtype != wanted) {
    status = rn_invalid_argument("Trying to read variable with wrong dtype. Expected %s got %s",
                                 rn_dtype_name(wanted), rn_dtype_name(value.dtype));
    rn_tensor_clear(&value);
    return status;
  }
  rn_set_output(ctx, 0, &value);
  return RN_OK;
}

static rn_status_t is_initialized(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_mutex_lock(&variable->mutex);
  *RN_DATA(out, bool) = rn_tensor_is_set(&variable->value);
  rn_mutex_unlock(&variable->mutex);
  return RN_OK;
}

// The error of ops that need the variable to exist.
static rn_status_t no_resource(const rn_variable_t* variable) {
  return rn_not_found(
      "Container localhost does not exist. (Could not find resource: localhost/%.*s)",
      RN_STR_ARGS(variable->name));
}

static rn_status_t variable_shape(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  rn_tensor_t value = {0};
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = rn_tensor_is_set(&variable->value)
                           ? rn_tensor_share(&variable->value, &value)
                           : no_resource(variable);
  rn_mutex_unlock(&variable->mutex);
  RN_RETURN_IF_ERROR(status);
  int64_t rank = value.rank;
  rn_tensor_t* out = NULL;
  status = rn_output(ctx, 0, (rn_shape_t){1, &rank}, &out);
  for (int d = 0; rn_ok(status) && d < rank; ++d) {
    if (out->dtype == RN_INT32)
      RN_DATA(out, int32_t)[d] = (int32_t)rn_tensor_dim(&value, d);
    else
      RN_DATA(out, int64_t)[d] = rn_tensor_dim(&value, d);
  }
  rn_tensor_clear(&value);
  return status;
}

static rn_status_t destroy_resource(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variable = NULL;
  rn_status_t status = rn_variable_of(ctx, 0, &variable);
  if (!rn_ok(status)) {
    if (!*(const bool*)ctx->state) return status;
    rn_status_free(status);
    return RN_OK;
  }
  rn_mutex_lock(&variable->mutex);
  bool was_set = rn_tensor_is_set(&variable->value);
  rn_tensor_clear(&variable->value);
  rn_mutex_unlock(&variable->mutex);
  if (!was_set && !*(const bool*)ctx->state)
    return rn_not_found("Resource localhost/%.*s/N10tensorflow3VarE does not exist.",
                        RN_STR_ARGS(variable->name));
  return RN_OK;
}

static rn_status_t destroy_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_bool(init, "ignore_lookup_error");
  return RN_OK;
}

// Assigning.
typedef struct assign_t {
  bool validates_shape;
} assign_t;

static rn_status_t assign_init(const rn_kernel_init_t* init, void* state) {
  ((assign_t*)state)->validates_shape = rn_init_bool(init, "validate_shape");
  return RN_OK;
}

// A reference variable keeps its buffer if the shape allows, because readers alias it; otherwise it
// takes over the value.
static rn_status_t assign_ref(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  const rn_tensor_t* value = rn_in(ctx, 1);
  rn_tensor_t kept = {0};
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = RN_OK;
  bool is_set = rn_tensor_is_set(&variable->value);
  bool is_same = rn_tensor_same_shape(&variable->value, value), fits = is_set && is_same;
  if (!is_same && ((assign_t*)ctx->state)->validates_shape)
    status = rn_invalid_argument(
        "Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s",
        rn_text_of(&variable->value).text, rn_text_of(value).text);
  else if (fits && rn_dtype_is_plain(value->dtype))
    status = rn_device_copy(ctx->kernel->device, value, &variable->value);
  else if (ctx->dying & 2 && rn_tensor_is_exclusive(value))
    status = rn_tensor_share(value, &kept);
  else
    status = rn_device_duplicate(ctx->kernel->device, value, &kept);
  if (rn_ok(status) && rn_tensor_is_set(&kept)) {
    rn_tensor_clear(&variable->value);
    variable->value = kept;
  }
  rn_mutex_unlock(&variable->mutex);
  RN_RETURN_IF_ERROR(status);
  rn_variable_pass_on(ctx);
  return RN_OK;
}

// A variable of a device keeps its place if nothing else holds its buffer: recorded work reads it
// there. |*out_done| is false if it must take another buffer.
static rn_status_t assign_in_place(rn_kernel_ctx_t* ctx, rn_variable_t* variable,
                                   const rn_tensor_t* value, bool* out_done) {
  rn_mutex_lock(&variable->mutex);
  *out_done = ctx->kernel->device_memory.is_far && rn_dtype_is_plain(value->dtype) &&
              rn_tensor_is_set(&variable->value) && rn_tensor_same_shape(&variable->value, value) &&
              rn_tensor_is_exclusive(&variable->value);
  rn_status_t status =
      *out_done ? rn_device_copy(ctx->kernel->device, value, &variable->value) : RN_OK;
  rn_mutex_unlock(&variable->mutex);
  return status;
}

static rn_status_t assign_variable(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  const rn_tensor_t* value = rn_in(ctx, 1);
  if (variable->dtype != value->dtype)
    return rn_invalid_argument("Trying to assign variable with wrong dtype. Expected %s got %s",
                               rn_dtype_name(variable->dtype), rn_dtype_name(value->dtype));
  bool is_done = false;
  RN_RETURN_IF_ERROR(assign_in_place(ctx, variable, value, &is_done));
  if (is_done) return RN_OK;
  rn_tensor_t kept = {0};
  // The buffer of a constant or a feed belongs to someone else, and the next in-place update would
  // copy it anyway.
  RN_RETURN_IF_ERROR(rn_tensor_keep(value, ctx->kernel->device_memory, &kept));
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = RN_OK;
  if (((assign_t*)ctx->state)->validates_shape && rn_tensor_is_set(&variable->value) &&
      !rn_tensor_same_shape(&variable->value, value))
    status = rn_invalid_argument(
        "Trying to assign to variable with tensor with wrong shape. Expected %s got %s",
        rn_text_of(&variable->value).text, rn_text_of(value).text);
  rn_tensor_t old = {0};
  if (rn_ok(status)) {
    old = variable->value;
    variable->value = kept;
  } else {
    old = kept;
  }
  rn_mutex_unlock(&variable->mutex);
  rn_tensor_clear(&old);
  return status;
}

typedef struct update_t {
  rn_vector_code_t code;
} update_t;

static rn_status_t update_init(const rn_kernel_init_t* init, void* state) {
  ((update_t*)state)->code = strstr(init->op->name, "Sub") ? RN_VECTOR_SUB : RN_VECTOR_ADD_V2;
  return RN_OK;
}

typedef struct update_job_t {
  rn_vector_code_t code;
  rn_dtype_t dtype;
  char* target;
  const char* value;
  size_t item;
} update_job_t;

static void update_piece(void* arg, int64_t begin, int64_t end) {
  const update_job_t* job = arg;
  char* target = job->target + (size_t)begin * job->item;
  rn_vector_run(job->code, job->dtype, target, 1, job->value + (size_t)begin * job->item, 1, target,
                end - begin);
}

rn_status_t rn_variable_check_update_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  const rn_tensor_t* value = rn_in(ctx, 1);
  const bool is_ref = rn_in(ctx, 0)->is_ref;
  if (!is_ref && !rn_tensor_is_set(&variable->value)) return no_resource(variable);
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, 0, variable));
  if (variable->value.dtype != value->dtype)
    return rn_invalid_argument("Trying to update variable with wrong dtype. Expected %s got %s",
                               rn_dtype_name(variable->value.dtype), rn_dtype_name(value->dtype));
  if (rn_tensor_same_shape(&variable->value, value)) return RN_OK;
  return is_ref ? rn_invalid_argument("Parameters and update must be the same size")
                : rn_invalid_argument(
                      "Cannot update variable with shape %s using a Tensor with shape %s, shapes "
                      "must be equal.",
                      rn_text_of(&variable->value).text, rn_text_of(value).text);
}

static rn_status_t update_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  RN_RETURN_IF_ERROR(rn_variable_check_update_locked(ctx, variable));
  const rn_tensor_t* value = rn_in(ctx, 1);
  // A complex number is added as two real ones.
  bool is_complex = rn_dtype_is_complex(value->dtype);
  rn_dtype_t dtype = value->dtype == RN_COMPLEX64    ? RN_FLOAT
                     : value->dtype == RN_COMPLEX128 ? RN_DOUBLE
                                                     : value->dtype;
  update_job_t job = {((update_t*)ctx->state)->code, dtype, variable->value.data, value->data,
                      rn_dtype_size(dtype)};
  rn_pool_for(rn_ctx_pool(ctx), is_complex ? value->count * 2 : value->count, 65536, update_piece,
              &job);
  return RN_OK;
}

// AssignAdd and AssignSub, of both kinds.
static rn_status_t update(rn_kernel_ctx_t* ctx) { return rn_variable_update(ctx, update_locked); }

static rn_status_t pass_reference(rn_kernel_ctx_t* ctx) {
  rn_variable_pass_on(ctx);
  return RN_OK;
}

static rn_status_t select_reference(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* index = rn_in(ctx, 0);
  if (index->rank != 0)
    return rn_invalid_argument("Index must be a scalar, but it has shape %s",
                               rn_text_of(index).text);
  int32_t at = *RN_DATA(index, const int32_t), count = ctx->kernel->input_count - 1;
  if (at < 0 || at >= count)
    return rn_invalid_argument("Index must be in the range [0, %d) but got %d", count, at);
  rn_set_output_ref(ctx, 0, rn_in_variable(ctx, 1 + at));
  return RN_OK;
}

static rn_status_t nothing(rn_kernel_ctx_t* ctx) {
  (void)ctx;
  return RN_OK;
}

#define REF_VARIABLE(name)                                                                     \
  {                                                                                            \
    .op = name, .device = "CPU", .types = {{"dtype", RN_TYPES_ALL}},                           \
    .flags = RN_KERNEL_OWN_OUTPUTS, .state_size = sizeof(holder_t), .init = ref_variable_init, \
    .destroy = holder_destroy, .compute = ref_variable_compute                                 \
  }
#define UPDATE(name, attr)                                                 \
  {                                                                        \
    .op = name, .device = "CPU", .types = {{attr, RN_TYPES_NUMBERS}},      \
    .state_size = sizeof(update_t), .init = update_init, .compute = update \
  }

static const rn_kernel_def_t rows[] = {
    REF_VARIABLE("Variable"),
    REF_VARIABLE("VariableV2"),
    {.op = "VarHandleOp",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(holder_t),
     .init = handle_init,
     .destroy = holder_destroy,
     .compute = handle_compute},
    {.op = "ReadVariableOp",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .compute = read_variable},
    {.op = "IsVariableInitialized", .device = "CPU", .compute = is_initialized},
    {.op = "VarIsInitializedOp", .device = "CPU", .compute = is_initialized},
    {.op = "VariableShape", .device = "CPU", .compute = variable_shape},
    {.op = "DestroyResourceOp",
     .device = "CPU",
     .state_size = sizeof(bool),
     .init = destroy_init,
     .compute = destroy_resource},
    {.op = "DisableCopyOnRead", .device = "CPU", .compute = nothing},
    {.op = "Assign",
     .device = "CPU",
     .types = {{"T", RN_TYPES_ALL}},
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_KEEPS_INPUTS,
     .state_size = sizeof(assign_t),
     .init = assign_init,
     .compute = assign_ref},
    {.op = "AssignVariableOp",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS,
     .state_size = sizeof(assign_t),
     .init = assign_init,
     .compute = assign_variable},
    UPDATE("AssignAdd", "T"),
    UPDATE("AssignSub", "T"),
    UPDATE("AssignAddVariableOp", "dtype"),
    UPDATE("AssignSubVariableOp", "dtype"),
    {.op = "RefIdentity",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .compute = pass_reference},
    {.op = "DebugGradientRefIdentity",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .compute = pass_reference},
    {.op = "RefSelect",
     .device = "CPU",
     .host_args = RN_HOST_ARGS("index"),
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .compute = select_reference},
};
RN_KERNEL_FAMILY(cpu_variable, rows);
