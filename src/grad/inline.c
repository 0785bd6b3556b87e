// Opens calls, conditionals and loops: see inline.h.
#include "grad/inline.h"

#include "framework/grad_def.h"
#include "grad/inline_body.h"
#include "graph/edit.h"
#include "runnel/ops.h"

static bool is_symbolic(const rn_node_t* node) {
  return strcmp(node->op->name, "SymbolicGradient") == 0;
}

bool rn_call_is(const rn_node_t* node) {
  switch (node->op->role) {
    case RN_ROLE_CALL:
    case RN_ROLE_FUNCTION:
    case RN_ROLE_IF:
    case RN_ROLE_CASE:
    case RN_ROLE_WHILE:
      return true;
    default:
      return is_symbolic(node);
  }
}

static const rn_func_attr_t* function_attr(const rn_node_t* node, const char* name) {
  const rn_attr_value_t* value = rn_node_attr(node, rn_str(name));
  return value && value->kind == RN_ATTR_FUNC && !value->is_list ? value->func : NULL;
}

// The function that a plain call calls: its attribute, or the op itself with the node's attributes.
static rn_status_t callee_of(rn_arena_t* arena, const rn_node_t* node, rn_func_attr_t* out) {
  if (node->op->role != RN_ROLE_FUNCTION) {
    const rn_func_attr_t* func = function_attr(node, "f");
    if (!func) return rn_invalid_argument("Node '%s' has no function to call", node->name.data);
    *out = *func;
    return RN_OK;
  }
  rn_attr_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)node->op->attr_count, &attrs));
  for (int i = 0; i < node->op->attr_count; ++i)
    attrs[i] = (rn_attr_t){rn_str(node->op->attrs[i].name), node->attrs[i]};
  *out = (rn_func_attr_t){rn_str(node->op->name), node->op->attr_count, attrs};
  return RN_OK;
}

static rn_str_t own_gradient(const rn_node_t* node) {
  rn_str_t name = {0};
  if (node->op->role == RN_ROLE_FUNCTION) name = rn_str(node->op->name);
  if (node->op->role == RN_ROLE_CALL && function_attr(node, "f"))
    name = function_attr(node, "f")->name;
  return name.size ? rn_graph_function_gradient(node->graph, name) : (rn_str_t){0};
}

bool rn_call_must_open(const rn_node_t* node) {
  if (!rn_call_is(node)) return false;
  for (int32_t i = 0; i < node->extra_count; ++i)
    if (rn_str_is(node->extras[i].name, "_gradient_op_type")) return false;
  return own_gradient(node).size == 0;
}

// A node that is alive exactly when the edge is.
static rn_node_t* anchor_at(rn_inline_t* o, rn_edge_t edge) {
  return rn_Identity(o->scope, edge).node;
}

static rn_status_t open_call(rn_inline_t* o, rn_edge_t* out) {
  rn_func_attr_t func;
  RN_RETURN_IF_ERROR(callee_of(&o->arena, o->call, &func));
  return rn_inline_body(o, &func, o->call->inputs, o->call->input_count, o->anchor,
                        o->call->output_count, out);
}

// Calls |then| if |pred| holds, else |otherwise|, with the same arguments. If |otherwise| is NULL,
// |index| chooses one of the branches from |next| on.
typedef struct inline_choice_t {
  const rn_func_attr_t* const* branches;
  int count;
  rn_edge_t index;
} inline_choice_t;

static rn_status_t branch(rn_inline_t* o, const inline_choice_t* choice, int first, rn_edge_t index,
                          const rn_edge_t* args, int arg_count, rn_node_t* anchor, rn_edge_t* out);

