// Nested lists to tensors: see json.h.
//
// The shape follows from the first list of each depth, and the rank from the first value: what
// comes later must fit. Elements go into a buffer that was made for as many as there are commas.
#include "serve/front/json_internal.h"
#include "tensor/float16.h"
#include "tensor/tstring.h"

bool rn_json_has_dtype(rn_dtype_t dtype) {
  const rn_dtypes_t types = RN_TYPES1(RN_FLOAT) | RN_TYPES1(RN_DOUBLE) | RN_TYPES1(RN_HALF) |
                            RN_TYPES1(RN_BFLOAT16) | RN_TYPES1(RN_INT8) | RN_TYPES1(RN_INT16) |
                            RN_TYPES1(RN_INT32) | RN_TYPES1(RN_INT64) | RN_TYPES1(RN_UINT8) |
                            RN_TYPES1(RN_UINT16) | RN_TYPES1(RN_UINT32) | RN_TYPES1(RN_UINT64) |
                            RN_TYPES1(RN_BOOL) | RN_TYPES1(RN_STRING);
  return rn_dtypes_has(types, dtype);
}

void rn_json_sink_clear(rn_json_sink_t* sink) {
  rn_buffer_release(sink->buffer);
  sink->buffer = NULL;
  sink->count = sink->capacity = 0;
}

rn_status_t rn_json_sink_reserve(rn_json_sink_t* sink, int64_t count) {
  if (count <= sink->capacity || sink->counts_only) return RN_OK;
  int64_t capacity = sink->capacity * 2 > count ? sink->capacity * 2 : count;
  size_t size = 0;
  rn_buffer_t* buffer = NULL;
  if (!rn_mul_ok((size_t)capacity, sink->size, &size)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_buffer_create(sink->allocator, sink->dtype, size, &buffer));
  if (sink->buffer) {
    // Strings move as bytes: the old buffer must not free them.
    size_t used = (size_t)sink->count * sink->size;
    memcpy(buffer->data, sink->buffer->data, used);
    if (sink->dtype == RN_STRING) memset(sink->buffer->data, 0, used);
    rn_buffer_release(sink->buffer);
  }
  sink->buffer = buffer;
  sink->capacity = capacity;
  return RN_OK;
}

#define MAX_EXPECTED_STRINGS 4096
rn_status_t rn_json_sink_expect(rn_json_sink_t* sink, size_t commas) {
  int64_t count = (int64_t)commas + 1;
  if (sink->dtype == RN_STRING && count > MAX_EXPECTED_STRINGS) count = MAX_EXPECTED_STRINGS;
  return rn_json_sink_reserve(sink, count);
}

rn_status_t rn_json_sink_finish(rn_json_sink_t* sink, rn_shape_t shape, rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_tensor_init(out, sink->dtype, shape));
  if (!sink->buffer) {
    rn_tensor_clear(out);
    return rn_tensor_create(sink->allocator, sink->dtype, shape, out);
  }
  out->buffer = sink->buffer;
  out->data = sink->buffer->data;
  sink->buffer = NULL;
  sink->count = sink->capacity = 0;
  return RN_OK;
}

// Reads the number at the cursor. Beyond double's range it is an error, beyond float's infinity.
static inline rn_status_t read_decimal(rn_json_reader_t* json, rn_decimal_t* out) {
  rn_decimal_error_t error = rn_decimal_scan(json->next, json->end, out);
  if (__builtin_expect(error != RN_DECIMAL_OK, 0)) return rn_json_bad_decimal(json, error, out);
  if (__builtin_expect(out->exponent > 280, 0) && __builtin_isinf(rn_decimal_to_double(out)))
    return rn_json_too_big(json, out);
  json->next = out->end;
  return RN_OK;
}

static inline bool is_special_number(const rn_json_reader_t* json) {
  const char* p = json->next;
  if (p != json->end && *p == '-') ++p;
  return p != json->end && (*p == 'N' || *p == 'I');
}

