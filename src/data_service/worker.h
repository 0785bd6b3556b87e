// A worker of the tf.data service: it processes tasks that the dispatcher gives it, and hands
// elements to clients.
#ifndef RUNNEL_DATA_SERVICE_WORKER_H_
#define RUNNEL_DATA_SERVICE_WORKER_H_

#include "net/loop.h"
#include "net/rpc_server.h"
#include "proto/service_config.pb.h"

typedef struct rn_ds_worker_server_t rn_ds_worker_server_t;

// |loop| and |env| outlive the worker; |config| is borrowed for the call. Fields of it that are 0
// have stock's defaults.
RN_MUST_USE rn_status_t rn_ds_worker_create(const rn_env_t* env, rn_allocator_t allocator,
                                            rn_loop_t* loop,
                                            const rn_pb_data_experimental_WorkerConfig_t* config,
                                            rn_ds_worker_server_t** out);
// The port at which it is served; before the first call arrives.
RN_MUST_USE rn_status_t rn_ds_worker_set_port(rn_ds_worker_server_t* worker, int port);
// Registers with the dispatcher: waits until the dispatcher answers.
RN_MUST_USE rn_status_t rn_ds_worker_start(rn_ds_worker_server_t* worker);
// Ends all tasks and their calls, with CANCELLED. Any thread but the loop's. NULL is fine.
void rn_ds_worker_close(rn_ds_worker_server_t* worker);
// After its server. NULL is fine.
void rn_ds_worker_destroy(rn_ds_worker_server_t* worker);

// An rn_rpc_server_options_t.handle: calls of tensorflow.data.WorkerService.
void rn_ds_worker_handle(void* self, rn_rpc_in_t* call);

// The number of tasks that are in work.
int64_t rn_ds_worker_tasks(rn_ds_worker_server_t* worker);

#endif  // RUNNEL_DATA_SERVICE_WORKER_H_
