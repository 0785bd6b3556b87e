// UnicodeDecode, UnicodeEncode, UnicodeTranscode and UnicodeScript.
#include "kernels/cpu/array.h"
#include "kernels/cpu/string/charset.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef enum unicode_errors_t { STRICT, REPLACE, IGNORE } unicode_errors_t;
typedef enum output_t { OUT_UTF8, OUT_UTF16, OUT_UTF32 } output_t;

typedef struct unicode_t {
  rn_allocator_t allocator;
  char* name;  // Owned; name of the input charset
  size_t name_size;
  rn_charset_t charset;
  unicode_errors_t errors;
  uint32_t replacement;
  bool replaces_controls, has_offsets;
  output_t output;
} unicode_t;

static rn_status_t read_errors(const rn_kernel_init_t* init, unicode_t* unicode) {
  rn_str_t errors = rn_init_string(init, "errors");
  int64_t replacement = rn_init_int(init, "replacement_char");
  unicode->errors = rn_str_is(errors, "strict")    ? STRICT
                    : rn_str_is(errors, "replace") ? REPLACE
                                                   : IGNORE;
  if (replacement < 0 || replacement > 0x10FFFF)
    return rn_invalid_argument("replacement_char out of unicode codepoint range");
  unicode->replacement = (uint32_t)replacement;
  return RN_OK;
}

static rn_status_t read_input(const rn_kernel_init_t* init, unicode_t* unicode) {
  rn_str_t name = rn_init_string(init, "input_encoding");
  RN_RETURN_IF_ERROR(read_errors(init, unicode));
  unicode->replaces_controls = rn_init_bool(init, "replace_control_characters");
  unicode->allocator = init->allocator;
  RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, name, &unicode->name));
  unicode->name_size = name.size + 1;
  unicode->charset = rn_charset_find(unicode->name);
  if (unicode->charset == RN_CHARSET_NONE)
    return rn_invalid_argument("Could not create converter for input encoding: %s", unicode->name);
  return RN_OK;
}

static void read_output(const rn_kernel_init_t* init, unicode_t* unicode) {
  rn_str_t name = rn_init_string(init, "output_encoding");
  unicode->output = rn_str_is(name, "UTF-8")       ? OUT_UTF8
                    : rn_str_is(name, "UTF-16-BE") ? OUT_UTF16
                                                   : OUT_UTF32;
}

static rn_status_t decode_init(const rn_kernel_init_t* init, void* state) {
  ((unicode_t*)state)->has_offsets = init->output_count == 3;
  return read_input(init, state);
}
static rn_status_t encode_init(const rn_kernel_init_t* init, void* state) {
  read_output(init, state);
  return read_errors(init, state);
}
static rn_status_t transcode_init(const rn_kernel_init_t* init, void* state) {
  read_output(init, state);
  return read_input(init, state);
}

static void unicode_destroy(void* state) {
  unicode_t* unicode = state;
  if (unicode->name) rn_free(unicode->allocator, unicode->name, unicode->name_size);
}

// The next character to keep, after applying the rules for bad ones; false if it is dropped.
static rn_status_t next_kept(const unicode_t* unicode, rn_charset_reader_t* reader, rn_str_t text,
                             size_t* inout_at, uint32_t* out_code, bool* out_is_kept) {
  rn_charset_char_t next = rn_charset_next(reader, text, inout_at);
  if (next.is_bad && unicode->errors == STRICT)
    return rn_invalid_argument("Invalid formatting on input string");
  bool is_wrong = next.is_bad || (unicode->replaces_controls && next.code <= 0x1F);
  *out_code = is_wrong ? unicode->replacement : next.code;
  *out_is_kept = !is_wrong || unicode->errors != IGNORE;
  return RN_OK;
}

static void append_code(rn_strbuf_t* buf, output_t output, uint32_t code) {
  char bytes[4];
  size_t size = 4;
  if (output == OUT_UTF8) {
    // A lone surrogate has no UTF-8 encoding.
    size = rn_utf8_encode(code >= 0xD800 && code <= 0xDFFF ? 0xFFFD : code, bytes);
  } else if (output == OUT_UTF32 || code >= 0x10000) {
    if (output == OUT_UTF16)
      code = (0xD800 + ((code - 0x10000) >> 10)) << 16 | (0xDC00 + (code & 0x3FF));
    for (int i = 0; i < 4; ++i) bytes[i] = (char)(code >> (24 - 8 * i));
  } else {
    bytes[0] = (char)(code >> 8);
    bytes[1] = (char)code;
    size = 2;
  }
  rn_strbuf_append_n(buf, bytes, size);
}

