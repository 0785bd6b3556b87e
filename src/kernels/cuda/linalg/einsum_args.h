// Arguments of linalg/einsum.cu.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_EINSUM_ARGS_H_
#define RUNNEL_KERNELS_CUDA_LINALG_EINSUM_ARGS_H_

#define RN_EINSUM_RANK 16

// Copies |count| elements; outermost dimension first.
struct einsum_copy_args {
  const void* from;
  void* to;
  i64 count;
  i32 rank, is_wide;  // wide: |count| or a size is 2^31 or more
  i64 sizes[RN_EINSUM_RANK];
  rn_div32 by[RN_EINSUM_RANK];  // the sizes, unless wide
  i64 from_strides[RN_EINSUM_RANK], to_strides[RN_EINSUM_RANK];
};

#endif  // RUNNEL_KERNELS_CUDA_LINALG_EINSUM_ARGS_H_
