// Arguments of the kernels of arrange.cu. Indices are matrices of |rank| columns, values have
// |value_size| bytes.
#ifndef RUNNEL_KERNELS_CUDA_SPARSE_ARRANGE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_SPARSE_ARRANGE_ARGS_H_

#include "kernels/cuda/array/scan_args.h"
#include "kernels/cuda/state/rows_args.h"

#define RN_CUDA_SPARSE_RANK 16  // most dimensions

typedef struct rn_cuda_sparse_reshape_args {
  const i64* from;
  i64* to;
  i64 count;
  i32 rank, new_rank;
  i64 sizes[RN_CUDA_SPARSE_RANK];  // before
  i64 steps[RN_CUDA_SPARSE_RANK];  // after: elements per step of a dimension
} rn_cuda_sparse_reshape_args;

// Values within a box.
typedef struct rn_cuda_sparse_box_args {
  rn_cuda_scan_args scan;
  unsigned char* flags;
  const i64* indices;
  const void* values;
  i64* out_indices;
  void* out_values;
  i64 count;
  i32 rank, value_size;
  i64 start[RN_CUDA_SPARSE_RANK], size[RN_CUDA_SPARSE_RANK];
} rn_cuda_sparse_box_args;

// Adds |offset| to the numbers of column |axis|.
typedef struct rn_cuda_sparse_shift_args {
  const i64* from;
  i64* to;
  i64 count, offset;  // |count|: numbers
  i32 rank, axis;
} rn_cuda_sparse_shift_args;

// Indices and values in the order of |rows|.
typedef struct rn_cuda_sparse_sort_args {
  struct rn_rows_args rows;
  const i64* indices;
  const void* values;
  i64* out_indices;
  void* out_values;
  i32 rank, value_size;
} rn_cuda_sparse_sort_args;

// |rows| are the rows of the values. |flags| says which rows have none; |empty| are those.
typedef struct rn_cuda_sparse_fill_args {
  struct rn_rows_args rows;
  rn_cuda_scan_args scan;
  unsigned char* flags;
  u64* bad;  // the first place with a row that does not exist, if there is one
  i64* empty;
  const i64* indices;
  const void *values, *fallback;
  i64* out_indices;
  void* out_values;
  i64* map;
  i64 count, empty_count, row_count;
  i32 rank, value_size;
} rn_cuda_sparse_fill_args;

typedef struct rn_cuda_sparse_fill_grad_args {
  const i64* map;
  const void* dy;
  unsigned char* seen;  // one per element of dy
  void *values, *fallback;
  i64 count, dy_count;
  i32 value_size;
} rn_cuda_sparse_fill_grad_args;

typedef struct rn_cuda_sparse_slice_grad_args {
  const void* dy;
  const i64 *indices, *start, *taken;
  void* out;
  i64 count, taken_count;
  i32 rank, value_size;
} rn_cuda_sparse_slice_grad_args;

#endif  // RUNNEL_KERNELS_CUDA_SPARSE_ARRANGE_ARGS_H_
