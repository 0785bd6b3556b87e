// Values on the command line: literals and files. See value.h.
#include "cli/value.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cli/npy.h"
#include "tensor/float16.h"
#include "tensor/tstring.h"

#define MAX_DEPTH 32

typedef struct value_element_t {
  rn_str_t text;   // NUL-terminated
  bool is_quoted;  // a string, its escapes resolved
} value_element_t;

typedef struct literal_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  const char* at;
  const char* end;
  int rank;  // -1 until known
  int64_t dims[MAX_DEPTH];
  RN_VEC(value_element_t) elements;
} literal_t;

static void skip_space(literal_t* in) {
  while (in->at < in->end && strchr(" \t\n\r", *in->at)) ++in->at;
}

static bool take(literal_t* in, char c) {
  skip_space(in);
  if (in->at == in->end || *in->at != c) return false;
  ++in->at;
  return true;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Decodes the escape after a backslash at |*inout_at|; -1 if it is invalid.
static int unescape(const char** inout_at, const char* end) {
  const char* at = *inout_at;
  if (at == end) return -1;
  char c = *at++;
  int byte = c == 'n' ? '\n' : c == 't' ? '\t' : c == '"' || c == '\\' ? c : -1;
  if (c == 'x' && end - at >= 2 && hex_digit(at[0]) >= 0 && hex_digit(at[1]) >= 0) {
    byte = hex_digit(at[0]) * 16 + hex_digit(at[1]);
    at += 2;
  }
  *inout_at = at;
  return byte;
}

static rn_status_t parse_quoted(literal_t* in, value_element_t* out) {
  char* text = NULL;
  size_t size = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&in->arena, (size_t)(in->end - in->at) + 1, &text));
  ++in->at;
  while (in->at < in->end && *in->at != '"') {
    int byte = (unsigned char)*in->at++;
    if (byte == '\\') byte = unescape(&in->at, in->end);
    if (byte < 0)
      return rn_invalid_argument(
          "a string has an unknown escape; \\n \\t \\\" \\\\ \\xHH are known");
    text[size++] = (char)byte;
  }
  if (in->at == in->end) return rn_invalid_argument("a string does not end; it needs a '\"'");
  ++in->at;
  *out = (value_element_t){rn_str_n(text, size), true};
  return RN_OK;
}

static rn_status_t parse_word(literal_t* in, value_element_t* out) {
  const char* start = in->at;
  while (in->at < in->end && !strchr(",[]:\" \t\n\r", *in->at)) ++in->at;
  if (in->at == start)
    return in->at == in->end
               ? rn_invalid_argument("the value ends where an element was expected")
               : rn_invalid_argument("'%c' was found where an element was expected", *in->at);
  out->is_quoted = false;
  return rn_arena_str(&in->arena, rn_str_n(start, (size_t)(in->at - start)), &out->text);
}

static rn_status_t parse_element(literal_t* in, int depth) {
  if (in->rank >= 0 && in->rank != depth) return rn_invalid_argument("the rows differ in depth");
  in->rank = depth;
  value_element_t element;
  RN_RETURN_IF_ERROR(*in->at == '"' ? parse_quoted(in, &element) : parse_word(in, &element));
  return rn_vec_push(&in->elements, in->allocator, element);
}

static rn_status_t parse_part(literal_t* in, int depth) {
  skip_space(in);
  if (in->at == in->end) return rn_invalid_argument("the value ends where an element was expected");
  if (*in->at != '[') return parse_element(in, depth);
  if (depth == MAX_DEPTH) return rn_invalid_argument("more than %d nested brackets", MAX_DEPTH);
  ++in->at;
  int64_t count = 0;
  while (!take(in, ']')) {
    if (count > 0 && !take(in, ',')) return rn_invalid_argument("a ',' or ']' is missing");
    RN_RETURN_IF_ERROR(parse_part(in, depth + 1));
    ++count;
  }
  if (count == 0) {
    if (in->rank >= 0 && in->rank != depth + 1)
      return rn_invalid_argument("the rows differ in depth");
    in->rank = depth + 1;
  }
  if (in->dims[depth] >= 0 && in->dims[depth] != count)
    return rn_invalid_argument("the rows differ in length: %lld and %lld elements",
                               (long long)in->dims[depth], (long long)count);
  in->dims[depth] = count;
  return RN_OK;
}

