// Distributed snapshots, which the workers of a tf.data service write: their files, in chunks, and
// how far they are.
#ifndef RUNNEL_IO_SNAPSHOT_CHUNKS_H_
#define RUNNEL_IO_SNAPSHOT_CHUNKS_H_

#include "base/fs.h"

// Adds the paths of the chunks that are in the snapshot at |path|, by their numbers within their
// streams, then by stream; other files come last. Sets |*out_done| if no more will come. If writing
// failed, the error that the writers left.
RN_MUST_USE rn_status_t rn_snapshot_chunks(const rn_env_t* env, const char* path, rn_names_t* names,
                                           bool* out_done);

#endif  // RUNNEL_IO_SNAPSHOT_CHUNKS_H_
