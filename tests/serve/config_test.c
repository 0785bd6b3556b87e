// Tests of the configuration files: what is read, what is refused, and in which words.
#include "serve/model/config.h"

#include "util.h"

static char folder[64];
static rn_arena_t arena;

static void open_folder(void) {
  serve_folder(folder);
  rn_arena_init(&arena, rn_allocator_default());
}

static void close_folder(void) {
  rn_arena_clear(&arena);
  serve_remove(folder);
}

TestSuite(config, .init = open_folder, .fini = close_folder);

static const char* file_of(const char* text) {
  static char path[100];
  serve_write(folder, "file", rn_str(text));
  snprintf(path, sizeof path, "%s/file", folder);
  return path;
}

static rn_status_t read_models(const char* text, rn_pb_serving_ModelServerConfig_t** out) {
  return rn_config_read_models(rn_env_system(), file_of(text), &arena, out);
}

Test(config, models) {
  rn_pb_serving_ModelServerConfig_t* config = NULL;
  OK(
      read_models("model_config_list {\n"
                  "  config { name: 'a' base_path: '/a' model_platform: 'tensorflow' }\n"
                  "  config { name: 'b' base_path: 'ram://b' model_type: TENSORFLOW\n"
                  "    model_version_policy { specific { versions: 3 versions: 5 } }\n"
                  "    version_labels { key: 'stable' value: 3 } }\n"
                  "}\n",
                  &config));
  const rn_pb_serving_ModelConfigList_t* list = config->model_config_list;
  cr_assert_eq(list->config.count, 2);
  cr_assert(rn_str_is(list->config.items[1].name, "b"));
  cr_assert_eq(list->config.items[1].model_version_policy->specific->versions.items[1], 5);
  cr_assert_eq(list->config.items[1].version_labels.items[0].value, 3);
  OK(read_models("# nothing yet\n", &config));
  cr_assert_eq(config->config_case, 0);
}

