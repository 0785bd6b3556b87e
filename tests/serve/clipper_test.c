// Clipper's REST over loopback, as its client library calls it.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_apps.h"
#include "serve/front/front.h"

// The registry of a world's models: each has the version 1, and the first also 2, which is gone.
struct rn_models_t {
  fake_apps_t* world;
};

rn_status_t rn_models_info(rn_models_t* models, rn_str_t name, rn_arena_t* arena,
                           rn_model_info_t** out, int* out_count) {
  *out_count = 0;
  OK(RN_ARENA_ARRAY(arena, FAKE_MODELS, out));
  for (int i = 0; i < FAKE_MODELS; ++i) {
    fake_arm_t* arm = &models->world->arms[i];
    if (!arm->version || (name.size && !rn_str_is(name, arm->name))) continue;
    rn_model_info_t* info = &(*out)[(*out_count)++];
    *info = (rn_model_info_t){.name = rn_str(arm->name), .base_path = RN_STR("/models/m")};
    OK(RN_ARENA_ARRAY(arena, 2, &info->versions));
    info->versions[0] = (rn_version_info_t){
        .number = 1, .state = RN_MODEL_AVAILABLE, .message = "", .version = arm->version};
    info->versions[1] = (rn_version_info_t){.number = 2, .state = RN_MODEL_END, .message = "gone"};
    info->version_count = 2;
  }
  return *out_count ? RN_OK : rn_not_found("no such model");
}
void rn_models_info_clear(rn_model_info_t* infos, int count) { (void)infos, (void)count; }

typedef struct rig_t {
  fake_apps_t world;
  rn_models_t models;
  rn_front_t front;
  rn_loop_t* loop;
  rn_http_server_t* server;
  rn_role_t role;
} rig_t;

static void handle(void* self, rn_http_in_t* request) {
  rig_t* rig = self;
  if (!rn_clipper_route(&rig->front, request, rig->role))
    rn_front_reply_error(&rig->front, request, rn_not_found("not Clipper's"), 0);
}

static rig_t* open_rig(int models) {
  static rig_t rig;
  rig = (rig_t){.role = RN_ROLE_ADMIN};
  fake_apps_open(&rig.world, models, 1);
  rig.models.world = &rig.world;
  rig.front = (rn_front_t){.models = &rig.models,
                           .apps = rig.world.apps,
                           .metrics = rig.world.metrics,
                           .env = rn_env_system(),
                           .allocator = rn_allocator_system()};
  // Queries begin at the time of the real clock, which the simulated one must not be far from.
  rig.world.time.now = rn_env_system()->now_ns(NULL);
  OK(rn_loop_create(rn_env_system(), rn_allocator_system(), &rig.loop));
  rn_http_server_options_t options = {.loop = rig.loop,
                                      .allocator = rn_allocator_system(),
                                      .address = "127.0.0.1:0",
                                      .handle = handle,
                                      .self = &rig};
  OK(rn_http_server_create(&options, &rig.server));
  return &rig;
}

static void close_rig(rig_t* rig) {
  rn_http_server_destroy(rig->server);
  rn_loop_destroy(rig->loop);
  fake_apps_close(&rig->world);
}

// Sends a request and returns the code; |reply| gets the body.
static int call(rig_t* rig, const char* method, const char* path, const char* body, char* reply,
                size_t room) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)rn_http_server_port(rig->server)),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  cr_assert_eq(connect(fd, (struct sockaddr*)&to, sizeof to), 0);
  static char text[1 << 20];
  int size = snprintf(text, sizeof text,
                      "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %zu\r\n"
                      "\r\n%s",
                      method, path, strlen(body), body);
  cr_assert_eq(write(fd, text, (size_t)size), size);
  size_t got = 0;
  for (ssize_t n; (n = read(fd, text + got, sizeof text - 1 - got)) > 0;) got += (size_t)n;
  close(fd);
  text[got] = '\0';
  const char* end = strstr(text, "\r\n\r\n");
  cr_assert(end, "%s", text);
  snprintf(reply, room, "%s", end + 4);
  int code = 0;
  cr_assert_eq(sscanf(text, "HTTP/1.1 %d", &code), 1);
  return code;
}

static char reply[1 << 16];
#define POST(path, body) call(rig, "POST", path, body, reply, sizeof reply)
#define GET(path) call(rig, "GET", path, "", reply, sizeof reply)
#define SAYS(code, text)                          \
  do {                                            \
    int got = (code);                             \
    cr_assert_eq(got, 200, "%d: %s", got, reply); \
    cr_assert_str_eq(reply, text);                \
  } while (0)
#define HAS(text) cr_assert(strstr(reply, text), "'%s' lacks '%s'", reply, text)

#define ADD_A                                                                    \
  "{\"name\": \"a\", \"input_type\": \"floats\", \"default_output\": \"-1.0\", " \
  "\"latency_slo_micros\": 20000000, \"policy\": \"exp4\", \"loss\": \"zero_one\"}"

static int64_t query_id(void) {
  const char* at = strstr(reply, "\"query_id\":");
  cr_assert(at, "%s", reply);
  return strtoll(at + 11, NULL, 10);
}

