// Clusters of groups: see starts.h.
#include <stdlib.h>

#include "place/auto/starts.h"

// An edge between two groups.
typedef struct tie_t {
  int64_t ns;  // to cut it
  int32_t a, b;
} tie_t;

typedef struct clusters_t {
  const rn_workload_t* work;
  int32_t* parent;    // by group: union-find
  uint64_t* allowed;  // by root
  int64_t* load_ns;   // by root
  int32_t count;
} clusters_t;

static int compare_ties(const void* a, const void* b) {
  const tie_t *x = a, *y = b;
  if (x->ns != y->ns) return x->ns > y->ns ? -1 : 1;
  if (x->a != y->a) return x->a < y->a ? -1 : 1;
  return (x->b > y->b) - (x->b < y->b);
}

static int32_t root_of(clusters_t* c, int32_t group) {
  while (c->parent[group] != group) group = c->parent[group] = c->parent[c->parent[group]];
  return group;
}

// The slowest way between two devices.
static int64_t cut_ns(const rn_fleet_t* fleet, int64_t bytes) {
  int64_t most = 0;
  for (int32_t d = 0; d < fleet->device_count; ++d)
    for (int32_t e = 0; e < fleet->device_count; ++e) {
      int64_t ns = d == e ? 0 : rn_fleet_transfer_ns(fleet, d, e, bytes);
      if (ns > most) most = ns;
    }
  return most;
}

static rn_status_t find_ties(const rn_workload_t* w, const rn_fleet_t* fleet, rn_arena_t* scratch,
                             tie_t** out, size_t* out_count) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, (size_t)w->first_input[w->node_count] + 1, out));
  for (int32_t o = 0; o < w->output_count; ++o) {
    int32_t group = w->group[w->producer[o]];
    int64_t ns = -1;
    for (int32_t r = w->first_reader[o]; r < w->first_reader[o + 1]; ++r) {
      int32_t reader = w->group[w->readers[r]];
      if (reader == group) continue;
      if (ns < 0) ns = cut_ns(fleet, w->bytes[o]);
      (*out)[(*out_count)++] = (tie_t){ns, group, reader};
    }
  }
  qsort(*out, *out_count, sizeof **out, compare_ties);
  return RN_OK;
}

static void merge(clusters_t* c, int32_t x, int32_t y) {
  c->parent[x] = y;
  c->allowed[y] &= c->allowed[x];
  c->load_ns[y] += c->load_ns[x];
  c->count--;
}

// Merges along |ties| while more than |wanted| clusters are left and none gets more than |most|.
static void merge_ties(clusters_t* c, const tie_t* ties, size_t tie_count, int32_t wanted,
                       int64_t most_ns) {
  for (size_t i = 0; i < tie_count && c->count > wanted; ++i) {
    int32_t x = root_of(c, ties[i].a), y = root_of(c, ties[i].b);
    if (x == y || !(c->allowed[x] & c->allowed[y])) continue;
    // What costs nothing may join whatever it is tied to most.
    bool is_free = c->load_ns[x] == 0 || c->load_ns[y] == 0;
    if (is_free || c->load_ns[x] <= most_ns - c->load_ns[y]) merge(c, x, y);
  }
}

rn_status_t rn_find_clusters(const rn_workload_t* workload, const rn_fleet_t* fleet, int32_t wanted,
                             rn_arena_t* scratch, int32_t* out, int32_t* out_count) {
  clusters_t c = {.work = workload, .count = workload->group_count};
  tie_t* ties = NULL;
  size_t groups = (size_t)workload->group_count + 1, tie_count = 0;
  double total = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, groups, &c.parent));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, groups, &c.allowed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, groups, &c.load_ns));
  for (int32_t g = 0; g < workload->group_count; ++g) {
    c.parent[g] = g;
    c.allowed[g] = workload->allowed[g];
    c.load_ns[g] = workload->load_ns[g];
    total += (double)workload->load_ns[g];
  }
  RN_RETURN_IF_ERROR(find_ties(workload, fleet, scratch, &ties, &tie_count));
  // Twice the even share: with less room, few merges would be possible near the end.
  int64_t most_ns = (int64_t)(2 * total / (wanted > 0 ? wanted : 1));
  merge_ties(&c, ties, tie_count, wanted, most_ns);
  int32_t* number = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, groups, &number));
  *out_count = 0;
  for (int32_t g = 0; g < workload->group_count; ++g) {
    int32_t root = root_of(&c, g);
    if (!number[root]) number[root] = ++*out_count;
    out[g] = number[root] - 1;
  }
  return RN_OK;
}
