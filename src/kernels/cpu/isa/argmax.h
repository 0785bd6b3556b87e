// ArgMax and ArgMin loops for one ISA level.
#ifndef RUNNEL_KERNELS_CPU_ISA_ARGMAX_H_
#define RUNNEL_KERNELS_CPU_ISA_ARGMAX_H_

#include "kernels/cpu/isa.h"
#include "tensor/dtype.h"

#define RN_ARGMAX_COLUMNS 512

// Per column, for |width| columns (at most RN_ARGMAX_COLUMNS) of |rows| rows that are |stride|
// elements apart: the row of the largest (smallest) element, the first of equals. Skips NaNs; a
// column of NaNs gives 0.
typedef void (*rn_argmax_fn_t)(const void* in, int64_t rows, int64_t stride, int64_t width,
                               int64_t* out);

typedef struct rn_argmax_table_t {
  rn_argmax_fn_t fn[2][RN_DTYPE_COUNT];  // max, min
} rn_argmax_table_t;
RN_ISA_DECLARE(rn_argmax_table_t, rn_argmax_table_);

#endif  // RUNNEL_KERNELS_CPU_ISA_ARGMAX_H_
