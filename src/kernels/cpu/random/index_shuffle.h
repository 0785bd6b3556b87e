// The place of an index in a random permutation that is never stored.
#ifndef RUNNEL_KERNELS_CPU_RANDOM_INDEX_SHUFFLE_H_
#define RUNNEL_KERNELS_CPU_RANDOM_INDEX_SHUFFLE_H_

#include <stdint.h>

// Where |index| is in the permutation of 0 to |most| that |seed| chooses. |rounds| is even, 4 to
// 64.
uint64_t rn_index_shuffle(uint64_t index, const uint32_t seed[3], uint64_t most, int rounds);

#endif  // RUNNEL_KERNELS_CPU_RANDOM_INDEX_SHUFFLE_H_
