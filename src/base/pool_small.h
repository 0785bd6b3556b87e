// Loops of a few microseconds, for the workers that are awake anyway.
#ifndef RUNNEL_BASE_POOL_SMALL_H_
#define RUNNEL_BASE_POOL_SMALL_H_

#include "base/pool.h"

// rn_pool_for with pieces of |grain|, where that makes several. A shorter loop has pieces of
// |small|, and is shared with workers that look for work at this moment: none is woken, for that
// would cost more than the loop. The pieces are the same for any number of threads, here too.
void rn_pool_for_small(rn_pool_t* pool, int64_t count, int64_t grain, int64_t small,
                       void (*body)(void* arg, int64_t begin, int64_t end), void* arg);

#endif  // RUNNEL_BASE_POOL_SMALL_H_
