// The cursor of json.h: containers, single values, strings.
#include "base/utf8.h"
#include "serve/front/json_internal.h"

rn_json_reader_t rn_json_reader(rn_str_t text, rn_arena_t* arena) {
  const char* begin = text.size ? text.data : "";
  return (rn_json_reader_t){
      .begin = begin, .next = begin, .end = begin + text.size, .arena = arena};
}

rn_status_t rn_json_bad(const rn_json_reader_t* json, const char* at, const char* what) {
  return rn_invalid_argument("JSON Parse error: %s at offset: %td", what, at - json->begin);
}

rn_status_t rn_json_bad_value(const rn_json_reader_t* json) {
  bool is_empty = json->next == json->end && rn_json_blank(json->begin, json->end) == json->end;
  return rn_json_bad(json, json->next, is_empty ? "The document is empty." : "Invalid value.");
}

rn_json_kind_t rn_json_kind(rn_json_reader_t* json) {
  json->next = rn_json_blank(json->next, json->end);
  if (json->next == json->end) return RN_JSON_BAD;
  switch (*json->next) {
    case 'n':
      return RN_JSON_NULL;
    case 't':
      return RN_JSON_TRUE;
    case 'f':
      return RN_JSON_FALSE;
    case '{':
      return RN_JSON_OBJECT;
    case '[':
      return RN_JSON_ARRAY;
    case '"':
      return RN_JSON_STRING;
    case '-':
    case 'N':
    case 'I':
      return RN_JSON_NUMBER;
    default:
      return *json->next >= '0' && *json->next <= '9' ? RN_JSON_NUMBER : RN_JSON_BAD;
  }
}

const char* rn_json_kind_name(rn_json_kind_t kind) {
  static const char* const names[] = {"Invalid", "Null",  "False",  "True",
                                      "Object",  "Array", "String", "Number"};
  return names[kind];
}

rn_status_t rn_json_wrong_kind(rn_json_reader_t* json, const char* expected) {
  rn_json_reader_t copy = *json;
  RN_RETURN_IF_ERROR(rn_json_skip(&copy));  // text that is no JSON is the worse error
  rn_json_kind_t kind = rn_json_kind(json);
  if (kind == RN_JSON_BAD) return rn_json_bad_value(json);
  return rn_json_error(json, "Type: %s is not of expected type: %s", rn_json_kind_name(kind),
                       expected);
}

static rn_status_t open_container(rn_json_reader_t* json, rn_json_kind_t kind, const char* name) {
  if (rn_json_kind(json) != kind) return rn_json_wrong_kind(json, name);
  ++json->next;
  json->is_first = true;
  return RN_OK;
}

rn_status_t rn_json_open_object(rn_json_reader_t* json) {
  return open_container(json, RN_JSON_OBJECT, "object");
}
rn_status_t rn_json_open_array(rn_json_reader_t* json) {
  return open_container(json, RN_JSON_ARRAY, "array");
}

bool rn_json_next_element(rn_json_reader_t* json, rn_status_t* out_status) {
  *out_status = RN_OK;
  const char* p = rn_json_blank(json->next, json->end);
  bool is_end = p != json->end && *p == ']';
  bool is_comma = !json->is_first && p != json->end && *p == ',';
  json->next = p + (is_end || is_comma);
  if (!is_end && !is_comma && !json->is_first)
    *out_status = rn_json_bad(json, p, "Missing a comma or ] after an array element.");
  json->is_first = false;
  return !is_end && rn_ok(*out_status);
}

// Reads the name and the colon of a member; |out_key| NULL: only checks it.
static rn_status_t read_key(rn_json_reader_t* json, rn_str_t* out_key) {
  if (json->next == json->end || *json->next != '"')
    return rn_json_bad(json, json->next, "Missing a name for object member.");
  RN_RETURN_IF_ERROR(out_key ? rn_json_string(json, out_key) : rn_json_skip_string(json));
  json->next = rn_json_blank(json->next, json->end);
  if (json->next == json->end || *json->next != ':')
    return rn_json_bad(json, json->next, "Missing a colon after a name of object member.");
  ++json->next;
  return RN_OK;
}

