// NumPy's .npy files: see npy.h.
#include "cli/npy.h"

#include <stdio.h>

#include "tensor/tstring.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define MAX_RANK 32     // NumPy's own
#define MAX_ITEM 65536  // bytes of one string

// X(NumPy's kind and size, our type). Files are written with the first row of a type.
#define NPY_TYPES(X)   \
  X("b1", BOOL)        \
  X("i1", INT8)        \
  X("i2", INT16)       \
  X("i4", INT32)       \
  X("i8", INT64)       \
  X("u1", UINT8)       \
  X("u2", UINT16)      \
  X("u4", UINT32)      \
  X("u8", UINT64)      \
  X("f2", HALF)        \
  X("f4", FLOAT)       \
  X("f8", DOUBLE)      \
  X("c8", COMPLEX64)   \
  X("c16", COMPLEX128) \
  X("V2", BFLOAT16)

static const struct {
  const char* code;
  rn_dtype_t dtype;
} types[] = {
#define ROW(code, name) {code, RN_##name},
    NPY_TYPES(ROW)
#undef ROW
};

typedef struct header_t {
  char order;  // '<', '>', '|' or '='
  char kind;   // 'f', 'i' … of the code
  rn_str_t code;
  bool is_fortran;
  bool has_descr, has_order, has_shape;
  int rank;
  int64_t dims[MAX_RANK];
} header_t;

static rn_status_t bad(const char* what) {
  return rn_invalid_argument("not an .npy file: %s", what);
}

static void skip_space(rn_str_t* at) {
  while (at->size && (*at->data == ' ' || *at->data == '\n' || *at->data == '\t'))
    *at = rn_str_n(at->data + 1, at->size - 1);
}

static bool take(rn_str_t* at, const char* word) {
  skip_space(at);
  if (!rn_str_starts_with(*at, rn_str(word))) return false;
  *at = rn_str_n(at->data + strlen(word), at->size - strlen(word));
  return true;
}

// 'text' or "text", without escapes: no key and no type code needs any.
static bool take_string(rn_str_t* at, rn_str_t* out) {
  skip_space(at);
  if (at->size < 2 || (*at->data != '\'' && *at->data != '"')) return false;
  const char* start = at->data + 1;
  const char* end = memchr(start, *at->data, at->size - 1);
  if (!end) return false;
  *out = rn_str_n(start, (size_t)(end - start));
  *at = rn_str_n(end + 1, at->size - out->size - 2);
  return true;
}

static bool take_shape(rn_str_t* at, header_t* header) {
  if (!take(at, "(")) return false;
  while (!take(at, ")")) {
    size_t digits = 0;
    skip_space(at);
    while (digits < at->size && at->data[digits] >= '0' && at->data[digits] <= '9') ++digits;
    if (header->rank == MAX_RANK || digits == 0 ||
        !rn_str_to_i64(rn_str_n(at->data, digits), &header->dims[header->rank]))
      return false;
    header->rank++;
    *at = rn_str_n(at->data + digits, at->size - digits);
    if (take(at, ",")) continue;
    return take(at, ")");
  }
  return true;
}

static rn_status_t take_entry(rn_str_t* at, header_t* header) {
  rn_str_t key, descr;
  if (!take_string(at, &key) || !take(at, ":")) return bad("the header is not a dictionary");
  if (rn_str_is(key, "descr")) {
    if (!take_string(at, &descr) || descr.size < 2)
      return bad("'descr' is not a single type; arrays of records are not supported");
    bool has_order = descr.data[0] && strchr("<>|=", descr.data[0]);
    header->order = has_order ? descr.data[0] : '=';
    header->code = has_order ? rn_str_n(descr.data + 1, descr.size - 1) : descr;
    header->kind = header->code.data[0];
    header->has_descr = true;
  } else if (rn_str_is(key, "fortran_order")) {
    header->is_fortran = take(at, "True");
    if (!header->is_fortran && !take(at, "False"))
      return bad("'fortran_order' is neither True nor False");
    header->has_order = true;
  } else if (rn_str_is(key, "shape")) {
    header->rank = 0;
    if (!take_shape(at, header)) return bad("'shape' is not a tuple of sizes");
    header->has_shape = true;
  } else {
    return bad("an unknown key in the header");
  }
  return RN_OK;
}

