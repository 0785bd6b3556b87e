// See state_map.h.
//
// A shard keeps its entries in chunks of 64 KiB and refers to them by 32-bit numbers: the chunk,
// and the place in it in units of 8 bytes. Place 0 of the first chunk is unused, so that 0 can mark
// an empty slot of the index, which has open addressing. Freed entries are linked by size class:
// one class per size up to 1 KiB, then one per power of two.
#include "serve/select/state_map.h"

#include "base/hash.h"
#include "base/sync.h"
#include "base/vec.h"

enum {
  UNIT = 8,
  CHUNK_UNITS = 8192,  // 64 KiB
  CHUNK_BITS = 13,
  EXACT_CLASSES = 128,  // up to 1 KiB
  CLASSES = EXACT_CLASSES + 6,
  DIRTY = 0x8000,  // in key_size
};

typedef struct rn_state_entry_t {
  uint32_t hash;      // of a free entry: the next one
  uint16_t key_size;  // and DIRTY
  uint16_t value_size;
  char bytes[];  // key, then value
} rn_state_entry_t;

typedef struct rn_state_shard_t {
  rn_mutex_t mutex;
  RN_VEC(char*) chunks;
  uint32_t used;  // units of the last chunk
  uint32_t free[CLASSES];
  uint32_t* slots;  // Owned
  size_t slot_count, entries;
  RN_VEC(uint32_t) dirty;
} rn_state_shard_t;

struct rn_state_map_t {
  rn_allocator_t allocator;
  uint64_t secret[2];
  size_t max_bytes;
  _Atomic size_t bytes;
  rn_state_shard_t shards[RN_STATE_SHARDS];
};

rn_status_t rn_state_map_create(const rn_env_t* env, rn_allocator_t allocator, size_t max_bytes,
                                rn_state_map_t** out) {
  *out = NULL;
  rn_state_map_t* map = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &map));
  map->allocator = allocator;
  map->max_bytes = max_bytes ? max_bytes : SIZE_MAX;
  for (int i = 0; i < 2; ++i) map->secret[i] = env->random(env->self);
  for (int i = 0; i < RN_STATE_SHARDS; ++i) rn_mutex_init(&map->shards[i].mutex);
  *out = map;
  return RN_OK;
}

void rn_state_map_destroy(rn_state_map_t* map) {
  if (!map) return;
  for (int i = 0; i < RN_STATE_SHARDS; ++i) {
    rn_state_shard_t* shard = &map->shards[i];
    for (size_t j = 0; j < shard->chunks.count; ++j)
      rn_free(map->allocator, shard->chunks.items[j], CHUNK_UNITS * UNIT);
    rn_vec_free(&shard->chunks, map->allocator);
    rn_vec_free(&shard->dirty, map->allocator);
    RN_FREE_ARRAY(map->allocator, shard->slots, shard->slot_count);
    rn_mutex_destroy(&shard->mutex);
  }
  RN_FREE(map->allocator, map);
}

static rn_state_entry_t* entry_at(const rn_state_shard_t* shard, uint32_t ref) {
  return (rn_state_entry_t*)(shard->chunks.items[ref >> CHUNK_BITS] +
                             (size_t)(ref & (CHUNK_UNITS - 1)) * UNIT);
}

static size_t key_size(const rn_state_entry_t* entry) { return entry->key_size & ~DIRTY; }
static rn_str_t key_of(const rn_state_entry_t* entry) {
  return rn_str_n(entry->bytes, key_size(entry));
}
static rn_str_t value_of(const rn_state_entry_t* entry) {
  return rn_str_n(entry->bytes + key_size(entry), entry->value_size);
}

static rn_state_shard_t* shard_of(rn_state_map_t* map, rn_str_t key, uint32_t* out_hash) {
  uint64_t hash = rn_sip_hash64(key, map->secret);
  *out_hash = (uint32_t)hash;
  return &map->shards[hash >> 32 & (RN_STATE_SHARDS - 1)];
}

// The slot of |key|, or the empty one where it would be. The index must not be empty.
static size_t slot_of(const rn_state_shard_t* shard, rn_str_t key, uint32_t hash) {
  for (size_t i = hash;; ++i) {
    size_t slot = i & (shard->slot_count - 1);
    if (!shard->slots[slot]) return slot;
    const rn_state_entry_t* entry = entry_at(shard, shard->slots[slot]);
    if (entry->hash == hash && rn_str_eq(key_of(entry), key)) return slot;
  }
}

static uint32_t find(const rn_state_shard_t* shard, rn_str_t key, uint32_t hash) {
  return shard->slot_count ? shard->slots[slot_of(shard, key, hash)] : 0;
}

