// Queries to applications: who is asked, what is answered when, and how it is marked.
#include <criterion/criterion.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "fake_apps.h"
#include "net/loop.h"
#include "wire/text.h"

#define FLOATS "input_type: FLOATS default_output: '-1' latency_slo_micros: 20000 "

// Figure 9's random forests: 8 to 12 ms, and some that take up to a second.
static int64_t heavy_tail(fake_arm_t* arm) {
  fake_time_t* time = &arm->world->time;
  double ms = 8 + 4 * fake_uniform(time);
  if (fake_uniform(time) < 0.01) ms = 12 / pow(fake_uniform(time), 0.8);
  return (int64_t)(fmin(ms, 1000) * 1e6);
}

static int by_latency(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

// k models with heavy tails at 100 queries per second: p99 stays within the objective for every k.
Test(ensemble, answers_within_the_objective_whatever_the_stragglers) {
  enum { QUERIES = 2000 };
  static const int sizes[] = {1, 2, 4, 8, 12, 16, 20};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; ++n) {
    int k = sizes[n];
    static fake_apps_t world;
    static fake_query_t queries[QUERIES];
    static int64_t latency[QUERIES];
    fake_apps_open(&world, k, (uint64_t)k);
    for (int i = 0; i < k; ++i) world.arms[i].latency = heavy_tail;
    rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", k);
    double missing = 0;
    int marked = 0, partial = 0;
    for (int i = 0; i < QUERIES; ++i) {
      fake_ask(&world, app, &queries[i], "", 1);
      fake_time_run(&world.time, world.time.now + fake_gap(&world.time, 100));
    }
    fake_time_run(&world.time, world.time.now + 10 * SECOND);
    for (int i = 0; i < QUERIES; ++i) {
      rn_app_query_t* query = &queries[i].query;
      cr_assert_eq(queries[i].answers, 1);
      cr_assert_eq(queries[i].code, 0);
      latency[i] = queries[i].latency_ns;
      missing += (double)query->missing / query->asked;
      partial += query->missing > 0;
      marked += (query->marks & (RN_MARK_PARTIAL | RN_MARK_DEFAULT)) != 0;
      // Every arm says 1, so that the confidence is the share that arrived.
      if (!(query->marks & RN_MARK_DEFAULT)) cr_assert_eq(query->answer.number, 1);
      rn_app_query_clear(query);
    }
    cr_assert_eq(marked, partial, "unmarked answers");
    qsort(latency, QUERIES, sizeof *latency, by_latency);
    cr_log_info("k %d: p50 %.2f, p99 %.2f ms; %.1f %% missing", k,
                (double)latency[QUERIES / 2] / 1e6, (double)latency[QUERIES * 99 / 100] / 1e6,
                100 * missing / QUERIES);
    cr_assert_leq(latency[QUERIES - 1], 20 * MS);
    rn_app_release(app);
    fake_apps_close(&world);
  }
}

static int64_t five(fake_arm_t* arm) {
  (void)arm;
  return 5 * MS;
}
static int64_t fifty(fake_arm_t* arm) {
  (void)arm;
  return 50 * MS;
}

Test(ensemble, the_reply_leaves_with_the_last_needed_answer) {
  static fake_apps_t world;
  fake_apps_open(&world, 3, 1);
  world.arms[0].latency = five;
  world.arms[1].latency = fifty;
  fake_query_t query;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS, 1);
  fake_ask(&world, app, &query, "", 7);
  fake_time_run(&world.time, world.time.now + 10 * MS);
  cr_assert_eq(query.answers, 1);
  cr_assert_eq(query.latency_ns, 5 * MS);
  cr_assert_eq(query.query.answer.number, 7);
  cr_assert_eq(query.query.confidence, 1);
  cr_assert_eq(query.query.marks, 0);
  rn_app_release(app);
  // A shadow runs the others, and waits for none of them.
  app = fake_app(&world, "name: 's' " FLOATS "policy { name: 'shadow' }", 3);
  int runs = world.arms[1].model.runs;
  fake_ask(&world, app, &query, "", 7);
  fake_time_run(&world.time, world.time.now + 10 * MS);
  cr_assert_eq(query.latency_ns, 5 * MS);
  cr_assert_eq(world.arms[1].model.runs, runs + 1);
  rn_app_release(app);
  fake_apps_close(&world);
}

