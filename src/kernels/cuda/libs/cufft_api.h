// The part of cuFFT that Runnel calls, declared here for the reasons of device/cuda/driver_api.h.
// Names, numbers and signatures are those of CUDA 12 and 13.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUFFT_API_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUFFT_API_H_

#include "device/cuda/driver_api.h"

typedef int cufftResult;
typedef int cufftHandle;

enum {
  CUFFT_SUCCESS = 0,

  CUFFT_FORWARD = -1,
  CUFFT_INVERSE = 1,

  CUFFT_C2C = 0x29,
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_Z2Z = 0x69,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
};

// X(result, name, parameters) for every function.
#define RN_CUFFT_CALLS(X)                                                                       \
  X(cufftResult, cufftCreate, (cufftHandle * plan))                                             \
  X(cufftResult, cufftDestroy, (cufftHandle plan))                                              \
  X(cufftResult, cufftSetAutoAllocation, (cufftHandle plan, int is_on))                         \
  X(cufftResult, cufftMakePlanMany64,                                                           \
    (cufftHandle plan, int rank, long long* n, long long* in_embed, long long in_stride,        \
     long long in_distance, long long* out_embed, long long out_stride, long long out_distance, \
     int type, long long batch, size_t* work_size))                                             \
  X(cufftResult, cufftSetStream, (cufftHandle plan, CUstream stream))                           \
  X(cufftResult, cufftSetWorkArea, (cufftHandle plan, void* work))                              \
  X(cufftResult, cufftExecC2C, (cufftHandle plan, void* in, void* out, int direction))          \
  X(cufftResult, cufftExecR2C, (cufftHandle plan, void* in, void* out))                         \
  X(cufftResult, cufftExecC2R, (cufftHandle plan, void* in, void* out))                         \
  X(cufftResult, cufftExecZ2Z, (cufftHandle plan, void* in, void* out, int direction))          \
  X(cufftResult, cufftExecD2Z, (cufftHandle plan, void* in, void* out))                         \
  X(cufftResult, cufftExecZ2D, (cufftHandle plan, void* in, void* out))

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUFFT_API_H_
