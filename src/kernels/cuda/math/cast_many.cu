// Casts of many arrays of floats to 16 bits in one launch.
#include "prelude.cuh"

#include "math/cast_many_args.h"

struct alignas(16) four_floats {
  float items[4];
};
template <typename T>
struct alignas(8) four_results {
  T items[4];
};

// The entry that |chunk| belongs to.
RN_DEVICE int entry_of(const cast_many_args& args, i32 chunk) {
  int low = 0, high = args.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    args.entries[middle].chunk <= chunk ? low = middle : high = middle;
  }
  return low;
}

// A block takes chunk after chunk, whichever array they belong to.
template <typename T>
RN_DEVICE void cast_all(const cast_many_args& args) {
  for (i32 chunk = (i32)blockIdx.x; chunk < args.chunks; chunk += (i32)gridDim.x) {
    const cast_entry& entry = args.entries[entry_of(args, chunk)];
    const i64 begin = (chunk - entry.chunk) * RN_CAST_CHUNK, left = entry.count - begin;
    const i64 count = left < RN_CAST_CHUNK ? left : RN_CAST_CHUNK;
    const float* from = entry.from + begin;
    T* to = static_cast<T*>(entry.to) + begin;
    const bool is_aligned = (u64)from % 16 == 0 && (u64)to % 8 == 0;
    const i64 packs = is_aligned ? count / 4 : 0;
    for (i64 i = threadIdx.x; i < packs; i += blockDim.x) {
      const four_floats x = reinterpret_cast<const four_floats*>(from)[i];
      four_results<T> y;
#pragma unroll
      for (int k = 0; k < 4; ++k) y.items[k] = T(x.items[k]);
      reinterpret_cast<four_results<T>*>(to)[i] = y;
    }
    for (i64 i = packs * 4 + threadIdx.x; i < count; i += blockDim.x) to[i] = T(from[i]);
  }
}

RN_KERNEL(cast_many_f16, cast_many_args) { cast_all<rn_half>(args); }
RN_KERNEL(cast_many_bf16, cast_many_args) { cast_all<rn_bfloat16>(args); }