// The default type of the elements.
static rn_dtype_t guess_type(const literal_t* in) {
  bool is_small = true;
  for (size_t i = 0; i < in->elements.count; ++i) {
    const value_element_t* e = &in->elements.items[i];
    int64_t number;
    if (e->is_quoted) return RN_STRING;
    if (rn_str_is(e->text, "true") || rn_str_is(e->text, "false")) return RN_BOOL;
    if (!rn_str_to_i64(e->text, &number)) return RN_FLOAT;
    is_small &= number >= INT32_MIN && number <= INT32_MAX;
  }
  return in->elements.count == 0 ? RN_FLOAT : is_small ? RN_INT32 : RN_INT64;
}

static rn_status_t wrong(const value_element_t* e, rn_dtype_t dtype) {
  const char* quote = e->is_quoted ? "\"" : "'";
  if (dtype == RN_STRING)
    return rn_invalid_argument("'%s' is not a string; write it in double quotes", e->text.data);
  return rn_invalid_argument("%s%s%s is not a valid %s", quote, e->text.data, quote,
                             rn_dtype_name(dtype));
}

static bool parse_double(const char* text, double* out, const char** out_end) {
  char* end = NULL;
  *out = strtod(text, &end);
  *out_end = end;
  return end != text;
}

// "1", "2j", "1+2j".
static bool parse_complex(const char* text, double parts[2]) {
  const char* end;
  parts[0] = parts[1] = 0;
  if (!parse_double(text, &parts[0], &end)) return false;
  if (*end == '\0') return true;
  if (strcmp(end, "j") == 0) {
    parts[1] = parts[0];
    parts[0] = 0;
    return true;
  }
  return (*end == '+' || *end == '-') && parse_double(end, &parts[1], &end) &&
         strcmp(end, "j") == 0;
}

static bool set_integer(const char* text, rn_tensor_t* out, int64_t i) {
  static const int64_t least[] = {INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN};
  size_t size = rn_dtype_size(out->dtype);
  int log_size = __builtin_ctz((unsigned)size);
  char* end = NULL;
  errno = 0;
  bool is_signed = out->dtype == RN_INT8 || out->dtype == RN_INT16 || out->dtype == RN_INT32 ||
                   out->dtype == RN_INT64 || out->dtype == RN_QINT8 || out->dtype == RN_QINT16 ||
                   out->dtype == RN_QINT32;
  if (!is_signed && strchr(text, '-')) return false;
  int64_t number = is_signed ? (int64_t)strtoll(text, &end, 10) : (int64_t)strtoull(text, &end, 10);
  if (errno || end == text || *end) return false;
  if (is_signed && (number < least[log_size] || number > -(least[log_size] + 1))) return false;
  if (!is_signed && size < 8 && (uint64_t)number >> (8 * size)) return false;
  memcpy((char*)out->data + (size_t)i * size, &number, size);  // little-endian, as the formats are
  return true;
}

static bool set_float(const char* text, rn_tensor_t* out, int64_t i) {
  double parts[2];
  if (!parse_complex(text, parts)) return false;
  if (!rn_dtype_is_complex(out->dtype) && (strchr(text, 'j') || strchr(text, 'J'))) return false;
  switch (out->dtype) {
    case RN_FLOAT:
      RN_DATA(out, float)[i] = (float)parts[0];
      return true;
    case RN_DOUBLE:
      RN_DATA(out, double)[i] = parts[0];
      return true;
    case RN_HALF:
      RN_DATA(out, uint16_t)[i] = rn_float_to_half((float)parts[0]);
      return true;
    case RN_BFLOAT16:
      RN_DATA(out, uint16_t)[i] = rn_float_to_bfloat16((float)parts[0]);
      return true;
    case RN_COMPLEX64:
      RN_DATA(out, float)[2 * i] = (float)parts[0];
      RN_DATA(out, float)[2 * i + 1] = (float)parts[1];
      return true;
    default:
      memcpy(RN_DATA(out, double) + 2 * i, parts, sizeof parts);
      return true;
  }
}

static bool set_bool(const char* text, rn_tensor_t* out, int64_t i) {
  bool is_true = strcmp(text, "true") == 0 || strcmp(text, "True") == 0 || strcmp(text, "1") == 0;
  bool is_false =
      strcmp(text, "false") == 0 || strcmp(text, "False") == 0 || strcmp(text, "0") == 0;
  RN_DATA(out, uint8_t)[i] = is_true;
  return is_true || is_false;
}

