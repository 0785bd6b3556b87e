// Arguments of cufft.cu.
#ifndef RUNNEL_TESTS_GPU_CUFFT_CUFFT_ARGS_H_
#define RUNNEL_TESTS_GPU_CUFFT_CUFFT_ARGS_H_

typedef struct emulated_fft_args {
  const void* in;
  void* out;
  i64 n[3];  // lengths; 1 for axes that are not there
  i64 batch;
  i32 is_wide, from_real, to_real;
  i32 direction;  // -1 or 1
} emulated_fft_args;

#endif  // RUNNEL_TESTS_GPU_CUFFT_CUFFT_ARGS_H_
