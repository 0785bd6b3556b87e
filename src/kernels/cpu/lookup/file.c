// Tables initialized from a text file: one entry per line. Keys and values are a column, the whole
// line, or the line number.
#include <errno.h>

#include "base/fs.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/lookup/table.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

#define MOST_BYTES ((size_t)1 << 36)  // of a file
static rn_status_t format_init(const rn_kernel_init_t* init, void* state) {
  rn_lookup_file_t* format = state;
  rn_str_t delimiter = rn_init_string(init, "delimiter");
  *format = (rn_lookup_file_t){.key = rn_init_int(init, "key_index"),
                               .value = rn_init_int(init, "value_index"),
                               .lines = rn_init_int(init, "vocab_size"),
                               .offset = rn_init_int(init, "offset")};
  if (delimiter.size != 1) return rn_invalid_argument("delimiter should be only 1 char");
  format->delimiter = delimiter.data[0];
  return RN_OK;
}

// The read position.
typedef struct file_reader_t {
  const rn_lookup_file_t* format;
  const char* path;
  rn_str_t rest, line;
  int64_t number;
} file_reader_t;

static bool next_line(file_reader_t* r) {
  if (r->rest.size == 0) return false;
  const char* end = memchr(r->rest.data, '\n', r->rest.size);
  size_t size = end ? (size_t)(end - r->rest.data) : r->rest.size, step = size + (end != NULL);
  r->line = rn_str_n(r->rest.data, size);
  r->rest = rn_str_n(r->rest.data + step, r->rest.size - step);
  return true;
}

// Column |index| of the line.
static rn_status_t column(const file_reader_t* r, int64_t index, rn_str_t* out) {
  const rn_lookup_file_t* format = r->format;
  int64_t wanted = format->key > format->value ? format->key : format->value, seen = 0;
  size_t begin = 0;
  bool is_found = false;
  for (size_t i = 0; i <= r->line.size; ++i) {
    if (i < r->line.size && r->line.data[i] != format->delimiter) continue;
    if (seen++ == index) {
      *out = rn_str_n(r->line.data + begin, i - begin);
      is_found = true;
    }
    begin = i + 1;
  }
  if (is_found && seen > wanted) return RN_OK;
  return rn_invalid_argument(
      "Invalid number of columns in %s line %lld (%.*s) : expected at least %lld got %lld", r->path,
      (long long)r->number, RN_STR_ARGS(r->line), (long long)wanted + 1, (long long)seen);
}

static rn_status_t set_text(rn_tensor_t* tensor, rn_str_t text) {
  return rn_tstring_assign(RN_DATA(tensor, rn_tstring_t), text.data, text.size)
             ? RN_OK
             : rn_out_of_memory();
}

// Parses |text| into the one number of |tensor|.
static rn_status_t set_number(const file_reader_t* r, rn_tensor_t* tensor, rn_str_t text) {
  char number[64] = {0}, *end = NULL;
  bool fits = text.size > 0 && text.size < sizeof number;
  if (fits) memcpy(number, text.data, text.size);
  errno = 0;
  if (rn_dtype_is_floating(tensor->dtype)) {
    double value = strtod(number, &end);
    fits = fits && *end == 0;
    if (tensor->dtype == RN_FLOAT)
      *RN_DATA(tensor, float) = (float)value;
    else
      *RN_DATA(tensor, double) = value;
  } else {
    long long value = strtoll(number, &end, 10);
    fits = fits && *end == 0 && errno == 0;
    if (tensor->dtype == RN_INT32) fits = fits && value >= INT32_MIN && value <= INT32_MAX;
    if (tensor->dtype == RN_INT32 || tensor->dtype == RN_INT64)
      rn_int_set(tensor, 0, value);
    else
      return rn_invalid_argument("Data type %s not supported.", rn_dtype_name(tensor->dtype));
  }
  if (fits) return RN_OK;
  return rn_invalid_argument("Field %.*s in line %lld is not a valid %s.", RN_STR_ARGS(text),
                             (long long)r->number, rn_dtype_name(tensor->dtype));
}

static rn_status_t set_field(const file_reader_t* r, int64_t index, rn_tensor_t* tensor) {
  if (index == RN_LOOKUP_LINE_NUMBER) {
    *RN_DATA(tensor, int64_t) = r->number + r->format->offset;
    return RN_OK;
  }
  rn_str_t text = r->line;
  if (index != RN_LOOKUP_WHOLE_LINE) RN_RETURN_IF_ERROR(column(r, index, &text));
  return tensor->dtype == RN_STRING ? set_text(tensor, text) : set_number(r, tensor, text);
}

