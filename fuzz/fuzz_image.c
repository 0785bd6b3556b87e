// Fuzzes the image decoders. The first byte selects how to decode, the rest is the file. The result
// must have the announced size, every byte must be set, and encoding it again must give a file that
// decodes.
#include <stdlib.h>

#include "fuzz/util.h"
#include "io/image.h"

enum { MAX_BYTES = 1 << 24 };

typedef struct image_t {
  uint8_t* pixels;  // from malloc with the exact size, so that sanitizers see an overrun
  int64_t frames, height, width, channels;
  int bytes;  // per channel
} image_t;

static rn_status_t allocate(void* arg, int64_t frames, int64_t height, int64_t width,
                            int64_t channels, void** out_pixels) {
  image_t* image = arg;
  fuzz_check(!image->pixels && frames > 0 && height > 0 && width > 0);
  fuzz_check(channels >= 1 && channels <= 4);
  // The product cannot overflow within the decoders' limits.
  int64_t size = frames * height * width * channels * image->bytes;
  if (size > MAX_BYTES) return rn_resource_exhausted("too large for a try");
  *image = (image_t){malloc((size_t)size), frames, height, width, channels, image->bytes};
  *out_pixels = image->pixels;
  return image->pixels ? RN_OK : rn_out_of_memory();
}

static void read_all(const image_t* image) {
  unsigned sum = 0;
  int64_t size = image->frames * image->height * image->width * image->channels * image->bytes;
  for (int64_t i = 0; i < size; ++i) sum += image->pixels[i];
  // Branches on the value, so that MemorySanitizer or Valgrind reports uninitialized memory.
  if (sum == 0xdeadbeef) abort();
}

static void encode_again(const image_t* image) {
  rn_strbuf_t file;
  rn_strbuf_init(&file, rn_allocator_system());
  fuzz_must(rn_png_encode(image->pixels, image->height, image->width, (int)image->channels,
                          image->bytes * 8, 1, &file));
  image_t back = {.bytes = image->bytes};
  rn_image_sink_t sink = {allocate, &back};
  fuzz_must(rn_png_decode(rn_strbuf_view(&file), 0, image->bytes * 8, &sink));
  fuzz_check(back.height == image->height && back.width == image->width &&
             back.channels == image->channels);
  int64_t size = image->height * image->width * image->channels * image->bytes;
  fuzz_check(memcmp(back.pixels, image->pixels, (size_t)size) == 0);
  free(back.pixels);
  rn_strbuf_clear(&file);
}

static rn_status_t decode(int how, rn_str_t bytes, image_t* image) {
  static const int channels[] = {0, 1, 3, 4}, ratios[] = {1, 2, 4, 8};
  rn_image_sink_t sink = {allocate, image};
  rn_image_crop_t crop = {1, 2, 3, 4};
  int64_t frames = 0, shape[3];
  switch (how & 3) {
    case 0: {
      rn_jpeg_options_t options = {.channels = channels[how >> 2 & 3] % 4,
                                   .ratio = ratios[how >> 4 & 3],
                                   .is_fancy = how & 8,
                                   .recovers = how & 64,
                                   .least = how & 128 ? 0.5f : 1,
                                   .crop = how & 4 ? &crop : NULL};
      rn_status_free(rn_jpeg_shape(bytes, shape));
      return rn_jpeg_decode(bytes, &options, &sink);
    }
    case 1:
      image->bytes = how & 16 ? 2 : 1;
      return rn_png_decode(bytes, channels[how >> 2 & 3], image->bytes * 8, &sink);
    case 2:
      return rn_gif_decode(bytes, how & 4, &sink, &frames);
    default:
      return rn_bmp_decode(bytes, (const int[]){0, 3, 4, 0}[how >> 2 & 3], &sink);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  image_t image = {.bytes = 1};
  rn_status_t status = decode(data[0], rn_str_n((const char*)data + 1, size - 1), &image);
  if (rn_ok(status)) {
    fuzz_check(image.pixels);
    read_all(&image);
    if (image.frames == 1) encode_again(&image);
  }
  free(image.pixels);
  rn_status_free(status);
  return 0;
}
