// The graph with 8-bit weights and activations, made of ops that stock TensorFlow has too:
//
//   weights       Const (qint8, levels -127 to 127) and Dequantize (SCALED), one scale per channel
//   activations   FakeQuantWithMinMaxArgs (8 bits) after every value that layers read
//
// All other nodes and their names stay. A shortcut that reads such a value reads it quantized too,
// so that only levels are kept of it.
#include <math.h>

#include "cli/quantize.h"
#include "tensor/tensor_proto.h"

#define TOP_LEVEL 127

typedef struct cli_quant_writer_t {
  rn_cli_quant_t* q;
  rn_map_t names;          // of nodes -> rn_pb_NodeDef_t
  rn_pb_NodeDef_t* nodes;  // the new list
  uint32_t count;
} cli_quant_writer_t;

// A name that no node has: |base|/|name|, or with a number after it.
static rn_status_t unique_name(cli_quant_writer_t* w, rn_str_t base, const char* name,
                               rn_str_t* out) {
  RN_RETURN_IF_ERROR(rn_arena_printf(&w->q->arena, out, "%.*s/%s", RN_STR_ARGS(base), name));
  for (int n = 1; rn_map_get(&w->names, *out); ++n)
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&w->q->arena, out, "%.*s/%s_%d", RN_STR_ARGS(base), name, n));
  return RN_OK;
}

static rn_status_t add_node(cli_quant_writer_t* w, rn_str_t base, const char* name, const char* op,
                            const rn_str_t* inputs, uint32_t input_count,
                            const rn_pb_NodeDef_AttrEntry_t* attrs, uint32_t attr_count,
                            rn_str_t* out_name) {
  rn_arena_t* arena = &w->q->arena;
  rn_pb_NodeDef_t* node = &w->nodes[w->count];
  *node = (rn_pb_NodeDef_t){.op = rn_str(op)};
  RN_RETURN_IF_ERROR(unique_name(w, base, name, &node->name));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, input_count, &node->input.items));
  for (uint32_t i = 0; i < input_count; ++i) node->input.items[i] = inputs[i];
  node->input.count = input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, attr_count, &node->attr.items));
  for (uint32_t i = 0; i < attr_count; ++i) {
    node->attr.items[i].key = attrs[i].key;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &node->attr.items[i].value));
    *node->attr.items[i].value = *attrs[i].value;
  }
  node->attr.count = attr_count;
  RN_RETURN_IF_ERROR(rn_map_put(&w->names, node->name, node));
  ++w->count;
  *out_name = node->name;
  return RN_OK;
}

#define ATTR(name_, field_, ...)                                  \
  {                                                               \
    RN_STR(name_), &(rn_pb_AttrValue_t) {                         \
      rn_pb_AttrValue_##field_##_field, { .field_ = __VA_ARGS__ } \
    }                                                             \
  }

static rn_status_t add_constant(cli_quant_writer_t* w, rn_str_t base, const char* name,
                                const rn_tensor_t* value, rn_str_t* out_name) {
  rn_pb_TensorProto_t *borrowed = NULL, *proto = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->q->arena, &borrowed));
  RN_RETURN_IF_ERROR(rn_tensor_to_proto(value, RN_TENSOR_CONTENT, &w->q->arena, borrowed));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->q->arena, &proto));
  *proto = *borrowed;
  RN_RETURN_IF_ERROR(rn_arena_str(&w->q->arena, borrowed->tensor_content, &proto->tensor_content));
  const rn_pb_NodeDef_AttrEntry_t attrs[] = {ATTR("dtype", type, (int32_t)value->dtype),
                                             ATTR("value", tensor, proto)};
  return add_node(w, base, name, "Const", NULL, 0, attrs, 2, out_name);
}

// The weights as [outer][channels][inner].
typedef struct cli_quant_weights_t {
  const float* values;
  int64_t outer, channels, inner;
} cli_quant_weights_t;

static cli_quant_weights_t weights_of(const rn_cli_quant_layer_t* layer) {
  cli_quant_weights_t w = {.values = layer->weights->data, .outer = 1, .inner = 1};
  for (int i = 0; i < layer->axis; ++i) w.outer *= rn_tensor_dim(layer->weights, i);
  for (int i = layer->axis + 1; i < layer->weights->rank; ++i)
    w.inner *= rn_tensor_dim(layer->weights, i);
  w.channels = rn_tensor_dim(layer->weights, layer->axis);
  return w;
}

