// The members of a body, and replies: see rest_body.h.
#include "serve/front/rest_body.h"

#include "serve/front/json_internal.h"

static rn_rest_member_t* find_member(rn_rest_body_t* body, rn_str_t key) {
  if (rn_str_is(key, "instances")) return &body->instances;
  if (rn_str_is(key, "inputs")) return &body->inputs;
  if (rn_str_is(key, "context")) return &body->context;
  if (rn_str_is(key, "examples")) return &body->examples;
  return NULL;
}

static rn_status_t scan_member(rn_json_reader_t* json, rn_str_t key, rn_rest_body_t* body,
                               bool* inout_has_signature) {
  rn_json_kind_t kind = rn_json_kind(json);
  if (rn_str_is(key, "signature_name") && !*inout_has_signature) {
    *inout_has_signature = true;
    if (kind == RN_JSON_STRING) return rn_json_string(json, &body->signature);
    return rn_json_error(&body->begin,
                         "not formatted correctly. 'signature_name' key must be a string value.");
  }
  rn_rest_member_t* member = find_member(body, key);
  if (!member || member->is_set) return rn_json_skip(json);
  member->is_set = true;
  member->value = *json;
  rn_str_t span;
  return rn_json_span_commas(json, &span, &member->commas);
}

rn_status_t rn_rest_body_scan(rn_str_t text, rn_arena_t* arena, rn_rest_body_t* out) {
  *out = (rn_rest_body_t){.begin = rn_json_reader(text, arena), .signature = RN_STR("")};
  if (!text.size) return rn_invalid_argument("JSON Parse error: The document is empty");
  rn_json_reader_t json = out->begin;
  rn_json_kind_t kind = rn_json_kind(&json);
  if (kind == RN_JSON_BAD) return rn_json_bad_value(&json);
  rn_status_t status = RN_OK;
  if (kind != RN_JSON_OBJECT) {
    status = rn_json_error(&json, "Is not object");
  } else {
    rn_str_t key;
    bool has_signature = false;
    status = rn_json_open_object(&json);
    while (rn_ok(status) && rn_json_next_member(&json, &key, &status))
      status = scan_member(&json, key, out, &has_signature);
  }
  return rn_rest_body_error(out, status);
}

rn_status_t rn_rest_body_error(const rn_rest_body_t* body, rn_status_t status) {
  if (rn_ok(status) || body->begin.next == body->begin.end) return status;
  rn_json_reader_t json = body->begin;
  rn_status_t whole = rn_json_skip(&json);
  if (rn_ok(whole)) return status;
  rn_status_free(status);
  return whole;
}

// Whether strings of output |name| are written as base64.
static bool is_bytes(rn_str_t name) { return rn_str_ends_with(name, RN_STR("_bytes")); }

static rn_status_t check_rows(const rn_predict_value_t* outputs, int count, int64_t* out_rows) {
  for (int i = 0; i < count; ++i) {
    rn_str_t name = outputs[i].name;
    const rn_tensor_t* tensor = &outputs[i].value;
    if (!tensor->rank)
      return rn_invalid_argument("Tensor name: %.*s has no shape information ", RN_STR_ARGS(name));
    int64_t rows = rn_tensor_dim(tensor, 0);
    if (i && rows != *out_rows)
      return rn_invalid_argument(
          "Tensor name: %.*s has inconsistent batch size: %lld expecting: %lld", RN_STR_ARGS(name),
          (long long)rows, (long long)*out_rows);
    *out_rows = rows;
  }
  return RN_OK;
}

static void put_key(rn_strbuf_t* out, bool is_first, const char* indent, rn_str_t key) {
  rn_strbuf_append(out, is_first ? RN_STR("\n") : RN_STR(",\n"));
  rn_strbuf_append(out, rn_str(indent));
  rn_json_put_string(out, key);
  rn_strbuf_append(out, RN_STR(": "));
}

