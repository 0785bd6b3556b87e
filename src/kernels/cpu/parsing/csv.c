// DecodeCSV: parses CSV records (RFC 4180), one tensor per column.
#include <stdatomic.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/parsing/number.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct csv_state_t {
  rn_allocator_t allocator;
  rn_strbuf_t missing;  // the string that means "no value"
  int64_t* columns;     // Owned; the selected ones, ascending; NULL for all
  int32_t column_count;
  bool has_quotes;
  char delimiter;
} csv_state_t;

static void destroy(void* self) {
  csv_state_t* state = self;
  if (!state->allocator.fn) return;
  rn_strbuf_clear(&state->missing);
  RN_FREE_ARRAY(state->allocator, state->columns, state->column_count);
}

static rn_status_t init_columns(const rn_kernel_init_t* init, csv_state_t* state) {
  const rn_attr_value_t* columns = rn_init_attr(init, "select_cols");
  if (columns->count == 0) return RN_OK;
  if (columns->count != init->output_count)
    return rn_invalid_argument("select_cols should match output size");
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(state->allocator, (size_t)columns->count, &state->columns));
  state->column_count = columns->count;
  for (int32_t i = 0; i < columns->count; ++i) {
    state->columns[i] = columns->list_i[i];
    if (state->columns[i] < 0)
      return rn_invalid_argument("select_cols should be non-negative indices");
    if (i > 0 && state->columns[i] <= state->columns[i - 1])
      return rn_invalid_argument("select_cols should be strictly increasing indices");
  }
  return RN_OK;
}

static rn_status_t init(const rn_kernel_init_t* init, void* self) {
  csv_state_t* state = self;
  rn_str_t delimiter = rn_init_string(init, "field_delim");
  state->allocator = init->allocator;
  rn_strbuf_init(&state->missing, init->allocator);
  rn_strbuf_append(&state->missing, rn_init_string(init, "na_value"));
  RN_RETURN_IF_ERROR(rn_strbuf_status(&state->missing));
  if (delimiter.size != 1) return rn_invalid_argument("field_delim should be only 1 char");
  state->delimiter = delimiter.data[0];
  state->has_quotes = rn_init_bool(init, "use_quote_delim");
  return init_columns(init, state);
}

// One thread's position in its records.
typedef struct csv_cursor_t {
  const csv_state_t* state;
  rn_strbuf_t field;  // a quoted field with its quotes removed
  rn_number_reader_t numbers;
} csv_cursor_t;

static rn_status_t plain_field(const csv_cursor_t* cursor, rn_str_t record, size_t* inout_at,
                               rn_str_t* out) {
  size_t start = *inout_at, i = start;
  for (; i < record.size && record.data[i] != cursor->state->delimiter; ++i) {
    char c = record.data[i];
    if (c == '\n' || c == '\r' || (c == '"' && cursor->state->has_quotes))
      return rn_invalid_argument("Unquoted fields cannot have quotes/CRLFs inside");
  }
  *out = rn_str_n(record.data + start, i - start);
  *inout_at = i + 1;
  return RN_OK;
}

// Reads the field after an opening quote.
static rn_status_t quoted_field(csv_cursor_t* cursor, rn_str_t record, size_t* inout_at,
                                rn_str_t* out) {
  size_t i = *inout_at, start = i;
  char delimiter = cursor->state->delimiter;
  cursor->field.size = 0;
  while (i + 1 < record.size && (record.data[i] != '"' || record.data[i + 1] != delimiter)) {
    if (record.data[i] != '"') {
      ++i;
      continue;
    }
    if (record.data[i + 1] != '"')
      return rn_invalid_argument("Quote inside a string has to be escaped by another quote");
    rn_strbuf_append_n(&cursor->field, record.data + start, i + 1 - start);
    start = i += 2;
  }
  if (i >= record.size || record.data[i] != '"')
    return rn_invalid_argument("Quoted field has to end with quote followed by delim or end");
  *inout_at = i + 2;
  *out = rn_str_n(record.data + start, i - start);
  if (cursor->field.size == 0 && !cursor->field.failed) return RN_OK;
  rn_strbuf_append_n(&cursor->field, record.data + start, i - start);
  *out = rn_strbuf_view(&cursor->field);
  return rn_strbuf_status(&cursor->field);
}

static rn_status_t put_default(const rn_tensor_t* value, rn_tensor_t* out, int64_t row, int field) {
  if (value->count != 1)
    return rn_invalid_argument("Field %d is required but missing in record %lld!", field,
                               (long long)row);
  if (out->dtype == RN_STRING) {
    rn_str_t text = rn_tstring_view(RN_DATA(value, const rn_tstring_t));
    return rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[row], text.data, text.size)
               ? RN_OK
               : rn_out_of_memory();
  }
  size_t size = rn_dtype_size(out->dtype);
  memcpy((char*)out->data + (size_t)row * size, value->data, size);
  return RN_OK;
}

