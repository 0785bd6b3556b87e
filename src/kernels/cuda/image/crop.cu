// CropAndResize and its gradients. A box that is not finite is outside of its image; one that names
// no image gives zeros.
#include "kernels/cuda/array/produce.cuh"

#include "kernels/cuda/image/crop_args.h"

// The points of a crop along one axis of its image.
struct crop_axis {
  i64 size, count;  // pixels of the image, points of the crop
  float last, start, scale;
  RN_DEVICE crop_axis(float from, float to, i64 size_, i64 count_) : size(size_), count(count_) {
    last = (float)(size - 1);
    scale = count > 1 ? (to - from) * last / (float)(count - 1) : 0;
    start = count > 1 ? from * last : 0.5f * (from + to) * last;
  }
};

struct crop_place {
  bool is_inside;
  i64 low, high, near;
  float part;
  RN_DEVICE crop_place(const crop_axis& axis, i64 i)
      : is_inside(false), low(0), high(0), near(0), part(0) {
    float at = axis.count > 1 ? axis.start + (float)i * axis.scale : axis.start;
    is_inside = at >= 0 && at <= axis.last;
    if (!is_inside) return;
    low = (i64)floorf(at);
    high = (i64)ceilf(at);
    near = (i64)roundf(at);
    part = at - (float)low;
  }
};

RN_DEVICE crop_axis axis_of(const rn_cuda_crop_args& args, i64 box, bool is_y) {
  const float* c = args.boxes + 4 * box;
  return is_y ? crop_axis(c[0], c[2], args.height, args.crop_height)
              : crop_axis(c[1], c[3], args.width, args.crop_width);
}

// The four pixels around a place.
struct corners {
  float tl, tr, bl, br;
};
template <typename T>
RN_DEVICE corners corners_at(const rn_cuda_crop_args& args, i64 image, const crop_place& y,
                             const crop_place& x, i64 channel) {
  const T* pixels = static_cast<const T*>(args.image) + channel;
  const i64 top = (image * args.height + y.low) * args.width;
  const i64 bottom = (image * args.height + y.high) * args.width, depth = args.depth.wide;
  return {(float)pixels[(top + x.low) * depth], (float)pixels[(top + x.high) * depth],
          (float)pixels[(bottom + x.low) * depth], (float)pixels[(bottom + x.high) * depth]};
}

template <typename T, typename I>
RN_DEVICE void crop(const rn_cuda_crop_args& args) {
  rn_produce(static_cast<float*>(args.out), (I)args.count, [&](I i) {
    I channel, column, row;
    i64 box = rn_split(rn_split(rn_split(i, args.depth, &channel), args.columns, &column),
                       args.rows, &row);
    const i64 image = args.which[box];
    if (image < 0 || image >= args.batch) return 0.0f;
    crop_place y(axis_of(args, box, true), row), x(axis_of(args, box, false), column);
    if (!y.is_inside || !x.is_inside) return args.outside;
    if (args.is_nearest)
      return (float)static_cast<const T*>(
          args.image)[((image * args.height + y.near) * args.width + x.near) * args.depth.wide +
                      channel];
    corners c = corners_at<T>(args, image, y, x, channel);
    float top = c.tl + (c.tr - c.tl) * x.part, bottom = c.bl + (c.br - c.bl) * x.part;
    return top + (bottom - top) * y.part;
  });
}

// The points of a crop that may touch pixel |i|: all between |first| and |end|, and perhaps some
// that do not.
struct crop_range {
  i64 first, end;
  RN_DEVICE crop_range(const crop_axis& axis, i64 i) : first(0), end(axis.count) {
    float a = ((float)i - 1.5f - axis.start) / axis.scale;
    float b = ((float)i + 1.5f - axis.start) / axis.scale;
    float low = a < b ? a : b, high = a < b ? b : a;
    // Not a number where all points are one; then all are tried.
    if (low - 1 > 0) first = low - 1 < (float)axis.count ? (i64)(low - 1) : axis.count;
    if (high + 2 < (float)axis.count) end = high + 2 > 0 ? (i64)(high + 2) : 0;
  }
};

// What a point of a crop adds to pixel |i| along one axis, by its lower and its upper neighbour.
struct crop_weights {
  float low, high;
  bool has_low, has_high;
  RN_DEVICE crop_weights(const crop_place& place, i64 i, bool is_nearest) {
    has_low = place.is_inside && (is_nearest ? place.near : place.low) == i;
    has_high = place.is_inside && !is_nearest && place.high == i;
    low = is_nearest ? 1 : 1 - place.part;
    high = place.part;
  }
};

