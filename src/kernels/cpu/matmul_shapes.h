// Attributes and shape checks of MatMul and BatchMatMul, for the kernels of every device.
#ifndef RUNNEL_KERNELS_CPU_MATMUL_SHAPES_H_
#define RUNNEL_KERNELS_CPU_MATMUL_SHAPES_H_

#include "framework/kernel.h"
#include "kernels/cpu/gemm.h"

typedef struct rn_matmul_attrs_t {
  bool transpose_a, transpose_b;
  bool is_adjoint;        // a transposed complex matrix is conjugated, too
  bool wants_same_batch;  // BatchMatMul V1: batch dimensions do not broadcast
} rn_matmul_attrs_t;

// |init| functions of MatMul, BatchMatMul, and BatchMatMulV2 and V3. |state| begins with
// rn_matmul_attrs_t.
RN_MUST_USE rn_status_t rn_matmul_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_batch_matmul_v1_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_batch_matmul_init(const rn_kernel_init_t* init, void* state);

// Fills in the sizes, the type and the transpositions of |gemm| from the last two dimensions.
RN_MUST_USE rn_status_t rn_matmul_sizes(const rn_matmul_attrs_t* attrs, const rn_tensor_t* a,
                                        const rn_tensor_t* b, rn_gemm_t* gemm);
// The same for MatMul, whose operands are matrices.
RN_MUST_USE rn_status_t rn_matmul_check(const rn_matmul_attrs_t* attrs, const rn_tensor_t* a,
                                        const rn_tensor_t* b, rn_gemm_t* gemm);

// Batch dimensions broadcast against each other: the operands of each output matrix.
typedef struct rn_matmul_batch_t {
  int rank;                   // of the batch
  int64_t dims[RN_MAX_RANK];  // of the output: the batch, then m and n
  // Strides in matrices along each batch dimension; 0 where the operand repeats.
  int64_t a_steps[RN_MAX_RANK], b_steps[RN_MAX_RANK];
} rn_matmul_batch_t;
// Fills in the batch, not m and n. False if the dimensions before the last two are incompatible.
bool rn_matmul_broadcast(const rn_tensor_t* a, const rn_tensor_t* b, rn_matmul_batch_t* out);
RN_MUST_USE rn_status_t rn_batch_matmul_check(const rn_matmul_attrs_t* attrs, const rn_tensor_t* a,
                                              const rn_tensor_t* b, rn_gemm_t* gemm,
                                              rn_matmul_batch_t* batch);

#endif  // RUNNEL_KERNELS_CPU_MATMUL_SHAPES_H_
