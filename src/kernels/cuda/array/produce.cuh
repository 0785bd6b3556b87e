// Kernels that make each unit of their output by itself, in the order of the output.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_PRODUCE_CUH_
#define RUNNEL_KERNELS_CUDA_ARRAY_PRODUCE_CUH_

#include "prelude.cuh"

#include "kernels/cuda/array/divide.h"

RN_DEVICE u32 rn_quotient(u32 value, const rn_cuda_div& by) { return rn_div(value, by.narrow); }
RN_DEVICE i64 rn_quotient(i64 value, const rn_cuda_div& by) { return value / by.wide; }

// Splits |value| into a quotient, which is returned, and a rest.
template <typename I>
RN_DEVICE I rn_split(I value, const rn_cuda_div& by, I* rest) {
  I quotient = rn_quotient(value, by);
  *rest = value - quotient * (I)by.wide;
  return quotient;
}

// A zero of any unit.
template <typename Unit>
RN_DEVICE Unit rn_zero() {
  return Unit();
}

// Element |i| of a vector of signed integers of |size| bytes.
RN_DEVICE i64 rn_index_at(const void* indices, i64 i, int size) {
  switch (size) {
    case 1:
      return static_cast<const i8*>(indices)[i];
    case 2:
      return static_cast<const i16*>(indices)[i];
    case 4:
      return static_cast<const i32*>(indices)[i];
    default:
      return static_cast<const i64*>(indices)[i];
  }
}

// out[i] = make(i) for every i below |count|. A thread makes several units before it stores the
// first, so that their loads overlap.
template <typename Unit, typename I, typename Make>
RN_DEVICE void rn_produce(Unit* out, I count, Make make) {
  const int each = 4;
  const I step = (I)gridDim.x * blockDim.x * each;
  for (I first = (I)blockIdx.x * blockDim.x * each + threadIdx.x; first < count; first += step) {
    Unit units[each];
#pragma unroll
    for (int k = 0; k < each; ++k) {
      I i = first + (I)k * blockDim.x;
      if (i < count) units[k] = make(i);
    }
#pragma unroll
    for (int k = 0; k < each; ++k) {
      I i = first + (I)k * blockDim.x;
      if (i < count) out[i] = units[k];
    }
  }
}

// Defines |name|_1 to |name|_16 and their wide forms from the template |function|<Unit, I>(args).
#define RN_PRODUCE_UNIT(name, args_t, function, Unit, size)       \
  RN_KERNEL(name##_##size, args_t) { function<Unit, u32>(args); } \
  RN_KERNEL(name##_##size##_wide, args_t) { function<Unit, i64>(args); }
#define RN_PRODUCE(name, args_t, function)        \
  RN_PRODUCE_UNIT(name, args_t, function, u8, 1)  \
  RN_PRODUCE_UNIT(name, args_t, function, u16, 2) \
  RN_PRODUCE_UNIT(name, args_t, function, u32, 4) \
  RN_PRODUCE_UNIT(name, args_t, function, u64, 8) \
  RN_PRODUCE_UNIT(name, args_t, function, uint4, 16)

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_PRODUCE_CUH_