// One object per row.
static rn_status_t put_rows(const rn_predict_value_t* outputs, int count, int64_t rows,
                            rn_strbuf_t* out) {
  rn_strbuf_append(out, RN_STR("["));
  for (int64_t row = 0; row < rows; ++row) {
    rn_strbuf_append(out, row ? RN_STR(",\n        {") : RN_STR("\n        {"));
    for (int i = 0; i < count; ++i) {
      put_key(out, i == 0, "            ", outputs[i].name);
      RN_RETURN_IF_ERROR(rn_json_put_row(out, &outputs[i].value, row, is_bytes(outputs[i].name)));
    }
    rn_strbuf_append(out, RN_STR("\n        }"));
  }
  rn_strbuf_append(out, RN_STR("\n    ]"));
  return RN_OK;
}

static rn_status_t put_columns(const rn_predict_value_t* outputs, int count, rn_strbuf_t* out) {
  rn_strbuf_append(out, RN_STR("{"));
  for (int i = 0; i < count; ++i) {
    put_key(out, i == 0, "        ", outputs[i].name);
    RN_RETURN_IF_ERROR(rn_json_put_tensor(out, &outputs[i].value, is_bytes(outputs[i].name)));
  }
  rn_strbuf_append(out, RN_STR("\n    }"));
  return RN_OK;
}

rn_status_t rn_rest_write_outputs(const rn_predict_value_t* outputs, int count, bool is_row,
                                  rn_strbuf_t* out) {
  if (!count) return rn_invalid_argument("Cannot convert empty tensor map to JSON");
  int64_t rows = 0;
  if (is_row) RN_RETURN_IF_ERROR(check_rows(outputs, count, &rows));
  rn_strbuf_append(out,
                   is_row ? RN_STR("{\n    \"predictions\": ") : RN_STR("{\n    \"outputs\": "));
  if (count == 1)  // the rows of one output are the output
    RN_RETURN_IF_ERROR(rn_json_put_tensor(out, &outputs[0].value, is_bytes(outputs[0].name)));
  else if (is_row)
    RN_RETURN_IF_ERROR(put_rows(outputs, count, rows, out));
  else
    RN_RETURN_IF_ERROR(put_columns(outputs, count, out));
  rn_strbuf_append(out, RN_STR("\n}"));
  return rn_strbuf_status(out);
}

rn_status_t rn_rest_write_classes(const rn_pb_serving_ClassificationResult_t* result,
                                  rn_strbuf_t* out) {
  if (!result->classifications.count)
    return rn_invalid_argument("Cannot convert empty ClassificationResults to JSON");
  rn_strbuf_append(out, RN_STR("{\n    \"results\": ["));
  for (uint32_t i = 0; i < result->classifications.count; ++i) {
    const rn_pb_serving_Classifications_t* row = &result->classifications.items[i];
    rn_strbuf_append(out, i ? RN_STR(", [") : RN_STR("["));
    for (uint32_t j = 0; j < row->classes.count; ++j) {
      rn_strbuf_append(out, j ? RN_STR(", [") : RN_STR("["));
      rn_json_put_string(out, row->classes.items[j].label);
      rn_strbuf_append(out, RN_STR(", "));
      rn_json_put_float(out, row->classes.items[j].score);
      rn_strbuf_append(out, RN_STR("]"));
    }
    rn_strbuf_append(out, RN_STR("]"));
  }
  rn_strbuf_append(out, RN_STR("\n    ]\n}"));
  return rn_strbuf_status(out);
}

rn_status_t rn_rest_write_values(const rn_pb_serving_RegressionResult_t* result, rn_strbuf_t* out) {
  if (!result->regressions.count)
    return rn_invalid_argument("Cannot convert empty RegressionResults to JSON");
  rn_strbuf_append(out, RN_STR("{\n    \"results\": ["));
  for (uint32_t i = 0; i < result->regressions.count; ++i) {
    if (i) rn_strbuf_append(out, RN_STR(", "));
    rn_json_put_float(out, result->regressions.items[i].value);
  }
  rn_strbuf_append(out, RN_STR("]\n}"));
  return rn_strbuf_status(out);
}
