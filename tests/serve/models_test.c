// Tests of the manager of models: which versions are loaded, which names mean which, what requests
// see meanwhile.
#include "serve/model/models.h"

#include <math.h>
#include <stdatomic.h>

#include "serve/model/config.h"
#include "serve/model/loader.h"
#include "util.h"

// A model that adds its version's number to x. Folders with a file "bad" do not load.
typedef struct fake_backend_t {
  rn_backend_t base;  // first
  int64_t number;
  _Atomic int* live;
} fake_backend_t;

static const int64_t fake_dims[] = {-1, 1};
static const rn_serve_port_t fake_input = {
    .name = {"x", 1}, .dtype = RN_FLOAT, .shape = {2, fake_dims}};
static const rn_serve_port_t fake_output = {
    .name = {"y", 1}, .dtype = RN_FLOAT, .shape = {2, fake_dims}};
static const rn_serve_signature_t fake_signature = {.name = {"serving_default", 15},
                                                    .method = {"tensorflow/serving/predict", 26},
                                                    .inputs = &fake_input,
                                                    .outputs = &fake_output,
                                                    .input_count = 1,
                                                    .output_count = 1,
                                                    .is_batched = true,
                                                    .is_pure = true};

static void fake_run(rn_backend_t* base, rn_backend_run_t* run) {
  float x = *RN_DATA(&run->inputs[0], float) + (float)((fake_backend_t*)base)->number;
  run->outputs[0] = serve_column(&x, 1);
  run->done(run, RN_OK);
}

static void fake_destroy(rn_backend_t* base) {
  --*((fake_backend_t*)base)->live;
  RN_FREE(rn_allocator_default(), (fake_backend_t*)base);
}

static const rn_backend_vtable_t fake_vtable = {
    .kind = "fake", .run = fake_run, .destroy = fake_destroy};

typedef struct fake_loader_t {
  _Atomic int loads, live, most_live;
  _Atomic bool is_held;  // loading does not end
  rn_allocator_t allocator;
} fake_loader_t;

static rn_status_t fake_load(void* self, const rn_pb_serving_ModelConfig_t* config, int64_t number,
                             const char* folder, rn_backend_t*** out, int* out_count) {
  (void)config;
  fake_loader_t* loader = self;
  while (loader->is_held) usleep(1000);
  ++loader->loads;
  char path[400];
  snprintf(path, sizeof path, "%s/bad", folder);
  if (rn_fs_exists(rn_env_system(), path)) return rn_data_loss("%s is bad", folder);
  fake_backend_t* backend = NULL;
  OK(RN_NEW(rn_allocator_default(), &backend));
  backend->base = (rn_backend_t){.vtable = &fake_vtable,
                                 .signatures = &fake_signature,
                                 .signature_count = 1,
                                 .blocks = true,
                                 .lanes = 4};
  backend->number = number;
  backend->live = &loader->live;
  int live = ++loader->live;
  if (live > loader->most_live) loader->most_live = live;
  rn_status_t status = rn_alloc_array(loader->allocator, 1, sizeof **out, (void**)out);
  if (!rn_ok(status)) {
    fake_destroy(&backend->base);
    return status;
  }
  (*out)[0] = &backend->base;
  *out_count = 1;
  return RN_OK;
}

// No delays and deadlines here.
static rn_status_t no_timer(void* self, rn_timer_t* timer, int64_t at_ns) {
  (void)self, (void)timer, (void)at_ns;
  return RN_OK;
}
static void no_clear(void* self, rn_timer_t* timer) { (void)self, (void)timer; }

static fake_loader_t loader;
static char base[64];
static rn_arena_t arena;

static rn_models_options_t fake_options(void) {
  return (rn_models_options_t){.load = fake_load,
                               .self = &loader,
                               .batching = {.timers = {.set = no_timer, .clear = no_clear},
                                            .env = rn_env_system(),
                                            .allocator = rn_allocator_default()},
                               .poll_ns = 0,
                               .load_threads = 2,
                               .env = rn_env_system(),
                               .allocator = rn_allocator_default()};
}

static void set_up(void) {
  serve_folder(base);
  rn_arena_init(&arena, rn_allocator_default());
  loader = (fake_loader_t){.allocator = rn_allocator_default()};
}

