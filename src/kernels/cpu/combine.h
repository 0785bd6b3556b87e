// Rows combined element by element: what scatters, segments, scans and folds are made of.
#ifndef RUNNEL_KERNELS_CPU_COMBINE_H_
#define RUNNEL_KERNELS_CPU_COMBINE_H_

#include "tensor/tensor.h"

typedef enum rn_combine_op_t {
  RN_COMBINE_ASSIGN,
  RN_COMBINE_ADD,
  RN_COMBINE_SUB,
  RN_COMBINE_MUL,
  RN_COMBINE_DIV,  // integers: towards zero; by zero gives zero (callers check before)
  RN_COMBINE_MIN,
  RN_COMBINE_MAX,
  RN_COMBINE_COUNT,
} rn_combine_op_t;

// out[i] = a[i] op b[i] for n elements; b_step 0: one element of b for all. ASSIGN takes b. |out|
// may be |a| or |b|. 16-bit floats are computed as floats and rounded; integers wrap around; on
// booleans ADD and MAX are or, MUL and MIN are and, SUB is exclusive or.
typedef void (*rn_combine_fn_t)(const void* a, const void* b, int b_step, void* out, int64_t n);

// The function for this processor; NULL if the type has none (MIN and MAX of complex numbers,
// anything but plain numbers and booleans).
rn_combine_fn_t rn_combine(rn_combine_op_t op, rn_dtype_t dtype);

// One element of |dtype| that changes nothing under ADD or SUB (zero), MUL (one), MIN (the largest
// finite number) or MAX (the smallest); 16 bytes at |out|.
void rn_combine_identity(rn_combine_op_t op, rn_dtype_t dtype, void* out);

// Whether a number is 0, of either sign.
bool rn_has_zero(const rn_tensor_t* numbers);

typedef struct rn_combine_table_t {
  rn_combine_fn_t fn[RN_COMBINE_COUNT][RN_DTYPE_COUNT];
} rn_combine_table_t;
extern const rn_combine_table_t rn_combine_table_base;
#ifdef __x86_64__
extern const rn_combine_table_t rn_combine_table_avx2;
extern const rn_combine_table_t rn_combine_table_avx512;
#endif

#endif  // RUNNEL_KERNELS_CPU_COMBINE_H_
