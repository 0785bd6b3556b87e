// Bins of treaps, and a table of lists.
//
// In a treap, chunks are in order from left to right, and no chunk has a higher priority than its
// parent. Priorities are hashes of addresses, which keeps the trees shallow.
#include "device/cuda/chunks.h"

#include "base/assert.h"

#define FIRST_BUCKETS ((size_t)64)

// Bins 1 to 7 hold one size each. Then every power of two of units has eight bins.
static uint32_t bin_of(size_t size) {
  uint64_t units = size / RN_CUDA_CHUNK_UNIT;
  if (units < 8) return (uint32_t)units;
  uint32_t power = 63 - (uint32_t)__builtin_clzll(units);
  return (power - 2) * 8 + ((uint32_t)(units >> (power - 3)) & 7);
}

_Static_assert((55 - 2) * 8 + 7 < 64 * RN_CUDA_BIN_WORDS, "the largest size has a bin");

static uint64_t hash_of(uint64_t address) {
  uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
  return (hash ^ hash >> 32) * UINT64_C(0xb7e151628aed2a6b);
}

static uint64_t priority(const rn_cuda_chunk_t* chunk) { return hash_of(chunk->address); }

static bool is_less(const rn_cuda_chunk_t* a, const rn_cuda_chunk_t* b) {
  return a->size != b->size ? a->size < b->size : a->address < b->address;
}

void rn_cuda_bins_insert(rn_cuda_bins_t* bins, rn_cuda_chunk_t* chunk) {
  uint32_t bin = bin_of(chunk->size);
  bins->used[bin / 64] |= UINT64_C(1) << bin % 64;
  rn_cuda_chunk_t** at = &bins->roots[bin];
  uint64_t rank = priority(chunk);
  while (*at && priority(*at) >= rank) at = is_less(chunk, *at) ? &(*at)->smaller : &(*at)->larger;
  // The chunk takes this place; what was below is split into what is smaller and what is larger.
  rn_cuda_chunk_t* rest = *at;
  *at = chunk;
  rn_cuda_chunk_t** smaller = &chunk->smaller;
  rn_cuda_chunk_t** larger = &chunk->larger;
  while (rest) {
    if (is_less(rest, chunk)) {
      *smaller = rest;
      smaller = &rest->larger;
      rest = rest->larger;
    } else {
      *larger = rest;
      larger = &rest->smaller;
      rest = rest->smaller;
    }
  }
  *smaller = *larger = NULL;
}

