// Splits batch norms of a device that compiles loops into statistics per channel and elementwise
// nodes, so that fuse_conv and fuse_loops fuse those with what is around them: the ReLU and the
// shortcut behind a norm, and the ReLU's gradient before the gradient of one. On the CPU, splits
// norms with given statistics behind convolutions, for fuse_conv.
//
//   y  = (x - mean) * factor + offset
//   dx = (dy - a - (x - mean) * b) * factor
//
// with factor = scale / sqrt(variance + epsilon), and a and b from the sums of dy and dy * (x -
// mean) over a channel. 16-bit types are computed in float.
#include "device/device.h"
#include "step/make.h"

typedef struct split_pass_t {
  rn_ir_t* ir;
  const rn_op_def_t *sub, *mul, *add, *sum, *cast, *moments, *factor, *slopes;
  rn_ir_uses_t* uses;  // by node; NULL until needed
} split_pass_t;

// A norm, or a gradient of one, that is being split.
typedef struct split_norm_t {
  split_pass_t* pass;
  rn_ir_node_t node;  // a copy
  rn_shape_t image, channels;
  bool is_lost;  // the device has no kernel for a node
} split_norm_t;

// Adds a node of |op| over floats that is computed with the norm.
static rn_status_t make(split_norm_t* norm, const rn_op_def_t* op, const rn_attr_t* given,
                        const rn_ir_edge_t* inputs, int32_t count, int32_t outputs,
                        rn_shape_t shape, rn_dtype_t type, rn_ir_edge_t* out) {
  rn_ir_t* ir = norm->pass->ir;
  rn_ir_node_t made;
  int32_t index = -1;
  RN_RETURN_IF_ERROR(rn_ir_make_node(ir, op, &norm->node, given, count, shape, &made));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(ir, count, outputs, type, shape, &made));
  memcpy(made.inputs, inputs, (size_t)count * sizeof *inputs);
  norm->is_lost |= !made.kernel;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&ir->arena, &made.name, "%.*s_%zu", RN_STR_ARGS(made.name), ir->nodes.count));
  RN_RETURN_IF_ERROR(rn_ir_add(ir, &made, &index));
  *out = (rn_ir_edge_t){index, 0};
  return RN_OK;
}

static rn_status_t point(split_norm_t* norm, const rn_op_def_t* op, rn_ir_edge_t a, rn_ir_edge_t b,
                         rn_ir_edge_t* out) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = RN_FLOAT}}, RN_ATTRS_END};
  const rn_ir_edge_t inputs[] = {a, b};
  return make(norm, op, given, inputs, 2, 1, norm->image, RN_FLOAT, out);
}

// Sums over everything but the channels.
static rn_status_t sum(split_norm_t* norm, rn_ir_edge_t x, rn_ir_edge_t* out) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = RN_FLOAT}},
                             {RN_STR("data_format"), {.s = RN_STR("NHWC")}},
                             RN_ATTRS_END};
  return make(norm, norm->pass->sum, given, &x, 1, 1, norm->channels, RN_FLOAT, out);
}

static rn_status_t cast(split_norm_t* norm, rn_ir_edge_t x, rn_dtype_t to, rn_ir_edge_t* out) {
  rn_dtype_t from = rn_ir_node(norm->pass->ir, x.node)->types[x.output];
  const rn_attr_t given[] = {
      {RN_STR("SrcT"), {.type = from}}, {RN_STR("DstT"), {.type = to}}, RN_ATTRS_END};
  *out = x;
  if (from == to) return RN_OK;
  return make(norm, norm->pass->cast, given, &x, 1, 1, norm->image, to, out);
}

static rn_ir_edge_t output(rn_ir_edge_t edge, int32_t number) {
  return (rn_ir_edge_t){edge.node, number};
}

// Whether the split makes sense for |node|, which has the channels of its input |x| last.
static bool begin(split_pass_t* pass, int32_t index, int32_t x, split_norm_t* norm) {
  const rn_ir_node_t* node = rn_ir_node(pass->ir, index);
  *norm = (split_norm_t){.pass = pass, .node = *node};
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  if (!format || (!rn_str_is(format->s, "NHWC") && !rn_str_is(format->s, "NDHWC"))) return false;
  rn_ir_edge_t scale = node->inputs[x + 1];
  norm->image = rn_ir_node(pass->ir, node->inputs[x].node)->shapes[node->inputs[x].output];
  norm->channels = rn_ir_node(pass->ir, scale.node)->shapes[scale.output];
  int64_t count;
  bool is_known = rn_shape_is_full(norm->image) && rn_shape_count(norm->image, &count) && count > 0;
  return (is_known || node->device->is_host) && norm->channels.rank == 1 &&
         norm->channels.dims[0] == norm->image.dims[norm->image.rank - 1] &&
         rn_ir_node(pass->ir, scale.node)->types[scale.output] == RN_FLOAT &&
         node->types[1] == RN_FLOAT && !node->control_count;
}

