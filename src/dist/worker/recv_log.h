// The log of values that a task received from others, and when, by step. The call Logging switches
// it on and fetches it.
//
// Any thread may call these.
#ifndef RUNNEL_DIST_WORKER_RECV_LOG_H_
#define RUNNEL_DIST_WORKER_RECV_LOG_H_

#include "base/str.h"
#include "base/sync.h"
#include "base/vec.h"

// A received value.
typedef struct rn_recv_row_t {
  int64_t step;
  rn_strbuf_t key;  // of the rendezvous
  int64_t bytes, start_us, end_us;
  bool is_taken;
} rn_recv_row_t;

typedef struct rn_recv_log_t {
  rn_allocator_t allocator;
  _Atomic int switched_on;  // how many times
  rn_mutex_t mutex;         // guards what follows
  RN_VEC(rn_recv_row_t) rows;
} rn_recv_log_t;

void rn_recv_log_init(rn_recv_log_t* log, rn_allocator_t allocator);
void rn_recv_log_clear(rn_recv_log_t* log);  // drops the rows; does not switch it off
void rn_recv_log_destroy(rn_recv_log_t* log);

// Calls nest: it is off after as many switches off as on.
void rn_recv_log_switch(rn_recv_log_t* log, bool is_on);
static inline bool rn_recv_log_is_on(const rn_recv_log_t* log) { return log->switched_on > 0; }

// Records a value. Beyond a limit the oldest rows are dropped.
void rn_recv_log_add(rn_recv_log_t* log, int64_t step, rn_str_t key, int64_t bytes,
                     int64_t start_us, int64_t end_us);
// Moves the rows of |step| to |out|, a LoggingResponse, if there are any.
void rn_recv_log_take(rn_recv_log_t* log, int64_t step, rn_strbuf_t* out);

#endif  // RUNNEL_DIST_WORKER_RECV_LOG_H_
