// Folds batch normalisations into the convolutions before them: see rn_pass_fold_batch_norms in
// ir.h.
//
// Starting at a convolution, follows the chain of nodes that each are the only reader of the one
// before and compute y · factor + addend with per-channel constants. Collects all factors and
// addends into s and t, then rewrites y(x, w) · s + t as y(x, w · s) + t.
#include <math.h>

#include "step/make.h"

typedef struct fold_batch_norms_chain_t {
  int32_t product;  // the convolution
  int32_t last;     // the last node of the chain
  int64_t channels;
  double* scale;
  double* shift;
  bool scales, shifts;
} fold_batch_norms_chain_t;

typedef struct fold_batch_norms_pass_t {
  rn_ir_t* ir;
  rn_ir_uses_t* uses;  // by node
} fold_batch_norms_pass_t;

static bool has_text(const rn_ir_node_t* node, const char* attr, const char* text) {
  const rn_attr_value_t* value = rn_ir_attr(node, rn_str(attr));
  return !value || rn_str_is(value->s, text);
}

static const rn_tensor_t* constant_of(const fold_batch_norms_pass_t* p, rn_ir_edge_t edge) {
  const rn_ir_node_t* source = rn_ir_node(p->ir, edge.node);
  const rn_tensor_t* value = edge.output == 0 ? source->constant : NULL;
  return value && value->dtype == RN_FLOAT ? value : NULL;
}

// The constant weights of a convolution or matmul whose channels come last; NULL if |node| is not
// one.
static const rn_tensor_t* weights_of(const fold_batch_norms_pass_t* p, const rn_ir_node_t* node) {
  bool is_conv = rn_ir_is_op(node, "Conv2D") || rn_ir_is_op(node, "DepthwiseConv2dNative");
  bool is_product = rn_ir_is_op(node, "MatMul") && !rn_ir_attr(node, RN_STR("transpose_b"))->b;
  if ((!is_conv && !is_product) || node->input_count != 2 || node->types[0] != RN_FLOAT)
    return NULL;
  if (is_conv && !has_text(node, "data_format", "NHWC")) return NULL;
  const rn_tensor_t* weights = constant_of(p, node->inputs[1]);
  return weights && weights->rank == (is_conv ? 4 : 2) && weights->count > 0 ? weights : NULL;
}

static int64_t channels_of(const rn_ir_node_t* node, const rn_tensor_t* weights) {
  int64_t last = rn_tensor_dim(weights, weights->rank - 1);
  return rn_ir_is_op(node, "DepthwiseConv2dNative") ? last * rn_tensor_dim(weights, 2) : last;
}

// Whether |value| holds one number per channel or a single one, broadcast over the rest. It must
// not have more dimensions than the product, whose rank it would then raise.
static bool is_by_channel(const rn_tensor_t* value, int64_t channels, int rank) {
  if (!value || value->rank > rank) return false;
  if (value->count == 1) return true;
  return value->count == channels && value->rank > 0 &&
         rn_tensor_dim(value, value->rank - 1) == channels;
}

static double at(const rn_tensor_t* value, int64_t channel) {
  return RN_DATA(value, const float)[value->count == 1 ? 0 : channel];
}

static void scale_by(fold_batch_norms_chain_t* chain, const rn_tensor_t* factor) {
  for (int64_t c = 0; c < chain->channels; ++c) {
    chain->scale[c] *= at(factor, c);
    chain->shift[c] *= at(factor, c);
  }
  chain->scales = true;
}

static void shift_by(fold_batch_norms_chain_t* chain, const rn_tensor_t* addend, double sign) {
  for (int64_t c = 0; c < chain->channels; ++c) chain->shift[c] += sign * at(addend, c);
  chain->shifts = true;
}

static bool take_batch_norm(const fold_batch_norms_pass_t* p, fold_batch_norms_chain_t* chain,
                            const rn_ir_node_t* node) {
  const rn_attr_value_t* trains = rn_ir_attr(node, RN_STR("is_training"));
  const rn_tensor_t* values[4];
  if (!trains || trains->b || !has_text(node, "data_format", "NHWC")) return false;
  for (int i = 0; i < 4; ++i) {
    values[i] = constant_of(p, node->inputs[i + 1]);
    if (!values[i] || values[i]->count != chain->channels) return false;
  }
  double epsilon = rn_ir_attr(node, RN_STR("epsilon"))->f;
  for (int64_t c = 0; c < chain->channels; ++c) {
    double factor = at(values[0], c) / sqrt(at(values[3], c) + epsilon);
    chain->scale[c] *= factor;
    chain->shift[c] = (chain->shift[c] - at(values[2], c)) * factor + at(values[1], c);
  }
  chain->scales = chain->shifts = true;
  return true;
}

// Whether one input or fetch reads the first output of node |index|, and nothing else uses it.
static bool is_used_once(const fold_batch_norms_pass_t* p, int32_t index) {
  const rn_ir_uses_t* uses = &p->uses[index];
  if (uses->waits || uses->reads + uses->fetches != 1) return false;
  for (int32_t i = 0; i < p->ir->fetch_count; ++i)
    if (p->ir->fetches[i].node == index && p->ir->fetches[i].output) return false;
  if (uses->reader < 0) return true;
  const rn_ir_node_t* reader = rn_ir_node(p->ir, uses->reader);
  for (int32_t i = 0; i < reader->input_count; ++i)
    if (reader->inputs[i].node == index && reader->inputs[i].output) return false;
  return true;
}

