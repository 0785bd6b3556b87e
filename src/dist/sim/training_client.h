// Simulated clients. For the files of this folder only.
#ifndef RUNNEL_DIST_SIM_TRAINING_CLIENT_H_
#define RUNNEL_DIST_SIM_TRAINING_CLIENT_H_

#include "base/vec.h"
#include "dist/sim/training.h"

enum { RN_TRAINING_SLOTS = 16 };  // of a client's gradients, which take turns

// What a client does next, or is doing.
typedef enum rn_client_act_t {
  RN_ACT_OPEN,
  RN_ACT_PROBE,  // the chief: which variables have no value
  RN_ACT_INIT,
  RN_ACT_STEP,   // tells the accumulators which step it is
  RN_ACT_COUNT,  // which of them still hold gradients of earlier ones
  RN_ACT_DRAIN,
  RN_ACT_STEP_AGAIN,
  RN_ACT_PUT,
  RN_ACT_TAKE,
  RN_ACT_REST,  // of an asynchronous chief, between its looks
  RN_ACT_GET,   // a worker: waits for its token
  RN_ACT_READ,
  RN_ACT_COMPUTE,
  RN_ACT_PUSH,
  RN_ACT_ADD,
  RN_ACT_SIZE,  // at the end: how many tokens there are
  RN_ACT_CLOSE,
  RN_ACT_GONE,
} rn_client_act_t;

// X(name, what stands behind it and its server's number): what a server's nodes are called.
#define RN_TRAINING_NAMES(X) \
  X(READY, "ready", ":0")    \
  X(COUNT_OF, "count", ":0") \
  X(DRAIN, "drain", "")      \
  X(INIT, "init", "")        \
  X(STEP, "step", "")        \
  X(TAKE, "take", ":0")      \
  X(APPLY, "apply", "")      \
  X(READ, "read", ":0")      \
  X(PUSH, "push", "")        \
  X(ADD, "add", "")
typedef enum rn_training_name_t {
#define RN_TRAINING_ENUM(name, text, suffix) RN_NAME_##name,
  RN_TRAINING_NAMES(RN_TRAINING_ENUM)
#undef RN_TRAINING_ENUM
      RN_NAME_COUNT
} rn_training_name_t;

typedef struct rn_sim_client_t {
  rn_training_t* training;
  int index;  // the worker's; the number of workers for the chief
  int node, master;
  bool is_chief, is_ending, is_auditor;
  rn_client_act_t act;
  bool is_busy;  // a call is under way
  int64_t started_ns;
  int64_t begun_ns;  // when it was made first under its number
  int repeats;       // of the call under its number
  int64_t request;
  int64_t step;    // the chief's; a worker's token
  int64_t pushes;  // gradients given, or tried
  int64_t rounds;
  RN_VEC(int64_t) unknown;  // when additions ended of which nobody knows whether they were made
  uint64_t missing;         // servers without values, or with gradients, by bit
  rn_timer_t timer;
  rn_cancel_t cancel;
  rn_str_t config;  // a ConfigProto: it needs the servers and its own worker alone
  char session[32];
  rn_create_session_t create;
  rn_close_session_t close;
  rn_run_step_t run;
  rn_named_tensor_t feeds[2];
  rn_str_t *fetches, *targets;
  rn_tensor_t* values;
  int64_t tokens_before;
} rn_sim_client_t;

struct rn_training_t {
  rn_training_options_t options;
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_sim_t* sim;
  rn_strbuf_t graph;
  rn_str_t* names;  // by name × servers + server
  int64_t length;   // of a variable
  rn_sim_client_t* clients;
  int client_count;
  int64_t* confirmed;   // additions since the server was started, by server × workers + worker
  int64_t* started_ns;  // of servers
  RN_VEC(int64_t) updates;
  rn_timer_t watch;
  rn_training_stats_t stats;
  bool is_over;  // nobody does anything more
  char fault[512];
};

void rn_training_blame(rn_training_t* training, const char* format, ...) RN_PRINTF(2, 3);
// What an update took from each server's accumulator: |values| are as many as servers.
void rn_training_check_taken(rn_training_t* training, const rn_tensor_t* values, int64_t step);
// What the variables hold in the end.
void rn_training_check_sums(rn_training_t* training, const rn_tensor_t* values);
// Whether tasks have kept anything of clients that are gone.
void rn_training_check_left(rn_training_t* training);

void rn_sim_client_start(rn_sim_client_t* client);
// Its process ends; another will take its place, and know nothing of its session.
void rn_sim_client_forget(rn_sim_client_t* client);
// Ends it: closes its session, whatever it waits for.
void rn_sim_client_end(rn_sim_client_t* client);

#endif  // RUNNEL_DIST_SIM_TRAINING_CLIENT_H_
