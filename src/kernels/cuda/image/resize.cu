// Images resized by bilinear interpolation and by nearest neighbours, and the gradients.
#include "kernels/cuda/array/produce.cuh"

#include "kernels/cuda/image/resize_args.h"

RN_DEVICE i64 bounded(i64 i, i64 size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

// The pixels of the original that pixel |i| of the resized image is made from, along one axis.
struct bilinear {
  i64 low, high;
  float part;  // the weight of |high|
  RN_DEVICE bilinear(const rn_cuda_resize_args& args, int axis, i64 i) {
    float scale = args.scale[axis];
    // The product rounds, as on the CPU: the weights depend on its last digits.
    float place =
        args.half_pixel_centers ? __fmul_rn((float)i + 0.5f, scale) - 0.5f : (float)i * scale;
    float below = floorf(place);
    i64 last = args.in[axis] - 1;
    high = (i64)ceilf(place);
    if (high > last) high = last;
    low = below > 0 ? (i64)below : 0;
    if (low > high) low = high;
    part = place - below;
  }
};
struct nearest {
  i64 low, high;  // the same pixel
  RN_DEVICE nearest(const rn_cuda_resize_args& args, int axis, i64 i) {
    float place = (args.half_pixel_centers ? (float)i + 0.5f : (float)i) * args.scale[axis];
    low = high = bounded((i64)(args.align_corners ? roundf(place) : floorf(place)), args.in[axis]);
  }
};

template <typename T, typename I>
RN_DEVICE void resize_bilinear(const rn_cuda_resize_args& args) {
  const T* from = static_cast<const T*>(args.from);
  rn_produce(static_cast<float*>(args.to), (I)args.count, [&](I i) {
    I channel, column, row;
    i64 image = rn_split(rn_split(rn_split(i, args.depth, &channel), args.columns, &column),
                         args.rows, &row);
    bilinear y(args, 0, row), x(args, 1, column);
    const i64 depth = args.depth.wide;
    const T* top = from + ((image * args.in[0] + y.low) * args.in[1]) * depth + channel;
    const T* bottom = from + ((image * args.in[0] + y.high) * args.in[1]) * depth + channel;
    float tl = (float)top[x.low * depth], tr = (float)top[x.high * depth];
    float bl = (float)bottom[x.low * depth], br = (float)bottom[x.high * depth];
    if (args.is_same) return tl;
    float upper = tl + (tr - tl) * x.part, lower = bl + (br - bl) * x.part;
    return upper + (lower - upper) * y.part;
  });
}

// A unit is a part of a pixel.
template <typename Unit, typename I>
RN_DEVICE void resize_nearest(const rn_cuda_resize_args& args) {
  const Unit* from = static_cast<const Unit*>(args.from);
  rn_produce(static_cast<Unit*>(args.to), (I)args.count, [&](I i) {
    I channel, column, row;
    i64 image = rn_split(rn_split(rn_split(i, args.depth, &channel), args.columns, &column),
                         args.rows, &row);
    nearest y(args, 0, row), x(args, 1, column);
    return from[((image * args.in[0] + y.low) * args.in[1] + x.low) * args.depth.wide + channel];
  });
}
RN_PRODUCE(nearest, rn_cuda_resize_args, resize_nearest)

// The first pixel of the resized image that is made from pixel |i| of the original or a later one.
// The pixels that it is made from never decrease, so a guess is enough to find it.
template <typename Taps>
RN_DEVICE i64 first_of(const rn_cuda_resize_args& args, int axis, i64 i) {
  float guess = ((float)i - 1.0f) / args.scale[axis];
  i64 at = guess > 0 ? bounded((i64)guess, args.out[axis]) : 0;
  while (at > 0 && Taps(args, axis, at - 1).high >= i) --at;
  while (at < args.out[axis] && Taps(args, axis, at).high < i) ++at;
  return at;
}

// Each pixel of the original gathers, in the order of the resized image, so that the sum is always
// the same. |add| takes the address of a pixel of the resized image and its taps.
template <typename Taps, typename F, typename Add>
RN_DEVICE void gather(const rn_cuda_resize_args& args, const F* from, i64 image, i64 row,
                      i64 column, Add add) {
  const i64 left = first_of<Taps>(args, 1, column);
  for (i64 y = first_of<Taps>(args, 0, row); y < args.out[0]; ++y) {
    Taps down(args, 0, y);
    if (down.low > row) break;
    for (i64 x = left; x < args.out[1]; ++x) {
      Taps across(args, 1, x);
      if (across.low > column) break;
      add(from[((image * args.out[0] + y) * args.out[1] + x) * args.depth.wide], down, across);
    }
  }
}

template <typename T, typename I>
RN_DEVICE void bilinear_gradient(const rn_cuda_resize_args& args) {
  typedef typename rn_sum_of<T>::type Sum;
  const float* from = static_cast<const float*>(args.from);
  rn_produce(static_cast<T*>(args.to), (I)args.count, [&](I i) {
    I channel, column, row;
    i64 image = rn_split(rn_split(rn_split(i, args.depth, &channel), args.columns, &column),
                         args.rows, &row);
    Sum sum = 0;
    gather<bilinear>(args, from + channel, image, row, column,
                     [&](float dy, const bilinear& down, const bilinear& across) {
                       for (int k = 0; k < 4; ++k)
                         if ((k < 2 ? down.low : down.high) == (i64)row &&
                             (k % 2 ? across.high : across.low) == (i64)column)
                           sum += (Sum)(dy * (k < 2 ? 1 - down.part : down.part) *
                                        (k % 2 ? across.part : 1 - across.part));
                     });
    return (T)sum;
  });
}

template <typename T, typename I>
RN_DEVICE void nearest_gradient(const rn_cuda_resize_args& args) {
  typedef typename rn_sum_of<T>::type Sum;
  const T* from = static_cast<const T*>(args.from);
  rn_produce(static_cast<T*>(args.to), (I)args.count, [&](I i) {
    I channel, column, row;
    i64 image = rn_split(rn_split(rn_split(i, args.depth, &channel), args.columns, &column),
                         args.rows, &row);
    Sum sum = 0;
    gather<nearest>(args, from + channel, image, row, column,
                    [&](T dy, const nearest&, const nearest&) { sum += (Sum)dy; });
    return (T)sum;
  });
}

#define TYPED(name, T)                                                                          \
  RN_KERNEL(bilinear_##name, rn_cuda_resize_args) { resize_bilinear<T, u32>(args); }            \
  RN_KERNEL(bilinear_gradient_##name, rn_cuda_resize_args) { bilinear_gradient<T, u32>(args); } \
  RN_KERNEL(nearest_gradient_##name, rn_cuda_resize_args) { nearest_gradient<T, u32>(args); }   \
  RN_KERNEL(bilinear_##name##_wide, rn_cuda_resize_args) { resize_bilinear<T, i64>(args); }     \
  RN_KERNEL(bilinear_gradient_##name##_wide, rn_cuda_resize_args) {                             \
    bilinear_gradient<T, i64>(args);                                                            \
  }                                                                                             \
  RN_KERNEL(nearest_gradient_##name##_wide, rn_cuda_resize_args) { nearest_gradient<T, i64>(args); }
TYPED(f16, rn_half)
TYPED(bf16, rn_bfloat16)
TYPED(f32, float)
TYPED(f64, double)
