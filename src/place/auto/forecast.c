// Forecasts: see forecast.h.
#include "place/auto/forecast_internal.h"

// The end of time: later events happen then, so that sums do not overflow.
#define LAST_NS (INT64_C(1) << 61)

static rn_status_t fill(rn_forecaster_t* f) {
  rn_arena_t* arena = &f->arena;
  size_t nodes = (size_t)f->work->node_count + 1, devices = (size_t)f->fleet->device_count;
  size_t pools = (size_t)f->fleet->pool_count, copies, spans;
  if (!rn_mul_ok((size_t)f->work->output_count + 1, devices, &copies) ||
      !rn_add_ok(copies, nodes, &spans) || spans > INT32_MAX)
    return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, copies, &f->left));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, copies, &f->is_sent));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, spans + devices, &f->events));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, spans, &f->spans));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, pools, &f->ready));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, pools, &f->ready_count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, pools, &f->is_busy));
  for (size_t p = 0; p < pools; ++p) {
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &f->ready[p]));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)f->fleet->lanes[p], &f->is_busy[p]));
  }
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, devices * devices, &f->link_free_ns));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, devices, &f->held));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, devices, &f->last_ns));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &f->stack));
  return rn_forecast_tasks_create(f);
}

rn_status_t rn_forecaster_create(const rn_workload_t* workload, const rn_fleet_t* fleet,
                                 rn_allocator_t allocator, rn_forecaster_t** out) {
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_fleet_check(fleet));
  if (workload->device_count != fleet->device_count)
    return rn_invalid_argument("A workload for %d devices does not fit %d", workload->device_count,
                               fleet->device_count);
  rn_forecaster_t* forecaster = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &forecaster));
  forecaster->allocator = allocator;
  forecaster->work = workload;
  forecaster->fleet = fleet;
  rn_arena_init(&forecaster->arena, allocator);
  rn_status_t status = fill(forecaster);
  if (!rn_ok(status)) {
    rn_forecaster_destroy(forecaster);
    return status;
  }
  *out = forecaster;
  return RN_OK;
}

void rn_forecaster_destroy(rn_forecaster_t* forecaster) {
  if (!forecaster) return;
  rn_arena_clear(&forecaster->arena);
  RN_FREE(forecaster->allocator, forecaster);
}

// The order of events: by time, and at one time arrivals and nodes by their numbers.
static bool is_sooner(const rn_forecast_event_t* a, const rn_forecast_event_t* b) {
  return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->what < b->what;
}

static void push_event(rn_forecaster_t* f, rn_forecast_event_t event) {
  size_t at = f->event_count++;
  if (event.at_ns > LAST_NS) event.at_ns = LAST_NS;
  for (; at && is_sooner(&event, &f->events[(at - 1) / 2]); at = (at - 1) / 2)
    f->events[at] = f->events[(at - 1) / 2];
  f->events[at] = event;
}

static rn_forecast_event_t pop_event(rn_forecaster_t* f) {
  rn_forecast_event_t first = f->events[0], last = f->events[--f->event_count];
  size_t at = 0;
  for (size_t child = 1; child < f->event_count; child = 2 * at + 1) {
    if (child + 1 < f->event_count && is_sooner(&f->events[child + 1], &f->events[child])) ++child;
    if (!is_sooner(&f->events[child], &last)) break;
    f->events[at] = f->events[child];
    at = child;
  }
  f->events[at] = last;
  return first;
}

// The executor takes the newest ready task, of the first device that has one. Without tasks, nodes
// run in the order of the step.
static void push_ready(rn_forecaster_t* f, int32_t pool, int32_t number) {
  rn_forecast_task_t* task = &f->tasks[number];
  task->turn = number;
  if (f->fleet->in_tasks) task->turn = ((int64_t)task->device << 32) - f->ready_total++;
  int32_t *heap = f->ready[pool], at = f->ready_count[pool]++;
  for (; at && task->turn < f->tasks[heap[(at - 1) / 2]].turn; at = (at - 1) / 2)
    heap[at] = heap[(at - 1) / 2];
  heap[at] = number;
}

