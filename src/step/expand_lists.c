// Replaces composite nodes that stand for several of one kind, which stock's optimizer and its
// lowering of Case make: _VarHandlesOp, _ReadVariablesOp and _SwitchN.
#include "framework/internal_ops.h"
#include "step/calls.h"
#include "tensor/tensor.h"

typedef struct expand_list_t {
  rn_ir_t* ir;
  int32_t index;
  rn_ir_node_t node;  // a copy of the composite node
} expand_list_t;

// Adds part |i|: a node of |op| with one output of |type| and |shape| per |output_count|, on the
// device of the composite node.
static rn_status_t add_part(const expand_list_t* e, const char* op, int32_t i,
                            const rn_attr_t* given, const rn_ir_edge_t* inputs, int32_t input_count,
                            int32_t output_count, rn_dtype_t type, rn_shape_t shape, int32_t* out) {
  rn_ir_node_t made = {.op = rn_op_find(rn_str(op)),
                       .extra_count = e->node.extra_count,
                       .extras = e->node.extras,
                       .requested_device = e->node.requested_device,
                       .feed = -1};
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&e->ir->arena, &made.name, "%.*s/_%s_%d", RN_STR_ARGS(e->node.name), op, i));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(e->ir, input_count, output_count, type, shape, &made));
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(e->ir, made.op, NULL, given, &made.attrs));
  for (int32_t n = 0; n < input_count; ++n) made.inputs[n] = inputs[n];
  return rn_ir_add(e->ir, &made, out);
}

// Turns the composite node into |op|, which reads |input_count| of its inputs and keeps its control
// inputs.
static rn_status_t become(const expand_list_t* e, const char* op, int32_t input_count,
                          int32_t output_count) {
  const rn_op_def_t* def = rn_op_find(rn_str(op));
  rn_ir_node_t* node = rn_ir_node(e->ir, e->index);
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(e->ir, def, &e->node, NULL, &node->attrs));
  node->op = def;
  node->input_count = input_count;
  node->output_count = output_count;
  return RN_OK;
}

static rn_status_t wrong_lists(const expand_list_t* e) {
  return rn_invalid_argument("Node %.*s: the lists of %s differ in length",
                             RN_STR_ARGS(e->node.name), e->node.op->name);
}

static rn_status_t expand_handles(const expand_list_t* e) {
  const rn_attr_value_t* containers = rn_ir_attr(&e->node, RN_STR("containers"));
  const rn_attr_value_t* names = rn_ir_attr(&e->node, RN_STR("shared_names"));
  const rn_attr_value_t* types = rn_ir_attr(&e->node, RN_STR("dtypes"));
  const rn_attr_value_t* shapes = rn_ir_attr(&e->node, RN_STR("shapes"));
  int32_t count = e->node.output_count;
  if (containers->count != count || names->count != count || types->count != count ||
      shapes->count != count)
    return wrong_lists(e);
  for (int32_t i = 0; i < count; ++i) {
    const rn_attr_t given[] = {{RN_STR("container"), {.s = containers->list_s[i]}},
                               {RN_STR("shared_name"), {.s = names->list_s[i]}},
                               {RN_STR("dtype"), {.type = types->list_type[i]}},
                               {RN_STR("shape"), {.shape = shapes->list_shape[i]}},
                               RN_ATTRS_END};
    int32_t part;
    RN_RETURN_IF_ERROR(
        add_part(e, "VarHandleOp", i, given, NULL, 0, 1, RN_RESOURCE, RN_SHAPE_SCALAR, &part));
    rn_ir_replace_edge(e->ir, (rn_ir_edge_t){e->index, i}, (rn_ir_edge_t){part, 0});
  }
  return become(e, "NoOp", 0, 0);
}

