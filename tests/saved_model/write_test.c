// Writing models: they load with the same contents, files included, and a folder counts as a model
// only once it is complete.
#include "runnel/runnel.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SM_TEST(suite, name) Test(suite, name, .timeout = 120)
#define TF_OKAY(status) cr_assert_eq(TF_GetCode(status), TF_OK, "%s", TF_Message(status))

// A new folder; the caller removes it with sm_remove.
static void sm_folder(char out[64]) {
  strcpy(out, "/tmp/runnel_model_XXXXXX");
  cr_assert(mkdtemp(out));
}

static int remove_one(const char* path, const struct stat* info, int type, struct FTW* place) {
  (void)info, (void)type, (void)place;
  return remove(path);
}

static void sm_remove(const char* folder) { nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

typedef struct built_t {
  TF_Graph* graph;
  TF_Session* session;
  TF_Status* status;
  rn_edge_t x, y, z;
  rn_node_t* step;  // changes the variables
} built_t;

// y = x w + v, z = y + 1, with one variable of each kind.
static built_t build(void) {
  built_t b = {.graph = TF_NewGraph(), .status = TF_NewStatus()};
  rn_scope_t* s = rn_scope_create(rn_graph_of(b.graph));
  const int64_t x_dims[2] = {-1, 3}, w_dims[2] = {3, 2}, v_dim = 2;
  const float w[6] = {1, 2, 3, 4, 5, 6}, v[2] = {0.5f, -0.5f};
  b.x = rn_Placeholder(s, TF_FLOAT, .shape = {true, x_dims, 2}, .name = "x");
  rn_edge_t handle = rn_VarHandleOp(s, TF_FLOAT, w_dims, 2, .shared_name = "w", .name = "w");
  rn_edge_t ref = rn_VariableV2(s, &v_dim, 1, TF_FLOAT, .name = "v");
  rn_node_t* inits[2] = {rn_AssignVariableOp(s, handle, rn_const(s, TF_FLOAT, w_dims, 2, w)),
                         rn_Assign(s, ref, rn_const(s, TF_FLOAT, &v_dim, 1, v)).node};
  rn_edge_t product = rn_MatMul(s, b.x, rn_ReadVariableOp(s, handle, TF_FLOAT));
  b.y = rn_AddV2(s, product, rn_Identity(s, ref), .name = "y");
  b.z = rn_AddV2(s, b.y, rn_const_float(s, 1), .name = "z");
  rn_VarHandleOp(s, TF_FLOAT, w_dims, 2, .shared_name = "unused");  // never gets a value
  b.step = rn_AssignAddVariableOp(s, handle, rn_const(s, TF_FLOAT, w_dims, 2, w));
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  TF_SessionOptions* options = TF_NewSessionOptions();
  b.session = TF_NewSession(b.graph, options, b.status);
  TF_DeleteSessionOptions(options);
  for (int i = 0; i < 2; ++i) {
    TF_Operation* init = rn_operation_of(inits[i]);
    const TF_Operation* target = init;
    TF_SessionRun(b.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &target, 1, NULL, b.status);
    TF_OKAY(b.status);
  }
  rn_scope_destroy(s);
  return b;
}

static void finish(built_t* b) {
  TF_DeleteSession(b->session, b->status);
  TF_DeleteGraph(b->graph);
  TF_DeleteStatus(b->status);
}

static const char* const input_names[] = {"images"};
static const char* const output_names[] = {"scores", "more"};

static bool write_model(built_t* b, const char* folder, bool overwrites) {
  TF_Output inputs[] = {rn_output_of(b->x)};
  TF_Output outputs[] = {rn_output_of(b->y), rn_output_of(b->z)};
  rn_signature_def_t signature = {.name = "serving_default",
                                  .input_count = 1,
                                  .input_names = input_names,
                                  .inputs = inputs,
                                  .output_count = 2,
                                  .output_names = output_names,
                                  .outputs = outputs};
  rn_saved_model_def_t def = {
      .signatures = &signature, .signature_count = 1, .overwrites = overwrites};
  return rn_saved_model_write(b->session, folder, &def, b->status);
}

static TF_Tensor* row(float a, float b, float c) {
  const int64_t dims[2] = {1, 3};
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, 2, 12);
  memcpy(TF_TensorData(tensor), (float[]){a, b, c}, 12);
  return tensor;
}

