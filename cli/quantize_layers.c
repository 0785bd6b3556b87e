// Finds the layers of a frozen graph: see quantize.h.
//
// A layer reads a value through nodes that quantization commutes with: zero padding, the largest of
// some elements, another shape. Its value is then quantized before those, so that convolutions that
// follow each other pass levels and not floats.
#include <math.h>

#include "cli/quantize.h"

#define MOST_NODES_BETWEEN 8

static bool is_op(const rn_node_t* node, const char* name) {
  return strcmp(node->op->name, name) == 0;
}

static bool is_one_of(const rn_node_t* node, const char* const* names) {
  for (; *names; ++names)
    if (is_op(node, *names)) return true;
  return false;
}

static bool is_layer(const rn_node_t* node) {
  static const char* const names[] = {"Conv2D", "DepthwiseConv2dNative", "MatMul", NULL};
  return is_one_of(node, names);
}

// Ops that multiply by weights, for which there is no 8-bit form.
static bool is_other_layer(const rn_node_t* node) {
  static const char* const names[] = {"Conv3D",
                                      "Conv2DBackpropInput",
                                      "BatchMatMul",
                                      "BatchMatMulV2",
                                      "BatchMatMulV3",
                                      "Einsum",
                                      "LSTMBlockCell",
                                      "GRUBlockCell",
                                      "BlockLSTM",
                                      "BlockLSTMV2",
                                      "_FusedConv2D",
                                      "_FusedMatMul",
                                      NULL};
  return is_one_of(node, names);
}

// Nodes between a value and the layer: quantizing before or after them is the same.
static bool is_between(const rn_node_t* node) {
  static const char* const names[] = {"MaxPool",    "Pad",      "Reshape", "Squeeze",
                                      "ExpandDims", "Identity", NULL};
  return is_one_of(node, names) && node->controls.count == 0;
}

bool rn_cli_quant_is_shortcut(const rn_node_t* node) {
  if (!is_op(node, "AddV2") && !is_op(node, "Add")) return false;
  return !rn_node_constant(node->inputs[0].node) && !rn_node_constant(node->inputs[1].node);
}

static bool is_output(const rn_cli_quant_t* q, const rn_node_t* node) {
  for (int32_t i = 0; i < q->output_count; ++i)
    if (q->plain.outputs[i].node == node) return true;
  return false;
}

static bool has_text(const rn_node_t* node, const char* attr, const char* text) {
  const rn_attr_value_t* value = rn_node_attr(node, rn_str(attr));
  return !value || rn_str_is(value->s, text);
}

static bool has_flag(const rn_node_t* node, const char* attr) {
  const rn_attr_value_t* value = rn_node_attr(node, rn_str(attr));
  return value && value->b;
}

static bool is_finite(const rn_tensor_t* weights) {
  for (int64_t i = 0; i < weights->count; ++i)
    if (!isfinite(RN_DATA(weights, const float)[i])) return false;
  return weights->count > 0;
}

// Whether --float names the layer, or a scope that it is in.
static bool is_kept(const rn_cli_quant_t* q, rn_str_t name) {
  size_t at = 0;
  for (const char* text; (text = rn_cli_each(q->cli, "--float", &at));) {
    rn_str_t kept = rn_str(text);
    if (rn_str_eq(kept, name)) return true;
    if (name.size > kept.size && name.data[kept.size] == '/' && rn_str_starts_with(name, kept))
      return true;
  }
  return false;
}

static const char* why_float(const rn_cli_quant_t* q, const uint8_t* in_flow,
                             const rn_cli_quant_layer_t* layer) {
  const rn_node_t* node = layer->node;
  bool is_conv = !is_op(node, "MatMul");
  if (!is_layer(node)) return "there is no 8-bit form of this op";
  if (is_kept(q, node->name)) return "--float keeps it";
  if (rn_dtype_base(node->outputs[0].dtype) != RN_FLOAT) return "it does not compute in float";
  if (in_flow[node->id]) return "it is in a loop or a conditional";
  if (is_conv && !has_text(node, "data_format", "NHWC")) return "its channels do not come last";
  if (has_flag(node, "transpose_a")) return "it transposes its input";
  if (!layer->weights) return "its weights are not constant";
  if (rn_node_constant(node->inputs[0].node)) return "its input is constant";
  if (layer->weights->rank != (is_conv ? 4 : 2)) return "its weights have an unusual shape";
  return is_finite(layer->weights) ? NULL : "its weights are empty or not finite";
}

enum { IN_LOOP = 1, IN_BRANCH = 2 };

// What |node| is in, given what its inputs are in. |*nested| collects what is nested in itself: the
// end of an inner loop then says nothing.
static uint8_t flow_of(const rn_node_t* node, const uint8_t* flow, uint8_t* nested) {
  uint8_t in = 0;
  rn_op_role_t role = (rn_op_role_t)node->op->role;
  for (int32_t i = 0; i < node->input_count; ++i) in |= flow[node->inputs[i].node->id];
  uint8_t begins = role == RN_ROLE_ENTER ? IN_LOOP : role == RN_ROLE_SWITCH ? IN_BRANCH : 0;
  uint8_t ends = role == RN_ROLE_EXIT ? IN_LOOP : role == RN_ROLE_MERGE ? IN_BRANCH : 0;
  *nested |= in & begins;
  return (uint8_t)((in | begins) & ~(ends & ~*nested));
}

