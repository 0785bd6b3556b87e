// Numbers of types, which several of NVIDIA's libraries share.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_DATA_TYPES_H_
#define RUNNEL_KERNELS_CUDA_LIBS_DATA_TYPES_H_

#include "tensor/dtype.h"

// cudaDataType
enum {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_8I = 3,
  CUDA_C_32F = 4,
  CUDA_C_64F = 5,
  CUDA_R_32I = 10,
  CUDA_R_16BF = 14,
};

// Of float, double, complex64 or complex128.
static inline int rn_cuda_data_type(rn_dtype_t dtype) {
  return dtype == RN_FLOAT       ? CUDA_R_32F
         : dtype == RN_DOUBLE    ? CUDA_R_64F
         : dtype == RN_COMPLEX64 ? CUDA_C_32F
                                 : CUDA_C_64F;
}

#endif  // RUNNEL_KERNELS_CUDA_LIBS_DATA_TYPES_H_
