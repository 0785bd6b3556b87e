// A map from keys to small values for millions of entries: what policies have learned, by
// application and user.
//
// An entry costs 8 bytes and its key and value, rounded up to 8, and 5 to 10 bytes of index. Any
// thread may call it; entries are spread over shards with a lock each. Keys may come from clients:
// they are hashed with a secret.
#ifndef RUNNEL_SERVE_SELECT_STATE_MAP_H_
#define RUNNEL_SERVE_SELECT_STATE_MAP_H_

#include "base/env.h"

#define RN_STATE_SHARDS 64
#define RN_STATE_MAX_KEY 1024
#define RN_STATE_MAX_VALUE (16 << 10)
#define RN_STATE_MAX_CHANGED 1024  // bytes of a value that rn_state_map_change makes

typedef struct rn_state_map_t rn_state_map_t;

// |max_bytes|: of entries and index together; 0: no limit.
RN_MUST_USE rn_status_t rn_state_map_create(const rn_env_t* env, rn_allocator_t allocator,
                                            size_t max_bytes, rn_state_map_t** out);
void rn_state_map_destroy(rn_state_map_t* map);  // NULL is fine

// Copies the value under |key| to |out| and returns its size; 0 if there is none, or if it is
// larger than |room|.
size_t rn_state_map_get(rn_state_map_t* map, rn_str_t key, void* out, size_t room);

// Puts |value| under |key|; "" removes it. |is_dirty|: rn_state_map_take reports it.
// INVALID_ARGUMENT for keys and values beyond the limits, RESOURCE_EXHAUSTED beyond |max_bytes|.
RN_MUST_USE rn_status_t rn_state_map_put(rn_state_map_t* map, rn_str_t key, rn_str_t value,
                                         bool is_dirty);
// Makes a new value of the one under |key| ("" if there is none): |fn| writes it to |out|, of
// RN_STATE_MAX_CHANGED bytes, and returns its size; 0: nothing changes. |fn| runs under the shard's
// lock and must not call the map.
typedef size_t (*rn_state_map_fn_t)(void* arg, rn_str_t key, rn_str_t value, void* out);
RN_MUST_USE rn_status_t rn_state_map_change(rn_state_map_t* map, rn_str_t key, bool is_dirty,
                                            rn_state_map_fn_t fn, void* arg);

// Calls |fn| for entries, under their shard's lock; value "" means that the entry was removed.
typedef void (*rn_state_each_fn_t)(void* arg, rn_str_t key, rn_str_t value);
// Of shard |shard| that are not removed.
void rn_state_map_each(rn_state_map_t* map, int shard, rn_state_each_fn_t fn, void* arg);
// Of all shards that are dirty; they no longer are.
void rn_state_map_take(rn_state_map_t* map, rn_state_each_fn_t fn, void* arg);

typedef struct rn_state_map_stats_t {
  size_t entries, bytes, dirty;
} rn_state_map_stats_t;
rn_state_map_stats_t rn_state_map_stats(rn_state_map_t* map);

#endif  // RUNNEL_SERVE_SELECT_STATE_MAP_H_
