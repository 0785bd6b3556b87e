// Parses the text format by recursive descent, with a limit on the depth.
#include <math.h>

#include "wire/encode.h"
#include "wire/text.h"

typedef struct rn_pb_parser_t {
  const rn_pb_message_desc_t* root;
  rn_arena_t* arena;
  const char* start;
  const char* p;
  const char* end;
  size_t budget;   // arena bytes left
  uint32_t depth;  // nesting levels left
} rn_pb_parser_t;

static rn_status_t parse_fields(rn_pb_parser_t* s, const rn_pb_message_desc_t* desc, char close,
                                char* message);

#define RN_PB_NAME_MAX 80  // the most characters of a name quoted in an error

// Makes an error at |at|; lines are counted only now.
static rn_status_t error_at(rn_pb_parser_t* s, const char* at, const char* what, rn_str_t name) {
  size_t line = 1, column = 1;
  for (const char* c = s->start; c != at; ++c, ++column) {
    if (*c == '\n') {
      ++line;
      column = 0;
    }
  }
  if (name.size > RN_PB_NAME_MAX) name.size = RN_PB_NAME_MAX;
  rn_status_t status = rn_invalid_argument("Error parsing text-format %s: %zu:%zu: %s",
                                           s->root->name, line, column, what);
  return name.data ? rn_status_annotate(status, " \"%.*s\".", RN_STR_ARGS(name)) : status;
}

static rn_status_t error_here(rn_pb_parser_t* s, const char* what) {
  return error_at(s, s->p, what, (rn_str_t){0});
}