static void expect_model(const char* folder, float y0, float y1) {
  TF_Status* status = TF_NewStatus();
  rn_model_t* model = rn_model_load(folder, NULL, status);
  TF_OKAY(status);
  cr_assert_eq(rn_model_signature_count(model), 1);
  const rn_model_port_t* ports;
  cr_assert_eq(rn_model_inputs(model, NULL, &ports), 1);
  cr_assert_str_eq(ports[0].name, "images");
  cr_assert_str_eq(ports[0].tensor, "x:0");
  cr_assert(ports[0].rank == 2 && ports[0].dims[0] == -1 && ports[0].dims[1] == 3);
  cr_assert_eq(rn_model_outputs(model, "serving_default", &ports), 2);
  cr_assert_eq(rn_model_outputs(model, "other", NULL), -1);
  TF_Tensor *x = row(1, 0, -1), *out[2];
  rn_model_run(model, NULL, input_names, &x, 1, output_names, out, 2, status);
  TF_OKAY(status);
  const float *y = TF_TensorData(out[0]), *z = TF_TensorData(out[1]);
  cr_assert(y[0] == y0 && y[1] == y1, "%g %g", y[0], y[1]);
  cr_assert(z[0] == y0 + 1 && z[1] == y1 + 1);
  TF_DeleteTensor(out[0]);
  TF_DeleteTensor(out[1]);
  const char* wrong[] = {"nothing"};
  rn_model_run(model, NULL, wrong, &x, 1, output_names, out, 1, status);
  cr_assert_eq(TF_GetCode(status), TF_INVALID_ARGUMENT);
  cr_assert(!out[0] && strstr(TF_Message(status), "has no input 'nothing'"));
  rn_model_run(model, NULL, NULL, NULL, 0, output_names, out, 1, status);
  cr_assert(strstr(TF_Message(status), "wants the input 'images' too"));
  rn_model_run(model, "other", input_names, &x, 1, output_names, out, 1, status);
  cr_assert_eq(TF_GetCode(status), TF_NOT_FOUND);
  TF_DeleteTensor(x);
  rn_model_close(model);
  TF_DeleteStatus(status);
}

SM_TEST(write, comes_back) {
  char folder[64], path[128];
  sm_folder(folder);
  snprintf(path, sizeof path, "%s/a/model", folder);
  built_t b = build();
  cr_assert(write_model(&b, path, false), "%s", TF_Message(b.status));
  expect_model(path, -3.5f, -4.5f);
  cr_assert(!write_model(&b, path, false));
  cr_assert_eq(TF_GetCode(b.status), TF_ALREADY_EXISTS);
  const TF_Operation* step = rn_operation_of(b.step);
  TF_SessionRun(b.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &step, 1, NULL, b.status);
  TF_OKAY(b.status);
  cr_assert(write_model(&b, path, true), "%s", TF_Message(b.status));
  expect_model(path, -7.5f, -8.5f);
  finish(&b);
  sm_remove(folder);
}

