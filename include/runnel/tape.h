// Gradients of eager execution: tapes that record ops as they run.
//
//   rn_tape_t* tape = rn_tape_start(context, NULL, status);
//   rn_tape_watch(tape, x, status);
//   … TFE_Execute, any number of times …
//   TFE_TensorHandle* dx = NULL;
//   rn_tape_gradient(tape, &loss, 1, &x, 1, NULL, &dx, status);
//   rn_tape_delete(tape);
//
// A tape records the ops that its thread executes in its context, if their inputs are watched or
// depend on what is watched. Variables (handles of VarHandleOp) are watched when they are read.
// Tapes nest: outer tapes record the gradients that an inner tape computes, which gives gradients
// of gradients. A persistent tape that still records does so too. The rules on NULL, ownership and
// statuses are those of c_api.h.
#ifndef RUNNEL_TAPE_H_
#define RUNNEL_TAPE_H_

#include <stdbool.h>

#include "runnel/api.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_tape_t rn_tape_t;

typedef struct rn_tape_options_t {
  bool is_persistent;     // computes gradients more than once, and keeps recording
  bool leaves_variables;  // watch variables only after rn_tape_watch
} rn_tape_options_t;

// Starts a tape. |options| may be NULL. NULL on failure.
RN_API rn_tape_t* rn_tape_start(TFE_Context* context, const rn_tape_options_t* options,
                                TF_Status* status);
// Frees the tape. NULL is allowed.
RN_API void rn_tape_delete(rn_tape_t* tape);

// Nothing is recorded between the two.
RN_API void rn_tape_pause(rn_tape_t* tape);
RN_API void rn_tape_resume(rn_tape_t* tape);

// From now on, records what is computed from |handle|.
RN_API void rn_tape_watch(rn_tape_t* tape, TFE_TensorHandle* handle, TF_Status* status);

// Whether the tape watches |handle|, or has recorded how it was computed from watched handles.
RN_API bool rn_tape_tracks(const rn_tape_t* tape, TFE_TensorHandle* handle);

// A sparse gradient: row i of |values| belongs to row |indices|[i] of a tensor of shape |shape|; a
// row that occurs twice gets the sum. The caller owns the handles.
typedef struct rn_tape_slices_t {
  TFE_TensorHandle *values, *indices, *shape;
} rn_tape_slices_t;

typedef struct rn_tape_gradient_options_t {
  // The gradients of the targets; NULL, or NULL for one of them, means ones.
  TFE_TensorHandle* const* target_gradients;
  bool zeros;  // zeros instead of NULL for a source that no target depends on
  // NULL: all gradients are dense. Otherwise room for one entry per source: the gradient of an
  // embedding that was gathered from goes here, and |out| is NULL for it. Other entries are zeroed.
  rn_tape_slices_t* slices;
} rn_tape_gradient_options_t;

// Gradients of the sum of the targets by each source: a watched handle, or that of a variable, for
// which it is the gradient of the variable's value. |out| has room for one handle per source, which
// the caller owns; NULL where nothing flows back. Returns false, with all NULL, on failure. A tape
// that is not persistent computes gradients once and then stops recording.
RN_API bool rn_tape_gradient(rn_tape_t* tape, TFE_TensorHandle* const* targets, int target_count,
                             TFE_TensorHandle* const* sources, int source_count,
                             const rn_tape_gradient_options_t* options, TFE_TensorHandle** out,
                             TF_Status* status);

// Your own gradient function: sets |input_gradients| (initially NULL: none) to handles that the
// tape then owns, from |output_gradients| (NULL: nothing arrived).
typedef void (*rn_tape_gradient_fn_t)(void* arg, TFE_TensorHandle* const* output_gradients,
                                      int output_count, TFE_TensorHandle** input_gradients,
                                      int input_count, TF_Status* status);
// Records that |outputs| were computed from |inputs| by steps that no tape has recorded (pause
// them), with the gradient |fn|. |free_arg| (may be NULL) is called once when no tape needs |arg|
// any more.
RN_API void rn_tape_record(TFE_Context* context, TFE_TensorHandle* const* inputs, int input_count,
                           TFE_TensorHandle* const* outputs, int output_count,
                           rn_tape_gradient_fn_t fn, void* arg, void (*free_arg)(void* arg),
                           TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_TAPE_H_
