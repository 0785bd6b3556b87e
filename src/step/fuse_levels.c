// Computes quantized convolutions and matmuls with 8-bit integers.
//
// A layer is quantized if its input is a FakeQuantWithMinMaxArgs of 8 bits and its weights are the
// Dequantize of constant 8-bit levels. All such values are then kept as levels, one byte each: the
// FakeQuant becomes the end of the layer before it, together with the bias, the addition of a
// shortcut and the ReLU, or a node of its own. Pooling and reshaping between a FakeQuant and a
// layer work on levels too; whatever else reads them gets the floats that the FakeQuant would give,
// bit by bit.
//
// The floats that a layer sums in the original graph are products of two scales and two integers.
// The integers are summed exactly here, and the scales applied once, so the result may differ in
// the last bits from a sum of floats: invariant 20.
#include <math.h>

#include "framework/internal_ops.h"
#include "step/make.h"

#define MOST_DEPTH 66000  // 255 * 127 times this is the longest sum that 32 bits hold
#define MOST_BETWEEN 8    // nodes between a FakeQuant and a layer

typedef struct fuse_levels_pass_t {
  rn_ir_t* ir;
  rn_ir_uses_t* uses;  // by node, of the original graph
  const rn_op_def_t *then, *to_levels, *from_levels;
  bool* is_levels;      // by node: its result is kept as levels
  const float** range;  // by node: min and max of the levels
  int32_t* floats;      // by node: the node that gives its floats; 0 if there is none yet
  size_t count;         // of the original nodes
} fuse_levels_pass_t;

// A layer with what follows it.
typedef struct fuse_levels_layer_t {
  int32_t product, last;
  const char* kind;
  int64_t channels;
  rn_ir_edge_t x;               // levels
  const rn_tensor_t* paddings;  // of a Pad that becomes part of it; or NULL
  rn_ir_edge_t bias, addend;    // node -1: none
  float limits[2];
  bool has_limits, gives_levels;
} fuse_levels_layer_t;

static bool has_text(const rn_ir_node_t* node, const char* attr, const char* text) {
  const rn_attr_value_t* value = rn_ir_attr(node, rn_str(attr));
  return !value || rn_str_is(value->s, text);
}

static int64_t int_of(const rn_ir_node_t* node, const char* attr) {
  const rn_attr_value_t* value = rn_ir_attr(node, rn_str(attr));
  return value ? value->i : 0;
}

static bool is_on_cpu(const rn_ir_node_t* node) {
  return !node->is_removed && node->feed < 0 && node->kernel && !node->control_count &&
         strcmp(node->kernel->device, "CPU") == 0;
}

static bool is_fake_quant(const rn_ir_node_t* node) {
  return is_on_cpu(node) && rn_ir_is_op(node, "FakeQuantWithMinMaxArgs") &&
         int_of(node, "num_bits") == 8 && !rn_ir_flag(node, "narrow_range");
}

static const rn_tensor_t* constant_of(const fuse_levels_pass_t* p, rn_ir_edge_t edge) {
  return edge.output == 0 ? rn_ir_node(p->ir, edge.node)->constant : NULL;
}

static rn_shape_t shape_of(const fuse_levels_pass_t* p, rn_ir_edge_t edge) {
  return rn_ir_node(p->ir, edge.node)->shapes[edge.output];
}

// The levels of weights that have one scale per index of |axis|; NULL if they are not that.
static const rn_tensor_t* weights_of(const fuse_levels_pass_t* p, rn_ir_edge_t edge, int axis) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, edge.node);
  if (!is_on_cpu(node) || !rn_ir_is_op(node, "Dequantize") || node->types[0] != RN_FLOAT ||
      !has_text(node, "mode", "SCALED") || !rn_ir_flag(node, "narrow_range") ||
      int_of(node, "axis") != axis)
    return NULL;
  const rn_tensor_t* parts[3];
  for (int i = 0; i < 3; ++i) {
    parts[i] = constant_of(p, node->inputs[i]);
    if (!parts[i]) return NULL;
  }
  const rn_tensor_t* levels = parts[0];
  if (levels->dtype != RN_QINT8 || levels->rank <= axis || levels->count == 0) return NULL;
  for (int64_t i = 0; i < levels->count; ++i)
    if (RN_DATA(levels, const int8_t)[i] == INT8_MIN) return NULL;  // not in a narrow range
  int64_t channels = rn_tensor_dim(levels, axis);
  return parts[1]->count == channels && parts[2]->count == channels ? levels : NULL;
}

