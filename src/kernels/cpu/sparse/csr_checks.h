// The first half of kernels of CSR matrices, shared with other devices: checks of shapes and types,
// with stock's messages. Entries are not read.
#ifndef RUNNEL_KERNELS_CPU_SPARSE_CSR_CHECKS_H_
#define RUNNEL_KERNELS_CPU_SPARSE_CSR_CHECKS_H_

#include "kernels/cpu/sparse/csr.h"

// DenseToCSRSparseMatrix.
RN_MUST_USE rn_status_t rn_csr_check_dense(const rn_tensor_t* dense, const rn_tensor_t* indices);
// Where index |i|, the numbers at |at|, is in |dense|.
RN_MUST_USE rn_status_t rn_csr_find_element(const rn_kernel_ctx_t* ctx, const rn_tensor_t* dense,
                                            int64_t i, const int64_t* at, int64_t* out);
// Whether index |i| is of no matrix before |last|, and its column fits into an int32.
RN_MUST_USE rn_status_t rn_csr_check_entry(int64_t i, const int64_t* at, int rank, int64_t last);
// CSRSparseMatrixToDense: makes the output.
RN_MUST_USE rn_status_t rn_csr_dense_output(rn_kernel_ctx_t* ctx, const rn_csr_t* csr,
                                            rn_tensor_t** out);
// CSRSparseMatrixToSparseTensor.
RN_MUST_USE rn_status_t rn_csr_check_sparse_type(const rn_kernel_ctx_t* ctx, const rn_csr_t* csr);
// CSRSparseMatrixComponents, of a matrix of any device.
RN_MUST_USE rn_status_t rn_csr_output_components(rn_kernel_ctx_t* ctx, const rn_csr_t* csr);
// SparseMatrixNNZ, from what the host knows of a matrix of any device.
RN_MUST_USE rn_status_t rn_csr_output_counts(rn_kernel_ctx_t* ctx, const rn_csr_t* csr);

// SparseMatrixTranspose: the state.
typedef struct rn_csr_transpose_t {
  bool conjugates;
  rn_dtype_t dtype;
} rn_csr_transpose_t;
RN_MUST_USE rn_status_t rn_csr_transpose_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_csr_check_transpose(const rn_kernel_ctx_t* ctx, const rn_csr_t* in);

// Products: the state.
typedef struct rn_csr_product_t {
  bool transpose_a, transpose_b, conjugate_a, conjugate_b, transpose_output, conjugate_output;
  rn_dtype_t dtype;  // of products of two CSR matrices
} rn_csr_product_t;
// SparseMatrixMatMul.
RN_MUST_USE rn_status_t rn_csr_matmul_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_csr_check_matmul(const rn_csr_product_t* s, const rn_csr_t* a,
                                            const rn_tensor_t* b);
// Makes the output; |*out_n| is the number of columns of op(B).
RN_MUST_USE rn_status_t rn_csr_matmul_output(rn_kernel_ctx_t* ctx, int64_t height,
                                             const rn_tensor_t* b, int64_t* out_n,
                                             rn_tensor_t** out);

// SparseMatrixSparseMatMul.
RN_MUST_USE rn_status_t rn_csr_sparse_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_csr_check_sparse(const rn_csr_product_t* s, const rn_csr_t* a,
                                            const rn_csr_t* b);
// Makes output 0 the product of matrices in the host's memory.
RN_MUST_USE rn_status_t rn_csr_multiply_sparse(rn_kernel_ctx_t* ctx, const rn_csr_t* a,
                                               const rn_csr_t* b);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_CSR_CHECKS_H_
