// Products of complex matrices, by products of real ones.
#ifndef RUNNEL_KERNELS_CPU_GEMM_COMPLEX_H_
#define RUNNEL_KERNELS_CPU_GEMM_COMPLEX_H_

#include "kernels/cpu/gemm.h"

// Runs a GEMM of complex type whose operands are not transposed.
RN_MUST_USE rn_status_t rn_gemm_complex(rn_pool_t* pool, const rn_gemm_t* gemm);

#endif  // RUNNEL_KERNELS_CPU_GEMM_COMPLEX_H_
