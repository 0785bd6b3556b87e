// Blocks and chunks.
//
// The chunks of a block are a list in the order of their addresses and cover the block. No two
// neighbours are free. Free chunks are in |bins|, the others in |allocated|. The first chunk's
// record stays the first as long as the block lives: a split makes a record for the upper part, and
// a merge keeps the lower one's.
//
// An allocation first reserves every record that it may need, so that nothing fails halfway.
#include "device/cuda/memory.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/sync.h"
#include "base/vec.h"
#include "device/cuda/chunks.h"

#define FIRST_BLOCK ((size_t)64 << 20)
#define LARGEST_BLOCK ((size_t)1 << 30)
#define BLOCK_UNIT ((size_t)2 << 20)  // the page size of a card's memory
#define MAX_ROWS 30                   // of the table of holders

typedef struct memory_block_t {
  uint64_t address;
  size_t size;
  rn_cuda_chunk_t* first;
} memory_block_t;

struct rn_cuda_memory_t {
  rn_allocator_t allocator;
  rn_cuda_memory_source_t source;
  size_t limit;  // SIZE_MAX if there is none
  bool keeps_blocks;
  bool is_exact;
  rn_mutex_t mutex;  // guards everything below
  size_t next_block;
  rn_cuda_bins_t bins;
  rn_cuda_chunk_table_t allocated;
  rn_arena_t records;      // of chunks
  rn_cuda_chunk_t* spare;  // records without a chunk, linked by |after|
  RN_VEC(memory_block_t) blocks;
  int holds;               // calls of rn_cuda_memory_hold
  rn_cuda_chunk_t* freed;  // since then, linked by |next|
  size_t freed_count;
  size_t in_use, peak, reserved;
  int64_t allocations;
  bool was_short;  // an allocation failed
};

static size_t round_down(size_t size, size_t unit) { return size / unit * unit; }

static bool round_up(size_t size, size_t unit, size_t* out) {
  if (!rn_add_ok(size, unit - 1, out)) return false;
  *out = round_down(*out, unit);
  return true;
}

// Whether |status| is OK; frees it.
static bool succeeded(rn_status_t status) {
  bool is_ok = rn_ok(status);
  rn_status_free(status);
  return is_ok;
}

static void drop_record(rn_cuda_memory_t* memory, rn_cuda_chunk_t* chunk) {
  chunk->after = memory->spare;
  memory->spare = chunk;
}

static rn_cuda_chunk_t* take_record(rn_cuda_memory_t* memory) {
  rn_cuda_chunk_t* chunk = memory->spare;
  RN_ASSERT(chunk);
  memory->spare = chunk->after;
  return chunk;
}

// Host memory for one allocation: a new block with its first chunk, and the rest behind the new
// allocation.
static bool reserve_records(rn_cuda_memory_t* memory) {
  while (!memory->spare || !memory->spare->after) {
    rn_cuda_chunk_t* chunk = NULL;
    if (!succeeded(RN_ARENA_NEW(&memory->records, &chunk))) return false;
    drop_record(memory, chunk);
  }
  return succeeded(rn_vec_reserve(&memory->blocks, memory->allocator, memory->blocks.count + 1));
}

// The next block's address and, in |*out_size|, its size: the regular one or what |size| needs. If
// the source has no such block, half of that, and so on.
static uint64_t take_block(rn_cuda_memory_t* memory, size_t size, size_t* out_size) {
  if (memory->reserved >= memory->limit) return 0;
  size_t room = round_down(memory->limit - memory->reserved, RN_CUDA_CHUNK_UNIT);
  size_t least;
  if (size > room || !round_up(size, BLOCK_UNIT, &least)) return 0;
  size_t wanted = least > memory->next_block ? least : memory->next_block;
  if (least > room) least = room;
  if (wanted > room) wanted = room;
  uint64_t address = memory->source.alloc(memory->source.self, wanted);
  while (!address && wanted > least) {
    wanted = round_down(wanted / 2, BLOCK_UNIT);
    if (wanted < least) wanted = least;
    address = memory->source.alloc(memory->source.self, wanted);
  }
  *out_size = wanted;
  return address;
}

