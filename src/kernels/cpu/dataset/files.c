// Datasets read from files: TFRecord, text lines, fixed-length records.
#include "io/record.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/text.h"
#include "tensor/tstring.h"

typedef struct files_t {
  rn_dataset_t base;
  const rn_tensor_t* names;
  const rn_tensor_t* offsets;  // start offset in each; NULL if 0
  rn_compression_t compression;
  size_t buffer_size;
  int64_t header, record, footer;  // for fixed-length records
} files_t;

typedef struct files_iterator_t {
  rn_data_iterator_t base;
  int64_t file;                 // index of the current file, or of the next
  rn_record_reader_t* records;  // at most one of |records| and |input| is open
  rn_input_t* input;
  int64_t end;             // end of the fixed-length records; -1 if unknown
  rn_strbuf_t line;        // a line that had to be changed
  bool is_batched;         // elements go into batches and live equally long
  rn_data_chunk_t* chunk;  // Owned; memory for the strings
  rn_tstring_t view;       // the last record, in the block it was read into
} files_iterator_t;

static rn_status_t files_open(rn_dataset_t* dataset) {
  files_t* files = (files_t*)dataset;
  files->names = rn_data_input(dataset, "filenames", NULL);
  if (files->names->rank > 1)
    return rn_invalid_argument("`filenames` must be a scalar or a vector.");
  rn_str_t compression;
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "compression_type", &compression));
  bool has_records = dataset->kind == &rn_data_kind_records;
  if (has_records ? !rn_record_compression_from_name(compression, &files->compression)
                  : !rn_compression_from_name(compression, &files->compression))
    return rn_invalid_argument("Unsupported compression_type.");
  int64_t size = 0;
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "buffer_size", &size));
  if (has_records && size == RN_DATA_AUTOTUNE) size = 0;
  if (size < 0)
    return rn_invalid_argument("`buffer_size` must be >= 0%s",
                               has_records                            ? " (0 == no buffering)"
                               : dataset->kind == &rn_data_kind_lines ? " (0 == default)"
                                                                      : "");
  files->buffer_size = size > ((int64_t)64 << 20) ? (size_t)64 << 20 : (size_t)size;
  return RN_OK;
}

static void close_file(files_iterator_t* own) {
  rn_record_reader_close(own->records);
  rn_input_close(own->input);
  own->records = NULL;
  own->input = NULL;
}

static rn_status_t files_start(rn_data_iterator_t* iterator) {
  rn_strbuf_init(&((files_iterator_t*)iterator)->line, iterator->dataset->node->allocator);
  return RN_OK;
}

static void files_stop(rn_data_iterator_t* iterator) {
  files_iterator_t* own = (files_iterator_t*)iterator;
  close_file(own);
  rn_strbuf_clear(&own->line);
  rn_data_chunk_release(own->chunk);
}

// Opens the current file at its start offset.
static rn_status_t open_file(files_iterator_t* own, bool has_records) {
  const files_t* files = (const files_t*)own->base.dataset;
  const rn_env_t* env = files->base.host->env;
  rn_str_t name = rn_tstring_view(&RN_DATA(files->names, const rn_tstring_t)[own->file]);
  char* path = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(files->base.node->allocator, name, &path));
  rn_status_t status =
      has_records
          ? rn_record_reader_open(env, path, files->compression, files->buffer_size, &own->records)
          : rn_input_open(env, path, files->compression, files->buffer_size, &own->input);
  rn_free(files->base.node->allocator, path, name.size + 1);
  RN_RETURN_IF_ERROR(status);
  if (has_records)
    rn_record_reader_read_ahead(own->records, files->base.host->pool);
  else
    rn_input_read_ahead(own->input, files->base.host->pool);
  return RN_OK;
}

static rn_status_t give_text(files_iterator_t* own, rn_str_t text) {
  rn_allocator_t memory = own->base.dataset->node->memory;
  rn_tensor_t* out = own->base.asked->out;
  rn_buffer_t* block = own->records ? rn_record_reader_block(own->records) : NULL;
  if (block) {
    rn_data_text_view(block, text, &own->view, out);
    return RN_OK;
  }
  return own->is_batched ? rn_data_text_create_in(&own->chunk, memory, text, out)
                         : rn_data_text_create(memory, text, out);
}

// A file format: opens the current file; returns its next element or reports its end.
typedef struct files_format_t {
  rn_status_t (*open)(files_iterator_t* own);
  rn_status_t (*read)(files_iterator_t* own, rn_str_t* out, bool* out_end);
} files_format_t;

