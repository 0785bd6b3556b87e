// Datasets with one function over the elements of another: what map.c and parallel_map.c share.
#ifndef RUNNEL_KERNELS_CPU_DATASET_MAP_H_
#define RUNNEL_KERNELS_CPU_DATASET_MAP_H_

#include "kernels/cpu/dataset/data.h"

typedef struct rn_data_mapped_t {
  rn_dataset_t base;
  rn_dataset_t* input;  // Borrowed from the inputs
  rn_data_func_t func;
  bool preserves_cardinality;
  int32_t state_count;  // of a scan
  const rn_tensor_t* state;
} rn_data_mapped_t;

// Reads input, function (in attribute |attr|) and state.
RN_MUST_USE rn_status_t rn_data_open_mapped(rn_dataset_t* dataset, const char* attr);
// The same of a filter, whose function says which elements of the input it gives.
RN_MUST_USE rn_status_t rn_data_open_predicate(rn_dataset_t* dataset);
void rn_data_close_mapped(rn_dataset_t* dataset);
int64_t rn_data_mapped_cardinality(const rn_dataset_t* dataset);
// What an error of the function means: out of range is the end, unless the number of elements is
// promised.
RN_MUST_USE rn_status_t rn_data_map_status(const rn_data_mapped_t* map, rn_status_t status,
                                           bool* out_is_end);

// The elements of a filter's input, each with what its predicate says of it behind it; several
// calls run at once. parallel_filter.c takes those that it says true of.
extern const rn_data_kind_t rn_data_kind_judged;

#endif  // RUNNEL_KERNELS_CPU_DATASET_MAP_H_
