// The search for a placement: see search.h.
#include "place/auto/search.h"

#include <stdlib.h>

#include "place/auto/starts.h"

// Numbers of clusters to move, level by level; the last level moves single groups.
static const int32_t levels[] = {12, 48, 192, INT32_MAX};
// Clusters of a level that are changed in pairs: the heaviest ones.
enum { MOST_PAIRED = 16 };
// The end of a search may lose this part of the step's time, and has this part of the budget.
enum { TIDY_PART = 100, TIDY_BUDGET_PART = 5 };

typedef struct placement_search_t {
  const rn_workload_t* work;
  const rn_fleet_t* fleet;
  rn_forecaster_t* forecaster;
  rn_arena_t* arena;
  int64_t budget;    // nodes that may still be visited
  int32_t* current;  // by group: the placement that is being changed
  int32_t* trial;
  rn_forecast_t now;  // of |current|
  int64_t limit_ns;   // a step may take that long if it then sends less; 0: only faster is better
  int32_t tried;
} placement_search_t;

// A cluster of a level.
typedef struct cluster_t {
  int32_t first, count;  // into |members|
  int64_t load_ns;
  uint64_t allowed;
} cluster_t;

typedef struct level_t {
  cluster_t* clusters;
  int32_t count;
  int32_t* members;  // groups, by cluster
} level_t;

// A placement to begin with.
typedef struct search_start_t {
  int32_t* devices;
  rn_forecast_t forecast;
  const char *method, *moved_method;  // as it is, and after moves
} search_start_t;

static void forecast(placement_search_t* s, const int32_t* devices, rn_forecast_t* out) {
  rn_forecast(s->forecaster, devices, out);
  s->budget -= s->work->node_count + 1;
  s->tried++;
}

static int compare_clusters(const void* a, const void* b) {
  const cluster_t *x = a, *y = b;
  if (x->load_ns != y->load_ns) return x->load_ns > y->load_ns ? -1 : 1;
  return (x->first > y->first) - (x->first < y->first);
}

static rn_status_t make_level(placement_search_t* s, int32_t wanted, level_t* out) {
  const rn_workload_t* w = s->work;
  int32_t* number = NULL;
  size_t groups = (size_t)w->group_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->arena, groups, &number));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->arena, groups, &out->members));
  RN_RETURN_IF_ERROR(rn_find_clusters(w, s->fleet, wanted, s->arena, number, &out->count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->arena, (size_t)out->count + 1, &out->clusters));
  for (int32_t c = 0; c < out->count; ++c) out->clusters[c].allowed = ~(uint64_t)0;
  for (int32_t g = 0; g < w->group_count; ++g) {
    cluster_t* cluster = &out->clusters[number[g]];
    cluster->count++;
    cluster->load_ns += w->load_ns[g];
    cluster->allowed &= w->allowed[g];
  }
  for (int32_t c = 1; c < out->count; ++c)
    out->clusters[c].first = out->clusters[c - 1].first + out->clusters[c - 1].count;
  for (int32_t c = 0; c < out->count; ++c) out->clusters[c].count = 0;
  for (int32_t g = 0; g < w->group_count; ++g) {
    cluster_t* cluster = &out->clusters[number[g]];
    out->members[cluster->first + cluster->count++] = g;
  }
  qsort(out->clusters, (size_t)out->count, sizeof *out->clusters, compare_clusters);
  return RN_OK;
}

static void put(const level_t* level, const cluster_t* cluster, int32_t device, int32_t* devices) {
  for (int32_t i = 0; i < cluster->count; ++i) devices[level->members[cluster->first + i]] = device;
}

static bool is_tidier(const placement_search_t* s, const rn_forecast_t* then) {
  return then->over_bytes <= s->now.over_bytes && then->step_ns <= s->limit_ns &&
         then->sent_count < s->now.sent_count;
}

// Keeps |trial| if it is better. Otherwise makes it equal to |current| again, where |a| and |b|
// differ.
static bool keep_or_undo(placement_search_t* s, const level_t* level, const cluster_t* a,
                         const cluster_t* b) {
  rn_forecast_t then;
  forecast(s, s->trial, &then);
  bool is_better = s->limit_ns ? is_tidier(s, &then) : rn_forecast_is_better(&then, &s->now);
  int32_t* from = is_better ? s->trial : s->current;
  int32_t* to = is_better ? s->current : s->trial;
  const cluster_t* changed[] = {a, b};
  for (int k = 0; k < 2 && changed[k]; ++k)
    for (int32_t i = 0; i < changed[k]->count; ++i) {
      int32_t group = level->members[changed[k]->first + i];
      to[group] = from[group];
    }
  if (is_better) s->now = then;
  return is_better;
}

