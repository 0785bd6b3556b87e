// Input. See input.h.
//
//   buffer: [ taken | shown next | free )        from a plain file, or from the inflater
//   packed: [ taken | compressed | free )        compressed streams only
#include "io/input.h"

#include <stdatomic.h>
#include <zlib.h>

#include "io/inflate.h"
#include "io/read_ahead.h"
#include "io/snappy.h"

#define DEFAULT_BUFFER ((size_t)256 << 10)

typedef struct input_bytes_t {
  rn_allocator_t allocator;
  char* data;          // Owned, or inside |block|
  rn_buffer_t* block;  // Retained; NULL if |data| is allocated separately
  bool is_shared;      // callers may keep blocks
  size_t capacity, start, end;
} input_bytes_t;

struct rn_input_t {
  rn_allocator_t allocator;
  char* path;  // Owned
  rn_file_t* file;
  rn_compression_t compression;
  size_t piece;          // bytes per read
  uint64_t file_offset;  // of the next byte to read
  int64_t file_size;     // 0 for a pipe or the like, which cannot seek
  uint64_t position;     // of buffer.start in the stream
  bool ended;            // nothing follows what is in |buffer|
  rn_pool_t* pool;       // reads ahead; NULL for no reading ahead
  rn_read_ahead_t* ahead;
  input_bytes_t buffer;
  input_bytes_t packed;
  z_stream inflater;
  bool is_inflating;     // |inflater| must be ended
  bool is_after_member;  // at the end of a gzip member, before any byte of the next
};

bool rn_compression_from_name(rn_str_t name, rn_compression_t* out) {
  if (name.size == 0)
    *out = RN_COMPRESSION_NONE;
  else if (rn_str_is(name, "ZLIB"))
    *out = RN_COMPRESSION_ZLIB;
  else if (rn_str_is(name, "GZIP"))
    *out = RN_COMPRESSION_GZIP;
  else
    return false;
  return true;
}

bool rn_record_compression_from_name(rn_str_t name, rn_compression_t* out) {
  if (!rn_str_is(name, "SNAPPY")) return rn_compression_from_name(name, out);
  *out = RN_COMPRESSION_SNAPPY;
  return true;
}

const char* rn_input_path(const rn_input_t* input) { return input->path; }
uint64_t rn_input_position(const rn_input_t* input) { return input->position; }

static void drop_bytes(input_bytes_t* bytes) {
  if (bytes->block)
    rn_buffer_release(bytes->block);
  else
    rn_free(bytes->allocator, bytes->data, bytes->capacity);
}

void rn_input_close(rn_input_t* input) {
  if (!input) return;
  rn_allocator_t allocator = input->allocator;
  if (input->is_inflating) inflateEnd(&input->inflater);
  rn_read_ahead_destroy(input->ahead);
  if (input->file) rn_status_free(input->file->vtable->close(input->file));
  drop_bytes(&input->buffer);
  drop_bytes(&input->packed);
  if (input->path) rn_free(allocator, input->path, strlen(input->path) + 1);
  RN_FREE(allocator, input);
}

static rn_status_t start_inflating(rn_input_t* input) {
  if (input->compression != RN_COMPRESSION_ZLIB && input->compression != RN_COMPRESSION_GZIP)
    return RN_OK;
  if (input->is_inflating) inflateEnd(&input->inflater);
  memset(&input->inflater, 0, sizeof input->inflater);
  // 15: the largest window; 16 more says that the header is gzip's.
  int bits = input->compression == RN_COMPRESSION_GZIP ? 15 + 16 : 15;
  input->is_inflating = inflateInit2(&input->inflater, bits) == Z_OK;
  input->is_after_member = false;
  return input->is_inflating ? RN_OK : rn_out_of_memory();
}

static rn_status_t set_up(rn_input_t* input, const rn_env_t* env, const char* path) {
  rn_file_stat_t found;
  RN_RETURN_IF_ERROR(rn_str_dup(input->allocator, rn_str(path), &input->path));
  RN_RETURN_IF_ERROR(rn_fs_open(env, path, RN_OPEN_READ, &input->file));
  RN_RETURN_IF_ERROR(input->file->vtable->stat(input->file, &found));
  input->file_size = found.size;
  return start_inflating(input);
}