// Each pixel gathers from all crops of its image, in their order, so that the sum is always the
// same.
template <typename T, typename I>
RN_DEVICE void image_gradient(const rn_cuda_crop_args& args) {
  typedef typename rn_sum_of<T>::type Sum;
  rn_produce(static_cast<T*>(args.out), (I)args.count, [&](I i) {
    I channel, column, row;
    i64 image = rn_split(rn_split(rn_split(i, args.depth, &channel), args.columns, &column),
                         args.rows, &row);
    Sum sum = 0;
    for (i64 box = 0; box < args.box_count; ++box) {
      if (args.which[box] != image) continue;
      crop_axis down = axis_of(args, box, true), across = axis_of(args, box, false);
      crop_range rows(down, row), columns(across, column);
      for (i64 y = rows.first; y < rows.end; ++y) {
        crop_weights v(crop_place(down, y), row, args.is_nearest);
        if (!v.has_low && !v.has_high) continue;
        for (i64 x = columns.first; x < columns.end; ++x) {
          crop_weights h(crop_place(across, x), column, args.is_nearest);
          float g =
              args.grads[((box * args.crop_height + y) * args.crop_width + x) * args.depth.wide +
                         channel];
          if (v.has_low && h.has_low) sum += (Sum)(h.low * (v.low * g));
          if (v.has_low && h.has_high) sum += (Sum)(h.high * (v.low * g));
          if (v.has_high && h.has_low) sum += (Sum)(h.low * (v.high * g));
          if (v.has_high && h.has_high) sum += (Sum)(h.high * (v.high * g));
        }
      }
    }
    return (T)sum;
  });
}

// How one element of a crop changes as the edges of its box move.
template <typename T>
RN_DEVICE void add_edges(const rn_cuda_crop_args& args, i64 box, i64 image, i64 i, double sums[4]) {
  const i64 channel = i % args.depth.wide, point = i / args.depth.wide;
  const i64 row = point / args.crop_width, column = point % args.crop_width;
  crop_axis down = axis_of(args, box, true), across = axis_of(args, box, false);
  crop_place y(down, row), x(across, column);
  if (!y.is_inside || !x.is_inside) return;
  corners c = corners_at<T>(args, image, y, x, channel);
  float g = args.grads[box * args.crop_height * args.crop_width * args.depth.wide + i];
  float along_y =
      down.count > 1 ? (float)row * down.last / (float)(down.count - 1) : 0.5f * down.last;
  float along_x = across.count > 1 ? (float)column * across.last / (float)(across.count - 1)
                                   : 0.5f * across.last;
  float dy = ((1 - x.part) * (c.bl - c.tl) + x.part * (c.br - c.tr)) * g;
  float dx = ((1 - y.part) * (c.tr - c.tl) + y.part * (c.br - c.bl)) * g;
  sums[0] += (double)(dy * (down.count > 1 ? down.last - along_y : along_y));
  sums[2] += (double)(dy * along_y);
  sums[1] += (double)(dx * (across.count > 1 ? across.last - along_x : along_x));
  sums[3] += (double)(dx * along_x);
}

// One block per box.
template <typename T>
RN_DEVICE void box_gradient(const rn_cuda_crop_args& args) {
  RN_SHARED(double, shared);
  const i64 each = args.crop_height * args.crop_width * args.depth.wide;
  const u32 thread = threadIdx.x;
  for (i64 box = blockIdx.x; box < args.box_count; box += gridDim.x) {
    const i64 image = args.which[box];
    double sums[4] = {0, 0, 0, 0};
    if (image >= 0 && image < args.batch)
      for (i64 i = thread; i < each; i += blockDim.x) add_edges<T>(args, box, image, i, sums);
    for (int k = 0; k < 4; ++k) shared[4 * thread + k] = sums[k];
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
      __syncthreads();
      if (thread < half)
        for (int k = 0; k < 4; ++k) shared[4 * thread + k] += shared[4 * (thread + half) + k];
    }
    if (thread == 0)
      for (int k = 0; k < 4; ++k) static_cast<float*>(args.out)[4 * box + k] = (float)shared[k];
    __syncthreads();
  }
}

#define TYPED(name, T)                                                                         \
  RN_KERNEL(crop_##name, rn_cuda_crop_args) { crop<T, u32>(args); }                            \
  RN_KERNEL(crop_##name##_wide, rn_cuda_crop_args) { crop<T, i64>(args); }                     \
  RN_KERNEL(image_gradient_##name, rn_cuda_crop_args) { image_gradient<T, u32>(args); }        \
  RN_KERNEL(image_gradient_##name##_wide, rn_cuda_crop_args) { image_gradient<T, i64>(args); } \
  RN_KERNEL(box_gradient_##name, rn_cuda_crop_args) { box_gradient<T>(args); }
TYPED(f16, rn_half)
TYPED(f32, float)
TYPED(f64, double)
