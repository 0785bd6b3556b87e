// AdjustContrast, AdjustHue and AdjustSaturation.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/colour.h"
#include "kernels/cpu/image/loops.h"
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
  enum { CHANNELS = 1024 };
  double sums[CHANNELS];
  float means[CHANNELS];
  for (int64_t i = begin; i < end; ++i) {
    const float* in = job->in + i * job->pixels * job->channels;
    float* out = job->out + i * job->pixels * job->channels;
    for (int64_t c = 0; c < job->channels; c += CHANNELS) {
      const int64_t count = job->channels - c < CHANNELS ? job->channels - c : CHANNELS;
      rn_image_loops()->channel_sums(in + c, job->channels, count, job->pixels, sums);
      for (int64_t k = 0; k < count; ++k) means[k] = (float)(sums[k] / (double)job->pixels);
      rn_image_loops()->contrast(in + c, means, job->channels, count, job->by, out + c,
                                 job->pixels);
    }
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
  rn_pool_for(rn_ctx_pool(ctx), out->count / (job.pixels * job.channels),
              PIECE_PIXELS * 4 / (job.pixels * job.channels) + 1, contrast_piece, &job);
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

static void hue_piece(void* arg, int64_t begin, int64_t end) {
  const adjust_job_t* job = arg;
  rn_image_loops()->turn_hue(job->in + 3 * begin, job->by, job->out + 3 * begin, end - begin);
}

static void saturation_piece(void* arg, int64_t begin, int64_t end) {
  const adjust_job_t* job = arg;
  rn_image_loops()->scale_saturation(job->in + 3 * begin, job->by, job->out + 3 * begin,
                                     end - begin);
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
