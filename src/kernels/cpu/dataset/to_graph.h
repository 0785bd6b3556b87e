// Datasets as graphs, which other processes can make them of.
#ifndef RUNNEL_KERNELS_CPU_DATASET_TO_GRAPH_H_
#define RUNNEL_KERNELS_CPU_DATASET_TO_GRAPH_H_

#include "kernels/cpu/dataset/data.h"

// What happens to functions with state, and to resources, whose state a graph does not hold.
typedef enum rn_data_state_policy_t {
  RN_DATA_STATE_WARN = 0,
  RN_DATA_STATE_IGNORE,
  RN_DATA_STATE_FAIL,
} rn_data_state_policy_t;

// Appends a serialized GraphDef to |out|: the ops that make |dataset|, with constants for their
// other inputs, a _Retval of it, and the functions that they call. FAILED_PRECONDITION if the
// policy is to fail and the dataset depends on state; UNIMPLEMENTED if it was not made by ops or
// reads a resource.
RN_MUST_USE rn_status_t rn_data_to_graph(const rn_dataset_t* dataset, rn_data_state_policy_t policy,
                                         rn_strbuf_t* out);

// FAILED_PRECONDITION if functions of |dataset|, or of what it reads, have state.
RN_MUST_USE rn_status_t rn_data_check_stateless(rn_dataset_t* dataset);

#endif  // RUNNEL_KERNELS_CPU_DATASET_TO_GRAPH_H_
