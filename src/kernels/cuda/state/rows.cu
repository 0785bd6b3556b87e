// Sorts the places of indices by row: see rows_args.h. A bitonic sort (Batcher, 1968): blocks sort
// chunks in shared memory, then chunks are merged.
#include "kernels/cuda/state/rows_args.h"

RN_DEVICE i64 index_at(const rn_rows_sort_args& args, i64 i) {
  if (args.index_size == 4) return ((const i32*)args.indices)[i];
  return args.index_size == 8 ? ((const i64*)args.indices)[i] : ((const i16*)args.indices)[i];
}

RN_DEVICE u64 key_of(const rn_rows_sort_args& args, i64 place) {
  if (place >= args.count) return RN_ROWS_BAD;
  u64 row = 0;
  for (int d = 0; d < args.depth; ++d) {
    i64 index = index_at(args, place * args.depth + d);
    if (index < 0 || index >= args.limits[d]) return RN_ROWS_BAD;
    row += (u64)index * (u64)args.steps[d];
  }
  return row << args.bits | (u64)place;
}

RN_DEVICE void order(u64* a, u64* b, bool ascends) {
  u64 x = *a, y = *b;
  if ((x > y) == ascends) *a = y, *b = x;
}

// Ends the merging of sequences of |size| with the distances that fit into the chunk.
RN_DEVICE void merge_chunk(u64* keys, i64 first, i32 chunk, i64 size, i32 distance) {
  for (; distance > 0; distance /= 2) {
    for (i32 t = threadIdx.x; t < chunk / 2; t += blockDim.x) {
      i32 i = 2 * t - (t & (distance - 1));
      order(&keys[i], &keys[i + distance], ((first + i) & size) == 0);
    }
    __syncthreads();
  }
}

RN_KERNEL(rows_sort, rn_rows_sort_args) {
  __shared__ u64 keys[RN_ROWS_CHUNK];
  i32 chunk = args.padded < RN_ROWS_CHUNK ? (i32)args.padded : RN_ROWS_CHUNK;
  i64 first = (i64)blockIdx.x * chunk;
  for (i32 i = threadIdx.x; i < chunk; i += blockDim.x) keys[i] = key_of(args, first + i);
  __syncthreads();
  for (i32 size = 2; size <= chunk; size *= 2) merge_chunk(keys, first, chunk, size, size / 2);
  for (i32 i = threadIdx.x; i < chunk; i += blockDim.x) args.keys[first + i] = keys[i];
}

RN_KERNEL(rows_step, rn_rows_merge_args) {
  RN_EACH(t, args.padded / 2) {
    i64 i = 2 * t - (t & (args.distance - 1));
    order(&args.keys[i], &args.keys[i + args.distance], (i & args.size) == 0);
  }
}

RN_KERNEL(rows_merge, rn_rows_merge_args) {
  __shared__ u64 keys[RN_ROWS_CHUNK];
  i64 first = (i64)blockIdx.x * RN_ROWS_CHUNK;
  for (i32 i = threadIdx.x; i < RN_ROWS_CHUNK; i += blockDim.x) keys[i] = args.keys[first + i];
  __syncthreads();
  merge_chunk(keys, first, RN_ROWS_CHUNK, args.size, RN_ROWS_CHUNK / 2);
  for (i32 i = threadIdx.x; i < RN_ROWS_CHUNK; i += blockDim.x) args.keys[first + i] = keys[i];
}
