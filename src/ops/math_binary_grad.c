// Gradient rules of functions of two and three arguments, with broadcasting.
#include "ops/rules.h"

static rn_edge_t x_of(const rn_grad_t* g) { return rn_grad_in(g, 0); }
static rn_edge_t y_of(const rn_grad_t* g) { return rn_grad_in(g, 1); }

// Sends dz times the derivatives with respect to x and y (RN_NO_EDGE if not needed), reduced to the
// inputs' shapes.
static rn_status_t times2(rn_grad_t* g, rn_edge_t by_x, rn_edge_t by_y) {
  rn_edge_t dz = rn_grad_dy(g, 0);
  rn_edge_t dx = by_x.node ? rn_Mul(g->scope, dz, rn_rule_conj(g, by_x)) : RN_NO_EDGE;
  rn_edge_t dy = by_y.node ? rn_Mul(g->scope, dz, rn_rule_conj(g, by_y)) : RN_NO_EDGE;
  return rn_rule_broadcast(g, 0, dx, 1, dy);
}

// Negates the gradient of input |i|, after the reduction.
static rn_status_t negate(rn_grad_t* g, int i) {
  if (g->dx[i].dense.node) rn_grad_to(g, i, rn_Neg(g->scope, g->dx[i].dense));
  return RN_OK;
}

// Whether the incoming gradient is slices that both inputs can take unchanged, because nothing was
// broadcast.
static bool same_slices(rn_grad_t* g, rn_gradient_t* out) {
  rn_shape_t x = rn_grad_shape(g, x_of(g)), y = rn_grad_shape(g, y_of(g));
  return rn_grad_slices(g, 0, out) && rn_shape_is_full(x) && rn_shape_eq(x, y);
}

RN_RULE(add) {
  if (rn_edge_dtype(x_of(g)) == RN_STRING) return RN_OK;
  rn_gradient_t rows;
  if (same_slices(g, &rows)) {
    rn_grad_slices_to(g, 0, rows);
    rn_grad_slices_to(g, 1, rows);
    return RN_OK;
  }
  return rn_rule_broadcast(g, 0, rn_grad_dy(g, 0), 1, rn_grad_dy(g, 0));
}

RN_RULE(sub) {
  rn_gradient_t rows;
  if (same_slices(g, &rows)) {
    rn_grad_slices_to(g, 0, rows);
    rows.values = rn_grad_wants(g, 1) ? rn_Neg(g->scope, rows.values) : rows.values;
    if (rn_grad_wants(g, 1)) rn_grad_slices_to(g, 1, rows);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_rule_broadcast(g, 0, rn_grad_dy(g, 0), 1, rn_grad_dy(g, 0)));
  return negate(g, 1);
}

// The gradient is slices, and input |scalar| is a scalar, whose gradient needs only those rows.
static rn_status_t mul_slices(rn_grad_t* g, int scalar, rn_gradient_t rows) {
  rn_edge_t factor = rn_grad_in(g, scalar), whole = rn_grad_in(g, 1 - scalar);
  if (rn_grad_wants(g, scalar)) {
    rn_edge_t part = rn_GatherV2(g->scope, whole, rows.indices, rn_const_int32(g->scope, 0));
    rn_edge_t product = rn_Mul(g->scope, rows.values, rn_rule_conj(g, part));
    rn_grad_to(g, scalar, rn_rule_sum_all(g, product));
  }
  rows.values = rn_Mul(g->scope, rows.values, rn_rule_conj(g, factor));
  if (rn_grad_wants(g, 1 - scalar)) rn_grad_slices_to(g, 1 - scalar, rows);
  return RN_OK;
}

RN_RULE(mul) {
  rn_gradient_t rows;
  if (rn_grad_slices(g, 0, &rows)) {
    if (rn_rule_rank(g, y_of(g)) == 0) return mul_slices(g, 1, rows);
    if (rn_rule_rank(g, x_of(g)) == 0) return mul_slices(g, 0, rows);
  }
  return times2(g, rn_grad_wants(g, 0) ? y_of(g) : RN_NO_EDGE,
                rn_grad_wants(g, 1) ? x_of(g) : RN_NO_EDGE);
}

// The division op that a rule uses.
typedef enum division_t { DIV, REAL_DIV, DIV_NO_NAN } division_t;

static rn_edge_t divide(rn_grad_t* g, division_t how, rn_edge_t a, rn_edge_t b) {
  if (how == REAL_DIV) return rn_RealDiv(g->scope, a, b);
  return how == DIV ? rn_Div(g->scope, a, b) : rn_DivNoNan(g->scope, a, b);
}

