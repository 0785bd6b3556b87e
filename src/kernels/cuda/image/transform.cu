// ImageProjectiveTransform: each output pixel is looked up in the input through a projection.
#include "kernels/cuda/array/produce.cuh"

#include "kernels/cuda/image/transform_args.h"
#include "kernels/image_geometry.h"

// Rounded by itself, as on the CPU: not joined with the addition that follows.
RN_DEVICE float times(float a, float b) { return __fmul_rn(a, b); }

// A float as an element; 0 where an integer cannot hold it.
template <typename T>
RN_DEVICE T element(float value) {
  return (T)value;
}
template <>
RN_DEVICE u8 element<u8>(float value) {
  return value > 0 && value < 256 ? (u8)value : 0;
}
template <>
RN_DEVICE i32 element<i32>(float value) {
  return value > -2147483648.0f && value < 2147483648.0f ? (i32)value : 0;
}
template <>
RN_DEVICE i64 element<i64>(float value) {
  return value > -9.2e18f && value < 9.2e18f ? (i64)value : 0;
}

// One channel of one image of the input.
template <typename T>
struct plane {
  const T* from;
  i64 height, width, depth;
  float fill;
  RN_DEVICE bool has(float y, float x) const {
    return y >= 0 && y < (float)height && x >= 0 && x < (float)width;
  }
  RN_DEVICE T at(float y, float x) const { return from[((i64)y * width + (i64)x) * depth]; }
  RN_DEVICE float read(float y, float x) const { return has(y, x) ? (float)at(y, x) : fill; }
  RN_DEVICE float mix(float y, float x) const {
    float y0 = floorf(y), x0 = floorf(x), y1 = y0 + 1, x1 = x0 + 1;
    float top = times(x1 - x, read(y0, x0)) + times(x - x0, read(y0, x1));
    float bottom = times(x1 - x, read(y1, x0)) + times(x - x0, read(y1, x1));
    return times(y1 - y, top) + times(y - y0, bottom);
  }
};

template <typename T, typename I>
RN_DEVICE void transform(const rn_cuda_transform_args& args) {
  rn_produce(static_cast<T*>(args.out), (I)args.count, [&](I i) {
    I channel, column, row;
    i64 image = rn_split(rn_split(rn_split(i, args.depth, &channel), args.columns, &column),
                         args.rows, &row);
    const float* m = args.matrices + image * args.matrix_step;
    float out_x = (float)column, out_y = (float)row;
    float by = times(m[6], out_x) + times(m[7], out_y) + 1;
    if (by == 0) return element<T>(args.fill);
    const rn_border_t border = (rn_border_t)args.border;
    float x = (times(m[0], out_x) + times(m[1], out_y) + m[2]) / by;
    float y = (times(m[3], out_x) + times(m[4], out_y) + m[5]) / by;
    x = rn_position_inside(border, x, args.width);
    y = rn_position_inside(border, y, args.height);
    const i64 size = args.height * args.width * args.depth.wide;
    plane<T> from = {static_cast<const T*>(args.images) + image * size + channel, args.height,
                     args.width, args.depth.wide, args.fill};
    if (args.is_bilinear) return element<T>(from.mix(y, x));
    float ny = roundf(y), nx = roundf(x);
    return from.has(ny, nx) ? from.at(ny, nx) : element<T>(args.fill);
  });
}

#define TYPED(name, T)                                                             \
  RN_KERNEL(transform_##name, rn_cuda_transform_args) { transform<T, u32>(args); } \
  RN_KERNEL(transform_##name##_wide, rn_cuda_transform_args) { transform<T, i64>(args); }
TYPED(u8, u8)
TYPED(i32, i32)
TYPED(i64, i64)
TYPED(f16, rn_half)
TYPED(bf16, rn_bfloat16)
TYPED(f32, float)
TYPED(f64, double)
