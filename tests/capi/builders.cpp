// The builders in C++: the same calls as in C, options in the order of their struct, and the form
// for compilers without such initialisers. Builds a graph of each, runs it, and trains a layer.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "runnel/runnel.h"
#include "tensorflow/c/c_api.h"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                            \
    }                                                                      \
  } while (0)

static TF_Output output_of(rn_edge_t edge) {
  TF_Output output = {reinterpret_cast<TF_Operation*>(edge.node), edge.index};
  return output;
}

static float run(TF_Session* session, rn_edge_t fetch, rn_node_t* target) {
  TF_Status* status = TF_NewStatus();
  TF_Output output = output_of(fetch);
  TF_Operation* operation = reinterpret_cast<TF_Operation*>(target);
  TF_Tensor* tensor = nullptr;
  TF_SessionRun(session, nullptr, nullptr, nullptr, 0, &output, &tensor, fetch.node ? 1 : 0,
                &operation, target ? 1 : 0, nullptr, status);
  float value = NAN;
  if (TF_GetCode(status) != TF_OK) std::fprintf(stderr, "%s\n", TF_Message(status));
  if (tensor) value = *static_cast<float*>(TF_TensorData(tensor));
  TF_DeleteTensor(tensor);
  TF_DeleteStatus(status);
  return value;
}

int main() {
  TF_Graph* graph = TF_NewGraph();
  rn_scope_t* s = rn_scope_create(reinterpret_cast<rn_graph_t*>(graph));
  const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  rn_edge_t x = rn_const(s, TF_FLOAT, dims, 2, values);
  rn_edge_t square = rn_MatMul(s, x, x, .name = "square", .transpose_b = true);
  rn_edge_t sum = rn_Sum(s, square, rn_const_int32(s, 0), .keep_dims = true);
  rn_edge_t all = rn_Sum(s, sum, rn_const_int32(s, 1));
  const int64_t any[] = {-1, 3};
  rn_edge_t fed = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(any, 2));
  rn_edge_t thirds = rn_LeakyRelu(s, fed, .alpha = RN_SET(0.5f));
  // Without designated initialisers.
  rn_MatMul_options_t options = rn_MatMul_options_t();
  options.transpose_a = true;
  rn_edge_t other = rn_MatMul_(s, x, x, options);
  CHECK(rn_scope_ok(s));
  CHECK(thirds.node && other.node && RN_NO_EDGE.node == nullptr);

  rn_edge_t w = rn_dense(s, x, 1, .name = "layer", .no_bias = true);
  rn_edge_t loss = rn_Sum(s, rn_Square(s, w), rn_const_int32(s, 0));
  rn_edge_t total = rn_Sum(s, loss, rn_const_int32(s, 0));
  rn_node_t* step = rn_minimize(s, rn_gradient_descent(.learning_rate = 0.001f), total);
  CHECK(rn_scope_ok(s));
  rn_node_t* init = rn_initialize_variables(s, RN_GLOBAL_VARIABLES);
  CHECK(rn_scope_ok(s));

  TF_Status* status = TF_NewStatus();
  TF_SessionOptions* session_options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, session_options, status);
  CHECK(TF_GetCode(status) == TF_OK);
  CHECK(run(session, all, nullptr) == 14 + 32 + 32 + 77);
  run(session, RN_NO_EDGE, init);
  float before = run(session, total, nullptr);
  for (int i = 0; i < 10; ++i) run(session, RN_NO_EDGE, step);
  CHECK(run(session, total, nullptr) < before);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(session_options);
  rn_scope_destroy(s);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
