// TensorFlow Serving's REST from request to reply, with its half_plus_two: its own cases, restated,
// and what a server adds: roles, deadlines, marks, large bodies.
#include <stdatomic.h>

#include "io/record.h"
#include "proto/prediction_log.pb.h"
#include "serve/front/front.h"
#include "serve/front/json.h"
#include "serve/front/request_log.h"
#include "util.h"
#include "wire/decode.h"
#include "wire/text.h"

static int64_t now(void) { return rn_env_system()->now_ns(rn_env_system()->self); }

// A registry of one model, "half", whose only version is 123, with the label "stable".
struct rn_models_t {
  rn_version_t* version;
};

rn_status_t rn_models_find(rn_models_t* models, const rn_model_spec_t* spec, rn_version_t** out) {
  *out = NULL;
  if (!rn_str_is(spec->name, "half"))
    return rn_not_found("Servable not found for request: Latest(%.*s)", RN_STR_ARGS(spec->name));
  if (spec->version >= 0 && spec->version != 123)
    return rn_not_found("Servable not found for request: Specific(half, %lld)",
                        (long long)spec->version);
  if (spec->label.size && !rn_str_is(spec->label, "stable"))
    return rn_invalid_argument("Unrecognized servable version label: %.*s",
                               RN_STR_ARGS(spec->label));
  rn_version_retain(*out = models->version);
  return RN_OK;
}

rn_status_t rn_models_info(rn_models_t* models, rn_str_t name, rn_arena_t* arena,
                           rn_model_info_t** out, int* out_count) {
  (void)models;
  if (name.size && !rn_str_is(name, "half")) return rn_not_found("no such model");
  rn_model_info_t* info = NULL;
  OK(RN_ARENA_NEW(arena, &info));
  OK(RN_ARENA_ARRAY(arena, 1, &info->versions));
  OK(rn_arena_alloc(arena, sizeof *info->labels, (void**)&info->labels));
  info->name = RN_STR("half");
  info->base_path = RN_STR("/models/half");
  info->versions[0] = (rn_version_info_t){.number = 123, .state = RN_MODEL_AVAILABLE};
  info->versions[0].message = "";
  info->version_count = info->label_count = 1;
  info->labels[0].label = RN_STR("stable");
  info->labels[0].version = 123;
  *out = info;
  *out_count = 1;
  return RN_OK;
}

void rn_models_info_clear(rn_model_info_t* infos, int count) { (void)infos, (void)count; }

// A server without a network: requests come from the test, replies come here.
typedef struct answer_t {
  int code;
  char type[64], headers[400];
  char* body;  // Owned
  _Atomic bool is_done;
} answer_t;

typedef struct rest_rig_t {
  rn_models_t models;
  rn_front_t front;
  rn_loop_t* loop;
  rn_role_t role;
} rest_rig_t;

rn_str_t rn_http_header(const rn_http_in_t* request, const char* name) {
  for (int i = 0; i < request->header_count; ++i)
    if (rn_str_is(request->headers[i].name, name)) return request->headers[i].value;
  return RN_STR("");
}

void rn_http_reply(rn_http_in_t* request, rn_http_out_t* out) {
  answer_t* answer = request->owner;
  answer->code = out->code;
  snprintf(answer->type, sizeof answer->type, "%s", out->type ? out->type : "application/json");
  for (int i = 0; i < out->header_count; ++i) {
    size_t size = strlen(answer->headers);
    snprintf(answer->headers + size, sizeof answer->headers - size, "%.*s: %.*s\n",
             RN_STR_ARGS(out->headers[i].name), RN_STR_ARGS(out->headers[i].value));
  }
  rn_str_t body = rn_message_view(&out->body);
  answer->body = malloc(body.size + 1);
  memcpy(answer->body, body.data, body.size);
  answer->body[body.size] = '\0';
  rn_message_clear(&out->body);
  answer->is_done = true;
}

