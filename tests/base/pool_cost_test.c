// The cost model of loops, with times that the test makes up: no clock, no threads.
#include "base/pool_cost.h"

#include <criterion/criterion.h>

static rn_pool_costs_t costs;

static void body(void* arg, int64_t begin, int64_t end) { (void)arg, (void)begin, (void)end; }

typedef double (*curve_t)(int threads);

// Runs |loops| loops whose times follow |curve|; returns the sum of the times, and how often a loop
// got each number of threads.
static double simulate(const rn_pool_work_t* work, int most, curve_t curve, int loops, int* used) {
  double total = 0;
  for (int i = 0; i < loops; ++i) {
    rn_pool_choice_t choice = rn_pool_cost_choose(&costs, work, most);
    cr_assert(choice.threads >= 1 && choice.threads <= most);
    double time = curve(choice.threads);
    if (i % 37 == 5) time += 4e6;  // an interruption
    rn_pool_cost_record(&choice, most, (int64_t)time);
    total += curve(choice.threads);
    if (used) used[choice.threads]++;
  }
  return total;
}

static double shorter(int threads) { return 100e3 / threads; }
static double longer(int threads) { return 10e3 + 2e3 * threads; }
static double bent(int threads) { return 16e3 / threads + 1e3 * threads; }  // least at 4
static double slow(int threads) { return 50e6 / threads; }
static double flat(int threads) { return 20e3 + 0 * threads; }

static const struct {
  curve_t curve;
  int best;
} rows[] = {{shorter, 16}, {longer, 1}, {bent, 4}, {slow, 16}, {flat, 0}};

Test(pool_cost, finds_the_best_number_of_threads) {
  for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
    rn_pool_work_t work = {.count = 100 + (int64_t)r, .grain = 1, .body = body};
    int used[17] = {0};
    simulate(&work, 16, rows[r].curve, 1000, NULL);
    double total = simulate(&work, 16, rows[r].curve, 10000, used);
    double best = rows[r].best ? rows[r].curve(rows[r].best) : rows[r].curve(1);
    // What trials cost.
    cr_assert(total < 1.05 * 10000 * best, "row %zu: %g instead of %g", r, total / 10000, best);
    if (rows[r].best) cr_assert_gt(used[rows[r].best], 9000, "row %zu", r);
  }
}

static double crowded(int threads) { return 4e6 / threads + 0.3e6 * threads; }  // least at 4

// Long loops are hardly tried with fewer threads, since each trial costs milliseconds; but if fewer
// are better, they get fewer.
Test(pool_cost, long_loops) {
  rn_pool_work_t work = {.count = 7, .grain = 1, .body = body};
  int used[17] = {0};
  double total = simulate(&work, 12, slow, 5000, used);
  cr_assert_geq(used[12], 4980);
  cr_assert_eq(used[12] + used[8], 5000);
  cr_assert_lt(total, 1.005 * 5000 * slow(12));
  rn_pool_work_t other = {.count = 77, .grain = 1, .body = body};
  simulate(&other, 16, crowded, 300, NULL);
  int then[17] = {0};
  simulate(&other, 16, crowded, 1000, then);
  cr_assert_gt(then[4], 900);
}

Test(pool_cost, follows_a_change) {
  rn_pool_work_t work = {.count = 8, .grain = 1, .body = body};
  int used[17] = {0};
  simulate(&work, 16, shorter, 20000, NULL);
  simulate(&work, 16, longer, 2000, NULL);
  simulate(&work, 16, longer, 2000, used);
  cr_assert_gt(used[1], 1800);
  simulate(&work, 16, shorter, 2000, NULL);
  memset(used, 0, sizeof used);
  simulate(&work, 16, shorter, 2000, used);
  cr_assert_gt(used[16], 1800);
}

// Loops that differ in what names them have figures of their own, whatever the most threads are.
Test(pool_cost, tells_loops_apart) {
  rn_pool_work_t a = {.count = 9, .grain = 1, .body = body}, b = a;
  b.kind = 1;
  for (int most = 2; most <= 64; most += 1 + most / 3)
    for (int turn = 0; turn < 200; ++turn) {
      simulate(&a, most, shorter, 10, NULL);
      simulate(&b, most, longer, 10, NULL);
    }
  int used_a[65] = {0}, used_b[65] = {0};
  simulate(&a, 33, shorter, 2000, NULL);
  simulate(&b, 33, longer, 2000, NULL);
  simulate(&a, 33, shorter, 1000, used_a);
  simulate(&b, 33, longer, 1000, used_b);
  cr_assert_gt(used_a[32] + used_a[33], 900);  // much the same
  cr_assert_gt(used_b[1], 900);
}

// The loops of a large network, one after the other, step after step: none takes another's place.
Test(pool_cost, remembers_hundreds_of_loops) {
  enum { LOOPS = 600 };
  rn_pool_work_t loops[LOOPS];
  for (int l = 0; l < LOOPS; ++l)
    loops[l] = (rn_pool_work_t){.count = 50 + l, .grain = 1, .body = body, .kind = (uint64_t)l};
  for (int step = 0; step < 1500; ++step)
    for (int l = 0; l < LOOPS; ++l) simulate(&loops[l], 16, longer, 1, NULL);
  int used[17] = {0};
  for (int step = 0; step < 100; ++step)
    for (int l = 0; l < LOOPS; ++l) simulate(&loops[l], 16, longer, 1, used);
  cr_assert_gt(used[1], LOOPS * 90);
}
