// Calls that a thread waits for.
#ifndef RUNNEL_DATA_SERVICE_ASK_H_
#define RUNNEL_DATA_SERVICE_ASK_H_

#include "framework/cancel.h"
#include "net/channel.h"

// Makes one call and waits for its end, for |timeout_ns| at most, or until |stop|, which may be
// NULL, is cancelled: CANCELLED then, also if it was cancelled before. Appends the response to
// |out|. Not on the loop's thread.
RN_MUST_USE rn_status_t rn_ds_ask(rn_channel_t* channel, rn_loop_t* loop, rn_allocator_t allocator,
                                  const char* path, rn_str_t request, int64_t timeout_ns,
                                  rn_cancel_t* stop, rn_strbuf_t* out);
// Whether the peer may be back soon: UNAVAILABLE, ABORTED or CANCELLED.
bool rn_ds_is_preempted(rn_status_t status);

// Milliseconds that somebody has configured, in nanoseconds: from 1 ms to a year.
static inline int64_t rn_ds_from_ms(int64_t ms) {
  const int64_t year = INT64_C(365) * 24 * 3600 * 1000;
  return (ms < 1 ? 1 : ms > year ? year : ms) * 1000000;
}

// Waits until |until_ns| of the monotonic clock.
void rn_ds_pause(int64_t until_ns);

#endif  // RUNNEL_DATA_SERVICE_ASK_H_
