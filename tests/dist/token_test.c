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

static void token_path(char out[64]) { snprintf(out, 64, "/tmp/runnel-token-%d", getpid()); }

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
  char path[64], own[RN_TOKEN_MAX + 1];
  rn_tokens_t* tokens = NULL;
  token_path(path);
  unsetenv("RUNNEL_TOKEN");
  OK(rn_tokens_read(env(), NULL, NULL, memory(), &tokens));
  cr_assert_null(tokens);
  rn_tokens_own(NULL, own);
  cr_assert_str_eq(own, "");
  write_token(path, " a-token-of-32-visible-characters\n");
  OK(rn_tokens_read(env(), path, NULL, memory(), &tokens));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    cr_assert_eq(rn_tokens_grant(tokens, rn_str(cases[i].header)),
                 cases[i].matches ? UINT32_MAX : 0, "%s", cases[i].header);
  rn_tokens_own(tokens, own);
  cr_assert_str_eq(own, kToken);
  rn_tokens_release(tokens);
  static const char* const bad[] = {"",
                                    "\n",
                                    "# a comment",
                                    "client a-token-of-two words-on-its-line",
                                    "too-short",
                                    "a token with blanks in it",
                                    "a-token-with-a-\x01-in-it"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    write_token(path, bad[i]);
    FAILS_CODE(rn_tokens_read(env(), path, NULL, memory(), &tokens), RN_CODE_INVALID_ARGUMENT,
               "no token");
  }
  unlink(path);
  FAILS_CODE(rn_tokens_read(env(), path, NULL, memory(), &tokens), RN_CODE_NOT_FOUND, path);
}

static const char kRoles[] =
    "# the old client, then the new one\n"
    "client an-old-token-of-a-client # until Friday\nclient the-new-token-of-a-client\n"
    "worker  the-token-of-the-workers\r\noperator the-token-of-the-operator\n";

Test(token, lines_have_roles_and_are_renewed, .timeout = 60) {
  char path[64], own[RN_TOKEN_MAX + 1];
  bool is_new = false;
  rn_tokens_t* tokens = NULL;
  token_path(path);
  write_token(path, kRoles);
  OK(rn_tokens_read(env(), path, &rn_call_gate_roles, memory(), &tokens));
  cr_assert_eq(rn_tokens_grant(tokens, RN_STR("Bearer an-old-token-of-a-client")), RN_MAY_USE);
  cr_assert_eq(rn_tokens_grant(tokens, RN_STR("Bearer the-new-token-of-a-client")), RN_MAY_USE);
  cr_assert_eq(rn_tokens_grant(tokens, RN_STR("Bearer the-token-of-the-workers")), RN_MAY_WORK);
  cr_assert_eq(rn_tokens_grant(tokens, RN_STR("Bearer the-token-of-the-operator")), RN_MAY_OPERATE);
  rn_tokens_own(tokens, own);
  cr_assert_str_eq(own, "the-token-of-the-workers");
  OK(rn_tokens_refresh(tokens, &is_new));
  cr_assert(!is_new);
  write_token(path, "worker the-token-of-the-workers\nguest the-token-of-a-guest\n");
  FAILS_CODE(rn_tokens_refresh(tokens, &is_new), RN_CODE_INVALID_ARGUMENT,
             ":2: a line begins with one of client, worker, operator");
  cr_assert_eq(rn_tokens_grant(tokens, RN_STR("Bearer an-old-token-of-a-client")), RN_MAY_USE,
               "a bad file changed the tokens");
  write_token(path, "client the-new-token-of-a-client\nworker another-token-of-workers\n");
  OK(rn_tokens_refresh(tokens, &is_new));
  cr_assert(is_new);
  cr_assert_eq(rn_tokens_grant(tokens, RN_STR("Bearer an-old-token-of-a-client")), 0);
  rn_tokens_own(tokens, own);
  cr_assert_str_eq(own, "another-token-of-workers");
  rn_tokens_release(tokens);
  unlink(path);
}

// What a client with RUNNEL_TOKEN as it is gets: for a step, and for the call that clears others'
// variables.
static void expect_access(const task_t* task, rn_code_t code, rn_code_t reset_code) {
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
  cr_assert_eq(rn_status_code(status), reset_code, "%s", rn_status_message(status));
  rn_status_free(status);
  rn_client_destroy(client);
  rn_graph_release(graph);
}

Test(token, a_task_with_a_token_takes_calls_of_those_who_have_it, .timeout = 60) {
  char path[64];
  token_path(path);
  task_t task = {0};
  write_token(path, kToken);
  OK(rn_tokens_read(env(), path, &rn_call_gate_roles, memory(), &task.options.tokens));
  task_open(&task);
  OK(rn_server_start(task.server));
  unsetenv("RUNNEL_TOKEN");
  expect_access(&task, RN_CODE_UNAUTHENTICATED, RN_CODE_UNAUTHENTICATED);
  setenv("RUNNEL_TOKEN", path, 1);
  write_token(path, "another-token-of-some-length");
  expect_access(&task, RN_CODE_UNAUTHENTICATED, RN_CODE_UNAUTHENTICATED);
  write_token(path, kToken);
  expect_access(&task, RN_CODE_OK, RN_CODE_OK);
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
  rn_tokens_release(task.options.tokens);
}

