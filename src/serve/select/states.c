// The states of an application's policy in the store. See apps.h.
//
// A value is
//   u8   tag of the policy (policy.h)
//   u8   arms
//   u16  0
//   ...  the floats of the state, in the machine's order
// A state of another policy, or that is not finite, counts as none.
#include <math.h>

#include "serve/select/apps_internal.h"

#define HEAD 4
#define MAX_STATE (HEAD + RN_POLICY_MAX_FLOATS * sizeof(float))
_Static_assert(MAX_STATE <= RN_STATE_MAX_CHANGED, "a state fits into a change");

#define SHOW_NS (INT64_C(1000) * 1000000)  // between updates of the metrics

typedef struct rn_state_key_t {
  char bytes[RN_STATE_MAX_KEY];
  size_t size;  // 0: it does not fit
} rn_state_key_t;

static rn_str_t make_key(const rn_app_t* app, rn_str_t user, rn_state_key_t* out) {
  rn_str_t name = app->definition->name;
  if (name.size + 1 + user.size > sizeof out->bytes) return RN_STR("");
  memcpy(out->bytes, name.data, name.size);
  out->bytes[name.size] = '/';
  if (user.size) memcpy(out->bytes + name.size + 1, user.data, user.size);
  return rn_str_n(out->bytes, name.size + 1 + user.size);
}

static bool decode(const rn_app_t* app, rn_str_t value, float* state) {
  if (value.size < HEAD || (uint8_t)value.data[0] != app->policy->tag) return false;
  int arms = (uint8_t)value.data[1], floats = rn_policy_floats(app->policy, arms);
  if (arms > app->view.arms || value.size != HEAD + (size_t)floats * sizeof(float)) return false;
  memcpy(state, value.data + HEAD, value.size - HEAD);
  for (int i = 0; i < floats; ++i)
    if (!isfinite(state[i])) return false;
  rn_policy_grow(app->policy, &app->view, state, arms);
  return true;
}

static size_t encode(const rn_app_t* app, const float* state, void* out) {
  uint8_t head[HEAD] = {app->policy->tag, (uint8_t)app->view.arms};
  size_t size = (size_t)rn_policy_floats(app->policy, app->view.arms) * sizeof(float);
  memcpy(out, head, HEAD);
  memcpy((char*)out + HEAD, state, size);
  return HEAD + size;
}

bool rn_app_read_state(rn_apps_t* apps, const rn_app_t* app, rn_str_t user, float* state) {
  char value[MAX_STATE];
  rn_state_key_t key;
  rn_state_store_t* store = apps->options.store;
  size_t size = 0;
  if (user.size && app->policy->learns)
    size = rn_state_store_get(store, make_key(app, user, &key), value, sizeof value);
  if (size && decode(app, rn_str_n(value, size), state)) return true;
  size = rn_state_store_get(store, make_key(app, RN_STR(""), &key), value, sizeof value);
  if (!size || !decode(app, rn_str_n(value, size), state)) {
    rn_policy_init(app->policy, &app->view, state);
    return false;
  }
  if (user.size && app->policy->learns) app->policy->adopt(&app->view, state);
  return !user.size;
}

void rn_app_state(rn_apps_t* apps, rn_app_t* app, rn_str_t user, rn_app_state_t* out) {
  float state[RN_POLICY_MAX_FLOATS];
  *out = (rn_app_state_t){.arms = app->view.arms};
  if (!app->view.active) return;
  out->is_own = rn_app_read_state(apps, app, user, state);
  app->policy->shares(&app->view, state, out->shares);
}

// A change of the store: feedback, and the state before it, as far as this front end knows: for a
// new user, and for a shared store that has lost its memory.
typedef struct rn_state_feedback_t {
  rn_observation_t seen;
  uint64_t prior_size;
  char prior[MAX_STATE];
} rn_state_feedback_t;

size_t rn_apps_apply(void* self, rn_str_t key, rn_str_t value, rn_str_t change, void* out) {
  rn_state_feedback_t feedback;
  if (change.size != sizeof feedback) return 0;
  memcpy(&feedback, change.data, sizeof feedback);
  rn_app_t* app = rn_apps_find(self, rn_str_split(&key, '/'));
  size_t size = 0;
  if (app && app->view.active) {
    float state[RN_POLICY_MAX_FLOATS];
    if (!decode(app, value, state) &&
        !decode(app, rn_str_n(feedback.prior, (size_t)feedback.prior_size), state))
      rn_policy_init(app->policy, &app->view, state);
    app->policy->observe(&app->view, state, &feedback.seen);
    size = encode(app, state, out);
  }
  rn_app_release(app);
  return size;
}

void rn_app_count_feedback(rn_apps_t* apps, const rn_app_t* app, const char* outcome) {
  if (!apps->options.metrics) return;
  rn_series_add(rn_metrics_series(apps->options.metrics, RN_METRIC_FEEDBACK_COUNT,
                                  app->definition->name, rn_str(outcome), RN_STR("")),
                1);
}

// Shows the policy's weights, now and then.
static void show(rn_apps_t* apps, rn_app_t* app) {
  rn_app_history_t* history = app->history;
  if (!apps->options.metrics) return;
  int64_t now = apps->options.env->now_ns(apps->options.env->self);
  rn_mutex_lock(&history->mutex);
  bool is_time = !history->shown_ns || now - history->shown_ns >= SHOW_NS;
  if (is_time) history->shown_ns = now;
  rn_mutex_unlock(&history->mutex);
  if (!is_time) return;
  rn_app_state_t state;
  rn_app_state(apps, app, RN_STR(""), &state);
  for (int i = 0; i < state.arms; ++i)
    rn_series_add(
        rn_metrics_series(apps->options.metrics, RN_METRIC_POLICY_WEIGHT, app->definition->name,
                          app->definition->model.items[i].name, RN_STR("")),
        state.shares[i]);
}

void rn_app_observe(rn_apps_t* apps, rn_app_t* app, rn_str_t user, const rn_observation_t* seen) {
  rn_state_feedback_t change;
  memset(&change, 0, sizeof change);  // with its padding
  change.seen = *seen;
  rn_state_key_t key;
  float state[RN_POLICY_MAX_FLOATS];
  rn_status_t status = RN_OK;
  if (user.size && app->policy->learns) {
    rn_app_read_state(apps, app, user, state);
    change.prior_size = encode(app, state, change.prior);
    status = rn_state_store_change(apps->options.store, make_key(app, user, &key),
                                   rn_str_n((const char*)&change, sizeof change));
  }
  rn_app_read_state(apps, app, RN_STR(""), state);
  change.prior_size = encode(app, state, change.prior);
  // Without room for the user's state, that of all users still learns.
  rn_app_count_feedback(apps, app, rn_ok(status) ? "applied" : "no_room");
  rn_status_free(status);
  rn_status_free(rn_state_store_change(apps->options.store, make_key(app, RN_STR(""), &key),
                                       rn_str_n((const char*)&change, sizeof change)));
  show(apps, app);
}
