// Fourier transforms by cuFFT: dense, over the last one to three axes, unscaled.
//
// A plan is made once per card and problem and kept: recorded steps use its tables. Any thread may
// call.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUFFT_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUFFT_H_

#include "device/cuda/card.h"
#include "kernels/cuda/libs/cufft_api.h"

#define RN_CUFFT_MAX_AXES 3

typedef struct rn_cufft_t rn_cufft_t;

// What a plan is made for. It is hashed byte by byte, so it starts zeroed.
typedef struct rn_cufft_problem_t {
  int64_t lengths[RN_CUFFT_MAX_AXES];  // of the transform, not of half spectra
  int64_t batch;
  int32_t type;  // CUFFT_C2C ...
  int32_t axes;
} rn_cufft_problem_t;

// The card's cuFFT, opened at the first call. NULL if the machine has none: the log says once what
// is missing.
RN_MUST_USE rn_status_t rn_cufft_get(rn_cuda_card_t* card, const rn_env_t* env, rn_cufft_t** out);

// Issues the transform. A transform to real numbers may write to |in|. |*out_done| is false, and
// nothing was issued, if the library refuses the problem, or if it is a new one and there are many
// plans already, there is no memory for the work area, or the stream is being captured.
RN_MUST_USE rn_status_t rn_cufft_transform(rn_cufft_t* cufft, const rn_cufft_problem_t* problem,
                                           bool is_backward, const void* in, void* out,
                                           bool* out_done);

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUFFT_H_
