// Requests and replies of the Open Inference Protocol, as bytes: both forms, without a server.
#include <stdio.h>

#include "../support/status.h"
#include "proto/oip.pb.h"
#include "serve/front/oip_rest.h"
#include "serve/front/oip_rpc.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

static rn_allocator_t memory(void) { return rn_allocator_system(); }

typedef struct codec_t {
  rn_front_t front;
  rn_oip_infer_t infer;
  rn_buffer_t* body;
} codec_t;

static void codec_open(codec_t* codec) {
  *codec = (codec_t){.front = {.env = rn_env_system(), .allocator = memory()}};
  OK(rn_metrics_create(memory(), &codec->front.metrics));
  rn_oip_infer_init(&codec->infer, &codec->front);
  codec->infer.model = RN_STR("m");
  codec->infer.number = 3;
}

static void codec_close(codec_t* codec) {
  rn_oip_infer_clear(&codec->infer);
  rn_metrics_destroy(codec->front.metrics);
  rn_buffer_release(codec->body);
}

// Reads a REST request: |json|, then |size| bytes of |binary|.
static rn_status_t read_rest(codec_t* codec, const char* json, const void* binary, size_t size) {
  codec_open(codec);
  size_t length = strlen(json);
  OK(rn_buffer_create(memory(), RN_UINT8, length + size, &codec->body));
  memcpy(codec->body->data, json, length);
  if (size) memcpy((char*)codec->body->data + length, binary, size);
  return rn_oip_rest_read(&codec->infer, rn_str_n(codec->body->data, length + size),
                          binary ? length : SIZE_MAX, codec->body);
}

static const rn_tensor_t* value(const codec_t* codec, int i) {
  return &codec->infer.predict.inputs[i].value;
}

Test(oip_rest, reads_numbers_strings_and_parameters) {
  codec_t codec;
  OK(read_rest(
      &codec,
      "{\"id\": \"7\", \"parameters\": {\"timeout\": 2500, \"priority\": 1, \"other\": null,"
      " \"ratio\": 0.5, \"signature_name\": \"add\"}, \"inputs\": ["
      "{\"name\": \"a\", \"shape\": [2, 2], \"datatype\": \"FP32\", \"data\": [1, 2.5, -3, 4]},"
      "{\"data\": [[\"x\"], [\"\"]], \"datatype\": \"BYTES\", \"shape\": [2, 1], \"name\": \"b\"},"
      "{\"name\": \"c\", \"shape\": [1], \"datatype\": \"BOOL\", \"data\": [true]}],"
      "\"outputs\": [{\"name\": \"y\", \"parameters\": {\"binary_data\": false}},"
      "{\"name\": \"z\"}], \"unknown\": {\"a\": []}}",
      NULL, 0));
  const rn_oip_infer_t* infer = &codec.infer;
  cr_assert(rn_str_is(infer->id, "7") && infer->timeout_us == 2500);
  cr_assert_gt(infer->predict.priority, 0);
  cr_assert(rn_str_is(infer->predict.signature, "add"));
  cr_assert_eq(infer->input_count, 3);
  cr_assert(rn_str_is(infer->inputs[1].name, "b"));
  cr_assert_eq(RN_DATA(value(&codec, 0), float)[1], 2.5f);
  cr_assert(rn_str_is(rn_tstring_view(RN_DATA(value(&codec, 1), rn_tstring_t)), "x"));
  cr_assert(*RN_DATA(value(&codec, 2), bool));
  cr_assert_eq(infer->output_count, 2);
  cr_assert(infer->outputs[0].has_binary && !infer->outputs[0].is_binary);
  cr_assert(!infer->outputs[1].has_binary);
  codec_close(&codec);
}

