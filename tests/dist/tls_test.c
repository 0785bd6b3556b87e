// Tasks and clients with certificates.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/fs.h"
#include "task.h"

typedef struct pair_t {  // a worker, and a parameter server that has variables
  char dir[64], addresses[2][64];
  const char* token;  // NULL: none
  bool has_operators;
  rn_tokens_t* tokens;
  rn_tls_t* tls[2];
  rn_server_task_t tasks[2];
  rn_server_t* servers[2];
} pair_t;

static rn_tls_t* tls_of(const pair_t* pair, const char* name) {
  char cert[128], key[128], ca[128];
  snprintf(cert, sizeof cert, "%s/%s.pem", pair->dir, name);
  snprintf(key, sizeof key, "%s/%s-key.pem", pair->dir, name);
  snprintf(ca, sizeof ca, "%s/ca.pem", pair->dir);
  rn_tls_options_t options = {.allocator = memory(), .cert = cert, .key = key, .ca = ca};
  rn_tls_t* tls = NULL;
  OK(rn_tls_create(&options, &tls));
  return tls;
}

static void make_certificates(const pair_t* pair, const char* dir, const char* more) {
  char command[1024];
  snprintf(command, sizeof command, "%s cert --dir %s --cluster 'worker=%s,ps=%s' %s >/dev/null",
           RUNNEL, dir, pair->addresses[0], pair->addresses[1], more);
  cr_assert_eq(system(command), 0);
}

// |names| are the certificates that the tasks show.
static void pair_open(pair_t* pair, const char* const names[2]) {
  free_addresses(pair->addresses, 2);
  for (int i = 0; i < 2; ++i) {
    pair->tasks[i] = (rn_server_task_t){.job = i ? RN_STR("ps") : RN_STR("worker"),
                                        .address = rn_str(pair->addresses[i])};
  }
  snprintf(pair->dir, sizeof pair->dir, "/tmp/runnel-tls-XXXXXX");
  cr_assert(mkdtemp(pair->dir));
  make_certificates(pair, pair->dir, "");
  make_certificates(pair, pair->dir, "--client intruder --operator alice");
  if (pair->token) {
    char path[80];
    snprintf(path, sizeof path, "%s/token", pair->dir);
    OK(rn_fs_write(env(), path, rn_str(pair->token)));
    OK(rn_tokens_read(env(), path, &rn_call_gate_roles, memory(), &pair->tokens));
  }
  for (int i = 0; i < 2; ++i) {
    pair->tls[i] = tls_of(pair, names[i]);
    rn_server_options_t options = {.env = env(),
                                   .allocator = memory(),
                                   .tasks = pair->tasks,
                                   .task_count = 2,
                                   .job = pair->tasks[i].job,
                                   .lease_ns = 2 * SECOND,
                                   .tokens = pair->tokens,
                                   .tls = pair->tls[i],
                                   .has_operators = pair->has_operators};
    OK(rn_server_create(&options, &pair->servers[i]));
    OK(rn_server_start(pair->servers[i]));
  }
}

static void pair_close(pair_t* pair) {
  for (int i = 0; i < 2; ++i) rn_server_destroy(pair->servers[i]);
  for (int i = 0; i < 2; ++i) rn_tls_release(pair->tls[i]);
  rn_tokens_release(pair->tokens);
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", pair->dir);
  cr_assert_eq(system(command), 0);
}

static void use_certificate(const pair_t* pair, const char* dir, const char* name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s.pem", dir, name);
  setenv("RUNNEL_TLS_CERT", path, 1);
  snprintf(path, sizeof path, "%s/%s-key.pem", dir, name);
  setenv("RUNNEL_TLS_KEY", path, 1);
  snprintf(path, sizeof path, "%s/ca.pem", pair->dir);
  setenv("RUNNEL_TLS_CA", path, 1);
}

