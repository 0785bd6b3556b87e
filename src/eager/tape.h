// Tapes: record executed ops so that gradients can be computed.
//
// A tape records the ops of its thread whose inputs are watched or computed from watched values;
// reading a variable watches it. grad/ computes the gradient: the tape puts the recorded ops into a
// graph, grad/ adds the gradient's nodes, and these become a function of the context, which runs on
// the recorded values. Nothing is computed twice. Equal recordings share one function. The call is
// itself an op, which outer tapes record.
#ifndef RUNNEL_EAGER_TAPE_H_
#define RUNNEL_EAGER_TAPE_H_

#include "eager/eager.h"

typedef struct rn_eager_tape_t rn_eager_tape_t;

// Computes the gradients of the inputs from those of the outputs (NULL where none arrived). Sets
// |inputs| to handles that the tape then owns, or leaves them NULL.
typedef struct rn_eager_custom_t {
  rn_status_t (*gradient)(void* arg, rn_eager_handle_t* const* outputs, int32_t output_count,
                          rn_eager_handle_t** inputs, int32_t input_count);
  void (*free_arg)(void* arg);  // called once, when no tape needs |arg| any more; may be NULL
  void* arg;
} rn_eager_custom_t;

// Starts to record what this thread executes in |eager|; retains |eager|.
RN_MUST_USE rn_status_t rn_eager_tape_create(rn_eager_t* eager, bool is_persistent,
                                             bool watches_variables, rn_eager_tape_t** out);
void rn_eager_tape_destroy(rn_eager_tape_t* tape);  // NULL is fine
void rn_eager_tape_set_recording(rn_eager_tape_t* tape, bool is_recording);
RN_MUST_USE rn_status_t rn_eager_tape_watch(rn_eager_tape_t* tape, rn_eager_handle_t* handle);
// Whether |handle| is watched, or was computed from watched handles.
bool rn_eager_tape_tracks(const rn_eager_tape_t* tape, rn_eager_handle_t* handle);
// Records one step from |inputs| to |outputs|, with the gradient |custom|, on the tapes of this
// thread that watch an input. Takes |custom|, also on failure.
RN_MUST_USE rn_status_t rn_eager_tape_record_custom(rn_eager_t* eager,
                                                    rn_eager_handle_t* const* inputs,
                                                    int32_t input_count,
                                                    rn_eager_handle_t* const* outputs,
                                                    int32_t output_count, rn_eager_custom_t custom);

// A sparse gradient: rows, their indices, and the dense shape.
typedef struct rn_eager_slices_t {
  rn_eager_handle_t *values, *indices, *shape;
} rn_eager_slices_t;

typedef struct rn_eager_gradient_t {
  rn_eager_handle_t* const* targets;
  int32_t target_count;
  rn_eager_handle_t* const* sources;  // watched values, or handles of variables
  int32_t source_count;
  rn_eager_handle_t* const* target_gradients;  // NULL, or a NULL entry, means ones
  bool wants_zeros;                            // for sources that no target depends on
  // NULL: results are dense. Otherwise one entry per source: a sparse gradient is stored there,
  // owned by the caller, and the result itself is NULL.
  rn_eager_slices_t* slices;
} rn_eager_gradient_t;
// Gradients of the sum of the targets with respect to each source, owned by the caller; NULL where
// nothing flows back. A tape that is not persistent stops recording and computes gradients only
// once.
RN_MUST_USE rn_status_t rn_eager_tape_gradient(rn_eager_tape_t* tape,
                                               const rn_eager_gradient_t* request,
                                               rn_eager_handle_t** out);

#endif  // RUNNEL_EAGER_TAPE_H_
