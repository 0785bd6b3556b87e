// Arguments of the kernels of dense.cu.
#ifndef RUNNEL_KERNELS_CUDA_SPARSE_DENSE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_SPARSE_DENSE_ARGS_H_

#include "kernels/cuda/state/rows_args.h"

// |rows| are the rows of the output that values of the sparse matrix belong to, in their order.
typedef struct rn_cuda_sparse_matmul_args {
  struct rn_rows_args rows;
  const void *indices, *values, *b;
  void* out;
  i64 n, k;
  i32 index_size;
  i32 adjoint_a, adjoint_b;
} rn_cuda_sparse_matmul_args;

typedef struct rn_cuda_to_dense_args {
  struct rn_rows_args rows;  // elements of the output
  const void* values;
  void* out;
  i32 is_scalar;  // one value for all
} rn_cuda_to_dense_args;

#endif  // RUNNEL_KERNELS_CUDA_SPARSE_DENSE_ARGS_H_
