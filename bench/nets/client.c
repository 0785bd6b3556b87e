// Runs the graph of a network and times it: client GRAPH THREADS SECONDS
//
// A program on the plain C API, built against stock TensorFlow and against Runnel. GRAPH is a
// GraphDef with the nodes "init", "step" and "loss" (gpu_bench --export). Prints, with tabs between
// them: the best and the median step in milliseconds, CPU milliseconds per step, the first step in
// milliseconds (opening the session and making the weights not included), and the peak memory in
// MB. With SECONDS 0 it prints only the loss before the first step.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../bench.h"
#include "../graph_util.h"

enum { MOST = 20000, FEWEST = 3 };

static TF_Buffer* read_graph(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) bench_fail("cannot read %s", path);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char* bytes = malloc(size);
  if (!bytes || fread(bytes, 1, size, file) != size) bench_fail("cannot read %s", path);
  fclose(file);
  TF_Buffer* buffer = TF_NewBufferFromString(bytes, size);
  free(bytes);
  return buffer;
}

static void import(net_t* net, const char* path) {
  TF_Buffer* buffer = read_graph(path);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(net->graph, buffer, options, net->status);
  check_ok(net->status, "importing the graph");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(buffer);
}

static TF_Operation* operation(const net_t* net, const char* name) {
  TF_Operation* found = TF_GraphOperationByName(net->graph, name);
  if (!found) bench_fail("the graph has no node %s", name);
  return found;
}

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void run_once(step_t* step) {
  if (step->fetch_count)
    TF_DeleteTensor(step_run_for_tensor(step));
  else
    step_run(step);
}

static double loss_of(const net_t* net, TF_Session* session) {
  step_t step;
  step_open(&step, session);
  step_fetch(&step, (TF_Output){operation(net, "loss"), 0});
  step_run(&step);
  double loss = step.result;
  step_close(&step);
  return loss;
}

static void time_steps(const net_t* net, TF_Session* session, double seconds) {
  step_t opened, *step = &opened;
  TF_Operation* target = operation(net, "step");
  step_open(step, session);
  if (TF_OperationNumOutputs(target))
    step_fetch(step, (TF_Output){target, 0});
  else
    step->target = target;
  static double times[MOST];
  double start = bench_now();
  run_once(step);
  double first = bench_now() - start;
  for (double warm = bench_now(); bench_now() - warm < seconds / 4;) run_once(step);
  double begin = bench_now(), cpu = cpu_seconds();
  int count = 0;
  while (count < MOST && (count < FEWEST || bench_now() - begin < seconds)) {
    start = bench_now();
    run_once(step);
    times[count++] = bench_now() - start;
  }
  cpu = (cpu_seconds() - cpu) / count;
  qsort(times, (size_t)count, sizeof *times, compare);
  printf("%.5f\t%.5f\t%.5f\t%.3f\t%.1f\n", times[0] * 1e3, times[count / 2] * 1e3, cpu * 1e3,
         first * 1e3, bench_status_megabytes("VmHWM"));
  step_close(step);
}

int main(int argc, char** argv) {
  if (argc != 4) bench_fail("usage: client GRAPH THREADS SECONDS");
  int threads = atoi(argv[2]);
  net_t net;
  net_open(&net);
  import(&net, argv[1]);
  TF_Session* session =
      session_open(&net, (session_config_t){.intra_threads = threads, .inter_threads = threads});
  step_t step;
  step_open(&step, session);
  step.target = operation(&net, "init");
  step_run(&step);
  step_close(&step);
  double seconds = atof(argv[3]);
  if (seconds > 0)
    time_steps(&net, session, seconds);
  else
    printf("%.7g\n", loss_of(&net, session));
  session_close(session);
  net_close(&net);
  return 0;
}
