// Convolutions by their definition, one thread per element of the result. They serve where cuDNN is
// missing or has no engine: any stride, dilation, group, padding and layout.
#include "prelude.cuh"

#include "nn/conv_args.h"

// Coordinates of an element of x or y: batch, planes, rows, columns, channel.
struct conv_at {
  i64 n, p[3], c;
};

RN_DEVICE conv_at conv_split(const conv_args& args, i64 i, bool is_x, i64 depth) {
  conv_at at;
  if (!args.is_channels_first) at.c = i % depth, i /= depth;
  for (int a = 2; a >= 0; --a) {
    i64 size = is_x ? args.axes[a].in : args.axes[a].out;
    at.p[a] = i % size, i /= size;
  }
  if (args.is_channels_first) at.c = i % depth, i /= depth;
  at.n = i;
  return at;
}

// Where the element at (n, p, c) is; *step is the distance to the next channel.
RN_DEVICE i64 conv_offset(const conv_args& args, i64 n, const i64* p, i64 c, bool is_x, i64* step) {
  i64 depth = is_x ? args.in_depth : args.out_depth, pixels = 1, pixel = 0;
  for (int a = 0; a < 3; ++a) {
    i64 size = is_x ? args.axes[a].in : args.axes[a].out;
    pixel = pixel * size + p[a];
    pixels *= size;
  }
  if (args.is_channels_first) {
    *step = pixels;
    return (n * depth + c) * pixels + pixel;
  }
  *step = 1;
  return (n * pixels + pixel) * depth + c;
}

// The position in the input under element |f| of the filter at output |out|; false outside.
RN_DEVICE bool conv_input_at(const conv_axis_args& axis, i64 out, i64 f, i64* in) {
  *in = out * axis.stride - axis.before + f * axis.dilation;
  return *in >= 0 && *in < axis.in;
}
// The output whose element |f| of the filter lies on input |in|; false if there is none.
RN_DEVICE bool conv_output_at(const conv_axis_args& axis, i64 in, i64 f, i64* out) {
  i64 at = in + axis.before - f * axis.dilation;
  *out = at / axis.stride;
  return at >= 0 && at % axis.stride == 0 && *out < axis.out;
}

template <typename T, typename S>
RN_DEVICE void conv_forward(const conv_args& args) {
  const i64 depth = args.in_depth / args.groups, each = args.out_depth / args.groups;
  const conv_axis_args* axes = args.axes;
  RN_EACH(i, args.count) {
    conv_at at = conv_split(args, i, false, args.out_depth);
    i64 first = at.c / each * depth, p[3], step;
    S sum = 0;
    for (i64 a = 0; a < axes[0].filter; ++a) {
      if (!conv_input_at(axes[0], at.p[0], a, &p[0])) continue;
      for (i64 b = 0; b < axes[1].filter; ++b) {
        if (!conv_input_at(axes[1], at.p[1], b, &p[1])) continue;
        for (i64 c = 0; c < axes[2].filter; ++c) {
          if (!conv_input_at(axes[2], at.p[2], c, &p[2])) continue;
          const T* x = (const T*)args.x + conv_offset(args, at.n, p, first, true, &step);
          const T* w = (const T*)args.w +
                       ((a * axes[1].filter + b) * axes[2].filter + c) * depth * args.out_depth +
                       at.c;
          for (i64 k = 0; k < depth; ++k) sum += (S)x[k * step] * (S)w[k * args.out_depth];
        }
      }
    }
    ((T*)args.to)[i] = (T)sum;
  }
}

template <typename T, typename S>
RN_DEVICE void conv_input(const conv_args& args) {
  const i64 depth = args.in_depth / args.groups, each = args.out_depth / args.groups;
  const conv_axis_args* axes = args.axes;
  RN_EACH(i, args.count) {
    conv_at at = conv_split(args, i, true, args.in_depth);
    i64 group = at.c / depth, p[3], step;
    S sum = 0;
    for (i64 a = 0; a < axes[0].filter; ++a) {
      if (!conv_output_at(axes[0], at.p[0], a, &p[0])) continue;
      for (i64 b = 0; b < axes[1].filter; ++b) {
        if (!conv_output_at(axes[1], at.p[1], b, &p[1])) continue;
        for (i64 c = 0; c < axes[2].filter; ++c) {
          if (!conv_output_at(axes[2], at.p[2], c, &p[2])) continue;
          const T* y = (const T*)args.y + conv_offset(args, at.n, p, group * each, false, &step);
          i64 row = ((a * axes[1].filter + b) * axes[2].filter + c) * depth + at.c % depth;
          const T* w = (const T*)args.w + row * args.out_depth + group * each;
          for (i64 k = 0; k < each; ++k) sum += (S)y[k * step] * (S)w[k];
        }
      }
    }
    ((T*)args.to)[i] = (T)sum;
  }
}

