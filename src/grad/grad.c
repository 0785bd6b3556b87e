// The reverse walk: from ys back to xs, calling the gradient rule of each op on the way. Rules are
// in ops/.
#include "grad/stacks.h"
#include "runnel/ops.h"

// When this many gradients have arrived, they are summed, so no more are alive at a time. AddN adds
// in order, so a sum of partial sums has the same bits.
#define MOST_ARRIVALS 4

rn_status_t rn_walk_status(const rn_level_t* level) {
  if (rn_scope_ok(level->scope)) return RN_OK;
  return rn_status_make((rn_code_t)rn_scope_code(level->scope), "%s",
                        rn_scope_message(level->scope));
}

rn_note_t* rn_walk_note(rn_level_t* level, const rn_node_t* node) {
  rn_walk_t* walk = level->walk;
  size_t needed = (size_t)node->id + 1, had = walk->notes.count;
  if (needed > had) {
    size_t room = needed < walk->node_count ? walk->node_count : needed;
    rn_status_t status = rn_vec_reserve(&walk->notes, walk->graph->allocator, room);
    if (!rn_ok(status)) {
      rn_scope_fail(level->here, status);
      return NULL;
    }
    memset(walk->notes.items + had, 0, (needed - had) * sizeof *walk->notes.items);
    walk->notes.count = needed;
  }
  return &walk->notes.items[node->id];
}

rn_edge_t rn_level_dense(rn_level_t* level, rn_gradient_t gradient, const rn_node_t* node) {
  if (!rn_gradient_is_slices(gradient)) return gradient.dense;
  const rn_gradient_options_t* options = level->walk->options;
  if (options->log && level->walk->made_dense++ < 8) {  // the first few suffice
    rn_str_t line;
    rn_status_t status =
        rn_arena_printf(&level->walk->arena, &line,
                        "The slices that arrive at node '%s' (%s) are made dense; this may take "
                        "much memory",
                        node->name.data, node->op->name);
    if (rn_ok(status)) options->log(options->log_arg, line.data);
    rn_status_free(status);
  }
  return rn_gradient_to_dense(level->scope, gradient);
}

// A rule may return a forward value, such as indices, which may be from another frame.
static rn_gradient_t in_frame(const rn_level_t* level, rn_gradient_t gradient) {
  const rn_scope_hook_t* hook = rn_scope_hook(level->scope);
  rn_edge_t* parts[] = {&gradient.dense, &gradient.values, &gradient.indices,
                        &gradient.dense_shape};
  for (size_t i = 0; hook && hook->map && i < sizeof parts / sizeof *parts; ++i)
    if (parts[i]->node) *parts[i] = hook->map(hook->arg, *parts[i]);
  return gradient;
}

rn_status_t rn_level_arrive(rn_level_t* level, rn_edge_t at, rn_gradient_t gradient) {
  rn_walk_t* walk = level->walk;
  if (rn_gradient_is_none(gradient) || !rn_walk_on_way(walk, at.node)) return RN_OK;
  gradient = in_frame(level, gradient);
  if (walk->has_conds) RN_RETURN_IF_ERROR(rn_guard_fit(level, at, &gradient));
  rn_arrivals_t** slot = &walk->arrivals[at.node->id];
  if (!*slot) RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)at.node->output_count, slot));
  rn_arrivals_t* mine = &(*slot)[at.index];
  if (mine->count == MOST_ARRIVALS) {
    mine->items[0] = rn_gradient_sum(level->scope, mine->items, (int)mine->count);
    mine->count = 1;
  }
  return rn_vec_push(mine, walk->graph->allocator, gradient);
}

rn_gradient_t rn_level_sum(rn_level_t* level, rn_edge_t edge) {
  rn_arrivals_t* all = level->walk->arrivals[edge.node->id];
  if (!all || all[edge.index].count == 0) return (rn_gradient_t){0};
  rn_arrivals_t* mine = &all[edge.index];
  if (mine->count > 1) {
    mine->items[0] = rn_gradient_sum(level->scope, mine->items, (int)mine->count);
    mine->count = 1;
  }
  return mine->items[0];
}