static int32_t pop_ready(rn_forecaster_t* f, int32_t pool) {
  int32_t *heap = f->ready[pool], count = --f->ready_count[pool], at = 0;
  int32_t first = heap[0], last = heap[count];
  for (int32_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && f->tasks[heap[child + 1]].turn < f->tasks[heap[child]].turn) ++child;
    if (f->tasks[heap[child]].turn >= f->tasks[last].turn) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return first;
}

static void hold(rn_forecaster_t* f, int32_t device, int64_t bytes) {
  f->held[device] += bytes;
  if (f->held[device] <= f->out->high_bytes[device]) return;
  f->out->high_bytes[device] = f->held[device];
  f->out->high_at_ns[device] = f->now_ns;
}

static int32_t* left_of(rn_forecaster_t* f, int32_t output, int32_t device) {
  return &f->left[(size_t)output * (size_t)f->fleet->device_count + (size_t)device];
}

// One read or transfer of a value on |device| is over.
static void release(rn_forecaster_t* f, int32_t output, int32_t device) {
  if (--*left_of(f, output, device) > 0) return;
  int32_t producer = f->work->producer[output];
  bool is_alias = f->work->is_alias[producer] && rn_forecast_device(f, producer) == device;
  if (!is_alias) f->held[device] -= f->work->bytes[output];
}

static void add_span(rn_forecaster_t* f, rn_forecast_span_t span) {
  if (f->keeps_spans) f->spans[f->span_count++] = span;
}

static void begin_node(rn_forecaster_t* f, int32_t node) {
  const rn_workload_t* w = f->work;
  if (w->is_alias[node]) return;
  for (int32_t o = w->first_output[node]; o < w->first_output[node + 1]; ++o)
    hold(f, rn_forecast_device(f, node), w->bytes[o]);
}

// An edge into |task| is delivered. A task of no cost needs no lane: |stack| runs it at once.
static void deliver(rn_forecaster_t* f, int32_t number) {
  const rn_forecast_task_t* task = &f->tasks[number];
  if (--f->tasks[number].pending > 0) return;
  if (task->cost_ns > 0)
    push_ready(f, f->fleet->devices[task->device].pool, number);
  else
    f->stack[f->stack_size++] = number;
}

static void send(rn_forecaster_t* f, int32_t output, int32_t from, int32_t to) {
  size_t devices = (size_t)f->fleet->device_count;
  bool* is_sent = &f->is_sent[(size_t)output * devices + (size_t)to];
  if (*is_sent) return;
  *is_sent = true;
  ++*left_of(f, output, from);
  int64_t* free_ns = &f->link_free_ns[(size_t)from * devices + (size_t)to];
  const rn_fleet_link_t* link = rn_fleet_link(f->fleet, from, to);
  int64_t start = *free_ns > f->now_ns ? *free_ns : f->now_ns, bytes = f->work->bytes[output];
  if (link->open_ns > start) start = link->open_ns;
  int64_t end = start + rn_fleet_transfer_ns(f->fleet, from, to, bytes);
  *free_ns = end - link->latency_ns < LAST_NS ? end - link->latency_ns : LAST_NS;
  f->out->sent_bytes += bytes;
  f->out->sent_count++;
  add_span(f, (rn_forecast_span_t){f->work->producer[output], output, from, to, start, end});
  int32_t what = f->work->node_count + output * f->fleet->device_count + to;
  push_event(f, (rn_forecast_event_t){end, what, -1});
}

