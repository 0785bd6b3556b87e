// Replaces composite nodes, which stock's graph optimizer makes of several, by the ops that they
// stand for; our own passes then fuse those as they see fit. See rn_pass_inline_calls in ir.h.
//
// The node itself becomes the first op and keeps its control inputs. Whatever read its output 0
// reads the last op's.
#include <math.h>

#include "step/calls.h"
#include "tensor/float16.h"

// Kinds of nodes: the first op in them, how many inputs it takes, and the attribute that lists the
// ops after it.
static const struct {
  const char *composite, *first;
  int32_t inputs;
  const char* steps;
} kinds[] = {
    {"_FusedBatchNormEx", "FusedBatchNormV3", 5, "activation_mode"},
    {"_FusedConv2D", "Conv2D", 2, "fused_ops"},
    {"_FusedConv3D", "Conv3D", 2, "fused_ops"},
    {"_FusedDepthwiseConv2dNative", "DepthwiseConv2dNative", 2, "fused_ops"},
    {"_FusedMatMul", "MatMul", 2, "fused_ops"},
    {"_TensorToHashBucketFast", "AsString", 1, NULL},
    {"_UnaryOpsComposition", NULL, 1, "op_names"},
};

typedef struct expansion_t {
  rn_ir_t* ir;
  int32_t index;
  rn_ir_node_t node;  // a copy of the composite node
  int32_t at;         // inputs used so far
  rn_ir_edge_t last;  // the result so far
  int32_t parts;      // nodes added
} expansion_t;

static rn_status_t cannot(const expansion_t* e, rn_str_t step) {
  if (rn_str_is(rn_str(e->node.op->name), "_UnaryOpsComposition"))
    return rn_invalid_argument("Do not have a compute function registered for op: %.*s",
                               RN_STR_ARGS(step));
  return rn_unimplemented("Node %.*s: %s cannot fuse %.*s", RN_STR_ARGS(e->node.name),
                          e->node.op->name, RN_STR_ARGS(step));
}

// Adds a node that reads |inputs|; its |output_count| outputs have the shape of the composite
// node's, the first one.
static rn_status_t add(expansion_t* e, rn_str_t op, const rn_attr_t* given,
                       const rn_ir_edge_t* inputs, int32_t input_count, int32_t output_count,
                       rn_ir_edge_t* out) {
  rn_ir_node_t made = {.op = rn_op_find(op),
                       .extra_count = e->node.extra_count,
                       .extras = e->node.extras,
                       .requested_device = e->node.requested_device,
                       .feed = -1};
  if (!made.op || made.op->role != RN_ROLE_PLAIN || made.op->input_count != input_count ||
      made.op->output_count != output_count)
    return cannot(e, op);
  RN_RETURN_IF_ERROR(rn_arena_printf(&e->ir->arena, &made.name, "%.*s/_part_%d",
                                     RN_STR_ARGS(e->node.name), ++e->parts));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(e->ir, input_count, output_count, e->node.types[0],
                                      e->node.shapes[0], &made));
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(e->ir, made.op, &e->node, given, &made.attrs));
  for (int32_t i = 0; i < input_count; ++i) made.inputs[i] = inputs[i];
  for (int32_t o = 1; o < output_count; ++o) {
    made.types[o] = RN_FLOAT;
    made.shapes[o] = RN_SHAPE_UNKNOWN;
  }
  int32_t index = -1;
  RN_RETURN_IF_ERROR(rn_ir_add(e->ir, &made, &index));
  *out = (rn_ir_edge_t){index, 0};
  return RN_OK;
}

// Adds the op |op| of the result so far and the next |args| inputs of the composite node.
static rn_status_t follow(expansion_t* e, const char* op, const rn_attr_t* given, int32_t args,
                          int32_t output_count) {
  rn_ir_edge_t inputs[5] = {e->last};
  if (args > 4 || e->at + args > e->node.input_count) return cannot(e, rn_str(op));
  for (int32_t i = 0; i < args; ++i) inputs[1 + i] = e->node.inputs[e->at++];
  return add(e, rn_str(op), given, inputs, 1 + args, output_count, &e->last);
}