static rn_status_t either(rn_inline_t* o, rn_edge_t pred, const rn_func_attr_t* then,
                          const rn_func_attr_t* otherwise, const inline_choice_t* choice, int next,
                          rn_edge_t index, const rn_edge_t* args, int arg_count, rn_edge_t* out) {
  int results = o->call->output_count;
  rn_edge_t *sides[2] = {NULL, NULL}, *given[2] = {NULL, NULL}, indices[2] = {index, index};
  for (int b = 0; b < 2; ++b) {
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)results, &sides[b]));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)arg_count, &given[b]));
  }
  rn_Switch_out_t pivot = rn_Switch(o->scope, pred, pred);
  rn_node_t* anchors[2] = {anchor_at(o, pivot.output_false), anchor_at(o, pivot.output_true)};
  for (int i = 0; i < arg_count; ++i) {
    rn_Switch_out_t parts = rn_Switch(o->scope, args[i], pred);
    given[0][i] = parts.output_false;
    given[1][i] = parts.output_true;
  }
  if (choice) indices[0] = rn_Switch(o->scope, index, pred).output_false;
  RN_RETURN_IF_ERROR(rn_inline_status(o));
  RN_RETURN_IF_ERROR(rn_inline_body(o, then, given[1], arg_count, anchors[1], results, sides[1]));
  if (choice)
    RN_RETURN_IF_ERROR(
        branch(o, choice, next, indices[0], given[0], arg_count, anchors[0], sides[0]));
  else
    RN_RETURN_IF_ERROR(
        rn_inline_body(o, otherwise, given[0], arg_count, anchors[0], results, sides[0]));
  for (int i = 0; i < results; ++i) {
    rn_edge_t pair[2] = {sides[0][i], sides[1][i]};
    if (rn_edge_dtype(pair[0]) != rn_edge_dtype(pair[1]))
      return rn_invalid_argument(
          "The branches of node '%s' (%s) disagree: result %d is %s in one "
          "and %s in the other",
          o->call->name.data, o->call->op->name, i,
          rn_dtype_name((rn_dtype_t)rn_edge_dtype(pair[0])),
          rn_dtype_name((rn_dtype_t)rn_edge_dtype(pair[1])));
    // Not the argument itself: both branches may pass the same one through.
    out[i] = rn_Merge(o->scope, pair, 2).output;
  }
  return rn_inline_status(o);
}

static rn_status_t branch(rn_inline_t* o, const inline_choice_t* choice, int first, rn_edge_t index,
                          const rn_edge_t* args, int arg_count, rn_node_t* anchor, rn_edge_t* out) {
  // The last branch also handles indices out of range.
  if (first == choice->count - 1)
    return rn_inline_body(o, choice->branches[first], args, arg_count, anchor,
                          o->call->output_count, out);
  if (anchor) rn_scope_add_control(o->scope, anchor);
  rn_edge_t number = rn_const_int32(o->scope, first);
  rn_scope_clear_controls(o->scope);
  rn_edge_t pred = rn_Equal(o->scope, index, number);
  return either(o, pred, choice->branches[first], NULL, choice, first + 1, index, args, arg_count,
                out);
}

static rn_status_t open_if(rn_inline_t* o, rn_edge_t* out) {
  const rn_node_t* call = o->call;
  rn_edge_t pred = call->inputs[0];
  if (rn_edge_dtype(pred) != RN_BOOL) {
    rn_op_begin(o->scope, "ToBool");
    rn_op_input(o->scope, pred);
    pred = (rn_edge_t){rn_op_finish(o->scope), 0};
  }
  return either(o, pred, function_attr(call, "then_branch"), function_attr(call, "else_branch"),
                NULL, 0, RN_NO_EDGE, call->inputs + 1, call->input_count - 1, out);
}

static rn_status_t open_case(rn_inline_t* o, rn_edge_t* out) {
  const rn_node_t* call = o->call;
  const rn_attr_value_t* branches = rn_node_attr(call, RN_STR("branches"));
  if (!branches || branches->count < 1)
    return rn_invalid_argument("Node '%s' (%s) has no branches", call->name.data, call->op->name);
  inline_choice_t choice = {branches->list_func, branches->count, call->inputs[0]};
  return branch(o, &choice, 0, call->inputs[0], call->inputs + 1, call->input_count - 1, o->anchor,
                out);
}

