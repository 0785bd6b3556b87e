// Learning rates that change with the step.
#include <math.h>

#include "runnel/train.h"
#include "train/optimizer/optimizer.h"
#include "train/words.h"

// A schedule under construction: its scope, and the number of elapsed periods.
typedef struct schedule_t {
  rn_scope_t* s;  // NULL after an error
  rn_edge_t rate, step, steps;
} schedule_t;

static schedule_t begin(rn_scope_t* scope, const char* name, float rate, rn_edge_t step,
                        float steps) {
  schedule_t d = {0};
  if (!rn_is_edge(scope, step, name, "the step")) return d;
  if (!(steps > 0)) {
    rn_refuse(scope, "%s: bad number of steps: %g", name, steps);
    return d;
  }
  d.s = rn_scope_child(scope, name);
  d.rate = rn_const_float(d.s, rate);
  d.step = rn_as(d.s, step, RN_FLOAT);
  d.steps = rn_const_float(d.s, steps);
  return d;
}

static rn_edge_t end(schedule_t* d, rn_edge_t result) {
  rn_scope_destroy(d->s);
  return result;
}

static rn_edge_t number(schedule_t* d, float value) { return rn_const_float(d->s, value); }

static rn_edge_t periods(schedule_t* d, bool staircase) {
  rn_edge_t gone = rn_RealDiv(d->s, d->step, d->steps);
  return staircase ? rn_Floor(d->s, gone) : gone;
}

RN_API rn_edge_t rn_exponential_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                       float factor, rn_decay_options_t options) {
  schedule_t d = begin(scope, "ExponentialDecay", rate, step, steps);
  rn_edge_t p = periods(&d, options.staircase);
  return end(&d, rn_Mul(d.s, d.rate, rn_Pow(d.s, number(&d, factor), p)));
}

RN_API rn_edge_t rn_natural_exp_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                       float factor, rn_decay_options_t options) {
  schedule_t d = begin(scope, "NaturalExpDecay", rate, step, steps);
  rn_edge_t p = periods(&d, options.staircase);
  return end(&d, rn_Mul(d.s, d.rate, rn_Exp(d.s, rn_Mul(d.s, number(&d, -factor), p))));
}

RN_API rn_edge_t rn_inverse_time_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                        float factor, rn_decay_options_t options) {
  schedule_t d = begin(scope, "InverseTimeDecay", rate, step, steps);
  rn_edge_t p = periods(&d, options.staircase);
  rn_edge_t below = rn_AddV2(d.s, number(&d, 1), rn_Mul(d.s, number(&d, factor), p));
  return end(&d, rn_RealDiv(d.s, d.rate, below));
}

RN_API rn_edge_t rn_polynomial_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                      rn_decay_options_t options) {
  schedule_t d = begin(scope, "PolynomialDecay", rate, step, steps);
  rn_edge_t last = number(&d, rn_number(options.end, 0.0001f)), one = number(&d, 1);
  if (options.cycle) {
    rn_edge_t at_first = rn_Equal(d.s, d.step, number(&d, 0));
    rn_edge_t cycles = rn_Ceil(d.s, rn_RealDiv(d.s, d.step, d.steps));
    d.steps = rn_Mul(d.s, d.steps, rn_SelectV2(d.s, at_first, one, cycles));
  } else {
    d.step = rn_Minimum(d.s, d.step, d.steps);
  }
  rn_edge_t left = rn_Sub(d.s, one, rn_RealDiv(d.s, d.step, d.steps));
  rn_edge_t curve = rn_Pow(d.s, left, number(&d, rn_number(options.power, 1)));
  return end(&d, rn_AddV2(d.s, rn_Mul(d.s, rn_Sub(d.s, d.rate, last), curve), last));
}

// (1 + cos πx) / 2.
static rn_edge_t half_cosine(schedule_t* d, rn_edge_t x) {
  rn_edge_t cosine = rn_Cos(d->s, rn_Mul(d->s, number(d, (float)M_PI), x));
  return rn_Mul(d->s, number(d, 0.5f), rn_AddV2(d->s, number(d, 1), cosine));
}

// rate · ((1 - alpha) curve + alpha).
static rn_edge_t above_alpha(schedule_t* d, rn_edge_t curve, float alpha) {
  rn_edge_t share = rn_Mul(d->s, number(d, 1 - alpha), curve);
  return rn_Mul(d->s, d->rate, rn_AddV2(d->s, share, number(d, alpha)));
}

RN_API rn_edge_t rn_cosine_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                  rn_decay_options_t options) {
  schedule_t d = begin(scope, "CosineDecay", rate, step, steps);
  d.step = rn_Minimum(d.s, d.step, d.steps);
  return end(&d, above_alpha(&d, half_cosine(&d, periods(&d, false)), options.alpha));
}

