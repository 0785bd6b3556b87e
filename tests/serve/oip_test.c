// The Open Inference Protocol over loopback, with a fake model: paths, roles, deadlines, clients
// that go away, loading and unloading. Real clients are in oip_test.py.
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/stream_client.h"
#include "fake_model.h"
#include "net/channel.h"
#include "proto/oip.pb.h"
#include "serve/front/oip_rest.h"
#include "serve/front/shared_memory.h"
#include "util.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define OIP_TEST(name) Test(oip, name, .timeout = 120)
#define SECOND INT64_C(1000000000)

typedef struct site_t {
  rn_front_t front;
  rn_loop_t* loop;
  rn_pool_t* pool;
  rn_http_server_t* http;
  rn_rpc_server_t* rpc;
  rn_channel_t* channel;
  fake_model_t fakes[8];
  _Atomic int loads;
  _Atomic(rn_backend_run_t*) held;  // of a model that does not answer
  char folder[64], address[32];
  rn_role_t role;
} site_t;

static rn_status_t load(void* self, const rn_pb_serving_ModelConfig_t* config, int64_t number,
                        const char* folder, rn_backend_t*** out, int* out_count) {
  (void)config, (void)number, (void)folder;
  site_t* site = self;
  fake_model_t* fake = &site->fakes[site->loads++ % 8];
  fake_init(fake);
  fake->self = site;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(memory(), 1, out));
  **out = &fake->base;
  *out_count = 1;
  return RN_OK;
}

static void on_http(void* self, rn_http_in_t* request) {
  site_t* site = self;
  cr_assert(rn_oip_rest_route(&site->front, request, site->role));
}

static void on_rpc(void* self, rn_rpc_in_t* call) {
  site_t* site = self;
  cr_assert(rn_oip_rpc_route(&site->front, call, site->role));
}

static int64_t now(void) { return rn_env_system()->now_ns(rn_env_system()->self); }

static void open_models(site_t* site) {
  serve_folder(site->folder);
  serve_write(site->folder, "half/1/x", RN_STR(""));
  rn_models_options_t options = {.load = load,
                                 .self = site,
                                 .batching = {.is_on = true,
                                              .size = {.policy = RN_BATCH_FIXED, .max = 1},
                                              .max_queued = 100,
                                              .timers = rn_loop_timers(site->loop),
                                              .env = rn_env_system(),
                                              .allocator = memory()},
                                 .load_threads = 1,
                                 .env = rn_env_system(),
                                 .allocator = memory()};
  OK(rn_models_create(&options, &site->front.models));
  char path[100];
  snprintf(path, sizeof path, "%s/half", site->folder);
  rn_pb_serving_ModelConfig_t config = {
      .name = RN_STR("half"), .base_path = rn_str(path), .model_platform = RN_STR("tensorflow")};
  rn_pb_serving_ModelConfigList_t list = {.config = {.items = &config, .count = 1}};
  rn_pb_serving_ModelServerConfig_t all = {
      .config_case = rn_pb_serving_ModelServerConfig_model_config_list_field,
      .model_config_list = &list};
  OK(rn_models_configure(site->front.models, &all));
  OK(rn_models_wait(site->front.models, now() + 60 * SECOND));
}

static void site_open(site_t* site) {
  memset(site, 0, sizeof *site);
  site->role = RN_ROLE_ADMIN;
  OK(rn_loop_create(rn_env_system(), memory(), &site->loop));
  OK(rn_pool_create(memory(), 3, &site->pool));
  site->front.env = rn_env_system();
  site->front.allocator = memory();
  site->front.pool = site->front.loads = site->front.sessions = site->pool;
  site->front.timers = rn_loop_timers(site->loop);
  site->front.rest_timeout_ns = 60 * SECOND;
  site->front.is_ready = true;
  OK(rn_metrics_create(memory(), &site->front.metrics));
  OK(rn_shared_memory_create(memory(), &site->front.shared_memory));
  open_models(site);
  rn_http_server_options_t http = {.loop = site->loop,
                                   .allocator = memory(),
                                   .address = "127.0.0.1:0",
                                   .handle = on_http,
                                   .self = site,
                                   .align = rn_oip_rest_align};
  OK(rn_http_server_create(&http, &site->http));
  rn_rpc_server_options_t rpc = {.loop = site->loop,
                                 .allocator = memory(),
                                 .address = "127.0.0.1:0",
                                 .handle = on_rpc,
                                 .streams = rn_front_streams,
                                 .self = site};
  OK(rn_rpc_server_create(&rpc, &site->rpc));
  snprintf(site->address, sizeof site->address, "127.0.0.1:%d", rn_rpc_server_port(site->rpc));
  rn_channel_options_t channel = {
      .loop = site->loop, .allocator = memory(), .address = site->address};
  OK(rn_channel_create(&channel, &site->channel));
}

