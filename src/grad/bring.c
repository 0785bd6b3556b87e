// Brings values of the forward body into the backward body: on stacks, or, if no iteration changes
// them, around the loop.
#include "grad/backward.h"
#include "runnel/ops.h"

static void fail(rn_level_t* level, rn_status_t status) {
  if (!rn_ok(status)) rn_scope_fail(level->here, status);
}

void rn_backward_note_forward(rn_level_t* level, rn_node_t* node, rn_while_loop_t* loop) {
  rn_note_t* note = node ? rn_walk_note(level, node) : NULL;
  if (!note) return;
  note->is_forward = true;
  note->loop = loop;
}

rn_edge_t rn_backward_enter(rn_scope_t* scope, rn_edge_t value, const rn_backward_t* b,
                            rn_str_t frame, bool is_constant) {
  return rn_Enter(scope, value, frame.data, .is_constant = is_constant,
                  .parallel_iterations = RN_SET(b->loop->parallel_iterations));
}

rn_edge_t rn_backward_handle(rn_level_t* level, rn_edge_t handle, bool is_forward_side) {
  rn_backward_t* b = level->backward;
  if (!b) return handle;
  handle = rn_backward_handle(level->outer, handle, is_forward_side);
  rn_scope_t* outside = is_forward_side ? level->outer->there : level->outer->here;
  return rn_backward_enter(outside, handle, b, is_forward_side ? b->loop->frame : b->frame, true);
}

rn_edge_t rn_backward_token(rn_level_t* level, const rn_guard_t* guard) {
  if (!guard) return level->backward->backward.pivot;
  if (guard->token.node) return guard->token;
  rn_edge_t before = rn_backward_token(level, guard->parent);
  rn_Switch_out_t out = rn_Switch(level->here, before, rn_backward_bring(level, guard->pred));
  rn_edge_t alive = guard->branch ? out.output_true : out.output_false;
  ((rn_guard_t*)guard)->token = rn_Identity(level->here, alive);
  rn_guard_set(level, guard->token.node, guard);
  return guard->token;
}

rn_status_t rn_backward_wait(rn_level_t* level, rn_counter_t* counter, rn_node_t* node,
                             const rn_guard_t* guard) {
  rn_nodes_t* list = guard ? &counter->guarded : &counter->waits;
  return node ? rn_vec_push(list, level->walk->graph->allocator, node) : RN_OK;
}

static bool swaps(const rn_level_t* level) {
  return level->backward->loop->swaps_memory || level->walk->options->swap_memory;
}

static rn_edge_t push_and_pop(rn_level_t* level, rn_edge_t from) {
  rn_backward_t* b = level->backward;
  rn_level_t* first = level;
  while (first->outer) first = first->outer;
  int dtype = rn_edge_dtype(from);
  const rn_guard_t* guard = rn_guard_of(level, from);
  rn_edge_t handle = rn_StackV2(first->here, rn_const_int32(first->here, -1), dtype);

  rn_edge_t inside = rn_backward_handle(level, handle, true);
  rn_scope_add_control(b->there, b->forward.pivot.node);
  rn_edge_t push = rn_StackPushV2(b->there, inside, from, .swap_memory = swaps(level));
  rn_scope_clear_controls(b->there);
  rn_backward_note_forward(level, push.node, b->loop);

  inside = rn_backward_handle(level, handle, false);
  rn_edge_t token = rn_backward_token(level, guard);
  rn_scope_add_control(b->here, token.node);
  rn_edge_t pop = rn_StackPopV2(b->here, inside, dtype);
  rn_scope_clear_controls(b->here);
  if (!pop.node) return RN_NO_EDGE;
  fail(level, rn_graph_set_shape(level->walk->graph, pop, rn_walk_shape(level->walk, from)));
  fail(level, rn_backward_wait(level, &b->forward, push.node, guard));
  fail(level, rn_backward_wait(level, &b->backward, pop.node, guard));
  rn_guard_set(level, pop.node, guard);
  return pop;
}

