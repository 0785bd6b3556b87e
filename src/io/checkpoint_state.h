// The file "checkpoint" beside checkpoints: which of them there are. A CheckpointState in text.
//
// Paths of checkpoints in the same directory are written without it, so that the directory can be
// moved; others as they are. Read, all of them can be opened as they come.
#ifndef RUNNEL_IO_CHECKPOINT_STATE_H_
#define RUNNEL_IO_CHECKPOINT_STATE_H_

#include "base/arena.h"
#include "base/fs.h"
#include "base/pool.h"

#define RN_CHECKPOINT_STATE "checkpoint"

typedef struct rn_kept_checkpoint_t {
  rn_str_t path;  // NUL-terminated
  double time;    // seconds since 1970; 0: not known
} rn_kept_checkpoint_t;

typedef struct rn_checkpoint_state_t {
  rn_arena_t arena;                  // what the paths lie in
  rn_str_t latest;                   // NUL-terminated
  RN_VEC(rn_kept_checkpoint_t) all;  // oldest first
  double last_preserved;             // when the last one that is kept for good was written; 0: none
} rn_checkpoint_state_t;

void rn_checkpoint_state_init(rn_checkpoint_state_t* state, rn_allocator_t allocator);
void rn_checkpoint_state_clear(rn_checkpoint_state_t* state);
RN_MUST_USE rn_status_t rn_checkpoint_state_add(rn_checkpoint_state_t* state, rn_str_t path,
                                                double time);
// Reads |directory|/|file| into |state|, which is empty. NOT_FOUND if there is none.
RN_MUST_USE rn_status_t rn_checkpoint_state_read(const rn_env_t* env, const char* directory,
                                                 const char* file, rn_checkpoint_state_t* state);
// Replaces the file so that whoever looks, also after a crash, sees the old or the new one whole.
RN_MUST_USE rn_status_t rn_checkpoint_state_write(const rn_env_t* env, const char* directory,
                                                  const char* file,
                                                  const rn_checkpoint_state_t* state);

// Appends the path of the newest checkpoint of |directory| whose checksums are all right to |path|:
// the latest, or else those before it. Appends to |note| which ones were passed over, and why.
// NOT_FOUND if there is no state; DATA_LOSS, with all reasons, if none of them can be read. Every
// byte of the one that is found is read; |pool| may be NULL.
RN_MUST_USE rn_status_t rn_checkpoint_latest(const rn_env_t* env, const char* directory,
                                             const char* file, rn_pool_t* pool, rn_strbuf_t* path,
                                             rn_strbuf_t* note);

#endif  // RUNNEL_IO_CHECKPOINT_STATE_H_
