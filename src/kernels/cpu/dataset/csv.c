// Records of CSV files (RFC 4180): one component per selected column.
#include "io/input.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/parsing/number.h"
#include "tensor/tstring.h"

typedef struct csv_t {
  rn_dataset_t base;
  const rn_tensor_t* names;
  rn_compression_t compression;
  size_t buffer_size;
  bool has_header, has_quotes, excludes;
  char delimiter;
  rn_str_t missing;            // the string that means "no value"
  const rn_tensor_t* columns;  // selected or excluded columns, ascending; NULL if all
  const rn_tensor_t* defaults;
} csv_t;

typedef struct csv_iterator_t {
  rn_data_iterator_t base;
  int64_t file;
  rn_input_t* input;  // NULL if none is open
  rn_strbuf_t record, field;
  rn_number_reader_t numbers;
} csv_iterator_t;

static rn_status_t open_columns(csv_t* csv) {
  const rn_tensor_t* wanted = rn_data_input(&csv->base, "select_cols", NULL);
  const rn_tensor_t* unwanted = rn_data_input(&csv->base, "exclude_cols", NULL);  // not in V1
  if (wanted->rank != 1) return rn_invalid_argument("`select_cols` must be a vector.");
  if (unwanted && unwanted->rank != 1)
    return rn_invalid_argument("`exclude_cols` must be a vector");
  int64_t unwanted_count = unwanted ? unwanted->count : 0;
  if (wanted->count && unwanted_count)
    return rn_invalid_argument("Either select_cols or exclude_cols should be empty");
  if (wanted->count && wanted->count != csv->base.component_count)
    return rn_invalid_argument("select_cols should match output size");
  csv->excludes = unwanted_count > 0;
  csv->columns = wanted->count ? wanted : unwanted_count ? unwanted : NULL;
  const char* name = csv->excludes ? "exclude_cols" : "select_cols";
  for (int64_t i = 0; csv->columns && i < csv->columns->count; ++i) {
    if (rn_int_at(csv->columns, i) < 0)
      return rn_invalid_argument("%s should be non-negative indices", name);
    if (i && rn_int_at(csv->columns, i) <= rn_int_at(csv->columns, i - 1))
      return rn_invalid_argument("%s should be strictly increasing indices", name);
  }
  return RN_OK;
}

static rn_status_t open_numbers(csv_t* csv) {
  int64_t size = 0, header = 0, quotes = 0;
  RN_RETURN_IF_ERROR(rn_data_scalar(&csv->base, "buffer_size", &size));
  if (size <= 0) return rn_invalid_argument("buffer_size should be positive");
  csv->buffer_size = size > ((int64_t)64 << 20) ? (size_t)64 << 20 : (size_t)size;
  RN_RETURN_IF_ERROR(rn_data_scalar(&csv->base, "header", &header));
  RN_RETURN_IF_ERROR(rn_data_scalar(&csv->base, "use_quote_delim", &quotes));
  csv->has_header = header != 0;
  csv->has_quotes = quotes != 0;
  return RN_OK;
}

static rn_status_t csv_open(rn_dataset_t* dataset) {
  csv_t* csv = (csv_t*)dataset;
  rn_str_t compression, delimiter;
  int32_t count = 0;
  csv->names = rn_data_input(dataset, "filenames", NULL);
  if (csv->names->rank > 1) return rn_invalid_argument("`filenames` must be a scalar or a vector.");
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "compression_type", &compression));
  if (!rn_compression_from_name(compression, &csv->compression))
    return rn_invalid_argument("Unsupported compression_type: %.*s.", RN_STR_ARGS(compression));
  RN_RETURN_IF_ERROR(open_numbers(csv));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "field_delim", &delimiter));
  if (delimiter.size != 1) return rn_invalid_argument("field_delim should be only 1 char");
  csv->delimiter = delimiter.data[0];
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "na_value", &csv->missing));
  csv->defaults = rn_data_input(dataset, "record_defaults", &count);
  if (count != dataset->component_count)
    return rn_invalid_argument("There are %d defaults for %d fields", count,
                               dataset->component_count);
  for (int32_t i = 0; i < count; ++i)
    if (csv->defaults[i].rank > 1 || csv->defaults[i].count > 1)
      return rn_invalid_argument("There should only be 1 default per field but field %d has %lld",
                                 i, (long long)csv->defaults[i].count);
  return open_columns(csv);
}

static rn_status_t csv_start(rn_data_iterator_t* iterator) {
  csv_iterator_t* own = (csv_iterator_t*)iterator;
  rn_allocator_t allocator = iterator->dataset->node->allocator;
  rn_strbuf_init(&own->record, allocator);
  rn_strbuf_init(&own->field, allocator);
  return rn_number_reader_init(&own->numbers, allocator);
}

