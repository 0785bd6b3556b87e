// Writes TFRecord files. See record.h; record.c describes the format.
#include "base/crc32c.h"
#include "io/record.h"

struct rn_record_writer_t {
  rn_allocator_t allocator;
  rn_sink_t* output;
};

rn_status_t rn_record_writer_open(const rn_env_t* env, const char* path,
                                  const rn_sink_options_t* options, rn_record_writer_t** out) {
  static const rn_sink_options_t plain = {0};
  *out = NULL;
  rn_record_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &writer));
  writer->allocator = env->allocator;
  rn_status_t status = rn_sink_open(env, path, options ? options : &plain, &writer->output);
  if (rn_ok(status))
    *out = writer;
  else
    RN_FREE(env->allocator, writer);
  return status;
}

static void write_u32(char* out, uint32_t value) {
  for (int i = 0; i < 4; ++i) out[i] = (char)(value >> (8 * i));
}

rn_status_t rn_record_writer_write(rn_record_writer_t* writer, rn_str_t record) {
  char header[RN_RECORD_HEADER], footer[RN_RECORD_FOOTER];
  write_u32(header, (uint32_t)record.size);
  write_u32(header + 4, (uint32_t)((uint64_t)record.size >> 32));
  write_u32(header + 8, rn_crc32c_mask(rn_crc32c(0, header, 8)));
  write_u32(footer, rn_crc32c_mask(rn_crc32c(0, record.data, record.size)));
  RN_RETURN_IF_ERROR(rn_sink_put(writer->output, rn_str_n(header, sizeof header)));
  RN_RETURN_IF_ERROR(rn_sink_put(writer->output, record));
  return rn_sink_put(writer->output, rn_str_n(footer, sizeof footer));
}

rn_status_t rn_record_writer_flush(rn_record_writer_t* writer, bool syncs) {
  return rn_sink_flush(writer->output, syncs);
}

uint64_t rn_record_writer_offset(const rn_record_writer_t* writer) {
  return rn_sink_position(writer->output);
}

rn_status_t rn_record_writer_close(rn_record_writer_t* writer) {
  if (!writer) return RN_OK;
  rn_status_t status = rn_sink_close(writer->output);
  RN_FREE(writer->allocator, writer);
  return status;
}
