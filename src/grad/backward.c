// Builds the backward loop of a loop.
//
//   forward, added:   n = 0 … n + 1, and for each value v that is needed: push(v)
//   backward:         while (n > 0) { n - 1; v = pop(); d = gradients of the body by its inputs }
//
// Iterations may overlap, but pushes and pops must stay in order: each waits for its iteration's
// counter, and the counter waits for them before it advances. A nested loop uses the same stacks in
// every iteration of the outer loop: its counter starts with the outer iteration, and the outer
// counter waits for its end. The inner loop's number of iterations is an ordinary value of the
// outer body.
//
// Loop invariants are not pushed: they enter the backward loop from where they entered the forward
// one. A value that is alive in only one branch of a conditional is pushed there, and popped under
// the same condition.
#include "grad/backward.h"
#include "grad/stacks.h"
#include "runnel/ops.h"

// Building the two counters.

// Adds the Merge of a loop variable; its second input is linked later.
static rn_edge_t merge_of(rn_scope_t* inside, rn_edge_t enter) {
  rn_edge_t pair[2] = {enter, enter};
  return rn_Merge(inside, pair, 2).output;
}

rn_status_t rn_backward_close(rn_level_t* level, rn_scope_t* inside, rn_edge_t merge,
                              rn_edge_t value) {
  rn_edge_t next = rn_NextIteration(inside, value);
  RN_RETURN_IF_ERROR(rn_walk_status(level));
  return rn_graph_update_edge(level->walk->graph, next, merge.node, 1);
}

// Adds a scalar that is alive when |anchor| is.
static rn_edge_t scalar_after(rn_scope_t* scope, rn_node_t* anchor, int32_t value) {
  if (anchor) rn_scope_add_control(scope, anchor);
  rn_edge_t scalar = rn_const_int32(scope, value);
  rn_scope_clear_controls(scope);
  return scalar;
}

static void hang_counter(rn_scope_t* scope, rn_counter_t* counter, rn_edge_t cond) {
  rn_Switch_out_t out = rn_Switch(scope, counter->merge, cond);
  counter->in = out.output_true;
  counter->pivot = rn_Identity(scope, out.output_true);
  counter->exit = rn_Exit(scope, out.output_false);
}

// Makes the backward loop wait until everything that it will pop has been pushed.
static void await_stacks(rn_level_t* outer, const rn_backward_t* b) {
  const rn_walk_t* walk = outer->walk;
  const rn_node_t* last = NULL;
  for (size_t i = 0; i < walk->pair_count; ++i) {
    const rn_pair_t* pair = &walk->pairs[i];
    if (pair->push_nest != b->loop || !pair->handle.node) continue;
    rn_node_t* exit = pair->pop_nest->back_exit;
    if (exit && exit != last) rn_scope_add_control(outer->scope, exit);
    last = exit;
  }
}

static rn_status_t open_counters(rn_level_t* outer, rn_backward_t* b) {
  rn_while_loop_t* loop = b->loop;
  // The forward counter starts with the loop.
  rn_node_t* anchor = NULL;
  if (outer->backward || b->guard || outer->walk->base)
    anchor = rn_Identity(outer->there, loop->vars.items[0].enter->inputs[0]).node;
  rn_backward_note_forward(outer, anchor, loop->parent);
  // Pushes of an outer iteration come after those of the previous one.
  if (outer->backward) rn_scope_add_control(outer->there, outer->backward->forward.pivot.node);
  rn_edge_t zero = scalar_after(outer->there, anchor, 0);
  rn_backward_note_forward(outer, zero.node, loop->parent);
  rn_edge_t enter = rn_backward_enter(outer->there, zero, b, loop->frame, false);
  b->forward.merge = merge_of(b->there, enter);
  hang_counter(b->there, &b->forward, (rn_edge_t){loop->cond, 0});
  rn_backward_note_forward(outer, b->forward.exit.node, loop->parent);
  rn_guard_set(outer, b->forward.exit.node, b->guard);
  RN_RETURN_IF_ERROR(rn_walk_status(outer));
  if (outer->backward)
    RN_RETURN_IF_ERROR(
        rn_backward_wait(outer, &outer->backward->forward, b->forward.exit.node, b->guard));
  await_stacks(outer, b);
  enter = rn_backward_enter(outer->scope, b->forward.exit, b, b->frame, false);
  rn_scope_clear_controls(outer->scope);
  b->backward.merge = merge_of(b->here, enter);
  zero = scalar_after(b->here, b->backward.merge.node, 0);
  b->cond = rn_LoopCond(b->here, rn_Greater(b->here, b->backward.merge, zero));
  hang_counter(b->here, &b->backward, b->cond);
  rn_guard_set(outer, b->backward.exit.node, b->guard);
  RN_RETURN_IF_ERROR(rn_walk_status(outer));
  // Pops of the next outer iteration come after those of this one.
  if (outer->backward)
    RN_RETURN_IF_ERROR(
        rn_backward_wait(outer, &outer->backward->backward, b->backward.exit.node, b->guard));
  return RN_OK;
}

