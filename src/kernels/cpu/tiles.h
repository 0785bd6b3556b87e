// Whether the tile registers of x86 (AMX) may be used.
#ifndef RUNNEL_KERNELS_CPU_TILES_H_
#define RUNNEL_KERNELS_CPU_TILES_H_

#include <stdbool.h>

// Asks Linux for the tile registers, which processes get on request only. Less than a microsecond;
// false if the system refuses, or has none. The processor's instructions are a different question.
bool rn_tiles_are_granted(void);

#endif  // RUNNEL_KERNELS_CPU_TILES_H_
