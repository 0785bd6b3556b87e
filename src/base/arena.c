// Arenas: a list of zeroed chunks, each handed out from its start.
#include "base/arena.h"

#include <stdio.h>

struct rn_arena_chunk_t {
  rn_arena_chunk_t* next;  // Owned
  size_t size;             // of the whole block
};

#define ARENA_ALIGN 16
// Chunks double from the first to the largest: small messages stay small, and big ones waste at
// most one chunk's rest.
#define FIRST_CHUNK ((size_t)1 << 10)
#define LARGEST_CHUNK ((size_t)1 << 18)

_Static_assert(sizeof(rn_arena_chunk_t) % ARENA_ALIGN == 0, "pieces follow the chunk's record");

void rn_arena_init(rn_arena_t* arena, rn_allocator_t allocator) {
  *arena = (rn_arena_t){.allocator = allocator, .limit = SIZE_MAX};
}

void rn_arena_clear(rn_arena_t* arena) {
  rn_arena_chunk_t* chunk = arena->chunks;
  while (chunk) {
    rn_arena_chunk_t* next = chunk->next;
    rn_free(arena->allocator, chunk, chunk->size);
    chunk = next;
  }
  arena->chunks = NULL;
  arena->next = arena->end = NULL;
  arena->used = 0;
}

void rn_arena_rewind(rn_arena_t* arena, rn_arena_mark_t mark) {
  // Pieces are promised zeroed. If the arena still stands in the marked chunk, only what was handed
  // out since is dirty; if it moved on, any of the rest may be.
  char* dirty_end = arena->end == mark.end ? arena->next : mark.end;
  if (mark.next) memset(mark.next, 0, (size_t)(dirty_end - mark.next));
  while (arena->chunks != mark.chunks) {
    rn_arena_chunk_t* next = arena->chunks->next;
    rn_free(arena->allocator, arena->chunks, arena->chunks->size);
    arena->chunks = next;
  }
  arena->next = mark.next;
  arena->end = mark.end;
  arena->used = mark.used;
}

static rn_status_t add_chunk(rn_arena_t* arena, size_t size, void** out) {
  size_t needed;
  if (!rn_add_ok(size, sizeof(rn_arena_chunk_t), &needed)) return rn_out_of_memory();
  size_t regular = FIRST_CHUNK;
  if (arena->chunks && arena->chunks->size >= FIRST_CHUNK) regular = arena->chunks->size * 2;
  if (regular > LARGEST_CHUNK) regular = LARGEST_CHUNK;
  size_t block = needed > regular ? needed : regular;
  rn_arena_chunk_t* chunk = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(arena->allocator, block, (void**)&chunk));
  chunk->size = block;
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  char* piece = (char*)(chunk + 1);
  char* end = (char*)chunk + block;
  *out = piece;
  // Later pieces come from the chunk with more room left.
  if (!arena->next || end - (piece + size) >= arena->end - arena->next) {
    arena->next = piece + size;
    arena->end = end;
  }
  return RN_OK;
}

static rn_status_t take(rn_arena_t* arena, size_t size, size_t align, void** out) {
  *out = NULL;
  size_t padding = (size_t)(-(uintptr_t)arena->next & (align - 1));
  size_t room = (size_t)(arena->end - arena->next);
  bool fits = arena->next && padding <= room && size <= room - padding;
  size_t used;
  if (!rn_add_ok(arena->used, size, &used) || (fits && !rn_add_ok(used, padding, &used)) ||
      used > arena->limit) {
    return rn_resource_exhausted("An arena may not hold more than %zu bytes", arena->limit);
  }
  if (fits) {
    *out = arena->next + padding;
    arena->next += padding + size;
  } else {
    RN_RETURN_IF_ERROR(add_chunk(arena, size, out));
  }
  arena->used = used;
  return RN_OK;
}

rn_status_t rn_arena_alloc(rn_arena_t* arena, size_t size, void** out) {
  return take(arena, size, ARENA_ALIGN, out);
}

rn_status_t rn_arena_alloc_array(rn_arena_t* arena, size_t count, size_t size, void** out) {
  size_t bytes;
  if (!rn_mul_ok(count, size, &bytes)) {
    *out = NULL;
    return rn_out_of_memory();
  }
  return take(arena, bytes, ARENA_ALIGN, out);
}

rn_status_t rn_arena_str(rn_arena_t* arena, rn_str_t str, rn_str_t* out) {
  *out = (rn_str_t){0};
  size_t size;
  if (!rn_add_ok(str.size, 1, &size)) return rn_out_of_memory();
  char* copy = NULL;
  RN_RETURN_IF_ERROR(take(arena, size, 1, (void**)&copy));
  if (str.size) memcpy(copy, str.data, str.size);  // the NUL is there: chunks are zeroed
  *out = rn_str_n(copy, str.size);
  return RN_OK;
}

rn_status_t rn_arena_printf(rn_arena_t* arena, rn_str_t* out, const char* format, ...) {
  *out = (rn_str_t){0};
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) return rn_invalid_argument("Text cannot be formatted: %s", format);
  char* text = NULL;
  RN_RETURN_IF_ERROR(take(arena, (size_t)length + 1, 1, (void**)&text));
  va_start(args, format);
  vsnprintf(text, (size_t)length + 1, format, args);
  va_end(args);
  *out = rn_str_n(text, (size_t)length);
  return RN_OK;
}
