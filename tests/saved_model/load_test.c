// Loading, running and freezing models that Keras exported. A folder that is not a model gives an
// error.
#include "graph/import.h"
#include "runnel/ops.h"
#include "saved_model/freeze.h"
#include "saved_model/saved_model.h"
#include "util.h"

#define SM_TEST(suite, name) Test(suite, name, .timeout = 120)

static const char* const models[] = {"mlp", "convnet", "lstm"};

typedef struct loaded_t {
  rn_saved_model_t* file;
  const rn_meta_graph_t* meta;
  rn_graph_t* graph;
  rn_session_t* session;
  rn_arena_t arena;
  rn_port_t *inputs, *outputs;
  int32_t input_count, output_count;
} loaded_t;

static void load(const char* folder, loaded_t* out) {
  rn_allocator_t allocator = rn_allocator_default();
  rn_str_t tag = RN_STR("serve");
  const rn_pb_SignatureDef_t* signature;
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.is_limited = true;
  options.folder = rn_str(folder);
  *out = (loaded_t){0};
  rn_arena_init(&out->arena, allocator);
  OK(rn_saved_model_open(rn_env_system(), rn_str(folder), allocator, &out->file));
  OK(rn_saved_model_find(out->file, &tag, 1, &out->meta));
  OK(rn_graph_create(allocator, &out->graph));
  OK(rn_meta_graph_import(out->meta, out->graph));
  OK(rn_session_create(out->graph, &options, rn_env_system(), allocator, &out->session));
  OK(rn_meta_graph_restore(out->file, out->meta, out->session, NULL));
  OK(rn_meta_graph_signature(out->meta, RN_STR("serving_default"), &signature));
  OK(rn_signature_ports(out->graph, signature, false, &out->arena, &out->inputs,
                        &out->input_count));
  OK(rn_signature_ports(out->graph, signature, true, &out->arena, &out->outputs,
                        &out->output_count));
}

static void unload(loaded_t* loaded) {
  rn_session_destroy(loaded->session);
  rn_graph_release(loaded->graph);
  rn_saved_model_destroy(loaded->file);
  rn_arena_clear(&loaded->arena);
}

static rn_tensor_t port_array(const char* model, const char* kind, const rn_port_t* port) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s_%s.npy", sm_data(model), kind, port->name.data);
  return sm_array(path);
}

static void run_and_compare(rn_session_t* session, rn_edge_t input, rn_edge_t output,
                            const rn_tensor_t* fed, const rn_tensor_t* wanted) {
  rn_signature_t signature = {
      .feeds = &input, .feed_count = 1, .fetches = &output, .fetch_count = 1};
  rn_tensor_t result;
  OK(rn_session_run(session, &signature, &fed, &result, NULL));
  sm_expect_close(&result, wanted);
  rn_tensor_clear(&result);
}

// A session of its own for a frozen graph.
static rn_session_t* open_frozen(rn_str_t bytes, rn_graph_t** out_graph) {
  rn_session_t* session;
  rn_import_options_t import = {0};
  rn_import_results_t results = {.allocator = rn_allocator_default()};
  rn_session_options_t plain;
  rn_session_options_init(&plain);
  OK(rn_graph_create(rn_allocator_default(), out_graph));
  OK(rn_graph_import(*out_graph, bytes, &import, &results));
  rn_import_results_clear(&results);
  OK(rn_session_create(*out_graph, &plain, rn_env_system(), rn_allocator_default(), &session));
  return session;
}

