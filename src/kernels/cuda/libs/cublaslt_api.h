// The part of cuBLASLt that Runnel calls, declared here for the reasons of
// device/cuda/driver_api.h. Names, numbers and signatures are those of CUDA 12 and 13.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUBLASLT_API_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUBLASLT_API_H_

#include "device/cuda/driver_api.h"
#include "kernels/cuda/libs/data_types.h"

typedef int cublasStatus_t;
typedef struct cublasLtContext* cublasLtHandle_t;
typedef struct rn_cublaslt_matmul_desc_t* cublasLtMatmulDesc_t;
typedef struct rn_cublaslt_layout_t* cublasLtMatrixLayout_t;
typedef struct rn_cublaslt_preference_t* cublasLtMatmulPreference_t;

typedef struct {
  uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
} cublasLtMatmulHeuristicResult_t;

enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,

  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
  CUBLAS_OP_C = 2,

  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,

  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,

  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,

  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_BGRADA = 256,

  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};

// X(result, name, parameters) for every function.
#define RN_CUBLASLT_CALLS(X)                                                                      \
  X(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle))                                  \
  X(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle))                                   \
  X(size_t, cublasLtGetVersion, (void))                                                           \
  X(const char*, cublasLtGetStatusName, (cublasStatus_t status))                                  \
  X(cublasStatus_t, cublasLtMatmulDescCreate,                                                     \
    (cublasLtMatmulDesc_t * desc, int compute_type, int scale_type))                              \
  X(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc))                       \
  X(cublasStatus_t, cublasLtMatmulDescSetAttribute,                                               \
    (cublasLtMatmulDesc_t desc, int attribute, const void* value, size_t size))                   \
  X(cublasStatus_t, cublasLtMatrixLayoutCreate,                                                   \
    (cublasLtMatrixLayout_t * layout, int type, uint64_t rows, uint64_t columns, int64_t ld))     \
  X(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                 \
  X(cublasStatus_t, cublasLtMatrixLayoutSetAttribute,                                             \
    (cublasLtMatrixLayout_t layout, int attribute, const void* value, size_t size))               \
  X(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))    \
  X(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))     \
  X(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,                                         \
    (cublasLtMatmulPreference_t preference, int attribute, const void* value, size_t size))       \
  X(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,                                               \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,                \
     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,                \
     cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* results, \
     int* count))                                                                                 \
  X(cublasStatus_t, cublasLtMatmul,                                                               \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,        \
     cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,             \
     const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,                   \
     cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,          \
     size_t workspace_size, CUstream stream))

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUBLASLT_API_H_
