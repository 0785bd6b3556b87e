// Arguments of the kernel of ports.cu.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_PORTS_ARGS_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_PORTS_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_CUDA_PORTS_ARGS 16

typedef struct rn_cuda_ports_args {
  struct {
    const char* from;
    char* to;
    i64 size;  // bytes
  } copies[RN_CUDA_PORTS_ARGS];
  i32 count;
  i32 has_flag;
  u32* flag;  // in host memory; set to 1 behind the copies
} rn_cuda_ports_args;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_PORTS_ARGS_H_
