// The prediction cache: equal inputs, collisions, requests at the same time, budget, versions.
#include "serve/model/cache.h"

#include <pthread.h>

#include "fake_time.h"
#include "serve/model/version.h"

typedef struct cached_t {
  fake_time_t time;
  fake_cost_t cost;
  rn_metrics_t* metrics;
  rn_predict_cache_t* cache;
  rn_version_t* version;
} cached_t;

static void on_idle(void* self, rn_version_t* version) {
  (void)self;
  rn_version_destroy(version);
}

static rn_version_t* make_version(cached_t* cached) {
  rn_backend_t* backend = &cached->cost.model.base;
  rn_version_options_t options = {.model = RN_STR("m"),
                                  .replicas = &backend,
                                  .replica_count = 1,
                                  .batching = {.timers = fake_timers(&cached->time),
                                               .env = &cached->time.env,
                                               .allocator = memory()},
                                  .cache = cached->cache,
                                  .metrics = cached->metrics,
                                  .env = &cached->time.env,
                                  .allocator = memory(),
                                  .idle = on_idle};
  rn_version_t* version;
  OK(rn_version_create(&options, &version));
  return version;
}

static void open_cached(cached_t* cached, size_t max_bytes) {
  fake_time_init(&cached->time, 1);
  fake_cost_init(&cached->cost, &cached->time, 1000, 0);
  rn_predict_cache_options_t options = {.max_bytes = max_bytes,
                                        .timers = fake_timers(&cached->time),
                                        .env = &cached->time.env,
                                        .allocator = memory()};
  OK(rn_predict_cache_create(&options, &cached->cache));
  OK(rn_metrics_create(memory(), &cached->metrics));
  cached->version = make_version(cached);
}

static double counted(const cached_t* cached, const char* outcome) {
  return rn_series_value(rn_metrics_series(cached->metrics, RN_METRIC_CACHE_COUNT, RN_STR("m"),
                                           rn_str(outcome), RN_STR("")));
}

// The metrics of the model agree with what the cache itself counted.
static void close_cached(cached_t* cached) {
  rn_predict_cache_stats_t stats = rn_predict_cache_stats(cached->cache);
  cr_assert_eq(counted(cached, "hit"), (double)stats.hits);
  cr_assert_eq(counted(cached, "miss"), (double)stats.misses);
  cr_assert_eq(counted(cached, "wait"), (double)stats.waits);
  rn_version_release(cached->version);
  cr_assert_eq(rn_predict_cache_stats(cached->cache).entries, 0);
  rn_predict_cache_destroy(cached->cache);
  rn_metrics_destroy(cached->metrics);
}

static void run_for(cached_t* cached, int64_t ns) {
  fake_time_run(&cached->time, cached->time.now + ns);
}

static void ask(cached_t* cached, fake_request_t* request, int64_t rows, float first) {
  fake_double(request, rows, 2, first);
  request->env = &cached->time.env;
  rn_version_predict(cached->version, &request->predict);
}

// Asks, waits, checks the answer and says whether it was marked.
static bool is_cached(cached_t* cached, int64_t rows, float first) {
  fake_request_t request;
  ask(cached, &request, rows, first);
  run_for(cached, SECOND);
  cr_assert(fake_is_doubled(&request, rows, 2, first), "%s", request.message);
  bool is_marked = request.predict.marks & RN_MARK_CACHED;
  rn_predict_clear(&request.predict);
  return is_marked;
}

Test(cache, equal_requests_run_once) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  cr_assert(!is_cached(&cached, 2, 5));
  cr_assert(is_cached(&cached, 2, 5));
  cr_assert(!is_cached(&cached, 2, 6));
  cr_assert(!is_cached(&cached, 1, 5));
  cr_assert(is_cached(&cached, 1, 5));
  cr_assert_eq(cached.cost.model.runs, 3);
  fake_request_t request;
  fake_double(&request, 2, 2, 5);
  request.predict.skips_cache = true;
  rn_version_predict(cached.version, &request.predict);
  run_for(&cached, SECOND);
  cr_assert_eq(cached.cost.model.runs, 4);
  rn_predict_clear(&request.predict);
  // A signature that is not pure is never cached.
  for (int i = 0; i < 2; ++i) {
    fake_double(&request, 2, 2, 5);
    request.predict.signature = RN_STR("whole");
    rn_version_predict(cached.version, &request.predict);
    run_for(&cached, SECOND);
    rn_predict_clear(&request.predict);
  }
  cr_assert_eq(cached.cost.model.runs, 6);
  close_cached(&cached);
}