static void tear_down(void) {
  rn_arena_clear(&arena);
  serve_remove(base);
}

TestSuite(models, .init = set_up, .fini = tear_down, .timeout = 60);

static void add_version(const char* model, int number) {
  char name[100];
  snprintf(name, sizeof name, "%s/%d/model", model, number);
  serve_write(base, name, RN_STR("m"));
}

static void remove_version(const char* model, int number) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s/%d", base, model, number);
  serve_remove(path);
}

// Configures models by text; $ is the base path of all of them.
static rn_status_t configure(rn_models_t* models, const char* text) {
  rn_strbuf_t full;
  rn_strbuf_init(&full, rn_allocator_default());
  rn_strbuf_printf(&full, "model_config_list {");
  for (const char* c = text; *c; ++c)
    if (*c == '$')
      rn_strbuf_printf(&full, "%s", base);
    else
      rn_strbuf_append_n(&full, c, 1);
  rn_strbuf_printf(&full, "}");
  serve_write(base, "config", rn_strbuf_view(&full));
  rn_strbuf_clear(&full);
  char path[100];
  snprintf(path, sizeof path, "%s/config", base);
  rn_pb_serving_ModelServerConfig_t* config = NULL;
  rn_status_t status = rn_config_read_models(rn_env_system(), path, &arena, &config);
  return rn_ok(status) ? rn_models_configure(models, config) : status;
}

#define MODEL(name, more) \
  "config { name: '" name "' base_path: '$/" name "' model_platform: 'tensorflow' " more "}"
#define ALL "model_version_policy { all {} }"

static int64_t soon(void) { return rn_env_system()->now_ns(rn_env_system()->self) + 30000000000; }

static rn_status_t find(rn_models_t* models, const char* name, int64_t number, const char* label,
                        int64_t* out) {
  rn_version_t* version = NULL;
  rn_model_spec_t spec = {rn_str(name), number, rn_str(label)};
  RN_RETURN_IF_ERROR(rn_models_find(models, &spec, &version));
  *out = rn_version_number(version);
  rn_version_release(version);
  return RN_OK;
}

#define FINDS(name, number, label, wanted)         \
  do {                                             \
    int64_t found = -1;                            \
    OK(find(models, name, number, label, &found)); \
    cr_assert_eq(found, wanted);                   \
  } while (0)
#define LACKS(name, number, label, code, message)                           \
  do {                                                                      \
    int64_t found = -1;                                                     \
    FAILS_SAYING(find(models, name, number, label, &found), code, message); \
  } while (0)

// The state of one version, and its message.
static rn_model_state_t state_of(rn_models_t* models, const char* name, int64_t number,
                                 const char** out_message) {
  rn_model_info_t* infos = NULL;
  int count = 0;
  rn_model_state_t state = RN_MODEL_UNKNOWN;
  OK(rn_models_info(models, rn_str(name), &arena, &infos, &count));
  cr_assert_eq(count, 1);
  for (int i = 0; i < infos[0].version_count; ++i) {
    cr_assert(i == 0 || infos[0].versions[i - 1].number > infos[0].versions[i].number);
    cr_assert_eq(infos[0].versions[i].version != NULL,
                 infos[0].versions[i].state == RN_MODEL_AVAILABLE);
    if (infos[0].versions[i].number != number) continue;
    state = infos[0].versions[i].state;
    if (out_message) *out_message = infos[0].versions[i].message;
  }
  rn_models_info_clear(infos, count);
  return state;
}

static void wait_for_state(rn_models_t* models, const char* name, int64_t number,
                           rn_model_state_t state) {
  for (int i = 0; i < 20000 && state_of(models, name, number, NULL) != state; ++i) usleep(1000);
  cr_assert_eq(state_of(models, name, number, NULL), state);
}