// The class of entries with |bytes| bytes after the header, and their size.
static int class_of(size_t bytes, uint32_t* out_units) {
  uint32_t units = (uint32_t)((sizeof(rn_state_entry_t) + bytes + UNIT - 1) / UNIT);
  *out_units = units;
  if (units < EXACT_CLASSES) return (int)units;
  int class = EXACT_CLASSES;
  for (*out_units = EXACT_CLASSES; *out_units < units; *out_units *= 2) ++class;
  return class;
}

static rn_status_t charge(rn_state_map_t* map, size_t bytes) {
  if (map->bytes + bytes > map->max_bytes)
    return rn_resource_exhausted("The states of applications and users exceed %zu bytes",
                                 map->max_bytes);
  map->bytes += bytes;
  return RN_OK;
}

static rn_status_t allocate(rn_state_map_t* map, rn_state_shard_t* shard, size_t bytes,
                            uint32_t* out) {
  uint32_t units;
  int class = class_of(bytes, &units);
  if ((*out = shard->free[class])) {
    shard->free[class] = entry_at(shard, *out)->hash;
    return RN_OK;
  }
  if (!shard->chunks.count || shard->used + units > CHUNK_UNITS) {
    char* chunk = NULL;
    RN_RETURN_IF_ERROR(rn_vec_reserve(&shard->chunks, map->allocator, shard->chunks.count + 1));
    RN_RETURN_IF_ERROR(charge(map, CHUNK_UNITS * UNIT));
    rn_status_t status = rn_alloc(map->allocator, CHUNK_UNITS * UNIT, (void**)&chunk);
    if (!rn_ok(status)) {
      map->bytes -= CHUNK_UNITS * UNIT;
      return status;
    }
    shard->used = shard->chunks.count ? 0 : 1;
    shard->chunks.items[shard->chunks.count++] = chunk;
  }
  *out = (uint32_t)((shard->chunks.count - 1) << CHUNK_BITS | shard->used);
  shard->used += units;
  return RN_OK;
}

static void release(rn_state_shard_t* shard, uint32_t ref) {
  rn_state_entry_t* entry = entry_at(shard, ref);
  uint32_t units;
  int class = class_of(key_size(entry) + entry->value_size, &units);
  entry->hash = shard->free[class];
  shard->free[class] = ref;
}

// Keeps the index below four fifths full.
static rn_status_t reserve_slot(rn_state_map_t* map, rn_state_shard_t* shard) {
  if ((shard->entries + 1) * 5 <= shard->slot_count * 4) return RN_OK;
  size_t count = shard->slot_count ? shard->slot_count * 2 : 64;
  uint32_t* slots = NULL;
  RN_RETURN_IF_ERROR(charge(map, (count - shard->slot_count) * sizeof *slots));
  rn_status_t status = RN_NEW_ARRAY(map->allocator, count, &slots);
  if (!rn_ok(status)) {
    map->bytes -= (count - shard->slot_count) * sizeof *slots;
    return status;
  }
  uint32_t* old = shard->slots;
  size_t old_count = shard->slot_count;
  shard->slots = slots;
  shard->slot_count = count;
  for (size_t i = 0; i < old_count; ++i) {
    if (!old[i]) continue;
    size_t slot = entry_at(shard, old[i])->hash;
    while (slots[slot & (count - 1)]) ++slot;
    slots[slot & (count - 1)] = old[i];
  }
  RN_FREE_ARRAY(map->allocator, old, old_count);
  return RN_OK;
}

// Lists |ref| as dirty; an entry that moved has its old place |from| in the list.
static rn_status_t mark(rn_state_map_t* map, rn_state_shard_t* shard, uint32_t ref, uint32_t from) {
  rn_state_entry_t* entry = entry_at(shard, ref);
  if (entry->key_size & DIRTY) {
    for (size_t i = shard->dirty.count; from != ref && i-- > 0;)
      if (shard->dirty.items[i] == from) {
        shard->dirty.items[i] = ref;
        break;
      }
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_vec_push(&shard->dirty, map->allocator, ref));
  entry->key_size |= DIRTY;
  return RN_OK;
}

