// Single strings: case, length, substrings, base64.
#include <ctype.h>
#include <locale.h>
#include <wctype.h>

#include "base/base64.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/string/charset.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

static rn_status_t output_like_input(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  return rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, 0)), out);
}

// Letter case. UTF-8 uses the tables of the C.UTF-8 locale, one character to one.
typedef struct case_t {
  locale_t locale;  // 0 for bytes
  bool is_upper;
} case_t;

static rn_status_t case_init(const rn_kernel_init_t* init, void* state) {
  case_t* kind = state;
  kind->is_upper = strcmp(init->op->name, "StringUpper") == 0;
  rn_str_t encoding = rn_init_string(init, "encoding");
  if (!encoding.size) return RN_OK;
  if (!rn_str_is(encoding, "utf-8"))
    return rn_invalid_argument("only utf-8 or '' (no encoding) is supported, received %.*s",
                               RN_STR_ARGS(encoding));
  kind->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  // The locale is built into the C library; this fails only for lack of memory, whatever errno
  // says.
  return kind->locale ? RN_OK : rn_resource_exhausted("The locale C.UTF-8 could not be loaded");
}

static void case_destroy(void* state) {
  case_t* kind = state;
  if (kind->locale) freelocale(kind->locale);
}

// Invalid input becomes U+FFFD, as in stock.
static void change_characters(const case_t* kind, rn_str_t text, rn_strbuf_t* out) {
  rn_charset_reader_t reader = {.charset = RN_CHARSET_UTF8};
  for (size_t at = 0; at < text.size;) {
    uint32_t code = rn_charset_next(&reader, text, &at).code;
    char bytes[4];
    if (kind->is_upper && code == 0xDF) {
      rn_strbuf_append(out, RN_STR("SS"));
    } else {
      code = (uint32_t)(kind->is_upper ? towupper_l((wint_t)code, kind->locale)
                                       : towlower_l((wint_t)code, kind->locale));
      rn_strbuf_append_n(out, bytes, rn_utf8_encode(code, bytes));
    }
  }
}

static rn_status_t change_case(rn_kernel_ctx_t* ctx) {
  const case_t* kind = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(output_like_input(ctx, &out));
  rn_strbuf_t wide;
  rn_strbuf_init(&wide, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < input->count; ++i) {
    rn_str_t text = rn_text_at(input, i);
    if (kind->locale) {
      wide.size = 0;
      change_characters(kind, text, &wide);
      status = rn_strbuf_status(&wide);
      if (rn_ok(status)) status = rn_text_set(out, i, rn_strbuf_view(&wide));
      continue;
    }
    char* to = rn_tstring_resize(&RN_DATA(out, rn_tstring_t)[i], text.size);
    if (!to) return rn_out_of_memory();
    char first = kind->is_upper ? 'a' : 'A';
    for (size_t b = 0; b < text.size; ++b) {
      unsigned char c = (unsigned char)text.data[b];
      to[b] = (char)((unsigned char)(c - first) < 26 ? c ^ 0x20 : c);
    }
  }
  rn_strbuf_clear(&wide);
  return status;
}

static rn_status_t strip(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(output_like_input(ctx, &out));
  for (int64_t i = 0; i < input->count; ++i) {
    rn_str_t text = rn_text_at(input, i);
    while (text.size && rn_is_space(text.data[0])) text = rn_str_n(text.data + 1, text.size - 1);
    while (text.size && rn_is_space(text.data[text.size - 1])) text.size--;
    RN_RETURN_IF_ERROR(rn_text_set(out, i, text));
  }
  return RN_OK;
}

// Lengths and substrings, in bytes or characters.
static rn_status_t unit_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_str_is(rn_init_string(init, "unit"), "UTF8_CHAR");
  return RN_OK;
}

static rn_status_t length(rn_kernel_ctx_t* ctx) {
  bool counts_characters = *(const bool*)ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(output_like_input(ctx, &out));
  int32_t* lengths = out->data;
  for (int64_t i = 0; !counts_characters && i < input->count; ++i)
    lengths[i] = (int32_t)rn_tstring_size(&RN_DATA(input, const rn_tstring_t)[i]);
  for (int64_t i = 0; counts_characters && i < input->count; ++i)
    lengths[i] = (int32_t)rn_utf8_length(rn_text_at(input, i));
  return RN_OK;
}

