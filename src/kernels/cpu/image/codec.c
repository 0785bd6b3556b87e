// Image codecs: DecodeJpeg and related ops, each of which accepts every format whose result it can
// represent, and the encoders. io/image.h implements the formats.
#include <inttypes.h>

#include "io/image.h"
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef enum codec_op_t {
  DECODE_JPEG,
  CROP_JPEG,
  DECODE_PNG,
  DECODE_GIF,
  DECODE_BMP,
  DECODE_WEBP,
  DECODE_JXL,
  DECODE_ANY
} codec_op_t;

typedef struct decode_t {
  codec_op_t op;
  const char* name;
  int64_t channels;
  rn_dtype_t dtype;
  bool expands;  // a still image from DecodeImage keeps three dimensions
  rn_jpeg_options_t jpeg;
} decode_t;

static rn_status_t init_jpeg(const rn_kernel_init_t* init, rn_jpeg_options_t* jpeg) {
  int64_t ratio = rn_init_int(init, "ratio");
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
    return rn_invalid_argument("ratio must be 1, 2, 4, or 8, got %" PRId64, ratio);
  rn_str_t method = rn_init_string(init, "dct_method");
  jpeg->is_accurate = rn_str_is(method, "INTEGER_ACCURATE");
  if (method.size && !jpeg->is_accurate && !rn_str_is(method, "INTEGER_FAST"))
    return rn_invalid_argument(
        "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
  jpeg->ratio = (int)ratio;
  jpeg->is_fancy = rn_init_bool(init, "fancy_upscaling");
  jpeg->recovers = rn_init_bool(init, "try_recover_truncated");
  jpeg->least = rn_init_float(init, "acceptable_fraction");
  return RN_OK;
}

static rn_status_t decode_init(const rn_kernel_init_t* init, void* state) {
  decode_t* d = state;
  static const char* const names[] = {
      [DECODE_JPEG] = "DecodeJpeg", [CROP_JPEG] = "DecodeAndCropJpeg", [DECODE_PNG] = "DecodePng",
      [DECODE_GIF] = "DecodeGif",   [DECODE_BMP] = "DecodeBmp",        [DECODE_WEBP] = "DecodeWebP",
      [DECODE_JXL] = "DecodeJxl",   [DECODE_ANY] = "DecodeImage"};
  while (strcmp(names[d->op], init->op->name) != 0) ++d->op;
  d->name = names[d->op];
  d->channels = d->op == DECODE_GIF ? 3 : rn_init_int(init, "channels");
  if (d->channels != 0 && d->channels != 1 && d->channels != 3 && d->channels != 4)
    return rn_invalid_argument("`channels` must be 0, 1, 3 or 4 but got %" PRId64, d->channels);
  d->dtype = init->output_types[0];
  d->expands = d->op == DECODE_ANY && rn_init_bool(init, "expand_animations");
  d->jpeg = (rn_jpeg_options_t){.ratio = 1, .is_fancy = true, .least = 1};
  d->jpeg.channels = (int)d->channels;
  return d->op <= CROP_JPEG ? init_jpeg(init, &d->jpeg) : RN_OK;
}

// The destination of the pixels: the output, or first a tensor of the codec's type.
typedef struct codec_target_t {
  rn_kernel_ctx_t* ctx;
  const decode_t* decode;
  rn_dtype_t dtype;  // type of the pixels
  bool has_frames;   // four dimensions
  rn_tensor_t pixels;
} codec_target_t;

static rn_shape_t shape_of(const codec_target_t* t, const int64_t dims[4]) {
  return t->has_frames ? (rn_shape_t){4, dims} : (rn_shape_t){3, dims + 1};
}

static rn_status_t target_allocate(void* arg, int64_t frames, int64_t height, int64_t width,
                                   int64_t channels, void** out_pixels) {
  codec_target_t* t = arg;
  int64_t dims[4] = {frames, height, width, channels};
  if (t->dtype != t->decode->dtype) {
    RN_RETURN_IF_ERROR(rn_temp(t->ctx, t->dtype, shape_of(t, dims), &t->pixels));
    *out_pixels = t->pixels.data;
    return RN_OK;
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(t->ctx, 0, shape_of(t, dims), &out));
  *out_pixels = out->data;
  return RN_OK;
}

// Converts integers to another integer range, or to floats in [0, 1].
static rn_status_t convert(codec_target_t* t) {
  if (t->dtype == t->decode->dtype) return RN_OK;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(t->ctx, 0, rn_tensor_shape(&t->pixels), &out));
  const uint8_t* bytes = t->pixels.data;
  const uint16_t* words = t->pixels.data;
  if (out->dtype == RN_UINT16) {
    for (int64_t i = 0; i < out->count; ++i) RN_DATA(out, uint16_t)[i] = (uint16_t)(bytes[i] << 8);
  } else if (t->dtype == RN_UINT8) {
    for (int64_t i = 0; i < out->count; ++i)
      RN_DATA(out, float)[i] = (float)bytes[i] * (1.0f / UINT8_MAX);
  } else {
    for (int64_t i = 0; i < out->count; ++i)
      RN_DATA(out, float)[i] = (float)words[i] * (1.0f / UINT16_MAX);
  }
  return RN_OK;
}

