// Finds the loop of each node and the parts of each loop.
#include "grad/loops.h"

static bool is_enter(const rn_node_t* node) { return node->op->role == RN_ROLE_ENTER; }

static bool is_back_edge(const rn_node_t* node, rn_edge_t input) {
  return node->op->role == RN_ROLE_MERGE && input.node->op->role == RN_ROLE_NEXT_ITERATION;
}

bool rn_while_loop_is_merge(const rn_node_t* node) {
  for (int32_t i = 0; node->op->role == RN_ROLE_MERGE && i < node->input_count; ++i)
    if (is_back_edge(node, node->inputs[i])) return true;
  return false;
}

static rn_status_t loop_called(rn_while_loops_t* loops, rn_arena_t* arena, const rn_node_t* enter,
                               rn_while_loop_t* parent, rn_while_loop_t** out) {
  rn_str_t frame = rn_node_attr(enter, RN_STR("frame_name"))->s;
  for (size_t i = 0; i < loops->all.count; ++i) {
    *out = loops->all.items[i];
    if ((*out)->parent == parent && rn_str_eq((*out)->frame, frame)) return RN_OK;
  }
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, out));
  const rn_attr_value_t* parallel = rn_node_attr(enter, RN_STR("parallel_iterations"));
  **out = (rn_while_loop_t){.frame = frame,
                            .parent = parent,
                            .parallel_iterations = parallel ? parallel->i : 10,
                            .has_back_prop = true};
  return rn_vec_push(&loops->all, loops->allocator, *out);
}

// All inputs of |node| must be in one frame; the first one seen determines which.
typedef struct loops_seen_t {
  const rn_node_t* first;
  rn_while_loop_t* loop;
} loops_seen_t;

static rn_status_t see(rn_while_loops_t* loops, const rn_node_t* node, const rn_node_t* source,
                       loops_seen_t* seen) {
  rn_while_loop_t* loop = loops->of[source->id];
  if (!seen->first) {
    *seen = (loops_seen_t){source, loop};
    return RN_OK;
  }
  if (loop == seen->loop) return RN_OK;
  rn_stray_t stray = {node, seen->first, source};
  return rn_vec_push(&loops->strays, loops->allocator, stray);
}

// Finds the frame of |node|; those of its inputs are known.
static rn_status_t place(rn_while_loops_t* loops, rn_arena_t* arena, const rn_node_t* node) {
  loops_seen_t seen = {0};
  for (int32_t i = 0; i < node->input_count; ++i)
    if (!is_back_edge(node, node->inputs[i]))
      RN_RETURN_IF_ERROR(see(loops, node, node->inputs[i].node, &seen));
  for (size_t i = 0; i < node->controls.count; ++i)
    RN_RETURN_IF_ERROR(see(loops, node, node->controls.items[i], &seen));
  rn_while_loop_t* loop = seen.loop;
  if (is_enter(node)) RN_RETURN_IF_ERROR(loop_called(loops, arena, node, seen.loop, &loop));
  if (node->op->role == RN_ROLE_EXIT && loop) loop = loop->parent;
  loops->of[node->id] = loop;
  if (!loop) return RN_OK;
  return rn_vec_push(&loops->order, loops->allocator, (rn_node_t*)node);
}

enum { NEW, OPEN, DONE };

typedef struct loops_order_t {
  uint8_t* state;
  RN_VEC(const rn_node_t*) stack;
} loops_order_t;

static rn_status_t want(loops_order_t* order, rn_allocator_t allocator, const rn_node_t* node) {
  if (order->state[node->id] != NEW) return RN_OK;
  return rn_vec_push(&order->stack, allocator, node);
}

// Finds the frames of |root| and of everything that it depends on.
static rn_status_t place_from(rn_while_loops_t* loops, rn_arena_t* arena, loops_order_t* order,
                              const rn_node_t* root) {
  RN_RETURN_IF_ERROR(want(order, loops->allocator, root));
  while (order->stack.count > 0) {
    const rn_node_t* node = order->stack.items[order->stack.count - 1];
    if (order->state[node->id] != NEW) {
      order->stack.count--;
      if (order->state[node->id] == DONE) continue;
      order->state[node->id] = DONE;
      RN_RETURN_IF_ERROR(place(loops, arena, node));
      continue;
    }
    order->state[node->id] = OPEN;
    for (int32_t i = 0; i < node->input_count; ++i)
      if (!is_back_edge(node, node->inputs[i]))
        RN_RETURN_IF_ERROR(want(order, loops->allocator, node->inputs[i].node));
    for (size_t i = 0; i < node->controls.count; ++i)
      RN_RETURN_IF_ERROR(want(order, loops->allocator, node->controls.items[i]));
  }
  return RN_OK;
}

static rn_node_t* consumer_of(const rn_node_t* node, int output, rn_op_role_t role) {
  if (output >= node->output_count) return NULL;
  for (size_t c = 0; c < node->outputs[output].consumers.count; ++c) {
    const rn_consumer_t* consumer = &node->outputs[output].consumers.items[c];
    if (consumer->node->op->role == role && (role == RN_ROLE_MERGE || consumer->input == 0))
      return consumer->node;
  }
  return NULL;
}

