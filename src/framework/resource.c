// Resources by container and name, handles to them, and variables.
#include "framework/resource_view.h"

// An entry's key and record in one block.
typedef struct resource_entry_t {
  rn_resource_t* resource;  // Retained
  size_t key_size;
  char key[];
} resource_entry_t;

struct rn_resources_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  rn_map_t entries;         // "container\0name" -> resource_entry_t
  _Atomic int64_t numbers;  // the last one given out
};

int64_t rn_resources_new_number(rn_resources_t* resources) { return resources->numbers++; }

rn_status_t rn_resources_create(rn_allocator_t allocator, rn_resources_t** out) {
  *out = NULL;
  rn_resources_t* resources = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &resources));
  resources->allocator = allocator;
  rn_mutex_init(&resources->mutex);
  rn_map_init(&resources->entries, allocator);
  *out = resources;
  return RN_OK;
}

void rn_resources_destroy(rn_resources_t* resources) {
  if (!resources) return;
  rn_resources_clear(resources, RN_STR(""));
  rn_map_clear(&resources->entries);
  rn_mutex_destroy(&resources->mutex);
  RN_FREE(resources->allocator, resources);
}

static rn_str_t container_or_default(rn_str_t container) {
  return container.size ? container : RN_STR("localhost");
}

static rn_status_t make_key(rn_resources_t* resources, rn_str_t container, rn_str_t name,
                            resource_entry_t** out) {
  container = container_or_default(container);
  size_t size = container.size + 1 + name.size;
  RN_RETURN_IF_ERROR(rn_alloc(resources->allocator, sizeof(resource_entry_t) + size, (void**)out));
  (*out)->resource = NULL;
  (*out)->key_size = size;
  memcpy((*out)->key, container.data, container.size);
  (*out)->key[container.size] = '\0';
  if (name.size) memcpy((*out)->key + container.size + 1, name.data, name.size);
  return RN_OK;
}

static void free_entry(rn_resources_t* resources, resource_entry_t* entry) {
  if (!entry) return;
  if (entry->resource) rn_object_release(&entry->resource->object);
  rn_free(resources->allocator, entry, sizeof(resource_entry_t) + entry->key_size);
}

static rn_status_t get_locked(rn_resources_t* resources, rn_str_t container, rn_str_t name,
                              const char* type, rn_status_t (*create)(void*, rn_resource_t**),
                              void* arg, resource_entry_t* key, bool* out_kept,
                              rn_resource_t** out) {
  rn_str_t key_text = rn_str_n(key->key, key->key_size);
  resource_entry_t* found = rn_map_get(&resources->entries, key_text);
  if (found) {
    if (strcmp(found->resource->type, type) != 0)
      return rn_invalid_argument("Resource %.*s/%.*s is a %s, not a %s",
                                 RN_STR_ARGS(container_or_default(container)), RN_STR_ARGS(name),
                                 found->resource->type, type);
    *out = found->resource;
    rn_object_retain(&(*out)->object);
    return RN_OK;
  }
  if (!create)
    return rn_not_found("Resource %.*s/%.*s/%s does not exist.",
                        RN_STR_ARGS(container_or_default(container)), RN_STR_ARGS(name), type);
  rn_resource_t* made = NULL;
  RN_RETURN_IF_ERROR(create(arg, &made));
  rn_status_t status = rn_map_put(&resources->entries, key_text, key);
  if (!rn_ok(status)) {
    rn_object_release(&made->object);
    return status;
  }
  key->resource = made;
  *out_kept = true;
  rn_object_retain(&made->object);
  *out = made;
  return RN_OK;
}

rn_status_t rn_resources_get(rn_resources_t* resources, rn_str_t container, rn_str_t name,
                             const char* type,
                             rn_status_t (*create)(void* arg, rn_resource_t** out), void* arg,
                             rn_resource_t** out) {
  *out = NULL;
  resource_entry_t* key = NULL;
  RN_RETURN_IF_ERROR(make_key(resources, container, name, &key));
  bool kept = false;
  rn_mutex_lock(&resources->mutex);
  rn_status_t status = get_locked(resources, container, name, type, create, arg, key, &kept, out);
  rn_mutex_unlock(&resources->mutex);
  if (!kept) free_entry(resources, key);
  return status;
}

void rn_resources_each(rn_resources_t* resources,
                       void (*see)(void* arg, rn_str_t container, rn_str_t name,
                                   rn_resource_t* resource),
                       void* arg) {
  size_t position = 0;
  const rn_map_entry_t* at;
  rn_mutex_lock(&resources->mutex);
  while ((at = rn_map_next(&resources->entries, &position))) {
    const resource_entry_t* entry = at->value;
    rn_str_t name = rn_str_n(entry->key, entry->key_size), container = rn_str_split(&name, '\0');
    see(arg, container, name, entry->resource);
  }
  rn_mutex_unlock(&resources->mutex);
}

