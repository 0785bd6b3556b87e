// Arguments of topk.cu.
#ifndef RUNNEL_KERNELS_CUDA_NN_TOPK_ARGS_H_
#define RUNNEL_KERNELS_CUDA_NN_TOPK_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_TOPK_CHUNK 2048  // most elements that one block sorts

// An element: greater keys are greater values, of equals the one that comes first is better.
struct rn_topk_pair {
  u64 key;
  i64 place;  // in its row
};

// Sorts |chunks| chunks of |width|, a power of two, per row of |columns| elements or pairs, and
// leaves the best |kept| of each.
struct rn_topk_args {
  const void* in;  // elements, or pairs
  struct rn_topk_pair* pairs;
  i64 rows, columns, chunks, kept;
  i32 width;
  i32 alternates;  // every second chunk is sorted the other way round, to be merged
};

// A step of a bitonic merge of |size| pairs: |width| pairs per row, a power of two.
struct rn_topk_merge_args {
  struct rn_topk_pair* pairs;
  i64 rows, width, size, distance;
};

// The first |k| of each row of |width| pairs as values and places.
struct rn_topk_finish_args {
  const struct rn_topk_pair* pairs;
  const void* in;
  void *values, *places;
  i64 rows, columns, width, k;
  i32 place_size;  // bytes: 2, 4 or 8
};

struct rn_in_topk_args {
  const float* predictions;
  const void *targets, *given_k;
  void* out;
  i64 rows, classes, k;  // |k| if |given_k| is NULL
  i32 is_wide;           // targets, and k, are int64, not int32
};

#endif  // RUNNEL_KERNELS_CUDA_NN_TOPK_ARGS_H_
