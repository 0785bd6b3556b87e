// Replaces calls by the bodies of their functions. See rn_pass_inline_calls in ir.h.
//
// The pass visits nodes in order and appends the nodes of bodies, so it reaches calls within bodies
// later. For each call it notes which edges replace its outputs; it redirects all uses once, at the
// end.
#include <inttypes.h>

#include "framework/internal_ops.h"
#include "step/calls.h"

// Once the graph has grown by this many nodes, and to several times its size, the remaining calls
// stay calls: functions that each call another one twice would double the graph at every level.
#define MAX_GROWTH (1 << 16)
#define MAX_GROWTH_TIMES 8

rn_dtype_t rn_calls_type(const rn_calls_t* calls, rn_ir_edge_t edge) {
  return rn_dtype_base(rn_ir_node(calls->ir, edge.node)->types[edge.output]);
}

static rn_status_t new_note(rn_calls_t* calls, rn_call_note_t note) {
  return rn_vec_push(&calls->notes, calls->ir->allocator, note);
}

static void note_controls(rn_calls_t* calls, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->control_count; ++i)
    calls->notes.items[node->controls[i]].is_awaited = true;
}

static bool is_branching(uint8_t role) {
  return role >= RN_ROLE_SWITCH && role <= RN_ROLE_NEXT_ITERATION;
}

static rn_status_t copy_edges(rn_ir_t* ir, const rn_ir_edge_t* from, int32_t count,
                              rn_ir_edge_t** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count, out));
  for (int32_t i = 0; i < count; ++i) (*out)[i] = from[i];
  return RN_OK;
}

static rn_status_t copy_numbers(rn_ir_t* ir, const int32_t* from, int32_t count, int32_t** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count, out));
  for (int32_t i = 0; i < count; ++i) (*out)[i] = from[i];
  return RN_OK;
}

static rn_status_t fill_new(rn_calls_t* calls, int32_t origin, const rn_calls_new_t* from,
                            rn_ir_node_t* node) {
  rn_ir_t* ir = calls->ir;
  const rn_ir_node_t* source = rn_ir_node(calls->ir, origin);
  *node = (rn_ir_node_t){.op = from->op,
                         .requested_device = source->requested_device,
                         .feed = -1,
                         .input_count = from->input_count,
                         .control_count = from->control_count,
                         .output_count = from->output_count};
  RN_RETURN_IF_ERROR(from->number < 0
                         ? rn_arena_printf(&ir->arena, &node->name, "%.*s/%s",
                                           RN_STR_ARGS(source->name), from->name)
                         : rn_arena_printf(&ir->arena, &node->name, "%.*s/%s_%" PRId32,
                                           RN_STR_ARGS(source->name), from->name, from->number));
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(ir, from->op, NULL, from->given, &node->attrs));
  RN_RETURN_IF_ERROR(copy_edges(ir, from->inputs, from->input_count, &node->inputs));
  RN_RETURN_IF_ERROR(copy_numbers(ir, from->controls, from->control_count, &node->controls));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)from->output_count, &node->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)from->output_count, &node->shapes));
  for (int32_t i = 0; i < from->output_count; ++i) {
    node->types[i] = from->types[i];
    node->shapes[i] = RN_SHAPE_UNKNOWN;
  }
  return RN_OK;
}

rn_status_t rn_calls_add(rn_calls_t* calls, int32_t origin, const rn_calls_new_t* from,
                         int32_t* out) {
  if (!from->op) return rn_internal("The ops that calls are taken apart into are missing");
  rn_ir_node_t node;
  RN_RETURN_IF_ERROR(fill_new(calls, origin, from, &node));
  rn_call_note_t note = calls->notes.items[origin];
  RN_RETURN_IF_ERROR(
      new_note(calls, (rn_call_note_t){.call = note.call, .end = -1, .is_pruned = note.is_pruned}));
  note_controls(calls, &node);
  RN_RETURN_IF_ERROR(rn_ir_add(calls->ir, &node, out));
  RN_ASSERT(calls->notes.count == calls->ir->nodes.count);
  return RN_OK;
}

rn_status_t rn_calls_identity(rn_calls_t* calls, int32_t origin, const char* name, int32_t number,
                              rn_ir_edge_t edge, const int32_t* controls, int32_t control_count,
                              int32_t* out) {
  rn_dtype_t type = rn_calls_type(calls, edge);
  const rn_attr_t given[] = {{RN_STR("T"), {.type = type}}, RN_ATTRS_END};
  rn_calls_new_t identity = {.op = rn_op_identity(),
                             .name = name,
                             .number = number,
                             .given = given,
                             .inputs = &edge,
                             .input_count = 1,
                             .controls = controls,
                             .control_count = control_count,
                             .types = &type,
                             .output_count = 1};
  return rn_calls_add(calls, origin, &identity, out);
}