static rn_status_t check_types(const rn_lookup_file_t* format, const rn_lookup_table_t* table) {
  rn_dtype_t key = rn_lookup_table_key(table), value = rn_lookup_table_value(table);
  if (format->key == RN_LOOKUP_LINE_NUMBER && key != RN_INT64)
    return rn_invalid_argument(
        "Key index for line number requires table key dtype of int64, got %s", rn_dtype_name(key));
  if (format->value == RN_LOOKUP_LINE_NUMBER && value != RN_INT64)
    return rn_invalid_argument(
        "Value index for line number requires table value dtype of int64, got %s",
        rn_dtype_name(value));
  return RN_OK;
}

static int64_t count_lines(rn_str_t text, int64_t most) {
  int64_t count = 0;
  file_reader_t r = {.rest = text};
  while ((most < 0 || count < most) && next_line(&r)) ++count;
  return count;
}

// Entry |i| of a vector as a scalar that borrows its memory.
static rn_tensor_t place(const rn_tensor_t* vector, int64_t i) {
  return (rn_tensor_t){.data = RN_DATA(vector, char) + (size_t)i * rn_dtype_size(vector->dtype),
                       .count = 1,
                       .dtype = vector->dtype};
}

static rn_status_t read_entries(file_reader_t* r, rn_tensor_t* keys, rn_tensor_t* values) {
  for (int64_t i = 0; i < keys->count && next_line(r); ++i) {
    r->number = i;
    rn_tensor_t key = place(keys, i), value = place(values, i);
    RN_RETURN_IF_ERROR(set_field(r, r->format->key, &key));
    RN_RETURN_IF_ERROR(set_field(r, r->format->value, &value));
  }
  return RN_OK;
}

static rn_status_t fill_from(rn_kernel_ctx_t* ctx, rn_lookup_table_t* table,
                             const rn_lookup_file_t* format, const char* path, rn_str_t text) {
  int64_t count = count_lines(text, format->lines);
  if (format->lines >= 0 && count < format->lines)
    return rn_invalid_argument("Invalid vocab_size in %s: expected %lld but got %lld", path,
                               (long long)format->lines, (long long)count);
  rn_tensor_t keys = {0}, values = {0};
  file_reader_t reader = {.format = format, .path = path, .rest = text};
  rn_status_t status = rn_temp(ctx, rn_lookup_table_key(table), (rn_shape_t){1, &count}, &keys);
  if (rn_ok(status))
    status = rn_temp(ctx, rn_lookup_table_value(table), (rn_shape_t){1, &count}, &values);
  if (rn_ok(status)) status = read_entries(&reader, &keys, &values);
  if (rn_ok(status)) status = rn_lookup_table_import(table, &keys, &values);
  rn_tensor_clear(&keys);
  rn_tensor_clear(&values);
  return status;
}

rn_status_t rn_lookup_table_fill(rn_kernel_ctx_t* ctx, rn_lookup_table_t* table,
                                 const rn_lookup_file_t* format, rn_str_t name) {
  rn_allocator_t allocator = ctx->kernel->allocator;
  RN_RETURN_IF_ERROR(check_types(format, table));
  char* path = NULL;
  rn_strbuf_t text;
  rn_strbuf_init(&text, allocator);
  rn_status_t status = rn_str_dup(allocator, name, &path);
  if (rn_ok(status)) status = rn_fs_read(ctx->step->env, path, MOST_BYTES, &text);
  if (rn_ok(status) && text.size == 0)  // as stock, which asks for a first byte
    status = rn_out_of_range("Read less bytes than requested");
  if (rn_ok(status)) status = fill_from(ctx, table, format, path, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  if (path) rn_free(allocator, path, name.size + 1);
  return status;
}

static rn_status_t fill_table(rn_kernel_ctx_t* ctx, rn_lookup_table_t* table) {
  const rn_tensor_t* name = rn_in(ctx, 1);
  if (name->count != 1 || name->rank != 0)
    return rn_invalid_argument("filename should be a single string, but got %s",
                               rn_text_of(name).text);
  if (!rn_lookup_table_is_fixed(table))
    return rn_invalid_argument("The table of node '%.*s' is not initializable",
                               RN_STR_ARGS(ctx->kernel->node));
  return rn_lookup_table_fill(ctx, table, ctx->state,
                              rn_tstring_view(RN_DATA(name, const rn_tstring_t)));
}

static rn_status_t fill(rn_kernel_ctx_t* ctx) {
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, RN_LOOKUP_TABLE_TYPE, &resource));
  rn_status_t status = fill_table(ctx, (rn_lookup_table_t*)resource);
  rn_object_release(&resource->object);
  return status;
}

#define FILL(name)                                                               \
  {                                                                              \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,                   \
    .state_size = sizeof(rn_lookup_file_t), .init = format_init, .compute = fill \
  }

static const rn_kernel_def_t rows[] = {
    FILL("InitializeTableFromTextFile"),
    FILL("InitializeTableFromTextFileV2"),
};
RN_KERNEL_FAMILY(cpu_lookup_file, rows);