Test(models, finds_versions) {
  rn_models_options_t options = fake_options();
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  LACKS("a", -1, "", NOT_FOUND, "Servable not found for request: Latest(a)");
  add_version("a", 1);
  add_version("a", 2);
  add_version("b", 7);
  OK(configure(models, MODEL("a", ALL) MODEL("b", "")));
  OK(rn_models_wait(models, soon()));
  FINDS("a", -1, "", 2);
  FINDS("a", 1, "", 1);
  FINDS("b", -1, "", 7);
  LACKS("", -1, "", INVALID_ARGUMENT, "ModelSpec has no name specified.");
  LACKS("a", 3, "", NOT_FOUND, "Servable not found for request: Specific(a, 3)");
  LACKS("c", 3, "", NOT_FOUND, "Servable not found for request: Specific(c, 3)");
  LACKS("a", -1, "stable", INVALID_ARGUMENT, "Unrecognized servable version label: stable");
  cr_assert_eq(state_of(models, "a", 2, NULL), RN_MODEL_AVAILABLE);
  rn_model_info_t* infos = NULL;
  int count = 0;
  FAILS_WITH(rn_models_info(models, RN_STR("c"), &arena, &infos, &count), NOT_FOUND,
             "Could not find any versions of model c");
  OK(rn_models_info(models, RN_STR(""), &arena, &infos, &count));
  cr_assert_eq(count, 2);
  rn_models_info_clear(infos, count);
  rn_models_destroy(models);
  cr_assert_eq(loader.live, 0);
}

Test(models, policies) {
  rn_models_options_t options = fake_options();
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  for (int i = 1; i <= 4; ++i) add_version("a", i);
  serve_write(base, "a/5", RN_STR("a file"));
  serve_write(base, "a/6.tmp/model", RN_STR("m"));
  serve_write(base, "a/-7/model", RN_STR("m"));
  static const struct {
    const char* policy;
    int versions;  // bits
  } cases[] = {{"", 8},
               {"model_version_policy { latest { num_versions: 2 } }", 12},
               {"model_version_policy { latest { } }", 8},
               {ALL, 15},
               {"model_version_policy { specific { versions: 1 versions: 3 versions: 9 } }", 5}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[300];
    snprintf(text, sizeof text, MODEL("a", "%s"), cases[i].policy);
    OK(configure(models, text));
    OK(rn_models_wait(models, soon()));
    for (int v = 1; v < 9; ++v) {
      bool is_wanted = v < 5 && cases[i].versions >> (v - 1) & 1;
      wait_for_state(models, "a", v,
                     is_wanted                        ? RN_MODEL_AVAILABLE
                     : state_of(models, "a", v, NULL) ? RN_MODEL_END
                                                      : RN_MODEL_UNKNOWN);
    }
  }
  rn_models_destroy(models);
  cr_assert_eq(loader.live, 0);
}

Test(models, a_new_version_replaces_the_old_one) {
  rn_models_options_t options = fake_options();
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  add_version("a", 2);
  OK(rn_models_poll(models));
  FINDS("a", -1, "", 2);
  wait_for_state(models, "a", 1, RN_MODEL_END);
  cr_assert_eq(loader.most_live, 2);  // both, for a while
  // An emptied base path unloads; a missing one does not.
  char path[100];
  snprintf(path, sizeof path, "%s/a", base);
  serve_remove(path);
  OK(rn_models_poll(models));
  FINDS("a", -1, "", 2);
  OK(rn_fs_make_directories(rn_env_system(), path));
  OK(rn_models_poll(models));
  wait_for_state(models, "a", 2, RN_MODEL_END);
  LACKS("a", -1, "", NOT_FOUND, "Servable not found for request: Latest(a)");
  // It may come back.
  add_version("a", 2);
  OK(rn_models_poll(models));
  FINDS("a", -1, "", 2);
  rn_models_destroy(models);
  cr_assert_eq(loader.live, 0);
}

Test(models, keeps_what_is_loaded_if_wished) {
  rn_models_options_t options = fake_options();
  options.keeps_emptied = true;
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  remove_version("a", 1);
  OK(rn_models_poll(models));
  FINDS("a", -1, "", 1);
  rn_models_destroy(models);
}

// Resource-preserving: the old version is gone before the new one is loaded.
Test(models, unloads_first) {
  rn_models_options_t options = fake_options();
  options.unloads_first = true;
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  for (int i = 2; i < 10; ++i) {
    add_version("a", i);
    OK(rn_models_poll(models));
    FINDS("a", -1, "", i);
  }
  cr_assert_eq(loader.most_live, 1);
  rn_models_destroy(models);
}

