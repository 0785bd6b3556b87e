// The first half of the CTC loss, shared with other devices: checks, and the labels of each
// sequence, which are host arguments.
#ifndef RUNNEL_KERNELS_CPU_CTC_RNN_CTC_LOSS_H_
#define RUNNEL_KERNELS_CPU_CTC_RNN_CTC_LOSS_H_

#include "framework/kernel.h"

// The state.
typedef struct rn_ctc_t {
  bool collapses;  // collapses repeated labels before anything else
  bool merges;     // merges repeats over time into one label
  bool ignores;    // skips sequences that do not fit
  bool blank_first;
} rn_ctc_t;
RN_MUST_USE rn_status_t rn_ctc_init(const rn_kernel_init_t* init, void* state);

// The labels of all sequences, concatenated.
typedef struct rn_ctc_labels_t {
  int64_t* begin;  // batch + 1 entries
  int64_t* given;  // labels per sequence before collapsing
  int32_t* values;
} rn_ctc_labels_t;

typedef struct rn_ctc_loss_t {
  const rn_ctc_t* ctc;
  int64_t time, batch, classes, blank, most;  // most: labels of the longest sequence
  const rn_tensor_t *inputs, *lengths;
  rn_ctc_labels_t labels;
} rn_ctc_loss_t;

// Checks the arguments and sets everything but the labels.
RN_MUST_USE rn_status_t rn_ctc_loss_read(const rn_kernel_ctx_t* ctx, rn_ctc_loss_t* out);
// Fills |loss->labels|, for which the caller has memory: 2 * batch + 1 numbers at |begin|, as many
// values as there are labels.
RN_MUST_USE rn_status_t rn_ctc_loss_labels(const rn_kernel_ctx_t* ctx, rn_ctc_loss_t* loss);
// Whether sequence |b| has a loss; otherwise it and the gradient are 0.
static inline bool rn_ctc_has_loss(int64_t time, int64_t given) {
  return time > 0 && given <= time;
}
// How many numbers the tables of one sequence take: by class and by label for each time step, and
// one more row by class.
RN_MUST_USE rn_status_t rn_ctc_loss_room(const rn_ctc_loss_t* loss, int64_t* out_each,
                                         int64_t* out_total);

#endif  // RUNNEL_KERNELS_CPU_CTC_RNN_CTC_LOSS_H_
