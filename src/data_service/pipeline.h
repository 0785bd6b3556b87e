// A registered dataset at work: its GraphDef in a session of its own, with an iterator.
#ifndef RUNNEL_DATA_SERVICE_PIPELINE_H_
#define RUNNEL_DATA_SERVICE_PIPELINE_H_

#include "proto/data_service.pb.h"
#include "session/session.h"

// The graph of a dataset. |output| makes the dataset.
typedef struct rn_ds_graph_t {
  rn_graph_t* graph;  // Owned
  rn_edge_t output;
} rn_ds_graph_t;

// Imports the GraphDef, whose node of op _Retval names the dataset.
RN_MUST_USE rn_status_t rn_ds_graph_load(rn_str_t bytes, rn_allocator_t allocator,
                                         rn_ds_graph_t* out);
void rn_ds_graph_clear(rn_ds_graph_t* graph);
// Adds a scalar constant.
RN_MUST_USE rn_status_t rn_ds_graph_const(rn_ds_graph_t* graph, int64_t value, rn_edge_t* out);
// Calls |visit| for the inputs that are sources: datasets that read no other ones. In the order in
// which stock numbers them. |user| is NULL if the dataset itself is a source.
typedef rn_status_t (*rn_ds_source_fn_t)(void* arg, rn_node_t* source, rn_node_t* user, int input);
RN_MUST_USE rn_status_t rn_ds_graph_sources(rn_ds_graph_t* graph, rn_ds_source_fn_t visit,
                                            void* arg);
// A session on this machine's CPU.
RN_MUST_USE rn_status_t rn_ds_session(rn_ds_graph_t* graph, const rn_env_t* env,
                                      rn_allocator_t allocator, rn_session_t** out);

typedef struct rn_ds_pipeline_t rn_ds_pipeline_t;

// The part of the dataset |graph| that belongs to |task|. |dispatcher| is the address that gives
// splits.
RN_MUST_USE rn_status_t rn_ds_pipeline_create(const rn_env_t* env, rn_allocator_t allocator,
                                              rn_str_t graph, const rn_pb_data_TaskDef_t* task,
                                              rn_str_t dispatcher, rn_ds_pipeline_t** out);
// Runs the ops that make the dataset, before all that follows; waits.
RN_MUST_USE rn_status_t rn_ds_pipeline_start(rn_ds_pipeline_t* pipeline);
// Makes the next element; waits. One thread at a time. |*out| is an array of |*out_count| tensors
// that lasts until the next call; the caller owns the tensors.
RN_MUST_USE rn_status_t rn_ds_pipeline_next(rn_ds_pipeline_t* pipeline, rn_tensor_t** out,
                                            int* out_count, bool* out_is_end);
RN_MUST_USE rn_status_t rn_ds_pipeline_cardinality(rn_ds_pipeline_t* pipeline, int64_t* out);
// Ends the call that another thread makes; later ones fail. NULL is fine.
void rn_ds_pipeline_cancel(rn_ds_pipeline_t* pipeline);
void rn_ds_pipeline_destroy(rn_ds_pipeline_t* pipeline);  // NULL is fine

#endif  // RUNNEL_DATA_SERVICE_PIPELINE_H_
