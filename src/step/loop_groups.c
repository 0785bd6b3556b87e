// Groups of nodes that become one loop: see loop_groups.h.
#include "step/loop_groups.h"

#include "device/part.h"

#define MOST_COPIES 24
#define MOST_NEW 2                   // inputs that are counted; more are too many
#define MOST_DEPTH 12                // of what is copied
#define MOST_ROW (INT64_C(1) << 16)  // elements that are summed in one loop with what needs the sum
#define SHORT_ROW 4096               // longer ones only if there are enough rows for a whole card
#define MANY_ROWS 256
#define SMALL (INT64_C(1) << 16)  // elements that take less time than a launch

static rn_shape_t shape_of(const rn_loop_graph_t* loops, rn_ir_edge_t edge) {
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

// How many inputs are operands: axes and shapes are not.
static int32_t operand_count(const rn_ir_node_t* node) {
  return node->kernel->vector_op & (RN_LOOP_REDUCES | RN_LOOP_REPEATS) ? 1 : node->input_count;
}

static bool is_point(const rn_loop_graph_t* loops, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < operand_count(node); ++i) {
    rn_dtype_t type = rn_ir_node(loops->ir, node->inputs[i].node)->types[node->inputs[i].output];
    if (rn_dtype_is_ref(type) || !broadcasts(shape_of(loops, node->inputs[i]), node->shapes[0]))
      return false;
  }
  return true;
}

// The axes of a reduction: its second input, a constant, or all but the last.
static bool find_axes(const rn_loop_graph_t* loops, const rn_ir_node_t* node, rn_loop_axes_t* out) {
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

static rn_loop_kind_t find_kind(const rn_loop_graph_t* loops, int32_t index, rn_loop_axes_t* axes) {
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

rn_status_t rn_loops_sort(rn_loop_graph_t* loops) {
  RN_RETURN_IF_ERROR(rn_ir_order(loops->ir, &loops->order, &loops->count));
  for (int32_t i = 0; i < loops->count; ++i) loops->place[loops->order[i]] = i;
  return RN_OK;
}

rn_status_t rn_loops_init(rn_loop_graph_t* loops, rn_ir_t* ir) {
  size_t count = ir->nodes.count + 1;
  *loops = (rn_loop_graph_t){.ir = ir, .merges = rn_ir_may_merge(ir)};
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &loops->uses));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->kind));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->axes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->held));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->place));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->is_tainted));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &loops->role));
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

int32_t rn_loop_operands(const rn_loop_graph_t* loops, int32_t index) {
  return operand_count(rn_ir_node(loops->ir, index));
}

bool rn_loop_only_repeats(const rn_loop_graph_t* loops, int32_t index) {
  return rn_ir_node(loops->ir, index)->kernel->vector_op & RN_LOOP_REPEATS;
}

// How many inputs of the members, without copies, read node |index|.
static int32_t reads_inside(const rn_loop_graph_t* loops, const rn_loop_group_t* group,
                            int32_t index) {
  int32_t inside = 0;
  for (int32_t m = 0; m < group->member_count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(loops->ir, group->members[m]);
    for (int32_t i = 0; !group->is_copy[m] && i < node->input_count; ++i)
      inside += node->inputs[i].node == index;
  }
  return inside;
}

bool rn_loop_is_output(const rn_loop_graph_t* loops, const rn_loop_group_t* group, int32_t m) {
  int32_t index = group->members[m];
  const rn_ir_uses_t* uses = &loops->uses[index];
  return !group->is_copy[m] &&
         (uses->fetches + uses->waits > 0 || uses->reads > reads_inside(loops, group, index));
}

static bool reads_edge(const rn_loop_graph_t* loops, const rn_loop_group_t* group,
                       rn_ir_edge_t edge) {
  for (int32_t m = 0; m < group->member_count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(loops->ir, group->members[m]);
    int32_t operands = rn_loop_operands(loops, group->members[m]);
    for (int32_t i = 0; i < operands; ++i)
      if (node->inputs[i].node == edge.node && node->inputs[i].output == edge.output) return true;
  }
  return false;
}

