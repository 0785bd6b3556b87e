// Applications over models of a simulated clock, for tests of the selection layer.
#ifndef RUNNEL_TESTS_SERVE_FAKE_APPS_H_
#define RUNNEL_TESTS_SERVE_FAKE_APPS_H_

#include <stdio.h>

#include "fake_time.h"
#include "serve/model/version.h"
#include "serve/select/apps.h"
#include "wire/text.h"

enum { FAKE_MODELS = 20, FAKE_LANES = 64 };

typedef struct fake_run_t {
  rn_timer_t timer;  // first
  struct fake_arm_t* arm;
  rn_backend_run_t* run;
  float answer;
} fake_run_t;

// A model that answers |answer(x)| after |latency| of the simulated clock; at once if it is 0.
typedef struct fake_arm_t {
  fake_model_t model;  // first
  rn_version_t* version;
  struct fake_apps_t* world;
  char name[16];
  int64_t (*latency)(struct fake_arm_t* arm);  // NULL: 0
  float (*answer)(struct fake_arm_t* arm, float x);
  float offset;  // what the default |answer| adds to x
  bool fails;
  fake_run_t runs[FAKE_LANES];
} fake_arm_t;

typedef struct fake_apps_t {
  fake_time_t time;
  rn_counting_allocator_t counting;
  rn_allocator_t allocator;
  rn_state_store_t* store;
  rn_redis_queries_t* queries;  // NULL: none
  rn_metrics_t* metrics;
  rn_apps_t* apps;
  fake_arm_t arms[FAKE_MODELS];
} fake_apps_t;

static inline void fake_arm_reply(rn_timer_t* timer) {
  fake_run_t* lane = (fake_run_t*)timer;
  rn_backend_run_t* run = lane->run;
  lane->run = NULL;
  if (lane->arm->fails) {
    run->done(run, rn_internal("the model is broken"));
    return;
  }
  int64_t dims[] = {1, 1};
  OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){2, dims}, run->outputs));
  *RN_DATA(run->outputs, float) = lane->answer;
  run->done(run, RN_OK);
}

static inline void fake_arm_run(fake_model_t* fake, rn_backend_run_t* run) {
  fake_arm_t* arm = (fake_arm_t*)fake;
  int i = 0;
  while (arm->runs[i].run) ++i;
  fake_run_t* lane = &arm->runs[i];
  float x = *RN_DATA(&run->inputs[0], float);
  *lane = (fake_run_t){.timer = {.fn = fake_arm_reply}, .arm = arm, .run = run};
  lane->answer = arm->answer ? arm->answer(arm, x) : x + arm->offset;
  int64_t latency = arm->latency ? arm->latency(arm) : 0;
  if (latency)
    OK(fake_timer_set(&arm->world->time, &lane->timer, arm->world->time.now + latency));
  else
    fake_arm_reply(&lane->timer);
}

static inline rn_status_t fake_find(void* self, const rn_model_spec_t* spec, rn_version_t** out) {
  fake_apps_t* world = self;
  for (int i = 0; i < FAKE_MODELS; ++i) {
    if (!world->arms[i].version || !rn_str_is(spec->name, world->arms[i].name)) continue;
    *out = world->arms[i].version;
    rn_version_retain(*out);
    return RN_OK;
  }
  return rn_not_found("Servable not found for request: Latest(%.*s)", RN_STR_ARGS(spec->name));
}

static inline void fake_idle(void* self, rn_version_t* version) {
  (void)self;
  rn_version_destroy(version);
}

static inline void fake_apps_start(fake_apps_t* world) {
  rn_apps_options_t options = {.find = fake_find,
                               .self = world,
                               .store = world->store,
                               .queries = world->queries,
                               .timers = fake_timers(&world->time),
                               .metrics = world->metrics,
                               .env = &world->time.env,
                               .allocator = world->allocator};
  OK(rn_apps_create(&options, &world->apps));
}

