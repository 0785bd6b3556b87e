// See handle.h.
#include "kernels/cpu/state/handle.h"

#include "device/device.h"
#include "framework/anonymous.h"
#include "tensor/tstring.h"

// A variable that holds [container, name] and also the resource itself, so that using it needs no
// lookup. Distinguished from an ordinary variable by the address of its type's name.
typedef struct ref_t {
  rn_variable_t variable;
  rn_resource_t* resource;  // Retained
} ref_t;

static const char ref_type[] = RN_VARIABLE_TYPE;

static void ref_destroy(rn_object_t* object) {
  ref_t* ref = (ref_t*)object;
  rn_tensor_clear(&ref->variable.value);
  rn_mutex_destroy(&ref->variable.mutex);
  if (ref->resource) rn_object_release(&ref->resource->object);
  RN_FREE(ref->variable.allocator, ref);
}

rn_status_t rn_handle_ref_create(rn_allocator_t allocator, rn_str_t container, rn_str_t name,
                                 rn_resource_t* resource, rn_variable_t** out_ref) {
  *out_ref = NULL;
  ref_t* ref = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &ref));
  ref->variable.resource = (rn_resource_t){{.refs = 1, .destroy = ref_destroy}, ref_type};
  ref->variable.allocator = allocator;
  ref->variable.dtype = RN_STRING;
  rn_mutex_init(&ref->variable.mutex);
  ref->resource = resource;
  rn_object_retain(&resource->object);
  int64_t two = 2;
  rn_status_t status =
      rn_tensor_create(allocator, RN_STRING, (rn_shape_t){1, &two}, &ref->variable.value);
  if (rn_ok(status)) {
    rn_tstring_t* text = RN_DATA(&ref->variable.value, rn_tstring_t);
    if (!rn_tstring_assign(&text[0], container.data, container.size) ||
        !rn_tstring_assign(&text[1], name.data, name.size))
      status = rn_out_of_memory();
  }
  if (!rn_ok(status)) {
    rn_object_release(&ref->variable.resource.object);
    return status;
  }
  *out_ref = &ref->variable;
  return RN_OK;
}

// Numbers for the names of unnamed resources; one counter per table.
typedef struct handle_counter_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  _Atomic int64_t next;
} handle_counter_t;
#define COUNTER_TYPE "Counter"

static void counter_destroy(rn_object_t* object) {
  handle_counter_t* counter = (handle_counter_t*)object;
  RN_FREE(counter->allocator, counter);
}

static rn_status_t counter_create(void* arg, rn_resource_t** out) {
  rn_allocator_t allocator = *(rn_allocator_t*)arg;
  handle_counter_t* counter = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &counter));
  counter->resource = (rn_resource_t){{.refs = 1, .destroy = counter_destroy}, COUNTER_TYPE};
  counter->allocator = allocator;
  *out = &counter->resource;
  return RN_OK;
}

static rn_status_t private_name(const rn_kernel_init_t* init, rn_strbuf_t* out) {
  rn_allocator_t allocator = init->allocator;
  rn_resource_t* counter = NULL;
  RN_RETURN_IF_ERROR(rn_resources_get(init->resources, RN_STR("_runnel"), RN_STR("names"),
                                      COUNTER_TYPE, counter_create, &allocator, &counter));
  int64_t number = ((handle_counter_t*)counter)->next++;
  rn_object_release(&counter->object);
  rn_strbuf_printf(out, "_%lld_%.*s", (long long)number, RN_STR_ARGS(init->node));
  return rn_strbuf_status(out);
}

typedef struct handle_make_t {
  rn_handle_create_fn_t create;
  void* arg;
  rn_str_t name;
} handle_make_t;

static rn_status_t make_resource(void* arg, rn_resource_t** out) {
  handle_make_t* make = arg;
  return make->create(make->arg, make->name, out);
}

rn_status_t rn_handle_tensor(rn_allocator_t memory, rn_handle_t* handle, rn_tensor_t* out) {
  rn_status_t status = rn_tensor_create(memory, RN_RESOURCE, RN_SHAPE_SCALAR, out);
  if (rn_ok(status))
    *RN_DATA(out, rn_handle_t*) = handle;
  else
    rn_object_release(&handle->object);
  return status;
}

static rn_status_t make_handle(rn_handle_state_t* state, const rn_kernel_init_t* init,
                               rn_str_t container, rn_str_t name) {
  if (rn_dtype_is_ref(init->output_types[0]))
    return rn_handle_ref_create(init->allocator, container, name, state->resource, &state->ref);
  rn_handle_t* handle = NULL;
  RN_RETURN_IF_ERROR(rn_handle_create(init->allocator, init->device_name, container, name,
                                      RN_INVALID, RN_SHAPE_UNKNOWN, state->resource, &handle));
  return rn_handle_tensor(init->host_memory, handle, &state->handle);
}

