// Sinks. See sink.h.
#include "io/sink.h"

#include <zlib.h>

#include "io/snappy.h"

#define DEFAULT_BUFFER ((size_t)256 << 10)
// A flush writes a marker of five bytes, and would repeat it whenever the buffer was too small for
// all output.
#define SMALLEST_BUFFER 64
// Bytes per snappy block. TensorFlow's readers have 256 KiB for a block and for its decompressed
// bytes.
#define SNAPPY_BLOCK ((size_t)128 << 10)

struct rn_sink_t {
  rn_allocator_t allocator;
  char* path;  // Owned
  rn_file_t* file;
  char* buffer;  // Owned; bytes to write next
  size_t capacity, used;
  uint64_t position;
  z_stream deflater;
  bool is_deflating;
  bool is_folding;     // compress the buffer into snappy blocks
  rn_strbuf_t folded;  // it
  bool is_broken;      // a write failed, so the content of the file is unknown
};

static void discard(rn_sink_t* sink) {
  rn_allocator_t allocator = sink->allocator;
  if (sink->is_deflating) deflateEnd(&sink->deflater);
  rn_strbuf_clear(&sink->folded);
  rn_free(allocator, sink->buffer, sink->capacity);
  if (sink->path) rn_free(allocator, sink->path, strlen(sink->path) + 1);
  RN_FREE(allocator, sink);
}

static rn_status_t set_up(rn_sink_t* sink, const rn_env_t* env, const char* path,
                          const rn_sink_options_t* options) {
  sink->capacity = options->buffer_size ? options->buffer_size : DEFAULT_BUFFER;
  if (sink->capacity < SMALLEST_BUFFER) sink->capacity = SMALLEST_BUFFER;
  sink->is_folding = options->compression == RN_COMPRESSION_SNAPPY;
  if (sink->is_folding) sink->capacity = SNAPPY_BLOCK;
  RN_RETURN_IF_ERROR(rn_alloc(sink->allocator, sink->capacity, (void**)&sink->buffer));
  RN_RETURN_IF_ERROR(rn_str_dup(sink->allocator, rn_str(path), &sink->path));
  if (options->compression != RN_COMPRESSION_NONE && !sink->is_folding) {
    int bits = options->compression == RN_COMPRESSION_GZIP ? 15 + 16 : 15;
    int level = options->level ? options->level : Z_DEFAULT_COMPRESSION;
    int result = deflateInit2(&sink->deflater, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY);
    if (result == Z_STREAM_ERROR) return rn_invalid_argument("bad compression level: %d", level);
    if (result != Z_OK) return rn_out_of_memory();
    sink->is_deflating = true;
  }
  return rn_fs_open(env, path, options->appends ? RN_OPEN_APPEND : RN_OPEN_WRITE, &sink->file);
}

rn_status_t rn_sink_open(const rn_env_t* env, const char* path, const rn_sink_options_t* options,
                         rn_sink_t** out) {
  *out = NULL;
  rn_sink_t* sink = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &sink));
  sink->allocator = env->allocator;
  rn_strbuf_init(&sink->folded, env->allocator);
  rn_status_t status = set_up(sink, env, path, options);
  if (rn_ok(status))
    *out = sink;
  else
    discard(sink);  // the file is opened last, so there is none to close
  return status;
}

static rn_status_t to_file(rn_sink_t* sink, rn_str_t data) {
  return data.size ? sink->file->vtable->append(sink->file, data) : RN_OK;
}

static rn_status_t drain(rn_sink_t* sink) {
  rn_str_t data = rn_str_n(sink->buffer, sink->used);
  sink->used = 0;
  if (!sink->is_folding || !data.size) return to_file(sink, data);
  sink->folded.size = 0;
  rn_strbuf_append(&sink->folded, RN_STR("size"));
  rn_snappy_fold(data, &sink->folded);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&sink->folded));
  size_t size = sink->folded.size - 4;
  for (int i = 0; i < 4; ++i) sink->folded.data[i] = (char)(size >> (24 - 8 * i));
  return to_file(sink, rn_strbuf_view(&sink->folded));
}

