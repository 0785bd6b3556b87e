// Arguments of the kernels of indexed.cu. Counts are in units of the kernel.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_INDEXED_ARGS_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_INDEXED_ARGS_H_

#include "kernels/cuda/array/divide.h"

#define RN_CUDA_PLACE_DEPTH 16

// Params are [blocks, limit, row], indices [blocks / outer, indices], the output [blocks, indices,
// row].
typedef struct rn_cuda_gather_args {
  const void *params, *indices;
  void* out;
  i64 count, limit;
  rn_cuda_div row, indices_count, outer;
  i32 index_size;
} rn_cuda_gather_args;

// Rows of params at places: each is |depth| indices, below |limits|, times |steps|.
typedef struct rn_cuda_gather_nd_args {
  const void *params, *indices;
  void* out;
  i64 count;
  rn_cuda_div row;
  i32 index_size, depth;
  i64 limits[RN_CUDA_PLACE_DEPTH], steps[RN_CUDA_PLACE_DEPTH];
} rn_cuda_gather_nd_args;

// The output is [outer, depth, inner], indices [outer, inner].
typedef struct rn_cuda_one_hot_args {
  const void *indices, *on, *off;
  void* out;
  i64 count;
  rn_cuda_div depth, inner;
  i32 index_size;
  i32 is_unsigned;  // one byte, 0 to 255
} rn_cuda_one_hot_args;

// The input is [.., seq, ..] with elements of the sequence |seq_step| units apart; a unit's entry
// of the batch is its place / batch_step % batches.
typedef struct rn_cuda_reverse_args {
  const void *input, *lengths;
  void* out;
  i64 count;
  rn_cuda_div seq, seq_step, batches, batch_step;
  i32 index_size;
} rn_cuda_reverse_args;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_INDEXED_ARGS_H_
