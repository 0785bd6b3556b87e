// The loops of image.h. Choices are written without branches, so that they become vectors.
#include "kernels/cpu/isa/image.h"

#include "kernels/cpu/isa/isa.h"

static inline float larger(float a, float b) { return a > b ? a : b; }
static inline float smaller(float a, float b) { return a < b ? a : b; }
static inline float ramp(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

static void to_hsv(const float* in, float* restrict out, int64_t n) {
  for (int64_t i = 0; i < 3 * n; i += 3) {
    const float r = in[i], g = in[i + 1], b = in[i + 2];
    const float most = larger(r, larger(g, b)), least = smaller(r, smaller(g, b));
    const float range = most - least, norm = (1 / range) * (1.0f / 6);
    const float from_blue = norm * (r - g) + 4.0f / 6, from_green = norm * (b - r) + 2.0f / 6;
    float hue = r == most ? norm * (g - b) : g == most ? from_green : from_blue;
    hue = range > 0 ? hue : 0;
    out[i] = hue < 0 ? hue + 1 : hue;
    out[i + 1] = most > 0 ? range / most : 0;
    out[i + 2] = most;
  }
}

static void to_rgb(const float* in, float* restrict out, int64_t n) {
  for (int64_t i = 0; i < 3 * n; i += 3) {
    const float h = in[i] * 6, s = in[i + 1], v = in[i + 2], rest = 1 - s;
    out[i] = (rest + s * ramp(__builtin_fabsf(h - 3) - 1)) * v;
    out[i + 1] = (rest + s * ramp(2 - __builtin_fabsf(h - 2))) * v;
    out[i + 2] = (rest + s * ramp(2 - __builtin_fabsf(h - 4))) * v;
  }
}

// The hue in sixths of a circle from red.
static inline float hue_of(float r, float g, float b, float most, float range) {
  const float norm = 1 / range;
  const float from_blue = (r - g) * norm + 4, from_green = (b - r) * norm + 2;
  float hue = r == most ? (g - b) * norm : g == most ? from_green : from_blue;
  hue = range > 0 ? hue : 0;
  return hue < 0 ? hue + 6 : hue;
}

// How much of a component there is: all within a sixth of its own hue, none beyond a third.
static inline float share(float hue, float at) {
  const float away = __builtin_fabsf(hue - at);
  return ramp(2 - (away > 3 ? 6 - away : away));
}

static void turn_hue(const float* in, float by, float* restrict out, int64_t n) {
  for (int64_t i = 0; i < 3 * n; i += 3) {
    const float r = in[i], g = in[i + 1], b = in[i + 2];
    const float most = larger(r, larger(g, b)), least = smaller(r, smaller(g, b));
    const float range = most - least;
    const float turned = hue_of(r, g, b, most, range) + by * 6;
    float hue = turned - __builtin_truncf(turned / 6) * 6;
    hue = hue < 0 ? hue + 6 : hue;
    out[i] = least + range * share(hue, 0);
    out[i + 1] = least + range * share(hue, 2);
    out[i + 2] = least + range * share(hue, 4);
  }
}

static void scale_saturation(const float* in, float by, float* restrict out, int64_t n) {
  for (int64_t i = 0; i < 3 * n; i += 3) {
    const float r = in[i], g = in[i + 1], b = in[i + 2];
    const float most = larger(r, larger(g, b)), least = smaller(r, smaller(g, b));
    const float hue = hue_of(r, g, b, most, most - least);
    const float saturation = ramp(most > 0 ? (most - least) / most * by : 0);
    const float range = saturation * most, low = most - range;
    out[i] = low + range * share(hue, 0);
    out[i + 1] = low + range * share(hue, 2);
    out[i + 2] = low + range * share(hue, 4);
  }
}

// Pixels of few channels are computed in runs of as many as fit here.
enum { RUN = 96 };
static inline int64_t pixels_per_run(int64_t stride, int64_t channels) {
  return stride == channels && channels < RUN / 2 ? RUN / channels : 1;
}

static void channel_sums(const float* in, int64_t stride, int64_t channels, int64_t n,
                         double* restrict sums) {
  const int64_t pixels = pixels_per_run(stride, channels), size = pixels * channels;
  double repeated[RUN] = {0};
  double* restrict parts = pixels > 1 ? repeated : sums;
  for (int64_t c = 0; c < channels; ++c) sums[c] = 0;
  int64_t p = 0;
  for (; p + pixels <= n; p += pixels)
    for (int64_t i = 0; i < size; ++i) parts[i] += (double)in[p * stride + i];
  if (pixels == 1) return;
  for (int64_t i = 0; i < size; i += channels)
    for (int64_t c = 0; c < channels; ++c) sums[c] += repeated[i + c];
  for (; p < n; ++p)
    for (int64_t c = 0; c < channels; ++c) sums[c] += (double)in[p * stride + c];
}

static void contrast(const float* in, const float* means, int64_t stride, int64_t channels,
                     float by, float* restrict out, int64_t n) {
  const int64_t pixels = pixels_per_run(stride, channels);
  float repeated[RUN];
  if (pixels > 1) {
    for (int64_t i = 0; i < pixels * channels; i += channels)
      for (int64_t c = 0; c < channels; ++c) repeated[i + c] = means[c];
    means = repeated;
  }
  for (int64_t p = 0; p < n; p += pixels) {
    const int64_t size = (n - p < pixels ? n - p : pixels) * channels;
    for (int64_t i = 0; i < size; ++i)
      out[p * stride + i] = (in[p * stride + i] - means[i]) * by + means[i];
  }
}

const rn_image_loops_t RN_ISA_NAME(rn_image_loops_) = {
    .to_hsv = to_hsv,
    .to_rgb = to_rgb,
    .turn_hue = turn_hue,
    .scale_saturation = scale_saturation,
    .channel_sums = channel_sums,
    .contrast = contrast,
};
