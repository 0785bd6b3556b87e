// Functions over several tasks, called on this one: cut by the devices of their nodes and
// arguments, and run as one part per task.
//
// Every argument is an argument of the part on its own task; an ordinary value of this task also of
// the parts that read it. Other values cross by Send and Recv, in the rendezvous of the call's own
// step. Every result stays on the task that computes it.
#ifndef RUNNEL_DIST_EAGER_SPAN_H_
#define RUNNEL_DIST_EAGER_SPAN_H_

#include "dist/eager/internal.h"

// Begins the names of parts: functions that stay between the tasks that run them.
#define RN_SPAN_PREFIX "__span_"

// A call of a function.
typedef struct rn_span_call_t {
  int64_t id;  // of the op; its results have this number on their tasks
  rn_str_t name;
  const rn_attr_t* attrs;
  size_t attr_count;
  rn_str_t device;    // of this task: runs what names no device
  bool may_delegate;  // all of it may be run by another task, and this one can copy its arguments
  size_t input_count;
  size_t* first;             // by input: its first piece, the last one's end included
  rn_eager_piece_t* pieces;  // borrowed
  size_t piece_count;
  rn_cancel_t* cancel;
  rn_arena_t* arena;  // for what lives as long as the call
} rn_span_call_t;

// A result: of this task, or on another.
typedef struct rn_span_result_t {
  rn_eager_handle_t* handle;  // Owned; NULL: on another task
  rn_str_t device;            // then where, borrowed from the span
  rn_str_t shape;             // and its TensorShapeProto, in the call's arena
} rn_span_result_t;

// The part on one task.
typedef struct rn_span_part_t {
  rn_str_t task, device, function;
  int32_t arg_count;
  int32_t* args;  // the pieces of the call that it takes
  int32_t result_count;
  int32_t* results;  // the numbers of its results
} rn_span_part_t;

typedef enum rn_span_kind_t {
  RN_SPAN_CUT,
  RN_SPAN_HERE,      // all of it belongs to this task
  RN_SPAN_ELSEWHERE  // all of it belongs to the task of |device|, another one
} rn_span_kind_t;

// A function that was cut. Counted; read-only once it is made.
typedef struct rn_span_t {
  _Atomic int refs;
  rn_arena_t arena;  // all below
  rn_str_t key, name;
  rn_span_kind_t kind;
  rn_str_t device;
  int32_t result_count;
  rn_dtype_t* types;         // of the results
  rn_str_t* result_devices;  // their devices
  rn_span_part_t own;
  rn_instance_t* instance;  // Owned: of the own part
  size_t part_count;
  rn_span_part_t* parts;  // on other tasks
} rn_span_t;

// Finds or makes the cut of a function for such a call; tells other tasks of their parts. The
// caller releases it.
RN_MUST_USE rn_status_t rn_span_get(rn_eager_context_t* context, const rn_span_call_t* call,
                                    rn_span_t** out);
void rn_span_release(rn_eager_context_t* context, rn_span_t* span);  // NULL is fine
// Runs a function that is cut; |results| has room for all. Blocks.
RN_MUST_USE rn_status_t rn_span_run(rn_eager_context_t* context, const rn_span_t* span,
                                    const rn_span_call_t* call, rn_span_result_t* results);
void rn_span_results_clear(rn_span_result_t* results, int32_t count);
// Forgets how function |name| was cut; "": all functions. |tells|: other tasks drop their parts
// too.
void rn_spans_drop(rn_eager_context_t* context, rn_str_t name, bool tells);

// Cuts a function (span_cut.c). What follows is what both files share.
RN_MUST_USE rn_status_t rn_span_cut(rn_eager_context_t* context, const rn_span_call_t* call,
                                    rn_span_t* span);
// The device of a value.
rn_str_t rn_span_piece_device(const rn_eager_context_t* context, const rn_eager_piece_t* piece);
// Tells |task| one item of its queue, encoded.
RN_MUST_USE rn_status_t rn_span_tell(rn_eager_context_t* context, rn_str_t task, rn_str_t item);

#endif  // RUNNEL_DIST_EAGER_SPAN_H_
