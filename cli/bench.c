// runnel bench: measures the core on this machine, a few cases in a few seconds. The comparison
// with stock TensorFlow is in bench/.
#include <stdio.h>

#include "cli/precision.h"
#include "cli/progress.h"
#include "runnel/graph.h"
#include "runnel/ops.h"
#include "session/session.h"

#define SCALARS 2000
#define VECTORS 1000
#define TURNS 10000
#define ELEMENTS (4 << 20)
#define ELEMENTWISE 12

// A case builds its graph and sets what is fed (at most one value), what is fetched, and the work
// of one step.
typedef struct bench_t {
  rn_scope_t* scope;
  int size;
  rn_edge_t feed, fetch;
  rn_tensor_t value;  // Owned; unset if nothing is fed
  double work;        // of one step, in |unit|
  const char* unit;
} bench_t;

static rn_status_t feed_floats(bench_t* b, int rank, const int64_t* dims, float value) {
  b->feed = rn_Placeholder(b->scope, RN_FLOAT, .shape = RN_SET_SHAPE(dims, rank));
  RN_RETURN_IF_ERROR(
      rn_tensor_create(rn_allocator_default(), RN_FLOAT, (rn_shape_t){rank, dims}, &b->value));
  for (int64_t i = 0; i < b->value.count; ++i)
    RN_DATA(&b->value, float)[i] = value + (float)(i % 7) / 8;
  return RN_OK;
}

static rn_status_t null_step(bench_t* b) {
  RN_RETURN_IF_ERROR(feed_floats(b, 0, NULL, 1));
  b->fetch = rn_Identity(b->scope, b->feed);
  b->work = 1e-3;
  b->unit = "k steps/s";
  return RN_OK;
}

static rn_status_t scalar_chain(bench_t* b) {
  RN_RETURN_IF_ERROR(feed_floats(b, 0, NULL, 1));
  rn_edge_t half = rn_const_float(b->scope, 0.5f), one = rn_const_float(b->scope, 1);
  b->fetch = b->feed;
  for (int i = 0; i < SCALARS / 2; ++i)
    b->fetch = rn_Sub(b->scope, one, rn_Mul(b->scope, b->fetch, half));
  b->work = SCALARS * 1e-6;
  b->unit = "M ops/s";
  return RN_OK;
}

static rn_status_t vector_chain(bench_t* b) {
  int64_t dims[1] = {256};
  RN_RETURN_IF_ERROR(feed_floats(b, 1, dims, 1));
  rn_edge_t half = rn_const_float(b->scope, 0.5f), one = rn_const_float(b->scope, 1);
  b->fetch = b->feed;
  for (int i = 0; i < VECTORS / 2; ++i)
    b->fetch = rn_Sub(b->scope, one, rn_Mul(b->scope, b->fetch, half));
  b->work = VECTORS * 1e-6;
  b->unit = "M ops/s";
  return RN_OK;
}

// while (i < TURNS) i += 1, from the five ops that loops are made of.
static rn_status_t while_loop(bench_t* b) {
  rn_scope_t* s = b->scope;
  rn_edge_t start = rn_Enter(s, rn_const_int32(s, 0), "loop");
  rn_edge_t end = rn_Enter(s, rn_const_int32(s, TURNS), "loop", .is_constant = true);
  rn_edge_t one = rn_Enter(s, rn_const_int32(s, 1), "loop", .is_constant = true);
  rn_edge_t both[2] = {start, start};
  rn_edge_t i = rn_Merge(s, both, 2).output;
  rn_edge_t goes_on = rn_LoopCond(s, rn_Less(s, i, end));
  rn_Switch_out_t way = rn_Switch(s, i, goes_on);
  rn_edge_t next = rn_NextIteration(s, rn_AddV2(s, way.output_true, one));
  b->fetch = rn_Exit(s, way.output_false);
  b->work = TURNS * 1e-6;
  b->unit = "M iterations/s";
  if (!rn_scope_ok(s)) return RN_OK;  // the caller reports it
  return rn_graph_update_edge(rn_scope_graph(s), next, i.node, 1);
}