// The counter's next value, computed after everything that it waits for.
static rn_edge_t count_on(rn_scope_t* scope, rn_counter_t* counter, const char* op) {
  rn_node_t* trigger = NULL;
  if (counter->guarded.count > 0) {
    rn_op_begin(scope, "ControlTrigger");
    for (size_t i = 0; i < counter->guarded.count; ++i)
      rn_op_control(scope, counter->guarded.items[i]);
    trigger = rn_op_finish(scope);
  }
  rn_edge_t one = scalar_after(scope, counter->pivot.node, 1);
  rn_op_begin(scope, op);
  rn_op_input(scope, counter->in);
  rn_op_input(scope, one);
  for (size_t i = 0; i < counter->waits.count; ++i) rn_op_control(scope, counter->waits.items[i]);
  if (trigger) rn_op_control(scope, trigger);
  return (rn_edge_t){rn_op_finish(scope), 0};
}

rn_edge_t rn_backward_hold(rn_level_t* outer, rn_backward_t* b, rn_edge_t value) {
  return rn_backward_enter(outer->scope, value, b, b->frame, true);
}

rn_carried_t rn_backward_carry(rn_level_t* outer, rn_backward_t* b, rn_edge_t start) {
  rn_carried_t carried = {0};
  carried.merge = merge_of(b->here, rn_backward_enter(outer->scope, start, b, b->frame, false));
  rn_Switch_out_t out = rn_Switch(b->here, carried.merge, b->cond);
  carried.in = out.output_true;
  carried.out = rn_Exit(b->here, out.output_false);
  rn_guard_set(outer, carried.out.node, b->guard);
  return carried;
}

// The gradient that arrived at the exits of a variable.
static rn_gradient_t arrived_at(rn_level_t* outer, const rn_while_loop_var_t* var) {
  rn_gradient_t sum = {0};
  if (!var->switch_) return sum;
  const rn_output_t* output = &var->switch_->outputs[0];
  for (size_t c = 0; c < output->consumers.count; ++c) {
    rn_node_t* exit = output->consumers.items[c].node;
    if (exit->op->role != RN_ROLE_EXIT || !rn_walk_on_way(outer->walk, exit)) continue;
    rn_gradient_t pair[2] = {sum, rn_level_sum(outer, (rn_edge_t){exit, 0})};
    sum = rn_gradient_sum(outer->scope, pair, 2);
  }
  return sum;
}

static rn_edge_t exit_of(rn_level_t* outer, rn_backward_t* b, const rn_while_loop_var_t* var) {
  if (var->exit) return (rn_edge_t){var->exit, 0};
  rn_edge_t last = {var->switch_, 0}, exit = rn_Exit(b->there, last);
  rn_backward_note_forward(outer, exit.node, b->loop->parent);
  rn_guard_set(outer, exit.node, b->guard);
  return exit;
}

// Whether the body passes a requested variable on unchanged. Its gradient is that of an invariant
// plus what arrives at the exit, so the backward loop needs no variable for it.
static bool is_held(const rn_walk_t* walk, const rn_while_loop_t* loop,
                    const rn_while_loop_var_t* var) {
  return var->switch_ && rn_walk_on_way(walk, var->merge) &&
         rn_backward_unchanged(loop, var->switch_);
}

