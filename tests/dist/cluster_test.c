// A master, its worker and parameter servers: direct calls within one process, and the same calls
// over connections.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memmem
#endif
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/ports.h"
#include "../support/status.h"
#include "base/net.h"
#include "dist/rpc/remote.h"
#include "dist/server.h"
#include "graph/import.h"
#include "runnel/ops.h"

// Each is run twice.
#define CLUSTER_TEST(name)                                      \
  static void name(bool over_rpc);                              \
  Test(cluster, name, .timeout = 60) { name(false); }           \
  Test(cluster, name##_over_rpc, .timeout = 60) { name(true); } \
  static void name(bool over_rpc)
#define PS0 "/job:ps/replica:0/task:0"
#define PS1 "/job:ps/replica:0/task:1"
#define WORKER "/job:worker/replica:0/task:0"

enum { kTasks = 3 };
static const char* const names[kTasks] = {WORKER, PS0, PS1};

// The worker as other tasks reach it in this process: what they ask it for is counted.
typedef struct asked_worker_t {
  rn_worker_t face;  // first
  rn_worker_t* inner;
  _Atomic int asked;
} asked_worker_t;

static void count_recv(rn_worker_t* face, rn_recv_tensor_t* call) {
  asked_worker_t* worker = (asked_worker_t*)face;
  worker->asked++;
  worker->inner->vtable->recv_tensor(worker->inner, call);
}

typedef struct cluster_t {
  rn_env_t env;
  asked_worker_t asked;
  rn_pool_t* pool;
  rn_local_worker_t* workers[kTasks];
  rn_local_master_t* master;
  rn_master_t* face;  // of the master, wherever it is
  // Over connections:
  rn_server_t* servers[kTasks];
  rn_loop_t* loop;
  rn_channel_t* channel;
  rn_remote_peer_t* peer;
} cluster_t;

static rn_worker_t* find(void* self, rn_str_t task) {
  cluster_t* cluster = self;
  if (rn_str_is(task, WORKER)) return &cluster->asked.face;
  for (int i = 0; i < kTasks; ++i)
    if (rn_str_is(task, names[i])) return rn_local_worker_face(cluster->workers[i]);
  return NULL;
}

static rn_allocator_t memory(void) { return rn_allocator_system(); }

static void cluster_open_servers(cluster_t* cluster) {
  char addresses[kTasks][64];
  rn_server_task_t tasks[kTasks];
  free_addresses(addresses, kTasks);
  for (int i = 0; i < kTasks; ++i)
    tasks[i] = (rn_server_task_t){.job = i == 0 ? RN_STR("worker") : RN_STR("ps"),
                                  .index = i == 0 ? 0 : i - 1,
                                  .address = rn_str(addresses[i])};
  for (int i = 0; i < kTasks; ++i) {
    rn_server_options_t options = {.env = rn_env_system(),
                                   .allocator = memory(),
                                   .tasks = tasks,
                                   .task_count = kTasks,
                                   .job = tasks[i].job,
                                   .index = tasks[i].index};
    OK(rn_server_create(&options, &cluster->servers[i]));
    OK(rn_server_start(cluster->servers[i]));
  }
  OK(rn_loop_create(rn_env_system(), memory(), &cluster->loop));
  rn_channel_options_t options = {
      .loop = cluster->loop, .allocator = memory(), .address = addresses[0]};
  OK(rn_channel_create(&options, &cluster->channel));
  OK(rn_remote_peer_create(cluster->channel, rn_env_system(), &(rn_remote_near_t){.borrows = true},
                           memory(), &cluster->peer));
  cluster->face = rn_remote_master(cluster->peer);
}

static void cluster_open(cluster_t* cluster, bool over_rpc) {
  *cluster = (cluster_t){.env = *rn_env_system()};
  if (over_rpc) {
    cluster_open_servers(cluster);
    return;
  }
  OK(rn_pool_create(memory(), 2, &cluster->pool));
  cluster->env.pool = cluster->pool;
  rn_peers_t peers = {.self = cluster, .find = find};
  static rn_str_t tasks[kTasks];
  for (int i = 0; i < kTasks; ++i) {
    tasks[i] = rn_str(names[i]);
    rn_local_worker_options_t options = {
        .env = &cluster->env, .allocator = memory(), .task = names[i], .peers = peers};
    OK(rn_local_worker_create(&options, &cluster->workers[i]));
  }
  static rn_worker_vtable_t counting;
  cluster->asked.inner = rn_local_worker_face(cluster->workers[0]);
  counting = *cluster->asked.inner->vtable;
  counting.recv_tensor = count_recv;
  cluster->asked.face.vtable = &counting;
  rn_local_master_options_t options = {.env = &cluster->env,
                                       .allocator = memory(),
                                       .worker = cluster->workers[0],
                                       .tasks = tasks,
                                       .task_count = kTasks,
                                       .peers = peers};
  OK(rn_local_master_create(&options, &cluster->master));
  cluster->face = rn_local_master_face(cluster->master);
}

static void cluster_close(cluster_t* cluster) {
  if (cluster->peer) {
    rn_channel_destroy(cluster->channel);
    rn_remote_peer_destroy(cluster->peer);
    rn_loop_destroy(cluster->loop);
    for (int i = 0; i < kTasks; ++i) rn_server_destroy(cluster->servers[i]);
    return;
  }
  rn_local_master_destroy(cluster->master);
  for (int i = 0; i < kTasks; ++i) {
    rn_worker_stats_t stats = rn_local_worker_stats(cluster->workers[i]);
    cr_assert_eq(stats.sessions, 1, "%zu sessions of %s left", stats.sessions - 1, names[i]);
    cr_assert_eq(stats.steps, 0, "%zu steps of %s left", stats.steps, names[i]);
  }
  for (int i = 0; i < kTasks; ++i) rn_local_worker_destroy(cluster->workers[i]);
  rn_pool_destroy(cluster->pool);
}

// Waiting for the answer of a call.
typedef struct answer_t {
  rn_mutex_t mutex;
  rn_cond_t came;
  bool is_here;
  rn_status_t status;
} answer_t;

static void on_answer(rn_call_t* call, rn_status_t status) {
  answer_t* answer = call->owner;
  rn_mutex_lock(&answer->mutex);
  answer->status = status;
  answer->is_here = true;
  rn_cond_broadcast(&answer->came);
  rn_mutex_unlock(&answer->mutex);
}

static rn_call_t ask(answer_t* answer) {
  *answer = (answer_t){.is_here = false};
  rn_mutex_init(&answer->mutex);
  rn_cond_init(&answer->came);
  return (rn_call_t){.done = on_answer, .owner = answer, .deadline_ns = INT64_MAX};
}

static rn_status_t wait_for(answer_t* answer) {
  rn_mutex_lock(&answer->mutex);
  while (!answer->is_here) rn_cond_wait(&answer->came, &answer->mutex);
  rn_mutex_unlock(&answer->mutex);
  return answer->status;
}

static void session_open(cluster_t* cluster, rn_graph_t* graph, rn_create_session_t* session) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, memory());
  OK(rn_graph_export(graph, &bytes));
  answer_t answer;
  *session = (rn_create_session_t){.call = ask(&answer), .graph_def = rn_strbuf_view(&bytes)};
  rn_master_t* master = cluster->face;
  master->vtable->create_session(master, session);
  OK(wait_for(&answer));
  rn_strbuf_clear(&bytes);
}

