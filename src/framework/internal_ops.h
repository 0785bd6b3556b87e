// The ops that the runtime itself adds to graphs: transfers between devices with their control
// loops, fused ops, and the ops that calls and functional control flow are lowered to. Higher
// layers use these functions instead of the names.
#ifndef RUNNEL_FRAMEWORK_INTERNAL_OPS_H_
#define RUNNEL_FRAMEWORK_INTERNAL_OPS_H_

#include "framework/op_def.h"

// NULL only if the library was built without them.
static inline const rn_op_def_t* rn_op_send(bool from_host) {
  return rn_op_find(from_host ? RN_STR("_HostSend") : RN_STR("_Send"));
}
static inline const rn_op_def_t* rn_op_recv(bool to_host) {
  return rn_op_find(to_host ? RN_STR("_HostRecv") : RN_STR("_Recv"));
}
// Moves a value between host and device memory of one device.
static inline const rn_op_def_t* rn_op_move(bool to_host) {
  return rn_op_find(to_host ? RN_STR("_ToHost") : RN_STR("_ToDevice"));
}
// A chain of elementwise ops in one pass over memory; the attribute "program" encodes it.
static inline const rn_op_def_t* rn_op_fused(void) {
  return rn_op_find(RN_STR("_FusedElementwise"));
}
// Such chains with several results, also over columns of matrices.
static inline const rn_op_def_t* rn_op_fused_columns(void) {
  return rn_op_find(RN_STR("_FusedColumns"));
}
// Elementwise ops and reductions of a device that compiles loops, in one loop; the attribute
// "program" encodes them.
static inline const rn_op_def_t* rn_op_fused_loops(void) {
  return rn_op_find(RN_STR("_FusedLoops"));
}
// A sum of matmuls, and gradient descent by such a sum, without materialising the terms.
static inline const rn_op_def_t* rn_op_sum_of_products(void) {
  return rn_op_find(RN_STR("_SumOfProducts"));
}
static inline const rn_op_def_t* rn_op_add_product(void) {
  return rn_op_find(RN_STR("_AddProduct"));
}
static inline const rn_op_def_t* rn_op_descent_by_products(void) {
  return rn_op_find(RN_STR("_DescentByProducts"));
}
// A convolution with the elementwise ops that follow it; step/fuse_conv.c documents the encoding of
// its steps.
static inline const rn_op_def_t* rn_op_conv_then(void) { return rn_op_find(RN_STR("_ConvThen")); }
// A matmul with the bias, the shortcut and the ReLU that follow it.
static inline const rn_op_def_t* rn_op_matmul_then(void) {
  return rn_op_find(RN_STR("_MatMulThen"));
}
// Attention without its scores, and its gradients.
static inline const rn_op_def_t* rn_op_attention(void) { return rn_op_find(RN_STR("_Attention")); }
static inline const rn_op_def_t* rn_op_attention_grad(void) {
  return rn_op_find(RN_STR("_AttentionGrad"));
}
// Many updates of variables by the same op with the same numbers.
static inline const rn_op_def_t* rn_op_apply_many(bool is_ref) {
  return rn_op_find(is_ref ? RN_STR("_ApplyMany") : RN_STR("_ResourceApplyMany"));
}
// A matrix packed for matmuls, and a matmul by a packed matrix.
static inline const rn_op_def_t* rn_op_pack_matrix(void) {
  return rn_op_find(RN_STR("_PackMatrix"));
}
static inline const rn_op_def_t* rn_op_packed_product(void) {
  return rn_op_find(RN_STR("_PackedMatMul"));
}
// A matmul that adds to the result of another one.
static inline const rn_op_def_t* rn_op_continued_product(void) {
  return rn_op_find(RN_STR("_ContinuedMatMul"));
}
// Some rows of a matrix, without a copy.
static inline const rn_op_def_t* rn_op_rows_of(void) { return rn_op_find(RN_STR("_RowsOf")); }
// All rows of a tensor as one matrix, without a copy; and a copy of some rows of a matrix that a
// number chooses.
static inline const rn_op_def_t* rn_op_as_rows(void) { return rn_op_find(RN_STR("_AsRows")); }
static inline const rn_op_def_t* rn_op_rows_at(void) { return rn_op_find(RN_STR("_RowsAt")); }
// Matrices stacked vertically.
static inline const rn_op_def_t* rn_op_stack_rows(void) { return rn_op_find(RN_STR("_StackRows")); }
// A sum to which a loop adds matmuls: its start, one addition, and the result.
static inline const rn_op_def_t* rn_op_begin_sum(void) { return rn_op_find(RN_STR("_BeginSum")); }
static inline const rn_op_def_t* rn_op_add_later(void) { return rn_op_find(RN_STR("_AddLater")); }
static inline const rn_op_def_t* rn_op_end_sum(void) { return rn_op_find(RN_STR("_EndSum")); }
static inline const rn_op_def_t* rn_op_constant(void) { return rn_op_find(RN_STR("Const")); }
// Where values enter a function or a step, and where they leave it.
static inline const rn_op_def_t* rn_op_arg(void) { return rn_op_find(RN_STR("_Arg")); }
static inline const rn_op_def_t* rn_op_retval(void) { return rn_op_find(RN_STR("_Retval")); }
static inline const rn_op_def_t* rn_op_enter(void) { return rn_op_find(RN_STR("Enter")); }
static inline const rn_op_def_t* rn_op_merge(void) { return rn_op_find(RN_STR("Merge")); }
static inline const rn_op_def_t* rn_op_switch(void) { return rn_op_find(RN_STR("Switch")); }
static inline const rn_op_def_t* rn_op_next_iteration(void) {
  return rn_op_find(RN_STR("NextIteration"));
}
static inline const rn_op_def_t* rn_op_exit(void) { return rn_op_find(RN_STR("Exit")); }
static inline const rn_op_def_t* rn_op_loop_cond(void) { return rn_op_find(RN_STR("LoopCond")); }
static inline const rn_op_def_t* rn_op_identity(void) { return rn_op_find(RN_STR("Identity")); }
static inline const rn_op_def_t* rn_op_no_op(void) { return rn_op_find(RN_STR("NoOp")); }
static inline const rn_op_def_t* rn_op_equal(void) { return rn_op_find(RN_STR("Equal")); }
// A call of the function in its attribute "f".
static inline const rn_op_def_t* rn_op_call(bool is_stateful) {
  return rn_op_find(is_stateful ? RN_STR("StatefulPartitionedCall") : RN_STR("PartitionedCall"));
}

#endif  // RUNNEL_FRAMEWORK_INTERNAL_OPS_H_