// Makes the variables' gradients arrive at the NextIteration inputs of the body.
static rn_status_t open_vars(rn_level_t* outer, rn_backward_t* b, rn_carried_t* vars) {
  rn_while_loop_t* loop = b->loop;
  for (size_t i = 0; i < loop->vars.count; ++i) {
    const rn_while_loop_var_t* var = &loop->vars.items[i];
    if (!rn_walk_on_way(outer->walk, var->merge) || !var->switch_ ||
        is_held(outer->walk, loop, var))
      continue;
    rn_edge_t start = rn_level_dense(outer, arrived_at(outer, var), var->switch_);
    if (!start.node) start = rn_level_zeros(outer, exit_of(outer, b, var));
    vars[i] = rn_backward_carry(outer, b, start);
    RN_RETURN_IF_ERROR(rn_walk_status(outer));
    rn_gradient_t d = {.dense = vars[i].in};
    RN_RETURN_IF_ERROR(rn_level_arrive(&b->level, var->next->inputs[0], d));
  }
  for (size_t i = 0; i < loop->vars.count; ++i)
    if (vars[i].merge.node || is_held(outer->walk, loop, &loop->vars.items[i]))
      RN_RETURN_IF_ERROR(rn_level_start(&b->level, loop->vars.items[i].next->inputs[0].node));
  return RN_OK;
}

static rn_status_t close_vars(rn_backward_t* b, rn_carried_t* vars) {
  rn_level_t* level = &b->level;
  for (size_t i = 0; i < b->loop->vars.count; ++i) {
    if (!vars[i].merge.node) continue;
    rn_edge_t at = {b->loop->vars.items[i].merge, 0};
    rn_edge_t d = rn_level_sum_dense(level, at);
    if (!d.node) d = rn_level_zeros(level, at);
    RN_RETURN_IF_ERROR(rn_backward_close(level, b->here, vars[i].merge, d));
  }
  return RN_OK;
}

