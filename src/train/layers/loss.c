// Losses, weighted and reduced.
#include "train/layers/layer.h"
#include "train/optimizer/optimizer.h"

// Weights have rank 0, the rank of the losses, or one less, without the last axis.
static rn_edge_t fit_weights(rn_scope_t* s, rn_edge_t weights, rn_edge_t losses) {
  rn_edge_t w = rn_as(s, weights, rn_edge_dtype(losses));
  int have = rn_shape_of_edge(w).rank, want = rn_shape_of_edge(losses).rank;
  if (have > 0 && want == have + 1) return rn_ExpandDims(s, w, rn_const_int32(s, -1));
  if (want >= 0 && have == want + 1)
    return rn_Squeeze(s, w, .squeeze_dims = RN_LIST(((int64_t[]){-1}), 1));
  return w;
}

// The number of nonzero weights after broadcasting.
static rn_edge_t present(rn_scope_t* s, rn_edge_t losses, rn_edge_t weights) {
  rn_edge_t is_there =
      rn_Cast(s, rn_NotEqual(s, weights, rn_like(s, weights, 0)), rn_edge_dtype(losses));
  return rn_sum_all(s, rn_Mul(s, rn_OnesLike(s, losses), is_there));
}

static rn_edge_t reduce(rn_scope_t* s, rn_edge_t losses, rn_edge_t weights,
                        rn_reduction_t reduction) {
  rn_edge_t weighted = rn_Mul(s, losses, weights);
  if (reduction == RN_REDUCE_NONE) return weighted;
  rn_edge_t sum = rn_sum_all(s, weighted);
  switch (reduction) {
    case RN_REDUCE_SUM:
      return sum;
    case RN_REDUCE_MEAN:
      return rn_safe_div(s, sum, rn_sum_all(s, rn_Mul(s, rn_OnesLike(s, losses), weights)));
    case RN_REDUCE_BY_COUNT:
      return rn_safe_div(s, sum, rn_as(s, rn_Size(s, losses), rn_edge_dtype(losses)));
    default:
      return rn_safe_div(s, sum, present(s, losses, weights));
  }
}

static rn_edge_t end(rn_scope_t* s, rn_edge_t losses, const rn_loss_options_t* options) {
  rn_edge_t loss = RN_NO_EDGE;
  if (rn_scope_ok(s)) {
    rn_edge_t weights =
        options->weights.node ? fit_weights(s, options->weights, losses) : rn_like(s, losses, 1);
    loss = reduce(s, losses, weights, options->reduction);
    if (!options->not_collected) rn_collect(s, RN_LOSSES, loss);
  }
  rn_scope_destroy(s);
  return loss;
}

RN_API rn_edge_t rn_weighted_loss_(rn_scope_t* scope, rn_edge_t losses, rn_loss_options_t options) {
  if (!rn_is_edge(scope, losses, "weighted_loss", "the losses")) return RN_NO_EDGE;
  return end(rn_part(scope, options.name, "weighted_loss"), losses, &options);
}

// Checks both inputs and casts the labels to the type of the predictions.
static rn_scope_t* begin(rn_scope_t* scope, const rn_loss_options_t* options, const char* fallback,
                         rn_edge_t* labels, rn_edge_t predictions) {
  const char* name = options->name ? options->name : fallback;
  if (!rn_is_edge(scope, *labels, name, "the labels") ||
      !rn_is_edge(scope, predictions, name, "the predictions"))
    return NULL;
  rn_scope_t* s = rn_scope_child(scope, name);
  if (rn_scope_ok(s)) *labels = rn_as(s, *labels, rn_edge_dtype(predictions));
  return s;
}

#define LOSS(name)                                                                          \
  RN_API rn_edge_t rn_##name##_(rn_scope_t* scope, rn_edge_t labels, rn_edge_t predictions, \
                                rn_loss_options_t options)

LOSS(mean_squared_error) {
  rn_scope_t* s = begin(scope, &options, "mean_squared_error", &labels, predictions);
  return end(s, rn_SquaredDifference(s, predictions, labels), &options);
}

LOSS(absolute_difference) {
  rn_scope_t* s = begin(scope, &options, "absolute_difference", &labels, predictions);
  return end(s, rn_Abs(s, rn_Sub(s, predictions, labels)), &options);
}

// Quadratic up to delta, then linear: q² / 2 + delta · (|e| - q), q = min(|e|, delta).
LOSS(huber_loss) {
  rn_scope_t* s = begin(scope, &options, "huber_loss", &labels, predictions);
  rn_edge_t error = rn_Abs(s, rn_Sub(s, predictions, labels));
  rn_edge_t delta = rn_like(s, predictions, rn_number(options.delta, 1));
  rn_edge_t square = rn_Minimum(s, error, delta);
  rn_edge_t half = rn_Mul(s, rn_like(s, predictions, 0.5), rn_Mul(s, square, square));
  return end(s, rn_AddV2(s, half, rn_Mul(s, delta, rn_Sub(s, error, square))), &options);
}

