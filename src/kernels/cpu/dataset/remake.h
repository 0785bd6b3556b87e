// Datasets made out of others: with other inputs, or as another op with the attributes of one.
#ifndef RUNNEL_KERNELS_CPU_DATASET_REMAKE_H_
#define RUNNEL_KERNELS_CPU_DATASET_REMAKE_H_

#include "kernels/cpu/dataset/data.h"

// |like| as an |op|. Attributes come from |attrs| or, if they are not there, from |like|, or are
// the op's defaults. |functions| is NULL for those of |like|.
typedef struct rn_data_change_t {
  rn_dataset_t* like;
  const char* op;
  int32_t attr_count;
  const rn_attr_t* attrs;
  rn_functions_t* functions;
} rn_data_change_t;
RN_MUST_USE rn_status_t rn_data_remake(const rn_data_change_t* change,
                                       const rn_tensor_t* const* inputs, int32_t input_count,
                                       rn_dataset_t** out);
// |dataset| again, with |changed| in the place of those inputs that are set there.
RN_MUST_USE rn_status_t rn_data_with_inputs(rn_dataset_t* dataset, const rn_tensor_t* changed,
                                            rn_dataset_t** out);
// The dataset in a tensor; NULL if it holds none. Borrowed.
rn_dataset_t* rn_data_in(const rn_tensor_t* tensor);

#endif  // RUNNEL_KERNELS_CPU_DATASET_REMAKE_H_