// Takes the chunk at |*at|, a place in |bin|, out: its children are merged into that place.
static rn_cuda_chunk_t* take_at(rn_cuda_bins_t* bins, uint32_t bin, rn_cuda_chunk_t** at) {
  rn_cuda_chunk_t* chunk = *at;
  rn_cuda_chunk_t* smaller = chunk->smaller;
  rn_cuda_chunk_t* larger = chunk->larger;
  while (smaller && larger) {
    if (priority(smaller) > priority(larger)) {
      *at = smaller;
      at = &smaller->larger;
      smaller = *at;
    } else {
      *at = larger;
      at = &larger->smaller;
      larger = *at;
    }
  }
  *at = smaller ? smaller : larger;
  if (!bins->roots[bin]) bins->used[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  return chunk;
}

void rn_cuda_bins_remove(rn_cuda_bins_t* bins, rn_cuda_chunk_t* chunk) {
  uint32_t bin = bin_of(chunk->size);
  rn_cuda_chunk_t** at = &bins->roots[bin];
  while (*at != chunk) {
    RN_ASSERT(*at);
    at = is_less(chunk, *at) ? &(*at)->smaller : &(*at)->larger;
  }
  take_at(bins, bin, at);
}

// Where the smallest chunk of |bin| with at least |size| bytes is; NULL if there is none.
static rn_cuda_chunk_t** best_in(rn_cuda_bins_t* bins, uint32_t bin, size_t size) {
  rn_cuda_chunk_t** best = NULL;
  rn_cuda_chunk_t** at = &bins->roots[bin];
  while (*at) {
    bool fits = (*at)->size >= size;
    if (fits) best = at;
    at = fits ? &(*at)->smaller : &(*at)->larger;
  }
  return best;
}

rn_cuda_chunk_t* rn_cuda_bins_take(rn_cuda_bins_t* bins, size_t size) {
  uint32_t bin = bin_of(size);
  rn_cuda_chunk_t** best = best_in(bins, bin, size);
  if (best) return take_at(bins, bin, best);
  // In every bin after this one, all chunks are large enough.
  bin++;
  uint64_t mask = ~UINT64_C(0) << bin % 64;
  for (uint32_t word = bin / 64; word < RN_CUDA_BIN_WORDS; word++, mask = ~UINT64_C(0)) {
    uint64_t used = bins->used[word] & mask;
    if (!used) continue;
    bin = 64 * word + (uint32_t)__builtin_ctzll(used);
    return take_at(bins, bin, best_in(bins, bin, size));
  }
  return NULL;
}

size_t rn_cuda_bins_largest(const rn_cuda_bins_t* bins) {
  for (uint32_t word = RN_CUDA_BIN_WORDS; word-- > 0;) {
    if (!bins->used[word]) continue;
    const rn_cuda_chunk_t* chunk =
        bins->roots[64 * word + 63 - (uint32_t)__builtin_clzll(bins->used[word])];
    while (chunk->larger) chunk = chunk->larger;
    return chunk->size;
  }
  return 0;
}

rn_status_t rn_cuda_chunk_table_init(rn_cuda_chunk_table_t* table, rn_allocator_t allocator) {
  *table = (rn_cuda_chunk_table_t){.allocator = allocator, .capacity = FIRST_BUCKETS};
  return RN_NEW_ARRAY(allocator, table->capacity, &table->buckets);
}

void rn_cuda_chunk_table_clear(rn_cuda_chunk_table_t* table) {
  if (table->buckets) RN_FREE_ARRAY(table->allocator, table->buckets, table->capacity);
  *table = (rn_cuda_chunk_table_t){0};
}

static rn_cuda_chunk_t** bucket_of(const rn_cuda_chunk_table_t* table, uint64_t address) {
  return &table->buckets[hash_of(address) >> 20 & (table->capacity - 1)];
}

static void push(rn_cuda_chunk_table_t* table, rn_cuda_chunk_t* chunk) {
  rn_cuda_chunk_t** bucket = bucket_of(table, chunk->address);
  chunk->next = *bucket;
  *bucket = chunk;
}

static void grow(rn_cuda_chunk_table_t* table) {
  rn_cuda_chunk_table_t larger = *table;
  if (!rn_mul_ok(table->capacity, 2, &larger.capacity)) return;
  rn_status_t status = RN_NEW_ARRAY(table->allocator, larger.capacity, &larger.buckets);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return;
  }
  for (size_t i = 0; i < table->capacity; i++) {
    for (rn_cuda_chunk_t *chunk = table->buckets[i], *next; chunk; chunk = next) {
      next = chunk->next;
      push(&larger, chunk);
    }
  }
  rn_cuda_chunk_table_clear(table);
  *table = larger;
}

void rn_cuda_chunk_table_insert(rn_cuda_chunk_table_t* table, rn_cuda_chunk_t* chunk) {
  if (table->count >= table->capacity) grow(table);
  push(table, chunk);
  table->count++;
}

rn_cuda_chunk_t* rn_cuda_chunk_table_remove(rn_cuda_chunk_table_t* table, uint64_t address) {
  rn_cuda_chunk_t** at = bucket_of(table, address);
  while (*at && (*at)->address != address) at = &(*at)->next;
  rn_cuda_chunk_t* chunk = *at;
  if (!chunk) return NULL;
  *at = chunk->next;
  table->count--;
  return chunk;
}
