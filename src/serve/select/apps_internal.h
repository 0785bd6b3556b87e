// What the files of the selection layer know of an application.
#ifndef RUNNEL_SERVE_SELECT_APPS_INTERNAL_H_
#define RUNNEL_SERVE_SELECT_APPS_INTERNAL_H_

#include "base/map.h"
#include "base/sync.h"
#include "base/vec.h"
#include "serve/select/apps.h"

typedef rn_pb_runnel_Application_t rn_app_definition_t;

// What has been seen of an application's models. Shared by its successive definitions.
typedef struct rn_app_history_t {
  rn_allocator_t allocator;
  _Atomic int refs;
  rn_mutex_t mutex;  // guards the rest
  rn_average_t averages[RN_POLICY_MAX_ARMS];
  int64_t shown_ns;  // when the metrics of the policy were last set
} rn_app_history_t;

struct rn_app_t {
  rn_allocator_t allocator;
  _Atomic int refs;
  rn_arena_t arena;                              // holds |definition|
  const rn_pb_runnel_Application_t* definition;  // arm i is model i
  rn_loss_t loss;
  const rn_policy_t* policy;
  rn_policy_params_t params;
  rn_policy_view_t view;  // |active| may be 0: no model is linked
  rn_answer_t default_answer;
  int64_t slo_ns;
  rn_app_history_t* history;  // Retained
};

struct rn_apps_t {
  rn_apps_options_t options;
  rn_served_t* served;    // Owned
  _Atomic uint64_t draw;  // advances with every query: seeds of random choices
  rn_mutex_t changing;    // held while definitions change; taken before |mutex|
  rn_mutex_t mutex;       // guards what follows; no store is called under it
  rn_cond_t idle;         // no model computes
  rn_map_t apps;          // of rn_app_t, retained; keys are their definitions'
  rn_arena_t names;       // of |versions|
  RN_VEC(struct {
    rn_str_t model;
    int64_t version;
  })
  versions;
  int64_t running;  // answers that are still being computed
};

// definition.c
RN_MUST_USE rn_status_t rn_app_create(const rn_pb_runnel_Application_t* definition,
                                      const rn_app_t* previous, rn_allocator_t allocator,
                                      rn_app_t** out);
void rn_app_retain(rn_app_t* app);

// states.c: the store's keys are "app/user" for states, "/app/NAME" and "/model/NAME" for
// definitions and versions.
//
// Reads the state of |user| into |state|; a user without one gets that of all users, adopted.
// Returns whether the user has one.
bool rn_app_read_state(rn_apps_t* apps, const rn_app_t* app, rn_str_t user, float* state);
void rn_app_observe(rn_apps_t* apps, rn_app_t* app, rn_str_t user, const rn_observation_t* seen);
void rn_app_count_feedback(rn_apps_t* apps, const rn_app_t* app, const char* outcome);
// For the store: see rn_state_apply_fn_t; |self| is the rn_apps_t.
size_t rn_apps_apply(void* self, rn_str_t key, rn_str_t value, rn_str_t change, void* out);

// feedback.c: what other front ends must know of a query, if there are any: when it was answered,
// and when a model's answer came late.
void rn_app_share(rn_apps_t* apps, const rn_served_query_t* query);
void rn_app_share_late(rn_apps_t* apps, rn_str_t app, int64_t id, int arm,
                       const rn_answer_t* answer);

#endif  // RUNNEL_SERVE_SELECT_APPS_INTERNAL_H_