rn_status_t rn_calls_no_op(rn_calls_t* calls, int32_t origin, const char* name,
                           const int32_t* controls, int32_t control_count, int32_t* out) {
  rn_calls_new_t no_op = {.op = rn_op_no_op(),
                          .name = name,
                          .number = -1,
                          .controls = controls,
                          .control_count = control_count};
  return rn_calls_add(calls, origin, &no_op, out);
}

// Makes |node| a call of |function| with the inputs and outputs that it has.
static rn_status_t become_call(rn_calls_t* calls, rn_ir_node_t* node,
                               const rn_func_attr_t* function, bool is_stateful) {
  rn_dtype_t* in = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&calls->ir->arena, (size_t)node->input_count, &in));
  for (int32_t i = 0; i < node->input_count; ++i) in[i] = rn_calls_type(calls, node->inputs[i]);
  const rn_attr_t given[] = {
      {RN_STR("Tin"), {.count = node->input_count, .list_type = in}},
      {RN_STR("Tout"), {.count = node->output_count, .list_type = node->types}},
      {RN_STR("f"), {.func = function}},
      RN_ATTRS_END,
  };
  node->op = rn_op_call(is_stateful);
  if (!node->op) return rn_internal("The ops that calls are taken apart into are missing");
  return rn_ir_make_attrs(calls->ir, node->op, NULL, given, &node->attrs);
}

rn_status_t rn_calls_call(rn_calls_t* calls, int32_t origin, const char* name, int32_t number,
                          const rn_func_attr_t* function, bool is_stateful,
                          const rn_ir_edge_t* inputs, int32_t input_count, const int32_t* controls,
                          int32_t control_count, const rn_dtype_t* types, int32_t output_count,
                          int32_t* out) {
  rn_calls_new_t call = {.op = rn_op_call(is_stateful),
                         .name = name,
                         .number = number,
                         .inputs = inputs,
                         .input_count = input_count,
                         .controls = controls,
                         .control_count = control_count,
                         .types = types,
                         .output_count = output_count};
  RN_RETURN_IF_ERROR(rn_calls_add(calls, origin, &call, out));
  return become_call(calls, rn_ir_node(calls->ir, *out), function, is_stateful);
}

void rn_calls_replace(rn_calls_t* calls, int32_t index, rn_ir_edge_t* edges, int32_t end) {
  calls->notes.items[index].replacement = edges;
  calls->notes.items[index].end = end;
  rn_ir_node(calls->ir, index)->is_removed = true;
  calls->has_changed = true;
}

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
  calls->can_be_dead |= is_branching(from->op->role);
  rn_call_note_t note = {.call = splice->number, .end = -1, .is_pruned = splice->is_pruned};
  RN_RETURN_IF_ERROR(new_note(calls, note));
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
  note_controls(calls, node);
  if (has_effects(from) && !splice->is_pruned)
    RN_RETURN_IF_ERROR(rn_vec_push(&calls->targets, calls->ir->allocator, splice->index[from->id]));
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
  RN_RETURN_IF_ERROR(copy_edges(ir, call.inputs, call.input_count, &splice->args));
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

static rn_status_t check_call(const rn_calls_t* calls, int32_t index,
                              const rn_function_body_t* body) {
  const rn_ir_node_t* call = rn_ir_node(calls->ir, index);
  rn_str_t name = body->function->name;
  rn_status_t status = RN_OK;
  if (call->input_count != body->arg_count)
    status = rn_invalid_argument("Function '%.*s' takes %d arguments, %d are given",
                                 RN_STR_ARGS(name), body->arg_count, call->input_count);
  else if (call->output_count != body->result_count)
    status = rn_invalid_argument("Function '%.*s' has %d results, %d are expected",
                                 RN_STR_ARGS(name), body->result_count, call->output_count);
  for (int32_t i = 0; rn_ok(status) && i < body->arg_count; ++i) {
    rn_dtype_t wanted = rn_dtype_base(body->args[i]->outputs[0].dtype);
    rn_dtype_t given = rn_calls_type(calls, call->inputs[i]);
    if (wanted != given)
      status = rn_invalid_argument("Expects arg[%d] to be %s but %s is provided", i,
                                   rn_dtype_name(wanted), rn_dtype_name(given));
  }
  for (int32_t i = 0; rn_ok(status) && i < body->result_count; ++i) {
    rn_edge_t result = body->results[i];
    rn_dtype_t given = rn_dtype_base(result.node->outputs[result.index].dtype);
    if (rn_dtype_base(call->types[i]) != given)
      status =
          rn_invalid_argument("Expects ret[%d] to be %s, but the function's is %s", i,
                              rn_dtype_name(rn_dtype_base(call->types[i])), rn_dtype_name(given));
  }
  if (rn_ok(status)) return RN_OK;
  return rn_status_annotate(status, "\n\t [[{{node %.*s}}]]", RN_STR_ARGS(call->name));
}

