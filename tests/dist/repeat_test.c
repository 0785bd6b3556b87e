// Connections between two running tasks are cut repeatedly while steps use them: no step may be
// lost, and none may run twice.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/status.h"
#include "client.h"
#include "dist/server.h"
#include "runnel/ops.h"

#define REPEAT_TEST(name) Test(repeat, name, .timeout = 120)

static rn_allocator_t memory(void) { return rn_allocator_system(); }

static int listen_on(int* out_port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert(fd >= 0 && bind(fd, (struct sockaddr*)&address, size) == 0 && listen(fd, 64) == 0);
  cr_assert_eq(getsockname(fd, (struct sockaddr*)&address, &size), 0);
  *out_port = ntohs(address.sin_port);
  return fd;
}

// What is between the two: hands on what comes, and cuts every connection when it is told to.
typedef struct wire_t {
  int listener, port, to_port;
  _Atomic bool cuts, is_over;
  _Atomic int cut;  // connections
  pthread_t thread;
  int ends[32][2];
  int count;
} wire_t;

static void take_in(wire_t* wire) {
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)wire->to_port),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int near = accept(wire->listener, NULL, NULL), far = socket(AF_INET, SOCK_STREAM, 0);
  if (wire->count < 32 && connect(far, (struct sockaddr*)&to, sizeof to) == 0) {
    wire->ends[wire->count][0] = near;
    wire->ends[wire->count++][1] = far;
  } else {
    close(near);
    close(far);
  }
}

