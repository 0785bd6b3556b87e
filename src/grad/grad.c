// The reverse walk: from ys back to xs, asking each op on the way for its rule. Rules live with
// their ops.
#include "grad/grad.h"

#include "framework/grad_def.h"
#include "grad/loop.h"
#include "graph/graph.h"
#include "runnel/ops.h"

// What has arrived at an output so far, summed when the node's turn comes.
typedef RN_VEC(rn_edge_t) arrivals_t;

// A loop on the way: one node as far as the walk goes.
typedef struct walked_loop_t {
  rn_loop_t loop;
  int waiting;  // exits on the way that have not been visited yet
} walked_loop_t;

typedef struct walk_t {
  rn_graph_t* graph;
  rn_arena_t arena;
  rn_scope_t* scope;
  const rn_edge_t* xs;
  int x_count;
  size_t node_count;      // nodes of the graph when the walk began
  bool* leads_to_y;       // by node id: some y depends on it
  bool* follows_x;        // by node id: it depends on some x, or is one
  int32_t* pending;       // by node id: consumers on the way that have not sent their gradients yet
  arrivals_t** arrivals;  // by node id: an array for its outputs; NULL: nothing arrived
  RN_VEC(rn_node_t*) ready;  // first come, first served
  size_t ready_head;
  RN_VEC(rn_node_t*) stack;
  RN_VEC(walked_loop_t) loops;
  const rn_node_t* body_of;  // the LoopCond of the loop whose body this walk is in; NULL: none
} walk_t;

static bool on_the_way(const walk_t* walk, const rn_node_t* node) {
  size_t id = (size_t)node->id;
  return id < walk->node_count && walk->leads_to_y[id] && walk->follows_x[id];
}

// Whether a walk over a loop's body begins at |node|.
static bool is_start_of_body(const walk_t* walk, const rn_node_t* node) {
  return walk->body_of && node->op->role == RN_ROLE_SWITCH && node->inputs[1].node == walk->body_of;
}

// Nothing is differentiated by the choice that a Switch makes, and a body ends where the next
// iteration begins.
static bool leads_on(const walk_t* walk, const rn_consumer_t* consumer) {
  rn_op_role_t role = consumer->node->op->role;
  if (role == RN_ROLE_SWITCH && consumer->input == 1) return false;
  return !walk->body_of || (role != RN_ROLE_NEXT_ITERATION && role != RN_ROLE_EXIT);
}

static rn_status_t mark_backwards(walk_t* walk, const rn_edge_t* ys, int y_count) {
  walk->stack.count = 0;
  for (int i = 0; i < y_count; ++i) {
    if (walk->leads_to_y[ys[i].node->id]) continue;
    walk->leads_to_y[ys[i].node->id] = true;
    RN_RETURN_IF_ERROR(rn_vec_push(&walk->stack, walk->graph->allocator, ys[i].node));
  }
  while (walk->stack.count > 0) {
    const rn_node_t* node = walk->stack.items[--walk->stack.count];
    if (is_start_of_body(walk, node)) continue;
    for (int32_t i = 0; i < node->input_count; ++i) {
      rn_node_t* source = node->inputs[i].node;
      if (walk->leads_to_y[source->id]) continue;
      walk->leads_to_y[source->id] = true;
      RN_RETURN_IF_ERROR(rn_vec_push(&walk->stack, walk->graph->allocator, source));
    }
  }
  return RN_OK;
}

static rn_status_t mark_forwards(walk_t* walk) {
  walk->stack.count = 0;
  for (int i = 0; i < walk->x_count; ++i) {
    if (walk->follows_x[walk->xs[i].node->id]) continue;
    walk->follows_x[walk->xs[i].node->id] = true;
    RN_RETURN_IF_ERROR(rn_vec_push(&walk->stack, walk->graph->allocator, walk->xs[i].node));
  }
  while (walk->stack.count > 0) {
    const rn_node_t* node = walk->stack.items[--walk->stack.count];
    for (int32_t o = 0; o < node->output_count; ++o) {
      for (size_t c = 0; c < node->outputs[o].consumers.count; ++c) {
        const rn_consumer_t* consumer = &node->outputs[o].consumers.items[c];
        rn_node_t* next = consumer->node;
        if ((size_t)next->id >= walk->node_count || walk->follows_x[next->id]) continue;
        if (!leads_on(walk, consumer)) continue;
        walk->follows_x[next->id] = true;
        RN_RETURN_IF_ERROR(rn_vec_push(&walk->stack, walk->graph->allocator, next));
      }
    }
  }
  return RN_OK;
}