// A chunk of at least |size| bytes that is a whole new block, and in no bin. NULL if there is none.
// |size| is |asked| rounded up.
static rn_cuda_chunk_t* add_block(rn_cuda_memory_t* memory, size_t size, size_t asked) {
  size_t taken = size;
  bool has_room = memory->reserved < memory->limit && size <= memory->limit - memory->reserved;
  uint64_t address = !memory->is_exact ? take_block(memory, size, &taken)
                     : has_room        ? memory->source.alloc(memory->source.self, asked)
                                       : 0;
  if (!address) return NULL;
  RN_ASSERT(address % RN_CUDA_CHUNK_UNIT == 0);
  if (taken == memory->next_block && taken < LARGEST_BLOCK)
    memory->next_block = taken < LARGEST_BLOCK / 2 ? taken * 2 : LARGEST_BLOCK;
  memory->reserved += taken;
  rn_cuda_chunk_t* chunk = take_record(memory);
  *chunk = (rn_cuda_chunk_t){.address = address, .size = taken};
  memory->blocks.items[memory->blocks.count++] = (memory_block_t){address, taken, chunk};
  return chunk;
}

static size_t trim_locked(rn_cuda_memory_t* memory) {
  size_t before = memory->reserved;
  for (size_t i = memory->blocks.count; i-- > 0;) {
    memory_block_t block = memory->blocks.items[i];
    if (!block.first->is_free || block.first->after) continue;
    rn_cuda_bins_remove(&memory->bins, block.first);
    drop_record(memory, block.first);
    memory->blocks.items[i] = memory->blocks.items[--memory->blocks.count];
    memory->reserved -= block.size;
    memory->source.free(memory->source.self, block.address, block.size);
  }
  return before - memory->reserved;
}

// Cuts the chunk, which is in no bin, to |size|; what is behind becomes a free chunk.
static void split(rn_cuda_memory_t* memory, rn_cuda_chunk_t* chunk, size_t size) {
  if (chunk->size == size) return;
  rn_cuda_chunk_t* rest = take_record(memory);
  *rest = (rn_cuda_chunk_t){.address = chunk->address + size,
                            .size = chunk->size - size,
                            .before = chunk,
                            .after = chunk->after,
                            .is_free = true};
  if (rest->after) rest->after->before = rest;
  chunk->after = rest;
  chunk->size = size;
  rn_cuda_bins_insert(&memory->bins, rest);
}

// Adds the chunk behind |chunk| to it. Neither is in a bin.
static void merge_after(rn_cuda_memory_t* memory, rn_cuda_chunk_t* chunk) {
  rn_cuda_chunk_t* after = chunk->after;
  chunk->size += after->size;
  chunk->after = after->after;
  if (chunk->after) chunk->after->before = chunk;
  drop_record(memory, after);
}

static rn_cuda_chunk_t* alloc_locked(rn_cuda_memory_t* memory, size_t size, size_t asked) {
  if (!reserve_records(memory)) return NULL;
  rn_cuda_chunk_t* chunk = rn_cuda_bins_take(&memory->bins, size);
  if (!chunk) chunk = add_block(memory, size, asked);
  if (!chunk && !memory->keeps_blocks && trim_locked(memory))
    chunk = add_block(memory, size, asked);
  if (!chunk) return NULL;
  split(memory, chunk, size);
  chunk->is_free = false;
  rn_cuda_chunk_table_insert(&memory->allocated, chunk);
  memory->allocations++;
  memory->in_use += size;
  if (memory->in_use > memory->peak) memory->peak = memory->in_use;
  return chunk;
}

uint64_t rn_cuda_memory_alloc(rn_cuda_memory_t* memory, size_t size, const char* holder) {
  size_t rounded, asked = size ? size : 1;
  if (!round_up(asked, RN_CUDA_CHUNK_UNIT, &rounded)) return 0;
  rn_mutex_lock(&memory->mutex);
  rn_cuda_chunk_t* chunk = alloc_locked(memory, rounded, asked);
  uint64_t address = chunk ? chunk->address : 0;
  if (chunk) {
    size_t length = holder ? strnlen(holder, sizeof chunk->holder - 1) : 0;
    if (length) memcpy(chunk->holder, holder, length);
    chunk->holder[length] = 0;
  } else {
    memory->was_short = true;
  }
  rn_mutex_unlock(&memory->mutex);
  return address;
}

static void free_locked(rn_cuda_memory_t* memory, rn_cuda_chunk_t* chunk) {
  memory->in_use -= chunk->size;
  if (chunk->after && chunk->after->is_free) {
    rn_cuda_bins_remove(&memory->bins, chunk->after);
    merge_after(memory, chunk);
  }
  if (chunk->before && chunk->before->is_free) {
    chunk = chunk->before;
    rn_cuda_bins_remove(&memory->bins, chunk);
    merge_after(memory, chunk);
  }
  chunk->is_free = true;
  rn_cuda_bins_insert(&memory->bins, chunk);
  if (memory->is_exact) trim_locked(memory);
}

