// Recorded segments: runs of instructions whose work a device records once and then replays with
// one call. For the files of exec/ only.
//
// A segment is a run of instructions of one task that only issue work, whose outputs have fixed
// places, and whose host arguments are constants. Small feeds and fetches are part of it: they may
// be elsewhere in host memory in every step. Arguments that are on the device already are copied to
// where they were when the segment was recorded. The first step runs it as it is, so that kernels
// can choose their algorithms; the second records it; later ones replay it, if everything is where
// it was: values that come from outside of the segment, and the buffers of variables.
//
// doc/invariants.md: invariant 40a.
#ifndef RUNNEL_EXEC_RECORD_H_
#define RUNNEL_EXEC_RECORD_H_

#include "exec/compile.h"
#include "exec/recorded.h"

// Finds the segments of a plan, after its memory is planned.
RN_MUST_USE rn_status_t rn_compile_segments(rn_compile_t* c);

// Runs instructions one by one: executor.c's loop.
typedef rn_status_t (*rn_run_range_t)(rn_execution_t* execution, rn_state_t* state, int32_t first,
                                      int32_t count);
// Runs segment |number| of the state's plan by the shortest way.
RN_MUST_USE rn_status_t rn_segment_run(rn_execution_t* execution, rn_state_t* state, int32_t number,
                                       rn_run_range_t run);
// Waits for the segments that the step replayed; their fetches have then arrived. If the step was
// one thread's and the last work that it issued was a replay, all of it has ended.
RN_MUST_USE rn_status_t rn_segments_await(rn_state_t* state);

// record_step.c: a plan with loops or conditionals is recorded as a whole or not at all. What its
// instructions do follows from the step's feeds: those that kernels read on the host are guards,
// which must have the same values for a replay. So the host's part of a step, such as counters,
// conditions and what is put into TensorArrays, runs while the step is recorded, and a loop is
// recorded turn by turn.

// Makes the whole plan a segment if it can be recorded.
RN_MUST_USE rn_status_t rn_compile_whole_step(rn_compile_t* c);
// Runs what is ready in the state's frames until nothing is, for the first time in this step.
typedef void (*rn_run_ready_t)(rn_state_t* state);
// Runs the step of a plan that is one segment, which no other thread works on, by the shortest way.
// |run| keeps its errors.
RN_MUST_USE rn_status_t rn_whole_step_run(rn_state_t* state, rn_run_ready_t run);

#endif  // RUNNEL_EXEC_RECORD_H_
