// Writes TFRecord files. See record.h; record.c describes the format.
#include <zlib.h>

#include "base/crc32c.h"
#include "io/record.h"
#include "io/snappy.h"

#define DEFAULT_BUFFER ((size_t)256 << 10)
// A flush writes a marker of five bytes, and would repeat it whenever the buffer was too small for
// all output.
#define SMALLEST_BUFFER 64
// Bytes per snappy block. TensorFlow's readers have 256 KiB for a block and for its decompressed
// bytes.
#define SNAPPY_BLOCK ((size_t)128 << 10)

struct rn_record_writer_t {
  rn_allocator_t allocator;
  char* path;  // Owned
  rn_file_t* file;
  char* buffer;  // Owned; bytes to write next
  size_t capacity, used;
  uint64_t offset;
  z_stream deflater;
  bool is_deflating;
  bool is_folding;     // compress the buffer into snappy blocks
  rn_strbuf_t folded;  // it
  bool is_broken;      // a write failed, so the content of the file is unknown
};

static void discard(rn_record_writer_t* writer) {
  rn_allocator_t allocator = writer->allocator;
  if (writer->is_deflating) deflateEnd(&writer->deflater);
  rn_strbuf_clear(&writer->folded);
  rn_free(allocator, writer->buffer, writer->capacity);
  if (writer->path) rn_free(allocator, writer->path, strlen(writer->path) + 1);
  RN_FREE(allocator, writer);
}

static rn_status_t set_up(rn_record_writer_t* writer, const rn_env_t* env, const char* path,
                          const rn_record_writer_options_t* options) {
  writer->capacity = options->buffer_size ? options->buffer_size : DEFAULT_BUFFER;
  if (writer->capacity < SMALLEST_BUFFER) writer->capacity = SMALLEST_BUFFER;
  writer->is_folding = options->compression == RN_COMPRESSION_SNAPPY;
  if (writer->is_folding) writer->capacity = SNAPPY_BLOCK;
  RN_RETURN_IF_ERROR(rn_alloc(writer->allocator, writer->capacity, (void**)&writer->buffer));
  RN_RETURN_IF_ERROR(rn_str_dup(writer->allocator, rn_str(path), &writer->path));
  if (options->compression != RN_COMPRESSION_NONE && !writer->is_folding) {
    int bits = options->compression == RN_COMPRESSION_GZIP ? 15 + 16 : 15;
    int level = options->level ? options->level : Z_DEFAULT_COMPRESSION;
    int result = deflateInit2(&writer->deflater, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY);
    if (result == Z_STREAM_ERROR) return rn_invalid_argument("bad compression level: %d", level);
    if (result != Z_OK) return rn_out_of_memory();
    writer->is_deflating = true;
  }
  return rn_fs_open(env, path, options->appends ? RN_OPEN_APPEND : RN_OPEN_WRITE, &writer->file);
}

rn_status_t rn_record_writer_open(const rn_env_t* env, const char* path,
                                  const rn_record_writer_options_t* options,
                                  rn_record_writer_t** out) {
  static const rn_record_writer_options_t plain = {0};
  *out = NULL;
  rn_record_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &writer));
  writer->allocator = env->allocator;
  rn_strbuf_init(&writer->folded, env->allocator);
  rn_status_t status = set_up(writer, env, path, options ? options : &plain);
  if (rn_ok(status))
    *out = writer;
  else
    discard(writer);  // the file is opened last, so there is none to close
  return status;
}

static rn_status_t to_file(rn_record_writer_t* writer, rn_str_t data) {
  return data.size ? writer->file->vtable->append(writer->file, data) : RN_OK;
}

static rn_status_t drain(rn_record_writer_t* writer) {
  rn_str_t data = rn_str_n(writer->buffer, writer->used);
  writer->used = 0;
  if (!writer->is_folding || !data.size) return to_file(writer, data);
  writer->folded.size = 0;
  rn_strbuf_append(&writer->folded, RN_STR("size"));
  rn_snappy_fold(data, &writer->folded);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&writer->folded));
  size_t size = writer->folded.size - 4;
  for (int i = 0; i < 4; ++i) writer->folded.data[i] = (char)(size >> (24 - 8 * i));
  return to_file(writer, rn_strbuf_view(&writer->folded));
}

static rn_status_t put_plain(rn_record_writer_t* writer, rn_str_t data) {
  if (data.size > writer->capacity - writer->used) RN_RETURN_IF_ERROR(drain(writer));
  if (data.size >= writer->capacity) return to_file(writer, data);
  memcpy(writer->buffer + writer->used, data.data, data.size);
  writer->used += data.size;
  return RN_OK;
}

