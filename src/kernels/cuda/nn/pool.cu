// Pooling and its gradients, over [outer, planes, rows, columns, inner].
//
// One thread makes one element of the result, or 16 bytes of them where inner allows. Gradients
// gather: the thread of an element of x looks at the windows that contain it, in their order, so
// results do not depend on timing.
#include "prelude.cuh"

#include "nn/pool_args.h"

template <typename T, int V>
struct __align__(sizeof(T) * V) pool_pack {
  T v[V];
};

template <typename T>
struct pool_lowest;
template <>
struct pool_lowest<float> {
  static RN_DEVICE float value() { return -3.402823466e+38f; }
};
template <>
struct pool_lowest<double> {
  static RN_DEVICE double value() { return -1.7976931348623157e+308; }
};
template <>
struct pool_lowest<rn_half> {
  static RN_DEVICE float value() { return -65504.0f; }
};
template <>
struct pool_lowest<rn_bfloat16> {
  static RN_DEVICE float value() { return -3.38953139e+38f; }
};

// Where an element is.
struct pool_at {
  i64 outer, inner;
  i32 p[3];
};

RN_DEVICE pool_at pool_split(const pool_args& args, i64 i) {
  pool_at at;
  if (!args.is_wide) {
    u32 rest = (u32)i, next = rn_div(rest, args.divs[3]);
    at.inner = rest - next * args.divs[3].divisor;
    for (int a = 2; a >= 0; --a) {
      rest = next;
      next = rn_div(rest, args.divs[a]);
      at.p[a] = (i32)(rest - next * args.divs[a].divisor);
    }
    at.outer = next;
    return at;
  }
  at.inner = i % args.divs[3].divisor, i /= args.divs[3].divisor;
  for (int a = 2; a >= 0; --a)
    at.p[a] = (i32)(i % args.divs[a].divisor), i /= args.divs[a].divisor;
  at.outer = i;
  return at;
}

struct pool_box {
  i32 begin[3], end[3];
};

// The window of an output, clipped to the input.
RN_DEVICE void pool_window(const pool_axis_args& axis, i32 out, i32* begin, i32* end) {
  i32 first = out * axis.stride - axis.before, last = first + axis.filter;
  *begin = first < 0 ? 0 : first;
  *end = last > axis.in ? axis.in : last;
}
RN_DEVICE pool_box pool_windows(const pool_args& args, const i32* p) {
  pool_box box;
  for (int a = 0; a < 3; ++a) pool_window(args.axes[a], p[a], &box.begin[a], &box.end[a]);
  return box;
}
// The outputs whose windows contain an element of the input.
RN_DEVICE pool_box pool_covering(const pool_args& args, const i32* p) {
  pool_box box;
  for (int a = 0; a < 3; ++a) {
    const pool_axis_args& axis = args.axes[a];
    i32 at = p[a] + axis.before, first = at - axis.filter + axis.stride;
    box.begin[a] = first < 0 ? 0 : (i32)rn_div((u32)first, axis.by_stride);
    box.end[a] = (i32)rn_div((u32)at, axis.by_stride) + 1;
    if (box.end[a] > axis.out) box.end[a] = axis.out;
  }
  return box;
}
#define POOL_EACH(box, a, b, c)                      \
  for (i32 a = (box).begin[0]; a < (box).end[0]; ++a) \
    for (i32 b = (box).begin[1]; b < (box).end[1]; ++b) \
      for (i32 c = (box).begin[2]; c < (box).end[2]; ++c)

