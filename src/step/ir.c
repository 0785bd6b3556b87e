// The step's graph: nodes, order, sweeping. See ir.h.
#include "step/ir.h"

#include "device/device.h"
#include "tensor/float16.h"

rn_status_t rn_signature_copy(rn_arena_t* arena, const rn_signature_t* from, rn_signature_t* out) {
  rn_edge_t *feeds = NULL, *fetches = NULL;
  rn_node_t **targets = NULL, **done = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)from->feed_count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)from->fetch_count, &fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)from->target_count, &targets));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)from->done_count, &done));
  for (int32_t i = 0; i < from->done_count; ++i) done[i] = from->done[i];
  for (int32_t i = 0; i < from->feed_count; ++i) feeds[i] = from->feeds[i];
  for (int32_t i = 0; i < from->fetch_count; ++i) fetches[i] = from->fetches[i];
  for (int32_t i = 0; i < from->target_count; ++i) targets[i] = from->targets[i];
  *out = (rn_signature_t){.feeds = feeds,
                          .feed_count = from->feed_count,
                          .fetches = fetches,
                          .fetch_count = from->fetch_count,
                          .targets = targets,
                          .target_count = from->target_count,
                          .done = done,
                          .done_count = from->done_count};
  return RN_OK;
}

void rn_ir_destroy(rn_ir_t* ir) {
  if (!ir) return;
  for (size_t i = 0; i < ir->owned.count; ++i) rn_tensor_clear(&ir->owned.items[i]);
  rn_vec_free(&ir->owned, ir->allocator);
  rn_vec_free(&ir->nodes, ir->allocator);
  rn_arena_clear(&ir->arena);
  RN_FREE(ir->allocator, ir);
}

void rn_ir_label(const rn_ir_t* ir, const rn_ir_node_t* node, rn_strbuf_t* out) {
  const rn_ir_node_t* nodes = ir->nodes.items;
  rn_str_t separator = RN_STR("");
  rn_strbuf_append(out, rn_ir_source_name(ir, node));
  rn_strbuf_append(out, RN_STR(" = "));
  rn_strbuf_append(out, rn_str(node->op->name));
  rn_strbuf_append(out, RN_STR("("));
  for (int32_t i = 0; i < node->input_count; ++i, separator = RN_STR(", ")) {
    rn_strbuf_append(out, separator);
    rn_strbuf_append(out, rn_ir_source_name(ir, &nodes[node->inputs[i].node]));
    if (node->inputs[i].output > 0) rn_strbuf_printf(out, ":%d", node->inputs[i].output);
  }
  for (int32_t i = 0; i < node->control_count; ++i, separator = RN_STR(", ")) {
    rn_strbuf_append(out, separator);
    rn_strbuf_append(out, RN_STR("^"));
    rn_strbuf_append(out, rn_ir_source_name(ir, &nodes[node->controls[i]]));
  }
  rn_strbuf_append(out, RN_STR(")"));
}

rn_status_t rn_ir_add(rn_ir_t* ir, const rn_ir_node_t* prototype, int32_t* out_index) {
  rn_ir_node_t copy = *prototype;  // |prototype| may point into the vector that grows
  RN_RETURN_IF_ERROR(rn_vec_push(&ir->nodes, ir->allocator, copy));
  *out_index = (int32_t)ir->nodes.count - 1;
  return RN_OK;
}

static inline bool same_edge(rn_ir_edge_t a, rn_ir_edge_t b) {
  return a.node == b.node && a.output == b.output;
}

void rn_ir_replace_edge(rn_ir_t* ir, rn_ir_edge_t from, rn_ir_edge_t to) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    for (int32_t i = 0; i < node->input_count; ++i)
      if (same_edge(node->inputs[i], from)) node->inputs[i] = to;
  }
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (same_edge(ir->fetches[i], from)) ir->fetches[i] = to;
}

rn_status_t rn_ir_add_control(rn_ir_t* ir, int32_t node, int32_t control) {
  rn_ir_node_t* n = &ir->nodes.items[node];
  for (int32_t i = 0; i < n->control_count; ++i)
    if (n->controls[i] == control) return RN_OK;
  int32_t* grown = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)n->control_count + 1, &grown));
  if (n->control_count) memcpy(grown, n->controls, (size_t)n->control_count * sizeof *grown);
  grown[n->control_count] = control;
  n->controls = grown;
  n->control_count++;
  return RN_OK;
}