rn_status_t rn_input_open(const rn_env_t* env, const char* path, rn_compression_t compression,
                          size_t buffer_size, rn_input_t** out) {
  *out = NULL;
  rn_input_t* input = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &input));
  input->allocator = input->buffer.allocator = input->packed.allocator = env->allocator;
  input->compression = compression;
  input->piece = buffer_size ? buffer_size : DEFAULT_BUFFER;
  rn_status_t status = set_up(input, env, path);
  if (rn_ok(status))
    *out = input;
  else
    rn_input_close(input);
  return status;
}

static rn_status_t replace_bytes(input_bytes_t* bytes, size_t capacity) {
  size_t used = bytes->end - bytes->start;
  rn_buffer_t* block = NULL;
  void* data = NULL;
  if (bytes->is_shared) {
    RN_RETURN_IF_ERROR(rn_buffer_create(bytes->allocator, RN_UINT8, capacity, &block));
    data = block->data;
  } else {
    RN_RETURN_IF_ERROR(rn_alloc(bytes->allocator, capacity, &data));
  }
  if (used) memcpy(data, bytes->data + bytes->start, used);
  drop_bytes(bytes);
  bytes->data = data;
  bytes->block = block;
  bytes->capacity = capacity;
  return RN_OK;
}

static bool is_kept(const input_bytes_t* bytes) {
  return bytes->block && atomic_load_explicit(&bytes->block->refs, memory_order_acquire) > 1;
}

// Makes room for at least |extra| more bytes and discards consumed ones. Grows by doubling.
static rn_status_t make_room(input_bytes_t* bytes, size_t extra, size_t piece) {
  size_t used = bytes->end - bytes->start, needed;
  if (!rn_add_ok(used, extra, &needed)) return rn_out_of_memory();
  if (needed > bytes->capacity || is_kept(bytes)) {
    if (needed < piece) needed = piece;
    if (needed / 2 < used && used <= SIZE_MAX / 2) needed = 2 * used;
    RN_RETURN_IF_ERROR(replace_bytes(bytes, needed));
  } else if (used) {
    memmove(bytes->data, bytes->data + bytes->start, used);
  }
  bytes->start = 0;
  bytes->end = used;
  return RN_OK;
}

void rn_input_share(rn_input_t* input, rn_allocator_t memory) {
  if (input->buffer.data) return;
  input->buffer.allocator = memory;
  input->buffer.is_shared = true;
}

rn_buffer_t* rn_input_block(const rn_input_t* input) {
  return input->buffer.is_shared ? input->buffer.block : NULL;
}

void rn_input_read_ahead(rn_input_t* input, rn_pool_t* pool) {
  bool is_plain = input->compression == RN_COMPRESSION_NONE && input->file_size > 0;
  if (is_plain && rn_pool_threads(pool) > 1) input->pool = pool;
}

// Appends |size| bytes of the file to |bytes|, fewer at its end.
static rn_status_t read_file(rn_input_t* input, input_bytes_t* bytes, size_t size,
                             size_t* out_got) {
  rn_file_t* file = input->file;
  char* to = bytes->data + bytes->end;
  RN_RETURN_IF_ERROR(input->file_size > 0
                         ? file->vtable->read_at(file, input->file_offset, to, size, out_got)
                         : file->vtable->read(file, to, size, out_got));
  input->file_offset += *out_got;
  bytes->end += *out_got;
  return RN_OK;
}

static void end_ahead(rn_input_t* input) {
  rn_read_ahead_destroy(input->ahead);
  input->ahead = NULL;
}