// The paddings of a Pad that adds rows and columns of zeros; NULL for any other node.
static const rn_tensor_t* paddings_of(const fuse_levels_pass_t* p, const rn_ir_node_t* node) {
  if (!is_on_cpu(node) || !rn_ir_is_op(node, "Pad")) return NULL;
  const rn_tensor_t* value = constant_of(p, node->inputs[1]);
  if (!value || value->count != 8 || value->dtype != RN_INT32) return NULL;
  const int32_t* pads = RN_DATA(value, const int32_t);
  if (pads[0] || pads[1] || pads[6] || pads[7]) return NULL;
  for (int i = 2; i < 6; ++i)
    if (pads[i] < 0) return NULL;
  return value;
}

static rn_status_t attrs_for_levels(const fuse_levels_pass_t* p, const rn_ir_node_t* node,
                                    const rn_attr_value_t** out) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = RN_UINT8}}, RN_ATTRS_END};
  return rn_ir_make_attrs(p->ir, node->op, node, given, out);
}

static bool is_between(const rn_ir_node_t* node) {
  if (!is_on_cpu(node) || node->types[0] != RN_FLOAT) return false;
  if (rn_ir_is_op(node, "MaxPool")) return has_text(node, "data_format", "NHWC");
  return rn_ir_is_op(node, "Reshape") || rn_ir_is_op(node, "Squeeze") ||
         rn_ir_is_op(node, "ExpandDims") || rn_ir_is_op(node, "Pad");
}

// Whether |edge| is a FakeQuant or something between one and a layer. Marks these nodes then.
static bool mark(fuse_levels_pass_t* p, rn_ir_edge_t edge) {
  int32_t path[MOST_BETWEEN];
  int count = 0;
  bool has_pad = false;
  const rn_ir_node_t* node = rn_ir_node(p->ir, edge.node);
  int32_t index = edge.node;
  for (; !is_fake_quant(node); node = rn_ir_node(p->ir, index)) {
    if (count == MOST_BETWEEN || edge.output || !is_between(node)) return false;
    path[count++] = index;
    has_pad |= rn_ir_is_op(node, "Pad");
    edge = node->inputs[0];
    index = edge.node;
  }
  // A Pad adds zeros, and that must be the level of zero.
  if (has_pad && rn_ir_attr(node, RN_STR("min"))->f != 0) return false;
  if (!p->is_levels[index]) {
    float* range = NULL;
    rn_status_t status = RN_ARENA_ARRAY(&p->ir->arena, 2, &range);
    if (!rn_ok(status)) {
      rn_status_free(status);  // the layer stays as it is
      return false;
    }
    range[0] = rn_ir_attr(node, RN_STR("min"))->f;
    range[1] = rn_ir_attr(node, RN_STR("max"))->f;
    p->range[index] = range;
    p->is_levels[index] = true;
  }
  for (int i = 0; i < count; ++i) {
    p->is_levels[path[i]] = true;
    p->range[path[i]] = p->range[index];
  }
  return true;
}

// Whether a depthwise convolution has one stride and no gaps: its own kernel refuses others.
static bool is_even(const rn_ir_node_t* node) {
  const rn_attr_value_t* strides = rn_ir_attr(node, RN_STR("strides"));
  const rn_attr_value_t* dilations = rn_ir_attr(node, RN_STR("dilations"));
  if (strides->count != 4 || strides->list_i[1] != strides->list_i[2]) return false;
  for (int i = 0; i < dilations->count; ++i)
    if (dilations->list_i[i] != 1) return false;
  return true;
}

// Whether |node| multiplies by 8-bit weights; fills in what does not depend on its input.
static bool is_product(const fuse_levels_pass_t* p, const rn_ir_node_t* node,
                       fuse_levels_layer_t* layer) {
  if (!is_on_cpu(node) || node->input_count != 2 || node->types[0] != RN_FLOAT) return false;
  bool is_matmul = rn_ir_is_op(node, "MatMul"), turned = rn_ir_flag(node, "transpose_b");
  bool is_depthwise = rn_ir_is_op(node, "DepthwiseConv2dNative");
  if (!is_matmul && !is_depthwise && !rn_ir_is_op(node, "Conv2D")) return false;
  if (rn_ir_flag(node, "transpose_a") || !has_text(node, "data_format", "NHWC")) return false;
  int axis = is_matmul ? !turned : is_depthwise ? 2 : 3;
  const rn_tensor_t* w = weights_of(p, node->inputs[1], axis);
  if (!w || w->rank != (is_matmul ? 2 : 4)) return false;
  layer->channels = rn_tensor_dim(w, axis);
  if (!is_depthwise && w->count / layer->channels > MOST_DEPTH) return false;
  if (is_depthwise && (rn_tensor_dim(w, 3) != 1 || !is_even(node))) return false;
  rn_shape_t x = shape_of(p, node->inputs[0]);
  if (x.rank != w->rank) return false;
  if (!is_matmul && x.dims[3] != rn_tensor_dim(w, 2)) return false;  // groups
  layer->kind = is_matmul ? "matmul" : is_depthwise ? "depthwise" : "conv";
  return true;
}

