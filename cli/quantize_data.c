// The example data of `runnel quantize`: a TFRecord file of tf.Examples, or one .npy file per key.
//
// An example of a TFRecord file has one feature per input of the model, with the numbers of one
// example in row-major order: without the batch dimension. All examples are kept in memory.
#include <inttypes.h>
#include <math.h>

#include "cli/expr.h"
#include "cli/quantize.h"
#include "io/record.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/parsing/example.h"

enum { FEATURES = 1 };  // field of tf.Example

#define DEFAULT_EXAMPLES 256
#define DEFAULT_BATCH 8

// What is read: an input of the model, or the labels.
typedef struct cli_quant_column_t {
  rn_str_t key;
  const rn_cli_quant_port_t* port;  // NULL: labels
  rn_dtype_t dtype;
  int64_t each;  // numbers per example; -1 until the first one is seen
  rn_strbuf_t bytes;
  bool is_found;
  rn_tensor_t value;  // Owned; from a .npy file
} cli_quant_column_t;

typedef struct cli_quant_reader_t {
  rn_cli_quant_t* q;
  const char* file;
  cli_quant_column_t* columns;
  size_t count;
  int64_t examples;
} cli_quant_reader_t;

// "float [?,8,8,1]", in the arena.
static rn_status_t describe(rn_cli_quant_t* q, const rn_cli_quant_port_t* port, rn_str_t* out) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, q->cli->allocator);
  rn_strbuf_printf(&buf, "%s ", rn_dtype_name(port->dtype));
  rn_shape_print(&buf, port->shape);
  rn_status_t status = rn_arena_str(&q->arena, rn_strbuf_view(&buf), out);
  rn_strbuf_clear(&buf);
  return status;
}

// The numbers per example that the input's shape allows: -1 if any.
static int64_t declared_each(const rn_cli_quant_port_t* port) {
  int64_t count = -1;
  if (!port) return 1;
  if (port->shape.rank < 1) return port->shape.rank == 0 ? 1 : -1;
  rn_shape_t rest = {port->shape.rank - 1, port->shape.dims + 1};
  return rn_shape_count(rest, &count) ? count : -1;
}

static rn_status_t check_size(const cli_quant_reader_t* r, cli_quant_column_t* column,
                              int64_t count) {
  int64_t wanted = column->each >= 0 ? column->each : declared_each(column->port);
  rn_str_t text = RN_STR("");
  if (column->port) RN_RETURN_IF_ERROR(describe(r->q, column->port, &text));
  if (wanted >= 0 && count != wanted)
    return rn_invalid_argument(
        "'%s': example %" PRId64 ": the feature '%.*s' has %" PRId64 " numbers, not %" PRId64
        "%s%.*s%s",
        r->file, r->examples, RN_STR_ARGS(column->key), count, wanted,
        column->each >= 0 ? " as in the examples before it" : "; the input is ",
        column->each >= 0 ? 0 : (int)text.size, text.data,
        column->each >= 0 || !column->port ? "" : " and an example has no batch dimension");
  column->each = count;
  return RN_OK;
}

static double number_at(const rn_feature_t* feature, const void* values, int64_t i) {
  return feature->dtype == RN_FLOAT ? ((const float*)values)[i]
                                    : (double)((const int64_t*)values)[i];
}

// Appends number |i| of a feature as an element of |dtype|.
static rn_status_t put_number(const cli_quant_reader_t* r, cli_quant_column_t* column,
                              const rn_feature_t* feature, const void* values, int64_t i) {
  double number = number_at(feature, values, i);
  if (!isfinite(number))
    return rn_invalid_argument("'%s': example %" PRId64 ": the feature '%.*s' has %s at %" PRId64,
                               r->file, r->examples, RN_STR_ARGS(column->key),
                               isnan(number) ? "NaN" : "an infinity", i);
  union {
    float f;
    double d;
    int64_t i64;
    int32_t i32;
    uint8_t u8;
    bool b;
  } element;
  size_t size = rn_dtype_size(column->dtype);
  switch (column->dtype) {
    case RN_FLOAT:
      element.f = (float)number;
      break;
    case RN_DOUBLE:
      element.d = number;
      break;
    case RN_INT64:
      element.i64 = ((const int64_t*)values)[i];
      break;
    case RN_INT32:
      element.i32 = (int32_t)((const int64_t*)values)[i];
      break;
    case RN_BOOL:
      element.b = number != 0;
      break;
    default:
      element.u8 = (uint8_t)((const int64_t*)values)[i];
      break;
  }
  rn_strbuf_append_n(&column->bytes, &element, size);
  return RN_OK;
}

