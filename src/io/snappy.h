// Snappy: old tables and snapshots of datasets hold blocks of it. The format is small, so no
// library is asked for.
#ifndef RUNNEL_IO_SNAPPY_H_
#define RUNNEL_IO_SNAPPY_H_

#include "base/str.h"

// The size that |input| says it unfolds to; false if it does not say.
bool rn_snappy_size(rn_str_t input, uint64_t* out_size);
// Unfolds |input| into exactly |size| bytes at |out|; false if it is not that.
bool rn_snappy_unfold(rn_str_t input, char* out, size_t size);

// Appends |input|, folded, to |out|, which fails as buffers do. At most 4 GiB - 1.
void rn_snappy_fold(rn_str_t input, rn_strbuf_t* out);

#endif  // RUNNEL_IO_SNAPPY_H_