// Every part waits for what the composite node waited for; what waits for that waits for all parts.
static rn_status_t expand_reads(const expand_list_t* e) {
  const rn_attr_value_t* types = rn_ir_attr(&e->node, RN_STR("dtypes"));
  int32_t count = e->node.output_count;
  if (types->count != count || e->node.input_count != count) return wrong_lists(e);
  for (int32_t i = 0; i < count; ++i) {
    const rn_attr_t given[] = {{RN_STR("dtype"), {.type = types->list_type[i]}}, RN_ATTRS_END};
    int32_t part;
    RN_RETURN_IF_ERROR(add_part(e, "ReadVariableOp", i, given, &e->node.inputs[i], 1, 1,
                                types->list_type[i], e->node.shapes[i], &part));
    for (int32_t c = 0; c < e->node.control_count; ++c)
      RN_RETURN_IF_ERROR(rn_ir_add_control(e->ir, part, e->node.controls[c]));
    RN_RETURN_IF_ERROR(rn_ir_add_control(e->ir, e->index, part));
    rn_ir_replace_edge(e->ir, (rn_ir_edge_t){e->index, i}, (rn_ir_edge_t){part, 0});
  }
  return become(e, "NoOp", 0, 0);
}

static rn_status_t add_number(const expand_list_t* e, int32_t value, int32_t* out) {
  rn_tensor_t scalar = {0};
  rn_str_t name;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&e->ir->arena, &name, "%.*s/_Const_%d", RN_STR_ARGS(e->node.name), value));
  RN_RETURN_IF_ERROR(rn_tensor_create(e->ir->allocator, RN_INT32, RN_SHAPE_SCALAR, &scalar));
  *RN_DATA(&scalar, int32_t) = value;
  return rn_ir_add_constant(e->ir, name, &scalar, out);
}

// A Switch per output but the last. It takes the value if the index is its number, or passes it on;
// so the last output gets it for an index that is out of range, too.
static rn_status_t expand_switch(const expand_list_t* e) {
  rn_ir_edge_t rest = e->node.inputs[0], index = e->node.inputs[1];
  rn_dtype_t type = e->node.types[0];
  int32_t count = e->node.output_count, first = -1;
  for (int32_t i = 0; i + 1 < count; ++i) {
    const rn_attr_t of_index[] = {{RN_STR("T"), {.type = RN_INT32}}, RN_ATTRS_END},
                    of_value[] = {{RN_STR("T"), {.type = type}}, RN_ATTRS_END};
    rn_ir_edge_t numbers[2] = {index, {0}}, values[2] = {rest, {0}};
    int32_t part;
    RN_RETURN_IF_ERROR(add_number(e, i, &numbers[1].node));
    RN_RETURN_IF_ERROR(add_part(e, "Equal", i, of_index, numbers, 2, 1, RN_BOOL, RN_SHAPE_SCALAR,
                                &values[1].node));
    RN_RETURN_IF_ERROR(
        add_part(e, "Switch", i, of_value, values, 2, 2, type, e->node.shapes[i], &part));
    rn_ir_replace_edge(e->ir, (rn_ir_edge_t){e->index, i}, (rn_ir_edge_t){part, 1});
    if (first < 0) first = part;
    rest = (rn_ir_edge_t){part, 0};
  }
  // The node itself passes the value to the first Switch, after its control inputs.
  if (first < 0) return become(e, "Identity", 1, 1);
  rn_ir_replace_edge(e->ir, (rn_ir_edge_t){e->index, count - 1}, rest);
  rn_ir_node(e->ir, first)->inputs[0] = (rn_ir_edge_t){e->index, 0};
  return become(e, "Identity", 1, 1);
}

bool rn_expand_is_list(const rn_ir_node_t* node) {
  return rn_ir_is_op(node, "_VarHandlesOp") || rn_ir_is_op(node, "_ReadVariablesOp") ||
         rn_ir_is_op(node, "_SwitchN");
}

rn_status_t rn_expand_list(rn_ir_t* ir, int32_t index) {
  const expand_list_t e = {.ir = ir, .index = index, .node = *rn_ir_node(ir, index)};
  if (rn_ir_is_op(&e.node, "_VarHandlesOp")) return expand_handles(&e);
  return rn_ir_is_op(&e.node, "_SwitchN") ? expand_switch(&e) : expand_reads(&e);
}
