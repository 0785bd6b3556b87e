// Clients of the tf.data service, for kernels, which know no network: data_service/client.c
// implements these functions, data_service/no_client.c in a library for one graph.
#ifndef RUNNEL_FRAMEWORK_DATA_SERVICE_H_
#define RUNNEL_FRAMEWORK_DATA_SERVICE_H_

#include "base/env.h"
#include "tensor/tensor.h"

typedef struct rn_data_client_t rn_data_client_t;

// Strings are copied.
typedef struct rn_data_client_options_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_str_t address, dataset_id;
  rn_str_t processing_mode;               // a ProcessingModeDef
  rn_str_t job_name;                      // "": a job of its own
  rn_str_t trainer_id;                    // "": no cross-trainer cache
  int64_t consumer_index, num_consumers;  // -1: not coordinated
  int64_t max_outstanding;                // elements on their way and waiting; -1: chosen here
  int64_t refresh_ms;                     // between questions to the dispatcher; -1: 1000
  int target_workers;                     // tensorflow.data.TargetWorkers
  int64_t repetition;                     // how often the dataset was read before
  // Called once, on any thread, when the client has ended after rn_data_client_close.
  void (*closed)(void* self);
  void* self;
} rn_data_client_options_t;

// A request for one element. It belongs to the requester.
typedef struct rn_data_fetch_t {
  // What arrived, if |status| is OK and not |is_end|: a CompressedElement in |bytes|, or else
  // |count| tensors. Owned by the requester, who calls rn_data_fetch_clear.
  rn_buffer_t* bytes;
  rn_str_t compressed;
  rn_tensor_t* tensors;
  int32_t count;
  rn_allocator_t allocator;
  bool is_end;
  rn_status_t status;
  void (*done)(struct rn_data_fetch_t* fetch);  // on a thread of the client
} rn_data_fetch_t;

// Begins to ask the dispatcher.
RN_MUST_USE rn_status_t rn_data_client_create(const rn_data_client_options_t* options,
                                              rn_data_client_t** out);
// True if the request is complete; else |done| is called later, once. One request at a time.
bool rn_data_client_next(rn_data_client_t* client, rn_data_fetch_t* fetch);
// Ends an open request with CANCELLED, releases the job and frees the client, in the background.
// Any thread may call it. NULL is fine.
void rn_data_client_close(rn_data_client_t* client);
void rn_data_fetch_clear(rn_data_fetch_t* fetch);

// Registers a dataset; waits for the dispatcher. |graph| is a GraphDef, |metadata| a
// DataServiceMetadata, |wanted_id| may be "". Appends the id to |out_id|.
RN_MUST_USE rn_status_t rn_data_service_register(const rn_env_t* env, rn_allocator_t allocator,
                                                 rn_str_t address, rn_str_t graph,
                                                 rn_str_t metadata, rn_str_t wanted_id,
                                                 rn_strbuf_t* out_id);
// Appends the DataServiceMetadata of a registered dataset to |out|; waits.
RN_MUST_USE rn_status_t rn_data_service_metadata(const rn_env_t* env, rn_allocator_t allocator,
                                                 rn_str_t address, rn_str_t dataset_id,
                                                 rn_strbuf_t* out);

// Splits of an iteration with dynamic sharding, from its dispatcher.
typedef struct rn_data_splits_t rn_data_splits_t;

// A request for one split. It belongs to the requester.
typedef struct rn_data_split_t {
  int64_t repetition;  // the requester sets it
  int64_t value;
  bool is_end;
  rn_status_t status;
  void (*done)(struct rn_data_split_t* split);  // on a thread of the splits
} rn_data_split_t;

// |source| is the number of the source in the dataset. |closed| is called once, on any thread, when
// the splits have ended after rn_data_splits_close.
RN_MUST_USE rn_status_t rn_data_splits_open(const rn_env_t* env, rn_allocator_t allocator,
                                            rn_str_t address, int64_t iteration_id, int64_t source,
                                            void (*closed)(void* self), void* self,
                                            rn_data_splits_t** out);
// Asks for a split; |done| is called later, once. One request at a time.
void rn_data_splits_next(rn_data_splits_t* splits, rn_data_split_t* split);
// Ends an open request with CANCELLED and frees the splits, in the background. NULL is fine.
void rn_data_splits_close(rn_data_splits_t* splits);

#endif  // RUNNEL_FRAMEWORK_DATA_SERVICE_H_
