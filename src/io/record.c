// Reads TFRecord files. See record.h.
//
//   uint64 length | uint32 masked crc32c(length) | length bytes | uint32 masked crc32c(bytes)
#include "io/record.h"

#include "base/crc32c.h"

struct rn_record_reader_t {
  rn_allocator_t allocator;
  rn_input_t* input;
  size_t shown;  // bytes of the last record, consumed with the next call
};

void rn_record_reader_close(rn_record_reader_t* reader) {
  if (!reader) return;
  rn_input_close(reader->input);
  RN_FREE(reader->allocator, reader);
}

rn_status_t rn_record_reader_open(const rn_env_t* env, const char* path,
                                  rn_compression_t compression, size_t buffer_size,
                                  rn_record_reader_t** out) {
  *out = NULL;
  rn_record_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &reader));
  reader->allocator = env->allocator;
  rn_status_t status = rn_input_open(env, path, compression, buffer_size, &reader->input);
  if (rn_ok(status))
    *out = reader;
  else
    rn_record_reader_close(reader);
  return status;
}

// Numbers in files are little-endian.
static uint32_t read_u32(const char* data) {
  const uint8_t* b = (const uint8_t*)data;
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool is_intact(const char* data, size_t size) {
  return rn_crc32c_unmask(read_u32(data + size)) == rn_crc32c(0, data, size);
}

static rn_status_t corrupted(const rn_record_reader_t* reader, uint64_t offset, const char* hint) {
  return rn_data_loss("corrupted record at %llu%s; %s", (unsigned long long)offset, hint,
                      rn_input_path(reader->input));
}

static rn_status_t truncated(const rn_record_reader_t* reader, uint64_t has, uint64_t wants) {
  return rn_data_loss("truncated record at %llu; %s ends %llu bytes short",
                      (unsigned long long)rn_input_position(reader->input),
                      rn_input_path(reader->input), (unsigned long long)(wants - has));
}

// Peeks at the header of the next record and computes its total length.
static rn_status_t peek_header(rn_record_reader_t* reader, uint64_t* out_size, bool* out_end) {
  rn_str_t view;
  uint64_t position = rn_input_position(reader->input);
  RN_RETURN_IF_ERROR(rn_input_peek(reader->input, RN_RECORD_HEADER, &view));
  *out_end = view.size == 0;
  if (*out_end) return RN_OK;
  if (view.size < RN_RECORD_HEADER) return truncated(reader, view.size, RN_RECORD_HEADER);
  uint64_t length = read_u32(view.data) | (uint64_t)read_u32(view.data + 4) << 32;
  const char* hint = position == 0 ? " (Is this even a TFRecord file?)" : "";
  if (!is_intact(view.data, 8)) return corrupted(reader, position, hint);
  // A matching checksum does not make a length trustworthy.
  if (length > INT64_MAX / 2) return corrupted(reader, position, hint);
  *out_size = RN_RECORD_HEADER + length + RN_RECORD_FOOTER;
  return RN_OK;
}

rn_status_t rn_record_reader_next(rn_record_reader_t* reader, rn_str_t* out, bool* out_end) {
  uint64_t size = 0;
  rn_str_t view;
  *out = rn_str_n("", 0);
  rn_input_take(reader->input, reader->shown);
  reader->shown = 0;
  RN_RETURN_IF_ERROR(peek_header(reader, &size, out_end));
  if (*out_end) return RN_OK;
  RN_RETURN_IF_ERROR(rn_input_peek(reader->input, (size_t)size, &view));
  if (view.size < size) return truncated(reader, view.size, size);
  rn_str_t record =
      rn_str_n(view.data + RN_RECORD_HEADER, (size_t)size - RN_RECORD_HEADER - RN_RECORD_FOOTER);
  if (!is_intact(record.data, record.size))
    return corrupted(reader, rn_input_position(reader->input) + RN_RECORD_HEADER, "");
  reader->shown = (size_t)size;
  // The checksum has been verified and the memory is ours, so overwrite its first byte with the
  // NUL.
  if (rn_input_block(reader->input)) *(char*)(uintptr_t)(record.data + record.size) = '\0';
  *out = record;
  return RN_OK;
}

void rn_record_reader_share(rn_record_reader_t* reader, rn_allocator_t memory) {
  rn_input_share(reader->input, memory);
}

void rn_record_reader_read_ahead(rn_record_reader_t* reader, rn_pool_t* pool) {
  rn_input_read_ahead(reader->input, pool);
}

rn_buffer_t* rn_record_reader_block(const rn_record_reader_t* reader) {
  return rn_input_block(reader->input);
}

rn_status_t rn_record_reader_skip(rn_record_reader_t* reader, int64_t count, int64_t* out_skipped) {
  rn_input_take(reader->input, reader->shown);
  reader->shown = 0;
  for (*out_skipped = 0; *out_skipped < count; ++*out_skipped) {
    uint64_t size = 0, passed = 0;
    bool is_end = false;
    RN_RETURN_IF_ERROR(peek_header(reader, &size, &is_end));
    if (is_end) return RN_OK;
    RN_RETURN_IF_ERROR(rn_input_skip(reader->input, size, &passed));
    if (passed < size) return truncated(reader, passed, size);
  }
  return RN_OK;
}

uint64_t rn_record_reader_offset(const rn_record_reader_t* reader) {
  return rn_input_position(reader->input) + reader->shown;
}

rn_status_t rn_record_reader_seek(rn_record_reader_t* reader, uint64_t offset) {
  rn_input_take(reader->input, reader->shown);
  reader->shown = 0;
  return rn_input_seek(reader->input, offset);
}
