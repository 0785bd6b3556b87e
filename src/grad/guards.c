// Conditionals of Switch and Merge nodes: finds out when a value is alive, and makes its gradient
// alive exactly then.
//
// A Switch makes one of its outputs dead, and a dead value stays dead up to a Merge. The gradient
// of a Merge is a Switch, that of a Switch is a Merge. A gradient that is alive when its value is
// dead could win in that Merge; one that is dead when its value is alive would make a whole sum
// dead. So every arriving gradient is made alive exactly when the value that it arrives at is.
#include "grad/backward.h"
#include "runnel/ops.h"

static bool is_choice(const rn_node_t* node) {
  return node->op->role == RN_ROLE_SWITCH && !rn_while_loop_is_switch(node);
}

// The original value of a predicate: follows Identity nodes, Switch nodes of conditionals, and
// copies in the backward graph, none of which change it. It is alive wherever the predicate is.
static rn_edge_t predicate_of(rn_level_t* level, rn_edge_t edge) {
  for (;;) {
    const rn_walk_t* walk = level->walk;
    size_t id = (size_t)edge.node->id;
    if (id >= walk->node_count && id < walk->notes.count && walk->notes.items[id].origin.node)
      edge = walk->notes.items[id].origin;
    else if (edge.node->input_count > 0 &&
             (edge.node->op->role == RN_ROLE_IDENTITY || is_choice(edge.node)))
      edge = edge.node->inputs[0];
    else
      return edge;
  }
}

static bool same_edge(rn_edge_t a, rn_edge_t b) { return a.node == b.node && a.index == b.index; }

static const rn_guard_t* guard_with(rn_level_t* level, const rn_guard_t* parent, rn_edge_t pred,
                                    int branch) {
  rn_walk_t* walk = level->walk;
  for (const rn_guard_t* g = parent; g; g = g->parent)
    if (same_edge(g->pred, pred) && g->branch == branch) return parent;
  for (rn_guard_t* g = walk->guards; g; g = g->next)
    if (g->parent == parent && same_edge(g->pred, pred) && g->branch == branch) return g;
  rn_guard_t* guard = NULL;
  rn_status_t status = RN_ARENA_NEW(&walk->arena, &guard);
  if (!rn_ok(status)) {
    rn_scope_fail(level->here, status);
    return parent;
  }
  *guard = (rn_guard_t){.parent = parent,
                        .pred = pred,
                        .branch = branch,
                        .depth = parent ? parent->depth + 1 : 1,
                        .next = walk->guards};
  walk->guards = guard;
  return guard;
}

// The conjunction of two guards.
static const rn_guard_t* both(rn_level_t* level, const rn_guard_t* a, const rn_guard_t* b) {
  if (a == b || !b) return a;
  if (!a) return b;
  a = both(level, a, b->parent);
  return guard_with(level, a, b->pred, b->branch);
}

static bool holds(const rn_guard_t* guard, rn_edge_t pred, int branch) {
  for (; guard; guard = guard->parent)
    if (same_edge(guard->pred, pred) && guard->branch == branch) return true;
  return false;
}

// The conditions that all inputs of a Merge have in common, in any order.
static const rn_guard_t* common(rn_level_t* level, const rn_guard_t* a, const rn_guard_t* b) {
  if (!a || a == b) return a;
  const rn_guard_t* before = common(level, a->parent, b);
  return holds(b, a->pred, a->branch) ? guard_with(level, before, a->pred, a->branch) : before;
}

bool rn_guard_implies(const rn_guard_t* a, const rn_guard_t* b) {
  for (; b; b = b->parent)
    if (!holds(a, b->pred, b->branch)) return false;
  return true;
}

static bool is_known(rn_level_t* level, const rn_node_t* node) {
  const rn_walk_t* walk = level->walk;
  return (size_t)node->id < walk->notes.count && walk->notes.items[node->id].has_guard;
}

void rn_guard_set(rn_level_t* level, rn_node_t* node, const rn_guard_t* guard) {
  rn_note_t* note = node ? rn_walk_note(level, node) : NULL;
  if (!note) return;
  note->guard = guard;
  note->has_guard = true;
}

// The guard of |edge|; that of its node is known.
static const rn_guard_t* of_edge(rn_level_t* level, rn_edge_t edge) {
  const rn_guard_t* guard = level->walk->notes.items[edge.node->id].guard;
  if (!is_choice(edge.node)) return guard;
  return guard_with(level, guard, predicate_of(level, edge.node->inputs[1]), edge.index);
}

