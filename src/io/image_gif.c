// GIF: see image.h.
//
// "GIF87a" or "GIF89a", the screen (width, height: u16; flags; background; aspect), its colours,
// then blocks: '!' kind and sub-blocks, ',' an image, ';' the end. An image is its place and size
// (4 x u16), flags, colours of its own, the least code size, and codes in sub-blocks (a length byte
// and as many bytes; 0 ends them). Flags: 0x80 there are colours, 2 << (flags & 7) of them; 0x40
// rows come interlaced. The extension 0xf9 before an image says which colour is transparent.
#include <inttypes.h>

#include "io/image.h"

enum { MAX_CODES = 4096, MAX_BITS = 12, NO_COLOUR = -1 };

typedef struct image_gif_reader_t {
  const uint8_t *at, *end;
} image_gif_reader_t;

static bool take(image_gif_reader_t* r, size_t size, const uint8_t** out) {
  if ((size_t)(r->end - r->at) < size) return false;
  *out = r->at;
  r->at += size;
  return true;
}

static int word(const uint8_t* p) { return p[0] | p[1] << 8; }

static bool skip_blocks(image_gif_reader_t* r) {
  const uint8_t *size, *data;
  do {
    if (!take(r, 1, &size) || !take(r, *size, &data)) return false;
  } while (*size);
  return true;
}

typedef struct colours_t {
  const uint8_t* rgb;  // NULL if there are none
  int count;
} colours_t;

static bool take_colours(image_gif_reader_t* r, int flags, colours_t* out) {
  *out = (colours_t){NULL, 0};
  if (!(flags & 0x80)) return true;
  out->count = 2 << (flags & 7);
  return take(r, (size_t)out->count * 3, &out->rgb);
}

typedef struct frame_t {
  int left, top, width, height;
  bool is_interlaced;
  int transparent;  // NO_COLOUR if none
  colours_t colours;
  image_gif_reader_t codes;  // from the least code size on
} frame_t;

// Reads codes from sub-blocks, lowest bit first.
typedef struct image_gif_bits_t {
  image_gif_reader_t in;
  size_t left;  // bytes left in this sub-block
  uint32_t value;
  int count;
} image_gif_bits_t;

static int next_code(image_gif_bits_t* b, int width) {
  while (b->count < width) {
    const uint8_t* byte;
    if (b->left == 0) {
      if (!take(&b->in, 1, &byte) || *byte == 0) return -1;
      b->left = *byte;
    }
    if (!take(&b->in, 1, &byte)) return -1;
    --b->left;
    b->value |= (uint32_t)*byte << b->count;
    b->count += 8;
  }
  int code = (int)(b->value & ((1u << width) - 1));
  b->value >>= width;
  b->count -= width;
  return code;
}

typedef struct lzw_t {
  image_gif_bits_t bits;
  int clear, next, width, last;  // |next| is the first undefined code; |last| is -1 if none
  int stacked;
  uint16_t prefix[MAX_CODES];
  uint8_t suffix[MAX_CODES], first[MAX_CODES], stack[MAX_CODES];
} lzw_t;

static void lzw_reset(lzw_t* z, int depth) {
  z->next = z->clear + 2;
  z->width = depth + 1;
  z->last = -1;
}

static bool lzw_open(lzw_t* z, image_gif_reader_t codes, int* out_depth) {
  const uint8_t* depth;
  if (!take(&codes, 1, &depth) || *depth > 8 || *depth < 1) return false;
  *out_depth = *depth;
  z->bits = (image_gif_bits_t){.in = codes};
  z->clear = 1 << *depth;
  z->stacked = 0;
  for (int i = 0; i < z->clear; ++i) z->suffix[i] = z->first[i] = (uint8_t)i;
  lzw_reset(z, *depth);
  return true;
}

