// Costs from traces: see from_step.h.
#include <stdlib.h>

#include "device/part.h"
#include "framework/kernel.h"
#include "place/auto/from_step.h"

// Steps of a trace beyond these are left out.
enum { MOST_STEPS = 64 };
// One node in this many must have an entry, or the trace is of another graph.
enum { LEAST_SHARE = 4 };

// The times of a node, one per step.
typedef struct times_t {
  int64_t ns[MOST_STEPS];
  bool is_there[MOST_STEPS];
  rn_str_t device;
  int64_t bytes;
} times_t;

typedef struct learning_t {
  rn_costs_t* costs;
  rn_ir_t* ir;
  rn_arena_t arena;
  rn_map_t times;  // by node
  rn_strbuf_t text;
} learning_t;

static int compare_times(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

static int64_t median(const times_t* times) {
  int64_t ns[MOST_STEPS];
  size_t count = 0;
  for (int s = 0; s < MOST_STEPS; ++s)
    if (times->is_there[s]) ns[count++] = times->ns[s];
  qsort(ns, count, sizeof *ns, compare_times);
  return ns[count / 2];
}

static rn_status_t add_entry(learning_t* l, const rn_trace_entry_t* entry) {
  int64_t sum;
  if (entry->step < 0 || entry->step >= MOST_STEPS || entry->ns < 0) return RN_OK;
  times_t* times = rn_map_get(&l->times, entry->node);
  if (!times) {
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&l->arena, &times));
    times->device = entry->device;
    RN_RETURN_IF_ERROR(rn_map_put(&l->times, entry->node, times));
  }
  if (rn_add_i64_ok(times->ns[entry->step], entry->ns, &sum)) times->ns[entry->step] = sum;
  times->is_there[entry->step] = true;
  if (entry->bytes > 0) times->bytes = entry->bytes;
  return RN_OK;
}

// The type of a device in a trace: "CPU". |buffer| holds it.
static const char* type_of(rn_str_t device, char* buffer, size_t size) {
  rn_device_spec_t spec;
  if (!rn_device_spec_parse(device, &spec) || !spec.type.size || spec.type.size >= size)
    return "CPU";
  memcpy(buffer, spec.type.data, spec.type.size);
  buffer[spec.type.size] = 0;
  return buffer;
}

static rn_status_t learn_node(learning_t* l, const rn_ir_node_t* node) {
  const times_t* times = rn_map_get(&l->times, node->name);
  char buffer[32];
  rn_cost_key_t key = {.node = node->name,
                       .device = times ? type_of(times->device, buffer, sizeof buffer) : "CPU",
                       .op = rn_str(node->op->name),
                       .work = rn_ir_work(l->ir, node)};
  int64_t ns = times ? median(times) : 0;
  RN_RETURN_IF_ERROR(rn_costs_add_node(l->costs, &key, ns, times ? times->bytes : 0));
  if (!times || ns == 0) return RN_OK;
  l->text.size = 0;
  rn_costs_sign(l->ir, node, &l->text);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&l->text));
  key.signature = rn_strbuf_view(&l->text);
  return rn_costs_add_op(l->costs, &key, ns);
}

static rn_status_t learn(learning_t* l, const rn_trace_entry_t* entries, size_t count) {
  size_t all = 0, known = 0;
  for (size_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(add_entry(l, &entries[i]));
  for (size_t n = 0; n < l->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &l->ir->nodes.items[n];
    if (node->is_removed || node->feed >= 0) continue;
    all++;
    known += rn_map_get(&l->times, node->name) != NULL;
  }
  if (known == 0 || known < all / LEAST_SHARE) return RN_OK;
  for (size_t n = 0; n < l->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &l->ir->nodes.items[n];
    if (!node->is_removed && node->feed < 0) RN_RETURN_IF_ERROR(learn_node(l, node));
  }
  return RN_OK;
}

rn_status_t rn_costs_learn(rn_costs_t* costs, rn_ir_t* ir, const rn_trace_entry_t* entries,
                           size_t count) {
  learning_t learning = {.costs = costs, .ir = ir};
  rn_arena_init(&learning.arena, ir->allocator);
  rn_map_init(&learning.times, ir->allocator);
  rn_strbuf_init(&learning.text, ir->allocator);
  rn_status_t status = learn(&learning, entries, count);
  rn_strbuf_clear(&learning.text);
  rn_map_clear(&learning.times);
  rn_arena_clear(&learning.arena);
  return status;
}