// A scalar of the node's type.
static rn_status_t add_scalar(expansion_t* e, double value, rn_ir_edge_t* out) {
  rn_tensor_t scalar = {0};
  rn_dtype_t type = e->node.types[0];
  RN_RETURN_IF_ERROR(rn_tensor_create(e->ir->allocator, type, (rn_shape_t){0, NULL}, &scalar));
  if (type == RN_DOUBLE)
    *RN_DATA(&scalar, double) = value;
  else if (type == RN_FLOAT)
    *RN_DATA(&scalar, float) = (float)value;
  else
    *RN_DATA(&scalar, uint16_t) =
        type == RN_HALF ? rn_float_to_half((float)value) : rn_float_to_bfloat16((float)value);
  rn_str_t name;
  rn_status_t status =
      rn_arena_printf(&e->ir->arena, &name, "%.*s/_part_%d", RN_STR_ARGS(e->node.name), ++e->parts);
  if (!rn_ok(status)) {
    rn_tensor_clear(&scalar);
    return status;
  }
  *out = (rn_ir_edge_t){-1, 0};
  return rn_ir_add_constant(e->ir, name, &scalar, &out->node);
}

static rn_status_t binary(expansion_t* e, const char* op, rn_ir_edge_t a, rn_ir_edge_t b,
                          rn_ir_edge_t* out) {
  const rn_ir_edge_t inputs[2] = {a, b};
  return add(e, rn_str(op), NULL, inputs, 2, 1, out);
}

// x Φ(x), exactly or by the approximation with tanh.
static rn_status_t gelu(expansion_t* e, bool is_exact) {
  rn_ir_edge_t x = e->last, half, one, scale, inner;
  RN_RETURN_IF_ERROR(add_scalar(e, 0.5, &half));
  RN_RETURN_IF_ERROR(add_scalar(e, 1.0, &one));
  RN_RETURN_IF_ERROR(
      add_scalar(e, is_exact ? sqrt(0.5) : sqrt(2 / 3.14159265358979323846), &scale));
  inner = x;
  if (!is_exact) {  // x + 0.044715 x³
    rn_ir_edge_t factor, square;
    RN_RETURN_IF_ERROR(add_scalar(e, 0.044715, &factor));
    RN_RETURN_IF_ERROR(binary(e, "Mul", x, x, &square));
    RN_RETURN_IF_ERROR(binary(e, "Mul", square, factor, &inner));
    RN_RETURN_IF_ERROR(binary(e, "AddV2", inner, one, &inner));
    RN_RETURN_IF_ERROR(binary(e, "Mul", inner, x, &inner));
  }
  RN_RETURN_IF_ERROR(binary(e, "Mul", inner, scale, &inner));
  RN_RETURN_IF_ERROR(add(e, is_exact ? RN_STR("Erf") : RN_STR("Tanh"), NULL, &inner, 1, 1, &inner));
  RN_RETURN_IF_ERROR(binary(e, "AddV2", inner, one, &inner));
  RN_RETURN_IF_ERROR(binary(e, "Mul", inner, half, &inner));
  return binary(e, "Mul", inner, x, &e->last);
}

// The format for ops that only know images.
static rn_str_t image_format(const expansion_t* e) {
  const rn_attr_value_t* format = rn_ir_attr(&e->node, RN_STR("data_format"));
  bool is_first = format && format->s.size > 1 && format->s.data[1] == 'C';
  return is_first ? RN_STR("NCHW") : RN_STR("NHWC");
}

static rn_status_t add_step(expansion_t* e, rn_str_t step) {
  static const char* const plain[] = {"Relu", "Relu6", "Elu", "Tanh", "Sigmoid"};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; ++i)
    if (rn_str_is(step, plain[i])) return follow(e, plain[i], NULL, 0, 1);
  if (rn_str_is(step, "Add")) return follow(e, "AddV2", NULL, 1, 1);
  if (rn_str_is(step, "GeluExact") || rn_str_is(step, "GeluApproximate"))
    return gelu(e, rn_str_is(step, "GeluExact"));
  if (rn_str_is(step, "LeakyRelu")) {
    const rn_attr_value_t* alpha = rn_ir_attr(&e->node, RN_STR("leakyrelu_alpha"));
    const rn_attr_t given[] = {{RN_STR("alpha"), {.f = alpha ? alpha->f : 0.2f}}, RN_ATTRS_END};
    return follow(e, "LeakyRelu", given, 0, 1);
  }
  const rn_attr_t given[] = {{RN_STR("data_format"), {.s = image_format(e)}},
                             {RN_STR("U"), {.type = RN_FLOAT}},
                             {RN_STR("is_training"), {.b = false}},
                             RN_ATTRS_END};
  if (rn_str_is(step, "BiasAdd")) return follow(e, "BiasAdd", given, 1, 1);
  if (rn_str_is(step, "FusedBatchNorm")) return follow(e, "FusedBatchNormV3", given, 4, 6);
  return cannot(e, step);
}

