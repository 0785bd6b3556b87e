// Inputs as saved_model_cli takes them: see expr.h.
#include "cli/expr.h"

#include <jansson.h>

#include "cli/value.h"
#include "tensor/tstring.h"
#include "wire/writer.h"

// The position of |end| in |text| outside of quotes and brackets; the size of |text| if absent.
static size_t find_outside(rn_str_t text, char end) {
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    if (quote) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == end && depth == 0) {
      return i;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      depth += c == '[' || c == '(' || c == '{' ? 1 : c == ']' || c == ')' || c == '}' ? -1 : 0;
    }
  }
  return text.size;
}

// Splits |*inout| at |end| and returns the part before it.
static rn_str_t cut(rn_str_t* inout, char end) {
  size_t size = find_outside(*inout, end);
  rn_str_t before = rn_str_n(inout->data, size);
  size_t skipped = size < inout->size ? size + 1 : size;
  *inout = rn_str_n(inout->data + skipped, inout->size - skipped);
  return rn_str_trim(before);
}

bool rn_cli_next_input(rn_str_t* inout_list, rn_str_t* out_item) {
  while (inout_list->size) {
    *out_item = cut(inout_list, ';');
    if (out_item->size) return true;
  }
  return false;
}

static bool is_convertible(rn_dtype_t dtype) {
  return dtype == RN_FLOAT || dtype == RN_DOUBLE || dtype == RN_INT32 || dtype == RN_INT64 ||
         dtype == RN_UINT8;
}

// Converts NumPy's default types to those that models take.
static rn_status_t convert(const rn_cli_t* cli, rn_dtype_t wanted, rn_tensor_t* inout) {
  if (inout->dtype == wanted || !is_convertible(inout->dtype) || !is_convertible(wanted))
    return RN_OK;  // the caller compares the types
  rn_tensor_t made = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(cli->allocator, wanted, rn_tensor_shape(inout), &made));
  for (int64_t i = 0; i < inout->count; ++i) {
    double value = rn_cli_number_at(inout, i);
    if (wanted == RN_FLOAT) RN_DATA(&made, float)[i] = (float)value;
    if (wanted == RN_DOUBLE) RN_DATA(&made, double)[i] = value;
    if (wanted == RN_INT32) RN_DATA(&made, int32_t)[i] = (int32_t)value;
    if (wanted == RN_INT64) RN_DATA(&made, int64_t)[i] = (int64_t)value;
    if (wanted == RN_UINT8) RN_DATA(&made, uint8_t)[i] = (uint8_t)value;
  }
  rn_tensor_clear(inout);
  *inout = made;
  return RN_OK;
}

rn_status_t rn_cli_read_file(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                             rn_tensor_t* out) {
  rn_strbuf_t named;
  if (rn_str_ends_with(text, RN_STR("]")))
    return rn_unimplemented("'%.*s': arrays of .npz files are not supported; save it as .npy",
                            RN_STR_ARGS(text));
  rn_strbuf_init(&named, cli->allocator);
  rn_strbuf_printf(&named, "@%.*s", RN_STR_ARGS(text));
  rn_status_t status = rn_strbuf_status(&named);
  if (rn_ok(status)) status = rn_cli_value(cli, rn_strbuf_view(&named), wanted, out);
  rn_strbuf_clear(&named);
  return rn_ok(status) ? convert(cli, wanted, out) : status;
}

// Converts a Python literal to the form of value.h: parentheses become brackets, quotes become
// double.
static void put_literal(rn_strbuf_t* out, rn_str_t text) {
  char quote = 0;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    bool is_prefix =
        !quote && (c == 'b' || c == 'u') && i + 1 < text.size && strchr("'\"", text.data[i + 1]);
    if (is_prefix) continue;
    if (quote && c == '\\' && i + 1 < text.size) {
      if (text.data[i + 1] != '\'') rn_strbuf_append_n(out, &c, 1);
      rn_strbuf_append_n(out, &text.data[++i], 1);
      continue;
    }
    if (c == '"' && quote == '\'') rn_strbuf_append(out, RN_STR("\\"));
    bool is_quote = (c == '"' || c == '\'') && (!quote || quote == c);
    if (is_quote) quote = quote ? 0 : c;
    char put = is_quote ? '"' : quote ? c : c == '(' ? '[' : c == ')' ? ']' : c;
    // Python allows a comma before the bracket.
    if (!quote && put == ']' && out->size && out->data[out->size - 1] == ',') out->size--;
    rn_strbuf_append_n(out, &put, 1);
  }
}

