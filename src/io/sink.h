// Sequential, buffered writing of a file, perhaps compressed.
//
// An sink belongs to one thread at a time. Errors name the path.
#ifndef RUNNEL_IO_SINK_H_
#define RUNNEL_IO_SINK_H_

#include "io/input.h"

typedef struct rn_sink_options_t {
  rn_compression_t compression;
  int level;           // of compression, 1 to 9; 0 for zlib's default
  bool appends;        // append to the file; a compressed file gets another gzip member
  size_t buffer_size;  // 0: 256 KiB
} rn_sink_options_t;

typedef struct rn_sink_t rn_sink_t;

// Creates or truncates |path|, unless |appends|.
RN_MUST_USE rn_status_t rn_sink_open(const rn_env_t* env, const char* path,
                                     const rn_sink_options_t* options, rn_sink_t** out);
// After an error any part of |data| may be in the file, and every later call fails.
RN_MUST_USE rn_status_t rn_sink_put(rn_sink_t* sink, rn_str_t data);
// Writes everything to the file, so that readers see it; with |syncs|, also to disk. Flushes a
// compressed stream so that all of it can be read.
RN_MUST_USE rn_status_t rn_sink_flush(rn_sink_t* sink, bool syncs);
// Bytes put so far, before compression.
uint64_t rn_sink_position(const rn_sink_t* sink);
// Flushes, closes and frees |sink|, even on failure; NULL is fine.
RN_MUST_USE rn_status_t rn_sink_close(rn_sink_t* sink);

#endif  // RUNNEL_IO_SINK_H_
