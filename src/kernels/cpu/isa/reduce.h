// Reduction loops for one ISA level.
#ifndef RUNNEL_KERNELS_CPU_ISA_REDUCE_H_
#define RUNNEL_KERNELS_CPU_ISA_REDUCE_H_

#include "kernels/cpu/isa.h"
#include "tensor/dtype.h"

typedef enum rn_reduce_op_t {
  RN_REDUCE_SUM,
  RN_REDUCE_SUM_WIDE,     // integers, in 64 bits
  RN_REDUCE_SUM_SQUARES,  // of magnitudes
  RN_REDUCE_PROD,
  RN_REDUCE_MAX,
  RN_REDUCE_MIN,
  RN_REDUCE_AND,
  RN_REDUCE_OR,
  RN_REDUCE_COUNT,
} rn_reduce_op_t;

// Reduces |items| consecutive blocks, each of |rows| rows of |width| elements that are |stride|
// apart, to one row each. With several items stride equals width. |rows| >= 1. The order in which
// elements are combined depends only on rows and width, at every ISA level.
typedef void (*rn_reduce_fn_t)(const void* in, int64_t items, int64_t rows, int64_t stride,
                               int64_t width, void* out);

// By op and input type; NULL where unsupported. 16-bit floats give float, SUM_WIDE of integers
// gives int64 or uint64, all others give the input type.
typedef struct rn_reduce_table_t {
  rn_reduce_fn_t fn[RN_REDUCE_COUNT][RN_DTYPE_COUNT];
} rn_reduce_table_t;
RN_ISA_DECLARE(rn_reduce_table_t, rn_reduce_table_);

#endif  // RUNNEL_KERNELS_CPU_ISA_REDUCE_H_
