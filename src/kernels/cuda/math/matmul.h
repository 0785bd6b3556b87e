// Matrix products on a GPU, for kernels: C = activation(alpha op(A) op(B) + beta C + bias), with
// another matrix in the place of beta C if wanted; row-major, batched. By cuBLASLt, or by
// math/matmul.cu where that is missing.
#ifndef RUNNEL_KERNELS_CUDA_MATH_MATMUL_H_
#define RUNNEL_KERNELS_CUDA_MATH_MATMUL_H_

#include "kernels/cpu/gemm.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/math/matmul_args.h"

// half and bfloat16 are accumulated in float; int8 gives int32, and C is int32 then. Integers wrap.
typedef struct rn_cuda_matmul_t {
  rn_dtype_t dtype;               // half, bfloat16, float, double, complex, int8, int32, int64
  bool transpose_a, transpose_b;  // A is stored k x m, B is stored n x k
  bool conjugate_a, conjugate_b;  // complex only
  int64_t m, n, k;
  int64_t batch;  // 0 counts as 1
  const void *a, *b;
  void* c;
  int64_t a_row, b_row, c_row;           // elements between stored rows; 0: rows are adjacent
  int64_t a_stride, b_stride, c_stride;  // elements between the matrices of a batch; 0 repeats
  bool is_exact;                         // floats are not rounded to TF32
  double alpha;                          // 0 counts as 1
  double beta;                           // C is not read if it is 0
  const void* addend;                    // NULL, or a matrix laid out like C: added as it is
  // For float types:
  const void* bias;  // NULL, or n elements that are added to every row
  int activation;    // RN_MATMUL_LINEAR, RELU or GELU (by tanh); after the bias
  // NULL, or n elements: receives the sums of op(B) over k, which are the gradient of a bias if B
  // is the gradient of the result. Needs batch 1, adjacent rows of B, and neither bias nor
  // activation.
  void* b_sums;
} rn_cuda_matmul_t;

// The product that |gemm| describes: one, of matrices with adjacent rows.
rn_cuda_matmul_t rn_cuda_matmul_of(const rn_gemm_t* gemm);

RN_MUST_USE rn_status_t rn_cuda_matmul(const rn_kernel_ctx_t* ctx, const rn_cuda_matmul_t* matmul);

#endif  // RUNNEL_KERNELS_CUDA_MATH_MATMUL_H_
