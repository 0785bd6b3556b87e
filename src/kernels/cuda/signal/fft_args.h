// Arguments of signal/fft.cu.
#ifndef RUNNEL_KERNELS_CUDA_SIGNAL_FFT_ARGS_H_
#define RUNNEL_KERNELS_CUDA_SIGNAL_FFT_ARGS_H_

#define RN_FFT_MAX_RANK 16

// Copies a block of |dims|, with zeros where |from| is shorter; |to| may be shorter as well.
struct fft_move_args {
  const void* from;
  void* to;
  i64 from_dims[RN_FFT_MAX_RANK], dims[RN_FFT_MAX_RANK];
  i64 count;  // of |to|
  i32 rank;
  i32 conjugates;
  double scale;
};

// The whole of a spectrum from its first half: rows of n / 2 + 1 become rows of n.
struct fft_mirror_args {
  const void* from;
  void* to;
  i64 rows, n;
};

// One pass of a transform along the middle axis of [outer, sub, width]: |sub| is what is left of
// the length, |width| the axes behind it and the part of the length that is done.
struct fft_pass_args {
  const void* x;
  void* y;
  i64 outer, sub, width;
  i64 radix;  // divides |sub|
};

// Transforms whose length has a large prime factor, as convolutions by a chirp (Bluestein).
// |inner| is the product of the axes behind; |m| >= 2 n - 1 the length of the convolution.
struct fft_chirp_args {
  const void* x;  // [outer, n, inner] going in, [outer, m, inner] coming back
  void* y;
  const void* filter;  // m numbers
  i64 outer, n, m, inner;
};

#endif  // RUNNEL_KERNELS_CUDA_SIGNAL_FFT_ARGS_H_
