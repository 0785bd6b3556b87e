// Reports of searches: see report.h.
#include "place/auto/report.h"

#include <stdlib.h>

// Rows of the lists of a report.
enum { MOST_ROWS = 10 };

typedef struct report_t {
  const rn_ir_t* ir;
  const rn_auto_result_t* result;
  rn_forecaster_t* forecaster;
  rn_arena_t scratch;
  rn_strbuf_t* out;
} report_t;

static double ms(int64_t ns) { return (double)ns / 1e6; }
static double mb(int64_t bytes) { return (double)bytes / 1e6; }

// Without the task if that is this process.
static rn_str_t device_name(const report_t* r, int32_t device) {
  rn_str_t name = r->result->fleet.devices[device].name;
  rn_str_t here = RN_STR("/job:localhost/replica:0/task:0/device:");
  if (!rn_str_starts_with(name, here)) return name;
  return rn_str_n(name.data + here.size, name.size - here.size);
}

static void write_times(const report_t* r) {
  const rn_search_result_t* s = &r->result->search;
  rn_strbuf_printf(r->out, "as it was     %10.3f ms%s\n", ms(s->start.step_ns),
                   s->start.over_bytes ? "  (does not fit into memory)" : "");
  if (s->single >= 0)
    rn_strbuf_printf(r->out, "one device    %10.3f ms  on %.*s%s\n", ms(s->best_single.step_ns),
                     RN_STR_ARGS(device_name(r, s->single)),
                     s->best_single.over_bytes ? "  (does not fit into memory)" : "");
  rn_strbuf_printf(r->out, "found         %10.3f ms  by %s; %lld values, %.3f MB are sent\n",
                   ms(s->found.step_ns), s->method, (long long)s->found.sent_count,
                   mb(s->found.sent_bytes));
}

static void write_devices(const report_t* r) {
  const rn_search_result_t* s = &r->result->search;
  const rn_workload_t* w = &r->result->step.work;
  rn_strbuf_printf(r->out, "\n%8s %12s %6s %12s  device\n", "nodes", "busy ms", "%", "memory MB");
  for (int32_t d = 0; d < r->result->fleet.device_count; ++d) {
    int32_t nodes = 0;
    for (int32_t n = 0; n < w->node_count; ++n) nodes += rn_auto_device(r->result, n) == d;
    double share =
        s->found.step_ns ? 100.0 * (double)s->found.busy_ns[d] / (double)s->found.step_ns : 0;
    rn_strbuf_printf(r->out, "%8d %12.3f %6.1f %12.3f  %.*s\n", nodes, ms(s->found.busy_ns[d]),
                     share, mb(s->found.high_bytes[d]), RN_STR_ARGS(device_name(r, d)));
  }
}

static void write_sources(const report_t* r) {
  static const char* const names[RN_COST_SOURCES] = {
      "measured for the node", "measured for the op and its shapes", "fitted to the op", "guessed"};
  double total = 0;
  for (int k = 0; k < RN_COST_SOURCES; ++k) total += r->result->step.source_ns[k];
  rn_strbuf_append(r->out, RN_STR("\ncosts\n"));
  for (int k = 0; k < RN_COST_SOURCES; ++k)
    if (r->result->step.sources[k])
      rn_strbuf_printf(r->out, "%8d nodes, %5.1f %% of the time: %s\n", r->result->step.sources[k],
                       total > 0 ? 100 * r->result->step.source_ns[k] / total : 0, names[k]);
}

// A group that moved.
typedef struct moved_group_t {
  int32_t group, nodes;
  int32_t name;  // node of the IR that cost most
  int64_t cost_ns;
} moved_group_t;

