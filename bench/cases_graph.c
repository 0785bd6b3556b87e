// A graph of 20,000 nodes: builds, exports and imports it, and runs its first step.
#include <stddef.h>

#include "bench.h"
#include "graph_util.h"

enum { kNodes = 20000, kAdditions = kNodes / 2 - 1 };

// Small multiples of 1/64: every order of addition gives the same float.
static float addend(int i) { return (float)(i % 7 - 2) / 64; }

static double sum_of_addends(void) {
  double sum = 0;
  for (int i = 0; i < kAdditions; ++i) sum += addend(i);
  return sum;
}

// A placeholder, a chain of AddV2 nodes, each with its own constant, and a final Identity.
static void build(net_t* net, TF_Output* out_x, TF_Output* out_y) {
  TF_Output x = net_placeholder(net, TF_FLOAT, SCALAR), y = x;
  for (int i = 0; i < kAdditions; ++i) {
    y = net_binary(net, "AddV2", y, net_const_float(net, addend(i)));
  }
  *out_x = x;
  *out_y = net_unary(net, "Identity", y);
}

typedef struct {
  net_t net;
  TF_Output x;
  TF_Output y;
} graph_t;

static void graph_open(graph_t* graph) {
  net_open(&graph->net);
  build(&graph->net, &graph->x, &graph->y);
}

static double time_build(void* unused) {
  (void)unused;
  graph_t graph;
  double start = bench_now();
  graph_open(&graph);
  double seconds = bench_now() - start;
  net_close(&graph.net);
  return seconds;
}

static double time_export(void* argument) {
  net_t* net = argument;
  TF_Buffer* buffer = TF_NewBuffer();
  double start = bench_now();
  TF_GraphToGraphDef(net->graph, buffer, net->status);
  double seconds = bench_now() - start;
  check_ok(net->status, "exporting");
  if (buffer->length < (size_t)kNodes * 10) bench_fail("exported only %zu bytes", buffer->length);
  TF_DeleteBuffer(buffer);
  return seconds;
}

static double time_import(void* argument) {
  const TF_Buffer* buffer = argument;
  net_t net;
  net_open(&net);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  double start = bench_now();
  TF_GraphImportGraphDef(net.graph, buffer, options, net.status);
  double seconds = bench_now() - start;
  check_ok(net.status, "importing");
  TF_DeleteImportGraphDefOptions(options);
  size_t position = 0;
  int nodes = 0;
  while (TF_GraphNextOperation(net.graph, &position) != NULL) ++nodes;
  bench_expect("nodes imported", nodes, kNodes, 0);
  net_close(&net);
  return seconds;
}

static double time_first_run(void* argument) {
  graph_t* graph = argument;
  TF_Session* session = session_open(&graph->net, (session_config_t){0});
  step_t step;
  step_open(&step, session);
  step_feed(&step, graph->x, tensor_float(1));
  step_fetch(&step, graph->y);
  double start = bench_now();
  step_run(&step);
  double seconds = bench_now() - start;
  bench_expect("result", step.result, 1 + sum_of_addends(), 0);
  step_close(&step);
  session_close(session);
  return seconds;
}

static double graph_build(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  return kNodes / bench_shortest(options, time_build, NULL);
}

static double graph_export(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  graph_t graph;
  graph_open(&graph);
  double seconds = bench_shortest(options, time_export, &graph.net);
  net_close(&graph.net);
  return kNodes / seconds;
}

static double graph_import(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  graph_t graph;
  graph_open(&graph);
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphToGraphDef(graph.net.graph, buffer, graph.net.status);
  check_ok(graph.net.status, "exporting");
  double seconds = bench_shortest(options, time_import, buffer);
  TF_DeleteBuffer(buffer);
  net_close(&graph.net);
  return kNodes / seconds;
}

static double first_run(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  graph_t graph;
  graph_open(&graph);
  double seconds = bench_shortest(options, time_first_run, &graph);
  net_close(&graph.net);
  return seconds * 1e3;
}

// A network of 5,000 nodes: gradients of its result with respect to the weights of all layers.
enum { kLayers = 1000, kLayerNodes = 5, kWidth = 8 };

static void add_layers(net_t* net, TF_Output* weights, TF_Output* out_loss) {
  TF_Output y = net_placeholder(net, TF_FLOAT, SHAPE(4, kWidth));
  for (int i = 0; i < kLayers; ++i) {
    weights[i] = net_placeholder(net, TF_FLOAT, SHAPE(kWidth, kWidth));
    TF_Output product = net_binary(net, "MatMul", y, weights[i]);
    TF_Output gate = net_unary(net, "Sigmoid", product);
    y = net_binary(net, "AddV2", net_binary(net, "Mul", gate, y), y);
  }
  *out_loss = net_unary(net, "Square", y);
}

static double time_gradients(void* unused) {
  (void)unused;
  static TF_Output weights[kLayers], gradients[kLayers];
  net_t net;
  net_open(&net);
  TF_Output loss;
  add_layers(&net, weights, &loss);
  double start = bench_now();
  TF_AddGradients(net.graph, &loss, 1, weights, kLayers, NULL, net.status, gradients);
  double seconds = bench_now() - start;
  check_ok(net.status, "adding gradients");
  for (int i = 0; i < kLayers; ++i)
    if (gradients[i].oper == NULL) bench_fail("layer %d has no gradient", i);
  net_close(&net);
  return seconds;
}

static double add_gradients(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  return kLayers * kLayerNodes / bench_shortest(options, time_gradients, NULL);
}

const bench_case_t bench_graph_cases[] = {
    {"graph_build", "nodes/s", graph_build, 0, 0},
    {"graph_export", "nodes/s", graph_export, 0, 0},
    {"graph_import", "nodes/s", graph_import, 0, 0},
    {"first_run", "ms", first_run, 0, 0},
    {"add_gradients", "nodes/s", add_gradients, 0, 0},
    {0},
};
