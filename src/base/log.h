// Helpers for messages in a log; rn_log itself is in env.h.
#ifndef RUNNEL_BASE_LOG_H_
#define RUNNEL_BASE_LOG_H_

#include "base/env.h"

// Copies |text| to |out| so that it cannot harm a log or a terminal: control characters, Unicode's
// too, and bytes that are not UTF-8 become \n, \r, \t or \xNN. Text that does not fit ends with
// "...". Escaping twice changes nothing. rn_log escapes every message.
void rn_log_escape(const char* text, char* out, size_t room);

// What a log that can be changed while it runs takes and how it writes it. Starts zeroed: messages
// of every level, but none per request. Any thread may read and change it.
typedef struct rn_log_settings_t {
  _Atomic bool is_off[RN_LOG_ERROR + 1];  // by level
  _Atomic uint32_t verbose;               // 1 and above: a message per request
  _Atomic bool is_iso;                    // times as in ISO 8601
} rn_log_settings_t;

// Limits a message that may repeat often to one per ten seconds. Starts zeroed; any thread.
typedef struct rn_log_limit_t {
  _Atomic int64_t said_ns;   // when the message was last logged; 0: never
  _Atomic int64_t left_out;  // messages dropped since
} rn_log_limit_t;

// True if the message should be logged now; |*out_left_out| is how many were dropped before it.
bool rn_log_limit_says(rn_log_limit_t* limit, const rn_env_t* env, int64_t* out_left_out);

#endif  // RUNNEL_BASE_LOG_H_