RN_DEVICE i64 pool_in_size(const pool_args& args) {
  return (i64)args.axes[0].in * args.axes[1].in * args.axes[2].in;
}
RN_DEVICE i64 pool_out_size(const pool_args& args) {
  return (i64)args.axes[0].out * args.axes[1].out * args.axes[2].out;
}
// Elements (or packs) of one outer slice, from its element |inner| on.
template <typename P>
RN_DEVICE P* pool_slice(P* base, i64 slice, i64 size, const pool_args& args, i64 inner) {
  return base + slice * size * args.inner + inner;
}
RN_DEVICE i64 pool_pixel_in(const pool_args& args, i32 a, i32 b, i32 c) {
  return ((i64)a * args.axes[1].in + b) * args.axes[2].in + c;
}
RN_DEVICE i64 pool_pixel_out(const pool_args& args, i32 a, i32 b, i32 c) {
  return ((i64)a * args.axes[1].out + b) * args.axes[2].out + c;
}

template <typename T, int V>
RN_DEVICE void pool_max(const pool_args& args) {
  typedef typename rn_sum_of<T>::type S;
  typedef pool_pack<T, V> P;
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_windows(args, at.p);
    const P* x = pool_slice((const P*)args.x, at.outer, pool_in_size(args), args, at.inner);
    bool is_empty = box.begin[0] >= box.end[0] || box.begin[1] >= box.end[1] ||
                    box.begin[2] >= box.end[2];
    S best[V], start = pool_lowest<T>::value();
    if (args.is_volume && !is_empty) start = -rn_float_from_bits(0x7f800000);
    for (int k = 0; k < V; ++k) best[k] = start;
    POOL_EACH(box, a, b, c) {
      P item = x[pool_pixel_in(args, a, b, c) * args.inner];
      for (int k = 0; k < V; ++k) {
        S value = (S)item.v[k];
        if (value > best[k] || (args.is_volume && value != value)) best[k] = value;
      }
    }
    P out;
    for (int k = 0; k < V; ++k) out.v[k] = (T)best[k];
    ((P*)args.to)[i] = out;
  }
}

template <typename T, int V>
RN_DEVICE void pool_average(const pool_args& args) {
  typedef typename rn_sum_of<T>::type S;
  typedef pool_pack<T, V> P;
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_windows(args, at.p);
    const P* x = pool_slice((const P*)args.x, at.outer, pool_in_size(args), args, at.inner);
    i64 count = 0;
    S sum[V];
    for (int k = 0; k < V; ++k) sum[k] = 0;
    POOL_EACH(box, a, b, c) {
      P item = x[pool_pixel_in(args, a, b, c) * args.inner];
      for (int k = 0; k < V; ++k) sum[k] += (S)item.v[k];
      ++count;
    }
    if (args.is_volume && count == 0) count = 1;
    P out;
    for (int k = 0; k < V; ++k) out.v[k] = (T)(sum[k] / (S)count);
    ((P*)args.to)[i] = out;
  }
}

// The pixel of each window's maximum, int32: the first element counts even if it is NaN, later ones
// only if they are greater.
template <typename T, int V>
RN_DEVICE void pool_find(const pool_args& args, const pool_at& at, T* best, i32* place) {
  typedef typename rn_sum_of<T>::type S;
  typedef pool_pack<T, V> P;
  pool_box box = pool_windows(args, at.p);
  const P* x = pool_slice((const P*)args.x, at.outer, pool_in_size(args), args, at.inner);
  for (int k = 0; k < V; ++k) best[k] = (T)pool_lowest<T>::value(), place[k] = -1;
  POOL_EACH(box, a, b, c) {
    i64 pixel = pool_pixel_in(args, a, b, c);
    P item = x[pixel * args.inner];
    for (int k = 0; k < V; ++k)
      if (place[k] < 0 || (S)best[k] < (S)item.v[k]) best[k] = item.v[k], place[k] = (i32)pixel;
  }
}

// The number of element |p| of x in the window of output |at|.
RN_DEVICE i32 pool_number(const pool_args& args, const i32* at, i32 p0, i32 p1, i32 p2) {
  const pool_axis_args *x = &args.axes[0], *y = &args.axes[1], *z = &args.axes[2];
  i32 a = p0 - at[0] * x->stride + x->before, b = p1 - at[1] * y->stride + y->before;
  return (a * y->filter + b) * z->filter + (p2 - at[2] * z->stride + z->before);
}

