// Shared by the files of the eager client.
#ifndef RUNNEL_DIST_EAGER_CLIENT_INTERNAL_H_
#define RUNNEL_DIST_EAGER_CLIENT_INTERNAL_H_

#include "base/map.h"
#include "dist/coordination/agent.h"
#include "dist/eager/client.h"
#include "dist/eager/peers.h"
#include "dist/rpc/codec.h"

typedef struct rn_far_t rn_far_t;

// A device of another task.
typedef struct rn_far_device_t {
  rn_eager_client_t* client;
  rn_far_t* task;
  rn_str_t name, type, description;
  int64_t memory_limit;
  uint64_t incarnation;
} rn_far_device_t;

typedef struct rn_far_name_t {
  int64_t op;
  int32_t output;
} rn_far_name_t;

// Another task. It is never removed, nor are its devices.
struct rn_far_t {
  rn_str_t name, job;
  int32_t index;
  rn_str_t address;
  rn_mutex_t mutex;    // guards what follows
  uint64_t context;    // the open context; 0: none
  uint64_t opening;    // counts the contexts that it had: values of an earlier one are gone
  uint64_t opened_at;  // the client's view that it belongs to
  uint64_t view;       // of its context: updates that failed on other tasks do not count
  RN_VEC(rn_far_device_t*) devices;
  RN_VEC(rn_far_name_t) dropped;     // values that it may free
  RN_VEC(rn_function_t*) functions;  // Retained: those that it has
};

struct rn_eager_client_t {
  rn_agent_t* agent;    // Owned; NULL: the cluster has no coordination
  rn_job_t aborting;    // ends collectives after |failure|
  rn_status_t failure;  // Owned: of a task of the cluster
  rn_server_t* server;  // Owned: this process as a task of the cluster; NULL: it is none
  rn_tokens_t* tokens;  // whose own one is sent to every task; Owned; NULL: none
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_eager_t* eager;  // Borrowed: it owns this
  rn_loop_t* loop;
  rn_eager_peers_t* peers;
  int64_t lease_ns;
  rn_timer_t timer;    // keeps contexts alive
  rn_mutex_t mutex;    // guards what follows
  rn_mutex_t joining;  // one at a time; before |mutex|
  rn_arena_t arena;    // tasks, devices, names
  RN_VEC(rn_far_t*) tasks;
  uint64_t context, view;
  int64_t keep_alive_s;
  rn_str_t here;  // the name of this process's first device in the cluster
  int64_t next_op;
  int pulse_count;  // calls under way
  rn_cond_t changed;
  bool is_closing;
};

// Calls |task| and waits; takes |request|. On success |out| is the response, which the caller
// clears.
RN_MUST_USE rn_status_t rn_far_ask(rn_eager_client_t* client, const rn_far_t* task,
                                   const char* path, rn_message_t* request, int64_t deadline_ns,
                                   bool waits_for_ready, rn_message_t* out);
// The functions that |task| has are told again before the next call.
void rn_far_forget_functions(rn_far_t* task);
int64_t rn_far_next_op(rn_eager_client_t* client);
// The device of |client| with this name; NULL: none.
rn_far_device_t* rn_far_find_device(rn_eager_client_t* client, rn_str_t name);
// The table behind |device|; see eager/eager.h.
rn_eager_custom_device_t rn_far_table(rn_far_device_t* device);

#endif  // RUNNEL_DIST_EAGER_CLIENT_INTERNAL_H_