static rn_status_t set_text(rn_tensor_t* tensor, int64_t i, rn_strbuf_t* buf) {
  RN_RETURN_IF_ERROR(rn_strbuf_status(buf));
  rn_str_t text = rn_strbuf_view(buf);
  bool done = rn_tstring_assign(&RN_DATA(tensor, rn_tstring_t)[i], text.data, text.size);
  return done ? RN_OK : rn_out_of_memory();
}

static rn_status_t transcode_one(const unicode_t* unicode, rn_charset_reader_t* reader,
                                 rn_str_t text, rn_strbuf_t* buf) {
  buf->size = 0;
  rn_charset_begin(reader);
  for (size_t at = 0; at < text.size;) {
    uint32_t code = 0;
    bool is_kept = false;
    RN_RETURN_IF_ERROR(next_kept(unicode, reader, text, &at, &code, &is_kept));
    if (is_kept) append_code(buf, unicode->output, code);
  }
  return RN_OK;
}

static rn_status_t transcode(rn_kernel_ctx_t* ctx) {
  const unicode_t* unicode = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_charset_reader_t reader;
  rn_tensor_t* out = NULL;
  rn_strbuf_t buf;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  RN_RETURN_IF_ERROR(rn_charset_open(unicode->charset, unicode->name, &reader));
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < input->count && rn_ok(status); ++i) {
    status = transcode_one(unicode, &reader,
                           rn_tstring_view(&RN_DATA(input, const rn_tstring_t)[i]), &buf);
    if (rn_ok(status)) status = set_text(out, i, &buf);
  }
  rn_strbuf_clear(&buf);
  rn_charset_close(&reader);
  return status;
}

// Code points and their offsets, as the bytes of two growing buffers.
typedef struct codes_t {
  rn_strbuf_t values, starts;
} codes_t;

static rn_status_t decode_one(const unicode_t* unicode, rn_charset_reader_t* reader, rn_str_t text,
                              codes_t* codes) {
  rn_charset_begin(reader);
  for (size_t at = 0; at < text.size;) {
    uint32_t code = 0;
    bool is_kept = false;
    int64_t start = (int64_t)at;
    RN_RETURN_IF_ERROR(next_kept(unicode, reader, text, &at, &code, &is_kept));
    if (!is_kept) continue;
    rn_strbuf_append_n(&codes->values, &code, sizeof code);
    if (unicode->has_offsets) rn_strbuf_append_n(&codes->starts, &start, sizeof start);
  }
  RN_RETURN_IF_ERROR(rn_strbuf_status(&codes->starts));
  return rn_strbuf_status(&codes->values);
}

static rn_status_t give(rn_kernel_ctx_t* ctx, int i, const rn_strbuf_t* buf, size_t size) {
  rn_tensor_t* out = NULL;
  int64_t count = (int64_t)(buf->size / size);
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &count}, &out));
  if (count) memcpy(out->data, buf->data, buf->size);
  return RN_OK;
}

static rn_status_t decode_all(rn_kernel_ctx_t* ctx, rn_charset_reader_t* reader, codes_t* codes) {
  const unicode_t* unicode = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  int64_t splits_count = input->count + 1;
  rn_tensor_t* splits = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &splits_count}, &splits));
  rn_int_set(splits, 0, 0);
  for (int64_t i = 0; i < input->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(input, const rn_tstring_t)[i]);
    RN_RETURN_IF_ERROR(decode_one(unicode, reader, text, codes));
    int64_t so_far = (int64_t)(codes->values.size / sizeof(int32_t));
    if (splits->dtype == RN_INT32 && so_far > INT32_MAX)
      return rn_invalid_argument("There are too many characters for splits of type int32");
    rn_int_set(splits, i + 1, so_far);
  }
  RN_RETURN_IF_ERROR(give(ctx, 1, &codes->values, sizeof(int32_t)));
  return unicode->has_offsets ? give(ctx, 2, &codes->starts, sizeof(int64_t)) : RN_OK;
}

