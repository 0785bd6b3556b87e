// The table of policies, and what they share. See policy.h.
#include "serve/select/policy.h"

#include <math.h>

static const rn_policy_t* const policies[] = {
    &rn_policy_exp3,   &rn_policy_exp4,  &rn_policy_epsilon_greedy, &rn_policy_thompson,
    &rn_policy_static, &rn_policy_split, &rn_policy_shadow,
};

const rn_policy_t* rn_policy_find(rn_str_t name) {
  for (size_t i = 0; i < sizeof policies / sizeof *policies; ++i)
    if (rn_str_is(name, policies[i]->name)) return policies[i];
  return NULL;
}

static rn_status_t check_range(const rn_policy_t* policy, const char* name, double value,
                               double low, double high) {
  if (value >= low && value <= high) return RN_OK;  // false for NaN
  return rn_invalid_argument("Policy '%s': %s must be from %g to %g, not %g", policy->name, name,
                             low, high, value);
}

rn_status_t rn_policy_check(const rn_policy_t* policy, const rn_policy_view_t* view) {
  const rn_policy_params_t* params = view->params;
  RN_RETURN_IF_ERROR(check_range(policy, "eta", params->eta, 0, 100));
  RN_RETURN_IF_ERROR(check_range(policy, "explore", params->explore, 0, 1));
  RN_RETURN_IF_ERROR(check_range(policy, "forget", params->forget, 0, 1));
  RN_RETURN_IF_ERROR(check_range(policy, "prior", params->prior, 0, 1e6));
  if (params->arm < 0 || params->arm >= view->arms || !rn_policy_has(view, params->arm))
    return rn_invalid_argument("Policy '%s': the model that answers is not linked", policy->name);
  if (policy != &rn_policy_split) return RN_OK;
  double sum = 0;
  for (int i = 0; i < view->arms; ++i) {
    RN_RETURN_IF_ERROR(check_range(policy, "a model's share", params->shares[i], 0, 1e6));
    if (rn_policy_has(view, i)) sum += params->shares[i];
  }
  if (sum > 0) return RN_OK;
  return rn_invalid_argument("Policy 'split': the shares of all models are 0");
}

void rn_policy_init(const rn_policy_t* policy, const rn_policy_view_t* view, float* state) {
  for (int i = 0; i < policy->head; ++i) state[i] = 0;
  rn_policy_grow(policy, view, state, 0);
}

void rn_policy_grow(const rn_policy_t* policy, const rn_policy_view_t* view, float* state,
                    int arms) {
  rn_policy_view_t part = *view;
  for (int i = arms; i < view->arms; ++i) {
    part.arms = i + 1;
    policy->add(&part, state, i);
  }
}

void rn_policy_select(const rn_policy_t* policy, const rn_policy_view_t* view, const float* state,
                      uint64_t* random, rn_selection_t* out) {
  if (policy->select) {
    policy->select(view, state, random, out);
    return;
  }
  if (policy->is_ensemble) {
    *out = (rn_selection_t){view->active, view->active, -1, 1};
    return;
  }
  double shares[RN_POLICY_MAX_ARMS];
  policy->shares(view, state, shares);
  double left = rn_random_unit(random);
  int served = -1;
  for (int i = 0; i < view->arms; ++i) {
    if (!(shares[i] > 0)) continue;
    served = i;  // the last one, if rounding leaves a rest
    if ((left -= shares[i]) < 0) break;
  }
  if (served < 0) served = __builtin_ctzll(view->active);
  uint64_t bit = UINT64_C(1) << served;
  *out = (rn_selection_t){bit, bit, served, shares[served]};
}
