// Exp3 and Exp4: weights that fall with losses. See policy.h.
//
// Weights are kept as logarithms, so that no number of losses makes one overflow or vanish.
//
// Exp3 (Auer et al., 2002) sees only the loss of the arm that it drew, and divides it by the
// probability that the arm had then. The floor |explore| / arms under every probability bounds that
// quotient. |forget| is the fixed share of Exp3.S: part of all weight is spread evenly after each
// feedback, so that an arm that was bad for long can come back.
//
// Exp4, as Clipper uses the name, asks every arm and sees every loss; nothing is divided by a
// probability. It is Hedge with the learning rate of AdaHedge (de Rooij et al., 2014): ln(arms) /
// the sum of mixability gaps so far. The rate is infinite at first, so that one feedback tells a
// new user's best model, and falls only as the arms turn out hard to tell apart. |forget| fades
// losses and gaps alike, which leaves the weights unchanged and makes room for what comes.
#include <math.h>

#include "serve/select/policy.h"

// out[i] = exp(log[i]) / their sum over active arms, 0 for the others.
static void normalize(const rn_policy_view_t* view, const double* log, double* out) {
  double top = -INFINITY, sum = 0;
  for (int i = 0; i < view->arms; ++i)
    if (rn_policy_has(view, i)) top = fmax(top, log[i]);
  for (int i = 0; i < view->arms; ++i)
    sum += out[i] = rn_policy_has(view, i) ? exp(log[i] - top) : 0;
  for (int i = 0; i < view->arms; ++i) out[i] /= sum;
}

// Moves |share| of all weight to an even distribution.
static void mix(const rn_policy_view_t* view, double share, double* inout) {
  double even = share / __builtin_popcountll(view->active);
  for (int i = 0; i < view->arms; ++i)
    if (rn_policy_has(view, i)) inout[i] = (1 - share) * inout[i] + even;
}

// Exp3: one float per arm, the logarithm of its weight.

static void exp3_weights(const rn_policy_view_t* view, const float* state, double* out) {
  double log[RN_POLICY_MAX_ARMS];
  for (int i = 0; i < view->arms; ++i) log[i] = state[i];
  normalize(view, log, out);
}

static void exp3_add(const rn_policy_view_t* view, float* state, int arm) {
  // A new arm starts with an average weight.
  double sum = 0;
  for (int i = 0; i < arm; ++i) sum += exp(state[i]);
  state[arm] = arm && sum > 0 ? (float)log(sum / arm) : 0;
  (void)view;
}

static void exp3_adopt(const rn_policy_view_t* view, float* state) {
  (void)view;
  (void)state;
}

static void exp3_shares(const rn_policy_view_t* view, const float* state, double* out) {
  exp3_weights(view, state, out);
  mix(view, view->params->explore, out);
}

// Normalizes the weights and spreads part of them evenly. An unlinked arm keeps its weight.
static void spread(const rn_policy_view_t* view, float* state) {
  double weights[RN_POLICY_MAX_ARMS];
  exp3_weights(view, state, weights);
  mix(view, view->params->forget, weights);
  for (int i = 0; i < view->arms; ++i)
    if (rn_policy_has(view, i)) state[i] = (float)log(fmax(weights[i], 1e-30));
}

static void exp3_observe(const rn_policy_view_t* view, float* state, const rn_observation_t* seen) {
  int arm = seen->served;
  if (arm < 0) {
    // Feedback that ran every model: their losses are known with certainty.
    for (int i = 0; i < view->arms; ++i)
      if (seen->seen & view->active & UINT64_C(1) << i)
        state[i] -= (float)(view->params->eta * seen->loss[i]);
    spread(view, state);
    return;
  }
  if (arm >= view->arms || !(seen->seen >> arm & 1) || !rn_policy_has(view, arm)) return;
  double floor = view->params->explore / __builtin_popcountll(view->active);
  double probability = fmin(1, fmax(seen->probability, fmax(floor, 1e-6)));
  state[arm] -= (float)(view->params->eta * seen->loss[arm] / probability);
  spread(view, state);
}

const rn_policy_t rn_policy_exp3 = {
    .name = "exp3",
    .tag = 1,
    .learns = true,
    .per_arm = 1,
    // By simulation of models that break and recover: a repaired one is found again within 1,000
    // queries in all but a few of a thousand runs, and more exploration costs more than it brings.
    .defaults = {.eta = 0.2, .explore = 0.1, .forget = 0.0005, .prior = 1},
    .add = exp3_add,
    .adopt = exp3_adopt,
    .shares = exp3_shares,
    .observe = exp3_observe,
};

// Exp4: the sum of mixability gaps, the number of feedbacks, then one float per arm, the sum of its
// losses over that of the best arm.