// Sends what |node| left to other devices, and releases what it read.
static void end_node(rn_forecaster_t* f, int32_t node) {
  const rn_workload_t* w = f->work;
  int32_t device = rn_forecast_device(f, node);
  f->last_ns[device] = f->now_ns;
  for (int32_t o = w->first_output[node]; o < w->first_output[node + 1]; ++o) {
    ++*left_of(f, o, device);  // so that it is released below if nothing reads it
    for (int32_t r = w->first_reader[o]; r < w->first_reader[o + 1]; ++r) {
      int32_t to = rn_forecast_device(f, w->readers[r]);
      if (to != device) send(f, o, device, to);
    }
    release(f, o, device);
  }
  for (int32_t i = w->first_input[node]; i < w->first_input[node + 1]; ++i)
    release(f, w->inputs[i], device);
}

// Tells the tasks of the same device that wait for |number|.
static void end_task(rn_forecaster_t* f, int32_t number) {
  const rn_workload_t* w = f->work;
  for (int32_t n = f->tasks[number].first; n >= 0; n = f->next[n])
    for (int32_t o = w->first_output[n]; o < w->first_output[n + 1]; ++o)
      for (int32_t r = w->first_reader[o]; r < w->first_reader[o + 1]; ++r) {
        int32_t reader = w->readers[r];
        if (f->task_of[reader] != number &&
            rn_forecast_device(f, reader) == f->tasks[number].device)
          deliver(f, f->task_of[reader]);
      }
}

// Runs the nodes of a task from |node| on, up to the first that takes time. True if none did.
static bool run_nodes(rn_forecaster_t* f, int32_t node, int32_t lane) {
  for (; node >= 0; node = f->next[node]) {
    int64_t cost = rn_forecast_cost(f, node), end = f->now_ns + cost;
    int32_t device = rn_forecast_device(f, node);
    begin_node(f, node);
    if (cost > 0) {
      f->out->busy_ns[device] += cost;
      add_span(f, (rn_forecast_span_t){node, -1, device, lane, f->now_ns, end});
      push_event(f, (rn_forecast_event_t){end, node, lane});
      return false;
    }
    end_node(f, node);
  }
  return true;
}

static void run_stack(rn_forecaster_t* f) {
  while (f->stack_size) {
    int32_t number = f->stack[--f->stack_size];
    run_nodes(f, f->tasks[number].first, -1);
    end_task(f, number);
  }
}

static void arrive(rn_forecaster_t* f, int32_t output, int32_t device) {
  const rn_workload_t* w = f->work;
  hold(f, device, w->bytes[output]);
  release(f, output, rn_forecast_device(f, w->producer[output]));
  for (int32_t r = w->first_reader[output]; r < w->first_reader[output + 1]; ++r)
    if (rn_forecast_device(f, w->readers[r]) == device) deliver(f, f->task_of[w->readers[r]]);
}

// Gives ready tasks to free lanes.
static void start_ready(rn_forecaster_t* f, int32_t pool) {
  for (int32_t lane = 0; f->ready_count[pool] && lane < f->fleet->lanes[pool]; ++lane) {
    if (f->is_busy[pool][lane]) continue;
    f->is_busy[pool][lane] = true;
    run_nodes(f, f->tasks[pop_ready(f, pool)].first, lane);
  }
}

static void reset(rn_forecaster_t* f, const int32_t* devices, rn_forecast_t* out) {
  const rn_workload_t* w = f->work;
  size_t count = (size_t)f->fleet->device_count, copies = (size_t)w->output_count * count;
  *out = (rn_forecast_t){0};
  f->devices = devices;
  f->out = out;
  f->now_ns = 0;
  f->span_count = f->event_count = 0;
  f->stack_size = f->ready_total = 0;
  memset(f->left, 0, copies * sizeof *f->left);
  memset(f->is_sent, 0, copies * sizeof *f->is_sent);
  memset(f->link_free_ns, 0, count * count * sizeof *f->link_free_ns);
  memset(f->held, 0, count * sizeof *f->held);
  for (size_t d = 0; d < count; ++d) f->last_ns[d] = -1;
  memset(f->ready_count, 0, (size_t)f->fleet->pool_count * sizeof *f->ready_count);
  for (int32_t p = 0; p < f->fleet->pool_count; ++p)
    memset(f->is_busy[p], 0, (size_t)f->fleet->lanes[p] * sizeof **f->is_busy);
  for (int32_t n = 0; n < w->node_count; ++n) {
    int32_t device = rn_forecast_device(f, n);
    hold(f, device, w->kept[n]);
    for (int32_t i = w->first_input[n]; i < w->first_input[n + 1]; ++i)
      ++*left_of(f, w->inputs[i], device);
  }
}

