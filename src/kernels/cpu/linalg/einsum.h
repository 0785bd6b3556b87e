// Einsum for any device: what is copied, summed and multiplied in which order is decided here; the
// device does it.
#ifndef RUNNEL_KERNELS_CPU_LINALG_EINSUM_H_
#define RUNNEL_KERNELS_CPU_LINALG_EINSUM_H_

#include "framework/kernel.h"
#include "kernels/cpu/gemm.h"

// One term of the equation: the axes of its dimensions in order; -1 for the ellipsis.
typedef struct rn_einsum_term_t {
  int axes[RN_MAX_RANK];
  int count;  // letters and ellipsis
  bool has_ellipsis;
} rn_einsum_term_t;

// The state of the kernel.
typedef struct rn_einsum_t {
  rn_einsum_term_t inputs[2], output;
  int input_count;
} rn_einsum_t;

// A copy of elements from one order of axes to another, outermost axis first. No size is 0.
typedef struct rn_einsum_copy_t {
  rn_dtype_t dtype;
  int rank;
  int64_t sizes[RN_MAX_RANK], from_strides[RN_MAX_RANK], to_strides[RN_MAX_RANK];
  const void* from;
  void* to;
} rn_einsum_copy_t;

typedef struct rn_einsum_device_t {
  rn_status_t (*zero)(rn_kernel_ctx_t* ctx, rn_tensor_t* out);
  rn_status_t (*copy)(rn_kernel_ctx_t* ctx, const rn_einsum_copy_t* copy);
  // |temp| has |parts| parts of |size| elements; afterwards it begins with their sum.
  rn_status_t (*add_up)(rn_kernel_ctx_t* ctx, rn_tensor_t* temp, int64_t parts, int64_t size);
  // |batch| products of matrices that lie one after the other.
  rn_status_t (*multiply)(rn_kernel_ctx_t* ctx, const rn_gemm_t* gemm, int64_t batch);
} rn_einsum_device_t;

RN_MUST_USE rn_status_t rn_einsum_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_einsum_run(rn_kernel_ctx_t* ctx, const rn_einsum_device_t* device);

#endif  // RUNNEL_KERNELS_CPU_LINALG_EINSUM_H_
