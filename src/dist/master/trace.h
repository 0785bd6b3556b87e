// The values that the tasks of a traced step receive from each other: logging is switched on before
// the step, and the logs are fetched afterwards, from stock's tasks too.
#ifndef RUNNEL_DIST_MASTER_TRACE_H_
#define RUNNEL_DIST_MASTER_TRACE_H_

#include "dist/master/session.h"

typedef struct rn_master_trace_t rn_master_trace_t;

// Called when all tasks have answered; owns |status|.
typedef void (*rn_master_trace_fn_t)(void* owner, rn_status_t status);

// Switches the logs of |plan|'s tasks on, then calls |next|, unless it fails. |*out| is set before.
RN_MUST_USE rn_status_t rn_master_trace_begin(rn_master_session_t* session,
                                              const rn_master_plan_t* plan, int64_t deadline_ns,
                                              rn_cancel_t* cancel, rn_master_trace_fn_t next,
                                              void* owner, rn_master_trace_t** out);
// Switches the logs off, fetches those of |step|, and calls |next|.
void rn_master_trace_end(rn_master_trace_t* trace, int64_t step, rn_master_trace_fn_t next);
// Switches the logs off without waiting, and frees the trace. NULL is fine.
void rn_master_trace_drop(rn_master_trace_t* trace);
// The logged devices, as fields of a StepStats.
void rn_master_trace_write(const rn_master_trace_t* trace, rn_strbuf_t* out);

#endif  // RUNNEL_DIST_MASTER_TRACE_H_
