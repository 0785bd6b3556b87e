// The part of cuSPARSE that Runnel calls, declared here for the reasons of
// device/cuda/driver_api.h. Names, numbers and signatures are those of CUDA 12 and 13.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUSPARSE_API_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUSPARSE_API_H_

#include "device/cuda/driver_api.h"

typedef int cusparseStatus_t;
typedef struct cusparseContext* cusparseHandle_t;
typedef struct cusparseSpMatDescr* cusparseSpMatDescr_t;
typedef struct cusparseDnMatDescr* cusparseDnMatDescr_t;
typedef struct cusparseSpGEMMDescr* cusparseSpGEMMDescr_t;

enum {
  CUSPARSE_STATUS_SUCCESS = 0,
  CUSPARSE_STATUS_ALLOC_FAILED = 2,
  CUSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11,

  CUSPARSE_OPERATION_NON_TRANSPOSE = 0,
  CUSPARSE_INDEX_32I = 2,
  CUSPARSE_INDEX_BASE_ZERO = 0,
  CUSPARSE_ORDER_ROW = 2,
  CUSPARSE_SPMM_CSR_ALG2 = 6,
  CUSPARSE_SPGEMM_DEFAULT = 0,
};

#define RN_CUSPARSE_SPMM_ARGS                                                             \
  cusparseHandle_t handle, int op_a, int op_b, const void *alpha, cusparseSpMatDescr_t a, \
      cusparseDnMatDescr_t b, const void *beta, cusparseDnMatDescr_t c, int compute, int algorithm
#define RN_CUSPARSE_SPGEMM_ARGS                                                           \
  cusparseHandle_t handle, int op_a, int op_b, const void *alpha, cusparseSpMatDescr_t a, \
      cusparseSpMatDescr_t b, const void *beta, cusparseSpMatDescr_t c, int compute,      \
      int algorithm, cusparseSpGEMMDescr_t product

// X(result, name, parameters) for every function.
#define RN_CUSPARSE_CALLS(X)                                                                   \
  X(cusparseStatus_t, cusparseCreate, (cusparseHandle_t * handle))                             \
  X(cusparseStatus_t, cusparseDestroy, (cusparseHandle_t handle))                              \
  X(cusparseStatus_t, cusparseSetStream, (cusparseHandle_t handle, CUstream stream))           \
  X(cusparseStatus_t, cusparseCreateCsr,                                                       \
    (cusparseSpMatDescr_t * matrix, int64_t rows, int64_t columns, int64_t entries,            \
     void* row_pointers, void* column_indices, void* values, int row_type, int column_type,    \
     int base, int type))                                                                      \
  X(cusparseStatus_t, cusparseCsrSetPointers,                                                  \
    (cusparseSpMatDescr_t matrix, void* row_pointers, void* column_indices, void* values))     \
  X(cusparseStatus_t, cusparseSpMatGetSize,                                                    \
    (cusparseSpMatDescr_t matrix, int64_t * rows, int64_t * columns, int64_t * entries))       \
  X(cusparseStatus_t, cusparseDestroySpMat, (cusparseSpMatDescr_t matrix))                     \
  X(cusparseStatus_t, cusparseCreateDnMat,                                                     \
    (cusparseDnMatDescr_t * matrix, int64_t rows, int64_t columns, int64_t step, void* values, \
     int type, int order))                                                                     \
  X(cusparseStatus_t, cusparseDestroyDnMat, (cusparseDnMatDescr_t matrix))                     \
  X(cusparseStatus_t, cusparseSpMM_bufferSize, (RN_CUSPARSE_SPMM_ARGS, size_t * size))         \
  X(cusparseStatus_t, cusparseSpMM, (RN_CUSPARSE_SPMM_ARGS, void* buffer))                     \
  X(cusparseStatus_t, cusparseSpGEMM_createDescr, (cusparseSpGEMMDescr_t * product))           \
  X(cusparseStatus_t, cusparseSpGEMM_destroyDescr, (cusparseSpGEMMDescr_t product))            \
  X(cusparseStatus_t, cusparseSpGEMM_workEstimation,                                           \
    (RN_CUSPARSE_SPGEMM_ARGS, size_t * size, void* buffer))                                    \
  X(cusparseStatus_t, cusparseSpGEMM_compute,                                                  \
    (RN_CUSPARSE_SPGEMM_ARGS, size_t * size, void* buffer))                                    \
  X(cusparseStatus_t, cusparseSpGEMM_copy, (RN_CUSPARSE_SPGEMM_ARGS))

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUSPARSE_API_H_