static void site_close(site_t* site) {
  rn_channel_destroy(site->channel);
  rn_rpc_server_destroy(site->rpc);
  rn_http_server_destroy(site->http);
  rn_models_destroy(site->front.models);
  rn_pool_destroy(site->pool);
  rn_loop_destroy(site->loop);
  rn_shared_memory_destroy(site->front.shared_memory);
  rn_metrics_destroy(site->front.metrics);
  serve_remove(site->folder);
}

// A model that holds its batch until the test answers it.
static void hold(fake_model_t* fake, rn_backend_run_t* run) { ((site_t*)fake->self)->held = run; }
static rn_backend_run_t* held(site_t* site) {
  while (!site->held) usleep(1000);
  return site->held;
}
static void let_go(site_t* site) {
  rn_backend_run_t* run = held(site);
  site->held = NULL;
  run->done(run, fake_compute(run));
}

// REST.

static int send_http(site_t* site, const char* method, const char* path, const char* headers,
                     rn_str_t body) {
  struct sockaddr_in at = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)rn_http_server_port(site->http)),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(connect(fd, (struct sockaddr*)&at, sizeof at), 0);
  char head[400];
  int size =
      snprintf(head, sizeof head,
               "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
               method, path, headers, body.size);
  cr_assert_eq(write(fd, head, (size_t)size), size);
  if (body.size) cr_assert_eq(write(fd, body.data, body.size), (ssize_t)body.size);
  return fd;
}

// Reads the reply into |out|; returns its code.
static int read_http(int fd, char* out, size_t room) {
  size_t size = 0;
  for (ssize_t n; size < room - 1 && (n = read(fd, out + size, room - 1 - size)) > 0;)
    size += (size_t)n;
  out[size] = '\0';
  close(fd);
  int code = 0;
  cr_assert_eq(sscanf(out, "HTTP/1.1 %d", &code), 1, "%s", out);
  return code;
}

static int http(site_t* site, const char* method, const char* path, const char* body, char* out,
                size_t room) {
  return read_http(send_http(site, method, path, "", rn_str(body)), out, room);
}

#define INPUTS "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]}]"
#define INFER "/v2/models/half/infer"

