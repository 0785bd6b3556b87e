// The loops of resize.h.
#include "kernels/cpu/isa/resize.h"

#include <string.h>

#include "kernels/cpu/isa/isa.h"

// A pixel of three floats is computed as four, where the fourth may be read and is overwritten by
// the next pixel.
typedef float four_t __attribute__((vector_size(16)));

static inline four_t load_four(const float* p) {
  four_t x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline void store_four(float* p, four_t x) { memcpy(p, &x, sizeof x); }

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

static inline void blend_pixel(const float* left, const float* right, float across, int64_t depth,
                               float* restrict out) {
  for (int64_t c = 0; c < depth; ++c) out[c] = left[c] + (right[c] - left[c]) * across;
}

static inline void blend_pixels(const float* line, const rn_image_taps_t* taps, int64_t count,
                                int64_t depth, float* restrict out) {
  for (int64_t x = 0; x < count; ++x, out += depth)
    blend_pixel(line + taps[x].at[0] * depth, line + taps[x].at[1] * depth, taps[x].weights[1],
                depth, out);
}

static void blend_columns(const float* line, int64_t first, int64_t end,
                          const rn_image_taps_t* taps, int64_t count, int64_t depth, float* out) {
  const float* start = line - first * depth;
  if (depth == 1) {
    blend_pixels(start, taps, count, 1, out);
  } else if (depth == 3) {
    for (int64_t x = 0; x < count; ++x, out += 3) {
      const float *left = start + taps[x].at[0] * 3, *right = start + taps[x].at[1] * 3;
      const float across = taps[x].weights[1];
      if (taps[x].at[1] < end - 1) {
        const four_t a = load_four(left), b = load_four(right);
        store_four(out, a + (b - a) * across);
      } else {
        blend_pixel(left, right, across, 3, out);
      }
    }
  } else {
    enum { AHEAD = 4 };  // pixels that are far apart come from memory late
    for (int64_t x = 0; x < count; ++x, out += depth) {
      const int64_t next = taps[x + AHEAD < count ? x + AHEAD : x].at[1];
      for (int64_t c = 0; c < depth && next > taps[x].at[1] + AHEAD; c += 16)
        __builtin_prefetch(start + next * depth + c);
      blend_pixel(start + taps[x].at[0] * depth, start + taps[x].at[1] * depth, taps[x].weights[1],
                  depth, out);
    }
  }
}

static void area_columns(const float* line, int64_t first, int64_t end, const rn_image_taps_t* taps,
                         int64_t count, int64_t depth, float scale, float* restrict out) {
  for (int64_t x = 0; x < count; ++x, out += depth) {
    const int64_t last = taps[x].at[1] - 1;
    const float weight = taps[x].weights[0];
    const float* from = line + ((taps[x].at[0] < end ? taps[x].at[0] : end - 1) - first) * depth;
    if (depth == 3 && x + 1 < count) {
      four_t sum = load_four(from) * weight;
      for (int64_t i = taps[x].at[0] + 1; i <= last; ++i) {
        const float* next = line + ((i < end ? i : end - 1) - first) * 3;
        sum += load_four(next) * (i < last ? 1.0f : taps[x].weights[1]);
      }
      store_four(out, sum * scale);
      continue;
    }
    if (depth == 1) {
      float sum = from[0] * weight;
      for (int64_t i = taps[x].at[0] + 1; i <= last; ++i)
        sum += line[(i < end ? i : end - 1) - first] * (i < last ? 1.0f : taps[x].weights[1]);
      *out = sum * scale;
      continue;
    }
    for (int64_t c = 0; c < depth; ++c) out[c] = from[c] * weight;
    for (int64_t i = taps[x].at[0] + 1; i <= last; ++i) {
      const float* next = line + ((i < end ? i : end - 1) - first) * depth;
      const float by = i < last ? 1.0f : taps[x].weights[1];
      for (int64_t c = 0; c < depth; ++c) out[c] += next[c] * by;
    }
    for (int64_t c = 0; c < depth; ++c) out[c] *= scale;
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
static void cubic_columns(const float* line, int64_t first, const rn_image_taps_t* taps,
                          int64_t count, int64_t depth, float* out) {
  const float* start = line - first * depth;
  if (depth == 1)
    cubic_pixels(start, taps, count, 1, out);
  else if (depth == 3)
    cubic_pixels(start, taps, count, 3, out);
  else
    cubic_pixels(start, taps, count, depth, out);
}

static inline void spread_pixels(const float* in, const rn_image_taps_t* row,
                                 const rn_image_taps_t* columns, int64_t count, int64_t width,
                                 int64_t depth, float* image) {
  for (int64_t x = 0; x < count; ++x, in += depth) RN_UNROLL for (int i = 0; i < 4; ++i) {
      float* to = image + (row->at[i / 2] * width + columns[x].at[i % 2]) * depth;
      const float down = row->weights[i / 2], across = columns[x].weights[i % 2];
      RN_IVDEP for (int64_t c = 0; c < depth; ++c) to[c] += in[c] * down * across;
    }
}

static void spread_columns(const float* in, const rn_image_taps_t* row,
                           const rn_image_taps_t* columns, int64_t count, int64_t width,
                           int64_t depth, float* image) {
  if (depth == 1)
    spread_pixels(in, row, columns, count, width, 1, image);
  else if (depth == 3)
    spread_pixels(in, row, columns, count, width, 3, image);
  else
    spread_pixels(in, row, columns, count, width, depth, image);
}

static void blend_corners(const float* const corners[4], float across, float down, int64_t depth,
                          float* restrict out) {
  const float *a = corners[0], *b = corners[1], *c = corners[2], *d = corners[3];
  for (int64_t i = 0; i < depth; ++i) {
    const float top = a[i] + (b[i] - a[i]) * across, bottom = c[i] + (d[i] - c[i]) * across;
    out[i] = top + (bottom - top) * down;
  }
}

const rn_resize_loops_t RN_ISA_NAME(rn_resize_loops_) = {
    .blend = blend,
    .weigh = weigh,
    .add_weighed = add_weighed,
    .blend_columns = blend_columns,
    .area_columns = area_columns,
    .cubic_columns = cubic_columns,
    .spread_columns = spread_columns,
    .blend_corners = blend_corners,
};
