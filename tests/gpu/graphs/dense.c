// Makers of reductions, products, convolutions and the like: see maker.h.
#include <math.h>

#include "maker.h"

// Bounds of a sum of |count| products.
static value_t summed(const value_t* shape, rn_edge_t edge, const value_t* a, const value_t* b,
                      double count) {
  double one = a->most * b->most;
  double error = a->most * b->error + b->most * a->error + one * count * unit_of(a->dtype);
  return result(shape, edge, count * one, count * error);
}

static const char* reduction(maker_t* m, rn_dtype_t dtype) {
  static const char* const of_numbers[] = {"Sum", "Max", "Min", "Mean"};
  if (is_of(dtype, BOOLS)) return chance(m, 50) ? "All" : "Any";
  return of_numbers[draw(m, is_of(dtype, INTS) ? 3 : 4)];
}

static bool make_reduction(maker_t* m) {
  const value_t* v = pick(m, NUMBERS | BOOLS, 1, MOST_RANK);
  if (!v) return false;
  const char* op = reduction(m, v->dtype);
  uint32_t which = 1 + draw(m, (1u << v->rank) - 1);
  bool keeps = chance(m, 40);
  int64_t axes[MOST_RANK];
  int count = 0;
  value_t made = *v;
  double reduced = 1;
  made.rank = 0;
  for (int i = 0; i < v->rank; ++i) {
    bool is_reduced = which >> i & 1;
    if (is_reduced) axes[count++] = chance(m, 30) ? i - v->rank : i;
    if (is_reduced) reduced *= (double)size_at(v, i);
    if (!is_reduced || keeps) made.dims[made.rank++] = is_reduced ? 1 : v->dims[i];
  }
  NODE(m, op, v->edge, ints(m, axes, count));
  rn_op_attr_bool(m->s, "keep_dims", keeps);
  double times = op[0] == 'S' ? reduced : 1;
  double error = v->error + reduced * v->most * unit_of(v->dtype);
  return put(m, result(&made, end_node(m), times * v->most, times * error));
}

static bool make_arg_max(maker_t* m) {
  const value_t* v = pick(m, INTS, 1, MOST_RANK);
  if (!v) return false;
  int axis = (int)draw(m, (uint32_t)v->rank);
  NODE(m, chance(m, 50) ? "ArgMax" : "ArgMin", v->edge, rn_const_int32(m->s, axis));
  value_t made = *v;
  made.dtype = RN_INT64;
  made.rank = 0;
  for (int i = 0; i < v->rank; ++i)
    if (i != axis) made.dims[made.rank++] = v->dims[i];
  return put(m, result(&made, end_node(m), (double)size_at(v, axis), 0));
}

static bool make_cumulative(maker_t* m) {
  const value_t* v = pick(m, NUMBERS & ~HALVES, 1, MOST_RANK);
  if (!v) return false;
  int axis = (int)draw(m, (uint32_t)v->rank);
  double count = (double)size_at(v, axis);
  NODE(m, "Cumsum", v->edge, rn_const_int32(m->s, axis));
  rn_op_attr_bool(m->s, "exclusive", chance(m, 50));
  rn_op_attr_bool(m->s, "reverse", chance(m, 50));
  value_t one = {.dtype = v->dtype, .most = 1};
  return put(m, summed(v, end_node(m), v, &one, count));
}

static bool make_softmax(maker_t* m) {
  const value_t* v = pick(m, REALS | HALVES, 1, MOST_RANK);
  if (!v) return false;
  double error = 2 * v->error + 4 * v->most * unit_of(v->dtype);
  if (chance(m, 60)) return put(m, result(v, node1(m, "Softmax", v->edge), 1, error));
  double most = 2 * v->most + log((double)size_at(v, v->rank - 1));
  return put(m, result(v, node1(m, "LogSoftmax", v->edge), most, 2 * error));
}

static bool make_matmul(maker_t* m) {
  const value_t* v = pick(m, REALS | HALVES, 2, 2);
  if (!v) return false;
  bool turns_a = chance(m, 30), turns_b = chance(m, 30);
  int64_t inner = v->dims[turns_a ? 0 : 1], width = 1 + draw(m, 9);
  if (inner == BATCH) return false;
  value_t b =
      constant(m, v->dtype, 2, turns_b ? (int64_t[]){width, inner} : (int64_t[]){inner, width});
  for (int i = m->count - 1; i >= 0; --i) {
    const value_t* other = &m->values[i];
    if (other->dtype != v->dtype || other->rank != 2 || other->dims[turns_b] != inner) continue;
    if (chance(m, 50)) b = *other;
  }
  NODE(m, "MatMul", v->edge, b.edge);
  rn_op_attr_bool(m->s, "transpose_a", turns_a);
  rn_op_attr_bool(m->s, "transpose_b", turns_b);
  value_t made = *v;
  made.dims[0] = v->dims[turns_a ? 1 : 0];
  made.dims[1] = b.dims[turns_b ? 0 : 1];
  made.is_changed |= b.is_changed;
  return put(m, summed(&made, end_node(m), v, &b, (double)inner));
}

