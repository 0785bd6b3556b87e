// Paths of TensorFlow Serving's REST: see rest.h.
#include <strings.h>

#include "serve/front/rest.h"

// Moves behind |word|, in either case, if |*inout| begins with it.
static bool take(rn_str_t* inout, const char* word) {
  size_t size = strlen(word);
  if (inout->size < size || strncasecmp(inout->data, word, size) != 0) return false;
  *inout = rn_str_n(inout->data + size, inout->size - size);
  return true;
}

// Moves behind the bytes up to a '/' or ':', of which there must be one.
static bool take_name(rn_str_t* inout, rn_str_t* out) {
  size_t size = 0;
  while (size < inout->size && inout->data[size] != '/' && inout->data[size] != ':') ++size;
  *out = rn_str_n(inout->data, size);
  *inout = rn_str_n(inout->data + size, inout->size - size);
  return size > 0;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Decodes %XX; other bytes, also a lone '%', stand for themselves.
static rn_status_t decode(rn_str_t name, rn_arena_t* arena, rn_str_t* out) {
  char* text = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc(arena, name.size + 1, (void**)&text));
  size_t size = 0;
  for (size_t i = 0; i < name.size; ++i) {
    bool has_two = name.data[i] == '%' && name.size - i > 2;
    int high = has_two ? hex_digit(name.data[i + 1]) : -1;
    int low = has_two ? hex_digit(name.data[i + 2]) : -1;
    bool is_escape = high >= 0 && low >= 0;
    text[size++] = is_escape ? (char)(high << 4 | low) : name.data[i];
    if (is_escape) i += 2;
  }
  *out = rn_str_n(text, size);
  return RN_OK;
}

// The raw parts of a path.
typedef struct path_parts_t {
  rn_str_t name, version, label;
} path_parts_t;

// Moves behind /NAME[/versions/NUMBER|/labels/LABEL]; false if there is none.
static bool take_parts(rn_str_t* inout, path_parts_t* out) {
  *out = (path_parts_t){0};
  if (!take(inout, "/") || !take_name(inout, &out->name)) return false;
  rn_str_t before = *inout;
  if (take(inout, "/labels/")) return take_name(inout, &out->label);
  if (!take(inout, "/versions/")) return true;
  bool is_number = take_name(inout, &out->version);
  for (size_t i = 0; i < out->version.size; ++i)
    is_number &= out->version.data[i] >= '0' && out->version.data[i] <= '9';
  if (!is_number) *inout = before;
  return is_number;
}

static bool match_get(rn_str_t path, path_parts_t* out, rn_rest_verb_t* out_verb) {
  // Without a name it is complete, too; rn_rest_path_read says what is missing.
  if (!path.size) return true;
  if (!take_parts(&path, out)) return false;
  *out_verb = take(&path, "/metadata") ? RN_REST_METADATA : RN_REST_STATUS;
  return !path.size;
}

static bool match_post(rn_str_t path, path_parts_t* out, rn_rest_verb_t* out_verb) {
  if (!take_parts(&path, out)) return false;
  if (take(&path, ":predict"))
    *out_verb = RN_REST_PREDICT;
  else if (take(&path, ":classify"))
    *out_verb = RN_REST_CLASSIFY;
  else if (take(&path, ":regress"))
    *out_verb = RN_REST_REGRESS;
  else
    return false;
  return !path.size;
}

// Whether |path| is one of ours; then what it asks for.
static bool match(rn_str_t method, rn_str_t path, path_parts_t* out, rn_rest_verb_t* out_verb) {
  if (!take(&path, "/v1/models")) return false;
  if (rn_str_is(method, "GET")) return match_get(path, out, out_verb);
  return rn_str_is(method, "POST") && match_post(path, out, out_verb);
}

rn_status_t rn_rest_path_read(rn_str_t method, rn_str_t path, rn_arena_t* arena,
                              rn_rest_path_t* out) {
  path_parts_t parts = {0};
  *out = (rn_rest_path_t){.spec = {.version = -1}};
  if (!match(method, path, &parts, &out->verb))
    return rn_invalid_argument("Malformed request: %.*s %.*s", RN_STR_ARGS(method),
                               RN_STR_ARGS(path));
  if (!parts.name.size) return rn_invalid_argument("Missing model name in request.");
  RN_RETURN_IF_ERROR(decode(parts.name, arena, &out->spec.name));
  if (parts.version.size && !rn_str_to_i64(parts.version, &out->spec.version))
    return rn_invalid_argument("Failed to convert version: %.*s to numeric.",
                               RN_STR_ARGS(parts.version));
  return decode(parts.label, arena, &out->spec.label);
}
