// Datasets that apply one function to the elements of another; shared by map.c and parallel_map.c.
#ifndef RUNNEL_KERNELS_CPU_DATASET_MAP_H_
#define RUNNEL_KERNELS_CPU_DATASET_MAP_H_

#include "kernels/cpu/dataset/data.h"

typedef struct rn_data_mapped_t {
  rn_dataset_t base;
  rn_dataset_t* input;  // Borrowed from the inputs
  rn_data_func_t func;
  bool preserves_cardinality;
  int32_t state_count;  // for a scan
  const rn_tensor_t* state;
} rn_data_mapped_t;

// Reads input, function (in attribute |attr|) and state.
RN_MUST_USE rn_status_t rn_data_open_mapped(rn_dataset_t* dataset, const char* attr);
// The same for a filter, whose function selects elements of the input.
RN_MUST_USE rn_status_t rn_data_open_predicate(rn_dataset_t* dataset);
void rn_data_close_mapped(rn_dataset_t* dataset);
int64_t rn_data_mapped_cardinality(const rn_dataset_t* dataset);
RN_MUST_USE rn_status_t rn_data_mapped_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                                           rn_tensor_t* out);
// Interprets an error of the function: OUT_OF_RANGE means the end, unless the cardinality is fixed.
RN_MUST_USE rn_status_t rn_data_map_status(const rn_data_mapped_t* map, rn_status_t status,
                                           bool* out_is_end);

// The elements of a filter's input, each followed by the predicate's result; several calls run at
// once. parallel_filter.c passes on those for which it is true.
extern const rn_data_kind_t rn_data_kind_judged;

#endif  // RUNNEL_KERNELS_CPU_DATASET_MAP_H_
