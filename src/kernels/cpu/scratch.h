// Scratch memory that starts on a whole cache line, for kernels and for the pieces of their loops.
#ifndef RUNNEL_KERNELS_CPU_SCRATCH_H_
#define RUNNEL_KERNELS_CPU_SCRATCH_H_

#include "base/alloc.h"
#include "kernels/cpu/first_error.h"

typedef struct rn_scratch_t {
  char* at;  // the first whole line
  rn_allocator_t allocator;
  void* block;
  size_t size;
} rn_scratch_t;

// The first whole line of a block, which needs RN_ALIGN bytes more than what is put there.
static inline void* rn_scratch_align(void* block) {
  return (void*)(((uintptr_t)block + RN_ALIGN - 1) & ~(uintptr_t)(RN_ALIGN - 1));
}

static inline rn_status_t rn_scratch_init(rn_scratch_t* scratch, rn_allocator_t allocator,
                                          size_t bytes) {
  *scratch = (rn_scratch_t){.allocator = allocator};
  if (!rn_add_ok(bytes, RN_ALIGN, &scratch->size)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_alloc(allocator, scratch->size, &scratch->block));
  scratch->at = rn_scratch_align(scratch->block);
  return RN_OK;
}

// For a piece of a loop: keeps the error in |*first| and returns false if there is no memory.
static inline bool rn_scratch_take(rn_scratch_t* scratch, size_t bytes, rn_status_t* first) {
  rn_status_t status = rn_scratch_init(scratch, rn_allocator_default(), bytes);
  rn_keep_first_error(first, status);
  return rn_ok(status);
}

static inline void rn_scratch_free(rn_scratch_t* scratch) {
  rn_free(scratch->allocator, scratch->block, scratch->size);
}

#endif  // RUNNEL_KERNELS_CPU_SCRATCH_H_
