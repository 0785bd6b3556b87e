// Batch normalisation and its gradient.
//
// Three kernels: sums over chunks of the rows, per channel; merging them; and one pass over the
// elements. Each thread sums distances from its first element, and means and variances are merged
// pairwise, so a large mean does no harm. The order of all sums follows from sizes alone.
#include "prelude.cuh"

#include "nn/batch_norm_args.h"

template <typename T, int V>
struct __align__(sizeof(T) * V) norm_pack {
  T v[V];
};

// Two values of |n| elements: the mean and the sum of squared distances from it, or two sums.
struct norm_pair {
  float n, a, b;
};

// |add| adds an element to two sums; |end| makes a pair of them. |origin| is the thread's first
// element, or the channel's mean.
struct norm_stats {
  static RN_DEVICE void add(norm_pair* pair, float x, float, float origin) {
    float distance = x - origin;
    pair->a += distance;
    pair->b += distance * distance;
  }
  static RN_DEVICE void end(norm_pair* pair, float n, float origin) {
    float mean = n > 0 ? pair->a / n : 0;
    float squares = pair->b - pair->a * mean;
    pair->n = n;
    pair->a = origin + mean;
    pair->b = squares > 0 ? squares : pair->b != pair->b ? pair->b : 0;
  }
  static RN_DEVICE void merge(norm_pair* to, norm_pair from) {
    float n = to->n + from.n;
    if (from.n == 0) return;
    float delta = from.a - to->a, share = from.n / n;
    to->a += delta * share;
    to->b += from.b + delta * delta * to->n * share;
    to->n = n;
  }
};
struct norm_products {
  static RN_DEVICE void add(norm_pair* pair, float x, float dy, float origin) {
    pair->a += dy;
    pair->b += dy * (x - origin);
  }
  static RN_DEVICE void end(norm_pair* pair, float n, float) { pair->n = n; }
  static RN_DEVICE void merge(norm_pair* to, norm_pair from) {
    to->n += from.n;
    to->a += from.a;
    to->b += from.b;
  }
};

// Merges pairs of |count| threads that are |stride| apart in |shared|, a power of two. The first
// thread of each set gets the result.
template <typename M>
RN_DEVICE norm_pair norm_merge(norm_pair own, norm_pair* shared, int at, int rank, int count,
                               int stride) {
  shared[at] = own;
  for (int step = count / 2; step > 0; step /= 2) {
    __syncthreads();
    if (rank < step) {
      M::merge(&own, shared[at + step * stride]);
      shared[at] = own;
    }
  }
  __syncthreads();
  return own;
}

// Channels last. A block has blockDim.x packs of channels and blockDim.y rows at a time.
template <typename T, int V, typename M, bool has_dy>
RN_DEVICE void norm_parts_last(const norm_parts_args& args) {
  typedef norm_pack<T, V> P;
  __shared__ norm_pair shared[256];
  i64 pack = (i64)blockIdx.x * blockDim.x + threadIdx.x, begin = blockIdx.y * args.chunk;
  i64 end = begin + args.chunk < args.rows ? begin + args.chunk : args.rows;
  bool is_inside = pack < args.channels;
  i64 first = begin + threadIdx.y;
  bool has_rows = is_inside && first < end;
  norm_pair pairs[V];
  float origin[V];
  P start;
  if (!has_dy && has_rows) start = ((const P*)args.x)[first * args.channels + pack];
  for (int k = 0; k < V; ++k) {
    pairs[k].n = pairs[k].a = pairs[k].b = 0;
    origin[k] = !has_rows ? 0 : has_dy ? args.mean[pack * V + k] : (float)start.v[k];
  }
  const P *x = (const P*)args.x + pack, *dy = (const P*)args.dy + pack;
#pragma unroll 4
  for (i64 row = has_rows ? first : end; row < end; row += blockDim.y) {
    P item = x[row * args.channels], slope = item;
    if (has_dy) slope = dy[row * args.channels];
    for (int k = 0; k < V; ++k)
      M::add(&pairs[k], (float)item.v[k], (float)slope.v[k], origin[k]);
  }
  float n = has_rows ? (float)((end - first + blockDim.y - 1) / blockDim.y) : 0;
  int at = threadIdx.y * blockDim.x + threadIdx.x;
  float* parts = args.parts + blockIdx.y * 2 * args.channels * V;
  for (int k = 0; k < V; ++k) {
    M::end(&pairs[k], n, origin[k]);
    norm_pair all = norm_merge<M>(pairs[k], shared, at, threadIdx.y, blockDim.y, blockDim.x);
    if (threadIdx.y == 0 && is_inside) {
      parts[pack * V + k] = all.a;
      parts[args.channels * V + pack * V + k] = all.b;
    }
  }
}