// 1 / y, -x / y^2.
static rn_status_t division(rn_grad_t* g, division_t how) {
  rn_edge_t dz = rn_grad_dy(g, 0), dx = RN_NO_EDGE, dy = RN_NO_EDGE;
  rn_edge_t y = rn_rule_conj(g, y_of(g));
  if (rn_grad_wants(g, 0)) dx = divide(g, how, dz, y);
  if (rn_grad_wants(g, 1)) {
    rn_edge_t minus = rn_Neg(g->scope, rn_rule_conj(g, x_of(g)));
    dy = rn_Mul(g->scope, dz, divide(g, how, divide(g, how, minus, y), y));
  }
  return rn_rule_broadcast(g, 0, dx, 1, dy);
}

RN_RULE(div) { return division(g, DIV); }
RN_RULE(real_div) { return division(g, REAL_DIV); }
RN_RULE(div_no_nan) { return division(g, DIV_NO_NAN); }

// Sends the gradient to x where |mask| is true, to y elsewhere.
static rn_status_t choose(rn_grad_t* g, rn_edge_t mask, int x, int y) {
  rn_edge_t dz = rn_grad_dy(g, 0), zero = rn_rule_zero(g, dz), dx = RN_NO_EDGE, dy = RN_NO_EDGE;
  if (rn_grad_wants(g, x)) dx = rn_SelectV2(g->scope, mask, dz, zero);
  if (rn_grad_wants(g, y)) dy = rn_SelectV2(g->scope, mask, zero, dz);
  return rn_rule_broadcast(g, x, dx, y, dy);
}

// If x = y, x gets the gradient.
RN_RULE(maximum) { return choose(g, rn_GreaterEqual(g->scope, x_of(g), y_of(g)), 0, 1); }
RN_RULE(minimum) { return choose(g, rn_LessEqual(g->scope, x_of(g), y_of(g)), 0, 1); }

// The condition has the shape of the values or selects rows; nothing broadcasts.
RN_RULE(select) {
  rn_edge_t mask = rn_grad_in(g, 0), dz = rn_grad_dy(g, 0), zeros = rn_ZerosLike(g->scope, dz);
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_Select(g->scope, mask, dz, zeros));
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, rn_Select(g->scope, mask, zeros, dz));
  return RN_OK;
}

// All three inputs broadcast, so each gradient is reduced from the shape of the result.
RN_RULE(select_v2) {
  rn_edge_t mask = rn_grad_in(g, 0), dz = rn_grad_dy(g, 0), zero = rn_rule_zero(g, dz);
  rn_edge_t z = rn_grad_out(g, 0);
  for (int i = 1; i <= 2; ++i) {
    if (!rn_grad_wants(g, i)) continue;
    rn_edge_t part =
        i == 1 ? rn_SelectV2(g->scope, mask, dz, zero) : rn_SelectV2(g->scope, mask, zero, dz);
    rn_grad_to(g, i, rn_rule_unbroadcast(g, part, rn_grad_in(g, i), z, 0));
  }
  return RN_OK;
}

// Clipped elements send their gradient to the limit.
RN_RULE(clip_by_value) {
  rn_edge_t t = rn_grad_in(g, 0), low = rn_grad_in(g, 1), high = rn_grad_in(g, 2);
  rn_edge_t dz = rn_grad_dy(g, 0), zero = rn_rule_zero(g, dz);
  rn_edge_t below = rn_Less(g->scope, t, low), above = rn_Greater(g->scope, t, high);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t clipped = rn_LogicalOr(g->scope, below, above);
    rn_edge_t dt = rn_SelectV2(g->scope, clipped, zero, dz);
    rn_grad_to(g, 0, rn_rule_unbroadcast(g, dt, t, rn_grad_out(g, 0), 0));
  }
  if (rn_grad_wants(g, 1))
    rn_grad_to(g, 1, rn_rule_unbroadcast(g, rn_SelectV2(g->scope, below, dz, zero), low, t, 0));
  if (rn_grad_wants(g, 2))
    rn_grad_to(g, 2, rn_rule_unbroadcast(g, rn_SelectV2(g->scope, above, dz, zero), high, t, 0));
  return RN_OK;
}

// y x^(y-1), z log(x); log(x) counts as 0 where it is undefined. The incoming gradient is
// multiplied first, so that where it is 0, a power that overflows does not produce NaN.
RN_RULE(pow) {
  rn_edge_t x = rn_rule_conj(g, x_of(g)), y = rn_rule_conj(g, y_of(g));
  rn_edge_t dz = rn_grad_dy(g, 0), dx = RN_NO_EDGE, dy = RN_NO_EDGE;
  rn_edge_t zero = rn_rule_zero(g, x), one = rn_rule_scalar(g, x, 1);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t power = rn_Pow(g->scope, x, rn_Sub(g->scope, y, one));
    dx = rn_Mul(g->scope, rn_Mul(g->scope, dz, y), power);
  }
  if (rn_grad_wants(g, 1) && !rn_dtype_is_integer(rn_edge_dtype(x))) {
    bool is_complex = rn_dtype_is_complex(rn_edge_dtype(x));
    rn_edge_t has_log = is_complex ? rn_NotEqual(g->scope, x, zero) : rn_Greater(g->scope, x, zero);
    rn_edge_t log = rn_Log(g->scope, rn_SelectV2(g->scope, has_log, x, one));
    dy = rn_Mul(g->scope, rn_Mul(g->scope, dz, rn_rule_conj(g, rn_grad_out(g, 0))), log);
  }
  return rn_rule_broadcast(g, 0, dx, 1, dy);
}