// Sums the gradient of an invariant over all iterations.
static rn_status_t accumulate(rn_level_t* outer, rn_backward_t* b, rn_collect_t* collect,
                              rn_node_t* enter, rn_edge_t at, rn_gradient_t* out) {
  rn_level_t* level = &b->level;
  rn_gradient_t d = rn_level_sum(level, at);
  *out = (rn_gradient_t){0};
  if (rn_gradient_is_none(d)) return rn_walk_status(level);
  rn_edge_t table = enter->inputs[0];
  if (!rn_gradient_is_slices(d)) {
    bool is_taken = false;
    rn_shape_t shape;
    rn_walk_value(outer->walk, table, &shape);
    RN_RETURN_IF_ERROR(rn_collect_try(outer, b, collect, d.dense, shape, out, &is_taken));
    if (is_taken) return RN_OK;
    rn_carried_t sum = rn_backward_carry(outer, b, rn_level_zeros(outer, table));
    out->dense = sum.out;
    // Only AddN adds lists element by element.
    rn_edge_t pair[2] = {sum.in, d.dense};
    bool is_list = rn_edge_dtype(d.dense) == RN_VARIANT;
    rn_edge_t more = is_list ? rn_AddN(b->here, pair, 2) : rn_AddV2(b->here, sum.in, d.dense);
    return rn_backward_close(level, b->here, sum.merge, more);
  }
  // Starts with no rows; every iteration appends its rows.
  rn_shape_t shape = d.values.node->outputs[d.values.index].shape;
  if (shape.rank < 1) {
    rn_carried_t sum = rn_backward_carry(outer, b, rn_level_zeros(outer, table));
    out->dense = sum.out;
    rn_edge_t dense = rn_level_dense(level, d, enter);
    return rn_backward_close(level, b->here, sum.merge, rn_AddV2(b->here, sum.in, dense));
  }
  int64_t dims[RN_MAX_RANK] = {0}, none = 0;
  bool is_known = true;
  for (int i = 1; i < shape.rank; ++i) {
    dims[i] = shape.dims[i];
    is_known &= dims[i] >= 0;
  }
  int dtype = rn_edge_dtype(d.values);
  rn_edge_t empty;
  int64_t rank = shape.rank;
  if (is_known) {
    empty = rn_Fill(outer->scope, rn_const(outer->scope, RN_INT64, &rank, 1, dims),
                    rn_const_scalar(outer->scope, dtype, 0));
  } else {
    table = rn_level_value(outer, table);
    empty = rn_GatherV2(outer->scope, table, rn_const(outer->scope, RN_INT32, &none, 1, dims),
                        rn_const_int32(outer->scope, 0));
  }
  int index_type = rn_edge_dtype(d.indices);
  rn_carried_t values = rn_backward_carry(outer, b, empty);
  rn_carried_t indices =
      rn_backward_carry(outer, b, rn_const(outer->scope, index_type, &none, 1, dims));
  rn_edge_t zero = scalar_after(b->here, b->backward.pivot.node, 0);
  rn_edge_t more[2] = {values.in, d.values};
  // The number of rows changes between iterations.
  RN_RETURN_IF_ERROR(
      rn_backward_close(level, b->here, values.merge, rn_ConcatV2(b->here, more, 2, zero)));
  rn_edge_t more_indices[2] = {indices.in, d.indices};
  RN_RETURN_IF_ERROR(rn_backward_close(level, b->here, indices.merge,
                                       rn_ConcatV2(b->here, more_indices, 2, zero)));
  out->values = values.out;
  out->indices = indices.out;
  rn_shape_t known;  // shape of the variable's value, if the table is its handle
  rn_walk_value(outer->walk, table, &known);
  int64_t known_rank = known.rank;
  out->dense_shape = rn_shape_is_full(known)
                         ? rn_const(outer->scope, RN_INT64, &known_rank, 1, known.dims)
                         : rn_Shape(outer->scope, rn_level_value(outer, table));
  return rn_walk_status(level);
}

static rn_status_t build(rn_level_t* outer, rn_backward_t* b, rn_collect_t* collect) {
  rn_while_loop_t* loop = b->loop;
  rn_walk_t* walk = outer->walk;
  rn_level_t* level = &b->level;
  rn_carried_t* vars = NULL;
  rn_gradient_t *sums = NULL, *held = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, loop->vars.count, &vars));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, loop->vars.count, &held));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&walk->arena, loop->invariants.count, &sums));
  RN_RETURN_IF_ERROR(open_counters(outer, b));
  b->hook =
      (rn_scope_hook_t){.map = rn_backward_bring, .arg = level, .anchor = b->backward.pivot.node};
  rn_scope_set_hook(b->body, &b->hook);
  RN_RETURN_IF_ERROR(open_vars(outer, b, vars));
  RN_RETURN_IF_ERROR(rn_stacks_open(level));
  RN_RETURN_IF_ERROR(rn_level_drain(level));
  RN_RETURN_IF_ERROR(close_vars(b, vars));
  for (size_t i = 0; i < loop->invariants.count; ++i)
    if (rn_walk_on_way(walk, loop->invariants.items[i]))
      RN_RETURN_IF_ERROR(accumulate(outer, b, collect, loop->invariants.items[i],
                                    (rn_edge_t){loop->invariants.items[i], 0}, &sums[i]));
  for (size_t i = 0; i < loop->vars.count; ++i)
    if (is_held(walk, loop, &loop->vars.items[i]))
      RN_RETURN_IF_ERROR(accumulate(outer, b, collect, loop->vars.items[i].enter,
                                    (rn_edge_t){loop->vars.items[i].merge, 0}, &held[i]));
  rn_edge_t less = count_on(b->here, &b->backward, "Sub");
  RN_RETURN_IF_ERROR(rn_backward_close(level, b->here, b->backward.merge, less));
  RN_RETURN_IF_ERROR(rn_collect_finish(outer, b, collect, less));
  rn_edge_t more = count_on(b->there, &b->forward, "AddV2");
  RN_RETURN_IF_ERROR(rn_backward_close(level, b->there, b->forward.merge, more));
  for (size_t i = 0; i < loop->vars.count; ++i) {
    rn_node_t* enter = loop->vars.items[i].enter;
    if (!rn_walk_on_way(walk, enter) || !rn_walk_on_way(walk, enter->inputs[0].node)) continue;
    rn_gradient_t d = {.dense = vars[i].out};
    if (is_held(walk, loop, &loop->vars.items[i])) {
      rn_gradient_t both[2] = {arrived_at(outer, &loop->vars.items[i]), held[i]};
      d = rn_gradient_sum(outer->scope, both, 2);
    }
    RN_RETURN_IF_ERROR(rn_level_shaped(outer, d.dense, enter->inputs[0]));
    RN_RETURN_IF_ERROR(rn_level_pass_on(outer, enter->inputs[0], d));
  }
  for (size_t i = 0; i < loop->invariants.count; ++i) {
    rn_node_t* enter = loop->invariants.items[i];
    if (!rn_walk_on_way(walk, enter) || !rn_walk_on_way(walk, enter->inputs[0].node)) continue;
    RN_RETURN_IF_ERROR(rn_level_shaped(outer, sums[i].dense, enter->inputs[0]));
    RN_RETURN_IF_ERROR(rn_level_pass_on(outer, enter->inputs[0], sums[i]));
  }
  return rn_walk_status(outer);
}