// Whether |node| starts a loop's frame. A loop is alive when its inputs are; inside, guards are
// relative to the loop.
static bool begins_loop(const rn_node_t* node) {
  return node->op->role == RN_ROLE_ENTER || rn_while_loop_is_merge(node);
}
static int source_count(const rn_node_t* node) { return begins_loop(node) ? 0 : node->input_count; }

static rn_edge_t source_of(rn_level_t* level, const rn_node_t* node, int i) {
  if (node->op->role != RN_ROLE_EXIT) return node->inputs[i];
  const rn_while_loop_t* loop = rn_while_loop_of(&level->walk->loops, node->inputs[0].node);
  if (!loop || loop->vars.count + loop->invariants.count == 0) return node->inputs[i];
  return loop->vars.count > 0 ? loop->vars.items[0].enter->inputs[0]
                              : loop->invariants.items[0]->inputs[0];
}

static const rn_guard_t* compute(rn_level_t* level, const rn_node_t* node) {
  const rn_guard_t* guard = NULL;
  int count = source_count(node);
  bool is_merge = node->op->role == RN_ROLE_MERGE;
  for (int i = 0; i < count; ++i) {
    const rn_guard_t* own = of_edge(level, source_of(level, node, i));
    guard = i == 0 ? own : is_merge ? common(level, guard, own) : both(level, guard, own);
  }
  for (size_t i = 0; !begins_loop(node) && i < node->controls.count; ++i) {
    const rn_node_t* control = node->controls.items[i];
    if (control->op->role == RN_ROLE_ENTER || control->op->role == RN_ROLE_CONTROL_TRIGGER)
      continue;
    if (is_known(level, control))
      guard = both(level, guard, level->walk->notes.items[control->id].guard);
  }
  return guard;
}

// Pushes the nodes whose guards must be known before that of |node|; true if all are known.
static bool push_sources(rn_level_t* level, const rn_node_t* node, rn_status_t* inout) {
  rn_walk_t* walk = level->walk;
  size_t before = walk->stack.count;
  int count = source_count(node);
  for (int i = 0; i < count && rn_ok(*inout); ++i) {
    rn_node_t* source = source_of(level, node, i).node;
    if (!is_known(level, source))
      *inout = rn_vec_push(&walk->stack, walk->graph->allocator, source);
  }
  for (size_t i = 0; !begins_loop(node) && i < node->controls.count && rn_ok(*inout); ++i) {
    rn_node_t* source = node->controls.items[i];
    if (!is_known(level, source))
      *inout = rn_vec_push(&walk->stack, walk->graph->allocator, source);
  }
  return walk->stack.count == before;
}

const rn_guard_t* rn_guard_of(rn_level_t* level, rn_edge_t edge) {
  rn_walk_t* walk = level->walk;
  if (!walk->has_conds || !edge.node) return NULL;
  if (!is_known(level, edge.node)) {
    walk->stack.count = 0;
    rn_status_t status = rn_vec_push(&walk->stack, walk->graph->allocator, edge.node);
    while (rn_ok(status) && walk->stack.count > 0) {
      rn_node_t* node = walk->stack.items[walk->stack.count - 1];
      if (!is_known(level, node) && !push_sources(level, node, &status)) continue;
      walk->stack.count--;
      if (!is_known(level, node)) rn_guard_set(level, node, compute(level, node));
      if (!rn_scope_ok(level->here)) return NULL;
    }
    if (!rn_ok(status)) {
      rn_scope_fail(level->here, status);
      return NULL;
    }
  }
  return of_edge(level, edge);
}

static rn_edge_t branch_of(rn_level_t* level, rn_edge_t value, rn_edge_t pred, int branch) {
  rn_Switch_out_t out = rn_Switch(level->scope, value, pred);
  return branch ? out.output_true : out.output_false;
}

// Adds zeros like |at| that are alive when |at| is and |pred| is |branch|.
static rn_edge_t zeros_in(rn_level_t* level, rn_edge_t at, rn_edge_t pred, int branch) {
  rn_shape_t shape;
  int dtype = rn_walk_value(level->walk, at, &shape);
  if (!level->backward || !rn_shape_is_full(shape) || rn_backward_has(level, at))
    return rn_ZerosLike(level->scope, rn_level_value(level, branch_of(level, at, pred, branch)));
  int64_t rank = shape.rank;
  const rn_guard_t* guard = guard_with(level, rn_guard_of(level, at), pred, branch);
  rn_edge_t token = rn_backward_token(level, guard);
  if (token.node) rn_scope_add_control(level->scope, token.node);
  rn_edge_t zero = rn_const_scalar(level->scope, dtype, 0);
  rn_scope_clear_controls(level->scope);
  rn_edge_t dims = rn_const(level->scope, RN_INT64, &rank, 1, shape.dims);
  return rn_Fill(level->scope, dims, zero);
}

