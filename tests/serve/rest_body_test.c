// Bodies of TensorFlow Serving's REST: its own cases, restated.
#include "serve/front/rest_body.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../support/status.h"
#include "serve/front/classify.h"
#include "serve/front/rest.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/text.h"

static rn_arena_t arena;
static void init(void) { rn_arena_init(&arena, rn_allocator_system()); }
static void fini(void) { rn_arena_clear(&arena); }
TestSuite(rest_body, .init = init, .fini = fini, .timeout = 60);

static const char* keep(rn_strbuf_t* text) {
  rn_str_t copy;
  OK(rn_arena_str(&arena, rn_strbuf_view(text), &copy));
  rn_strbuf_clear(text);
  return copy.data;
}

static void put_status(rn_strbuf_t* out, rn_status_t status) {
  if (rn_ok(status)) return;
  out->size = 0;
  rn_strbuf_printf(out, "%s: %s", rn_code_name(rn_status_code(status)), rn_status_message(status));
  rn_status_free(status);
}

// A signature with inputs "name type ...", by ascending name.
static rn_serve_signature_t signature_of(const char* inputs) {
  static rn_serve_port_t ports[8];
  rn_serve_signature_t signature = {.name = RN_STR("serving_default"), .inputs = ports};
  rn_str_t rest = rn_str(inputs);
  while (rest.size) {
    rn_serve_port_t* port = &ports[signature.input_count++];
    port->name = rn_str_split(&rest, ' ');
    port->dtype = rn_dtype_parse(rn_str_split(&rest, ' '));
    port->shape = RN_SHAPE_UNKNOWN;
  }
  return signature;
}

// Reads |body| and prints its inputs: "row x[2]: [1.0, 2.0]", or the error.
static const char* inputs_text(const char* inputs, rn_str_t text) {
  rn_serve_signature_t signature = signature_of(inputs);
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_rest_body_t body;
  rn_predict_value_t* values = NULL;
  int count = 0;
  bool is_row = false;
  rn_status_t status = rn_rest_body_scan(text, &arena, &body);
  if (rn_ok(status))
    status =
        rn_rest_read_inputs(&body, &signature, rn_allocator_system(), &values, &count, &is_row);
  rn_strbuf_append(&out, is_row ? RN_STR("row") : RN_STR("column"));
  if (rn_ok(status) && body.signature.size)
    rn_strbuf_printf(&out, " %.*s", RN_STR_ARGS(body.signature));
  for (int i = 0; i < count; ++i) {
    if (rn_ok(status)) {
      rn_strbuf_printf(&out, " %.*s", RN_STR_ARGS(values[i].name));
      rn_shape_print(&out, rn_tensor_shape(&values[i].value));
      rn_strbuf_append(&out, RN_STR(": "));
      status = rn_json_put_tensor(&out, &values[i].value, false);
    }
    rn_tensor_clear(&values[i].value);
  }
  put_status(&out, status);
  return keep(&out);
}

typedef struct body_row_t {
  const char *inputs, *body, *want;
} body_row_t;

#define EXPECT_TEXT(row_, found_)                                                       \
  do {                                                                                  \
    const char* found = (found_);                                                       \
    cr_expect(strstr(found, (row_)->want), "%s\n  %s\n  lacks %s", (row_)->body, found, \
              (row_)->want);                                                            \
  } while (0)

#define FOUR "dbl_tensor double float_tensor float int_tensor int32 str_tensor string"
#define TWO "int_tensor int32 str_tensor string"