// A large value from the parameter server by way of the worker.
static rn_status_t run_pair(const pair_t* pair) {
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  int64_t one = 1;
  int32_t size = 3000000;
  rn_scope_set_device(s, "/job:ps/task:0");
  rn_edge_t dims = rn_const(s, RN_INT32, &one, 1, &size);
  rn_edge_t large = rn_Fill(s, dims, rn_const_float(s, 3));
  rn_scope_set_device(s, "/job:worker/task:0");
  rn_edge_t y = rn_Square(s, large);
  task_t master = {.server = pair->servers[0]};
  rn_session_t* session = connect_to(&master, graph);
  rn_tensor_t value = {0};
  rn_signature_t signature = {.fetches = &y, .fetch_count = 1};
  rn_step_options_t options = {.timeout_ms = 30000};
  rn_status_t status = rn_session_run(session, &signature, NULL, &value, &options);
  for (int i = 0; rn_ok(status) && i < size; ++i) cr_assert_eq(RN_DATA(&value, float)[i], 9);
  rn_tensor_clear(&value);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  return status;
}

Test(tls, tasks_and_clients_with_certificates, .timeout = 60) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  cr_assert(rn_str_starts_with(rn_str(rn_server_target(pair.servers[0])), RN_STR("grpcs://")));
  use_certificate(&pair, pair.dir, "client");
  for (int i = 0; i < 3; ++i) OK(run_pair(&pair));
  pair_close(&pair);
}

static const char kToken[] = "a-token-of-32-visible-characters";

Test(tls, tasks_and_clients_with_certificates_and_a_token, .timeout = 60) {
  pair_t pair = {.token = kToken};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  use_certificate(&pair, pair.dir, "client");
  unsetenv("RUNNEL_TOKEN");
  FAILS_CODE(run_pair(&pair), RN_CODE_UNAUTHENTICATED, "RUNNEL_TOKEN");
  char path[80];
  snprintf(path, sizeof path, "%s/token", pair.dir);
  setenv("RUNNEL_TOKEN", path, 1);
  OK(run_pair(&pair));
  unsetenv("RUNNEL_TOKEN");
  pair_close(&pair);
}

Test(tls, a_client_without_a_certificate_of_ours_is_refused, .timeout = 60) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  char other[80];
  snprintf(other, sizeof other, "%s/other", pair.dir);
  make_certificates(&pair, other, "");
  use_certificate(&pair, other, "client");
  rn_status_t status = run_pair(&pair);
  cr_assert_eq(rn_status_code(status), RN_CODE_UNAVAILABLE, "%s", rn_status_message(status));
  rn_status_free(status);
  use_certificate(&pair, pair.dir, "client");
  OK(run_pair(&pair));
  pair_close(&pair);
}

Test(tls, a_task_with_the_certificate_of_another_is_refused, .timeout = 60) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "intruder"});
  use_certificate(&pair, pair.dir, "client");
  rn_status_t status = run_pair(&pair);
  cr_assert(!rn_ok(status));
  rn_status_free(status);
  pair_close(&pair);
}

Test(tls, a_client_without_tls_is_told_of_it, .timeout = 60) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  caller_t caller;
  caller_open(&caller, pair.addresses[1], NULL);
  rn_worker_t* worker = rn_remote_worker(caller.peer);
  rn_waiter_t waiter;
  rn_cleanup_all_t call = {.call = rn_waiter_call(&waiter, now() + 10 * SECOND, NULL)};
  worker->vtable->cleanup_all(worker, &call);
  FAILS_CODE(rn_waiter_wait(&waiter), RN_CODE_UNAVAILABLE,
             "if it speaks TLS, the target is grpcs://");
  caller_close(&caller);
  pair_close(&pair);
}

// The code that a Reset of the worker task's variables ends with.
static rn_code_t code_of_reset(const pair_t* pair) {
  rn_client_options_t options = {
      .env = env(), .allocator = memory(), .target = rn_str(rn_server_target(pair->servers[0]))};
  rn_graph_t* graph = NULL;
  rn_client_t* client = NULL;
  OK(rn_graph_create(memory(), &graph));
  OK(rn_client_create(&options, graph, &client));
  rn_status_t status = rn_client_reset(client, NULL, 0);
  rn_code_t code = rn_status_code(status);
  rn_status_free(status);
  rn_client_destroy(client);
  rn_graph_release(graph);
  return code;
}