static void run_frozen(const loaded_t* loaded, bool folds, const rn_tensor_t* fed,
                       const rn_tensor_t* wanted) {
  rn_freeze_options_t options = {.inputs = &loaded->inputs[0].edge,
                                 .input_names = &loaded->inputs[0].name,
                                 .input_count = 1,
                                 .outputs = &loaded->outputs[0].edge,
                                 .output_names = &loaded->outputs[0].name,
                                 .output_count = 1,
                                 .folds_batch_norms = folds};
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_default());
  rn_str_t fill;
  OK(rn_freeze(loaded->session, &options, &bytes, &fill));
  cr_assert_eq(fill.size, 0);
  rn_graph_t* graph;
  rn_session_t* session = open_frozen(rn_strbuf_view(&bytes), &graph);
  for (size_t i = 0; i < graph->nodes.count; ++i) {
    const char* op = graph->nodes.items[i]->op->name;
    cr_assert(strcmp(op, "VarHandleOp") && strcmp(op, "ReadVariableOp") && !strstr(op, "Call"),
              "%s", op);
    cr_assert(!folds || (strcmp(op, "Rsqrt") && !strstr(op, "BatchNorm")), "%s", op);
  }
  rn_edge_t input = {rn_graph_find(graph, loaded->inputs[0].name), 0};
  rn_edge_t output = {rn_graph_find(graph, loaded->outputs[0].name), 0};
  cr_assert(input.node && output.node);
  run_and_compare(session, input, output, fed, wanted);
  rn_session_destroy(session);
  rn_graph_release(graph);
  rn_strbuf_clear(&bytes);
}

SM_TEST(saved_model, answers_are_stock_s) {
  for (size_t m = 0; m < sizeof models / sizeof *models; ++m) {
    loaded_t loaded;
    load(sm_data(models[m]), &loaded);
    cr_assert_eq(loaded.input_count, 1);
    cr_assert_eq(loaded.output_count, 1);
    rn_tensor_t fed = port_array(models[m], "in", &loaded.inputs[0]);
    rn_tensor_t wanted = port_array(models[m], "out", &loaded.outputs[0]);
    run_and_compare(loaded.session, loaded.inputs[0].edge, loaded.outputs[0].edge, &fed, &wanted);
    run_frozen(&loaded, false, &fed, &wanted);
    run_frozen(&loaded, true, &fed, &wanted);
    rn_tensor_clear(&fed);
    rn_tensor_clear(&wanted);
    unload(&loaded);
  }
}

static void run_target(rn_session_t* session, rn_node_t* node) {
  rn_signature_t signature = {.targets = &node, .target_count = 1};
  OK(rn_session_run(session, &signature, NULL, NULL, NULL));
}

// What the table holds comes along, and the graph says which node puts it there.
SM_TEST(saved_model, tables_are_frozen) {
  const int64_t two = 2, keys[2] = {3, 7}, values[2] = {30, 70};
  rn_graph_t *graph, *frozen;
  rn_session_t* session;
  rn_session_options_t plain;
  rn_session_options_init(&plain);
  OK(rn_graph_create(rn_allocator_default(), &graph));
  rn_scope_t* scope = rn_scope_create(graph);
  rn_edge_t table = rn_HashTableV2(scope, RN_INT64, RN_INT64, .name = "table");
  rn_edge_t key = rn_Placeholder(scope, RN_INT64, .name = "key");
  rn_edge_t found = rn_LookupTableFindV2(scope, table, key, rn_const_scalar(scope, RN_INT64, -1),
                                         .name = "found");
  rn_node_t* fill =
      rn_LookupTableImportV2(scope, table, rn_const(scope, RN_INT64, &two, 1, keys),
                             rn_const(scope, RN_INT64, &two, 1, values), .name = "init_tables");
  cr_assert(rn_scope_ok(scope), "%s", rn_scope_message(scope));
  rn_scope_destroy(scope);
  OK(rn_session_create(graph, &plain, rn_env_system(), rn_allocator_default(), &session));

  rn_freeze_options_t options = {
      .inputs = &key, .input_count = 1, .outputs = &found, .output_count = 1};
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_default());
  rn_str_t name;
  FAILS_WITH(rn_freeze(session, &options, &bytes, &name), ABORTED, "not initialized");
  run_target(session, fill);
  OK(rn_freeze(session, &options, &bytes, &name));
  cr_assert(rn_str_is(name, "init_tables_1"));
  rn_session_t* other = open_frozen(rn_strbuf_view(&bytes), &frozen);
  run_target(other, rn_graph_find(frozen, name));

  rn_tensor_t fed = {0}, got = {0};
  OK(rn_tensor_create(rn_allocator_default(), RN_INT64, (rn_shape_t){1, &two}, &fed));
  memcpy(fed.data, (const int64_t[]){7, 8}, sizeof keys);
  const rn_tensor_t* feeds[] = {&fed};
  rn_edge_t in = {rn_graph_find(frozen, RN_STR("key")), 0};
  rn_edge_t out = {rn_graph_find(frozen, RN_STR("found")), 0};
  rn_signature_t step = {.feeds = &in, .feed_count = 1, .fetches = &out, .fetch_count = 1};
  OK(rn_session_run(other, &step, feeds, &got, NULL));
  cr_assert_eq(RN_DATA(&got, int64_t)[0], 70);
  cr_assert_eq(RN_DATA(&got, int64_t)[1], -1);
  rn_tensor_clear(&fed);
  rn_tensor_clear(&got);
  rn_session_destroy(other);
  rn_graph_release(frozen);
  rn_strbuf_clear(&bytes);
  rn_session_destroy(session);
  rn_graph_release(graph);
}