// The number of each window's maximum in the window; the largest number there is if it is empty.
template <typename T, int V, typename Q>
RN_DEVICE void pool_place_as(const pool_args& args) {
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_pack<Q, V> place;
    T best[V];
    i32 pixels[V];
    pool_find<T, V>(args, at, best, pixels);
    for (int k = 0; k < V; ++k) {
      i32 row = pixels[k] / args.axes[2].in, column = pixels[k] - row * args.axes[2].in;
      i32 plane = row / args.axes[1].in;
      place.v[k] = (Q)-1;
      if (pixels[k] >= 0)
        place.v[k] =
            (Q)pool_number(args, at.p, plane, row - plane * args.axes[1].in, column);
    }
    ((pool_pack<Q, V>*)args.to)[i] = place;
  }
}
template <typename T, int V>
RN_DEVICE void pool_place(const pool_args& args) {
  pool_place_as<T, V, u8>(args);
}
template <typename T, int V>
RN_DEVICE void pool_place_wide(const pool_args& args) {
  pool_place_as<T, V, u32>(args);
}

// dx where no element is in two windows: the thread of a window writes all of it.
template <typename T, int V>
RN_DEVICE void pool_max_spread(const pool_args& args) {
  typedef pool_pack<T, V> P;
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_windows(args, at.p);
    T best[V];
    i32 place[V];
    pool_find<T, V>(args, at, best, place);
    P dy = ((const P*)args.dy)[i];
    P* dx = pool_slice((P*)args.to, at.outer, pool_in_size(args), args, at.inner);
    POOL_EACH(box, a, b, c) {
      i64 pixel = pool_pixel_in(args, a, b, c);
      P out;
      for (int k = 0; k < V; ++k) out.v[k] = place[k] == (i32)pixel ? dy.v[k] : (T)0.0f;
      dx[pixel * args.inner] = out;
    }
  }
}

template <typename T>
RN_DEVICE void pool_argmax(const pool_args& args) {
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    i32 place;
    T best;
    pool_find<T, 1>(args, at, &best, &place);
    i64 index = place * args.inner + at.inner;
    if (args.includes_batch) index += at.outer * pool_in_size(args) * args.inner;
    ((T*)args.to)[i] = best;
    if (args.is_small)
      ((i32*)args.argmax)[i] = (i32)index;
    else
      ((i64*)args.argmax)[i] = index;
  }
}

// dx from dy and the places of the maxima.
template <typename T, int V, typename Q>
RN_DEVICE void pool_max_gradient_as(const pool_args& args) {
  typedef typename rn_sum_of<T>::type S;
  typedef pool_pack<T, V> P;
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_covering(args, at.p);
    i64 size = pool_out_size(args);
    const P* dy = pool_slice((const P*)args.dy, at.outer, size, args, at.inner);
    const pool_pack<Q, V>* places =
        pool_slice((const pool_pack<Q, V>*)args.places, at.outer, size, args, at.inner);
    S sum[V];
    for (int k = 0; k < V; ++k) sum[k] = 0;
    POOL_EACH(box, a, b, c) {
      i64 pixel = pool_pixel_out(args, a, b, c) * args.inner;
      i32 window[3] = {a, b, c};
      Q own = (Q)pool_number(args, window, at.p[0], at.p[1], at.p[2]);
      pool_pack<Q, V> place = places[pixel];
      P item = dy[pixel];
      for (int k = 0; k < V; ++k)
        if (place.v[k] == own) sum[k] += (S)item.v[k];
    }
    P out;
    for (int k = 0; k < V; ++k) out.v[k] = (T)sum[k];
    ((P*)args.to)[i] = out;
  }
}
template <typename T, int V>
RN_DEVICE void pool_max_gradient(const pool_args& args) {
  pool_max_gradient_as<T, V, u8>(args);
}
template <typename T, int V>
RN_DEVICE void pool_max_gradient_wide(const pool_args& args) {
  pool_max_gradient_as<T, V, u32>(args);
}

