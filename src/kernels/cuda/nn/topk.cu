// TopK and InTopK.
//
// Blocks sort chunks of a row in shared memory (bitonic, Batcher 1968) and leave the best of each;
// what is left is sorted again, until one chunk is left. If k is so large that this gains nothing,
// chunks are merged to a sorted row instead.
#include "kernels/cuda/nn/topk_args.h"

RN_DEVICE u64 key_of(u8 x) { return x; }
RN_DEVICE u64 key_of(u16 x) { return x; }
RN_DEVICE u64 key_of(u32 x) { return x; }
RN_DEVICE u64 key_of(u64 x) { return x; }
RN_DEVICE u64 key_of(i64 x) { return (u64)x ^ 1ull << 63; }
RN_DEVICE u64 key_of(i8 x) { return key_of((i64)x); }
RN_DEVICE u64 key_of(i16 x) { return key_of((i64)x); }
RN_DEVICE u64 key_of(i32 x) { return key_of((i64)x); }
// Negative floats in the order of their bits turned over. Both zeros are equal.
RN_DEVICE u64 key_of(float x) {
  u32 bits = x == 0 ? 0 : rn_float_bits(x);
  return bits >> 31 ? ~bits : bits | 1u << 31;
}
RN_DEVICE u64 key_of(double x) {
  u64 bits = x == 0 ? 0 : (u64)__double_as_longlong(x);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
RN_DEVICE u64 key_of(rn_half x) { return key_of((float)x); }
RN_DEVICE u64 key_of(rn_bfloat16 x) { return key_of((float)x); }

#define WORST 0x7fffffffffffffffll  // the place of what pads a chunk

template <typename T>
RN_DEVICE rn_topk_pair pair_at(const T* row, i64 place) {
  return {key_of(row[place]), place};
}
RN_DEVICE rn_topk_pair pair_at(const rn_topk_pair* row, i64 place) { return row[place]; }

RN_DEVICE bool is_better(const rn_topk_pair& a, const rn_topk_pair& b) {
  return a.key > b.key || (a.key == b.key && a.place < b.place);
}
RN_DEVICE void order(rn_topk_pair* a, rn_topk_pair* b, bool best_first) {
  rn_topk_pair x = *a, y = *b;
  if (is_better(y, x) == best_first) *a = y, *b = x;
}

// The steps with distances up to |distance| of a merge of |size|; the chunk begins at |first|.
RN_DEVICE void merge_chunk(rn_topk_pair* pairs, i32 width, i64 first, i64 size, i32 distance) {
  for (; distance > 0; distance /= 2) {
    for (i32 t = threadIdx.x; t < width / 2; t += blockDim.x) {
      i32 i = 2 * t - (t & (distance - 1));
      order(&pairs[i], &pairs[i + distance], ((first + i) & size) == 0);
    }
    __syncthreads();
  }
}

template <typename T>
RN_DEVICE void sort_chunks(const rn_topk_args& args) {
  __shared__ rn_topk_pair pairs[RN_TOPK_CHUNK];
  for (i64 block = blockIdx.x; block < args.rows * args.chunks; block += gridDim.x) {
    const i64 row = block / args.chunks, first = (block - row * args.chunks) * args.width;
    const T* in = static_cast<const T*>(args.in) + row * args.columns;
    for (i32 i = threadIdx.x; i < args.width; i += blockDim.x)
      pairs[i] = first + i < args.columns ? pair_at(in, first + i) : rn_topk_pair{0, WORST};
    __syncthreads();
    for (i32 size = 2; size <= args.width; size *= 2)
      merge_chunk(pairs, args.width, args.alternates ? first : 0, size, size / 2);
    for (i64 i = threadIdx.x; i < args.kept; i += blockDim.x)
      args.pairs[block * args.kept + i] = pairs[i];
    __syncthreads();
  }
}

RN_KERNEL(topk_step, rn_topk_merge_args) {
  RN_EACH(t, args.rows * args.width / 2) {
    i64 i = 2 * t - (t & (args.distance - 1));
    order(&args.pairs[i], &args.pairs[i + args.distance], ((i & (args.width - 1)) & args.size) == 0);
  }
}

RN_KERNEL(topk_merge, rn_topk_merge_args) {
  __shared__ rn_topk_pair pairs[RN_TOPK_CHUNK];
  const i64 chunks = args.rows * args.width / RN_TOPK_CHUNK;
  for (i64 block = blockIdx.x; block < chunks; block += gridDim.x) {
    rn_topk_pair* at = args.pairs + block * RN_TOPK_CHUNK;
    for (i32 i = threadIdx.x; i < RN_TOPK_CHUNK; i += blockDim.x) pairs[i] = at[i];
    __syncthreads();
    merge_chunk(pairs, RN_TOPK_CHUNK, (block * RN_TOPK_CHUNK) & (args.width - 1), args.size,
                RN_TOPK_CHUNK / 2);
    for (i32 i = threadIdx.x; i < RN_TOPK_CHUNK; i += blockDim.x) at[i] = pairs[i];
    __syncthreads();
  }
}

template <typename T>
RN_DEVICE void finish(const rn_topk_finish_args& args) {
  RN_EACH(i, args.rows * args.k) {
    const i64 row = i / args.k, place = args.pairs[row * args.width + (i - row * args.k)].place;
    static_cast<T*>(args.values)[i] = static_cast<const T*>(args.in)[row * args.columns + place];
    if (args.place_size == 4)
      static_cast<i32*>(args.places)[i] = (i32)place;
    else if (args.place_size == 8)
      static_cast<i64*>(args.places)[i] = place;
    else
      static_cast<i16*>(args.places)[i] = (i16)place;
  }
}

#define SORT(T, name) \
  RN_KERNEL(topk_##name, rn_topk_args) { sort_chunks<T>(args); }
SORT(rn_topk_pair, pairs)
SORT(float, f32)
SORT(double, f64)
SORT(rn_half, f16)
SORT(rn_bfloat16, bf16)
SORT(i8, i8)
SORT(i16, i16)
SORT(i32, i32)
SORT(i64, i64)
SORT(u8, u8)
SORT(u16, u16)
SORT(u32, u32)
SORT(u64, u64)
#define FINISH(T, name) \
  RN_KERNEL(topk_finish_##name, rn_topk_finish_args) { finish<T>(args); }
FINISH(u8, 1)
FINISH(u16, 2)
FINISH(u32, 4)
FINISH(u64, 8)

RN_DEVICE i64 int_at(const void* from, i64 i, bool is_wide) {
  return is_wide ? static_cast<const i64*>(from)[i] : static_cast<const i32*>(from)[i];
}
RN_DEVICE bool is_finite(float x) { return (rn_float_bits(x) & 0x7f800000u) != 0x7f800000u; }

// A warp per row. False if it is undefined: the target is no class, or a value is not finite.
RN_KERNEL(in_topk, rn_in_topk_args) {
  const i64 warps = (i64)gridDim.x * (blockDim.x / 32), lane = threadIdx.x % 32;
  const i64 k = args.given_k ? int_at(args.given_k, 0, args.is_wide) : args.k;
  for (i64 row = rn_thread() / 32; row < args.rows; row += warps) {
    const float* x = args.predictions + row * args.classes;
    const i64 target = int_at(args.targets, row, args.is_wide);
    const bool is_class = target >= 0 && target < args.classes;
    const float wanted = is_class ? x[target] : 0;
    i64 more = 0;
    u32 bad = !is_class;
    for (i64 c = lane; c < args.classes; c += 32) {
      bad |= !is_finite(x[c]);
      more += x[c] > wanted;
    }
    for (int mask = 16; mask > 0; mask /= 2) {
      bad |= __shfl_xor_sync(0xffffffffu, bad, mask);
      more += __shfl_xor_sync(0xffffffffu, more, mask);
    }
    if (lane == 0) static_cast<u8*>(args.out)[row] = !bad && more < k;
  }
}
