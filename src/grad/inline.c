// Copies function bodies in place of calls. See inline.h.
#include "grad/inline.h"

#include "framework/grad_def.h"
#include "function/function.h"
#include "graph/build.h"
#include "graph/edit.h"
#include "runnel/ops.h"

// Attribute of nodes that were copied in place of a plain call: the call's name.
#define OPENED_FROM "_runnel_opened_from"

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

// State while one call is inlined.
typedef struct inline_open_t {
  rn_scope_t* scope;
  rn_graph_t* graph;
  rn_node_t* call;
  rn_arena_t arena;
  rn_node_t* anchor;  // nodes without inputs get a control edge from it; NULL for none
  bool is_plain;      // a call, whose body runs once, where the call would
  rn_node_t* done;    // of a plain call: is done when the side effects are; NULL if there are none
} inline_open_t;

static rn_status_t scope_status(const inline_open_t* o) {
  if (rn_scope_ok(o->scope)) return RN_OK;
  return rn_status_make((rn_code_t)rn_scope_code(o->scope), "%s", rn_scope_message(o->scope));
}

// State while one body is copied.
typedef struct inline_copy_t {
  const rn_function_body_t* body;
  const rn_edge_t* args;
  rn_node_t* anchor;
  size_t number;       // of this copy
  rn_node_t** copies;  // by node id of the body
} inline_copy_t;

static rn_edge_t copied_edge(const inline_copy_t* copy, rn_edge_t edge) {
  for (int32_t i = 0; edge.node->op->role == RN_ROLE_ARG && i < copy->body->arg_count; ++i)
    if (copy->body->args[i] == edge.node) return copy->args[i];
  return (rn_edge_t){copy->copies[edge.node->id], edge.index};
}

static bool is_back_edge(const rn_node_t* node, int32_t i) {
  return node->op->role == RN_ROLE_MERGE &&
         node->inputs[i].node->op->role == RN_ROLE_NEXT_ITERATION;
}

// A value that is alive in every iteration of its loop, even after the last one.
static bool is_always_alive(rn_edge_t edge) {
  const rn_attr_value_t* constant = NULL;
  if (edge.node->op->role == RN_ROLE_ENTER)
    constant = rn_node_attr(edge.node, RN_STR("is_constant"));
  return constant && constant->b;
}

// Whether no input of |node|, which is about to be copied, tells the copy when it is dead: there is
// none, or all are arguments that are always alive. An Enter takes such an argument into a loop of
// the function, where nothing runs for its sake.
static bool needs_anchor(const inline_copy_t* copy, const rn_node_t* node) {
  if (node->input_count > 0 && is_always_alive((rn_edge_t){(rn_node_t*)node, 0})) return false;
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_edge_t from = node->inputs[i];
    if (from.node->op->role != RN_ROLE_ARG || !is_always_alive(copied_edge(copy, from)))
      return false;
  }
  return true;
}

// Whether nothing in the body comes before |node|.
static bool is_first(const rn_node_t* node) {
  if (node->input_count == 0 && node->controls.count > 0) return false;
  for (int32_t i = 0; i < node->input_count; ++i)
    if (node->inputs[i].node->op->role != RN_ROLE_ARG) return false;
  return true;
}

// Where a body begins, a plain call's control inputs hold.
static rn_status_t copy_controls(inline_open_t* o, const inline_copy_t* copy, const rn_node_t* node,
                                 rn_node_spec_t* spec) {
  rn_node_t** controls = NULL;
  size_t waits = o->is_plain && is_first(node) ? o->call->controls.count : 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, node->controls.count + waits + 1, &controls));
  for (size_t i = 0; i < node->controls.count; ++i) {
    const rn_node_t* from = node->controls.items[i];
    rn_node_t* to = from->op->role == RN_ROLE_ARG ? copy->anchor : copy->copies[from->id];
    if (to) controls[spec->control_count++] = to;
  }
  if (spec->control_count == 0 && copy->anchor && needs_anchor(copy, node))
    controls[spec->control_count++] = copy->anchor;
  for (size_t i = 0; i < waits; ++i) controls[spec->control_count++] = o->call->controls.items[i];
  spec->controls = controls;
  return RN_OK;
}

