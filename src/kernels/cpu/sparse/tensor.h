// The first half of the kernels that rearrange sparse tensors, shared with other devices: checks of
// shapes and host arguments. Indices are not read, except where noted.
#ifndef RUNNEL_KERNELS_CPU_SPARSE_TENSOR_H_
#define RUNNEL_KERNELS_CPU_SPARSE_TENSOR_H_

#include "kernels/cpu/sparse/sparse.h"

// SparseConcat: the state, the parts (as many as |count|), the sizes of the result and the number
// of its values.
typedef struct rn_sparse_concat_t {
  int64_t axis;
  int count;
} rn_sparse_concat_t;
RN_MUST_USE rn_status_t rn_sparse_concat_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_sparse_concat_read(rn_kernel_ctx_t* ctx, rn_sparse_t* parts,
                                              int64_t* shape, int* out_axis, int64_t* out_total);

// SparseSlice: the box.
RN_MUST_USE rn_status_t rn_sparse_slice_read(rn_kernel_ctx_t* ctx, rn_sparse_t* in, int64_t* start,
                                             int64_t* size);
// SparseSplit. Reads the indices if it |checks_bounds|.
RN_MUST_USE rn_status_t rn_sparse_split_read(rn_kernel_ctx_t* ctx, bool checks_bounds,
                                             rn_sparse_t* in, int64_t* out_axis);
// The size of part |p| along |axis|.
int64_t rn_sparse_split_size(const rn_kernel_ctx_t* ctx, const rn_sparse_t* in, int64_t axis,
                             int p);
// SparseReshape: |in| without values, and the new sizes, of which there are as many as input 2 has
// elements. |*out_is_same|: they are the old ones.
RN_MUST_USE rn_status_t rn_sparse_reshape_read(rn_kernel_ctx_t* ctx, rn_sparse_t* in,
                                               int64_t* shape, bool* out_is_same);
// SparseFillEmptyRows and its gradient.
RN_MUST_USE rn_status_t rn_sparse_fill_read(rn_kernel_ctx_t* ctx, rn_sparse_t* in);
RN_MUST_USE rn_status_t rn_sparse_bad_row(int64_t place, int64_t row, int64_t rows);
RN_MUST_USE rn_status_t rn_sparse_fill_grad_check(rn_kernel_ctx_t* ctx);
// SparseSliceGrad.
RN_MUST_USE rn_status_t rn_sparse_slice_grad_check(rn_kernel_ctx_t* ctx);

// Makes outputs |i|, a matrix of indices, and |v|, a vector of values, unless that is negative.
RN_MUST_USE rn_status_t rn_sparse_outputs(rn_kernel_ctx_t* ctx, int i, int v, int64_t count,
                                          int rank, rn_tensor_t** out_indices,
                                          rn_tensor_t** out_values);
// Makes output |i|, in host memory, a vector of sizes.
RN_MUST_USE rn_status_t rn_sparse_output_shape(rn_kernel_ctx_t* ctx, int i, const int64_t* shape,
                                               int rank);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_TENSOR_H_
