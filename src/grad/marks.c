// Which nodes lie between the ys and the xs, and whether their frames fit.
#include "grad/stacks.h"

static bool is_trainable(int dtype) {
  return rn_dtype_is_floating(dtype) || rn_dtype_is_complex(dtype) || dtype == RN_RESOURCE ||
         dtype == RN_VARIANT;
}

bool rn_walk_carries(const rn_walk_t* walk, const rn_node_t* node, int input) {
  rn_op_role_t role = node->op->role;
  if (role == RN_ROLE_SWITCH && input == 1) return false;  // the predicate has no gradient
  // In the frame of the ys and those enclosing it, gradients do not cross iterations.
  if (walk->base && (role == RN_ROLE_NEXT_ITERATION || rn_while_loop_is_merge(node)) &&
      rn_walk_is_around(walk, rn_while_loop_of(&walk->loops, node)))
    return false;
  int dtype = rn_edge_dtype(node->inputs[input]);
  return is_trainable(dtype) || (walk->allows_ints && rn_dtype_is_integer(dtype));
}

static rn_status_t mark_node(rn_walk_t* walk, rn_node_t* node, int mark) {
  if (walk->marks[node->id] & mark) return RN_OK;
  walk->marks[node->id] |= (uint8_t)mark;
  return rn_vec_push(&walk->stack, walk->graph->allocator, node);
}

static rn_status_t mark_backwards(rn_walk_t* walk) {
  const rn_grad_request_t* request = walk->request;
  walk->stack.count = 0;
  for (int i = 0; i < request->y_count; ++i) {
    walk->marks[request->ys[i].node->id] |= RN_MARK_Y;
    RN_RETURN_IF_ERROR(mark_node(walk, request->ys[i].node, RN_MARK_LEADS));
  }
  while (walk->stack.count > 0) {
    const rn_node_t* node = walk->stack.items[--walk->stack.count];
    rn_op_role_t role = node->op->role;
    walk->has_conds |= (role == RN_ROLE_SWITCH && !rn_while_loop_is_switch(node)) ||
                       (role == RN_ROLE_MERGE && !rn_while_loop_is_merge(node));
    const rn_pair_t* pair = rn_walk_pair(walk, node);
    if (pair && node == pair->pop) RN_RETURN_IF_ERROR(mark_node(walk, pair->push, RN_MARK_LEADS));
    for (int32_t i = 0; i < node->input_count; ++i)
      if (rn_walk_carries(walk, node, i))
        RN_RETURN_IF_ERROR(mark_node(walk, node->inputs[i].node, RN_MARK_LEADS));
  }
  return RN_OK;
}

static rn_status_t mark_forwards(rn_walk_t* walk) {
  const rn_grad_request_t* request = walk->request;
  walk->stack.count = 0;
  for (int i = 0; i < request->x_count; ++i) {
    walk->marks[request->xs[i].node->id] |= RN_MARK_X;
    RN_RETURN_IF_ERROR(mark_node(walk, request->xs[i].node, RN_MARK_FOLLOWS));
  }
  while (walk->stack.count > 0) {
    const rn_node_t* node = walk->stack.items[--walk->stack.count];
    const rn_pair_t* pair = rn_walk_pair(walk, node);
    if (pair && node == pair->push) RN_RETURN_IF_ERROR(mark_node(walk, pair->pop, RN_MARK_FOLLOWS));
    for (int32_t o = 0; o < node->output_count; ++o) {
      for (size_t c = 0; c < node->outputs[o].consumers.count; ++c) {
        const rn_consumer_t* consumer = &node->outputs[o].consumers.items[c];
        if ((size_t)consumer->node->id >= walk->node_count) continue;
        if (!rn_walk_carries(walk, consumer->node, consumer->input)) continue;
        RN_RETURN_IF_ERROR(mark_node(walk, consumer->node, RN_MARK_FOLLOWS));
      }
    }
  }
  return RN_OK;
}

bool rn_walk_sends(const rn_walk_t* walk, const rn_node_t* node, int i) {
  rn_op_role_t role = node->op->role;
  if (role == RN_ROLE_NEXT_ITERATION || role == RN_ROLE_EXIT || rn_while_loop_is_merge(node))
    return false;
  return rn_walk_carries(walk, node, i) && rn_walk_on_way(walk, node->inputs[i].node);
}

void rn_walk_count_pending(rn_walk_t* walk) {
  for (size_t id = 0; id < walk->node_count; ++id) {
    const rn_node_t* node = walk->graph->nodes.items[id];
    if (!rn_walk_on_way(walk, node)) continue;
    for (int32_t i = 0; i < node->input_count; ++i)
      if (rn_walk_sends(walk, node, i)) walk->pending[node->inputs[i].node->id]++;
  }
}