// Finds the arguments that the body returns unchanged.
static rn_status_t find_invariants(rn_inline_t* o, const rn_func_attr_t* func, bool* is_invariant) {
  const rn_function_body_t* body = NULL;
  if (!func) return rn_invalid_argument("Node '%s' has no function to call", o->call->name.data);
  RN_RETURN_IF_ERROR(rn_function_body(o->graph, func, &body));
  if (body->result_count != o->call->input_count || body->arg_count != o->call->input_count)
    return rn_invalid_argument(
        "Function '%.*s', the body of loop '%s', has %d arguments and %d "
        "results; the loop has %d variables",
        RN_STR_ARGS(func->name), o->call->name.data, (int)body->arg_count, (int)body->result_count,
        (int)o->call->input_count);
  for (int32_t i = 0; i < body->result_count; ++i) {
    rn_edge_t from = body->results[i];
    while (from.node->op->role == RN_ROLE_IDENTITY && from.node->controls.count == 0)
      from = from.node->inputs[0];
    is_invariant[i] = from.node == body->args[i];
  }
  return RN_OK;
}

// Copies an attribute of the While to the loop's LoopCond.
static void keep_flag(rn_inline_t* o, const char* name) {
  const rn_attr_value_t* value = rn_node_attr(o->call, rn_str(name));
  if (value && value->kind == RN_ATTR_BOOL) rn_op_attr_bool(o->scope, name, value->b);
}

static rn_status_t open_while(rn_inline_t* o, rn_edge_t* out) {
  rn_node_t* call = o->call;
  int count = call->input_count;
  const rn_attr_value_t* parallel = rn_node_attr(call, RN_STR("parallel_iterations"));
  int64_t overlap = parallel ? parallel->i : 10;
  bool* is_invariant = NULL;
  rn_edge_t *merges = NULL, *in = NULL, *next = NULL, cond;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)count, &is_invariant));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)count, &merges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)count, &in));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)count, &next));
  RN_RETURN_IF_ERROR(find_invariants(o, function_attr(call, "body"), is_invariant));
  rn_str_t frame;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&o->arena, &frame, "%s_frame_%zu", call->name.data, o->graph->nodes.count));
  rn_node_t* first = NULL;
  for (int i = 0; i < count; ++i) {
    merges[i] = rn_Enter(o->scope, call->inputs[i], frame.data, .is_constant = is_invariant[i],
                         .parallel_iterations = RN_SET(overlap));
    rn_edge_t pair[2] = {merges[i], merges[i]};
    if (!is_invariant[i]) merges[i] = rn_Merge(o->scope, pair, 2).output;
    if (!is_invariant[i] && !first) first = merges[i].node;
  }
  RN_RETURN_IF_ERROR(rn_inline_status(o));
  if (!first)
    return rn_invalid_argument("Loop '%s' (%s) changes no variable", call->name.data,
                               call->op->name);
  RN_RETURN_IF_ERROR(
      rn_inline_body(o, function_attr(call, "cond"), merges, count, first, 1, &cond));
  if (rn_edge_dtype(cond) != RN_BOOL) {
    rn_op_begin(o->scope, "ToBool");
    rn_op_input(o->scope, cond);
    cond = (rn_edge_t){rn_op_finish(o->scope), 0};
  }
  rn_op_begin(o->scope, "LoopCond");
  rn_op_input(o->scope, cond);
  keep_flag(o, "_back_prop");
  keep_flag(o, "_swap_memory");
  cond = (rn_edge_t){rn_op_finish(o->scope), 0};
  rn_node_t* pivot = NULL;
  for (int i = 0; i < count; ++i) {
    in[i] = merges[i];
    out[i] = call->inputs[i];
    if (is_invariant[i]) continue;
    rn_Switch_out_t parts = rn_Switch(o->scope, merges[i], cond);
    in[i] = rn_Identity(o->scope, parts.output_true);
    out[i] = rn_Exit(o->scope, parts.output_false);
    if (!pivot) pivot = in[i].node;
  }
  RN_RETURN_IF_ERROR(rn_inline_status(o));
  RN_RETURN_IF_ERROR(rn_inline_body(o, function_attr(call, "body"), in, count, pivot, count, next));
  for (int i = 0; i < count; ++i) {
    if (is_invariant[i]) continue;
    if (rn_inline_is_always_alive(next[i])) rn_scope_add_control(o->scope, pivot);
    rn_edge_t back = rn_NextIteration(o->scope, next[i]);
    rn_scope_clear_controls(o->scope);
    RN_RETURN_IF_ERROR(rn_inline_status(o));
    RN_RETURN_IF_ERROR(rn_graph_update_edge(o->graph, back, merges[i].node, 1));
  }
  return RN_OK;
}

