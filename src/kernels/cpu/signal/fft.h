// Fourier transforms along the axes of arrays, complex or real, forward or backward.
#ifndef RUNNEL_KERNELS_CPU_SIGNAL_FFT_H_
#define RUNNEL_KERNELS_CPU_SIGNAL_FFT_H_

#include "base/pool.h"
#include "kernels/cpu/signal/fft_plan.h"

typedef enum rn_fft_kind_t {
  RN_FFT_COMPLEX,    // complex to complex
  RN_FFT_FROM_REAL,  // n reals to n / 2 + 1 complex numbers
  RN_FFT_TO_REAL,    // n / 2 + 1 complex numbers to n reals; backward
} rn_fft_kind_t;

// What all transforms of a call share.
typedef struct rn_fft_env_t {
  rn_fft_cache_t* cache;
  rn_allocator_t allocator;
  rn_pool_t* pool;  // NULL for one thread
} rn_fft_env_t;

// Transforms of rows of length |n|, along the last axis. The arrays hold complex or real numbers as
// |kind| says.
typedef struct rn_fft_rows_t {
  rn_fft_kind_t kind;
  rn_fft_width_t width;
  bool is_backward;
  int64_t n;
  double scale;
  const void* in;
  int64_t in_row;  // numbers from one row of the input to the next
  // How many of a row are read, at most n; the others count as zeros. n / 2 + 1 for RN_FFT_TO_REAL.
  int64_t in_used;
  void* out;
  // The outer axes; the input has zeros where it is shorter than the output.
  int rank;
  const int64_t *in_dims, *out_dims;
} rn_fft_rows_t;
RN_MUST_USE rn_status_t rn_fft_rows(const rn_fft_env_t* env, const rn_fft_rows_t* rows);

// Complex transforms in place along the middle axis of [outer, n, inner].
typedef struct rn_fft_columns_t {
  rn_fft_width_t width;
  bool is_backward;
  int64_t outer, n, inner;
  double scale;
  void* data;
} rn_fft_columns_t;
RN_MUST_USE rn_status_t rn_fft_columns(const rn_fft_env_t* env, const rn_fft_columns_t* columns);

#endif  // RUNNEL_KERNELS_CPU_SIGNAL_FFT_H_
