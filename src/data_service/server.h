// A server of the tf.data service: a dispatcher or a worker, and its port.
#ifndef RUNNEL_DATA_SERVICE_SERVER_H_
#define RUNNEL_DATA_SERVICE_SERVER_H_

#include "base/env.h"

typedef struct rn_ds_server_t rn_ds_server_t;

// |config| is a serialized DispatcherConfig or WorkerConfig (tensorflow.data.experimental), |host|
// where to listen: "127.0.0.1", or "0.0.0.0" for all interfaces. Opens the port; calls fail until
// rn_ds_server_start. |env| outlives the server.
RN_MUST_USE rn_status_t rn_ds_server_create(bool is_dispatcher, rn_str_t config, const char* host,
                                            const rn_env_t* env, rn_allocator_t allocator,
                                            rn_ds_server_t** out);
// A worker waits until its dispatcher answers.
RN_MUST_USE rn_status_t rn_ds_server_start(rn_ds_server_t* server);
// Ends all calls, from any thread; later calls do nothing.
void rn_ds_server_stop(rn_ds_server_t* server);
// Waits until it has been stopped.
void rn_ds_server_join(rn_ds_server_t* server);
int rn_ds_server_port(const rn_ds_server_t* server);
// The number of workers of a dispatcher, or of tasks of a worker.
int64_t rn_ds_server_active(rn_ds_server_t* server);
// Stops and frees. NULL is fine.
void rn_ds_server_destroy(rn_ds_server_t* server);

#endif  // RUNNEL_DATA_SERVICE_SERVER_H_
