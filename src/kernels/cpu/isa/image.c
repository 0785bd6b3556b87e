// The loops of image.h. Choices are written without branches, so that they become vectors.
#include "kernels/cpu/isa/image.h"

#include "kernels/cpu/isa/isa.h"

static void blend(const float* top, const float* bottom, float down, float* restrict out,
                  int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = top[i] + (bottom[i] - top[i]) * down;
}

static void weigh(const float* in, float weight, float* restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] * weight;
}

static void add_weighed(const float* in, float weight, float* restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] += in[i] * weight;
}

static inline void blend_pixels(const float* line, const rn_image_taps_t* taps, int64_t count,
                                int64_t depth, float* restrict out) {
  for (int64_t x = 0; x < count; ++x, out += depth) {
    const float *left = line + taps[x].at[0] * depth, *right = line + taps[x].at[1] * depth;
    const float across = taps[x].weights[1];
    for (int64_t c = 0; c < depth; ++c) out[c] = left[c] + (right[c] - left[c]) * across;
  }
}

static inline void cubic_pixels(const float* line, const rn_image_taps_t* taps, int64_t count,
                                int64_t depth, float* restrict out) {
  for (int64_t x = 0; x < count; ++x, out += depth) {
    const float *a = line + taps[x].at[0] * depth, *b = line + taps[x].at[1] * depth;
    const float *c = line + taps[x].at[2] * depth, *d = line + taps[x].at[3] * depth;
    const float* w = taps[x].weights;
    for (int64_t i = 0; i < depth; ++i)
      out[i] = a[i] * w[0] + b[i] * w[1] + c[i] * w[2] + d[i] * w[3];
  }
}

// The usual depths are constants, so that nothing is left of the inner loop.
#define BY_DEPTH(name, pixels)                                                                   \
  static void name(const float* line, int64_t first, const rn_image_taps_t* taps, int64_t count, \
                   int64_t depth, float* out) {                                                  \
    const float* start = line - first * depth;                                                   \
    if (depth == 1)                                                                              \
      pixels(start, taps, count, 1, out);                                                        \
    else if (depth == 3)                                                                         \
      pixels(start, taps, count, 3, out);                                                        \
    else                                                                                         \
      pixels(start, taps, count, depth, out);                                                    \
  }
BY_DEPTH(blend_columns, blend_pixels)
BY_DEPTH(cubic_columns, cubic_pixels)

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

// Channels that divide 12 are summed in 12 lanes.
static void channel_sums(const float* in, int64_t channels, int64_t n, double* sums) {
  enum { LANES = 12 };
  double lanes[LANES] = {0};
  int64_t i = 0;
  if (channels <= LANES && LANES % channels == 0)
    for (; i + LANES <= n * channels; i += LANES)
      for (int j = 0; j < LANES; ++j) lanes[j] += (double)in[i + j];
  for (int64_t c = 0; c < channels; ++c) sums[c] = 0;
  if (i > 0)
    for (int j = 0; j < LANES; ++j) sums[j % channels] += lanes[j];
  for (; i < n * channels; i += channels)
    for (int64_t c = 0; c < channels; ++c) sums[c] += (double)in[i + c];
}

static void blend_corners(const float* const corners[4], float across, float down, int64_t depth,
                          float* restrict out) {
  const float *a = corners[0], *b = corners[1], *c = corners[2], *d = corners[3];
  for (int64_t i = 0; i < depth; ++i) {
    const float top = a[i] + (b[i] - a[i]) * across, bottom = c[i] + (d[i] - c[i]) * across;
    out[i] = top + (bottom - top) * down;
  }
}

static inline void contrast_pixels(const float* in, const float* means, int64_t channels, float by,
                                   float* restrict out, int64_t n) {
  for (int64_t p = 0; p < n; ++p, in += channels, out += channels)
    for (int64_t c = 0; c < channels; ++c) out[c] = (in[c] - means[c]) * by + means[c];
}

static void contrast(const float* in, const float* means, int64_t channels, float by, float* out,
                     int64_t n) {
  if (channels == 1)
    contrast_pixels(in, means, 1, by, out, n);
  else if (channels == 3)
    contrast_pixels(in, (const float[3]){means[0], means[1], means[2]}, 3, by, out, n);
  else
    contrast_pixels(in, means, channels, by, out, n);
}

const rn_image_loops_t RN_ISA_NAME(rn_image_loops_) = {
    .blend = blend,
    .weigh = weigh,
    .add_weighed = add_weighed,
    .blend_columns = blend_columns,
    .cubic_columns = cubic_columns,
    .to_hsv = to_hsv,
    .to_rgb = to_rgb,
    .turn_hue = turn_hue,
    .scale_saturation = scale_saturation,
    .channel_sums = channel_sums,
    .blend_corners = blend_corners,
    .contrast = contrast,
};
