// Decodes and encodes JPEG with libjpeg: see image.h. libjpeg reports errors with longjmp, so each
// entry point has one setjmp, and everything that must be freed is in a struct outside of that
// function.
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>

#include "io/image.h"

#define LIBRARY "libjpeg.so.62"

#define FUNCTIONS(X)        \
  X(std_error)              \
  X(CreateDecompress)       \
  X(destroy_decompress)     \
  X(read_header)            \
  X(calc_output_dimensions) \
  X(start_decompress)       \
  X(crop_scanline)          \
  X(skip_scanlines)         \
  X(read_scanlines)         \
  X(resync_to_restart)      \
  X(CreateCompress)         \
  X(destroy_compress)       \
  X(set_defaults)           \
  X(set_quality)            \
  X(simple_progression)     \
  X(start_compress)         \
  X(write_marker)           \
  X(write_scanlines)        \
  X(finish_compress)

// Filled in once, then read-only; process-wide, like the library that it points into.
static struct {
  pthread_once_t once;
#define FIELD(name) __typeof__(&jpeg_##name) name;
  FUNCTIONS(FIELD)
#undef FIELD
  const char* missing;  // NULL if everything was found
} jpeg = {.once = PTHREAD_ONCE_INIT};

static void load(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) jpeg.missing = LIBRARY;
#define LOAD(name)                                                  \
  if (library) *(void**)&jpeg.name = dlsym(library, "jpeg_" #name); \
  if (!jpeg.name && !jpeg.missing) jpeg.missing = "jpeg_" #name;
  FUNCTIONS(LOAD)
#undef LOAD
}

static rn_status_t need_library(void) {
  pthread_once(&jpeg.once, load);
  if (!jpeg.missing) return RN_OK;
  return rn_unimplemented(
      "libjpeg is needed and could not be loaded: %s is missing (Debian: libjpeg62-turbo)",
      jpeg.missing);
}

typedef struct image_jpeg_errors_t {
  struct jpeg_error_mgr base;  // first, because libjpeg uses it
  jmp_buf back;
} image_jpeg_errors_t;

static void on_error(j_common_ptr info) { longjmp(((image_jpeg_errors_t*)info->err)->back, 1); }
static void on_message(j_common_ptr info) { (void)info; }

static void set_errors(image_jpeg_errors_t* errors) {
  jpeg.std_error(&errors->base);
  errors->base.error_exit = on_error;
  errors->base.output_message = on_message;
}

// Limit on scans: a file with more is an attempt to waste time.
enum { MAX_SCANS = 500 };

typedef struct image_jpeg_decoder_t {
  struct jpeg_decompress_struct info;
  image_jpeg_errors_t errors;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  bool recovers, has_ended;
  const rn_jpeg_options_t* options;
  JSAMPLE* row;  // Owned; used if rows are wider than the crop, or CMYK
  size_t row_size;
  rn_status_t status;  // of the sink
} image_jpeg_decoder_t;

static image_jpeg_decoder_t* decoder_of(j_decompress_ptr info) {
  return (image_jpeg_decoder_t*)info;
}

static void source_nothing(j_decompress_ptr info) { (void)info; }

// The whole file is in memory, so no more data can come. If requested, supplies one artificial
// end-of-image marker.
static boolean source_fill(j_decompress_ptr info) {
  static const JOCTET end[2] = {0xff, JPEG_EOI};
  image_jpeg_decoder_t* d = decoder_of(info);
  if (!d->recovers || d->has_ended) return FALSE;
  d->has_ended = true;
  d->source.next_input_byte = end;
  d->source.bytes_in_buffer = sizeof end;
  return TRUE;
}

static void source_skip(j_decompress_ptr info, long count) {
  struct jpeg_source_mgr* source = info->src;
  if (count <= 0) return;
  size_t step = (size_t)count;
  if (step > source->bytes_in_buffer) step = source->bytes_in_buffer;
  source->next_input_byte += step;
  source->bytes_in_buffer -= step;
}

static void on_progress(j_common_ptr info) {
  if (((j_decompress_ptr)info)->input_scan_number > MAX_SCANS) ERREXIT(info, JERR_BAD_PROGRESSION);
}