Test(rest_body, inputs_are_read_by_rows_and_by_columns) {
  static const body_row_t rows[] = {
      {"default int32", "{\"instances\": [[1,2],[3,4],[5,6]]}",
       "row default[3,2]: [[1, 2], [3, 4], [5, 6]]"},
      {"default int32", "{\"instances\": [[1,2],[3,4],[5,6]]}X", "row default[3,2]"},
      {"default float", "{\"instances\": [1, 2.0, 3, 4, 5.003, 0.007, 0.0]}",
       "row default[7]: [1.0, 2.0, 3.0, 4.0, 5.003, 0.007, 0.0]"},
      {"default double", "{\"instances\": [1.0, 2, 3, 4, 0.662, 0, 0.0]}",
       "row default[7]: [1.0, 2.0, 3.0, 4.0, 0.662, 0.0, 0.0]"},
      {"default float", "{\"instances\": [1435774380]}", "row default[1]: [1.43577434e+09]"},
      {"default float", "{\"instances\": [1435774380.0]}", "row default[1]: [1.43577434e+09]"},
      {"default float", "{\"instances\": [1.79769e+308]}", "row default[1]: [Infinity]"},
      {"default float", "{\"instances\": [-1.79769e+308]}", "row default[1]: [-Infinity]"},
      {"default float", "{\"instances\": [2.22507e-308]}", "row default[1]: [0.0]"},
      {"default float", "{\"instances\": [-2.22507e-308]}", "row default[1]: [-0.0]"},
      {"default int32", "{\"signature_name\": \"predict_images\", \"instances\": [[1,2]]}",
       "row predict_images default[1,2]: [[1, 2]]"},
      {"default int32", "{\"instances\": [[1,2]], \"signature_name\": \"late\"}",
       "row late default[1,2]: [[1, 2]]"},
      {"default string", "{\"instances\": [{\"b64\" : \"aGVsbG8=\"}, {\"b64\": \"d29ybGQ=\"}]}",
       "row default[2]: [\"hello\", \"world\"]"},
      {"default string", "{\"instances\": [[{\"b64\" : \"aGVsbG8=\"}], [{\"b64\": \"d29ybGQ=\"}]]}",
       "row default[2,1]: [[\"hello\"], [\"world\"]]"},
      {"default string",
       "{\"instances\": [{\"default\": [[{\"b64\" : \"aGVsbG8=\"}], [{\"b64\": \"d29ybGQ=\"}]]}]}",
       "row default[1,2,1]: [[[\"hello\"], [\"world\"]]]"},
      {FOUR,
       "{\"instances\": [{\"int_tensor\": [[1,2],[3,4],[5,6]], \"str_tensor\": [\"foo\", \"bar\"],"
       " \"float_tensor\": [1.0, NaN], \"dbl_tensor\": [NaN]},"
       "{\"int_tensor\": [[7,8],[9,0],[1,2]], \"str_tensor\": [\"baz\", \"bat\"],"
       " \"float_tensor\": [2.0, Infinity], \"dbl_tensor\": [2.0]}]}",
       "row dbl_tensor[2,1]: [[NaN], [2.0]] float_tensor[2,2]: [[1.0, NaN], [2.0, Infinity]]"
       " int_tensor[2,3,2]: [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0], [1, 2]]]"
       " str_tensor[2,2]: [[\"foo\", \"bar\"], [\"baz\", \"bat\"]]"},
      {"int_tensor int32", "{\"inputs\": {\"int_tensor\": [[[1,2],[3,4],[5,6]]]}}",
       "column int_tensor[1,3,2]: [[[1, 2], [3, 4], [5, 6]]]"},
      {"int_tensor int32", "{\"inputs\": [[[1,2],[3,4],[5,6]]]}",
       "column int_tensor[1,3,2]: [[[1, 2], [3, 4], [5, 6]]]"},
      {"bin_tensor string " TWO,
       "{\"inputs\": {\"int_tensor\": [[[1,2],[3,4],[5,6]]], \"str_tensor\": [\"foo\", \"bar\"],"
       " \"bin_tensor\": {\"b64\" : \"aGVsbG8=\"}}}",
       "column bin_tensor[]: \"hello\" int_tensor[1,3,2]: [[[1, 2], [3, 4], [5, 6]]]"
       " str_tensor[2]: [\"foo\", \"bar\"]"},
      // Not TensorFlow Serving's cases.
      {"x float", "{\"inputs\": 5}", "column x[]: 5.0"},
      {"x string", "{\"inputs\": {\"b64\": \"aGVsbG8=\"}}", "column x[]: \"hello\""},
      {"x float", "{\"inputs\": {\"x\": [1], \"other\": [[2], 3]}}", "column x[1]: [1.0]"},
      {"x float", "{\"instances\": [{\"x\": 1}, {\"x\": 2}]}", "row x[2]: [1.0, 2.0]"},
      {"x float", "{\"instances\": [1], \"instances\": [2, 3]}", "row x[1]: [1.0]"},
      {"x float", "{\"inst\\u0061nces\": [1]}", "row x[1]: [1.0]"},
      {"x half", "{\"instances\": [1.5]}", "row x[1]: [1.5]"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    EXPECT_TEXT(&rows[i], inputs_text(rows[i].inputs, rn_str(rows[i].body)));
}

Test(rest_body, deep_members_that_mean_nothing_are_skipped) {
  const size_t depth = 500000;
  for (int is_signature = 0; is_signature < 2; ++is_signature) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_system());
    rn_strbuf_append(&text, is_signature ? RN_STR("{\"signature_name\":")
                                         : RN_STR("{\"instances\":[1], \"nested\":"));
    for (size_t i = 0; i < depth; ++i) rn_strbuf_append(&text, RN_STR("["));
    for (size_t i = 0; i < depth; ++i) rn_strbuf_append(&text, RN_STR("]"));
    rn_strbuf_append(&text, RN_STR("}"));
    const char* found = inputs_text("default int32", rn_strbuf_view(&text));
    cr_assert(strstr(found, is_signature ? "key must be a string value" : "row default[1]: [1]"),
              "%s", found);
    rn_strbuf_clear(&text);
  }
}

