// Training steps of graphs that stock TensorFlow wrote (models.py), the same nodes for both
// libraries.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "graph_util.h"

typedef struct {
  net_t net;
  TF_Session* session;
  step_t step;
} model_t;

static TF_Buffer* read_model(const char* name) {
  const char* folder = getenv("BENCH_MODELS");
  char path[4096];
  if (folder == NULL) bench_fail("BENCH_MODELS names no folder with the graphs of models.py");
  snprintf(path, sizeof path, "%s/%s.pb", folder, name);
  FILE* file = fopen(path, "rb");
  if (file == NULL) bench_fail("cannot read %s", path);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char* bytes = malloc((size_t)size);
  if (bytes == NULL || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
    bench_fail("cannot read %s", path);
  }
  fclose(file);
  TF_Buffer* buffer = TF_NewBufferFromString(bytes, (size_t)size);
  free(bytes);
  return buffer;
}

static TF_Operation* operation(const model_t* model, const char* name) {
  TF_Operation* found = TF_GraphOperationByName(model->net.graph, name);
  if (found == NULL) bench_fail("the graph has no node %s", name);
  return found;
}

static void model_open(model_t* model, const char* name) {
  net_open(&model->net);
  TF_Buffer* buffer = read_model(name);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(model->net.graph, buffer, options, model->net.status);
  check_ok(model->net.status, "importing the model");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(buffer);
  model->session = session_open(&model->net, (session_config_t){0});
  step_open(&model->step, model->session);
  model->step.target = operation(model, "init");
  step_run(&model->step);
  model->step.target = operation(model, "step");
}

static void model_close(model_t* model) {
  step_close(&model->step);
  session_close(model->session);
  net_close(&model->net);
}

// Checks that both libraries do the same computation: the loss after training must be a number and
// not larger than before.
static double loss_of(model_t* model) {
  step_t step;
  step_open(&step, model->session);
  step_fetch(&step, (TF_Output){operation(model, "loss"), 0});
  step_run(&step);
  double loss = step.result;
  step_close(&step);
  return loss;
}

enum {
  kRnn,
  kSmallRnn,
  kLoop,
  kFull,
  kSampled,
  kFullLayer,
  kSampledLayer,
  kSgd,
  kAdagrad,
  kAdam,
  kFunction
};
static const char* const names[] = {
    [kRnn] = "rnn_b32_h256",
    [kSmallRnn] = "rnn_b1_h32",
    [kLoop] = "lstm_loop_h512",
    [kFull] = "lm_full",
    [kSampled] = "lm_sampled",
    [kFullLayer] = "softmax_full",
    [kSampledLayer] = "softmax_sampled",
    [kSgd] = "embedding_sgd",
    [kAdagrad] = "embedding_adagrad",
    [kAdam] = "adam",
    [kFunction] = "function100",
};

// Steps per second times |items|.
static double train(const bench_options_t* options, int number, int items) {
  model_t model;
  model_open(&model, names[number]);
  double before = loss_of(&model);
  double rate = bench_rate(options, step_run, &model.step);
  double after = loss_of(&model);
  if (!(after <= before + 0.05 * (before < 0 ? -before : before))) {
    bench_fail("the loss went from %g to %g", before, after);
  }
  model_close(&model);
  return rate * items;
}

// The speed-up of the sampled softmax layer over the full one.
static double softmax_gain(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  return train(options, kSampledLayer, 1) / train(options, kFullLayer, 1);
}

// An update of 50 million parameters: four numbers read and three written per parameter.
// |relative|: as a fraction of the memory bandwidth of two threads in the same process.
static double adam(const bench_options_t* options, int relative, int unused) {
  (void)unused;
  double rate = train(options, kAdam, 1) * 7 * sizeof(float) * 50e6 * 1e-9;
  return relative ? rate / bench_memory_rate(options) : rate;
}

// The peak memory of the process in MB, minus its memory before the model was opened.
static double peak(const bench_options_t* options, int number, int unused) {
  (void)options, (void)unused;
  double before = bench_status_megabytes("VmHWM");
  model_t model;
  model_open(&model, names[number]);
  for (int i = 0; i < 5; ++i) step_run(&model.step);
  model_close(&model);
  return bench_status_megabytes("VmHWM") - before;
}

const bench_case_t bench_model_cases[] = {
    {"rnn_b32_h256", "steps/s", train, kRnn, 1},
    {"rnn_b1_h32", "steps/s", train, kSmallRnn, 1},
    {"lstm_loop_h512", "words/s", train, kLoop, 100},
    {"rnn_peak", "MB", peak, kRnn, 0},
    {"lm_full", "words/s", train, kFull, 640},
    {"lm_sampled", "words/s", train, kSampled, 640},
    {"softmax_gain", "x", softmax_gain, 0, 0},
    {"embedding_sgd", "rows/s", train, kSgd, 4096},
    {"embedding_adagrad", "rows/s", train, kAdagrad, 4096},
    {"adam", "GB/s", adam, false, 0},
    {"adam_of_memory", "x", adam, true, 0},
    {"function100", "calls/s", train, kFunction, 1},
    {0},
};
