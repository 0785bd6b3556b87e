// The tensors of a predict body: see rest_body.h.
//
// A list of plain instances is read as one tensor, which is what it becomes. Only if that fails are
// its items read one by one, for the message that names the item.
#include "serve/front/json_internal.h"
#include "serve/front/rest_body.h"

// One input under construction from instances.
typedef struct instances_t {
  const rn_serve_signature_t* signature;
  rn_json_sink_t* sinks;  // one per input; the shapes are an item's
  bool* seen;             // one per input: the current item has it
} instances_t;

static int64_t item_size(const rn_json_sink_t* sink) {
  int64_t size = 1;
  for (int i = 0; i < sink->rank; ++i) size *= sink->dims[i];
  return size;
}

static bool same_shape(const rn_json_sink_t* a, const rn_json_sink_t* b) {
  return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static rn_status_t other_shape(const rn_json_sink_t* expected, const rn_json_sink_t* found) {
  if (item_size(expected) != item_size(found))
    return rn_invalid_argument("Expecting tensor size: %lld but got: %lld",
                               (long long)item_size(expected), (long long)item_size(found));
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_append(&text, RN_STR("Expecting shape "));
  rn_shape_print(&text, (rn_shape_t){expected->rank, expected->dims});
  rn_strbuf_append(&text, RN_STR(" but got: "));
  rn_shape_print(&text, (rn_shape_t){found->rank, found->dims});
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Reads an item by itself, for the error that it, or its difference from |expected|, gives.
static rn_status_t explain_item(rn_json_reader_t* json, const rn_json_sink_t* expected,
                                rn_json_sink_t* out_found) {
  rn_json_sink_init(out_found, expected->dtype, expected->allocator);
  out_found->counts_only = true;
  RN_RETURN_IF_ERROR(rn_json_sink_read(json, out_found));
  bool is_first = expected->rank < 0;
  return is_first || same_shape(expected, out_found) ? RN_OK : other_shape(expected, out_found);
}

// Reads an item into |sink|. Its shape must be that of the items before it.
static rn_status_t read_item(rn_json_reader_t* json, rn_json_sink_t* sink) {
  rn_json_reader_t begin = *json;
  bool is_first = sink->rank < 0;
  rn_status_t status = rn_json_sink_read(json, sink);
  if (rn_ok(status) || is_first || rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED)
    return status;
  rn_json_sink_t found;
  rn_status_t better = explain_item(&begin, sink, &found);
  if (rn_ok(better)) return status;
  rn_status_free(status);
  return better;
}

// INVALID_ARGUMENT with the item's number, the key if there is one, and |status|, which it takes.
static rn_status_t item_error(int64_t item, const rn_str_t* key, rn_status_t status) {
  rn_code_t code = rn_status_code(status);
  if (code == RN_CODE_OK || code == RN_CODE_RESOURCE_EXHAUSTED) return status;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text, "Failed to process element: %lld", (long long)item);
  if (key) rn_strbuf_printf(&text, " key: %.*s", RN_STR_ARGS(*key));
  rn_strbuf_printf(&text, " of 'instances' list. Error: %s: ", rn_code_name(code));
  rn_strbuf_append(&text, rn_str(rn_status_message(status)));
  rn_status_free(status);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t other_keys(const rn_json_reader_t* object, const rn_serve_signature_t* signature,
                              int64_t item) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(
      &text, "Failed to process element: %lld of 'instances' list. JSON object: ", (long long)item);
  rn_json_print(object, &text);
  rn_strbuf_append(&text, RN_STR(" keys must be equal to: "));
  for (int i = 0; i < signature->input_count; ++i) {
    if (i) rn_strbuf_append(&text, RN_STR(","));
    rn_strbuf_append(&text, signature->inputs[i].name);
  }
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Reads {"input": value, ...}, with every input once.
static rn_status_t read_object(rn_json_reader_t* json, instances_t* self, int64_t item) {
  const rn_serve_signature_t* signature = self->signature;
  rn_json_reader_t begin = *json;
  rn_str_t key;
  int seen = 0;
  memset(self->seen, 0, (size_t)signature->input_count * sizeof *self->seen);
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &key, &status)) {
    int port = rn_serve_port(signature->inputs, signature->input_count, key);
    if (port < 0) {
      status =
          rn_invalid_argument("JSON object: does not have named input: %.*s", RN_STR_ARGS(key));
    } else if (self->seen[port]) {
      return other_keys(&begin, signature, item);
    } else {
      self->seen[port] = true;
      ++seen;
      status = read_item(json, &self->sinks[port]);
    }
    status = item_error(item, &key, status);
  }
  if (rn_ok(status) && seen != signature->input_count) return other_keys(&begin, signature, item);
  return status;
}

