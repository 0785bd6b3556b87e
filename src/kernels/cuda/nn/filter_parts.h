// Gradients of filters are sums over all positions of the output. With few filters, the sums are
// cut into parts, so that there are enough threads; the parts are then added in order.
#ifndef RUNNEL_KERNELS_CUDA_NN_FILTER_PARTS_H_
#define RUNNEL_KERNELS_CUDA_NN_FILTER_PARTS_H_

#include "kernels/cuda/launch.h"

typedef struct rn_filter_parts_t {
  rn_tensor_t sums;      // [parts, count], of the type that sums of |dtype| have
  int64_t parts, piece;  // positions per part
} rn_filter_parts_t;

// Makes the parts for |count| filter elements of |dtype| and |positions| positions.
RN_MUST_USE rn_status_t rn_filter_parts_begin(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t count,
                                              int64_t positions, rn_filter_parts_t* out);
// Issues the addition of the parts to |result|, unless |status| is an error, and frees them.
RN_MUST_USE rn_status_t rn_filter_parts_end(const rn_kernel_ctx_t* ctx, rn_status_t status,
                                            rn_filter_parts_t* parts, rn_tensor_t* result);

#endif  // RUNNEL_KERNELS_CUDA_NN_FILTER_PARTS_H_
