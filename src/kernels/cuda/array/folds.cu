// Gradients of mirrored borders.
#include "prelude.cuh"

#include "kernels/cuda/array/folds_args.h"

template <typename T>
RN_DEVICE void fold(const rn_cuda_fold_args& args) {
  T* work = static_cast<T*>(args.work);
  RN_EACH(i, args.count) {
    i64 inner = i % args.inner, k = i / args.inner % args.border;
    T* line = work + i / args.inner / args.border * args.size * args.inner + inner;
    T* into = line + (args.into - k * args.step) * args.inner;
    *into = *into + line[(args.from + k * args.step) * args.inner];
  }
}
#define FOLD(T, name) \
  RN_KERNEL(fold_##name, rn_cuda_fold_args) { fold<T>(args); }
FOLD(rn_half, f16)
FOLD(rn_bfloat16, bf16)
FOLD(float, f32)
FOLD(double, f64)
FOLD(rn_complex64, c64)
FOLD(rn_complex128, c128)
