// Which pixels of the original make up a pixel of the resized image, along one axis.
#include <float.h>
#include <math.h>

#include "kernels/cpu/image/resize.h"

static int64_t bound(int64_t i, int64_t size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

// The centre of output |i| in the input.
static float place_of(const rn_resize_attrs_t* state, float scale, int64_t i) {
  return state->half_pixel_centers ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

static void bilinear_taps(const rn_resize_attrs_t* state, int64_t in, int64_t out,
                          rn_image_taps_t* taps) {
  float scale = rn_resize_scale(state, in, out);
  for (int64_t i = 0; i < out; ++i) {
    float place = place_of(state, scale, i), below = floorf(place);
    int64_t low = (int64_t)below, high = (int64_t)ceilf(place);
    taps[i].at[1] = high < in - 1 ? high : in - 1;
    taps[i].at[0] = low > 0 ? low : 0;
    if (taps[i].at[0] > taps[i].at[1]) taps[i].at[0] = taps[i].at[1];
    taps[i].weights[1] = place - below;
    taps[i].weights[0] = 1 - taps[i].weights[1];
  }
}

static void nearest_taps(const rn_resize_attrs_t* state, int64_t in, int64_t out,
                         rn_image_taps_t* taps) {
  float scale = rn_resize_scale(state, in, out);
  for (int64_t i = 0; i < out; ++i) {
    float place = state->half_pixel_centers ? ((float)i + 0.5f) * scale : (float)i * scale;
    taps[i].at[0] = bound((int64_t)(state->align_corners ? roundf(place) : floorf(place)), in);
  }
}

// The part of pixel |v| inside [from, to), which is |scale| long.
static float covered(float v, float from, float to, float scale) {
  if (v < from) return v + 1 > to ? scale : v + 1 - from;
  return v + 1 > to ? to - v : 1.0f;
}

// A single pixel has no two corners to align: each output covers part of it.
float rn_resize_area_scale(const rn_resize_attrs_t* state, int64_t in, int64_t out) {
  return in == 1 ? 1.0f / (float)out : rn_resize_scale(state, in, out);
}

static void area_taps(const rn_resize_attrs_t* state, int64_t in, int64_t out,
                      rn_image_taps_t* taps) {
  float scale = rn_resize_area_scale(state, in, out);
  for (int64_t i = 0; i < out; ++i) {
    float from = (float)i * scale, to = (float)(i + 1) * scale;
    taps[i].at[0] = (int64_t)floorf(from);
    taps[i].at[1] = (int64_t)ceilf(to);
    taps[i].weights[0] = covered((float)taps[i].at[0], from, to, scale);
    taps[i].weights[1] = covered((float)(taps[i].at[1] - 1), from, to, scale);
  }
}

// Keys' cubic by distance, in steps of 1/1024, as in stock's table.
#define STEPS 1024
static float cubic_near(double a, double x) { return (float)(((a + 2) * x - (a + 3)) * x * x + 1); }
static float cubic_far(double a, double x) {
  return (float)(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

static void bicubic_taps(const rn_resize_attrs_t* state, int64_t in, int64_t out,
                         rn_image_taps_t* taps) {
  float scale = rn_resize_scale(state, in, out);
  double a = state->half_pixel_centers ? -0.5 : -0.75;
  for (int64_t i = 0; i < out; ++i) {
    float place = place_of(state, scale, i), below = floorf(place);
    int64_t low = (int64_t)below;
    int64_t step = lrintf((place - below) * STEPS);
    double near = (double)step / STEPS, far = (double)(STEPS - step) / STEPS;
    float weights[RN_IMAGE_TAPS] = {cubic_far(a, near + 1), cubic_near(a, near), cubic_near(a, far),
                                    cubic_far(a, far + 1)};
    float sum = 0;
    for (int k = 0; k < RN_IMAGE_TAPS; ++k) {
      taps[i].at[k] = bound(low - 1 + k, in);
      // With half-pixel centres, pixels outside have weight 0; otherwise the edge is repeated.
      if (state->half_pixel_centers && taps[i].at[k] != low - 1 + k) weights[k] = 0;
      sum += weights[k];
    }
    bool normalises = state->half_pixel_centers && fabsf(sum) >= 1000 * FLT_MIN;
    for (int k = 0; k < RN_IMAGE_TAPS; ++k)
      taps[i].weights[k] = normalises ? weights[k] * (1 / sum) : weights[k];
  }
}

void rn_resize_find_taps(rn_resize_method_t method, const rn_resize_attrs_t* attrs, int64_t in,
                         int64_t out, rn_image_taps_t* taps) {
  switch (method) {
    case RN_RESIZE_BILINEAR:
      bilinear_taps(attrs, in, out, taps);
      break;
    case RN_RESIZE_NEAREST:
      nearest_taps(attrs, in, out, taps);
      break;
    case RN_RESIZE_AREA:
      area_taps(attrs, in, out, taps);
      break;
    case RN_RESIZE_BICUBIC:
      bicubic_taps(attrs, in, out, taps);
      break;
  }
}
