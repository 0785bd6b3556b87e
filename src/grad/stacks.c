// Pairs of pushes and pops between loops. See stacks.h.
#include "grad/stacks.h"

#include "grad/backward.h"
#include "runnel/ops.h"

// Op definitions, so that names are compared only once per walk.
typedef struct stack_ops_t {
  const rn_op_def_t *push[2], *pop[2];
} stack_ops_t;

static stack_ops_t find_ops(void) {
  return (stack_ops_t){{rn_op_find(RN_STR("StackPush")), rn_op_find(RN_STR("StackPushV2"))},
                       {rn_op_find(RN_STR("StackPop")), rn_op_find(RN_STR("StackPopV2"))}};
}

static bool is_push(const stack_ops_t* ops, const rn_node_t* node) {
  return node->op == ops->push[0] || node->op == ops->push[1];
}
static bool is_pop(const stack_ops_t* ops, const rn_node_t* node) {
  return node->op == ops->pop[0] || node->op == ops->pop[1];
}

// The node that created the stack whose handle |node| reads.
static rn_node_t* stack_of(const rn_node_t* node) {
  rn_node_t* from = node->inputs[0].node;
  while ((from->op->role == RN_ROLE_ENTER || from->op->role == RN_ROLE_IDENTITY) &&
         from->input_count > 0)
    from = from->inputs[0].node;
  return from;
}

static rn_pair_t* pair_of_stack(rn_walk_t* walk, rn_node_t* stack) {
  rn_pair_t** slot = &walk->pair_of[stack->id];
  if (*slot) return *slot;
  *slot = &walk->pairs[walk->pair_count++];
  (*slot)->stack = stack;
  return *slot;
}

static int depth_of(const rn_while_loop_t* loop) {
  int depth = 0;
  for (; loop; loop = loop->parent) ++depth;
  return depth;
}

// Finds the sibling loops, in one frame, that contain the push and the pop; NULL for one that is in
// no loop.
static void find_nests(const rn_walk_t* walk, rn_pair_t* pair) {
  rn_while_loop_t* push = rn_while_loop_of(&walk->loops, pair->push);
  rn_while_loop_t* pop = rn_while_loop_of(&walk->loops, pair->pop);
  while (push && pop && push->parent != pop->parent) {
    int push_depth = depth_of(push), pop_depth = depth_of(pop);
    if (push_depth >= pop_depth) push = push->parent;
    if (pop_depth >= push_depth) pop = pop->parent;
  }
  pair->push_nest = push;
  pair->pop_nest = pop;
}

rn_status_t rn_stacks_find(rn_walk_t* walk) {
  walk->pair_of = NULL;
  walk->pair_count = 0;
  if (!walk->loops.of) return RN_OK;
  stack_ops_t ops = find_ops();
  size_t count = 0;
  for (size_t id = 0; id < walk->node_count; ++id)
    count += is_pop(&ops, walk->graph->nodes.items[id]);
  if (count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, walk->node_count, &walk->pair_of));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, count, &walk->pairs));
  for (size_t id = 0; id < walk->node_count; ++id) {
    rn_node_t* node = walk->graph->nodes.items[id];
    if (!is_pop(&ops, node)) continue;
    rn_pair_t* pair = pair_of_stack(walk, stack_of(node));
    if (pair->pops++ == 0) pair->pop = node;
    walk->pair_of[id] = pair;
  }
  for (size_t id = 0; id < walk->node_count; ++id) {
    rn_node_t* node = walk->graph->nodes.items[id];
    rn_pair_t* pair = is_push(&ops, node) ? walk->pair_of[stack_of(node)->id] : NULL;
    if (!pair) continue;
    if (pair->pushes++ == 0) pair->push = node;
    walk->pair_of[id] = pair;
  }
  size_t kept = 0;
  for (size_t i = 0; i < walk->pair_count; ++i) {
    rn_pair_t* pair = &walk->pairs[i];
    walk->pair_of[pair->stack->id] = NULL;
    if (pair->push) find_nests(walk, pair);
    kept += pair->push != NULL;
  }
  if (kept < walk->pair_count) {  // drops stacks that are popped but never pushed: no gradient can
                                  // go there
    for (size_t id = 0; id < walk->node_count; ++id)
      if (walk->pair_of[id] && !walk->pair_of[id]->push) walk->pair_of[id] = NULL;
  }
  return RN_OK;
}

