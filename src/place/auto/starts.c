// Placements to begin a search with: see starts.h.
#include "place/auto/starts.h"

#include <stdlib.h>

// Later ends are counted as this, so that sums do not overflow.
#define LAST_NS (INT64_C(1) << 61)

static int32_t first_device(uint64_t allowed) { return __builtin_ctzll(allowed); }

static int64_t cost_on(const rn_workload_t* w, int32_t node, int32_t device) {
  return w->cost_ns[(size_t)node * (size_t)w->device_count + (size_t)device];
}

bool rn_start_single(const rn_workload_t* workload, int32_t device, const int32_t* otherwise,
                     int32_t* out) {
  bool is_whole = true;
  for (int32_t g = 0; g < workload->group_count; ++g) {
    bool may = workload->allowed[g] >> device & 1;
    out[g] = may ? device : otherwise[g];
    is_whole = is_whole && may;
  }
  return is_whole;
}

rn_status_t rn_start_even(const rn_workload_t* workload, const rn_fleet_t* fleet,
                          rn_arena_t* scratch, int32_t* out) {
  bool* is_seen = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, (size_t)workload->group_count + 1, &is_seen));
  double total = 0, speed = 0, passed = 0;
  for (int32_t g = 0; g < workload->group_count; ++g) total += (double)workload->load_ns[g];
  for (int32_t d = 0; d < fleet->device_count; ++d) speed += fleet->devices[d].speed;
  int32_t device = 0;
  double until = total * fleet->devices[0].speed / speed;
  for (int32_t n = 0; n < workload->node_count; ++n) {
    int32_t group = workload->group[n];
    if (is_seen[group]) continue;
    is_seen[group] = true;
    while (passed >= until && passed > 0 && device + 1 < fleet->device_count)
      until += total * fleet->devices[++device].speed / speed;
    uint64_t allowed = workload->allowed[group];
    out[group] = allowed >> device & 1 ? device : first_device(allowed);
    passed += (double)workload->load_ns[group];
  }
  for (int32_t g = 0; g < workload->group_count; ++g)
    if (!is_seen[g]) out[g] = first_device(workload->allowed[g]);
  return RN_OK;
}

// The state of list scheduling.
typedef struct listing_t {
  const rn_workload_t* work;
  const rn_fleet_t* fleet;
  double* rank;       // by node
  int32_t* order;     // nodes by rank
  int64_t* end_ns;    // by node
  int64_t** free_ns;  // by pool and lane
  int32_t* out;       // by group; -1: not placed
} listing_t;

// Means over all pairs of devices.
static void mean_link(const rn_fleet_t* fleet, double* out_latency, double* out_per_byte) {
  double latency = 0, per_byte = 0, pairs = 0;
  for (int32_t d = 0; d < fleet->device_count; ++d)
    for (int32_t e = 0; e < fleet->device_count; ++e) {
      if (d == e) continue;
      latency += (double)rn_fleet_link(fleet, d, e)->latency_ns;
      per_byte += rn_fleet_link(fleet, d, e)->ns_per_byte;
      pairs++;
    }
  *out_latency = pairs ? latency / pairs : 0;
  *out_per_byte = pairs ? per_byte / pairs : 0;
}

static void find_ranks(listing_t* s) {
  const rn_workload_t* w = s->work;
  double latency, per_byte;
  mean_link(s->fleet, &latency, &per_byte);
  for (int32_t n = w->node_count - 1; n >= 0; --n) {
    double longest = 0, cost = 0;
    for (int32_t d = 0; d < w->device_count; ++d) cost += (double)cost_on(w, n, d);
    for (int32_t o = w->first_output[n]; o < w->first_output[n + 1]; ++o) {
      double way = latency + per_byte * (double)w->bytes[o];
      for (int32_t r = w->first_reader[o]; r < w->first_reader[o + 1]; ++r) {
        bool is_near = w->group[w->readers[r]] == w->group[n];
        double path = s->rank[w->readers[r]] + (is_near ? 0 : way);
        if (path > longest) longest = path;
      }
    }
    s->rank[n] = longest + cost / w->device_count;
  }
}

typedef struct ranked_t {
  double rank;
  int32_t node;
} ranked_t;