static bool find_input(fuse_levels_pass_t* p, const rn_ir_node_t* node,
                       fuse_levels_layer_t* layer) {
  layer->x = node->inputs[0];
  const rn_ir_node_t* before = rn_ir_node(p->ir, layer->x.node);
  const rn_attr_value_t* padding = rn_ir_attr(node, RN_STR("padding"));
  if (padding && rn_str_is(padding->s, "VALID") && layer->x.output == 0 &&
      rn_ir_only_reader(&p->uses[layer->x.node]) >= 0)
    layer->paddings = paddings_of(p, before);
  if (layer->paddings) layer->x = before->inputs[0];
  return mark(p, layer->x);
}

// Whether |node| can follow the layer: a node on its device that reads only the layer's result and
// perhaps one other value.
static bool may_follow(const fuse_levels_pass_t* p, const fuse_levels_layer_t* layer,
                       const rn_ir_node_t* node) {
  const rn_ir_node_t* product = rn_ir_node(p->ir, layer->product);
  return is_on_cpu(node) && node->device == product->device && node->types[0] == RN_FLOAT &&
         has_text(node, "data_format", "NHWC");
}

static bool take_sum(const fuse_levels_pass_t* p, fuse_levels_layer_t* layer,
                     const rn_ir_node_t* node) {
  bool is_bias = rn_ir_is_op(node, "BiasAdd"), is_first = node->inputs[0].node == layer->last;
  if (!is_bias && !rn_ir_is_op(node, "AddV2") && !rn_ir_is_op(node, "Add")) return false;
  rn_ir_edge_t other = node->inputs[is_first ? 1 : 0];
  if (layer->has_limits || other.node == layer->last || (is_bias && !is_first)) return false;
  rn_shape_t shape = shape_of(p, other), whole = rn_ir_node(p->ir, layer->product)->shapes[0];
  int64_t count;
  if (!rn_shape_is_full(shape) || !rn_shape_count(shape, &count) || shape.rank > whole.rank)
    return false;
  bool is_vector =
      shape.rank > 0 && count == layer->channels && shape.dims[shape.rank - 1] == layer->channels;
  if (is_vector && layer->bias.node < 0 && layer->addend.node < 0)
    layer->bias = other;
  else if (!is_bias && layer->addend.node < 0 && rn_shape_eq(shape, whole))
    layer->addend = other;
  else
    return false;
  return true;
}

static bool take_limits(fuse_levels_layer_t* layer, const rn_ir_node_t* node) {
  bool is_relu = rn_ir_is_op(node, "Relu"), is_relu6 = rn_ir_is_op(node, "Relu6");
  if (layer->has_limits || (!is_relu && !is_relu6)) return false;
  layer->limits[0] = 0;
  layer->limits[1] = is_relu6 ? 6 : INFINITY;
  layer->has_limits = true;
  return true;
}

// Extends the layer by the reader of its last node, if it can be.
static bool take_next(const fuse_levels_pass_t* p, fuse_levels_layer_t* layer) {
  int32_t next = rn_ir_only_reader(&p->uses[layer->last]);
  if (next < 0 || layer->gives_levels) return false;
  const rn_ir_node_t* node = rn_ir_node(p->ir, next);
  if (!may_follow(p, layer, node)) return false;
  if (is_fake_quant(node) && p->is_levels[next])
    layer->gives_levels = true;
  else if (!take_sum(p, layer, node) && !take_limits(layer, node))
    return false;
  layer->last = next;
  return true;
}

