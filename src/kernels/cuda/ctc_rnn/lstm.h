// What kernels of LSTM cells share.
#ifndef RUNNEL_KERNELS_CUDA_CTC_RNN_LSTM_H_
#define RUNNEL_KERNELS_CUDA_CTC_RNN_LSTM_H_

#include "kernels/cpu/ctc_rnn/lstm.h"
#include "kernels/cuda/ctc_rnn/cells_args.h"

#define RN_CUDA_LSTM_ROW(op_, host_args_, compute_)                                        \
  {                                                                                        \
    .op = op_, .device = "GPU", .types = {{"T", RN_T(FLOAT)}}, .flags = RN_KERNEL_REPLAYS, \
    .host_args = host_args_, .state_size = sizeof(rn_lstm_t), .init = rn_lstm_init,        \
    .compute = compute_                                                                    \
  }

#endif  // RUNNEL_KERNELS_CUDA_CTC_RNN_LSTM_H_
