// Gathering rows by index, for one ISA level.
#ifndef RUNNEL_KERNELS_CPU_ISA_GATHER_H_
#define RUNNEL_KERNELS_CPU_ISA_GATHER_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/isa.h"

// Copies rows |begin| to |end| of the result: row i is the |row| bytes at index i of |params|. The
// caller checked the indices; those in [end, count) serve only for prefetching.
typedef void (*rn_gather_rows_fn_t)(const char* params, const void* indices, int64_t begin,
                                    int64_t end, int64_t count, size_t row, char* out);
// The position of the first index outside [0, limit), or |count|.
typedef int64_t (*rn_gather_check_fn_t)(const void* indices, int64_t count, int64_t limit);

// By index type: int16, int32, int64.
typedef struct rn_gather_table_t {
  rn_gather_rows_fn_t rows[3];
  rn_gather_check_fn_t check[3];
} rn_gather_table_t;

RN_ISA_DECLARE(rn_gather_table_t, rn_gather_table_);

#endif  // RUNNEL_KERNELS_CPU_ISA_GATHER_H_
