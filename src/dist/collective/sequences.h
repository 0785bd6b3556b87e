// The numbers of steps whose graphs have collectives. The parts of such a step may be started by
// several masters, each for its own client, so all must number it alike: the leader of collectives
// draws the first number of a graph, and each task counts on from it.
//
// Any thread.
#ifndef RUNNEL_DIST_COLLECTIVE_SEQUENCES_H_
#define RUNNEL_DIST_COLLECTIVE_SEQUENCES_H_

#include "base/env.h"
#include "dist/iface.h"

typedef struct rn_sequences_t rn_sequences_t;

// Someone who waits for a number, embedded in its own struct. |fn| is called once, without locks,
// and owns |status|.
typedef struct rn_sequence_wait_t {
  void (*fn)(struct rn_sequence_wait_t* wait, int64_t step, rn_status_t status);
  int64_t graph;  // set by rn_sequences_next, for retiring
  rn_get_step_sequence_t call;
  rn_sequences_t* sequences;
} rn_sequence_wait_t;

RN_MUST_USE rn_status_t rn_sequences_create(const rn_env_t* env, rn_allocator_t allocator,
                                            rn_sequences_t** out);
void rn_sequences_destroy(rn_sequences_t* sequences);  // NULL is fine
// Takes the number of the next step of |graph|. |leader| is asked for the first one; NULL if this
// task leads.
void rn_sequences_next(rn_sequences_t* sequences, rn_worker_t* leader, int64_t graph,
                       rn_cancel_t* cancel, rn_sequence_wait_t* wait);
// The step that |wait| got has ended.
void rn_sequences_retire(rn_sequences_t* sequences, int64_t graph, int64_t step);
// A member has restarted: the next steps ask the leader again. Not on the leader.
void rn_sequences_forget(rn_sequences_t* sequences);
// Answers another task; only if this one leads.
void rn_sequences_serve(rn_sequences_t* sequences, rn_get_step_sequence_t* call);

#endif  // RUNNEL_DIST_COLLECTIVE_SEQUENCES_H_