LOSS(log_loss) {
  rn_scope_t* s = begin(scope, &options, "log_loss", &labels, predictions);
  rn_edge_t epsilon = rn_like(s, predictions, rn_number(options.epsilon, 1e-7f));
  rn_edge_t one = rn_like(s, predictions, 1);
  rn_edge_t hit = rn_Mul(s, labels, rn_Log(s, rn_AddV2(s, predictions, epsilon)));
  rn_edge_t miss = rn_Log(s, rn_AddV2(s, rn_Sub(s, one, predictions), epsilon));
  rn_edge_t sum = rn_AddV2(s, hit, rn_Mul(s, rn_Sub(s, one, labels), miss));
  return end(s, rn_Neg(s, sum), &options);
}

LOSS(cosine_distance) {
  rn_scope_t* s = begin(scope, &options, "cosine_distance_loss", &labels, predictions);
  rn_edge_t dot =
      rn_Sum(s, rn_Mul(s, predictions, labels), rn_axis(s, options.axis), .keep_dims = true);
  return end(s, rn_Sub(s, rn_like(s, predictions, 1), dot), &options);
}

// Labels 0 and 1 mean -1 and 1.
LOSS(hinge_loss) {
  rn_scope_t* s = begin(scope, &options, "hinge_loss", &labels, predictions);
  rn_edge_t one = rn_like(s, predictions, 1);
  rn_edge_t sign = rn_Sub(s, rn_Mul(s, labels, rn_like(s, predictions, 2)), one);
  return end(s, rn_Relu(s, rn_Sub(s, one, rn_Mul(s, sign, predictions))), &options);
}

// One-hot labels, smoothed towards 1 / classes.
LOSS(softmax_cross_entropy) {
  rn_scope_t* s = begin(scope, &options, "softmax_cross_entropy_loss", &labels, predictions);
  if (options.label_smoothing > 0 && rn_scope_ok(s)) {
    rn_edge_t classes = rn_element(s, rn_run_shape(s, labels), 1);
    rn_edge_t share = rn_RealDiv(s, rn_like(s, labels, options.label_smoothing),
                                 rn_as(s, classes, rn_edge_dtype(labels)));
    rn_edge_t kept = rn_Mul(s, labels, rn_like(s, labels, 1 - options.label_smoothing));
    labels = rn_AddV2(s, kept, share);
  }
  return end(s, rn_SoftmaxCrossEntropyWithLogits(s, predictions, rn_StopGradient(s, labels)).loss,
             &options);
}

// max(x, 0) - x z + log(1 + e^-|x|): no overflow for any x.
static rn_edge_t sigmoid_losses(rn_scope_t* s, rn_edge_t labels, rn_edge_t x) {
  rn_edge_t linear = rn_Sub(s, rn_Relu(s, x), rn_Mul(s, x, labels));
  rn_edge_t tail = rn_Log1p(s, rn_Exp(s, rn_Neg(s, rn_Abs(s, x))));
  return rn_AddV2(s, linear, tail);
}

// Smoothed towards 1/2.
LOSS(sigmoid_cross_entropy) {
  rn_scope_t* s = begin(scope, &options, "sigmoid_cross_entropy_loss", &labels, predictions);
  if (options.label_smoothing > 0) {
    rn_edge_t kept = rn_Mul(s, labels, rn_like(s, labels, 1 - options.label_smoothing));
    labels = rn_AddV2(s, kept, rn_like(s, labels, 0.5 * options.label_smoothing));
  }
  return end(s, sigmoid_losses(s, labels, predictions), &options);
}

// Labels are numbers of classes; all axes but the last of the logits are folded.
LOSS(sparse_softmax_cross_entropy) {
  const char* name = options.name ? options.name : "sparse_softmax_cross_entropy_loss";
  if (!rn_is_edge(scope, labels, name, "the labels") ||
      !rn_is_edge(scope, predictions, name, "the logits"))
    return RN_NO_EDGE;
  rn_scope_t* s = rn_scope_child(scope, name);
  int rank = rn_shape_of_edge(predictions).rank;
  rn_edge_t losses;
  if (rank > 2) {
    int64_t classes = rn_dim_of_edge(predictions, -1);
    rn_edge_t flat = rn_reshape(s, predictions, (const int64_t[]){-1, classes}, 2);
    rn_edge_t ids = rn_reshape(s, labels, (const int64_t[]){-1}, 1);
    losses = rn_Reshape(s, rn_SparseSoftmaxCrossEntropyWithLogits(s, flat, ids).loss,
                        rn_run_shape(s, labels));
  } else {
    losses = rn_SparseSoftmaxCrossEntropyWithLogits(s, predictions, labels).loss;
  }
  return end(s, losses, &options);
}

RN_API rn_edge_t rn_total_loss(rn_scope_t* scope) {
  static const char* const lists[] = {RN_LOSSES, RN_REGULARIZATION_LOSSES};
  rn_edge_t total = RN_NO_EDGE;
  for (int k = 0; k < 2; ++k) {
    const rn_collected_t* items;
    int count = rn_collection(scope, lists[k], &items);
    for (int i = 0; i < count; ++i)
      total = total.node ? rn_AddV2(scope, total, items[i].edge) : items[i].edge;
  }
  return total.node ? total : rn_const_float(scope, 0);
}
