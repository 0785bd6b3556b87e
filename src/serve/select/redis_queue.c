// See redis_queue.h.
#include "serve/select/redis_queue.h"

void rn_redis_key_prepend(rn_redis_key_t* key, rn_redis_key_t* from) {
  if (!from->first) return;
  from->last->next = key->first;
  if (!key->last) key->last = from->last;
  key->first = from->first;
  from->first = from->last = NULL;
}

void rn_redis_key_free(rn_allocator_t allocator, rn_redis_key_t* key) {
  for (rn_redis_change_t *change = key->first, *next; change; change = next) {
    next = change->next;
    rn_free(allocator, change, rn_redis_change_size(change));
  }
  rn_free(allocator, key, sizeof *key + key->size);
}

void rn_redis_queue_init(rn_redis_queue_t* queue, rn_allocator_t allocator) {
  *queue = (rn_redis_queue_t){0};
  rn_map_init(&queue->keys, allocator);
}

void rn_redis_queue_clear(rn_redis_queue_t* queue) {
  for (rn_redis_key_t* key; (key = rn_redis_queue_pop(queue));)
    rn_redis_key_free(queue->keys.allocator, key);
  rn_map_clear(&queue->keys);
}

rn_status_t rn_redis_queue_key(rn_redis_queue_t* queue, rn_str_t key, rn_redis_key_t** out) {
  if ((*out = rn_map_get(&queue->keys, key))) return RN_OK;
  rn_redis_key_t* entry = NULL;
  rn_allocator_t allocator = queue->keys.allocator;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, sizeof *entry + key.size, (void**)&entry));
  entry->size = key.size;
  memcpy(entry->bytes, key.data, key.size);
  rn_status_t status = rn_map_put(&queue->keys, rn_redis_key_name(entry), entry);
  if (!rn_ok(status)) {
    rn_redis_key_free(allocator, entry);
    return status;
  }
  *(queue->last ? &queue->last->next : &queue->first) = entry;
  queue->last = entry;
  *out = entry;
  return RN_OK;
}

rn_status_t rn_redis_queue_add(rn_redis_queue_t* queue, rn_str_t key, rn_str_t bytes, bool is_put,
                               size_t* out_size) {
  rn_redis_change_t* change = NULL;
  rn_redis_key_t* entry = NULL;
  rn_allocator_t allocator = queue->keys.allocator;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, sizeof *change + bytes.size, (void**)&change));
  change->is_put = is_put;
  change->size = bytes.size;
  if (bytes.size) memcpy(change->bytes, bytes.data, bytes.size);
  rn_status_t status = rn_redis_queue_key(queue, key, &entry);
  if (!rn_ok(status)) {
    rn_free(allocator, change, rn_redis_change_size(change));
    return status;
  }
  *(entry->last ? &entry->last->next : &entry->first) = change;
  entry->last = change;
  *out_size = rn_redis_change_size(change);
  return RN_OK;
}

rn_redis_key_t* rn_redis_queue_pop(rn_redis_queue_t* queue) {
  rn_redis_key_t* key = queue->first;
  if (!key) return NULL;
  rn_map_remove(&queue->keys, rn_redis_key_name(key));
  queue->first = key->next;
  if (!queue->first) queue->last = NULL;
  key->next = NULL;
  return key;
}
