// Replaces calls by the bodies of their functions. See rn_pass_inline_calls in ir.h.
//
// The pass visits nodes in order and appends the nodes of bodies, so it reaches calls within bodies
// later. For each call it notes which edges replace its outputs; it redirects all uses once, at the
// end.
#include "framework/internal_ops.h"
#include "step/calls.h"

// Once the graph has grown by this many nodes, and to several times its size, the remaining calls
// stay calls: functions that each call another one twice would double the graph at every level.
#define MAX_GROWTH (1 << 16)
#define MAX_GROWTH_TIMES 8

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
  return rn_calls_become(calls, node, function, (node->op->flags & RN_OP_STATEFUL) != 0);
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
  return rn_calls_become(calls, node, gradient, true);
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
  return rn_calls_splice(calls, index, body);
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
    RN_RETURN_IF_ERROR(rn_calls_note(calls, (rn_call_note_t){.call = -1, .end = -1}));
    const rn_ir_node_t* node = &ir->nodes.items[n];
    calls->can_be_dead |= node->feed < 0 && rn_is_branching(node->op->role);
  }
  for (size_t n = 0; n < ir->nodes.count; ++n) rn_calls_note_controls(calls, &ir->nodes.items[n]);
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
