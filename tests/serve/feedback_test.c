// Feedback that reaches any of several front ends, which share a store: in memory, a front end
// alone; in Redis, two of them.
#include <criterion/criterion.h>

#include "fake_apps.h"
#include "fake_redis.h"

#define APP \
  "input_type: FLOATS default_output: '-1' latency_slo_micros: 20000 policy { name: 'exp4' }"

static fake_apps_t worlds[2];

// What the front ends have done with feedback for application |name|.
static int count_of(const char* name, const char* outcome) {
  double sum = 0;
  for (int i = 0; i < 2; ++i)
    if (worlds[i].metrics)
      sum += rn_series_value(rn_metrics_series(worlds[i].metrics, RN_METRIC_FEEDBACK_COUNT,
                                               rn_str(name), rn_str(outcome), RN_STR("")));
  return (int)sum;
}

static void wait_for(const char* name, const char* outcome, int count) {
  for (int i = 0; i < 6000 && count_of(name, outcome) < count; ++i) usleep(5000);
  cr_assert_eq(count_of(name, outcome), count, "%s: %d", outcome, count_of(name, outcome));
}

static rn_served_outcome_t feed(fake_apps_t* world, rn_app_t* app, int64_t id, double label) {
  rn_answer_t answer = {.is_set = true, .number = label};
  return rn_app_feedback(world->apps, app, id, &answer);
}

static double share(fake_apps_t* world, rn_app_t* app, const char* user) {
  rn_app_state_t state;
  rn_app_state(world->apps, app, rn_str(user), &state);
  return state.shares[0];
}

static void wait_for_share(fake_apps_t* world, rn_app_t* app, const char* user) {
  for (int i = 0; i < 6000 && !(share(world, app, user) > 0.7); ++i) usleep(5000);
  cr_assert_gt(share(world, app, user), 0.7, "'%s'", user);
}

static int64_t ask(fake_apps_t* world, rn_app_t* app, const char* user, float x) {
  fake_query_t query;
  fake_ask(world, app, &query, user, x);
  return query.query.id;
}

// |asked| answers queries, and |fed| gets their feedback: one front end, or two.
static void check_feedback(fake_apps_t* asked, rn_app_t* app, fake_apps_t* fed, rn_app_t* fed_app) {
  enum { QUERIES = 50 };
  int64_t ids[QUERIES];
  for (int i = 0; i < QUERIES; ++i) ids[i] = ask(asked, app, i % 2 ? "anna" : "", (float)i);
  // Late, and in any order.
  for (int i = QUERIES - 1; i >= 0; --i)
    cr_assert_neq(feed(fed, fed_app, ids[i], i), RN_SERVED_UNKNOWN);
  wait_for("a", "applied", QUERIES);
  wait_for_share(asked, app, "");
  wait_for_share(fed, fed_app, "anna");
  // Again, with labels that say the opposite: nothing changes, whichever front end it reaches.
  for (int i = 0; i < QUERIES; ++i) {
    feed(asked, app, ids[i], i + 1);
    feed(fed, fed_app, ids[i], i + 1);
  }
  wait_for("a", "duplicate", 2 * QUERIES);
  cr_assert_eq(count_of("a", "applied"), QUERIES);
  // No such query, and one of another application, whose own feedback still counts.
  feed(fed, fed_app, 12345, 1);
  wait_for("a", "unknown", 1);
  rn_app_t* other = fake_app(asked, "name: 'b' " APP, 1);
  int64_t id = ask(asked, other, "", 1);
  feed(fed, fed_app, id, 1);
  wait_for("a", "unknown", 2);
  feed(asked, other, id, 1);
  wait_for("b", "applied", 1);
  rn_app_release(other);
}

Test(feedback, to_one_front_end_counts_once) {
  fake_apps_open(&worlds[0], 2, 1);
  worlds[0].arms[1].offset = 1;  // always wrong
  rn_app_t* app = fake_app(&worlds[0], "name: 'a' " APP, 2);
  check_feedback(&worlds[0], app, &worlds[0], app);
  rn_app_release(app);
  fake_apps_close(&worlds[0]);
}

static void open_front_end(fake_apps_t* world, redis_t* redis, uint64_t seed) {
  fake_apps_make(world, 2, seed);
  world->arms[1].offset = 1;
  world->store = redis_store(redis, 0, world->allocator);
  rn_redis_queries_options_t options = {.config = &redis->config,
                                        .claimed = rn_app_judged,
                                        .commit_ns = 1000000,
                                        .retry_ns = 1000000,
                                        .metrics = world->metrics,
                                        .env = rn_env_system(),
                                        .allocator = world->allocator};
  OK(rn_redis_queries_open(&options, &world->queries));
  fake_apps_start(world);
}

// The application that the first front end has defined, as the second one sees it.
static rn_app_t* find_app(fake_apps_t* world) {
  rn_app_t* app = NULL;
  for (int i = 0; i < 6000 && !app; ++i, usleep(5000)) {
    app = rn_apps_find(world->apps, RN_STR("a"));
    if (app && rn_app_definition(app)->model.count < 2) {
      rn_app_release(app);
      app = NULL;
    }
  }
  cr_assert(app);
  return app;
}

static void open_two(redis_t* redis, rn_app_t* apps[2]) {
  if (!redis_open(redis)) cr_skip_test("there is no redis-server");
  for (int i = 0; i < 2; ++i) open_front_end(&worlds[i], redis, 1 + (uint64_t)i);
  apps[0] = fake_app(&worlds[0], "name: 'a' " APP, 2);
  apps[1] = find_app(&worlds[1]);
}

