// Text that came from outside, in a log.
#ifndef RUNNEL_BASE_LOG_TEXT_H_
#define RUNNEL_BASE_LOG_TEXT_H_

#include <stddef.h>

// Writes |text| to |out| so that it can do nothing to a log or a terminal: control characters,
// those of Unicode too, and bytes that are no UTF-8 become \n, \r, \t or \xNN. Ends with "..."
// where there is no room for all of it. What was written this way once stays as it is. rn_log does
// this to every message.
void rn_log_escape(const char* text, char* out, size_t room);

#endif  // RUNNEL_BASE_LOG_TEXT_H_
