// SavedModels on failing disks: each file system call fails once, or the power fails after it. A
// folder then has a complete model or none, errors name a path, and the next attempt works.
#include <errno.h>

#include "../support/memory_fs.h"
#include "runnel/ops.h"
#include "saved_model/writer.h"
#include "util.h"

#define FOLDER "/models/m"
#define SM_TEST(suite, name) Test(suite, name, .timeout = 120)

// y = x w, with one variable, on a file system of its own.
typedef struct world_t {
  rn_memory_fs_t* fs;
  rn_env_t env;
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_session_t* session;
  rn_edge_t x, y;
  rn_node_t *set, *add;  // w = 2; w += 1
} world_t;

static void run_node(world_t* w, rn_node_t* node) {
  rn_signature_t signature = {.targets = &node, .target_count = 1};
  OK(rn_session_run(w->session, &signature, NULL, NULL, NULL));
}

static void open_world(world_t* w) {
  *w = (world_t){.env = *rn_env_system()};
  OK(rn_memory_fs_create(rn_allocator_system(), &w->fs));
  rn_memory_fs_install(w->fs, &w->env);
  OK(rn_graph_create(rn_allocator_system(), &w->graph));
  rn_scope_t* s = w->s = rn_scope_create(w->graph);
  w->x = rn_Placeholder(s, TF_FLOAT, .shape = {true, NULL, 0}, .name = "x");
  rn_edge_t handle = rn_VarHandleOp(s, TF_FLOAT, NULL, 0, .shared_name = "w", .name = "w");
  w->set = rn_AssignVariableOp(s, handle, rn_const_float(s, 2));
  w->add = rn_AssignAddVariableOp(s, handle, rn_const_float(s, 1));
  w->y = rn_Mul(s, w->x, rn_ReadVariableOp(s, handle, TF_FLOAT), .name = "y");
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  OK(rn_session_create(w->graph, &options, &w->env, rn_allocator_system(), &w->session));
  run_node(w, w->set);
}

static void close_world(world_t* w) {
  rn_session_destroy(w->session);
  rn_scope_destroy(w->s);
  rn_graph_release(w->graph);
  rn_memory_fs_destroy(w->fs);
}

static rn_status_t save(world_t* w, bool overwrites) {
  const char *input = "in", *output = "out";
  // A node of the graph is an operation of the API.
  TF_Output x = {(TF_Operation*)w->x.node, 0}, y = {(TF_Operation*)w->y.node, 0};
  rn_signature_def_t signature = {.name = "serving_default",
                                  .input_count = 1,
                                  .input_names = &input,
                                  .inputs = &x,
                                  .output_count = 1,
                                  .output_names = &output,
                                  .outputs = &y};
  rn_saved_model_def_t def = {
      .signatures = &signature, .signature_count = 1, .overwrites = overwrites};
  return rn_saved_model_save(w->session, NULL, FOLDER, &def, &w->env, rn_allocator_system());
}

static rn_status_t fill_and_run(rn_saved_model_t* model, const rn_meta_graph_t* meta,
                                rn_graph_t* graph, rn_session_t* session, float* out) {
  RN_RETURN_IF_ERROR(rn_meta_graph_restore(model, meta, session, NULL));
  rn_edge_t x, y;
  RN_RETURN_IF_ERROR(rn_edge_by_name(graph, RN_STR("x"), &x));
  RN_RETURN_IF_ERROR(rn_edge_by_name(graph, RN_STR("y"), &y));
  rn_signature_t signature = {.feeds = &x, .feed_count = 1, .fetches = &y, .fetch_count = 1};
  float ten = 10;
  rn_tensor_t fed = {.data = &ten, .count = 1, .dtype = RN_FLOAT}, result = {0};
  const rn_tensor_t* feeds = &fed;
  RN_RETURN_IF_ERROR(rn_session_run(session, &signature, &feeds, &result, NULL));
  *out = *RN_DATA(&result, float);
  rn_tensor_clear(&result);
  return RN_OK;
}

