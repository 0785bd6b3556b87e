// RGBToHSV and HSVToRGB.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/as_float.h"
#include "kernels/cpu/image/colour.h"
#include "kernels/cpu/image/loops.h"
#include "kernels/kernel_rows.h"

// Pixels per piece of work.
#define PIECE_PIXELS 4096

// Doubles, one by one; the same formulas as for floats (isa/image.c).
static void to_hsv_double(const double* in, double* out) {
  double r = in[0], g = in[1], b = in[2];
  double max = r > g ? (r > b ? r : b) : (g > b ? g : b);
  double min = r < g ? (r < b ? r : b) : (g < b ? g : b);
  double range = max - min, norm = (1 / range) * (1.0 / 6);
  double hue = r == max   ? norm * (g - b)
               : g == max ? norm * (b - r) + 2.0 / 6
                          : norm * (r - g) + 4.0 / 6;
  if (!(range > 0)) hue = 0;
  out[0] = hue < 0 ? hue + 1 : hue;
  out[1] = max > 0 ? range / max : 0;
  out[2] = max;
}

static double ramp(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

static void to_rgb_double(const double* in, double* out) {
  double h = in[0] * 6, s = in[1], v = in[2], rest = 1 - s;
  out[0] = (rest + s * ramp(fabs(h - 3) - 1)) * v;
  out[1] = (rest + s * ramp(2 - fabs(h - 2))) * v;
  out[2] = (rest + s * ramp(2 - fabs(h - 4))) * v;
}

typedef struct color_job_t {
  const void* in;
  void* out;
  bool is_double, is_to_hsv;
} color_job_t;

static void convert_piece(void* arg, int64_t begin, int64_t end) {
  const color_job_t* job = arg;
  if (job->is_double) {
    for (int64_t i = begin; i < end; ++i)
      (job->is_to_hsv ? to_hsv_double : to_rgb_double)((const double*)job->in + 3 * i,
                                                       (double*)job->out + 3 * i);
    return;
  }
  const rn_image_loops_t* loops = rn_image_loops();
  (job->is_to_hsv ? loops->to_hsv : loops->to_rgb)((const float*)job->in + 3 * begin,
                                                   (float*)job->out + 3 * begin, end - begin);
}

rn_status_t rn_colour_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t* images = rn_in(ctx, 0);
  if (images->rank < 1)
    return rn_invalid_argument("input must be at least 1D%s", rn_text_of(images).text);
  int64_t channels = rn_tensor_dim(images, images->rank - 1);
  if (channels != 3)
    return rn_failed_precondition(
        "input must have 3 channels but input only has %" PRId64 " channels.", channels);
  return rn_output(ctx, 0, rn_tensor_shape(images), out);
}

static rn_status_t convert(rn_kernel_ctx_t* ctx, bool is_to_hsv) {
  const rn_tensor_t* images = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_colour_begin(ctx, &out));
  bool is_wide = images->dtype == RN_DOUBLE;
  rn_tensor_t temp = {0}, result = {0};
  const float* in = images->data;
  rn_status_t status = is_wide ? RN_OK : rn_image_floats(ctx, images, &temp, &in);
  bool is_half = !is_wide && images->dtype != RN_FLOAT;
  if (rn_ok(status) && is_half) status = rn_temp(ctx, RN_FLOAT, rn_tensor_shape(images), &result);
  if (rn_ok(status)) {
    color_job_t job = {in, is_half ? result.data : out->data, is_wide, is_to_hsv};
    rn_pool_for(rn_ctx_pool(ctx), images->count / 3, PIECE_PIXELS, convert_piece, &job);
    if (is_half) rn_image_store(result.data, out);
  }
  rn_tensor_clear(&temp);
  rn_tensor_clear(&result);
  return status;
}

static rn_status_t to_hsv(rn_kernel_ctx_t* ctx) { return convert(ctx, true); }
static rn_status_t to_rgb(rn_kernel_ctx_t* ctx) { return convert(ctx, false); }

static const rn_kernel_def_t rows[] = {
    {.op = "RGBToHSV", .device = "CPU", .types = {{"T", RN_TYPES_FLOATS}}, .compute = to_hsv},
    {.op = "HSVToRGB", .device = "CPU", .types = {{"T", RN_TYPES_FLOATS}}, .compute = to_rgb},
};
RN_KERNEL_FAMILY(cpu_image_color, rows);