// Whether all of the cluster is on |device|.
static bool is_on(const placement_search_t* s, const level_t* level, const cluster_t* cluster,
                  int32_t device) {
  for (int32_t i = 0; i < cluster->count; ++i)
    if (s->current[level->members[cluster->first + i]] != device) return false;
  return true;
}

static bool move_clusters(placement_search_t* s, const level_t* level, int64_t until) {
  bool has_changed = false;
  for (int32_t c = 0; c < level->count && s->budget > until; ++c) {
    const cluster_t* cluster = &level->clusters[c];
    for (int32_t d = 0; d < s->fleet->device_count && s->budget > until; ++d) {
      if (!(cluster->allowed >> d & 1) || is_on(s, level, cluster, d)) continue;
      put(level, cluster, d, s->trial);
      has_changed |= keep_or_undo(s, level, cluster, NULL);
    }
  }
  return has_changed;
}

// Tries |x| and |y|, which are not where they should be, on other devices together.
static bool try_pair(placement_search_t* s, const level_t* level, const cluster_t* x, int32_t to_x,
                     const cluster_t* y, int32_t to_y, int64_t until) {
  if (s->budget <= until || !(x->allowed >> to_x & 1) || !(y->allowed >> to_y & 1)) return false;
  if (is_on(s, level, x, to_x) || is_on(s, level, y, to_y)) return false;
  put(level, x, to_x, s->trial);
  put(level, y, to_y, s->trial);
  return keep_or_undo(s, level, x, y);
}

// Swaps pairs of heavy clusters, and moves pairs to one device.
static bool change_pairs(placement_search_t* s, const level_t* level, int64_t until) {
  bool has_changed = false;
  int32_t most = level->count < MOST_PAIRED ? level->count : MOST_PAIRED;
  for (int32_t a = 0; a < most; ++a)
    for (int32_t b = a + 1; b < most && s->budget > until; ++b) {
      const cluster_t *x = &level->clusters[a], *y = &level->clusters[b];
      int32_t at_x = s->current[level->members[x->first]];
      int32_t at_y = s->current[level->members[y->first]];
      has_changed |= try_pair(s, level, x, at_y, y, at_x, until);
      for (int32_t d = 0; d < s->fleet->device_count; ++d)
        has_changed |= try_pair(s, level, x, d, y, d, until);
    }
  return has_changed;
}

// Improves |candidate| until nothing helps or the budget is down to |until|.
static void improve(placement_search_t* s, const level_t* made, int made_count, int64_t until,
                    search_start_t* candidate) {
  size_t size = (size_t)s->work->group_count * sizeof *s->current;
  memcpy(s->current, candidate->devices, size);
  memcpy(s->trial, candidate->devices, size);
  s->now = candidate->forecast;
  bool has_changed = false;
  for (int l = 0; l < made_count; ++l) {
    bool again = true;
    while (again && s->budget > until) {
      again = move_clusters(s, &made[l], until);
      again |= change_pairs(s, &made[l], until);
      has_changed |= again;
    }
  }
  if (!has_changed) return;
  memcpy(candidate->devices, s->current, size);
  candidate->forecast = s->now;
  candidate->method = candidate->moved_method;
}

// Undoes cuts that gain next to nothing: costs are never so exact, and every cut is a risk.
static void tidy(placement_search_t* s, const level_t* made, int made_count,
                 search_start_t* candidate) {
  s->limit_ns = candidate->forecast.step_ns + candidate->forecast.step_ns / TIDY_PART;
  improve(s, made, made_count, 0, candidate);
  s->limit_ns = 0;
}

static rn_status_t add(placement_search_t* s, search_start_t* candidates, int* count,
                       const char* method, const char* moved_method, const int32_t* devices) {
  search_start_t* candidate = &candidates[(*count)++];
  size_t groups = (size_t)s->work->group_count;
  candidate->method = method;
  candidate->moved_method = moved_method;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->arena, groups + 1, &candidate->devices));
  memcpy(candidate->devices, devices, groups * sizeof *devices);
  forecast(s, devices, &candidate->forecast);
  return RN_OK;
}

