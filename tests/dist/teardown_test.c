// A task's state may be freed in any order: kernels that a session keeps, iterators among the
// task's resources, and the functions that both call may outlive the graph that they came from.
// Each program runs as several kinds of step, in sessions that share the task's state, one after
// the other and concurrently, closed by the client or ended by the server. Run under the address
// sanitizer.
#include <criterion/criterion.h>
#include <stdio.h>

#include "../support/status.h"
#include "base/net.h"
#include "client.h"
#include "dist/server.h"
#include "function/function.h"
#include "runnel/function.h"
#include "runnel/ops.h"

static rn_allocator_t memory(void) { return rn_allocator_system(); }
static const int floats[] = {RN_FLOAT};
static const int numbers[] = {RN_INT64};
static const int64_t* const scalar[] = {NULL};
static const int scalar_rank[] = {0};

// A graph, a node to run first, and a number to fetch.
typedef struct program_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_edge_t feed, fetch;
  rn_node_t* first;
} program_t;

typedef enum body_t { TWICE, HALF, IS_SMALL, PLUS_ONE, ADD, MAKE_DATASET } body_t;

static rn_edge_t dataset_of(rn_scope_t* s) {
  rn_edge_t range =
      rn_RangeDataset(s, rn_const_scalar(s, RN_INT64, 0), rn_const_scalar(s, RN_INT64, 9),
                      rn_const_scalar(s, RN_INT64, 1), numbers, 1, scalar, scalar_rank, 1);
  return rn_MapDataset(s, range, NULL, 0, "plus_one", numbers, 1, scalar, scalar_rank, 1);
}

static void add_function(rn_graph_t* library, const char* name, body_t body) {
  static const struct {
    int count;
    int type;
  } args[] = {{1, RN_FLOAT}, {1, RN_FLOAT}, {1, RN_FLOAT}, {1, RN_INT64}, {2, RN_INT64}, {0, 0}};
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x[2] = {{0}}, result = {0};
  for (int i = 0; i < args[body].count; ++i) x[i] = rn_Placeholder(s, args[body].type);
  if (body == TWICE) result = rn_Mul(s, x[0], rn_const_float(s, 2));
  if (body == HALF) result = rn_Mul(s, x[0], rn_const_float(s, 0.5f));
  if (body == IS_SMALL) result = rn_Less(s, x[0], rn_const_float(s, 100));
  if (body == PLUS_ONE) result = rn_AddV2(s, x[0], rn_const_scalar(s, RN_INT64, 1));
  if (body == ADD) result = rn_AddV2(s, x[0], x[1]);
  if (body == MAKE_DATASET) result = dataset_of(s);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_function_spec_t spec = {.graph = graph,
                             .name = rn_str(name),
                             .node_count = -1,
                             .inputs = x,
                             .input_count = args[body].count,
                             .outputs = &result,
                             .output_count = 1};
  rn_function_t* function = NULL;
  OK(rn_function_create(&spec, &function));
  OK(rn_graph_add_function(library, function, NULL));
  rn_function_release(function);
  rn_scope_destroy(s);
  rn_graph_release(graph);
}

typedef enum kind_t { IF, CASE, WHILE, CALL, AS_OP, ONE_SHOT, ITERATOR, REDUCE } kind_t;

static rn_edge_t build(rn_scope_t* s, kind_t kind, rn_edge_t x, rn_node_t** out_first) {
  rn_edge_t iterator;
  switch (kind) {
    case IF:
      return rn_edge_at(
          rn_If(s, rn_Less(s, x, rn_const_float(s, 0)), &x, 1, floats, 1, "half", "twice"), 0);
    case CASE: {
      const char* branches[] = {"half", "twice"};
      return rn_edge_at(rn_Case(s, rn_Cast(s, x, RN_INT32), &x, 1, floats, 1, branches, 2), 0);
    }
    case WHILE:
      return rn_edge_at(rn_While(s, &x, 1, "is_small", "twice"), 0);
    case CALL:
      return rn_edge_at(rn_StatefulPartitionedCall(s, &x, 1, floats, 1, "twice"), 0);
    case AS_OP:  // a node whose op is the function
      rn_op_begin(s, "twice");
      rn_op_input(s, x);
      return (rn_edge_t){rn_op_finish(s), 0};
    case ONE_SHOT:
      iterator = rn_OneShotIterator(s, "make_dataset", numbers, 1, scalar, scalar_rank, 1);
      break;
    case ITERATOR:  // of a name that all sessions share
      iterator = rn_IteratorV2(s, "shared", "", numbers, 1, scalar, scalar_rank, 1);
      *out_first = rn_MakeIterator(s, dataset_of(s), iterator);
      break;
    default: {
      rn_edge_t zero = rn_const_scalar(s, RN_INT64, 0);
      rn_edges_t sum = rn_ReduceDataset(s, dataset_of(s), &zero, 1, NULL, 0, "add", numbers, 1,
                                        scalar, scalar_rank, 1);
      return rn_Cast(s, rn_edge_at(sum, 0), RN_FLOAT);
    }
  }
  rn_edges_t next = rn_IteratorGetNext(s, iterator, numbers, 1, scalar, scalar_rank, 1);
  return rn_Cast(s, rn_edge_at(next, 0), RN_FLOAT);
}

