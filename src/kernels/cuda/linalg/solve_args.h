// Arguments of linalg/solve.cu.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_SOLVE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_LINALG_SOLVE_ARGS_H_

#define RN_SOLVE_COLUMNS 32  // of the right-hand side per block

// n x n matrices, one after the other, one block per matrix.
struct cholesky_args {
  const void* a;  // the lower triangle is read
  void* out;      // lower, zeros above; NaN if the matrix is not positive definite
  i64 n;
};

struct factor_args {
  const void* a;
  void* lu;          // L without its unit diagonal, and U
  i32* pivots;       // n per matrix: the row that was exchanged with row k
  i32* is_singular;  // set to 1 if any pivot is 0; may be NULL
  i64 n;
  i32 is_adjoint;  // factors the adjoint
};

struct determinant_args {
  const void* lu;
  const i32* pivots;
  void* out;   // the determinant, or its sign
  void* logs;  // NULL, or the logarithm of its size, as a number of the same type
  i64 n, stack;
};

// X := A^-1 B. blockIdx.x is the matrix, blockIdx.y counts pieces of columns.
struct solve_args {
  const void* a;
  const i32* pivots;  // A is factored; NULL: A is a triangle
  const void* b;      // NULL: the identity
  void* x;
  i64 n, columns, pieces;
  i64 a_stride, b_stride, x_stride;  // between matrices
  i32 is_lower, is_adjoint;          // of a triangle, as stored
};

#endif  // RUNNEL_KERNELS_CUDA_LINALG_SOLVE_ARGS_H_