static rn_status_t put_locked(rn_state_map_t* map, rn_state_shard_t* shard, rn_str_t key,
                              uint32_t hash, rn_str_t value, bool is_dirty) {
  if (!key.size || key.size > RN_STATE_MAX_KEY || value.size > RN_STATE_MAX_VALUE)
    return rn_invalid_argument("A state of %zu bytes under a key of %zu is too large", value.size,
                               key.size);
  RN_RETURN_IF_ERROR(reserve_slot(map, shard));
  if (is_dirty)
    RN_RETURN_IF_ERROR(rn_vec_reserve(&shard->dirty, map->allocator, shard->dirty.count + 1));
  size_t slot = slot_of(shard, key, hash);
  uint32_t old = shard->slots[slot], ref = old;
  if (!old && !value.size) return RN_OK;
  bool was_dirty = old && (entry_at(shard, old)->key_size & DIRTY);
  uint32_t units, old_units = 0;
  class_of(key.size + value.size, &units);
  if (old) class_of(key.size + entry_at(shard, old)->value_size, &old_units);
  if (units != old_units) {
    RN_RETURN_IF_ERROR(allocate(map, shard, key.size + value.size, &ref));
    rn_state_entry_t* entry = entry_at(shard, ref);
    entry->hash = hash;
    entry->key_size = (uint16_t)(key.size | (was_dirty ? DIRTY : 0));
    memcpy(entry->bytes, key.data, key.size);
    shard->slots[slot] = ref;
    if (!old) ++shard->entries;
  }
  rn_state_entry_t* entry = entry_at(shard, ref);
  if (value.size) memmove(entry->bytes + key.size, value.data, value.size);
  rn_status_t status = is_dirty || was_dirty ? mark(map, shard, ref, old) : RN_OK;
  if (old && old != ref) release(shard, old);
  entry->value_size = (uint16_t)value.size;
  return status;
}

size_t rn_state_map_get(rn_state_map_t* map, rn_str_t key, void* out, size_t room) {
  uint32_t hash;
  rn_state_shard_t* shard = shard_of(map, key, &hash);
  size_t size = 0;
  rn_mutex_lock(&shard->mutex);
  uint32_t ref = find(shard, key, hash);
  if (ref) {
    rn_str_t value = value_of(entry_at(shard, ref));
    if (value.size && value.size <= room) {
      memcpy(out, value.data, value.size);
      size = value.size;
    }
  }
  rn_mutex_unlock(&shard->mutex);
  return size;
}

rn_status_t rn_state_map_put(rn_state_map_t* map, rn_str_t key, rn_str_t value, bool is_dirty) {
  uint32_t hash;
  rn_state_shard_t* shard = shard_of(map, key, &hash);
  rn_mutex_lock(&shard->mutex);
  rn_status_t status = put_locked(map, shard, key, hash, value, is_dirty);
  rn_mutex_unlock(&shard->mutex);
  return status;
}

rn_status_t rn_state_map_change(rn_state_map_t* map, rn_str_t key, bool is_dirty,
                                rn_state_map_fn_t fn, void* arg) {
  _Alignas(16) char made[RN_STATE_MAX_CHANGED];
  uint32_t hash;
  rn_state_shard_t* shard = shard_of(map, key, &hash);
  rn_mutex_lock(&shard->mutex);
  uint32_t ref = find(shard, key, hash);
  size_t size = fn(arg, key, ref ? value_of(entry_at(shard, ref)) : RN_STR(""), made);
  rn_status_t status =
      size ? put_locked(map, shard, key, hash, rn_str_n(made, size), is_dirty) : RN_OK;
  rn_mutex_unlock(&shard->mutex);
  return status;
}

void rn_state_map_each(rn_state_map_t* map, int shard_index, rn_state_each_fn_t fn, void* arg) {
  rn_state_shard_t* shard = &map->shards[shard_index];
  rn_mutex_lock(&shard->mutex);
  for (size_t i = 0; i < shard->slot_count; ++i) {
    if (!shard->slots[i]) continue;
    const rn_state_entry_t* entry = entry_at(shard, shard->slots[i]);
    if (entry->value_size) fn(arg, key_of(entry), value_of(entry));
  }
  rn_mutex_unlock(&shard->mutex);
}

void rn_state_map_take(rn_state_map_t* map, rn_state_each_fn_t fn, void* arg) {
  for (int i = 0; i < RN_STATE_SHARDS; ++i) {
    rn_state_shard_t* shard = &map->shards[i];
    rn_mutex_lock(&shard->mutex);
    for (size_t j = 0; j < shard->dirty.count; ++j) {
      rn_state_entry_t* entry = entry_at(shard, shard->dirty.items[j]);
      entry->key_size &= (uint16_t)~DIRTY;
      fn(arg, key_of(entry), value_of(entry));
    }
    shard->dirty.count = 0;
    rn_mutex_unlock(&shard->mutex);
  }
}

rn_state_map_stats_t rn_state_map_stats(rn_state_map_t* map) {
  rn_state_map_stats_t stats = {.bytes = map->bytes};
  for (int i = 0; i < RN_STATE_SHARDS; ++i) {
    rn_state_shard_t* shard = &map->shards[i];
    rn_mutex_lock(&shard->mutex);
    stats.entries += shard->entries;
    stats.dirty += shard->dirty.count;
    rn_mutex_unlock(&shard->mutex);
  }
  return stats;
}
