// Products of CSR matrices by cuSPARSE.
//
// Buffers come from the kernel's memory: RESOURCE_EXHAUSTED if there is none. Any thread may call.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUSPARSE_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUSPARSE_H_

#include "kernels/cuda/launch.h"

typedef struct rn_cusparse_t rn_cusparse_t;

// The cuSPARSE of the kernel's card, opened at the first call. NULL if the machine has none: the
// log says once what is missing.
RN_MUST_USE rn_status_t rn_cusparse_get(const rn_kernel_ctx_t* ctx, rn_cusparse_t** out);

// One matrix on the card, of float, double, complex64 or complex128. Borrowed.
typedef struct rn_cusparse_matrix_t {
  rn_dtype_t dtype;
  int64_t height, width, entries;
  const int32_t *rows, *columns;
  const void* values;
} rn_cusparse_matrix_t;

// Issues |out| = A B of dense matrices by rows, with |n| columns. A has entries. Which sums come
// first depends on the library.
RN_MUST_USE rn_status_t rn_cusparse_multiply(rn_kernel_ctx_t* ctx, rn_cusparse_t* sparse,
                                             const rn_cusparse_matrix_t* a, const void* b,
                                             int64_t n, void* out);

// A product of two CSR matrices that have entries.
typedef struct rn_cusparse_product_t {
  int64_t entries;  // of the result
  struct cusparseSpMatDescr* matrices[3];
  struct cusparseSpGEMMDescr* product;
  rn_tensor_t buffers[2];
  rn_dtype_t dtype;
} rn_cusparse_product_t;
// Computes the product and fills |rows|, the pointers of the result. The caller clears |out|, even
// after a failure.
RN_MUST_USE rn_status_t rn_cusparse_product_begin(rn_kernel_ctx_t* ctx, rn_cusparse_t* sparse,
                                                  const rn_cusparse_matrix_t* a,
                                                  const rn_cusparse_matrix_t* b, int32_t* rows,
                                                  rn_cusparse_product_t* out);
// Issues the copy of its entries.
RN_MUST_USE rn_status_t rn_cusparse_product_finish(rn_cusparse_t* sparse,
                                                   rn_cusparse_product_t* product, int32_t* rows,
                                                   int32_t* columns, void* values);
void rn_cusparse_product_clear(rn_cusparse_t* sparse, rn_cusparse_product_t* product);

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUSPARSE_H_