// Starts reading ahead, after the first piece, if enough remains.
static rn_status_t begin_ahead(rn_input_t* input) {
  uint64_t begin = input->file_offset, end = (uint64_t)input->file_size;
  if (input->buffer.end == 0 || end < begin || (end - begin) / 2 < input->piece) return RN_OK;
  rn_read_ahead_options_t options = {.memory = input->buffer.allocator,
                                     .pool = input->pool,
                                     .file = input->file,
                                     .begin = begin,
                                     .end = end,
                                     .piece = input->piece,
                                     .room = input->piece};
  return rn_read_ahead_create(&options, input->allocator, &input->ahead);
}

// Appends the next piece to what is left of the last one.
static rn_status_t fill_ahead(rn_input_t* input) {
  input_bytes_t* buffer = &input->buffer;
  rn_buffer_t* block = NULL;
  size_t used = buffer->end - buffer->start, size = 0;
  rn_status_t status = rn_read_ahead_next(input->ahead, &block, &size);
  if (!rn_ok(status) || !block) end_ahead(input);
  if (!block) return status;
  char* data = block->data;
  if (used) memcpy(data + input->piece - used, buffer->data + buffer->start, used);
  drop_bytes(buffer);
  buffer->data = data;
  buffer->block = block;
  buffer->capacity = block->size;
  buffer->start = input->piece - used;
  buffer->end = input->piece + size;
  input->file_offset += size;
  input->ended = size < input->piece && input->file_offset < (uint64_t)input->file_size;
  return RN_OK;
}

static rn_status_t fill_plain(rn_input_t* input, size_t wanted) {
  if (input->ahead && wanted > input->piece) end_ahead(input);
  if (input->pool && !input->ahead && wanted <= input->piece)
    RN_RETURN_IF_ERROR(begin_ahead(input));
  if (input->ahead) return fill_ahead(input);
  size_t used = input->buffer.end - input->buffer.start, got;
  size_t size = wanted - used, step = used + input->piece;
  // Bytes that the file is known to hold are read at once; otherwise memory grows as they arrive.
  bool is_known = input->file_size > 0 && rn_input_may_hold(input, wanted);
  if (!is_known && size > step) size = step;
  RN_RETURN_IF_ERROR(make_room(&input->buffer, size, input->piece));
  size = input->buffer.capacity - input->buffer.end;
  RN_RETURN_IF_ERROR(read_file(input, &input->buffer, size, &got));
  if (got < size) input->ended = true;
  return RN_OK;
}

static rn_status_t damaged(const rn_input_t* input, int result) {
  const char* text = input->inflater.msg ? input->inflater.msg : "";
  if (result == Z_MEM_ERROR) return rn_out_of_memory();
  return rn_data_loss("inflate() failed with error %d: %s; %s, before byte %llu", result, text,
                      input->path, (unsigned long long)input->file_offset);
}

// Reads the next piece of compressed bytes; sets |*out_end| at the end of the file.
static rn_status_t read_packed(rn_input_t* input, bool* out_end) {
  input_bytes_t* packed = &input->packed;
  size_t got = 0;
  packed->start = packed->end = 0;
  RN_RETURN_IF_ERROR(make_room(packed, 1, input->piece));
  RN_RETURN_IF_ERROR(read_file(input, packed, packed->capacity, &got));
  *out_end = got == 0;
  return RN_OK;
}

static rn_status_t end_member(rn_input_t* input) {
  if (input->compression == RN_COMPRESSION_ZLIB) {
    input->ended = true;
    return RN_OK;
  }
  input->is_after_member = true;
  return inflateReset(&input->inflater) == Z_OK ? RN_OK : rn_out_of_memory();
}