rn_status_t rn_handle_state_init(rn_handle_state_t* state, const rn_kernel_init_t* init,
                                 const char* type, rn_handle_create_fn_t create, void* arg) {
  rn_strbuf_t own;
  rn_strbuf_init(&own, init->allocator);
  rn_str_t container = rn_init_string(init, "container");
  if (!container.size) container = RN_STR("localhost");
  rn_str_t name = rn_init_string(init, "shared_name");
  bool is_anonymous = rn_str_is(name, RN_ANONYMOUS_NAME);
  rn_status_t status = RN_OK;
  if (!name.size || is_anonymous) {
    status = private_name(init, &own);
    name = rn_strbuf_view(&own);
  }
  handle_make_t make = {create, arg, name};
  if (rn_ok(status))
    status = is_anonymous ? make_resource(&make, &state->resource)
                          : rn_resources_get(init->resources, container, name, type, make_resource,
                                             &make, &state->resource);
  if (rn_ok(status)) status = make_handle(state, init, container, name);
  rn_strbuf_clear(&own);
  return status;
}

void rn_handle_state_destroy(void* state) {
  rn_handle_state_t* holder = state;
  rn_tensor_clear(&holder->handle);
  if (holder->ref) rn_object_release(&holder->ref->resource.object);
  if (holder->resource) rn_object_release(&holder->resource->object);
}

rn_status_t rn_handle_state_compute(rn_kernel_ctx_t* ctx) {
  rn_handle_state_t* holder = ctx->state;
  if (holder->ref) {
    rn_set_output_ref(ctx, 0, holder->ref);
    return RN_OK;
  }
  rn_tensor_t copy = {0};
  RN_RETURN_IF_ERROR(rn_tensor_share(&holder->handle, &copy));
  rn_set_output(ctx, 0, &copy);
  return RN_OK;
}

// For a string vector made by some other op: looks up the resource by name.
static rn_status_t look_up(const rn_kernel_ctx_t* ctx, rn_variable_t* variable, const char* type,
                           rn_resource_t** out) {
  rn_tensor_t value = {0};
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = rn_tensor_share(&variable->value, &value);
  rn_mutex_unlock(&variable->mutex);
  RN_RETURN_IF_ERROR(status);
  if (value.dtype != RN_STRING || value.count != 2) {
    status = rn_invalid_argument("Resource handle must have two elements, but had shape: %lld",
                                 (long long)value.count);
  } else {
    const rn_tstring_t* text = RN_DATA(&value, rn_tstring_t);
    status = rn_resources_get(ctx->kernel->resources, rn_tstring_view(&text[0]),
                              rn_tstring_view(&text[1]), type, NULL, NULL, out);
  }
  rn_tensor_clear(&value);
  return status;
}

rn_status_t rn_handle_input(const rn_kernel_ctx_t* ctx, int i, const char* type,
                            rn_resource_t** out) {
  *out = NULL;
  rn_variable_t* variable = rn_in_variable(ctx, i);
  if (!variable) {
    RN_RETURN_IF_ERROR(rn_handle_resource(rn_in(ctx, i), ctx->kernel->resources, type, out));
    rn_object_retain(&(*out)->object);
    return RN_OK;
  }
  if (variable->resource.type != ref_type) return look_up(ctx, variable, type, out);
  rn_resource_t* resource = ((ref_t*)variable)->resource;
  if (strcmp(resource->type, type) != 0)
    return rn_invalid_argument("Trying to access a %s as a %s", resource->type, type);
  rn_object_retain(&resource->object);
  *out = resource;
  return RN_OK;
}

// Whether |name|, "…/device:GPU:1", may be |device|. All CPUs share their memory.
static bool is_reachable(rn_str_t name, const rn_device_t* device) {
  size_t end = name.size, type = strlen(device->type);
  int32_t index = 0;
  for (int32_t place = 1; end > 0 && name.data[end - 1] != ':' && place <= 10000; place *= 10)
    index += place * (name.data[--end] - '0');
  if (end <= type) return true;  // a handle that does not say
  bool is_type = memcmp(name.data + end - 1 - type, device->type, type) == 0;
  return is_type && (device->is_host || index == device->index);
}

rn_status_t rn_handle_check_device(const rn_kernel_ctx_t* ctx, int i) {
  const rn_tensor_t* input = rn_in(ctx, i);
  const rn_handle_t* handle = input->count ? *RN_DATA(input, rn_handle_t*) : NULL;
  const rn_device_t* device = ctx->kernel->device;
  if (!handle || is_reachable(handle->device, device)) return RN_OK;
  return rn_invalid_argument(
      "Trying to access resource %.*s located in device %.*s from device %.*s",
      RN_STR_ARGS(handle->name), RN_STR_ARGS(handle->device), RN_STR_ARGS(device->name));
}
