// Arguments of the kernels of move.cu. Strides are in bytes, counts in units: the pieces, of 1 to
// 16 bytes, that a thread copies at once.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_MOVE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_MOVE_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_CUDA_MOVE_RANK 8
#define RN_CUDA_BOX_RANK 4
#define RN_CUDA_BOXES 24

// One box of |count| < 2^31 units, outermost dimension first.
typedef struct rn_cuda_move_args {
  const char* from;
  char* to;
  u32 count;
  i32 rank;
  rn_div32 sizes[RN_CUDA_MOVE_RANK];
  i64 from_strides[RN_CUDA_MOVE_RANK], to_strides[RN_CUDA_MOVE_RANK];
} rn_cuda_move_args;

// Several small boxes; a row of blocks (blockIdx.y) copies one of them. 3,848 bytes.
typedef struct rn_cuda_box {
  const char* from;
  char* to;
  u32 count;
  i32 rank;
  rn_div32 sizes[RN_CUDA_BOX_RANK];
  i64 from_strides[RN_CUDA_BOX_RANK], to_strides[RN_CUDA_BOX_RANK];
} rn_cuda_box;
typedef struct rn_cuda_boxes_args {
  rn_cuda_box boxes[RN_CUDA_BOXES];
} rn_cuda_boxes_args;

// A transposition in tiles: |columns| units lie one after the other in |to|, |rows| units in
// |from|. The other dimensions are around them.
typedef struct rn_cuda_tiles_args {
  const char* from;
  char* to;
  u32 rows, columns;
  i64 row_to, column_from;  // the strides on the other side
  u32 tiles;                // in all
  rn_div32 row_tiles, column_tiles;
  i32 rank;
  rn_div32 sizes[RN_CUDA_MOVE_RANK];
  i64 from_strides[RN_CUDA_MOVE_RANK], to_strides[RN_CUDA_MOVE_RANK];
} rn_cuda_tiles_args;

// |count| elements; |value| is NULL if |bytes| has the element, repeated to 16 bytes.
typedef struct rn_cuda_fill_args {
  char* to;
  i64 count;
  const char* value;
  u64 bytes[2];
} rn_cuda_fill_args;

typedef struct rn_cuda_add_args {
  const void* values;
  void* sums;
  i64 count;
} rn_cuda_add_args;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_MOVE_ARGS_H_