// What the model in the folder makes of 10.
static rn_status_t load(world_t* w, float* out) {
  rn_allocator_t allocator = rn_allocator_system();
  rn_saved_model_t* model = NULL;
  const rn_meta_graph_t* meta = NULL;
  rn_graph_t* graph = NULL;
  rn_session_t* session = NULL;
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  rn_str_t tag = RN_STR("serve");
  rn_status_t status = rn_saved_model_open(&w->env, RN_STR(FOLDER), allocator, &model);
  if (rn_ok(status)) status = rn_saved_model_find(model, &tag, 1, &meta);
  if (rn_ok(status)) status = rn_graph_create(allocator, &graph);
  if (rn_ok(status)) status = rn_meta_graph_import(meta, graph);
  if (rn_ok(status)) status = rn_session_create(graph, &options, &w->env, allocator, &session);
  if (rn_ok(status)) status = fill_and_run(model, meta, graph, session, out);
  rn_session_destroy(session);
  rn_graph_release(graph);
  rn_saved_model_destroy(model);
  return status;
}

static void expect_model(world_t* w, float wanted) {
  float y = 0;
  OK(load(w, &y));
  cr_assert_eq(y, wanted, "%g", y);
}

// A model, or none: then its own words say so.
static bool has_model(world_t* w, float* out) {
  rn_status_t status = load(w, out);
  bool is_there = rn_ok(status);
  if (!is_there)
    cr_assert(strstr(rn_status_message(status), "Could not find SavedModel"), "%s",
              rn_status_message(status));
  rn_status_free(status);
  return is_there;
}

static int64_t sweep_save(bool crashes, int64_t torn, int error, bool overwrites) {
  for (int64_t n = 1;; ++n) {
    world_t w;
    open_world(&w);
    if (overwrites) {
      OK(save(&w, false));
      run_node(&w, w.add);
    }
    int64_t before = rn_memory_fs_calls(w.fs);
    rn_memory_fs_fail(w.fs, n, crashes ? INT64_MAX / 2 : 1, error);
    rn_status_t status = save(&w, overwrites);
    int64_t calls = rn_memory_fs_calls(w.fs) - before;
    bool is_saved = rn_ok(status);
    if (!is_saved)
      cr_assert(strstr(rn_status_message(status), "/models"), "call %lld: %s", (long long)n,
                rn_status_message(status));
    rn_status_free(status);
    rn_memory_fs_fail(w.fs, 0, 0, 0);
    if (crashes) rn_memory_fs_crash(w.fs, torn);
    float y = 0;
    bool is_there = has_model(&w, &y);
    cr_assert(is_there || !is_saved, "call %lld", (long long)n);
    if (is_there) cr_assert(y == (overwrites ? 30 : 20) || (!is_saved && y == 20), "%g", y);
    OK(save(&w, true));
    expect_model(&w, overwrites ? 30 : 20);
    close_world(&w);
    if (n > calls) return n;
  }
}

SM_TEST(files, failure_of_every_call) {
  for (int overwrites = 0; overwrites < 2; ++overwrites) {
    cr_assert_gt(sweep_save(false, 0, EIO, overwrites), 10);
    sweep_save(false, 0, ENOSPC, overwrites);
  }
}

SM_TEST(files, crash_at_every_call) {
  for (int overwrites = 0; overwrites < 2; ++overwrites) {
    sweep_save(true, 0, EIO, overwrites);
    sweep_save(true, 10, EIO, overwrites);
    sweep_save(true, INT64_MAX / 2, EIO, overwrites);
  }
}

// An existing model is not replaced when its existence cannot be checked.
SM_TEST(files, no_silent_replacement) {
  world_t w;
  open_world(&w);
  OK(save(&w, false));
  run_node(&w, w.add);
  for (int64_t n = 1; n < 6; ++n) {
    rn_memory_fs_fail(w.fs, n, 1, EIO);
    rn_status_t status = save(&w, false);
    cr_assert_not(rn_ok(status), "call %lld", (long long)n);
    rn_status_free(status);
    rn_memory_fs_fail(w.fs, 0, 0, 0);
    expect_model(&w, 20);
  }
  close_world(&w);
}

SM_TEST(files, loading_from_a_disk_that_fails) {
  world_t w;
  open_world(&w);
  OK(save(&w, false));
  bool is_loaded = false;
  int64_t n = 0;
  while (!is_loaded) {
    float y = 0;
    rn_memory_fs_fail(w.fs, ++n, 1, EIO);
    rn_status_t status = load(&w, &y);
    is_loaded = rn_ok(status);
    if (is_loaded)
      cr_assert_eq(y, 20);
    else
      cr_assert(strstr(rn_status_message(status), "/models/m"), "%s", rn_status_message(status));
    rn_status_free(status);
    rn_memory_fs_fail(w.fs, 0, 0, 0);
    expect_model(&w, 20);
  }
  cr_assert_gt(n, 5);
  close_world(&w);
}
