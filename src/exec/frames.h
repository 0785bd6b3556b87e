// Plans with loops and conditionals: dataflow execution with frames, iterations and dead values.
//
// A frame is one run of a loop, an iteration is one pass through its body; the step itself is frame
// 0 with one iteration. Every iteration has slots and counts of its own, so that up to
// parallel_iterations of them overlap. A value in a branch that a Switch did not take is *dead*;
// everything that depends on it is dead too, up to a Merge with a live input. One thread at a time
// drives a state's frames, so nothing in here is atomic; asynchronous kernels report their
// completion to the driver under the execution's lock.
//
// A straight loop (rn_straight_loop_t in plan.h) needs none of this: once all its values have
// arrived, its instructions run in order, iteration after iteration, with one set of slots. In a
// traced step it runs like the others, so that every instruction is recorded.
#ifndef RUNNEL_EXEC_FRAMES_H_
#define RUNNEL_EXEC_FRAMES_H_

#include "exec/state.h"

typedef struct rn_frames_t rn_frames_t;

// Sets up frame 0 and its ready instructions.
RN_MUST_USE rn_status_t rn_frames_start(rn_state_t* state);
// Runs ready instructions, with the execution's mutex released meanwhile. False if there was
// nothing, or another thread drives the frames.
bool rn_frames_drain_locked(rn_state_t* state);
bool rn_frames_has_work_locked(const rn_state_t* state);
// The value of slot |slot| of frame 0 after the step, or NULL if it is dead.
rn_tensor_t* rn_frames_value(rn_state_t* state, int32_t slot);
// Frees everything the step left. Fine on states without frames.
void rn_frames_stop(rn_state_t* state);
void rn_frames_destroy(rn_frames_t* frames);

#endif  // RUNNEL_EXEC_FRAMES_H_