// A version that does not load leaves the old one in place; the status says why.
Test(models, bad_versions) {
  rn_models_options_t options = fake_options();
  options.max_load_retries = 2;
  options.retry_ns = 1000000;
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  int loads = loader.loads;
  add_version("a", 2);
  serve_write(base, "a/2/bad", RN_STR(""));
  OK(rn_models_poll(models));
  wait_for_state(models, "a", 2, RN_MODEL_END);
  cr_assert_eq(loader.loads, loads + 3);
  FINDS("a", -1, "", 1);
  const char* message = "";
  state_of(models, "a", 2, &message);
  cr_assert(strstr(message, "2 is bad"), "%s", message);
  OK(rn_models_wait(models, soon()));  // there is version 1
  OK(rn_models_poll(models));          // nothing has changed
  cr_assert_eq(loader.loads, loads + 3);
  // It is tried again when its folder changes.
  char path[100];
  snprintf(path, sizeof path, "%s/a/2/bad", base);
  cr_assert_eq(unlink(path), 0);
  OK(rn_models_poll(models));
  FINDS("a", -1, "", 2);
  wait_for_state(models, "a", 1, RN_MODEL_END);
  rn_models_destroy(models);
}

Test(models, models_that_never_load) {
  rn_models_options_t options = fake_options();
  options.retry_ns = 1000000;
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  serve_write(base, "a/1/bad", RN_STR(""));
  add_version("b", 1);
  OK(configure(models, MODEL("a", "") MODEL("b", "")));
  FAILS_WITH(rn_models_wait(models, soon()), UNKNOWN,
             "1 model(s) did not become available: {{{name: a version: 1} due to error: "
             "DATA_LOSS: ");
  FINDS("b", -1, "", 1);
  OK(configure(models, MODEL("c", "")));  // which has no base path
  FAILS_WITH(
      rn_models_wait(models, rn_env_system()->now_ns(NULL) + 200000000), DEADLINE_EXCEEDED,
      "1 model(s) did not become available: {{{name: c} due to error: INVALID_ARGUMENT: Could "
      "not find base path ");
  FAILS_WITH(rn_models_load(models, RN_STR("c"), NULL, soon()), INVALID_ARGUMENT,
             "Could not find base path ");
  serve_write(base, "c/first/model", RN_STR("m"));
  FAILS_WITH(rn_models_load(models, RN_STR("c"), NULL, soon()), NOT_FOUND,
             "No versions of servable c found under base path ");
  rn_models_destroy(models);
}

Test(models, labels) {
  rn_models_options_t options = fake_options();
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  add_version("a", 2);
#define LABEL(name, number) "version_labels { key: '" name "' value: " #number " } "
  FAILS_SAYING(configure(models, MODEL("a", LABEL("stable", 1))), FAILED_PRECONDITION,
               "Request to assign label to version 1 of model a, which is not currently available "
               "for inference");
  OK(configure(models, MODEL("a", ALL)));
  OK(rn_models_wait(models, soon()));
  OK(configure(models, MODEL("a", ALL LABEL("stable", 1) LABEL("canary", 2))));
  FINDS("a", -1, "stable", 1);
  FINDS("a", -1, "canary", 2);
  FAILS(configure(models, MODEL("a", ALL LABEL("stable", 3))), FAILED_PRECONDITION);
  FINDS("a", -1, "stable", 1);  // the old list is in force
  // A label keeps its version, whatever the policy says.
  OK(configure(models, MODEL("a", LABEL("stable", 1))));
  OK(rn_models_poll(models));
  FINDS("a", -1, "stable", 1);
  LACKS("a", -1, "canary", INVALID_ARGUMENT, "Unrecognized servable version label: canary");
  OK(configure(models, MODEL("a", LABEL("stable", 2))));
  FINDS("a", -1, "stable", 2);
  wait_for_state(models, "a", 1, RN_MODEL_END);
  rn_models_destroy(models);
}

Test(models, labels_of_versions_to_come) {
  rn_models_options_t options = fake_options();
  options.labels_unavailable = true;
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  OK(configure(models, MODEL("a", LABEL("stable", 1) LABEL("next", 2))));
  OK(rn_models_wait(models, soon()));
  FINDS("a", -1, "stable", 1);
  LACKS("a", -1, "next", NOT_FOUND, "Servable not found for request: Specific(a, 2)");
  // A label that is in use moves to loaded versions only.
  FAILS(configure(models, MODEL("a", LABEL("stable", 2))), FAILED_PRECONDITION);
  rn_models_destroy(models);
}