static bool give_back(rn_cuda_memory_t* memory, uint64_t address, bool is_held) {
  rn_mutex_lock(&memory->mutex);
  rn_cuda_chunk_t* chunk = rn_cuda_chunk_table_remove(&memory->allocated, address);
  if (chunk && is_held && memory->holds) {
    chunk->next = memory->freed;
    memory->freed = chunk;
    memory->freed_count++;
  } else if (chunk) {
    free_locked(memory, chunk);
  }
  rn_mutex_unlock(&memory->mutex);
  return chunk != NULL;
}

bool rn_cuda_memory_free(rn_cuda_memory_t* memory, uint64_t address) {
  return give_back(memory, address, true);
}

bool rn_cuda_memory_free_now(rn_cuda_memory_t* memory, uint64_t address) {
  return give_back(memory, address, false);
}

void rn_cuda_memory_hold(rn_cuda_memory_t* memory) {
  rn_mutex_lock(&memory->mutex);
  memory->holds++;
  rn_mutex_unlock(&memory->mutex);
}

void rn_cuda_memory_resume(rn_cuda_memory_t* memory) {
  rn_mutex_lock(&memory->mutex);
  memory->holds--;
  while (memory->holds == 0 && memory->freed) {
    rn_cuda_chunk_t* chunk = memory->freed;
    memory->freed = chunk->next;
    memory->freed_count--;
    free_locked(memory, chunk);
  }
  rn_mutex_unlock(&memory->mutex);
}

size_t rn_cuda_memory_trim(rn_cuda_memory_t* memory) {
  rn_mutex_lock(&memory->mutex);
  size_t freed = trim_locked(memory);
  rn_mutex_unlock(&memory->mutex);
  return freed;
}

bool rn_cuda_memory_was_short(rn_cuda_memory_t* memory) {
  rn_mutex_lock(&memory->mutex);
  bool was_short = memory->was_short;
  memory->was_short = false;
  rn_mutex_unlock(&memory->mutex);
  return was_short;
}

static rn_cuda_memory_stats_t stats_locked(const rn_cuda_memory_t* memory) {
  return (rn_cuda_memory_stats_t){
      .bytes_in_use = memory->in_use,
      .peak_bytes_in_use = memory->peak,
      .bytes_reserved = memory->reserved,
      .bytes_limit = memory->limit == SIZE_MAX ? 0 : memory->limit,
      .largest_free_chunk = rn_cuda_bins_largest(&memory->bins),
      .allocations = memory->allocations,
      .live_allocations = (int64_t)memory->allocated.count,
  };
}

void rn_cuda_memory_set_limit(rn_cuda_memory_t* memory, size_t limit) {
  rn_mutex_lock(&memory->mutex);
  memory->limit = limit ? limit : SIZE_MAX;
  rn_mutex_unlock(&memory->mutex);
}

void rn_cuda_memory_stats(rn_cuda_memory_t* memory, rn_cuda_memory_stats_t* out) {
  rn_mutex_lock(&memory->mutex);
  *out = stats_locked(memory);
  rn_mutex_unlock(&memory->mutex);
}

typedef struct holding_t {
  const char* holder;
  size_t bytes;
  size_t chunks;
} holding_t;

static int compare_holders(const void* a, const void* b) {
  return strcmp(((const holding_t*)a)->holder, ((const holding_t*)b)->holder);
}

static int compare_bytes(const void* a, const void* b) {
  const holding_t *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return compare_holders(a, b);
}

static size_t chunk_count(const rn_cuda_memory_t* memory) {
  return memory->allocated.count + memory->freed_count;
}

// |*out| = one entry per holder, the largest first, in an array of |chunk_count|.
static rn_status_t find_holdings(const rn_cuda_memory_t* memory, holding_t** out,
                                 size_t* out_count) {
  *out_count = 0;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(memory->allocator, chunk_count(memory), out));
  holding_t* all = *out;
  size_t count = 0;
  for (size_t i = 0; i < memory->blocks.count; i++) {
    const rn_cuda_chunk_t* chunk = memory->blocks.items[i].first;
    for (; chunk; chunk = chunk->after)
      if (!chunk->is_free) all[count++] = (holding_t){chunk->holder, chunk->size, 1};
  }
  qsort(all, count, sizeof *all, compare_holders);
  size_t holders = 0;
  for (size_t i = 0; i < count; i++) {
    if (holders && strcmp(all[holders - 1].holder, all[i].holder) == 0) {
      all[holders - 1].bytes += all[i].bytes;
      all[holders - 1].chunks++;
    } else {
      all[holders++] = all[i];
    }
  }
  qsort(all, holders, sizeof *all, compare_bytes);
  *out_count = holders;
  return RN_OK;
}

