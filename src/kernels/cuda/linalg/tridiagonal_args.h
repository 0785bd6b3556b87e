// Arguments of linalg/tridiagonal.cu.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_TRIDIAGONAL_ARGS_H_
#define RUNNEL_KERNELS_CUDA_LINALG_TRIDIAGONAL_ARGS_H_

// X := A^-1 B, one block per matrix.
struct tridiagonal_solve_args {
  const void* a;  // 3 x n per matrix: above the diagonal, the diagonal, below it
  const void* b;  // n x columns, and so is |x|
  void* x;
  void* u;  // scratch of 3 n per matrix: the rows of the upper factor
  i64 n, columns, stack;
  i32 pivots, perturbs;
  double epsilon, least;  // of the type
};

// Y := A X.
struct tridiagonal_multiply_args {
  const void* a[3];  // n each per matrix: above the diagonal, the diagonal, below it
  const void* x;
  void* y;
  i64 n, columns, stack;
};

#endif  // RUNNEL_KERNELS_CUDA_LINALG_TRIDIAGONAL_ARGS_H_
