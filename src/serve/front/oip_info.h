// What the Open Inference Protocol reports about the server and its models, and what it changes.
//
// Replies are messages of the gRPC form, in an arena; the REST form prints them as JSON.
#ifndef RUNNEL_SERVE_FRONT_OIP_INFO_H_
#define RUNNEL_SERVE_FRONT_OIP_INFO_H_

#include "proto/oip.pb.h"
#include "serve/front/front.h"

// Makes |list|, a repeated field, |n| zeroed elements long; a status.
#define RN_OIP_LIST(arena, list, n)                  \
  ((list)->count = (list)->capacity = (uint32_t)(n), \
   rn_arena_alloc_array((arena), (size_t)(n), sizeof *(list)->items, (void**)&(list)->items))

bool rn_oip_is_ready(const rn_front_t* front);
bool rn_oip_model_is_ready(rn_front_t* front, rn_str_t name, rn_str_t version);

RN_MUST_USE rn_status_t rn_oip_server_metadata(rn_arena_t* arena,
                                               rn_pb_inference_ServerMetadataResponse_t* out);
// |version| may be "". NOT_FOUND for a model that is not available.
RN_MUST_USE rn_status_t rn_oip_model_metadata(rn_front_t* front, rn_str_t name, rn_str_t version,
                                              rn_arena_t* arena,
                                              rn_pb_inference_ModelMetadataResponse_t* out);
RN_MUST_USE rn_status_t rn_oip_model_config(rn_front_t* front, rn_str_t name, rn_str_t version,
                                            rn_arena_t* arena, rn_pb_inference_ModelConfig_t* out);
// The value of a type in a model's configuration.
int32_t rn_oip_config_type(rn_dtype_t dtype);
// Of all models and applications if |name| is "", of all versions if |version| is. Counts of rows
// and batches are a version's own; times and counts of requests are those of its model.
RN_MUST_USE rn_status_t rn_oip_statistics(rn_front_t* front, rn_str_t name, rn_str_t version,
                                          rn_arena_t* arena,
                                          rn_pb_inference_ModelStatisticsResponse_t* out);
// The models of the configuration, or those that are ready.
RN_MUST_USE rn_status_t rn_oip_index(rn_front_t* front, bool only_ready, rn_arena_t* arena,
                                     rn_pb_inference_RepositoryIndexResponse_t* out);

// The parameters of a load.
typedef struct rn_oip_load_t {
  bool has_config;
  rn_str_t config;  // JSON
  rn_str_t other;   // the key of one that is not known; "": none
} rn_oip_load_t;

// Load or unload a configured model. Both block: not on a loop's thread. Of the configuration of a
// load, the version policy is for the server; the rest says what the model is. Anything else is
// INVALID_ARGUMENT.
RN_MUST_USE rn_status_t rn_oip_load(rn_front_t* front, rn_str_t name, const rn_oip_load_t* load);
RN_MUST_USE rn_status_t rn_oip_unload(rn_front_t* front, rn_str_t name);

// PERMISSION_DENIED unless the caller, who may administrate, is on this machine.
RN_MUST_USE rn_status_t rn_oip_shared_memory(const rn_front_t* front, bool is_local);
RN_MUST_USE rn_status_t rn_oip_regions(rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                                       rn_pb_inference_SystemSharedMemoryStatusResponse_t* out);
RN_MUST_USE rn_status_t rn_oip_cuda_regions(rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                                            rn_pb_inference_CudaSharedMemoryStatusResponse_t* out);

#endif  // RUNNEL_SERVE_FRONT_OIP_INFO_H_
