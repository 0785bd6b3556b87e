// Nodes that take the place of calls: see calls.h.
#include "step/calls.h"

#include <inttypes.h>

#include "framework/internal_ops.h"

rn_dtype_t rn_calls_type(const rn_calls_t* calls, rn_ir_edge_t edge) {
  return rn_dtype_base(rn_ir_node(calls->ir, edge.node)->types[edge.output]);
}

rn_status_t rn_calls_note(rn_calls_t* calls, rn_call_note_t note) {
  return rn_vec_push(&calls->notes, calls->ir->allocator, note);
}

void rn_calls_note_controls(rn_calls_t* calls, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->control_count; ++i)
    calls->notes.items[node->controls[i]].is_awaited = true;
}

rn_status_t rn_calls_copy_edges(rn_ir_t* ir, const rn_ir_edge_t* from, int32_t count,
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
  RN_RETURN_IF_ERROR(rn_calls_copy_edges(ir, from->inputs, from->input_count, &node->inputs));
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
  RN_RETURN_IF_ERROR(rn_calls_note(
      calls, (rn_call_note_t){.call = note.call, .end = -1, .is_pruned = note.is_pruned}));
  rn_calls_note_controls(calls, &node);
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

rn_status_t rn_calls_become(rn_calls_t* calls, rn_ir_node_t* node, const rn_func_attr_t* function,
                            bool is_stateful) {
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
  return rn_calls_become(calls, rn_ir_node(calls->ir, *out), function, is_stateful);
}

void rn_calls_replace(rn_calls_t* calls, int32_t index, rn_ir_edge_t* edges, int32_t end) {
  calls->notes.items[index].replacement = edges;
  calls->notes.items[index].end = end;
  rn_ir_node(calls->ir, index)->is_removed = true;
  calls->has_changed = true;
}
