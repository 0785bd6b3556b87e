// TensorFlow Serving's gRPC services, health and reflection over loopback, with a fake model: what
// they answer, in whose words they refuse, and that no bytes crash them.
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/outcome.h"
#include "fake_model.h"
#include "net/channel.h"
#include "net/tensor_codec.h"
#include "proto/health.pb.h"
#include "proto/serving_metadata.pb.h"
#include "proto/serving_predict.pb.h"
#include "proto/serving_status.pb.h"
#include "serve/front/front.h"
#include "util.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define RPC_TEST(name) Test(rpc_front, name, .timeout = 120)
#define SECOND INT64_C(1000000000)
#define PREDICTION "/tensorflow.serving.PredictionService/"
#define MODEL "/tensorflow.serving.ModelService/"

static int64_t now(void) { return rn_env_system()->now_ns(rn_env_system()->self); }

// A server and a client.
typedef struct rig_t {
  char folder[64];
  fake_model_t fake;
  rn_front_t front;
  rn_loop_t* loop;
  rn_rpc_server_t* server;
  rn_channel_t* channel;
  rn_role_t role;
  rn_arena_t arena;
  _Atomic int reloads;
  bool shares_buffer;  // the last input was in the received message
  _Atomic(rn_backend_run_t*) held;
} rig_t;

// Version 7 is the fake model; version 8 does not load.
static rn_status_t load(void* self, const rn_pb_serving_ModelConfig_t* config, int64_t number,
                        const char* folder, rn_backend_t*** out, int* out_count) {
  (void)config, (void)folder;
  if (number != 7) return rn_not_found("no such file");
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(memory(), 1, out));
  (*out)[0] = &((rig_t*)self)->fake.base;
  *out_count = 1;
  return RN_OK;
}

static rn_model_state_t state_of(rig_t* rig, int64_t number) {
  rn_model_info_t* infos = NULL;
  int count = 0;
  rn_model_state_t state = RN_MODEL_UNKNOWN;
  OK(rn_models_info(rig->front.models, RN_STR("half"), &rig->arena, &infos, &count));
  for (int i = 0; i < infos[0].version_count; ++i)
    if (infos[0].versions[i].number == number) state = infos[0].versions[i].state;
  rn_models_info_clear(infos, count);
  return state;
}

// The model "half" with the versions 7 and 8.
static void open_models(rig_t* rig) {
  serve_folder(rig->folder);
  serve_write(rig->folder, "7/model", RN_STR(""));
  serve_write(rig->folder, "8/model", RN_STR(""));
  rn_models_options_t options = {.load = load,
                                 .self = rig,
                                 .batching = {.env = rn_env_system(),
                                              .allocator = memory(),
                                              .timers = rn_loop_timers(rig->loop)},
                                 .load_threads = 1,
                                 .env = rn_env_system(),
                                 .allocator = memory()};
  OK(rn_models_create(&options, &rig->front.models));
  int64_t versions[] = {7, 8};
  rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_Specific_t specific = {
      .versions = {versions, 2, 2}};
  rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_t policy = {
      .policy_choice_case = 102, .specific = &specific};
  rn_pb_serving_ModelConfig_t model = {.name = RN_STR("half"),
                                       .base_path = rn_str(rig->folder),
                                       .model_platform = RN_STR("tensorflow"),
                                       .model_version_policy = &policy};
  rn_pb_serving_ModelConfigList_t list = {.config = {&model, 1, 1}};
  rn_pb_serving_ModelServerConfig_t config = {
      .config_case = rn_pb_serving_ModelServerConfig_model_config_list_field,
      .model_config_list = &list};
  OK(rn_models_configure(rig->front.models, &config));
  for (int i = 0; i < 60000; ++i) {
    if (state_of(rig, 7) == RN_MODEL_AVAILABLE && state_of(rig, 8) == RN_MODEL_END) return;
    usleep(1000);
  }
  cr_assert(false, "the model was not loaded");
}

static void handle(void* self, rn_rpc_in_t* call) {
  static const rn_rpc_route_fn_t routes[] = {rn_prediction_service_route, rn_model_service_route,
                                             rn_session_service_route, rn_health_route,
                                             rn_reflection_route};
  rig_t* rig = self;
  for (size_t i = 0; i < sizeof routes / sizeof *routes; ++i)
    if (routes[i](&rig->front, call, rig->role)) return;
  rn_message_t none;
  rn_message_init(&none, memory());
  rn_rpc_reply(call, rn_unimplemented("no such service"), &none);
}

