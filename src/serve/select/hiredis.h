// hiredis' functions that read replies, loaded from the system's library on first use, so that a
// server without Redis does not need it.
#ifndef RUNNEL_SERVE_SELECT_HIREDIS_H_
#define RUNNEL_SERVE_SELECT_HIREDIS_H_

#include <hiredis/hiredis.h>

#include "base/status.h"

#define RN_HIREDIS(X)    \
  X(redisReaderCreate)   \
  X(redisReaderFree)     \
  X(redisReaderFeed)     \
  X(redisReaderGetReply) \
  X(freeReplyObject)

typedef struct rn_hiredis_t {
#define RN_HIREDIS_FIELD(name) __typeof__(&(name)) name;
  RN_HIREDIS(RN_HIREDIS_FIELD)
#undef RN_HIREDIS_FIELD
} rn_hiredis_t;

// The table, or UNIMPLEMENTED if hiredis cannot be loaded.
RN_MUST_USE rn_status_t rn_hiredis(const rn_hiredis_t** out);

#endif  // RUNNEL_SERVE_SELECT_HIREDIS_H_
