// See aliases.h.
#include "dist/worker/aliases.h"

#define MAX_ALIASES 256

typedef struct worker_alias_t {
  struct worker_alias_t* next;
  char* task;  // Owned
  rn_device_t** devices;
  int count;
} worker_alias_t;

static void alias_free(const rn_worker_aliases_t* aliases, worker_alias_t* alias) {
  for (int i = 0; i < alias->count; ++i) {
    alias->devices[i]->resources = NULL;  // the worker's
    rn_device_destroy(alias->devices[i]);
  }
  RN_FREE_ARRAY(aliases->allocator, alias->devices, aliases->device_count);
  if (alias->task) rn_free(aliases->allocator, alias->task, strlen(alias->task) + 1);
  RN_FREE(aliases->allocator, alias);
}

static rn_status_t make_devices(const rn_worker_aliases_t* aliases, worker_alias_t* alias) {
  RN_RETURN_IF_ERROR(
      RN_NEW_ARRAY(aliases->allocator, (size_t)aliases->device_count, &alias->devices));
  for (; alias->count < aliases->device_count; ++alias->count) {
    const rn_device_t* device = aliases->devices[alias->count];
    rn_device_t** made = &alias->devices[alias->count];
    if (!device->is_host)
      return rn_unimplemented("%.*s cannot be called %s in a session that shares its state",
                              RN_STR_ARGS(device->name), alias->task);
    RN_RETURN_IF_ERROR(rn_cpu_device_create(aliases->allocator, rn_str(alias->task), device->index,
                                            aliases->env, made));
    rn_resources_destroy((*made)->resources);
    (*made)->resources = device->resources;
    (*made)->incarnation = device->incarnation;
  }
  return RN_OK;
}

rn_status_t rn_worker_aliases_get(rn_worker_aliases_t* aliases, rn_str_t task, rn_device_t*** out) {
  int count = 0;
  worker_alias_t* alias = aliases->first;
  for (; alias && !rn_str_is(task, alias->task); alias = alias->next) ++count;
  if (!alias && count >= MAX_ALIASES)
    return rn_resource_exhausted("Clients have called this task by more than %d names",
                                 MAX_ALIASES);
  rn_status_t status = RN_OK;
  if (!alias) {
    RN_RETURN_IF_ERROR(RN_NEW(aliases->allocator, &alias));
    status = rn_str_dup(aliases->allocator, task, &alias->task);
    if (rn_ok(status)) status = make_devices(aliases, alias);
    if (!rn_ok(status)) {
      alias_free(aliases, alias);
      return status;
    }
    alias->next = aliases->first;
    aliases->first = alias;
  }
  *out = alias->devices;
  return RN_OK;
}

void rn_worker_aliases_clear(rn_worker_aliases_t* aliases) {
  while (aliases->first) {
    worker_alias_t* alias = aliases->first;
    aliases->first = alias->next;
    alias_free(aliases, alias);
  }
}