static void csv_stop(rn_data_iterator_t* iterator) {
  csv_iterator_t* own = (csv_iterator_t*)iterator;
  rn_input_close(own->input);
  if (!own->record.allocator.fn) return;
  rn_strbuf_clear(&own->record);
  rn_strbuf_clear(&own->field);
  rn_number_reader_clear(&own->numbers);
}

// Whether |record| ends inside a quoted field. A quote inside an unquoted field does not open one.
static bool has_open_quote(rn_str_t record, char delimiter) {
  for (size_t i = 0; i < record.size; ++i) {
    if (record.data[i] == '"') {
      for (++i;; ++i) {
        const char* quote = memchr(record.data + i, '"', record.size - i);
        if (!quote) return true;
        i = (size_t)(quote - record.data) + 1;
        if (i >= record.size || record.data[i] != '"') break;
      }
    }
    while (i < record.size && record.data[i] != delimiter) ++i;
  }
  return false;
}

// Reads the next record, which spans several lines if a quote is open at the end of one. Sets
// |*out_end| at the end of the file.
static rn_status_t read_record(csv_iterator_t* own, bool* out_end) {
  const csv_t* csv = (const csv_t*)own->base.dataset;
  rn_str_t line;
  own->record.size = 0;
  RN_RETURN_IF_ERROR(rn_input_line(own->input, true, &line, out_end));
  if (*out_end) return RN_OK;
  rn_strbuf_append(&own->record, line);
  while (csv->has_quotes && has_open_quote(rn_strbuf_view(&own->record), csv->delimiter)) {
    bool is_end = false;
    RN_RETURN_IF_ERROR(rn_input_line(own->input, false, &line, &is_end));
    if (is_end)
      return rn_invalid_argument("Reached end of file without closing quoted field in record");
    rn_strbuf_append(&own->record, RN_STR("\n"));
    rn_strbuf_append(&own->record, line);
    // The line that closes the quote may end in a carriage return.
    if (own->record.size && own->record.data[own->record.size - 1] == '\r' &&
        !has_open_quote(rn_strbuf_view(&own->record), csv->delimiter))
      own->record.size--;
    RN_RETURN_IF_ERROR(rn_strbuf_status(&own->record));
  }
  return rn_strbuf_status(&own->record);
}

static rn_status_t open_file(csv_iterator_t* own) {
  const csv_t* csv = (const csv_t*)own->base.dataset;
  rn_str_t name = rn_tstring_view(&RN_DATA(csv->names, const rn_tstring_t)[own->file]);
  char* path = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(csv->base.node->allocator, name, &path));
  rn_status_t status =
      rn_input_open(csv->base.host->env, path, csv->compression, csv->buffer_size, &own->input);
  rn_free(csv->base.node->allocator, path, name.size + 1);
  return status;
}

static rn_status_t quoted_field(csv_iterator_t* own, size_t* inout_at, rn_str_t* out) {
  const csv_t* csv = (const csv_t*)own->base.dataset;
  rn_str_t record = rn_strbuf_view(&own->record);
  own->field.size = 0;
  for (size_t i = *inout_at + 1; i < record.size; ++i) {
    if (record.data[i] != '"') {
      rn_strbuf_append_n(&own->field, record.data + i, 1);
    } else if (i + 1 < record.size && record.data[i + 1] == '"') {
      rn_strbuf_append_n(&own->field, record.data + i++, 1);
    } else if (i + 1 == record.size || record.data[i + 1] == csv->delimiter) {
      *inout_at = i + 1;
      *out = rn_strbuf_view(&own->field);
      return rn_strbuf_status(&own->field);
    } else {
      return rn_invalid_argument("Quote inside a string has to be escaped by another quote");
    }
  }
  return rn_invalid_argument("Reached end of file without closing quoted field in record");
}

static rn_status_t plain_field(csv_iterator_t* own, size_t* inout_at, rn_str_t* out) {
  const csv_t* csv = (const csv_t*)own->base.dataset;
  rn_str_t record = rn_strbuf_view(&own->record);
  size_t start = *inout_at, i = start;
  for (; i < record.size && record.data[i] != csv->delimiter; ++i)
    if (csv->has_quotes && record.data[i] == '"')
      return rn_invalid_argument("Unquoted fields cannot have quotes inside");
  *inout_at = i;
  *out = rn_str_n(record.data + start, i - start);
  return RN_OK;
}

