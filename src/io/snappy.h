// Snappy, decompression only: old tables hold blocks of it. The format is small and what we need of
// it smaller, so no library is asked for.
#ifndef RUNNEL_IO_SNAPPY_H_
#define RUNNEL_IO_SNAPPY_H_

#include "base/str.h"

// The size that |input| says it unfolds to; false if it does not say.
bool rn_snappy_size(rn_str_t input, uint64_t* out_size);
// Unfolds |input| into exactly |size| bytes at |out|; false if it is not that.
bool rn_snappy_unfold(rn_str_t input, char* out, size_t size);

#endif  // RUNNEL_IO_SNAPPY_H_
