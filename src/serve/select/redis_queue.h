// Changes that wait to be carried to Redis, by key. Not thread-safe.
#ifndef RUNNEL_SERVE_SELECT_REDIS_QUEUE_H_
#define RUNNEL_SERVE_SELECT_REDIS_QUEUE_H_

#include "base/map.h"

typedef struct rn_redis_change_t {
  struct rn_redis_change_t* next;
  bool is_put;  // |bytes| is the value itself
  size_t size;
  char bytes[];
} rn_redis_change_t;
static inline size_t rn_redis_change_size(const rn_redis_change_t* change) {
  return sizeof *change + change->size;
}

// A key with its changes, in order.
typedef struct rn_redis_key_t {
  struct rn_redis_key_t* next;
  rn_redis_change_t *first, *last;
  size_t size;
  char bytes[];  // the key
} rn_redis_key_t;
static inline rn_str_t rn_redis_key_name(const rn_redis_key_t* key) {
  return rn_str_n(key->bytes, key->size);
}
// Moves the changes of |from| before those of |key|.
void rn_redis_key_prepend(rn_redis_key_t* key, rn_redis_key_t* from);
void rn_redis_key_free(rn_allocator_t allocator, rn_redis_key_t* key);

// Keys in the order in which they were added.
typedef struct rn_redis_queue_t {
  rn_map_t keys;  // of rn_redis_key_t
  rn_redis_key_t *first, *last;
} rn_redis_queue_t;
void rn_redis_queue_init(rn_redis_queue_t* queue, rn_allocator_t allocator);
void rn_redis_queue_clear(rn_redis_queue_t* queue);
// The entry of |key|, added if there is none.
RN_MUST_USE rn_status_t rn_redis_queue_key(rn_redis_queue_t* queue, rn_str_t key,
                                           rn_redis_key_t** out);
// Adds a change of |key|; |*out_size| is its rn_redis_change_size.
RN_MUST_USE rn_status_t rn_redis_queue_add(rn_redis_queue_t* queue, rn_str_t key, rn_str_t bytes,
                                           bool is_put, size_t* out_size);
// Takes out the first key, which the caller owns; NULL if there is none.
rn_redis_key_t* rn_redis_queue_pop(rn_redis_queue_t* queue);

#endif  // RUNNEL_SERVE_SELECT_REDIS_QUEUE_H_