static rn_status_t put_plain(rn_sink_t* sink, rn_str_t data) {
  if (data.size > sink->capacity - sink->used) RN_RETURN_IF_ERROR(drain(sink));
  if (data.size >= sink->capacity) return to_file(sink, data);
  memcpy(sink->buffer + sink->used, data.data, data.size);
  sink->used += data.size;
  return RN_OK;
}

// Compresses all of |data|; with |flush|, also writes all pending output.
static rn_status_t put_deflated(rn_sink_t* sink, rn_str_t data, int flush) {
  z_stream* z = &sink->deflater;
  for (bool is_done = false; !is_done;) {
    size_t part = data.size > INT32_MAX ? INT32_MAX : data.size;
    size_t room = sink->capacity - sink->used;
    z->next_in = (Bytef*)data.data;
    z->avail_in = (uInt)part;
    z->next_out = (Bytef*)sink->buffer + sink->used;
    z->avail_out = room > INT32_MAX ? INT32_MAX : (uInt)room;
    uInt given = z->avail_out;
    int result = deflate(z, part == data.size ? flush : Z_NO_FLUSH);
    if (result == Z_STREAM_ERROR)
      return rn_internal("deflate() failed with error %d; %s", result, sink->path);
    data = rn_str_n(data.data + (part - z->avail_in), data.size - (part - z->avail_in));
    sink->used += given - z->avail_out;
    // Free output space means that the compressor has no more pending output.
    is_done = data.size == 0 && z->avail_out > 0;
    if (sink->used == sink->capacity) RN_RETURN_IF_ERROR(drain(sink));
  }
  return RN_OK;
}

// In pieces that fill a block each.
static rn_status_t put_folded(rn_sink_t* sink, rn_str_t data) {
  while (data.size) {
    size_t room = sink->capacity - sink->used;
    size_t size = data.size < room ? data.size : room;
    memcpy(sink->buffer + sink->used, data.data, size);
    sink->used += size;
    data = rn_str_n(data.data + size, data.size - size);
    if (sink->used == sink->capacity) RN_RETURN_IF_ERROR(drain(sink));
  }
  return RN_OK;
}

static rn_status_t put(rn_sink_t* sink, rn_str_t data) {
  if (sink->is_folding) return put_folded(sink, data);
  if (sink->is_deflating) return put_deflated(sink, data, Z_NO_FLUSH);
  return put_plain(sink, data);
}

static rn_status_t broken(const rn_sink_t* sink) {
  return rn_failed_precondition("%s; an earlier write failed", sink->path);
}

rn_status_t rn_sink_put(rn_sink_t* sink, rn_str_t data) {
  if (sink->is_broken) return broken(sink);
  rn_status_t status = put(sink, data);
  if (rn_ok(status)) sink->position += data.size;
  sink->is_broken = !rn_ok(status);
  return status;
}

static rn_status_t flush(rn_sink_t* sink, bool syncs) {
  if (sink->is_deflating) RN_RETURN_IF_ERROR(put_deflated(sink, RN_STR(""), Z_SYNC_FLUSH));
  RN_RETURN_IF_ERROR(drain(sink));
  return syncs ? sink->file->vtable->sync(sink->file) : RN_OK;
}

rn_status_t rn_sink_flush(rn_sink_t* sink, bool syncs) {
  if (sink->is_broken) return broken(sink);
  rn_status_t status = flush(sink, syncs);
  sink->is_broken = !rn_ok(status);
  return status;
}

uint64_t rn_sink_position(const rn_sink_t* sink) { return sink->position; }

rn_status_t rn_sink_close(rn_sink_t* sink) {
  if (!sink) return RN_OK;
  rn_status_t status = RN_OK;
  if (!sink->is_broken) {
    if (sink->is_deflating) status = put_deflated(sink, RN_STR(""), Z_FINISH);
    if (rn_ok(status)) status = drain(sink);
  }
  status = rn_status_join(status, sink->file->vtable->close(sink->file));
  discard(sink);
  return status;
}
