// Servers in this process, from their ServerDefs. Private to capi/.
#ifndef RUNNEL_CAPI_SERVER_H_
#define RUNNEL_CAPI_SERVER_H_

#include "capi/internal.h"
#include "dist/server.h"

// Creates the server of a serialized ServerDef, which is not started. |cpus| is the number of its
// CPU devices, or 0 if the ServerDef says.
RN_MUST_USE rn_status_t rn_capi_server_create(rn_str_t server_def, int cpus, rn_server_t** out);

#endif  // RUNNEL_CAPI_SERVER_H_
