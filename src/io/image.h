// Image files: JPEG, PNG, GIF and BMP, from bytes to pixels and back.
//
// JPEG and PNG are the work of libjpeg and libpng, which are opened when they are first needed; a
// status says which Debian package is missing when they are not there. GIF and BMP are decoded
// here. Pixels are rows from the top, channels beside each other; 16-bit ones in the machine's
// order. Every function may be called from any thread.
//
// Foreign bytes: sizes are checked before anything is allocated by them. An image has fewer than
// 2^29 pixels (RN_IMAGE_MAX_PIXELS), and one that its file is too short for, however well it might
// be packed, is refused before its pixels are allocated.
#ifndef RUNNEL_IO_IMAGE_H_
#define RUNNEL_IO_IMAGE_H_

#include "base/str.h"

#define RN_IMAGE_MAX_PIXELS (INT64_C(1) << 29)

typedef enum rn_image_format_t {
  RN_IMAGE_UNKNOWN,
  RN_IMAGE_JPEG,
  RN_IMAGE_PNG,
  RN_IMAGE_GIF,
  RN_IMAGE_BMP,
  RN_IMAGE_WEBP,  // known by sight only
  RN_IMAGE_JXL,   // known by sight only
} rn_image_format_t;

// By the first bytes.
rn_image_format_t rn_image_format(rn_str_t bytes);

// Who makes the place for pixels. A decoder calls |allocate| once, when it knows the size, and then
// fills the bytes at |*out_pixels|: frames * height * width * channels values. What |allocate|
// returns goes to the decoder's caller; a later failure leaves the pixels half filled.
typedef struct rn_image_sink_t {
  rn_status_t (*allocate)(void* arg, int64_t frames, int64_t height, int64_t width,
                          int64_t channels, void** out_pixels);
  void* arg;
} rn_image_sink_t;

typedef struct rn_image_crop_t {
  int32_t y, x, height, width;
} rn_image_crop_t;

typedef struct rn_jpeg_options_t {
  int channels;      // 1 or 3; 0: as many as the file has, at most 3
  int ratio;         // 1, 2, 4 or 8: the image comes out that much smaller
  bool is_accurate;  // the slower transform
  bool is_fancy;     // colours are interpolated where they are coarser than brightness
  bool recovers;     // a file that is cut off is completed from its last row
  float least;       // the part of the rows that must be there, 1: all; the others are black
  const rn_image_crop_t* crop;  // NULL: the whole image
} rn_jpeg_options_t;

RN_MUST_USE rn_status_t rn_jpeg_decode(rn_str_t bytes, const rn_jpeg_options_t* options,
                                       const rn_image_sink_t* sink);
// Height, width and channels, from the header alone.
RN_MUST_USE rn_status_t rn_jpeg_shape(rn_str_t bytes, int64_t out_shape[3]);

typedef struct rn_jpeg_write_t {
  int quality;  // 0 to 100
  bool is_progressive, is_optimized;
  bool has_full_chroma;  // colours as fine as brightness
  bool is_per_cm;        // densities are of a centimetre; otherwise of an inch
  int x_density, y_density;
  rn_str_t xmp;
} rn_jpeg_write_t;

// Appends the file of |channels| (1 or 3) bytes a pixel to |out|.
RN_MUST_USE rn_status_t rn_jpeg_encode(const uint8_t* pixels, int64_t height, int64_t width,
                                       int channels, const rn_jpeg_write_t* options,
                                       rn_strbuf_t* out);

// |bits| of the pixels that come out: 8 or 16. |channels| 0: as the file has them.
RN_MUST_USE rn_status_t rn_png_decode(rn_str_t bytes, int channels, int bits,
                                      const rn_image_sink_t* sink);
// |channels| 1 to 4, of 8 or 16 bits; |compression| of zlib, -1: its default.
RN_MUST_USE rn_status_t rn_png_encode(const void* pixels, int64_t height, int64_t width,
                                      int channels, int bits, int compression, rn_strbuf_t* out);

// Frames of 3 channels; the first alone if |is_still|. What a frame leaves out it takes from the
// one before. A file that breaks off gives the frames before the break.
RN_MUST_USE rn_status_t rn_gif_decode(rn_str_t bytes, bool is_still, const rn_image_sink_t* sink,
                                      int64_t* out_frames);

// |channels| 0, 3 or 4.
RN_MUST_USE rn_status_t rn_bmp_decode(rn_str_t bytes, int channels, const rn_image_sink_t* sink);

#endif  // RUNNEL_IO_IMAGE_H_
