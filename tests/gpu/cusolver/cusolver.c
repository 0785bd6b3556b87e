// An emulated cuSOLVER on the emulated driver. Every call wants a workspace on the card;
// eigenvalues and singular values also want one on the host. Nothing can be called during a
// capture.
#include "kernels/cuda/libs/cusolver_api.h"

#include <stdbool.h>
#include <stdlib.h>

#include "emulated_image.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/libs/data_types.h"

// After the types of its members:
#include "cusolver_args.h"

#define INVALID_VALUE 3
#define EXECUTION_FAILED 6
#define HOST_SIZE 64

struct cusolverDnContext {
  CUmodule module;
  CUfunction function;
  CUstream stream;
};
struct cusolverDnParams {
  int unused;
};
static int calls;

#define CALL(name, parameters)      \
  cusolverStatus_t name parameters; \
  __attribute__((visibility("default"))) cusolverStatus_t name parameters
#define DRIVER(result, name, parameters) extern result name parameters;
RN_CUDA_DRIVER_CALLS(DRIVER)

// How many matrices were factored.
int emulated_cusolver_count(const char* what);
__attribute__((visibility("default"))) int emulated_cusolver_count(const char* what) {
  (void)what;
  return calls;
}

CALL(cusolverDnCreate, (cusolverDnHandle_t * out)) {
  char* bytes = read_emulated_image(EMULATED_IMAGE);
  cusolverDnHandle_t handle = calloc(1, sizeof *handle);
  CUresult result = bytes ? cuModuleLoadData(&handle->module, bytes) : CUDA_ERROR_NOT_FOUND;
  if (!result) result = cuModuleGetFunction(&handle->function, handle->module, "emulated_solver");
  free(bytes);
  *out = handle;
  return result ? INVALID_VALUE : CUSOLVER_STATUS_SUCCESS;
}
CALL(cusolverDnDestroy, (cusolverDnHandle_t handle)) {
  cuModuleUnload(handle->module);
  free(handle);
  return CUSOLVER_STATUS_SUCCESS;
}
CALL(cusolverDnSetStream, (cusolverDnHandle_t handle, CUstream stream)) {
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
CALL(cusolverDnCreateParams, (cusolverDnParams_t * params)) {
  *params = calloc(1, sizeof **params);
  return CUSOLVER_STATUS_SUCCESS;
}
CALL(cusolverDnDestroyParams, (cusolverDnParams_t params)) {
  free(params);
  return CUSOLVER_STATUS_SUCCESS;
}

// Room for n x n of the largest numbers.
static cusolverStatus_t say_sizes(int64_t n, bool wants_host, size_t* card_size,
                                  size_t* host_size) {
  *card_size = (size_t)(n * n) * 16;
  *host_size = wants_host ? HOST_SIZE : 0;
  return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t run(cusolverDnHandle_t handle, const void* card, size_t card_size,
                            const void* host, size_t host_size, emulated_solver_args args) {
  int is_capturing = 0;
  const bool wants_host = args.op == EMULATED_SYEVD || args.op == EMULATED_GESVD;
  cuStreamIsCapturing(handle->stream, &is_capturing);
  if (!card || card_size == 0 || !args.info) return INVALID_VALUE;
  if (is_capturing && (wants_host || args.op == EMULATED_ORGQR)) return INVALID_VALUE;
  if (wants_host && (!host || host_size < HOST_SIZE)) return INVALID_VALUE;
  size_t size = sizeof args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  ++calls;
  const CUresult result =
      cuLaunchKernel(handle->function, 1, 1, 1, 1, 1, 1, 0, handle->stream, NULL, extra);
  return result ? EXECUTION_FAILED : CUSOLVER_STATUS_SUCCESS;
}

#define IGNORE_TYPES (void)params, (void)compute

CALL(cusolverDnXpotrf_bufferSize, (RN_CUSOLVER_TRIANGLE_ARGS, RN_CUSOLVER_SIZES)) {
  IGNORE_TYPES, (void)handle, (void)triangle, (void)type, (void)a, (void)lda;
  return say_sizes(n, false, card_size, host_size);
}
CALL(cusolverDnXpotrf, (RN_CUSOLVER_TRIANGLE_ARGS, RN_CUSOLVER_SPACES)) {
  IGNORE_TYPES;
  if (triangle != CUBLAS_FILL_MODE_UPPER || lda != n) return INVALID_VALUE;
  return run(handle, card, card_size, host, host_size,
             (emulated_solver_args){
                 .op = EMULATED_POTRF, .type = type, .m = n, .n = n, .a = a, .info = info});
}

CALL(cusolverDnXgetrf_bufferSize, (RN_CUSOLVER_BEGIN, int64_t m, int64_t n, int type, const void* a,
                                   int64_t lda, int compute, RN_CUSOLVER_SIZES)) {
  IGNORE_TYPES, (void)handle, (void)type, (void)a, (void)lda, (void)m;
  return say_sizes(n, false, card_size, host_size);
}
CALL(cusolverDnXgetrf, (RN_CUSOLVER_BEGIN, int64_t m, int64_t n, int type, void* a, int64_t lda,
                        int64_t* pivots, int compute, RN_CUSOLVER_SPACES)) {
  IGNORE_TYPES;
  if (lda != m || m != n) return INVALID_VALUE;
  return run(handle, card, card_size, host, host_size,
             (emulated_solver_args){.op = EMULATED_GETRF,
                                    .type = type,
                                    .m = m,
                                    .n = n,
                                    .a = a,
                                    .pivots = (i64*)pivots,
                                    .info = info});
}

CALL(cusolverDnXgeqrf_bufferSize, (RN_CUSOLVER_QR_ARGS, RN_CUSOLVER_SIZES)) {
  IGNORE_TYPES, (void)handle, (void)type, (void)a, (void)lda, (void)m, (void)tau, (void)tau_type;
  return say_sizes(n, false, card_size, host_size);
}
CALL(cusolverDnXgeqrf, (RN_CUSOLVER_QR_ARGS, RN_CUSOLVER_SPACES)) {
  IGNORE_TYPES;
  if (lda != m || tau_type != type) return INVALID_VALUE;
  return run(
      handle, card, card_size, host, host_size,
      (emulated_solver_args){
          .op = EMULATED_GEQRF, .type = type, .m = m, .n = n, .a = a, .b = tau, .info = info});
}

CALL(cusolverDnXsyevd_bufferSize, (RN_CUSOLVER_EIGEN_ARGS, RN_CUSOLVER_SIZES)) {
  IGNORE_TYPES, (void)handle, (void)type, (void)a, (void)lda, (void)mode, (void)triangle;
  (void)values, (void)values_type;
  return say_sizes(n, true, card_size, host_size);
}
CALL(cusolverDnXsyevd, (RN_CUSOLVER_EIGEN_ARGS, RN_CUSOLVER_SPACES)) {
  IGNORE_TYPES;
  if (triangle != CUBLAS_FILL_MODE_UPPER || lda != n || values_type != (type & 3))
    return INVALID_VALUE;
  return run(handle, card, card_size, host, host_size,
             (emulated_solver_args){.op = EMULATED_SYEVD,
                                    .type = type,
                                    .m = n,
                                    .n = n,
                                    .a = a,
                                    .b = values,
                                    .v = card,
                                    .wants_vectors = mode == CUSOLVER_EIG_MODE_VECTOR,
                                    .info = info});
}

CALL(cusolverDnXgesvdp_bufferSize, (RN_CUSOLVER_SVD_ARGS, RN_CUSOLVER_SIZES)) {
  IGNORE_TYPES, (void)handle, (void)type, (void)a, (void)lda, (void)mode, (void)is_thin, (void)m;
  (void)s, (void)s_type, (void)u, (void)u_type, (void)ldu, (void)v, (void)v_type, (void)ldv;
  return say_sizes(n, true, card_size, host_size);
}
CALL(cusolverDnXgesvdp, (RN_CUSOLVER_SVD_ARGS, RN_CUSOLVER_SPACES, double* shift)) {
  IGNORE_TYPES;
  if (m < n || lda != m || ldu != m || ldv != n || s_type != (type & 3) || u_type != type ||
      v_type != type || !shift)
    return INVALID_VALUE;
  *shift = 0;
  return run(handle, card, card_size, host, host_size,
             (emulated_solver_args){.op = EMULATED_GESVD,
                                    .type = type,
                                    .m = m,
                                    .n = n,
                                    .a = a,
                                    .b = s,
                                    .u = u,
                                    .v = v ? v : card,
                                    .u_columns = is_thin ? n : m,
                                    .wants_vectors = mode == CUSOLVER_EIG_MODE_VECTOR,
                                    .info = info});
}

static cusolverStatus_t form_q(cusolverDnHandle_t handle, int type, int m, int n, int k, void* a,
                               int lda, const void* tau, void* work, int size, int* info) {
  if (lda != m || n > m || k > n || size != n) return INVALID_VALUE;
  return run(handle, work, (size_t)size, NULL, 0,
             (emulated_solver_args){.op = EMULATED_ORGQR,
                                    .type = type,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .a = a,
                                    .b = (void*)(uintptr_t)tau,
                                    .info = info});
}
#define FORM_Q(name, type)                                               \
  CALL(name##_bufferSize, (RN_CUSOLVER_Q_SIZE_ARGS)) {                   \
    (void)handle, (void)m, (void)k, (void)a, (void)lda, (void)tau;       \
    *size = n;                                                           \
    return CUSOLVER_STATUS_SUCCESS;                                      \
  }                                                                      \
  CALL(name, (RN_CUSOLVER_Q_ARGS)) {                                     \
    return form_q(handle, type, m, n, k, a, lda, tau, work, size, info); \
  }
FORM_Q(cusolverDnSorgqr, CUDA_R_32F)
FORM_Q(cusolverDnDorgqr, CUDA_R_64F)
FORM_Q(cusolverDnZungqr, CUDA_C_64F)