static rn_status_t put_feature(const cli_quant_reader_t* r, cli_quant_column_t* column,
                               rn_str_t bytes) {
  rn_feature_t feature = {0};
  void* values = NULL;
  if (!rn_feature_read(bytes, &feature) || !rn_feature_count(&feature))
    return rn_data_loss("'%s': example %" PRId64 ": the feature '%.*s' cannot be parsed", r->file,
                        r->examples, RN_STR_ARGS(column->key));
  bool takes_floats = column->dtype == RN_FLOAT || column->dtype == RN_DOUBLE;
  if (feature.dtype != RN_INT64 && !(feature.dtype == RN_FLOAT && takes_floats))
    return rn_invalid_argument("'%s': example %" PRId64
                               ": the feature '%.*s' is a %s, but %s "
                               "needs %s",
                               r->file, r->examples, RN_STR_ARGS(column->key),
                               rn_feature_kind(feature.dtype, false), rn_dtype_name(column->dtype),
                               takes_floats ? "a float_list or int64_list" : "an int64_list");
  RN_RETURN_IF_ERROR(check_size(r, column, feature.count));
  rn_arena_mark_t mark = rn_arena_mark(&r->q->arena);
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(&r->q->arena, (size_t)feature.count, 8, &values));
  rn_status_t status = rn_feature_values(&feature, values) ? RN_OK : rn_out_of_memory();
  for (int64_t i = 0; rn_ok(status) && i < feature.count; ++i)
    status = put_number(r, column, &feature, values, i);
  rn_arena_rewind(&r->q->arena, mark);
  column->is_found = true;
  return rn_ok(status) ? rn_strbuf_status(&column->bytes) : status;
}

static void append_keys(rn_strbuf_t* buf, rn_str_t record) {
  rn_str_t key, value;
  rn_entry_scan_t entries = rn_entry_scan(record, FEATURES);
  for (int n = 0; n < 20 && rn_entry_next(&entries, &key, &value); ++n)
    rn_strbuf_printf(buf, "%s'%.*s'", n ? ", " : "", RN_STR_ARGS(key));
}

static rn_status_t missing_key(const cli_quant_reader_t* r, rn_str_t key, rn_str_t record) {
  rn_strbuf_t keys;
  rn_strbuf_init(&keys, r->q->cli->allocator);
  append_keys(&keys, record);
  rn_status_t status = rn_invalid_argument(
      "'%s': example %" PRId64 " has no feature '%.*s'; it has %s", r->file, r->examples,
      RN_STR_ARGS(key), keys.size ? rn_strbuf_view(&keys).data : "none");
  rn_strbuf_clear(&keys);
  return status;
}

static rn_status_t put_example(cli_quant_reader_t* r, rn_str_t record) {
  rn_str_t key, value;
  for (size_t c = 0; c < r->count; ++c) r->columns[c].is_found = false;
  rn_entry_scan_t entries = rn_entry_scan(record, FEATURES);
  while (rn_entry_next(&entries, &key, &value))
    for (size_t c = 0; c < r->count; ++c)
      if (rn_str_eq(r->columns[c].key, key) && !r->columns[c].is_found)
        RN_RETURN_IF_ERROR(put_feature(r, &r->columns[c], value));
  if (entries.is_bad)
    return rn_data_loss("'%s': record %" PRId64 " is not a tf.Example", r->file, r->examples);
  for (size_t c = 0; c < r->count; ++c)
    if (!r->columns[c].is_found) return missing_key(r, r->columns[c].key, record);
  ++r->examples;
  return RN_OK;
}

static rn_status_t read_records(cli_quant_reader_t* r, int64_t most) {
  const rn_cli_t* cli = r->q->cli;
  rn_record_reader_t* records = NULL;
  bool is_end = false;
  rn_str_t record;
  rn_compression_t compression =
      rn_str_ends_with(rn_str(r->file), RN_STR(".gz")) ? RN_COMPRESSION_GZIP : RN_COMPRESSION_NONE;
  rn_status_t status =
      rn_cli_at(rn_record_reader_open(cli->env, r->file, compression, 0, &records), r->file);
  while (rn_ok(status) && !is_end && r->examples < most) {
    status = rn_cli_at(rn_record_reader_next(records, &record, &is_end), r->file);
    if (rn_ok(status) && !is_end) status = put_example(r, record);
  }
  rn_record_reader_close(records);
  if (rn_ok(status) && !r->examples) return rn_invalid_argument("'%s' has no examples", r->file);
  return status;
}

