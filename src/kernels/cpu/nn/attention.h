// Attention as one op (step/fuse_attention.c): its attributes and the checks of its operands, for
// kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_NN_ATTENTION_H_
#define RUNNEL_KERNELS_CPU_NN_ATTENTION_H_

#include "framework/kernel.h"

#define RN_ATTENTION_DEPTH 128  // of a head, at most
#define RN_ATTENTION_RANK 8     // of tensors, at most
#define RN_ATTENTION_SIDES 8    // q, k, v, y, dy, dq, dk, dv
#define RN_ATTENTION_NUMBERS 4

typedef struct rn_attention_shape_t {
  float scale;
  bool is_causal, has_mask;
  int64_t batch, heads, queries, keys, depth;
  // Of each side: offset, steps of batch, head and row.
  int64_t layouts[RN_ATTENTION_SIDES][RN_ATTENTION_NUMBERS];
  int64_t mask_steps[4];  // heads per matrix; steps of matrices, queries and keys
  int outputs, rank;      // without the sums; each has |rank| of |dims|
  int64_t dims[3 * RN_ATTENTION_RANK];
} rn_attention_shape_t;

// The |init| function of _Attention and _AttentionGrad, whose state begins with
// rn_attention_shape_t.
RN_MUST_USE rn_status_t rn_attention_init(const rn_kernel_init_t* init, void* state);
// INTERNAL unless |tensor| has all elements of side |side|, which has |rows| rows per head.
RN_MUST_USE rn_status_t rn_attention_check(const rn_attention_shape_t* shape, int side,
                                           int64_t rows, const rn_tensor_t* tensor);
RN_MUST_USE rn_status_t rn_attention_check_mask(const rn_attention_shape_t* shape,
                                                const rn_tensor_t* mask);

#endif  // RUNNEL_KERNELS_CPU_NN_ATTENTION_H_