static void session_close(cluster_t* cluster, const rn_create_session_t* session) {
  answer_t answer;
  rn_close_session_t call = {.call = ask(&answer), .session = rn_str(session->session)};
  rn_master_t* master = cluster->face;
  master->vtable->close_session(master, &call);
  OK(wait_for(&answer));
}

// Runs a step that feeds |feed| (may be NULL), fetches |fetch| (likewise) and runs |target|.
static rn_status_t run(cluster_t* cluster, const rn_create_session_t* session, const char* feed,
                       float fed, const char* fetch, const char* target, float* out) {
  answer_t answer;
  rn_named_tensor_t feeds = {.name = rn_str(feed)};
  if (feed) {
    OK(rn_tensor_create(memory(), RN_FLOAT, RN_SHAPE_SCALAR, &feeds.value));
    *RN_DATA(&feeds.value, float) = fed;
  }
  rn_str_t fetches = rn_str(fetch), targets = rn_str(target);
  rn_tensor_t value = {0};
  rn_run_step_t call = {.call = ask(&answer),
                        .session = rn_str(session->session),
                        .feeds = &feeds,
                        .feed_count = feed ? 1 : 0,
                        .fetch_names = &fetches,
                        .fetch_count = fetch ? 1 : 0,
                        .targets = &targets,
                        .target_count = target ? 1 : 0,
                        .fetches = &value};
  rn_strbuf_init(&call.metadata, memory());
  rn_master_t* master = cluster->face;
  master->vtable->run_step(master, &call);
  rn_status_t status = wait_for(&answer);
  rn_strbuf_clear(&call.metadata);
  if (rn_ok(status) && fetch && out) *out = *RN_DATA(&value, float);
  rn_tensor_clear(&value);
  rn_tensor_clear(&feeds.value);
  return status;
}