static rn_status_t reload(void* self, const rn_pb_serving_ModelServerConfig_t* config) {
  rig_t* rig = self;
  ++rig->reloads;
  if (config->model_config_list->config.count == 1) return RN_OK;
  return rn_failed_precondition("no models");
}

static void rig_open(rig_t* rig) {
  *rig = (rig_t){.role = RN_ROLE_ADMIN};
  rn_arena_init(&rig->arena, memory());
  fake_init(&rig->fake);
  rig->fake.self = rig;
  rig->fake.base.meta = RN_STR("\x0a\x03\x0a\x01s");
  OK(rn_loop_create(rn_env_system(), memory(), &rig->loop));
  rig->front = (rn_front_t){.env = rn_env_system(),
                            .timers = rn_loop_timers(rig->loop),
                            .allocator = memory(),
                            .is_ready = true,
                            .self = rig,
                            .reload = reload};
  open_models(rig);
  OK(rn_metrics_create(memory(), &rig->front.metrics));
  OK(rn_pool_create(memory(), 2, &rig->front.pool));
  rig->front.loads = rig->front.sessions = rig->front.pool;
  rn_rpc_server_options_t server = {.loop = rig->loop,
                                    .allocator = memory(),
                                    .address = "127.0.0.1:0",
                                    .handle = handle,
                                    .streams = rn_front_streams,
                                    .align = rn_align_content,
                                    .keeps_headers = true,
                                    .self = rig};
  OK(rn_rpc_server_create(&server, &rig->server));
  char address[64];
  snprintf(address, sizeof address, "127.0.0.1:%d", rn_rpc_server_port(rig->server));
  rn_channel_options_t channel = {.loop = rig->loop, .allocator = memory(), .address = address};
  OK(rn_channel_create(&channel, &rig->channel));
}

static void rig_close(rig_t* rig) {
  rn_channel_destroy(rig->channel);
  rn_rpc_server_destroy(rig->server);
  rn_pool_destroy(rig->front.pool);
  rn_models_destroy(rig->front.models);
  serve_remove(rig->folder);
  rn_metrics_destroy(rig->front.metrics);
  rn_loop_destroy(rig->loop);
  rn_arena_clear(&rig->arena);
}

// A call that its caller waits for.
typedef struct waited_t {
  rn_rpc_out_t call;  // first
  rn_outcome_t outcome;
} waited_t;

static void on_done(rn_rpc_out_t* call, rn_status_t status) {
  rn_outcome_set(&((waited_t*)call)->outcome, status);
}

// The response is in the rig's arena.
static rn_status_t call_until(rig_t* rig, const char* path, rn_str_t request, int64_t deadline_ns,
                              rn_str_t* out) {
  waited_t waited = {.call = {.path = path, .deadline_ns = deadline_ns, .done = on_done}};
  rn_outcome_init(&waited.outcome);
  rn_message_init(&waited.call.request, memory());
  OK(rn_message_add(&waited.call.request, request));
  rn_rpc_start(rig->channel, &waited.call);
  rn_status_t status = rn_outcome_wait(&waited.outcome);
  OK(rn_arena_str(&rig->arena, rn_message_view(&waited.call.stream.message), out));
  rn_rpc_out_clear(&waited.call);
  return status;
}
static rn_status_t call(rig_t* rig, const char* path, rn_str_t request, rn_str_t* out) {
  return call_until(rig, path, request, now() + 60 * SECOND, out);
}

static void refused(rig_t* rig, const char* path, rn_str_t request, rn_code_t code,
                    const char* text) {
  rn_str_t response;
  rn_status_t status = call(rig, path, request, &response);
  cr_assert_eq(rn_status_code(status), code, "%d %s", rn_status_code(status),
               rn_status_message(status));
  cr_assert_str_eq(rn_status_message(status), text);
  rn_status_free(status);
}

