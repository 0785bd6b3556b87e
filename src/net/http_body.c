// Bodies of HTTP/1 requests: see http_body.h.
#include "net/http_body.h"

#include <limits.h>
#include <stdatomic.h>
#include <zlib.h>

// A body of up to this size gets its memory at once. A longer one grows eightfold at a time: so a
// seventh of the bytes is copied once more, and the memory is never more than eight times what was
// received. Chunks say nothing of the whole, so there it doubles.
#define FIRST_ROOM ((size_t)256 << 10)
#define FIRST_CHUNK ((size_t)4 << 10)
#define GROWTH 8
// The least that is worth reading straight into the buffer.
#define LANDING_SIZE ((size_t)16 << 10)
// The most bytes of chunk extensions and trailers, which are ignored.
#define MAX_LINES 8192
// Compressed bodies may always grow to this size; beyond it by this factor.
#define FREE_BYTES ((size_t)64 << 20)
#define MOST_RATIO 256

enum {
  SIZE,
  MORE_SIZE,
  EXTENSION,
  SIZE_END,
  DATA,
  DATA_RETURN,
  DATA_END,
  TRAILER,
  IN_TRAILER,
  TRAILER_END,
  LAST_END
};

// Counts |size| bytes more, or fewer.
static bool hold(rn_http_body_t* body, size_t size) {
  size_t used = atomic_fetch_add(&body->budget->used, size) + size;
  body->held += size;
  return !body->budget->max || used <= body->budget->max;
}

static void let_go(rn_http_body_t* body, size_t size) {
  body->budget->used -= size;
  body->held -= size;
}

// Moves the body to a buffer of |room| bytes.
static int grow(rn_http_body_t* body, size_t room) {
  if (!hold(body, room)) return 503;
  rn_buffer_t* buffer = NULL;
  rn_status_t status = rn_buffer_create(body->landing, RN_UINT8, room, &buffer);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return 503;
  }
  if (body->buffer) {
    memcpy(buffer->data, body->buffer->data, body->size);
    let_go(body, body->buffer->size);
    rn_buffer_release(body->buffer);
  }
  body->buffer = buffer;
  return 0;
}

// Makes room for some of the |body->left| bytes that are to come.
static int make_room(rn_http_body_t* body) {
  size_t old = body->buffer ? body->buffer->size : 0, room;
  if (body->size < old) return 0;
  if (body->is_chunked) {
    room = old ? 2 * old : FIRST_CHUNK;
    if (body->left > room - body->size && body->left <= FIRST_ROOM) room = body->size + body->left;
    if (room > body->max) room = body->max;
  } else {
    room = body->size + body->left;
    while (room > FIRST_ROOM && room / GROWTH > body->size) room /= GROWTH;
  }
  return grow(body, room);
}

static int begin_encoding(rn_http_body_t* body, const rn_http1_request_t* request) {
  rn_str_t encoding = rn_http1_header(request, "content-encoding");
  if (!encoding.size || rn_str_is(encoding, "identity")) return 0;
  if (!rn_str_is(encoding, "gzip") && !rn_str_is(encoding, "x-gzip") &&
      !rn_str_is(encoding, "deflate"))
    return 415;
  body->is_packed = true;
  return 0;
}

int rn_http_body_begin(rn_http_body_t* body, const rn_http1_request_t* request, size_t aligned) {
  body->is_chunked = request->is_chunked;
  if (!request->is_chunked) {
    if (request->length > body->max) return 413;
    body->left = (size_t)request->length;
    body->is_whole = !body->left;
  }
  int code = begin_encoding(body, request);
  if (!code && body->left && !body->is_packed)
    body->size = body->pad = (RN_ALIGN - aligned % RN_ALIGN) % RN_ALIGN;
  return code;
}

// Appends up to |body->left| bytes.
static int append(rn_http_body_t* body, rn_str_t* bytes) {
  while (body->left && bytes->size) {
    int code = make_room(body);
    if (code) return code;
    size_t n = body->buffer->size - body->size;
    if (n > body->left) n = body->left;
    if (n > bytes->size) n = bytes->size;
    memcpy((char*)body->buffer->data + body->size, bytes->data, n);
    body->size += n;
    body->left -= n;
    *bytes = rn_str_n(bytes->data + n, bytes->size - n);
  }
  return 0;
}

char* rn_http_body_place(const rn_http_body_t* body, size_t* out_room) {
  if (body->is_whole || !body->buffer || (body->is_chunked && body->state != DATA)) return NULL;
  size_t room = body->buffer->size - body->size;
  if (room > body->left) room = body->left;
  *out_room = room;
  return room < LANDING_SIZE ? NULL : (char*)body->buffer->data + body->size;
}

int rn_http_body_landed(rn_http_body_t* body, size_t size) {
  body->size += size;
  body->left -= size;
  if (body->is_chunked && !body->left) body->state = DATA_RETURN;
  if (!body->is_chunked && !body->left) body->is_whole = true;
  return body->left ? make_room(body) : 0;
}

// Chunks: SIZE [;EXTENSION] CR LF DATA CR LF ... 0 CR LF [TRAILER CR LF ...] CR LF

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text(char c) { return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f); }

static int take_size(rn_http_body_t* body, char c) {
  int digit = digit_of(c);
  if (digit >= 0) {
    if (body->left > (body->max >> 4)) return 413;
    body->left = body->left << 4 | (size_t)digit;
    body->state = MORE_SIZE;
    return body->left > body->max - body->size ? 413 : 0;
  }
  if (body->state == SIZE || (c != ';' && c != '\r')) return 400;
  body->state = c == ';' ? EXTENSION : SIZE_END;
  return 0;
}

