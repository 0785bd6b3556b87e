// Arguments of linalg/decompose.cu.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_DECOMPOSE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_LINALG_DECOMPOSE_ARGS_H_

#define RN_DECOMPOSE_SWEEPS 40  // at most; about 10 are needed

// A stack of m x n matrices, one after the other. A block takes one after the other, with |scratch|
// numbers of its own (double or complex128).
struct decompose_args {
  const void* a;
  void* outs[3];  // Qr: q, r; eigenvalues, vectors; singular values, u, v. NULL: not wanted
  void* scratch;
  i64 scratch_size;
  i64 m, n, stack;
  i32 is_full;
  i32* has_failed;  // set to 1 if a matrix has numbers that are not finite
};

// One round of rotations of large matrices, whose scratch other kernels filled before.
struct round_args {
  void* scratch;
  i64 scratch_size;
  i64 m, n, stack;
  i64 round;
  i32* moves;  // set to 1 if anything was rotated
  i32 wants_vectors;
};

#endif  // RUNNEL_KERNELS_CUDA_LINALG_DECOMPOSE_ARGS_H_
