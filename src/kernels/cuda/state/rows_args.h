// Rows of a tensor that an index tensor names, in the order in which they are updated.
//
// Indices may repeat. The device sorts their places by row, so that one thread updates an element
// once per occurrence of its row, in the order of the places: the result is the CPU's, whatever the
// timing. C and CUDA share this file; rows.h makes the order, rows.cuh walks along it.
#ifndef RUNNEL_KERNELS_CUDA_STATE_ROWS_ARGS_H_
#define RUNNEL_KERNELS_CUDA_STATE_ROWS_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_ROWS_CHUNK 4096   // places that one block sorts
#define RN_ROWS_DEPTH 8      // most numbers of an index vector
#define RN_ROWS_BAD (~0ull)  // the key of a place whose index is out of bounds: the largest

// |keys| are sorted: the row of a place, shifted left by |bits|, plus the place.
struct rn_rows_args {
  const u64* keys;
  i64 count;  // places
  i64 width;  // elements per row
  i32 bits;
  i32 is_wide;       // count * width does not fit into 31 bits
  rn_div32 divisor;  // width, unless |is_wide|
};

// Makes keys from index vectors of |depth| numbers and sorts each chunk.
struct rn_rows_sort_args {
  const void* indices;
  u64* keys;
  i64 count, padded;  // |padded|: keys, a power of two
  i64 limits[RN_ROWS_DEPTH], steps[RN_ROWS_DEPTH];
  i32 depth, bits;
  i32 index_size;  // bytes of a number: 2, 4 or 8
};

// Merges chunks: a step of the bitonic sort with sequences of |size| and distance |distance|.
struct rn_rows_merge_args {
  u64* keys;
  i64 padded, size, distance;
};

#endif  // RUNNEL_KERNELS_CUDA_STATE_ROWS_ARGS_H_