rn_edge_t rn_level_sum_dense(rn_level_t* level, rn_edge_t edge) {
  return rn_level_dense(level, rn_level_sum(level, edge), edge.node);
}

// The client's rule for |node|; fn is NULL if there is none.
static rn_grad_rule_t client_rule(const rn_node_t* node) {
  const rn_attr_value_t* type = NULL;
  for (int32_t i = 0; i < node->extra_count; ++i)
    if (rn_str_is(node->extras[i].name, "_gradient_op_type")) type = &node->extras[i].value;
  if (type && type->kind == RN_ATTR_STRING) return rn_grad_rule_find(type->s);
  return node->op->grad ? (rn_grad_rule_t){0} : rn_grad_rule_find(rn_str(node->op->name));
}

// The op whose rule applies: another one than the node's if an attribute names it.
static const rn_op_def_t* ruling_op(const rn_node_t* node) {
  for (int32_t i = 0; i < node->extra_count; ++i) {
    const rn_attr_value_t* value = &node->extras[i].value;
    if (!rn_str_is(node->extras[i].name, "_gradient_op_type") || value->kind != RN_ATTR_STRING)
      continue;
    return rn_op_find(value->s);
  }
  return node->op;
}

static rn_status_t ask_client(rn_grad_rule_t rule, rn_grad_t* grad) {
  bool done = rule.fn(grad, rule.arg);
  if (done || !rn_scope_ok(grad->scope)) return RN_OK;
  return rn_internal("the gradient function failed without an error message");
}

static rn_status_t apply_rule(rn_level_t* level, rn_grad_t* grad) {
  rn_node_t* node = grad->node;
  RN_RETURN_IF_ERROR(rn_node_check_attrs(node));
  rn_grad_rule_t rule = client_rule(node);
  const rn_op_def_t* op = ruling_op(node);
  rn_status_t status;
  if (rule.fn)
    status = ask_client(rule, grad);
  else if (op && (op->flags & RN_OP_NO_GRAD))
    return RN_OK;
  else if (op == node->op && rn_call_is(node))
    status = rn_call_gradient(grad);
  else if (op && op->grad)
    status = op->grad(grad);
  else
    return rn_walk_no_rule(level->walk, node);
  status = rn_status_join(status, rn_walk_status(level));
  if (rn_ok(status)) return status;
  return rn_status_annotate(status, "\n\t in the gradient of node '%s' (%s)", node->name.data,
                            node->op->name);
}

// Applies a rule and colocates its nodes with the forward node.
static rn_status_t apply_colocated(rn_level_t* level, rn_grad_t* grad) {
  if (!level->walk->options->colocate) return apply_rule(level, grad);
  rn_node_t* node = grad->node;
  const rn_attr_value_t* own = rn_node_attr(node, RN_STR("_class"));
  rn_str_t place;
  RN_RETURN_IF_ERROR(rn_arena_printf(&level->walk->arena, &place, "loc:@%s", node->name.data));
  rn_attr_value_t with = {.kind = RN_ATTR_STRING, .is_list = true, .count = 1, .list_s = &place};
  if (own && own->kind == RN_ATTR_STRING && own->is_list && own->count > 0) with = *own;
  rn_scope_set_device(level->scope, node->device.data);
  rn_scope_set_colocation(level->scope, &with);
  rn_status_t status = apply_rule(level, grad);
  rn_scope_set_colocation(level->scope, NULL);
  rn_scope_set_device(level->scope, NULL);
  return status;
}

// Makes all existing |edges| wait for each other.
static void gate(rn_scope_t* scope, rn_edge_t** edges, int count) {
  if (count < 2) return;
  rn_op_begin(scope, "NoOp");
  for (int i = 0; i < count; ++i) rn_op_control(scope, edges[i]->node);
  rn_node_t* group = rn_op_finish(scope);
  for (int i = 0; group && i < count; ++i) {
    rn_op_begin(scope, "Identity");
    rn_op_input(scope, *edges[i]);
    rn_op_control(scope, group);
    *edges[i] = (rn_edge_t){rn_op_finish(scope), 0};
  }
}