// Values that are the same in every iteration.

static bool may_be_hoisted(const rn_node_t* node) {
  return node->op->role == RN_ROLE_PLAIN && !(node->op->flags & RN_OP_STATEFUL) &&
         node->input_count > 0 && node->controls.count == 0;
}

const rn_while_loop_var_t* rn_backward_unchanged(const rn_while_loop_t* loop,
                                                 const rn_node_t* node) {
  for (size_t i = 0; i < loop->vars.count; ++i) {
    const rn_while_loop_var_t* var = &loop->vars.items[i];
    if (var->switch_ != node && var->merge != node) continue;
    rn_edge_t from = var->next->inputs[0];
    while (from.node->op->role == RN_ROLE_IDENTITY && from.node->controls.count == 0)
      from = from.node->inputs[0];
    return var->switch_ && from.node == var->switch_ ? var : NULL;
  }
  return NULL;
}

static bool is_invariant(rn_level_t* level, const rn_node_t* node) {
  const rn_walk_t* walk = level->walk;
  if (rn_walk_frame(walk, node) != level->backward->loop) return false;
  if (node->op->role == RN_ROLE_ENTER) {
    const rn_attr_value_t* constant = rn_node_attr(node, RN_STR("is_constant"));
    return constant && constant->b;
  }
  if (rn_while_loop_is_switch(node) || rn_while_loop_is_merge(node))
    return rn_backward_unchanged(level->backward->loop, node) != NULL;
  if (node->op->role == RN_ROLE_CONSTANT)
    return rn_dtype_is_plain(node->outputs[0].dtype) &&
           rn_guard_of(level, (rn_edge_t){(rn_node_t*)node, 0}) == NULL;
  bool is_identity = node->op->role == RN_ROLE_IDENTITY && node->controls.count == 0;
  if (!is_identity && !may_be_hoisted(node)) return false;
  rn_note_t* note = rn_walk_note(level, node);
  if (!note) return false;
  if (note->invariance) return note->invariance == 2;
  note->invariance = 1;
  bool all = true;
  for (int32_t i = 0; all && i < node->input_count; ++i)
    all = is_invariant(level, node->inputs[i].node);
  note = rn_walk_note(level, node);
  if (note && all) note->invariance = 2;
  return all;
}

// A GraphDef may contain a placeholder attribute, or declare one type and hold a value of another.
static rn_status_t check_copy(const rn_node_t* node) {
  RN_RETURN_IF_ERROR(rn_node_check_attrs(node));
  if (node->op->role != RN_ROLE_CONSTANT) return RN_OK;
  const rn_tensor_t* value = rn_node_attr(node, RN_STR("value"))->tensor;
  rn_dtype_t declared = node->outputs[0].dtype, dtype = value ? value->dtype : RN_INVALID;
  if (dtype == declared) return RN_OK;
  return rn_invalid_argument("Type mismatch between value (%s) and dtype (%s) of '%s'",
                             rn_dtype_name(dtype), rn_dtype_name(declared), node->name.data);
}

static rn_edge_t copy_constant(rn_scope_t* scope, const rn_node_t* node) {
  const rn_tensor_t* value = rn_node_attr(node, RN_STR("value"))->tensor;
  return rn_const(scope, value->dtype, rn_tensor_dims(value), value->rank, value->data);
}

// Copies |node|, with these inputs.
static rn_node_t* clone(rn_scope_t* scope, const rn_node_t* node, const rn_edge_t* inputs) {
  rn_op_begin(scope, node->op->name);
  for (int32_t i = 0, at = 0; i < node->op->input_count; ++i) {
    const rn_arg_def_t* arg = &node->op->inputs[i];
    int32_t length = rn_arg_length(arg, node->attrs);
    bool is_list = arg->number_attr >= 0 || arg->type_list_attr >= 0;
    if (is_list)
      rn_op_input_list(scope, inputs + at, length);
    else
      rn_op_input(scope, inputs[at]);
    at += length;
  }
  for (int i = 0; i < node->op->attr_count; ++i) {
    rn_attr_value_t value = node->attrs[i];
    if (value.kind == RN_ATTR_TENSOR && !value.is_list) continue;  // only constants have one
    rn_scope_add_attr(scope, node->op->attrs[i].name, &value);
  }
  return rn_op_finish(scope);
}

