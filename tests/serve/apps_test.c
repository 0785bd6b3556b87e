// Applications: definitions, links, feedback and what is learned from it.
#include <criterion/criterion.h>
#include <stdio.h>
#include <time.h>

#include "../support/memory_place.h"
#include "fake_apps.h"
#include "serve/select/input.h"
#include "serve/select/store_log.h"

#define FLOATS "input_type: FLOATS default_output: '-1' latency_slo_micros: 20000 "

static rn_answer_t number(double value) { return (rn_answer_t){.is_set = true, .number = value}; }

static rn_served_outcome_t feed(fake_apps_t* world, rn_app_t* app, int64_t id, double label) {
  rn_answer_t answer = number(label);
  return rn_app_feedback(world->apps, app, id, &answer);
}

static double share(fake_apps_t* world, rn_app_t* app, const char* user, int arm) {
  rn_app_state_t state;
  rn_app_state(world->apps, app, rn_str(user), &state);
  return state.shares[arm];
}

static rn_status_t add(fake_apps_t* world, const char* text) {
  rn_arena_t arena;
  rn_arena_init(&arena, memory());
  rn_pb_runnel_Application_t* definition = NULL;
  rn_status_t status =
      rn_pb_parse(&rn_pb_runnel_Application_desc, rn_str(text), NULL, &arena, (void**)&definition);
  if (rn_ok(status)) status = rn_apps_add(world->apps, definition);
  rn_arena_clear(&arena);
  return status;
}

Test(apps, definitions_are_checked) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  static const char* const bad[][2] = {
      {FLOATS, "name"},
      {"name: 'a/b' " FLOATS, "'a/b'"},
      {"name: 'admin' " FLOATS, "admin"},
      {"name: 'a' latency_slo_micros: 1", "input type"},
      {"name: 'a' input_type: INTS", "latency_slo_micros"},
      {"name: 'a' " FLOATS "confidence_threshold: 1.5", "confidence_threshold"},
      {"name: 'a' " FLOATS "confidence_threshold: nan", "confidence_threshold"},
      {"name: 'a' " FLOATS "policy { name: 'exp5' }", "'exp5'"},
      {"name: 'a' " FLOATS "policy { name: 'exp3' eta: -1 } model { name: 'm0' }", "eta"},
      {"name: 'a' " FLOATS "policy { name: 'split' } model { name: 'm0' }", "shares"},
      {"name: 'a' " FLOATS "model { name: 'm0' } model { name: 'm0' }", "twice"},
      {"name: 'a' " FLOATS "model { name: '' }", "name"},
      {"name: 'a' " FLOATS "loss: 7", "loss"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
    FAILS_WITH(add(&world, bad[i][0]), INVALID_ARGUMENT, bad[i][1]);
  OK(add(&world, "name: 'a' " FLOATS));
  FAILS(add(&world, "name: 'a' " FLOATS), ALREADY_EXISTS);
  rn_str_t model = RN_STR("m0");
  FAILS(rn_apps_link(world.apps, RN_STR("b"), &model, 1), NOT_FOUND);
  FAILS(rn_apps_unlink(world.apps, RN_STR("a"), &model, 1), NOT_FOUND);
  OK(rn_apps_remove(world.apps, RN_STR("a")));
  FAILS(rn_apps_remove(world.apps, RN_STR("a")), NOT_FOUND);
  cr_assert_null(rn_apps_find(world.apps, RN_STR("a")));
  fake_apps_close(&world);
}

Test(apps, feedback_counts_once_late_and_in_any_order) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  world.arms[1].offset = 1;  // always wrong
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 2);
  int64_t ids[50];
  for (int i = 0; i < 50; ++i) {
    fake_query_t query;
    fake_ask(&world, app, &query, "", (float)i);
    ids[i] = query.query.id;
    cr_assert(ids[i] > 0 && ids[i] < INT64_C(1) << 53);
    if (i) cr_assert_neq(ids[i], ids[i - 1]);
  }
  cr_assert_float_eq(share(&world, app, "", 0), 0.5, 1e-6);
  for (int i = 49; i >= 0; --i) cr_assert_eq(feed(&world, app, ids[i], i), RN_SERVED_TAKEN);
  double after = share(&world, app, "", 0);
  cr_assert_gt(after, 0.9);
  // Again, with labels that say the opposite: nothing changes.
  for (int i = 0; i < 50; ++i) cr_assert_eq(feed(&world, app, ids[i], i + 1), RN_SERVED_DUPLICATE);
  cr_assert_eq(share(&world, app, "", 0), after);
  cr_assert_eq(feed(&world, app, 12345, 1), RN_SERVED_UNKNOWN);
  // Ids belong to their application.
  rn_app_t* other = fake_app(&world, "name: 'b' " FLOATS, 1);
  fake_query_t query;
  fake_ask(&world, app, &query, "", 1);
  cr_assert_eq(feed(&world, other, query.query.id, 1), RN_SERVED_UNKNOWN);
  cr_assert_eq(feed(&world, app, query.query.id, 1), RN_SERVED_TAKEN);
  rn_app_release(other);
  rn_app_release(app);
  fake_apps_close(&world);
}