Test(cache, what_is_wanted_is_part_of_the_key) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  static const rn_str_t filters[][2] = {
      {RN_STR("y"), RN_STR("z")}, {RN_STR("z"), RN_STR("y")}, {RN_STR("z")}};
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      fake_request_t request;
      fake_request_init(&request, "add", 2);
      request.inputs[0] = (rn_predict_value_t){RN_STR("a"), fake_floats(1, 2, 1)};
      request.inputs[1] = (rn_predict_value_t){RN_STR("b"), fake_floats(1, 2, 10)};
      request.predict.filter = filters[i];
      request.predict.filter_count = i < 2 ? 2 : 1;
      rn_version_predict(cached.version, &request.predict);
      run_for(&cached, SECOND);
      cr_assert_eq(*RN_DATA(&request.predict.outputs[0].value, float), i ? 1 : 11);
      cr_assert_eq(request.predict.marks, round ? RN_MARK_CACHED : 0);
      rn_predict_clear(&request.predict);
    }
  }
  cr_assert_eq(cached.cost.model.runs, 3);
  close_cached(&cached);
}

Test(cache, bits_are_compared_not_numbers) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  static const float values[] = {NAN, 0.0f, -0.0f};
  for (int i = 0; i < 3; ++i) {
    for (int round = 0; round < 2; ++round) {
      fake_request_t request;
      fake_double(&request, 1, 1, 0);
      *RN_DATA(&request.inputs[0].value, float) = values[i];
      rn_version_predict(cached.version, &request.predict);
      run_for(&cached, SECOND);
      float twice = *RN_DATA(&request.predict.outputs[0].value, float);
      cr_assert(isnan(values[i]) ? isnan(twice) : signbit(twice) == signbit(values[i]));
      cr_assert_eq(request.predict.marks, round ? RN_MARK_CACHED : 0);
      rn_predict_clear(&request.predict);
    }
  }
  cr_assert_eq(cached.cost.model.runs, 3);
  close_cached(&cached);
}

static void text_request(fake_request_t* request, const char* a, const char* b) {
  fake_request_init(request, "text", 1);
  int64_t rows = 2;
  request->inputs[0].name = RN_STR("s");
  rn_tensor_t* value = &request->inputs[0].value;
  OK(rn_tensor_create(memory(), RN_STRING, (rn_shape_t){1, &rows}, value));
  cr_assert(rn_tstring_assign(&RN_DATA(value, rn_tstring_t)[0], a, strlen(a)));
  cr_assert(rn_tstring_assign(&RN_DATA(value, rn_tstring_t)[1], b, strlen(b)));
}

Test(cache, collisions_are_not_answers) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  rn_predict_cache_set_mask_for_testing(cached.cache, 0);
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 20; ++i) is_cached(&cached, 1 + i % 2, (float)(i / 2));
  // As many as may collide are kept, and all answers were right.
  cr_assert_eq(rn_predict_cache_stats(cached.cache).entries, 8);
  cr_assert_eq(cached.cost.model.runs, 20 + 12 + 12);
  rn_predict_cache_drop(cached.cache, cached.version);
  // Strings whose bytes are the same in a row.
  static const char* const texts[][2] = {{"ab", "c"}, {"a", "bc"}, {"", "abc"}, {"abc", ""}};
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 4; ++i) {
      fake_request_t request;
      text_request(&request, texts[i][0], texts[i][1]);
      rn_version_predict(cached.version, &request.predict);
      run_for(&cached, SECOND);
      for (int k = 0; k < 2; ++k) {
        rn_str_t text =
            rn_tstring_view(&RN_DATA(&request.predict.outputs[0].value, rn_tstring_t)[k]);
        cr_assert_eq(text.size, strlen(texts[i][k]) + 1);
        cr_assert(!memcmp(text.data, texts[i][k], text.size - 1));
      }
      cr_assert_eq(request.predict.marks, round ? RN_MARK_CACHED : 0);
      rn_predict_clear(&request.predict);
    }
  }
  close_cached(&cached);
}