static rn_status_t copy_attrs(inline_open_t* o, const inline_copy_t* copy, const rn_node_t* node,
                              rn_node_spec_t* spec) {
  rn_attr_t* attrs = NULL;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&o->arena, (size_t)(node->op->attr_count + node->extra_count + 1), &attrs));
  for (int i = 0; i < node->op->attr_count; ++i) {
    rn_attr_t attr = {rn_str(node->op->attrs[i].name), node->attrs[i]};
    // Makes frame names unique: two copies of a loop are separate loops.
    if (node->op->role == RN_ROLE_ENTER && rn_str_is(attr.name, "frame_name"))
      RN_RETURN_IF_ERROR(rn_arena_printf(&o->arena, &attr.value.s, "%.*s_copy_%zu",
                                         RN_STR_ARGS(node->attrs[i].s), copy->number));
    attrs[spec->attr_count++] = attr;
  }
  for (int32_t i = 0; i < node->extra_count; ++i)
    if (!rn_str_is(node->extras[i].name, "_class") && !rn_str_is(node->extras[i].name, OPENED_FROM))
      attrs[spec->attr_count++] = node->extras[i];
  if (o->is_plain)
    attrs[spec->attr_count++] =
        (rn_attr_t){rn_str(OPENED_FROM), {.kind = RN_ATTR_STRING, .s = o->call->name}};
  spec->attrs = attrs;
  return RN_OK;
}

static rn_status_t copy_node(inline_open_t* o, inline_copy_t* copy, const rn_node_t* node) {
  rn_node_spec_t spec = {.op = rn_str(node->op->name),
                         .device = node->device.size ? node->device : o->call->device,
                         .input_count = node->input_count};
  rn_edge_t* inputs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)node->input_count, &inputs));
  for (int32_t i = 0; i < node->input_count; ++i) {
    // The second input of a loop's Merge is linked once the NextIteration exists.
    rn_edge_t from = is_back_edge(node, i) ? node->inputs[i ? 0 : 1] : node->inputs[i];
    inputs[i] = copied_edge(copy, from);
    if (!inputs[i].node)
      return rn_invalid_argument("Node '%s' of function '%.*s' reads '%s', which comes after it",
                                 node->name.data, RN_STR_ARGS(copy->body->function->name),
                                 from.node->name.data);
  }
  spec.inputs = inputs;
  RN_RETURN_IF_ERROR(copy_controls(o, copy, node, &spec));
  RN_RETURN_IF_ERROR(copy_attrs(o, copy, node, &spec));
  rn_str_t prefix = rn_scope_prefix(o->scope);
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&o->arena, &spec.name, "%.*s%s", RN_STR_ARGS(prefix), node->name.data));
  return rn_graph_add_unique(o->graph, &spec, &copy->copies[node->id]);
}

static rn_status_t close_loops(inline_open_t* o, const inline_copy_t* copy) {
  const rn_graph_t* from = copy->body->graph;
  for (size_t id = 0; id < from->nodes.count; ++id) {
    const rn_node_t* node = from->nodes.items[id];
    for (int32_t i = 0; copy->copies[id] && i < node->input_count; ++i) {
      if (!is_back_edge(node, i)) continue;
      rn_edge_t next = copied_edge(copy, node->inputs[i]);
      RN_RETURN_IF_ERROR(rn_graph_update_edge(o->graph, next, copy->copies[id], i));
    }
  }
  return RN_OK;
}

enum { NEW, OPEN, DONE };

typedef struct inline_order_t {
  uint8_t* state;
  RN_VEC(const rn_node_t*) stack;
} inline_order_t;

static rn_status_t push_before(inline_open_t* o, inline_order_t* order, const rn_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i)
    if (!is_back_edge(node, i) && order->state[node->inputs[i].node->id] == NEW)
      RN_RETURN_IF_ERROR(rn_vec_push(&order->stack, o->graph->allocator, node->inputs[i].node));
  for (size_t i = 0; i < node->controls.count; ++i)
    if (order->state[node->controls.items[i]->id] == NEW)
      RN_RETURN_IF_ERROR(rn_vec_push(&order->stack, o->graph->allocator, node->controls.items[i]));
  return RN_OK;
}

// Copies all nodes in topological order.
static rn_status_t copy_nodes(inline_open_t* o, inline_copy_t* copy, inline_order_t* order) {
  const rn_graph_t* from = copy->body->graph;
  for (size_t id = 0; id < from->nodes.count; ++id) {
    if (order->state[id] == DONE) continue;
    RN_RETURN_IF_ERROR(rn_vec_push(&order->stack, o->graph->allocator, from->nodes.items[id]));
    while (order->stack.count > 0) {
      const rn_node_t* node = order->stack.items[order->stack.count - 1];
      if (order->state[node->id] == NEW) {
        order->state[node->id] = OPEN;
        RN_RETURN_IF_ERROR(push_before(o, order, node));
        continue;
      }
      order->stack.count--;
      if (order->state[node->id] == DONE) continue;
      order->state[node->id] = DONE;
      if (node->op->role != RN_ROLE_ARG) RN_RETURN_IF_ERROR(copy_node(o, copy, node));
    }
  }
  return close_loops(o, copy);
}

