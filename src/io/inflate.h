// Decompresses bytes that are completely in memory.
#ifndef RUNNEL_IO_INFLATE_H_
#define RUNNEL_IO_INFLATE_H_

#include "io/input.h"

// The limit on the decompressed size of |packed| bytes: 64 MiB, or 256 bytes per compressed byte if
// that is more, but at most 1 GiB. Deflate can expand by a factor of 1032, so without a limit a
// file of 10 MB could take all memory. The environment variable RUNNEL_MAX_UNPACKED, in bytes,
// replaces the limit.
size_t rn_unpacked_limit(uint64_t packed);
// Makes the RESOURCE_EXHAUSTED error, which names the limit and the variable.
rn_status_t rn_unpacked_too_much(size_t limit);

// Decompresses |data| and appends the result to |out|, which grows with the actual output.
// RESOURCE_EXHAUSTED beyond |limit| bytes, DATA_LOSS if |data| is damaged or truncated. Empty
// |data| yields nothing.
RN_MUST_USE rn_status_t rn_inflate(rn_str_t data, rn_compression_t compression, size_t limit,
                                   rn_strbuf_t* out);

#endif  // RUNNEL_IO_INFLATE_H_