Test(clipper, from_an_application_to_feedback, .timeout = 60) {
  rig_t* rig = open_rig(3);
  rig->world.arms[2].offset = 1;
  SAYS(POST("/admin/add_app", ADD_A), "Successfully added application with name 'a'");
  cr_assert_eq(POST("/admin/add_app", ADD_A), 400);
  HAS("already exists");
  cr_assert_eq(POST("/a/predict", "{\"input\": [1.5]}"), 200);
  HAS("\"output\":-1.0,\"default\":true,\"default_explanation\":\"No model is linked\"");
  SAYS(POST("/admin/add_model_links", "{\"app_name\": \"a\", \"model_names\": [\"m0\"]}"),
       "Successfully linked model with name 'm0' to application 'a'");
  cr_assert_eq(POST("/admin/add_model_links", "{\"app_name\": \"a\", \"model_names\": [\"x\"]}"),
               400);
  HAS("No model with name 'x' exists.");
  cr_assert_eq(
      POST("/admin/add_model_links", "{\"app_name\": \"a\", \"model_names\": [\"m1\", \"m2\"]}"),
      200);
  cr_assert_eq(POST("/a/predict", "{\"input\": [1.5], \"uid\": \"anna\"}"), 200);
  HAS("\"output\":1.5,\"default\":false,\"confidence\":0.66");
  HAS("\"missing\":0.0}");
  char body[200];
  snprintf(body, sizeof body, "{\"query_id\": %lld, \"label\": 2.5}", (long long)query_id());
  SAYS(POST("/a/update", body), "Feedback received? 1");
  SAYS(POST("/a/update/", body), "Feedback received? 1");
  SAYS(POST("/a/update", "{\"uid\": 7, \"input\": [1.5], \"label\": 1.5}"), "Feedback received? 1");
  cr_assert_eq(POST("/a/update", "{\"query_id\": 3, \"label\": 2.5}"), 404);
  cr_assert_eq(POST("/a/predict", "{\"input\": [1.5], \"uid\": \"anna\"}"), 200);
  HAS("\"output\":2.5");
  cr_assert_eq(POST("/admin/get_state", "{\"app_name\": \"a\", \"uid\": \"anna\"}"), 200);
  HAS("{\"policy\":\"exp4\",\"uid\":\"anna\",\"is_own\":true,\"weights\":{\"m0\":");
  cr_assert_eq(POST("/a/predict", "{\"input_batch\": [[1], [2], [3]]}"), 200);
  HAS("{\"batch_predictions\":[{\"query_id\":");
  HAS("\"output\":3.0");
  SAYS(POST("/a/predict", "{\"input_batch\": []}"), "{\"batch_predictions\":[]}");
  cr_assert_eq(GET("/metrics"), 200);
  HAS("runnel_feedback");
  close_rig(rig);
}

Test(clipper, questions_about_applications_and_models, .timeout = 60) {
  rig_t* rig = open_rig(2);
  SAYS(POST("/admin/get_all_applications", "{\"verbose\": false}"), "[]");
  cr_assert_eq(POST("/admin/add_app", ADD_A), 200);
  cr_assert_eq(POST("/admin/add_model_links", "{\"app_name\": \"a\", \"model_names\": [\"m1\"]}"),
               200);
  SAYS(POST("/admin/get_all_applications", "{\"verbose\": false}"), "[\"a\"]");
  SAYS(POST("/admin/get_application", "{\"name\": \"a\"}"),
       "{\"name\":\"a\",\"input_type\":\"floats\",\"default_output\":\"-1.0\","
       "\"latency_slo_micros\":20000000,\"linked_models\":[\"m1\"],\"policy\":\"exp4\"}");
  SAYS(POST("/admin/get_application", "{\"name\": \"b\"}"), "{}");
  SAYS(POST("/admin/get_linked_models", "{\"app_name\": \"a\"}"), "[\"m1\"]");
  SAYS(POST("/admin/delete_model_links", "{\"app_name\": \"a\", \"model_names\": [\"m1\"]}"),
       "Success!");
  SAYS(POST("/admin/get_linked_models", "{\"app_name\": \"a\"}"), "[]");
  SAYS(POST("/admin/get_all_models", "{\"verbose\": false}"), "[\"m0:1\",\"m1:1\"]");
  SAYS(POST("/admin/get_model", "{\"model_name\": \"m0\", \"model_version\": \"1\"}"),
       "{\"model_name\":\"m0\",\"model_version\":\"1\",\"labels\":[],\"container_name\":\"\","
       "\"model_data_path\":\"/models/m\",\"is_current_version\":true}");
  SAYS(POST("/admin/get_model", "{\"model_name\": \"m0\", \"model_version\": \"2\"}"), "{}");
  SAYS(POST("/admin/get_all_containers", "{\"verbose\": false}"), "[\"m0:1:0\",\"m1:1:0\"]");
  SAYS(POST("/admin/get_container",
            "{\"model_name\": \"m0\", \"model_version\": \"1\", \"replica_id\": 0}"),
       "{\"model_id\":\"m0:1\",\"model_name\":\"m0\",\"model_version\":\"1\","
       "\"model_replica_id\":0,\"batch_size\":-1}");
  SAYS(POST("/admin/set_model_version", "{\"model_name\": \"m0\", \"model_version\": \"1\"}"),
       "Successfully set model with name 'm0' to version '1'");
  cr_assert_eq(
      POST("/admin/set_model_version", "{\"model_name\": \"m0\", \"model_version\": \"2\"}"), 400);
  HAS("model with name 'm0' and version '2' does not exist");
  cr_assert_eq(
      POST("/admin/delete_versioned_model", "{\"model_name\": \"m0\", \"model_version\": \"1\"}"),
      400);
  cr_assert_eq(POST("/admin/add_model",
                    "{\"model_name\": \"m0\", \"model_version\": 1, \"labels\": [], "
                    "\"input_type\": \"doubles\", \"container_name\": \"c\", "
                    "\"model_data_path\": \"p\", \"batch_size\": -1}"),
               200);
  SAYS(POST("/admin/delete_app", "{\"name\": \"a\"}"),
       "Successfully deleted application with name 'a'");
  SAYS(GET("/admin/ping"), "PONG");
  close_rig(rig);
}