static void on_idle(void* self, rn_version_t* version) {
  (void)self;
  rn_version_destroy(version);
}

static void rig_open(rest_rig_t* rig, const char* folder) {
  *rig = (rest_rig_t){.role = RN_ROLE_READ};
  rn_backend_t* backend = NULL;
  OK(serve_load(folder, rn_env_system(), &backend));
  OK(rn_loop_create(rn_env_system(), rn_allocator_default(), &rig->loop));
  rn_version_options_t version = {.model = RN_STR("half"),
                                  .number = 123,
                                  .replicas = &backend,
                                  .replica_count = 1,
                                  .batching = {.env = rn_env_system(),
                                               .allocator = rn_allocator_default(),
                                               .timers = rn_loop_timers(rig->loop)},
                                  .env = rn_env_system(),
                                  .allocator = rn_allocator_default(),
                                  .idle = on_idle};
  OK(rn_version_create(&version, &rig->models.version));
  rig->front = (rn_front_t){.models = &rig->models,
                            .env = rn_env_system(),
                            .timers = rn_loop_timers(rig->loop),
                            .allocator = rn_allocator_default(),
                            .rest_timeout_ns = INT64_C(60000000000)};
  OK(rn_metrics_create(rn_allocator_default(), &rig->front.metrics));
  OK(rn_pool_create(rn_allocator_default(), 2, &rig->front.pool));
  rig->front.loads = rig->front.sessions = rig->front.pool;
}

static void rig_close(rest_rig_t* rig) {
  rn_pool_destroy(rig->front.pool);
  rn_version_release(rig->models.version);
  rn_metrics_destroy(rig->front.metrics);
  rn_loop_destroy(rig->loop);
}

// Sends a request with the header |name| unless that is NULL; the caller frees the body.
static answer_t ask_with(rest_rig_t* rig, const char* method, const char* path, rn_str_t body,
                         const char* name, const char* value) {
  answer_t answer = {0};
  rn_http_header_t header = {rn_str(name), rn_str(value)};
  rn_http_in_t request = {.method = rn_str(method),
                          .path = rn_str(path),
                          .headers = &header,
                          .header_count = name != NULL,
                          .body = body,
                          .begun_ns = now(),
                          .owner = &answer};
  rn_cancel_init(&request.cancel);
  cr_assert(rn_rest_route(&rig->front, &request, rig->role));
  for (int i = 0; i < 60000 && !answer.is_done; ++i) usleep(1000);
  cr_assert(answer.is_done);
  rn_cancel_destroy(&request.cancel);
  return answer;
}

static answer_t ask(rest_rig_t* rig, const char* method, const char* path, const char* body) {
  return ask_with(rig, method, path, rn_str(body), NULL, NULL);
}

// Removes white space outside of strings.
static char* squeeze(char* text) {
  bool in_string = false;
  char* to = text;
  for (const char* p = text; *p; ++p) {
    if (*p == '"' && (p == text || p[-1] != '\\')) in_string = !in_string;
    if (in_string || !strchr(" \n", *p)) *to++ = *p;
  }
  *to = '\0';
  return text;
}

typedef struct rest_row_t {
  const char *method, *path, *body;
  int code;
  const char* want;  // the whole body without white space, or "..." and a part of it
} rest_row_t;

static void check_rows(rest_rig_t* rig, const rest_row_t* rows, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const rest_row_t* row = &rows[i];
    answer_t answer = ask(rig, row->method, row->path, row->body);
    cr_expect_eq(answer.code, row->code, "%s %s %s: %d %s", row->method, row->path, row->body,
                 answer.code, answer.body);
    cr_expect_str_eq(answer.type, "application/json");
    squeeze(answer.body);
    bool is_part = !strncmp(row->want, "...", 3);
    cr_expect(
        is_part ? strstr(answer.body, row->want + 3) != NULL : !strcmp(answer.body, row->want),
        "%s %s %s: %s", row->method, row->path, row->body, answer.body);
    free(answer.body);
  }
}
#define CHECK(rig, rows) check_rows(rig, rows, sizeof rows / sizeof *rows)