static bool next_member(rn_json_reader_t* json, rn_str_t* out_key, rn_status_t* out_status) {
  *out_status = RN_OK;
  const char* p = rn_json_blank(json->next, json->end);
  bool is_end = p != json->end && *p == '}';
  if (is_end) {
    json->next = p + 1;
  } else if (!json->is_first && (p == json->end || *p != ',')) {
    *out_status = rn_json_bad(json, p, "Missing a comma or } after an object member.");
  } else {
    json->next = rn_json_blank(p + !json->is_first, json->end);
    *out_status = read_key(json, out_key);
  }
  json->is_first = false;
  return !is_end && rn_ok(*out_status);
}

bool rn_json_next_member(rn_json_reader_t* json, rn_str_t* out_key, rn_status_t* out_status) {
  return next_member(json, out_key, out_status);
}
bool rn_json_next_any_member(rn_json_reader_t* json, rn_status_t* out_status) {
  return next_member(json, NULL, out_status);
}

// Moves behind |word| if it is there.
static bool take(rn_json_reader_t* json, const char* word) {
  size_t size = strlen(word);
  if ((size_t)(json->end - json->next) < size || memcmp(json->next, word, size) != 0) return false;
  json->next += size;
  return true;
}

rn_status_t rn_json_word(rn_json_reader_t* json, const char* word) {
  const char* at = json->next;
  return take(json, word) ? RN_OK : rn_json_bad(json, at, "Invalid value.");
}

rn_status_t rn_json_bool(rn_json_reader_t* json, bool* out) {
  rn_json_kind_t kind = rn_json_kind(json);
  if (kind != RN_JSON_TRUE && kind != RN_JSON_FALSE) return rn_json_wrong_kind(json, "bool");
  *out = kind == RN_JSON_TRUE;
  return rn_json_word(json, *out ? "true" : "false");
}

rn_status_t rn_json_special(rn_json_reader_t* json, double* out) {
  const char* at = json->next;
  bool is_negative = take(json, "-");
  if (take(json, "NaN")) {
    *out = __builtin_nan("");  // its sign has no meaning
    return RN_OK;
  }
  if (take(json, "Infinity") || take(json, "Inf"))
    *out = __builtin_inf();
  else
    return rn_json_bad(json, at, "Invalid value.");
  if (is_negative) *out = -*out;
  return RN_OK;
}

rn_status_t rn_json_bad_decimal(const rn_json_reader_t* json, rn_decimal_error_t error,
                                const rn_decimal_t* decimal) {
  return rn_json_bad(json, decimal->end,
                     error == RN_DECIMAL_NO_FRACTION   ? "Miss fraction part in number."
                     : error == RN_DECIMAL_NO_EXPONENT ? "Miss exponent in number."
                                                       : "Invalid value.");
}

rn_status_t rn_json_too_big(const rn_json_reader_t* json, const rn_decimal_t* decimal) {
  return rn_json_bad(json, decimal->begin, "Number too big to be stored in double.");
}

rn_status_t rn_json_double(rn_json_reader_t* json, double* out) {
  if (rn_json_kind(json) != RN_JSON_NUMBER) return rn_json_wrong_kind(json, "double");
  rn_decimal_t decimal;
  rn_decimal_error_t error = rn_decimal_scan(json->next, json->end, &decimal);
  if (error == RN_DECIMAL_BAD) return rn_json_special(json, out);
  if (error) return rn_json_bad_decimal(json, error, &decimal);
  *out = rn_decimal_to_double(&decimal);
  if (__builtin_isinf(*out)) return rn_json_too_big(json, &decimal);
  json->next = decimal.end;
  return RN_OK;
}

rn_status_t rn_json_int(rn_json_reader_t* json, int64_t* out) {
  rn_decimal_t decimal;
  if (rn_json_kind(json) != RN_JSON_NUMBER ||
      rn_decimal_scan(json->next, json->end, &decimal) != RN_DECIMAL_OK ||
      !rn_decimal_to_int(&decimal, out))
    return rn_json_wrong_kind(json, "int64");
  json->next = decimal.end;
  return RN_OK;
}

// Reads the four digits of a \u escape at |p|; false if there are none.
static bool read_hex(const char* p, const char* end, uint32_t* out) {
  *out = 0;
  if (end - p < 4) return false;
  for (int i = 0; i < 4; ++i) {
    int digit = rn_json_hex_digit(p[i]);
    if (digit < 0) return false;
    *out = *out << 4 | (uint32_t)digit;
  }
  return true;
}

