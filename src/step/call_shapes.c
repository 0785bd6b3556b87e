// Infers the result shapes of calls that are not inlined: builds a temporary step graph of the
// function body, runs shape inference with the arguments' shapes, and throws the graph away.
#include "function/function.h"
#include "step/ir.h"

// Nested calls are followed to this depth: each level may cost as much as all levels above it.
#define MAX_DEPTH 3

static rn_status_t infer_body(rn_ir_t* ir, const rn_function_body_t* body, const rn_shape_t* inputs,
                              rn_shape_t* out) {
  rn_edge_t* feeds = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)body->arg_count, &feeds));
  for (int32_t i = 0; i < body->arg_count; ++i) feeds[i] = (rn_edge_t){body->args[i], 0};
  rn_signature_t signature = {.feeds = feeds,
                              .feed_count = body->arg_count,
                              .fetches = body->results,
                              .fetch_count = body->result_count,
                              .call_depth = ir->call_depth + 1};
  rn_ir_t* inner = NULL;
  RN_RETURN_IF_ERROR(rn_ir_create(body->graph, &signature, &inner));
  rn_status_t status = rn_ir_set_feed_shapes(inner, inputs);
  for (int32_t i = 0; rn_ok(status) && i < body->result_count; ++i) {
    rn_ir_edge_t result = inner->fetches[i];
    status =
        rn_shape_copy(&ir->arena, inner->nodes.items[result.node].shapes[result.output], &out[i]);
  }
  rn_ir_destroy(inner);
  return status;
}

// The shapes of |call|'s results; unknown if the call is invalid, which its kernel reports when it
// runs.
static rn_status_t infer(rn_ir_t* ir, const rn_ir_node_t* node, const rn_func_attr_t* call,
                         const rn_shape_t* inputs, int32_t input_count, rn_shape_t* out) {
  for (int32_t i = 0; i < node->output_count; ++i) out[i] = RN_SHAPE_UNKNOWN;
  const rn_function_body_t* body = NULL;
  rn_status_t status = rn_function_body(ir->graph, call, &body);
  if (rn_ok(status) && body->arg_count == input_count && body->result_count == node->output_count)
    return infer_body(ir, body, inputs, out);
  rn_status_free(status);
  return RN_OK;
}

static bool is_open(const rn_ir_node_t* node, const rn_shape_t* shapes) {
  for (int32_t i = 0; i < node->output_count; ++i)
    if (!rn_shape_is_full(shapes[i]) && !rn_shape_is_full(node->shapes[i])) return true;
  return false;
}

static rn_status_t infer_branches(rn_ir_t* ir, const rn_ir_node_t* node,
                                  const rn_func_attr_t* const* branches, int32_t count,
                                  const rn_shape_t* inputs, rn_shape_t* out) {
  rn_shape_t* other = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)node->output_count, &other));
  for (int32_t b = 0; b < count; ++b) {
    RN_RETURN_IF_ERROR(
        infer(ir, node, branches[b], inputs + 1, node->input_count - 1, b ? other : out));
    for (int32_t i = 0; b > 0 && i < node->output_count; ++i)
      RN_RETURN_IF_ERROR(rn_ir_common_shape(&ir->arena, out[i], other[i], &out[i]));
  }
  return RN_OK;
}

static rn_status_t infer_called(rn_ir_t* ir, const rn_ir_node_t* node, const rn_shape_t* inputs,
                                rn_shape_t* out) {
  switch (node->op->role) {
    case RN_ROLE_CALL:
      return infer(ir, node, rn_ir_attr(node, RN_STR("f"))->func, inputs, node->input_count, out);
    case RN_ROLE_IF: {
      const rn_func_attr_t* branches[] = {rn_ir_attr(node, RN_STR("then_branch"))->func,
                                          rn_ir_attr(node, RN_STR("else_branch"))->func};
      return infer_branches(ir, node, branches, 2, inputs, out);
    }
    default: {
      const rn_attr_value_t* branches = rn_ir_attr(node, RN_STR("branches"));
      return infer_branches(ir, node, branches->list_func, branches->count, inputs, out);
    }
  }
}

// For a loop, starts from the assumption that variables keep the shapes they enter with, and
// weakens it until the body agrees. This ends because a shape can only lose each dimension once,
// then its rank.
static rn_status_t infer_loop(rn_ir_t* ir, const rn_ir_node_t* node, const rn_shape_t* inputs,
                              rn_shape_t* out) {
  const rn_func_attr_t* body = rn_ir_attr(node, RN_STR("body"))->func;
  rn_shape_t* round = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)node->output_count, &round));
  for (int32_t i = 0; i < node->output_count; ++i) out[i] = inputs[i];
  for (bool holds = false; !holds;) {
    holds = true;
    RN_RETURN_IF_ERROR(infer(ir, node, body, out, node->input_count, round));
    for (int32_t i = 0; i < node->output_count; ++i) {
      rn_shape_t both;
      RN_RETURN_IF_ERROR(rn_ir_common_shape(&ir->arena, out[i], round[i], &both));
      if (rn_shape_eq(both, out[i])) continue;
      out[i] = both;
      holds = false;
    }
  }
  return RN_OK;
}

static bool lists_shapes(const rn_ir_node_t* node) {
  const rn_attr_value_t* listed = rn_ir_attr(node, RN_STR("output_shapes"));
  return listed && listed->is_list && listed->count == node->output_count && listed->count > 0;
}

rn_status_t rn_ir_infer_call(rn_ir_t* ir, const rn_ir_node_t* node, const rn_shape_t* inputs,
                             rn_shape_t* shapes) {
  uint8_t role = node->op->role;
  if (role == RN_ROLE_WHILE && !lists_shapes(node)) {
    for (int32_t i = 0; i < node->output_count; ++i) shapes[i] = RN_SHAPE_UNKNOWN;
    return ir->call_depth < MAX_DEPTH ? infer_loop(ir, node, inputs, shapes) : RN_OK;
  }
  bool calls = role == RN_ROLE_CALL || role == RN_ROLE_IF || role == RN_ROLE_CASE;
  if (!calls || ir->call_depth >= MAX_DEPTH || !is_open(node, shapes)) return RN_OK;
  rn_shape_t* found = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)node->output_count, &found));
  RN_RETURN_IF_ERROR(infer_called(ir, node, inputs, found));
  for (int32_t i = 0; i < node->output_count; ++i)
    if (!rn_shape_is_full(shapes[i]) && rn_shape_has_rank(found[i])) shapes[i] = found[i];
  return RN_OK;
}