// Puts the split's results in the place of the node's, or takes the split back.
static void finish(split_norm_t* norm, int32_t index, size_t before, const rn_ir_edge_t* results,
                   int32_t count) {
  rn_ir_t* ir = norm->pass->ir;
  for (size_t n = before; norm->is_lost && n < ir->nodes.count; ++n)
    ir->nodes.items[n].is_removed = true;
  if (norm->is_lost) return;
  for (int32_t o = 0; o < count; ++o) rn_ir_replace_edge(ir, (rn_ir_edge_t){index, o}, results[o]);
  rn_ir_node(ir, index)->is_removed = true;
}

static bool is_used(const rn_ir_t* ir, int32_t index, int32_t from) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i)
      if (node->inputs[i].node == index && node->inputs[i].output >= from) return true;
    for (int32_t c = 0; !node->is_removed && c < node->control_count; ++c)
      if (node->controls[c] == index) return true;
  }
  for (int32_t f = 0; f < ir->fetch_count; ++f)
    if (ir->fetches[f].node == index && ir->fetches[f].output >= from) return true;
  for (int32_t t = 0; t < ir->target_count; ++t)
    if (ir->targets[t] == index) return true;
  return false;
}

static rn_status_t split_forward(split_pass_t* pass, int32_t index) {
  split_norm_t norm;
  if (!begin(pass, index, 0, &norm) || is_used(pass->ir, index, 5)) return RN_OK;
  size_t before = pass->ir->nodes.count;
  const rn_ir_edge_t *in = norm.node.inputs, x = in[0], scale = in[1], offset = in[2];
  rn_ir_edge_t results[5] = {{-1, 0}, in[3], in[4], in[3], in[4]}, factor, y;
  if (rn_ir_flag(&norm.node, "is_training")) {
    const rn_ir_edge_t inputs[] = {x, scale, in[3], in[4]};
    rn_ir_edge_t made;
    RN_RETURN_IF_ERROR(
        make(&norm, pass->moments, NULL, inputs, 4, 5, norm.channels, RN_FLOAT, &made));
    for (int32_t o = 0; o < 4; ++o) results[1 + o] = output(made, o);
    factor = output(made, 4);
  } else {
    const rn_ir_edge_t inputs[] = {scale, in[4]};
    RN_RETURN_IF_ERROR(
        make(&norm, pass->factor, NULL, inputs, 2, 1, norm.channels, RN_FLOAT, &factor));
  }
  RN_RETURN_IF_ERROR(cast(&norm, x, RN_FLOAT, &y));
  RN_RETURN_IF_ERROR(point(&norm, pass->sub, y, results[3], &y));
  RN_RETURN_IF_ERROR(point(&norm, pass->mul, y, factor, &y));
  RN_RETURN_IF_ERROR(point(&norm, pass->add, y, offset, &y));
  RN_RETURN_IF_ERROR(cast(&norm, y, norm.node.types[0], &results[0]));
  finish(&norm, index, before, results, 5);
  return RN_OK;
}

static rn_status_t split_gradient(split_pass_t* pass, int32_t index) {
  split_norm_t norm;
  if (!begin(pass, index, 1, &norm) || !rn_ir_flag(&norm.node, "is_training") ||
      is_used(pass->ir, index, 3))
    return RN_OK;
  size_t before = pass->ir->nodes.count;
  const rn_ir_edge_t *in = norm.node.inputs, scale = in[2], mean = in[3], variance = in[4];
  rn_ir_edge_t dy, x, centred, product, dx, sums[2], slopes;
  RN_RETURN_IF_ERROR(cast(&norm, in[0], RN_FLOAT, &dy));
  RN_RETURN_IF_ERROR(cast(&norm, in[1], RN_FLOAT, &x));
  RN_RETURN_IF_ERROR(point(&norm, pass->sub, x, mean, &centred));
  RN_RETURN_IF_ERROR(point(&norm, pass->mul, dy, centred, &product));
  RN_RETURN_IF_ERROR(sum(&norm, dy, &sums[0]));
  RN_RETURN_IF_ERROR(sum(&norm, product, &sums[1]));
  int64_t count = 1;
  for (int d = 0; d + 1 < norm.image.rank; ++d) count *= norm.image.dims[d];
  const rn_attr_t given[] = {{RN_STR("count"), {.i = count}}, RN_ATTRS_END};
  const rn_ir_edge_t inputs[] = {sums[0], sums[1], scale, variance};
  RN_RETURN_IF_ERROR(
      make(&norm, pass->slopes, given, inputs, 4, 4, norm.channels, RN_FLOAT, &slopes));
  RN_RETURN_IF_ERROR(point(&norm, pass->sub, dy, output(slopes, 2), &dx));
  RN_RETURN_IF_ERROR(point(&norm, pass->mul, centred, output(slopes, 3), &product));
  RN_RETURN_IF_ERROR(point(&norm, pass->sub, dx, product, &dx));
  RN_RETURN_IF_ERROR(point(&norm, pass->mul, dx, output(slopes, 1), &dx));
  RN_RETURN_IF_ERROR(cast(&norm, dx, norm.node.types[0], &dx));
  finish(&norm, index, before, (const rn_ir_edge_t[]){dx, slopes, sums[0]}, 3);
  return RN_OK;
}

