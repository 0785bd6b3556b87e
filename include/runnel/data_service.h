// Servers of the tf.data service: machines that prepare input data for others
// (doc/data_service.md).
//
// A dispatcher tells workers what to process and clients where to read; workers run the pipelines.
// They speak TensorFlow's protocol, so clients and servers may be stock's.
//
//   TF_Buffer config = …;   // a serialized tensorflow.data.experimental.DispatcherConfig
//   rn_data_server_t* server = rn_data_server_open(RN_DATA_DISPATCHER, config.data, config.length,
//                                                  "127.0.0.1", status);
//   rn_data_server_begin(server, status);
//   printf("%d\n", rn_data_server_port(server));
//   rn_data_server_wait(server);
#ifndef RUNNEL_DATA_SERVICE_H_
#define RUNNEL_DATA_SERVICE_H_

#include "runnel/api.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_data_server_t rn_data_server_t;
typedef enum rn_data_role_t { RN_DATA_DISPATCHER, RN_DATA_WORKER } rn_data_role_t;

// Opens the port on |host|: an address of this machine, or "0.0.0.0" for all. |config| is a
// serialized DispatcherConfig or WorkerConfig of tensorflow.data.experimental; port 0 takes a free
// one. Anyone who reaches the port can run any pipeline, so that it should be one that only trusted
// machines reach. NULL after an error.
RN_API rn_data_server_t* rn_data_server_open(rn_data_role_t role, const void* config, size_t size,
                                             const char* host, TF_Status* status);
// Begins to answer. A worker waits until its dispatcher knows it.
RN_API void rn_data_server_begin(rn_data_server_t* server, TF_Status* status);
// Ends all calls. From any thread, any number of times.
RN_API void rn_data_server_end(rn_data_server_t* server);
// Waits until another thread has ended it.
RN_API void rn_data_server_wait(rn_data_server_t* server);
RN_API int rn_data_server_port(const rn_data_server_t* server);
// The number of workers that a dispatcher knows, or of tasks that a worker has.
RN_API int64_t rn_data_server_active(rn_data_server_t* server);
// Ends and frees. NULL is fine.
RN_API void rn_data_server_free(rn_data_server_t* server);

// The DataServiceMetadata of a registered dataset, serialized: asks the dispatcher at |address|,
// "host:port", and waits. The caller frees it with TF_DeleteBuffer. NULL after an error.
RN_API TF_Buffer* rn_data_service_get_metadata(const char* address, const char* dataset_id,
                                               TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_DATA_SERVICE_H_
