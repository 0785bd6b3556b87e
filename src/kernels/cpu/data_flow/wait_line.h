// Lines of asynchronous calls that wait: for elements, for space, for their turn.
//
// A waiting call holds no thread. It ends in one of two ways, whichever comes first: a thread takes
// it out of its line and ends it, or its step is cancelled. Functions named _locked need the lock
// that guards the line; the others must be called with no lock held.
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_WAIT_LINE_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_WAIT_LINE_H_

#include "framework/kernel.h"

typedef struct rn_wait_line_t {
  struct rn_wait_call_t *first, *last;
} rn_wait_line_t;

// The first member of what a call keeps while it waits.
typedef struct rn_wait_call_t {
  rn_cancel_entry_t cancel;  // first
  // The step was cancelled and the call taken out of its line. Called with |mutex| locked; must
  // unlock it and end the call.
  void (*on_cancel)(struct rn_wait_call_t* call);
  rn_kernel_ctx_t* ctx;
  rn_mutex_t* mutex;     // guards |line| and what follows
  rn_wait_line_t* line;  // the line to join
  struct rn_wait_call_t *next, *previous;
  bool is_waiting;    // in line
  bool is_cancelled;  // before it was in line
} rn_wait_call_t;

// Joins the end of |call->line|, with the first five fields set and the others zero. True, with
// |mutex| locked, if |call| is in line. False, with nothing locked, if its step is cancelled: the
// caller ends the call.
bool rn_wait_join(rn_wait_call_t* call);
// Takes |call|, or the first call (NULL if there is none), out of the line. The caller must
// call rn_wait_left before it ends the call.
void rn_wait_leave_locked(rn_wait_call_t* call);
rn_wait_call_t* rn_wait_pop_locked(rn_wait_line_t* line);
// Waits until no cancellation can reach |call|, which has left its line.
void rn_wait_left(rn_wait_call_t* call);
// The same for a list of calls linked by |next|, and passes each to |end|, which may free it.
void rn_wait_end_all(rn_wait_call_t* list, void (*end)(rn_wait_call_t* call));

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_WAIT_LINE_H_
