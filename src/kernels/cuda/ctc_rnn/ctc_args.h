// Arguments of the kernels of ctc.cu.
#ifndef RUNNEL_KERNELS_CUDA_CTC_RNN_CTC_ARGS_H_
#define RUNNEL_KERNELS_CUDA_CTC_RNN_CTC_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_CTC_THREADS 256

// Labels are as in kernels/cpu/ctc_rnn/ctc_loss.h. The |room| numbers of a sequence in |scratch|
// are: probabilities by time and class, tables forward and backward by time and place in the path,
// and the logarithm of the path's probability.
typedef struct rn_cuda_ctc_args {
  const float* inputs;  // time x batch x classes
  const i64 *begin, *given;
  const i32 *lengths, *labels;
  double* scratch;
  float *loss, *gradient;
  i64 time, batch, classes, blank, room;
  i32 merges;
} rn_cuda_ctc_args;

#endif  // RUNNEL_KERNELS_CUDA_CTC_RNN_CTC_ARGS_H_
