// Elementwise fusion: turns elementwise nodes over one shape into one node that passes over memory
// once.
//
// A node joins the group of a reader if all its readers are in that group, or run after the group
// in any case; then the node is an additional result of the group. No path leaves the group and
// comes back, and every node of the group already waited for what the group waits for. The group
// runs in the place of its last node, the root. The root may also be a ConcatV2 of elementwise
// nodes.
#include "device/device.h"
#include "framework/internal_ops.h"
#include "step/fuse.h"

#define MAX_STEPS 256
// Size limit for the second attempt, when a larger group needs too many operands.
#define FEW_STEPS 10
// The most inputs of a ConcatV2 that can be a root.
#define MAX_PARTS 8
// The most readers of a result; the pass visits all of them repeatedly.
#define MAX_READERS 64

static bool is_elementwise(const rn_ir_node_t* node) {
  if (node->is_removed || node->feed >= 0 || node->constant || !node->kernel ||
      node->kernel->vector_op == 0 || (node->device && !node->device->is_host))
    return false;
  if (node->output_count != 1 || node->input_count > 2 || node->control_count > 0) return false;
  return (node->types[0] == RN_FLOAT || node->types[0] == RN_DOUBLE) &&
         rn_shape_is_full(node->shapes[0]);
}

static int64_t count_of(rn_shape_t shape) {
  int64_t count = -1;
  return rn_shape_is_full(shape) && rn_shape_count(shape, &count) ? count : -1;
}

// Operands must have the result's shape or be scalars.
static bool operands_fit(const rn_fuse_t* f, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_node_t* source = rn_ir_node(f->ir, node->inputs[i].node);
    rn_shape_t shape = source->shapes[node->inputs[i].output];
    if (source->types[node->inputs[i].output] != node->types[0]) return false;
    if (!rn_shape_eq(shape, node->shapes[0]) && count_of(shape) != 1) return false;
  }
  return count_of(node->shapes[0]) > 0;
}

static bool same_shape(const rn_fuse_t* f, const rn_ir_edge_t edges[2]) {
  return rn_shape_eq(rn_ir_node(f->ir, edges[0].node)->shapes[edges[0].output],
                     rn_ir_node(f->ir, edges[1].node)->shapes[edges[1].output]);
}

// Turns an AddN of two inputs into an addition.
static rn_status_t add_pairs(rn_fuse_t* f) {
  const rn_op_def_t *sum = rn_op_find(RN_STR("AddN")), *add = rn_op_find(RN_STR("AddV2"));
  for (size_t n = 0; sum && add && n < f->ir->nodes.count; ++n) {
    rn_ir_node_t* node = rn_ir_node(f->ir, (int32_t)n);
    if (node->is_removed || node->op != sum || node->feed >= 0 || node->input_count != 2 ||
        !node->kernel || !operands_fit(f, node) || !same_shape(f, node->inputs))
      continue;
    const rn_attr_value_t* attrs = NULL;  // the type, which both have
    RN_RETURN_IF_ERROR(rn_ir_make_attrs(f->ir, add, node, NULL, &attrs));
    const rn_kernel_def_t* kernel = rn_kernel_find(add, attrs, NULL, node->kernel->device);
    if (!kernel || kernel->vector_op == 0) continue;
    node->op = add;
    node->attrs = attrs;
    node->kernel = kernel;
  }
  return RN_OK;
}

// Whether |node| stacks large matrices of one shape vertically.
static bool is_stack(const rn_fuse_t* f, const rn_ir_node_t* node) {
  const int32_t count = node->input_count - 1;
  if (node->is_removed || node->op != f->concat || node->feed >= 0 || !node->kernel || count < 2 ||
      (node->types[0] != RN_FLOAT && node->types[0] != RN_DOUBLE) || node->shapes[0].rank != 2 ||
      rn_ir_matrix_axis(f->ir, node->inputs[count]) != 0)
    return false;
  for (int32_t i = 0; i < count; ++i) {
    if (node->inputs[i].node < 0) return false;
    const rn_ir_edge_t pair[2] = {node->inputs[0], node->inputs[i]};
    rn_shape_t shape = rn_ir_node(f->ir, pair[1].node)->shapes[pair[1].output];
    if (count_of(shape) < RN_FUSE_ELEMENTS || !same_shape(f, pair)) return false;
  }
  return true;
}

// Replaces such concatenations by the op whose inputs can be computed in place.
static rn_status_t stack_matrices(rn_fuse_t* f) {
  const rn_op_def_t* stack = rn_op_stack_rows();
  for (size_t n = 0; stack && n < f->ir->nodes.count; ++n) {
    rn_ir_node_t* node = rn_ir_node(f->ir, (int32_t)n);
    if (!is_stack(f, node)) continue;
    const rn_attr_value_t* attrs = NULL;  // type and number, as before
    RN_RETURN_IF_ERROR(rn_ir_make_attrs(f->ir, stack, node, NULL, &attrs));
    const rn_kernel_def_t* kernel = rn_kernel_find(stack, attrs, NULL, node->kernel->device);
    if (!kernel) continue;
    node->op = stack;
    node->attrs = attrs;
    node->kernel = kernel;
    node->input_count--;
  }
  return RN_OK;
}

