// One instance of a group that has members on stock's tasks: stock's algorithms, keys and calls.
//
// Each member acts for itself. Reductions and gathers go round a ring (stock_ring.c), broadcasts
// down a tree (stock_tree.c); in an all-to-all each member sends to each. A member leaves what it
// gives in the mailbox; the receiver fetches it with RecvBuf.
#ifndef RUNNEL_DIST_COLLECTIVE_STOCK_H_
#define RUNNEL_DIST_COLLECTIVE_STOCK_H_

#include "dist/collective/exchange.h"
#include "dist/iface.h"

// Begins the names of values in the mailbox that are fetched with RecvBuf; stock's key follows.
#define RN_STOCK_PREFIX "buf;"

typedef struct rn_stock_t rn_stock_t;

// A value that a member gets from another one.
typedef struct rn_stock_pull_t {
  rn_recv_buf_t call;   // first: from another task
  rn_mail_wait_t wait;  // from this task
  rn_job_t job;
  rn_stock_t* stock;
  int32_t member;  // of the meeting: which gets the value
  int32_t part;    // of the algorithm, like the next
  int32_t pass;
  int64_t count;  // elements that are to come
  // Called with the value, which it may move out. On a thread that may compute.
  void (*next)(struct rn_stock_pull_t* pull);
  rn_tensor_t value;
  char key[128];
} rn_stock_pull_t;

struct rn_stock_t {
  const rn_exchange_options_t* options;
  rn_meeting_t* meeting;
  const rn_collective_t* like;  // the first member of this task
  char key[96];                 // stock's key of the instance
  rn_tensor_t* inputs;          // by member: retained
  rn_stock_pull_t* pulls;
  size_t pull_count;
  int32_t* rings;  // of the ring: by subdivision and place, the rank
  int32_t subdivs;
  int64_t total, chunk;          // elements of the output, and of a chunk of it
  rn_complete_instance_t* asks;  // of a broadcast: by member
  rn_strbuf_t shape;
  rn_mutex_t mutex;        // guards what follows
  int32_t source, asking;  // of a broadcast
  int32_t pending;
  rn_status_t status;
};

// Runs |meeting| and ends it. |options| lives until then.
void rn_stock_start(const rn_exchange_options_t* options, rn_meeting_t* meeting);

// For the algorithms. Each starts and returns; it has ended when no pull is outstanding.
RN_MUST_USE rn_status_t rn_stock_ring_start(rn_stock_t* stock);
RN_MUST_USE rn_status_t rn_stock_tree_start(rn_stock_t* stock);

RN_MUST_USE rn_status_t rn_stock_make_pulls(rn_stock_t* stock, size_t count);
// Leaves |n| elements of |tensor| from |first| on for another member.
RN_MUST_USE rn_status_t rn_stock_send(rn_stock_t* stock, const char* key, const rn_tensor_t* tensor,
                                      int64_t first, int64_t n);
// Fetches what member |from| leaves under pull->key; then pull->next is called.
void rn_stock_pull(rn_stock_pull_t* pull, int32_t from);
// Ends the instance with |status|, which this takes. OK does nothing.
void rn_stock_check(rn_stock_t* stock, rn_status_t status);
// Keeps the instance until it is released.
void rn_stock_hold(rn_stock_t* stock);
void rn_stock_release(rn_stock_t* stock);

#endif  // RUNNEL_DIST_COLLECTIVE_STOCK_H_
