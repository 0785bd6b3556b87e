// Gradient rules of functions of one argument, and of their fused gradients.
#include <math.h>

#include "ops/rules.h"

// 2 / sqrt(pi), sqrt(pi) / 2 and sqrt(2 pi).
#define TWO_OVER_SQRT_PI 1.12837916709551257390
#define HALF_SQRT_PI 0.88622692545275801365
#define SQRT_TWO_PI 2.50662827463100050242

static rn_status_t to_x(rn_grad_t* g, rn_edge_t dx) {
  rn_grad_to(g, 0, dx);
  return RN_OK;
}

// dx = dy * conj(f'(x)).
static rn_status_t times(rn_grad_t* g, rn_edge_t slope) {
  return to_x(g, rn_Mul(g->scope, rn_grad_dy(g, 0), rn_rule_conj(g, slope)));
}

// dx = dy / conj(1 / f'(x)).
static rn_status_t over(rn_grad_t* g, rn_edge_t inverse_slope) {
  return to_x(g, rn_RealDiv(g->scope, rn_grad_dy(g, 0), rn_rule_conj(g, inverse_slope)));
}

static rn_edge_t x_of(const rn_grad_t* g) { return rn_grad_in(g, 0); }
static rn_edge_t y_of(const rn_grad_t* g) { return rn_grad_out(g, 0); }

RN_RULE(abs) { return times(g, rn_Sign(g->scope, x_of(g))); }

RN_RULE(neg) {
  rn_gradient_t rows;
  if (!rn_grad_slices(g, 0, &rows)) return to_x(g, rn_Neg(g->scope, rn_grad_dy(g, 0)));
  rows.values = rn_Neg(g->scope, rows.values);
  rn_grad_slices_to(g, 0, rows);
  return RN_OK;
}

RN_RULE(exp) { return times(g, y_of(g)); }

RN_RULE(expm1) { return times(g, rn_Exp(g->scope, x_of(g))); }

RN_RULE(log) { return over(g, x_of(g)); }

RN_RULE(log1p) {
  rn_edge_t x = x_of(g);
  return over(g, rn_AddV2(g->scope, x, rn_rule_scalar(g, x, 1)));
}

RN_RULE(square) { return times(g, rn_rule_scale(g, 2, x_of(g))); }

RN_RULE(sign) { return to_x(g, rn_ZerosLike(g->scope, x_of(g))); }

RN_RULE(sin) { return times(g, rn_Cos(g->scope, x_of(g))); }

RN_RULE(cos) { return times(g, rn_Neg(g->scope, rn_Sin(g->scope, x_of(g)))); }

RN_RULE(tan) { return over(g, rn_Square(g->scope, rn_Cos(g->scope, x_of(g)))); }

RN_RULE(sinh) { return times(g, rn_Cosh(g->scope, x_of(g))); }

RN_RULE(cosh) { return times(g, rn_Sinh(g->scope, x_of(g))); }

// sqrt(1 - x^2).
static rn_edge_t other_leg(rn_grad_t* g) {
  rn_edge_t x = x_of(g);
  return rn_Sqrt(g->scope, rn_Sub(g->scope, rn_rule_scalar(g, x, 1), rn_Square(g->scope, x)));
}

RN_RULE(asin) { return over(g, other_leg(g)); }

RN_RULE(acos) { return over(g, rn_Neg(g->scope, other_leg(g))); }

RN_RULE(atan) {
  rn_edge_t x = x_of(g);
  return over(g, rn_AddV2(g->scope, rn_rule_scalar(g, x, 1), rn_Square(g->scope, x)));
}

RN_RULE(asinh) { return over(g, rn_Cosh(g->scope, y_of(g))); }

RN_RULE(acosh) { return over(g, rn_Sinh(g->scope, y_of(g))); }

RN_RULE(atanh) {
  rn_edge_t x = x_of(g);
  return over(g, rn_Sub(g->scope, rn_rule_scalar(g, x, 1), rn_Square(g->scope, x)));
}

