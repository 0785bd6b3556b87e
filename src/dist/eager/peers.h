// The tasks of an eager client's cluster, as a server of it reaches them: the client's own among
// them, which the server's cluster does not have.
#ifndef RUNNEL_DIST_EAGER_PEERS_H_
#define RUNNEL_DIST_EAGER_PEERS_H_

#include "dist/rpc/channel.h"
#include "dist/worker/steps.h"
#include "proto/tensorflow_server.pb.h"

typedef struct rn_eager_peers_t rn_eager_peers_t;

typedef struct rn_eager_peers_options_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_tls_t* tls;     // Borrowed; NULL: plain
  int64_t lease_ns;  // a peer that is silent for so long, while it is asked, is dead
  bool borrows;      // see rn_remote_peer_create
  // Whether a connection to |address|, which the client has named, may be made. NULL: to any.
  bool (*may_reach)(void* self, rn_str_t address);
  void* may_self;
  // Sent with every call to those addresses that |knows| says are the task's own; NULL: to all.
  // Lent.
  const char* token;
  bool (*knows)(void* self, rn_str_t address);
} rn_eager_peers_options_t;

RN_MUST_USE rn_status_t rn_eager_peers_create(const rn_eager_peers_options_t* options,
                                              rn_eager_peers_t** out);
// Ends what is under way. Not on the loop's thread. NULL is fine.
void rn_eager_peers_destroy(rn_eager_peers_t* peers);

// Takes the tasks of |cluster| (NULL: none) in; those that have another address now are reached
// there from now on.
RN_MUST_USE rn_status_t rn_eager_peers_add(rn_eager_peers_t* peers,
                                           const rn_pb_ClusterDef_t* cluster);
// |task| is "/job:worker/replica:0/task:0"; NULL: there is no way to it, and rn_eager_peers_missing
// says why. From any thread.
rn_channel_t* rn_eager_peers_channel(rn_eager_peers_t* peers, rn_str_t task);
rn_worker_t* rn_eager_peers_worker(rn_eager_peers_t* peers, rn_str_t task);
RN_MUST_USE rn_status_t rn_eager_peers_missing(rn_eager_peers_t* peers, rn_str_t task);
// For steps.
rn_peers_t rn_eager_peers_table(rn_eager_peers_t* peers);
// Task |i| in the order in which they were taken in; empty beyond the last. Lives with |peers|.
rn_str_t rn_eager_peers_task(rn_eager_peers_t* peers, size_t i);

// A call to another task whose answer somebody waits for. Stays put from start to wait.
typedef struct rn_eager_question_t {
  rn_rpc_out_t out;  // first
  rn_mutex_t mutex;
  rn_cond_t came;
  bool is_here;
  rn_status_t status;
  rn_message_t response;
} rn_eager_question_t;
// Takes what |request| holds.
void rn_eager_question_start(rn_eager_question_t* question, rn_channel_t* channel, const char* path,
                             rn_message_t* request, int64_t deadline_ns, bool waits_for_ready);
// Once for each start, not on the loop's thread. |out| is to be cleared, on success.
RN_MUST_USE rn_status_t rn_eager_question_wait(rn_eager_question_t* question, rn_message_t* out);

#define RN_EAGER_PATH "/tensorflow.eager.EagerService/"

#endif  // RUNNEL_DIST_EAGER_PEERS_H_