static int compare_ranks(const void* a, const void* b) {
  const ranked_t *x = a, *y = b;
  if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

static rn_status_t sort_by_rank(listing_t* s, rn_arena_t* scratch) {
  ranked_t* ranked = NULL;
  size_t count = (size_t)s->work->node_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, count + 1, &ranked));
  for (size_t n = 0; n < count; ++n) ranked[n] = (ranked_t){s->rank[n], (int32_t)n};
  qsort(ranked, count, sizeof *ranked, compare_ranks);
  for (size_t n = 0; n < count; ++n) s->order[n] = ranked[n].node;
  return RN_OK;
}

// Whether the group of an unplaced source may still go along with a reader on |device|.
static bool comes_along(const listing_t* s, int32_t node, int32_t device) {
  return s->out[s->work->group[node]] < 0 && s->work->allowed[s->work->group[node]] >> device & 1;
}

static int64_t inputs_there_ns(const listing_t* s, int32_t node, int32_t device) {
  const rn_workload_t* w = s->work;
  int64_t latest = 0;
  for (int32_t i = w->first_input[node]; i < w->first_input[node + 1]; ++i) {
    int32_t source = w->producer[w->inputs[i]], from = s->out[w->group[source]];
    if (comes_along(s, source, device)) continue;
    if (from < 0) from = first_device(w->allowed[w->group[source]]);
    int64_t there = s->end_ns[source];
    if (from != device)
      there += rn_fleet_transfer_ns(s->fleet, from, device, w->bytes[w->inputs[i]]);
    if (there > latest) latest = there;
  }
  return latest;
}

static int64_t* first_free(const listing_t* s, int32_t device) {
  int32_t pool = s->fleet->devices[device].pool;
  int64_t* best = s->free_ns[pool];
  for (int32_t l = 1; l < s->fleet->lanes[pool]; ++l)
    if (s->free_ns[pool][l] < *best) best = &s->free_ns[pool][l];
  return best;
}

static int64_t end_on(const listing_t* s, int32_t node, int32_t device) {
  int64_t start = inputs_there_ns(s, node, device), free_ns = *first_free(s, device);
  int64_t cost = cost_on(s->work, node, device);
  if (cost && free_ns > start) start = free_ns;
  return start + cost;
}

static void settle(listing_t* s, int32_t node, int32_t device) {
  const rn_workload_t* w = s->work;
  for (int32_t i = w->first_input[node]; i < w->first_input[node + 1]; ++i) {
    int32_t source = w->producer[w->inputs[i]];
    if (comes_along(s, source, device))
      s->out[w->group[source]] = device;
    else if (s->out[w->group[source]] < 0)
      s->out[w->group[source]] = first_device(w->allowed[w->group[source]]);
  }
  int64_t end = end_on(s, node, device);
  s->out[w->group[node]] = device;
  if (end > LAST_NS) end = LAST_NS;
  s->end_ns[node] = end;
  if (cost_on(w, node, device)) *first_free(s, device) = end;
}

static void schedule(listing_t* s) {
  const rn_workload_t* w = s->work;
  for (int32_t i = 0; i < w->node_count; ++i) {
    int32_t node = s->order[i], group = w->group[node], best = s->out[group];
    bool costs_nothing = true;
    for (int32_t d = 0; d < w->device_count; ++d) costs_nothing &= cost_on(w, node, d) == 0;
    if (best < 0 && costs_nothing && w->first_input[node + 1] == w->first_input[node]) continue;
    int64_t best_ns = INT64_MAX;
    for (int32_t d = 0; s->out[group] < 0 && d < w->device_count; ++d) {
      if (!(w->allowed[group] >> d & 1)) continue;
      int64_t end = end_on(s, node, d);
      if (end < best_ns) {
        best_ns = end;
        best = d;
      }
    }
    settle(s, node, best);
  }
}

rn_status_t rn_start_ranked(const rn_workload_t* workload, const rn_fleet_t* fleet,
                            rn_arena_t* scratch, int32_t* out) {
  listing_t s = {.work = workload, .fleet = fleet, .out = out};
  size_t count = (size_t)workload->node_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, count, &s.rank));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, count, &s.order));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, count, &s.end_ns));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, (size_t)fleet->pool_count, &s.free_ns));
  for (int32_t p = 0; p < fleet->pool_count; ++p)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, (size_t)fleet->lanes[p], &s.free_ns[p]));
  for (int32_t g = 0; g < workload->group_count; ++g) out[g] = -1;
  find_ranks(&s);
  RN_RETURN_IF_ERROR(sort_by_rank(&s, scratch));
  schedule(&s);
  for (int32_t g = 0; g < workload->group_count; ++g)
    if (out[g] < 0) out[g] = first_device(workload->allowed[g]);
  return RN_OK;
}