static rn_status_t find_starts(placement_search_t* s, const int32_t* start,
                               search_start_t* candidates, int* count, rn_search_result_t* out) {
  RN_RETURN_IF_ERROR(add(s, candidates, count, "the client's placement",
                         "moves from the client's placement", start));
  out->start = candidates[0].forecast;
  for (int32_t d = 0; d < s->fleet->device_count; ++d) {
    bool is_whole = rn_start_single(s->work, d, start, s->trial);
    RN_RETURN_IF_ERROR(add(s, candidates, count, "one device", "moves from one device", s->trial));
    const rn_forecast_t* now = &candidates[*count - 1].forecast;
    if (!is_whole || (out->single >= 0 && !rn_forecast_is_better(now, &out->best_single))) continue;
    out->single = d;
    out->best_single = *now;
  }
  RN_RETURN_IF_ERROR(rn_start_even(s->work, s->fleet, s->arena, s->trial));
  RN_RETURN_IF_ERROR(add(s, candidates, count, "an even cut", "moves from an even cut", s->trial));
  RN_RETURN_IF_ERROR(rn_start_ranked(s->work, s->fleet, s->arena, s->trial));
  return add(s, candidates, count, "list scheduling", "moves from list scheduling", s->trial);
}

static int compare_candidates(const void* a, const void* b) {
  const search_start_t *x = a, *y = b;
  if (rn_forecast_is_better(&x->forecast, &y->forecast)) return -1;
  return rn_forecast_is_better(&y->forecast, &x->forecast);
}

static bool is_worth_it(const rn_forecast_t* start, const rn_forecast_t* found, double margin) {
  if (found->over_bytes < start->over_bytes) return true;
  return (double)found->step_ns < (double)start->step_ns * (1 - margin);
}

static rn_status_t search(placement_search_t* s, const rn_search_options_t* options,
                          rn_search_result_t* out) {
  search_start_t candidates[RN_FLEET_MOST_DEVICES + 3], best;
  int count = 0;
  size_t groups = (size_t)s->work->group_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->arena, groups, &s->current));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->arena, groups, &s->trial));
  RN_RETURN_IF_ERROR(find_starts(s, options->start, candidates, &count, out));
  const int32_t* start = candidates[0].devices;
  qsort(candidates, (size_t)count, sizeof *candidates, compare_candidates);
  level_t made[sizeof levels / sizeof *levels] = {0};
  const int made_count = sizeof levels / sizeof *levels;
  for (int l = 0; l < made_count; ++l) RN_RETURN_IF_ERROR(make_level(s, levels[l], &made[l]));
  best = candidates[0];
  // The best start gets half of the budget; what it leaves, the others.
  int64_t rest = s->budget / TIDY_BUDGET_PART, until = s->budget / 2;
  for (int i = 0; i < count && s->budget > until; ++i, until = rest) {
    search_start_t next = candidates[i];
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->arena, groups, &next.devices));
    memcpy(next.devices, candidates[i].devices, (groups - 1) * sizeof *next.devices);
    improve(s, made, made_count, until, &next);
    if (i == 0 || rn_forecast_is_better(&next.forecast, &best.forecast)) best = next;
  }
  tidy(s, made, made_count, &best);
  bool takes_it = is_worth_it(&out->start, &best.forecast, options->margin);
  out->found = takes_it ? best.forecast : out->start;
  out->method = takes_it ? best.method : "the client's placement";
  memcpy(out->devices, takes_it ? best.devices : start, (groups - 1) * sizeof *start);
  out->tried = s->tried;
  return RN_OK;
}

static rn_status_t check_start(const rn_workload_t* w, const int32_t* start) {
  for (int32_t g = 0; g < w->group_count; ++g)
    if (start[g] < 0 || start[g] >= w->device_count || !(w->allowed[g] >> start[g] & 1))
      return rn_invalid_argument("Group %d begins on device %d, where it may not be", g, start[g]);
  return RN_OK;
}

rn_status_t rn_search(const rn_workload_t* workload, const rn_fleet_t* fleet,
                      const rn_search_options_t* options, rn_arena_t* arena,
                      rn_search_result_t* out) {
  *out = (rn_search_result_t){.single = -1};
  placement_search_t s = {.work = workload,
                          .fleet = fleet,
                          .arena = arena,
                          .budget = options->budget > 0 ? options->budget : RN_SEARCH_BUDGET};
  RN_RETURN_IF_ERROR(check_start(workload, options->start));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)workload->group_count + 1, &out->devices));
  RN_RETURN_IF_ERROR(rn_forecaster_create(workload, fleet, arena->allocator, &s.forecaster));
  rn_status_t status = search(&s, options, out);
  rn_forecaster_destroy(s.forecaster);
  return status;
}