static void open_decoder(image_jpeg_decoder_t* d, rn_str_t bytes) {
  d->info.err = &d->errors.base;
  jpeg.CreateDecompress(&d->info, JPEG_LIB_VERSION, sizeof d->info);
  d->source = (struct jpeg_source_mgr){.next_input_byte = (const JOCTET*)bytes.data,
                                       .bytes_in_buffer = bytes.size,
                                       .init_source = source_nothing,
                                       .fill_input_buffer = source_fill,
                                       .skip_input_data = source_skip,
                                       .resync_to_restart = jpeg.resync_to_restart,
                                       .term_source = source_nothing};
  d->progress.progress_monitor = on_progress;
  d->info.src = &d->source;
  d->info.progress = &d->progress;
}

// With Huffman codes, a block of 8 x 8 pixels takes at least one bit.
static bool is_too_short(const image_jpeg_decoder_t* d, rn_str_t bytes) {
  if (d->recovers || d->options->least < 1 || d->info.arith_code) return false;
  int64_t blocks = 0;
  for (int i = 0; i < d->info.num_components; ++i) {
    const jpeg_component_info* c = &d->info.comp_info[i];
    blocks += (int64_t)c->width_in_blocks * c->height_in_blocks;
  }
  return (size_t)blocks / 8 > bytes.size;
}

static bool set_output(image_jpeg_decoder_t* d) {
  const rn_jpeg_options_t* o = d->options;
  struct jpeg_decompress_struct* info = &d->info;
  int channels = o->channels ? o->channels : info->num_components < 3 ? info->num_components : 3;
  bool has_inks = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
  if (channels != 1 && channels != 3) return false;
  info->out_color_space = channels == 1 ? JCS_GRAYSCALE : has_inks ? JCS_CMYK : JCS_RGB;
  info->do_fancy_upsampling = o->is_fancy;
  info->scale_num = 1;
  info->scale_denom = (unsigned)o->ratio;
  info->dct_method = o->is_accurate ? JDCT_ISLOW : JDCT_IFAST;
  jpeg.calc_output_dimensions(info);
  int64_t values = (int64_t)info->output_width * info->output_height;
  return values > 0 && values < RN_IMAGE_MAX_PIXELS / info->num_components;
}

static bool is_inside(const rn_image_crop_t* c, const struct jpeg_decompress_struct* info) {
  return c->width > 0 && c->height > 0 && c->x >= 0 && c->y >= 0 &&
         (int64_t)c->y + c->height <= info->output_height &&
         (int64_t)c->x + c->width <= info->output_width;
}

// Converts CMYK to RGB; files with Adobe's marker store inverted values.
static void mix_inks(const JSAMPLE* from, int64_t width, bool is_adobe, uint8_t* to) {
  for (int64_t x = 0; x < width; ++x, from += 4, to += 3)
    for (int c = 0; c < 3; ++c)
      to[c] =
          (uint8_t)(is_adobe ? from[3] * from[c] / 255 : (255 - from[3]) * (255 - from[c]) / 255);
}

// Reads one row into |to|, without its first |skip| values; false if the data ends before it.
static bool read_row(image_jpeg_decoder_t* d, int64_t skip, int64_t width, int channels,
                     uint8_t* to) {
  JSAMPROW row = d->row ? d->row : to;
  if (jpeg.read_scanlines(&d->info, &row, 1) == 0) return false;
  if (d->info.out_color_space == JCS_CMYK)
    mix_inks(d->row + skip * 4, width, d->info.saw_Adobe_marker, to);
  else if (d->row)
    memcpy(to, d->row + skip * channels, (size_t)(width * channels));
  return true;
}

// Fills |pixels|; false if too few rows exist.
static bool read_rows(image_jpeg_decoder_t* d, int64_t skip, int64_t height, int64_t width,
                      int channels, uint8_t* pixels) {
  size_t stride = (size_t)(width * channels);
  int64_t y = 0;
  while (y < height && read_row(d, skip, width, channels, pixels + (size_t)y * stride)) ++y;
  if (y == height) return true;
  if (!d->recovers && (float)y / (float)height < (d->options->least < 1 ? d->options->least : 1))
    return false;
  for (; y < height; ++y) {
    uint8_t* row = pixels + (size_t)y * stride;
    if (d->recovers && y > 0)
      memcpy(row, row - stride, stride);
    else
      memset(row, 0, stride);
  }
  return true;
}