Test(rest_body, bad_inputs_are_named) {
#define BAD "INVALID_ARGUMENT: "
#define ITEM(item) BAD "Failed to process element: " item
  static const body_row_t rows[] = {
      {"default int32", "", BAD "JSON Parse error: The document is empty"},
      {"default int32", "{\"signature_name\": 5, \"instances\": [[1,2],[3,4],[5,6,7]]}",
       BAD "JSON Value: {\n    \"signature_name\": 5,\n    \"instances\": [[1, 2], [3, 4], [5, 6, "
           "7]]\n} not formatted correctly. 'signature_name' key must be a string value."},
      {"default int32", "{\"instances\": [[1,2],[3,4],[5,6,7]], \"inputs\": [[1,2],[3,4],[5,6,7]]}",
       "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist "},
      {"default int32", "{\"instances\": [[1,2],[3,4],[5,6,7]]}",
       ITEM("2 of 'instances' list. Error: INVALID_ARGUMENT: Expecting tensor size: 2 but got: 3")},
      {"default int32", "{\"instances\": [[1,2],[3,4],[[5,6]]]}",
       ITEM("2 of 'instances' list. Error: INVALID_ARGUMENT: Expecting shape [2] but got: [1,2]")},
      {"default int32", "{\"instances\": [1, [1]]}",
       ITEM("1 of 'instances' list. Error: INVALID_ARGUMENT: Expecting shape [] but got: [1]")},
      {"default int32", "{\"instances\": [[1,2],[\"a\", \"b\"]]}",
       ITEM("1 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: \"a\" Type: String is not "
            "of expected type: int32")},
      {TWO,
       "{\"instances\": [{\"int_tensor\": [[1,2],[3,4],[5,6]], \"str_tensor\": [\"foo\", \"bar\"]},"
       "{\"int_tensor\": [[[7,8],[9,0],[1,2]]], \"str_tensor\": [\"baz\", \"bat\"]}]}",
       ITEM("1 key: int_tensor of 'instances' list. Error: INVALID_ARGUMENT: Expecting shape [3,2] "
            "but got: [1,3,2]")},
      {TWO,
       "{\"instances\": [{\"int_tensor\": [[1,2],[3,4],[5,6],[7,8]], \"str_tensor\": [\"foo\"]},"
       "{\"int_tensor\": [[7,8],[9,0],[1,2]], \"str_tensor\": [\"baz\"]}]}",
       ITEM(
           "1 key: int_tensor of 'instances' list. Error: INVALID_ARGUMENT: Expecting tensor size: "
           "8 but got: 6")},
      {TWO,
       "{\"instances\": [{\"int_tensor\": [[1,2]], \"str_tensor\": [\"foo\"]}, [1, 20, 30],"
       "{\"int_tensor\": [[[7,8]]], \"str_tensor\": [\"baz\"]}]}",
       BAD "Expecting object but got list at item 1 of input list"},
      {"str_tensor string", "{\"instances\": [[\"baz\", \"bar\"], {\"str_tensor\": [\"baz\"]}]}",
       BAD "Expecting value/list but got object at item 1 of input list"},
      // Not TensorFlow Serving's cases; messages are.
      {"x float", "[1]", BAD "JSON Value: [1] Is not object"},
      {"x float", "{}", BAD "Missing 'inputs' or 'instances' key"},
      {"x float", "{\"instances\": 5}", "Expecting 'instances' to be an list/array"},
      {"x float", "{\"instances\": []}", "No values in 'instances' array"},
      {TWO, "{\"instances\": [1]}",
       BAD "instances is a plain list, but expecting list of objects as multiple input tensors "
           "required as per tensorinfo_map"},
      {TWO, "{\"inputs\": [1]}",
       BAD "inputs is a plain value/list, but expecting an object as multiple input tensors "
           "required as per tensorinfo_map"},
      {TWO, "{\"inputs\": {\"int_tensor\": 1}}",
       BAD "Missing named input: str_tensor in 'inputs' object."},
      {TWO, "{\"instances\": [{\"int_tensor\": 1, \"oops\": 2}]}",
       ITEM("0 key: oops of 'instances' list. Error: INVALID_ARGUMENT: JSON object: does not have "
            "named input: oops")},
      {TWO, "{\"instances\": [{\"int_tensor\": 1}]}",
       ITEM(
           "0 of 'instances' list. JSON object: {\n    \"int_tensor\": 1\n} keys must be equal to: "
           "int_tensor,str_tensor")},
      {"x float", "{\"instances\": [{\"x\": 1, \"x\": 2}]}", "keys must be equal to: x"},
      {"x complex64", "{\"instances\": [1]}",
       ITEM("0 of 'instances' list. Error: UNIMPLEMENTED: Conversion of JSON Value: 1 to type: "
            "complex64")},
      {"x complex64", "{\"inputs\": [1]}", "UNIMPLEMENTED: Conversion of JSON Value: "},
      // Text that is no JSON is the first error, wherever it is.
      {"x float", "{\"instances\": [\"a\"], \"b\": tru}", BAD "JSON Parse error: Invalid value."},
      {"x float", "{\"instances\": [\"a\", 1.]}", BAD "JSON Parse error: Miss fraction part"},
      {"x float", "{\"instances\": [1, 2]", BAD "JSON Parse error: Missing a comma or }"},
      {"x float", "{\"signature_name\": 5, \"instances\": [1}",
       BAD "JSON Parse error: Missing a comma or ]"},
      {"x float", "instances = [1, 2]", BAD "JSON Parse error: Invalid value."},
      {"x float", "  ", BAD "JSON Parse error: The document is empty."},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    EXPECT_TEXT(&rows[i], inputs_text(rows[i].inputs, rn_str(rows[i].body)));
}

// Prints outputs "name type JSON" lines, or the error, without white space.
static const char* outputs_text(const char* lines, bool is_row) {
  rn_predict_value_t values[8];
  int count = 0;
  rn_str_t rest = rn_str(lines);
  while (rest.size) {
    rn_str_t line = rn_str_split(&rest, '\n');
    values[count].name = rn_str_split(&line, ' ');
    rn_dtype_t dtype = rn_dtype_parse(rn_str_split(&line, ' '));
    rn_json_reader_t json = rn_json_reader(line, &arena);
    if (dtype == RN_COMPLEX64)
      OK(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){1, (int64_t[]){2}},
                          &values[count].value));
    else
      OK(rn_json_tensor(&json, dtype, rn_allocator_system(), &values[count].value));
    ++count;
  }
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_status_t status = rn_rest_write_outputs(values, count, is_row, &out);
  if (!rn_ok(status)) {
    put_status(&out, status);
  } else {
    rn_json_reader_t json = rn_json_reader(rn_strbuf_view(&out), &arena);
    OK(rn_json_skip(&json));
    size_t size = 0;
    for (size_t i = 0; i < out.size; ++i)
      if (!strchr(" \n", out.data[i])) out.data[size++] = out.data[i];
    out.size = size;
  }
  for (int i = 0; i < count; ++i) rn_tensor_clear(&values[i].value);
  return keep(&out);
}

