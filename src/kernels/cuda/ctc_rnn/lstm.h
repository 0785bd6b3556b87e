// What kernels of LSTM cells share.
#ifndef RUNNEL_KERNELS_CUDA_CTC_RNN_LSTM_H_
#define RUNNEL_KERNELS_CUDA_CTC_RNN_LSTM_H_

#include "kernels/cpu/ctc_rnn/lstm.h"
#include "kernels/cpu/float_args.h"
#include "kernels/cuda/ctc_rnn/cells_args.h"

// Inputs and outputs as floats: those of 16 bits are converted, as on the CPU. Zero-initialize
// |args| but for |ctx|, request arguments, and always call rn_cuda_floats_end, which stores the
// outputs if |status| is OK and returns |status|.
RN_MUST_USE rn_status_t rn_cuda_floats_in(rn_float_args_t* args, int i, const float** out);
RN_MUST_USE rn_status_t rn_cuda_floats_out(rn_float_args_t* args, int o, rn_shape_t shape,
                                           bool zeroes, float** out);
RN_MUST_USE rn_status_t rn_cuda_floats_end(rn_float_args_t* args, rn_status_t status);

#define RN_CUDA_LSTM_ROW(op_, host_args_, compute_)                                       \
  {                                                                                       \
    .op = op_, .device = "GPU", .types = {{"T", RN_T(HALF) | RN_T(FLOAT)}},               \
    .flags = RN_KERNEL_REPLAYS, .host_args = host_args_, .state_size = sizeof(rn_lstm_t), \
    .init = rn_lstm_init, .compute = compute_                                             \
  }

#endif  // RUNNEL_KERNELS_CUDA_CTC_RNN_LSTM_H_