Test(ensemble, stragglers_lower_the_confidence_and_are_marked) {
  static fake_apps_t world;
  fake_apps_open(&world, 4, 1);
  for (int i = 0; i < 4; ++i) world.arms[i].latency = i == 3 ? fifty : five;
  fake_query_t query;
  rn_app_t* app =
      fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' } confidence_threshold: 0.6", 4);
  fake_ask(&world, app, &query, "", 7);
  fake_time_run(&world.time, world.time.now + 30 * MS);
  cr_assert_eq(query.query.marks, RN_MARK_PARTIAL);
  cr_assert_eq(query.query.missing, 1);
  cr_assert_eq(query.query.asked, 4);
  cr_assert_float_eq(query.query.confidence, 0.75, 1e-9);
  cr_assert_eq(query.query.answer.number, 7);
  // Two of four: below the threshold.
  world.arms[2].latency = fifty;
  fake_ask(&world, app, &query, "", 8);
  fake_time_run(&world.time, world.time.now + 30 * MS);
  cr_assert_eq(query.query.marks, RN_MARK_DEFAULT);
  cr_assert_eq(query.query.answer.number, -1);
  cr_assert(strstr(query.query.explanation, "confidence"), "%s", query.query.explanation);
  // None.
  world.arms[0].latency = world.arms[1].latency = fifty;
  fake_ask(&world, app, &query, "", 8);
  fake_time_run(&world.time, world.time.now + 30 * MS);
  cr_assert_eq(query.query.marks, RN_MARK_DEFAULT);
  cr_assert_eq(query.query.missing, 4);
  rn_app_release(app);
  // In strict mode, an error.
  app = fake_app(&world, "name: 's' " FLOATS "is_strict: true", 1);
  fake_ask(&world, app, &query, "", 8);
  fake_time_run(&world.time, world.time.now + 30 * MS);
  cr_assert_eq(query.code, RN_CODE_DEADLINE_EXCEEDED);
  rn_app_release(app);
  fake_apps_close(&world);
}

Test(ensemble, a_missing_number_counts_as_the_models_average) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  world.arms[1].offset = 4;
  fake_query_t query;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' } loss: ABSOLUTE", 2);
  for (int i = 0; i < 50; ++i) fake_ask(&world, app, &query, "", 10);  // 10 and 14
  cr_assert_float_eq(query.query.answer.number, 12, 1e-6);
  world.arms[1].latency = fifty;
  fake_ask(&world, app, &query, "", 10);
  fake_time_run(&world.time, world.time.now + 30 * MS);
  cr_assert_float_eq(query.query.answer.number, 12, 1e-6);
  cr_assert_eq(query.query.marks, RN_MARK_PARTIAL);
  cr_assert_leq(query.query.confidence, 0.5);
  rn_app_release(app);
  fake_apps_close(&world);
}

Test(ensemble, models_that_fail_or_are_missing_cost_only_their_vote) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  fake_query_t query;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 2);
  rn_str_t other = RN_STR("nowhere");
  OK(rn_apps_link(world.apps, RN_STR("a"), &other, 1));
  rn_app_release(app);
  app = rn_apps_find(world.apps, RN_STR("a"));
  world.arms[1].fails = true;
  fake_ask(&world, app, &query, "", 3);
  cr_assert_eq(query.answers, 1);
  cr_assert_eq(query.query.answer.number, 3);
  cr_assert_eq(query.query.missing, 2);
  cr_assert_eq(query.query.marks, RN_MARK_PARTIAL);
  world.arms[0].fails = true;
  fake_ask(&world, app, &query, "", 3);
  cr_assert_eq(query.query.marks, RN_MARK_DEFAULT);
  cr_assert(strstr(query.query.explanation, "broken"), "%s", query.query.explanation);
  rn_app_release(app);
  // Without any model: the default, with a reason.
  app = fake_app(&world, "name: 'empty' " FLOATS, 0);
  fake_ask(&world, app, &query, "", 3);
  cr_assert_eq(query.query.marks, RN_MARK_DEFAULT);
  cr_assert(strstr(query.query.explanation, "linked"), "%s", query.query.explanation);
  rn_app_release(app);
  fake_apps_close(&world);
}

