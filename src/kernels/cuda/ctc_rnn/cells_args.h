// Arguments of the kernels of cells.cu.
#ifndef RUNNEL_KERNELS_CUDA_CTC_RNN_CELLS_ARGS_H_
#define RUNNEL_KERNELS_CUDA_CTC_RNN_CELLS_ARGS_H_

#include "kernels/cuda/array/divide.h"

// One step of LSTM cells. Matrices are batch x cell, |gates| is batch x 4 cell, peepholes are
// vectors, or NULL if there are none.
typedef struct rn_cuda_lstm_args {
  const float *gates, *cs_prev, *wci, *wcf, *wco, *b;
  float *i, *cs, *f, *o, *ci, *co, *h;
  i64 batch, cell;
  float forget_bias, clip;  // clips only if positive
  i32 at_i, at_ci, at_f, at_o;
} rn_cuda_lstm_args;

typedef struct rn_cuda_lstm_back_args {
  const float *cs_prev, *i, *cs, *f, *o, *ci, *co, *cs_grad, *h_grad;
  const float *cs_next, *h_next;  // gradients from the next step; NULL if none
  const float *wci, *wcf, *wco;
  float *gates, *cs_prev_grad;
  float *wci_grad, *wcf_grad, *wco_grad;  // accumulated into
  i64 batch, cell;
  i32 at_i, at_ci, at_f, at_o;
} rn_cuda_lstm_back_args;

// The sums of the columns of a matrix.
typedef struct rn_cuda_lstm_sums_args {
  const float* from;
  float* to;
  i64 rows, columns;
} rn_cuda_lstm_sums_args;

// GRU cells. |gates| is batch x 2 cell; all others are batch x cell, biases are vectors.
typedef struct rn_cuda_gru_args {
  const float *gates, *sums, *h_prev, *b_ru, *b_c;
  float *r, *u, *c, *h, *reset;
  i64 batch, cell;
} rn_cuda_gru_args;

typedef struct rn_cuda_gru_back_args {
  const float *h_prev, *r, *u, *c, *dh, *reset;
  float *dc, *dru, *dh_prev;
  i64 batch, cell;
} rn_cuda_gru_back_args;

#endif  // RUNNEL_KERNELS_CUDA_CTC_RNN_CELLS_ARGS_H_
