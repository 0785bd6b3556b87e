// Numbering the set flags of an array, in order.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_SCAN_CUH_
#define RUNNEL_KERNELS_CUDA_ARRAY_SCAN_CUH_

#include "prelude.cuh"

#include "kernels/cuda/array/scan_args.h"

// The sum of |value| over the threads of the block before this one; |*total| is that of all. Every
// thread of a block of |threads| must call it.
template <typename T, int threads>
RN_DEVICE T rn_block_sums(T value, T* total) {
  __shared__ T sums[threads];
  const int t = threadIdx.x;
  sums[t] = value;
  __syncthreads();
  for (int distance = 1; distance < threads; distance *= 2) {
    T before = t >= distance ? sums[t - distance] : T(0);
    __syncthreads();
    sums[t] += before;
    __syncthreads();
  }
  T sum = sums[t] - value;
  *total = sums[threads - 1];
  __syncthreads();
  return sum;
}

// How many flags of the calling thread's part of a tile are set.
RN_DEVICE u32 rn_flags_set(const rn_cuda_scan_args& scan, i64 first) {
  u32 set = 0;
  for (int k = 0; k < RN_SCAN_TILE / RN_SCAN_THREADS; ++k)
    if (first + k < scan.count) set += scan.flags[first + k] != 0;
  return set;
}

// Calls visit(i, number) for every set flag i. |scan.offsets| must be ready.
template <typename Visit>
RN_DEVICE void rn_each_flag(const rn_cuda_scan_args& scan, Visit visit) {
  for (i64 tile = blockIdx.x; tile < scan.tiles; tile += gridDim.x) {
    const int each = RN_SCAN_TILE / RN_SCAN_THREADS;
    i64 first = tile * RN_SCAN_TILE + threadIdx.x * each;
    u32 total;
    i64 number =
        scan.offsets[tile] + rn_block_sums<u32, RN_SCAN_THREADS>(rn_flags_set(scan, first), &total);
    for (int k = 0; k < each; ++k)
      if (first + k < scan.count && scan.flags[first + k]) visit(first + k, number++);
  }
}

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_SCAN_CUH_
