// Reduction loops of one generation of processor.
#ifndef RUNNEL_KERNELS_CPU_ISA_REDUCE_H_
#define RUNNEL_KERNELS_CPU_ISA_REDUCE_H_

#include "tensor/dtype.h"

typedef enum rn_reduce_op_t {
  RN_REDUCE_SUM,
  RN_REDUCE_SUM_WIDE,     // integers into 64 bits
  RN_REDUCE_SUM_SQUARES,  // of magnitudes
  RN_REDUCE_PROD,
  RN_REDUCE_MAX,
  RN_REDUCE_MIN,
  RN_REDUCE_AND,
  RN_REDUCE_OR,
  RN_REDUCE_COUNT,
} rn_reduce_op_t;

// Reduces |items| blocks, one behind the other, each of |rows| rows of |width| elements that are
// |stride| apart, to one row each. With several items stride is width. |rows| >= 1. The order in
// which elements are combined follows from rows and width alone, on every generation.
typedef void (*rn_reduce_fn_t)(const void* in, int64_t items, int64_t rows, int64_t stride,
                               int64_t width, void* out);

// By op and type of the input; NULL where there is none. 16-bit floats give floats, SUM_WIDE of
// integers gives int64 or uint64, everything else its own type.
typedef struct rn_reduce_table_t {
  rn_reduce_fn_t fn[RN_REDUCE_COUNT][RN_DTYPE_COUNT];
} rn_reduce_table_t;
extern const rn_reduce_table_t rn_reduce_table_base;
#ifdef __x86_64__
extern const rn_reduce_table_t rn_reduce_table_avx2;
extern const rn_reduce_table_t rn_reduce_table_avx512;
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_REDUCE_H_