// Skips a file after a read error, so that a reader that ignores errors gets to the next file.
static bool files_step(rn_data_iterator_t* iterator, const files_format_t* format) {
  files_iterator_t* own = (files_iterator_t*)iterator;
  const files_t* files = (const files_t*)iterator->dataset;
  while (own->file < files->names->count) {
    bool is_end = false;
    rn_str_t text = {0};
    rn_status_t status = own->records || own->input ? RN_OK : format->open(own);
    if (rn_ok(status)) status = format->read(own, &text, &is_end);
    if (rn_ok(status) && !is_end) return rn_data_finish(iterator, give_text(own, text));
    close_file(own);
    own->file++;
    if (!rn_ok(status)) return rn_data_finish(iterator, status);
  }
  return rn_data_end(iterator);
}

static rn_status_t files_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  files_iterator_t* own = (files_iterator_t*)iterator;
  rn_data_put_int(writer, own->file);
  int64_t position = own->records ? (int64_t)rn_record_reader_offset(own->records)
                     : own->input ? (int64_t)rn_input_position(own->input)
                                  : -1;
  rn_data_put_int(writer, position);
  return RN_OK;
}

static rn_status_t files_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader,
                                 const files_format_t* format) {
  files_iterator_t* own = (files_iterator_t*)iterator;
  int64_t position = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->file));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &position));
  int64_t count = ((const files_t*)iterator->dataset)->names->count;
  if (own->file < 0 || own->file > count) return rn_data_bad_state();
  close_file(own);
  if (position < 0 || own->file == count) return RN_OK;
  RN_RETURN_IF_ERROR(format->open(own));
  return own->records ? rn_record_reader_seek(own->records, (uint64_t)position)
                      : rn_input_seek(own->input, (uint64_t)position);
}

#define FILES                                                                     \
  .dataset_size = sizeof(files_t), .iterator_size = sizeof(files_iterator_t),     \
  .start = files_start, .stop = files_stop, .save = files_save, .fixed_count = 1, \
  .fixed_types = {RN_STRING}

// TFRecord.
static rn_status_t open_records(files_iterator_t* own) {
  const files_t* files = (const files_t*)own->base.dataset;
  RN_RETURN_IF_ERROR(open_file(own, true));
  if (own->is_batched) rn_record_reader_share(own->records, files->base.node->memory);
  int64_t offset = files->offsets ? rn_int_at(files->offsets, own->file) : 0;
  return offset ? rn_record_reader_seek(own->records, (uint64_t)offset) : RN_OK;
}

static rn_status_t read_record(files_iterator_t* own, rn_str_t* out, bool* out_end) {
  return rn_record_reader_next(own->records, out, out_end);
}

static const files_format_t record_format = {open_records, read_record};

static rn_status_t records_open(rn_dataset_t* dataset) {
  files_t* files = (files_t*)dataset;
  RN_RETURN_IF_ERROR(files_open(dataset));
  const rn_tensor_t* offsets = rn_data_input(dataset, "byte_offsets", NULL);
  if (!offsets || offsets->count == 0) return RN_OK;
  if (offsets->rank > 1 || offsets->count != files->names->count)
    return rn_invalid_argument(
        "`byte_offsets` must have the same number of elements as "
        "`filenames`: %lld vs. %lld",
        (long long)offsets->count, (long long)files->names->count);
  for (int64_t i = 0; i < offsets->count; ++i)
    if (rn_int_at(offsets, i) < 0) return rn_invalid_argument("`byte_offsets` must be >= 0");
  files->offsets = offsets;
  return RN_OK;
}

static bool records_next(rn_data_iterator_t* iterator) {
  return files_step(iterator, &record_format);
}
static rn_status_t records_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return files_restore(iterator, reader, &record_format);
}

const rn_data_kind_t rn_data_kind_records = {FILES, .open = records_open, .next = records_next,
                                             .restore = records_restore};

// Lines.
static rn_status_t open_lines(files_iterator_t* own) { return open_file(own, false); }

// Like stock, removes every carriage return, wherever it is.
static rn_status_t read_line(files_iterator_t* own, rn_str_t* out, bool* out_end) {
  RN_RETURN_IF_ERROR(rn_input_line(own->input, true, out, out_end));
  if (*out_end || !out->size || !memchr(out->data, '\r', out->size)) return RN_OK;
  own->line.size = 0;
  rn_str_t rest = *out;
  while (rest.size) rn_strbuf_append(&own->line, rn_str_split(&rest, '\r'));
  *out = rn_strbuf_view(&own->line);
  return rn_strbuf_status(&own->line);
}

static const files_format_t line_format = {open_lines, read_line};