rn_status_t rn_stacks_check(const rn_walk_t* walk) {
  for (size_t i = 0; i < walk->pair_count; ++i) {
    const rn_pair_t* pair = &walk->pairs[i];
    if (!pair->push || !rn_walk_on_way(walk, pair->push)) continue;
    bool is_one = pair->pushes == 1 && pair->pops == 1;
    bool is_beside = pair->push_nest && pair->pop_nest && pair->push_nest != pair->pop_nest;
    if (is_one && is_beside) continue;
    return rn_unimplemented("Gradients cannot follow stack '%s' from '%s' to '%s': %s",
                            pair->stack->name.data, pair->push->name.data, pair->pop->name.data,
                            is_one ? "they are not in sibling loops" : "several nodes push or pop");
  }
  return RN_OK;
}

int rn_stacks_waiting(const rn_walk_t* walk, const rn_while_loop_t* nest) {
  int count = 0;
  for (size_t i = 0; i < walk->pair_count; ++i)
    count += walk->pairs[i].push_nest == nest && rn_walk_on_way(walk, walk->pairs[i].push);
  return count;
}

static bool is_within(const rn_while_loop_t* loop, const rn_while_loop_t* nest) {
  while (loop && loop != nest) loop = loop->parent;
  return loop != NULL;
}

bool rn_stacks_bring(const rn_walk_t* walk, const rn_while_loop_t* nest) {
  for (size_t i = 0; i < walk->pair_count; ++i)
    if (walk->pairs[i].handle.node &&
        is_within(rn_while_loop_of(&walk->loops, walk->pairs[i].push), nest))
      return true;
  return false;
}

// Pushes and pops match only if both loops run under the same conditions.
static rn_status_t check_guards(rn_level_t* level, const rn_pair_t* pair) {
  rn_edge_t push = pair->push_nest->vars.items[0].enter->inputs[0];
  rn_edge_t pop = pair->pop_nest->vars.items[0].enter->inputs[0];
  const rn_guard_t *pushes = rn_guard_of(level, push), *pops = rn_guard_of(level, pop);
  if (rn_guard_implies(pushes, pops) && rn_guard_implies(pops, pushes)) return RN_OK;
  return rn_unimplemented(
      "Gradients cannot follow stack '%s': loop '%.*s', which pops from it, is conditional where "
      "loop '%.*s', which pushes, is not",
      pair->stack->name.data, RN_STR_ARGS(pair->pop_nest->frame),
      RN_STR_ARGS(pair->push_nest->frame));
}

rn_status_t rn_stacks_visit_pop(rn_level_t* level, rn_node_t* node) {
  rn_backward_t* b = level->backward;
  rn_pair_t* pair = rn_walk_pair(level->walk, node);
  rn_edge_t d = rn_level_sum_dense(level, (rn_edge_t){node, 0});
  RN_RETURN_IF_ERROR(rn_walk_status(level));
  if (!d.node) return RN_OK;
  if (!b)
    return rn_unimplemented("Gradients cannot follow stack '%s': '%s' is in the loop of the ys",
                            pair->stack->name.data, node->name.data);
  RN_RETURN_IF_ERROR(check_guards(level, pair));
  rn_level_t* first = level;
  while (first->outer) first = first->outer;
  const rn_guard_t* guard = rn_guard_of(level, (rn_edge_t){node, 0});
  rn_edge_t handle = rn_StackV2(first->here, rn_const_int32(first->here, -1), rn_edge_dtype(d));
  rn_edge_t inside = rn_backward_handle(level, handle, false);
  rn_scope_add_control(b->here, b->backward.pivot.node);
  rn_edge_t push = rn_StackPushV2(b->here, inside, d);
  rn_scope_clear_controls(b->here);
  RN_RETURN_IF_ERROR(rn_walk_status(level));
  pair->handle = handle;
  return rn_backward_wait(level, &b->backward, push.node, guard);
}