// Compresses all of |data|; with |flush|, also writes all pending output.
static rn_status_t put_deflated(rn_record_writer_t* writer, rn_str_t data, int flush) {
  z_stream* z = &writer->deflater;
  for (bool is_done = false; !is_done;) {
    size_t part = data.size > INT32_MAX ? INT32_MAX : data.size;
    size_t room = writer->capacity - writer->used;
    z->next_in = (Bytef*)data.data;
    z->avail_in = (uInt)part;
    z->next_out = (Bytef*)writer->buffer + writer->used;
    z->avail_out = room > INT32_MAX ? INT32_MAX : (uInt)room;
    uInt given = z->avail_out;
    int result = deflate(z, part == data.size ? flush : Z_NO_FLUSH);
    if (result == Z_STREAM_ERROR)
      return rn_internal("deflate() failed with error %d; %s", result, writer->path);
    data = rn_str_n(data.data + (part - z->avail_in), data.size - (part - z->avail_in));
    writer->used += given - z->avail_out;
    // Free output space means that the compressor has no more pending output.
    is_done = data.size == 0 && z->avail_out > 0;
    if (writer->used == writer->capacity) RN_RETURN_IF_ERROR(drain(writer));
  }
  return RN_OK;
}

// In pieces that fill a block each.
static rn_status_t put_folded(rn_record_writer_t* writer, rn_str_t data) {
  while (data.size) {
    size_t room = writer->capacity - writer->used;
    size_t size = data.size < room ? data.size : room;
    memcpy(writer->buffer + writer->used, data.data, size);
    writer->used += size;
    data = rn_str_n(data.data + size, data.size - size);
    if (writer->used == writer->capacity) RN_RETURN_IF_ERROR(drain(writer));
  }
  return RN_OK;
}

static rn_status_t put(rn_record_writer_t* writer, rn_str_t data) {
  if (writer->is_folding) return put_folded(writer, data);
  if (writer->is_deflating) return put_deflated(writer, data, Z_NO_FLUSH);
  return put_plain(writer, data);
}

static void write_u32(char* out, uint32_t value) {
  for (int i = 0; i < 4; ++i) out[i] = (char)(value >> (8 * i));
}

static rn_status_t broken(const rn_record_writer_t* writer) {
  return rn_failed_precondition("%s; an earlier write failed", writer->path);
}

rn_status_t rn_record_writer_write(rn_record_writer_t* writer, rn_str_t record) {
  char header[RN_RECORD_HEADER], footer[RN_RECORD_FOOTER];
  if (writer->is_broken) return broken(writer);
  write_u32(header, (uint32_t)record.size);
  write_u32(header + 4, (uint32_t)((uint64_t)record.size >> 32));
  write_u32(header + 8, rn_crc32c_mask(rn_crc32c(0, header, 8)));
  write_u32(footer, rn_crc32c_mask(rn_crc32c(0, record.data, record.size)));
  rn_status_t status = put(writer, rn_str_n(header, sizeof header));
  if (rn_ok(status)) status = put(writer, record);
  if (rn_ok(status)) status = put(writer, rn_str_n(footer, sizeof footer));
  if (rn_ok(status)) writer->offset += RN_RECORD_HEADER + record.size + RN_RECORD_FOOTER;
  writer->is_broken = !rn_ok(status);
  return status;
}

static rn_status_t flush(rn_record_writer_t* writer, bool syncs) {
  if (writer->is_deflating) RN_RETURN_IF_ERROR(put_deflated(writer, RN_STR(""), Z_SYNC_FLUSH));
  RN_RETURN_IF_ERROR(drain(writer));
  return syncs ? writer->file->vtable->sync(writer->file) : RN_OK;
}

rn_status_t rn_record_writer_flush(rn_record_writer_t* writer, bool syncs) {
  if (writer->is_broken) return broken(writer);
  rn_status_t status = flush(writer, syncs);
  writer->is_broken = !rn_ok(status);
  return status;
}

uint64_t rn_record_writer_offset(const rn_record_writer_t* writer) { return writer->offset; }

rn_status_t rn_record_writer_close(rn_record_writer_t* writer) {
  if (!writer) return RN_OK;
  rn_status_t status = RN_OK;
  if (!writer->is_broken) {
    if (writer->is_deflating) status = put_deflated(writer, RN_STR(""), Z_FINISH);
    if (rn_ok(status)) status = drain(writer);
  }
  status = rn_status_join(status, writer->file->vtable->close(writer->file));
  discard(writer);
  return status;
}
