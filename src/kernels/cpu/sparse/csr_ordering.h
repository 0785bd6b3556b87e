// An order of the rows of a symmetric sparse matrix in which its Cholesky factor has few entries.
#ifndef RUNNEL_KERNELS_CPU_SPARSE_CSR_ORDERING_H_
#define RUNNEL_KERNELS_CPU_SPARSE_CSR_ORDERING_H_

#include "base/arena.h"
#include "kernels/cpu/sparse/csr.h"

// Writes the rows of |m|, which is square, to |order|. Reads the columns of the lower triangle.
RN_MUST_USE rn_status_t rn_csr_order(const rn_csr_matrix_t* m, rn_arena_t* arena, int32_t* order);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_CSR_ORDERING_H_