static rn_status_t find_consumers(rn_fuse_t* f) {
  const rn_ir_t* ir = f->ir;
  int32_t total = 0;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed) continue;
    for (int32_t i = 0; i < node->input_count; ++i)
      if (node->inputs[i].node >= 0) f->consumers[node->inputs[i].node]++, total++;
    for (int32_t i = 0; i < node->control_count; ++i) f->is_pinned[node->controls[i]] = true;
  }
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (ir->fetches[i].node >= 0) f->is_pinned[ir->fetches[i].node] = true;
  for (int32_t i = 0; i < ir->target_count; ++i) f->is_pinned[ir->targets[i]] = true;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, (size_t)total + 1, &f->reads));
  // First where each node's readers end; filling them in from the back leaves where they begin.
  int32_t end = 0;
  for (size_t n = 0; n < ir->nodes.count; ++n) f->first[n] = end += f->consumers[n];
  f->first[ir->nodes.count] = total;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i)
      if (node->inputs[i].node >= 0) f->reads[--f->first[node->inputs[i].node]] = (int32_t)n;
  }
  return RN_OK;
}

// Computes levels, starting from the last nodes. |place| is a node's position in |order|, to
// recognise back edges.
static void find_levels(const rn_fuse_t* f, const int32_t* order, int32_t count, int32_t* place) {
  for (int32_t i = 0; i < count; ++i) place[order[i]] = i;
  for (int32_t i = count - 1; i >= 0; --i) {
    const rn_ir_node_t* node = rn_ir_node(f->ir, order[i]);
    for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k), level = f->level[order[i]] + 1;
      if (source >= 0 && place[source] < i && f->level[source] < level) f->level[source] = level;
    }
  }
}

// Numbers the sets of asynchronous nodes that nodes wait for. 0 is the empty set; every
// asynchronous node, and every node whose inputs have different numbers, starts a new number.
static void find_waits(const rn_fuse_t* f, const int32_t* order, int32_t count) {
  int32_t last = 0;
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = rn_ir_node(f->ir, order[i]);
    int32_t* mine = &f->waits[order[i]];
    bool opens = node->kernel && node->kernel->compute_async;
    for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k), from = source < 0 ? 0 : f->waits[source];
      opens |= from != 0 && *mine != 0 && from != *mine;
      if (from != 0) *mine = from;
    }
    if (opens) *mine = ++last;
  }
}

// A node behind one branch of a conditional may be dead where its operands are not.
static bool has_conditionals(const rn_ir_t* ir) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || node->op->role != RN_ROLE_SWITCH || node->feed >= 0) continue;
    int32_t predicate = node->inputs[1].node;
    if (predicate < 0 || ir->nodes.items[predicate].op->role != RN_ROLE_LOOP_COND) return true;
  }
  return false;
}

// Whether |index| has the shape, type and device of the group.
static bool may_join(const rn_fuse_t* f, const rn_fuse_group_t* group, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(f->ir, index);
  const rn_ir_node_t* root = rn_ir_node(f->ir, group->root);
  return f->group[index] < 0 && !f->is_pinned[index] && is_elementwise(node) &&
         node->device == root->device && node->types[0] == root->types[0] &&
         rn_shape_eq(node->shapes[0], group->shape) && operands_fit(f, node);
}

// Whether all readers of |index| are in the group or after it. Every node from which the root can
// be reached has a higher level than the root.
static bool may_be_result(const rn_fuse_t* f, const rn_fuse_group_t* group, int32_t index) {
  if (!group->is_large || f->consumers[index] > MAX_READERS ||
      f->waits[index] != f->waits[group->root])
    return false;
  for (int32_t r = f->first[index]; r < f->first[index + 1]; ++r)
    if (f->group[f->reads[r]] != group->root && f->level[f->reads[r]] > f->level[group->root])
      return false;
  return true;
}

// Adds |index| to the group and updates |inside| of its operands.
static rn_status_t take_in(rn_fuse_t* f, rn_fuse_group_t* group, int32_t index) {
  f->group[index] = group->root;
  RN_RETURN_IF_ERROR(rn_vec_push(&group->members, f->ir->allocator, index));
  const rn_ir_node_t* node = rn_ir_node(f->ir, index);
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    if (f->stamp[source] != f->attempts) {
      f->stamp[source] = f->attempts;
      f->inside[source] = 0;
    }
    f->inside[source]++;
  }
  return RN_OK;
}