// Requests, encoded in the rig's arena.
static rn_str_t encoded(rig_t* rig, const rn_pb_message_desc_t* desc, const void* message) {
  rn_strbuf_t bytes;
  rn_str_t out;
  rn_strbuf_init(&bytes, memory());
  OK(rn_pb_encode(desc, message, NULL, &bytes));
  OK(rn_arena_str(&rig->arena, rn_strbuf_view(&bytes), &out));
  rn_strbuf_clear(&bytes);
  return out;
}

typedef struct question_t {
  rn_pb_google_protobuf_Int64Value_t version;
  rn_pb_serving_ModelSpec_t spec;
  rn_pb_TensorShapeProto_Dim_t dims[2];
  rn_pb_TensorShapeProto_t shape;
  rn_pb_TensorProto_t tensor;
  rn_pb_serving_PredictRequest_InputsEntry_t input;
  rn_str_t filter;
  rn_pb_serving_PredictRequest_t request;
} question_t;

// x = [[1, 2]] for "half", to be doubled.
static void question(question_t* q) {
  static float values[] = {1, 2};
  *q = (question_t){.spec.name = RN_STR("half"), .dims = {{.size = 1}, {.size = 2}}};
  q->shape.dim.items = q->dims;
  q->shape.dim.count = 2;
  q->tensor = (rn_pb_TensorProto_t){.dtype = RN_FLOAT, .tensor_shape = &q->shape};
  q->tensor.float_val.items = values;
  q->tensor.float_val.count = 2;
  q->input = (rn_pb_serving_PredictRequest_InputsEntry_t){RN_STR("x"), &q->tensor};
  q->request.model_spec = &q->spec;
  q->request.inputs.items = &q->input;
  q->request.inputs.count = 1;
}
static rn_str_t asked(rig_t* rig, const question_t* q) {
  return encoded(rig, &rn_pb_serving_PredictRequest_desc, &q->request);
}

static const rn_pb_serving_PredictResponse_t* predict(rig_t* rig, const question_t* q) {
  rn_str_t bytes;
  rn_pb_serving_PredictResponse_t* response = NULL;
  OK(call(rig, PREDICTION "Predict", asked(rig, q), &bytes));
  OK(RN_PB_DECODE(serving_PredictResponse, bytes, NULL, &rig->arena, &response));
  return response;
}

RPC_TEST(predict_answers_with_lists_and_a_spec) {
  rig_t rig;
  question_t q;
  rig_open(&rig);
  question(&q);
  const rn_pb_serving_PredictResponse_t* response = predict(&rig, &q);
  cr_assert_eq(response->outputs.count, 1);
  cr_assert(rn_str_is(response->outputs.items[0].key, "y"));
  const rn_pb_TensorProto_t* y = response->outputs.items[0].value;
  cr_assert_eq(y->dtype, RN_FLOAT);
  cr_assert_eq(y->tensor_shape->dim.count, 2);
  cr_assert_eq(y->float_val.count, 2);
  cr_assert_eq(y->float_val.items[0], 2);
  cr_assert_eq(y->float_val.items[1], 4);
  cr_assert_eq(y->tensor_content.size, 0);
  cr_assert(rn_str_is(response->model_spec->name, "half"));
  cr_assert(rn_str_is(response->model_spec->signature_name, "serving_default"));
  cr_assert_eq(response->model_spec->version_choice_case,
               0 + rn_pb_serving_ModelSpec_version_field);
  cr_assert_eq(response->model_spec->version->value, 7);
  // By version, as bytes, with a filter and a signature.
  float content[] = {3, 4};
  q.tensor.float_val.count = 0;
  q.tensor.tensor_content = rn_str_n((char*)content, sizeof content);
  q.version.value = 7;
  q.spec.version_choice_case = rn_pb_serving_ModelSpec_version_field;
  q.spec.version = &q.version;
  q.spec.signature_name = RN_STR("serving_default");
  q.filter = RN_STR("y");
  q.request.output_filter.items = &q.filter;
  q.request.output_filter.count = 1;
  response = predict(&rig, &q);
  cr_assert_eq(response->outputs.items[0].value->float_val.items[1], 8);
  rig_close(&rig);
}

