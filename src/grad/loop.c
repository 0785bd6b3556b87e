// The backward loop.
//
//   forward, added:   n = 0 … n + 1, and for each value v that is needed: push(v)
//   backward:         while (n > 0) { n - 1; v = pop(); d = gradients of the body by its inputs }
//
// Iterations may overlap, but pushes and pops may not pass each other: each waits for its
// iteration's counter, and the counter waits for them before it goes on.
#include "grad/loop.h"

#include "runnel/ops.h"

static rn_node_t* consumer_of(const rn_node_t* node, rn_op_role_t role) {
  for (int32_t o = 0; o < node->output_count; ++o) {
    for (size_t c = 0; c < node->outputs[o].consumers.count; ++c) {
      const rn_consumer_t* consumer = &node->outputs[o].consumers.items[c];
      if (consumer->node->op->role == role && consumer->input == 0) return consumer->node;
    }
  }
  return NULL;
}

static rn_node_t* input_of(const rn_node_t* node, rn_op_role_t role) {
  for (int32_t i = 0; i < node->input_count; ++i)
    if (node->inputs[i].node->op->role == role) return node->inputs[i].node;
  return NULL;
}

static rn_node_t* merge_after(const rn_node_t* enter) {
  for (size_t c = 0; c < enter->outputs[0].consumers.count; ++c) {
    rn_node_t* node = enter->outputs[0].consumers.items[c].node;
    if (node->op->role == RN_ROLE_MERGE) return node;
  }
  return NULL;
}

// Whether the nodes around |enter| are those of a loop variable that |cond| steers.
static bool complete_var(rn_loop_var_t* var, const rn_node_t* cond) {
  var->merge = merge_after(var->enter);
  if (!var->merge || var->merge->input_count != 2) return false;
  var->next = input_of(var->merge, RN_ROLE_NEXT_ITERATION);
  var->switch_ = consumer_of(var->merge, RN_ROLE_SWITCH);
  if (!var->next || !var->switch_ || var->switch_->inputs[1].node != cond) return false;
  var->exit = consumer_of(var->switch_, RN_ROLE_EXIT);
  return var->exit != NULL;
}

static bool is_constant(const rn_node_t* enter) {
  const rn_attr_value_t* value = rn_node_attr(enter, RN_STR("is_constant"));
  return value && value->b;
}

rn_status_t rn_loop_find(rn_graph_t* graph, rn_arena_t* arena, const rn_node_t* exit,
                         rn_loop_t* out, bool* out_found) {
  *out = (rn_loop_t){0};
  *out_found = false;
  const rn_node_t* switch_ = exit->inputs[0].node;
  if (switch_->op->role != RN_ROLE_SWITCH) return RN_OK;
  const rn_node_t* merge = switch_->inputs[0].node;
  out->cond = switch_->inputs[1].node;
  const rn_node_t* enter = input_of(merge, RN_ROLE_ENTER);
  if (merge->op->role != RN_ROLE_MERGE || out->cond->op->role != RN_ROLE_LOOP_COND || !enter)
    return RN_OK;
  out->frame = rn_node_attr(enter, RN_STR("frame_name"))->s;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, graph->nodes.count, &out->vars));
  for (size_t id = 0; id < graph->nodes.count; ++id) {
    rn_node_t* node = graph->nodes.items[id];
    if (node->op->role != RN_ROLE_ENTER || is_constant(node)) continue;
    if (!rn_str_eq(rn_node_attr(node, RN_STR("frame_name"))->s, out->frame)) continue;
    rn_loop_var_t* var = &out->vars[out->count++];
    var->enter = node;
    if (!complete_var(var, out->cond)) return RN_OK;
  }
  *out_found = true;
  return RN_OK;
}

// A loop under construction: a counter, and the nodes that the rest hangs on.
typedef struct build_t {
  rn_graph_t* graph;
  rn_scope_t* scope;
  const char* frame;
  rn_edge_t merge;    // of the counter
  rn_edge_t counter;  // in the body
  rn_edge_t pivot;    // what a node of the body waits for that has no input from the loop
  rn_edge_t exit;
  RN_VEC(rn_node_t*) waits;  // what the counter waits for
} build_t;

// What a forward value is in the backward loop.
typedef struct popped_t {
  rn_edge_t from, to;
} popped_t;

typedef struct backward_t {
  build_t forward, backward;
  int32_t first_new;  // nodes before this one are the forward graph's
  RN_VEC(popped_t) popped;
} backward_t;

static rn_status_t scope_status(rn_scope_t* scope) {
  if (rn_scope_ok(scope)) return RN_OK;
  return rn_status_make((rn_code_t)rn_scope_code(scope), "%s", rn_scope_message(scope));
}

