// The part of cuSOLVER that Runnel calls, declared here for the reasons of
// device/cuda/driver_api.h. Names, numbers and signatures are those of CUDA 12 and 13.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUSOLVER_API_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUSOLVER_API_H_

#include "device/cuda/driver_api.h"

typedef int cusolverStatus_t;
typedef struct cusolverDnContext* cusolverDnHandle_t;
typedef struct cusolverDnParams* cusolverDnParams_t;

enum {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_ALLOC_FAILED = 2,

  CUBLAS_FILL_MODE_UPPER = 1,  // cublasFillMode_t

  // cusolverEigMode_t
  CUSOLVER_EIG_MODE_NOVECTOR = 0,
  CUSOLVER_EIG_MODE_VECTOR = 1,
};

// The workspaces of a call: their sizes, and then the memory.
#define RN_CUSOLVER_SIZES size_t *card_size, size_t *host_size
#define RN_CUSOLVER_SPACES void *card, size_t card_size, void *host, size_t host_size, int *info
#define RN_CUSOLVER_BEGIN cusolverDnHandle_t handle, cusolverDnParams_t params

#define RN_CUSOLVER_TRIANGLE_ARGS \
  RN_CUSOLVER_BEGIN, int triangle, int64_t n, int type, void *a, int64_t lda, int compute
#define RN_CUSOLVER_QR_ARGS                                                              \
  RN_CUSOLVER_BEGIN, int64_t m, int64_t n, int type, void *a, int64_t lda, int tau_type, \
      void *tau, int compute
#define RN_CUSOLVER_EIGEN_ARGS                                                          \
  RN_CUSOLVER_BEGIN, int mode, int triangle, int64_t n, int type, void *a, int64_t lda, \
      int values_type, void *values, int compute
#define RN_CUSOLVER_SVD_ARGS                                                                      \
  RN_CUSOLVER_BEGIN, int mode, int is_thin, int64_t m, int64_t n, int type, void *a, int64_t lda, \
      int s_type, void *s, int u_type, void *u, int64_t ldu, int v_type, void *v, int64_t ldv,    \
      int compute
#define RN_CUSOLVER_Q_SIZE_ARGS \
  cusolverDnHandle_t handle, int m, int n, int k, const void *a, int lda, const void *tau, int *size
#define RN_CUSOLVER_Q_ARGS                                                                       \
  cusolverDnHandle_t handle, int m, int n, int k, void *a, int lda, const void *tau, void *work, \
      int size, int *info

// X(result, name, parameters) for every function.
#define RN_CUSOLVER_CALLS(X)                                                                       \
  X(cusolverStatus_t, cusolverDnCreate, (cusolverDnHandle_t * handle))                             \
  X(cusolverStatus_t, cusolverDnDestroy, (cusolverDnHandle_t handle))                              \
  X(cusolverStatus_t, cusolverDnSetStream, (cusolverDnHandle_t handle, CUstream stream))           \
  X(cusolverStatus_t, cusolverDnCreateParams, (cusolverDnParams_t * params))                       \
  X(cusolverStatus_t, cusolverDnDestroyParams, (cusolverDnParams_t params))                        \
  X(cusolverStatus_t, cusolverDnXpotrf_bufferSize, (RN_CUSOLVER_TRIANGLE_ARGS, RN_CUSOLVER_SIZES)) \
  X(cusolverStatus_t, cusolverDnXpotrf, (RN_CUSOLVER_TRIANGLE_ARGS, RN_CUSOLVER_SPACES))           \
  X(cusolverStatus_t, cusolverDnXgetrf_bufferSize,                                                 \
    (RN_CUSOLVER_BEGIN, int64_t m, int64_t n, int type, const void* a, int64_t lda, int compute,   \
     RN_CUSOLVER_SIZES))                                                                           \
  X(cusolverStatus_t, cusolverDnXgetrf,                                                            \
    (RN_CUSOLVER_BEGIN, int64_t m, int64_t n, int type, void* a, int64_t lda, int64_t* pivots,     \
     int compute, RN_CUSOLVER_SPACES))                                                             \
  X(cusolverStatus_t, cusolverDnXgeqrf_bufferSize, (RN_CUSOLVER_QR_ARGS, RN_CUSOLVER_SIZES))       \
  X(cusolverStatus_t, cusolverDnXgeqrf, (RN_CUSOLVER_QR_ARGS, RN_CUSOLVER_SPACES))                 \
  X(cusolverStatus_t, cusolverDnXsyevd_bufferSize, (RN_CUSOLVER_EIGEN_ARGS, RN_CUSOLVER_SIZES))    \
  X(cusolverStatus_t, cusolverDnXsyevd, (RN_CUSOLVER_EIGEN_ARGS, RN_CUSOLVER_SPACES))              \
  X(cusolverStatus_t, cusolverDnXgesvdp_bufferSize, (RN_CUSOLVER_SVD_ARGS, RN_CUSOLVER_SIZES))     \
  X(cusolverStatus_t, cusolverDnXgesvdp,                                                           \
    (RN_CUSOLVER_SVD_ARGS, RN_CUSOLVER_SPACES, double* shift))                                     \
  X(cusolverStatus_t, cusolverDnSorgqr_bufferSize, (RN_CUSOLVER_Q_SIZE_ARGS))                      \
  X(cusolverStatus_t, cusolverDnDorgqr_bufferSize, (RN_CUSOLVER_Q_SIZE_ARGS))                      \
  X(cusolverStatus_t, cusolverDnZungqr_bufferSize, (RN_CUSOLVER_Q_SIZE_ARGS))                      \
  X(cusolverStatus_t, cusolverDnSorgqr, (RN_CUSOLVER_Q_ARGS))                                      \
  X(cusolverStatus_t, cusolverDnDorgqr, (RN_CUSOLVER_Q_ARGS))                                      \
  X(cusolverStatus_t, cusolverDnZungqr, (RN_CUSOLVER_Q_ARGS))

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUSOLVER_API_H_