// Errors of the text name file, line and column; the others name file and model.
Test(config, bad_models) {
  static const struct {
    const char *text, *error;
  } cases[] = {
      {"model_config_list {\n  confi { }\n}", "/file:2:"},
      {"model_config_list {\n  config { name: 'a'", "/file:2:"},
      {"model_config_list { config { name: 'a' base_path: 'a' model_platform: 'tensorflow' } }",
       "/file: Expected model a to have an absolute path or URI; got base_path()=a"},
      {"model_config_list { config { name: 'a' base_path: '/a' } }",
       "/file: Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
       "ModelServerConfig::model_platform, model name is a"},
      {"model_config_list { config { name: 'a' base_path: '/a' model_type: TENSORFLOW "
       "model_platform: 'tensorflow' } }",
       "Illegal setting both ModelServerConfig::model_type (deprecated) and "
       "ModelServerConfig::model_platform, model name is a"},
      {"model_config_list { config { name: 'a' base_path: '/a' model_type: OTHER } }",
       "ModelServerConfig::model_type choice 2 not supported."},
      {"model_config_list { config { name: 'a' base_path: '/a' model_platform: 'caffe' } }",
       "Model a requests unsupported platform caffe"},
      {"model_config_list { config { name: 'a' base_path: '/a' model_platform: 'tensorflow' } "
       "config { name: 'a' base_path: '/b' model_platform: 'tensorflow' } }",
       "Illegal to list model a multiple times in config list"},
      {"model_config_list { config { base_path: '/a' model_platform: 'tensorflow' } }",
       "has no name"},
      {"model_config_list { config { name: 'a\\000b' base_path: '/a' model_platform: "
       "'tensorflow' } }",
       "/file: "},
      {"model_config_list { config { name: 'a' base_path: '/a' model_platform: 'tensorflow' "
       "version_labels { value: 1 } } }",
       "A label of model a is empty"},
      {"model_config_list { config { name: 'a' base_path: '/a' model_platform: 'tensorflow' "
       "logging_config { sampling_config { sampling_rate: 1.5 } } } }",
       "sampling_rate of model a"},
      {"custom_model_config { }", "does not yet support custom model config"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rn_pb_serving_ModelServerConfig_t* config = NULL;
    FAILS_WITH(read_models(cases[i].text, &config), INVALID_ARGUMENT, cases[i].error);
    cr_assert_null(config);
  }
  rn_pb_serving_ModelServerConfig_t* config = NULL;
  FAILS(rn_config_read_models(rn_env_system(), "/nowhere/file", &arena, &config), NOT_FOUND);
}

Test(config, single) {
  rn_pb_serving_ModelServerConfig_t* config = NULL;
  OK(rn_config_single(RN_STR("default"), RN_STR("/models/m"), &arena, &config));
  cr_assert_eq(config->model_config_list->config.count, 1);
  cr_assert(rn_str_is(config->model_config_list->config.items[0].name, "default"));
  FAILS_WITH(rn_config_single(RN_STR("m"), RN_STR("models"), &arena, &config), INVALID_ARGUMENT,
             "absolute path");
}

static rn_status_t read_batching(const char* text, rn_batcher_options_t* options) {
  return rn_config_read_batching(rn_env_system(), file_of(text), &arena, options);
}

Test(config, batching) {
  rn_batcher_options_t options = {.size = {.objective_ns = 5}};
  OK(read_batching("", &options));
  cr_assert(options.is_on);
  cr_assert_eq(options.size.policy, RN_BATCH_FIXED);
  cr_assert_eq(options.size.max, 1000);
  cr_assert_eq(options.size.objective_ns, 5);
  cr_assert_eq(options.max_wait_ns, 0);
  cr_assert_eq(options.max_queued, 10000);
  OK(
      read_batching("max_batch_size { value: 128 } batch_timeout_micros { value: 2000 }\n"
                    "max_enqueued_batches { value: 4 } num_batch_threads { value: 8 }\n"
                    "thread_pool_name { value: 'pool' }\n"
                    "allowed_batch_sizes: 32 allowed_batch_sizes: 128\n"
                    "pad_variable_length_inputs: true",
                    &options));
  cr_assert_eq(options.size.max, 128);
  cr_assert_eq(options.max_wait_ns, 2000000);
  cr_assert_eq(options.max_queued, 512);
  cr_assert_eq(options.allowed_count, 2);
  cr_assert_eq(options.allowed_sizes[0], 32);
  cr_assert(options.pads_variable);
  cr_assert(!options.splits_large);
  OK(
      read_batching("max_batch_size { value: 128 } enable_large_batch_splitting { value: true }\n"
                    "max_execution_batch_size { value: 64 } allowed_batch_sizes: [16, 64]",
                    &options));
  cr_assert(options.splits_large);
  cr_assert_eq(options.size.max, 64);
}

Test(config, bad_batching) {
  static const struct {
    const char *text, *error;
  } cases[] = {
      {"max_batch_size: 3", "/file:1:"},
      {"max_batch_size { value: 0 }", "max_batch_size must be positive; was 0"},
      {"batch_timeout_micros { value: -1 }", "batch_timeout_micros must be non-negative; was -1"},
      {"allowed_batch_sizes: [4, 4, 1000]",
       "allowed_batch_sizes entries must be monotonically increasing"},
      {"allowed_batch_sizes: 32",
       "Last entry in allowed_batch_sizes must match max_batch_size; last entry was 32; expected "
       "1000"},
      {"enable_large_batch_splitting { value: true } allowed_batch_sizes: 2000",
       "Last entry in allowed_batch_sizes must be less than or equal to max_batch_size; last entry "
       "was 2000; expected 1000"},
      {"enable_large_batch_splitting { value: true } max_execution_batch_size { value: 64 } "
       "allowed_batch_sizes: 32",
       "Last entry in allowed_batch_sizes must be equal to max_execution_batch_size; last entry "
       "was 32; expected 64"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rn_batcher_options_t options = {0};
    FAILS_WITH(read_batching(cases[i].text, &options), INVALID_ARGUMENT, cases[i].error);
  }
}

Test(config, batching_of_one_model) {
  rn_batcher_options_t options = {0};
  bool is_found = true;
  OK(rn_config_read_own_batching(rn_env_system(), folder, &arena, &options, &is_found));
  cr_assert(!is_found && !options.is_on);
  serve_write(folder, RN_CONFIG_BATCHING_FILE, RN_STR("max_batch_size { value: 7 }"));
  OK(rn_config_read_own_batching(rn_env_system(), folder, &arena, &options, &is_found));
  cr_assert(is_found && options.size.max == 7);
}

Test(config, monitoring) {
  rn_str_t path;
  const rn_env_t* env = rn_env_system();
  OK(rn_config_read_monitoring(env, file_of("prometheus_config { enable: true }"), &arena, &path));
  cr_assert(rn_str_is(path, "/monitoring/prometheus/metrics"));
  OK(rn_config_read_monitoring(env, file_of("prometheus_config { enable: true path: '/m' }"),
                               &arena, &path));
  cr_assert(rn_str_is(path, "/m"));
  OK(rn_config_read_monitoring(env, file_of("prometheus_config { path: '/m' }"), &arena, &path));
  cr_assert_eq(path.size, 0);
  FAILS_WITH(rn_config_read_monitoring(env, file_of("prometheus_config { enable: true path: 'm' }"),
                                       &arena, &path),
             INVALID_ARGUMENT, "must begin with /");
}

Test(config, ssl) {
  rn_pb_serving_SSLConfig_t* config = NULL;
  const rn_env_t* env = rn_env_system();
  OK(rn_config_read_ssl(env, file_of("server_key: 'k' server_cert: 'c'"), &arena, &config));
  cr_assert(rn_str_is(config->server_key, "k"));
  FAILS_WITH(rn_config_read_ssl(env, file_of("server_key: 'k'"), &arena, &config), INVALID_ARGUMENT,
             "server_cert is missing");
  FAILS_WITH(
      rn_config_read_ssl(env, file_of("server_key: 'k' server_cert: 'c' client_verify: true"),
                         &arena, &config),
      INVALID_ARGUMENT, "custom_ca is missing");
}
