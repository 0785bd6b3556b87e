// Conventions of gRPC over HTTP/2: timeouts, statuses, escapes.
#ifndef RUNNEL_NET_GRPC_H_
#define RUNNEL_NET_GRPC_H_

#include <stdint.h>

#include "base/str.h"

// Parses "2S", "2010m" … to nanoseconds; false if it is malformed.
bool rn_grpc_timeout_parse(rn_str_t text, int64_t* out_ns);
// The inverse, rounded up, 0 or less as "0n"; returns the length.
size_t rn_grpc_timeout_print(int64_t ns, char* out, size_t room);

// Appends |message| with bytes that a header may not hold as %XX.
void rn_grpc_escape(rn_str_t message, rn_strbuf_t* out);
// The status of |code| (not OK) and an escaped message.
RN_MUST_USE rn_status_t rn_grpc_status(int code, const rn_strbuf_t* escaped);

#endif  // RUNNEL_NET_GRPC_H_