// Volumes: every element that equals the maximum gets the gradient.
template <typename T, int V>
RN_DEVICE void pool_equal_gradient(const pool_args& args) {
  typedef typename rn_sum_of<T>::type S;
  typedef pool_pack<T, V> P;
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_covering(args, at.p);
    i64 size = pool_out_size(args);
    const P* dy = pool_slice((const P*)args.dy, at.outer, size, args, at.inner);
    const P* pooled = pool_slice((const P*)args.pooled, at.outer, size, args, at.inner);
    P x = ((const P*)args.x)[i];
    S sum[V];
    for (int k = 0; k < V; ++k) sum[k] = 0;
    POOL_EACH(box, a, b, c) {
      i64 pixel = pool_pixel_out(args, a, b, c) * args.inner;
      P most = pooled[pixel], item = dy[pixel];
      for (int k = 0; k < V; ++k)
        if ((S)x.v[k] == (S)most.v[k]) sum[k] += (S)item.v[k];
    }
    P out;
    for (int k = 0; k < V; ++k) out.v[k] = (T)sum[k];
    ((P*)args.to)[i] = out;
  }
}

template <typename T, int V>
RN_DEVICE void pool_average_gradient(const pool_args& args) {
  typedef typename rn_sum_of<T>::type S;
  typedef pool_pack<T, V> P;
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_covering(args, at.p);
    const P* dy = pool_slice((const P*)args.dy, at.outer, pool_out_size(args), args, at.inner);
    S sum[V];
    for (int k = 0; k < V; ++k) sum[k] = 0;
    POOL_EACH(box, a, b, c) {
      const i32 p[3] = {a, b, c};
      pool_box window = pool_windows(args, p);
      S count = 1;
      for (int d = 0; d < 3; ++d) count *= (S)(window.end[d] - window.begin[d]);
      P item = dy[pool_pixel_out(args, a, b, c) * args.inner];
      S scale = 1 / count;
      for (int k = 0; k < V; ++k)
        sum[k] += args.is_volume ? (S)item.v[k] / count : (S)item.v[k] * scale;
    }
    P out;
    for (int k = 0; k < V; ++k) out.v[k] = (T)sum[k];
    ((P*)args.to)[i] = out;
  }
}

// The value of dy, here of the shape of x, where x first equals the maximum; 0 if it never does.
template <typename T, int V>
RN_DEVICE void pool_second(const pool_args& args) {
  typedef typename rn_sum_of<T>::type S;
  typedef pool_pack<T, V> P;
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_windows(args, at.p);
    i64 size = pool_in_size(args);
    const P* x = pool_slice((const P*)args.x, at.outer, size, args, at.inner);
    const P* dy = pool_slice((const P*)args.dy, at.outer, size, args, at.inner);
    P most = ((const P*)args.pooled)[i], out;
    bool found[V];
    for (int k = 0; k < V; ++k) out.v[k] = (T)0.0f, found[k] = false;
    POOL_EACH(box, a, b, c) {
      i64 pixel = pool_pixel_in(args, a, b, c) * args.inner;
      P item = x[pixel], value = dy[pixel];
      for (int k = 0; k < V; ++k)
        if (!found[k] && (S)item.v[k] == (S)most.v[k]) out.v[k] = value.v[k], found[k] = true;
    }
    ((P*)args.to)[i] = out;
  }
}

// The pixel and channel that the argmax of element |i| of y names; false outside its image.
RN_DEVICE bool pool_named(const pool_args& args, const pool_at& at, i64 i, i64* index) {
  i64 size = pool_in_size(args) * args.inner;
  *index = ((const i64*)args.places)[i];
  if (args.includes_batch) *index -= at.outer * size;
  return *index >= 0 && *index < size;
}

