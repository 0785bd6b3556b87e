// Arguments of linalg/solve.cu.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_SOLVE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_LINALG_SOLVE_ARGS_H_

#define RN_SOLVE_COLUMNS 32  // of the right-hand side per block

// A stack of matrices: |row| elements between rows, |stride| between matrices.

// One block per matrix. Factors the lower triangle of |l| in place.
struct cholesky_args {
  const void* a;  // NULL, or dense matrices that are copied to |l| first, zeros above the diagonal
  void* l;
  i32* has_failed;  // set to 1, per matrix, if it is not positive definite. NULL: NaN instead
  i64 n, row, stride;
};

// Zeros above the diagonal, and NaN below it where a matrix has failed. Dense matrices.
struct finish_cholesky_args {
  void* l;
  const i32* has_failed;
  i64 n, stack;
};

// Copies dense square matrices, or their adjoints.
struct copy_args {
  const void* from;  // NULL: identities
  void* to;
  i64 n, stack;
  i32 is_adjoint;
};

// One block per matrix. Factors the |columns| of |lu| from its diagonal element |first| on, in
// place: L without its unit diagonal, and U. Rows are exchanged within these columns only.
struct factor_args {
  void* lu;          // n x n
  i32* pivots;       // n per matrix: the row that was exchanged with row k
  i32* is_singular;  // set to 1 if any pivot is 0
  i64 n, first, columns;
};

// Exchanges rows of X as the pivots [first, last) say, in columns outside of [skip, skip_end).
// blockIdx.y is the matrix in pieces of 65535, blockIdx.x counts columns.
struct exchange_args {
  void* x;
  const i32* pivots;
  i64 n, stack, columns;
  i64 first, last, skip, skip_end;
};

// The permutation that the exchanges of rows come to: row i of P A is row out[i] of A.
struct permutation_args {
  const i32* pivots;
  void* out;  // n int32 or int64 per matrix
  i64 n, stack;
};

struct determinant_args {
  const void* lu;
  const i32* pivots;
  void* out;   // the determinant, or its sign
  void* logs;  // NULL, or the logarithm of its size, as a number of the same type
  i64 n, stack;
};

// X := A^-1 B for triangles A. blockIdx.x is the matrix, blockIdx.y counts pieces of columns.
struct solve_args {
  const void* a;
  const void* b;  // NULL: the identity
  void* x;        // dense; so is |b|
  i64 n, columns, pieces;
  i64 a_row;
  i64 a_stride, b_stride, x_stride;
  i32 is_lower, is_adjoint;  // as stored
  i32 has_unit_diagonal;
};

#endif  // RUNNEL_KERNELS_CUDA_LINALG_SOLVE_ARGS_H_
