// A round of an exchange: every task leaves values for others, fetches theirs, and goes on when all
// have come.
#ifndef RUNNEL_DIST_COLLECTIVE_EXCHANGE_ROUND_H_
#define RUNNEL_DIST_COLLECTIVE_EXCHANGE_ROUND_H_

#include "dist/collective/exchange.h"
#include "dist/iface.h"

// From this many bytes on, a reduction takes two rounds: it moves 2 (n - 1) / n of the tensor per
// task instead of n - 1 tensors. It is also worth a thread of the pool.
#define RN_EXCHANGE_LARGE ((size_t)64 << 10)

typedef struct rn_exchange_task_t {
  rn_str_t name;
  rn_worker_t* worker;  // NULL: this task
  uint64_t incarnation;
} rn_exchange_task_t;

typedef struct rn_exchange_t rn_exchange_t;

// A value that is fetched from another task.
typedef struct rn_exchange_pull_t {
  rn_recv_tensor_t call;  // first
  rn_exchange_t* exchange;
  const rn_exchange_task_t* task;
  int32_t from, to;  // as in the key
  int64_t n;         // elements that will come; -1: not known
  bool is_here;
  rn_shown_key_t shown;
  char key[160];
} rn_exchange_pull_t;

struct rn_exchange_t {
  rn_job_t job;  // first
  const rn_exchange_options_t* options;
  rn_meeting_t* meeting;
  rn_collective_t* like;  // the first member of this task
  rn_exchange_task_t* tasks;
  int32_t task_count, own;
  int32_t* task_of;   // by rank
  char instance[88];  // in the keys of all tasks
  rn_exchange_pull_t* pulls;
  int32_t pull_count, pull_capacity;
  void (*next)(rn_exchange_t* exchange);  // when all pulls have ended
  rn_tensor_t local;                      // what this task gives: one row
  rn_tensor_t result;
  int64_t part;      // elements of a part
  int32_t held;      // by those who will call rn_exchange_release
  rn_mutex_t mutex;  // guards what follows
  int32_t pending;
  rn_status_t status;
};

// Starts a round of at most |count| pulls.
rn_status_t rn_exchange_open(rn_exchange_t* exchange, int64_t count);

// Leaves |n| elements of |tensor| from |first| on for |task|; NULL: tells it that there is no
// value. |from| and |to| are tasks or ranks, as the operation needs.
rn_status_t rn_exchange_post(rn_exchange_t* exchange, int32_t task, int round, int32_t from,
                             int32_t to, const rn_tensor_t* tensor, int64_t first, int64_t n);

// Something of |n| elements will come from |task|; -1: nobody knows how many.
void rn_exchange_pull(rn_exchange_t* exchange, int round, int32_t task, int32_t from, int32_t to,
                      int64_t n);

// Makes the calls of a round; |next| follows when all have ended. After an error, |status| or one
// of a call, the exchange ends instead.
void rn_exchange_run(rn_exchange_t* exchange, void (*next)(rn_exchange_t* exchange),
                     rn_status_t status);

// Ends a hold on the round. An error is told to the other tasks; takes |status|.
void rn_exchange_release(rn_exchange_t* exchange, rn_status_t status);

// The value that came from |from| for |to|; NULL if none was to come.
const rn_tensor_t* rn_exchange_pulled(const rn_exchange_t* exchange, int32_t from, int32_t to);

// Checks that the tasks sent |n| elements each, of the right type.
rn_status_t rn_exchange_check(const rn_exchange_t* exchange, int64_t n);

// Ends the exchange and its meeting; an error is told to the other tasks. Takes |status|.
void rn_exchange_finish(rn_exchange_t* exchange, rn_status_t status);

#endif  // RUNNEL_DIST_COLLECTIVE_EXCHANGE_ROUND_H_
