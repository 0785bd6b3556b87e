// Copies the body of a function into the graph in place of a call: rn_calls_splice of calls.h.
#include "framework/internal_ops.h"
#include "step/calls.h"

// State while one body is copied into the IR.
typedef struct splice_t {
  rn_calls_t* calls;
  int32_t call;    // the calling node
  int32_t number;  // of the call in calls->calls
  const rn_function_body_t* body;
  rn_ir_edge_t* args;  // the arguments
  int32_t* index;      // body node id -> IR node; -1 if not needed, -2 if to be copied
  int32_t start;       // the node that must run before the body; -1 if none
  bool is_careful;     // the call may be dead, and then all of the body must be
  bool fits;           // the arguments have the shapes that the body was inferred for
  bool is_pruned;      // side effects that nothing needs do not run
  int32_t* loops;      // by body node id: loop nesting depth; NULL if the body has no loops
  int32_t* branches;   // by body node id: conditionals around the node; NULL if the body has none
  RN_VEC(int32_t) effects;
  RN_VEC(rn_node_t*) order;
} splice_t;

// Whether a node must run even if its outputs are unused.
static bool has_effects(const rn_node_t* node) {
  return node->op->flags & RN_OP_STATEFUL && node->op->role != RN_ROLE_ARG &&
         node->op->role != RN_ROLE_PLACEHOLDER;
}

static rn_status_t need(splice_t* splice, rn_node_t* node) {
  if (node->op->role == RN_ROLE_ARG || splice->index[node->id] != -1) return RN_OK;
  splice->index[node->id] = -2;
  return rn_vec_push(&splice->order, splice->calls->ir->allocator, node);
}

// Finds everything that results, control results and side effects need.
static rn_status_t find_needed(splice_t* splice) {
  const rn_function_body_t* body = splice->body;
  for (int32_t i = 0; i < body->result_count; ++i)
    RN_RETURN_IF_ERROR(need(splice, body->results[i].node));
  for (int32_t i = 0; i < body->control_count; ++i)
    RN_RETURN_IF_ERROR(need(splice, body->controls[i]));
  for (size_t i = 0; i < body->graph->nodes.count; ++i)
    if (has_effects(body->graph->nodes.items[i]))
      RN_RETURN_IF_ERROR(need(splice, body->graph->nodes.items[i]));
  for (size_t i = 0; i < splice->order.count; ++i) {
    const rn_node_t* node = splice->order.items[i];
    for (int32_t k = 0; k < node->input_count; ++k)
      RN_RETURN_IF_ERROR(need(splice, node->inputs[k].node));
    for (size_t k = 0; k < node->controls.count; ++k)
      RN_RETURN_IF_ERROR(need(splice, node->controls.items[k]));
  }
  return RN_OK;
}

// Renames colocation constraints "loc:@node", which name nodes of the body.
static rn_status_t rename_places(splice_t* splice, const rn_attr_value_t* from,
                                 rn_attr_value_t* out) {
  rn_ir_t* ir = splice->calls->ir;
  rn_str_t prefix = RN_STR("loc:@");
  rn_str_t* places = NULL;
  *out = *from;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)from->count, &places));
  for (int32_t i = 0; i < from->count; ++i) {
    places[i] = from->list_s[i];
    if (!rn_str_starts_with(places[i], prefix)) continue;
    rn_str_t node = rn_str_n(places[i].data + prefix.size, places[i].size - prefix.size);
    RN_RETURN_IF_ERROR(rn_arena_printf(
        &ir->arena, &places[i], "loc:@%.*s/%.*s",
        RN_STR_ARGS(rn_ir_node(splice->calls->ir, splice->call)->name), RN_STR_ARGS(node)));
  }
  out->list_s = places;
  return RN_OK;
}

static rn_status_t copy_extras(splice_t* splice, const rn_node_t* from, rn_ir_node_t* node) {
  rn_attr_t* extras = NULL;
  node->extra_count = from->extra_count;
  node->extras = from->extras;
  for (int32_t i = 0; i < from->extra_count; ++i) {
    const rn_attr_value_t* value = &from->extras[i].value;
    bool is_class = rn_str_is(from->extras[i].name, "_class") && value->is_list &&
                    value->kind == RN_ATTR_STRING;
    if (!is_class) continue;
    RN_RETURN_IF_ERROR(
        RN_ARENA_ARRAY(&splice->calls->ir->arena, (size_t)from->extra_count, &extras));
    for (int32_t k = 0; k < from->extra_count; ++k) extras[k] = from->extras[k];
    RN_RETURN_IF_ERROR(rename_places(splice, value, &extras[i].value));
    node->extras = extras;
  }
  return RN_OK;
}

