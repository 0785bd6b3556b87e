// Arithmetic on the values of CSR matrices, by type.
#ifndef RUNNEL_KERNELS_CPU_SPARSE_CSR_FNS_H_
#define RUNNEL_KERNELS_CPU_SPARSE_CSR_FNS_H_

#include "kernels/cpu/sparse/csr.h"

typedef struct rn_csr_fns_t {
  // Rows [begin, end) of A B, for dense B with rows of |n| numbers.
  void (*multiply_dense)(const rn_csr_matrix_t* a, const void* b, int64_t n, int64_t begin,
                         int64_t end, void* out);
  // Adds row |i| of A B to |sums|, one number per column.
  void (*multiply_row)(const rn_csr_matrix_t* a, const rn_csr_matrix_t* b, int64_t i, void* sums);
  // Adds |count| values to the sums at |columns|.
  void (*add_entries)(void* sums, const int32_t* columns, int64_t count, const void* values);
  // Moves |count| sums at |columns| to |out| and zeroes them.
  void (*take_sums)(void* sums, const int32_t* columns, int64_t count, void* out);
  void (*conjugate)(void* values, int64_t count);
  // Row |i| of a Cholesky factor. |sums| has row |i| of the matrix by column, and is zeroed. The
  // row has its diagonal and |count| |columns| before it, which ascend; |rows|, |factor_columns|
  // and |factor| are the factor, each of whose rows ends with the diagonal. False if the matrix is
  // not positive definite.
  bool (*cholesky_row)(void* sums, const int32_t* columns, int64_t count, int64_t i,
                       const int32_t* rows, const int32_t* factor_columns, void* factor);
} rn_csr_fns_t;

const rn_csr_fns_t* rn_csr_fns(rn_dtype_t dtype);

// Scratch memory to collect the entries of a row of a new matrix, by column.
typedef struct rn_csr_row_t {
  rn_tensor_t memory[3];
  void* sums;        // zero between rows
  int32_t* columns;  // those of the row, in no order
  int64_t count;     // of them
  int64_t* seen;     // by column: the last round that has it
  int64_t round;
} rn_csr_row_t;
RN_MUST_USE rn_status_t rn_csr_row_init(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t width,
                                        rn_csr_row_t* row);
void rn_csr_row_clear(rn_csr_row_t* row);
// Begins an empty row.
static inline void rn_csr_row_begin(rn_csr_row_t* row) {
  row->count = 0;
  ++row->round;
}
// Adds columns that the row does not have yet.
static inline void rn_csr_row_add(rn_csr_row_t* row, const int32_t* columns, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    if (row->seen[columns[k]] == row->round) continue;
    row->seen[columns[k]] = row->round;
    row->columns[row->count++] = columns[k];
  }
}

#endif  // RUNNEL_KERNELS_CPU_SPARSE_CSR_FNS_H_