// factor * exp(exponent * at^2).
static rn_edge_t bell(rn_grad_t* g, double factor, double exponent, rn_edge_t at) {
  rn_edge_t square = rn_Square(g->scope, at);
  return rn_rule_scale(g, factor, rn_Exp(g->scope, rn_rule_scale(g, exponent, square)));
}

RN_RULE(erf) { return times(g, bell(g, TWO_OVER_SQRT_PI, -1, x_of(g))); }

RN_RULE(erfc) { return times(g, bell(g, -TWO_OVER_SQRT_PI, -1, x_of(g))); }

RN_RULE(erfinv) { return times(g, bell(g, HALF_SQRT_PI, 1, y_of(g))); }

RN_RULE(ndtri) { return times(g, bell(g, SQRT_TWO_PI, 0.5, y_of(g))); }

RN_RULE(lgamma) { return times(g, rn_Digamma(g->scope, x_of(g))); }

RN_RULE(digamma) {
  rn_edge_t x = x_of(g);
  return times(g, rn_Polygamma(g->scope, rn_rule_scalar(g, x, 1), x));
}

// Functions whose derivative follows from y have a gradient op that takes (y, dy). Those of Sqrt,
// Rsqrt and Reciprocal conjugate y themselves, those of Sigmoid and Tanh do not.

RN_RULE(sqrt) { return to_x(g, rn_SqrtGrad(g->scope, y_of(g), rn_grad_dy(g, 0))); }
RN_RULE(rsqrt) { return to_x(g, rn_RsqrtGrad(g->scope, y_of(g), rn_grad_dy(g, 0))); }
RN_RULE(reciprocal) { return to_x(g, rn_ReciprocalGrad(g->scope, y_of(g), rn_grad_dy(g, 0))); }

RN_RULE(sigmoid) {
  return to_x(g, rn_SigmoidGrad(g->scope, rn_rule_conj(g, y_of(g)), rn_grad_dy(g, 0)));
}

RN_RULE(tanh) { return to_x(g, rn_TanhGrad(g->scope, rn_rule_conj(g, y_of(g)), rn_grad_dy(g, 0))); }

// Gradients of the ops above, z = f'(y) * dy: the inputs are y and dy, the incoming gradient is dz.

typedef struct math_grad_fused_t {
  rn_edge_t y;  // conjugated
  rn_edge_t dz;
  rn_edge_t product;  // dz * dy; one of them conjugated
} math_grad_fused_t;

static math_grad_fused_t fused(rn_grad_t* g, bool conjugates) {
  math_grad_fused_t f = {.y = rn_rule_conj(g, rn_grad_in(g, 0)), .dz = rn_grad_dy(g, 0)};
  if (!rn_grad_wants(g, 0)) return f;
  rn_edge_t dy = rn_grad_in(g, 1);
  f.product = conjugates ? rn_Mul(g->scope, rn_rule_conj(g, f.dz), dy)
                         : rn_Mul(g->scope, f.dz, rn_rule_conj(g, dy));
  return f;
}

// z = dy (1 - y^2): -2 y dy, 1 - y^2.
RN_RULE(tanh_grad) {
  math_grad_fused_t f = fused(g, false);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_Mul(g->scope, rn_rule_scale(g, -2, f.product), f.y));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_TanhGrad(g->scope, f.y, f.dz));
  return RN_OK;
}

// z = dy y (1 - y): dy (1 - 2 y), y (1 - y).
RN_RULE(sigmoid_grad) {
  math_grad_fused_t f = fused(g, false);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t twice = rn_Mul(g->scope, rn_rule_scale(g, 2, f.product), f.y);
    rn_grad_to(g, 0, rn_Sub(g->scope, f.product, twice));
  }
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_SigmoidGrad(g->scope, f.y, f.dz));
  return RN_OK;
}

