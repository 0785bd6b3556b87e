// Makers of elementwise ops: see maker.h.
#include <math.h>

#include "maker.h"

// What an op does to the bounds.
typedef enum growth_t {
  KEEPS,    // |f(x)| <= |x|, differences do not grow
  IS_ONE,   // |f(x)| <= 1, differences do not grow
  IS_SIX,   // |f(x)| <= 6
  IS_NEAR,  // |f(x)| <= |x| + 1
  SQUARES,
  IS_EXP,
} growth_t;

static const struct {
  const char* op;
  growth_t growth;
} float_ops[] = {
    {"Neg", KEEPS},        {"Abs", KEEPS},       {"Relu", KEEPS},     {"Tanh", IS_ONE},
    {"Sigmoid", IS_ONE},   {"Sin", IS_ONE},      {"Cos", IS_ONE},     {"Softsign", IS_ONE},
    {"Relu6", IS_SIX},     {"Elu", IS_NEAR},     {"Square", SQUARES}, {"Exp", IS_EXP},
    {"Softplus", IS_NEAR}, {"LeakyRelu", KEEPS}, {"Identity", KEEPS},
};

static value_t grow(maker_t* m, const value_t* v, const char* op, growth_t growth) {
  double most = v->most, error = v->error;
  if (growth == IS_EXP && most > 3) return *v;
  if (growth == IS_ONE) most = 1;
  if (growth == IS_SIX) most = 6;
  if (growth == IS_NEAR) most += 1;
  if (growth == SQUARES) error = 2 * most * error, most *= most;
  if (growth == IS_EXP) most = exp(most), error *= most;
  return result(v, node1(m, op, v->edge), most, error);
}

// An op that must not see zeros or negative numbers, of |x| + 1.
static value_t of_positive(maker_t* m, const value_t* v) {
  static const char* const ops[] = {"Sqrt", "Rsqrt", "Log", "Reciprocal"};
  rn_edge_t above = node2(m, "AddV2", node1(m, "Abs", v->edge), number(m, v->dtype, 1));
  double error = v->error + (v->most + 1) * unit_of(v->dtype);
  return result(v, node1(m, ops[draw(m, 4)], above), v->most > 1 ? v->most : 1, error);
}

static value_t float_unary(maker_t* m, const value_t* v) {
  enum { COUNT = sizeof float_ops / sizeof *float_ops };
  uint32_t which = draw(m, COUNT + 2);
  return which >= COUNT ? of_positive(m, v)
                        : grow(m, v, float_ops[which].op, float_ops[which].growth);
}

static value_t int_unary(maker_t* m, const value_t* v) {
  static const char* const ops[] = {"Neg", "Abs", "Sign", "Square", "Invert", "Identity"};
  uint32_t which = draw(m, 6);
  double most = which == 3 ? v->most * v->most : v->most + 1;
  return result(v, node1(m, ops[which], v->edge), most, 0);
}

static value_t bool_unary(maker_t* m, const value_t* v) {
  return result(v, node1(m, chance(m, 70) ? "LogicalNot" : "Identity", v->edge), 1, 0);
}

static value_t unary_of(maker_t* m, const value_t* v) {
  if (is_of(v->dtype, INTS)) return int_unary(m, v);
  return is_of(v->dtype, BOOLS) ? bool_unary(m, v) : float_unary(m, v);
}

static bool make_unary(maker_t* m) {
  const value_t* v = pick(m, NUMBERS | BOOLS, 0, MOST_RANK);
  return v && put(m, unary_of(m, v));
}