// The function that a node calls; false if it is not a call.
static rn_status_t called_function(rn_calls_t* calls, const rn_ir_node_t* node,
                                   const rn_func_attr_t** out) {
  *out = NULL;
  if (node->op->role == RN_ROLE_CALL) {
    const rn_attr_value_t* f = rn_ir_attr(node, RN_STR("f"));
    if (f && f->kind == RN_ATTR_FUNC) *out = f->func;
    return RN_OK;
  }
  rn_func_attr_t* function = NULL;
  rn_attr_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&calls->ir->arena, &function));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&calls->ir->arena, (size_t)node->op->attr_count, &attrs));
  for (int a = 0; a < node->op->attr_count; ++a)
    attrs[a] = (rn_attr_t){rn_str(node->op->attrs[a].name), node->attrs[a]};
  *function = (rn_func_attr_t){rn_str(node->op->name), node->op->attr_count, attrs};
  *out = function;
  return RN_OK;
}

static bool is_recursive(const rn_calls_t* calls, int32_t node, const rn_function_body_t* body) {
  for (int32_t c = calls->notes.items[node].call; c >= 0; c = calls->calls.items[c].parent)
    if (calls->calls.items[c].body == body) return true;
  return false;
}

static bool is_too_large(const rn_calls_t* calls, const rn_function_body_t* body) {
  size_t count = calls->ir->nodes.count + body->graph->nodes.count;
  return count > calls->first_count + MAX_GROWTH && count / MAX_GROWTH_TIMES > calls->first_count;
}

static bool stays_call(const rn_calls_t* calls, int32_t index, const rn_function_body_t* body) {
  const rn_ir_node_t* node = rn_ir_node(calls->ir, index);
  const rn_attr_value_t* noinline_attr = rn_ir_attr(node, RN_STR("_noinline"));
  bool asked = noinline_attr && noinline_attr->kind == RN_ATTR_BOOL && noinline_attr->b;
  return calls->options->keeps_calls || asked || body->function->is_noinline ||
         is_too_large(calls, body) || is_recursive(calls, index, body);
}

// Turns a node whose op is a function into an ordinary call.
static rn_status_t keep_call(rn_calls_t* calls, int32_t index, const rn_func_attr_t* function) {
  rn_ir_node_t* node = rn_ir_node(calls->ir, index);
  if (node->op->role == RN_ROLE_CALL) return RN_OK;
  return become_call(calls, node, function, (node->op->flags & RN_OP_STATEFUL) != 0);
}

// Turns a SymbolicGradient into a call of the function that computes the gradient.
static rn_status_t find_gradient(rn_calls_t* calls, int32_t index) {
  rn_ir_t* ir = calls->ir;
  rn_ir_node_t* node = rn_ir_node(calls->ir, index);
  const rn_attr_value_t* f = rn_ir_attr(node, RN_STR("f"));
  rn_func_attr_t* gradient = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&ir->arena, &gradient));
  rn_status_t status = rn_graph_gradient_function(ir->graph, f->func, &gradient->name);
  if (!rn_ok(status))
    return rn_status_annotate(status, "\n\t [[{{node %.*s}}]]", RN_STR_ARGS(node->name));
  return become_call(calls, node, gradient, true);
}

static rn_status_t take_apart(rn_calls_t* calls, int32_t index) {
  const rn_func_attr_t* function = NULL;
  const rn_function_body_t* body = NULL;
  RN_RETURN_IF_ERROR(called_function(calls, rn_ir_node(calls->ir, index), &function));
  if (!function) return RN_OK;
  rn_status_t status = rn_function_body(calls->ir->graph, function, &body);
  if (!rn_ok(status))
    return rn_status_annotate(status, "\n\t [[{{node %.*s}}]]",
                              RN_STR_ARGS(rn_ir_node(calls->ir, index)->name));
  RN_RETURN_IF_ERROR(check_call(calls, index, body));
  if (stays_call(calls, index, body)) return keep_call(calls, index, function);
  rn_expanded_call_t call = {calls->notes.items[index].call, body};
  RN_RETURN_IF_ERROR(rn_vec_push(&calls->calls, calls->ir->allocator, call));
  splice_t splice = {.calls = calls,
                     .call = index,
                     .number = (int32_t)calls->calls.count - 1,
                     .body = body,
                     .is_pruned = calls->notes.items[index].is_pruned};
  status = copy_body(&splice);
  rn_vec_free(&splice.effects, calls->ir->allocator);
  rn_vec_free(&splice.order, calls->ir->allocator);
  return status;
}

