// The state of frames, shared by frames.c, which moves values, frames_run.c, which runs
// instructions, and frames_loop.c, which runs straight loops. For these three only.
#ifndef RUNNEL_EXEC_FRAMES_INTERNAL_H_
#define RUNNEL_EXEC_FRAMES_INTERNAL_H_

#include "exec/execution.h"
#include "exec/frames.h"
#include "exec/recorded.h"

typedef struct rn_iteration_t rn_iteration_t;
typedef struct rn_frame_t rn_frame_t;

// One iteration of a loop. Its arrays are copied from the frame's definition when it starts.
struct rn_iteration_t {
  rn_frame_t* frame;
  int64_t index;
  rn_iteration_t* next;  // in the frame's list, oldest first; or in the free list
  rn_frame_t* children;  // loops that were entered from this iteration
  int32_t outstanding;   // instructions that are ready or under way, and children
  rn_tensor_t* slots;    // by local slot
  int32_t* readers;      // by local slot: readers that have not run yet
  int32_t* pending;      // by local instruction
  uint8_t* marks;        // by local instruction: MARK_*
  int32_t* dead_inputs;  // by local instruction, of a Merge
  char* memory;          // small values
  // Of a straight loop; made when they are needed, and kept with the iteration:
  rn_tensor_t** inputs;  // where each input of each step is
  rn_tensor_t* staged;   // by loop variable: the value of the next iteration
  bool is_begun;
};

enum {
  MARK_DEAD = 1,  // some input is dead
  MARK_LIVE = 2,  // a Merge has a live input
  MARK_DONE = 4,  // a Merge was started
};

// A loop invariant, for every iteration; unset if it is dead.
typedef struct rn_frame_held_t {
  int32_t instr;
  rn_tensor_t value;
} rn_frame_held_t;

// One run of a loop.
struct rn_frame_t {
  const rn_frame_def_t* def;
  int32_t number;          // of |def|
  uint64_t id;             // 0 for frame 0; the same in all parts of a step
  rn_iteration_t* parent;  // NULL: frame 0
  rn_frame_t* next;        // sibling, or in the free list
  rn_iteration_t* first;   // live iterations, oldest first
  rn_iteration_t* last;
  int32_t live_count;
  int32_t pending_enters;
  RN_VEC(rn_frame_held_t) invariants;
  // While parallel_iterations iterations run: the next one, not started yet, with the values that
  // have arrived for it; and which NextIterations brought them.
  rn_iteration_t* ahead;
  RN_VEC(int32_t) waiting;
  RN_VEC(int32_t) dead_exits;  // of the newest iteration
};

typedef struct rn_ready_t {
  rn_iteration_t* iteration;
  int32_t instr;  // RN_WHOLE_LOOP: the straight loop of |iteration|
  bool is_dead;
} rn_ready_t;

enum { RN_WHOLE_LOOP = -1 };

// A running asynchronous kernel, followed by its input pointers.
typedef struct rn_flight_t {
  rn_kernel_ctx_t ctx;  // first: rn_done gives it back
  rn_state_t* state;
  rn_iteration_t* iteration;
  int32_t instr;
  rn_status_t status;
  int64_t start_ns;  // 0: the step is not traced
  struct rn_flight_t* next;
  rn_tensor_t* dereffed;  // by input, as far as the instruction has any
  rn_tensor_t* in[];
} rn_flight_t;

struct rn_frames_t {
  rn_state_t* state;
  rn_allocator_t allocator;
  rn_frame_t* root;
  bool is_driven;  // guarded by the execution's mutex, as is |landed|
  // Completed, not yet seen by the driver. Changes under the mutex; the driver polls it without.
  rn_flight_t* _Atomic landed;
  RN_VEC(rn_ready_t) ready;
  // Instructions outside of all loops that Exits have made ready. They run after the rest of their
  // loop, which then holds no values that an update would have to copy.
  RN_VEC(rn_ready_t) behind;
  bool is_begun;            // something has run
  int32_t work;             // instructions that have issued work
  rn_recorded_t* recorded;  // not NULL: what notes the variables that are used; see record.h
  rn_iteration_t** free_iterations;  // by frame definition
  rn_frame_t* free_frames;
};

static inline rn_tensor_t* rn_frames_input(rn_frames_t* frames, rn_iteration_t* it,
                                           const rn_instr_t* instr, int32_t i) {
  return &it->slots[frames->state->plan->input_locals[instr->first_input + i]];
}

// Releases the value of a slot; a slot with its own memory is pointed at it again.
void rn_frames_reset_slot(rn_iteration_t* it, int32_t local);
// Empties a slot. An unset tensor may keep its shape: only a buffer, or allocated dims, must be
// freed, and a slot with its own memory pointed at it again.
static inline void rn_frames_clear_slot(rn_iteration_t* it, int32_t local) {
  rn_tensor_t* slot = &it->slots[local];
  size_t offset = it->frame->def->offsets[local];
  bool is_lent = !slot->buffer && slot->rank <= RN_INLINE_DIMS;
  bool is_in_place = offset == SIZE_MAX || slot->data == it->memory + offset;
  if (__builtin_expect(is_lent && is_in_place, 1))
    slot->dtype = RN_INVALID;
  else
    rn_frames_reset_slot(it, local);
}

// Moves the outputs of an instruction to their consumers, in any frame.
RN_MUST_USE rn_status_t rn_frames_propagate(rn_frames_t* frames, rn_iteration_t* it, int32_t number,
                                            bool is_dead, rn_tensor_t* value);
// Counts off something of |it| that was outstanding, and ends the iteration if it is over.
RN_MUST_USE rn_status_t rn_frames_count_off(rn_frames_t* frames, rn_iteration_t* it);
// A small constant, borrowed, or a larger one, shared.
RN_MUST_USE rn_status_t rn_frames_share_constant(const rn_tensor_t* constant, rn_tensor_t* out);
// The error of a condition that is not a scalar.
rn_status_t rn_frames_wrong_predicate(const rn_tensor_t* predicate);
// Runs a straight loop until it ends, something else is to be done, or the step should stop.
RN_MUST_USE rn_status_t rn_frames_run_loop(rn_frames_t* frames, rn_iteration_t* it);
void rn_frames_free_loop(rn_frames_t* frames, const rn_frame_def_t* def, rn_iteration_t* it);

// After an instruction: delivers its outputs, releases its inputs, and ends its iteration if it is
// over. |value| is what Enter, Exit and NextIteration carry to another frame or iteration, NULL
// otherwise; the caller clears what is left of it.
RN_MUST_USE rn_status_t rn_frames_finish(rn_frames_t* frames, rn_iteration_t* it, int32_t number,
                                         bool is_dead, rn_tensor_t* value);
// Finishes asynchronous kernels that completed after the step had failed.
void rn_frames_drop_landed(rn_frames_t* frames);

#endif  // RUNNEL_EXEC_FRAMES_INTERNAL_H_
