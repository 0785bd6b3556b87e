// The batcher under load, on the simulated clock: throughput and latency with nothing but an
// objective given, the delay that it chooses, and what it does with more than it can answer.
#include "fake_load.h"
#include "fake_profiles.h"

typedef struct scene_t {
  fake_profile_t profile;
  rn_batcher_options_t options;  // the clock is set by play
  load_t load;
  int callers, lanes;
  double noise, warm, seconds;
} scene_t;

static scene_t scene_of(const fake_profile_t* profile) {
  return (scene_t){.profile = *profile,
                   .options = {.is_on = true,
                               .size = {.objective_ns = 20 * MS},
                               .max_wait_ns = -1,
                               .allocator = memory()},
                   .lanes = 1,
                   .noise = 0.1,
                   .warm = 1,
                   .seconds = 2};
}

static load_result_t play(const scene_t* scene) {
  fake_time_t time;
  fake_cost_t cost;
  fake_time_init(&time, 3);
  fake_cost_init(&cost, &time, scene->profile.fixed_us, scene->profile.row_us);
  cost.is_dry = true;
  cost.noise = scene->noise;
  cost.model.base.lanes = scene->lanes;
  rn_batcher_options_t options = scene->options;
  options.timers = fake_timers(&time);
  options.env = &time.env;
  load_t load = scene->load;
  load.time = &time;
  load.objective_ns = 20 * MS;
  OK(rn_batcher_create(&options, &cost.model.base, &load.batcher));
  load_begin(&load, scene->callers);
  fake_time_run(&time, time.now + (int64_t)(scene->warm * 1e9));
  load_result_t result = load_measure(&load, scene->seconds);
  load_end(&load);
  rn_batcher_destroy(load.batcher);
  return result;
}

// Requests per second of batches that take half of the objective.
static double peak_of(const fake_profile_t* profile) {
  double rows = floor((10e3 - profile->fixed_us) / profile->row_us);
  if (rows < 1) rows = 1;
  return rows / (profile->fixed_us + profile->row_us * rows) * 1e6;
}

static void overload(scene_t* scene, double factor) {
  double peak = peak_of(&scene->profile);
  scene->load.rate = factor * peak;
  scene->load.deadline_ns = 20 * MS;
  scene->seconds = peak < 1000 ? 60 : 1;
  scene->warm = peak < 1000 ? 1 : 0.4;
}

static load_result_t play_fixed(scene_t scene, int64_t rows) {
  scene.options.size =
      (rn_batch_size_options_t){.policy = RN_BATCH_FIXED, .max = rows, .objective_ns = 20 * MS};
  scene.options.max_wait_ns = 0;
  return play(&scene);
}

Test(load, only_the_objective_is_given) {
  for (int i = 0; i < FAKE_PROFILES; ++i) {
    scene_t scene = scene_of(&fake_profiles[i]);
    overload(&scene, 2);
    load_result_t learned = play(&scene);
    double best = 0;
    for (int64_t rows = 1; rows < 1200; rows = rows * 7 / 4 + 1) {
      load_result_t fixed = play_fixed(scene, rows);
      if (fixed.p99_ms <= 20 && fixed.good > best) best = fixed.good;
    }
    scene.options.is_on = false;
    load_result_t none = play(&scene);
    cr_log_info("%s: %.0f/s, p99 %.2f ms; best fixed size %.0f/s; none %.0f/s", scene.profile.name,
                learned.good, learned.p99_ms, best, none.good);
    cr_assert_geq(learned.good, 0.95 * best, "%s", scene.profile.name);
    cr_assert_geq(learned.good, 0.99 * none.good, "%s", scene.profile.name);
    cr_assert_leq(learned.p99_ms, 20, "%s", scene.profile.name);
    cr_assert_leq(learned.late, 0.01, "%s", scene.profile.name);
    if (i == 4) cr_assert_geq(learned.good, 25 * none.good);
  }
}

