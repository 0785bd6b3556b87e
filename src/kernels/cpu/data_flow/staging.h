// Staging areas: tuples of tensors that one step stores for another, in order (Stage) or by key
// (MapStage).
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_STAGING_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_STAGING_H_

#include "base/str.h"
#include "kernels/cpu/data_flow/parking.h"
#include "kernels/cpu/state/shared.h"

// The state of a kernel that uses a staging area. Kernels with the same container and shared_name
// (or node name) share one area; the first of them determines its limits.
typedef struct rn_staging_user_t {
  rn_resource_t* resource;  // Retained
  int64_t components;       // length of "dtypes"
} rn_staging_user_t;

RN_MUST_USE rn_status_t rn_staging_user_init(const rn_kernel_init_t* init, const char* type,
                                             rn_shared_create_fn_t create, rn_staging_user_t* user);
void rn_staging_user_destroy(void* user);

// The limits of a staging area; 0 if unlimited.
typedef struct rn_staging_limits_t {
  int64_t capacity, memory;
} rn_staging_limits_t;

// The bytes of the inputs from |first| on. RESOURCE_EXHAUSTED if they can never fit.
RN_MUST_USE rn_status_t rn_staging_measure(const rn_kernel_ctx_t* ctx, int first, int count,
                                           const rn_staging_limits_t* limits, int64_t* out_bytes);

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_STAGING_H_