// Sums over a piece of the positions each, so that few filters still make many threads.
template <typename T, typename S>
RN_DEVICE void conv_filter(const conv_args& args) {
  const i64 depth = args.in_depth / args.groups, each = args.out_depth / args.groups;
  const conv_axis_args* axes = args.axes;
  RN_EACH(e, args.count * args.parts) {
    i64 i = e % args.count, begin = e / args.count * args.piece, end = begin + args.piece;
    i64 channel = i % args.out_depth, rest = i / args.out_depth;
    i64 in_channel = channel / each * depth + rest % depth, f[3], p[3], q[3], step;
    rest /= depth;
    for (int a = 2; a >= 0; --a) f[a] = rest % axes[a].filter, rest /= axes[a].filter;
    S sum = 0;
    for (i64 k = begin; k < end && k < args.positions; ++k) {
      i64 n = k;
      bool inside = true;
      for (int a = 2; a >= 0; --a) {
        q[a] = n % axes[a].out, n /= axes[a].out;
        inside = conv_input_at(axes[a], q[a], f[a], &p[a]) && inside;
      }
      if (!inside) continue;
      sum += (S)((const T*)args.x)[conv_offset(args, n, p, in_channel, true, &step)] *
             (S)((const T*)args.y)[conv_offset(args, n, q, channel, false, &step)];
    }
    ((S*)args.to)[e] = sum;
  }
}

template <typename T, typename S>
RN_DEVICE void conv_sum(const conv_sum_args& args) {
  RN_EACH(i, args.count) {
    S sum = 0;
    for (i64 k = 0; k < args.parts_count; ++k) sum += ((const S*)args.parts)[k * args.count + i];
    ((T*)args.to)[i] = (T)sum;
  }
}

