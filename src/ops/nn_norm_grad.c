// Gradient rules of batch normalization.
#include "ops/rules.h"

static bool is_training(const rn_grad_t* g) { return rn_grad_attr_bool(g, "is_training"); }

static void to_three(rn_grad_t* g, rn_edge_t d, int first) {
  for (int i = 0; d.node && i < 3; ++i) rn_grad_to(g, first + i, (rn_edge_t){d.node, i});
}

// In training, the node outputs the statistics of its batch; otherwise they are inputs.
static rn_status_t batch_norm(rn_grad_t* g, const char* gradient) {
  rn_edge_t x = rn_grad_in(g, 0), scale = rn_grad_in(g, 1), dy = rn_grad_dy(g, 0);
  rn_edge_t mean = is_training(g) ? rn_grad_out(g, 3) : rn_grad_in(g, 3);
  rn_edge_t variance = is_training(g) ? rn_grad_out(g, 4) : rn_grad_in(g, 4);
  if (!rn_grad_has_dy(g, 0)) return RN_OK;
  if (g->output_count > 5) {
    // The gradient op supports only float scales.
    scale = rn_rule_cast(g, scale, RN_FLOAT);
    mean = rn_rule_cast(g, mean, RN_FLOAT);
    variance = rn_rule_cast(g, variance, RN_FLOAT);
    rn_edge_t reserve = rn_rule_cast(g, rn_grad_out(g, 5), RN_FLOAT);
    to_three(g, RN_RULE_ALIKE(g, gradient, dy, x, scale, mean, variance, reserve), 0);
  } else {
    to_three(g, RN_RULE_ALIKE(g, gradient, dy, x, scale, mean, variance), 0);
  }
  for (int i = 1; i <= 2; ++i)
    rn_grad_to(g, i, rn_rule_cast(g, g->dx[i].dense, rn_edge_dtype(rn_grad_in(g, i))));
  return RN_OK;
}

RN_RULE(fused_batch_norm) {
  bool is_first = !strcmp(rn_grad_op(g), "FusedBatchNorm");
  return batch_norm(g, is_first ? "FusedBatchNormGrad" : "FusedBatchNormGradV2");
}

RN_RULE(fused_batch_norm_v3) { return batch_norm(g, "FusedBatchNormGradV3"); }

// The gradient's own gradient. With m(.) the mean over a channel's batch, r = 1 / sqrt(var + eps)
// and n = (x - m(x)) r, the node computes
//   dx     = scale r (dy - m(dy) - n m(n dy))
//   dscale = sum(n dy)
//   doffset = sum(dy)
// Let a, b, c be the incoming gradients of these three. Then
//   to dy:    scale r (a - m(a) - n m(n a)) + b n + c
//   to scale: sum(a r (dy - m(dy) - n m(n dy)))
//   to x:     r (h - m(h) - n m(n h)) - scale r^2 n k
//     where h = b dy - scale r (a m(n dy) + dy m(n a))       through n
//     and   k = m(a dy) - m(a) m(dy) - m(n a) m(n dy)        through r.
// In inference the means are constants: dx = scale r dy.
typedef struct nn_norm_grad_norm_t {
  rn_grad_t* g;
  rn_edge_t axes;        // all but the channels
  bool is_channel_last;  // per-channel vectors broadcast without a reshape
  int rank;
  rn_edge_t dy, x, scale;  // float
  rn_edge_t n, r;
} nn_norm_grad_norm_t;

static rn_edge_t mul(const nn_norm_grad_norm_t* t, rn_edge_t a, rn_edge_t b) {
  return rn_Mul(t->g->scope, a, b);
}

static rn_edge_t sub(const nn_norm_grad_norm_t* t, rn_edge_t a, rn_edge_t b) {
  return rn_Sub(t->g->scope, a, b);
}

static rn_edge_t mean(const nn_norm_grad_norm_t* t, rn_edge_t value) {
  return rn_Mean(t->g->scope, value, t->axes, .keep_dims = true);
}

// v - m(v) - n m(n v).
static rn_edge_t centred(const nn_norm_grad_norm_t* t, rn_edge_t value) {
  rn_edge_t rest = mul(t, t->n, mean(t, mul(t, t->n, value)));
  return sub(t, sub(t, value, mean(t, value)), rest);
}

// Reshapes a per-channel vector to broadcast against the images.
static rn_edge_t channels(const nn_norm_grad_norm_t* t, rn_edge_t vector) {
  vector = rn_rule_cast(t->g, vector, RN_FLOAT);
  if (t->is_channel_last) return vector;
  int64_t shape[4] = {-1, 1, 1, 1};
  return rn_Reshape(t->g->scope, vector, rn_rule_ints(t->g, RN_INT32, shape, t->rank - 1));
}

