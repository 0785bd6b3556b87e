// What a call of FFT, IFFT, RFFT or IRFFT asks for, checked: the same on every device.
#ifndef RUNNEL_KERNELS_CPU_SIGNAL_FFT_CALL_H_
#define RUNNEL_KERNELS_CPU_SIGNAL_FFT_CALL_H_

#include "framework/kernel.h"

#define RN_FFT_ANY_RANK 0

typedef struct rn_fft_op_t {
  int rank;  // RN_FFT_ANY_RANK: input 2 lists the axes
  bool is_real, is_backward;
} rn_fft_op_t;

// Which transform an op is, by its name: [Batch][I][R]FFT[2D, 3D, ND].
rn_fft_op_t rn_fft_op(const char* name);

// One call. The axes are the last |rank|.
typedef struct rn_fft_call_t {
  int rank;
  int64_t lengths[RN_MAX_RANK];  // one per axis
  int64_t dims[RN_MAX_RANK];     // of the output
} rn_fft_call_t;

// Reads and checks the inputs' shapes, fft_length and axes.
RN_MUST_USE rn_status_t rn_fft_check(rn_kernel_ctx_t* ctx, const rn_fft_op_t* op,
                                     rn_fft_call_t* call);
// INVALID_ARGUMENT if the input and the output differ in precision. Stock says so after the checks
// of shapes.
RN_MUST_USE rn_status_t rn_fft_check_types(const rn_kernel_ctx_t* ctx, const rn_fft_op_t* op);

#endif  // RUNNEL_KERNELS_CPU_SIGNAL_FFT_CALL_H_
