// The policies that keep a tally per arm: how many feedbacks it had, and the sum of their losses.
// See policy.h.
//
// Static, split and shadow learn nothing from it; it tells the operator how the models compare.
// Epsilon-greedy and Thompson sampling choose by it. |forget| fades the tallies of all arms with
// each feedback, so that an arm that was not drawn for long becomes uncertain and is tried again.
#include <math.h>

#include "serve/select/policy.h"

static double count_of(const float* state, int arm) { return state[2 * arm]; }
static double loss_of(const float* state, int arm) { return state[2 * arm + 1]; }

static void tally_add(const rn_policy_view_t* view, float* state, int arm) {
  (void)view;
  state[2 * arm] = state[2 * arm + 1] = 0;
}

// The tally of each arm counts for no more than |prior| feedbacks.
static void tally_adopt(const rn_policy_view_t* view, float* state) {
  for (int i = 0; i < view->arms; ++i) {
    double scale = fmin(1, view->params->prior / fmax(count_of(state, i), 1e-9));
    state[2 * i] *= (float)scale;
    state[2 * i + 1] *= (float)scale;
  }
}

static void tally_observe(const rn_policy_view_t* view, float* state,
                          const rn_observation_t* seen) {
  float keep = (float)(1 - view->params->forget);
  for (int i = 0; i < view->arms; ++i) {
    bool is_seen = seen->seen >> i & 1;
    state[2 * i] = keep * state[2 * i] + (is_seen ? 1 : 0);
    state[2 * i + 1] = keep * state[2 * i + 1] + (is_seen ? seen->loss[i] : 0);
  }
}

static void one_share(const rn_policy_view_t* view, int arm, double* out) {
  for (int i = 0; i < view->arms; ++i) out[i] = i == arm;
}

// Static and shadow: one arm answers. If it is unlinked, the first one that is linked.

static int fixed_arm(const rn_policy_view_t* view) {
  int arm = view->params->arm;
  return arm < view->arms && rn_policy_has(view, arm) ? arm : __builtin_ctzll(view->active);
}

static void fixed_shares(const rn_policy_view_t* view, const float* state, double* out) {
  (void)state;
  one_share(view, fixed_arm(view), out);
}

static void shadow_select(const rn_policy_view_t* view, const float* state, uint64_t* random,
                          rn_selection_t* out) {
  (void)state;
  (void)random;
  int arm = fixed_arm(view);
  *out = (rn_selection_t){view->active, UINT64_C(1) << arm, arm, 1};
}

const rn_policy_t rn_policy_static = {
    .name = "static",
    .tag = 5,
    .per_arm = 2,
    .defaults = {.forget = 0.001, .prior = 1},
    .add = tally_add,
    .adopt = tally_adopt,
    .shares = fixed_shares,
    .observe = tally_observe,
};

const rn_policy_t rn_policy_shadow = {
    .name = "shadow",
    .tag = 7,
    .per_arm = 2,
    .defaults = {.forget = 0.001, .prior = 1},
    .add = tally_add,
    .adopt = tally_adopt,
    .shares = fixed_shares,
    .select = shadow_select,
    .observe = tally_observe,
};

// Split: fixed shares.

static void split_shares(const rn_policy_view_t* view, const float* state, double* out) {
  (void)state;
  double sum = 0;
  for (int i = 0; i < view->arms; ++i)
    sum += out[i] = rn_policy_has(view, i) ? view->params->shares[i] : 0;
  if (!(sum > 0)) {  // only arms without a share are left
    one_share(view, __builtin_ctzll(view->active), out);
    return;
  }
  for (int i = 0; i < view->arms; ++i) out[i] /= sum;
}

const rn_policy_t rn_policy_split = {
    .name = "split",
    .tag = 6,
    .per_arm = 2,
    .defaults = {.forget = 0.001, .prior = 1},
    .add = tally_add,
    .adopt = tally_adopt,
    .shares = split_shares,
    .observe = tally_observe,
};

// Epsilon-greedy: mostly the arm with the least loss, counting one feedback without loss for every
// arm, so that arms of which little is known are tried.

static void greedy_shares(const rn_policy_view_t* view, const float* state, double* out) {
  int best = -1;
  double least = INFINITY;
  for (int i = 0; i < view->arms; ++i) {
    double mean = loss_of(state, i) / (count_of(state, i) + 1);
    if (!rn_policy_has(view, i) || mean >= least) continue;
    best = i;
    least = mean;
  }
  double even = view->params->explore / __builtin_popcountll(view->active);
  for (int i = 0; i < view->arms; ++i)
    out[i] = rn_policy_has(view, i) ? even + (i == best ? 1 - view->params->explore : 0) : 0;
}

const rn_policy_t rn_policy_epsilon_greedy = {
    .name = "epsilon_greedy",
    .tag = 3,
    .learns = true,
    .per_arm = 2,
    .defaults = {.explore = 0.08, .forget = 0.007, .prior = 1},  // by simulation, like Exp3's
    .add = tally_add,
    .adopt = tally_adopt,
    .shares = greedy_shares,
    .observe = tally_observe,
};

// Thompson sampling: the arm with the best draw from Beta(1 + successes, 1 + losses), where a
// feedback of loss l is l of a loss and 1 - l of a success.

static double normal(uint64_t* random) {
  double u = 1 - rn_random_unit(random), v = rn_random_unit(random);
  return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

// Marsaglia and Tsang's method, for shape >= 1. A try is accepted with probability > 0.95.
static double gamma_draw(double shape, uint64_t* random) {
  double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (int tries = 0; tries < 100; ++tries) {
    double x = normal(random), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    if (log(1 - rn_random_unit(random)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
  }
  return d;
}

static int thompson_draw(const rn_policy_view_t* view, const float* state, uint64_t* random) {
  int best = -1;
  double most = -1;
  for (int i = 0; i < view->arms; ++i) {
    if (!rn_policy_has(view, i)) continue;
    double good = gamma_draw(1 + fmax(0, count_of(state, i) - loss_of(state, i)), random);
    double bad = gamma_draw(1 + loss_of(state, i), random);
    double draw = good / (good + bad);
    if (draw <= most) continue;
    best = i;
    most = draw;
  }
  return best;
}

// Estimated from draws of a fixed seed: equal states have equal shares.
static void thompson_shares(const rn_policy_view_t* view, const float* state, double* out) {
  enum { DRAWS = 256 };
  uint64_t random = 1;
  for (int i = 0; i < view->arms; ++i) out[i] = 0;
  for (int n = 0; n < DRAWS; ++n) out[thompson_draw(view, state, &random)] += 1.0 / DRAWS;
}

static void thompson_select(const rn_policy_view_t* view, const float* state, uint64_t* random,
                            rn_selection_t* out) {
  int arm = thompson_draw(view, state, random);
  uint64_t bit = UINT64_C(1) << arm;
  *out = (rn_selection_t){bit, bit, arm, 1};  // the update needs no probability
}

const rn_policy_t rn_policy_thompson = {
    .name = "thompson",
    .tag = 4,
    .learns = true,
    .per_arm = 2,
    .defaults = {.forget = 0.005, .prior = 1},
    .add = tally_add,
    .adopt = tally_adopt,
    .shares = thompson_shares,
    .select = thompson_select,
    .observe = tally_observe,
};