// Computes an invariant of the loop in the enclosing frame.
static rn_edge_t hoist(rn_level_t* level, rn_edge_t from) {
  rn_level_t* outer = level->outer;
  rn_node_t* node = from.node;
  rn_note_t* note = rn_walk_note(level, node);
  if (!note) return RN_NO_EDGE;
  rn_status_t sound = check_copy(node);
  if (!rn_ok(sound)) {
    fail(level, sound);
    return RN_NO_EDGE;
  }
  if (node->op->role == RN_ROLE_ENTER) return node->inputs[0];
  if (rn_while_loop_is_switch(node) || rn_while_loop_is_merge(node))
    return rn_backward_unchanged(level->backward->loop, node)->enter->inputs[0];
  if (node->op->role == RN_ROLE_IDENTITY) return hoist(level, node->inputs[0]);
  if (node->op->role == RN_ROLE_CONSTANT) return copy_constant(outer->scope, node);
  rn_edge_t* inputs = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&level->walk->arena, (size_t)node->input_count, &inputs);
  if (!rn_ok(status)) {
    fail(level, status);
    return RN_NO_EDGE;
  }
  for (int32_t i = 0; i < node->input_count; ++i) inputs[i] = hoist(level, node->inputs[i]);
  return (rn_edge_t){clone(outer->scope, node, inputs), from.index};
}

// Skips Identity nodes, so that one value is not kept twice.
static rn_edge_t without_identities(const rn_level_t* level, rn_edge_t from) {
  const rn_walk_t* walk = level->walk;
  while ((size_t)from.node->id < walk->node_count && from.node->op->role == RN_ROLE_IDENTITY &&
         from.node->input_count == 1 && from.node->controls.count == 0 &&
         !rn_dtype_is_ref(from.node->inputs[0].node->outputs[from.node->inputs[0].index].dtype))
    from = from.node->inputs[0];
  return from;
}

static rn_edge_t make_copy(rn_level_t* level, rn_edge_t from) {
  rn_backward_t* b = level->backward;
  rn_node_t* node = from.node;
  bool is_plain = rn_dtype_is_plain(rn_edge_dtype(from));
  if (node->op->role == RN_ROLE_CONSTANT && is_plain) {
    rn_status_t sound = check_copy(node);
    if (!rn_ok(sound)) {
      fail(level, sound);
      return RN_NO_EDGE;
    }
    rn_scope_add_control(b->here, rn_backward_token(level, rn_guard_of(level, from)).node);
    rn_edge_t copy = copy_constant(b->here, node);
    rn_scope_clear_controls(b->here);
    return copy;
  }
  bool is_number = rn_while_loop_is_merge(node) && from.index == 1;  // of an input, not a value
  if (!is_number && is_invariant(level, node))
    return rn_backward_enter(level->outer->scope, hoist(level, from), b, b->frame, true);
  bool is_switch = node->op->role == RN_ROLE_SWITCH && !rn_while_loop_is_switch(node);
  if (is_switch && is_invariant(level, node->inputs[0].node)) {
    rn_edge_t value = rn_backward_bring(level, node->inputs[0]),
              pred = rn_backward_bring(level, node->inputs[1]);
    rn_Switch_out_t out = rn_Switch(b->here, value, pred);
    return from.index ? out.output_true : out.output_false;
  }
  return push_and_pop(level, from);
}

