// Groups of nodes that become one loop: see loop_groups.h.
#include "step/loop_groups.h"

#include "device/part.h"

#define MOST_COPIES 24
#define MOST_NEW 2     // inputs that are counted; more are too many
#define MOST_DEPTH 12  // of what is copied

static rn_shape_t shape_of(const rn_loops_t* loops, rn_ir_edge_t edge) {
  return rn_ir_node(loops->ir, edge.node)->shapes[edge.output];
}

static bool broadcasts(rn_shape_t from, rn_shape_t to) {
  if (!rn_shape_is_full(from) || from.rank > to.rank) return false;
  for (int d = 0; d < from.rank; ++d) {
    int64_t size = from.dims[d];
    if (size != 1 && size != to.dims[to.rank - from.rank + d]) return false;
  }
  return true;
}

static bool is_channels_last(const rn_ir_node_t* node) {
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  return !format || rn_str_is(format->s, "NHWC");
}

static bool is_point(const rn_loops_t* loops, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_dtype_t type = rn_ir_node(loops->ir, node->inputs[i].node)->types[node->inputs[i].output];
    if (rn_dtype_is_ref(type) || !broadcasts(shape_of(loops, node->inputs[i]), node->shapes[0]))
      return false;
  }
  return true;
}

// The axes of a reduction: its second input, a constant, or all but the last.
static bool find_axes(const rn_loops_t* loops, const rn_ir_node_t* node, rn_loop_axes_t* out) {
  rn_shape_t shape = shape_of(loops, node->inputs[0]);
  *out = (rn_loop_axes_t){0, shape.rank - 1, rn_ir_flag(node, "keep_dims")};
  if (!rn_shape_is_full(shape) || shape.rank < 1) return false;
  if (node->input_count == 1) return out->end > 0;
  const rn_tensor_t* value = rn_ir_node(loops->ir, node->inputs[1].node)->constant;
  if (!value || (value->dtype != RN_INT32 && value->dtype != RN_INT64)) return false;
  uint64_t axes = 0;
  for (int64_t i = 0; i < value->count; ++i) {
    int64_t axis = value->dtype == RN_INT32 ? RN_DATA(value, const int32_t)[i]
                                            : RN_DATA(value, const int64_t)[i];
    if (axis < -shape.rank || axis >= shape.rank) return false;
    axes |= UINT64_C(1) << (axis < 0 ? axis + shape.rank : axis);
  }
  if (!axes) return false;
  out->begin = __builtin_ctzll(axes);
  uint64_t run = axes >> out->begin;
  out->end = out->begin + __builtin_popcountll(axes);
  return (run & (run + 1)) == 0;  // neighbours
}

static rn_loop_kind_t find_kind(const rn_loops_t* loops, int32_t index, rn_loop_axes_t* axes) {
  const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
  if (node->is_removed || node->feed >= 0 || node->constant || !node->kernel ||
      !node->kernel->vector_op || !node->device || node->device->is_host || node->control_count ||
      node->output_count != 1 || node->input_count < 1 || !rn_shape_is_full(node->shapes[0]) ||
      !is_channels_last(node) || rn_ir_flag(node, "Truncate"))
    return RN_LOOP_NONE;
  if (node->kernel->vector_op & RN_LOOP_REDUCES)
    return find_axes(loops, node, axes) ? RN_LOOP_REDUCE : RN_LOOP_NONE;
  return is_point(loops, node) ? RN_LOOP_POINT : RN_LOOP_NONE;
}

rn_status_t rn_loops_sort(rn_loops_t* loops) {
  RN_RETURN_IF_ERROR(rn_ir_order(loops->ir, &loops->order, &loops->count));
  for (int32_t i = 0; i < loops->count; ++i) loops->place[loops->order[i]] = i;
  return RN_OK;
}

