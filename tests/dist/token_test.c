// A task with a token.
#include "net/token.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/fs.h"
#include "task.h"

static const char kToken[] = "a-token-of-32-visible-characters";

static void write_token(const char* path, const char* text) {
  OK(rn_fs_write(env(), path, rn_str(text)));
}

Test(token, tokens_are_compared_and_read, .timeout = 60) {
  static const struct {
    const char* header;
    bool matches;
  } cases[] = {{"Bearer a-token-of-32-visible-characters", true},
               {"bearer a-token-of-32-visible-characters", true},
               {"Basic  a-token-of-32-visible-characters", false},
               {"Bearer a-token-of-32-visible-characterz", false},
               {"Bearer a-token-of-32-visible-character", false},
               {"Bearer a-token-of-32-visible-characters ", false},
               {"a-token-of-32-visible-characters", false},
               {"Bearer ", false},
               {"", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    cr_assert_eq(rn_token_matches(rn_str(kToken), rn_str(cases[i].header)), cases[i].matches, "%s",
                 cases[i].header);
  char path[64];
  snprintf(path, sizeof path, "/tmp/runnel-token-%d", getpid());
  rn_strbuf_t token;
  unsetenv("RUNNEL_TOKEN");
  OK(rn_token_read(env(), NULL, memory(), &token));
  cr_assert_eq(token.size, 0);
  write_token(path, " a-token-of-32-visible-characters\n");
  OK(rn_token_read(env(), path, memory(), &token));
  cr_assert_str_eq(token.data, kToken);
  rn_strbuf_clear(&token);
  static const char* const bad[] = {"", "\n", "too-short", "a token with blanks in it",
                                    "a-token-with-a-\x01-in-it"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    write_token(path, bad[i]);
    FAILS_CODE(rn_token_read(env(), path, memory(), &token), RN_CODE_INVALID_ARGUMENT, "no token");
  }
  unlink(path);
  FAILS_CODE(rn_token_read(env(), path, memory(), &token), RN_CODE_NOT_FOUND, path);
}

// What a client with RUNNEL_TOKEN as it is gets: a step, and the call that clears others'
// variables.
static void expect_access(const task_t* task, rn_code_t code) {
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t one = rn_const_float(s, 1);
  rn_session_t* session = connect_to(task, graph);
  rn_status_t status = run(session, one, NULL);
  cr_assert_eq(rn_status_code(status), code, "%s", rn_status_message(status));
  cr_assert(rn_ok(status) || strstr(rn_status_message(status), "RUNNEL_TOKEN"));
  rn_status_free(status);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  rn_client_options_t options = {
      .env = env(), .allocator = memory(), .target = rn_str(rn_server_target(task->server))};
  rn_client_t* client = NULL;
  OK(rn_graph_create(memory(), &graph));
  OK(rn_client_create(&options, graph, &client));
  status = rn_client_reset(client, NULL, 0);
  cr_assert_eq(rn_status_code(status), code, "%s", rn_status_message(status));
  rn_status_free(status);
  rn_client_destroy(client);
  rn_graph_release(graph);
}

Test(token, a_task_with_a_token_takes_calls_of_those_who_have_it, .timeout = 60) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/runnel-token-%d", getpid());
  task_t task = {.options.token = rn_str(kToken)};
  task_open(&task);
  OK(rn_server_start(task.server));
  unsetenv("RUNNEL_TOKEN");
  expect_access(&task, RN_CODE_UNAUTHENTICATED);
  setenv("RUNNEL_TOKEN", path, 1);
  write_token(path, "another-token-of-some-length");
  expect_access(&task, RN_CODE_UNAUTHENTICATED);
  write_token(path, kToken);
  expect_access(&task, RN_CODE_OK);
  OK(run_large(&task, 1 << 20));
  unsetenv("RUNNEL_TOKEN");
  rn_status_t status = run_large(&task, 1 << 20);
  cr_assert(!rn_ok(status));
  rn_status_free(status);
  // Pages: health is for all.
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  expect_page(&task, "/readyz", "HTTP/1.1 200 ", "ready");
  static const char* const closed[] = {"/statusz", "/metrics", "/", "/nothing"};
  for (size_t i = 0; i < sizeof closed / sizeof *closed; ++i)
    expect_page(&task, closed[i], "HTTP/1.1 401 ", "WWW-Authenticate: Bearer");
  expect_answer(&task, "POST /stop HTTP/1.1\r\nX-Runnel: stop\r\n\r\n", "HTTP/1.1 401 ", NULL);
  expect_answer(&task,
                "GET /metrics HTTP/1.1\r\nAuthorization: Bearer a-token-of-32-visible-characters"
                "\r\n\r\n",
                "HTTP/1.1 200 ", "runnel_ready 1");
  unlink(path);
  rn_server_destroy(task.server);
}
