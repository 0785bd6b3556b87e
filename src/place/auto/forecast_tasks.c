// The tasks of a forecast: see forecast_internal.h. The rules are those of exec/tasks.c.
#include "place/auto/forecast_internal.h"

// See exec/tasks.c.
#define WORTH_A_THREAD_NS 150000

rn_status_t rn_forecast_tasks_create(rn_forecaster_t* f) {
  rn_arena_t* arena = &f->arena;
  size_t nodes = (size_t)f->work->node_count + 1, devices = (size_t)f->fleet->device_count;
  size_t copies = ((size_t)f->work->output_count + 1) * devices;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &f->tasks));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &f->task_of));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &f->next));
  if (!f->fleet->in_tasks) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &f->class_of));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &f->longest_ns));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, copies, &f->opened));
  return RN_ARENA_ARRAY(arena, nodes + copies + devices, &f->open_task);
}

// Whether |node|, an input's producer, was there before the step: a constant, a variable, and what
// is only a view of such.
static bool is_settled(const rn_forecaster_t* f, int32_t node) { return f->task_of[node] < 0; }

static bool settles(const rn_forecaster_t* f, int32_t node) {
  const rn_workload_t* w = f->work;
  if (rn_forecast_cost(f, node) > 0) return false;
  for (int32_t i = w->first_input[node]; i < w->first_input[node + 1]; ++i) {
    int32_t source = w->producer[w->inputs[i]];
    if (rn_forecast_device(f, source) != rn_forecast_device(f, node) || !is_settled(f, source))
      return false;
  }
  return true;
}

// The class of each node: those that wait for the same values of other devices. Class |d| waits for
// nothing on device |d|. Returns the number of classes.
static int32_t find_classes(rn_forecaster_t* f) {
  const rn_workload_t* w = f->work;
  int32_t devices = f->fleet->device_count, count = devices;
  memset(f->opened, 0, (size_t)w->output_count * (size_t)devices * sizeof *f->opened);
  for (int32_t n = 0; n < w->node_count; ++n) {
    int32_t device = rn_forecast_device(f, n), found = device;
    bool is_mixed = false;
    int64_t path = 0;
    f->task_of[n] = settles(f, n) ? -1 : 0;
    for (int32_t i = w->first_input[n]; i < w->first_input[n + 1]; ++i) {
      int32_t output = w->inputs[i], source = w->producer[output], from;
      if (rn_forecast_device(f, source) == device) {
        if (is_settled(f, source)) continue;
        from = f->class_of[source];
        if (f->longest_ns[source] > path) path = f->longest_ns[source];
      } else {
        int32_t* opened = &f->opened[(size_t)output * (size_t)devices + (size_t)device];
        if (!*opened) *opened = count++;
        from = *opened;
      }
      if (from == device || from == found) continue;
      is_mixed |= found != device;
      found = from;
    }
    f->class_of[n] = is_mixed ? count++ : found;
    f->longest_ns[n] = path + rn_forecast_cost(f, n);
  }
  return count;
}

// The cost after which a task of each device ends: none, unless threads gain from more tasks.
static void find_limits(const rn_forecaster_t* f, int64_t* limits) {
  int64_t total[RN_FLEET_MOST_DEVICES] = {0}, longest[RN_FLEET_MOST_DEVICES] = {0};
  for (int32_t n = 0; n < f->work->node_count; ++n) {
    int32_t device = rn_forecast_device(f, n);
    total[device] += rn_forecast_cost(f, n);
    if (f->longest_ns[n] > longest[device]) longest[device] = f->longest_ns[n];
  }
  for (int32_t d = 0; d < f->fleet->device_count; ++d) {
    int32_t lanes = f->fleet->lanes[f->fleet->devices[d].pool];
    limits[d] = INT64_MAX;
    if (lanes < 2 || total[d] <= WORTH_A_THREAD_NS || total[d] <= longest[d] + longest[d] / 4)
      continue;
    limits[d] = total[d] / (lanes * 8);
    if (limits[d] < WORTH_A_THREAD_NS / 4) limits[d] = WORTH_A_THREAD_NS / 4;
  }
}

// Appends |node| to task |number|, or to a new one if that is -1. Returns the task.
static int32_t append(rn_forecaster_t* f, int32_t node, int32_t number) {
  if (number < 0) {
    number = f->task_count++;
    f->tasks[number] =
        (rn_forecast_task_t){.first = node, .last = -1, .device = rn_forecast_device(f, node)};
  }
  rn_forecast_task_t* task = &f->tasks[number];
  if (task->last >= 0) f->next[task->last] = node;
  task->last = node;
  task->cost_ns += rn_forecast_cost(f, node);
  f->next[node] = -1;
  f->task_of[node] = number;
  return number;
}

static void assign(rn_forecaster_t* f) {
  int64_t limits[RN_FLEET_MOST_DEVICES];
  int32_t classes = find_classes(f);
  find_limits(f, limits);
  for (int32_t c = 0; c < classes; ++c) f->open_task[c] = -1;
  for (int32_t n = 0; n < f->work->node_count; ++n) {
    if (is_settled(f, n)) continue;
    int32_t* open = &f->open_task[f->class_of[n]];
    if (*open >= 0 && f->tasks[*open].cost_ns > limits[rn_forecast_device(f, n)]) *open = -1;
    *open = append(f, n, *open);
  }
}

void rn_forecast_tasks_find(rn_forecaster_t* f) {
  const rn_workload_t* w = f->work;
  f->task_count = 0;
  if (f->fleet->in_tasks)
    assign(f);
  else
    for (int32_t n = 0; n < w->node_count; ++n) append(f, n, -1);
  for (int32_t n = 0; n < w->node_count; ++n) {
    if (is_settled(f, n)) continue;
    for (int32_t i = w->first_input[n]; i < w->first_input[n + 1]; ++i) {
      int32_t source = w->producer[w->inputs[i]];
      bool is_near = rn_forecast_device(f, source) == rn_forecast_device(f, n);
      f->tasks[f->task_of[n]].pending +=
          !is_near || (!is_settled(f, source) && f->task_of[source] != f->task_of[n]);
    }
  }
}
