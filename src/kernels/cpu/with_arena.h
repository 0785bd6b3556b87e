// For kernels that take their scratch memory from an arena.
#ifndef RUNNEL_KERNELS_CPU_WITH_ARENA_H_
#define RUNNEL_KERNELS_CPU_WITH_ARENA_H_

#include "base/arena.h"
#include "framework/kernel.h"

// Runs |compute| with an arena that is freed when it returns.
static inline rn_status_t rn_with_arena(rn_kernel_ctx_t* ctx,
                                        rn_status_t (*compute)(rn_kernel_ctx_t*, rn_arena_t*)) {
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = compute(ctx, &arena);
  rn_arena_clear(&arena);
  return status;
}

#endif  // RUNNEL_KERNELS_CPU_WITH_ARENA_H_