// The Merge of a loop variable; its second input comes later.
static rn_edge_t merge_of(build_t* loop, rn_edge_t start) {
  rn_edge_t enter = rn_Enter(loop->scope, start, loop->frame);
  rn_edge_t both[2] = {enter, enter};
  return rn_Merge(loop->scope, both, 2).output;
}

static rn_status_t close_var(build_t* loop, rn_edge_t merge, rn_edge_t value) {
  rn_edge_t next = rn_NextIteration(loop->scope, value);
  RN_RETURN_IF_ERROR(scope_status(loop->scope));
  return rn_graph_update_edge(loop->graph, next, merge.node, 1);
}

static void hang_counter(build_t* loop, rn_edge_t cond) {
  rn_Switch_out_t both = rn_Switch(loop->scope, loop->merge, cond);
  loop->counter = both.output_true;
  loop->pivot = rn_Identity(loop->scope, both.output_true);
  loop->exit = rn_Exit(loop->scope, both.output_false);
}

// A scalar that lives in the loop's frame, as it waits for |pivot|.
static rn_edge_t scalar_in(build_t* loop, rn_edge_t pivot, int32_t value) {
  rn_scope_add_control(loop->scope, pivot.node);
  rn_edge_t scalar = rn_const_int32(loop->scope, value);
  rn_scope_clear_controls(loop->scope);
  return scalar;
}

// The counter goes on by |step| when everything is done that it waits for.
static rn_status_t close_counter(build_t* loop, const char* op) {
  rn_edge_t one = scalar_in(loop, loop->pivot, 1);
  rn_op_begin(loop->scope, op);
  rn_op_input(loop->scope, loop->counter);
  rn_op_input(loop->scope, one);
  for (size_t i = 0; i < loop->waits.count; ++i) rn_op_control(loop->scope, loop->waits.items[i]);
  rn_edge_t value = {rn_op_finish(loop->scope), 0};
  return close_var(loop, loop->merge, value);
}

static rn_edge_t copy_constant(build_t* loop, const rn_node_t* node) {
  const rn_tensor_t* value = rn_node_attr(node, RN_STR("value"))->tensor;
  rn_scope_add_control(loop->scope, loop->pivot.node);
  rn_edge_t copy =
      rn_const(loop->scope, value->dtype, rn_tensor_dims(value), value->rank, value->data);
  rn_scope_clear_controls(loop->scope);
  return copy;
}

// |from|, a value of the forward body, in the backward body.
static rn_status_t bring_back(backward_t* b, rn_edge_t from, rn_edge_t* out) {
  for (size_t i = 0; i < b->popped.count; ++i) {
    *out = b->popped.items[i].to;
    if (b->popped.items[i].from.node == from.node && b->popped.items[i].from.index == from.index)
      return RN_OK;
  }
  build_t *there = &b->forward, *here = &b->backward;
  int dtype = rn_edge_dtype(from);
  if (from.node->op->role == RN_ROLE_CONSTANT && rn_dtype_is_plain(dtype)) {
    *out = copy_constant(here, from.node);
  } else {
    rn_edge_t handle = rn_StackV2(there->scope, rn_const_int32(there->scope, -1), dtype);
    rn_edge_t inside = rn_Enter(there->scope, handle, there->frame, .is_constant = true);
    rn_scope_add_control(there->scope, there->pivot.node);
    rn_edge_t push = rn_StackPushV2(there->scope, inside, from);
    rn_scope_clear_controls(there->scope);
    inside = rn_Enter(here->scope, handle, here->frame, .is_constant = true);
    rn_scope_add_control(here->scope, here->pivot.node);
    *out = rn_StackPopV2(here->scope, inside, dtype);
    rn_scope_clear_controls(here->scope);
    RN_RETURN_IF_ERROR(scope_status(here->scope));
    RN_RETURN_IF_ERROR(
        rn_graph_set_shape(b->forward.graph, *out, from.node->outputs[from.index].shape));
    RN_RETURN_IF_ERROR(rn_vec_push(&there->waits, there->graph->allocator, push.node));
    RN_RETURN_IF_ERROR(rn_vec_push(&here->waits, here->graph->allocator, out->node));
  }
  RN_RETURN_IF_ERROR(scope_status(here->scope));
  popped_t popped = {from, *out};
  return rn_vec_push(&b->popped, b->forward.graph->allocator, popped);
}