static rn_status_t take(rn_pb_parser_t* s, size_t size, void** out) {
  if (size > s->budget) {
    return rn_resource_exhausted("%s: parsing takes more memory than allowed", s->root->name);
  }
  s->budget -= size;
  return rn_arena_alloc(s->arena, size, out);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip_blanks(rn_pb_parser_t* s) {
  while (s->p != s->end) {
    if (*s->p == '#') {
      while (s->p != s->end && *s->p != '\n') ++s->p;
    } else if (*s->p == ' ' || (*s->p >= '\t' && *s->p <= '\r')) {
      ++s->p;
    } else {
      return;
    }
  }
}

// Consumes |c| if it comes next; returns whether it did.
static bool accept(rn_pb_parser_t* s, char c) {
  skip_blanks(s);
  if (s->p == s->end || *s->p != c) return false;
  ++s->p;
  return true;
}

static rn_str_t take_name(rn_pb_parser_t* s) {
  skip_blanks(s);
  const char* start = s->p;
  if (s->p != s->end && is_letter(*s->p)) {
    while (s->p != s->end && (is_letter(*s->p) || is_digit(*s->p))) ++s->p;
  }
  return rn_str_n(start, (size_t)(s->p - start));
}

// Takes a number or a word, with an optional sign.
static rn_str_t take_scalar(rn_pb_parser_t* s, bool* out_negative) {
  *out_negative = accept(s, '-');
  skip_blanks(s);
  const char* start = s->p;
  bool hex = s->end - start > 1 && start[0] == '0' && (start[1] | 0x20) == 'x';
  while (s->p != s->end) {
    bool exponent = s->p != start && !hex && (s->p[-1] | 0x20) == 'e';
    bool sign = exponent && (*s->p == '+' || *s->p == '-');
    if (!is_letter(*s->p) && !is_digit(*s->p) && *s->p != '.' && !sign) break;
    ++s->p;
  }
  return rn_str_n(start, (size_t)(s->p - start));
}

static int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// Parses a whole decimal, 0x or 0-octal number.
static bool to_uint(rn_str_t text, uint64_t* out) {
  size_t i = 0;
  uint64_t value = 0, base = 10;
  if (text.size > 2 && text.data[0] == '0' && (text.data[1] == 'x' || text.data[1] == 'X')) {
    base = 16;
    i = 2;
  } else if (text.size > 1 && text.data[0] == '0') {
    base = 8;
    i = 1;
  }
  if (i == text.size) return false;
  for (; i < text.size; ++i) {
    uint64_t digit = (uint64_t)digit_value(text.data[i]);
    if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
  }
  *out = value;
  return true;
}

// The value as two's complement; false if it does not fit |bits| bits, signed or not.
static bool to_int(rn_str_t text, bool negative, unsigned bits, bool is_signed, uint64_t* out) {
  uint64_t value = 0;
  if (!to_uint(text, &value)) return false;
  uint64_t most = UINT64_MAX >> (64 - bits);
  if (is_signed) most >>= 1;
  if (negative && !is_signed && value) return false;
  if (value > most + (negative && is_signed)) return false;
  *out = negative ? 0 - value : value;
  return true;
}

static bool word_is(rn_str_t text, const char* lower) {
  size_t size = strlen(lower);
  if (text.size != size) return false;
  for (size_t i = 0; i < size; ++i) {
    if ((text.data[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

static bool to_real(rn_str_t text, double* out) {
  if (word_is(text, "inf") || word_is(text, "infinity")) {
    *out = INFINITY;
    return true;
  }
  if (word_is(text, "nan")) {
    *out = NAN;
    return true;
  }
  if (text.size && (text.data[text.size - 1] | 0x20) == 'f') --text.size;
  return rn_str_to_f64(text, out);
}

static bool to_bool(rn_str_t text, bool* out) {
  static const char* const words[2][4] = {{"false", "False", "f", "0"}, {"true", "True", "t", "1"}};
  for (int value = 0; value < 2; ++value) {
    for (int i = 0; i < 4; ++i) {
      if (rn_str_is(text, words[value][i])) {
        *out = value;
        return true;
      }
    }
  }
  return false;
}

static bool store_number(const rn_pb_field_desc_t* field, rn_str_t text, bool negative,
                         char* slot) {
  uint64_t bits = 0;
  double real = 0;
  switch (field->type) {
    case RN_PB_DOUBLE:
    case RN_PB_FLOAT:
      if (!to_real(text, &real)) return false;
      if (negative) real = -real;
      if (field->type == RN_PB_DOUBLE) {
        *(double*)slot = real;
      } else {
        *(float*)slot = (float)real;
      }
      return true;
    case RN_PB_BOOL:
      return !negative && to_bool(text, (bool*)slot);
    case RN_PB_INT64:
    case RN_PB_SINT64:
    case RN_PB_SFIXED64:
      if (!to_int(text, negative, 64, true, &bits)) return false;
      *(int64_t*)slot = (int64_t)bits;
      return true;
    case RN_PB_UINT64:
    case RN_PB_FIXED64:
      return to_int(text, negative, 64, false, (uint64_t*)slot);
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
      if (!to_int(text, negative, 32, false, &bits)) return false;
      *(uint32_t*)slot = (uint32_t)bits;
      return true;
    case RN_PB_ENUM:
      if (!negative && rn_pb_enum_number(field->sub, text, (int32_t*)slot)) return true;
      break;
    default:
      break;
  }
  if (!to_int(text, negative, 32, true, &bits)) return false;
  *(int32_t*)slot = (int32_t)(uint32_t)bits;
  return true;
}

// Writes |code| as UTF-8 (or only counts); 0 if it is not a character.
static size_t put_utf8(uint32_t code, char* out) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  if (!out) return size;
  if (size == 1) {
    out[0] = (char)code;
    return 1;
  }
  for (size_t i = size - 1; i > 0; --i, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)(0xf0 << (4 - size) | code);
  return size;
}

// Reads up to |most| digits of |base|; returns how many there were.
static size_t take_digits(rn_pb_parser_t* s, size_t most, int base, uint32_t* out) {
  size_t count = 0;
  *out = 0;
  while (count < most && s->p != s->end && digit_value(*s->p) < base) {
    *out = *out * (uint32_t)base + (uint32_t)digit_value(*s->p++);
    ++count;
  }
  return count;
}

// Takes an escape after its backslash, writes its bytes to |out| unless NULL, and returns their
// number; 0 if malformed.
static size_t take_escape(rn_pb_parser_t* s, char* out) {
  static const char names[] = "nrtabfv\\'\"?", values[] = "\n\r\t\a\b\f\v\\'\"?";
  if (s->p == s->end) return 0;
  uint32_t code = 0;
  char c = *s->p;
  if (c >= '0' && c <= '7') {
    take_digits(s, 3, 8, &code);
    if (code > 0xff) return 0;
  } else if (c == 'x' || c == 'X') {
    ++s->p;
    if (take_digits(s, 2, 16, &code) == 0) return 0;
  } else if (c == 'u' || c == 'U') {
    ++s->p;
    size_t digits = c == 'u' ? 4 : 8;
    return take_digits(s, digits, 16, &code) == digits ? put_utf8(code, out) : 0;
  } else {
    const char* name = c ? strchr(names, c) : NULL;
    if (!name) return 0;
    code = (uint32_t)(unsigned char)values[name - names];
    ++s->p;
  }
  if (out) *out = (char)code;
  return 1;
}

// Reads adjacent quoted strings into |out|, or only counts their bytes when it is NULL.
static rn_status_t scan_strings(rn_pb_parser_t* s, char* out, size_t* out_size) {
  size_t size = 0;
  skip_blanks(s);
  if (s->p == s->end || (*s->p != '"' && *s->p != '\'')) {
    return error_here(s, "Expected string.");
  }
  while (s->p != s->end && (*s->p == '"' || *s->p == '\'')) {
    char quote = *s->p++;
    while (s->p != s->end && *s->p != quote) {
      if (*s->p == '\n') return error_here(s, "String literals cannot cross line boundaries.");
      char c = *s->p++;
      if (c == '\\') {
        size_t bytes = take_escape(s, out ? out + size : NULL);
        if (bytes == 0) return error_here(s, "Invalid escape sequence in string literal.");
        size += bytes;
      } else {
        if (out) out[size] = c;
        ++size;
      }
    }
    if (s->p == s->end) return error_here(s, "Unexpected end of string.");
    ++s->p;
    skip_blanks(s);
  }
  *out_size = size;
  return RN_OK;
}

static rn_status_t parse_string(rn_pb_parser_t* s, rn_str_t* out) {
  const char* start = s->p;
  size_t size = 0;
  void* data = NULL;
  RN_RETURN_IF_ERROR(scan_strings(s, NULL, &size));
  RN_RETURN_IF_ERROR(take(s, size + 1, &data));
  s->p = start;
  RN_RETURN_IF_ERROR(scan_strings(s, data, &size));
  *out = rn_str_n(data, size);
  return RN_OK;
}

static rn_status_t parse_message(rn_pb_parser_t* s, const rn_pb_message_desc_t* desc,
                                 char* message) {
  char close = accept(s, '{') ? '}' : accept(s, '<') ? '>' : 0;
  if (!close) return error_here(s, "Expected \"{\".");
  if (s->depth == 0) return error_here(s, "Message is too deep.");
  --s->depth;
  RN_RETURN_IF_ERROR(parse_fields(s, desc, close, message));
  ++s->depth;
  if (!desc->is_map_entry) return RN_OK;
  // An omitted value is the empty message.
  const rn_pb_field_desc_t* value = &desc->fields[1];
  rn_pb_message_t* slot = (rn_pb_message_t*)(message + value->offset);
  if (value->type != RN_PB_MESSAGE || *slot) return RN_OK;
  void* empty = NULL;
  RN_RETURN_IF_ERROR(take(s, ((const rn_pb_message_desc_t*)value->sub)->size, &empty));
  *slot = empty;
  return RN_OK;
}

static rn_status_t parse_scalar(rn_pb_parser_t* s, const rn_pb_field_desc_t* field, char* slot) {
  skip_blanks(s);
  const char* at = s->p;
  bool negative = false;
  rn_str_t text = take_scalar(s, &negative);
  if (text.size && store_number(field, text, negative, slot)) return RN_OK;
  return error_at(s, at, "Invalid value for field", rn_str(field->name));
}

// Parses one value into |slot|, an element of a list or a member of the struct.
static rn_status_t parse_value(rn_pb_parser_t* s, const rn_pb_field_desc_t* field, char* slot) {
  if (field->type == RN_PB_STRING || field->type == RN_PB_BYTES) {
    return parse_string(s, (rn_str_t*)slot);
  }
  if (field->type != RN_PB_MESSAGE) return parse_scalar(s, field, slot);
  if (!(field->flags & RN_PB_REPEATED)) {
    void* message = NULL;
    RN_RETURN_IF_ERROR(take(s, ((const rn_pb_message_desc_t*)field->sub)->size, &message));
    *(rn_pb_message_t*)slot = message;
    slot = message;
  }
  return parse_message(s, field->sub, slot);
}

static rn_status_t parse_element(rn_pb_parser_t* s, const rn_pb_field_desc_t* field,
                                 rn_pb_list_t* list) {
  size_t size = rn_pb_element_size(field), bytes = 0;
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? 2 * (size_t)list->capacity : 2;
    void* items = NULL;
    if (capacity > UINT32_MAX || !rn_mul_ok(capacity, size, &bytes)) {
      return rn_resource_exhausted("%s: a repeated field is too long", s->root->name);
    }
    RN_RETURN_IF_ERROR(take(s, bytes, &items));
    if (list->count) memcpy(items, list->items, list->count * size);
    list->items = items;
    list->capacity = (uint32_t)capacity;
  }
  RN_RETURN_IF_ERROR(parse_value(s, field, (char*)list->items + list->count * size));
  ++list->count;
  return RN_OK;
}

static rn_status_t parse_list(rn_pb_parser_t* s, const rn_pb_field_desc_t* field,
                              rn_pb_list_t* list) {
  if (!accept(s, '[')) return parse_element(s, field, list);
  if (accept(s, ']')) return RN_OK;
  do {
    RN_RETURN_IF_ERROR(parse_element(s, field, list));
  } while (accept(s, ','));
  return accept(s, ']') ? RN_OK : error_here(s, "Expected \"]\".");
}

static rn_status_t parse_single(rn_pb_parser_t* s, const rn_pb_message_desc_t* desc,
                                const rn_pb_field_desc_t* field, const char* at, char* message) {
  if (rn_pb_is_set(field, message)) {
    return error_at(s, at, "Non-repeated field is specified multiple times:", rn_str(field->name));
  }
  if (field->flags & RN_PB_ONEOF) {
    int32_t* which = (int32_t*)(message + field->presence);
    const rn_pb_field_desc_t* other = *which ? rn_pb_find_field(desc, (uint32_t)*which) : NULL;
    if (other) {
      return error_at(
          s, at, "Another member of the same oneof was specified already:", rn_str(other->name));
    }
    *which = (int32_t)field->number;
  } else if (field->flags & RN_PB_OPTIONAL) {
    *(bool*)(message + field->presence) = true;
  }
  return parse_value(s, field, message + field->offset);
}

// A group may have the name of its type, which begins with a capital letter.
static const rn_pb_field_desc_t* find_group(const rn_pb_message_desc_t* desc, rn_str_t name) {
  for (size_t i = 0; i < desc->field_count; ++i) {
    const rn_pb_field_desc_t* field = &desc->fields[i];
    if (field->wire != RN_PB_WIRE_GROUP) continue;
    const char* type = ((const rn_pb_message_desc_t*)field->sub)->name;
    const char* dot = strrchr(type, '.');
    if (rn_str_is(name, dot ? dot + 1 : type)) return field;
  }
  return NULL;
}

static rn_status_t parse_field(rn_pb_parser_t* s, const rn_pb_message_desc_t* desc, char* message) {
  const char* at = s->p;
  rn_str_t name = take_name(s);
  if (name.size == 0) return error_here(s, "Expected identifier.");
  const rn_pb_field_desc_t* field = rn_pb_find_field_by_name(desc, name);
  if (!field) field = find_group(desc, name);
  if (!field) {
    rn_status_t status = error_at(s, at, "Message type has no field named", name);
    return rn_status_annotate(status, " (%s)", desc->name);
  }
  if (!accept(s, ':') && field->type != RN_PB_MESSAGE) return error_here(s, "Expected \":\".");
  if (field->flags & RN_PB_REPEATED) {
    RN_RETURN_IF_ERROR(parse_list(s, field, (rn_pb_list_t*)(message + field->offset)));
  } else {
    RN_RETURN_IF_ERROR(parse_single(s, desc, field, at, message));
  }
  if (!accept(s, ',')) accept(s, ';');
  return RN_OK;
}

// Parses `[url] { … }`, the content of an Any, and stores it as bytes.
static rn_status_t parse_any(rn_pb_parser_t* s, const rn_pb_message_desc_t* desc, char* message) {
  const char* at = ++s->p;
  while (s->p != s->end && *s->p != ']' && *s->p != '\n') ++s->p;
  rn_str_t url = rn_str_trim(rn_str_n(at, (size_t)(s->p - at)));
  const rn_pb_message_desc_t* inner = rn_pb_find_by_url(url);
  if (s->p == s->end || *s->p != ']') return error_here(s, "Expected \"]\".");
  if (!inner) return error_at(s, at, "Could not find type", url);
  ++s->p;
  accept(s, ':');
  void *held = NULL, *bytes = NULL, *name = NULL;
  RN_RETURN_IF_ERROR(take(s, inner->size, &held));
  RN_RETURN_IF_ERROR(parse_message(s, inner, held));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, s->arena->allocator);
  rn_status_t status = rn_pb_encode(inner, held, NULL, &buf);
  if (rn_ok(status)) status = take(s, buf.size + 1, &bytes);
  if (rn_ok(status)) status = take(s, url.size + 1, &name);
  if (rn_ok(status)) {
    if (buf.size) memcpy(bytes, buf.data, buf.size);
    memcpy(name, url.data, url.size);
    *(rn_str_t*)(message + desc->fields[0].offset) = rn_str_n(name, url.size);
    *(rn_str_t*)(message + desc->fields[1].offset) = rn_str_n(bytes, buf.size);
  }
  rn_strbuf_clear(&buf);
  if (!accept(s, ',')) accept(s, ';');
  return status;
}

// Parses fields up to |close|, or to the end of the text if it is 0.
static rn_status_t parse_fields(rn_pb_parser_t* s, const rn_pb_message_desc_t* desc, char close,
                                char* message) {
  for (;;) {
    skip_blanks(s);
    if (s->p == s->end) {
      return close ? error_here(s, "The text ends inside a message.") : RN_OK;
    }
    if (close && accept(s, close)) return RN_OK;
    if (*s->p == '[' && strcmp(desc->name, RN_PB_ANY) == 0) {
      RN_RETURN_IF_ERROR(parse_any(s, desc, message));
      continue;
    }
    RN_RETURN_IF_ERROR(parse_field(s, desc, message));
  }
}

rn_status_t rn_pb_parse(const rn_pb_message_desc_t* desc, rn_str_t text,
                        const rn_pb_limits_t* limits, rn_arena_t* arena, void** out_message) {
  *out_message = NULL;
  rn_pb_limits_t limit = rn_pb_limits_fill(limits, text.size);
  if (text.size > limit.max_bytes) {
    return rn_resource_exhausted("%s: %zu bytes, at most %zu are allowed", desc->name, text.size,
                                 limit.max_bytes);
  }
  if (text.size == 0) text.data = "";
  if (!text.data) return rn_invalid_argument("%s: no text", desc->name);
  rn_pb_parser_t parser = {.root = desc,
                           .arena = arena,
                           .start = text.data,
                           .p = text.data,
                           .end = text.data + text.size,
                           .budget = limit.max_arena_bytes,
                           .depth = limit.max_depth};
  void* message = NULL;
  RN_RETURN_IF_ERROR(take(&parser, desc->size, &message));
  RN_RETURN_IF_ERROR(parse_fields(&parser, desc, 0, message));
  *out_message = message;
  return RN_OK;
}