OIP_TEST(rest_paths_and_replies) {
  site_t site;
  site_open(&site);
  char text[8000];
  static const struct {
    const char *method, *path, *body;
    int code;
    const char* part;
  } rows[] = {
      {"GET", "/v2", "", 200, "\"extensions\":["},
      {"GET", "/v2/", "", 200, "runnel"},
      {"GET", "/v2/health/live", "", 200, ""},
      {"GET", "/v2/health/ready", "", 200, ""},
      {"GET", "/v2/models/half", "", 200, "\"shape\":[-1,-1]"},
      {"GET", "/v2/models/half/versions/1", "", 200, "\"versions\":[\"1\"]"},
      {"GET", "/v2/models/half/versions/2", "", 404, "version 2"},
      {"GET", "/v2/models/h%61lf/ready", "", 200, ""},
      {"GET", "/v2/models/none/ready", "", 400, ""},
      {"GET", "/v2/models/half/config", "", 200, "\"data_type\":\"TYPE_FP32\""},
      {"GET", "/v2/models/half/stats", "", 200, "\"inference_count\":"},
      {"GET", "/v2/models/stats", "", 200, "\"name\":\"half\""},
      {"POST", "/v2/repository/index", "{\"ready\":true}", 200, "\"state\":\"READY\""},
      {"POST", "/v2/repository/index", "", 200, "\"version\":\"1\""},
      {"GET", "/v2/systemsharedmemory/status", "", 200, "[]"},
      {"POST", "/v2/systemsharedmemory/region/r/register", "{\"key\":\"/runnel_none\"}", 400, ""},
      {"POST", "/v2/systemsharedmemory/unregister", "", 200, ""},
      {"GET", "/v2/cudasharedmemory/status", "", 200, "[]"},
      {"POST", "/v2/cudasharedmemory/region/r/register", "{}", 400, "a handle of 64 bytes, not 0"},
      {"POST", "/v2/cudasharedmemory/region/r/register",
       "{\"raw_handle\":{\"b64\":\"AAAA\"},\"device_id\":0,\"byte_size\":64}", 400, "not 3"},
      {"POST", "/v2/cudasharedmemory/region/r/register", "{\"byte_size\":-1}", 400, "negative"},
      {"GET", "/v2/cudasharedmemory/region/r/status", "", 404, "Unable to find cuda shared memory"},
      {"POST", "/v2/cudasharedmemory/unregister", "", 200, ""},
      {"GET", "/v2/repository/index", "", 405, "Method Not Allowed"},
      {"GET", "/v2/models", "", 404, "Not Found"},
      {"GET", "/v2/models//ready", "", 404, "Not Found"},
      {"GET", "/v2/models/%4", "", 400, "escape"},
      {"POST", INFER, INPUTS "}", 200, "\"data\":[2.0, 4.0]"},
      {"POST", INFER, INPUTS ",\"parameters\":{\"signature_name\":\"whole\"}}", 200, "[3.0]"},
      {"POST", "/v2/models/half/versions/1/infer", INPUTS "}", 200, "\"model_version\":\"1\""},
      {"POST", "/v2/models/none/infer", INPUTS "}", 404, "unknown model: 'none'"},
      {"POST", INFER, "{}", 400, "error"},
      {"POST", INFER, "", 400, "error"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    int code = http(&site, rows[i].method, rows[i].path, rows[i].body, text, sizeof text);
    cr_assert_eq(code, rows[i].code, "%s %s: %s", rows[i].method, rows[i].path, text);
    cr_assert(strstr(text, rows[i].part), "%s %s: %s", rows[i].method, rows[i].path, text);
  }
  const char* json =
      "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,1],\"datatype\":\"FP32\",\"parameters\":"
      "{\"binary_data_size\":4}}],\"parameters\":{\"binary_data_output\":true}}";
  char body[300], header[64];
  snprintf(header, sizeof header, "Inference-Header-Content-Length: %zu\r\n", strlen(json));
  memcpy(body, json, strlen(json));
  memcpy(body + strlen(json), "\0\0\x80\x3f", 4);
  int fd = send_http(&site, "POST", INFER, header, rn_str_n(body, strlen(json) + 4));
  cr_assert_eq(read_http(fd, text, sizeof text), 200);
  cr_assert(strstr(text, "nference-Header-Content-Length: "), "%s", text);
  cr_assert(strstr(text, "\"binary_data_size\":4}}]}"), "%s", text);
  site_close(&site);
}

// Text of any length before them: inputs in binary form are not copied.
OIP_TEST(binary_inputs_arrive_aligned) {
  site_t site;
  site_open(&site);
  static char body[9000], text[20000];
  rn_metric_series_t* copied = rn_metrics_series(site.front.metrics, RN_METRIC_COPIED_BYTES,
                                                 RN_STR("oip"), RN_STR(""), RN_STR(""));
  for (int spaces = 0; spaces < 9; ++spaces) {
    int json = snprintf(body, sizeof body,
                        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2000],\"datatype\":\"FP32\","
                        "\"parameters\":{\"binary_data_size\":8000}}]}%*s",
                        spaces, "");
    char header[64];
    snprintf(header, sizeof header, "Inference-Header-Content-Length: %d\r\n", json);
    for (int i = 0; i < 2000; ++i) memcpy(body + json + 4 * i, "\0\0\x80\x3f", 4);
    int fd = send_http(&site, "POST", INFER, header, rn_str_n(body, (size_t)json + 8000));
    cr_assert_eq(read_http(fd, text, sizeof text), 200, "%s", text);
    cr_assert(strstr(text, "[2.0, 2.0, 2.0"), "%s", text);
  }
  cr_assert_eq(rn_series_value(copied), 0);
  site_close(&site);
}

