// Resources of plug-in kernels: runnel/resources.h over the tables of framework/resource.h.
#include "runnel/resources.h"

#include "capi/plugin/kernel.h"

// An object of a plug-in, and its type.
typedef struct plugin_object_t {
  rn_resource_t resource;
  void* object;
  void (*destroy)(void* object);
  size_t size;  // of this block
  char type[];
} plugin_object_t;

static void object_destroy(rn_object_t* object) {
  plugin_object_t* block = (plugin_object_t*)object;
  if (block->object && block->destroy) block->destroy(block->object);
  rn_free(rn_capi_allocator(), block, block->size);
}

// Takes |object| over, also on failure.
static rn_status_t wrap(void* object, const rn_resource_kind_t* kind, plugin_object_t** out) {
  size_t length = strlen(kind->type), size = sizeof(plugin_object_t) + length + 1;
  rn_status_t status = rn_alloc_zeroed(rn_capi_allocator(), size, (void**)out);
  if (!rn_ok(status)) {
    if (object && kind->destroy) kind->destroy(object);
    return status;
  }
  plugin_object_t* block = *out;
  memcpy(block->type, kind->type, length + 1);
  block->resource = (rn_resource_t){{.refs = 1, .destroy = object_destroy}, block->type};
  block->object = object;
  block->destroy = kind->destroy;
  block->size = size;
  return RN_OK;
}

RN_API rn_resources_t* rn_kernel_resources(TF_OpKernelContext* ctx) {
  return ctx ? ctx->ctx->kernel->resources : NULL;
}

RN_API rn_resources_t* rn_construction_resources(TF_OpKernelConstruction* ctx) {
  return ctx ? ctx->init->resources : NULL;
}

RN_API int64_t rn_resource_new_number(rn_resources_t* resources) {
  return resources ? rn_resources_new_number(resources) : 0;
}

typedef struct plugin_create_t {
  const rn_resource_kind_t* kind;
  void* (*fn)(void* arg, TF_Status* status);
  void* arg;
} plugin_create_t;

static rn_status_t create_object(void* arg, rn_resource_t** out) {
  const plugin_create_t* create = arg;
  plugin_object_t* block = NULL;
  TF_Status* status = TF_NewStatus();
  if (!status) return rn_out_of_memory();
  void* object = create->fn(create->arg, status);
  rn_status_t outcome = rn_capi_status_of(status);
  TF_DeleteStatus(status);
  if (rn_ok(outcome) && !object)
    outcome = rn_internal("The creator of a resource of type %s made nothing", create->kind->type);
  if (rn_ok(outcome))
    outcome = wrap(object, create->kind, &block);
  else if (object && create->kind->destroy)
    create->kind->destroy(object);
  if (rn_ok(outcome)) *out = &block->resource;
  return outcome;
}

static rn_status_t check_names(const rn_resources_t* resources, const char* container,
                               const char* name, const char* type) {
  if (!resources) return RN_CAPI_NULL("resources");
  if (!container || !name || !type)
    return RN_CAPI_NULL(!container ? "container" : !name ? "name" : "type");
  return RN_OK;
}

static rn_status_t make_handle(const char* device, const char* container, const char* name,
                               const char* type, rn_resource_t* resource, rn_handle_t** out) {
  const rn_handle_t from = {.device = rn_str(device),
                            .container = rn_str(container),
                            .name = rn_str(name),
                            .type_name = rn_str(type),
                            .dtype = RN_INVALID,
                            .shape = RN_SHAPE_UNKNOWN,
                            .resource = resource};
  return rn_handle_make(rn_capi_allocator(), &from, out);
}

RN_API rn_handle_t* rn_resource_find(rn_resources_t* resources, const char* container,
                                     const char* name, const rn_resource_kind_t* kind,
                                     void* (*create)(void* arg, TF_Status* status), void* arg,
                                     TF_Status* status) {
  rn_handle_t* handle = NULL;
  rn_resource_t* found = NULL;
  plugin_create_t create_it = {kind, create, arg};
  rn_status_t outcome = check_names(resources, container, name, kind ? kind->type : NULL);
  if (rn_ok(outcome))
    outcome = rn_resources_get(resources, rn_str(container), rn_str(name), kind->type,
                               create ? create_object : NULL, &create_it, &found);
  if (rn_ok(outcome)) outcome = make_handle("", container, name, kind->type, found, &handle);
  if (found) rn_object_release(&found->object);
  rn_capi_set(status, outcome);
  return handle;
}

