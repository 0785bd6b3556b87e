// Decodes JPEG, PNG, GIF, BMP, WebP and JPEG XL files; encodes JPEG and PNG.
//
// libjpeg, libpng, libwebp and libjxl, each loaded on first use, handle their formats; if one is
// missing, the status names its Debian package. GIF and BMP are decoded here. Pixels are in rows
// from the top, with interleaved channels; 16-bit values in native byte order. Any thread may call
// any function.
//
// Files are untrusted: sizes are checked before anything is allocated. An image has fewer than 2^29
// pixels (RN_IMAGE_MAX_PIXELS). If the file is too short for its claimed size at the best possible
// compression, decoding fails before the pixels are allocated.
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
  RN_IMAGE_WEBP,
  RN_IMAGE_JXL,
} rn_image_format_t;

// Recognises a format by its first bytes.
rn_image_format_t rn_image_format(rn_str_t bytes);

// Allocates the pixels. A decoder calls |allocate| once, when it knows the size, and then fills in
// |*out_pixels|: frames * height * width * channels values. An error of |allocate| is returned to
// the decoder's caller; after a later failure, the pixels are partly filled.
typedef struct rn_image_sink_t {
  rn_status_t (*allocate)(void* arg, int64_t frames, int64_t height, int64_t width,
                          int64_t channels, void** out_pixels);
  void* arg;
} rn_image_sink_t;

typedef struct rn_image_crop_t {
  int32_t y, x, height, width;
} rn_image_crop_t;

typedef struct rn_jpeg_options_t {
  int channels;      // 1 or 3; 0 for those of the file, at most 3
  int ratio;         // 1, 2, 4 or 8: divides the size of the image
  bool is_accurate;  // use the slower, more accurate DCT
  bool is_fancy;     // interpolate subsampled chroma
  bool recovers;     // accept a truncated file
  float least;       // the fraction of rows that must exist, 1 for all; missing rows are black
  const rn_image_crop_t* crop;  // NULL for the whole image
} rn_jpeg_options_t;

RN_MUST_USE rn_status_t rn_jpeg_decode(rn_str_t bytes, const rn_jpeg_options_t* options,
                                       const rn_image_sink_t* sink);
// Height, width and channels, from the header alone.
RN_MUST_USE rn_status_t rn_jpeg_shape(rn_str_t bytes, int64_t out_shape[3]);

typedef struct rn_jpeg_write_t {
  int quality;  // 0 to 100
  bool is_progressive, is_optimized;
  bool has_full_chroma;  // no chroma subsampling
  bool is_per_cm;        // densities are per centimetre, otherwise per inch
  int x_density, y_density;
  rn_str_t xmp;
} rn_jpeg_write_t;

// Appends a JPEG file to |out|; |channels| (1 or 3) is the number of bytes per pixel.
RN_MUST_USE rn_status_t rn_jpeg_encode(const uint8_t* pixels, int64_t height, int64_t width,
                                       int channels, const rn_jpeg_write_t* options,
                                       rn_strbuf_t* out);

// |bits| per decoded channel: 8 or 16. |channels| 0 for those of the file.
RN_MUST_USE rn_status_t rn_png_decode(rn_str_t bytes, int channels, int bits,
                                      const rn_image_sink_t* sink);
// |channels| 1 to 4, of 8 or 16 bits; |compression| is zlib's level, -1 for its default.
RN_MUST_USE rn_status_t rn_png_encode(const void* pixels, int64_t height, int64_t width,
                                      int channels, int bits, int compression, rn_strbuf_t* out);

// Decodes frames of 3 channels; only the first if |is_still|. Pixels that a frame omits come from
// the frame before. A truncated file yields the complete frames before the end.
RN_MUST_USE rn_status_t rn_gif_decode(rn_str_t bytes, bool is_still, const rn_image_sink_t* sink,
                                      int64_t* out_frames);

// |channels| 0, 3 or 4.
RN_MUST_USE rn_status_t rn_bmp_decode(rn_str_t bytes, int channels, const rn_image_sink_t* sink);

// |channels| 0 for those of the file, else the same: 3, or 4 with alpha. All frames of an
// animation, or the first if |is_still|.
RN_MUST_USE rn_status_t rn_webp_decode(rn_str_t bytes, int channels, bool is_still,
                                       const rn_image_sink_t* sink);

// |channels| 0 for those of the file, else the same. The first frame of an animation.
RN_MUST_USE rn_status_t rn_jxl_decode(rn_str_t bytes, int channels, const rn_image_sink_t* sink);

#endif  // RUNNEL_IO_IMAGE_H_
