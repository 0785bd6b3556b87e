// Copies the body of a function in place of a call: see inline_body.h.
#include "grad/inline_body.h"

#include "graph/edit.h"
#include "runnel/ops.h"

// Attribute of nodes that were copied in place of a plain call: the call's name.
#define OPENED_FROM "_runnel_opened_from"

rn_status_t rn_inline_status(const rn_inline_t* o) {
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

bool rn_inline_is_always_alive(rn_edge_t edge) {
  const rn_attr_value_t* constant = NULL;
  if (edge.node->op->role == RN_ROLE_ENTER)
    constant = rn_node_attr(edge.node, RN_STR("is_constant"));
  return constant && constant->b;
}

// Whether no input of |node|, which is about to be copied, tells the copy when it is dead: there is
// none, or all are arguments that are always alive. An Enter takes such an argument into a loop of
// the function, where nothing runs for its sake.
static bool needs_anchor(const inline_copy_t* copy, const rn_node_t* node) {
  if (node->input_count > 0 && rn_inline_is_always_alive((rn_edge_t){(rn_node_t*)node, 0}))
    return false;
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_edge_t from = node->inputs[i];
    if (from.node->op->role != RN_ROLE_ARG || !rn_inline_is_always_alive(copied_edge(copy, from)))
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
static rn_status_t copy_controls(rn_inline_t* o, const inline_copy_t* copy, const rn_node_t* node,
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

static rn_status_t copy_attrs(rn_inline_t* o, const inline_copy_t* copy, const rn_node_t* node,
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

static rn_status_t copy_node(rn_inline_t* o, inline_copy_t* copy, const rn_node_t* node) {
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

static rn_status_t close_loops(rn_inline_t* o, const inline_copy_t* copy) {
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

static rn_status_t push_before(rn_inline_t* o, inline_order_t* order, const rn_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i)
    if (!is_back_edge(node, i) && order->state[node->inputs[i].node->id] == NEW)
      RN_RETURN_IF_ERROR(rn_vec_push(&order->stack, o->graph->allocator, node->inputs[i].node));
  for (size_t i = 0; i < node->controls.count; ++i)
    if (order->state[node->controls.items[i]->id] == NEW)
      RN_RETURN_IF_ERROR(rn_vec_push(&order->stack, o->graph->allocator, node->controls.items[i]));
  return RN_OK;
}

// Copies all nodes in topological order.
static rn_status_t copy_nodes(rn_inline_t* o, inline_copy_t* copy, inline_order_t* order) {
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
static rn_status_t take_results(rn_inline_t* o, const inline_copy_t* copy, rn_edge_t* out) {
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
  return rn_inline_status(o);
}

rn_status_t rn_inline_body(rn_inline_t* o, const rn_func_attr_t* func, const rn_edge_t* args,
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