static bool flag(const rn_node_t* node, rn_str_t name, bool otherwise) {
  const rn_attr_value_t* value = rn_node_attr(node, name);
  return value && value->kind == RN_ATTR_BOOL ? value->b : otherwise;
}

// Records |node| as a part of its loop.
static rn_status_t note_part(rn_while_loops_t* loops, rn_node_t* node) {
  rn_while_loop_t* loop = loops->of[node->id];
  if (!loop) return RN_OK;
  if (node->op->role == RN_ROLE_LOOP_COND && !loop->cond) {
    loop->cond = node;
    loop->has_back_prop = flag(node, RN_STR("_back_prop"), true);
    loop->swaps_memory = flag(node, RN_STR("_swap_memory"), false);
  }
  if (!is_enter(node)) return RN_OK;
  rn_node_t* merge = consumer_of(node, 0, RN_ROLE_MERGE);
  if (!merge) return rn_vec_push(&loop->invariants, loops->allocator, node);
  rn_while_loop_var_t var = {.enter = node, .merge = merge};
  return rn_vec_push(&loop->vars, loops->allocator, var);
}

rn_status_t rn_while_loops_find(const rn_graph_t* graph, size_t node_count, rn_arena_t* arena,
                                rn_while_loops_t* out) {
  *out = (rn_while_loops_t){.allocator = graph->allocator, .node_count = node_count};
  bool any = false;
  for (size_t id = 0; id < node_count; ++id) any |= is_enter(graph->nodes.items[id]);
  if (!any) return RN_OK;
  loops_order_t order = {0};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, node_count, &out->of));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, node_count, &order.state));
  rn_status_t status = RN_OK;
  for (size_t id = 0; rn_ok(status) && id < node_count; ++id)
    status = place_from(out, arena, &order, graph->nodes.items[id]);
  rn_vec_free(&order.stack, out->allocator);
  for (size_t id = 0; rn_ok(status) && id < node_count; ++id)
    status = note_part(out, graph->nodes.items[id]);
  return status;
}

void rn_while_loops_clear(rn_while_loops_t* loops) {
  for (size_t i = 0; i < loops->all.count; ++i) {
    rn_vec_free(&loops->all.items[i]->vars, loops->allocator);
    rn_vec_free(&loops->all.items[i]->invariants, loops->allocator);
  }
  rn_vec_free(&loops->all, loops->allocator);
  rn_vec_free(&loops->order, loops->allocator);
  rn_vec_free(&loops->strays, loops->allocator);
  loops->of = NULL;
}

static rn_status_t malformed(const rn_while_loop_t* loop, const rn_node_t* node, const char* what) {
  return rn_invalid_argument("Loop '%.*s' is malformed: node '%s' (%s) %s",
                             RN_STR_ARGS(loop->frame), node->name.data, node->op->name, what);
}

static rn_status_t complete_var(const rn_while_loop_t* loop, rn_while_loop_var_t* var) {
  const rn_node_t* merge = var->merge;
  for (int32_t i = 0; i < merge->input_count; ++i)
    if (is_back_edge(merge, merge->inputs[i])) var->next = merge->inputs[i].node;
  if (!var->next || merge->input_count != 2)
    return malformed(loop, merge, "does not join an Enter and a NextIteration");
  var->switch_ = consumer_of(merge, 0, RN_ROLE_SWITCH);
  if (!var->switch_) return RN_OK;  // a variable that only the condition reads
  if (var->switch_->inputs[1].node != loop->cond)
    return malformed(loop, var->switch_, "is not steered by the LoopCond of the loop");
  var->exit = consumer_of(var->switch_, 0, RN_ROLE_EXIT);
  return RN_OK;
}

rn_status_t rn_while_loop_complete(rn_while_loop_t* loop) {
  if (loop->is_complete) return RN_OK;
  if (!loop->cond) {
    const rn_node_t* enter = loop->vars.count > 0         ? loop->vars.items[0].enter
                             : loop->invariants.count > 0 ? loop->invariants.items[0]
                                                          : NULL;
    return rn_invalid_argument("Loop '%.*s', entered by node '%s', has no LoopCond",
                               RN_STR_ARGS(loop->frame), enter ? enter->name.data : "");
  }
  for (size_t i = 0; i < loop->vars.count; ++i)
    RN_RETURN_IF_ERROR(complete_var(loop, &loop->vars.items[i]));
  loop->is_complete = true;
  return RN_OK;
}

rn_status_t rn_while_loops_stray(const rn_while_loops_t* loops, const rn_stray_t* stray) {
  const rn_while_loop_t *a = rn_while_loop_of(loops, stray->a),
                        *b = rn_while_loop_of(loops, stray->b);
  rn_str_t root = RN_STR("");
  return rn_invalid_argument(
      "{{node %s}} has inputs from different frames. The input {{node %s}} is in frame '%.*s'. The "
      "input {{node %s}} is in frame '%.*s'.",
      stray->node->name.data, stray->a->name.data, RN_STR_ARGS(a ? a->frame : root),
      stray->b->name.data, RN_STR_ARGS(b ? b->frame : root));
}