Test(models, a_new_list_replaces_the_old_one) {
  rn_models_options_t options = fake_options();
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  add_version("b", 1);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  FAILS_WITH(configure(models, MODEL("b", "") MODEL("b", "")), INVALID_ARGUMENT, "multiple times");
  FINDS("a", -1, "", 1);
  FAILS_WITH(
      configure(models, "config { name: 'a' base_path: '$/a' model_platform: 'container' }"),
      INVALID_ARGUMENT,
      "Illegal to change a model's platform. For model a platform was tensorflow and new platform "
      "requested is container");
  OK(configure(models, MODEL("b", "")));
  LACKS("a", -1, "", NOT_FOUND, "Servable not found for request: Latest(a)");
  OK(rn_models_wait(models, soon()));
  FINDS("b", -1, "", 1);
  wait_for_state(models, "a", 1, RN_MODEL_END);
  OK(configure(models, ""));
  wait_for_state(models, "b", 1, RN_MODEL_END);
  rn_pb_serving_ModelServerConfig_t empty = {0};
  OK(rn_models_configure(models, &empty));
  rn_models_destroy(models);
}

Test(models, loads_and_unloads_by_request) {
  rn_models_options_t options = fake_options();
  options.poll_ns = -1;
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  FAILS(rn_models_load(models, RN_STR("a"), NULL, soon()), NOT_FOUND);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_load(models, RN_STR("a"), NULL, soon()));
  FINDS("a", -1, "", 1);
  FAILS(rn_models_unload(models, RN_STR("b")), NOT_FOUND);
  OK(rn_models_unload(models, RN_STR("a")));
  LACKS("a", -1, "", NOT_FOUND, "Servable not found for request: Latest(a)");
  OK(rn_models_poll(models));
  LACKS("a", -1, "", NOT_FOUND, "Servable not found for request: Latest(a)");
  OK(rn_models_load(models, RN_STR("a"), NULL, soon()));
  FINDS("a", -1, "", 1);
  OK(rn_models_unload(models, RN_STR("a")));
  serve_write(base, "a/1/bad", RN_STR(""));
  FAILS_WITH(rn_models_load(models, RN_STR("a"), NULL, soon()), DATA_LOSS, "is bad");
  loader.is_held = true;
  FAILS(rn_models_load(models, RN_STR("a"), NULL, rn_env_system()->now_ns(NULL) + 20000000),
        DEADLINE_EXCEEDED);
  loader.is_held = false;
  rn_models_destroy(models);
}

// A load's own policy holds until the next load or configuration.
Test(models, loads_with_a_policy) {
  rn_models_options_t options = fake_options();
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  for (int64_t number = 1; number <= 3; ++number) add_version("a", number);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  FINDS("a", -1, "", 3);
  int64_t numbers[] = {1, 2};
  rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_Specific_t specific = {
      .versions = {.items = numbers, .count = 2}};
  rn_version_policy_t policy = {
      .policy_choice_case =
          rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_specific_field,
      .specific = &specific};
  for (int turn = 0; turn < 2; ++turn) {
    OK(rn_models_load(models, RN_STR("a"), &policy, soon()));
    FINDS("a", 1, "", 1);
    FINDS("a", -1, "", 2);
    wait_for_state(models, "a", 3, RN_MODEL_END);
  }
  numbers[0] = 3, specific.versions.count = 1;
  OK(rn_models_load(models, RN_STR("a"), &policy, soon()));
  FINDS("a", -1, "", 3);
  wait_for_state(models, "a", 2, RN_MODEL_END);
  numbers[0] = 1;
  OK(rn_models_load(models, RN_STR("a"), &policy, soon()));
  wait_for_state(models, "a", 3, RN_MODEL_END);
  OK(rn_models_load(models, RN_STR("a"), NULL, soon()));
  FINDS("a", -1, "", 3);
  OK(rn_models_load(models, RN_STR("a"), &policy, soon()));
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  FINDS("a", -1, "", 3);
  rn_models_destroy(models);
}

