// Batch and layer normalisation.
#include "runnel/train.h"
#include "train/layers/layer.h"
#include "train/optimizer/optimizer.h"

typedef struct moments_t {
  rn_edge_t mean, variance;
} moments_t;

// Mean and variance over |axes|. No gradient flows from the variance through the mean: that part is
// zero anyway.
static moments_t moments_of(rn_scope_t* s, rn_edge_t x, rn_edge_t axes, bool keep_dims) {
  rn_edge_t mean = rn_Mean(s, x, axes, .keep_dims = true);
  rn_edge_t squares = rn_SquaredDifference(s, x, rn_StopGradient(s, mean));
  moments_t m = {mean, rn_Mean(s, squares, axes, .keep_dims = keep_dims)};
  if (!keep_dims) m.mean = rn_Mean(s, x, axes);
  return m;
}

// The variable |name|, or a constant if the options leave it out.
static rn_edge_t weights(rn_scope_t* s, const char* name, rn_edge_t like, int64_t depth,
                         double first, bool is_wanted) {
  rn_initializer_t start = rn_init_constant(first);
  if (!is_wanted) return rn_initial_value(s, start, &depth, 1, rn_edge_dtype(like));
  const rn_var_t* v = rn_get_variable(s, name, &depth, 1, .dtype = rn_edge_dtype(like),
                                      .initializer = start, .no_regularizer = true);
  return v ? v->value : RN_NO_EDGE;
}

// (x - mean) · gamma / √(variance + epsilon) + beta.
static rn_edge_t normalized(rn_scope_t* s, rn_edge_t x, moments_t m, rn_edge_t gamma,
                            rn_edge_t beta, float epsilon) {
  rn_edge_t inverse =
      rn_Mul(s, rn_Rsqrt(s, rn_AddV2(s, m.variance, rn_like(s, x, epsilon))), gamma);
  rn_edge_t shift = rn_Sub(s, beta, rn_Mul(s, m.mean, inverse));
  return rn_AddV2(s, rn_Mul(s, x, inverse), shift);
}

// A batch norm under construction.
typedef struct batch_norm_t {
  rn_scope_t* s;
  rn_edge_t x, gamma, beta;
  const rn_var_t *mean, *variance;
  float momentum, epsilon;
} batch_norm_t;

static void keep_averages(batch_norm_t* n, moments_t batch, rn_edge_t training) {
  rn_edge_t decay = rn_const_float(n->s, n->momentum);
  if (training.node) decay = rn_SelectV2(n->s, training, decay, rn_const_float(n->s, 1));
  const rn_var_t* variables[2] = {n->mean, n->variance};
  rn_edge_t values[2] = {batch.mean, batch.variance};
  for (int i = 0; i < 2 && rn_scope_ok(n->s); ++i) {
    rn_node_t* node = rn_assign_moving_average(n->s, variables[i], values[i], decay, false);
    rn_collect(n->s, RN_UPDATE_OPS, (rn_edge_t){node, 0});
  }
}

// Images have a fused op; its variance is the unbiased estimate.
static rn_edge_t train_fused(batch_norm_t* n) {
  rn_edge_t none = rn_const(n->s, rn_edge_dtype(n->x), (const int64_t[]){0}, 1, "");
  rn_FusedBatchNormV3_out_t out =
      rn_FusedBatchNormV3(n->s, n->x, n->gamma, n->beta, none, none, .epsilon = RN_SET(n->epsilon));
  keep_averages(n, (moments_t){out.batch_mean, out.batch_variance}, RN_NO_EDGE);
  return out.y;
}

static rn_edge_t build(batch_norm_t* n, const rn_norm_options_t* options) {
  rn_scope_t* s = n->s;
  moments_t moving = {n->mean->value, n->variance->value};
  if (options->inference) return normalized(s, n->x, moving, n->gamma, n->beta, n->epsilon);
  int rank = rn_shape_of_edge(n->x).rank;
  if (rank == 4 && !options->training.node && rn_edge_dtype(n->x) == RN_FLOAT)
    return train_fused(n);
  int32_t axes[RN_MAX_RANK];
  for (int i = 0; i < rank - 1; ++i) axes[i] = i;
  moments_t batch = moments_of(s, n->x, rn_axes(s, axes, rank - 1), false);
  keep_averages(n, batch, options->training);
  if (options->training.node) {
    batch.mean = rn_SelectV2(s, options->training, batch.mean, moving.mean);
    batch.variance = rn_SelectV2(s, options->training, batch.variance, moving.variance);
  }
  return normalized(s, n->x, batch, n->gamma, n->beta, n->epsilon);
}

static const rn_var_t* average(rn_scope_t* s, const char* name, rn_edge_t like, int64_t depth,
                               double first) {
  return rn_get_variable(s, name, &depth, 1, .dtype = rn_edge_dtype(like),
                         .initializer = rn_init_constant(first), .no_regularizer = true,
                         .not_trainable = true);
}

RN_API rn_edge_t rn_batch_norm_(rn_scope_t* scope, rn_edge_t x, rn_norm_options_t options) {
  rn_scope_t* s = rn_layer_begin(scope, options.name, "batch_normalization", x);
  if (!s) return RN_NO_EDGE;
  int64_t depth = rn_layer_depth(s, x, -1);
  rn_edge_t y = RN_NO_EDGE;
  if (rn_scope_ok(s)) {
    batch_norm_t n = {.s = s,
                      .x = x,
                      .gamma = weights(s, "gamma", x, depth, 1, !options.no_scale),
                      .beta = weights(s, "beta", x, depth, 0, !options.no_center),
                      .mean = average(s, "moving_mean", x, depth, 0),
                      .variance = average(s, "moving_variance", x, depth, 1),
                      .momentum = rn_number(options.momentum, 0.99f),
                      .epsilon = rn_number(options.epsilon, 0.001f)};
    if (rn_scope_ok(s)) y = build(&n, &options);
  }
  rn_scope_destroy(s);
  return y;
}

RN_API rn_edge_t rn_layer_norm_(rn_scope_t* scope, rn_edge_t x, rn_norm_options_t options) {
  rn_scope_t* s = rn_layer_begin(scope, options.name, "layer_normalization", x);
  if (!s) return RN_NO_EDGE;
  int64_t depth = rn_layer_depth(s, x, -1);
  rn_edge_t y = RN_NO_EDGE;
  if (rn_scope_ok(s)) {
    rn_edge_t gamma = weights(s, "gamma", x, depth, 1, !options.no_scale);
    rn_edge_t beta = weights(s, "beta", x, depth, 0, !options.no_center);
    moments_t m = moments_of(s, x, rn_axis(s, -1), true);
    y = normalized(s, x, m, gamma, beta, rn_number(options.epsilon, 0.001f));
  }
  rn_scope_destroy(s);
  return y;
}