// Makes frame names unique: two calls of one function have two separate loops.
static rn_status_t rename_frame(splice_t* splice, rn_ir_node_t* node) {
  rn_ir_t* ir = splice->calls->ir;
  int index = rn_op_attr_index(node->op, RN_STR("frame_name"));
  if (index < 0) return RN_OK;
  rn_attr_t given[] = {{.name = RN_STR("frame_name")}, RN_ATTRS_END};
  RN_RETURN_IF_ERROR(rn_arena_printf(&ir->arena, &given[0].value.s, "%.*s/%.*s",
                                     RN_STR_ARGS(rn_ir_node(ir, splice->call)->name),
                                     RN_STR_ARGS(node->attrs[index].s)));
  return rn_ir_make_attrs(ir, node->op, node, given, &node->attrs);
}

static rn_status_t add_node(splice_t* splice, rn_node_t* from) {
  RN_RETURN_IF_ERROR(rn_node_check_attrs(from));
  rn_calls_t* calls = splice->calls;
  rn_ir_t* ir = calls->ir;
  const rn_ir_node_t* call = rn_ir_node(calls->ir, splice->call);
  rn_ir_node_t node = {
      .op = from->op,
      .attrs = from->attrs,
      .requested_device = from->device.size ? from->device : call->requested_device,
      .feed = -1,
      .input_count = from->input_count,
      .output_count = from->output_count};
  RN_RETURN_IF_ERROR(rn_arena_printf(&ir->arena, &node.name, "%.*s/%.*s", RN_STR_ARGS(call->name),
                                     RN_STR_ARGS(from->name)));
  RN_RETURN_IF_ERROR(copy_extras(splice, from, &node));
  if (from->op->role == RN_ROLE_ENTER) RN_RETURN_IF_ERROR(rename_frame(splice, &node));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)from->input_count, &node.inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, from->controls.count + 1, &node.controls));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)from->output_count, &node.types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)from->output_count, &node.shapes));
  for (int32_t i = 0; i < from->output_count; ++i) {
    node.types[i] = from->outputs[i].dtype;
    node.shapes[i] =
        splice->fits || from->input_count == 0 ? from->outputs[i].shape : RN_SHAPE_UNKNOWN;
  }
  node.constant = rn_node_constant(from);
  calls->can_be_dead |= rn_is_branching(from->op->role);
  rn_call_note_t note = {.call = splice->number, .end = -1, .is_pruned = splice->is_pruned};
  RN_RETURN_IF_ERROR(rn_calls_note(calls, note));
  return rn_ir_add(ir, &node, &splice->index[from->id]);
}

static rn_ir_edge_t mapped(const splice_t* splice, rn_edge_t edge) {
  if (edge.node->op->role != RN_ROLE_ARG)
    return (rn_ir_edge_t){splice->index[edge.node->id], edge.index};
  const rn_attr_value_t* index = rn_node_attr(edge.node, RN_STR("index"));
  return splice->args[index->i];
}

static bool is_call(const rn_node_t* node) {
  return node->op->role >= RN_ROLE_CALL && node->op->role <= RN_ROLE_GRADIENT;
}

// The loop nesting depth of the outputs of |node|.
static int32_t loops_behind(const splice_t* splice, const rn_node_t* node) {
  int role = node->op->role;
  return splice->loops[node->id] + (role == RN_ROLE_ENTER) - (role == RN_ROLE_EXIT);
}

static rn_status_t count_loops(splice_t* splice) {
  bool has_loops = false;
  for (size_t i = 0; i < splice->order.count; ++i)
    has_loops |= splice->order.items[i]->op->role == RN_ROLE_ENTER;
  if (!has_loops) return RN_OK;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&splice->calls->ir->arena, splice->body->graph->nodes.count, &splice->loops));
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (size_t i = splice->order.count;
         i-- > 0;) {  // inputs of a node mostly come later in this order
      const rn_node_t* node = splice->order.items[i];
      int32_t most = splice->loops[node->id];
      for (int32_t k = 0; k < node->input_count; ++k)
        if (loops_behind(splice, node->inputs[k].node) > most)
          most = loops_behind(splice, node->inputs[k].node);
      for (size_t k = 0; k < node->controls.count; ++k)
        if (loops_behind(splice, node->controls.items[k]) > most)
          most = loops_behind(splice, node->controls.items[k]);
      is_changed |= most != splice->loops[node->id];
      splice->loops[node->id] = most;
    }
  }
  return RN_OK;
}

// The conditionals around the outputs of |node|.
static int32_t branches_behind(const splice_t* splice, const rn_node_t* node) {
  return splice->branches[node->id] + (node->op->role == RN_ROLE_SWITCH);
}

