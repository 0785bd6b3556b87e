// Workloads and fleets written by hand or drawn at random, for the tests of place/auto.
#ifndef RUNNEL_TESTS_PLACE_WORKLOADS_H_
#define RUNNEL_TESTS_PLACE_WORKLOADS_H_

#include <criterion/criterion.h>
#include <string.h>

#include "../support/status.h"
#include "place/auto/forecast.h"

enum { MOST_NODES = 20000, MOST_INPUTS = 3 };

// A workload under construction: every node has one output and a group of its own.
typedef struct draft_t {
  rn_arena_t arena;
  rn_workload_t work;
  rn_fleet_t fleet;
  rn_fleet_device_t devices[4];
  int32_t lanes[4];
  rn_fleet_link_t links[16];
} draft_t;

// |devices| devices, each with a pool of one lane, and links of |latency| ns and one ns per byte.
static inline void draft_begin(draft_t* draft, int32_t devices, int64_t latency) {
  *draft = (draft_t){.work = {.device_count = devices}};
  rn_arena_init(&draft->arena, rn_allocator_system());
  draft->fleet = (rn_fleet_t){.device_count = devices,
                              .devices = draft->devices,
                              .pool_count = devices,
                              .lanes = draft->lanes,
                              .links = draft->links};
  static const char* const names[] = {"CPU:0", "CPU:1", "CPU:2", "CPU:3"};
  for (int32_t d = 0; d < devices; ++d) {
    draft->devices[d] = (rn_fleet_device_t){.name = rn_str(names[d]), .pool = d, .speed = 1};
    draft->lanes[d] = 1;
    for (int32_t e = 0; e < devices; ++e)
      draft->links[d * devices + e] = (rn_fleet_link_t){latency, 1, 0};
  }
  rn_workload_t* w = &draft->work;
  size_t n = MOST_NODES + 1;
  OK(RN_ARENA_ARRAY(&draft->arena, n, &w->group));
  OK(RN_ARENA_ARRAY(&draft->arena, n, &w->first_input));
  OK(RN_ARENA_ARRAY(&draft->arena, n * MOST_INPUTS, &w->inputs));
  OK(RN_ARENA_ARRAY(&draft->arena, n, &w->first_output));
  OK(RN_ARENA_ARRAY(&draft->arena, n, &w->bytes));
  OK(RN_ARENA_ARRAY(&draft->arena, n, &w->is_alias));
  OK(RN_ARENA_ARRAY(&draft->arena, n, &w->kept));
  OK(RN_ARENA_ARRAY(&draft->arena, n * 4, &w->cost_ns));
  OK(RN_ARENA_ARRAY(&draft->arena, n, &w->allowed));
}

// Adds a node that takes |cost| on every device and leaves |bytes|; -1: no further input.
static inline int32_t draft_add(draft_t* draft, int64_t cost, int64_t bytes, int32_t a, int32_t b) {
  rn_workload_t* w = &draft->work;
  int32_t n = w->node_count++, at = w->first_input[n];
  w->group[n] = n;
  w->bytes[n] = bytes;
  w->allowed[n] = ((uint64_t)1 << w->device_count) - 1;
  for (int32_t d = 0; d < w->device_count; ++d) w->cost_ns[n * w->device_count + d] = cost;
  if (a >= 0) w->inputs[at++] = a;
  if (b >= 0 && b != a) w->inputs[at++] = b;
  w->first_input[n + 1] = at;
  w->first_output[n + 1] = n + 1;
  w->output_count = w->group_count = n + 1;
  return n;
}

static inline void draft_cost(draft_t* draft, int32_t node, int32_t device, int64_t cost) {
  draft->work.cost_ns[node * draft->work.device_count + device] = cost;
}

static inline void draft_end(draft_t* draft) { rn_arena_clear(&draft->arena); }

static inline uint32_t draw(uint32_t* state, uint32_t below) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state % below;
}

// A random graph of |nodes| nodes: costs up to 100, bytes up to 50.
static inline void draft_random(draft_t* draft, int32_t nodes, uint32_t* state) {
  for (int32_t n = 0; n < nodes; ++n) {
    int32_t near = n < 12 ? n : 12;
    int32_t a = n && draw(state, 8) ? n - 1 - (int32_t)draw(state, (uint32_t)near) : -1;
    int32_t b = n && draw(state, 2) ? n - 1 - (int32_t)draw(state, (uint32_t)near) : -1;
    draft_add(draft, draw(state, 6) ? 1 + (int64_t)draw(state, 100) : 0, (int64_t)draw(state, 50),
              a, b);
  }
}

#endif  // RUNNEL_TESTS_PLACE_WORKLOADS_H_
