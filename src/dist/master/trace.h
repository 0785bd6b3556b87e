// What the tasks of a traced step have received of one another: they are told to note it before the
// step, and asked for it afterwards. Stock's tasks are, too.
#ifndef RUNNEL_DIST_MASTER_TRACE_H_
#define RUNNEL_DIST_MASTER_TRACE_H_

#include "dist/master/session.h"

typedef struct rn_master_trace_t rn_master_trace_t;

// All tasks have answered; |status| is the callee's.
typedef void (*rn_master_trace_fn_t)(void* owner, rn_status_t status);

// Tells the tasks of |plan| to take notes, then calls |next|, unless it fails. |*out| is set
// before.
RN_MUST_USE rn_status_t rn_master_trace_begin(rn_master_session_t* session,
                                              const rn_master_plan_t* plan, int64_t deadline_ns,
                                              rn_cancel_t* cancel, rn_master_trace_fn_t next,
                                              void* owner, rn_master_trace_t** out);
// Ends the notes, asks for those of |step|, and calls |next|.
void rn_master_trace_end(rn_master_trace_t* trace, int64_t step, rn_master_trace_fn_t next);
// Ends the notes; nobody waits for that. The trace goes with it. NULL is fine.
void rn_master_trace_drop(rn_master_trace_t* trace);
// The devices of a StepStats that were noted.
void rn_master_trace_write(const rn_master_trace_t* trace, rn_strbuf_t* out);

#endif  // RUNNEL_DIST_MASTER_TRACE_H_
