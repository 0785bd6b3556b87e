// Tests of a SavedModel as a backend: signatures, runs, SessionRun, folders that are not complete.
#include <time.h>

#include "proto/serving_metadata.pb.h"
#include "saved_model/saved_model.h"
#include "tensor/tstring.h"
#include "util.h"
#include "wire/decode.h"

static rn_backend_t* load_two(void) {
  rn_backend_t* backend = NULL;
  OK(serve_load(SERVE_TWO "/00000123", rn_env_system(), &backend));
  return backend;
}

Test(tf_backend, signatures) {
  rn_backend_t* backend = load_two();
  cr_assert_str_eq(backend->vtable->kind, "tensorflow");
  cr_assert(backend->blocks);
  cr_assert_eq(backend->signature_count, 5);
  static const char* const names[] = {"classify_x_to_y", "regress_x2_to_y3", "regress_x_to_y",
                                      "regress_x_to_y2", "serving_default"};
  for (int i = 0; i < 5; ++i) {
    const rn_serve_signature_t* signature = &backend->signatures[i];
    cr_assert(rn_str_is(signature->name, names[i]));
    cr_assert_eq(signature->input_count, 1);
    cr_assert_eq(signature->output_count, 1);
    cr_assert(signature->is_batched);
    cr_assert(signature->is_pure);
  }
  const rn_serve_signature_t* predict =
      &backend->signatures[rn_backend_signature(backend, RN_STR(""))];
  cr_assert(rn_str_is(predict->method, "tensorflow/serving/predict"));
  cr_assert(rn_str_is(predict->inputs[0].name, "x"));
  cr_assert(rn_str_is(predict->inputs[0].tensor, "x:0"));
  cr_assert_eq(predict->inputs[0].dtype, RN_FLOAT);
  cr_assert_eq(predict->inputs[0].shape.rank, 2);
  cr_assert_eq(predict->inputs[0].shape.dims[0], -1);
  cr_assert_eq(predict->inputs[0].shape.dims[1], 1);
  cr_assert(rn_str_is(backend->signatures[0].method, "tensorflow/serving/classify"));
  cr_assert(rn_str_is(backend->signatures[0].inputs[0].name, "inputs"));
  cr_assert_eq(backend->signatures[0].inputs[0].dtype, RN_STRING);
  cr_assert_eq(rn_backend_signature(backend, RN_STR("none")), -1);
  cr_assert_gt(backend->memory, 10000);
  cr_assert_lt(backend->memory, 10000000);
  backend->vtable->destroy(backend);
}

Test(tf_backend, metadata_lists_every_signature) {
  rn_backend_t* backend = load_two();
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  rn_pb_serving_SignatureDefMap_t* map = NULL;
  OK(RN_PB_DECODE(serving_SignatureDefMap, backend->meta, NULL, &arena, &map));
  cr_assert_eq(map->signature_def.count, 5);
  cr_assert(rn_str_is(map->signature_def.items[4].key, "serving_default"));
  cr_assert_eq(map->signature_def.items[4].value->inputs.count, 1);
  rn_arena_clear(&arena);
  backend->vtable->destroy(backend);
}

Test(tf_backend, runs) {
  rn_backend_t* backend = load_two();
  serve_run_t run = {0};
  for (int64_t rows = 1; rows < 20; ++rows) {
    float values[20];
    for (int i = 0; i < rows; ++i) values[i] = (float)i;
    rn_tensor_t x = serve_column(values, rows);
    OK(serve_run(backend, "", &x, &run));
    cr_assert_eq(run.outputs[0].count, rows);
    for (int i = 0; i < rows; ++i)
      cr_assert_eq(RN_DATA(&run.outputs[0], float)[i], 0.5f * (float)i + 2);
    rn_tensor_clear(&run.outputs[0]);
    rn_tensor_clear(&x);
  }
  backend->vtable->destroy(backend);
}