static float largest_of(const cli_quant_weights_t* w, int64_t channel) {
  float largest = 0;
  for (int64_t o = 0; o < w->outer; ++o)
    for (int64_t i = 0; i < w->inner; ++i)
      largest = fmaxf(largest, fabsf(w->values[(o * w->channels + channel) * w->inner + i]));
  // A channel of zeros, or of numbers too small to divide by, needs a scale too.
  return largest < 0x1p-100f ? 1 : largest;
}

// Fills |levels|, and the limits that give Dequantize its scales.
static void quantize(const rn_cli_quant_layer_t* layer, int8_t* levels, float* min, float* max) {
  cli_quant_weights_t w = weights_of(layer);
  for (int64_t c = 0; c < w.channels; ++c) {
    max[c] = largest_of(&w, c);
    min[c] = -max[c];
    float scale = max[c] / TOP_LEVEL;  // as Dequantize computes it
    for (int64_t o = 0; o < w.outer; ++o)
      for (int64_t i = 0; i < w.inner; ++i) {
        int64_t at = (o * w.channels + c) * w.inner + i;
        float level = rintf(w.values[at] / scale);
        levels[at] = (int8_t)fmaxf(-TOP_LEVEL, fminf(TOP_LEVEL, level));
      }
  }
}

static rn_status_t add_weights(cli_quant_writer_t* w, const rn_cli_quant_layer_t* layer,
                               rn_str_t* out_name) {
  rn_allocator_t allocator = w->q->cli->allocator;
  rn_str_t base = layer->node->name, inputs[3] = {{0}};
  int64_t channels = rn_tensor_dim(layer->weights, layer->axis);
  rn_tensor_t levels = {0}, min = {0}, max = {0};
  rn_status_t status =
      rn_tensor_create(allocator, RN_QINT8, rn_tensor_shape(layer->weights), &levels);
  rn_shape_t shape = {1, &channels};
  if (rn_ok(status)) status = rn_tensor_create(allocator, RN_FLOAT, shape, &min);
  if (rn_ok(status)) status = rn_tensor_create(allocator, RN_FLOAT, shape, &max);
  if (rn_ok(status)) {
    quantize(layer, levels.data, min.data, max.data);
    status = add_constant(w, base, "levels", &levels, &inputs[0]);
  }
  if (rn_ok(status)) status = add_constant(w, base, "levels_min", &min, &inputs[1]);
  if (rn_ok(status)) status = add_constant(w, base, "levels_max", &max, &inputs[2]);
  rn_tensor_clear(&levels);
  rn_tensor_clear(&min);
  rn_tensor_clear(&max);
  RN_RETURN_IF_ERROR(status);
  const rn_pb_NodeDef_AttrEntry_t attrs[] = {
      ATTR("T", type, RN_QINT8), ATTR("mode", s, RN_STR("SCALED")), ATTR("narrow_range", b, true),
      ATTR("axis", i, layer->axis), ATTR("dtype", type, RN_FLOAT)};
  return add_node(w, base, "dequantized", "Dequantize", inputs, 3, attrs, 5, out_name);
}

static rn_status_t add_activation(cli_quant_writer_t* w, const rn_cli_quant_source_t* source,
                                  rn_str_t* out_name) {
  rn_str_t input = source->edge.node->name;
  if (source->edge.index)
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&w->q->arena, &input, "%.*s:%d", RN_STR_ARGS(input), source->edge.index));
  const rn_pb_NodeDef_AttrEntry_t attrs[] = {ATTR("min", f, source->low),
                                             ATTR("max", f, source->high), ATTR("num_bits", i, 8),
                                             ATTR("narrow_range", b, false)};
  return add_node(w, source->edge.node->name, "quantized", "FakeQuantWithMinMaxArgs", &input, 1,
                  attrs, 4, out_name);
}

// Makes input |i| of |node| read |from|. No other node shares the inputs of a decoded node.
static rn_status_t redirect(cli_quant_writer_t* w, const rn_node_t* node, int32_t i,
                            rn_str_t from) {
  rn_pb_NodeDef_t* def = rn_map_get(&w->names, node->name);
  if (!def || (uint32_t)i >= def->input.count)
    return rn_internal("'%.*s' is not in the frozen graph", RN_STR_ARGS(node->name));
  def->input.items[i] = from;
  return RN_OK;
}

