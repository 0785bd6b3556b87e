// Writes a model for stock TensorFlow to read: write_tool FOLDER WORDS
//
// It has y = relu(x w + b), a counter that a second signature increments, and a table of words from
// an asset.
//
// Or loads a model, runs a signature without inputs once, and writes the model again:
//
//   write_tool --again FROM TO SIGNATURE OUTPUT
#include <stdio.h>
#include <stdlib.h>

#include "runnel/runnel.h"

static void check(TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s\n", TF_Message(status));
  exit(1);
}

static int write_again(char** argv) {
  TF_Status* status = TF_NewStatus();
  rn_model_t* model = rn_model_load(argv[2], NULL, status);
  check(status);
  const char* wanted = argv[5];
  TF_Tensor* result = NULL;
  rn_model_run(model, argv[4], NULL, NULL, 0, &wanted, &result, 1, status);
  check(status);
  TF_DeleteTensor(result);
  rn_saved_model_def_t def = {0};
  rn_saved_model_write(rn_model_session(model), argv[3], &def, status);
  check(status);
  rn_model_close(model);
  TF_DeleteStatus(status);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 6) return write_again(argv);
  if (argc != 3) return 2;
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  rn_scope_t* s = rn_scope_create(rn_graph_of(graph));
  const int64_t x_dims[2] = {-1, 2}, w_dims[2] = {2, 3}, b_dim = 3, word_dim = -1;
  const float w[6] = {1, -2, 3, -4, 5, -6}, b[3] = {0.25f, 0.5f, 0.75f};
  rn_edge_t x = rn_Placeholder(s, TF_FLOAT, .shape = {true, x_dims, 2}, .name = "x");
  rn_edge_t weights =
      rn_VarHandleOp(s, TF_FLOAT, w_dims, 2, .shared_name = "layer/w", .name = "layer/w");
  rn_edge_t bias =
      rn_VarHandleOp(s, TF_FLOAT, &b_dim, 1, .shared_name = "layer/b", .name = "layer/b");
  rn_edge_t counter =
      rn_VarHandleOp(s, TF_INT64, NULL, 0, .shared_name = "counter", .name = "counter");
  rn_node_t* inits[] = {rn_AssignVariableOp(s, weights, rn_const(s, TF_FLOAT, w_dims, 2, w)),
                        rn_AssignVariableOp(s, bias, rn_const(s, TF_FLOAT, &b_dim, 1, b)),
                        rn_AssignVariableOp(s, counter, rn_const_scalar(s, TF_INT64, 41))};
  rn_edge_t y = rn_Relu(s, rn_BiasAdd(s, rn_MatMul(s, x, rn_ReadVariableOp(s, weights, TF_FLOAT)),
                                      rn_ReadVariableOp(s, bias, TF_FLOAT)));
  rn_node_t* add = rn_AssignAddVariableOp(s, counter, rn_const_scalar(s, TF_INT64, 1));
  rn_scope_add_control(s, add);
  rn_edge_t count = rn_ReadVariableOp(s, counter, TF_INT64);
  rn_scope_clear_controls(s);
  rn_edge_t asset = rn_Placeholder(s, TF_STRING, .shape = {true, NULL, 0}, .name = "words_file");
  rn_edge_t words = rn_Placeholder(s, TF_STRING, .shape = {true, &word_dim, 1}, .name = "words");
  rn_edge_t table = rn_HashTableV2(s, TF_STRING, TF_INT64, .shared_name = "words_table");
  rn_node_t* fill = rn_InitializeTableFromTextFileV2(s, table, asset, -2, -1);
  rn_edge_t number = rn_LookupTableFindV2(s, table, words, rn_const_scalar(s, TF_INT64, -1));
  if (!rn_scope_ok(s)) {
    fprintf(stderr, "%s\n", rn_scope_message(s));
    return 1;
  }
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, options, status);
  check(status);
  for (int i = 0; i < 3; ++i) {
    const TF_Operation* init = rn_operation_of(inits[i]);
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &init, 1, NULL, status);
    check(status);
  }
  const char *xs[] = {"x"}, *ys[] = {"y"}, *counts[] = {"count"}, *word_names[] = {"words"},
             *numbers[] = {"numbers"};
  TF_Output x_out = rn_output_of(x), y_out = rn_output_of(y), count_out = rn_output_of(count),
            words_out = rn_output_of(words), number_out = rn_output_of(number);
  rn_signature_def_t signatures[] = {
      {.name = "serving_default",
       .input_count = 1,
       .input_names = xs,
       .inputs = &x_out,
       .output_count = 1,
       .output_names = ys,
       .outputs = &y_out},
      {.name = "count", .output_count = 1, .output_names = counts, .outputs = &count_out},
      {.name = "lookup",
       .input_count = 1,
       .input_names = word_names,
       .inputs = &words_out,
       .output_count = 1,
       .output_names = numbers,
       .outputs = &number_out}};
  rn_asset_def_t file = {.path = argv[2], .tensor = rn_output_of(asset)};
  rn_saved_model_def_t def = {.signatures = signatures,
                              .signature_count = 3,
                              .assets = &file,
                              .asset_count = 1,
                              .init = rn_operation_of(fill)};
  rn_saved_model_write(session, argv[1], &def, status);
  check(status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  rn_scope_destroy(s);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