RN_RULE(squared_difference) {
  rn_edge_t dz = rn_grad_dy(g, 0), difference = rn_Sub(g->scope, x_of(g), y_of(g));
  rn_edge_t twice = rn_Mul(g->scope, rn_rule_scale(g, 2, dz), rn_rule_conj(g, difference));
  RN_RETURN_IF_ERROR(rn_rule_broadcast(g, 0, twice, 1, twice));
  return negate(g, 1);
}

// Atan2(y, x): x / r^2, -y / r^2.
RN_RULE(atan2) {
  rn_edge_t y = rn_grad_in(g, 0), x = rn_grad_in(g, 1);
  rn_edge_t square = rn_AddV2(g->scope, rn_Square(g->scope, x), rn_Square(g->scope, y));
  rn_edge_t scaled = rn_RealDiv(g->scope, rn_grad_dy(g, 0), square);
  rn_edge_t dy = rn_grad_wants(g, 0) ? rn_Mul(g->scope, scaled, x) : RN_NO_EDGE;
  rn_edge_t dx = rn_grad_wants(g, 1) ? rn_Mul(g->scope, scaled, y) : RN_NO_EDGE;
  RN_RETURN_IF_ERROR(rn_rule_broadcast(g, 0, dy, 1, dx));
  return negate(g, 1);
}

// Zero times a non-finite value is zero.
RN_RULE(mul_no_nan) {
  rn_edge_t dz = rn_grad_dy(g, 0);
  rn_edge_t x = rn_rule_conj(g, x_of(g)), y = rn_rule_conj(g, y_of(g));
  rn_edge_t dx = rn_grad_wants(g, 0) ? rn_MulNoNan(g->scope, dz, y) : RN_NO_EDGE;
  rn_edge_t dy = rn_grad_wants(g, 1) ? rn_MulNoNan(g->scope, x, dz) : RN_NO_EDGE;
  return rn_rule_broadcast(g, 0, dx, 1, dy);
}

// 1 where x is not 0.
static rn_edge_t is_not_zero(rn_grad_t* g) {
  rn_edge_t x = x_of(g);
  return rn_Cast(g->scope, rn_NotEqual(g->scope, x, rn_rule_zero(g, x)), rn_edge_dtype(x));
}

RN_RULE(xlogy) {
  rn_edge_t by_x = RN_NO_EDGE, by_y = RN_NO_EDGE;
  if (rn_grad_wants(g, 0)) by_x = rn_Xlogy(g->scope, is_not_zero(g), y_of(g));
  if (rn_grad_wants(g, 1)) by_y = rn_Xdivy(g->scope, x_of(g), y_of(g));
  return times2(g, by_x, by_y);
}

RN_RULE(xlog1py) {
  rn_edge_t y = y_of(g), by_x = RN_NO_EDGE, by_y = RN_NO_EDGE;
  if (rn_grad_wants(g, 0)) by_x = rn_Xlog1py(g->scope, is_not_zero(g), y);
  if (rn_grad_wants(g, 1))
    by_y = rn_Xdivy(g->scope, x_of(g), rn_AddV2(g->scope, y, rn_rule_scalar(g, y, 1)));
  return times2(g, by_x, by_y);
}

RN_RULE(xdivy) {
  rn_edge_t y = y_of(g), by_x = RN_NO_EDGE, by_y = RN_NO_EDGE;
  if (rn_grad_wants(g, 0)) by_x = rn_Xdivy(g->scope, is_not_zero(g), y);
  if (rn_grad_wants(g, 1))
    by_y = rn_Xdivy(g->scope, rn_Neg(g->scope, x_of(g)), rn_Square(g->scope, y));
  return times2(g, by_x, by_y);
}