// For ops that accept only one frame.
static rn_status_t gif_once(const decode_t* d, rn_str_t bytes, codec_target_t* t) {
  rn_image_sink_t sink = {target_allocate, t};
  bool is_still = d->op == DECODE_ANY && !d->expands;
  int64_t frames = 0;
  t->has_frames = d->op == DECODE_GIF || d->expands;
  RN_RETURN_IF_ERROR(rn_gif_decode(bytes, is_still || !t->has_frames, &sink, &frames));
  if (frames == 1 || t->has_frames || is_still) return RN_OK;
  return rn_invalid_argument(
      "Got %" PRId64
      " frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image",
      frames);
}

static const char* const format_names[] = {
    [RN_IMAGE_UNKNOWN] = "unknown", [RN_IMAGE_JPEG] = "JPEG", [RN_IMAGE_PNG] = "PNG",
    [RN_IMAGE_GIF] = "GIF",         [RN_IMAGE_BMP] = "BMP",   [RN_IMAGE_WEBP] = "WebP",
    [RN_IMAGE_JXL] = "JPEG XL"};
static const char* const op_names[] = {
    [RN_IMAGE_JPEG] = "jpeg", [RN_IMAGE_PNG] = "png", [RN_IMAGE_GIF] = "gif"};

// Checks that the op accepts this format with this number of channels.
static rn_status_t check_format(const decode_t* d, rn_image_format_t format) {
  if (format == RN_IMAGE_UNKNOWN)
    return rn_invalid_argument(
        "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required.");
  // These two are decoded by any op, and never cropped.
  if (format == RN_IMAGE_WEBP || format == RN_IMAGE_JXL) {
    if (d->dtype == RN_UINT8) return RN_OK;
    return rn_invalid_argument("%s only supports uint8 for dtype",
                               format == RN_IMAGE_WEBP ? "WebP" : "JXL");
  }
  if (format == RN_IMAGE_JPEG && d->channels == 4)
    return rn_invalid_argument("JPEG does not support 4 channels");
  if (format == RN_IMAGE_GIF && d->channels != 0 && d->channels != 3)
    return rn_invalid_argument("channels must be 0 or 3 for GIF, got %" PRId64, d->channels);
  if (format == RN_IMAGE_BMP && d->channels == 1)
    return rn_invalid_argument("`channels` must be 0, 3 or 4 for BMP, but got 1");
  if (d->op == CROP_JPEG && format != RN_IMAGE_JPEG)
    return rn_invalid_argument("DecodeAndCropJpeg operation can run on JPEG only, but detected %s.",
                               format_names[format]);
  if (d->op == DECODE_BMP && format != RN_IMAGE_BMP)
    return rn_invalid_argument(
        "Trying to decode %s format using DecodeBmp op. Use `decode_%s` or `decode_image` instead.",
        format_names[format], op_names[format]);
  if (d->op != DECODE_BMP && d->op != DECODE_ANY && format == RN_IMAGE_BMP)
    return rn_invalid_argument(
        "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. "
        "Op used: %s",
        d->name);
  return RN_OK;
}

