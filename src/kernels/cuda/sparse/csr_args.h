// Arguments of the kernels of csr.cu. |starts| are where the entries of each matrix begin.
#ifndef RUNNEL_KERNELS_CUDA_SPARSE_CSR_ARGS_H_
#define RUNNEL_KERNELS_CUDA_SPARSE_CSR_ARGS_H_

#include "kernels/cuda/state/rows_args.h"

#define RN_CSR_THREADS 256

// Counts the entries of each row, in the place behind it, and takes their columns.
typedef struct rn_cuda_csr_count_args {
  const i64* indices;  // |rank| per entry
  i64 entries, count, height, width;
  i32 rank;
  i32* rows;     // zeros
  i32* columns;  // of entries
  i32* is_bad;  // set to 1 if an index is out of bounds, or of a matrix before that of the last one
} rn_cuda_csr_count_args;

// Turns counts into pointers. One block per matrix.
typedef struct rn_cuda_csr_sum_args {
  i32* rows;
  i32* totals;  // per matrix; NULL: not wanted
  i64 count, height;
} rn_cuda_csr_sum_args;

// Matrices of a batch.
typedef struct rn_cuda_csr_matrices {
  const i32 *starts, *rows, *columns;
  const void* values;
  i64 count, height, width;
} rn_cuda_csr_matrices;

// values[i] = dense[indices[i]].
typedef struct rn_cuda_csr_take_args {
  const void* dense;
  const i64* indices;
  void* values;
  i64 entries;
  i64 sizes[3];
  i32 rank;
} rn_cuda_csr_take_args;

typedef struct rn_cuda_csr_dense_args {
  rn_cuda_csr_matrices in;
  void* out;  // zeros
} rn_cuda_csr_dense_args;

typedef struct rn_cuda_csr_indices_args {
  rn_cuda_csr_matrices in;
  i64* out;  // |rank| per entry
  i32 rank;
} rn_cuda_csr_indices_args;

// Steps in elements between matrices, rows and columns of B and of the result, which has |n|
// columns.
typedef struct rn_cuda_csr_matmul_args {
  rn_cuda_csr_matrices a;
  const void* b;
  void* out;
  i64 n;
  i64 b_steps[3], out_steps[3];
  i32 conjugates_b, conjugates_out;
} rn_cuda_csr_matmul_args;

// The row of each entry, and the row of the transposed batch that it goes to.
typedef struct rn_cuda_csr_turn_args {
  rn_cuda_csr_matrices in;
  i32* rows;
  i64* keys;
} rn_cuda_csr_turn_args;

// Entries of the transposes, from those sorted by key.
typedef struct rn_cuda_csr_place_args {
  struct rn_rows_args sorted;
  const i32* from_rows;
  const void* from_values;
  i32* rows;  // zeros; counts as in rn_cuda_csr_count_args
  i32* columns;
  void* values;
  i64 height;  // of the transposes
  i32 conjugates;
} rn_cuda_csr_place_args;

// values = those of |in| times a factor, one for all (|step| 0) or per matrix.
typedef struct rn_cuda_csr_scale_args {
  rn_cuda_csr_matrices in;
  const void* factors;
  void* values;
  i64 step;
} rn_cuda_csr_scale_args;

// Softmax of each row of |in|, or, of |in| that is one, the gradient for |grad|.
typedef struct rn_cuda_csr_softmax_args {
  rn_cuda_csr_matrices in, grad;
  void* values;
} rn_cuda_csr_softmax_args;

// alpha A + beta B. A row has the entries of A, then those of B in other columns.
typedef struct rn_cuda_csr_add_args {
  rn_cuda_csr_matrices a, b;
  const void *alpha, *beta;
  i32* rows;  // counts as in rn_cuda_csr_count_args, then pointers
  const i32* starts;
  i32* columns;
  void* values;
} rn_cuda_csr_add_args;

#endif  // RUNNEL_KERNELS_CUDA_SPARSE_CSR_ARGS_H_