// Marks all nodes that some y depends on, over any edges.
static rn_status_t mark_reach(rn_walk_t* walk) {
  const rn_grad_request_t* request = walk->request;
  walk->stack.count = 0;
  for (int i = 0; i < request->y_count; ++i)
    RN_RETURN_IF_ERROR(mark_node(walk, request->ys[i].node, RN_MARK_REACH));
  while (walk->stack.count > 0) {
    const rn_node_t* node = walk->stack.items[--walk->stack.count];
    for (int32_t i = 0; i < node->input_count; ++i)
      RN_RETURN_IF_ERROR(mark_node(walk, node->inputs[i].node, RN_MARK_REACH));
  }
  return RN_OK;
}

rn_status_t rn_walk_check_reach(rn_walk_t* walk) {
  const rn_grad_request_t* request = walk->request;
  bool all = true;
  for (int i = 0; request->wants_all && i < request->x_count; ++i)
    all &= (walk->marks[request->xs[i].node->id] & RN_MARK_LEADS) != 0;
  if (all) return RN_OK;
  RN_RETURN_IF_ERROR(mark_reach(walk));
  for (int i = 0; i < request->x_count; ++i) {
    if (walk->marks[request->xs[i].node->id] & RN_MARK_REACH) continue;
    return rn_invalid_argument(
        "Cannot compute the partial derivative for node '%s' as it's unreachable from the output "
        "node(s).",
        request->xs[i].node->name.data);
  }
  return RN_OK;
}

static bool is_within(const rn_while_loop_t* loop, const rn_while_loop_t* outer) {
  while (loop && loop != outer) loop = loop->parent;
  return loop == outer;
}

// The base is the innermost frame of a y; all ys and xs must be in it or in frames that enclose it.
static rn_status_t check_frames(rn_walk_t* walk) {
  const rn_grad_request_t* request = walk->request;
  walk->base = NULL;
  for (int i = 0; i < request->y_count; ++i) {
    const rn_while_loop_t* loop = rn_while_loop_of(&walk->loops, request->ys[i].node);
    if (is_within(loop, walk->base)) walk->base = loop;
  }
  for (int i = 0; i < request->y_count + request->x_count; ++i) {
    bool is_y = i < request->y_count;
    const rn_node_t* node = is_y ? request->ys[i].node : request->xs[i - request->y_count].node;
    const rn_while_loop_t* loop = rn_while_loop_of(&walk->loops, node);
    if (rn_walk_is_around(walk, loop)) continue;
    return rn_invalid_argument(
        "Gradients cross the boundary of a loop: '%s' is in frame '%.*s', '%s' in frame '%.*s'",
        request->ys[0].node->name.data, RN_STR_ARGS(walk->base ? walk->base->frame : RN_STR("")),
        node->name.data, RN_STR_ARGS(loop ? loop->frame : RN_STR("")));
  }
  return RN_OK;
}

rn_status_t rn_walk_check_strays(const rn_walk_t* walk) {
  for (size_t i = 0; i < walk->loops.strays.count; ++i) {
    const rn_stray_t* stray = &walk->loops.strays.items[i];
    if (rn_walk_on_way(walk, stray->node)) return rn_while_loops_stray(&walk->loops, stray);
  }
  return RN_OK;
}

rn_status_t rn_walk_mark(rn_walk_t* walk) {
  const rn_grad_request_t* request = walk->request;
  rn_while_loops_clear(&walk->loops);
  walk->node_count = walk->graph->nodes.count;
  walk->has_conds = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, walk->node_count, &walk->marks));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, walk->node_count, &walk->pending));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, walk->node_count, &walk->arrivals));
  RN_RETURN_IF_ERROR(
      rn_while_loops_find(walk->graph, walk->node_count, &walk->arena, &walk->loops));
  RN_RETURN_IF_ERROR(rn_stacks_find(walk));
  RN_RETURN_IF_ERROR(check_frames(walk));
  for (int i = 0; request->wants_all && i < request->x_count; ++i)
    walk->allows_ints |= rn_dtype_is_integer(rn_edge_dtype(request->xs[i]));
  for (int i = 0; i < request->options->stop_count; ++i)
    walk->marks[request->options->stops[i].node->id] |= RN_MARK_STOP;
  RN_RETURN_IF_ERROR(mark_backwards(walk));
  return mark_forwards(walk);
}
