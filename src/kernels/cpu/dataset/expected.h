// The elements a kernel promises: its attributes output_types and output_shapes.
#ifndef RUNNEL_KERNELS_CPU_DATASET_EXPECTED_H_
#define RUNNEL_KERNELS_CPU_DATASET_EXPECTED_H_

#include "kernels/cpu/dataset/walk.h"

// A kernel's state, or its first member.
typedef struct rn_data_expected_t {
  rn_data_root_t* like;  // Owned; without components if anything is accepted
} rn_data_expected_t;

// Init and destroy functions for kernels without other state.
RN_MUST_USE rn_status_t rn_data_expected_init(const rn_kernel_init_t* init, void* state);
void rn_data_expected_destroy(void* state);

// INVALID_ARGUMENT, with stock's message, if the |count| components of |row| have other types or
// shapes.
RN_MUST_USE rn_status_t rn_data_expected_check(const rn_data_expected_t* expected,
                                               const rn_tensor_t* row, int32_t count);
// The same with the messages for optionals.
RN_MUST_USE rn_status_t rn_data_expected_check_optional(const rn_data_expected_t* expected,
                                                        const rn_tensor_t* row, int32_t count);

#endif  // RUNNEL_KERNELS_CPU_DATASET_EXPECTED_H_