// A tensor of the collected numbers. One dimension of an example may be open.
static rn_status_t make_tensor(const cli_quant_reader_t* r, cli_quant_column_t* column,
                               rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK] = {r->examples};
  rn_shape_t shape = {1, dims};
  int64_t known = 1, open = -1;
  if (column->port && column->port->shape.rank > 0) {
    shape.rank = column->port->shape.rank;
    for (int32_t i = 1; i < shape.rank; ++i) {
      dims[i] = column->port->shape.dims[i];
      if (dims[i] >= 0) known *= dims[i];
      if (dims[i] < 0 && open >= 0)
        return rn_invalid_argument(
            "'%s': the input '%.*s' has several open dimensions; give "
            "--data %.*s=FILE.npy",
            r->file, RN_STR_ARGS(column->key), RN_STR_ARGS(column->key));
      if (dims[i] < 0) open = i;
    }
  } else if (column->port && column->port->shape.rank < 0) {
    shape.rank = 2;
    open = 1;
  }
  if (open >= 0) {
    if (!known || column->each % known)
      return rn_invalid_argument("'%s': %" PRId64
                                 " numbers do not fill examples of the input "
                                 "'%.*s'",
                                 r->file, column->each, RN_STR_ARGS(column->key));
    dims[open] = column->each / known;
  }
  if (column->port && column->port->shape.rank == 0) shape.rank = 0;
  RN_RETURN_IF_ERROR(rn_tensor_create(r->q->cli->allocator, column->dtype, shape, out));
  memcpy(out->data, column->bytes.data, rn_tensor_bytes(out));
  return RN_OK;
}

// Reads "KEY=FILE.npy".
static rn_status_t read_array(cli_quant_reader_t* r, const char* text) {
  rn_str_t key, file;
  const rn_cli_t* cli = r->q->cli;
  RN_RETURN_IF_ERROR(rn_cli_split(cli, "--data", rn_str(text), &key, &file));
  for (size_t c = 0; c < r->count; ++c) {
    cli_quant_column_t* column = &r->columns[c];
    if (!rn_str_eq(column->key, key)) continue;
    if (rn_tensor_is_set(&column->value))
      return rn_cli_usage(cli, "--data gives '%.*s' twice", RN_STR_ARGS(key));
    RN_RETURN_IF_ERROR(rn_cli_prefix(rn_cli_read_file(cli, file, column->dtype, &column->value),
                                     "--data %.*s: ", RN_STR_ARGS(key)));
    column->is_found = true;
    if (column->port &&
        !rn_shape_compatible(column->port->shape, rn_tensor_shape(&column->value))) {
      rn_str_t wanted;
      RN_RETURN_IF_ERROR(describe(r->q, column->port, &wanted));
      return rn_invalid_argument("--data %s: the array is %s, but the input is %.*s", text,
                                 rn_text_of(&column->value).text, RN_STR_ARGS(wanted));
    }
    if (column->value.rank < 1 || rn_tensor_dim(&column->value, 0) == 0)
      return rn_invalid_argument("--data %s: the array has no examples", text);
    for (int64_t i = 0; column->dtype == RN_FLOAT && i < column->value.count; ++i)
      if (!isfinite(RN_DATA(&column->value, float)[i]))
        return rn_invalid_argument("--data %s: element %" PRId64 " is not finite", text, i);
    return RN_OK;
  }
  return rn_invalid_argument("--data %s: the model has no input '%.*s'", text, RN_STR_ARGS(key));
}

static rn_status_t read_arrays(cli_quant_reader_t* r) {
  size_t at = 0;
  for (const char* text; (text = rn_cli_each(r->q->cli, "--data", &at));)
    RN_RETURN_IF_ERROR(read_array(r, text));
  for (size_t c = 0; c < r->count; ++c) {
    const cli_quant_column_t* column = &r->columns[c];
    if (!column->is_found)
      return rn_invalid_argument("there is no data for '%.*s'; give --data %.*s=FILE.npy",
                                 RN_STR_ARGS(column->key), RN_STR_ARGS(column->key));
    int64_t count = rn_tensor_dim(&column->value, 0);
    if (c && count != r->examples)
      return rn_invalid_argument("--data: '%.*s' has %" PRId64 " examples, '%.*s' has %" PRId64,
                                 RN_STR_ARGS(column->key), count, RN_STR_ARGS(r->columns[0].key),
                                 r->examples);
    r->examples = count;
  }
  return RN_OK;
}

