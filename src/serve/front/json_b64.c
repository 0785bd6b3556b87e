// Bytes in JSON: {"b64": "<base64>"}, with the standard alphabet of RFC 4648.
#include "base/base64.h"
#include "serve/front/json_internal.h"

// Decodes |text| to |out|, which has room for 3/4 of its size; false if it is malformed. White
// space is skipped, and padding may be missing.
static bool decode(rn_str_t text, char* out, size_t* out_size) {
  size_t padding = 0;
  for (; text.size; --text.size) {
    char last = text.data[text.size - 1];
    if (last == '=')
      ++padding;
    else if (last != ' ' && !(last >= '\t' && last <= '\r'))
      break;
  }
  return rn_base64_decode(text, RN_BASE64_STANDARD | RN_BASE64_SPACES, out, out_size) &&
         (!padding || (padding <= 2 && *out_size % 3 + padding == 3));
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
    char* bytes = NULL;
    size_t size;
    RN_RETURN_IF_ERROR(rn_arena_alloc(json->arena, text.size / 4 * 3 + 3, (void**)&bytes));
    if (decode(text, bytes, &size) && close_b64(json)) {
      *out = rn_str_n(bytes, size);
      return RN_OK;
    }
  }
  rn_json_reader_t copy = begin;
  RN_RETURN_IF_ERROR(rn_json_skip(&copy));  // text that is no JSON is the worse error
  return rn_json_error(&begin, "not formatted correctly for base64 data");
}

void rn_json_put_base64(rn_strbuf_t* out, rn_str_t bytes) {
  size_t size = rn_base64_encoded_size(bytes.size, true);
  rn_strbuf_append(out, RN_STR("\""));
  if (!rn_strbuf_reserve(out, size)) return;
  rn_base64_encode(bytes, RN_BASE64_STANDARD, true, out->data + out->size);
  out->size += size;
  rn_strbuf_append(out, RN_STR("\""));
}

void rn_json_put_b64(rn_strbuf_t* out, rn_str_t bytes) {
  rn_strbuf_append(out, RN_STR("{\"b64\": "));
  rn_json_put_base64(out, bytes);
  rn_strbuf_append(out, RN_STR("}"));
}
