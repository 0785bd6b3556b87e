// Gradient rules of activations, biases, losses and top-k.
#include "ops/rules.h"

static rn_status_t to_x(rn_grad_t* g, rn_edge_t dx) {
  rn_grad_to(g, 0, dx);
  return RN_OK;
}

// Activations have gradient ops, which take dy and the input or the output.

RN_RULE(relu) { return to_x(g, rn_ReluGrad(g->scope, rn_grad_dy(g, 0), rn_grad_out(g, 0))); }
RN_RULE(relu6) { return to_x(g, rn_Relu6Grad(g->scope, rn_grad_dy(g, 0), rn_grad_out(g, 0))); }
RN_RULE(elu) { return to_x(g, rn_EluGrad(g->scope, rn_grad_dy(g, 0), rn_grad_out(g, 0))); }
RN_RULE(selu) { return to_x(g, rn_SeluGrad(g->scope, rn_grad_dy(g, 0), rn_grad_out(g, 0))); }
RN_RULE(softplus) { return to_x(g, rn_SoftplusGrad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 0))); }
RN_RULE(softsign) { return to_x(g, rn_SoftsignGrad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 0))); }

RN_RULE(leaky_relu) {
  return to_x(g, RN_RULE_ALIKE(g, "LeakyReluGrad", rn_grad_dy(g, 0), rn_grad_in(g, 0)));
}

// Second-order gradients. The gradient ops are linear in the incoming gradient; for piecewise
// linear functions, the derivative with respect to the features is zero.

static rn_status_t flat(rn_grad_t* g, rn_edge_t by_gradient) {
  rn_grad_to(g, 0, by_gradient);
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_ZerosLike(g->scope, rn_grad_in(g, 1)));
  return RN_OK;
}

RN_RULE(relu_grad) { return flat(g, rn_ReluGrad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1))); }

RN_RULE(relu6_grad) { return flat(g, rn_Relu6Grad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1))); }

RN_RULE(leaky_relu_grad) {
  return flat(g, RN_RULE_ALIKE(g, "LeakyReluGrad", rn_grad_dy(g, 0), rn_grad_in(g, 1)));
}

// Below 0 the derivative of (S)ELU is the output plus a constant.
static rn_edge_t below_zero(rn_grad_t* g) {
  rn_edge_t y = rn_grad_in(g, 1), zero = rn_rule_zero(g, y);
  rn_edge_t product = rn_Mul(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 0));
  return rn_SelectV2(g->scope, rn_Less(g->scope, y, zero), product, zero);
}

RN_RULE(elu_grad) {
  rn_grad_to(g, 0, rn_EluGrad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1)));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, below_zero(g));
  return RN_OK;
}

RN_RULE(selu_grad) {
  rn_grad_to(g, 0, rn_SeluGrad(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1)));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, below_zero(g));
  return RN_OK;
}

// dy * sigmoid(x).
RN_RULE(softplus_grad) {
  rn_edge_t dz = rn_grad_dy(g, 0), dy = rn_grad_in(g, 0), x = rn_grad_in(g, 1);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_SoftplusGrad(g->scope, dz, x));
  if (rn_grad_wants(g, 1)) {
    rn_edge_t product = rn_Mul(g->scope, dz, dy);
    rn_grad_to(g, 1, rn_SigmoidGrad(g->scope, rn_Sigmoid(g->scope, x), product));
  }
  return RN_OK;
}

// dy / (1 + |x|)^2: by x, -2 dy sign(x) / (1 + |x|)^3.
RN_RULE(softsign_grad) {
  rn_edge_t dz = rn_grad_dy(g, 0), x = rn_grad_in(g, 1);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_SoftsignGrad(g->scope, dz, x));
  if (rn_grad_wants(g, 1)) {
    rn_edge_t size = rn_AddV2(g->scope, rn_Abs(g->scope, x), rn_rule_scalar(g, x, 1));
    rn_edge_t z = rn_Mul(g->scope, dz, rn_grad_out(g, 0));
    rn_edge_t slope = rn_RealDiv(g->scope, rn_rule_scale(g, -2, rn_Sign(g->scope, x)), size);
    rn_grad_to(g, 1, rn_Mul(g->scope, z, slope));
  }
  return RN_OK;
}

// Biases.

