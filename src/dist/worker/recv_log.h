// Which values a task has asked of others and when, by step: what Logging switches on and fetches.
//
// Functions may be called from any thread.
#ifndef RUNNEL_DIST_WORKER_RECV_LOG_H_
#define RUNNEL_DIST_WORKER_RECV_LOG_H_

#include "base/str.h"
#include "base/sync.h"
#include "base/vec.h"

// A value that has come.
typedef struct rn_recv_row_t {
  int64_t step;
  rn_strbuf_t key;  // the rendezvous's
  int64_t bytes, start_us, end_us;
  bool is_taken;
} rn_recv_row_t;

typedef struct rn_recv_log_t {
  rn_allocator_t allocator;
  _Atomic int switched_on;  // so many times
  rn_mutex_t mutex;         // guards what follows
  RN_VEC(rn_recv_row_t) rows;
} rn_recv_log_t;

void rn_recv_log_init(rn_recv_log_t* log, rn_allocator_t allocator);
void rn_recv_log_clear(rn_recv_log_t* log);  // its rows; switches nothing
void rn_recv_log_destroy(rn_recv_log_t* log);

// As often as it was switched on it must be switched off again.
void rn_recv_log_switch(rn_recv_log_t* log, bool is_on);
static inline bool rn_recv_log_is_on(const rn_recv_log_t* log) { return log->switched_on > 0; }

// Takes note of a value. Beyond a limit the oldest rows are dropped, for nobody seems to fetch
// them.
void rn_recv_log_add(rn_recv_log_t* log, int64_t step, rn_str_t key, int64_t bytes,
                     int64_t start_us, int64_t end_us);
// Moves the rows of |step| to |out|, a LoggingResponse, if there are any.
void rn_recv_log_take(rn_recv_log_t* log, int64_t step, rn_strbuf_t* out);

#endif  // RUNNEL_DIST_WORKER_RECV_LOG_H_