static rn_status_t gate_all(rn_walk_t* walk, rn_scope_t* scope, rn_gradient_t* gradients,
                            int count) {
  rn_edge_t** edges = NULL;
  int n = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, 2 * (size_t)count, &edges));
  for (int i = 0; i < count; ++i) {
    if (gradients[i].dense.node) edges[n++] = &gradients[i].dense;
    if (gradients[i].values.node) edges[n++] = &gradients[i].values;
    if (gradients[i].values.node) edges[n++] = &gradients[i].indices;
  }
  gate(scope, edges, n);
  return RN_OK;
}

static rn_status_t ask_rule(rn_level_t* level, rn_node_t* node, rn_gradient_t* dy,
                            const bool* wanted, rn_gradient_t* dx) {
  rn_walk_t* walk = level->walk;
  if (rn_walk_pair(walk, node)) {  // a push, whose output is the pushed value
    dx[1] = dy[0];
    return RN_OK;
  }
  if (node->op->role == RN_ROLE_SWITCH) return rn_guard_visit_switch(level, node, dy, dx);
  if (node->op->role == RN_ROLE_MERGE) return rn_guard_visit_merge(level, node, dy[0], dx);
  rn_grad_t grad = {.scope = level->scope,
                    .arena = &walk->arena,
                    .node = node,
                    .input_count = node->input_count,
                    .inputs = node->inputs,
                    .output_count = node->output_count,
                    .dy = dy,
                    .wanted = wanted,
                    .dx = dx,
                    .source = walk->source.data,
                    .level = level,
                    .shape_of = level->backward ? rn_backward_shape_of : NULL,
                    .columns_of = level->backward ? rn_backward_columns_of : NULL,
                    .shape_arg = level};
  RN_RETURN_IF_ERROR(apply_colocated(level, &grad));
  if (walk->options->gate != RN_GATE_OP) return RN_OK;
  for (int32_t i = 0; i < node->input_count; ++i) dx[i] = in_frame(level, dx[i]);
  return gate_all(walk, level->scope, dx, node->input_count);
}

rn_status_t rn_level_pass_on(rn_level_t* level, rn_edge_t input, rn_gradient_t dx) {
  rn_walk_t* walk = level->walk;
  RN_RETURN_IF_ERROR(rn_level_arrive(level, input, dx));
  if (--walk->pending[input.node->id] != 0) return RN_OK;
  return rn_vec_push(&level->ready, walk->graph->allocator, input.node);
}

// A gradient that arrived at an Enter is a result of the loop; in the frame of the ys, it is passed
// on outwards.
static rn_status_t visit_enter(rn_level_t* level, rn_node_t* node) {
  const rn_walk_t* walk = level->walk;
  bool leaves = walk->base && rn_walk_is_around(walk, rn_while_loop_of(&walk->loops, node));
  if (!leaves || !rn_walk_sends(walk, node, 0)) return RN_OK;
  bool is_stop = (walk->marks[node->id] & RN_MARK_STOP) != 0;
  rn_gradient_t d = is_stop ? (rn_gradient_t){0} : rn_level_sum(level, (rn_edge_t){node, 0});
  return rn_level_pass_on(level, node->inputs[0], d);
}

static rn_status_t visit_exit(rn_level_t* level, rn_node_t* node) {
  const rn_walk_t* walk = level->walk;
  if (!level->backward && walk->base && rn_while_loop_of(&walk->loops, node) != walk->base)
    return rn_unimplemented(
        "Gradients requested in loop '%.*s' pass through another loop, which '%s' exits",
        RN_STR_ARGS(walk->base->frame), node->name.data);
  return rn_backward_visit_exit(level, node);
}

