// Bytes in JSON: {"b64": "<base64>"}, with the standard alphabet of RFC 4648.
#include "serve/front/json_internal.h"

static inline int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Decodes |text| to |to|, which has room for 3/4 of its size; returns the end, NULL if it is
// malformed. White space is skipped, and padding may be missing.
static char* decode(rn_str_t text, char* to) {
  uint32_t bits = 0;
  size_t digits = 0, padding = 0;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    int value = value_of(c);
    if (value >= 0 && !padding) {
      bits = bits << 6 | (uint32_t)value;
      if (++digits % 4) continue;
      *to++ = (char)(bits >> 16);
      *to++ = (char)(bits >> 8);
      *to++ = (char)bits;
    } else if (c == '=') {
      ++padding;
    } else if (c != ' ' && !(c >= '\t' && c <= '\r')) {
      return NULL;
    }
  }
  size_t left = digits % 4;
  if (left == 1 || (padding && (digits + padding) % 4) || padding > 2) return NULL;
  if (left >= 2) *to++ = (char)(bits >> (left == 2 ? 4 : 10));
  if (left == 3) *to++ = (char)(bits >> 2);
  return to;
}

// Moves into {"b64": <string>}, to the string; false if the value is anything else.
static bool open_b64(rn_json_reader_t* json) {
  rn_str_t key;
  rn_status_t status = RN_OK;
  bool is_b64 = rn_json_kind(json) == RN_JSON_OBJECT;
  if (is_b64) status = rn_json_open_object(json);
  is_b64 = is_b64 && rn_ok(status) && rn_json_next_member(json, &key, &status) &&
           rn_str_is(key, "b64") && rn_json_kind(json) == RN_JSON_STRING;
  rn_status_free(status);
  return is_b64;
}

// Moves behind the closing brace; false if there is another member.
static bool close_b64(rn_json_reader_t* json) {
  rn_status_t status = RN_OK;
  bool has = rn_json_next_any_member(json, &status);
  bool is_closed = rn_ok(status) && !has;
  rn_status_free(status);
  return is_closed;
}

bool rn_json_is_b64(const rn_json_reader_t* json) {
  rn_json_reader_t copy = *json;
  if (!open_b64(&copy)) return false;
  rn_status_t status = rn_json_skip_string(&copy);
  bool is_string = rn_ok(status);
  rn_status_free(status);
  return is_string && close_b64(&copy);
}

rn_status_t rn_json_bytes(rn_json_reader_t* json, rn_str_t* out) {
  if (rn_json_kind(json) != RN_JSON_OBJECT) return rn_json_string(json, out);
  rn_json_reader_t begin = *json;
  rn_str_t text;
  if (open_b64(json)) {
    RN_RETURN_IF_ERROR(rn_json_string(json, &text));
    char *bytes = NULL, *end;
    RN_RETURN_IF_ERROR(rn_arena_alloc(json->arena, text.size / 4 * 3 + 3, (void**)&bytes));
    end = decode(text, bytes);
    if (end && close_b64(json)) {
      *out = rn_str_n(bytes, (size_t)(end - bytes));
      return RN_OK;
    }
  }
  rn_json_reader_t copy = begin;
  RN_RETURN_IF_ERROR(rn_json_skip(&copy));  // text that is no JSON is the worse error
  return rn_json_error(&begin, "not formatted correctly for base64 data");
}

void rn_json_put_base64(rn_strbuf_t* out, rn_str_t bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  rn_strbuf_append(out, RN_STR("\""));
  if (!rn_strbuf_reserve(out, bytes.size / 3 * 4 + 8)) return;
  char* to = out->data + out->size;
  for (size_t i = 0; i < bytes.size; i += 3) {
    size_t left = bytes.size - i;
    uint32_t bits = (uint32_t)(uint8_t)bytes.data[i] << 16;
    if (left > 1) bits |= (uint32_t)(uint8_t)bytes.data[i + 1] << 8;
    if (left > 2) bits |= (uint8_t)bytes.data[i + 2];
    *to++ = digits[bits >> 18];
    *to++ = digits[bits >> 12 & 63];
    *to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
    *to++ = left > 2 ? digits[bits & 63] : '=';
  }
  out->size = (size_t)(to - out->data);
  rn_strbuf_append(out, RN_STR("\""));
}

void rn_json_put_b64(rn_strbuf_t* out, rn_str_t bytes) {
  rn_strbuf_append(out, RN_STR("{\"b64\": "));
  rn_json_put_base64(out, bytes);
  rn_strbuf_append(out, RN_STR("}"));
}