static rn_status_t make_attrs(const fuse_levels_pass_t* p, const fuse_levels_layer_t* layer,
                              const rn_attr_value_t** out) {
  const rn_ir_node_t* product = rn_ir_node(p->ir, layer->product);
  float* limits = NULL;
  int64_t* paddings = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 2, &limits));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 8, &paddings));
  memcpy(limits, layer->limits, sizeof layer->limits);
  for (int i = 0; layer->paddings && i < 8; ++i)
    paddings[i] = RN_DATA(layer->paddings, const int32_t)[i];
  bool adds_levels = layer->addend.node >= 0 && p->is_levels[layer->addend.node];
  const rn_attr_t given[] = {
      {RN_STR("N"), {.i = layer->bias.node >= 0}},
      {RN_STR("M"), {.i = layer->addend.node >= 0}},
      {RN_STR("Ta"), {.type = adds_levels ? RN_UINT8 : RN_FLOAT}},
      {RN_STR("Ty"), {.type = layer->gives_levels ? RN_UINT8 : RN_FLOAT}},
      {RN_STR("kind"), {.s = rn_str(layer->kind)}},
      {RN_STR("x_range"), {.count = 2, .list_f = p->range[layer->x.node]}},
      {RN_STR("addend_range"),
       {.count = adds_levels ? 2 : 0, .list_f = adds_levels ? p->range[layer->addend.node] : NULL}},
      {RN_STR("y_range"),
       {.count = layer->gives_levels ? 2 : 0,
        .list_f = layer->gives_levels ? p->range[layer->last] : NULL}},
      {RN_STR("limits"), {.count = layer->has_limits ? 2 : 0, .list_f = limits}},
      {layer->paddings ? RN_STR("padding") : RN_STR(""), {.s = RN_STR("EXPLICIT")}},
      {RN_STR("explicit_paddings"), {.count = 8, .list_i = paddings}},
      RN_ATTRS_END,
  };
  return rn_ir_make_attrs(p->ir, p->then, product, given, out);
}

// Turns the last node of the layer into the fused one, because all operands are available there.
static rn_status_t rewrite(fuse_levels_pass_t* p, const fuse_levels_layer_t* layer) {
  const rn_ir_node_t* product = rn_ir_node(p->ir, layer->product);
  const rn_ir_node_t* weights = rn_ir_node(p->ir, product->inputs[1].node);
  rn_ir_node_t made = *rn_ir_node(p->ir, layer->last);
  const rn_ir_edge_t inputs[6] = {layer->x, weights->inputs[0], weights->inputs[1],
                                  weights->inputs[2]};
  made.op = p->then;
  made.extra_count = 0;
  RN_RETURN_IF_ERROR(make_attrs(p, layer, &made.attrs));
  made.kernel = rn_kernel_find(p->then, made.attrs, NULL, product->kernel->device);
  if (!made.kernel) return rn_internal("there is no kernel for 8-bit layers");
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 6, &made.inputs));
  memcpy(made.inputs, inputs, sizeof inputs);
  made.input_count = 4;
  if (layer->bias.node >= 0) made.inputs[made.input_count++] = layer->bias;
  if (layer->addend.node >= 0) made.inputs[made.input_count++] = layer->addend;
  made.types[0] = layer->gives_levels ? RN_UINT8 : RN_FLOAT;
  for (int32_t at = layer->product; at != layer->last; at = p->uses[at].reader)
    rn_ir_node(p->ir, at)->is_removed = true;
  *rn_ir_node(p->ir, layer->last) = made;
  return RN_OK;
}

// Turns a FakeQuant that no layer ends with into a node that gives levels, and the nodes between
// into ones of levels.
static rn_status_t convert(const fuse_levels_pass_t* p, int32_t index) {
  rn_ir_node_t* node = rn_ir_node(p->ir, index);
  if (node->op == p->then) return RN_OK;
  const rn_attr_t given[] = {{RN_STR("range"), {.count = 2, .list_f = p->range[index]}},
                             RN_ATTRS_END};
  if (is_fake_quant(node)) {
    node->op = p->to_levels;
    node->extra_count = 0;
    RN_RETURN_IF_ERROR(rn_ir_make_attrs(p->ir, p->to_levels, NULL, given, &node->attrs));
  } else {
    RN_RETURN_IF_ERROR(attrs_for_levels(p, node, &node->attrs));
  }
  node->kernel = rn_kernel_find(node->op, node->attrs, NULL, "CPU");
  node->types[0] = RN_UINT8;
  return node->kernel ? RN_OK : rn_internal("there is no kernel of %s for levels", node->op->name);
}

