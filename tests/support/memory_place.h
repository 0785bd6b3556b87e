// An environment with its own file system in memory.
#ifndef RUNNEL_TESTS_SUPPORT_MEMORY_PLACE_H_
#define RUNNEL_TESTS_SUPPORT_MEMORY_PLACE_H_

#include "memory_fs.h"
#include "status.h"

typedef struct place_t {
  rn_env_t env;
  rn_memory_fs_t* fs;
  rn_counting_allocator_t counting;
} place_t;

static inline void open_place(place_t* place) {
  place->env = *rn_env_system();
  OK(rn_memory_fs_create(place->env.allocator, &place->fs));
  rn_memory_fs_install(place->fs, &place->env);
}

// The same with an allocator whose blocks are counted. |place| must not move.
static inline void open_counted_place(place_t* place) {
  open_place(place);
  place->counting = (rn_counting_allocator_t){.base = rn_allocator_system()};
  place->env.allocator = rn_allocator_counting(&place->counting);
}

// Fails if a block was not given back.
static inline void close_counted_place(place_t* place) {
  cr_assert_eq(place->counting.live_blocks, 0);
  rn_memory_fs_destroy(place->fs);
}

#endif  // RUNNEL_TESTS_SUPPORT_MEMORY_PLACE_H_