static bool is_one_of(const rn_ir_node_t* node, const char* const names[3]) {
  for (int i = 0; i < 3; ++i)
    if (rn_ir_is_op(node, names[i])) return true;
  return false;
}

static rn_shape_t shape_of(const split_pass_t* pass, rn_ir_edge_t edge) {
  return rn_ir_node(pass->ir, edge.node)->shapes[edge.output];
}

// Whether |edge| is a convolution on the CPU, maybe with a bias, that nothing but |reader| reads.
static bool is_convolution(const split_pass_t* pass, rn_ir_edge_t edge, int32_t reader) {
  const rn_ir_node_t* node = rn_ir_node(pass->ir, edge.node);
  if (edge.output || node->feed >= 0 || node->control_count ||
      rn_ir_only_reader(&pass->uses[edge.node]) != reader)
    return false;
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  if (format && !rn_str_is(format->s, "NHWC")) return false;
  if (rn_ir_is_op(node, "BiasAdd")) return is_convolution(pass, node->inputs[0], edge.node);
  return rn_ir_is_op(node, "Conv2D") || rn_ir_is_op(node, "DepthwiseConv2dNative");
}

// Whether fuse_conv will take the parts of norm |index| of the CPU into a convolution.
static bool fuses_on_host(const split_pass_t* pass, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(pass->ir, index);
  bool has_type = node->types[0] == RN_FLOAT || node->types[0] == RN_BFLOAT16;
  if (rn_ir_flag(node, "is_training") || !has_type || node->control_count || node->feed >= 0 ||
      is_used(pass->ir, index, 1) || !is_convolution(pass, node->inputs[0], index))
    return false;
  rn_shape_t x = shape_of(pass, node->inputs[0]);
  for (int i = 1; i < 5; ++i) {
    rn_shape_t values = shape_of(pass, node->inputs[i]);
    if (x.rank != 4 || values.rank != 1 || values.dims[0] < 1 || values.dims[0] != x.dims[3])
      return false;
  }
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  return format && rn_str_is(format->s, "NHWC");
}

static rn_status_t split_all(split_pass_t* pass, const char* const names[3],
                             rn_status_t (*split)(split_pass_t* pass, int32_t index)) {
  size_t count = pass->ir->nodes.count;
  for (size_t n = 0; n < count; ++n) {
    const rn_ir_node_t* node = &pass->ir->nodes.items[n];
    if (node->is_removed || !node->device || !node->kernel || !is_one_of(node, names)) continue;
    if (node->device->is_host) {
      if (split != split_forward) continue;
      if (!pass->uses) RN_RETURN_IF_ERROR(rn_ir_count_uses(pass->ir, &pass->uses));
      if (!fuses_on_host(pass, (int32_t)n)) continue;
    }
    RN_RETURN_IF_ERROR(split(pass, (int32_t)n));
  }
  return RN_OK;
}

rn_status_t rn_pass_split_batch_norms(rn_ir_t* ir) {
  static const char* const norms[] = {"FusedBatchNormV3", "FusedBatchNormV2", "FusedBatchNorm"};
  static const char* const gradients[] = {"FusedBatchNormGradV3", "FusedBatchNormGradV2",
                                          "FusedBatchNormGrad"};
  split_pass_t pass = {.ir = ir,
                       .sub = rn_op_find(RN_STR("Sub")),
                       .mul = rn_op_find(RN_STR("Mul")),
                       .add = rn_op_find(RN_STR("AddV2")),
                       .sum = rn_op_find(RN_STR("BiasAddGrad")),
                       .cast = rn_op_find(RN_STR("Cast")),
                       .moments = rn_op_find(RN_STR("_BatchNormMoments")),
                       .factor = rn_op_find(RN_STR("_BatchNormFactor")),
                       .slopes = rn_op_find(RN_STR("_BatchNormSlopes"))};
  if (!pass.moments) return RN_OK;
  // Gradients first: they read a norm's last output, which has no meaning outside.
  RN_RETURN_IF_ERROR(split_all(&pass, gradients, split_gradient));
  return split_all(&pass, norms, split_forward);
}