static bool is_used(const rn_cli_quant_t* q, size_t source) {
  for (size_t i = 0; i < q->layers.count; ++i)
    if (q->layers.items[i].source == (int32_t)source) return true;
  return false;
}

static rn_status_t write_source(cli_quant_writer_t* w, size_t index) {
  const rn_cli_quant_source_t* source = &w->q->sources.items[index];
  rn_str_t name;
  if (!is_used(w->q, index)) return RN_OK;
  RN_RETURN_IF_ERROR(add_activation(w, source, &name));
  for (size_t i = 0; i < w->q->layers.count; ++i)
    if (w->q->layers.items[i].source == (int32_t)index)
      RN_RETURN_IF_ERROR(redirect(w, w->q->layers.items[i].reader, 0, name));
  const rn_output_t* output = &source->edge.node->outputs[source->edge.index];
  for (size_t c = 0; c < output->consumers.count; ++c) {
    const rn_consumer_t* consumer = &output->consumers.items[c];
    if (rn_cli_quant_is_shortcut(consumer->node))
      RN_RETURN_IF_ERROR(redirect(w, consumer->node, consumer->input, name));
  }
  return RN_OK;
}

// Drops the constants that nothing reads any more: the float weights.
static rn_status_t drop_unread(cli_quant_writer_t* w) {
  rn_map_t read;
  rn_map_init(&read, w->q->cli->allocator);
  rn_status_t status = RN_OK;
  for (uint32_t n = 0; n < w->count; ++n)
    for (uint32_t i = 0; rn_ok(status) && i < w->nodes[n].input.count; ++i) {
      rn_str_t edge = w->nodes[n].input.items[i];
      if (edge.size && edge.data[0] == '^') edge = rn_str_n(edge.data + 1, edge.size - 1);
      rn_str_t name = rn_str_split(&edge, ':');
      status = rn_map_put(&read, name, w);
    }
  uint32_t kept = 0;
  for (uint32_t n = 0; rn_ok(status) && n < w->count; ++n)
    if (!rn_str_is(w->nodes[n].op, "Const") || rn_map_get(&read, w->nodes[n].name))
      w->nodes[kept++] = w->nodes[n];
  w->count = kept;
  rn_map_clear(&read);
  return status;
}

static rn_status_t write_graph(cli_quant_writer_t* w, rn_pb_GraphDef_t* out) {
  rn_cli_quant_t* q = w->q;
  size_t most = out->node.count + q->sources.count + 4 * q->layers.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, most, &w->nodes));
  for (uint32_t n = 0; n < out->node.count; ++n) {
    rn_pb_NodeDef_t* node = &w->nodes[w->count++];
    *node = out->node.items[n];
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, node->input.count, &node->input.items));
    for (uint32_t i = 0; i < node->input.count; ++i)
      node->input.items[i] = out->node.items[n].input.items[i];
    RN_RETURN_IF_ERROR(rn_map_put(&w->names, node->name, node));
  }
  for (size_t s = 0; s < q->sources.count; ++s) RN_RETURN_IF_ERROR(write_source(w, s));
  for (size_t i = 0; i < q->layers.count; ++i) {
    rn_str_t name;
    if (q->layers.items[i].source < 0) continue;
    RN_RETURN_IF_ERROR(add_weights(w, &q->layers.items[i], &name));
    RN_RETURN_IF_ERROR(redirect(w, q->layers.items[i].node, 1, name));
  }
  RN_RETURN_IF_ERROR(drop_unread(w));
  out->node.items = w->nodes;
  out->node.count = out->node.capacity = w->count;
  return RN_OK;
}

rn_status_t rn_cli_quant_rewrite(rn_cli_quant_t* q, rn_pb_GraphDef_t** out) {
  cli_quant_writer_t w = {.q = q};
  rn_map_init(&w.names, q->cli->allocator);
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&q->arena, out));
  **out = *q->frozen;
  rn_status_t status = write_graph(&w, *out);
  rn_map_clear(&w.names);
  return status;
}
