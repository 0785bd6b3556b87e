// The examples of a classify or regress body: see rest_body.h.
//
// A feature is a value or a list of values of one kind: strings and {"b64": ...} are bytes,
// integers and booleans int64, other numbers float.
#include "proto/example.pb.h"
#include "serve/front/json_internal.h"
#include "serve/front/rest_body.h"
#include "wire/writer.h"

// A feature whose values are being read.
typedef struct feature_t {
  rn_str_t name;
  uint32_t kind;       // the field of Feature; 0: no value yet
  rn_strbuf_t values;  // packed numbers, or fields with bytes; kept from one feature to the next
} feature_t;

static rn_status_t bad_element(const feature_t* feature, rn_json_kind_t kind) {
  return rn_invalid_argument("Feature: %.*s has element with unexpected JSON type: %s",
                             RN_STR_ARGS(feature->name), rn_json_kind_name(kind));
}

// Makes |feature| one of |kind|, unless it is one of another.
static rn_status_t set_kind(feature_t* feature, uint32_t kind) {
  if (!feature->kind) feature->kind = kind;
  if (feature->kind == kind) return RN_OK;
  return rn_invalid_argument("Unexpected element type in feature: %.*s expecting type: %s",
                             RN_STR_ARGS(feature->name),
                             feature->kind == rn_pb_Feature_bytes_list_field   ? "bytes"
                             : feature->kind == rn_pb_Feature_float_list_field ? "float"
                                                                               : "int64");
}

static rn_status_t add_bytes(rn_json_reader_t* json, feature_t* feature) {
  rn_str_t bytes;
  RN_RETURN_IF_ERROR(set_kind(feature, rn_pb_Feature_bytes_list_field));
  RN_RETURN_IF_ERROR(rn_json_bytes(json, &bytes));
  rn_pb_put_str(&feature->values, rn_pb_BytesList_value_field, bytes);
  return RN_OK;
}

static rn_status_t add_int(feature_t* feature, int64_t value) {
  RN_RETURN_IF_ERROR(set_kind(feature, rn_pb_Feature_int64_list_field));
  rn_pb_put_varint(&feature->values, (uint64_t)value);
  return RN_OK;
}

static rn_status_t add_number(rn_json_reader_t* json, feature_t* feature) {
  rn_decimal_t decimal;
  int64_t number;
  uint64_t big;
  double real;
  if (rn_decimal_scan(json->next, json->end, &decimal) == RN_DECIMAL_OK) {
    if (rn_decimal_to_int(&decimal, &number)) {
      json->next = decimal.end;
      return add_int(feature, number);
    }
    if (rn_decimal_to_uint(&decimal, &big)) {
      RN_RETURN_IF_ERROR(set_kind(feature, rn_pb_Feature_int64_list_field));
      return rn_invalid_argument("Feature: %.*s has uint64_t element. Only int64_t is supported.",
                                 RN_STR_ARGS(feature->name));
    }
  }
  RN_RETURN_IF_ERROR(rn_json_double(json, &real));
  RN_RETURN_IF_ERROR(set_kind(feature, rn_pb_Feature_float_list_field));
  float value = (float)real;
  rn_strbuf_append_n(&feature->values, &value, sizeof value);
  return RN_OK;
}

static rn_status_t add_value(rn_json_reader_t* json, feature_t* feature) {
  bool value;
  rn_json_kind_t kind = rn_json_kind(json);
  switch (kind) {
    case RN_JSON_FALSE:
    case RN_JSON_TRUE:
      RN_RETURN_IF_ERROR(rn_json_bool(json, &value));
      return add_int(feature, value);
    case RN_JSON_OBJECT:
      return rn_json_is_b64(json) ? add_bytes(json, feature) : bad_element(feature, kind);
    case RN_JSON_STRING:
      return add_bytes(json, feature);
    case RN_JSON_NUMBER:
      return add_number(json, feature);
    default:
      return kind == RN_JSON_BAD ? rn_json_bad_value(json) : bad_element(feature, kind);
  }
}

