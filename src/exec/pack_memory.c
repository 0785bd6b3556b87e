// Places of values in one block: see pack_memory.h.
#include "exec/pack_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/vec.h"

// Above this many values, placing them by size takes longer than compiling the rest of the plan.
#define MOST_BY_SIZE 4096

// Free pieces of the block, ordered by offset, never adjacent.
typedef struct pack_piece_t {
  size_t offset, size;
} pack_piece_t;
typedef struct pack_block_t {
  RN_VEC(pack_piece_t) pieces;
  size_t end;
} pack_block_t;

static rn_status_t append(size_t size, size_t* inout_end, size_t* out_offset) {
  *out_offset = *inout_end;
  return rn_add_ok(*inout_end, size, inout_end)
             ? RN_OK
             : rn_resource_exhausted("The step needs more memory than can be addressed");
}

static rn_status_t take(pack_block_t* block, rn_allocator_t allocator, size_t size,
                        size_t* out_offset) {
  RN_ASSERT(size > 0 && size % RN_ALIGN == 0);
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < block->pieces.count; ++i) {
    const pack_piece_t* piece = &block->pieces.items[i];
    if (piece->size >= size && (best == SIZE_MAX || piece->size < block->pieces.items[best].size))
      best = i;
  }
  if (best != SIZE_MAX) {
    pack_piece_t* piece = &block->pieces.items[best];
    *out_offset = piece->offset;
    piece->offset += size;
    piece->size -= size;
    if (piece->size == 0) {
      memmove(piece, piece + 1, (block->pieces.count - best - 1) * sizeof *piece);
      block->pieces.count--;
    }
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(append(size, &block->end, out_offset));
  return rn_vec_reserve(&block->pieces, allocator, block->pieces.count + 1);
}

static rn_status_t give(pack_block_t* block, rn_allocator_t allocator, size_t offset, size_t size) {
  size_t at = 0, high = block->pieces.count;
  while (at < high) {
    size_t middle = (at + high) / 2;
    if (block->pieces.items[middle].offset < offset)
      at = middle + 1;
    else
      high = middle;
  }
  pack_piece_t* pieces = block->pieces.items;
  // Invariant 22: a place is given back once, and is not free already.
  RN_ASSERT(size <= block->end && offset <= block->end - size);
  RN_ASSERT(at == 0 || pieces[at - 1].offset + pieces[at - 1].size <= offset);
  RN_ASSERT(at == block->pieces.count || offset + size <= pieces[at].offset);
  bool joins_left = at > 0 && pieces[at - 1].offset + pieces[at - 1].size == offset;
  bool joins_right = at < block->pieces.count && offset + size == pieces[at].offset;
  if (joins_left) {
    pieces[at - 1].size += size;
    if (joins_right) {
      pieces[at - 1].size += pieces[at].size;
      memmove(&pieces[at], &pieces[at + 1], (block->pieces.count - at - 1) * sizeof *pieces);
      block->pieces.count--;
    }
    return RN_OK;
  }
  if (joins_right) {
    pieces[at].offset = offset;
    pieces[at].size += size;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_vec_reserve(&block->pieces, allocator, block->pieces.count + 1));
  pieces = block->pieces.items;
  memmove(&pieces[at + 1], &pieces[at], (block->pieces.count - at) * sizeof *pieces);
  pieces[at] = (pack_piece_t){offset, size};
  block->pieces.count++;
  return RN_OK;
}

static int compare_last(const void* a, const void* b) {
  const rn_packed_t *x = *(rn_packed_t*const*)a, *y = *(rn_packed_t*const*)b;
  if (x->last != y->last) return x->last < y->last ? -1 : 1;
  return x < y ? -1 : 1;
}

static int compare_size(const void* a, const void* b) {
  const rn_packed_t *x = *(rn_packed_t*const*)a, *y = *(rn_packed_t*const*)b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  return x < y ? -1 : 1;
}

