// Copies boxes of elements within the card's memory, fills and adds.
#include "prelude.cuh"

#include "kernels/cuda/array/move_args.h"

// Units that a thread loads before it stores the first: enough loads in flight to hide latency.
#define MOVES_PER_THREAD 4

template <typename Box>
RN_DEVICE void offsets_of(const Box& box, u32 i, int rank, i64* from, i64* to) {
  i64 f = 0, t = 0;
  for (int d = rank - 1; d >= 0; --d) {
    u32 outer = d > 0 ? rn_div(i, box.sizes[d]) : 0;
    i64 at = i - outer * box.sizes[d].divisor;
    f += at * box.from_strides[d];
    t += at * box.to_strides[d];
    i = outer;
  }
  *from = f;
  *to = t;
}

template <typename Unit, typename Box>
RN_DEVICE void move_box(const Box& box) {
  const u32 step = gridDim.x * blockDim.x * MOVES_PER_THREAD;
  for (u32 first = blockIdx.x * blockDim.x * MOVES_PER_THREAD + threadIdx.x; first < box.count;
       first += step) {
    Unit units[MOVES_PER_THREAD];
    i64 to[MOVES_PER_THREAD];
#pragma unroll
    for (int k = 0; k < MOVES_PER_THREAD; ++k) {
      u32 i = first + k * blockDim.x;
      i64 from;
      if (i >= box.count) break;
      offsets_of(box, i, box.rank, &from, &to[k]);
      units[k] = *reinterpret_cast<const Unit*>(box.from + from);
    }
#pragma unroll
    for (int k = 0; k < MOVES_PER_THREAD; ++k) {
      if (first + k * blockDim.x >= box.count) break;
      *reinterpret_cast<Unit*>(box.to + to[k]) = units[k];
    }
  }
}

// A block turns a tile over in shared memory, so that both sides are read and written in order.
// Narrow units have larger tiles, so that a row of a tile has at least 64 bytes.
template <typename Unit>
RN_DEVICE void move_tiles(const rn_cuda_tiles_args& args) {
  const int size = sizeof(Unit) <= 2 ? 64 : 32;
  __shared__ Unit tile[size][size + 1];
  for (u32 n = blockIdx.x; n < args.tiles; n += gridDim.x) {
    u32 rest = rn_div(n, args.row_tiles), outer = rn_div(rest, args.column_tiles);
    u32 row = (n - rest * args.row_tiles.divisor) * size;
    u32 column = (rest - outer * args.column_tiles.divisor) * size;
    i64 from, to;
    offsets_of(args, outer, args.rank, &from, &to);
    for (u32 c = threadIdx.y; c < size; c += blockDim.y)
      for (u32 r = threadIdx.x; r < size; r += blockDim.x)
        if (row + r < args.rows && column + c < args.columns)
          tile[c][r] =
              *reinterpret_cast<const Unit*>(args.from + from + (i64)(row + r) * (i64)sizeof(Unit) +
                                             (i64)(column + c) * args.column_from);
    __syncthreads();
    for (u32 r = threadIdx.y; r < size; r += blockDim.y)
      for (u32 c = threadIdx.x; c < size; c += blockDim.x)
        if (row + r < args.rows && column + c < args.columns)
          *reinterpret_cast<Unit*>(args.to + to + (i64)(row + r) * args.row_to +
                                   (i64)(column + c) * (i64)sizeof(Unit)) = tile[c][r];
    __syncthreads();
  }
}

#define MOVES(Unit, size)                                                                 \
  RN_KERNEL(move_##size, rn_cuda_move_args) { move_box<Unit>(args); }                     \
  RN_KERNEL(boxes_##size, rn_cuda_boxes_args) { move_box<Unit>(args.boxes[blockIdx.y]); } \
  RN_KERNEL(tiles_##size, rn_cuda_tiles_args) { move_tiles<Unit>(args); }
MOVES(u8, 1)
MOVES(u16, 2)
MOVES(u32, 4)
MOVES(u64, 8)
MOVES(uint4, 16)

// The element at |value|, repeated to 16 bytes.
template <typename Unit>
RN_DEVICE uint4 repeated(const char* value) {
  union {
    Unit units[16 / sizeof(Unit)];
    uint4 all;
  } wide;
  for (unsigned i = 0; i < 16 / sizeof(Unit); ++i)
    wide.units[i] = *reinterpret_cast<const Unit*>(value);
  return wide.all;
}

// 16 bytes of the arguments, which are aligned to 8.
RN_DEVICE uint4 joined(const u64* halves) {
  union {
    u64 halves[2];
    uint4 all;
  } wide;
  for (int i = 0; i < 2; ++i) wide.halves[i] = halves[i];
  return wide.all;
}

template <typename Unit>
RN_DEVICE void fill(const rn_cuda_fill_args& args) {
  uint4 wide = args.value ? repeated<Unit>(args.value) : joined(args.bytes);
  const i64 each = 16 / sizeof(Unit);
  // Elements before the first 16-byte boundary, then whole vectors, then the rest.
  i64 head = (16 - (reinterpret_cast<u64>(args.to) & 15)) % 16 / (i64)sizeof(Unit);
  if (head > args.count) head = args.count;
  const i64 vectors = (args.count - head) / each, tail = args.count - head - vectors * each;
  Unit* to = reinterpret_cast<Unit*>(args.to);
  Unit narrow = *reinterpret_cast<const Unit*>(&wide);
  RN_EACH(i, vectors) reinterpret_cast<uint4*>(to + head)[i] = wide;
  RN_EACH(k, head) to[k] = narrow;
  RN_EACH(j, tail) to[head + vectors * each + j] = narrow;
}
#define FILL(Unit, size) \
  RN_KERNEL(fill_##size, rn_cuda_fill_args) { fill<Unit>(args); }
FILL(u8, 1)
FILL(u16, 2)
FILL(u32, 4)
FILL(u64, 8)
FILL(uint4, 16)

template <typename T>
RN_DEVICE void add(const rn_cuda_add_args& args) {
  T* sums = static_cast<T*>(args.sums);
  const T* values = static_cast<const T*>(args.values);
  RN_EACH(i, args.count) sums[i] = (T)(sums[i] + values[i]);
}
#define ADD(T, name) \
  RN_KERNEL(add_##name, rn_cuda_add_args) { add<T>(args); }
ADD(rn_half, f16)
ADD(rn_bfloat16, bf16)
ADD(float, f32)
ADD(double, f64)
ADD(u8, 1)
ADD(u16, 2)
ADD(u32, 4)
ADD(u64, 8)
ADD(rn_complex64, c64)
ADD(rn_complex128, c128)
