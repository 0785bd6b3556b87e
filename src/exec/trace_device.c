// Traces of devices: see trace_device.h.
#include "exec/trace_device.h"

#include <stdio.h>

void rn_state_trace_begin(rn_state_t* state, const rn_run_t* run) {
  rn_device_t* device = state->plan->device;
  state->trace = NULL;
  if (!run->stats || device->is_host || !device->vtable->trace_begin) return;
  rn_status_free(device->vtable->trace_begin(device, run->step->env, &state->trace));
}

typedef struct trace_visit_t {
  const rn_plan_t* plan;
  rn_step_stats_t* stats;
} trace_visit_t;

static const char* const copies[] = {[RN_TRACE_KERNEL] = "",
                                     [RN_TRACE_TO_DEVICE] = "MEMCPYHtoD",
                                     [RN_TRACE_TO_HOST] = "MEMCPYDtoH",
                                     [RN_TRACE_WITHIN] = "MEMCPYDtoD"};

// The texts of an entry, in the arena of the statistics.
static rn_status_t make_texts_locked(const trace_visit_t* v, const rn_trace_event_t* event,
                                     const char* row, rn_node_stats_t* out) {
  rn_arena_t* arena = &v->stats->arena;
  bool has_node = event->node >= 0 && event->node < v->plan->instr_count;
  rn_str_t name = has_node ? v->plan->names[event->node] : RN_STR("edge");
  const rn_kernel_t* kernel = has_node ? v->plan->instrs[event->node].kernel : NULL;
  const char* op = kernel ? kernel->op->name : copies[event->kind];
  const char* what = event->kind ? copies[event->kind] : *event->name ? event->name : op;
  rn_str_t kept;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, rn_str(what), &kept));
  out->op = kept.data;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &out->node, "%.*s:%s", RN_STR_ARGS(name), op));
  RN_RETURN_IF_ERROR(
      rn_arena_printf(arena, &out->device, "%.*s/%s", RN_STR_ARGS(v->plan->device->name), row));
  if (event->kind)
    return rn_arena_printf(arena, &out->label, "%s %lld bytes@@%.*s:%s#", what,
                           (long long)event->bytes, RN_STR_ARGS(name), op);
  return rn_arena_printf(arena, &out->label, "%s@@%.*s:%s#", what, RN_STR_ARGS(name), op);
}

static void add(const trace_visit_t* v, const rn_trace_event_t* event, const char* row) {
  rn_node_stats_t node = {
      .start_ns = event->start_ns, .end_ns = event->end_ns, .thread = event->stream};
  rn_mutex_lock(&v->stats->mutex);
  rn_status_t status = make_texts_locked(v, event, row, &node);
  rn_mutex_unlock(&v->stats->mutex);
  if (rn_ok(status)) rn_step_stats_add(v->stats, node, NULL, 0);
  rn_status_free(status);
}

static void add_event(void* self, const rn_trace_event_t* event) {
  char stream[32];
  snprintf(stream, sizeof stream, "stream:%d", event->stream);
  add(self, event, event->kind ? "memcpy" : "stream:all");
  add(self, event, stream);
}

void rn_state_trace_end(rn_state_t* state, const rn_run_t* run) {
  if (!state->trace) return;
  trace_visit_t v = {.plan = state->plan, .stats = run->stats};
  state->plan->device->vtable->trace_end(state->trace, add_event, &v);
  state->trace = NULL;
}