// x - y floor(x / y), and the same with the quotient cut off.
static rn_status_t mod(rn_grad_t* g, bool floors) {
  rn_edge_t by_y = RN_NO_EDGE;
  if (rn_grad_wants(g, 1))
    by_y = floors ? rn_FloorDiv(g->scope, x_of(g), y_of(g))
                  : rn_TruncateDiv(g->scope, x_of(g), y_of(g));
  if (by_y.node) by_y = rn_Mul(g->scope, rn_grad_dy(g, 0), by_y);
  RN_RETURN_IF_ERROR(rn_rule_broadcast(g, 0, rn_grad_dy(g, 0), 1, by_y));
  return negate(g, 1);
}
RN_RULE(floor_mod) { return mod(g, true); }
RN_RULE(truncate_mod) { return mod(g, false); }

// The derivative is 1 with respect to x1 and 0 with respect to x2.
RN_RULE(next_after) {
  rn_edge_t dz = rn_grad_dy(g, 0);
  RN_RETURN_IF_ERROR(rn_rule_broadcast(g, 0, dz, 1, RN_NO_EDGE));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_ZerosLike(g->scope, y_of(g)));
  return RN_OK;
}

// By a: IgammaGradA. By x: the density exp(-x + (a - 1) log x - lgamma(a)).
static rn_status_t incomplete_gamma(rn_grad_t* g) {
  rn_edge_t a = x_of(g), x = y_of(g), by_a = RN_NO_EDGE, by_x = RN_NO_EDGE;
  if (rn_grad_wants(g, 0)) by_a = rn_IgammaGradA(g->scope, a, x);
  if (rn_grad_wants(g, 1)) {
    rn_edge_t less = rn_Sub(g->scope, a, rn_rule_scalar(g, a, 1));
    rn_edge_t power = rn_Mul(g->scope, less, rn_Log(g->scope, x));
    power = rn_Sub(g->scope, rn_Sub(g->scope, power, x), rn_Lgamma(g->scope, a));
    by_x = rn_Exp(g->scope, power);
  }
  return times2(g, by_a, by_x);
}

RN_RULE(igamma) { return incomplete_gamma(g); }

RN_RULE(igammac) {
  RN_RETURN_IF_ERROR(incomplete_gamma(g));
  RN_RETURN_IF_ERROR(negate(g, 0));
  return negate(g, 1);
}

// By q: -x zeta(x + 1, q). By x there is no formula.
RN_RULE(zeta) {
  rn_edge_t x = x_of(g);
  if (!rn_grad_wants(g, 1)) return RN_OK;
  rn_edge_t next = rn_Zeta(g->scope, rn_AddV2(g->scope, x, rn_rule_scalar(g, x, 1)), y_of(g));
  return times2(g, RN_NO_EDGE, rn_Mul(g->scope, rn_Neg(g->scope, x), next));
}

RN_RULE(polygamma) {
  rn_edge_t order = x_of(g);
  if (!rn_grad_wants(g, 1)) return RN_OK;
  rn_edge_t next = rn_AddV2(g->scope, order, rn_rule_scalar(g, order, 1));
  return times2(g, RN_NO_EDGE, rn_Polygamma(g->scope, next, y_of(g)));
}

RN_RULE(cross) {
  rn_edge_t a = rn_grad_in(g, 0), b = rn_grad_in(g, 1), dz = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_Cross(g->scope, b, dz));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_Cross(g->scope, dz, a));
  return RN_OK;
}

static rn_status_t to_all(rn_grad_t* g) {
  for (int i = 0; i < g->input_count; ++i) rn_grad_slices_to(g, i, g->dy[0]);
  return RN_OK;
}

RN_RULE(add_n) { return to_all(g); }
RN_RULE(accumulate_n) { return to_all(g); }

// By x: the density x^(a-1) (1-x)^(b-1) / B(a, b). By a and b there is no formula.
RN_RULE(betainc) {
  rn_edge_t a = rn_grad_in(g, 0), b = rn_grad_in(g, 1), x = rn_grad_in(g, 2);
  if (!rn_grad_wants(g, 2)) return RN_OK;
  rn_edge_t one = rn_rule_scalar(g, x, 1);
  rn_edge_t beta = rn_AddV2(g->scope, rn_Lgamma(g->scope, a), rn_Lgamma(g->scope, b));
  beta = rn_Sub(g->scope, beta, rn_Lgamma(g->scope, rn_AddV2(g->scope, a, b)));
  rn_edge_t left = rn_Xlogy(g->scope, rn_Sub(g->scope, a, one), x);
  rn_edge_t right = rn_Xlog1py(g->scope, rn_Sub(g->scope, b, one), rn_Neg(g->scope, x));
  rn_edge_t power = rn_Sub(g->scope, rn_AddV2(g->scope, left, right), beta);
  rn_edge_t dx = rn_Mul(g->scope, rn_grad_dy(g, 0), rn_Exp(g->scope, power));
  rn_grad_to(g, 2, rn_rule_unbroadcast(g, dx, x, rn_grad_out(g, 0), 0));
  return RN_OK;
}
