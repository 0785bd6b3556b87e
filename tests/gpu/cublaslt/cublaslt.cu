// Matrix products for the emulated cuBLASLt.
#include "prelude.cuh"

#include "cublaslt_args.h"

RN_DEVICE float* at(const emulated_matrix& matrix, i64 z, i64 row, i64 column) {
  const i64 r = matrix.is_transposed ? column : row, c = matrix.is_transposed ? row : column;
  return matrix.data + z * matrix.stride + c * matrix.ld + r;
}

RN_KERNEL(emulated_product, emulated_product_args) {
  RN_EACH(i, args.m * args.n * args.batch) {
    const i64 row = i % args.m, column = i / args.m % args.n, z = i / args.m / args.n;
    double sum = 0;
    for (i64 k = 0; k < args.k; ++k)
      sum += (double)*at(args.a, z, row, k) * (double)*at(args.b, z, k, column);
    sum *= (double)args.alpha;
    if (args.beta != 0) sum += (double)args.beta * (double)*at(args.c, z, row, column);
    if (args.bias) sum += (double)args.bias[row];
    if (args.has_relu && sum < 0) sum = 0;
    *at(args.d, z, row, column) = (float)sum;
  }
}
