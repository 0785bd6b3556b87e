// Selection policies: which of an application's models answer a query, how their answers are
// weighed, and what is learned from feedback.
//
// A policy is a row of a table. What it has learned is a state: a few floats, one per application
// and user, that the caller keeps (states.h). Models are arms, numbered from 0; an arm keeps its
// number as long as the application lives, so that states stay valid when models are linked and
// unlinked. Nothing here locks or allocates: the caller hands in a state that is its own.
#ifndef RUNNEL_SERVE_SELECT_POLICY_H_
#define RUNNEL_SERVE_SELECT_POLICY_H_

#include "base/random.h"
#include "base/str.h"

#define RN_POLICY_MAX_ARMS 64
#define RN_POLICY_MAX_FLOATS (2 + 2 * RN_POLICY_MAX_ARMS)  // of a state

typedef struct rn_policy_params_t {
  double eta;      // Exp3: the learning rate
  double explore;  // Exp3, epsilon-greedy: share of queries that go to any arm
  double forget;   // how much of what is known each feedback fades, 0 to 1; 0: nothing
  double prior;    // how many feedbacks the global state counts for when a user's state begins
  int arm;         // static, shadow: the arm that answers
  float shares[RN_POLICY_MAX_ARMS];  // split: of each arm; need not add up to 1
} rn_policy_params_t;

// The arms of an application at the time of a call.
typedef struct rn_policy_view_t {
  const rn_policy_params_t* params;
  int arms;         // 1 to RN_POLICY_MAX_ARMS
  uint64_t active;  // bit i: arm i may be used; at least one is
} rn_policy_view_t;
static inline bool rn_policy_has(const rn_policy_view_t* view, int arm) {
  return view->active >> arm & 1;
}

// Which arms a query runs.
typedef struct rn_selection_t {
  uint64_t run;        // all of them
  uint64_t needed;     // those that the reply waits for
  int served;          // the arm whose answer is the reply; -1: all are combined
  double probability;  // of |served| when it was drawn; 1 for an ensemble
} rn_selection_t;

// Feedback about one query.
typedef struct rn_observation_t {
  int served;                      // of its selection
  double probability;              // of its selection
  uint64_t seen;                   // arms whose loss is known
  float loss[RN_POLICY_MAX_ARMS];  // 0 to 1
} rn_observation_t;

typedef struct rn_policy_t {
  const char* name;
  uint8_t tag;        // in saved states: never changes its meaning
  int head, per_arm;  // floats of a state: |head|, then |per_arm| for each arm
  bool learns;        // feedback changes what is selected, so that users have states of their own
  bool is_ensemble;   // every arm is asked, and answers are combined by their shares
  rn_policy_params_t defaults;
  // Adds |arm|, the last of |view|, to a state that has those before it.
  void (*add)(const rn_policy_view_t* view, float* state, int arm);
  // Turns a copy of the global state into the first state of a user.
  void (*adopt)(const rn_policy_view_t* view, float* state);
  // How much each arm counts, adding up to 1 over the active ones; 0 for the others. For policies
  // that draw one arm: the probability of each.
  void (*shares)(const rn_policy_view_t* view, const float* state, double* out);
  // NULL: all active arms of an ensemble, else one that is drawn by |shares|.
  void (*select)(const rn_policy_view_t* view, const float* state, uint64_t* random,
                 rn_selection_t* out);
  void (*observe)(const rn_policy_view_t* view, float* state, const rn_observation_t* seen);
} rn_policy_t;

// "exp3", "exp4", "epsilon_greedy", "thompson", "static", "split", "shadow"; NULL if there is no
// such policy.
const rn_policy_t* rn_policy_find(rn_str_t name);
// INVALID_ARGUMENT, naming the parameter, if one is out of range.
RN_MUST_USE rn_status_t rn_policy_check(const rn_policy_t* policy, const rn_policy_view_t* view);

static inline int rn_policy_floats(const rn_policy_t* policy, int arms) {
  return policy->head + policy->per_arm * arms;
}
// Sets a state of |view->arms| arms that has learned nothing.
void rn_policy_init(const rn_policy_t* policy, const rn_policy_view_t* view, float* state);
// Brings a state of |arms| arms to |view->arms|, which are as many or more.
void rn_policy_grow(const rn_policy_t* policy, const rn_policy_view_t* view, float* state,
                    int arms);
// |random| is a state of rn_random_next.
void rn_policy_select(const rn_policy_t* policy, const rn_policy_view_t* view, const float* state,
                      uint64_t* random, rn_selection_t* out);

// The rows of the table, from policy_weights.c and policy_tally.c.
extern const rn_policy_t rn_policy_exp3, rn_policy_exp4, rn_policy_epsilon_greedy,
    rn_policy_thompson, rn_policy_static, rn_policy_split, rn_policy_shadow;

#endif  // RUNNEL_SERVE_SELECT_POLICY_H_