RN_API rn_edge_t rn_cosine_decay_restarts_(rn_scope_t* scope, float rate, rn_edge_t step,
                                           float steps, rn_decay_options_t options) {
  schedule_t d = begin(scope, "SGDRDecay", rate, step, steps);
  float time = rn_number(options.time, 2);
  rn_edge_t gone = periods(&d, false), one = number(&d, 1), restarts;
  if (time == 1) {
    restarts = rn_Floor(d.s, gone);
    gone = rn_Sub(d.s, gone, restarts);
  } else {
    // Periods of 1, t, t² …: the sum of the first i is (1 - tⁱ) / (1 - t).
    rn_edge_t t = number(&d, time), rest = number(&d, 1 - time);
    rn_edge_t power = rn_Log(d.s, rn_Sub(d.s, one, rn_Mul(d.s, gone, rest)));
    restarts = rn_Floor(d.s, rn_RealDiv(d.s, power, number(&d, logf(time))));
    rn_edge_t length = rn_Pow(d.s, t, restarts);
    rn_edge_t before = rn_RealDiv(d.s, rn_Sub(d.s, one, length), rest);
    gone = rn_RealDiv(d.s, rn_Sub(d.s, gone, before), length);
  }
  rn_edge_t height = rn_Pow(d.s, number(&d, rn_number(options.height, 1)), restarts);
  rn_edge_t curve = rn_Mul(d.s, height, half_cosine(&d, gone));
  return end(&d, above_alpha(&d, curve, options.alpha));
}

// rate · ((alpha + linear) cosine + beta), where the linear part falls from 1 to 0.
static rn_edge_t linear_cosine(schedule_t* d, rn_decay_options_t options, bool is_noisy) {
  d->step = rn_Minimum(d->s, d->step, d->steps);
  rn_edge_t linear = rn_RealDiv(d->s, rn_Sub(d->s, d->steps, d->step), d->steps);
  if (is_noisy) {
    rn_edge_t turn = rn_AddV2(d->s, number(d, 1), d->step);
    rn_edge_t calm = rn_Pow(d->s, turn, number(d, rn_number(options.calming, 0.55f)));
    rn_edge_t variance = rn_RealDiv(d->s, number(d, rn_number(options.variance, 1)), calm);
    rn_initializer_t normal = rn_init_normal(0, 1, options.seed);
    rn_edge_t noise = rn_initial_value(d->s, normal, NULL, 0, RN_FLOAT);
    linear = rn_AddV2(d->s, linear, rn_Mul(d->s, noise, rn_Sqrt(d->s, variance)));
  }
  float turns = 2 * rn_number(options.periods, 0.5f);
  rn_edge_t cosine = half_cosine(d, rn_Mul(d->s, number(d, turns), periods(d, false)));
  rn_edge_t curve = rn_Mul(d->s, rn_AddV2(d->s, number(d, options.alpha), linear), cosine);
  rn_edge_t part = rn_AddV2(d->s, curve, number(d, rn_number(options.beta, 0.001f)));
  return rn_Mul(d->s, d->rate, part);
}

RN_API rn_edge_t rn_linear_cosine_decay_(rn_scope_t* scope, float rate, rn_edge_t step, float steps,
                                         rn_decay_options_t options) {
  schedule_t d = begin(scope, "LinearCosineDecay", rate, step, steps);
  return end(&d, linear_cosine(&d, options, false));
}

RN_API rn_edge_t rn_noisy_linear_cosine_decay_(rn_scope_t* scope, float rate, rn_edge_t step,
                                               float steps, rn_decay_options_t options) {
  schedule_t d = begin(scope, "NoisyLinearCosineDecay", rate, step, steps);
  return end(&d, linear_cosine(&d, options, true));
}

// The number of boundaries below the step selects the rate.
RN_API rn_edge_t rn_piecewise_constant(rn_scope_t* scope, rn_edge_t step, const int64_t* boundaries,
                                       const float* rates, int count) {
  if (!rn_is_edge(scope, step, "rn_piecewise_constant", "the step")) return RN_NO_EDGE;
  if (count < 0 || !rates || (count > 0 && !boundaries)) {
    rn_refuse(scope, "rn_piecewise_constant: a list is NULL");
    return RN_NO_EDGE;
  }
  for (int i = 1; i < count; ++i)
    if (boundaries[i] <= boundaries[i - 1]) {
      rn_refuse(scope, "rn_piecewise_constant: the boundaries must increase");
      return RN_NO_EDGE;
    }
  rn_scope_t* s = rn_scope_child(scope, "PiecewiseConstant");
  int64_t n = count, pieces = (int64_t)count + 1;
  rn_edge_t bounds = rn_const(s, RN_INT64, &n, 1, boundaries);
  rn_edge_t values = rn_const(s, RN_FLOAT, &pieces, 1, rates);
  rn_edge_t passed = rn_Cast(s, rn_Greater(s, rn_as(s, step, RN_INT64), bounds), RN_INT32);
  rn_edge_t piece = rn_Sum(s, passed, rn_axis(s, 0));
  rn_edge_t rate = rn_GatherV2(s, values, piece, rn_const_int32(s, 0));
  rn_scope_destroy(s);
  return rate;
}