// SymbolicGradient(x …, dy …) of f: f over x, and its gradients.
static rn_status_t open_symbolic(rn_inline_t* o, rn_edge_t* out) {
  rn_node_t* call = o->call;
  int x_count = call->output_count, y_count = call->input_count - x_count;
  rn_func_attr_t func;
  RN_RETURN_IF_ERROR(callee_of(&o->arena, call, &func));
  if (y_count < 0)
    return rn_invalid_argument("Node '%s' (%s) has %d inputs and %d outputs", call->name.data,
                               call->op->name, (int)call->input_count, (int)call->output_count);
  rn_str_t own = rn_graph_function_gradient(o->graph, func.name);
  if (own.size) {
    rn_func_attr_t gradient = {own, func.attr_count, func.attrs};
    return rn_inline_body(o, &gradient, call->inputs, call->input_count, o->anchor, x_count, out);
  }
  rn_edge_t *ys = NULL, *xs = NULL;
  rn_gradient_t* dxs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)y_count, &ys));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)x_count, &xs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)x_count, &dxs));
  // Identities, so that one x that is passed twice counts as two arguments.
  for (int i = 0; i < x_count; ++i) xs[i] = rn_Identity(o->scope, call->inputs[i]);
  RN_RETURN_IF_ERROR(rn_inline_status(o));
  RN_RETURN_IF_ERROR(rn_inline_body(o, &func, xs, x_count, o->anchor, y_count, ys));
  rn_gradient_options_t options = {
      .dys = call->inputs + x_count, .dense = true, .unconnected = RN_UNCONNECTED_ZERO};
  rn_grad_request_t request = {.graph = o->graph,
                               .ys = ys,
                               .y_count = y_count,
                               .xs = xs,
                               .x_count = x_count,
                               .options = &options};
  RN_RETURN_IF_ERROR(rn_grad_run(&request, dxs));
  for (int i = 0; i < x_count; ++i) out[i] = dxs[i].dense;
  return RN_OK;
}

static rn_status_t open_any(rn_inline_t* o, rn_edge_t* out) {
  switch (o->call->op->role) {
    case RN_ROLE_IF:
      return open_if(o, out);
    case RN_ROLE_CASE:
      return open_case(o, out);
    case RN_ROLE_WHILE:
      return open_while(o, out);
    default:
      return is_symbolic(o->call) ? open_symbolic(o, out) : open_call(o, out);
  }
}

// Redirects readers of the call to its replacement.
static rn_status_t redirect(rn_inline_t* o, const rn_edge_t* out) {
  rn_node_t* call = o->call;
  for (int32_t i = 0; i < call->output_count; ++i) {
    rn_output_t* output = &call->outputs[i];
    while (output->consumers.count > 0) {
      rn_consumer_t consumer = output->consumers.items[0];
      size_t before = output->consumers.count;
      RN_RETURN_IF_ERROR(rn_graph_update_edge(o->graph, out[i], consumer.node, consumer.input));
      if (output->consumers.count == before)
        return rn_internal("'%s' still reads '%s'", consumer.node->name.data, call->name.data);
    }
  }
  return RN_OK;
}

