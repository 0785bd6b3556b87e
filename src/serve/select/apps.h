// Applications: names under which several models answer as one.
//
// An application has an input type, a latency objective, a default output, and a policy over its
// models (policy.h). A query goes to the models that the policy selects; when the last needed
// answer is in, or when the objective is about to pass, the answers that have arrived are combined.
// Feedback changes the policy's state, for the user that the query named and for all users.
// Applications and states are kept in a store (store.h).
#ifndef RUNNEL_SERVE_SELECT_APPS_H_
#define RUNNEL_SERVE_SELECT_APPS_H_

#include "net/timers.h"
#include "proto/apps.pb.h"
#include "serve/metrics.h"
#include "serve/model/models.h"
#include "serve/select/answer.h"
#include "serve/select/policy.h"
#include "serve/select/redis_queries.h"
#include "serve/select/served.h"
#include "serve/select/store.h"

typedef struct rn_apps_t rn_apps_t;
// One application as it was defined at some time: never changes. Reference-counted.
typedef struct rn_app_t rn_app_t;

typedef struct rn_apps_options_t {
  // A reference to a version of a model: rn_apps_find_model, with the rn_models_t as |self|.
  rn_status_t (*find)(void* self, const rn_model_spec_t* spec, rn_version_t** out);
  void* self;
  rn_state_store_t* store;  // Borrowed; for these applications alone
  // Where other front ends find queries that wait for feedback, with rn_app_judged for those that
  // had it; NULL: feedback must reach the front end that answered. Borrowed.
  rn_redis_queries_t* queries;
  rn_timers_t timers;     // outlive the applications
  rn_metrics_t* metrics;  // Borrowed; NULL: none
  const rn_env_t* env;
  rn_allocator_t allocator;
  size_t window_count, window_bytes;  // of queries that wait for feedback; 0: 65,536 and 32 MiB
} rn_apps_options_t;

// Reads the applications that the store holds.
RN_MUST_USE rn_status_t rn_apps_create(const rn_apps_options_t* options, rn_apps_t** out);
// Waits for models that still compute answers. No query may wait for its reply. NULL is fine.
void rn_apps_destroy(rn_apps_t* apps);

rn_status_t rn_apps_find_model(void* models, const rn_model_spec_t* spec, rn_version_t** out);

// Reads definitions in the text format (proto/serving/apps.proto). Those that exist are replaced;
// what was learned stays if policy and models do. INVALID_ARGUMENT names the application.
RN_MUST_USE rn_status_t rn_apps_read_file(rn_apps_t* apps, const char* path);
// The same without an effect: INVALID_ARGUMENT if the file is no list of good definitions.
RN_MUST_USE rn_status_t rn_apps_check_file(const rn_env_t* env, const char* path,
                                           rn_allocator_t allocator);
// INVALID_ARGUMENT unless |definition| is complete and consistent.
RN_MUST_USE rn_status_t rn_app_check(const rn_pb_runnel_Application_t* definition,
                                     rn_allocator_t allocator);

// The application |name|, retained; NULL if there is none.
rn_app_t* rn_apps_find(rn_apps_t* apps, rn_str_t name);
void rn_app_release(rn_app_t* app);  // NULL is fine
const rn_pb_runnel_Application_t* rn_app_definition(const rn_app_t* app);

// Calls |fn| for each application, by name, with no locks held.
RN_MUST_USE rn_status_t rn_apps_each(rn_apps_t* apps, void (*fn)(void* arg, rn_app_t* app),
                                     void* arg);

// Changes. Each is saved. ALREADY_EXISTS, NOT_FOUND or INVALID_ARGUMENT.
RN_MUST_USE rn_status_t rn_apps_add(rn_apps_t* apps, const rn_pb_runnel_Application_t* definition);
RN_MUST_USE rn_status_t rn_apps_remove(rn_apps_t* apps, rn_str_t name);
RN_MUST_USE rn_status_t rn_apps_link(rn_apps_t* apps, rn_str_t name, const rn_str_t* models,
                                     int count);
RN_MUST_USE rn_status_t rn_apps_unlink(rn_apps_t* apps, rn_str_t name, const rn_str_t* models,
                                       int count);
// Which version of |model| applications mean that name none; 0: the latest.
RN_MUST_USE rn_status_t rn_apps_set_version(rn_apps_t* apps, rn_str_t model, int64_t version);
int64_t rn_apps_version(rn_apps_t* apps, rn_str_t model);

// One query, or one feedback that names its input. The caller keeps it in place until |done|.
typedef struct rn_app_query_t rn_app_query_t;
struct rn_app_query_t {
  // Set by the caller; zero for what is not used.
  rn_str_t user;             // "": no user; borrowed until |done|
  rn_tensor_t input;         // taken: [n] of rn_app_input_dtype, or one string
  int64_t version;           // of every model; 0: as the application says
  int64_t begun_ns;          // when the query was complete
  int64_t deadline_ns;       // 0: by the latency objective alone
  const rn_answer_t* label;  // NULL: a query. Else the true answer, to learn from; borrowed
  rn_cancel_t* cancel;       // Borrowed until |done|; NULL: cannot be cancelled
  // Owns |status|: INVALID_ARGUMENT for an input that fits no model, DEADLINE_EXCEEDED in place of
  // a default answer if the application is strict. Called once, from any thread.
  void (*done)(rn_app_query_t* query, rn_status_t status);
  // Results; rn_app_query_clear frees them.
  int64_t id;
  rn_answer_t answer;
  double confidence;
  unsigned marks;            // RN_MARK_...
  int asked, missing;        // models that the answer should rest on, and those that had no answer
  char explanation[200];     // of a default answer; "" for any other
  rn_predict_times_t times;  // of the slowest model that was waited for
  rn_allocator_t allocator;
};
void rn_app_predict(rn_apps_t* apps, rn_app_t* app, rn_app_query_t* query);
void rn_app_query_clear(rn_app_query_t* query);
// Of the tensor in a query: int64, float, double, uint8 or string.
rn_dtype_t rn_app_input_dtype(const rn_app_t* app);

// The true answer to query |id|. Feedback for a query counts once; it may come late and in any
// order.
extern const rn_str_t rn_app_judged;
rn_served_outcome_t rn_app_feedback(rn_apps_t* apps, rn_app_t* app, int64_t id,
                                    const rn_answer_t* label);

// What is known of |user|'s state ("": of all users).
typedef struct rn_app_state_t {
  bool is_own;  // the user has a state; else it is the one that a new user gets
  int arms;
  double shares[RN_POLICY_MAX_ARMS];
} rn_app_state_t;
void rn_app_state(rn_apps_t* apps, rn_app_t* app, rn_str_t user, rn_app_state_t* out);

rn_state_store_t* rn_apps_store(rn_apps_t* apps);

#endif  // RUNNEL_SERVE_SELECT_APPS_H_
