// Philox in bulk: generates whole blocks of a stream, several at a time.
#ifndef RUNNEL_KERNELS_CPU_ISA_PHILOX_H_
#define RUNNEL_KERNELS_CPU_ISA_PHILOX_H_

#include "kernels/cpu/isa.h"
#include "kernels/cpu/random/philox.h"

typedef struct rn_philox_table_t {
  // The words of |blocks| blocks from |philox| on: four per block.
  void (*words)(const rn_philox_t* philox, uint32_t* out, int64_t blocks);
  // The same as floats in [0, 1).
  void (*floats)(const rn_philox_t* philox, float* out, int64_t blocks);
} rn_philox_table_t;

RN_ISA_DECLARE(rn_philox_table_t, rn_philox_table_);

#endif  // RUNNEL_KERNELS_CPU_ISA_PHILOX_H_