static rn_status_t put_field(csv_iterator_t* own, rn_str_t text, int32_t field) {
  const csv_t* csv = (const csv_t*)own->base.dataset;
  rn_tensor_t* out = &own->base.asked->out[field];
  const rn_tensor_t* value = &csv->defaults[field];
  bool is_missing = text.size == 0 || rn_str_eq(text, csv->missing);
  if (is_missing && value->count == 0)
    return rn_invalid_argument("Field %d is required but missing in record!", field);
  RN_RETURN_IF_ERROR(
      rn_tensor_create(csv->base.node->memory, csv->base.types[field], RN_SHAPE_SCALAR, out));
  if (out->dtype == RN_STRING) {
    if (is_missing) text = rn_tstring_view(RN_DATA(value, const rn_tstring_t));
    return rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size) ? RN_OK
                                                                               : rn_out_of_memory();
  }
  if (is_missing) {
    memcpy(out->data, value->data, rn_dtype_size(out->dtype));
    return RN_OK;
  }
  bool is_number = false;
  RN_RETURN_IF_ERROR(rn_number_read(&own->numbers, text, out, 0, &is_number));
  if (is_number) return RN_OK;
  return rn_invalid_argument("Field %d in record is not a valid %s: %.*s", field,
                             rn_dtype_name(out->dtype), RN_STR_ARGS(text));
}

// Whether |column| is selected; |*inout_next| is the index of the next listed column.
static bool is_wanted(const csv_t* csv, int64_t column, int64_t* inout_next) {
  if (!csv->columns) return true;
  bool is_listed =
      *inout_next < csv->columns->count && rn_int_at(csv->columns, *inout_next) == column;
  *inout_next += is_listed;
  return is_listed != csv->excludes;
}

static rn_status_t decode(csv_iterator_t* own) {
  const csv_t* csv = (const csv_t*)own->base.dataset;
  int32_t found = 0, fields = csv->base.component_count;
  int64_t next = 0;
  size_t at = 0;
  for (int64_t column = 0;; ++column, ++at) {
    rn_str_t text = RN_STR("");
    bool is_quoted = csv->has_quotes && at < own->record.size && own->record.data[at] == '"';
    RN_RETURN_IF_ERROR(is_quoted ? quoted_field(own, &at, &text) : plain_field(own, &at, &text));
    if (is_wanted(csv, column, &next)) {
      if (found == fields)
        return rn_invalid_argument("Expect %d fields but have more in record", fields);
      RN_RETURN_IF_ERROR(put_field(own, text, found++));
    }
    if (at >= own->record.size) break;
  }
  if (found == fields) return RN_OK;
  return rn_invalid_argument("Expect %d fields but have %d in record", fields, found);
}

static bool csv_next(rn_data_iterator_t* iterator) {
  csv_iterator_t* own = (csv_iterator_t*)iterator;
  const csv_t* csv = (const csv_t*)iterator->dataset;
  while (own->file < csv->names->count) {
    rn_status_t status = RN_OK;
    bool is_end = false;
    if (!own->input) {
      status = open_file(own);
      if (rn_ok(status) && csv->has_header) status = read_record(own, &is_end);
    }
    if (rn_ok(status) && !is_end) status = read_record(own, &is_end);
    if (rn_ok(status) && !is_end) {
      status = decode(own);
      if (!rn_ok(status)) rn_data_row_clear(iterator->asked->out, csv->base.component_count);
      return rn_data_finish(iterator, status);
    }
    rn_input_close(own->input);
    own->input = NULL;
    own->file++;
    if (!rn_ok(status)) return rn_data_finish(iterator, status);
  }
  return rn_data_end(iterator);
}

static rn_status_t csv_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  csv_iterator_t* own = (csv_iterator_t*)iterator;
  rn_data_put_int(writer, own->file);
  rn_data_put_int(writer, own->input ? (int64_t)rn_input_position(own->input) : -1);
  return RN_OK;
}

static rn_status_t csv_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  csv_iterator_t* own = (csv_iterator_t*)iterator;
  int64_t position = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->file));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &position));
  int64_t count = ((const csv_t*)iterator->dataset)->names->count;
  if (own->file < 0 || own->file > count) return rn_data_bad_state();
  if (position < 0 || own->file == count) return RN_OK;
  RN_RETURN_IF_ERROR(open_file(own));
  return rn_input_seek(own->input, (uint64_t)position);
}

const rn_data_kind_t rn_data_kind_csv = {.dataset_size = sizeof(csv_t),
                                         .iterator_size = sizeof(csv_iterator_t),
                                         .open = csv_open,
                                         .start = csv_start,
                                         .stop = csv_stop,
                                         .next = csv_next,
                                         .save = csv_save,
                                         .restore = csv_restore};
