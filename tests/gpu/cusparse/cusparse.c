// An emulated cuSPARSE on the emulated driver. The steps of a product must come in their order,
// each with the buffer that it has asked for; a matrix without entries is refused.
#include "kernels/cuda/libs/cusparse_api.h"

#include <stdbool.h>
#include <stdlib.h>

#include "emulated_image.h"
#include "kernels/cuda/launch.h"

// After the types of its members:
#include "cusparse_args.h"

#define INVALID_VALUE 3
#define EXECUTION_FAILED 6
#define BUFFER_SIZE 96

struct cusparseContext {
  CUmodule module;
  CUfunction function;
  CUstream stream;
};
struct cusparseSpMatDescr {
  emulated_csr csr;
  int type;
};
struct cusparseDnMatDescr {
  int64_t rows, columns, step;
  void* values;
  int type, order;
};
struct cusparseSpGEMMDescr {
  int steps;      // that have been made
  void* buffers;  // of the first step, which the others need
};

#define CALL(name, parameters)      \
  cusparseStatus_t name parameters; \
  __attribute__((visibility("default"))) cusparseStatus_t name parameters
#define DRIVER(result, name, parameters) extern result name parameters;
RN_CUDA_DRIVER_CALLS(DRIVER)

CALL(cusparseCreate, (cusparseHandle_t * out)) {
  char* bytes = read_emulated_image(EMULATED_IMAGE);
  cusparseHandle_t handle = calloc(1, sizeof *handle);
  CUresult result = bytes ? cuModuleLoadData(&handle->module, bytes) : CUDA_ERROR_NOT_FOUND;
  if (!result) result = cuModuleGetFunction(&handle->function, handle->module, "emulated_sparse");
  free(bytes);
  *out = handle;
  return result ? INVALID_VALUE : CUSPARSE_STATUS_SUCCESS;
}
CALL(cusparseDestroy, (cusparseHandle_t handle)) {
  cuModuleUnload(handle->module);
  free(handle);
  return CUSPARSE_STATUS_SUCCESS;
}
CALL(cusparseSetStream, (cusparseHandle_t handle, CUstream stream)) {
  handle->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}