static rn_status_t read_feature(rn_json_reader_t* json, feature_t* feature) {
  feature->kind = 0;
  feature->values.size = 0;
  if (rn_json_kind(json) != RN_JSON_ARRAY) return add_value(json, feature);
  rn_status_t status = rn_json_open_array(json);
  while (rn_ok(status) && rn_json_next_element(json, &status)) status = add_value(json, feature);
  return status;
}

// Appends an entry of the map of features.
static void put_feature(rn_strbuf_t* out, const feature_t* feature) {
  size_t entry = rn_pb_begin(out, rn_pb_Features_feature_field);
  rn_pb_put_str(out, rn_pb_Features_FeatureEntry_key_field, feature->name);
  size_t value = rn_pb_begin(out, rn_pb_Features_FeatureEntry_value_field);
  if (feature->kind) {
    size_t list = rn_pb_begin(out, feature->kind);
    rn_str_t values = rn_strbuf_view(&feature->values);
    if (feature->kind == rn_pb_Feature_bytes_list_field)
      rn_strbuf_append(out, values);
    else  // both lists have their values in field 1, packed
      rn_pb_put_str(out, rn_pb_FloatList_value_field, values);
    rn_pb_end(out, list);
  }
  rn_pb_end(out, value);
  rn_pb_end(out, entry);
}

// Appends the example at the cursor as field |number|.
static rn_status_t read_example(rn_json_reader_t* json, uint32_t number, feature_t* feature,
                                rn_strbuf_t* out) {
  rn_json_kind_t kind = rn_json_kind(json);
  if (kind != RN_JSON_OBJECT)
    return rn_invalid_argument("Example must be JSON object but got JSON %s",
                               rn_json_kind_name(kind));
  size_t example = rn_pb_begin(out, number);
  size_t features = rn_pb_begin(out, rn_pb_Example_features_field);
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &feature->name, &status)) {
    status = read_feature(json, feature);
    if (rn_ok(status)) status = rn_strbuf_status(&feature->values);
    if (rn_ok(status)) put_feature(out, feature);
  }
  rn_pb_end(out, features);
  rn_pb_end(out, example);
  return status;
}

static rn_status_t read_examples(const rn_rest_body_t* body, feature_t* feature, rn_strbuf_t* out) {
  uint32_t kind = body->context.is_set ? rn_pb_serving_Input_example_list_with_context_field
                                       : rn_pb_serving_Input_example_list_field;
  size_t list = rn_pb_begin(out, kind);
  rn_json_reader_t json = body->context.value;
  if (body->context.is_set)
    RN_RETURN_IF_ERROR(
        read_example(&json, rn_pb_serving_ExampleListWithContext_context_field, feature, out));
  if (!body->examples.is_set)
    return rn_json_error(&body->begin,
                         "When method is classify, key 'examples' is expected and was not found");
  json = body->examples.value;
  if (rn_json_kind(&json) != RN_JSON_ARRAY)
    return rn_json_error(&body->begin, "Expecting 'examples' value to be an list/array");
  int64_t count = 0;
  rn_status_t status = rn_json_open_array(&json);
  for (; rn_ok(status) && rn_json_next_element(&json, &status); ++count)
    status = read_example(&json, rn_pb_serving_ExampleListWithContext_examples_field, feature, out);
  RN_RETURN_IF_ERROR(status);
  if (!count) return rn_json_error(&body->begin, "'examples' value is an empty array");
  rn_pb_end(out, list);
  return rn_strbuf_status(out);
}

rn_status_t rn_rest_read_examples(const rn_rest_body_t* body, rn_strbuf_t* out) {
  feature_t feature = {0};
  rn_strbuf_init(&feature.values, body->begin.arena->allocator);
  rn_status_t status = read_examples(body, &feature, out);
  rn_strbuf_clear(&feature.values);
  return rn_rest_body_error(body, status);
}