static rn_status_t elementwise(bench_t* b) {
  int64_t dims[1] = {ELEMENTS};
  RN_RETURN_IF_ERROR(feed_floats(b, 1, dims, -0.5f));
  rn_edge_t factor = rn_const_float(b->scope, 1.01f), shift = rn_const_float(b->scope, -0.1f);
  b->fetch = b->feed;
  for (int i = 0; i < ELEMENTWISE / 4; ++i) {
    b->fetch = rn_AddV2(b->scope, rn_Mul(b->scope, b->fetch, factor), shift);
    b->fetch = rn_Tanh(b->scope, rn_Relu(b->scope, b->fetch));
  }
  b->work = (double)ELEMENTS * ELEMENTWISE * 1e-9;
  b->unit = "G element ops/s";
  return RN_OK;
}

static rn_status_t matmul(bench_t* b) {
  int64_t n = b->size, dims[2] = {n, n};
  RN_RETURN_IF_ERROR(feed_floats(b, 2, dims, 0));
  b->fetch = rn_MatMul(b->scope, b->feed, b->feed);
  b->work = 2e-9 * (double)n * (double)n * (double)n;
  b->unit = "GFLOP/s";
  return RN_OK;
}

static const struct {
  const char* name;
  rn_status_t (*build)(bench_t* b);
  int size;
} cases[] = {
    {"null step", null_step, 0},
    {"scalar chain, 2,000 nodes", scalar_chain, 0},
    {"vector chain, 1,000 nodes, 256 floats", vector_chain, 0},
    {"while loop, 10,000 iterations", while_loop, 0},
    {"elementwise, 12 ops, 4 Mi floats", elementwise, 0},
    {"matmul 64", matmul, 64},
    {"matmul 256", matmul, 256},
    {"matmul 1024", matmul, 1024},
};

static rn_status_t step(rn_session_t* session, const bench_t* b) {
  rn_tensor_t result;
  const rn_tensor_t* values[1] = {&b->value};
  rn_signature_t signature = {.feeds = &b->feed,
                              .feed_count = rn_tensor_is_set(&b->value) ? 1 : 0,
                              .fetches = &b->fetch,
                              .fetch_count = 1};
  RN_RETURN_IF_ERROR(rn_session_run(session, &signature, values, &result, NULL));
  rn_tensor_clear(&result);
  return RN_OK;
}