SM_TEST(saved_model, what_is_not_there) {
  rn_saved_model_t* model;
  rn_allocator_t allocator = rn_allocator_default();
  FAILS_WITH(rn_saved_model_open(rn_env_system(), RN_STR("/nowhere"), allocator, &model), NOT_FOUND,
             "Could not find SavedModel .pb or .pbtxt at supplied export directory path: /nowhere. "
             "Check that the directory exists and that you have the right permissions");
  OK(rn_saved_model_open(rn_env_system(), rn_str(sm_data("mlp")), allocator, &model));
  const rn_meta_graph_t* meta;
  const rn_pb_SignatureDef_t* signature;
  rn_str_t tags[] = {RN_STR("serve"), RN_STR("train")};
  FAILS_WITH(rn_saved_model_find(model, tags, 2, &meta), NOT_FOUND,
             "Could not find meta graph def matching supplied tags: { serve train }. To inspect");
  FAILS_WITH(rn_saved_model_find(model, NULL, 0, &meta), NOT_FOUND, "tags: {  }");
  OK(rn_saved_model_find(model, tags, 1, &meta));
  FAILS_WITH(rn_meta_graph_signature(meta, RN_STR("predict"), &signature), NOT_FOUND, "it has: ");
  rn_saved_model_destroy(model);
}

// A folder with this text as its model.
static void write_text(const char* folder, const char* text) {
  char path[128];
  snprintf(path, sizeof path, "%s/saved_model.pbtxt", folder);
  OK(rn_fs_write(rn_env_system(), path, rn_str(text)));
}

static rn_status_t try_load(const char* folder) {
  rn_allocator_t allocator = rn_allocator_default();
  rn_saved_model_t* file = NULL;
  rn_graph_t* graph = NULL;
  rn_session_t* session = NULL;
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.is_limited = true;
  options.folder = rn_str(folder);
  rn_status_t status = rn_saved_model_open(rn_env_system(), rn_str(folder), allocator, &file);
  if (rn_ok(status) && !file->graph_count) status = rn_not_found("no graph");
  if (rn_ok(status)) status = rn_graph_create(allocator, &graph);
  if (rn_ok(status)) status = rn_meta_graph_import(&file->graphs[0], graph);
  if (rn_ok(status))
    status = rn_session_create(graph, &options, rn_env_system(), allocator, &session);
  if (rn_ok(status)) status = rn_meta_graph_restore(file, &file->graphs[0], session, NULL);
  rn_session_destroy(session);
  rn_graph_release(graph);
  rn_saved_model_destroy(file);
  return status;
}

#define READ_NODES                                                               \
  "node { name: 'f' op: 'Const' attr { key: 'dtype' value { type: DT_STRING } }" \
  " attr { key: 'value' value { tensor { dtype: DT_STRING tensor_shape { }"      \
  " string_val: '%s' } } } }"                                                    \
  "node { name: 'r' op: 'ReadFile' input: 'f' } node { name: 'i' op: 'NoOp' input: '^r' }"

// A model that reads a file when it is loaded.
static rn_status_t load_reader(const char* folder, const char* file) {
  char text[2048], nodes[1024];
  snprintf(nodes, sizeof nodes, READ_NODES, file);
  snprintf(
      text, sizeof text,
      "meta_graphs { meta_info_def { tags: 'serve' } graph_def { %s versions { producer: 24 } }"
      " collection_def { key: 'legacy_init_op' value { node_list { value: 'i' } } } }",
      nodes);
  write_text(folder, text);
  return try_load(folder);
}

