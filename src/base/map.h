// A hash map from strings to pointers, with open addressing.
//
// Keys are borrowed: they must live as long as the entry. Not thread-safe.
#ifndef RUNNEL_BASE_MAP_H_
#define RUNNEL_BASE_MAP_H_

#include "base/str.h"

typedef struct rn_map_entry_t {
  rn_str_t key;
  uint64_t hash;
  void* value;  // NULL: empty slot
} rn_map_entry_t;

typedef struct rn_map_t {
  rn_allocator_t allocator;
  rn_map_entry_t* entries;  // Owned
  size_t capacity;          // a power of two, or 0
  size_t count;
} rn_map_t;

void rn_map_init(rn_map_t* map, rn_allocator_t allocator);
void rn_map_clear(rn_map_t* map);
// The value under |key|, or NULL.
void* rn_map_get(const rn_map_t* map, rn_str_t key);
// Makes room for |count| entries in all.
RN_MUST_USE rn_status_t rn_map_reserve(rn_map_t* map, size_t count);
// Puts |value| (not NULL) under |key|, replacing an earlier one, whose key is kept.
RN_MUST_USE rn_status_t rn_map_put(rn_map_t* map, rn_str_t key, void* value);
// Takes the entry out; returns its value, or NULL.
void* rn_map_remove(rn_map_t* map, rn_str_t key);
// The next entry at or after |*inout_position| (start with 0), or NULL at the end.
const rn_map_entry_t* rn_map_next(const rn_map_t* map, size_t* inout_position);

#endif  // RUNNEL_BASE_MAP_H_
