// The ops that update rows of a variable by index, as far as all devices share them.
#ifndef RUNNEL_KERNELS_CPU_MATH_SCATTER_H_
#define RUNNEL_KERNELS_CPU_MATH_SCATTER_H_

#include "framework/kernel.h"
#include "kernels/cpu/combine.h"

// What an op does to the rows, by the end of its name.
rn_combine_op_t rn_scatter_op(const rn_op_def_t* op);
// With the lock of |variable|, input 0, held: checks types and shapes, but no index.
RN_MUST_USE rn_status_t rn_scatter_check_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable);
// The same for index vectors (ScatterNdAdd and so on), where |params| is the variable's value.
RN_MUST_USE rn_status_t rn_scatter_nd_check(const rn_kernel_ctx_t* ctx, const rn_tensor_t* params);

#endif  // RUNNEL_KERNELS_CPU_MATH_SCATTER_H_
