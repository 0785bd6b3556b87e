// AdjustContrast, AdjustHue and AdjustSaturation.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/colour.h"
#include "kernels/kernel_rows.h"

// Pixels per piece of work.
#define PIECE_PIXELS 4096

rn_status_t rn_adjust_begin(rn_kernel_ctx_t* ctx, const char* factor, bool is_rgb,
                            rn_tensor_t** out) {
  const rn_tensor_t *images = rn_in(ctx, 0), *by = rn_in(ctx, 1);
  if (images->rank < 3)
    return rn_invalid_argument("input must be at least 3-D, got shape%s", rn_text_of(images).text);
  if (by->rank != 0)
    return rn_invalid_argument("%s must be scalar: %s", factor, rn_text_of(by).text);
  int64_t channels = rn_tensor_dim(images, images->rank - 1);
  if (is_rgb && channels != 3)
    return rn_invalid_argument("input must have 3 channels but instead has %" PRId64 " channels.",
                               channels);
  return rn_output(ctx, 0, rn_tensor_shape(images), out);
}

typedef struct adjust_job_t {
  const float* in;
  float* out;
  float by;
  int64_t pixels, channels;  // per image
} adjust_job_t;

// out = (in - mean) * by + mean, with one mean per channel and image.
static void contrast_piece(void* arg, int64_t begin, int64_t end) {
  const adjust_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    int64_t image = i / job->channels, channel = i % job->channels;
    const float* in = job->in + image * job->pixels * job->channels + channel;
    float* out = job->out + image * job->pixels * job->channels + channel;
    double sum = 0;
    for (int64_t p = 0; p < job->pixels; ++p) sum += (double)in[p * job->channels];
    float mean = (float)(sum / (double)job->pixels);
    for (int64_t p = 0; p < job->pixels; ++p)
      out[p * job->channels] = (in[p * job->channels] - mean) * job->by + mean;
  }
}

static void adjust_contrast(rn_kernel_ctx_t* ctx, const rn_tensor_t* images, rn_tensor_t* out) {
  const int64_t* dims = rn_tensor_dims(images);
  int rank = images->rank;
  adjust_job_t job = {.in = images->data,
                      .out = out->data,
                      .by = *RN_DATA(rn_in(ctx, 1), const float),
                      .pixels = dims[rank - 3] * dims[rank - 2],
                      .channels = dims[rank - 1]};
  rn_pool_for(rn_ctx_pool(ctx), out->count / job.pixels, PIECE_PIXELS * 4 / job.pixels + 1,
              contrast_piece, &job);
}

static rn_status_t contrast_compute(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_adjust_begin(ctx, "contrast_factor", false, &out));
  if (out->count) adjust_contrast(ctx, rn_in(ctx, 0), out);
  return RN_OK;
}

// AdjustContrast, the first version: images of any type, and the result is clamped.
static rn_status_t old_contrast_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* images = rn_in(ctx, 0);
  static const char* const names[] = {"", "", "min_value", "max_value"};
  rn_tensor_t *out = NULL, floats = {0};
  for (int i = 2; i < 4; ++i)
    if (rn_in(ctx, i)->rank != 0)
      return rn_invalid_argument("%s must be scalar: %s", names[i], rn_text_of(rn_in(ctx, i)).text);
  RN_RETURN_IF_ERROR(rn_adjust_begin(ctx, "contrast_factor", false, &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(images), &floats));
  for (int64_t i = 0; i < images->count; ++i)
    RN_DATA(&floats, float)[i] = (float)rn_number_at(images, i);
  adjust_contrast(ctx, &floats, out);
  rn_tensor_clear(&floats);
  const float least = *RN_DATA(rn_in(ctx, 2), const float);
  const float most = *RN_DATA(rn_in(ctx, 3), const float);
  float* x = out->data;
  for (int64_t i = 0; i < out->count; ++i) x[i] = fmaxf(fminf(x[i], most), least);
  return RN_OK;
}

// A colour as hue (in sixths of a circle from red), largest and smallest component.
typedef struct colour_t {
  float hue, most, least;
} colour_t;

static colour_t colour_of(const float* rgb) {
  float r = rgb[0], g = rgb[1], b = rgb[2];
  colour_t colour = {.most = fmaxf(r, fmaxf(g, b)), .least = fminf(r, fminf(g, b))};
  float range = colour.most - colour.least;
  if (range <= 0) return colour;
  if (r == colour.most)
    colour.hue = (g - b) / range;
  else if (g == colour.most)
    colour.hue = (b - r) / range + 2;
  else
    colour.hue = (r - g) / range + 4;
  if (colour.hue < 0) colour.hue += 6;
  return colour;
}

static void paint(colour_t colour, float* rgb) {
  float range = colour.most - colour.least;
  static const float at[3] = {0, 2, 4};  // hues of red, green and blue
  for (int c = 0; c < 3; ++c) {
    float away = fabsf(colour.hue - at[c]);
    if (away > 3) away = 6 - away;
    float part = 2 - away;  // >= 1 within a sixth, <= 0 beyond a third
    rgb[c] = colour.least + range * (part < 0 ? 0 : part > 1 ? 1 : part);
  }
}

static void hue_piece(void* arg, int64_t begin, int64_t end) {
  const adjust_job_t* job = arg;
  for (int64_t p = begin; p < end; ++p) {
    colour_t colour = colour_of(job->in + 3 * p);
    colour.hue = fmodf(colour.hue + job->by * 6, 6);
    if (colour.hue < 0) colour.hue += 6;
    paint(colour, job->out + 3 * p);
  }
}

// Scales the saturation, range / most, and clamps it to [0, 1].
static void saturation_piece(void* arg, int64_t begin, int64_t end) {
  const adjust_job_t* job = arg;
  for (int64_t p = begin; p < end; ++p) {
    colour_t colour = colour_of(job->in + 3 * p);
    float range = colour.most - colour.least;
    float saturation = colour.most > 0 ? range / colour.most * job->by : 0;
    saturation = saturation < 0 ? 0 : saturation > 1 ? 1 : saturation;
    colour.least = colour.most - saturation * colour.most;
    paint(colour, job->out + 3 * p);
  }
}

static rn_status_t colours(rn_kernel_ctx_t* ctx, const char* factor,
                           void (*piece)(void*, int64_t, int64_t)) {
  const rn_tensor_t* images = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_adjust_begin(ctx, factor, true, &out));
  float by = *RN_DATA(rn_in(ctx, 1), const float);
  adjust_job_t job = {.in = images->data, .out = out->data, .by = by};
  if (out->count) rn_pool_for(rn_ctx_pool(ctx), out->count / 3, PIECE_PIXELS, piece, &job);
  return RN_OK;
}

static rn_status_t hue_compute(rn_kernel_ctx_t* ctx) { return colours(ctx, "delta", hue_piece); }
static rn_status_t saturation_compute(rn_kernel_ctx_t* ctx) {
  return colours(ctx, "scale", saturation_piece);
}

#define ROW(op_, compute_) \
  { .op = op_, .device = "CPU", .types = {{"T", RN_T(FLOAT)}}, .compute = compute_ }
static const rn_kernel_def_t rows[] = {
    ROW("AdjustContrastv2", contrast_compute),
    ROW("AdjustHue", hue_compute),
    ROW("AdjustSaturation", saturation_compute),
    {.op = "AdjustContrast",
     .device = "CPU",
     .types = {{"T", RN_T(UINT8) | RN_TYPES_INTS | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = old_contrast_compute},
};
RN_KERNEL_FAMILY(cpu_adjust, rows);
