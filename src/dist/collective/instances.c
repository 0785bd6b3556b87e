// Sources of broadcasts: see instances.h.
#include "dist/collective/instances.h"

#include <stdio.h>

#include "base/container.h"
#include "base/map.h"
#include "base/sync.h"
#include "framework/collective.h"

// Instances that are remembered. Stock's tasks ask once per instance, so an old one must stay known
// to members that ask again.
#define MAX_INSTANCES 65536
#define MAX_MEMBERS (1 << 20)

typedef struct instances_wait_t {
  struct instances_wait_t* next;
  rn_instances_t* instances;
  struct instance_t* instance;
  rn_complete_instance_t* call;
  rn_cancel_entry_t gone;
  bool is_linked;
} instances_wait_t;

typedef struct instance_t {
  struct instance_t* next;  // in the order of their beginning
  int32_t size, known, source;
  rn_status_t status;  // Owned: the members do not agree
  instances_wait_t* waits;
  char key[64];
  bool is_known[];  // by rank
} instance_t;

struct rn_instances_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards what follows
  rn_map_t map;
  instance_t *first, *last;
  rn_status_t closed;  // Owned
};

rn_status_t rn_instances_create(rn_allocator_t allocator, rn_instances_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->allocator = allocator;
  rn_mutex_init(&(*out)->mutex);
  rn_map_init(&(*out)->map, allocator);
  return RN_OK;
}

static void instance_free(rn_instances_t* instances, instance_t* instance) {
  rn_status_free(instance->status);
  rn_free(instances->allocator, instance, sizeof *instance + (size_t)instance->size);
}

// Forgets the oldest instance, unless a call waits for it.
static void drop_oldest(rn_instances_t* instances) {
  instance_t* oldest = instances->first;
  if (!oldest || oldest->waits) return;
  instances->first = oldest->next;
  if (!instances->first) instances->last = NULL;
  rn_map_remove(&instances->map, rn_str(oldest->key));
  instance_free(instances, oldest);
}

void rn_instances_destroy(rn_instances_t* instances) {
  if (!instances) return;
  while (instances->first) drop_oldest(instances);
  rn_map_clear(&instances->map);
  rn_status_free(instances->closed);
  rn_mutex_destroy(&instances->mutex);
  RN_FREE(instances->allocator, instances);
}

static rn_status_t get_locked(rn_instances_t* instances, const rn_complete_instance_t* call,
                              instance_t** out) {
  char key[sizeof((instance_t*)0)->key];
  snprintf(key, sizeof key, "%lld:%d:%d", (long long)call->step, call->group_key,
           call->instance_key);
  *out = rn_map_get(&instances->map, rn_str(key));
  if (*out && (*out)->size == call->group_size) return RN_OK;
  if (*out)
    return rn_internal("Instance %d of group %d has %d members, not %d", call->instance_key,
                       call->group_key, (*out)->size, call->group_size);
  if (call->group_size <= 0 || call->group_size > MAX_MEMBERS)
    return rn_invalid_argument("group_size must be positive integer but got %d", call->group_size);
  if (instances->map.count >= MAX_INSTANCES) drop_oldest(instances);
  instance_t* instance = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(
      instances->allocator, sizeof *instance + (size_t)call->group_size, (void**)&instance));
  instance->size = call->group_size;
  instance->source = -1;
  memcpy(instance->key, key, sizeof key);
  rn_status_t status = rn_map_put(&instances->map, rn_str(instance->key), instance);
  if (!rn_ok(status)) {
    instance_free(instances, instance);
    return status;
  }
  if (instances->last)
    instances->last->next = instance;
  else
    instances->first = instance;
  instances->last = instance;
  *out = instance;
  return RN_OK;
}

// Notes that |rank| has asked.
static void note(instance_t* instance, int32_t rank, const rn_complete_instance_t* call) {
  if (instance->is_known[rank]) return;
  instance->is_known[rank] = true;
  instance->known++;
  if (call->is_source && instance->source >= 0 && rn_ok(instance->status))
    instance->status =
        rn_internal("Instance %d already has source %d, received second claim from %d",
                    call->instance_key, instance->source, rank);
  else if (call->is_source)
    instance->source = rank;
  if (instance->known == instance->size && instance->source < 0 && rn_ok(instance->status))
    instance->status = rn_internal(
        "Instance %d found no source for broadcast.  This could mean that there were group_size=%d "
        "BcastRecvs but no BcastSend.",
        call->instance_key, instance->size);
}

