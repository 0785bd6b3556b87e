// Scenarios for gradients, and for the scopes and typed builders of runnel/.
#include "sweep.h"

static bool gradients(ft_t* t, const char* prefix, TF_Output y, TF_Output* out) {
  TF_Output xs[] = {ft_out(t->ops[0]), ft_out(t->ops[1])};
  TF_AddGradientsWithPrefix(t->graph, prefix, &y, 1, xs, 2, NULL, t->status, out);
  return ft_ok(t);
}

void scenario_gradients(ft_t* t) {
  static const float values[4] = {1, 2, 3, 4};
  const int64_t dims[] = {2, 2};
  TF_Output first[2], second[2];
  FT(ft_start(t));
  FT(ft_placeholder(t, &t->ops[0], "x", TF_FLOAT));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, dims, 2, values));
  FT(ft_const(t, &t->ops[1], "w", t->tensors[0]));
  FT(ft_op(t, &t->ops[2], "MatMul", "mm", t->ops[0], t->ops[1]));
  FT(ft_op(t, &t->ops[3], "Tanh", "tanh", t->ops[2], NULL));
  FT(ft_op(t, &t->ops[4], "Mul", "square", t->ops[3], t->ops[3]));
  FT(ft_op(t, &t->ops[5], "AddV2", "sum", t->ops[4], t->ops[1]));
  FT(gradients(t, "first", ft_out(t->ops[5]), first));
  FT(gradients(t, NULL, first[0], second));
  FT(ft_session(t, 1));
  FT(ft_run(t, t->ops[0], t->tensors[0], first[0].oper, &t->tensors[1]));
  FT(ft_run(t, t->ops[0], t->tensors[0], second[1].oper, &t->tensors[2]));
  FT_CHECK(t, TF_TensorElementCount(t->tensors[2]) == 4);
}

// The whole model under one scope: after an error a scope builds no more, so another is taken.
static bool build_model(ft_t* t, rn_edge_t* x, rn_edge_t* init, rn_edge_t* train) {
  rn_scope_destroy(t->child);
  rn_scope_destroy(t->scope);
  t->child = NULL;
  t->scope = rn_scope_create(rn_graph_of(t->graph));
  if (!t->scope) return false;
  rn_scope_t* s = t->scope;
  const int64_t dims[] = {2, 3};
  const float ones[] = {1, 1, 1, 1, 1, 1};
  *x = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(((int64_t[]){-1, 2}), 2));
  t->child = rn_scope_child(s, "layer");
  if (!t->child) return false;
  rn_scope_set_device(t->child, "/device:CPU:0");
  rn_edge_t w = rn_VariableV2(t->child, dims, 2, TF_FLOAT);
  rn_scope_name_next(t->child, "set");
  *init = rn_Assign(t->child, w, rn_const(t->child, TF_FLOAT, dims, 2, ones));
  rn_edge_t h = rn_Relu(t->child, rn_MatMul(t->child, *x, w));
  rn_edge_t axes = rn_const_int32_list(s, (int32_t[]){0, 1}, 2);
  rn_edge_t loss = rn_Mean(s, rn_Square(s, h), axes);
  rn_edge_t dw = RN_NO_EDGE;
  bool is_derived = rn_gradients(s, loss, &w, 1, &dw);
  rn_edge_t both[] = {h, h};
  rn_edge_t joined = rn_ConcatV2(s, both, 2, rn_const_int32(s, 1));
  rn_op_begin(s, "Identity");
  rn_op_input(s, joined);
  rn_op_attr_type(s, "T", TF_FLOAT);
  rn_op_control(s, loss.node);
  rn_op_finish(s);
  *train = rn_ApplyGradientDescent(s, w, rn_const_float(s, 0.5f), dw);
  int code = rn_scope_code(s);
  if (rn_scope_ok(s)) FT_CHECK(t, is_derived && train->node);
  TF_SetStatus(t->status, (TF_Code)code, rn_scope_message(s));
  return rn_scope_ok(s);
}

// The same step on C arrays, with a tensor beside them.
static bool run_on_arrays(ft_t* t, rn_edge_t x, rn_edge_t train) {
  const float values[] = {1, 2, 3, 4};
  float weights[2][3] = {{0}};
  bool is_good = rn_run(t->session, t->status, RN_FEED(x, values, 2, 2),
                        RN_FETCH(train, weights[0], 2, 3), RN_FETCH_TENSOR(train, &t->tensors[2]));
  FT_CHECK(t, is_good == ft_ok(t) && is_good == (t->tensors[2] != NULL));
  if (is_good) FT_CHECK(t, memcmp(weights, TF_TensorData(t->tensors[2]), sizeof weights) == 0);
  return is_good;
}

void scenario_builders(ft_t* t) {
  rn_edge_t x = RN_NO_EDGE, init = RN_NO_EDGE, train = RN_NO_EDGE;
  const float values[] = {1, 2, 3, 4};
  FT(ft_start(t));
  FT(build_model(t, &x, &init, &train));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, (int64_t[]){2, 2}, 2, values));
  FT(ft_session(t, 1));
  FT(ft_target(t, rn_operation_of(init.node)));
  FT(ft_run(t, rn_operation_of(x.node), t->tensors[0], rn_operation_of(train.node),
            &t->tensors[1]));
  FT_CHECK(t, TF_TensorElementCount(t->tensors[1]) == 6);
  FT(run_on_arrays(t, x, train));
}
