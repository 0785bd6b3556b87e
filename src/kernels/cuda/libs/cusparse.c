// Products of CSR matrices by cuSPARSE: see cusparse.h.
#include "kernels/cuda/libs/cusparse.h"

#include "base/log.h"
#include "kernels/cuda/libs/cusparse_api.h"
#include "kernels/cuda/libs/data_types.h"

typedef struct cusparse_table_t {
  void* library;
  RN_CUSPARSE_CALLS(RN_CUDA_POINTER)
} cusparse_table_t;

struct rn_cusparse_t {
  cusparse_table_t api;
  rn_status_t missing;      // why there is no handle, until the log has said so
  rn_cuda_card_t* card;     // which keeps this
  cusparseHandle_t handle;  // NULL if cuSPARSE is missing
  rn_mutex_t mutex;         // guards the handle from its stream to its work being issued
};

static rn_status_t check(const rn_cusparse_t* sparse, cusparseStatus_t result, const char* call) {
  if (result == CUSPARSE_STATUS_SUCCESS) return RN_OK;
  const char* name = sparse->card->name;
  if (result == CUSPARSE_STATUS_ALLOC_FAILED || result == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
    return rn_resource_exhausted("%s: no memory on GPU %d (%s)", call, sparse->card->ordinal, name);
  return rn_internal("%s: error %d on GPU %d (%s)", call, result, sparse->card->ordinal, name);
}
#define SPARSE(sparse, call, ...) check((sparse), (sparse)->api.call(__VA_ARGS__), #call)

static void destroy(rn_cuda_card_t* card, void* state) {
  (void)card;
  rn_cusparse_t* sparse = state;
  if (sparse->handle) sparse->api.cusparseDestroy(sparse->handle);
  rn_status_free(sparse->missing);
  rn_cuda_library_close(sparse->api.library);
  rn_mutex_destroy(&sparse->mutex);
  RN_FREE(rn_allocator_system(), sparse);
}

static rn_status_t open_library(rn_cusparse_t* sparse) {
  static const char* const files[] = {RN_CUSPARSE_FILES};
  static const char* const names[] = {RN_CUSPARSE_CALLS(RN_CUDA_NAME)};
  RN_RETURN_IF_ERROR(
      rn_cuda_card_library(sparse->card, files, names, sizeof names / sizeof *names, &sparse->api));
  rn_status_t status = SPARSE(sparse, cusparseCreate, &sparse->handle);
  if (!rn_ok(status)) sparse->handle = NULL;
  return status;
}

static rn_status_t create(rn_cuda_card_t* card, void** out) {
  rn_cusparse_t* sparse = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &sparse));
  sparse->card = card;
  rn_mutex_init(&sparse->mutex);
  sparse->missing = open_library(sparse);
  *out = sparse;
  return RN_OK;
}

rn_status_t rn_cusparse_get(const rn_kernel_ctx_t* ctx, rn_cusparse_t** out) {
  rn_cusparse_t* sparse = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_keep(rn_cuda_card(ctx), create, destroy, (void**)&sparse));
  if (sparse->handle) {
    *out = sparse;
    return RN_OK;
  }
  rn_mutex_lock(&sparse->mutex);
  rn_status_t missing = sparse->missing;
  sparse->missing = RN_OK;
  rn_mutex_unlock(&sparse->mutex);
  if (!rn_ok(missing))
    rn_log(ctx->step->env, RN_LOG_WARNING, "CSR matrices are multiplied without cuSPARSE: %s",
           rn_status_message(missing));
  rn_status_free(missing);
  return RN_OK;
}

// 1 and 0 in each type: numbers of the widest begin with those of the others.
static const void* one_of(rn_dtype_t dtype) {
  static const float narrow[2] = {1, 0};
  static const double wide[2] = {1, 0};
  return dtype == RN_FLOAT || dtype == RN_COMPLEX64 ? (const void*)narrow : (const void*)wide;
}
static const double zero[2];

static rn_status_t begin(rn_cusparse_t* sparse) {
  RN_RETURN_IF_ERROR(rn_cuda_enter(sparse->card));
  rn_mutex_lock(&sparse->mutex);
  rn_status_t status =
      SPARSE(sparse, cusparseSetStream, sparse->handle, rn_cuda_stream(sparse->card));
  if (!rn_ok(status)) rn_mutex_unlock(&sparse->mutex);
  return status;
}

static rn_status_t describe(const rn_cusparse_t* sparse, const rn_cusparse_matrix_t* m,
                            cusparseSpMatDescr_t* out) {
  return SPARSE(sparse, cusparseCreateCsr, out, m->height, m->width, m->entries, (void*)m->rows,
                (void*)m->columns, (void*)m->values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                CUSPARSE_INDEX_BASE_ZERO, rn_cuda_data_type(m->dtype));
}

static rn_status_t make_buffer(rn_kernel_ctx_t* ctx, size_t size, rn_tensor_t* out) {
  const int64_t count = size ? (int64_t)size : 1;
  return rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &count}, out);
}

static rn_status_t multiply_locked(rn_kernel_ctx_t* ctx, const rn_cusparse_t* sparse,
                                   cusparseSpMatDescr_t a, cusparseDnMatDescr_t b,
                                   cusparseDnMatDescr_t c, rn_dtype_t dtype) {
  const int none = CUSPARSE_OPERATION_NON_TRANSPOSE, type = rn_cuda_data_type(dtype);
  size_t size = 0;
  rn_tensor_t buffer = {0};
  RN_RETURN_IF_ERROR(SPARSE(sparse, cusparseSpMM_bufferSize, sparse->handle, none, none,
                            one_of(dtype), a, b, zero, c, type, CUSPARSE_SPMM_CSR_ALG2, &size));
  RN_RETURN_IF_ERROR(make_buffer(ctx, size, &buffer));
  rn_status_t status = SPARSE(sparse, cusparseSpMM, sparse->handle, none, none, one_of(dtype), a, b,
                              zero, c, type, CUSPARSE_SPMM_CSR_ALG2, buffer.data);
  rn_tensor_clear(&buffer);
  return status;
}

