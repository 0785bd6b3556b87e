// Arguments of the kernels of selected.cu.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_SELECTED_ARGS_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_SELECTED_ARGS_H_

#include "kernels/cuda/array/divide.h"
#include "kernels/cuda/array/scan_args.h"

#define RN_CUDA_WHERE_RANK 16

typedef struct rn_cuda_where_args {
  rn_cuda_scan_args scan;
  i64* out;  // [set flags, rank]
  i64 dims[RN_CUDA_WHERE_RANK];
  i32 rank;
} rn_cuda_where_args;

// Values are in |values|; a slot of |table| has the first place of a value, or -1. |capacity| is a
// power of two. |slots| has the slot of each place.
typedef struct rn_cuda_unique_args {
  rn_cuda_scan_args scan;  // flags: the value is there for the first time
  const void* values;
  i32 *table, *slots;
  i64 capacity;
  i32* numbers;  // of the first places, for the places of idx
  unsigned char* flags;
  void *out, *idx, *counts;  // |counts| may be NULL
  i32 index_size;            // of idx and counts
} rn_cuda_unique_args;

// Starts of |parts| groups in sorted |keys| (state/rows_args.h): one more entry than parts.
typedef struct rn_cuda_starts_args {
  const u64* keys;
  i64* starts;
  i64 count, parts;
  i32 bits;
} rn_cuda_starts_args;

// Copies the rows at the places of |keys|, which are their lowest |bits|.
typedef struct rn_cuda_deal_args {
  const u64* keys;
  const void* data;
  void* out;
  i64 count;
  rn_cuda_div row;
  i32 bits;
} rn_cuda_deal_args;

// Row r of the output is at address |rows|[r]; 0: zeros.
typedef struct rn_cuda_stitch_args {
  const u64* rows;
  void* out;
  i64 count;
  rn_cuda_div row;
} rn_cuda_stitch_args;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_SELECTED_ARGS_H_
