// Products for the emulated cuSPARSE, by one thread.
#include "prelude.cuh"

#include "cusparse_args.h"

// Element (i, j) of A B; |*out_is_there| tells whether an entry of each meets there.
template <typename T>
RN_DEVICE T element(const emulated_sparse_args& args, i64 i, i64 j, bool* out_is_there) {
  const T *x = (const T*)args.a.values, *y = (const T*)(args.dense ? args.dense : args.b.values);
  T sum = T(0);
  *out_is_there = false;
  for (i64 k = args.a.pointers[i]; k < args.a.pointers[i + 1]; ++k) {
    const i64 row = args.a.indices[k];
    if (args.dense) sum = sum + x[k] * y[row * args.n + j];
    if (args.dense) continue;
    for (i64 p = args.b.pointers[row]; p < args.b.pointers[row + 1]; ++p) {
      if (args.b.indices[p] != j) continue;
      sum = sum + x[k] * y[p];
      *out_is_there = true;
    }
  }
  return sum;
}

template <typename T>
RN_DEVICE void multiply(const emulated_sparse_args& args) {
  const i64 width = args.dense ? args.n : args.b.columns;
  i32 entries = 0;
  for (i64 i = 0; i < args.a.rows; ++i) {
    if (!args.dense) args.pointers[i] = entries;
    for (i64 j = 0; j < width; ++j) {
      bool is_there;
      const T sum = element<T>(args, i, j, &is_there);
      if (args.dense) ((T*)args.out)[i * width + j] = sum;
      if (args.dense || !is_there) continue;
      if (args.indices) {
        args.indices[entries] = (i32)j;
        ((T*)args.values)[entries] = sum;
      }
      ++entries;
    }
  }
  if (!args.dense) args.pointers[args.a.rows] = entries;
}

RN_KERNEL(emulated_sparse, emulated_sparse_args) {
  if (args.type == 0) multiply<float>(args);
  if (args.type == 1) multiply<double>(args);
  if (args.type == 4) multiply<rn_complex64>(args);
  if (args.type == 5) multiply<rn_complex128>(args);
}
