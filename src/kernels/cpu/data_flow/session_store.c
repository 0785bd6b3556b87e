// Session tensors: tensors that the session keeps under a handle, which the client passes back
// later.
#include <stdio.h>

#include "base/map.h"
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

#define STORE_TYPE "SessionStore"
#define VALUE_TYPE "TensorHandle"

// One tensor. Its name is the key of the store's entry.
typedef struct stored_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_tensor_t value;
  char* name;  // Owned
  size_t name_size;
} stored_t;

typedef struct store_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards what follows
  rn_map_t by_name;  // to stored_t, each holding a reference
  int64_t next;
} store_t;

static void stored_destroy(rn_object_t* object) {
  stored_t* stored = (stored_t*)object;
  rn_tensor_clear(&stored->value);
  if (stored->name) rn_free(stored->allocator, stored->name, stored->name_size + 1);
  RN_FREE(stored->allocator, stored);
}

static void store_destroy(rn_object_t* object) {
  store_t* store = (store_t*)object;
  const rn_map_entry_t* entry;
  for (size_t at = 0; (entry = rn_map_next(&store->by_name, &at));)
    rn_object_release(&((stored_t*)entry->value)->resource.object);
  rn_map_clear(&store->by_name);
  rn_mutex_destroy(&store->mutex);
  RN_FREE(store->allocator, store);
}

static rn_status_t store_create(void* arg, rn_resource_t** out) {
  rn_allocator_t allocator = ((const rn_kernel_init_t*)arg)->allocator;
  store_t* store = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &store));
  store->resource = (rn_resource_t){{.refs = 1, .destroy = store_destroy}, STORE_TYPE};
  store->allocator = allocator;
  rn_mutex_init(&store->mutex);
  rn_map_init(&store->by_name, allocator);
  *out = &store->resource;
  return RN_OK;
}

typedef struct session_store_user_t {
  store_t* store;  // Retained
  rn_allocator_t allocator;
  char* device;  // Owned
  size_t device_size;
} session_store_user_t;

static rn_status_t user_init(const rn_kernel_init_t* init, void* state) {
  session_store_user_t* user = state;
  rn_resource_t* store = NULL;
  user->allocator = init->allocator;
  RN_RETURN_IF_ERROR(rn_resources_get(init->resources, RN_STR("_runnel"), RN_STR("session_store"),
                                      STORE_TYPE, store_create, (void*)(uintptr_t)init, &store));
  user->store = (store_t*)store;
  user->device_size = init->device_name.size;
  return rn_str_dup(init->allocator, init->device_name, &user->device);
}

static void user_destroy(void* state) {
  session_store_user_t* user = state;
  if (user->device) rn_free(user->allocator, user->device, user->device_size + 1);
  if (user->store) rn_object_release(&user->store->resource.object);
}

// Stores input 0 under a new name; the store holds one reference, the caller another.
static rn_status_t keep(rn_kernel_ctx_t* ctx, stored_t** out) {
  const session_store_user_t* user = ctx->state;
  store_t* store = user->store;
  stored_t* stored = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(store->allocator, &stored));
  stored->resource = (rn_resource_t){{.refs = 1, .destroy = stored_destroy}, VALUE_TYPE};
  stored->allocator = store->allocator;
  rn_status_t status = rn_tensor_keep(rn_in(ctx, 0), ctx->kernel->device_memory, &stored->value);
  rn_strbuf_t name;
  rn_strbuf_init(&name, store->allocator);
  rn_mutex_lock(&store->mutex);
  int64_t number = store->next++;
  rn_strbuf_printf(&name, "%.*s;%lld;%.*s", RN_STR_ARGS(ctx->kernel->node), (long long)number,
                   (int)user->device_size, user->device);
  if (rn_ok(status)) status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = rn_str_dup(store->allocator, rn_strbuf_view(&name), &stored->name);
  stored->name_size = name.size;
  if (rn_ok(status))
    status = rn_map_put(&store->by_name, rn_str_n(stored->name, stored->name_size), stored);
  if (rn_ok(status)) rn_object_retain(&stored->resource.object);
  rn_mutex_unlock(&store->mutex);
  rn_strbuf_clear(&name);
  if (!rn_ok(status)) {
    rn_object_release(&stored->resource.object);
    return status;
  }
  *out = stored;
  return RN_OK;
}

