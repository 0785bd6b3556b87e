// A step of a session.
#ifndef RUNNEL_DIST_MASTER_STEP_H_
#define RUNNEL_DIST_MASTER_STEP_H_

#include "dist/collective/sequences.h"
#include "dist/master/session.h"
#include "dist/master/trace.h"

// A running step.
typedef struct rn_master_step_t {
  rn_master_fan_t fan;  // first
  _Atomic int refs;     // its own, and those of threads that cancel it
  rn_master_session_t* session;
  rn_run_step_t* call;
  struct rn_master_step_t* next;  // next step that waits for the same program
  rn_master_program_t* program;
  rn_cancel_t cancel;
  rn_cancel_entry_t caller, closing;  // cancelled by the caller, or by closing
  bool caller_linked, closing_linked;
  rn_mend_waiter_t mending;
  bool is_mended;  // its tasks have been probed
  int64_t id;
  rn_sequence_wait_t numbering;  // of a step with collectives
  rn_arena_t arena;
  struct step_part_t* parts;
  bool is_measured;
  rn_outbox_t outbox;        // of the own part
  rn_master_trace_t* trace;  // Owned; NULL: the step is not traced
} rn_master_step_t;

// Runs the parts of |step|, whose program is ready, and ends it.
void rn_master_step_run(rn_master_step_t* step);
// Ends |step| and its call. Takes |status|.
void rn_master_step_end(rn_master_step_t* step, rn_status_t status);

#endif  // RUNNEL_DIST_MASTER_STEP_H_