// Makes a plain call pass on what its copy computes: clients may hold its outputs and wait for it,
// and its side effects must not happen twice.
static rn_status_t retire(rn_inline_t* o, const rn_edge_t* out) {
  RN_RETURN_IF_ERROR(rn_graph_pass_on(o->graph, o->call, out));
  rn_node_clear_controls(o->call);
  return o->done ? rn_node_add_control(o->call, o->done) : RN_OK;
}

rn_status_t rn_call_open(rn_scope_t* scope, rn_node_t* node, bool has_frames, rn_edge_t* out) {
  rn_graph_t* graph = rn_scope_graph(scope);
  rn_inline_t o = {.scope = rn_scope_child(scope, "call"), .graph = graph, .call = node};
  if (!o.scope) return rn_out_of_memory();
  o.is_plain = node->op->role == RN_ROLE_CALL || node->op->role == RN_ROLE_FUNCTION;
  rn_arena_init(&o.arena, graph->allocator);
  if (has_frames && node->input_count > 0) o.anchor = anchor_at(&o, node->inputs[0]);
  rn_status_t status = rn_inline_status(&o);
  if (rn_ok(status)) status = open_any(&o, out);
  if (rn_ok(status)) status = redirect(&o, out);
  if (rn_ok(status) && o.is_plain) status = retire(&o, out);
  if (!rn_ok(status))
    status =
        rn_status_annotate(status, "\n\t in the call '%s' (%s)", node->name.data, node->op->name);
  rn_arena_clear(&o.arena);
  rn_scope_destroy(o.scope);
  return status;
}

rn_status_t rn_call_gradient(rn_grad_t* grad) {
  rn_node_t* node = grad->node;
  rn_str_t name = own_gradient(node);
  if (!name.size) return rn_internal("'%s' has no gradient function", node->name.data);
  int inputs = grad->input_count, outputs = grad->output_count;
  rn_edge_t* all = NULL;
  int* types = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(grad->arena, (size_t)(inputs + outputs), &all));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(grad->arena, (size_t)inputs, &types));
  for (int i = 0; i < inputs; ++i) {
    all[i] = rn_grad_in(grad, i);
    types[i] = rn_edge_dtype(all[i]);
  }
  for (int i = 0; i < outputs; ++i) all[inputs + i] = rn_grad_dy(grad, i);
  rn_function_t* function = rn_graph_get_function(node->graph, name);
  if (!function)
    return rn_not_found("'%.*s', the gradient function of '%s', is not in the library",
                        RN_STR_ARGS(name), node->op->name);
  rn_func_attr_t func = {name, 0, NULL};
  const rn_function_body_t* body = NULL;
  rn_status_t status = rn_function_body(node->graph, &func, &body);
  rn_function_release(function);
  RN_RETURN_IF_ERROR(status);
  if (body->arg_count != inputs + outputs || body->result_count != inputs)
    return rn_invalid_argument(
        "'%.*s', the gradient function of node '%s' (%s), has %d arguments and %d results; it must "
        "have %d and %d",
        RN_STR_ARGS(name), node->name.data, node->op->name, (int)body->arg_count,
        (int)body->result_count, inputs + outputs, inputs);
  rn_op_begin(grad->scope, "StatefulPartitionedCall");
  rn_op_input_list(grad->scope, all, inputs + outputs);
  rn_op_attr_type_list(grad->scope, "Tout", types, inputs);
  rn_op_attr_func(grad->scope, "f", name.data);
  rn_node_t* call = rn_op_finish(grad->scope);
  for (int i = 0; call && i < inputs; ++i)
    if (rn_grad_wants(grad, i)) rn_grad_to(grad, i, (rn_edge_t){call, i});
  return RN_OK;
}
