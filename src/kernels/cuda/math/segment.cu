// Segment reductions. Every element of the result is computed by one thread in the order of the
// rows, or by one warp if segments are long and elements few: no atomics, so the results do not
// depend on timing. 16-bit floats are summed as float.
#include "kernels/cuda/math/segment_args.h"

RN_DEVICE i64 int_at(const void* from, i64 i, i32 size) {
  if (size == 4) return static_cast<const i32*>(from)[i];
  return size == 8 ? static_cast<const i64*>(from)[i] : static_cast<const i16*>(from)[i];
}

RN_DEVICE bool is_before(const rn_segment_ids& ids, i64 place, i64 segment) {
  if (ids.keys) return ids.keys[place] >> ids.bits < (u64)segment;
  return int_at(ids.ids, place, ids.id_size) < segment;
}

RN_KERNEL(starts, rn_segment_starts_args) {
  RN_EACH(s, args.segments + 1) {
    i64 low = 0, high = args.ids.count;
    while (low < high) {
      i64 middle = low + (high - low) / 2;
      if (is_before(args.ids, middle, s))
        low = middle + 1;
      else
        high = middle;
    }
    args.starts[s] = low;
  }
}

RN_KERNEL(count, rn_segment_count_args) {
  RN_EACH(i, args.count) {
    i64 id = int_at(args.ids, i, args.id_size);
    if (id >= 0 && id < args.limit) atomicAdd(args.counts + id, 1ull);
  }
}

// One block: the keys' rows without repetitions, in order.
RN_KERNEL(unique, rn_segment_unique_args) {
  __shared__ i64 firsts[256];
  i64 before = 0;
  for (i64 base = 0; base < args.count; base += 256) {
    const i64 i = base + threadIdx.x;
    u64 row = 0;
    bool is_first = false;
    if (i < args.count && args.keys[i] != ~0ull) {
      row = args.keys[i] >> args.bits;
      is_first = i == 0 || args.keys[i - 1] >> args.bits != row;
    }
    firsts[threadIdx.x] = is_first;
    __syncthreads();
    i64 rank = before, all = before;
    for (int t = 0; t < 256; ++t) {
      if (t < (int)threadIdx.x) rank += firsts[t];
      all += firsts[t];
    }
    if (is_first) args.starts[rank] = i, args.rows[rank] = (i64)row;
    before = all;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    i64 end = args.count;
    while (end > 0 && args.keys[end - 1] == ~0ull) --end;
    args.starts[before] = end;
    *args.total = before;
  }
}

// The joins of numbers; a new row is the left operand, so that NaN replaces what was there.
template <typename S>
RN_DEVICE S join(i32 kind, S sum, S x) {
  switch (kind) {
    case RN_SEGMENT_PROD:
      return S(sum * x);
    case RN_SEGMENT_MAX:
      return sum > x ? sum : x;
    case RN_SEGMENT_MIN:
      return sum < x ? sum : x;
    default:
      return S(sum + x);
  }
}
template <typename R>
RN_DEVICE rn_complex<R> join(i32 kind, rn_complex<R> sum, rn_complex<R> x) {
  return kind == RN_SEGMENT_PROD ? sum * x : sum + x;
}

template <typename S>
RN_DEVICE S divided(S sum, S by) {
  return by == S(0) ? S(0) : S(sum / by);  // a count may be 0 in a small type
}
template <typename R>
RN_DEVICE rn_complex<R> divided(rn_complex<R> sum, rn_complex<R> by) {
  return {sum.re / by.re, sum.im / by.re};
}

template <typename S>
RN_DEVICE S divisor(i32 end, u64 count) {
  return end == RN_SEGMENT_MEAN ? S((double)count) : S(sqrt((double)count));
}
template <>
RN_DEVICE rn_complex64 divisor(i32, u64 count) {
  return rn_complex64((float)count);
}
template <>
RN_DEVICE rn_complex128 divisor(i32, u64 count) {
  return rn_complex128((double)count);
}

// Rows are scaled by 1 / count or 1 / sqrt(count).
template <typename S>
RN_DEVICE S scale(i32 end, u64 count) {
  return S(1 / (end == RN_SEGMENT_MEAN ? (double)count : sqrt((double)count)));
}
template <>
RN_DEVICE rn_complex64 scale(i32, u64) {
  return rn_complex64(1);
}
template <>
RN_DEVICE rn_complex128 scale(i32, u64) {
  return rn_complex128(1);
}