// Sends the gradients of |node|'s outputs through its rule to the nodes before it.
static rn_status_t visit(rn_level_t* level, rn_node_t* node) {
  rn_walk_t* walk = level->walk;
  rn_op_role_t role = node->op->role;
  if (role == RN_ROLE_EXIT) return visit_exit(level, node);
  const rn_pair_t* pair = rn_walk_pair(walk, node);
  if (pair && node == pair->pop) return rn_stacks_visit_pop(level, node);
  if (role == RN_ROLE_ENTER) return visit_enter(level, node);
  if (rn_while_loop_is_merge(node)) return RN_OK;  // the beginning of an iteration
  rn_gradient_t *dy = NULL, *dx = NULL;
  bool *wanted = NULL, any = false, any_wanted = false;
  size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, outputs, &dy));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, inputs, &dx));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, inputs, &wanted));
  for (int32_t o = 0; o < node->output_count; ++o) {
    dy[o] = rn_level_sum(level, (rn_edge_t){node, o});
    any |= !rn_gradient_is_none(dy[o]);
  }
  RN_RETURN_IF_ERROR(rn_walk_status(level));
  // An x that depends on no other x needs no rule; a stop node passes no gradient on.
  bool is_stop = (walk->marks[node->id] & RN_MARK_STOP) != 0;
  for (int32_t i = 0; i < node->input_count; ++i) {
    wanted[i] = rn_walk_sends(walk, node, i);
    any_wanted |= wanted[i];
  }
  if (any && any_wanted && !is_stop) RN_RETURN_IF_ERROR(ask_rule(level, node, dy, wanted, dx));
  for (int32_t i = 0; i < node->input_count; ++i)
    if (wanted[i]) RN_RETURN_IF_ERROR(rn_level_pass_on(level, node->inputs[i], dx[i]));
  return RN_OK;
}

rn_status_t rn_level_start(rn_level_t* level, rn_node_t* node) {
  rn_walk_t* walk = level->walk;
  if (walk->pending[node->id] > 0 || !rn_walk_on_way(walk, node)) return RN_OK;
  walk->pending[node->id] = INT32_MAX;  // visited once, however many of its outputs are requested
  return rn_vec_push(&level->ready, walk->graph->allocator, node);
}

rn_status_t rn_level_drain(rn_level_t* level) {
  while (level->ready_head < level->ready.count)
    RN_RETURN_IF_ERROR(visit(level, level->ready.items[level->ready_head++]));
  return rn_walk_status(level);
}

void rn_level_clear(rn_level_t* level) {
  rn_vec_free(&level->ready, level->walk->graph->allocator);
}

static rn_status_t start(rn_level_t* level) {
  const rn_grad_request_t* request = level->walk->request;
  const rn_edge_t* dys = request->options->dys;
  for (int i = 0; i < request->y_count; ++i) {
    rn_edge_t y = request->ys[i];
    rn_edge_t dy = dys ? dys[i] : RN_NO_EDGE;
    if (!dys && rn_walk_on_way(level->walk, y.node)) dy = rn_OnesLike(level->scope, y);
    RN_RETURN_IF_ERROR(rn_walk_status(level));
    RN_RETURN_IF_ERROR(rn_level_arrive(level, y, (rn_gradient_t){.dense = dy}));
  }
  for (int i = 0; i < request->y_count; ++i)
    RN_RETURN_IF_ERROR(rn_level_start(level, request->ys[i].node));
  return RN_OK;
}

// Beyond this depth and number of nested calls, functions are taken to be recursive.
enum { MOST_ROUNDS = 64, MOST_CALLS = 10000 };

static void replace_edge(rn_edge_t* edges, int count, const rn_node_t* node, const rn_edge_t* by) {
  for (int i = 0; i < count; ++i)
    if (edges[i].node == node) edges[i] = by[edges[i].index];
}