// |*out| = the addresses of |values|, sorted.
static rn_status_t sorted(rn_packed_t* values, int32_t count,
                          int (*compare)(const void* a, const void* b), rn_allocator_t allocator,
                          rn_packed_t*** out) {
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)count + 1, out));
  for (int32_t i = 0; i < count; ++i) (*out)[i] = &values[i];
  qsort(*out, (size_t)count, sizeof **out, compare);
  return RN_OK;
}

rn_status_t rn_pack_in_order(rn_packed_t* values, int32_t count, rn_allocator_t allocator,
                             size_t* out_end) {
  rn_packed_t** dying = NULL;
  pack_block_t block = {0};
  int32_t next = 0;
  *out_end = 0;
  RN_RETURN_IF_ERROR(sorted(values, count, compare_last, allocator, &dying));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < count; ++i) {
    for (; rn_ok(status) && dying[next]->last < values[i].first; ++next)
      status = give(&block, allocator, dying[next]->offset, dying[next]->size);
    if (rn_ok(status)) status = take(&block, allocator, values[i].size, &values[i].offset);
  }
  *out_end = block.end;
  rn_vec_free(&block.pieces, allocator);
  RN_FREE_ARRAY(allocator, dying, (size_t)count + 1);
  return status;
}

static bool meet(const rn_packed_t* a, const rn_packed_t* b) {
  return a->first <= b->last && b->first <= a->last;
}

// Places |value| in the smallest gap between the |count| values at |placed|, ordered by offset,
// that live when it does; behind them if there is none.
static rn_status_t place(rn_packed_t* value, rn_packed_t* const* placed, int32_t count,
                         size_t* inout_end) {
  size_t free_from = 0, best = SIZE_MAX, best_size = SIZE_MAX;
  for (int32_t i = 0; i < count; ++i) {
    if (!meet(value, placed[i])) continue;
    if (placed[i]->offset > free_from) {
      size_t gap = placed[i]->offset - free_from;
      if (gap >= value->size && gap < best_size) best = free_from, best_size = gap;
    }
    size_t end = placed[i]->offset + placed[i]->size;
    if (end > free_from) free_from = end;
  }
  if (best != SIZE_MAX) {
    value->offset = best;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(append(value->size, &free_from, &value->offset));
  if (free_from > *inout_end) *inout_end = free_from;
  return RN_OK;
}

// Places |values| by size, and gives their end.
static rn_status_t pack_by_size(rn_packed_t* values, int32_t count, rn_allocator_t allocator,
                                size_t* out_end) {
  rn_packed_t **largest = NULL, **placed = NULL;
  *out_end = 0;
  RN_RETURN_IF_ERROR(sorted(values, count, compare_size, allocator, &largest));
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)count + 1, &placed);
  for (int32_t i = 0; rn_ok(status) && i < count; ++i) {
    status = place(largest[i], placed, i, out_end);
    int32_t at = i;
    for (; at > 0 && placed[at - 1]->offset > largest[i]->offset; --at) placed[at] = placed[at - 1];
    placed[at] = largest[i];
  }
  RN_FREE_ARRAY(allocator, placed, (size_t)count + 1);
  RN_FREE_ARRAY(allocator, largest, (size_t)count + 1);
  return status;
}

rn_status_t rn_pack_tightly(rn_packed_t* values, int32_t count, rn_allocator_t allocator,
                            size_t* out_end) {
  RN_RETURN_IF_ERROR(rn_pack_in_order(values, count, allocator, out_end));
  if (count > MOST_BY_SIZE) return RN_OK;
  rn_packed_t* others = NULL;
  size_t end = 0;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)count + 1, &others));
  if (count) memcpy(others, values, (size_t)count * sizeof *values);
  rn_status_t status = pack_by_size(others, count, allocator, &end);
  if (rn_ok(status) && end < *out_end) {
    memcpy(values, others, (size_t)count * sizeof *values);
    *out_end = end;
  }
  RN_FREE_ARRAY(allocator, others, (size_t)count + 1);
  return status;
}
