// The search for a placement (place/auto/search.h) against all placements of small graphs, its
// constraints on random graphs, and its time on a large one.
#include "place/auto/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "place/auto/starts.h"
#include "workloads.h"

static rn_search_result_t find_within(draft_t* draft, const int32_t* start, int64_t budget) {
  rn_search_result_t result;
  rn_search_options_t options = {.start = start, .budget = budget};
  OK(rn_workload_finish(&draft->work, &draft->arena));
  OK(rn_search(&draft->work, &draft->fleet, &options, &draft->arena, &result));
  return result;
}

static rn_search_result_t find(draft_t* draft, const int32_t* start) {
  return find_within(draft, start, 0);
}

// The best of all placements.
static rn_forecast_t best_of_all(draft_t* draft) {
  rn_forecaster_t* forecaster = NULL;
  OK(rn_forecaster_create(&draft->work, &draft->fleet, rn_allocator_system(), &forecaster));
  int32_t devices[16] = {0}, groups = draft->work.group_count, count = draft->work.device_count;
  rn_forecast_t best = {.over_bytes = INT64_MAX}, now;
  int32_t g = 0;
  while (g < groups) {
    bool may = true;
    for (int32_t i = 0; i < groups; ++i) may = may && draft->work.allowed[i] >> devices[i] & 1;
    rn_forecast(forecaster, devices, &now);
    if (may && rn_forecast_is_better(&now, &best)) best = now;
    for (g = 0; g < groups && ++devices[g] == count; ++g) devices[g] = 0;
  }
  rn_forecaster_destroy(forecaster);
  return best;
}

// Joins some nodes into groups, forbids some devices, and limits memory.
static void constrain(draft_t* draft, uint32_t* state, int32_t* start) {
  rn_workload_t* w = &draft->work;
  int32_t groups = w->node_count * 3 / 4 + 1;
  uint64_t all = ((uint64_t)1 << w->device_count) - 1;
  w->group_count = groups;
  for (int32_t n = 0; n < w->node_count; ++n)
    w->group[n] = n < groups ? n : (int32_t)draw(state, (uint32_t)groups);
  for (int32_t g = 0; g < groups; ++g) {
    w->allowed[g] = draw(state, 4) ? all : (uint64_t)1 << draw(state, (uint32_t)w->device_count);
    start[g] = __builtin_ctzll(w->allowed[g]);
  }
  for (int32_t n = 0; n < w->node_count; ++n)
    for (int32_t d = 1; d < w->device_count; ++d)
      draft_cost(draft, n, d, w->cost_ns[n * w->device_count] * (d + 1) / 2);
}

Test(search, is_near_the_best_of_all_placements) {
  uint32_t state = 1;
  double worst = 1, sum = 0;
  int best = 0;
  enum { GRAPHS = 60 };
  for (int i = 0; i < GRAPHS; ++i) {
    draft_t draft;
    int32_t start[16] = {0};
    draft_begin(&draft, 2 + i % 2, i % 3 * 10);
    draft_random(&draft, i % 2 ? 8 : 11, &state);
    if (i % 4 >= 2) constrain(&draft, &state, start);
    rn_search_result_t result = find(&draft, start);
    rn_forecast_t ideal = best_of_all(&draft);
    cr_assert_geq(result.found.step_ns, ideal.step_ns);
    double ratio = (double)result.found.step_ns / (double)ideal.step_ns;
    if (ratio > worst) worst = ratio;
    sum += ratio;
    best += result.found.step_ns == ideal.step_ns;
    draft_end(&draft);
  }
  cr_expect_leq(worst, 1.15, "the worst result takes %.3f of the best possible time", worst);
  cr_expect_leq(sum / GRAPHS, 1.02, "%.4f on average, %d of %d best", sum / GRAPHS, best, GRAPHS);
}

// Devices are busy for as long as their nodes take: every node ran, and once.
static void check_all_ran(const draft_t* draft, const rn_search_result_t* result) {
  const rn_workload_t* w = &draft->work;
  int64_t costs[4] = {0};
  for (int32_t n = 0; n < w->node_count; ++n) {
    int32_t device = result->devices[w->group[n]];
    costs[device] += w->cost_ns[n * w->device_count + device];
  }
  for (int32_t d = 0; d < w->device_count; ++d)
    cr_assert_eq(result->found.busy_ns[d], costs[d], "device %d", d);
}