// Large tensors, in both forms, are read where they were received, and sent from where they are.
static void look_at_input(fake_model_t* fake, rn_backend_run_t* run) {
  rig_t* rig = fake->self;
  const rn_buffer_t* buffer = run->inputs[0].buffer;
  rig->shares_buffer = buffer && buffer->size > rn_tensor_bytes(&run->inputs[0]);
  run->done(run, fake_compute(run));
}

RPC_TEST(large_inputs_are_not_copied) {
  enum { ROWS = 30000 };
  rig_t rig;
  question_t q;
  rig_open(&rig);
  rig.fake.on_run = look_at_input;
  float* values = malloc(2 * ROWS * sizeof *values);
  for (int i = 0; i < 2 * ROWS; ++i) values[i] = (float)i;
  for (int form = 0; form < 2; ++form) {
    question(&q);
    q.dims[0].size = ROWS;
    q.tensor.float_val.items = values;
    q.tensor.float_val.count = form ? 0 : 2 * ROWS;
    if (form) q.tensor.tensor_content = rn_str_n((char*)values, 2 * ROWS * sizeof *values);
    const rn_pb_serving_PredictResponse_t* response = predict(&rig, &q);
    cr_assert(rig.shares_buffer);
    const rn_pb_TensorProto_t* y = response->outputs.items[0].value;
    cr_assert_eq(y->float_val.count, 2 * ROWS);
    for (int i = 0; i < 2 * ROWS; ++i) cr_assert_eq(y->float_val.items[i], 2 * values[i]);
  }
  free(values);
  rig_close(&rig);
}

RPC_TEST(texts_and_maps_with_repeated_keys) {
  rig_t rig;
  question_t q;
  rig_open(&rig);
  question(&q);
  q.spec.signature_name = RN_STR("text");
  rn_str_t texts[] = {RN_STR("ab"), RN_STR("")};
  q.dims[0].size = 2;
  q.shape.dim.count = 1;
  q.tensor = (rn_pb_TensorProto_t){.dtype = RN_STRING, .tensor_shape = &q.shape};
  q.tensor.string_val.items = texts;
  q.tensor.string_val.count = 2;
  // The last entry of a key counts, so the first may have any type.
  rn_pb_TensorProto_t other = {.dtype = RN_FLOAT, .tensor_shape = &q.shape};
  rn_pb_serving_PredictRequest_InputsEntry_t entries[] = {{RN_STR("s"), &other},
                                                          {RN_STR("s"), &q.tensor}};
  q.request.inputs.items = entries;
  q.request.inputs.count = 2;
  const rn_pb_serving_PredictResponse_t* response = predict(&rig, &q);
  const rn_pb_TensorProto_t* s = response->outputs.items[0].value;
  cr_assert_eq(s->string_val.count, 2);
  cr_assert(rn_str_is(s->string_val.items[0], "ab!"));
  cr_assert(rn_str_is(s->string_val.items[1], "!"));
  cr_assert(rn_str_is(response->model_spec->signature_name, "text"));
  rig_close(&rig);
}

RPC_TEST(predict_refuses_in_stock_words) {
  rig_t rig;
  question_t q;
  rig_open(&rig);
  refused(&rig, PREDICTION "Predict", RN_STR(""), RN_CODE_INVALID_ARGUMENT, "Missing ModelSpec");
  refused(&rig, PREDICTION "Predict", RN_STR("\x0a\x09"), RN_CODE_INVALID_ARGUMENT,
          "Malformed request");
  question(&q);
  q.spec.name = RN_STR("third");
  refused(&rig, PREDICTION "Predict", asked(&rig, &q), RN_CODE_NOT_FOUND,
          "Servable not found for request: Latest(third)");
  question(&q);
  q.version.value = -3;
  q.spec.version_choice_case = rn_pb_serving_ModelSpec_version_field;
  q.spec.version = &q.version;
  refused(&rig, PREDICTION "Predict", asked(&rig, &q), RN_CODE_NOT_FOUND,
          "Servable not found for request: Specific(half, -3)");
  question(&q);
  q.spec.signature_name = RN_STR("nine");
  refused(&rig, PREDICTION "Predict", asked(&rig, &q), RN_CODE_FAILED_PRECONDITION,
          "Serving signature key \"nine\" not found.");
  question(&q);
  q.dims[0].size = -2;
  refused(&rig, PREDICTION "Predict", asked(&rig, &q), RN_CODE_INVALID_ARGUMENT,
          "tensor parsing error: x");
  question(&q);
  q.input.key = RN_STR("z");
  refused(&rig, PREDICTION "Predict", asked(&rig, &q), RN_CODE_INVALID_ARGUMENT,
          "Signature input alias: x(feed name: x:0) not found in request and no default value "
          "provided. Inputs expected to be in the request {z}, or default input alias set: ");
  q.request.inputs.count = 0;
  refused(&rig, PREDICTION "Predict", asked(&rig, &q), RN_CODE_INVALID_ARGUMENT,
          "input size does not match signature: 0!=1 len({}) != len({x}). Sent extra: {}. Missing "
          "but required: {x}.");
  // Few bytes that ask for much memory.
  question(&q);
  q.dims[0].size = INT64_C(1) << 40;
  rn_str_t ignored;
  FAILS(call(&rig, PREDICTION "Predict", asked(&rig, &q), &ignored), RESOURCE_EXHAUSTED);
  refused(&rig, PREDICTION "Predicts", RN_STR(""), RN_CODE_UNIMPLEMENTED,
          "Method not found: " PREDICTION "Predicts");
  rig_close(&rig);
}

