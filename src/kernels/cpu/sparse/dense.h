// The first half of kernels between sparse and dense tensors, shared with other devices: checks of
// shapes and host arguments, not of indices.
#ifndef RUNNEL_KERNELS_CPU_SPARSE_DENSE_H_
#define RUNNEL_KERNELS_CPU_SPARSE_DENSE_H_

#include "framework/kernel.h"

// SparseTensorDenseMatMul: the state, and the sizes of a product of m x k and k x n.
typedef struct rn_sparse_matmul_t {
  bool adjoint_a, adjoint_b;
} rn_sparse_matmul_t;
RN_MUST_USE rn_status_t rn_sparse_matmul_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_sparse_matmul_sizes(rn_kernel_ctx_t* ctx, int64_t* m, int64_t* n,
                                               int64_t* k);

// SparseToDense: |count| values with |rank| coordinates each. The state is a bool: whether indices
// are validated.
typedef struct rn_to_dense_t {
  const rn_tensor_t *indices, *values;
  int64_t count, rank;
} rn_to_dense_t;
RN_MUST_USE rn_status_t rn_to_dense_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_to_dense_read(rn_kernel_ctx_t* ctx, rn_to_dense_t* out);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_DENSE_H_