// The node that gives the floats of |index|, which has levels.
static rn_status_t floats_of(fuse_levels_pass_t* p, int32_t index, int32_t* out) {
  *out = p->floats[index];
  if (*out) return RN_OK;
  const rn_attr_t given[] = {{RN_STR("range"), {.count = 2, .list_f = p->range[index]}},
                             RN_ATTRS_END};
  rn_ir_node_t made;
  const rn_ir_node_t* from = rn_ir_node(p->ir, index);
  RN_RETURN_IF_ERROR(
      rn_ir_make_node(p->ir, p->from_levels, from, given, 1, from->shapes[0], &made));
  made.types[0] = RN_FLOAT;
  made.inputs[0] = (rn_ir_edge_t){index, 0};
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, &made, out));
  p->floats[index] = *out;
  return RN_OK;
}

static bool reads_levels(const fuse_levels_pass_t* p, int32_t reader, int32_t input) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, reader);
  if (node->op == p->then)
    return input == 0 ||
           (input == node->input_count - 1 && rn_ir_attr(node, RN_STR("Ta"))->type == RN_UINT8 &&
            rn_ir_attr(node, RN_STR("M"))->i);
  return p->is_levels[reader] && input == 0 && node->op != p->to_levels;
}

static rn_status_t give_floats(fuse_levels_pass_t* p) {
  for (size_t n = 0; n < p->count; ++n)
    for (int32_t i = 0; i < rn_ir_node(p->ir, (int32_t)n)->input_count; ++i) {
      const rn_ir_node_t* node = rn_ir_node(p->ir, (int32_t)n);
      rn_ir_edge_t edge = node->inputs[i];
      if (node->is_removed || edge.node < 0 || !p->is_levels[edge.node] ||
          reads_levels(p, (int32_t)n, i))
        continue;
      int32_t floats;
      RN_RETURN_IF_ERROR(floats_of(p, edge.node, &floats));
      rn_ir_node(p->ir, (int32_t)n)->inputs[i] = (rn_ir_edge_t){floats, 0};
    }
  for (int32_t i = 0; i < p->ir->fetch_count; ++i) {
    rn_ir_edge_t* edge = &p->ir->fetches[i];
    if (!p->is_levels[edge->node]) continue;
    RN_RETURN_IF_ERROR(floats_of(p, edge->node, &edge->node));
  }
  return RN_OK;
}

static rn_status_t begin(fuse_levels_pass_t* p, fuse_levels_layer_t** out_layers) {
  rn_arena_t* arena = &p->ir->arena;
  p->count = p->ir->nodes.count;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(p->ir, &p->uses));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, p->count, &p->is_levels));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, p->count, &p->range));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, p->count, &p->floats));
  return RN_ARENA_ARRAY(arena, p->count, out_layers);
}

rn_status_t rn_pass_fuse_levels(rn_ir_t* ir) {
  fuse_levels_pass_t p = {.ir = ir,
                          .then = rn_op_find(RN_STR("_LevelsThen")),
                          .to_levels = rn_op_find(RN_STR("_ToLevels")),
                          .from_levels = rn_op_find(RN_STR("_FromLevels"))};
  bool has_levels = false;
  for (size_t n = 0; n < ir->nodes.count && !has_levels; ++n)
    has_levels = is_fake_quant(&ir->nodes.items[n]);
  if (!has_levels || !p.then || !p.to_levels || !p.from_levels) return RN_OK;
  fuse_levels_layer_t* layers = NULL;
  RN_RETURN_IF_ERROR(begin(&p, &layers));
  int32_t *order = NULL, count = 0, layer_count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  // In reverse order, so that a shortcut's addition joins the last layer before it.
  for (int32_t i = count - 1; i >= 0; --i) {
    fuse_levels_layer_t layer = {
        .product = order[i], .last = order[i], .bias.node = -1, .addend.node = -1};
    const rn_ir_node_t* node = rn_ir_node(ir, order[i]);
    if (is_product(&p, node, &layer) && find_input(&p, node, &layer)) layers[layer_count++] = layer;
  }
  if (!layer_count) return RN_OK;
  // All layers are known now, and with them which values are levels.
  for (int32_t i = 0; i < layer_count; ++i) {
    if (rn_ir_node(ir, layers[i].product)->is_removed) continue;
    while (take_next(&p, &layers[i])) continue;
    RN_RETURN_IF_ERROR(rewrite(&p, &layers[i]));
  }
  for (size_t n = 0; n < p.count; ++n)
    if (p.is_levels[n]) RN_RETURN_IF_ERROR(convert(&p, (int32_t)n));
  RN_RETURN_IF_ERROR(give_floats(&p));
  return rn_ir_sweep(ir);
}