// One byte of what lies between the chunks' data.
static int take_mark(rn_http_body_t* body, char c) {
  switch (body->state) {
    case SIZE:
    case MORE_SIZE:
      return take_size(body, c);
    case EXTENSION:
    case IN_TRAILER:
      if (c == '\r')
        body->state = body->state == EXTENSION ? SIZE_END : TRAILER_END;
      else if (!is_text(c))
        return 400;
      return ++body->line > MAX_LINES ? 431 : 0;
    case TRAILER:
      body->state = c == '\r' ? LAST_END : IN_TRAILER;
      return c == '\r' || is_text(c) ? 0 : 400;
    case DATA_RETURN:
      body->state = DATA_END;
      return c == '\r' ? 0 : 400;
  }
  if (c != '\n') return 400;
  if (body->state == SIZE_END) {
    body->state = body->left ? DATA : TRAILER;
  } else if (body->state == DATA_END) {
    body->state = SIZE;
  } else if (body->state == TRAILER_END) {
    body->state = TRAILER;
  } else {
    body->is_whole = true;
  }
  return 0;
}

int rn_http_body_take(rn_http_body_t* body, rn_str_t* bytes) {
  int code = 0;
  while (bytes->size && !body->is_whole && !code) {
    if (body->is_chunked && body->state != DATA) {
      code = take_mark(body, bytes->data[0]);
      *bytes = rn_str_n(bytes->data + 1, bytes->size - 1);
      continue;
    }
    code = append(body, bytes);
    if (body->left) continue;
    if (body->is_chunked)
      body->state = DATA_RETURN;
    else
      body->is_whole = true;
  }
  return code;
}

// Compressed bodies.

typedef struct http_inflater_t {
  z_stream z;
  rn_http_body_t out;  // as if it had arrived in chunks, without their marks
  size_t used;         // bytes of the compressed body
} http_inflater_t;

static void inflater_free(rn_http_body_t* body) {
  http_inflater_t* inflater = body->inflater;
  if (!inflater) return;
  inflateEnd(&inflater->z);
  rn_http_body_clear(&inflater->out);
  RN_FREE(body->allocator, inflater);
  body->inflater = NULL;
}

static int inflater_make(rn_http_body_t* body) {
  http_inflater_t* inflater = NULL;
  rn_status_t status = RN_NEW(body->allocator, &inflater);
  bool is_made = rn_ok(status);
  rn_status_free(status);
  if (!is_made) return 503;
  if (inflateInit2(&inflater->z, 15 + 32) != Z_OK) {  // gzip or zlib, by the first bytes
    RN_FREE(body->allocator, inflater);
    return 503;
  }
  size_t limit = body->size < SIZE_MAX / MOST_RATIO ? body->size * MOST_RATIO : SIZE_MAX;
  if (limit < FREE_BYTES) limit = FREE_BYTES;
  inflater->out = (rn_http_body_t){.allocator = body->allocator,
                                   .landing = body->landing,
                                   .budget = body->budget,
                                   .max = limit < body->max ? limit : body->max,
                                   .is_chunked = true};
  body->inflater = inflater;
  return 0;
}

// Inflates into the rest of the buffer.
static int inflate_on(rn_http_body_t* body, http_inflater_t* inflater, bool* out_ends) {
  rn_http_body_t* out = &inflater->out;
  char probe;  // beyond the limit: does anything follow?
  bool is_full = out->size == out->max;
  int code = is_full ? 0 : make_room(out);
  if (code) return code;
  z_stream* z = &inflater->z;
  size_t room = is_full ? 1 : out->buffer->size - out->size, in = body->size - inflater->used;
  const size_t most = INT_MAX;
  z->next_in = in ? (Bytef*)body->buffer->data + inflater->used : (Bytef*)"";
  z->avail_in = (uInt)(in < most ? in : most);
  z->next_out = is_full ? (Bytef*)&probe : (Bytef*)out->buffer->data + out->size;
  z->avail_out = (uInt)(room < most ? room : most);
  size_t had_in = z->avail_in, had_out = z->avail_out;
  int result = inflate(z, Z_NO_FLUSH);
  size_t taken = had_in - z->avail_in, given = had_out - z->avail_out;
  inflater->used += taken;
  if (is_full && given) return 413;
  out->size += given;
  *out_ends = result == Z_STREAM_END;
  if (result == Z_STREAM_END) return inflater->used == body->size ? 0 : 400;
  return result == Z_OK && (taken || given) ? 0 : result == Z_MEM_ERROR ? 503 : 400;
}

int rn_http_body_unpack(rn_http_body_t* body, size_t most) {
  bool ends = !body->size;  // an empty body decompresses to an empty one
  int code = ends || body->inflater ? 0 : inflater_make(body);
  http_inflater_t* inflater = body->inflater;
  size_t before = inflater ? inflater->out.size : 0;
  while (!code && !ends && inflater->out.size - before < most)
    code = inflate_on(body, inflater, &ends);
  if (code || !ends) return code;
  body->is_packed = false;
  if (!inflater) return 0;
  rn_buffer_t* packed = body->buffer;
  let_go(body, packed->size);
  rn_buffer_release(packed);
  body->buffer = inflater->out.buffer;
  body->size = inflater->out.size;
  body->held += inflater->out.held;
  inflater->out.buffer = NULL;
  inflater->out.held = 0;
  inflater_free(body);
  return 0;
}

void rn_http_body_clear(rn_http_body_t* body) {
  inflater_free(body);
  rn_buffer_release(body->buffer);
  body->buffer = NULL;
  let_go(body, body->held);
}