static rn_edge_t merge(rn_level_t* level, rn_edge_t a, rn_edge_t b) {
  rn_edge_t pair[2] = {a, b};
  return rn_Merge(level->scope, pair, 2).output;
}

// Passes each tensor of a gradient through the |branch| output of a Switch on |pred|.
static rn_gradient_t cut(rn_level_t* level, rn_gradient_t d, rn_edge_t pred, int branch) {
  rn_edge_t* parts[] = {&d.dense, &d.values, &d.indices, &d.dense_shape};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
    if (parts[i]->node) *parts[i] = branch_of(level, *parts[i], pred, branch);
  return d;
}

static rn_gradient_t cut_by(rn_level_t* level, rn_gradient_t d, const rn_guard_t* guard) {
  return guard ? cut(level, cut_by(level, d, guard->parent), guard->pred, guard->branch) : d;
}

// Makes an empty set of slices, with the types of |like|, that is alive when |at| is and |pred| is
// |branch|. False if the shape of a row is not known.
static bool no_slices_in(rn_level_t* level, rn_gradient_t like, rn_edge_t at, rn_edge_t pred,
                         int branch, rn_gradient_t* out) {
  rn_shape_t row = like.values.node->outputs[like.values.index].shape, shape;
  rn_walk_value(level->walk, at, &shape);
  if (row.rank < 1 || !rn_shape_is_full(shape) || shape.rank != row.rank || !like.dense_shape.node)
    return false;
  int64_t dims[RN_MAX_RANK], rank = row.rank, none = 0;
  memcpy(dims, shape.dims, (size_t)row.rank * sizeof *dims);
  rn_scope_t* scope = level->scope;
  rn_edge_t dense_shape;
  if (rn_edge_dtype(like.dense_shape) == RN_INT64) {
    dense_shape = rn_const(scope, RN_INT64, &rank, 1, dims);
  } else {
    int32_t narrow[RN_MAX_RANK];
    for (int i = 0; i < row.rank; ++i) narrow[i] = (int32_t)dims[i];
    dense_shape = rn_const_int32_list(scope, narrow, row.rank);
  }
  dims[0] = 0;
  rn_gradient_t empty = {
      .values = rn_const(scope, rn_edge_dtype(like.values), dims, row.rank, dims),
      .indices = rn_const(scope, rn_edge_dtype(like.indices), &none, 1, dims),
      .dense_shape = dense_shape};
  *out = cut_by(level, empty, guard_with(level, rn_guard_of(level, at), pred, branch));
  return true;
}

static rn_gradient_t merge_slices(rn_level_t* level, rn_gradient_t a, rn_gradient_t b) {
  return (rn_gradient_t){.values = merge(level, a.values, b.values),
                         .indices = merge(level, a.indices, b.indices),
                         .dense_shape = merge(level, a.dense_shape, b.dense_shape)};
}

rn_status_t rn_guard_fit(rn_level_t* level, rn_edge_t at, rn_gradient_t* inout) {
  const rn_guard_t* wanted = rn_guard_of(level, at);
  rn_edge_t value = rn_gradient_is_slices(*inout) ? inout->values : inout->dense;
  const rn_guard_t* own = rn_guard_of(level, value);
  RN_RETURN_IF_ERROR(rn_walk_status(level));
  if (own == wanted) return RN_OK;
  for (const rn_guard_t* g = wanted; g; g = g->parent)
    if (!holds(own, g->pred, g->branch)) *inout = cut(level, *inout, g->pred, g->branch);
  for (const rn_guard_t* g = own; g; g = g->parent) {
    rn_gradient_t none;
    if (holds(wanted, g->pred, g->branch)) continue;
    if (rn_gradient_is_slices(*inout) &&
        no_slices_in(level, *inout, at, g->pred, 1 - g->branch, &none)) {
      *inout = merge_slices(level, *inout, none);
      continue;
    }
    rn_edge_t d = rn_level_dense(level, *inout, at.node);
    *inout = (rn_gradient_t){.dense = merge(level, d, zeros_in(level, at, g->pred, 1 - g->branch))};
  }
  return rn_walk_status(level);
}

