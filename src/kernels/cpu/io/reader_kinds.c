// The kinds of readers. See reader.h.
#include "kernels/cpu/io/reader.h"

static rn_str_t item(const rn_reader_t* reader) { return rn_strbuf_view(&reader->work); }

static void numbered_key(const rn_reader_t* reader, uint64_t number, rn_strbuf_t* key) {
  rn_strbuf_append(key, item(reader));
  rn_strbuf_printf(key, ":%llu", (unsigned long long)number);
}

// The item as a path. INVALID_ARGUMENT if it contains a NUL.
static rn_status_t path_of(const rn_reader_t* reader, const char** out) {
  *out = reader->work.size ? reader->work.data : "";
  if (strlen(*out) != reader->work.size)
    return rn_invalid_argument("A file name must not contain a NUL: %s", *out);
  return RN_OK;
}

static rn_status_t open_input(rn_reader_t* reader, rn_compression_t compression) {
  const char* path;
  RN_RETURN_IF_ERROR(path_of(reader, &path));
  return rn_input_open(&reader->env, path, compression, 0, &reader->input);
}

// IdentityReader: the item itself is the record.

static rn_status_t nothing_to_open(rn_reader_t* reader) {
  (void)reader;
  return RN_OK;
}

static rn_status_t identity_next(rn_reader_t* reader, rn_strbuf_t* key, rn_str_t* out_value,
                                 bool* out_end) {
  *out_end = reader->is_used;
  reader->is_used = true;
  *out_value = item(reader);
  if (!*out_end) rn_strbuf_append(key, *out_value);
  return RN_OK;
}
const rn_reader_kind_t rn_reader_identity = {"IdentityReader", true, nothing_to_open,
                                             identity_next};

// WholeFileReader: the file is one record. After a read error it is tried again, as in stock.

static rn_status_t whole_file_next(rn_reader_t* reader, rn_strbuf_t* key, rn_str_t* out_value,
                                   bool* out_end) {
  *out_end = reader->is_used;
  if (*out_end) return RN_OK;
  rn_str_t view;
  if (!reader->input) RN_RETURN_IF_ERROR(open_input(reader, RN_COMPRESSION_NONE));
  // Read until asking for more yields nothing new.
  for (size_t size = 0; rn_input_may_hold(reader->input, size + 1); size = view.size) {
    RN_RETURN_IF_ERROR(rn_input_peek(reader->input, size + 1, &view));
    if (view.size == size) break;
  }
  RN_RETURN_IF_ERROR(rn_input_peek(reader->input, 0, &view));
  reader->is_used = true;
  rn_strbuf_append(key, item(reader));
  *out_value = view;
  return RN_OK;
}
const rn_reader_kind_t rn_reader_whole_file = {"WholeFileReader", true, nothing_to_open,
                                               whole_file_next};

// TextLineReader: lines, counted from 1.

static rn_status_t text_line_open(rn_reader_t* reader) {
  rn_str_t line;
  bool is_end = false;
  RN_RETURN_IF_ERROR(open_input(reader, RN_COMPRESSION_NONE));
  for (; reader->number < reader->options.skipped_lines && !is_end; ++reader->number)
    RN_RETURN_IF_ERROR(rn_input_line(reader->input, true, &line, &is_end));
  return RN_OK;
}

static rn_status_t text_line_next(rn_reader_t* reader, rn_strbuf_t* key, rn_str_t* out_value,
                                  bool* out_end) {
  RN_RETURN_IF_ERROR(rn_input_line(reader->input, true, out_value, out_end));
  if (!*out_end) numbered_key(reader, (uint64_t)++reader->number, key);
  return RN_OK;
}
const rn_reader_kind_t rn_reader_text_line = {"TextLineReader", false, text_line_open,
                                              text_line_next};

// FixedLengthRecordReader: records between a header and a footer.

static rn_status_t fixed_length_open(rn_reader_t* reader) {
  uint64_t skipped = 0, header = (uint64_t)reader->options.header;
  RN_RETURN_IF_ERROR(open_input(reader, reader->options.compression));
  RN_RETURN_IF_ERROR(rn_input_skip(reader->input, header, &skipped));
  if (skipped < header) return rn_out_of_range("reached end of file");
  return RN_OK;
}

static rn_status_t fixed_length_next(rn_reader_t* reader, rn_strbuf_t* key, rn_str_t* out_value,
                                     bool* out_end) {
  const rn_reader_options_t* o = &reader->options;
  rn_str_t view;
  uint64_t skipped = 0;
  int64_t hop = o->hop ? o->hop : o->record, needed = 0;
  *out_end = true;
  if (reader->number > 0) RN_RETURN_IF_ERROR(rn_input_skip(reader->input, (uint64_t)hop, &skipped));
  if (skipped < (reader->number > 0 ? (uint64_t)hop : 0)) return RN_OK;
  if (!rn_add_i64_ok(o->record, o->footer, &needed)) return RN_OK;
  // What remains after the last record, including the footer, is not a record.
  RN_RETURN_IF_ERROR(rn_input_peek(reader->input, (size_t)needed, &view));
  if (view.size < (size_t)needed) return RN_OK;
  *out_end = false;
  *out_value = rn_str_n(view.data, (size_t)o->record);
  numbered_key(reader, (uint64_t)reader->number++, key);
  return RN_OK;
}
const rn_reader_kind_t rn_reader_fixed_length = {"FixedLengthRecordReader", false,
                                                 fixed_length_open, fixed_length_next};

// TFRecordReader: the key contains the record's offset in the file.

static rn_status_t tf_record_open(rn_reader_t* reader) {
  const char* path;
  RN_RETURN_IF_ERROR(path_of(reader, &path));
  return rn_record_reader_open(&reader->env, path, reader->options.compression, 0,
                               &reader->records);
}

static rn_status_t tf_record_next(rn_reader_t* reader, rn_strbuf_t* key, rn_str_t* out_value,
                                  bool* out_end) {
  uint64_t offset = rn_record_reader_offset(reader->records);
  RN_RETURN_IF_ERROR(rn_record_reader_next(reader->records, out_value, out_end));
  if (!*out_end) numbered_key(reader, offset, key);
  return RN_OK;
}
const rn_reader_kind_t rn_reader_tf_record = {"TFRecordReader", false, tf_record_open,
                                              tf_record_next};
