// Writes audio and images as summaries: see summary.h.
#include <inttypes.h>
#include <math.h>

#include "io/image.h"
#include "io/summary.h"
#include "io/wav.h"
#include "tensor/float16.h"
#include "wire/writer.h"

enum {
  AUDIO_RATE = 1,
  AUDIO_CHANNELS = 2,
  AUDIO_FRAMES = 3,
  AUDIO_BYTES = 4,
  AUDIO_TYPE = 5,
  IMAGE_HEIGHT = 1,
  IMAGE_WIDTH = 2,
  IMAGE_CHANNELS = 3,
  IMAGE_BYTES = 4,
};

// Writes the name: "tag/kind" if there is at most one, else "tag/kind/i".
static void put_name(rn_strbuf_t* buf, rn_str_t tag, const char* kind, int64_t i, int64_t most) {
  size_t mark = rn_pb_begin(buf, RN_VALUE_TAG);
  rn_strbuf_append(buf, tag);
  rn_strbuf_printf(buf, "/%s", kind);
  if (most > 1) rn_strbuf_printf(buf, "/%" PRId64, i);
  rn_pb_end(buf, mark);
}

// Sounds.
rn_status_t rn_summary_put_sounds(rn_strbuf_t* buf, rn_str_t tag, const rn_tensor_t* sounds,
                                  float rate, int64_t most) {
  rn_shape_t shape = rn_tensor_shape(sounds);
  int64_t channels = shape.rank == 3 ? shape.dims[2] : 1, frames = shape.dims[1], total = 0;
  // The limits of a WAV file.
  if (channels > UINT16_MAX / 2 || rate > (float)(1 << 30) ||
      !rn_mul_i64_ok(channels, frames, &total) || total > (1 << 30))
    return rn_invalid_argument("A sound of %" PRId64 " frames of %" PRId64 " channels is too large",
                               frames, channels);
  if (channels == 0 && shape.dims[0] > 0) return rn_invalid_argument("audio is null");
  for (int64_t i = 0; i < shape.dims[0] && i < most; ++i) {
    size_t value = rn_pb_begin(buf, RN_SUMMARY_VALUE);
    put_name(buf, tag, "audio", i, most);
    size_t audio = rn_pb_begin(buf, RN_VALUE_AUDIO);
    rn_pb_put_float(buf, AUDIO_RATE, rate);
    if (channels) rn_pb_put_uint(buf, AUDIO_CHANNELS, (uint64_t)channels);
    if (frames) rn_pb_put_uint(buf, AUDIO_FRAMES, (uint64_t)frames);
    size_t bytes = rn_pb_begin(buf, AUDIO_BYTES);
    rn_wav_write(buf, RN_DATA(sounds, const float) + i * total, (uint32_t)lrintf(fmaxf(rate, 1)),
                 channels, frames);
    rn_pb_end(buf, bytes);
    rn_pb_put_str(buf, AUDIO_TYPE, RN_STR("audio/wav"));
    rn_pb_end(buf, audio);
    rn_pb_end(buf, value);
  }
  return RN_OK;
}

// Images.
//
// Rounds every arithmetic step to the images' own type. Computing in double first gives the same
// result, because double has more than twice the bits.
static double rounded(rn_dtype_t dtype, double x) {
  if (dtype == RN_FLOAT) return (double)(float)x;
  if (dtype == RN_HALF) return (double)rn_half_to_float(rn_float_to_half((float)x));
  return x;
}

typedef struct stretch_t {
  double scale, offset;
} stretch_t;

static bool is_finite(const rn_tensor_t* images, int64_t pixel, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c)
    if (!isfinite(rn_summary_number(images, pixel + c))) return false;
  return true;
}

// Finds the scale to 0 … 255, or around 128 if some values are negative. Extremes and scale are
// floats for every type.
static stretch_t find_stretch(const rn_tensor_t* images, int64_t from, int64_t pixels,
                              int64_t channels) {
  float min = INFINITY, max = -INFINITY;
  for (int64_t i = 0; i < pixels * channels; ++i) {
    if (i % channels == 0 && !is_finite(images, from + i, channels)) {
      i += channels - 1;
      continue;
    }
    float x = (float)rn_summary_number(images, from + i);
    if (x < min) min = x;
    if (x > max) max = x;
  }
  stretch_t s = {0, 0};
  double range = 255;
  if (min < 0) {
    if (-min > max) max = -min;
    range = 127;
    s.offset = 128;
  }
  if (max >= 1e-6f) s.scale = rounded(images->dtype, (double)(float)(range / (double)max));
  return s;
}

static void stretch_pixels(const rn_tensor_t* images, int64_t from, int64_t pixels,
                           int64_t channels, const uint8_t* bad, uint8_t* out) {
  stretch_t s = find_stretch(images, from, pixels, channels);
  for (int64_t i = 0; i < pixels; ++i) {
    if (!is_finite(images, from + i * channels, channels)) {
      memcpy(out + i * channels, bad, (size_t)channels);
      continue;
    }
    for (int64_t c = 0; c < channels; ++c) {
      double x = rn_summary_number(images, from + i * channels + c);
      double y = rounded(images->dtype, rounded(images->dtype, x * s.scale) + s.offset);
      out[i * channels + c] = y > 0 && y < 256 ? (uint8_t)y : y >= 256 ? UINT8_MAX : 0;
    }
  }
}

static rn_status_t put_image(rn_strbuf_t* buf, const rn_tensor_t* images, int64_t i,
                             const uint8_t* bad, uint8_t* scratch) {
  const int64_t* dims = rn_tensor_dims(images);
  int64_t size = dims[1] * dims[2] * dims[3];
  const uint8_t* pixels = scratch;
  if (images->dtype == RN_UINT8)
    pixels = RN_DATA(images, const uint8_t) + i * size;
  else
    stretch_pixels(images, i * size, dims[1] * dims[2], dims[3], bad, scratch);
  size_t image = rn_pb_begin(buf, RN_VALUE_IMAGE);
  rn_pb_put_uint(buf, IMAGE_HEIGHT, (uint64_t)dims[1]);
  rn_pb_put_uint(buf, IMAGE_WIDTH, (uint64_t)dims[2]);
  rn_pb_put_uint(buf, IMAGE_CHANNELS, (uint64_t)dims[3]);
  size_t bytes = rn_pb_begin(buf, IMAGE_BYTES);
  rn_status_t status = rn_png_encode(pixels, dims[1], dims[2], (int)dims[3], 8, -1, buf);
  rn_pb_end(buf, bytes);
  rn_pb_end(buf, image);
  return status;
}

rn_status_t rn_summary_put_images(rn_strbuf_t* buf, rn_str_t tag, const rn_tensor_t* images,
                                  const rn_tensor_t* bad, int64_t most) {
  const int64_t* dims = rn_tensor_dims(images);
  size_t size = images->count ? (size_t)(dims[1] * dims[2] * dims[3]) : 0;
  uint8_t* scratch = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(buf->allocator, size, (void**)&scratch));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < dims[0] && i < most && rn_ok(status); ++i) {
    size_t value = rn_pb_begin(buf, RN_SUMMARY_VALUE);
    put_name(buf, tag, "image", i, most);
    status = put_image(buf, images, i, RN_DATA(bad, const uint8_t), scratch);
    rn_pb_end(buf, value);
  }
  rn_free(buf->allocator, scratch, size);
  return status;
}