static rn_status_t parse_header(rn_str_t text, header_t* header) {
  *header = (header_t){0};
  if (!take(&text, "{")) return bad("the header is not a dictionary");
  while (!take(&text, "}")) {
    RN_RETURN_IF_ERROR(take_entry(&text, header));
    if (take(&text, ",")) continue;
    if (!take(&text, "}")) return bad("the header is not a dictionary");
    break;
  }
  if (!header->has_descr || !header->has_order || !header->has_shape)
    return bad("the header lacks 'descr', 'fortran_order' or 'shape'");
  if (header->is_fortran && header->rank > 1)
    return rn_invalid_argument(
        "the array is in Fortran order; save it with np.save(file, np.ascontiguousarray(a))");
  return RN_OK;
}

// Splits |bytes| into header and data.
static rn_status_t split(rn_str_t bytes, rn_str_t* out_header, rn_str_t* out_data) {
  if (bytes.size < 10 || memcmp(bytes.data, MAGIC, MAGIC_SIZE) != 0)
    return bad("it does not begin with \\x93NUMPY");
  const unsigned char* at = (const unsigned char*)bytes.data;
  int version = at[6];
  size_t start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3) return bad("its version is not 1, 2 or 3");
  if (bytes.size < start) return bad("it ends within the header");
  size_t length = (size_t)at[8] | (size_t)at[9] << 8;
  if (version > 1) length |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
  if (length > bytes.size - start) return bad("it ends within the header");
  *out_header = rn_str_n(bytes.data + start, length);
  *out_data = rn_str_n(bytes.data + start + length, bytes.size - start - length);
  return RN_OK;
}

static void swap_bytes(char* data, size_t count, size_t size) {
  for (size_t i = 0; i < count; ++i, data += size) {
    for (size_t b = 0; b < size / 2; ++b) {
      char low = data[b];
      data[b] = data[size - 1 - b];
      data[size - 1 - b] = low;
    }
  }
}

static size_t put_utf8(uint32_t c, char* out) {
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
  if (c < 0x10000) {
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 63));
    out[2] = (char)(0x80 | (c & 63));
    return 3;
  }
  out[0] = (char)(0xf0 | c >> 18);
  out[1] = (char)(0x80 | (c >> 12 & 63));
  out[2] = (char)(0x80 | (c >> 6 & 63));
  out[3] = (char)(0x80 | (c & 63));
  return 4;
}

// One string of |width| characters without trailing NULs. 'U' has 4 bytes per character.
static rn_status_t read_string(const header_t* header, const char* data, size_t width,
                               rn_strbuf_t* scratch, rn_tstring_t* out) {
  scratch->size = 0;
  if (header->kind == 'S') rn_strbuf_append_n(scratch, data, width);
  for (size_t i = 0; header->kind == 'U' && i < width; ++i) {
    uint32_t c;
    char utf8[4], *bytes = (char*)&c;
    memcpy(&c, data + 4 * i, 4);
    if (header->order == '>') swap_bytes(bytes, 1, 4);
    if (c > 0x10ffff) return bad("a character is not Unicode");
    rn_strbuf_append_n(scratch, utf8, put_utf8(c, utf8));
  }
  RN_RETURN_IF_ERROR(rn_strbuf_status(scratch));
  size_t size = scratch->size;
  while (size > 0 && scratch->data[size - 1] == '\0') --size;
  return rn_tstring_assign(out, scratch->data, size) ? RN_OK : rn_out_of_memory();
}

static rn_status_t read_strings(const header_t* header, rn_str_t data, rn_allocator_t allocator,
                                rn_tensor_t* out) {
  int64_t width;
  if (!rn_str_to_i64(rn_str_n(header->code.data + 1, header->code.size - 1), &width) || width < 0 ||
      width > MAX_ITEM)
    return rn_invalid_argument("strings of more than %d characters are not supported", MAX_ITEM);
  size_t item = (size_t)width * (header->kind == 'U' ? 4 : 1), total;
  rn_shape_t shape = {header->rank, header->dims};
  int64_t count;
  // Checks that the data is there before allocating memory for its elements. Empty strings have
  // none.
  if (!rn_shape_count(shape, &count) || !rn_mul_ok((size_t)count, item, &total) ||
      total != data.size || (item == 0 && count > MAX_ITEM))
    return bad("the size of its data does not fit its shape");
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, RN_STRING, shape, out));
  rn_strbuf_t scratch;
  rn_strbuf_init(&scratch, allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < out->count; ++i)
    status = read_string(header, data.data + (size_t)i * item, (size_t)width, &scratch,
                         &RN_DATA(out, rn_tstring_t)[i]);
  rn_strbuf_clear(&scratch);
  return status;
}