// The results of the function, with control edges from its side effects.
static rn_status_t take_results(inline_open_t* o, const inline_copy_t* copy, rn_edge_t* out) {
  const rn_function_body_t* body = copy->body;
  rn_node_t* done = NULL;
  if (body->control_count > 0) {
    rn_op_begin(o->scope, "NoOp");
    for (int32_t i = 0; i < body->control_count; ++i)
      rn_op_control(o->scope, copy->copies[body->controls[i]->id]);
    done = rn_op_finish(o->scope);
    if (o->is_plain) o->done = done;
  }
  for (int32_t i = 0; i < body->result_count; ++i) {
    out[i] = copied_edge(copy, body->results[i]);
    if (!done) continue;
    rn_op_begin(o->scope, "Identity");
    rn_op_input(o->scope, out[i]);
    rn_op_control(o->scope, done);
    if (o->is_plain) rn_op_attr_string(o->scope, OPENED_FROM, o->call->name.data);
    out[i] = (rn_edge_t){rn_op_finish(o->scope), 0};
  }
  return scope_status(o);
}

// Copies the body of |func| with arguments |args|; |out| gets its results.
static rn_status_t inline_body(inline_open_t* o, const rn_func_attr_t* func, const rn_edge_t* args,
                               int arg_count, rn_node_t* anchor, int result_count, rn_edge_t* out) {
  const rn_function_body_t* body = NULL;
  if (!func) return rn_invalid_argument("Node '%s' has no function to call", o->call->name.data);
  RN_RETURN_IF_ERROR(rn_function_body(o->graph, func, &body));
  if (body->arg_count != arg_count || body->result_count != result_count)
    return rn_invalid_argument(
        "Node '%s' (%s) passes %d arguments to function '%.*s' and takes %d results; it has %d and "
        "%d",
        o->call->name.data, o->call->op->name, arg_count, RN_STR_ARGS(func->name), result_count,
        (int)body->arg_count, (int)body->result_count);
  for (int i = 0; i < arg_count; ++i) {
    int own = rn_edge_dtype((rn_edge_t){body->args[i], 0}), given = rn_edge_dtype(args[i]);
    if (own != given)
      return rn_invalid_argument(
          "Node '%s' (%s) passes %s to argument %d of function '%.*s', which "
          "is %s",
          o->call->name.data, o->call->op->name, rn_dtype_name((rn_dtype_t)given), i,
          RN_STR_ARGS(func->name), rn_dtype_name((rn_dtype_t)own));
  }
  inline_copy_t copy = {
      .body = body, .args = args, .anchor = anchor, .number = o->graph->nodes.count};
  inline_order_t order = {0};
  size_t count = body->graph->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, count, &copy.copies));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, count, &order.state));
  rn_status_t status = copy_nodes(o, &copy, &order);
  rn_vec_free(&order.stack, o->graph->allocator);
  return rn_ok(status) ? take_results(o, &copy, out) : status;
}

// A node that is alive exactly when the edge is.
static rn_node_t* anchor_at(inline_open_t* o, rn_edge_t edge) {
  return rn_Identity(o->scope, edge).node;
}

static rn_status_t open_call(inline_open_t* o, rn_edge_t* out) {
  rn_func_attr_t func;
  RN_RETURN_IF_ERROR(callee_of(&o->arena, o->call, &func));
  return inline_body(o, &func, o->call->inputs, o->call->input_count, o->anchor,
                     o->call->output_count, out);
}

// Calls |then| if |pred| holds, else |otherwise|, with the same arguments. If |otherwise| is NULL,
// |index| chooses one of the branches from |next| on.
typedef struct inline_choice_t {
  const rn_func_attr_t* const* branches;
  int count;
  rn_edge_t index;
} inline_choice_t;

static rn_status_t branch(inline_open_t* o, const inline_choice_t* choice, int first,
                          rn_edge_t index, const rn_edge_t* args, int arg_count, rn_node_t* anchor,
                          rn_edge_t* out);

static rn_status_t either(inline_open_t* o, rn_edge_t pred, const rn_func_attr_t* then,
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
  RN_RETURN_IF_ERROR(scope_status(o));
  RN_RETURN_IF_ERROR(inline_body(o, then, given[1], arg_count, anchors[1], results, sides[1]));
  if (choice)
    RN_RETURN_IF_ERROR(
        branch(o, choice, next, indices[0], given[0], arg_count, anchors[0], sides[0]));
  else
    RN_RETURN_IF_ERROR(
        inline_body(o, otherwise, given[0], arg_count, anchors[0], results, sides[0]));
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
  return scope_status(o);
}

