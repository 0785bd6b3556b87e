// LSTM cells (Hochreiter and Schmidhuber, 1997), single steps and sequences: what forward and
// backward share.
#ifndef RUNNEL_KERNELS_CPU_CTC_RNN_LSTM_H_
#define RUNNEL_KERNELS_CPU_CTC_RNN_LSTM_H_

#include "kernels/cpu/float_args.h"

typedef struct rn_lstm_t {
  float forget_bias, cell_clip;  // clips only if positive
  bool has_peephole;
  // Offsets of the gates in a row of four times the cell size.
  int i, ci, f, o;
} rn_lstm_t;

typedef struct rn_lstm_size_t {
  int64_t time, batch, input, cell;
  int64_t steps;  // number of steps computed, of |time|
} rn_lstm_size_t;

// The parameters, converted to float.
typedef struct rn_lstm_args_t {
  const float *x, *cs_prev, *h_prev, *w, *wci, *wcf, *wco, *b;
} rn_lstm_args_t;

rn_status_t rn_lstm_init(const rn_kernel_init_t* init, void* state);  // |state| is an rn_lstm_t
// A row of the kernel table.
#define RN_LSTM_ROW(name, function)                                                      \
  {                                                                                      \
    .op = name, .device = "CPU", .types = {{"T", RN_T(HALF) | RN_T(FLOAT)}},             \
    .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_lstm_t), .init = rn_lstm_init, \
    .compute = function                                                                  \
  }
// Checks x, cs_prev, h_prev, w, wci, wcf, wco, b, which are inputs |first| and on.
RN_MUST_USE rn_status_t rn_lstm_check_cell(const rn_kernel_ctx_t* ctx, rn_lstm_size_t* out);
RN_MUST_USE rn_status_t rn_lstm_check_block(const rn_kernel_ctx_t* ctx, rn_lstm_size_t* out);
// The same for the gradients, with the values of the forward pass and their gradients.
RN_MUST_USE rn_status_t rn_lstm_check_cell_grad(const rn_kernel_ctx_t* ctx, rn_lstm_size_t* out);
RN_MUST_USE rn_status_t rn_lstm_check_block_grad(const rn_kernel_ctx_t* ctx, rn_lstm_size_t* out);
RN_MUST_USE rn_status_t rn_lstm_args_in(rn_float_args_t* floats, int first, rn_lstm_args_t* out);

// What one step produced, for backpropagation. Each is batch x cell.
typedef struct rn_lstm_step_t {
  const float *cs_prev, *i, *cs, *f, *o, *ci, *co;
  const float *cs_grad, *h_grad;          // incoming gradients
  const float *cs_next, *h_next;          // gradients from the next step; NULL if none
  float* gates;                           // batch x 4 cell: gradient before the activations
  float* cs_prev_grad;                    // may be cs_next
  float *wci_grad, *wcf_grad, *wco_grad;  // accumulated into, if there are peepholes
} rn_lstm_step_t;
void rn_lstm_step_back(const rn_lstm_t* lstm, const rn_lstm_args_t* args, rn_lstm_size_t size,
                       const rn_lstm_step_t* step);

#endif  // RUNNEL_KERNELS_CPU_CTC_RNN_LSTM_H_