// Without a word of good-bye: both ends get a reset.
static void cut(wire_t* wire, int i) {
  struct linger none = {.l_onoff = 1};
  for (int e = 0; e < 2; ++e) {
    setsockopt(wire->ends[i][e], SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(wire->ends[i][e]);
  }
  wire->ends[i][0] = wire->ends[wire->count - 1][0];
  wire->ends[i][1] = wire->ends[--wire->count][1];
}

static bool hand_on(int from, int to) {
  static char bytes[1 << 16];
  ssize_t size = read(from, bytes, sizeof bytes);
  for (ssize_t done = 0, one; done < size; done += one)
    if ((one = write(to, bytes + done, (size_t)(size - done))) < 0) return false;
  return size > 0;
}

static void* wire_main(void* arg) {
  wire_t* wire = arg;
  while (!wire->is_over) {
    struct pollfd polled[65] = {{.fd = wire->listener, .events = POLLIN}};
    for (int i = 0; i < wire->count; ++i)
      for (int e = 0; e < 2; ++e)
        polled[1 + 2 * i + e] = (struct pollfd){.fd = wire->ends[i][e], .events = POLLIN};
    int count = wire->count;
    poll(polled, (nfds_t)(1 + 2 * count), 5);
    for (int i = count - 1; i >= 0; --i) {
      bool works = true;
      for (int e = 0; e < 2 && works; ++e)
        if (polled[1 + 2 * i + e].revents) works = hand_on(wire->ends[i][e], wire->ends[i][!e]);
      if (!works) cut(wire, i);
    }
    if (polled[0].revents) take_in(wire);
    if (!__atomic_exchange_n((bool*)&wire->cuts, false, __ATOMIC_SEQ_CST)) continue;
    wire->cut += wire->count;
    while (wire->count) cut(wire, wire->count - 1);
  }
  while (wire->count) cut(wire, wire->count - 1);
  close(wire->listener);
  return NULL;
}

// A worker that reaches the parameter server over the wire.
typedef struct cluster_t {
  wire_t wire;
  char worker[32], ps[32], ps_by_wire[32];
  rn_server_t* servers[2];
  _Atomic int steps;  // that have ended
} cluster_t;

static rn_server_t* serve(const cluster_t* cluster, const char* ps, const char* job) {
  rn_server_task_t tasks[] = {
      {.job = RN_STR("worker"), .address = rn_str(cluster->worker)},
      {.job = RN_STR("ps"), .address = rn_str(ps)},
  };
  rn_server_options_t options = {.env = rn_env_system(),
                                 .allocator = memory(),
                                 .tasks = tasks,
                                 .task_count = 2,
                                 .job = rn_str(job),
                                 .lends_nothing = true,
                                 .lease_ns = 4000000000};
  rn_server_t* server = NULL;
  OK(rn_server_create(&options, &server));
  OK(rn_server_start(server));
  return server;
}

static void cluster_open(cluster_t* cluster) {
  int ports[2];
  *cluster = (cluster_t){.servers = {NULL}};
  for (int i = 0; i < 2; ++i) close(listen_on(&ports[i]));
  cluster->wire.listener = listen_on(&cluster->wire.port);
  cluster->wire.to_port = ports[1];
  snprintf(cluster->worker, sizeof cluster->worker, "127.0.0.1:%d", ports[0]);
  snprintf(cluster->ps, sizeof cluster->ps, "127.0.0.1:%d", ports[1]);
  snprintf(cluster->ps_by_wire, sizeof cluster->ps_by_wire, "127.0.0.1:%d", cluster->wire.port);
  cr_assert_eq(pthread_create(&cluster->wire.thread, NULL, wire_main, &cluster->wire), 0);
  cluster->servers[0] = serve(cluster, cluster->ps_by_wire, "worker");
  cluster->servers[1] = serve(cluster, cluster->ps, "ps");
}

static void cluster_close(cluster_t* cluster) {
  for (int i = 0; i < 2; ++i) rn_server_destroy(cluster->servers[i]);
  cluster->wire.is_over = true;
  pthread_join(cluster->wire.thread, NULL);
}

// Cuts at any moment of a step, but not one step again and again: on a busy machine 20 ms may be
// too short for what the step repeats.
static void* cutter(void* arg) {
  cluster_t* cluster = arg;
  int cut_at = -1;
  while (!cluster->wire.is_over) {
    usleep(20000);
    if (cluster->steps == cut_at) continue;
    cut_at = cluster->steps;
    cluster->wire.cuts = true;
  }
  return NULL;
}

// A variable of the parameter server that every step adds one to, and tells.
typedef struct model_t {
  rn_graph_t* graph;
  rn_scope_t* scope;
  rn_edge_t added;
  rn_node_t* init;
} model_t;

static void model_open(model_t* model) {
  OK(rn_graph_create(memory(), &model->graph));
  rn_scope_t* s = model->scope = rn_scope_create(model->graph);
  rn_scope_set_device(s, "/job:ps/task:0");
  rn_scope_name_next(s, "v");
  rn_edge_t v = rn_VariableV2(s, NULL, 0, RN_FLOAT);
  model->init = rn_Assign(s, v, rn_const_float(s, 0)).node;
  rn_edge_t sum = rn_AssignAdd(s, v, rn_const_float(s, 1));
  rn_scope_set_device(s, "/job:worker/task:0");
  model->added = rn_Neg(s, rn_Neg(s, sum));
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
}

static void model_close(model_t* model) {
  rn_scope_destroy(model->scope);
  rn_graph_release(model->graph);
}

REPEAT_TEST(no_step_is_lost_or_done_twice) {
  cluster_t cluster;
  model_t model;
  pthread_t cuts;
  cluster_open(&cluster);
  model_open(&model);
  rn_session_t* session = NULL;
  OK(session_open(rn_server_target(cluster.servers[0]), 0, 0, model.graph, &session));
  OK(step_run(session, RN_NO_EDGE, 0, RN_NO_EDGE, model.init, NULL));
  cr_assert_eq(pthread_create(&cuts, NULL, cutter, &cluster), 0);
  int steps = 0;
  for (; steps < 20000 && (steps < 500 || cluster.wire.cut < 20); ++steps) {
    float value = 0;
    OK(step_run(session, RN_NO_EDGE, 0, model.added, NULL, &value));
    cr_assert_float_eq(value, (float)(steps + 1), 1e-6, "step %d gave %g", steps, value);
    cluster.steps++;
  }
  cr_assert_geq(cluster.wire.cut, 20, "%d steps, %d cuts", steps, (int)cluster.wire.cut);
  rn_session_destroy(session);
  cluster_close(&cluster);
  pthread_join(cuts, NULL);
  model_close(&model);
}