rn_status_t rn_cli_read_expr(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                             rn_tensor_t* out) {
  rn_strbuf_t literal;
  rn_strbuf_init(&literal, cli->allocator);
  put_literal(&literal, rn_str_trim(text));
  rn_status_t status = rn_strbuf_status(&literal);
  if (rn_ok(status)) status = rn_cli_value(cli, rn_strbuf_view(&literal), wanted, out);
  rn_strbuf_clear(&literal);
  return status;
}

// Field numbers of tf.Example's messages.
enum { FEATURES = 1, FEATURE = 1, KEY = 1, VALUE = 2, BYTES = 1, FLOATS = 2, INTS = 3, LIST = 1 };

static rn_status_t put_feature(rn_strbuf_t* out, const char* name, const json_t* list) {
  bool has_reals = false, has_texts = false, has_others = false;
  size_t i;
  json_t* item;
  json_array_foreach(list, i, item) {
    has_reals |= json_is_real(item);
    has_texts |= json_is_string(item);
    has_others |= !json_is_number(item) && !json_is_string(item) && !json_is_boolean(item);
  }
  if (!json_is_array(list) || has_others || (has_texts && has_reals))
    return rn_invalid_argument("the feature '%s' is not a list of numbers or strings", name);
  size_t feature = rn_pb_begin(out, (uint32_t)(has_texts ? BYTES : has_reals ? FLOATS : INTS));
  json_array_foreach(list, i, item) {
    if (has_texts) {
      rn_pb_put_str(out, LIST, rn_str(json_string_value(item)));
    } else if (has_reals) {
      float value = (float)json_number_value(item);
      uint32_t bits;
      memcpy(&bits, &value, sizeof bits);
      rn_pb_put_fixed32(out, LIST, bits);
    } else {
      bool is_true = json_is_true(item);
      rn_pb_put_uint(out, LIST, is_true ? 1 : (uint64_t)json_integer_value(item));
    }
  }
  rn_pb_end(out, feature);
  return RN_OK;
}

static rn_status_t put_example(rn_strbuf_t* out, json_t* object) {
  const char* name;
  json_t* list;
  if (!json_is_object(object))
    return rn_invalid_argument("an example must be {\"feature\": [values]}");
  size_t features = rn_pb_begin(out, FEATURES);
  json_object_foreach(object, name, list) {
    size_t entry = rn_pb_begin(out, FEATURE);
    rn_pb_put_str(out, KEY, rn_str(name));
    size_t value = rn_pb_begin(out, VALUE);
    RN_RETURN_IF_ERROR(put_feature(out, name, list));
    rn_pb_end(out, value);
    rn_pb_end(out, entry);
  }
  rn_pb_end(out, features);
  return rn_strbuf_status(out);
}

static rn_status_t make_examples(const rn_cli_t* cli, const json_t* list, rn_tensor_t* out) {
  int64_t count = (int64_t)json_array_size(list);
  RN_RETURN_IF_ERROR(rn_tensor_create(cli->allocator, RN_STRING, (rn_shape_t){1, &count}, out));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, cli->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < count; ++i) {
    bytes.size = 0;
    status = put_example(&bytes, json_array_get(list, (size_t)i));
    if (rn_ok(status) && !rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], bytes.data, bytes.size))
      status = rn_out_of_memory();
  }
  rn_strbuf_clear(&bytes);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

rn_status_t rn_cli_read_examples(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                                 rn_tensor_t* out) {
  if (wanted != RN_STRING)
    return rn_invalid_argument("examples are strings, but the model expects %s",
                               rn_dtype_name(wanted));
  rn_strbuf_t literal;
  json_error_t error;
  rn_strbuf_init(&literal, cli->allocator);
  put_literal(&literal, text);
  json_t* list = json_loadb(rn_strbuf_view(&literal).data, literal.size, 0, &error);
  rn_strbuf_clear(&literal);
  rn_status_t status =
      !list ? rn_invalid_argument("the examples cannot be read: %s", error.text)
      : !json_is_array(list)
          ? rn_invalid_argument("examples must be a list: [{\"feature\": [values]}]")
          : make_examples(cli, list, out);
  json_decref(list);
  return status;
}
