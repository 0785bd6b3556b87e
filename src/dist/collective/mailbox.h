// Tensors that members of collectives leave for members of other tasks, by step and key.
//
// Either side may come first. Each tensor is taken once, those under one key in the order in which
// they were left. Any thread.
#ifndef RUNNEL_DIST_COLLECTIVE_MAILBOX_H_
#define RUNNEL_DIST_COLLECTIVE_MAILBOX_H_

#include "base/env.h"
#include "dist/iface.h"
#include "tensor/tensor.h"

typedef struct rn_mailbox_t rn_mailbox_t;

// Someone who waits for a tensor, embedded in its own struct. |fn| is called once, without locks;
// it owns |status| and moves |value| out, which is unset if it |is_none|.
typedef struct rn_mail_wait_t {
  void (*fn)(struct rn_mail_wait_t* wait, rn_status_t status, rn_tensor_t* value, bool is_none);
  struct rn_mail_wait_t* next;
} rn_mail_wait_t;

RN_MUST_USE rn_status_t rn_mailbox_create(const rn_env_t* env, rn_allocator_t allocator,
                                          rn_mailbox_t** out);
// No call may wait. NULL is fine.
void rn_mailbox_destroy(rn_mailbox_t* mailbox);

// Leaves |value|, which is moved, for |reader|; |is_none| tells the taker that there is none. A
// small value is also shown to |reader| under rn_mailbox_key, where the transport can (iface.h).
// |reader| outlives the mailbox, until it is closed; NULL: nothing is shown.
RN_MUST_USE rn_status_t rn_mailbox_post(rn_mailbox_t* mailbox, rn_worker_t* reader, int64_t step,
                                        rn_str_t key, rn_tensor_t* value, bool is_none);
// The key under which the value of |step| and |key| is shown.
rn_shown_key_t rn_mailbox_key(int64_t step, rn_str_t key);
void rn_mailbox_take(rn_mailbox_t* mailbox, int64_t step, rn_str_t key, rn_mail_wait_t* wait);
// Gives up waiting; false if |wait| was or will be called.
bool rn_mailbox_take_back(rn_mailbox_t* mailbox, int64_t step, rn_str_t key, rn_mail_wait_t* wait);
// An instance has failed: drops what was left under keys that begin with |prefix|, and fails those
// who wait for it, or will within a minute. Takes |status|.
void rn_mailbox_fail(rn_mailbox_t* mailbox, int64_t step, rn_str_t prefix, rn_status_t status);
// Fails all who wait, now and from now on. Takes |status|.
void rn_mailbox_close(rn_mailbox_t* mailbox, rn_status_t status);
// Whether a tensor was left that no one has taken yet.
bool rn_mailbox_has_mail(rn_mailbox_t* mailbox);

#endif  // RUNNEL_DIST_COLLECTIVE_MAILBOX_H_