static rn_status_t walk_loop(rn_level_t* outer, rn_while_loop_t* loop) {
  rn_walk_t* walk = outer->walk;
  rn_backward_t b = {.loop = loop};
  // The frame name is unique, because node ids only grow.
  RN_RETURN_IF_ERROR(rn_arena_printf(&walk->arena, &b.frame, "%.*s_gradient_%zu",
                                     RN_STR_ARGS(loop->frame), walk->graph->nodes.count));
  RN_RETURN_IF_ERROR(rn_refine_shapes(outer, loop));
  b.guard = rn_guard_of(outer, loop->vars.items[0].enter->inputs[0]);
  b.there = rn_scope_child(outer->there, "loop");
  b.here = rn_scope_child(outer->here, "back");
  b.body = b.here ? rn_scope_child(b.here, "body") : NULL;
  rn_status_t status = b.there && b.body ? RN_OK : rn_out_of_memory();
  b.level = (rn_level_t){.walk = walk,
                         .outer = outer,
                         .backward = &b,
                         .scope = b.body,
                         .here = b.here,
                         .there = b.there};
  rn_collect_t collect = {0};
  if (rn_ok(status)) status = build(outer, &b, &collect);
  loop->back_exit = b.backward.exit.node;
  rn_collect_clear(&collect, walk->graph->allocator);
  rn_level_clear(&b.level);
  rn_vec_free(&b.forward.waits, walk->graph->allocator);
  rn_vec_free(&b.forward.guarded, walk->graph->allocator);
  rn_vec_free(&b.backward.waits, walk->graph->allocator);
  rn_vec_free(&b.backward.guarded, walk->graph->allocator);
  rn_scope_destroy(b.body);
  rn_scope_destroy(b.here);
  rn_scope_destroy(b.there);
  return status;
}

// Handles a loop through which no gradient flows.
static rn_status_t walk_past(rn_level_t* outer, rn_while_loop_t* loop) {
  const rn_walk_t* walk = outer->walk;
  for (size_t i = 0; i < loop->vars.count + loop->invariants.count; ++i) {
    rn_node_t* enter = i < loop->vars.count ? loop->vars.items[i].enter
                                            : loop->invariants.items[i - loop->vars.count];
    if (!rn_walk_on_way(walk, enter) || !rn_walk_on_way(walk, enter->inputs[0].node)) continue;
    RN_RETURN_IF_ERROR(rn_level_pass_on(outer, enter->inputs[0], (rn_gradient_t){0}));
  }
  return RN_OK;
}

static bool is_exit_on_way(const rn_walk_t* walk, const rn_node_t* node) {
  return node->op->role == RN_ROLE_EXIT && rn_walk_on_way(walk, node);
}