Test(tf_backend, ends_late_and_cancelled_runs) {
  rn_backend_t* backend = load_two();
  rn_tensor_t x = serve_column((float[]){1}, 1);
  serve_run_t run = {.run = {.deadline_ns = 1}};
  FAILS_WITH(serve_run(backend, "", &x, &run), DEADLINE_EXCEEDED, "deadline");
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  run.run.deadline_ns = INT64_MAX;
  run.run.cancel = &cancel;
  OK(serve_run(backend, "", &x, &run));
  rn_tensor_clear(&run.outputs[0]);
  rn_cancel(&cancel);
  FAILS_WITH(serve_run(backend, "", &x, &run), CANCELLED, "");
  rn_cancel_destroy(&cancel);
  rn_tensor_clear(&x);
  backend->vtable->destroy(backend);
}

Test(tf_backend, refuses_a_wrong_type) {
  rn_backend_t* backend = load_two();
  rn_tensor_t x;
  OK(rn_tensor_create(rn_allocator_default(), RN_INT32, (rn_shape_t){1, (int64_t[]){1}}, &x));
  serve_run_t run = {0};
  FAILS_WITH(serve_run(backend, "", &x, &run), INVALID_ARGUMENT, "float");
  rn_tensor_clear(&x);
  backend->vtable->destroy(backend);
}

// Only the outputs that are wanted; of many sets of them, some run as one.
Test(tf_backend, runs_some_outputs) {
  rn_backend_t* backend = NULL;
  OK(serve_load(SERVE_MODELS "/outputs/1", rn_env_system(), &backend));
  rn_tensor_t x = serve_column((float[]){3}, 1);
  static const float results[] = {4, 6, 9};
  serve_run_t run = {0};
  for (int round = 0; round < 2; ++round) {
    for (int set = 0; set < 8; ++set) {
      bool wanted[3];
      for (int i = 0; i < 3; ++i) wanted[i] = set >> i & 1;
      run.run.wanted = wanted;
      OK(serve_run(backend, "", &x, &run));
      for (int i = 0; i < 3; ++i) {
        cr_assert_eq(rn_tensor_is_set(&run.outputs[i]), wanted[i]);
        if (wanted[i]) cr_assert_eq(*RN_DATA(&run.outputs[i], float), results[i]);
        rn_tensor_clear(&run.outputs[i]);
      }
    }
  }
  rn_tensor_clear(&x);
  backend->vtable->destroy(backend);
}

static bool is_pure(const rn_backend_t* backend, const char* signature) {
  return backend->signatures[rn_backend_signature(backend, rn_str(signature))].is_pure;
}

// Which signatures a cache may keep: none that is random, and none of a model that changes itself.
Test(tf_backend, effects) {
  rn_backend_t* backend = NULL;
  OK(serve_load(SERVE_MODELS "/outputs/1", rn_env_system(), &backend));
  cr_assert(is_pure(backend, ""));
  cr_assert(!is_pure(backend, "random"));
  backend->vtable->destroy(backend);
  OK(serve_load(SERVE_MODELS "/counter/1", rn_env_system(), &backend));
  cr_assert(!is_pure(backend, ""));
  cr_assert(!is_pure(backend, "count"));
  cr_assert(!backend->signatures[0].is_batched);
  // Planning in advance has not counted.
  rn_tensor_t x;
  OK(rn_tensor_create(rn_allocator_default(), RN_FLOAT, RN_SHAPE_SCALAR, &x));
  *RN_DATA(&x, float) = 2;
  serve_run_t run = {0};
  for (int i = 1; i < 4; ++i) {
    OK(serve_run(backend, "count", &x, &run));
    cr_assert_eq(*RN_DATA(&run.outputs[0], float), 2 * i);
    rn_tensor_clear(&run.outputs[0]);
  }
  rn_tensor_clear(&x);
  backend->vtable->destroy(backend);
}

// A table that only its initialization fills, from an asset.
Test(tf_backend, assets) {
  rn_backend_t* backend = NULL;
  OK(serve_load(SERVE_MODELS "/lookup/1", rn_env_system(), &backend));
  cr_assert(is_pure(backend, ""));
  cr_assert(backend->signatures[0].is_batched);
  rn_tensor_t words;
  int64_t count = 2;
  OK(rn_tensor_create(rn_allocator_default(), RN_STRING, (rn_shape_t){1, &count}, &words));
  cr_assert(rn_tstring_assign(&RN_DATA(&words, rn_tstring_t)[0], "two", 3));
  cr_assert(rn_tstring_assign(&RN_DATA(&words, rn_tstring_t)[1], "ten", 3));
  serve_run_t run = {0};
  OK(serve_run(backend, "", &words, &run));
  cr_assert_eq(RN_DATA(&run.outputs[0], int64_t)[0], 2);
  cr_assert_eq(RN_DATA(&run.outputs[0], int64_t)[1], -1);
  rn_tensor_clear(&run.outputs[0]);
  rn_tensor_clear(&words);
  backend->vtable->destroy(backend);
  char folder[64], path[100];
  serve_folder(folder);
  serve_copy(SERVE_MODELS "/lookup/1", folder);
  snprintf(path, sizeof path, "%s/assets/words.txt", folder);
  cr_assert_eq(unlink(path), 0);
  FAILS_WITH(serve_load(folder, rn_env_system(), &backend), NOT_FOUND, "words.txt");
  serve_remove(folder);
}