SM_TEST(saved_model, files_outside_are_closed) {
  char folder[64], path[128];
  sm_folder(folder);
  snprintf(path, sizeof path, "%s/words.txt", folder);
  OK(rn_fs_write(rn_env_system(), path, RN_STR("words")));
  OK(load_reader(folder, path));
  FAILS_WITH(load_reader(folder, "/etc/hostname"), PERMISSION_DENIED,
             "this session may not read it");
  snprintf(path, sizeof path, "%s/../../etc/hostname", folder);
  FAILS_WITH(load_reader(folder, path), PERMISSION_DENIED, "may not read");
  snprintf(path, sizeof path, "%s/link", folder);
  cr_assert_eq(symlink("/etc/hostname", path), 0);
  FAILS_WITH(load_reader(folder, path), PERMISSION_DENIED, "may not read");
  sm_remove(folder);
}

SM_TEST(saved_model, assets_stay_inside) {
  char folder[64];
  sm_folder(folder);
  static const char* const names[] = {"../secret", "/etc/passwd", "a/../../b"};
  for (size_t i = 0; i < 3; ++i) {
    char text[1024];
    snprintf(text, sizeof text,
             "meta_graphs { graph_def { node { name: 'a' op: 'Placeholder' attr { key: 'dtype' "
             "value { type: "
             "DT_STRING } } } } asset_file_def { filename: '%s' tensor_info { name: 'a:0' } } }",
             names[i]);
    write_text(folder, text);
    FAILS_WITH(try_load(folder), INVALID_ARGUMENT, "is not in the folder of the model");
  }
  sm_remove(folder);
}

SM_TEST(saved_model, text_that_is_none) {
  char folder[64];
  sm_folder(folder);
  write_text(folder, "meta_graphs { bogus: 1 }");
  FAILS_WITH(try_load(folder), DATA_LOSS, "1:15: Message type has no field named");
  write_text(folder,
             "meta_graphs { graph_def { node { name: 'x' op: 'NoSuchOp' } node { name: 'y' op: "
             "'NorThis' } } }");
  FAILS_WITH(try_load(folder), NOT_FOUND, "NoSuchOp");
  write_text(folder,
             "meta_graphs { collection_def { key: 'legacy_init_op' value { node_list { value: "
             "'gone' } } } }");
  FAILS_WITH(try_load(folder), NOT_FOUND, "no node 'gone'");
  write_text(folder,
             "meta_graphs { saver_def { restore_op_name: 'x' } asset_file_def { filename: 'f' } }");
  FAILS_WITH(try_load(folder), INVALID_ARGUMENT, "belongs to no tensor");
  sm_remove(folder);
}

// Cut short and with bits turned over: a status, never more.
SM_TEST(saved_model, damaged_files) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_default());
  char path[512];
  snprintf(path, sizeof path, "%s/saved_model.pb", sm_data("mlp"));
  OK(rn_fs_read(rn_env_system(), path, SIZE_MAX, &bytes));
  uint64_t seed = 1;
  for (int i = 0; i < 400; ++i) {
    rn_saved_model_t* model = NULL;
    char* copy = malloc(bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    size_t at = (size_t)(seed >> 33) % bytes.size, size = i % 2 ? bytes.size : at;
    if (i % 2) copy[at] ^= (char)(1 << (seed >> 60 & 7));
    rn_status_t status =
        rn_saved_model_parse(rn_env_system(), RN_STR("/nowhere"), rn_str_n(copy, size), false,
                             rn_allocator_default(), &model);
    rn_graph_t* graph;
    OK(rn_graph_create(rn_allocator_default(), &graph));
    if (rn_ok(status) && model->graph_count)
      status = rn_meta_graph_import(&model->graphs[0], graph);
    rn_status_free(status);
    rn_graph_release(graph);
    rn_saved_model_destroy(model);
    free(copy);
  }
  rn_strbuf_clear(&bytes);
}
