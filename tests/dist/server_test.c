// Servers on loopback and a client: the same steps as within one process, over real connections.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/ports.h"
#include "../support/status.h"
#include "base/net.h"
#include "client.h"
#include "dist/calls.h"
#include "dist/rpc/remote.h"
#include "dist/server.h"
#include "runnel/ops.h"

#define SERVER_TEST(name) Test(server, name, .timeout = 60)

enum { kTasks = 3 };
static rn_allocator_t memory(void) { return rn_allocator_system(); }

typedef struct cluster_t {
  char addresses[kTasks][64];
  rn_server_task_t tasks[kTasks];
  rn_server_t* servers[kTasks];
} cluster_t;

static void server_open(cluster_t* cluster, int i) {
  rn_server_options_t options = {.env = rn_env_system(),
                                 .allocator = memory(),
                                 .tasks = cluster->tasks,
                                 .task_count = kTasks,
                                 .job = cluster->tasks[i].job,
                                 .index = cluster->tasks[i].index,
                                 .lease_ns = 1000000000};
  OK(rn_server_create(&options, &cluster->servers[i]));
}

// With open ports, where connections wait.
static void cluster_prepare(cluster_t* cluster) {
  *cluster = (cluster_t){0};
  free_addresses(cluster->addresses, kTasks);
  for (int i = 0; i < kTasks; ++i)
    cluster->tasks[i] = (rn_server_task_t){.job = i == 0 ? RN_STR("worker") : RN_STR("ps"),
                                           .index = i == 0 ? 0 : i - 1,
                                           .address = rn_str(cluster->addresses[i])};
  for (int i = 0; i < kTasks; ++i) server_open(cluster, i);
}

static void cluster_open(cluster_t* cluster) {
  cluster_prepare(cluster);
  for (int i = 0; i < kTasks; ++i) OK(rn_server_start(cluster->servers[i]));
}

static void cluster_close(cluster_t* cluster) {
  for (int i = 0; i < kTasks; ++i) rn_server_destroy(cluster->servers[i]);
}

static rn_session_t* connect_with(const char* target, int64_t timeout_ms, rn_graph_t* graph) {
  rn_session_t* session = NULL;
  OK(session_open(target, timeout_ms, 1000000000, graph, &session));
  return session;
}

static rn_session_t* connect_to(cluster_t* cluster, rn_graph_t* graph) {
  return connect_with(rn_server_target(cluster->servers[0]), 0, graph);
}

static rn_scope_t* on(rn_scope_t* scope, const char* device, const char* name) {
  rn_scope_set_device(scope, device);
  if (name) rn_scope_name_next(scope, name);
  return scope;
}
static const char* const at_ps0 = "/job:ps/task:0";
static const char* const at_ps1 = "/job:ps/task:1";