rn_status_t rn_guard_visit_switch(rn_level_t* level, rn_node_t* node, const rn_gradient_t* dy,
                                  rn_gradient_t* dx) {
  if (rn_while_loop_is_switch(node)) {
    dx[0] = dy[1];
    return RN_OK;
  }
  bool has[2] = {!rn_gradient_is_none(dy[0]), !rn_gradient_is_none(dy[1])};
  rn_edge_t pred = predicate_of(level, node->inputs[1]);
  rn_gradient_t slices[2] = {dy[0], dy[1]};
  for (int i = 0; i < 2; ++i)
    if (!has[i] && rn_gradient_is_slices(dy[1 - i]) &&
        !no_slices_in(level, dy[1 - i], node->inputs[0], pred, i, &slices[i]))
      slices[i] = (rn_gradient_t){0};
  if (rn_gradient_is_slices(slices[0]) && rn_gradient_is_slices(slices[1])) {
    dx[0] = merge_slices(level, slices[0], slices[1]);
    return rn_walk_status(level);
  }
  rn_edge_t d[2];
  for (int i = 0; i < 2; ++i) {
    d[i] = rn_level_dense(level, dy[i], node);
    // The forward Switch already provides the value in the other branch.
    if (has[i]) continue;
    rn_edge_t other = {node, i};
    d[i] = level->backward ? zeros_in(level, node->inputs[0], pred, i)
                           : rn_ZerosLike(level->scope, rn_level_value(level, other));
  }
  dx[0].dense = merge(level, d[0], d[1]);
  return rn_walk_status(level);
}

// The only condition of |guard| that is not in |without|; NULL if there are none or several.
static const rn_guard_t* only_other(const rn_guard_t* guard, const rn_guard_t* without) {
  const rn_guard_t* other = NULL;
  for (; guard; guard = guard->parent) {
    if (holds(without, guard->pred, guard->branch)) continue;
    if (other) return NULL;
    other = guard;
  }
  return other;
}

// The predicate that chose between the two inputs of a Merge, and the branch of the first.
static bool choice_of(rn_level_t* level, const rn_node_t* node, rn_edge_t* out_pred,
                      int* out_branch) {
  if (node->input_count != 2) return false;
  const rn_guard_t *a = rn_guard_of(level, node->inputs[0]),
                   *b = rn_guard_of(level, node->inputs[1]);
  const rn_guard_t* all = common(level, a, b);
  const rn_guard_t *of_a = only_other(a, all), *of_b = only_other(b, all);
  // If an outer conditional has already decided the choice, one input adds no condition.
  bool is_a = of_a && (of_b ? same_edge(of_a->pred, of_b->pred) && of_a->branch != of_b->branch
                            : b == all && holds(all, of_a->pred, 1 - of_a->branch));
  bool is_b = !of_a && of_b && a == all && holds(all, of_b->pred, 1 - of_b->branch);
  if (!is_a && !is_b) return false;
  *out_pred = is_a ? of_a->pred : of_b->pred;
  *out_branch = is_a ? of_a->branch : 1 - of_b->branch;
  return true;
}

rn_status_t rn_guard_visit_merge(rn_level_t* level, rn_node_t* node, rn_gradient_t dy,
                                 rn_gradient_t* dx) {
  rn_edge_t pred;
  int first;
  if (rn_gradient_is_none(dy)) return RN_OK;  // only the branch number was used
  if (choice_of(level, node, &pred, &first)) {
    rn_edge_t* from[] = {&dy.dense, &dy.values, &dy.indices, &dy.dense_shape};
    for (int p = 0; p < 4; ++p) {
      if (!from[p]->node) continue;
      rn_Switch_out_t out = rn_Switch(level->scope, *from[p], pred);
      for (int i = 0; i < 2; ++i) {
        rn_edge_t* to[] = {&dx[i].dense, &dx[i].values, &dx[i].indices, &dx[i].dense_shape};
        int branch = i == 0 ? first : 1 - first;
        *to[p] = branch ? out.output_true : out.output_false;
      }
    }
    return rn_walk_status(level);
  }
  rn_edge_t number = {node, 1};
  bool is_pair = node->input_count == 2;  // one predicate decides for both
  for (int32_t i = is_pair; i < node->input_count; ++i) {
    rn_edge_t is_it = rn_Equal(level->scope, number, rn_const_int32(level->scope, i));
    dx[i] = cut(level, dy, is_it, 1);
    if (is_pair) dx[0] = cut(level, dy, is_it, 0);
  }
  return rn_walk_status(level);
}