static void print_holdings(const holding_t* all, size_t count, rn_strbuf_t* out) {
  rn_strbuf_printf(out, "%-38s %15s %8s\n", "holder", "bytes", "chunks");
  holding_t others = {0};
  for (size_t i = 0; i < count; i++) {
    if (i < MAX_ROWS) {
      rn_strbuf_printf(out, "%-38s %15zu %8zu\n", all[i].holder[0] ? all[i].holder : "(unnamed)",
                       all[i].bytes, all[i].chunks);
    } else {
      others.bytes += all[i].bytes;
      others.chunks += all[i].chunks;
    }
  }
  if (!others.chunks) return;
  char name[RN_CUDA_HOLDER_SIZE];
  snprintf(name, sizeof name, "(%zu others)", count - MAX_ROWS);
  rn_strbuf_printf(out, "%-38s %15zu %8zu\n", name, others.bytes, others.chunks);
}

void rn_cuda_memory_describe(rn_cuda_memory_t* memory, rn_strbuf_t* out) {
  rn_mutex_lock(&memory->mutex);
  holding_t* all = NULL;
  size_t count = 0;
  if (succeeded(find_holdings(memory, &all, &count))) print_holdings(all, count, out);
  RN_FREE_ARRAY(memory->allocator, all, chunk_count(memory));
  rn_cuda_memory_stats_t stats = stats_locked(memory);
  rn_mutex_unlock(&memory->mutex);
  rn_strbuf_printf(out, "%zu bytes in use (peak %zu), %zu reserved, largest free chunk %zu, ",
                   stats.bytes_in_use, stats.peak_bytes_in_use, stats.bytes_reserved,
                   stats.largest_free_chunk);
  if (stats.bytes_limit) rn_strbuf_printf(out, "limit %zu\n", stats.bytes_limit);
  if (!stats.bytes_limit) rn_strbuf_printf(out, "no limit\n");
}

static void* memory_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  if (!ptr)
    return new_size ? (void*)(uintptr_t)rn_cuda_memory_alloc(self, new_size, "values of sessions")
                    : NULL;
  if (new_size) return new_size <= old_size ? ptr : NULL;
  rn_cuda_memory_free(self, (uintptr_t)ptr);
  return NULL;
}

rn_allocator_t rn_cuda_memory_allocator(rn_cuda_memory_t* memory) {
  return (rn_allocator_t){.fn = memory_realloc, .self = memory, .is_far = true};
}

rn_status_t rn_cuda_memory_create(const rn_cuda_memory_options_t* options, rn_allocator_t allocator,
                                  rn_cuda_memory_t** out) {
  *out = NULL;
  size_t block_size;
  if (!round_up(options->block_size ? options->block_size : FIRST_BLOCK, BLOCK_UNIT, &block_size))
    return rn_invalid_argument("A block of %zu bytes is too large", options->block_size);
  rn_cuda_memory_t* memory = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &memory));
  memory->allocator = allocator;
  memory->source = options->source;
  memory->is_exact = options->is_exact;
  memory->limit = options->limit ? options->limit : SIZE_MAX;
  memory->keeps_blocks = options->keeps_blocks;
  memory->next_block = block_size;
  rn_mutex_init(&memory->mutex);
  rn_arena_init(&memory->records, allocator);
  rn_status_t status = rn_cuda_chunk_table_init(&memory->allocated, allocator);
  if (!rn_ok(status)) {
    rn_cuda_memory_destroy(memory);
    return status;
  }
  *out = memory;
  return RN_OK;
}

void rn_cuda_memory_destroy(rn_cuda_memory_t* memory) {
  if (!memory) return;
  for (size_t i = 0; i < memory->blocks.count; i++) {
    memory_block_t block = memory->blocks.items[i];
    memory->source.free(memory->source.self, block.address, block.size);
  }
  rn_vec_free(&memory->blocks, memory->allocator);
  rn_cuda_chunk_table_clear(&memory->allocated);
  rn_arena_clear(&memory->records);
  rn_mutex_destroy(&memory->mutex);
  RN_FREE(memory->allocator, memory);
}