SERVER_TEST(steps_and_growing_graphs) {
  cluster_t cluster;
  cluster_open(&cluster);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(on(s, NULL, "x"), RN_FLOAT);
  rn_edge_t three = rn_const_float(on(s, at_ps0, NULL), 3);
  rn_edge_t a = rn_Mul(on(s, at_ps0, "a"), x, three);
  rn_edge_t b = rn_Neg(on(s, at_ps1, "b"), a);
  rn_session_t* session = connect_to(&cluster, graph);
  float y = 0;
  for (int i = 0; i < 50; ++i) {
    OK(step_run(session, x, (float)i, b, NULL, &y));
    cr_assert_float_eq(y, (float)(-3 * i), 1e-6);
  }
  rn_edge_t c = rn_Square(on(s, at_ps0, "c"), b);  // the graph grows
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  OK(step_run(session, x, 2, c, NULL, &y));
  cr_assert_float_eq(y, 36, 1e-6);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

// Each task of a cluster starts when it likes; calls that come before wait.
static void* start_late(void* server) {
  usleep(100000);
  OK(rn_server_start(server));
  return NULL;
}

SERVER_TEST(calls_wait_until_a_task_is_started) {
  cluster_t cluster;
  cluster_prepare(&cluster);
  OK(rn_server_start(cluster.servers[0]));
  OK(rn_server_start(cluster.servers[2]));
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(on(s, NULL, "x"), RN_FLOAT);
  rn_edge_t a = rn_Neg(on(s, at_ps0, "a"), x);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  pthread_t thread;
  cr_assert_eq(pthread_create(&thread, NULL, start_late, cluster.servers[1]), 0);
  rn_session_t* session = connect_to(&cluster, graph);
  float y = 0;
  OK(step_run(session, x, 1, a, NULL, &y));
  cr_assert_float_eq(y, -1, 1e-6);
  pthread_join(thread, NULL);
  OK(rn_server_start(cluster.servers[1]));  // once more does no harm
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

SERVER_TEST(a_server_that_never_starts_can_be_destroyed) {
  cluster_t cluster;
  cluster_prepare(&cluster);
  cluster_close(&cluster);
}

SERVER_TEST(large_tensors_cross_unharmed) {
  cluster_t cluster;
  cluster_open(&cluster);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  enum { kSide = 2000 };
  int64_t two = 2;
  int32_t sides[] = {kSide, kSide};
  rn_edge_t dims = rn_const(on(s, at_ps0, NULL), RN_INT32, &two, 1, sides);
  rn_edge_t value = rn_const_float(on(s, at_ps0, NULL), 0.5f);
  rn_edge_t large = rn_Fill(on(s, at_ps0, "large"), dims, value);
  rn_edge_t moved = rn_Square(on(s, at_ps1, "moved"), large);
  int32_t both[] = {0, 1};
  rn_edge_t axes = rn_const(on(s, NULL, NULL), RN_INT32, &two, 1, both);
  rn_edge_t sum = rn_Sum(on(s, NULL, "sum"), moved, axes);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_session_t* session = connect_to(&cluster, graph);
  for (int i = 0; i < 5; ++i) {
    float y = 0;
    OK(step_run(session, RN_NO_EDGE, 0, sum, NULL, &y));
    cr_assert_float_eq(y, kSide * kSide * 0.25f, 1);
  }
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

SERVER_TEST(a_task_that_dies_is_named_within_its_lease) {
  cluster_t cluster;
  cluster_open(&cluster);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(on(s, NULL, "x"), RN_FLOAT);
  rn_edge_t a = rn_Neg(on(s, at_ps0, "a"), x);
  rn_edge_t b = rn_Neg(on(s, at_ps1, "b"), x);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_session_t* session = connect_to(&cluster, graph);
  float y = 0;
  OK(step_run(session, x, 1, a, NULL, &y));
  OK(step_run(session, x, 1, b, NULL, &y));
  rn_server_destroy(cluster.servers[1]);
  cluster.servers[1] = NULL;
  rn_status_t status = step_run(session, x, 1, a, NULL, &y);
  cr_assert_eq(rn_status_code(status), RN_CODE_UNAVAILABLE, "%s", rn_status_message(status));
  cr_assert(strstr(rn_status_message(status), "/job:ps/replica:0/task:0"), "%s",
            rn_status_message(status));
  rn_status_free(status);
  OK(step_run(session, x, 1, b, NULL, &y));  // the others go on
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

static void reset(cluster_t* cluster, rn_graph_t* graph, rn_str_t config) {
  rn_client_t* client = NULL;
  rn_client_options_t options = {.env = rn_env_system(),
                                 .allocator = memory(),
                                 .target = rn_str(rn_server_target(cluster->servers[0])),
                                 .config = config};
  OK(rn_client_create(&options, graph, &client));
  OK(rn_client_reset(client, NULL, 0));
  rn_client_destroy(client);
}

SERVER_TEST(a_client_clears_containers) {
  cluster_t cluster;
  cluster_open(&cluster);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t v = rn_VariableV2(on(s, at_ps0, "v"), NULL, 0, RN_FLOAT);
  rn_edge_t set = rn_Assign(s, v, rn_const_float(s, 5));
  rn_edge_t value = rn_Identity(s, v);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  float y = 0;
  rn_session_t* session = connect_to(&cluster, graph);
  OK(step_run(session, RN_NO_EDGE, 0, set, NULL, &y));
  rn_session_destroy(session);
  reset(&cluster, graph, RN_STR("\"\016/job:ps/task:1"));  // a filter: the other server's only
  session = connect_to(&cluster, graph);
  OK(step_run(session, RN_NO_EDGE, 0, value, NULL, &y));
  cr_assert_float_eq(y, 5, 1e-6);
  rn_session_destroy(session);
  reset(&cluster, graph, RN_STR(""));
  session = connect_to(&cluster, graph);
  rn_status_t status = step_run(session, RN_NO_EDGE, 0, value, NULL, &y);
  cr_assert_eq(rn_status_code(status), RN_CODE_FAILED_PRECONDITION, "%s",
               rn_status_message(status));
  rn_status_free(status);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

// Everything that clients do, while the tasks go under them.

typedef struct load_t {
  char targets[kTasks][80];
  _Atomic bool is_over;
  _Atomic int steps, sessions, failures;
} load_t;

typedef struct user_t {
  load_t* load;
  int number;
  pthread_t thread;
} user_t;

static void count(load_t* load, rn_status_t status) {
  if (!rn_ok(status)) load->failures++;
  rn_status_free(status);
}

static void use_session(load_t* load, int number) {
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(on(s, NULL, "x"), RN_FLOAT);
  rn_edge_t a = rn_Neg(on(s, at_ps0, "a"), x);
  rn_edge_t b = rn_Square(on(s, at_ps1, "b"), a);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_session_t* session = connect_with(load->targets[number % kTasks], 150, graph);
  for (int i = 0; i < 8 && !load->is_over; ++i) {
    float y = 0;
    rn_status_t status = step_run(session, x, (float)i, i % 2 ? a : b, NULL, &y);
    if (rn_ok(status)) {
      cr_assert_float_eq(y, i % 2 ? (float)-i : (float)(i * i), 1e-6);
      load->steps++;
    }
    count(load, status);
    rn_device_t** devices = NULL;
    int device_count = 0;
    if (i == 3) count(load, rn_session_devices(session, &devices, &device_count));
  }
  load->sessions++;
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
}

static void* session_user(void* arg) {
  const user_t* user = arg;
  while (!user->load->is_over) use_session(user->load, user->number);
  return NULL;
}

static void reset_once(rn_master_t* master, load_t* load) {
  const rn_env_t* env = rn_env_system();
  rn_waiter_t waiter;
  rn_reset_t call = {.call = rn_waiter_call(&waiter, env->now_ns(env->self) + 200000000, NULL)};
  call.call.waits_for_ready = false;
  master->vtable->reset(master, &call);
  count(load, rn_waiter_wait(&waiter));
}

static void* reset_user(void* arg) {
  const user_t* user = arg;
  const rn_env_t* env = rn_env_system();
  rn_loop_t* loop = NULL;
  rn_channel_t* channel = NULL;
  rn_remote_peer_t* peer = NULL;
  OK(rn_loop_create(env, memory(), &loop));
  rn_channel_options_t options = {
      .loop = loop, .allocator = memory(), .address = user->load->targets[0] + strlen("grpc://")};
  OK(rn_channel_create(&options, &channel));
  OK(rn_remote_peer_create(channel, env, &(rn_remote_near_t){.borrows = true}, memory(), &peer));
  while (!user->load->is_over) {
    reset_once(rn_remote_master(peer), user->load);
    usleep(1000);
  }
  rn_remote_peer_stop(peer);
  rn_channel_destroy(channel);
  rn_remote_peer_destroy(peer);
  rn_loop_destroy(loop);
  return NULL;
}

static rn_status_t read_page(const char* address, const char* path) {
  const rn_env_t* env = rn_env_system();
  int64_t deadline = env->now_ns(env->self) + 500000000;
  rn_socket_t* socket = NULL;
  char request[100], page[4096];
  snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
           path);
  RN_RETURN_IF_ERROR(env->net->connect(env->net_self, address, deadline, memory(), &socket));
  rn_status_t status = rn_net_write_all(socket, rn_str(request), deadline);
  size_t size = 1;
  while (rn_ok(status) && size)
    status = socket->vtable->read(socket, page, sizeof page, deadline, &size);
  socket->vtable->close(socket);
  return status;
}

static void* page_user(void* arg) {
  const user_t* user = arg;
  static const char* const pages[] = {"/statusz", "/metrics", "/statusz?format=json", "/healthz"};
  for (int i = 0; !user->load->is_over; ++i) {
    const char* address = user->load->targets[i % kTasks] + strlen("grpc://");
    count(user->load, read_page(address, pages[i % 4]));
    usleep(500);
  }
  return NULL;
}

static void* stop_again(void* server) {
  rn_status_free(rn_server_stop(server));
  return NULL;
}

// The tasks end in an order and at a time of the round's.
static void end_under_load(int round, int* out_steps) {
  enum { kUsers = 6 };
  cluster_t cluster;
  cluster_open(&cluster);
  load_t load = {.is_over = false};
  for (int i = 0; i < kTasks; ++i)
    snprintf(load.targets[i], sizeof load.targets[i], "%s", rn_server_target(cluster.servers[i]));
  user_t users[kUsers];
  for (int i = 0; i < kUsers; ++i) {
    users[i] = (user_t){.load = &load, .number = i};
    void* (*main)(void*) = i == 0 ? reset_user : i == 1 ? page_user : session_user;
    cr_assert_eq(pthread_create(&users[i].thread, NULL, main, &users[i]), 0);
  }
  if (round % 4)  // else they end while the first sessions are being opened
    for (int ms = 0; ms < 5000 && load.steps < 10; ++ms) usleep(1000);
  usleep((useconds_t)(2000 + round * 7919 % 37 * 1000));
  for (int i = 0; i < kTasks; ++i) {
    rn_server_t* server = cluster.servers[(i + round) % kTasks];
    pthread_t other;
    bool twice = (round + i) % 2;
    if (round % 3 == 0) rn_server_drain(server);
    if (twice) cr_assert_eq(pthread_create(&other, NULL, stop_again, server), 0);
    if (twice) OK(rn_server_stop(server));
    if (twice) pthread_join(other, NULL);
    rn_server_destroy(server);
    if (round % 2) usleep(3000);
  }
  load.is_over = true;
  for (int i = 0; i < kUsers; ++i) pthread_join(users[i].thread, NULL);
  *out_steps += load.steps;
}

Test(server, tasks_end_under_load, .timeout = 240) {
  int steps = 0;
  for (int round = 0; round < 20; ++round) end_under_load(round, &steps);
  cr_assert_gt(steps, 100, "only %d steps: there was no load", steps);
}

// A graph may grow by a node whose name others have as their prefix.
SERVER_TEST(graphs_grow_above_their_names) {
  cluster_t cluster;
  cluster_open(&cluster);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_session_t* session = connect_to(&cluster, graph);
  const char* names[] = {"a/b/c", "a/b", "a"};
  for (int i = 0; i < 3; ++i) {
    const float value = (float)i;
    float got = -1;
    rn_scope_name_next(s, names[i]);
    rn_edge_t x = rn_const(s, RN_FLOAT, NULL, 0, &value);
    cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
    cr_assert_str_eq(x.node->name.data, names[i]);
    OK(step_run(session, (rn_edge_t){0}, 0, x, NULL, &got));
    cr_assert_eq(got, value);
  }
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}

// A master and its workers plan for any shape, whatever the placeholder declares.
SERVER_TEST(feeds_of_other_shapes_run) {
  cluster_t cluster;
  cluster_open(&cluster);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  const int64_t declared = 2;
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT, .shape = {true, &declared, 1});
  // What could be left out if the shape were the declared one.
  rn_edge_t y = rn_Reshape(s, x, rn_const_int32_list(s, (const int32_t[]){-1}, 1));
  y = rn_Sum(s, rn_Mul(s, y, y), rn_const_int32(s, 0), .keep_dims = true);
  y = rn_Add(s, y, rn_Cast(s, rn_Shape(s, x), RN_FLOAT));
  rn_session_t* session = connect_to(&cluster, graph);
  for (int64_t count = 1; count < 5; ++count) {
    rn_tensor_t fed, out = {0};
    OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){1, &count}, &fed));
    for (int i = 0; i < count; ++i) RN_DATA(&fed, float)[i] = 3;
    const rn_tensor_t* feeds[] = {&fed};
    rn_signature_t signature = {.feeds = &x, .feed_count = 1, .fetches = &y, .fetch_count = 1};
    OK(rn_session_run(session, &signature, feeds, &out, NULL));
    cr_assert_eq(out.count, 1);
    cr_assert_eq(*RN_DATA(&out, float), (float)(10 * count));
    rn_tensor_clear(&out);
    rn_tensor_clear(&fed);
  }
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  cluster_close(&cluster);
}
