// Recorded segments: runs of instructions whose work a device records once and then replays with
// one call. For the files of exec/ only.
//
// A segment is a run of instructions of one task that only issue work, whose outputs have fixed
// places, and whose host arguments are constants. Small feeds and fetches are part of it: they may
// be elsewhere in host memory in every step. The first step runs it as it is, so that kernels can
// choose their algorithms; the second records it; later ones replay it, if everything is where it
// was: values that come from outside of the segment, and the buffers of variables.
//
// doc/invariants.md: invariant 40a.
#ifndef RUNNEL_EXEC_RECORD_H_
#define RUNNEL_EXEC_RECORD_H_

#include "exec/compile.h"
#include "exec/state.h"

// Finds the segments of a plan, after its memory is planned.
RN_MUST_USE rn_status_t rn_compile_segments(rn_compile_t* c);

// What a state has recorded of one segment.
typedef struct rn_recorded_t {
  rn_recording_t* recording;  // Owned; NULL: not recorded yet
  int32_t runs;               // that were not replays
  bool is_awaited;            // this step replayed it and must await the end
  bool is_spent;              // it fits no other step
  RN_VEC(struct rn_recorded_slot_t) slots;
  RN_VEC(struct rn_recorded_variable_t) variables;
} rn_recorded_t;

// Runs instructions one by one: executor.c's loop.
typedef rn_status_t (*rn_run_range_t)(rn_execution_t* execution, rn_state_t* state, int32_t first,
                                      int32_t count);
// Runs segment |number| of the state's plan by the shortest way.
RN_MUST_USE rn_status_t rn_segment_run(rn_execution_t* execution, rn_state_t* state, int32_t number,
                                       rn_run_range_t run);
// Waits for the segments that the step replayed; their fetches have then arrived. If the step was
// one thread's and the last work that it issued was a replay, all of it has ended.
RN_MUST_USE rn_status_t rn_segments_await(rn_state_t* state);
// Frees what was recorded.
void rn_recorded_clear(rn_recorded_t* recorded, rn_plan_t* plan);

#endif  // RUNNEL_EXEC_RECORD_H_