RPC_TEST(roles_limit_what_callers_may_do) {
  rig_t rig;
  question_t q;
  rn_str_t ignored;
  rig_open(&rig);
  question(&q);
  rig.role = RN_ROLE_NONE;
  FAILS(call(&rig, PREDICTION "Predict", asked(&rig, &q), &ignored), UNAUTHENTICATED);
  OK(call(&rig, "/grpc.health.v1.Health/Check", RN_STR(""), &ignored));
  rig.role = RN_ROLE_PREDICT;
  OK(call(&rig, PREDICTION "Predict", asked(&rig, &q), &ignored));
  FAILS(call(&rig, MODEL "GetModelStatus", asked(&rig, &q), &ignored), PERMISSION_DENIED);
  rig.role = RN_ROLE_READ;
  OK(call(&rig, MODEL "GetModelStatus", RN_STR("\x0a\x06\x0a\x04half"), &ignored));
  FAILS(call(&rig, MODEL "HandleReloadConfigRequest", RN_STR(""), &ignored), PERMISSION_DENIED);
  rig_close(&rig);
}

// A model that answers when the test says so.
static void hold(fake_model_t* fake, rn_backend_run_t* run) {
  atomic_store(&((rig_t*)fake->self)->held, run);
}

RPC_TEST(deadlines_are_kept_while_the_model_runs) {
  rig_t rig;
  question_t q;
  rn_str_t ignored;
  rig_open(&rig);
  rig.fake.on_run = hold;
  question(&q);
  FAILS(call_until(&rig, PREDICTION "Predict", asked(&rig, &q), now() + SECOND / 20, &ignored),
        DEADLINE_EXCEEDED);
  // A slow machine may not have started it. After another call, it has been looked at.
  OK(call(&rig, "/grpc.health.v1.Health/Check", RN_STR(""), &ignored));
  rn_backend_run_t* run = atomic_load(&rig.held);
  if (run) run->done(run, fake_compute(run));
  rig.fake.on_run = NULL;
  OK(call(&rig, PREDICTION "Predict", asked(&rig, &q), &ignored));
  rig_close(&rig);
}