static int64_t fifty(fake_arm_t* arm) {
  (void)arm;
  return 50 * MS;
}

Test(apps, late_answers_are_judged_too) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  world.arms[0].offset = 1;
  world.arms[1].latency = fifty;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 2);
  fake_query_t query;
  fake_ask(&world, app, &query, "", 1);
  fake_time_run(&world.time, world.time.now + 30 * MS);
  cr_assert_eq(query.query.missing, 1);
  fake_time_run(&world.time, world.time.now + 30 * MS);  // now it is here
  cr_assert_eq(feed(&world, app, query.query.id, 1), RN_SERVED_TAKEN);
  cr_assert_gt(share(&world, app, "", 1), 0.75, "the late model was right, the other was not");
  rn_app_release(app);
  fake_apps_close(&world);
}

// A model that answers nothing is left, although no feedback can tell that its answer is wrong.
Test(apps, a_model_that_only_fails_is_left) {
  static fake_apps_t world;
  fake_apps_open(&world, 2, 1);
  world.arms[0].fails = true;
  const char* names[] = {"exp3", "thompson", "epsilon_greedy"};
  for (int n = 0; n < 3; ++n) {
    char text[200];
    snprintf(text, sizeof text, "name: 'a%d' " FLOATS "policy { name: '%s' }", n, names[n]);
    rn_app_t* app = fake_app(&world, text, 2);
    int last = 0;
    for (int i = 0; i < 1000; ++i) {
      fake_query_t query;
      fake_ask(&world, app, &query, "", 1);
      cr_assert_eq(feed(&world, app, query.query.id, 1), RN_SERVED_TAKEN);
      if (i >= 900) last += (query.query.marks & RN_MARK_DEFAULT) != 0;
    }
    cr_assert_leq(last, 20, "%s: %d", names[n], last);
    rn_app_release(app);
  }
  fake_apps_close(&world);
}

// Clipper's feedback: user, input and label.
Test(apps, feedback_by_input_joins_the_query_or_asks_every_model) {
  static fake_apps_t world;
  fake_apps_open(&world, 3, 1);
  world.arms[1].offset = 1;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp3' }", 2);
  fake_query_t query, second;
  fake_ask(&world, app, &query, "anna", 5);
  int runs = world.arms[0].model.runs + world.arms[1].model.runs;
  cr_assert_eq(runs, 1);
  rn_answer_t label = number(5);
  for (int round = 0; round < 2; ++round) {
    second = (fake_query_t){.world = &world};
    second.query.input = fake_floats(1, 1, 5);
    int64_t dims[] = {1};
    rn_tensor_t flat;
    OK(rn_tensor_reshape(&second.query.input, RN_FLOAT, (rn_shape_t){1, dims}, &flat));
    rn_tensor_clear(&second.query.input);
    second.query.input = flat;
    second.query.user = RN_STR("anna");
    second.query.begun_ns = world.time.now;
    second.query.label = &label;
    second.query.done = fake_query_done;
    rn_app_predict(world.apps, app, &second.query);
    cr_assert_eq(second.answers, 1);
    cr_assert_eq(second.code, 0);
    // First the query itself is found; the second time, the models are asked.
    if (!round) cr_assert_eq(second.query.id, query.query.id);
    cr_assert_eq(world.arms[0].model.runs + world.arms[1].model.runs, runs + 2 * round);
  }
  cr_assert_eq(feed(&world, app, query.query.id, 5), RN_SERVED_DUPLICATE);
  cr_assert_gt(share(&world, app, "anna", 0), share(&world, app, "anna", 1));
  rn_app_release(app);
  fake_apps_close(&world);
}