static rn_status_t decode_as(const decode_t* d, rn_image_format_t format, rn_str_t bytes,
                             const rn_image_crop_t* crop, codec_target_t* t) {
  rn_image_sink_t sink = {target_allocate, t};
  rn_jpeg_options_t jpeg = d->jpeg;
  jpeg.crop = crop;
  t->has_frames = d->op == DECODE_GIF;
  switch (format) {
    case RN_IMAGE_JPEG:
      return rn_jpeg_decode(bytes, &jpeg, &sink);
    case RN_IMAGE_PNG:
      if (d->dtype != RN_UINT8) t->dtype = RN_UINT16;
      return rn_png_decode(bytes, (int)d->channels, t->dtype == RN_UINT8 ? 8 : 16, &sink);
    case RN_IMAGE_GIF:
      return gif_once(d, bytes, t);
    case RN_IMAGE_WEBP:
      // Always four dimensions, but for DecodeImage without animations.
      t->has_frames = d->op != DECODE_ANY || d->expands;
      return rn_webp_decode(bytes, (int)d->channels, !t->has_frames, &sink);
    case RN_IMAGE_JXL:
      t->has_frames = false;
      return rn_jxl_decode(bytes, (int)d->channels, &sink);
    default:
      return rn_bmp_decode(bytes, (int)d->channels, &sink);
  }
}

static rn_status_t read_crop(rn_kernel_ctx_t* ctx, rn_image_crop_t* out) {
  const rn_tensor_t* window = rn_in(ctx, 1);
  if (window->rank != 1)
    return rn_invalid_argument("crop_window must be 1-D, got shape %s", rn_text_of(window).text);
  if (window->count != 4)
    return rn_invalid_argument("crop_size must have four elements %s", rn_text_of(window).text);
  const int32_t* values = window->data;
  *out = (rn_image_crop_t){values[0], values[1], values[2], values[3]};
  return RN_OK;
}

static rn_status_t decode_compute(rn_kernel_ctx_t* ctx) {
  const decode_t* d = ctx->state;
  const rn_tensor_t* contents = rn_in(ctx, 0);
  if (contents->rank != 0)
    return rn_invalid_argument("`contents` must be scalar but got shape%s",
                               rn_text_of(contents).text);
  rn_str_t bytes = rn_tstring_view(RN_DATA(contents, const rn_tstring_t));
  if (bytes.size == 0) return rn_invalid_argument("Input is empty.");
  if (bytes.size > INT32_MAX)
    return rn_invalid_argument("Input contents are too large for int: %zu", bytes.size);
  rn_image_format_t format = rn_image_format(bytes);
  RN_RETURN_IF_ERROR(check_format(d, format));
  rn_image_crop_t crop;
  if (d->op == CROP_JPEG) RN_RETURN_IF_ERROR(read_crop(ctx, &crop));
  codec_target_t target = {.ctx = ctx, .decode = d, .dtype = RN_UINT8};
  rn_status_t status = decode_as(d, format, bytes, d->op == CROP_JPEG ? &crop : NULL, &target);
  if (rn_ok(status)) status = convert(&target);
  rn_tensor_clear(&target.pixels);
  return status;
}

static rn_status_t shape_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* contents = rn_in(ctx, 0);
  if (contents->rank != 0)
    return rn_invalid_argument("contents must be scalar, got shape %s", rn_text_of(contents).text);
  int64_t shape[3], three = 3;
  rn_str_t bytes = rn_tstring_view(RN_DATA(contents, const rn_tstring_t));
  RN_RETURN_IF_ERROR(rn_jpeg_shape(bytes, shape));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &three}, &out));
  for (int i = 0; i < 3; ++i) rn_int_set(out, i, shape[i]);
  return RN_OK;
}

