// Fuses each convolution with the elementwise nodes that follow it into one node and one pass over
// memory.
//
// Starting at a convolution, follows the chain of nodes that each are the only reader of the one
// before: per-channel additions and multiplications (biases, batch normalisations with fixed
// statistics), additions of a whole tensor (shortcuts) and ReLUs. The kernel computes each as the
// op alone would, in the same order; only the library behind the kernel may sum the convolution
// itself in another order. In 16 bits it rounds once. A Pad of zeros before
// the convolution becomes its padding. If the filter is a constant, or a variable that the step
// only reads, the kernel may keep it in a layout of its choice.
//
// The attribute "steps" of the new node has two numbers per fused node: the operation (the numbers
// of rn_conv_code_t in kernels/cpu/nn/conv.h) and the operand, -1 for none.
#include "device/device.h"
#include "framework/internal_ops.h"
#include "step/make.h"
#include "step/stays.h"

#define MOST_STEPS 7
#define MOST_CASTS 4

typedef struct step_row_t {
  const char* op;
  int64_t code;
  bool has_operand;
  bool is_ordered;  // the operand must come second
} step_row_t;

static const step_row_t step_rows[] = {
    {"Add", 1, true, false},    {"AddV2", 1, true, false}, {"BiasAdd", 1, true, true},
    {"Sub", 2, true, true},     {"Mul", 3, true, false},   {"Relu", 4, false, false},
    {"Relu6", 5, false, false},
};
enum { STEP_KINDS = sizeof step_rows / sizeof *step_rows };

typedef struct fuse_conv_pass_t {
  rn_ir_t* ir;
  const rn_op_def_t *op, *conv, *depthwise, *pad, *cast;
  const rn_op_def_t* step_ops[STEP_KINDS];
  rn_ir_uses_t* uses;  // by node
  bool has_writers;    // the step may change variables
} fuse_conv_pass_t;

typedef struct fuse_conv_chain_t {
  int32_t conv, last;
  bool is_depthwise;
  bool is_wide;  // the last node has floats, though the convolution has not
  int64_t channels;
  int32_t count, operand_count, float_count, cast_count;
  int64_t steps[2 * MOST_STEPS];
  rn_ir_edge_t operands[MOST_STEPS];
  bool is_float[MOST_STEPS];  // by operand: of a step that computes in float
  int32_t members[MOST_STEPS], casts[MOST_CASTS];
} fuse_conv_chain_t;

static rn_shape_t shape_of(const fuse_conv_pass_t* p, rn_ir_edge_t edge) {
  return rn_ir_node(p->ir, edge.node)->shapes[edge.output];
}

// One number, one a channel along the last axis, or as many as |image| has, in its shape.
static bool operand_fits(rn_shape_t shape, rn_shape_t image, int64_t channels) {
  int64_t count;
  if (!rn_shape_is_full(shape) || !rn_shape_count(shape, &count) || shape.rank > 4) return false;
  if (count == 1) return true;
  if (count == channels) return shape.dims[shape.rank - 1] == channels;
  return rn_shape_is_full(image) && rn_shape_eq(shape, image);
}

static bool is_channels_last(const rn_ir_node_t* node) {
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  return !format || rn_str_is(format->s, "NHWC");
}

// Whether |node| takes the values of a convolution of the CPU from bfloat16 to float, or back. The
// sums are floats, so that it costs nothing.
static bool is_conversion(const fuse_conv_pass_t* p, const fuse_conv_chain_t* chain,
                          const rn_ir_node_t* node) {
  const rn_ir_node_t* conv = rn_ir_node(p->ir, chain->conv);
  return node->op == p->cast && conv->types[0] == RN_BFLOAT16 && conv->device &&
         conv->device->is_host && chain->cast_count < MOST_CASTS && !rn_ir_flag(node, "Truncate") &&
         node->types[0] == (chain->is_wide ? RN_BFLOAT16 : RN_FLOAT);
}

static bool is_whole(const fuse_conv_pass_t* p, rn_ir_edge_t operand, int64_t channels) {
  int64_t count;
  return !rn_shape_count(shape_of(p, operand), &count) || count > channels;
}

