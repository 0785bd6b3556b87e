// A sparse tensor among a kernel's inputs: indices [count, rank], values [count], sizes [rank].
#ifndef RUNNEL_KERNELS_CPU_SPARSE_SPARSE_H_
#define RUNNEL_KERNELS_CPU_SPARSE_SPARSE_H_

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
// Compares the first |rank| numbers of two indices: <0, 0, >0.
int rn_sparse_compare(const int64_t* a, const int64_t* b, int32_t rank);
static inline char* rn_element(const rn_tensor_t* tensor, int64_t i) {
  return (char*)tensor->data + (size_t)i * rn_dtype_size(tensor->dtype);
}

// Numbers separated by |between|, truncated if there are many; for messages.
typedef struct rn_numbers_text_t {
  char text[256];
} rn_numbers_text_t;
rn_numbers_text_t rn_numbers_text(const int64_t* numbers, int32_t count, const char* between);

// Stock has several checks of a sparse tensor's parts, each with its own message. All return
// INVALID_ARGUMENT.

// The parts unchanged, after checking that they fit together.
RN_MUST_USE rn_status_t rn_sparse_take(const rn_tensor_t* indices, const rn_tensor_t* values,
                                       const rn_tensor_t* shape, rn_sparse_t* out);
// "Input indices should be a matrix ...": checks only the ranks of the parts.
RN_MUST_USE rn_status_t rn_sparse_check_ranks(const rn_tensor_t* indices, const rn_tensor_t* values,
                                              const rn_tensor_t* shape);
// "indices must be a matrix ...": the sparse tensor in inputs |first| (indices), |first| + 1,
// |first| + 2. Does not check the values of the indices.
RN_MUST_USE rn_status_t rn_sparse_read(rn_kernel_ctx_t* ctx, int first, rn_sparse_t* out);
// "Sparse indices must be rank 2 ...": the same with stock's newer messages.
RN_MUST_USE rn_status_t rn_sparse_read_parts(rn_kernel_ctx_t* ctx, int first, rn_sparse_t* out);
// "Input NAME_indices should be a matrix ...": checks the ranks of the inputs NAME_indices,
// NAME_values and NAME_shape.
RN_MUST_USE rn_status_t rn_sparse_check_named(rn_kernel_ctx_t* ctx, int first, const char* name);
// Checks the sizes in |shape|: none is negative, and the product does not overflow.
RN_MUST_USE rn_status_t rn_sparse_check_sizes(const rn_tensor_t* shape);
// Checks a vector of sizes as above, and that the axes of a reduction are valid for it.
RN_MUST_USE rn_status_t rn_sparse_check_reduced(const rn_tensor_t* shape, const rn_tensor_t* axes);
// Checks that every index is within the sizes and after the previous one.
RN_MUST_USE rn_status_t rn_sparse_check(const rn_sparse_t* sparse);
// Checks that every index is within the sizes: "Sparse index tuple ...".
RN_MUST_USE rn_status_t rn_sparse_check_bounds(const rn_sparse_t* sparse);
// Allocates outputs |first| to |first| + 2: indices and values uninitialized, sizes from |shape|.
RN_MUST_USE rn_status_t rn_sparse_output(rn_kernel_ctx_t* ctx, int first, int64_t count,
                                         int32_t rank, const int64_t* shape, int64_t** out_indices,
                                         rn_tensor_t** out_values);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_SPARSE_H_