// Pushes the colours of |code| on the stack, the last one deepest; false for an invalid code.
static bool lzw_expand(lzw_t* z, int code) {
  if (code > z->next || (code == z->next && z->last < 0)) return false;
  int from = code;
  if (code == z->next) {  // the last string followed by its own first byte
    z->stack[z->stacked++] = z->first[z->last];
    from = z->last;
  }
  for (; from >= z->clear; from = z->prefix[from]) z->stack[z->stacked++] = z->suffix[from];
  z->stack[z->stacked++] = (uint8_t)from;
  if (z->last >= 0 && z->next < MAX_CODES) {
    z->prefix[z->next] = (uint16_t)z->last;
    z->suffix[z->next] = (uint8_t)from;
    z->first[z->next] = z->first[z->last];
    ++z->next;
    if (z->next == 1 << z->width && z->width < MAX_BITS) ++z->width;
  }
  z->last = code;
  return true;
}

// The next colour; -1 at the end or at an invalid code.
static int lzw_next(lzw_t* z, int depth) {
  while (z->stacked == 0) {
    int code = next_code(&z->bits, z->width);
    if (code < 0 || code == z->clear + 1) return -1;
    if (code == z->clear)
      lzw_reset(z, depth);
    else if (!lzw_expand(z, code))
      return -1;
  }
  return z->stack[--z->stacked];
}

// The image row of row |i| in the file.
static int row_of(const frame_t* f, int i) {
  static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
  if (!f->is_interlaced) return i;
  for (int pass = 0; pass < 4; ++pass) {
    int rows = (f->height - starts[pass] + steps[pass] - 1) / steps[pass];
    if (rows < 0) rows = 0;
    if (i < rows) return starts[pass] + i * steps[pass];
    i -= rows;
  }
  return 0;
}

// Whether the frame is complete.
static bool is_whole(const frame_t* f, lzw_t* z) {
  int depth = 0;
  int64_t left = (int64_t)f->width * f->height;
  if (left >= RN_IMAGE_MAX_PIXELS || !lzw_open(z, f->codes, &depth)) return false;
  for (; left > 0; --left)
    if (lzw_next(z, depth) < 0) return false;
  return true;
}

static rn_status_t draw(rn_str_t bytes, const frame_t* f, int number, int width, int height,
                        lzw_t* z, uint8_t* canvas) {
  int depth = 0;
  if (!f->colours.rgb)
    return rn_invalid_argument("Invalid GIF data (size %zu), missing color map for frame %d",
                               bytes.size, number);
  if (!lzw_open(z, f->codes, &depth)) return RN_OK;
  for (int i = 0; i < f->height; ++i) {
    int y = f->top + row_of(f, i);
    for (int x = f->left; x < f->left + f->width; ++x) {
      int colour = lzw_next(z, depth);
      if (x >= width || y >= height || colour == f->transparent) continue;
      if (colour < 0 || colour >= f->colours.count)
        return rn_invalid_argument(
            "Invalid GIF data (size %zu), found color index %d outside of color map range %d",
            bytes.size, colour, f->colours.count);
      memcpy(canvas + ((int64_t)y * width + x) * 3, f->colours.rgb + 3 * colour, 3);
    }
  }
  return RN_OK;
}

typedef struct file_t {
  image_gif_reader_t in;
  colours_t colours;
  int transparent;  // of the next image
} file_t;

static bool open_file(rn_str_t bytes, file_t* out) {
  const uint8_t* head;
  const uint8_t* start = (const uint8_t*)bytes.data;
  *out = (file_t){.in = {start, start + bytes.size}, .transparent = NO_COLOUR};
  return take(&out->in, 13, &head) && take_colours(&out->in, head[10], &out->colours);
}

static bool read_extension(file_t* file) {
  const uint8_t *kind, *data;
  if (!take(&file->in, 1, &kind)) return false;
  if (*kind == 0xf9) {
    image_gif_reader_t ahead = file->in;
    if (take(&ahead, 5, &data) && data[0] == 4)
      file->transparent = data[1] & 1 ? data[4] : NO_COLOUR;
  }
  return skip_blocks(&file->in);
}