// Encoding.
typedef struct encode_t {
  rn_jpeg_write_t jpeg;
  int64_t channels;  // required by the format; 0 for 1 or 3
  rn_str_t xmp;      // Owned
  rn_allocator_t allocator;
} encode_t;

static rn_status_t check_quality(int64_t quality) {
  if (quality >= 0 && quality <= 100) return RN_OK;
  return rn_invalid_argument("quality must be in [0,100], got %" PRId64, quality);
}

static rn_status_t jpeg_init(const rn_kernel_init_t* init, void* state) {
  encode_t* e = state;
  e->allocator = init->allocator;
  e->jpeg = (rn_jpeg_write_t){.x_density = 300, .y_density = 300};
  if (rn_op_attr_index(init->op, RN_STR("quality")) < 0) return RN_OK;
  rn_str_t format = rn_init_string(init, "format");
  e->channels = rn_str_is(format, "grayscale") ? 1 : rn_str_is(format, "rgb") ? 3 : 0;
  RN_RETURN_IF_ERROR(check_quality(rn_init_int(init, "quality")));
  e->jpeg.quality = (int)rn_init_int(init, "quality");
  e->jpeg.is_progressive = rn_init_bool(init, "progressive");
  e->jpeg.is_optimized = rn_init_bool(init, "optimize_size");
  e->jpeg.has_full_chroma = !rn_init_bool(init, "chroma_downsampling");
  e->jpeg.is_per_cm = rn_str_is(rn_init_string(init, "density_unit"), "cm");
  e->jpeg.x_density = (int)rn_init_int(init, "x_density");
  e->jpeg.y_density = (int)rn_init_int(init, "y_density");
  char* copy = NULL;
  rn_str_t xmp = rn_init_string(init, "xmp_metadata");
  RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, xmp, &copy));
  e->xmp = e->jpeg.xmp = rn_str_n(copy, xmp.size);
  return RN_OK;
}

static void jpeg_destroy(void* state) {
  encode_t* e = state;
  if (e->xmp.data) rn_free(e->allocator, (char*)(uintptr_t)e->xmp.data, e->xmp.size + 1);
}

static rn_status_t set_text(rn_kernel_ctx_t* ctx, rn_status_t status, rn_strbuf_t* buf) {
  rn_tensor_t* out = NULL;
  if (rn_ok(status)) status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  rn_str_t text = rn_strbuf_view(buf);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(buf);
  return status;
}

static rn_status_t jpeg_compute(rn_kernel_ctx_t* ctx) {
  const encode_t* e = ctx->state;
  rn_jpeg_write_t options = e->jpeg;
  const rn_tensor_t* image = rn_in(ctx, 0);
  if (image->rank != 3)
    return rn_invalid_argument("image must be 3-dimensional%s", rn_text_of(image).text);
  int64_t channels = rn_tensor_dim(image, 2);
  if (ctx->kernel->input_count > 1) {
    const rn_tensor_t* quality = rn_in(ctx, 1);
    if (quality->rank != 0)
      return rn_invalid_argument("quality must be scalar: %s", rn_text_of(quality).text);
    options.quality = *RN_DATA(quality, const int32_t);
    RN_RETURN_IF_ERROR(check_quality(options.quality));
  }
  if (e->channels && channels != e->channels)
    return rn_invalid_argument("format %s expects %" PRId64 " channels, got %s",
                               e->channels == 1 ? "grayscale" : "rgb", e->channels,
                               rn_text_of(image).text);
  if (channels != 1 && channels != 3)
    return rn_invalid_argument("image must have 1 or 3 channels, got %s", rn_text_of(image).text);
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = rn_jpeg_encode(image->data, rn_tensor_dim(image, 0), rn_tensor_dim(image, 1),
                                      (int)channels, &options, &buf);
  return set_text(ctx, status, &buf);
}