// The last reference unloads, not the manager.
Test(models, a_request_keeps_its_version) {
  rn_models_options_t options = fake_options();
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  rn_version_t* version = NULL;
  rn_model_spec_t spec = {RN_STR("a"), -1, RN_STR("")};
  OK(rn_models_find(models, &spec, &version));
  OK(configure(models, ""));
  wait_for_state(models, "a", 1, RN_MODEL_UNLOADING);
  usleep(10000);
  cr_assert_eq(loader.live, 1);
  rn_version_release(version);
  wait_for_state(models, "a", 1, RN_MODEL_END);
  cr_assert_eq(loader.live, 0);
  rn_models_destroy(models);
}

// Requests while lists, labels and versions change: none is lost, and no label lacks its version.
typedef struct storm_t {
  rn_models_t* models;
  _Atomic bool is_over;
  _Atomic int64_t requests, lost;
} storm_t;

typedef struct storm_request_t {
  rn_predict_t predict;  // first
  bool is_ok;
} storm_request_t;

static void storm_done(rn_predict_t* predict, rn_status_t status) {
  ((storm_request_t*)predict)->is_ok = rn_ok(status);
  rn_status_free(status);
}

// The answer to x = 1; NAN if there is none.
static float answer(rn_models_t* models, rn_model_spec_t spec) {
  rn_version_t* version = NULL;
  rn_status_t status = rn_models_find(models, &spec, &version);
  bool is_found = rn_ok(status);
  rn_status_free(status);
  if (!is_found) return NAN;
  rn_predict_value_t x = {RN_STR("x"), serve_column((float[]){1}, 1)};
  storm_request_t request = {
      .predict = {.inputs = &x, .input_count = 1, .deadline_ns = INT64_MAX, .done = storm_done}};
  rn_version_predict(version, &request.predict);
  float y = request.is_ok ? *RN_DATA(&request.predict.outputs[0].value, float) : NAN;
  rn_predict_clear(&request.predict);
  rn_version_release(version);
  return y;
}

static void* storm_main(void* arg) {
  storm_t* storm = arg;
  while (!storm->is_over) {
    for (int i = 0; i < 2; ++i) {
      rn_str_t label = i ? RN_STR("stable") : RN_STR("");
      float y = answer(storm->models, (rn_model_spec_t){RN_STR("a"), -1, label});
      storm->lost += y != 2 && y != 3;
      ++storm->requests;
    }
  }
  return NULL;
}

Test(models, no_request_is_lost_by_reloads) {
  rn_models_options_t options = fake_options();
  options.poll_ns = 1000000;
  rn_models_t* models = NULL;
  OK(rn_models_create(&options, &models));
  add_version("a", 1);
  add_version("a", 2);
  add_version("b", 1);
  OK(configure(models, MODEL("a", ALL)));
  OK(rn_models_wait(models, soon()));
  OK(configure(models, MODEL("a", ALL LABEL("stable", 1))));
  storm_t storm = {.models = models};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, storm_main, &storm);
  int accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    static const char* const lists[] = {
        MODEL("a", LABEL("stable", 1)), MODEL("a", ALL LABEL("stable", 2)),
        MODEL("a", LABEL("stable", 2)) MODEL("b", ""), MODEL("a", ALL LABEL("stable", 1)),
        MODEL("b", "") MODEL("a", "model_version_policy { specific { versions: 1 } }" LABEL(
                                      "stable", 2) LABEL("other", 1))};
    rn_status_t status = configure(models, lists[(i * 7 + i / 5) % 5]);
    accepted += rn_ok(status);
    rn_status_free(status);
    if (i % 10 == 0) OK(rn_models_poll(models));
  }
  storm.is_over = true;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  cr_assert_gt(accepted, 100);
  cr_assert_gt(storm.requests, 100);
  cr_assert_eq(storm.lost, 0, "%ld of %ld", (long)storm.lost, (long)storm.requests);
  rn_models_destroy(models);
  cr_assert_eq(loader.live, 0);
}

// A manager of real models.
typedef struct real_t {
  rn_env_t env;
  rn_loader_t* loader;
  rn_models_t* models;
} real_t;

static void real_begin(real_t* real) {
  real->env = *rn_env_system();
  OK(rn_pool_create(rn_allocator_default(), 2, &real->env.pool));
  rn_loader_options_t loading = {.env = &real->env, .allocator = rn_allocator_default()};
  rn_session_options_init(&loading.session);
  OK(rn_loader_create(&loading, &real->loader));
  rn_models_options_t options = fake_options();
  options.load = rn_loader_load;
  options.self = real->loader;
  options.retry_ns = 3600000000000;
  OK(rn_models_create(&options, &real->models));
}

