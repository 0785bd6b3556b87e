// Decodes and encodes PNG with libpng: see image.h. libpng reports errors with longjmp; everything
// that must be freed is in a struct outside of the function with the setjmp.
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <zlib.h>

#include <png.h>

#include "io/image.h"

#define LIBRARY "libpng16.so.16"

#define FUNCTIONS(X)            \
  X(create_read_struct)         \
  X(destroy_read_struct)        \
  X(create_write_struct)        \
  X(destroy_write_struct)       \
  X(create_info_struct)         \
  X(get_error_ptr)              \
  X(get_io_ptr)                 \
  X(set_read_fn)                \
  X(set_write_fn)               \
  X(read_info)                  \
  X(get_IHDR)                   \
  X(get_valid)                  \
  X(get_channels)               \
  X(set_strip_alpha)            \
  X(set_strip_16)               \
  X(set_packing)                \
  X(set_interlace_handling)     \
  X(set_swap)                   \
  X(set_palette_to_rgb)         \
  X(set_expand_gray_1_2_4_to_8) \
  X(set_gray_to_rgb)            \
  X(set_rgb_to_gray)            \
  X(set_add_alpha)              \
  X(set_tRNS_to_alpha)          \
  X(read_update_info)           \
  X(get_rowbytes)               \
  X(read_row)                   \
  X(read_end)                   \
  X(set_compression_level)      \
  X(set_compression_mem_level)  \
  X(set_IHDR)                   \
  X(write_info)                 \
  X(write_row)                  \
  X(write_end)

// Filled in once, then read-only; process-wide, like the library that it points into.
static struct {
  pthread_once_t once;
#define FIELD(name) __typeof__(&png_##name) name;
  FUNCTIONS(FIELD)
#undef FIELD
  const char* missing;  // NULL if everything was found
} png = {.once = PTHREAD_ONCE_INIT};

static void load(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) png.missing = LIBRARY;
#define LOAD(name)                                                \
  if (library) *(void**)&png.name = dlsym(library, "png_" #name); \
  if (!png.name && !png.missing) png.missing = "png_" #name;
  FUNCTIONS(LOAD)
#undef LOAD
}

static rn_status_t need_library(void) {
  pthread_once(&png.once, load);
  if (!png.missing) return RN_OK;
  return rn_unimplemented(
      "libpng is needed and could not be loaded: %s is missing (Debian: libpng16-16)", png.missing);
}

typedef struct coder_t {
  png_structp png;
  png_infop info;
  jmp_buf back;
  rn_str_t in;       // what is left to read
  rn_strbuf_t* out;  // where to write
  png_uint_32 width, height;
  int channels, depth, passes;
  bool is_widened;  // 8 bits become 16
} coder_t;

static void on_error(png_structp p, png_const_charp message) {
  (void)message;
  longjmp(((coder_t*)png.get_error_ptr(p))->back, 1);
}
static void on_warning(png_structp p, png_const_charp message) {
  (void)p;
  (void)message;
}

static void on_read(png_structp p, png_bytep to, size_t size) {
  coder_t* c = png.get_io_ptr(p);
  if (size > c->in.size) on_error(p, "the file is cut off");
  memcpy(to, c->in.data, size);
  c->in.data += size;
  c->in.size -= size;
}

// Converts the file's channels to those wanted: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
static void set_transforms(coder_t* c, int colour, int bits) {
  bool has_alpha = colour & PNG_COLOR_MASK_ALPHA, is_grey = !(colour & PNG_COLOR_MASK_COLOR);
  bool has_key = png.get_valid(c->png, c->info, PNG_INFO_tRNS);
  bool is_palette = colour == PNG_COLOR_TYPE_PALETTE;
  if (c->channels == 0)
    c->channels = !is_palette ? png.get_channels(c->png, c->info) : has_key ? 4 : 3;
  bool wants_alpha = c->channels % 2 == 0, wants_grey = c->channels < 3;
  if (has_alpha && !wants_alpha) png.set_strip_alpha(c->png);
  if (c->depth > 8 && bits <= 8) png.set_strip_16(c->png);
  c->is_widened = bits > 8 && c->depth <= 8;
  png.set_packing(c->png);
  c->passes = png.set_interlace_handling(c->png);
  if (bits > 8) png.set_swap(c->png);
  if (is_palette) png.set_palette_to_rgb(c->png);
  if (is_grey && c->depth < 8) png.set_expand_gray_1_2_4_to_8(c->png);
  if (wants_grey && !is_grey) png.set_rgb_to_gray(c->png, 1, 0.299, 0.587);
  if (!wants_grey && is_grey) png.set_gray_to_rgb(c->png);
  if (wants_alpha && has_key) png.set_tRNS_to_alpha(c->png);
  // As in TensorFlow, the value for opaque depends on the bit depth of the file, even below 8.
  if (wants_alpha && !has_alpha && !has_key)
    png.set_add_alpha(c->png, (1u << c->depth) - 1, PNG_FILLER_AFTER);
  if (!wants_alpha && has_key && is_palette) png.set_strip_alpha(c->png);
}