static nn_norm_grad_norm_t norm_of(rn_grad_t* g) {
  rn_str_t format = rn_grad_attr(g, "data_format")->s;
  nn_norm_grad_norm_t t = {.g = g, .rank = (int)format.size};
  t.is_channel_last = format.data[format.size - 1] == 'C';
  int64_t axes[5];
  int count = 0, channel = t.is_channel_last ? t.rank - 1 : 1;
  for (int i = 0; i < t.rank; ++i)
    if (i != channel) axes[count++] = i;
  t.axes = rn_rule_ints(g, RN_INT32, axes, count);
  t.dy = rn_rule_cast(g, rn_grad_in(g, 0), RN_FLOAT);
  t.x = rn_rule_cast(g, rn_grad_in(g, 1), RN_FLOAT);
  t.scale = channels(&t, rn_grad_in(g, 2));
  rn_edge_t middle = is_training(g) ? mean(&t, t.x) : channels(&t, rn_grad_in(g, 3));
  rn_edge_t apart = sub(&t, t.x, middle);
  rn_edge_t variance =
      is_training(g) ? mean(&t, rn_Square(g->scope, apart)) : channels(&t, rn_grad_in(g, 4));
  rn_edge_t epsilon = rn_const_float(g->scope, rn_grad_attr_float(g, "epsilon"));
  t.r = rn_Rsqrt(g->scope, rn_AddV2(g->scope, variance, epsilon));
  t.n = mul(&t, apart, t.r);
  return t;
}

static rn_edge_t plus(rn_grad_t* g, rn_edge_t a, rn_edge_t b) {
  if (!a.node || !b.node) return a.node ? a : b;
  return rn_AddV2(g->scope, a, b);
}

static void to_gradient(const nn_norm_grad_norm_t* t, rn_edge_t a, rn_edge_t b, rn_edge_t c) {
  rn_grad_t* g = t->g;
  rn_edge_t sum = RN_NO_EDGE;
  if (a.node) sum = mul(t, mul(t, t->scale, t->r), is_training(g) ? centred(t, a) : a);
  if (b.node) sum = plus(g, sum, mul(t, b, t->n));
  if (c.node)  // if it is the only term, it must first get the images' shape
    sum = plus(g, sum.node ? sum : rn_ZerosLike(g->scope, t->dy), c);
  rn_grad_to(g, 0, rn_rule_cast(g, sum, rn_edge_dtype(rn_grad_in(g, 0))));
}

static void to_images(const nn_norm_grad_norm_t* t, rn_edge_t a, rn_edge_t b) {
  rn_grad_t* g = t->g;
  rn_edge_t h = b.node ? mul(t, b, t->dy) : RN_NO_EDGE, dx;
  if (!is_training(g)) {
    dx = h.node ? mul(t, h, t->r) : rn_ZerosLike(g->scope, t->x);
  } else {
    rn_edge_t through_r = RN_NO_EDGE;
    if (a.node) {
      rn_edge_t na = mean(t, mul(t, t->n, a)), nd = mean(t, mul(t, t->n, t->dy));
      rn_edge_t slope = mul(t, t->scale, t->r);
      rn_edge_t pair = rn_AddV2(g->scope, mul(t, a, nd), mul(t, t->dy, na));
      h = plus(g, h, rn_Neg(g->scope, mul(t, slope, pair)));
      rn_edge_t k = sub(t, mean(t, mul(t, a, t->dy)), mul(t, mean(t, a), mean(t, t->dy)));
      k = sub(t, k, mul(t, na, nd));
      through_r = mul(t, mul(t, mul(t, slope, t->r), k), t->n);
    }
    dx = h.node ? mul(t, t->r, centred(t, h)) : rn_ZerosLike(g->scope, t->x);
    if (through_r.node) dx = sub(t, dx, through_r);
  }
  rn_grad_to(g, 1, rn_rule_cast(g, dx, rn_edge_dtype(rn_grad_in(g, 1))));
}

static void to_scale(const nn_norm_grad_norm_t* t, rn_edge_t a) {
  rn_grad_t* g = t->g;
  if (!a.node) {
    rn_grad_to(g, 2, rn_ZerosLike(g->scope, rn_grad_in(g, 2)));
    return;
  }
  rn_edge_t moved = is_training(g) ? centred(t, t->dy) : t->dy;
  rn_edge_t product = mul(t, mul(t, a, t->r), moved);
  rn_grad_to(g, 2, rn_Sum(g->scope, product, t->axes));
}

RN_RULE(fused_batch_norm_grad) {
  nn_norm_grad_norm_t t = norm_of(g);
  rn_edge_t a = rn_rule_cast(g, rn_grad_dy_or_none(g, 0), RN_FLOAT);
  rn_edge_t b = rn_grad_has_dy(g, 1) ? channels(&t, rn_grad_dy(g, 1)) : RN_NO_EDGE;
  rn_edge_t c = rn_grad_has_dy(g, 2) ? channels(&t, rn_grad_dy(g, 2)) : RN_NO_EDGE;
  if (!a.node && !b.node && !c.node) return RN_OK;
  if (rn_grad_wants(g, 0)) to_gradient(&t, a, b, c);
  if (rn_grad_wants(g, 1)) to_images(&t, a, b);
  if (rn_grad_wants(g, 2)) to_scale(&t, a);
  return RN_OK;
}

// BatchNormWithGlobalNormalization, for old graphs.
RN_RULE(batch_norm_global) {
  rn_edge_t d =
      RN_RULE_ALIKE(g, "BatchNormWithGlobalNormalizationGrad", rn_grad_in(g, 0), rn_grad_in(g, 1),
                    rn_grad_in(g, 2), rn_grad_in(g, 4), rn_grad_dy(g, 0));
  for (int i = 0; d.node && i < 5; ++i) rn_grad_to(g, i, (rn_edge_t){d.node, i});
  return RN_OK;
}
