// Elementwise combination of rows; scatters, segment ops, scans and folds use it.
#ifndef RUNNEL_KERNELS_CPU_COMBINE_H_
#define RUNNEL_KERNELS_CPU_COMBINE_H_

#include "kernels/cpu/isa.h"
#include "tensor/tensor.h"

typedef enum rn_combine_op_t {
  RN_COMBINE_ASSIGN,
  RN_COMBINE_ADD,
  RN_COMBINE_SUB,
  RN_COMBINE_MUL,
  RN_COMBINE_DIV,  // integers: truncates; x / 0 gives 0 (callers check first)
  RN_COMBINE_MIN,
  RN_COMBINE_MAX,
  RN_COMBINE_COUNT,
} rn_combine_op_t;

// out[i] = a[i] op b[i] for n elements; with b_step 0, one element of b serves all. ASSIGN copies
// b. |out| may be |a| or |b|. 16-bit floats are computed in float and rounded; integers wrap
// around; on booleans ADD and MAX are OR, MUL and MIN are AND, SUB is XOR.
typedef void (*rn_combine_fn_t)(const void* a, const void* b, int b_step, void* out, int64_t n);

// The function for this CPU's ISA level. NULL if the type has none: MIN and MAX of complex numbers,
// and any type other than plain numbers and booleans.
rn_combine_fn_t rn_combine(rn_combine_op_t op, rn_dtype_t dtype);

// Writes the identity element of |op| to |out| (16 bytes): zero for ADD and SUB, one for MUL, the
// largest finite number for MIN, the smallest for MAX.
void rn_combine_identity(rn_combine_op_t op, rn_dtype_t dtype, void* out);

// Whether any of |numbers| is 0 or -0.
bool rn_has_zero(const rn_tensor_t* numbers);

typedef struct rn_combine_table_t {
  rn_combine_fn_t fn[RN_COMBINE_COUNT][RN_DTYPE_COUNT];
} rn_combine_table_t;
RN_ISA_DECLARE(rn_combine_table_t, rn_combine_table_);

#endif  // RUNNEL_KERNELS_CPU_COMBINE_H_
