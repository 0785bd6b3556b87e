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
  RN_RETURN_IF_ERROR(rn_front_unescape(parts.name, arena, &out->spec.name));
  if (parts.version.size && !rn_str_to_i64(parts.version, &out->spec.version))
    return rn_invalid_argument("Failed to convert version: %.*s to numeric.",
                               RN_STR_ARGS(parts.version));
  return rn_front_unescape(parts.label, arena, &out->spec.label);
}
