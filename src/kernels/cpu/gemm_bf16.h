// GEMM of bfloat16 by the products of bf16.h; one rounding at the end, as with the products through
// float.
#ifndef RUNNEL_KERNELS_CPU_GEMM_BF16_H_
#define RUNNEL_KERNELS_CPU_GEMM_BF16_H_

#include "kernels/cpu/bf16.h"
#include "kernels/cpu/gemm.h"

// RN_BFLOAT16; no size is 0; |panels| are those of rn_gemm_bf16_pack. |way| multiplies. The same
// bits with any number of threads.
RN_MUST_USE rn_status_t rn_gemm_bf16(rn_pool_t* pool, const rn_bf16_way_t* way,
                                     const rn_gemm_t* gemm);
// Packs B into |panels|, rn_bf16_panels_count elements.
void rn_gemm_bf16_pack(rn_pool_t* pool, const rn_bf16_way_t* way, const rn_gemm_t* gemm,
                       uint16_t* panels);

#endif  // RUNNEL_KERNELS_CPU_GEMM_BF16_H_