Test(ensemble, a_client_that_is_gone_cancels_its_models) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  world.arms[0].latency = world.arms[1].latency = five;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 2);
  for (int when = 0; when < 2; ++when) {
    rn_cancel_t cancel;
    rn_cancel_init(&cancel);
    fake_query_t query = {.world = &world};
    query.query.input = fake_floats(1, 1, 3);
    query.query.begun_ns = world.time.now;
    query.query.cancel = &cancel;
    query.query.done = fake_query_done;
    if (!when) rn_cancel(&cancel);
    rn_app_predict(world.apps, app, &query.query);
    rn_cancel(&cancel);
    cr_assert_eq(query.answers, 1);
    cr_assert_eq(query.code, RN_CODE_CANCELLED);
    rn_cancel_destroy(&cancel);
  }
  rn_app_release(app);
  fake_apps_close(&world);
}

// What the layer itself costs, for one model and for twenty that answer at once.
Test(ensemble, costs_microseconds) {
  for (int k = 1; k <= 20; k += 19) {
    static fake_apps_t world;
    fake_apps_open(&world, k, 1);
    fake_query_t query;
    rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", k);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    enum { TIMES = 20000 };
    for (int i = 0; i < TIMES; ++i) {
      fake_ask(&world, app, &query, "user", 1);
      cr_assert_eq(query.query.marks, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double us =
        ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / 1e3 /
        TIMES;
    cr_log_info("k %d: %.1f microseconds per query", k, us);
    if (k == 1) cr_assert_lt(us, 2000);  // the goal is 200
    rn_app_release(app);
    fake_apps_close(&world);
  }
}

// Real threads and a real clock: answers, deadlines and clients that go meet in every order.
enum { THREAD_MODELS = 4, THREAD_QUERIES = 2000 };

typedef struct thread_run_t {
  rn_job_t job;  // first
  rn_backend_run_t* run;
  unsigned delay_us;
} thread_run_t;

typedef struct thread_world_t {
  rn_pool_t* pool;
  rn_loop_t* loop;
  rn_version_t* versions[THREAD_MODELS];
  fake_model_t fakes[THREAD_MODELS];
  _Atomic unsigned turn;
  _Atomic int answers;
} thread_world_t;

static void thread_reply(rn_job_t* job) {
  thread_run_t* self = (thread_run_t*)job;
  usleep(self->delay_us);
  rn_backend_run_t* run = self->run;
  free(self);
  run->done(run, fake_compute(run));
}

static void thread_run(fake_model_t* fake, rn_backend_run_t* run) {
  thread_world_t* world = fake->self;
  thread_run_t* self = malloc(sizeof *self);
  *self = (thread_run_t){
      .job = {.run = thread_reply}, .run = run, .delay_us = (++world->turn * 7919u) % 400};
  rn_pool_submit(world->pool, &self->job);
}

static rn_status_t thread_find(void* self, const rn_model_spec_t* spec, rn_version_t** out) {
  *out = ((thread_world_t*)self)->versions[spec->name.data[1] - '0'];
  rn_version_retain(*out);
  return RN_OK;
}

typedef struct thread_query_t {
  rn_app_query_t query;  // first
  thread_world_t* world;
  rn_apps_t* apps;
  rn_app_t* app;
  rn_cancel_t cancel;
} thread_query_t;

static void thread_done(rn_app_query_t* query, rn_status_t status) {
  thread_query_t* self = (thread_query_t*)query;
  rn_answer_t label = {.is_set = true, .number = 2};
  if (query->id % 4 == 0) rn_app_feedback(self->apps, self->app, query->id, &label);
  rn_status_free(status);
  rn_app_query_clear(query);
  ++self->world->answers;
}

Test(ensemble, survives_answers_deadlines_and_cancellations_at_the_same_time, .timeout = 100) {
  static thread_world_t world;
  static thread_query_t queries[THREAD_QUERIES];
  const rn_env_t* env = rn_env_system();
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_state_store_t* store = NULL;
  rn_apps_t* apps = NULL;
  OK(rn_pool_create(memory(), 5, &world.pool));
  OK(rn_loop_create(env, memory(), &world.loop));
  for (int i = 0; i < THREAD_MODELS; ++i) {
    fake_init(&world.fakes[i]);
    world.fakes[i].on_run = thread_run;
    world.fakes[i].self = &world;
    world.fakes[i].base.lanes = 8;
    rn_backend_t* backend = &world.fakes[i].base;
    rn_version_options_t options = {
        .model = RN_STR("m"),
        .number = 1,
        .replicas = &backend,
        .replica_count = 1,
        .batching = {.timers = rn_loop_timers(world.loop), .env = env, .allocator = memory()},
        .env = env,
        .allocator = memory(),
        .idle = fake_idle};
    OK(rn_version_create(&options, &world.versions[i]));
  }
  OK(rn_state_store_create_memory(env, memory(), 0, &store));
  rn_apps_options_t options = {.find = thread_find,
                               .self = &world,
                               .store = store,
                               .timers = rn_loop_timers(world.loop),
                               .env = env,
                               .allocator = rn_allocator_counting(&counting)};
  OK(rn_apps_create(&options, &apps));
  rn_pb_runnel_ApplicationModel_t models[THREAD_MODELS] = {{.name = RN_STR("m0")},
                                                           {.name = RN_STR("m1")},
                                                           {.name = RN_STR("m2")},
                                                           {.name = RN_STR("m3")}};
  rn_pb_runnel_ApplicationPolicy_t policy = {.name = RN_STR("exp4")};
  rn_pb_runnel_Application_t definition = {.name = RN_STR("a"),
                                           .input_type = rn_pb_runnel_Application_FLOATS,
                                           .latency_slo_micros = 500,
                                           .policy = &policy,
                                           .model = {models, THREAD_MODELS, 0}};
  OK(rn_apps_add(apps, &definition));
  rn_app_t* app = rn_apps_find(apps, RN_STR("a"));
  for (int i = 0; i < THREAD_QUERIES; ++i) {
    thread_query_t* query = &queries[i];
    query->world = &world;
    query->apps = apps;
    query->app = app;
    rn_cancel_init(&query->cancel);
    query->query.input = fake_floats(1, 1, 1);
    query->query.user = i % 3 ? RN_STR("anna") : RN_STR("");
    query->query.begun_ns = env->now_ns(env->self);
    query->query.cancel = &query->cancel;
    query->query.done = thread_done;
    rn_app_predict(apps, app, &query->query);
    if (i % 5 == 0) rn_cancel(&queries[i / 2].cancel);
    if (i % 2) usleep(100);
  }
  for (int n = 0; world.answers < THREAD_QUERIES && n < 5000; ++n) usleep(5000);
  cr_assert_eq(world.answers, THREAD_QUERIES);
  rn_app_release(app);
  rn_apps_destroy(apps);
  rn_state_store_destroy(store);
  cr_assert_eq(counting.live_blocks, 0);
  for (int i = 0; i < THREAD_MODELS; ++i) rn_version_release(world.versions[i]);
  for (int i = 0; i < THREAD_QUERIES; ++i) rn_cancel_destroy(&queries[i].cancel);
  rn_loop_destroy(world.loop);
  rn_pool_destroy(world.pool);
}

static float not_a_number(fake_arm_t* arm, float x) {
  (void)arm;
  return x * NAN;
}

Test(ensemble, an_answer_that_is_no_number_counts_as_none) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  world.arms[0].answer = not_a_number;
  fake_query_t query;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 2);
  fake_ask(&world, app, &query, "", 3);
  cr_assert_eq(query.query.answer.number, 3);
  cr_assert_eq(query.query.marks, RN_MARK_PARTIAL);
  world.arms[1].answer = not_a_number;
  fake_ask(&world, app, &query, "", 3);
  cr_assert_eq(query.code, 0);
  cr_assert_eq(query.query.marks, RN_MARK_DEFAULT);
  rn_app_release(app);
  fake_apps_close(&world);
}

// One allocation of a query or of its feedback fails: it gets an answer, and the next one is whole.
Test(ensemble, without_memory_a_query_is_answered_and_the_next_one_is_whole) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 2);
  rn_answer_t label = {.is_set = true, .number = 1};
  for (int at = 1; at < 60; ++at) {
    fake_query_t query;
    char user[16];
    snprintf(user, sizeof user, "user%d", at);
    world.counting.fail_at = world.counting.allocations + at;
    fake_ask(&world, app, &query, user, 1);
    cr_assert_eq(query.answers, 1);
    rn_app_feedback(world.apps, app, query.query.id, &label);
    world.counting.fail_at = 0;
    rn_app_query_clear(&query.query);
    fake_ask(&world, app, &query, user, 1);
    cr_assert_eq(query.code, 0);
    cr_assert_eq(query.query.marks, 0);
    rn_app_query_clear(&query.query);
  }
  rn_app_release(app);
  fake_apps_close(&world);
}