// Channels first: a block per channel and chunk.
template <typename T, int V, typename M, bool has_dy>
RN_DEVICE void norm_parts_first(const norm_parts_args& args) {
  typedef norm_pack<T, V> P;
  __shared__ norm_pair shared[256];
  i64 channel = blockIdx.x, begin = blockIdx.y * args.chunk;
  i64 end = begin + args.chunk < args.rows ? begin + args.chunk : args.rows;
  float origin = has_dy ? args.mean[channel] : 0, n = 0;
  norm_pair pairs[V];
  for (int k = 0; k < V; ++k) pairs[k].n = pairs[k].a = pairs[k].b = 0;
#pragma unroll 4
  for (i64 row = begin + threadIdx.x; row < end; row += blockDim.x) {
    i64 outer = args.is_wide ? row / args.inner : rn_div((u32)row, args.inner_div);
    i64 at = (outer * args.channels + channel) * args.inner + (row - outer * args.inner);
    P x = ((const P*)args.x)[at], dy = x;
    if (has_dy) dy = ((const P*)args.dy)[at];
    if (!has_dy && n == 0) origin = (float)x.v[0];
    n += 1;
    for (int k = 0; k < V; ++k) M::add(&pairs[k], (float)x.v[k], (float)dy.v[k], origin);
  }
  for (int k = 0; k < V; ++k) {
    M::end(&pairs[k], n, origin);
    if (k > 0) M::merge(&pairs[0], pairs[k]);
  }
  norm_pair all = norm_merge<M>(pairs[0], shared, threadIdx.x, threadIdx.x, blockDim.x, 1);
  if (threadIdx.x == 0) {
    args.parts[blockIdx.y * 2 * args.channels + channel] = all.a;
    args.parts[(blockIdx.y * 2 + 1) * args.channels + channel] = all.b;
  }
}

// A block has blockDim.x channels; blockDim.y threads share the chunks of each.
template <typename M>
RN_DEVICE norm_pair norm_all_parts(const norm_finish_args& args, i64 channel) {
  __shared__ norm_pair shared[512];
  norm_pair own = {0, 0, 0};
  for (i64 c = threadIdx.y; c < args.chunks && channel < args.channels; c += blockDim.y) {
    i64 left = args.rows - c * args.chunk;
    norm_pair part = {(float)(left < args.chunk ? left : args.chunk),
                      args.parts[2 * c * args.channels + channel],
                      args.parts[(2 * c + 1) * args.channels + channel]};
    M::merge(&own, part);
  }
  return norm_merge<M>(own, shared, threadIdx.y * blockDim.x + threadIdx.x, threadIdx.y,
                       blockDim.y, blockDim.x);
}

RN_KERNEL(finish, norm_finish_args) {
  i64 c = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  norm_pair all = {0, 0, 0};
  if (args.parts) all = norm_all_parts<norm_stats>(args, c);
  if (threadIdx.y != 0 || c >= args.channels) return;
  float mean = args.parts ? all.a : args.mean[c];
  float variance = args.parts ? all.b / (float)args.rows : args.variance[c];
  args.saved_mean[c] = mean;
  args.saved_variance[c] = variance;
  args.factors[c] = args.scale[c] / sqrtf(variance + args.epsilon);
  if (args.parts) {
    float unbiased = variance * ((float)args.rows / (float)(args.rows > 1 ? args.rows - 1 : 1));
    float f = args.average_factor;
    mean = f == 1 ? mean : (1 - f) * args.mean[c] + f * mean;
    variance = f == 1 ? unbiased : (1 - f) * args.variance[c] + f * unbiased;
  }
  args.batch_mean[c] = mean;
  args.batch_variance[c] = variance;
}

RN_KERNEL(finish_gradient, norm_finish_args) {
  i64 c = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  norm_pair all = norm_all_parts<norm_products>(args, c);
  if (threadIdx.y != 0 || c >= args.channels) return;
  float inverse = 1 / sqrtf(args.variance[c] + args.epsilon), rows = (float)args.rows;
  args.doffset[c] = all.a;
  args.dscale[c] = all.b * inverse;
  args.factors[c] = args.scale[c] * inverse;
  // Constant statistics propagate no gradient.
  args.factors[args.channels + c] = args.is_training ? all.a / rows : 0;
  args.factors[2 * args.channels + c] = args.is_training ? inverse * inverse * (all.b / rows) : 0;
}

