// Arguments of the kernels that make random numbers.
#ifndef RUNNEL_KERNELS_CUDA_RANDOM_RANDOM_ARGS_H_
#define RUNNEL_KERNELS_CUDA_RANDOM_RANDOM_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

// A position in a Philox stream: a counter of 128 bits (low half, high half) and a key.
struct rn_random_at {
  const u64* counter;  // two numbers in device memory; NULL: |numbers| is the position
  const u64* key;
  u64 numbers[3];  // counter and key
  // If not NULL: counter, key and a ticket in device memory. The kernel moves the counter on by
  // |advance| blocks when all of its own blocks have read it.
  u64* state;
  u64 advance;
};

struct rn_random_fill_args {
  struct rn_random_at at;
  void* out;
  i64 count;
  u64 low, range;  // of integers
  i32 is_aligned;  // |out| is at a multiple of 16 bytes
};

// Copies the position in |state| to |out| (may be NULL) and moves it on.
struct rn_random_take_args {
  u64 *state, *out;
  u64 advance;
};

struct rn_multinomial_args {
  struct rn_random_at at;
  const void* logits;
  double* sums;  // of the rows' weights up to each class
  void* out;
  i64 rows, classes, draws;
  i32 is_wide;  // |out| is of int64, else int32
};

struct rn_gamma_args {
  struct rn_random_at at;
  const void* alpha;
  void* out;
  i64 samples, sets;  // numbers per set of parameters
};

struct rn_bounded_args {
  struct rn_random_at at;
  const void* parameters[4];  // means, standard deviations, lower and upper bounds
  i32 is_scalar[4];
  void* out;
  i64 count, batch;  // numbers in all, and per set of parameters
};

#endif  // RUNNEL_KERNELS_CUDA_RANDOM_RANDOM_ARGS_H_
