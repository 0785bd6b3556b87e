// See snapshot_file.h.
//
// SnapshotRecord {tensor 1}. The sizes and shapes of SNAPPY are SnapshotTensorMetadata
// {tensor_metadata 1 {tensor_shape 2, tensor_size_bytes 3}}: of plain types the bytes in memory
// follow in the block, of others a TensorProto.
#include "io/snapshot_file.h"

#include "io/inflate.h"
#include "io/record.h"
#include "io/snappy.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define LENGTH ((size_t)8)            // before a record
#define MAX_TENSOR ((size_t)1 << 31)  // the size limit of messages

struct rn_snapshot_file_t {
  rn_allocator_t allocator;
  char* path;                   // Owned
  rn_record_reader_t* records;  // of version 2
  rn_input_t* input;            // of the others
  size_t shown;                 // bytes of the last record, consumed with the next call
  bool is_folded;               // two records per element
};

void rn_snapshot_file_close(rn_snapshot_file_t* file) {
  if (!file) return;
  rn_record_reader_close(file->records);
  rn_input_close(file->input);
  if (file->path) rn_free(file->allocator, file->path, strlen(file->path) + 1);
  RN_FREE(file->allocator, file);
}

static rn_status_t open_file(rn_snapshot_file_t* file, const rn_env_t* env,
                             rn_compression_t compression, int64_t version) {
  if (version == 2) return rn_record_reader_open(env, file->path, compression, 0, &file->records);
  if (version != 0 && version != 1)
    return rn_invalid_argument("Snapshot reader version: %lld is not supported.",
                               (long long)version);
  file->is_folded = version == 1 && compression == RN_COMPRESSION_SNAPPY;
  return rn_input_open(env, file->path, file->is_folded ? RN_COMPRESSION_NONE : compression, 0,
                       &file->input);
}

rn_status_t rn_snapshot_file_open(const rn_env_t* env, const char* path,
                                  rn_compression_t compression, int64_t version,
                                  rn_snapshot_file_t** out) {
  *out = NULL;
  rn_snapshot_file_t* file = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &file));
  file->allocator = env->allocator;
  rn_status_t status = rn_str_dup(env->allocator, rn_str(path), &file->path);
  if (rn_ok(status)) status = open_file(file, env, compression, version);
  if (rn_ok(status))
    *out = file;
  else
    rn_snapshot_file_close(file);
  return status;
}

static uint64_t position(const rn_snapshot_file_t* file) {
  return file->records ? rn_record_reader_offset(file->records)
                       : rn_input_position(file->input) + file->shown;
}

static rn_status_t damaged(const rn_snapshot_file_t* file) {
  return rn_data_loss("Unable to parse tensor from stored proto. Before byte %llu of %s",
                      (unsigned long long)position(file), file->path);
}

static rn_status_t truncated(const rn_snapshot_file_t* file) {
  return rn_data_loss("truncated record at %llu of %s", (unsigned long long)position(file),
                      file->path);
}

// The next record of a file of version 0 or 1, valid until the next call.
static rn_status_t next_piece(rn_snapshot_file_t* file, rn_str_t* out, bool* out_end) {
  rn_str_t view;
  rn_input_take(file->input, file->shown);
  file->shown = 0;
  RN_RETURN_IF_ERROR(rn_input_peek(file->input, LENGTH, &view));
  *out_end = !view.size;
  if (*out_end) return RN_OK;
  if (view.size < LENGTH) return truncated(file);
  uint64_t size = 0;
  for (size_t i = LENGTH; i-- > 0;) size = size << 8 | (uint8_t)view.data[i];
  if (size > SIZE_MAX - LENGTH || !rn_input_may_hold(file->input, size + LENGTH))
    return truncated(file);
  RN_RETURN_IF_ERROR(rn_input_peek(file->input, (size_t)size + LENGTH, &view));
  if (view.size < size + LENGTH) return truncated(file);
  file->shown = (size_t)size + LENGTH;
  *out = rn_str_n(view.data + LENGTH, (size_t)size);
  return RN_OK;
}

static rn_status_t next_record(rn_snapshot_file_t* file, rn_str_t* out, bool* out_end) {
  return file->records ? rn_record_reader_next(file->records, out, out_end)
                       : next_piece(file, out, out_end);
}