rn_edge_t rn_backward_bring(void* arg, rn_edge_t from) {
  rn_level_t* level = arg;
  rn_walk_t* walk = level->walk;
  if (!level->backward || !from.node || !rn_walk_is_forward(walk, from.node)) return from;
  from = without_identities(level, from);
  rn_while_loop_t* loop = rn_walk_frame(walk, from.node);
  if (loop != level->backward->loop) {
    fail(level,
         rn_invalid_argument("The gradient of loop '%.*s' needs '%s', which is not in it",
                             RN_STR_ARGS(level->backward->loop->frame), from.node->name.data));
    return RN_NO_EDGE;
  }
  rn_note_t* note = rn_walk_note(level, from.node);
  if (!note) return RN_NO_EDGE;
  if (note->brought && note->brought[from.index].node) return note->brought[from.index];
  rn_edge_t copy = make_copy(level, from);
  note = rn_walk_note(level, from.node);
  if (!note || !copy.node) return RN_NO_EDGE;
  if (!note->brought) {
    rn_status_t status =
        RN_ARENA_ARRAY(&walk->arena, (size_t)from.node->output_count, &note->brought);
    if (!rn_ok(status)) {
      fail(level, status);
      return copy;
    }
  }
  note->brought[from.index] = copy;
  note = copy.node->output_count == 1 ? rn_walk_note(level, copy.node) : NULL;
  if (note) note->origin = from;
  return copy;
}

bool rn_backward_has(rn_level_t* level, rn_edge_t edge) {
  if (!level->backward || !edge.node || !rn_walk_is_forward(level->walk, edge.node)) return true;
  edge = without_identities(level, edge);
  const rn_walk_t* walk = level->walk;
  size_t id = (size_t)edge.node->id;
  bool is_kept = id < walk->notes.count && walk->notes.items[id].brought &&
                 walk->notes.items[id].brought[edge.index].node;
  return is_kept || is_invariant(level, edge.node);
}

rn_edge_t rn_backward_shape_of(void* arg, rn_edge_t like, int dtype) {
  rn_level_t* level = arg;
  if (rn_backward_has(level, like)) return rn_Shape(level->scope, like, .out_type = dtype);
  rn_edge_t shape = rn_Shape(level->backward->there, like, .out_type = dtype);
  rn_backward_note_forward(level, shape.node, level->backward->loop);
  return shape;
}

// For a matmul a b' whose b is loop-invariant: takes the rows of b that produce the wanted columns,
// outside the loop.
rn_edge_t rn_backward_columns_of(void* arg, rn_edge_t matrix, int64_t first, int64_t count) {
  rn_level_t* level = arg;
  rn_backward_t* b = level->backward;
  const rn_node_t* product = matrix.node;
  if ((size_t)product->id < level->walk->node_count || strcmp(product->op->name, "MatMul") != 0)
    return RN_NO_EDGE;
  const rn_attr_value_t* is_turned[2] = {rn_node_attr(product, RN_STR("transpose_a")),
                                         rn_node_attr(product, RN_STR("transpose_b"))};
  const rn_node_t* factor = product->inputs[1].node;
  const rn_attr_value_t* held = rn_node_attr(factor, RN_STR("is_constant"));
  bool fits = !is_turned[0]->b && is_turned[1]->b && factor->op->role == RN_ROLE_ENTER && held &&
              held->b && product->outputs[0].consumers.count == 0;
  if (!fits) return RN_NO_EDGE;
  int32_t from[2] = {(int32_t)first, 0}, size[2] = {(int32_t)count, -1};
  rn_scope_t* outside = level->outer->scope;
  rn_edge_t rows = rn_Slice(outside, factor->inputs[0], rn_const_int32_list(outside, from, 2),
                            rn_const_int32_list(outside, size, 2));
  rn_edge_t inside = rn_backward_enter(outside, rows, b, b->frame, true);
  return rn_MatMul(b->here, product->inputs[0], inside, .transpose_b = true);
}
