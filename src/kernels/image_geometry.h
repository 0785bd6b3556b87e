// Geometry of images: one source in the common subset of C and CUDA C++, for the kernels of the CPU
// and of the GPU. CUDA C++ includes prelude.cuh first, which defines RN_DEVICE.
#ifndef RUNNEL_KERNELS_IMAGE_GEOMETRY_H_
#define RUNNEL_KERNELS_IMAGE_GEOMETRY_H_

#ifdef RN_DEVICE
#define RN_GEOMETRY RN_DEVICE
#else
#include <math.h>
#define RN_GEOMETRY static inline
#endif

// How an image continues beyond its edges.
typedef enum rn_border_t {
  RN_BORDER_CONSTANT,
  RN_BORDER_REFLECT,
  RN_BORDER_WRAP,
  RN_BORDER_NEAREST,
} rn_border_t;

// [abcd] continues as [aaaa|abcd|dddd].
RN_GEOMETRY float rn_position_clamp(float x, long long size) {
  return x < 0 ? 0 : x > (float)(size - 1) ? (float)(size - 1) : x;
}

// [abcd] continues as [dcba|abcd|dcba].
RN_GEOMETRY float rn_position_reflect(float x, long long size) {
  float twice = (float)(2 * size);
  if (size <= 1) return 0;
  if (x < 0) {
    x += twice * truncf(-x / twice);
    x = x < -(float)size ? x + twice : -x - 1;
  } else if (x > (float)(size - 1)) {
    x -= twice * truncf(x / twice);
    if (x >= (float)size) x = twice - x - 1;
  }
  return rn_position_clamp(x, size);
}

// [abcd] continues as [abcd|abcd|abcd].
RN_GEOMETRY float rn_position_wrap(float x, long long size) {
  float last = (float)(size - 1);
  if (size <= 1) return 0;
  if (x < 0)
    x += (float)size * (truncf(-x / last) + 1);
  else if (x > last)
    x -= (float)size * truncf(x / last);
  return rn_position_clamp(x, size);
}

// Where position |x| along an axis of |size| pixels lies inside of the image. With a constant
// border it stays where it is.
RN_GEOMETRY float rn_position_inside(rn_border_t border, float x, long long size) {
  switch (border) {
    case RN_BORDER_REFLECT:
      return rn_position_reflect(x, size);
    case RN_BORDER_WRAP:
      return rn_position_wrap(x, size);
    case RN_BORDER_NEAREST:
      return rn_position_clamp(x, size);
    default:
      return x;
  }
}

// The smaller and the larger of two numbers; the first if they are unordered.
RN_GEOMETRY float rn_lower(float a, float b) { return b < a ? b : a; }
RN_GEOMETRY float rn_higher(float a, float b) { return a < b ? b : a; }

// Intersection over union of two boxes [y0, x0, y1, x1], whose corners may be swapped; 0 if one of
// them is empty.
RN_GEOMETRY float rn_boxes_overlap(const float* a, const float* b) {
  float ay0 = rn_lower(a[0], a[2]), ay1 = rn_higher(a[0], a[2]);
  float ax0 = rn_lower(a[1], a[3]), ax1 = rn_higher(a[1], a[3]);
  float by0 = rn_lower(b[0], b[2]), by1 = rn_higher(b[0], b[2]);
  float bx0 = rn_lower(b[1], b[3]), bx1 = rn_higher(b[1], b[3]);
  float area_a = (ay1 - ay0) * (ax1 - ax0), area_b = (by1 - by0) * (bx1 - bx0);
  if (area_a <= 0 || area_b <= 0) return 0;
  float height = rn_higher(rn_lower(ay1, by1) - rn_higher(ay0, by0), 0);
  float width = rn_higher(rn_lower(ax1, bx1) - rn_higher(ax0, bx0), 0);
  return height * width / (area_a + area_b - height * width);
}

#endif  // RUNNEL_KERNELS_IMAGE_GEOMETRY_H_