OIP_TEST(roles) {
  site_t site;
  site_open(&site);
  char text[8000];
  static const struct {
    const char *method, *path, *body;
    rn_role_t role;
  } rows[] = {
      {"GET", "/v2/health/ready", "", RN_ROLE_NONE},
      {"GET", "/v2/models/half/ready", "", RN_ROLE_NONE},
      {"POST", INFER, INPUTS "}", RN_ROLE_PREDICT},
      {"GET", "/v2/models/half", "", RN_ROLE_READ},
      {"POST", "/v2/repository/index", "", RN_ROLE_READ},
      {"POST", "/v2/repository/models/half/load", "", RN_ROLE_ADMIN},
      {"GET", "/v2/systemsharedmemory/status", "", RN_ROLE_ADMIN},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    for (rn_role_t role = RN_ROLE_NONE; role <= RN_ROLE_ADMIN; ++role) {
      site.role = role;
      int code = http(&site, rows[i].method, rows[i].path, rows[i].body, text, sizeof text);
      int refused = role == RN_ROLE_NONE ? 401 : 403;
      cr_assert_eq(code, role >= rows[i].role ? 200 : refused, "%s as %d: %s", rows[i].path,
                   (int)role, text);
    }
  }
  site_close(&site);
}

OIP_TEST(a_timeout_answers_while_the_model_runs) {
  site_t site;
  site_open(&site);
  char text[8000];
  site.fakes[0].on_run = hold;
  int first = send_http(&site, "POST", INFER, "", RN_STR(INPUTS "}"));
  held(&site);
  int64_t before = now();
  int code =
      http(&site, "POST", INFER, INPUTS ",\"parameters\":{\"timeout\":50000}}", text, sizeof text);
  cr_assert_eq(code, 504, "%s", text);
  cr_assert_geq(now() - before, SECOND / 20);
  let_go(&site);
  cr_assert_eq(read_http(first, text, sizeof text), 200);
  cr_assert_eq(site.fakes[0].runs, 1);
  site_close(&site);
}

OIP_TEST(a_client_that_is_gone_runs_nothing) {
  site_t site;
  site_open(&site);
  char text[8000];
  site.fakes[0].on_run = hold;
  int first = send_http(&site, "POST", INFER, "", RN_STR(INPUTS "}"));
  held(&site);
  close(send_http(&site, "POST", INFER, "", RN_STR(INPUTS "}")));
  rn_http_server_stats_t stats;
  do {  // until the server has noticed
    usleep(1000);
    stats = rn_http_server_stats(site.http);
  } while (stats.requests > 1 || stats.connections > 1);
  let_go(&site);
  cr_assert_eq(read_http(first, text, sizeof text), 200);
  cr_assert_eq(site.fakes[0].runs, 1);
  site_close(&site);
}