Test(apps, users_begin_with_what_all_users_taught_and_then_differ) {
  static fake_apps_t world;
  fake_apps_open(&world, 3, 1);
  world.arms[1].offset = 1;
  world.arms[2].offset = 2;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 3);
  fake_query_t query;
  for (int i = 0; i < 30; ++i) {
    char user[16];
    snprintf(user, sizeof user, "user%d", i);
    fake_ask(&world, app, &query, user, 1);
    feed(&world, app, query.query.id, 1);
  }
  cr_assert_gt(share(&world, app, "new", 0), 0.7);
  rn_app_state_t state;
  rn_app_state(world.apps, app, RN_STR("new"), &state);
  cr_assert(!state.is_own);
  // For this one, the third model is right.
  for (int i = 0; i < 3; ++i) {
    fake_ask(&world, app, &query, "odd", 1);
    feed(&world, app, query.query.id, 3);
  }
  cr_assert_gt(share(&world, app, "odd", 2), 0.8);
  fake_ask(&world, app, &query, "odd", 1);
  cr_assert_eq(query.query.answer.number, 3);
  fake_ask(&world, app, &query, "user1", 1);
  cr_assert_eq(query.query.answer.number, 1);
  rn_app_state(world.apps, app, RN_STR("odd"), &state);
  cr_assert(state.is_own);
  rn_app_release(app);
  fake_apps_close(&world);
}

Test(apps, definitions_links_and_states_survive_a_restart) {
  static fake_apps_t world;
  place_t place;
  open_place(&place);
  fake_apps_open(&world, 3, 1);
  rn_apps_destroy(world.apps);
  rn_state_store_destroy(world.store);
  rn_store_log_options_t options = {
      .folder = "states", .env = &place.env, .allocator = world.allocator};
  OK(rn_store_log_open(&options, &world.store));
  fake_apps_start(&world);
  world.arms[1].offset = 1;
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 3);
  rn_str_t third = RN_STR("m2");
  OK(rn_apps_unlink(world.apps, RN_STR("a"), &third, 1));
  OK(rn_apps_set_version(world.apps, RN_STR("m0"), 1));
  rn_app_release(app);
  app = rn_apps_find(world.apps, RN_STR("a"));
  fake_query_t query;
  for (int i = 0; i < 20; ++i) {
    fake_ask(&world, app, &query, "anna", 1);
    cr_assert_eq(query.query.asked, 2);
    feed(&world, app, query.query.id, 1);
  }
  double before = share(&world, app, "anna", 0);
  rn_app_release(app);
  rn_apps_destroy(world.apps);
  rn_state_store_destroy(world.store);
  OK(rn_store_log_open(&options, &world.store));
  fake_apps_start(&world);
  app = rn_apps_find(world.apps, RN_STR("a"));
  cr_assert(app);
  cr_assert_eq(share(&world, app, "anna", 0), before);
  cr_assert_eq(share(&world, app, "anna", 2), 0);
  cr_assert_eq(rn_apps_version(world.apps, RN_STR("m0")), 1);
  cr_assert_eq(feed(&world, app, query.query.id, 1), RN_SERVED_UNKNOWN);
  rn_app_release(app);
  fake_apps_close(&world);
  rn_memory_fs_destroy(place.fs);
}