rn_status_t rn_resources_remove(rn_resources_t* resources, rn_str_t container, rn_str_t name,
                                const char* type) {
  resource_entry_t* key = NULL;
  RN_RETURN_IF_ERROR(make_key(resources, container, name, &key));
  rn_mutex_lock(&resources->mutex);
  rn_str_t key_text = rn_str_n(key->key, key->key_size);
  resource_entry_t* found = rn_map_get(&resources->entries, key_text);
  if (found && type && strcmp(found->resource->type, type) != 0) found = NULL;
  if (found) rn_map_remove(&resources->entries, key_text);
  rn_mutex_unlock(&resources->mutex);
  free_entry(resources, key);
  if (!found)
    return rn_not_found("Resource %.*s/%.*s/%s does not exist.",
                        RN_STR_ARGS(container_or_default(container)), RN_STR_ARGS(name),
                        type ? type : "");
  free_entry(resources, found);
  return RN_OK;
}

// Removes entries one by one and releases them without the lock, because destroying a resource may
// use the table.
void rn_resources_clear(rn_resources_t* resources, rn_str_t container) {
  for (;;) {
    resource_entry_t* victim = NULL;
    rn_mutex_lock(&resources->mutex);
    size_t position = 0;
    const rn_map_entry_t* at;
    while (!victim && (at = rn_map_next(&resources->entries, &position))) {
      resource_entry_t* entry = at->value;
      if (container.size == 0 || rn_str_eq(rn_str(entry->key), container)) victim = entry;
    }
    if (victim) rn_map_remove(&resources->entries, rn_str_n(victim->key, victim->key_size));
    rn_mutex_unlock(&resources->mutex);
    if (!victim) return;
    free_entry(resources, victim);
  }
}

rn_status_t rn_handle_create(rn_allocator_t allocator, rn_str_t device, rn_str_t container,
                             rn_str_t name, rn_dtype_t dtype, rn_shape_t shape,
                             rn_resource_t* resource, rn_handle_t** out) {
  rn_handle_t from = {.device = device,
                      .container = container,
                      .name = name,
                      .type_name = rn_str(resource ? resource->type : NULL),
                      .dtype = dtype,
                      .shape = shape,
                      .resource = resource};
  return rn_handle_make(allocator, &from, out);
}

// Looks up the resource of a handle that came in a message. If several threads do so, the first
// one's result is kept.
static rn_status_t bind_handle(rn_handle_t* handle, rn_resources_t* resources, const char* type,
                               rn_resource_t** out) {
  RN_RETURN_IF_ERROR(
      rn_resources_get(resources, handle->container, handle->name, type, NULL, NULL, out));
  rn_resource_t* before = NULL;
  if (!__atomic_compare_exchange_n(&handle->resource, &before, *out, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    rn_object_release(&(*out)->object);
    *out = before;
  }
  return RN_OK;
}

rn_status_t rn_handle_resource(const rn_tensor_t* handle, rn_resources_t* resources,
                               const char* type, rn_resource_t** out) {
  *out = NULL;
  if (handle->dtype != RN_RESOURCE || handle->count != 1)
    return rn_invalid_argument("Expected a resource handle, got a %s tensor with %lld elements",
                               rn_dtype_name(handle->dtype), (long long)handle->count);
  rn_handle_t* object = *RN_DATA(handle, rn_handle_t*);
  rn_resource_t* resource = object ? __atomic_load_n(&object->resource, __ATOMIC_ACQUIRE) : NULL;
  if (object && !resource && object->name.size && resources)
    RN_RETURN_IF_ERROR(bind_handle(object, resources, type, &resource));
  if (!resource) return rn_invalid_argument("Trying to access a resource through an empty handle");
  if (strcmp(resource->type, type) != 0)
    return rn_invalid_argument("Trying to access resource %.*s, a %s, as a %s",
                               RN_STR_ARGS(object->name), resource->type, type);
  *out = resource;
  return RN_OK;
}

static void variable_destroy(rn_object_t* object) {
  rn_variable_t* variable = (rn_variable_t*)object;
  rn_tensor_clear(&variable->value);
  rn_mutex_destroy(&variable->mutex);
  rn_free(variable->allocator, (char*)variable->name.data, variable->name.size + 1);
  RN_FREE(variable->allocator, variable);
}

rn_status_t rn_variable_create(rn_allocator_t allocator, rn_dtype_t dtype, rn_str_t name,
                               rn_variable_t** out) {
  *out = NULL;
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &variable));
  char* copy = NULL;
  rn_status_t status = rn_str_dup(allocator, name, &copy);
  if (!rn_ok(status)) {
    RN_FREE(allocator, variable);
    return status;
  }
  variable->resource = (rn_resource_t){{.refs = 1, .destroy = variable_destroy}, RN_VARIABLE_TYPE};
  variable->allocator = allocator;
  variable->dtype = dtype;
  variable->name = rn_str_n(copy, name.size);
  rn_mutex_init(&variable->mutex);
  *out = variable;
  return RN_OK;
}

rn_status_t rn_variable_read(const rn_tensor_t* reference, bool allows_uninitialized,
                             rn_tensor_t* out) {
  if (!reference->is_ref || !reference->data)
    return rn_internal("A reference input is no reference");
  rn_variable_t* variable = reference->data;
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = rn_tensor_share(&variable->value, out);
  rn_mutex_unlock(&variable->mutex);
  RN_RETURN_IF_ERROR(status);
  if (rn_tensor_is_set(out)) return RN_OK;
  rn_tensor_clear(out);  // an uninitialised variable may have a shape already
  if (!allows_uninitialized)
    return rn_failed_precondition("Attempting to use uninitialized value %.*s",
                                  RN_STR_ARGS(variable->name));
  return RN_OK;
}
