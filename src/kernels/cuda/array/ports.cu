// Copies a few small values between page-locked host memory and the card's. The threads themselves
// read and write over the bus: that takes less time than to start a copy engine.
#include "prelude.cuh"

#include "kernels/cuda/array/ports_args.h"

struct __attribute__((aligned(16))) ports_unit {
  u64 halves[2];
};

RN_DEVICE void copy_port(const char* from, char* to, i64 size) {
  const bool is_aligned = ((u64)from | (u64)to) % 16 == 0;
  const i64 whole = is_aligned ? size / 16 : 0;
  for (i64 i = threadIdx.x; i < whole; i += blockDim.x)
    reinterpret_cast<ports_unit*>(to)[i] = reinterpret_cast<const ports_unit*>(from)[i];
  for (i64 i = 16 * whole + threadIdx.x; i < size; i += blockDim.x) to[i] = from[i];
}

// Without a flag, a block makes one copy. With one there is one block, which sets the flag when all
// its threads have written: the host then sees the copies, too.
RN_KERNEL(copy, rn_cuda_ports_args) {
  for (i32 c = blockIdx.x; c < args.count; c += gridDim.x)
    copy_port(args.copies[c].from, args.copies[c].to, args.copies[c].size);
  if (!args.has_flag) return;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
#ifdef RN_EMULATED  // where fences do nothing
    __atomic_store_n(args.flag, 1u, __ATOMIC_RELEASE);
#else
    *const_cast<volatile u32*>(args.flag) = 1;
#endif
  }
}