enum { GAP, COUNT, LOSSES };
#define EXP4_FLOOR 1e-3  // weight that is always spread evenly

static void exp4_weights(const rn_policy_view_t* view, const float* state, double* out) {
  double log_weights[RN_POLICY_MAX_ARMS], best = INFINITY;
  for (int i = 0; i < view->arms; ++i)
    if (rn_policy_has(view, i)) best = fmin(best, state[LOSSES + i]);
  double rate = log(fmax(2, __builtin_popcountll(view->active))) / state[GAP];
  for (int i = 0; i < view->arms; ++i) {
    double loss = state[LOSSES + i] - best;
    log_weights[i] = loss > 0 ? -fmin(rate * loss, 1e3) : 0;  // an infinite rate follows the best
  }
  normalize(view, log_weights, out);
}

static void exp4_add(const rn_policy_view_t* view, float* state, int arm) {
  // A new arm starts with an average loss.
  double sum = 0;
  for (int i = 0; i < arm; ++i) sum += state[LOSSES + i];
  state[LOSSES + arm] = arm ? (float)(sum / arm) : 0;
  (void)view;
}

// As if |prior| feedbacks with the average losses of all users were all that is known.
static void exp4_adopt(const rn_policy_view_t* view, float* state) {
  double scale = view->params->prior / fmax(state[COUNT], 1), sum = 0;
  int active = 0;
  for (int i = 0; i < view->arms; ++i) {
    state[LOSSES + i] *= (float)scale;
    if (!rn_policy_has(view, i)) continue;
    sum += state[LOSSES + i];
    ++active;
  }
  state[COUNT] *= (float)scale;
  state[GAP] = (float)(sum / active);  // with even weights and an infinite rate; the best has 0
}

static void exp4_shares(const rn_policy_view_t* view, const float* state, double* out) {
  exp4_weights(view, state, out);
  mix(view, EXP4_FLOOR, out);
}

// How much worse the weighted loss is than the mix loss -ln(sum w exp(-rate loss)) / rate, over
// the arms that were seen; never negative.
static double mixability_gap(const rn_policy_view_t* view, const double* weights, double rate,
                             const rn_observation_t* seen) {
  double hedge = 0, weight = 0, least = INFINITY, sum = 0;
  for (int i = 0; i < view->arms; ++i) {
    if (!(seen->seen >> i & 1) || !(weights[i] > 0)) continue;
    hedge += weights[i] * seen->loss[i];
    weight += weights[i];
    least = fmin(least, seen->loss[i]);
  }
  if (!(weight > 0)) return 0;
  hedge /= weight;
  if (!isfinite(rate)) return hedge - least;
  for (int i = 0; i < view->arms; ++i)
    if (seen->seen >> i & 1) sum += weights[i] / weight * exp(-rate * (seen->loss[i] - least));
  double gap = hedge - (least - log(sum) / rate);
  return gap > 0 ? gap : 0;
}

static void exp4_observe(const rn_policy_view_t* view, float* state, const rn_observation_t* seen) {
  rn_observation_t known = *seen;
  known.seen &= view->active;
  if (!known.seen) return;
  double weights[RN_POLICY_MAX_ARMS];
  exp4_weights(view, state, weights);
  double rate = log(fmax(2, __builtin_popcountll(view->active))) / state[GAP];
  double gap = mixability_gap(view, weights, rate, &known);
  // An arm that gave no answer is taken to be as good as the ensemble: its weight stays.
  double mean = 0, weight = 0;
  for (int i = 0; i < view->arms; ++i) {
    if (!(known.seen >> i & 1)) continue;
    mean += weights[i] * known.loss[i];
    weight += weights[i];
  }
  mean = weight > 0 ? mean / weight : 0;
  double keep = 1 - view->params->forget, best = INFINITY;
  state[GAP] = (float)(keep * state[GAP] + gap);
  state[COUNT] = (float)(keep * state[COUNT] + 1);
  for (int i = 0; i < view->arms; ++i) {
    double loss = known.seen >> i & 1 ? known.loss[i] : mean;
    state[LOSSES + i] = (float)(keep * state[LOSSES + i] + loss);
    if (rn_policy_has(view, i)) best = fmin(best, state[LOSSES + i]);
  }
  for (int i = 0; i < view->arms; ++i) state[LOSSES + i] -= (float)best;
}

const rn_policy_t rn_policy_exp4 = {
    .name = "exp4",
    .tag = 2,
    .learns = true,
    .head = LOSSES,
    .per_arm = 1,
    .is_ensemble = true,
    .defaults = {.forget = 0.005, .prior = 1},
    .add = exp4_add,
    .adopt = exp4_adopt,
    .shares = exp4_shares,
    .observe = exp4_observe,
};