// Those who may not call the worker service may not fetch parts of collectives, either.
static void expect_fetching(rn_worker_t* worker, rn_code_t code) {
  rn_waiter_t waiter;
  rn_recv_buf_t call = {.call = rn_waiter_call(&waiter, now() + 10 * SECOND, NULL),
                        .source = RN_STR("no device"),
                        .request = 1};
  worker->vtable->recv_buf(worker, &call);
  rn_status_t status = rn_waiter_wait(&waiter);
  cr_assert_eq(rn_status_code(status), code == RN_CODE_OK ? RN_CODE_INVALID_ARGUMENT : code);
  rn_status_free(status);
}

// The code that a call of the worker service ends with, for a caller whose token is in |path|.
static rn_code_t code_of_cleanup(const task_t* task, const char* path) {
  rn_tokens_t* tokens = NULL;
  OK(rn_tokens_read(env(), path, NULL, memory(), &tokens));
  caller_t caller;
  caller_open_with(&caller, task->address, NULL, tokens);
  rn_worker_t* worker = rn_remote_worker(caller.peer);
  rn_waiter_t waiter;
  rn_cleanup_all_t call = {.call = rn_waiter_call(&waiter, now() + 10 * SECOND, NULL)};
  worker->vtable->cleanup_all(worker, &call);
  rn_status_t status = rn_waiter_wait(&waiter);
  rn_code_t code = rn_status_code(status);
  rn_status_free(status);
  expect_fetching(worker, code);
  caller_close(&caller);
  rn_tokens_release(tokens);
  return code;
}

typedef struct heard_t {
  rn_mutex_t mutex;
  int opened, refused, cleared;
} heard_t;

static void on_audit(void* self, const rn_audit_event_t* event) {
  heard_t* heard = self;
  rn_mutex_lock(&heard->mutex);
  cr_assert(rn_str_starts_with(event->address, RN_STR("127.0.0.1:")));
  heard->opened += strcmp(event->action, "CreateSession") == 0 && event->outcome == RN_CODE_OK;
  heard->refused += event->outcome == RN_CODE_PERMISSION_DENIED;
  heard->cleared += strcmp(event->action, "Reset") == 0 && event->outcome == RN_CODE_OK &&
                    event->rights == (RN_MAY_USE | RN_MAY_OPERATE);
  rn_mutex_unlock(&heard->mutex);
}

Test(token, roles_limit_what_callers_may_do, .timeout = 60) {
  char path[64], own[80];
  heard_t heard = {0};
  rn_mutex_init(&heard.mutex);
  token_path(path);
  snprintf(own, sizeof own, "%s-own", path);
  write_token(path, kRoles);
  task_t task = {.options = {.audit = on_audit, .audit_self = &heard}};
  OK(rn_tokens_read(env(), path, &rn_call_gate_roles, memory(), &task.options.tokens));
  task_open(&task);
  OK(rn_server_start(task.server));
  setenv("RUNNEL_TOKEN", own, 1);
  write_token(own, "an-old-token-of-a-client");
  expect_access(&task, RN_CODE_OK, RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(code_of_cleanup(&task, own), RN_CODE_PERMISSION_DENIED);
  write_token(own, "the-token-of-the-workers");
  expect_access(&task, RN_CODE_OK, RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(code_of_cleanup(&task, own), RN_CODE_OK);
  write_token(own, "the-token-of-the-operator");
  expect_access(&task, RN_CODE_OK, RN_CODE_OK);
  cr_assert_eq(code_of_cleanup(&task, own), RN_CODE_PERMISSION_DENIED);
  expect_answer(&task,
                "POST /stop HTTP/1.1\r\nX-Runnel: stop\r\n"
                "Authorization: Bearer the-new-token-of-a-client\r\n\r\n",
                "HTTP/1.1 403 ", NULL);
  // Renewed while the task runs: the old client is out.
  bool is_new = false;
  write_token(path, strstr(kRoles, "client the-new"));
  OK(rn_tokens_refresh(task.options.tokens, &is_new));
  write_token(own, "an-old-token-of-a-client");
  expect_access(&task, RN_CODE_UNAUTHENTICATED, RN_CODE_UNAUTHENTICATED);
  rn_server_destroy(task.server);
  rn_tokens_release(task.options.tokens);
  cr_assert_eq(heard.opened, 3);
  cr_assert_eq(heard.cleared, 1);
  cr_assert_eq(heard.refused, 7);
  rn_mutex_destroy(&heard.mutex);
  unsetenv("RUNNEL_TOKEN");
  unlink(path);
  unlink(own);
}
