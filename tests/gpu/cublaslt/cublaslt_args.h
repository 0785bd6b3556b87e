// Arguments of the kernel in cublaslt.cu.
#ifndef TESTS_GPU_CUBLASLT_CUBLASLT_ARGS_H_
#define TESTS_GPU_CUBLASLT_CUBLASLT_ARGS_H_

// Column-major matrices of floats, in batches.
typedef struct emulated_matrix {
  float* data;
  i64 ld, stride;
  i32 is_transposed;
} emulated_matrix;

typedef struct emulated_product_args {
  emulated_matrix a, b, c, d;
  i64 m, n, k, batch;
  float alpha, beta;
  const float* bias;  // of m; NULL: none
  i32 has_relu;
} emulated_product_args;

#endif  // TESTS_GPU_CUBLASLT_CUBLASLT_ARGS_H_