Test(oip_rest, priority_one_is_the_highest) {
  int before = 0;
  const char* levels[] = {"0", "2147483647000", "9", "2", "1"};
  for (int i = 0; i < 5; ++i) {
    codec_t codec;
    char json[80];
    snprintf(json, sizeof json, "{\"parameters\": {\"priority\": %s}}", levels[i]);
    OK(read_rest(&codec, json, NULL, 0));
    cr_assert_geq(codec.infer.predict.priority, before + (i > 0));
    before = codec.infer.predict.priority;
    codec_close(&codec);
  }
}

Test(oip_rest, large_binary_inputs_are_not_copied) {
  static float numbers[2000];
  for (int i = 0; i < 2000; ++i) numbers[i] = (float)i;
  // The text ends at a multiple of four.
  codec_t codec;
  OK(read_rest(&codec,
               "{\"inputs\":[{\"name\":\"x\",\"shape\":[1000],\"datatype\":\"FP32\",\"parameters\":"
               "{\"binary_data_size\":4000}},{\"name\":\"z\",\"shape\":[0],\"datatype\":\"FP64\","
               "\"parameters\":{\"binary_data_size\":0}},{\"name\":\"y\",\"shape\":[10,100],"
               "\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":4000}}],"
               "\"parameters\":{\"binary_data_output\":true}} ",
               numbers, sizeof numbers));
  cr_assert_eq(RN_DATA(value(&codec, 0), float)[999], 999);
  cr_assert_eq(RN_DATA(value(&codec, 2), float)[0], 1000);
  cr_assert(codec.infer.is_binary);
  codec_close(&codec);
  OK(read_rest(
      &codec,
      "{\"inputs\":[{\"name\":\"xy\",\"shape\":[2000],\"datatype\":\"FP32\",\"parameters\":"
      "{\"binary_data_size\":8000}}]}",
      numbers, sizeof numbers));
  bool is_aligned = (uintptr_t)((char*)codec.body->data + codec.body->size - 8000) % 4 == 0;
  cr_assert_eq(value(&codec, 0)->buffer == codec.body, is_aligned);
  cr_assert_eq(RN_DATA(value(&codec, 0), float)[1999], 1999);
  codec_close(&codec);
}

Test(oip_rest, refuses_what_does_not_fit) {
  static const struct {
    const char* json;
    const char* binary;
    const char* part;
  } rows[] = {
#define X "{\"inputs\":[{\"name\":\"x\","
      {"", NULL, "JSON"},
      {"[]", NULL, ""},
      {"{\"inputs\":[{\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}]}", NULL, "name"},
      {X "\"datatype\":\"FP32\",\"data\":[1]}]}", NULL, "shape"},
      {X "\"shape\":[1],\"data\":[1]}]}", NULL, "datatype"},
      {X "\"shape\":[1],\"datatype\":\"FP31\",\"data\":[1]}]}", NULL, "datatype"},
      {X "\"shape\":[-1],\"datatype\":\"FP32\",\"data\":[1]}]}", NULL, "shape"},
      {X "\"shape\":[3037000500,3037000500],\"datatype\":\"FP32\",\"data\":[1]}]}", NULL, ""},
      {X "\"shape\":[1000000000000],\"datatype\":\"FP32\",\"data\":[1]}]}", NULL, ""},
      {X "\"shape\":[2],\"datatype\":\"FP32\",\"data\":[1]}]}", NULL, ""},
      {X "\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[256]}]}", NULL, ""},
      {X "\"shape\":[1],\"datatype\":\"FP32\"}]}", NULL, "must have one of"},
      {X "\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1],\"parameters\":{\"binary_data_size\":4}}"
         "]}",
       "1234", "must have one of"},
      {X "\"shape\":[1],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":8}}]}", "1234",
       "expecting 8"},
      {X "\"shape\":[1],\"datatype\":\"FP64\",\"parameters\":{\"binary_data_size\":4}}]}", "1234",
       "expecting 8"},
      {X "\"shape\":[1],\"datatype\":\"UINT8\",\"parameters\":{\"binary_data_size\":1}}]}", "1234",
       "additional"},
      {X "\"shape\":[1],\"datatype\":\"BOOL\",\"parameters\":{\"binary_data_size\":1}}]}", "2",
       "neither 0 nor 1"},
      {X "\"shape\":[1],\"datatype\":\"BYTES\",\"parameters\":{\"binary_data_size\":4}}]}", "1234",
       "incomplete"},
      {X "\"shape\":[1],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":-4}}]}", "1234",
       "not negative"},
      {X "\"shape\":[1],\"datatype\":\"FP32\",\"parameters\":{\"shared_memory_region\":\"r\"}}]}",
       NULL, "together"},
      {"{\"parameters\":{\"timeout\":\"1\"}}", NULL, "integer"},
      {"{\"parameters\":{\"binary_data_output\":1}}", NULL, "boolean"},