static void close_two(redis_t* redis, rn_app_t* apps[2]) {
  for (int i = 0; i < 2; ++i) {
    rn_app_release(apps[i]);
    fake_apps_close(&worlds[i]);
  }
  redis_close(redis);
}

Test(feedback, to_another_front_end_counts_once, .timeout = 100) {
  redis_t redis;
  rn_app_t* apps[2];
  open_two(&redis, apps);
  check_feedback(&worlds[0], apps[0], &worlds[1], apps[1]);
  close_two(&redis, apps);
}

Test(feedback, to_both_front_ends_at_once_counts_once, .timeout = 100) {
  enum { QUERIES = 300 };
  redis_t redis;
  rn_app_t* apps[2];
  open_two(&redis, apps);
  for (int i = 0; i < QUERIES; ++i) {
    int64_t id = ask(&worlds[i % 2], apps[i % 2], "", (float)i);
    for (int k = 0; k < 2; ++k) feed(&worlds[k], apps[k], id, i);
  }
  wait_for("a", "duplicate", QUERIES);
  wait_for("a", "applied", QUERIES);
  cr_assert_eq(count_of("a", "unknown"), 0);
  close_two(&redis, apps);
}

// A front end that is gone has left its queries behind.
Test(feedback, for_a_front_end_that_has_ended_counts, .timeout = 100) {
  redis_t redis;
  rn_app_t* apps[2];
  open_two(&redis, apps);
  int64_t id = ask(&worlds[0], apps[0], "anna", 1);
  rn_app_release(apps[0]);
  fake_apps_close(&worlds[0]);
  worlds[0] = (fake_apps_t){0};
  feed(&worlds[1], apps[1], id, 1);
  wait_for("a", "applied", 1);
  wait_for_share(&worlds[1], apps[1], "anna");
  rn_app_release(apps[1]);
  fake_apps_close(&worlds[1]);
  redis_close(&redis);
}

static int64_t fifty(fake_arm_t* arm) {
  (void)arm;
  return 50 * MS;
}

Test(feedback, judges_answers_that_came_late, .timeout = 100) {
  redis_t redis;
  rn_app_t* apps[2];
  open_two(&redis, apps);
  worlds[0].arms[0].latency = fifty;  // right, and late; the other one is wrong
  fake_query_t query;
  fake_ask(&worlds[0], apps[0], &query, "", 1);
  fake_time_run(&worlds[0].time, worlds[0].time.now + 30 * MS);
  cr_assert_eq(query.query.missing, 1);
  fake_time_run(&worlds[0].time, worlds[0].time.now + 30 * MS);
  OK(rn_redis_queries_flush(worlds[0].queries));
  feed(&worlds[1], apps[1], query.query.id, 1);
  wait_for("a", "applied", 1);
  wait_for_share(&worlds[1], apps[1], "");
  close_two(&redis, apps);
}

Test(feedback, goes_on_while_redis_is_gone, .timeout = 100) {
  redis_t redis;
  rn_app_t* apps[2];
  open_two(&redis, apps);
  redis_stop(&redis);
  int64_t id = ask(&worlds[0], apps[0], "", 1), later = ask(&worlds[0], apps[0], "", 2);
  cr_assert_eq(feed(&worlds[0], apps[0], id, 1), RN_SERVED_TAKEN);
  wait_for("a", "applied", 1);
  cr_assert_eq(feed(&worlds[1], apps[1], id, 1), RN_SERVED_PASSED_ON);
  cr_assert_eq(feed(&worlds[1], apps[1], later, 2), RN_SERVED_PASSED_ON);
  cr_assert(redis_start(&redis));
  // What waited arrives: the query that had its feedback is known as one, and the other counts.
  wait_for("a", "applied", 2);
  wait_for("a", "duplicate", 1);
  close_two(&redis, apps);
}

Test(feedback, that_waits_for_redis_is_bounded, .timeout = 100) {
  redis_t redis;
  if (!redis_open(&redis)) cr_skip_test("there is no redis-server");
  rn_metrics_t* metrics = NULL;
  rn_redis_queries_t* queries = NULL;
  OK(rn_metrics_create(memory(), &metrics));
  rn_redis_queries_options_t options = {.config = &redis.config,
                                        .claimed = rn_app_judged,
                                        .max_waiting = 2000,
                                        .metrics = metrics,
                                        .env = rn_env_system(),
                                        .allocator = memory()};
  redis_stop(&redis);
  OK(rn_redis_queries_open(&options, &queries));
  for (int i = 1; i <= 100; ++i)
    rn_redis_queries_put(queries, (rn_redis_query_name_t){i, 1}, 0, RN_STR("a query"));
  FAILS(rn_redis_queries_flush(queries), UNAVAILABLE);
  double dropped = rn_series_value(rn_metrics_series(
      metrics, RN_METRIC_STORE_DROPPED, RN_STR("redis_queries"), RN_STR(""), RN_STR("")));
  cr_assert(dropped > 50 && dropped < 100, "%g", dropped);
  rn_redis_claim_t claim = {.name = {1, 1}};
  for (int i = 0; i < 100; ++i)
    rn_redis_queries_put(queries, (rn_redis_query_name_t){i, 1}, 0, RN_STR("a query"));
  cr_assert_not(rn_redis_queries_claim(queries, &claim));
  rn_redis_queries_destroy(queries);
  rn_metrics_destroy(metrics);
  cr_assert(redis_start(&redis));
  redis_close(&redis);
}
