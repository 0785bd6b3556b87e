// Gradients of eager execution: tapes that record ops as they run.
//
//   rn_tape_t* tape = rn_tape_start(context, NULL, status);
//   rn_tape_watch(tape, x, status);
//   … TFE_Execute, any number of times …
//   TFE_TensorHandle* dx = NULL;
//   rn_tape_gradient(tape, &loss, 1, &x, 1, NULL, &dx, status);
//   rn_tape_delete(tape);
//
// A tape records the ops that its thread executes in its context and whose inputs are watched or
// come from what is watched. Variables (handles of VarHandleOp) are watched as soon as they are
// read. Tapes nest: the gradients that an inner tape computes are recorded by outer ones, which
// gives gradients of gradients. So does a persistent tape that still records: it records the
// gradients that it gives. The rules on NULL, ownership and statuses are those of c_api.h.
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
  bool is_persistent;     // gives gradients more than once, and records on
  bool leaves_variables;  // variables are not watched unless rn_tape_watch says so
} rn_tape_options_t;

// A tape that records from now on; |options| NULL: all false. NULL on failure.
RN_API rn_tape_t* rn_tape_start(TFE_Context* context, const rn_tape_options_t* options,
                                TF_Status* status);
// Frees the tape and what it keeps. NULL is fine.
RN_API void rn_tape_delete(rn_tape_t* tape);

// Records nothing between the two.
RN_API void rn_tape_pause(rn_tape_t* tape);
RN_API void rn_tape_resume(rn_tape_t* tape);

// What is computed from |handle| from now on is recorded.
RN_API void rn_tape_watch(rn_tape_t* tape, TFE_TensorHandle* handle, TF_Status* status);

// A gradient as rows: row i of |values| belongs to row |indices|[i] of a tensor of shape |shape|; a
// row that is named twice gets the sum. The handles are the caller's.
typedef struct rn_tape_slices_t {
  TFE_TensorHandle *values, *indices, *shape;
} rn_tape_slices_t;

typedef struct rn_tape_gradient_options_t {
  // What arrives at each target; NULL, or NULL for one of them: ones.
  TFE_TensorHandle* const* target_gradients;
  bool zeros;  // a source that no target depends on gets zeros and not NULL
  // NULL: all gradients are dense. Else room for one a source: a gradient that only touches rows
  // (of an embedding that was gathered from) comes here, and |out| is NULL for it; zeroed
  // otherwise.
  rn_tape_slices_t* slices;
} rn_tape_gradient_options_t;

// Gradients of the sum of the targets by each source: a watched handle, or a variable's, for which
// it is that of the variable's value. |out| has room for one handle a source, the caller's; NULL
// where nothing flows back. False and all NULL on failure. A tape that is not persistent records no
// more afterwards, and gives gradients once.
RN_API bool rn_tape_gradient(rn_tape_t* tape, TFE_TensorHandle* const* targets, int target_count,
                             TFE_TensorHandle* const* sources, int source_count,
                             const rn_tape_gradient_options_t* options, TFE_TensorHandle** out,
                             TF_Status* status);

// A gradient of one's own: sets |input_gradients| (NULL at first: none) to handles that the tape
// then owns, from |output_gradients| (NULL: nothing arrived there).
typedef void (*rn_tape_gradient_fn_t)(void* arg, TFE_TensorHandle* const* output_gradients,
                                      int output_count, TFE_TensorHandle** input_gradients,
                                      int input_count, TF_Status* status);
// Says that |outputs| were computed from |inputs|, by steps that no tape has recorded (pause them),
// with the gradient |fn|. |free_arg| (may be NULL) is called once when no tape needs |arg| any
// more.
RN_API void rn_tape_record(TFE_Context* context, TFE_TensorHandle* const* inputs, int input_count,
                           TFE_TensorHandle* const* outputs, int output_count,
                           rn_tape_gradient_fn_t fn, void* arg, void (*free_arg)(void* arg),
                           TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_TAPE_H_