#undef X
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    codec_t codec;
    const char* binary = rows[i].binary;
    rn_status_t status = read_rest(&codec, rows[i].json, binary, binary ? strlen(binary) : 0);
    cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT, "%s: %s", rows[i].json,
                 rn_status_message(status));
    cr_assert(strstr(rn_status_message(status), rows[i].part), "%s: %s", rows[i].json,
              rn_status_message(status));
    rn_status_free(status);
    codec_close(&codec);
  }
  codec_t codec;
  FAILS(read_rest(&codec,
                  "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"FP32\",\"parameters\":"
                  "{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":4}}]}",
                  NULL, 0),
        PERMISSION_DENIED);
  codec_close(&codec);
  FAILS(read_rest(&codec, "{\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":-3}}]}",
                  NULL, 0),
        INVALID_ARGUMENT);
  codec_close(&codec);
}

// Two outputs: y = [[1.5, -2]], text = ["ab", ""].
static void answer(codec_t* codec) {
  rn_predict_t* predict = &codec->infer.predict;
  OK(RN_NEW_ARRAY(memory(), 2, &predict->outputs));
  predict->output_count = 2;
  const int64_t dims[] = {1, 2};
  predict->outputs[0].name = RN_STR("y");
  predict->outputs[1].name = RN_STR("text");
  OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){2, dims}, &predict->outputs[0].value));
  OK(rn_tensor_create(memory(), RN_STRING, (rn_shape_t){1, dims + 1}, &predict->outputs[1].value));
  RN_DATA(&predict->outputs[0].value, float)[0] = 1.5f;
  RN_DATA(&predict->outputs[0].value, float)[1] = -2;
  cr_assert(rn_tstring_assign(RN_DATA(&predict->outputs[1].value, rn_tstring_t), "ab", 2));
}

static void flatten(const rn_message_t* message, rn_strbuf_t* out) {
  rn_strbuf_init(out, memory());
  for (size_t i = 0; i < message->pieces.count; ++i)
    rn_strbuf_append(out, message->pieces.items[i].bytes);
}

static void expect_reply(codec_t* codec, const char* json, rn_str_t binary) {
  rn_message_t message;
  size_t size = 0;
  answer(codec);
  OK(rn_oip_rest_write(&codec->infer, &message, &size));
  rn_strbuf_t text;
  flatten(&message, &text);
  rn_str_t all = rn_strbuf_view(&text);
  cr_assert_eq(size, binary.size ? strlen(json) : 0);
  cr_assert(rn_str_starts_with(all, rn_str(json)), "%.*s", RN_STR_ARGS(all));
  cr_assert(rn_str_eq(rn_str_n(all.data + strlen(json), all.size - strlen(json)), binary));
  rn_strbuf_clear(&text);
  rn_message_clear(&message);
  codec_close(codec);
}