rn_status_t rn_loops_init(rn_loops_t* loops, rn_ir_t* ir) {
  size_t count = ir->nodes.count + 1;
  *loops = (rn_loops_t){.ir = ir, .has_flow = rn_ir_has_flow(ir)};
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &loops->uses));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->kind));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->axes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->held));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->place));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->is_tainted));
  for (size_t n = 0; n < ir->nodes.count; ++n)
    loops->kind[n] = (uint8_t)find_kind(loops, (int32_t)n, &loops->axes[n]);
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    loops->held[n] += loops->uses[n].fetches + loops->uses[n].waits;
    const rn_ir_node_t* node = &ir->nodes.items[n];
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i)
      loops->held[node->inputs[i].node] += loops->kind[n] == RN_LOOP_NONE;
  }
  return rn_loops_sort(loops);
}

int32_t rn_loop_member(const rn_loop_group_t* group, int32_t index) {
  for (int32_t m = 0; m < group->member_count; ++m)
    if (group->members[m] == index) return m;
  return -1;
}

int32_t rn_loop_operands(const rn_loops_t* loops, int32_t index) {
  return loops->kind[index] == RN_LOOP_REDUCE ? 1 : rn_ir_node(loops->ir, index)->input_count;
}

// How many inputs of the members, without copies, read node |index|.
static int32_t reads_inside(const rn_loops_t* loops, const rn_loop_group_t* group, int32_t index) {
  int32_t inside = 0;
  for (int32_t m = 0; m < group->member_count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(loops->ir, group->members[m]);
    for (int32_t i = 0; !group->is_copy[m] && i < node->input_count; ++i)
      inside += node->inputs[i].node == index;
  }
  return inside;
}

bool rn_loop_is_output(const rn_loops_t* loops, const rn_loop_group_t* group, int32_t m) {
  int32_t index = group->members[m];
  const rn_ir_uses_t* uses = &loops->uses[index];
  return !group->is_copy[m] &&
         (uses->fetches + uses->waits > 0 || uses->reads > reads_inside(loops, group, index));
}

static bool reads_edge(const rn_loops_t* loops, const rn_loop_group_t* group, rn_ir_edge_t edge) {
  for (int32_t m = 0; m < group->member_count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(loops->ir, group->members[m]);
    int32_t operands = rn_loop_operands(loops, group->members[m]);
    for (int32_t i = 0; i < operands; ++i)
      if (node->inputs[i].node == edge.node && node->inputs[i].output == edge.output) return true;
  }
  return false;
}

// Whether |index| is elementwise, of the group's shape and device, and not a member yet.
static bool may_join(const rn_loops_t* loops, const rn_loop_group_t* group, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
  return loops->kind[index] == RN_LOOP_POINT && node->device == group->device &&
         rn_shape_eq(node->shapes[0], group->shape) && rn_loop_member(group, index) < 0;
}

static void add(rn_loop_group_t* group, int32_t index, bool is_copy) {
  group->is_copy[group->member_count] = is_copy;
  group->members[group->member_count++] = index;
}

// Values of the group's shape that it would have to read in addition.
typedef struct leaves_t {
  rn_ir_edge_t edges[MOST_NEW];
  int count;  // MOST_NEW: that many or more
} leaves_t;

static void add_leaf(leaves_t* leaves, rn_ir_edge_t edge) {
  for (int i = 0; i < leaves->count; ++i)
    if (leaves->edges[i].node == edge.node && leaves->edges[i].output == edge.output) return;
  if (leaves->count < MOST_NEW) leaves->edges[leaves->count++] = edge;
}

// Adds what the group would read in addition if it computed |index| itself.
static void find_leaves(const rn_loops_t* loops, const rn_loop_group_t* group, int32_t index,
                        int depth, leaves_t* leaves) {
  const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
  for (int32_t i = 0; i < node->input_count && leaves->count < MOST_NEW; ++i) {
    rn_ir_edge_t edge = node->inputs[i];
    if (!rn_shape_eq(shape_of(loops, edge), group->shape) || reads_edge(loops, group, edge) ||
        rn_loop_member(group, edge.node) >= 0)
      continue;
    leaves_t before = *leaves;
    if (depth < MOST_DEPTH && may_join(loops, group, edge.node)) {
      find_leaves(loops, group, edge.node, depth + 1, leaves);
      if (leaves->count == before.count || !loops->held[edge.node]) continue;
      *leaves = before;  // it is in memory anyway
    }
    add_leaf(leaves, edge);
  }
}