CALL(cusparseCreateCsr, (cusparseSpMatDescr_t * matrix, int64_t rows, int64_t columns,
                         int64_t entries, void* row_pointers, void* column_indices, void* values,
                         int row_type, int column_type, int base, int type)) {
  if (row_type != CUSPARSE_INDEX_32I || column_type != CUSPARSE_INDEX_32I || base != 0)
    return INVALID_VALUE;
  *matrix = calloc(1, sizeof **matrix);
  (*matrix)->csr = (emulated_csr){rows, columns, entries, row_pointers, column_indices, values};
  (*matrix)->type = type;
  return CUSPARSE_STATUS_SUCCESS;
}
CALL(cusparseCsrSetPointers,
     (cusparseSpMatDescr_t matrix, void* row_pointers, void* column_indices, void* values)) {
  matrix->csr.pointers = row_pointers;
  matrix->csr.indices = column_indices;
  matrix->csr.values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
CALL(cusparseSpMatGetSize,
     (cusparseSpMatDescr_t matrix, int64_t* rows, int64_t* columns, int64_t* entries)) {
  *rows = matrix->csr.rows;
  *columns = matrix->csr.columns;
  *entries = matrix->csr.entries;
  return CUSPARSE_STATUS_SUCCESS;
}
CALL(cusparseDestroySpMat, (cusparseSpMatDescr_t matrix)) {
  free(matrix);
  return CUSPARSE_STATUS_SUCCESS;
}
CALL(cusparseCreateDnMat, (cusparseDnMatDescr_t * matrix, int64_t rows, int64_t columns,
                           int64_t step, void* values, int type, int order)) {
  *matrix = calloc(1, sizeof **matrix);
  **matrix = (struct cusparseDnMatDescr){rows, columns, step, values, type, order};
  return order == CUSPARSE_ORDER_ROW && step == columns ? CUSPARSE_STATUS_SUCCESS : INVALID_VALUE;
}
CALL(cusparseDestroyDnMat, (cusparseDnMatDescr_t matrix)) {
  free(matrix);
  return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t run(cusparseHandle_t handle, emulated_sparse_args args) {
  size_t size = sizeof args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  const CUresult result =
      cuLaunchKernel(handle->function, 1, 1, 1, 1, 1, 1, 0, handle->stream, NULL, extra);
  return result ? EXECUTION_FAILED : CUSPARSE_STATUS_SUCCESS;
}

CALL(cusparseSpMM_bufferSize, (RN_CUSPARSE_SPMM_ARGS, size_t* size)) {
  (void)handle, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)beta, (void)c;
  (void)compute, (void)algorithm;
  *size = BUFFER_SIZE;
  return CUSPARSE_STATUS_SUCCESS;
}
CALL(cusparseSpMM, (RN_CUSPARSE_SPMM_ARGS, void* buffer)) {
  (void)alpha, (void)beta, (void)algorithm;
  if (op_a || op_b || !buffer || a->csr.columns != b->rows || a->csr.rows != c->rows ||
      b->columns != c->columns || a->type != compute || b->type != compute || c->type != compute ||
      a->csr.entries < 1)
    return INVALID_VALUE;
  return run(
      handle,
      (emulated_sparse_args){
          .type = compute, .a = a->csr, .dense = b->values, .out = c->values, .n = b->columns});
}

CALL(cusparseSpGEMM_createDescr, (cusparseSpGEMMDescr_t * product)) {
  *product = calloc(1, sizeof **product);
  return CUSPARSE_STATUS_SUCCESS;
}
CALL(cusparseSpGEMM_destroyDescr, (cusparseSpGEMMDescr_t product)) {
  free(product);
  return CUSPARSE_STATUS_SUCCESS;
}

static bool is_good(int op_a, int op_b, cusparseSpMatDescr_t a, cusparseSpMatDescr_t b,
                    cusparseSpMatDescr_t c, int compute) {
  return !op_a && !op_b && a->csr.columns == b->csr.rows && a->csr.rows == c->csr.rows &&
         b->csr.columns == c->csr.columns && a->type == compute && b->type == compute &&
         c->type == compute && a->csr.entries > 0 && b->csr.entries > 0;
}

CALL(cusparseSpGEMM_workEstimation, (RN_CUSPARSE_SPGEMM_ARGS, size_t* size, void* buffer)) {
  (void)handle, (void)alpha, (void)beta, (void)algorithm;
  if (!is_good(op_a, op_b, a, b, c, compute)) return INVALID_VALUE;
  if (!buffer) {
    *size = BUFFER_SIZE;
    return CUSPARSE_STATUS_SUCCESS;
  }
  product->buffers = buffer;
  product->steps = 1;
  return *size == BUFFER_SIZE ? CUSPARSE_STATUS_SUCCESS : INVALID_VALUE;
}

// Counts the entries of the product; its pointers go to the buffer.
CALL(cusparseSpGEMM_compute, (RN_CUSPARSE_SPGEMM_ARGS, size_t* size, void* buffer)) {
  (void)alpha, (void)beta, (void)algorithm;
  const size_t wanted = (size_t)(a->csr.rows + 1) * sizeof(i32);
  if (!is_good(op_a, op_b, a, b, c, compute) || product->steps != 1) return INVALID_VALUE;
  if (!buffer) {
    *size = wanted;
    return CUSPARSE_STATUS_SUCCESS;
  }
  i32 entries = 0;
  if (*size != wanted) return INVALID_VALUE;
  cusparseStatus_t status =
      run(handle,
          (emulated_sparse_args){.type = compute, .a = a->csr, .b = b->csr, .pointers = buffer});
  if (cuMemcpyDtoHAsync_v2(&entries, (CUdeviceptr)((i32*)buffer + a->csr.rows), sizeof entries,
                           handle->stream) ||
      cuStreamSynchronize(handle->stream))
    return EXECUTION_FAILED;
  c->csr.entries = entries;
  product->steps = 2;
  return status;
}

CALL(cusparseSpGEMM_copy, (RN_CUSPARSE_SPGEMM_ARGS)) {
  (void)alpha, (void)beta, (void)algorithm;
  if (!is_good(op_a, op_b, a, b, c, compute) || product->steps != 2) return INVALID_VALUE;
  return run(handle, (emulated_sparse_args){.type = compute,
                                            .a = a->csr,
                                            .b = b->csr,
                                            .pointers = c->csr.pointers,
                                            .indices = c->csr.indices,
                                            .values = c->csr.values});
}