// Pops the gradient that was pushed for |pair|, in the backward body of |level|.
static rn_status_t pop_gradient(rn_level_t* level, const rn_pair_t* pair, rn_edge_t* out) {
  rn_backward_t* b = level->backward;
  rn_edge_t value = {pair->push, 0};
  const rn_guard_t* guard = rn_guard_of(level, value);
  int dtype = (int)rn_node_attr(pair->handle.node, RN_STR("elem_type"))->type;
  rn_edge_t inside = rn_backward_handle(level, pair->handle, false);
  rn_scope_add_control(b->here, rn_backward_token(level, guard).node);
  *out = rn_StackPopV2(b->here, inside, dtype);
  rn_scope_clear_controls(b->here);
  RN_RETURN_IF_ERROR(rn_walk_status(level));
  rn_guard_set(level, out->node, guard);
  RN_RETURN_IF_ERROR(
      rn_graph_set_shape(level->walk->graph, *out, rn_walk_shape(level->walk, value)));
  return rn_backward_wait(level, &b->backward, out->node, guard);
}

static bool has_exit_on_way(const rn_walk_t* walk, const rn_while_loop_t* loop) {
  for (size_t i = 0; i < loop->vars.count; ++i) {
    const rn_node_t* merge = loop->vars.items[i].merge;
    for (size_t c = 0; c < merge->outputs[0].consumers.count; ++c) {
      const rn_node_t* node = merge->outputs[0].consumers.items[c].node;
      if (!rn_while_loop_is_switch(node)) continue;
      for (size_t e = 0; e < node->outputs[0].consumers.count; ++e) {
        const rn_node_t* exit = node->outputs[0].consumers.items[e].node;
        if (exit->op->role == RN_ROLE_EXIT && rn_walk_on_way(walk, exit)) return true;
      }
    }
  }
  return false;
}

static bool pushes_on_way(const rn_walk_t* walk, const rn_while_loop_t* nest) {
  for (size_t i = 0; i < walk->pair_count; ++i) {
    const rn_pair_t* pair = &walk->pairs[i];
    if (pair->push && rn_walk_on_way(walk, pair->push) &&
        is_within(rn_while_loop_of(&walk->loops, pair->push), nest))
      return true;
  }
  return false;
}

rn_status_t rn_stacks_open(rn_level_t* level) {
  rn_walk_t* walk = level->walk;
  const rn_while_loop_t* loop = level->backward->loop;
  for (size_t i = 0; i < walk->pair_count; ++i) {
    rn_pair_t* pair = &walk->pairs[i];
    if (!pair->push || rn_while_loop_of(&walk->loops, pair->push) != loop ||
        !rn_walk_on_way(walk, pair->push))
      continue;
    rn_gradient_t d = {0};
    if (pair->handle.node) RN_RETURN_IF_ERROR(pop_gradient(level, pair, &d.dense));
    RN_RETURN_IF_ERROR(rn_level_arrive(level, (rn_edge_t){pair->push, 0}, d));
    RN_RETURN_IF_ERROR(rn_level_start(level, pair->push));
  }
  for (size_t i = 0; i < walk->loops.all.count; ++i) {
    rn_while_loop_t* inner = walk->loops.all.items[i];
    if (inner->parent != loop || !pushes_on_way(walk, inner) || has_exit_on_way(walk, inner))
      continue;
    RN_RETURN_IF_ERROR(rn_backward_visit_silent(level, inner));
  }
  return RN_OK;
}
