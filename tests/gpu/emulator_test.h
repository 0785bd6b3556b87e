// Arguments of the kernels of emulator_test.cu.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_TEST_H_
#define RUNNEL_TESTS_GPU_EMULATOR_TEST_H_

typedef struct add_args {
  const float *x, *y;
  float* z;
  long long n;
} add_args;

typedef struct sum_args {
  const int* x;
  int* sums;  // one per block
  long long n;
} sum_args;

typedef struct out_args {
  unsigned* out;
  long long n;
} out_args;

typedef struct convert_args {
  const float* x;
  unsigned short *half, *bfloat16;
  float *from_half, *math;
  long long n;
} convert_args;

#endif  // RUNNEL_TESTS_GPU_EMULATOR_TEST_H_