Test(tls, with_operators_only_they_reset, .timeout = 60) {
  pair_t pair = {.has_operators = true};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  static const char* const names[] = {"client", "worker-0", "alice"};
  for (int i = 0; i < 3; ++i) {
    use_certificate(&pair, pair.dir, names[i]);
    OK(run_pair(&pair));
    cr_assert_eq(code_of_reset(&pair), i == 2 ? RN_CODE_OK : RN_CODE_PERMISSION_DENIED, "%s",
                 names[i]);
  }
  pair_close(&pair);
}

// A new authority takes over without a restart: first all trust both, then all have certificates of
// the new one, then the old one is dropped.
Test(tls, certificates_are_replaced_while_tasks_run, .timeout = 60) {
  pair_t pair = {0};
  static const char* const names[] = {"worker-0", "ps-0"};
  pair_open(&pair, names);
  char other[80], command[512], both[96];
  snprintf(other, sizeof other, "%s/other", pair.dir);
  make_certificates(&pair, other, "");
  snprintf(both, sizeof both, "%s/both.pem", pair.dir);
  snprintf(command, sizeof command, "cat %s/ca.pem %s/ca.pem > %s", pair.dir, other, both);
  cr_assert_eq(system(command), 0);
  use_certificate(&pair, pair.dir, "client");
  OK(run_pair(&pair));
  for (int stage = 0; stage < 3; ++stage)
    for (int i = 0; i < 2; ++i) {
      char cert[128], key[128], ca[128];
      const char* dir = stage ? other : pair.dir;
      snprintf(cert, sizeof cert, "%s/%s.pem", dir, names[i]);
      snprintf(key, sizeof key, "%s/%s-key.pem", dir, names[i]);
      snprintf(ca, sizeof ca, "%s/ca.pem", other);
      rn_tls_options_t options = {
          .allocator = memory(), .cert = cert, .key = key, .ca = stage == 2 ? ca : both};
      OK(rn_tls_replace(pair.tls[i], &options));
      use_certificate(&pair, stage == 2 ? other : pair.dir, "client");
      setenv("RUNNEL_TLS_CA", both, 1);
      OK(run_pair(&pair));
    }
  use_certificate(&pair, pair.dir, "client");
  setenv("RUNNEL_TLS_CA", both, 1);
  rn_status_t status = run_pair(&pair);
  cr_assert_eq(rn_status_code(status), RN_CODE_UNAVAILABLE, "%s", rn_status_message(status));
  rn_status_free(status);
  // What does not fit together changes nothing.
  char cert[128], key[128];
  snprintf(cert, sizeof cert, "%s/ps-0.pem", pair.dir);
  snprintf(key, sizeof key, "%s/ps-0-key.pem", other);
  rn_tls_options_t wrong = {.allocator = memory(), .cert = cert, .key = key, .ca = both};
  FAILS_CODE(rn_tls_replace(pair.tls[1], &wrong), RN_CODE_INVALID_ARGUMENT, "ps-0-key.pem");
  use_certificate(&pair, other, "client");
  setenv("RUNNEL_TLS_CA", both, 1);
  OK(run_pair(&pair));
  pair_close(&pair);
}

Test(tls, only_tasks_call_workers, .timeout = 60) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  static const char* const names[] = {"intruder", "worker-0"};
  for (int i = 0; i < 2; ++i) {
    rn_tls_t* tls = tls_of(&pair, names[i]);
    caller_t caller;
    caller_open(&caller, pair.addresses[1], tls);
    rn_worker_t* worker = rn_remote_worker(caller.peer);
    rn_waiter_t waiter;
    rn_cleanup_all_t call = {.call = rn_waiter_call(&waiter, now() + 10 * SECOND, NULL)};
    worker->vtable->cleanup_all(worker, &call);
    if (i == 0)
      FAILS_CODE(rn_waiter_wait(&waiter), RN_CODE_PERMISSION_DENIED, "\"intruder\"");
    else
      OK(rn_waiter_wait(&waiter));
    caller_close(&caller);
    rn_tls_release(tls);
  }
  pair_close(&pair);
}