// How many edges of each node lead to nodes on the way.
static void count_consumers(walk_t* walk) {
  for (size_t id = 0; id < walk->node_count; ++id) {
    const rn_node_t* node = walk->graph->nodes.items[id];
    if (!on_the_way(walk, node)) continue;
    for (int32_t i = 0; i < node->input_count; ++i) walk->pending[node->inputs[i].node->id]++;
  }
}

static rn_status_t arrive(walk_t* walk, rn_edge_t at, rn_edge_t gradient) {
  if (!gradient.node || !on_the_way(walk, at.node)) return RN_OK;
  arrivals_t** slot = &walk->arrivals[at.node->id];
  if (!*slot) RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)at.node->output_count, slot));
  return rn_vec_push(&(*slot)[at.index], walk->graph->allocator, gradient);
}

// The sum of what arrived at |edge|, in the order of arrival; RN_NO_EDGE if nothing did.
static rn_edge_t sum_arrivals(walk_t* walk, rn_edge_t edge) {
  arrivals_t* all = walk->arrivals[edge.node->id];
  if (!all || all[edge.index].count == 0) return RN_NO_EDGE;
  arrivals_t* mine = &all[edge.index];
  if (mine->count > 1) {
    mine->items[0] = rn_AddN(walk->scope, mine->items, (int)mine->count);
    mine->count = 1;
  }
  return mine->items[0];
}

static rn_status_t scope_status(const walk_t* walk) {
  if (rn_scope_ok(walk->scope)) return RN_OK;
  return rn_status_make((rn_code_t)rn_scope_code(walk->scope), "%s", rn_scope_message(walk->scope));
}

static rn_status_t no_rule(const rn_node_t* node) {
  return rn_not_found(
      "No gradient defined for op: %s. Please see "
      "https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for "
      "instructions on how to add C++ gradients.",
      node->op->name);
}

// Asks the op of |node| for its rule; |wanted| says which of its inputs lead back to an x.
static rn_status_t apply_rule(walk_t* walk, rn_node_t* node, const bool* wanted,
                              const rn_edge_t* dy, rn_edge_t* dx) {
  if (node->op->flags & RN_OP_NO_GRAD) return RN_OK;
  if (!node->op->grad) return no_rule(node);
  rn_grad_t grad = {.scope = walk->scope,
                    .arena = &walk->arena,
                    .node = node,
                    .input_count = node->input_count,
                    .inputs = node->inputs,
                    .output_count = node->output_count,
                    .dy = dy,
                    .wanted = wanted,
                    .dx = dx};
  rn_status_t status = node->op->grad(&grad);
  status = rn_status_join(status, scope_status(walk));
  if (rn_ok(status)) return status;
  return rn_status_annotate(status, "\n\t in the gradient of node '%s' (%s)", node->name.data,
                            node->op->name);
}

// Hands |dx|, if there is one, to |input|; its node is ready when all its consumers have done so.
static rn_status_t pass_on(walk_t* walk, rn_edge_t input, rn_edge_t dx) {
  RN_RETURN_IF_ERROR(arrive(walk, input, dx));
  if (--walk->pending[input.node->id] != 0 || !on_the_way(walk, input.node)) return RN_OK;
  return rn_vec_push(&walk->ready, walk->graph->allocator, input.node);
}

// The loop that |exit| leaves, found when the first of its exits is visited.
static rn_status_t loop_of(walk_t* walk, const rn_node_t* exit, walked_loop_t** out) {
  for (size_t i = 0; i < walk->loops.count; ++i) {
    *out = &walk->loops.items[i];
    for (int v = 0; v < (*out)->loop.count; ++v)
      if ((*out)->loop.vars[v].exit == exit) return RN_OK;
  }
  walked_loop_t walked = {0};
  bool is_found;
  RN_RETURN_IF_ERROR(rn_loop_find(walk->graph, &walk->arena, exit, &walked.loop, &is_found));
  // Loops in loops would need stacks of stacks.
  if (!is_found || walk->body_of) return no_rule(exit);
  for (int v = 0; v < walked.loop.count; ++v)
    walked.waiting += on_the_way(walk, walked.loop.vars[v].exit);
  RN_RETURN_IF_ERROR(rn_vec_push(&walk->loops, walk->graph->allocator, walked));
  *out = &walk->loops.items[walk->loops.count - 1];
  return RN_OK;
}