// Finds the next image; false at the end and if the file is malformed.
static bool next_frame(file_t* file, frame_t* out) {
  const uint8_t *kind, *head;
  while (take(&file->in, 1, &kind)) {
    if (*kind == '!') {
      if (!read_extension(file)) return false;
    } else if (*kind != ',') {
      return false;
    } else {
      if (!take(&file->in, 9, &head)) return false;
      *out = (frame_t){.left = word(head),
                       .top = word(head + 2),
                       .width = word(head + 4),
                       .height = word(head + 6),
                       .is_interlaced = head[8] & 0x40,
                       .transparent = file->transparent};
      file->transparent = NO_COLOUR;
      if (!take_colours(&file->in, head[8], &out->colours)) return false;
      if (!out->colours.rgb) out->colours = file->colours;
      out->codes = file->in;
      const uint8_t* depth;
      return out->width && out->height && take(&file->in, 1, &depth);
    }
  }
  return false;
}

typedef struct sizes_t {
  int64_t frames;
  int width, height;  // of the largest
} sizes_t;

// Counts the frames before the first incomplete one. Decodes each one without allocating anything,
// so that the later allocation matches what the file really holds.
static rn_status_t measure(rn_str_t bytes, lzw_t* z, sizes_t* out) {
  *out = (sizes_t){0};
  file_t file;
  frame_t frame;
  bool is_open = open_file(bytes, &file);
  while (is_open && next_frame(&file, &frame) && is_whole(&frame, z) && skip_blocks(&file.in)) {
    ++out->frames;
    if (frame.width > out->width) out->width = frame.width;
    if (frame.height > out->height) out->height = frame.height;
  }
  if (out->frames) return RN_OK;
  return rn_invalid_argument(
      "Invalid GIF data (size %zu), failed to slurp gif file: %s", bytes.size,
      is_open ? "No Image Descriptor detected" : "Failed to read from given file");
}

static rn_status_t decode(rn_str_t bytes, bool is_still, const rn_image_sink_t* sink, lzw_t* z,
                          int64_t* out_frames) {
  sizes_t sizes;
  RN_RETURN_IF_ERROR(measure(bytes, z, &sizes));
  *out_frames = sizes.frames;
  if (is_still) sizes.frames = 1;
  size_t canvas = (size_t)sizes.width * (size_t)sizes.height, total = 0;
  if (!rn_mul_ok(canvas, (size_t)sizes.frames, &total) || total >= RN_IMAGE_MAX_PIXELS)
    return rn_invalid_argument("GIF size too large: %" PRId64 " frames of %d by %d", sizes.frames,
                               sizes.width, sizes.height);
  void* pixels = NULL;
  RN_RETURN_IF_ERROR(
      sink->allocate(sink->arg, sizes.frames, sizes.height, sizes.width, 3, &pixels));
  file_t file;
  frame_t frame;
  bool is_open = open_file(bytes, &file);
  for (int64_t k = 0; is_open && k < sizes.frames && next_frame(&file, &frame); ++k) {
    uint8_t* to = (uint8_t*)pixels + (size_t)k * canvas * 3;
    if (k)
      memcpy(to, to - canvas * 3, canvas * 3);
    else
      memset(to, 0, canvas * 3);
    RN_RETURN_IF_ERROR(draw(bytes, &frame, (int)k, sizes.width, sizes.height, z, to));
    if (!skip_blocks(&file.in)) break;
  }
  return RN_OK;
}

rn_status_t rn_gif_decode(rn_str_t bytes, bool is_still, const rn_image_sink_t* sink,
                          int64_t* out_frames) {
  lzw_t* z = NULL;
  *out_frames = 0;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &z));
  rn_status_t status = decode(bytes, is_still, sink, z, out_frames);
  RN_FREE(rn_allocator_default(), z);
  return status;
}