#define HALF "/v1/models/half"
#define STATUS                                                               \
  "{\"model_version_status\":[{\"version\":\"123\",\"state\":\"AVAILABLE\"," \
  "\"status\":{\"error_code\":\"OK\",\"error_message\":\"\"}}]}"

Test(rest, answers_as_tensorflow_serving_does, .timeout = 60) {
  static const rest_row_t rows[] = {
      {"POST", HALF ":predict", "{\"instances\": [[1.0, 2.0], [3.0, 4.0]]}", 200,
       "{\"predictions\":[[2.5,3.0],[3.5,4.0]]}"},
      {"POST", HALF "/versions/123:predict", "{\"instances\": [1.0, 2.0]}", 200,
       "{\"predictions\":[2.5,3.0]}"},
      {"POST", HALF "/labels/stable:predict", "{\"instances\": [1.0, 2.0]}", 200,
       "{\"predictions\":[2.5,3.0]}"},
      {"POST", HALF "/versions/123:predict",
       "{\"signature_name\": \"serving_default\", \"instances\": [3.0, 4.0]}", 200,
       "{\"predictions\":[3.5,4.0]}"},
      {"POST", HALF "/versions/123:predict",
       "{\"signature_name\": \"serving_default\", \"inputs\": [3.0, 4.0]}", 200,
       "{\"outputs\":[3.5,4.0]}"},
      {"POST", HALF ":predict", "{\"instances\": [1.0, 2.0, 5.0]}", 200,
       "{\"predictions\":[2.5,3.0,4.5]}"},
      {"POST", HALF ":predict", "{\"instances\": [{\"x\": [1]}, {\"x\": [2]}]}", 200,
       "{\"predictions\":[[2.5],[3.0]]}"},
      {"POST", HALF ":predict", "{\"instances\": [[NaN], [Infinity]]}", 200,
       "{\"predictions\":[[NaN],[Infinity]]}"},
      {"POST", HALF ":regress",
       "{\"signature_name\": \"regress_x_to_y\", \"examples\": [{\"x\": 80.0}]}", 200,
       "{\"results\":[42.0]}"},
      {"POST", HALF "/versions/123:regress",
       "{\"signature_name\": \"regress_x_to_y\", \"examples\": [{\"x\": 80.0}, {\"x\": 0.0}]}", 200,
       "{\"results\":[42.0,2.0]}"},
      {"POST", HALF "/labels/stable:regress",
       "{\"signature_name\": \"regress_x_to_y\", \"context\": {\"x\": 80.0}, \"examples\": [{}]}",
       200, "{\"results\":[42.0]}"},
      {"POST", HALF ":classify",
       "{\"signature_name\": \"classify_x_to_y\", \"examples\": [{\"x\": 20.0}]}", 200,
       "{\"results\":[[[\"\",12.0]]]}"},
      {"POST", HALF "/labels/stable:classify",
       "{\"signature_name\": \"classify_x_to_y\", \"examples\": [{\"x\": 10.0}]}", 200,
       "{\"results\":[[[\"\",7.0]]]}"},
      {"GET", HALF, "", 200, STATUS},
      {"GET", HALF "/versions/123", "", 200, STATUS},
      {"GET", HALF "/labels/stable", "", 200, STATUS},
  };
  rest_rig_t rig;
  rig_open(&rig, SERVE_TWO "/00000123");
  CHECK(&rig, rows);
  rig_close(&rig);
}