// Runs steps in rounds of growing length until |seconds| are over. The best round counts, because
// other load on the machine only makes rounds longer.
static rn_status_t measure(const rn_cli_t* cli, rn_session_t* session, const bench_t* b,
                           double seconds, double* out_step) {
  const rn_env_t* env = cli->env;
  int64_t start = env->now_ns(env->self), now = start, count = 1;
  rn_cli_progress_t progress = rn_cli_progress(cli, "ms", (int64_t)(seconds * 1e3));
  RN_RETURN_IF_ERROR(step(session, b));
  *out_step = 0;
  while (*out_step == 0 || (double)(now - start) < seconds * 1e9) {
    int64_t begin = env->now_ns(env->self);
    for (int64_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(step(session, b));
    now = env->now_ns(env->self);
    double one = (double)(now - begin) / 1e9 / (double)count;
    if (*out_step == 0 || one < *out_step) *out_step = one;
    if ((double)(now - begin) < seconds * 5e7) count *= 2;
    rn_cli_progress_set(&progress, (now - start) / 1000000);
  }
  rn_cli_progress_end(&progress);
  return RN_OK;
}

// What all cases have in common.
typedef struct bench_options_t {
  int64_t threads;
  double seconds;
  bool uses_gpu;
  rn_precision_t precision;
} bench_options_t;

static rn_status_t run_built(const rn_cli_t* cli, rn_graph_t* graph, const bench_t* b,
                             const bench_options_t* how, const char* name) {
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = (int)how->threads;
  options.gpu.max_count = how->uses_gpu ? 1 : 0;
  options.precision = how->precision;
  rn_session_t* session = NULL;
  double one;
  RN_RETURN_IF_ERROR(rn_session_create(graph, &options, cli->env, cli->allocator, &session));
  rn_status_t status = RN_OK;
  if (how->uses_gpu && rn_session_device_count(session) < 2)
    status = rn_not_found("There is no GPU to use; 'runnel devices' says why");
  if (rn_ok(status)) status = measure(cli, session, b, how->seconds, &one);
  if (rn_ok(status)) {
    printf("%-38s %12.1f %14.2f  %10.1f %s\n", name, 1 / one, one * 1e6, b->work / one, b->unit);
    fflush(stdout);
  }
  rn_session_destroy(session);
  return status;
}

static rn_status_t run_case(const rn_cli_t* cli, size_t i, const bench_options_t* how) {
  rn_graph_t* graph = NULL;
  RN_RETURN_IF_ERROR(rn_graph_create(cli->allocator, &graph));
  bench_t b = {.scope = rn_scope_create(graph), .size = cases[i].size};
  rn_status_t status = b.scope ? cases[i].build(&b) : rn_out_of_memory();
  if (rn_ok(status) && !rn_scope_ok(b.scope))
    status = rn_status_make((rn_code_t)rn_scope_code(b.scope), "%s", rn_scope_message(b.scope));
  if (rn_ok(status)) status = run_built(cli, graph, &b, how, cases[i].name);
  rn_tensor_clear(&b.value);
  rn_scope_destroy(b.scope);
  rn_graph_release(graph);
  return rn_cli_prefix(status, "bench: %s: ", cases[i].name);
}

static rn_status_t run_wanted(const rn_cli_t* cli, const char* wanted, const bench_options_t* how,
                              int* inout_count) {
  int count = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (wanted && strncmp(cases[i].name, wanted, strlen(wanted)) != 0) continue;
    if ((*inout_count)++ == 0)
      printf("%-38s %12s %14s  %10s\n", "case", "steps/s", "us per step", "that is");
    RN_RETURN_IF_ERROR(run_case(cli, i, how));
    ++count;
  }
  return count ? RN_OK : rn_not_found("bench: no case begins with '%s'", wanted);
}

static rn_status_t bench(rn_cli_t* cli) {
  const char *text = rn_cli_text(cli, "--seconds"), *device = rn_cli_text(cli, "--device");
  bench_options_t how = {.threads = rn_cli_number(cli, "--threads", 0),
                         .seconds = 1,
                         .uses_gpu = device && strcmp(device, "gpu") == 0};
  int count = 0;
  RN_RETURN_IF_ERROR(rn_cli_precision(cli, &how.precision));
  if (text && (!rn_str_to_f64(rn_str(text), &how.seconds) || !(how.seconds > 0)))
    return rn_cli_usage(cli, "--seconds needs a number above 0, not '%s'", text);
  if (!cli->words.count) return run_wanted(cli, NULL, &how, &count);
  for (size_t i = 0; i < cli->words.count; ++i)
    RN_RETURN_IF_ERROR(run_wanted(cli, cli->words.items[i], &how, &count));
  return RN_OK;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(NUMBER, "--threads", "N", "use N threads (default: one per processor)", .least = 1,
              .most = 1024),
    RN_OPTION(CHOICE, "--device", "cpu|gpu", "run on the CPU (default) or on the first GPU",
              .choices = "cpu gpu"),
    RN_CLI_PRECISION_OPTION,
    RN_OPTION(TEXT, "--seconds", "S", "spend S seconds on each case (default 1)"),
    {0},
};

const rn_cli_command_t rn_cli_bench_command = {
    .name = "bench",
    .summary = "measure the core of this library on this machine",
    .about =
        "Times the core of this library on this machine and prints a table: case, steps per "
        "second, time per step, and the resulting rate. A CASE is a name in the table, or its "
        "beginning.",
    .words = "[CASE ...]",
    .run = bench,
    .options = options,
    .examples =
        "runnel bench                  # everything\n"
        "runnel bench matmul           # only matrix products\n"
        "runnel bench null --threads 1\n"
        "runnel bench matmul --device gpu",
};
