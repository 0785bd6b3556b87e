// Makers of what networks are made of, as the planner fuses it: layers with bias, activation and
// shortcut, normalizations, attention, losses. See maker.h.
#include <math.h>

#include "maker.h"

static bool has_fixed_last(const value_t* v) {
  return v && v->rank > 0 && v->dims[v->rank - 1] != BATCH;
}

// |v| + bias, an activation, and perhaps |v| itself again.
static value_t finish_layer(maker_t* m, value_t v, const value_t* shortcut) {
  static const char* const activations[] = {"Relu", "Tanh", "Sigmoid", "Relu6", "Elu", "LeakyRelu"};
  place(m);
  value_t bias = constant(m, v.dtype, 1, &v.dims[v.rank - 1]);
  bool has_bias_op = chance(m, 60);
  v = result(&v, node2(m, has_bias_op ? "BiasAdd" : "AddV2", v.edge, bias.edge), v.most + 1,
             v.error);
  if (shortcut && is_same_shape(shortcut, &v))
    v = result(&v, node2(m, "AddV2", v.edge, shortcut->edge), v.most + shortcut->most,
               v.error + shortcut->error);
  if (chance(m, 20)) return v;
  uint32_t which = draw(m, 6);
  return result(&v, node1(m, activations[which], v.edge), v.most + 1, v.error);
}

static bool make_dense_layer(maker_t* m) {
  const value_t* v = pick(m, REALS | HALVES, 2, 2);
  if (!has_fixed_last(v)) return false;
  const int64_t inner = v->dims[1], width = chance(m, 50) ? inner : 1 + (int64_t)draw(m, 16);
  value_t weights = constant(m, v->dtype, 2, (int64_t[]){inner, width});
  value_t made = *v;
  made.dims[1] = width;
  double count = (double)inner, error = v->error + v->most * count * unit_of(v->dtype);
  made = result(&made, node2(m, "MatMul", v->edge, weights.edge), count * v->most, count * error);
  return put(m, finish_layer(m, made, chance(m, 50) ? v : NULL));
}

static bool make_conv_layer(maker_t* m) {
  const value_t* v = pick(m, FLOATS | HALVES, 4, 4);
  if (!v || v->dims[1] == BATCH || v->dims[2] == BATCH || v->dims[3] == BATCH) return false;
  const int64_t channels = v->dims[3], out = chance(m, 50) ? channels : 1 + (int64_t)draw(m, 6);
  const int64_t size = chance(m, 50) ? 3 : 1;
  value_t filter = constant(m, v->dtype, 4, (int64_t[]){size, size, channels, out});
  NODE(m, "Conv2D", v->edge, filter.edge);
  rn_op_attr_int_list(m->s, "strides", (int64_t[]){1, 1, 1, 1}, 4);
  rn_op_attr_string(m->s, "padding", "SAME");
  value_t made = *v;
  made.dims[3] = out;
  double count = (double)(size * size * channels);
  double error = v->error + v->most * count * unit_of(v->dtype);
  made = result(&made, end_node(m), count * v->most, count * error);
  return put(m, finish_layer(m, made, chance(m, 50) ? v : NULL));
}

// (x - mean) / sqrt(variance + 0.1) over the last dimension.
static bool make_layer_norm(maker_t* m) {
  const value_t* v = pick(m, REALS, 2, MOST_RANK);
  if (!v) return false;
  rn_edge_t axis = rn_const_int32(m->s, -1), mean, variance;
  NODE(m, "Mean", v->edge, axis);
  rn_op_attr_bool(m->s, "keep_dims", true);
  mean = end_node(m);
  NODE(m, "Mean", node2(m, "SquaredDifference", v->edge, mean), axis);
  rn_op_attr_bool(m->s, "keep_dims", true);
  variance = end_node(m);
  rn_edge_t scale = node1(m, "Rsqrt", node2(m, "AddV2", variance, number(m, v->dtype, 0.1)));
  rn_edge_t made = node2(m, "Mul", node2(m, "Sub", v->edge, mean), scale);
  double count = (double)size_at(v, v->rank - 1), most = sqrt(count) + 1;
  double error = 8 * most * (v->error + (count + 2) * v->most * unit_of(v->dtype));
  return put(m, result(v, made, most, error * (1 + v->most)));
}