RN_API void rn_resource_remove(rn_resources_t* resources, const char* container, const char* name,
                               const char* type, TF_Status* status) {
  rn_status_t outcome = check_names(resources, container, name, type);
  if (rn_ok(outcome))
    outcome = rn_resources_remove(resources, rn_str(container), rn_str(name), type);
  rn_capi_set(status, outcome);
}

RN_API void rn_resources_remove_all(rn_resources_t* resources, const char* container) {
  if (resources && container && *container) rn_resources_clear(resources, rn_str(container));
}

RN_API rn_handle_t* rn_handle_to_object(const char* device, void* object,
                                        const rn_resource_kind_t* kind, TF_Status* status) {
  rn_handle_t* handle = NULL;
  plugin_object_t* block = NULL;
  rn_status_t outcome = !device       ? RN_CAPI_NULL("device")
                        : !kind       ? RN_CAPI_NULL("kind")
                        : !kind->type ? RN_CAPI_NULL("type")
                        : !object     ? RN_CAPI_NULL("object")
                                      : RN_OK;
  if (rn_ok(outcome))
    outcome = wrap(object, kind, &block);
  else if (object && kind && kind->destroy)
    kind->destroy(object);
  if (rn_ok(outcome)) outcome = make_handle(device, "", "", kind->type, &block->resource, &handle);
  if (block) rn_object_release(&block->resource.object);
  rn_capi_set(status, outcome);
  return handle;
}

RN_API rn_handle_t* rn_handle_to_name(const char* device, const char* container, const char* name,
                                      const char* type, TF_Status* status) {
  rn_handle_t* handle = NULL;
  rn_status_t outcome = !device      ? RN_CAPI_NULL("device")
                        : !container ? RN_CAPI_NULL("container")
                        : !name      ? RN_CAPI_NULL("name")
                        : !type      ? RN_CAPI_NULL("type")
                                     : make_handle(device, container, name, type, NULL, &handle);
  rn_capi_set(status, outcome);
  return handle;
}

static rn_status_t object_of(rn_handle_t* handle, rn_resources_t* resources, const char* type,
                             void** out) {
  rn_resource_t* resource = NULL;
  const rn_tensor_t scalar = {.data = &handle, .count = 1, .dtype = RN_RESOURCE};
  RN_RETURN_IF_ERROR(rn_handle_resource(&scalar, resources, type, &resource));
  if (resource->object.destroy != object_destroy)
    return rn_invalid_argument("Resource %.*s of type %s does not belong to a plug-in",
                               RN_STR_ARGS(handle->name), type);
  *out = ((plugin_object_t*)resource)->object;
  return RN_OK;
}

RN_API void* rn_handle_object(rn_handle_t* handle, rn_resources_t* resources, const char* type,
                              TF_Status* status) {
  void* object = NULL;
  rn_capi_set(status, type ? object_of(handle, resources, type, &object) : RN_CAPI_NULL("type"));
  return object;
}

RN_API rn_handle_t* rn_handle_retain(rn_handle_t* handle) {
  if (handle) rn_object_retain(&handle->object);
  return handle;
}

RN_API void rn_handle_release(rn_handle_t* handle) {
  if (handle) rn_object_release(&handle->object);
}

static TF_StringView view_of(rn_str_t text) { return (TF_StringView){text.data, text.size}; }

RN_API rn_handle_texts_t rn_handle_texts(const rn_handle_t* handle) {
  if (!handle) return (rn_handle_texts_t){0};
  return (rn_handle_texts_t){view_of(handle->device), view_of(handle->container),
                             view_of(handle->name), view_of(handle->type_name)};
}

RN_API TF_Tensor* rn_resource_tensor(const int64_t* dims, int num_dims, TF_Status* status) {
  TF_Tensor* handle = NULL;
  rn_tensor_t tensor = {0};
  rn_shape_t shape;
  rn_status_t outcome = rn_capi_shape(dims, num_dims, &shape);
  if (rn_ok(outcome)) outcome = rn_tensor_create(rn_capi_allocator(), RN_RESOURCE, shape, &tensor);
  if (rn_ok(outcome)) outcome = rn_capi_tensor_wrap(&tensor, &handle);
  rn_capi_set(status, outcome);
  return handle;
}
