// The file "checkpoint", which lists the checkpoints of a directory: a CheckpointState in text
// format.
//
// Paths of checkpoints in the same directory are written relative to it, so that the directory can
// be moved; others unchanged. After reading, all paths can be opened.
//
// doc/invariants.md: invariant 43.
#ifndef RUNNEL_IO_CHECKPOINT_STATE_H_
#define RUNNEL_IO_CHECKPOINT_STATE_H_

#include "base/arena.h"
#include "base/fs.h"
#include "base/pool.h"

#define RN_CHECKPOINT_STATE "checkpoint"

typedef struct rn_kept_checkpoint_t {
  rn_str_t path;  // NUL-terminated
  double time;    // seconds since 1970; 0 if not known
} rn_kept_checkpoint_t;

typedef struct rn_checkpoint_state_t {
  rn_arena_t arena;                  // holds the paths
  rn_str_t latest;                   // NUL-terminated
  RN_VEC(rn_kept_checkpoint_t) all;  // oldest first
  double last_preserved;  // when the last permanently kept checkpoint was written; 0 if none
} rn_checkpoint_state_t;

void rn_checkpoint_state_init(rn_checkpoint_state_t* state, rn_allocator_t allocator);
void rn_checkpoint_state_clear(rn_checkpoint_state_t* state);
RN_MUST_USE rn_status_t rn_checkpoint_state_add(rn_checkpoint_state_t* state, rn_str_t path,
                                                double time);
// Reads |directory|/|file| into |state|, which is empty. NOT_FOUND if there is none.
RN_MUST_USE rn_status_t rn_checkpoint_state_read(const rn_env_t* env, const char* directory,
                                                 const char* file, rn_checkpoint_state_t* state);
// Replaces the file atomically: readers see the complete old or new file, also after a crash.
RN_MUST_USE rn_status_t rn_checkpoint_state_write(const rn_env_t* env, const char* directory,
                                                  const char* file,
                                                  const rn_checkpoint_state_t* state);

// Appends the path of the newest intact checkpoint of |directory| to |path|: tries the latest, then
// earlier ones, and verifies all checksums. Appends to |note| which ones it skipped, and why.
// NOT_FOUND if there is no state file; DATA_LOSS, with all reasons, if no checkpoint is readable.
// |pool| may be NULL.
RN_MUST_USE rn_status_t rn_checkpoint_latest(const rn_env_t* env, const char* directory,
                                             const char* file, rn_pool_t* pool, rn_strbuf_t* path,
                                             rn_strbuf_t* note);

#endif  // RUNNEL_IO_CHECKPOINT_STATE_H_