// SessionRun, by names in the graph and by names in the signature.
Test(tf_backend, session_run) {
  rn_backend_t* backend = load_two();
  rn_tensor_t x = serve_column((float[]){4}, 1), outputs[2];
  rn_str_t fetches[] = {RN_STR("y:0"), RN_STR("y2:0")}, feed = RN_STR("x:0");
  rn_tf_session_run_t run = {
      .feed_names = &feed, .feeds = &x, .feed_count = 1, .fetch_names = fetches, .fetch_count = 2};
  OK(rn_tf_backend_session_run(backend, &run, outputs));
  cr_assert_eq(*RN_DATA(&outputs[0], float), 4);
  cr_assert_eq(*RN_DATA(&outputs[1], float), 5);
  rn_tensor_clear(&outputs[0]);
  rn_tensor_clear(&outputs[1]);
  rn_str_t alias = RN_STR("x"), fetched = RN_STR("y");
  run = (rn_tf_session_run_t){.feed_names = &alias,
                              .feeds = &x,
                              .feed_count = 1,
                              .fetch_names = &fetched,
                              .fetch_count = 1,
                              .has_aliases = true};
  OK(rn_tf_backend_session_run(backend, &run, outputs));
  cr_assert_eq(*RN_DATA(&outputs[0], float), 4);
  rn_tensor_clear(&outputs[0]);
  alias = RN_STR("z");
  FAILS_WITH(rn_tf_backend_session_run(backend, &run, outputs), NOT_FOUND, "no input 'z'");
  run.has_aliases = false;
  FAILS_WITH(rn_tf_backend_session_run(backend, &run, outputs), NOT_FOUND, "z");
  rn_tensor_clear(&x);
  backend->vtable->destroy(backend);
}

// What is served, cached and replicated stays as it was loaded.
Test(tf_backend, session_run_changes_nothing) {
  rn_backend_t* backend = load_two();
  rn_str_t target = RN_STR("a/Assign");
  rn_tf_session_run_t run = {.target_names = &target, .target_count = 1};
  FAILS_WITH(rn_tf_backend_session_run(backend, &run, NULL), FAILED_PRECONDITION,
             "change the state");
  backend->vtable->destroy(backend);
}

// A copy that ended after any number of bytes of any file is no model.
Test(tf_backend, half_copied_folders_do_not_load, .timeout = 120) {
  static const char* const files[] = {"saved_model.pb", "variables/variables.index",
                                      "variables/variables.data-00000-of-00001"};
  enum { FILES = sizeof files / sizeof *files };
  char folder[64];
  rn_strbuf_t bytes[FILES];
  for (int f = 0; f < FILES; ++f) {
    char path[400];
    snprintf(path, sizeof path, SERVE_TWO "/00000123/%s", files[f]);
    rn_strbuf_init(&bytes[f], rn_allocator_default());
    OK(rn_fs_read(rn_env_system(), path, SIZE_MAX, &bytes[f]));
  }
  // In both orders of copying.
  for (int order = 0; order < 2; ++order) {
    serve_folder(folder);
    for (int n = 0; n < FILES; ++n) {
      int f = order ? FILES - 1 - n : n;
      bool is_last = n == FILES - 1;
      size_t step = bytes[f].size > 1000 ? 7 : 1;
      for (size_t size = 0; size < bytes[f].size + (is_last ? 0 : 1); size += step) {
        serve_write(folder, files[f], rn_str_n(bytes[f].data, size));
        rn_backend_t* backend = NULL;
        rn_status_t status = serve_load(folder, rn_env_system(), &backend);
        cr_assert(!rn_ok(status), "loaded with %zu of %zu bytes of %s", size, bytes[f].size,
                  files[f]);
        rn_status_free(status);
      }
      serve_write(folder, files[f], rn_strbuf_view(&bytes[f]));
    }
    rn_backend_t* backend = NULL;
    OK(serve_load(folder, rn_env_system(), &backend));
    backend->vtable->destroy(backend);
    serve_remove(folder);
  }
  for (int f = 0; f < FILES; ++f) rn_strbuf_clear(&bytes[f]);
}

