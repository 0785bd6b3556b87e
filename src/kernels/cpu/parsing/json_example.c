// DecodeJSONExample: Example messages from proto3 JSON.
//
// The grammar is that of one message, so the parser has one function per level and writes the wire
// format as it reads:
//
//   {"features": {"feature": {"key": {"int64List": {"value": [1, "2"]}}}}}
#include <float.h>
#include <math.h>

#include "base/base64.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"
#include "wire/writer.h"

typedef struct json_example_json_t {
  const char* start;
  const char* next;
  const char* end;
  rn_strbuf_t text;    // the last string read
  rn_strbuf_t number;  // scratch
} json_example_json_t;

static rn_status_t bad(const json_example_json_t* json, const char* what) {
  return rn_invalid_argument(
      "Error while parsing JSON: invalid JSON in type.googleapis.com/tensorflow.Example, near "
      "(offset %lld): %s",
      (long long)(json->next - json->start), what);
}

static char peek(json_example_json_t* json) {
  while (json->next < json->end &&
         (*json->next == ' ' || *json->next == '\t' || *json->next == '\n' || *json->next == '\r'))
    ++json->next;
  return json->next < json->end ? *json->next : '\0';
}

static bool take(json_example_json_t* json, char c) {
  if (peek(json) != c || json->next == json->end) return false;
  ++json->next;
  return true;
}

static bool take_null(json_example_json_t* json) {
  if (peek(json) != 'n' || json->end - json->next < 4 || memcmp(json->next, "null", 4))
    return false;
  json->next += 4;
  return true;
}

// Strings.

static bool hex4(json_example_json_t* json, uint32_t* out) {
  *out = 0;
  if (json->end - json->next < 4) return false;
  for (int i = 0; i < 4; ++i) {
    char c = *json->next++;
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) return false;
    *out = *out << 4 | (uint32_t)digit;
  }
  return true;
}

static void append_utf8(rn_strbuf_t* out, uint32_t code) {
  char bytes[4];
  size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  if (size == 1) bytes[0] = (char)code;
  for (size_t i = size; size > 1 && i-- > 1; code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3F));
  if (size > 1) bytes[0] = (char)(code | (uint32_t)(0xF00 >> size));
  rn_strbuf_append_n(out, bytes, size);
}

static rn_status_t escape(json_example_json_t* json) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  char c = json->next < json->end ? *json->next++ : '\0';
  const char* found = c ? strchr(names, c) : NULL;
  if (found) {
    rn_strbuf_append_n(&json->text, &values[found - names], 1);
    return RN_OK;
  }
  uint32_t code = 0, low = 0;
  if (c != 'u' || !hex4(json, &code)) return bad(json, "invalid escape");
  if (code >= 0xD800 && code < 0xDC00) {
    if (json->end - json->next < 2 || json->next[0] != '\\' || json->next[1] != 'u')
      return bad(json, "invalid surrogate pair");
    json->next += 2;
    if (!hex4(json, &low) || low < 0xDC00 || low > 0xDFFF)
      return bad(json, "invalid surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code < 0xE000) {
    return bad(json, "invalid surrogate pair");
  }
  append_utf8(&json->text, code);
  return RN_OK;
}

static rn_status_t read_string(json_example_json_t* json) {
  json->text.size = 0;
  if (!take(json, '"')) return bad(json, "expected '\"'");
  while (json->next < json->end && *json->next != '"') {
    if ((uint8_t)*json->next < 0x20) return bad(json, "control character in string");
    if (*json->next == '\\') {
      ++json->next;
      RN_RETURN_IF_ERROR(escape(json));
    } else {
      rn_strbuf_append_n(&json->text, json->next++, 1);
    }
  }
  if (json->next == json->end) return bad(json, "unexpected EOF");
  ++json->next;
  return rn_strbuf_status(&json->text);
}

// Values.

