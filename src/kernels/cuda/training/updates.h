// Dense updates of one rule with the same numbers, collected in a table and issued with few
// launches. Adds to the variables of several nodes (apply_many.c) or of one (training.c).
#ifndef RUNNEL_KERNELS_CUDA_TRAINING_UPDATES_H_
#define RUNNEL_KERNELS_CUDA_TRAINING_UPDATES_H_

#include "kernels/cpu/training/apply.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/training/training_args.h"

typedef struct rn_cuda_updates_t {
  const rn_apply_t* apply;
  rn_dtype_t dtype;  // of the variables in |args|
  int64_t chunks;    // in |args|
  struct rn_updates_args args;
} rn_cuda_updates_t;

// Begins a table of updates by |apply| with the numbers of the call |ctx|, which it checks.
RN_MUST_USE rn_status_t rn_cuda_updates_begin(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                              rn_cuda_updates_t* out);
// Adds an update, whose type is that of the updates before. Issues those if the table is full. The
// gradient of floats may be in 16 bits.
RN_MUST_USE rn_status_t rn_cuda_updates_add(const rn_kernel_ctx_t* ctx, rn_cuda_updates_t* updates,
                                            rn_variable_t* const* variables,
                                            const rn_tensor_t* gradient);
// Issues what is in the table and empties it.
RN_MUST_USE rn_status_t rn_cuda_updates_issue(const rn_kernel_ctx_t* ctx,
                                              rn_cuda_updates_t* updates);

// The row of the update op |name|; NULL if a GPU has none.
const rn_kernel_def_t* rn_cuda_update_row(rn_str_t name);

#endif  // RUNNEL_KERNELS_CUDA_TRAINING_UPDATES_H_
