// The dispatcher of the tf.data service: it knows datasets, workers and jobs, and tells workers
// what to process and clients where to read.
#ifndef RUNNEL_DATA_SERVICE_DISPATCHER_H_
#define RUNNEL_DATA_SERVICE_DISPATCHER_H_

#include "net/loop.h"
#include "net/rpc_server.h"
#include "proto/service_config.pb.h"

typedef struct rn_ds_dispatcher_t rn_ds_dispatcher_t;

// Reads the journal, if the config says so. |loop| carries calls to workers. |loop| and |env|
// outlive the dispatcher; |config| is borrowed for the call. Fields of it that are 0 have stock's
// defaults.
RN_MUST_USE rn_status_t rn_ds_dispatcher_create(
    const rn_env_t* env, rn_allocator_t allocator, rn_loop_t* loop,
    const rn_pb_data_experimental_DispatcherConfig_t* config, rn_ds_dispatcher_t** out);
// Ends calls that wait for other clients, so that the server can end. NULL is fine.
void rn_ds_dispatcher_close(rn_ds_dispatcher_t* dispatcher);
// After its server. NULL is fine.
void rn_ds_dispatcher_destroy(rn_ds_dispatcher_t* dispatcher);

// An rn_rpc_server_options_t.handle: calls of tensorflow.data.DispatcherService.
void rn_ds_dispatcher_handle(void* self, rn_rpc_in_t* call);

// The number of workers that have registered.
int64_t rn_ds_dispatcher_workers(rn_ds_dispatcher_t* dispatcher);

#endif  // RUNNEL_DATA_SERVICE_DISPATCHER_H_