// Inflates until at least one byte more is in the buffer, or the stream ends.
static rn_status_t fill_inflated(rn_input_t* input) {
  z_stream* z = &input->inflater;
  RN_RETURN_IF_ERROR(make_room(&input->buffer, 1, input->piece));
  for (size_t before = input->buffer.end; input->buffer.end == before && !input->ended;) {
    if (input->packed.start == input->packed.end) {
      bool is_end = false;
      RN_RETURN_IF_ERROR(read_packed(input, &is_end));
      if (is_end) {
        input->ended = true;
        if (input->is_after_member || input->file_offset == 0) return RN_OK;
        return rn_data_loss("compressed stream ends early; %s, at byte %llu", input->path,
                            (unsigned long long)input->file_offset);
      }
    }
    size_t in = input->packed.end - input->packed.start;
    size_t room = input->buffer.capacity - input->buffer.end;
    z->next_in = (Bytef*)input->packed.data + input->packed.start;
    z->avail_in = in > INT32_MAX ? INT32_MAX : (uInt)in;
    z->next_out = (Bytef*)input->buffer.data + input->buffer.end;
    z->avail_out = room > INT32_MAX ? INT32_MAX : (uInt)room;
    input->is_after_member = false;
    int result = inflate(z, Z_NO_FLUSH);
    input->packed.start = (size_t)((char*)z->next_in - input->packed.data);
    input->buffer.end = (size_t)((char*)z->next_out - input->buffer.data);
    if (result == Z_STREAM_END)
      RN_RETURN_IF_ERROR(end_member(input));
    else if (result != Z_OK && result != Z_BUF_ERROR)
      return damaged(input, result);
  }
  return RN_OK;
}

// Reads until |packed| has at least |size| bytes; false if the file ends before.
static rn_status_t need_packed(rn_input_t* input, size_t size, bool* out_has) {
  input_bytes_t* packed = &input->packed;
  size_t got = 1;
  while (packed->end - packed->start < size && got) {
    size_t extra = size - (packed->end - packed->start);
    RN_RETURN_IF_ERROR(
        make_room(packed, extra < input->piece ? extra : input->piece, input->piece));
    RN_RETURN_IF_ERROR(read_file(input, packed, packed->capacity - packed->end, &got));
  }
  *out_has = packed->end - packed->start >= size;
  return RN_OK;
}

static rn_status_t bad_block(const rn_input_t* input, const char* what) {
  uint64_t behind = input->packed.end - input->packed.start;
  return rn_data_loss("%s; %s, at byte %llu", what, input->path,
                      (unsigned long long)(input->file_offset - behind));
}

// Decompresses the next snappy block: its big-endian size, then its bytes.
static rn_status_t fill_unfolded(rn_input_t* input) {
  input_bytes_t* packed = &input->packed;
  bool has_it = false;
  RN_RETURN_IF_ERROR(need_packed(input, 4, &has_it));
  if (!has_it && packed->start == packed->end) {
    input->ended = true;
    return RN_OK;
  }
  if (!has_it) return bad_block(input, "compressed stream ends early");
  const uint8_t* head = (const uint8_t*)packed->data + packed->start;
  size_t size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
  RN_RETURN_IF_ERROR(need_packed(input, 4 + size, &has_it));
  if (!has_it) return bad_block(input, "compressed stream ends early");
  rn_str_t block = rn_str_n(packed->data + packed->start + 4, size);
  uint64_t room = 0;
  // No snappy element expands more than 64 times.
  if (!rn_snappy_size(block, &room) || room / 64 > size)
    return bad_block(input, "no block of snappy");
  RN_RETURN_IF_ERROR(make_room(&input->buffer, (size_t)room, input->piece));
  if (!rn_snappy_unfold(block, input->buffer.data + input->buffer.end, (size_t)room))
    return bad_block(input, "no block of snappy");
  input->buffer.end += (size_t)room;
  packed->start += 4 + size;
  return RN_OK;
}

static rn_status_t fill(rn_input_t* input, size_t wanted) {
  if (input->compression == RN_COMPRESSION_NONE) return fill_plain(input, wanted);
  return input->compression == RN_COMPRESSION_SNAPPY ? fill_unfolded(input) : fill_inflated(input);
}

// Fails if |wanted| bytes at once exceed the limit on decompression.
static rn_status_t check_unpacked(const rn_input_t* input, size_t wanted) {
  if (input->compression == RN_COMPRESSION_NONE || wanted <= input->piece) return RN_OK;
  uint64_t packed = input->file_size > 0 ? (uint64_t)input->file_size : input->file_offset;
  size_t limit = rn_unpacked_limit(packed);
  if (wanted <= limit) return RN_OK;
  return rn_status_annotate(rn_unpacked_too_much(limit), "; %s", input->path);
}

