// The service for eager clients: contexts by id, the calls that use them, and a timer that closes
// unused ones.
//
// Calls arrive on the network's thread and run on their own threads, because ops may block.
#ifndef RUNNEL_DIST_EAGER_SERVICE_H_
#define RUNNEL_DIST_EAGER_SERVICE_H_

#include "dist/rpc/wire.h"
#include "dist/worker/worker.h"
#include "net/rpc_server.h"

typedef struct rn_eager_service_t rn_eager_service_t;
typedef struct rn_tls_t rn_tls_t;
typedef struct rn_eager_context_t rn_eager_context_t;  // see context.h

typedef struct rn_eager_service_options_t {
  const rn_env_t* env;  // restricted for graphs; must outlive the service, like all of this
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_local_worker_t* worker;
  rn_str_t task;
  int cpu_devices;
  rn_gpu_options_t gpu;
  rn_tls_t* tls;  // NULL: plain
  int64_t lease_ns;
  // Of the clients' peers: see rn_eager_peers_options_t.
  bool borrows;
  rn_wire_t* wire;
  bool (*may_reach)(void* self, rn_str_t address);
  bool (*knows)(void* self, rn_str_t address);
  void* may_self;
  rn_tokens_t* tokens;
} rn_eager_service_options_t;

RN_MUST_USE rn_status_t rn_eager_service_create(const rn_eager_service_options_t* options,
                                                rn_eager_service_t** out);
// Closes every context and refuses further calls. NULL is fine.
void rn_eager_service_stop(rn_eager_service_t* service);
// Waits for running calls; the port must be closed. NULL is fine.
void rn_eager_service_destroy(rn_eager_service_t* service);

// Whether |path| is a call to the service, and whether it streams.
bool rn_eager_service_has(rn_str_t path);
bool rn_eager_service_streams(rn_str_t path);
// On the loop's thread.
void rn_eager_service_handle(rn_eager_service_t* service, rn_rpc_in_t* call);

// Adds the context of a client in this process, which the service retains until it stops: other
// tasks use it like their own contexts, but do not close it. ALREADY_EXISTS if there is one with
// its id.
RN_MUST_USE rn_status_t rn_eager_service_adopt(rn_eager_service_t* service,
                                               rn_eager_context_t* context);
// Removes it again, and waits for calls that use it.
void rn_eager_service_dismiss(rn_eager_service_t* service, rn_eager_context_t* context);

size_t rn_eager_service_contexts(rn_eager_service_t* service);

#endif  // RUNNEL_DIST_EAGER_SERVICE_H_
