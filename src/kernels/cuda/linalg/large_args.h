// Arguments of linalg/large.cu.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_LARGE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_LINALG_LARGE_ARGS_H_

// to[i, j] = from[j, i] for |rows| x |columns| of |to|; |*_row| elements lie between rows.
struct turn_args {
  const void* from;
  void* to;
  i64 rows, columns;
  i64 from_row, to_row;
  i32 conjugates;
  i32 upper_only;  // zeros below the diagonal of |to|
};

// Pivots that count from 1, as ours.
struct pivots_args {
  const i64* from;
  i32* to;
  const i32* info;
  i32* is_singular;  // set to 1 if |info| is not 0
  i64 n;
};

// Real numbers as numbers of the matrix.
struct values_args {
  const void* from;
  void* to;
  const i32* info;
  i32* has_failed;  // set to 1 if |info| is not 0 or a number is not finite
  i64 n;
};

#endif  // RUNNEL_KERNELS_CUDA_LINALG_LARGE_ARGS_H_