static bool lines_next(rn_data_iterator_t* iterator) { return files_step(iterator, &line_format); }
static rn_status_t lines_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return files_restore(iterator, reader, &line_format);
}

const rn_data_kind_t rn_data_kind_lines = {FILES, .open = files_open, .next = lines_next,
                                           .restore = lines_restore};

// Fixed-length records between a header and a footer.
static rn_status_t fixed_open(rn_dataset_t* dataset) {
  files_t* files = (files_t*)dataset;
  RN_RETURN_IF_ERROR(files_open(dataset));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "header_bytes", &files->header));
  if (files->header < 0) return rn_invalid_argument("`header_bytes` must be >= 0");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "record_bytes", &files->record));
  if (files->record <= 0) return rn_invalid_argument("`record_bytes` must be > 0");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "footer_bytes", &files->footer));
  if (files->footer < 0) return rn_invalid_argument("`footer_bytes` must be >= 0");
  int64_t sum = 0;
  if (!rn_add_i64_ok(files->record, files->footer, &sum) ||
      !rn_add_i64_ok(sum, files->header, &sum))
    return rn_invalid_argument("`record_bytes` is too large");
  return RN_OK;
}

static rn_status_t uneven(const files_t* files, const char* path, int64_t body) {
  return rn_invalid_argument(
      "Excluding the header (%lld bytes) and footer (%lld bytes), input file \"%s\" has body "
      "length "
      "%lld bytes, which is not an exact multiple of the record length (%lld bytes).",
      (long long)files->header, (long long)files->footer, path, (long long)body,
      (long long)files->record);
}

static rn_status_t open_fixed(files_iterator_t* own) {
  const files_t* files = (const files_t*)own->base.dataset;
  RN_RETURN_IF_ERROR(open_file(own, false));
  own->end = -1;
  if (files->compression == RN_COMPRESSION_NONE) {
    int64_t size = 0;
    RN_RETURN_IF_ERROR(rn_fs_size(files->base.host->env, rn_input_path(own->input), &size));
    int64_t body = size - files->header - files->footer;
    if (body < 0 || body % files->record != 0)
      return uneven(files, rn_input_path(own->input), body);
    own->end = size - files->footer;
  }
  uint64_t skipped = 0;
  RN_RETURN_IF_ERROR(rn_input_skip(own->input, (uint64_t)files->header, &skipped));
  return RN_OK;
}

static rn_status_t read_fixed(files_iterator_t* own, rn_str_t* out, bool* out_end) {
  const files_t* files = (const files_t*)own->base.dataset;
  size_t record = (size_t)files->record, footer = own->end < 0 ? (size_t)files->footer : 0;
  *out_end = own->end >= 0 && (int64_t)rn_input_position(own->input) >= own->end;
  if (*out_end) return RN_OK;
  rn_str_t seen;
  RN_RETURN_IF_ERROR(rn_input_peek(own->input, record + footer, &seen));
  if (seen.size < record + footer) {
    *out_end = own->end < 0 && seen.size == footer;
    if (*out_end) return RN_OK;
    int64_t position = (int64_t)rn_input_position(own->input);
    return uneven(files, rn_input_path(own->input),
                  position + (int64_t)seen.size - files->header - files->footer);
  }
  *out = rn_str_n(seen.data, record);
  rn_input_take(own->input, record);
  return RN_OK;
}

static const files_format_t fixed_format = {open_fixed, read_fixed};

static bool fixed_next(rn_data_iterator_t* iterator) { return files_step(iterator, &fixed_format); }
static rn_status_t fixed_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return files_restore(iterator, reader, &fixed_format);
}

const rn_data_kind_t rn_data_kind_fixed_records = {FILES, .open = fixed_open, .next = fixed_next,
                                                   .restore = fixed_restore};

void rn_data_files_into_batches(rn_data_iterator_t* iterator) {
  const rn_data_kind_t* kind = iterator->dataset->kind;
  if (kind == &rn_data_kind_records || kind == &rn_data_kind_lines ||
      kind == &rn_data_kind_fixed_records)
    ((files_iterator_t*)iterator)->is_batched = true;
}

// LMDB, which stock has removed as well.
static rn_status_t lmdb_open(rn_dataset_t* dataset) {
  (void)dataset;
  return rn_unimplemented(
      "LMDB support is removed from TensorFlow. This API will be deleted in the next TensorFlow "
      "release. If you need LMDB support, please file a GitHub issue.");
}

const rn_data_kind_t rn_data_kind_lmdb = {FILES, .open = lmdb_open, .next = lines_next};