RPC_TEST(metadata_is_the_signatures) {
  rig_t rig;
  rn_str_t bytes, field = RN_STR("signature_def");
  rn_pb_serving_ModelSpec_t spec = {.name = RN_STR("half")};
  rn_pb_serving_GetModelMetadataRequest_t request = {.model_spec = &spec};
  rn_pb_serving_GetModelMetadataResponse_t* response = NULL;
  rig_open(&rig);
  const rn_pb_message_desc_t* desc = &rn_pb_serving_GetModelMetadataRequest_desc;
  refused(&rig, PREDICTION "GetModelMetadata", RN_STR(""), RN_CODE_INVALID_ARGUMENT,
          "Missing ModelSpec");
  refused(&rig, PREDICTION "GetModelMetadata", encoded(&rig, desc, &request),
          RN_CODE_INVALID_ARGUMENT,
          "GetModelMetadataRequest must specify at least one metadata_field");
  request.metadata_field.items = &field;
  request.metadata_field.count = 1;
  OK(call(&rig, PREDICTION "GetModelMetadata", encoded(&rig, desc, &request), &bytes));
  OK(RN_PB_DECODE(serving_GetModelMetadataResponse, bytes, NULL, &rig.arena, &response));
  cr_assert(rn_str_is(response->model_spec->name, "half"));
  cr_assert_eq(response->model_spec->version->value, 7);
  cr_assert_eq(response->model_spec->signature_name.size, 0);
  cr_assert_eq(response->metadata.count, 1);
  cr_assert(rn_str_is(response->metadata.items[0].key, "signature_def"));
  const rn_pb_google_protobuf_Any_t* any = response->metadata.items[0].value;
  cr_assert(rn_str_is(any->type_url, "type.googleapis.com/tensorflow.serving.SignatureDefMap"));
  cr_assert(rn_str_eq(any->value, rig.fake.base.meta));
  field = RN_STR("weights");
  refused(&rig, PREDICTION "GetModelMetadata", encoded(&rig, desc, &request),
          RN_CODE_INVALID_ARGUMENT, "Metadata field weights is not supported");
  rig_close(&rig);
}

RPC_TEST(status_lists_versions) {
  rig_t rig;
  rn_str_t bytes;
  rn_pb_google_protobuf_Int64Value_t version = {.value = 7};
  rn_pb_serving_ModelSpec_t spec = {.name = RN_STR("half")};
  rn_pb_serving_GetModelStatusRequest_t request = {.model_spec = &spec};
  rn_pb_serving_GetModelStatusResponse_t* response = NULL;
  const rn_pb_message_desc_t* desc = &rn_pb_serving_GetModelStatusRequest_desc;
  rig_open(&rig);
  OK(call(&rig, MODEL "GetModelStatus", encoded(&rig, desc, &request), &bytes));
  OK(RN_PB_DECODE(serving_GetModelStatusResponse, bytes, NULL, &rig.arena, &response));
  cr_assert_eq(response->model_version_status.count, 2);
  const rn_pb_serving_ModelVersionStatus_t* first = &response->model_version_status.items[0];
  cr_assert_eq(first->version, 8);
  cr_assert_eq(first->state, 50);
  cr_assert_eq(first->status->error_code, 5);
  cr_assert(rn_str_is(first->status->error_message, "no such file"));
  spec.version_choice_case = rn_pb_serving_ModelSpec_version_field;
  spec.version = &version;
  OK(call(&rig, MODEL "GetModelStatus", encoded(&rig, desc, &request), &bytes));
  OK(RN_PB_DECODE(serving_GetModelStatusResponse, bytes, NULL, &rig.arena, &response));
  cr_assert_eq(response->model_version_status.count, 1);
  cr_assert_eq(response->model_version_status.items[0].state, 30);
  cr_assert(response->model_version_status.items[0].status);
  version.value = 9;
  refused(&rig, MODEL "GetModelStatus", encoded(&rig, desc, &request), RN_CODE_NOT_FOUND,
          "Could not find version 9 of model half");
  spec.version_choice_case = 0;
  spec.name = RN_STR("third");
  refused(&rig, MODEL "GetModelStatus", encoded(&rig, desc, &request), RN_CODE_NOT_FOUND,
          "Could not find any versions of model third");
  rig_close(&rig);
}