static bool decode_pixels(image_jpeg_decoder_t* d, const rn_image_sink_t* sink) {
  struct jpeg_decompress_struct* info = &d->info;
  const rn_image_crop_t* crop = d->options->crop;
  int64_t height = info->output_height, width = info->output_width, skip = 0;
  if (!jpeg.start_decompress(info)) return false;
  int channels = info->out_color_space == JCS_GRAYSCALE ? 1 : 3;
  if (crop) {
    if (!is_inside(crop, info)) return false;
    JDIMENSION x = (JDIMENSION)crop->x, columns = (JDIMENSION)crop->width;
    height = crop->height;
    width = crop->width;
    jpeg.crop_scanline(info, &x, &columns);
    skip = crop->x - (int64_t)x;
    if (jpeg.skip_scanlines(info, (JDIMENSION)crop->y) != (JDIMENSION)crop->y) return false;
  }
  if (crop || info->out_color_space == JCS_CMYK) {
    d->row_size = (size_t)info->output_width * (size_t)info->output_components;
    d->status = rn_alloc(rn_allocator_default(), d->row_size, (void**)&d->row);
  }
  void* pixels = NULL;
  if (rn_ok(d->status)) d->status = sink->allocate(sink->arg, 1, height, width, channels, &pixels);
  return rn_ok(d->status) && read_rows(d, skip, height, width, channels, pixels);
}

static bool decode(image_jpeg_decoder_t* d, rn_str_t bytes, const rn_image_sink_t* sink) {
  if (setjmp(d->errors.back)) return false;
  open_decoder(d, bytes);
  return jpeg.read_header(&d->info, TRUE) == JPEG_HEADER_OK && set_output(d) &&
         !is_too_short(d, bytes) && decode_pixels(d, sink);
}

static void close_decoder(image_jpeg_decoder_t* d) {
  jpeg.destroy_decompress(&d->info);
  rn_free(rn_allocator_default(), d->row, d->row_size);
}

rn_status_t rn_jpeg_decode(rn_str_t bytes, const rn_jpeg_options_t* options,
                           const rn_image_sink_t* sink) {
  RN_RETURN_IF_ERROR(need_library());
  image_jpeg_decoder_t d = {.options = options, .recovers = options->recovers};
  set_errors(&d.errors);
  bool is_decoded = decode(&d, bytes, sink);
  close_decoder(&d);
  if (!rn_ok(d.status) || is_decoded) return d.status;
  return rn_invalid_argument("jpeg::Uncompress failed. Invalid JPEG data or crop window.");
}

static bool read_shape(image_jpeg_decoder_t* d, rn_str_t bytes) {
  if (setjmp(d->errors.back)) return false;
  open_decoder(d, bytes);
  if (jpeg.read_header(&d->info, TRUE) != JPEG_HEADER_OK) return false;
  jpeg.calc_output_dimensions(&d->info);
  return d->info.output_width > 0 && d->info.output_height > 0;
}

rn_status_t rn_jpeg_shape(rn_str_t bytes, int64_t out_shape[3]) {
  RN_RETURN_IF_ERROR(need_library());
  image_jpeg_decoder_t d = {.recovers = false};
  set_errors(&d.errors);
  bool is_read = read_shape(&d, bytes);
  out_shape[0] = d.info.output_height;
  out_shape[1] = d.info.output_width;
  out_shape[2] = d.info.num_components;
  close_decoder(&d);
  return is_read ? RN_OK : rn_invalid_argument("Invalid JPEG data, size %zu", bytes.size);
}

typedef struct encoder_t {
  struct jpeg_compress_struct info;
  image_jpeg_errors_t errors;
  struct jpeg_destination_mgr destination;
  JOCTET block[1 << 14];
  rn_strbuf_t* out;
} encoder_t;