// Begins the part of |device|: what was there before the step, and tasks that wait for nothing.
static void begin_part(rn_forecaster_t* f, int32_t device) {
  for (int32_t n = 0; f->fleet->in_tasks && n < f->work->node_count; ++n) {
    if (f->task_of[n] >= 0 || rn_forecast_device(f, n) != device) continue;
    begin_node(f, n);
    end_node(f, n);
  }
  for (int32_t t = 0; t < f->task_count; ++t) {
    if (f->tasks[t].device != device || f->tasks[t].pending) continue;
    f->tasks[t].pending = 1;
    deliver(f, t);
  }
}

static void handle(rn_forecaster_t* f, rn_forecast_event_t event) {
  int32_t nodes = f->work->node_count, devices = f->fleet->device_count;
  int32_t copy = event.what - nodes;
  if (event.what < nodes) {
    int32_t task = f->task_of[event.what];
    end_node(f, event.what);
    if (run_nodes(f, f->next[event.what], event.lane)) {
      f->is_busy[f->fleet->devices[f->tasks[task].device].pool][event.lane] = false;
      end_task(f, task);
    }
  } else if (copy < f->work->output_count * devices) {
    arrive(f, copy / devices, copy % devices);
  } else {
    begin_part(f, copy % devices);
  }
  run_stack(f);
}

static void run(rn_forecaster_t* f) {
  int32_t first = f->work->node_count + f->work->output_count * f->fleet->device_count;
  for (int32_t d = 0; d < f->fleet->device_count; ++d)
    push_event(f, (rn_forecast_event_t){f->fleet->devices[d].start_ns, first + d, -1});
  while (f->event_count) {
    f->now_ns = f->events[0].at_ns;
    while (f->event_count && f->events[0].at_ns == f->now_ns) handle(f, pop_event(f));
    for (int32_t p = 0; p < f->fleet->pool_count; ++p) start_ready(f, p);
  }
}

void rn_forecast(rn_forecaster_t* forecaster, const int32_t* devices, rn_forecast_t* out) {
  reset(forecaster, devices, out);
  rn_forecast_tasks_find(forecaster);
  run(forecaster);
  for (int32_t d = 0; d < forecaster->fleet->device_count; ++d) {
    int64_t end = forecaster->last_ns[d] + forecaster->fleet->devices[d].end_ns;
    if (forecaster->last_ns[d] >= 0 && end > out->step_ns) out->step_ns = end;
    int64_t limit = forecaster->fleet->devices[d].memory;
    if (limit && out->high_bytes[d] > limit) out->over_bytes += out->high_bytes[d] - limit;
  }
  out->step_ns += forecaster->fleet->step_ns;
}

void rn_forecast_spans(rn_forecaster_t* forecaster, const int32_t* devices, rn_forecast_t* out,
                       const rn_forecast_span_t** out_spans, size_t* out_count) {
  forecaster->keeps_spans = true;
  rn_forecast(forecaster, devices, out);
  forecaster->keeps_spans = false;
  *out_spans = forecaster->spans;
  *out_count = forecaster->span_count;
}

bool rn_forecast_is_better(const rn_forecast_t* a, const rn_forecast_t* b) {
  if (a->over_bytes != b->over_bytes) return a->over_bytes < b->over_bytes;
  if (a->step_ns != b->step_ns) return a->step_ns < b->step_ns;
  return a->sent_bytes < b->sent_bytes;
}