// Element |column| of the row at |place|.
template <typename T, typename S>
RN_DEVICE S load(const rn_segment_args& args, i64 place, i64 column) {
  i64 row = args.ids.keys ? (i64)(args.ids.keys[place] & ((1ull << args.ids.bits) - 1)) : place;
  if (args.picks) row = int_at(args.picks, row, args.pick_size);
  if (row < 0 || row >= args.limit) return S(0);
  S x = S(static_cast<const T*>(args.data)[row * args.width + column]);
  if (args.divisors && args.end != RN_SEGMENT_PLAIN)
    x = S(x * scale<S>(args.end, args.divisors[row]));
  return x;
}

template <typename T, typename S>
RN_DEVICE void store(const rn_segment_args& args, i64 i, S sum, i64 count) {
  T* out = static_cast<T*>(args.out) + i;
  if (count <= 0) {
    *out = *reinterpret_cast<const T*>(args.empty);
    return;
  }
  if (args.end != RN_SEGMENT_PLAIN && !args.divisors && count > 1)
    sum = divided(sum, divisor<S>(args.end, (u64)count));
  *out = T(sum);
}

template <typename T>
RN_DEVICE void by_threads(const rn_segment_args& args) {
  typedef typename rn_sum_of<T>::type S;
  RN_EACH(i, args.segments * args.width) {
    const i64 segment = i / args.width, column = i - segment * args.width;
    const i64 begin = args.starts[segment], end = args.starts[segment + 1];
    S sum = S(*reinterpret_cast<const T*>(args.empty));
    for (i64 place = begin; place < end; ++place) {
      S x = load<T, S>(args, place, column);
      sum = place == begin && !args.from_empty ? x : join(args.kind, sum, x);
    }
    store<T>(args, i, sum, end - begin);
  }
}

#ifdef RN_EMULATED
#define RN_COPY_BYTES __builtin_memcpy
#else
#define RN_COPY_BYTES memcpy
#endif
template <typename S>
RN_DEVICE S from_lane(S value, int mask) {
  u32 words[(sizeof(S) + 3) / 4] = {0};
  RN_COPY_BYTES(words, &value, sizeof(S));
#pragma unroll
  for (u32 i = 0; i < sizeof words / 4; ++i)
    words[i] = __shfl_xor_sync(0xffffffffu, words[i], mask);
  RN_COPY_BYTES(&value, words, sizeof(S));
  return value;
}

template <typename T>
RN_DEVICE void by_warps(const rn_segment_args& args) {
  typedef typename rn_sum_of<T>::type S;
  const i64 warps = (i64)gridDim.x * (blockDim.x / 32), lane = threadIdx.x % 32;
  for (i64 i = rn_thread() / 32; i < args.segments * args.width; i += warps) {
    const i64 segment = i / args.width, column = i - segment * args.width;
    const i64 begin = args.starts[segment], end = args.starts[segment + 1];
    const i64 own = begin + lane;
    S sum = own < end ? load<T, S>(args, own, column) : S(0);
    for (i64 place = own + 32; place < end; place += 32)
      sum = join(args.kind, sum, load<T, S>(args, place, column));
    // A segment has at least 32 rows, or some lanes have nothing to add.
    for (int mask = 16; mask > 0; mask /= 2) {
      S other = from_lane(sum, mask);
      const bool has_own = begin + lane < end, has_other = begin + (lane ^ mask) < end;
      sum = has_own && has_other ? join(args.kind, sum, other) : has_own ? sum : other;
    }
    if (lane == 0) store<T>(args, i, sum, end - begin);
  }
}

#define KERNELS(T, name)                                                   \
  RN_KERNEL(by_threads_##name, rn_segment_args) { by_threads<T>(args); } \
  RN_KERNEL(by_warps_##name, rn_segment_args) { by_warps<T>(args); }
KERNELS(float, f32)
KERNELS(double, f64)
KERNELS(rn_half, f16)
KERNELS(rn_bfloat16, bf16)
KERNELS(rn_complex64, c64)
KERNELS(rn_complex128, c128)
KERNELS(i8, i8)
KERNELS(i16, i16)
KERNELS(i32, i32)
KERNELS(i64, i64)
KERNELS(u8, u8)
KERNELS(u16, u16)
KERNELS(u32, u32)
KERNELS(u64, u64)