static int compare_moved(const void* a, const void* b) {
  const moved_group_t *x = a, *y = b;
  if (x->cost_ns != y->cost_ns) return x->cost_ns > y->cost_ns ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

static void write_move(const report_t* r, const moved_group_t* moved, int32_t* devices) {
  const rn_search_result_t* s = &r->result->search;
  int32_t from = r->result->step.start[moved->group], to = s->devices[moved->group];
  rn_forecast_t without;
  devices[moved->group] = from;
  rn_forecast(r->forecaster, devices, &without);
  devices[moved->group] = to;
  rn_strbuf_printf(r->out, "%10.3f ms  %.*s (%d nodes) from %.*s to %.*s: ",
                   ms(r->result->step.work.load_ns[moved->group]),
                   RN_STR_ARGS(rn_ir_node(r->ir, moved->name)->name), moved->nodes,
                   RN_STR_ARGS(device_name(r, from)), RN_STR_ARGS(device_name(r, to)));
  if (without.over_bytes > s->found.over_bytes)
    rn_strbuf_printf(r->out, "otherwise %.3f MB too much memory\n",
                     mb(without.over_bytes - s->found.over_bytes));
  else
    rn_strbuf_printf(r->out, "otherwise %+.3f ms\n", ms(without.step_ns - s->found.step_ns));
}

static rn_status_t write_moves(report_t* r) {
  const rn_workload_t* w = &r->result->step.work;
  const rn_search_result_t* s = &r->result->search;
  moved_group_t* moved = NULL;
  int32_t count = 0, *devices = NULL;
  size_t groups = (size_t)w->group_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->scratch, groups, &moved));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->scratch, groups, &devices));
  memcpy(devices, s->devices, (groups - 1) * sizeof *devices);
  for (int32_t g = 0; g < w->group_count; ++g)
    moved[g] = (moved_group_t){.group = g, .cost_ns = -1};
  for (int32_t n = 0; n < w->node_count; ++n) {
    moved_group_t* m = &moved[w->group[n]];
    int64_t cost = w->cost_ns[(size_t)n * (size_t)w->device_count];
    m->nodes++;
    if (r->result->step.nodes[n] < 0 || cost <= m->cost_ns) continue;
    m->cost_ns = cost;
    m->name = r->result->step.nodes[n];
  }
  for (int32_t g = 0; g < w->group_count; ++g)
    if (s->devices[g] != r->result->step.start[g] && moved[g].cost_ns >= 0)
      moved[count++] = moved[g];
  qsort(moved, (size_t)count, sizeof *moved, compare_moved);
  rn_strbuf_printf(r->out, "\n%d of %d groups moved%s\n", count, w->group_count,
                   count > MOST_ROWS ? "; those that cost most:" : "");
  for (int32_t i = 0; i < count && i < MOST_ROWS; ++i) write_move(r, &moved[i], devices);
  return RN_OK;
}

// A value that a device holds when it holds the most.
typedef struct peak_value_t {
  int32_t node;  // of the workload
  int64_t bytes, again_ns;
} peak_value_t;

static int compare_held(const void* a, const void* b) {
  const peak_value_t *x = a, *y = b;
  // Bytes that are freed per time to compute them again.
  double p = (double)x->bytes / (double)(x->again_ns + 1000);
  double q = (double)y->bytes / (double)(y->again_ns + 1000);
  if (p != q) return p > q ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

// The values that |device| holds at its peak and that are computed, cheapest to compute again
// first.
static rn_status_t find_held(report_t* r, int32_t device, peak_value_t** out, int32_t* out_count) {
  const rn_workload_t* w = &r->result->step.work;
  rn_forecast_t forecast;
  const rn_forecast_span_t* spans;
  size_t count;
  int64_t *start = NULL, *end = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->scratch, (size_t)w->node_count + 1, &start));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->scratch, (size_t)w->node_count + 1, &end));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->scratch, (size_t)w->node_count + 1, out));
  rn_forecast_spans(r->forecaster, r->result->search.devices, &forecast, &spans, &count);
  for (size_t i = 0; i < count; ++i) {
    if (spans[i].output >= 0) continue;
    start[spans[i].node] = spans[i].start_ns;
    end[spans[i].node] = spans[i].end_ns;
  }
  for (int32_t n = 0; n < w->node_count; ++n) {
    int64_t bytes = 0, last = end[n], at = forecast.high_at_ns[device];
    if (rn_auto_device(r->result, n) != device || w->is_alias[n] || !end[n]) continue;
    for (int32_t o = w->first_output[n]; o < w->first_output[n + 1]; ++o) {
      bytes += w->bytes[o];
      for (int32_t k = w->first_reader[o]; k < w->first_reader[o + 1]; ++k)
        if (end[w->readers[k]] > last) last = end[w->readers[k]];
    }
    if (start[n] <= at && at <= last && bytes)
      (*out)[(*out_count)++] = (peak_value_t){
          n, bytes, w->cost_ns[(size_t)n * (size_t)w->device_count + (size_t)device]};
  }
  qsort(*out, (size_t)*out_count, sizeof **out, compare_held);
  return RN_OK;
}