static rn_status_t decode(rn_kernel_ctx_t* ctx) {
  const unicode_t* unicode = ctx->state;
  rn_charset_reader_t reader;
  codes_t codes;
  RN_RETURN_IF_ERROR(rn_charset_open(unicode->charset, unicode->name, &reader));
  rn_strbuf_init(&codes.values, ctx->kernel->allocator);
  rn_strbuf_init(&codes.starts, ctx->kernel->allocator);
  rn_status_t status = decode_all(ctx, &reader, &codes);
  rn_strbuf_clear(&codes.values);
  rn_strbuf_clear(&codes.starts);
  rn_charset_close(&reader);
  return status;
}

static rn_status_t check_splits(const rn_tensor_t* values, const rn_tensor_t* splits) {
  if (values->rank != 1 || splits->rank != 1)
    return rn_invalid_argument("Both the input_tensor and input_splits should be of rank 1. ");
  if (splits->count == 0)
    return rn_invalid_argument(
        "Input_splits should contain elements, but given input_values has 0 elements");
  if (rn_int_at(splits, 0) != 0)
    return rn_invalid_argument("First value in input_splits must be zero.");
  if (rn_int_at(splits, splits->count - 1) != values->count)
    return rn_invalid_argument(
        "Last value in input_splits must be equal to length of input_tensor.");
  for (int64_t i = 1; i < splits->count; ++i)
    if (rn_int_at(splits, i) < rn_int_at(splits, i - 1))
      return rn_invalid_argument("Values in input_splits must be equal or in ascending order.");
  return RN_OK;
}

static rn_status_t encode_row(const unicode_t* unicode, const int32_t* codes, int64_t count,
                              rn_strbuf_t* buf) {
  buf->size = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t code = (uint32_t)codes[i];
    bool is_bad = code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF);
    if (is_bad && unicode->errors == STRICT)
      return rn_invalid_argument("Code point is out of range for Unicode, or is a surrogate.");
    if (is_bad && unicode->errors == IGNORE) continue;
    append_code(buf, unicode->output, is_bad ? unicode->replacement : code);
  }
  return RN_OK;
}

static rn_status_t encode(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *values = rn_in(ctx, 0), *splits = rn_in(ctx, 1);
  rn_tensor_t* out = NULL;
  rn_strbuf_t buf;
  RN_RETURN_IF_ERROR(check_splits(values, splits));
  int64_t rows = splits->count - 1;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &rows}, &out));
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < rows && rn_ok(status); ++i) {
    int64_t begin = rn_int_at(splits, i), end = rn_int_at(splits, i + 1);
    status = encode_row(ctx->state, RN_DATA(values, const int32_t) + begin, end - begin, &buf);
    if (rn_ok(status)) status = set_text(out, i, &buf);
  }
  rn_strbuf_clear(&buf);
  return status;
}

// Runs of code points of one script: first code point << 8 | script.
static const uint32_t scripts[] = {
#include "kernels/cpu/string/unicode_scripts.def"
};

static int32_t script_of(int32_t code) {
  size_t low = 0, high = sizeof scripts / sizeof *scripts;
  if (code < 0 || code > 0x10FFFF) return -1;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if ((int32_t)(scripts[middle] >> 8) <= code)
      low = middle;
    else
      high = middle;
  }
  return (int32_t)(scripts[low] & 0xFF);
}

static rn_status_t unicode_script(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  for (int64_t i = 0; i < input->count; ++i)
    RN_DATA(out, int32_t)[i] = script_of(RN_DATA(input, const int32_t)[i]);
  return RN_OK;
}

#define ROW(name, init_, compute_)                                               \
  {                                                                              \
    .op = name, .device = "CPU", .state_size = sizeof(unicode_t), .init = init_, \
    .destroy = unicode_destroy, .compute = compute_                              \
  }

static const rn_kernel_def_t rows[] = {
    ROW("UnicodeDecode", decode_init, decode),
    ROW("UnicodeDecodeWithOffsets", decode_init, decode),
    ROW("UnicodeEncode", encode_init, encode),
    ROW("UnicodeTranscode", transcode_init, transcode),
    {.op = "UnicodeScript",
     .device = "CPU",
     .flags = RN_KERNEL_IN_PLACE,
     .compute = unicode_script},
};
RN_KERNEL_FAMILY(cpu_unicode, rows);