RPC_TEST(a_new_configuration_is_passed_on) {
  rig_t rig;
  rn_str_t bytes, name = RN_STR("/tensorflow/serving/request_count");
  rn_pb_serving_ModelConfig_t model = {.name = RN_STR("half")};
  rn_pb_serving_ModelConfigList_t list = {.config = {&model, 1, 1}};
  rn_pb_serving_ModelServerConfig_t config = {
      .config_case = rn_pb_serving_ModelServerConfig_model_config_list_field,
      .model_config_list = &list};
  rn_pb_serving_ReloadConfigRequest_t request = {.metric_names = {&name, 1, 1}};
  rn_pb_serving_ReloadConfigResponse_t* response = NULL;
  const rn_pb_message_desc_t* desc = &rn_pb_serving_ReloadConfigRequest_desc;
  rig_open(&rig);
  refused(&rig, MODEL "HandleReloadConfigRequest", encoded(&rig, desc, &request),
          RN_CODE_INVALID_ARGUMENT,
          "ServerModelConfig type not supported by HandleReloadConfigRequest. Only "
          "ModelConfigList is currently supported");
  request.config = &config;
  OK(call(&rig, MODEL "HandleReloadConfigRequest", encoded(&rig, desc, &request), &bytes));
  OK(RN_PB_DECODE(serving_ReloadConfigResponse, bytes, NULL, &rig.arena, &response));
  cr_assert(response->status);
  cr_assert_eq(response->status->error_code, 0);
  cr_assert_eq(response->metric.count, 1);
  cr_assert(rn_str_eq(response->metric.items[0].name, name));
  cr_assert_eq(response->metric.items[0].int64_value_increase, 0);
  cr_assert_eq(rig.reloads, 1);
  list.config.count = 0;
  refused(&rig, MODEL "HandleReloadConfigRequest", encoded(&rig, desc, &request),
          RN_CODE_FAILED_PRECONDITION, "no models");
  rig_close(&rig);
}

static int health(rig_t* rig, const char* service) {
  rn_pb_grpc_health_v1_HealthCheckRequest_t request = {.service = rn_str(service)};
  rn_pb_grpc_health_v1_HealthCheckResponse_t* response = NULL;
  rn_str_t bytes;
  OK(call(rig, "/grpc.health.v1.Health/Check",
          encoded(rig, &rn_pb_grpc_health_v1_HealthCheckRequest_desc, &request), &bytes));
  OK(RN_PB_DECODE(grpc_health_v1_HealthCheckResponse, bytes, NULL, &rig->arena, &response));
  return response->status;
}

RPC_TEST(health_follows_readiness) {
  rig_t rig;
  rn_str_t bytes;
  rn_pb_grpc_health_v1_HealthListResponse_t* response = NULL;
  rig_open(&rig);
  cr_assert_eq(health(&rig, ""), 1);
  cr_assert_eq(health(&rig, "half"), 1);
  cr_assert_eq(health(&rig, "tensorflow.serving.PredictionService"), 1);
  rig.front.is_ready = false;
  cr_assert_eq(health(&rig, ""), 2);
  cr_assert_eq(health(&rig, "half"), 1);
  rig.front.is_draining = true;
  cr_assert_eq(health(&rig, "half"), 2);
  refused(&rig, "/grpc.health.v1.Health/Check", RN_STR("\x0a\x03who"), RN_CODE_NOT_FOUND,
          "unknown service");
  OK(call(&rig, "/grpc.health.v1.Health/List", RN_STR(""), &bytes));
  OK(RN_PB_DECODE(grpc_health_v1_HealthListResponse, bytes, NULL, &rig.arena, &response));
  cr_assert(response->statuses.count >= 5);
  rig_close(&rig);
}

// Every prefix of a request, and the request with each byte changed, is answered.
RPC_TEST(broken_requests_get_an_answer) {
  static const char* const paths[] = {PREDICTION "Predict",
                                      PREDICTION "Classify",
                                      PREDICTION "Regress",
                                      PREDICTION "MultiInference",
                                      PREDICTION "GetModelMetadata",
                                      MODEL "GetModelStatus",
                                      "/tensorflow.serving.SessionService/SessionRun",
                                      "/grpc.health.v1.Health/Check"};
  rig_t rig;
  question_t q;
  rn_str_t ignored;
  rig_open(&rig);
  question(&q);
  rn_str_t request = asked(&rig, &q);
  char* copy = malloc(request.size);
  for (size_t p = 0; p < sizeof paths / sizeof *paths; ++p) {
    for (size_t i = 0; i < request.size; ++i) {
      memcpy(copy, request.data, request.size);
      rn_status_free(call(&rig, paths[p], rn_str_n(copy, i), &ignored));
      copy[i] = (char)(copy[i] ^ 0x55);
      rn_status_free(call(&rig, paths[p], rn_str_n(copy, request.size), &ignored));
      copy[i] = (char)0xff;
      rn_status_free(call(&rig, paths[p], rn_str_n(copy, request.size), &ignored));
    }
  }
  free(copy);
  OK(call(&rig, PREDICTION "Predict", request, &ignored));
  rig_close(&rig);
}