// The conditionals around |node|, as far as its inputs tell.
static int32_t branches_around(const splice_t* splice, const rn_node_t* node) {
  int32_t most = 0;
  bool is_loop = false;
  for (int32_t k = 0; k < node->input_count; ++k) {
    const rn_node_t* from = node->inputs[k].node;
    bool is_back = from->op->role == RN_ROLE_NEXT_ITERATION;
    is_loop |= is_back;
    if (!is_back && branches_behind(splice, from) > most) most = branches_behind(splice, from);
  }
  bool ends = node->op->role == RN_ROLE_EXIT || (node->op->role == RN_ROLE_MERGE && !is_loop);
  most -= ends && most > 0;
  for (size_t k = 0; k < node->controls.count; ++k)
    if (splice->branches[node->controls.items[k]->id] > most)
      most = splice->branches[node->controls.items[k]->id];
  return most;
}

static rn_status_t count_branches(splice_t* splice) {
  bool has_branches = false;
  for (size_t i = 0; i < splice->order.count; ++i)
    has_branches |= splice->order.items[i]->op->role == RN_ROLE_SWITCH;
  if (!has_branches) return RN_OK;
  size_t count = splice->body->graph->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&splice->calls->ir->arena, count, &splice->branches));
  bool is_changed = true;
  for (size_t round = 0; is_changed && round < count; ++round) {
    is_changed = false;
    for (size_t i = splice->order.count; i-- > 0;) {
      const rn_node_t* node = splice->order.items[i];
      int32_t most = branches_around(splice, node);
      is_changed |= most > splice->branches[node->id];
      if (most > splice->branches[node->id]) splice->branches[node->id] = most;
    }
  }
  return RN_OK;
}

// Whether |node| is an entrance or exit of a loop of the body. Control edges cannot cross a loop's
// boundary, so entrances wait on behalf of the loop, and other nodes wait for its exits.
static bool is_gate(const splice_t* splice, const rn_node_t* node, rn_op_role_t role) {
  return splice->loops && node->op->role == role &&
         splice->loops[node->id] == (role == RN_ROLE_EXIT);
}

static rn_status_t link_node(splice_t* splice, const rn_node_t* from) {
  rn_calls_t* calls = splice->calls;
  rn_ir_node_t* node = rn_ir_node(calls->ir, splice->index[from->id]);
  for (int32_t i = 0; i < from->input_count; ++i) node->inputs[i] = mapped(splice, from->inputs[i]);
  for (size_t i = 0; i < from->controls.count; ++i) {
    const rn_node_t* control = from->controls.items[i];
    if (control->op->role == RN_ROLE_ARG) continue;
    node->controls[node->control_count++] = splice->index[control->id];
  }
  bool is_loose = from->input_count == 0 && node->control_count == 0;
  bool is_inside = splice->loops && splice->loops[from->id] > 0;
  bool waits =
      !is_inside && (has_effects(from) || is_call(from) || (is_loose && splice->is_careful) ||
                     is_gate(splice, from, RN_ROLE_ENTER));
  if (splice->start >= 0 && waits) node->controls[node->control_count++] = splice->start;
  rn_calls_note_controls(calls, node);
  if (has_effects(from) && !splice->is_pruned)
    RN_RETURN_IF_ERROR(rn_vec_push(&calls->targets, calls->ir->allocator, splice->index[from->id]));
  // The end of the call cannot wait for a node that another branch leaves dead. If such a side
  // effect is in order, a result or a control result of the function waits for it.
  if (splice->branches && splice->branches[from->id] > 0) return RN_OK;
  bool is_awaited =
      is_inside ? is_gate(splice, from, RN_ROLE_EXIT) : has_effects(from) || is_call(from);
  if (!is_awaited) return RN_OK;
  return rn_vec_push(&splice->effects, calls->ir->allocator, splice->index[from->id]);
}

// Makes the node that the body waits for. If the call may be dead, every argument passes through an
// Identity that is dead when the call is, so everything that depends on it is dead too.
static rn_status_t make_start(splice_t* splice) {
  rn_calls_t* calls = splice->calls;
  rn_ir_t* ir = calls->ir;
  rn_ir_node_t call = *rn_ir_node(calls->ir, splice->call);
  splice->start = -1;
  splice->is_careful = calls->can_be_dead;
  RN_RETURN_IF_ERROR(rn_calls_copy_edges(ir, call.inputs, call.input_count, &splice->args));
  int32_t* waits = NULL;
  int32_t count = call.control_count;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&ir->arena, (size_t)(call.control_count + call.input_count), &waits));
  for (int32_t i = 0; i < call.control_count; ++i) waits[i] = call.controls[i];
  bool needs_identities = splice->is_careful && !calls->notes.items[splice->call].is_pivoted;
  for (int32_t i = 0; needs_identities && i < call.input_count; ++i) {
    RN_RETURN_IF_ERROR(rn_calls_identity(calls, splice->call, "input", i, call.inputs[i],
                                         call.controls, call.control_count, &waits[count]));
    splice->args[i] = (rn_ir_edge_t){waits[count++], 0};
  }
  if (count == 0) return RN_OK;
  splice->start = waits[0];
  if (count == 1) return RN_OK;
  return rn_calls_no_op(calls, splice->call, "input_control_node", waits, count, &splice->start);
}