// When all exits of a loop have been visited, the gradient goes on from its beginnings.
static rn_status_t visit_exit(walk_t* walk, rn_node_t* exit) {
  walked_loop_t* walked = NULL;
  RN_RETURN_IF_ERROR(loop_of(walk, exit, &walked));
  if (--walked->waiting > 0) return RN_OK;
  const rn_loop_t* loop = &walked->loop;
  rn_edge_t *dexits = NULL, *denters = NULL;
  bool *is_active = NULL, any = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)loop->count, &dexits));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)loop->count, &denters));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)loop->count, &is_active));
  for (int i = 0; i < loop->count; ++i) {
    is_active[i] = on_the_way(walk, loop->vars[i].merge);
    dexits[i] = sum_arrivals(walk, (rn_edge_t){loop->vars[i].exit, 0});
    any |= is_active[i] && dexits[i].node;
  }
  for (int i = 0; any && i < loop->count; ++i) {
    if (!is_active[i] || dexits[i].node) continue;
    rn_edge_t left = {loop->vars[i].exit, 0};
    dexits[i] = rn_ZerosLike(walk->scope, left);
  }
  RN_RETURN_IF_ERROR(scope_status(walk));
  if (any)
    RN_RETURN_IF_ERROR(rn_loop_gradients(walk->graph, walk->scope, &walk->arena, loop, is_active,
                                         dexits, denters));
  for (int i = 0; i < loop->count; ++i) {
    if (!on_the_way(walk, loop->vars[i].enter)) continue;
    RN_RETURN_IF_ERROR(pass_on(walk, loop->vars[i].enter->inputs[0], denters[i]));
  }
  return RN_OK;
}

// Sends the gradients of |node|'s outputs through its rule to the nodes before it.
static rn_status_t visit(walk_t* walk, rn_node_t* node) {
  if (node->op->role == RN_ROLE_EXIT) return visit_exit(walk, node);
  rn_edge_t *dy = NULL, *dx = NULL;
  bool *wanted = NULL, any = false, any_wanted = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)node->output_count, &dy));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)node->input_count, &dx));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)node->input_count, &wanted));
  for (int32_t o = 0; o < node->output_count; ++o) {
    dy[o] = sum_arrivals(walk, (rn_edge_t){node, o});
    any |= dy[o].node != NULL;
  }
  RN_RETURN_IF_ERROR(scope_status(walk));
  // An x that depends on no other x needs no rule.
  for (int32_t i = 0; i < node->input_count; ++i) {
    wanted[i] = on_the_way(walk, node->inputs[i].node);
    any_wanted |= wanted[i];
  }
  if (any && any_wanted) RN_RETURN_IF_ERROR(apply_rule(walk, node, wanted, dy, dx));
  for (int32_t i = 0; i < node->input_count; ++i)
    RN_RETURN_IF_ERROR(pass_on(walk, node->inputs[i], dx[i]));
  return RN_OK;
}

static rn_status_t start(walk_t* walk, const rn_edge_t* ys, int y_count, const rn_edge_t* dys) {
  for (int i = 0; i < y_count; ++i) {
    rn_edge_t dy = dys ? dys[i] : rn_OnesLike(walk->scope, ys[i]);
    RN_RETURN_IF_ERROR(scope_status(walk));
    RN_RETURN_IF_ERROR(arrive(walk, ys[i], dy));
  }
  for (int i = 0; i < y_count; ++i) {
    rn_node_t* node = ys[i].node;
    if (walk->pending[node->id] > 0 || !on_the_way(walk, node)) continue;
    walk->pending[node->id] = INT32_MAX;  // once, however many of its outputs are asked for
    RN_RETURN_IF_ERROR(rn_vec_push(&walk->ready, walk->graph->allocator, node));
  }
  return RN_OK;
}

static rn_status_t mark(walk_t* walk, const rn_edge_t* ys, int y_count) {
  size_t n = walk->node_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, n, &walk->leads_to_y));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, n, &walk->follows_x));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, n, &walk->pending));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, n, &walk->arrivals));
  RN_RETURN_IF_ERROR(mark_backwards(walk, ys, y_count));
  RN_RETURN_IF_ERROR(mark_forwards(walk));
  count_consumers(walk);
  return RN_OK;
}