static int new_reads(const rn_loops_t* loops, const rn_loop_group_t* group, int32_t index) {
  leaves_t leaves = {.count = 0};
  find_leaves(loops, group, index, 0, &leaves);
  return leaves.count;
}

// Adds a copy of |index|, and of what must be computed for it.
static void add_copy(const rn_loops_t* loops, rn_loop_group_t* group, int32_t index, int depth) {
  if (group->member_count == RN_LOOP_MEMBERS) return;
  const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
  bool wants[RN_LOOP_INPUTS] = {false};
  for (int32_t i = 0; i < node->input_count && i < RN_LOOP_INPUTS; ++i) {
    int32_t source = node->inputs[i].node;
    wants[i] = depth < MOST_DEPTH && may_join(loops, group, source) &&
               !reads_edge(loops, group, node->inputs[i]) &&
               (!loops->held[source] || new_reads(loops, group, source) == 0);
  }
  add(group, index, true);
  for (int32_t i = 0; i < node->input_count && i < RN_LOOP_INPUTS; ++i)
    if (wants[i] && may_join(loops, group, node->inputs[i].node))
      add_copy(loops, group, node->inputs[i].node, depth + 1);
}

static bool is_private(const rn_loops_t* loops, const rn_loop_group_t* group, int32_t index) {
  const rn_ir_uses_t* uses = &loops->uses[index];
  return uses->fetches + uses->waits == 0 && uses->reads == reads_inside(loops, group, index);
}

// Takes in |index|, which a member reads, if that saves memory traffic.
static bool take(const rn_loops_t* loops, rn_loop_group_t* group, int32_t index) {
  if (group->member_count == RN_LOOP_MEMBERS || !may_join(loops, group, index)) return false;
  if (is_private(loops, group, index)) {
    add(group, index, false);
    return true;
  }
  if (group->member_count + MOST_COPIES > RN_LOOP_MEMBERS) return false;
  int reads = new_reads(loops, group, index);
  if (reads > 1 || (reads == 1 && loops->held[index])) return false;
  add_copy(loops, group, index, 0);
  return true;
}

static void grow(const rn_loops_t* loops, rn_loop_group_t* group) {
  for (bool grows = true; grows;) {
    grows = false;
    for (int32_t m = 0; m < group->member_count; ++m) {
      int32_t index = group->members[m], operands = rn_loop_operands(loops, index);
      for (int32_t i = 0; i < operands; ++i)
        grows |= take(loops, group, rn_ir_node(loops->ir, index)->inputs[i].node);
    }
  }
}

// Whether no path leaves the group and comes back.
static bool is_convex(const rn_loops_t* loops, const rn_loop_group_t* group) {
  int32_t first = INT32_MAX, last = -1;
  for (int32_t m = 0; m < group->member_count; ++m) {
    int32_t place = loops->place[group->members[m]];
    if (!group->is_copy[m] && place < first) first = place;
    if (place > last) last = place;
  }
  bool is_fine = true;
  for (int32_t p = first; p <= last && is_fine; ++p) {
    const rn_ir_node_t* node = rn_ir_node(loops->ir, loops->order[p]);
    int32_t m = rn_loop_member(group, loops->order[p]);
    for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k), other = rn_loop_member(group, source);
      bool is_tainted = loops->is_tainted[source] || (other >= 0 && !group->is_copy[other]);
      if (m < 0 || group->is_copy[m]) loops->is_tainted[loops->order[p]] |= is_tainted;
      is_fine &= m < 0 || !loops->is_tainted[source];
    }
  }
  for (int32_t p = first; p <= last; ++p) loops->is_tainted[loops->order[p]] = false;
  return is_fine;
}

