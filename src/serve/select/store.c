// See store.h.
#include "serve/select/store.h"

rn_status_t rn_state_store_init(rn_state_store_t* store, const rn_env_t* env, size_t max_bytes) {
  rn_mutex_init(&store->mutex);
  return rn_state_map_create(env, store->allocator, max_bytes, &store->map);
}

void rn_state_store_deinit(rn_state_store_t* store) {
  rn_mutex_destroy(&store->mutex);
  rn_state_map_destroy(store->map);
}

static void destroy_memory(rn_state_store_t* store) {
  rn_state_store_deinit(store);
  RN_FREE(store->allocator, store);
}

static const rn_state_store_vtable_t memory_vtable = {.kind = "memory", .destroy = destroy_memory};

rn_status_t rn_state_store_create_memory(const rn_env_t* env, rn_allocator_t allocator,
                                         size_t max_bytes, rn_state_store_t** out) {
  *out = NULL;
  rn_state_store_t* store = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &store));
  store->vtable = &memory_vtable;
  store->allocator = allocator;
  rn_status_t status = rn_state_store_init(store, env, max_bytes);
  if (!rn_ok(status)) {
    rn_state_store_destroy(store);
    return status;
  }
  *out = store;
  return RN_OK;
}

void rn_state_store_destroy(rn_state_store_t* store) {
  if (store) store->vtable->destroy(store);
}

void rn_state_store_attach(rn_state_store_t* store, rn_state_apply_fn_t apply,
                           rn_state_noticed_fn_t noticed, void* self) {
  rn_mutex_lock(&store->mutex);
  store->apply = apply;
  store->noticed = noticed;
  store->self = self;
  rn_mutex_unlock(&store->mutex);
}

size_t rn_state_store_apply(rn_state_store_t* store, rn_str_t key, rn_str_t value, rn_str_t change,
                            void* out) {
  rn_mutex_lock(&store->mutex);
  size_t size = store->apply ? store->apply(store->self, key, value, change, out) : 0;
  rn_mutex_unlock(&store->mutex);
  return size;
}

void rn_state_store_notice(rn_state_store_t* store, rn_str_t key, rn_str_t value) {
  rn_mutex_lock(&store->mutex);
  if (store->noticed) store->noticed(store->self, key, value);
  rn_mutex_unlock(&store->mutex);
}

size_t rn_state_store_get(rn_state_store_t* store, rn_str_t key, void* out, size_t room) {
  size_t size = rn_state_map_get(store->map, key, out, room);
  if (store->vtable->read) store->vtable->read(store, key, size > 0);
  return size;
}

typedef struct rn_state_change_t {
  rn_state_store_t* store;
  rn_str_t change;
} rn_state_change_t;

static size_t change_value(void* arg, rn_str_t key, rn_str_t value, void* out) {
  rn_state_change_t* change = arg;
  return rn_state_store_apply(change->store, key, value, change->change, out);
}

rn_status_t rn_state_store_change(rn_state_store_t* store, rn_str_t key, rn_str_t change) {
  rn_state_change_t arg = {store, change};
  RN_RETURN_IF_ERROR(rn_state_map_change(store->map, key, store->marks_dirty, change_value, &arg));
  if (store->vtable->changed) store->vtable->changed(store, key, change);
  return RN_OK;
}

rn_status_t rn_state_store_put(rn_state_store_t* store, rn_str_t key, rn_str_t value) {
  RN_RETURN_IF_ERROR(rn_state_map_put(store->map, key, value, store->marks_dirty));
  if (store->vtable->put) store->vtable->put(store, key, value);
  return RN_OK;
}

typedef struct rn_state_filter_t {
  rn_str_t prefix;
  rn_state_each_fn_t fn;
  void* arg;
} rn_state_filter_t;

static void filter(void* arg, rn_str_t key, rn_str_t value) {
  const rn_state_filter_t* wanted = arg;
  if (rn_str_starts_with(key, wanted->prefix)) wanted->fn(wanted->arg, key, value);
}

void rn_state_store_each(rn_state_store_t* store, rn_str_t prefix, rn_state_each_fn_t fn,
                         void* arg) {
  rn_state_filter_t wanted = {prefix, fn, arg};
  for (int i = 0; i < RN_STATE_SHARDS; ++i) rn_state_map_each(store->map, i, filter, &wanted);
}

rn_status_t rn_state_store_flush(rn_state_store_t* store) {
  return store->vtable->flush ? store->vtable->flush(store) : RN_OK;
}

rn_state_store_stats_t rn_state_store_stats(rn_state_store_t* store) {
  rn_state_map_stats_t map = rn_state_map_stats(store->map);
  rn_state_store_stats_t stats = {.entries = map.entries, .bytes = map.bytes};
  if (store->vtable->add_stats) store->vtable->add_stats(store, &stats);
  return stats;
}