Test(search, keeps_constraints_and_is_never_worse) {
  uint32_t state = 3;
  for (int i = 0; i < 40; ++i) {
    draft_t draft;
    static int32_t start[MOST_NODES];
    draft_begin(&draft, 2 + i % 3, 20);
    draft_random(&draft, 50 + 10 * i, &state);
    constrain(&draft, &state, start);
    if (i % 2) draft.devices[0].memory = 1 + (int64_t)draw(&state, 2000);
    draft.fleet.in_tasks = i % 4 >= 2;
    draft.lanes[0] = 1 + i % 2;
    rn_search_result_t result = find_within(&draft, start, 300000);
    for (int32_t g = 0; g < draft.work.group_count; ++g) {
      cr_assert(result.devices[g] >= 0 && result.devices[g] < draft.work.device_count);
      cr_assert(draft.work.allowed[g] >> result.devices[g] & 1, "group %d", g);
    }
    cr_assert(!rn_forecast_is_better(&result.start, &result.found));
    // The forecast that is reported is that of the placement.
    rn_forecaster_t* forecaster = NULL;
    rn_forecast_t again;
    OK(rn_forecaster_create(&draft.work, &draft.fleet, rn_allocator_system(), &forecaster));
    rn_forecast(forecaster, result.devices, &again);
    cr_assert(memcmp(&again, &result.found, sizeof again) == 0);
    check_all_ran(&draft, &result);
    rn_forecaster_destroy(forecaster);
    draft_end(&draft);
  }
}

// Two independent chains run on two devices; a slow link keeps them on one.
Test(search, cuts_where_it_pays) {
  int32_t start[20] = {0};
  for (int slow = 0; slow < 2; ++slow) {
    draft_t draft;
    draft_begin(&draft, 2, slow ? 100000 : 10);
    int32_t ends[2];
    int32_t source = draft_add(&draft, 1, 8, -1, -1);
    for (int c = 0; c < 2; ++c) {
      ends[c] = source;
      for (int i = 0; i < 8; ++i) ends[c] = draft_add(&draft, 100, 8, ends[c], -1);
    }
    draft_add(&draft, 1, 0, ends[0], ends[1]);
    rn_search_result_t result = find(&draft, start);
    cr_expect_eq(result.start.step_ns, 1602);
    cr_expect_eq(result.found.step_ns, slow ? 1602 : 820, "%lld", (long long)result.found.step_ns);
    draft_end(&draft);
  }
}

// What does not fit on one device is cut, though that is slower.
Test(search, respects_memory) {
  draft_t draft;
  int32_t start[40] = {0};
  draft_begin(&draft, 2, 1000);
  int32_t last = -1;
  for (int i = 0; i < 10; ++i) {
    last = draft_add(&draft, 10, 4, last, -1);
    draft.work.kept[last] = 100;
  }
  draft.devices[0].memory = draft.devices[1].memory = 600;
  rn_search_result_t result = find(&draft, start);
  cr_expect_eq(result.start.over_bytes, 408);
  cr_expect_eq(result.found.over_bytes, 0);
  cr_expect_eq(result.found.sent_count, 1);
  draft_end(&draft);
}

// Another placement must be faster by the margin.
Test(search, margin) {
  draft_t draft;
  int32_t start[2] = {0};
  draft_begin(&draft, 2, 0);
  draft_add(&draft, 1000, 0, -1, -1);
  draft_add(&draft, 15, 0, -1, -1);
  OK(rn_workload_finish(&draft.work, &draft.arena));
  for (int i = 0; i < 2; ++i) {
    rn_search_result_t result;
    rn_search_options_t options = {.start = start, .margin = i ? 0.02 : 0.01};
    OK(rn_search(&draft.work, &draft.fleet, &options, &draft.arena, &result));
    cr_expect_eq(result.found.step_ns, i ? 1015 : 1000);
  }
  draft_end(&draft);
}

Test(search, rejects_a_start_that_is_not_allowed) {
  draft_t draft;
  rn_search_result_t result;
  int32_t start[1] = {1};
  draft_begin(&draft, 2, 0);
  draft_add(&draft, 1, 0, -1, -1);
  draft.work.allowed[0] = 1;
  OK(rn_workload_finish(&draft.work, &draft.arena));
  FAILS_WITH(rn_search(&draft.work, &draft.fleet, &(rn_search_options_t){.start = start},
                       &draft.arena, &result),
             INVALID_ARGUMENT, "may not be");
  draft_end(&draft);
}

// 20,000 nodes: a second or two of processor time; the limit leaves room for sanitizers.
Test(search, large_graph, .timeout = 120) {
  draft_t draft;
  uint32_t state = 5;
  static int32_t start[MOST_NODES];
  draft_begin(&draft, 4, 30);
  draft_random(&draft, MOST_NODES, &state);
  const bool prints = getenv("RUNNEL_TEST_PRINTS") != NULL;  // and searches as by default
  clock_t begin = clock();
  rn_search_result_t result = find_within(&draft, start, prints ? 0 : 1000000);
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  cr_expect_lt(seconds, 30.0);
  cr_expect_lt(result.found.step_ns, result.start.step_ns / 2);
  if (prints)
    fprintf(stderr, "%.2f s, %d forecasts, %lld -> %lld ns by %s\n", seconds, result.tried,
            (long long)result.start.step_ns, (long long)result.found.step_ns, result.method);
  draft_end(&draft);
}