Test(rest, refuses_as_tensorflow_serving_does, .timeout = 60) {
  static const rest_row_t rows[] = {
      {"GET", "/v1/foo", "", 400, "{\"error\":\"Malformed request: GET /v1/foo\"}"},
      {"GET", "/v1/models", "", 400, "{\"error\":\"Missing model name in request.\"}"},
      {"POST", "/v1/models", "", 400, "{\"error\":\"Malformed request: POST /v1/models\"}"},
      {"POST", "/v1/models/foo:predict", "{ \"instances\": [1] }", 404,
       "{\"error\":\"Servable not found for request: Latest(foo)\"}"},
      {"POST", "/v1/models/foo/versions/50:predict", "{ \"instances\": [1] }", 404, "...error"},
      {"POST", HALF "/versions/99:predict", "{ \"instances\": [1] }", 404,
       "{\"error\":\"Servable not found for request: Specific(half, 99)\"}"},
      {"POST", HALF ":predict", "", 400, "{\"error\":\"JSON Parse error: The document is empty\"}"},
      {"POST", HALF ":predict", "instances = [1, 2]", 400,
       "{\"error\":\"JSON Parse error: Invalid value. at offset: 0\"}"},
      {"POST", HALF ":predict", "{ \"instances\": [\"x\", \"y\"] }", 400,
       "...not of expected type: float"},
      {"POST", HALF "/labels/none:predict", "{ \"instances\": [\"x\", \"y\"] }", 400,
       "...Unrecognized servable version label: none"},
      {"POST", HALF ":predict", "{ \"signature_name\": 100 }", 400,
       "...'signature_name' key must be a string value."},
      {"POST", HALF ":predict", "{ \"signature_name\": \"none\", \"instances\": [1] }", 400,
       "{\"error\":\"Serving signature name: \\\"none\\\" not found in signature def\"}"},
      {"POST", HALF ":regress", "{\"examples\": [{\"x\": 80.0}]}", 400,
       "...No regression inputs found in SignatureDef: inputs {"},
      {"POST", HALF ":regress", "{\"signature_name\": \"no\", \"examples\": [{\"x\": 80.0}]}", 400,
       "{\"error\":\"No signature was found with the name: no\"}"},
      {"POST", HALF ":classify",
       "{\"signature_name\": \"regress_x_to_y\", \"examples\": [{\"x\": 80.0}]}", 400,
       "...to contain at least one of \\\"classes\\\" or \\\"scores\\\". Signature was: "},
      {"POST", HALF ":predict", "{\"signature_name\": \"regress_x_to_y\", \"instances\": [1]}", 400,
       "...not of expected type: string"},
      {"GET", "/v1/models/foo", "", 404,
       "{\"error\":\"Could not find any versions of model foo\"}"},
      {"GET", HALF "/versions/5", "", 404,
       "{\"error\":\"Could not find version 5 of model half\"}"},
      {"GET", "/v1/models/foo/metadata", "", 404, "...Servable not found"},
      {"DELETE", HALF, "", 400, "...Malformed request: DELETE"},
  };
  rest_rig_t rig;
  rig_open(&rig, SERVE_TWO "/00000123");
  CHECK(&rig, rows);
  rig.front.checks_methods = true;
  static const rest_row_t checked[] = {
      {"POST", HALF ":classify",
       "{\"signature_name\": \"regress_x_to_y\", \"examples\": [{\"x\": 80.0}]}", 400,
       "{\"error\":\"Expected classification signature method_name to be "
       "tensorflow/serving/classify. Was: tensorflow/serving/regress\"}"},
  };
  CHECK(&rig, checked);
  rig_close(&rig);
}

