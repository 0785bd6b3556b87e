// Scenarios for SavedModels: one is written, loaded, run, and written again unchanged.
#include "sweep.h"

static const char* const input_names[] = {"x"};
static const char* const output_names[] = {"y"};

// y = x w + v. Variables that are references would come without objects.
static bool build(ft_t* t, TF_Operation* inits[2]) {
  rn_scope_t* s = t->scope ? t->scope : rn_scope_create(rn_graph_of(t->graph));
  t->scope = s;
  if (!s) return false;
  const int64_t dim = 2;
  const float w[2] = {2, 3}, v[2] = {10, 20};
  rn_edge_t x = rn_Placeholder(s, TF_FLOAT, .shape = {true, &dim, 1}, .name = "x");
  rn_edge_t handle = rn_VarHandleOp(s, TF_FLOAT, &dim, 1, .shared_name = "w", .name = "w");
  rn_edge_t added = rn_VarHandleOp(s, TF_FLOAT, &dim, 1, .shared_name = "v", .name = "v");
  rn_node_t* first = rn_AssignVariableOp(s, handle, rn_const(s, TF_FLOAT, &dim, 1, w));
  rn_node_t* second = rn_AssignVariableOp(s, added, rn_const(s, TF_FLOAT, &dim, 1, v));
  rn_edge_t product = rn_Mul(s, x, rn_ReadVariableOp(s, handle, TF_FLOAT));
  rn_edge_t y = rn_AddV2(s, product, rn_ReadVariableOp(s, added, TF_FLOAT), .name = "y");
  TF_SetStatus(t->status, (TF_Code)rn_scope_code(s), rn_scope_message(s));
  if (!ft_ok(t)) {
    // What was built stays in the graph: the next try has one of its own.
    rn_scope_destroy(s);
    t->scope = NULL;
    TF_DeleteGraph(t->graph);
    t->graph = TF_NewGraph();
    return false;
  }
  inits[0] = rn_operation_of(first);
  inits[1] = rn_operation_of(second);
  t->ops[0] = rn_output_of(x).oper;
  t->ops[1] = rn_output_of(y).oper;
  return true;
}

static bool write_model(ft_t* t) {
  TF_Output input = ft_out(t->ops[0]), output = ft_out(t->ops[1]);
  rn_signature_def_t signature = {.name = "serving_default",
                                  .input_count = 1,
                                  .input_names = input_names,
                                  .inputs = &input,
                                  .output_count = 1,
                                  .output_names = output_names,
                                  .outputs = &output};
  rn_saved_model_def_t def = {.signatures = &signature, .signature_count = 1, .overwrites = true};
  return rn_saved_model_write(t->session, ft_folder(), &def, t->status);
}

static bool load_model(ft_t* t) {
  rn_model_close(t->model);
  t->model = rn_model_load(ft_folder(), NULL, t->status);
  return t->model != NULL;
}

static bool run_model(ft_t* t) {
  TF_DeleteTensor(t->tensors[1]);
  rn_model_run(t->model, NULL, input_names, &t->tensors[0], 1, output_names, &t->tensors[1], 1,
               t->status);
  return ft_ok(t);
}

static bool write_again(ft_t* t) {
  rn_saved_model_def_t def = {.overwrites = true};
  return rn_saved_model_write(rn_model_session(t->model), ft_folder(), &def, t->status);
}

static void expect_sums(ft_t* t) {
  const float* y = TF_TensorData(t->tensors[1]);
  FT_CHECK(t, y[0] == 12 && y[1] == 23);
}

void scenario_models(ft_t* t) {
  TF_Operation* inits[2];
  FT(ft_start(t));
  FT(build(t, inits));
  FT(ft_session(t, 1));
  FT(ft_target(t, inits[0]));
  FT(ft_target(t, inits[1]));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, (int64_t[]){2}, 1, (float[]){1, 1}));
  FT(write_model(t));
  FT(load_model(t));
  FT(run_model(t));
  expect_sums(t);
  FT(write_again(t));
  FT(load_model(t));
  FT(run_model(t));
  expect_sums(t);
}