// Whether the value is an object of inputs, and not a {"b64": ...} value.
static bool is_named(rn_json_reader_t* json) {
  return rn_json_kind(json) == RN_JSON_OBJECT && !rn_json_is_b64(json);
}

// Moves what |sink| has to an input, with |items| in front of the shape unless that is -1.
static rn_status_t finish_input(rn_json_sink_t* sink, rn_str_t name, int64_t items,
                                rn_predict_value_t* out) {
  int64_t dims[RN_MAX_RANK + 1];
  int first = items >= 0;
  if (sink->rank + first > RN_MAX_RANK)
    return rn_invalid_argument("A tensor may have %d dimensions at most", RN_MAX_RANK);
  dims[0] = items;
  memcpy(dims + first, sink->dims, (size_t)sink->rank * sizeof *dims);
  out->name = name;
  return rn_json_sink_finish(sink, (rn_shape_t){sink->rank + first, dims}, &out->value);
}

static rn_status_t read_objects(rn_json_reader_t* json, instances_t* self,
                                rn_predict_value_t* values) {
  const rn_serve_signature_t* signature = self->signature;
  rn_status_t status = rn_json_open_array(json);
  int64_t items = 0;
  for (; rn_ok(status) && rn_json_next_element(json, &status); ++items) {
    if (!is_named(json))
      return rn_invalid_argument("Expecting object but got list at item %lld of input list",
                                 (long long)items);
    status = read_object(json, self, items);
  }
  for (int i = 0; rn_ok(status) && i < signature->input_count; ++i)
    status = finish_input(&self->sinks[i], signature->inputs[i].name, items, &values[i]);
  return status;
}

// Reads the items of a plain list one by one, for the first error. OK if there is none.
static rn_status_t explain_plain(rn_json_reader_t* json, rn_json_sink_t* sink) {
  rn_json_sink_t found;
  rn_status_t status = rn_json_open_array(json);
  for (int64_t item = 0; rn_ok(status) && rn_json_next_element(json, &status); ++item) {
    if (is_named(json))
      return rn_invalid_argument("Expecting value/list but got object at item %lld of input list",
                                 (long long)item);
    status = item_error(item, NULL, explain_item(json, sink, &found));
    if (rn_ok(status) && item == 0) *sink = found;
  }
  return status;
}

static rn_status_t read_plain(const rn_rest_member_t* member, instances_t* self,
                              rn_predict_value_t* value) {
  rn_json_sink_t* sink = &self->sinks[0];
  rn_json_reader_t json = member->value;
  rn_status_t status = rn_json_sink_expect(sink, member->commas);
  if (rn_ok(status)) status = rn_json_sink_read(&json, sink);
  if (rn_ok(status)) return finish_input(sink, self->signature->inputs[0].name, -1, value);
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  rn_json_sink_clear(sink);
  rn_json_sink_init(sink, sink->dtype, sink->allocator);
  json = member->value;
  rn_status_t better = explain_plain(&json, sink);
  if (rn_ok(better)) return status;
  rn_status_free(status);
  return better;
}

static rn_status_t instances_create(const rn_rest_body_t* body,
                                    const rn_serve_signature_t* signature, rn_allocator_t allocator,
                                    instances_t* out) {
  rn_arena_t* arena = body->begin.arena;
  size_t count = (size_t)signature->input_count;
  *out = (instances_t){.signature = signature};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->seen));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->sinks));
  for (int i = 0; i < signature->input_count; ++i)
    rn_json_sink_init(&out->sinks[i], signature->inputs[i].dtype, allocator);
  return RN_OK;
}