Test(oip_rest, writes_json_and_binary) {
  codec_t codec;
  OK(read_rest(&codec, "{\"id\": \"a\\\"b\"}", NULL, 0));
  codec.infer.predict.marks = RN_MARK_CACHED;
  expect_reply(&codec,
               "{\"id\":\"a\\\"b\",\"model_name\":\"m\",\"model_version\":\"3\",\"parameters\":"
               "{\"runnel_marks\":\"cached\"},\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\","
               "\"shape\":[1,2],\"data\":[1.5, -2.0]},{\"name\":\"text\",\"datatype\":\"BYTES\","
               "\"shape\":[2],\"data\":[\"ab\", \"\"]}]}",
               RN_STR(""));
  OK(read_rest(
      &codec,
      "{\"parameters\": {\"binary_data_output\": true}, \"outputs\": ["
      "{\"name\": \"y\", \"parameters\": {\"binary_data\": false}}, {\"name\": \"text\"}]}",
      NULL, 0));
  expect_reply(&codec,
               "{\"model_name\":\"m\",\"model_version\":\"3\",\"outputs\":[{\"name\":\"y\","
               "\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1.5, -2.0]},{\"name\":\"text\","
               "\"datatype\":\"BYTES\",\"shape\":[2],\"parameters\":{\"binary_data_size\":10}}]}",
               RN_STR("\2\0\0\0ab\0\0\0\0"));
}

// gRPC.

static rn_status_t read_rpc(codec_t* codec, const rn_pb_inference_ModelInferRequest_t* request) {
  codec_open(codec);
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, memory());
  OK(RN_PB_ENCODE(inference_ModelInferRequest, request, NULL, &bytes));
  OK(rn_buffer_create(memory(), RN_UINT8, bytes.size, &codec->body));
  if (bytes.size) memcpy(codec->body->data, bytes.data, bytes.size);
  rn_message_t message;
  rn_message_init(&message, memory());
  OK(rn_message_lend(&message, codec->body, rn_str_n(codec->body->data, bytes.size)));
  rn_strbuf_clear(&bytes);
  rn_status_t status = rn_oip_rpc_read(&codec->infer, &message);
  rn_message_clear(&message);
  return status;
}

typedef rn_pb_inference_ModelInferRequest_InferInputTensor_t input_pb_t;

static input_pb_t input_pb(const char* name, const char* type, int64_t* dims, uint32_t rank) {
  return (input_pb_t){
      .name = rn_str(name), .datatype = rn_str(type), .shape = {.items = dims, .count = rank}};
}

#define LIST(array) \
  { .items = (array), .count = sizeof(array) / sizeof *(array) }

Test(oip_rpc, reads_typed_contents) {
  int64_t dims[] = {2};
  int32_t ints[] = {-128, 127};
  uint32_t bytes[] = {0, 65535};
  double reals[] = {0.5, -1};
  rn_str_t texts[] = {RN_STR("a"), RN_STR("")};
  rn_pb_inference_InferTensorContents_t contents[4] = {{.int_contents = LIST(ints)},
                                                       {.uint_contents = LIST(bytes)},
                                                       {.fp64_contents = LIST(reals)},
                                                       {.bytes_contents = LIST(texts)}};
  input_pb_t inputs[] = {input_pb("i", "INT8", dims, 1), input_pb("u", "UINT16", dims, 1),
                         input_pb("d", "FP64", dims, 1), input_pb("s", "BYTES", dims, 1)};
  for (int i = 0; i < 4; ++i) inputs[i].contents = &contents[i];
  rn_pb_inference_ModelInferRequest_t request = {.model_name = RN_STR("half"),
                                                 .inputs = LIST(inputs)};
  codec_t codec;
  OK(read_rpc(&codec, &request));
  cr_assert_eq(RN_DATA(value(&codec, 0), int8_t)[0], -128);
  cr_assert_eq(RN_DATA(value(&codec, 1), uint16_t)[1], 65535);
  cr_assert_eq(RN_DATA(value(&codec, 2), double)[1], -1);
  cr_assert(rn_str_is(rn_tstring_view(RN_DATA(value(&codec, 3), rn_tstring_t)), "a"));
  codec_close(&codec);
  ints[1] = 128;
  FAILS_WITH(read_rpc(&codec, &request), INVALID_ARGUMENT, "range");
  codec_close(&codec);
  ints[1] = 1;
  inputs[0].datatype = RN_STR("FP16");
  FAILS_WITH(read_rpc(&codec, &request), INVALID_ARGUMENT, "raw_input_contents");
  codec_close(&codec);
  inputs[0].datatype = RN_STR("INT64");
  FAILS_WITH(read_rpc(&codec, &request), INVALID_ARGUMENT, "expecting 2");
  codec_close(&codec);
  inputs[0].contents = NULL;
  FAILS_WITH(read_rpc(&codec, &request), INVALID_ARGUMENT, "expecting 2");
  codec_close(&codec);
}

