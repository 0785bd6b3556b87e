// The bodies of Clipper's calls. See clipper.h.
#include <stdio.h>

#include "serve/front/clipper.h"

static const struct {
  const char* names[6];  // the first is the one that replies use
  int type;
} input_types[] = {
    {{"bytes", "byte", "b"}, rn_pb_runnel_Application_BYTES},
    {{"integers", "ints", "integer", "int", "i"}, rn_pb_runnel_Application_INTS},
    {{"floats", "float", "f"}, rn_pb_runnel_Application_FLOATS},
    {{"doubles", "double", "d"}, rn_pb_runnel_Application_DOUBLES},
    {{"strings", "string", "str", "strs", "s"}, rn_pb_runnel_Application_STRINGS},
};
#define TYPES (sizeof input_types / sizeof *input_types)

const char* rn_clipper_input_name(int type) {
  for (size_t i = 0; i < TYPES; ++i)
    if (input_types[i].type == type) return input_types[i].names[0];
  return "";
}

int rn_clipper_input_type(rn_str_t name) {
  for (size_t i = 0; i < TYPES; ++i)
    for (int j = 0; input_types[i].names[j]; ++j)
      if (rn_str_is(name, input_types[i].names[j])) return input_types[i].type;
  return 0;
}

// A string, or a number as text: versions and user ids come as either.
static rn_status_t read_text(rn_json_reader_t* json, rn_str_t* out) {
  if (rn_json_kind(json) != RN_JSON_NUMBER) return rn_json_string(json, out);
  return rn_json_span(json, out);
}

static rn_status_t read_names(rn_json_reader_t* json, rn_arena_t* arena, rn_clipper_body_t* out) {
  rn_json_reader_t before = *json;
  int count = 0;
  rn_status_t status = rn_json_open_array(json);
  while (rn_ok(status) && rn_json_next_element(json, &status)) {
    status = rn_json_skip(json);
    ++count;
  }
  if (rn_ok(status)) status = RN_ARENA_ARRAY(arena, (size_t)count, &out->model_names);
  *json = before;
  if (rn_ok(status)) status = rn_json_open_array(json);
  while (rn_ok(status) && rn_json_next_element(json, &status))
    status = rn_json_string(json, &out->model_names[out->model_count++]);
  return status;
}

static rn_status_t read_label(rn_json_reader_t* json, rn_allocator_t allocator, rn_answer_t* out) {
  rn_str_t text;
  rn_answer_clear(out, allocator);
  RN_RETURN_IF_ERROR(read_text(json, &text));
  return rn_answer_of_text(text, allocator, out);
}

static rn_status_t read_member(rn_json_reader_t* json, rn_str_t key, rn_arena_t* arena,
                               rn_allocator_t allocator, rn_clipper_body_t* out) {
#define TEXT(field) \
  if (rn_str_is(key, #field)) return out->has_##field = true, read_text(json, &out->field);
  TEXT(name)
  TEXT(app_name)
  TEXT(model_name)
  TEXT(model_version)
  TEXT(input_type)
  TEXT(default_output)
  TEXT(uid)
#undef TEXT
  if (rn_str_is(key, "version")) return read_text(json, &out->model_version);
  if (rn_str_is(key, "policy")) return rn_json_string(json, &out->policy);
  if (rn_str_is(key, "policy_model")) return rn_json_string(json, &out->policy_model);
  if (rn_str_is(key, "loss")) return rn_json_string(json, &out->loss);
  if (rn_str_is(key, "model_names"))
    return out->has_model_names = true, read_names(json, arena, out);
  if (rn_str_is(key, "latency_slo_micros"))
    return out->has_latency_slo_micros = true, rn_json_int(json, &out->latency_slo_micros);
  if (rn_str_is(key, "query_id"))
    return out->has_query_id = true, rn_json_int(json, &out->query_id);
  if (rn_str_is(key, "replica_id")) return rn_json_int(json, &out->replica_id);
  if (rn_str_is(key, "confidence_threshold"))
    return rn_json_double(json, &out->confidence_threshold);
  if (rn_str_is(key, "verbose")) return rn_json_bool(json, &out->is_verbose);
  if (rn_str_is(key, "strict")) return rn_json_bool(json, &out->is_strict);
  if (rn_str_is(key, "label"))
    return out->has_label = true, read_label(json, allocator, &out->label);
  if (rn_str_is(key, "input")) return rn_json_span(json, &out->input);
  if (rn_str_is(key, "input_batch")) return rn_json_span(json, &out->input_batch);
  return rn_json_skip(json);
}

rn_status_t rn_clipper_read(rn_str_t text, rn_arena_t* arena, rn_allocator_t allocator,
                            rn_clipper_body_t* out) {
  *out = (rn_clipper_body_t){0};
  rn_json_reader_t json = rn_json_reader(text, arena);
  rn_str_t key;
  rn_status_t status = rn_json_open_object(&json);
  while (rn_ok(status) && rn_json_next_member(&json, &key, &status))
    status = read_member(&json, key, arena, allocator, out);
  return status;
}