const rn_attr_value_t* rn_ir_attr(const rn_ir_node_t* node, rn_str_t name) {
  int index = rn_op_attr_index(node->op, name);
  if (index >= 0) return &node->attrs[index];
  for (int32_t i = 0; i < node->extra_count; ++i)
    if (rn_str_eq(node->extras[i].name, name)) return &node->extras[i].value;
  return NULL;
}

int rn_ir_matrix_axis(const rn_ir_t* ir, rn_ir_edge_t edge) {
  const rn_tensor_t* value = edge.node < 0 ? NULL : rn_ir_node(ir, edge.node)->constant;
  if (!value || value->count != 1 || !rn_tensor_has_ints(value)) return -1;
  int64_t axis = rn_tensor_int(value, 0);
  if (axis < 0) axis += 2;
  return axis == 0 || axis == 1 ? (int)axis : -1;
}

rn_status_t rn_ir_count_uses(rn_ir_t* ir, rn_ir_uses_t** out_uses) {
  rn_ir_uses_t* uses = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &uses));
  for (size_t n = 0; n < ir->nodes.count; ++n) uses[n].reader = -1;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed) continue;
    for (int32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i].node < 0) continue;
      uses[node->inputs[i].node].reads++;
      uses[node->inputs[i].node].reader = (int32_t)n;
    }
    for (int32_t i = 0; i < node->control_count; ++i) uses[node->controls[i]].waits++;
  }
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (ir->fetches[i].node >= 0) uses[ir->fetches[i].node].fetches++;
  for (int32_t i = 0; i < ir->target_count; ++i) uses[ir->targets[i]].waits++;
  *out_uses = uses;
  return RN_OK;
}

static bool is_one_of(const rn_ir_node_t* node, const char* const* names) {
  while (*names && strcmp(node->op->name, *names) != 0) ++names;
  return *names != NULL;
}

int rn_ir_repeated_input(const rn_ir_node_t* node) {
  static const char* const of_first[] = {"Tile", "BroadcastTo", "Reshape", NULL};
  static const char* const of_second[] = {"Fill", NULL};
  if (node->feed >= 0) return -1;
  return is_one_of(node, of_first) ? 0 : is_one_of(node, of_second) ? 1 : -1;
}

bool rn_ir_takes_numbers(const rn_ir_node_t* node) {
  static const char* const names[] = {"Add",     "AddV2",   "Sub",     "Mul",
                                      "RealDiv", "Maximum", "Minimum", NULL};
  return node->feed < 0 && node->input_count == 2 && is_one_of(node, names);
}

bool rn_ir_number(const rn_ir_t* ir, rn_ir_edge_t edge, double* out) {
  const rn_tensor_t* value = rn_ir_node(ir, edge.node)->constant;
  if (!value || edge.output || value->count != 1 || rn_ir_node(ir, edge.node)->feed >= 0)
    return false;
  switch (value->dtype) {
    case RN_FLOAT:
      *out = (double)*RN_DATA(value, const float);
      return true;
    case RN_HALF:
      *out = (double)rn_half_to_float(*RN_DATA(value, const uint16_t));
      return true;
    case RN_BFLOAT16:
      *out = (double)rn_bfloat16_to_float(*RN_DATA(value, const uint16_t));
      return true;
    default:
      return false;
  }
}

bool rn_ir_is_constant_enter(const rn_ir_node_t* node) {
  return !node->is_removed && node->op->role == RN_ROLE_ENTER && node->feed < 0 &&
         node->control_count == 0 && rn_ir_flag(node, "is_constant") && node->inputs[0].node >= 0;
}

bool rn_ir_has_role(const rn_ir_t* ir, rn_op_role_t role) {
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (!ir->nodes.items[n].is_removed && ir->nodes.items[n].op->role == role) return true;
  return false;
}

bool rn_ir_uses_accelerator(const rn_ir_t* ir) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (!node->is_removed && node->device && !node->device->is_host) return true;
  }
  return false;
}