Test(oip_rpc, reads_raw_contents) {
  int64_t dims[] = {2};
  input_pb_t inputs[] = {input_pb("a", "FP32", dims, 1), input_pb("s", "BYTES", dims, 1)};
  rn_str_t raw[] = {RN_STR("\0\0\x80\x3f\0\0\0\x40"), RN_STR("\1\0\0\0x\0\0\0\0"), RN_STR("")};
  rn_pb_inference_ModelInferRequest_t request = {.inputs = LIST(inputs),
                                                 .raw_input_contents = LIST(raw)};
  codec_t codec;
  FAILS_WITH(read_rpc(&codec, &request), INVALID_ARGUMENT, "expected 2 raw_input_contents");
  codec_close(&codec);
  request.raw_input_contents.count = 2;
  OK(read_rpc(&codec, &request));
  cr_assert_eq(RN_DATA(value(&codec, 0), float)[1], 2);
  cr_assert(rn_str_is(rn_tstring_view(RN_DATA(value(&codec, 1), rn_tstring_t)), "x"));
  codec_close(&codec);
  request.raw_input_contents.count = 1;
  FAILS(read_rpc(&codec, &request), INVALID_ARGUMENT);
  codec_close(&codec);
  rn_pb_inference_InferTensorContents_t contents = {0};
  inputs[0].contents = &contents;
  FAILS_WITH(read_rpc(&codec, &request), INVALID_ARGUMENT, "must not be specified");
  codec_close(&codec);
}

Test(oip_rpc, writes_raw_outputs) {
  codec_t codec;
  rn_pb_inference_ModelInferRequest_t request = {.model_name = RN_STR("m"), .id = RN_STR("9")};
  OK(read_rpc(&codec, &request));
  answer(&codec);
  codec.infer.predict.marks = RN_MARK_PARTIAL;
  rn_message_t message;
  rn_message_init(&message, memory());
  OK(rn_oip_rpc_write(&codec.infer, true, &message));
  rn_strbuf_t bytes;
  flatten(&message, &bytes);
  rn_arena_t arena;
  rn_arena_init(&arena, memory());
  rn_pb_inference_ModelInferResponse_t* response = NULL;
  OK(RN_PB_DECODE(inference_ModelInferResponse, rn_strbuf_view(&bytes), NULL, &arena, &response));
  cr_assert(rn_str_is(response->model_version, "3") && rn_str_is(response->id, "9"));
  cr_assert_eq(response->parameters.count, 2);
  cr_assert(rn_str_is(response->parameters.items[0].value->string_param, "partial"));
  cr_assert(response->parameters.items[1].value->bool_param);
  cr_assert_eq(response->outputs.count, 2);
  cr_assert(rn_str_is(response->outputs.items[0].datatype, "FP32"));
  cr_assert_eq(response->outputs.items[0].shape.items[1], 2);
  cr_assert_eq(response->raw_output_contents.count, 2);
  cr_assert_eq(response->raw_output_contents.items[0].size, 8);
  cr_assert(rn_str_eq(response->raw_output_contents.items[1], RN_STR("\2\0\0\0ab\0\0\0\0")));
  rn_arena_clear(&arena);
  rn_strbuf_clear(&bytes);
  rn_message_clear(&message);
  codec_close(&codec);
}