// Rules were built on the forward values as they stand; what they took is now popped.
static rn_status_t bring_all_back(backward_t* b, size_t first, size_t end) {
  for (size_t id = first; id < end; ++id) {
    rn_node_t* node = b->forward.graph->nodes.items[id];
    for (int32_t i = 0; i < node->input_count; ++i) {
      rn_edge_t from = node->inputs[i], to;
      if (from.node->id >= b->first_new) continue;
      RN_RETURN_IF_ERROR(bring_back(b, from, &to));
      RN_RETURN_IF_ERROR(rn_graph_update_edge(b->forward.graph, to, node, i));
    }
  }
  return RN_OK;
}

// The active variables of the backward loop.
typedef struct active_t {
  int count;
  rn_edge_t *ys, *xs;            // body outputs and inputs, forward
  rn_edge_t *merges, *ds, *dxs;  // backward: the Merge, the value in the body, the next value
} active_t;

static rn_status_t active_vars(rn_arena_t* arena, const rn_loop_t* loop, const bool* is_active,
                               active_t* out) {
  size_t count = (size_t)loop->count;
  *out = (active_t){0};
  rn_edge_t** arrays[] = {&out->ys, &out->xs, &out->merges, &out->ds, &out->dxs};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, arrays[i]));
  for (int i = 0; i < loop->count; ++i) {
    if (!is_active[i]) continue;
    out->ys[out->count] = loop->vars[i].next->inputs[0];
    out->xs[out->count++] = (rn_edge_t){loop->vars[i].switch_, 1};
  }
  return RN_OK;
}

// while (n > 0), with a variable for each gradient.
static void open_backward(backward_t* b, const rn_loop_t* loop, const bool* is_active,
                          const rn_edge_t* dexits, active_t* active, rn_edge_t* out_denters) {
  build_t* here = &b->backward;
  here->merge = merge_of(here, b->forward.exit);
  rn_edge_t zero = scalar_in(here, here->merge, 0);
  rn_edge_t cond = rn_LoopCond(here->scope, rn_Greater(here->scope, here->merge, zero));
  hang_counter(here, cond);
  for (int i = 0, k = 0; i < loop->count; ++i) {
    if (!is_active[i]) continue;
    active->merges[k] = merge_of(here, dexits[i]);
    rn_Switch_out_t both = rn_Switch(here->scope, active->merges[k], cond);
    active->ds[k++] = both.output_true;
    out_denters[i] = rn_Exit(here->scope, both.output_false);
  }
}

static rn_status_t fill_backward(backward_t* b, const rn_loop_t* loop, active_t* active) {
  rn_graph_t* graph = b->forward.graph;
  build_t* here = &b->backward;
  rn_scope_t* body = rn_scope_child(here->scope, "body");
  if (!body) return rn_out_of_memory();
  rn_scope_add_control(body, here->pivot.node);
  size_t first = graph->nodes.count;
  rn_status_t status = rn_body_gradients(graph, body, loop->cond, active->ys, active->xs,
                                         active->ds, active->count, active->dxs);
  for (int i = 0; rn_ok(status) && i < active->count; ++i)
    if (!active->dxs[i].node) active->dxs[i] = rn_ZerosLike(body, active->ds[i]);
  rn_scope_destroy(body);
  if (rn_ok(status)) status = bring_all_back(b, first, graph->nodes.count);
  for (int i = 0; rn_ok(status) && i < active->count; ++i)
    status = close_var(here, active->merges[i], active->dxs[i]);
  if (rn_ok(status)) status = close_counter(here, "Sub");
  if (rn_ok(status)) status = close_counter(&b->forward, "AddV2");
  return status;
}

rn_status_t rn_loop_gradients(rn_graph_t* graph, rn_scope_t* scope, rn_arena_t* arena,
                              const rn_loop_t* loop, const bool* is_active, const rn_edge_t* dexits,
                              rn_edge_t* out_denters) {
  rn_str_t frame;
  active_t active;
  // No other frame is called so: node numbers grow.
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &frame, "%.*s_gradient_%zu", RN_STR_ARGS(loop->frame),
                                     graph->nodes.count));
  RN_RETURN_IF_ERROR(active_vars(arena, loop, is_active, &active));
  backward_t b = {.first_new = (int32_t)graph->nodes.count,
                  .forward = {.graph = graph, .scope = scope, .frame = loop->frame.data},
                  .backward = {.graph = graph, .scope = scope, .frame = frame.data}};
  b.forward.merge = merge_of(&b.forward, rn_const_int32(scope, 0));
  hang_counter(&b.forward, (rn_edge_t){loop->cond, 0});
  open_backward(&b, loop, is_active, dexits, &active, out_denters);
  rn_status_t status = scope_status(scope);
  if (rn_ok(status)) status = fill_backward(&b, loop, &active);
  rn_vec_free(&b.forward.waits, graph->allocator);
  rn_vec_free(&b.backward.waits, graph->allocator);
  rn_vec_free(&b.popped, graph->allocator);
  return status;
}