static rn_status_t too_few(const rn_snapshot_file_t* file) {
  return rn_data_loss("an element has too few components; %s", file->path);
}

static rn_status_t take_tensor(const rn_snapshot_file_t* file, rn_str_t bytes, rn_dtype_t type,
                               rn_allocator_t memory, rn_tensor_t* out) {
  rn_status_t status = rn_tensor_take_proto(bytes, MAX_TENSOR, memory, out);
  if (rn_ok(status) && out->dtype == type) return RN_OK;
  if (rn_ok(status))
    return rn_data_loss("found %s before byte %llu of %s, expected %s", rn_dtype_name(out->dtype),
                        (unsigned long long)position(file), file->path, rn_dtype_name(type));
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  rn_status_free(status);
  return damaged(file);
}

static rn_status_t take_record(const rn_snapshot_file_t* file, rn_str_t record, int32_t count,
                               const rn_dtype_t* types, rn_allocator_t memory, rn_tensor_t* row) {
  rn_pb_scan_t scan = rn_pb_scan(record);
  rn_pb_field_t field = {0};
  int32_t found = 0;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != 1 || field.wire != RN_PB_WIRE_LENGTH) continue;
    if (found == count) return rn_data_loss("an element has too many components; %s", file->path);
    RN_RETURN_IF_ERROR(take_tensor(file, field.bytes, types[found], memory, &row[found]));
    found++;
  }
  if (scan.is_bad) return damaged(file);
  return found == count ? RN_OK : too_few(file);
}

// Version 1, SNAPPY.
static rn_status_t shape_of(const rn_snapshot_file_t* file, rn_str_t bytes, rn_arena_t* arena,
                            rn_shape_t* out) {
  rn_pb_TensorShapeProto_t* proto = NULL;
  rn_status_t status = RN_PB_DECODE(TensorShapeProto, bytes, NULL, arena, &proto);
  if (rn_ok(status)) status = rn_shape_from_proto(proto, arena, out);
  if (rn_ok(status) && rn_shape_is_full(*out)) return RN_OK;
  rn_status_free(status);
  return damaged(file);
}

// Makes the tensor that the message |about| and the first bytes of |*inout_data| describe.
static rn_status_t take_part(const rn_snapshot_file_t* file, rn_str_t about, rn_arena_t* arena,
                             rn_dtype_t type, rn_allocator_t memory, rn_str_t* inout_data,
                             rn_tensor_t* out) {
  uint64_t size = rn_field_value(about, 3);
  rn_shape_t shape;
  if (size > inout_data->size) return damaged(file);
  rn_str_t data = rn_str_n(inout_data->data, (size_t)size);
  *inout_data = rn_str_n(inout_data->data + size, inout_data->size - (size_t)size);
  if (!rn_dtype_is_plain(type)) return take_tensor(file, data, type, memory, out);
  RN_RETURN_IF_ERROR(shape_of(file, rn_field_bytes(about, 2), arena, &shape));
  rn_tensor_t probe = {0};
  RN_RETURN_IF_ERROR(rn_tensor_init(&probe, type, shape));
  bool fits = rn_tensor_bytes(&probe) == data.size;
  rn_tensor_clear(&probe);
  if (!fits) return damaged(file);
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, type, shape, out));
  if (data.size) memcpy(out->data, data.data, data.size);
  return RN_OK;
}

static rn_status_t take_parts(const rn_snapshot_file_t* file, rn_str_t about, rn_str_t data,
                              int32_t count, const rn_dtype_t* types, rn_allocator_t memory,
                              rn_tensor_t* row) {
  rn_pb_scan_t scan = rn_pb_scan(about);
  rn_pb_field_t field = {0};
  rn_status_t status = RN_OK;
  int32_t found = 0;
  rn_arena_t arena;
  rn_arena_init(&arena, file->allocator);
  while (rn_ok(status) && rn_pb_scan_next(&scan, &field)) {
    if (field.number != 1 || field.wire != RN_PB_WIRE_LENGTH) continue;
    if (found < count)
      status = take_part(file, field.bytes, &arena, types[found], memory, &data, &row[found]);
    found++;
  }
  rn_arena_clear(&arena);
  if (rn_ok(status) && (scan.is_bad || found != count || data.size)) status = damaged(file);
  return status;
}

