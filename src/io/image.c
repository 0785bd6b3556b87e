// Recognises image files by their first bytes, and decodes Windows bitmaps: see image.h.
//
// A bitmap: "BM", then at 10 the place of the pixels, at 18 the width, at 22 the height (negative:
// rows come from the top), at 28 the bits of a pixel, all little endian. Rows are blue, green, red
// (and alpha), filled up to four bytes. Palettes and compression are not looked at, as in stock.
#include "io/image.h"

#include <inttypes.h>

rn_image_format_t rn_image_format(rn_str_t bytes) {
  static const struct {
    rn_image_format_t format;
    rn_str_t magic;
  } formats[] = {
      {RN_IMAGE_JPEG, {"\xff\xd8\xff", 3}}, {RN_IMAGE_PNG, {"\x89PNG\r\n\x1a\n", 8}},
      {RN_IMAGE_GIF, {"GIF8", 4}},          {RN_IMAGE_BMP, {"BM", 2}},
      {RN_IMAGE_JXL, {"\xff\x0a", 2}},      {RN_IMAGE_JXL, {"\0\0\0\x0cJXL \x0d\x0a\x87\x0a", 12}},
  };
  for (size_t i = 0; i < sizeof formats / sizeof *formats; ++i)
    if (rn_str_starts_with(bytes, formats[i].magic)) return formats[i].format;
  if (bytes.size >= 12 && memcmp(bytes.data, "RIFF", 4) == 0 &&
      memcmp(bytes.data + 8, "WEBP", 4) == 0)
    return RN_IMAGE_WEBP;
  return RN_IMAGE_UNKNOWN;
}

static int32_t little(rn_str_t bytes, size_t at, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= (uint32_t)(uint8_t)bytes.data[at + (size_t)i] << (8 * i);
  return (int32_t)value;
}

static void copy_row(const uint8_t* from, int64_t width, int in, int out, uint8_t* to) {
  for (int64_t x = 0; x < width; ++x, from += in, to += out) {
    if (in == 1) {
      for (int c = 0; c < out && c < 3; ++c) to[c] = from[0];
    } else {
      to[0] = from[2];
      to[1] = from[1];
      to[2] = from[0];
    }
    if (out == 4) to[3] = in == 4 ? from[3] : UINT8_MAX;
  }
}

rn_status_t rn_bmp_decode(rn_str_t bytes, int channels, const rn_image_sink_t* sink) {
  if (bytes.size < 32)
    return rn_invalid_argument(
        "Incomplete bmp content, requires at least 32 bytes to find the header size, width, "
        "height, and bpp, got %zu bytes",
        bytes.size);
  int64_t start = little(bytes, 10, 4), width = little(bytes, 18, 4), height = little(bytes, 22, 4);
  int in = little(bytes, 28, 2) / 8;
  if (start < 0) return rn_invalid_argument("header size must be nonnegative");
  if (width <= 0) return rn_invalid_argument("Width must be positive");
  if (height == 0) return rn_invalid_argument("Height must be nonzero");
  if (in != 1 && in != 3 && in != 4)
    return rn_invalid_argument("Number of channels inherent in the image must be 1, 3 or 4, was %d",
                               in);
  int64_t rows = height < 0 ? -height : height, out = channels ? channels : in;
  // Neither product can overflow: both factors are below 2^32.
  if (width * rows >= (INT64_C(1) << 30) / (out > in ? out : in))
    return rn_invalid_argument("Total possible pixel bytes must be less than 2^30");
  int64_t stride = (width * in + 3) / 4 * 4;
  int64_t rest = (int64_t)bytes.size - (start + stride * rows);
  if (rest != 0)
    return rn_invalid_argument(
        "Input size should match (header_size + row_size * abs_height) but they differ by "
        "%" PRId64,
        rest);
  void* pixels = NULL;
  RN_RETURN_IF_ERROR(sink->allocate(sink->arg, 1, rows, width, out, &pixels));
  for (int64_t y = 0; y < rows; ++y) {
    int64_t from = height < 0 ? y : rows - 1 - y;
    copy_row((const uint8_t*)bytes.data + start + from * stride, width, in, (int)out,
             (uint8_t*)pixels + y * width * out);
  }
  return RN_OK;
}
