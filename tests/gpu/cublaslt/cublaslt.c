// An emulated cuBLASLt on the emulated driver: products of floats, with a bias and ReLU.
//
// It proposes three algorithms. The first computes large ones eight times, the second fails when it
// runs, the third is the fastest and needs a workspace.
#include "kernels/cuda/libs/cublaslt.h"

#include <stdlib.h>
#include <string.h>

#include "emulated_image.h"
#include "kernels/cuda/launch.h"

// After the types of its members:
#include "cublaslt_args.h"

#define INVALID_VALUE 7
#define EXECUTION_FAILED 13
#define ALGORITHMS 3
#define WORKSPACE 4096

struct cublasLtContext {
  CUmodule module;
  CUfunction function;
};
struct rn_cublaslt_matmul_desc_t {
  int32_t attributes[16];
  const void* bias;
};
struct rn_cublaslt_layout_t {
  int type;
  uint64_t rows, columns;
  int64_t ld, stride;
  int32_t batch;
};
struct rn_cublaslt_preference_t {
  size_t workspace;
};

#define CALL(result, name, parameters) \
  result name parameters;              \
  __attribute__((visibility("default"))) result name parameters
#define DRIVER(result, name, parameters) extern result name parameters;
RN_CUDA_DRIVER_CALLS(DRIVER)

static struct { int asked, refused, last; } calls = {.last = -1};
// How often it was asked for "heuristics" or "refused"; or the number of the "last" algorithm.
CALL(int, emulated_cublaslt_count, (const char* what)) {
  return strcmp(what, "heuristics") == 0 ? calls.asked
         : strcmp(what, "refused") == 0  ? calls.refused
                                         : calls.last;
}

CALL(size_t, cublasLtGetVersion, (void)) {
  const char* version = getenv("EMULATED_CUBLASLT_VERSION");
  return version ? (size_t)atoi(version) : 130000;
}
CALL(const char*, cublasLtGetStatusName, (cublasStatus_t status)) {
  return status ? "an emulated error" : "CUBLAS_STATUS_SUCCESS";
}

CALL(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * out)) {
  char* bytes = read_emulated_image(EMULATED_IMAGE);
  *out = calloc(1, sizeof **out);
  CUresult result = bytes ? cuModuleLoadData(&(*out)->module, bytes) : CUDA_ERROR_NOT_FOUND;
  if (!result) result = cuModuleGetFunction(&(*out)->function, (*out)->module, "emulated_product");
  free(bytes);
  return result ? INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
CALL(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle)) {
  cuModuleUnload(handle->module);
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

CALL(cublasStatus_t, cublasLtMatmulDescCreate,
     (cublasLtMatmulDesc_t * out, int compute_type, int scale_type)) {
  (void)compute_type, (void)scale_type;
  *out = calloc(1, sizeof **out);
  return CUBLAS_STATUS_SUCCESS;
}
CALL(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc)) {
  free(desc);
  return CUBLAS_STATUS_SUCCESS;
}
CALL(cublasStatus_t, cublasLtMatmulDescSetAttribute,
     (cublasLtMatmulDesc_t desc, int attribute, const void* value, size_t size)) {
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER)
    memcpy(&desc->bias, value, sizeof desc->bias);
  else if (size == sizeof(int32_t) && attribute < 16)
    memcpy(&desc->attributes[attribute], value, size);
  else
    return INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

CALL(cublasStatus_t, cublasLtMatrixLayoutCreate,
     (cublasLtMatrixLayout_t * out, int type, uint64_t rows, uint64_t columns, int64_t ld)) {
  *out = calloc(1, sizeof **out);
  **out = (struct rn_cublaslt_layout_t){type, rows, columns, ld, 0, 1};
  return CUBLAS_STATUS_SUCCESS;
}
CALL(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout)) {
  free(layout);
  return CUBLAS_STATUS_SUCCESS;
}
CALL(cublasStatus_t, cublasLtMatrixLayoutSetAttribute,
     (cublasLtMatrixLayout_t layout, int attribute, const void* value, size_t size)) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    memcpy(&layout->batch, value, size);
  else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    memcpy(&layout->stride, value, size);
  else
    return INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

