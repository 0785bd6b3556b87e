// The state of a forecaster: shared by forecast.c, which runs the step, and forecast_tasks.c, which
// divides it into tasks. For these two only.
#ifndef RUNNEL_PLACE_AUTO_FORECAST_INTERNAL_H_
#define RUNNEL_PLACE_AUTO_FORECAST_INTERNAL_H_

#include "place/auto/forecast.h"

// Something that will happen: a node ends, or a value arrives.
typedef struct rn_forecast_event_t {
  int64_t at_ns;
  int32_t what;  // a node; or nodes + output * devices + receiver; or nodes + outputs * devices +
                 // a device, whose part begins
  int32_t lane;  // of a node
} rn_forecast_event_t;

// Nodes that run one after the other.
typedef struct rn_forecast_task_t {
  int32_t first, last;  // nodes; -1: none
  int32_t device;
  int32_t pending;  // edges from other tasks and devices that are not delivered
  int64_t cost_ns;
  int64_t turn;  // of the tasks that are ready, the one with the least is next
} rn_forecast_task_t;

struct rn_forecaster_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  const rn_workload_t* work;
  const rn_fleet_t* fleet;
  const int32_t* devices;  // by group
  int64_t now_ns;
  int32_t task_count;
  rn_forecast_task_t* tasks;
  int32_t* task_of;  // by node; -1: it is settled before the step
  int32_t* next;     // by node: the next of its task; -1: none
  // Of forecast_tasks.c:
  int32_t* class_of;    // by node
  int32_t* opened;      // [output * devices + device]: the class of its readers there; 0: none
  int32_t* open_task;   // by class: the task that more nodes join; -1: none
  int64_t* longest_ns;  // by node: the longest path that ends with it on its device
  // Of forecast.c:
  int32_t* left;                // [output * devices + device]: reads and transfers to come
  bool* is_sent;                // likewise
  rn_forecast_event_t* events;  // heap by time
  size_t event_count;
  int32_t** ready;  // by pool: heap of tasks
  int32_t* ready_count;
  bool** is_busy;         // by pool and lane
  int64_t* link_free_ns;  // [from * devices + to]
  int64_t* last_ns;       // by device: when its last node ended; -1: it has none
  int64_t* held;          // by device: bytes
  int32_t ready_total;    // tasks that became ready so far
  int32_t* stack;         // tasks of no cost to run now
  int32_t stack_size;
  rn_forecast_t* out;
  rn_forecast_span_t* spans;
  size_t span_count;
  bool keeps_spans;
};

static inline int32_t rn_forecast_device(const rn_forecaster_t* f, int32_t node) {
  return f->devices[f->work->group[node]];
}
static inline int64_t rn_forecast_cost(const rn_forecaster_t* f, int32_t node) {
  return f->work->cost_ns[(size_t)node * (size_t)f->fleet->device_count +
                          (size_t)rn_forecast_device(f, node)];
}

// Makes the arrays of forecast_tasks.c.
RN_MUST_USE rn_status_t rn_forecast_tasks_create(rn_forecaster_t* f);
// Divides the step with its present devices into tasks, and counts what each waits for.
void rn_forecast_tasks_find(rn_forecaster_t* f);

#endif  // RUNNEL_PLACE_AUTO_FORECAST_INTERNAL_H_