// Adds |index| with the group's results if no cycle comes of it.
static bool try_output(const rn_loops_t* loops, rn_loop_group_t* group, int32_t index) {
  if (group->member_count == RN_LOOP_MEMBERS || loops->uses[index].waits) return false;
  add(group, index, false);
  int32_t outputs = 0;
  for (int32_t m = 0; m < group->member_count; ++m) outputs += rn_loop_is_output(loops, group, m);
  if (outputs <= RN_LOOP_OUTPUTS && is_convex(loops, group)) return true;
  group->member_count--;
  return false;
}

static bool same_axes(rn_loop_axes_t a, rn_loop_axes_t b) {
  return a.begin == b.begin && a.end == b.end && a.keeps == b.keeps;
}

// Whether the group reads or computes |edge|, or, if |depth|, an input of the elementwise node that
// does.
static bool touches(const rn_loops_t* loops, const rn_loop_group_t* group, rn_ir_edge_t edge,
                    int depth) {
  if (reads_edge(loops, group, edge) || rn_loop_member(group, edge.node) >= 0) return true;
  if (!depth || !may_join(loops, group, edge.node)) return false;
  const rn_ir_node_t* node = rn_ir_node(loops->ir, edge.node);
  for (int32_t i = 0; i < node->input_count; ++i)
    if (rn_shape_eq(shape_of(loops, node->inputs[i]), group->shape) &&
        touches(loops, group, node->inputs[i], depth - 1))
      return true;
  return false;
}

// Adds reductions of what the group reads or computes, or of what is computed from that.
static bool add_siblings(const rn_loops_t* loops, rn_loop_group_t* group) {
  bool grows = false;
  for (int32_t p = 0; p < loops->count; ++p) {
    int32_t index = loops->order[p];
    if (loops->kind[index] != RN_LOOP_REDUCE || rn_loop_member(group, index) >= 0) continue;
    const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
    rn_ir_edge_t of = node->inputs[0];
    if (group->reduction_count == RN_LOOP_MAX_REDUCTIONS || node->device != group->device ||
        !same_axes(loops->axes[index], group->axes) ||
        !rn_shape_eq(shape_of(loops, of), group->shape) ||
        reads_edge(loops, group, (rn_ir_edge_t){index, 0}) || !touches(loops, group, of, 2))
      continue;
    if (!try_output(loops, group, index)) continue;
    group->reduction_count++;
    grows = true;
  }
  return grows;
}

// Adds values that the group reads, and others too.
static bool add_outputs(const rn_loops_t* loops, rn_loop_group_t* group) {
  bool grows = false;
  for (int32_t m = 0; m < group->member_count; ++m) {
    int32_t index = group->members[m], operands = rn_loop_operands(loops, index);
    for (int32_t i = 0; i < operands; ++i) {
      int32_t source = rn_ir_node(loops->ir, index)->inputs[i].node;
      if (may_join(loops, group, source)) grows |= try_output(loops, group, source);
    }
  }
  return grows;
}

void rn_loop_group_find(const rn_loops_t* loops, int32_t seed, rn_loop_group_t* out) {
  const rn_ir_node_t* node = rn_ir_node(loops->ir, seed);
  bool reduces = loops->kind[seed] == RN_LOOP_REDUCE;
  out->shape = reduces ? shape_of(loops, node->inputs[0]) : node->shapes[0];
  out->device = node->device;
  out->member_count = 0;
  out->reduction_count = reduces;
  out->axes = loops->axes[seed];
  add(out, seed, false);
  grow(loops, out);
  if (!reduces || loops->has_flow) return;
  if (add_siblings(loops, out)) grow(loops, out);
  while (add_outputs(loops, out)) grow(loops, out);
}
