// Entries of traces for what plans do not run: see step_parts.h.
#include "session/step_parts.h"

typedef struct adding_t {
  const rn_ir_t* ir;
  const rn_tensor_t* const* feeds;
  rn_step_stats_t* stats;
  rn_map_t seen;  // names of nodes that have an entry
  rn_arena_t scratch;
  bool* is_settled;     // by node: its results follow from constants
  bool* is_by_default;  // by node: and from a default in place of a feed
  int64_t end_ns;
} adding_t;

static bool may_settle(const rn_ir_node_t* node) {
  switch (node->op->role) {
    case RN_ROLE_CONSTANT:
    case RN_ROLE_SWITCH:
    case RN_ROLE_MERGE:
    case RN_ROLE_IDENTITY:
      return true;
    default:
      return node->input_count > 0 && rn_ir_is_pure(node);
  }
}

// Finds what is known ahead of the step. TensorFlow works that out ahead, too, unless it rests on a
// default that something might be fed in place of.
static rn_status_t find_settled(adding_t* a) {
  const rn_ir_t* ir = a->ir;
  int32_t *order = NULL, count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&a->scratch, ir->nodes.count + 1, &a->is_settled));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&a->scratch, ir->nodes.count + 1, &a->is_by_default));
  RN_RETURN_IF_ERROR(rn_ir_order((rn_ir_t*)ir, &order, &count));
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = &ir->nodes.items[order[i]];
    bool is_settled = may_settle(node), is_by_default = rn_ir_is_default(node);
    for (int32_t k = 0; k < node->input_count; ++k) {
      is_settled = is_settled && a->is_settled[node->inputs[k].node];
      is_by_default = is_by_default || a->is_by_default[node->inputs[k].node];
    }
    for (int32_t k = 0; k < node->control_count; ++k)
      is_by_default = is_by_default || a->is_by_default[node->controls[k]];
    a->is_settled[order[i]] = is_settled;
    a->is_by_default[order[i]] = is_by_default;
  }
  return RN_OK;
}

static bool is_listed(const adding_t* a, size_t n) {
  const rn_ir_node_t* node = &a->ir->nodes.items[n];
  if (node->is_removed || rn_map_get(&a->seen, node->name)) return false;
  switch (node->op->role) {
    case RN_ROLE_CONSTANT:
    case RN_ROLE_ARG:
    case RN_ROLE_RETVAL:
      return true;
    case RN_ROLE_IDENTITY:
      return !a->is_settled[n] || a->is_by_default[n];
    case RN_ROLE_SEND:
    case RN_ROLE_RECV:
      return false;
    default:
      return a->is_settled[n] && a->is_by_default[n];
  }
}

static rn_status_t add_entry(adding_t* a, const rn_ir_node_t* node) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, a->stats->allocator);
  rn_ir_label(a->ir, node, &text);
  rn_node_stats_t entry = {.op = node->op->name,
                           .device = node->device->name,
                           .start_ns = a->stats->start_ns,
                           .end_ns = a->stats->start_ns,
                           .is_given = true};
  if (node->op->role == RN_ROLE_RETVAL) entry.start_ns = entry.end_ns = a->end_ns;
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_arena_str(&a->stats->arena, rn_strbuf_view(&text), &entry.label);
  if (rn_ok(status)) {
    entry.node = rn_str_n(entry.label.data, node->name.size);
    const rn_tensor_t* value = node->constant;
    if (node->feed >= 0) value = a->feeds ? a->feeds[node->feed] : NULL;
    rn_step_stats_add(a->stats, entry, value, value ? 1 : 0);
  }
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t add_entries(adding_t* a) {
  for (size_t i = 0; i < a->stats->nodes.count; ++i) {
    const rn_node_stats_t* node = &a->stats->nodes.items[i];
    if (node->end_ns > a->end_ns) a->end_ns = node->end_ns;
    RN_RETURN_IF_ERROR(rn_map_put(&a->seen, node->node, a));
  }
  RN_RETURN_IF_ERROR(find_settled(a));
  for (size_t n = 0; n < a->ir->nodes.count; ++n)
    if (is_listed(a, n)) RN_RETURN_IF_ERROR(add_entry(a, &a->ir->nodes.items[n]));
  return RN_OK;
}

void rn_step_parts_add_stats(const rn_ir_t* parts, const rn_tensor_t* const* feeds,
                             rn_step_stats_t* stats) {
  adding_t adding = {.ir = parts, .feeds = feeds, .stats = stats, .end_ns = stats->start_ns};
  rn_map_init(&adding.seen, stats->allocator);
  rn_arena_init(&adding.scratch, stats->allocator);
  rn_status_free(add_entries(&adding));
  rn_map_clear(&adding.seen);
  rn_arena_clear(&adding.scratch);
}