static rn_status_t part_of(rn_str_t text, bool is_utf8, int64_t from, int64_t size, int64_t i,
                           rn_str_t* out) {
  uint64_t total = is_utf8 ? rn_utf8_length(text) : text.size;
  uint64_t begin = from >= 0 ? (uint64_t)from : total - (0 - (uint64_t)from);
  // As in stock, for characters a negative size from a position counted from the end is an error.
  bool never = is_utf8 && from < 0 && size < 0;
  if (never || (from >= 0 ? begin > total : 0 - (uint64_t)from > total))
    return is_utf8 ? rn_invalid_argument("pos %lld out of range for string at index %lld",
                                         (long long)from, (long long)i)
                   : rn_invalid_argument("pos %lld out of range for string b'%.*s' at index %lld",
                                         (long long)from, RN_STR_ARGS(text), (long long)i);
  // As in stock, a negative size means the rest for bytes, and nothing for characters.
  uint64_t count = (uint64_t)size < total - begin ? (uint64_t)size : total - begin;
  if (is_utf8) {
    if (size < 0) count = 0;
    size_t first = rn_utf8_offset(text, begin);
    rn_str_t rest = rn_str_n(text.data + first, text.size - first);
    *out = rn_str_n(rest.data, rn_utf8_offset(rest, count));
  } else {
    *out = rn_str_n(text.data + begin, count);
  }
  return RN_OK;
}

// The strides of an input over the output's dimensions: 0 where it repeats.
static void broadcast_steps(const rn_tensor_t* input, int32_t rank, int64_t* steps) {
  int64_t step = 1;
  for (int32_t d = rank - 1; d >= 0; --d) {
    int32_t own = d - (rank - input->rank);
    int64_t size = own >= 0 ? rn_tensor_dim(input, own) : 1;
    steps[d] = size == 1 ? 0 : step;
    step *= size;
  }
}

static rn_status_t substr_shape(const rn_tensor_t* a, const rn_tensor_t* b, int64_t* dims,
                                rn_shape_t* out) {
  int32_t rank = a->rank > b->rank ? a->rank : b->rank;
  for (int32_t d = 0; d < rank; ++d) {
    int32_t da = d - (rank - a->rank), db = d - (rank - b->rank);
    int64_t x = da >= 0 ? rn_tensor_dim(a, da) : 1, y = db >= 0 ? rn_tensor_dim(b, db) : 1;
    if (x != y && x != 1 && y != 1)
      return rn_invalid_argument("Incompatible shapes: %s vs. %s", rn_text_of(a).text,
                                 rn_text_of(b).text);
    dims[d] = x == 1 ? y : x;
  }
  *out = (rn_shape_t){rank, dims};
  return RN_OK;
}

// Substrings of |texts|, one per position, or all by one position.
static rn_status_t substr_each(const rn_tensor_t* texts, const rn_tensor_t* from,
                               const rn_tensor_t* size, bool is_utf8, rn_tensor_t* out) {
  const rn_tstring_t* in = texts->data;
  for (int64_t i = 0, p = 0; i<out->count; ++i, p += from->rank> 0) {
    int64_t begin = rn_int_at(from, p), count = rn_int_at(size, p);
    rn_str_t text = rn_tstring_view(&in[i]), part;
    if (!is_utf8 && begin >= 0 && count >= 0 && (uint64_t)begin <= text.size) {
      size_t rest = text.size - (size_t)begin;
      part = rn_str_n(text.data + begin, (uint64_t)count < rest ? (size_t)count : rest);
    } else {
      RN_RETURN_IF_ERROR(part_of(text, is_utf8, begin, count, i, &part));
    }
    RN_RETURN_IF_ERROR(rn_text_set(out, i, part));
  }
  return RN_OK;
}