// Marks the nodes that may run several times in a step, or not at all: their values cannot be
// fetched.
static rn_status_t mark_flow(rn_cli_quant_t* q, uint8_t** out) {
  rn_graph_t* graph = q->plain.graph;
  uint8_t nested = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, graph->nodes.count, out));
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t n = 0; n < graph->nodes.count; ++n) {
      const rn_node_t* node = graph->nodes.items[n];
      uint8_t old = (*out)[node->id], in = old | flow_of(node, *out, &nested);
      changes |= in != old;
      (*out)[node->id] = in;
    }
  }
  return RN_OK;
}

// Whether all that reads |node| are layers and shortcuts, directly or through nodes between.
static bool serves_layers(const rn_cli_quant_t* q, const rn_node_t* node, int depth) {
  if (is_output(q, node) || depth > MOST_NODES_BETWEEN) return false;
  for (int32_t o = 0; o < node->output_count; ++o)
    for (size_t c = 0; c < node->outputs[o].consumers.count; ++c) {
      const rn_consumer_t* consumer = &node->outputs[o].consumers.items[c];
      bool is_data = consumer->input == 0;
      if (rn_cli_quant_is_shortcut(consumer->node)) continue;
      if (is_data && is_layer(consumer->node)) continue;
      if (is_data && is_between(consumer->node) && serves_layers(q, consumer->node, depth + 1))
        continue;
      return false;
    }
  return true;
}

static bool can_pass(const rn_cli_quant_t* q, const rn_node_t* node) {
  if (!is_between(node) || rn_dtype_base(node->outputs[0].dtype) != RN_FLOAT) return false;
  if (is_op(node, "MaxPool") && !has_text(node, "data_format", "NHWC")) return false;
  return serves_layers(q, node, 0) && !rn_node_constant(node->inputs[0].node);
}

static rn_status_t find_source(rn_cli_quant_t* q, rn_cli_quant_layer_t* layer) {
  layer->reader = layer->node;
  for (int n = 0; n < MOST_NODES_BETWEEN && can_pass(q, layer->reader->inputs[0].node); ++n)
    layer->reader = layer->reader->inputs[0].node;
  rn_edge_t edge = layer->reader->inputs[0];
  for (size_t s = 0; s < q->sources.count; ++s) {
    const rn_edge_t* other = &q->sources.items[s].edge;
    layer->source = (int32_t)s;
    if (other->node == edge.node && other->index == edge.index) return RN_OK;
  }
  layer->source = (int32_t)q->sources.count;
  rn_cli_quant_source_t source = {.edge = edge, .min = INFINITY, .max = -INFINITY};
  return rn_vec_push(&q->sources, q->cli->allocator, source);
}

static int axis_of(const rn_node_t* node) {
  if (is_op(node, "Conv2D")) return 3;
  if (is_op(node, "MatMul")) return has_flag(node, "transpose_b") ? 0 : 1;
  return 2;
}

static rn_status_t add_layer(rn_cli_quant_t* q, const uint8_t* in_flow, rn_node_t* node) {
  rn_cli_quant_layer_t layer = {.node = node, .source = -1};
  if (!is_layer(node) && !is_other_layer(node)) return RN_OK;
  layer.weights = node->input_count > 1 ? rn_node_constant(node->inputs[1].node) : NULL;
  layer.reason = why_float(q, in_flow, &layer);
  if (!layer.reason) {
    layer.axis = axis_of(node);
    RN_RETURN_IF_ERROR(find_source(q, &layer));
  }
  return rn_vec_push(&q->layers, q->cli->allocator, layer);
}

static rn_status_t check_kept(const rn_cli_quant_t* q) {
  size_t at = 0;
  for (const char* text; (text = rn_cli_each(q->cli, "--float", &at));) {
    rn_str_t kept = rn_str(text);
    bool is_found = false;
    for (size_t i = 0; i < q->layers.count && !is_found; ++i) {
      rn_str_t name = q->layers.items[i].node->name;
      is_found =
          rn_str_eq(name, kept) || (rn_str_starts_with(name, kept) && name.data[kept.size] == '/');
    }
    if (!is_found)
      return rn_not_found("--float %s: the model has no layer of that name, nor in such a scope",
                          text);
  }
  return RN_OK;
}

rn_status_t rn_cli_quant_find_layers(rn_cli_quant_t* q) {
  rn_graph_t* graph = q->plain.graph;
  uint8_t* in_flow = NULL;
  RN_RETURN_IF_ERROR(mark_flow(q, &in_flow));
  for (size_t n = 0; n < graph->nodes.count; ++n)
    RN_RETURN_IF_ERROR(add_layer(q, in_flow, graph->nodes.items[n]));
  RN_RETURN_IF_ERROR(check_kept(q));
  if (q->sources.count) return RN_OK;
  if (!q->layers.count)
    return rn_invalid_argument("'%s' has no convolution or matmul to quantize", q->path);
  const rn_cli_quant_layer_t* first = &q->layers.items[0];
  return rn_invalid_argument("'%s': none of %zu layers can be quantized; '%.*s' (%s): %s", q->path,
                             q->layers.count, RN_STR_ARGS(first->node->name), first->node->op->name,
                             first->reason);
}