// Ends the calls in the list |waits|. Takes |status|.
static void end_waits(instances_wait_t* waits, int32_t source, rn_status_t status) {
  while (waits) {
    instances_wait_t* next = waits->next;
    rn_complete_instance_t* call = waits->call;
    if (waits->is_linked) rn_cancel_remove(call->call.cancel, &waits->gone);
    RN_FREE(waits->instances->allocator, waits);
    call->source_rank = source;
    rn_call_done(&call->call, rn_status_copy(status));
    waits = next;
  }
  rn_status_free(status);
}

// Takes all who wait for |instance| off it.
static instances_wait_t* take_waits_locked(instance_t* instance) {
  instances_wait_t* waits = instance->waits;
  for (instances_wait_t* wait = waits; wait; wait = wait->next) wait->instance = NULL;
  instance->waits = NULL;
  return waits;
}

// Takes |wait| off its instance; false if it was taken already, and is about to end.
static bool take_back_locked(instances_wait_t* wait) {
  if (!wait->instance) return false;
  instances_wait_t** at = &wait->instance->waits;
  while (*at != wait) at = &(*at)->next;
  *at = wait->next;
  wait->next = NULL;
  wait->instance = NULL;
  return true;
}

static void on_gone(rn_cancel_entry_t* entry) {
  instances_wait_t* wait = RN_CONTAINER_OF(entry, instances_wait_t, gone);
  rn_instances_t* instances = wait->instances;
  rn_mutex_lock(&instances->mutex);
  bool is_there = take_back_locked(wait);
  rn_mutex_unlock(&instances->mutex);
  if (is_there) end_waits(wait, -1, rn_cancelled("CompleteInstance was cancelled"));
}

void rn_instances_ask(rn_instances_t* instances, int32_t rank, rn_complete_instance_t* call) {
  instance_t* instance = NULL;
  instances_wait_t *wait = NULL, *ready = NULL;
  if (call->kind != RN_COLLECTIVE_BROADCAST) {
    call->source_rank = -1;
    rn_call_done(&call->call, RN_OK);
    return;
  }
  rn_status_t status = RN_NEW(instances->allocator, &wait);
  if (rn_ok(status)) {
    wait->instances = instances;
    wait->call = call;
    wait->gone.fn = on_gone;
  }
  rn_mutex_lock(&instances->mutex);
  if (rn_ok(status)) status = rn_status_copy(instances->closed);
  if (rn_ok(status)) status = get_locked(instances, call, &instance);
  if (rn_ok(status) && (rank < 0 || rank >= instance->size))
    status = rn_internal("Rank %d of an instance with %d members", rank, instance->size);
  if (!rn_ok(status)) {
    rn_mutex_unlock(&instances->mutex);
    if (wait) RN_FREE(instances->allocator, wait);
    rn_call_done(&call->call, status);
    return;
  }
  wait->instance = instance;
  wait->next = instance->waits;
  instance->waits = wait;
  note(instance, rank, call);
  if (instance->known == instance->size || !rn_ok(instance->status)) {
    ready = take_waits_locked(instance);
  } else if (call->call.cancel) {
    wait->is_linked = rn_cancel_add(call->call.cancel, &wait->gone);
    if (!wait->is_linked && take_back_locked(wait)) {  // it was cancelled already
      ready = wait;
      status = rn_cancelled("CompleteInstance was cancelled");
    }
  }
  int32_t source = instance->source;
  if (rn_ok(status)) status = rn_status_copy(instance->status);
  rn_mutex_unlock(&instances->mutex);
  if (ready)
    end_waits(ready, source, status);
  else
    rn_status_free(status);
}

void rn_instances_close(rn_instances_t* instances, rn_status_t status) {
  instances_wait_t* waits = NULL;
  rn_mutex_lock(&instances->mutex);
  rn_status_free(instances->closed);
  instances->closed = rn_status_copy(status);
  for (instance_t* instance = instances->first; instance; instance = instance->next) {
    instances_wait_t* all = take_waits_locked(instance);
    while (all) {
      instances_wait_t* next = all->next;
      all->next = waits;
      waits = all;
      all = next;
    }
  }
  rn_mutex_unlock(&instances->mutex);
  end_waits(waits, -1, status);
}