// A number as written, or the content of a quoted one.
static rn_status_t read_number(json_example_json_t* json, rn_str_t* out) {
  if (peek(json) == '"') {
    RN_RETURN_IF_ERROR(read_string(json));
    *out = rn_strbuf_view(&json->text);
    return RN_OK;
  }
  const char* start = json->next;
  while (json->next < json->end && *json->next && strchr("+-.0123456789eE", *json->next))
    ++json->next;
  *out = rn_str_n(start, (size_t)(json->next - start));
  const char* digits = out->size && *start == '-' ? start + 1 : start;
  size_t count = (size_t)(json->next - digits);
  if (count == 0 || *digits < '0' || *digits > '9' ||
      (count > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'))
    return bad(json, "invalid number");
  return RN_OK;
}

static rn_status_t int_value(json_example_json_t* json, rn_strbuf_t* out) {
  rn_str_t text;
  int64_t value = 0;
  double number = 0;
  RN_RETURN_IF_ERROR(read_number(json, &text));
  if (!rn_str_to_i64(text, &value)) {
    if (!rn_str_to_f64(text, &number) || number != floor(number) ||
        !(number >= -0x1p63 && number < 0x1p63))
      return bad(json, "invalid number");
    // Digits alone: an integer that is out of range.
    if (!memchr(text.data, '.', text.size) && !memchr(text.data, 'e', text.size) &&
        !memchr(text.data, 'E', text.size))
      return bad(json, "invalid number");
    value = (int64_t)number;
  }
  rn_pb_put_uint(out, 1, (uint64_t)value);
  return RN_OK;
}

static rn_status_t float_value(json_example_json_t* json, rn_strbuf_t* out) {
  rn_str_t text;
  double value = 0;
  RN_RETURN_IF_ERROR(read_number(json, &text));
  if (rn_str_is(text, "NaN"))
    value = NAN;
  else if (rn_str_is(text, "Infinity"))
    value = INFINITY;
  else if (rn_str_is(text, "-Infinity"))
    value = -INFINITY;
  else if (!rn_str_to_f64(text, &value))
    return bad(json, "invalid number");
  else if (fabs(value) > FLT_MAX)
    return bad(json, "float out of range");
  rn_pb_put_float(out, 1, (float)value);
  return RN_OK;
}

static rn_status_t bytes_value(json_example_json_t* json, rn_strbuf_t* out) {
  RN_RETURN_IF_ERROR(read_string(json));
  rn_str_t text = rn_strbuf_view(&json->text);
  while (text.size && text.data[text.size - 1] == '=') --text.size;
  json->number.size = 0;
  if (!rn_strbuf_reserve(&json->number, rn_base64_decoded_size(text.size)))
    return rn_strbuf_status(&json->number);
  if (!rn_base64_decode(text, RN_BASE64_STANDARD | RN_BASE64_URL, json->number.data,
                        &json->number.size))
    return bad(json, "corrupt base64");
  rn_pb_put_str(out, 1, rn_strbuf_view(&json->number));
  return RN_OK;
}

// Objects. |visit| reads the value after each name.
typedef rn_status_t (*visit_t)(json_example_json_t* json, rn_str_t name, rn_strbuf_t* out,
                               void* arg);

static rn_status_t read_object(json_example_json_t* json, visit_t visit, rn_strbuf_t* out,
                               void* arg) {
  if (!take(json, '{')) return bad(json, "unexpected character; expected '{'");
  if (take(json, '}')) return RN_OK;
  do {
    if (peek(json) != '"') return bad(json, "expected '\"'");
    RN_RETURN_IF_ERROR(read_string(json));
    if (!take(json, ':')) return bad(json, "expected ':'");
    RN_RETURN_IF_ERROR(visit(json, rn_strbuf_view(&json->text), out, arg));
  } while (take(json, ','));
  return take(json, '}') ? RN_OK : bad(json, "expected ',' or '}'");
}

typedef rn_status_t (*json_example_value_t)(json_example_json_t* json, rn_strbuf_t* out);

static rn_status_t visit_values(json_example_json_t* json, rn_str_t name, rn_strbuf_t* out,
                                void* arg) {
  json_example_value_t value = *(json_example_value_t*)arg;
  if (!rn_str_is(name, "value")) return bad(json, "no such field");
  if (take_null(json)) return RN_OK;
  // Like stock, accepts a single value as a list of one, and a comma after the last.
  if (!take(json, '[')) return value(json, out);
  do {
    if (peek(json) == ']') break;
    RN_RETURN_IF_ERROR(value(json, out));
  } while (take(json, ','));
  return take(json, ']') ? RN_OK : bad(json, "expected ',' or ']'");
}

static rn_status_t visit_kind(json_example_json_t* json, rn_str_t name, rn_strbuf_t* out,
                              void* arg) {
  static const struct {
    const char* names[2];
    json_example_value_t value;
  } kinds[] = {{{"bytesList", "bytes_list"}, bytes_value},
               {{"floatList", "float_list"}, float_value},
               {{"int64List", "int64_list"}, int_value}};
  bool* has_kind = arg;
  uint32_t k = 0;
  while (k < 3 && !rn_str_is(name, kinds[k].names[0]) && !rn_str_is(name, kinds[k].names[1])) ++k;
  if (k == 3) return bad(json, "no such field");
  if (take_null(json)) return RN_OK;
  if (*has_kind) return bad(json, "more than one field of a oneof");
  *has_kind = true;
  json_example_value_t value = kinds[k].value;
  size_t mark = rn_pb_begin(out, k + 1);
  RN_RETURN_IF_ERROR(read_object(json, visit_values, out, &value));
  rn_pb_end(out, mark);
  return RN_OK;
}

static rn_status_t visit_feature(json_example_json_t* json, rn_str_t name, rn_strbuf_t* out,
                                 void* arg) {
  bool has_kind = false;
  (void)arg;
  size_t entry = rn_pb_begin(out, 1);
  rn_pb_put_str(out, 1, name);
  size_t feature = rn_pb_begin(out, 2);
  RN_RETURN_IF_ERROR(read_object(json, visit_kind, out, &has_kind));
  rn_pb_end(out, feature);
  rn_pb_end(out, entry);
  return RN_OK;
}

static rn_status_t visit_features(json_example_json_t* json, rn_str_t name, rn_strbuf_t* out,
                                  void* arg) {
  (void)arg;
  if (!rn_str_is(name, "feature")) return bad(json, "no such field");
  if (take_null(json)) return RN_OK;
  return read_object(json, visit_feature, out, NULL);
}

static rn_status_t visit_example(json_example_json_t* json, rn_str_t name, rn_strbuf_t* out,
                                 void* arg) {
  (void)arg;
  if (!rn_str_is(name, "features")) return bad(json, "no such field");
  if (take_null(json)) return RN_OK;
  size_t mark = rn_pb_begin(out, 1);
  RN_RETURN_IF_ERROR(read_object(json, visit_features, out, NULL));
  rn_pb_end(out, mark);
  return RN_OK;
}

static rn_status_t convert(rn_allocator_t allocator, rn_str_t text, rn_strbuf_t* out) {
  json_example_json_t json = {.start = text.data, .next = text.data, .end = text.data + text.size};
  rn_strbuf_init(&json.text, allocator);
  rn_strbuf_init(&json.number, allocator);
  rn_status_t status = read_object(&json, visit_example, out, NULL);
  peek(&json);
  if (rn_ok(status) && json.next != json.end) status = bad(&json, "text behind the message");
  if (rn_ok(status)) status = rn_strbuf_status(out);
  rn_strbuf_clear(&json.text);
  rn_strbuf_clear(&json.number);
  return status;
}

static rn_status_t decode_json_example(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  rn_strbuf_t message;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  rn_strbuf_init(&message, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < in->count; ++i) {
    message.size = 0;
    status = convert(ctx->kernel->allocator, rn_tstring_view(&RN_DATA(in, const rn_tstring_t)[i]),
                     &message);
    if (rn_ok(status) && !rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i],
                                            rn_strbuf_view(&message).data, message.size))
      status = rn_out_of_memory();
  }
  rn_strbuf_clear(&message);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "DecodeJSONExample", .device = "CPU", .compute = decode_json_example},
};
RN_KERNEL_FAMILY(cpu_json_example, rows);
