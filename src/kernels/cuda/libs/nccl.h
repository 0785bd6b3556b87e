// Collectives of GPUs by NCCL: an implementation of device/comm.h.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_NCCL_H_
#define RUNNEL_KERNELS_CUDA_LIBS_NCCL_H_

#include "device/comm.h"

extern const rn_comm_library_t rn_nccl_library;

#endif  // RUNNEL_KERNELS_CUDA_LIBS_NCCL_H_