CALL(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * out)) {
  *out = calloc(1, sizeof **out);
  return CUBLAS_STATUS_SUCCESS;
}
CALL(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference)) {
  free(preference);
  return CUBLAS_STATUS_SUCCESS;
}
CALL(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
     (cublasLtMatmulPreference_t preference, int attribute, const void* value, size_t size)) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    memcpy(&preference->workspace, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

static bool is_supported(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t d) {
  int epilogue = desc->attributes[CUBLASLT_MATMUL_DESC_EPILOGUE];
  return d->type == CUDA_R_32F &&
         (epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_RELU ||
          epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS);
}

CALL(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
     (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
      cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* results,
      int* count)) {
  (void)handle, (void)a, (void)b, (void)c;
  ++calls.asked;
  *count = 0;
  for (int i = 0; is_supported(desc, d) && i < ALGORITHMS && i < wanted; ++i) {
    if (i == 2 && preference->workspace < WORKSPACE) continue;
    results[(*count)++] = (cublasLtMatmulHeuristicResult_t){
        .algo = {.data = {(uint64_t)i + 100}}, .workspaceSize = i == 2 ? WORKSPACE : 0};
  }
  return CUBLAS_STATUS_SUCCESS;
}

static emulated_matrix matrix_of(const void* data, cublasLtMatrixLayout_t layout, int transpose) {
  return (emulated_matrix){(float*)(uintptr_t)data, layout->ld, layout->stride, transpose};
}

CALL(cublasStatus_t, cublasLtMatmul,
     (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
      cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
      const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
      cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
      size_t workspace_size, CUstream stream)) {
  const int number = (int)algo->data[0] - 100;
  if (number < 0 || number >= ALGORITHMS || !is_supported(desc, d_layout)) return INVALID_VALUE;
  if (number == 1 || (number == 2 && getenv("EMULATED_CUBLASLT_REFUSES"))) {
    ++calls.refused;
    return EXECUTION_FAILED;
  }
  if (number == 2 && (!workspace || workspace_size < WORKSPACE)) return INVALID_VALUE;
  const int epilogue = desc->attributes[CUBLASLT_MATMUL_DESC_EPILOGUE];
  const bool is_transposed = desc->attributes[CUBLASLT_MATMUL_DESC_TRANSA] != CUBLAS_OP_N;
  emulated_product_args args = {
      .a = matrix_of(a, a_layout, is_transposed),
      .b = matrix_of(b, b_layout, desc->attributes[CUBLASLT_MATMUL_DESC_TRANSB] != CUBLAS_OP_N),
      .c = matrix_of(c, c_layout, 0),
      .d = matrix_of(d, d_layout, 0),
      .m = (i64)d_layout->rows,
      .n = (i64)d_layout->columns,
      .k = (i64)(is_transposed ? a_layout->rows : a_layout->columns),
      .batch = d_layout->batch,
      .alpha = *(const float*)alpha,
      .beta = *(const float*)beta,
      .bias = epilogue & CUBLASLT_EPILOGUE_BIAS ? desc->bias : NULL,
      .has_relu = (epilogue & CUBLASLT_EPILOGUE_RELU) != 0};
  size_t size = sizeof args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CUresult result = CUDA_SUCCESS;
  calls.last = number;
  // Products that add to D are computed once, and those that nobody measures, too.
  const bool is_slow = number == 0 && args.beta == 0 && args.m * args.n * args.k > 1000000;
  for (int turn = 0; !result && turn < (is_slow ? 8 : 1); ++turn)
    result = cuLaunchKernel(handle->function, 4, 1, 1, 64, 1, 1, 0, stream, NULL, extra);
  return result ? EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