// The edge that replaces |edge|, following repeated replacements.
static rn_ir_edge_t resolved(const rn_calls_t* calls, rn_ir_edge_t edge) {
  while (edge.node >= 0 && calls->notes.items[edge.node].replacement)
    edge = calls->notes.items[edge.node].replacement[edge.output];
  return edge;
}

static int32_t resolved_end(const rn_calls_t* calls, int32_t node) {
  while (calls->notes.items[node].replacement && calls->notes.items[node].end >= 0)
    node = calls->notes.items[node].end;
  return node;
}

static void redirect(rn_calls_t* calls) {
  rn_ir_t* ir = calls->ir;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed) continue;
    for (int32_t i = 0; i < node->input_count; ++i)
      node->inputs[i] = resolved(calls, node->inputs[i]);
    for (int32_t i = 0; i < node->control_count; ++i)
      node->controls[i] = resolved_end(calls, node->controls[i]);
  }
  for (int32_t i = 0; i < ir->fetch_count; ++i) ir->fetches[i] = resolved(calls, ir->fetches[i]);
}

static rn_status_t add_targets(rn_calls_t* calls) {
  rn_ir_t* ir = calls->ir;
  size_t count = (size_t)ir->target_count + calls->targets.count;
  int32_t* targets = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &targets));
  for (int32_t i = 0; i < ir->target_count; ++i) targets[i] = resolved_end(calls, ir->targets[i]);
  for (size_t i = 0; i < calls->targets.count; ++i) {
    // The side effects of a call that is a target are targets too.
    int32_t target = calls->targets.items[i];
    if (rn_ir_node(calls->ir, target)->is_removed) {
      if (calls->notes.items[target].end < 0) continue;
      target = resolved_end(calls, target);
    }
    targets[ir->target_count++] = target;
  }
  ir->targets = targets;
  return RN_OK;
}

static rn_status_t run(rn_calls_t* calls) {
  rn_ir_t* ir = calls->ir;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    RN_RETURN_IF_ERROR(new_note(calls, (rn_call_note_t){.call = -1, .end = -1}));
    const rn_ir_node_t* node = &ir->nodes.items[n];
    calls->can_be_dead |= node->feed < 0 && is_branching(node->op->role);
  }
  for (size_t n = 0; n < ir->nodes.count; ++n) note_controls(calls, &ir->nodes.items[n]);
  for (int32_t i = 0; i < ir->target_count; ++i)
    calls->notes.items[ir->targets[i]].is_awaited = true;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->feed >= 0 || node->is_removed) continue;
    if (node->op->role == RN_ROLE_GRADIENT) RN_RETURN_IF_ERROR(find_gradient(calls, (int32_t)n));
    if (node->op->role == RN_ROLE_CALL || node->op->role == RN_ROLE_FUNCTION) {
      RN_RETURN_IF_ERROR(take_apart(calls, (int32_t)n));
    } else if (node->op->role >= RN_ROLE_IF && node->op->role <= RN_ROLE_WHILE) {
      RN_RETURN_IF_ERROR(rn_calls_lower(calls, (int32_t)n));
    }
  }
  if (!calls->has_changed) return RN_OK;
  redirect(calls);
  RN_RETURN_IF_ERROR(add_targets(calls));
  if (calls->options->prunes_branches) RN_RETURN_IF_ERROR(rn_ir_sweep(ir));
  return rn_pass_infer_shapes(ir);
}

static bool has_calls(const rn_ir_t* ir) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    uint8_t role = ir->nodes.items[n].op->role;
    if (ir->nodes.items[n].feed < 0 && role >= RN_ROLE_CALL && role <= RN_ROLE_GRADIENT)
      return true;
  }
  return false;
}

rn_status_t rn_pass_inline_calls(rn_ir_t* ir, const rn_calls_options_t* options) {
  if (!has_calls(ir)) return rn_expand_composites(ir);
  rn_calls_t calls = {.ir = ir, .options = options, .first_count = ir->nodes.count};
  rn_status_t status = run(&calls);
  rn_vec_free(&calls.notes, ir->allocator);
  rn_vec_free(&calls.calls, ir->allocator);
  rn_vec_free(&calls.targets, ir->allocator);
  RN_RETURN_IF_ERROR(status);
  return rn_expand_composites(ir);
}
