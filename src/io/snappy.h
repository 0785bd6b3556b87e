// Snappy compression, which old tables and dataset snapshots use. The format is simple enough to
// need no library.
#ifndef RUNNEL_IO_SNAPPY_H_
#define RUNNEL_IO_SNAPPY_H_

#include "base/str.h"

// The decompressed size that |input| states; false if malformed.
bool rn_snappy_size(rn_str_t input, uint64_t* out_size);
// Decompresses |input| into exactly |size| bytes at |out|; false if it is damaged or has another
// size.
bool rn_snappy_unfold(rn_str_t input, char* out, size_t size);

// Compresses |input|, at most 4 GiB - 1, and appends it to |out|, which holds any error.
void rn_snappy_fold(rn_str_t input, rn_strbuf_t* out);

#endif  // RUNNEL_IO_SNAPPY_H_