// Takes the reader of the chain's last node in, if it is one that can be.
static bool take_next(const fuse_conv_pass_t* p, fuse_conv_chain_t* chain) {
  int32_t next = rn_ir_only_reader(&p->uses[chain->last]);
  if (next < 0) return false;
  const rn_ir_node_t* node = rn_ir_node(p->ir, next);
  const rn_ir_node_t* conv = rn_ir_node(p->ir, chain->conv);
  if (node->is_removed || node->feed >= 0 || node->control_count || node->device != conv->device)
    return false;
  if (is_conversion(p, chain, node)) {
    chain->is_wide = !chain->is_wide;
    chain->casts[chain->cast_count++] = next;
    chain->last = next;
    return true;
  }
  int k = 0;
  while (k < STEP_KINDS && node->op != p->step_ops[k]) ++k;
  if (k == STEP_KINDS || chain->count == MOST_STEPS || !is_channels_last(node) ||
      node->types[0] != (chain->is_wide ? RN_FLOAT : conv->types[0]))
    return false;
  const step_row_t* row = &step_rows[k];
  int32_t operand = -1;
  if (row->has_operand) {
    bool is_first = node->inputs[0].node == chain->last;
    rn_ir_edge_t other = node->inputs[is_first ? 1 : 0];
    if ((row->is_ordered && !is_first) || other.node == chain->last ||
        !operand_fits(shape_of(p, other), conv->shapes[0], chain->channels) ||
        (chain->is_wide && is_whole(p, other, chain->channels)))
      return false;
    operand = chain->operand_count;
    chain->is_float[operand] = chain->is_wide;
    chain->float_count += chain->is_wide;
    chain->operands[chain->operand_count++] = other;
  }
  chain->steps[2 * chain->count] = row->code;
  chain->steps[2 * chain->count + 1] = operand;
  chain->members[chain->count++] = next;
  chain->last = next;
  return true;
}

// Where the kernel has operand |i|: those of steps in float come last.
static int32_t place_of(const fuse_conv_chain_t* chain, int32_t i) {
  int32_t place = chain->is_float[i] ? chain->operand_count - chain->float_count : 0;
  for (int32_t k = 0; k < i; ++k) place += chain->is_float[k] == chain->is_float[i];
  return place;
}

// The paddings of a Pad that adds zeros to rows and columns only; NULL for any other node.
static const rn_tensor_t* zero_paddings(const fuse_conv_pass_t* p, const rn_ir_node_t* node) {
  if (node->op != p->pad || node->feed >= 0 || node->control_count) return NULL;
  const rn_tensor_t* value = rn_ir_node(p->ir, node->inputs[1].node)->constant;
  if (!value || node->inputs[1].output || value->count != 8 || value->dtype != RN_INT32)
    return NULL;
  const int32_t* pads = RN_DATA(value, const int32_t);
  if (pads[0] || pads[1] || pads[6] || pads[7]) return NULL;
  for (int i = 2; i < 6; ++i)
    if (pads[i] < 0) return NULL;
  return value;
}

static rn_status_t make_attrs(const fuse_conv_pass_t* p, const fuse_conv_chain_t* chain,
                              const rn_tensor_t* pads, const rn_attr_value_t** out) {
  const rn_ir_node_t* conv = rn_ir_node(p->ir, chain->conv);
  int64_t *steps = NULL, *paddings = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 2 * (size_t)chain->count, &steps));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 8, &paddings));
  for (int32_t i = 0; i < chain->count; ++i) {
    int64_t operand = chain->steps[2 * i + 1];
    steps[2 * i] = chain->steps[2 * i];
    steps[2 * i + 1] = operand < 0 ? operand : place_of(chain, (int32_t)operand);
  }
  for (int i = 0; pads && i < 8; ++i) paddings[i] = RN_DATA(pads, const int32_t)[i];
  const rn_attr_t given[] = {
      {RN_STR("N"), {.i = chain->operand_count - chain->float_count}},
      {RN_STR("M"), {.i = chain->float_count}},
      {RN_STR("keeps_filter"), {.b = rn_ir_stays(p->ir, conv->inputs[1], p->has_writers)}},
      {RN_STR("is_depthwise"), {.b = chain->is_depthwise}},
      {RN_STR("steps"), {.count = 2 * chain->count, .list_i = steps}},
      {pads ? RN_STR("padding") : RN_STR(""), {.s = RN_STR("EXPLICIT")}},  // else the list ends
      {RN_STR("explicit_paddings"), {.count = 8, .list_i = paddings}},
      RN_ATTRS_END,
  };
  return rn_ir_make_attrs(p->ir, p->op, conv, given, out);
}