static void destination_start(j_compress_ptr info) {
  encoder_t* e = (encoder_t*)info;
  e->destination.next_output_byte = e->block;
  e->destination.free_in_buffer = sizeof e->block;
}

static boolean destination_flush(j_compress_ptr info) {
  encoder_t* e = (encoder_t*)info;
  rn_strbuf_append_n(e->out, e->block, sizeof e->block);
  destination_start(info);
  return TRUE;
}

static void destination_end(j_compress_ptr info) {
  encoder_t* e = (encoder_t*)info;
  rn_strbuf_append_n(e->out, e->block, sizeof e->block - e->destination.free_in_buffer);
}

static void set_input(encoder_t* e, int64_t height, int64_t width, int channels,
                      const rn_jpeg_write_t* options) {
  struct jpeg_compress_struct* info = &e->info;
  info->image_height = (JDIMENSION)height;
  info->image_width = (JDIMENSION)width;
  info->input_components = channels;
  info->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg.set_defaults(info);
  info->optimize_coding = options->is_optimized;
  info->density_unit = options->is_per_cm ? 2 : 1;
  info->X_density = (UINT16)options->x_density;
  info->Y_density = (UINT16)options->y_density;
  jpeg.set_quality(info, options->quality, TRUE);
  if (options->is_progressive) jpeg.simple_progression(info);
  for (int i = 0; options->has_full_chroma && i < info->num_components; ++i)
    info->comp_info[i].h_samp_factor = info->comp_info[i].v_samp_factor = 1;
}

static bool write_xmp(encoder_t* e, rn_str_t xmp) {
  static const char name[] = "http://ns.adobe.com/xap/1.0/";
  if (xmp.size == 0) return true;
  rn_strbuf_t marker;
  rn_strbuf_init(&marker, rn_allocator_default());
  rn_strbuf_append_n(&marker, name, sizeof name);  // with its NUL
  rn_strbuf_append(&marker, xmp);
  bool fits = !marker.failed && marker.size <= UINT16_MAX - 2;
  if (fits)
    jpeg.write_marker(&e->info, JPEG_APP0 + 1, (const JOCTET*)marker.data, (unsigned)marker.size);
  if (marker.failed) e->out->failed = true;  // out of memory, which the caller then reports
  rn_strbuf_clear(&marker);
  return fits;
}

static bool encode(encoder_t* e, const uint8_t* pixels, int64_t height, int64_t width, int channels,
                   const rn_jpeg_write_t* options) {
  if (setjmp(e->errors.back)) return false;
  e->info.err = &e->errors.base;
  jpeg.CreateCompress(&e->info, JPEG_LIB_VERSION, sizeof e->info);
  e->destination.init_destination = destination_start;
  e->destination.empty_output_buffer = destination_flush;
  e->destination.term_destination = destination_end;
  e->info.dest = &e->destination;
  set_input(e, height, width, channels, options);
  jpeg.start_compress(&e->info, TRUE);
  if (!write_xmp(e, options->xmp)) return false;
  while (e->info.next_scanline < e->info.image_height) {
    JSAMPROW row =
        (JSAMPROW)(uintptr_t)(pixels + (int64_t)e->info.next_scanline * width * channels);
    jpeg.write_scanlines(&e->info, &row, 1);
  }
  jpeg.finish_compress(&e->info);
  return true;
}

rn_status_t rn_jpeg_encode(const uint8_t* pixels, int64_t height, int64_t width, int channels,
                           const rn_jpeg_write_t* options, rn_strbuf_t* out) {
  RN_RETURN_IF_ERROR(need_library());
  if (height <= 0 || width <= 0 || height > JPEG_MAX_DIMENSION || width > JPEG_MAX_DIMENSION)
    return rn_internal("JPEG encoding failed");
  encoder_t* e = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &e));
  e->out = out;
  set_errors(&e->errors);
  bool is_encoded = encode(e, pixels, height, width, channels, options);
  jpeg.destroy_compress(&e->info);
  RN_FREE(rn_allocator_default(), e);
  RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  return is_encoded ? RN_OK : rn_internal("JPEG encoding failed");
}