Test(rest, metadata_has_every_signature_with_defaults, .timeout = 60) {
  rest_rig_t rig;
  rig_open(&rig, SERVE_TWO "/00000123");
  answer_t answer = ask(&rig, "GET", HALF "/metadata", "");
  cr_assert_eq(answer.code, 200);
  squeeze(answer.body);
  static const char* const parts[] = {
      "{\"model_spec\":{\"name\":\"half\",\"version\":\"123\",\"signature_name\":\"\"},"
      "\"metadata\":{\"signature_def\":{\"signature_def\":{\"classify_x_to_y\":{",
      "\"serving_default\":{\"inputs\":{\"x\":{\"name\":\"x:0\",\"dtype\":\"DT_FLOAT\","
      "\"tensor_shape\":{\"dim\":[{\"size\":\"-1\",\"name\":\"\"},{\"size\":\"1\",\"name\":\"\"}],"
      "\"unknown_rank\":false}}},",
      "\"method_name\":\"tensorflow/serving/predict\",\"defaults\":{}}}}}}"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
    cr_expect(strstr(answer.body, parts[i]), "%s\n%s", answer.body, parts[i]);
  free(answer.body);
  rig_close(&rig);
}

Test(rest, roles_cors_and_deadlines, .timeout = 60) {
  rest_rig_t rig;
  rig_open(&rig, SERVE_TWO "/00000123");
  static const rest_row_t denied[] = {
      {"POST", HALF ":predict", "{\"instances\": [1.0]}", 401, "...error"},
      {"GET", HALF, "", 401, "...error"}};
  rig.role = RN_ROLE_NONE;
  CHECK(&rig, denied);
  static const rest_row_t predicts[] = {
      {"POST", HALF ":predict", "{\"instances\": [1.0]}", 200, "{\"predictions\":[2.5]}"},
      {"GET", HALF, "", 403, "...error"}};
  rig.role = RN_ROLE_PREDICT;
  CHECK(&rig, predicts);

  answer_t answer = ask_with(&rig, "OPTIONS", HALF, RN_STR(""), "origin", "https://example.com");
  cr_assert_eq(answer.code, 200);
  cr_assert_str_eq(answer.headers, "");
  free(answer.body);
  rig.front.has_cors = true;
  answer = ask_with(&rig, "OPTIONS", HALF, RN_STR(""), "origin", "http://example.com");
  cr_assert_eq(answer.code, 200);
  cr_assert_str_eq(answer.headers,
                   "Access-Control-Allow-Origin: *\nAccess-Control-Allow-Methods: POST, GET\n"
                   "Access-Control-Allow-Headers: Content-Type\n");
  free(answer.body);
  answer = ask_with(&rig, "OPTIONS", HALF, RN_STR(""), NULL, NULL);
  cr_assert_eq(answer.code, 400);
  free(answer.body);

  rn_str_t body = RN_STR("{\"instances\": [1.0]}");
  static const struct {
    const char* value;
    int code;
  } timeouts[] = {
      {"60000", 200}, {"0", 400}, {"-1", 400}, {"1.5", 400}, {"9223372036854775807", 200}};
  for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; ++i) {
    answer =
        ask_with(&rig, "POST", HALF ":predict", body, "x-request-timeout-ms", timeouts[i].value);
    cr_expect_eq(answer.code, timeouts[i].code, "%s: %d", timeouts[i].value, answer.code);
    free(answer.body);
  }
  rig.front.rest_timeout_ns = 1;  // has passed when the request is read
  answer = ask_with(&rig, "POST", HALF ":predict", body, NULL, NULL);
  cr_expect_eq(answer.code, 504);
  free(answer.body);

  rn_http_in_t other = {.method = RN_STR("GET"), .path = RN_STR("/v2/models")};
  cr_assert(!rn_rest_route(&rig.front, &other, RN_ROLE_ADMIN));
  rig_close(&rig);
}