static rn_status_t grow(rn_fuse_t* f, rn_fuse_group_t* group, size_t limit, bool has_results) {
  group->members.count = 0;
  f->attempts++;
  RN_RETURN_IF_ERROR(take_in(f, group, group->root));
  for (size_t at = 0; at < group->members.count && group->members.count < limit; ++at) {
    const rn_ir_node_t* node = rn_ir_node(f->ir, group->members.items[at]);
    for (int32_t i = 0; i < node->input_count && group->members.count < limit; ++i) {
      int32_t source = node->inputs[i].node;
      if (may_join(f, group, source) && (f->inside[source] == f->consumers[source] ||
                                         (has_results && may_be_result(f, group, source))))
        RN_RETURN_IF_ERROR(take_in(f, group, source));
    }
  }
  return RN_OK;
}

// Whether |index| is a ConcatV2 of elementwise nodes of one shape that it alone reads.
static bool is_row_of_parts(const rn_fuse_t* f, int32_t index, rn_fuse_group_t* group) {
  const rn_ir_node_t* node = rn_ir_node(f->ir, index);
  int32_t parts = node->input_count - 1;
  if (node->is_removed || node->op != f->concat || node->feed >= 0 || !node->kernel ||
      node->control_count > 0 || parts < 2 || parts > MAX_PARTS ||
      rn_ir_matrix_axis(f->ir, node->inputs[parts]) != 1 || node->inputs[0].node < 0)
    return false;
  rn_shape_t shape = rn_ir_node(f->ir, node->inputs[0].node)->shapes[node->inputs[0].output];
  if (shape.rank != 2 || shape.dims[1] < RN_FUSE_COLUMNS || count_of(shape) < RN_FUSE_ELEMENTS ||
      !rn_shape_is_full(node->shapes[0]))
    return false;
  *group = (rn_fuse_group_t){
      .root = index, .parts = parts, .shape = shape, .is_large = true, .members = group->members};
  for (int32_t i = 0; i < parts; ++i) {
    int32_t source = node->inputs[i].node;
    if (source < 0 || f->consumers[source] != 1 || !may_join(f, group, source)) return false;
  }
  return true;
}

static rn_status_t fuse_from(rn_fuse_t* f, rn_fuse_group_t* group, size_t limit, bool has_results) {
  if (f->group[group->root] >= 0) return RN_OK;  // an earlier attempt built it
  RN_RETURN_IF_ERROR(grow(f, group, limit, has_results));
  return group->members.count > 1 ? rn_fuse_build(f, group) : RN_OK;
}

// In reverse order, because a group's root is its last node.
static rn_status_t fuse_all(rn_fuse_t* f, const int32_t* order, int32_t count) {
  const bool has_results = !has_conditionals(f->ir);
  rn_fuse_group_t group = {0};
  rn_status_t status = RN_OK;
  for (int32_t i = count - 1; rn_ok(status) && i >= 0; --i) {
    int32_t index = order[i];
    const rn_ir_node_t* node = rn_ir_node(f->ir, index);
    if (f->group[index] >= 0) continue;
    if (is_elementwise(node) && operands_fit(f, node))
      group = (rn_fuse_group_t){.root = index,
                                .shape = node->shapes[0],
                                .is_large = count_of(node->shapes[0]) >= RN_FUSE_ELEMENTS,
                                .members = group.members};
    else if (!is_row_of_parts(f, index, &group))
      continue;
    if (has_results) status = fuse_from(f, &group, MAX_STEPS, true);
    if (rn_ok(status)) status = fuse_from(f, &group, MAX_STEPS, false);
    if (rn_ok(status)) status = fuse_from(f, &group, FEW_STEPS, false);
  }
  rn_vec_free(&group.members, f->ir->allocator);
  return status;
}

rn_status_t rn_pass_fuse_elementwise(rn_ir_t* ir) {
  rn_fuse_t f = {.ir = ir,
                 .one = rn_op_fused(),
                 .many = rn_op_fused_columns(),
                 .split = rn_op_find(RN_STR("Split")),
                 .split_v = rn_op_find(RN_STR("SplitV")),
                 .concat = rn_op_find(RN_STR("ConcatV2"))};
  if (!f.one || !f.many) return RN_OK;
  const size_t n = ir->nodes.count + 1;
  int32_t *order = NULL, *place = NULL, count = 0;
  int32_t** const numbers[] = {&f.consumers, &f.first, &f.level,   &f.waits,   &f.group, &f.inside,
                               &f.stamp,     &f.order, &f.operand, &f.readers, &f.stack, &place};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, numbers[i]));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &f.is_pinned));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &f.cursor));
  memset(f.group, 0xff, n * sizeof *f.group);
  RN_RETURN_IF_ERROR(add_pairs(&f));
  RN_RETURN_IF_ERROR(stack_matrices(&f));
  RN_RETURN_IF_ERROR(find_consumers(&f));
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  find_levels(&f, order, count, place);
  find_waits(&f, order, count);
  RN_RETURN_IF_ERROR(fuse_all(&f, order, count));
  return rn_ir_sweep(ir);  // removes Splits whose parts are now read in place
}
