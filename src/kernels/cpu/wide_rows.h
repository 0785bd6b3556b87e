// Rows that are computed in float if their type is a 16-bit float, and in their own type otherwise.
#ifndef RUNNEL_KERNELS_CPU_WIDE_ROWS_H_
#define RUNNEL_KERNELS_CPU_WIDE_ROWS_H_

#include "kernels/cpu/vector.h"

static inline bool rn_is_narrow(rn_dtype_t dtype) {
  return dtype == RN_HALF || dtype == RN_BFLOAT16;
}

// The type in which rows of |dtype| are computed.
static inline rn_dtype_t rn_wide_dtype(rn_dtype_t dtype) {
  return rn_is_narrow(dtype) ? RN_FLOAT : dtype;
}

// |row| in its type of computation: |row| itself, or its copy in |spare|, which holds |n| floats.
static inline const void* rn_wide_row(rn_dtype_t dtype, const void* row, void* spare, int64_t n) {
  if (!rn_is_narrow(dtype)) return row;
  const rn_vector_table_t* table = rn_vector_table();
  (dtype == RN_HALF ? table->widen_half : table->widen_bfloat16)(row, spare, n);
  return spare;
}

// Rounds |n| floats into |row|, which has a 16-bit type.
static inline void rn_narrow_row(rn_dtype_t dtype, const float* from, void* row, int64_t n) {
  const rn_vector_table_t* table = rn_vector_table();
  (dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)(from, row, n);
}

#endif  // RUNNEL_KERNELS_CPU_WIDE_ROWS_H_