Test(apps, a_file_defines_applications_and_keeps_what_was_learned) {
  static fake_apps_t world;
  place_t place;
  open_place(&place);
  fake_apps_open(&world, 3, 1);
  rn_memory_fs_install(place.fs, &world.time.env);
  OK(rn_fs_write(&world.time.env, "apps",
                 RN_STR("# two\napplication { name: 'a' " FLOATS
                        "policy { name: 'exp4' } model { name: 'm0' } model { name: 'm1' } }\n"
                        "application { name: 'b' input_type: STRINGS latency_slo_micros: 5000 "
                        "policy { name: 'split' } model { name: 'm0' share: 9 } "
                        "model { name: 'm1' share: 1 } }")));
  OK(rn_apps_read_file(world.apps, "apps"));
  rn_app_t* app = rn_apps_find(world.apps, RN_STR("a"));
  world.arms[0].offset = 1;
  fake_query_t query;
  for (int i = 0; i < 20; ++i) {
    fake_ask(&world, app, &query, "", 1);
    feed(&world, app, query.query.id, 1);
  }
  double before = share(&world, app, "", 1);
  cr_assert_gt(before, 0.9);
  rn_app_release(app);
  // The order changes, and m2 takes the place of m0: m1 keeps its weight.
  OK(rn_fs_write(&world.time.env, "apps",
                 RN_STR("application { name: 'a' " FLOATS
                        "policy { name: 'exp4' } model { name: 'm2' } model { name: 'm1' } }")));
  OK(rn_apps_read_file(world.apps, "apps"));
  app = rn_apps_find(world.apps, RN_STR("a"));
  cr_assert_eq(share(&world, app, "", 0), 0);
  cr_assert_gt(share(&world, app, "", 1), share(&world, app, "", 2));
  rn_app_release(app);
  // Nothing changes if one of them is bad.
  OK(rn_fs_write(&world.time.env, "apps",
                 RN_STR("application { name: 'c' " FLOATS "} application { name: 'd' }")));
  FAILS_WITH(rn_apps_read_file(world.apps, "apps"), INVALID_ARGUMENT, "'d'");
  cr_assert_null(rn_apps_find(world.apps, RN_STR("c")));
  OK(rn_fs_write(&world.time.env, "apps", RN_STR("application { nme: 'c' }")));
  FAILS_WITH(rn_apps_read_file(world.apps, "apps"), INVALID_ARGUMENT, "apps");
  FAILS_WITH(rn_apps_check_file(&world.time.env, "apps", memory()), INVALID_ARGUMENT, "apps");
  FAILS_WITH(rn_apps_check_file(&world.time.env, "nowhere", memory()), NOT_FOUND, "nowhere");
  fake_apps_close(&world);
  rn_memory_fs_destroy(place.fs);
}

// The window of queries that wait for feedback is bounded by count and by bytes.
Test(apps, the_oldest_queries_leave_the_window) {
  rn_served_t* served = NULL;
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  OK(rn_served_create(rn_env_system(), rn_allocator_counting(&counting), 1024, 100000, &served));
  rn_served_query_t query = {.app = RN_STR("a"), .user = RN_STR("anna")};
  query.selection = (rn_selection_t){.run = 3, .needed = 3, .served = -1, .probability = 1};
  query.arrived = 1;
  char text[] = "a label that takes some bytes";
  query.answers[0] =
      (rn_answer_t){.is_set = true, .is_text = true, .text = text, .size = sizeof text - 1};
  int64_t first = 0, last = 0;
  for (int i = 0; i < 5000; ++i) {
    query.id = last = rn_served_next_id(served);
    if (!first) first = last;
    query.hash = (uint64_t)i;
    rn_served_put(served, &query);
    rn_served_add(served, query.id, 1, &query.answers[0]);
    cr_assert_leq(rn_served_stats(served).bytes, 100000 + 200);
  }
  cr_assert_leq(counting.live_bytes, 140000);
  char user[RN_SERVED_USER];
  rn_served_query_t out;
  cr_assert_eq(rn_served_take(served, RN_STR("a"), first, user, &out), RN_SERVED_UNKNOWN);
  cr_assert_eq(rn_served_find(served, 4999), last);
  cr_assert_eq(rn_served_take(served, RN_STR("a"), last, user, &out), RN_SERVED_TAKEN);
  cr_assert_eq(out.arrived, 3);
  cr_assert(rn_str_is(out.user, "anna"));
  for (int i = 0; i < 2; ++i) rn_answer_clear(&out.answers[i], rn_allocator_counting(&counting));
  cr_assert_eq(rn_served_take(served, RN_STR("a"), last, user, &out), RN_SERVED_DUPLICATE);
  rn_served_destroy(served);
  cr_assert_eq(counting.live_bytes, 0);
}