static rn_status_t take_folded(rn_snapshot_file_t* file, rn_str_t record, int32_t count,
                               const rn_dtype_t* types, rn_allocator_t memory, rn_tensor_t* row) {
  // The record is gone when the next one is read.
  rn_strbuf_t about, data;
  rn_str_t block = {0};
  bool is_end = false;
  uint64_t size = 0;
  rn_strbuf_init(&about, file->allocator);
  rn_strbuf_init(&data, file->allocator);
  rn_strbuf_append(&about, record);
  rn_status_t status = next_piece(file, &block, &is_end);
  if (rn_ok(status) && is_end) status = truncated(file);
  if (rn_ok(status) && !rn_snappy_size(block, &size)) status = damaged(file);
  if (rn_ok(status) && size > rn_unpacked_limit(block.size))
    status = rn_unpacked_too_much(rn_unpacked_limit(block.size));
  if (rn_ok(status)) (void)rn_strbuf_reserve(&data, (size_t)size);
  if (rn_ok(status)) status = rn_strbuf_status(&data);
  if (rn_ok(status)) status = rn_strbuf_status(&about);
  if (rn_ok(status) && !rn_snappy_unfold(block, data.data, (size_t)size)) status = damaged(file);
  if (rn_ok(status))
    status = take_parts(file, rn_strbuf_view(&about), rn_str_n(data.data, (size_t)size), count,
                        types, memory, row);
  rn_strbuf_clear(&about);
  rn_strbuf_clear(&data);
  return status;
}

// Reads the other components of an element whose first is |record|.
static rn_status_t take_components(rn_snapshot_file_t* file, rn_str_t record, int32_t count,
                                   const rn_dtype_t* types, rn_allocator_t memory,
                                   rn_tensor_t* row) {
  for (int32_t i = 0; i < count; ++i) {
    bool is_end = false;
    if (i) RN_RETURN_IF_ERROR(next_record(file, &record, &is_end));
    if (is_end) return too_few(file);
    RN_RETURN_IF_ERROR(take_tensor(file, record, types[i], memory, &row[i]));
  }
  return RN_OK;
}

rn_status_t rn_snapshot_file_next(rn_snapshot_file_t* file, int32_t count, const rn_dtype_t* types,
                                  rn_allocator_t memory, rn_tensor_t* row, bool* out_end) {
  rn_str_t record = {0};
  *out_end = false;
  rn_status_t status = next_record(file, &record, out_end);
  if (!rn_ok(status) || *out_end) return status;
  if (file->records)
    status = take_components(file, record, count, types, memory, row);
  else if (file->is_folded)
    status = take_folded(file, record, count, types, memory, row);
  else
    status = take_record(file, record, count, types, memory, row);
  for (int32_t i = 0; !rn_ok(status) && i < count; ++i) rn_tensor_clear(&row[i]);
  return status;
}

rn_status_t rn_snapshot_file_skip(rn_snapshot_file_t* file, int32_t count, bool* out_end) {
  int32_t records = file->records ? count : file->is_folded ? 2 : 1;
  rn_str_t record = {0};
  *out_end = false;
  for (int32_t i = 0; i < records; ++i) {
    RN_RETURN_IF_ERROR(next_record(file, &record, out_end));
    if (*out_end) return i ? too_few(file) : RN_OK;
  }
  return RN_OK;
}

// Writing.
struct rn_snapshot_file_writer_t {
  rn_allocator_t allocator;
  rn_sink_t* output;
  bool is_folded;
  rn_strbuf_t record, data, folded;
};

static void writer_free(rn_snapshot_file_writer_t* writer) {
  rn_strbuf_clear(&writer->record);
  rn_strbuf_clear(&writer->data);
  rn_strbuf_clear(&writer->folded);
  RN_FREE(writer->allocator, writer);
}