bool rn_ir_is_read(const rn_ir_node_t* node) {
  static const char* const names[] = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd",
                                      "VariableShape", NULL};
  return node->feed < 0 && is_one_of(node, names);
}

bool rn_ir_wants_ref(const rn_ir_node_t* node, int32_t input) {
  int32_t flat = 0;
  for (int a = 0; a < node->op->input_count; ++a) {
    const rn_arg_def_t* arg = &node->op->inputs[a];
    int32_t length = rn_arg_length(arg, node->attrs);
    if (input < flat + length) return arg->is_ref;
    flat += length;
  }
  return false;
}

// A depth-first walk over inputs and control inputs without recursion: a graph may be a million
// nodes deep.
typedef struct ir_walk_t {
  rn_ir_t* ir;
  uint8_t* state;   // 0 new, 1 on the path, 2 done
  int32_t* path;    // nodes on the path
  int32_t* cursor;  // the next edge of each
  int32_t depth;
  int32_t* order;
  int32_t count;
} ir_walk_t;

// The predecessor at edge |cursor| of |node|; -1 for a loop's back edge, -2 if there are no more
// edges.
static int32_t predecessor(const rn_ir_t* ir, const rn_ir_node_t* node, int32_t cursor) {
  if (cursor >= rn_ir_edge_count(node)) return -2;
  if (cursor < node->input_count && rn_ir_is_back_edge(ir, node, cursor)) return -1;
  return rn_ir_source(node, cursor);
}

static rn_status_t cycle_error(const ir_walk_t* walk, int32_t node) {
  rn_strbuf_t names;
  rn_strbuf_init(&names, walk->ir->allocator);
  int32_t start = walk->depth - 1;
  while (start > 0 && walk->path[start] != node) --start;
  for (int32_t i = start; i < walk->depth && i < start + 8; ++i)
    rn_strbuf_printf(&names, "%s%.*s", i == start ? "" : ", ",
                     RN_STR_ARGS(walk->ir->nodes.items[walk->path[i]].name));
  rn_status_t status =
      rn_invalid_argument("Graph is invalid, contains a cycle with %d nodes, including: %.*s",
                          walk->depth - start, RN_STR_ARGS(rn_strbuf_view(&names)));
  rn_strbuf_clear(&names);
  return status;
}

static rn_status_t walk_from(ir_walk_t* walk, int32_t root) {
  if (root < 0 || walk->state[root] == 2) return RN_OK;
  walk->path[0] = root;
  walk->cursor[0] = 0;
  walk->depth = 1;
  walk->state[root] = 1;
  while (walk->depth > 0) {
    int32_t at = walk->path[walk->depth - 1];
    const rn_ir_node_t* node = &walk->ir->nodes.items[at];
    int32_t next = predecessor(walk->ir, node, walk->cursor[walk->depth - 1]++);
    if (next == -2) {
      walk->state[at] = 2;
      walk->order[walk->count++] = at;
      walk->depth--;
    } else if (next >= 0 && walk->state[next] == 0) {
      walk->state[next] = 1;
      walk->path[walk->depth] = next;
      walk->cursor[walk->depth++] = 0;
    } else if (next >= 0 && walk->state[next] == 1) {
      return cycle_error(walk, next);
    }
  }
  return RN_OK;
}

// Moves every Send behind the last node that it waits for, so that its reader elsewhere does not
// wait for more.
static rn_status_t advance_sends(ir_walk_t* walk) {
  const rn_ir_t* ir = walk->ir;
  if (!rn_ir_has_role(ir, RN_ROLE_SEND)) return RN_OK;
  size_t n = ir->nodes.count;
  int32_t *order = NULL, *place = NULL, *first = NULL, *next = NULL, count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->ir->arena, n + 1, &order));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->ir->arena, n + 1, &place));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->ir->arena, n + 1, &first));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->ir->arena, n + 1, &next));
  for (int32_t i = 0; i < walk->count; ++i) place[walk->order[i]] = i;
  for (int32_t i = walk->count; i-- > 0;) {
    int32_t index = walk->order[i], last = -1;
    const rn_ir_node_t* node = rn_ir_node(ir, index);
    if (!rn_ir_is_role(node, RN_ROLE_SEND)) continue;
    for (int32_t k = 0; k < rn_ir_edge_count(node); ++k)
      if (last < 0 || place[rn_ir_source(node, k)] > place[last]) last = rn_ir_source(node, k);
    if (last < 0 || rn_ir_is_role(rn_ir_node(ir, last), RN_ROLE_SEND)) continue;
    next[index] = first[last];
    first[last] = index + 1;
    place[index] = -1;
  }
  for (int32_t i = 0; i < walk->count; ++i) {
    if (place[walk->order[i]] < 0) continue;
    order[count++] = walk->order[i];
    for (int32_t send = first[walk->order[i]]; send; send = next[send - 1])
      order[count++] = send - 1;
  }
  walk->order = order;
  return RN_OK;
}