Test(cache, equal_requests_at_the_same_time_run_once) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  enum { COUNT = 1000 };
  fake_request_t* requests = calloc(COUNT, sizeof *requests);
  for (int i = 0; i < COUNT; ++i) ask(&cached, &requests[i], 1, 7);
  run_for(&cached, SECOND);
  cr_assert_eq(cached.cost.model.runs, 1);
  for (int i = 0; i < COUNT; ++i) {
    cr_assert(fake_is_doubled(&requests[i], 1, 2, 7));
    rn_predict_clear(&requests[i].predict);
  }
  cr_assert_eq(rn_predict_cache_stats(cached.cache).waits, COUNT - 1);
  free(requests);
  close_cached(&cached);
}

Test(cache, those_that_wait_have_deadlines_of_their_own) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  cached.cost.fixed_us = 2e6;
  fake_request_t requests[4];
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  for (int i = 0; i < 4; ++i) {
    fake_double(&requests[i], 1, 2, 7);
    requests[i].env = &cached.time.env;
    if (i == 1) requests[i].predict.deadline_ns = cached.time.now + 50 * MS;
    if (i == 2) requests[i].predict.cancel = &cancel;
    rn_version_predict(cached.version, &requests[i].predict);
  }
  int64_t begun = cached.time.now;
  run_for(&cached, 10 * MS);
  rn_cancel(&cancel);
  cr_assert_eq(requests[2].code, RN_CODE_CANCELLED);
  run_for(&cached, 50 * MS);
  cr_assert_eq(requests[1].answers, 1);
  cr_assert_eq(requests[1].code, RN_CODE_DEADLINE_EXCEEDED);
  cr_assert_eq(requests[1].answered_ns, begun + 50 * MS);
  cr_assert_eq(requests[3].answers, 0);
  run_for(&cached, 3 * SECOND);
  cr_assert(fake_is_doubled(&requests[0], 1, 2, 7));
  cr_assert(fake_is_doubled(&requests[3], 1, 2, 7));
  for (int i = 0; i < 4; ++i) rn_predict_clear(&requests[i].predict);
  rn_cancel_destroy(&cancel);
  close_cached(&cached);
}

Test(cache, when_the_first_gives_up_the_next_runs) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  fake_request_t busy, requests[3];
  ask(&cached, &busy, 1, 1);  // keeps the model busy, so that the others queue
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  for (int i = 0; i < 3; ++i) {
    fake_double(&requests[i], 1, 2, 7);
    if (!i) requests[i].predict.cancel = &cancel;
    rn_version_predict(cached.version, &requests[i].predict);
  }
  rn_cancel(&cancel);
  cr_assert_eq(requests[0].code, RN_CODE_CANCELLED);
  run_for(&cached, SECOND);
  for (int i = 1; i < 3; ++i) {
    cr_assert(fake_is_doubled(&requests[i], 1, 2, 7));
    rn_predict_clear(&requests[i].predict);
  }
  cr_assert_eq(cached.cost.model.runs, 2);
  rn_predict_clear(&busy.predict);
  rn_cancel_destroy(&cancel);
  close_cached(&cached);
}

static void failing_run(fake_model_t* fake, rn_backend_run_t* run) { fake->self = run; }
Test(cache, errors_go_to_all_and_are_not_kept) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  cached.cost.model.on_run = failing_run;
  fake_request_t requests[3];
  for (int i = 0; i < 3; ++i) ask(&cached, &requests[i], 1, 7);
  rn_backend_run_t* run = cached.cost.model.self;
  run->done(run, rn_internal("broken"));
  for (int i = 0; i < 3; ++i) {
    cr_assert_eq(requests[i].code, RN_CODE_INTERNAL);
    cr_assert_str_eq(requests[i].message, "broken");
  }
  cr_assert_eq(rn_predict_cache_stats(cached.cache).entries, 0);
  cached.cost.model.on_run = fake_cost_run;
  cr_assert(!is_cached(&cached, 1, 7));
  cr_assert_eq(cached.cost.model.runs, 2);
  close_cached(&cached);
}

