// Gradient rules of Bessel functions and of integrals that have no closed form.
#include "ops/rules.h"

static rn_status_t times_dy(rn_grad_t* g, rn_edge_t slope) {
  rn_grad_to(g, 0, rn_Mul(g->scope, rn_grad_dy(g, 0), slope));
  return RN_OK;
}

static rn_edge_t x_of(const rn_grad_t* g) { return rn_grad_in(g, 0); }
static rn_edge_t y_of(const rn_grad_t* g) { return rn_grad_out(g, 0); }

// |slope|, but |at_zero| where x is 0. Also avoids a division by x there, because a NaN in the
// unselected branch would make higher-order gradients NaN.
static rn_edge_t unless_zero(rn_grad_t* g, rn_edge_t* inout_x) {
  rn_edge_t x = *inout_x, is_zero = rn_Equal(g->scope, x, rn_rule_zero(g, x));
  *inout_x = rn_SelectV2(g->scope, is_zero, rn_rule_scalar(g, x, 1), x);
  return is_zero;
}

RN_RULE(bessel_i0) { return times_dy(g, rn_BesselI1(g->scope, x_of(g))); }

RN_RULE(bessel_i0e) {
  rn_edge_t x = x_of(g);
  rn_edge_t part = rn_Mul(g->scope, rn_Sign(g->scope, x), y_of(g));
  return times_dy(g, rn_Sub(g->scope, rn_BesselI1e(g->scope, x), part));
}

RN_RULE(bessel_i1) {
  rn_edge_t x = x_of(g), safe = x, is_zero = unless_zero(g, &safe);
  rn_edge_t slope = rn_Sub(g->scope, rn_BesselI0(g->scope, x), rn_RealDiv(g->scope, y_of(g), safe));
  return times_dy(g, rn_SelectV2(g->scope, is_zero, rn_rule_scalar(g, x, 0.5), slope));
}

RN_RULE(bessel_i1e) {
  rn_edge_t x = x_of(g), safe = x, is_zero = unless_zero(g, &safe);
  rn_edge_t factor = rn_AddV2(g->scope, rn_Sign(g->scope, x), rn_Reciprocal(g->scope, safe));
  rn_edge_t slope = rn_Sub(g->scope, rn_BesselI0e(g->scope, x), rn_Mul(g->scope, y_of(g), factor));
  return times_dy(g, rn_SelectV2(g->scope, is_zero, rn_rule_scalar(g, x, 0.5), slope));
}

RN_RULE(bessel_j0) { return times_dy(g, rn_Neg(g->scope, rn_BesselJ1(g->scope, x_of(g)))); }

RN_RULE(bessel_j1) {
  rn_edge_t x = x_of(g), safe = x, is_zero = unless_zero(g, &safe);
  rn_edge_t slope = rn_Sub(g->scope, rn_BesselJ0(g->scope, x), rn_RealDiv(g->scope, y_of(g), safe));
  return times_dy(g, rn_SelectV2(g->scope, is_zero, rn_rule_scalar(g, x, 0.5), slope));
}

RN_RULE(bessel_k0) { return times_dy(g, rn_Neg(g->scope, rn_BesselK1(g->scope, x_of(g)))); }

RN_RULE(bessel_k0e) {
  return times_dy(g, rn_Sub(g->scope, y_of(g), rn_BesselK1e(g->scope, x_of(g))));
}

RN_RULE(bessel_k1) {
  rn_edge_t x = x_of(g), part = rn_RealDiv(g->scope, y_of(g), x);
  return times_dy(g, rn_Sub(g->scope, rn_Neg(g->scope, rn_BesselK0(g->scope, x)), part));
}

RN_RULE(bessel_k1e) {
  rn_edge_t x = x_of(g);
  rn_edge_t factor = rn_Sub(g->scope, rn_rule_scalar(g, x, 1), rn_Reciprocal(g->scope, x));
  return times_dy(g,
                  rn_Sub(g->scope, rn_Mul(g->scope, y_of(g), factor), rn_BesselK0e(g->scope, x)));
}

RN_RULE(bessel_y0) { return times_dy(g, rn_Neg(g->scope, rn_BesselY1(g->scope, x_of(g)))); }

RN_RULE(bessel_y1) {
  rn_edge_t x = x_of(g), part = rn_RealDiv(g->scope, y_of(g), x);
  return times_dy(g, rn_Sub(g->scope, rn_BesselY0(g->scope, x), part));
}

RN_RULE(dawsn) {
  rn_edge_t product = rn_rule_scale(g, 2, rn_Mul(g->scope, x_of(g), y_of(g)));
  return times_dy(g, rn_Sub(g->scope, rn_rule_scalar(g, x_of(g), 1), product));
}

RN_RULE(expint) { return times_dy(g, rn_RealDiv(g->scope, rn_Exp(g->scope, x_of(g)), x_of(g))); }

static rn_edge_t fresnel_angle(rn_grad_t* g) {
  return rn_rule_scale(g, 1.57079632679489661923, rn_Square(g->scope, x_of(g)));
}
RN_RULE(fresnel_cos) { return times_dy(g, rn_Cos(g->scope, fresnel_angle(g))); }
RN_RULE(fresnel_sin) { return times_dy(g, rn_Sin(g->scope, fresnel_angle(g))); }

RN_RULE(spence) {
  rn_edge_t x = x_of(g), one = rn_rule_scalar(g, x, 1);
  rn_edge_t is_one = rn_Equal(g->scope, x, one);
  rn_edge_t safe = rn_SelectV2(g->scope, is_one, rn_rule_scalar(g, x, 2), x);
  rn_edge_t slope = rn_RealDiv(g->scope, rn_Log(g->scope, safe), rn_Sub(g->scope, one, safe));
  return times_dy(g, rn_SelectV2(g->scope, is_one, rn_rule_scalar(g, x, -1), slope));
}