static rn_status_t put_field(csv_cursor_t* cursor, rn_str_t text, const rn_tensor_t* value,
                             rn_tensor_t* out, int64_t row, int field) {
  if (text.size == 0 || rn_str_eq(text, rn_strbuf_view(&cursor->state->missing)))
    return put_default(value, out, row, field);
  if (out->dtype == RN_STRING)
    return rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[row], text.data, text.size)
               ? RN_OK
               : rn_out_of_memory();
  bool ok = false;
  RN_RETURN_IF_ERROR(rn_number_read(&cursor->numbers, text, out, row, &ok));
  if (ok) return RN_OK;
  return rn_invalid_argument("Field %d in record %lld is not a valid %s: %.*s", field,
                             (long long)row, rn_dtype_name(out->dtype), RN_STR_ARGS(text));
}

typedef struct csv_job_t {
  rn_kernel_ctx_t* ctx;
  const csv_state_t* state;
  int fields;
  _Atomic int64_t first_failed;
} csv_job_t;

static rn_status_t decode_row(const csv_job_t* job, csv_cursor_t* cursor, int64_t row) {
  const csv_state_t* state = job->state;
  rn_str_t record = rn_tstring_view(&RN_DATA(rn_in(job->ctx, 0), const rn_tstring_t)[row]);
  int64_t column = 0;
  int found = 0;
  rn_status_t failed = RN_OK;  // a wrong number of fields takes precedence over bad fields
  bool ends_open = record.size > 0 && record.data[record.size - 1] == state->delimiter;
  for (size_t at = 0; at < record.size || ends_open;) {
    rn_str_t text = RN_STR("");
    if (at >= record.size) {
      ends_open = false;
    } else if (record.data[at] == '\n' || record.data[at] == '\r') {
      ++at;
      continue;
    } else if (state->has_quotes && record.data[at] == '"') {
      ++at;
      RN_RETURN_IF_ERROR(rn_status_join(failed, quoted_field(cursor, record, &at, &text)));
    } else {
      RN_RETURN_IF_ERROR(rn_status_join(failed, plain_field(cursor, record, &at, &text)));
    }
    bool is_wanted = !state->columns || (found < job->fields && state->columns[found] == column);
    ++column;
    if (!is_wanted) continue;
    if (found < job->fields && rn_ok(failed))
      failed =
          put_field(cursor, text, rn_in(job->ctx, 1 + found), &job->ctx->out[found], row, found);
    ++found;
  }
  if (found == job->fields) return failed;
  rn_status_free(failed);
  return rn_invalid_argument("Expect %d fields but have %d in record %lld", job->fields, found,
                             (long long)row);
}

static rn_status_t cursor_init(csv_cursor_t* cursor, const csv_job_t* job) {
  rn_allocator_t allocator = job->ctx->kernel->allocator;
  cursor->state = job->state;
  rn_strbuf_init(&cursor->field, allocator);
  return rn_number_reader_init(&cursor->numbers, allocator);
}

static void cursor_clear(csv_cursor_t* cursor) {
  rn_strbuf_clear(&cursor->field);
  rn_number_reader_clear(&cursor->numbers);
}

// Decodes rows up to the first failure; stores its row number in the job.
static void decode_rows(void* arg, int64_t begin, int64_t end) {
  csv_job_t* job = arg;
  csv_cursor_t cursor;
  rn_status_t status = cursor_init(&cursor, job);
  int64_t row = begin;
  while (rn_ok(status) && row < end) {
    status = decode_row(job, &cursor, row);
    row += rn_ok(status);
  }
  cursor_clear(&cursor);
  if (rn_ok(status)) return;
  rn_status_free(status);
  int64_t first = atomic_load(&job->first_failed);
  while (row < first && !atomic_compare_exchange_weak(&job->first_failed, &first, row)) {
  }
}

static rn_status_t check_defaults(rn_kernel_ctx_t* ctx, int fields) {
  for (int i = 0; i < fields; ++i) {
    const rn_tensor_t* value = rn_in(ctx, 1 + i);
    if (value->rank > 1 || value->count > 1)
      return rn_invalid_argument("There should only be 1 default per field but field %d has %lld",
                                 i, (long long)value->count);
  }
  return RN_OK;
}

static rn_status_t decode_csv(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* records = rn_in(ctx, 0);
  int fields = ctx->kernel->output_count;
  csv_job_t job = {
      .ctx = ctx, .state = ctx->state, .fields = fields, .first_failed = records->count};
  RN_RETURN_IF_ERROR(check_defaults(ctx, fields));
  for (int i = 0; i < fields; ++i) {
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, rn_tensor_shape(records), &out));
  }
  // A field takes about 50 ns.
  int64_t grain = 1 + 1000 / (fields + 1);
  rn_pool_for(rn_ctx_pool(ctx), records->count, grain, decode_rows, &job);
  if (job.first_failed == records->count) return RN_OK;
  csv_cursor_t cursor;
  rn_status_t status = cursor_init(&cursor, &job);
  if (rn_ok(status)) status = decode_row(&job, &cursor, job.first_failed);
  cursor_clear(&cursor);
  // It failed for lack of memory, which is available again now.
  return rn_ok(status) ? rn_out_of_memory() : status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "DecodeCSV",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(csv_state_t),
     .init = init,
     .destroy = destroy,
     .compute = decode_csv},
};
RN_KERNEL_FAMILY(cpu_csv, rows);