static rn_status_t keep_columns(cli_quant_reader_t* r, bool is_records) {
  rn_cli_quant_t* q = r->q;
  for (size_t c = 0; c < r->count; ++c) {
    cli_quant_column_t* column = &r->columns[c];
    rn_tensor_t* to = column->port ? &q->data.inputs[c] : &q->data.labels;
    if (is_records) {
      RN_RETURN_IF_ERROR(make_tensor(r, column, to));
    } else {
      *to = column->value;
      column->value = (rn_tensor_t){0};
    }
  }
  return RN_OK;
}

// The examples per step. If an input has a fixed batch size, that.
static rn_status_t choose_batch(rn_cli_quant_t* q) {
  rn_cli_quant_data_t* data = &q->data;
  int64_t fixed = 0;
  for (int32_t i = 0; i < q->input_count; ++i)
    if (q->inputs[i].shape.rank > 0 && q->inputs[i].shape.dims[0] > 0)
      fixed = q->inputs[i].shape.dims[0];
  data->batch = fixed ? fixed : rn_cli_number(q->cli, "--batch", DEFAULT_BATCH);
  if (fixed && rn_cli_has(q->cli, "--batch"))
    return rn_cli_usage(q->cli, "the model has a fixed batch size, %" PRId64, fixed);
  if (data->count < data->batch && fixed)
    return rn_invalid_argument("the model takes %" PRId64
                               " examples at a time; the data has "
                               "%" PRId64,
                               fixed, data->count);
  if (data->count < data->batch) data->batch = data->count;
  if (fixed) data->count -= data->count % fixed;
  return RN_OK;
}

static rn_status_t read_all(cli_quant_reader_t* r) {
  const rn_cli_t* cli = r->q->cli;
  int64_t most = rn_cli_number(cli, "--examples", DEFAULT_EXAMPLES);
  size_t at = 0;
  r->file = rn_cli_each(cli, "--data", &at);
  if (!r->file) return rn_cli_usage(cli, "--data is missing: give a TFRecord file of examples");
  bool is_records = !rn_str_ends_with(rn_str(r->file), RN_STR(".npy"));
  if (is_records && rn_cli_each(cli, "--data", &at))
    return rn_cli_usage(cli, "--data takes one TFRecord file, or KEY=FILE.npy for every input");
  RN_RETURN_IF_ERROR(is_records ? read_records(r, most) : read_arrays(r));
  RN_RETURN_IF_ERROR(keep_columns(r, is_records));
  r->q->data.count = r->examples < most ? r->examples : most;
  return choose_batch(r->q);
}

static bool can_be_read(rn_dtype_t dtype) {
  return dtype == RN_FLOAT || dtype == RN_DOUBLE || dtype == RN_INT64 || dtype == RN_INT32 ||
         dtype == RN_BOOL || dtype == RN_UINT8 || dtype == RN_INT8;
}

rn_status_t rn_cli_quant_read(rn_cli_quant_t* q) {
  const char* labels = rn_cli_text(q->cli, "--labels");
  size_t count = (size_t)q->input_count;
  cli_quant_reader_t r = {.q = q, .count = count + (labels ? 1 : 0)};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, count, &q->data.inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, r.count, &r.columns));
  for (size_t c = 0; c < r.count; ++c) {
    const rn_cli_quant_port_t* port = c < count ? &q->inputs[c] : NULL;
    r.columns[c] = (cli_quant_column_t){.key = port ? port->name : rn_str(labels),
                                        .port = port,
                                        .dtype = port ? port->dtype : RN_INT64,
                                        .each = -1};
    rn_strbuf_init(&r.columns[c].bytes, q->cli->allocator);
    if (!can_be_read(r.columns[c].dtype))
      return rn_unimplemented("the input '%.*s' is %s; data for it cannot be read",
                              RN_STR_ARGS(port->name), rn_dtype_name(port->dtype));
  }
  rn_status_t status = read_all(&r);
  for (size_t c = 0; c < r.count; ++c) {
    rn_strbuf_clear(&r.columns[c].bytes);
    rn_tensor_clear(&r.columns[c].value);
  }
  return status;
}

void rn_cli_quant_data_clear(rn_cli_quant_t* q) {
  for (int32_t i = 0; q->data.inputs && i < q->input_count; ++i)
    rn_tensor_clear(&q->data.inputs[i]);
  rn_tensor_clear(&q->data.labels);
}
