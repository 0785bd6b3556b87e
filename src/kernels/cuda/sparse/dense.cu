// Products of sparse and dense matrices, and sparse tensors made dense. The places of values are
// sorted by row, so that sums are always in one order. Indices out of bounds are skipped.
#include "kernels/cuda/array/produce.cuh"

#include "kernels/cuda/sparse/dense_args.h"
#include "kernels/cuda/state/rows.cuh"

RN_DEVICE i64 row_of(const rn_rows_args& rows, i64 i) { return (i64)(rows.keys[i] >> rows.bits); }
RN_DEVICE i64 place_of(const rn_rows_args& rows, i64 i) {
  return (i64)(rows.keys[i] & ((1ull << rows.bits) - 1));
}

template <typename T>
RN_DEVICE T conjugated(T x) {
  return x;
}
template <typename R>
RN_DEVICE rn_complex<R> conjugated(rn_complex<R> x) {
  return {x.re, -x.im};
}

// One thread per column and run of values of one row.
template <typename T>
RN_DEVICE void matmul(const rn_cuda_sparse_matmul_args& args) {
  typedef typename rn_sum_of<T>::type Sum;
  const T *values = static_cast<const T*>(args.values), *b = static_cast<const T*>(args.b);
  RN_EACH(i, args.rows.count * args.n) {
    const i64 first = i / args.n, column = i - first * args.n;
    const i64 row = rn_rows_first(args.rows, first);
    if (row < 0) continue;
    Sum sum = Sum();
    for (i64 at = first; at < args.rows.count && args.rows.keys[at] != RN_ROWS_BAD; ++at) {
      if (row_of(args.rows, at) != row) break;
      const i64 place = place_of(args.rows, at);
      const i64 k =
          rn_index_at(args.indices, 2 * place + (args.adjoint_a ? 0 : 1), args.index_size);
      if (k < 0 || k >= args.k) continue;
      Sum x = (Sum)values[place];
      Sum y = (Sum)(args.adjoint_b ? b[column * args.k + k] : b[k * args.n + column]);
      sum = sum + (args.adjoint_a ? conjugated(x) : x) * (args.adjoint_b ? conjugated(y) : y);
    }
    static_cast<T*>(args.out)[row * args.n + column] = (T)sum;
  }
}

#define MATMUL(name, T) \
  RN_KERNEL(matmul_##name, rn_cuda_sparse_matmul_args) { matmul<T>(args); }
MATMUL(f16, rn_half)
MATMUL(bf16, rn_bfloat16)
MATMUL(f32, float)
MATMUL(f64, double)
MATMUL(c64, rn_complex64)
MATMUL(c128, rn_complex128)

// The last value of a place stays.
template <typename Unit>
RN_DEVICE void to_dense(const rn_cuda_to_dense_args& args) {
  const Unit* values = static_cast<const Unit*>(args.values);
  RN_EACH(i, args.rows.count) {
    if (args.rows.keys[i] == RN_ROWS_BAD) continue;
    const i64 row = row_of(args.rows, i);
    if (i + 1 < args.rows.count && args.rows.keys[i + 1] != RN_ROWS_BAD &&
        row_of(args.rows, i + 1) == row)
      continue;
    static_cast<Unit*>(args.out)[row] = values[args.is_scalar ? 0 : place_of(args.rows, i)];
  }
}

#define TO_DENSE(size, Unit) \
  RN_KERNEL(to_dense_##size, rn_cuda_to_dense_args) { to_dense<Unit>(args); }
TO_DENSE(1, u8)
TO_DENSE(2, u16)
TO_DENSE(4, u32)
TO_DENSE(8, u64)
TO_DENSE(16, uint4)