rn_status_t rn_ir_order(rn_ir_t* ir, int32_t** out_order, int32_t* out_count) {
  size_t n = ir->nodes.count;
  ir_walk_t walk = {.ir = ir};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &walk.state));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &walk.path));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &walk.cursor));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &walk.order));
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    RN_RETURN_IF_ERROR(walk_from(&walk, ir->fetches[i].node));
  for (int32_t i = 0; i < ir->target_count; ++i)
    RN_RETURN_IF_ERROR(walk_from(&walk, ir->targets[i]));
  // Nodes that only a loop's back edge reaches come last.
  for (size_t i = 0; i < n; ++i)
    if (!ir->nodes.items[i].is_removed) RN_RETURN_IF_ERROR(walk_from(&walk, (int32_t)i));
  RN_RETURN_IF_ERROR(advance_sends(&walk));
  *out_order = walk.order;
  *out_count = walk.count;
  return RN_OK;
}

rn_status_t rn_ir_spread(rn_ir_t* ir, bool* inout_is_marked) {
  int32_t *order = NULL, length = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &length));
  for (int32_t i = 0; i < length; ++i) {
    const rn_ir_node_t* node = &ir->nodes.items[order[i]];
    bool* is_marked = &inout_is_marked[order[i]];
    for (int32_t k = 0; k < node->input_count; ++k)
      if (node->inputs[k].node >= 0) *is_marked |= inout_is_marked[node->inputs[k].node];
    for (int32_t k = 0; k < node->control_count; ++k)
      *is_marked |= inout_is_marked[node->controls[k]];
  }
  return RN_OK;
}

rn_status_t rn_ir_sweep(rn_ir_t* ir) {
  size_t n = ir->nodes.count;
  bool* reached = NULL;
  int32_t* stack = NULL;
  size_t depth = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &reached));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &stack));
#define REACH(node_index)                  \
  do {                                     \
    int32_t reach_ = (node_index);         \
    if (reach_ >= 0 && !reached[reach_]) { \
      reached[reach_] = true;              \
      stack[depth++] = reach_;             \
    }                                      \
  } while (0)
  for (int32_t i = 0; i < ir->fetch_count; ++i) REACH(ir->fetches[i].node);
  for (int32_t i = 0; i < ir->target_count; ++i) REACH(ir->targets[i]);
  while (depth > 0) {
    const rn_ir_node_t* node = &ir->nodes.items[stack[--depth]];
    for (int32_t i = 0; i < node->input_count; ++i) REACH(node->inputs[i].node);
    for (int32_t i = 0; i < node->control_count; ++i) REACH(node->controls[i]);
  }
#undef REACH
  for (size_t i = 0; i < n; ++i)
    if (!reached[i]) ir->nodes.items[i].is_removed = true;
  return RN_OK;
}

static bool same_edges(const rn_edge_t* a, const rn_edge_t* b, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    if (a[i].node != b[i].node || a[i].index != b[i].index) return false;
  return true;
}

static bool same_nodes(rn_node_t* const* a, rn_node_t* const* b, int32_t count) {
  return count == 0 || memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

bool rn_signature_eq(const rn_signature_t* a, const rn_signature_t* b) {
  return a->feed_count == b->feed_count && a->fetch_count == b->fetch_count &&
         a->target_count == b->target_count && a->done_count == b->done_count &&
         same_edges(a->feeds, b->feeds, a->feed_count) &&
         same_edges(a->fetches, b->fetches, a->fetch_count) &&
         same_nodes(a->targets, b->targets, a->target_count) &&
         same_nodes(a->done, b->done, a->done_count);
}
