// Arguments of the kernels of training.cu.
#ifndef RUNNEL_KERNELS_CUDA_TRAINING_TRAINING_ARGS_H_
#define RUNNEL_KERNELS_CUDA_TRAINING_TRAINING_ARGS_H_

#include "kernels/cuda/state/rows_args.h"

#define RN_TRAINING_VARIABLES 4
#define RN_TRAINING_NUMBERS 8

// Sparse: the rows of one gradient.
struct rn_training_args {
  void* variables[RN_TRAINING_VARIABLES];
  const void* gradient;
  const void* numbers[RN_TRAINING_NUMBERS];  // scalars of the variables' type
  i32 flags;                                 // RN_RULE_... of kernels/cpu/isa/training_flags.h
  i32 integer;                               // which number is an int64; -1: none
  struct rn_rows_args rows;                  // the rows of |gradient|
};

#define RN_UPDATES_WORDS 480  // so that the struct stays below the 4 KB that a kernel may be given
#define RN_UPDATES_ENTRY 3    // words of an entry before the variables
#define RN_UPDATES_CHUNK 16384  // bytes of each array that a block updates at a time

// The type of a gradient.
enum { RN_GRADIENT_SAME, RN_GRADIENT_HALF, RN_GRADIENT_BFLOAT16 };

// Dense: any number of updates. Each has an entry in the table: its first chunk, with the type of
// the gradient in the upper half (another one than the variables' if those are floats), the
// elements, the address of the gradient, the addresses of the variables.
struct rn_updates_args {
  const void* numbers[RN_TRAINING_NUMBERS];
  i32 flags, integer;
  i32 count;   // entries
  i32 chunks;  // of all
  u64 table[RN_UPDATES_WORDS];
};

#endif  // RUNNEL_KERNELS_CUDA_TRAINING_TRAINING_ARGS_H_
