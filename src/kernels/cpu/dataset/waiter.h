// A request that waits in its iterator until another thread answers it or its step is cancelled.
//
// To wait: rn_data_waiter_enter, then, under the iterator's lock, rn_data_waiter_wait_locked unless
// the answer has come meanwhile. A request that does not wait after all leaves. To answer: fill in
// the request and take it under the lock, then call rn_data_waiter_answer without the lock.
#ifndef RUNNEL_KERNELS_CPU_DATASET_WAITER_H_
#define RUNNEL_KERNELS_CPU_DATASET_WAITER_H_

#include "kernels/cpu/dataset/data.h"

typedef struct rn_data_waiter_t {
  rn_data_iterator_t* iterator;  // whose |asked| waits
  rn_mutex_t* mutex;             // the iterator's lock; guards |is_waiting|
  bool is_waiting;
  rn_cancel_t* cancel;  // of the step of the request; has |entry| while it waits
  rn_cancel_entry_t entry;
} rn_data_waiter_t;

// Registers the request with the cancellation of its step. False if that is cancelled already.
bool rn_data_waiter_enter(rn_data_waiter_t* waiter);
// Makes the request wait. False if its step was cancelled since it entered.
bool rn_data_waiter_wait_locked(rn_data_waiter_t* waiter);
void rn_data_waiter_leave(rn_data_waiter_t* waiter);

// The request, which stops waiting; NULL if none waits. The caller must answer it.
rn_data_request_t* rn_data_waiter_take_locked(rn_data_waiter_t* waiter);
// Resumes |request|, which was taken; NULL does nothing. This may free the iterator.
void rn_data_waiter_answer(rn_data_waiter_t* waiter, rn_data_request_t* request);

// Blocks the thread for |micros|, for iterators that have nothing to be woken by. CANCELLED or
// DEADLINE_EXCEEDED if the request's step ends before.
RN_MUST_USE rn_status_t rn_data_pause(const rn_data_request_t* request, const rn_env_t* env,
                                      int64_t micros);

#endif  // RUNNEL_KERNELS_CPU_DATASET_WAITER_H_
