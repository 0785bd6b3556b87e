// Compressed bytes that are in memory as a whole.
#ifndef RUNNEL_IO_INFLATE_H_
#define RUNNEL_IO_INFLATE_H_

#include "io/input.h"

// The most bytes that |packed| compressed bytes may become in memory: 64 MiB, or 256 for each of
// them if that is more, and 1 GiB at most. Deflate makes up to 1032 bytes of one, so that without
// it a file of 10 MB could take all memory. If RUNNEL_MAX_UNPACKED is in the environment, so many
// bytes and nothing else is the limit.
size_t rn_unpacked_limit(uint64_t packed);
// RESOURCE_EXHAUSTED, naming the limit and the variable.
rn_status_t rn_unpacked_too_much(size_t limit);

// Appends what |data| holds to |out|. Memory follows what really comes out; RESOURCE_EXHAUSTED
// beyond |limit| bytes. DATA_LOSS if it is damaged or ends early. No bytes hold nothing.
RN_MUST_USE rn_status_t rn_inflate(rn_str_t data, rn_compression_t compression, size_t limit,
                                   rn_strbuf_t* out);

#endif  // RUNNEL_IO_INFLATE_H_
