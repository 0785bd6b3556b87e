// Fourier transforms of planar complex data, for one ISA level; kernels/cpu/signal/fft_plan.h makes
// the plans.
//
// Several transforms of one length may run side by side, as lanes: element j of lane l is at
// [j * lanes + l] of the arrays of real and imaginary parts.
#ifndef RUNNEL_KERNELS_CPU_ISA_FFT_H_
#define RUNNEL_KERNELS_CPU_ISA_FFT_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/isa.h"

// Lengths are below 2^48, so that there are fewer passes than this.
#define RN_FFT_MAX_PASSES 48
// The largest prime factor that a pass handles; lengths with larger ones are convolutions.
#define RN_FFT_MAX_PRIME 61

// Rows that turn_in and turn_out put side by side.
#define RN_FFT_LANES 8

// One pass of a Stockham transform: |count| butterflies of |radix| elements per lane.
typedef struct rn_fft_pass_t {
  int64_t radix, count;
  // The factor of output k > 0 of butterfly p is at [(k - 1) * count + p]; the imaginary parts
  // follow the real ones.
  const void* twiddles;
  // For a radix without code of its own: cos(2 pi i / radix), then the sines.
  const void* roots;
} rn_fft_pass_t;

typedef struct rn_fft_plan_t {
  int64_t n;
  int64_t inner;  // the length of the passes: n, or that of the convolution that replaces them
  int32_t pass_count;
  rn_fft_pass_t passes[RN_FFT_MAX_PASSES];
  // Of a convolution; NULL for others. Real parts, then imaginary ones: |n| of the chirp
  // exp(-i pi j^2 / n), |inner| of the transformed filter.
  const void* chirp;
  const void* filter;
} rn_fft_plan_t;

// The arrays of a transform: real and imaginary parts, and the same again as scratch. Each holds
// (|inner| + 1) * lanes elements.
typedef struct rn_fft_arrays_t {
  void *re, *im, *re2, *im2;
} rn_fft_arrays_t;

typedef struct rn_fft_fns_t {
  // Transforms forward, unscaled; the result is in |arrays->re| and |arrays->im|, which may have
  // been exchanged with the scratch arrays. Exchange re with im before and after to go backward.
  void (*run)(const rn_fft_plan_t* plan, int64_t lanes, rn_fft_arrays_t* arrays);
  // |count| complex numbers to and from planar form.
  void (*split)(const void* in, void* re, void* im, int64_t count);
  void (*join)(const void* re, const void* im, void* out, int64_t count, double scale);
  void (*scale)(const void* re, void* out, int64_t count, double scale);  // real numbers
  // The same for RN_FFT_LANES rows, which become lanes. |im| NULL: the rows are real.
  void (*turn_in)(const void* const* rows, void* re, void* im, int64_t count);
  void (*turn_out)(const void* re, const void* im, void* const* rows, int64_t count, double scale);
  // Real transforms of even length 2 h by a complex one of length h, |roots| being
  // exp(-i pi k / h) for k <= h, the real parts first. The first makes the h + 1 complex results;
  // the second makes the complex input from h + 1 complex numbers. 1 or RN_FFT_LANES lanes.
  void (*from_half)(const void* re, const void* im, const void* roots, void* out_re, void* out_im,
                    int64_t h, int64_t lanes);
  void (*to_half)(const void* in_re, const void* in_im, const void* roots, void* re, void* im,
                  int64_t h, int64_t lanes);
  // Completes the first n / 2 + 1 numbers of the spectrum of reals, n being odd.
  void (*mirror)(void* re, void* im, int64_t n, int64_t lanes);
} rn_fft_fns_t;

typedef enum rn_fft_width_t { RN_FFT_FLOAT, RN_FFT_DOUBLE, RN_FFT_WIDTHS } rn_fft_width_t;

RN_ISA_DECLARE(rn_fft_fns_t, rn_fft_, [RN_FFT_WIDTHS]);

#endif  // RUNNEL_KERNELS_CPU_ISA_FFT_H_
