// Conversions between RGB and HSV; hue, saturation and contrast. 16-bit floats are computed as
// float.
#include "kernels/cuda/array/produce.cuh"

#include "kernels/cuda/image/colour_args.h"

// Calls |change| with three channels of each pixel.
template <typename T, typename Change>
RN_DEVICE void each_pixel(const rn_cuda_colour_args& args, Change change) {
  typedef typename rn_sum_of<T>::type V;
  const T* in = static_cast<const T*>(args.in);
  T* out = static_cast<T*>(args.out);
  RN_EACH(i, args.pixels) {
    V pixel[3] = {(V)in[3 * i], (V)in[3 * i + 1], (V)in[3 * i + 2]};
    change(pixel);
    for (int c = 0; c < 3; ++c) out[3 * i + c] = (T)pixel[c];
  }
}

template <typename V>
RN_DEVICE V ramp(V x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}

template <typename V>
RN_DEVICE void to_hsv(V* pixel) {
  V r = pixel[0], g = pixel[1], b = pixel[2];
  V most = r > g ? (r > b ? r : b) : (g > b ? g : b);
  V least = r < g ? (r < b ? r : b) : (g < b ? g : b);
  V range = most - least, norm = (1 / range) * ((V)1 / 6);
  V hue = r == most   ? norm * (g - b)
          : g == most ? norm * (b - r) + (V)2 / 6
                      : norm * (r - g) + (V)4 / 6;
  if (!(range > 0)) hue = 0;
  pixel[0] = hue < 0 ? hue + 1 : hue;
  pixel[1] = most > 0 ? range / most : 0;
  pixel[2] = most;
}

template <typename V>
RN_DEVICE void to_rgb(V* pixel) {
  V h = pixel[0] * 6, s = pixel[1], v = pixel[2], rest = 1 - s;
  pixel[0] = (rest + s * ramp<V>(fabs(h - 3) - 1)) * v;
  pixel[1] = (rest + s * ramp<V>(2 - fabs(h - 2))) * v;
  pixel[2] = (rest + s * ramp<V>(2 - fabs(h - 4))) * v;
}

#define CONVERSIONS(name, T)                                                        \
  RN_KERNEL(to_hsv_##name, rn_cuda_colour_args) {                                   \
    each_pixel<T>(args, [](typename rn_sum_of<T>::type* pixel) { to_hsv(pixel); }); \
  }                                                                                 \
  RN_KERNEL(to_rgb_##name, rn_cuda_colour_args) {                                   \
    each_pixel<T>(args, [](typename rn_sum_of<T>::type* pixel) { to_rgb(pixel); }); \
  }
CONVERSIONS(f16, rn_half)
CONVERSIONS(bf16, rn_bfloat16)
CONVERSIONS(f32, float)
CONVERSIONS(f64, double)

// A colour as hue (in sixths of a circle from red), largest and smallest component.
struct colour {
  float hue, most, least;
  RN_DEVICE colour(const float* rgb) : hue(0) {
    float r = rgb[0], g = rgb[1], b = rgb[2];
    most = fmaxf(r, fmaxf(g, b));
    least = fminf(r, fminf(g, b));
    float range = most - least;
    if (range <= 0) return;
    hue = r == most ? (g - b) / range : g == most ? (b - r) / range + 2 : (r - g) / range + 4;
    if (hue < 0) hue += 6;
  }
  RN_DEVICE void paint(float* rgb) const {
    for (int c = 0; c < 3; ++c) {
      float away = fabs(hue - (float)(2 * c));  // from red, green or blue
      if (away > 3) away = 6 - away;
      rgb[c] = least + (most - least) * ramp<float>(2 - away);
    }
  }
};

#define ADJUST(name, T)                                              \
  RN_KERNEL(hue_##name, rn_cuda_colour_args) {                       \
    const float by = *args.by;                                       \
    each_pixel<T>(args, [&](float* pixel) { turn_hue(pixel, by); }); \
  }                                                                  \
  RN_KERNEL(saturation_##name, rn_cuda_colour_args) {                \
    const float by = *args.by;                                       \
    each_pixel<T>(args, [&](float* pixel) { saturate(pixel, by); }); \
  }

RN_DEVICE void turn_hue(float* pixel, float by) {
  colour c(pixel);
  c.hue = fmodf(c.hue + by * 6, 6.0f);
  if (c.hue < 0) c.hue += 6;
  c.paint(pixel);
}

// Scales the saturation, range / most, and clamps it to [0, 1].
RN_DEVICE void saturate(float* pixel, float by) {
  colour c(pixel);
  float saturation = c.most > 0 ? (c.most - c.least) / c.most * by : 0;
  c.least = c.most - ramp(saturation) * c.most;
  c.paint(pixel);
}
ADJUST(f16, rn_half)
ADJUST(f32, float)

// One block per image, part and channel.
template <typename T>
RN_DEVICE void contrast_sums(const rn_cuda_contrast_args& args) {
  RN_SHARED(double, shared);
  const u32 thread = threadIdx.x;
  const i64 each = (args.pixels + args.parts - 1) / args.parts;
  for (i64 job = blockIdx.x; job < args.images * args.parts * args.channels; job += gridDim.x) {
    const i64 channel = job % args.channels, part = job / args.channels % args.parts;
    const i64 image = job / args.channels / args.parts;
    const T* in = static_cast<const T*>(args.in) + image * args.pixels * args.channels + channel;
    const i64 end = (part + 1) * each < args.pixels ? (part + 1) * each : args.pixels;
    double sum = 0;
    for (i64 p = part * each + thread; p < end; p += blockDim.x)
      sum += (double)(float)in[p * args.channels];
    shared[thread] = sum;
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
      __syncthreads();
      if (thread < half) shared[thread] += shared[thread + half];
    }
    if (thread == 0) args.sums[job] = shared[0];
    __syncthreads();
  }
}

RN_KERNEL(contrast_means, rn_cuda_contrast_args) {
  RN_EACH(i, args.images * args.channels) {
    const double* sums =
        args.sums + i / args.channels * args.parts * args.channels + i % args.channels;
    double sum = 0;
    for (i64 part = 0; part < args.parts; ++part) sum += sums[part * args.channels];
    args.means[i] = (float)(sum / (double)args.pixels);
  }
}

template <typename T, typename I>
RN_DEVICE void contrast(const rn_cuda_contrast_args& args) {
  const T* in = static_cast<const T*>(args.in);
  const float by = *args.by;
  rn_produce(static_cast<T*>(args.out), (I)args.count, [&](I i) {
    I channel;
    rn_split(i, args.channel_div, &channel);
    float mean = args.means[(i64)rn_quotient(i, args.size) * args.channels + channel];
    return (T)(((float)in[i] - mean) * by + mean);
  });
}

#define CONTRAST(name, T)                                                            \
  RN_KERNEL(contrast_sums_##name, rn_cuda_contrast_args) { contrast_sums<T>(args); } \
  RN_KERNEL(contrast_##name, rn_cuda_contrast_args) { contrast<T, u32>(args); }      \
  RN_KERNEL(contrast_##name##_wide, rn_cuda_contrast_args) { contrast<T, i64>(args); }
CONTRAST(f16, rn_half)
CONTRAST(f32, float)
