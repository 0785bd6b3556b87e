// Models exported by Keras (tests/saved_model/make_models.py): loads them and runs inference.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "graph_util.h"

enum { kLenet, kMobilenet, kResnet50 };

static const struct {
  const char* name;
  int64_t size, channels;
} kModels[] = {{"lenet", 28, 1}, {"mobilenet", 224, 3}, {"resnet50", 224, 3}};

typedef struct {
  int model, batch;
  TF_Graph* graph;
  TF_Status* status;
  TF_Session* session;
  step_t step;
} served_t;

static const char* folder_of(int model) {
  static char path[4096];
  const char* folder = getenv("BENCH_MODELS");
  if (folder == NULL) bench_fail("BENCH_MODELS names no folder with models");
  snprintf(path, sizeof path, "%s/saved/%s", folder, kModels[model].name);
  return path;
}

// "name:0" on line |line| of ports.txt, as an edge of the graph.
static TF_Output port(const served_t* served, int line) {
  char path[4200], name[512] = "";
  snprintf(path, sizeof path, "%s/ports.txt", folder_of(served->model));
  FILE* file = fopen(path, "r");
  if (file == NULL) bench_fail("cannot read %s", path);
  for (int i = 0; i <= line; ++i)
    if (fgets(name, sizeof name, file) == NULL) bench_fail("%s is too short", path);
  fclose(file);
  name[strcspn(name, ":\n")] = 0;
  TF_Output output = {TF_GraphOperationByName(served->graph, name), 0};
  if (output.oper == NULL) bench_fail("the graph has no node %s", name);
  return output;
}

static void served_open(served_t* served) {
  const char* tags[] = {"serve"};
  TF_SessionOptions* options = TF_NewSessionOptions();
  served->graph = TF_NewGraph();
  served->status = TF_NewStatus();
  served->session = TF_LoadSessionFromSavedModel(options, NULL, folder_of(served->model), tags, 1,
                                                 served->graph, NULL, served->status);
  check_ok(served->status, "loading the model");
  TF_DeleteSessionOptions(options);
  int64_t size = kModels[served->model].size;
  step_open(&served->step, served->session);
  served->step.feeds[0] = port(served, 0);
  served->step.feed_values[0] =
      tensor_random(SHAPE(served->batch, size, size, kModels[served->model].channels), -1, 1, 7);
  served->step.feed_count = 1;
  served->step.fetches[0] = port(served, 1);
  served->step.fetch_count = 1;
}

static void served_close(served_t* served) {
  step_close(&served->step);
  session_close(served->session);
  TF_DeleteGraph(served->graph);
  TF_DeleteStatus(served->status);
}

// Images per second; |a| is the model, |b| the batch size.
static double forward(const bench_options_t* options, int a, int b) {
  served_t served = {.model = a, .batch = b};
  served_open(&served);
  step_run(&served.step);
  double first = served.step.result;
  double rate = bench_rate(options, step_run, &served.step) * b;
  bench_expect("the same image twice", served.step.result, first, 1e-6);
  served_close(&served);
  return rate;
}

// Seconds to load the model and to run it once.
static double load_once(void* context) {
  served_t served = {.model = *(int*)context, .batch = 1};
  double start = bench_now();
  served_open(&served);
  step_run(&served.step);
  double seconds = bench_now() - start;
  served_close(&served);
  return seconds;
}

static double load(const bench_options_t* options, int a, int b) {
  (void)b;
  return bench_shortest(options, load_once, &a);
}

const bench_case_t bench_saved_model_cases[] = {
    {"lenet_serve_b1", "images/s", forward, kLenet, 1},
    {"mobilenet_b1", "images/s", forward, kMobilenet, 1},
    {"resnet50_b1", "images/s", forward, kResnet50, 1},
    {"resnet50_b16", "images/s", forward, kResnet50, 16},
    {"resnet50_load", "s", load, kResnet50, 0},
    {NULL, NULL, NULL, 0, 0},
};
