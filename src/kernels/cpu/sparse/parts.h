// Sparse tensors as three owned tensors: stored, split along the first dimension, and joined again.
#ifndef RUNNEL_KERNELS_CPU_SPARSE_PARTS_H_
#define RUNNEL_KERNELS_CPU_SPARSE_PARTS_H_

#include "kernels/cpu/sparse/sparse.h"

enum { RN_SPARSE_INDICES, RN_SPARSE_VALUES, RN_SPARSE_SHAPE, RN_SPARSE_PARTS };

// All owned; all zero if empty.
typedef struct rn_sparse_parts_t {
  rn_tensor_t part[RN_SPARSE_PARTS];
} rn_sparse_parts_t;

void rn_sparse_parts_clear(rn_sparse_parts_t* parts);
// Inputs 0 to 2 unchanged; INVALID_ARGUMENT unless they are a matrix and two vectors.
RN_MUST_USE rn_status_t rn_sparse_parts_whole(rn_kernel_ctx_t* ctx, rn_sparse_parts_t* out);
// Calls |visit| per row of the sparse tensor in inputs 0 to 2, in order, including rows without
// entries. The row is a sparse tensor of one dimension less, which |visit| may take. |begin| is
// called first, with the number of rows.
typedef struct rn_sparse_visitor_t {
  void* arg;
  rn_status_t (*begin)(void* arg, int64_t rows);
  rn_status_t (*visit)(void* arg, int64_t row, rn_sparse_parts_t* parts);
} rn_sparse_visitor_t;
RN_MUST_USE rn_status_t rn_sparse_parts_each(rn_kernel_ctx_t* ctx,
                                             const rn_sparse_visitor_t* visitor);

// Sets outputs 0 to 2 to |count| sparse tensors joined into one, with dimensions |dims| (whose
// product is |count|) in front; each size is the largest. With |rank| 0, the only one unchanged.
// INVALID_ARGUMENT, with stock's message, unless each is complete, has the output's type and the
// rank of the others.
RN_MUST_USE rn_status_t rn_sparse_parts_join(rn_kernel_ctx_t* ctx, const rn_sparse_parts_t* all,
                                             int64_t count, int32_t rank, const int64_t* dims);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_PARTS_H_