RN_RULE(bias_add) {
  rn_grad_to(g, 0, rn_grad_dy(g, 0));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, RN_RULE_ALIKE(g, "BiasAddGrad", rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(bias_add_v1) {
  rn_grad_to(g, 0, rn_grad_dy(g, 0));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_BiasAddGrad(g->scope, rn_grad_dy(g, 0)));
  return RN_OK;
}

// Broadcasts over all axes but the channels, which BiasAddGrad summed over.
RN_RULE(bias_add_grad) {
  rn_edge_t x = rn_grad_in(g, 0), dy = rn_grad_dy(g, 0);
  if (rn_str_eq(rn_grad_attr(g, "data_format")->s, RN_STR("NCHW"))) {
    int rank = rn_rule_rank(g, x);
    if (rank < 0) return rn_unimplemented("data_format is NCHW and the rank is not known");
    int64_t shape[RN_MAX_RANK] = {-1};
    for (int i = 1; i < rank - 1; ++i) shape[i] = 1;
    if (rank > 2) dy = rn_Reshape(g->scope, dy, rn_rule_ints(g, RN_INT32, shape, rank - 1));
  }
  return to_x(g, rn_BroadcastTo(g->scope, dy, rn_rule_shape(g, x, RN_INT32)));
}

// Softmax and losses.

static rn_edge_t sum_last(rn_grad_t* g, rn_edge_t x) {
  return rn_Sum(g->scope, x, rn_const_int32(g->scope, -1), .keep_dims = true);
}

// The gradient through p = softmax(x): (d - sum(d p)) p.
static rn_edge_t through_softmax(rn_grad_t* g, rn_edge_t d, rn_edge_t p) {
  rn_edge_t mean = sum_last(g, rn_Mul(g->scope, d, p));
  return rn_Mul(g->scope, rn_Sub(g->scope, d, mean), p);
}

RN_RULE(softmax) { return to_x(g, through_softmax(g, rn_grad_dy(g, 0), rn_grad_out(g, 0))); }

RN_RULE(log_softmax) {
  rn_edge_t dy = rn_grad_dy(g, 0), p = rn_Exp(g->scope, rn_grad_out(g, 0));
  return to_x(g, rn_Sub(g->scope, dy, rn_Mul(g->scope, sum_last(g, dy), p)));
}

// The second output, softmax - labels, is the gradient of the first. Second-order differentiation
// also needs its gradient.
static rn_edge_t xent_logits(rn_grad_t* g) {
  rn_edge_t dx = RN_NO_EDGE, logits = rn_grad_in(g, 0);
  if (rn_grad_has_dy(g, 0))
    dx = rn_Mul(g->scope, rn_rule_expand(g, rn_grad_dy(g, 0), -1), rn_grad_out(g, 1));
  if (!rn_grad_has_dy(g, 1)) return dx;
  rn_edge_t twice = through_softmax(g, rn_grad_dy(g, 1), rn_Softmax(g->scope, logits));
  return dx.node ? rn_AddV2(g->scope, dx, twice) : twice;
}

// Sums the gradients of rows that were broadcast, if the static shapes show a broadcast.
static rn_edge_t xent_rows(rn_grad_t* g, rn_edge_t d, int own, int other) {
  rn_shape_t a = rn_grad_shape(g, rn_grad_in(g, own)), b = rn_grad_shape(g, rn_grad_in(g, other));
  if (!rn_shape_is_full(a) || !rn_shape_is_full(b) || rn_shape_eq(a, b)) return d;
  return rn_rule_unbroadcast(g, d, rn_grad_in(g, own), rn_grad_in(g, other), 0);
}

RN_RULE(softmax_xent) {
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, xent_rows(g, xent_logits(g), 0, 1));
  // As in TensorFlow, the second output has no gradient with respect to the labels.
  if (!rn_grad_wants(g, 1) || !rn_grad_has_dy(g, 0)) return RN_OK;
  rn_edge_t minus = rn_Neg(g->scope, rn_LogSoftmax(g->scope, rn_grad_in(g, 0)));
  rn_edge_t dlabels = rn_Mul(g->scope, rn_rule_expand(g, rn_grad_dy(g, 0), -1), minus);
  rn_grad_to(g, 1, xent_rows(g, dlabels, 1, 0));
  return RN_OK;
}

RN_RULE(sparse_softmax_xent) {
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, xent_logits(g));
  return RN_OK;
}

RN_RULE(l2_loss) { return to_x(g, rn_Mul(g->scope, rn_grad_in(g, 0), rn_grad_dy(g, 0))); }

RN_RULE(lrn) {
  rn_edge_t x = rn_grad_in(g, 0), y = rn_grad_out(g, 0);
  return to_x(g, RN_RULE_ALIKE(g, "LRNGrad", rn_grad_dy(g, 0), x, y));
}