static bool make_batch_norm(maker_t* m) {
  const value_t* v = pick(m, FLOATS, 4, 4);
  if (!has_fixed_last(v)) return false;
  const int64_t* channels = &v->dims[3];
  const bool trains = chance(m, 60);
  value_t scale = constant(m, RN_FLOAT, 1, channels), offset = constant(m, RN_FLOAT, 1, channels);
  rn_edge_t mean, variance;
  value_t drawn = constant(m, RN_FLOAT, 1, channels);
  mean = trains ? rn_const(m->s, RN_FLOAT, (int64_t[]){0}, 1, "") : drawn.edge;
  variance = trains ? mean : node1(m, "Abs", drawn.edge);
  NODE(m, "FusedBatchNormV3", v->edge, scale.edge, offset.edge, mean, variance);
  rn_op_attr_float(m->s, "epsilon", 0.1f);
  rn_op_attr_bool(m->s, "is_training", trains);
  double count = (double)elements(v) / (double)*channels;
  double most = trains ? sqrt(count) + 2 : 4 * (v->most + 1) + 1;
  double error = 8 * most * (v->error + (count + 2) * v->most * unit_of(RN_FLOAT)) * (1 + v->most);
  return put(m, result(v, end_node(m), most, error));
}

// Softmax(Q K^T) V of one value.
static bool make_attention(maker_t* m) {
  const value_t* v = pick(m, REALS, 3, 4);
  if (!has_fixed_last(v) || v->dims[v->rank - 2] == BATCH) return false;
  const double depth = (double)size_at(v, v->rank - 1), length = (double)size_at(v, v->rank - 2);
  NODE(m, "BatchMatMulV2", v->edge, v->edge);
  rn_op_attr_bool(m->s, "adj_y", true);
  rn_edge_t products = end_node(m);
  rn_edge_t scores = node2(m, "Mul", products, number(m, v->dtype, 1 / sqrt(depth)));
  rn_edge_t weights = node1(m, "Softmax", scores);
  value_t made = *v;
  double unit = unit_of(v->dtype), most = depth * v->most * v->most;
  double error = 2 * (depth * 2 * v->most * v->error + (depth + 8) * most * unit) * length;
  return put(m, result(&made, node2(m, "BatchMatMulV2", weights, v->edge), v->most,
                       v->error + (error + length * unit) * v->most));
}

static bool make_cross_entropy(maker_t* m) {
  const value_t *v = pick(m, REALS, 2, 2), *labels = NULL;
  if (!has_fixed_last(v)) return false;
  for (int i = 0; i < m->count; ++i) {
    const value_t* other = &m->values[i];
    if (is_of(other->dtype, INTS) && other->rank == 1 && other->dims[0] == v->dims[0])
      labels = other;
  }
  if (!labels) return false;
  rn_edge_t classes = in_range(m, labels, v->dims[1]);
  rn_node_t* node;
  NODE(m, "SparseSoftmaxCrossEntropyWithLogits", v->edge, classes);
  node = rn_op_finish(m->s);
  value_t loss = *v, gradient = *v;
  double width = (double)v->dims[1], error = 2 * v->error + 8 * (v->most + 1) * unit_of(v->dtype);
  loss.rank = 1;
  loss.is_changed = gradient.is_changed = v->is_changed || labels->is_changed;
  loss = result(&loss, (rn_edge_t){node, 0}, 2 * v->most + log(width), 2 * error);
  gradient = result(&gradient, (rn_edge_t){node, 1}, 1, error);
  return put(m, loss) && put(m, gradient);
}

const choice_t net_choices[] = {
    {10, make_dense_layer}, {10, make_conv_layer}, {6, make_layer_norm},
    {6, make_batch_norm},   {6, make_attention},   {5, make_cross_entropy},
};
const int net_choice_count = sizeof net_choices / sizeof *net_choices;
