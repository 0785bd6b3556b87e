// An arena: memory that is allocated in pieces and freed all at once.
//
// For things that live and die together: a decoded message, a graph's nodes, a plan under
// construction. Not thread-safe.
#ifndef RUNNEL_BASE_ARENA_H_
#define RUNNEL_BASE_ARENA_H_

#include "base/alloc.h"
#include "base/str.h"

typedef struct rn_arena_chunk_t rn_arena_chunk_t;

typedef struct rn_arena_t {
  rn_allocator_t allocator;
  rn_arena_chunk_t* chunks;  // Owned; newest first
  char* next;
  char* end;
  size_t used;   // bytes handed out, with the gaps that alignment leaves
  size_t limit;  // most that may be handed out; SIZE_MAX: no limit
} rn_arena_t;

void rn_arena_init(rn_arena_t* arena, rn_allocator_t allocator);
// Frees every piece. The arena may be used again.
void rn_arena_clear(rn_arena_t* arena);

// |*out| = |size| zeroed bytes, aligned for any type. RESOURCE_EXHAUSTED beyond the limit.
RN_MUST_USE rn_status_t rn_arena_alloc(rn_arena_t* arena, size_t size, void** out);
RN_MUST_USE rn_status_t rn_arena_alloc_array(rn_arena_t* arena, size_t count, size_t size,
                                             void** out);
#define RN_ARENA_NEW(arena, out) rn_arena_alloc((arena), sizeof **(out), (void**)(out))
#define RN_ARENA_ARRAY(arena, count, out) \
  rn_arena_alloc_array((arena), (count), sizeof **(out), (void**)(out))

// A position in the arena. Rewinding to it frees everything allocated since and invalidates later
// marks.
typedef struct rn_arena_mark_t {
  rn_arena_chunk_t* chunks;
  char* next;
  char* end;
  size_t used;
} rn_arena_mark_t;
static inline rn_arena_mark_t rn_arena_mark(const rn_arena_t* arena) {
  return (rn_arena_mark_t){arena->chunks, arena->next, arena->end, arena->used};
}
void rn_arena_rewind(rn_arena_t* arena, rn_arena_mark_t mark);

// A NUL-terminated copy of |str| in the arena.
RN_MUST_USE rn_status_t rn_arena_str(rn_arena_t* arena, rn_str_t str, rn_str_t* out);
RN_MUST_USE rn_status_t rn_arena_printf(rn_arena_t* arena, rn_str_t* out, const char* format, ...)
    RN_PRINTF(3, 4);

#endif  // RUNNEL_BASE_ARENA_H_