// zlib compresses by a factor of at most 1032.
static bool is_too_short(const coder_t* c, int colour) {
  int values = colour == PNG_COLOR_TYPE_PALETTE ? 1 : (int)png.get_channels(c->png, c->info);
  uint64_t row = ((uint64_t)c->width * (unsigned)(values * c->depth) + 7) / 8;
  return row * c->height / 1032 > c->in.size;
}

static bool read_header(coder_t* c, int bits) {
  int colour = 0, unused;
  if (setjmp(c->back)) return false;
  c->png = png.create_read_struct(PNG_LIBPNG_VER_STRING, c, on_error, on_warning);
  if (c->png) c->info = png.create_info_struct(c->png);
  if (!c->info) return false;
  png.set_read_fn(c->png, c, on_read);
  png.read_info(c->png, c->info);
  png.get_IHDR(c->png, c->info, &c->width, &c->height, &c->depth, &colour, &unused, &unused,
               &unused);
  if (c->width == 0 || c->height == 0 || is_too_short(c, colour)) return false;
  set_transforms(c, colour, bits);
  png.read_update_info(c->png, c->info);
  return true;
}

static void widen(uint8_t* row, size_t values) {
  for (size_t i = values; i-- > 0;) {
    uint16_t value = (uint16_t)(row[i] * 257);
    memcpy(row + 2 * i, &value, sizeof value);
  }
}

static bool read_pixels(coder_t* c, uint8_t* pixels, size_t stride) {
  if (setjmp(c->back)) return false;
  size_t row = png.get_rowbytes(c->png, c->info);
  if (row != stride / (c->is_widened ? 2 : 1)) return false;
  for (int pass = 0; pass < c->passes; ++pass)
    for (png_uint_32 y = 0; y < c->height; ++y) png.read_row(c->png, pixels + y * stride, NULL);
  png.read_end(c->png, c->info);
  return true;
}

static rn_status_t decode(coder_t* c, rn_str_t bytes, int bits, const rn_image_sink_t* sink) {
  if (!read_header(c, bits))
    return rn_invalid_argument("Invalid PNG. Failed to initialize decoder.");
  int64_t limit = INT64_C(1) << 27;
  if (c->width >= limit || c->height >= limit ||
      (int64_t)c->width * c->height >= RN_IMAGE_MAX_PIXELS)
    return rn_invalid_argument("PNG size too large for int: %u by %u", c->width, c->height);
  void* pixels = NULL;
  RN_RETURN_IF_ERROR(sink->allocate(sink->arg, 1, c->height, c->width, c->channels, &pixels));
  size_t values = (size_t)c->width * (size_t)c->channels, stride = values * (size_t)(bits / 8);
  if (!read_pixels(c, pixels, stride))
    return rn_invalid_argument("Invalid PNG data, size %zu", bytes.size);
  for (png_uint_32 y = 0; c->is_widened && y < c->height; ++y)
    widen((uint8_t*)pixels + y * stride, values);
  return RN_OK;
}

rn_status_t rn_png_decode(rn_str_t bytes, int channels, int bits, const rn_image_sink_t* sink) {
  RN_RETURN_IF_ERROR(need_library());
  coder_t c = {.in = bytes, .channels = channels};
  rn_status_t status = decode(&c, bytes, bits, sink);
  png.destroy_read_struct(&c.png, &c.info, NULL);
  return status;
}

static void on_write(png_structp p, png_bytep data, size_t size) {
  rn_strbuf_append_n(((coder_t*)png.get_io_ptr(p))->out, data, size);
}
static void on_flush(png_structp p) { (void)p; }

static bool encode(coder_t* c, const uint8_t* pixels, int compression) {
  static const int colours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  if (setjmp(c->back)) return false;
  c->png = png.create_write_struct(PNG_LIBPNG_VER_STRING, c, on_error, on_warning);
  if (c->png) c->info = png.create_info_struct(c->png);
  if (!c->info) return false;
  png.set_write_fn(c->png, c, on_write, on_flush);
  png.set_compression_level(c->png, compression);
  png.set_compression_mem_level(c->png, MAX_MEM_LEVEL);
  png.set_IHDR(c->png, c->info, c->width, c->height, c->depth, colours[c->channels],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png.write_info(c->png, c->info);
  if (c->depth > 8) png.set_swap(c->png);
  size_t stride = (size_t)c->width * (size_t)(c->channels * c->depth / 8);
  for (png_uint_32 y = 0; y < c->height; ++y) png.write_row(c->png, pixels + y * stride);
  png.write_end(c->png, NULL);
  return true;
}

rn_status_t rn_png_encode(const void* pixels, int64_t height, int64_t width, int channels, int bits,
                          int compression, rn_strbuf_t* out) {
  RN_RETURN_IF_ERROR(need_library());
  coder_t c = {.out = out, .channels = channels, .depth = bits};
  bool is_encoded = false;
  if (height > 0 && width > 0 && height <= INT32_MAX && width <= INT32_MAX) {
    c.width = (png_uint_32)width;
    c.height = (png_uint_32)height;
    is_encoded = encode(&c, pixels, compression);
    png.destroy_write_struct(&c.png, &c.info);
  }
  RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  return is_encoded ? RN_OK : rn_internal("PNG encoding failed");
}
