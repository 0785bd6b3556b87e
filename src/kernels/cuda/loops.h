// Runs a program of the loop compiler (jit/) for a kernel: finds or compiles its code, chooses the
// grid, issues it.
#ifndef RUNNEL_KERNELS_CUDA_LOOPS_H_
#define RUNNEL_KERNELS_CUDA_LOOPS_H_

#include "kernels/cpu/broadcasting.h"
#include "kernels/cuda/jit/schedule.h"
#include "kernels/cuda/launch.h"

// |inputs| have as many entries as the program has inputs, |outputs| as it has outputs.
RN_MUST_USE rn_status_t rn_cuda_run(const rn_kernel_ctx_t* ctx, const rn_jit_program_t* program,
                                    const rn_jit_sizes_t* sizes, const rn_jit_operand_t* inputs,
                                    rn_tensor_t* const* outputs);

// How operand |k| of a broadcast is read over its merged dimensions; fills in |operand|.
rn_jit_access_t rn_cuda_operand(const rn_broadcast_t* broadcast, const rn_tensor_t* tensor, int k,
                                rn_jit_operand_t* operand);

#endif  // RUNNEL_KERNELS_CUDA_LOOPS_H_