#define CONV(N, T, S)                                                 \
  RN_KERNEL(forward_##N, conv_args) { conv_forward<T, S>(args); }     \
  RN_KERNEL(input_##N, conv_args) { conv_input<T, S>(args); }         \
  RN_KERNEL(filter_##N, conv_args) { conv_filter<T, S>(args); }       \
  RN_KERNEL(sum_##N, conv_sum_args) { conv_sum<T, S>(args); }
CONV(f16, rn_half, float)
CONV(bf16, rn_bfloat16, float)
CONV(f32, float, float)
CONV(f64, double, double)
CONV(i32, u32, u32)  // wraps

#define TILE 32

// Transposes [rows, columns] in tiles of shared memory, so that reads and writes are coalesced.
template <typename T>
RN_DEVICE void turn_matrix(const T* from, T* to, i64 rows, i64 columns) {
  __shared__ T tile[TILE][TILE + 1];
  i64 across = (columns + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
  for (i64 t = blockIdx.x; t < across * down; t += gridDim.x) {
    i64 row = t / across * TILE, column = t % across * TILE;
    for (int k = threadIdx.y; k < TILE; k += blockDim.y)
      if (row + k < rows && column + threadIdx.x < columns)
        tile[k][threadIdx.x] = from[(row + k) * columns + column + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < TILE; k += blockDim.y)
      if (column + k < columns && row + threadIdx.x < rows)
        to[(column + k) * rows + row + threadIdx.x] = tile[threadIdx.x][k];
    __syncthreads();
  }
}

// [positions, depth, out_depth] and [out_depth, depth, positions].
template <typename T>
RN_DEVICE void turn_first(const conv_turn_args& args) {
  const T* from = (const T*)args.from;
  T* to = (T*)args.to;
  i64 count = args.positions * args.depth * args.out_depth;
  i64 thread = ((i64)blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  for (i64 i = thread; i < count; i += (i64)gridDim.x * blockDim.x * blockDim.y) {
    i64 p = i % args.positions, rest = i / args.positions;
    i64 plain = (p * args.depth + rest % args.depth) * args.out_depth + rest / args.depth;
    if (args.is_back)
      to[plain] = from[i];
    else
      to[i] = from[plain];
  }
}

template <typename T>
RN_DEVICE void turn(const conv_turn_args& args) {
  i64 patch = args.positions * args.depth;
  if (args.is_channels_first)
    turn_first<T>(args);
  else if (args.is_back)
    turn_matrix((const T*)args.from, (T*)args.to, args.out_depth, patch);
  else
    turn_matrix((const T*)args.from, (T*)args.to, patch, args.out_depth);
}
// A block of 32 x 8 threads transposes a tile of 32 x 32.
template <typename From, typename To>
RN_DEVICE void turn_many(const conv_turn_many_args& args) {
  __shared__ To tile[32][33];
  i32 at = blockIdx.x, low = 0, high = args.count;
  while (high - low > 1) {
    i32 middle = (low + high) / 2;
    if (args.filters[middle].first <= at)
      low = middle;
    else
      high = middle;
  }
  const conv_turned_args& filter = args.filters[low];
  i32 number = at - filter.first, down = number / filter.across;
  i64 row = (i64)down * 32, column = (i64)(number - down * filter.across) * 32;
  i64 c = column + threadIdx.x, r = row + threadIdx.x;
#pragma unroll
  for (i32 k = 0; k < 32; k += 8)
    if (row + threadIdx.y + k < filter.rows && c < filter.columns)
      tile[threadIdx.y + k][threadIdx.x] =
          (To)((const From*)filter.from)[(row + threadIdx.y + k) * filter.columns + c];
  __syncthreads();
#pragma unroll
  for (i32 k = 0; k < 32; k += 8)
    if (column + threadIdx.y + k < filter.columns && r < filter.rows)
      ((To*)filter.to)[(column + threadIdx.y + k) * filter.rows + r] =
          tile[threadIdx.x][threadIdx.y + k];
}
RN_KERNEL(turn_many_2, conv_turn_many_args) { turn_many<u16, u16>(args); }
RN_KERNEL(turn_many_4, conv_turn_many_args) { turn_many<u32, u32>(args); }
RN_KERNEL(turn_many_to_f16, conv_turn_many_args) { turn_many<float, rn_half>(args); }
RN_KERNEL(turn_many_to_bf16, conv_turn_many_args) { turn_many<float, rn_bfloat16>(args); }

RN_KERNEL(turn_2, conv_turn_args) { turn<u16>(args); }
RN_KERNEL(turn_4, conv_turn_args) { turn<u32>(args); }
RN_KERNEL(turn_8, conv_turn_args) { turn<u64>(args); }

template <typename T>
RN_DEVICE void pad(const conv_pad_args& args) {
  const i64 inner_size = args.divs[3].divisor;
  RN_EACH(i, args.count) {
    i64 p[4], rest = i;
    for (int a = 3; a >= 0; --a) {
      i64 size = args.divs[a].divisor;
      i64 next = args.is_wide ? rest / size : rn_div((u32)rest, args.divs[a]);
      p[a] = rest - next * size, rest = next;
    }
    bool is_inside = true;
    i64 from = rest;
    for (int a = 0; a < 3; ++a) {
      i64 at = p[a] - args.offsets[a];
      is_inside = is_inside && at >= 0 && at < args.sizes[a];
      from = from * args.sizes[a] + at;
    }
    ((T*)args.to)[i] = is_inside ? ((const T*)args.from)[from * inner_size + p[3]] : T{};
  }
}
RN_KERNEL(pad_2, conv_pad_args) { pad<u16>(args); }
RN_KERNEL(pad_4, conv_pad_args) { pad<u32>(args); }
RN_KERNEL(pad_8, conv_pad_args) { pad<u64>(args); }
RN_KERNEL(pad_16, conv_pad_args) { pad<uint4>(args); }

RN_KERNEL(compare, conv_compare_args) {
  RN_EACH(i, args.count) {
    const float size = fabs(args.b[i]), difference = fabs(args.a[i] - args.b[i]);
    if (!(size - size == 0)) continue;
    atomicMax(&args.most[0], difference - difference == 0 ? rn_float_bits(difference) : 0x7f800000);
    atomicMax(&args.most[1], rn_float_bits(size));
  }
}