Test(clipper, bad_requests_are_told_why, .timeout = 60) {
  rig_t* rig = open_rig(1);
  cr_assert_eq(POST("/admin/add_app", "{\"name\": \"a\"}"), 400);
  HAS("JSON object does not have required key: input_type");
  cr_assert_eq(POST("/admin/add_app",
                    "{\"name\": \"a\", \"input_type\": \"images\", \"default_output\": \"\", "
                    "\"latency_slo_micros\": 1}"),
               400);
  HAS("images is not a valid input string");
  cr_assert_eq(POST("/admin/nothing", "{}"), 404);
  cr_assert_eq(POST("/admin/add_app", ADD_A), 200);
  cr_assert_eq(POST("/admin/add_model_links", "{\"app_name\": \"a\", \"model_names\": [\"m0\"]}"),
               200);
  static const char* const bad[] = {
      "",
      "{",
      "[]",
      "{}",
      "{\"input\": \"x\"}",
      "{\"input\": [\"x\"]}",
      "{\"input\": 1}",
      "{\"input\": [[1]]}",
      "{\"input_batch\": 1}",
      "{\"input_batch\": [1]}",
      "{\"input\": [1], \"version\": \"new\"}",
      "{\"input\": [1,}",
      "{\"input\": []}",
      "{\"input\": [1e999]}",
      "{\"uid\": {}}",
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    cr_assert_eq(POST("/a/predict", bad[i]), 400, "%s: %s", bad[i], reply);
    cr_assert(!strncmp(reply, "{\"error\":\"", 10) && strstr(reply, "\"cause\":"), "%s", reply);
  }
  cr_assert_eq(POST("/a/update", "{\"uid\": 1, \"input\": [1]}"), 400);
  cr_assert_eq(POST("/b/predict", "{\"input\": [1]}"), 404);
  cr_assert_eq(GET("/a/predict"), 404);
  cr_assert_eq(POST("/a/predict/more", "{}"), 404);
  // Roles.
  rig->role = RN_ROLE_PREDICT;
  cr_assert_eq(POST("/a/predict", "{\"input\": [1]}"), 200);
  cr_assert_eq(POST("/admin/delete_app", "{\"name\": \"a\"}"), 403);
  cr_assert_eq(GET("/metrics"), 403);
  rig->role = RN_ROLE_NONE;
  cr_assert_eq(POST("/a/predict", "{\"input\": [1]}"), 401);
  cr_assert_eq(GET("/admin/ping"), 200);
  close_rig(rig);
}

// Bodies made of pieces of good ones: any answer will do, as long as there is one.
Test(clipper, no_body_crashes_it, .timeout = 60) {
  rig_t* rig = open_rig(1);
  cr_assert_eq(POST("/admin/add_app", ADD_A), 200);
  static const char* const pieces[] = {"{",         "}",
                                       "[",         "]",
                                       ",",         ":",
                                       "\"input\"", "\"input_batch\"",
                                       "\"uid\"",   "\"label\"",
                                       "1",         "-1e30",
                                       "\"x\"",     "null",
                                       "true",      "\"query_id\"",
                                       "\"name\"",  "\"model_names\"",
                                       " "};
  static const char* const paths[] = {"/a/predict", "/a/update", "/admin/add_app",
                                      "/admin/add_model_links", "/admin/get_state"};
  uint64_t random = 5;
  for (int n = 0; n < 1500; ++n) {
    char body[400] = "{";
    int count = (int)(rn_random_next(&random) % 12);
    for (int i = 0; i < count; ++i)
      strcat(body, pieces[rn_random_next(&random) % (sizeof pieces / sizeof *pieces)]);
    int code = POST(paths[rn_random_next(&random) % 5], body);
    cr_assert(code >= 200 && code < 500, "%d: %s", code, body);
  }
  close_rig(rig);
}