static rn_status_t set_element(const value_element_t* e, rn_tensor_t* out, int64_t i) {
  rn_dtype_t dtype = out->dtype;
  if (dtype == RN_STRING) {
    if (!e->is_quoted) return wrong(e, dtype);
    return rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], e->text.data, e->text.size)
               ? RN_OK
               : rn_out_of_memory();
  }
  bool is_float = dtype == RN_FLOAT || dtype == RN_DOUBLE || dtype == RN_HALF ||
                  dtype == RN_BFLOAT16 || rn_dtype_is_complex(dtype);
  bool ok = !e->is_quoted && (dtype == RN_BOOL ? set_bool(e->text.data, out, i)
                              : is_float       ? set_float(e->text.data, out, i)
                                               : set_integer(e->text.data, out, i));
  return ok ? RN_OK : wrong(e, dtype);
}

static bool can_be_written(rn_dtype_t dtype) {
  return dtype == RN_STRING || dtype == RN_BOOL || rn_dtype_is_complex(dtype) ||
         (dtype > 0 && dtype <= RN_HALF) || dtype == RN_UINT32 || dtype == RN_UINT64;
}

static rn_status_t finish(literal_t* in, rn_dtype_t wanted, rn_tensor_t* out) {
  rn_dtype_t dtype = wanted;
  skip_space(in);
  if (take(in, ':')) {
    rn_str_t name = rn_str_trim(rn_str_n(in->at, (size_t)(in->end - in->at)));
    dtype = rn_dtype_parse(name);
    if (dtype == RN_INVALID || rn_dtype_is_ref(dtype))
      return rn_invalid_argument("there is no type '%.*s'", RN_STR_ARGS(name));
  } else if (in->at != in->end) {
    return rn_invalid_argument("'%.*s' is unexpected after the value", (int)(in->end - in->at),
                               in->at);
  }
  if (dtype == RN_INVALID) dtype = guess_type(in);
  if (!can_be_written(dtype))
    return rn_unimplemented("a %s cannot be written as text", rn_dtype_name(dtype));
  // A level below an empty one was never parsed: it has no elements.
  for (int d = 0; d < in->rank; ++d)
    if (in->dims[d] < 0) in->dims[d] = 0;
  RN_RETURN_IF_ERROR(rn_tensor_create(in->allocator, dtype, (rn_shape_t){in->rank, in->dims}, out));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < out->count; ++i)
    status = set_element(&in->elements.items[i], out, i);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

static rn_status_t read_literal(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                                rn_tensor_t* out) {
  literal_t in = {
      .allocator = cli->allocator, .at = text.data, .end = text.data + text.size, .rank = -1};
  for (int d = 0; d < MAX_DEPTH; ++d) in.dims[d] = -1;
  rn_arena_init(&in.arena, cli->allocator);
  rn_status_t status = parse_part(&in, 0);
  if (rn_ok(status)) status = finish(&in, wanted, out);
  rn_vec_free(&in.elements, cli->allocator);
  rn_arena_clear(&in.arena);
  return status;
}

static rn_status_t read_npy(const rn_cli_t* cli, rn_str_t path, rn_tensor_t* out) {
  char* name = NULL;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, cli->allocator);
  RN_RETURN_IF_ERROR(rn_str_dup(cli->allocator, path, &name));
  rn_status_t status = rn_fs_read(cli->env, name, SIZE_MAX, &bytes);
  if (rn_ok(status)) status = rn_npy_read(rn_strbuf_view(&bytes), cli->allocator, out);
  status = rn_cli_at(status, name);
  rn_strbuf_clear(&bytes);
  rn_free(cli->allocator, name, path.size + 1);
  return status;
}

rn_status_t rn_cli_value(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  if (text.size && text.data[0] == '@')
    return read_npy(cli, rn_str_n(text.data + 1, text.size - 1), out);
  return read_literal(cli, text, wanted, out);
}

double rn_cli_number_at(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      return RN_DATA(tensor, float)[i];
    case RN_DOUBLE:
      return RN_DATA(tensor, double)[i];
    case RN_HALF:
      return rn_half_to_float(RN_DATA(tensor, uint16_t)[i]);
    case RN_BFLOAT16:
      return rn_bfloat16_to_float(RN_DATA(tensor, uint16_t)[i]);
    case RN_INT32:
      return RN_DATA(tensor, int32_t)[i];
    case RN_INT64:
      return (double)RN_DATA(tensor, int64_t)[i];
    case RN_UINT8:
      return RN_DATA(tensor, uint8_t)[i];
    default:
      return 0;
  }
}