// Inlines the marked calls on the way; |*out_count| gets their number.
static rn_status_t open_round(rn_walk_t* walk, rn_scope_t* scope, rn_edge_t* ys, rn_edge_t* xs,
                              int* out_count) {
  *out_count = 0;
  for (size_t id = 0; id < walk->node_count; ++id) {
    rn_node_t* node = walk->graph->nodes.items[id];
    if (!rn_walk_on_way(walk, node) || !rn_call_must_open(node)) continue;
    bool has_way = false;  // an x needs no rule
    for (int32_t i = 0; i < node->input_count; ++i)
      has_way |= rn_walk_carries(walk, node, i) && rn_walk_on_way(walk, node->inputs[i].node);
    if (!has_way || (walk->marks[id] & RN_MARK_STOP)) continue;
    rn_edge_t* by = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)node->output_count, &by));
    walk->is_opening = true;
    bool has_frames = walk->has_conds || walk->loops.of;
    RN_RETURN_IF_ERROR(rn_call_open(scope, node, has_frames, by));
    replace_edge(ys, walk->request->y_count, node, by);
    replace_edge(xs, walk->request->x_count, node, by);
    ++*out_count;
  }
  return RN_OK;
}

static rn_status_t open_calls(rn_walk_t* walk, rn_scope_t* scope, rn_edge_t* ys, rn_edge_t* xs) {
  int total = 0;
  for (int round = 0;; ++round) {
    RN_RETURN_IF_ERROR(rn_walk_mark(walk));
    int count = 0;
    RN_RETURN_IF_ERROR(open_round(walk, scope, ys, xs, &count));
    walk->is_opening = count > 0;
    if (count == 0) return RN_OK;
    total += count;
    if (round < MOST_ROUNDS && total < MOST_CALLS) continue;
    for (size_t id = walk->graph->nodes.count; id-- > 0;) {
      const rn_node_t* node = walk->graph->nodes.items[id];
      if (rn_call_must_open(node))
        return rn_invalid_argument(
            "Functions call each other recursively: node '%s' (%s) is %d calls deep",
            node->name.data, node->op->name, round + 1);
    }
  }
}

static rn_status_t prepare(rn_walk_t* walk, rn_scope_t* scope, rn_edge_t* ys, rn_edge_t* xs) {
  RN_RETURN_IF_ERROR(open_calls(walk, scope, ys, xs));
  RN_RETURN_IF_ERROR(rn_walk_check_strays(walk));
  RN_RETURN_IF_ERROR(rn_stacks_check(walk));
  rn_walk_count_pending(walk);
  return rn_walk_check_reach(walk);
}

static rn_status_t collect(rn_level_t* level, rn_gradient_t* out) {
  const rn_grad_request_t* request = level->walk->request;
  const rn_gradient_options_t* options = request->options;
  for (int i = 0; i < request->x_count; ++i) {
    rn_edge_t x = request->xs[i];
    out[i] = rn_level_sum(level, x);
    if (options->dense) out[i] = (rn_gradient_t){.dense = rn_level_dense(level, out[i], x.node)};
    RN_RETURN_IF_ERROR(rn_level_shaped(level, out[i].dense, x));
    if (rn_gradient_is_none(out[i]) && options->unconnected == RN_UNCONNECTED_ZERO) {
      rn_edge_t like = rn_level_value(level, x);
      if (rn_edge_dtype(like) == RN_RESOURCE) continue;
      out[i].dense = rn_ZerosLike(level->scope, like);
    }
  }
  if (options->gate == RN_GATE_GRAPH)
    RN_RETURN_IF_ERROR(gate_all(level->walk, level->scope, out, request->x_count));
  return rn_walk_status(level);
}

static void clear_walk(rn_walk_t* walk) {
  for (size_t id = 0; walk->arrivals && id < walk->node_count; ++id) {
    if (!walk->arrivals[id]) continue;
    for (int32_t o = 0; o < walk->graph->nodes.items[id]->output_count; ++o)
      rn_vec_free(&walk->arrivals[id][o], walk->graph->allocator);
  }
  rn_vec_free(&walk->stack, walk->graph->allocator);
  rn_vec_free(&walk->notes, walk->graph->allocator);
  rn_while_loops_clear(&walk->loops);
  rn_arena_clear(&walk->arena);
}