static rn_status_t substr(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *from = rn_in(ctx, 1), *size = rn_in(ctx, 2);
  const bool is_utf8 = *(const bool*)ctx->state;
  if (!rn_tensor_same_shape(from, size))
    return rn_invalid_argument("pos and len should have the same shape, got: %s vs. %s",
                               rn_text_of(from).text, rn_text_of(size).text);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(substr_shape(input, from, dims, &shape));
  const bool is_plain = from->rank == 0 || rn_tensor_same_shape(input, from);
  if (!is_plain && shape.rank > 2)
    return rn_unimplemented("Substr broadcast not implemented for %d dimensions", shape.rank);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (is_plain) return substr_each(input, from, size, is_utf8, out);
  int64_t text_steps[2], part_steps[2];
  broadcast_steps(input, shape.rank, text_steps);
  broadcast_steps(from, shape.rank, part_steps);
  const int64_t columns = dims[shape.rank - 1];
  for (int64_t i = 0; i < out->count; ++i) {
    int64_t row = i / columns, column = i % columns;  // row 0 alone if there is one dimension
    int64_t t = (shape.rank == 2 ? row * text_steps[0] : 0) + column * text_steps[shape.rank - 1];
    int64_t p = (shape.rank == 2 ? row * part_steps[0] : 0) + column * part_steps[shape.rank - 1];
    rn_str_t part;
    RN_RETURN_IF_ERROR(
        part_of(rn_text_at(input, t), is_utf8, rn_int_at(from, p), rn_int_at(size, p), i, &part));
    RN_RETURN_IF_ERROR(rn_text_set(out, i, part));
  }
  return RN_OK;
}

// Base64 with the URL-safe alphabet (RFC 4648, section 5).
static rn_status_t encode_one(rn_str_t text, bool pads, rn_tstring_t* out) {
  char* to = rn_tstring_resize(out, rn_base64_encoded_size(text.size, pads));
  if (!to) return rn_out_of_memory();
  rn_base64_encode(text, RN_BASE64_URL, pads, to);
  return RN_OK;
}

static rn_status_t decode_one(rn_str_t text, rn_tstring_t* out) {
  // Padding is optional, and only a full group may have it.
  if (text.size && text.size % 4 == 0) {
    if (text.data[text.size - 1] == '=') text.size--;
    if (text.size % 4 == 3 && text.data[text.size - 1] == '=') text.size--;
  }
  if (text.size % 4 == 1 && !memchr(text.data, '=', text.size))
    return rn_invalid_argument("Base64 string length cannot be 1 modulo 4.");
  size_t size;
  char* to = rn_tstring_resize(out, rn_base64_decoded_size(text.size));
  if (!to) return rn_out_of_memory();
  return rn_base64_decode(text, RN_BASE64_URL, to, &size)
             ? RN_OK
             : rn_invalid_argument("Invalid character found in base64.");
}

static rn_status_t pad_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_bool(init, "pad");
  return RN_OK;
}

static rn_status_t encode_base64(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(output_like_input(ctx, &out));
  for (int64_t i = 0; i < input->count; ++i)
    RN_RETURN_IF_ERROR(
        encode_one(rn_text_at(input, i), *(const bool*)ctx->state, &RN_DATA(out, rn_tstring_t)[i]));
  return RN_OK;
}

static rn_status_t decode_base64(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(output_like_input(ctx, &out));
  for (int64_t i = 0; i < input->count; ++i)
    RN_RETURN_IF_ERROR(decode_one(rn_text_at(input, i), &RN_DATA(out, rn_tstring_t)[i]));
  return RN_OK;
}

#define PLAIN(name, function) \
  { .op = name, .device = "CPU", .compute = function }
#define WITH(name, type, init_, function) \
  { .op = name, .device = "CPU", .state_size = sizeof(type), .init = init_, .compute = function }
#define CASE(name)                                                                \
  {                                                                               \
    .op = name, .device = "CPU", .state_size = sizeof(case_t), .init = case_init, \
    .destroy = case_destroy, .compute = change_case                               \
  }

static const rn_kernel_def_t rows[] = {
    CASE("StringLower"),
    CASE("StringUpper"),
    PLAIN("StringStrip", strip),
    WITH("StringLength", bool, unit_init, length),
    WITH("Substr", bool, unit_init, substr),
    WITH("EncodeBase64", bool, pad_init, encode_base64),
    PLAIN("DecodeBase64", decode_base64),
};
RN_KERNEL_FAMILY(cpu_string, rows);
