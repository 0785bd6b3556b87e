// Graphs, sessions and values for the tests of the training library.
#include "util.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

trial_t trial_open(void) {
  trial_t t = {TF_NewGraph(), TF_NewStatus(), NULL, NULL};
  t.s = rn_scope_create(rn_graph_of(t.graph));
  return t;
}

void trial_close(trial_t* t) {
  rn_scope_destroy(t->s);
  if (t->session) {
    TF_CloseSession(t->session, t->status);
    TF_DeleteSession(t->session, t->status);
  }
  TF_DeleteGraph(t->graph);
  TF_DeleteStatus(t->status);
}

void trial_built(trial_t* t) { cr_assert(rn_scope_ok(t->s), "%s", rn_scope_message(t->s)); }

static void check(trial_t* t) {
  cr_assert(TF_GetCode(t->status) == TF_OK, "%s", TF_Message(t->status));
}

static void start(trial_t* t) {
  trial_built(t);
  if (t->session) return;
  TF_SessionOptions* options = TF_NewSessionOptions();
  t->session = TF_NewSession(t->graph, options, t->status);
  TF_DeleteSessionOptions(options);
  check(t);
}

TF_Tensor* tensor_of(TF_DataType dtype, const int64_t* dims, int rank, const void* data) {
  size_t size = TF_DataTypeSize(dtype);
  for (int i = 0; i < rank; ++i) size *= (size_t)dims[i];
  TF_Tensor* tensor = TF_AllocateTensor(dtype, dims, rank, size);
  memcpy(TF_TensorData(tensor), data, size);
  return tensor;
}

TF_Tensor* tensor_floats(const float* data, int64_t rows, int64_t columns) {
  return tensor_of(TF_FLOAT, (const int64_t[]){rows, columns}, columns ? 2 : 1, data);
}

static TF_Tensor* step(trial_t* t, const rn_edge_t* fetch, rn_node_t* target,
                       const rn_edge_t* feeds, TF_Tensor* const* values, int count) {
  start(t);
  TF_Output inputs[8], output = {0};
  for (int i = 0; i < count; ++i) inputs[i] = rn_output_of(feeds[i]);
  if (fetch) output = rn_output_of(*fetch);
  TF_Tensor* result = NULL;
  const TF_Operation* targets[1] = {target ? rn_operation_of(target) : NULL};
  TF_SessionRun(t->session, NULL, inputs, values, count, &output, &result, fetch ? 1 : 0, targets,
                target ? 1 : 0, NULL, t->status);
  check(t);
  return result;
}

void trial_run(trial_t* t, rn_node_t* target, const rn_edge_t* feeds, TF_Tensor* const* values,
               int feed_count) {
  trial_built(t);
  cr_assert(target, "nothing to run");
  step(t, NULL, target, feeds, values, feed_count);
}

static double element(const TF_Tensor* tensor, int i) {
  const void* data = TF_TensorData(tensor);
  switch (TF_TensorType(tensor)) {
    case TF_FLOAT:
      return ((const float*)data)[i];
    case TF_DOUBLE:
      return ((const double*)data)[i];
    case TF_INT32:
      return ((const int32_t*)data)[i];
    case TF_INT64:
      return (double)((const int64_t*)data)[i];
    case TF_BOOL:
      return ((const bool*)data)[i];
    default:
      cr_assert(false, "a tensor of type %d", TF_TensorType(tensor));
      return 0;
  }
}

int trial_fetch(trial_t* t, rn_edge_t edge, const rn_edge_t* feeds, TF_Tensor* const* values,
                int feed_count, double* out, int max) {
  trial_built(t);
  cr_assert(edge.node, "nothing to fetch");
  TF_Tensor* result = step(t, &edge, NULL, feeds, values, feed_count);
  int count = (int)TF_TensorElementCount(result);
  for (int i = 0; i < count && i < max; ++i) out[i] = element(result, i);
  TF_DeleteTensor(result);
  return count;
}

double trial_scalar(trial_t* t, rn_edge_t edge) {
  double value = 0;
  cr_assert(trial_fetch(t, edge, NULL, NULL, 0, &value, 1) == 1);
  return value;
}

void trial_init(trial_t* t) {
  rn_node_t* nodes[2] = {rn_initialize_variables(t->s, RN_GLOBAL_VARIABLES),
                         rn_initialize_variables(t->s, RN_LOCAL_VARIABLES)};
  trial_run(t, rn_group(t->s, nodes, 2), NULL, NULL, 0);
}

void expect_close(const char* what, int i, double got, double want, double tolerance) {
  double allowed = tolerance * fmax(1, fabs(want));
  cr_expect(fabs(got - want) <= allowed, "%s: element %d is %.9g, not %.9g", what, i, got, want);
}

void wave_into(float* out, int count, double k) {
  for (int i = 0; i < count; ++i) out[i] = (float)sin(k * (i + 1));
}

rn_edge_t wave(rn_scope_t* s, int rows, int columns, double k) {
  float data[256];
  wave_into(data, rows * (columns ? columns : 1), k);
  return rn_const(s, TF_FLOAT, (const int64_t[]){rows, columns}, columns ? 2 : 1, data);
}

int recorded(const char* name, double* out, int max) {
  FILE* file = fopen(TRAIN_DATA "/values.txt", "r");
  cr_assert(file, "no values.txt");
  char line[8192];
  int count = -1;
  while (count < 0 && fgets(line, sizeof line, file)) {
    char* word = strtok(line, " \n");
    if (!word || strcmp(word, name) != 0) continue;
    for (count = 0; (word = strtok(NULL, " \n")) && count < max;) out[count++] = atof(word);
  }
  fclose(file);
  cr_assert(count > 0, "nothing is recorded as '%s'", name);
  return count;
}

void expect_recorded(trial_t* t, const char* name, rn_edge_t edge, double tolerance) {
  double want[256], got[256];
  int count = recorded(name, want, 256);
  int size = trial_fetch(t, edge, NULL, NULL, 0, got, 256);
  cr_expect(size == count, "%s: %d values, not %d", name, size, count);
  for (int i = 0; i < count && i < size; ++i) expect_close(name, i, got[i], want[i], tolerance);
}