// A node of the base frame, for control edges to new nodes without inputs.
static rn_node_t* anchor_of(const rn_walk_t* walk) {
  const rn_edge_t* y = walk->request->ys;
  while (rn_while_loop_of(&walk->loops, y->node) != walk->base) ++y;
  return y->node;
}

static rn_status_t run(rn_walk_t* walk, rn_scope_t* scope, rn_gradient_t* out) {
  const rn_grad_request_t* asked = walk->request;
  rn_edge_t *ys = NULL, *xs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)asked->y_count, &ys));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, (size_t)asked->x_count, &xs));
  if (asked->y_count > 0) memcpy(ys, asked->ys, (size_t)asked->y_count * sizeof *ys);
  if (asked->x_count > 0) memcpy(xs, asked->xs, (size_t)asked->x_count * sizeof *xs);
  rn_grad_request_t request = *asked;
  request.ys = ys;
  request.xs = xs;
  walk->request = &request;
  RN_RETURN_IF_ERROR(prepare(walk, scope, ys, xs));
  rn_str_t prefix = rn_scope_prefix(scope);
  if (prefix.size > 0) prefix.size--;
  RN_RETURN_IF_ERROR(rn_arena_str(&walk->arena, prefix, &walk->source));
  rn_level_t level = {.walk = walk, .scope = scope, .here = scope, .there = scope};
  // Inside a loop, every new node must depend on a node of the frame.
  rn_scope_hook_t hook = {0};
  if (walk->base) {
    hook = (rn_scope_hook_t){.map = rn_level_reach, .arg = &level, .anchor = anchor_of(walk)};
    walk->around = rn_scope_at(scope, rn_scope_prefix(scope));
    if (!walk->around) return rn_out_of_memory();
  }
  rn_scope_set_hook(scope, &hook);
  rn_status_t status = start(&level);
  if (rn_ok(status)) status = rn_level_drain(&level);
  if (rn_ok(status)) status = collect(&level, out);
  rn_scope_set_hook(scope, NULL);
  rn_scope_destroy(walk->around);
  rn_level_clear(&level);
  return status;
}

rn_status_t rn_grad_run(const rn_grad_request_t* request, rn_gradient_t* out) {
  rn_graph_t* graph = request->graph;
  rn_walk_t walk = {.request = request,
                    .options = request->options,
                    .graph = graph,
                    .node_count = graph->nodes.count,
                    .loops = {.allocator = graph->allocator}};
  rn_arena_init(&walk.arena, graph->allocator);
  const char* name = request->options->name;
  rn_scope_t* root = rn_scope_create(graph);
  rn_scope_t* scope = root ? rn_scope_child(root, name && *name ? name : "gradients") : NULL;
  rn_status_t status = scope ? RN_OK : rn_out_of_memory();
  if (rn_ok(status)) status = run(&walk, scope, out);
  clear_walk(&walk);
  if (scope && !rn_ok(status) && !walk.is_opening) rn_scope_take_back(scope, walk.node_count);
  rn_scope_destroy(scope);
  rn_scope_destroy(root);
  return status;
}

rn_status_t rn_add_gradients(rn_graph_t* graph, rn_str_t prefix, const rn_edge_t* ys, int y_count,
                             const rn_edge_t* xs, int x_count, const rn_edge_t* dys,
                             rn_edge_t* out_dxs) {
  rn_gradient_options_t options = {
      .dys = dys, .dense = true, .name = prefix.size ? prefix.data : NULL};
  rn_grad_request_t request = {.graph = graph,
                               .ys = ys,
                               .y_count = y_count,
                               .xs = xs,
                               .x_count = x_count,
                               .options = &options,
                               .wants_all = true};
  rn_gradient_t* all = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(graph->allocator, (size_t)x_count, &all));
  rn_status_t status = rn_grad_run(&request, all);
  for (int i = 0; rn_ok(status) && i < x_count; ++i) out_dxs[i] = all[i].dense;
  RN_FREE_ARRAY(graph->allocator, all, (size_t)x_count);
  return status;
}
