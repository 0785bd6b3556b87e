// The caller of a call, as its callee sees it: a connection that is open, or was lost.
//
// Reference-counted; code that outlives a call retains the caller. Any thread may call these.
#ifndef RUNNEL_NET_CALLER_H_
#define RUNNEL_NET_CALLER_H_

#include "base/alloc.h"

typedef struct rn_caller_t {
  _Atomic int refs;
  _Atomic int64_t
      lost_ns;  // when the connection broke, set before its calls are cancelled; 0: it is open
  rn_allocator_t allocator;
} rn_caller_t;

static inline rn_status_t rn_caller_create(rn_allocator_t allocator, rn_caller_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->refs = 1;
  (*out)->allocator = allocator;
  return RN_OK;
}
static inline rn_caller_t* rn_caller_retain(rn_caller_t* caller) {  // NULL is fine
  if (caller) caller->refs++;
  return caller;
}
static inline void rn_caller_release(rn_caller_t* caller) {  // NULL is fine
  if (caller && --caller->refs == 0) RN_FREE(caller->allocator, caller);
}
static inline bool rn_caller_is_lost(const rn_caller_t* caller) {
  return caller && caller->lost_ns != 0;
}

#endif  // RUNNEL_NET_CALLER_H_