static rn_status_t get_handle(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  stored_t* stored = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  RN_RETURN_IF_ERROR(keep(ctx, &stored));
  bool done = rn_tstring_assign(RN_DATA(out, rn_tstring_t), stored->name, stored->name_size);
  rn_object_release(&stored->resource.object);
  return done ? RN_OK : rn_out_of_memory();
}

// The name in the handle is the string that the other op returns.
static rn_status_t get_resource(rn_kernel_ctx_t* ctx) {
  const session_store_user_t* user = ctx->state;
  rn_tensor_t* out = NULL;
  stored_t* stored = NULL;
  rn_handle_t* handle = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  RN_RETURN_IF_ERROR(keep(ctx, &stored));
  rn_status_t status = rn_handle_create(
      ctx->kernel->allocator, rn_str_n(user->device, user->device_size), RN_STR(VALUE_TYPE),
      rn_str_n(stored->name, stored->name_size), stored->value.dtype,
      rn_tensor_shape(&stored->value), &stored->resource, &handle);
  rn_object_release(&stored->resource.object);
  RN_RETURN_IF_ERROR(status);
  *RN_DATA(out, rn_handle_t*) = handle;
  return RN_OK;
}

static rn_status_t read_name(rn_kernel_ctx_t* ctx, rn_str_t* out) {
  const rn_tensor_t* handle = rn_in(ctx, 0);
  if (handle->count != 1)
    return rn_invalid_argument("handle must be scalar, but has shape %s", rn_text_of(handle).text);
  *out = rn_tstring_view(RN_DATA(handle, rn_tstring_t));
  return RN_OK;
}

static rn_status_t get_tensor(rn_kernel_ctx_t* ctx) {
  store_t* store = ((const session_store_user_t*)ctx->state)->store;
  rn_str_t name;
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(read_name(ctx, &name));
  rn_mutex_lock(&store->mutex);
  const stored_t* stored = rn_map_get(&store->by_name, name);
  rn_status_t status =
      stored ? rn_tensor_share(&stored->value, &value)
             : rn_invalid_argument("The tensor with handle '%.*s' is not in the session store.",
                                   RN_STR_ARGS(name));
  rn_mutex_unlock(&store->mutex);
  RN_RETURN_IF_ERROR(status);
  rn_dtype_t wanted = rn_dtype_base(ctx->kernel->output_types[0]);
  if (value.dtype != wanted) {
    status = rn_internal(
        "Output 0 of type %s does not match declared output type %s for node {{node %.*s}}",
        rn_dtype_name(value.dtype), rn_dtype_name(wanted), RN_STR_ARGS(ctx->kernel->node));
    rn_tensor_clear(&value);
    return status;
  }
  rn_set_output(ctx, 0, &value);
  return RN_OK;
}

static rn_status_t delete_tensor(rn_kernel_ctx_t* ctx) {
  store_t* store = ((const session_store_user_t*)ctx->state)->store;
  rn_str_t name;
  RN_RETURN_IF_ERROR(read_name(ctx, &name));
  rn_mutex_lock(&store->mutex);
  stored_t* stored = rn_map_remove(&store->by_name, name);
  rn_mutex_unlock(&store->mutex);
  if (!stored)
    return rn_invalid_argument("Failed to delete a tensor with handle '%.*s' in the session store.",
                               RN_STR_ARGS(name));
  rn_object_release(&stored->resource.object);
  return RN_OK;
}

#define ROW(name, flags_, function)                                                           \
  {                                                                                           \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(session_store_user_t), \
    .init = user_init, .destroy = user_destroy, .compute = function                           \
  }

static const rn_kernel_def_t rows[] = {
    ROW("GetSessionHandle", RN_KERNEL_KEEPS_INPUTS, get_handle),
    ROW("GetSessionHandleV2", RN_KERNEL_KEEPS_INPUTS, get_resource),
    ROW("GetSessionTensor", RN_KERNEL_OWN_OUTPUTS, get_tensor),
    ROW("DeleteSessionTensor", 0, delete_tensor),
};
RN_KERNEL_FAMILY(cpu_session_store, rows);