static bool make_batch_matmul(maker_t* m) {
  const value_t* v = pick(m, REALS | HALVES, 3, 4);
  if (!v || v->dims[v->rank - 1] == BATCH) return false;
  int64_t inner = v->dims[v->rank - 1], width = 1 + draw(m, 5);
  value_t b = constant(m, v->dtype, 2, (int64_t[]){inner, width});
  value_t made = *v;
  made.dims[v->rank - 1] = width;
  return put(m, summed(&made, node2(m, "BatchMatMulV2", v->edge, b.edge), v, &b, (double)inner));
}

static bool make_bias(maker_t* m) {
  const value_t* v = pick(m, REALS | HALVES, 2, MOST_RANK);
  if (!v || v->dims[v->rank - 1] == BATCH) return false;
  value_t b = constant(m, v->dtype, 1, &v->dims[v->rank - 1]);
  return put(m, result(v, node2(m, "BiasAdd", v->edge, b.edge), v->most + b.most, v->error));
}

static bool is_image(const value_t* v) {
  return v && v->dims[1] != BATCH && v->dims[2] != BATCH && v->dims[3] != BATCH;
}

// The size of a window's result.
static int64_t windows(int64_t size, int64_t window, int64_t stride, bool is_same) {
  return is_same ? (size + stride - 1) / stride : (size - window) / stride + 1;
}

typedef struct window_t {
  int64_t height, width, strides[4];
  bool is_same;
} window_t;

static window_t draw_window(maker_t* m, const value_t* v) {
  window_t w = {.height = 1 + draw(m, 3), .width = 1 + draw(m, 3), .is_same = chance(m, 60)};
  int64_t stride = 1 + draw(m, 2);
  if (w.height > v->dims[1]) w.height = v->dims[1];
  if (w.width > v->dims[2]) w.width = v->dims[2];
  w.strides[0] = w.strides[3] = 1;
  w.strides[1] = w.strides[2] = stride;
  return w;
}

static value_t windowed(maker_t* m, const value_t* v, const window_t* w) {
  value_t made = *v;
  rn_op_attr_int_list(m->s, "strides", w->strides, 4);
  rn_op_attr_string(m->s, "padding", w->is_same ? "SAME" : "VALID");
  made.dims[1] = windows(v->dims[1], w->height, w->strides[1], w->is_same);
  made.dims[2] = windows(v->dims[2], w->width, w->strides[2], w->is_same);
  return made;
}

static bool make_convolution(maker_t* m) {
  const value_t* v = pick(m, REALS | HALVES, 4, 4);
  if (!is_image(v)) return false;
  window_t w = draw_window(m, v);
  bool is_deep = chance(m, 30);
  int64_t channels = v->dims[3], out = is_deep ? 1 + draw(m, 2) : 1 + draw(m, 6);
  value_t filter = constant(m, v->dtype, 4, (int64_t[]){w.height, w.width, channels, out});
  NODE(m, is_deep ? "DepthwiseConv2dNative" : "Conv2D", v->edge, filter.edge);
  value_t made = windowed(m, v, &w);
  made.dims[3] = is_deep ? channels * out : out;
  double count = (double)(w.height * w.width * (is_deep ? 1 : channels));
  return put(m, summed(&made, end_node(m), v, &filter, count));
}

static bool make_pool(maker_t* m) {
  const value_t* v = pick(m, FLOATS, 4, 4);
  if (!is_image(v)) return false;
  window_t w = draw_window(m, v);
  NODE(m, chance(m, 50) ? "MaxPool" : "AvgPool", v->edge);
  value_t made = windowed(m, v, &w);
  rn_op_attr_int_list(m->s, "ksize", (int64_t[]){1, w.height, w.width, 1}, 4);
  return put(m, result(&made, end_node(m), v->most, v->error + 9 * v->most * unit_of(v->dtype)));
}

static bool make_loss(maker_t* m) {
  const value_t* v = pick(m, REALS, 1, MOST_RANK);
  if (!v) return false;
  double count = (double)elements(v);
  value_t made = result(v, node1(m, "L2Loss", v->edge), count * v->most * v->most / 2,
                        count * v->most * v->error);
  made.error += count * made.most * unit_of(v->dtype);
  made.rank = 0;
  return put(m, made);
}

const choice_t dense_choices[] = {
    {24, make_reduction}, {6, make_arg_max},      {8, make_cumulative}, {10, make_softmax},
    {20, make_matmul},    {8, make_batch_matmul}, {6, make_bias},       {16, make_convolution},
    {8, make_pool},       {4, make_loss},
};
const int dense_choice_count = sizeof dense_choices / sizeof *dense_choices;