// Scatters |dy|, the gradients of the elements at |at| along the last axis of a tensor of |shape|,
// to their positions in the flattened tensor.
static rn_edge_t scatter_last(rn_grad_t* g, rn_edge_t dy, rn_edge_t at, rn_edge_t shape) {
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  rn_edge_t size = rn_Prod(g->scope, shape, zero);
  rn_edge_t width =
      rn_GatherV2(g->scope, shape, rn_Sub(g->scope, rn_Size(g->scope, shape), one), zero);
  // [0, width, 2 width …], of the shape of the input without its last axis, which becomes 1.
  rn_edge_t starts = rn_Range(g->scope, zero, size, width);
  int64_t column[2] = {-1, 1};
  rn_edge_t rows =
      rn_Sum(g->scope, rn_ZerosLike(g->scope, at), rn_const_int32(g->scope, -1), .keep_dims = true);
  starts = rn_Reshape(g->scope, starts, rn_Shape(g->scope, rows));
  rn_edge_t places =
      rn_Reshape(g->scope, rn_AddV2(g->scope, at, starts), rn_rule_ints(g, RN_INT32, column, 2));
  rn_edge_t values = rn_Reshape(g->scope, dy, rn_rule_ints(g, RN_INT32, column, 1));
  rn_edge_t flat = rn_ScatterNd(g->scope, places, values, rn_rule_expand(g, size, 0));
  return rn_Reshape(g->scope, flat, shape);
}

RN_RULE(top_k) {
  if (!rn_grad_has_dy(g, 0)) return RN_OK;
  rn_edge_t at = rn_rule_cast(g, rn_grad_out(g, 1), RN_INT32);
  rn_edge_t shape = rn_rule_shape(g, rn_grad_in(g, 0), RN_INT32);
  return to_x(g, scatter_last(g, rn_grad_dy(g, 0), at, shape));
}

// The same along any axis: it changes places with the last one.
RN_RULE(approx_top_k) {
  if (!rn_grad_has_dy(g, 0)) return RN_OK;
  rn_edge_t x = rn_grad_in(g, 0), dy = rn_grad_dy(g, 0), at = rn_grad_out(g, 1);
  rn_edge_t shape = rn_rule_shape(g, x, RN_INT32);
  int rank = rn_rule_rank(g, x);
  int64_t axis = rn_grad_attr(g, "reduction_dimension")->i, order[RN_MAX_RANK];
  if (axis == -1 || axis + 1 == rank) return to_x(g, scatter_last(g, dy, at, shape));
  if (rank == RN_UNKNOWN) return rn_unimplemented("the rank of the input is not known");
  if (axis < 0) axis += rank;
  for (int i = 0; i < rank; ++i) order[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
  rn_edge_t swap = rn_rule_ints(g, RN_INT32, order, rank);
  dy = rn_Transpose(g->scope, dy, swap);
  at = rn_Transpose(g->scope, at, swap);
  shape = rn_GatherV2(g->scope, shape, swap, rn_const_int32(g->scope, 0));
  return to_x(g, rn_Transpose(g->scope, scatter_last(g, dy, at, shape), swap));
}

// Each element gets the mean of the gradients of its segment. Segments of all rows are numbered
// one after the other: no row has more of them than elements.
RN_RULE(isotonic_regression) {
  if (!rn_grad_has_dy(g, 0)) return RN_OK;
  rn_edge_t dy = rn_grad_dy(g, 0), segments = rn_grad_out(g, 1);
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  rn_edge_t shape = rn_Shape(g->scope, segments), size = rn_Size(g->scope, segments);
  rn_edge_t last = rn_Sub(g->scope, rn_Size(g->scope, shape), one);
  rn_edge_t width = rn_GatherV2(g->scope, shape, last, zero);
  int64_t flat = -1;
  rn_edge_t vector = rn_rule_ints(g, RN_INT32, &flat, 1);
  rn_edge_t places = rn_Range(g->scope, zero, size, one);
  rn_edge_t starts = rn_Sub(g->scope, places, rn_FloorMod(g->scope, places, width));
  rn_edge_t ids = rn_AddV2(g->scope, rn_Reshape(g->scope, segments, vector), starts);
  rn_edge_t values = rn_Reshape(g->scope, dy, vector);
  rn_edge_t sums = rn_UnsortedSegmentSum(g->scope, values, ids, size);
  rn_edge_t counts = rn_UnsortedSegmentSum(g->scope, rn_OnesLike(g->scope, values), ids, size);
  rn_edge_t means = rn_DivNoNan(g->scope, sums, counts);
  rn_edge_t dx = rn_Reshape(g->scope, rn_GatherV2(g->scope, means, ids, zero), shape);
  return to_x(g, rn_rule_cast(g, dx, rn_edge_dtype(rn_grad_in(g, 0))));
}

// All elements of a row that equal the n-th share its gradient.
RN_RULE(nth_element) {
  rn_edge_t x = rn_grad_in(g, 0), dy = rn_rule_expand(g, rn_grad_dy(g, 0), -1);
  rn_edge_t y = rn_rule_expand(g, rn_grad_out(g, 0), -1);
  rn_edge_t mark = rn_Cast(g->scope, rn_Equal(g->scope, x, y), rn_edge_dtype(x));
  rn_edge_t share = rn_Div(g->scope, mark, sum_last(g, mark));
  return to_x(g, rn_Mul(g->scope, share, dy));
}