OIP_TEST(loads_and_unloads) {
  site_t site;
  site_open(&site);
  char text[8000];
  cr_assert_eq(http(&site, "POST", "/v2/repository/models/half/unload", "{}", text, sizeof text),
               200, "%s", text);
  cr_assert_eq(http(&site, "POST", INFER, INPUTS "}", text, sizeof text), 404, "%s", text);
  cr_assert_eq(http(&site, "POST", "/v2/repository/index", "", text, sizeof text), 200);
  cr_assert(strstr(text, "\"name\":\"half\"") && !strstr(text, "\"state\":\"READY\""), "%s", text);
  cr_assert_eq(http(&site, "POST", "/v2/repository/models/half/load", "", text, sizeof text), 200,
               "%s", text);
  cr_assert_eq(http(&site, "POST", INFER, INPUTS "}", text, sizeof text), 200, "%s", text);
  cr_assert_eq(http(&site, "POST", "/v2/repository/models/none/load", "", text, sizeof text), 400);
  cr_assert(strstr(text, "failed to load 'none'"), "%s", text);
  static const struct {
    const char* parameters;
    int code;
    const char* says;
  } rows[] = {
      {"\"config\":\"{}\"", 200, ""},
      {"\"config\":\"{'name':'half','version_policy':{'specific':{'versions':[1]}},'input':[{}]}\"",
       200, ""},
      {"\"config\":\"{'version_policy':{'all':{}},'platform':'tensorflow_savedmodel'}\"", 200, ""},
      {"\"config\":\"{'versionPolicy':{'latest':{'numVersions':2}}}\"", 200, ""},
      {"\"config\":\"{'version_policy':{'specific':{'versions':[7]}}}\"", 400,
       "failed to load 'half'"},
      {"", 200, ""},
      {"\"config\":\"{'version_policy':{'specific':{}}}\"", 400, "needs 'versions'"},
      {"\"config\":\"{'version_policy':{'latest':{'num_versions':0}}}\"", 400, "positive"},
      {"\"config\":\"{'version_policy':{'latest':{},'all':{}}}\"", 400, "more than one"},
      {"\"config\":\"{'version_policy':{'newest':{}}}\"", 400, "no 'newest'"},
      {"\"config\":\"{'name':'other'}\"", 400, "'name' is 'half', not 'other'"},
      {"\"config\":\"{'max_batch_size':77}\"", 400, "cannot change"},
      {"\"config\":\"{'instance_group':[]}\"", 400, "cannot set 'instance_group'"},
      {"\"config\":\"[\"", 400, "failed to load 'half'"},
      {"\"file:1/x\":\"\"", 501, "not 'file:1/x'"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    char body[300], *out = body;
    out += snprintf(body, sizeof body, "{\"parameters\":{");
    for (const char* c = rows[i].parameters; *c; ++c) {
      if (*c == '\'') *out++ = '\\';  // quotes within the text of the configuration
      *out++ = *c == '\'' ? '"' : *c;
    }
    snprintf(out, 3, "}}");
    int code = http(&site, "POST", "/v2/repository/models/half/load", body, text, sizeof text);
    cr_assert(code == rows[i].code && strstr(text, rows[i].says), "%s: %d %s", body, code, text);
  }
  site_close(&site);
}

// gRPC.

typedef struct asked_t {
  rn_rpc_out_t call;  // first
  rn_code_t code;
  char text[400];
  rn_strbuf_t reply;
  _Atomic bool is_done;
} asked_t;

static void on_asked(rn_rpc_out_t* call, rn_status_t status) {
  asked_t* asked = (asked_t*)call;
  asked->code = rn_status_code(status);
  snprintf(asked->text, sizeof asked->text, "%s", rn_status_message(status));
  rn_status_free(status);
  rn_strbuf_append(&asked->reply, rn_message_view(&call->stream.message));
  rn_rpc_out_clear(call);
  asked->is_done = true;
}

static void ask(site_t* site, const char* path, rn_str_t request, int64_t timeout_ns,
                asked_t* asked) {
  *asked = (asked_t){.call = {.path = path, .deadline_ns = now() + timeout_ns, .done = on_asked}};
  rn_message_init(&asked->call.request, memory());
  rn_strbuf_init(&asked->reply, memory());
  OK(rn_message_add(&asked->call.request, request));
  rn_rpc_start(site->channel, &asked->call);
}

static rn_code_t finish(asked_t* asked) {
  while (!asked->is_done) usleep(1000);
  return asked->code;
}

#define SERVICE "/inference.GRPCInferenceService/"

// A request for twice x, of |count| ones in raw form.
static void write_request(rn_strbuf_t* out, const char* model, int64_t count) {
  rn_strbuf_t raw;
  rn_strbuf_init(&raw, memory());
  float one = 1;
  for (int64_t i = 0; i < count; ++i) rn_strbuf_append_n(&raw, &one, sizeof one);
  int64_t dims[] = {1, count};
  rn_str_t bytes = rn_strbuf_view(&raw);
  rn_pb_inference_ModelInferRequest_InferInputTensor_t input = {
      .name = RN_STR("x"), .datatype = RN_STR("FP32"), .shape = {.items = dims, .count = 2}};
  rn_pb_inference_ModelInferRequest_t request = {
      .model_name = rn_str(model),
      .id = RN_STR("7"),
      .inputs = {.items = &input, .count = 1},
      .raw_input_contents = {.items = &bytes, .count = 1}};
  rn_strbuf_init(out, memory());
  OK(RN_PB_ENCODE(inference_ModelInferRequest, &request, NULL, out));
  rn_strbuf_clear(&raw);
}

OIP_TEST(infers_by_rpc) {
  site_t site;
  site_open(&site);
  const int64_t counts[] = {1, 100000};
  for (int i = 0; i < 2; ++i) {
    rn_strbuf_t request;
    write_request(&request, "half", counts[i]);
    asked_t asked;
    ask(&site, SERVICE "ModelInfer", rn_strbuf_view(&request), 60 * SECOND, &asked);
    cr_assert_eq(finish(&asked), RN_CODE_OK, "%s", asked.text);
    rn_arena_t arena;
    rn_arena_init(&arena, memory());
    rn_pb_inference_ModelInferResponse_t* response = NULL;
    OK(RN_PB_DECODE(inference_ModelInferResponse, rn_strbuf_view(&asked.reply), NULL, &arena,
                    &response));
    cr_assert(rn_str_is(response->id, "7") && rn_str_is(response->outputs.items[0].name, "y"));
    rn_str_t raw = response->raw_output_contents.items[0];
    cr_assert_eq(raw.size, (size_t)counts[i] * 4);
    cr_assert_eq(memcmp(raw.data + raw.size - 4, "\0\0\0\x40", 4), 0);
    rn_arena_clear(&arena);
    rn_strbuf_clear(&asked.reply);
    rn_strbuf_clear(&request);
  }
  site_close(&site);
}

OIP_TEST(rpc_deadlines_and_errors) {
  site_t site;
  site_open(&site);
  rn_strbuf_t request;
  write_request(&request, "half", 1);
  asked_t first, second;
  site.fakes[0].on_run = hold;
  ask(&site, SERVICE "ModelInfer", rn_strbuf_view(&request), 60 * SECOND, &first);
  held(&site);
  ask(&site, SERVICE "ModelInfer", rn_strbuf_view(&request), SECOND / 20, &second);
  cr_assert_eq(finish(&second), RN_CODE_DEADLINE_EXCEEDED, "%s", second.text);
  let_go(&site);
  cr_assert_eq(finish(&first), RN_CODE_OK, "%s", first.text);
  cr_assert_eq(site.fakes[0].runs, 1);
  rn_strbuf_clear(&first.reply);
  rn_strbuf_clear(&second.reply);
  static const struct {
    const char* method;
    rn_str_t request;
    rn_code_t code;
  } rows[] = {
      {"ModelInfer", RN_STR("\xff"), RN_CODE_INVALID_ARGUMENT},
      {"ModelInfer", RN_STR("\x0a\x04none"), RN_CODE_NOT_FOUND},
      {"ServerLive", RN_STR(""), RN_CODE_OK},
      {"ModelReady", RN_STR("\x0a\x04none"), RN_CODE_OK},
      {"ModelMetadata", RN_STR("\x0a\x04none"), RN_CODE_NOT_FOUND},
      {"ModelMetadata", RN_STR("\x0a\x04half"), RN_CODE_OK},
      {"ModelConfig", RN_STR("\x0a\x04half"), RN_CODE_OK},
      {"ModelStatistics", RN_STR(""), RN_CODE_OK},
      {"RepositoryIndex", RN_STR(""), RN_CODE_OK},
      {"RepositoryModelUnload", RN_STR("\x12\x04half"), RN_CODE_OK},
      {"RepositoryModelLoad", RN_STR("\x12\x04half"), RN_CODE_OK},
      {"RepositoryModelLoad", RN_STR("\x12\x04none"), RN_CODE_INVALID_ARGUMENT},
      {"SystemSharedMemoryStatus", RN_STR(""), RN_CODE_OK},
      {"SystemSharedMemoryStatus", RN_STR("\x0a\x04none"), RN_CODE_NOT_FOUND},
      {"SystemSharedMemoryUnregister", RN_STR(""), RN_CODE_OK},
      {"CudaSharedMemoryRegister", RN_STR("\x0a\x04none"), RN_CODE_INVALID_ARGUMENT},
      {"CudaSharedMemoryStatus", RN_STR(""), RN_CODE_OK},
      {"CudaSharedMemoryStatus", RN_STR("\x0a\x04none"), RN_CODE_NOT_FOUND},
      {"CudaSharedMemoryUnregister", RN_STR("\x0a\x04none"), RN_CODE_OK},
      {"LogSettings", RN_STR(""), RN_CODE_UNAVAILABLE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    char path[100];
    snprintf(path, sizeof path, SERVICE "%s", rows[i].method);
    ask(&site, path, rows[i].request, 60 * SECOND, &first);
    cr_assert_eq(finish(&first), rows[i].code, "%s: %s", path, first.text);
    rn_strbuf_clear(&first.reply);
  }
  rn_strbuf_clear(&request);
  site_close(&site);
}

// Streams.

// Takes the next message of a stream from what has come; false if it is not there yet.
static bool next_message(rn_str_t* rest, rn_str_t* out) {
  if (rest->size < 5) return false;
  const unsigned char* p = (const unsigned char*)rest->data;
  size_t size = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
  if (rest->size < 5 + size) return false;
  *out = rn_str_n(rest->data + 5, size);
  *rest = rn_str_n(rest->data + 5 + size, rest->size - 5 - size);
  return true;
}

OIP_TEST(a_stream_answers_in_order) {
  site_t site;
  site_open(&site);
  stream_client_t client;
  stream_open(&client, rn_rpc_server_port(site.rpc), SERVICE "ModelStreamInfer");
  site.fakes[0].on_run = hold;
  enum { COUNT = 20 };
  for (int i = 0; i < COUNT; ++i) {  // the second fails at once, while the first is running
    rn_strbuf_t request;
    write_request(&request, i % 4 == 1 ? "none" : "half", i + 1);
    stream_put(&client, &request);
    rn_strbuf_clear(&request);
  }
  client.is_ended = true;
  nghttp2_session_resume_data(client.session, client.stream);
  cr_assert_eq(nghttp2_session_send(client.session), 0);
  held(&site);
  site.fakes[0].on_run = NULL;
  let_go(&site);
  stream_pump(&client, SIZE_MAX);
  cr_assert_eq(client.status, 0);
  rn_str_t rest = rn_strbuf_view(&client.in), message;
  rn_arena_t arena;
  rn_arena_init(&arena, memory());
  for (int i = 0; i < COUNT; ++i) {
    cr_assert(next_message(&rest, &message), "message %d", i);
    rn_pb_inference_ModelStreamInferResponse_t* response = NULL;
    OK(RN_PB_DECODE(inference_ModelStreamInferResponse, message, NULL, &arena, &response));
    cr_assert(rn_str_is(response->infer_response->id, "7"));
    cr_assert_eq(response->error_message.size > 0, i % 4 == 1, "message %d", i);
    if (i % 4 == 1) continue;
    cr_assert_eq(response->infer_response->raw_output_contents.items[0].size, 4 * (size_t)(i + 1));
  }
  cr_assert_eq(rest.size, 0);
  rn_arena_clear(&arena);
  stream_close(&client);
  site_close(&site);
}

OIP_TEST(a_stream_ends_with_its_client) {
  site_t site;
  site_open(&site);
  stream_client_t client;
  stream_open(&client, rn_rpc_server_port(site.rpc), SERVICE "ModelStreamInfer");
  site.fakes[0].on_run = hold;
  for (int i = 0; i < 5; ++i) {
    rn_strbuf_t request;
    write_request(&request, "half", 1);
    stream_put(&client, &request);
    rn_strbuf_clear(&request);
  }
  nghttp2_session_resume_data(client.session, client.stream);
  cr_assert_eq(nghttp2_session_send(client.session), 0);
  held(&site);
  rn_version_t* version = NULL;
  rn_model_spec_t spec = {.name = RN_STR("half"), .version = -1};
  OK(rn_models_find(site.front.models, &spec, &version));
  const rn_batcher_t* batcher = rn_version_batcher(version, 0);
  while (rn_batcher_stats(batcher).queued < 4) usleep(1000);
  stream_close(&client);
  while (rn_batcher_stats(batcher).cancelled < 4) usleep(1000);
  rn_version_release(version);
  let_go(&site);
  site_close(&site);
  cr_assert_eq(site.fakes[0].runs, 1);
}
