// The size of batches: Clipper's policy to the letter, and the one that learns the cost of a batch,
// on six models like those of Clipper's figures 3 and 4.
#include "serve/model/batch_size.h"

#include "fake_profiles.h"
#include "fake_time.h"

static rn_batch_size_t* make(rn_batch_policy_t policy, int64_t max) {
  rn_batch_size_options_t options = {.policy = policy, .objective_ns = 20 * MS, .max = max};
  rn_batch_size_t* size;
  OK(rn_batch_size_create(&options, memory(), &size));
  return size;
}

Test(batch_size, aimd_is_clippers) {
  rn_batch_size_t* size = make(RN_BATCH_AIMD, 0);
  static const struct {
    double ms;
    int64_t limit;
  } rows[] = {{1, 3},  {17.9, 5}, {18, 5},  {19.9, 5}, {20, 4}, {17, 6},    {1, 8},
              {1, 10}, {1, 12},   {30, 10}, {30, 9},   {30, 8}, {18.01, 8}, {30, 7},
              {30, 6}, {30, 5},   {30, 4},  {30, 3},   {30, 2}, {30, 1},    {30, 1}};
  cr_assert_eq(rn_batch_size_limit(size), 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_batch_size_observe(size, rn_batch_size_limit(size), (int64_t)(rows[i].ms * 1e6));
    cr_assert_eq(rn_batch_size_limit(size), rows[i].limit, "step %zu", i);
  }
  rn_batch_size_observe(size, 1, MS);
  cr_assert_eq(rn_batch_size_limit(size), 3);
  rn_batch_size_observe(size, 2, MS);  // not full: says nothing about a larger one
  cr_assert_eq(rn_batch_size_limit(size), 3);
  rn_batch_size_destroy(size);
}

Test(batch_size, fixed_stays) {
  rn_batch_size_t* size = make(RN_BATCH_FIXED, 37);
  for (int i = 0; i < 100; ++i) {
    cr_assert_eq(rn_batch_size_limit(size), 37);
    rn_batch_size_observe(size, 37, 100 * MS);
  }
  cr_assert_geq(rn_batch_size_expect(size, 37), 90 * MS);
  rn_batch_size_destroy(size);
}

static int64_t cost_of(fake_time_t* time, const fake_profile_t* profile, int64_t rows,
                       double scale) {
  double us = (profile->fixed_us + profile->row_us * (double)rows) * scale;
  us *= 1 + 0.1 * (2 * fake_uniform(time) - 1);
  return (int64_t)(us * 1000);
}

// Runs |count| full batches; returns how many of the last |last| took longer than |limit_ns|.
static int run_full(rn_batch_size_t* size, fake_time_t* time, const fake_profile_t* profile,
                    int count, int last, double scale, int64_t limit_ns) {
  int over = 0;
  for (int i = 0; i < count; ++i) {
    int64_t rows = rn_batch_size_limit(size), ns = cost_of(time, profile, rows, scale);
    rn_batch_size_observe(size, rows, ns);
    if (i >= count - last && ns > limit_ns) ++over;
  }
  return over;
}

Test(batch_size, learns_from_nothing_within_fifty_batches) {
  for (int i = 0; i < FAKE_PROFILES; ++i) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const fake_profile_t* profile = &fake_profiles[i];
      fake_time_t time;
      fake_time_init(&time, seed);
      rn_batch_size_t* size = make(RN_BATCH_LEARN, 0);
      run_full(size, &time, profile, 50, 0, 1, 0);
      int64_t rows = rn_batch_size_limit(size);
      // What a row costs, against the best that fits into the time.
      double best = floor((12e3 - profile->fixed_us) / profile->row_us);
      if (best < 1) best = 1;
      double per_row = profile->fixed_us / (double)rows + profile->row_us;
      double best_row = profile->fixed_us / best + profile->row_us;
      cr_assert_leq(per_row, best_row * 1.08, "%s: %lld rows after 50 batches", profile->name,
                    (long long)rows);
      int over = run_full(size, &time, profile, 1000, 1000, 1, 20 * MS * 7 / 10);
      cr_assert_leq(over, 10, "%s", profile->name);
      rn_batch_size_destroy(size);
    }
  }
}