typedef struct png_t {
  int compression;
} png_t;

static rn_status_t png_init(const rn_kernel_init_t* init, void* state) {
  int64_t compression = rn_init_int(init, "compression");
  if (compression < -1 || compression > 9)
    return rn_invalid_argument("compression should be in [-1,9], got %" PRId64, compression);
  ((png_t*)state)->compression = (int)compression;
  return RN_OK;
}

static rn_status_t png_one(rn_kernel_ctx_t* ctx, const rn_tensor_t* images, int64_t i,
                           rn_tstring_t* out) {
  const int64_t* dims = rn_tensor_dims(images) + images->rank - 3;
  size_t size = rn_dtype_size(images->dtype), step = (size_t)(dims[0] * dims[1] * dims[2]) * size;
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status =
      rn_png_encode((const char*)images->data + (size_t)i * step, dims[0], dims[1], (int)dims[2],
                    (int)size * 8, ((const png_t*)ctx->state)->compression, &buf);
  rn_str_t text = rn_strbuf_view(&buf);
  if (rn_ok(status) && !rn_tstring_assign(out, text.data, text.size)) status = rn_out_of_memory();
  rn_strbuf_clear(&buf);
  return status;
}

// Reports all images that could not be encoded in one message.
static rn_status_t png_all(rn_kernel_ctx_t* ctx, const rn_tensor_t* images, rn_tensor_t* out) {
  rn_strbuf_t failed;
  rn_strbuf_init(&failed, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < out->count && rn_ok(status); ++i) {
    rn_status_t one = png_one(ctx, images, i, &RN_DATA(out, rn_tstring_t)[i]);
    if (rn_status_code(one) == RN_CODE_INTERNAL) {
      rn_strbuf_printf(&failed, "%s%" PRId64, failed.size ? "," : "", i);
      rn_status_free(one);
    } else {
      status = one;
    }
  }
  if (rn_ok(status)) status = rn_strbuf_status(&failed);
  if (rn_ok(status) && failed.size)
    status = rn_internal("PNG encoding failed at the following flattened batch indices: %s",
                         failed.data);
  rn_strbuf_clear(&failed);
  return status;
}

static rn_status_t png_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* images = rn_in(ctx, 0);
  if (images->rank < 3)
    return rn_invalid_argument("images must be at least rank 3%s", rn_text_of(images).text);
  int64_t channels = rn_tensor_dim(images, images->rank - 1);
  if (channels < 1 || channels > 4)
    return rn_invalid_argument("image must have 1, 2, 3, or 4 channels, got %" PRId64, channels);
  rn_tensor_t* out = NULL;
  rn_shape_t batch = {images->rank - 3, rn_tensor_dims(images)};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, batch, &out));
  return png_all(ctx, images, out);
}

#define DECODE(name)                                                                           \
  {                                                                                            \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(decode_t), \
    .init = decode_init, .compute = decode_compute                                             \
  }
#define ENCODE(name)                                                                           \
  {                                                                                            \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(encode_t), \
    .init = jpeg_init, .destroy = jpeg_destroy, .compute = jpeg_compute                        \
  }

static const rn_kernel_def_t rows[] = {
    DECODE("DecodeJpeg"),
    DECODE("DecodeAndCropJpeg"),
    DECODE("DecodePng"),
    DECODE("DecodeGif"),
    DECODE("DecodeBmp"),
    DECODE("DecodeWebP"),
    DECODE("DecodeJxl"),
    DECODE("DecodeImage"),
    {.op = "ExtractJpegShape", .device = "CPU", .compute = shape_compute},
    ENCODE("EncodeJpeg"),
    ENCODE("EncodeJpegVariableQuality"),
    {.op = "EncodePng",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(png_t),
     .init = png_init,
     .compute = png_compute},
};
RN_KERNEL_FAMILY(cpu_image_codec, rows);