rn_status_t rn_snapshot_file_writer_open(const rn_env_t* env, const char* path,
                                         rn_compression_t compression,
                                         rn_snapshot_file_writer_t** out) {
  *out = NULL;
  rn_snapshot_file_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &writer));
  writer->allocator = env->allocator;
  writer->is_folded = compression == RN_COMPRESSION_SNAPPY;
  rn_strbuf_init(&writer->record, env->allocator);
  rn_strbuf_init(&writer->data, env->allocator);
  rn_strbuf_init(&writer->folded, env->allocator);
  rn_sink_options_t options = {.compression = writer->is_folded ? RN_COMPRESSION_NONE : compression,
                               .buffer_size = (size_t)64 << 10};
  rn_status_t status = rn_sink_open(env, path, &options, &writer->output);
  if (rn_ok(status))
    *out = writer;
  else
    writer_free(writer);
  return status;
}

static rn_status_t write_piece(rn_snapshot_file_writer_t* writer, const rn_strbuf_t* buf) {
  char length[LENGTH];
  RN_RETURN_IF_ERROR(rn_strbuf_status(buf));
  for (size_t i = 0; i < LENGTH; ++i) length[i] = (char)((uint64_t)buf->size >> (8 * i));
  RN_RETURN_IF_ERROR(rn_sink_put(writer->output, rn_str_n(length, sizeof length)));
  return rn_sink_put(writer->output, rn_strbuf_view(buf));
}

// Appends the bytes of |tensor| to the block, and their size to the record.
static rn_status_t put_part(rn_snapshot_file_writer_t* writer, const rn_tensor_t* tensor) {
  rn_strbuf_t* record = &writer->record;
  size_t before = writer->data.size;
  if (rn_dtype_is_plain(tensor->dtype))
    rn_strbuf_append_n(&writer->data, tensor->data, rn_tensor_bytes(tensor));
  else
    RN_RETURN_IF_ERROR(rn_tensor_put_proto(tensor, RN_TENSOR_CONTENT, &writer->data));
  size_t about = rn_pb_begin(record, 1), shape = rn_pb_begin(record, 2);
  for (int d = 0; d < tensor->rank; ++d) {
    size_t dim = rn_pb_begin(record, 2);
    if (rn_tensor_dim(tensor, d)) rn_pb_put_uint(record, 1, (uint64_t)rn_tensor_dim(tensor, d));
    rn_pb_end(record, dim);
  }
  rn_pb_end(record, shape);
  if (writer->data.size > before) rn_pb_put_uint(record, 3, writer->data.size - before);
  rn_pb_end(record, about);
  return rn_strbuf_status(&writer->data);
}

static rn_status_t write_folded(rn_snapshot_file_writer_t* writer) {
  if (writer->data.size > UINT32_MAX)
    return rn_resource_exhausted("An element of %zu bytes is too large for Snappy",
                                 writer->data.size);
  writer->folded.size = 0;
  rn_snappy_fold(rn_strbuf_view(&writer->data), &writer->folded);
  RN_RETURN_IF_ERROR(write_piece(writer, &writer->record));
  return write_piece(writer, &writer->folded);
}

rn_status_t rn_snapshot_file_writer_put(rn_snapshot_file_writer_t* writer, const rn_tensor_t* row,
                                        int32_t count) {
  writer->record.size = writer->data.size = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (writer->is_folded) {
      RN_RETURN_IF_ERROR(put_part(writer, &row[i]));
      continue;
    }
    size_t mark = rn_pb_begin(&writer->record, 1);
    RN_RETURN_IF_ERROR(rn_tensor_put_proto(&row[i], RN_TENSOR_CONTENT, &writer->record));
    rn_pb_end(&writer->record, mark);
  }
  return writer->is_folded ? write_folded(writer) : write_piece(writer, &writer->record);
}

rn_status_t rn_snapshot_file_writer_flush(rn_snapshot_file_writer_t* writer) {
  return rn_sink_flush(writer->output, false);
}

rn_status_t rn_snapshot_file_writer_close(rn_snapshot_file_writer_t* writer) {
  if (!writer) return RN_OK;
  rn_status_t status = rn_sink_flush(writer->output, true);
  status = rn_status_join(status, rn_sink_close(writer->output));
  writer_free(writer);
  return status;
}

void rn_snapshot_file_writer_drop(rn_snapshot_file_writer_t* writer) {
  if (!writer) return;
  rn_status_free(rn_sink_close(writer->output));
  writer_free(writer);
}
