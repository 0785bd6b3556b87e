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
// <0, 0, >0: the order of the first |rank| numbers of two indices.
int rn_sparse_compare(const int64_t* a, const int64_t* b, int32_t rank);
static inline char* rn_element(const rn_tensor_t* tensor, int64_t i) {
  return (char*)tensor->data + (size_t)i * rn_dtype_size(tensor->dtype);
}

// Numbers, with |between| between them, cut when they are many; for messages.
typedef struct rn_numbers_text_t {
  char text[256];
} rn_numbers_text_t;
rn_numbers_text_t rn_numbers_text(const int64_t* numbers, int32_t count, const char* between);

// Stock has several checks of a sparse tensor's parts, each with words of its own. All answer
// INVALID_ARGUMENT.

// The parts as they are, after a check that they fit together.
RN_MUST_USE rn_status_t rn_sparse_take(const rn_tensor_t* indices, const rn_tensor_t* values,
                                       const rn_tensor_t* shape, rn_sparse_t* out);
// "Input indices should be a matrix ...": the ranks of the parts alone.
RN_MUST_USE rn_status_t rn_sparse_check_ranks(const rn_tensor_t* indices, const rn_tensor_t* values,
                                              const rn_tensor_t* shape);
// "indices must be a matrix ...": the sparse tensor in inputs |first| (indices), |first| + 1,
// |first| + 2. Indices may still be anything.
RN_MUST_USE rn_status_t rn_sparse_read(rn_kernel_ctx_t* ctx, int first, rn_sparse_t* out);
// "Sparse indices must be rank 2 ...": the same with stock's newer words.
RN_MUST_USE rn_status_t rn_sparse_read_parts(rn_kernel_ctx_t* ctx, int first, rn_sparse_t* out);
// "Input NAME_indices should be a matrix ...": the ranks of the parts that op calls NAME_indices,
// NAME_values and NAME_shape.
RN_MUST_USE rn_status_t rn_sparse_check_named(rn_kernel_ctx_t* ctx, int first, const char* name);
// The sizes in |shape|: none negative, and their product fits.
RN_MUST_USE rn_status_t rn_sparse_check_sizes(const rn_tensor_t* shape);
// A vector of sizes, as above, and axes of a reduction that are among them.
RN_MUST_USE rn_status_t rn_sparse_check_reduced(const rn_tensor_t* shape, const rn_tensor_t* axes);
// Every index lies within the sizes and comes after the one before.
RN_MUST_USE rn_status_t rn_sparse_check(const rn_sparse_t* sparse);
// Every index lies within the sizes: "Sparse index tuple ...".
RN_MUST_USE rn_status_t rn_sparse_check_bounds(const rn_sparse_t* sparse);
// Outputs |first| to |first| + 2: indices and values to be filled, sizes filled from |shape|.
RN_MUST_USE rn_status_t rn_sparse_output(rn_kernel_ctx_t* ctx, int first, int64_t count,
                                         int32_t rank, const int64_t* shape, int64_t** out_indices,
                                         rn_tensor_t** out_values);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_SPARSE_H_