Test(rest, large_bodies_and_replies_run_on_the_pool, .timeout = 60) {
  rest_rig_t rig;
  rig_open(&rig, SERVE_TWO "/00000123");
  const int rows = 100000;
  rn_strbuf_t body;
  rn_strbuf_init(&body, rn_allocator_system());
  rn_strbuf_append(&body, RN_STR("{\"instances\": ["));
  for (int i = 0; i < rows; ++i) rn_strbuf_printf(&body, "%s[%d]", i ? "," : "", i);
  rn_strbuf_append(&body, RN_STR("]}"));
  answer_t answer = ask_with(&rig, "POST", HALF ":predict", rn_strbuf_view(&body), NULL, NULL);
  cr_assert_eq(answer.code, 200, "%s", answer.body);
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  rn_json_reader_t json = rn_json_reader(rn_str(strstr(answer.body, "[")), &arena);
  rn_tensor_t tensor;
  OK(rn_json_tensor(&json, RN_FLOAT, rn_allocator_system(), &tensor));
  cr_assert_eq(tensor.count, rows);
  for (int i = 0; i < rows; ++i) cr_assert_eq(RN_DATA(&tensor, float)[i], 0.5f * (float)i + 2);
  rn_tensor_clear(&tensor);
  rn_arena_clear(&arena);
  free(answer.body);
  rn_strbuf_clear(&body);
  rig_close(&rig);
}

static double counted(const rest_rig_t* rig, const char* model, const char* status) {
  return rn_series_value(rn_metrics_series(rig->front.metrics, RN_METRIC_REQUEST_COUNT,
                                           rn_str(model), rn_str(status), RN_STR("")));
}

Test(rest, requests_are_counted, .timeout = 60) {
  rest_rig_t rig;
  rig_open(&rig, SERVE_TWO "/00000123");
  static const rest_row_t rows[] = {
      {"POST", HALF ":predict", "{\"instances\": [[1.0], [2.0]]}", 200, "..."},
      {"POST", HALF ":predict", "{\"instances\": [\"a\"]}", 400, "..."},
      {"POST", "/v1/models/unknown:predict", "{\"instances\": [1]}", 404, "..."}};
  CHECK(&rig, rows);
  cr_expect_eq(counted(&rig, "half", "OK"), 1);
  cr_expect_eq(counted(&rig, "half", "INVALID_ARGUMENT"), 1);
  cr_expect_eq(counted(&rig, "", "NOT_FOUND"), 1);  // names from outside make no series
  cr_expect_eq(counted(&rig, "unknown", "NOT_FOUND"), 0);
  rn_str_t none = RN_STR("");
  cr_expect_eq(rn_series_value(rn_metrics_series(rig.front.metrics, RN_METRIC_EXAMPLE_COUNT_TOTAL,
                                                 RN_STR("half"), none, none)),
               2);
  cr_expect_eq(
      rn_series_value(rn_metrics_series(rig.front.metrics, RN_METRIC_REQUEST_LATENCY,
                                        RN_STR("half"), RN_STR("predict"), RN_STR("REST"))),
      1);
  rig_close(&rig);
}

Test(rest, marks_and_retry_are_headers, .timeout = 60) {
  rn_front_t front = {.env = rn_env_system(), .allocator = rn_allocator_default()};
  answer_t answer = {0};
  rn_http_in_t request = {.owner = &answer};
  rn_strbuf_t body;
  rn_strbuf_init(&body, rn_allocator_default());
  rn_strbuf_append(&body, RN_STR("text"));
  rn_front_reply(&front, &request, 200, "text/plain", &body, RN_MARK_CACHED | RN_MARK_PARTIAL);
  cr_assert_str_eq(answer.headers, "Runnel-Marks: cached, partial\n");
  cr_assert_str_eq(answer.type, "text/plain");
  cr_assert_str_eq(answer.body, "text");
  cr_assert_eq(body.size, 0);
  free(answer.body);
  answer = (answer_t){0};
  rn_front_reply_error(&front, &request, rn_unavailable("a \"queue\" is full"), 1000000001);
  cr_assert_eq(answer.code, 503);
  cr_assert_str_eq(answer.headers, "Retry-After: 2\n");
  cr_assert_str_eq(squeeze(answer.body), "{\"error\":\"a \\\"queue\\\" is full\"}");
  free(answer.body);
  static const int codes[] = {200, 499, 500, 400, 504, 404, 409, 403, 429,
                              400, 409, 400, 501, 500, 503, 500, 401};
  for (int i = 0; i < 17; ++i) cr_assert_eq(rn_front_http_code((rn_code_t)i), codes[i]);
}