RN_KERNEL(factor, norm_factor_args) {
  RN_EACH(c, args.count)
  args.factor[c] = args.scale[c] / sqrtf(args.variance[c] + args.epsilon);
}

RN_KERNEL(slopes, norm_factor_args) {
  RN_EACH(c, args.count) {
    float inverse = 1 / sqrtf(args.variance[c] + args.epsilon);
    args.factor[c] = args.scale[c] * inverse;
    args.dscale[c] = args.product_sum[c] * inverse;
    args.mean[c] = args.sum[c] / args.rows;
    args.slope[c] = inverse * inverse * (args.product_sum[c] / args.rows);
  }
}

// The first channel of pack |i|. With channels last, a pack has V channels.
template <int V, bool is_last>
RN_DEVICE i64 norm_channel(const norm_apply_args& args, i64 i) {
  if (args.is_wide) {
    i64 rest = is_last ? i : i / args.inner_div.divisor;
    return rest % args.channels_div.divisor * (is_last ? V : 1);
  }
  u32 rest = is_last ? (u32)i : rn_div((u32)i, args.inner_div);
  u32 channel = rest - rn_div(rest, args.channels_div) * args.channels_div.divisor;
  return (i64)channel * (is_last ? V : 1);
}

template <typename T, int V, bool is_last>
RN_DEVICE void norm_apply(const norm_apply_args& args) {
  typedef norm_pack<T, V> P;
  RN_EACH(i, args.count) {
    i64 first = norm_channel<V, is_last>(args, i);
    P x = ((const P*)args.x)[i], y;
    for (int k = 0; k < V; ++k) {
      i64 c = first + (is_last ? k : 0);
      y.v[k] = (T)(((float)x.v[k] - args.mean[c]) * args.factors[c] + args.offset[c]);
    }
    ((P*)args.to)[i] = y;
  }
}

template <typename T, int V, bool is_last>
RN_DEVICE void norm_gradient(const norm_apply_args& args) {
  typedef norm_pack<T, V> P;
  RN_EACH(i, args.count) {
    i64 first = norm_channel<V, is_last>(args, i);
    P dy = ((const P*)args.dy)[i], x = dy, dx;
    if (args.is_training) x = ((const P*)args.x)[i];
    for (int k = 0; k < V; ++k) {
      i64 c = first + (is_last ? k : 0);
      float value = (float)dy.v[k];
      if (args.is_training)
        value = value - args.factors[args.channels + c] -
                ((float)x.v[k] - args.mean[c]) * args.factors[2 * args.channels + c];
      dx.v[k] = (T)(value * args.factors[c]);
    }
    ((P*)args.to)[i] = dx;
  }
}

#define NORM_OF(pack, N, T, V)                                                                  \
  RN_KERNEL(stats_last##pack##_##N, norm_parts_args) {                                          \
    norm_parts_last<T, V, norm_stats, false>(args);                                             \
  }                                                                                             \
  RN_KERNEL(stats_first##pack##_##N, norm_parts_args) {                                         \
    norm_parts_first<T, V, norm_stats, false>(args);                                            \
  }                                                                                             \
  RN_KERNEL(products_last##pack##_##N, norm_parts_args) {                                       \
    norm_parts_last<T, V, norm_products, true>(args);                                           \
  }                                                                                             \
  RN_KERNEL(products_first##pack##_##N, norm_parts_args) {                                      \
    norm_parts_first<T, V, norm_products, true>(args);                                          \
  }                                                                                             \
  RN_KERNEL(apply_last##pack##_##N, norm_apply_args) { norm_apply<T, V, true>(args); }          \
  RN_KERNEL(apply_first##pack##_##N, norm_apply_args) { norm_apply<T, V, false>(args); }        \
  RN_KERNEL(gradient_last##pack##_##N, norm_apply_args) { norm_gradient<T, V, true>(args); }    \
  RN_KERNEL(gradient_first##pack##_##N, norm_apply_args) { norm_gradient<T, V, false>(args); }
#define NORM(N, T)       \
  NORM_OF(, N, T, 1)     \
  NORM_OF(_pack, N, T, 16 / sizeof(T))
NORM(f16, rn_half)
NORM(bf16, rn_bfloat16)
NORM(f32, float)
