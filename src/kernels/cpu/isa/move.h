// The inner loops of kernels/cpu/move.c for one ISA level.
#ifndef RUNNEL_KERNELS_CPU_ISA_MOVE_H_
#define RUNNEL_KERNELS_CPU_ISA_MOVE_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/isa.h"

// Copies |n| elements of 1 << |log2_size| bytes (up to 16), with strides in bytes.
typedef void (*rn_move_steps_fn_t)(const char* src, int64_t from, char* dst, int64_t to, int64_t n);
// dst[r][c] = src[c][r]: rows of dst are |to_row| bytes apart, rows of src |from_row|.
typedef void (*rn_move_transpose_fn_t)(const char* src, int64_t from_row, char* dst, int64_t to_row,
                                       int64_t rows, int64_t columns);
// Copies |n| rows of |size| bytes each, which are |from| and |to| bytes apart.
typedef void (*rn_move_rows_fn_t)(const char* src, int64_t from, char* dst, int64_t to, int64_t n,
                                  size_t size);

typedef struct rn_move_table_t {
  rn_move_rows_fn_t rows;
  // The same past the caches, for more than those hold; |dst|, |to| and |size| are multiples of a
  // cache line. Other threads see the rows when it returns.
  rn_move_rows_fn_t stream;
  rn_move_steps_fn_t steps[5];
  rn_move_transpose_fn_t transpose[5];
} rn_move_table_t;

RN_ISA_DECLARE(rn_move_table_t, rn_move_table_);

#endif  // RUNNEL_KERNELS_CPU_ISA_MOVE_H_
