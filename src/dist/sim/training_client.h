// Simulated clients. For the files of this folder only.
#ifndef RUNNEL_DIST_SIM_TRAINING_CLIENT_H_
#define RUNNEL_DIST_SIM_TRAINING_CLIENT_H_

#include "base/vec.h"
#include "dist/sim/training.h"

enum { RN_TRAINING_SLOTS = 16 };  // per client, for its gradients in turn

// The current or next action of a client.
typedef enum rn_client_act_t {
  RN_ACT_OPEN,
  RN_ACT_PROBE,  // chief: finds variables without a value
  RN_ACT_INIT,
  RN_ACT_STEP,   // tells the accumulators the step
  RN_ACT_COUNT,  // finds accumulators with gradients of earlier steps
  RN_ACT_DRAIN,
  RN_ACT_STEP_AGAIN,
  RN_ACT_PUT,
  RN_ACT_TAKE,
  RN_ACT_REST,  // asynchronous chief: between checks
  RN_ACT_GET,   // worker: waits for its token
  RN_ACT_READ,
  RN_ACT_COMPUTE,
  RN_ACT_PUSH,
  RN_ACT_ADD,
  RN_ACT_SIZE,  // at the end: counts the tokens
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
  bool is_busy;  // a call is running
  int64_t started_ns;
  int64_t begun_ns;  // when the call was first made
  int repeats;       // of the call
  int64_t request;
  int64_t step;    // of the chief; of a worker: its token
  int64_t pushes;  // gradients added, or attempted
  int64_t rounds;
  RN_VEC(int64_t) unknown;  // when additions with an unknown outcome ended
  bool* missing;            // by server: whether it has no values, or has gradients
  rn_timer_t timer;
  rn_cancel_t cancel;
  rn_str_t config;  // a ConfigProto with the servers and its own worker only
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
  bool is_over;  // all clients have stopped
  char fault[512];
};

void rn_training_blame(rn_training_t* training, const char* format, ...) RN_PRINTF(2, 3);
// Checks what an update took from each server's accumulator: one of |values| per server.
void rn_training_check_taken(rn_training_t* training, const rn_tensor_t* values, int64_t step);
// Checks the final values of the variables.
void rn_training_check_sums(rn_training_t* training, const rn_tensor_t* values);
// Checks that tasks have kept nothing of clients that are gone.
void rn_training_check_left(rn_training_t* training);

void rn_sim_client_start(rn_sim_client_t* client);
// Its process ends; another without its session takes its place.
void rn_sim_client_forget(rn_sim_client_t* client);
// Ends it: cancels its calls and closes its session.
void rn_sim_client_end(rn_sim_client_t* client);

#endif  // RUNNEL_DIST_SIM_TRAINING_CLIENT_H_