Test(batch_size, a_step_is_learned_within_fifty_batches) {
  for (int i = 0; i < FAKE_PROFILES; ++i) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const fake_profile_t* profile = &fake_profiles[i];
      fake_time_t time;
      fake_time_init(&time, seed);
      rn_batch_size_t* size = make(RN_BATCH_LEARN, 0);
      run_full(size, &time, profile, 500, 0, 1, 0);
      int64_t before = rn_batch_size_limit(size);
      // One row of the slowest model alone takes the objective now.
      int64_t limit = 4 * (profile->fixed_us + profile->row_us) > 12e3 ? 23 * MS : 14 * MS;
      int over = run_full(size, &time, profile, 50, 40, 4, limit);
      cr_assert_leq(over, 1, "%s: %d", profile->name, over);
      over = run_full(size, &time, profile, 1000, 1000, 4, limit);
      cr_assert_leq(over, 10, "%s", profile->name);
      run_full(size, &time, profile, 300, 0, 1, limit);
      cr_assert_geq(rn_batch_size_limit(size), before / 2, "%s", profile->name);
      rn_batch_size_destroy(size);
    }
  }
}

// One row takes longer than the objective allows. Rows that cost little more are taken along; rows
// that cost as much as the first are not.
Test(batch_size, a_lost_objective_does_not_cost_throughput) {
  static const struct {
    fake_profile_t profile;
    int64_t least, most;
  } rows[] = {{{"slow start", 30000, 100}, 75, 151},
              {{"slow everywhere", 100, 30000}, 1, 1},
              {{"both", 15000, 15000}, 1, 2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      fake_time_t time;
      fake_time_init(&time, seed);
      rn_batch_size_t* size = make(RN_BATCH_LEARN, 0);
      run_full(size, &time, &rows[i].profile, 50, 0, 1, 0);
      double sum = 0;
      for (int turn = 0; turn < 1000; ++turn) {
        run_full(size, &time, &rows[i].profile, 1, 0, 1, 0);
        sum += (double)rn_batch_size_limit(size) / 1000;
      }
      cr_assert(sum >= (double)rows[i].least && sum <= (double)rows[i].most + 0.2,
                "%s: %.1f rows on average", rows[i].profile.name, sum);
      rn_batch_size_destroy(size);
    }
  }
}

Test(batch_size, knows_the_cost_after_a_long_time_too) {
  fake_profile_t profile = {"small batches", 180, 2};
  fake_time_t time;
  fake_time_init(&time, 5);
  rn_batch_size_t* size = make(RN_BATCH_LEARN, 0);
  for (int i = 0; i < 100000; ++i) {
    int64_t rows = 1;
    while (fake_uniform(&time) < 0.25) ++rows;
    if (rows > rn_batch_size_limit(size)) rows = rn_batch_size_limit(size);
    int64_t ns = cost_of(&time, &profile, rows, fake_uniform(&time) < 0.001 ? 2 : 1);
    rn_batch_size_observe(size, rows, ns);
    if (i < 200) continue;
    cr_assert_gt(rn_batch_size_limit(size), 4);
    cr_assert_gt(rn_batch_size_fixed(size), 120 * US);
    cr_assert_lt(rn_batch_size_fixed(size), 230 * US);
  }
  rn_batch_size_destroy(size);
}

// A machine that is busy with other things: one batch in five takes 30 ms longer, whatever its
// size. Smaller batches would not help, and would answer less.
Test(batch_size, a_busy_machine_does_not_make_batches_small) {
  for (int i = 0; i < FAKE_PROFILES - 1; ++i) {
    fake_time_t time;
    fake_time_init(&time, 7);
    rn_batch_size_t* size = make(RN_BATCH_LEARN, 0);
    double rows_run = 0, taken_us = 0;
    for (int k = 0; k < 5000; ++k) {
      int64_t rows = rn_batch_size_limit(size);
      int64_t ns = cost_of(&time, &fake_profiles[i], rows, 1);
      if (fake_uniform(&time) < 0.2) ns += 30 * MS;
      rn_batch_size_observe(size, rows, ns);
      rows_run += (double)rows;
      taken_us += (double)ns / 1000;
    }
    double alone = 1e6 / (fake_profiles[i].fixed_us + fake_profiles[i].row_us + 6000);
    cr_assert_gt(rows_run / taken_us * 1e6, 20 * alone, "%s: %.0f/s", fake_profiles[i].name,
                 rows_run / taken_us * 1e6);
    rn_batch_size_destroy(size);
  }
}
