// The tasks of an eager client's cluster, for a server of it. They include the client's own, which
// the server's cluster does not have.
#ifndef RUNNEL_DIST_EAGER_PEERS_H_
#define RUNNEL_DIST_EAGER_PEERS_H_

#include "dist/rpc/wire.h"
#include "dist/worker/steps.h"
#include "net/channel.h"
#include "proto/tensorflow_server.pb.h"

typedef struct rn_eager_peers_t rn_eager_peers_t;

typedef struct rn_eager_peers_options_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_tls_t* tls;     // Borrowed; NULL: plain
  int64_t lease_ns;  // a peer that is silent for so long during a call is lost
  bool borrows;      // see rn_remote_near_t
  // Whether the server may connect to |address|, which the client named. NULL: to any.
  bool (*may_reach)(void* self, rn_str_t address);
  void* may_self;
  // Their own one is sent with calls to addresses of the task's own cluster, for which |knows| is
  // true, or with all calls if that is NULL. Borrowed; NULL: none.
  rn_tokens_t* tokens;
  rn_wire_t* wire;  // likewise: used for these only, if |knows| is not NULL; Borrowed; NULL: none
  bool (*knows)(void* self, rn_str_t address);
} rn_eager_peers_options_t;

RN_MUST_USE rn_status_t rn_eager_peers_create(const rn_eager_peers_options_t* options,
                                              rn_eager_peers_t** out);
// Ends running calls. Not on the loop's thread. NULL is fine.
void rn_eager_peers_destroy(rn_eager_peers_t* peers);

// Adds the tasks of |cluster| (NULL: none); those with a new address are reached there from now on.
RN_MUST_USE rn_status_t rn_eager_peers_add(rn_eager_peers_t* peers,
                                           const rn_pb_ClusterDef_t* cluster);
// |task| is "/job:worker/replica:0/task:0". NULL if it cannot be reached; rn_eager_peers_missing
// says why. Any thread may call it.
rn_channel_t* rn_eager_peers_channel(rn_eager_peers_t* peers, rn_str_t task);
rn_worker_t* rn_eager_peers_worker(rn_eager_peers_t* peers, rn_str_t task);
RN_MUST_USE rn_status_t rn_eager_peers_missing(rn_eager_peers_t* peers, rn_str_t task);
// For steps.
rn_peers_t rn_eager_peers_table(rn_eager_peers_t* peers);

// A call to another task and its waiter. Must stay in place from start to wait.
typedef struct rn_eager_question_t {
  rn_rpc_out_t out;  // first
  rn_mutex_t mutex;
  rn_cond_t came;
  bool is_here;
  rn_status_t status;
  rn_message_t response;
} rn_eager_question_t;
// Takes the content of |request|.
void rn_eager_question_start(rn_eager_question_t* question, rn_channel_t* channel, const char* path,
                             rn_message_t* request, int64_t deadline_ns, bool waits_for_ready);
// Once per start, not on the loop's thread. On success the caller clears |out|.
RN_MUST_USE rn_status_t rn_eager_question_wait(rn_eager_question_t* question, rn_message_t* out);

#define RN_EAGER_PATH "/tensorflow.eager.EagerService/"

#endif  // RUNNEL_DIST_EAGER_PEERS_H_