typedef struct reply_row_t {
  const char* body;  // the outputs
  bool is_row;
  const char* want;
} reply_row_t;

#define INTS "int_tensor int32 [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0], [1, 2]]]\n"
#define ALL                                                                  \
  "double_scalar_tensor double [8, 9]\nfloat_tensor float [[1], [2]]\n" INTS \
  "str_tensor string [[\"foo\", \"bar\"], [\"baz\", \"bat\"]]\n"             \
  "str_tensor_bytes string [[\"hello\", \"world\"], [\"tf\", \"serving\"]]"

Test(rest_body, outputs_are_written_by_rows_and_by_columns) {
  static const reply_row_t rows[] = {
      {INTS, true, "{\"predictions\":[[[1,2],[3,4],[5,6]],[[7,8],[9,0],[1,2]]]}"},
      {INTS, false, "{\"outputs\":[[[1,2],[3,4],[5,6]],[[7,8],[9,0],[1,2]]]}"},
      {"int_tensor int32 [1,2,3,4,5]", true, "{\"predictions\":[1,2,3,4,5]}"},
      {"int_tensor int32 [1,2,3,4,5]", false, "{\"outputs\":[1,2,3,4,5]}"},
      {"str_tensor_bytes string [[\"hello\", \"world\"], [\"tf\", \"serving\"]]", true,
       "{\"predictions\":[[{\"b64\":\"aGVsbG8=\"},{\"b64\":\"d29ybGQ=\"}],"
       "[{\"b64\":\"dGY=\"},{\"b64\":\"c2VydmluZw==\"}]]}"},
      {"float_tensor float [[9000000, 999999, 0.50000], [0.0003, 0.00003, 555557.5]]", true,
       "{\"predictions\":[[9e+06,999999.0,0.5],[0.0003,3e-05,555557.5]]}"},
      {"float_tensor float [[NaN, Infinity], [3, -Infinity]]", true,
       "{\"predictions\":[[NaN,Infinity],[3.0,-Infinity]]}"},
      {"", true, "INVALID_ARGUMENT: Cannot convert empty tensor map to JSON"},
      {"tensor complex64 ", true,
       "INVALID_ARGUMENT: Failed to write JSON value for tensor type: complex64"},
      {"tensor int32 1", true, "INVALID_ARGUMENT: Tensor name: tensor has no shape information "},
      {"tensor int32 1", false, "{\"outputs\":1}"},
      {ALL, true,
       "{\"predictions\":[{\"double_scalar_tensor\":8.0,\"float_tensor\":[1.0],"
       "\"int_tensor\":[[1,2],[3,4],[5,6]],\"str_tensor\":[\"foo\",\"bar\"],"
       "\"str_tensor_bytes\":[{\"b64\":\"aGVsbG8=\"},{\"b64\":\"d29ybGQ=\"}]},"
       "{\"double_scalar_tensor\":9.0,\"float_tensor\":[2.0],"
       "\"int_tensor\":[[7,8],[9,0],[1,2]],\"str_tensor\":[\"baz\",\"bat\"],"
       "\"str_tensor_bytes\":[{\"b64\":\"dGY=\"},{\"b64\":\"c2VydmluZw==\"}]}]}"},
      {ALL, false,
       "{\"outputs\":{\"double_scalar_tensor\":[8.0,9.0],\"float_tensor\":[[1.0],[2.0]],"
       "\"int_tensor\":[[[1,2],[3,4],[5,6]],[[7,8],[9,0],[1,2]]],"
       "\"str_tensor\":[[\"foo\",\"bar\"],[\"baz\",\"bat\"]],"
       "\"str_tensor_bytes\":[[{\"b64\":\"aGVsbG8=\"},{\"b64\":\"d29ybGQ=\"}],"
       "[{\"b64\":\"dGY=\"},{\"b64\":\"c2VydmluZw==\"}]]}}"},
      {"int_tensor int32 [[1,2,3],[4,5,6]]\nstr_tensor string [[\"foo\",\"bar\",\"baz\"]]", true,
       "INVALID_ARGUMENT: Tensor name: str_tensor has inconsistent batch size: 1 expecting: 2"},
      {"int_tensor int32 []", true, "{\"predictions\":[]}"},
      {"float_tensor float []\nstr_tensor string []", true, "{\"predictions\":[]}"},
      {"int_tensor int32 []\nstr_tensor string [[\"foo\", \"bar\"]]", true,
       "INVALID_ARGUMENT: Tensor name: str_tensor has inconsistent batch size: 1 expecting: 0"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    cr_expect_str_eq(outputs_text(rows[i].body, rows[i].is_row), rows[i].want, "%s\n  %s",
                     rows[i].body, outputs_text(rows[i].body, rows[i].is_row));
}

// The Input of a body, in the text format on one line, with its signature in front.
static const char* examples_text(const char* text) {
  rn_strbuf_t bytes, out;
  rn_strbuf_init(&bytes, rn_allocator_system());
  rn_strbuf_init(&out, rn_allocator_system());
  rn_rest_body_t body;
  rn_status_t status = rn_rest_body_scan(rn_str(text), &arena, &body);
  if (rn_ok(status)) status = rn_rest_read_examples(&body, &bytes);
  rn_pb_serving_Input_t* input = NULL;
  rn_pb_limits_t limits = {.copy_bytes = true};
  if (rn_ok(status))
    status = RN_PB_DECODE(serving_Input, rn_strbuf_view(&bytes), &limits, &arena, &input);
  if (rn_ok(status)) {
    rn_strbuf_printf(&out, "%.*s|", RN_STR_ARGS(body.signature));
    status = rn_pb_print_short(&rn_pb_serving_Input_desc, input, &out);
  }
  put_status(&out, status);
  rn_strbuf_clear(&bytes);
  return keep(&out);
}

#define FEATURE(name, list) "feature { key: \"" name "\" value { " list " } } "

Test(rest_body, examples_become_an_input) {
  static const body_row_t
      rows[] =
          {
              {"",
               "{\"examples\": [{\"names\": [\"foo\", \"bar\"], \"ratings\": [8.0, 9.0], \"age\": "
               "20},"
               "{\"names\": [\"baz\"], \"ratings\": 6.0}]}",
               "|example_list { examples { features { " FEATURE("age", "int64_list { value: 20 }")
                   FEATURE("names", "bytes_list { value: \"foo\" value: \"bar\" }") FEATURE(
                       "ratings",
                       "float_list { value: 8 value: 9 }") "} } examples { features "
                                                           "{ " FEATURE("names",
                                                                        "bytes_list { "
                                                                        "value: \"baz\" }")
                                                               FEATURE("ratings",
                                                                       "float_list { value: 6 "
                                                                       "}") "} } }"},
              {"",
               "{\"signature_name\": \"custom_signture\", \"context\": {\"query\": \"pizza\", "
               "\"location\":"
               " [\"sfo\"]}, \"examples\": [{\"names\": [\"foo\", \"bar\"], \"ratings\": [8.0, "
               "9.0, NaN, "
               "Infinity], \"age\": 20}, {\"names\": [\"baz\", {\"b64\": \"aGVsbG8=\"}], "
               "\"ratings\": 6.0, "
               "\"intboolmix\": [1, true, false]}, {\"names\": \"bar\", \"ratings\": -Infinity}]}",
               "custom_signture|example_list_with_context { examples { features { " FEATURE(
                   "age", "int64_list { value: 20 }")
                   FEATURE("names", "bytes_list { value: \"foo\" value: \"bar\" }")
                       FEATURE("ratings", "float_list { value: 8 value: 9 value: nan value: inf }") "} } examples { features { " FEATURE(
                           "intboolmix",
                           "int64_list { value: 1 value: 1 value: 0 }") FEATURE("names",
                                                                                "bytes_list { "
                                                                                "value: \"baz\" "
                                                                                "value: \"hello\" "
                                                                                "}")
                           FEATURE(
                               "ratings",
                               "float_list { value: 6 }") "} } examples { features { " FEATURE("nam"
                                                                                               "es",
                                                                                               "byt"
                                                                                               "es_"
                                                                                               "lis"
                                                                                               "t "
                                                                                               "{ "
                                                                                               "val"
                                                                                               "ue:"
                                                                                               " \""
                                                                                               "bar"
                                                                                               "\" "
                                                                                               "}")
                               FEATURE(
                                   "ratings",
                                   "float_list { value: -inf }") "} } context { features "
                                                                 "{ " FEATURE("location",
                                                                              "bytes_list { value: "
                                                                              "\"sfo\" }")
                                                                     FEATURE(
                                                                         "query",
                                                                         "bytes_list { value: "
                                                                         "\"pizza\" }") "} } }"},
              {"", "{\"examples\": [{\"none\": []}]}", "feature { key: \"none\" value { } }"},
              {"",
               "{\"signature_name\": [\"hello\"], \"examples\": [{\"names\": [\"foo\", \"bar\"]}]}",
               "'signature_name' key must be a string"},
              {"", "{\"context\": [{\"names\": [\"foo\", \"bar\"]}]}",
               BAD "Example must be JSON object but got JSON Array"},
              {"", "{\"examples\": {\"names\": [\"foo\", \"bar\"]}}",
               "Expecting 'examples' value to be an list/array"},
              {"", "{\"examples\": [[{\"names\": [\"foo\", \"bar\"]}]]}",
               "Example must be JSON object"},
              {"", "{\"examples\": [{\"names\": [10, null]}]}",
               BAD "Feature: names has element with unexpected JSON type: Null"},
              {"", "{\"examples\": [{\"names\": [10, 10.0]}]}",
               BAD "Unexpected element type in feature: names expecting type: int64"},
              {"", "{\"examples\": [{\"names\": [10, {\"test\": 10}]}]}",
               "names has element with unexpected JSON type: Object"},
              {"", "{\"examples\": [{\"names\": [[10], 20]}]}",
               "names has element with unexpected JSON type: Array"},
              {"", "{\"examples\": [{\"names\": [20, 18446744073709551603]}]}",
               "has uint64_t element. Only int64_t is supported."},
              {"", "{\"examples\": [{\"names\": [\"a\", 1]}]}", "expecting type: bytes"},
              {"", "{\"examples\": [{\"names\": [1.5, true]}]}", "expecting type: float"},
              {"", "{\"examples\": []}", "'examples' value is an empty array"},
              {"", "{}", "When method is classify, key 'examples' is expected and was not found"},
              {"", "{\"examples\": [{\"a\": [10, null]}], \"b\": [}",
               BAD "JSON Parse error: Invalid value."},
          };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    EXPECT_TEXT(&rows[i], examples_text(rows[i].body));
}

Test(rest_body, results_are_written) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_pb_serving_Class_t first[] = {{RN_STR("car"), 0.2f}, {RN_STR("bike"), 0.7f}};
  rn_pb_serving_Class_t second[] = {{RN_STR("car"), 0.7f}, {RN_STR("bus"), 1.0f}};
  rn_pb_serving_Classifications_t rows[] = {{{first, 2, 0}}, {{second, 2, 0}}};
  rn_pb_serving_ClassificationResult_t classes = {{rows, 2, 0}};
  OK(rn_rest_write_classes(&classes, &out));
  cr_assert_str_eq(out.data,
                   "{\n    \"results\": [[[\"car\", 0.2], [\"bike\", 0.7]], [[\"car\", 0.7], "
                   "[\"bus\", 1.0]]\n    ]\n}");
  out.size = 0;
  rn_pb_serving_Regression_t items[] = {
      {0.2f}, {__builtin_inff()}, {1}, {-__builtin_inff()}, {__builtin_nanf("")}};
  rn_pb_serving_RegressionResult_t values = {{items, 5, 0}};
  OK(rn_rest_write_values(&values, &out));
  cr_assert_str_eq(out.data, "{\n    \"results\": [0.2, Infinity, 1.0, -Infinity, NaN]\n}");
  rn_strbuf_clear(&out);
  FAILS_WITH(rn_rest_write_classes(&(rn_pb_serving_ClassificationResult_t){0}, &out),
             INVALID_ARGUMENT, "Cannot convert empty ClassificationResults to JSON");
  FAILS_WITH(rn_rest_write_values(&(rn_pb_serving_RegressionResult_t){0}, &out), INVALID_ARGUMENT,
             "Cannot convert empty RegressionResults to JSON");
}

// "verb name version label", or the message.
static const char* path_text(const char* method, const char* path) {
  static const char* const verbs[] = {"status", "metadata", "predict", "classify", "regress"};
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_rest_path_t read;
  rn_status_t status = rn_rest_path_read(rn_str(method), rn_str(path), &arena, &read);
  if (rn_ok(status))
    rn_strbuf_printf(&out, "%s %.*s %lld %.*s", verbs[read.verb], RN_STR_ARGS(read.spec.name),
                     (long long)read.spec.version, RN_STR_ARGS(read.spec.label));
  put_status(&out, status);
  return keep(&out);
}

Test(rest_body, paths_say_what_is_wanted) {
#define ODD "%21%23%24%25%26%27%28%29%2A%2B%2C%2F%3A%3B%3D%3F%40%5B%5D"
#define ODD_DECODED "!#$%&'()*+,/:;=?@[]"
#define MALFORMED BAD "Malformed request: "
  static const struct {
    const char *method, *path, *want;
  } rows[] = {
      {"GET", "/v1/models/modelname" ODD, "status modelname" ODD_DECODED " -1 "},
      {"GET", "/v1/models/modelname/versions/99", "status modelname 99 "},
      {"GET", "/v1/models/modelname/labels/latest", "status modelname -1 latest"},
      {"GET", "/v1/models/modelname/labels/latest" ODD, "status modelname -1 latest" ODD_DECODED},
      {"GET", "/v1/models/modelname/labels/latest/metadata", "metadata modelname -1 latest"},
      {"GET", "/v1/models/m" ODD "/labels/l" ODD "/metadata",
       "metadata m" ODD_DECODED " -1 l" ODD_DECODED},
      {"GET", "/v1/foo", MALFORMED "GET /v1/foo"},
      {"GET", "/v1/models/foo:predict", MALFORMED},
      {"GET", "/v1/models/foo/version/50:predict", MALFORMED},
      {"GET", "/v1/models/debug/model_name", MALFORMED},
      {"GET", "/v1/models", BAD "Missing model name in request."},
      {"GET", "/v1/models/", MALFORMED},
      {"POST", "/v1/models/modelname" ODD ":predict", "predict modelname" ODD_DECODED " -1 "},
      {"POST", "/v1/models/modelname/versions/99:predict", "predict modelname 99 "},
      {"POST", "/v1/models/modelname/labels/latest:predict", "predict modelname -1 latest"},
      {"POST", "/v1/models/m/labels/l" ODD ":predict", "predict m -1 l" ODD_DECODED},
      {"POST", "/v1/models/m" ODD "/labels/l" ODD ":predict",
       "predict m" ODD_DECODED " -1 l" ODD_DECODED},
      {"POST", "/V1/Models/m/Versions/7:Classify", "classify m 7 "},
      {"POST", "/v1/foo", MALFORMED "POST /v1/foo"},
      {"POST", "/v1/models", MALFORMED},
      {"POST", "/v1/models/foo/version/50:predict", MALFORMED},
      {"POST", "/v1/models/foo/version/50:regress", MALFORMED},
      {"POST", "/v1/models/foo/versions/string:predict", MALFORMED},
      {"POST", "/v1/models/foo/versions/:predict", MALFORMED},
      {"POST", "/v1/models/foo/versions/18446744073709551615:regress",
       BAD "Failed to convert version: 18446744073709551615 to numeric."},
      {"POST", "/v1/models/foo/metadata", MALFORMED},
      {"POST", "/v1/models/foo/label/some_label:regress", MALFORMED},
      {"POST", "/v1/models/foo/versions/50/labels/some_label:regress", MALFORMED},
      {"POST", "/v1/models/foo/versions/some_label:regress", MALFORMED},
      {"PUT", "/v1/models/foo:predict", MALFORMED "PUT"},
      {"POST", "/v1/models/100%25%zz:predict", BAD "Malformed escape in '100%25%zz'"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    const char* found = path_text(rows[i].method, rows[i].path);
    cr_expect(strstr(found, rows[i].want) == found, "%s %s: %s", rows[i].method, rows[i].path,
              found);
  }
}

// Reads and writes with the |n|-th allocation failing; true if all of them succeeded.
static bool works_without(int64_t n) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = n};
  rn_allocator_t allocator = rn_allocator_counting(&counting);
  rn_arena_t scratch;
  rn_arena_init(&scratch, allocator);
  rn_strbuf_t out;
  rn_strbuf_init(&out, allocator);
  rn_serve_signature_t signature = signature_of("a float b string");
  rn_rest_body_t body;
  rn_predict_value_t* values = NULL;
  int count = 0;
  bool is_row;
  rn_status_t status = rn_rest_body_scan(
      RN_STR("{\"instances\": [{\"\\u0061\": [1, 2], \"b\": \"\\u00e9\"}, {\"a\": [3, 4], \"b\":"
             "{\"b64\": \"aGVsbG8gd29ybGQsIGhlbGxvIHdvcmxkLCBoZWxsbw==\"}}],"
             "\"examples\": [{\"x\": [1.5], \"y\": [\"\\u0061\", \"b\"]}], \"z\": [[[{}]]]}"),
      &scratch, &body);
  if (rn_ok(status))
    status = rn_rest_read_inputs(&body, &signature, allocator, &values, &count, &is_row);
  if (rn_ok(status)) status = rn_rest_write_outputs(values, count, is_row, &out);
  if (rn_ok(status)) {
    out.size = 0;
    status = rn_rest_read_examples(&body, &out);
  }
  bool is_ok = rn_ok(status);
  if (!is_ok)
    cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "%lld", (long long)n);
  rn_status_free(status);
  for (int i = 0; i < count; ++i) rn_tensor_clear(&values[i].value);
  rn_strbuf_clear(&out);
  rn_arena_clear(&scratch);
  cr_assert_eq(counting.live_blocks, 0, "%lld", (long long)n);
  return is_ok;
}

Test(rest_body, survives_without_memory) {
  int64_t n = 1;
  while (n < 1000 && !works_without(n)) ++n;
  cr_assert(n > 10 && n < 1000);
}
