// Times calls of single ops, one row after the other: client THREADS
//
// A program on the eager C API, built against stock TensorFlow and against Runnel. It reads lines:
//   call<TAB>OP<TAB>INPUTS<TAB>ATTRIBUTES   makes the inputs, calls once, prints the mean of the
//                                           absolute values of the first result (0: no numbers)
//   time<TAB>SECONDS                        calls for this long; prints the best wall time and the
//                                           best CPU time per call, in microseconds
// A row that fails ends the process.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../bench.h"
#include "../graph_util.h"
#include "client.h"

// A row: the op, ready to be called again and again.
typedef struct {
  TFE_Context* context;
  TF_Status* status;
  char op[64], attributes[512];
  inputs_t inputs;
} row_t;

static TFE_Context* open_context(int threads, TF_Status* status) {
  uint8_t config[] = {0x10, (uint8_t)threads, 0x28, 1};  // intra-op threads, one inter-op thread
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_ContextOptionsSetConfig(options, config, sizeof config, status);
  check_ok(status, "the number of threads");
  TFE_Context* context = TFE_NewContext(options, status);
  check_ok(status, "a context");
  TFE_DeleteContextOptions(options);
  return context;
}

static int call(row_t* row, TFE_TensorHandle** results) {
  TFE_Op* op = TFE_NewOp(row->context, row->op, row->status);
  check_ok(row->status, row->op);
  attributes_add(op, row->attributes, row->status);
  inputs_add(&row->inputs, op, row->status);
  int count = kMostOutputs;
  TFE_Execute(op, results, &count, row->status);
  check_ok(row->status, row->op);
  TFE_DeleteOp(op);
  return count;
}

static void call_and_drop(row_t* row) {
  TFE_TensorHandle* results[kMostOutputs];
  int count = call(row, results);
  for (int i = 0; i < count; ++i) TFE_DeleteTensorHandle(results[i]);
}

static double number_at(const TF_Tensor* tensor, int64_t i) {
  const void* data = TF_TensorData(tensor);
  switch (TF_TensorType(tensor)) {
    // clang-format off
    case TF_FLOAT: return ((const float*)data)[i];
    case TF_DOUBLE: return ((const double*)data)[i];
    case TF_INT32: return ((const int32_t*)data)[i];
    case TF_INT64: return (double)((const int64_t*)data)[i];
    case TF_UINT8: case TF_BOOL: return ((const uint8_t*)data)[i];
    case TF_COMPLEX64: return ((const float*)data)[2 * i];
    // clang-format on
    default:
      return 0;
  }
}

static void first_call(row_t* row) {
  TFE_TensorHandle* results[kMostOutputs];
  int count = call(row, results);
  double sum = 0;
  int64_t size = 0;
  if (count > 0) {
    TF_Tensor* tensor = TFE_TensorHandleResolve(results[0], row->status);
    if (TF_GetCode(row->status) == TF_OK) {
      size = TF_TensorElementCount(tensor);
      for (int64_t i = 0; i < size; ++i) {
        double x = number_at(tensor, i);
        if (isfinite(x)) sum += fabs(x);
      }
      TF_DeleteTensor(tensor);
    }
  }
  for (int i = 0; i < count; ++i) TFE_DeleteTensorHandle(results[i]);
  printf("%.9g\n", size > 0 ? sum / (double)size : 0);
}

static double cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Batches of calls, of about five milliseconds; the best batch counts.
static void time_calls(row_t* row, double seconds) {
  double begin = bench_now(), wall = HUGE_VAL, cpu = HUGE_VAL;
  int calls = 1;
  do {
    double wall_start = bench_now(), cpu_start = cpu_now();
    for (int i = 0; i < calls; ++i) call_and_drop(row);
    double cpu_spent = cpu_now() - cpu_start, spent = bench_now() - wall_start;
    wall = fmin(wall, spent / calls);
    cpu = fmin(cpu, cpu_spent / calls);
    if (spent < 0.005) calls *= 2;
  } while (bench_now() - begin < seconds);
  printf("%.4f\t%.4f\n", wall * 1e6, cpu * 1e6);
}

static void begin_row(row_t* row, char* line) {
  inputs_close(&row->inputs);
  char* op = strsep(&line, "\t");
  char* inputs = strsep(&line, "\t");
  if (!inputs || !line) bench_fail("a row has an op, inputs and attributes");
  snprintf(row->op, sizeof row->op, "%s", op);
  snprintf(row->attributes, sizeof row->attributes, "%s", line);
  inputs_read(&row->inputs, row->context, inputs);
  first_call(row);
}

int main(int argc, char** argv) {
  if (argc != 2) bench_fail("usage: client THREADS");
  row_t row = {.status = TF_NewStatus()};
  row.context = open_context(atoi(argv[1]), row.status);
  static char text[4096];
  while (fgets(text, sizeof text, stdin)) {
    text[strcspn(text, "\n")] = 0;
    char* rest = text;
    const char* verb = strsep(&rest, "\t");
    if (rest && strcmp(verb, "call") == 0)
      begin_row(&row, rest);
    else if (rest && strcmp(verb, "time") == 0)
      time_calls(&row, atof(rest));
    else
      bench_fail("no such request: %s", text);
    fflush(stdout);
  }
  inputs_close(&row.inputs);
  TFE_DeleteContext(row.context);
  TF_DeleteStatus(row.status);
  return 0;
}
