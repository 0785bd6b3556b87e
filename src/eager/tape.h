// Tapes: what was executed, kept so that gradients can be taken of it.
//
// A tape records the ops that its thread executes whose inputs are watched, or follow from what is
// watched; variables are watched when they are read. A gradient is found by the one reverse walk of
// grad/: the recorded ops are put into a graph, the walk adds the gradient's nodes, and these
// become a function of the context, which is executed on the recorded values. Nothing is computed
// twice; equal recordings share one function; and the call is itself an op, which outer tapes
// record.
#ifndef RUNNEL_EAGER_TAPE_H_
#define RUNNEL_EAGER_TAPE_H_

#include "eager/eager.h"

typedef struct rn_eager_tape_t rn_eager_tape_t;

// Gradients of the inputs from those of the outputs (NULL: none arrived). Sets |inputs| to handles
// that the tape then owns, or leaves NULL.
typedef struct rn_eager_custom_t {
  rn_status_t (*gradient)(void* arg, rn_eager_handle_t* const* outputs, int32_t output_count,
                          rn_eager_handle_t** inputs, int32_t input_count);
  void (*free_arg)(void* arg);  // called once, when no tape needs it any more; NULL: nothing to do
  void* arg;
} rn_eager_custom_t;

// Starts to record what this thread executes in |eager|, which it keeps.
RN_MUST_USE rn_status_t rn_eager_tape_create(rn_eager_t* eager, bool is_persistent,
                                             bool watches_variables, rn_eager_tape_t** out);
void rn_eager_tape_destroy(rn_eager_tape_t* tape);  // NULL is fine
void rn_eager_tape_set_recording(rn_eager_tape_t* tape, bool is_recording);
RN_MUST_USE rn_status_t rn_eager_tape_watch(rn_eager_tape_t* tape, rn_eager_handle_t* handle);
// The tapes of this thread that watch an input record one step from |inputs| to |outputs| with the
// gradient |custom|, which is taken, also on failure.
RN_MUST_USE rn_status_t rn_eager_tape_record_custom(rn_eager_t* eager,
                                                    rn_eager_handle_t* const* inputs,
                                                    int32_t input_count,
                                                    rn_eager_handle_t* const* outputs,
                                                    int32_t output_count, rn_eager_custom_t custom);

// Rows of a gradient, their numbers, and the shape of the whole.
typedef struct rn_eager_slices_t {
  rn_eager_handle_t *values, *indices, *shape;
} rn_eager_slices_t;

typedef struct rn_eager_gradient_t {
  rn_eager_handle_t* const* targets;
  int32_t target_count;
  rn_eager_handle_t* const* sources;  // watched values, or handles of variables
  int32_t source_count;
  rn_eager_handle_t* const* target_gradients;  // NULL, or NULL for one: ones
  bool wants_zeros;                            // for sources that no target depends on
  // NULL: results are dense. Else room for one a source: what comes as slices is put there, the
  // caller's, and the result itself is NULL.
  rn_eager_slices_t* slices;
} rn_eager_gradient_t;
// Gradients of the sum of the targets by each source; the caller owns them. NULL where nothing
// flows back. A tape that is not persistent stops recording and gives gradients once.
RN_MUST_USE rn_status_t rn_eager_tape_gradient(rn_eager_tape_t* tape,
                                               const rn_eager_gradient_t* request,
                                               rn_eager_handle_t** out);

#endif  // RUNNEL_EAGER_TAPE_H_