// The goal is 11,000 updates per second on two cores.
Test(apps, feedback_is_quick) {
  static fake_apps_t world;
  fake_apps_open(&world, 8, 1);
  rn_app_t* app = fake_app(&world, "name: 'a' " FLOATS "policy { name: 'exp4' }", 8);
  enum { TIMES = 20000 };
  static int64_t ids[TIMES];
  for (int i = 0; i < TIMES; ++i) {
    fake_query_t query;
    char user[16];
    snprintf(user, sizeof user, "user%d", i % 5000);
    fake_ask(&world, app, &query, user, 1);
    ids[i] = query.query.id;
  }
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < TIMES; ++i) feed(&world, app, ids[i], i % 3);
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds =
      (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
  cr_log_info("%.0f updates per second", TIMES / seconds);
  cr_assert_gt(TIMES / seconds, 1100);
  rn_app_release(app);
  fake_apps_close(&world);
}

Test(apps, inputs_are_fitted_to_the_models_port) {
  static const int64_t image[] = {-1, 2, 3}, row[] = {-1, -1}, one[] = {-1}, three[] = {3, -1};
  struct {
    rn_dtype_t from, to;
    rn_shape_t shape;
    int64_t count;
    const char* dims;  // NULL: does not fit
  } cases[] = {
      {RN_FLOAT, RN_FLOAT, {2, row}, 6, "[1,6]"},   {RN_FLOAT, RN_FLOAT, {3, image}, 6, "[1,2,3]"},
      {RN_FLOAT, RN_FLOAT, {3, image}, 5, NULL},    {RN_FLOAT, RN_FLOAT, {1, one}, 1, "[1]"},
      {RN_FLOAT, RN_FLOAT, {1, one}, 2, NULL},      {RN_FLOAT, RN_FLOAT, {-1, NULL}, 4, "[1,4]"},
      {RN_FLOAT, RN_FLOAT, {2, three}, 6, NULL},    {RN_DOUBLE, RN_FLOAT, {2, row}, 3, "[1,3]"},
      {RN_INT64, RN_FLOAT, {2, row}, 3, "[1,3]"},   {RN_INT64, RN_INT32, {2, row}, 3, "[1,3]"},
      {RN_FLOAT, RN_INT32, {2, row}, 3, NULL},      {RN_UINT8, RN_UINT8, {2, row}, 3, "[1,3]"},
      {RN_UINT8, RN_STRING, {1, one}, 3, "[1]"},    {RN_STRING, RN_STRING, {1, one}, 1, "[1]"},
      {RN_STRING, RN_STRING, {2, row}, 1, "[1,1]"}, {RN_STRING, RN_FLOAT, {2, row}, 1, NULL},
      {RN_FLOAT, RN_STRING, {1, one}, 1, NULL},     {RN_FLOAT, RN_RESOURCE, {2, row}, 1, NULL},
      {RN_INT64, RN_INT8, {2, row}, 300, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rn_tensor_t in, out;
    OK(rn_tensor_create(memory(), cases[i].from, (rn_shape_t){1, &cases[i].count}, &in));
    for (int64_t k = 0; k < in.count; ++k) {
      if (in.dtype == RN_FLOAT) RN_DATA(&in, float)[k] = (float)k;
      if (in.dtype == RN_DOUBLE) RN_DATA(&in, double)[k] = (double)k;
      if (in.dtype == RN_INT64) RN_DATA(&in, int64_t)[k] = k;
      if (in.dtype == RN_UINT8) RN_DATA(&in, uint8_t)[k] = (uint8_t)k;
    }
    rn_serve_port_t port = {.name = RN_STR("x"), .dtype = cases[i].to, .shape = cases[i].shape};
    rn_status_t status = rn_app_input_fit(&in, &port, memory(), &out);
    if (cases[i].dims) {
      OK(status);
      rn_strbuf_t text;
      rn_strbuf_init(&text, memory());
      rn_shape_print(&text, rn_tensor_shape(&out));
      cr_assert_str_eq(text.data, cases[i].dims, "case %zu", i);
      rn_strbuf_clear(&text);
      if (out.dtype == RN_INT32) cr_assert_eq(RN_DATA(&out, int32_t)[2], 2);
    } else {
      FAILS(status, INVALID_ARGUMENT);
    }
    rn_tensor_clear(&in);
    rn_tensor_clear(&out);
  }
}