// Turns the composite node into its first op, which reads |inputs| of its inputs.
static rn_status_t become(expansion_t* e, const char* op, int32_t inputs) {
  rn_ir_node_t* node = rn_ir_node(e->ir, e->index);
  const rn_op_def_t* def = rn_op_find(rn_str(op));
  if (!def || def->role != RN_ROLE_PLAIN || def->input_count != inputs ||
      node->input_count < inputs)
    return cannot(e, rn_str(op));
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(e->ir, def, &e->node, NULL, &node->attrs));
  node->op = def;
  node->input_count = inputs;
  return RN_OK;
}

static rn_status_t add_hash(expansion_t* e) {
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(follow(e, "StringToHashBucketFast", NULL, 0, 1));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&e->ir->arena, 1, &types));
  types[0] = RN_STRING;
  rn_ir_node(e->ir, e->index)->types = types;
  return RN_OK;
}

static rn_status_t add_steps(expansion_t* e, size_t kind) {
  const rn_attr_value_t* steps =
      kinds[kind].steps ? rn_ir_attr(&e->node, rn_str(kinds[kind].steps)) : NULL;
  if (!steps) return add_hash(e);
  if (!steps->is_list) {  // a normalization: an addition and an activation
    if (e->node.input_count > e->at) RN_RETURN_IF_ERROR(follow(e, "AddV2", NULL, 1, 1));
    return rn_str_is(steps->s, "Identity") ? RN_OK : add_step(e, steps->s);
  }
  bool is_chain = !kinds[kind].first;
  for (int i = is_chain; i < steps->count; ++i)
    RN_RETURN_IF_ERROR(is_chain ? add(e, steps->list_s[i], NULL, &e->last, 1, 1, &e->last)
                                : add_step(e, steps->list_s[i]));
  return RN_OK;
}

static rn_status_t expand(rn_ir_t* ir, int32_t index, size_t kind) {
  expansion_t e = {.ir = ir,
                   .index = index,
                   .node = *rn_ir_node(ir, index),
                   .at = kinds[kind].inputs,
                   .last = {index, 0}};
  const char* first = kinds[kind].first;
  char name[64] = "";
  if (!first) {
    const rn_attr_value_t* chain = rn_ir_attr(&e.node, rn_str(kinds[kind].steps));
    if (!chain->count || chain->list_s[0].size >= sizeof name)
      return rn_invalid_argument("Node %.*s fuses no ops", RN_STR_ARGS(e.node.name));
    memcpy(name, chain->list_s[0].data, chain->list_s[0].size);
    first = name;
  }
  int32_t before = (int32_t)ir->nodes.count;
  RN_RETURN_IF_ERROR(become(&e, first, kinds[kind].inputs));
  RN_RETURN_IF_ERROR(add_steps(&e, kind));
  if (e.last.node == index) return RN_OK;
  // The parts themselves go on reading the first op.
  rn_ir_replace_edge(ir, (rn_ir_edge_t){index, 0}, e.last);
  for (int32_t n = before; n < (int32_t)ir->nodes.count; ++n) {
    rn_ir_node_t* part = rn_ir_node(ir, n);
    for (int32_t i = 0; i < part->input_count; ++i)
      if (part->inputs[i].node == e.last.node && part->inputs[i].output == 0)
        part->inputs[i] = (rn_ir_edge_t){index, 0};
  }
  return RN_OK;
}

rn_status_t rn_expand_composites(rn_ir_t* ir) {
  size_t count = ir->nodes.count;
  for (size_t n = 0; n < count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || !rn_ir_is_role(node, RN_ROLE_COMPOSITE)) continue;
    if (rn_expand_is_list(node)) {
      RN_RETURN_IF_ERROR(rn_expand_list(ir, (int32_t)n));
      continue;
    }
    size_t kind = 0, kind_count = sizeof kinds / sizeof *kinds;
    while (kind < kind_count && strcmp(node->op->name, kinds[kind].composite) != 0) ++kind;
    RN_ASSERT(kind < kind_count);
    if (kind < kind_count) RN_RETURN_IF_ERROR(expand(ir, (int32_t)n, kind));
  }
  return RN_OK;
}
