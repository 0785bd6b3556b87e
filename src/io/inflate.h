// Compressed bytes that are in memory as a whole.
#ifndef RUNNEL_IO_INFLATE_H_
#define RUNNEL_IO_INFLATE_H_

#include "io/input.h"

// Appends what |data| holds to |out|. Memory follows what really comes out; RESOURCE_EXHAUSTED
// beyond |limit| bytes. DATA_LOSS if it is damaged or ends early. No bytes hold nothing.
RN_MUST_USE rn_status_t rn_inflate(rn_str_t data, rn_compression_t compression, size_t limit,
                                   rn_strbuf_t* out);

#endif  // RUNNEL_IO_INFLATE_H_
