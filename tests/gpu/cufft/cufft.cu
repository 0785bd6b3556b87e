// Fourier transforms for the emulated cuFFT: the sum of the definition, in doubles.
#include "prelude.cuh"

#include "cufft_args.h"

template <typename R>
RN_DEVICE rn_complex128 read(const emulated_fft_args& args, i64 batch, i64 a, i64 b, i64 c) {
  const i64 rows = (batch * args.n[0] + a) * args.n[1] + b, n = args.n[2], half = n / 2 + 1;
  if (args.from_real) return {(double)((const R*)args.in)[rows * n + c], 0};
  if (!args.to_real) {
    const rn_complex<R> x = ((const rn_complex<R>*)args.in)[rows * n + c];
    return {(double)x.re, (double)x.im};
  }
  // The other half of the spectrum is the conjugate of the first.
  const bool is_there = c < half;
  const i64 a2 = is_there ? a : (args.n[0] - a) % args.n[0];
  const i64 b2 = is_there ? b : (args.n[1] - b) % args.n[1], c2 = is_there ? c : n - c;
  const i64 row = (batch * args.n[0] + a2) * args.n[1] + b2;
  const rn_complex<R> x = ((const rn_complex<R>*)args.in)[row * half + c2];
  return {(double)x.re, is_there ? (double)x.im : -(double)x.im};
}

template <typename R>
RN_DEVICE void transform(const emulated_fft_args& args) {
  const i64 width = args.from_real ? args.n[2] / 2 + 1 : args.n[2];
  RN_EACH(at, args.batch * args.n[0] * args.n[1] * width) {
    const i64 k = at % width, j = at / width % args.n[1], i = at / width / args.n[1] % args.n[0];
    const i64 batch = at / width / args.n[1] / args.n[0];
    rn_complex128 sum = {0, 0};
    for (i64 a = 0; a < args.n[0]; ++a)
      for (i64 b = 0; b < args.n[1]; ++b)
        for (i64 c = 0; c < args.n[2]; ++c) {
          const double turns = (double)(i * a % args.n[0]) / (double)args.n[0] +
                               (double)(j * b % args.n[1]) / (double)args.n[1] +
                               (double)(k * c % args.n[2]) / (double)args.n[2];
          const double angle = args.direction * 6.283185307179586477 * turns;
          sum = sum + read<R>(args, batch, a, b, c) * rn_complex128(cos(angle), sin(angle));
        }
    if (args.to_real)
      ((R*)args.out)[at] = (R)sum.re;
    else
      ((rn_complex<R>*)args.out)[at] = {(R)sum.re, (R)sum.im};
  }
}

RN_KERNEL(emulated_fft, emulated_fft_args) {
  if (args.is_wide)
    transform<double>(args);
  else
    transform<float>(args);
}
