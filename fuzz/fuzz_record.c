// Fuzzes TFRecord files, plain or compressed, and the same bytes as lines of text: reads to the
// end, skips, and seeks back. Memory use must not exceed twice the decompressed size.
#include "fuzz/util.h"
#include "io/inflate.h"
#include "io/record.h"

// One file over the input's bytes, read in pieces.
typedef struct bytes_file_t {
  rn_file_t file;
  rn_allocator_t allocator;
  rn_str_t bytes;
  size_t next;
} bytes_file_t;

static rn_status_t read_at(rn_file_t* base, uint64_t offset, void* out, size_t size, size_t* got) {
  const bytes_file_t* file = (const bytes_file_t*)base;
  *got = offset < file->bytes.size ? file->bytes.size - (size_t)offset : 0;
  if (*got > size) *got = size;
  if (*got) memcpy(out, file->bytes.data + offset, *got);
  return RN_OK;
}
static rn_status_t read_on(rn_file_t* base, void* out, size_t size, size_t* got) {
  bytes_file_t* file = (bytes_file_t*)base;
  RN_RETURN_IF_ERROR(read_at(base, file->next, out, size, got));
  file->next += *got;
  return RN_OK;
}
static rn_status_t stat_file(rn_file_t* base, rn_file_stat_t* out) {
  *out = (rn_file_stat_t){.size = (int64_t)((const bytes_file_t*)base)->bytes.size};
  return RN_OK;
}
static rn_status_t close_file(rn_file_t* base) {
  RN_FREE(((bytes_file_t*)base)->allocator, (bytes_file_t*)base);
  return RN_OK;
}
static const rn_file_vtable_t vtable = {
    .read = read_on, .read_at = read_at, .stat = stat_file, .close = close_file};

static rn_status_t open_file(void* self, const char* path, rn_open_mode_t mode,
                             rn_allocator_t allocator, rn_file_t** out) {
  bytes_file_t* file = NULL;
  (void)path, (void)mode;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &file));
  *file = (bytes_file_t){{&vtable}, allocator, *(const rn_str_t*)self, 0};
  *out = &file->file;
  return RN_OK;
}

static void read_records(const rn_env_t* env, rn_compression_t compression, size_t buffer) {
  rn_record_reader_t* reader = NULL;
  rn_str_t record;
  bool is_end = false;
  int64_t count = 0, skipped = 0;
  fuzz_must(rn_record_reader_open(env, "f", compression, buffer, &reader));
  rn_status_t status = RN_OK;
  while (rn_ok(status) && !is_end) {
    status = rn_record_reader_next(reader, &record, &is_end);
    count += rn_ok(status) && !is_end;
  }
  rn_code_t code = rn_status_code(status);
  fuzz_check(code == RN_CODE_OK || code == RN_CODE_DATA_LOSS || code == RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  // What was read once can be read again.
  fuzz_must(rn_record_reader_seek(reader, 0));
  status = rn_record_reader_skip(reader, count, &skipped);
  if (rn_ok(status)) fuzz_check(skipped == count);
  rn_status_free(status);
  rn_record_reader_close(reader);
}

static void read_lines(const rn_env_t* env, size_t buffer) {
  rn_input_t* input = NULL;
  rn_str_t line;
  bool is_end = false;
  fuzz_must(rn_input_open(env, "f", RN_COMPRESSION_NONE, buffer, &input));
  while (!is_end) fuzz_must(rn_input_line(input, true, &line, &is_end));
  rn_input_close(input);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const rn_fs_t fs = {.open = open_file};
  fuzz_bytes_t bytes = {data, size};
  rn_compression_t compression = (rn_compression_t)fuzz_pick(&bytes, 4);
  size_t buffer = (size_t)fuzz_byte(&bytes) + 1;
  rn_str_t content = fuzz_take(&bytes, size);
  fuzz_memory_t memory;
  rn_env_t env = fuzz_env();
  env.allocator = fuzz_memory_init(&memory, (int64_t)1 << 26);
  env.fs = &fs;
  env.fs_self = &content;
  read_records(&env, compression, buffer);
  if (compression == RN_COMPRESSION_NONE) {
    fuzz_check(memory.counting.peak_bytes <= (int64_t)(4096 + 4 * size + 4 * buffer));
    read_lines(&env, buffer);
  }
  if (compression == RN_COMPRESSION_SNAPPY) compression = RN_COMPRESSION_ZLIB;
  rn_strbuf_t out;
  rn_strbuf_init(&out, env.allocator);
  rn_status_free(rn_inflate(content, compression, (size_t)1 << 20, &out));
  rn_strbuf_clear(&out);
  fuzz_check(memory.counting.live_blocks == 0);
  return 0;
}