static bool is_var_switch(const rn_while_loop_t* loop, const rn_node_t* node) {
  for (size_t i = 0; i < loop->vars.count; ++i)
    if (loop->vars.items[i].switch_ == node) return true;
  return false;
}

// Computes |waiting| of |loop|.
static rn_status_t prepare(const rn_walk_t* walk, rn_while_loop_t* loop) {
  RN_RETURN_IF_ERROR(rn_while_loop_complete(loop));
  if (loop->is_counted) return RN_OK;
  loop->is_counted = true;
  loop->waiting = rn_stacks_waiting(walk, loop);
  for (size_t i = 0; i < loop->vars.count; ++i) {
    const rn_while_loop_var_t* var = &loop->vars.items[i];
    for (size_t c = 0; var->switch_ && c < var->switch_->outputs[0].consumers.count; ++c)
      loop->waiting += is_exit_on_way(walk, var->switch_->outputs[0].consumers.items[c].node);
  }
  return RN_OK;
}

// Whether gradients arrive in |loop|, through its exits or through stacks.
static bool is_reached(rn_level_t* level, const rn_while_loop_t* loop) {
  bool any = rn_stacks_bring(level->walk, loop);
  for (size_t i = 0; i < loop->vars.count; ++i) {
    const rn_while_loop_var_t* var = &loop->vars.items[i];
    for (size_t c = 0; var->switch_ && c < var->switch_->outputs[0].consumers.count; ++c) {
      rn_node_t* node = var->switch_->outputs[0].consumers.items[c].node;
      if (is_exit_on_way(level->walk, node))
        any |= !rn_gradient_is_none(rn_level_sum(level, (rn_edge_t){node, 0}));
    }
  }
  return any;
}

static rn_status_t leave(rn_level_t* level, rn_while_loop_t* loop);

// After |loop| has been walked, decrements |waiting| of the loops whose stacks it pops from.
static rn_status_t release(rn_level_t* level, const rn_while_loop_t* loop) {
  const rn_walk_t* walk = level->walk;
  for (size_t i = 0; i < walk->pair_count; ++i) {
    const rn_pair_t* pair = &walk->pairs[i];
    if (pair->pop_nest != loop || !rn_walk_on_way(walk, pair->push)) continue;
    RN_RETURN_IF_ERROR(prepare(walk, pair->push_nest));
    if (--pair->push_nest->waiting == 0) RN_RETURN_IF_ERROR(leave(level, pair->push_nest));
  }
  return RN_OK;
}

// Walks |loop|, which waits for nothing any more.
static rn_status_t leave(rn_level_t* level, rn_while_loop_t* loop) {
  bool comes_back = loop->has_back_prop && is_reached(level, loop);
  RN_RETURN_IF_ERROR(comes_back ? walk_loop(level, loop) : walk_past(level, loop));
  return release(level, loop);
}

rn_status_t rn_backward_visit_silent(rn_level_t* level, rn_while_loop_t* loop) {
  RN_RETURN_IF_ERROR(prepare(level->walk, loop));
  return loop->waiting == 0 ? leave(level, loop) : RN_OK;
}

rn_status_t rn_backward_visit_exit(rn_level_t* level, rn_node_t* exit) {
  rn_walk_t* walk = level->walk;
  rn_node_t* source = exit->inputs[0].node;
  rn_while_loop_t* loop = rn_while_loop_of(&walk->loops, source);
  if (!loop)
    return rn_invalid_argument("Node '%s' (%s) exits a loop that has no Enter", exit->name.data,
                               exit->op->name);
  RN_RETURN_IF_ERROR(prepare(walk, loop));
  if (!is_var_switch(loop, source))
    return rn_invalid_argument(
        "Loop '%.*s' is malformed: node '%s' (%s) leaves it from '%s', which is not the Switch of "
        "a loop variable",
        RN_STR_ARGS(loop->frame), exit->name.data, exit->op->name, source->name.data);
  return --loop->waiting > 0 ? RN_OK : leave(level, loop);
}