static program_t program_begin(kind_t kind) {
  program_t p = {0};
  OK(rn_graph_create(memory(), &p.graph));
  add_function(p.graph, "twice", TWICE);
  add_function(p.graph, "half", HALF);
  add_function(p.graph, "is_small", IS_SMALL);
  add_function(p.graph, "plus_one", PLUS_ONE);
  add_function(p.graph, "add", ADD);
  add_function(p.graph, "make_dataset", MAKE_DATASET);
  p.s = rn_scope_create(p.graph);
  p.feed = rn_Placeholder(p.s, RN_FLOAT);
  p.fetch = build(p.s, kind, p.feed, &p.first);
  cr_assert(rn_scope_ok(p.s), "%d: %s", kind, rn_scope_message(p.s));
  return p;
}

static void program_end(program_t* p) {
  rn_scope_destroy(p->s);
  rn_graph_release(p->graph);
}

static rn_server_t* server_begin(char address[64]) {
  const rn_env_t* env = rn_env_system();
  rn_socket_t* socket = NULL;
  rn_strbuf_t found;
  rn_strbuf_init(&found, memory());
  OK(env->net->listen(env->net_self, "127.0.0.1:0", memory(), &socket));
  OK(socket->vtable->address(socket, &found));
  snprintf(address, 64, "%s", found.data);
  rn_strbuf_clear(&found);
  socket->vtable->close(socket);
  rn_server_task_t task = {.job = RN_STR("worker"), .address = rn_str(address)};
  rn_server_options_t options = {.env = env,
                                 .allocator = memory(),
                                 .tasks = &task,
                                 .task_count = 1,
                                 .job = task.job,
                                 .lease_ns = 1000000000};
  rn_server_t* server = NULL;
  OK(rn_server_create(&options, &server));
  OK(rn_server_start(server));
  return server;
}

static rn_session_t* open_session(rn_server_t* server, program_t* p) {
  rn_session_t* session = NULL;
  OK(session_open(rn_server_target(server), 0, 1000000000, p->graph, &session));
  return session;
}

// Two kinds of step with the same node in both, the second of a graph that has grown meanwhile.
static void run_kinds(rn_session_t* session, program_t* p) {
  static const float wanted[] = {2, 2, 128, 2, 1, 1, 45};
  float value = 0, more = 0;
  if (p->first) OK(step_run(session, (rn_edge_t){0}, 0, (rn_edge_t){0}, p->first, NULL));
  OK(step_run(session, p->feed, 1, p->fetch, NULL, &value));
  rn_edge_t grown = rn_Neg(p->s, p->fetch);
  OK(step_run(session, p->feed, 1, grown, NULL, &more));
  bool is_wanted = false;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) is_wanted |= value == wanted[i];
  cr_assert(is_wanted, "%g", (double)value);
  cr_assert(more == -value || more == -value - 1, "%g, %g", (double)value, (double)more);
}

static void in_turn(kind_t kind) {
  char address[64];
  rn_server_t* server = server_begin(address);
  for (int turn = 0; turn < 2; ++turn) {
    program_t p = program_begin(kind);
    rn_session_t* session = open_session(server, &p);
    run_kinds(session, &p);
    rn_session_destroy(session);
    program_end(&p);
  }
  rn_server_destroy(server);
}

// The server goes first, with two sessions open that have both used what they share.
static void server_first(kind_t kind) {
  char address[64];
  rn_server_t* server = server_begin(address);
  program_t p = program_begin(kind), q = program_begin(kind);
  rn_session_t *one = open_session(server, &p), *two = open_session(server, &q);
  run_kinds(one, &p);
  run_kinds(two, &q);
  rn_server_destroy(server);
  rn_session_destroy(one);
  rn_session_destroy(two);
  program_end(&p);
  program_end(&q);
}

// What another session made goes on when that is closed.
static void made_by_another(void) {
  char address[64];
  float value = 0;
  rn_server_t* server = server_begin(address);
  program_t p = program_begin(ITERATOR), q = program_begin(ITERATOR);
  rn_session_t *one = open_session(server, &p), *two = open_session(server, &q);
  OK(step_run(one, (rn_edge_t){0}, 0, (rn_edge_t){0}, p.first, NULL));
  rn_session_destroy(one);
  program_end(&p);
  for (int i = 1; i <= 3; ++i) {
    OK(step_run(two, q.feed, 1, q.fetch, NULL, &value));
    cr_assert_eq(value, (float)i);
  }
  rn_session_destroy(two);
  program_end(&q);
  rn_server_destroy(server);
}

// Here the session owns everything, and what it gave out is let go of after it.
static void locally(kind_t kind) {
  program_t p = program_begin(kind);
  rn_session_options_t options;
  rn_session_options_init(&options);
  rn_session_t* session = NULL;
  OK(rn_session_create(p.graph, &options, rn_env_system(), memory(), &session));
  run_kinds(session, &p);
  rn_tensor_t kept = {0};
  rn_edge_t dataset = dataset_of(p.s);
  rn_signature_t signature = {.fetches = &dataset, .fetch_count = 1};
  OK(rn_session_run(session, &signature, NULL, &kept, NULL));
  program_end(&p);
  rn_session_destroy(session);
  rn_tensor_clear(&kept);
}

#define TEARDOWN_TEST(name) Test(teardown, name, .timeout = 120)
#define X(name, kind)                                                      \
  TEARDOWN_TEST(name##_sessions_in_turn) { in_turn(kind); }                \
  TEARDOWN_TEST(name##_server_before_its_sessions) { server_first(kind); } \
  TEARDOWN_TEST(name##_in_a_session_of_this_process) { locally(kind); }
X(if, IF)
X(case, CASE)
X(while, WHILE)
X(call, CALL)
X(function_as_op, AS_OP)
X(one_shot, ONE_SHOT)
X(iterator, ITERATOR)
X(reduce, REDUCE)
#undef X

TEARDOWN_TEST(an_iterator_outlives_the_session_that_made_it) { made_by_another(); }
