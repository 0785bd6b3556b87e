// Clock and random numbers of a simulated cluster: see sim.h.
#include <math.h>

#include "base/random.h"
#include "dist/sim/world.h"

#define LOOK_NS INT64_C(50000000)  // between checks of a frozen node

int64_t rn_sim_now(const rn_sim_t* sim) { return sim->now_ns; }
uint64_t rn_sim_trace(const rn_sim_t* sim) { return sim->trace; }
int64_t rn_sim_messages(const rn_sim_t* sim) { return sim->messages; }

// xoroshiro128+: quick, and the same everywhere.
static uint64_t turn(uint64_t x, int by) { return x << by | x >> (64 - by); }
uint64_t rn_sim_random(rn_sim_t* sim) {
  uint64_t a = sim->random[0], b = sim->random[1], result = a + b;
  b ^= a;
  sim->random[0] = turn(a, 24) ^ b ^ (b << 16);
  sim->random[1] = turn(b, 37);
  return result;
}

double rn_sim_uniform(rn_sim_t* sim) { return (double)(rn_sim_random(sim) >> 11) * 0x1p-53; }
double rn_sim_exponential(rn_sim_t* sim) { return -log(1 - rn_sim_uniform(sim)); }
double rn_sim_normal(rn_sim_t* sim) {
  double radius = sqrt(2 * rn_sim_exponential(sim));
  return radius * cos(2 * 3.14159265358979323846 * rn_sim_uniform(sim));
}

void rn_sim_note(rn_sim_t* sim, uint64_t what) {
  sim->trace = rn_random_mix(sim->trace ^ what ^ (uint64_t)sim->now_ns * RN_RANDOM_STEP);
}

// The heap: a timer's place is its index + 1.

static bool is_before(const rn_sim_event_t* a, const rn_sim_event_t* b) {
  return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void put(rn_sim_t* sim, size_t at, rn_sim_event_t event) {
  sim->events.items[at] = event;
  event.timer->place = at + 1;
}

static void rise(rn_sim_t* sim, size_t at, rn_sim_event_t event) {
  while (at && is_before(&event, &sim->events.items[(at - 1) / 2])) {
    put(sim, at, sim->events.items[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  put(sim, at, event);
}

static void sink(rn_sim_t* sim, size_t at, rn_sim_event_t event) {
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= sim->events.count) break;
    if (child + 1 < sim->events.count &&
        is_before(&sim->events.items[child + 1], &sim->events.items[child]))
      child++;
    if (!is_before(&sim->events.items[child], &event)) break;
    put(sim, at, sim->events.items[child]);
    at = child;
  }
  put(sim, at, event);
}

void rn_sim_clear(rn_sim_t* sim, rn_timer_t* timer) {
  if (!timer->place) return;
  size_t at = timer->place - 1;
  timer->place = 0;
  rn_sim_event_t last = sim->events.items[--sim->events.count];
  if (at == sim->events.count) return;
  if (at && is_before(&last, &sim->events.items[(at - 1) / 2]))
    rise(sim, at, last);
  else
    sink(sim, at, last);
}

rn_status_t rn_sim_set(rn_sim_t* sim, rn_sim_node_t* node, rn_timer_t* timer, int64_t at_ns) {
  RN_RETURN_IF_ERROR(rn_vec_reserve(&sim->events, sim->allocator, sim->events.count + 1));
  rn_sim_clear(sim, timer);
  rn_sim_event_t event = {.at_ns = at_ns < sim->now_ns ? sim->now_ns : at_ns,
                          .number = sim->next_number++,
                          .timer = timer,
                          .node = node};
  timer->at_ns = event.at_ns;
  rise(sim, sim->events.count++, event);
  return RN_OK;
}

static rn_status_t world_set(void* self, rn_timer_t* timer, int64_t at_ns) {
  return rn_sim_set(self, NULL, timer, at_ns);
}
static void world_clear(void* self, rn_timer_t* timer) { rn_sim_clear(self, timer); }
static rn_status_t node_set(void* self, rn_timer_t* timer, int64_t at_ns) {
  rn_sim_node_t* node = self;
  return rn_sim_set(node->sim, node, timer, at_ns);
}
static void node_clear(void* self, rn_timer_t* timer) {
  rn_sim_clear(((rn_sim_node_t*)self)->sim, timer);
}

rn_timers_t rn_sim_timers(rn_sim_t* sim) {
  return (rn_timers_t){.self = sim, .set = world_set, .clear = world_clear};
}
rn_timers_t rn_sim_node_timers(rn_sim_t* sim, int node) {
  return (rn_timers_t){.self = &sim->nodes[node], .set = node_set, .clear = node_clear};
}

void rn_sim_run(rn_sim_t* sim, int64_t until_ns) {
  while (sim->events.count && sim->events.items[0].at_ns <= until_ns) {
    rn_sim_event_t event = sim->events.items[0];
    sim->now_ns = event.at_ns;
    if (event.node && event.node->frozen_until_ns > sim->now_ns) {
      // It may be thawed early.
      int64_t thaws = event.node->frozen_until_ns, soon = sim->now_ns + LOOK_NS;
      rn_status_free(rn_sim_set(sim, event.node, event.timer,
                                thaws < soon ? thaws : soon));  // cannot fail: there is room
      continue;
    }
    rn_sim_clear(sim, event.timer);
    event.timer->fn(event.timer);
  }
  if (until_ns > sim->now_ns) sim->now_ns = until_ns;
}
