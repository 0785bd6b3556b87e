// Elements and rows selected by values: places of nonzero elements, distinct values, partitions.
#include "kernels/cuda/array/produce.cuh"
#include "kernels/cuda/array/scan.cuh"

#include "kernels/cuda/array/selected_args.h"

// Two steps before rn_each_flag: sums of tiles, then what is before each.
RN_KERNEL(tile_sums, rn_cuda_scan_args) {
  for (i64 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
    const int each = RN_SCAN_TILE / RN_SCAN_THREADS;
    u32 total;
    rn_block_sums<u32, RN_SCAN_THREADS>(
        rn_flags_set(args, tile * RN_SCAN_TILE + threadIdx.x * each), &total);
    if (threadIdx.x == 0) args.offsets[tile] = total;
  }
}
RN_KERNEL(tile_offsets, rn_cuda_scan_args) {  // one block
  i64 before = 0;
  for (i64 first = 0; first < args.tiles; first += RN_SCAN_THREADS) {
    i64 tile = first + threadIdx.x, total;
    i64 sum =
        rn_block_sums<i64, RN_SCAN_THREADS>(tile < args.tiles ? args.offsets[tile] : 0, &total);
    if (tile < args.tiles) args.offsets[tile] = before + sum;
    before += total;
  }
  if (threadIdx.x == 0) args.offsets[args.tiles] = before;
}

RN_KERNEL(where, rn_cuda_where_args) {
  rn_each_flag(args.scan, [&](i64 i, i64 number) {
    i64* to = args.out + number * args.rank;
    for (int d = args.rank - 1; d > 0; --d) {
      to[d] = i % args.dims[d];
      i /= args.dims[d];
    }
    to[0] = i;
  });
}

// Equal numbers have equal bits, except zeros; NaN equals nothing.
template <typename T>
RN_DEVICE u64 bits_of(T value) {
  if (value == T(0)) return 0;
  u64 bits = 0;
  for (unsigned k = 0; k < sizeof(T); ++k)
    bits |= (u64) reinterpret_cast<const u8*>(&value)[k] << 8 * k;
  return bits;
}
template <typename T>
RN_DEVICE bool same(T a, T b) {
  return a == b;
}
RN_DEVICE bool same(rn_half a, rn_half b) { return (float)a == (float)b; }
RN_DEVICE bool same(rn_bfloat16 a, rn_bfloat16 b) { return (float)a == (float)b; }

// Finds or takes the slot of each value. The first place wins, whatever the order of threads.
template <typename T>
RN_DEVICE void unique_insert(const rn_cuda_unique_args& args) {
  const T* values = static_cast<const T*>(args.values);
  RN_EACH(i, args.scan.count) {
    T value = values[i];
    u64 hash = same(value, value) ? bits_of(value) : (u64)i;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ull;
    i64 at = (i64)((hash ^ hash >> 32) & (u64)(args.capacity - 1));
    for (;; at = (at + 1) & (args.capacity - 1)) {
      i32 found = *const_cast<volatile i32*>(&args.table[at]);
      if (found == -1) found = atomicCAS(&args.table[at], -1, (i32)i);
      if (found == -1) break;
      if (!same(values[found], value)) continue;
      if (i < found) atomicMin(&args.table[at], (i32)i);
      break;
    }
    args.slots[i] = (i32)at;
  }
}
RN_KERNEL(unique_flags, rn_cuda_unique_args) {
  RN_EACH(i, args.scan.count) args.flags[i] = args.table[args.slots[i]] == (i32)i;
}
template <typename T>
RN_DEVICE void unique_values(const rn_cuda_unique_args& args) {
  const T* values = static_cast<const T*>(args.values);
  T* out = static_cast<T*>(args.out);
  rn_each_flag(args.scan, [&](i64 i, i64 number) {
    out[number] = values[i];
    args.numbers[i] = (i32)number;
  });
}
RN_KERNEL(unique_places, rn_cuda_unique_args) {
  RN_EACH(i, args.scan.count) {
    i32 number = args.numbers[args.table[args.slots[i]]];
    if (args.index_size == 4) {
      static_cast<i32*>(args.idx)[i] = number;
      if (args.counts) atomicAdd(static_cast<i32*>(args.counts) + number, 1);
    } else {
      static_cast<i64*>(args.idx)[i] = number;
      if (args.counts) atomicAdd(static_cast<u64*>(args.counts) + number, (u64)1);
    }
  }
}
// The first of each value stays; -1 is in the places of the others.
template <typename T>
RN_DEVICE void unique_spread(const rn_cuda_unique_args& args) {
  const T* values = static_cast<const T*>(args.values);
  T* out = static_cast<T*>(args.out);
  RN_EACH(i, args.scan.count) {
    i32 first = args.table[args.slots[i]];
    out[i] = first == (i32)i ? values[i] : T(-1);
    if (args.index_size == 4)
      static_cast<i32*>(args.idx)[i] = first;
    else
      static_cast<i64*>(args.idx)[i] = first;
  }
}
RN_KERNEL(unique_spread_4, rn_cuda_unique_args) { unique_spread<i32>(args); }
RN_KERNEL(unique_spread_8, rn_cuda_unique_args) { unique_spread<i64>(args); }
#define UNIQUE(T, name)                                                            \
  RN_KERNEL(unique_insert_##name, rn_cuda_unique_args) { unique_insert<T>(args); } \
  RN_KERNEL(unique_values_##name, rn_cuda_unique_args) { unique_values<T>(args); }
UNIQUE(rn_half, f16)
UNIQUE(rn_bfloat16, bf16)
UNIQUE(float, f32)
UNIQUE(double, f64)
UNIQUE(u8, 1)
UNIQUE(u16, 2)
UNIQUE(u32, 4)
UNIQUE(u64, 8)

RN_KERNEL(starts, rn_cuda_starts_args) {
  RN_EACH(part, args.parts + 1) {
    i64 low = 0, high = args.count;
    while (low < high) {
      i64 middle = low + (high - low) / 2;
      if (args.keys[middle] < (u64)part << args.bits)
        low = middle + 1;
      else
        high = middle;
    }
    args.starts[part] = low;
  }
}

template <typename Unit, typename I>
RN_DEVICE void deal(const rn_cuda_deal_args& args) {
  const Unit* data = static_cast<const Unit*>(args.data);
  const u64 mask = ((u64)1 << args.bits) - 1;
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    I column;
    I row = rn_split(i, args.row, &column);
    return data[(i64)(args.keys[row] & mask) * args.row.wide + column];
  });
}
RN_PRODUCE(deal, rn_cuda_deal_args, deal)

template <typename Unit, typename I>
RN_DEVICE void stitch(const rn_cuda_stitch_args& args) {
  rn_produce(static_cast<Unit*>(args.out), (I)args.count, [&](I i) {
    I column;
    const Unit* from = reinterpret_cast<const Unit*>(args.rows[rn_split(i, args.row, &column)]);
    return from ? from[column] : rn_zero<Unit>();
  });
}
RN_PRODUCE(stitch, rn_cuda_stitch_args, stitch)