// z = -dy y^2: -2 dy y, -y^2.
RN_RULE(reciprocal_grad) {
  math_grad_fused_t f = fused(g, true);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_Mul(g->scope, rn_rule_scale(g, -2, f.product), f.y));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_ReciprocalGrad(g->scope, f.y, f.dz));
  return RN_OK;
}

// z = dy / (2 y): -z / y, 1 / (2 y).
RN_RULE(sqrt_grad) {
  rn_edge_t y = rn_grad_in(g, 0), z = rn_grad_out(g, 0);
  rn_edge_t ratio = rn_RealDiv(g->scope, rn_grad_dy(g, 0), y);
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0, rn_Neg(g->scope, rn_Mul(g->scope, rn_rule_conj(g, ratio), z)));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_rule_scale(g, 0.5, ratio));
  return RN_OK;
}

// z = -dy y^3 / 2: -3/2 dy y^2, -y^3 / 2.
RN_RULE(rsqrt_grad) {
  math_grad_fused_t f = fused(g, true);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t square = rn_Square(g->scope, f.y);
    rn_grad_to(g, 0, rn_Mul(g->scope, rn_rule_scale(g, -1.5, f.product), square));
  }
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_RsqrtGrad(g->scope, f.y, f.dz));
  return RN_OK;
}

// Complex numbers and types.

RN_RULE(conj) { return to_x(g, rn_Conj(g->scope, rn_grad_dy(g, 0))); }

static rn_edge_t complex_of(rn_grad_t* g, rn_edge_t real, rn_edge_t imag) {
  int type = rn_edge_dtype(x_of(g));
  return rn_Complex(g->scope, real, imag, .Tout = type);
}

RN_RULE(real) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  return to_x(g, complex_of(g, dy, rn_rule_zero(g, dy)));
}

RN_RULE(imag) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  return to_x(g, complex_of(g, rn_rule_zero(g, dy), dy));
}

RN_RULE(complex_abs) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  rn_edge_t wide = complex_of(g, dy, rn_rule_zero(g, dy)), size = rn_grad_out(g, 0);
  size = complex_of(g, size, rn_rule_zero(g, size));
  return to_x(g, rn_DivNoNan(g->scope, rn_Mul(g->scope, wide, x_of(g)), size));
}

// The argument of a + bi moves by (a db - b da) / |x|^2, which is -dy / (b + ai).
RN_RULE(angle) {
  rn_edge_t x = x_of(g), dy = rn_grad_dy(g, 0);
  int part = rn_edge_dtype(y_of(g));
  rn_edge_t turned =
      complex_of(g, rn_Imag(g->scope, x, .Tout = part), rn_Real(g->scope, x, .Tout = part));
  rn_edge_t wide = complex_of(g, rn_Neg(g->scope, dy), rn_rule_zero(g, dy));
  return to_x(g, rn_RealDiv(g->scope, wide, turned));
}

RN_RULE(complex) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  int part = rn_edge_dtype(rn_grad_in(g, 0));
  return rn_rule_broadcast(
      g, 0, rn_grad_wants(g, 0) ? rn_Real(g->scope, dy, .Tout = part) : RN_NO_EDGE, 1,
      rn_grad_wants(g, 1) ? rn_Imag(g->scope, dy, .Tout = part) : RN_NO_EDGE);
}

static bool is_differentiable(int dtype) {
  return dtype == RN_HALF || dtype == RN_BFLOAT16 || dtype == RN_FLOAT || dtype == RN_DOUBLE ||
         rn_dtype_is_complex(dtype);
}

RN_RULE(cast) {
  int from = rn_edge_dtype(x_of(g)), to = rn_edge_dtype(y_of(g));
  if (!is_differentiable(from) || !is_differentiable(to)) return RN_OK;
  rn_gradient_t rows;
  if (rn_grad_slices(g, 0, &rows)) {
    rows.values = rn_rule_cast(g, rows.values, from);
    rn_grad_slices_to(g, 0, rows);
    return RN_OK;
  }
  return to_x(g, rn_rule_cast(g, rn_grad_dy(g, 0), from));
}
