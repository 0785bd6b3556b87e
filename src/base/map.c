// Linear probing; a removal moves the entries behind it forward, so that no markers stay.
//
// Invariant: between an entry's home slot (hash & mask) and the slot it is in, every slot is taken.
#include "base/map.h"

#define FIRST_CAPACITY 16

void rn_map_init(rn_map_t* map, rn_allocator_t allocator) {
  *map = (rn_map_t){.allocator = allocator};
}

void rn_map_clear(rn_map_t* map) {
  if (map->entries) RN_FREE_ARRAY(map->allocator, map->entries, map->capacity);
  rn_map_init(map, map->allocator);
}

// The slot that holds |key|, or the free one where it would go. The map has a free slot.
static rn_map_entry_t* find(const rn_map_t* map, rn_str_t key, uint64_t hash) {
  size_t mask = map->capacity - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    rn_map_entry_t* entry = &map->entries[i];
    if (!entry->value || (entry->hash == hash && rn_str_eq(entry->key, key))) return entry;
  }
}

void* rn_map_get(const rn_map_t* map, rn_str_t key) {
  return map->count ? find(map, key, rn_str_hash(key))->value : NULL;
}

static rn_status_t grow_to(rn_map_t* map, size_t capacity) {
  rn_map_t larger = {.allocator = map->allocator, .count = map->count, .capacity = capacity};
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(map->allocator, larger.capacity, &larger.entries));
  size_t mask = larger.capacity - 1;
  for (size_t i = 0; i < map->capacity; i++) {
    if (!map->entries[i].value) continue;
    size_t slot = map->entries[i].hash & mask;
    while (larger.entries[slot].value) slot = (slot + 1) & mask;
    larger.entries[slot] = map->entries[i];
  }
  rn_map_clear(map);
  *map = larger;
  return RN_OK;
}

static rn_status_t grow(rn_map_t* map) {
  size_t capacity;
  if (!rn_mul_ok(map->capacity, 2, &capacity)) return rn_out_of_memory();
  return grow_to(map, capacity ? capacity : FIRST_CAPACITY);
}

rn_status_t rn_map_reserve(rn_map_t* map, size_t count) {
  size_t capacity = map->capacity ? map->capacity : FIRST_CAPACITY;
  while (capacity / 4 * 3 <= count) {
    if (!rn_mul_ok(capacity, 2, &capacity)) return rn_out_of_memory();
  }
  return capacity > map->capacity ? grow_to(map, capacity) : RN_OK;
}

rn_status_t rn_map_put(rn_map_t* map, rn_str_t key, void* value) {
  if (!value) return rn_internal("A map cannot hold NULL: '%.*s'", RN_STR_ARGS(key));
  uint64_t hash = rn_str_hash(key);
  rn_map_entry_t* entry = map->capacity ? find(map, key, hash) : NULL;
  if (entry && entry->value) {
    entry->value = value;
    return RN_OK;
  }
  if (map->count >= map->capacity / 4 * 3) {
    RN_RETURN_IF_ERROR(grow(map));
    entry = find(map, key, hash);
  }
  *entry = (rn_map_entry_t){key, hash, value};
  map->count++;
  return RN_OK;
}

void* rn_map_remove(rn_map_t* map, rn_str_t key) {
  if (!map->count) return NULL;
  rn_map_entry_t* entry = find(map, key, rn_str_hash(key));
  void* value = entry->value;
  if (!value) return NULL;
  size_t mask = map->capacity - 1;
  size_t hole = (size_t)(entry - map->entries);
  for (size_t i = (hole + 1) & mask; map->entries[i].value; i = (i + 1) & mask) {
    size_t home = map->entries[i].hash & mask;
    // An entry may move into the hole if its home is not between the hole and itself.
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      map->entries[hole] = map->entries[i];
      hole = i;
    }
  }
  map->entries[hole] = (rn_map_entry_t){0};
  map->count--;
  return value;
}

const rn_map_entry_t* rn_map_next(const rn_map_t* map, size_t* inout_position) {
  while (*inout_position < map->capacity) {
    const rn_map_entry_t* entry = &map->entries[(*inout_position)++];
    if (entry->value) return entry;
  }
  return NULL;
}