static bool same_axes(rn_loop_axes_t a, rn_loop_axes_t b) {
  return a.begin == b.begin && a.end == b.end && a.keeps == b.keeps;
}

// Whether |shape| is that of sums over the rows of the group.
static bool is_row_shape(const rn_loop_group_t* group, rn_shape_t shape) {
  int last = group->shape.rank - 1;
  if (!group->takes_rows || shape.rank != group->shape.rank || shape.dims[last] != 1) return false;
  for (int d = 0; d < last; ++d)
    if (shape.dims[d] != group->shape.dims[d]) return false;
  return true;
}

// Whether |index| is elementwise, of the group's shape and device, and not a member yet.
static bool may_join(const rn_loop_graph_t* loops, const rn_loop_group_t* group, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
  return loops->kind[index] == RN_LOOP_POINT && node->device == group->device &&
         rn_shape_eq(node->shapes[0], group->shape) && rn_loop_member(group, index) < 0;
}

// Whether |index| is a sum over rows of the group's shape, or is computed per row.
static bool is_of_rows(const rn_loop_graph_t* loops, const rn_loop_group_t* group, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
  if (!group->takes_rows || loops->kind[index] == RN_LOOP_NONE || node->device != group->device ||
      !is_row_shape(group, node->shapes[0]) || rn_loop_member(group, index) >= 0)
    return false;
  if (loops->kind[index] == RN_LOOP_REDUCE)
    return group->reduction_count < RN_LOOP_MAX_REDUCTIONS &&
           same_axes(loops->axes[index], group->axes) &&
           rn_shape_eq(shape_of(loops, node->inputs[0]), group->shape);
  for (int32_t i = 0; i < operand_count(node); ++i) {
    rn_shape_t shape = shape_of(loops, node->inputs[i]);
    int64_t count;
    if (!is_row_shape(group, shape) && (!rn_shape_count(shape, &count) || count != 1)) return false;
  }
  return true;
}

