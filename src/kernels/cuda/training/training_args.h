// Arguments of the kernels of training.cu.
#ifndef RUNNEL_KERNELS_CUDA_TRAINING_TRAINING_ARGS_H_
#define RUNNEL_KERNELS_CUDA_TRAINING_TRAINING_ARGS_H_

#include "kernels/cuda/state/rows_args.h"

#define RN_TRAINING_VARIABLES 4
#define RN_TRAINING_NUMBERS 8

struct rn_training_args {
  void* variables[RN_TRAINING_VARIABLES];
  const void* gradient;
  const void* numbers[RN_TRAINING_NUMBERS];  // scalars of the variables' type
  i64 count;                                 // elements of a dense update
  i32 flags;                                 // RN_RULE_... of kernels/cpu/isa/training_flags.h
  i32 integer;                               // which number is an int64; -1: none
  i32 is_aligned;                            // dense: all arrays are at multiples of 16 bytes
  struct rn_rows_args rows;                  // sparse: the rows of |gradient|
};

#endif  // RUNNEL_KERNELS_CUDA_TRAINING_TRAINING_ARGS_H_