// Loading with the C API's own function, twice, and what it refuses.
SM_TEST(write, c_api) {
  char folder[64];
  sm_folder(folder);
  built_t b = build();
  cr_assert(write_model(&b, folder, false), "%s", TF_Message(b.status));
  const char* tags[] = {"serve"};
  const char* wrong[] = {"train"};
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* meta = TF_NewBuffer();
  TF_SessionOptions* options = TF_NewSessionOptions();
  cr_assert(!TF_LoadSessionFromSavedModel(options, NULL, folder, wrong, 1, graph, NULL, b.status));
  cr_assert_eq(TF_GetCode(b.status), TF_NOT_FOUND);
  // What fails late leaves the graph empty, too.
  char data[128], hidden[128];
  snprintf(data, sizeof data, "%s/variables/variables.data-00000-of-00001", folder);
  snprintf(hidden, sizeof hidden, "%s/hidden", folder);
  cr_assert_eq(rename(data, hidden), 0);
  cr_assert(!TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, graph, NULL, b.status));
  cr_assert_eq(TF_GetCode(b.status), TF_NOT_FOUND, "%s", TF_Message(b.status));
  size_t position = 0;
  cr_assert_null(TF_GraphNextOperation(graph, &position));
  cr_assert_eq(rename(hidden, data), 0);
  TF_Session* session =
      TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, graph, meta, b.status);
  TF_OKAY(b.status);
  cr_assert(meta->length > 100);
  cr_assert(!TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, graph, NULL, b.status));
  cr_assert_str_eq(TF_Message(b.status), "Graph is non-empty.");
  TF_Output x = {TF_GraphOperationByName(graph, "x"), 0},
            y = {TF_GraphOperationByName(graph, "y"), 0};
  TF_Tensor *fed = row(0, 1, 0), *got = NULL;
  TF_SessionRun(session, NULL, &x, &fed, 1, &y, &got, 1, NULL, 0, NULL, b.status);
  TF_OKAY(b.status);
  cr_assert_eq(((float*)TF_TensorData(got))[0], 3.5f);
  TF_DeleteTensor(fed);
  TF_DeleteTensor(got);
  TF_DeleteSession(session, b.status);
  TF_DeleteBuffer(meta);
  TF_DeleteGraph(graph);
  TF_DeleteSessionOptions(options);
  finish(&b);
  sm_remove(folder);
}

// A file that the graph reads goes along, and is found wherever the folder is moved to.
SM_TEST(write, assets) {
  char folder[64], model_path[128], moved[128], file[256];
  sm_folder(folder);
  snprintf(file, sizeof file, "%s/words.txt", folder);
  snprintf(model_path, sizeof model_path, "%s/model", folder);
  snprintf(moved, sizeof moved, "%s/moved", folder);
  FILE* out = fopen(file, "w");
  cr_assert(out && fputs("hello", out) >= 0 && fclose(out) == 0);
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  rn_scope_t* s = rn_scope_create(rn_graph_of(graph));
  rn_edge_t name = rn_Placeholder(s, TF_STRING, .shape = {true, NULL, 0}, .name = "asset");
  rn_edge_t content = rn_ReadFile(s, name);
  rn_scope_add_control(s, content.node);
  rn_node_t* init = rn_NoOp(s, .name = "init");
  rn_scope_clear_controls(s);
  rn_edge_t one = rn_Identity(s, rn_const_float(s, 1), .name = "one");
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, options, status);
  const char* names[] = {"one"};
  TF_Output output = rn_output_of(one);
  rn_signature_def_t signature = {
      .name = "ask", .output_count = 1, .output_names = names, .outputs = &output};
  rn_asset_def_t asset = {.path = file, .tensor = rn_output_of(name)};
  rn_saved_model_def_t def = {.signatures = &signature,
                              .signature_count = 1,
                              .assets = &asset,
                              .asset_count = 1,
                              .init = rn_operation_of(init)};
  cr_assert(rn_saved_model_write(session, model_path, &def, status), "%s", TF_Message(status));
  cr_assert_eq(rename(model_path, moved), 0);
  cr_assert_eq(unlink(file), 0);
  rn_model_t* model = rn_model_load(moved, NULL, status);  // reads the asset, or fails
  TF_OKAY(status);
  TF_Tensor* got = NULL;
  rn_model_run(model, "ask", NULL, NULL, 0, names, &got, 1, status);
  TF_OKAY(status);
  TF_DeleteTensor(got);
  rn_model_close(model);
  snprintf(file, sizeof file, "%s/assets/words.txt", moved);
  cr_assert_eq(unlink(file), 0);
  cr_assert(!rn_model_load(moved, NULL, status));
  cr_assert_eq(TF_GetCode(status), TF_NOT_FOUND, "%s", TF_Message(status));
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  rn_scope_destroy(s);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  sm_remove(folder);
}

