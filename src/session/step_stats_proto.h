// Step statistics as a StepStats message, for profilers and other tasks.
#ifndef RUNNEL_SESSION_STEP_STATS_PROTO_H_
#define RUNNEL_SESSION_STEP_STATS_PROTO_H_

#include "base/str.h"
#include "exec/step_stats.h"

// Appends the fields of a StepStats. The buffer keeps the error if memory runs out.
void rn_step_stats_write(const rn_step_stats_t* stats, rn_strbuf_t* buf);

// Appends the fields of a TensorShapeProto; |shape| has a rank.
void rn_step_stats_write_shape(rn_strbuf_t* buf, rn_shape_t shape);

#endif  // RUNNEL_SESSION_STEP_STATS_PROTO_H_