// The records of the only file that begins with |prefix|, each as text on one line.
static void read_samples(const char* prefix, rn_strbuf_t* out) {
  char pattern[100];
  snprintf(pattern, sizeof pattern, "%s*", prefix);
  rn_names_t names;
  rn_names_init(&names, rn_allocator_default());
  OK(rn_fs_glob(rn_env_system(), pattern, &names));
  cr_assert_eq(names.list.count, 1);
  rn_record_reader_t* reader = NULL;
  OK(rn_record_reader_open(rn_env_system(), names.list.items[0].data, RN_COMPRESSION_NONE, 0,
                           &reader));
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  rn_str_t record;
  bool is_end = false;
  for (;;) {
    OK(rn_record_reader_next(reader, &record, &is_end));
    if (is_end) break;
    rn_pb_serving_PredictionLog_t* log = NULL;
    OK(RN_PB_DECODE(serving_PredictionLog, record, NULL, &arena, &log));
    log->log_metadata = NULL;
    OK(rn_pb_print_short(&rn_pb_serving_PredictionLog_desc, log, out));
    rn_strbuf_append(out, RN_STR("\n"));
  }
  rn_arena_clear(&arena);
  rn_record_reader_close(reader);
  rn_names_clear(&names);
}

Test(rest, samples_are_logged_as_grpc_would_send_them, .timeout = 60) {
  rest_rig_t rig;
  rig_open(&rig, SERVE_TWO "/00000123");
  char folder[64], prefix[80];
  serve_folder(folder);
  snprintf(prefix, sizeof prefix, "%s/half", folder);
  rn_pb_serving_LogCollectorConfig_t collector = {.filename_prefix = rn_str(prefix)};
  rn_pb_serving_SamplingConfig_t sampling = {.sampling_rate = 1};
  rn_pb_serving_LoggingConfig_t logging = {&collector, &sampling};
  rn_pb_serving_ModelConfig_t model = {.name = RN_STR("half"), .logging_config = &logging};
  rn_pb_serving_ModelConfigList_t list = {{&model, 1, 0}};
  rn_pb_serving_ModelServerConfig_t config = {
      .config_case = rn_pb_serving_ModelServerConfig_model_config_list_field,
      .model_config_list = &list};
  OK(rn_request_log_create(rn_env_system(), rig.front.metrics, rn_allocator_default(),
                           &rig.front.log));
  OK(rn_request_log_configure(rig.front.log, &config));
  static const rest_row_t rows[] = {
      {"POST", HALF ":predict", "{\"instances\": [[1.0], [2.0]]}", 200, "..."},
      {"POST", HALF ":classify",
       "{\"signature_name\": \"classify_x_to_y\", \"examples\": [{\"x\": 20.0}]}", 200, "..."},
      {"POST", HALF ":regress",
       "{\"signature_name\": \"regress_x_to_y\", \"examples\": [{\"x\": 80.0}]}", 200, "..."}};
  CHECK(&rig, rows);
  rn_request_log_destroy(rig.front.log);
  rig.front.log = NULL;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  read_samples(prefix, &text);
  static const char* const parts[] = {
      "predict_log { request { model_spec { name: \"half\"",
      "classify_log { request { model_spec { name: \"half\" version { value: 123 } signature_name: "
      "\"classify_x_to_y\" } input { example_list { examples { features { feature { key: \"x\" "
      "value { float_list { value: 20 } } } } } } } } response { result { classifications { "
      "classes "
      "{ score: 12 } } } model_spec {",
      ("regress_log { request { model_spec { name: \"half\" version { value: 123 } signature_name: "
       "\"regress_x_to_y\" }"),
      "response { result { regressions { value: 42 } } model_spec {"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
    cr_expect(strstr(text.data, parts[i]), "%s\n%s", text.data, parts[i]);
  rn_strbuf_clear(&text);
  serve_remove(folder);
  rig_close(&rig);
}
