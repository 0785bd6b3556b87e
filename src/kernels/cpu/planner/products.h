// Sums of matmuls without storing the products, for kernels that accumulate them.
#ifndef RUNNEL_KERNELS_CPU_PLANNER_PRODUCTS_H_
#define RUNNEL_KERNELS_CPU_PLANNER_PRODUCTS_H_

#include "framework/kernel.h"

// Adds the |count| products of |lefts| (stored transposed if |transposes|) and |rights| to the
// matrix |c|, one after the other; the bits are those of separate products added in turn. INTERNAL
// if the shapes do not match.
RN_MUST_USE rn_status_t rn_products_add(rn_kernel_ctx_t* ctx, rn_tensor_t* const* lefts,
                                        rn_tensor_t* const* rights, int32_t count, bool transposes,
                                        rn_tensor_t* c);

#endif  // RUNNEL_KERNELS_CPU_PLANNER_PRODUCTS_H_
