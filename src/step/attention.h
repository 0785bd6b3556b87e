// Internals of attention fusion: fuse_attention.c finds the nodes, attention_nodes.c replaces them.
#ifndef RUNNEL_STEP_ATTENTION_H_
#define RUNNEL_STEP_ATTENTION_H_

#include "step/make.h"

#define RN_ATTENTION_INNER 24

typedef struct rn_attention_t {
  int32_t p, y;              // the softmax and the result
  rn_ir_edge_t q, k, v, dy;  // [..., rows, depth]
  rn_ir_edge_t mask;         // node -1: none
  rn_dtype_t type;           // of the products
  double scale;
  bool is_causal;                     // then the mask need not be read
  bool is_select;                     // the mask selects scores, or is added to them
  int32_t dq, dk, dv;                 // |dv| -1: no gradients
  int32_t inner[RN_ATTENTION_INNER];  // nodes that are needed no more
  int32_t inner_count;
} rn_attention_t;

// Adds the fused nodes and leads all edges to them. What is not read any more is left to a sweep.
// Does nothing if the device has no kernels for them.
RN_MUST_USE rn_status_t rn_attention_build(rn_ir_t* ir, const rn_ir_uses_t* uses,
                                           const rn_attention_t* a);

#endif  // RUNNEL_STEP_ATTENTION_H_