SM_TEST(write, bad_arguments) {
  built_t b = build();
  // A variable that is needed and has no value.
  rn_scope_t* s = rn_scope_create(rn_graph_of(b.graph));
  rn_edge_t lacking = rn_VarHandleOp(s, TF_FLOAT, NULL, 0, .shared_name = "lacking");
  TF_Output value = rn_output_of(rn_ReadVariableOp(s, lacking, TF_FLOAT));
  rn_signature_def_t needy = {
      .name = "s", .output_count = 1, .output_names = output_names, .outputs = &value};
  rn_saved_model_def_t needs = {.signatures = &needy, .signature_count = 1};
  cr_assert(!rn_saved_model_write(b.session, "/tmp/never", &needs, b.status));
  cr_assert_eq(TF_GetCode(b.status), TF_FAILED_PRECONDITION);
  cr_assert_str_eq(TF_Message(b.status), "Attempting to use uninitialized value lacking");
  rn_scope_destroy(s);
  rn_saved_model_def_t def = {0};
  cr_assert(!rn_saved_model_write(NULL, "/tmp/x", &def, b.status));
  cr_assert(!rn_saved_model_write(b.session, "/proc/nowhere/x", &def, b.status));
  cr_assert(TF_GetCode(b.status) != TF_OK);
  TF_Output none = {NULL, 0};
  rn_signature_def_t signature = {
      .name = "s", .output_count = 1, .output_names = output_names, .outputs = &none};
  def = (rn_saved_model_def_t){.signatures = &signature, .signature_count = 1};
  cr_assert(!rn_saved_model_write(b.session, "/tmp/never", &def, b.status));
  cr_assert_eq(TF_GetCode(b.status), TF_INVALID_ARGUMENT);
  finish(&b);
}

// What a session is allowed is all that it may do.
SM_TEST(write, allowed_words) {
  char folder[64], allow[128], path[128];
  sm_folder(folder);
  snprintf(path, sizeof path, "%s/out.txt", folder);
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  rn_scope_t* s = rn_scope_create(rn_graph_of(graph));
  rn_edge_t name = rn_Placeholder(s, TF_STRING), text = rn_Placeholder(s, TF_STRING);
  const TF_Operation* target = rn_operation_of(rn_WriteFile(s, name, text));
  TF_Output inputs[2] = {rn_output_of(name), rn_output_of(text)};
  TF_Tensor* values[2];
  for (int i = 0; i < 2; ++i) {
    values[i] = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
    TF_TString* cell = TF_TensorData(values[i]);
    TF_StringInit(cell);
    TF_StringCopy(cell, i ? "text" : path, strlen(i ? "text" : path));
  }
  static const char* const words[] = {"", "read:%s", "write:%s", "network;write:%s/", "all"};
  for (int i = 0; i < 5; ++i) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    snprintf(allow, sizeof allow, words[i], folder);
    rn_session_options_allow(options, allow, status);
    TF_OKAY(status);
    TF_Session* session = TF_NewSession(graph, options, status);
    TF_OKAY(status);
    TF_SessionRun(session, NULL, inputs, values, 2, NULL, NULL, 0, &target, 1, NULL, status);
    cr_assert_eq(TF_GetCode(status), i < 2 ? TF_PERMISSION_DENIED : TF_OK, "%s: %s", allow,
                 TF_Message(status));
    TF_DeleteSession(session, status);
    TF_DeleteSessionOptions(options);
  }
  TF_SessionOptions* options = TF_NewSessionOptions();
  rn_session_options_allow(options, "everything", status);
  TF_OKAY(status);
  cr_assert(!TF_NewSession(graph, options, status));
  cr_assert_eq(TF_GetCode(status), TF_INVALID_ARGUMENT);
  TF_DeleteSessionOptions(options);
  TF_DeleteTensor(values[0]);
  TF_DeleteTensor(values[1]);
  rn_scope_destroy(s);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  sm_remove(folder);
}
