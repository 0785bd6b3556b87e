// A sparse tensor among a kernel's inputs: indices [count, rank], values [count], sizes [rank].
//
// For ops whose words in stock are those of its SparseTensor class.
#ifndef RUNNEL_KERNELS_CPU_SPARSE_H_
#define RUNNEL_KERNELS_CPU_SPARSE_H_

#include "framework/kernel.h"

// All borrowed from the inputs.
typedef struct rn_sparse_t {
  const int64_t* indices;
  const rn_tensor_t* values;
  const int64_t* shape;
  int64_t count;
  int32_t rank;
} rn_sparse_t;

static inline const int64_t* rn_sparse_index(const rn_sparse_t* sparse, int64_t i) {
  return sparse->indices + i * sparse->rank;
}
// <0, 0, >0: the order of the first |rank| numbers of two indices.
int rn_sparse_compare(const int64_t* a, const int64_t* b, int32_t rank);
static inline char* rn_element(const rn_tensor_t* tensor, int64_t i) {
  return (char*)tensor->data + (size_t)i * rn_dtype_size(tensor->dtype);
}

// INVALID_ARGUMENT unless the parts are a matrix and two vectors.
RN_MUST_USE rn_status_t rn_sparse_check_ranks(const rn_tensor_t* indices, const rn_tensor_t* values,
                                              const rn_tensor_t* shape);
// The sparse tensor in inputs |first| (indices), |first| + 1, |first| + 2. INVALID_ARGUMENT if its
// parts do not fit together; indices may still be anything.
RN_MUST_USE rn_status_t rn_sparse_read(rn_kernel_ctx_t* ctx, int first, rn_sparse_t* out);
// INVALID_ARGUMENT unless every index lies within the sizes and comes after the one before.
RN_MUST_USE rn_status_t rn_sparse_check(const rn_sparse_t* sparse);
// Outputs |first| to |first| + 2: indices and values to be filled, sizes filled from |shape|.
RN_MUST_USE rn_status_t rn_sparse_output(rn_kernel_ctx_t* ctx, int first, int64_t count,
                                         int32_t rank, const int64_t* shape, int64_t** out_indices,
                                         rn_tensor_t** out_values);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_H_