// Turns the last node of the chain into the fused node, because all operands are available there.
static rn_status_t rewrite(fuse_conv_pass_t* p, const fuse_conv_chain_t* chain) {
  const rn_ir_node_t* conv = rn_ir_node(p->ir, chain->conv);
  rn_ir_node_t made = *rn_ir_node(p->ir, chain->last);
  rn_ir_edge_t x = conv->inputs[0];
  const rn_ir_node_t* before = rn_ir_node(p->ir, x.node);
  const rn_attr_value_t* padding = rn_ir_attr(conv, RN_STR("padding"));
  bool takes_pad =
      rn_str_is(padding->s, "VALID") && rn_ir_only_reader(&p->uses[x.node]) >= 0 && x.output == 0;
  const rn_tensor_t* pads = takes_pad ? zero_paddings(p, before) : NULL;
  made.op = p->op;
  made.extra_count = 0;
  RN_RETURN_IF_ERROR(make_attrs(p, chain, pads, &made.attrs));
  made.kernel = rn_kernel_find(p->op, made.attrs, NULL, conv->kernel->device);
  if (!made.kernel) return RN_OK;  // for half the CPU has none
  made.input_count = 2 + chain->operand_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)made.input_count, &made.inputs));
  made.inputs[0] = pads ? before->inputs[0] : x;
  made.inputs[1] = conv->inputs[1];
  for (int32_t i = 0; i < chain->operand_count; ++i)
    made.inputs[2 + place_of(chain, i)] = chain->operands[i];
  if (pads) rn_ir_node(p->ir, x.node)->is_removed = true;
  rn_ir_node(p->ir, chain->conv)->is_removed = true;
  for (int32_t i = 0; i < chain->count; ++i)
    rn_ir_node(p->ir, chain->members[i])->is_removed = true;
  for (int32_t i = 0; i < chain->cast_count; ++i)
    rn_ir_node(p->ir, chain->casts[i])->is_removed = true;
  made.is_removed = false;
  *rn_ir_node(p->ir, chain->last) = made;
  return RN_OK;
}

static rn_status_t fuse_from(fuse_conv_pass_t* p, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  fuse_conv_chain_t chain = {
      .conv = index, .last = index, .is_depthwise = node->op == p->depthwise};
  if (node->is_removed || node->feed >= 0 || (node->op != p->conv && !chain.is_depthwise) ||
      node->control_count || !node->kernel || !is_channels_last(node))
    return RN_OK;
  rn_shape_t x = shape_of(p, node->inputs[0]), w = shape_of(p, node->inputs[1]);
  if (node->shapes[0].rank != 4 || node->shapes[0].dims[3] < 1 || x.rank != 4 ||
      !rn_shape_is_full(w) || x.dims[3] < 0)
    return RN_OK;
  chain.channels = node->shapes[0].dims[3];
  fuse_conv_chain_t longer = chain;
  while (take_next(p, &longer))
    if (!longer.is_wide) chain = longer;
  // Fusing a convolution alone only pays if its filter can be laid out once.
  if (!chain.count && (chain.is_depthwise || !rn_ir_stays(p->ir, node->inputs[1], p->has_writers)))
    return RN_OK;
  return rewrite(p, &chain);
}

rn_status_t rn_pass_fuse_conv(rn_ir_t* ir) {
  fuse_conv_pass_t p = {.ir = ir,
                        .op = rn_op_conv_then(),
                        .conv = rn_op_find(RN_STR("Conv2D")),
                        .depthwise = rn_op_find(RN_STR("DepthwiseConv2dNative")),
                        .pad = rn_op_find(RN_STR("Pad")),
                        .cast = rn_op_find(RN_STR("Cast"))};
  if (!p.op) return RN_OK;
  bool has_conv = false;
  for (size_t n = 0; n < ir->nodes.count && !has_conv; ++n)
    has_conv = ir->nodes.items[n].op == p.conv || ir->nodes.items[n].op == p.depthwise;
  if (!has_conv) return RN_OK;
  for (int k = 0; k < STEP_KINDS; ++k) p.step_ops[k] = rn_op_find(rn_str(step_rows[k].op));
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &p.uses));
  p.has_writers = rn_ir_changes_variables(ir);
  int32_t *order = NULL, count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  // In reverse order, so that a shortcut's addition joins the last convolution before it.
  for (int32_t i = count - 1; i >= 0; --i) RN_RETURN_IF_ERROR(fuse_from(&p, order[i]));
  return RN_OK;
}
