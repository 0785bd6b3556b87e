// What a state has recorded of a segment or of a whole step: the recording, and what must be as it
// was for a replay. record.c and record_step.c make and use it; see record.h.
#ifndef RUNNEL_EXEC_RECORDED_H_
#define RUNNEL_EXEC_RECORDED_H_

#include "exec/execution.h"
#include "framework/internal_ops.h"
#include "framework/resource.h"

// What does not fit this often is not recorded any more.
#define RN_MOST_RUNS 32

// A value that enters or leaves what is recorded.
typedef struct rn_recorded_slot_t {
  int32_t slot;
  enum {
    RN_RECORDED_INPUT,     // must be where it was, with the shape of |kept|
    RN_RECORDED_FEED,      // in host memory; must have the shape of |kept|
    RN_RECORDED_GUARD,     // in host memory; must be equal to |kept|
    RN_RECORDED_ARGUMENT,  // is copied into |kept|, in the device's memory, and must have its shape
    RN_RECORDED_DYING,     // not read afterwards
    RN_RECORDED_OUTPUT,    // shares |kept|
    RN_RECORDED_VALUE,     // a copy of |kept|, in host memory
    RN_RECORDED_FETCH,     // made anew in host memory, like |kept|
    RN_RECORDED_RESULT,    // a copy of |kept|, in the device's memory, made after the work
  } kind;
  int32_t instr;  // that makes a fetch
  void* data;     // of an input
  rn_tensor_t kept;
} rn_recorded_slot_t;

typedef struct rn_recorded_variable_t {
  rn_variable_t* variable;  // Retained
  rn_tensor_t like;  // its value: where it is, and its shape; before and after the recorded work
  bool is_written;
} rn_recorded_variable_t;

typedef struct rn_recorded_t {
  rn_recording_t* recording;  // Owned; NULL: not recorded yet
  int32_t runs;               // that were not replays
  bool is_awaited;            // this step replayed it and must await the end
  bool is_spent;              // it fits no other step
  // Of a whole step:
  bool may_record;  // the next one may be recorded, if its feeds fit
  int32_t age;      // steps since it was used
  RN_VEC(rn_recorded_slot_t) slots;
  RN_VEC(rn_recorded_variable_t) variables;
} rn_recorded_t;

static inline bool rn_instr_is_move(const rn_instr_t* instr, bool to_host) {
  return instr->kernel && instr->kernel->op == rn_op_move(to_host);
}

// Adds |noted| and takes its |kept|, also if it fails.
RN_MUST_USE rn_status_t rn_recorded_add(rn_recorded_t* recorded, rn_plan_t* plan,
                                        rn_recorded_slot_t noted);
// Notes the variable that an input of |instr| leads to, if any. A kernel that hands out what it
// holds only reads it, and so does one that the device does not replay.
RN_MUST_USE rn_status_t rn_recorded_note_input(rn_recorded_t* recorded, rn_plan_t* plan,
                                               const rn_instr_t* instr, const rn_tensor_t* input);
// Notes the value of |slot|, which leaves without a place of its own: a fetch, which is in host
// memory and only has the same shape next time, a view of something that has a place, or, of a
// whole step, a value of the host, which the client may change.
RN_MUST_USE rn_status_t rn_recorded_keep_output(rn_recorded_t* recorded, rn_state_t* state,
                                                int32_t slot);
// Whether the values that enter are as they were.
bool rn_recorded_takes(const rn_recorded_t* recorded, rn_state_t* state);
// Whether the variables are where they were, too. One whose buffer something else holds must not be
// written in place.
bool rn_recorded_fits(const rn_recorded_t* recorded, rn_state_t* state);
// Whether a variable was given another buffer, because something still reads the old one. The next
// step would have to read and write elsewhere.
bool rn_recorded_has_moved_variables(const rn_recorded_t* recorded);
// Issues copies of the results, after the work was issued.
RN_MUST_USE rn_status_t rn_recorded_give_results(rn_state_t* state, const rn_recorded_t* recorded);
// Issues copies of the arguments to where the recorded work reads them.
RN_MUST_USE rn_status_t rn_recorded_stage(rn_state_t* state, const rn_recorded_t* recorded);
// Issues the recorded work, which the step awaits.
RN_MUST_USE rn_status_t rn_recorded_issue(rn_state_t* state, rn_recorded_t* recorded);
// Sets the values that leave, and issues copies of arguments and the work. ABORTED if the device
// cannot replay it any more; it can be recorded again then.
RN_MUST_USE rn_status_t rn_recorded_replay(rn_state_t* state, rn_recorded_t* recorded);
// Forgets the recording and what was noted for it.
void rn_recorded_forget(rn_recorded_t* recorded, rn_plan_t* plan);
// Frees everything.
void rn_recorded_clear(rn_recorded_t* recorded, rn_plan_t* plan);

#endif  // RUNNEL_EXEC_RECORDED_H_