// Clipper's figure 5: a model with a fixed cost, and 20,000 requests per second.
Test(load, delayed_batching) {
  fake_profile_t profile = {"scikit-learn SVM", 180, 2};
  scene_t scene = scene_of(&profile);
  scene.load.rate = 20000;
  load_result_t learned = play(&scene);
  scene.options.is_on = false;
  load_result_t none = play(&scene);
  cr_assert_geq(learned.answered, 3.3 * none.answered);
  cr_assert_lt(learned.p99_ms, 1);
  // Callers that wait for their answers: without a wait, half of them are in a batch.
  scene = scene_of(&profile);
  scene.callers = 20;
  scene.load.callers_us = 10;
  learned = play(&scene);
  scene.options.max_wait_ns = 0;
  load_result_t at_once = play(&scene);
  cr_assert_geq(learned.answered, 1.4 * at_once.answered);
  cr_assert_leq(learned.mean_ms, 0.75 * at_once.mean_ms);
}

Test(load, waiting_costs_little_where_it_cannot_help) {
  static const struct {
    double fixed_us, row_us, rate, callers_us;
    int callers, lanes;
  } rows[] = {{180, 2, 1000, 0, 0, 1},  {180, 2, 5000, 0, 0, 1},  {180, 2, 20000, 0, 0, 1},
              {180, 2, 20000, 0, 0, 4}, {20, 20, 20000, 0, 0, 1}, {180, 2, 0, 200, 20, 1},
              {20, 20, 0, 20, 20, 1},   {180, 2, 0, 10, 1, 1},    {3000, 40, 5000, 0, 0, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    fake_profile_t profile = {"", rows[i].fixed_us, rows[i].row_us};
    scene_t scene = scene_of(&profile);
    scene.load.rate = rows[i].rate;
    scene.load.callers_us = rows[i].callers_us;
    scene.callers = rows[i].callers;
    scene.lanes = rows[i].lanes;
    load_result_t learned = play(&scene);
    scene.options.max_wait_ns = 0;
    load_result_t at_once = play(&scene);
    cr_assert_leq(learned.mean_ms, 1.05 * at_once.mean_ms, "row %zu: %.4f ms instead of %.4f", i,
                  learned.mean_ms, at_once.mean_ms);
    cr_assert_geq(learned.answered, 0.97 * at_once.answered, "row %zu", i);
  }
}

Test(load, overload_does_not_cost_answers) {
  static const double factors[] = {2, 5, 10};
  for (int i = 1; i < FAKE_PROFILES; i += i < 4 ? 3 : 1) {  // the first four are alike
    scene_t scene = scene_of(&fake_profiles[i]);
    overload(&scene, 1);
    double peak = play(&scene).good;
    for (int k = 0; k < 3; ++k) {
      overload(&scene, factors[k]);
      if (scene.seconds > 1) scene.seconds /= factors[k];
      if (factors[k] > 5) scene.seconds /= 2;
      load_result_t result = play(&scene);
      cr_assert_geq(result.good, 0.9 * peak, "%s at %.0f times: %.0f of %.0f", scene.profile.name,
                    factors[k], result.good, peak);
      cr_assert_leq(result.late, 0.02);
    }
  }
}

// A model that turns slower is given fewer requests, although all that it shows at first is that
// its batches are cut off at their deadlines.
Test(load, overload_of_a_model_that_turns_slower) {
  static const double scales[] = {1.3, 2, 5};
  for (size_t i = 0; i < sizeof scales / sizeof *scales; ++i) {
    fake_time_t time;
    fake_cost_t cost;
    fake_time_init(&time, 5);
    fake_cost_init(&cost, &time, 1000, 4000);
    cost.is_dry = cost.can_cancel = true;
    rn_batcher_options_t options = scene_of(&fake_profiles[1]).options;
    options.size.objective_ns = 5 * MS;  // one row per batch
    options.timers = options.watch = fake_timers(&time);
    options.env = &time.env;
    load_t load = {.time = &time, .rate = 2000, .deadline_ns = 100 * MS};
    OK(rn_batcher_create(&options, &cost.model.base, &load.batcher));
    load_begin(&load, 0);
    fake_time_run(&time, time.now + SECOND);
    load_result_t before = load_measure(&load, 1);
    cr_expect_geq(before.good, 180, "%.0f", before.good);
    cost.scale = scales[i];
    fake_time_run(&time, time.now + SECOND / 2);
    load_result_t after = load_measure(&load, 2);
    cr_expect_geq(after.good, 0.9 * 200 / scales[i], "%.0f at %.1f", after.good, scales[i]);
    cost.scale = 1;
    fake_time_run(&time, time.now + SECOND / 2);
    load_result_t again = load_measure(&load, 1);
    cr_expect_geq(again.good, 180, "%.0f after %.1f", again.good, scales[i]);
    load_end(&load);
    rn_batcher_destroy(load.batcher);
  }
}

Test(load, urgent_requests_are_answered) {
  for (int i = 0; i < FAKE_PROFILES - 1; ++i) {  // one row of the last is a quarter of the time
    scene_t scene = scene_of(&fake_profiles[i]);
    overload(&scene, 3);
    scene.load.high_share = 0.2;  // 0.6 of what there is room for
    load_result_t result = play(&scene);
    double high = (double)result.good_by_priority[1] / (double)result.offered_by_priority[1];
    double low = (double)result.good_by_priority[0] / (double)result.offered_by_priority[0];
    cr_assert_geq(high, 0.97, "%s: %.3f", scene.profile.name, high);
    cr_assert_geq(low, 0.05, "%s: %.3f", scene.profile.name, low);
  }
}

Test(load, recovers_after_a_burst) {
  fake_time_t time;
  fake_cost_t cost;
  fake_time_init(&time, 9);
  fake_cost_init(&cost, &time, 500, 20);
  cost.is_dry = true;
  cost.noise = 0.1;
  rn_batcher_options_t options = scene_of(&fake_profiles[1]).options;
  options.timers = fake_timers(&time);
  options.env = &time.env;
  load_t load = {.time = &time, .rate = 24000, .objective_ns = 20 * MS};
  OK(rn_batcher_create(&options, &cost.model.base, &load.batcher));
  load_begin(&load, 0);
  fake_time_run(&time, time.now + SECOND);
  load_result_t quiet = load_measure(&load, 1);
  // Ten times as much, without deadlines: the queue is as long as it may be.
  load.rate = 480000;
  fake_time_run(&time, time.now + SECOND);
  load_result_t burst = load_measure(&load, 0.5);
  cr_assert_gt(burst.refused, 300000);
  cr_assert_gt(burst.answered, 0.9 * peak_of(&fake_profiles[1]));
  cr_assert_lt(burst.slowest_refusal_ms, 0.01);
  load.rate = 10000;
  fake_time_run(&time, time.now + 1500 * MS);  // the backlog of one second, at 80 % of the rate
  load_result_t after = load_measure(&load, 1);
  load.rate = 24000;
  after = load_measure(&load, 1);
  cr_assert_leq(after.mean_ms, 1.1 * quiet.mean_ms);
  cr_assert_eq(after.refused, 0);
  // The same with deadlines: as soon as the burst is over.
  load.deadline_ns = 20 * MS;
  load.rate = 480000;
  fake_time_run(&time, time.now + SECOND);
  load.rate = 24000;
  fake_time_run(&time, time.now + 100 * MS);
  after = load_measure(&load, 1);
  cr_assert_leq(after.mean_ms, 1.1 * quiet.mean_ms);
  cr_assert_eq(after.refused, 0);
  load_end(&load);
  rn_batcher_destroy(load.batcher);
}
