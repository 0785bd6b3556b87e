// The two services of a task, for calls that come over the network.
#ifndef RUNNEL_DIST_RPC_SERVICE_H_
#define RUNNEL_DIST_RPC_SERVICE_H_

#include "dist/iface.h"
#include "dist/rpc/wire.h"
#include "net/rpc_server.h"

typedef struct rn_service_t {
  rn_worker_t* worker;
  rn_master_t* master;
  const rn_env_t* env;  // slow calls run on its pool, which must have threads
  rn_allocator_t allocator;
  rn_loans_t* loans;  // of this process; NULL: nothing is lent
  rn_wire_t* wire;    // likewise; NULL: none
} rn_service_t;

// For rn_rpc_server_options_t.handle, with an rn_service_t as |self|.
void rn_service_handle(void* self, rn_rpc_in_t* call);

#endif  // RUNNEL_DIST_RPC_SERVICE_H_