static value_t float_binary(maker_t* m, const value_t* shape, const value_t* a, const value_t* b) {
  static const char* const ops[] = {
      "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "RealDiv"};
  uint32_t which = draw(m, 7);
  double most = a->most + b->most, error = a->error + b->error;
  rn_edge_t right = b->edge;
  if (which == 2) most = a->most * b->most, error = a->most * b->error + b->most * a->error;
  if (which == 5) error *= 2 * most, most *= most;
  if (which == 6) {
    right = node2(m, "AddV2", node1(m, "Abs", right), number(m, b->dtype, 1));
    error = a->error + a->most * (b->error + unit_of(b->dtype) * (b->most + 1));
    most = a->most;
  }
  return result(shape, node2(m, ops[which], a->edge, right), most, error);
}

static value_t int_binary(maker_t* m, const value_t* shape, const value_t* a, const value_t* b) {
  static const char* const ops[] = {"AddV2",   "Sub",        "Mul",       "Maximum",
                                    "Minimum", "BitwiseAnd", "BitwiseOr", "BitwiseXor"};
  uint32_t which = draw(m, 8);
  double most = which == 2 ? a->most * b->most : 2 * (a->most + b->most) + 1;
  return result(shape, node2(m, ops[which], a->edge, b->edge), most, 0);
}

// A value that |a| can be paired with: another one, or a new constant.
static value_t partner(maker_t* m, const value_t* a) {
  value_t shape;
  for (int i = 0; i < 8; ++i) {
    const value_t* b = pick(m, NUMBERS, 0, MOST_RANK);
    if (b && b->dtype == a->dtype && broadcasts(a, b, &shape)) return *b;
  }
  int last = a->rank - 1;
  return a->rank && a->dims[last] != BATCH && chance(m, 50)
             ? constant(m, a->dtype, 1, &a->dims[last])
             : constant(m, a->dtype, 0, NULL);
}

static bool make_binary(maker_t* m) {
  const value_t* a = pick(m, NUMBERS, 0, MOST_RANK);
  if (!a) return false;
  value_t b = partner(m, a), shape;
  if (!broadcasts(a, &b, &shape)) return false;
  value_t left = *a, right = b;
  if (chance(m, 50)) left = b, right = *a;
  return put(m, is_of(a->dtype, INTS) ? int_binary(m, &shape, &left, &right)
                                      : float_binary(m, &shape, &left, &right));
}

static bool make_remainder(maker_t* m) {
  const value_t* a = pick(m, INTS, 0, MOST_RANK);
  if (!a) return false;
  const char* op = chance(m, 50) ? "FloorMod" : "FloorDiv";
  double by = 2 + draw(m, 9);
  return put(m, result(a, node2(m, op, a->edge, number(m, a->dtype, by)), a->most + 1, 0));
}

static bool make_comparison(maker_t* m) {
  static const char* const ops[] = {"Less",         "LessEqual", "Greater",
                                    "GreaterEqual", "Equal",     "NotEqual"};
  const value_t* a = pick(m, INTS, 0, MOST_RANK);
  if (!a) return false;
  value_t b = partner(m, a), shape;
  if (!broadcasts(a, &b, &shape)) return false;
  shape.dtype = RN_BOOL;
  return put(m, result(&shape, node2(m, ops[draw(m, 6)], a->edge, b.edge), 1, 0));
}

static bool make_logical(maker_t* m) {
  const value_t *a = pick(m, BOOLS, 0, MOST_RANK), *b = pick(m, BOOLS, 0, MOST_RANK);
  value_t shape;
  if (!a || !b || !broadcasts(a, b, &shape)) return false;
  const char* op = chance(m, 50) ? "LogicalAnd" : "LogicalOr";
  return put(m, result(&shape, node2(m, op, a->edge, b->edge), 1, 0));
}

static bool make_select(maker_t* m) {
  const value_t *condition = pick(m, BOOLS, 0, MOST_RANK), *a = pick(m, NUMBERS, 0, MOST_RANK);
  value_t both, all;
  if (!condition || !a) return false;
  value_t b = partner(m, a);
  if (!broadcasts(a, &b, &both) || !broadcasts(condition, &both, &all)) return false;
  all.dtype = a->dtype;
  NODE(m, "SelectV2", condition->edge, a->edge, b.edge);
  rn_edge_t made = {rn_op_finish(m->s), 0};
  return put(m, result(&all, made, fmax(a->most, b.most), fmax(a->error, b.error)));
}

static bool make_cast(maker_t* m) {
  static const rn_dtype_t from_float[] = {RN_FLOAT, RN_DOUBLE, RN_HALF};
  static const rn_dtype_t from_int[] = {RN_INT32, RN_INT64, RN_FLOAT, RN_DOUBLE};
  const value_t* v = pick(m, NUMBERS | BOOLS, 0, MOST_RANK);
  if (!v) return false;
  bool is_exact = is_of(v->dtype, INTS | BOOLS);
  rn_dtype_t to = is_exact ? from_int[draw(m, 4)] : from_float[draw(m, 3)];
  NODE(m, "Cast", v->edge);
  rn_op_attr_type(m->s, "DstT", (int)to);
  value_t made = *v;
  made.dtype = to;
  return put(m, result(&made, end_node(m), v->most, v->error + v->most * unit_of(v->dtype)));
}

static bool make_clip(maker_t* m) {
  const value_t* v = pick(m, REALS | HALVES, 0, MOST_RANK);
  if (!v) return false;
  NODE(m, "ClipByValue", v->edge, number(m, v->dtype, -0.5), number(m, v->dtype, 0.75));
  return put(m, result(v, end_node(m), 0.75, v->error));
}

static bool make_sum_of_many(maker_t* m) {
  const value_t* v = pick(m, REALS | HALVES, 0, MOST_RANK);
  if (!v) return false;
  rn_edge_t list[3] = {v->edge, node1(m, "Neg", v->edge), v->edge};
  rn_op_begin(m->s, "AddN");
  rn_op_input_list(m->s, list, 3);
  return put(m, result(v, end_node(m), 3 * v->most, 3 * v->error));
}

value_t keep_shape(maker_t* m, value_t v) {
  place(m);
  value_t made = unary_of(m, &v);
  if (is_of(v.dtype, BOOLS) || chance(m, 40)) return made;
  value_t scalar = constant(m, v.dtype, 0, NULL);
  place(m);
  return is_of(v.dtype, INTS) ? int_binary(m, &made, &made, &scalar)
                              : float_binary(m, &made, &made, &scalar);
}

const choice_t element_choices[] = {
    {30, make_unary},     {40, make_binary}, {4, make_remainder},
    {8, make_comparison}, {4, make_logical}, {8, make_select},
    {8, make_cast},       {3, make_clip},    {3, make_sum_of_many},
};
const int element_choice_count = sizeof element_choices / sizeof *element_choices;