static void real_end(real_t* real) {
  rn_models_destroy(real->models);
  rn_loader_destroy(real->loader);
  rn_pool_destroy(real->env.pool);
}

static void* flip_main(void* arg) {
  storm_t* storm = arg;
  while (!storm->is_over) {
    float y = answer(storm->models, (rn_model_spec_t){RN_STR("a"), -1, RN_STR("")});
    storm->lost += y != 2.5f && y != 3.5f;
    ++storm->requests;
  }
  return NULL;
}

// Two versions of a real model take turns while it is asked.
Test(models, flips_between_real_versions) {
  real_t real;
  real_begin(&real);
  char path[200];
  snprintf(path, sizeof path, "%s/a", base);
  serve_copy(SERVE_BOTH, path);
#define ONLY(number) "model_version_policy { specific { versions: " #number " } }"
  OK(configure(real.models, MODEL("a", ONLY(123))));
  OK(rn_models_wait(real.models, soon()));
  storm_t storm = {.models = real.models};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, flip_main, &storm);
  for (int i = 0; i < 100; ++i) {
    OK(configure(real.models, i % 2 ? MODEL("a", ONLY(123)) : MODEL("a", ONLY(124))));
    OK(rn_models_wait(real.models, soon()));
  }
  storm.is_over = true;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  cr_assert_gt(storm.requests, 100);
  cr_assert_eq(storm.lost, 0, "%ld of %ld", (long)storm.lost, (long)storm.requests);
  real_end(&real);
}

// A real model, copied in piece by piece while it is looked for.
Test(models, half_copied_versions_are_never_served) {
  real_t real;
  real_begin(&real);
  rn_models_t* models = real.models;
  char path[200];
  snprintf(path, sizeof path, "%s/a/1", base);
  serve_copy(SERVE_TWO "/00000123", path);
  OK(configure(models, MODEL("a", "")));
  OK(rn_models_wait(models, soon()));
  static const char* const files[] = {"saved_model.pb", "variables/variables.index",
                                      "variables/variables.data-00000-of-00001"};
  for (int f = 0; f < 3; ++f) {
    rn_strbuf_t bytes;
    rn_strbuf_init(&bytes, rn_allocator_default());
    snprintf(path, sizeof path, SERVE_THREE "/00000123/%s", files[f]);
    OK(rn_fs_read(&real.env, path, SIZE_MAX, &bytes));
    snprintf(path, sizeof path, "a/2/%s", files[f]);
    size_t step = bytes.size / 9 + 1;
    for (size_t size = 0; size < bytes.size; size += step) {
      serve_write(base, path, rn_str_n(bytes.data, size));
      OK(rn_models_poll(models));
      FINDS("a", -1, "", 1);
    }
    serve_write(base, path, rn_strbuf_view(&bytes));
    rn_strbuf_clear(&bytes);
  }
  OK(rn_models_poll(models));
  FINDS("a", -1, "", 2);
  real_end(&real);
}

// Every allocation that fails once is survived: by an error, or by another try.
Test(models, survives_failing_allocations) {
  add_version("a", 1);
  add_version("a", 2);
  for (int64_t fail_at = 1;; ++fail_at) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = fail_at};
    rn_models_options_t options = fake_options();
    options.poll_ns = 1000000;
    options.retry_ns = 1000000;
    options.max_load_retries = 3;
    options.allocator = options.batching.allocator = loader.allocator =
        rn_allocator_counting(&counting);
    rn_models_t* models = NULL;
    rn_status_t status = rn_models_create(&options, &models);
    if (rn_ok(status)) status = configure(models, MODEL("a", ALL));
    if (rn_ok(status)) {
      OK(rn_models_wait(models, soon()));
      for (int64_t found = 0; found != 2;) rn_status_free(find(models, "a", -1, "", &found));
    }
    rn_status_free(status);
    rn_models_destroy(models);
    cr_assert_eq(loader.live, 0);
    cr_assert_eq(counting.live_blocks, 0, "at %ld", (long)fail_at);
    if (counting.allocations < fail_at) break;
  }
}