// Sessions of models share the threads of the environment.
static int thread_count(void) {
  rn_names_t names;
  rn_names_init(&names, rn_allocator_default());
  const rn_env_t* env = rn_env_system();
  OK(env->fs->list(env->fs_self, "/proc/self/task", &names));
  int count = (int)names.list.count;
  rn_names_clear(&names);
  return count;
}

Test(tf_backend, models_share_threads) {
  rn_env_t env = *rn_env_system();
  OK(rn_pool_create(rn_allocator_default(), 4, &env.pool));
  rn_backend_t* backends[10];
  rn_tensor_t x = serve_column((float[]){1}, 1);
  int before = thread_count();
  for (int i = 0; i < 10; ++i) {
    serve_run_t run = {0};
    OK(serve_load(SERVE_TWO "/00000123", &env, &backends[i]));
    OK(serve_run(backends[i], "", &x, &run));
    rn_tensor_clear(&run.outputs[0]);
  }
  cr_assert_leq(thread_count(), before + 3);
  for (int i = 0; i < 10; ++i) backends[i]->vtable->destroy(backends[i]);
  rn_tensor_clear(&x);
  rn_pool_destroy(env.pool);
}

// Every allocation of a load that fails leaves nothing behind.
Test(tf_backend, survives_failing_allocations, .timeout = 120) {
  for (int64_t fail_at = 1;; fail_at += 1 + fail_at / 7) {
    rn_counting_allocator_t counting = {.base = rn_allocator_default(), .fail_at = fail_at};
    rn_tf_backend_options_t options = {.folder = SERVE_TWO "/00000123",
                                       .env = rn_env_system(),
                                       .allocator = rn_allocator_counting(&counting)};
    rn_session_options_init(&options.session);
    rn_backend_t* backend = NULL;
    rn_status_t status = rn_tf_backend_create(&options, &backend);
    bool is_ok = rn_ok(status);
    rn_status_free(status);
    if (backend) backend->vtable->destroy(backend);
    cr_assert_eq(counting.live_blocks, 0, "at %ld", (long)fail_at);
    if (is_ok && counting.allocations < fail_at) break;
  }
}

// A model that wants more memory than it may have fails alone.
Test(tf_backend, memory_is_limited) {
  rn_backend_t* backend = load_two();
  size_t memory = backend->memory;
  backend->vtable->destroy(backend);
  rn_tf_backend_options_t options = {.folder = SERVE_TWO "/00000123",
                                     .max_memory = memory / 2,
                                     .env = rn_env_system(),
                                     .allocator = rn_allocator_default()};
  rn_session_options_init(&options.session);
  FAILS(rn_tf_backend_create(&options, &backend), RESOURCE_EXHAUSTED);
  options.max_memory = 4 * memory;
  OK(rn_tf_backend_create(&options, &backend));
  serve_run_t run = {0};
  float* many = calloc(memory, sizeof *many);
  cr_assert(many);
  rn_tensor_t small = serve_column((float[]){2}, 1), large = serve_column(many, (int64_t)memory);
  for (int i = 0; i < 3; ++i) {
    OK(serve_run(backend, "", &small, &run));
    rn_tensor_clear(&run.outputs[0]);
    FAILS(serve_run(backend, "", &large, &run), RESOURCE_EXHAUSTED);
  }
  // What it made outlives it.
  OK(serve_run(backend, "", &small, &run));
  backend->vtable->destroy(backend);
  cr_assert_eq(*RN_DATA(&run.outputs[0], float), 3);
  rn_tensor_clear(&run.outputs[0]);
  rn_tensor_clear(&small);
  rn_tensor_clear(&large);
  free(many);
}