static rn_status_t read_instances(const rn_rest_body_t* body, const rn_serve_signature_t* signature,
                                  rn_allocator_t allocator, rn_predict_value_t* values,
                                  int* out_count) {
  rn_json_reader_t json = body->instances.value, first;
  if (rn_json_kind(&json) != RN_JSON_ARRAY)
    return rn_json_error(&body->begin, "Expecting 'instances' to be an list/array");
  first = json;
  rn_status_t status = rn_json_open_array(&first);
  if (!rn_ok(status)) return status;
  if (!rn_json_next_element(&first, &status))
    return rn_ok(status) ? rn_json_error(&body->begin, "No values in 'instances' array") : status;
  if (rn_json_kind(&first) != RN_JSON_OBJECT && signature->input_count > 1)
    return rn_invalid_argument(
        "instances is a plain list, but expecting list of objects as multiple input tensors "
        "required as per tensorinfo_map");
  instances_t self;
  RN_RETURN_IF_ERROR(instances_create(body, signature, allocator, &self));
  bool has_objects = is_named(&first);
  status = has_objects ? read_objects(&json, &self, values)
                       : read_plain(&body->instances, &self, &values[0]);
  *out_count = has_objects ? signature->input_count : 1;
  for (int i = 0; i < signature->input_count; ++i) rn_json_sink_clear(&self.sinks[i]);
  return status;
}

// Reads {"input": value, ...}; other members are ignored.
static rn_status_t read_columns(rn_json_reader_t* json, const rn_serve_signature_t* signature,
                                rn_allocator_t allocator, rn_predict_value_t* values) {
  rn_str_t key;
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &key, &status)) {
    int port = rn_serve_port(signature->inputs, signature->input_count, key);
    if (port < 0 || rn_tensor_is_set(&values[port].value)) {
      status = rn_json_skip(json);
    } else {
      values[port].name = signature->inputs[port].name;
      status = rn_json_tensor(json, signature->inputs[port].dtype, allocator, &values[port].value);
    }
  }
  for (int i = 0; rn_ok(status) && i < signature->input_count; ++i)
    if (!rn_tensor_is_set(&values[i].value))
      status = rn_invalid_argument("Missing named input: %.*s in 'inputs' object.",
                                   RN_STR_ARGS(signature->inputs[i].name));
  return status;
}

static rn_status_t read_inputs(const rn_rest_body_t* body, const rn_serve_signature_t* signature,
                               rn_allocator_t allocator, rn_predict_value_t* values,
                               int* out_count) {
  rn_json_reader_t json = body->inputs.value;
  *out_count = signature->input_count;
  if (is_named(&json)) return read_columns(&json, signature, allocator, values);
  if (signature->input_count > 1)
    return rn_invalid_argument(
        "inputs is a plain value/list, but expecting an object as multiple input tensors required "
        "as per tensorinfo_map");
  values[0].name = signature->inputs[0].name;
  return rn_json_tensor(&json, signature->inputs[0].dtype, allocator, &values[0].value);
}

rn_status_t rn_rest_read_inputs(const rn_rest_body_t* body, const rn_serve_signature_t* signature,
                                rn_allocator_t allocator, rn_predict_value_t** out_values,
                                int* out_count, bool* out_is_row) {
  *out_count = 0;
  *out_is_row = body->instances.is_set;
  rn_str_t name = body->signature;
  rn_status_t status = RN_OK;
  if (!signature->input_count)
    status = rn_invalid_argument("Failed to get input map for signature: %.*s",
                                 RN_STR_ARGS(name.size ? name : RN_STR("DEFAULT")));
  else if (body->instances.is_set && body->inputs.is_set)
    status = rn_json_error(&body->begin,
                           "Not formatted correctly expecting only one of 'inputs' or 'instances' "
                           "keys to exist ");
  else if (!body->instances.is_set && !body->inputs.is_set)
    status = rn_invalid_argument("Missing 'inputs' or 'instances' key");
  if (rn_ok(status))
    status = RN_ARENA_ARRAY(body->begin.arena, (size_t)signature->input_count, out_values);
  if (rn_ok(status))
    status = (*out_is_row ? read_instances : read_inputs)(body, signature, allocator, *out_values,
                                                          out_count);
  return rn_rest_body_error(body, status);
}