Test(cache, keeps_to_its_budget_and_forgets_what_is_not_used) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  cached_t cached;
  fake_time_init(&cached.time, 1);
  fake_cost_init(&cached.cost, &cached.time, 1, 0);
  rn_predict_cache_options_t options = {.max_bytes = 64 << 10,
                                        .env = &cached.time.env,
                                        .allocator = rn_allocator_counting(&counting)};
  OK(rn_predict_cache_create(&options, &cached.cache));
  OK(rn_metrics_create(memory(), &cached.metrics));
  cached.version = make_version(&cached);
  int64_t empty = counting.live_bytes;
  for (int i = 0; i < 20000; ++i) {
    is_cached(&cached, 1, (float)i);
    if (i % 20 == 0) cr_assert_eq(is_cached(&cached, 1, -1), i > 0);  // used often: stays
    cr_assert_leq(rn_predict_cache_stats(cached.cache).bytes, 72 << 10);
    cr_assert_leq(counting.live_bytes - empty, 72 << 10);
  }
  cr_assert_gt(rn_predict_cache_stats(cached.cache).evictions, 19000);
  cr_assert_gt(rn_predict_cache_stats(cached.cache).entries, 50);
  // What is larger than the cache is not kept.
  cr_assert(!is_cached(&cached, 20000, 1));
  cr_assert(!is_cached(&cached, 20000, 1));
  close_cached(&cached);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(cache, entries_die_with_their_version) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  rn_version_t* first = cached.version;
  is_cached(&cached, 1, 1);
  cached.version = make_version(&cached);
  cr_assert(!is_cached(&cached, 1, 1));  // another version, another answer
  cr_assert_eq(rn_predict_cache_stats(cached.cache).entries, 2);
  rn_version_release(first);
  cr_assert_eq(rn_predict_cache_stats(cached.cache).entries, 1);
  cr_assert(is_cached(&cached, 1, 1));
  close_cached(&cached);
}

// A slice of a batch's outputs is not a reason to keep the whole batch.
static void wide_run(fake_model_t* fake, rn_backend_run_t* run) {
  (void)fake;
  rn_tensor_t wide = fake_floats(1000, 2, 0);
  RN_DATA(&wide, float)[0] = 2 * RN_DATA(&run->inputs[0], float)[0];
  RN_DATA(&wide, float)[1] = 2 * RN_DATA(&run->inputs[0], float)[1];
  run->outputs[0] = wide;
  run->outputs[0].inline_dims[0] = 1;
  run->outputs[0].count = 2;
  run->done(run, RN_OK);
}
Test(cache, slices_are_copied) {
  cached_t cached;
  open_cached(&cached, 1 << 20);
  cached.cost.model.on_run = wide_run;
  cr_assert(!is_cached(&cached, 1, 1));
  cr_assert(is_cached(&cached, 1, 1));
  cr_assert_lt(rn_predict_cache_stats(cached.cache).bytes, 3000);
  close_cached(&cached);
}

// Many threads, few keys, a small budget.
typedef struct crowd_t {
  rn_version_t* version;
  int seed;
  _Atomic bool* has_failed;
} crowd_t;

static void* crowd_main(void* self) {
  crowd_t* crowd = self;
  uint32_t random = (uint32_t)crowd->seed * 2654435761u + 1;
  for (int i = 0; i < 2000; ++i) {
    random = random * 1664525 + 1013904223;
    float first = (float)(random >> 16 & 63);
    fake_request_t request;
    fake_double(&request, 1, 2, first);
    rn_version_predict(crowd->version, &request.predict);
    while (!request.answers) sched_yield();
    if (!fake_is_doubled(&request, 1, 2, first)) *crowd->has_failed = true;
    rn_predict_clear(&request.predict);
  }
  return NULL;
}

Test(cache, threads) {
  cached_t cached = {0};
  fake_init(&cached.cost.model);
  rn_predict_cache_options_t options = {
      .max_bytes = 12 << 10, .env = rn_env_system(), .allocator = memory()};
  OK(rn_predict_cache_create(&options, &cached.cache));
  OK(rn_metrics_create(memory(), &cached.metrics));
  fake_time_init(&cached.time, 1);
  cached.time.env = *rn_env_system();
  cached.version = make_version(&cached);
  _Atomic bool has_failed = false;
  crowd_t crowds[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    crowds[i] = (crowd_t){cached.version, i, &has_failed};
    pthread_create(&threads[i], NULL, crowd_main, &crowds[i]);
  }
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  cr_assert(!has_failed);
  rn_predict_cache_stats_t stats = rn_predict_cache_stats(cached.cache);
  cr_assert_gt(stats.hits, 100);
  close_cached(&cached);
}
