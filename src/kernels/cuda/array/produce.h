// Launching kernels that make each unit of their output by itself: see produce.cuh.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_PRODUCE_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_PRODUCE_H_

#include "kernels/cuda/array/divide.h"

static inline rn_cuda_div rn_cuda_divisor(int64_t by) {
  return (rn_cuda_div){by < INT64_C(1) << 31 ? rn_divisor((u32)by) : (rn_div32){0}, by};
}

// The widest unit, of 1 to 16 bytes, that divides |bytes| and the addresses.
static inline int64_t rn_cuda_unit(int64_t bytes, const void* a, const void* b) {
  uint64_t bits = (uint64_t)bytes | (uintptr_t)a | (uintptr_t)b | 16;
  return (int64_t)(bits & (~bits + 1));
}

// Issues "|base|_|unit|" for |count| units of output, or its wide form if 32 bits cannot count
// them. Nothing is issued for 0.
RN_MUST_USE rn_status_t rn_cuda_produce(const rn_kernel_ctx_t* ctx, const char* base, int64_t unit,
                                        int64_t count, const void* args, size_t args_size);

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_PRODUCE_H_