static inline rn_status_t read_float(rn_json_reader_t* json, float* out) {
  double special;
  rn_decimal_t decimal;
  if (__builtin_expect(is_special_number(json), 0)) {
    RN_RETURN_IF_ERROR(rn_json_special(json, &special));
    *out = (float)special;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(read_decimal(json, &decimal));
  *out = rn_decimal_to_float(&decimal);
  return RN_OK;
}

static inline rn_status_t read_double(rn_json_reader_t* json, double* out) {
  rn_decimal_t decimal;
  if (__builtin_expect(is_special_number(json), 0)) return rn_json_special(json, out);
  RN_RETURN_IF_ERROR(read_decimal(json, &decimal));
  *out = rn_decimal_to_double(&decimal);
  return RN_OK;
}

static rn_status_t wrong_type(rn_json_reader_t* json, rn_dtype_t dtype) {
  return rn_json_wrong_kind(json, rn_dtype_name(dtype));
}

// Reads an integer in |min| ... |max|.
static inline rn_status_t read_int(rn_json_reader_t* json, rn_dtype_t dtype, int64_t min,
                                   int64_t max, int64_t* out) {
  rn_decimal_t decimal;
  rn_json_reader_t begin = *json;
  if (is_special_number(json)) return wrong_type(json, dtype);
  RN_RETURN_IF_ERROR(read_decimal(json, &decimal));
  if (!rn_decimal_to_int(&decimal, out) || *out < min || *out > max)
    return wrong_type(&begin, dtype);
  return RN_OK;
}

static inline rn_status_t read_uint64(rn_json_reader_t* json, uint64_t* out) {
  rn_decimal_t decimal;
  rn_json_reader_t begin = *json;
  if (is_special_number(json)) return wrong_type(json, RN_UINT64);
  RN_RETURN_IF_ERROR(read_decimal(json, &decimal));
  return rn_decimal_to_uint(&decimal, out) ? RN_OK : wrong_type(&begin, RN_UINT64);
}

static rn_status_t read_string(rn_json_reader_t* json, rn_tstring_t* out) {
  rn_str_t bytes;
  rn_arena_mark_t mark = rn_arena_mark(json->arena);
  rn_status_t status = rn_json_bytes(json, &bytes);
  if (rn_ok(status) && !rn_tstring_assign(out, bytes.data, bytes.size)) status = rn_out_of_memory();
  rn_arena_rewind(json->arena, mark);
  return status;
}

// Reads one value of type |dtype| to |to|. Inlined with a constant type.
__attribute__((always_inline)) static inline rn_status_t read_element(rn_json_reader_t* json,
                                                                      rn_dtype_t dtype, void* to) {
  float real = 0;
  int64_t number = 0;
  rn_status_t status = RN_OK;
#define READ_INT(type, min, max)                         \
  status = read_int(json, dtype, (min), (max), &number); \
  *(type*)to = (type)number;                             \
  return status
  switch (dtype) {
    case RN_FLOAT:
      return read_float(json, to);
    case RN_DOUBLE:
      return read_double(json, to);
    case RN_HALF:
      status = read_float(json, &real);
      *(uint16_t*)to = rn_float_to_half(real);
      return status;
    case RN_BFLOAT16:
      status = read_float(json, &real);
      *(uint16_t*)to = rn_float_to_bfloat16(real);
      return status;
    case RN_INT8:
      READ_INT(int8_t, INT8_MIN, INT8_MAX);
    case RN_INT16:
      READ_INT(int16_t, INT16_MIN, INT16_MAX);
    case RN_INT32:
      READ_INT(int32_t, INT32_MIN, INT32_MAX);
    case RN_INT64:
      READ_INT(int64_t, INT64_MIN, INT64_MAX);
    case RN_UINT8:
      READ_INT(uint8_t, 0, UINT8_MAX);
    case RN_UINT16:
      READ_INT(uint16_t, 0, UINT16_MAX);
    case RN_UINT32:
      READ_INT(uint32_t, 0, UINT32_MAX);
    case RN_UINT64:
      return read_uint64(json, to);
    case RN_BOOL:
      return rn_json_bool(json, to);
    default:
      return read_string(json, to);
  }
#undef READ_INT
}

// Whether a value that begins with |c| may be of type |dtype|.
static inline bool may_begin(rn_dtype_t dtype, char c) {
  if (dtype == RN_STRING) return c == '"' || c == '{';
  if (dtype == RN_BOOL) return c == 't' || c == 'f';
  return (c >= '0' && c <= '9') || c == '-' || c == 'N' || c == 'I';
}

static rn_status_t read_list(rn_json_reader_t* json, rn_json_sink_t* sink, int level);

// The value at the cursor is not of the sink's type, or does not belong on |level|.
static rn_status_t mismatch(rn_json_reader_t* json, rn_json_sink_t* sink, int level) {
  rn_json_kind_t kind = rn_json_kind(json);
  if (kind == RN_JSON_BAD) return rn_json_bad_value(json);
  if (kind == RN_JSON_ARRAY && sink->is_free) return read_list(json, sink, level);
  if (kind == RN_JSON_ARRAY)
    return rn_invalid_argument("Encountered list at unexpected level: %d expected < %d", level,
                               sink->rank);
  return wrong_type(json, sink->dtype);
}

// Reads the value at the cursor, on |level|, which is not a list.
__attribute__((always_inline)) static inline rn_status_t read_leaf(rn_json_reader_t* json,
                                                                   rn_json_sink_t* sink, int level,
                                                                   rn_dtype_t dtype) {
  json->next = rn_json_blank(json->next, json->end);
  if (json->next == json->end || !may_begin(dtype, *json->next)) return mismatch(json, sink, level);
  rn_tstring_t scratch = {.small = {0}};
  void* to = &scratch;
  if (!sink->counts_only) {
    if (sink->count == sink->capacity)
      RN_RETURN_IF_ERROR(rn_json_sink_reserve(sink, sink->count + 1));
    to = (char*)sink->buffer->data + (size_t)sink->count * sink->size;
  }
  rn_status_t status = read_element(json, dtype, to);
  if (dtype == RN_STRING && sink->counts_only) rn_tstring_clear(&scratch);
  sink->count += rn_ok(status);
  return status;
}

// rn_json_next_element, inlined for a comma right behind the last element.
static inline bool next_leaf(rn_json_reader_t* json, rn_status_t* out_status) {
  if (json->is_first || json->next == json->end || *json->next != ',')
    return rn_json_next_element(json, out_status);
  ++json->next;
  return true;
}

// Reads the elements of a list of values on |level|, to its end.
__attribute__((always_inline)) static inline rn_status_t read_leaves(rn_json_reader_t* json,
                                                                     rn_json_sink_t* sink,
                                                                     int level, rn_dtype_t dtype,
                                                                     int64_t* out_count) {
  rn_status_t status = RN_OK;
  while (next_leaf(json, &status)) {
    RN_RETURN_IF_ERROR(read_leaf(json, sink, level, dtype));
    ++*out_count;
  }
  return status;
}

// rn_json_elements_fn_t, inlined with a constant type.
__attribute__((always_inline)) static inline bool read_some(rn_json_reader_t* json, void* out,
                                                            int64_t count, rn_dtype_t dtype) {
  for (int64_t i = 0; i < count; ++i) {
    if (i) {
      json->next = rn_json_blank(json->next, json->end);
      if (json->next == json->end || *json->next++ != ',') return false;
    }
    json->next = rn_json_blank(json->next, json->end);
    if (json->next == json->end || !may_begin(dtype, *json->next)) return false;
    rn_status_t status = read_element(json, dtype, (char*)out + (size_t)i * rn_dtype_size(dtype));
    if (rn_ok(status)) continue;
    rn_status_free(status);
    return false;
  }
  return rn_json_blank(json->next, json->end) == json->end;
}

static bool read_floats(rn_json_reader_t* json, void* out, int64_t count) {
  return read_some(json, out, count, RN_FLOAT);
}
static bool read_doubles(rn_json_reader_t* json, void* out, int64_t count) {
  return read_some(json, out, count, RN_DOUBLE);
}
static bool read_ints(rn_json_reader_t* json, void* out, int64_t count) {
  return read_some(json, out, count, RN_INT32);
}
static bool read_longs(rn_json_reader_t* json, void* out, int64_t count) {
  return read_some(json, out, count, RN_INT64);
}

// One copy of the loop for each of the types that requests mostly have, and another for long lists.
static rn_status_t read_values(rn_json_reader_t* json, rn_json_sink_t* sink, int level,
                               int64_t* out_count) {
  switch (sink->dtype) {
    case RN_FLOAT:
      if (rn_json_read_pieces(json, sink, read_floats, out_count)) return RN_OK;
      return read_leaves(json, sink, level, RN_FLOAT, out_count);
    case RN_DOUBLE:
      if (rn_json_read_pieces(json, sink, read_doubles, out_count)) return RN_OK;
      return read_leaves(json, sink, level, RN_DOUBLE, out_count);
    case RN_INT32:
      if (rn_json_read_pieces(json, sink, read_ints, out_count)) return RN_OK;
      return read_leaves(json, sink, level, RN_INT32, out_count);
    case RN_INT64:
      if (rn_json_read_pieces(json, sink, read_longs, out_count)) return RN_OK;
      return read_leaves(json, sink, level, RN_INT64, out_count);
    default:
      return read_leaves(json, sink, level, sink->dtype, out_count);
  }
}

static rn_status_t read_value(rn_json_reader_t* json, rn_json_sink_t* sink, int level);

// Reads the list at the cursor, which is on |level|.
static rn_status_t read_list(rn_json_reader_t* json, rn_json_sink_t* sink, int level) {
  if (level >= RN_MAX_RANK)
    return rn_invalid_argument("Encountered list at unexpected level: %d expected < %d", level,
                               RN_MAX_RANK);
  RN_RETURN_IF_ERROR(rn_json_open_array(json));
  rn_json_kind_t first = rn_json_kind(json);
  bool is_last = sink->rank < 0 ? first != RN_JSON_ARRAY : sink->rank == level + 1;
  int64_t count = 0;
  rn_status_t status = RN_OK;
  if (is_last || sink->is_free) {
    sink->rank = level + 1;
    status = read_values(json, sink, level + 1, &count);
  } else {
    while (rn_ok(status) && rn_json_next_element(json, &status)) {
      status = read_value(json, sink, level + 1);
      ++count;
    }
  }
  if (!rn_ok(status) || sink->is_free) return status;
  if (sink->dims[level] < 0) sink->dims[level] = count;
  if (sink->dims[level] == count) return RN_OK;
  return rn_invalid_argument(
      "Encountered list at unexpected size: %lld at level: %d expected size: %lld",
      (long long)count, level, (long long)sink->dims[level]);
}

// Reads the value at the cursor, on |level|: a list, or an element.
static rn_status_t read_value(rn_json_reader_t* json, rn_json_sink_t* sink, int level) {
  if (rn_json_kind(json) == RN_JSON_ARRAY) {
    if (sink->rank >= 0 && level >= sink->rank) return mismatch(json, sink, level);
    return read_list(json, sink, level);
  }
  if (sink->rank < 0) sink->rank = level;
  if (level == sink->rank) return read_leaf(json, sink, level, sink->dtype);
  rn_json_reader_t copy = *json;
  RN_RETURN_IF_ERROR(rn_json_skip(&copy));  // text that is no JSON is the worse error
  return rn_json_error(json, "found at incorrect level: %d in the JSON DOM. Expected at level: %d",
                       level + 1, sink->rank);
}

rn_status_t rn_json_sink_read(rn_json_reader_t* json, rn_json_sink_t* sink) {
  if (rn_json_has_dtype(sink->dtype)) return read_value(json, sink, 0);
  rn_strbuf_t text;
  rn_strbuf_init(&text, json->arena->allocator);
  rn_strbuf_append(&text, RN_STR("Conversion of JSON Value: "));
  rn_json_print(json, &text);
  rn_strbuf_printf(&text, " to type: %s", rn_dtype_name(sink->dtype));
  return rn_status_from_buf(RN_CODE_UNIMPLEMENTED, &text);
}

// The commas in the value at the cursor.
static rn_status_t count_commas(const rn_json_reader_t* json, size_t* out) {
  rn_json_reader_t copy = *json;
  rn_str_t span;
  return rn_json_span_commas(&copy, &span, out);
}

void rn_json_sink_init(rn_json_sink_t* sink, rn_dtype_t dtype, rn_allocator_t allocator) {
  *sink = (rn_json_sink_t){
      .allocator = allocator, .dtype = dtype, .size = rn_dtype_size(dtype), .rank = -1};
  memset(sink->dims, 0xff, sizeof sink->dims);  // -1
}

rn_status_t rn_json_tensor(rn_json_reader_t* json, rn_dtype_t dtype, rn_allocator_t allocator,
                           rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  rn_json_sink_t sink;
  rn_json_sink_init(&sink, dtype, allocator);
  size_t commas = 0;
  RN_RETURN_IF_ERROR(count_commas(json, &commas));
  rn_status_t status = rn_json_sink_expect(&sink, commas);
  if (rn_ok(status)) status = rn_json_sink_read(json, &sink);
  if (rn_ok(status)) status = rn_json_sink_finish(&sink, (rn_shape_t){sink.rank, sink.dims}, out);
  rn_json_sink_clear(&sink);
  return status;
}

rn_status_t rn_json_tensor_of_shape(rn_json_reader_t* json, rn_dtype_t dtype, rn_shape_t shape,
                                    rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  rn_json_sink_t sink;
  rn_json_sink_init(&sink, dtype, allocator);
  sink.is_free = true;
  int64_t wanted = 0;
  size_t commas = 0;
  if (!rn_shape_count(shape, &wanted) || wanted < 0)
    return rn_invalid_argument("a shape of a list must be known");
  RN_RETURN_IF_ERROR(count_commas(json, &commas));
  // A list that is too short must not make room for what it does not have.
  rn_status_t status = rn_json_sink_expect(&sink, commas);
  if (rn_ok(status)) status = rn_json_sink_read(json, &sink);
  if (rn_ok(status) && sink.count != wanted)
    status = rn_invalid_argument("the list has %lld elements, but its shape needs %lld",
                                 (long long)sink.count, (long long)wanted);
  if (rn_ok(status)) status = rn_json_sink_finish(&sink, shape, out);
  rn_json_sink_clear(&sink);
  return status;
}