static rn_status_t read_numbers(const header_t* header, rn_str_t data, rn_allocator_t allocator,
                                rn_tensor_t* out) {
  rn_dtype_t dtype = RN_INVALID;
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
    if (rn_str_is(header->code, types[i].code)) dtype = types[i].dtype;
  if (dtype == RN_INVALID)
    return rn_invalid_argument("arrays of type '%c%.*s' are not supported", header->order,
                               RN_STR_ARGS(header->code));
  rn_shape_t shape = {header->rank, header->dims};
  int64_t count;
  size_t size = rn_dtype_size(dtype), total;
  if (!rn_shape_count(shape, &count) || !rn_mul_ok((size_t)count, size, &total) ||
      total != data.size)
    return bad("the size of its data does not fit its shape");
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, dtype, shape, out));
  if (total) memcpy(out->data, data.data, total);
  size_t part = rn_dtype_is_complex(dtype) ? size / 2 : size;
  if (header->order == '>') swap_bytes(out->data, total / part, part);
  for (size_t i = 0; dtype == RN_BOOL && i < total; ++i)
    if (RN_DATA(out, uint8_t)[i] > 1) return bad("a boolean is neither 0 nor 1");
  return RN_OK;
}

rn_status_t rn_npy_read(rn_str_t bytes, rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  rn_str_t text, data;
  header_t header;
  RN_RETURN_IF_ERROR(split(bytes, &text, &data));
  RN_RETURN_IF_ERROR(parse_header(text, &header));
  rn_status_t status = header.kind == 'S' || header.kind == 'U'
                           ? read_strings(&header, data, allocator, out)
                           : read_numbers(&header, data, allocator, out);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

static rn_status_t string_width(const rn_tensor_t* tensor, size_t* out) {
  *out = 1;
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(tensor, rn_tstring_t)[i]);
    if (text.size && text.data[text.size - 1] == '\0')
      return rn_unimplemented("an .npy file cannot hold a string that ends in NUL");
    if (text.size > MAX_ITEM)
      return rn_unimplemented("strings of more than %d bytes are not supported", MAX_ITEM);
    if (text.size > *out) *out = text.size;
  }
  return RN_OK;
}

static void write_strings(const rn_tensor_t* tensor, size_t width, rn_strbuf_t* out) {
  static const char zeros[64];
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(tensor, rn_tstring_t)[i]);
    rn_strbuf_append(out, text);
    for (size_t left = width - text.size; left > 0;) {
      size_t piece = left < sizeof zeros ? left : sizeof zeros;
      rn_strbuf_append_n(out, zeros, piece);
      left -= piece;
    }
  }
}

static rn_status_t type_code(const rn_tensor_t* tensor, size_t width, char code[16]) {
  if (tensor->dtype == RN_STRING) {
    snprintf(code, 16, "|S%zu", width);
    return RN_OK;
  }
  rn_dtype_t dtype = rn_dtype_stored(tensor->dtype);
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    if (types[i].dtype != dtype) continue;
    snprintf(code, 16, "%c%s", rn_dtype_size(dtype) == 1 ? '|' : '<', types[i].code);
    return RN_OK;
  }
  return rn_unimplemented("NumPy has no type for %s", rn_dtype_name(tensor->dtype));
}

rn_status_t rn_npy_write(const rn_tensor_t* tensor, rn_strbuf_t* out) {
  size_t width = 0;
  char code[16];
  if (tensor->dtype == RN_STRING) RN_RETURN_IF_ERROR(string_width(tensor, &width));
  RN_RETURN_IF_ERROR(type_code(tensor, width, code));
  rn_strbuf_t header;
  rn_strbuf_init(&header, out->allocator);
  rn_strbuf_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", code);
  for (int i = 0; i < tensor->rank; ++i)
    rn_strbuf_printf(&header, "%lld%s", (long long)rn_tensor_dim(tensor, i),
                     tensor->rank == 1      ? ","
                     : i + 1 < tensor->rank ? ", "
                                            : "");
  rn_strbuf_printf(&header, "), }");
  while ((10 + header.size + 1) % 64 != 0 && !header.failed) rn_strbuf_append(&header, RN_STR(" "));
  rn_strbuf_append(&header, RN_STR("\n"));
  rn_strbuf_append(out, RN_STR(MAGIC "\x01"));
  rn_strbuf_append_n(out, "\0", 1);
  unsigned char length[2] = {(unsigned char)(header.size & 255), (unsigned char)(header.size >> 8)};
  rn_strbuf_append_n(out, length, 2);
  rn_strbuf_append(out, rn_strbuf_view(&header));
  rn_status_t status = rn_strbuf_status(&header);
  rn_strbuf_clear(&header);
  RN_RETURN_IF_ERROR(status);
  if (tensor->dtype == RN_STRING)
    write_strings(tensor, width, out);
  else
    rn_strbuf_append_n(out, tensor->data, rn_tensor_bytes(tensor));
  return rn_strbuf_status(out);
}