rn_status_t rn_input_peek(rn_input_t* input, size_t wanted, rn_str_t* out) {
  input_bytes_t* buffer = &input->buffer;
  RN_RETURN_IF_ERROR(check_unpacked(input, wanted));
  while (buffer->end - buffer->start < wanted && !input->ended)
    RN_RETURN_IF_ERROR(fill(input, wanted));
  *out = rn_str_n(buffer->data ? buffer->data + buffer->start : "", buffer->end - buffer->start);
  return RN_OK;
}

void rn_input_take(rn_input_t* input, size_t size) {
  input->buffer.start += size;
  input->position += size;
}

bool rn_input_may_hold(const rn_input_t* input, uint64_t size) {
  if (input->compression != RN_COMPRESSION_NONE || input->file_size <= 0) return true;
  uint64_t shown = input->buffer.end - input->buffer.start;
  if (size <= shown) return true;
  if (input->ended || (uint64_t)input->file_size < input->file_offset) return false;
  return size - shown <= (uint64_t)input->file_size - input->file_offset;
}

rn_status_t rn_input_skip(rn_input_t* input, uint64_t size, uint64_t* out_skipped) {
  for (*out_skipped = 0; *out_skipped < size;) {
    rn_str_t view;
    RN_RETURN_IF_ERROR(rn_input_peek(input, 1, &view));
    if (view.size == 0) return RN_OK;
    uint64_t left = size - *out_skipped;
    size_t taken = view.size < left ? view.size : (size_t)left;
    rn_input_take(input, taken);
    *out_skipped += taken;
  }
  return RN_OK;
}

rn_status_t rn_input_line(rn_input_t* input, bool strips_return, rn_str_t* out, bool* out_end) {
  size_t seen = 0;
  rn_str_t view;
  const char* stop = NULL;
  do {
    RN_RETURN_IF_ERROR(rn_input_peek(input, seen + 1, &view));
    if (view.size <= seen) break;
    stop = memchr(view.data + seen, '\n', view.size - seen);
    seen = view.size;
  } while (!stop);
  *out_end = view.size == 0;
  size_t size = stop ? (size_t)(stop - view.data) : view.size;
  rn_input_take(input, stop ? size + 1 : size);
  if (strips_return && stop && size > 0 && view.data[size - 1] == '\r') --size;
  *out = rn_str_n(view.data, size);
  return RN_OK;
}

static rn_status_t start_over(rn_input_t* input, uint64_t position) {
  end_ahead(input);
  input->buffer.start = input->buffer.end = 0;
  input->packed.start = input->packed.end = 0;
  input->file_offset = input->position = position;
  input->ended = false;
  return start_inflating(input);
}

rn_status_t rn_input_seek(rn_input_t* input, uint64_t position) {
  uint64_t skipped = 0, shown = input->buffer.end - input->buffer.start;
  bool is_back = position < input->position;
  if (is_back && input->file_size <= 0)
    return rn_invalid_argument("%s; cannot go back to byte %llu of a pipe", input->path,
                               (unsigned long long)position);
  if (input->compression == RN_COMPRESSION_NONE && input->file_size > 0 &&
      (is_back || position - input->position > shown)) {
    if (position > (uint64_t)input->file_size)
      return rn_out_of_range("%s; byte %llu is past the end at %lld", input->path,
                             (unsigned long long)position, (long long)input->file_size);
    return start_over(input, position);
  }
  if (is_back) RN_RETURN_IF_ERROR(start_over(input, 0));
  uint64_t way = position - input->position;
  RN_RETURN_IF_ERROR(rn_input_skip(input, way, &skipped));
  if (skipped < way)
    return rn_out_of_range("%s; byte %llu is past the end at %llu", input->path,
                           (unsigned long long)position, (unsigned long long)input->position);
  return RN_OK;
}