static void add(const rn_loop_graph_t* loops, rn_loop_group_t* group, int32_t index, bool is_copy) {
  group->reduction_count += loops->kind[index] == RN_LOOP_REDUCE;
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
static void find_leaves(const rn_loop_graph_t* loops, const rn_loop_group_t* group, int32_t index,
                        int depth, leaves_t* leaves) {
  const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
  for (int32_t i = 0; i < operand_count(node) && leaves->count < MOST_NEW; ++i) {
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

static int new_reads(const rn_loop_graph_t* loops, const rn_loop_group_t* group, int32_t index) {
  leaves_t leaves = {.count = 0};
  find_leaves(loops, group, index, 0, &leaves);
  return leaves.count;
}

// Adds a copy of |index|, and of what must be computed for it.
static void add_copy(const rn_loop_graph_t* loops, rn_loop_group_t* group, int32_t index,
                     int depth) {
  if (group->member_count == RN_LOOP_MEMBERS) return;
  const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
  bool wants[RN_LOOP_INPUTS] = {false};
  int32_t operands = operand_count(node);
  for (int32_t i = 0; i < operands && i < RN_LOOP_INPUTS; ++i) {
    int32_t source = node->inputs[i].node;
    wants[i] = depth < MOST_DEPTH && may_join(loops, group, source) &&
               !reads_edge(loops, group, node->inputs[i]) &&
               (!loops->held[source] || new_reads(loops, group, source) == 0);
  }
  add(loops, group, index, true);
  for (int32_t i = 0; i < operands && i < RN_LOOP_INPUTS; ++i)
    if (wants[i] && may_join(loops, group, node->inputs[i].node))
      add_copy(loops, group, node->inputs[i].node, depth + 1);
}

static bool is_private(const rn_loop_graph_t* loops, const rn_loop_group_t* group, int32_t index) {
  const rn_ir_uses_t* uses = &loops->uses[index];
  return uses->fetches + uses->waits == 0 && uses->reads == reads_inside(loops, group, index);
}

// Takes in |index|, which a member reads, if only members do.
static bool take(const rn_loop_graph_t* loops, rn_loop_group_t* group, int32_t index) {
  if (group->member_count == RN_LOOP_MEMBERS || !is_private(loops, group, index) ||
      (!may_join(loops, group, index) && !is_of_rows(loops, group, index)))
    return false;
  add(loops, group, index, false);
  return true;
}

// Takes in a copy of |index| if that saves memory traffic.
static bool take_copy(const rn_loop_graph_t* loops, rn_loop_group_t* group, int32_t index) {
  if (group->member_count + MOST_COPIES > RN_LOOP_MEMBERS || !may_join(loops, group, index))
    return false;
  int reads = new_reads(loops, group, index);
  if (reads > 1 || (reads == 1 && loops->held[index])) return false;
  add_copy(loops, group, index, 0);
  return true;
}

// Offers the group everything that it reads, and what that reads, once.
static bool offer(const rn_loop_graph_t* loops, rn_loop_group_t* group,
                  bool (*to)(const rn_loop_graph_t* loops, rn_loop_group_t* group, int32_t index)) {
  bool grows = false;
  for (int32_t m = 0; m < group->member_count; ++m) {
    int32_t index = group->members[m], operands = rn_loop_operands(loops, index);
    for (int32_t i = 0; i < operands; ++i)
      grows |= to(loops, group, rn_ir_node(loops->ir, index)->inputs[i].node);
  }
  return grows;
}

// Copies come last: a node that two members read may be theirs alone once both have joined.
static void grow(const rn_loop_graph_t* loops, rn_loop_group_t* group) {
  do {
    while (offer(loops, group, take)) continue;
  } while (offer(loops, group, take_copy));
}

enum { OUTSIDE, OWN, COPY };

static void set_roles(const rn_loop_graph_t* loops, const rn_loop_group_t* group, bool are_set) {
  for (int32_t m = 0; m < group->member_count; ++m)
    loops->role[group->members[m]] = (int8_t)(!are_set ? OUTSIDE : group->is_copy[m] ? COPY : OWN);
}

// Whether no path leaves the group and comes back.
static bool is_convex(const rn_loop_graph_t* loops, const rn_loop_group_t* group) {
  int32_t first = INT32_MAX, last = -1;
  for (int32_t m = 0; m < group->member_count; ++m) {
    int32_t place = loops->place[group->members[m]];
    if (!group->is_copy[m] && place < first) first = place;
    if (place > last) last = place;
  }
  bool is_fine = true;
  set_roles(loops, group, true);
  for (int32_t p = first; p <= last && is_fine; ++p) {
    int32_t index = loops->order[p];
    const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
    for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k);
      if (loops->role[index] != OWN)
        loops->is_tainted[index] |= loops->is_tainted[source] || loops->role[source] == OWN;
      is_fine &= loops->role[index] == OUTSIDE || !loops->is_tainted[source];
    }
  }
  set_roles(loops, group, false);
  for (int32_t p = first; p <= last; ++p) loops->is_tainted[loops->order[p]] = false;
  return is_fine;
}

// Adds |index| with the group's results if no cycle comes of it.
static bool try_output(const rn_loop_graph_t* loops, rn_loop_group_t* group, int32_t index) {
  if (group->member_count == RN_LOOP_MEMBERS || loops->uses[index].waits ||
      rn_loop_only_repeats(loops, index))
    return false;
  add(loops, group, index, false);
  int32_t outputs = 0;
  for (int32_t m = 0; m < group->member_count; ++m) outputs += rn_loop_is_output(loops, group, m);
  if (outputs <= RN_LOOP_OUTPUTS && is_convex(loops, group)) return true;
  group->member_count--;
  group->reduction_count -= loops->kind[index] == RN_LOOP_REDUCE;
  return false;
}

// Whether the group reads or computes |edge|, or, if |depth|, an input of the elementwise node that
// does.
static bool touches(const rn_loop_graph_t* loops, const rn_loop_group_t* group, rn_ir_edge_t edge,
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
static bool add_siblings(const rn_loop_graph_t* loops, rn_loop_group_t* group) {
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
    grows |= try_output(loops, group, index);
  }
  return grows;
}

// Adds |index|, which the group reads, and others too.
static bool take_output(const rn_loop_graph_t* loops, rn_loop_group_t* group, int32_t index) {
  bool fits = group->takes_rows ? is_of_rows(loops, group, index) : may_join(loops, group, index);
  return fits && try_output(loops, group, index);
}

// How many values the group reads.
static int32_t input_count(const rn_loop_graph_t* loops, const rn_loop_group_t* group) {
  int32_t count = 0;
  rn_ir_edge_t edges[RN_LOOP_INPUTS];
  for (int32_t m = 0; m < group->member_count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(loops->ir, group->members[m]);
    int32_t operands = rn_loop_operands(loops, group->members[m]);
    for (int32_t i = 0; i < operands; ++i) {
      rn_ir_edge_t edge = node->inputs[i];
      bool is_known = rn_loop_member(group, edge.node) >= 0;
      for (int32_t k = 0; k < count; ++k)
        is_known |= edges[k].node == edge.node && edges[k].output == edge.output;
      if (is_known) continue;
      if (count == RN_LOOP_INPUTS) return RN_LOOP_INPUTS + 1;
      edges[count++] = edge;
    }
  }
  return count;
}

// Adds small nodes that have nothing to do with the group.
static void add_strangers(const rn_loop_graph_t* loops, rn_loop_group_t* group) {
  int64_t count;
  if (group->reduction_count || !rn_shape_count(group->shape, &count) || count > SMALL) return;
  for (int32_t p = loops->place[group->members[0]]; p >= 0; --p) {
    int32_t index = loops->order[p];
    if (!may_join(loops, group, index) || rn_ir_node(loops->ir, index)->is_removed) continue;
    rn_loop_group_t before = *group;
    if (!try_output(loops, group, index)) continue;
    grow(loops, group);
    if (group->reduction_count || input_count(loops, group) > RN_LOOP_INPUTS) *group = before;
  }
}

// Whether sums over the rows may be computed in one loop with what needs them.
static bool has_good_rows(rn_shape_t shape) {
  int64_t length = shape.rank ? shape.dims[shape.rank - 1] : 1, count;
  return length > 1 && length <= MOST_ROW && rn_shape_count(shape, &count) &&
         (length <= SHORT_ROW || count / length >= MANY_ROWS);
}

// Adds Casts of what the group computes, so that it writes the value in both types.
static void add_casts(const rn_loop_graph_t* loops, rn_loop_group_t* group) {
  for (int32_t p = 0; p < loops->count; ++p) {
    int32_t index = loops->order[p];
    const rn_ir_node_t* node = rn_ir_node(loops->ir, index);
    if (loops->kind[index] != RN_LOOP_POINT || node->is_removed ||
        node->kernel->vector_op != RN_LOOP_CASTS)
      continue;
    int32_t m = rn_loop_member(group, node->inputs[0].node);
    if (m >= 0 && !group->is_copy[m] && loops->kind[group->members[m]] == RN_LOOP_POINT &&
        may_join(loops, group, index))
      try_output(loops, group, index);
  }
}

void rn_loop_group_find(const rn_loop_graph_t* loops, int32_t seed, rn_loop_group_t* out) {
  const rn_ir_node_t* node = rn_ir_node(loops->ir, seed);
  bool reduces = loops->kind[seed] == RN_LOOP_REDUCE;
  out->shape = reduces ? shape_of(loops, node->inputs[0]) : node->shapes[0];
  out->device = node->device;
  out->member_count = out->reduction_count = 0;
  int rank = out->shape.rank;
  out->takes_rows = !reduces && has_good_rows(out->shape);
  out->axes = reduces ? loops->axes[seed] : (rn_loop_axes_t){rank - 1, rank, true};
  add(loops, out, seed, false);
  grow(loops, out);
  if (!loops->merges) return;
  if (reduces && add_siblings(loops, out)) grow(loops, out);
  const rn_loop_group_t before = *out;
  while (offer(loops, out, take_output)) grow(loops, out);
  // Without a sum, what is computed per row would be computed, and stored, per element.
  if (out->takes_rows && !out->reduction_count) *out = before;
  add_casts(loops, out);
  if (!reduces) add_strangers(loops, out);
}
