// The builders in C++: the same calls as in C, options in the order of their struct, and the form
// for compilers without such initialisers. Builds a graph of each, runs it, and trains a layer.
#include <cstdio>

#include "runnel/runnel.h"
#include "tensorflow/c/c_api.h"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                            \
    }                                                                      \
  } while (0)

int main() {
  rn_scope_t* s = rn_scope_with_graph();
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
  TF_Session* session = rn_session_start(s, nullptr, status);
  CHECK(TF_GetCode(status) == TF_OK);
  float value = 0, before = 0, after = 0, halves[3] = {0};
  CHECK(rn_run(session, status, RN_FETCH(all, &value, 1)));
  CHECK(value == 14 + 32 + 32 + 77);
  // By edge and by name; arrays and tensors.
  TF_Tensor* tensor = nullptr;
  const char* name = TF_OperationName(rn_operation_of(fed.node));
  CHECK(rn_run(session, status, RN_FEED(name, values + 3, 1, 3), RN_FETCH(thirds, halves, 1, 3),
               RN_FETCH_TENSOR("square", &tensor)));
  CHECK(halves[2] == 6 && TF_NumDims(tensor) == 2);
  TF_DeleteTensor(tensor);
  CHECK(!rn_run(session, status, RN_FETCH(all, halves, 3)));
  CHECK(TF_GetCode(status) == TF_INVALID_ARGUMENT);

  CHECK(rn_run(session, status, RN_TARGET(init)));
  CHECK(rn_run(session, status, RN_FETCH(total, &before)));
  for (int i = 0; i < 10; ++i) CHECK(rn_run(session, status, RN_TARGET(step)));
  CHECK(rn_run(session, status, RN_FETCH(total, &after)));
  CHECK(after < before);
  TF_DeleteSession(session, status);
  rn_scope_destroy(s);
  TF_DeleteStatus(status);
  return 0;
}
