// Shared by the files of the coordination service.
#ifndef RUNNEL_DIST_COORDINATION_INTERNAL_H_
#define RUNNEL_DIST_COORDINATION_INTERNAL_H_

#include "dist/coordination/service.h"
#include "dist/coordination/values.h"

#define RN_NO_TASK (-1)

// A task of the cluster.
typedef struct rn_coordination_task_t {
  enum {
    RN_TASK_DISCONNECTED = 2,
    RN_TASK_CONNECTED = 3,
    RN_TASK_FAILED = 4
  } state;  // as in the protocol
  uint64_t incarnation;
  int64_t heard_ns;
  rn_status_t error;    // Owned
  rn_strbuf_t devices;  // the fields of its DeviceInfo
} rn_coordination_task_t;

typedef struct rn_barrier_t {
  struct rn_barrier_t* next;  // older ones first
  rn_str_t key;               // Owned: name and number
  int64_t deadline_ns;
  bool is_over;
  rn_status_t status;  // Owned
  size_t missing;
  bool lists_devices;  // its answer has the devices of all tasks
  bool* expected;      // by task: it has not come yet
} rn_barrier_t;

// A call that waits: for a key, at a barrier, or for an error.
typedef struct rn_coordination_wait_t {
  struct rn_coordination_wait_t* next;
  rn_coordination_t* coordination;
  rn_rpc_in_t* in;
  rn_cancel_entry_t gone;
  bool is_linked, is_listed;
  rn_status_t status;  // Owned: how it ends
  rn_message_t answer;
  rn_barrier_t* barrier;  // NULL: none
  bool awaits_error;
  int task;
  size_t key_size;
  char key[];
} rn_coordination_wait_t;

struct rn_coordination_t {
  rn_coordination_options_t options;
  uint64_t incarnation;
  rn_timer_t timer;
  rn_mutex_t mutex;  // guards what follows
  rn_coordination_task_t* tasks;
  rn_values_t values;
  rn_barrier_t *first, *last;
  size_t barrier_count;
  rn_coordination_wait_t* waits;
  rn_status_t error;  // Owned: of the first task that failed
  bool is_stopped, is_timed;
};

// A call that is handled. It writes its answer, or waits.
typedef struct rn_coordination_call_t {
  rn_coordination_t* self;
  rn_rpc_in_t* in;
  rn_str_t request;
  rn_strbuf_t answer;
  rn_coordination_wait_t* ready;
  bool waits;
} rn_coordination_call_t;

static inline int64_t rn_coordination_now(const rn_coordination_t* self) {
  return self->options.env->now_ns(self->options.env->self);
}

// Lets a call wait; |key| is what it waits for, if it is a key. All of this is under the lock,
// except where it is said otherwise.
RN_MUST_USE rn_status_t rn_coordination_wait(rn_coordination_t* self, rn_rpc_in_t* in, rn_str_t key,
                                             rn_coordination_wait_t** out);
// Takes |*at| off the list, to be ended with |status|, which this takes.
void rn_coordination_pick(rn_coordination_wait_t** at, rn_status_t status,
                          rn_coordination_wait_t** ready);
// Answers the calls in |ready|. Without the lock.
void rn_coordination_end_waits(rn_coordination_wait_t* ready);

// The task that a CoordinatedTask names; RN_NO_TASK: none.
int rn_coordination_find_task(const rn_coordination_t* self, rn_str_t message);
// The task in |field| of |request|.
RN_MUST_USE rn_status_t rn_coordination_get_task(const rn_coordination_t* self, rn_str_t request,
                                                 uint32_t field, int* out);

// NULL if there is none.
rn_barrier_t* rn_barrier_find(rn_coordination_t* self, rn_str_t key);
RN_MUST_USE rn_status_t rn_barrier_add(rn_coordination_t* self, rn_str_t key, rn_barrier_t** out);
// |task| comes to |barrier|; its call waits until all have come.
RN_MUST_USE rn_status_t rn_barrier_come(rn_coordination_t* self, rn_barrier_t* barrier, int task,
                                        rn_rpc_in_t* in, rn_coordination_wait_t** ready);
// Takes |status|.
void rn_barrier_end(rn_coordination_t* self, rn_barrier_t* barrier, rn_status_t status,
                    rn_coordination_wait_t** ready);
void rn_barriers_drop_oldest(rn_coordination_t* self);

// Calls.
RN_MUST_USE rn_status_t rn_coordination_barrier(rn_coordination_call_t* call);
RN_MUST_USE rn_status_t rn_coordination_cancel_barrier(rn_coordination_call_t* call);
RN_MUST_USE rn_status_t rn_coordination_insert(rn_coordination_call_t* call);
RN_MUST_USE rn_status_t rn_coordination_get(rn_coordination_call_t* call);
RN_MUST_USE rn_status_t rn_coordination_try_get(rn_coordination_call_t* call);
RN_MUST_USE rn_status_t rn_coordination_increment(rn_coordination_call_t* call);
RN_MUST_USE rn_status_t rn_coordination_list(rn_coordination_call_t* call);
RN_MUST_USE rn_status_t rn_coordination_delete(rn_coordination_call_t* call);

#endif  // RUNNEL_DIST_COORDINATION_INTERNAL_H_