// Extends the chain by the reader of its last node, if that can be folded.
static bool take_next(const fold_batch_norms_pass_t* p, fold_batch_norms_chain_t* chain, int rank) {
  int32_t next = rn_ir_only_reader(&p->uses[chain->last]);
  if (next < 0) return false;
  const rn_ir_node_t* node = rn_ir_node(p->ir, next);
  if (node->control_count || node->feed >= 0 || node->input_count < 2) return false;
  bool is_first = node->inputs[0].node == chain->last;
  rn_ir_edge_t other = node->inputs[is_first ? 1 : 0];
  const rn_tensor_t* value = constant_of(p, other);
  if (is_first && (rn_ir_is_op(node, "FusedBatchNormV3") || rn_ir_is_op(node, "FusedBatchNormV2") ||
                   rn_ir_is_op(node, "FusedBatchNorm"))) {
    if (!is_used_once(p, next) || !take_batch_norm(p, chain, node)) return false;
    chain->last = next;
    return true;
  }
  if (!is_by_channel(value, chain->channels, rank)) return false;
  if (rn_ir_is_op(node, "Mul"))
    scale_by(chain, value);
  else if (rn_ir_is_op(node, "AddV2") || rn_ir_is_op(node, "Add"))
    shift_by(chain, value, 1);
  else if (rn_ir_is_op(node, "BiasAdd") && is_first && has_text(node, "data_format", "NHWC"))
    shift_by(chain, value, 1);
  else if (rn_ir_is_op(node, "Sub") && is_first)
    shift_by(chain, value, -1);
  else
    return false;
  chain->last = next;
  return true;
}

static rn_status_t scaled_weights(const fold_batch_norms_pass_t* p,
                                  const fold_batch_norms_chain_t* chain, rn_ir_edge_t* out) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, chain->product);
  const rn_tensor_t* weights = weights_of(p, node);
  rn_tensor_t scaled = {0};
  rn_str_t name;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&p->ir->arena, &name, "%.*s/folded_weights", RN_STR_ARGS(node->name)));
  RN_RETURN_IF_ERROR(
      rn_tensor_create(p->ir->allocator, RN_FLOAT, rn_tensor_shape(weights), &scaled));
  for (int64_t i = 0; i < weights->count; ++i) RN_DATA(&scaled, float)
  [i] = (float)(RN_DATA(weights, const float)[i] * chain->scale[i % chain->channels]);
  *out = (rn_ir_edge_t){0, 0};
  return rn_ir_add_constant(p->ir, name, &scaled, &out->node);
}

static rn_status_t shift_constant(const fold_batch_norms_pass_t* p,
                                  const fold_batch_norms_chain_t* chain, rn_ir_edge_t* out) {
  rn_tensor_t shift = {0};
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_printf(&p->ir->arena, &name, "%.*s/folded_bias",
                                     RN_STR_ARGS(rn_ir_node(p->ir, chain->product)->name)));
  RN_RETURN_IF_ERROR(
      rn_tensor_create(p->ir->allocator, RN_FLOAT, (rn_shape_t){1, &chain->channels}, &shift));
  for (int64_t c = 0; c < chain->channels; ++c) RN_DATA(&shift, float)[c] = (float)chain->shift[c];
  *out = (rn_ir_edge_t){0, 0};
  return rn_ir_add_constant(p->ir, name, &shift, &out->node);
}

// Turns the last node of the chain into the BiasAdd, so its readers need no change.
static rn_status_t rewrite(const fold_batch_norms_pass_t* p,
                           const fold_batch_norms_chain_t* chain) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = RN_FLOAT}}, RN_ATTRS_END};
  rn_ir_edge_t weights, bias, *inputs = NULL, *bias_inputs = NULL;
  RN_RETURN_IF_ERROR(scaled_weights(p, chain, &weights));
  RN_RETURN_IF_ERROR(shift_constant(p, chain, &bias));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 2, &inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 2, &bias_inputs));
  rn_ir_node_t* product = rn_ir_node(p->ir, chain->product);
  inputs[0] = product->inputs[0];
  inputs[1] = weights;
  product->inputs = inputs;
  bias_inputs[0] = (rn_ir_edge_t){chain->product, 0};
  bias_inputs[1] = bias;
  rn_ir_node_t* last = rn_ir_node(p->ir, chain->last);
  last->op = rn_op_find(RN_STR("BiasAdd"));
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(p->ir, last->op, NULL, given, &last->attrs));
  last->extra_count = 0;
  last->inputs = bias_inputs;
  last->input_count = 2;
  last->output_count = 1;
  return RN_OK;
}

static rn_status_t fold_into(const fold_batch_norms_pass_t* p, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  const rn_tensor_t* weights = weights_of(p, node);
  if (!weights) return RN_OK;
  fold_batch_norms_chain_t chain = {
      .product = index, .last = index, .channels = channels_of(node, weights)};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)chain.channels, &chain.scale));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)chain.channels, &chain.shift));
  for (int64_t c = 0; c < chain.channels; ++c) chain.scale[c] = 1;
  while (take_next(p, &chain, weights->rank)) continue;
  return chain.scales ? rewrite(p, &chain) : RN_OK;
}

rn_status_t rn_pass_fold_batch_norms(rn_ir_t* ir) {
  fold_batch_norms_pass_t p = {.ir = ir};
  size_t count = ir->nodes.count;
  if (!rn_op_find(RN_STR("BiasAdd"))) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &p.uses));
  for (size_t n = 0; n < count; ++n)
    if (!ir->nodes.items[n].is_removed) RN_RETURN_IF_ERROR(fold_into(&p, (int32_t)n));
  return RN_OK;
}
