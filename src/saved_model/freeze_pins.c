// Names of outputs: see freeze_pins.h.
#include "saved_model/freeze_pins.h"

#include "framework/internal_ops.h"

// Whether output |i| keeps the name of its node.
static bool keeps_name(const rn_freeze_options_t* options, int32_t i) {
  return !options->output_names || !options->output_names[i].size;
}

static bool has_passes(const rn_freeze_options_t* options) {
  return !options->keeps_calls || !options->keeps_constants || options->folds_batch_norms;
}

rn_status_t rn_freeze_fetches(const rn_freeze_options_t* options, rn_arena_t* arena,
                              rn_signature_t* signature) {
  int32_t count = options->output_count;
  size_t more = 0;
  for (int32_t i = 0; has_passes(options) && i < count; ++i)
    if (keeps_name(options, i) && options->outputs[i].index > 0)
      more += (size_t)options->outputs[i].index;
  rn_edge_t* fetches = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count + more + 1, &fetches));
  if (count) memcpy(fetches, options->outputs, (size_t)count * sizeof *fetches);
  for (int32_t i = 0; more && i < options->output_count; ++i)
    for (int k = 0; keeps_name(options, i) && k < options->outputs[i].index; ++k)
      fetches[count++] = (rn_edge_t){options->outputs[i].node, k};
  signature->fetches = fetches;
  signature->fetch_count = count;
  return RN_OK;
}

rn_status_t rn_freeze_pins_note(rn_ir_t* ir, const rn_signature_t* signature,
                                rn_freeze_pins_t* out) {
  rn_ir_edge_t* fetches = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)ir->fetch_count + 1, &fetches));
  if (ir->fetch_count) memcpy(fetches, ir->fetches, (size_t)ir->fetch_count * sizeof *fetches);
  *out = (rn_freeze_pins_t){.outputs = signature->fetches, .fetches = fetches};
  return RN_OK;
}

// Whether fetch |i| is still output |index| of a node of its old name.
static bool is_in_place(const rn_ir_t* ir, const rn_freeze_options_t* options,
                        const rn_freeze_pins_t* pins, int32_t i) {
  rn_ir_edge_t now = ir->fetches[i], before = pins->fetches[i];
  const rn_ir_node_t* node = &ir->nodes.items[now.node];
  if (now.node != before.node || now.output != before.output || node->is_removed) return false;
  if (node->feed < 0) return now.output == pins->outputs[i].index;
  rn_str_t name = options->input_names ? options->input_names[node->feed] : RN_STR("");
  return pins->outputs[i].index == 0 &&
         rn_str_eq(name.size ? name : node->name, pins->outputs[i].node->name);
}

// Renames nodes that still have the name; the pin comes after them in the list.
static rn_status_t free_name(rn_ir_t* ir, rn_str_t name) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || !rn_str_eq(node->name, name)) continue;
    RN_RETURN_IF_ERROR(rn_arena_printf(&ir->arena, &node->name, "%.*s/_value", RN_STR_ARGS(name)));
  }
  return RN_OK;
}

// The edge that is output |index| of |node| now.
static rn_ir_edge_t find_edge(const rn_ir_t* ir, const rn_freeze_pins_t* pins,
                              const rn_node_t* node, int index) {
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (pins->outputs[i].node == node && pins->outputs[i].index == index) return ir->fetches[i];
  return (rn_ir_edge_t){-1, 0};
}

// Adds the node that has the name of |node|, with |count| outputs.
static rn_status_t add_pin(rn_ir_t* ir, const rn_freeze_pins_t* pins, const rn_node_t* node,
                           int32_t count, int32_t* out_index) {
  const rn_op_def_t* op = count == 1 ? rn_op_identity() : rn_op_find(RN_STR("IdentityN"));
  rn_ir_node_t pin = {
      .op = op, .name = node->name, .feed = -1, .input_count = count, .output_count = count};
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(free_name(ir, node->name));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)op->attr_count, &attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count, &pin.inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count, &pin.types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count, &pin.shapes));
  for (int32_t k = 0; k < count; ++k) {
    pin.inputs[k] = find_edge(ir, pins, node, k);
    if (pin.inputs[k].node < 0)
      return rn_internal("output %d of '%.*s' was not kept", k, RN_STR_ARGS(node->name));
    const rn_ir_node_t* source = &ir->nodes.items[pin.inputs[k].node];
    pin.types[k] = rn_dtype_base(source->types[pin.inputs[k].output]);
    pin.shapes[k] = source->shapes[pin.inputs[k].output];
  }
  attrs[0] = (rn_attr_value_t){.kind = RN_ATTR_TYPE};
  if (count == 1) {
    attrs[0].type = pin.types[0];
  } else {
    attrs[0].is_list = true;
    attrs[0].count = count;
    attrs[0].list_type = pin.types;
  }
  pin.attrs = attrs;
  return rn_ir_add(ir, &pin, out_index);
}

// If one output of the node of |first| has moved, pins the node and redirects all its outputs to
// the pin.
static rn_status_t pin_node(rn_ir_t* ir, const rn_freeze_options_t* options,
                            const rn_freeze_pins_t* pins, int32_t first, bool* is_done) {
  const rn_node_t* node = options->outputs[first].node;
  int32_t count = 0, index;
  bool all_in_place = true;
  for (int32_t i = first; i < options->output_count; ++i) {
    if (options->outputs[i].node != node || !keeps_name(options, i)) continue;
    all_in_place &= is_in_place(ir, options, pins, i);
    if (options->outputs[i].index >= count) count = options->outputs[i].index + 1;
    is_done[i] = true;
  }
  if (all_in_place) return RN_OK;
  RN_RETURN_IF_ERROR(add_pin(ir, pins, node, count, &index));
  for (int32_t i = first; i < options->output_count; ++i)
    if (options->outputs[i].node == node && keeps_name(options, i))
      ir->fetches[i] = (rn_ir_edge_t){index, options->outputs[i].index};
  return RN_OK;
}

rn_status_t rn_freeze_pins_apply(rn_ir_t* ir, const rn_freeze_options_t* options,
                                 const rn_freeze_pins_t* pins) {
  bool* is_done = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)options->output_count + 1, &is_done));
  for (int32_t i = 0; i < options->output_count; ++i)
    if (keeps_name(options, i) && !is_done[i])
      RN_RETURN_IF_ERROR(pin_node(ir, options, pins, i, is_done));
  ir->fetch_count = options->output_count;
  return rn_ir_sweep(ir);
}