// Reads the escape at |*inout|, behind its backslash, to |*inout_to|.
static rn_status_t read_escape(const rn_json_reader_t* json, const char** inout, char** inout_to) {
  static const char letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
  const char *at = *inout - 1, *p = *inout;
  if (p == json->end) return rn_json_bad(json, at, "Missing a closing quotation mark in string.");
  for (const char* letter = letters; *letter; letter += 2) {
    if (*letter != *p) continue;
    *(*inout_to)++ = letter[1];
    *inout = p + 1;
    return RN_OK;
  }
  if (*p != 'u') return rn_json_bad(json, at, "Invalid escape character in string.");
  uint32_t code, low;
  if (!read_hex(p + 1, json->end, &code))
    return rn_json_bad(json, at, "Incorrect hex digit after \\u escape in string.");
  p += 5;
  if (code >= 0xD800 && code < 0xE000) {
    if (code >= 0xDC00 || json->end - p < 6 || p[0] != '\\' || p[1] != 'u')
      return rn_json_bad(json, at, "The surrogate pair in string is invalid.");
    if (!read_hex(p + 2, json->end, &low))
      return rn_json_bad(json, at, "Incorrect hex digit after \\u escape in string.");
    if (low < 0xDC00 || low >= 0xE000)
      return rn_json_bad(json, at, "The surrogate pair in string is invalid.");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    p += 6;
  }
  *inout_to += rn_utf8_encode(code, *inout_to);
  *inout = p;
  return RN_OK;
}

// Whether one of the eight bytes of |word| ends a plain run: a quote, a backslash, a control
// character, or a byte beyond ASCII.
static inline bool is_special(uint64_t word) {
  const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
  uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
  return ((quote - ones) | (slash - ones) | (word - ones * 0x20) | word) & high;
}

// Moves over ASCII without quotes, backslashes and control characters.
static const char* plain_run(const char* p, const char* end) {
  for (uint64_t word; end - p >= 8; p += 8) {
    memcpy(&word, p, sizeof word);
    if (is_special(word)) break;
  }
  while (p != end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' &&
         *p != '\\')
    ++p;
  return p;
}

// Checks the string at the cursor; |*out_raw| is between its quotes.
static rn_status_t scan_string(rn_json_reader_t* json, rn_str_t* out_raw, bool* out_escapes) {
  const char *first = json->next + 1, *p = first;
  *out_escapes = false;
  for (;;) {
    p = plain_run(p, json->end);
    if (p == json->end) return rn_json_bad(json, p, "Missing a closing quotation mark in string.");
    unsigned char c = (unsigned char)*p;
    if (c == '"') break;
    if (c == '\\') {
      char unused[4], *to = unused;
      *out_escapes = true;
      ++p;
      RN_RETURN_IF_ERROR(read_escape(json, &p, &to));
      continue;
    }
    uint32_t code = RN_UTF8_BAD;
    const char* at = p;
    if (c >= 0x80) p += rn_utf8_decode(rn_str_n(p, (size_t)(json->end - p)), &code);
    if (code == RN_UTF8_BAD) return rn_json_bad(json, at, "Invalid encoding in string.");
  }
  *out_raw = rn_str_n(first, (size_t)(p - first));
  json->next = p + 1;
  return RN_OK;
}

rn_status_t rn_json_skip_string(rn_json_reader_t* json) {
  rn_str_t raw;
  bool escapes;
  return scan_string(json, &raw, &escapes);
}

rn_status_t rn_json_string(rn_json_reader_t* json, rn_str_t* out) {
  if (rn_json_kind(json) != RN_JSON_STRING) return rn_json_wrong_kind(json, "string");
  bool escapes;
  RN_RETURN_IF_ERROR(scan_string(json, out, &escapes));
  if (!escapes) return RN_OK;
  // Decoded text is never longer than its escapes.
  char *text = NULL, *to;
  RN_RETURN_IF_ERROR(rn_arena_alloc(json->arena, out->size, (void**)&text));
  to = text;
  for (const char *p = out->data, *end = p + out->size; p != end;) {
    if (*p != '\\') {
      *to++ = *p++;
      continue;
    }
    ++p;
    RN_RETURN_IF_ERROR(read_escape(json, &p, &to));
  }
  *out = rn_str_n(text, (size_t)(to - text));
  return RN_OK;
}