// Makes the node that runs when the call is over: after all side effects, control results and
// results.
static rn_status_t make_end(splice_t* splice, int32_t* out) {
  rn_calls_t* calls = splice->calls;
  const rn_function_body_t* body = splice->body;
  size_t count = splice->effects.count + (size_t)body->control_count + (size_t)body->result_count;
  int32_t* waits = NULL;
  int32_t total = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&calls->ir->arena, count + 1, &waits));
  for (size_t i = 0; i < splice->effects.count; ++i) waits[total++] = splice->effects.items[i];
  for (int32_t i = 0; i < body->control_count; ++i)
    waits[total++] = splice->index[body->controls[i]->id];
  for (int32_t i = 0; i < body->result_count; ++i) {
    int32_t source = mapped(splice, body->results[i]).node;
    // A control edge from a Switch does not tell which branch it took.
    if (rn_ir_node(calls->ir, source)->op->role != RN_ROLE_SWITCH) waits[total++] = source;
  }
  if (splice->start >= 0) waits[total++] = splice->start;
  return rn_calls_no_op(calls, splice->call, "output_control_node", waits, total, out);
}

// Whether the arguments have the shapes that the function declares; if not, shapes in the body are
// inferred again.
static bool has_declared_shapes(const splice_t* splice) {
  const rn_ir_node_t* call = rn_ir_node(splice->calls->ir, splice->call);
  for (int32_t i = 0; i < splice->body->arg_count; ++i) {
    rn_ir_edge_t input = call->inputs[i];
    rn_shape_t shape = rn_ir_node(splice->calls->ir, input.node)->shapes[input.output];
    if (!rn_ir_shape_implies(shape, splice->body->args[i]->outputs[0].shape)) return false;
  }
  return true;
}

static rn_status_t copy_body(splice_t* splice) {
  rn_calls_t* calls = splice->calls;
  const rn_function_body_t* body = splice->body;
  rn_ir_t* ir = calls->ir;
  splice->fits = has_declared_shapes(splice);
  size_t nodes = body->graph->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, nodes, &splice->index));
  for (size_t i = 0; i < nodes; ++i) splice->index[i] = -1;
  RN_RETURN_IF_ERROR(find_needed(splice));
  RN_RETURN_IF_ERROR(count_loops(splice));
  RN_RETURN_IF_ERROR(count_branches(splice));
  RN_RETURN_IF_ERROR(make_start(splice));
  for (size_t i = 0; i < splice->order.count; ++i)
    RN_RETURN_IF_ERROR(add_node(splice, splice->order.items[i]));
  for (size_t i = 0; i < splice->order.count; ++i)
    RN_RETURN_IF_ERROR(link_node(splice, splice->order.items[i]));
  for (int32_t i = 0; splice->is_pruned && i < body->control_count; ++i)
    RN_RETURN_IF_ERROR(
        rn_vec_push(&calls->targets, ir->allocator, splice->index[body->controls[i]->id]));
  rn_ir_edge_t* results = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)body->result_count, &results));
  for (int32_t i = 0; i < body->result_count; ++i) {
    results[i] = mapped(splice, body->results[i]);
    // A result that does not depend on the start node must still not be visible before the call
    // runs.
    const rn_node_t* source = body->results[i].node;
    bool is_early =
        splice->start >= 0 && !splice->is_careful && !has_effects(source) && !is_call(source);
    if (!is_early) continue;
    int32_t late;
    RN_RETURN_IF_ERROR(
        rn_calls_identity(calls, splice->call, "output", i, results[i], &splice->start, 1, &late));
    results[i] = (rn_ir_edge_t){late, 0};
  }
  int32_t end = -1;
  if (calls->notes.items[splice->call].is_awaited) RN_RETURN_IF_ERROR(make_end(splice, &end));
  rn_calls_replace(calls, splice->call, results, end);
  return RN_OK;
}

rn_status_t rn_calls_splice(rn_calls_t* calls, int32_t index, const rn_function_body_t* body) {
  rn_expanded_call_t call = {calls->notes.items[index].call, body};
  RN_RETURN_IF_ERROR(rn_vec_push(&calls->calls, calls->ir->allocator, call));
  splice_t splice = {.calls = calls,
                     .call = index,
                     .number = (int32_t)calls->calls.count - 1,
                     .body = body,
                     .is_pruned = calls->notes.items[index].is_pruned};
  rn_status_t status = copy_body(&splice);
  rn_vec_free(&splice.effects, calls->ir->allocator);
  rn_vec_free(&splice.order, calls->ir->allocator);
  return status;
}
