// The small conventions of gRPC over HTTP/2: time-outs, statuses, escapes.
#ifndef RUNNEL_DIST_RPC_GRPC_H_
#define RUNNEL_DIST_RPC_GRPC_H_

#include <stdint.h>

#include "base/str.h"

// "2S", "2010m" … in nanoseconds; false if it is none.
bool rn_grpc_timeout_parse(rn_str_t text, int64_t* out_ns);
// The other way, rounded up, 0 or less as "0n"; the length of it.
size_t rn_grpc_timeout_print(int64_t ns, char* out, size_t room);

// Appends |message| with what a header may not hold as %XX.
void rn_grpc_escape(rn_str_t message, rn_strbuf_t* out);
// The status of |code| (not OK) and an escaped message.
RN_MUST_USE rn_status_t rn_grpc_status(int code, const rn_strbuf_t* escaped);

#endif  // RUNNEL_DIST_RPC_GRPC_H_
