// Arguments of math/matmul.cu.
#ifndef RUNNEL_KERNELS_CUDA_MATH_MATMUL_ARGS_H_
#define RUNNEL_KERNELS_CUDA_MATH_MATMUL_ARGS_H_

#define RN_MATMUL_TILE 64      // rows and columns of C per block
#define RN_MATMUL_THREADS 256  // of a block
#define RN_MATMUL_SLICE 16     // of k that a block has in shared memory at a time
#define RN_MATMUL_PITCH 68     // elements between rows of a slice there
#define RN_MATMUL_SHARED (2 * RN_MATMUL_SLICE * RN_MATMUL_PITCH)

// Activations.
#define RN_MATMUL_LINEAR 0
#define RN_MATMUL_RELU 1
#define RN_MATMUL_GELU 2

// C = activation(alpha A B + beta D + bias). Element (i, j) of A is at i * a_row + j * a_column, so
// a transposed matrix is one with its strides exchanged; C has columns of stride 1.
struct matmul_args {
  const void *a, *b;
  void* c;
  const void* d;     // C itself or a matrix laid out like it
  const void* bias;  // n elements, or NULL
  i64 m, n, k, batch;
  i64 a_row, a_column, b_row, b_column, c_row;
  i64 a_stride, b_stride, c_stride;  // between the matrices of a batch
  double alpha, beta;                // D is not read if beta is 0
  i32 conjugate_a, conjugate_b;
  i32 activation;
  i32 tiles;  // per row of tiles
};

#endif  // RUNNEL_KERNELS_CUDA_MATH_MATMUL_ARGS_H_