// |count| models "m0", "m1" and so on. The caller sets |store|, and calls fake_apps_start.
static inline void fake_apps_make(fake_apps_t* world, int count, uint64_t seed) {
  *world = (fake_apps_t){.counting = {.base = rn_allocator_system()}};
  world->allocator = rn_allocator_counting(&world->counting);
  fake_time_init(&world->time, seed);
  for (int i = 0; i < count; ++i) {
    fake_arm_t* arm = &world->arms[i];
    fake_init(&arm->model);
    arm->model.base.lanes = FAKE_LANES;
    arm->model.on_run = fake_arm_run;
    arm->world = world;
    snprintf(arm->name, sizeof arm->name, "m%d", i);
    rn_backend_t* backend = &arm->model.base;
    rn_version_options_t options = {.model = rn_str(arm->name),
                                    .number = 1,
                                    .replicas = &backend,
                                    .replica_count = 1,
                                    .batching = {.timers = fake_timers(&world->time),
                                                 .env = &world->time.env,
                                                 .allocator = memory()},
                                    .env = &world->time.env,
                                    .allocator = memory(),
                                    .idle = fake_idle};
    OK(rn_version_create(&options, &arm->version));
  }
  OK(rn_metrics_create(world->allocator, &world->metrics));
}

// The same with a store in memory, and no applications.
static inline void fake_apps_open(fake_apps_t* world, int count, uint64_t seed) {
  fake_apps_make(world, count, seed);
  OK(rn_state_store_create_memory(&world->time.env, world->allocator, 0, &world->store));
  fake_apps_start(world);
}

static inline void fake_apps_close(fake_apps_t* world) {
  fake_time_run(&world->time, world->time.now + 1000 * SECOND);  // stragglers
  rn_apps_destroy(world->apps);
  rn_redis_queries_destroy(world->queries);
  rn_state_store_destroy(world->store);
  rn_metrics_destroy(world->metrics);
  for (int i = 0; i < FAKE_MODELS; ++i) rn_version_release(world->arms[i].version);
  cr_assert_eq(world->counting.live_blocks, 0, "%lld blocks are left",
               (long long)world->counting.live_blocks);
}

// Adds an application from its definition in the text format, with its first |models| models.
static inline rn_app_t* fake_app(fake_apps_t* world, const char* text, int models) {
  rn_arena_t arena;
  rn_arena_init(&arena, memory());
  rn_pb_runnel_Application_t* definition = NULL;
  OK(rn_pb_parse(&rn_pb_runnel_Application_desc, rn_str(text), NULL, &arena, (void**)&definition));
  OK(rn_apps_add(world->apps, definition));
  rn_str_t names[FAKE_MODELS];
  for (int i = 0; i < models; ++i) names[i] = rn_str(world->arms[i].name);
  if (models) OK(rn_apps_link(world->apps, definition->name, names, models));
  rn_app_t* app = rn_apps_find(world->apps, definition->name);
  cr_assert(app);
  rn_arena_clear(&arena);
  return app;
}

typedef struct fake_query_t {
  rn_app_query_t query;  // first
  fake_apps_t* world;
  int answers;
  rn_code_t code;
  int64_t latency_ns;
  char message[200];
} fake_query_t;

static inline void fake_query_done(rn_app_query_t* query, rn_status_t status) {
  fake_query_t* fake = (fake_query_t*)query;
  ++fake->answers;
  fake->code = rn_status_code(status);
  snprintf(fake->message, sizeof fake->message, "%s", rn_status_message(status));
  rn_status_free(status);
  fake->latency_ns = fake->world->time.now - query->begun_ns;
}

// Asks for the answer to |x|, which may be there on return.
static inline void fake_ask(fake_apps_t* world, rn_app_t* app, fake_query_t* fake, const char* user,
                            float x) {
  *fake = (fake_query_t){.world = world};
  int64_t dims[] = {1};
  OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){1, dims}, &fake->query.input));
  *RN_DATA(&fake->query.input, float) = x;
  fake->query.user = rn_str(user);
  fake->query.begun_ns = world->time.now;
  fake->query.done = fake_query_done;
  rn_app_predict(world->apps, app, &fake->query);
}

#endif  // RUNNEL_TESTS_SERVE_FAKE_APPS_H_