// Every x must lead to a y; in a body, those that do not have no gradient.
static rn_status_t check_reach(const walk_t* walk) {
  for (int i = 0; !walk->body_of && i < walk->x_count; ++i) {
    if (walk->leads_to_y[walk->xs[i].node->id]) continue;
    return rn_invalid_argument(
        "Cannot compute the partial derivative for node '%s' as it's unreachable from the output "
        "node(s).",
        walk->xs[i].node->name.data);
  }
  return RN_OK;
}

static rn_status_t run(walk_t* walk, const rn_edge_t* ys, int y_count, const rn_edge_t* dys,
                       rn_edge_t* out_dxs) {
  RN_RETURN_IF_ERROR(mark(walk, ys, y_count));
  RN_RETURN_IF_ERROR(check_reach(walk));
  RN_RETURN_IF_ERROR(start(walk, ys, y_count, dys));
  while (walk->ready_head < walk->ready.count)
    RN_RETURN_IF_ERROR(visit(walk, walk->ready.items[walk->ready_head++]));
  for (int i = 0; i < walk->x_count; ++i) out_dxs[i] = sum_arrivals(walk, walk->xs[i]);
  return scope_status(walk);
}

static void clear_walk(walk_t* walk) {
  for (size_t id = 0; walk->arrivals && id < walk->node_count; ++id) {
    if (!walk->arrivals[id]) continue;
    for (int32_t o = 0; o < walk->graph->nodes.items[id]->output_count; ++o)
      rn_vec_free(&walk->arrivals[id][o], walk->graph->allocator);
  }
  rn_vec_free(&walk->ready, walk->graph->allocator);
  rn_vec_free(&walk->stack, walk->graph->allocator);
  rn_vec_free(&walk->loops, walk->graph->allocator);
  rn_arena_clear(&walk->arena);
}

rn_status_t rn_add_gradients(rn_graph_t* graph, rn_str_t prefix, const rn_edge_t* ys, int y_count,
                             const rn_edge_t* xs, int x_count, const rn_edge_t* dys,
                             rn_edge_t* out_dxs) {
  walk_t walk = {.graph = graph, .xs = xs, .x_count = x_count, .node_count = graph->nodes.count};
  rn_arena_init(&walk.arena, graph->allocator);
  rn_scope_t* root = rn_scope_create(graph);
  walk.scope = root ? rn_scope_child(root, prefix.size ? prefix.data : "gradients") : NULL;
  rn_status_t status = walk.scope ? RN_OK : rn_out_of_memory();
  if (rn_ok(status)) status = run(&walk, ys, y_count, dys, out_dxs);
  clear_walk(&walk);
  rn_scope_destroy(walk.scope);
  rn_scope_destroy(root);
  return status;
}

rn_status_t rn_body_gradients(rn_graph_t* graph, rn_scope_t* scope, const rn_node_t* cond,
                              const rn_edge_t* ys, const rn_edge_t* xs, const rn_edge_t* dys,
                              int count, rn_edge_t* out_dxs) {
  walk_t walk = {.graph = graph,
                 .scope = scope,
                 .xs = xs,
                 .x_count = count,
                 .node_count = graph->nodes.count,
                 .body_of = cond};
  rn_arena_init(&walk.arena, graph->allocator);
  rn_status_t status = run(&walk, ys, count, dys, out_dxs);
  clear_walk(&walk);
  return status;
}

rn_edge_t rn_grad_dy(const rn_grad_t* grad, int i) {
  return rn_grad_has_dy(grad, i) ? grad->dy[i] : rn_ZerosLike(grad->scope, rn_grad_out(grad, i));
}

const char* rn_grad_op(const rn_grad_t* grad) { return grad->node->op->name; }

const rn_attr_value_t* rn_grad_attr(const rn_grad_t* grad, const char* name) {
  static const rn_attr_value_t none = {0};
  const rn_attr_value_t* value = rn_node_attr(grad->node, rn_str(name));
  return value ? value : &none;
}

rn_shape_t rn_grad_shape(const rn_grad_t* grad, rn_edge_t edge) {
  (void)grad;
  return edge.node ? edge.node->outputs[edge.index].shape : RN_SHAPE_UNKNOWN;
}