static rn_status_t branch(inline_open_t* o, const inline_choice_t* choice, int first,
                          rn_edge_t index, const rn_edge_t* args, int arg_count, rn_node_t* anchor,
                          rn_edge_t* out) {
  // The last branch also handles indices out of range.
  if (first == choice->count - 1)
    return inline_body(o, choice->branches[first], args, arg_count, anchor, o->call->output_count,
                       out);
  if (anchor) rn_scope_add_control(o->scope, anchor);
  rn_edge_t number = rn_const_int32(o->scope, first);
  rn_scope_clear_controls(o->scope);
  rn_edge_t pred = rn_Equal(o->scope, index, number);
  return either(o, pred, choice->branches[first], NULL, choice, first + 1, index, args, arg_count,
                out);
}

static rn_status_t open_if(inline_open_t* o, rn_edge_t* out) {
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

static rn_status_t open_case(inline_open_t* o, rn_edge_t* out) {
  const rn_node_t* call = o->call;
  const rn_attr_value_t* branches = rn_node_attr(call, RN_STR("branches"));
  if (!branches || branches->count < 1)
    return rn_invalid_argument("Node '%s' (%s) has no branches", call->name.data, call->op->name);
  inline_choice_t choice = {branches->list_func, branches->count, call->inputs[0]};
  return branch(o, &choice, 0, call->inputs[0], call->inputs + 1, call->input_count - 1, o->anchor,
                out);
}

// Finds the arguments that the body returns unchanged.
static rn_status_t find_invariants(inline_open_t* o, const rn_func_attr_t* func,
                                   bool* is_invariant) {
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
static void keep_flag(inline_open_t* o, const char* name) {
  const rn_attr_value_t* value = rn_node_attr(o->call, rn_str(name));
  if (value && value->kind == RN_ATTR_BOOL) rn_op_attr_bool(o->scope, name, value->b);
}

static rn_status_t open_while(inline_open_t* o, rn_edge_t* out) {
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
  RN_RETURN_IF_ERROR(scope_status(o));
  if (!first)
    return rn_invalid_argument("Loop '%s' (%s) changes no variable", call->name.data,
                               call->op->name);
  RN_RETURN_IF_ERROR(inline_body(o, function_attr(call, "cond"), merges, count, first, 1, &cond));
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
  RN_RETURN_IF_ERROR(scope_status(o));
  RN_RETURN_IF_ERROR(inline_body(o, function_attr(call, "body"), in, count, pivot, count, next));
  for (int i = 0; i < count; ++i) {
    if (is_invariant[i]) continue;
    if (is_always_alive(next[i])) rn_scope_add_control(o->scope, pivot);
    rn_edge_t back = rn_NextIteration(o->scope, next[i]);
    rn_scope_clear_controls(o->scope);
    RN_RETURN_IF_ERROR(scope_status(o));
    RN_RETURN_IF_ERROR(rn_graph_update_edge(o->graph, back, merges[i].node, 1));
  }
  return RN_OK;
}

// SymbolicGradient(x …, dy …) of f: f over x, and its gradients.
static rn_status_t open_symbolic(inline_open_t* o, rn_edge_t* out) {
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
    return inline_body(o, &gradient, call->inputs, call->input_count, o->anchor, x_count, out);
  }
  rn_edge_t *ys = NULL, *xs = NULL;
  rn_gradient_t* dxs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)y_count, &ys));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)x_count, &xs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)x_count, &dxs));
  // Identities, so that one x that is passed twice counts as two arguments.
  for (int i = 0; i < x_count; ++i) xs[i] = rn_Identity(o->scope, call->inputs[i]);
  RN_RETURN_IF_ERROR(scope_status(o));
  RN_RETURN_IF_ERROR(inline_body(o, &func, xs, x_count, o->anchor, y_count, ys));
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

static rn_status_t open_any(inline_open_t* o, rn_edge_t* out) {
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
static rn_status_t redirect(inline_open_t* o, const rn_edge_t* out) {
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
static rn_status_t retire(inline_open_t* o, const rn_edge_t* out) {
  RN_RETURN_IF_ERROR(rn_graph_pass_on(o->graph, o->call, out));
  rn_node_clear_controls(o->call);
  return o->done ? rn_node_add_control(o->call, o->done) : RN_OK;
}

rn_status_t rn_call_open(rn_scope_t* scope, rn_node_t* node, bool has_frames, rn_edge_t* out) {
  rn_graph_t* graph = rn_scope_graph(scope);
  inline_open_t o = {.scope = rn_scope_child(scope, "call"), .graph = graph, .call = node};
  if (!o.scope) return rn_out_of_memory();
  o.is_plain = node->op->role == RN_ROLE_CALL || node->op->role == RN_ROLE_FUNCTION;
  rn_arena_init(&o.arena, graph->allocator);
  if (has_frames && node->input_count > 0) o.anchor = anchor_at(&o, node->inputs[0]);
  rn_status_t status = scope_status(&o);
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