static rn_status_t advise_recomputation(report_t* r, int32_t device, int64_t over) {
  peak_value_t* held = NULL;
  int32_t count = 0;
  int64_t freed = 0, again = 0;
  RN_RETURN_IF_ERROR(find_held(r, device, &held, &count));
  rn_strbuf_printf(r->out,
                   "%.*s lacks %.3f MB. Values that it holds at its peak, the cheapest to "
                   "compute again first:\n",
                   RN_STR_ARGS(device_name(r, device)), mb(over));
  for (int32_t i = 0; i < count && (i < MOST_ROWS || freed < over); ++i) {
    freed += held[i].bytes;
    again += held[i].again_ns;
    if (i >= MOST_ROWS) continue;
    rn_strbuf_printf(r->out, "%12.3f MB %10.3f ms  %.*s\n", mb(held[i].bytes), ms(held[i].again_ns),
                     RN_STR_ARGS(rn_ir_node(r->ir, r->result->step.nodes[held[i].node])->name));
  }
  rn_strbuf_printf(r->out,
                   freed >= over
                       ? "Recomputing these frees %.3f MB and takes %.3f ms more per step.\n"
                       : "All of them are only %.3f MB (%.3f ms): use smaller batches or more "
                         "devices.\n",
                   mb(freed), ms(again));
  return RN_OK;
}

static rn_status_t write_memory(report_t* r) {
  const rn_search_result_t* s = &r->result->search;
  if (s->single >= 0 && s->best_single.over_bytes && !s->found.over_bytes)
    rn_strbuf_append(r->out, RN_STR("\nNo device has the memory for the whole step: the model is "
                                    "cut, and the cut fits.\n"));
  if (!s->found.over_bytes) return RN_OK;
  rn_strbuf_append(r->out, RN_STR("\nNo placement that was tried fits into memory.\n"));
  for (int32_t d = 0; d < r->result->fleet.device_count; ++d) {
    int64_t limit = r->result->fleet.devices[d].memory;
    if (limit && s->found.high_bytes[d] > limit)
      RN_RETURN_IF_ERROR(advise_recomputation(r, d, s->found.high_bytes[d] - limit));
  }
  return RN_OK;
}

rn_status_t rn_report_write(const rn_ir_t* ir, const rn_auto_result_t* result, rn_strbuf_t* out) {
  report_t r = {.ir = ir, .result = result, .out = out};
  RN_RETURN_IF_ERROR(
      rn_forecaster_create(&result->step.work, &result->fleet, out->allocator, &r.forecaster));
  rn_arena_init(&r.scratch, out->allocator);
  rn_strbuf_printf(out, "%d nodes on %d devices; forecasts of a step:\n",
                   result->step.work.node_count, result->fleet.device_count);
  write_times(&r);
  write_devices(&r);
  write_sources(&r);
  rn_status_t status = write_moves(&r);
  if (rn_ok(status)) status = write_memory(&r);
  rn_forecaster_destroy(r.forecaster);
  rn_arena_clear(&r.scratch);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}