template <typename T>
RN_DEVICE void pool_argmax_gradient(const pool_args& args) {
  typedef typename rn_sum_of<T>::type S;
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_covering(args, at.p);
    i64 own = pool_pixel_in(args, at.p[0], at.p[1], at.p[2]) * args.inner + at.inner, index;
    i64 first = at.outer * pool_out_size(args) * args.inner + at.inner;
    S sum = 0;
    POOL_EACH(box, a, b, c) {
      i64 y = first + pool_pixel_out(args, a, b, c) * args.inner;
      if (pool_named(args, at, y, &index) && index == own) sum += (S)((const T*)args.dy)[y];
    }
    ((T*)args.to)[i] = (T)sum;
  }
}

RN_DEVICE void pool_add(float* to, float value) { atomicAdd(to, value); }
RN_DEVICE void pool_add(double* to, double value) { atomicAdd(to, value); }
template <typename T>
RN_DEVICE void pool_add(T* to, T value) {
  u64 address = (u64)to;
  u32* word = (u32*)(address & ~(u64)3);
  int shift = address & 2 ? 16 : 0;
  u32 old = *word, seen;
  do {
    seen = old;
    T sum;
    sum.bits = (u16)(seen >> shift);
    sum = (T)((float)sum + (float)value);
    old = atomicCAS(word, seen, (seen & ~(0xffffu << shift)) | (u32)sum.bits << shift);
  } while (old != seen);
}

// Adds what pool_argmax_gradient did not see: gradients for an element outside of the window, which
// only a caller that makes up indices gives. Their order is not determined, as in stock.
template <typename T>
RN_DEVICE void pool_argmax_strays(const pool_args& args) {
  RN_EACH(i, args.count) {
    pool_at at = pool_split(args, i);
    pool_box box = pool_windows(args, at.p);
    i64 index;
    if (!pool_named(args, at, i, &index)) continue;
    i64 pixel = index / args.inner;
    i32 c = (i32)(pixel % args.axes[2].in), b = (i32)(pixel / args.axes[2].in);
    bool inside = index % args.inner == at.inner && b >= box.begin[1] && b < box.end[1] &&
                  c >= box.begin[2] && c < box.end[2];
    if (!inside)
      pool_add((T*)args.to + at.outer * pool_in_size(args) * args.inner + index,
               ((const T*)args.dy)[i]);
  }
}

#define POOL_PACKED(name, N, T)                                                  \
  RN_KERNEL(name##_##N, pool_args) { pool_##name<T, 1>(args); }                  \
  RN_KERNEL(name##_pack_##N, pool_args) { pool_##name<T, 16 / sizeof(T)>(args); }
#define POOL(N, T)                                                       \
  POOL_PACKED(max, N, T)                                                 \
  POOL_PACKED(average, N, T)                                             \
  POOL_PACKED(place, N, T)                                               \
  POOL_PACKED(place_wide, N, T)                                          \
  POOL_PACKED(max_spread, N, T)                                          \
  POOL_PACKED(max_gradient, N, T)                                        \
  POOL_PACKED(max_gradient_wide, N, T)                                   \
  POOL_PACKED(equal_gradient, N, T)                                      \
  POOL_PACKED(average_gradient, N, T)                                    \
  POOL_PACKED(second, N, T)                                              \
  RN_KERNEL(argmax_##N, pool_args) { pool_argmax<T>(args); }             \
  RN_KERNEL(argmax_gradient_##N, pool_args) { pool_argmax_gradient<T>(args); } \
  RN_KERNEL(argmax_strays_##N, pool_args) { pool_argmax_strays<T>(args); }
POOL(f16, rn_half)
POOL(bf16, rn_bfloat16)
POOL(f32, float)
POOL(f64, double)
