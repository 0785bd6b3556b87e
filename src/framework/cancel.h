// Cancellation: one flag per step, and the callbacks of operations that wait.
#ifndef RUNNEL_FRAMEWORK_CANCEL_H_
#define RUNNEL_FRAMEWORK_CANCEL_H_

#include "base/status.h"
#include "base/sync.h"

// A waiter's entry, embedded in its own struct.
typedef struct rn_cancel_entry_t {
  void (*fn)(struct rn_cancel_entry_t* entry);  // called once, without locks held
  struct rn_cancel_entry_t* next;
  struct rn_cancel_entry_t* previous;
  bool is_linked;
} rn_cancel_entry_t;

typedef struct rn_cancel_t {
  _Atomic bool is_cancelled;
  rn_mutex_t mutex;  // guards the list
  rn_cond_t idle;    // no callback is running
  rn_cancel_entry_t* entries;
  rn_cancel_entry_t* running;  // the entry whose callback runs now
  pthread_t thread;            // the thread it runs on
} rn_cancel_t;

void rn_cancel_init(rn_cancel_t* cancel);
void rn_cancel_destroy(rn_cancel_t* cancel);
static inline bool rn_is_cancelled(const rn_cancel_t* cancel) {
  return __atomic_load_n((const bool*)&cancel->is_cancelled, __ATOMIC_RELAXED);
}
// Sets the flag and calls every entry. Later calls do nothing.
void rn_cancel(rn_cancel_t* cancel);
// Adds |entry|. Returns false if already cancelled; then |entry| is not kept and its callback is
// not called.
bool rn_cancel_add(rn_cancel_t* cancel, rn_cancel_entry_t* entry);
// When this returns, the callback does not run and never will, unless the caller is inside it. Must
// not be called under a lock that the callback takes. True if the entry was removed before its
// callback was called.
bool rn_cancel_remove(rn_cancel_t* cancel, rn_cancel_entry_t* entry);
// Resets the flag for the next step. No entries may be left.
void rn_cancel_reset(rn_cancel_t* cancel);

#endif  // RUNNEL_FRAMEWORK_CANCEL_H_