rn_status_t rn_cusparse_multiply(rn_kernel_ctx_t* ctx, rn_cusparse_t* sparse,
                                 const rn_cusparse_matrix_t* a, const void* b, int64_t n,
                                 void* out) {
  const int type = rn_cuda_data_type(a->dtype);
  cusparseSpMatDescr_t left = NULL;
  cusparseDnMatDescr_t dense[2] = {NULL};
  RN_RETURN_IF_ERROR(begin(sparse));
  rn_status_t status = describe(sparse, a, &left);
  if (rn_ok(status))
    status = SPARSE(sparse, cusparseCreateDnMat, &dense[0], a->width, n, n, (void*)b, type,
                    CUSPARSE_ORDER_ROW);
  if (rn_ok(status))
    status = SPARSE(sparse, cusparseCreateDnMat, &dense[1], a->height, n, n, out, type,
                    CUSPARSE_ORDER_ROW);
  if (rn_ok(status)) status = multiply_locked(ctx, sparse, left, dense[0], dense[1], a->dtype);
  for (int i = 0; i < 2; ++i)
    if (dense[i]) sparse->api.cusparseDestroyDnMat(dense[i]);
  if (left) sparse->api.cusparseDestroySpMat(left);
  rn_mutex_unlock(&sparse->mutex);
  return status;
}

// Calls a step of a product twice: it asks for a buffer, then uses it.
#define STEP(function, buffer)                                                               \
  SPARSE(sparse, function, sparse->handle, none, none, one_of(out->dtype), out->matrices[0], \
         out->matrices[1], zero, out->matrices[2], rn_cuda_data_type(out->dtype),            \
         CUSPARSE_SPGEMM_DEFAULT, out->product, &size, buffer)

static rn_status_t product_locked(rn_kernel_ctx_t* ctx, const rn_cusparse_t* sparse,
                                  rn_cusparse_product_t* out) {
  const int none = CUSPARSE_OPERATION_NON_TRANSPOSE;
  size_t size = 0;
  int64_t height, width;
  RN_RETURN_IF_ERROR(SPARSE(sparse, cusparseSpGEMM_createDescr, &out->product));
  RN_RETURN_IF_ERROR(STEP(cusparseSpGEMM_workEstimation, NULL));
  RN_RETURN_IF_ERROR(make_buffer(ctx, size, &out->buffers[0]));
  RN_RETURN_IF_ERROR(STEP(cusparseSpGEMM_workEstimation, out->buffers[0].data));
  size = 0;
  RN_RETURN_IF_ERROR(STEP(cusparseSpGEMM_compute, NULL));
  RN_RETURN_IF_ERROR(make_buffer(ctx, size, &out->buffers[1]));
  RN_RETURN_IF_ERROR(STEP(cusparseSpGEMM_compute, out->buffers[1].data));
  return SPARSE(sparse, cusparseSpMatGetSize, out->matrices[2], &height, &width, &out->entries);
}

rn_status_t rn_cusparse_product_begin(rn_kernel_ctx_t* ctx, rn_cusparse_t* sparse,
                                      const rn_cusparse_matrix_t* a, const rn_cusparse_matrix_t* b,
                                      int32_t* rows, rn_cusparse_product_t* out) {
  const rn_cusparse_matrix_t result = {
      .dtype = a->dtype, .height = a->height, .width = b->width, .rows = rows};
  const rn_cusparse_matrix_t* const all[3] = {a, b, &result};
  *out = (rn_cusparse_product_t){.dtype = a->dtype};
  RN_RETURN_IF_ERROR(begin(sparse));
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < 3; ++i) status = describe(sparse, all[i], &out->matrices[i]);
  if (rn_ok(status)) status = product_locked(ctx, sparse, out);
  rn_mutex_unlock(&sparse->mutex);
  return status;
}

rn_status_t rn_cusparse_product_finish(rn_cusparse_t* sparse, rn_cusparse_product_t* product,
                                       int32_t* rows, int32_t* columns, void* values) {
  const int none = CUSPARSE_OPERATION_NON_TRANSPOSE;
  RN_RETURN_IF_ERROR(begin(sparse));
  rn_status_t status =
      SPARSE(sparse, cusparseCsrSetPointers, product->matrices[2], rows, columns, values);
  if (rn_ok(status))
    status = SPARSE(sparse, cusparseSpGEMM_copy, sparse->handle, none, none, one_of(product->dtype),
                    product->matrices[0], product->matrices[1], zero, product->matrices[2],
                    rn_cuda_data_type(product->dtype), CUSPARSE_SPGEMM_DEFAULT, product->product);
  rn_mutex_unlock(&sparse->mutex);
  return status;
}

void rn_cusparse_product_clear(rn_cusparse_t* sparse, rn_cusparse_product_t* product) {
  if (product->product) sparse->api.cusparseSpGEMM_destroyDescr(product->product);
  for (int i = 0; i < 3; ++i)
    if (product->matrices[i]) sparse->api.cusparseDestroySpMat(product->matrices[i]);
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&product->buffers[i]);
  *product = (rn_cusparse_product_t){.entries = 0};
}