// Sets where the next node goes and what it is called.
static rn_scope_t* on(rn_scope_t* scope, const char* device, const char* name) {
  rn_scope_set_device(scope, device);
  if (name) rn_scope_name_next(scope, name);
  return scope;
}
static void expect_ok(rn_scope_t* scope) {
  cr_assert(rn_scope_ok(scope), "%s", rn_scope_message(scope));
}

static const char* const at_ps0 = "/job:ps/task:0";
static const char* const at_ps1 = "/job:ps/task:1";

CLUSTER_TEST(values_cross_tasks) {
  cluster_t cluster;
  cluster_open(&cluster, over_rpc);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(on(s, NULL, "x"), RN_FLOAT);
  rn_edge_t three = rn_const_float(on(s, at_ps0, NULL), 3);
  rn_edge_t a = rn_Mul(on(s, at_ps0, "a"), x, three);
  rn_edge_t one = rn_const_float(on(s, at_ps1, NULL), 1);
  rn_edge_t b = rn_AddV2(on(s, at_ps1, "b"), a, one);
  rn_Identity(on(s, NULL, "y"), b);
  expect_ok(s);
  rn_create_session_t session;
  session_open(&cluster, graph, &session);
  for (int i = 0; i < 100; ++i) {
    float y = 0;
    OK(run(&cluster, &session, "x:0", (float)i, "y:0", NULL, &y));
    cr_assert_float_eq(y, (float)(3 * i + 1), 1e-6);
  }
  session_close(&cluster, &session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

// A client may send nodes that cannot run: only the steps that want them fail, with what the kernel
// says.
CLUSTER_TEST(misfits_are_kept) {
  cluster_t cluster;
  cluster_open(&cluster, over_rpc);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  graph->keeps_misfits = true;
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t a = rn_const(on(s, at_ps0, NULL), RN_FLOAT, (int64_t[]){1, 2}, 2, (float[]){1, 2});
  rn_edge_t product = rn_MatMul(on(s, at_ps0, "product"), a, a);
  rn_Neg(on(s, at_ps1, "after"), product);
  rn_edge_t axes = rn_const_int32_list(on(s, at_ps0, NULL), (int32_t[]){0, 1}, 2);
  rn_Sum(on(s, at_ps0, "fine"), a, axes);
  expect_ok(s);
  rn_create_session_t session;
  session_open(&cluster, graph, &session);
  float fine = 0;
  for (int i = 0; i < 2; ++i) {
    OK(run(&cluster, &session, NULL, 0, "fine:0", NULL, &fine));
    cr_assert_float_eq(fine, 3, 1e-6);
    rn_status_t status = run(&cluster, &session, NULL, 0, i ? "after:0" : "product:0", NULL, NULL);
    cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
    cr_assert(
        strstr(rn_status_message(status), "Matrix size-incompatible: In[0]: [1,2], In[1]: [1,2]"),
        "%s", rn_status_message(status));
    rn_status_free(status);
  }
  session_close(&cluster, &session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

// What the master's own part sends goes along with the calls of the others, if it is small: then
// they ask for nothing.
CLUSTER_TEST(small_values_go_along) {
  cluster_t cluster;
  cluster_open(&cluster, over_rpc);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(on(s, NULL, "x"), RN_FLOAT);
  rn_edge_t dims = rn_const_int32_list(s, (int32_t[]){8192}, 1);
  rn_edge_t many = rn_Fill(s, dims, x), square = rn_Mul(s, x, x);
  rn_edge_t a = rn_Neg(on(s, at_ps0, "a"), square), b = rn_Neg(on(s, at_ps1, "b"), x);
  rn_edge_t c = rn_Max(on(s, at_ps1, "c"), many, rn_const_int32_list(s, (int32_t[]){0}, 1));
  rn_AddV2(on(s, NULL, "y"), a, b);
  rn_AddV2(on(s, NULL, "z"), a, c);
  expect_ok(s);
  rn_create_session_t session;
  session_open(&cluster, graph, &session);
  // The first steps find out that they are quick.
  int asked = 1;
  for (int i = 0; i < 2000 && (i < 50 || asked); ++i) {
    float value = (float)(i % 100), y = 0;
    asked = cluster.asked.asked;
    OK(run(&cluster, &session, "x:0", value, "y:0", NULL, &y));
    asked = cluster.asked.asked - asked;
    cr_assert_float_eq(y, -value * value - value, 1e-3);
  }
  cr_assert_eq(asked, 0);
  for (int i = 0; i < 50; ++i) {  // one of its values is large
    float value = (float)(i % 100), z = 0;
    asked = cluster.asked.asked;
    OK(run(&cluster, &session, "x:0", value, "z:0", NULL, &z));
    cr_assert_float_eq(z, value - value * value, 1e-3);
    if (!over_rpc) cr_assert_gt(cluster.asked.asked, asked);
  }
  session_close(&cluster, &session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

CLUSTER_TEST(variables_live_on_their_servers) {
  cluster_t cluster;
  cluster_open(&cluster, over_rpc);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t v = rn_VarHandleOp(on(s, at_ps0, "v"), RN_FLOAT, NULL, 0, .shared_name = "v");
  rn_edge_t ten = rn_const_float(on(s, at_ps0, NULL), 10);
  rn_AssignVariableOp(on(s, at_ps0, "init"), v, ten);
  rn_edge_t two = rn_const_float(on(s, NULL, NULL), 2);
  rn_AssignAddVariableOp(on(s, at_ps0, "add"), v, two);
  rn_ReadVariableOp(on(s, at_ps0, "read"), v, RN_FLOAT);
  expect_ok(s);
  rn_create_session_t session;
  float value = 0;
  for (int turn = 0; turn < 2; ++turn) {  // the second session finds what the first has left
    session_open(&cluster, graph, &session);
    if (turn == 0) OK(run(&cluster, &session, NULL, 0, NULL, "init", NULL));
    for (int i = 0; i < 3; ++i) OK(run(&cluster, &session, NULL, 0, NULL, "add", NULL));
    OK(run(&cluster, &session, NULL, 0, "read:0", NULL, &value));
    cr_assert_float_eq(value, 16 + 6 * turn, 1e-6);
    session_close(&cluster, &session);
  }
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

CLUSTER_TEST(an_error_names_its_task_and_leaves_the_session_alive) {
  cluster_t cluster;
  cluster_open(&cluster, over_rpc);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(on(s, NULL, "x"), RN_FLOAT);
  rn_edge_t checked = rn_CheckNumerics(on(s, at_ps0, "check"), x, "bad number");
  rn_edge_t b = rn_Neg(on(s, at_ps1, "b"), checked);
  rn_Identity(on(s, NULL, "y"), b);
  expect_ok(s);
  rn_create_session_t session;
  session_open(&cluster, graph, &session);
  float y = 0;
  for (int i = 0; i < 20; ++i) {
    rn_status_t status = run(&cluster, &session, "x:0", 1.0f / 0.0f, "y:0", NULL, &y);
    cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT, "%s", rn_status_message(status));
    cr_assert(strstr(rn_status_message(status), "From " PS0 ":\n"), "%s",
              rn_status_message(status));
    cr_assert(strstr(rn_status_message(status), "bad number"), "%s", rn_status_message(status));
    rn_status_free(status);
    OK(run(&cluster, &session, "x:0", 4, "y:0", NULL, &y));
    cr_assert_float_eq(y, -4, 1e-6);
  }
  session_close(&cluster, &session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

// Callables: made once, called often, and gone when they are released.
CLUSTER_TEST(callables) {
  cluster_t cluster;
  cluster_open(&cluster, over_rpc);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(on(s, NULL, "x"), RN_FLOAT);
  rn_edge_t a = rn_Neg(on(s, at_ps0, "a"), x);
  rn_Square(on(s, at_ps1, "y"), a);
  expect_ok(s);
  rn_create_session_t session;
  session_open(&cluster, graph, &session);
  answer_t answer;
  rn_str_t feed = RN_STR("x:0"), fetches[] = {RN_STR("a:0"), RN_STR("y:0")};
  rn_make_callable_t make = {.call = ask(&answer),
                             .session = rn_str(session.session),
                             .feeds = &feed,
                             .feed_count = 1,
                             .fetches = fetches,
                             .fetch_count = 2};
  cluster.face->vtable->make_callable(cluster.face, &make);
  OK(wait_for(&answer));
  for (int i = 0; i < 20; ++i) {
    rn_tensor_t fed;
    OK(rn_tensor_create(memory(), RN_FLOAT, RN_SHAPE_SCALAR, &fed));
    *RN_DATA(&fed, float) = (float)i;
    rn_run_callable_t call = {.call = ask(&answer),
                              .session = rn_str(session.session),
                              .handle = make.handle,
                              .feeds = &fed,
                              .feed_count = 1};
    rn_strbuf_init(&call.metadata, memory());
    cluster.face->vtable->run_callable(cluster.face, &call);
    OK(wait_for(&answer));
    cr_assert_eq(call.fetch_count, 2);
    cr_assert_float_eq(*RN_DATA(&call.fetches[0], float), (float)-i, 1e-6);
    cr_assert_float_eq(*RN_DATA(&call.fetches[1], float), (float)(i * i), 1e-6);
    for (size_t f = 0; f < call.fetch_count; ++f) rn_tensor_clear(&call.fetches[f]);
    RN_FREE_ARRAY(memory(), call.fetches, call.fetch_count);
    rn_strbuf_clear(&call.metadata);
    rn_tensor_clear(&fed);
  }
  rn_release_callable_t release = {
      .call = ask(&answer), .session = rn_str(session.session), .handle = make.handle};
  cluster.face->vtable->release_callable(cluster.face, &release);
  OK(wait_for(&answer));
  rn_run_callable_t gone = {
      .call = ask(&answer), .session = rn_str(session.session), .handle = make.handle};
  cluster.face->vtable->run_callable(cluster.face, &gone);
  rn_status_t status = wait_for(&answer);
  cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT, "%s", rn_status_message(status));
  rn_status_free(status);
  session_close(&cluster, &session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

// Whether a traced step tells of every task, and a reset takes the variables away.
CLUSTER_TEST(statistics_and_reset) {
  cluster_t cluster;
  cluster_open(&cluster, over_rpc);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t v = rn_VarHandleOp(on(s, at_ps0, "v"), RN_FLOAT, NULL, 0, .shared_name = "v");
  rn_edge_t ten = rn_const_float(on(s, at_ps0, NULL), 10);
  rn_AssignVariableOp(on(s, at_ps0, "init"), v, ten);
  rn_edge_t read = rn_ReadVariableOp(on(s, at_ps0, "read"), v, RN_FLOAT);
  rn_Neg(on(s, at_ps1, "negated"), read);
  expect_ok(s);
  rn_create_session_t session;
  session_open(&cluster, graph, &session);
  OK(run(&cluster, &session, NULL, 0, NULL, "init", NULL));
  answer_t answer;
  rn_str_t fetch = RN_STR("negated:0");
  rn_tensor_t value = {0};
  rn_run_step_t call = {.call = ask(&answer),
                        .session = rn_str(session.session),
                        .fetch_names = &fetch,
                        .fetch_count = 1,
                        .trace_level = 3,
                        .wants_graphs = true,
                        .fetches = &value};
  rn_strbuf_init(&call.metadata, memory());
  cluster.face->vtable->run_step(cluster.face, &call);
  OK(wait_for(&answer));
  cr_assert_float_eq(*RN_DATA(&value, float), -10, 1e-6);
  const char* words[] = {PS0 "/device:CPU:0", PS1 "/device:CPU:0", "negated = Neg(",
                         "read = ReadVariableOp(v)"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    cr_assert_not_null(memmem(call.metadata.data, call.metadata.size, words[i], strlen(words[i])),
                       "nothing of %s", words[i]);
  rn_strbuf_clear(&call.metadata);
  rn_tensor_clear(&value);

  rn_reset_t reset = {.call = ask(&answer)};
  cluster.face->vtable->reset(cluster.face, &reset);
  OK(wait_for(&answer));
  session_close(&cluster, &session);
  session_open(&cluster, graph, &session);
  float got = 0;
  rn_status_t status = run(&cluster, &session, NULL, 0, "read:0", NULL, &got);
  cr_assert_eq(rn_status_code(status), RN_CODE_FAILED_PRECONDITION, "%s",
               rn_status_message(status));
  rn_status_free(status);
  session_close(&cluster, &session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}
